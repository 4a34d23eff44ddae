"""Few labels of people and many of a judge: against the oracle, the authors' package, and a simulation of coverage."""

import math
import pickle

import numpy as np
import oracle
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg.errors import ColumnError, InputError, InputTypeError
from fastndcg.statistics.paired import controlled

pytestmark = pytest.mark.compiled

VALUES = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1)), min_size=3, max_size=9)
MORE = st.lists(st.floats(0, 1), min_size=2, max_size=9)


def scores_of(values, ids=None, **options):
    """Scores that have these values, as RR of one document has them with weights of gains."""
    values = np.asarray(values, np.float64)
    ids = list(range(len(values))) if ids is None else ids
    rankings = fn.Rankings.from_lists([[v] for v in values.tolist()], query_ids=ids, **options)
    return fn.evaluate(rankings, "CG@1")


@pytest.mark.pure
@given(VALUES, MORE)
def test_oracle(pairs, more):
    y, f = (np.array(side) for side in zip(*pairs, strict=True))
    found = controlled(y, f, np.array(more))
    mean, weight, error = oracle.prediction_powered(y.tolist(), f.tolist(), more)
    assert found.weight == pytest.approx(weight, rel=1e-9, abs=1e-12)
    assert found.mean == pytest.approx(mean, rel=1e-9, abs=1e-12)
    if found.weight:
        assert found.error == pytest.approx(error, rel=1e-6, abs=1e-9)
    assert 0 <= found.weight <= 1
    low, high = found.interval(0.95)
    assert low <= found.mean <= high


@pytest.mark.pure
@given(VALUES, MORE, st.sampled_from([0.5, 4.0]), st.integers(-3, 3))
def test_it_moves_and_grows_with_its_values(pairs, more, scale, shift):
    """A judge that is too generous by a constant changes nothing; another unit scales mean and interval."""
    y, f = (np.array(side) for side in zip(*pairs, strict=True))
    first = controlled(y, f, np.array(more))
    moved = controlled(y, f + shift, np.array(more) + shift)
    assert moved.mean == pytest.approx(first.mean, abs=1e-6) and moved.error == pytest.approx(
        first.error, rel=1e-5, abs=1e-6
    )
    larger = controlled(y * scale, f * scale, np.array(more) * scale)
    assert larger.mean == pytest.approx(first.mean * scale, rel=1e-9, abs=1e-12)
    assert larger.error == pytest.approx(first.error * scale, rel=1e-9, abs=1e-12)
    order = np.random.default_rng(0).permutation(len(y))
    assert controlled(y[order], f[order], np.array(more)[::-1]).mean == pytest.approx(first.mean, abs=1e-12)


@pytest.mark.pure
def test_weight_and_mean_are_those_of_the_authors():
    """Numbers of ppi_py 0.2.3: `ppi_mean_pointestimate` and `ppi_mean_ci` of the same draws."""
    rng = np.random.default_rng(0)
    y = rng.random(60)
    f = np.clip(y + 0.2 * rng.normal(size=60), 0, 1) + 0.2
    g = rng.random(500) + 0.2
    found = controlled(y, f, g)
    assert found.mean == pytest.approx(0.50019321, abs=5e-9)
    low, high = found.interval(0.95)
    assert low < 0.4521928 and high > 0.54819363, "theirs is the narrower, and misses more"
    assert low == pytest.approx(0.4521928, abs=0.002) and high == pytest.approx(0.54819363, abs=0.002)


