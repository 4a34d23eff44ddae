"""Damage files of every format: a reader returns what another parser returns, or raises an error of ours.

    python -m scripts.fuzz                                   1,000 mutants of each format
    python -m scripts.fuzz --format parquet --mutants 100000 --seed 7
    python -m scripts.fuzz --replay fuzz-failures/parquet-7-1234.parquet
    python -m scripts.fuzz --kernels compiled                kernels as users run them, and not as plain Python

A mutant is defined by format, seed and number. A child process with limited memory and time reads mutants, so that
crashes are found. Mutants that fail are kept in a folder, and `--replay` reads one of them again. A run of a format
that reads no mutant fails too: a fuzzer that damages too much tests nothing. A format is a row of `FORMATS`.
"""

from __future__ import annotations

import argparse
import csv
import faulthandler
import io
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq

import fastndcg as fn
from fastndcg.sources.inputs import open_tables, scan_if_large
from fastndcg.sources.text_lines import INTENTS, LETOR_LINE, RUN, read_lines
from fastndcg.tables.roles import Roles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
READ, REFUSED = "read", "refused"  # verdicts that are not failures
ROLES = {"query": "qid", "relevance": "label", "score": "score"}
# errors of other parsers for damaged files
ERRORS = (
    pa.ArrowException,
    OSError,
    ValueError,
    LookupError,
    ArithmeticError,
    MemoryError,
    csv.Error,
    RecursionError,
)

_MEMORY = 2 << 30  # bytes that a child may allocate in addition to what it has after its imports
_SECONDS = 30  # processor time for one mutant; the limit of wall-clock time is ten times as long
_FIRST_SECONDS = 300  # for the first mutant of a child, which may have to compile
_EDGES = (0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 129, 254, 255)

Rows = list[tuple[Any, ...]]


class Format(NamedTuple):
    """How files of a format are written and read. A reference raises one of `ERRORS` for what it refuses."""

    name: str  # no hyphen
    ending: str
    write: Callable[[Random], bytes]
    readers: tuple[Callable[[Path], Rows], ...]  # of ours, which must agree
    reference: Callable[[Path], Rows | None]  # None: it cannot tell
    may_read_more: bool = False  # than the reference
    may_refuse_more: bool = False
    damage: Callable[[bytes, Random], bytes] | None = None  # default: `mutate`


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


