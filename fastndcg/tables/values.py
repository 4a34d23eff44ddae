"""Convert Arrow columns of numbers, flags and ids to NumPy arrays, and check them.

Columns are `plain`, except those of query ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrays import Array, codes_from, negate, split_unjudged
from fastndcg.common.arrow_types import (
    array_of,
    combine,
    decode,
    is_binary,
    is_number,
    is_text,
    plain,
    whole_ids,
    with_long_offsets,
    without_points,
)
from fastndcg.errors import InputError, InputTypeError, count_of, suggest
from fastndcg.tables.checks import UNJUDGED, or_last
from fastndcg.tables.grouping import Grouped, changes_of, take
from fastndcg.tables.locations import Blame, at_row, shown
from fastndcg.tables.roles import Roles, in_words

if TYPE_CHECKING:
    from fastndcg.typing import NaN

_DECIMAL_DIGITS = 15  # two decimals of so many digits are two different float64s
_EXACT_POWER = 22  # the largest power of ten that float64 holds exactly
WORDS = ', or say the grade of each word, as in grades={"perfect": 2, "fair": 1, "bad": 0}'


def column_name(name: str) -> str:
    """How messages call a column."""
    return f'column "{name}"'


def numbers_in(label: str, column: pa.ChunkedArray, wanted: str, blame: Blame) -> Array:
    """A column of numbers as one array: a view of its buffer where it is one chunk.

    `label` is how messages call the column, and `wanted` what it holds.
    """
    column = decode(column)
    kind = column.type
    if pa.types.is_null(kind) and not len(column):
        return np.empty(0, np.float64)
    if column.null_count:
        steps = {"grades": UNJUDGED, "scores": or_last(blame.ranks)}
        raise nulls_in(label, column, blame, steps.get(wanted, ". Drop those rows or fill them."))
    if pa.types.is_decimal(kind):
        return _undecimal(label, column, wanted, blame)
    if not (is_number(kind) or pa.types.is_boolean(kind)):
        first = f", beginning with {shown(column[0])}" if len(column) else ""
        raise InputTypeError(
            f"{label} is {kind}{first}; expected {wanted} that are integers or floats. "
            "Cast it, or name another column"
            f"{WORDS if wanted == 'grades' and (is_text(kind) or is_binary(kind)) else ''}."
        )
    # joined by Arrow, whose allocator keeps memory for the next part of a stream; NumPy's has it faulted in
    # anew
    return array_of(column)


def grades_in(
    roles: Roles, column: pa.ChunkedArray, blame: Blame
) -> tuple[Array, npt.NDArray[np.bool_] | None]:
    """Grades as numbers (0 for unjudged ones), and which documents have one; None if all must have one."""
    label = blame.names[0]
    if isinstance(roles.grades, Mapping):
        column = _grades_of_words(label, column, roles.grades, blame)
    if roles.unjudged != "null":
        return numbers_in(label, column, "grades", blame), None
    graded = None
    if column.null_count:
        import pyarrow.compute as pc

        graded = array_of(pc.is_valid(column))
        present = numbers_in(label, column.drop_null(), "grades", blame)
        grades = np.zeros(len(column), present.dtype)
        grades[graded] = present
    else:
        grades = numbers_in(label, column, "grades", blame)
    return split_unjudged(grades, graded)


def _grades_of_words(
    label: str, column: pa.ChunkedArray, grades: Mapping[Any, float], blame: Blame
) -> pa.ChunkedArray:
    """The grade of each word, or the new grade of each grade; null stays null."""
    kind = column.type
    if pa.types.is_null(kind):
        return column
    if pa.types.is_nested(kind):
        raise InputTypeError(f"{label} is {kind}; grades= has the grade of each word, and expects text")
    whole_column = combine(column)
    encoded = whole_column if pa.types.is_dictionary(kind) else whole_column.dictionary_encode()
    known = {word: place for place, word in enumerate(grades)}
    # keys that are given as text, as on the command line, are known of numbers, too
    places = [
        known.get(word, known.get(f"{word:g}" if isinstance(word, float) else str(word), -1))
        for word in encoded.dictionary.to_pylist()
    ]
    missing = array_of(encoded.is_null())
    codes = np.array([*places, 0])[array_of(encoded.indices, len(places))]
    if (codes < 0).any():
        first = int(np.argmax(codes < 0))
        word, keys = whole_column[first], [str(each) for each in grades]
        raise InputError(
            f"{label} has {shown(word)}{blame.at(first)}, for which grades= has no grade; it has one for "
            f"{in_words(keys)}.{suggest(str(word.as_py()), keys)}"
        )
    return pa.chunked_array([pa.array(list(grades.values())).take(pa.array(codes, mask=missing))])


def scores_in(roles: Roles, column: pa.ChunkedArray, blame: Blame, nan: NaN | None = None) -> Array:
    """As `numbers_in`; with nan="last", nulls are NaN, as pandas writes them. The highest value is best."""
    label = blame.names[1]
    if (nan or roles.nan) != "last" or not column.null_count:
        scores = numbers_in(label, column, "scores", blame)
    else:
        scores = with_nulls_as_nan(label, column, lambda present: numbers_in(label, present, "scores", blame))
    if roles.rank is not None and roles.ascending:  # of a column, and not of lists that stand best first
        with np.errstate(invalid="ignore", over="ignore"):
            is_none = (scores < 0) | ((2 * scores % 1 != 0) & ~np.isnan(scores))
        if is_none.any():
            row = blame.first(is_none)
            raise InputError(
                f"{label} has {scores[row]:g}{blame.at(row)}, which is not a rank; expected whole numbers, 1 "
                "for the best, or halves where documents are tied. Give a column of scores as score=, and "
                "pass ascending=True if its lowest value is best."
            )
    return negate(scores) if roles.ascending else scores


def with_nulls_as_nan(
    label: str, column: pa.ChunkedArray, numbers_of: Callable[[pa.ChunkedArray], Array]
) -> Array:
    """A column of numbers as floats, NaN where it is null; `numbers_of` makes an array of those that are not.

    >>> with_nulls_as_nan('column "score"', pa.chunked_array([[3, None]]), lambda column: column.to_numpy())
    array([ 3., nan])
    """
    import pyarrow.compute as pc

    missing = array_of(pc.is_null(column))
    numbers = numbers_of(column.drop_null())
    floats = numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)
    if floats is not numbers and len(floats) and abs(floats).max() >= 1 << 53:
        raise InputError(
            f"{label} has {count_of(column.null_count, 'null')} and whole numbers beyond 2^53, "
            "which floats cannot represent exactly. Drop the rows with nulls."
        )
    values = np.full(len(column), np.nan, floats.dtype)
    values[~missing] = floats
    return values


def _undecimal(label: str, column: pa.ChunkedArray, wanted: str, blame: Blame) -> Array:
    """Decimals as int64, or as the nearest float64s, which must tell grades and scores of a query apart.

    Arrow's own cast is off by a bit for many of them.
    """
    parts = [part for chunk in column.chunks if (part := _few_digits(chunk)) is not None]
    if len(parts) == column.num_chunks:
        return np.concatenate(parts or [np.empty(0)])
    texts = combine(column.cast(pa.large_string()))
    floats = array_of(texts.cast(pa.float64()))
    decimals = texts.dictionary_encode()
    is_ranked = wanted in ("grades", "scores")
    if is_ranked and len(np.unique(floats)) < len(decimals.dictionary):  # of any query
        queries, ids, is_known = np.zeros(len(floats), np.int64), blame.query_ids, True
        if blame.offsets is not None and blame.offsets[-1] == len(floats):
            queries = codes_from(blame.offsets)
        elif isinstance(ids, pa.Array | pa.ChunkedArray) and len(ids) == len(floats):
            queries = array_of(combine(decode(plain(ids))).dictionary_encode().indices)
        else:  # rows without a grade are left out
            is_known = False
        codes = array_of(decimals.indices)
        rows = np.lexsort((codes, floats, queries))
        one, other = rows[:-1], rows[1:]
        is_same = (queries[one] == queries[other]) & (floats[one] == floats[other])
        lost = np.flatnonzero(is_same & (codes[one] != codes[other]))
        if len(lost):
            pair = sorted((int(one[lost[0]]), int(other[lost[0]])))
            place = blame.at(pair[1]) if is_known else ""
            raise InputError(
                f"{label} is {column.type} with {texts[pair[0]]} and {texts[pair[1]]}{place}, which float64 "
                "cannot tell apart. Cast it to float64, or round it, before."
            )
    return floats


def _few_digits(chunk: pa.Array) -> Array | None:
    """Decimals as int64, or, with a fraction, as the nearest float64s; None if they have too many digits.

    Arrow's way through texts takes 250 ns a row, this one 10.
    """
    kind = chunk.type
    integers = getattr(pa, f"decimal{kind.bit_width}")(kind.precision)  # the same type of scale 0
    stored = pa.Array.from_buffers(integers, len(chunk), chunk.buffers(), offset=chunk.offset)
    try:
        unscaled = array_of(stored.cast(pa.int64()))
    except pa.ArrowInvalid:
        return None
    largest = max(abs(int(unscaled.max(initial=0))), abs(int(unscaled.min(initial=0))))
    if kind.scale <= 0:
        factor = 10**-kind.scale
        return unscaled * np.int64(factor) if max(largest, 1) * factor < 2**63 else None
    if kind.scale <= _EXACT_POWER and largest < 10**_DECIMAL_DIGITS:
        fractional: Array = unscaled / 10.0**kind.scale
        return fractional
    return None


def flags_in(name: str, column: pa.ChunkedArray, blame: Blame) -> Array:
    if not pa.types.is_boolean(column.type) and len(column):
        raise InputTypeError(
            f'column "{name}" is {column.type}; expected bool, True where a document was judged. Cast it.'
        )
    if column.null_count:
        raise nulls_in(column_name(name), column, blame, ". Write False for unjudged documents.")
    return array_of(column) if len(column) else np.empty(0, np.bool_)


def ids_in(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if (
        pa.types.is_run_end_encoded(kind)
        and (pa.types.is_integer(kind.value_type) or kind.value_type in (pa.string(), pa.large_string()))
        and not any(chunk.values.null_count for chunk in column.chunks)  # which `null_count` would not count
    ):
        return column
    column = plain(column)
    column = whole_ids(column) if pa.types.is_floating(column.type) else column
    value_type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_floating(value_type) or pa.types.is_nested(value_type):
        raise no_ids(name, column.type)
    if pa.types.is_null(value_type) and not len(column):
        return column.cast(pa.int64())
    return column


def joined_ids(columns: Mapping[str, pa.ChunkedArray], blame: Blame) -> pa.ChunkedArray:
    r"""Ids that several columns make together, as texts: "q7, 2026-11-25". Commas within values are escaped.

    >>> columns = {"query": pa.chunked_array([["a,b", "c"]]), "day": pa.chunked_array([[1, 2]])}
    >>> joined_ids(columns, Blame()).to_pylist()
    ['a\\,b, 1', 'c, 2']
    """
    import pyarrow.compute as pc

    texts = []
    for name, column in columns.items():
        ids = decode(ids_in(name, plain(decode(column))))
        if ids.null_count:
            raise nulls_in(column_name(name), ids, blame)
        if is_binary(ids.type):
            raise no_ids(name, ids.type)
        text = pc.replace_substring(ids.cast(pa.string()), "\\", "\\\\")
        texts.append(pc.replace_substring(text, ",", "\\,"))
    return pc.binary_join_element_wise(*texts, ", ")


def no_ids(name: str, kind: pa.DataType) -> InputTypeError:
    return InputTypeError(
        f'column "{name}" is {kind}; expected query ids that are integers or strings. '
        "Cast it, or name another column."
    )


def integers_if_written_so(ids: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Ids of a text file as integers, where each is the canonical text of an integer, so that different texts
    stay different.

    >>> [integers_if_written_so(pa.array(["7", text])).type for text in ("10", "007")]
    [DataType(int64), DataType(string)]
    """
    try:
        numbers = ids.cast(pa.int64())
    except pa.ArrowInvalid:
        return ids
    return numbers if numbers.cast(pa.string()).equals(ids.cast(pa.string())) else ids


