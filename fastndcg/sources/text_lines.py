"""Read text files of lines, judgments, runs and LETOR, in blocks of whole lines that threads parse.

A `Form` declares the fields of a line, which regular expressions match. A block whose lines all have the same
number of fields, with single blanks or single tabs between them, is parsed by pyarrow's CSV reader instead,
in half the time.
"""

from __future__ import annotations

import re
from contextlib import closing
from functools import cache
from io import BytesIO
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of
from fastndcg.common.threads import processors
from fastndcg.errors import SourceError, count_of, warn
from fastndcg.sources.open_file import open_unpacking, path_of, tell_of_bytes, unreadable
from fastndcg.sources.prefetch import decoded_ahead

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

    from fastndcg.common.arrays import Array
    from fastndcg.typing import Path as PathLike

_BLANK, _NEWLINE = 32, 10
_SLICE = 1 << 17  # bytes examined together; for more, NumPy allocates new memory each time
_MARK = b"\xef\xbb\xbf"
_BLANKS = bytes.maketrans(bytes(range(_BLANK)), b" " * _BLANK)
# a blank, any other byte, and a blank other than a tab
_B, _S, _I = r"[\x00-\x20]", r"[^\x00-\x20]", r"[\x00-\x08\x0a-\x20]"


class Form(NamedTuple):
    """A kind of line: its fields, separated by blanks, or a pattern with groups of the same names."""

    expected: str  # for messages
    fields: tuple[str, ...] = ()  # query, doc, value, intent and tag; "" is ignored
    is_open: bool = False  # the last field may have several words
    pattern: str = ""


QRELS = Form("a line of a TREC qrels file: query iteration doc grade", ("query", "", "doc", "value"))
INTENTS = QRELS._replace(fields=("query", "intent", "doc", "value"))
RUN = Form(
    "a line of a TREC run: query Q0 doc rank score tag",
    ("query", "", "doc", "", "value", "tag"),
    is_open=True,
)
THREE_FIELDS = Form(
    "a line of an MS MARCO run: query doc rank; or of query doc score", ("query", "doc", "value")
)
JUDGED = THREE_FIELDS._replace(expected="a line of judgments: query doc grade, or query iteration doc grade")
LISTED = Form(
    "a line of a judgment list: grade qid:query # doc",
    pattern=rf"^{_B}*(?P<value>{_S}+){_B}+qid:(?P<query>{_S}+)[^#]*#{_B}*(?:docid{_B}*={_B}*)?(?P<doc>{_S}+)",
)
LETOR_LINE = Form(
    "label qid:query feature:value ...",
    pattern=rf"^{_B}*(?P<value>[^#\x00-\x20]{_S}*)(?:{_B}+qid:(?P<query>{_S}+))?",
)
_BLOCK = 1 << 20  # bytes; a block and its columns stay in the second-level cache


class Lines(NamedTuple):
    """Columns of a file: one row per line, except for empty lines and comments."""

    query_codes: Array  # index into `queries`, per row
    queries: pa.Array  # distinct query ids in order of first appearance; "" for LETOR lines without one
    # large_string, or large_binary if some id is not UTF-8; empty if lines have no ids
    docs: pa.Array
    values: npt.NDArray[np.float64]
    intents: pa.Array  # large_binary; empty unless they are read
    skipped: Array  # for each skipped line, the row that follows it
    tag: str  # of the last row
    form: Form

    def line_of(self, row: int) -> int:
        """Return the line number of a row, from 1."""
        return row + 1 + int(np.searchsorted(self.skipped, row, side="right"))


class Block(NamedTuple):
    """Columns of a block of lines."""

    queries: pa.Array  # one id per run of rows of a query
    ends: Array  # ends of the runs
    docs: pa.Array
    values: Array
    intents: pa.Array
    skipped: Array  # for each skipped line, the row that follows it


