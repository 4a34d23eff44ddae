"""`check_judgments`: whether judgments can be used, and whether they fit the runs that they judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrays import runs_of
from fastndcg.common.arrow_types import array_of, column_of, combine
from fastndcg.common.table import Table, name_of
from fastndcg.decide.checked_input import ids_of_corpus, judgments_of, named_runs
from fastndcg.errors import InputError
from fastndcg.measures import Judged
from fastndcg.rankings.oddities import are_ranks, are_swapped
from fastndcg.sources.columns import OF_ONE_TABLE, Roles, with_roles_of_both
from fastndcg.sources.joins import alike, join
from fastndcg.sources.sides import plain_ids
from fastndcg.sources.trec import given_side

if TYPE_CHECKING:
    from fastndcg.sources.sides import Side
    from fastndcg.typing import JoinKeywords

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

HOLDS, CAUTION, FAILS = "holds", "caution", "fails"
_EXAMPLES = 3
_LEAST_ALIKE = 2  # judged documents; many queries have one and the same answer
_BY_CHANCE = 0.001  # a slice lacks the highest grades of others with this probability, or less: another scale


class _Row(NamedTuple):
    """What one check found: `count` of `total`, the share of those that are well, and some that are not."""

    check: str
    found: int
    total: int
    verdict: str
    examples: Sequence[str] = ()
    system: str | None = None
    slice: str | None = None
    share: float | None = None


@with_roles_of_both
def check_judgments(
    qrels: Any,
    run: Any,
    corpus: Any = None,
    *,
    text: str | None = None,
    by: str | Sequence[str] = (),
    cutoffs: Sequence[int] = (5, 10, 20),
    least_judged: float = 0.0,
    **roles: Unpack[JoinKeywords],
) -> Table:
    """Check judgments by themselves, beside a corpus, and beside the runs that they judge.

    Parameters
    ----------
    qrels, run
        As `Rankings.from_qrels_run` takes them: dicts, tables, TREC files, tuples. Several runs are a mapping
        of names to runs. `qrels` may hold a document twice, which is one of the checks.
    corpus, optional
        The ids of all documents: a table or file with a column of a usual name, such as doc_id, docno or _id;
        a text file with an id a line; or ids as an array, a list, a set or the keys of a dict.
    text : column of the judgments, optional
        The text of each query. Default: the column `query_text`, if there is one.
    by : columns of the judgments, optional
        One value for each query; shares judged and scales are told for each value too.
    cutoffs : whole numbers
        Ranks at which shares of judged documents are told.
    least_judged : float
        A share of judged documents below this fails.
    query, doc_id, relevance, score, rank, keep, weight, nan, ascending, unjudged, grades
        Columns, and how they are read, as `Rankings.from_qrels_run` takes them. NaN scores are never refused.

    Returns
    -------
    Table
        A row for each check, and where it applies for each system and slice, with these columns:

        - check, system, slice;
        - count: how many queries, documents or judgments it found; total: of how many;
        - share: the mean of `Judged` at a cutoff, over queries that were judged and returned;
        - examples: some of what was found;
        - verdict: "holds", "caution" (look at it: it may be meant) or "fails".

        These fail: queries without a grade above 0, which nothing can win; judged documents that the corpus
        lacks; a document with two grades for a query, or twice with one; two queries with one text; judged
        queries that a run lacks, which count with an empty ranking; scores that are NaN or null; a document
        twice in a run; fractions as grades beside small whole numbers as scores, as if they were swapped. A
        caution are: two queries with the same two or more judgments; queries of a run without judgments;
        scores that look like ranks; slices with grades on different scales, such as 0 to 2 and 0 to 4.

    Raises
    ------
    InputError, InputTypeError, ColumnError, SourceError
        Input that cannot be read, as `Rankings.from_qrels_run` raises them; no judgments; no runs; a share or
        cutoffs that are none.

    See Also
    --------
    check_judges : whether those who judge agree.
    pool, judge_next : what to judge.

    Examples
    --------
    >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 0}}
    >>> found = check_judgments(qrels, {"q1": {"a": 0.9, "x": 0.5}, "q2": {"c": 0.1}}, corpus=["a", "b", "x"])
    >>> [(row["check"], row["examples"]) for row in found.to_pylist() if row["verdict"] == "fails"]
    [('queries without a relevant document', 'q2'), ('judged documents that the corpus lacks', 'c')]
    """
    slices = [by] if isinstance(by, str) else list(by)
    _check_numbers(cutoffs, least_judged)
    named = replace(Roles.of(roles, "check_judgments", OF_ONE_TABLE), nan="last")
    judged, text = judgments_of(qrels, named, slices, text)
    if judged.query_name in slices:
        raise InputError(f'by names "{judged.query_name}", the column of query ids; name columns of slices')
    if not len(judged.codes):
        raise InputError("qrels has no judgments, so there is nothing to check; give at least one")
    runs = {name: given_side("run", each, "score", named) for name, each in named_runs(run).items()}
    pairs = _Pairs(judged)
    rows = [
        *_of_judgments(judged, pairs, corpus),
        *_of_queries(judged, pairs, text),
        *_scales(judged, slices),
    ]
    judged = pairs.once()
    for name, scored in runs.items():
        system = None if name is None else str(name)
        rows += [
            row._replace(system=system)
            for row in _of_run(judged, scored, slices, list(cutoffs), least_judged)
        ]
    kinds = pa.schema(
        {
            **dict.fromkeys(("check", "system", "slice"), pa.string()),
            "count": pa.int64(),
            "total": pa.int64(),
            "share": pa.float64(),
            **dict.fromkeys(("examples", "verdict"), pa.string()),
        }
    )
    texts = [row._asdict() | {"count": row.found} | {"examples": _in_words(row)} for row in rows]
    return Table(pa.Table.from_pylist(texts, kinds), 3)


def _check_numbers(cutoffs: Any, least_judged: Any) -> None:
    if isinstance(cutoffs, str) or not all(
        isinstance(each, int | np.integer) and not isinstance(each, bool) and each > 0 for each in cutoffs
    ):
        raise InputError(f"cutoffs={cutoffs!r} are no ranks; wanted whole numbers from 1, as in (5, 10, 20)")
    if (
        isinstance(least_judged, bool)
        or not isinstance(least_judged, int | float)
        or not 0 <= least_judged <= 1
    ):
        raise InputError(f"least_judged={least_judged!r} is no share; wanted a number from 0 to 1")


def _in_words(row: _Row) -> str | None:
    more = " ..." if _EXAMPLES == len(row.examples) < row.found else ""
    return ", ".join(row.examples) + more if row.examples else None


# ---- judgments ----


class _Pairs:
    """Judgments by pair of query and document, where one may be there twice."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.documents = plain_ids(side.docs).dictionary_encode()
        self.document = array_of(self.documents.indices).astype(np.int64)
        pairs = side.codes.astype(np.int64) * max(len(self.documents.dictionary), 1) + self.document
        _, self.first, self.number = np.unique(pairs, return_index=True, return_inverse=True)

    def once(self) -> Side:
        """The judgments with the first grade of each pair."""
        return _of_rows(self.side, np.sort(self.first))

    def found(self, check: str, rows: Int64, total: int) -> _Row:
        queries = _names(self.side.queries, self.side.codes[rows[:_EXAMPLES]])
        names = [" ".join(each) for each in zip(queries, _names(self.side.docs, rows), strict=True)]
        return _Row(check, len(rows), total, FAILS if len(rows) else HOLDS, names)


