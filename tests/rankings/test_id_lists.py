"""Two lists in a row: ids of relevant and of retrieved documents, or grades and scores."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run

import fastndcg as fn

MEASURES = "nDCG@3, AP@3, R@2, RR"
IDS = {"ids": [[1, 2, 3], [1, 2, 3], []], "retrieved": [[1, 6, 2], [4, 1, 5], [1]]}
BOTH = 'For ids give relevant_ids="label", retrieved_ids="prediction"; for grades and scores give relevance="label", score='


def joined(kind=int):
    sides = [
        {q: list(map(kind, ids)) for q, ids in zip((7, 8, 9), lists, strict=True)} for lists in IDS.values()
    ]
    return fn.evaluate(*sides, MEASURES)


def as_kind(kind):
    """The lists with ids of this kind."""
    return {name: [list(map(kind, ids)) for ids in lists] for name, lists in IDS.items()}


@pytest.mark.parametrize("kind", [int, str])
@pytest.mark.parametrize("form", ["arrow", "pandas", "polars", "parquet", "stream"])
def test_lists_of_ids_are_joined(kind, form, tmp_path):
    lists = as_kind(kind)
    data = pa.table(
        {"user_id": [7, 8, 9], "country": ["de", "fr", "de"], "a": lists["ids"], "b": lists["retrieved"]}
    )
    named = {"relevant_ids": "a", "retrieved_ids": "b", "keep": "country"}
    pq.write_table(data, path := tmp_path / "a.parquet")
    if form == "parquet":
        data = path
    elif form == "stream":
        data, named = fn.scan_parquet(path, **named), {}
    elif form != "arrow":
        data = data.to_pandas() if form == "pandas" else pytest.importorskip("polars").from_arrow(data)
    scores = fn.evaluate(data, MEASURES, **named)
    assert scores.values.tolist() == joined(kind).values.tolist()
    assert scores.queries.column_names == ["user_id", "country"]


@pytest.mark.parametrize(
    ("relevant", "retrieved"),
    [
        ("expected_ids", "retrieved_ids"), ("ground_truth_ids", "predicted_ids"), ("actual", "recommendations"),
        ("ground_truth", "predictions"), ("RelevantIds", "retrieved-ids"),
    ],
)  # fmt: skip
def test_usual_names_of_lists_of_ids(relevant, retrieved):
    data = pa.table({"user_id": [7, 8, 9], relevant: IDS["ids"], retrieved: IDS["retrieved"]})
    if (relevant, retrieved) == ("ground_truth", "predictions"):  # of grades and scores too
        with pytest.raises(
            fn.InputError,
            match='for ids of documents, relevant_ids="ground_truth", retrieved_ids="predictions"',
        ):
            fn.evaluate(data, MEASURES)
        data = pa.table(
            {"user_id": [7, 8, 9], relevant: as_kind(str)["ids"], retrieved: as_kind(str)["retrieved"]}
        )
        assert fn.evaluate(data, MEASURES).values.tolist() == joined(str).values.tolist()
        return
    assert fn.evaluate(data, MEASURES).values.tolist() == joined().values.tolist()


def spark_ranking_evaluator(random):
    """As RankingEvaluator of Spark and RAG frames have them: k retrieved and k relevant ids of a query."""
    n, k = int(random.integers(2, 9)), int(random.integers(2, 9))
    retrieved = [random.permutation(3 * k)[:k].tolist() for _ in range(n)]
    relevant = [random.permutation(3 * k)[:k].tolist() for _ in range(n)]
    relevant[0][0] = retrieved[0][0]
    relevant[0] = list(dict.fromkeys(relevant[0]))
    while len(relevant[0]) < k:
        relevant[0].append(100 + len(relevant[0]))
    return relevant, retrieved


@pytest.mark.parametrize("seed", range(60))
def test_lists_of_whole_numbers_that_could_be_either_are_refused(seed):
    """In a table whose columns are found by their names, and in from_lists(actual, predicted)."""
    relevant, retrieved = spark_ranking_evaluator(np.random.default_rng(seed))
    data = pa.table({"user_id": range(len(relevant)), "label": relevant, "prediction": retrieved})
    with pytest.raises(fn.InputError, match=BOTH):
        fn.evaluate(data, "nDCG@3")
    with pytest.raises(fn.InputError, match="could be ids of documents, or grades and scores"):
        fn.Rankings.from_lists(relevant, retrieved)
    as_grades = fn.evaluate(data, "nDCG@3", relevance="label", score="prediction")
    floats = fn.Rankings.from_lists(relevant, [np.array(each, float) for each in retrieved])
    assert as_grades.values.tolist() == fn.evaluate(floats, "nDCG@3").values.tolist()
    as_ids = fn.evaluate(data, "nDCG@3", relevant_ids="label", retrieved_ids="prediction")
    assert (
        as_ids.values.tolist()
        == fn.evaluate(dict(enumerate(relevant)), dict(enumerate(retrieved)), "nDCG@3").values.tolist()
    )


@pytest.mark.parametrize(
    ("grades", "scores"),
    [
        ([[3, 0, 2]], [[9, 8, 7]]),  # no number is in both
        ([[1, 0, 0]], [[2, 1, 3]]),  # a grade appears twice, as no id is
        ([[1, 0], [0, 1]], [[2, 1], [1, 2]]),  # 0 and 1
        ([[3, 0, 2], [1, 0, 1]], [[3, 2, 1], [3, 2, 1]]),
        ([[3, 0, 2]], [[3.0, 2.0, 1.0]]),
        ([[True, False]], [[1, 2]]),
    ],
)
def test_grades_and_scores_that_are_no_ids_are_read(grades, scores):
    found = fn.evaluate(fn.Rankings.from_lists(grades, scores), "nDCG")
    data = pa.table({"query_id": range(len(grades)), "label": grades, "score": scores})
    assert fn.evaluate(data, "nDCG").values.tolist() == found.values.tolist()


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (
            {"relevant_ids": "a"},
            r'no column has a usual name of the retrieved_ids .* as in retrieved_ids="\.\.\."',
        ),
        ({"relevant_ids": "a", "retrieved_ids": "b", "score": "b"}, "name one pair"),
        ({"relevant_ids": "nope", "retrieved_ids": "b"}, 'there is no column "nope" for relevant_ids='),
    ],
)
def test_wrong_names_of_lists_of_ids(named, message):
    data = pa.table({"query_id": [1], "a": [[1]], "b": [[1, 2]]})
    with pytest.raises(fn.ColumnError, match=message):
        fn.evaluate(data, "nDCG", **named)


RELEVANT, RETRIEVED = [["a", "b"], ["7"], ["x"], []], [["c", "b", "a"], ["8", "7"], [], ["a"]]
WRITTEN = {"list": list, "blanks": " ".join, "JSON": json.dumps, "Python": str}


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("given", ["frame", "records", "table", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize("names", [("expected_ids", "retrieved_ids"), ("actual", "predicted")])
def test_two_lists_in_a_row_are_one_ranking_however_they_are_written(written, given, names, tmp_path):
    if (written, given) == ("list", "csv"):
        pytest.skip("CSV has no lists")
    expected = fn.evaluate(dict(enumerate(RELEVANT)), dict(enumerate(RETRIEVED)), "AP").values.tolist()
    columns = [list(map(WRITTEN[written], each)) for each in (RELEVANT, RETRIEVED)]
    frame = pd.DataFrame({"query_id": range(4), **dict(zip(names, columns, strict=True))})
    path = tmp_path / f"data.{given}"
    if given == "csv":
        frame.to_csv(path, index=False)
    elif given == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif given == "parquet":
        frame.to_parquet(path)
    else:
        path = {"frame": frame, "records": frame.to_dict("records"), "table": pa.table(frame)}[given]
    roles = {"relevant_ids": names[0], "retrieved_ids": names[1]}
    assert fn.evaluate(path, "AP", **roles).values.tolist() == expected
    if names[0] == "expected_ids" or written == "list":
        assert fn.evaluate(path, "AP").values.tolist() == expected
    else:
        with pytest.raises(
            fn.ColumnError, match='relevant_ids="actual", retrieved_ids="predicted"; for grades'
        ):
            fn.evaluate(path, "AP")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b", "could be one id or several"),
        ("a|b", "could be one id or several"),
        ("a, b", "could be one id or several"),
        ("{'a', 'b'}", "could be one id or several"),
        ("['a' 'b']", "not a list of ids"),
        ("[0.5]", "not a list of ids"),
        ('["", "x"]', "not a list of ids"),
        ("[[1]]", "not a list of ids"),
        ("[a, b]", "not a list of ids"),
        ("[" * 100_000, "not a list of ids"),
    ],
)
def test_texts_of_ids_that_are_unclear(text, message):
    data = {"expected_ids": ["a", "b"], "retrieved_ids": [text, "b"]}
    with pytest.raises(fn.InputError, match=message):
        fn.evaluate(data, "AP")


def test_separators_within_ids_that_blanks_separate():
    data = {"expected_ids": ["doc|1", "doc|3"], "retrieved_ids": ["doc|2 doc|1", "doc|3"]}
    with pytest.raises(fn.InputError, match="could be one id or several"):
        fn.evaluate(data, "RR")
    data["expected_ids"][0] += " doc|4"
    assert fn.evaluate(data, "RR").values.tolist() == [[0.5, 1.0]]


def test_rows_whose_values_columns_names():
    rows = [(1, 1, 0.25), (1, 0, 0.5)]
    for data in (rows, list(map(list, rows)), np.array(rows)):
        assert fn.evaluate(data, "RR", columns=["qid", "label", "score"]).mean() == {"RR": 0.5}
    with pytest.raises(fn.InputTypeError, match="Name the values of each tuple, as in columns="):
        fn.evaluate(rows, "RR")


def test_ids_that_are_there_twice_or_missing_are_refused():
    for relevant, retrieved, message in (
        ([1], [2, 2], "query 0: document 2 of query 0 appears twice"),
        ([1, 1], [2], "appears twice"),
        ([1, None], [2], "null"),
        (["a"], [2.5], "double"),
        (1.5, [2], "expected lists of ids, or text"),
    ):
        data = pa.table({"relevant_ids": [relevant], "retrieved_ids": [retrieved]})
        with pytest.raises(fn.FastndcgError, match=message):
            fn.evaluate(data, "nDCG")


def test_the_command_line_takes_what_its_message_says(tmp_path):
    """Lists of ids by options, and documents that are there twice."""
    pq.write_table(
        pa.table({"user_id": [1, 2], "label": [[1, 2, 3]] * 2, "prediction": [[1, 6, 2], [4, 1, 5]]}),
        path := tmp_path / "a.parquet",
    )
    refused = run("score", path, "-m", "nDCG@3")
    assert refused.exit_code == 3
    (words,) = re.findall("For ids give (.*), (.*); for grades", refused.stderr)
    read = run("score", path, "-m", "nDCG@3", "--format", "json", *" ".join(words).split())
    assert json.loads(read.stdout)["measures"][0]["mean"] == pytest.approx(0.5)
    (tmp_path / "qrels").write_text("q 0 a 1\nq 0 a 0\n")
    (tmp_path / "run").write_text("q Q0 b 1 2.5 x\nq Q0 a 2 1.5 x\nq Q0 a 3 0.5 x\n")
    both = ("score", "--qrels", tmp_path / "qrels", "--run", tmp_path / "run", "-m", "RR", "--format", "json")
    refused = run(*both)
    assert refused.exit_code == 3 and "or pass --duplicates first to keep the first" in refused.stderr
    assert json.loads(run(*both, "--duplicates", "first").stdout)["measures"][0]["mean"] == 0.5


@pytest.mark.parametrize("kind", [list, np.array])
def test_arrays_of_grades_and_scores_are_told_where_they_go(kind):
    grades, scores = kind([[1, 0, 2], [0, 1, 0]]), kind([[0.1, 0.5, 0.3], [0.2, 0.4, 0.9]])
    with pytest.raises(
        fn.FastndcgError, match=r"ndcg\(relevance, scores\)|could be \(query, document, grade\)"
    ):
        fn.evaluate(grades, scores, "nDCG")
    with pytest.raises(fn.InputTypeError, match=r"ndcg\(relevance, scores\)"):
        fn.evaluate({"q": {"a": 1}}, scores, "nDCG")
