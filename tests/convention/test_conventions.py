"""Conventions as values, as parameters, side by side, and step by step; `match_conventions` names the tool that a number comes from.
That they are the tools' is in test_conventions_rivals.
"""

import dataclasses
import json
import math
import pickle
import re
from fractions import Fraction

import cases
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from commands import run
from conventions_data import rankings_of
from hypothesis import given
from hypothesis import strategies as st
from measured import LIVE, RIVAL_OF, ragged
from rivals import RIVALS, Query, random_queries

import fastndcg as fn
from fastndcg.convention.differences import choices_of
from fastndcg.errors import ConventionError
from fastndcg.measures.conventions import Convention
from fastndcg.measures.tools import Rounding

pytestmark = pytest.mark.compiled

# six documents with ties, and a judged one that was not retrieved
GOLDEN_QUERY = Query(
    "q", cases.GOLDEN_GRADES, cases.GOLDEN_SCORES, [f"d{i}" for i in range(1, 7)], cases.GOLDEN_POOL[6:]
)
HAVING_NDCG = [name for name, rule in fn.conventions.items() if "nDCG" in rule.names_of_measures]


@pytest.fixture(scope="module")
def golden():
    return rankings_of([GOLDEN_QUERY])


@pytest.fixture(scope="module")
def many():
    return rankings_of(random_queries(3, 40))


# ---- the mapping ----


