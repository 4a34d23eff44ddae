"""`drift`: within and mix make up the change, by laws and in plain Python; intervals cover."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import fastndcg as fn
from fastndcg.measures import as_measures


def scores_of(values, slices, ids=None, weight=None, measure="nDCG@10"):
    values = np.asarray(values, np.float64)
    kept = {"query_id": np.arange(len(values)) if ids is None else ids, "slice": pa.array(slices)}
    kept |= {} if weight is None else {"weight": weight}
    empty = np.zeros((1, len(values)), np.bool_)
    return fn.Scores(as_measures(measure), values[None], empty, pa.table(kept), weight)


def slowly(old, new):
    """Within and mix of each slice, in fractions."""
    sides = []
    for scores in (old, new):
        groups = {}
        weights = [1] * len(scores) if scores.weight is None else scores.weight.tolist()
        for name, value, weight in zip(
            scores.queries["slice"].to_pylist(), scores.values[0].tolist(), weights, strict=True
        ):
            sums = groups.setdefault(name, [Fraction(0), Fraction(0)])
            sums[0] += Fraction(weight)
            sums[1] += Fraction(weight) * Fraction(value)
        whole = sum(sums[0] for sums in groups.values())
        sides.append({name: (sums[0] / whole, sums[1] / sums[0]) for name, sums in groups.items()})
    centre = sum(p * m for side in sides for p, m in side.values()) / 2
    found = {}
    for name in {*sides[0], *sides[1]}:
        (p0, m0), (p1, m1) = (
            side.get(name, (Fraction(0), other.get(name, (0, Fraction(0)))[1]))
            for side, other in (sides, sides[::-1])
        )
        found[name] = (p0 + p1) / 2 * (m1 - m0), (p1 - p0) * ((m0 + m1) / 2 - centre)
    return found


@pytest.mark.pure
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("paired", [False, True])
def test_within_and_mix_make_up_the_change(weighted, paired):
    random = np.random.default_rng(0)
    for _ in range(60):
        sizes = random.integers(2, 40, 2)
        old, new = (
            scores_of(
                random.random(n), [["a", "b", "c", first, None][each] for each in random.integers(0, 5, n)],
                weight=random.random(n) + 0.1 if weighted else None,
            )
            for n, first in zip(sizes.tolist(), ("x", "y"), strict=True)
        )  # fmt: skip
        whole, *slices = fn.drift(old, new, "slice", paired=paired).to_pylist()
        assert whole["part"] == "all" and {row["part"] for row in slices} == {"slice"}
        assert whole["change"] == pytest.approx(whole["within"] + whole["mix"], abs=1e-14)
        assert whole["change"] == new.mean()["nDCG@10"] - old.mean()["nDCG@10"]
        expected = slowly(old, new)
        assert expected.keys() == {row["slice"] for row in slices}
        for row in slices:
            assert (row["within"], row["mix"]) == pytest.approx(
                tuple(map(float, expected[row["slice"]])), abs=1e-14
            )
        for name, low, high in (
            ("change", "low", "high"),
            *((n, f"{n}_low", f"{n}_high") for n in ("within", "mix")),
        ):
            assert whole[low] <= whole[name] <= whole[high]
            assert (
                sum(row[name] for row in slices) == pytest.approx(whole[name], abs=1e-13) or name == "change"
            )


@pytest.mark.pure
def test_the_interval_of_the_change_is_that_of_compare():
    random = np.random.default_rng(1)
    slices, order = random.integers(0, 3, 50), random.permutation(50)
    old, new = scores_of(random.random(50), slices), scores_of(random.random(50), slices)
    shuffled = scores_of(new.values[0][order], slices[order], ids=order)
    shorter = scores_of(new.values[0][:30], slices[:30])
    for other, paired in ((new, True), (shuffled, True), (shorter, False)):
        row = fn.compare({"old": old, "new": other}, "old", paired=paired).rows[0]
        found = fn.drift(old, other, "slice", paired=paired).to_pylist()[0]
        numbers = [row[name] for name in ("difference", "low", "high")]
        assert [found[name] for name in ("change", "low", "high")] == pytest.approx(numbers, rel=1e-12)
    # of the same queries in the same slices nothing is mix, and a slice is a comparison of its own
    whole, *of_slices = fn.drift(old, new, "slice").to_pylist()
    assert whole["mix"] == whole["mix_low"] == whole["mix_high"] == 0
    for place, row in enumerate(of_slices):
        part = {name: scores_of(each.values[0][slices == place], slices[slices == place]) for name, each in
                (("old", old), ("new", new))}  # fmt: skip
        alone = fn.compare(part, "old").rows[0]
        numbers = [alone[name] for name in ("difference", "low", "high")]
        assert [row[name] for name in ("change", "low", "high")] == pytest.approx(numbers, rel=1e-12)


@pytest.mark.compiled
def test_intervals_cover_the_truth():
    """Of 600 draws 95 % would be 570; 5 deviations are 27."""
    random = np.random.default_rng(2)
    shares, means = (
        np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3]]),
        np.array([[0.7, 0.5, 0.3], [0.72, 0.45, 0.35]]),
    )
    truth = {
        "within": float((shares.mean(0) * (means[1] - means[0])).sum()),
        "mix": float(((shares[1] - shares[0]) * means.mean(0)).sum()),
    }
    hits = dict.fromkeys(truth, 0)
    for _ in range(600):
        sides = []
        for share, mean in zip(shares, means, strict=True):
            slices = random.choice(3, 50, p=share)
            sides.append(scores_of(random.beta(2 * mean[slices], 2 - 2 * mean[slices]), slices))
        row = fn.drift(sides[0], sides[1], "slice", paired=False).to_pylist()[0]
        for name, value in truth.items():
            hits[name] += row[f"{name}_low"] <= value <= row[f"{name}_high"]
    assert all(543 < number < 597 for number in hits.values()), hits


@pytest.mark.pure
def test_slices_of_one_query_have_the_deviation_of_the_others():
    random = np.random.default_rng(3)
    values, names = random.random((2, 60)), [str(each) for each in range(60)]
    whole = fn.drift(*(scores_of(each, names) for each in values), "slice", paired=False).to_pylist()[0]
    assert whole["within"] == pytest.approx(whole["change"])  # and is no surer
    assert whole["within_high"] - whole["within_low"] > whole["high"] - whole["low"]
    same = fn.drift(*(scores_of(values[0], names) for _ in range(2)), "slice").to_pylist()[0]
    assert same["within_low"] == same["within_high"] == same["mix_high"] == 0
    # 20 slices, half of which are rare: the error is that which draws of the whole have
    means, shares = np.linspace(0.2, 0.8, 20), np.array([0.09] * 10 + [0.01] * 10)
    drawn, errors = [], []
    for _ in range(150):
        sides = []
        for rise in (0, 0.1):
            slices = random.choice(20, 50, p=shares)
            sides.append(scores_of(means[slices] + rise + random.normal(0, 0.15, 50), slices))
        row = fn.drift(*sides, "slice", paired=False).to_pylist()[0]
        drawn.append(row["within"])
        errors.append((row["within_high"] - row["within_low"]) / 2 / 1.98)
    assert np.mean(errors) == pytest.approx(np.std(drawn), rel=0.2)


@pytest.mark.pure
def test_small_and_wrong_input():
    one, two = scores_of([0.5], ["a"]), scores_of([0.25, 0.5], ["a", "b"])
    whole, _, second = fn.drift(one, two, "slice").to_pylist()
    assert whole["change"] == -0.125 and math.isnan(whole["low"])
    whole = fn.drift(one, scores_of([0.25], ["a"]), "slice").to_pylist()[0]  # a query has no deviation
    assert whole["within"] == -0.25 and math.isnan(whole["low"]) and math.isnan(whole["within_high"])
    assert (second["old_queries"], second["within"]) == (0, 0) and math.isnan(second["old_mean"])
    skipped = scores_of([np.nan, 0.5], ["b", "a"], measure="nDCG(empty='skip')@10")
    row = fn.drift(skipped, skipped, "slice").to_pylist()[0]
    assert (row["change"], row["old_queries"]) == (0, 1)
    with pytest.raises(fn.ColumnError, match='there is no column "country" in "old"'):
        fn.drift(one, two, "country")
    with pytest.raises(fn.InputError, match="by names no column"):
        fn.drift(one, two, [])
    with pytest.raises(fn.InputError, match="has no queries"):
        fn.drift(scores_of([], []), two, "slice")
    with pytest.raises(fn.InputError, match="more than once"):
        fn.drift(scores_of([0.1, 0.2], ["a", "b"], ids=[1, 1]), two, "slice")
    with pytest.raises(fn.InputTypeError, match="wanted Scores"):
        fn.drift({}, two, "slice")


@pytest.mark.pure
def test_slices_of_other_types():
    texts, words = (
        scores_of([0.5, 1], ["a", "b"]),
        scores_of([0.5, 0], pa.array(["a", "c"]).dictionary_encode()),
    )
    assert fn.drift(texts, words, "slice")["slice"].to_pylist() == [None, "a", "b", "c"]
    with pytest.raises(fn.ColumnError, match='"slice" has the types string in "old" and int64 in "new"'):
        fn.drift(texts, scores_of([0.5], [1]), "slice")
    with pytest.raises(fn.InputTypeError, match="a int names no column"):
        fn.drift(texts, words, 3)