def read_lines(path: PathLike, *forms: Form, threads: int | None = None, size: int = _BLOCK) -> Lines:
    """Read all lines of a plain or compressed file, in the last form that its first line matches, or else in
    the first form.

    Warns about query ids that begin with #, which may be comments. Raises `SourceError` if the file cannot be
    read, and for a malformed line, with its number and text.
    """
    path, form = path_of(path, "path"), forms[0]
    stream, packed = open_unpacking(path)

    def readers() -> Iterator[Generator[tuple[Block, bytes], None, None]]:
        nonlocal form
        for number, block in enumerate(whole_lines(stream, size)):
            text = block
            if not number:
                text = b"   " + block[3:] if block.startswith(_MARK) else block  # replace the byte order mark
                first = first_row(BytesIO(text), *forms)
                form = next((each for each in reversed(forms) if is_row(first, each)), form)
                if _has_all_tabs(first, forms[0]):  # with fewer words, a field is empty
                    form = max(form, forms[0], key=lambda each: len(each.fields))
            yield parsed(text)

    def parsed(block: bytes) -> Generator[tuple[Block, bytes], None, None]:
        yield _by_csv(form, block) or _by_pattern(form, block), block

    blocks, lines, last = list[Block](), 0, b""
    tell, reported = tell_of_bytes.get(), 0
    try:
        with stream, closing(decoded_ahead(readers(), threads or processors())) as decoded:
            for block, text in decoded:
                blocks.append(block)
                lines += len(block.values) + len(block.skipped)
                last = text if len(block.values) else last
                position = reported + len(text) if packed is None else packed.tell()
                tell(position - reported)
                reported = position
    except MalformedError as error:
        expected = form.expected
        if len(forms) > 1 and (not lines or form is not forms[0]):
            value = "relevance" if forms[1] is JUDGED else "score"
            expected += (
                "; or pass the name of each field to evaluate or read_qrels_run, as in "
                f'columns=["query_id", "doc_id", "{value}"]'
            )
        raise error.of_file(path, lines, expected) from None
    except (OSError, UnicodeError, OverflowError, pa.ArrowException) as error:
        raise unreadable(path, error, "text") from None
    joined = _join(form, blocks, last)
    if form.fields:
        _warn_of_hashes(path, joined.queries)
    return joined


def _warn_of_hashes(path: str, queries: pa.Array) -> None:
    import pyarrow.compute as pc

    begun = queries.filter(pc.starts_with(queries, "#"))
    if len(begun):
        first = shown(begun[0].cast(pa.large_binary()).as_py())
        warn(
            f"{path}: lines that begin with # look like data and are counted: "
            f'{count_of(len(begun), "query")}, as "{first}". If they are comments, write a blank after the '
            "#, or remove them."
        )


def whole_lines(stream: Any, size: int) -> Iterator[bytes]:
    """Yield whole lines of a stream, about `size` bytes at a time; completes the last one with a newline."""
    begun: list[bytes] = []  # an incomplete line
    while more := stream.read(size):
        end = more.rfind(b"\n") + 1
        begun.append(more[:end] if end else more)
        if end:
            yield b"".join(begun)
            begun = [more[end:]]
    if rest := b"".join(begun):
        yield rest + b"\n"


def _join(form: Form, blocks: list[Block], last: bytes) -> Lines:
    def column(name: str) -> pa.Array:
        pieces = [getattr(block, name) for block in blocks]
        return pa.concat_arrays(pieces) if pieces else pa.array([], pa.large_binary())

    none = [np.empty(0, np.int64)]
    before = accumulate([len(block.values) for block in blocks], initial=0)
    skipped = [block.skipped + start for block, start in zip(blocks, before, strict=False)]
    lengths = [np.diff(block.ends, prepend=0) for block in blocks]
    runs = as_text(column("queries")).dictionary_encode()
    queries = runs.dictionary
    if pa.types.is_large_string(queries.type):
        queries = queries.cast(pa.string())
    of_last = _match(first_row(reversed(last.split(b"\n")), form), form) or {}
    return Lines(
        np.repeat(array_of(runs.indices), np.concatenate(lengths or none)),
        queries,
        as_text(column("docs")),
        np.concatenate([block.values for block in blocks] or [np.empty(0)]),
        column("intents"),
        np.concatenate(skipped or none),
        of_last.get("tag", b"").decode("utf-8", "backslashreplace"),
        form,
    )


# ---- a block ----


