"""`compare`: its numbers against SciPy and published ones, laws of any values, matching of queries, tables, ranks and gates."""

import itertools
import json
import math
import re
import sys
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import facts, run
from hypothesis import given
from hypothesis import strategies as st
from systems import compared, drawn, row_of, scores_of

import fastndcg as fn
from fastndcg.analysis.compare import letters_of
from fastndcg.scores.scores import Scores
from fastndcg.statistics import exact_sum, mean
from fastndcg.statistics.resampling import METHODS
from fastndcg.statistics.significance import (
    Spread,
    benjamini_hochberg,
    holm,
    shift_to_detect,
    t_quantile,
    t_two_sided,
)

stats = pytest.importorskip("scipy.stats")

# ---- numbers ----


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.sampled_from([0.5, 0.95, 0.999]))
def test_t_and_welch_are_those_of_scipy(seed, n, confidence):
    a, b = drawn(seed, n)
    if np.ptp(b - a) < 1e-9 or not np.ptp(a) or not np.ptp(b):
        return
    for paired, found in ((True, stats.ttest_rel(b, a)), (False, stats.ttest_ind(b, a, equal_var=False))):
        row = row_of(a, b, confidence=confidence, paired=paired)
        assert row["p"] == row["p_adjusted"] == pytest.approx(found.pvalue, rel=1e-12)
        ends = found.confidence_interval(confidence)
        assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high), rel=1e-11, abs=1e-12)
        assert (row["queries"], row["wins"] is None) == ((n, False) if paired else (2 * n, True))
    row, error = row_of(a, b, confidence=confidence), stats.sem(b - a)
    effect = (1 - 3 / (4 * (n - 1) - 1)) * (b - a).mean() / (b - a).std(ddof=1) if n > 2 else math.nan
    assert row["effect"] == pytest.approx(effect, rel=1e-9, nan_ok=True)
    shift = stats.t.ppf([(1 + confidence) / 2, 0.8], n - 1).sum()
    assert row["detectable"] == pytest.approx(shift * error, rel=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(3, 40), st.booleans())
def test_an_error_of_clusters_is_the_sandwich(seed, n, alone):
    """Also where each query is a cluster, and without weights; neither order nor numbers change a bit."""
    random = np.random.default_rng(seed)
    clusters = random.permutation(n) if alone else random.integers(0, 12, n)
    values, n_clusters = random.random(n) + clusters / 10, len(np.unique(clusters))
    order, renumbered = random.permutation(n), random.permutation(max(n, 12))[clusters]
    for weight in (None, random.exponential(size=n)):
        w = np.ones(n) if weight is None else weight
        found = Spread.of(values, weight, clusters)
        mean = (w * values).sum() / w.sum()
        sums = np.bincount(clusters, weights=w * (values - mean))
        error = math.sqrt(n_clusters / max(n_clusters - 1, 1) * (sums**2).sum()) / w.sum()
        if n_clusters > 1:
            assert (found.mean, found.error) == pytest.approx((mean, error), rel=1e-9)
            assert found.freedom == n_clusters - 1
        again = Spread.of(values[order], None if weight is None else weight[order], renumbered[order])
        assert repr(again) == repr(found)


def test_corrections_are_those_of_scipy_and_of_their_definition():
    p = np.random.default_rng(0).random(17).tolist()
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p).tolist(), rel=1e-14)
    # Holm's table with R's p.adjust
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])
    assert holm([0.01, math.nan, 0.03])[:1] == [0.02] and math.isnan(holm([0.01, math.nan])[1])
    values = drawn(5, 50, 4)
    systems = {name: scores_of(values[place]) for place, name in enumerate("abcd")}
    for correction, adjust in (("holm", holm), ("bh", benjamini_hochberg)):
        rows = fn.compare(systems, correction=correction).rows
        assert len(rows) == 6
        assert [row["p_adjusted"] for row in rows] == adjust([row["p"] for row in rows])
    assert [row["system"] for row in fn.compare(systems, "c").rows] == ["a", "b", "d"]


@pytest.mark.parametrize("ids", [[3, 4], ["c", "d"]], ids=["integers", "strings"])
def test_a_system_without_queries(ids):
    """Its ids had a type of their own, or, as part of a longer array, none of Arrow's buffers, and its values no column to take."""
    full = fn.Rankings.from_lists([[1, 0], [0, 1]], query_ids=ids, queries={"user": [1, 2]})
    for empty in (full[2:], full[1:1], fn.Rankings.from_lists([], query_ids=[])):
        for one, other, means in ((full, empty, (0.5, 0.75)), (empty, full, (0.75, 0.5))):
            (row,) = fn.compare({"a": one, "b": other}, measures="RR", missing=0.5, baseline="a").rows
            assert (row["mean"], row["baseline_mean"], row["queries"]) == (*means, 2)
            (row,) = fn.compare({"a": one, "b": other}, measures="RR", missing="drop").rows
            assert math.isnan(row["mean"]) and row["queries"] == 0
            with pytest.raises(fn.InputError, match="lacks 2 queries that others have"):
                fn.compare({"a": one, "b": other}, measures="RR")
        assert fn.compare({"a": empty, "b": empty}, measures="RR").rows[0]["queries"] == 0


@pytest.mark.parametrize("paired", [True, False])
def test_clusters_of_equal_means_have_no_error(paired):
    """A difference without an error was divided by it."""
    for shift, ours in ((0.0, [0.25, 0.75] * 3), (0.5, [0.75, 1.25] * 3)):
        row = row_of([0.5] * 6, ours, cluster=[7, 7, 8, 8, 9, 9], paired=paired)
        assert row["low"] == row["high"] == row["difference"] == shift
        assert (row["effect"] > 0) == bool(shift)
        assert row["p"] == 1 if not shift else row["p"] < 1e-300
    assert row["detectable"] == 0