@pytest.mark.pure
def test_weights_of_queries():
    """A query of weight 2 is two queries in the mean; equal weights change nothing; one of 0 is none."""
    rng = np.random.default_rng(1)
    y, f, g = rng.random(20), rng.random(20), rng.random(50)
    f = 0.5 * f + 0.5 * y
    plain = controlled(y, f, g)
    for each in (np.full(20, 3.0), np.full(50, 3.0)), (np.ones(20), np.ones(50)):
        assert controlled(y, f, g, each) == pytest.approx(plain, rel=1e-12)
    zeros = np.append(np.ones(20), 0.0), np.append(np.ones(50), 0.0)
    assert controlled(np.append(y, 9), np.append(f, 9), np.append(g, 9), zeros) == pytest.approx(
        plain, rel=1e-9
    )
    w, u = rng.integers(1, 4, 20).astype(float), rng.integers(1, 4, 50).astype(float)
    weighted = controlled(y, f, g, (w, u))
    own = np.average(y, weights=w) + weighted.weight * (np.average(g, weights=u) - np.average(f, weights=w))
    assert weighted.mean == pytest.approx(own)


@pytest.mark.pure
def test_ends():
    y, g = np.array([0.2, 0.4, 0.9, 0.1]), np.array([0.5, 0.2, 0.7])
    nearly = controlled(y, np.array([0, 0, 0, 1e-38]), np.array([0.0, 1.0]))
    assert nearly.weight == 0 and nearly.error == pytest.approx(y.std(ddof=1) / 2), "equal up to rounding"
    constant = controlled(y, np.full(4, 0.3), np.full(3, 0.3))
    assert constant.weight == 0 and constant.mean == pytest.approx(0.4) and constant.effective == 4
    against = controlled(y, -y, -g)
    assert against.weight == 0 and against.mean == pytest.approx(0.4), "a judge that errs has no say"
    assert controlled(y, 0.1 * y, 0.1 * g).weight == 1, "and at most that of a person"
    assert controlled(y, y, g[:0]) == controlled(y, y, g[:1]), "no more of the judge: the people's mean"
    assert controlled(np.full(4, 0.5), y, g).interval(0.95) == (0.5, 0.5)
    assert math.isnan(controlled(np.array([0.1, math.nan, 1]), np.ones(3), g).mean)
    assert math.isnan(controlled(y, y, np.array([0.1, math.nan])).mean)
    assert math.isnan(controlled(y[:0], y[:0], g).mean)
    two = controlled(y[:2], y[:2], g)
    assert two.weight == 0 and two.mean == pytest.approx(0.3)
    perfect = controlled(y, y, np.tile(g, 100))
    assert perfect.weight > 0.98 and perfect.effective > 50


def draws(kind, rng, n):
    if kind == "P@4":
        y = rng.binomial(4, rng.beta(1.5, 1.5, n)) / 4
        return y, np.clip(y + (rng.random(n) < 0.3) / 4 - (rng.random(n) < 0.15) / 4, 0, 1)
    y = np.clip(0.55 + 0.28 * rng.normal(size=n), 0, 1)
    return y, np.clip(0.15 + 0.8 * y + 0.15 * rng.normal(size=n), 0, 1)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["nDCG", "P@4"])
def test_coverage(kind):
    """bench/coverage.py has the larger one: here 2,000 samples of 50 labels, of which 5 % may miss, and 3 sigma."""
    rng = np.random.default_rng(3)
    true = draws(kind, rng, 2_000_000)[0].mean()
    missed, wide, alone = 0, 0.0, 0.0
    for _ in range(2000):
        y, f = draws(kind, rng, 1000)
        found = controlled(y[:50], f[:50], f[50:])
        low, high = found.interval(0.95)
        missed += not low <= true <= high
        wide, alone = wide + found.error, alone + y[:50].std() / math.sqrt(50)
    assert 0.035 < missed / 2000 < 0.065
    assert wide < 0.7 * alone


# ---- of scores ----


