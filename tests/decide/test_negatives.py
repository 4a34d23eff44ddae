"""`correct_sampled`: ranks among sampled negatives, corrected; its parts by hand, its estimates by simulation."""

import math

import numpy as np
import pytest

import fastndcg as fn
from fastndcg.decide import negatives


def lists(above, n):
    relevance = (np.arange(n + 1) == above[:, None]).astype(np.int8)
    return fn.Rankings.from_lists(list(relevance))


@pytest.mark.pure
def test_chances_are_those_of_drawing_negatives():
    items, m = 12, 4
    found = negatives._chances(np.arange(1, items + 1), items, m)
    for rank in range(1, items + 1):
        for j in range(m + 1):
            wanted = math.comb(rank - 1, j) * math.comb(items - rank, m - j) / math.comb(items - 1, m)
            assert found[rank - 1, j] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.pure
def test_all_items_need_no_correction():
    """Where every other item is a negative, the sampled rank is the rank."""
    above = np.random.default_rng(0).integers(0, 30, 400)
    rows = fn.correct_sampled(lists(above, 29), ["R@5", "nDCG@5", "RR@5"], items=30).to_pylist()
    for row in rows:
        assert row["mean"] == pytest.approx(row["sampled"], rel=0.15)
        assert row["low"] <= row["mean"] <= row["high"] and (row["users"], row["negatives"]) == (400, 29)


@pytest.mark.compiled
def test_estimates_are_near_the_values_over_all_items():
    """6 samples of 1,000 users: the raw mean is off by 0.38, the corrected one by 0.01."""
    off, raw, covered = [], [], 0
    population = np.minimum(np.random.default_rng(99).geometric(0.02, 200_000), 1000)
    truth = np.where(population <= 10, 1 / np.log2(population + 1), 0).mean()
    for seed in range(6):
        random = np.random.default_rng(seed)
        ranks = np.minimum(random.geometric(0.02, 1000), 1000)
        above = random.hypergeometric(ranks - 1, 1000 - ranks, 99)
        row = fn.correct_sampled(lists(above, 99), "nDCG@10", items=1000).to_pylist()[0]
        off.append(row["mean"] - truth)
        raw.append(row["sampled"] - truth)
        covered += row["low"] <= truth <= row["high"]
    assert min(raw) > 0.3 and abs(np.mean(off)) < 0.02 and np.std(off) < 0.03 and covered >= 4


@pytest.mark.pure
def test_ties_wrong_input_and_seeds():
    tied = fn.Rankings.from_lists([[1, 0, 0], [0, 1, 0]], [[0.5, 0.5, 0.1], [0.9, 0.5, 0.5]])
    assert fn.correct_sampled(tied, "R@1", items=50) == fn.correct_sampled(tied, "R@1", items=50)
    two = fn.Rankings.from_lists([[1, 1, 0]])
    none = fn.Rankings.from_lists([[0, 0]])
    for rankings in (two, none, fn.Rankings.from_lists([])):
        with pytest.raises(fn.InputError, match="hold one relevant document each"):
            fn.correct_sampled(rankings, "R@1", items=50)
    with pytest.raises(fn.MeasureError, match="wanted a cutoff of at most 1,000, as in nDCG@10"):
        fn.correct_sampled(tied, "nDCG", items=50)
    for items in (2, 1, True, 2.5, "many"):
        with pytest.raises(fn.InputError, match="items"):
            fn.correct_sampled(tied, "R@1", items=items)
    with pytest.raises(fn.InputTypeError, match="wanted Rankings"):
        fn.correct_sampled([1], "R@1", items=50)
