"""`explain`: contributions that fold to the value, and that are those of the oracle rank by rank."""

import itertools
import math
import re

import numpy as np
import oracle
import pyarrow as pa
import pytest
import strategies as ours

import fastndcg as fn
from fastndcg.measures import DEFINITIONS

pytestmark = pytest.mark.pure

NO_SUM = ("IPrec", "SetAP", "IDCG", "NumRel")
SUMS = tuple(name for name in ours.OF_QUERIES if name not in NO_SUM)


def same(one, other):
    return one == other or (math.isnan(one) and math.isnan(other))


@pytest.mark.parametrize("name", SUMS)
def test_contributions_fold_to_the_very_value(name):
    checked = 0
    for seed in range(6000, 6006):
        table = ours.crossed_table(seed, longest=5)
        if table.propensity is None and name in ("DCG", "CG"):
            table.propensity = np.full(len(table.relevance), 0.5)
        rankings = table.rankings()
        for asked in ours.crossed_measures(seed, table, names=[name], most=4):
            values, scale = fn.evaluate(rankings, asked.measure)[asked.measure], asked.scale(table)
            for row, query in enumerate(rankings.query_ids.to_pylist()):
                try:
                    found = fn.explain(rankings, asked.measure, query)
                except fn.MeasureError as error:
                    assert re.search("another ideal for|a value for no document|share of pairs", str(error))
                    continue
                note = (seed, str(asked.measure), row)
                assert same(found.value, values[row]), note
                if found.is_empty:
                    continue
                parts = found.to_arrow()["contribution"].fill_null(0).to_numpy()
                total = math.fsum(parts) + (found.folded - math.fsum(parts) if name == "RBPresidual" else 0)
                bound = 1e-12 * max(abs(found.value), scale / max(abs(found._ranks.ideal), 1e-9), 1e-300)
                exact = (
                    asked.measure.definition.way == "kernels"
                    and asked.measure.params.get("ideal") != "returned"
                )
                assert found.folded == found.value if exact else abs(found.folded - found.value) <= bound, (
                    note
                )
                assert abs(total - found.value) <= max(bound, 1e-12 * scale), note
                checked += 1
    assert checked > 20


# of these the value at a smaller cutoff is what was summed so far
RUNNING = ("DCG", "CG", "AP", "RR", "R", "Success", "ERR", "RBP", "NumRet")


@pytest.mark.parametrize("name", RUNNING)
def test_the_value_so_far_is_that_of_a_smaller_cutoff(name):
    for seed in range(6100, 6106):
        table = ours.crossed_table(seed, longest=5)
        table.propensity = None
        rankings = table.rankings()
        for asked in ours.crossed_measures(seed, table, names=[name], most=3):
            words = dict(asked.parameters)
            if words.get("denominator", "n_relevant") != "n_relevant":
                continue
            for row, query in enumerate(table.queries()):
                found = fn.explain(rankings, asked.measure, row)
                if found.is_empty:
                    continue
                running = found.to_arrow()["cumulative"].drop_null().to_pylist()
                for rank, got in enumerate(running, start=1):
                    wanted = oracle.score(name, query, min(rank, asked.cutoff or rank), **words)
                    assert abs(got - wanted) <= 1e-12 * max(abs(wanted), asked.scale(table)), (
                        seed,
                        str(asked.measure),
                        row,
                        rank,
                    )


def example(**columns):
    return fn.Rankings.from_lists(
        [[1, 0], [3, 0, 2, 1, 0]],
        [[2, 1], [9, 8, 8, 7, 1]],
        query_ids=["q-1", "q-42"],
        judged=([0, 2, 9], [1, 0, 3, 0, 2, 1, 0, 3, 1]),
        doc_ids=list("xyabcde"),
        **columns,
    )


