"""Running the kernels: serial or parallel, over chunks of equally many documents, and safe inside any host.

The parallel driver runs when it pays and can: not for small input, not while another thread of this process runs it (under
Numba's workqueue layer that would abort the process), and not in a child forked after it ran (GNU OpenMP would end the
child). Everywhere else the serial driver gives the same bits.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastndcg.errors import InputTypeError
from fastndcg.plan import discount_table, gains_of_documents

if TYPE_CHECKING:
    from fastndcg.kernels import Documents, Plan
    from fastndcg.measures import Measure
    from fastndcg.plan import Coding
    from fastndcg.rankings import Rankings

_CHUNK = 32_768  # documents: scores and levels of a chunk fit the second-level cache
_CAST = 1 << 17  # documents of a thread whose columns are cast together, so that casts need little memory
_WORTH_THREADS = 100_000  # documents below which starting threads costs more than it saves

_one_at_a_time = threading.Lock()
_ran_parallel_in: int | None = None  # process that last ran the parallel driver


def score(
    measures: tuple[Measure, ...], rankings: Rankings, plan: Plan, coding: Coding, threads: int | None
) -> npt.NDArray[np.float64]:
    """Values of all measures, float64 (n_measures, n_queries); NaN where a query has no value."""
    from fastndcg import kernels

    out = np.empty((len(measures), rankings.n_queries))
    kind = "levels" if coding.levels else "values"
    serial = getattr(kernels, f"score_{kind}_serial")
    wanted = threads_of(threads)
    if wanted == 1 or (rankings.n_docs < _WORTH_THREADS and threads is None):
        wanted = 1
    for first, last in _runs(rankings, coding, wanted):
        documents = _documents(rankings, coding, first, last)
        if wanted == 1:
            serial(_chunks(rankings.offsets, first, last, 1), documents, plan, out)
        else:
            parallel = getattr(kernels, f"score_{kind}_parallel")
            _run_parallel(
                parallel, serial, wanted, _chunks(rankings.offsets, first, last, wanted), documents, plan, out
            )
    for row, measure in enumerate(measures):
        if _varies_with_returned(measure):
            _expect_over_returned(measure, rankings, out[row])
    return out


def threads_of(threads: int | None) -> int:
    import numba

    available: int = numba.get_num_threads()
    if threads is None:
        return available
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InputTypeError(
            f"threads={threads!r} is no number of threads; wanted a whole number from 1, or None for all"
        )
    limit: int = numba.config.NUMBA_NUM_THREADS
    return min(int(threads), limit)


# ---- cutting ----


def _runs(rankings: Rankings, coding: Coding, threads: int) -> Iterator[tuple[int, int]]:
    """Runs of queries that are cast and scored together: all of them where nothing need be cast."""
    if not _needs_cast(rankings, coding):
        yield 0, rankings.n_queries
        return
    offsets, first = rankings.offsets, 0
    while first < rankings.n_queries:
        last = int(np.searchsorted(offsets, offsets[first] + threads * _CAST, side="right")) - 1
        last = min(max(last, first + 1), rankings.n_queries)
        yield first, last
        first = last


def _chunks(offsets: npt.NDArray[np.int64], first: int, last: int, threads: int) -> npt.NDArray[np.int64]:
    """First query of each chunk, and the last one's end: chunks of about equally many documents."""
    documents = int(offsets[last] - offsets[first])
    n_chunks = max(1, min(last - first, max(documents // _CHUNK, 4 * (threads - 1))))
    if n_chunks == 1:
        return np.array([first, last])
    cuts = first + np.searchsorted(
        offsets[first : last + 1], offsets[first] + np.arange(1, n_chunks) * (documents / n_chunks)
    )
    return np.unique(np.concatenate([[first], cuts, [last]]))


# ---- casting: each kernel has one dtype of grades and three of scores ----


def _needs_cast(rankings: Rankings, coding: Coding) -> bool:
    wanted = np.uint8 if coding.levels else np.float64
    return (
        rankings.relevance.dtype != wanted
        or (rankings.judged is not None and rankings.judged.relevance.dtype != wanted)
        or (coding.levels and rankings.is_judged is not None)
        or rankings.scores.dtype not in _COMPARED
    )


def _documents(rankings: Rankings, coding: Coding, first: int, last: int) -> Documents:
    from fastndcg.kernels import Documents

    offsets = rankings.offsets
    base, end = offsets[first], offsets[last]
    is_judged = None if rankings.is_judged is None else rankings.is_judged[base:end]
    relevance = rankings.relevance[base:end]
    if (
        is_judged is not None and relevance.dtype.kind == "f"
    ):  # what an unjudged document holds may fit no level
        relevance = np.where(is_judged, relevance, relevance.dtype.type(coding.lowest))
    relevance = _cast_grades(relevance, coding)
    pool_offsets, pool_relevance, pool_base = _NO_OFFSETS, relevance[:0], 0
    if rankings.judged is not None:
        pool_offsets = rankings.judged.offsets
        pool_base = pool_offsets[first]
        pool_relevance = _cast_grades(rankings.judged.relevance[pool_base : pool_offsets[last]], coding)
    if coding.levels and is_judged is not None:
        relevance = np.where(is_judged, relevance, np.uint8(coding.n_levels))
    scores = _comparable(rankings.scores[base:end])
    return Documents(
        offsets=offsets,
        relevance=_read_only(relevance),
        scores=_read_only(scores),
        is_judged=_ALL_JUDGED if coding.levels or is_judged is None else is_judged,
        pool_offsets=pool_offsets,
        pool_relevance=_read_only(pool_relevance),
        base=int(base),
        pool_base=int(pool_base),
        levels=coding.n_levels + (is_judged is not None),
        lowest=scores.dtype.type(-np.inf if scores.dtype.kind == "f" else np.iinfo(np.int64).min),
    )


def _cast_grades(relevance: npt.NDArray[Any], coding: Coding) -> npt.NDArray[Any]:
    if not coding.levels:
        return relevance.astype(np.float64, copy=False)
    if relevance.dtype == np.uint8 and coding.lowest == 0:
        return relevance
    if relevance.dtype.kind == "f":
        above: npt.NDArray[Any] = relevance - relevance.dtype.type(coding.lowest)
        return above.astype(np.uint8)
    # the low byte of a difference is the difference of the low bytes, so no wide difference is needed
    levels: npt.NDArray[np.uint8] = relevance.astype(np.uint8) - np.uint8(coding.lowest & 255)
    return levels


_COMPARED = (np.float32, np.float64, np.int64)


def _comparable(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Scores as float32, float64 or int64 in the same order: small integers fit a float exactly, uint64 is shifted."""
    if scores.dtype in _COMPARED:
        return scores
    if scores.dtype == np.uint64:
        return (scores ^ np.uint64(1 << 63)).view(np.int64)
    return scores.astype(np.float32 if scores.dtype.itemsize <= 2 else np.float64)


def falling_keys(scores: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Keys that rise where scores fall, equal where they are equal.

    >>> falling_keys(np.array([0.5, -0.0, 2.0, 0.0])).argsort(kind="stable")
    array([2, 0, 1, 3])
    """
    if scores.dtype == np.uint64:
        rising = (scores ^ np.uint64(1 << 63)).view(np.int64)
    elif scores.dtype.kind in "bui":
        rising = scores.astype(np.int64)
    else:
        bits = (scores.astype(np.float64) + 0.0).view(np.int64)  # + 0.0 makes -0.0 the zero it equals
        rising = bits ^ ((bits >> 63) & np.iinfo(np.int64).max)
    return ~rising


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array = array.view()
    array.flags.writeable = False
    return array


_NO_OFFSETS = _read_only(np.empty(0, np.int64))
_ALL_JUDGED = _read_only(np.empty(0, np.bool_))


# ---- running ----


def _varies_with_returned(measure: Measure) -> bool:
    """Whether ties decide what the ideal is made of, so that the expectation is no sum over ranks."""
    params = measure.params
    uses_ideal = measure.definition.over == "ideal" or measure.definition.ranking == "ideal"
    return uses_ideal and params.get("ideal") == "returned" and params.get("ties") == "average"


def _expect_over_returned(measure: Measure, rankings: Rankings, out: npt.NDArray[np.float64]) -> None:
    """Such an expectation has a kernel of its own, that nobody else waits for to compile."""
    from fastndcg import kernels

    counts = np.ones(rankings.n_docs, np.bool_)
    if measure.judged_only and rankings.is_judged is not None:
        counts = rankings.is_judged
    cutoff = kernels.UNCUT if measure.cutoff is None else min(measure.cutoff, kernels.UNCUT)
    discounts = discount_table(measure.discount, max(rankings.longest, 1))
    empty = np.nan if isinstance(measure.empty, str) else measure.empty
    ratio = measure.definition.over == "ideal"
    gains, scores = gains_of_documents(measure, rankings), _comparable(rankings.scores)
    kernels.expect_over_returned(
        rankings.offsets,
        gains,
        _read_only(scores),
        _read_only(counts),
        cutoff,
        discounts,
        float(empty),
        ratio,
        out,
    )
    documents = (
        rankings.lengths if rankings.judged is None else rankings.lengths + np.diff(rankings.judged.offsets)
    )
    out[documents == 0] = np.nan


def _run_parallel(parallel: Any, serial: Any, threads: int, *arguments: Any) -> None:
    global _ran_parallel_in
    import numba

    forked = _ran_parallel_in not in (None, os.getpid())
    if forked or not _one_at_a_time.acquire(blocking=False):
        serial(*arguments)
        return
    before = numba.get_num_threads()
    try:
        _ran_parallel_in = os.getpid()
        numba.set_num_threads(threads)
        parallel(*arguments)
    finally:
        numba.set_num_threads(before)
        _one_at_a_time.release()


def _after_fork() -> None:
    # a child inherits the lock as it was: held, maybe, by a thread that the child does not have
    global _one_at_a_time
    _one_at_a_time = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
