"""Pictures: what they show is what was computed, colours can be told apart, and large input is binned."""

import itertools
import json
import re
import sys
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import fastndcg as fn
from fastndcg import plot
from fastndcg.charts import theme
from fastndcg.charts.means import CUTOFFS

pytest.importorskip("altair")
pytest.importorskip("scipy")

QUERIES = 40
COUNTRIES = ["de", "fr", "<script>alert(1)</script>", None]
MEASURES = ["nDCG@1,3,5", "RR"]


def rankings_of(noise, seed, queries=QUERIES):
    grades = np.random.default_rng(1).integers(0, 4, (queries, 8))
    scores = np.round(grades + np.random.default_rng(seed).normal(0, noise, grades.shape))
    kept = {
        "country": [COUNTRIES[place % 4] for place in range(queries)],
        "clicks": np.arange(queries, dtype=np.float32) % 7,
    }
    offsets = np.arange(queries + 1) * 8
    return fn.Rankings.from_offsets(offsets, grades.ravel(), scores.ravel(), queries=kept)


BM25, RERANK = rankings_of(3, 2), rankings_of(1.5, 3)
NAMED = fn.Rankings.from_lists([[3, 0, 2]], query_ids=["q"], doc_ids=["a", "b", "c"])


@pytest.fixture(scope="module")
def systems():
    return {"bm25": fn.evaluate(BM25, MEASURES), "rerank": fn.evaluate(RERANK, MEASURES)}


@pytest.fixture(scope="module")
def comparison(systems):
    return fn.compare(systems)


def spec_of(chart):
    return chart.to_dict()


def titles(node):
    if isinstance(node, dict):
        own = [node["title"]] if isinstance(node.get("title"), str) else []
        return own + [title for value in node.values() for title in titles(value)]
    return [title for each in node for title in titles(each)] if isinstance(node, list) else []


# ---- all of them ----


def every_picture(systems, comparison, columns=("country", "clicks"), rankings=BM25):
    one, (country, clicks), names = next(iter(systems.values())), columns, list(systems)
    return {
        "cutoffs": plot.cutoffs(systems),
        "cutoffs of one": one.plot.cutoffs("nDCG"),
        "distribution": one.plot.distribution("nDCG@5"),
        "distributions": plot.distribution(systems, "RR"),
        "slices": one.plot.slices("nDCG@5", columns),
        "slices of two": plot.slices(systems, "nDCG@5", country),
        "against": one.plot.against("nDCG@5", clicks),
        "differences": comparison.plot.differences("nDCG@5"),
        "effects": comparison.plot.effects(),
        "discounts": plot.discounts([fn.nDCG, fn.nDCG(discount="reciprocal") @ 5, fn.RBP]),
        "gains": plot.gains([fn.nDCG, fn.nDCG(gain="exp2"), fn.ERR]),
        "ties": plot.ties({name: fn.tie_range(BM25, MEASURES) for name in names}),
        "ties of one": fn.tie_range(BM25, "nDCG@5").plot(),
        "anchors": plot.anchors({name: fn.anchors(BM25, MEASURES) for name in names}),
        "contributions": fn.explain(rankings, "nDCG@5", rankings.query_ids[0].as_py()).plot(),
        "grades": plot.grades([{"system": names[0], "grade": "0", "documents": 3}]),
        "grades of rankings": plot.grades(dict.fromkeys(names, rankings)),
        "history": plot.history(
            {names[0]: [0.5, 0.7, None], names[1]: [0.4, 0.5]}, {names[0]: 0.45}, names[0]
        ),
        "contributions of documents": fn.explain(NAMED, "nDCG@5", "q").plot(),
        "anchors of one": fn.anchors(BM25, "nDCG@5").plot(),
    }


def test_every_picture_is_drawn_without_a_network(systems, comparison):
    """As a picture, with words for those who do not see it, titles on its axes, and the rows that it is drawn from."""
    converter = pytest.importorskip("vl_convert")
    pictures = every_picture(systems, comparison)
    for name, chart in pictures.items():
        spec = spec_of(chart)
        assert len(spec["description"]) > 30, name
        assert spec["config"]["background"] == "transparent"
        assert titles(spec), name
        tables = theme.tables(chart)
        assert tables and all(rows for rows in tables), name
        for rows in tables:
            assert all(rows[0].keys() == row.keys() for row in rows), name
        assert "<svg" in converter.vegalite_to_svg(spec, allowed_base_urls=[]), name


UNSEEN = "".join(map(chr, [*range(32), *range(127, 160), 0x2028, 0x2029, 0x202E, 0xFEFF, 0xFFFE, 0xFFFF]))


