"""Warnings of data that look wrong, and none of data that do not."""

import warnings

import commands
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import fastndcg as fn

QUERIES, DOCUMENTS = 30, 4
RANDOM = np.random.default_rng(4)
SCORES = RANDOM.random(QUERIES * DOCUMENTS)
GRADES = np.arange(QUERIES * DOCUMENTS) % 3


def table(**columns):
    plain = {"qid": np.repeat(np.arange(QUERIES), DOCUMENTS), "label": GRADES, "score": SCORES}
    return {name: column for name, column in (plain | columns).items() if column is not None}


ODD = {
    "swapped": (table(label=SCORES, score=GRADES), {}, r'column "label" holds fractions .* relevance= and score='),
    "a distance": (table(score=None, cosDistance=SCORES), {"score": "cosDistance"}, r"pass ascending=True or, for ranks, rank="),
    "a rank": (table(score=None, rank=GRADES), {"score": "rank"}, r'column "rank" is taken for scores'),
    "one score": (table(score=np.full(len(GRADES), 0.5)), {}, r'column "score" holds one value, 0\.5'),
    "one document": (table(qid=np.arange(len(GRADES))), {}, "no more documents than queries"),
    "no relevant document": (table(label=0 * GRADES), {}, "no grade is above 0"),
    "negative grades": (table(label=-GRADES), {}, "no grade is above 0"),
    "unjudged": (table(is_judged=np.arange(len(GRADES)) % 20 == 0), {"is_judged": "is_judged"}, r"95\.0% of the documents are not judged"),
}  # fmt: skip


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("source", ["table", "parquet", "stream", "shuffled stream", "csv", "lists"])
def test_odd_data_are_warned_of_once(case, source, tmp_path):
    columns, roles, message = ODD[case]
    data = pa.table(columns)
    pq.write_table(data, tmp_path / "data.parquet", row_group_size=40)
    pyarrow.csv.write_csv(data, tmp_path / "data.csv")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if source == "table":
            fn.Rankings.from_arrow(columns, **roles)
        elif source == "parquet":
            fn.read_parquet(tmp_path / "data.parquet", **roles)
        elif "stream" in source:
            if source != "stream":
                order = np.random.default_rng(1).permutation(len(data))
                pq.write_table(data.take(order), tmp_path / "data.parquet", row_group_size=40)
            fn.evaluate(fn.scan_parquet(tmp_path / "data.parquet", memory="1 MiB", **roles), "Judged@1")
        elif source == "csv":
            fn.read_csv(tmp_path / "data.csv", **roles)
        else:
            lists = data.group_by("qid", use_threads=False).aggregate(
                [(name, "list") for name in columns if name != "qid"]
            )
            fn.Rankings.from_arrow(lists.rename_columns([name.removesuffix("_list") for name in lists.column_names]), **roles)  # fmt: skip
    assert [warning.category for warning in told] == [fn.FastndcgWarning]
    with pytest.warns(fn.FastndcgWarning, match=message):
        warnings.warn_explicit(told[0].message, told[0].category, __file__, 1)


@pytest.mark.parametrize(
    "columns",
    [
        table(),
        table(label=SCORES),  # rates as grades
        table(label=SCORES, score=GRADES * 100),
        table(score=np.where(np.arange(len(GRADES)) == 100, 1.0, 0.5)),
        table(label=(np.arange(len(GRADES)) == 119).astype(float)),
        table(qid=np.minimum(np.arange(len(GRADES)), 100)),
        {name: values[: 19 * DOCUMENTS] for name, values in table(label=0 * GRADES).items()},
    ],
)
def test_other_data_are_not(columns):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fn.evaluate(columns, "nDCG@10")
        fn.Rankings.from_query_ids(columns["qid"], columns["label"], columns["score"])


