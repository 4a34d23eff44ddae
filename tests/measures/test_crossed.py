"""Every parameter of every measure, over grades and pools of any dtype, against the oracle, and what changes no bit of them."""

import math
from collections import defaultdict

import numpy as np
import pytest
import strategies as ours

import fastndcg as fn
from fastndcg.measures import DEFINITIONS

pytestmark = pytest.mark.compiled


def hold(seed, most=8, **size):
    table = ours.crossed_table(seed, **size)
    asked = ours.crossed_measures(seed, table, most=most)
    assert ours.difference(table, asked) is None
    assert ours.broken_law(table, asked, np.random.default_rng(seed)) is None


@pytest.mark.pure
@pytest.mark.parametrize("seed", range(20))
def test_short_lists(seed):
    hold(seed)


@pytest.mark.parametrize("seed", [*range(20, 40), *range(1000, 1060)])
@pytest.mark.slow
def test_more_short_lists(seed):
    hold(seed, most=12)


@pytest.mark.parametrize("seed", range(2000, 2020))
def test_lists_around_the_lengths_where_kernels_change_their_way(seed):
    """The first ten may have intents."""
    lengths = np.random.default_rng(seed).permutation([*range(7, 70), *ours.EDGES])
    hold(seed, most=4, longest=600, lengths=lengths[:24].tolist()) if seed >= 2010 else hold(seed, longest=60)


@pytest.mark.parametrize("seed", range(4000, 4004))
def test_long_lists_and_two_threads(seed):
    """The oracle is slow where orders of ties are averaged over thousands of documents: there closed forms stand in, in test_evaluate."""
    table = ours.crossed_table(seed, longest=9000)
    asked = ours.crossed_measures(seed, table, most=6)
    assert ours.broken_law(table, asked, np.random.default_rng(seed)) is None
    ordered = [one for one in asked if dict(one.parameters).get("ties", "average") != "average"]
    assert ours.difference(table, ordered, threads=2) is None


@pytest.mark.parametrize("seed", range(4100, 4102))
def test_many_queries_at_once(seed):
    rng = np.random.default_rng(seed)
    table = ours.crossed_table(seed, lengths=rng.integers(0, (9, 41)[seed % 2], 1500).tolist())
    assert ours.broken_law(table, ours.crossed_measures(seed, table), rng) is None


@pytest.mark.pure
@pytest.mark.parametrize("name", DEFINITIONS)
def test_each_value_of_each_parameter(name):
    """In two tables, with any values of the other parameters."""
    rng, tables, asked = (
        np.random.default_rng(6),
        list(map(ours.crossed_table, range(3000, 3024))),
        defaultdict(list),
    )
    for parameter, value in ours.values_of(name):
        tried = 0
        for number in rng.permutation(len(tables)).tolist():
            lacks_intents = name in ours.OF_INTENTS and tables[number].intents is None
            one = None if lacks_intents else ours.measure_with(rng, tables[number], name, parameter, value)
            if one is not None:
                asked[number].append(one)
                tried += 1
            if tried == 2:
                break
        assert tried, (name, parameter, value)
    for number, some in asked.items():
        assert ours.difference(tables[number], some, alone=False) is None


# ---- what the generator found, by itself ----


@pytest.mark.pure
@pytest.mark.parametrize("dtype", ["uint8", "bool", "int64", "float32", "float64"])
def test_negative_grades_of_the_pool(dtype):
    """They have levels of their own beside grades that cannot be negative."""
    relevance = np.array([1, 0, 1], dtype)
    rankings = fn.Rankings.from_offsets([0, 3], relevance, [3, 2, 1], judged=([0, 5], [1, 0, 1, -1, -2]))
    values = fn.evaluate(rankings, "R, AP, NumRel, nDCG(rel=1), Bpref").values[:, 0]
    ideal = 1 + 1 / math.log2(3)
    assert values.tolist() == pytest.approx([1, (1 + 2 / 3) / 2, 2, 1.5 / ideal, 0.5], rel=1e-12)


@pytest.mark.pure
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_grades_of_the_pool_that_float32_does_not_have(dtype):
    relevance = np.array([2**24 + 2, 2**24 + 4], dtype)
    rankings = fn.Rankings.from_offsets(
        [0, 2], relevance, [2, 1], judged=([0, 3], [2**24 + 1, 2**24 + 2, 2**24 + 4])
    )
    values = fn.evaluate(rankings, ["CG@1", "CG", fn.P(rel=2**24 + 3), fn.R(rel=2**24 + 2)]).values[:, 0]
    assert values.tolist() == [2**24 + 2, 2**25 + 6, 0.5, 1.0]
    with_unjudged = fn.Rankings.from_offsets(
        [0, 3], np.array([1e30, 2**24 + 2, 2**24 + 4], dtype), [3, 2, 1],
        judged=([0, 3], [2**24 + 1, 2**24 + 2, 2**24 + 4]), is_judged=[False, True, True],
    )  # fmt: skip
    assert fn.evaluate(with_unjudged, "CG@2").values.tolist() == [[2**24 + 2]]


