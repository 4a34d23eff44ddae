"""Detect the format of a file by its first bytes, or by its name if the text could be of several formats."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from fastndcg.common.threads import check_threads
from fastndcg.errors import SourceError
from fastndcg.sources.csv import CSV
from fastndcg.sources.feather import FEATHER
from fastndcg.sources.json_lines import JSON
from fastndcg.sources.open_file import Format, instead
from fastndcg.sources.parquet import PARQUET
from fastndcg.sources.text_lines import QRELS, RUN, THREE_FIELDS, first_row, is_number, is_row, words
from fastndcg.tables.roles import USUAL_NAMES, Dialect, fitting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastndcg.sources.dataset import Dataset
    from fastndcg.sources.open_file import File
    from fastndcg.typing import Path

TABLES = (PARQUET, CSV, JSON, FEATHER)
TABLE = Format(
    f"{', '.join(each.name for each in TABLES[:-1])} or {TABLES[-1].name}",
    tuple(ending for each in TABLES for ending in each.endings),
    PARQUET.begins,  # of files without an ending, in folders
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
LOOK = 1 << 16  # bytes at the beginning of a file that decide its format
_NESTED_START = re.compile(rb'\{\s*(?:\}\s*\Z|("(?:[^"\\]|\\.)*")\s*:\s*[\[{])')
_LETOR_LINE = re.compile(rb"[^\s:]+\s+qid:")


def format_of(
    name: str, start: bytes, *, has_rank: bool | None = None, dialect: Dialect | None = None
) -> Format:
    r"""Detect the format of a file from its name and its first unpacked bytes.

    `has_rank` is True for a run, False for judgments, and None for a file with grades and scores. Text is CSV
    if the caller names its fields or its separator.

    >>> format_of("a.txt", b"qid,label,score\n").name, format_of("a.csv", b"PAR1").name
    ('CSV', 'Parquet')
    >>> format_of("a.tsv", b"301\t0\tFT911-1\t2\n", has_rank=False).name
    'TREC'
    """
    named, text = format_of_name(name), start.removeprefix(_BOM).lstrip()
    for kind in TABLES:
        if re.match(kind.begins, start):
            return NESTED if kind is JSON and _is_nested(text) else kind
    is_text, lines = bool(text) and b"\0" not in start, re.split(rb"[\r\n]+", text)
    line = first_row(
        lines, *((QRELS, RUN) if has_rank is None else (RUN, THREE_FIELDS) if has_rank else (QRELS,))
    )
    is_trec = is_row(line, QRELS, RUN._replace(is_open=False))
    if is_text and dialect is not None:
        has_sep = dialect.sep is not None and dialect.sep.encode() in line and not is_trec
        if dialect.is_named or has_sep:
            return CSV
    if has_rank is False and _LETOR_LINE.match(line):
        return LETOR
    if has_rank is not None and (is_text or named in (None, CSV)):
        return CSV if _is_header(line, has_rank, is_csv=named is CSV) else TREC
    if named is not None:
        return named  # its reader will report what is wrong with the file
    if not is_text:
        what = f"begins with {start[:8]!r}, which is not a supported format" if text else "is empty"
        raise SourceError(
            f"{name} {what}; expected {TABLE.name}, plain or compressed with gzip, bzip2 or "
            "Zstandard, text in UTF-8"
        )
    if _LETOR_LINE.match(line):
        return LETOR
    return TREC if is_trec else CSV


class Found(NamedTuple):
    """The files of some paths, and the format of the first."""

    paths: list[Path]
    files: list[File]
    format: Format
    is_packed: bool = False

    def open(self, threads: int | None, *, named: bool = False) -> Dataset:
        """Read the footer, header or schema of each file, once. Raises `SourceError` if a file cannot be
        opened, and with `named` if its format has no column names.
        """
        kind, files = self.format, self.files
        if named and kind not in TABLES:
            raise SourceError(
                f"{files[0].path} is a file of {kind.name}, whose columns have no names; "
                f"expected {TABLE.name}"
            )
        if self.is_packed and not kind.unpacks:
            files = [file.unpacked() for file in files]
        dataset: Dataset = kind.open(self.paths, files, check_threads(threads) or int(pa.cpu_count()))
        return dataset


def find_tables(paths: list[Path], *, has_rank: bool | None = None, dialect: Dialect | None = None) -> Found:
    """List files, and detect their format from the first one. Options are those of `format_of`.

    Raises `SourceError` for missing files and mixed formats, and if the first file cannot be read.
    """
    from fastndcg.sources.paths import find_files

    files = find_files(paths, TABLE)
    check_alike(file.path for file in files)
    first = files[0]
    # trust the name of a remote Parquet file: reading its first bytes would be another request
    if not first.is_local and format_of_name(first.path) is PARQUET:
        return Found(paths, files, PARQUET)
    start, packed = first.start(LOOK)
    kind = format_of(first.path, start, has_rank=has_rank if len(files) == 1 else None, dialect=dialect)
    if dialect is not None and kind is CSV:
        files = [file._replace(dialect=dialect) for file in files]
    return Found(paths, files, kind, packed is not None)


def _is_nested(text: bytes) -> bool:
    r"""Return whether JSON is one object of queries, rather than rows of a table.

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
    except ValueError:  # an object of several lines, or of a line that is longer than `LOOK`
        values = {json.loads(start[1]): {}} if start[1] else {}
    names = list(values)
    return all(isinstance(each, dict | list) for each in values.values()) and not any(
        fitting(names[:1], role) for role in USUAL_NAMES
    )


def _is_header(line: bytes, has_rank: bool, *, is_csv: bool) -> bool:
    """Return whether a line is a header. Files named .tsv are often TREC files, which have none."""
    form = RUN if has_rank else QRELS
    if is_row(line, form) or (is_row(line, THREE_FIELDS) and (has_rank or not is_csv or b"\t" in line)):
        return False
    parts, fields = re.split(rb"[,;|\t]|::", line), words(line)
    if max(len(parts), len(fields)) > 1 and len(fields) < len(THREE_FIELDS.fields):
        return True
    names = [each.decode(errors="replace") for each in fields]
    has_names = all(any(fitting([name], role) for name in names) for role in ("query", "doc_id"))
    if has_names or is_row(line.replace(b",", b"."), THREE_FIELDS):  # with a decimal comma
        return True
    numbers = [*parts, *fields[form.fields.index("value") :][:1]]
    return is_csv or (len(parts) > 1 and not any(map(is_number, numbers)))


def format_of_name(path: Any) -> Format | None:
    """Return the format of a table by the ending of its name, compressed or not; None for other names.

    >>> format_of_name("a.CSV.gz").name, format_of_name("s3://bucket/a.jsonl").name, format_of_name("a.txt")
    ('CSV', 'JSON Lines', None)
    """
    return next((each for each in TABLES if each.has_ending(path)), None)


def check_alike(paths: Iterable[Any]) -> None:
    """Raise `SourceError` if the names of files have endings of different formats."""
    kinds = {kind.name: os.fspath(path) for path in paths if (kind := format_of_name(path)) is not None}
    if len(kinds) > 1:
        raise SourceError(
            f"there are files of {len(kinds)} kinds, and one kind is read at a time: "
            f"{', '.join(f'{kind} ({path})' for kind, path in kinds.items())}. Name the files of one kind."
        )
