"""Text files of lines: judgments, runs and LETOR, in blocks of whole lines that threads parse.

pyarrow's CSV reader reads a block whose lines all have one form: as many fields, with one blank or one tab
between any two. Python reads the others.
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
    from collections.abc import Generator, Iterable, Iterator

    from fastndcg.common.arrays import Array
    from fastndcg.typing import Path as PathLike

_BLANK, _NEWLINE = 32, 10
_SLICE = 1 << 17  # bytes that are looked at together: NumPy's memory for more is new each time
_MARK = b"\xef\xbb\xbf"
_BLANKS = bytes.maketrans(bytes(range(_BLANK)), b" " * _BLANK)
_ALL_BLANKS = bytes(range(_BLANK + 1))
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
    intents: tuple[int, ...] = ()  # fields of names that are read besides, with a blank between two


QRELS = Form("a line of a TREC qrels file: query iteration doc grade", 4, 2, 3)
INTENTS = QRELS._replace(intents=(1,))
RUN = Form("a line of a TREC run: query Q0 doc rank score tag", 6, 2, 4, is_open=True)
THREE_FIELDS = Form("a line of an MS MARCO run: query doc rank; or of query doc score", 3, 1, 2)
JUDGED = THREE_FIELDS._replace(wanted="a line of judgments: query doc grade, or query iteration doc grade")
LISTED = QRELS._replace(wanted="a line of a judgment list: grade qid:query # doc")
_LISTED_LINE = re.compile(
    rb"(?m)^[ \t]*(\S+)[ \t]+qid:(\S+)[^#\n]*#[ \t]*(?:docid[ \t]*=[ \t]*)?(\S+)[^\n]*$"
)
LETOR_LINE = "label qid:query feature:value ..."
# bytes of a block, which stays in the second-level cache with what is made of it, and of the longest line
_BLOCK, _LONGEST = 1 << 20, 1 << 29


class Lines(NamedTuple):
    """Columns of a file, a row for each line that is neither empty nor a comment."""

    query_codes: Array  # for each row, which of `queries`
    queries: pa.Array  # distinct query ids in order of first appearance
    # large_string, or large_binary where some id is not UTF-8; empty where the lines have no ids
    docs: pa.Array
    values: npt.NDArray[np.float64]
    intents: pa.Array  # large_binary; empty where they are not read
    skipped: Array  # rows before which a line was skipped
    last: list[str]  # fields of the last line with a row on it
    form: Form | None

    def line_of(self, row: int) -> int:
        """Line of a row in the file, from 1."""
        return line_of(self.skipped, row)


class Block(NamedTuple):
    """Columns of a block; `skipped` are its rows before which a line was skipped."""

    queries: pa.Array  # a row for each run of rows of one query
    ends: Array  # of the runs
    docs: pa.Array
    values: Array
    intents: pa.Array
    skipped: Array


def line_of(skipped: Array, row: int) -> int:
    """Line of a row, from 1, where lines before these rows were skipped."""
    return row + 1 + int(np.searchsorted(skipped, row, side="right"))


def read_lines(
    path: PathLike,
    form: Form | None,
    *,
    or_three: Form | None = None,
    threads: int | None = None,
    size: int = _BLOCK,
    longest: int = _LONGEST,
) -> Lines:
    """Columns of all lines of a plain, gzip, bzip2 or Zstandard file; `form` is None for LETOR.

    `or_three` is the form of all if the first line has three fields, the last a number. Warns of query ids
    that begin with #, which may have been meant as comments.

    Raises `SourceError` for a file that cannot be read, or a malformed line, with its number and text.
    """
    path = path_of(path, "path")
    stream, packed = open_unpacking(path)

    def readers() -> Iterator[Generator[tuple[Block, bytes], None, None]]:
        nonlocal form
        for number, block in enumerate(whole_lines(stream, size, longest)):
            if number:
                yield parsed(block)
                continue
            first = b"   " + block[3:] if block.startswith(_MARK) else block  # the mark is read as blanks
            if or_three is not None and form is not None:
                line = first_row(BytesIO(first), form, or_three)
                form = or_three if is_row(line, or_three) else form
            yield parsed(first)

    def parsed(block: bytes) -> Generator[tuple[Block, bytes], None, None]:
        if form is LISTED:
            block = _LISTED_LINE.sub(rb"\2\t0\t\3\t\1", block)
        yield _of_letor(block) if form is None else _by_arrow(form, block) or _by_python(form, block), block

    blocks, lines, last = list[Block](), 0, b""
    tell, told = tell_of_bytes.get(), 0
    try:
        with stream, closing(decoded_ahead(readers(), threads or processors())) as found:
            for block, text in found:
                blocks.append(block)
                lines += len(block.values) + len(block.skipped)
                last = text if len(block.values) else last
                now = told + len(text) if packed is None else packed.tell()
                tell(now - told)
                told = now
    except (MalformedError, OverflowError) as error:
        wanted = LETOR_LINE if form is None else form.wanted
        if isinstance(error, MalformedError):
            if or_three is not None and (not lines or form is or_three):
                value = "relevance" if or_three is JUDGED else "score"
                wanted += (
                    "; or pass the name of each field to evaluate or read_qrels_run, as in "
                    f'columns=["query_id", "doc_id", "{value}"]'
                )
            raise error.of_file(path, lines + error.line + 1, wanted) from None
        raise SourceError(
            f"{path} has a line of more than {error} bytes; is it a text file? Expected {wanted}"
        ) from None
    except (OSError, UnicodeError, pa.ArrowException) as error:
        raise unreadable(path, error, "text") from None
    joined = _join(form, blocks, last)
    if form is not None:
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


def whole_lines(stream: Any, size: int, longest: int = 1 << 62) -> Iterator[bytes]:
    """Whole lines of a stream, about `size` bytes of them at a time; the last one ends, too.

    Raises `OverflowError` for a line of more than `longest` bytes.
    """
    begun: list[bytes] = []  # of a line
    while more := stream.read(size):
        end = more.rfind(b"\n") + 1
        begun.append(more[:end] if end else more)
        if end:
            yield b"".join(begun)
            begun = [more[end:]]
        elif sum(map(len, begun)) > longest:
            raise OverflowError(f"{longest:,}")
    if rest := b"".join(begun):
        yield rest + b"\n"


def _join(form: Form | None, blocks: list[Block], last: bytes) -> Lines:
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
    of_last = first_row(reversed(last.split(b"\n")), *([] if form is None else [form]))
    return Lines(
        np.repeat(array_of(runs.indices), np.concatenate(lengths or none)),
        queries,
        as_text(column("docs")),
        np.concatenate([block.values for block in blocks] or [np.empty(0)]),
        column("intents"),
        np.concatenate(skipped or none),
        [field.decode("utf-8", "backslashreplace") for field in fields_of(of_last, form)],
        form,
    )


# ---- a block ----


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
            f"expected {wanted}"
        )


def _by_arrow(form: Form, block: bytes) -> Block | None:
    """The columns of a block whose lines all have one form, and none is a comment; None of another."""
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv

    data = np.frombuffer(block, np.uint8)
    rows = _rows_of_one_form(data, form.fields)
    blank = chr(data[int(np.argmax(data[:_SLICE] <= _BLANK))])
    # pyarrow would take the mark for no part of an id
    if not rows or blank not in " \t" or block.startswith(_MARK):
        return None
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(pa.py_buffer(block)),
            pa_csv.ReadOptions(
                column_names=list(map(str, range(form.fields))), use_threads=False, block_size=len(block) + 1
            ),
            *_options(form, blank),
        )
    except pa.ArrowInvalid:
        return None
    columns = [table[name].combine_chunks() for name in table.column_names]
    query, doc, value, *names = columns
    runs = _runs_of(query)
    # a pattern, since pyarrow imports pandas to compare with a Python value
    if len(table) != rows or pc.any(pc.match_substring_regex(runs[0], "^#$")).as_py():  # of a comment
        return None
    intents = pc.binary_join_element_wise(*names, pa.scalar(b" ", pa.large_binary())) if names else doc[:0]
    return Block(*runs, doc, array_of(value), intents, np.empty(0, np.int64))


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

    texts = {str(place): pa.large_binary() for place in (0, form.document, *form.intents)}
    places = [0, form.document, form.value, *form.intents]
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
        if len(found) > form.fields:  # some have blanks
            found = fields_of(line, form)
        if not found or (found[0].startswith(b"#") and is_comment(line, form)):
            skipped.append(len(docs))
            continue
        if len(found) < form.fields or (len(found) > form.fields and not form.is_open):
            raise MalformedError(at, line)
        queries.append(found[0])
        docs.append(found[form.document])
        numbers.append(found[form.value])
        if form.intents:
            intents.append(b" ".join(found[place] for place in form.intents))
    return _block(queries, docs, numbers, intents, skipped, block)


def _of_letor(data: bytes) -> Block:
    """The labels and queries of lines `label [qid:query] feature:value ...`; features are skipped.

    A line without qid: has the empty query id.
    """
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
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
                values[row] = _number(number)
            except ValueError:
                line = line_of(before, row) - 1
                reason = f'"{shown(number)}" is not a number'
                raise MalformedError(line, data.split(b"\n")[line], reason) from None
    return Block(*_runs_of(of_queries), of_docs, values, of_intents, before)


def as_text(ids: pa.Array) -> pa.Array:
    """Binary values as strings where they are UTF-8."""
    try:
        return ids.cast(pa.large_string())
    except pa.ArrowInvalid:
        return ids


def fields_of(line: bytes, form: Form | None = None) -> list[bytes]:
    r"""Fields of a line: between its tabs, if it has those of the form, so that ids with blanks stay whole;
    otherwise whatever is not blank, and no byte above a blank is one.

    Python's own `split` takes control bytes for a part of a field, and in text a no-break space for a blank.

    >>> fields_of(b"301\x01Q0 caf\xc2\xa0e\r")
    [b'301', b'Q0', b'caf\xc2\xa0e']
    >>> fields_of(b"301\t0\tNew York\t1", QRELS)
    [b'301', b'0', b'New York', b'1']
    """
    found = line.translate(_BLANKS).split()
    if form is None or len(found) <= form.fields or line.count(b"\t") < form.fields - 1:
        return found
    between = [field.strip(_ALL_BLANKS) for field in line.strip(_ALL_BLANKS).split(b"\t")]
    return between if all(between) and (form.is_open or len(between) == form.fields) else found


def is_row(line: bytes, form: Form) -> bool:
    """Whether a line has the form: as many fields, and a number where one is expected."""
    fields = fields_of(line, form)
    try:
        _number(fields[form.value])
    except (IndexError, ValueError):
        return False
    return len(fields) == form.fields or (form.is_open and len(fields) > form.fields)


def is_comment(line: bytes, *forms: Form) -> bool:
    """Whether a line begins with #, and is no row of these forms with such a query id, as hashtags are."""
    text = line.strip(_ALL_BLANKS)
    is_hashtag = bool(text[1:2].strip(_ALL_BLANKS)) and any(is_row(text, form) for form in forms)
    return text.startswith(b"#") and not is_hashtag


def first_row(lines: Iterable[bytes], *forms: Form) -> bytes:
    """The first line that is neither empty nor a comment in files of these forms."""
    return next((line for line in lines if fields_of(line) and not is_comment(line, *forms)), b"")


def _number(field: bytes) -> float:
    if b"_" in field:  # which Python takes for a number
        raise ValueError
    return float(field)


def shown(text: bytes) -> str:
    """Bytes of a file as a message has them: in one line, without what a terminal would obey or not show."""
    signs = text.decode("utf-8", "backslashreplace")
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in signs)
