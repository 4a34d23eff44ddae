"""Charts show the numbers that were computed, in colours that can be told apart, whatever names and sizes are."""

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

pytest.importorskip("altair")
converter = pytest.importorskip("vl_convert")

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
TIED = fn.Rankings.from_lists([[0, 1, 0], [1, 0, 0]], [[1, 1, 1], [2, 2, 2]])


@pytest.fixture(scope="module")
def systems():
    return {"bm25": fn.evaluate(BM25, MEASURES), "rerank": fn.evaluate(RERANK, MEASURES)}


@pytest.fixture(scope="module")
def comparison(systems):
    return fn.compare(systems)


def rows_of(chart):
    """The rows of a chart, and those of its layers that have their own: a list for each."""
    spec = chart.to_dict()
    own = [each["data"]["values"] for each in spec.get("layer", ()) if "data" in each]
    return [*spec["datasets"].values(), *(rows for place, rows in enumerate(own) if rows not in own[:place])]


def subtitle_of(chart):
    return " ".join(chart.to_dict()["title"]["subtitle"])


# ---- every chart ----


def every_chart(systems, comparison, columns=("country", "clicks"), rankings=BM25):
    one, (country, _), names = next(iter(systems.values())), columns, list(systems)
    return {
        "cutoffs": plot.cutoffs(systems),
        "cutoffs of one": one.plot.cutoffs("nDCG"),
        "distribution": one.plot.distribution("nDCG@5"),
        "distributions": plot.distribution(systems, "RR"),
        "slices": one.plot.slices("nDCG@5", columns),
        "slices of two": plot.slices(systems, "nDCG@5", country),
        "differences": comparison.plot.differences("nDCG@5"),
        "effects": comparison.plot.effects(),
        "ties": plot.ties({name: fn.tie_range(BM25, MEASURES) for name in names}),
        "ties of one": fn.tie_range(BM25, "nDCG@5").plot(),
        "contributions": fn.explain(rankings, "nDCG@5", rankings.query_ids[0].as_py()).plot(),
        "contributions of documents": fn.explain(NAMED, "nDCG@5", "q").plot(),
        "history": plot.history(
            {names[0]: [0.5, 0.7, None], names[1]: [0.4, 0.5]}, {names[0]: 0.45}, names[0]
        ),
    }


UNSEEN = "".join(map(chr, [*range(32), *range(127, 160), 0x2028, 0x2029, 0x202E, 0xFEFF, 0xFFFE, 0xFFFF]))
HOSTILE = f"{UNSEEN}'\"\\`${{alert(1)}}</text><script>ש́אילתה 検索 ℵ̸👩‍💻"


@pytest.mark.parametrize("name", ["", HOSTILE, "x" * 10_000])
@pytest.mark.slow
def test_every_chart_is_drawn_whatever_names_are(name):
    """With words for those who do not see it, and within its width. No name ends the process that draws."""
    columns = (name + "country", name + "clicks")
    named = {}
    for letter, rankings in (("a", BM25), ("b", RERANK)):
        countries = [f"{name}{each}" for each in rankings.queries["country"].to_pylist()]
        named[name + letter] = fn.Rankings.from_offsets(
            rankings.offsets, rankings.relevance, rankings.scores,
            queries={columns[0]: countries, columns[1]: rankings.queries["clicks"]},
            query_ids=[f"{name}{place}" for place in range(QUERIES)],
        )  # fmt: skip
    systems = {system: fn.evaluate(each, MEASURES) for system, each in named.items()}
    charts = every_chart(systems, fn.compare(systems), columns, named[name + "a"])
    for key, chart in charts.items():
        spec = chart.to_dict()
        svg = converter.vegalite_to_svg(spec, allowed_base_urls=[])
        assert len(spec["description"]) > 30 and spec["config"]["background"] == "transparent", key
        assert not any(sign in json.dumps(spec, ensure_ascii=False) for sign in UNSEEN), key
        assert "<script" not in svg and float(svg.partition('width="')[2].partition('"')[0]) < 1_300, key
        ET.fromstring(svg)  # noqa: S314 - our own; no character that XML forbids
        assert rows_of(chart) and all(
            rows[0].keys() == row.keys() for rows in rows_of(chart) for row in rows
        ), key
    winners = charts["differences"].to_dict()["encoding"]["color"]["scale"]["domain"]
    assert {row["system"] for row in rows_of(charts["differences"])[0]} <= {*winners}
    (rows,) = rows_of(charts["slices of two"])
    assert len({row["system"] for row in rows}) == 2 and len({row["slice"] for row in rows}) == 4


