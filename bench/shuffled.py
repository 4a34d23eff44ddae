"""Time rows in any order, from Parquet to a mean, against pyarrow, DuckDB and Polars.

Queries have lognormal lengths, 90,000 in 10 million rows. Ids are random numbers or texts made of them, too
many for a dictionary of Parquet. Every answer is checked: ours bit for bit against arrays, the others to nine
digits. The tools run in turns.

Bias: one file, in the page cache, compressed by Snappy as is pyarrow's default; all tools use all cores;
scores have no ties, since SQL ranks them in any order.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastndcg as fn
from bench.errors import BenchError, WrongAnswerError
from bench.process import apart
from bench.record import Row, beside
from bench.timing import take_turns

ROWS, ROWS_A_QUERY = 10_000_000, 111
COLUMNS = ["query_id", "label", "score"]
MEMORY = "256MB"  # enough for the grade, the score and a number of each row
_BARS = {"int64": (2.2, 3.0, 3.0), "text": (1.3, 2.0, 8.0)}  # in memory; as a stream; against each rival

SQL = """
with lists as (
    select query_id, arg_max(label, score, 10) as found, max(label, 10) as ideal from read_parquet('{path}') group by query_id
),
sums as (
    select list_sum(list_transform(found, lambda grade, rank: grade / log2(rank + 1))) as dcg,
           list_sum(list_transform(ideal, lambda grade, rank: grade / log2(rank + 1))) as idcg
    from lists
)
select avg(case when idcg > 0 then dcg / idcg else 0 end) from sums
"""


def file_of(folder: Path, rows: int, ids: str) -> Path:
    """Return the path of rows in any order with ids of this type, and write the file if it does not exist."""
    path = folder / f"shuffled-{rows}-{ids}.parquet"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(rows)
    n_queries = rows // ROWS_A_QUERY
    shares = rng.lognormal(0, 1.1, n_queries)
    queries = np.repeat(np.arange(n_queries), 1 + rng.multinomial(rows - n_queries, shares / shares.sum()))
    rng.shuffle(queries)
    numbers = rng.choice(1 << 40, n_queries, replace=False)
    labels = np.digitize(rng.integers(0, 256, rows), [200, 230, 245, 253]).astype(np.uint8)
    # all scores differ
    scores = ((rng.permutation(1 << 24)[:rows] if rows <= 1 << 24 else np.arange(rows)) / (1 << 24)).astype(
        np.float32
    )
    names: pa.Array = pa.array(numbers)
    if ids == "text":
        names = pa.array([f"query-{number:013d}" for number in numbers.tolist()])
    draft = path.with_suffix(".draft")
    table = pa.table(dict(zip(COLUMNS, (names.take(pa.array(queries)), labels, scores), strict=True)))
    # no dictionaries for ids, so that each id has to be read
    pq.write_table(table, draft, use_dictionary=["label"])
    draft.rename(path)
    return path


def in_memory(path: Path) -> np.ndarray:
    return fn.evaluate(fn.read_parquet(path), "nDCG@10").values


def as_stream(path: Path) -> np.ndarray:
    return fn.evaluate(fn.scan_parquet(path, memory=MEMORY), "nDCG@10").values


def of_duckdb(path: Path) -> float:
    import duckdb

    answer = duckdb.connect().execute(SQL.format(path=path)).fetchone()
    return float(answer[0]) if answer else float("nan")


def of_polars(path: Path) -> float:
    import polars as pl

    rank = pl.int_range(1, pl.min_horizontal(pl.len(), 10) + 1).cast(pl.Float64)

    def dcg(ordered: pl.Expr) -> pl.Expr:
        return (ordered.head(10).cast(pl.Float64) / (rank + 1).log(2)).sum()

    grade, found, ideal = pl.col("label"), pl.col("found"), pl.col("ideal")
    sums = (
        pl.scan_parquet(path)
        .group_by("query_id")
        .agg(found=dcg(grade.sort_by("score", descending=True)), ideal=dcg(grade.sort(descending=True)))
    )
    mean = sums.select(pl.when(ideal > 0).then(found / ideal).otherwise(0.0).mean())
    return float(mean.collect().item())


WAYS: dict[str, Callable[[Path], np.ndarray]] = {"in memory": in_memory, "as a stream": as_stream}
RIVALS = {"DuckDB": of_duckdb, "Polars": of_polars}


def check(path: Path, table: pa.Table) -> None:
    order = np.argsort(table["query_id"].combine_chunks().dictionary_encode().indices, kind="stable")
    sorted_table = table.take(pa.array(order))
    other = fn.Rankings.from_query_ids(
        sorted_table["query_id"].combine_chunks(),
        sorted_table["label"].to_numpy(),
        sorted_table["score"].to_numpy(),
    )
    wanted = fn.evaluate(other, "nDCG@10", threads=1).values
    for way, score in WAYS.items():
        if not np.array_equal(score(path), wanted, equal_nan=True):
            raise WrongAnswerError(way, path.name, float(score(path).mean()), float(wanted.mean()))
    for name, ask in RIVALS.items():
        if not math.isclose(answer := ask(path), float(wanted.mean()), rel_tol=1e-9):
            raise WrongAnswerError(name, path.name, answer, float(wanted.mean()))


def measure(folder: str, n_rows: int, ids: str, seconds: float) -> Iterator[Row]:
    path = file_of(Path(folder), n_rows, ids)

    def read() -> pa.Table:
        return pq.read_table(path, columns=COLUMNS)

    table = read()
    check(path, table)
    del table
    calls: dict[str, Callable[[], object]] = {
        name: partial(way, path) for name, way in (WAYS | RIVALS).items()
    }
    times = take_turns(calls | {"read": read}, seconds=seconds, least=3)
    memory_bar, stream_bar, rival_bar = _BARS[ids]
    name, each = f"{n_rows / 1e6:.0f} M rows in any order, {ids} ids", 1e9 / n_rows
    for way, bar in zip(WAYS, (memory_bar, stream_bar), strict=True):
        yield beside(
            "shuffled", f"{name}, {way}", "pyarrow read_table of the same columns", "ns/doc", times[way], times["read"], each=each,
            bar=bar, note="read and scored; processor time",
        )  # fmt: skip
    ours = times["in memory"]
    for rival in RIVALS:
        faster = times[rival].wall / ours.wall
        yield beside(
            "shuffled", f"{name}, in memory", rival, "ns/doc", ours, times[rival], each=each, clock="wall", bar=1 / rival_bar,
            note=f"the clock; {faster:.1f} times as fast, wanted {rival_bar:g}",
        )  # fmt: skip


def rows(*, quick: bool, folder: Path | None = None) -> Iterator[Row]:
    folder = folder or Path(tempfile.gettempdir()) / "fastndcg-bench"
    for ids in _BARS:
        try:
            n_rows, seconds = (ROWS // 20, 0.5) if quick else (ROWS, 20.0)
            yield from apart("shuffled.measure", str(folder), n_rows, ids, seconds)
        except BenchError as error:
            yield Row("shuffled", f"{ids} ids", note=f"failed: {error}")
