"""Fuzz TREC, LETOR, CSV and .npy files, compared with readers in Python, and the notation of measures.

This module parses TREC and LETOR in a few lines of Python, and a reader must accept exactly the same files.
For CSV and .npy, where the readers of Python and NumPy accept other files, only values that both read are
compared. TREC files are also compared with pytrec_eval, if it is installed and reads them.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

import fastndcg as fn
from fastndcg.sources.lines import INTENTS, RUN, read_lines
from fastndcg.sources.sides import text_side
from scripts.fuzz import Target, mutate
from scripts.fuzz_parquet import _lists_of, _try

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from random import Random

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
_PACKED = (b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd")
_BOM = b"\xef\xbb\xbf"


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


# ---- lines ----


def _fields_of(data: bytes) -> list[list[bytes]]:
    found = [re.findall(rb"[^\x00-\x20]+", line) for line in data.removeprefix(_BOM).split(b"\n")]
    return [fields for fields in found if fields and not fields[0].startswith(b"#")]


def _float(text: bytes) -> float:
    if b"_" in text:
        raise ValueError
    return float(text)


def _rows(data: bytes, has_rank: bool) -> list[tuple[Any, ...]] | None:
    """Return query, second field, document and bits of the number of each line; None if malformed."""
    try:
        rows = [
            (line[0], line[1], line[2], np.float64(_float(line[4 if has_rank else 3])).tobytes())
            for line in _fields_of(data)
            if (len(line) >= 6 if has_rank else len(line) == 4) or _refuse()
        ]
    except ValueError:
        return None
    return rows or None


def _refuse() -> bool:
    raise ValueError


def _bytes(scalar: Any) -> bytes:
    value = scalar.as_py()
    return value if isinstance(value, bytes) else value.encode()  # type: ignore[no-any-return]


def _side_rows(path: Path, has_rank: bool) -> list[tuple[Any, ...]]:
    side = text_side(path, "score" if has_rank else "relevance", 1)
    lines = read_lines(path, RUN if has_rank else INTENTS, threads=1)
    seconds = [None] * len(side.values) if has_rank else lines.intents
    return [
        (_bytes(side.queries[int(code)]), second and _bytes(second), _bytes(doc), np.float64(value).tobytes())
        for code, second, doc, value in zip(side.codes, seconds, side.docs, side.values, strict=True)
    ]


def _same(found: Any, wanted: Any) -> str | None:
    if isinstance(found, str):
        return f"raises {found}"
    if (found is None) != (wanted is None):
        return "refuses what it should read" if found is None else "reads what it should refuse"
    return None if found == wanted else "reads something else"


def _judge_trec(path: Path, has_rank: bool) -> str | None:
    data = path.read_bytes()
    if data.startswith(_PACKED):
        return None
    wanted = _rows(data, has_rank)
    if has_rank and wanted:
        wanted = [(query, None, doc, value) for query, _, doc, value in wanted]
    if not has_rank and wanted:  # -0 is the grade 0
        wanted = [(*row[:3], np.float64(np.frombuffer(row[3])[0] + 0.0).tobytes()) for row in wanted]
    found = _try(lambda: _side_rows(path, has_rank))
    if isinstance(found, list) and not has_rank:
        found = [(*row[:3], np.float64(np.frombuffer(row[3])[0] + 0.0).tobytes()) for row in found]
    return _same(found, wanted) or _judge_pair(path, data, has_rank)


_QRELS, _RUN = "1 0 doc-1 1\n2 0 doc-2 2\n", "1 Q0 doc-1 1 2.5 t\n2 Q0 doc-2 1 1.5 t\n"


def _judge_pair(path: Path, data: bytes, has_rank: bool) -> str | None:
    """Read it with a second file, and compare with pytrec_eval if both files are plain text."""
    other = path.with_name("other.txt")
    other.write_text(_QRELS if has_rank else _RUN)
    pair = (other, path) if has_rank else (path, other)
    found = _try(lambda: _lists_of(fn.read_trec(*pair)))
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
    wanted = _try(lambda: _lists_of(fn.Rankings.from_qrels_run(qrels, run)))
    return f"read_trec beside pytrec_eval {_same(found, wanted)}" if _same(found, wanted) else None


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


# ---- LETOR ----


def _features(rng: Random) -> bytes:
    def fields(row: int) -> list[str]:
        qid = [] if rng.random() < 0.01 else [f"qid:{row // 5 if rng.random() < 0.95 else _id(rng)}"]
        return [_number(rng) if rng.random() < 0.05 else str(row % 4), *qid, "1:0.5", "2:NULL", "# c"]

    return _lines(rng, fields)


def judge_features(path: Path) -> str | None:
    data = path.read_bytes()
    if data.startswith(_PACKED):
        return None
    wanted: list[tuple[Any, ...]] | None = []
    try:
        for line in _fields_of(data):
            is_query = len(line) > 1 and line[1].startswith(b"qid:")
            if line[1:2] == [b"qid:"]:
                raise ValueError
            wanted.append((np.float64(_float(line[0])).tobytes(), line[1][4:] if is_query else b""))
    except ValueError:
        wanted = None

    def read() -> list[tuple[Any, ...]]:
        lines = read_lines(str(path), None, threads=1)
        queries = [_bytes(query) for query in lines.queries]
        return [
            (value.tobytes(), queries[code])
            for value, code in zip(lines.values, lines.query_codes, strict=True)
        ]

    if complaint := _same(_try(read), wanted):
        return complaint
    scores = np.arange(len(wanted or [])) / 7
    found = _try(lambda: _lists_of(fn.read_ltr(path, scores=scores)))
    if isinstance(found, str):
        return f"read_ltr raises {found}"
    return "read_ltr reads what it should refuse" if found is not None and not wanted else None


# ---- scores ----


def _npy(rng: Random) -> bytes:
    out = io.BytesIO()
    kind = rng.choice(("f4", "f8", ">f8", "i8", "u1", "f2", "?"))
    array = (np.arange(10) * rng.choice((1, 1, 3))).astype(kind)
    np.lib.format.write_array(out, array, rng.choice(((1, 0), (2, 0))))
    data = out.getvalue()
    return mutate(data, rng, 6, 130) if rng.random() < 0.8 else mutate(data, rng, 6)


def _ten_rows(path: Path) -> Path:
    rows = path.with_name("rows.txt")
    rows.write_text("".join(f"{i % 3} qid:{i // 4} 1:1\n" for i in range(10)))
    return rows


def judge_npy(path: Path) -> str | None:
    """An array is read if NumPy reads it and it has a number for each row, and with the same values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = np.load(path, allow_pickle=False)
        except Exception:  # noqa: BLE001 - a damaged header may raise whatever Python's parser does
            wanted = None
    if not isinstance(wanted, np.ndarray) or wanted.ndim != 1 or wanted.dtype.kind not in "buif":
        wanted = None
    rows = _ten_rows(path)
    found = _try(lambda: _lists_of(fn.read_ltr(rows, scores=path)))
    if isinstance(found, str):
        return f"raises {found}"
    answer = None if wanted is None else _try(lambda: _lists_of(fn.read_ltr(rows, scores=wanted)))
    return None if found == answer else "does not read what NumPy does"


