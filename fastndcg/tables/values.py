"""Convert Arrow columns of numbers, flags and ids to NumPy arrays, and check them.

All functions expect `plain` columns, except for query ids.
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
from fastndcg.tables.locations import Locator, at_row, shown
from fastndcg.tables.roles import Roles, in_words

if TYPE_CHECKING:
    from fastndcg.typing import NaN

_DECIMAL_DIGITS = 15  # two decimals of so many digits are two different float64s
_EXACT_POWER = 22  # the largest power of ten that float64 holds exactly
WORDS = ', or say the grade of each word, as in grades={"perfect": 2, "fair": 1, "bad": 0}'


def column_name(name: str) -> str:
    """Return the name of a column as messages show it."""
    return f'column "{name}"'


def numbers_in(label: str, column: pa.ChunkedArray, expected: str, locator: Locator) -> Array:
    """Convert a column of numbers to one array, without a copy if it has one chunk.

    Messages name the column `label` and say that it should hold `expected`.
    """
    column = decode(column)
    kind = column.type
    if pa.types.is_null(kind) and not len(column):
        return np.empty(0, np.float64)
    if column.null_count:
        steps = {"grades": UNJUDGED, "scores": or_last(locator.ranks)}
        raise nulls_in(label, column, locator, steps.get(expected, ". Drop those rows or fill them."))
    if pa.types.is_decimal(kind):
        return _decimals(label, column, expected, locator)
    if not (is_number(kind) or pa.types.is_boolean(kind)):
        first = f", beginning with {shown(column[0])}" if len(column) else ""
        raise InputTypeError(
            f"{label} is {kind}{first}; expected {expected} that are integers or floats. "
            "Cast it, or name another column"
            f"{WORDS if expected == 'grades' and (is_text(kind) or is_binary(kind)) else ''}."
        )
    # Arrow joins the chunks: its allocator reuses memory for the next part of a stream, NumPy's faults it in
    return array_of(column)


def grades_in(
    roles: Roles, column: pa.ChunkedArray, locator: Locator
) -> tuple[Array, npt.NDArray[np.bool_] | None]:
    """Return grades as numbers, 0 if unjudged, and a mask of judged documents; None if all must be judged."""
    label = locator.names[0]
    if isinstance(roles.grades, Mapping):
        column = _grades_of_words(label, column, roles.grades, locator)
    if roles.unjudged != "null":
        return numbers_in(label, column, "grades", locator), None
    graded = None
    if column.null_count:
        import pyarrow.compute as pc

        graded = array_of(pc.is_valid(column))
        present = numbers_in(label, column.drop_null(), "grades", locator)
        grades = np.zeros(len(column), present.dtype)
        grades[graded] = present
    else:
        grades = numbers_in(label, column, "grades", locator)
    return split_unjudged(grades, graded)


def _grades_of_words(
    label: str, column: pa.ChunkedArray, grades: Mapping[Any, float], locator: Locator
) -> pa.ChunkedArray:
    """Replace words, or grades, by the grades that `grades` maps them to; null stays null."""
    kind = column.type
    if pa.types.is_null(kind):
        return column
    if pa.types.is_nested(kind):
        raise InputTypeError(f"{label} is {kind}; grades= has the grade of each word, and expects text")
    whole_column = combine(column)
    encoded = whole_column if pa.types.is_dictionary(kind) else whole_column.dictionary_encode()
    known = {word: place for place, word in enumerate(grades)}
    # keys are text on the command line, also where the column holds numbers
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
            f"{label} has {shown(word)}{locator.at(first)}, for which grades= has no grade; it has one for "
            f"{in_words(keys)}.{suggest(str(word.as_py()), keys)}"
        )
    return pa.chunked_array([pa.array(list(grades.values())).take(pa.array(codes, mask=missing))])


def scores_in(roles: Roles, column: pa.ChunkedArray, locator: Locator, nan: NaN | None = None) -> Array:
    """Return scores of which the highest is the best. With nan="last", nulls become NaN."""
    label = locator.names[1]
    if (nan or roles.nan) != "last" or not column.null_count:
        scores = numbers_in(label, column, "scores", locator)
    else:
        scores = with_nulls_as_nan(
            label, column, lambda present: numbers_in(label, present, "scores", locator)
        )
    if roles.rank is not None and roles.ascending:  # a column of ranks, not ids listed in rank order
        with np.errstate(invalid="ignore", over="ignore"):
            is_none = (scores < 0) | ((2 * scores % 1 != 0) & ~np.isnan(scores))
        if is_none.any():
            row = locator.first(is_none)
            raise InputError(
                f"{label} has {scores[row]:g}{locator.at(row)}, which is not a rank; expected whole numbers, "
                "1 for the best, or halves where documents are tied. Give a column of scores as score=, and "
                "pass ascending=True if its lowest value is best."
            )
    return negate(scores) if roles.ascending else scores


def with_nulls_as_nan(
    label: str, column: pa.ChunkedArray, numbers_of: Callable[[pa.ChunkedArray], Array]
) -> Array:
    """Return a column of numbers as floats with NaN for null; `numbers_of` converts the other values.

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


