"""Click logs: propensities of ranks, values weighted by them, `snips` and `compare_clicks`: by hand, against the oracle, in simulations."""

import math

import commands
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
from fastndcg.errors import InputError

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


VARIANTS = [
    ("DCG", {"ips": True}),
    ("DCG", {"ips": True, "clip": 0.3}),
    ("DCG", {"ips": "snips"}),
    ("DCG", {"ips": "snips", "clip": 0.3, "empty": "nan"}),
    ("DCG", {"ips": True, "gain": "exp2", "discount": "reciprocal"}),
    ("DCG", {"ips": True, "gain": [0, 1, 5, 2, 3], "rel": 2}),
    ("DCG", {"ips": True, "judged_only": True, "empty": 3}),
    ("DCG", {"ips": "snips", "judged_only": True}),
    ("DCG", {"ips": True, "unjudged": 2}),
    ("CG", {"ips": True}),
    ("CG", {"ips": "snips", "gain": "binary"}),
]


@st.composite
def logs(draw):
    """Heavily tied queries with the propensity of each document."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(0, 5))
        some = {"min_size": n, "max_size": n}
        query = oracle.Query(
            draw(st.lists(st.sampled_from([0, 0, 1, 2, 4]), **some)),
            draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), **some)),
            draw(st.lists(st.sampled_from([True, True, False]), **some)),
        )
        found.append(
            (query, draw(st.lists(st.sampled_from([1.0, 0.5, 0.25, 0.1]) | st.floats(1e-3, 1), **some)))
        )
    return found


def rankings_of(table):
    return fn.Rankings.from_groups(
        [len(query.grades) for query, _ in table],
        np.array([grade for query, _ in table for grade in query.grades], np.int64),
        np.array([score for query, _ in table for score in query.scores], np.float64),
        is_judged=np.array([flag for query, _ in table for flag in query.is_judged], bool),
        propensity=[one for _, propensity in table for one in propensity],
    )


@pytest.mark.pure
@given(logs())
@pytest.mark.compiled
def test_oracle_of_values(table):
    asked = [
        (name, words | {"ties": ties}, cutoff)
        for name, words in VARIANTS
        for ties in ("average", "input", "worst", "best")
        for cutoff in (None, 2)
    ]
    measures = [
        measure if cutoff is None else measure @ cutoff
        for name, words, cutoff in asked
        for measure in [fn.parse(name)(**words)]
    ]
    rankings = rankings_of(table)
    scores = fn.evaluate(rankings, measures)
    for measure, (name, words, cutoff) in zip(measures, asked, strict=True):
        for place, (query, propensity) in enumerate(table):
            wanted = oracle.weighted_by_propensity(name, query, propensity, cutoff, **words)
            assert scores[measure][place] == pytest.approx(wanted, rel=1e-12, nan_ok=True), (measure, query)
    alone = np.concatenate(
        [fn.evaluate(rankings[q : q + 1], measures).values for q in range(len(table))], axis=1
    )
    assert np.array_equal(alone, scores.values, equal_nan=True)


# ---- a simulation: what users click, had they seen it, is known ----


def simulated(queries, seed=1):
    """Clicks on the ranking of one system, to be scored by another; the same with all that is relevant known;
    propensities.

    Users look at the place i with the probability 1/i and click on what is relevant there. The logging system
    is the better one, so that what it shows first is clicked more.
    """
    rng = np.random.default_rng(seed)
    n = 12
    relevant = rng.random((queries, n)) < 0.3
    logged = relevant + rng.normal(0, 0.7, (queries, n))
    place = np.argsort(np.argsort(-logged, axis=1), axis=1) + 1
    propensity = 1 / place
    clicked = relevant & (rng.random((queries, n)) < propensity)
    other = 0.5 * relevant + rng.normal(0, 1, (queries, n)).round(1)
    clicks = fn.Rankings.from_dense(clicked, other, propensity=propensity.ravel())
    return clicks, fn.Rankings.from_dense(relevant, other), propensity


@pytest.mark.compiled
def test_weighted_by_propensity_it_is_unbiased_where_the_plain_sum_is_not():
    clicks, truth, _ = simulated(20_000)
    for name in ("DCG@5", "DCG", "CG@3", "DCG(gain='binary', discount='reciprocal')@10"):
        plain = fn.parse(name)
        scores = fn.evaluate(clicks, [plain, plain(ips=True), plain(ips=True, clip=0.25)])
        true = fn.evaluate(truth, plain).mean()[str(plain)]
        biased, unbiased, clipped = scores.mean().values()
        error = scores.values[1].std() / math.sqrt(clicks.n_queries)
        assert abs(unbiased - true) < 4 * error
        assert true - biased > 20 * error
        assert true - clipped > 4 * error, "what is cut off is missing"
        assert scores.values[2].std() < scores.values[1].std(), "and the variance is less"


@pytest.mark.compiled
def test_self_normalised_estimate():
    """It is the share of the gain that is left by the discount, and varies less than the unbiased estimate of it does."""
    _, truth, _ = simulated(20_000)
    means = fn.evaluate(truth, ["DCG@5", "CG"]).mean()
    true = means["DCG@5"] / means["CG"]
    found = np.array(
        [
            (estimate.snips, estimate.ips / means["CG"])
            for seed in range(30)
            for estimate in fn.snips(simulated(500, seed)[0], "DCG@5")
        ]
    )
    assert abs(found.mean(axis=0) - true).max() < 0.01
    assert found[:, 0].std() < found[:, 1].std()


@pytest.mark.compiled
def test_snips_by_hand(tmp_path):
    clicks = fn.Rankings.from_lists(
        [[1, 0, 1], [0, 1], [0]],
        [[3, 2, 1], [2, 1], [1]],
        propensity=[1, 0.5, 0.25, 0.5, 0.1, 1],
        weight=[1, 2, 5],
    )
    second, third = 1 / math.log2(3), 0.5
    (estimate,) = fn.snips(clicks, "DCG(clip=0.2)")
    assert estimate.measure == fn.DCG(ips=True, clip=0.2)
    assert estimate.ips == pytest.approx((1 + 4 * third + 2 * 5 * second) / 8)
    assert estimate.snips == pytest.approx((1 + 4 * third + 2 * 5 * second) / (5 + 2 * 5))
    assert estimate.queries == 3
    assert estimate.effective_queries == pytest.approx((5 + 10) ** 2 / (25 + 100))
    per_query = fn.evaluate(clicks, "DCG(ips='snips', clip=0.2, empty='nan')").values[0].tolist()
    assert per_query == pytest.approx([(1 + 4 * third) / 5, second, math.nan], nan_ok=True)
    nothing = fn.Rankings.from_lists([[0]], [[1]], propensity=[1])
    (estimate,) = fn.snips(nothing, "DCG")
    assert math.isnan(estimate.snips) and (estimate.ips, estimate.effective_queries) == (0.0, 0.0)
    columns = (
        [1, 1, 1, 2, 2, 3],
        [1, 0, 1, 0, 1, 0],
        [3, 2, 1, 2, 1, 1],
        clicks.propensity,
        [1, 1, 1, 2, 2, 5],
    )
    pq.write_table(pa.table([*columns], ["qid", "label", "score", "seen", "w"]), tmp_path / "log.parquet")
    for read in (fn.read_parquet, fn.scan_parquet):
        source = read(tmp_path / "log.parquet", propensity="seen", weight="w")
        assert fn.snips(source, ["DCG(clip=0.2)", "CG@1"])[0] == fn.snips(clicks, "DCG(clip=0.2)")[0]


@pytest.mark.compiled
def test_command_line(tmp_path):
    clicks, *_ = simulated(50)
    queries = np.repeat(np.arange(50), 12)
    table = pa.table(
        {"qid": queries, "label": clicks.relevance, "score": clicks.scores, "seen": clicks.propensity}
    )
    pq.write_table(table.take(pa.array(np.random.default_rng(0).permutation(600))), tmp_path / "log.parquet")
    mean = fn.evaluate(clicks, "DCG(ips=True)@5").mean()["DCG(ips=True)@5"]
    for words, code, said in (
        ([], 3, "name its column, as in --propensity propensity"),
        (["--propensity", "seen"], 0, "propensity=seen"),
        (["--propensity", "score"], 3, 'column "score" has'),
    ):
        line = ["-m", "DCG(ips=True)@5", "--format", "csv", *words]
        result = commands.run("score", tmp_path / "log.parquet", *line)
        assert result.exit_code == code and said in result.stderr
        assert code or f"DCG(ips=True)@5,{mean!r}" in result.stdout


@pytest.mark.compiled
@pytest.mark.parametrize("bad", [0.0, -0.1, 1.5, math.nan, math.inf])
def test_bad_propensities_are_named(bad, tmp_path):
    said = "has 1 value that is not above 0 and up to 1; the first is .* at"
    with pytest.raises(InputError, match=f"propensity {said} position 0 of query 1"):
        fn.Rankings.from_lists([[1, 0], [1]], [[2, 1], [1]], propensity=[1, 0.5, bad])
    table = pa.table({"qid": [7, 8], "rel": [1, 0], "score": [0.5, 0.1], "seen": [1.0, bad]})
    pq.write_table(table, tmp_path / "log.parquet")
    for read in (fn.read_parquet, lambda path, **words: list(fn.scan_parquet(path, **words))):
        with pytest.raises(InputError, match=f'column "seen" {said} row 1, query 8'):
            read(tmp_path / "log.parquet", propensity="seen")


def pair(propensity=(1, 0.5), grades=(1, 0), scores=(2, 1)):
    return fn.Rankings.from_lists([grades], [scores], propensity=propensity)


@pytest.mark.compiled
def test_a_clip_and_ties():
    assert fn.evaluate(pair([1e-300, 1]), "DCG(ips=True, clip=0.5)").values[0, 0] == 2.0
    assert fn.evaluate(pair(), "DCG(ips=True)").values[0, 0] == 1.0 and "propensities" in repr(pair())
    ranges = fn.tie_range(pair(grades=[1, 1], scores=[1, 1]), "DCG(ips=True)@1")
    assert [bound.tolist() for bound in ranges["DCG(ips=True)@1"]] == [[1.0], [1.5], [2.0]]


@pytest.mark.compiled
def test_rows_in_any_order():
    rng = np.random.default_rng(2)
    queries, clicks, scores = rng.integers(0, 9, 200), rng.integers(0, 2, 200), rng.random(200)
    propensity = rng.uniform(0.1, 1, 200)

    def values(rows):
        rankings = fn.Rankings.from_query_ids(
            queries[rows], clicks[rows], scores[rows], propensity=propensity[rows]
        )
        found = fn.evaluate(rankings, "DCG(ips=True)@5").values[0].tolist()
        return dict(zip(rankings.query_ids.to_pylist(), found, strict=True))

    assert values(np.arange(200)) == values(np.argsort(queries, kind="stable"))
