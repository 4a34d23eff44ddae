"""Weights of queries in means: counts of their documents, or a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import offsets_of
from fastndcg.common.arrow_types import array_of
from fastndcg.common.later import pa
from fastndcg.errors import Argument, ColumnError, InputError, suggest
from fastndcg.measures import Measure, NumRel, NumRet

Float64 = npt.NDArray[np.float64]

OWN = "weight"
COUNTS = {"n_docs": "NumRet", "n_relevant": "NumRel"}
"""Words for weights, and the measure whose values they are."""


def weights_by(scores: Any, weights: str | None) -> Float64 | None:
    """A weight of each query, (n_queries,). Raises `InputError` or `ColumnError` if they are not known."""
    if weights is None or weights == OWN:
        own: Float64 | None = scores.weight
        return own if weights else None
    if weights in COUNTS and weights not in scores.queries.column_names:
        measure = NumRet if weights == "n_docs" else NumRel(rel=_relevant_from(scores))
        if measure in scores.measures:
            found: Float64 = scores[measure]
            return found
        return _count(scores, weights, measure)
    return _column(scores, weights)


def _relevant_from(scores: Any) -> float:
    found = {measure.params.get("rel") or 1.0 for measure in scores.measures if measure.name != "NumRel"}
    if len(found) > 1:
        shown = ", ".join(f"rel={rel:g}" for rel in sorted(found))
        raise InputError(
            f"weights='n_relevant' is not one number for each query: the measures have {shown}; "
            "evaluate measures of each rel by themselves"
        )
    return float(found.pop()) if found else 1.0


def _count(scores: Any, weights: str, measure: Measure) -> Float64:
    source = scores._source
    rankings, rows = getattr(source, "rankings", source), getattr(source, "rows", slice(None))
    if not hasattr(rankings, "offsets"):  # parts of a stream are gone, and stored results have no documents
        raise InputError(
            f"weights={weights!r} are not known of these scores, which do not hold their documents; "
            f'evaluate {measure} too, as in measures=[..., "{measure}"]'
        )
    if weights == "n_docs":
        return np.asarray(np.diff(rankings.offsets)[rows], np.float64)
    offsets, flags = rankings.offsets, rankings.relevance >= measure.rel
    if rankings.judged is not None:
        offsets, flags = rankings.judged.offsets, rankings.judged.relevance >= measure.rel
    elif rankings.is_judged is not None:
        flags = flags & rankings.is_judged
    return np.asarray(np.diff(offsets_of(flags, offsets))[rows], np.float64)


def _column(scores: Any, name: str) -> Float64:
    kept = scores.queries.column_names
    if name not in kept:
        known = [*COUNTS, *kept]
        raise ColumnError(
            f"weights={name!r} is no column of the queries, which have: {', '.join(kept)}; wanted one of "
            f"these, 'n_relevant', 'n_docs' or None. A column of the data is kept if it is named in ",
            Argument("keep"),
            f".{suggest(str(name), known)}",
        )
    column = scores.queries[name]
    try:
        found: Float64 = array_of(column.cast("float64"))
    except pa.ArrowException:
        raise InputError(
            f'column "{name}" is of {column.type} and holds no weights; wanted numbers'
        ) from None
    bad = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
    if column.null_count or len(bad):
        row = column.is_null().index(True).as_py() if column.null_count else int(bad[0])
        raise InputError(
            f'column "{name}" holds {column[row].as_py()} for query {scores.queries[0][row].as_py()!r}; '
            "weights are finite numbers from 0"
        )
    return found
