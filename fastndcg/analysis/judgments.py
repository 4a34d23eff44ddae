"""Judgments: whether they can be used and fit the runs that they judge, and which documents to judge."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.analysis.compare import UNJUDGED, as_texts
from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrays import Flags, Int64, arrow_column, falling_keys, runs_of
from fastndcg.common.arrow_types import array_of, combine, places_of, plain, whole_ids
from fastndcg.common.table import Table, name_of
from fastndcg.errors import ColumnError, InputError, InputTypeError, about, check_whole, known_arguments, warn
from fastndcg.measures import Judged
from fastndcg.rankings.rankings import Rankings
from fastndcg.rankings.sanity_checks import are_ranks, are_swapped
from fastndcg.scores.slices import groups_of
from fastndcg.sources.inputs import read_columns
from fastndcg.sources.open_file import read_each_once
from fastndcg.sources.trec import runs_by_name, side_of_any
from fastndcg.statistics.significance import FAILS, HOLDS, check_size
from fastndcg.tables.joins import alike, duplicate, join, plain_ids, rows_of, sample, with_ranked_nan
from fastndcg.tables.roles import (
    OF_ONE_TABLE,
    Roles,
    find_column,
    fitting,
    in_words,
    normalised,
    with_roles_of_both,
)

if TYPE_CHECKING:
    from fastndcg.tables.joins import Side
    from fastndcg.typing import JoinKeywords

CAUTION = "caution"
_EXAMPLES = 3
_TEXT = "query_text"  # column of the text of a query
_CORPUS_IDS = ("id", "docid", "docno", "corpusid")
_COLUMNS = pa.schema(
    {
        **dict.fromkeys(("check", "system", "slice"), pa.string()),
        **dict.fromkeys(("count", "total"), pa.int64()),
        "share": pa.float64(),
        **dict.fromkeys(("examples", "verdict"), pa.string()),
    }
)
_Row = dict[str, Any]


@known_arguments
@with_roles_of_both
def check_judgments(
    qrels: Any,
    run: Any,
    corpus: Any = None,
    *,
    by: str | Sequence[str] = (),
    cutoffs: int | Sequence[int] = (5, 10, 20),
    least_judged: float = 0.0,
    **roles: Unpack[JoinKeywords],
) -> Table:
    """Check judgments by themselves, beside a corpus, and beside the runs that they judge.

    Parameters
    ----------
    qrels, run
        Paths, tables or dicts, as `evaluate` takes them; several runs are a mapping of names to runs. `qrels`
        may have a document twice, which is one of the checks.
    corpus, optional
        The ids of all documents: a list or an array, or a table or file that has them in a column with a
        usual name, such as doc_id, docno or _id.
    by : columns of the judgments, optional
        Columns with one value for each query, whose values are slices with their own scales and shares.
    cutoffs, least_judged : one or several whole numbers; float
        Ranks at which to report the share of judged documents; a share below this fails.
    query, doc_id, relevance, score, rank, keep, weight
    nan, ascending, unjudged, grades, types, columns, sep, decimal, relevant_ids, retrieved_ids, duplicates
        Columns, and how they are read, as `Rankings.from_qrels_run` takes them. NaN scores are never refused.

    Returns
    -------
    Table
        A row for each check, and where it applies for each system and slice, with the columns check, system,
        slice; count: how many queries, documents or judgments it found, and total: of how many; share: the
        mean of `Judged` at a cutoff, over queries that were judged and returned; examples: some of what was
        found; verdict: "holds", "caution" (look at it: it may be meant) or "fails".

        Failing checks: queries without a grade above 0; judged documents that the corpus lacks; a document
        with two grades for a query, or twice with one; two queries with one `query_text`; judged queries that
        a run lacks, which count with an empty ranking; scores that are NaN or null; a document twice in a
        run; fractions as grades beside small whole numbers as scores, as if they were swapped. Cautions:
        queries of a run without judgments; scores that look like ranks; slices with grades on different
        scales, such as 0 to 2 and 0 to 4; a share of judged documents that lies more than 0.05 below that of
        another system.

    Raises
    ------
    InputError, InputTypeError, ColumnError, SourceError
        Input that cannot be read, as `Rankings.from_qrels_run` raises them; no judgments; no runs; a share or
        cutoffs that are none.

    See Also
    --------
    pool : what to judge.

    Examples
    --------
    >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 0}}
    >>> found = check_judgments(qrels, {"q1": {"a": 0.9, "x": 0.5}, "q2": {"c": 0.1}}, corpus=["a", "b", "x"])
    >>> [(row["check"], row["examples"]) for row in found.to_pylist() if row["verdict"] == "fails"]
    [('queries without a relevant document', 'q2'), ('judged documents that the corpus lacks', 'c')]
    """
    slices = [by] if isinstance(by, str) else list(by)
    listed: Any = cutoffs if isinstance(cutoffs, Collection) and not isinstance(cutoffs, str) else [cutoffs]
    ranks = [check_whole("cutoffs", each, 1) for each in listed]
    if check_size("least_judged", least_judged, "a share", 0.8) > 1:
        raise InputError(f"least_judged={least_judged!r} is not a share; expected a number from 0 to 1")
    if isinstance(run, Mapping) and not run:
        raise InputError("run is an empty dict; expected a run, or a mapping of names to runs")
    named = replace(Roles.of(roles, "check_judgments", OF_ONE_TABLE), nan="last")
    runs: dict[Any, Any] = {None: run} if (named_runs := runs_by_name(run)) is None else {**named_runs}
    qrels, *each = read_each_once(qrels, *runs.values())
    of_qrels = named.keeping(slices)
    try:
        judged = side_of_any("qrels", qrels, "relevance", of_qrels.keeping([_TEXT]))
    except ColumnError:
        judged = side_of_any("qrels", qrels, "relevance", of_qrels)
    if judged.query_name in slices:
        raise InputError(f'by names "{judged.query_name}", the column of query ids; name columns of slices')
    if not len(judged.codes):
        raise InputError("qrels has no judgments, so there is nothing to check; give at least one")
    sides = {name: side_of_any("run", one, "score", named) for name, one in zip(runs, each, strict=True)}
    pairs = _Pairs(judged)
    of_runs = [
        row | {"system": name}
        for name, scored in sides.items()
        for row in _of_run(pairs.once, scored, slices, ranks, least_judged)
    ]
    highest: dict[tuple[Any, ...], float] = {}
    for row in of_runs:
        key = row["check"], row.get("slice")
        highest[key] = max(highest.get(key, 0.0), row.get("share", 0.0))
    for row in of_runs:  # as `compare` cautions
        is_below = highest[row["check"], row.get("slice")] - row.get("share", 1.0) > UNJUDGED
        row["verdict"] = CAUTION if is_below and row["verdict"] == HOLDS else row["verdict"]
    rows = [*_of_judgments(pairs, corpus), *_scales(judged, slices), *of_runs]
    return Table(pa.Table.from_pylist(rows, _COLUMNS), 3)


def _ids_of_corpus(corpus: Any) -> pa.Array:
    def find(names: list[str]) -> dict[str, str]:
        usual = [name for name in names if normalised(str(name)) in _CORPUS_IDS]
        if not (usual or fitting(names, "doc_id")):
            raise ColumnError(
                f"no column has a usual name of document ids; the columns are {in_words(names)}. "
                "Name one doc_id, or give a list of ids"
            )
        return {"doc_id": usual[0] if len(usual) == 1 else find_column(names, "doc_id")}

    has_texts = isinstance(corpus, Mapping) and isinstance(next(iter(corpus.values()), ""), str | Mapping)
    if has_texts or isinstance(corpus, Iterator):
        corpus = list(corpus)  # of a dict from id to text or to fields, the ids
    has_columns = any(hasattr(type(corpus), name) for name in ("columns", "column_names", "schema"))
    if has_columns or isinstance(corpus, str | os.PathLike | Mapping):
        with about("corpus"):
            return plain_ids(read_columns(corpus, find, ())["doc_id"])
    ids = whole_ids(plain(arrow_column("corpus", corpus)))
    if pa.types.is_floating(ids.type) or pa.types.is_nested(ids.type):
        raise InputTypeError(f"corpus holds {ids.type}; expected ids that are texts or whole numbers")
    return plain_ids(ids)


# ---- rows of the result ----


def _row(check: str, count: int, total: int, verdict: str, **others: Any) -> _Row:
    return {"check": check, "count": count, "total": total, "verdict": verdict, **others}


def _found(check: str, total: int, *ids: tuple[Any, Int64], verdict: str = FAILS) -> _Row:
    """What is at these places of columns of ids, side by side."""
    count = len(ids[0][1])
    if not count:
        return _row(check, 0, total, HOLDS)
    names = [[_name(column[int(place)].as_py()) for place in places[:_EXAMPLES]] for column, places in ids]
    examples = ", ".join(map(" ".join, zip(*names, strict=True))) + (" ..." if count > _EXAMPLES else "")
    return _row(check, count, total, verdict, examples=examples)


def _name(value: Any) -> str:
    return name_of(value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value)


class _Pairs:
    """The rows of a side by query and document, where a pair may occur twice."""

    def __init__(self, side: Side) -> None:
        self.side, documents = side, plain_ids(side.docs).dictionary_encode()
        self.ids = documents.dictionary
        pairs = side.codes.astype(np.int64) * max(len(self.ids), 1) + array_of(documents.indices)
        _, first, self.number = np.unique(pairs, return_index=True, return_inverse=True)
        self.first, self.n = first, len(first)
        self.is_repeated = np.bincount(self.number, minlength=self.n) > 1
        self.once = rows_of(side, np.sort(first))

    def found(self, check: str, total: int, rows: Int64) -> _Row:
        return _found(check, total, (self.side.queries, self.side.codes[rows]), (self.side.docs, rows))

    def found_pairs(self, check: str, are_found: Flags) -> _Row:
        return self.found(check, self.n, np.sort(self.first[are_found]))


# ---- judgments ----


def _of_judgments(pairs: _Pairs, corpus: Any) -> Iterator[_Row]:
    side, n = pairs.side, pairs.n
    best, lowest, highest = np.full(len(side.queries), -np.inf), np.full(n, np.inf), np.full(n, -np.inf)
    np.maximum.at(best, side.codes, side.values)
    lost = np.flatnonzero(~(best > 0))
    yield _found("queries without a relevant document", len(best), (side.queries, lost))
    if corpus is not None:
        lacking = _lacking(pairs.ids, _ids_of_corpus(corpus))
        yield _found("judged documents that the corpus lacks", len(pairs.ids), (pairs.ids, lacking))
    np.minimum.at(lowest, pairs.number, side.values)
    np.maximum.at(highest, pairs.number, side.values)
    differ = lowest < highest
    yield pairs.found_pairs("documents with two grades for a query", differ)
    yield pairs.found_pairs("documents judged twice with one grade", pairs.is_repeated & ~differ)
    if side.kept is not None and _TEXT in side.kept.column_names:
        texts = pc.utf8_trim_whitespace(pc.utf8_lower(side.kept[_TEXT].cast(pa.large_string())))
        codes = array_of(combine(texts).dictionary_encode().indices, -1)  # in order of first appearance
        known = np.flatnonzero(codes >= 0)
        shared = known[np.bincount(codes[known])[codes[known]] > 1]
        shared = shared[np.argsort(codes[shared], kind="stable")]
        yield _found("queries with the same text", len(known), (side.queries, shared))


def _lacking(ids: Any, others: Any) -> Int64:
    """The places of ids that are not among the others."""
    return np.flatnonzero(~array_of(pc.is_in(*alike(ids, others))).astype(np.bool_))


def _scales(side: Side, by: list[str]) -> Iterator[_Row]:
    """The range of grades, and slices whose range is narrower than chance explains."""
    for name, queries in [(None, None), *_slices(side.kept, by)]:
        is_own = np.full(len(side.codes), True) if queries is None else np.isin(side.codes, queries)
        grades, others = side.values[is_own], side.values[~is_own]
        if len(grades):
            above = np.mean(others > grades.max()) if len(others) else 0.0
            by_chance = (1 - above) ** len(grades)  # that the slice lacks the highest grades of others
            verdict, ends = CAUTION if by_chance < 0.001 else HOLDS, f"{grades.min():g} to {grades.max():g}"
            yield _row(
                "scale of grades", len(np.unique(grades)), len(grades), verdict, examples=ends, slice=name
            )


def _slices(kept: Any, by: list[str]) -> Iterator[tuple[str, Int64]]:
    """The name of each slice, and the queries in it."""
    for name in by:
        (values,), parts = groups_of([plain(kept[name])])
        for value, part in zip(values.to_pylist(), parts, strict=True):
            yield f"{name}={name_of(value)}", part


# ---- runs ----


def _of_run(judged: Side, run: Side, by: list[str], cutoffs: Sequence[int], least: float) -> Iterator[_Row]:
    lacking = _lacking(judged.queries, run.queries)
    yield _found("judged queries that the run lacks", len(judged.queries), (judged.queries, lacking))
    unjudged = _lacking(run.queries, judged.queries)
    check = "queries of the run without judgments"
    yield _found(check, len(run.queries), (run.queries, unjudged), verdict=CAUTION)
    pairs = _Pairs(run)
    yield pairs.found_pairs("documents twice in the run", pairs.is_repeated)
    is_nan = np.isnan(run.values)
    yield pairs.found("scores that are NaN", len(run.values), np.flatnonzero(is_nan))
    finite = run.values[~is_nan]
    is_swapped = len(finite) > 0 and are_swapped(judged.values, finite)
    yield _row("grades and scores that look swapped", int(is_swapped), 1, FAILS if is_swapped else HOLDS)
    ends = np.concatenate([[0], np.flatnonzero(np.diff(run.codes)) + 1, [len(run.codes)]])
    several = not run.is_ordered and len(finite) == len(run.values) > len(run.queries)
    is_rank = several and are_ranks(run.values, ends)
    yield _row("scores that look like ranks", int(is_rank), 1, CAUTION if is_rank else HOLDS)
    both = rows_of(pairs.once, np.flatnonzero(~np.isin(pairs.once.codes, unjudged)))
    if not len(both.codes):
        return
    rankings = Rankings._of(**join(judged, both, "skip", "docid_desc", "last"))
    scores = evaluate(rankings, [Judged @ cutoff for cutoff in cutoffs])
    ranks = runs_of(1, rankings.lengths)
    slices: list[tuple[str | None, Any]] = [(None, slice(None)), *_slices(rankings.queries, by)]
    for cutoff in cutoffs:
        returned = np.minimum(rankings.lengths, cutoff)
        ends = np.append(0, np.cumsum(np.asarray(rankings.is_judged) & (ranks <= cutoff)))[rankings.offsets]
        for name, queries in slices:
            share = float(np.mean(scores[Judged @ cutoff][queries]))
            counts = int(np.diff(ends)[queries].sum()), int(returned[queries].sum())
            verdict = HOLDS if share >= least else FAILS
            yield _row(f"judged at {cutoff}", *counts, verdict, slice=name, share=share)


# ---- pools ----


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
        No document of the runs is judged.

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
    if not isinstance(runs, Mapping):
        raise InputTypeError(
            f"runs is a {type(runs).__name__}; expected a mapping of names to runs, "
            'as in pool({"bm25": run, "dense": other_run})'
        )
    if not runs or len(set(map(str, runs))) < len(runs):
        raise InputError(f"expected at least one run, each with its own name; got {[*runs]}")
    named = Roles.of(roles, "pool", OF_ONE_TABLE)
    sides = [
        with_ranked_nan(side_of_any(f'run "{name}"', run, "score", named), named.nan)
        for name, run in runs.items()
    ]
    if qrels is not None:
        sides.append(side_of_any("qrels", qrels, "relevance", named))
    queries, of_query = _numbered([side.queries for side in sides])
    documents, of_document = _numbered([side.docs for side in sides])
    places = places_of(documents)
    returned, every, known = [], [np.empty(0, np.int64)], np.empty(0, np.int64)
    for number, side in enumerate(sides):
        query, document = of_query[number][side.codes], places[of_document[number]]
        pairs = query * len(documents) + document  # rise with the query, then with the document
        _check_once(side, pairs)
        if number == len(runs):
            known, ours = pairs[side.values >= 0], np.concatenate(every)
            if len(ours) and len(pairs) and not np.isin(ours, pairs).any():
                warn(
                    f"no document of the runs is judged; if that is not meant, compare how ids are written: "
                    f"{_first_ids(side)} there, {_first_ids(sides[0])} here"
                )
            break
        every.append(pairs)
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


def _numbered(columns: list[Any]) -> tuple[pa.Array, list[Int64]]:
    """The distinct ids of several columns in order of first appearance, and their numbers in each column."""
    ids = alike(*columns)
    encoded = pa.concat_arrays(ids).dictionary_encode()
    codes = array_of(encoded.indices).astype(np.int64)
    return encoded.dictionary, np.split(codes, np.cumsum([len(each) for each in ids])[:-1])


def _check_once(side: Side, pairs: Int64) -> None:
    """Raise for a document that appears twice in a query."""
    ordered = np.sort(pairs)
    if (ordered[1:] == ordered[:-1]).any():
        _, first, number = np.unique(pairs, return_index=True, return_inverse=True)
        second = int(np.argmax(first[number] < np.arange(len(pairs))))
        raise duplicate(side, int(first[number[second]]), second)


def _first_ids(side: Side) -> str:
    """The first ids of queries and documents, for a message."""
    return " and ".join(sample(as_texts(plain_ids(ids))) for ids in (side.queries, side.docs))
