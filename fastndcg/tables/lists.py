"""Columns with one list per query: flatten them, and tell ids from grades and scores."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from fastndcg.common.arrays import Array, Int64, codes_from, offsets_from
from fastndcg.common.arrow_types import array_of, column_of, combine, decode, is_list, is_text, plain
from fastndcg.errors import InputError, InputTypeError, count_of
from fastndcg.tables.joins import twin_in
from fastndcg.tables.locations import Locator, shown
from fastndcg.tables.values import column_name, nulls_in

_HEAD = 4096
_GREATEST_GRADE = 100  # larger whole numbers that never repeat in a list are probably ids


def split_lists(name: str, column: pa.ChunkedArray, locator: Locator) -> tuple[Int64, pa.ChunkedArray]:
    """Return the offsets and the flat values of a list column."""
    kind = column.type
    if not is_list(kind):
        raise InputTypeError(
            f'column "{name}" is {kind}; expected a list for each query, as in the relevance column'
        )
    if column.null_count:
        raise nulls_in(column_name(name), column, locator, ". Give a query without documents an empty list.")
    import pyarrow.compute as pc

    values = plain(pa.chunked_array([chunk.flatten() for chunk in column.chunks], kind.value_type))
    if pa.types.is_large_list(kind) and column.num_chunks == 1:
        offsets = array_of(column.chunk(0).offsets)
        if offsets[0] == 0:  # no copy
            return offsets, values
    return offsets_from(array_of(pc.list_value_length(column))), values


def split_alike(
    first: str, offsets: Int64, name: str, column: pa.ChunkedArray, locator: Locator, or_else: str = ""
) -> pa.ChunkedArray:
    """Return the flat values of lists that must be as long as those of column `first`.

    `or_else` ends the message where they are not.
    """
    own_offsets, values = split_lists(name, column, locator)
    if not np.array_equal(own_offsets, offsets):
        row = int(np.argmax(np.diff(own_offsets) != np.diff(offsets)))
        raise InputError(
            f"query {locator.name_of(row)} has {count_of(np.diff(offsets)[row], 'value')} in column "
            f'"{first}" and {np.diff(own_offsets)[row]:,} in column "{name}"; expected lists of equal lengths'
            f"{or_else}"
        )
    return values


def falling_ranks(offsets: Int64) -> Int64:
    """Return scores for documents that are listed best first, from the length of the list down to 1.

    >>> falling_ranks(np.array([0, 2, 2, 3]))
    array([2, 1, 1])
    """
    return np.repeat(offsets[1:], np.diff(offsets)) - np.arange(offsets[-1])


def ids_in_text(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Split strings into lists of ids: separated by blanks, or written as a list of JSON or Python. Null is
    an empty list.

    >>> ids_in_text("prediction", pa.chunked_array([["10 11", "", None, "['12']"]])).to_pylist()
    [['10', '11'], [], [], ['12']]
    """
    import pyarrow.compute as pc

    texts = decode(column)
    if pa.types.is_null(texts.type) or pa.types.is_integer(texts.type):  # one id each
        texts = texts.cast(pa.string())
    if not is_text(texts.type):
        raise InputTypeError(
            f'column "{name}" is {column.type}; expected lists of ids, or text of ids separated by blanks'
        )
    texts = pc.utf8_trim_whitespace(pc.fill_null(combine(texts), ""))
    are_lists = pc.starts_with(texts, "[")
    ids = texts.filter(pc.invert(are_lists))
    has_blanks = pc.any(pc.match_substring_regex(ids, r"\s")).as_py()
    unclear = ids.filter(pc.match_substring_regex(ids, r"^[{(]|[,;]\s" if has_blanks else r"^[{(]|[,;|]"))
    if len(unclear):
        raise InputError(
            f'column "{name}" holds {shown(unclear[0])}, which could be one id or several. Separate ids by '
            'blanks, or write lists, as in ["a", "b"]'
        )
    split = pc.utf8_split_whitespace(texts)
    if pc.any(are_lists).as_py():
        rows = zip(texts, split, array_of(are_lists).tolist(), strict=True)
        split = pa.array(
            [_written_list(name, text) if is_one else ids.as_py() for text, ids, is_one in rows],
            pa.list_(pa.string()),
        )
    sizes = np.where(array_of(pc.equal(texts, "")), 0, array_of(pc.list_value_length(split)))
    flat = split.flatten()
    lists = pa.LargeListArray.from_arrays(offsets_from(sizes), flat.filter(pc.not_equal(flat, "")))
    return pa.chunked_array([lists])


def _written_list(name: str, text: pa.Scalar) -> list[str]:
    """Parse a list of ids written as JSON or Python."""
    import ast
    import json

    written = text.as_py()
    try:
        ids = json.loads(written)
    except (ValueError, RecursionError):
        try:  # Python concatenates strings without commas between them, as NumPy prints them
            ids = None if re.search(r"""['"]\s+['"]""", written) else ast.literal_eval(written)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            ids = None
    if isinstance(ids, list) and all(type(each) in (int, str) and each != "" for each in ids):
        return list(map(str, ids))
    raise InputError(
        f'column "{name}" holds {shown(text)}, which is not a list of ids; '
        'expected ids separated by blanks, or lists such as ["a", "b"]'
    )


def check_one_row(query_ids: pa.ChunkedArray, names: Sequence[str]) -> None:
    """Raise if a query has several rows; `names` are the columns that hold lists."""
    codes = array_of(combine(decode(query_ids)).dictionary_encode().indices)
    again = codes != np.arange(len(codes))  # codes count queries as they appear
    if again.any():
        raise several_rows_of_lists(query_ids[int(np.argmax(again))], names)


def several_rows_of_lists(query: pa.Scalar, names: Sequence[str]) -> InputError:
    listed = ", ".join(f'"{name}"' for name in names)
    return InputError(
        f"query {shown(query)} has several rows of lists; in list-column form a query is one row. "
        f"Make a row of each document first, as in data.explode([{listed}]), "
        "and rows of one query are one query."
    )


def refuse_ids(
    offsets: Int64, relevance: Array, scores: Array, what: str, as_ids: str, as_grades: str
) -> None:
    """Raise if lists of grades and scores could just as well be ids of relevant and of retrieved documents.

    That is so for whole numbers other than 0 and 1 that never repeat within a list, if some number is in
    both lists of a query, or numbers are large.

    >>> refuse_ids(np.array([0, 3]), np.array([3, 0, 2]), np.array([9, 8, 7]), "", "", "")
    """
    if relevance.dtype.kind not in "iu" or scores.dtype.kind not in "iu" or not len(relevance):
        return
    if relevance.max() <= 1:
        return
    n = len(offsets) - 1
    query = codes_from(offsets)
    both = [each.astype(np.int64, copy=False) for each in (relevance, scores)]
    for rows in slice(_HEAD), slice(None):  # grades usually repeat in the first lists
        if any(twin_in(query[rows], column_of(each[rows]), n) is not None for each in both):
            return
    of_both = np.tile(query, 2), column_of(np.concatenate(both))
    if twin_in(*of_both, n) is not None or relevance.max() > _GREATEST_GRADE:
        raise InputError(
            f"{what} lists of whole numbers that could be ids of documents, or grades and scores. For ids "
            f"give {as_ids}; for grades and scores give {as_grades}."
        )
