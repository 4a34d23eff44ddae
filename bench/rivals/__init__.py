"""Other tools that answer the same question: one file for each, and what they have in common.

A file says which question its tool answers in this package's notation, and how to put it. The answer is
checked before it is timed. What a tool can be given beforehand (its own containers, data sets, tables) is
built beforehand and not timed.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import fastndcg as fn
from bench import samples
from bench.errors import BenchError, WrongAnswerError
from bench.process import apart
from bench.record import Row, beside
from bench.timing import take_turns

Answer = float | npt.NDArray[np.float64]
NAMES = tuple(
    sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))
)
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"), "1")  # fmt: skip


class Rival(NamedTuple):
    """One way of one tool to answer `measure`.

    `prepare` takes rankings and returns the call that is timed, which returns the mean or the value of each
    query.
    """

    name: str
    install: str
    module: str
    measure: str
    prepare: Callable[[fn.Rankings], Callable[[], Answer]]
    queries: int
    tied: bool = False
    tolerance: float = 1e-12
    bar: float | None = None
    note: str = ""

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None

    @property
    def absent(self) -> str:
        return f"not installed: pip install {self.install}"


def ways(name: str) -> tuple[Rival, ...]:
    """The ways in one file of this folder."""
    found: tuple[Rival, ...] = importlib.import_module(f"bench.rivals.{name}").RIVALS
    return found


def check(rival: Rival, got: Answer, wanted: npt.NDArray[np.float64]) -> None:
    """Raise unless the tool's values, or its mean, are those of this package."""
    if np.ndim(got) == 0:
        pairs = np.array([got]), np.array([wanted.mean()])
    else:
        pairs = np.asarray(got, np.float64), wanted
    if pairs[0].shape != pairs[1].shape:
        raise WrongAnswerError(
            rival.measure, f"{rival.name} (number of values)", len(pairs[0]), len(pairs[1])
        )
    wrong = ~np.isclose(*pairs, rtol=rival.tolerance, atol=rival.tolerance)
    if wrong.any():
        worst = int(np.argmax(np.abs(pairs[0] - pairs[1])))
        raise WrongAnswerError(rival.measure, rival.name, float(pairs[0][worst]), float(pairs[1][worst]))


def question(rival: Rival, scale: float) -> tuple[fn.Rankings, dict[str, Callable[[], Answer]]]:
    """Rankings, and how the tool and this package answer for them, on one thread each; both answers have been checked."""
    queries = max(2, round(rival.queries * scale))
    rankings = samples.even(queries, 100, 0.5, 1) if rival.tied else samples.untied(queries, 100)

    def ours() -> Answer:
        return fn.evaluate(rankings, rival.measure, threads=1).values[0]

    theirs = rival.prepare(rankings)
    check(rival, theirs(), np.asarray(ours()))
    return rankings, {"theirs": theirs, "ours": ours}


def measure(rival: Rival, *, scale: float = 1.0, seconds: float = 2.0, least: int = 3) -> Row:
    """Check the answer, then time the tool and this package in turns."""
    if not rival.installed:
        return Row("rivals", rival.name, rival.measure, note=rival.absent)
    rankings, calls = question(rival, scale)
    times = take_turns(calls, seconds=seconds, least=least)
    return beside(
        "rivals", rival.name, rival.measure, "ns/doc", times["ours"], times["theirs"], each=1e9 / rankings.n_docs, bar=rival.bar,
        wants="more", note=rival.note,
    )  # fmt: skip


def measure_ways(name: str, scale: float) -> Iterator[Row]:
    keep_to_one_thread()
    for way in ways(name):
        yield measure(way, scale=scale, seconds=2.0 * min(1.0, scale))


def rows(*, quick: bool) -> Iterator[Row]:
    """Run each tool in its own process, since tools set threads and load their OpenMP, and one may crash."""
    for name in NAMES:
        found = ways(name)
        if not any(way.installed for way in found):
            yield from map(measure, found)
            continue
        try:
            scale = 0.02 if quick else 1.0
            yield from apart("rivals.measure_ways", name, scale, environment=ONE_THREAD, timeout=200)
        except BenchError as error:
            yield Row("rivals", found[0].name, found[0].measure, note=f"failed: {error}")


def dense(rankings: fn.Rankings) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Grades and scores as matrices; all lists have one length."""
    shape = (rankings.n_queries, -1)
    return rankings.relevance.reshape(shape), rankings.scores.reshape(shape)


def query_of_rows(rankings: fn.Rankings) -> npt.NDArray[np.int64]:
    return np.repeat(np.arange(rankings.n_queries), rankings.lengths)


def dicts(rankings: fn.Rankings) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Judgments and run as TREC's tools for Python take them."""
    qrels, run = {}, {}
    for query, (grades, scores) in enumerate(zip(*dense(rankings), strict=True)):
        documents = [f"d{document}" for document in range(len(grades))]
        qrels[f"q{query:07d}"] = dict(zip(documents, grades.tolist(), strict=True))
        run[f"q{query:07d}"] = dict(zip(documents, scores.tolist(), strict=True))
    return qrels, run


def keep_to_one_thread() -> None:
    """For the tools that read it when they are imported; called before any is. Numba takes no other number once it runs."""
    os.environ.update(
        {
            name: value
            for name, value in ONE_THREAD.items()
            if not (name.startswith("NUMBA") and "numba" in sys.modules)
        }
    )
