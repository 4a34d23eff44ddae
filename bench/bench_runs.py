"""Time several runs in one process against one process for each run: `python -m bench.bench_runs --runs 40`.

The runs are generated: 50 queries of 200 documents, as small as those of a shared task. Both ways must print
the same.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def write_files(folder: Path, runs: int, queries: int = 50, documents: int = 200) -> tuple[str, list[str]]:
    """Write judgments and runs of one collection."""
    rng = np.random.default_rng(0)
    pairs = [(query, document) for query in range(queries) for document in range(documents)]
    grades = rng.integers(0, 4, len(pairs))
    qrels = folder / "qrels.txt"
    qrels.write_text("".join(f"{q} 0 d{d} {g}\n" for (q, d), g in zip(pairs, grades, strict=True)))
    paths = []
    for number in range(runs):
        scores = rng.random(len(pairs))
        path = folder / f"run{number}.txt"
        path.write_text(
            "".join(f"{q} Q0 d{d} 0 {s:.6f} r{number}\n" for (q, d), s in zip(pairs, scores, strict=True))
        )
        paths.append(str(path))
    return str(qrels), paths


def timed(*arguments: str) -> tuple[float, str]:
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "fastndcg", *arguments], capture_output=True, text=True, check=True
    )
    return time.perf_counter() - started, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    count = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        qrels, runs = write_files(Path(folder), count)
        timed("trec_eval", "-q", qrels, runs[0])  # compiles the kernels
        together, text = timed("trec_eval", "-q", qrels, *runs)
        alone = [timed("trec_eval", "-q", qrels, run) for run in runs]
        if text != "".join(each for _, each in alone):
            sys.exit("the two ways print different text")
        apart = sum(seconds for seconds, _ in alone)
        sys.stdout.write(
            f"{count} runs: {together:.2f} s in one process, {apart:.2f} s in {count}: "
            f"{apart / together:.1f}x\n"
        )


if __name__ == "__main__":
    main()