class MalformedError(Exception):
    """A line of no expected form: its number in its block, from 0, and its text."""

    def __init__(self, line: int, text: bytes, reason: str = "") -> None:
        self._line, self._text = line, shown(text.rstrip(b"\r\n"))
        self._reason = reason or count_of(len(words(text)), "field")

    def of_file(self, path: str, before: int, expected: str) -> SourceError:
        """Return the error with path and line number; `before` lines precede the block."""
        text = self._text if len(self._text) <= 120 else self._text[:117] + "..."
        return SourceError(
            f'{path}, line {before + self._line + 1}: {self._reason} in "{text}"; expected {expected}'
        )


def _by_csv(form: Form, block: bytes) -> Block | None:
    """Parse a block whose lines are all of one form and none of which is a comment; None for other blocks."""
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv

    data = np.frombuffer(block, np.uint8)
    rows = _rows_of_one_form(data, len(form.fields))
    blank = chr(data[int(np.argmax(data[:_SLICE] <= _BLANK))])
    # pyarrow would drop a byte order mark, which here is part of an id
    if not rows or blank not in " \t" or block.startswith(_MARK):
        return None
    names = [field or str(place) for place, field in enumerate(form.fields)]
    kinds = {name: pa.large_binary() for name in ("query", "doc", "intent") if name in names}
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(pa.py_buffer(block)),
            pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1),
            pa_csv.ParseOptions(delimiter=blank, quote_char=False),
            pa_csv.ConvertOptions(
                include_columns=[*kinds, "value"],
                column_types=kinds | {"value": pa.float64()},
                null_values=[],
            ),
        )
    except pa.ArrowInvalid:
        return None
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    result = _block(columns, array_of(columns["value"]), np.empty(0, np.int64))
    # a pattern, because pyarrow imports pandas to compare with a Python value
    is_comment = pc.any(pc.match_substring_regex(result.queries, "^#$")).as_py()
    return None if len(table) != rows or is_comment else result


def _rows_of_one_form(block: Array, fields: int) -> int:
    """Return the number of rows if each has `fields` fields with one blank after each, otherwise 0."""
    rows, n_blanks = 0, 0
    for at in range(0, len(block) if fields else 0, _SLICE):
        part = block[at : at + _SLICE + 1]  # and the first byte of the next one
        blanks = part <= _BLANK
        if (not at and blanks[0]) or (blanks[1:] & blanks[:-1]).any():
            return 0
        n_blanks += int(np.count_nonzero(blanks[:_SLICE]))
        rows += int(np.count_nonzero(part[:_SLICE] == _NEWLINE))
    return rows if n_blanks == rows * fields else 0


