"""Damage files of every format: a reader agrees with a reference, or raises an error of ours.

    python -m scripts.fuzz                                   1,000 mutants for each target
    python -m scripts.fuzz --target parquet --mutants 100000 --seed 7
    python -m scripts.fuzz --replay fuzz-failures/parquet-7-1234.parquet
    python -m scripts.fuzz --kernels compiled                kernels as users run them, and not as plain Python

A mutant is defined by target, seed and number. A child process with limited memory and time reads mutants, so that
crashes are found. Mutants that fail are written to a folder, and `--replay` reads one of them again. A run of a target
that reads no mutant fails too: a fuzzer that damages too much tests nothing.

To add a target, add a `Target` to `TARGETS`. `mutate` damages bytes of any format.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import io
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq

import fastndcg as fn
from fastndcg.sources.inputs import open_tables, scan_if_large
from fastndcg.sources.text_lines import INTENTS, RUN, read_lines
from fastndcg.tables.roles import Roles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent

_MEMORY = 2 << 30  # bytes that a child may allocate in addition to what it has after its imports
_SECONDS = 30  # processor time for one mutant; the limit of wall time is ten times as long
_FIRST_SECONDS = 300  # for the first mutant of a child, which may have to compile
_EDGES = (0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 129, 254, 255)
READ, REFUSED = "read", "refused"  # what judges say of mutants that are not failures


class Target(NamedTuple):
    """A reader, or several of one format."""

    name: str  # no hyphen
    mutant: Callable[[Random], bytes]
    judge: Callable[[Path], str]  # READ, REFUSED, or what is wrong with how a file is read
    ending: str  # of file names


class Failure(NamedTuple):
    target: str
    number: int
    complaint: str
    path: Path


class Found(NamedTuple):
    """What a run of a target found."""

    counts: Counter[str]  # of READ, REFUSED and "failed"
    failures: list[Failure]


# ---- damage ----


def mutate(data: bytes, rng: Random, first: int = 0, last: int | None = None) -> bytes:
    """Return the bytes with one to four changes, each beginning between `first` and `last`."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        end = len(out) if last is None else min(last, len(out))
        if end <= first:
            break
        at, n = rng.randrange(first, end), rng.choice((1, 1, 2, 4, 8, 64))
        other = rng.randrange(len(out))
        match rng.choice(("flip", "flip", "flip", "set", "set", "cut", "end", "insert", "copy", "splice")):
            case "flip":
                out[at] ^= 1 << rng.randrange(8)
            case "set":
                out[at : at + min(n, 4)] = bytes(rng.choice(_EDGES) for _ in out[at : at + min(n, 4)])
            case "cut":
                del out[at : at + n]
            case "end":
                del out[at:]
            case "insert":
                out[at:at] = bytes(rng.choice(_EDGES) for _ in range(n))
            case "copy":
                part = out[other : other + n]
                out[at : at + len(part)] = part
            case "splice":
                out[at:at] = out[other : other + 4 * n]
    return bytes(out)


# ---- files ----