def footer_at(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def mutate_parquet(data: bytes, rng: Random) -> bytes:
    footer, place = footer_at(data), rng.random()
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


def mutant_of(form: Format, seed: int, number: int) -> bytes:
    rng = Random(f"{form.name}/{seed}/{number}")
    data = form.write(rng)
    return data if rng.random() < 0.15 else (form.damage or mutate)(data, rng)


# ---- tables as users have them ----

_IDS = (
    pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.int64(), pa.string(), pa.string(), pa.large_string(),
    pa.string_view(), pa.binary(), pa.dictionary(pa.int32(), pa.string()),
)  # fmt: skip
_TEXTS = (pa.string(), pa.large_string(), pa.string_view(), pa.binary())
_GRADES = (
    pa.uint8(), pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.decimal128(21, 1),
)  # fmt: skip
_SCORES = (pa.float32(), pa.float64(), pa.float64(), pa.int32())


def table_of(rng: Random) -> pa.Table:
    """Draw a table: few or many queries, grouped or not, with more columns, or with lists."""
    n_queries, numbers = rng.choice((1, 3, 12)), np.random.default_rng(rng.randrange(1 << 30))
    queries = np.repeat(np.arange(n_queries), numbers.integers(1, 24, n_queries))
    if rng.random() < 0.2:
        queries = numbers.permutation(queries)
    n, kind = len(queries), rng.choice(_IDS)
    ids = pa.array(queries) if pa.types.is_integer(kind) else pa.array([f"q{q}" for q in queries])
    grades = numbers.integers(0, rng.choice((2, 5)), n) * (numbers.random(n) < 0.5)
    scores = np.round(numbers.standard_normal(n), rng.choice((0, 1, 8)))
    languages = pa.array([(None, "de", "en")[q % 3] for q in queries], pa.string())
    columns = {
        "qid": ids.cast(kind),
        "docid": pa.array([f"document-{i}" for i in range(n)]).cast(rng.choice(_TEXTS)),
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
    if rng.random() < 0.15:
        plain = {name: table[name].cast(pa.string()) for name in ("qid", "docid")}
        rows = pa.table({**plain, "label": table["label"], "score": table["score"]})
        lists = rows.group_by("qid", use_threads=False).aggregate(
            [(name, "list") for name in rows.column_names[1:]]
        )
        return lists.rename_columns([name.removesuffix("_list") for name in lists.column_names])
    return table


def write_parquet(rng: Random) -> bytes:
    """A table as one of many writers would write it."""
    out = io.BytesIO()
    pq.write_table(
        table_of(rng),
        out,
        compression=rng.choice(("none", "none", "snappy", "zstd", "gzip", "lz4", "brotli")),
        data_page_version=rng.choice(("1.0", "2.0")),
        data_page_size=rng.choice((16, 200, 1 << 20)),
        dictionary_pagesize_limit=rng.choice((1 << 20, 1 << 20, 30)),
        row_group_size=rng.choice((7, 50, 1 << 20)),
        store_schema=rng.random() < 0.8,
        use_dictionary=rng.random() < 0.6,
        write_batch_size=rng.choice((8, 1024)),
        write_page_checksum=rng.random() < 0.25,
        write_page_index=rng.random() < 0.2,
        write_statistics=rng.random() < 0.6,
    )
    return out.getvalue()


def write_feather(rng: Random) -> bytes:
    table, out = table_of(rng), io.BytesIO()
    if rng.random() < 0.3:
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=rng.choice((3, 1000)))
    else:
        pf.write_feather(table, out, compression=rng.choice(("uncompressed", "lz4", "zstd")))
    return out.getvalue()


# ---- text ----

# values on which parsers may differ
_NUMBERS = (
    "1", "2", "0", "-1", "3.5", "0.25", "1e3", "-2.5E-3", "+.5", "5.", "1e400", "-1e400", "1e-400", "nan", "NaN", "-inf", "Infinity",
    "9007199254740993", "123456789012345678901234567890", "0.1000000000000000055511151231257827", "1_0", "0x10", "1e", ".", "-", "1d5",
    "\u0661", "1\u00a0", "1e0000000005", "true", "NULL", "4.9406564584124654e-324", "1.7976931348623159e308", "infinit", "1e5000000000",
)  # fmt: skip
_WORDS = (
    "d1", "d2", "a" * 90, "caf\u00e9", "\u00a0", "\u3000x", "\x7f", "#x", "7", "007", "x\u0085y", "d\u2028", "", "\x1b[31m", "=1+1",
    "\u202e", "\ud7ff", "None", "2024-01-01", "a, b", 'say "x"', "two\nlines",
)  # fmt: skip
_BLANKS = (" ", " ", " ", "\t", "  ", " \t", "\x01", "\x00", "\x0b", "\x1c ", "\u00a0")
_ENDS = ("\n", "\n", "\n", "\r\n", " \n", "\n\n", "\r", "\n# c\n", "\x1a\n")
_MARK = b"\xef\xbb\xbf"


def _number(rng: Random) -> str:
    if rng.random() < 0.1:
        return rng.choice(_NUMBERS)
    return f"{rng.randrange(-20, 300) / rng.choice((1, 7, 100))!r}"


def _id(rng: Random) -> str:
    return rng.choice(_WORDS) if rng.random() < 0.1 else f"doc-{rng.randrange(10**6)}"


def write_lines(fields: Callable[[Random, int], list[str]], rng: Random) -> bytes:
    """Fields as lines, most of them with the same blanks and line ends."""
    blank, end, text = rng.choice(_BLANKS), rng.choice(_ENDS), ""
    for row in range(rng.choice((1, 3, 30, 500))):
        between = rng.choice(_BLANKS) if rng.random() < 0.02 else blank
        text += between.join(fields(rng, row)) + (rng.choice(_ENDS) if rng.random() < 0.02 else end)
    return rng.choice((b"", b"", b"", _MARK)) + text.encode()[: -1 if rng.random() < 0.2 else None]


def run_fields(rng: Random, row: int) -> list[str]:
    return [str(row // 7), "Q0", _id(rng), str(row % 7), _number(rng), rng.choice(("t", "t", "my run"))]


def qrels_fields(rng: Random, row: int) -> list[str]:
    return [str(row // 7), str(row % 3), _id(rng), rng.choice(("0", "1", "-1", _number(rng)))]


def letor_fields(rng: Random, row: int) -> list[str]:
    qid = [] if rng.random() < 0.01 else [f"qid:{row // 5 if rng.random() < 0.95 else _id(rng)}"]
    return [_number(rng) if rng.random() < 0.05 else str(row % 4), *qid, "1:0.5", "2:NULL", "# c"]


def write_csv(rng: Random) -> bytes:
    out, end = io.StringIO(), rng.choice(("\n", "\n", "\r\n", "\r"))
    writer = csv.writer(out, delimiter=rng.choice(",,\t;"), lineterminator=end)
    writer.writerow(["qid", "label", "score", rng.choice(("docid", "doc, id", "x" * 200)), "note"])
    for row in range(rng.choice((1, 3, 40))):
        grade = _number(rng) if rng.random() < 0.03 else row % 3
        score = _number(rng) if rng.random() < 0.05 else f"{rng.random():.6f}"
        writer.writerow([f"q{row // 5}", grade, score, _id(rng), rng.choice(_WORDS)])
    return rng.choice((b"", b"", _MARK)) + out.getvalue().encode()


def write_json(rng: Random) -> bytes:
    rows = []
    for number in range(rng.choice((1, 5, 40))):
        qid = rng.choice(_WORDS) if rng.random() < 0.05 else f"q{number // 4}"
        rows.append(
            {"qid": qid, "label": number % 3, "score": rng.randrange(-99, 99) / 8, "note": rng.choice(_WORDS)}
        )
    if rng.random() < 0.3:
        return json.dumps(rows, indent=rng.choice((None, 1))).encode()
    return "".join(json.dumps(row, ensure_ascii=rng.random() < 0.5) + "\n" for row in rows).encode()


# ---- readers and references ----


def rows_of(rankings: fn.Rankings) -> Rows:
    """The bytes of each query, so that equality is bit by bit."""
    found: Rows = []
    docs = None if rankings.doc_ids is None else _as_bytes(rankings.doc_ids).to_pylist()
    columns = [_as_bytes(column) for column in rankings.queries.columns]
    queries = pa.table(columns, rankings.queries.schema.names).to_pylist()
    for query, start, end in zip(queries, rankings.offsets[:-1], rankings.offsets[1:], strict=True):
        arrays = (rankings.relevance[start:end], rankings.scores[start:end])
        found.append(
            (str(query), *((str(each.dtype), each.tobytes()) for each in arrays), docs and docs[start:end])
        )
    return found


def _as_bytes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with texts as bytes, since damaged texts may not be UTF-8."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return column.cast(pa.large_binary()) if is_text else column


def whole(path: Path) -> Rows:
    return sorted(rows_of(open_tables([path], 1).choose(Roles(**ROLES)).read()), key=repr)


def in_parts(path: Path) -> Rows:
    chosen = open_tables([path], 1).choose(Roles(**ROLES))
    parts = scan_if_large(chosen, 1, -1, 1 << 20) or [chosen.read()]
    return sorted((query for part in parts for query in rows_of(part)), key=repr)


def as_table(table_of: Callable[[bytes], pa.Table | None], path: Path) -> Rows | None:
    table = table_of(path.read_bytes())
    return None if table is None else sorted(rows_of(fn.Rankings.from_arrow(table, **ROLES)), key=repr)


def by_pyarrow(data: bytes) -> pa.Table:
    with pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True) as file:
        return file.read(columns=[*ROLES.values()], use_threads=False)


def by_arrow(data: bytes) -> pa.Table:
    """The table in a file or stream of Arrow, where what is needed of it is valid."""
    opened = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
    schema = opened(data).schema
    places = [schema.names.index(name) for name in ROLES.values()]  # where all names are text
    table = opened(data, options=pa.ipc.IpcReadOptions(included_fields=places)).read_all()
    table.validate(full=True)
    return table.select([*ROLES.values()])


def by_json(data: bytes) -> pa.Table | None:
    text = data.decode("utf-8-sig")
    is_list = text.lstrip().startswith("[")
    return of_plain(json.loads(text) if is_list else [json.loads(line) for line in text.splitlines() if line])


def by_csv(data: bytes) -> pa.Table | None:
    text = data.decode("utf-8-sig")
    first = re.split(r"[\r\n]", text, maxsplit=1)[0]
    rows: list[Any] = [
        *csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",\t;", key=first.count), strict=True)
    ]
    if any(None in row or None in row.values() or not row["qid"].startswith("q") for row in rows):
        return None
    for name in ("label", "score"):
        is_whole = all(re.fullmatch("-?[0-9]+", row[name]) for row in rows)
        for row in rows:
            is_plain = re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?", row[name])
            row[name] = (int if is_whole else float)(row[name]) if is_plain else None
    return of_plain(rows)


def of_plain(rows: Any) -> pa.Table | None:
    """Rows of texts and numbers, none of them odd, as a table."""
    for row in rows:
        values = [row.get(name) for name in ROLES.values()] if isinstance(row, dict) else []
        if list(map(type, values)) not in ([str, int, float], [str, int, int], [str, float, float]):
            return None
        if not all(abs(value) < 2**53 for value in values[1:]):  # NaN neither
            return None
    return pa.table({name: [row[name] for row in rows] for name in ROLES.values()}) if rows else None


_PAIR = {RUN: "1 0 doc-1 1\n2 0 doc-2 2\n", INTENTS: "1 Q0 doc-1 1 2.5 t\n2 Q0 doc-2 1 1.5 t\n"}


def lines(kind: Any, path: Path) -> Rows:
    """Queries, documents and numbers of each line. Rankings are made of them too, which may not end in another error."""
    found = read_lines(str(path), kind, threads=1)
    columns = [[_value(found.queries[int(code)]) for code in found.query_codes]]
    columns += [] if kind is LETOR_LINE else [[_value(doc) for doc in found.docs]]
    other = path.with_name("other.txt")
    with suppress(fn.FastndcgError):
        if kind is LETOR_LINE:
            fn.read_ltr(path, scores=np.arange(len(found.values)) / 7)
        else:
            other.write_text(_PAIR[kind])
            fn.read_trec(*((other, path) if kind is RUN else (path, other)))
    return list(zip([_bits(float(value)) for value in found.values], *columns, strict=True))


def _value(scalar: Any) -> bytes:
    value = scalar.as_py()
    return value if isinstance(value, bytes) else value.encode()  # type: ignore[no-any-return]


def _bits(value: float | bytes) -> bytes:
    if isinstance(value, bytes) and b"_" in value:
        raise ValueError
    return np.float64(float(value) + 0.0).tobytes()


def by_splitting(kind: Any, path: Path) -> Rows | None:
    """Lines split at blanks, numbers as Python reads them."""
    data, found = path.read_bytes(), []
    if data.startswith((b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd")):
        return None  # which is unpacked
    for line in data.removeprefix(_MARK).split(b"\n"):
        fields = re.findall(rb"[^\x00-\x20]+", line)
        is_comment = fields[:1] and fields[0].startswith(b"#")
        if not fields or (is_comment and (kind is LETOR_LINE or len(fields) < len(kind.fields))):
            continue
        if kind is not LETOR_LINE and (is_comment or (len(fields) > len(kind.fields) and b"\t" in line)):
            return None  # which may be a query id, or ids with blanks between tabs
        if kind is LETOR_LINE:
            is_query = len(fields) > 1 and fields[1].startswith(b"qid:")
            found.append((_bits(fields[0]), fields[1][4:] if is_query else b""))
        elif len(fields) < 6 if kind is RUN else len(fields) != 4:
            raise ValueError
        else:
            found.append((_bits(fields[4 if kind is RUN else 3]), fields[0], fields[2]))
    return found


def _text(name: str, ending: str, fields: Callable[[Random, int], list[str]], kind: Any) -> Format:
    return Format(
        name, ending, partial(write_lines, fields), (partial(lines, kind),), partial(by_splitting, kind)
    )


_TABLES = (whole, in_parts)
FORMATS = {
    form.name: form
    for form in (
        Format("parquet", ".parquet", write_parquet, _TABLES, partial(as_table, by_pyarrow), may_refuse_more=True, damage=mutate_parquet),
        Format("feather", ".feather", write_feather, _TABLES, partial(as_table, by_arrow), may_refuse_more=True),
        Format("csv", ".csv", write_csv, _TABLES, partial(as_table, by_csv), True, True),
        Format("json", ".jsonl", write_json, _TABLES, partial(as_table, by_json), True, True),
        _text("trec_run", ".run", run_fields, RUN),
        _text("trec_qrels", ".qrels", qrels_fields, INTENTS),
        _text("letor", ".txt", letor_fields, LETOR_LINE),
    )
}  # fmt: skip


# ---- the verdict ----


def verdict(form: Format, path: Path) -> str:
    """READ, REFUSED, or what is wrong with how a file is read."""
    answers = []
    for reader in form.readers:
        try:
            answers.append(reader(path) or REFUSED)  # of a file without rows each reader decides
        except fn.FastndcgError:
            answers.append(REFUSED)
        except Exception as error:  # noqa: BLE001 - it is what we look for
            return f"{_name(reader)} raises {type(error).__name__}: {error}"
    found = answers[0]
    if any(answer != found and not (form.may_read_more and REFUSED in (answer, found)) for answer in answers):
        return f"readers differ: {', '.join(map(_name, form.readers))}"
    try:
        expected: Rows | str | None = form.reference(path)
        expected = REFUSED if expected == [] else expected
    except (fn.FastndcgError, *ERRORS):
        expected = None if form.may_read_more else REFUSED
    if expected is None or found == expected or (found == REFUSED and form.may_refuse_more):
        return REFUSED if found == REFUSED else READ
    if REFUSED not in (found, expected):
        return "reads something else than the reference"
    return "refuses what it should read" if found == REFUSED else "reads what it should refuse"


def _name(reader: Any) -> str:
    return str(getattr(reader, "func", reader).__name__)


# ---- child processes ----


def limit_memory(more: int) -> None:
    """Limit the memory that this process may allocate in addition to what it has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def start(kernels: str) -> ProcessPoolExecutor:
    """A process that may end at any mutant. Kernels as plain Python find each index that is out of bounds."""
    child = ProcessPoolExecutor(1, get_context("spawn"), initializer=limit_memory, initargs=(_MEMORY,))
    with mock.patch.dict(
        os.environ, {"FASTNDCG_KERNELS": kernels, "NUMBA_DISABLE_JIT": str(int(kernels == "plain"))}
    ):
        child.submit(faulthandler.enable).result()
    return child


def judge(name: str, seed: int, number: int, seconds: int) -> str:
    """The verdict on a mutant. A slow one ends the process."""
    form = FORMATS[name]
    with tempfile.TemporaryDirectory(prefix="fastndcg-fuzz-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / f"mutant{form.ending}"
        path.write_bytes(mutant_of(form, seed, number))
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(10 * seconds)
        said = verdict(form, path)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    return said


def judge_all(form: Format, mutants: range, seed: int, kernels: str) -> Iterator[tuple[int, str]]:
    """Yield the number of each mutant and its verdict."""
    child, seconds = start(kernels), _FIRST_SECONDS
    try:
        for number in mutants:
            try:
                yield number, child.submit(judge, form.name, seed, number, seconds).result()
                seconds = _SECONDS
            except BrokenProcessPool:
                yield number, f"the process crashed, or took more than {seconds} s"
                child, seconds = start(kernels), _FIRST_SECONDS
    finally:
        child.shutdown()


# ---- command ----


def fuzz(
    form: Format, mutants: range, seed: int, folder: Path, seconds: float = 1e9, kernels: str = "plain"
) -> tuple[Counter[str], list[str]]:
    """Count verdicts until the time is over, or there are no more mutants; and describe the failures, whose files are kept."""
    counts, failures = Counter[str](), []
    until = time.monotonic() + seconds
    with closing(judge_all(form, mutants, seed, kernels)) as judged:
        for number, said in judged:
            counts[said if said in (READ, REFUSED) else "failed"] += 1
            if said not in (READ, REFUSED):
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / f"{form.name}-{seed}-{number}{form.ending}"
                path.write_bytes(mutant_of(form, seed, number))
                failures.append(f"{path}: {said}")
            if time.monotonic() >= until and counts[READ]:
                break
    return counts, failures


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--format", action="append", choices=sorted(FORMATS), help="default: all")
    parser.add_argument("--mutants", type=int, default=1000, help="of each format")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-failures"), help="folder for mutants that fail"
    )
    parser.add_argument(
        "--replay", type=Path, help="read a file that failed; its name begins with its format"
    )
    parser.add_argument("--kernels", choices=("plain", "compiled", "auto"), default="plain")
    options = parser.parse_args(arguments)
    if options.replay is not None:
        said = verdict(FORMATS[options.replay.name.partition("-")[0]], options.replay)
        print(said)
        return int(said not in (READ, REFUSED))
    failed = 0
    for name in options.format or FORMATS:
        mutants, seed = range(options.mutants), options.seed
        counts, failures = fuzz(FORMATS[name], mutants, seed, options.keep, kernels=options.kernels)
        numbers = ", ".join(f"{counts[each]:,} {each}" for each in (READ, REFUSED, "failed"))
        print(f"{name}: mutants of seed {seed}: {numbers}", flush=True)
        for failure in failures:
            print(f"  {failure}")
        failed += len(failures) + (not counts[READ])
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
