"""`check_judgments`: whether judgments can be used, and whether they fit the runs that they judge."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.analysis.alignment import UNJUDGED
from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrays import Array, Flags, Int64, arrow_column, runs_of
from fastndcg.common.arrow_types import array_of, combine, decode, plain, whole_ids
from fastndcg.common.table import Table, name_of
from fastndcg.errors import ColumnError, InputError, InputTypeError, SourceError, check_whole, known_arguments
from fastndcg.measures import Judged
from fastndcg.rankings.rankings import Rankings
from fastndcg.rankings.sanity_checks import are_ranks, are_swapped
from fastndcg.sources.formats import format_of_name
from fastndcg.sources.inputs import read_columns
from fastndcg.sources.open_file import read_each_once
from fastndcg.sources.trec import side_of_any
from fastndcg.statistics.intervals import FAILS, HOLDS, check_size
from fastndcg.tables.frames import is_table
from fastndcg.tables.joins import alike, join
from fastndcg.tables.roles import OF_ONE_TABLE, Roles, find_column, normalised, with_roles_of_both
from fastndcg.tables.shapes import has_columns
from fastndcg.tables.sides import plain_ids, rows_of

if TYPE_CHECKING:
    from fastndcg.tables.sides import Side
    from fastndcg.typing import JoinKeywords

CAUTION = "caution"
_EXAMPLES = 3
_TEXT = "query_text"  # the column of texts of queries, unless another is named
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
    text: str | None = None,
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
    text, by : columns of the judgments, optional
        The text of each query (default: the column `query_text`, if there is one); columns with one value for
        each query, whose values are slices with their own scales and shares.
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
        with two grades for a query, or twice with one; two queries with one text; judged queries that a run
        lacks, which count with an empty ranking; scores that are NaN or null; a document twice in a run;
        fractions as grades beside small whole numbers as scores, as if they were swapped. Cautions: two
        queries with the same two or more judgments; queries of a run without judgments; scores that look like
        ranks; slices with grades on different scales, such as 0 to 2 and 0 to 4; a share of judged documents
        that lies more than 0.05 below that of another system.

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
    named = replace(Roles.of(roles, "check_judgments", OF_ONE_TABLE), nan="last")
    of_qrels = named.keeping(slices)
    runs = _named_runs(run)
    qrels, *each = read_each_once(qrels, *runs.values())
    try:
        judged = side_of_any("qrels", qrels, "relevance", of_qrels.keeping([text or _TEXT]))
    except ColumnError:
        if text is not None:
            raise
        judged = side_of_any("qrels", qrels, "relevance", of_qrels)
    if judged.query_name in slices:
        raise InputError(f'by names "{judged.query_name}", the column of query ids; name columns of slices')
    if not len(judged.codes):
        raise InputError("qrels has no judgments, so there is nothing to check; give at least one")
    sides = {name: side_of_any("run", one, "score", named) for name, one in zip(runs, each, strict=True)}
    pairs = _Pairs(judged)
    rows = [*_of_judgments(pairs, corpus), *_of_queries(pairs, text or _TEXT), *_scales(judged, slices)]
    of_runs: list[_Row] = []
    for name, scored in sides.items():
        found = _of_run(pairs.once, scored, slices, ranks, least_judged)
        of_runs += [row | {"system": None if name is None else str(name)} for row in found]
    highest: dict[tuple[str, str | None], float] = {}
    for row in of_runs:
        key = row["check"], row.get("slice")
        highest[key] = max(highest.get(key, 0.0), row.get("share", 0.0))
    for row in of_runs:  # as `compare` cautions
        if highest[row["check"], row.get("slice")] - row.get("share", 1.0) > UNJUDGED:
            row["verdict"] = max(row["verdict"], CAUTION, key=(HOLDS, CAUTION, FAILS).index)
    rows += of_runs
    return Table(pa.Table.from_pylist(rows, _COLUMNS), 3)


def _named_runs(run: Any) -> Mapping[Any, Any]:
    """Runs by their names; None is the name of a run alone."""

    def is_run(value: Any) -> bool:
        """Whether a value of a dict is a run, and not the documents of a query."""
        if isinstance(value, Mapping):
            of_queries = any(isinstance(each, Mapping | list | tuple) for each in value.values())
            return has_columns(value) or of_queries
        return isinstance(value, str | os.PathLike) or _has_columns(value)

    if isinstance(run, Mapping):
        if not run:
            raise InputError("run is an empty dict; expected a run, or a mapping of names to runs")
        if not has_columns(run) and all(map(is_run, run.values())):
            return run
    return {None: run}


def _has_columns(data: Any) -> bool:
    """Whether this is a table, and no column of one; or ranx's `Run`."""
    if is_table(data):
        return any(hasattr(data, name) for name in ("columns", "column_names", "schema"))
    return hasattr(data, "to_dict") and not hasattr(data, "dtype")


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
    if isinstance(corpus, Mapping):  # of columns, or with an entry for each document
        has_ids = any(normalised(str(name)) in _CORPUS_IDS for name in list(corpus)[:9])
        has_ids = has_ids and not any(isinstance(each, str | Mapping) for each in corpus.values())
    else:
        has_ids = is_path or _has_columns(corpus)
    if has_ids:

        def find(names: list[str]) -> dict[str, str]:
            own = [name for name in names if normalised(str(name)) in _CORPUS_IDS]
            return {"doc_id": own[0] if len(own) == 1 else find_column(names, "doc_id")}

        return plain_ids(read_columns(corpus, find, ())["doc_id"])
    ids = sorted(corpus) if isinstance(corpus, set | frozenset) else corpus
    ids = list(ids) if isinstance(ids, Mapping) else ids
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
        self.side = side
        documents = plain_ids(side.docs).dictionary_encode()
        self.ids, self.document = documents.dictionary, array_of(documents.indices).astype(np.int64)
        pairs = side.codes.astype(np.int64) * max(len(self.ids), 1) + self.document
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
    best = np.full(len(side.queries), -np.inf)
    np.maximum.at(best, side.codes, side.values)
    lost = np.flatnonzero(~(best > 0))
    yield _found("queries without a relevant document", len(best), (side.queries, lost))
    if corpus is not None:
        lacking = _lacking(pairs.ids, _ids_of_corpus(corpus))
        yield _found("judged documents that the corpus lacks", len(pairs.ids), (pairs.ids, lacking))
    lowest, highest = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(lowest, pairs.number, side.values)
    np.maximum.at(highest, pairs.number, side.values)
    differ = lowest < highest
    yield pairs.found_pairs("documents with two grades for a query", differ)
    yield pairs.found_pairs("documents judged twice with one grade", pairs.is_repeated & ~differ)


