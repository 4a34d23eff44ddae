"""Time the stages of a job on 1, 2, 4, ... threads, up to as many as the machine has processors.

    python bench/run.py --only cores

Values have to be the same on any number of threads, to the last bit, before anything is timed. Speed-up is that
of the clock against one thread, and the notes say what share of as many threads that is. Other processes on the
machine disturb it, so the notes say as well how much processor time all threads used.

Bias: files are in the page cache; kernels are compiled before; threads are not bound to processors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import pyarrow as pa

import fastndcg as fn
from bench import reading, roofline, samples, shuffled
from bench.errors import BenchError, WrongAnswerError
from bench.process import apart
from bench.record import Row, beside
from bench.tables import number
from bench.timing import take_turns
from bench.workloads import _FORTY
from fastndcg.common import arrow_types
from fastndcg.common.threads import processors
from fastndcg.sources.inputs import open_tables
from fastndcg.tables.roles import Roles

Call = Callable[[int], Any]  # with a number of threads

_QUERIES = 90_000  # about ten million documents


def threads_here() -> list[int]:
    """1, 2, 4, ... and the number of processors."""
    most = processors()
    return sorted({2**power for power in range(most.bit_length()) if 2**power <= most} | {most})


def measure(
    name: str, call: Call, items: int, *, seconds: float, unit: str = "ns/doc", numbers: list[int] | None = None,
) -> Iterator[Row]:  # fmt: skip
    """Check that all numbers of threads give the same, and time them in turns."""
    numbers, wanted = numbers or threads_here(), call(1)
    for threads in numbers:
        if not _are_equal(call(threads), wanted):
            raise WrongAnswerError(name, f"{threads} threads", float("nan"), float("nan"))
    # each call twice, since threads of OpenMP spin for a while after the last call of another number of them
    times = take_turns(
        {str(threads): partial(call, threads) for threads in numbers}, seconds=seconds, least=3, twice=True
    )
    base, each = times["1"], 1e9 / items
    for threads in numbers:
        mine = times[str(threads)]
        used = f"{number(mine.cpu * each, unit)} of all threads"
        yield beside(
            "cores", f"{name}, {threads} thread{'s'[: threads - 1]}", "one thread", unit, mine, base, each=each,
            clock="wall", wants="more", note=f"{base.wall / mine.wall / threads:.0%}; processor: {used}",
        )  # fmt: skip


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    if isinstance(one, pa.Table):  # whose dictionaries and runs may differ
        return all(
            arrow_types.decode(arrow_types.plain(column)).equals(arrow_types.decode(arrow_types.plain(same)))
            for column, same in zip(one.columns, other.columns, strict=True)
        )
    return bool(one == other)


# ---- in memory ----


def score(rankings: fn.Rankings, measures: Any, threads: int) -> np.ndarray:
    return fn.evaluate(rankings, measures, threads=threads).values


def add_up(rankings: fn.Rankings, threads: int) -> np.ndarray:
    """Add up the scores and grades of each query, the roofline, each thread those of as many documents."""
    out, offsets = np.empty(rankings.n_queries), rankings.offsets
    cuts = np.searchsorted(offsets, np.linspace(0, rankings.n_docs, threads + 1).astype(np.int64))
    run = partial(_add_up_part, rankings, out)
    if threads == 1:
        run((0, rankings.n_queries))
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, pairwise([0, *cuts[1:-1].tolist(), rankings.n_queries])))
    return out


def _add_up_part(rankings: fn.Rankings, out: np.ndarray, part: tuple[int, int]) -> None:
    first, last = part
    offsets = rankings.offsets[first : last + 1]
    roofline.sum_queries(offsets, rankings.relevance, rankings.scores, out[first:last])


def scoring(scale: float, seconds: float) -> Iterator[Row]:
    queries = max(1, int(_QUERIES * scale))
    even, ragged = samples.even(max(1, int(100_000 * scale)), 100, 0.5), samples.ragged(queries, 0.5)
    yield from measure("roofline, lognormal lengths", partial(add_up, ragged), ragged.n_docs, seconds=seconds)
    cases: list[tuple[str, fn.Rankings, Any]] = [
        ("100 documents, nDCG@10", even, "nDCG@10"),
        ("lognormal lengths, nDCG@10", ragged, "nDCG@10"),
        ("lognormal lengths, nDCG", ragged, "nDCG"),
        ("lognormal lengths, AP", ragged, "AP"),
        ("lognormal lengths, forty measures", ragged, list(_FORTY)),
    ]
    for name, rankings, measures in cases:
        call = partial(score, rankings, measures)
        yield from measure(name, call, rankings.n_docs, seconds=seconds)


# ---- from files ----


def decode(path: str, threads: int) -> pa.Table:
    """Read the three columns, as `read_parquet` does before it groups their rows."""
    opened = open_tables([path], threads).choose(Roles.of({}, "read_parquet"))
    return opened.table(opened.columns.names)


def group(table: pa.Table, _: int) -> np.ndarray:
    """Bring the rows of each query together, which one thread does, however many there are."""
    return fn.Rankings.from_arrow(table).scores


def in_memory(path: str, threads: int) -> np.ndarray:
    return score(fn.read_parquet(path, threads=threads), "nDCG@10", threads)


def as_stream(path: str, threads: int) -> np.ndarray:
    pa.set_cpu_count(threads)  # as on a machine of so many processors
    return fn.evaluate(fn.scan_parquet(path, memory=shuffled.MEMORY), "nDCG@10").values


def files(path: str, label: str, seconds: float) -> Iterator[Row]:
    """The stages of reading and scoring a file, then all of them, in memory and as a stream."""
    table = decode(path, 1)
    rankings, n_rows = fn.Rankings.from_arrow(table), len(table)
    if not np.array_equal(as_stream(path, 1), in_memory(path, 1), equal_nan=True):
        raise WrongAnswerError("nDCG@10", f"{label}, as a stream", float("nan"), float("nan"))
    timed = partial(measure, items=n_rows, seconds=seconds)
    name = f"{n_rows / 1e6:.2g} M rows {label}"
    yield from timed(f"{name}: decode", partial(decode, path))
    yield from timed(f"{name}: group", partial(group, table), numbers=[1])
    yield from timed(f"{name}: score", partial(score, rankings, "nDCG@10"))
    yield from timed(f"{name}: all, in memory", partial(in_memory, path))
    yield from timed(f"{name}: all, as a stream", partial(as_stream, path))


def rows(*, quick: bool, folder: Path | None = None) -> Iterator[Row]:
    folder = folder or Path(gettempdir()) / "fastndcg-bench"
    scale, seconds = (0.05, 0.3) if quick else (1.0, 5.0)
    sorted_rows = reading.file_of(folder, int(_QUERIES * scale), "int64")
    n_rows = int(shuffled.ROWS * scale)
    parts: list[tuple[Any, ...]] = [
        ("scoring", scale, seconds),
        ("files", str(sorted_rows), "sorted, int64 ids", seconds),
        *(
            ("files", str(shuffled.file_of(folder, n_rows, ids)), f"in any order, {ids} ids", seconds)
            for ids in ("int64", "text")
        ),
    ]
    for part, *arguments in parts:
        environment = {"FASTNDCG_KERNELS": "compiled", "NUMBA_NUM_THREADS": str(processors())}
        try:
            yield from apart(f"cores.{part}", *arguments, environment=environment, timeout=900)
        except BenchError as error:
            yield Row("cores", " ".join(map(str, (part, *arguments))), note=f"failed: {error}")
