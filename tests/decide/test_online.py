"""Offline beside online: correlations against SciPy, their intervals in a simulation, signs by hand, the picture."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg.errors import ColumnError, InputError, InputTypeError
from fastndcg.statistics.paired import correlation, pearson, share

stats = pytest.importorskip("scipy.stats")
PAIRS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=0, max_size=12)


@given(PAIRS)
def test_numbers_are_those_of_scipy(pairs):
    a, b = (np.array([pair[side] for pair in pairs], float) for side in (0, 1))
    rows = {row["method"]: row for row in fn.online_agreement(a, b).to_pylist()}
    assert [*rows] == ["pearson", "spearman", "kendall", "sign"]
    if len(pairs) > 1:
        varies = len({*a}) > 1 < len({*b})
        for method, test in (
            ("pearson", stats.pearsonr),
            ("spearman", stats.spearmanr),
            ("kendall", stats.kendalltau),
        ):
            wanted = test(a, b).statistic if varies else math.nan
            assert rows[method]["value"] == pytest.approx(wanted, abs=1e-12, nan_ok=True)
    agree = [x * y > 0 for x, y in zip(a.tolist(), b.tolist(), strict=True) if x and y]
    assert rows["sign"]["n"] == len(agree)
    assert rows["sign"]["value"] == pytest.approx(np.mean(agree) if agree else math.nan, nan_ok=True)
    for row in rows.values():
        assert math.isnan(row["low"]) or row["low"] <= row["value"] <= row["high"]


def test_intervals_are_those_of_scipy_and_of_a_slow_jackknife():
    rng = np.random.default_rng(0)
    a = rng.normal(size=30)
    b = a + rng.normal(size=30)
    row = fn.online_agreement(a, b, confidence=0.9).to_pylist()[0]
    without = [math.atanh(stats.pearsonr(np.delete(a, i), np.delete(b, i)).statistic) for i in range(30)]
    half = stats.t.ppf(0.95, 28) * math.sqrt(29 * np.var(without))
    middle = math.atanh(stats.pearsonr(a, b).statistic)
    assert (row["low"], row["high"]) == pytest.approx((math.tanh(middle - half), math.tanh(middle + half)))
    for hits, n in ((0, 5), (5, 5), (8, 10), (130, 200)):
        value, ends = share(hits, n, 0.95)
        wanted = stats.binomtest(hits, n).proportion_ci(method="wilson")
        assert value == hits / n and tuple(ends) == pytest.approx(tuple(wanted), abs=1e-12)
    perfect = fn.online_agreement([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]).to_pylist()
    assert [row["value"] for row in perfect] == pytest.approx([1, 1, 1, 1])
    assert all(math.isnan(row["low"]) for row in perfect[:3]) and perfect[3]["low"] > 0.5


def test_coverage():
    """bench/labels.py has more: here 400 samples of 50 pairs, of whose intervals about 20 may miss."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=400_000)
    b = 0.75 * a + rng.normal(size=400_000)
    tau = stats.kendalltau(a[:20_000], b[:20_000]).statistic
    true = [np.corrcoef(a, b)[0, 1], stats.spearmanr(a, b).statistic, tau, (a * b > 0).mean()]
    missed = np.zeros(4)
    for _ in range(400):
        one = rng.normal(size=50)
        found = fn.online_agreement(one, 0.75 * one + rng.normal(size=50))
        missed += ~((found["low"].to_numpy() <= true) & (true <= found["high"].to_numpy()))
    assert (missed < 36).all() and (missed > 5).all()


