"""Join judgments and a run, and check that their ids match.

Each is a `Side`: one row per document. The join has one row per document of the run.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa

from fastndcg.common.arrays import (
    JOINED,
    OR_FIRST,
    Array,
    Int64,
    falling_keys,
    offsets_from,
    offsets_of,
    read_only,
)
from fastndcg.common.arrow_types import array_of, column_of, combine, decode, is_binary, places_of
from fastndcg.common.hashes import keys_of
from fastndcg.errors import FastndcgError, InputError, InputTypeError, check_choice, count_of, warn
from fastndcg.kernels.compile import dispatch
from fastndcg.tables.checks import cast_columns, or_last
from fastndcg.tables.grouping import group_rows
from fastndcg.tables.intents import IntentGrades
from fastndcg.tables.locations import shown
from fastndcg.tables.values import grades_in, scores_in
from fastndcg.typing import Missing, NaN, TieOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fastndcg.tables.locations import Locator
    from fastndcg.tables.roles import Roles

Role = Literal["relevance", "score"]


class Side(NamedTuple):
    """Judgments or a run: one row per document."""

    name: str
    queries: pa.Array  # distinct query ids in order of first appearance
    codes: Array  # index into `queries`, per row
    docs: pa.Array | pa.ChunkedArray
    values: Array  # grades or scores
    place: Callable[[int], str]  # file and line of a row, for messages
    tag: str = ""  # of a TREC run, from its last line
    query_name: str = "query_id"  # what query ids are called
    intents: IntentGrades | None = None  # of judgments by intent, per row
    kept: pa.Table | None = None  # kept columns, one row per query
    weight: Array | None = None
    column: str = ""  # name of the column of values, in a table
    ranks: str | None = None  # an unused column of ranks beside the scores
    is_ordered: bool = False  # the values were ranks, or the lowest score is the best


def side_of(
    name: str,
    query: pa.Array | pa.ChunkedArray,
    docs: pa.Array | pa.ChunkedArray,
    place: Callable[[int], str] = str,
    offsets: Int64 | None = None,
) -> Side:
    """Return a side without values. `query` has the id of each row or, with `offsets`, of each list."""
    grouped = group_rows(query if isinstance(query, pa.ChunkedArray) else pa.chunked_array([query]))
    codes = grouped.codes_of_rows.astype(np.int64, copy=False)
    codes = codes if offsets is None else np.repeat(codes, np.diff(offsets))
    return Side(name, combine(decode(grouped.query_ids)), codes, docs, np.empty(0), place)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Prefix messages about columns with the name of their side."""
    try:
        yield
    except FastndcgError as error:
        said = str(error).replace(JOINED, "")  # which these judgments are not
        raise type(error)(said if said.startswith(name) else f"{name}: {said}") from None


def with_values(
    side: Side, role: Role, roles: Roles, column: Any, locator: Locator, intents: pa.Array | None = None
) -> Side:
    """Return a side with the grades or scores of a column, of which the highest score is the best.

    Drops rows without a grade if `unjudged` allows them, and then, with `duplicates="first"`, all but the
    first row of a document. `intents` has the intent of each judgment.
    """
    graded = None
    if role == "score":  # nulls become NaN, which the join refuses or ranks last
        values = scores_in(roles, column, locator, "last")
    elif roles.one_grade is not None:
        values = np.full(len(side.codes), roles.one_grade)
    else:
        values, graded = grades_in(roles, column, locator)
    side = side._replace(values=values)
    if graded is not None:
        rows = np.flatnonzero(graded)
        side = rows_of(side, rows)
        intents = None if intents is None else intents.take(column_of(rows))
    if roles.duplicates == "first":
        rows = rows_of_first(side, intents)
        side, intents = rows_of(side, rows), None if intents is None else intents.take(column_of(rows))
    return side if intents is None else by_document(side, intents)


def first_of_each(side: Side) -> Side:
    """A side with the first row of each document of a query."""
    return rows_of(side, rows_of_first(side))


def rows_of_first(side: Side, intents: pa.Array | None = None) -> Array:
    """Return the first row of each document of a query, or of each of its intents."""
    keys = side.codes.astype(np.int64)
    for column in [side.docs, *([] if intents is None else [intents])]:
        coded = plain_ids(column).dictionary_encode()
        keys = keys * len(coded.dictionary) + array_of(coded.indices)
    return np.sort(np.unique(keys, return_index=True)[1])


