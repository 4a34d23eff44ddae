"""Fuzz Parquet: a reader refuses what pyarrow refuses, and reads the values of pyarrow or refuses."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastndcg as fn
from scripts.fuzz import Target, mutate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

_IDS = (
    pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.int64(), pa.string(), pa.string(), pa.large_string(),
    pa.string_view(), pa.binary(), pa.dictionary(pa.int32(), pa.string()),
)  # fmt: skip
_GRADES = (
    pa.uint8(),
    pa.int8(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.decimal128(21, 1),
)
_SCORES = (pa.float32(), pa.float64(), pa.float64(), pa.int32())
_CODECS = ("none", "none", "snappy", "snappy", "snappy", "zstd", "gzip", "lz4", "brotli")
# errors of pyarrow and the operating system for damaged files
_REFUSED = (
    pa.ArrowException,
    OSError,
    UnicodeDecodeError,
    IndexError,
    OverflowError,
    ValueError,
    MemoryError,
)


# ---- undamaged files ----


def table_of(rng: Random) -> pa.Table:
    """Draw a table like those of users: few or many queries, grouped or not, with more columns."""
    n_queries, numbers = rng.choice((1, 3, 12)), np.random.default_rng(rng.randrange(1 << 30))
    queries = np.repeat(np.arange(n_queries), numbers.integers(1, 24, n_queries))
    if rng.random() < 0.2:
        queries = numbers.permutation(queries)
    n, kind = len(queries), rng.choice(_IDS)
    ids = pa.array(queries) if pa.types.is_integer(kind) else pa.array([f"q{q}" for q in queries])
    docs = pa.array([f"document-{i}" for i in range(n)])
    languages = pa.array([(None, "de", "en")[q % 3] for q in queries], pa.string())
    grades = numbers.integers(0, rng.choice((2, 5)), n) * (numbers.random(n) < 0.5)
    scores = np.round(numbers.standard_normal(n), rng.choice((0, 1, 8)))
    columns = {
        "qid": ids.cast(kind),
        "docid": docs.cast(rng.choice((pa.string(), pa.large_string(), pa.string_view(), pa.binary()))),
        "label": pa.array(grades).cast(rng.choice(_GRADES)),
        "score": pa.array(scores).cast(rng.choice(_SCORES), safe=False),
        "lang": languages.dictionary_encode() if rng.random() < 0.3 else languages,
    }
    if rng.random() < 0.05:
        name = rng.choice(("qid", "label", "score"))
        columns[name] = pa.array([*columns[name].to_pylist()[:-1], None], columns[name].type)
    if rng.random() < 0.2:
        inner = pa.array([[{"score": 1.0}] * (i % 3) for i in range(n)])
        columns |= {"parts": inner, "label.b": pa.array(np.arange(n))}
    table = pa.table(columns)
    return _as_lists(table) if rng.random() < 0.15 else table


def _as_lists(table: pa.Table) -> pa.Table:
    """A row for each query, with lists."""
    lists = table.cast(
        pa.schema(
            [
                pa.field(name, pa.string() if name in ("qid", "docid", "lang") else kind)
                for name, kind in zip(table.schema.names, table.schema.types, strict=True)
            ]
        )
    )
    lists = lists.select(["qid", "docid", "label", "score", "lang"]).to_pylist()
    by_query: dict[Any, list[dict[str, Any]]] = {}
    for row in lists:
        by_query.setdefault(row["qid"], []).append(row)
    return pa.table(
        {
            "qid": [str(query) for query in by_query],
            "docid": [[row["docid"] for row in rows] for rows in by_query.values()],
            "label": pa.array([[row["label"] for row in rows] for rows in by_query.values()], pa.list_(table["label"].type)),
            "score": pa.array([[row["score"] for row in rows] for rows in by_query.values()], pa.list_(table["score"].type)),
            "lang": [rows[0]["lang"] for rows in by_query.values()],
        }
    )  # fmt: skip


def file_of(rng: Random, table: pa.Table) -> bytes:
    """A table as one of many writers would write it."""
    if rng.random() < 0.3:
        fields = [field.with_nullable(table[field.name].null_count > 0) for field in table.schema]
        table = table.cast(pa.schema(fields))
    options: dict[str, Any] = {
        "compression": rng.choice(_CODECS),
        "version": rng.choice(("1.0", "2.4", "2.6", "2.6")),
        "data_page_version": rng.choice(("1.0", "2.0")),
        "data_page_size": rng.choice((16, 200, 1 << 20)),
        "row_group_size": rng.choice((7, 50, 1 << 20)),
        "write_batch_size": rng.choice((8, 1024)),
        "write_page_checksum": rng.random() < 0.25,
        "write_statistics": rng.random() < 0.6,
        "write_page_index": rng.random() < 0.2,
        "store_schema": rng.random() < 0.8,
        "dictionary_pagesize_limit": rng.choice((1 << 20, 1 << 20, 30)),
    }
    if rng.random() < 0.4:
        options["use_dictionary"] = False
        if rng.random() < 0.6:
            options["column_encoding"] = dict(_encodings(rng, table))
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def _encodings(rng: Random, table: pa.Table) -> list[tuple[str, str]]:
    found = []
    for field in table.schema:
        kind = field.type
        if pa.types.is_dictionary(kind) or pa.types.is_nested(kind):
            continue
        if pa.types.is_integer(kind):
            names = ("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
        elif pa.types.is_floating(kind):
            names = ("PLAIN", "BYTE_STREAM_SPLIT")
        elif pa.types.is_boolean(kind):
            names = ("PLAIN", "RLE")
        elif pa.types.is_decimal(kind) or pa.types.is_null(kind):
            names = ("PLAIN",)
        else:
            names = ("PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")
        found.append((field.name, rng.choice(names)))
    return found


def footer_at(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def write_damaged(rng: Random, table: pa.Table) -> bytes:
    data = file_of(rng, table)
    footer = footer_at(data)
    place = rng.random()
    if place < 0.02:
        return data
    if place < 0.45:  # a footer, whose length is set right again
        changed = mutate(data[footer:-8], rng)
        return data[:footer] + changed + len(changed).to_bytes(4, "little") + data[-4:]
    if place < 0.75:  # headers of pages and what comes after them
        metadata = pq.read_metadata(io.BytesIO(data))
        group = metadata.row_group(rng.randrange(metadata.num_row_groups))
        chunk = group.column(rng.randrange(group.num_columns))
        start = chunk.data_page_offset
        if chunk.has_dictionary_page and rng.random() < 0.5:
            start = chunk.dictionary_page_offset
        return mutate(data, rng, start, start + rng.choice((8, 24, 60)))
    return mutate(data, rng, 4, footer) if place < 0.9 else mutate(data, rng)


# ---- readers ----


def _by_pyarrow(path: Path, names: list[str]) -> pa.Table | None:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            found = [name for name in names if name in file.schema_arrow.names]
            return file.read(columns=found, use_threads=False)
    except _REFUSED:
        return None


def _lists_of(rankings: fn.Rankings) -> list[tuple[Any, ...]]:
    """Return each query with its bytes, so that equality is bit by bit."""
    found = []
    docs = None if rankings.doc_ids is None else _as_bytes(rankings.doc_ids).to_pylist()
    queries = pa.table(
        [_as_bytes(column) for column in rankings.queries.columns], rankings.queries.schema.names
    )
    queries = queries.to_pylist()
    for query, start, end in zip(queries, rankings.offsets[:-1], rankings.offsets[1:], strict=True):
        grades, scores = rankings.relevance[start:end], rankings.scores[start:end]
        found.append(
            (str(query), str(grades.dtype), grades.tobytes(), str(scores.dtype), scores.tobytes(), docs and docs[start:end])
        )  # fmt: skip
    return found


def _as_bytes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with texts as bytes, since damaged texts may not be UTF-8."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return column.cast(pa.large_binary()) if is_text else column


def _try(read: Callable[[], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]] | str | None:
    """Return what a reader returns, None if it refuses the file, or a text for any other error."""
    try:
        return read()
    except fn.FastndcgError:
        return None
    except Exception as error:  # noqa: BLE001 - it is what we look for
        return f"{type(error).__name__}: {error}"


def _compare(reader: str, found: Any, wanted: list[tuple[Any, ...]] | None) -> str | None:
    if found is None or found == wanted:
        return None
    if isinstance(found, str):
        return f"{reader} raises {found}"
    return f"{reader} reads what is refused" if wanted is None else f"{reader} reads something else"


_OPTIONS = {
    "query": "qid", "relevance": "label", "score": "score", "doc_id": "docid", "keep": "lang",
}  # fmt: skip


def judge(path: Path, options: Mapping[str, str] = _OPTIONS) -> str | None:
    """Compare `read_parquet` and `scan_parquet` with pyarrow."""
    table = _by_pyarrow(path, [*options.values()])
    wanted = None
    if table is not None:
        answer = _try(lambda: _lists_of(fn.Rankings.from_arrow(table, **options)))
        wanted = None if isinstance(answer, str) else answer
    found = _try(lambda: _lists_of(fn.read_parquet(path, **options, threads=1)))
    if complaint := _compare("read_parquet", found, wanted):
        return complaint
    streamed = _try(lambda: _read_stream(path, options))
    if complaint := _compare("scan_parquet", streamed, wanted and sorted(wanted)):
        return complaint
    if (found is None) != (streamed is None):
        return "read_parquet and scan_parquet do not both refuse"
    return None


def _read_stream(path: Path, options: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    stream = fn.scan_parquet(path, **options, threads=1)
    return sorted(query for part in stream for query in _lists_of(part))


_JUDGED = pa.table(
    {"qid": ["q0", "q1", "q2"], "docid": ["document-0", "document-1", "document-2"], "label": [1, 0, 2]}
)


def judge_run(path: Path) -> str | None:
    """Compare what `read_qrels_run` reads with the table that pyarrow reads."""
    table, wanted = _by_pyarrow(path, ["qid", "docid", "score"]), None
    if table is not None:
        wanted = _try(lambda: _lists_of(fn.Rankings.from_qrels_run(_JUDGED, table)))
        wanted = None if isinstance(wanted, str) else wanted
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(_JUDGED, f"{folder}/qrels.parquet")
        found = _try(lambda: _lists_of(fn.read_qrels_run(f"{folder}/qrels.parquet", path, doc_id="docid")))
    return _compare("read_qrels_run", found, wanted)


def judge_scores(path: Path) -> str | None:
    """Compare what `read_ltr` takes for scores with the column that pyarrow reads."""
    table, wanted = _by_pyarrow(path, ["score"]), None
    rows = 10 if table is None else len(table)
    with tempfile.TemporaryDirectory() as folder:
        features = Path(folder) / "features.txt"
        features.write_text("".join(f"{i % 3} qid:{i // 7} 1:2\n" for i in range(rows)) or "\n", "utf-8")
        if table is not None and table.num_columns:
            column = table["score"].to_numpy()
            wanted = _try(lambda: _lists_of(fn.read_ltr(features, scores=column)))
            wanted = None if isinstance(wanted, str) else wanted
        found = _try(lambda: _lists_of(fn.read_ltr(features, scores=path, score_column="score")))
    return _compare("read_ltr", found, wanted)


def _mutant(rng: Random) -> bytes:
    return write_damaged(rng, table_of(rng))


def _run_mutant(rng: Random) -> bytes:
    n = rng.choice((3, 40))
    table = pa.table(
        {
            "qid": [f"q{i // 7}" for i in range(n)],
            "docid": [f"document-{i % 9}" for i in range(n)],
            "score": np.random.default_rng(n).standard_normal(n),
        }
    )
    return write_damaged(rng, table)


_READERS = "fastndcg.sources.parquet:read_footer", "fastndcg.sources.parquet:_finish"
TARGETS = (
    Target("parquet", _mutant, judge, ".parquet", _READERS),
    Target("parquet_run", _run_mutant, judge_run, ".parquet", _READERS),
    Target(
        "parquet_scores", _run_mutant, judge_scores, ".parquet", ("fastndcg.sources.ltr:_parquet_scores",)
    ),
)
