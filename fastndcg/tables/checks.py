"""Cast columns to the arrays of `Rankings`, and check each of them once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import (
    OR_UNJUDGED,
    Array,
    Flags,
    Int64,
    arrow_column,
    as_array,
    negate,
    parts_of,
    plain_numbers,
    read_only,
    split_unjudged,
)
from fastndcg.common.arrow_types import array_of, combine, decode, is_number, plain
from fastndcg.common.lazy import pa
from fastndcg.common.table import quoted
from fastndcg.errors import (
    InputError,
    InputTypeError,
    check_choice,
    check_length,
    count_of,
    warn,
)
from fastndcg.tables.intents import IntentGrades, intent_grades, probabilities
from fastndcg.tables.locations import BY_ROW, Locator

if TYPE_CHECKING:
    from fastndcg.typing import NaN, Unjudged

UNJUDGED = f". Drop those rows{OR_UNJUDGED}."


def or_last(ranks: str | None) -> str:
    """Return the next step for NaN scores, which mentions an unused column of ranks."""
    others = "" if ranks is None else f', or name the ranks of this data, as in rank="{ranks}"'
    return f'. Drop those rows{" or" if ranks is None else ","} pass nan="last"{others}.'


def warn_if_ranks_differ(table: pa.Table, ids: Sequence[str], score: str, ranks: str) -> None:
    """Warn if a column of ranks contradicts the scores in most of the first queries.

    Only documents with different scores and ranks are compared: ranks may start anywhere and have gaps.
    """
    import pyarrow.compute as pc

    first = table.slice(0, _LOOKED_AT)
    scores, places = (plain(first[name]) for name in (score, ranks))
    if not (is_number(scores.type) and is_number(places.type)):
        return
    codes = np.zeros(len(first), np.int64)
    for name in ids:
        coded = combine(decode(plain(first[name])).dictionary_encode())
        codes = codes * (len(coded.dictionary) + 1) + array_of(coded.indices, len(coded.dictionary))
    places, values = (
        np.where(array_of(pc.is_null(each)), np.nan, array_of(each, 0)) for each in (places, scores)
    )
    order = np.lexsort((places, codes))
    codes, places, values = codes[order], places[order], values[order]
    follows = (codes[1:] == codes[:-1]) & (places[1:] > places[:-1])
    differ = np.unique(codes[1:][follows & (values[1:] > values[:-1])])
    compared = np.unique(codes[1:][follows & (values[1:] != values[:-1])])
    if 2 * len(differ) > len(compared):
        warn(
            f'column "{ranks}" orders the documents of {len(differ):,} of the first '
            f'{count_of(len(compared), "query")} otherwise than column "{score}", which is taken; if the '
            f'ranks are meant, pass rank="{ranks}"'
        )


_LOOKED_AT = 1 << 16  # rows
_TOGETHER = 1 << 16  # rows whose document ids are hashed together: the table stays in the cache


class JudgedPool(NamedTuple):
    """Judged documents of query `q`, returned or not: `relevance[offsets[q]:offsets[q + 1]]`."""

    offsets: Int64
    relevance: Array


class Grades(NamedTuple):
    """Facts that kernels need about the grades of scored and of pooled documents."""

    lowest: float
    highest: float
    whole: bool  # every grade is an integer


def cast_columns(
    offsets: npt.ArrayLike,
    relevance: npt.ArrayLike,
    scores: npt.ArrayLike,
    locator: Locator = BY_ROW,
    *,
    judged: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    is_judged: npt.ArrayLike | None = None,
    doc_ids: Any = None,
    query_ids: Any = None,
    weight: npt.ArrayLike | None = None,
    queries: Any = None,
    nan: NaN = "refuse",
    ascending: bool = False,
    unjudged: Unjudged = "refuse",
    intents: Any = None,
    judged_intents: Any = None,
    intent_probabilities: Any = None,
    propensity: npt.ArrayLike | None = None,
) -> dict[str, Any]:
    """Return the fields of `Rankings` from the arguments of `Rankings.from_offsets`."""
    grades = cast_grades("relevance", relevance, unjudged)
    values = cast_scores(scores, ascending=ascending)
    n_docs, flags, pool = len(grades), None, None
    if n_docs != len(values):
        raise InputError(
            f"relevance has {count_of(n_docs, 'value')} and scores {len(values):,}; "
            "give both for each document"
        )
    ends = _cast_offsets("offsets", offsets, n_docs, "relevance")
    n_queries = len(ends) - 1
    if is_judged is not None:
        flags = _cast_column("is_judged", is_judged, np.bool_, "True and False", n_docs, "document")
    if unjudged == "null":
        grades, flags = split_unjudged(grades, flags)
    if queries is not None:
        queries = _cast_queries(queries, n_queries)
        if query_ids is None and "query_id" in queries.column_names:
            query_ids = queries["query_id"]
    ids = None if query_ids is None else arrow_column("query_ids", query_ids, n_queries)
    locator = locator._replace(offsets=ends, query_ids=ids)
    if doc_ids is not None:
        doc_ids = arrow_column("doc_ids", doc_ids, n_docs)
    if judged is not None:
        pool = _cast_pool(judged, n_queries)
    fields = checked_columns(
        ends,
        grades,
        values,
        locator,
        query_ids=ids,
        queries=queries,
        doc_ids=doc_ids,
        is_judged=flags,
        judged=pool,
        weight=weight,
        nan=nan,
    )
    of_intents = {
        "intents": intents,
        "judged_intents": judged_intents,
        "intent_probabilities": intent_probabilities,
    }
    if any(each is not None for each in of_intents.values()):
        fields |= _checked_intents(n_docs, pool, locator, of_intents)
    if propensity is not None:
        array = _cast_column("propensity", propensity, np.float64, "probabilities", n_docs, "document")
        fields["propensity"] = checked_propensity("propensity", array, locator)
    return fields


def cast_grades(name: str, values: npt.ArrayLike, unjudged: Unjudged = "refuse") -> Array:
    return _cast_numbers(name, as_array(name, values, unjudged), "integer or float grades")


def cast_scores(values: npt.ArrayLike, *, ascending: bool) -> Array:
    check_choice("ascending", ascending, (True, False))
    scores = _cast_numbers("scores", as_array("scores", values), "integer or float scores")
    return read_only(negate(scores)) if ascending else scores


def _cast_numbers(name: str, array: Array, wanted: str) -> Array:
    if not len(array) and array.dtype.kind in "OU":
        return read_only(np.empty(0, np.float64))
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:
        raise _kind_error(name, array, wanted)
    return plain_numbers(array)


def _kind_error(name: str, array: Array, wanted: str) -> InputTypeError:
    shown = f", beginning with {array[0]!r}" if len(array) else ""
    return InputTypeError(f"{name} is of dtype {array.dtype}{shown}; expected {wanted}")


def cast_integers(name: str, values: npt.ArrayLike) -> Int64:
    array = as_array(name, values)
    if array.dtype.kind not in "ui" and (len(array) or array.dtype.kind != "f"):
        raise _kind_error(name, array, "integers")
    if array.dtype == np.uint64 and len(array) and array.max() > np.iinfo(np.int64).max:
        raise InputError(f"{name} holds {array.max()}; expected row numbers below 2**63")
    return read_only(np.ascontiguousarray(array, dtype=np.int64))


def _cast_offsets(name: str, values: npt.ArrayLike, rows: int, of: str) -> Int64:
    array = cast_integers(name, values)
    if not len(array) or array[0] != 0:
        got = f"begins with {array[0]}" if len(array) else "is empty"
        raise InputError(f"{name} {got}; expected 0 first, then the end of each query")
    falls = array[1:] < array[:-1]
    if falls.any():
        first = int(np.argmax(falls))
        raise InputError(
            f"{name} does not ascend: {array[first]} then {array[first + 1]} at position {first + 1}. "
            "Each entry is the end of a query."
        )
    if array[-1] != rows:
        raise InputError(
            f"{name} ends at {array[-1]:,}, but {of} has {count_of(rows, 'value')}; "
            "the last offset is the number of documents"
        )
    return array


def _cast_pool(judged: tuple[npt.ArrayLike, npt.ArrayLike], n_queries: int) -> JudgedPool:
    try:
        pool_offsets, pool_grades = judged
    except (TypeError, ValueError):
        raise InputTypeError(
            f"judged is a {type(judged).__name__}; expected the pair (offsets, "
            "relevance) of all judged documents"
        ) from None
    grades = cast_grades("judged relevance", pool_grades)
    offsets = _cast_offsets("judged offsets", pool_offsets, len(grades), "judged relevance")
    if len(offsets) - 1 != n_queries:
        raise InputError(
            f"judged has {count_of(len(offsets) - 1, 'query')} and the rankings {n_queries:,}; "
            "give a pool for each query, which may be empty"
        )
    return JudgedPool(offsets, grades)


def _cast_column(name: str, values: npt.ArrayLike, dtype: type, wanted: str, rows: int, of: str) -> Array:
    """Cast an array with one value per query or document."""
    array = as_array(name, values)
    if array.dtype.kind not in ("b" if dtype is np.bool_ else "buif") and len(array):
        raise _kind_error(name, array, wanted)
    check_length(name, len(array), rows, of)
    return read_only(np.ascontiguousarray(array, dtype=dtype))


def _cast_queries(queries: Any, n_queries: int) -> pa.Table:
    try:
        table = queries if isinstance(queries, pa.Table) else pa.table(queries)
    except (TypeError, ValueError, pa.ArrowInvalid) as error:
        raise InputTypeError(f"queries is a {type(queries).__name__} that is not a table: {error}") from None
    if table.num_rows != n_queries:
        raise InputError(
            f"queries has {count_of(table.num_rows, 'row')} for {count_of(n_queries, 'query')}; "
            "give a row for each query"
        )
    # extension types are kept, such as the periods and intervals of pandas
    columns = [each if isinstance(each.type, pa.BaseExtensionType) else plain(each) for each in table.columns]
    return pa.table(columns, table.column_names)


# ---- columns of the right types, checked ----


def checked_columns(
    offsets: Int64,
    relevance: Array,
    scores: Array,
    locator: Locator,
    *,
    judged: JudgedPool | None = None,
    is_judged: Flags | None = None,
    doc_ids: pa.Array | pa.ChunkedArray | None = None,
    query_ids: pa.Array | pa.ChunkedArray | None = None,
    query_name: str = "query_id",
    queries: pa.Table | None = None,
    weight: npt.ArrayLike | None = None,
    nan: NaN = "refuse",
    asks_for_ids: bool = True,
    or_first: str = "",
    **of_documents: Any,
) -> dict[str, Any]:
    """Check the values of columns of the right types and lengths, and return the fields of `Rankings`.

    A document that appears twice in a query is an error, or a warning if the caller did not ask for ids;
    the message ends with `or_first`.
    """
    n_queries = len(offsets) - 1
    if weight is not None:
        weight = _cast_column("weight", weight, np.float64, "numbers", n_queries, "query")
        bad = ~(np.isfinite(weight) & (weight >= 0))
        if bad.any():
            first = int(np.argmax(bad))
            raise InputError(
                f"weight is {weight[first]} for query {locator.name_of(first)}; "
                "expected finite numbers from 0"
            )
    relevance, scores = plain_numbers(relevance), checked_scores(plain_numbers(scores), nan, locator)
    _check_grades(locator.names[0], relevance, locator)
    if judged is not None:
        _check_grades("judged relevance", judged.relevance, None)
        _check_pool(relevance, judged, is_judged, locator)
    if doc_ids is not None:
        _check_doc_ids(doc_ids, locator, or_first, to_warn=not asks_for_ids)
    return {
        "offsets": read_only(offsets),
        "relevance": relevance,
        "scores": scores,
        "judged": judged,
        "is_judged": None if is_judged is None else read_only(is_judged),
        "doc_ids": doc_ids,
        "weight": weight,
        "_query_ids": query_ids,
        "_query_name": query_name,
        "_kept": queries,
        "_rows": None,
        "_first_row": locator.numbers
        if isinstance(locator.numbers, int) and locator.grouped is None
        else None,
        **dict.fromkeys(("intents", "judged_intents", "intent_probabilities", "propensity")),
        **of_documents,
    }


def checked_scores(scores: Array, nan: NaN, locator: Locator) -> Array:
    """Return the scores; with nan="last", NaN becomes the lowest one."""
    check_choice("nan", nan, ("refuse", "last"))
    if scores.dtype.kind != "f" or not len(scores) or not np.isnan(scores.min()):
        return scores
    missing = np.isnan(scores)
    if nan == "last":
        return read_only(np.where(missing, scores.dtype.type(-np.inf), scores))
    raise InputError(
        f"{locator.names[1]} has {count_of(int(missing.sum()), 'NaN value')}"
        f"{locator.at(locator.first(missing), first=True)}{or_last(locator.ranks)}"
    )


def _check_grades(name: str, grades: Array, locator: Locator | None) -> None:
    """Raise `InputError` for a grade that is not finite; without `locator`, grades are those of the pool."""
    if grades.dtype.kind != "f" or not len(grades) or np.isfinite([grades.min(), grades.max()]).all():
        return
    bad = ~np.isfinite(grades)
    only_nan = bool(np.isnan(grades[bad]).all())
    kind = "NaN value" if only_nan else "infinite or NaN value"
    at = f"; the first is at row {int(np.argmax(bad))} of the pool"
    if locator:
        at = locator.at(locator.first(bad), first=True)
    step = UNJUDGED if only_nan and locator else ". Drop those rows."
    raise InputError(f"{name} has {count_of(int(bad.sum()), kind)}{at}{step}")


def _check_pool(relevance: Array, judged: JudgedPool, is_judged: Flags | None, locator: Locator) -> None:
    """Warn if a pool has fewer relevant documents than were scored, since R, AP and nDCG may exceed 1."""
    is_relevant = relevance > 0 if is_judged is None else (relevance > 0) & is_judged
    returned, pooled = (
        np.diff(np.searchsorted(np.flatnonzero(chosen), offsets))
        for chosen, offsets in ((is_relevant, locator.offsets), (judged.relevance > 0, judged.offsets))
    )
    lacking = np.flatnonzero(returned > pooled)
    if len(lacking):
        query = int(lacking[0])
        warn(
            f"judged lacks documents that were scored, in {count_of(len(lacking), 'query')}: "
            f"query {locator.name_of(query)} has {count_of(int(returned[query]), 'scored document')} with "
            f"a grade above 0 and {pooled[query]} in its pool, so that R, AP and nDCG may pass 1. "
            "The pool holds all judged documents of a query, returned or not: add these to it, or pass "
            "is_judged=False for them."
        )


def _check_doc_ids(
    doc_ids: pa.Array | pa.ChunkedArray, locator: Locator, or_first: str, *, to_warn: bool
) -> None:
    """Raise `InputError`, or warn, if a document appears twice in a query. Null is not an id."""
    offsets = locator.offsets
    for part in parts_of(offsets, _TOGETHER):
        coded = combine(
            decode(doc_ids[int(offsets[part.start]) : int(offsets[part.stop])]).dictionary_encode()
        )
        codes = array_of(coded.indices, -1)
        lengths = np.diff(offsets[part.start : part.stop + 1])
        keys = np.repeat(np.arange(len(lengths)), lengths) * len(coded.dictionary) + codes
        keys = np.sort(keys[codes >= 0] if coded.indices.null_count else keys)
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if len(twice):
            query, code = divmod(int(keys[twice[0]]), len(coded.dictionary))
            document = f"document {quoted(coded.dictionary[code].as_py())}"
            named = f"{document} of query {locator.name_of(part.start + query)} appears twice"
            if to_warn:
                warn(f"{named}, and both count. If that is not meant, drop one{or_first}.")
                return
            raise InputError(f"{named}. A document has one entry for a query: drop one of the two{or_first}.")


def _checked_intents(
    n_docs: int, judged: JudgedPool | None, locator: Locator, arguments: dict[str, Any]
) -> dict[str, Any]:
    """Return the fields of intents, of which the caller passed at least one."""
    if arguments["intents"] is None:
        name = next(name for name, value in arguments.items() if value is not None)
        raise InputError(f"{name} was passed without intents; also pass those of the scored documents")
    fields = arguments | {"intents": intent_grades("intents", arguments["intents"], n_docs)}
    if (arguments["judged_intents"] is None) != (judged is None):
        here, missing = ("judged_intents", "judged") if judged is None else ("judged", "judged_intents")
        raise InputError(
            f"{here} was passed without {missing}; with intents, the pool needs a grade and a list "
            "of intent grades for each document"
        )
    sides: list[tuple[Int64, IntentGrades]] = [(locator.offsets, fields["intents"])]
    if judged is not None:
        pooled = intent_grades("judged_intents", arguments["judged_intents"], len(judged.relevance))
        fields["judged_intents"] = pooled
        sides.append((judged.offsets, pooled))
    if arguments["intent_probabilities"] is None:
        return fields
    chances = probabilities(arguments["intent_probabilities"], len(locator.offsets) - 1, locator.name_of)
    known = np.diff(chances.offsets)
    for offsets, intents in sides:
        query = np.repeat(np.arange(len(known)), np.diff(intents.offsets[offsets]))
        beyond = intents.numbers >= known[query]
        if beyond.any():
            entry = int(np.argmax(beyond))
            raise InputError(
                f"intent_probabilities has {known[query[entry]]} for query "
                f"{locator.name_of(int(query[entry]))}, which has an intent number {intents.numbers[entry]}; "
                "give one for each intent, numbered from 0"
            )
    return fields | {"intent_probabilities": chances}


def checked_propensity(name: str, propensity: Array, locator: Locator) -> Array:
    bad = ~((propensity > 0) & (propensity <= 1))
    if bad.any():
        first = locator.first(bad)
        raise InputError(
            f"{name} has {count_of(int(bad.sum()), 'value', 'not above 0 and up to 1')}; "
            f"the first is {propensity[first]}{locator.at(first)}. "
            "A propensity is the probability that the document was seen; give a small one, not 0, to "
            "what was hardly ever seen, and cut its weight with clip=.",
        )
    return read_only(propensity)
