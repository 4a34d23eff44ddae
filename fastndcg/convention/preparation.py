"""Prepare data as a tool does: cast scores, order ties, and find the queries that it leaves out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrays import offsets_from, read_only
from fastndcg.common.arrow_types import array_of, decode, places_of
from fastndcg.errors import ConventionError
from fastndcg.measures.rules import OF_MEASURE
from fastndcg.rankings.rankings import Rankings
from fastndcg.scoring import laid_out, ways, worths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastndcg.measures import Measure
    from fastndcg.measures.by_tool import Convention

Bools = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]


def prepare(rankings: Rankings, convention: Convention, measures: Sequence[Measure]) -> Rankings:
    """Cast scores to the tool's type, and order tied documents as the tool does.

    Raise `ConventionError` if that order is not known and a value of one of the measures depends on it.
    """
    rankings = without_pool(rankings, convention)
    if convention.score_dtype == "float32" and rankings.scores.dtype != np.float32:
        with np.errstate(over="ignore"):  # the tools overflow to infinity too
            rankings = _with_rows(rankings, None, rankings.scores.astype(np.float32))
    if convention.ties in OF_MEASURE:
        return rankings
    if convention.ties == "numba_argsort":
        from fastndcg.kernels.compile import worlds

        # the order of ties is that of Numba's function, which is not documented
        scores = read_only(np.ascontiguousarray(rankings.scores, np.float64))
        rows = worlds.run("reading.rows.argsort_falling", math.inf, rankings.offsets, scores)
        return _with_rows(rankings, rows, rankings.scores)
    if convention.ties in ("input_to_16", "unspecified"):
        _refuse_ties(rankings, convention, measures, 16 if convention.ties == "input_to_16" else 0)
        return rankings
    if rankings.doc_ids is None:
        _refuse_ties(rankings, convention, measures, 0)
        return rankings
    place = _places_of_ids(rankings.doc_ids, as_text=convention.ties != "item_desc")
    query = np.repeat(np.arange(rankings.n_queries), rankings.lengths)
    rows = np.lexsort((place if convention.ties == "docid_asc" else -place, query))
    return _with_rows(rankings, rows, rankings.scores)


def without_pool(rankings: Rankings, convention: Convention) -> Rankings:
    """Rankings without the judged documents that were not scored, if the tool knows none."""
    if convention.pool == "judged" or rankings.judged is None:
        return rankings
    return rankings._of(**rankings.__getstate__() | {"judged": None})


def _with_rows(rankings: Rankings, rows: Int64 | None, scores: npt.NDArray[Any]) -> Rankings:
    """Return the rankings with these scores and rows in this order; without document ids if rows move."""
    relevance, is_judged, doc_ids = rankings.relevance, rankings.is_judged, rankings.doc_ids
    first_row = rankings.__dict__["_first_row"]
    if rows is not None:
        relevance, scores = relevance[rows], scores[rows]
        is_judged = None if is_judged is None else is_judged[rows]
        doc_ids = first_row = None
    return Rankings._from_offsets(
        rankings.offsets,
        relevance,
        scores,
        judged=rankings.judged,
        is_judged=is_judged,
        query_ids=rankings.query_ids,
    )._with(doc_ids=doc_ids, _first_row=first_row)


def _places_of_ids(ids: pa.Array | pa.ChunkedArray, *, as_text: bool) -> Int64:
    """Return each id's position in the sorted distinct ids. Text is sorted by UTF-8 bytes, as by strcmp."""
    import pyarrow.compute as pc

    distinct = decode(pc.unique(ids))
    places = places_of(distinct.cast(pa.string()) if as_text else distinct)
    of_rows: Int64 = places[array_of(pc.index_in(decode(ids), distinct))]
    return of_rows


def _refuse_ties(
    rankings: Rankings, convention: Convention, measures: Sequence[Measure], longest: int
) -> None:
    """Raise `ConventionError` if the order of ties in a list longer than `longest` changes a value."""
    orders = [
        measure(ties=ties) for ties in ("worst", "best") for measure in measures if "ties" in measure.params
    ]
    worst, best = np.split(ways.values(tuple(orders), rankings), 2)
    differs = (worst != best) & ~(np.isnan(worst) & np.isnan(best)) & (rankings.lengths > longest)
    if not differs.any():
        return
    first = rankings._name_of(int(np.flatnonzero(differs.any(axis=0))[0]))
    where = f"query {first} has tied documents with different gains"
    if convention.orders_by_id:
        raise ConventionError(
            convention.name,
            f" orders ties by document id, but {where}, and the rankings have no document ids. "
            "Give doc_ids= (doc_id= of a reader).",
        )
    raise ConventionError(
        convention.name,
        f" does not define the order of ties{f' in lists of more than {longest}' if longest else ''}, "
        f"and {where}, so its value cannot be reproduced. Use its measure with another rule, "
        f'as in {measures[0].name}(like="{convention.name}", ties="average").',
    )


def find_left_out(rankings: Rankings, convention: Convention) -> Bools:
    """Return whether the tool leaves out each query."""
    returned = rankings.lengths > 0
    judged = np.diff(laid_out.pool(rankings)[0]) > 0
    if convention.unjudged == "skip_irrelevant":
        offsets, relevance = laid_out.pool(rankings)
        gains = offsets_from(worths.gains_of_grades(convention.measure(), relevance) > 0)
        judged = np.diff(gains[offsets]) > 0
    out = ~returned & ~judged
    if convention.missing != "value":
        out = out | ~returned
    return out if convention.unjudged == "value" else out | ~judged
