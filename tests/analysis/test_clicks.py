"""Propensities of ranks, `snips` and `compare_clicks`: by hand, against the oracle, and in simulations."""

import math

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import fastndcg as fn
from fastndcg.analysis.clicks import propensities_of

# ---- propensities ----

ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 9), st.integers(0, 5)),
    min_size=2,
    max_size=20,
)


@pytest.mark.pure
@given(ROWS)
def test_oracle(rows):
    """The likelihood of a slow ascent, where it has a maximum, and its fixed point."""
    groups, ranks, shown, clicked = (np.array(column) for column in zip(*rows, strict=True))
    middle, low, high = propensities_of(groups, ranks, shown.astype(float), clicked.astype(float), None, 0.95)
    expected = oracle.propensities(rows, len(middle))
    known = ~np.isnan(middle)
    for rank in np.flatnonzero(known).tolist():
        if expected[rank] is not None:
            assert middle[rank] == pytest.approx(expected[rank], rel=1e-4, abs=1e-6)
    inside = known & ~np.isnan(high)
    assert (low[inside] <= middle[inside] * (1 + 1e-9)).all()
    assert (middle[inside] <= high[inside] * (1 + 1e-9)).all()


def swap_log(seed, sessions=4000, ranks=6, neighbors=False):
    """In each session two documents swap their ranks, or not; better documents are ranked first."""
    rng = np.random.default_rng(seed)
    other = rng.integers(2, ranks + 1, sessions)
    one = other - 1 if neighbors else np.ones(sessions, np.int64)
    first, second = 0.6 * rng.random(sessions), 0.6 * rng.random(sessions) * (1 - other / 10)
    swapped = rng.random(sessions) < 0.5
    at_one, at_other = np.where(swapped, second, first), np.where(swapped, first, second)
    session = np.arange(sessions)
    clicked = [rng.random(sessions) < at_one / one, rng.random(sessions) < at_other / other]
    return pa.table(
        {
            "session_id": np.concatenate([session, session]),
            "rank": np.concatenate([one, other]),
            "swapped_with": np.concatenate([other, one]),
            "clicked": np.concatenate(clicked),
        }
    )


TRUE = 1 / np.arange(1, 7)


@pytest.mark.pure
@pytest.mark.parametrize("neighbors", [False, True])
def test_propensities_are_unbiased_and_intervals_cover_them(neighbors):
    """60 logs of 5 intervals: of 300, 15 may miss, and 30 would be 4 deviations above."""
    found = [fn.propensities(swap_log(seed, 3000, neighbors=neighbors)) for seed in range(60)]
    means = np.mean([each["propensity"].to_numpy() for each in found], axis=0)
    assert np.abs(means / TRUE - 1).max() < 0.1
    missed = sum(
        not low <= true <= high
        for each in found
        for low, high, true in zip(each["low"].to_pylist(), each["high"].to_pylist(), TRUE, strict=True)
    )
    assert missed <= 30
    shares = np.mean([each["clicked"].to_numpy() / each["shown"].to_numpy() for each in found], axis=0)
    assert np.abs(shares / shares[0] / TRUE - 1).max() > 0.1, "shares of clicks alone are not propensities"


@pytest.mark.pure
def test_without_pairs_they_are_shares_of_clicks():
    log = {"rank": [1, 2, 3, 1], "impressions": [100, 100, 50, 100], "clicks": [30, 20, 5, 10]}
    found = fn.propensities(log)
    assert found["propensity"].to_pylist() == pytest.approx([1.0, 1.0, 0.5])
    assert found["shown"].to_pylist() == [200, 100, 50] and found["clicked"].to_pylist() == [40, 20, 5]
    # the interval of a ratio of two shares (Katz et al., Biometrics 1978), by Student's t
    error = math.sqrt((0.9 / 5 + 0.8 / 40) * 350 / 349)
    quantile = stats.t.ppf(0.975, 349)
    assert found["low"].to_pylist()[2] == pytest.approx(0.5 * math.exp(-quantile * error))
    assert 0.5 * math.exp(quantile * error) > 1 == found["high"].to_pylist()[2]
    # a row for each time a document was shown: the same estimates and intervals
    rows = [
        (rank, click) for rank, n, c in zip(*log.values(), strict=True) for click in [1] * c + [0] * (n - c)
    ]
    single = fn.propensities({"rank": [row[0] for row in rows], "clicked": [bool(row[1]) for row in rows]})
    for name in ("propensity", "low", "high"):
        assert single[name].to_pylist() == pytest.approx(found[name].to_pylist(), rel=0.02)
    # and a measure discounts by them
    measure = fn.nDCG(discount=found["propensity"].to_pylist())
    rankings = fn.Rankings.from_lists([[0, 0, 1]], [[3, 2, 1]])
    assert fn.evaluate(rankings, measure).values[0, 0] == pytest.approx(0.5)
    assert fn.evaluate(rankings, fn.nDCG(discount=found["propensity"])).values[0, 0] == pytest.approx(0.5)