def _numbers(rng: Random) -> bytes:
    data = "".join(_number(rng) + rng.choice(_ENDS[:4]) for _ in range(10)).encode()
    return data if rng.random() < 0.3 else mutate(data, rng)


def judge_numbers(path: Path) -> str | None:
    """Compare numbers, one on each line, if Python and the package both read them."""
    rows = _ten_rows(path)
    found = _try(lambda: _lists_of(fn.read_ltr(rows, scores=path)))
    if isinstance(found, str):
        return f"raises {found}"
    try:
        scores = [float(line) for line in path.read_bytes().split()]
    except ValueError:
        return None
    wanted = _try(lambda: _lists_of(fn.read_ltr(rows, scores=scores)))
    return None if found is None or found == wanted else "reads other numbers than Python"


# ---- CSV ----


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


def _lists_of_parts(parts: Iterable[fn.Rankings]) -> list[tuple[Any, ...]]:
    return [query for part in parts for query in _lists_of(part)]


def judge_csv(path: Path) -> str | None:
    """Compare the complete rows, if Python's reader and the package both read the file."""
    found = _try(lambda: _lists_of(fn.read_csv(path, nan="last", threads=1)))
    if isinstance(found, str):
        return f"raises {found}"
    streamed = _try(lambda: _lists_of_parts(fn.scan_csv(path, nan="last", threads=1)))
    if isinstance(streamed, str):
        return f"scan_csv raises {streamed}"
    if streamed is not None and found is not None and sorted(streamed) != sorted(found):
        return "scan_csv reads something else than read_csv"
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
        first = re.split(r"[\r\n]", text, maxsplit=1)[0]
        delimiter = max(",\t;", key=first.count)
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        rows = [row for row in reader if None not in row and None not in row.values()]
        table = {
            "qid": [row["qid"] for row in rows],
            "label": [float(row["label"]) for row in rows],
            "score": [float(row["score"] or "nan") for row in rows],
        }
        if not rows or "_" in "".join(row["label"] + row["score"] for row in rows):
            return None
    except (UnicodeDecodeError, csv.Error, ValueError, KeyError):
        return None
    if found is None:
        return None
    wanted = _try(
        lambda: fn.Rankings.from_query_ids(table["qid"], table["label"], table["score"], nan="last")
    )
    if isinstance(wanted, str) or wanted is None:
        return None
    got = fn.read_csv(path, nan="last", threads=1)
    same = [str(query) for query in got.query_ids.to_pylist()] == wanted.query_ids.to_pylist()
    same = (
        same and np.array_equal(got.relevance, wanted.relevance) and np.array_equal(got.scores, wanted.scores)
    )
    return None if same else "reads something else than Python"


