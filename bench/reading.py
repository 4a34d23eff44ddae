"""Time reading and scoring, from Parquet or CSV to a mean, against pyarrow reading the same columns, each in its own process."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import fastndcg as fn
from bench import shuffled
from bench.errors import BenchError, WrongAnswerError
from bench.process import apart, whole
from bench.record import Row, beside
from bench.timing import Time, fastest, take_turns
from fastndcg.cli.demo import write_sample

QUERIES = 182_000  # about 20 million documents
COLUMNS = ["query_id", "label", "score"]
_BARS = {"int64": 1.15, "string": 1.0, "CSV": 1.2, "CSV.gz": 1.2}


def file_of(folder: Path, queries: int, ids: str) -> Path:
    """Return the path of the sample with ids of this type, and write the file if it does not exist."""
    if ids.startswith("CSV"):
        path = folder / f"sample-{queries}.{ids.lower()}"
        if not path.exists():
            table = pq.read_table(file_of(folder, queries, "int64"), columns=COLUMNS)
            with pa.output_stream(path, compression="gzip" if ids == "CSV.gz" else None) as sink:
                pa_csv.write_csv(table, sink)
        return path
    path = folder / f"sample-{queries}-{ids}.parquet"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    if ids == "int64":
        write_sample(path, queries)
        return path
    with pq.ParquetFile(file_of(folder, queries, "int64")) as source:
        draft, writer = path.with_suffix(".draft"), None
        for group in range(source.num_row_groups):
            table = source.read_row_group(group, columns=COLUMNS)
            numbers = table["query_id"].combine_chunks().dictionary_encode()
            digits = pc.utf8_lpad(numbers.dictionary.cast(pa.string()), 9, "0")
            names = pc.binary_join_element_wise("query-", digits, "").take(numbers.indices)
            table = table.set_column(0, "query_id", names)
            writer = writer or pq.ParquetWriter(draft, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()
        draft.rename(path)
    return path


def in_memory(path: Path, threads: int) -> np.ndarray:
    return fn.evaluate(fn.read_parquet(path, threads=threads), "nDCG@10", threads=threads).values


def as_stream(path: Path, threads: int) -> np.ndarray:
    """Score a stream: one part is scored while the next is decoded, in bounded memory."""
    return fn.evaluate(fn.scan_parquet(path, threads=threads), "nDCG@10").values


def as_stream_of_csv(path: Path, threads: int) -> np.ndarray:
    return fn.evaluate(fn.scan_csv(path, threads=threads), "nDCG@10").values


Ways = dict[str, Callable[[Path, int], np.ndarray]]
WAYS: Ways = {"in memory": in_memory, "as a stream": as_stream}
WAYS_OF_CSV: Ways = {"as a stream": as_stream_of_csv}


def batches_of_csv(path: Path, threads: int) -> Iterator[pa.RecordBatch]:
    """Read the stream of pyarrow, which holds as little of the file in memory as ours."""
    with (
        pa.input_stream(path, compression="gzip" if path.suffix == ".gz" else None) as source,
        pa_csv.open_csv(
            source,
            read_options=pa_csv.ReadOptions(use_threads=threads > 1),
            convert_options=pa_csv.ConvertOptions(include_columns=COLUMNS),
        ) as batches,
    ):
        yield from batches


def check(path: Path, table: pa.Table, threads: int, ways: Ways = WAYS) -> None:
    """Check that values from files have the same bits as values from arrays."""
    ids = table["query_id"].combine_chunks()
    other = fn.Rankings.from_query_ids(ids, table["label"].to_numpy(), table["score"].to_numpy())
    wanted = fn.evaluate(other, "nDCG@10", threads=1).values
    for score in ways.values():
        values = score(path, threads)
        if not np.array_equal(values, wanted, equal_nan=True):
            raise WrongAnswerError("nDCG@10", path.name, float(values.mean()), float(wanted.mean()))


def measure(folder: str, queries: int, ids: str, threads: int, seconds: float) -> Iterator[Row]:
    path = file_of(Path(folder), queries, ids)
    pa.set_cpu_count(threads)

    is_csv = ids.startswith("CSV")
    ways = WAYS_OF_CSV if is_csv else WAYS

    def read() -> pa.Table:
        return pq.read_table(path, columns=COLUMNS, use_threads=threads > 1)

    def parse() -> int:
        return sum(map(len, batches_of_csv(path, threads)))

    table = pa.Table.from_batches(batches_of_csv(path, threads)) if is_csv else read()
    check(path, table, threads, ways)
    documents = len(table)
    del table
    timed = {way: partial(score, path, threads) for way, score in ways.items()}
    times = take_turns({**timed, "read": parse if is_csv else read}, seconds=seconds, least=3)
    base, thread = times["read"], f"{threads} thread{'s'[: threads - 1]}"
    for way in ways:
        ours = times[way]
        yield beside(
            "reading", f"{documents / 1e6:.0f} M rows, {ids}{'' if is_csv else ' ids'}, {thread}, {way}",
            f"pyarrow {'open_csv' if is_csv else 'read_table'} of the same columns", "ns/doc", ours, base, each=1e9 / documents,
            clock="wall" if threads > 1 else "cpu", bar=_BARS[ids],
            note=f"read and scored; processor time {ours.cpu / base.cpu:.2f}x, wall {ours.wall / base.wall:.2f}x",
        )  # fmt: skip


# whole processes, which print a mean and the memory that they took
_PEAK = """
import pathlib, re
print(re.search(r"VmHWM:\\s*(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
"""
_PROGRAMS = {
    "ours": "import sys, fastndcg as fn\n"
    "print(fn.evaluate(fn.scan_parquet(sys.argv[1]), 'nDCG@10').mean()['nDCG@10'])",
    "DuckDB's SQL": "import sys, duckdb\n"
    f"print(duckdb.connect().execute({shuffled.SQL!r}.format(path=sys.argv[1])).fetchone()[0])",
}


def processes(folder: Path, n_rows: int, runs: int) -> Iterator[Row]:
    """Whole processes from Parquet to a mean, rows in any order and sorted, against DuckDB's own SQL."""
    scattered, printed = shuffled.file_of(folder, n_rows, "int64"), folder / "printed"
    ordered = scattered.with_stem(f"sorted-{n_rows}")
    if not ordered.exists():
        draft = ordered.with_suffix(".draft")
        pq.write_table(pq.read_table(scattered).sort_by("query_id"), draft, use_dictionary=["label"])
        draft.rename(ordered)
    for path, order in ((ordered, "sorted"), (scattered, "in any order")):
        times: dict[str, list[Time]] = {name: [] for name in _PROGRAMS}
        peaks, means = dict.fromkeys(_PROGRAMS, 0), dict.fromkeys(_PROGRAMS, 0.0)
        for _ in range(runs):
            for name, program in _PROGRAMS.items():
                times[name].append(whole("-c", program + _PEAK, str(path), out=printed))
                *_, mean, peak = printed.read_text(encoding="utf-8").split()  # after DuckDB's progress
                means[name], peaks[name] = float(mean), max(peaks[name], int(peak) >> 10)
        wanted, answer = means.values()
        if not math.isclose(answer, wanted, rel_tol=1e-9):
            raise WrongAnswerError("nDCG@10", path.name, answer, wanted)
        ours, base = map(fastest, times.values())
        megabytes = " against ".join(f"{each:,}" for each in peaks.values())
        yield beside(
            "reading", f"{n_rows / 1e6:g} M rows {order}, whole process, as a stream", "DuckDB's SQL", "ns/doc", ours, base,
            each=1e9 / n_rows, clock="wall", bar=1.0,
            note=f"processor time {ours.cpu / base.cpu:.2f}x, wall {ours.wall / base.wall:.2f}x; memory {megabytes} MB",
        )  # fmt: skip


def rows(*, quick: bool, folder: Path | None = None) -> Iterator[Row]:
    folder = folder or Path(tempfile.gettempdir()) / "fastndcg-bench"
    yield from processes(folder, 400_000 if quick else 16_000_000, 2 if quick else 5)
    for ids in _BARS:
        queries = QUERIES // (40 if quick else 4 if ids.startswith("CSV") else 1)
        file_of(folder, queries, ids)
        for threads in (1, 2):
            try:
                yield from apart("reading.measure", str(folder), queries, ids, threads, 0.5 if quick else 6.0)
            except BenchError as error:
                yield Row("reading", f"{ids} ids, {threads} threads", note=f"failed: {error}")