@pytest.mark.parametrize(
    "hostile", [f"{UNSEEN}'\"\\`${{alert(1)}}</text><script>ש́אילתה 検索 ℵ̸👩‍💻", "x" * 10_000]
)
def test_every_picture_is_drawn_whatever_names_are(hostile):
    """Names of systems, values and names of columns, and ids of queries: none ends a process or widens a picture."""
    pytest.importorskip("vl_convert")
    from fastndcg.reporting.drawing import drawn

    columns = hostile + "1", hostile + "2"
    named = {}
    for name, rankings in ((f"{hostile}a", BM25), (f"{hostile}b", RERANK)):
        queries = {
            columns[0]: [f"{hostile}{each}" for each in rankings.queries["country"].to_pylist()],
            columns[1]: rankings.queries["clicks"],
        }
        named[name] = fn.Rankings.from_offsets(
            rankings.offsets, rankings.relevance, rankings.scores, queries=queries,
            query_ids=[f"{hostile}{place}" for place in range(QUERIES)],
        )  # fmt: skip
    systems = {name: fn.evaluate(each, MEASURES) for name, each in named.items()}
    pictures = every_picture(systems, fn.compare(systems), columns, next(iter(named.values())))
    specs = [spec_of(chart) for chart in pictures.values()]
    for name, spec, (svg, why) in zip(pictures, specs, drawn(specs), strict=True):
        text = json.dumps(spec, ensure_ascii=False)
        assert not why, (name, why)
        assert not any(sign in text for sign in UNSEEN), name
        assert "<script" not in svg and float(svg.partition('width="')[2].partition('"')[0]) < 1_300, name
        ET.fromstring(svg)  # noqa: S314 - our own; no character that XML forbids
    two = theme.tables(pictures["slices of two"])
    assert {len({row["system"] for row in rows}) for rows in two if "slice" in rows[0]} == {2}
    assert {len({row["slice"] for row in rows}) for rows in two if "slice" in rows[0]} == {4}


def test_what_cannot_be_drawn_says_why(systems):
    one = systems["bm25"]
    with pytest.raises(fn.InputError, match=r"two systems have the same name as text: 1, '1'; rename one"):
        plot.cutoffs({1: one, "1": one})
    none = fn.evaluate(fn.Rankings.from_lists([], queries={"c": []}), "RR")
    with pytest.raises(fn.InputError, match="there are no queries"):
        none.plot.slices("RR", "c")
    kept = {name: list("aabb") for name in ("queries", "small", "mean", "low", "system")}
    scores = fn.evaluate(fn.Rankings.from_lists([[1]] * 4, queries=kept), "RR")
    assert scores.plot.slices("RR", ["mean", "low", "system", "mean"]).to_dict()
    for name in ("queries", "small"):
        with pytest.raises(
            fn.ColumnError, match=f'"{name}" has the name of a column of the result; rename it'
        ):
            scores.plot.slices("RR", name)


def test_a_measure_of_a_long_notation_is_drawn_in_short():
    measure = fn.nDCG(gain={grade: 1.5 * grade for grade in range(3_000)}) @ 10
    for chart in (fn.anchors(BM25, measure).plot(), fn.evaluate(BM25, measure).plot.distribution(measure)):
        assert len(json.dumps(chart.to_dict())) < 100_000


def test_the_legend_has_the_colours_of_lines(systems):
    converter = pytest.importorskip("vl_convert")
    svg = converter.vegalite_to_svg(spec_of(plot.cutoffs(systems)))
    symbols = re.findall(r"role-legend-symbol.*?<path ([^>]*)>", svg, re.DOTALL)
    assert [re.findall(r'fill="([^"]*)"', each) for each in symbols] == [
        [theme.COLOURS[0]],
        [theme.COLOURS[1]],
    ]
    assert not any(float(each) < 1 for symbol in symbols for each in re.findall(r'opacity="([^"]*)"', symbol))


def test_a_picture_is_saved(tmp_path, systems):
    pytest.importorskip("vl_convert")
    systems["bm25"].plot.distribution("nDCG@5").save(str(tmp_path / "x.png"))
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_without_altair_the_error_has_the_command(monkeypatch, systems):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(
        fn.ExtraError, match=r"Altair, which is not installed: pip install 'fastndcg\[plot\]'"
    ):
        systems["bm25"].plot.distribution("nDCG@5")


# ---- numbers ----