@pytest.mark.pure
def test_the_other_rank_of_a_session_is_the_one_it_was_swapped_with(tmp_path):
    log = swap_log(1)
    found = fn.propensities(log)
    assert fn.propensities(log.drop_columns("swapped_with")) == found
    alone = fn.propensities(log.drop_columns(["swapped_with", "session_id"]))
    assert alone["propensity"].to_pylist()[1:] != found["propensity"].to_pylist()[1:]
    three = {"session_id": [1, 1, 1], "rank": [1, 2, 3], "shown": [3, 3, 3], "clicked": [3, 2, 1]}
    assert fn.propensities(three)["propensity"].to_pylist() == pytest.approx([1, 2 / 3, 1 / 3])
    pq.write_table(log, tmp_path / "log.parquet")
    assert fn.propensities(log.to_pandas()) == fn.propensities(tmp_path / "log.parquet") == found
    words = {"query": "a", "rank": "b", "swapped": "c", "clicked": "d"}
    assert fn.propensities(log.rename_columns(["a", "b", "c", "d"]), **words) == found
    mixed = fn.propensities(log.take(pa.array(np.random.default_rng(0).permutation(len(log)))))
    for name in ("propensity", "low"):
        assert mixed[name].to_pylist() == pytest.approx(found[name].to_pylist(), rel=1e-9)


@pytest.mark.pure
def test_ranks_of_which_nothing_is_known():
    log = {
        "rank": [1, 2, 1, 3, 4, 5, 2, 6],
        "swapped": [2, 1, 3, 1, 5, 4, 6, 2],
        "shown": [5] * 8,
        "clicked": [4, 2, 3, 0, 1, 1, 0, 5],
    }
    found = fn.propensities(log)
    values = dict(zip(found["rank"].to_pylist(), found["propensity"].to_pylist(), strict=True))
    assert values[1] == 1 and values[3] == 0
    assert math.isnan(values[4]) and math.isnan(values[5]), "no swap connects them with the first rank"
    assert math.isnan(values[6]), "nor can one say how much more often it is looked at"
    none = fn.propensities({"rank": [1, 2], "clicked": [0, 0]})
    assert all(math.isnan(each) for each in none["propensity"].to_pylist())


# ---- rankers ----


@pytest.mark.pure
def test_numbers_by_hand():
    old = fn.Rankings.from_lists(
        [[1, 0], [0, 1], [1, 1]], [[2, 1], [2, 1], [2, 1]], propensity=[1, 0.5, 0.8, 0.5, 1, 0.25]
    )
    systems = {"old": old, "new": old.with_scores([1, 2, 1, 2, 2, 1])}
    second = 1 / math.log2(3)
    differences = [second - 1, 2 * (1 - second), 0.0]
    (row,) = fn.compare_clicks(systems, "DCG").to_pylist()
    assert [*row] == ["measure", "system", "baseline", "difference", "low", "high", "queries", "effective"]
    assert (row["measure"], row["system"], row["baseline"]) == ("DCG(ips=True)", "new", "old")
    single = [estimate.snips for each in systems.values() for estimate in fn.snips(each, "DCG")]
    assert row["difference"] == pytest.approx(single[1] - single[0]) == pytest.approx(sum(differences) / 8)
    assert row["queries"] == 3 and row["effective"] == pytest.approx((1 + 2 + 5) ** 2 / (1 + 4 + 25))
    assert row["low"] < row["difference"] < row["high"]
    (turned,) = fn.compare_clicks(systems, "DCG", baseline="new").to_pylist()
    assert turned["difference"] == pytest.approx(-row["difference"])
    several = fn.compare_clicks(systems, ["DCG@1", "CG@1"])
    assert several["measure"].to_pylist() == ["DCG(ips=True)@1", "CG(ips=True)@1"]


@pytest.mark.compiled
def test_differences_are_consistent_and_intervals_cover_them():
    """150 logs of 400 queries, in each of which one of five documents was shown at random, likelier a better one."""
    truth, found = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        chance = np.clip(rng.beta(2, 3, (400, 5)), 0.02, 0.98)
        propensity = np.exp(2 * chance + rng.normal(0, 0.5, chance.shape))
        propensity /= propensity.sum(axis=1, keepdims=True)
        choice = (propensity.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
        clicked = np.eye(5)[choice] * (rng.random(chance.shape) < chance)
        old = chance + rng.normal(0, 0.4, chance.shape)
        new = old + 0.3 * chance + rng.normal(0, 0.1, chance.shape)
        rankings = fn.Rankings.from_dense(clicked.astype(int), old, propensity=propensity.ravel())
        systems = {"old": rankings, "new": rankings.with_scores(new.ravel())}
        gains = [
            fn.evaluate(fn.Rankings.from_dense(chance, each), "DCG@2").values.sum() for each in (old, new)
        ]
        truth.append((gains[1] - gains[0]) / chance.sum())
        found.append(fn.compare_clicks(systems, "DCG@2").to_pylist()[0])
    errors = np.array([row["difference"] for row in found]) - truth
    assert abs(errors.mean()) < 3.5 * errors.std() / math.sqrt(len(errors))
    assert np.mean([row["low"] <= true <= row["high"] for row, true in zip(found, truth, strict=True)]) > 0.89
