"""Whether the ids of judgments and of a run meet: errors and warnings where they hardly do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import column_of
from fastndcg.errors import Argument, InputError, Part, Step, count_of, warn
from fastndcg.rankings.blame import shown

if TYPE_CHECKING:
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.sides import Side
    from fastndcg.typing import Missing

Array = npt.NDArray[Any]

_LEAST_FOUND = (
    0.01  # share of queries with a judged document below which ids are probably written differently
)

_SAMPLE = 3  # ids that a message names


def check_queries(qrels: Side, run: Side, common: Array, missing: Missing) -> None:
    """Refuse sides without a common query, and warn if they have few; `common` are numbers in the qrels."""
    judged, returned = len(qrels.queries), len(run.queries)
    if not judged or not len(run.codes):
        return
    if not len(common):
        raise _nothing_in_common(qrels, run, "query", sample(qrels.queries), sample(run.queries))
    if 2 * len(common) < (judged if missing == "zero" else min(judged, returned)):
        lacking = np.setdiff1d(np.arange(judged), common)
        counted: tuple[Part, ...] = (", are left out",)
        if missing == "zero":
            skip = Step("; pass ", Argument("missing", "skip"), " to leave them out")
            counted = (", count with an empty ranking", skip)
        warn(
            f"{qrels.name} has {count_of(judged, 'query')} and {run.name} {count_of(returned, 'query')}; "
            f"they have {len(common):,} in common. "
            f"The other judged ones, {sample(qrels.queries.take(pa.array(lacking)))}",
            *counted,
            ". If that is not meant, compare how ids are written.",
        )


def check_documents(qrels: Side, run: Side, rankings: Rankings) -> None:
    """Refuse sides whose queries have no document in common, and warn if hardly any has one."""
    met = rankings.relevance < 0  # unjudged documents of the pool
    met = met if rankings.is_judged is None else met | rankings.is_judged
    ends = np.append(0, np.cumsum(met))[rankings.offsets]
    returned, found = np.flatnonzero(rankings.lengths), int(np.count_nonzero(np.diff(ends)))
    if found >= max(1, _LEAST_FOUND * len(returned)) or not len(returned):
        return
    query = int(returned[0 if not found else np.argmax(np.diff(ends)[returned] == 0)])
    of_query = rankings.query_ids[query]
    codes = np.flatnonzero([each == of_query for each in qrels.queries])
    there = sample(qrels.docs.take(column_of(np.flatnonzero(qrels.codes == codes[0]))))
    here = sample(rankings.doc_ids[int(rankings.offsets[query]) : int(rankings.offsets[query + 1])])  # type: ignore[index]
    of = f"documents of query {shown(of_query)}"
    if not found:
        raise _nothing_in_common(qrels, run, "document", f"{of} are {there}", here)
    warn(
        f"of {count_of(len(returned), 'query')} of {run.name} only {found:,} have a document that "
        f"{qrels.name} judges: {of} are {there} there, {here} here. "
        "If that is not meant, compare how ids are written."
    )


def _nothing_in_common(qrels: Side, run: Side, of: str, there: str, here: str) -> InputError:
    return InputError(
        f"{qrels.name} and {run.name} have no {of} in common: {there} there, {here} here. "
        "Compare how ids are written."
    )


def sample(ids: pa.Array) -> str:
    """The first ids, as a message has them."""
    return ", ".join(map(shown, ids[:_SAMPLE])) + (" ..." if len(ids) > _SAMPLE else "")