def by_document(side: Side, names: pa.Array) -> Side:
    """Merge the rows of each judged document, one per intent. Documents of a query are in descending order of
    id.

    The grade of a document is its highest. Intents of a query are numbered in the order of their names.
    """
    check_values(side, "grade")
    docs, intents = (plain_ids(ids).dictionary_encode() for ids in (side.docs, names))
    document = -places_of(docs.dictionary)[array_of(docs.indices)]
    intent = places_of(intents.dictionary)[array_of(intents.indices)]
    width = len(intents.dictionary) + 1
    pairs, number = np.unique(side.codes.astype(np.int64) * width + intent, return_inverse=True)
    number -= np.searchsorted(pairs, np.arange(len(side.queries)) * width)[side.codes]
    order = np.lexsort((number, document, side.codes))
    codes, document, number = side.codes[order], document[order], number[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (codes[1:] != codes[:-1]) | (document[1:] != document[:-1])
    twice = np.flatnonzero(~new[1:] & (number[1:] == number[:-1]))
    if len(twice):
        first, second = sorted(order[twice[0] : twice[0] + 2].tolist())
        raise InputError(
            f"{side.place(second)}: {name_of(side, second)} has two grades for intent "
            f"{shown(names[second])}, the first at {side.place(first)}; drop one of the two"
        )
    starts, values = np.flatnonzero(new), side.values[order]
    judged = values >= 0
    ends = offsets_from(judged)[np.append(starts, len(order))]
    return rows_of(side, order[starts])._replace(
        values=np.maximum.reduceat(values, starts) if len(starts) else values,
        intents=IntentGrades(ends, number[judged], values[judged]),
    )


def rows_of(side: Side, rows: Array) -> Side:
    return side._replace(
        codes=side.codes[rows],
        docs=side.docs.take(column_of(rows)),
        values=side.values[rows],
        intents=None if side.intents is None else side.intents.take(rows),
        place=lambda row: side.place(int(rows[row])),
    )


def check_values(side: Side, what: Literal["grade", "score"]) -> None:
    """Raise for values that `Rankings` would refuse, while file and line are known."""
    if side.values.dtype.kind not in "buif":
        raise InputTypeError(f"{side.name} has {what}s of dtype {side.values.dtype}; expected numbers")
    if side.values.dtype.kind != "f":
        return
    bad = np.isnan(side.values) if what == "score" else ~np.isfinite(side.values)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{side.place(row)}: {what} {side.values[row]} of {name_of(side, row)}; {bad.sum():,} in all. "
            f"{or_last(side.ranks)[2:] if what == 'score' else 'Drop those rows.'}"
        )


def name_of(side: Side, row: int) -> str:
    return f"document {shown(side.docs[row])} of query {shown(side.queries[int(side.codes[row])])}"


def plain_ids(ids: Any) -> pa.Array:
    ids = decode(ids)
    if not pa.types.is_integer(ids.type):
        ids = ids.cast(pa.large_binary() if is_binary(ids.type) else pa.large_string())
    return combine(ids)


_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, and far from any small multiple of 2**64
# share of queries with a judged document below which ids are probably written differently
_LEAST_FOUND = 0.01
_SAMPLE = 3  # ids that a message names


def join(
    qrels: Side, run: Side, missing: Missing, ties: TieOrder, nan: NaN, *, must_meet: bool = False
) -> dict[str, Any]:
    """Return the fields of `Rankings` for the queries of `qrels`, with the grade of each document of `run`.

    Raises if they have no query in common, and with `must_meet` if they have no document in common. Warns if
    they have few, and with `must_meet` if the run has no documents.
    """
    import pyarrow.compute as pc

    check_values(qrels, "grade")
    run = with_ranked_nan(run, nan)
    judged_queries, run_queries = alike(qrels.queries, run.queries)
    codes = array_of(pc.index_in(run_queries, judged_queries), len(judged_queries)).astype(np.int64)
    returned = _common_queries(qrels, run, codes, missing)
    if missing == "skip":
        qrels, new = _of_queries(qrels, returned)
        codes = new[codes]
    fields = _join_rows(qrels, run, codes[run.codes], ties)
    if must_meet and len(judged_queries) and not len(run.codes):
        counted = "counts with an empty ranking" if missing == "zero" else "is left out"
        warn(f"{run.name} has no documents, so each query of {qrels.name} {counted}")
    if must_meet:
        _check_documents(qrels, run.name, fields)
    return fields