def _of_rows(side: Side, rows: Int64) -> Side:
    if len(rows) == len(side.codes):
        return side
    docs = combine(side.docs).take(column_of(rows))
    return side._replace(codes=side.codes[rows], docs=docs, values=side.values[rows])


def _names(ids: Any, places: Int64) -> list[str]:
    values = (ids[int(place)].as_py() for place in places[:_EXAMPLES])
    return [
        name_of(value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value)
        for value in values
    ]


def _found(check: str, ids: Any, places: Int64, total: int, verdict: str = FAILS) -> _Row:
    return _Row(check, len(places), total, verdict if len(places) else HOLDS, _names(ids, places))


def _of_judgments(side: Side, pairs: _Pairs, corpus: Any) -> Iterator[_Row]:
    best = np.full(len(side.queries), -np.inf)
    np.maximum.at(best, side.codes, side.values)
    lost = np.flatnonzero(~(best > 0))
    yield _found("queries without a relevant document", side.queries, lost, len(side.queries))
    if corpus is not None:
        ids = pairs.documents.dictionary
        mine, theirs = alike(ids, ids_of_corpus(corpus))
        lacking = np.flatnonzero(~array_of(pc.is_in(mine, theirs)))
        yield _found("judged documents that the corpus lacks", ids, lacking, len(ids))
    n = len(pairs.first)
    lowest, highest = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(lowest, pairs.number, side.values)
    np.maximum.at(highest, pairs.number, side.values)
    differ, repeated = lowest < highest, np.bincount(pairs.number, minlength=n) > 1
    for check, chosen in (
        ("documents with two grades for a query", differ),
        ("documents judged twice with one grade", repeated & ~differ),
    ):
        rows = np.sort(pairs.first[chosen])
        yield pairs.found(check, rows, n)