# ---- notation ----

_NOTATION = (
    "nDCG@10", "nDCG(gain='exp2')@1,3,5", "nDCG(gain={0: 0, 1: 1.5, 2: 3})@5", "nDCG(gain=[0, 1, 3], discount=2.5)", "AP(rel=2)@100",
    "RBP(p=0.8, rel=1)", "ERR(max_rel=4)@20", "nDCG(ties='worst', ideal='scored', empty='nan', judged_only=True)@10, P@5, RR",
    "alpha_nDCG(alpha=0.5)@20", "F(beta=2, rel=1)@3", "IPrec@0.1", "nDCG(dcg='exp-log2')@10", "SDCG(max_rel=4)@10", "infAP(rel=1)",
    "nDCG(like='lightgbm')@10", "DCG(ips=True, clip=0.01)@10", "nDCG(unjudged=1)@3",
)  # fmt: skip
_PIECES = (
    "(", ")", "@", ",", "'", "=", "-", "1e999", "0" * 400, "9" * 400, "[1]", "{}", "b'x'", "None", "True", "1j", "...", "nDCG", "*", "**",
    "function()", "lambda: 0", "x if y else z", "f'{x}'", "'\\ud800'", "\x00", "((((", "--" * 60, "[" * 120, "\u00e9", "1_0", "0x1", "nan",
)  # fmt: skip


def _notation(rng: Random) -> bytes:
    text = rng.choice(_NOTATION)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(_PIECES) + text[at + rng.choice((0, 0, 1, 3)) :]
    if rng.random() < 0.01:
        text = text.replace("1", rng.choice("-([{~") * 5000 + "1", 1)
    data = text.encode()
    return data if rng.random() < 0.4 else mutate(data, rng)


def judge_notation(path: Path) -> str | None:
    """A notation is refused, or its measures are parsed again from their own notation."""
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of escapes and comparisons in the text
        try:
            for measure in fn.parse_many(text):
                if fn.parse(str(measure)) != measure:
                    return f"{measure} is not read again"
        except fn.FastndcgError:
            return None
        except Exception as error:  # noqa: BLE001 - it is what we look for
            return f"raises {type(error).__name__}: {error}"
    return None


_LINES = "fastndcg.sources.lines:_join"

TARGETS = (
    Target("trec_run", _run, lambda path: _judge_trec(path, True), ".run", (_LINES, "fastndcg.sources.lines:_by_arrow", "fastndcg.sources.lines:_by_python")),
    Target("trec_qrels", _qrels, lambda path: _judge_trec(path, False), ".qrels", (_LINES, "fastndcg.sources.lines:_by_arrow", "fastndcg.sources.lines:_by_python")),
    Target("letor", _features, judge_features, ".txt", (_LINES, "fastndcg.sources.lines:_of_letor")),
    Target("npy", _npy, judge_npy, ".npy", ("fastndcg.sources.ltr:_npy",)),
    Target("numbers", _numbers, judge_numbers, ".scores", ("fastndcg.sources.ltr:_one_number_a_line",)),
    Target("csv", _csv, judge_csv, ".csv", ("fastndcg.sources.csv:CsvFiles._parse",)),
    Target("notation", _notation, judge_notation, ".measure", ("fastndcg:parse_many",)),
)  # fmt: skip