def check_options(missing: str, ties: str) -> None:
    check_choice("missing", missing, get_args(Missing))
    check_choice("ties", ties, get_args(TieOrder))


def with_ranked_nan(run: Side, nan: NaN) -> Side:
    """Rank NaN scores below all others if `nan` is "last". Raises for scores that have no order."""
    if nan == "last" and run.values.dtype.kind == "f":
        run = run._replace(values=np.where(np.isnan(run.values), run.values.dtype.type(-np.inf), run.values))
    check_values(run, "score")
    return run


def _join_rows(qrels: Side, run: Side, run_codes: Array, ties: TieOrder) -> dict[str, Any]:
    """Return the fields for the queries of `qrels`; `run_codes` has the query of each row of `run`."""
    n = len(qrels.queries)
    judged_docs, run_docs = alike(qrels.docs, run.docs)
    judged_row, twice = _judged_rows(
        qrels.codes.astype(np.int64, copy=False), judged_docs, run_codes, run_docs, n
    )
    _refuse_twins(qrels, run, twice, twin_in(run_codes, run_docs, n))
    judged_offsets, judged_rows = group(qrels.codes, n)
    offsets, rows = group(run_codes, n)
    as_in_run = rows
    if ties != "input":
        rows = _by_falling_score(run, run_codes, rows, run_docs, ties)
    in_place = len(rows) == len(run.values) and ascends(rows)
    if not in_place:
        judged_row = judged_row[rows]

    values, pool = qrels.values, qrels.values[judged_rows]
    pool_kept = pool >= 0
    pool_offsets = offsets_of(pool_kept, judged_offsets)
    is_judged = judged_row >= 0
    relevance = np.append(values, values.dtype.type(0))[judged_row]  # -1 takes the 0 at the end
    is_judged &= relevance >= 0
    intents: dict[str, Any] = {}
    if qrels.intents is not None:
        intents = {
            "intents": qrels.intents.take(judged_row),
            "judged_intents": qrels.intents.take(judged_rows[pool_kept]),
        }
    fields = cast_columns(
        offsets,
        relevance,
        run.values if in_place else run.values[rows],
        judged=(pool_offsets, pool[pool_kept]),
        is_judged=is_judged,
        query_ids=qrels.queries,
        queries=qrels.kept,
        weight=qrels.weight,
        **intents,
    )
    docs = run.docs if in_place else run.docs.take(column_of(rows))
    moved = None if rows is as_in_run or np.array_equal(rows, as_in_run) else rows
    return fields | {"_query_name": qrels.query_name, "_first_row": None, "doc_ids": docs, "_rows": moved}


Twin = tuple[int, int, int]  # a query, and two rows with the same document of it, in order


def _judged_rows(
    judged_codes: Array, judged_docs: pa.Array, run_codes: Array, run_docs: pa.Array, n: int
) -> tuple[Int64, Twin | None]:
    """Return the judged row of each row of the run, or -1; and the first document that is judged twice.

    Rows whose code is `n` or more belong to no query.
    """
    import pyarrow.compute as pc

    coded = judged_docs.dictionary_encode()
    width = len(coded.dictionary) + 1
    keys = judged_codes * width + array_of(coded.indices)
    order = np.argsort(keys, kind="stable") if (keys[1:] < keys[:-1]).any() else np.arange(len(keys))
    keys = keys[order]
    twin = _first_twin(judged_codes, order, keys, n)
    # the dictionary of judged documents is small, and has few documents of a run
    places = array_of(pc.index_in(run_docs, coded.dictionary), width - 1)
    rows = np.flatnonzero((places < width - 1) & (run_codes < n))
    wanted = run_codes[rows] * width + places[rows]
    at = np.searchsorted(keys, wanted)
    meets = np.append(keys, -1)[at] == wanted
    judged_row = np.full(len(run_codes), -1)
    judged_row[rows[meets]] = order[at[meets]]
    return judged_row, twin


