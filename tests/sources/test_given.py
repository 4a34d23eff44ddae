"""What `evaluate` takes in place of rankings: tables of every kind, and paths."""

import json
import os
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg import InputTypeError
from fastndcg.sources.streams import TableStream
from fastndcg.tables.roles import Roles

LONG = {
    "qid": ["b", "a", "b", "a"],
    "label": [1, 0, 0, 2],
    "score": [0.5, 0.5, 0.9, 0.1],
    "country": ["DE", "FR", "DE", "FR"],
    "slots": [1, 2, 1, 2],
    "docno": ["x", "y", "z", "w"],
}


def given_in(form, folder, data=LONG):
    table = pa.table(data)
    if form == "parquet":
        pq.write_table(table, folder / "a.parquet")
        return folder / "a.parquet"
    if form == "paths":
        pq.write_table(table.slice(0, 2), folder / "a.parquet")
        pq.write_table(table.slice(2), folder / "b.parquet")
        return [str(folder / "a.parquet"), str(folder / "b.parquet")]
    if form == "csv":
        table.to_pandas().to_csv(folder / "a.csv", index=False)
        return str(folder / "a.csv")
    if form in ("polars", "lazy"):
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame(LONG)
        return frame if form == "polars" else frame.lazy().filter(polars.col("score") >= 0)
    if form == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        return duckdb.connect().from_arrow(table)
    forms = {"arrow": table, "pandas": table.to_pandas(), "dict": LONG, "batch": table.to_batches()[0]}
    return forms[form]


@pytest.mark.parametrize("form", ["arrow", "parquet", "csv"])
def test_conventions_and_cutoffs_find_their_columns_in_tables(form, tmp_path):
    data = given_in(form, tmp_path)
    with_ids = fn.Rankings.from_arrow(LONG, doc_id="docno", keep="slots")
    by_id = fn.evaluate(with_ids, "nDCG@2", convention="trec_eval")
    assert fn.evaluate(data, "nDCG@2", convention="trec_eval").values.tobytes() == by_id.values.tobytes()
    assert (
        fn.evaluate(data, "nDCG@slots").values.tobytes()
        == fn.evaluate(with_ids, "nDCG@slots").values.tobytes()
    )


@pytest.mark.parametrize("form", ["arrow", "pandas", "parquet", "csv"])
def test_ranks_and_distances_take_the_place_of_scores(form, tmp_path):
    expected = fn.evaluate(LONG, ["nDCG", "RR", "AP@1"])
    data = given_in(form, tmp_path, LONG | {"position": [2, 1, 1, 2], "distance": [0.5, 0.5, 0.1, 0.9]})
    by_rank = fn.evaluate(data, ["nDCG", "RR", "AP@1"], rank="position")
    assert by_rank.values.tobytes() == expected.values.tobytes()
    by_distance = fn.evaluate(data, ["nDCG", "RR", "AP@1"], score="distance", ascending=True)
    assert by_distance.values.tobytes() == expected.values.tobytes()


WORDS = {"Good": 1, "Bad": 0, "Perfect": 2}


@pytest.mark.parametrize("form", ["arrow", "batch", "pandas", "polars", "parquet", "paths", "csv", "lists"])
def test_words_have_grades_and_what_has_none_is_unjudged(form, tmp_path):
    words = ["Good", None, "Bad", "Perfect"]
    data = LONG | {"label": words}
    expected = fn.evaluate(
        LONG | {"judged": [True, False, True, True]}, ["nDCG", "Judged", "AP"], is_judged="judged"
    )
    if form == "lists":
        data = {"qid": ["b", "a"], "label": [words[::2], words[1::2]], "score": [[0.5, 0.9], [0.5, 0.1]]}
    if form == "polars":
        given = pytest.importorskip("polars").DataFrame(data)
    else:
        given = given_in("arrow" if form == "lists" else form, tmp_path, data)
    scores = fn.evaluate(given, ["nDCG", "Judged", "AP"], grades=WORDS, unjudged="null")
    assert scores.values.tobytes() == expected.values.tobytes()
    with pytest.raises(fn.InputError, match=r'"label" has "Perfect".*query "a".*one for "Good", "Bad"\.'):
        fn.evaluate(given, "RR", grades={"Good": 1, "Bad": 0}, unjudged="null")
    with pytest.raises(fn.InputError, match='1 null.*or pass unjudged="null"'):
        fn.evaluate(given, "RR", grades=WORDS)