def _decimals(label: str, column: pa.ChunkedArray, expected: str, locator: Locator) -> Array:
    """Convert decimals to int64, or to the nearest float64. Raises if different grades or scores of a query
    become equal.

    Arrow's own cast is off by one bit for many decimals.
    """
    parts = [part for chunk in column.chunks if (part := _few_digits(chunk)) is not None]
    if len(parts) == column.num_chunks:
        return np.concatenate(parts or [np.empty(0)])
    texts = combine(column.cast(pa.large_string()))
    floats = array_of(texts.cast(pa.float64()))
    decimals = texts.dictionary_encode()
    is_ranked = expected in ("grades", "scores")
    if is_ranked and len(np.unique(floats)) < len(decimals.dictionary):  # in any query
        queries, ids, is_known = np.zeros(len(floats), np.int64), locator.query_ids, True
        if locator.offsets is not None and locator.offsets[-1] == len(floats):
            queries = codes_from(locator.offsets)
        elif isinstance(ids, pa.Array | pa.ChunkedArray) and len(ids) == len(floats):
            queries = array_of(combine(decode(plain(ids))).dictionary_encode().indices)
        else:  # rows without a grade were dropped
            is_known = False
        codes = array_of(decimals.indices)
        rows = np.lexsort((codes, floats, queries))
        one, other = rows[:-1], rows[1:]
        is_same = (queries[one] == queries[other]) & (floats[one] == floats[other])
        lost = np.flatnonzero(is_same & (codes[one] != codes[other]))
        if len(lost):
            pair = sorted((int(one[lost[0]]), int(other[lost[0]])))
            place = locator.at(pair[1]) if is_known else ""
            raise InputError(
                f"{label} is {column.type} with {texts[pair[0]]} and {texts[pair[1]]}{place}, which float64 "
                "cannot tell apart. Cast it to float64, or round it, before."
            )
    return floats