def test_scores_are_matched_by_query():
    rng = np.random.default_rng(2)
    f = rng.random(40)
    y = 0.5 * f + 0.5 * rng.random(40)
    ids = [f"q{place}" for place in range(40)]
    judge = scores_of(f, ids)
    chosen = rng.permutation(40)[:12]
    human = scores_of(y[chosen], [ids[place] for place in chosen])
    found = fn.prediction_powered(human, judge)
    rest = np.setdiff1d(np.arange(40), chosen)
    wanted = controlled(y[chosen], f[chosen], f[rest])
    (row,) = found.to_pylist()
    assert [*row] == ["measure", "mean", "low", "high", "weight", "n", "n_judge", "effective"]
    low, high = wanted.interval(0.95)
    numbers = [wanted.mean, low, high, wanted.weight, 12, 40, wanted.effective]
    assert [*row.values()] == ["CG@1", *numbers]
    assert fn.prediction_powered(human, judge, 0.5)["low"][0].as_py() > low
    assert pickle.loads(pickle.dumps(found)) == found and type(pickle.loads(pickle.dumps(found))) is type(
        found
    )
    whole = fn.prediction_powered(judge, judge).to_pylist()[0]
    assert whole["n"] == whole["n_judge"] == 40 and whole["weight"] == 0
    summary = judge.summary(0.95).rows[0]
    assert [whole[end] for end in ("mean", "low", "high")] == [
        summary[end] for end in ("mean", "low", "high")
    ]
    with pytest.raises(InputError, match="give mappings of two systems"):
        found.no_worse_than("a")


def systems():
    rng = np.random.default_rng(4)
    country = np.array(["de", "fr"])[rng.integers(0, 2, 300)]
    grades = rng.integers(0, 4, (300, 8))
    model = np.clip(grades + rng.integers(0, 2, grades.shape), 0, 3)
    values = {"country": country}
    people, machine = {}, {}
    for name, noise in (("old", 3.0), ("new", 1.0)):
        s = grades + rng.normal(0, noise, grades.shape)
        people[name] = fn.evaluate(fn.Rankings.from_dense(grades[:80], s[:80]), ["nDCG@5", "RR"])
        machine[name] = fn.evaluate(
            fn.Rankings.from_dense(model, s, queries={"country": country}), ["nDCG@5", "RR"]
        )
        values[name], values[f"judge {name}"] = people[name]["nDCG@5"], machine[name]["nDCG@5"]
    return people, machine, values


def test_differences_slices_and_a_gate():
    people, machine, values = systems()
    found = fn.prediction_powered(people, machine)
    y, f = values["new"] - values["old"], values["judge new"] - values["judge old"]
    wanted = controlled(y, f[:80], f[80:])
    row = found.to_pylist()[0]
    assert (row["measure"], row["system"], row["baseline"]) == ("nDCG@5", "new", "old")
    assert row["mean"] == pytest.approx(wanted.mean) and row["effective"] == pytest.approx(wanted.effective)
    assert row["mean"] > 0.05 and row["effective"] > 80
    assert found.no_worse_than("old") == {"nDCG@5": True, "RR": found["low"][1].as_py() >= 0}
    assert found.no_worse_than("new")["nDCG@5"] is False
    assert found.no_worse_than("new", margin=1.0, system="old")["nDCG@5"] is True
    turned = fn.prediction_powered(people, machine, baseline="new").to_pylist()[0]
    assert turned["mean"] == pytest.approx(-row["mean"]) and turned["low"] == pytest.approx(-row["high"])
    sliced = fn.prediction_powered(people, machine, by="country", measures="nDCG@5")
    assert sliced["country"].to_pylist() == ["de", "fr"]
    of = values["country"] == "fr"
    own = controlled(y[of[:80]], f[of][: of[:80].sum()], f[of][of[:80].sum() :])
    assert sliced["mean"][1].as_py() == pytest.approx(own.mean)
    assert sliced["n_judge"].to_pylist() == [int((~of).sum()), int(of.sum())]
    assert "country" in repr(sliced) and sliced.no_worse_than("old", 0.5) == {"nDCG@5": True}


