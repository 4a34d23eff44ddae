"""The join of two sides by query and document: ids as kernels take them, and whether these meet."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.common.arrays import Array, falling_keys, offsets_of, read_only, runs_of
from fastndcg.common.arrow_types import array_of, column_of
from fastndcg.common.threads import in_threads, processors
from fastndcg.errors import InputError, count_of, warn
from fastndcg.kernels.compile import worlds
from fastndcg.rankings.blame import shown
from fastndcg.rankings.grouping import SECRET, text_of
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources.sides import Side, check_values, name_of, plain_ids, rows_of

if TYPE_CHECKING:
    from fastndcg.kernels.reading.ids import Ids
    from fastndcg.typing import Missing, NaN, TieOrder

_SIGN = np.uint64(1 << 63)  # moves signed keys to unsigned ones of the same order
_PART = 250_000  # rows for which another thread is worth while
# share of queries with a judged document below which ids are probably written differently
_LEAST_FOUND = 0.01
_SAMPLE = 3  # ids that a message names


def join(
    qrels: Side,
    run: Side,
    missing: Missing,
    ties: TieOrder,
    nan: NaN,
    threads: int | None = None,
    *,
    must_meet: bool = False,
) -> Rankings:
    """Rankings of the queries of `qrels`, with the grade of each document of `run`.

    Raises where they have no query in common, and with `must_meet` where their queries have no document in
    common; warns where they have few.
    """
    import pyarrow.compute as pc

    check_values(qrels, "grade")
    run, meeting = with_nan(run, nan), Meeting(qrels, run.name, missing)
    judged_queries, run_queries = alike(qrels.queries, run.queries)
    codes = array_of(pc.index_in(run_queries, judged_queries), len(judged_queries)).astype(np.int64)
    returned = meeting.add_queries(run, codes)
    meeting.check_queries()
    if missing == "skip":
        qrels, new = _of_queries(qrels, returned)
        codes = new[codes]
    rankings = join_rows(qrels, run, codes[run.codes], ties, threads)
    if must_meet:
        meeting.add_documents(qrels, rankings)
        meeting.check_documents()
    return rankings


def with_nan(run: Side, nan: NaN) -> Side:
    """A run with NaN as the lowest score. Raises where it is refused."""
    if nan == "last" and run.values.dtype.kind == "f":
        run = run._replace(values=np.where(np.isnan(run.values), run.values.dtype.type(-np.inf), run.values))
    check_values(run, "score")
    return run


def join_rows(qrels: Side, run: Side, run_codes: Array, ties: TieOrder, threads: int | None) -> Rankings:
    """Rankings of the queries of `qrels`; `run_codes` says for each row of `run` which one it is of."""
    judged_docs, run_docs = alike(qrels.docs, run.docs)
    judged_offsets, judged_rows = group(qrels.codes, len(qrels.queries))
    values = qrels.values
    if not ascends(judged_rows):
        # one look at each id in random order; the join would take several
        judged_docs, values = judged_docs.take(column_of(judged_rows)), values[judged_rows]
    offsets, rows = group(run_codes, len(qrels.queries))
    judged_ids, run_ids = digest(judged_docs, threads), digest(run_docs, threads)
    found, judged_places = np.empty(len(run.values), np.int64), np.arange(len(judged_rows))

    def join_part(part: slice) -> tuple[int, int, int]:
        judged, returned = judged_offsets[part], offsets[part]
        arguments = judged, judged_places, judged_ids, returned, rows, run_ids, found
        size = returned[-1] - returned[0]
        return worlds.run("reading.joining.join_documents", size, *arguments, job=len(rows))  # type: ignore[no-any-return]

    for twice, first, second in each_part(join_part, judged_offsets + offsets, threads):
        if twice == 1:
            raise _duplicate(qrels, int(judged_rows[first]), int(judged_rows[second]))
        if twice:
            raise _duplicate(run, first, second)
    # after the join, which looks at the rows as they stand: in order of their scores it took twice as long
    if ties != "input":
        rows = _by_falling_score(run.values, offsets, rows, run_ids, ties, threads)
    in_place = len(rows) == len(run.values) and ascends(rows)
    if not in_place:
        found = found[rows]

    pool_kept = values[: len(judged_rows)] >= 0
    pool_offsets = offsets_of(pool_kept, judged_offsets)
    is_judged = found >= 0
    relevance = np.append(values, values.dtype.type(0))[found]  # of what is not found the last one
    is_judged &= relevance >= 0
    intents: dict[str, Any] = {}
    if qrels.intents is not None:
        intents = {
            "intents": qrels.intents.take(np.append(judged_rows, -1)[found]),
            "judged_intents": qrels.intents.take(judged_rows[pool_kept]),
        }
    return Rankings._from_offsets(
        offsets,
        relevance,
        run.values if in_place else run.values[rows],
        judged=(pool_offsets, values[: len(judged_rows)][pool_kept]),
        is_judged=is_judged,
        query_ids=qrels.queries,
        queries=qrels.kept,
        weight=qrels.weight,
        **intents,
    )._with(
        _query_name=qrels.query_name,
        _first_row=None,
        doc_ids=run.docs if in_place else run.docs.take(column_of(rows)),
    )


def _of_queries(qrels: Side, queries: Array) -> tuple[Side, Array]:
    """Judgments, but of these queries only, and the new code of each query; others have the code after."""
    codes = np.full(len(qrels.queries) + 1, len(queries), np.int64)
    codes[queries] = np.arange(len(queries))
    taken = column_of(queries)
    chosen = qrels._replace(
        queries=qrels.queries.take(taken),
        codes=codes[qrels.codes],
        kept=None if qrels.kept is None else qrels.kept.take(taken),
        weight=None if qrels.weight is None else qrels.weight[queries],
    )
    return chosen, codes


class Parts:
    """Judgments, of which parts of a run are joined with those of their queries."""

    def __init__(self, qrels: Side) -> None:
        check_values(qrels, "grade")
        self._offsets, rows = group(qrels.codes, len(qrels.queries))
        self._whole = qrels if ascends(rows) else rows_of(qrels, rows)
        # of a million judged queries, Arrow's table of them, anew for each part, took half of the time
        self._code_of = {
            each: code for code, each in enumerate(_as_bytes(plain_ids(qrels.queries)).to_pylist())
        }

    def codes(self, run: Side) -> Array:
        """Which judged query each query of `run` is; their number for one that they lack."""
        code_of, none = self._code_of.get, len(self._code_of)
        queries = _as_bytes(plain_ids(run.queries)).to_pylist()
        return np.fromiter((code_of(each, none) for each in queries), np.int64, len(queries))

    def of(self, queries: Array) -> tuple[Side, Array]:
        """Judgments of these queries, which ascend, and the code of each query among them."""
        starts = self._offsets[queries]
        rows = runs_of(starts, self._offsets[queries + 1] - starts)
        return _of_queries(rows_of(self._whole, rows), queries)


def _by_falling_score(
    values: Array, offsets: Array, rows: Array, ids: Ids, ties: TieOrder, threads: int | None
) -> Array:
    """Rows of each query in order of falling score; those of equal score by their documents' ids."""
    keys, ordered = falling_keys(values).view(np.uint64) ^ _SIGN, np.empty(len(rows), np.int64)

    def order_part(part: slice) -> None:
        arguments = offsets[part], rows, keys, ids, ties == "docid_asc", ordered
        size = arguments[0][-1] - arguments[0][0]
        worlds.run("reading.joining.order_documents", size, *arguments, job=len(rows))

    each_part(order_part, offsets, threads)
    return ordered


