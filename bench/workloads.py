"""The workloads that have bars: what is scored, the baseline, and the largest ratio allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

import fastndcg as fn
from bench import reference, roofline, samples
from bench.errors import BenchError
from bench.record import Row, beside
from bench.timing import Time, take_turns

Sample = Callable[[float], fn.Rankings]

_CUTOFFS = tuple(f"nDCG@{k}" for k in (1, 3, 5, 10, 20, 100))
_RIVALS_OF_NDCG = {"AP": "nDCG", "RR@10": "nDCG@10", "P@10": "nDCG@10", "ERR@20": "nDCG@20"}
_FORTY = (
    *(f"nDCG@{k}" for k in (1, 3, 5, 10, 20, 100)), *(f"nDCG(gain='exp2')@{k}" for k in (1, 3, 5, 10, 20, 100)),
    *(f"P@{k}" for k in (1, 3, 5, 10, 20, 100)), *(f"R@{k}" for k in (1, 3, 5, 10, 20, 100)),
    *(f"RR@{k}" for k in (1, 5, 10)), *(f"Success@{k}" for k in (1, 5, 10)), *(f"ERR@{k}" for k in (5, 10, 20)),
    "nDCG", "DCG@10", "AP", "RR", "Rprec", "ERR", "RBP",
)  # fmt: skip


@dataclass(frozen=True)
class Workload:
    """`measures` of `sample`, against the roofline or `base_measures` of `base_sample`."""

    name: str
    sample: Sample
    bar: float
    moonshot: float | None = None
    measures: tuple[str, ...] = ("nDCG@10",)
    threads: int = 1
    baseline: str = "roofline"
    base_sample: Sample | None = None
    base_measures: tuple[str, ...] | None = None

    @property
    def needs(self) -> set[str]:
        """Names of the measures."""
        return {text.partition("@")[0].partition("(")[0] for text in self.measures}


def _lists(
    scale: float, queries: int, length: int, relevant: float, decimals: int | None = None
) -> fn.Rankings:
    return samples.even(max(1, round(queries * scale)), length, relevant, decimals)


def _ragged(scale: float) -> fn.Rankings:
    return samples.ragged(max(1, round(180_000 * scale)), 0.5)


def _of(change: Callable[[fn.Rankings], fn.Rankings], sample: Sample) -> Sample:
    return lambda scale: change(sample(scale))


_hundred = partial(_lists, queries=200_000, length=100, relevant=0.5)
_tied = partial(_lists, queries=200_000, length=100, relevant=0.5, decimals=1)
_sparse = partial(_lists, queries=200_000, length=100, relevant=0.1)
_thousand = partial(_lists, queries=20_000, length=1_000, relevant=0.1)
_thousand_sparse = partial(_lists, queries=20_000, length=1_000, relevant=0.002)
_long = partial(_lists, queries=200, length=100_000, relevant=0.001)
# a fifth of the documents, since these workloads are compared with each other, and some take a second per run
_fewer = partial(_lists, queries=40_000, length=100, relevant=0.5)
_alone = ("nDCG@10",)

WORKLOADS = (
    Workload("100 documents, 50% relevant", _hundred, 6, 4),
    Workload("100 documents, 50% relevant, uncut", _hundred, 25, measures=("nDCG",)),
    Workload("100 documents, 50% relevant, tied scores", _tied, 6, 4),
    Workload("100 documents, 10% relevant", _sparse, 5, 3.5),
    Workload("lognormal 1 to 2,000 documents, 50% relevant", _ragged, 5, 3.5),
    Workload("1,000 documents, 10% relevant", _thousand, 3, 2),
    Workload("1,000 documents, 0.2% relevant", _thousand_sparse, 3, 2),
    Workload("100,000 documents, 0.1% relevant", _long, 1.6, 1.3),
    Workload(
        "six cutoffs and uncut in one call", _fewer, 1.5, measures=(*_CUTOFFS, "nDCG"), baseline="uncut alone",
        base_sample=_fewer, base_measures=("nDCG",),
    ),
    Workload(
        "linear and exp2 in one call", _fewer, 1.3, measures=("nDCG@10", "nDCG(gain='exp2')@10"),
        baseline="linear alone", base_sample=_fewer, base_measures=_alone,
    ),
    Workload(
        "float64 scores, int64 grades", _of(samples.double, _fewer), 2.5, baseline="float32, uint8",
        base_sample=_fewer, base_measures=_alone,
    ),
    Workload(
        "continuous float32 grades", _of(samples.continuous, _fewer), 4, baseline="uint8 grades",
        base_sample=_fewer, base_measures=_alone,
    ),
    *(
        Workload(f"{text} alone", _fewer, 2, measures=(text,), baseline=base, base_sample=_fewer, base_measures=(base,))
        for text, base in _RIVALS_OF_NDCG.items()
    ),
    Workload(
        "forty measures in one call", _fewer, 3, measures=_FORTY, baseline="ERR alone, the dearest of them", base_sample=_fewer,
        base_measures=("ERR",),
    ),
    # last, since OpenMP threads spin for a while after their work, and that time would count for the next
    # workload
    Workload(
        "lognormal lengths, two threads", _ragged, 1.9, threads=2, baseline="one thread", base_sample=_ragged,
        base_measures=_alone,
    ),
)  # fmt: skip


def is_known(workload: Workload) -> bool:
    from fastndcg.measures import DEFINITIONS

    return workload.needs <= set(DEFINITIONS)


def measure(workload: Workload, *, scale: float = 1.0, seconds: float = 2.0, least: int = 5) -> Row:
    """Check the answers, then time the whole call and its baseline in turns."""
    if not is_known(workload):
        return Row("kernels", workload.name, workload.baseline, note="no such measure in this version")
    rankings = workload.sample(scale)
    reference.check(rankings, workload.measures, threads=workload.threads)

    def subject() -> object:
        return fn.evaluate(rankings, workload.measures, threads=workload.threads)

    if workload.base_measures is None:
        out = np.empty(rankings.n_queries)
        grades, scores = rankings.relevance, rankings.scores
        base_documents = rankings.n_docs

        def baseline() -> object:
            return roofline.sum_queries(rankings.offsets, grades, scores, out)

    else:
        base_sample = workload.base_sample or workload.sample
        base_rankings, base_measures = base_sample(scale), workload.base_measures
        base_documents = base_rankings.n_docs

        def baseline() -> object:
            return fn.evaluate(base_rankings, base_measures, threads=1)

    times = take_turns({"subject": subject, "baseline": baseline}, seconds=seconds, least=least)
    mine, base = times["subject"], times["baseline"]
    base = Time(*(seconds * rankings.n_docs / base_documents for seconds in base))
    is_faster = workload.threads > 1
    return beside(
        "kernels", workload.name, workload.baseline, "ns/doc", mine, base, each=1e9 / rankings.n_docs,
        # wall time for threads, whose purpose is to save it; processor time otherwise
        clock="wall" if is_faster else "cpu", bar=workload.bar, moonshot=workload.moonshot, wants="more" if is_faster else "less",
        note=f"two threads use {mine.cpu / base.cpu:.2f}x the processor time of one" if is_faster else "",
    )  # fmt: skip


def rows(*, quick: bool) -> Iterator[Row]:
    for workload in WORKLOADS:
        try:
            if quick:
                yield measure(workload, scale=0.05, seconds=0.2, least=3)
            else:
                # longer for two threads, which need moments in which both processors are free
                yield measure(workload, seconds=2.0 * workload.threads**2)
        except BenchError as error:
            yield Row("kernels", workload.name, workload.baseline, note=f"failed: {error}")
