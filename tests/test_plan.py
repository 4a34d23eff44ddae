"""`plan`: measures and grades as tables. Values are the oracle's to check; here stands what the tables hold and what they share."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fastndcg as fn
from fastndcg.kernels import tables
from fastndcg.measures import as_measures
from fastndcg.scoring import plan

pytestmark = pytest.mark.auto


def rankings(grades: list[float], dtype: str = "int64", **more) -> fn.Rankings:
    return fn.Rankings.from_groups([len(grades)], np.array(grades, dtype), np.arange(len(grades)), **more)


def built(measures, grades=(0, 1, 3), dtype: str = "int64", **more):
    return plan.build(as_measures(measures), rankings(list(grades), dtype, **more))


@pytest.mark.parametrize(
    ("grades", "dtype", "expected"),
    [
        ([0, 1, 3], "int64", (True, 0, 4)),
        ([-2, 5], "int8", (True, -2, 8)),
        ([1_000_000, 1_000_003], "float32", (True, 1_000_000, 4)),
        ([2, 3], "uint8", (True, 0, 4)),  # bytes are levels as they stand
        ([0, 0.5], "float64", (False, 0, 0)),
        ([0, 10_000], "int64", (False, 0, 0)),
        ([2.0**60, 2.0**60 + 4096], "float64", (False, 0, 0)),
    ],
)
def test_whole_grades_that_are_near_each_other_have_levels(grades, dtype, expected) -> None:
    _, coding = built("RR", grades, dtype)
    assert (coding.levels, coding.lowest, coding.n_levels) == expected


def test_gains_are_of_levels_then_of_no_judgment_then_of_no_document() -> None:
    made, _ = built(["nDCG", "nDCG(gain='exp2')", "P@2"])
    assert made.gains.tolist() == [[0, 1, 2, 3, 0, 0], [0, 1, 3, 7, 0, 0], [0, 1, 1, 1, 0, 0]]
    assert made.falling[0].tolist() == [3, 2, 1, 0, 4, 5]
    assert made.earning.tolist() == [3, 3, 3]
    assert made.exact.all()
    assert built("nDCG(unjudged=2)")[0].gains.tolist() == [[0, 1, 2, 3, 2, 0]]


def test_rows_share_what_is_the_same() -> None:
    alone, _ = built("nDCG@1")
    made, _ = built(
        [f"nDCG@{k}" for k in (1, 5, 10)] + ["DCG@5", "nDCG(ties='worst')@5", "nDCG(gain='exp2')@5"]
    )
    assert len(alone.gains) == len(alone.lists) == len(alone.ideals) == len(alone.discounts) == 1
    assert (len(made.gains), len(made.lists), len(made.ideals), len(made.discounts)) == (2, 3, 2, 1)
    assert sorted(made.rows[:, 5]) == list(range(6))  # each measure has a row of the result
    assert made.rows[:, 0].tolist() == sorted(made.rows[:, 0])  # lists in order, and cutoffs within each
    for array in (field for field in made if isinstance(field, np.ndarray)):
        assert not array.flags.writeable


def test_depth_is_what_some_row_looks_at() -> None:
    grades = [0, 1] * 50
    assert built("nDCG@10", grades)[0].depth == 10
    assert built(["nDCG@10", "AP"], grades)[0].depth >= 100
    full, _ = built("nDCG(ideal='full')@300", grades)
    assert full.depth < 300 <= full.ideal_depth == full.discounts.shape[1] - 1


def test_discounts_are_rounded_once() -> None:
    made, _ = built("nDCG", [1] * 20)
    for rank in range(1, 21):
        assert made.discounts[0, rank - 1] == pytest.approx(1 / math.log2(rank + 1), rel=2**-53)


def test_tables_are_kept_unless_a_function_made_them() -> None:
    assert built(["nDCG@10", "AP"])[0] is built(["nDCG@10", "AP"])[0]
    calls: list[float] = []

    def gain(grade: float) -> float:
        calls.append(grade)
        return grade

    for _ in range(2):
        calls.clear()
        built([fn.nDCG(gain=gain), fn.DCG(gain=gain)])
        assert sorted(set(calls)) == [0, 1, 3]


def test_what_has_no_gain_is_refused_by_name() -> None:
    with pytest.raises(fn.InputError, match=r"nDCG.*grade -1"):
        built("nDCG", [-1, 1])
    with pytest.raises(fn.MeasureError, match="list of 2 discounts|discount"):
        built([fn.nDCG(discount=[1.0, 0.5])], [1, 0, 1])
    with pytest.raises(fn.MeasureError, match="wanted a cutoff of at most"):
        built("nDCG(ideal='full')@100000000")


def test_queries_without_any_gain_may_be_skipped() -> None:
    assert built(["nDCG@10", "nDCG(gain='exp2')"])[0].skippable
    assert not built(["nDCG@10", "DCG@10"])[0].skippable
    assert built("nDCG", is_judged=[True, False, True])[0].promising[:, -1].tolist() == [False, False]
    assert tables.JUDGED == 0
