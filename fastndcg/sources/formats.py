"""Detect the format of a file by its first bytes, or by its name if the text could be of several formats."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastndcg.errors import SourceError
from fastndcg.sources.csv import CSV, is_number
from fastndcg.sources.feather import FEATHER
from fastndcg.sources.json_lines import JSON
from fastndcg.sources.open_file import Format, file_system, instead, unpacked
from fastndcg.sources.parquet import PARQUET
from fastndcg.sources.text_lines import fields_of, is_ranked
from fastndcg.tables.roles import USUAL_NAMES, fitting

if TYPE_CHECKING:
    from collections.abc import Iterable

TABLES = (PARQUET, CSV, JSON, FEATHER)
TABLE = Format(
    f"{', '.join(each.name for each in TABLES[:-1])} or {TABLES[-1].name}",
    tuple(ending for each in TABLES for ending in each.endings),
    unnamed=PARQUET.unnamed,
)
_BOTH = "both are needed, as in read_qrels_run(qrels=..., run=...)"


# one object: query -> document -> number, or query -> list of documents
NESTED = Format("JSON by query", open=instead(f" has judgments or a run, as query -> documents; {_BOTH}"))
LETOR = Format(
    "LETOR",
    open=instead(" is a LETOR file, which has grades but no scores; give them, as in read_ltr(scores=...)"),
)
TREC = Format("TREC", open=instead(f" is a TREC file of judgments or of a run; {_BOTH}"))

_BOM = b"\xef\xbb\xbf"
LOOK = 1 << 16  # bytes of a file's beginning that decide its format
_NESTED_START = re.compile(rb'\{\s*(?:\}\s*\Z|("(?:[^"\\]|\\.)*")\s*:\s*[\[{])')
_LETOR_LINE = re.compile(rb"[^\s:]+\s+qid:")


def format_of(name: str, start: bytes, *, has_rank: bool | None = None) -> Format:
    r"""The format of a file, from its name and its first unpacked bytes.

    `has_rank` is True for a run, False for judgments, and None for a file with grades and scores.

    >>> format_of("a.txt", b"qid,label,score\n").name, format_of("a.csv", b"PAR1").name
    ('CSV', 'Parquet')
    >>> format_of("a.tsv", b"301\t0\tFT911-1\t2\n", has_rank=False).name
    'TREC'
    """
    named, text = format_of_name(name), start.removeprefix(_BOM).lstrip()
    for found in TABLES:
        if re.match(found.begins, start):
            return NESTED if found is JSON and _is_nested(text) else found
    is_text, lines = bool(text) and b"\0" not in start, re.split(rb"[\r\n]+", text)
    # the first line that is neither empty nor a comment
    line = next((line for line in lines if line.strip() and not line.lstrip().startswith(b"#")), b"")
    if has_rank is not None and (is_text or named in (None, CSV)):
        return CSV if _is_header(line, has_rank, is_csv=named is CSV) else TREC
    if named is not None:
        return named  # its reader reports what is wrong with the file
    if not is_text:
        what = f"begins with {start[:8]!r}, as no format does that is read" if text else "is empty"
        raise SourceError(
            f"{name} {what}; wanted {TABLE.name}, plain or packed by gzip, bzip2 or Zstandard, "
            "its text in UTF-8"
        )
    if _LETOR_LINE.match(line):
        return LETOR
    is_trec = any(
        len(fields_of(line)) == 4 + 2 * run and not _is_header(line, bool(run), is_csv=True) for run in (0, 1)
    )
    return TREC if is_trec else CSV


def format_of_side(name: str, *, has_rank: bool) -> Format:
    """The format of judgments or a run. Raises `SourceError` for a file that cannot be read."""
    if _is_many(name):
        return TABLE
    with unpacked(name) as stream:
        return format_of(name, bytes(stream.read(LOOK)), has_rank=has_rank)


def _is_many(name: str) -> bool:
    """Whether a path may stand for several files: a folder, or a pattern."""
    is_pattern = any(sign in name for sign in "*?[")
    if "://" in name:
        from pyarrow import fs

        system, inside = file_system(name)
        kind = system.get_file_info(inside).type
        return bool(kind == fs.FileType.Directory or (is_pattern and kind == fs.FileType.NotFound))
    path = Path(name)
    return path.is_dir() or (is_pattern and not path.exists())


def _is_nested(text: bytes) -> bool:
    r"""Whether JSON is one object of queries, and no row or rows of a table.

    >>> _is_nested(b'{"q1": {"a": 1}, "q2": {}}'), _is_nested(b'{"labels": [1, 0], "scores": [0.5, 0.1]}')
    (True, False)
    """
    start = _NESTED_START.match(text)
    if start is None:
        return False
    try:
        values = json.loads(text.partition(b"\n")[0])
    except RecursionError:
        return False
    except ValueError:  # an object of several lines, or of a line that is longer than what was looked at
        values = {json.loads(start[1]): {}} if start[1] else {}
    names = list(values)
    return all(isinstance(each, dict | list) for each in values.values()) and not any(
        fitting(names[:1], role) for role in USUAL_NAMES
    )


def _is_header(line: bytes, has_rank: bool, *, is_csv: bool) -> bool:
    """Whether a line is a header. Files named .tsv are often TREC files, which have no header."""
    fields = fields_of(line)
    if has_rank and is_ranked(fields):
        return False
    try:
        float(fields[4 if has_rank else 3])
    except (IndexError, ValueError):
        return is_csv or (
            bool(re.search(rb"[,;\t]", line)) and not any(map(is_number, re.split(rb"[,;\t]", line)))
        )
    return is_csv and (len(fields) < 6 if has_rank else len(fields) != 4)


def format_of_name(path: Any) -> Format | None:
    """The format of a table by the ending of its name, packed or not; None for other names.

    >>> format_of_name("a.CSV.gz").name, format_of_name("s3://bucket/a.jsonl").name, format_of_name("a.txt")
    ('CSV', 'JSON Lines', None)
    """
    return next((each for each in TABLES if each.has_ending(path)), None)


def check_alike(paths: Iterable[Any]) -> None:
    """Raise `SourceError` if the names of files have endings of different formats."""
    named: dict[Format, list[str]] = {}
    for path in paths:
        if (found := format_of_name(path)) is not None:
            named.setdefault(found, []).append(os.fspath(path))
    if len(named) > 1:
        kinds = [
            f"{len(files):,} of {kind.name} ({', '.join(files[:2])}{', ...' * (len(files) > 2)})"
            for kind, files in named.items()
        ]
        folder, slash, file = next(iter(named.values()))[0].rpartition("/")
        raise SourceError(
            f"there are files of {len(named)} kinds, and one kind is read at a time: {', '.join(kinds)}. "
            f"Name the files of one kind, as in {folder}{slash}*{file[file.find('.') :]}"
        )