@pytest.mark.parametrize(
    ("label", "judged"),
    [
        (pa.array([1.0, float("nan"), 0.0, 2.0]), [True, False, True, True]),
        (pa.array([1.0, float("nan"), None, 2.0], pa.float32()), [True, False, False, True]),
        (pa.chunked_array([pa.array([1, None], pa.uint8()), pa.array([None, 2], pa.uint8())]), [True, False, False, True]),
        (pa.array([1, None, 0, 2]).dictionary_encode(), [True, False, True, True]),
        (pa.array([1, None, 0, 2]).cast(pa.decimal128(20, 0)), [True, False, True, True]),
        (pa.array([True, None, False, None]), [True, False, True, False]),
        (pa.nulls(4), [False] * 4),
        (pa.nulls(4, pa.int16()), [False] * 4),
        (pa.array([1, 1, 0, 2]), None),
    ],
)  # fmt: skip
def test_null_grades_of_every_type_are_unjudged(label, judged):
    rankings = fn.Rankings.from_arrow(
        {"qid": [1, 1, 2, 2], "label": label, "score": [4, 3, 2, 1]}, unjudged="null"
    )
    assert (rankings.is_judged if judged is None else rankings.is_judged.tolist()) == judged
    assert rankings.relevance.dtype.kind in "uif"
    assert np.isfinite(rankings.relevance).all()


def test_both_ways_to_say_what_was_judged_hold():
    data = {"qid": [1] * 3, "label": [None, 1, 2], "score": [3, 2, 1], "seen": [True, True, False]}
    rankings = fn.Rankings.from_arrow(data, unjudged="null", is_judged="seen")
    assert rankings.is_judged.tolist() == [False, True, False]


def test_words_of_dictionaries_and_numbers_have_grades():
    label = pa.chunked_array(
        [
            pa.array(["x", "Bad"]).dictionary_encode().slice(1),
            pa.array(["Good", "Good", "Bad"]).dictionary_encode(),
        ]
    )
    found = fn.Rankings.from_arrow(
        {"qid": [1] * 4, "label": label, "score": [1] * 4}, grades=WORDS | {"Bad": -0.5}
    )
    assert found.relevance.tolist() == [-0.5, 1, 1, -0.5]
    numbers = {"qid": [1] * 2, "label": [5, 7], "score": [1] * 2}
    for grades in ({"5": 1, "7": 0}, {5: 1, 7: 0}):
        assert fn.Rankings.from_arrow(numbers, grades=grades).relevance.tolist() == [1, 0]
    nothing = fn.Rankings.from_arrow(
        pa.schema({"qid": pa.int8(), "label": pa.string(), "score": pa.int8()}).empty_table(), grades=WORDS
    )
    assert nothing.relevance.dtype == np.int64


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"column \"label\" is string, beginning with \"a\".*or say the grade of each word, as in grades=\{"),
        ({"grades": {"A": 1}}, 'has "a" at row 0, query 1, for which grades= has no grade; it has one for "A". Did you mean "A"'),
        ({"grades": {}}, "grades is empty"),
        ({"grades": ["a"]}, "grades is a list; expected"),
        ({"grades": {"a": "1"}}, "grades has '1' for 'a'; expected a finite number"),
        ({"grades": {"a": float("nan")}}, "grades has nan for 'a'"),
        ({"unjudged": "zero"}, 'expected "refuse" or "null"'),
    ],
)  # fmt: skip
def test_grades_and_unjudged_that_mean_nothing_are_refused(options, message):
    with pytest.raises((fn.InputError, InputTypeError), match=message):
        fn.evaluate({"qid": [1], "label": ["a"], "score": [1]}, "RR", **options)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "uint64", "int64", "float32", "float64"])
def test_the_lowest_of_any_dtype_is_the_best(dtype):
    kind = np.dtype(dtype)
    ends = np.iinfo(kind) if kind.kind in "iu" else np.finfo(kind)
    scores = np.array([ends.min, 1, 1, 0, ends.max], kind)
    found = fn.Rankings.from_arrow({"qid": [1] * 5, "label": [1] * 5, "score": scores}, ascending=True).scores
    order = [sum(other < each for other in scores) for each in scores]
    assert [sum(other > each for other in found) for each in found] == order


def test_one_column_says_the_order():
    with pytest.raises(fn.ColumnError, match='score="score" and rank="slots" were both passed'):
        fn.evaluate(LONG, "RR", score="score", rank="slots")
    with pytest.raises(fn.ColumnError, match='there is no column "rnk" for rank='):
        fn.evaluate(LONG, "RR", rank="rnk")
    with pytest.raises(InputTypeError, match=r"ascending=1 is not known; expected True or False"):
        fn.evaluate(LONG, "RR", ascending=1)


def test_large_files_are_read_a_part_at_a_time(tmp_path, monkeypatch):
    from fastndcg.sources import inputs

    path = given_in("parquet", tmp_path)
    whole = fn.evaluate(path, "nDCG")
    monkeypatch.setattr(inputs, "IN_MEMORY", 1)
    stream = inputs.rankings_or_stream(path, Roles())
    assert isinstance(stream, TableStream)
    assert fn.evaluate(stream, "nDCG").values.tobytes() == whole.values.tobytes()