def test_a_stream_is_odd_where_all_parts_are(tmp_path):
    """The first 100,000 rows have one document for each query, one score and no grade above 0."""
    rows = np.arange(100_040)
    columns = {"qid": np.minimum(rows, 100_000), "label": rows // 100_001, "score": rows // 100_001}
    pq.write_table(pa.table(columns), tmp_path / "data.parquet", row_group_size=1000)
    stream = fn.scan_parquet(tmp_path / "data.parquet", memory="1 MiB")
    assert len(list(stream)) > 1
    fn.evaluate(stream, "P@5")
    fn.read_parquet(tmp_path / "data.parquet")


def test_ranks_and_distances_that_are_said_to_be_are_not():
    fn.evaluate(table(score=None, rank=np.arange(len(GRADES))), "nDCG", rank="rank")
    fn.evaluate(table(score=None, distance=SCORES), "nDCG", score="distance", ascending=True)


def test_the_command_line_warns_in_its_own_words(tmp_path):
    pq.write_table(pa.table(table(label=SCORES, score=GRADES)), tmp_path / "data.parquet")
    result = commands.run("score", tmp_path / "data.parquet", "-m", "nDCG@10")
    assert result.exit_code == 0
    assert "as if grades and scores were swapped" in result.stderr
    assert "--relevance and --score" in " ".join(result.stderr.split())


FRACTIONS = 0.8 * SCORES / SCORES.max()


@pytest.mark.parametrize("source", ["table", "rankings", "parquet", "stream", "shuffled stream"])
def test_measures_that_find_no_relevant_document_are_named_once(source, tmp_path):
    """Only the last query has a grade of 0.8: of a stream no part decides, and all do."""
    data = pa.table(table(label=np.where(np.arange(len(FRACTIONS)) == 119, 0.8, FRACTIONS / 4)))
    if source == "shuffled stream":
        data = data.take(np.random.default_rng(1).permutation(len(data)))
    pq.write_table(data, tmp_path / "data.parquet", row_group_size=40)
    given = {
        "table": data,
        "rankings": fn.Rankings.from_arrow(data),
        "parquet": tmp_path / "data.parquet",
    }.get(source) or fn.scan_parquet(tmp_path / "data.parquet", memory="1 MiB")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fn.evaluate(given, ["nDCG@10", "map", "RR@10", "nDCG(gain='binary')", "P(rel=0.5)@5", "Judged@5"])
    wanted = (
        "no grade reaches rel=1; the largest grade is 0.8, so no document is relevant to AP, "
        "RR@10 and nDCG(gain='binary'). If that is not meant, name the smallest relevant grade, "
        "as in AP(rel=0.4)"
    )
    assert [str(each.message) for each in caught] == [wanted]


@pytest.mark.parametrize(
    ("grades", "measure"),
    [
        (FRACTIONS / 0.8, "AP"),  # one document is relevant
        (FRACTIONS, ["nDCG@10", "ERR", "AP(rel=0.8)", "NumRet", "P(unjudged=1)@5"]),
        (GRADES, "AP(rel=2)"),
    ],
)
def test_measures_that_find_one_are_not(grades, measure):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fn.evaluate(table(label=grades), measure)


def test_whole_grades_that_are_too_low_are_named_where_queries_are_many():
    with pytest.warns(
        fn.FastndcgWarning,
        match=r"no grade reaches rel=3; the largest grade is 2, .* 1 other measure\. .* P\(rel=2\)",
    ):
        fn.evaluate(table(), [f"P(rel=3)@{k}" for k in range(1, 7)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fn.evaluate({name: values[: 19 * DOCUMENTS] for name, values in table().items()}, "P(rel=3)")


@pytest.mark.parametrize("memory", [[], ["--memory", "1MB"]])
def test_the_command_line_names_measures_once(tmp_path, memory):
    copies = 1 + 2000 * bool(memory)
    columns = table(label=FRACTIONS) | {"qid": np.repeat(np.arange(QUERIES * copies), DOCUMENTS)}
    columns |= {name: np.tile(columns[name], copies) for name in ("label", "score")}
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    result = commands.run("score", tmp_path / "data.parquet", "-m", "AP", *memory)
    assert result.exit_code == 0
    assert result.stderr.count("no grade reaches rel=1;") == 1


@pytest.mark.parametrize("ignore_ties", [False, True])
@pytest.mark.parametrize("score", [fn.ndcg_score, fn.dcg_score])
def test_swapped_arguments_of_the_functions_of_scikit_learn(score, ignore_ties):
    grades = np.random.default_rng(0).integers(0, 4, (30, 10))
    scores = grades + np.random.default_rng(1).random((30, 10))
    score(grades, scores, ignore_ties=ignore_ties)
    score(scores[:5], grades[:5], ignore_ties=ignore_ties)  # too few to tell
    with pytest.warns(fn.FastndcgWarning, match="y_true holds fractions and y_score small whole numbers"):
        score(scores, grades, ignore_ties=ignore_ties)