def test_experiments_by_name_and_queries_by_column():
    offline = {"a": 0.1, "b": -0.2, "c": 0.0, "d": 0.3, "e": 0.05, "f": None}
    online = {"f": 1.0, "e": 1, "d": 5, "c": 2, "b": -1, "a": math.nan}
    found = fn.online_agreement(offline, online)
    assert found["n"].to_pylist() == [4, 4, 4, 3] and found["value"].to_pylist()[3] == 1
    listed = fn.online_agreement(list(offline.values())[:-1], [math.nan, -1, 2, 5, 1])
    assert found.drop_columns(["low", "high"]) == listed.drop_columns(["low", "high"])
    nulls = fn.online_agreement(pa.array([1.0, None, 3.0]), pa.chunked_array([[1, 2], [None]]))
    assert nulls["n"].to_pylist() == [1, 1, 1, 1]
    rng = np.random.default_rng(2)
    grades, clicks = rng.integers(0, 3, (40, 5)), rng.integers(0, 9, 40)
    kept = {"clicks": pa.array([*clicks.tolist()[:-1], None]), "country": ["de"] * 40}
    scores = fn.evaluate(fn.Rankings.from_dense(grades, rng.random((40, 5)), queries=kept), ["nDCG", "RR"])
    rows = fn.online_agreement(scores, "clicks").to_pylist()
    assert [(row["measure"], row["method"]) for row in rows][:4] == [
        ("nDCG", "pearson"), ("nDCG", "spearman"), ("nDCG", "kendall"), ("RR", "pearson"),
    ]  # fmt: skip
    assert rows[0]["n"] == 39
    assert rows[2]["value"] == pytest.approx(fn.rank_agreement(scores["nDCG"][:39], clicks[:39]))
    with pytest.raises(ColumnError, match='column "country" has type string; name a column of numbers'):
        fn.online_agreement(scores, "country")
    kept = fn.Rankings.from_lists([[1, 0], [0, 1]], queries={"text": ["1", "2"], "far": [1.0, math.inf]})
    with pytest.raises(ColumnError, match='column "text" has type string; name a column of numbers'):
        fn.online_agreement(fn.evaluate(kept, "RR"), "text")
    with pytest.raises(ColumnError, match='column "far" has an infinite number in row 1'):
        fn.online_agreement(fn.evaluate(kept, "RR"), "far")
    with pytest.raises(ColumnError, match='there is no column "revenue"'):
        fn.online_agreement(scores, "revenue")


@pytest.mark.parametrize(
    ("offline", "online", "kind", "message"),
    [
        ({"a": 1}, {"b": 1}, InputError, "different experiments: 'a', 'b' in one of them only"),
        ([1, 2], [1], InputError, "online has 1 value for 2 experiments"),
        (["x"], ["y"], InputTypeError, "offline is a list of something else than finite numbers"),
        ([1, 2], [1, math.inf], InputTypeError, "online is a list of something else than finite numbers"),
        ([[1], [2]], [1, 2], InputTypeError, "offline is a list of something else"),
    ],
)
def test_refused(offline, online, kind, message):
    with pytest.raises(kind, match=message):
        fn.online_agreement(offline, online)


@pytest.mark.pure
def test_equal_values_have_no_correlation():
    """Their mean, 0.3 / 3, is not 0.1."""
    assert all(
        math.isnan(value) for value in fn.online_agreement([0.1] * 3, [1, 2, 3])["value"].to_pylist()[:3]
    )


def test_picture():
    pytest.importorskip("altair")
    chart = fn.plot.online({"a": 0.1, "b": -0.2, "c": 0.1}, {"a": 1, "b": 2, "c": None}).to_dict()
    (points,) = [data for data in chart["datasets"].values() if "experiment" in data[0]]
    assert [(row["experiment"], row["signs"]) for row in points] == [("a", "agree"), ("b", "differ")]
    assert "signs agree in 0.50" in str(chart["title"])
    with pytest.raises(InputError, match="no experiment has both numbers"):
        fn.plot.online([math.nan], [1.0])


@pytest.mark.pure
def test_intervals_of_shares_have_the_share():
    """Rounding left 0 of 7 at 3e-17 and above, and 1 above the end."""
    for n in range(1, 60):
        for hits in range(n + 1):
            for confidence in (0.9, 0.95, 0.99):
                value, (low, high) = share(hits, n, confidence)
                assert 0 <= low <= value <= high <= 1


def test_a_few_large_experiments_do_not_make_pearson_sure():
    """Student's t with 4 degrees of freedom: by the error of normal values some 60 of these 400 intervals missed."""
    rng = np.random.default_rng(3)
    a = rng.standard_t(4, 1_000_000)
    true = pearson(a, 0.75 * a + rng.standard_t(4, 1_000_000))
    missed = 0
    for _ in range(400):
        x = rng.standard_t(4, 50)
        _, ends = correlation("pearson", x, 0.75 * x + rng.standard_t(4, 50), 0.95)
        missed += not ends.low <= true <= ends.high
    assert 8 <= missed <= 36
    equal = correlation("pearson", np.array([0, 0, 0, 0, 0, 9.0]), np.array([0, 1, 0, 1, 0, 9.0]), 0.95)
    assert -1 <= equal[1].low <= equal[0] <= equal[1].high <= 1