def _few_digits(chunk: pa.Array) -> Array | None:
    """Convert decimals of few digits to int64, or with a scale to the nearest float64; None for others.

    Converting through strings takes 250 ns a row, this 10.
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


def flags_in(name: str, column: pa.ChunkedArray, locator: Locator) -> Array:
    if not pa.types.is_boolean(column.type) and len(column):
        raise InputTypeError(
            f'column "{name}" is {column.type}; expected bool, True where a document was judged. Cast it.'
        )
    if column.null_count:
        raise nulls_in(column_name(name), column, locator, ". Write False for unjudged documents.")
    return array_of(column) if len(column) else np.empty(0, np.bool_)


def ids_in(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if (
        pa.types.is_run_end_encoded(kind)
        and (pa.types.is_integer(kind.value_type) or kind.value_type in (pa.string(), pa.large_string()))
        and not any(chunk.values.null_count for chunk in column.chunks)  # not included in `null_count`
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


def joined_ids(columns: Mapping[str, pa.ChunkedArray], locator: Locator) -> pa.ChunkedArray:
    r"""Join the ids of several columns to strings such as "q7, 2026-11-25"; commas in values are escaped.

    >>> columns = {"query": pa.chunked_array([["a,b", "c"]]), "day": pa.chunked_array([[1, 2]])}
    >>> joined_ids(columns, Locator()).to_pylist()
    ['a\\,b, 1', 'c, 2']
    """
    import pyarrow.compute as pc

    texts = []
    for name, column in columns.items():
        ids = decode(ids_in(name, plain(decode(column))))
        if ids.null_count:
            raise nulls_in(column_name(name), ids, locator)
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
    """Convert ids of a text file to integers if each is written like one, so that no two ids become equal.

    >>> [integers_if_written_so(pa.array(["7", text])).type for text in ("10", "007")]
    [DataType(int64), DataType(string)]
    """
    try:
        numbers = ids.cast(pa.int64())
    except pa.ArrowInvalid:
        return ids
    return numbers if numbers.cast(pa.string()).equals(ids.cast(pa.string())) else ids


def doc_ids_in(
    name: str, column: Any, locator: Locator, of: str = "document", *, is_text: bool = False
) -> Any:
    """Return the ids of documents, queries or intents of a join; `is_text` if they come from untyped text."""
    ids = without_points(column) if is_text else whole_ids(column)
    if ids.null_count:
        raise nulls_in(column_name(name), ids, locator)
    if pa.types.is_floating(ids.type) or pa.types.is_nested(ids.type):
        raise InputTypeError(f'column "{name}" is {ids.type}; expected whole numbers or strings as {of} ids')
    return ids.cast(pa.int64()) if pa.types.is_null(ids.type) else with_long_offsets(ids)


def values_of_queries(
    name: str, column: pa.ChunkedArray, ids: pa.ChunkedArray, grouped: Grouped, locator: Locator
) -> pa.ChunkedArray:
    """Reduce a column that is constant within each query to one value per query."""
    rows, starts = grouped.rows, grouped.offsets[:-1]
    if pa.types.is_nested(column.type):
        raise InputTypeError(
            f'column "{name}" is {column.type}; keep and weight take one plain value for each query'
        )
    # a quick check, sufficient for most columns of grouped rows
    changes = changes_of(column, len(starts) + column.num_chunks) if rows is None else None
    if changes is not None:
        changes = changes[~np.isin(changes, starts, assume_unique=True)]
        if len(changes) <= column.num_chunks and all(
            column[row - 1].as_py() == column[row].as_py() for row in changes
        ):
            changes = changes[:0]
    if changes is None or len(changes):  # positions in query order where the value changes
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
            f"{at_row(locator.number(first))}, {shown(column[other])}{at_row(locator.number(other))}; "
            "keep and weight take columns with one value for each query",
        )
    return take(column, grouped.first_rows)  # ascending, since queries are in order of first appearance


# ---- messages ----


def nulls_in(
    label: str, column: pa.ChunkedArray, locator: Locator, step: str = ". Drop those rows."
) -> InputError:
    """Return the error for a column with nulls."""
    import pyarrow.compute as pc

    first = int(np.argmax(array_of(pc.is_null(column))))
    return InputError(
        f"{label} has {count_of(column.null_count, 'null')}{locator.at(first, first=True)}{step}"
    )


def first_line(error: BaseException) -> str:
    """Return the first line of an Arrow error, without its final punctuation."""
    lines: Iterable[str] = str(error).splitlines()
    return next(iter(lines), type(error).__name__).strip().rstrip(".!")


def whole(values: npt.NDArray[np.float64]) -> Array:
    """Return grades as integers if all of them are whole."""
    with np.errstate(invalid="ignore"):
        integers = values.astype(np.int64)
    return integers if np.array_equal(integers, values) and (abs(integers) < 1 << 53).all() else values
