"""The join of two sides by query and document, and whether their ids meet."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from fastndcg.common.arrays import OR_FIRST, Array, Int64, falling_keys, offsets_of, read_only
from fastndcg.common.arrow_types import array_of, column_of
from fastndcg.common.hashes import keys_of
from fastndcg.errors import InputError, check_choice, count_of, warn
from fastndcg.kernels.compile import dispatch
from fastndcg.tables.checks import cast_columns
from fastndcg.tables.locations import shown
from fastndcg.tables.sides import Side, check_values, name_of, plain_ids
from fastndcg.typing import Missing, NaN, TieOrder

_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, and far from any small multiple of 2**64
# share of queries with a judged document below which ids are probably written differently
_LEAST_FOUND = 0.01
_SAMPLE = 3  # ids that a message names


def join(
    qrels: Side, run: Side, missing: Missing, ties: TieOrder, nan: NaN, *, must_meet: bool = False
) -> dict[str, Any]:
    """The fields of `Rankings` of the queries of `qrels`, with the grade of each document of `run`.

    Raises where they have no query in common, and with `must_meet` where their queries have no document in
    common; warns where they have few, and with `must_meet` of a run without documents.
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
    """A run whose NaN scores are below all others, with "last". Raises for scores that cannot be ranked."""
    if nan == "last" and run.values.dtype.kind == "f":
        run = run._replace(values=np.where(np.isnan(run.values), run.values.dtype.type(-np.inf), run.values))
    check_values(run, "score")
    return run