def test_columns():
    table = fn.explain(example(), "nDCG@3", query="q-42").to_arrow()
    assert table.column_names == [
        "rank", "doc_id", "grade", "score", "gain", "discount", "contribution", "cumulative", "ideal_grade",
        "ideal_contribution", "tie_group", "expected_gain",
    ]  # fmt: skip
    ideal = 3 + 3 / math.log2(3) + 2 / 2
    rows = table.to_pylist()
    assert [row["doc_id"] for row in rows] == list("abcde")
    assert [row["tie_group"] for row in rows] == [None, 1, 1, None, None]
    assert [row["expected_gain"] for row in rows] == [3, 1, 1, None, None]
    assert [row["gain"] for row in rows] == [3, 0, 2, 1, 0]
    assert [row["ideal_grade"] for row in rows] == [3, 3, 2, None, None]
    assert rows[1]["contribution"] == pytest.approx(1 / math.log2(3) / ideal, rel=1e-15)
    assert [row["contribution"] for row in rows[3:]] == [0, 0]
    assert table["cumulative"][-1].as_py() == fn.evaluate(example(), "nDCG@3").values[0, 1]
    assert math.fsum(table["ideal_contribution"].drop_null().to_pylist()) == pytest.approx(1, rel=1e-15)


def test_missed_documents():
    found = fn.explain(example(), "nDCG@3", query="q-42")
    missed = found.missed.to_pylist()
    assert [(row["grade"], row["gain"], row["documents"]) for row in missed] == [(3, 3, 1), (1, 1, 1)]
    ideal = 3 + 3 / math.log2(3) + 2 / 2
    with_three = (3 + 3 / math.log2(3) + 1 / 2) / ideal
    assert missed[0]["at_top"] == pytest.approx(with_three - found.value, rel=1e-12)
    assert "Judged and not returned: 1 document of grade 3, 1 document of grade 1." in repr(found)
    assert not len(fn.explain(fn.Rankings.from_lists([[1]]), "RR", 0).missed)


SWAPPED = ["nDCG@2", "DCG@1", "AP@2", "AP", "RR@2", "ERR(max_rel=3)@2", "P@2", "R@3", "F@2", "Rprec", "Success@2", "RBP@2",
           "SDCG(max_rel=3)@2", "Judged@2", "RBPresidual@2", "NumRet(rel=1)@2", "Bpref", "infAP", "SetF"]  # fmt: skip


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::fastndcg.errors.FastndcgWarning")
@pytest.mark.parametrize("ties", ["average", "input", "worst", "best"])
@pytest.mark.parametrize("measure", SWAPPED)
def test_the_first_swap_is_the_best_of_all_exchanges(measure, ties):
    """Also of tied documents on both sides of the cutoff, and of unjudged documents."""
    random, asked = np.random.default_rng(0), fn.parse(measure)(ties=ties)
    for _ in range(30):
        n = int(random.integers(2, 7))
        grades, scores, judged = (
            random.integers(0, 3, n),
            -np.sort(random.integers(0, 3, n)),
            random.random(n) < 0.8,
        )

        def value(rows):
            lists = fn.Rankings.from_lists([grades[rows]], [scores], is_judged=judged[rows])  # noqa: B023
            return float(fn.evaluate(lists, asked).values[0, 0])

        found = fn.explain(fn.Rankings.from_lists([grades], [scores], is_judged=judged), asked, 0)
        if found.is_empty:
            continue
        best, (order, swaps) = 0.0, (found._order, found.swaps(1).to_pylist())
        for one, other in itertools.combinations(range(n), 2):
            rows = order.copy()
            rows[[one, other]] = rows[[other, one]]
            best = max(best, value(rows) - found.value)
        assert (swaps[0]["gains"] if swaps else 0.0) == pytest.approx(best, abs=1e-9)


def test_a_tied_group_that_crosses_the_cutoff_can_be_exchanged():
    rankings = fn.Rankings.from_lists([[1, 1, 0, 1]], [[2.0, 1.0, 1.0, 0.0]])
    assert fn.explain(rankings, "P@2", 0).swaps().to_pylist() == [{"rank": 3, "with_rank": 4, "gains": 0.25}]


@pytest.mark.parametrize("measure", ["nDCG@3", "AP", "RR", "ERR(max_rel=3)", "P@2", "RBP", "Bpref"])
def test_swaps_are_what_an_exchange_would_gain(measure):
    random = np.random.default_rng(1)
    grades, scores = np.append([0, 0], random.integers(0, 4, 10)), np.arange(12, 0, -1)
    rankings = fn.Rankings.from_lists([grades], [scores])
    found = fn.explain(rankings, measure, 0)
    swaps = found.swaps(100).to_pylist()
    best = 0.0
    for one in range(12):
        for other in range(one + 1, 12):
            swapped = scores.copy()
            swapped[[one, other]] = swapped[[other, one]]
            gained = fn.evaluate(rankings.with_scores(swapped), measure).values[0, 0] - found.value
            best = max(best, gained)
            listed = [
                row["gains"] for row in swaps if (row["rank"], row["with_rank"]) == (one + 1, other + 1)
            ]
            if gained > 1e-9:
                assert listed == [pytest.approx(gained, rel=1e-9)]
    assert swaps[0]["gains"] == pytest.approx(best, rel=1e-12)
    assert [row["gains"] for row in swaps] == sorted((row["gains"] for row in swaps), reverse=True)