def twin_in(codes: Array, docs: pa.Array, n: int) -> Twin | None:
    """Return the first document that appears twice in a query. Equal hashes are verified by id."""
    import pyarrow.compute as pc

    hashes = keys_of(docs) + codes.view(np.uint64) * _FACTOR
    ordered = np.sort(hashes[codes < n])
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(repeated):
        return None
    rows = np.flatnonzero(array_of(pc.is_in(column_of(hashes), column_of(repeated))) & (codes < n))
    coded = docs.take(column_of(rows)).dictionary_encode()
    keys = codes[rows] * len(coded.dictionary) + array_of(coded.indices)
    order = np.argsort(keys, kind="stable")
    return _first_twin(codes, rows[order], keys[order], n)


def _first_twin(codes: Array, order: Int64, keys: Int64, n: int) -> Twin | None:
    """Return the twin of the first query that has one, and in it the one that is completed first.

    `order` sorts rows by document; `keys` are equal for equal documents.
    """
    again = np.flatnonzero((keys[1:] == keys[:-1]) & (codes[order[1:]] < n))
    if not len(again):
        return None
    first = again[np.lexsort((order[again + 1], codes[order[again]]))[0]]
    return int(codes[order[first]]), int(order[first]), int(order[first + 1])


def _refuse_twins(qrels: Side, run: Side, judged: Twin | None, returned: Twin | None) -> None:
    """Raise for a document that appears twice: in the first such query, judgments before the run."""
    if judged is not None and (returned is None or judged[0] <= returned[0]):
        raise duplicate(qrels, *judged[1:])
    if returned is not None:
        raise duplicate(run, *returned[1:])


def _of_queries(qrels: Side, queries: Array) -> tuple[Side, Array]:
    """Keep the judgments of these queries. Also returns the new code of each; others get one past the end."""
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


def _by_falling_score(run: Side, codes: Array, rows: Array, docs: pa.Array, ties: TieOrder) -> Array:
    """Sort the rows of each query by descending score, and those of equal score by document id."""
    import pyarrow.compute as pc

    values, queries = run.values[rows], codes[rows]
    if ((queries[1:] == queries[:-1]) & (values[1:] > values[:-1])).any():
        # an unstable sort took a third of the time of a stable one
        order = np.argsort(falling_keys(values))
        order = order[group(queries[order], int(queries[-1]) + 1)[1]]
        rows, values, queries = rows[order], values[order], queries[order]
    is_equal = np.append(False, (queries[1:] == queries[:-1]) & (values[1:] == values[:-1]))
    tied = np.flatnonzero(is_equal | np.append(is_equal[1:], False))
    if len(tied):
        # Arrow sorts the tied ids alone: ranking all ids took six times as long
        groups, ids = np.cumsum(~is_equal[tied]), docs.take(column_of(rows[tied]))
        by_id = "ascending" if ties == "docid_asc" else "descending"
        batch = pa.record_batch([column_of(groups), ids], ["group", "id"])
        order = pc.sort_indices(batch, sort_keys=[("group", "ascending"), ("id", by_id)])
        rows = rows.copy()
        rows[tied] = rows[tied[array_of(order)]]
    return rows


def duplicate(side: Side, first: int, second: int) -> InputError:
    place, earlier = side.place(second), side.place(first)
    also = "" if place == earlier else f", first at {earlier}"
    return InputError(
        f"{place}: {name_of(side, second)} appears twice{also}. "
        f"A document has one {'grade' if side.name == 'qrels' else 'entry'} for a query: "
        f"drop one of the two{OR_FIRST}."
    )


def alike(*columns: Any) -> list[pa.Array]:
    """Cast the ids of all columns to int64 or uint64, or to large_binary, so that equal ids have equal bytes.

    A number in one column equals its text in another. Empty columns do not determine the type.
    """
    ids = [plain_ids(each) for each in columns]
    filled = [each for each in ids if len(each)]
    if filled and all(pa.types.is_integer(each.type) for each in filled):
        for kind in (pa.int64(), pa.uint64()):
            with suppress(pa.ArrowInvalid):
                return [each.cast(kind) for each in ids]
    return list(map(_as_bytes, ids))