def test_of_equal_and_of_constant_differences():
    row = row_of([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    assert (row["p"], row["low"], row["high"], row["ties"]) == (1, 0, 0, 3) and math.isnan(row["effect"])
    row = row_of([0.25, 0.5, 0.75], [0.5, 0.75, 1.0])
    assert 0 < row["p"] < 1e-300 and row["low"] == row["high"] == 0.25
    row = row_of([0.1], [0.2])
    assert math.isnan(row["p"]) and math.isnan(row["low"]) and row["difference"] == 0.1
    assert row_of([], [])["queries"] == 0
    many = np.random.default_rng(0).normal(1, 0.01, 5000)
    assert row_of(np.zeros(5000), many)["p"] > 0
    row = row_of([0.1, math.nan, 0.2], [0.1, 0.5, 0.3])
    assert math.isnan(row["p"]) and math.isnan(row["mean"]) is False and math.isnan(row["baseline_mean"])


def test_tolerance_makes_ties():
    row = row_of([0.5, 0.5, 0.5, 0.5], [0.5, 0.51, 0.8, 0.1], tolerance=0.05)
    assert (row["wins"], row["ties"], row["losses"]) == (1, 2, 1)


# ---- matching ----


def test_queries_that_are_missing():
    a = scores_of([0.1, 0.2, 0.3], query_ids=["x", "y", "z"])
    b = scores_of([0.5, 0.7, 0.9, 0.1], query_ids=["z", "u", "x", "v"])
    said = """"a" lacks 2 queries that others have: 'u', 'v'. "b" lacks 1 query that others have: 'y'. Pass missing="drop\""""
    with pytest.raises(fn.InputError, match=said):
        fn.compare({"a": a, "b": b})
    dropped = fn.compare({"a": a, "b": b}, missing="drop")
    assert dropped.rows[0]["queries"] == 2 and dropped.rows[0]["difference"] == pytest.approx((0.8 + 0.2) / 2)
    assert {name: ids.to_pylist() for name, ids in dropped.missing.items()} == {"a": ["u", "v"], "b": ["y"]}
    assert "lacks 2 queries" in repr(dropped) and '"lacks' not in repr(dropped)
    filled = fn.compare({"a": a, "b": b}, missing=0.0)
    assert filled.rows[0]["queries"] == 5
    assert filled.means["nDCG@1"] == pytest.approx({"a": 0.6 / 5, "b": 2.2 / 5})
    assert sorted(filled.movers("nDCG@1")["query_id"].to_pylist()) == ["u", "v", "x", "y", "z"]
    assert filled.movers("nDCG@1", n=1).to_pylist() == [
        {"query_id": "x", "baseline": 0.1, "system": 0.9, "difference": 0.8}
    ]


def test_ids_of_several_kinds():
    a, b = np.array([0.1, 0.2]), np.array([0.4, 0.3])
    for one, other in (
        (pa.array(["x", "y"]), pa.array(["y", "x"], pa.large_string())),
        (pa.array(["x", "y"]).dictionary_encode(), pa.array(["y", "x"])),
        (pa.array([1, 2], pa.int32()), pa.array([2, 1])),
        (pa.array([1, 2], pa.uint64()), pa.array([2, 1])),
        (pa.array(["1", "2"]), pa.array([2, 1])),  # as results that were stored as CSV or JSON Lines
    ):
        found = fn.compare({"a": scores_of(a, query_ids=one), "b": scores_of(b[::-1], query_ids=other)})
        assert found.rows[0]["difference"] == pytest.approx(0.2)
    days = pa.array([1, 2], pa.date32())
    for one, other, ids in (
        (["1", "2"], [2, 3], ["1", "2", "3"]),
        (pa.array([1, 2], pa.uint64()), [2, 3], [1, 2, 3]),
        (pa.array(["1", "2"]).dictionary_encode(), ["2", "3"], ["1", "2", "3"]),
        (days, ["1970-01-03", "x"], ["1970-01-02", "1970-01-03", "x"]),
    ):
        mixed = {"a": scores_of(a, query_ids=one), "b": scores_of(b, query_ids=other)}
        filled = fn.compare(mixed, missing=0.0).movers("nDCG@1", n=None)
        assert filled["query_id"].to_pylist() == ids
        assert filled["difference"].to_pylist() == pytest.approx([-0.1, 0.2, 0.3])
    with pytest.raises(fn.InputError, match="\"a\" has query 'x' more than once"):
        fn.compare({"a": scores_of(a, query_ids=["x", "x"]), "b": scores_of(b)})


def test_independent_samples_with_two_scales_of_grades_are_cautioned():
    one, other = (fn.Rankings.from_lists([[0, top], [top, 0], [1, 0]]) for top in (2, 4))
    found = fn.compare({"a": one, "b": other}, "nDCG@1", paired=False)
    assert any("The highest grade is 2 in a, 4 in b" in caution for caution in found.cautions)
    alike = fn.compare({"a": one, "b": one}, "nDCG@1", paired=False)
    assert not any("highest grade" in caution for caution in alike.cautions)


def test_weights_have_to_agree():
    a, b, ids = [0.1, 0.2], [0.4, 0.3], ["x", "y"]
    one = scores_of(a, weight=[1, 2], query_ids=ids)
    with pytest.raises(fn.InputError, match='"a" has weights and "b" has none'):
        fn.compare({"a": one, "b": scores_of(b, query_ids=ids)})
    with pytest.raises(fn.InputError, match='query \'y\' weighs 3 in "b" and 2 in "a"'):
        fn.compare({"a": one, "b": scores_of(b, weight=[1, 3], query_ids=ids)})
    row = fn.compare({"a": one, "b": scores_of(b, weight=[1, 2], query_ids=ids)}).rows[0]
    assert row["difference"] == pytest.approx((0.3 + 0.2) / 3)


def test_rankings_and_measures():
    rankings = fn.Rankings.from_dense([[1, 0, 2], [0, 1, 0]], [[3, 2, 1], [1, 2, 3]])
    other = rankings.with_scores([1, 2, 3, 1, 3, 2])
    found = fn.compare({"a": rankings, "b": other}, measures=["nDCG@2", "RR"])
    assert [str(measure) for measure in found.measures] == ["nDCG@2", "RR"]
    scored = {name: fn.evaluate(each, ["RR", "nDCG@2"]) for name, each in (("a", rankings), ("b", other))}
    assert repr(fn.compare(scored, measures=["nDCG@2", "RR"]).rows) == repr(found.rows)
    assert len(fn.compare(scored, measures="RR").rows) == 1


def test_queries_that_a_measure_skips():
    lists = [[1, 0], [0, 0], [0, 1], [1, 1]]
    one = fn.Rankings.from_lists(lists)
    other = one.with_scores([1, 2, 1, 2, 1, 2, 1, 2])
    found = fn.compare({"a": one, "b": other}, measures=["RR(empty='skip')", "RR"])
    assert [row["queries"] for row in found.rows] == [3, 4]
    assert found.rows[0]["wins"] == found.rows[1]["wins"] == 1


def test_nothing_needs_scipy(monkeypatch):
    for name in ("scipy", "scipy.special", "scipy.stats"):
        monkeypatch.setitem(sys.modules, name, None)
    found = compared(*drawn(0, 40), resamples=200)
    assert found.ranks()["rank"].to_pylist() and found.verdicts("a")


# ---- questions and tables ----


def test_no_worse_than():
    a = drawn(1, 100)[0]
    systems = {
        "base": a,
        "same": a + 0.001 * np.sign(np.arange(100) % 2 - 0.5),
        "worse": a - 0.1 * (np.arange(100) % 3),
    }
    found = fn.compare({name: scores_of(values) for name, values in systems.items()}, "base")
    assert found.no_worse_than("base", margin=0.002) == {"nDCG@1": False}
    of_same = {margin: found.verdicts("base", margin)["verdict"][0].as_py() for margin in (0.002, 0.0)}
    assert of_same[0.002] == "holds" != of_same[0.0]
    turned = fn.compare({name: scores_of(systems[name]) for name in ("same", "base")})
    assert turned.no_worse_than("base", margin=0.002) == {"nDCG@1": True}


def test_tables():
    values = drawn(7, 60, 3)
    values[1] += 0.2
    names = ["bm25", "re_rank|2", "50%"]
    found = fn.compare(
        {name: scores_of(values[place]) for place, name in enumerate(names)}, correction="holm"
    )
    table = found.to_arrow()
    assert table.column_names == [
        "measure", "system", "baseline", "mean", "baseline_mean", "difference", "low", "high", "p", "p_adjusted", "effect",
        "wins", "ties", "losses", "queries", "detectable", "relative",
    ]  # fmt: skip
    assert table.num_rows == 3 and found.to_pandas().shape == found.to_polars().shape == (3, 17)
    latex = found.to_latex()
    assert latex.splitlines()[7].startswith(r"b & re\_rank|2 & \textbf{")
    assert "$^{ac}$" in latex and r"50\%" in latex
    first, second = [line for line in latex.splitlines() if line.startswith("% ")]
    assert first.startswith(f"% {found.heading()}") and "paired t-test, corrected by Holm" in first
    assert first.startswith(f"% 3 systems, {len(values[0])} queries") and "at most 0.05" in second
    assert "; no correction\n" in compared(*drawn(7, 60)).to_latex()
    assert found.to_markdown().splitlines()[3].startswith(r"| b | re_rank\|2 | **")
    rising = drawn(8, 30, 1)[0] / 2
    many = fn.compare({f"s{place:02}": scores_of(rising + place / 100) for place in range(29)})
    alike = repr(compared([0.1, 0.2], [0.1, 0.2]))
    assert "NaN" in alike and "nan" not in alike.replace("NaN", "")
    last = many.to_latex().splitlines()[-3]
    assert last.endswith(f"$^{{{''.join(map(chr, range(97, 123)))}(27)(28)}}$ \\\\")
    whole = json.loads(found.to_json())
    assert whole["rows"][0]["measure"] == "nDCG@1"
    assert whole["correction"] == "holm" and whole["missing"] == {}
    assert "<table>" in found._repr_html_() and "corrected by Holm" in found._repr_html_()
    assert json.loads(compared([0.1], [0.2]).to_json())["rows"][0]["p"] is None


def test_the_relative_change():
    """0.78 to 0.80 is 2.6 %; a baseline of 0 has none."""
    row = row_of([0.78, 0.78], [0.8, 0.8])
    assert row["relative"] == row["difference"] / row["baseline_mean"] and round(row["relative"], 3) == 0.026
    found = compared([0.78, 0.78], [0.8, 0.8])
    assert "+2.6 %" in repr(found) and "+2.6 %" in found._repr_html_()
    assert row_of([0.0, 0.0], [0.5, 0.25])["relative"] is None
    assert math.isnan(row_of([math.nan, 0.5], [0.5, 0.25])["relative"])
    assert row_of([-0.5, -0.5], [0.5, 0.5])["relative"] == -2
    assert json.loads(compared([0.0], [0.2]).to_json())["rows"][0]["relative"] is None


def test_few_differences_are_a_caution():
    a = np.zeros(200)
    b = a.copy()
    b[:7] = 0.5
    found = compared(a, b)
    assert "Only 7 of 200 differences of nDCG@1 between b and a are not zero" in repr(found)
    b[:40] = 0.5
    assert not compared(a, b).cautions and not compared(a, a).cautions


def test_movers_of_a_pair():
    values = drawn(2, 30, 3)
    found = fn.compare({name: scores_of(values[place]) for place, name in enumerate("abc")})
    with pytest.raises(fn.InputError, match="there are 3 pairs; name one, as in system='c'"):
        found.movers("nDCG@1")
    moved = found.movers("nDCG@1", "c", 5, baseline="b")
    far = np.sort(np.abs(values[2] - values[1]))[::-1][:5]
    assert np.abs(moved["difference"].to_numpy()).tolist() == far.tolist()
    assert found.movers("nDCG@1", "b", 5, baseline="c")["difference"].to_pylist() == [
        -each for each in moved["difference"].to_pylist()
    ]


def test_slices_are_comparisons_of_their_queries():
    values, country = drawn(8, 60), np.array(["de", "fr", "jp"])[np.arange(60) % 3]
    order = np.random.default_rng(8).permutation(60)
    kept = {"country": country}
    systems = {
        "a": scores_of(values[0], queries=kept),
        "b": scores_of(values[1][order], query_ids=order, queries={"country": country[order]}),
    }
    for options in ({}, {"test": "randomisation", "resamples": 200}, {"paired": False}):
        slices = fn.compare(systems, **options).slices("country")
        assert list(slices) == [("de",), ("fr",), ("jp",)]
        for (name,), of_slice in slices.items():
            alone = {key: scores_of(value[country == name]) for key, value in zip("ab", values, strict=True)}
            expected = fn.compare(alone, **options).rows
            for row, wanted in zip(of_slice.rows, expected, strict=True):
                numbers = [name for name in row if name not in ("p", "p_adjusted") or "test" not in options]
                assert [row[key] for key in numbers] == [pytest.approx(wanted[key]) for key in numbers]
    with pytest.raises(fn.ColumnError, match='Did you mean "country"'):
        fn.compare(systems).slices("contry")


def test_a_column_of_one_system_serves_all():
    values, order = drawn(9, 12), np.random.default_rng(9).permutation(12)
    a = scores_of(values[0])
    b = scores_of(values[1][order], query_ids=order, queries={"half": order % 2})
    slices = fn.compare({"a": a, "b": b}).slices("half")
    assert {key: each.rows[0]["queries"] for key, each in slices.items()} == {(0,): 6, (1,): 6}
    expected = (values[1] - values[0])[np.arange(12) % 2 == 1].mean()
    assert slices[1,].rows[0]["difference"] == pytest.approx(expected)


def test_differences_have_every_query():
    table = compared([0.1, math.nan, 0.3], [0.1, 0.2, 0.8]).movers("nDCG@1", n=None)
    assert table["baseline"].to_pylist()[::2] == [0.1, 0.3]
    assert np.array_equal(table["difference"].to_numpy(), [0.0, math.nan, 0.5], equal_nan=True)


# ---- judgments ----


def runs_of(found, queries=40):
    """Judgments of ten documents for each query, and a run whose first ten have so many of them."""
    qrels = {f"q{i}": {f"d{j}": (i + j) % 2 for j in range(10)} for i in range(queries)}
    names = [*(f"d{j}" for j in range(found)), *(f"x{j}" for j in range(10 - found))]
    return qrels, {query: {name: 20.0 - place for place, name in enumerate(names)} for query in qrels}


def test_shares_of_judged_documents_that_differ():
    """An index whose documents nobody judged lost, and nothing was said."""
    old, new, near = (fn.Rankings.from_qrels_run(*runs_of(found)) for found in (10, 6, 10))
    found = fn.compare({"old": old, "new": new}, measures=["nDCG@10", "P@5", "AP", "Judged@10", "Bpref"])
    (caution,) = [each for each in found.cautions if "judged" in each]
    assert caution == (
        "Of the first 10 documents were judged: 100.0 % of old, 60.0 % of new. Unjudged documents count as not "
        "relevant, so that nDCG@10, AP may differ for that alone. "
        'In Python, judgment_range(rankings, "nDCG@10") has the values of each with the least and the greatest grade for them.'
    )
    assert caution in repr(found) and caution in found.to_json().replace('\\"', '"')
    assert "60.0 % of new" in found._repr_html_()
    fn.judgment_range(new, "nDCG@10")  # the advice
    scores = {name: fn.evaluate(each, "AP") for name, each in (("old", old), ("new", new), ("near", near))}
    assert "60.0 % of new" in repr(fn.compare(scores, "old"))
    # nothing is said where shares are alike, measures know what was judged, or nobody knows
    assert "judged" not in repr(fn.compare({"old": old, "near": near}, measures="nDCG@10"))
    assert "judged:" not in repr(fn.compare(scores | {"new": scores["near"]}))
    assert "judged:" not in repr(fn.compare({"a": old, "b": new}, measures=["AP(judged_only=True)", "Bpref"]))
    stored = {name: scores_of(each.values, query_ids=each.queries[0]) for name, each in scores.items()}
    assert "judged" not in repr(fn.compare(stored))


TESTS = ("t", "randomisation")
INTERVALS = ("t", *METHODS)
SIZES = ("difference", "low", "high", "detectable")
SCALES = (5.0, 2.0**-600, 1e150)


class Pair(NamedTuple):
    a: np.ndarray
    b: np.ndarray
    weight: np.ndarray | None = None
    cluster: np.ndarray | None = None

    def row(self, scale=1.0, order=slice(None), **options):
        weight = None if self.weight is None else self.weight[order]
        systems = {
            name: scores_of(scale * values[order], measure="CG", weight=weight)
            for name, values in (("a", self.a), ("b", self.b))
        }
        if self.cluster is not None:
            options["cluster"] = self.cluster[order]
        return fn.compare(systems, resamples=200, **options).rows[0]


@st.composite
def pairs(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([2, 2, 3, 5, 9, 30]))
    if draw(st.booleans()):  # a lattice, as of P@5
        a = random.integers(0, 4, n) / 5
        b = a + (random.integers(-1, 3, n) / 5 if draw(st.booleans()) else 0.2)
    else:
        a = random.random(n)
        b = a + draw(st.sampled_from([0.1, 1e-17, 1e-9])) * np.ceil(random.normal(0, 1, n))
    if draw(st.booleans()):  # most queries tie
        b = np.where(random.random(n) < 0.8, a, b)
    weight = cluster = None
    if draw(st.booleans()):
        weight = random.exponential(size=n) * draw(st.sampled_from([1.0, 1e170, 1e-170]))
        weight[0] *= draw(st.sampled_from([1.0, 100.0, 1e5, 1e20, 1e100]))
    if draw(st.booleans()):
        cluster = random.integers(0, max(2, n // 3), n)
    return Pair(a, b, weight, cluster)


@given(pairs(), st.sampled_from(TESTS), st.sampled_from([0.2, 0.95, 0.999]))
def test_numbers_of_a_comparison(pair, test, confidence):
    options = {"test": test, "confidence": confidence}
    row = pair.row(**options)
    difference, low, high = row["difference"], row["low"], row["high"]
    assert math.isfinite(difference)
    assert low <= difference <= high or (math.isnan(low) and math.isnan(high))
    assert row["wins"] + row["ties"] + row["losses"] == row["queries"] == len(pair.a)
    assert math.isnan(row["p"]) or 0 < row["p"] <= 1
    assert not row["detectable"] < 0
    # neither scale nor order nor direction matter
    near = 1e-13 + (1e-9 * (high - low) if math.isfinite(high - low) else 0)
    for scale in SCALES:
        scaled = pair.row(scale, **options)
        for names, size, off in ((SIZES, scale, near), (("p", "effect"), 1.0, 1e-6)):
            for name in names:
                wanted = pytest.approx(row[name], rel=1e-5, abs=off, nan_ok=True)
                assert scaled[name] / size == wanted, (name, scale)
    order = np.random.default_rng(0).permutation(len(pair.a))
    assert repr(pair.row(order=order, **options)) == repr(row)
    turned = pair._replace(a=pair.b, b=pair.a).row(**options)
    assert [repr(turned[name] + 0.0) for name in ("difference", "low", "high", "p")] == [
        repr(each + 0.0) for each in (-difference, -high, -low, row["p"])
    ]


# ---- distributions ----


def test_equal_differences_are_detected():
    for freedom in (1e-6, 0.01, 0.3, 1, 2, 9, 999, 1e9):
        assert shift_to_detect(freedom, 0.95, 0.8) > 2.8
    kept = {"country": ["de"] * 38 + ["li"] * 2}
    a = fn.Rankings.from_lists([[0, 1, 0, 0, 1]] * 38 + [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]], queries=kept)
    b = fn.Rankings.from_lists([[1, 1, 0, 1, 0]] * 38 + [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]], queries=kept)
    for each in fn.compare({"a": a, "b": b}, measures="P@5").slices("country").values():
        (row,) = each.rows
        assert row["low"] == row["difference"] == row["high"] > 0 and row["detectable"] == 0


@pytest.mark.parametrize("n", [2, 3, 5, 10, 20, 50, 1000])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_power_at_the_detectable_difference(n, confidence):
    """By the noncentral t, it is near 0.8 from 10 queries on, and 0.69 or more for fewer."""
    values = np.random.default_rng(n).random(n)
    row = Pair(np.zeros(n), values).row(confidence=confidence)
    shift = row["detectable"] / (values.std(ddof=1) / math.sqrt(n))
    bound = stats.t.ppf((1 + confidence) / 2, n - 1)
    power = stats.nct.sf(bound, n - 1, shift) + np.nan_to_num(stats.nct.cdf(-bound, n - 1, shift))
    assert power == pytest.approx(0.8, abs=0.02 if n >= 10 else 0.11)


@pytest.mark.parametrize("freedom", [1e-6, 1e-3, 0.0038, 0.04, 0.1, 0.19999])
def test_p_of_little_freedom(freedom):
    """It fell from 1 to 0 where one weight dominated."""
    for t in (1e-8, 0.01, 0.3, 1, 2, 589.2, 1e6, 1e100):
        assert t_two_sided(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-11)
    outside = 0.999999 if freedom < 0.01 else 0.05
    assert t_two_sided(t_quantile(outside, freedom), freedom) == pytest.approx(outside, rel=1e-12)


def test_weights_of_any_size():
    random = np.random.default_rng(3)
    a, b, weight = random.random((3, 30))
    wanted = Pair(a, b, weight).row()
    for power in (-1000, -560, 560, 1000):
        assert repr(Pair(a, b, np.ldexp(weight, power)).row()) == repr(wanted)


# ---- ends ----


def test_a_gate_of_equal_losses_fails():
    values = np.full(56, 0.0625), np.full(56, 0.0125)
    systems = {name: scores_of(each) for name, each in zip("ab", values, strict=True)}
    found = fn.compare(systems)
    assert found.rows[0]["low"] == found.rows[0]["high"] == found.rows[0]["difference"] == -0.05
    assert found.no_worse_than("a", margin=0.001) == {"nDCG@1": False}
    for method in INTERVALS:
        row = systems["b"].summary(0.95, method, resamples=200).rows[0]
        assert (row["low"], row["high"]) == (0.0125, 0.0125)


def test_an_interval_without_ends_holds_no_gate():
    """One query has nearly all the weight, so that there is hardly a degree of freedom."""
    weight = [1.0, *[1e-9] * 5]
    found = fn.compare(
        {name: scores_of([0.1 * (name == "b"), 0, 0, 0, 0, 0], weight=weight) for name in "ab"}
    )
    assert not math.isfinite(found.rows[0]["high"])
    assert found.no_worse_than("a", margin=100.0) == {"nDCG@1": False}
    assert "The interval of nDCG@1 between b and a is not finite, so that no gate holds by it" in repr(found)


# ---- what is not finite ----


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("n", [3, 70_000])
def test_values_and_weights_that_are_not_finite(odd, n):
    """They were summed as if their bits were those of numbers."""
    values = np.full(n, 0.5)
    values[1] = odd
    plain = np.full(n, 0.25)
    for each in ((values, None), (values, plain), (plain, values)):
        assert math.isnan(mean(*each))
    for sums in (lambda: exact_sum(values), lambda: exact_sum(plain, values)):
        with pytest.raises(fn.InputError, match="1 of .* numbers to sum are not finite"):
            sums()
    stored = [
        Scores(
            (fn.nDCG @ 1,), np.atleast_2d(each), np.zeros((1, n), np.bool_), scores_of(plain).queries, None
        )
        for each in (values, plain)
    ]
    assert math.isnan(stored[0].mean()["nDCG@1"])
    for method in INTERVALS:
        row = stored[0].summary(0.95, method, resamples=100).rows[0]
        assert all(math.isnan(row[name]) for name in ("mean", "low", "high", "std"))
    for test in TESTS:
        row = fn.compare({"a": stored[0], "b": stored[1]}, test=test, resamples=100).rows[0]
        assert all(
            math.isnan(row[name]) for name in ("difference", "low", "high", "p", "effect", "detectable")
        )


def systems_of(values, **columns):
    return {f"s{place}": scores_of(each, **columns) for place, each in enumerate(values)}


def some(seed, n=60, k=5, step=0.03):
    return drawn(seed, n, k) + np.random.default_rng(seed).permutation(k)[:, None] * step


def by_system(table):
    return {row["system"]: row for row in table.to_pylist()}


def of_definition(values, alpha=0.05):
    """Rank and interval of each system: paired t-tests of SciPy, with Holm's correction, counted."""
    pairs = list(itertools.combinations(range(len(values)), 2))
    p = [float(stats.ttest_rel(values[one], values[other]).pvalue) for one, other in pairs]
    rejected = []
    for place, which in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[which] * (len(p) - place) > alpha:
            break
        rejected.append(pairs[which])
    means = values.mean(axis=1)
    found = {}
    for system, own in enumerate(means):
        below = above = 0
        for pair in rejected:
            if system in pair:
                (other,) = set(pair) - {system}
                above, below = above + (means[other] > own), below + (means[other] < own)
        found[f"s{system}"] = (1 + int((means > own).sum()), 1 + above, len(values) - below)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_intervals_of_ranks_are_those_of_the_definition(seed):
    values = some(seed)
    for options in ({}, {"baseline": "s2"}, {"correction": "bh"}):
        rows = by_system(fn.compare(systems_of(values), **options).ranks())
        found = {name: (row["rank"], row["low"], row["high"]) for name, row in rows.items()}
        assert found == of_definition(values)


@pytest.mark.parametrize("options", [{}, {"test": "randomisation"}, {"correction": "bh"}, {"cluster": "c"}])
def test_laws_of_ranks(options):
    values = some(3, n=40)
    values[4] = values[1]
    values[0, 7] = values[0, 3]
    options = {"resamples": 2_000, **options}
    columns = {"queries": {"c": np.arange(40) // 2}, "weight": 1.0 + np.arange(40) % 3}
    compared = fn.compare(systems_of(values, **columns), **options)
    rows = by_system(compared.ranks())
    assert list(rows) == sorted(rows, key=lambda name: rows[name]["rank"])
    assert all(1 <= row["low"] <= row["rank"] <= row["high"] <= 5 for row in rows.values())
    alike = [{name: value for name, value in rows[one].items() if name != "system"} for one in ("s1", "s4")]
    assert alike[0] == alike[1]
    # neither the order of queries, nor that of systems, nor the baseline changes anything
    order = np.random.default_rng(0).permutation(40)
    turned = {f"s{place}": scores_of(each[order], query_ids=order, weight=columns["weight"][order],
                                     queries={"c": order // 2}) for place, each in reversed(list(enumerate(values)))}  # fmt: skip
    assert by_system(fn.compare(turned, baseline="s3", **options).ranks()) == rows
    # a scale changes no rank
    scaled = by_system(fn.compare(systems_of(values / 4, **columns), **options).ranks())
    assert scaled == rows
    # more confidence makes no interval narrower
    wide = by_system(fn.compare(systems_of(values, **columns), confidence=0.999, **options).ranks())
    assert all(
        wide[name]["low"] <= row["low"] and row["high"] <= wide[name]["high"] for name, row in rows.items()
    )


def test_groups_are_the_pairs_that_are_not_apart():
    random = np.random.default_rng(0)
    for k in (1, 2, 3, 8, 30):
        names = [f"s{place}" for place in range(k)]
        for share in (0, 0.3, 0.7, 1):
            apart = {pair for pair in itertools.combinations(names, 2) if random.random() < share}
            groups = letters_of(names, apart)
            letters = {name: _letters(text) for name, text in groups.items()}
            for pair in itertools.combinations(names, 2):
                assert bool(letters[pair[0]] & letters[pair[1]]) == (pair not in apart)
            assert all(letters.values())
    assert set(letters_of(list("abc"), set()).values()) == {"A"}
    assert letters_of(list("abc"), set(itertools.combinations("abc", 2))) == {"a": "A", "b": "B", "c": "C"}


def _letters(text):
    singles = set(text.partition("(")[0])
    return singles | set(text[len(text.partition("(")[0]) :].strip("()").split(")(")) - {""}


def test_ranks_that_are_not_known():
    """Few queries tell nothing apart; a mean that is NaN has no rank, and a system without queries neither."""
    one = fn.compare(systems_of(np.array([[0.1], [0.5], [0.9]]))).ranks()
    assert one["low"].to_pylist() == [1, 1, 1] and one["high"].to_pylist() == [3, 3, 3]
    assert one["rank"].to_pylist() == [1, 2, 3] and one["group"].to_pylist() == ["A"] * 3
    values = some(0)
    values[1, 3] = math.nan
    unknown = by_system(fn.compare(systems_of(values)).ranks())
    assert list(unknown)[-1] == "s1"
    assert [unknown["s1"][name] for name in ("rank", "low", "high")] == [None, 1, 5]
    none = fn.compare(systems_of(np.zeros((3, 0)))).ranks()
    assert none["rank"].to_pylist() == [None] * 3 and none["high"].to_pylist() == [3] * 3
    apart = fn.compare(
        {"a": scores_of([0.1, 0.2, 0.1]), "b": scores_of([0.9, 0.8, 0.9])}, paired=False
    ).ranks()
    assert apart["high"].to_pylist() == [1, 2]


def test_tables_have_ranks(tmp_path, monkeypatch):
    """Several measures name theirs; the command line shows what `ranks` returns."""
    random = np.random.default_rng(0)
    grades = random.integers(0, 4, (80, 12))
    table = {"qid": np.repeat(np.arange(80), 12), "label": grades.ravel()}
    columns = {name: (grades + random.normal(0, noise, grades.shape)).ravel() for name, noise in
               {"bm_25": 3.0, "dense": 2.9, "rerank": 0.5}.items()}  # fmt: skip
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(table | columns), "all.parquet")
    rankings = {name: fn.Rankings.from_dense(grades, each.reshape(80, 12)) for name, each in columns.items()}
    compared = fn.compare(rankings, ["nDCG@5", "P@3"])
    ranks = compared.ranks()
    assert ranks.column_names == ["measure", "system", "rank", "low", "high", "group"]
    assert fn.compare(rankings, "P@3").ranks().column_names == ranks.column_names[1:]
    line = f"compare all.parquet {' '.join(f'--score={name}' for name in columns)} -m nDCG@5 -m P@3"
    assert "\n\nmeasure  system  rank  low  high  group\n" in run(f"{line} --ranks").stdout
    assert facts(f"{line} --ranks")["ranks"] == ranks.to_pylist() and "ranks" not in facts(line)
    assert run(f"{line} --ranks --format csv").stdout.startswith(",".join(ranks.column_names) + "\n")


def test_intervals_hold_at_once():
    """In 95 % of experiments or more, all true ranks of five systems lie in their intervals; two of them are equal."""
    random, truth = np.random.default_rng(1), np.array([0.0, 0.0, 0.03, 0.06, 0.2])
    lowest, highest = [4, 4, 3, 2, 1], [5, 5, 3, 2, 1]
    held = 0
    for _ in range(300):
        values = truth[:, None] + random.normal(0, 0.2, (5, 50))
        rows = by_system(fn.compare(systems_of(values), resamples=100).ranks())
        held += all(
            rows[f"s{place}"]["low"] <= lowest[place] and highest[place] <= rows[f"s{place}"]["high"]
            for place in range(5)
        )
    assert held >= 300 * 0.95 - 3 * math.sqrt(300 * 0.95 * 0.05)


def one(a, b, margin, **options):
    (row,) = compared(a, b, **options).verdicts("a", margin).to_pylist()
    return dict(row)


def test_a_verdict_is_where_the_interval_lies():
    a, b = drawn(3, 80)
    ends = compared(a, b).rows[0]
    low, high = ends["low"], ends["high"]
    b = b - (high + 0.01)  # worse for sure
    worse = compared(a, b)
    low, high = worse.rows[0]["low"], worse.rows[0]["high"]
    assert low < high < 0
    for margin, verdict in (
        (-low, "holds"),
        (-low * 0.999, "undecided"),
        (-high, "undecided"),
        (-high * 0.999, "fails"),
        (0, "fails"),
    ):
        row = one(a, b, margin)
        assert row["verdict"] == verdict and (row["low"], row["high"]) == (low, high)
        assert worse.no_worse_than("a", margin) == {"nDCG@1": verdict == "holds"}
        # the same of the pair in the other direction
        (turned,) = fn.compare({"b": scores_of(b), "a": scores_of(a)}).verdicts("a", margin).to_pylist()
        assert turned == row
    for n, margin, verdict in ((1, 0.2, "undecided"), (3, 0.2, "holds"), (3, 0.05, "fails")):
        assert one([0.5] * n, [0.4] * n, margin)["verdict"] == verdict


# ---- the command line ----


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(5)
    grades = random.integers(0, 4, (90, 8))
    for name, noise in (("base", 2.0), ("new", 2.1)):
        scores = grades + random.normal(0, noise, grades.shape)
        columns = np.repeat(np.arange(90), 8), grades.ravel(), scores.ravel()
        pq.write_table(pa.table([*columns], ["qid", "label", "score"]), f"{name}.parquet")


GATE = "compare base.parquet new.parquet -m nDCG@5 --no-worse-than base --margin"


def test_three_verdicts_of_the_command(files):
    scored = {name: fn.evaluate(f"{name}.parquet", "nDCG@5") for name in ("base", "new")}
    row = fn.compare(scored).rows[0]
    assert row["low"] < -0.001 < row["high"] and row["high"] > 0
    undecided = run(f"{GATE} 0.001")
    assert undecided.exit_code == 1
    assert re.search(r"90 queries\): undecided; about [\d,]+ such queries would decide\n$", undecided.stderr)
    passes = run(f"{GATE} 0.001 --undecided pass")
    assert passes.exit_code == 0 and passes.stderr == undecided.stderr and passes.stdout == undecided.stdout
    assert run(f"{GATE} 0.001 --undecided fail").exit_code == 1
    assert run(f"{GATE} {0.001 - row['low']}").exit_code == 0
    # a loss for sure
    turned = pq.read_table("new.parquet")
    pq.write_table(turned.set_column(2, "score", pa.compute.negate(turned["score"])), "new.parquet")
    fails = run(f"{GATE} 0.001 --undecided pass --format json")
    assert fails.exit_code == 1 and fails.stderr.splitlines()[-1].endswith("90 queries): fails")
    shown = json.loads(fails.stdout)["gate"]
    assert [each["verdict"] for each in shown["verdicts"]] == ["fails"] and len(shown["failed"]) == 1
    assert shown["verdicts"][0]["high"] < -0.001


def test_a_gate_of_nothing():
    nothing = fn.Rankings.from_lists([[0, 0]] * 3)
    found = fn.compare({"a": nothing, "b": nothing}, "nDCG(empty='skip')@10")
    (row,) = found.verdicts("a", 0.1).to_pylist()
    assert repr(found.verdicts(margin=0.1).to_pylist()) == repr([row])
    assert row["verdict"] == "undecided" and row["queries"] == 0
    assert all(math.isnan(row[name]) for name in ("difference", "low", "high"))


def test_a_gate_names_slices_as_tables_do(tmp_path):
    """A query without a country, and one whose country is the text `null`, stand in different gates."""
    table = {"qid": np.repeat(np.arange(9), 2), "label": [1, 0] * 9, "good": [1, 0] * 9, "bad": [0, 1] * 9}
    country = np.repeat(np.array([None, "null", ""] * 3, object), 2)
    pq.write_table(pa.table(table | {"country": country}), tmp_path / "s.parquet")
    words = ("--score", "good", "--score", "bad", "-m", "RR", "--by", "country", "--no-worse-than", "good")
    said = run("compare", tmp_path / "s.parquet", *words).stderr
    assert all(f"where country{name} may lose" in said for name in (" is null", '="null"', '=""'))


def test_small_slices_never_fail_and_undecided_ones_may_pass(tmp_path):
    """The new system wins in fr, loses each of three queries in se, and wins and loses as many in de."""
    country = np.repeat(["fr", "de", "se"], [400, 40, 3])
    new_wins = (country == "fr") | ((country == "de") & (np.arange(443) % 2 > 0))
    columns = {"qid": np.repeat(np.arange(443), 2), "country": np.repeat(country, 2), "label": [1, 0] * 443}
    columns["base"] = np.stack([~new_wins, new_wins], 1).ravel() * 1.0
    columns["new"] = 1 - columns["base"]
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    words = ("compare", tmp_path / "s.parquet", "--score", "base", "--score", "new", "-m", "RR")
    gate = (*words, "--no-worse-than", "base", "--by", "country")  # fmt: skip
    small = "has 3 queries, fewer than --least-queries 4"
    for more, code, of_se in (
        ("", 1, "fails"),
        ("--undecided pass", 1, "fails"),
        ("--least-queries 3 --undecided-slices pass", 1, "fails"),
        ("--least-queries 4", 1, small),
        ("--least-queries 4 --undecided-slices pass", 0, small),
        ("--least-queries 4 --undecided pass --undecided-slices fail", 1, small),
    ):
        done = run(*gate, *more.split())
        assert done.exit_code == code and "country=de has" not in done.stderr, more
        for name, said in (("de", ": undecided"), ("se", of_se)):
            assert any(f"country={name} " in line and said in line for line in done.stderr.splitlines()), more
    compared = fn.compare(
        {
            name: fn.evaluate(tmp_path / "s.parquet", "RR", score=name, keep="country")
            for name in ("base", "new")
        }
    )
    found = {
        key: each.verdicts("base", least_queries=4)["verdict"][0].as_py()
        for (key,), each in compared.slices("country").items()
    }
    assert found == {"fr": "holds", "de": "undecided", "se": "undecided"}
    refused = run(*words, "--undecided", "pass")
    assert refused.exit_code == 2 and "--undecided needs --no-worse-than" in refused.stderr
    for word in ("--least-queries", "--undecided-slices"):
        value = "3" if word == "--least-queries" else "pass"
        for these, said in ((words, "needs --no-worse-than NAME"), (gate[:-2], "needs --by COLUMN")):
            refused = run(*these, word, value)
            assert refused.exit_code == 2 and f"{word} {said}" in refused.stderr
