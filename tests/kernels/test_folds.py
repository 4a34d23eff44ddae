"""Measures of binary relevance, cascades and judgments: against the oracle, by identities, and where ties decide."""

import math

import numpy as np
import oracle
import pytest
from variants import TIES, all_asked, measure_of, tables

import fastndcg as fn

pytestmark = pytest.mark.compiled


def check(table, asked, relative=1e-12):
    measures = [measure_of(one.name, dict(one.parameters), one.cutoff) for one in asked]
    scores = fn.evaluate(table.rankings(), measures)
    queries = table.queries()
    for one, measure in zip(asked, measures, strict=True):
        got, wanted = scores[measure], np.array(one.expected(table))
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(
                ~((np.abs(got - wanted) <= relative * np.abs(wanted)) | (np.isnan(got) & np.isnan(wanted)))
            )
        assert not len(wrong), (
            f"{measure}: got {got[wrong[0]]!r}, the oracle has {wanted[wrong[0]]!r} for {queries[wrong[0]]}"
        )


# ---- against the oracle ----


@pytest.mark.pure
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("layout", ["bare", "flagged", "pooled"])
def test_oracle(layout, ties):
    check(tables(1, 25)[layout], all_asked(ties))


@pytest.mark.pure
@pytest.mark.parametrize("layout", ["bare", "flagged", "pooled"])
def test_oracle_continuous_grades(layout):
    """Grades without levels: a fraction, and grades too far apart for a table of bytes."""
    table = tables(2, 20, grades=(0, 0, 0.5, 1, 2.5, 4), dtype="float64")[layout]
    for ties in TIES:
        check(table, all_asked(ties))


@pytest.mark.pure
@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_oracle_negative_grades(dtype):
    """A negative grade is not relevant; for infAP it is an unjudged document of the pool."""
    grades = (-2, -1, 0, 0, 1, 2) if dtype == "int8" else (-2, -1, 0, 0.5, 1, 2)
    asked = [one for ties in TIES for one in all_asked(ties) if one.name not in ("nDCG", "DCG", "CG", "IDCG")]
    for table in tables(3, 20, grades=grades, dtype=dtype).values():
        check(table, [one for one in asked if one.suits(table)])


def test_bounds_are_the_least_and_greatest_of_all_orders():
    """No sampled pools here: there, infAP rewards pooled documents, and its worst order need not be the least."""
    for table in tables(4, 25).values():
        for one in (one for one in all_asked("average") if one.name != "NumRel"):
            words = {name: value for name, value in one.parameters if name != "ties"}
            of_found = words.get("denominator") == "hits" or one.name == "AUC"
            if "score_above" in words or (of_found and one.cutoff):
                continue  # scores of the orders are other ones; and a document less in k may raise the value
            measure = measure_of(one.name, words, one.cutoff)
            scores = fn.evaluate(
                table.rankings(), [measure(ties="worst"), measure, measure(ties="best")]
            ).values
            for query, (low, expected, high) in zip(table.queries(), scores.T.tolist(), strict=True):
                inputs = [
                    oracle.Query(
                        [query.grades[i] for i in order],
                        [-rank for rank in range(len(order))],
                        None if query.is_judged is None else [query.is_judged[i] for i in order],
                        query.judged_grades(),
                    )
                    for order in oracle.orders(query.scores)
                ]
                values = [
                    oracle.score(one.name, order, one.cutoff, **words, ties="input") for order in inputs[:720]
                ]
                if len(inputs) <= 720 and not math.isnan(low):
                    assert low == pytest.approx(min(values), rel=1e-12), (measure, query)
                    assert high == pytest.approx(max(values), rel=1e-12), (measure, query)
                    assert low <= expected + 1e-15 * abs(expected) <= high + 3e-15 * abs(high), (
                        measure,
                        query,
                    )
