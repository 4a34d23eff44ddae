"""`check_judgments`: whether judgments can be used, and whether they fit the runs that they judge."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.analysis.alignment import UNJUDGED
from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrays import Flags, Int64, arrow_column, runs_of
from fastndcg.common.arrow_types import array_of, combine, plain, whole_ids
from fastndcg.common.table import Table, name_of
from fastndcg.errors import ColumnError, InputError, InputTypeError, SourceError, check_whole, known_arguments
from fastndcg.measures import Judged
from fastndcg.rankings.rankings import Rankings
from fastndcg.rankings.sanity_checks import are_ranks, are_swapped
from fastndcg.scores.slices import groups_of
from fastndcg.sources.formats import format_of_name
from fastndcg.sources.inputs import read_columns
from fastndcg.sources.open_file import read_each_once
from fastndcg.sources.trec import runs_by_name, side_of_any
from fastndcg.statistics.intervals import FAILS, HOLDS, check_size
from fastndcg.tables.joins import alike, join, plain_ids, rows_of
from fastndcg.tables.roles import OF_ONE_TABLE, Roles, find_column, normalised, with_roles_of_both

if TYPE_CHECKING:
    from fastndcg.tables.joins import Side
    from fastndcg.typing import JoinKeywords

CAUTION = "caution"
_EXAMPLES = 3
_TEXT = "query_text"  # the column of texts of queries
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
        The ids of all documents: a table or file with a column of a usual name, such as doc_id, docno or _id;
        a text file with one id per line; or ids as an array, a list, a set or the keys of a dict.
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
    of_qrels = named.keeping(slices)
    runs: dict[Any, Any] = {None: run} if (named_runs := runs_by_name(run)) is None else {**named_runs}
    qrels, *each = read_each_once(qrels, *runs.values())
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
    is_path = isinstance(corpus, str | os.PathLike)
    if is_path and format_of_name(corpus) is None:
        try:
            lines = Path(corpus).read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            said = f"corpus: {corpus} cannot be read: {reason}; give a table, or one id per line"
            raise SourceError(said) from None
        return pa.array([line.strip() for line in lines if line.strip()], pa.large_string())

    def find(names: list[str]) -> dict[str, str]:
        own = [name for name in names if normalised(str(name)) in _CORPUS_IDS]
        return {"doc_id": own[0] if len(own) == 1 else find_column(names, "doc_id")}

    has_columns = is_path or any(
        hasattr(type(corpus), name) for name in ("columns", "column_names", "schema")
    )
    if isinstance(corpus, Mapping):  # of columns, or with an entry for each document
        has_columns = any(normalised(str(name)) in _CORPUS_IDS for name in list(corpus)[:9])
        has_columns &= not any(isinstance(each, str | Mapping) for each in corpus.values())
    if has_columns:
        return plain_ids(read_columns(corpus, find, ())["doc_id"])
    ids = (
        sorted(corpus) if isinstance(corpus, Set) else list(corpus) if isinstance(corpus, Mapping) else corpus
    )
    found = whole_ids(plain(arrow_column("corpus", ids)))
    if pa.types.is_floating(found.type) or pa.types.is_nested(found.type):
        raise InputTypeError(f"corpus holds {found.type}; expected ids that are texts or whole numbers")
    return plain_ids(found)


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
        codes = array_of(combine(texts).dictionary_encode().indices, -1)  # numbered by first appearance
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
        own, others = side.values[is_own], side.values[~is_own]
        if len(own):
            above = np.mean(others > own.max()) if len(others) else 0.0
            by_chance = (1 - above) ** len(own)  # that the slice lacks the highest grades of others
            verdict, ends = CAUTION if by_chance < 0.001 else HOLDS, f"{own.min():g} to {own.max():g}"
            yield _row("scale of grades", len(np.unique(own)), len(own), verdict, examples=ends, slice=name)


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