def _lacking(ids: Any, others: Any) -> Int64:
    """The places of ids that are not among the others."""
    return np.flatnonzero(~array_of(pc.is_in(*alike(ids, others))).astype(np.bool_))


def _of_queries(pairs: _Pairs, text: str) -> Iterator[_Row]:
    """Queries that appear under two ids. Queries with the same single answer do not count."""
    side = pairs.side
    if side.kept is not None and text in side.kept.column_names:
        written = pc.utf8_trim_whitespace(pc.utf8_lower(side.kept[text].cast(pa.large_string())))
        known = array_of(pc.is_valid(written))
        codes = array_of(combine(pc.fill_null(written, "")).dictionary_encode().indices)
        yield _shared("queries with the same text", side, codes, known, FAILS)
    # the bytes of all (document, grade) of a query, in order of documents
    rows = pairs.first[np.lexsort((pairs.document[pairs.first], side.codes[pairs.first]))]
    levels = np.unique(side.values, return_inverse=True)[1]
    held = np.stack([pairs.document[rows], levels[rows]], 1, dtype=np.int64).tobytes()
    judged = np.bincount(side.codes[rows], minlength=len(side.queries))
    ends = 16 * np.append(0, np.cumsum(judged))
    numbers: dict[bytes, int] = {}
    parts = (held[start:end] for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
    codes = np.array([numbers.setdefault(part, len(numbers)) for part in parts])
    yield _shared("queries with the same judgments", side, codes, judged >= 2, CAUTION)


def _shared(check: str, side: Side, codes: Array, known: Array, verdict: str) -> _Row:
    """Queries that share a code with another, those of a group together."""
    places = np.flatnonzero(known)
    counts = np.bincount(codes[places], minlength=1)
    shared = places[counts[codes[places]] > 1]
    first = np.full(len(counts), len(codes))
    np.minimum.at(first, codes[shared], shared)
    shared = shared[np.lexsort((shared, first[codes[shared]]))]
    return _found(check, len(places), (side.queries, shared), verdict=verdict)


def _scales(side: Side, by: list[str]) -> Iterator[_Row]:
    """The range of grades, and slices whose range is narrower than chance explains."""

    def scale(grades: Array, verdict: str, of_slice: str | None = None) -> _Row:
        ends = f"{grades.min():g} to {grades.max():g}"
        n = len(np.unique(grades))
        return _row("scale of grades", n, len(grades), verdict, examples=ends, slice=of_slice)

    yield scale(side.values, HOLDS)
    for name, queries in _slices(side.kept, by):
        is_own = np.isin(side.codes, queries)
        own, others = side.values[is_own], side.values[~is_own]
        if len(own):
            above = np.mean(others > own.max()) if len(others) else 0.0
            by_chance = (1 - above) ** len(own)  # that the slice lacks the highest grades of others
            yield scale(own, CAUTION if by_chance < 0.001 else HOLDS, name)


def _slices(kept: Any, by: list[str]) -> Iterator[tuple[str, Int64]]:
    """The name of each slice, and the queries in it."""
    for name in by:
        found = combine(decode(plain(kept[name]))).dictionary_encode(null_encoding="encode")
        codes = array_of(found.indices)
        parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        for value, part in zip(found.dictionary.to_pylist(), parts, strict=True):
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
