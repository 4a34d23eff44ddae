"""Measures of click logs: against the oracle, by a simulation of what users saw, and what is refused."""

import math

import commands
import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg.errors import InputError

pytestmark = pytest.mark.compiled

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
def test_oracle(table):
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


def test_a_clip_and_ties():
    assert fn.evaluate(pair([1e-300, 1]), "DCG(ips=True, clip=0.5)").values[0, 0] == 2.0
    assert fn.evaluate(pair(), "DCG(ips=True)").values[0, 0] == 1.0 and "propensities" in repr(pair())
    ranges = fn.tie_range(pair(grades=[1, 1], scores=[1, 1]), "DCG(ips=True)@1")
    assert [bound.tolist() for bound in ranges["DCG(ips=True)@1"]] == [[1.0], [1.5], [2.0]]


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
