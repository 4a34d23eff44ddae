"""`explain`: what each rank adds, beside the ideal."""

import math

import numpy as np
import pyarrow as pa
import pytest
import strategies as ours

import fastndcg as fn

pytestmark = pytest.mark.pure

NO_RANKING = ("IDCG", "NumRel")
EXPLAINED = tuple(name for name in ours.OF_QUERIES if name not in NO_RANKING)


def same(one, other):
    return one == other or (math.isnan(one) and math.isnan(other))


def lists(grades, scores=None, **columns):
    return fn.Rankings.from_lists([grades], None if scores is None else [scores], **columns)


def example(**columns):
    return fn.Rankings.from_lists(
        [[1, 0], [3, 0, 2, 1, 0]],
        [[2, 1], [9, 8, 8, 7, 1]],
        query_ids=["q-1", "q-42"],
        judged=([0, 2, 9], [1, 0, 3, 0, 2, 1, 0, 3, 1]),
        doc_ids=list("xyabcde"),
        **columns,
    )


# ---- laws of all measures ----


@pytest.mark.parametrize("name", EXPLAINED)
def test_contributions_add_up_to_the_value(name):
    checked = 0
    for seed in range(6000, 6004):
        table = ours.crossed_table(seed, longest=5)
        if table.propensity is None and name in ("DCG", "CG"):
            table.propensity = np.full(len(table.relevance), 0.5)
        rankings = table.rankings()
        for asked in ours.crossed_measures(seed, table, names=[name], most=4):
            try:
                values = fn.evaluate(rankings, asked.measure)[asked.measure]
                explanations = [fn.explain(rankings, asked.measure, row) for row in range(len(rankings))]
            except fn.MeasureError as error:
                assert "different ideal for each order" in str(error)
                continue
            for row, (found, value) in enumerate(zip(explanations, values, strict=True)):
                note, rows = (seed, str(asked.measure), row), found.to_arrow().to_pylist()
                ranked = [each for each in rows if each["contribution"] is not None]
                assert same(found.value, value), note
                if found.is_empty or not ranked:
                    assert not any(each["contribution"] for each in ranked), note
                    continue
                most = max(abs(each["cumulative"]) for each in ranked)
                assert ranked[-1]["cumulative"] == found.value, note
                total = math.fsum(each["contribution"] for each in ranked)
                assert abs(total - found.value) <= 1e-12 * max(most, asked.scale(table)), note
                check_gains(found, ranked, note)
                checked += 1
    assert checked > 20


def check_gains(found, ranked, note):
    """Of nDCG and DCG a document adds its gain, times its discount, over IDCG."""
    params = found.measure.params
    if (
        found.measure.name not in ("nDCG", "DCG")
        or params.get("floor") == "worst"
        or params.get("ips") == "snips"
    ):
        return
    ideal = found.ideal if found.measure.name == "nDCG" else 1.0
    gains = [each["gain"] for each in ranked]
    mixed = min(gains) < 0 < max(gains)  # then those of one sign share what all tied documents add
    for each in ranked if not mixed else [each for each in ranked if each["tie_group"] is None]:
        expected = each["gain"] * (each["discount"] or 0.0) / ideal
        assert each["contribution"] == pytest.approx(expected, abs=1e-12 * max(abs(found.value), 1)), note


# of these the value at a smaller cutoff is that of a ranking which is cut there
CUT = ["DCG", "CG", "AP", "RR", "R", "Success", "ERR(max_rel=3)", "RBP", "NumRet(rel=1)", "P"]


@pytest.mark.parametrize("measure", CUT)
@pytest.mark.parametrize("ties", ["average", "worst"])
def test_the_value_so_far_is_that_of_a_smaller_cutoff(measure, ties):
    random, asked = np.random.default_rng(0), fn.parse(measure)(ties=ties)
    for n in range(1, 12):
        rankings = lists(np.append(random.integers(0, 4, n - 1), 1), random.integers(0, 6, n))
        rows = fn.explain(rankings, asked, 0).to_arrow().to_pylist()
        for rank, (row, below) in enumerate(zip(rows, [*rows[1:], {"score": None}], strict=True), 1):
            if ties != "average" or row["score"] != below["score"]:
                expected = fn.evaluate(rankings, asked @ rank).values[0, 0]
                assert row["cumulative"] == pytest.approx(expected, rel=1e-12)


