"""Run the kernels, serial or parallel, over chunks with about equally many documents, safe inside any host.

Numba's threads could end the host's process: those of its "workqueue" layer if the host has other threads,
those of "omp" in a child that was forked after the layer was loaded. In these cases, and if no layer can be
loaded or Numba's version is untested, Python threads run the serial driver, which gives the same bits.

Only one call at a time uses threads; concurrent calls run the serial driver in their own thread. A process
that forks waits until no compilation runs (`kernels.compile.private_numba`).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import parts_of, read_only
from fastndcg.common.progress import Task
from fastndcg.common.threads import check_threads, in_threads
from fastndcg.kernels.compile import dispatch
from fastndcg.kernels.schema import HELD, Documents
from fastndcg.scoring import plan

if TYPE_CHECKING:
    from fastndcg.kernels.schema import Plan
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scoring.plan import Coding

_LEAST_FOR_THREADS = 100_000  # with fewer documents, starting threads costs more than it saves
_DOCUMENTS_OF_REPORT = 1 << 25  # documents between two reports of progress if no array has to be cast

_RUNS_OF_THREAD = 8  # runs of chunks per Python thread, so that threads finish at about the same time
# documents that a chunk should have where threads want more chunks. Each costs 2 microseconds and has to fill
# batches of 16 queries: 100,000 documents in 120 chunks, for 16 threads, took twice the instructions of one
_LEAST = 1 << 13

# documents, times measures, for each Python thread. On 16 cores a million were faster on one thread than on
# two, and ten million on 8 than on 16
_WORK_OF_PYTHON_THREAD = 1 << 20

_one_at_a_time = threading.Lock()


class Sizes(NamedTuple):
    """How many documents a kernel gets, and are cast, at a time."""

    # documents of a chunk. Each chunk allocates working memory: with small chunks this took a twelfth of the
    # time. All queries of a chunk with a long list are scored one by one: with large chunks and few long
    # lists, scoring took half as long again
    chunk: int = 1 << 18
    chunk_of_long: int = 1 << 15
    # documents that each thread casts at a time, to bytes and to columns of 8 bytes; few, to save memory
    cast: int = 1 << 18
    cast_wide: int = 1 << 17


_SIZES = Sizes()
_DRIVERS = {True: "drivers.score_levels_serial", False: "drivers.score_values_serial"}


def score(
    measures: tuple[Measure, ...], rankings: Rankings, threads: int | None, sizes: Sizes = _SIZES
) -> npt.NDArray[np.float64]:
    """Values of all measures, float64 (n_measures, n_queries); NaN if empty. Raises as `plan.build` does."""
    tables, coding = plan.build(measures, rankings)
    out = np.empty((len(measures), rankings.n_queries))
    name = _DRIVERS[coding.levels]
    work = _size(tables, coding, rankings, 0, rankings.n_queries)
    n_threads = 1 if threads is None and rankings.n_docs < _LEAST_FOR_THREADS else threads_of(threads)
    with Task("Scoring") if rankings.n_docs >= _LEAST_FOR_THREADS else nullcontext() as task:
        for first, last in _runs(rankings, coding, n_threads, sizes):
            documents = _documents(rankings, coding, first, last)
            arguments = (_chunks(rankings, first, last, n_threads, sizes), documents, tables, out)
            size = _size(tables, coding, rankings, first, last)
            serial = dispatch.compiled_driver(name, size, arguments, job=work)
            if serial is None:
                dispatch.run_plain(name, *arguments)
            elif n_threads == 1:
                serial(*arguments)
            else:
                _run_parallel(serial, n_threads, *arguments)
            if task is not None:
                task.advance(int(rankings.offsets[last]), rankings.n_docs)
    return out


def _size(tables: Plan, coding: Coding, rankings: Rankings, first: int, last: int) -> float:
    """Estimate the work of a plain driver, in documents that are read once: within a factor of four of the
    times of 45 jobs with lists of 10 to 20,000 documents. With 200 tied documents ERR took 40 times as long:
    the number of ties is unknown before documents are ranked.
    """
    queries, documents = last - first, int(rankings.offsets[last] - rankings.offsets[first])
    ranked = min(tables.depth * queries, documents)
    by_loops = ranked > (1024 if coding.levels else 256) * queries  # longer lists are sorted one by one
    of_rank = ((3 if coding.levels else 15) + 30 * by_loops) * (1 if tables.term_parameters is None else 2)
    return (documents + 40 * queries + of_rank * ranked) * (3 + len(tables.rows)) / 4


def threads_of(threads: int | None) -> int:
    """Return the number of threads for scoring: by default all that Numba has."""
    threads, limit = check_threads(threads), dispatch.cores()
    if threads is not None:
        return min(threads, limit)
    # the host may have set Numba's number of threads
    numba = sys.modules.get("numba")
    return limit if numba is None or _layer() is None else int(numba.get_num_threads())


# ---- cutting ----


def _runs(rankings: Rankings, coding: Coding, threads: int, sizes: Sizes) -> Iterator[tuple[int, int]]:
    """Return runs of queries that are cast and scored together; longer ones if nothing has to be cast."""
    dtype = np.uint8 if coding.levels else np.float64
    pool = rankings.relevance if rankings.judged is None else rankings.judged.relevance
    grades_fit = rankings.relevance.dtype == dtype == pool.dtype
    scores_fit = rankings.scores.dtype in _COMPARED
    if grades_fit and scores_fit and not (coding.levels and rankings.is_judged is not None):
        together = _DOCUMENTS_OF_REPORT
    else:
        together = threads * (sizes.cast if coding.levels and scores_fit else sizes.cast_wide)
    if rankings.n_docs <= together:
        yield 0, rankings.n_queries
        return
    for part in parts_of(rankings.offsets, together):
        yield part.start, part.stop


def _chunks(rankings: Rankings, first: int, last: int, threads: int, sizes: Sizes) -> npt.NDArray[np.int64]:
    """Return the first query of each chunk, and the end of the last; all are about equally long."""
    offsets, size = rankings.offsets, sizes.chunk if rankings._longest <= HELD else sizes.chunk_of_long
    base = int(offsets[first])
    documents = int(offsets[last]) - base
    of_threads = min(_RUNS_OF_THREAD * (threads - 1), threads * -(-documents // (_LEAST * threads)))
    n_chunks = min(last - first, max(documents // size, of_threads))
    # integer bounds, so that the search does not convert the offsets; a chunk may be empty
    bounds = [base + documents * chunk // n_chunks for chunk in range(1, n_chunks)]
    cuts = offsets[first:last].searchsorted(bounds) + first if bounds else ()
    return np.array([first, *cuts, last])


# ---- casting: each kernel has one dtype of grades and three of scores ----


def _documents(rankings: Rankings, coding: Coding, first: int, last: int) -> Documents:
    offsets = rankings.offsets
    base, end = offsets[first], offsets[last]
    is_judged = None if rankings.is_judged is None else rankings.is_judged[base:end]
    relevance = rankings.relevance[base:end]
    if is_judged is not None and relevance.dtype.kind == "f":
        # the stored grade of an unjudged document may not fit a level
        relevance = np.where(is_judged, relevance.astype(np.float64, copy=False), coding.lowest)
    relevance = _cast_grades(relevance, coding)
    pool_offsets, pool_relevance, pool_base = _NO_OFFSETS, relevance[:0], 0
    if rankings.judged is not None:
        pool_offsets = rankings.judged.offsets
        pool_base = pool_offsets[first]
        pool_relevance = _cast_grades(rankings.judged.relevance[pool_base : pool_offsets[last]], coding)
    if coding.levels and is_judged is not None:
        relevance = np.where(is_judged, relevance, np.uint8(coding.n_levels))
    scores = rankings.scores[base:end]
    if scores.dtype not in _COMPARED:
        scores = _comparable(scores)
    return Documents(
        offsets=offsets,
        relevance=read_only(relevance),
        scores=read_only(scores),
        is_judged=_ALL_JUDGED if coding.levels or is_judged is None else is_judged,
        pool_offsets=pool_offsets,
        pool_relevance=read_only(pool_relevance),
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
        if coding.lowest:  # in float64, because grades of the pool may not be exact in float32
            relevance = relevance.astype(np.float64, copy=False) - coding.lowest
        return relevance.astype(np.uint8)
    levels: npt.NDArray[np.uint8] = relevance.astype(np.uint8)
    if coding.lowest:
        # the low byte of a difference depends only on the low bytes, so bytes are subtracted
        levels -= np.uint8(coding.lowest & 255)
    return levels


_COMPARED = (np.float32, np.float64, np.int64)


def _comparable(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Scores as float32, float64 or int64, in the same order: small integers as floats, uint64 shifted."""
    if scores.dtype == np.uint64:
        return (scores ^ np.uint64(1 << 63)).view(np.int64)
    return scores.astype(np.float32 if scores.dtype.itemsize <= 2 else np.float64)


