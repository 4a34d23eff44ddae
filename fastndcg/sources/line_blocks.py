"""Blocks of whole lines to columns.

pyarrow's CSV reader reads a block whose lines all have one form: as many fields, with one blank or one tab
between any two. Python reads the others.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of
from fastndcg.errors import SourceError

Array = npt.NDArray[Any]

_BLANK, _NEWLINE = 32, 10
_SLICE = 1 << 17  # bytes that are looked at together: NumPy's memory for more is new each time
MARK = b"\xef\xbb\xbf"
_BLANKS = bytes.maketrans(bytes(range(_BLANK)), b" " * _BLANK)
_LETOR = re.compile(  # a line without a row on it; or its label, and its qid
    rb"[\x00-\x09\x0b-\x20]*(?:[\n#]|([^\x00-\x20]+)[\x00-\x09\x0b-\x20]*(?:qid:([^\x00-\x20]*))?)"
)


class Form(NamedTuple):
    """Lines of one kind, and the places of the fields that are read; the query is the first."""

    wanted: str  # in words, for messages
    fields: int
    document: int
    value: int
    is_open: bool = False  # the last field may have several words
    intent: int | None = None


QRELS = Form("a line of a TREC qrels file: query iteration doc grade", 4, 2, 3)
INTENTS = QRELS._replace(intent=1)
RUN = Form("a line of a TREC run: query Q0 doc rank score tag", 6, 2, 4, is_open=True)
RANKED = Form("a line of an MS MARCO run: query doc rank", 3, 1, 2)
LETOR_LINE = "label qid:query feature:value ..."


class Block(NamedTuple):
    """Columns of a block; `skipped` are its rows before which a line was skipped."""

    queries: pa.Array  # a row for each run of rows of one query
    ends: Array  # of the runs
    docs: pa.Array
    values: Array
    intents: pa.Array
    skipped: Array


class MalformedError(Exception):
    """A line that has another form: its number in its block, from 0, and its text."""

    def __init__(self, line: int, text: bytes, reason: str = "") -> None:
        self.line, self._text, self._reason = line, text.rstrip(b"\r"), reason

    def of_file(self, path: str, line: int, wanted: str) -> SourceError:
        """The error that names the line of the file."""
        text, fields = shown(self._text), len(fields_of(self._text))
        reason = self._reason or f"{fields} field" + ("" if fields == 1 else "s")
        return SourceError(
            f'{path}, line {line}: {reason} in "{text if len(text) <= 120 else text[:117] + "..."}"; '
            f"wanted {wanted}"
        )


def block_of_lines(form: Form, block: Array) -> Block:
    found = _by_arrow(form, block)
    return _by_python(form, block.tobytes()) if found is None else found


def _by_arrow(form: Form, block: Array) -> Block | None:
    """The columns of a block whose lines all have one form, and none is a comment; None of another."""
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv

    rows = _rows_of_one_form(block, form.fields)
    blank = block[int(np.argmax(block[:_SLICE] <= _BLANK))].tobytes()
    # pyarrow would take the mark for no part of an id
    if not rows or blank not in b" \t" or block[:3].tobytes() == MARK:
        return None
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(pa.py_buffer(block)),
            pa_csv.ReadOptions(
                column_names=list(map(str, range(form.fields))), use_threads=False, block_size=len(block) + 1
            ),
            *_options(form, blank.decode()),
        )
    except pa.ArrowInvalid:
        return None
    columns = [table[name].combine_chunks() for name in table.column_names]
    query, doc, value, *intent = columns
    runs = _runs_of(query)
    if len(table) != rows or pc.any(pc.starts_with(runs[0], "#")).as_py():
        return None
    return Block(*runs, doc, array_of(value), intent[0] if intent else doc[:0], np.empty(0, np.int64))


def _rows_of_one_form(block: Array, fields: int) -> int:
    """How many rows a block has if each is `fields` fields with one blank after each; otherwise 0."""
    rows, found = 0, 0
    for at in range(0, len(block), _SLICE):
        part = block[at : at + _SLICE + 1]  # and the first byte of the next one
        blanks = part <= _BLANK
        if (not at and blanks[0]) or (blanks[1:] & blanks[:-1]).any():
            return 0
        found += int(np.count_nonzero(blanks[:_SLICE]))
        rows += int(np.count_nonzero(part[:_SLICE] == _NEWLINE))
    return rows if found == rows * fields else 0


@cache
def _options(form: Form, blank: str) -> tuple[Any, Any]:
    import pyarrow.csv as pa_csv

    texts = {str(place): pa.large_binary() for place in (0, form.document, form.intent) if place is not None}
    places = [0, form.document, form.value, *([] if form.intent is None else [form.intent])]
    converted = pa_csv.ConvertOptions(
        include_columns=list(map(str, places)),
        column_types=texts | {str(form.value): pa.float64()},
        null_values=[],
    )
    return pa_csv.ParseOptions(delimiter=blank, quote_char=False), converted


def _runs_of(ids: pa.Array) -> tuple[pa.Array, Array]:
    import pyarrow.compute as pc

    runs = pc.run_end_encode(ids, run_end_type=pa.int64())
    return runs.values, array_of(runs.run_ends)


def _by_python(form: Form, block: bytes) -> Block:
    queries, docs, numbers, intents = (list[bytes]() for _ in range(4))
    skipped: list[int] = []
    for at, line in enumerate(block.split(b"\n")[:-1]):
        found = line.translate(_BLANKS).split()
        if not found or found[0].startswith(b"#"):
            skipped.append(len(docs))
            continue
        if len(found) < form.fields or (len(found) > form.fields and not form.is_open):
            raise MalformedError(at, line)
        queries.append(found[0])
        docs.append(found[form.document])
        numbers.append(found[form.value])
        if form.intent is not None:
            intents.append(found[form.intent])
    return _block(queries, docs, numbers, intents, skipped, block)


def block_of_letor(block: Array) -> Block:
    """The labels and queries of lines `label [qid:query] feature:value ...`; features are skipped.

    A line without qid: has the empty query id.
    """
    data, ends = block.tobytes(), np.flatnonzero(block == _NEWLINE)
    labels, queries, skipped = list[bytes](), list[bytes](), list[int]()
    for at, start in enumerate([0, *(ends[:-1] + 1).tolist()]):
        label, query = _LETOR.match(data, start).groups()  # type: ignore[union-attr] # it always matches
        if label is None:
            skipped.append(len(labels))
            continue
        if query == b"":
            raise MalformedError(at, data[start : ends[at]])
        labels.append(label)
        queries.append(query or b"")
    return _block(queries, [], labels, [], skipped, data)


def _block(
    queries: list[bytes], docs: list[bytes], numbers: list[bytes], intents: list[bytes],
    skipped: list[int], data: bytes,
) -> Block:  # fmt: skip
    of_queries, of_docs, of_numbers, of_intents = (
        pa.array(each, pa.large_binary()) for each in (queries, docs, numbers, intents)
    )
    before = np.array(skipped, np.int64)
    try:
        values = array_of(as_text(of_numbers).cast(pa.float64()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # the latter of what is no UTF-8
        values = np.empty(len(numbers))
        for row, number in enumerate(numbers):
            try:
                if b"_" in number:  # which Python takes for a number
                    raise ValueError
                values[row] = float(number)
            except ValueError:
                line = row + int((before <= row).sum())
                reason = f'"{shown(number)}" is not a number'
                raise MalformedError(line, data.split(b"\n")[line], reason) from None
    return Block(*_runs_of(of_queries), of_docs, values, of_intents, before)


def as_text(ids: pa.Array) -> pa.Array:
    """Binary values as strings where they are UTF-8."""
    try:
        return ids.cast(pa.large_string())
    except pa.ArrowInvalid:
        return ids


def fields_of(line: bytes) -> list[bytes]:
    r"""Fields of a line as the kernels see them: whatever is not blank, and no byte above a blank is one.

    Python's own `split` takes control bytes for a part of a field, and in text a no-break space for a blank.

    >>> fields_of(b"301\x01Q0 caf\xc2\xa0e\r")
    [b'301', b'Q0', b'caf\xc2\xa0e']
    """
    return re.findall(rb"[^\x00-\x20]+", line)


def shown(text: bytes) -> str:
    """Bytes of a file as a message has them: in one line, without what a terminal would obey or not show."""
    signs = text.decode("utf-8", "backslashreplace")
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in signs)


def last_fields(block: Array) -> list[bytes]:
    """Fields of the last line of a block that is neither empty nor a comment."""
    size = 1 << 12
    while True:
        tail = block[-size:].tobytes()
        cut = 0 if size >= len(block) else tail.find(b"\n") + 1  # a line whose beginning is not in the tail
        for line in reversed(tail[cut:].split(b"\n")):
            if (fields := fields_of(line)) and not fields[0].startswith(b"#"):
                return fields
        if size >= len(block):
            return []
        size *= 16
