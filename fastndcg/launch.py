"""Running the kernels: serial or parallel, over chunks of equally many documents, and safe inside any host.

The parallel driver runs when it pays and can: not for small input, not while another thread of this process runs it (under
Numba's workqueue layer that would abort the process), and not in a child forked after it ran (GNU OpenMP would end the
child). Everywhere else the serial driver gives the same bits.
"""

from __future__ import annotations

import os
import threading
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

_CHUNK = 32_768  # documents: scores and grades of a chunk fit the second-level cache
_WORTH_THREADS = 100_000  # documents below which starting threads costs more than it saves

_one_at_a_time = threading.Lock()
_ran_parallel_in: int | None = None  # process that last ran the parallel driver


def score(measures: tuple[Measure, ...], rankings: Rankings, plan: Plan, coding: Coding, threads: int | None) -> npt.NDArray[np.float64]:
    """Values of all measures, float64 (n_measures, n_queries); NaN where a query has no value."""
    from fastndcg import kernels

    out = np.empty((len(measures), rankings.n_queries))
    documents = _documents(rankings, coding)
    name = "levels" if coding.levels else "values"
    serial = getattr(kernels, f"score_{name}_serial")
    wanted = _threads(threads)
    if wanted == 1 or rankings.n_docs < _WORTH_THREADS and threads is None:
        serial(_chunks(rankings, 1), documents, plan, out)
    else:
        _run_parallel(getattr(kernels, f"score_{name}_parallel"), serial, wanted, _chunks(rankings, wanted), documents, plan, out)
    for row, measure in enumerate(measures):
        if measure.params.get("ideal") == "returned" and measure.ties == "average" and measure.definition.over == "ideal":
            _expect_over_returned(measure, rankings, documents.scores, out[row])
    return out


def _expect_over_returned(measure: Measure, rankings: Rankings, scores: npt.NDArray[Any], out: npt.NDArray[np.float64]) -> None:
    """The one expectation that is no sum over ranks has a kernel of its own, that nobody else waits for to compile."""
    from fastndcg import kernels

    counts = np.ones(rankings.n_docs, np.bool_)
    if measure.judged_only and rankings.is_judged is not None:
        counts = rankings.is_judged
    cutoff = kernels.UNCUT if measure.cutoff is None else measure.cutoff
    discounts = discount_table(measure.discount, max(rankings.longest, 1))
    empty = np.nan if isinstance(measure.empty, str) else measure.empty
    gains = gains_of_documents(measure, rankings)
    kernels.expect_over_returned(rankings.offsets, gains, _read_only(scores), _read_only(counts), cutoff, discounts, float(empty), out)


def _threads(threads: int | None) -> int:
    import numba

    available = numba.get_num_threads()
    if threads is None:
        return available
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InputTypeError(f"threads={threads!r} is no number of threads; wanted a whole number from 1, or None for all")
    return min(int(threads), numba.config.NUMBA_NUM_THREADS)


def _chunks(rankings: Rankings, threads: int) -> npt.NDArray[np.int64]:
    """First query of each chunk, and the number of queries: chunks of about equally many documents."""
    offsets = rankings.offsets
    n_chunks = max(1, min(rankings.n_queries, max(rankings.n_docs // _CHUNK, 4 * (threads - 1))))
    cuts = np.searchsorted(offsets, np.arange(1, n_chunks) * (rankings.n_docs / n_chunks))
    return np.unique(np.concatenate([[0], cuts, [rankings.n_queries]])).astype(np.int64)


def _documents(rankings: Rankings, coding: Coding) -> Documents:
    from fastndcg.kernels import Documents

    none, all_judged = _empty(np.int64), _empty(np.bool_)
    relevance, is_judged = rankings.relevance, rankings.is_judged
    pool_offsets, pool_relevance = (none, relevance[:0]) if rankings.judged is None else rankings.judged
    if coding.levels:
        if is_judged is not None or not _compiled_for(relevance):
            relevance = _coded(relevance, coding)
            if is_judged is not None:
                relevance = np.where(is_judged, relevance, np.uint8(coding.n_levels))
        if pool_relevance.dtype != relevance.dtype:
            pool_relevance = _coded(pool_relevance, coding)
        if pool_relevance.dtype != relevance.dtype:
            relevance = _coded(relevance, coding)
    else:
        all_judged = all_judged if is_judged is None else is_judged
        if relevance.dtype.kind != "f" or pool_relevance.dtype != relevance.dtype:
            relevance, pool_relevance = relevance.astype(np.float64), pool_relevance.astype(np.float64)
    scores = _comparable(rankings.scores)
    return Documents(
        rankings.offsets,
        _read_only(relevance),
        _read_only(scores),
        all_judged,
        pool_offsets,
        _read_only(pool_relevance),
        coding.n_levels + (is_judged is not None),
        scores.dtype.type(-np.inf if scores.dtype.kind == "f" else np.iinfo(np.int64).min),
    )


def _compiled_for(relevance: npt.NDArray[Any]) -> bool:
    """Dtypes of grades that a kernel reads itself; the others are coded to bytes first, lest there be a kernel for each."""
    return relevance.dtype in (np.uint8, np.int64, np.float32, np.float64)


def _coded(relevance: npt.NDArray[Any], coding: Coding) -> npt.NDArray[np.uint8]:
    if relevance.dtype == np.uint8 and coding.lowest == 0:
        return relevance
    if relevance.dtype == np.uint64:
        return (relevance - np.uint64(coding.lowest)).astype(np.uint8)
    return (relevance.astype(np.int64) - coding.lowest).astype(np.uint8)


def _comparable(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Scores as float32, float64 or int64 in the same order: small integers fit a float exactly, uint64 is shifted."""
    if scores.dtype in (np.float32, np.float64, np.int64):
        return scores
    if scores.dtype == np.uint64:
        return (scores ^ np.uint64(1 << 63)).view(np.int64)
    return scores.astype(np.float32 if scores.dtype.itemsize <= 2 else np.float64)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array = array.view()
    array.flags.writeable = False
    return array


def _empty(dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    return _read_only(np.empty(0, dtype))


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