_ID_TYPES = (
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


def table_of(rng: Random) -> pa.Table:
    """Draw a table like those of users: few or many queries, grouped or not, with more columns."""
    n_queries, numbers = rng.choice((1, 3, 12)), np.random.default_rng(rng.randrange(1 << 30))
    queries = np.repeat(np.arange(n_queries), numbers.integers(1, 24, n_queries))
    if rng.random() < 0.2:
        queries = numbers.permutation(queries)
    n, kind = len(queries), rng.choice(_ID_TYPES)
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
    table = table.select(["qid", "docid", "label", "score"])
    plain = table.set_column(0, "qid", table["qid"].cast(pa.string())).set_column(
        1, "docid", table["docid"].cast(pa.string())
    )
    queries: dict[str | None, list[int]] = {}
    for row, query in enumerate(plain["qid"].to_pylist()):
        queries.setdefault(query, []).append(row)
    lists = {
        name: pa.array(
            [plain[name].take(rows).to_pylist() for rows in queries.values()], pa.list_(plain[name].type)
        )
        for name in ("docid", "label", "score")
    }
    return pa.table({"qid": pa.array(queries, pa.string()), **lists})


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
            flat = [
                field
                for field in table.schema
                if field.type.num_fields == 0 and not pa.types.is_dictionary(field.type)
            ]
            options["column_encoding"] = {field.name: _encoding(rng, field.type) for field in flat}
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def _encoding(rng: Random, kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return rng.choice(("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"))
    if pa.types.is_floating(kind):
        return rng.choice(("PLAIN", "BYTE_STREAM_SPLIT"))
    is_text = kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary())
    return rng.choice(("PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")) if is_text else "PLAIN"


def footer_at(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def _parquet(rng: Random) -> bytes:
    data = file_of(rng, table_of(rng))
    footer, place = footer_at(data), rng.random()
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


# values on which readers may take different paths
_NUMBERS = (
    "1", "2", "0", "-1", "3.5", "0.25", "1e3", "-2.5E-3", "+.5", "5.", "1e400", "-1e400", "1e-400", "nan", "NaN", "-inf", "Infinity",
    "9007199254740993", "123456789012345678901234567890", "0.1000000000000000055511151231257827", "1_0", "0x10", "1e", ".", "-", "1d5",
    "\u0661", "1\u00a0", "1e0000000005", "true", "NULL", "4.9406564584124654e-324", "1.7976931348623159e308", "infinit", "1e5000000000",
)  # fmt: skip
_IDS = (
    "d1",
    "d2",
    "a" * 70,
    "caf\u00e9",
    "\u00a0",
    "\u3000x",
    "\x7f",
    "#x",
    "7",
    "007",
    "x\u0085y",
    "d\u2028",
)
_BLANKS = (" ", " ", " ", "\t", "  ", " \t", "\x01", "\x00", "\x0b", "\x1c ", "\u00a0")
_ENDS = ("\n", "\n", "\n", "\r\n", " \n", "\n\n", "\r", "\n# c\n", "\x1a\n")


def _number(rng: Random) -> str:
    return (
        rng.choice(_NUMBERS)
        if rng.random() < 0.1
        else f"{rng.randrange(-20, 300) / rng.choice((1, 7, 100))!r}"
    )


def _id(rng: Random) -> str:
    return rng.choice(_IDS) if rng.random() < 0.1 else f"doc-{rng.randrange(10**6)}"


def _lines(rng: Random, fields: Callable[[int], list[str]]) -> bytes:
    """Join fields to lines, most of them with the same blanks and line ends, and damage most of the files."""
    n, blank, end = rng.choice((1, 3, 30, 500)), rng.choice(_BLANKS), rng.choice(_ENDS)
    rows = []
    for row in range(n):
        here = rng.choice(_BLANKS) if rng.random() < 0.02 else blank
        rows.append(here.join(fields(row)) + (rng.choice(_ENDS) if rng.random() < 0.02 else end))
    data = "".join(rows).encode()
    data = rng.choice((b"", b"", b"", _BOM)) + data[: -1 if rng.random() < 0.2 else None]
    return data if rng.random() < 0.2 else mutate(data, rng)


def _run(rng: Random) -> bytes:
    return _lines(
        rng,
        lambda row: [
            str(row // 7),
            "Q0",
            _id(rng),
            str(row % 7),
            _number(rng),
            rng.choice(("t", "t", "my run")),
        ],
    )


def _qrels(rng: Random) -> bytes:
    return _lines(
        rng, lambda row: [str(row // 7), str(row % 3), _id(rng), rng.choice(("0", "1", "-1", _number(rng)))]
    )


def _features(rng: Random) -> bytes:
    def fields(row: int) -> list[str]:
        qid = [] if rng.random() < 0.01 else [f"qid:{row // 5 if rng.random() < 0.95 else _id(rng)}"]
        return [_number(rng) if rng.random() < 0.05 else str(row % 4), *qid, "1:0.5", "2:NULL", "# c"]

    return _lines(rng, fields)


def _npy(rng: Random) -> bytes:
    out = io.BytesIO()
    kind = rng.choice(("f4", "f8", ">f8", "i8", "u1", "f2", "?"))
    array = (np.arange(10) * rng.choice((1, 1, 3))).astype(kind)
    np.lib.format.write_array(out, array, rng.choice(((1, 0), (2, 0))))
    data = out.getvalue()
    return mutate(data, rng, 6, 130) if rng.random() < 0.8 else mutate(data, rng, 6)


def _csv(rng: Random) -> bytes:
    delimiter, end = rng.choice(",,\t;"), rng.choice(("\n", "\n", "\r\n", "\r"))

    def quoted(text: str) -> str:
        return f'"{text}"' if rng.random() < 0.1 else text

    def row(number: int) -> list[str]:
        grade = _number(rng) if rng.random() < 0.03 else str(number % 3)
        score = _number(rng) if rng.random() < 0.05 else f"{rng.random():.6f}"
        return [
            f"q{number // 5}",
            grade,
            score,
            quoted(_id(rng)),
            quoted(rng.choice(("", "a, b", 'say ""x""', "two\nlines"))),
        ]

    header = ["qid", "label", "score", rng.choice(("docid", '"doc, id"', "x" * 200)), "note"]
    rows = [header, *(row(number) for number in range(rng.choice((1, 3, 40))))]
    data = (rng.choice(("", "", "\ufeff")) + end.join(delimiter.join(each) for each in rows) + end).encode()
    return data if rng.random() < 0.2 else mutate(data, rng)


_TEXTS = (
    "q1",
    "",
    "caf\u00e9",
    "\u2028",
    "\x1b[31m",
    "a\nb",
    "=1+1",
    "\u202e",
    "x" * 90,
    "\ud7ff",
    "None",
    "1",
    "2024-01-01",
)


def _rows(rng: Random) -> list[dict[str, Any]]:
    def row(number: int) -> dict[str, Any]:
        qid = rng.choice(_TEXTS) if rng.random() < 0.05 else f"q{number // 4}"
        return {
            "qid": qid,
            "label": number % 3,
            "score": rng.randrange(-99, 99) / 8,
            "note": rng.choice(_TEXTS),
        }

    return [row(number) for number in range(rng.choice((1, 5, 40)))]


def _json(rng: Random) -> bytes:
    rows = _rows(rng)
    if rng.random() < 0.3:
        data = json.dumps(rows, indent=rng.choice((None, 1))).encode()
    else:
        data = "".join(json.dumps(row, ensure_ascii=rng.random() < 0.5) + "\n" for row in rows).encode()
    return data if rng.random() < 0.2 else mutate(data, rng)


def _feather(rng: Random) -> bytes:
    table, out = table_of(rng), io.BytesIO()
    if rng.random() < 0.3:
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=rng.choice((3, 1000)))
    else:
        pf.write_feather(table, out, compression=rng.choice(("uncompressed", "lz4", "zstd")))
    data = out.getvalue()
    return data if rng.random() < 0.2 else mutate(data, rng)


def _packed(rng: Random) -> bytes:
    inner, pack = _feather(rng), rng.choice((gzip.compress, bz2.compress))
    cut = rng.randrange(len(inner) + 1) if rng.random() < 0.3 else 0
    data = pack(inner[:cut]) + pack(inner[cut:]) if cut else pack(inner)  # of two members
    return data if rng.random() < 0.5 else mutate(data, rng)


# ---- readers ----

# errors of pyarrow and the operating system for damaged files
_ERRORS = (
    pa.ArrowException,
    OSError,
    EOFError,
    ValueError,
    LookupError,
    ArithmeticError,
    MemoryError,
    csv.Error,
    zlib.error,
    RecursionError,
)
_OPTIONS = {"query": "qid", "relevance": "label", "score": "score"}
_PACKED = {b"\x1f\x8b": gzip.decompress, b"BZh": bz2.decompress}


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


def attempt(read: Callable[[], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]] | str | None:
    """Return what a reader returns, None if it refuses the file, or a text for any other error."""
    try:
        return read()
    except fn.FastndcgError:
        return None
    except Exception as error:  # noqa: BLE001 - it is what we look for
        return f"{type(error).__name__}: {error}"


def _same(found: Any, wanted: Any) -> str:
    """What to say of a reader that must accept exactly what the reference accepts."""
    if isinstance(found, str):
        return f"raises {found}"
    if (found is None) != (wanted is None):
        return "refuses what it should read" if found is None else "reads what it should refuse"
    if found != wanted:
        return "reads something else"
    return REFUSED if found is None else READ


def judge_table(path: Path, reference: Callable[[Path], Any], *, is_strict: bool = False) -> str:
    """Compare a table that is read whole with the same in parts, and with a reference where that reads it.

    With `is_strict`, what the reference refuses must be refused, and whole and in parts alike.
    """
    roles = Roles(**_OPTIONS)

    def stream() -> list[tuple[Any, ...]]:
        chosen = open_tables([path], 1).choose(roles)
        parts = scan_if_large(chosen, 1, -1, 1 << 20) or [chosen.read()]
        return sorted((query for part in parts for query in _lists_of(part)), key=repr)

    whole, parts = attempt(lambda: _lists_of(open_tables([path], 1).choose(roles).read())), attempt(stream)
    for way, found in (("whole", whole), ("in parts", parts)):
        if isinstance(found, str):
            return f"raises {found} when read {way}"
    if (whole is None or parts is None) and (whole is not parts) and is_strict:
        return "is refused whole or in parts, and not both"
    if whole is not None and parts is not None and sorted(whole, key=repr) != parts:
        return "reads something else in parts"
    try:
        table = reference(path)
    except _ERRORS:
        table = None
    wanted = None if table is None else attempt(lambda: _lists_of(fn.Rankings.from_arrow(table, **_OPTIONS)))
    if whole is None:
        return REFUSED
    if isinstance(wanted, list) and wanted != whole:
        return "reads something else than the reference"
    return "reads what is refused" if is_strict and not isinstance(wanted, list) else READ


def _by_pyarrow(path: Path) -> pa.Table:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        return file.read(columns=[*_OPTIONS.values()], use_threads=False)


def judge_parquet(path: Path) -> str:
    return judge_table(path, _by_pyarrow, is_strict=True)


def _by_arrow(path: Path) -> pa.Table:
    """The table in a file or stream of Arrow, where what is needed of it is valid."""
    data = path.read_bytes()
    opened = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
    schema = opened(data).schema
    places = [schema.get_field_index(name) for name in _OPTIONS.values()]
    table = opened(data, options=pa.ipc.IpcReadOptions(included_fields=places)).read_all()
    table.validate(full=True)
    return table.select([*_OPTIONS.values()])


def _by_json(path: Path) -> pa.Table | None:
    """Rows of texts and numbers, by Python."""
    text = path.read_bytes().decode("utf-8-sig")
    is_list = text.lstrip().startswith("[")
    rows = json.loads(text) if is_list else [json.loads(line) for line in text.splitlines() if line]
    kinds = {"qid": str, "label": int, "score": float}
    is_plain = all(
        isinstance(row, dict)
        and all(type(row.get(name)) is kind for name, kind in kinds.items())
        and math.isfinite(row["score"])
        and abs(row["label"]) < 2**53
        for row in rows
    )
    return pa.table({name: [row[name] for row in rows] for name in kinds}) if is_plain and rows else None


def _by_csv(path: Path) -> pa.Table | None:
    """Complete rows, by Python."""
    text = path.read_bytes().decode("utf-8-sig")
    first = re.split(r"[\r\n]", text, maxsplit=1)[0]
    delimiter = max(",\t;", key=first.count)
    rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    ids = [row["qid"] for row in rows]
    if (
        not ids
        or any(None in row or None in row.values() for row in rows)
        or not all(re.match("q", qid) for qid in ids)
    ):
        return None
    columns: dict[str, Any] = {"qid": ids}
    for name in ("label", "score"):
        texts = [row[name] for row in rows]
        if not all(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?", text) for text in texts):
            return None
        is_whole = all(re.fullmatch("-?[0-9]+", text) for text in texts)
        columns[name] = pa.array([int(text) if is_whole else float(text) for text in texts])
    return pa.table(columns)


def judge_packed(path: Path) -> str:
    """A packed file is read as the same file unpacked, or refused."""

    def unpacked(path: Path) -> pa.Table | None:
        data = path.read_bytes()
        unpack = next((each for magic, each in _PACKED.items() if data.startswith(magic)), None)
        if unpack is None:
            return None
        inner = path.with_name("inner")
        inner.write_bytes(unpack(data))
        return _by_arrow(inner)

    return judge_table(path, unpacked)


# ---- lines ----

_BOM = b"\xef\xbb\xbf"


def _fields_of(data: bytes) -> list[list[bytes]]:
    found = [re.findall(rb"[^\x00-\x20]+", line) for line in data.removeprefix(_BOM).split(b"\n")]
    return [fields for fields in found if fields and not fields[0].startswith(b"#")]


def _bits(text: bytes) -> bytes:
    if b"_" in text:
        raise ValueError
    return np.float64(float(text) + 0.0).tobytes()


def _bytes(scalar: Any) -> bytes:
    value = scalar.as_py()
    return value if isinstance(value, bytes) else value.encode()  # type: ignore[no-any-return]


def judge_lines(path: Path, kind: Any) -> str:
    """Compare queries, documents and numbers with a parser of three lines, which accepts the same files."""
    data = path.read_bytes()
    if data.startswith((*_PACKED, b"\x28\xb5\x2f\xfd")):
        return REFUSED
    wanted: list[tuple[Any, ...]] | None = []
    try:
        for line in _fields_of(data):
            if kind is None:
                is_query = len(line) > 1 and line[1].startswith(b"qid:")
                if line[1:2] == [b"qid:"]:
                    raise ValueError
                wanted.append((_bits(line[0]), line[1][4:] if is_query else b""))
            elif len(line) < 6 if kind is RUN else len(line) != 4:
                raise ValueError
            else:
                wanted.append((_bits(line[4 if kind is RUN else 3]), line[0], line[2]))
    except ValueError:
        wanted = None

    def read() -> list[tuple[Any, ...]]:
        lines = read_lines(str(path), kind, threads=1)
        ids = [[_bytes(lines.queries[int(code)]) for code in lines.query_codes]]
        ids += [] if kind is None else [[_bytes(doc) for doc in lines.docs]]
        return list(zip([_bits(repr(float(value)).encode()) for value in lines.values], *ids, strict=True))

    found = attempt(read)
    said = _same(found or None, wanted or None)  # of a file without rows each reader decides
    if said not in (READ, REFUSED):
        return said
    complaint = judge_features(path, len(wanted or [])) if kind is None else judge_pair(path, kind is RUN)
    return complaint or said


def judge_features(path: Path, rows: int) -> str | None:
    found = attempt(lambda: _lists_of(fn.read_ltr(path, scores=np.arange(rows) / 7)))
    return f"read_ltr raises {found}" if isinstance(found, str) else None


def judge_pair(path: Path, is_run: bool) -> str | None:
    """Read it with a second file, and compare with pytrec_eval if both files are plain text."""
    other, data = path.with_name("other.txt"), path.read_bytes()
    other.write_text("1 0 doc-1 1\n2 0 doc-2 2\n" if is_run else "1 Q0 doc-1 1 2.5 t\n2 Q0 doc-2 1 1.5 t\n")
    pair = (other, path) if is_run else (path, other)
    found = attempt(lambda: _lists_of(fn.read_trec(*pair)))
    if isinstance(found, str):
        return f"read_trec raises {found}"
    is_plain = (
        data.isascii() and not re.search(rb"[\x00-\x08\x0b-\x1f\x7f#_]", data) and b"nan" not in data.lower()
    )
    if not is_plain or find_spec("pytrec_eval") is None:
        return None
    import pytrec_eval

    lines = [[line for line in file.read_text().split("\n") if line.strip()] for file in pair]
    try:
        qrels, run = pytrec_eval.parse_qrel(lines[0]), pytrec_eval.parse_run(lines[1])
    except (AssertionError, ValueError, OverflowError):
        return None
    if not qrels or not run:  # empty files
        return None
    said = _same(found, attempt(lambda: _lists_of(fn.Rankings.from_qrels_run(qrels, run))))
    return None if said in (READ, REFUSED) else f"read_trec beside pytrec_eval {said}"


def judge_npy(path: Path) -> str:
    """An array is read if NumPy reads it and it has a number for each row, and with the same values."""
    rows = path.with_name("rows.txt")
    rows.write_text("".join(f"{i % 3} qid:{i // 4} 1:1\n" for i in range(10)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            array = np.load(path, allow_pickle=False)
        except Exception:  # noqa: BLE001 - a damaged header may raise whatever Python's parser does
            array = None
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "buif":
        array = None
    wanted = None if array is None else attempt(lambda: _lists_of(fn.read_ltr(rows, scores=array)))
    return _same(attempt(lambda: _lists_of(fn.read_ltr(rows, scores=path))), wanted)


TARGETS = {
    target.name: target
    for target in (
        Target("parquet", _parquet, judge_parquet, ".parquet"),
        Target("feather", _feather, lambda path: judge_table(path, _by_arrow, is_strict=True), ".feather"),
        Target("csv", _csv, lambda path: judge_table(path, _by_csv), ".csv"),
        Target("json", _json, lambda path: judge_table(path, _by_json), ".jsonl"),
        Target("packed", _packed, judge_packed, ".packed"),
        Target("trec_run", _run, lambda path: judge_lines(path, RUN), ".run"),
        Target("trec_qrels", _qrels, lambda path: judge_lines(path, INTENTS), ".qrels"),
        Target("letor", _features, lambda path: judge_lines(path, None), ".txt"),
        Target("npy", _npy, judge_npy, ".npy"),
    )
}


# ---- children ----


def mutant_of(target: Target, seed: int, number: int) -> bytes:
    return target.mutant(Random(f"{target.name}/{seed}/{number}"))


def limit_memory(more: int) -> None:
    """Limit the memory that this process may allocate in addition to what it has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def judge_all(target: Target, numbers: range, seed: int) -> None:
    """Read mutants in a child, and print a line before and after each. A slow mutant ends the process."""
    with tempfile.TemporaryDirectory(prefix="fastndcg-fuzz-") as folder:
        path = Path(folder) / f"mutant{target.ending}"
        for number in numbers:
            path.write_bytes(mutant_of(target, seed, number))
            print(json.dumps([number]), flush=True)
            seconds = _SECONDS if number > numbers.start else _FIRST_SECONDS
            signal.setitimer(signal.ITIMER_PROF, seconds)
            signal.alarm(10 * seconds)
            said = target.judge(path)
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            print(json.dumps([number, said]), flush=True)


def _ending(code: int) -> str:
    if code in (-signal.SIGPROF, -signal.SIGALRM):
        return f"took more than {_SECONDS} s"
    return f"the process ended with {signal.Signals(-code).name if code < 0 else code}"


def in_children(
    target: Target, numbers: range, seed: int, seconds: float, kernels: str
) -> Iterator[tuple[int, str]]:
    """Yield the number of each mutant and what its judge says, until time is over and one was read. After a child
    that dies, start another.
    """
    first, until, was_read = numbers.start, time.monotonic() + seconds, False
    # plain kernels find each index that is out of bounds
    plain = {"FASTNDCG_KERNELS": kernels, "NUMBA_DISABLE_JIT": str(int(kernels == "plain"))}
    while first < numbers.stop:
        arguments = ["--child", target.name, str(first), str(numbers.stop), str(seed)]
        with subprocess.Popen(
            # warnings would fill the pipe, which is read once the child has ended
            [sys.executable, "-W", "ignore", "-m", "scripts.fuzz", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **plain},
        ) as child:
            begun = None
            for line in child.stdout or ():
                number, *judged = json.loads(line)
                begun = number
                if judged:
                    begun, first, was_read = None, number + 1, was_read or judged == [READ]
                    yield number, *judged
                    if time.monotonic() >= until and was_read:
                        child.kill()
                        return
            said = child.stderr.read().strip() if child.stderr else ""
        if child.returncode and begun is None:
            raise SystemExit(f"{target.name}: a child ended with {child.returncode}:\n{said}")
        if begun is not None:
            yield begun, f"{_ending(child.returncode)}: {' '.join(said.splitlines()[-1:])}"
            first = begun + 1


# ---- command ----


def fuzz(
    target: Target, numbers: range, seed: int, folder: Path, seconds: float = 1e9, kernels: str = "plain"
) -> Found:
    """Read mutants until the time is over, or there are no more."""
    counts, failures = Counter[str](), []
    for number, said in in_children(target, numbers, seed, seconds, kernels):
        counts[said if said in (READ, REFUSED) else "failed"] += 1
        if said not in (READ, REFUSED):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{target.name}-{seed}-{number}{target.ending}"
            path.write_bytes(mutant_of(target, seed, number))
            failures.append(Failure(target.name, number, said, path))
    return Found(counts, failures)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="default: all")
    parser.add_argument("--mutants", type=int, default=1000, help="for each target")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="for each target, or more until a mutant is read"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-failures"), help="folder for mutants that fail"
    )
    parser.add_argument(
        "--replay", type=Path, help="judge a file that failed; its name begins with its target"
    )
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--kernels", choices=("plain", "compiled", "auto"), default="plain")
    given = parser.parse_args(arguments)
    if given.replay is not None:
        said = TARGETS[given.replay.name.partition("-")[0]].judge(given.replay)
        print(said)
        return int(said not in (READ, REFUSED))
    if given.child is not None:
        name, first, last, seed = given.child
        limit_memory(_MEMORY)
        judge_all(TARGETS[name], range(int(first), int(last)), int(seed))
        return 0
    failed = 0
    for name in given.target or TARGETS:
        numbers = range(given.first, given.first + given.mutants)
        found = fuzz(TARGETS[name], numbers, given.seed, given.keep, given.seconds, given.kernels)
        counts = ", ".join(f"{found.counts[each]:,} {each}" for each in (READ, REFUSED, "failed"))
        print(f"{name}: mutants of seed {given.seed}: {counts}", flush=True)
        for failure in found.failures:
            print(f"  {failure.path}: {failure.complaint}")
        failed += len(found.failures) + (not found.counts[READ])
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