def _by_pattern(form: Form, block: bytes) -> Block:
    """Parse a block of any lines. Raises `MalformedError`."""
    import pyarrow.compute as pc

    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE) + 1
    buffers = [None, pa.py_buffer(np.append(0, ends)), pa.py_buffer(block)]
    lines = pa.Array.from_buffers(pa.large_binary(), len(ends), buffers)
    patterns = _patterns(form) if b"\t" in block else _patterns(form)[-1:]
    matches = pc.coalesce(*(pc.extract_regex(lines, pattern) for pattern in patterns))
    is_row = array_of(matches.is_valid()).copy()
    if len(patterns) > 1:  # where a field between tabs is empty, blanks in another must not separate fields
        of_tabs = array_of(pc.match_substring_regex(lines, patterns[0]))
        is_row &= of_tabs | (array_of(pc.count_substring(lines, "\t")) != len(form.fields) - 1)
    begins = array_of(pc.match_substring_regex(lines, rf"^{_B}*(?:#|$)"))  # comments and empty lines
    for line in np.flatnonzero(is_row & begins).tolist():
        is_row[line] = not is_comment(lines[line].as_py(), form)
    malformed = np.flatnonzero(~(is_row | begins))
    if len(malformed):
        line = lines[int(malformed[0])].as_py()
        reason = "a field between tabs is empty" if _has_all_tabs(line, form) else ""
        raise MalformedError(int(malformed[0]), line, reason)
    others, rows = np.flatnonzero(~is_row), np.flatnonzero(is_row)
    matches = matches.take(pa.array(rows)) if len(others) else matches
    columns = dict(zip([field.name for field in matches.type], matches.flatten(), strict=True))
    numbers = columns["value"]
    try:
        values = array_of(as_text(numbers).cast(pa.float64()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # the latter for invalid UTF-8
        texts = numbers.to_pylist()
        row = next(row for row, number in enumerate(texts) if not is_number(number))
        reason = f'"{shown(texts[row])}" is not a number'
        raise MalformedError(int(rows[row]), lines[int(rows[row])].as_py(), reason) from None
    return _block(columns, values, others - np.arange(len(others)))


def _block(columns: Mapping[str, pa.Array], values: Array, skipped: Array) -> Block:
    import pyarrow.compute as pc

    query = columns["query"]
    runs = pc.run_end_encode(query, run_end_type=pa.int64())
    docs, intents = (columns.get(name, query[:0]) for name in ("doc", "intent"))
    return Block(runs.values, array_of(runs.run_ends), docs, values, intents, skipped)


def as_text(ids: pa.Array) -> pa.Array:
    """Cast binary values to strings if they are UTF-8."""
    try:
        return ids.cast(pa.large_string())
    except pa.ArrowInvalid:
        return ids


# ---- a line ----


@cache
def _patterns(form: Form) -> tuple[str, ...]:
    """Return the patterns that match a line of a form, in order: fields between tabs, which may have blanks,
    then fields separated by blanks.

    Bytes up to 0x20 are blanks. Python's `split` would treat control bytes as part of a field, and in strings
    a no-break space as a blank.
    """
    if form.pattern:
        return (form.pattern,)
    starts = [f"(?P<{name}>" if name else "(?:" for name in form.fields]
    more = ("(?s:.*)", rf"(?:{_I}[^\t]*)?(?:\t{_B}*)?$") if form.is_open else (f"{_B}*$", f"{_B}*$")
    ways = (
        (f"^{_I}*", rf"{_S}(?:[^\t]*{_S})?", rf"{_I}*\t{_I}*", more[0]),
        (f"^{_B}*", f"{_S}+", f"{_B}+", more[1]),
    )
    return tuple(
        before + blank.join(f"{start}{field})" for start in starts) + end
        for before, field, blank, end in ways
    )


def _has_all_tabs(line: bytes, form: Form) -> bool:
    """Return whether a line has exactly as many tabs as a form."""
    return line.count(b"\t") == len(form.fields) - 1


def _match(line: bytes, form: Form) -> dict[str, bytes] | None:
    patterns = _patterns(form)
    match = re.match(patterns[0].encode(), line)
    if match is None and len(patterns) > 1 and not _has_all_tabs(line, form):
        match = re.match(patterns[1].encode(), line)
    return match and match.groupdict(b"")


def words(line: bytes) -> list[bytes]:
    return line.translate(_BLANKS).split()


def is_row(line: bytes, *forms: Form) -> bool:
    r"""Return whether a line has one of the forms, with a number where one is expected.

    >>> is_row(b"301\t0\tNew York\t1", QRELS), is_row(b"301 0 New York 1", QRELS)
    (True, False)
    """
    return any((fields := _match(line, form)) and is_number(fields["value"]) for form in forms)


def is_comment(line: bytes, *forms: Form) -> bool:
    """Return whether a line is a comment: it begins with #, and not as a row whose query id is a hashtag."""
    first = [*words(line), b""][0]
    return first == b"#" or (first.startswith(b"#") and not is_row(line, *forms))


def first_row(lines: Iterable[bytes], *forms: Form) -> bytes:
    """Return the first line that is neither empty nor a comment."""
    return next((line for line in lines if words(line) and not is_comment(line, *forms)), b"")


def is_number(text: str | bytes) -> bool:
    """Return whether pyarrow parses text as a number. Python's `float` also accepts 1_0 and other scripts."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and ("_" if isinstance(text, str) else b"_") not in text  # type: ignore[operator]


def shown(text: bytes) -> str:
    """Format bytes of a file for a message: one line, with control characters escaped."""
    characters = text.decode("utf-8", "backslashreplace")
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in characters
    )