_NO_OFFSETS = read_only(np.empty(0, np.int64))
_ALL_JUDGED = read_only(np.empty(0, np.bool_))


# ---- running ----


def _run_parallel(
    serial: Any,
    threads: int,
    chunks: npt.NDArray[np.int64],
    documents: Documents,
    tables: Plan,
    out: npt.NDArray[np.float64],
) -> None:
    from fastndcg.compiled import drivers

    arguments = documents, tables, out
    if not _one_at_a_time.acquire(blocking=False):
        serial(chunks, *arguments)
        return
    try:
        if drivers.IS_PARALLEL and _numba_threads_are_safe():
            _run_on_numba_threads(serial, threads, chunks, *arguments)
        else:
            n_docs = int(documents.offsets[chunks[-1]] - documents.offsets[chunks[0]])
            busy = max(1, n_docs * len(out) // _WORK_OF_PYTHON_THREAD)
            _run_on_python_threads(serial, min(threads, busy), chunks, *arguments)
    finally:
        _one_at_a_time.release()


def _run_on_numba_threads(serial: Any, threads: int, *arguments: Any) -> None:
    import numba

    from fastndcg.compiled.drivers import address_of, score_parallel

    address, before = address_of(serial, *arguments), numba.get_num_threads()
    try:
        if threads != before:  # setting it takes 20 microseconds
            numba.set_num_threads(threads)
        # if a thread failed, this thread runs all chunks again, and raises the error or has enough memory
        if score_parallel(address, threads, np.zeros(1, np.int64), *arguments):
            serial(*arguments)
    finally:
        if threads != before:
            numba.set_num_threads(before)


def _run_on_python_threads(serial: Any, threads: int, chunks: npt.NDArray[np.int64], *arguments: Any) -> None:
    n_chunks = len(chunks) - 1
    ends = np.unique(np.linspace(0, n_chunks, min(n_chunks, threads * _RUNS_OF_THREAD) + 1).astype(np.int64))
    shares = [chunks[first : last + 1] for first, last in pairwise(ends)]
    for _ in in_threads(lambda share: serial(share, *arguments), shares, threads):
        pass


# ---- properties of the host ----


def _layer() -> str | None:
    """Return Numba's threading layer, which is loaded if necessary; None if none can be loaded."""
    import numba

    try:
        numba.get_num_threads()
        return str(numba.threading_layer())
    except (ValueError, ImportError):  # THREADING_LAYER names an unknown layer
        return None


def _numba_threads_are_safe() -> bool:
    layer = _layer()
    if layer == "omp":
        return not _inherited
    if layer == "workqueue":
        return len(sys._current_frames()) == 1
    return layer is not None


def _layer_is_loaded() -> bool:
    try:
        return bool(sys.modules["numba"].threading_layer())
    except (
        KeyError,
        AttributeError,
        ValueError,
    ):  # Numba is not, or only partly, imported, or has no layer yet
        return False


# whether a parent process may have loaded the layer, as if it was loaded before this module
_inherited = _layer_is_loaded()


def _after_fork_in_child() -> None:
    global _one_at_a_time, _inherited
    # the inherited lock may be held by a thread that the child does not have
    _one_at_a_time = threading.Lock()
    _inherited = _inherited or _layer_is_loaded()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
