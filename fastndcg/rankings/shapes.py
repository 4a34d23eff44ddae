"""Groups, ids of rows, matrices and lists as what `Rankings.from_offsets` takes: offsets and flat columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import arrow_column, as_array, offsets_from, unmask
from fastndcg.common.later import pa
from fastndcg.errors import InputError, count_of
from fastndcg.rankings.blame import Blame
from fastndcg.rankings.casts import cast_integers, cast_relevance, cast_rows, flatten
from fastndcg.rankings.intents import intent_grades

if TYPE_CHECKING:
    from fastndcg.rankings.grouping import Grouped
    from fastndcg.typing import Columns, ColumnsAndIds, Unjudged

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]
Flat = tuple[Int64, Array, Array, Blame]  # offsets, relevance, scores; how documents are called


def offsets_of_groups(group: npt.ArrayLike, relevance: npt.ArrayLike, unjudged: Unjudged) -> Int64:
    sizes = cast_integers("group", group)
    if sizes.size and sizes.min() < 0:
        first = int(np.argmax(sizes < 0))
        raise InputError(
            f"group has a negative size, {sizes[first]} at position {first}; "
            "each is the number of documents of a query"
        )
    total = int(sizes.sum())
    rows = len(as_array("relevance", relevance, unjudged))
    if total != rows:
        raise InputError(
            f"group adds up to {count_of(total, 'document')}, but relevance has {rows:,}; "
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
            "wanted two equal shapes (n_queries, n_docs_per_query)"
        )
    n_queries, width = true.shape
    if mask is None:
        offsets = np.arange(n_queries + 1, dtype=np.int64) * width
        return offsets, true.ravel(), score.ravel(), Blame(in_lists=True)
    kept = np.asarray(unmask("mask", mask))
    if kept.shape != true.shape or kept.dtype != np.bool_:
        raise InputError(
            f"mask has shape {kept.shape} and dtype {kept.dtype}; "
            f"wanted True and False in the shape of y_true, {true.shape}"
        )
    blame = Blame(in_lists=True, positions=np.nonzero(kept)[1])
    return offsets_from(kept.sum(axis=1)), true[kept], score[kept], blame


def flat_of_lists(relevance: Any, scores: Any, columns: ColumnsAndIds) -> Flat:
    """Without scores, the lists stand in rank order."""
    lengths, flat = flatten("relevance", relevance, columns.get("unjudged", "refuse"))
    offsets = offsets_from(lengths)
    if scores is None:
        if columns.get("ascending"):
            raise InputError(
                "ascending is True and there are no scores; lists without scores stand in rank order, "
                "best first"
            )
        ranked = np.repeat(offsets[1:], lengths) - np.arange(1, len(flat) + 1)
        return offsets, flat, ranked, Blame(in_lists=True)
    score_lengths, flat_scores = flatten("scores", scores)
    if len(score_lengths) != len(lengths):
        raise InputError(
            f"scores has {count_of(len(score_lengths), 'list')} and relevance {len(lengths):,}; "
            "give one of each for every query"
        )
    if not np.array_equal(lengths, score_lengths):
        query = int(np.argmax(lengths != score_lengths))
        raise InputError(
            f"query {query} has {count_of(lengths[query], 'grade')} "
            f"and {count_of(score_lengths[query], 'score')}; give one score for each document"
        )
    return offsets, flat, flat_scores, Blame(in_lists=True)


def in_query_order(
    grouped: Grouped, relevance: npt.ArrayLike, scores: npt.ArrayLike, columns: Columns
) -> tuple[Flat, dict[str, Any]]:
    """Columns of scattered rows in the order of their queries, and the ids of these."""
    n_rows = len(grouped.codes)  # type: ignore[arg-type]
    grades = cast_relevance("relevance", relevance, columns.get("unjudged", "refuse"))
    ordered = grouped.in_order(cast_rows("relevance", grades, n_rows), cast_rows("scores", scores, n_rows))
    given: dict[str, Any] = {**columns, "query_ids": grouped.query_ids}
    of_rows = {
        name for name in ("is_judged", "propensity", "intents", "doc_ids") if given.get(name) is not None
    }
    if of_rows:
        rows: Any = grouped.rows
        for name in of_rows & {"is_judged", "propensity"}:
            given[name] = cast_rows(name, given[name], n_rows)[rows]
        if "intents" in of_rows:
            given["intents"] = intent_grades("intents", given["intents"], n_rows).take(rows)
        if "doc_ids" in of_rows:
            given["doc_ids"] = arrow_column("doc_ids", given["doc_ids"], n_rows).take(pa.array(rows))
    return (grouped.offsets, *ordered, Blame(grouped=grouped)), given