def test_conventions_do_not_change():
    with pytest.raises(TypeError):
        fn.conventions["mine"] = fn.conventions["sklearn"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        fn.conventions["sklearn"].gain = "exp2"
    mine = fn.conventions["lightgbm"].replace(name="mine", gain=[0, 1, 3, 7, 15])
    assert fn.conventions["lightgbm"].gain == "exp2"
    assert mine != fn.conventions["lightgbm"]
    assert hash(mine) == hash(fn.conventions["lightgbm"].replace(name="mine", gain=(0, 1, 3, 7, 15)))
    assert pickle.loads(pickle.dumps(mine)) == mine


def test_what_does_not_exist():
    assert "lightgmb" not in fn.conventions
    assert fn.conventions.get("lightgmb") is None
    with pytest.raises(fn.MeasureError, match="ties='chance' is not a value of conventions"):
        Convention("mine", ties="chance")
    with pytest.raises(fn.ConventionError, match='"cwl_eval" cannot be reproduced: .* evaluate DCG instead'):
        fn.nDCG(like="cwl_eval")
    with pytest.raises(fn.ConventionError, match='"spark_graded" cannot be reproduced: .*"burges2005"'):
        assert fn.conventions["spark_graded"]


# ---- as parameters ----


@pytest.mark.parametrize("name", HAVING_NDCG)
def test_a_measure_like_a_tool_prints_its_parameters(name):
    convention = fn.conventions[name]
    measure = fn.nDCG(like=name) @ 10
    assert fn.parse(str(measure)) == measure == convention.measure(10)
    assert "like" not in str(measure)
    assert fn.parse(f"nDCG(like='{name}')@10") == measure
    assert fn.nDCG(like=name).cutoff == convention.default_cutoff


def test_named_parameters_win_over_those_of_a_tool():
    assert str(fn.nDCG(like="lightgbm") @ 10) == "nDCG(gain='exp2', ties='input', ideal='scored', empty=1)@10"
    assert (
        str(fn.nDCG(like="lightgbm", gain="linear", empty="skip"))
        == "nDCG(ties='input', ideal='scored', empty='skip')"
    )
    assert fn.nDCG(gain="exp2")(like="sklearn").gain == "linear"
    assert (fn.nDCG @ 5)(like="xgboost").cutoff == 5
    for early in (fn.AP(like="spark"), fn.AP(like="spark", rel=2), fn.AP(like="spark")(rel=2)):
        assert early @ 10 == fn.conventions["spark"].on(fn.AP @ 10).measure(10)(rel=early.rel)
    assert (fn.nDCG @ "slots")(like="xgboost") == fn.conventions["xgboost"].measure("slots")


# ---- as a whole ----


@pytest.mark.parametrize(
    ("name", "k", "value"),
    [*((one.system, one.cutoff, one.expected) for one in cases.GOLDEN), ("rax", 3, 0.9049494)],
)
def test_what_each_tool_printed_for_six_documents(golden, name, k, value):
    measure = fn.nDCG if k is None else fn.nDCG @ k
    scores = fn.evaluate(golden, measure, convention=name)
    assert scores[measure] == pytest.approx([value], abs=max(fn.conventions[name].tolerance, 1e-12))
    assert scores.mean()[str(measure)] == scores[measure][0]


def test_scores_are_found_by_the_name_asked_and_as_resolved(golden):
    scores = fn.evaluate(golden, ["nDCG@3", fn.nDCG(empty="skip") @ 5], convention="lightgbm")
    assert [str(measure) for measure in scores.measures] == ["nDCG@3", "nDCG(empty='skip')@5"]
    assert [str(measure) for measure in scores.resolved] == [
        "nDCG(gain='exp2', ties='input', ideal='scored', empty=1)@3",
        "nDCG(gain='exp2', ties='input', ideal='scored', empty='skip')@5",
    ]
    assert scores[scores.resolved[0]] is not None and np.array_equal(
        scores[scores.resolved[0]], scores["nDCG@3"]
    )
    assert "as lightgbm computes them" in repr(scores)


def test_printed_values_are_rounded_after_the_mean_and_stored_ones_before():
    queries = [
        Query(str(i), grades, [0.3, 0.2, 0.1], ["a", "b", "c"], [])
        for i, grades in enumerate([[1, 0, 1], [0, 1, 1], [0, 0, 1]])
    ]
    exact = fn.evaluate(rankings_of(queries), "nDCG", convention="pytrec_eval")
    printed = fn.evaluate(rankings_of(queries), "nDCG", convention="trec_eval")
    assert printed["nDCG"].tolist() == [float(f"{value:.4f}") for value in exact["nDCG"]]
    assert printed.mean()["nDCG"] == float(f"{exact.mean()['nDCG']:.4f}")
    stored = fn.evaluate(rankings_of(queries), "nDCG", convention="opensearch")
    assert stored["nDCG"].tolist() == [0.92, 0.69, 0.5]
    assert stored.mean()["nDCG"] == float((Fraction(0.92) + Fraction(0.69) + Fraction(0.5)) / 3)
    assert stored.summary().rows[0]["mean"] == stored.mean()["nDCG"]


def test_means_of_groups_follow_the_convention_too():
    queries = [Query("1", [0, 0], [2, 1], ["a", "b"], []), Query("2", [1, 0], [2, 1], ["a", "b"], [])]
    rankings = fn.Rankings.from_groups(
        [2, 2], [0, 0, 1, 0], [2, 1, 2, 1], weight=[0.5, 0.5], queries=pa.table({"country": ["de", "de"]})
    )
    assert len(queries) == rankings.n_queries
    assert fn.evaluate(rankings, "nDCG", convention="lightgbm").by("country")["nDCG"].to_pylist() == [1.5]


@pytest.mark.parametrize("name", ["trec_eval", "sentence_transformers", "replay"])
def test_ties_by_document_id_need_ids_only_where_there_are_ties(name):
    tied, untied = Query("t", [0, 1], [1, 1], ["a", "b"], []), Query("u", [0, 1], [2, 1], ["a", "b"], [])

    def without_ids(query):
        return fn.Rankings.from_lists([query.grades], [query.scores])

    for query in (tied, untied):
        fn.evaluate(rankings_of([query]), "nDCG@1", convention=name)
    fn.evaluate(without_ids(untied), "nDCG@1", convention=name)
    with pytest.raises(
        ConventionError,
        match=rf"{name} orders ties by document id.*query 0 has tied documents.*Give doc_ids=",
    ):
        fn.evaluate(without_ids(tied), "nDCG@1", convention=name)


def test_ids_are_compared_as_their_bytes_and_numbers_as_numbers():
    rankings = fn.Rankings.from_lists([[0, 1]], [[1, 1]], doc_ids=[9, 10])
    assert (
        fn.evaluate(rankings, "nDCG@1", convention="trec_eval").mean()["nDCG@1"] == 0.0
    )  # "9" is after "10"
    assert fn.evaluate(rankings, "nDCG@1", convention="replay").mean()["nDCG@1"] == 1.0
    accented = fn.Rankings.from_lists(
        [[0, 1, 0]], [[1, 1, 1]], doc_ids=pa.array(["z", "é", "Z"]).dictionary_encode()
    )
    assert fn.evaluate(accented, "nDCG@1", convention="trec_eval").mean()["nDCG@1"] == 1.0
    assert fn.evaluate(accented, "nDCG@1", convention="sentence_transformers").mean()["nDCG@1"] == 0.0


def test_ties_that_a_tool_leaves_to_chance_are_refused():
    short = fn.Rankings.from_lists([[1] + [0] * 15], [[1] * 16])
    long = fn.Rankings.from_lists([[1] + [0] * 16], [[1] * 17])
    alike = fn.Rankings.from_lists([[0] * 17], [[1] * 17])
    assert fn.evaluate(short, "nDCG@1", convention="allrank").mean() == {"nDCG@1": 1.0}
    assert fn.evaluate(alike, "nDCG@1", convention="allrank").mean() == {"nDCG@1": 1.0}
    with pytest.raises(
        ConventionError,
        match=r"does not define the order of ties in lists of more than 16, and query 0 has tied documents",
    ):
        fn.evaluate(long, "nDCG@1", convention="allrank")
    with pytest.raises(
        ConventionError, match=r"recpack does not define the order of ties, and query 0 .*like=\"recpack\""
    ):
        fn.evaluate(short, "nDCG@1", convention="recpack")


# ---- ideals with a length of their own ----


@pytest.mark.parametrize("ideal", ["judged_uncut", "judged_returned"])
def test_ideals_of_their_own_length_by_hand(ideal):
    rankings = fn.Rankings.from_lists(
        [[1, 2], [0], [], []],
        [[2, 1], [1], [], []],
        judged=([0, 3, 4, 6, 6], [1, 2, 3, 0, 1, 1]),
        is_judged=[True, True, True],
    )
    discounts = 1 / np.log2(np.arange(2, 5))
    dcg, best = 1 + 2 * discounts[1], np.array([3, 2, 1]) @ discounts
    if ideal == "judged_returned":
        best = np.array([3, 2]) @ discounts[:2]
    scores = fn.evaluate(rankings, [fn.nDCG(ideal=ideal, empty="nan") @ 2, fn.IDCG(ideal=ideal) @ 2])
    uncut = 1 + discounts[1] if ideal == "judged_uncut" else 0.0
    assert scores.values[0] == pytest.approx(
        [dcg / best, np.nan, 0.0 if uncut else np.nan, np.nan], nan_ok=True
    )
    assert scores.values[1] == pytest.approx([best, 0.0, uncut, 0.0])


@pytest.mark.parametrize("ideal", ["judged_uncut", "judged_returned"])
def test_a_perfect_ranking_by_such_an_ideal_is_exactly_one(ideal):
    rng = np.random.default_rng(4)
    grades = [np.sort(rng.random(rng.integers(1, 40)))[::-1] for _ in range(200)]
    values = fn.evaluate(fn.Rankings.from_lists(grades), fn.nDCG(ideal=ideal, discount="reciprocal")).values
    assert (values == 1.0).all()
    with pytest.raises(fn.InputError, match="is not defined for the gain -1 of grade -1"):
        fn.evaluate(fn.Rankings.from_lists([[-1, 2]]), fn.nDCG(ideal=ideal))


# ---- side by side ----


@pytest.mark.parametrize(
    "notation",
    ["nDCG@10", "nDCG", "AP@5", "AP", "R@3", "P@10", "RR(rel=2)", "Success@1", "DCG@5", "ERR@5", "NumRet@5"],
)
def test_the_comparison_of_any_measure_has_everybodys_number(many, notation):
    measure = fn.parse(notation)
    rows = fn.compare_conventions(many, notation).to_pylist()
    having = [name for name, rule in fn.conventions.items() if rule.find(measure.name, cut=measure.is_cut)]
    assert [row["name"] for row in rows] == having
    if measure.name != "ERR":  # those that have it need ids where documents tie, or grades up to 1
        without_ids = fn.compare_conventions(fn.Rankings.from_lists([[1, 0, 2]], [[1, 1, 0]]), notation)
        assert without_ids["refused"][0].as_py() is None and set(without_ids["name"].to_pylist()) == set(
            having
        )
    for row in rows:
        if row["refused"] is not None:
            assert re.search("does not define the order|the stopping probability would be", row["refused"])
            continue
        mean = fn.evaluate(many, notation, convention=row["name"]).mean()[notation]
        assert row["value"] == pytest.approx(mean, abs=1e-15, nan_ok=True)
        if row["value"] != row["value"]:  # Quepid's, of a query without relevant documents
            continue
        effects = [Fraction(value) for name, value in row.items() if name in choices_of(measure.name)]
        assert Fraction(rows[0]["value"]) + sum(effects) == Fraction(row["value"])
        assert row["difference"] == row["value"] - rows[0]["value"]
    assert "denominator" not in rows[0] if measure.name in ("DCG", "ERR") else True


def test_a_choice_that_is_the_same_moves_nothing(many):
    rows = {
        row["name"]: row
        for row in fn.compare_conventions(many, 5, ["sklearn", "lightgbm", "xgboost-"]).to_pylist()
    }
    assert rows["lightgbm"]["discount"] == rows["lightgbm"]["ideal"] == rows["lightgbm"]["rounding"] == 0.0
    assert rows["lightgbm"]["empty"] > 0 and rows["lightgbm"]["gain"] != 0 and rows["lightgbm"]["ties"] != 0
    assert rows["xgboost-"]["empty"] == 0


def test_a_comparison_begins_with_a_value_and_takes_conventions_too(golden):
    mine = fn.conventions["sklearn"].replace(name="mine", gain="exp2")
    table = fn.compare_conventions(golden, 3, ["sklearn", mine]).to_pylist()
    assert [row["name"] for row in table] == ["sklearn", "mine"]
    assert table[1]["gain"] == table[1]["difference"] != 0
    with pytest.raises(ConventionError, match="recpack has no value here to compare with"):
        fn.compare_conventions(golden, 3, ["recpack", "sklearn"])


def test_grades_that_a_tool_cannot_bear_leave_the_others_their_values():
    rankings = fn.Rankings.from_lists([[-1, 2, 0]], [[3, 2, 1]])
    rows = {
        row["name"]: row
        for row in fn.compare_conventions(rankings, 3, ["ranx", "sklearn", "spark"]).to_pylist()
    }
    assert rows["sklearn"]["value"] is None and "grade -1" in rows["sklearn"]["refused"]
    assert rows["ranx"]["value"] == pytest.approx(1 / np.log2(3)) and rows["spark"]["refused"] is None


# ---- step by step ----


@given(st.data())
def test_steps_of_any_measure_add_up_exactly(data):
    notation = data.draw(
        st.sampled_from(["nDCG", "nDCG@3", "nDCG@10", "AP@3", "AP", "R@3", "RR@2", "P@5", "Rprec"])
    )
    measure = fn.parse(notation)
    having = [name for name, rule in fn.conventions.items() if rule.find(measure.name, cut=measure.is_cut)]
    start, end = (data.draw(st.sampled_from(having)) for _ in range(2))
    rankings = rankings_of(random_queries(12, 10, ties=False))
    table = fn.explain_conventions(rankings, start, end, notation).to_pylist()
    assert table[0]["choice"] == start and table[0]["effect"] is None
    total = table[0]["value"]
    is_nan = np.isnan(total)  # as the mean of Quepid's AP where a query has no relevant document
    for step in table[1:]:
        assert step["choice"] in choices_of(measure.name) and step["before"] != step["after"]
        total += step["effect"]
        is_nan |= np.isnan(step["value"])
        assert is_nan or total == step["value"]
    mean = fn.evaluate(rankings, notation, convention=end).mean()[notation]
    assert np.isnan(mean) == np.isnan(table[-1]["value"])
    assert is_nan or total == pytest.approx(mean, abs=1e-15)


def test_one_choice_at_a_time(golden):
    steps = fn.explain_conventions(golden, "sklearn", "elasticsearch", 3).to_pylist()
    assert [(step["choice"], step["before"], step["after"]) for step in steps] == [
        ("sklearn", None, None),
        ("queries", "missing skip, unjudged skip", "missing value, unjudged value"),
        ("gain", "linear", "exp2"),
        ("ideal", "scored", "judged_returned"),
        ("ties", "average", "input"),
        ("weights", "weighted", "ignored"),
    ]
    assert len(fn.explain_conventions(golden, "sklearn", "sklearn", 3)) == 1
    with pytest.raises(ConventionError, match="sklearn cannot be turned into recpack on this data"):
        fn.explain_conventions(golden, "sklearn", "recpack", 3)


def test_rules_beyond_the_measure_are_told():
    assert fn.conventions["trec_eval9"].beyond_measure == {
        "ties": "docid_desc", "score_dtype": "float32", "rounding": Rounding(4, "printed"), "missing": "skip", "unjudged": "skip",
        "weights": "ignored",
    }  # fmt: skip
    assert "lightgbm" in repr(fn.conventions) and "nDCG(gain='exp2'" in repr(fn.conventions)


def test_reasons_of_conventions_are_whole_sentences():
    """That of allRank, which has a value for empty queries, lacked what is not defined, and for which grade."""
    rankings = fn.Rankings.from_groups([3], [-1, 2, 1], [0.1, 0.2, 0.3], query_ids=["q0"])
    rows = fn.compare_conventions(rankings, "nDCG@5").to_pylist()
    reasons = {row["name"]: row["refused"] for row in rows if row["refused"]}
    assert {"allrank", "lightgbm", "sklearn"} <= set(reasons)
    for name, reason in reasons.items():
        assert re.match(
            r"nDCG\(.*\)@5 is not defined for the gain -\S+ of grade -1, which occurs at row 0", reason
        ), name


MEASURES = ("nDCG@5", "nDCG@10", "nDCG", "AP@3", "AP", "P@5", "R@3", "RR@5", "Success@3", "AUC", "ERR@5", "Rprec", "DCG@5")  # fmt: skip


def first(table):
    row = table.to_pylist()[0]
    return row["convention"], {name for name in row["equals"].split(", ") if name}


def values_by(rankings, measure, tool):
    scores = fn.evaluate(rankings, measure, convention=None if tool == "fastndcg" else tool)
    return scores[measure], scores.mean()[measure]


def having(rankings, measure):
    """Values and means of all tools that have some here, by `evaluate`."""
    known = {}
    for tool in ("fastndcg", *fn.conventions):
        try:
            known[tool] = values_by(rankings, measure, tool)
        except (fn.MeasureError, fn.InputError):
            continue
    return known


@pytest.mark.slow
def test_it_names_the_right_tool_first_in_95_of_100_cases():
    random, right, told_apart, wrong = np.random.default_rng(35), 0, 0, []
    for case in range(100):
        measure = str(random.choice(MEASURES))
        queries = random_queries(1000 + case, int(random.integers(20, 60)), ties=bool(random.integers(2)))
        rankings = rankings_of(queries)
        known = having(rankings, measure)
        tool = str(random.choice(list(known)))
        values, mean = known[tool]
        decimals = [None, 4, 6][case % 3]
        alone = case % 4 == 3 and not math.isnan(mean)
        given = mean if alone else values
        given = given if decimals is None else round(given, decimals) if alone else given.round(decimals)
        if case % 4 == 1:
            ids = rankings.query_ids.to_pylist()
            given = {name: value for name, value in zip(ids, given, strict=True) if not math.isnan(value)}
        name, equals = first(fn.match_conventions(rankings, measure, given))
        slack = 2e-6 if decimals is None else 1.01 * 10.0**-decimals
        theirs = known[name]
        same = (
            abs(theirs[1] - mean) <= slack
            if alone
            else np.allclose(theirs[0], values, rtol=0, atol=slack, equal_nan=True)
        )
        told_apart += not equals
        if name == tool or (tool in equals and same):
            right += 1
        else:
            wrong.append((case, measure, tool, name, equals, alone, decimals))
    assert right >= 95, wrong
    assert told_apart >= 20, told_apart  # of the others the numbers are those of several tools


LIVE_CASES = [(tool, measure, live.cutoffs[-2 % len(live.cutoffs)]) for (tool, measure), live in LIVE.items()]


@pytest.mark.rivals
@pytest.mark.filterwarnings("ignore")
@pytest.mark.xdist_group("conventions_rivals")
@pytest.mark.parametrize(("tool", "measure", "k"), LIVE_CASES)
def test_it_names_the_tool_that_was_asked(tool, measure, k):
    if (why := RIVALS[RIVAL_OF.get(tool, tool)].missing) is not None:
        pytest.skip(f"{tool} is not installed here: {why}")
    queries = ragged(17, LIVE[tool, measure])
    values = LIVE[tool, measure].run(queries, k)
    asked = measure if k is None else f"{measure}@{k}"
    for reported in (values, [None if value is None else round(value, 5) for value in values]):
        row = fn.match_conventions(rankings_of(queries), asked, reported).to_pylist()[0]
        assert row["matches"] and tool in (row["convention"], *row["equals"].split(", ")), row


@pytest.fixture(scope="module")
def of_lightgbm():
    rankings = rankings_of(random_queries(5, 40))
    scores = fn.evaluate(rankings, "AP@10", convention="lightgbm")
    return rankings, rankings.query_ids.to_pylist(), scores["AP@10"], scores.mean()["AP@10"]


def test_every_form_of_values(of_lightgbm):
    rankings, ids, values, mean = of_lightgbm
    pairs = list(zip(ids, values.tolist(), strict=True))
    forms = [
        values, values.tolist(), pa.array(values), tuple(values), pd.Series(values), pl.Series(values), mean, np.float32(mean), round(mean, 5),
        dict(pairs), {int(name): value for name, value in pairs}, values.astype(np.float32),
    ]  # fmt: skip
    for form in forms:
        row = fn.match_conventions(rankings, "AP@10", form).to_pylist()[0]
        assert row["matches"] and row["convention"] == "lightgbm", (type(form), row)


def test_numbers_that_nobody_has(of_lightgbm):
    rankings, ids, values, _ = of_lightgbm
    mine = fn.conventions["lightgbm"].replace(AP={"denominator": "hits"})
    given = fn.evaluate(rankings, "AP@10", convention=mine)["AP@10"]
    rows = fn.match_conventions(rankings, "AP@10", given).to_pylist()
    assert not any(row["matches"] for row in rows)
    found = [row["differing"] for row in rows if row["value"] is not None]
    assert found == sorted(found), "nearest first"
    sample = dict(list(zip(ids, values, strict=True))[:9])  # queries that a sample lacks do not count
    assert fn.match_conventions(rankings, "AP@10", sample).to_pylist()[0]["matches"]
    row = fn.match_conventions(rankings, "AP@10", np.random.default_rng(1).random(40)).to_pylist()[0]
    assert row["differing"] >= 39
    ours = fn.AP(rel=2, judged_only=True, empty="skip") @ 5
    row = fn.match_conventions(rankings, ours, fn.evaluate(rankings, ours)[ours]).to_pylist()[0]
    assert row["convention"] == "fastndcg" and row["matches"]


def test_tools_without_a_value_come_last_with_the_reason(of_lightgbm):
    rankings, _, values, _ = of_lightgbm
    rows = fn.match_conventions(rankings, "AP@10", values).to_pylist()
    (row,) = (row for row in rows if row["convention"] == "torchmetrics")
    assert row["value"] is None and "does not define the order of ties" in row["refused"]
    assert 'AP(like="torchmetrics"' in row["refused"]
    assert [row["value"] is None for row in rows] == sorted(row["value"] is None for row in rows)
    short = fn.Rankings.from_lists([[1, 0], [0, 1], [1, 0], [0, 1]])
    row = fn.match_conventions(short, "RR", 0.75).to_pylist()[0]  # a mean of 3/4, and none of about 0.7
    assert row["matches"] and row["largest"] == 0


def test_decimals_that_are_given_count():
    lists = fn.Rankings.from_lists([[0, 1], [0, 0, 0, 1], [0, 1]])
    assert fn.match_conventions(lists, "AP", 0.4167)["matches"].to_pylist()[0]
    assert not fn.match_conventions(lists, "AP", [0.5, 0.25, 0.5001])["matches"].to_pylist()[0]
    assert fn.match_conventions(lists, "AP", [0.5, 0.25, 0.5001], decimals=3)["matches"][0].as_py()


def test_the_command_that_matches(tmp_path):
    queries = random_queries(5, 40, ties=False)  # ties of a run are not in the order of its lines
    scores = fn.evaluate(rankings_of(queries), "AP@10", convention="lightgbm")
    mean = scores.mean()["AP@10"]
    (tmp_path / "qrels").write_text(
        "".join(f"{q.name} 0 {d} {g}\n" for q in queries for d, g in q.qrels.items())
    )
    (tmp_path / "run").write_text(
        "".join(
            f"{q.name} Q0 {d} 0 {s} me\n" for q in queries for d, s in zip(q.doc_ids, q.scores, strict=True)
        )
    )
    data = ("--qrels", tmp_path / "qrels", "--run", tmp_path / "run", "-m", "AP@10")
    rows = json.loads(run("conventions", *data, "--match", f"{mean:.6f}", "--format", "json").stdout)
    assert rows[0]["convention"] == "lightgbm" and rows[0]["matches"] is True
    shown = run("conventions", *data, "--match", f"{mean:.4f}").stdout
    assert shown.startswith("These numbers are those of lightgbm") and " yes " in shown
    assert "torchmetrics" in shown and "torchmetrics: does not define the order of ties" not in shown
    for words, message in (
        (
            (*data, "--match", "nothing.csv"),
            '--match is "nothing.csv"; expected a mean, as in --match 0.4321',
        ),
        ((*data, "--match", "0.4", "-n", "ranx"), "--match compares all definitions"),
        (("--match", "0.4"), "--match needs data"),
    ):
        result = run("conventions", *words)
        assert result.exit_code == 2 and message in result.stderr
