"""Read text files of lines: judgments, runs and LETOR, in blocks of whole lines.

pyarrow's CSV reader reads a block whose lines all have one form: as many fields, with one blank or one tab
between any two. Python reads the others.
"""

from __future__ import annotations

import os
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of
from fastndcg.common.threads import in_threads, processors
from fastndcg.errors import SourceError
from fastndcg.rankings.grouping import encode
from fastndcg.sources.opening import (
    Meter,
    cannot_read,
    meter_of_call,
    open_both,
    open_unpacking,
    path_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastndcg.typing import Path as PathLike

Array = npt.NDArray[Any]

_UNBOUNDED = 1 << 62  # where the last part ends: a file may be a pipe, or packed
_BLANK, _NEWLINE = 32, 10
_SLICE = (
    1 << 17
)  # bytes that are looked at together: what NumPy makes of more is memory that is new each time
_MARK = b"\xef\xbb\xbf"
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


class Sizes(NamedTuple):
    """How a file is cut, in bytes."""

    block: int = 1 << 20  # with what is made of it it stays in the second-level cache
    longest: int = 1 << 29  # of a line
    part: int = 8 << 20  # of a plain file for which another thread is worth while


_SIZES = Sizes()


class Lines(NamedTuple):
    """Columns of a file, a row for each line that is neither empty nor a comment."""

    path: str
    query_codes: Array  # for each row, which of `queries`
    queries: pa.Array  # distinct query ids in order of first appearance
    # large_string, or large_binary where some id is not UTF-8; empty where the lines have no ids
    docs: pa.Array
    values: npt.NDArray[np.float64]
    intents: pa.Array  # large_binary; empty where they are not read
    skipped: Array  # rows before which a line was skipped
    last: list[str]  # fields of the last line with a row on it

    def line_of(self, row: int) -> int:
        """Line of a row in the file, from 1."""
        return row + 1 + int(np.searchsorted(self.skipped, row, side="right"))


class _Block(NamedTuple):
    """Columns of a block; `skipped` are its rows before which a line was skipped."""

    queries: pa.Array  # a row for each run of rows of one query
    ends: Array  # of the runs
    docs: pa.Array
    values: Array
    intents: pa.Array
    skipped: Array


class _MalformedError(Exception):
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


# ---- blocks ----


def _block_of_lines(form: Form, block: Array) -> _Block:
    found = _by_arrow(form, block)
    return _by_python(form, block.tobytes()) if found is None else found


def _by_arrow(form: Form, block: Array) -> _Block | None:
    """The columns of a block whose lines all have one form, and none is a comment; None of another."""
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv

    rows = _rows_of_one_form(block, form.fields)
    blank = block[int(np.argmax(block[:_SLICE] <= _BLANK))].tobytes()
    # pyarrow would take the mark for no part of an id
    if not rows or blank not in b" \t" or block[:3].tobytes() == _MARK:
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
    return _Block(*runs, doc, array_of(value), intent[0] if intent else doc[:0], np.empty(0, np.int64))


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


def _by_python(form: Form, block: bytes) -> _Block:
    queries, docs, numbers, intents = (list[bytes]() for _ in range(4))
    skipped: list[int] = []
    for at, line in enumerate(block.split(b"\n")[:-1]):
        found = line.translate(_BLANKS).split()
        if not found or found[0].startswith(b"#"):
            skipped.append(len(docs))
            continue
        if len(found) < form.fields or (len(found) > form.fields and not form.is_open):
            raise _MalformedError(at, line)
        queries.append(found[0])
        docs.append(found[form.document])
        numbers.append(found[form.value])
        if form.intent is not None:
            intents.append(found[form.intent])
    return _block(queries, docs, numbers, intents, skipped, block)


def block_of_letor(block: Array) -> _Block:
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
            raise _MalformedError(at, data[start : ends[at]])
        labels.append(label)
        queries.append(query or b"")
    return _block(queries, [], labels, [], skipped, data)


def _block(
    queries: list[bytes], docs: list[bytes], numbers: list[bytes], intents: list[bytes],
    skipped: list[int], data: bytes,
) -> _Block:  # fmt: skip
    of_queries, of_docs, of_numbers, of_intents = (
        pa.array(each, pa.large_binary()) for each in (queries, docs, numbers, intents)
    )
    before = np.array(skipped, np.int64)
    try:
        values = array_of(_as_text(of_numbers).cast(pa.float64()))
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
                raise _MalformedError(line, data.split(b"\n")[line], reason) from None
    return _Block(*_runs_of(of_queries), of_docs, values, of_intents, before)


# ---- files ----


def read_lines(
    path: PathLike,
    form: Form | None,
    *,
    threads: int | None = None,
    sizes: Sizes = _SIZES,
) -> Lines:
    """Columns of all lines of a file.

    Parameters
    ----------
    path : path of a plain, gzip, bzip2 or Zstandard file
    form : Form, optional
        What a line looks like. None: LETOR.
    threads : int, optional
        Default: as many as this process may use.
    sizes : Sizes
        Of blocks, of lines, and of what is worth a thread.

    Raises
    ------
    SourceError
        A file that cannot be read, or a malformed line, with its number and text.
    """
    path = path_of(path, "path")
    meter, cuts = meter_of_call.get(), _cuts(path, threads or processors(), sizes)
    parts = [_Part(path, form, start, stop, meter, sizes) for start, stop in pairwise(cuts)]
    in_threads(_Part.read, parts)  # raises the first error in the file
    blocks = [block for part in parts for block in part.blocks]
    return _join(path, blocks, next((part.last for part in reversed(parts) if part.last), []))


def _cuts(path: str, threads: int, sizes: Sizes) -> list[int]:
    """Where each part begins, at the beginning of a line, and where the last one ends."""
    stream = open_unpacking(path)
    try:
        if isinstance(stream, pa.NativeFile) or not stream.seekable():
            return [0, _UNBOUNDED]
        size = os.fstat(stream.fileno()).st_size
        n_parts = max(1, min(threads, size // sizes.part))
        cuts = [0]
        for part in range(1, n_parts):
            at = size * part // n_parts
            stream.seek(at)
            while (block := stream.read(sizes.block // 16)) and (newline := block.find(b"\n")) < 0:
                at += len(block)
            if block and cuts[-1] < at + newline + 1 < size:
                cuts.append(at + newline + 1)
        return [*cuts, _UNBOUNDED]
    except OSError as error:
        raise cannot_read(path, error) from None
    finally:
        stream.close()


class _Part:
    """Part of a file, from the beginning of a line, and what is read from it."""

    def __init__(
        self, path: str, form: Form | None, start: int, stop: int, meter: Meter | None, sizes: Sizes
    ) -> None:
        self.path, self.start, self.stop = path, start, stop
        self._form, self._meter, self._sizes = form, meter, sizes
        self._packed: pa.NativeFile | None = None
        self._wanted = LETOR_LINE if form is None else form.wanted
        self.blocks: list[_Block] = []
        self.last: list[bytes] = []  # fields of the last line with a row on it

    def read(self) -> None:
        done, told_of, lines = 0, 0, 0
        for block in self._blocks_of_bytes():
            done += len(block)
            try:
                found = block_of_letor(block) if self._form is None else _block_of_lines(self._form, block)
            except _MalformedError as error:
                line = _newlines_before(self.path, self.start) + lines + error.line + 1
                raise error.of_file(self.path, line, self._wanted) from None
            self.blocks.append(found)
            lines += len(found.values) + len(found.skipped)
            if len(found.values):
                self.last = _last_fields(block)
            if self._meter is not None:
                now = done if self._packed is None else self._packed.tell()
                self._meter.add(now - told_of)
                told_of = now

    def _blocks_of_bytes(self) -> Iterator[Array]:
        """Blocks of whole lines; each is overwritten by the next one."""
        stream, self._packed = open_both(self.path)
        try:
            if self.start:
                stream.seek(self.start)
            left = self.stop - self.start
            buffer = bytearray(self._sizes.block)
            kept, first = 0, self.start == 0  # bytes of a line that has no end yet
            while True:
                if kept + 1 >= len(buffer):
                    if kept >= self._sizes.longest:
                        raise SourceError(
                            f"{self.path} has a line of more than {kept:,} bytes; "
                            f"is it a text file? Wanted {self._wanted}"
                        )
                    buffer = buffer + bytes(len(buffer))
                with memoryview(buffer) as view, view[kept : min(len(buffer) - 1, kept + left)] as room:
                    got = stream.readinto(room) if len(room) else 0
                if first and buffer.startswith(_MARK):  # read as blanks
                    buffer[:3] = b"   "
                first = False
                left -= got or 0
                end = kept + (got or 0)
                if not got:
                    if kept:  # the last line of the file, without a newline
                        buffer[kept] = _NEWLINE
                        yield np.frombuffer(buffer, np.uint8, kept + 1)
                    return
                stop = buffer.rfind(b"\n", kept, end) + 1
                if stop:
                    yield np.frombuffer(buffer, np.uint8, stop)
                    buffer[: end - stop] = buffer[stop:end]
                    kept = end - stop
                else:
                    kept = end
        except OSError as error:
            raise cannot_read(self.path, error) from None
        finally:
            stream.close()


def _newlines_before(path: str, stop: int) -> int:
    total = 0
    if stop:
        with Path(path).open("rb") as stream:
            while stop > 0 and (block := stream.read(min(_SIZES.block, stop))):
                total += block.count(b"\n")
                stop -= len(block)
    return total


def _join(path: str, blocks: list[_Block], last: list[bytes]) -> Lines:
    def column(name: str) -> pa.Array:
        pieces = [getattr(block, name) for block in blocks]
        return pa.concat_arrays(pieces) if pieces else pa.array([], pa.large_binary())

    none = [np.empty(0, np.int64)]
    sizes = [len(block.values) for block in blocks]
    before = np.append(0, np.cumsum(sizes, dtype=np.int64)).tolist()
    skipped = [block.skipped + start for block, start in zip(blocks, before[:-1], strict=True)]
    lengths = [np.diff(block.ends, prepend=0) for block in blocks]
    runs = encode(_as_text(column("queries")))
    queries = runs.dictionary
    if pa.types.is_large_string(queries.type):
        queries = queries.cast(pa.string())
    return Lines(
        path,
        np.repeat(array_of(runs.indices), np.concatenate(lengths or none)),
        queries,
        _as_text(column("docs")),
        np.concatenate([block.values for block in blocks] or [np.empty(0)]),
        column("intents"),
        np.concatenate(skipped or none),
        [field.decode("utf-8", "backslashreplace") for field in last],
    )


def _as_text(ids: pa.Array) -> pa.Array:
    """Binary values as strings where they are UTF-8."""
    try:
        return ids.cast(pa.large_string())
    except pa.ArrowInvalid:
        return ids


def whole(values: npt.NDArray[np.float64]) -> Array:
    """Grades as integers where all of them are."""
    with np.errstate(invalid="ignore"):
        integers = values.astype(np.int64)
    return integers if np.array_equal(integers, values) and (abs(integers) < 1 << 53).all() else values


# ---- fields ----


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


def _last_fields(block: Array) -> list[bytes]:
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