def _join_rows(qrels: Side, run: Side, run_codes: Array, ties: TieOrder) -> dict[str, Any]:
    """Fields of the queries of `qrels`; `run_codes` says for each row of `run` which one it is of."""
    n = len(qrels.queries)
    judged_docs, run_docs = alike(qrels.docs, run.docs)
    found, twice = _judged_rows(qrels.codes.astype(np.int64, copy=False), judged_docs, run_codes, run_docs, n)
    _refuse_twins(qrels, run, twice, twin_in(run_codes, run_docs, n))
    judged_offsets, judged_rows = group(qrels.codes, n)
    offsets, rows = group(run_codes, n)
    as_in_run = rows
    if ties != "input":
        rows = _by_falling_score(run, run_codes, rows, run_docs, ties)
    in_place = len(rows) == len(run.values) and ascends(rows)
    if not in_place:
        found = found[rows]

    values, pool = qrels.values, qrels.values[judged_rows]
    pool_kept = pool >= 0
    pool_offsets = offsets_of(pool_kept, judged_offsets)
    is_judged = found >= 0
    relevance = np.append(values, values.dtype.type(0))[found]  # of what is not found the last one
    is_judged &= relevance >= 0
    intents: dict[str, Any] = {}
    if qrels.intents is not None:
        intents = {
            "intents": qrels.intents.take(found),
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


Twin = tuple[int, int, int]  # a query, and two rows that are the same document of it, in order


def _judged_rows(
    judged_codes: Array, judged_docs: pa.Array, run_codes: Array, run_docs: pa.Array, n: int
) -> tuple[Int64, Twin | None]:
    """The judged row of each row of the run, or -1; and the first judged document that is there twice.

    Rows of codes from `n` on are of no query.
    """
    import pyarrow.compute as pc

    coded = judged_docs.dictionary_encode()
    width = len(coded.dictionary) + 1
    keys = judged_codes * width + array_of(coded.indices)
    order = np.argsort(keys, kind="stable") if (keys[1:] < keys[:-1]).any() else np.arange(len(keys))
    keys = keys[order]
    twin = _first_twin(judged_codes, order, keys, n)
    # most documents of a run are judged for no query, and this table is small
    places = array_of(pc.index_in(run_docs, coded.dictionary), width - 1)
    rows = np.flatnonzero((places < width - 1) & (run_codes < n))
    wanted = run_codes[rows] * width + places[rows]
    at = np.searchsorted(keys, wanted)
    meets = np.append(keys, -1)[at] == wanted
    found = np.full(len(run_codes), -1)
    found[rows[meets]] = order[at[meets]]
    return found, twin


def twin_in(codes: Array, docs: pa.Array, n: int) -> Twin | None:
    """The first document that a query has twice: hashes suggest it, and the ids say it."""
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
    """The twin that comes first: of the first query, then the one whose second row is the first.

    `order` has equal documents side by side, each with its rows in order; their `keys` are equal, too.
    """
    again = np.flatnonzero((keys[1:] == keys[:-1]) & (codes[order[1:]] < n))
    if not len(again):
        return None
    first = again[np.lexsort((order[again + 1], codes[order[again]]))[0]]
    return int(codes[order[first]]), int(order[first]), int(order[first + 1])


def _refuse_twins(qrels: Side, run: Side, judged: Twin | None, returned: Twin | None) -> None:
    """Raise for a document that is there twice: that of the first query, judgments before the run."""
    if judged is not None and (returned is None or judged[0] <= returned[0]):
        raise duplicate(qrels, *judged[1:])
    if returned is not None:
        raise duplicate(run, *returned[1:])


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


def _by_falling_score(run: Side, codes: Array, rows: Array, docs: pa.Array, ties: TieOrder) -> Array:
    """Rows of each query in order of descending score; those of equal score by their documents' ids."""
    import pyarrow.compute as pc

    values, queries = run.values[rows], codes[rows]
    if ((queries[1:] == queries[:-1]) & (values[1:] > values[:-1])).any():
        # equal ones in any order, which took a third of the time of a stable sort
        order = np.argsort(falling_keys(values))
        order = order[group(queries[order], int(queries[-1]) + 1)[1]]
        rows, values, queries = rows[order], values[order], queries[order]
    is_equal = np.append(False, (queries[1:] == queries[:-1]) & (values[1:] == values[:-1]))
    tied = np.flatnonzero(is_equal | np.append(is_equal[1:], False))
    if len(tied):
        # Arrow sorts each group of ties by itself: by the places of all ids it took six times as long
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
    """Ids of all columns as int64 or uint64, or as large_binary, so that equal ids have equal bytes.

    A number in one is the same id as its text in another. A column without ids has no type of its own.
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
    """Offsets and rows of the codes below `n_codes`; rows of other codes are left out."""
    if not len(codes) or (codes[1:] >= codes[:-1]).all():
        offsets = np.searchsorted(codes, np.arange(n_codes + 1)).astype(np.int64)
        return offsets, np.arange(offsets[-1], dtype=np.int64)
    codes = read_only(codes.astype(np.int64, copy=False))
    offsets, rows = dispatch.run("rows.rows_by_code", len(codes), codes, n_codes + 1)
    return offsets[:-1], rows[: offsets[-2]]


def ascends(rows: Array) -> bool:
    return not len(rows) or bool(rows[0] == 0 and rows[-1] == len(rows) - 1 and (rows[1:] > rows[:-1]).all())


# ---- whether ids meet ----


def _common_queries(qrels: Side, run: Side, codes: Array, missing: Missing) -> Int64:
    """The queries of both; `codes` says for each query of the run which judged one it is. Refuses sides
    without one, and warns if they have few.
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
    """Refuse sides whose queries have no document in common, and warn if hardly any has one."""
    offsets, is_judged = fields["offsets"], fields["is_judged"]
    met = is_judged | (fields["relevance"] < 0)  # also unjudged documents of the pool
    has_met = np.diff(offsets_of(met, offsets)) > 0
    returned = np.flatnonzero(np.diff(offsets))
    lacking = returned[~has_met[returned]]
    found = len(returned) - len(lacking)
    if not len(lacking) or found >= max(1, _LEAST_FOUND * len(returned)):
        return
    with_judgments = lacking[np.isin(lacking, qrels.codes)]
    query = int([*with_judgments[:1], *lacking[:1]][0])
    there = sample(qrels.docs.take(column_of(np.flatnonzero(qrels.codes == query)))) or "none"
    here = sample(fields["doc_ids"][int(offsets[query]) : int(offsets[query + 1])])
    of = f"documents of query {shown(qrels.queries[query])}"
    if not found:
        raise _nothing_in_common(qrels, run, "document", f"{of} are {there}", here)
    warn(
        f"of {count_of(len(returned), 'query')} of {run} only {found:,} have a document "
        f"that {qrels.name} judges: {of} are {there} there, {here} here. "
        "If that is not meant, compare how ids are written."
    )


def _nothing_in_common(qrels: Side, run: str, of: str, there: str, here: str) -> InputError:
    return InputError(
        f"{qrels.name} and {run} have no {of} in common: {there} there, {here} here. "
        "Compare how ids are written."
    )


def sample(ids: pa.Array) -> str:
    """The first ids, as a message has them."""
    return ", ".join(map(shown, ids[:_SAMPLE])) + (" ..." if len(ids) > _SAMPLE else "")
