"""What machinery is worth: this package's parser of lines, footers, quartiles and private Numba, beside what replaces it.

    python -m bench.machinery [lines|footers|quartiles|numba]...

Processor seconds of this process, or of a child, the least of several runs.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastndcg as fn
from bench.timing import take_turns

_LINES = 500_000
_COMPILE = """
import resource, sys
if sys.argv[1] == "public":
    sys.path.insert(0, "tests")
    import public_numba
import numpy as np, fastndcg as fn
g = np.random.default_rng(0)
began = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
fn.evaluate(fn.Rankings.from_groups(np.full(300, 100), g.integers(0, 4, 30_000), g.random(30_000)), "nDCG@10")
from fastndcg.compiled.compile import compiling
print(compiling.private is None, sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - began)
"""


def least(work: Callable[[], object], times: int = 5) -> float:
    return take_turns({"work": work}, least=times, most=times)["work"].cpu


def lines() -> None:
    import pytrec_eval

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path, scores = Path(folder, "run"), rng.random(_LINES)
        path.write_text(
            "".join(f"{i // 100} Q0 doc{i % 1000} {i % 100} {scores[i]:.6f} t\n" for i in range(_LINES))
        )

        def by_pytrec_eval() -> object:
            with path.open() as file:
                return pytrec_eval.parse_run(file)

        from fastndcg.sources.text_sides import text_side

        own = least(lambda: text_side(path, "score", 1))
        rival = least(by_pytrec_eval, 3)
        print(
            f"lines: own, of pyarrow's CSV reader, {own:.3f} s, pytrec_eval {rival:.3f} s: {rival / own:.1f} times"
        )


def footers() -> None:
    from fastndcg.sources.footers import read_footer

    table, out = pa.table({f"c{i}": np.arange(3000) for i in range(20)}), io.BytesIO()
    pq.write_table(table, out, row_group_size=30)
    data = pa.py_buffer(out.getvalue())
    own = least(lambda: read_footer(pa.BufferReader(data)))
    arrow = least(lambda: pq.ParquetFile(pa.BufferReader(data)).metadata)
    print(
        f"footers: of 100 row groups of 20 columns, own and pyarrow's {own:.4f} s, pyarrow's alone {arrow:.4f} s"
    )


def quartiles() -> None:
    values = np.random.default_rng(0).random(1_000_000)
    rankings = fn.Rankings.from_groups(np.ones(1_000_000, np.int64), np.ones(1_000_000, np.uint8), values)
    numpy = least(
        lambda: (np.quantile(values, [0.25, 0.5, 0.75]), values.std(ddof=1), values.min(), values.max())
    )
    own = least(lambda: fn.evaluate(rankings, ["NumRet"]).summary())
    whole = least(lambda: fn.evaluate(rankings, ["NumRet"]))
    print(
        f"quartiles and spread: NumPy {numpy * 1e3:.1f} ms for 1 M queries; own summary {(own - whole) * 1e3:.1f} ms"
    )


def private_numba() -> None:
    found = {}
    for way in ("private", "public"):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "FASTNDCG_KERNELS": "compiled"}
            child = subprocess.run(
                [sys.executable, "-c", _COMPILE, way],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            is_public, seconds = child.stdout.split()
            found[way] = float(seconds)
            print(f"numba: {way} (without private parts: {is_public}) first compile {found[way]:.1f} s")
    print(f"numba: {found['public'] / found['private']:.2f} times as long without private parts")


WAYS = {"lines": lines, "footers": footers, "quartiles": quartiles, "numba": private_numba}

if __name__ == "__main__":
    for name in sys.argv[1:] or WAYS:
        WAYS[name]()
