"""`pool`: the first documents of several runs, and which of them are judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pyarrow as pa

from fastndcg.analysis.alignment import as_texts
from fastndcg.common.arrays import Int64, falling_keys, runs_of
from fastndcg.common.arrow_types import array_of, places_of
from fastndcg.common.table import Table
from fastndcg.errors import InputError, InputTypeError, check_whole, known_arguments, warn
from fastndcg.sources.trec import side_of_any
from fastndcg.tables.joins import alike, duplicate, sample, with_ranked_nan
from fastndcg.tables.roles import OF_ONE_TABLE, Roles, with_roles_of_both

if TYPE_CHECKING:
    from fastndcg.tables.joins import Side
    from fastndcg.typing import JoinKeywords


@known_arguments
@with_roles_of_both
def pool(runs: Mapping[str, Any], depth: int = 20, qrels: Any = None, **roles: Unpack[JoinKeywords]) -> Table:
    """Pool the first documents of several runs: what to judge so that their comparison is fair.

    Parameters
    ----------
    runs : mapping of names to runs
        Each run is a path, a table or a dict, as `evaluate` takes it. Numbers in one run match their text in
        another.
    depth : int
        Number of documents to take from each run and query. Documents with equal scores are ordered by
        falling id, as in `read_trec`.
    qrels : optional
        The judgments so far: a path, a table or a dict.
    query, doc_id, relevance, score, rank, weight, keep
    nan, ascending, unjudged, grades, types, columns, sep, decimal, relevant_ids, retrieved_ids, duplicates
        Columns and how to read them, as in `Rankings.from_qrels_run`.

    Returns
    -------
    Table
        A row for each query and document; queries in order of first appearance, documents of a query by best
        rank, then by id. Columns: query; document; best_rank, the lowest rank in any run, from 1; systems, a
        list of the names of the runs that return the document up to `depth`; judged, whether `qrels` has its
        grade. A negative grade does not count as a judgment.

    Warns
    -----
    FastndcgWarning
        `qrels` has no query or no document in common with the runs.

    Raises
    ------
    InputError, InputTypeError, ColumnError, SourceError
        No runs, or not a mapping; a depth below 1; a document twice in one run or in `qrels`; input that
        `Rankings.from_qrels_run` refuses.

    See Also
    --------
    check_judgments : share of judged documents by run and slice.

    References
    ----------
    Sparck Jones and van Rijsbergen, Report on the need for and provision of an ideal information retrieval
    test collection, 1975; Buckley, Dimmick, Soboroff and Voorhees, Information Retrieval 2007, on its limits.

    Examples
    --------
    >>> runs = {"bm25": {"q": ["a", "b", "c"]}, "dense": {"q": {"b": 0.9, "a": 0.4}}}
    >>> pool(runs, depth=2, qrels={"q": {"a": 1}})
    query  document  best_rank  systems      judged
    q      a                 1  bm25, dense     yes
    q      b                 1  bm25, dense
    """
    depth = check_whole("depth", depth, 1)
    named = Roles.of(roles, "pool", OF_ONE_TABLE)
    sides = [
        with_ranked_nan(side_of_any(f'run "{name}"', run, "score", named), named.nan)
        for name, run in _named(runs).items()
    ]
    if qrels is not None:
        sides.append(side_of_any("qrels", qrels, "relevance", named))
    queries, of_query = _numbered([side.queries for side in sides])
    documents, of_document = _numbered([side.docs for side in sides])
    if qrels is not None:
        _warn_if_nothing_in_common(
            sides[-1].name, {"query": (queries, of_query), "document": (documents, of_document)}
        )
    places = places_of(documents)
    returned, known = [], np.empty(0, np.int64)
    for number, side in enumerate(sides):
        query, document = of_query[number][side.codes], places[of_document[number]]
        pairs = query * len(documents) + document  # rise with the query, then with the document
        _check_once(side, pairs)
        if number == len(runs):
            known = pairs[side.values >= 0]
            break
        order = np.lexsort((-document, falling_keys(side.values), query))
        lengths = np.diff(np.flatnonzero(np.diff(query[order], prepend=-1, append=-1)))
        ranks = runs_of(1, lengths)
        chosen = order[ranks <= depth]
        returned.append((np.full(len(chosen), number), pairs[chosen], ranks[ranks <= depth]))
    systems, pairs, ranks = (np.concatenate(column) for column in zip(*returned, strict=True))
    order = np.lexsort((systems, pairs))
    pairs, starts = np.unique(pairs[order], return_index=True)
    best = np.minimum.reduceat(ranks[order], starts) if len(starts) else starts
    judged = np.isin(pairs, known)
    query, document = np.divmod(pairs, max(len(documents), 1))
    names = pa.array(map(str, runs), pa.string()).take(pa.array(systems[order]))
    columns = {
        "query": as_texts(queries.take(pa.array(query))),
        "document": as_texts(documents.take(pa.array(np.argsort(places)[document]))),
        "best_rank": pa.array(best),
        "systems": pa.LargeListArray.from_arrays(pa.array(np.append(starts, len(order)), pa.int64()), names),
        "judged": pa.array(judged),
    }
    return Table(pa.table(columns).take(pa.array(np.lexsort((document, best, query)))), 2)


def _named(runs: Any) -> Mapping[str, Any]:
    if not isinstance(runs, Mapping):
        raise InputTypeError(
            f"runs is a {type(runs).__name__}; expected a mapping of names to runs, "
            'as in pool({"bm25": run, "dense": other_run})'
        )
    if not runs:
        raise InputError("there are no runs to pool; give at least one")
    if len(set(map(str, runs))) < len(runs):
        raise InputError(f"two runs have the same name as text: {', '.join(map(repr, runs))}; rename one")
    return runs


def _numbered(columns: list[Any]) -> tuple[pa.Array, list[Int64]]:
    """The distinct ids of several columns in order of first appearance, and their numbers in each column."""
    ids = alike(*columns)
    found = pa.concat_arrays(ids).dictionary_encode()
    codes = array_of(found.indices).astype(np.int64)
    return found.dictionary, np.split(codes, np.cumsum([len(each) for each in ids])[:-1])


def _check_once(side: Side, pairs: Int64) -> None:
    """Raise for a document that appears twice in a query."""
    ordered = np.sort(pairs)
    if (ordered[1:] == ordered[:-1]).any():
        _, first, number = np.unique(pairs, return_index=True, return_inverse=True)
        second = int(np.argmax(first[number] < np.arange(len(pairs))))
        raise duplicate(side, int(first[number[second]]), second)


def _warn_if_nothing_in_common(qrels: str, ids: Mapping[str, tuple[pa.Array, list[Int64]]]) -> None:
    """Warn if the judgments, the last side, share no query or no document with the runs."""
    for noun, (distinct, (*of_runs, judged)) in ids.items():
        n_returned = 1 + max(each.max(initial=-1) for each in of_runs)  # numbered by first appearance
        if n_returned and len(judged) and judged.min() >= n_returned:
            theirs, ours = as_texts(distinct[n_returned:]), as_texts(distinct[:n_returned])
            warn(
                f"{qrels} and the runs have no {noun} in common: {sample(theirs)} there, "
                f"{sample(ours)} here. If that is not meant, compare how ids are written."
            )
            return
