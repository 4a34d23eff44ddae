"""Expected values and quantiles over drawn grades of unjudged documents, against all assignments."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg.errors import InputError

MEASURES = ["nDCG@3", "P@2", "RR", "AP", "ERR@2"]


def rankings_of(seed, queries=4, keep=0.6, **columns):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, queries)
    n = int(lengths.sum())
    judged = rng.random(n) < keep
    judged[:2] = True
    grades = rng.integers(0, 3, n)
    grades[:2] = 0, 2
    return fn.Rankings.from_groups(lengths, grades, rng.integers(0, 4, n), is_judged=judged, **columns)


CHANCES = {0: 0.5, 1: 0.3, 2: 0.2}


def by_enumeration(rankings, chances):
    """The expected mean of each measure, over all grades of all unjudged documents."""
    judged = rankings.is_judged
    assert judged is not None
    weights = np.ones(rankings.n_queries) if rankings.weight is None else rankings.weight
    total = np.zeros(len(MEASURES))
    for query, weight in enumerate(weights):
        part = slice(*rankings.offsets[query : query + 2])
        free = np.flatnonzero(~judged[part])
        ways = [*product(chances, repeat=len(free))]
        relevance = np.tile(rankings.relevance[part], (len(ways), 1))
        relevance[:, free] = ways
        scores = np.tile(rankings.scores[part], (len(ways), 1))
        values = fn.evaluate(fn.Rankings.from_dense(relevance, scores), MEASURES).values
        total += weight * values @ [np.prod([chances[grade] for grade in way]) for way in ways]
    return total / weights.sum()


def test_expected_means_are_those_of_all_assignments():
    for seed, columns in ((0, {}), (3, {"weight": [1.0, 2.0, 0.5, 4.0]})):
        rankings = rankings_of(seed, **columns)
        ranges = fn.judgment_range(rankings, MEASURES, prior=CHANCES, resamples=4000, seed=1)
        found = [row["expected"] for row in ranges.summary().to_pylist()]
        assert found == pytest.approx(by_enumeration(rankings, CHANCES).tolist(), abs=0.01)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), keep=st.floats(0, 1), empty=st.sampled_from(["0.0", "'skip'", "1.0"]))
def test_drawn_values_lie_within_the_bounds(seed, keep, empty):
    rankings = rankings_of(seed, queries=6, keep=keep)
    measures = [f"nDCG(empty={empty})@2", "P@2", "AP"]
    levels = (0.01, 0.25, 0.5, 0.99)
    found = fn.judgment_range(rankings, measures, prior="pool", quantiles=levels, resamples=100, seed=seed)
    names = ["expected", "q1", "q25", "q50", "q99"]
    for row in found.summary().to_pylist():
        drawn = [row[name] for name in names]
        if not np.isnan(drawn).any():
            assert all(row["least"] <= each <= row["greatest"] for each in drawn)
            assert drawn[1:] == sorted(drawn[1:])
    table = found.to_arrow()
    for measure in map(str, found.measures):
        low, high = (table[f"{measure} {end}"].to_numpy() for end in ("least", "greatest"))
        for name in names:
            values = table[f"{measure} {name}"].to_numpy()
            assert (np.isnan(values) | ((low <= values) & (values <= high))).all()
    without = fn.judgment_range(rankings, measures)
    assert without.summary().column_names == ["measure", "least", "value", "greatest", "moves"]
    assert found.summary().select(without.summary().column_names) == without.summary().to_arrow()


def test_priors_and_seeds():
    rankings = rankings_of(5)
    one, two, other = (
        fn.judgment_range(rankings, "nDCG@3", prior="pool", seed=seed, resamples=200).summary()
        for seed in (1, 1, 2)
    )
    assert one == two
    assert one != other
    certain = fn.judgment_range(rankings, "P@2", prior={2: 1.0}, resamples=100).summary().to_pylist()[0]
    assert certain["expected"] == certain["q2.5"] == certain["q97.5"] == pytest.approx(certain["greatest"])
    nothing = fn.judgment_range(rankings, "P@2", prior={0: 1.0}, resamples=100).summary().to_pylist()[0]
    assert nothing["expected"] == pytest.approx(nothing["least"])
    judged = fn.Rankings.from_lists([[1, 0]])
    row = fn.judgment_range(judged, "RR", prior="pool", resamples=100).summary().to_pylist()[0]
    assert row["expected"] == row["q50"] == row["value"] == 1.0
    assert "q97.5" in repr(fn.judgment_range(judged, "RR", prior="pool", resamples=100))


def test_refused_priors():
    rankings = rankings_of(5)
    for prior, said in (({0: 0.5}, "sum up to 1"), ({0: 0.5, 9: 0.5}, "0 to 2"), ("run", 'wanted "pool"')):
        with pytest.raises(InputError, match=said):
            fn.judgment_range(rankings, "P@1", prior=prior)
    with pytest.raises(InputError, match=r"quantiles=\[2\]"):
        fn.judgment_range(rankings, "P@1", prior="pool", quantiles=[2])
    with pytest.raises(InputError, match="resamples=5"):
        fn.judgment_range(rankings, "P@1", prior="pool", resamples=5)
    blank = fn.Rankings.from_lists([[0, 0]], is_judged=[False, False])
    with pytest.raises(InputError, match="no grades; give their probabilities"):
        fn.judgment_range(blank, "P@1", top=1, prior="pool")
    assert (
        fn.judgment_range(blank, "P@1", top=1, prior={0: 0.5, 1: 0.5}).summary()["expected"][0].as_py() > 0.4
    )