def test_a_slice_without_labels_has_no_number():
    judge = scores_of([0.1, 0.2, 0.3, 0.4], queries={"day": ["mo", "mo", None, None]})
    found = fn.prediction_powered(scores_of([0.5, 0.7]), judge, by=["day"])
    assert found["day"].to_pylist() == ["mo", None]
    assert found["n"].to_pylist() == [2, 0]
    assert found["mean"][0].as_py() == pytest.approx(0.6) and math.isnan(found["mean"][1].as_py())
    none = fn.prediction_powered(scores_of([]), judge)
    assert none["n"].to_pylist() == [0] and math.isnan(none["mean"][0].as_py())


def test_rankings_and_weights():
    rng = np.random.default_rng(5)
    grades, scores = rng.integers(0, 2, (30, 4)), rng.random((30, 4))
    weight = rng.integers(1, 5, 30)
    judge = fn.Rankings.from_dense(grades, scores, weight=weight)
    human = fn.Rankings.from_dense(1 - grades[:10], scores[:10], weight=weight[:10])
    found = fn.prediction_powered(human, judge, measures="RR").to_pylist()[0]
    y, f = (fn.evaluate(each, "RR")["RR"] for each in (human, judge))
    wanted = controlled(y, f[:10], f[10:], (weight[:10].astype(float), weight[10:].astype(float)))
    assert found["mean"] == wanted.mean and found["effective"] == wanted.effective
    with pytest.raises(InputError, match='"human" has none; give all systems the same'):
        fn.prediction_powered(fn.Rankings.from_dense(grades[:10], scores[:10]), judge, measures="RR")


def test_refused():
    one, other = scores_of([0.1, 0.2, 0.3]), scores_of([0.1, 0.2, 0.3, 0.4])
    with pytest.raises(InputError, match='"judge" lacks 1 query that others have: 3. Give the judge'):
        fn.prediction_powered(other, one)
    with pytest.raises(InputTypeError, match="human is a Scores and judge a dict; give both"):
        fn.prediction_powered(one, {"a": other})
    with pytest.raises(InputError, match="human has the systems a and judge a; give the same, two or more"):
        fn.prediction_powered({"a": one}, {"a": other})
    with pytest.raises(InputError, match="human has the systems a, b and judge a, c"):
        fn.prediction_powered({"a": one, "b": one}, {"a": other, "c": other})
    with pytest.raises(InputTypeError, match='"judge" is a list; wanted Scores'):
        fn.prediction_powered(one, [1])
    with pytest.raises(ColumnError, match='there is no column "country"'):
        fn.prediction_powered(one, other, by="country")
    with pytest.raises(ColumnError, match='the column "weight" has the name of a column of the result'):
        fn.prediction_powered(scores_of([0.1], weight=[1]), scores_of([0.1, 0.2], weight=[1, 2]), by="weight")
    with pytest.raises(InputError, match="confidence=95 is not between 0 and 1"):
        fn.prediction_powered(one, other, 95)
    pair = {"a": one, "b": one}, {"a": other, "b": other}
    with pytest.raises(InputError, match='baseline="c" is not one of the systems: a, b'):
        fn.prediction_powered(*pair, baseline="c")
    with pytest.raises(InputError, match='"a" was compared with no "c"'):
        fn.prediction_powered(*pair).no_worse_than("a", system="c")
    with pytest.raises(InputError, match='"z" is not one of the systems: a, b'):
        fn.prediction_powered(*pair).no_worse_than("z")
    human = fn.evaluate(fn.Rankings.from_lists([[1, 0], [0, 0], [1, 1]]), "nDCG(empty='skip')")
    judge = fn.evaluate(fn.Rankings.from_lists([[1, 0], [1, 0], [1, 1], [0, 0]]), "nDCG(empty='skip')")
    with pytest.raises(InputError, match="evaluate it with empty=0"):
        fn.prediction_powered(human, judge)
    assert fn.prediction_powered(judge, judge).to_pylist()[0]["n_judge"] == 3


def test_its_tables_are_read_by_others():
    people, machine, _ = systems()
    table = pa.table(fn.prediction_powered(people, machine))
    assert table.schema.field("n").type == pa.int64() and table.schema.field("effective").type == pa.float64()
