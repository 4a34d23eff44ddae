"""`compare`: its numbers against SciPy and published ones, its matching of queries, its tables."""

import json
import math
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from systems import compared, drawn, row_of, scores_of

import fastndcg as fn
from fastndcg.statistics.resampling import bootstrap_interval
from fastndcg.statistics.significance import Spread, benjamini_hochberg, holm

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
    with pytest.raises(fn.InputError, match='"a" is Rankings; name what to evaluate'):
        fn.compare({"a": rankings, "b": other})
    with pytest.raises(fn.MeasureError, match="P was not evaluated"):
        fn.compare(scored, measures="P")
    said = r"no measure was evaluated for all systems \(a: RR, nDCG@2; b: P\)"
    with pytest.raises(fn.MeasureError, match=said):
        fn.compare({"a": scored["a"], "b": fn.evaluate(other, "P")})


def test_queries_that_a_measure_skips():
    lists = [[1, 0], [0, 0], [0, 1], [1, 1]]
    one = fn.Rankings.from_lists(lists)
    other = one.with_scores([1, 2, 1, 2, 1, 2, 1, 2])
    found = fn.compare({"a": one, "b": other}, measures=["RR(empty='skip')", "RR"])
    assert [row["queries"] for row in found.rows] == [3, 4]
    assert found.rows[0]["wins"] == found.rows[1]["wins"] == 1


# ---- what is refused ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "c"}, 'baseline="c" is not one of the systems: a, b'),
        ({"test": "tukey"}, r"test='tukey' is not known; \w+ .t. or .randomisation."),
        ({"test": "permutation", "paired": False}, 'test="randomisation" and paired=False do not go together'),
        ({"interval": "logit"}, "interval='logit' is not known; .* or .bca."),
        ({"interval": "bca", "paired": False}, 'interval="bca" and paired=False do not go together; use interval="t"'),
        ({"resamples": 10}, "resamples=10 are too few"),
        ({"seed": -1}, "seed=-1 is out of range"),
        ({"correction": "dunn"}, r"correction='dunn' is not known; \w+ None, .holm. or .bh."),
        ({"tolerance": -1}, "tolerance=-1 is not a size of ties; expected a finite number, 0 or more, as in tol"),
        ({"tolerance": math.nan}, "tolerance=nan is not a size of ties"),
        ({"confidence": 95}, "confidence=95 is not between 0 and 1"),
        ({"missing": "ignore"}, "missing='ignore' is not known"),
        ({"cluster": "user"}, 'there is no column "user" to cluster by; available columns: query_id'),
        ({"cluster": [1, 2]}, "cluster has 2 values for 3 queries"),
        ({"cluster": [1, None, 2]}, "cluster has 1 null"),
    ],
)  # fmt: skip
def test_options_that_are_refused(options, message):
    with pytest.raises(fn.InputError, match=message):
        compared([0.1, 0.2, 0.3], [0.3, 0.2, 0.1], **options)


def test_systems_that_are_refused():
    one = scores_of([0.1, 0.2])
    with pytest.raises(fn.InputTypeError, match="systems is a list; expected a mapping of names"):
        fn.compare([one, one])
    with pytest.raises(fn.InputError, match="at least two systems; got 1"):
        fn.compare({"a": one})
    with pytest.raises(fn.InputTypeError, match='"b" is a list; expected Scores'):
        fn.compare({"a": one, "b": [0.1, 0.2]})


def test_nothing_needs_scipy(monkeypatch):
    for name in ("scipy", "scipy.special", "scipy.stats"):
        monkeypatch.setitem(sys.modules, name, None)
    found = compared(*drawn(0, 40), interval="bca", resamples=200)
    assert found.ranks()["rank"].to_pylist() and found.verdicts("a")


def test_permutation_is_randomisation():
    a, b = drawn(2, 40)
    one, other = (compared(a, b, test=test, resamples=200) for test in ("permutation", "randomisation"))
    assert one.rows == other.rows and one.heading() == other.heading()


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
    for margin in (-1, math.nan, math.inf, "0.1", True, None):
        with pytest.raises(fn.FastndcgError, match=r"margin=.* is not a (loss to accept|number); expected"):
            found.no_worse_than("base", margin=margin)
        with pytest.raises(fn.FastndcgError, match=r"tolerance=.* is not a (size of ties|number); expected"):
            compared([0.1, 0.2], [0.2, 0.1], tolerance=margin)
    with pytest.raises(fn.InputError, match='"none" was compared with no system'):
        found.no_worse_than("none")


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
    with pytest.raises(fn.MeasureError, match="P was not compared"):
        found.movers("P")
    with pytest.raises(fn.InputError, match='"d" is not one of the systems'):
        found.movers("nDCG@1", "d")


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
    with pytest.raises(fn.InputError, match="share no query"):
        compared([0.1, 0.3], [0.1, 0.2, 0.8], paired=False).movers("nDCG@1", n=None)


# ---- intervals by the bootstrap, and anchors ----


@pytest.mark.compiled
@pytest.mark.parametrize("interval", ["percentile", "bca"])
def test_intervals_by_the_bootstrap(interval):
    a, b = drawn(5, 80)
    row = row_of(a, b, interval=interval, resamples=2000)
    wanted = bootstrap_interval(b - a, None, 0.95, interval, 2000, 0)
    assert (row["low"], row["high"]) == (wanted.low, wanted.high)
    plain = row_of(a, b)
    assert row | {"low": 0, "high": 0} == plain | {"low": 0, "high": 0}
    width = plain["high"] - plain["low"]
    assert abs(row["high"] - row["low"] - width) < 0.25 * width
    assert "intervals of 95 %, " in compared(a, b, interval=interval, resamples=200).heading()


@pytest.mark.pure
def test_whole_clusters_are_drawn():
    a, b = drawn(6, 20)
    five = [np.repeat(each, 5) for each in (a, b)]
    clustered = row_of(*five, interval="bca", resamples=2000, cluster=np.repeat(np.arange(20), 5))
    alone = row_of(a, b, interval="bca", resamples=2000)
    assert clustered["low"] == pytest.approx(alone["low"], rel=1e-9)
    assert clustered["high"] == pytest.approx(alone["high"], rel=1e-9)
    weighed = scores_of(a, weight=np.arange(1.0, 21)), scores_of(b, weight=np.arange(1.0, 21))
    each = [
        fn.compare({"a": weighed[0], "b": weighed[1]}, interval="bca", resamples=500, cluster=cluster)
        for cluster in (None, np.arange(20))
    ]
    assert each[0].rows[0]["low"] == pytest.approx(each[1].rows[0]["low"], rel=1e-9)


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