IDEALS = ("judged", "scored", "returned", "full", "judged_uncut", "judged_returned")


@pytest.mark.parametrize("ideal", IDEALS)
def test_the_ideal_is_that_of_idcg(ideal):
    ties = "input" if ideal == "returned" else "average"
    for seed in range(6200, 6206):
        table = ours.crossed_table(seed, longest=5)
        rankings = table.rankings(doc_ids=[f"d{row}" for row in range(len(table.relevance))])
        words = {"ideal": ideal, "ties": ties, "unjudged": (None, 3)[seed % 2], "rel": 1}
        for cut in (1, 3, 40):
            idcg = fn.evaluate(rankings, fn.IDCG(**words) @ cut).values[0]
            for row in range(len(rankings)):
                found = fn.explain(rankings, fn.nDCG(**words) @ cut, row)
                if found.is_empty:
                    assert math.isnan(found.ideal)
                    continue
                rows = found.to_arrow().to_pylist()
                assert found.ideal == pytest.approx(idcg[row], rel=1e-12)
                shares = [
                    each["ideal_contribution"] for each in rows if each["ideal_contribution"] is not None
                ]
                assert math.fsum(shares) == pytest.approx(1, rel=1e-12) and min(shares) >= 0
                grades = {each["doc_id"]: 3 if each["grade"] is None else each["grade"] for each in rows}
                named = [each for each in rows if each["ideal_doc_id"] is not None]
                assert [grades[each["ideal_doc_id"]] for each in named] == [
                    each["ideal_grade"] for each in named
                ]
                assert len({each["ideal_doc_id"] for each in named}) == len(named)


# ---- exact fields ----

D2, D3 = 1 / math.log2(3), 0.5
IDEAL = 3 + 3 * D2 + 2 * D3


def test_columns():
    table = fn.explain(example(), "nDCG@3", query="q-42").to_arrow()
    expected = {
        "rank": [1, 2, 3, 4, 5],
        "doc_id": list("abcde"),
        "grade": [3, 0, 2, 1, 0],
        "score": [9, 8, 8, 7, 1],
        "gain": [3, 0, 2, 1, 0],
        "discount": [1, (D2 + D3) / 2, (D2 + D3) / 2, None, None],
        "contribution": [3 / IDEAL, 0, (D2 + D3) / IDEAL, 0, 0],
        "cumulative": [3 / IDEAL, 3 / IDEAL, *[(3 + D2 + D3) / IDEAL] * 3],
        "ideal_doc_id": ["a", None, "c", None, None],  # one document of grade 3 was not returned
        "ideal_grade": [3, 3, 2, None, None],
        "ideal_contribution": [3 / IDEAL, 3 * D2 / IDEAL, 2 * D3 / IDEAL, None, None],
        "tie_group": [None, 1, 1, None, None],
    }
    assert table.column_names == [*expected]
    for name, column in expected.items():
        near = [each if isinstance(each, str | None) else pytest.approx(each, abs=1e-15) for each in column]
        assert table[name].to_pylist() == near, name
    assert table["doc_id"].type == table["ideal_doc_id"].type


# measure, grades, scores, contributions
CASES = [
    ("RR", [0, 1, 1], None, [0, 1 / 2, 0]),
    ("AP", [1, 0, 1], None, [1 / 2, 0, 1 / 3]),
    ("P@4", [1, 0, 1], None, [1 / 4, 0, 1 / 4]),
    ("P", [1, 0], None, [1, -1 / 2]),  # what was returned in vain lowers precision
    ("SetAP", [1, 0], None, [1, -1 / 2]),
    ("AUC", [1, 0, 1], None, [0, 1, -1 / 2]),
    ("IPrec@0.5", [0, 1], None, [0, 1 / 2]),
    ("AP(denominator='hits')@2", [1, 0, 1], [2, 1, 1], [1, 0, 0]),  # 1 in each order of the ties
    ("AP(denominator='hits')@3", [1, 0, 1], None, [1, 0, -1 / 6]),
    ("P@2", [0, 1, 1, 0], [1, 1, 1, 1], [0, 1 / 4, 1 / 4, 0]),  # tied across the cutoff
    ("DCG@1", [1, 3], [1, 1], [1 / 2, 3 / 2]),
    ("DCG(ties='worst')@1", [1, 3], [1, 1], [1, 0]),
    ("DCG(ties='best')@1", [1, 3], [1, 1], [3, 0]),
    ("DCG(gain=[-1, 2])", [0, 1], None, [-1, 2 * D2]),
    ("DCG(gain=[-1, 2])@1", [0, 1], [1, 1], [0, 1 / 2]),
    ("DCG(gain=[-1, -3])@1", [0, 1], [1, 1], [-1 / 2, -3 / 2]),
    ("nDCG(floor='worst')@1", [0, 1], None, [0, 0]),
    ("RBPresidual(p=0.5)", [1, 1], None, [1 / 2, -1 / 4]),
]


