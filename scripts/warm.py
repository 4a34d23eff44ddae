"""Compile what most tests need into the cache, in as many processes as there are cores, each kernel once.

Workers of pytest would compile the same kernels side by side: each waits for its own and nobody uses another's.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import fastndcg as fn

QUERIES, LENGTH = 1500, 100  # more documents than are worth threads


def score(grades: str, scores: str, measures: list[str]) -> None:
    rng = np.random.default_rng(1)
    relevance = rng.integers(0, 4, QUERIES * LENGTH)
    relevance = relevance.astype(grades) if grades == "uint8" else relevance + 0.5
    values = rng.integers(0, 50, QUERIES * LENGTH).astype(scores)
    rankings = fn.Rankings.from_groups([LENGTH] * QUERIES, relevance, values)
    for threads in (1, 2):
        fn.evaluate(rankings, measures, threads=threads)


def read_trec() -> None:
    lines = range(3000)
    with tempfile.TemporaryDirectory() as folder:
        qrels, run = Path(folder, "qrels"), Path(folder, "run")
        qrels.write_text("".join(f"{line // 30} 0 d{line % 30} {line % 3}\n" for line in lines))
        run.write_text("".join(f"{line // 30} Q0 d{line % 30} 1 {line % 7}.5 me\n" for line in lines))
        fn.read_trec(qrels, run)


def read_ltr() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ltr")
        path.write_text("".join(f"{line % 3} qid:{line // 30} 1:0.5\n" for line in range(3000)))
        fn.read_ltr(path, scores=np.arange(3000))


def tasks() -> Iterator[Callable[[], None]]:
    kinds = itertools.product(
        ["uint8", "float64"], ["float64", "int64", "float32"], [["nDCG@10"], ["AP", "ERR"]]
    )
    for grades, scores, measures in kinds:
        yield lambda grades=grades, scores=scores, measures=measures: score(grades, scores, measures)
    yield read_trec
    yield read_ltr


def main() -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = [
        subprocess.Popen([sys.executable, __file__, str(worker), str(cores)])
        for worker in range(min(cores, 4))
    ]
    codes = [worker.wait() for worker in workers]
    if any(codes):
        sys.exit("warm: what most tests need could not be compiled; see above")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        for task in itertools.islice(tasks(), int(sys.argv[1]), None, int(sys.argv[2])):
            task()
