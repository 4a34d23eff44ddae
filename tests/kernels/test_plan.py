"""`plan`: measures and grades as tables. Values are the oracle's to check; here stands what the tables hold and what they share."""

import math

import numpy as np
import pytest

import fastndcg as fn
from fastndcg.kernels import schema
from fastndcg.measures import as_measures
from fastndcg.scoring import gain_values, plan


def rankings(grades, dtype="int64", **more):
    return fn.Rankings.from_groups([len(grades)], np.array(grades, dtype), np.arange(len(grades)), **more)


def built(measures, grades=(0, 1, 3), dtype="int64", **more):
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
def test_whole_grades_that_are_near_each_other_have_levels(grades, dtype, expected):
    _, coding = built("RR", grades, dtype)
    assert (coding.levels, coding.lowest, coding.n_levels) == expected


def test_compiled_code_takes_all_plans_as_one_type():
    """`dispatch.kind_of` tells plans apart by `term_parameters` alone."""
    import numba

    from fastndcg.measures import DEFINITIONS

    complete = {"IPrec": "IPrec@0.1", "ERR": "ERR(max_rel=3)", "SDCG": "SDCG(max_rel=3)@2"}
    complete |= {"PFound": "PFound(stop={0: 0, 0.5: 0.1, 1: 0.2, 3: 0.7})"}
    types = set()
    for name, definition in DEFINITIONS.items():
        measure = as_measures(complete.get(name, name))[0]
        if measure.definition.method != "kernels":
            continue
        cut = [measure, measure @ 1] if definition.cut == "rank" and not measure.is_cut else [measure]
        for asked in ([measure], cut, [*cut, "nDCG@1", "DCG(gain='exp2')"]):
            for grades, dtype in (((0, 1, 3), "int64"), ((0, 0), "uint8"), ((0.5,), "float32")):
                made, _ = built(asked, grades, dtype)
                types.add((made.term_parameters is None, numba.typeof(made)))
    assert len(types) == len({has_no_folds for has_no_folds, _ in types}) == 2


def test_rows_share_what_is_the_same():
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


def test_depth_is_what_some_row_looks_at():
    grades = [0, 1] * 50
    assert built("nDCG@10", grades)[0].depth == 10
    assert built(["nDCG@10", "AP"], grades)[0].depth >= 100
    full, _ = built("nDCG(ideal='full')@300", grades)
    assert full.depth < 300 <= full.ideal_depth == full.discounts.shape[1] - 1


def test_discounts_are_rounded_once():
    made, _ = built("nDCG", [1] * 20)
    for rank in range(1, 21):
        assert made.discounts[0, rank - 1] == pytest.approx(1 / math.log2(rank + 1), rel=2**-53)


def test_tables_are_kept_unless_a_function_made_them():
    assert built(["nDCG@10", "AP"])[0] is built(["nDCG@10", "AP"])[0]
    calls = []

    def gain(grade):
        calls.append(grade)
        return grade

    for _ in range(2):
        calls.clear()
        built([fn.nDCG(gain=gain), fn.DCG(gain=gain)])
        assert sorted(set(calls)) == [0, 1, 3]


def test_queries_without_any_gain_may_be_skipped():
    assert built(["nDCG@10", "nDCG(gain='exp2')"])[0].skippable
    assert not built(["nDCG@10", "DCG@10"])[0].skippable
    assert built("nDCG", is_judged=[True, False, True])[0].promising[:, -1].tolist() == [False, False]
    assert schema.JUDGED == 0


# ---- functions that other modules call ----


def measure_of(notation):
    (measure,) = as_measures(notation)
    return measure


def test_the_gains_of_documents_are_those_of_no_judgment_where_they_have_none():
    some = rankings([3, 1, 2], is_judged=[True, False, True])
    for notation, gains in (("nDCG", [3, 0, 2]), ("nDCG(unjudged=0.5)", [3, 0.5, 2]), ("Bpref", [1, -2, 1])):
        assert gain_values.gains_of_documents(measure_of(notation), some).tolist() == gains


def test_the_best_order_of_judged_documents_is_the_worst_for_their_share():
    for ties, judged in (("best", "worst"), ("worst", "best"), ("average", "average"), ("input", "input")):
        assert plan.ties_of(measure_of(f"Judged(ties='{ties}')@5")) == plan.ties_of(
            measure_of(f"P(ties='{judged}')@5")
        )


@pytest.mark.parametrize("cutoff", [2**53 + 1, 2**63 - 2, 2**63 - 1, 2**63, 10**30, 10**100])
def test_cutoffs_beyond_int64_divide_as_they_are(cutoff):
    rankings = fn.Rankings.from_lists([[1, 0, 2], [0, 1]], [[0.3, 0.2, 0.1], [0.1, 0.1]])
    assert fn.evaluate(rankings, fn.P @ cutoff).values[0] == pytest.approx(
        [2 / cutoff, 1 / cutoff], rel=1e-15
    )
    assert fn.evaluate(rankings, fn.NumRet @ cutoff).values[0].tolist() == [3, 2]
    if cutoff > 2**63 - 2:
        with pytest.raises(fn.MeasureError, match="F@.* divides by its cutoff; expected one of at most"):
            fn.evaluate(rankings, fn.F @ cutoff)


@pytest.mark.parametrize("top", [4.0, 1e-310, 1e308, 1.7e308])
def test_scales_as_wide_as_float64(top):
    rankings = fn.Rankings.from_lists([[top, 0.0, -top]], [[1, 3, 2]])
    found = fn.evaluate(rankings, fn.SDCG(max_rel=top, min_rel=-top) @ 3).values[0, 0]
    same = fn.Rankings.from_lists([[2, 1, 0]], [[1, 3, 2]])
    assert found == fn.evaluate(same, fn.SDCG(max_rel=2) @ 3).values[0, 0]