def test_dropped_documents_have_no_rank():
    rankings = fn.Rankings.from_lists([[1, 2, 0]], is_judged=[False, True, True])
    table = fn.explain(rankings, fn.DCG(judged_only=True), 0).to_arrow()
    assert table["rank"].to_pylist() == [1, 2, None]
    assert table["grade"].to_pylist() == [2, 0, None]
    assert fn.explain(rankings, "DCG", 0).to_arrow()["grade"].to_pylist() == [None, 2, 0]


def test_an_empty_query_says_so():
    found = fn.explain(fn.Rankings.from_lists([[0, 0]]), fn.nDCG(empty=1.0) @ 5, 0)
    assert (found.value, found.is_empty) == (1.0, True)
    assert math.isnan(found.folded) and "it is undefined there, and counts by empty=1.0" in repr(found)
    assert found.to_arrow()["contribution"].to_pylist() == [0, 0] and not len(found.swaps())
    nothing = fn.explain(fn.Rankings.from_lists([[]]), "nDCG", 0)
    assert not len(nothing.to_arrow()) and nothing._repr_html_()


def test_a_table_ends_at_the_cutoff_and_says_what_is_below():
    def shown(grades, measure, scores=None, **options):
        rankings = fn.Rankings.from_lists([grades], None if scores is None else [scores])
        return fn.explain(rankings, measure, 0).text(**options).splitlines()

    late = [0] * 11 + [1, 0, 2]
    lines = shown(late, "nDCG@10")
    assert len(lines) == 13 and lines[-1] == (
        "Not shown: 4 documents below the cutoff of 10, the first relevant document at rank 12; "
        "to_arrow() has them."
    )
    assert len(shown(late, "nDCG@10", whole=True)) == 16 and "Not shown" not in shown(late, "RR")[-1]
    assert shown([1, 0, 0], "P@2", see="--format csv")[-1] == (
        "Not shown: 1 document below the cutoff of 2, none relevant; --all shows it."
    )
    # documents that are tied across the cutoff count, and are shown
    assert len(shown(late, "nDCG@10", [9.0] * 8 + [1.0] * 4 + [0.0] * 2)) == 1 + 1 + 12 + 2
    assert len(shown(late, "nDCG@10", [1.0] * 14)) == 1 + 1 + 14 + 1
    assert len(shown(late, "nDCG(ties='input')@10", [1.0] * 14)) == 1 + 1 + 10 + 2
    # of many documents 30 are shown, of a query without relevant ones none
    many = shown([0] * 40 + [1], "AP")
    assert len(many) == 33 and many[-1].startswith("Not shown: 11 documents, the first relevant document at")
    nothing = shown([0] * 12, "nDCG@10")
    assert len(nothing) == 2 and nothing[1] == "Not shown: 12 documents, none relevant; to_arrow() has them."
    assert shown([], "nDCG@10")[1:] == ["No documents were returned."]
    systems = {"a": fn.Rankings.from_lists([late]), "b": fn.Rankings.from_lists([[0] * 14])}
    text = repr(fn.explain(systems, "nDCG@10", 0))
    assert "a: Not shown: 4 documents" in text and text.splitlines()[11].split()[0] == "10"
    assert repr(fn.explain({name: fn.Rankings.from_lists([[]]) for name in "ab"}, "RR", 0)).count("\n") == 2


def test_two_systems_side_by_side():
    systems = {"bm25": example(), "rerank": example().with_scores([2, 1, 1, 2, 3, 4, 5])}
    found = fn.explain(systems, "nDCG@3", query="q-42")
    assert list(found) == ["bm25", "rerank"]
    table = found.to_arrow()
    assert table.column_names[:2] == ["system", "rank"] and len(table) == 10
    assert "bm25 doc_id" in repr(found) and "rerank contribution" in repr(found)
    assert found.to_pandas()["system"].nunique() == 2 and "<table>" in found._repr_html_()