def test_a_measure_of_a_long_notation_is_drawn_in_short():
    measure = fn.nDCG(gain={grade: 1.5 * grade for grade in range(3_000)}) @ 10
    for chart in (fn.tie_range(BM25, measure).plot(), fn.evaluate(BM25, measure).plot.distribution(measure)):
        assert len(json.dumps(chart.to_dict())) < 100_000


def test_the_legend_has_the_colours_of_lines(systems):
    svg = converter.vegalite_to_svg(plot.cutoffs(systems).to_dict())
    symbols = re.findall(r"role-legend-symbol.*?<path ([^>]*)>", svg, re.DOTALL)
    assert [re.findall(r'fill="([^"]*)"', each) for each in symbols] == [
        [theme.COLOURS[0]],
        [theme.COLOURS[1]],
    ]
    assert not any(float(each) < 1 for symbol in symbols for each in re.findall(r'opacity="([^"]*)"', symbol))


def test_without_altair_the_error_has_the_command(monkeypatch, systems):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(
        fn.ExtraError, match=r"Altair, which is not installed: pip install 'fastndcg\[report\]'"
    ):
        systems["bm25"].plot.distribution("nDCG@5")


# ---- numbers ----


def test_lines_over_cutoffs_are_means_and_intervals(systems):
    (rows,) = rows_of(plot.cutoffs(systems, "nDCG@10"))
    expected = [
        {"system": name, "cutoff": int(row["measure"][5:]), "mean": row["mean"], "low": row["low"], "high": row["high"]}
        for name, scores in systems.items()
        for row in scores.summary(0.95).rows
        if row["measure"] != "RR"
    ]  # fmt: skip
    assert rows == expected and len(rows) == 6


