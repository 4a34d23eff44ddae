"""The columns of `Rankings`: cast to the arrays that it holds, and checked, each once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import OR_UNJUDGED, arrow_column, parts_of, read_only, split_unjudged
from fastndcg.common.arrow_types import array_of, combine, decode
from fastndcg.common.table import quoted
from fastndcg.errors import Argument, InputError, Step, check_choice, count_of, warn
from fastndcg.rankings.blame import BY_ROW, Blame
from fastndcg.rankings.casts import (
    JudgedPool,
    cast_column,
    cast_flags,
    cast_offsets,
    cast_pool,
    cast_queries,
    cast_relevance,
    cast_scores,
    cast_weight,
    check_end,
    plain_numbers,
)
from fastndcg.rankings.intents import IntentGrades, IntentProbabilities, intent_grades, probabilities

if TYPE_CHECKING:
    from fastndcg.common.later import pa
    from fastndcg.typing import NaN, Unjudged

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., Any])

UNJUDGED = (". Drop those rows", *OR_UNJUDGED, ".")
OR_LAST = (". Drop those rows", Step(" or pass ", Argument("nan", "last")), ".")

_TOGETHER = 1 << 16  # rows whose document ids are compared together: their hash table stays in the cache


def cast_columns(
    offsets: npt.ArrayLike,
    relevance: npt.ArrayLike,
    scores: npt.ArrayLike,
    blame: Blame = BY_ROW,
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
    """The fields of `Rankings` from what `Rankings.from_offsets` takes, cast and checked.

    `blame` says how documents are called, if otherwise than by row.
    """
    ends = cast_offsets("offsets", offsets)
    grades = cast_relevance("relevance", relevance, unjudged)
    values = cast_scores(scores, ascending=ascending)
    n_queries, n_docs = len(ends) - 1, len(grades)
    if n_docs != len(values):
        raise InputError(
            f"relevance has {count_of(n_docs, 'value')} and scores {len(values):,}; "
            "give both for each document"
        )
    check_end("offsets", ends, n_docs, "relevance")
    flags = None if is_judged is None else cast_flags(is_judged, n_docs)
    if unjudged == "null":
        grades, flags = split_unjudged(grades, flags)
    queries = cast_queries(queries, n_queries)
    if query_ids is None and queries is not None and "query_id" in queries.column_names:
        query_ids = queries["query_id"]
    ids = None if query_ids is None else arrow_column("query_ids", query_ids, n_queries)
    blame = blame._replace(offsets=ends, query_ids=ids)
    fields = checked_columns(
        ends,
        grades,
        values,
        blame,
        query_ids=ids,
        queries=queries,
        doc_ids=None if doc_ids is None else arrow_column("doc_ids", doc_ids, n_docs),
        is_judged=flags,
        judged=None if judged is None else cast_pool(judged, n_queries),
        weight=weight,
        nan=nan,
    )
    if intents is not None or judged_intents is not None or intent_probabilities is not None:
        fields |= checked_intents(
            n_docs,
            fields["judged"],
            blame,
            intents=intents,
            judged_intents=judged_intents,
            intent_probabilities=intent_probabilities,
        )
    if propensity is not None:
        fields["propensity"] = cast_propensity(propensity, n_docs, blame)
    return fields


def with_columns(function: Function) -> Function:
    """Show the `**columns` of a constructor as keywords in `help` and in notebooks."""
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    more = [
        each
        for each in inspect.signature(cast_columns).parameters.values()
        if each.kind is each.KEYWORD_ONLY and each.name not in signature.parameters
    ]
    function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    return function


def checked_columns(
    offsets: Int64,
    relevance: Array,
    scores: Array,
    blame: Blame,
    *,
    judged: JudgedPool | None = None,
    is_judged: Flags | None = None,
    doc_ids: pa.Array | pa.ChunkedArray | None = None,
    query_ids: pa.Array | pa.ChunkedArray | None = None,
    query_name: str = "query_id",
    queries: Any = None,
    weight: npt.ArrayLike | None = None,
    nan: NaN = "refuse",
    **of_documents: Any,
) -> dict[str, Any]:
    """The fields of `Rankings` from columns of the right types and lengths, whose values are checked."""
    n_queries = len(offsets) - 1
    kept = cast_queries(queries, n_queries)
    weight = None if weight is None else cast_weight(weight, n_queries, blame.name_of)
    relevance, scores = plain_numbers(relevance), checked_scores(plain_numbers(scores), nan, blame)
    check_grades(relevance, judged, blame)
    if judged is not None:
        check_pool(relevance, judged, is_judged, blame)
    if doc_ids is not None:
        check_doc_ids(doc_ids, blame)
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
        "_kept": kept,
        "_first_row": blame.numbers if isinstance(blame.numbers, int) and blame.grouped is None else None,
        **dict.fromkeys(("intents", "judged_intents", "intent_probabilities", "propensity")),
        **of_documents,
    }


def checked_scores(scores: Array, nan: NaN, blame: Blame) -> Array:
    """The scores, NaN as the lowest one where `nan` is "last"."""
    check_choice("nan", nan, ("refuse", "last"))
    if scores.dtype.kind != "f" or not len(scores) or not np.isnan(scores.min()):
        return scores
    missing = np.isnan(scores)
    if nan == "last":
        return read_only(np.where(missing, scores.dtype.type(-np.inf), scores))
    raise InputError(
        f"{blame.names[1]} has {count_of(int(missing.sum()), 'NaN value')}",
        blame.at(blame.first(missing), first=True),
        *OR_LAST,
    )


def check_grades(relevance: Array, judged: JudgedPool | None, blame: Blame) -> None:
    """Raise `InputError` for a grade that is not finite, of a document or of the pool."""
    pool = {} if judged is None else {"judged relevance": judged.relevance}
    for name, values in {blame.names[0]: relevance, **pool}.items():
        if (
            values.dtype.kind != "f"
            or not len(values)
            or (np.isfinite(values.min()) and np.isfinite(values.max()))
        ):
            continue
        bad = ~np.isfinite(values)
        only_nan = bool(np.isnan(values[bad]).all())
        kind = "NaN value" if only_nan else "infinite or NaN value"
        raise InputError(
            f"{name} has {count_of(int(bad.sum()), kind)}",
            f"; the first is at row {int(np.argmax(bad))} of the pool"
            if name in pool
            else blame.at(blame.first(bad), first=True),
            *(UNJUDGED if only_nan and name not in pool else (". Drop those rows.",)),
        )


def check_pool(relevance: Array, judged: JudgedPool, is_judged: Flags | None, blame: Blame) -> None:
    """Warn if a pool has fewer relevant documents than were scored: R, AP and nDCG may exceed 1."""
    found = relevance > 0 if is_judged is None else (relevance > 0) & is_judged
    returned = _counts_of(found, blame.offsets)
    pooled = _counts_of(judged.relevance > 0, judged.offsets)
    lacking = np.flatnonzero(returned > pooled)
    if len(lacking):
        query = int(lacking[0])
        warn(
            f"judged lacks documents that were scored, in {count_of(len(lacking), 'query')}: "
            f"query {blame.name_of(query)} has {count_of(int(returned[query]), 'scored document')} with "
            f"a grade above 0 and {pooled[query]} in its pool, so that R, AP and nDCG may pass 1. "
            "The pool holds all judged documents of a query, returned or not: add these to it, or say ",
            Argument("is_judged", False),
            " of them.",
        )


def check_doc_ids(doc_ids: pa.Array | pa.ChunkedArray, blame: Blame) -> None:
    """Raise `InputError` for a document that occurs twice in a query; null is not an id."""
    offsets = blame.offsets
    for part in parts_of(np.diff(offsets), _TOGETHER):
        first, last = part.start, part.stop
        start, stop = int(offsets[first]), int(offsets[last])
        coded = combine(decode(doc_ids[start:stop]).dictionary_encode())
        codes = array_of(coded.indices, -1)
        query = np.repeat(np.arange(last - first), np.diff(offsets[first : last + 1]))
        keys = query * len(coded.dictionary) + codes
        keys = np.sort(keys[codes >= 0] if coded.indices.null_count else keys)
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if len(twice):
            of_query, code = divmod(int(keys[twice[0]]), len(coded.dictionary))
            name = coded.dictionary[code].as_py()
            raise InputError(
                f"document {quoted(name)} of query {blame.name_of(first + of_query)} is there twice. "
                "A document has one entry for a query: drop one of the two."
            )


def checked_intents(
    n_docs: int,
    judged: JudgedPool | None,
    blame: Blame,
    *,
    intents: Any,
    judged_intents: Any,
    intent_probabilities: Any,
) -> dict[str, Any]:
    """The fields of intents, of which at least one is given."""
    given = {"judged_intents": judged_intents, "intent_probabilities": intent_probabilities}
    if intents is None:
        for name, value in given.items():
            if value is not None:
                raise InputError(f"{name} is given without intents; give those of the scored documents too")
        return {"intents": None, **given}
    fields: dict[str, Any] = {"intents": intent_grades("intents", intents, n_docs), **given}
    if (judged_intents is None) != (judged is None):
        here, missing = (
            ("judged", "judged_intents") if judged_intents is None else ("judged_intents", "judged")
        )
        raise InputError(
            f"{here} is given without {missing}; with intents, the pool has a grade and a list "
            "of intent grades for each document"
        )
    if judged is not None:
        fields["judged_intents"] = intent_grades("judged_intents", judged_intents, len(judged.relevance))
    if intent_probabilities is not None:
        chances = probabilities(
            "intent_probabilities", intent_probabilities, len(blame.offsets) - 1, blame.name_of
        )
        fields["intent_probabilities"] = chances
        _check_probabilities(chances, blame.offsets, fields["intents"], blame)
        if judged is not None:
            _check_probabilities(chances, judged.offsets, fields["judged_intents"], blame)
    return fields


def _check_probabilities(
    chances: IntentProbabilities, offsets: Int64, intents: IntentGrades, blame: Blame
) -> None:
    """Raise `InputError` for an intent of these documents that has no probability."""
    entries = intents.offsets[offsets]
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(entries))
    beyond = intents.numbers >= np.diff(chances.offsets)[query]
    if beyond.any():
        entry = int(np.argmax(beyond))
        known = int(np.diff(chances.offsets)[query[entry]])
        raise InputError(
            f"intent_probabilities has {known} for query {blame.name_of(int(query[entry]))}, "
            f"which has an intent number {intents.numbers[entry]}; "
            "give one for each intent, numbered from 0"
        )


def cast_propensity(values: npt.ArrayLike, n_docs: int, blame: Blame) -> npt.NDArray[np.float64]:
    array = cast_column("propensity", values, "buif", "probabilities", n_docs, "document")
    return checked_propensity("propensity", np.ascontiguousarray(array, dtype=np.float64), blame)


def checked_propensity(name: str, propensity: Array, blame: Blame) -> Array:
    bad = ~((propensity > 0) & (propensity <= 1))
    if bad.any():
        first = blame.first(bad)
        raise InputError(
            f"{name} has {count_of(int(bad.sum()), 'value', 'not above 0 and up to 1')}; "
            f"the first is {propensity[first]}",
            blame.at(first),
            ". A propensity is the probability that the document was seen; give a small one, not 0, to "
            "what was hardly ever seen, and cut its weight with clip=.",
        )
    return read_only(propensity)


def _counts_of(chosen: npt.NDArray[np.bool_], offsets: Int64) -> Int64:
    """How many documents of each query are chosen."""
    return np.diff(np.searchsorted(np.flatnonzero(chosen), offsets))