@pytest.mark.parametrize(
    ("ids", "query", "wanted"),
    [
        (["q-41", "q-42"], "q-43", "query 'q-43' is not among 2 queries. The nearest are: q-4[12], q-4[12]"),
        ([411, 412], 41, "query 41 is not among 2 queries. The nearest are: 41[12]"),
        ([411, 412], "x", "query 'x' is not among 2 queries. The nearest are: 411, 412"),
        (pa.array(["a", "b"]).dictionary_encode(), "c", "query 'c' is not among 2 queries"),
    ],
)
def test_the_nearest_ids_of_one_that_is_not_there(ids, query, wanted):
    rankings = fn.Rankings.from_lists([[1], [0]], query_ids=ids)
    with pytest.raises(fn.InputError, match=wanted):
        fn.explain(rankings, "RR", query)


def test_ids_of_every_kind():
    for ids in (["a", "b"], [7, 8], pa.array(["a", "b"]).dictionary_encode(), pa.array([b"a", b"b"])):
        rankings = fn.Rankings.from_lists([[0, 1], [1]], query_ids=ids)
        for query, value in zip(rankings.query_ids.to_pylist(), (0.5, 1.0), strict=True):
            assert fn.explain(rankings, "RR", query).value == value
    assert fn.explain(fn.Rankings.from_lists([[1]], query_ids=[7]), "RR", "7").value == 1.0


@pytest.mark.parametrize("name", [*NO_SUM, *(n for n, d in DEFINITIONS.items() if d.way == "intents")])
def test_measures_that_are_no_sum_over_ranks(name):
    rankings = fn.Rankings.from_lists([[1, 0]], intents=[[1], [0]])
    measure = getattr(fn, name) @ 0.5 if name == "IPrec" else getattr(fn, name)
    with pytest.raises(fn.MeasureError, match="[Ee]xplain"):
        fn.explain(rankings, measure, 0)


def test_what_is_no_rankings():
    with pytest.raises(fn.InputTypeError, match="rankings is a list; wanted Rankings"):
        fn.explain([1], "RR", 0)
    with pytest.raises(fn.InputError, match="no system is given to explain"):
        fn.explain({}, "RR", 0)


def test_the_table_by_rank_has_the_value_at_every_cutoff():
    rng = np.random.default_rng(1)
    for trial in range(120):
        n = int(rng.integers(1, 30))
        grades, scores = rng.integers(0, 4, n), rng.integers(0, 6, n) / 2
        pool = ([0, n + 3], np.append(grades, [3, 0, 1])) if trial % 2 else None
        rankings = fn.Rankings.from_offsets([0, n], grades, scores, judged=pool)
        measure = fn.nDCG(
            gain=("linear", "exp2")[trial % 2], ties=("average", "worst", "best", "input")[trial % 4]
        )
        found = fn.explain(rankings, measure if trial % 5 else measure @ 7, 0).by_rank()
        if not grades.any() and pool is None:
            assert len(found) == 0
            continue
        assert len(found) == (n if trial % 5 else min(n, 7))
        for row in found.to_pylist():
            at = rankings, [measure @ row["rank"], fn.DCG(gain=measure.gain, ties=measure.ties) @ row["rank"]]
            ndcg, dcg = fn.evaluate(*at).values[:, 0].tolist()
            assert (row["ndcg"], row["dcg"]) == pytest.approx((ndcg, dcg), rel=1e-12)
    with pytest.raises(fn.MeasureError, match="explain nDCG"):
        fn.explain(rankings, "AP", 0).by_rank()


def test_the_table_by_rank_of_several_systems():
    first = fn.Rankings.from_lists([[0, 2, 1]], query_ids=["q"])
    found = fn.explain({"one": first, "two": first.with_scores([1, 3, 2])}, "nDCG@2", "q")
    table = found.by_rank()
    assert table["system"].to_pylist() == ["one"] * 2 + ["two"] * 2
    parts = [each.by_rank().to_pylist() for each in found.values()]
    assert [
        {"system": name} | row for name, part in zip(found, parts, strict=True) for row in part
    ] == table.to_pylist()
    with pytest.raises(fn.MeasureError, match="not divided by one ideal"):
        fn.explain({"one": first}, "AP", "q").by_rank()