def _of_queries(side: Side, pairs: _Pairs, text: str | None) -> Iterator[_Row]:
    """Queries that are there under two ids."""
    if text is not None and side.kept is not None:
        written = pc.utf8_trim_whitespace(pc.utf8_lower(side.kept[text].cast(pa.large_string())))
        known = array_of(pc.is_valid(written))
        codes = array_of(combine(pc.fill_null(written, "")).dictionary_encode().indices)
        yield _groups("queries with the same text", side, codes, known, FAILS)
    # two sums of hashes of (document, grade), each of 64 bits, and the number of judgments: a set of them
    levels = np.unique(side.values, return_inverse=True)[1].astype(np.uint64)
    rows = np.sort(pairs.first)
    order = rows[np.argsort(side.codes[rows], kind="stable")]
    judged = np.bincount(side.codes[order], minlength=len(side.queries))
    known = judged >= _LEAST_ALIKE
    sums = [judged]
    for salt in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03):
        hashes = _mixed(pairs.document[order].astype(np.uint64) * np.uint64(salt) + _mixed(levels[order]))
        total = np.zeros(len(side.queries), np.uint64)
        np.add.at(total, side.codes[order], hashes)
        sums.append(total.view(np.int64))
    codes = np.unique(np.stack(sums, 1), axis=0, return_inverse=True)[1].reshape(-1)
    yield _groups("queries with the same judgments", side, codes, known, CAUTION)


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Numbers whose every bit depends on all bits (splitmix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _groups(check: str, side: Side, codes: Array, known: Flags, verdict: str) -> _Row:
    """Queries that share a code with another, those of a group together."""
    places = np.flatnonzero(known)
    counts = np.bincount(codes[places], minlength=1)
    shared = places[counts[codes[places]] > 1]
    first = np.full(len(counts), len(codes))
    np.minimum.at(first, codes[shared], shared)
    return _found(
        check, side.queries, shared[np.lexsort((shared, first[codes[shared]]))], len(places), verdict
    )


def _scales(side: Side, by: list[str]) -> Iterator[_Row]:
    """The range of grades, and slices whose range ends lower than chance explains."""
    yield _scale(side.values)
    for name, groups in _slices(side.kept, by):
        for value, queries in groups:
            chosen = np.zeros(len(side.queries), np.bool_)
            chosen[queries] = True
            own, others = side.values[chosen[side.codes]], side.values[~chosen[side.codes]]
            if not len(own):
                continue
            above = np.mean(others > own.max()) if len(others) else 0.0
            verdict = CAUTION if (1 - above) ** len(own) < _BY_CHANCE else HOLDS
            yield _scale(own)._replace(slice=f"{name}={value}", verdict=verdict)


def _scale(grades: Array) -> _Row:
    words = [f"{grades.min():g} to {grades.max():g}"]
    return _Row("scale of grades", len(np.unique(grades)), len(grades), HOLDS, words)


def _slices(kept: Any, by: list[str]) -> Iterator[tuple[str, list[tuple[str, Int64]]]]:
    for name in by:
        found = combine(kept[name]).dictionary_encode(null_encoding="encode")
        codes = array_of(found.indices)
        parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        yield (
            name,
            [(name_of(value), part) for value, part in zip(found.dictionary.to_pylist(), parts, strict=True)],
        )


# ---- runs ----


def _of_run(judged: Side, run: Side, by: list[str], cutoffs: list[int], least: float) -> Iterator[_Row]:
    mine, theirs = alike(judged.queries, run.queries)
    lacking = np.flatnonzero(~array_of(pc.is_in(mine, theirs)))
    yield _found("judged queries that the run lacks", judged.queries, lacking, len(mine))
    known = array_of(pc.is_in(theirs, mine)).astype(np.bool_)
    unjudged = np.flatnonzero(~known)
    yield _found("queries of the run without judgments", run.queries, unjudged, len(theirs), CAUTION)
    pairs = _Pairs(run)
    repeated = np.flatnonzero(np.bincount(pairs.number, minlength=len(pairs.first)) > 1)
    rows = np.sort(pairs.first[repeated])
    yield pairs.found("documents twice in the run", rows, len(pairs.first))
    is_nan = np.isnan(run.values) if run.values.dtype.kind == "f" else np.zeros(len(run.values), np.bool_)
    rows = np.flatnonzero(is_nan)
    yield pairs.found("scores that are NaN", rows, len(run.values))
    finite = run.values[~is_nan]
    swapped = len(finite) > 0 and are_swapped(judged.values, finite)
    yield _Row("grades and scores that look swapped", int(swapped), 1, FAILS if swapped else HOLDS)
    changes = np.flatnonzero(np.diff(run.codes)) + 1
    ends = np.concatenate([[0], changes, [len(run.codes)]])
    several = not run.is_ordered and len(finite) == len(run.values) > len(run.queries)
    is_rank = several and are_ranks(run.values, ends)
    yield _Row("scores that look like ranks", int(is_rank), 1, CAUTION if is_rank else HOLDS)
    if not known.any():
        return
    run = _of_rows(run, np.sort(pairs.first))
    both = _of_rows(run, np.flatnonzero(known[run.codes]))
    if not len(both.codes):
        return
    rankings = join(judged, both, "skip", "docid_desc", "last")
    scores = evaluate(rankings, [Judged @ cutoff for cutoff in cutoffs])
    ranks = runs_of(1, rankings.lengths)
    for cutoff in cutoffs:
        returned = np.minimum(rankings.lengths, cutoff)
        ends = np.append(0, np.cumsum(np.asarray(rankings.is_judged) & (ranks <= cutoff)))[rankings.offsets]
        columns = scores[Judged @ cutoff], np.diff(ends), returned
        yield _judged(cutoff, columns, slice(None), least)
        for name, groups in _slices(rankings.queries, by):
            for value, queries in groups:
                yield _judged(cutoff, columns, queries, least)._replace(slice=f"{name}={value}")


def _judged(cutoff: int, columns: tuple[Array, Array, Array], queries: Any, least: float) -> _Row:
    shares, judged, returned = (column[queries] for column in columns)
    share = float(np.mean(shares))
    verdict = HOLDS if share >= least else FAILS
    return _Row(f"judged at {cutoff}", int(judged.sum()), int(returned.sum()), verdict, share=share)
