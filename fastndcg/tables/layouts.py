"""Convert groups, query ids, matrices and lists to offsets and flat columns, for `Rankings.from_offsets`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import Array, Int64, arrow_column, as_array, offsets_from, unmask
from fastndcg.common.arrow_types import array_of, combine
from fastndcg.common.lazy import pa
from fastndcg.errors import InputError, InputTypeError, check_length, count_of
from fastndcg.tables.checks import cast_grades, cast_integers
from fastndcg.tables.intents import intent_grades
from fastndcg.tables.locations import BY_ROW, Locator

if TYPE_CHECKING:
    from fastndcg.tables.grouping import Grouped
    from fastndcg.typing import Columns, ColumnsAndIds, Unjudged
# offsets, relevance, scores, and how messages name documents
Flat = tuple[Int64, npt.ArrayLike, npt.ArrayLike, Locator]


def offsets_of_groups(group: npt.ArrayLike, relevance: npt.ArrayLike, unjudged: Unjudged) -> Int64:
    sizes = cast_integers("group", group)
    if sizes.size and sizes.min() < 0:
        first = int(np.argmax(sizes < 0))
        raise InputError(
            f"group has a negative size, {sizes[first]} at position {first}; "
            "each is the number of documents of a query"
        )
    rows = len(as_array("relevance", relevance, unjudged))
    if sizes.sum() != rows:
        raise InputError(
            f"group adds up to {count_of(int(sizes.sum()), 'document')}, but relevance has {rows:,}; "
            "give the size of every query, in row order"
        )
    return offsets_from(sizes)


def flat_of_matrices(
    y_true: npt.ArrayLike, y_score: npt.ArrayLike, mask: npt.ArrayLike | None, unjudged: Unjudged
) -> Flat:
    true = np.asarray(unmask("y_true", y_true, unjudged))
    score = np.asarray(unmask("y_score", y_score))
    if true.ndim != 2 or true.shape != score.shape:
        raise InputError(
            f"y_true has shape {true.shape} and y_score {score.shape}; "
            "expected two equal shapes (n_queries, n_docs_per_query)"
        )
    n_queries, width = true.shape
    if mask is None:
        offsets = np.arange(n_queries + 1, dtype=np.int64) * width
        return offsets, true.ravel(), score.ravel(), Locator(in_lists=True)
    kept = np.asarray(unmask("mask", mask))
    if kept.shape != true.shape or kept.dtype != np.bool_:
        raise InputError(
            f"mask has shape {kept.shape} and dtype {kept.dtype}; "
            f"expected True and False in the shape of y_true, {true.shape}"
        )
    locator = Locator(in_lists=True, positions=np.nonzero(kept)[1])
    return offsets_from(kept.sum(axis=1)), true[kept], score[kept], locator


def flat_of_lists(relevance: Any, scores: Any, columns: ColumnsAndIds) -> Flat:
    """Flatten lists; without scores, they are in rank order."""
    lengths, flat = _flatten("relevance", relevance, columns.get("unjudged", "refuse"))
    offsets = offsets_from(lengths)
    if scores is None:
        if columns.get("ascending"):
            raise InputError(
                "ascending=True needs scores; lists without scores must be in rank order, best first"
            )
        ranked = np.repeat(offsets[1:], lengths) - np.arange(1, len(flat) + 1)
        return offsets, flat, ranked, Locator(in_lists=True)
    score_lengths, flat_scores = _flatten("scores", scores)
    if len(score_lengths) != len(lengths):
        raise InputError(
            f"scores has {count_of(len(score_lengths), 'list')} and relevance {len(lengths):,}; "
            "give one of each for every query"
        )
    if not np.array_equal(lengths, score_lengths):
        query = int(np.argmax(lengths != score_lengths))
        raise InputError(
            f"query {query} has {count_of(lengths[query], 'grade')} "
            f"and {count_of(score_lengths[query], 'score')}; give one score for each document. "
            "Lists of ids go into dicts: evaluate({query: relevant ids}, {query: retrieved ids}, measures)"
        )
    if len(lengths) > 1 and {*columns} <= {"query_ids", "queries"}:  # other arguments imply grades
        from fastndcg.tables.lists import refuse_ids

        refuse_ids(
            offsets,
            flat,
            flat_scores,
            "relevance and scores hold",
            "dicts to evaluate({query: relevant ids}, {query: retrieved ids}, measures)",
            "scores as floats",
        )
    return offsets, flat, flat_scores, Locator(in_lists=True)


def _flatten(name: str, lists: Any, unjudged: str = "refuse") -> tuple[Int64, Array]:
    """Return the length of each list, and all values in one array."""
    if isinstance(lists, pa.Array | pa.ChunkedArray):
        import pyarrow.compute as pc

        column = combine(lists)
        lengths = array_of(pc.list_value_length(column)).astype(np.int64)
        return lengths, as_array(name, column.flatten(), unjudged)
    if isinstance(lists, str | bytes) or not isinstance(lists, Iterable):
        raise InputTypeError(
            f"{name} is a {type(lists).__name__}; expected a list for each query, as in [[3, 0], [1, 2, 0]]"
        )
    arrays = [
        np.asarray(unmask(f"{name} of query {query}", values, unjudged))
        for query, values in enumerate(unmask(name, lists))
    ]
    for query, array in enumerate(arrays):
        if array.ndim != 1:
            raise InputError(
                f"{name} of query {query} has shape {array.shape}; expected a list of numbers for each query"
            )
    filled = [array for array in arrays if array.size]  # empty lists do not determine the dtype
    flat = np.concatenate(filled) if filled else np.empty(0, np.float64)
    for query, array in enumerate(arrays if flat.dtype.kind == "f" else []):
        if array.dtype.kind in "iu" and array.size and (array.max() > 2**53 or array.min() < -(2**53)):
            raise InputError(
                f"{name} of query {query} holds whole numbers beyond 2**53 and other lists do not fit their "
                "dtype, so they would be rounded together as float64; give all lists as one integer dtype"
            )
    return np.fromiter((array.size for array in arrays), np.int64, len(arrays)), flat


def in_query_order(
    grouped: Grouped, relevance: npt.ArrayLike, scores: npt.ArrayLike, columns: Columns
) -> tuple[Flat, dict[str, Any]]:
    """Bring columns into query order. Also returns the other arguments in that order."""
    arguments: dict[str, Any] = {**columns, "query_ids": grouped.query_ids}
    if grouped.codes is None:
        return (grouped.offsets, relevance, scores, BY_ROW), arguments
    n_rows, rows = len(grouped.codes), grouped.rows

    def of_rows(name: str, values: Any) -> Array:
        array = as_array(name, values)
        check_length(name, len(array), n_rows, "query id")
        return array

    grades = cast_grades("relevance", relevance, columns.get("unjudged", "refuse"))
    ordered = grouped.in_order(of_rows("relevance", grades), of_rows("scores", scores))
    for name in ("is_judged", "propensity"):
        if arguments.get(name) is not None:
            arguments[name] = of_rows(name, arguments[name])[rows]
    if arguments.get("intents") is not None:
        arguments["intents"] = intent_grades("intents", arguments["intents"], n_rows).take(rows)  # type: ignore[arg-type]
    if arguments.get("doc_ids") is not None:
        arguments["doc_ids"] = arrow_column("doc_ids", arguments["doc_ids"], n_rows).take(pa.array(rows))
    return (grouped.offsets, *ordered, Locator(grouped=grouped)), arguments
