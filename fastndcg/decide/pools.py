"""`pool`: the documents that several systems return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.common.arrays import Flags, Int64, falling_keys, runs_of
from fastndcg.common.arrow_types import array_of, places_of
from fastndcg.common.table import Table
from fastndcg.errors import InputError, InputTypeError, check_whole, warn
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources.sides import plain_ids


def pool(systems: Mapping[str, Rankings], depth: int = 20) -> Table:
    """Pool the first documents of several systems: what is to be judged if their comparison shall be fair.

    Parameters
    ----------
    systems : mapping of names to Rankings
        With document ids. Queries and documents are matched by ids; a number is the same id as its text.
    depth : int
        The rank up to which documents of each system are taken. Tied documents are ranked by rising id.

    Returns
    -------
    Table
        A row for each query and document, queries in order of first appearance and documents by their best
        rank, then id: query, document; systems, a list of the names of those that return it up to this rank;
        best_rank, from 1; judged, whether it has a judgment in the rankings of any system. A warning says
        that the judgments of systems have different scales.

    Raises
    ------
    InputError, InputTypeError
        No systems, or no mapping of Rankings; no document ids, or a query id twice; a depth below 1.

    See Also
    --------
    check_judgments : shares judged, by system and slice.

    References
    ----------
    Sparck Jones and van Rijsbergen, Report on the need for and provision of an ideal information retrieval
    test collection, 1975; Buckley, Dimmick, Soboroff and Voorhees, Information Retrieval 2007, on its limits.

    Examples
    --------
    >>> from fastndcg import Rankings
    >>> qrels = {"q": {"a": 1}}
    >>> runs = {"bm25": {"q": ["a", "b", "c"]}, "dense": {"q": ["b", "a"]}}
    >>> pool({name: Rankings.from_qrels_run(qrels, run) for name, run in runs.items()}, 2).to_pylist()[1]
    {'query': 'q', 'document': 'b', 'systems': ['bm25', 'dense'], 'best_rank': 1, 'judged': False}
    """
    depth = check_whole("depth", depth, 1)
    found = _returned_by(systems, depth)
    order = np.lexsort((found.system, found.pair))
    starts = np.flatnonzero(np.diff(found.pair[order], prepend=-1))
    best = np.minimum.reduceat(found.rank[order], starts) if len(starts) else starts
    judged = np.logical_or.reduceat(found.judged[order], starts) if len(starts) else starts.astype(np.bool_)
    names = pa.array([str(name) for name in systems], pa.string()).take(pa.array(found.system[order]))
    query, document = found.query[order][starts], found.document[order][starts]
    columns = {
        "query": _shown(found.queries.take(pa.array(query))),
        "document": _shown(found.documents.take(pa.array(document))),
        "systems": pa.LargeListArray.from_arrays(pa.array(np.append(starts, len(order)), pa.int64()), names),
        "best_rank": pa.array(best),
        "judged": pa.array(judged),
    }
    return Table(pa.table(columns).take(pa.array(np.lexsort((document, best, query)))), 2)


class _Returned(NamedTuple):
    """The documents that systems return: a row for each document of a query and system, best first."""

    system: Int64
    query: Int64  # its number in `queries`
    document: Int64  # the place of its id in rising order
    rank: Int64  # from 1; tied documents stand in rising order of ids
    judged: Flags
    queries: pa.Array  # in order of first appearance
    documents: pa.Array  # in rising order
    pair: Int64  # the number of query and document, which rises with the query and then the document


def _returned_by(systems: Any, depth: int) -> _Returned:
    """What all systems return, up to a rank. Raises as `pool` does."""
    is_mapping = isinstance(systems, Mapping)
    if not is_mapping or not all(isinstance(each, Rankings) for each in systems.values()):
        kinds = {type(each).__name__ for each in systems.values()} if is_mapping else set()
        given = f"a mapping of {', '.join(sorted(kinds))}" if is_mapping else f"a {type(systems).__name__}"
        raise InputTypeError(
            'pool takes a mapping of names to Rankings, as in pool({"a": rankings_a, "b": rankings_b}); '
            f"got {given}"
        )
    if not systems:
        raise InputError("there are no systems; pool takes at least one")
    for name, each in systems.items():
        if each.doc_ids is None:
            raise InputError(
                f'the rankings of "{name}" have no document ids, by which documents of systems are matched; '
                "read them with doc_id=, or from judgments and a run"
            )
    _warn_of_scales(systems)
    queries, of_query = _numbered([each.query_ids for each in systems.values()])
    for name, codes in zip(systems, of_query, strict=True):
        if len(np.unique(codes)) < len(codes):
            raise InputError(f'the rankings of "{name}" have a query id twice; give each query its own')
    documents, of_document = _numbered([each.doc_ids for each in systems.values()])
    places, parts = places_of(documents), []
    for system, each in enumerate(systems.values()):
        document, query = places[of_document[system]], np.repeat(np.arange(each.n_queries), each.lengths)
        rows = np.lexsort((document, falling_keys(each.scores), query))
        rank = runs_of(1, each.lengths)
        rows, rank = rows[rank <= depth], rank[rank <= depth]
        judged = np.ones(len(rows), np.bool_) if each.is_judged is None else each.is_judged[rows]
        query = of_query[system][query[rows]]
        parts.append((np.full(len(rows), system), query, document[rows], rank, judged))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    documents = documents.take(pa.array(np.argsort(places)))
    pair = columns[1] * max(len(documents), 1) + columns[2]
    return _Returned._make([*columns, queries, documents, pair])


def _warn_of_scales(systems: Mapping[str, Rankings]) -> None:
    """Warn if the judgments of systems end at different highest grades, as 0 to 2 and 0 to 4 do."""
    tops: dict[float, str] = {}
    for name, each in systems.items():
        if each.is_judged is None or each.judged is not None or each.is_judged.any():
            tops.setdefault(float(each._grades.highest), name)
    if len(tops) > 1:
        (low, one), *_, (high, other) = sorted(tops.items())
        grades = systems[one]._distinct_grades[:10].tolist() if low > 0 else []
        mapping = ", ".join(f"{grade:g}: {grade * high / low:g}" for grade in grades)
        how = f" by grades=, as in grades={{{mapping}}}" if mapping else ""
        warn(
            f'the highest grade is {low:g} in the judgments of "{one}" and {high:g} in those of "{other}": '
            "grades on two scales are not compared; judge both by the same, or map one to the other where it "
            f"is read{how}"
        )


def _shown(ids: pa.Array) -> pa.Array:
    """Ids as people read them: bytes as text where they are that."""
    try:
        return ids.cast(pa.large_string()) if pa.types.is_large_binary(ids.type) else ids
    except pa.ArrowInvalid:
        return ids


def _numbered(columns: Sequence[Any]) -> tuple[pa.Array, list[Int64]]:
    """The distinct ids of several columns in order of first appearance, and their numbers in each column."""
    parts = [plain_ids(each) for each in columns]
    kinds = {each.type for each in parts}
    if len(kinds) > 1:
        to = pa.large_binary() if pa.large_binary() in kinds else pa.large_string()
        texts = (each.cast(pa.large_string()) if pa.types.is_integer(each.type) else each for each in parts)
        parts = [each.cast(to) for each in texts]
    found = pa.concat_arrays(parts).dictionary_encode()
    codes = array_of(found.indices).astype(np.int64)
    return found.dictionary, np.split(codes, np.cumsum([len(each) for each in parts])[:-1])