def _duplicate(side: Side, first: int, second: int) -> InputError:
    return InputError(
        f"{side.place(second)}: {name_of(side, second)} is there twice, first at {side.place(first)}. "
        f"A document has one {'grade' if side.name == 'qrels' else 'entry'} for a query: "
        "drop one of the two."
    )


def alike(left: Any, right: Any) -> tuple[pa.Array, pa.Array]:
    """Ids of both sides as int64 or uint64, or as large_binary, so that equal ids have equal bytes.

    A number in one is the same id as its text in the other.
    """
    both = [plain_ids(left), plain_ids(right)]
    numbers = [pa.types.is_integer(ids.type) for ids in both]
    if all(numbers):
        for kind in (pa.int64(), pa.uint64()):
            with suppress(pa.ArrowInvalid):
                return both[0].cast(kind), both[1].cast(kind)
    one, other = map(_as_bytes, both)
    return one, other


def _as_bytes(ids: pa.Array) -> pa.Array:
    return (ids.cast(pa.string()) if pa.types.is_integer(ids.type) else ids).cast(pa.large_binary())


def group(codes: Array, n_codes: int) -> tuple[Array, Array]:
    """Offsets and rows of the codes below `n_codes`; rows of other codes are left out."""
    if not len(codes) or (codes[1:] >= codes[:-1]).all():
        offsets = np.searchsorted(codes, np.arange(n_codes + 1)).astype(np.int64)
        return offsets, np.arange(offsets[-1], dtype=np.int64)
    codes = read_only(codes.astype(np.int64, copy=False))
    offsets, rows = worlds.run("reading.rows.rows_by_code", len(codes), codes, n_codes + 1)
    return offsets[:-1], rows[: offsets[-2]]


