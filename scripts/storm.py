"""Test random queries and measures against the oracle, and all ways to compute them, for as long as you like.

    python -m scripts.storm --minutes 60        numbers from 0 on, until the time is over
    python -m scripts.storm --first 4711        from this one on: what fails names its number

A number stands for a table of random queries, short ones, long ones or many, and measures with any parameters
(`crossed_table` and `crossed_measures` in `tests/strategies.py`). Values must agree to 1e-12 with `tests/oracle.py`, and
have the same bits alone, with other measures and queries, with rows in another order, in other dtypes, in a stream and
with two threads.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ.setdefault("FASTNDCG_KERNELS", "compiled")

import strategies  # noqa: E402, from tests/

# sizes of a table, and the most measures; the oracle is slow, so that of many queries only the laws are tried
SIZES = (
    ({}, 12),
    ({"longest": 60}, 6),
    ({"longest": 600}, 4),
    ({"longest": 9000}, 2),
    ({"lengths": 5000}, 8),
)


def complaint(number: int) -> str | None:
    """What is wrong with a number, or None."""
    rng = np.random.default_rng(number)
    size, most = SIZES[number % len(SIZES)]
    is_small = "lengths" not in size
    if not is_small:
        size = {"lengths": rng.integers(0, int(rng.choice([4, 9, 41, 70])), size["lengths"]).tolist()}
    table = strategies.crossed_table(number, **size)
    asked = strategies.crossed_measures(number, table, most=most)
    wrong = strategies.difference(table, asked) if is_small else None
    return wrong or strategies.broken_law(table, asked, rng)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    end, number, failures = time.monotonic() + 60 * given.minutes, given.first, 0
    while time.monotonic() < end:
        wrong = complaint(number)
        if wrong is not None:
            print(f"{number}: {wrong}", flush=True)
            failures += 1
        number += 1
    print(f"{number - given.first} tables, {failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