def doc_ids_in(name: str, column: Any, blame: Blame, of: str = "document", *, is_text: bool = False) -> Any:
    """Ids of documents, queries or intents of one side of a join; `is_text`: of a file without types."""
    ids = without_points(column) if is_text else whole_ids(column)
    if ids.null_count:
        raise nulls_in(column_name(name), ids, blame)
    if pa.types.is_floating(ids.type) or pa.types.is_nested(ids.type):
        raise InputTypeError(f'column "{name}" is {ids.type}; expected whole numbers or strings as {of} ids')
    return ids.cast(pa.int64()) if pa.types.is_null(ids.type) else with_long_offsets(ids)


def values_of_queries(
    name: str, column: pa.ChunkedArray, ids: pa.ChunkedArray, grouped: Grouped, blame: Blame
) -> pa.ChunkedArray:
    """Reduce a column that is constant within each query to one row per query."""
    rows, starts = grouped.rows, grouped.offsets[:-1]
    if pa.types.is_nested(column.type):
        raise InputTypeError(
            f'column "{name}" is {column.type}; keep and weight take one plain value for each query'
        )
    # a quick check that is enough for nearly all columns of grouped rows
    changes = changes_of(column, len(starts) + column.num_chunks) if rows is None else None
    if changes is not None:
        changes = changes[~np.isin(changes, starts, assume_unique=True)]
        if len(changes) <= column.num_chunks and all(
            column[row - 1].as_py() == column[row].as_py() for row in changes
        ):
            changes = changes[:0]
    if changes is None or len(changes):  # places in query order of rows that differ from the one before
        encoded = decode(column).dictionary_encode(null_encoding="encode")
        codes = np.concatenate([array_of(each.indices) for each in encoded.chunks] or [np.empty(0, int)])
        codes = codes if rows is None else codes[rows]
        differs = codes[1:] != codes[:-1]
        differs[starts[1:] - 1] = False
        changes = np.flatnonzero(differs) + 1
    if len(changes):
        place = int(changes[0 if rows is None else np.argmin(rows[changes])])
        first = int(grouped.first_rows[np.searchsorted(starts, place, side="right") - 1])
        other = place if rows is None else int(rows[place])
        raise InputError(
            f'column "{name}" differs within query {shown(ids[other])}: {shown(column[first])}'
            f"{at_row(blame.number(first))}, {shown(column[other])}{at_row(blame.number(other))}; "
            "keep and weight take columns with one value for each query",
        )
    return take(column, grouped.first_rows)  # which ascend, as queries stand in order of first appearance


# ---- messages ----


def nulls_in(
    label: str, column: pa.ChunkedArray, blame: Blame, step: str = ". Drop those rows."
) -> InputError:
    """The error for a column with nulls."""
    import pyarrow.compute as pc

    first = int(np.argmax(array_of(pc.is_null(column))))
    return InputError(f"{label} has {count_of(column.null_count, 'null')}{blame.at(first, first=True)}{step}")


def first_line(error: BaseException) -> str:
    """An error of Arrow in one line, without its closing mark."""
    lines: Iterable[str] = str(error).splitlines()
    return next(iter(lines), type(error).__name__).strip().rstrip(".!")


def whole(values: npt.NDArray[np.float64]) -> Array:
    """Grades as integers where all of them are."""
    with np.errstate(invalid="ignore"):
        integers = values.astype(np.int64)
    return integers if np.array_equal(integers, values) and (abs(integers) < 1 << 53).all() else values