def test_a_distribution_counts_every_query_that_has_a_value():
    scores = fn.evaluate(fn.Rankings.from_lists([[1, 0], [0, 1], [0, 0], [0, 1]]), "RR(empty='nan')")
    chart = scores.plot.distribution("RR(empty='nan')", bins=5)
    (bars,) = rows_of(chart)
    assert [row["queries"] for row in bars] == [2, 0, 0, 0, 1]
    assert [bars[0]["from"], *(row["to"] for row in bars)] == pytest.approx([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert subtitle_of(chart) == "4 queries, median 0.500, 1 without a value"


def test_slices_are_those_of_by(systems):
    rows, line = rows_of(systems["bm25"].plot.slices("nDCG@5", "country"))
    assert line == [{"at": systems["bm25"].mean()["nDCG@5"]}]
    by = systems["bm25"].by("country", 0.95).to_pylist()
    assert [row["slice"] for row in rows] == ["<script>alert(1)</script>", "de", "fr", "null"]
    assert [[row["mean"], row["low"], row["high"], row["small"]] for row in rows] == [
        [row["nDCG@5"], row["nDCG@5_low"], row["nDCG@5_high"], True] for row in by
    ]
    kept = {name: list("aabb") for name in ("queries", "mean", "low", "system")}
    scores = fn.evaluate(fn.Rankings.from_lists([[1]] * 4, queries=kept), "RR")
    assert rows_of(scores.plot.slices("RR", ["mean", "low", "system", "mean"]))[0][0]["slice"] == "a, a, a"


def test_of_many_slices_the_largest_are_drawn():
    kept = {"user": [place % 60 if place < 100 else 7 for place in range(120)]}
    chart = fn.evaluate(fn.Rankings.from_lists([[0, 1]] * 120, queries=kept), "RR").plot.slices("RR", "user")
    slices = {row["slice"] for row in rows_of(chart)[0]}
    assert len(slices) == 40 and "7" in slices
    assert "20 smaller ones are not shown" in subtitle_of(chart)


def test_differences_fall_from_winners_to_losers(comparison):
    (rows,) = rows_of(comparison.plot.differences("nDCG@5"))
    expected = np.sort(comparison.movers("nDCG@5", n=None)["difference"].to_numpy())[::-1]
    assert [row["difference"] for row in rows] == expected.tolist()
    (numbers,) = [row for row in comparison.rows if row["measure"] == "nDCG@5"]
    winners = [row["system"] for row in rows]
    counts = [winners.count(words) for words in ("rerank is better", "equal", "bm25 is better")]
    assert counts == [numbers["wins"], numbers["ties"], numbers["losses"]]


def test_effects_say_which_minus_which(comparison):
    chart = comparison.plot.effects()
    rows, _ = rows_of(chart)
    for row, expected in zip(rows, comparison.rows, strict=True):
        assert row == {
            "measure": expected["measure"], "system": "rerank minus bm25", "mean": expected["difference"],
            "low": expected["low"], "high": expected["high"], "small": False,
        }  # fmt: skip
    text = json.dumps(chart.to_dict())
    assert (
        "difference of means (rerank minus bm25)" in text
        and "Differences of means: rerank minus bm25" in text
    )
    assert len(rows_of(comparison.plot.effects("RR"))[0]) == 1


def test_contributions_are_those_of_the_explanation():
    explained = fn.explain(BM25, "nDCG@5", 3)
    for unit, names in (("share", ("contribution", "ideal_contribution")), ("gain", ("DCG@5", "IDCG@5"))):
        (rows,) = rows_of(explained.plot(unit=unit))
        for kind, name in zip(("predicted", "ideal"), names, strict=True):
            drawn = [row["contribution"] for row in rows if row["system"] == kind]
            if unit == "share":
                assert drawn == explained.to_arrow()[name].to_pylist()[:5]
            else:
                assert sum(drawn) == pytest.approx(fn.evaluate(BM25, name).values[0, 3], rel=1e-12)
    assert rows_of(fn.explain(BM25, "DCG@5", 3).plot(unit="gain"))
    (rows,) = rows_of(fn.explain(NAMED, "nDCG@5", "q").plot())
    assert [row["document"] for row in rows if row["system"] == "predicted"] == ["1  a", "2  b", "3  c"]


def test_ties_are_intervals_with_a_tick():
    (rows,) = rows_of(fn.tie_range(TIED, ["RR", "P@1"]).plot())
    assert {row["measure"]: row["tick"] for row in rows} == {"RR": 0.75, "P@1": 0.5}
    assert [row["tick"] for row in rows] == [
        *fn.evaluate(TIED, ["RR(ties='input')", "P(ties='input')@1"]).mean().values()
    ]
    judged = fn.Rankings.from_lists([[0, 1]], [[2.0, 1.0]], is_judged=[False, True])
    (rows,) = rows_of(fn.judgment_range(judged, "RR").plot())
    assert rows == [{"system": "system", "measure": "RR", "low": 0.5, "mean": 0.5, "high": 1.0}]


def test_a_history_has_a_line_for_each_set_and_a_baseline():
    lightgbm = {"train": {"ndcg@5": [0.5, 0.75, float("nan")]}, "test": {"ndcg@5": [0.5, 0.625, 0.5]}}
    chart = plot.history(lightgbm, baseline=0.4, measure="nDCG@5")
    lines, base = rows_of(chart)
    assert [row["value"] for row in lines] == [0.5, 0.75, None, 0.5, 0.625, 0.5]
    assert {row["system"] for row in lines} == {"train ndcg@5", "test ndcg@5"}
    assert base == [{"baseline": "baseline", "value": 0.4}]
    assert "train ndcg@5: 0.75 in round 2; test ndcg@5: 0.625 in round 2" in subtitle_of(chart)


def test_a_history_of_training_is_a_table_too():
    """As XGBoost's `cv` returns it: of pandas, Polars or Arrow, or a list of dicts; alone or by name."""
    pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    rounds = {"train": [0.5, 0.75], "test": [0.5, 0.625]}
    dicts = [{"train": 0.5, "test": 0.5}, {"train": 0.75, "test": 0.625}]
    for frame in (pd.DataFrame(rounds), pl.DataFrame(rounds), pa.table(rounds), dicts):
        assert rows_of(plot.history(frame)) == rows_of(plot.history(rounds))
        (rows,) = rows_of(plot.history({"fold": frame}))
        assert {row["system"] for row in rows} == {"fold train", "fold test"} and len(rows) == 4


ROW = {"measure": "RR", "queries": 9, "mean": 0.5, "low": 0.4, "high": 0.6, "sure": False, "change": None}
ROW |= {"at": datetime(2026, 11, 1, tzinfo=UTC), "differs": None}


def test_a_line_over_time_ends_where_the_definition_changes():
    days = [datetime(2026, 11, day, tzinfo=UTC) for day in (1, 2, 3, 4)]
    notes = [None, None, "judgments pool:1:a, now pool:2:b", None]
    rows = [ROW | {"at": at, "differs": note} for at, note in zip(days, notes, strict=True)]
    rows[1] |= {"sure": True, "change": -0.1}
    chart = plot.over_time(rows)
    (drawn,) = rows_of(chart)
    assert [each["system"] for each in drawn] == ["RR", "RR", "RR from 2026-11-03", "RR from 2026-11-03"]
    assert chart.to_dict()["title"]["text"] == "RR by date"
    named = plot.over_time([row | {"name": "bm25"} for row in rows]).to_dict()
    assert named["title"]["text"] == "RR of bm25 by date"
    assert "RR fell, which is sure since 2026-11-02; not comparable" in subtitle_of(chart)


def test_more_queries_than_pixels_are_binned():
    scores = [fn.evaluate(rankings_of(noise, seed, 6_000), ["nDCG@5"]) for noise, seed in ((3, 2), (1.5, 3))]
    comparison = fn.compare({"a": scores[0], "b": scores[1]})
    (bars,) = rows_of(comparison.plot.differences("nDCG@5"))
    assert len(bars) == 500 and bars[-1]["to"] == 6_000
    mean = sum(bar["difference"] * (bar["to"] - bar["from"]) for bar in bars) / 6_000
    assert mean == pytest.approx(comparison.rows[0]["difference"], abs=1e-12)


# ---- colours ----


def linear(colour):
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return np.array(
        [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    )


def contrast(one, other):
    dark, light = sorted(float(linear(each) @ [0.2126, 0.7152, 0.0722]) for each in (one, other))
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
    seen = [np.clip(eye @ linear(colour), 0, 1) ** (1 / 2.2) for colour in theme.COLOURS[:4]]
    assert min(np.abs(one - other).max() for one, other in itertools.combinations(seen, 2)) > 0.12


# ---- errors ----

NO_QUERY = fn.Rankings.from_lists([], queries={"c": []})
EMPTY = fn.Rankings.from_lists([[0, 0]])
TAKEN = fn.Rankings.from_lists([[1]], queries={"queries": ["a"]})


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda one: one.plot.distribution("AP"), fn.MeasureError, "AP was not evaluated; these were"),
        (lambda one: one.plot.distribution("RR", 0), fn.InputError, "bins must be a positive integer; got 0"),
        (lambda one: one.plot.cutoffs("RR"), fn.MeasureError, "RR was evaluated at 0 cutoffs"),
        (lambda one: one.plot.cutoffs("SetP"), fn.MeasureError, "SetP has no cutoff and therefore no curve"),
        (lambda one: one.plot.slices("RR", "county"), fn.ColumnError, 'Did you mean "country"?'),
        (lambda one: plot.cutoffs({"1": one, 1: one}), fn.InputError, "two systems have the same name as text: '1', 1"),
        (lambda _: plot.cutoffs({}), fn.InputError, "no system is given; expected a mapping of names to Scores"),
        (lambda _: plot.cutoffs({"a": BM25}), fn.InputTypeError, '"a" is a Rankings; expected Scores, as evaluate'),
        (lambda _: fn.evaluate(NO_QUERY, "RR").plot.slices("RR", "c"), fn.InputError, "there are no queries"),
        (lambda _: fn.evaluate(TAKEN, "RR").plot.slices("RR", "queries"), fn.ColumnError, "of a column of the result"),
        (plot.effects, fn.InputTypeError, "comparison is a Scores; expected a Comparison"),
        (plot.ties, fn.InputTypeError, "expected Ranges"),
        (plot.contributions, fn.InputTypeError, "expected an Explanation"),
        (lambda _: fn.explain(EMPTY, "nDCG@5", 0).plot(), fn.InputError, "it is undefined there"),
        (lambda _: fn.explain(BM25, "AP", 3).plot(unit="gain"), fn.MeasureError, "AP is not a sum of discounted gains"),
        (lambda _: fn.explain(BM25, "AP", 3).plot(unit="points"), fn.InputError, "unit='points' is not known"),
        (lambda _: plot.history({"a": [1]}, baseline="x"), fn.InputTypeError, "baseline is 'x'; expected a number"),
        *(
            (lambda _, rounds=rounds: plot.history(rounds), fn.InputError, message)
            for message, several in {
                "no round has a value": ({"a": []}, {"a": [None]}, []),
                '"a" is not a list of numbers': ({"a": "word"}, {"a": 3}, {"a": [[0.5, 0.6]]}),
                '"system" is not a list of numbers': (3,),
                "no system is given": ({},),
            }.items()
            for rounds in several
        ),
        (lambda _: plot.over_time("history"), fn.InputTypeError, "table is a str; expected History(path).table()"),
        (lambda _: plot.over_time([]), fn.InputError, "the table has no measure; name one to draw"),
        (lambda _: plot.over_time([ROW, ROW | {"measure": "AP"}]), fn.InputError, "the table has RR, AP; name one"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_says_why(draw, error, message, systems):
    with pytest.raises(error, match=re.escape(message)):
        draw(systems["bm25"])