@pytest.mark.parametrize(("measure", "grades", "scores", "expected"), CASES)
def test_what_each_rank_adds(measure, grades, scores, expected):
    found = fn.explain(lists(grades, scores), measure, 0)
    assert found.to_arrow()["contribution"].to_pylist() == pytest.approx(expected, abs=1e-15)


def test_dropped_documents_have_no_rank():
    rankings = lists([1, 2, 0], is_judged=[False, True, True])
    table = fn.explain(rankings, fn.DCG(judged_only=True), 0).to_arrow()
    assert table["rank"].to_pylist() == [1, 2, None]
    assert table["grade"].to_pylist() == [2, 0, None]
    assert table["contribution"].to_pylist() == [2, 0, None]
    assert fn.explain(rankings, "DCG", 0).to_arrow()["grade"].to_pylist() == [None, 2, 0]


def test_an_empty_query_says_so():
    found = fn.explain(lists([0, 0]), fn.nDCG(empty=1.0) @ 5, 0)
    assert (found.value, found.is_empty) == (1.0, True)
    assert math.isnan(found.ideal) and "it is undefined there, and counts by empty=1.0" in repr(found)
    assert found.to_arrow()["contribution"].to_pylist() == [0, 0]
    nothing = fn.explain(lists([]), "nDCG", 0)
    assert not len(nothing.to_arrow()) and nothing._repr_html_()
    assert nothing.to_arrow().schema == found.to_arrow().schema


# ---- text ----


def test_a_table_ends_at_the_cutoff_and_says_what_is_below():
    def shown(grades, measure, scores=None, **options):
        return fn.explain(lists(grades, scores), measure, 0).text(**options).splitlines()

    late = [0] * 11 + [1, 0, 2]
    lines = shown(late, "nDCG@10")
    assert len(lines) == 13 and lines[-1] == "Not shown: 4 documents; to_arrow() shows all."
    assert len(shown(late, "nDCG@10", whole=True)) == 16 and "Not shown" not in shown(late, "RR")[-1]
    assert shown([1, 0, 0], "P@2", see="--format csv")[-1] == "Not shown: 1 document; --all shows all."
    # documents that are tied across the cutoff count, and are shown
    assert len(shown(late, "nDCG@10", [9.0] * 8 + [1.0] * 4 + [0.0] * 2)) == 1 + 1 + 12 + 2
    assert len(shown(late, "nDCG@10", [1.0] * 14)) == 1 + 1 + 14 + 1
    assert len(shown(late, "nDCG(ties='input')@10", [1.0] * 14)) == 1 + 1 + 10 + 2
    # of many documents 30 are shown, of a query without relevant ones none
    many = shown([0] * 40 + [1], "AP")
    assert len(many) == 33 and many[-1].startswith("Not shown: 11 documents;")
    nothing = shown([0] * 12, "nDCG@10")
    assert len(nothing) == 2 and nothing[1] == "Not shown: 12 documents; to_arrow() shows all."
    assert shown([], "nDCG@10")[1:] == ["No documents were returned."]


# ---- what is asked for ----


def test_ids_of_every_kind():
    for ids in (["a", "b"], [7, 8], pa.array(["a", "b"]).dictionary_encode(), pa.array([b"a", b"b"])):
        rankings = fn.Rankings.from_lists([[0, 1], [1]], query_ids=ids)
        for query, value in zip(rankings.query_ids.to_pylist(), (0.5, 1.0), strict=True):
            assert fn.explain(rankings, "RR", query).value == value
    assert fn.explain(lists([1], query_ids=[7]), "RR", "7").value == 1.0
