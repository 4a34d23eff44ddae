"""`pool`: the documents that several systems return; `judge_next`: which of them to judge first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.common.arrays import (
    Flags,
    Float64,
    Int64,
    falling_keys,
    offsets_from,
    offsets_of,
    parts_of,
    runs_of,
)
from fastndcg.common.arrow_types import array_of, column_of, places_of, plain
from fastndcg.common.table import Table
from fastndcg.errors import InputError, InputTypeError, MeasureError, check_whole, warn
from fastndcg.measures import Measure, P, as_measures
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.slices import check_kept, column_names, groups_of
from fastndcg.scoring import ways, worths
from fastndcg.scoring.discounts import discount_of, discount_table
from fastndcg.scoring.unjudged import grades_of_scale, unjudged_of
from fastndcg.sources.sides import plain_ids

_SAME = 12  # decimals by which changes of a query are told apart: others are rounding


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
    found = _returned_by(systems, "pool", depth)
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
    row: Int64  # in the rankings of the system
    judged: Flags
    queries: pa.Array  # in order of first appearance
    documents: pa.Array  # in rising order
    of_systems: list[Int64]  # the numbers of the queries of each system
    pair: Int64  # the number of query and document, which rises with the query and then the document


def _returned_by(systems: Any, function: str, depth: int | None = None) -> _Returned:
    """What all systems return, up to a rank. Raises as `pool` does."""
    is_mapping = isinstance(systems, Mapping)
    if not is_mapping or not all(isinstance(each, Rankings) for each in systems.values()):
        kinds = {type(each).__name__ for each in systems.values()} if is_mapping else set()
        given = f"a mapping of {', '.join(sorted(kinds))}" if is_mapping else f"a {type(systems).__name__}"
        raise InputTypeError(
            f'{function} takes a mapping of names to Rankings, as in {function}({{"a": rankings_a, '
            f'"b": rankings_b}}); got {given}'
        )
    if not systems:
        raise InputError(f"there are no systems; {function} takes at least one")
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
        if depth is not None:
            rows, rank = rows[rank <= depth], rank[rank <= depth]
        judged = np.ones(len(rows), np.bool_) if each.is_judged is None else each.is_judged[rows]
        query = of_query[system][query[rows]]
        parts.append((np.full(len(rows), system), query, document[rows], rank, rows, judged))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    documents = documents.take(pa.array(np.argsort(places)))
    pair = columns[1] * max(len(documents), 1) + columns[2]
    return _Returned._make([*columns, queries, documents, of_query, pair])


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


def judge_next(
    systems: Mapping[str, Rankings],
    measure: Any,
    n: int = 200,
    *,
    by: str | Sequence[str] = (),
    top: float | None = None,
    threads: int | None = None,
) -> Table:
    """List the unjudged documents whose judgment could move the difference of two systems most.

    Parameters
    ----------
    systems : mapping of two names to Rankings
        With `is_judged`, document ids, and the same queries, as `Rankings.from_qrels_run` makes them.
    measure, n
        One measure, such as "nDCG@10", and how many documents can be judged.
    by : kept columns, optional
        Slices of queries that share the budget alike: each has its best document listed, then each its
        second, and so on; what one does not use, the others have.
    top, threads : optional
        The highest grade that a document may get (default: the highest that occurs in both); as in
        `evaluate`.

    Returns
    -------
    Table
        Up to `n` rows, largest change first and ties by query and document id: query, document, and the
        columns of `by`; move, the most by which a grade of this document alone could change the difference of
        the means; grade, which does; and rank_NAME, its rank of each system, null where it does not return
        it. Documents that cannot move the difference are left out.

    Raises
    ------
    InputError, InputTypeError, MeasureError, ColumnError
        Other than two systems, or no Rankings; queries that one of them lacks; no document ids; no judgment
        and no `top`; several measures, or one of intents; a column that was not kept.

    See Also
    --------
    pool : all documents that systems return.
    judgment_range : how far all missing judgments could move a measure.

    Notes
    -----
    A judged document enters the ideal ranking of both systems, so that with nDCG it moves the difference even
    if both return it at one rank. Sums over ranks (DCG, CG, P and RBP with ties="average" or "input") change
    by (gain of the grade - present gain) * (difference of the discounts of its ranks), computed for all
    documents at once. Other measures are evaluated for each document and grade (of more than 16 the lowest
    and highest), which without a cutoff takes the square of the length of lists. A query without a value
    counts as 0. Judgments of different scales are warned of.

    References
    ----------
    Carterette, Allan and Sitaraman, Minimal test collections for retrieval evaluation, SIGIR 2006.

    Examples
    --------
    >>> qrels = {"q": {"a": 1}, "p": {"x": 1}}
    >>> runs = {"old": {"q": ["a", "b"], "p": ["x", "y"]}, "new": {"q": ["c", "a"], "p": ["x", "y"]}}
    >>> systems = {name: Rankings.from_qrels_run(qrels, run) for name, run in runs.items()}
    >>> judge_next(systems, "P@1", n=5)
    query  document      move     grade  rank_old  rank_new
    q      c         0.500000  1.000000                   1
    """
    most = check_whole("n", n, 1)
    asked = as_measures(measure)
    if len(asked) > 1 or asked[0].definition.way == "intents":
        raise MeasureError(f"judge_next takes one measure of grades, as nDCG@10; got {measure!r}")
    found = _returned_by(systems, "judge_next")
    if len(systems) != 2:
        raise InputError(f"judge_next compares two systems; got {len(systems)}. Name the two that matter")
    slices, both = column_names(by), list(systems.values())
    check_kept(slices, both[0].queries.column_names)
    if any(each.n_queries != len(found.queries) for each in both):
        raise InputError(
            "the two systems have different queries; give both rankings of the same queries, as "
            'Rankings.from_qrels_run makes them with missing="zero"'
        )
    # documents of which no system has a judgment, with their rows and ranks in both, or -1
    pairs, place = np.unique(found.pair, return_inverse=True)
    unjudged = np.ones(len(pairs), np.bool_)
    unjudged[place[found.judged]] = False
    rows, ranks = np.full((2, 2, len(pairs)), -1)
    rows[found.system, place], ranks[found.system, place] = found.row, found.rank
    rows, ranks = rows[:, unjudged], ranks[:, unjudged]
    number_of_query, document = np.divmod(pairs[unjudged], max(len(found.documents), 1))
    queries = np.stack([np.argsort(numbers)[number_of_query] for numbers in found.of_systems])
    grades = np.unique(np.concatenate([grades_of_scale(each, top) for each in both]))
    grades = grades if len(grades) <= 16 else grades[[0, -1]]
    moves, best = _moves(asked[0], both, queries, rows, grades, threads)
    weight = np.ones(len(found.queries)) if both[0].weight is None else both[0].weight
    shares = weight[queries[0]] / weight.sum()
    size = np.round(moves, _SAME) * shares
    order = np.lexsort((document, places_of(found.queries)[number_of_query], -size))
    order = order[size[order] > 0]
    if slices:
        slice_of = np.empty(len(found.queries), np.int64)
        for code, those in enumerate(groups_of([both[0].queries[name] for name in slices])[1]):
            slice_of[those] = code
        codes = slice_of[queries[0, order]]
        turn = np.empty(len(order), np.int64)
        turn[np.argsort(codes, kind="stable")] = runs_of(0, np.bincount(codes))
        order = order[np.sort(np.argsort(turn, kind="stable")[:most])]
    order = order[:most]
    columns = {
        "query": _shown(found.queries.take(column_of(number_of_query[order]))),
        "document": _shown(found.documents.take(column_of(document[order]))),
        **{name: plain(both[0].queries[name]).take(column_of(queries[0, order])) for name in slices},
        "move": pa.array((moves * shares)[order]),
        "grade": pa.array(grades[best[order]]),
    }
    for name, of_system in zip(systems, ranks[:, order], strict=True):
        columns[f"rank_{name}"] = pa.array(of_system, mask=of_system < 0)
    return Table(pa.table(columns), 2)


def _moves(
    measure: Measure, both: list[Rankings], queries: Int64, rows: Int64, grades: Float64, threads: int | None
) -> tuple[Float64, Int64]:
    """The largest change of the difference of both values of a query, and which grade makes it."""
    if _is_sum(measure):
        discounts = [_discounts(measure, *each) for each in zip(both, rows, strict=True)]
        gains = worths.gains_of_grades(measure, grades) - worths.gain_of_unjudged(worths.worth_of(measure))
        best = np.full(rows.shape[1], np.argmax(np.abs(gains)))
        return np.abs(gains).max() * np.abs(discounts[1] - discounts[0]), best
    cut = [_first(each, measure) for each in both]
    places = [np.append(new, -1)[of_system] for (_, new), of_system in zip(cut, rows, strict=True)]
    alike = np.stack([queries[0], *places])
    _, first, like = np.unique(alike, axis=1, return_index=True, return_inverse=True)
    changes = np.zeros((len(grades), len(first)))
    for sign, (rankings, _), of_system, place in zip((-1, 1), cut, queries, places, strict=True):
        for row, grade in enumerate(grades):
            changes[row] += sign * _changes(measure, rankings, of_system[first], place[first], grade, threads)
    found = np.argmax(np.abs(np.round(changes, _SAME)), axis=0)
    return np.abs(changes[found, np.arange(len(first))])[like.ravel()], found[like.ravel()]


def _is_sum(measure: Measure) -> bool:
    """Whether each document adds a gain times a discount of its rank, whatever the others are."""
    params = measure.params
    if measure.name == "P" and (measure.cutoff is None or measure != P @ measure.cutoff):
        return False
    if measure.name not in ("DCG", "CG", "RBP", "P") or params.get("judged_only") or params.get("ips"):
        return False
    return params.get("ties") in ("average", "input")


def _discounts(measure: Measure, rankings: Rankings, rows: Int64) -> Float64:
    """What each unit of gain of these documents adds, 0 of those that are not returned."""
    found, longest = unjudged_of(rankings), int(rankings.lengths.max(initial=0))
    table = np.array(discount_table(discount_of(measure), longest))
    table *= {"P": 1 / (measure.cutoff or 1), "RBP": 1 - measure.params.get("p", 0.0)}.get(measure.name, 1.0)
    table[measure.cutoff if measure.cutoff is not None else longest :] = 0
    ends = np.append(0.0, np.cumsum(table))
    of_place = np.append(table, 0.0)[found.rank]
    if measure.ties == "average":
        shared = (ends[found.first + found.size] - ends[found.first]) / found.size
        of_place = np.where(found.size > 1, shared, of_place)
    of_row = np.zeros(rankings.n_docs + 1)
    of_row[found.order] = of_place
    return of_row[rows]


def _first(rankings: Rankings, measure: Measure) -> tuple[Rankings, Int64]:
    """The documents that a cutoff can show, or all where others matter; and the new row of each, or -1."""
    own = np.arange(rankings.n_docs)
    if measure.cutoff is None or rankings.judged is None or measure.params.get("ideal", "judged") != "judged":
        return rankings, own
    found, shown = unjudged_of(rankings), np.zeros(rankings.n_docs, np.bool_)
    shown[found.order] = found.first < measure.cutoff
    cut = _of(rankings, np.flatnonzero(shown), offsets_of(shown, rankings.offsets), rankings.judged)
    before, after = (ways.score((measure,), each, None).values for each in (rankings, cut))
    if measure.params.get("judged_only") or not np.array_equal(before, after, equal_nan=True):
        return rankings, own
    return cut, np.where(shown, np.cumsum(shown) - 1, -1)


def _of(rankings: Rankings, rows: Int64, offsets: Int64, judged: Any, **changed: Any) -> Rankings:
    """Some documents of queries."""
    columns: dict[str, Any] = {
        name: None if (column := getattr(rankings, name)) is None else column[rows]
        for name in ("relevance", "is_judged", "propensity")
    }
    return Rankings._from_offsets(offsets, scores=rankings.scores[rows], judged=judged, **(columns | changed))


def _changes(
    measure: Measure, rankings: Rankings, queries: Int64, rows: Int64, grade: float, threads: int | None
) -> Float64:
    """How much the value of each query changes if a document has this grade, which may not be returned."""
    before: Float64 = np.nan_to_num(ways.score((measure,), rankings, threads).values[0])
    pool, lengths = rankings.judged, rankings.lengths[queries]
    kept = np.zeros_like(lengths) if pool is None else np.diff(pool.offsets)[queries]
    flags = np.ones(rankings.n_docs, np.bool_) if rankings.is_judged is None else rankings.is_judged
    dtype = np.int64 if grade == int(grade) else np.float64
    after: Float64 = np.empty(len(queries))
    for part in parts_of(offsets_from(lengths + kept), 1 << 21):  # documents that are scored together
        chosen, offsets = queries[part], offsets_from(lengths[part])
        taken = runs_of(rankings.offsets[chosen], lengths[part])
        relevance = rankings.relevance[taken].astype(np.result_type(rankings.relevance, dtype))
        is_judged = flags[taken]
        returned = rows[part] >= 0
        place = (offsets[:-1] + rows[part] - rankings.offsets[chosen])[returned]
        relevance[place], is_judged[place], judged = grade, True, None
        if pool is not None:
            ends = offsets_from(kept[part] + 1)
            grades = np.full(ends[-1], grade, np.result_type(pool.relevance, dtype))
            grades[runs_of(ends[:-1], kept[part])] = pool.relevance[runs_of(pool.offsets[chosen], kept[part])]
            judged = ends, grades
        of_part = _of(rankings, taken, offsets, judged, relevance=relevance, is_judged=is_judged)
        after[part] = np.nan_to_num(ways.score((measure,), of_part, threads).values[0])
    return after - before[queries]