def test_lines_over_cutoffs_are_means_and_intervals(systems):
    (rows,) = theme.tables(plot.cutoffs(systems, "nDCG@10"))
    assert [(row["system"], row["cutoff"]) for row in rows] == list(
        itertools.product(["bm25", "rerank"], [1, 3, 5])
    )
    for row in rows:
        (expected,) = [
            each
            for each in systems[row["system"]].summary(0.95).rows
            if each["measure"] == f"nDCG@{row['cutoff']}"
        ]
        assert [row[name] for name in ("mean", "low", "high")] == [
            expected[name] for name in ("mean", "low", "high")
        ]


def test_rankings_are_evaluated_at_usual_cutoffs():
    (rows,) = theme.tables(plot.cutoffs(BM25, "RR"))
    assert [row["cutoff"] for row in rows] == list(CUTOFFS)


def test_a_distribution_counts_every_query_that_has_a_value():
    rankings = fn.Rankings.from_lists([[1, 0], [0, 1], [0, 0], [0, 1]])
    scores = fn.evaluate(rankings, "RR(empty='nan')")
    chart = scores.plot.distribution("RR(empty='nan')", bins=5)
    bars, curve = theme.tables(chart)
    assert [row["queries"] for row in bars] == [2, 0, 0, 0, 1]
    assert [(row["value"], row["share"]) for row in curve] == [
        (0.5, 0.0),
        (0.5, pytest.approx(2 / 3)),
        (1.0, 1.0),
    ]
    assert "4 queries, median 0.500, 1 without a value" in spec_of(chart)["title"]["subtitle"]


def test_differences_fall_from_winners_to_losers(comparison):
    chart = comparison.plot.differences("nDCG@5")
    (rows,) = theme.tables(chart)
    expected = np.sort(comparison.differences("nDCG@5")["difference"].to_numpy())[::-1]
    assert [row["difference"] for row in rows] == pytest.approx(expected.tolist(), abs=0)
    (numbers,) = [row for row in comparison.rows if row["measure"] == "nDCG@5"]
    winners = [row["winner"] for row in rows]
    counts = [winners.count(words) for words in ("rerank is better", "equal", "bm25 is better")]
    assert counts == [numbers["wins"], numbers["ties"], numbers["losses"]]


def test_discounts_and_gains_are_those_of_the_measure():
    (rows,) = theme.tables(plot.discounts([fn.nDCG @ 3, fn.RBP(p=0.5)], ranks=4))
    assert [row["discount"] for row in rows] == pytest.approx([1, 1 / np.log2(3), 0.5, 1, 0.5, 0.25, 0.125])
    (rows,) = theme.tables(plot.gains(fn.nDCG(gain="exp2"), [0, 1, 3]))
    assert [row["gain"] for row in rows] == [0, 1, 7]


def test_contributions_are_those_of_the_explanation():
    explained = fn.explain(BM25, "nDCG@5", 3)
    (rows,) = theme.tables(explained.plot())
    table = explained.to_arrow()
    for kind, column in (("predicted", "contribution"), ("ideal", "ideal_contribution")):
        drawn = [row["contribution"] for row in rows if row["ranking"] == kind]
        assert drawn == table[column].to_pylist()[: len(drawn)] and len(drawn) == 5


def test_contributions_in_gains_are_dcg_beside_idcg():
    explained = fn.explain(BM25, "nDCG@5", 3)
    (rows,) = theme.tables(explained.plot(unit="gain"))
    for kind, measure in (("predicted", "DCG@5"), ("ideal", "IDCG@5")):
        drawn = sum(row["contribution"] for row in rows if row["ranking"] == kind)
        assert drawn == pytest.approx(fn.evaluate(BM25, measure).values[0, 3], rel=1e-12)
    assert theme.tables(fn.explain(BM25, "DCG@5", 3).plot(unit="gain"))
    with pytest.raises(fn.MeasureError, match='AP is no sum of discounted gains; draw it with unit="share"'):
        fn.explain(BM25, "AP", 3).plot(unit="gain")
    with pytest.raises(fn.InputError, match="unit='points' is not known"):
        explained.plot(unit="points")


def test_a_query_without_a_value_has_no_contributions():
    explained = fn.explain(fn.Rankings.from_lists([[0, 0]]), "nDCG@5", 0)
    with pytest.raises(fn.InputError, match="it is undefined there"):
        explained.plot()


def test_a_picture_beside_an_online_measure_has_its_correlation(systems):
    scores = systems["bm25"]
    from scipy.stats import kendalltau

    chart = scores.plot.against("nDCG@5", "clicks")
    tau = kendalltau(scores["nDCG@5"], scores.queries["clicks"].to_numpy()).statistic
    assert spec_of(chart)["title"]["subtitle"] == f"Kendall's tau-b {tau:.3f} of 40 queries"
    assert len(theme.tables(chart)[0]) == QUERIES