@pytest.mark.pure
@pytest.mark.parametrize("name", ["nDCG", "DCG", "SDCG", "nDCG_IA", "alpha_DCG"])
def test_a_discount_function_is_asked_for_the_ranks_of_its_own_measure(name):
    more = {"max_rel": 1} if name == "SDCG" else {"denominator": "none"} if name == "alpha_DCG" else {}
    rankings = fn.Rankings.from_lists([[1, 0, 1, 0, 1]], intents=[[1], [0], [1], [0], [1]])
    asked = list[int]()

    def discount(rank):
        asked.append(rank)
        return 1 / rank

    measure = getattr(fn, name)(discount=discount, **more) @ 2
    fn.evaluate(rankings, [measure, "nDCG", "nDCG_IA", fn.nDCG(ideal="full") @ 10])
    assert sorted(set(asked)) == [1, 2]
    asked.clear()
    fn.evaluate(rankings, [measure, fn.nDCG(ideal="returned", ties="input", discount=discount) @ 3])
    assert sorted(set(asked)) == [1, 2, 3]


@pytest.mark.pure
def test_a_list_of_discounts_reaches_as_deep_as_the_ideal_of_a_scale():
    rankings = fn.Rankings.from_lists([[1, 0]])
    with pytest.raises(fn.MeasureError, match="needs a discount for 3 ranks and was given 2"):
        fn.evaluate(rankings, fn.SDCG(max_rel=1, discount=[1, 0.5]) @ 3)
    measure = fn.SDCG(max_rel=1, discount=[1, 0.5, 0.5]) @ 3
    assert fn.evaluate(rankings, measure).values.tolist() == [[0.5]]


# ---- numbers too large ----


@pytest.mark.pure
def test_sums_beyond_float64_are_refused():
    rankings = fn.Rankings.from_lists([[10, 9]], [[0.5, 0.4]])
    for measure in (fn.nDCG(discount=[1e308, 1e308]), fn.DCG(discount=lambda rank: 1e308), fn.SDCG(max_rel=10, discount=[1e308] * 2)):  # fmt: skip
        with pytest.raises(
            fn.InputError, match=r"the discount 1e\+308 of .* is too large to sum over 2 ranks"
        ):
            fn.evaluate(rankings, measure)
    with pytest.raises(
        fn.InputError, match=r"the gain 1e\+308 of grade 10 in CG.* is too large to sum over 2"
    ):
        fn.evaluate(rankings, fn.CG(gain={9: 1, 10: 1e308}))
    intents = fn.Rankings.from_lists([[1, 1]], [[0.5, 0.4]], intents=[[1], [1]])
    with pytest.raises(fn.InputError, match=r"the discount 1e\+308 of alpha_DCG.* is too large"):
        fn.evaluate(intents, fn.alpha_DCG(discount=[1e308] * 2))
    # as large as they may be
    assert fn.evaluate(rankings, fn.nDCG(discount=[1e306, 1e306])).values.tolist() == [[1.0]]
    scores = fn.evaluate(fn.Rankings.from_lists([[1, 0], [0, 1]]), fn.DCG(gain={1: 1e200, 0: 0}) @ 1)
    (row,) = scores.summary().rows
    assert (row["mean"], row["std"]) == (5e199, pytest.approx(1e200 / math.sqrt(2), rel=1e-15))


# ---- what is not a number, no notation, no list ----


@pytest.mark.pure
def test_masked_values_are_refused():
    masked, whole = np.ma.array([9.0, 1.0], mask=[True, False]), np.ma.array([9.0, 1.0])
    wanted = "scores has 1 masked value; the first is at position 0. Drop those rows, or fill them"
    rankings, lists = fn.Rankings.from_offsets, fn.Rankings.from_lists
    for build in (
        lambda values: rankings([0, 2], [1, 0], values),
        lambda values: fn.Rankings.from_groups([2], [1, 0], values),
        lambda values: fn.Rankings.from_query_ids([7, 7], [1, 0], values),
        lambda values: lists([[1, 0]], [values]),
    ):
        with pytest.raises(fn.InputError, match=wanted.replace("scores has", "scores(?: of query 0)? has")):
            build(masked)
        assert fn.evaluate(build(whole), "RR").values.tolist() == [[1.0]]
    with pytest.raises(fn.InputError, match="relevance has 1 masked value"):
        rankings([0, 2], masked, [1, 2])
    with pytest.raises(fn.InputError, match="query_ids has 1 masked value"):
        rankings([0, 1, 2], [1, 0], [1, 2], query_ids=np.ma.array([1, 2], mask=[True, False]))
    with pytest.raises(fn.InputError, match="y_score has 1 masked value"):
        fn.Rankings.from_dense([[1, 0]], masked.reshape(1, 2))
    with pytest.raises(fn.InputError, match="y_true has 1 masked value"):
        fn.ndcg_score(masked.reshape(1, 2), [[1, 0]])