def _as_bytes(ids: pa.Array) -> pa.Array:
    return (ids.cast(pa.string()) if pa.types.is_integer(ids.type) else ids).cast(pa.large_binary())


def group(codes: Array, n_codes: int) -> tuple[Array, Array]:
    """Return offsets and rows of the codes below `n_codes`; drops rows with other codes."""
    if not len(codes) or (codes[1:] >= codes[:-1]).all():
        offsets = np.searchsorted(codes, np.arange(n_codes + 1)).astype(np.int64)
        return offsets, np.arange(offsets[-1], dtype=np.int64)
    codes = read_only(codes.astype(np.int64, copy=False))
    offsets, rows = dispatch.run("rows.rows_by_code", len(codes), codes, n_codes + 1)
    return offsets[:-1], rows[: offsets[-2]]


def ascends(rows: Array) -> bool:
    return not len(rows) or bool(rows[0] == 0 and rows[-1] == len(rows) - 1 and (rows[1:] > rows[:-1]).all())


# ---- do ids match? ----


def _common_queries(qrels: Side, run: Side, codes: Array, missing: Missing) -> Int64:
    """Return the judged queries that the run has; `codes` has the judged query of each query of the run.

    Raises if there are none, and warns if there are few.
    """
    has_rows = np.zeros(len(run.queries), np.bool_)
    has_rows[run.codes] = True
    judged, returned = len(qrels.queries), len(run.queries)
    is_common = np.zeros(judged + 1, np.bool_)
    is_common[codes[has_rows]] = True
    common = np.flatnonzero(is_common[:-1])
    if not judged or not len(run.codes):
        return common
    if not len(common):
        raise _nothing_in_common(qrels, run.name, "query", sample(qrels.queries), sample(run.queries))
    if 2 * len(common) < (judged if missing == "zero" else min(judged, returned)):
        lacking = np.flatnonzero(~is_common[:-1])
        counted = "are left out"
        if missing == "zero":
            counted = 'count with an empty ranking; pass missing="skip" to leave them out'
        warn(
            f"{qrels.name} has {count_of(judged, 'query')} and {run.name} "
            f"{count_of(returned, 'query')}; they have {len(common):,} in common. "
            f"The other judged ones, {sample(qrels.queries.take(pa.array(lacking)))}, {counted}"
            ". If that is not meant, compare how ids are written.",
        )
    return common


def _check_documents(qrels: Side, run: str, fields: dict[str, Any]) -> None:
    """Raise if no query has a judged document, and warn if hardly any has one."""
    offsets, is_judged = fields["offsets"], fields["is_judged"]
    met = is_judged | (fields["relevance"] < 0)  # negative: unjudged documents of the pool
    has_met = np.diff(offsets_of(met, offsets)) > 0
    returned = np.flatnonzero(np.diff(offsets))
    lacking = returned[~has_met[returned]]
    n_met = len(returned) - len(lacking)
    if not len(lacking) or n_met >= max(1, _LEAST_FOUND * len(returned)):
        return
    with_judgments = lacking[np.isin(lacking, qrels.codes)]
    query = int([*with_judgments[:1], *lacking[:1]][0])
    judged_ids = sample(qrels.docs.take(column_of(np.flatnonzero(qrels.codes == query)))) or "none"
    returned_ids = sample(fields["doc_ids"][int(offsets[query]) : int(offsets[query + 1])])
    of = f"documents of query {shown(qrels.queries[query])}"
    if not n_met:
        raise _nothing_in_common(qrels, run, "document", f"{of} are {judged_ids}", returned_ids)
    warn(
        f"of {count_of(len(returned), 'query')} of {run} only {n_met:,} have a document "
        f"that {qrels.name} judges: {of} are {judged_ids} there, {returned_ids} here. "
        "If that is not meant, compare how ids are written."
    )


def _nothing_in_common(qrels: Side, run: str, of: str, judged_ids: str, returned_ids: str) -> InputError:
    return InputError(
        f"{qrels.name} and {run} have no {of} in common: {judged_ids} there, {returned_ids} here. "
        "Compare how ids are written."
    )


def sample(ids: pa.Array) -> str:
    """Return the first ids for a message."""
    return ", ".join(map(shown, ids[:_SAMPLE])) + (" ..." if len(ids) > _SAMPLE else "")