# ---- size ----


def test_more_than_5000_queries_are_binned():
    scores = [fn.evaluate(rankings_of(noise, seed, 6_000), ["nDCG@5"]) for noise, seed in ((3, 2), (1.5, 3))]
    comparison = fn.compare({"a": scores[0], "b": scores[1]})
    for chart in (
        comparison.plot.differences("nDCG@5"),
        scores[0].plot.distribution("nDCG@5"),
        scores[0].plot.against("nDCG@5", "clicks"),
    ):
        assert max(map(len, theme.tables(chart))) <= 1_000
    (bars,) = theme.tables(comparison.plot.differences("nDCG@5"))
    assert len(bars) == 500 and bars[-1]["to"] == 6_000
    mean = sum(bar["difference"] * (bar["to"] - bar["from"]) for bar in bars) / 6_000
    assert mean == pytest.approx(comparison.rows[0]["difference"], abs=1e-12)
    (squares,) = theme.tables(scores[0].plot.against("nDCG@5", "clicks"))
    assert sum(square["queries"] for square in squares) == 6_000


def test_of_many_slices_the_largest_are_drawn():
    kept = {"user": [place % 60 if place < 100 else 7 for place in range(120)]}
    rankings = fn.Rankings.from_lists([[0, 1]] * 120, queries=kept)
    chart = fn.evaluate(rankings, "RR").plot.slices("RR", "user")
    rows = next(rows for rows in theme.tables(chart) if "slice" in rows[0])
    assert len({row["slice"] for row in rows}) == 40 and "7" in {row["slice"] for row in rows}
    assert "20 smaller ones are not shown" in spec_of(chart)["title"]["subtitle"]


# ---- colours ----


def luminance(colour):
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("ground", ["#ffffff", "#121212"])
def test_colours_hold_on_light_and_dark_ground(ground):
    assert min(contrast(colour, ground) for colour in theme.COLOURS) >= 3
    assert contrast(theme.TEXT, ground) >= 4


# what red and green cones make of linear RGB where one kind is missing (Viénot, Brettel and Mollon, 1999)
PROTANOPE = np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]])
DEUTERANOPE = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])


@pytest.mark.parametrize("eye", [np.eye(3), PROTANOPE, DEUTERANOPE])
def test_the_first_colours_differ_for_the_colour_blind(eye):
    seen = []
    for colour in theme.COLOURS[:4]:
        channels = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
        seen.append(np.clip(eye @ channels**2.2, 0, 1) ** (1 / 2.2))
    assert min(np.abs(one - other).max() for one, other in itertools.combinations(seen, 2)) > 0.12


# ---- errors ----


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda scores: scores.plot.distribution("AP"), fn.MeasureError, "AP was not evaluated; these were"),
        (lambda scores: scores.plot.cutoffs("RR"), fn.MeasureError, "RR was evaluated at 0 cutoffs"),
        (lambda scores: scores.plot.cutoffs("SetP"), fn.MeasureError, "SetP has no cutoff, so that it has no curve"),
        (lambda scores: scores.plot.slices("RR", "county"), fn.ColumnError, 'Did you mean "country"?'),
        (lambda scores: scores.plot.against("RR", "country"), fn.ColumnError, "has type string; name a column of numbers"),
        (lambda scores: scores.plot.against("RR", "click"), fn.ColumnError, 'Did you mean "clicks"?'),
        (lambda _: plot.discounts("RR"), fn.MeasureError, "RR has no discount; take nDCG, DCG or RBP"),
        (lambda _: plot.discounts("nDCG", ranks=0), fn.InputError, "ranks must be a positive integer; got 0"),
        (lambda _: plot.gains(fn.nDCG(gain={1: 2}), [5]), fn.MeasureError, "have no gain for these grades"),
        (lambda _: plot.gains("alpha_nDCG"), fn.MeasureError, "alpha_nDCG is of several intents"),
        (lambda _: plot.cutoffs({}), fn.InputError, "no system is given"),
    ],
)  # fmt: skip
def test_errors_name_what_is_missing(draw, error, message, systems):
    with pytest.raises(error, match=message.replace("?", r"\?")):
        draw(systems["bm25"])


