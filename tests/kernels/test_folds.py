"""Measures of binary relevance, cascades and judgments: against the oracle, by identities, and where ties decide."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracle
import pytest
from strategies import Asked, Ragged

import fastndcg as fn

TIES = ("average", "input", "worst", "best")
BINARY = ("AP", "RR", "P", "R", "F", "Rprec", "Success", "RBP", "SetP", "SetR", "SetF", "SetAP")
UNCUT = ("Rprec", "SetP", "SetR", "SetF", "SetAP", "Bpref", "infAP", "NumRel", "IPrec")
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in (*BINARY, "ERR", "Bpref", "infAP", "NumRel", "NumRet")),
    *((name, {"rel": 2}) for name in (*BINARY, "Bpref", "infAP", "NumRel", "NumRet")),
    *((name, {"judged_only": True}) for name in (*BINARY, "ERR", "SDCG", "NumRet")),
    *((name, {"unjudged": 1}) for name in (*BINARY, "ERR", "nDCG", "DCG", "IDCG", "CG", "NumRel")),
    *((name, {"empty": "nan"}) for name in (*BINARY, "ERR", "Bpref", "infAP", "Judged", "RBPresidual")),
    ("AP", {"denominator": "min(n_relevant, k)"}),
    ("F", {"beta": 0.5}),
    ("SetF", {"beta": 2.0}),
    ("SetP", {"relative": True}),
    ("RBP", {"p": 0.5}),
    ("RBPresidual", {}),
    ("RBPresidual", {"p": 0.95}),
    ("Judged", {}),
    ("ERR", {"max_rel": 5}),
    ("SDCG", {"max_rel": 4}),
    ("SDCG", {"max_rel": 3, "min_rel": 1}),
    ("SDCG", {"max_rel": 4, "discount": "reciprocal"}),
    ("nDCG", {"unjudged": 3, "gain": "exp2"}),
    ("nDCG", {"unjudged": 2, "ideal": "scored"}),
    *(("IPrec", {"recall": recall}) for recall in (0.0, 0.3, 0.5, 1.0)),
    ("IPrec", {"recall": 0.5, "rel": 2}),
]


def measure_of(name: str, words: dict[str, Any], cutoff: int | None) -> fn.Measure:
    measure = fn.parse(name)(**words | ({"max_rel": 4} if name == "SDCG" and "max_rel" not in words else {}))
    return measure if cutoff is None else measure @ cutoff


def all_asked(ties: str) -> list[Asked]:
    asked = []
    for name, given in VARIANTS:
        words = given | ({"max_rel": 4} if name == "SDCG" and "max_rel" not in given else {})
        words |= {} if name == "NumRel" else {"ties": ties}
        asked += [
            Asked(name, cutoff, tuple(words.items()))
            for cutoff in ([None] if name in UNCUT else [None, 1, 2, 4])
        ]
    return asked


def tables(
    seed: int, queries: int, *, grades: Any = (0, 0, 1, 2, 4), dtype: str = "uint8", longest: int = 6
) -> dict[str, Ragged]:
    """The same heavily tied queries in three layouts: no pool, flags only, flags and pool."""
    rng = np.random.default_rng(seed)
    lengths = [0, 1, *rng.integers(1, longest + 1, queries).tolist()]
    size = sum(lengths)
    relevance = rng.choice(np.array(grades), size).astype(dtype)
    scores = rng.integers(0, 3, size).astype(np.float32)
    flags = rng.random(size) < 0.7
    bare, flagged = Ragged(lengths, relevance, scores), Ragged(lengths, relevance, scores, flags)
    judged = [
        query.judged_grades() + rng.choice(np.array(grades), rng.integers(0, 4)).tolist()
        for query in flagged.queries()
    ]
    pool = np.array([grade for one in judged for grade in one], dtype)
    return {
        "bare": bare,
        "flagged": flagged,
        "pooled": Ragged(lengths, relevance, scores, flags, [len(one) for one in judged], pool),
    }


def check(table: Ragged, asked: list[Asked], relative: float = 1e-12) -> None:
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
def test_oracle(layout: str, ties: str) -> None:
    check(tables(1, 25)[layout], all_asked(ties))


@pytest.mark.pure
@pytest.mark.parametrize("layout", ["bare", "flagged", "pooled"])
def test_oracle_continuous_grades(layout: str) -> None:
    """Grades without levels: a fraction, and grades too far apart for a table of bytes."""
    table = tables(2, 20, grades=(0, 0, 0.5, 1, 2.5, 4), dtype="float64")[layout]
    for ties in TIES:
        check(table, all_asked(ties))


@pytest.mark.pure
@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_oracle_negative_grades(dtype: str) -> None:
    """A negative grade is not relevant; for infAP it is an unjudged document of the pool."""
    grades = (-2, -1, 0, 0, 1, 2) if dtype == "int8" else (-2, -1, 0, 0.5, 1, 2)
    asked = [one for ties in TIES for one in all_asked(ties) if one.name not in ("nDCG", "DCG", "CG", "IDCG")]
    for table in tables(3, 20, grades=grades, dtype=dtype).values():
        check(table, asked)


def test_bounds_are_the_least_and_greatest_of_all_orders() -> None:
    """No sampled pools here: there, infAP rewards pooled documents, and its worst order need not be the least."""
    for table in tables(4, 25).values():
        for one in (one for one in all_asked("average") if one.name != "NumRel"):
            words = {name: value for name, value in one.parameters if name != "ties"}
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
                    assert low <= expected * (1 + 1e-15) and expected <= high * (1 + 1e-15), (measure, query)
