"""Measures of several intents: builds their tables, and runs their driver.

For one intent the value of a ranking is a sum over ranks, as for other measures. A measure adds up or
averages these sums over the intents that have a relevant document, as ndeval does. It divides the total by
that of perfect documents or of the greedy ideal ranking, or each sum by the ideal of its intent.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import (
    Float64,
    Int64,
    codes_from,
    falling_keys,
    offsets_from,
    offsets_of,
    read_only,
)
from fastndcg.common.arrow_types import array_of, decode
from fastndcg.common.lazy import pa
from fastndcg.common.threads import in_threads
from fastndcg.errors import InputError, MeasureError
from fastndcg.kernels import intents as kernels
from fastndcg.kernels.compile import dispatch
from fastndcg.kernels.intents import IntentDocuments, IntentRows
from fastndcg.kernels.schema import GAIN, STOP
from fastndcg.measures.parameters import Function
from fastndcg.scoring import launch, plan
from fastndcg.scoring.discount_tables import (
    MOST_PERFECT,
    check_discount,
    discount_table,
    kernel_cutoff,
    ranks_discounted,
)
from fastndcg.scoring.gain_values import (
    GainFunction,
    check_complete,
    check_sum,
    code_grades,
    gain_function_of,
    gain_of,
)

if TYPE_CHECKING:
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.tables.intents import IntentGrades

_PART = 20_000  # entries above 0 for each further thread
_OVER = {"greedy": kernels.OF_GREEDY, "each ideal": kernels.OF_EACH_IDEAL}


def values(measures: tuple[Measure, ...], rankings: Rankings, threads: int | None) -> Float64:
    """Values of measures of several intents, (n_measures, n_queries); NaN where a query has no value.

    Raises `InputError` for rankings without intents and for grades for which a measure has no gain,
    `MeasureError` where a measure lacks a discount for some ranks.
    """
    if rankings.intents is None:
        raise InputError(
            f"{measures[0]} needs a grade of each document for each intent of its query, "
            "which these rankings lack. Read judgments of intents and a run, as in "
            "read_trec(qrels=..., run=..., intents=True), or name a list column, as in "
            'intents="grades".'
        )
    for measure in measures:
        check_complete(measure)
        if measure.params.get("max_rel") is not None and measure.rel != 1:
            raise MeasureError(
                f"{measure} takes grades as they are, because of max_rel, "
                f"and none from {measure.rel:g} on alike, as rel says; leave one of the two out"
            )
    out = np.empty((len(measures), rankings.n_queries))
    drops = [measure.params.get("judged_only", False) for measure in measures]
    for condensed in (False, True):
        chosen = [row for row, of_measure in enumerate(drops) if of_measure is condensed]
        if chosen:
            out[chosen] = _score(tuple(measures[row] for row in chosen), rankings, condensed, threads)
    return out


def _score(
    measures: tuple[Measure, ...], rankings: Rankings, condensed: bool, threads: int | None
) -> Float64:
    functions = list(dict.fromkeys(_gain_function(measure) for measure in measures))
    scored, keys = _scored_documents(rankings, condensed)
    pool_offsets, judged_intents, ordered = pool(rankings)
    sides = [scored] if judged_intents is scored[1] else [scored, (pool_offsets, judged_intents)]
    coded = [code_grades(grades.grades) for _, grades in sides]
    longest = max(int(np.diff(offsets).max(initial=1)) for offsets, _ in sides)
    terms = max(int(np.diff(grades.offsets[offsets]).max(initial=1)) for offsets, grades in sides)
    occurring = np.unique(np.concatenate([distinct for distinct, _ in coded])).tolist()
    for measure in measures:
        _check(measure, longest, terms, occurring)
    both = [_documents(*side, *codes, functions) for side, codes in zip(sides, coded, strict=True)]
    documents, judged = both[0], both[-1]
    chances = map(read_only, rankings.intent_probabilities or (np.empty(0, np.int64), np.empty(0)))
    table = _rows(measures, functions, longest)
    out = np.empty((len(measures), rankings.n_queries))
    rest = (keys, documents, judged, ordered, *chances, table, out)

    parts, size = _parts(documents, judged, launch.threads_of(threads)), rankings.n_docs * len(measures)

    def score(part: tuple[int, int]) -> None:
        dispatch.run("intents.score_intents", size / len(parts), *part, *rest, job=size)

    for _ in in_threads(score, parts):
        pass
    return out


def _parts(documents: IntentDocuments, judged: IntentDocuments, threads: int) -> list[tuple[int, int]]:
    """Return parts of consecutive queries with about equally many entries, at most one per thread."""
    work: Int64 = np.zeros(1, np.int64)
    for side in (documents, judged):
        work = work + side.entries[side.offsets] + side.offsets
    n_queries = len(work) - 1
    n_parts = max(1, min(threads, int(work[-1]) // _PART, n_queries))
    cuts = np.searchsorted(work, np.arange(1, n_parts) * (work[-1] / n_parts))
    return list(pairwise(np.unique([0, *cuts, n_queries]).tolist())) or [(0, 0)]


# ---- documents ----


def _scored_documents(rankings: Rankings, condensed: bool) -> tuple[tuple[Int64, IntentGrades], Int64]:
    """Offsets and intent grades of the scored documents, and keys that rise as scores fall."""
    intents, offsets, judged = rankings.intents, rankings.offsets, rankings.is_judged
    keys = falling_keys(rankings.scores)
    if judged is None or intents is None:
        return (offsets, intents), read_only(keys)  # type: ignore[return-value]
    if condensed:
        rows = np.flatnonzero(judged)
        return (offsets_of(judged, offsets), intents.take(rows)), read_only(keys[rows])
    return (offsets, intents.take(np.where(judged, np.arange(len(judged)), -1))), read_only(keys)


def pool(rankings: Rankings) -> tuple[Int64, IntentGrades, bool]:
    """Offsets and intent grades of the judged documents, and whether their order decides between equal gains.

    Without a pool they are the scored documents: by descending document id, as in ndeval, or in arbitrary
    order if there are no ids.
    """
    intents, judged = rankings.intents, rankings.is_judged
    if rankings.judged is not None and rankings.judged_intents is not None:
        return rankings.judged.offsets, rankings.judged_intents, True
    rows = np.arange(rankings.n_docs) if judged is None else np.flatnonzero(judged)
    offsets = rankings.offsets if judged is None else offsets_of(judged, rankings.offsets)
    if rankings.doc_ids is not None:
        import pyarrow.compute as pc

        query = codes_from(offsets)
        ids = decode(rankings.doc_ids.take(pa.array(rows)))
        if not pa.types.is_integer(ids.type):
            ids = ids.cast(pa.large_binary())
        order = pc.sort_indices(
            pa.table({"query": query, "id": ids}), sort_keys=[("query", "ascending"), ("id", "descending")]
        )
        rows = rows[array_of(order)]
    elif judged is None:
        return offsets, intents, False  # type: ignore[return-value]
    return offsets, intents.take(rows), rankings.doc_ids is not None  # type: ignore[union-attr]


def _documents(
    offsets: Int64,
    intents: IntentGrades,
    distinct: npt.NDArray[Any],
    places: npt.NDArray[Any],
    functions: list[tuple[GainFunction, float]],
) -> IntentDocuments:
    """Return documents with only their gains above 0, a small part of a matrix of grades."""
    table = np.array(
        [[gain_of(gain, grade) * scale for grade in distinct.tolist()] for gain, scale in functions]
    ).reshape(len(functions), len(distinct))
    numbers, entries = intents.numbers, intents.offsets
    kept = (table != 0).any(axis=0)[places]
    if not kept.all():
        places, numbers = places[kept], numbers[kept]
        entries = offsets_from(kept)[entries]
    gains = np.ascontiguousarray(table[:, places])
    return IntentDocuments(offsets, *map(read_only, (entries, numbers, gains)))


# ---- tables ----


def _gain_function(measure: Measure) -> tuple[GainFunction, float]:
    """The gain of a grade to an intent (its gain, or the probability to satisfy it), and a factor."""
    kind, params = measure.definition.gain, measure.params
    if kind == "novel":
        return GainFunction("relevant", measure.rel), measure.alpha or 1.0
    if kind == "first of intent":
        return GainFunction("relevant", measure.rel), 1.0
    if kind == "intent stop":
        if params["max_rel"] is None:
            return GainFunction("relevant", measure.rel), 0.5
        return GainFunction("stop", None, None, 0.0, measure.max_rel), 1.0
    return gain_function_of(measure), 1.0


def _check(measure: Measure, longest: int, terms: int, occurring: list[float]) -> None:
    """Raise for grades for which the measure has no gain or is not defined."""
    function, _ = _gain_function(measure)
    for grade in occurring:
        gain = gain_of(function, grade)
        if function.gain == "stop" and gain > 1:
            raise InputError(
                f"{measure} is not defined for grade {grade:g} of an intent: "
                f"the scale ends at {function.top:g}. "
                f"Name the scale, as in {measure.name}(max_rel={grade:g})."
            )
        if not (gain >= 0 and math.isfinite(gain)):
            raise InputError(
                f"{measure} is not defined for the gain {gain:g} of grade {grade:g} of an intent; "
                f"expected finite gains from 0, as in {measure.name}(rel=1)"
            )
        check_sum(measure, gain, f"grade {grade:g} of an intent", longest, terms)


def _rows(
    measures: tuple[Measure, ...], functions: list[tuple[GainFunction, float]], longest: int
) -> IntentRows:
    discounts: list[Any] = []
    rows, perfect, scale = [], [], []
    ranks = longest
    for out, measure in enumerate(measures):
        definition, params = measure.definition, measure.params
        divisor = _OVER.get(definition.divisor, kernels.MEAN_OF_INTENTS)
        if definition.divisor == "perfect" and params["denominator"] == "perfect":
            divisor = kernels.OF_PERFECT
            if measure.cutoff is not None and measure.cutoff > MOST_PERFECT:
                raise MeasureError(
                    f"{measure} is divided by the sum over {measure.cutoff} perfect documents; "
                    f"expected a cutoff of at most {MOST_PERFECT}"
                )
            ranks = max(ranks, measure.cutoff or 0)
        elif definition.gain == "novel" and divisor == kernels.MEAN_OF_INTENTS:
            divisor = kernels.TOTAL_OF_INTENTS
        check_discount(measure, longest)
        discount = params.get("discount", definition.discount)
        if discount not in discounts:
            discounts.append(discount)
        function, factor = _gain_function(measure)
        decaying = definition.term == "stop" and params.get("alpha") != 0
        best = gain_of(function, function.top) if function.gain == "stop" else factor
        rows.append(
            (
                functions.index((function, factor)),
                STOP if decaying else GAIN,
                plan.ties_of(measure),
                discounts.index(discount),
                kernel_cutoff(measure),
                divisor,
                out,
                int(definition.gain in ("intent stop", "parameter")),
                0,
            )
        )
        perfect.append(best)
        scale.append(1.0 / factor if divisor == kernels.TOTAL_OF_INTENTS else 1.0)
    table = np.array(rows, np.int64)
    for row in table:  # one greedy ideal, as deep as the greatest cutoff, serves all cutoffs
        alike = (table[:, : kernels.INTENT_TERM + 1] == row[: kernels.INTENT_TERM + 1]).all(axis=1)
        alike &= table[:, kernels.WEIGHED] == row[kernels.WEIGHED]
        row[kernels.DEPTH] = table[alike, kernels.INTENT_CUTOFF].max()
    table_of_discounts = np.zeros((len(discounts), ranks))
    for place, discount in enumerate(discounts):
        width = ranks
        # a user's function is called only for ranks that its measures need
        if isinstance(discount, Function):
            with_it = [measure for measure in measures if measure.params.get("discount") == discount]
            width = max(ranks_discounted(measure, longest) for measure in with_it)
        table_of_discounts[place, :width] = discount_table(discount, width)
    order = np.lexsort((table[:, kernels.WEIGHED], table[:, kernels.INTENT_TERM], table[:, 0]))
    return IntentRows(
        read_only(table[order]),
        read_only(np.array(perfect)[order]),
        read_only(np.array(scale)[order]),
        read_only(table_of_discounts),
    )
