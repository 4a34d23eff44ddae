"""Reads TREC files and LETOR files, in blocks of whole lines.

A block ends with a newline, so no loop needs to check for the end of the data. Values are appended to columns
that the caller has made large enough. `filled` counts the entries of each column, and is passed on from block
to block.

A block is read in chunks of whole lines. A chunk is read column by column: first the places of all fields,
then all document ids, all query ids and all numbers. Reading line by line took twice as long.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.marks import block, driver
from .decimals import N_WORDS, read_number, read_numbers
from .words import (
    BLANK,
    COLON,
    HASH,
    NEWLINE,
    bits_of_64,
    copy_widely,
    count_bits,
    element,
    lowest_bit,
    same_bytes,
    same_text,
    skip_blanks,
    skip_field,
    skip_line,
)

ROWS, DOC_BYTES, QUERIES, QUERY_BYTES, SKIPPED, ODD = range(6)  # entries of `filled`
_CHUNK = 1 << 14  # bytes of a chunk: the places of its fields fit the first-level cache
_SHORTEST = 8  # bytes of a line of four fields


class TextColumns(NamedTuple):
    """Columns that are read from the lines of a file."""

    doc_bytes: Array  # uint8: document ids, one after the other
    doc_offsets: Array  # int64: start of each row's id in `doc_bytes`, and the end of the last one
    query_bytes: Array  # uint8: query ids; one for each run of rows of the same query
    query_ends: Array  # int64: end of each query id in `query_bytes`
    query_rows: Array  # int64: first row of each run
    values: Array  # float64: the score or the grade of each row
    skipped: Array  # int64: for each comment or empty line, the row that follows it
    odd: Array  # int64 (:, 3): row, start and end of each number that a slower reader must read


_USUAL_BLANKS = 12  # of 64 bytes; so many are always written: a branch on their number would be mispredicted


@block
def find_blanks(data: Array, start: int, stop: int, out: Array) -> tuple[int, int]:
    """Write the places of blanks and newlines to `out`, in order; returns how many there are, and how many
    are newlines.

    `out` has room for 64 entries more.
    """
    found, lines, at = 0, 0, start
    one, none = np.uint64(1), np.uint64(0)
    while at + 64 <= stop:
        bits, newlines = bits_of_64(data, at, BLANK, NEWLINE)
        lines += count_bits(newlines)
        here = out[found : found + 64]
        found += count_bits(bits)
        for i in range(_USUAL_BLANKS):
            here[i] = at + lowest_bit(bits)
            bits &= bits - one
        i = _USUAL_BLANKS
        while bits != none:
            here[i] = at + lowest_bit(bits)
            bits &= bits - one
            i += 1
        at += 64
    while at < stop:
        if data[at] <= BLANK:
            out[found] = at
            found += 1
            lines += data[at] == NEWLINE
        at += 1
    return found, lines


@block
def blanks_of_a_line(
    data: Array, start: int, blanks: Array, found: int, lines: int, fields: int, is_open: bool
) -> int:
    """The number of blanks of each line, its newline included, where all lines have the same form; otherwise
    0.

    The form: no blank before the first field and one after each field. After the last of `fields` come blanks
    only, or anything where the form `is_open`. No line is a comment.
    """
    each = found // max(lines, 1)
    if each < fields or each * lines != found:
        return 0
    alike, at = True, start
    for line in range(lines):
        end = element(blanks, line * each + each - 1)
        alike &= (element(data, end) == NEWLINE) & (element(data, at) != HASH)
        at = end + 1
    close, close_after = 0, 0
    before, after = blanks[: found - 1], blanks[1:found]
    for i in range(found - 1):
        close += after[i] - before[i] <= 1
    for line in range(lines):
        for i in range(line * each + fields, line * each + each):
            close_after += element(blanks, i) - element(blanks, i - 1) <= 1
    alike &= (blanks[0] > start) & (close == close_after)
    alike &= is_open | (close_after == lines * (each - fields))
    return each if alike else 0


@block
def find_fields(
    data: Array, start: int, stop: int, row: int, fields: int, table: Array, skipped: Array, n_skipped: int
) -> tuple[int, int, int, int]:
    """Find the fields of lines of any form, and write them to `table` as the six blanks of a line of six
    fields.

    The six are those of `query iteration doc rank score tag`. The number, a grade, rank or score, stands at
    the place of the score, so the blank after the document and the blank before the number are two entries.
    Returns how many lines are rows, the start of the first row, the number of comments and empty lines so
    far, and the start of the first malformed line or -1.
    """
    at, lines, first = start, 0, start
    while at < stop:
        query_at = skip_blanks(data, at)
        if data[query_at] == NEWLINE or data[query_at] == HASH:
            skipped[n_skipped] = row + lines
            n_skipped += 1
            at = skip_line(data, query_at)
            continue
        query_stop = skip_field(data, query_at)
        doc_at = skip_blanks(data, query_stop)
        if fields > 3:
            doc_at = skip_blanks(data, skip_field(data, doc_at))
        doc_stop = skip_field(data, doc_at)
        number_at = skip_blanks(data, doc_stop)
        if fields > 4:
            number_at = skip_blanks(data, skip_field(data, number_at))
        number_stop = skip_field(data, number_at)
        rest = skip_blanks(data, number_stop)
        # the tag may have several words, which are skipped
        if doc_stop == doc_at or number_stop == number_at or (data[rest] == NEWLINE) == (fields > 4):
            return lines, first, n_skipped, at
        if lines == 0:
            first = query_at
        else:
            table[6 * lines - 1] = query_at - 1
        line = table[6 * lines : 6 * lines + 6]
        line[0], line[1], line[2] = query_stop, doc_at - 1, doc_stop
        line[3], line[4], line[5] = number_at - 1, number_stop, number_stop
        lines += 1
        at = skip_line(data, rest)
    return lines, first, n_skipped, -1


@block
def keep_documents(
    data: Array, table: Array, lines: int, each: int, row: int, out: Array, offsets: Array, end: int
) -> int:
    """Append the third field of each line to `out`; returns the end of the last one.

    The copy includes bytes after an id, which the next id overwrites.
    """
    last, last_end = data.shape[0] - 64, out.shape[0] - 64
    here = offsets[row + 1 : row + 1 + lines]
    for line in range(lines):
        start = element(table, line * each + 1) + 1
        length = element(table, line * each + 2) - start
        copy_widely(data, start, length, out, end, start <= last and end <= last_end)
        end += length
        here[line] = end
    return end


@block
def keep_queries(
    data: Array,
    first: int,
    table: Array,
    lines: int,
    each: int,
    row: int,
    query_bytes: Array,
    query_ends: Array,
    query_rows: Array,
    runs: int,
    query_end: int,
) -> tuple[int, int]:
    """Append the first field of lines that differ from the line before; returns numbers of runs and bytes."""
    start, stop = first, 0
    for line in range(lines):
        before, before_stop = start, stop
        if line > 0:
            start = element(table, line * each - 1) + 1
        stop = element(table, line * each)
        if line > 0:
            is_new = not same_text(data, start, stop, data, before, before_stop)
        else:
            last = query_ends[runs - 2] if runs > 1 else 0
            is_new = runs == 0 or not same_text(data, start, stop, query_bytes, last, query_end)
        if is_new:
            for i in range(start, stop):
                query_bytes[query_end] = data[i]
                query_end += 1
            query_ends[runs], query_rows[runs] = query_end, row + line
            runs += 1
    return runs, query_end


_BLANKS = bytes.maketrans(bytes(range(BLANK)), b" " * BLANK)
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def plain_scan_trec(data: Array, fields: int, columns: TextColumns, filled: Array) -> int:
    """As `scan_trec`, with Python's `bytes.split`, ten times faster than a Python loop over bytes."""
    first, doc_end, runs, query_end, n_skipped, n_odd = filled.tolist()
    query = columns.query_bytes[columns.query_ends[runs - 2] if runs > 1 else 0 : query_end].tobytes()
    columns.doc_offsets[first] = doc_end
    docs: list[bytes] = []
    queries: list[bytes] = []
    doc_place, number_place = {3: (1, 2), 4: (2, 3), 6: (2, 4)}[fields]
    at, malformed = 0, -1
    for line in data.tobytes().split(b"\n")[:-1]:
        words, row = line.translate(_BLANKS).split(b" "), first + len(docs)
        found = [word for word in words if word]
        if not found or found[0].startswith(b"#"):
            columns.skipped[n_skipped] = row
            n_skipped += 1
        elif len(found) < fields or len(found) > fields < 6:
            malformed = at
            break
        else:
            if found[0] != query or not runs:
                query = found[0]
                queries.append(query)
                columns.query_rows[runs] = row
                runs += 1
            docs.append(found[doc_place])
            number = found[number_place]
            if _NUMBER.fullmatch(number):
                columns.values[row] = float(number)
            else:
                places = [place for place, word in enumerate(words) if word]
                start = at + len(b" ".join(words[: places[number_place]])) + 1
                columns.odd[n_odd] = row, start, start + len(number)
                n_odd += 1
        at += len(line) + 1
    doc_end = _append(docs, columns.doc_bytes, doc_end, columns.doc_offsets[first + 1 :])
    query_end = _append(queries, columns.query_bytes, query_end, columns.query_ends[runs - len(queries) :])
    filled[:] = first + len(docs), doc_end, runs, query_end, n_skipped, n_odd
    return malformed