def ascends(rows: Array) -> bool:
    return not len(rows) or bool(rows[0] == 0 and rows[-1] == len(rows) - 1 and (rows[1:] > rows[:-1]).all())


# ---- ids ----


def digest(ids: pa.Array, threads: int | None) -> Ids:
    from fastndcg.kernels.reading.ids import Ids
    from fastndcg.kernels.reading.joining import hashes_of_numbers

    if pa.types.is_integer(ids.type):
        numbers = array_of(ids)
        leading = (numbers ^ _SIGN).view(np.int64) if numbers.dtype == np.uint64 else numbers.view()
        return Ids(
            hashes_of_numbers(leading, SECRET),
            np.array(leading),
            read_only(np.empty(0, np.int64)),
            read_only(np.empty(0, np.uint8)),
        )
    offsets, data = text_of(ids)
    hashes, leading = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)

    def digest_part(part: slice) -> None:
        ends = offsets[part]
        arguments = ends, data, SECRET, hashes[part][: len(ends) - 1], leading[part][: len(ends) - 1]
        worlds.run("reading.joining.digest_ids", len(ends) - 1, *arguments, job=len(ids))

    each_part(digest_part, np.arange(len(ids) + 1), threads)
    return Ids(hashes, leading, offsets, data)


def each_part(kernel: Callable[[slice], Any], offsets: Array, threads: int | None) -> list[Any]:
    """Results of a kernel for parts of about equal size, in threads; `offsets[part]` are those of a part."""
    rows = int(offsets[-1])
    n_parts = max(1, min(threads or processors(), rows // _PART))
    wanted = np.array([rows * part // n_parts for part in range(1, n_parts)], np.int64)
    cuts = np.unique([0, *np.searchsorted(offsets, wanted), len(offsets) - 1]).tolist()
    parts = [slice(start, stop + 1) for start, stop in pairwise(cuts)]
    return list(in_threads(kernel, parts if len(parts) > 1 else [slice(None)]))


# ---- whether ids meet ----


class Meeting:
    """How many queries, and documents of theirs, judgments and the parts of a run have in common."""

    def __init__(self, qrels: Side, name: str, missing: Missing) -> None:
        self._qrels, self._run, self._missing = qrels, name, missing
        self._is_common = np.zeros(len(qrels.queries) + 1, np.bool_)
        self._n_queries = self._n_rows = 0  # of the run
        self._first: list[Any] = []  # queries of the run
        self._returned = self._found = 0  # common queries, and those with a judged document
        self._example: tuple[str, str, str] | None = None  # a query without one, and documents of both sides

    def add_queries(self, run: Side, codes: Array) -> Array:
        """Add the queries of a part, of which `codes` are those in the qrels. Returns the common ones."""
        self._first = self._first or [*run.queries[: _SAMPLE + 1]]
        self._n_queries += len(run.queries)
        self._n_rows += len(run.codes)
        has_rows = np.zeros(len(run.queries), np.bool_)
        has_rows[run.codes] = True
        found = np.unique(codes[has_rows])
        self._is_common[found] = True
        return found[: np.searchsorted(found, len(self._qrels.queries))]

    def add_documents(self, qrels: Side, rankings: Rankings) -> None:
        """Add the documents of a part, of the judgments of its queries."""
        met = rankings.relevance < 0  # unjudged documents of the pool
        met = met if rankings.is_judged is None else met | rankings.is_judged
        has_met = np.diff(np.append(0, np.cumsum(met))[rankings.offsets]) > 0
        returned = np.flatnonzero(rankings.lengths)
        lacking = returned[~has_met[returned]]
        self._returned += len(returned)
        self._found += len(returned) - len(lacking)
        if self._example is None and len(lacking):
            query = int(lacking[0])
            start, end = map(int, rankings.offsets[query : query + 2])
            there = qrels.docs.take(column_of(np.flatnonzero(qrels.codes == query)))
            here = rankings.doc_ids[start:end]  # type: ignore[index]
            self._example = shown(rankings.query_ids[query]), sample(there), sample(here)

    def check_queries(self) -> None:
        """Refuse sides without a common query, and warn if they have few."""
        qrels, judged, returned = self._qrels, len(self._qrels.queries), self._n_queries
        common = np.flatnonzero(self._is_common[:-1])
        if not judged or not self._n_rows:
            return
        if not len(common):
            raise self._nothing_in_common("query", sample(qrels.queries), sample(self._first))
        if 2 * len(common) < (judged if self._missing == "zero" else min(judged, returned)):
            lacking = np.flatnonzero(~self._is_common[:-1])
            counted = "are left out"
            if self._missing == "zero":
                counted = 'count with an empty ranking; pass missing="skip" to leave them out'
            warn(
                f"{qrels.name} has {count_of(judged, 'query')} and {self._run} "
                f"{count_of(returned, 'query')}; they have {len(common):,} in common. "
                f"The other judged ones, {sample(qrels.queries.take(pa.array(lacking)))}, {counted}"
                ". If that is not meant, compare how ids are written.",
            )

    def check_documents(self) -> None:
        """Refuse sides whose queries have no document in common, and warn if hardly any has one."""
        if self._example is None or self._found >= max(1, _LEAST_FOUND * self._returned):
            return
        query, there, here = self._example
        of = f"documents of query {query}"
        if not self._found:
            raise self._nothing_in_common("document", f"{of} are {there}", here)
        warn(
            f"of {count_of(self._returned, 'query')} of {self._run} only {self._found:,} have a document "
            f"that {self._qrels.name} judges: {of} are {there} there, {here} here. "
            "If that is not meant, compare how ids are written."
        )

    def _nothing_in_common(self, of: str, there: str, here: str) -> InputError:
        return InputError(
            f"{self._qrels.name} and {self._run} have no {of} in common: {there} there, {here} here. "
            "Compare how ids are written."
        )


def sample(ids: pa.Array) -> str:
    """The first ids, as a message has them."""
    return ", ".join(map(shown, ids[:_SAMPLE])) + (" ..." if len(ids) > _SAMPLE else "")
