"""`pool`: the documents that several systems return, matched by query and document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrays import falling_keys, runs_of
from fastndcg.common.arrow_types import array_of, places_of
from fastndcg.common.table import Table
from fastndcg.errors import InputError, InputTypeError, check_whole, warn
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources.sides import plain_ids

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_MOST_GRADES = 10  # that a message maps


class Returned(NamedTuple):
    """The documents that systems return: a row for each document of a query and system, best first."""

    system: Int64
    query: Int64  # its number in `queries`
    document: Int64  # the place of its id in rising order
    rank: Int64  # from 1; tied documents stand in rising order of ids
    row: Int64  # in the rankings of the system
    judged: Flags
    queries: pa.Array  # in order of first appearance
    documents: pa.Array  # in rising order
    of_systems: list[Int64]  # the numbers of the queries of each system

    @property
    def pair(self) -> Int64:
        """The number of query and document, which rises with the query and then the document."""
        return self.query * max(len(self.documents), 1) + self.document

    def of(self, chosen: Any) -> Returned:
        """These rows."""
        columns = dict(zip(self._fields[:6], (column[chosen] for column in self[:6]), strict=True))
        return self._replace(**columns)


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
        rank, then id, with these columns:

        - query, document;
        - systems: a list of the names of those that return it up to this rank;
        - best_rank, from 1;
        - judged: whether it has a judgment in the rankings of any system.

    Raises
    ------
    InputError
        No systems; rankings without document ids, or with a query id twice; a depth below 1.
    InputTypeError
        Systems that are no mapping of Rankings.

    Warns
    -----
    FastndcgWarning
        The judgments of systems have different scales.

    See Also
    --------
    judge_next : the documents whose judgment could move a comparison most.
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
    found = returned_by(systems, "pool", depth)
    order = np.lexsort((found.system, found.pair))
    found = found.of(order)
    starts = np.flatnonzero(np.diff(found.pair, prepend=-1))
    ends = np.append(starts, len(order))
    best = np.minimum.reduceat(found.rank, starts) if len(starts) else starts
    judged = np.logical_or.reduceat(found.judged, starts) if len(starts) else starts.astype(np.bool_)
    names = pa.array([str(name) for name in systems], pa.string()).take(pa.array(found.system))
    first = found.of(starts)
    rows = pa.array(np.lexsort((first.document, best, first.query)))
    columns = {
        "query": shown_ids(found.queries.take(pa.array(first.query))),
        "document": shown_ids(found.documents.take(pa.array(first.document))),
        "systems": pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), names),
        "best_rank": pa.array(best),
        "judged": pa.array(judged),
    }
    return Table(pa.table(columns).take(rows), 2)


def returned_by(systems: Any, function: str, depth: int | None = None) -> Returned:
    """What all systems return, up to a rank. Raises as `pool` does."""
    if not isinstance(systems, Mapping) or not all(isinstance(each, Rankings) for each in systems.values()):
        raise InputTypeError(
            f'{function} takes a mapping of names to Rankings, as in {function}({{"a": rankings_a, '
            f'"b": rankings_b}}); got {_kinds(systems)}'
        )
    if not systems:
        raise InputError(f"there are no systems; {function} takes at least one")
    for name, each in systems.items():
        if each.doc_ids is None:
            raise InputError(
                f'the rankings of "{name}" have no document ids, by which documents of systems are matched; '
                "read them with doc_id=, or from judgments and a run"
            )
    warn_of_scales(systems)
    queries, of_query = _numbered([each.query_ids for each in systems.values()])
    for name, codes in zip(systems, of_query, strict=True):
        if len(np.unique(codes)) < len(codes):
            raise InputError(f'the rankings of "{name}" have a query id twice; give each query its own')
    documents, of_document = _numbered([each.doc_ids for each in systems.values()])
    places = places_of(documents)
    parts = [
        _ranked(number, each, of_query[number], places[of_document[number]], depth)
        for number, each in enumerate(systems.values())
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    documents = documents.take(pa.array(np.argsort(places)))
    return Returned._make([*columns, queries, documents, of_query])


def warn_of_scales(systems: Mapping[str, Rankings]) -> None:
    """Warn if the judgments of systems end at different highest grades, as 0 to 2 and 0 to 4 do."""
    tops: dict[float, str] = {}
    for name, each in systems.items():
        grades = each._grades
        if each.is_judged is None or each.judged is not None or each.is_judged.any():
            tops.setdefault(float(grades.highest), name)
    if len(tops) > 1:
        (low, one), *_, (high, other) = sorted(tops.items())
        grades = systems[one]._distinct_grades[:_MOST_GRADES].tolist() if low > 0 else []
        mapping = ", ".join(f"{grade:g}: {grade * high / low:g}" for grade in grades)
        how = f" by grades=, as in grades={{{mapping}}}" if mapping else ""
        warn(
            f'the highest grade is {low:g} in the judgments of "{one}" and {high:g} in those of "{other}": '
            "grades on two scales are not compared; judge both by the same, or map one to the other where it "
            f"is read{how}"
        )


def shown_ids(ids: pa.Array) -> pa.Array:
    """Ids as people read them: bytes as text where they are that."""
    try:
        return ids.cast(pa.large_string()) if pa.types.is_large_binary(ids.type) else ids
    except pa.ArrowInvalid:
        return ids


def _kinds(systems: Any) -> str:
    if not isinstance(systems, Mapping):
        return f"a {type(systems).__name__}"
    return "a mapping of " + ", ".join(sorted({type(each).__name__ for each in systems.values()}))


def _numbered(columns: Sequence[Any]) -> tuple[pa.Array, list[Int64]]:
    """The distinct ids of several columns in order of first appearance, and their numbers in each column."""
    parts = [plain_ids(each) for each in columns]
    kinds = {each.type for each in parts}
    if len(kinds) > 1:
        to = pa.large_binary() if pa.large_binary() in kinds else pa.large_string()
        parts = [
            each.cast(pa.large_string()).cast(to) if pa.types.is_integer(each.type) else each.cast(to)
            for each in parts
        ]
    found = pa.concat_arrays(parts).dictionary_encode()
    codes = array_of(found.indices).astype(np.int64)
    return found.dictionary, np.split(codes, np.cumsum([len(each) for each in parts])[:-1])


def _ranked(
    system: int, rankings: Rankings, queries: Int64, documents: Int64, depth: int | None
) -> tuple[Array, ...]:
    """Columns of `Returned` for one system."""
    lengths = rankings.lengths
    query = np.repeat(np.arange(rankings.n_queries), lengths)
    rows = np.lexsort((documents, falling_keys(rankings.scores), query))
    rank = runs_of(1, lengths)
    if depth is not None:
        rows, rank = rows[rank <= depth], rank[rank <= depth]
    flags = rankings.is_judged
    judged = np.ones(len(rows), np.bool_) if flags is None else flags[rows]
    return np.full(len(rows), system), queries[query[rows]], documents[rows], rank, rows, judged