def _append(texts: list[bytes], out: Array, end: int, ends: Array) -> int:
    """Append texts to `out` from `end` on, and the end of each to `ends`; returns the end of the last one."""
    joined = b"".join(texts)
    out[end : end + len(joined)] = np.frombuffer(joined, np.uint8)
    ends[: len(texts)] = end + np.cumsum([len(text) for text in texts], dtype=np.int64)
    return end + len(joined)


@driver(plain=plain_scan_trec)
def scan_trec(data: Array, fields: int, columns: TextColumns, filled: Array) -> int:
    """Read the lines `query iteration doc grade` of 4 fields, `query iteration doc rank score tag ...` of 6,
    or `query doc rank` of 3.

    Returns the place in `data` of the first line that does not have this form, or -1.
    """
    table = np.empty(_CHUNK + 64, np.int32)
    words = np.empty((N_WORDS, _CHUNK // _SHORTEST), np.uint64)
    return scan_trec_lines(data, fields, columns, filled, table, words)


@block
def scan_trec_lines(
    data: Array, fields: int, columns: TextColumns, filled: Array, table: Array, words: Array
) -> int:
    """As `scan_trec`. If lines of a chunk have one form, blanks give the fields; else each is searched."""
    doc_bytes, doc_offsets, query_bytes, query_ends, query_rows, values, skipped, odd = columns
    row, doc_end, runs, query_end = filled[ROWS], filled[DOC_BYTES], filled[QUERIES], filled[QUERY_BYTES]
    n_skipped, n_odd = filled[SKIPPED], filled[ODD]
    doc_offsets[row] = doc_end
    at, malformed = 0, -1
    while at < data.shape[0] and malformed < 0:
        stop = min(at + _CHUNK, data.shape[0])
        while stop > at and data[stop - 1] != NEWLINE:
            stop -= 1
        each = 0
        if stop == at:
            stop = skip_line(data, at + _CHUNK)
        elif fields > 3:
            found, lines = find_blanks(data, at, stop, table)
            each = blanks_of_a_line(data, at, table, found, lines, fields, fields > 4)
        first, before = at, 3 if fields > 4 else 2
        if each == 0:
            each, before = 6, 3
            lines, first, n_skipped, malformed = find_fields(
                data, at, stop, row, fields, table, skipped, n_skipped
            )
        doc_end = keep_documents(data, table, lines, each, row, doc_bytes, doc_offsets, doc_end)
        runs, query_end = keep_queries(
            data, first, table, lines, each, row, query_bytes, query_ends, query_rows, runs, query_end
        )
        n_odd = read_numbers(data, table, lines, each, before, words, row, values, odd, n_odd)
        row += lines
        at = stop
    n_left = filled[ODD]
    for i in range(n_left, n_odd):
        _, value, is_read = read_number(data, odd[i, 1])
        values[odd[i, 0]] = value
        odd[n_left, 0], odd[n_left, 1], odd[n_left, 2] = odd[i, 0], odd[i, 1], odd[i, 2]
        if not is_read:
            n_left += 1
    filled[ROWS], filled[DOC_BYTES], filled[QUERIES], filled[QUERY_BYTES] = row, doc_end, runs, query_end
    filled[SKIPPED], filled[ODD] = n_skipped, n_left
    return malformed


@driver()
def scan_ltr(data: Array, columns: TextColumns, filled: Array) -> int:
    """Read the label and the query of lines `label [qid:query] feature:value ...`; features are skipped.

    A line without qid: has the empty query id. Returns the place in `data` of the first line without a label
    or with an empty qid, or -1.
    """
    _, _, query_bytes, query_ends, query_rows, values, skipped, odd = columns
    row, runs, query_end = filled[ROWS], filled[QUERIES], filled[QUERY_BYTES]
    query_start = 0 if runs < 2 else query_ends[runs - 2]
    n_skipped, n_odd = filled[SKIPPED], filled[ODD]
    malformed = -1
    at = 0
    while at < data.shape[0]:
        line = at
        at = skip_blanks(data, at)
        if data[at] == NEWLINE or data[at] == HASH:
            at = skip_line(data, at)
            skipped[n_skipped] = row
            n_skipped += 1
            continue
        malformed = line
        start = at
        at, value, is_read = read_number(data, start)
        if at == start:
            break
        values[row] = value
        if not is_read:
            odd[n_odd, 0], odd[n_odd, 1], odd[n_odd, 2] = row, start, at
            n_odd += 1
        at = skip_blanks(data, at)
        start = at
        # q, i, d, colon: the comparison stops at a newline, so it does not read beyond the line
        if data[at] == 113 and data[at + 1] == 105 and data[at + 2] == 100 and data[at + 3] == COLON:
            start = at + 4
            at = skip_field(data, start)
            if at == start:
                break
        if runs == 0 or not same_bytes(data, start, at, query_bytes, query_start, query_end):
            query_start = query_end
            for i in range(start, at):
                query_bytes[query_end] = data[i]
                query_end += 1
            query_ends[runs], query_rows[runs] = query_end, row
            runs += 1
        at = skip_line(data, at)
        malformed = -1
        row += 1
    filled[ROWS], filled[QUERIES], filled[QUERY_BYTES] = row, runs, query_end
    filled[SKIPPED], filled[ODD] = n_skipped, n_odd
    return malformed


@driver()
def cut_out(data: Array, spans: Array, out: Array, ends: Array) -> None:
    """Copy the bytes of spans (columns 1 and 2: start and stop) to `out`, and their ends to `ends`."""
    end = 0
    for i in range(spans.shape[0]):
        for at in range(spans[i, 1], spans[i, 2]):
            out[end] = data[at]
            end += 1
        ends[i] = end