def test_a_history_has_a_line_for_each_set_and_a_baseline():
    lightgbm = {"train": {"ndcg@5": [0.5, 0.75, float("nan")]}, "test": {"ndcg@5": [0.5, 0.625, 0.5]}}
    lines, base = theme.tables(plot.history(lightgbm, baseline=0.4, measure="nDCG@5"))
    assert [row["value"] for row in lines] == [0.5, 0.75, None, 0.5, 0.625, 0.5]
    assert {row["system"] for row in lines} == {"train ndcg@5", "test ndcg@5"}
    assert base == [{"baseline": "baseline", "value": 0.4}]
    said = spec_of(plot.history(lightgbm))["description"]
    assert "train ndcg@5: 0.75 in round 2; test ndcg@5: 0.625 in round 2" in said
    for wrong in ({"a": []}, {"a": [None]}, {"a": "word"}, {"a": 3}, {}, {"a": [[0.5, 0.6]]}):
        with pytest.raises(fn.InputError):
            plot.history(wrong)
    with pytest.raises(fn.InputTypeError, match="baseline is 'x'; wanted a number"):
        plot.history(lightgbm, baseline="x")


def test_a_line_over_time_ends_where_the_definition_changes():
    row = {"measure": "RR", "queries": 9, "mean": 0.5, "low": 0.4, "high": 0.6, "sure": False, "change": None}
    days = [datetime(2026, 11, day, tzinfo=UTC) for day in (1, 2, 3, 4)]
    notes = [None, None, "judgments pool:1:a, now pool:2:b", None]
    rows = [row | {"at": at, "differs": note} for at, note in zip(days, notes, strict=True)]
    rows[1] |= {"sure": True, "change": -0.1}
    chart = plot.over_time(rows, 0.45)
    drawn, bound = theme.tables(chart)
    assert [each["system"] for each in drawn] == ["RR", "RR", "RR from 2026-11-03", "RR from 2026-11-03"]
    assert bound == [{"threshold": 0.45}]
    said = spec_of(chart)["description"]
    assert "RR fell, which is sure since 2026-11-02. not comparable" in said
    for wrong, error, message in (
        ("history", fn.InputTypeError, r"table is a str; expected History\(path\).table\(\)"),
        ([], fn.InputError, "the table has no measure; name one to draw"),
        ([*rows, row | {"measure": "AP", "differs": None}], fn.InputError, "the table has RR, AP; name one"),
        (
            [each | {"name": f"s{n}"} for n in range(8) for each in rows[:1]],
            fn.InputError,
            "8 lines are too many",
        ),
    ):
        with pytest.raises(error, match=message):
            plot.over_time(wrong)


def test_grades_are_counted_in_rankings():
    rankings = fn.Rankings.from_lists([[3, 0, 0], [1]], is_judged=[True, True, False, True])
    (rows,) = theme.tables(plot.grades({"a": rankings}))
    assert [(row["grade"], row["documents"]) for row in rows] == [("0", 1), ("1", 1), ("3", 1)]
    with pytest.raises(fn.InputTypeError, match="wanted Rankings"):
        plot.grades({"a": 7})


def test_contributions_name_documents():
    (rows,) = theme.tables(fn.explain(NAMED, "nDCG@5", "q").plot())
    assert [row["document"] for row in rows if row["ranking"] == "predicted"] == ["1  a", "2  b", "3  c"]


def test_ties_show_the_order_of_the_data():
    tied = fn.Rankings.from_lists([[0, 1, 0], [1, 0, 0]], [[1, 1, 1], [2, 2, 2]])
    spec = spec_of(fn.tie_range(tied, ["RR", "P@1"]).plot())
    rows = [row for rows in spec["datasets"].values() for row in rows]
    means = fn.evaluate(tied, ["RR(ties='input')", "P(ties='input')@1"]).mean()
    assert [row["stable"] for row in rows] == [*means.values()]
    assert {row["measure"]: row["stable"] for row in rows} == {"RR": 0.75, "P@1": 0.5}
    assert any(layer["mark"]["type"] == "tick" for layer in spec["layer"])
    assert "stable" in spec["description"]
    judged = fn.Rankings.from_lists([[0, 1]], [[2, 1]], is_judged=[False, True])
    layers = spec_of(fn.judgment_range(judged, "RR").plot())["layer"]
    assert all(layer["mark"]["type"] != "tick" for layer in layers)


def test_a_history_of_training_is_a_table_too():
    """As XGBoost's `cv` returns it: of pandas, Polars or Arrow, alone or by name."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    rounds = {"train": [0.5, 0.75], "test": [0.5, 0.625]}
    for frame in (pd.DataFrame(rounds), pl.DataFrame(rounds), pa.table(rounds)):
        assert theme.tables(plot.history(frame)) == theme.tables(plot.history(rounds))
        (rows,) = theme.tables(plot.history({"fold": frame}))
        assert {row["system"] for row in rows} == {"fold train", "fold test"} and len(rows) == 4