def test_columns_are_named_for_tables_alone():
    with pytest.raises(
        InputTypeError, match=r"keep= is for tables and paths; Rankings already has its columns"
    ):
        fn.evaluate(fn.Rankings.from_arrow(LONG), "RR", keep="country")
    with pytest.raises(InputTypeError, match=r'evaluate has no argument scores=; .*Did you mean "score"\?'):
        fn.evaluate(LONG, "RR", scores="score")
    with pytest.raises(fn.SourceError, match=r"nowhere\.parquet does not exist"):
        fn.evaluate("nowhere.parquet", "RR")


# ---- pipes, which can be read only once ----


def columns_of_runs(n_queries=900):
    """Columns whose text takes more than a pipe holds."""
    random = np.random.default_rng(0)
    query = np.repeat(np.arange(n_queries), 20)
    documents = [f"D{number}" for number in np.tile(np.arange(20), n_queries)]
    scores = random.permutation(len(query)) / 64
    return {"query": query, "docid": documents, "label": random.integers(0, 4, len(query)), "score": scores}


def content(form, folder):
    rows = columns_of_runs()
    if form == "parquet":
        pq.write_table(pa.table(rows), folder / form)
    elif form == "csv":
        pa_csv.write_csv(pa.table(rows), folder / form)
    elif form == "jsonl":
        (folder / form).write_text("\n".join(map(json.dumps, pa.table(rows).to_pylist())))
    elif form == "npy":
        with (folder / form).open("wb") as file:
            np.save(file, rows["score"])
    elif form == "lines":
        (folder / form).write_text("\n".join(map(str, rows["score"].tolist())))
    elif form == "letor":
        lines = map("{} qid:{} 1:0.5 # {}".format, rows["label"], rows["query"], rows["docid"])
        (folder / form).write_text("\n".join(lines))
    else:
        forms = {"qrels": "{0} 0 {1} {2}", "run": "{0} Q0 {1} 1 {3} me", "nested": '"{0}": {{"{1}": {3}}}'}
        found = map(forms[form].format, *rows.values())
        lines = "\n".join(found) if form != "nested" else f"{{{', '.join([*found][::20])}}}"
        (folder / form).write_text(lines)
    return (folder / form).read_bytes()


PIPED = {
    "evaluate": (["parquet", "csv", "jsonl"], lambda path, other: path),
    "read_parquet": (["parquet"], lambda path, other: fn.read_parquet(path)),
    "read_csv": (["csv"], lambda path, other: fn.read_csv(path)),
    "scan_parquet": (["parquet"], lambda path, other: fn.scan_parquet(path, memory="1 MB")),
    "scan_csv": (["csv"], lambda path, other: fn.scan_csv(path, memory="1 MB")),
    "read_ltr": (["letor"], lambda path, other: fn.read_ltr(path, scores=columns_of_runs()["score"])),
    "read_ltr, scores": (["lines", "npy"], lambda path, other: fn.read_ltr(other("letor"), scores=path)),
    "one pipe twice": (["csv"], lambda path, other: fn.read_qrels_run(path, path)),
    "read_trec, run": (["run"], lambda path, other: fn.read_trec(other("qrels"), path)),
    "read_trec, qrels": (["qrels"], lambda path, other: fn.read_trec(path, other("run"))),
    "read_qrels_run, run": (["run", "csv", "parquet", "nested"], lambda path, other: fn.read_qrels_run(other("qrels"), path)),
    "read_qrels_run, qrels": (["qrels", "csv", "jsonl"], lambda path, other: fn.read_qrels_run(path, other("run"))),
}  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
@pytest.mark.parametrize(
    ("form", "reader"), [(form, reader) for reader, (forms, _) in PIPED.items() for form in forms]
)
def test_pipes_are_read_once(form, reader, tmp_path):
    data, pipe, found = content(form, tmp_path), tmp_path / "pipe", []

    def other(name):
        content(name, tmp_path)
        return tmp_path / name

    def read(path):
        found.append(fn.evaluate(PIPED[reader][1](path, other), ["nDCG@10", "AP"]).mean())

    assert len(data) > 1 << 16 or form in ("nested", "parquet")  # bytes that a pipe holds
    os.mkfifo(pipe)
    for each in (lambda: pipe.write_bytes(data), lambda: read(pipe)):
        threading.Thread(target=each, daemon=True).start()
    deadline = time.monotonic() + 60
    while not found and time.monotonic() < deadline:
        time.sleep(0.01)
    read(tmp_path / form)
    assert found[0] == found[1]
