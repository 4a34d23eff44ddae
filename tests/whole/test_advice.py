"""What a message advises works where it is advised; scores that are missing are NaN or null, whoever wrote them."""

import inspect
import json
import re
import warnings
from contextlib import suppress
from functools import partial
from importlib import import_module

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import facts, run

import fastndcg as fn
from fastndcg import typing
from fastndcg.errors import InputError

QUERIES, GRADES, DOCS = ["a", "a", "a", "b"], [0, 1, 2, 1], ["d0", "d1", "d2", "d0"]
SCORES = [0.5, None, 0.25, 1.0]
LAST = [0.5, -np.inf, 0.25, 1.0]
TABLE = pa.table({"qid": QUERIES, "docid": DOCS, "label": GRADES, "score": SCORES})


def _write(path, table):
    """The table as what the ending of the path says."""
    table = pa.table(table)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        rows = [["" if value is None else str(value) for value in row.values()] for row in table.to_pylist()]
        path.write_text("".join(",".join(row) + "\n" for row in [table.column_names, *rows]))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return path


@pytest.mark.parametrize(("scores", "kind"), [
    (pa.array(SCORES, pa.float32()), np.float32),
    (pa.array([5, None, 2, 9], pa.int64()), np.float64),
    (pa.array([5, None, 2, 9], pa.uint8()), np.float64),
    (pa.array([True, None, False, True]), np.float64),
    (pa.array([5, None, 2, 9]).cast(pa.decimal128(25, 2)), np.float64),
    (pa.array([5.0, None, 2.0, 9.0]).dictionary_encode(), np.float64),
    (pa.nulls(4), np.float64),
    (pa.chunked_array([[5.0, None], [2.0, 9.0]]), np.float64),
])  # fmt: skip
def test_nulls_of_every_type_rank_last(scores, kind):
    rankings = fn.Rankings.from_arrow(TABLE.set_column(3, "score", scores), nan="last")
    assert rankings.scores.dtype == kind
    assert rankings.scores.tolist() == [
        -np.inf if value is None else float(value) for value in scores.to_pylist()
    ]


def test_integers_that_floats_cannot_tell_apart():
    table = TABLE.set_column(3, "score", pa.array([2**53 + 1, None, 2**53, 1]))
    with pytest.raises(InputError, match='"score" has 1 null and whole numbers beyond'):
        fn.Rankings.from_arrow(table, nan="last")


def test_what_pandas_writes(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"qid": QUERIES, "label": GRADES, "score": [0.5, np.nan, 0.25, 1.0]})
    frame.to_parquet(tmp_path / "p.parquet")
    assert fn.read_parquet(tmp_path / "p.parquet", nan="last").scores.tolist() == LAST
    assert run("score", tmp_path / "p.parquet", "--nan", "last").exit_code == 0
    assert fn.ndcg(GRADES[:3], [0.5, np.nan, 0.25], nan="last") == fn.ndcg(GRADES[:3], LAST[:3])


UNJUDGED = TABLE.set_column(3, "score", pa.array([1.0] * 4)).set_column(2, "label", pa.array([0, None, 1, 1]))
FLAGGED = UNJUDGED.set_column(2, "label", pa.array([0, 0, 1, 1])).append_column("is_judged", pa.array([True, False, True, True]))  # fmt: skip
ADVICE = [  # a table, what is typed, what is said, and the options that follow it
    (TABLE, "score", "or pass --nan last.", "--nan last"),
    (TABLE, "conventions", "or pass nan=", None),  # which has no such option
    (UNJUDGED, "score -m Judged@3 --format csv", "or pass --unjudged null where", "--unjudged null"),
    (FLAGGED, "score -m Judged@3 --format csv --is-judged is_judged", "score=score, is_judged=is_judged\n", ""),
    (TABLE.rename_columns(["topic", "docid", "label", "score"]), "score", "Name it, as in --query ...", "--query topic --nan last"),
    (TABLE.rename_columns(["topic", "docid", "label", "score"]), "conventions", "Name it, as in --query ...", None),
    (TABLE.append_column("pred", pa.array([1.0] * 4)), "score", "as in --score score", "--score score --nan last"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "line", "said", "options"), ADVICE)
def test_advice_of_the_command_line_is_an_option_of_it(table, line, said, options, tmp_path):
    command, _, words = line.partition(" ")
    path = _write(tmp_path / "a.parquet", table)
    result = run(f"{command} {path} {words}")
    assert said in result.stderr and (result.exit_code == 0) == (options == "")
    if options is not None:
        followed = run(f"{command} {path} {words} {options}")
        assert followed.exit_code == 0, followed.stderr
        if "Judged" in words:
            assert followed.stdout.splitlines()[1].split(",")[1] == str((2 / 3 + 1) / 2)


# ---- which constructor takes which keyword ----

KEYWORDS = {
    "nan", "ascending", "unjudged", "rank", "grades", "weight", "keep", "doc_id", "is_judged", "judged", "intents", "propensity",
}  # fmt: skip
OF_ARRAYS = {"doc_ids": "doc_id", "queries": "keep"}  # what arrays have instead of the name of a column
ARRAYS = {"rank", "grades"}  # ranks are given as scores, with ascending=True; grades are numbers
TABLES = {"judged"}  # a table has a row for each document that was scored; other judgments are another table
JOINED = {"judged", "is_judged", "propensity"}  # the judgments are the pool, and no scores stand beside them
TREC = JOINED | {"rank", "grades", "weight", "keep", "doc_id", "unjudged"}  # fields of a line have no names
ONE_CALL = KEYWORDS - {"nan", "ascending", "unjudged", "rank", "grades"}  # nDCG alone is returned
SHARED = KEYWORDS - {"nan", "ascending"}  # everything is shared but the scores
HOLES = {
    fn.Rankings.from_offsets: ARRAYS,
    fn.Rankings.from_groups: ARRAYS,
    fn.Rankings.from_query_ids: ARRAYS,
    fn.Rankings.from_dense: ARRAYS,
    fn.Rankings.from_lists: ARRAYS,
    fn.read_ltr: ARRAYS,
    fn.ndcg: ARRAYS | ONE_CALL,
    fn.Rankings.with_scores: SHARED,
    fn.Rankings.from_arrow: TABLES,
    fn.read_parquet: TABLES,
    fn.scan_parquet: TABLES,
    fn.read_csv: TABLES,
    fn.evaluate: TABLES,
    fn.Rankings.from_qrels_run: JOINED,
    fn.read_qrels_run: JOINED,
    fn.read_trec: TREC,
}


def keywords_of(function):
    """Keywords of a function, those of `**columns` by the type that names them."""
    names = set()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            names |= getattr(
                typing, re.fullmatch(r"Unpack\[(\w+)\]", parameter.annotation)[1]
            ).__optional_keys__
        else:
            names.add(name)
    return {OF_ARRAYS.get(name, name) for name in names}


@pytest.mark.parametrize("function", HOLES, ids=lambda function: function.__qualname__)
def test_each_constructor_takes_all_keywords_that_have_a_meaning_there(function):
    assert KEYWORDS - keywords_of(function) == HOLES[function]


MISSING = {
    "list": [1, None, 2],
    "floats": [1.0, np.nan, 2.0],
    "arrow": pa.array([1, None, 2]),
    "masked": np.ma.masked_equal(np.array([1, 0, 2], np.int8), 0),
    "objects": np.array([1, None, 2], object),
}


@pytest.mark.parametrize("grades", MISSING)
def test_missing_grades_of_arrays_are_no_judgments(grades):
    given = MISSING[grades]
    offsets, query_ids, flags = [0, 2, 3], ["b", "a", "b"], [True, True, False]
    made = {
        "offsets": lambda **words: fn.Rankings.from_offsets(offsets, given, [3, 2, 1], **words),
        "groups": lambda **words: fn.Rankings.from_groups([2, 1], given, [3, 2, 1], **words),
        "ids": lambda **words: fn.Rankings.from_query_ids(query_ids, given, [3, 2, 1], **words),
        "dense": lambda **words: fn.Rankings.from_dense(
            given[None] if grades == "masked" else [given], [[3, 2, 1]], **words
        ),
        "lists": lambda **words: fn.Rankings.from_lists([given, []], [[3, 2, 1], []], **words),
    }
    for name, make in made.items():
        with pytest.raises(fn.FastndcgError):
            make()
        with pytest.raises(InputError, match='unjudged=\'nul\' is not known; expected "refuse" or "null"'):
            make(unjudged="nul")
        rankings = make(unjudged="null")
        assert rankings.relevance.tolist() == ([1, 2, 0] if name == "ids" else [1, 0, 2]), name
        assert rankings.is_judged.tolist() == ([True, True, False] if name == "ids" else [True, False, True])
        both = make(unjudged="null", is_judged=flags)
        assert both.is_judged.tolist() == [True, False, False]


def test_missing_grades_that_floats_cannot_hold():
    for given in (pa.array([2**53 + 1, None]), [2**53 + 1, None], np.ma.masked_equal([2**53 + 1, 0], 0)):
        with pytest.raises(InputError, match="relevance has nulls and whole numbers beyond 2\\^53"):
            fn.Rankings.from_offsets([0, 2], given, [1, 2], unjudged="null")
    with pytest.raises(fn.errors.InputTypeError, match="relevance is not an array of numbers"):
        fn.Rankings.from_offsets([0, 2], np.array(["good", None], object), [1, 2], unjudged="null")


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32])
def test_the_lowest_score_of_arrays_is_the_best(dtype):
    distances = np.array([3, 200, 3, 0], dtype)
    rankings = fn.Rankings.from_lists([[1, 0], [0, 2]], [distances[:2], distances[2:]], ascending=True)
    assert fn.evaluate(rankings, "RR").mean() == {"RR": 1.0}
    again = rankings.with_scores(distances[[1, 0, 2, 3]], ascending=True)
    assert fn.evaluate(again, "RR").mean() == {"RR": 0.75}
    np.testing.assert_array_equal(fn.ndcg([1, 0, 0, 2], distances, group=[2, 2], ascending=True), 1.0)
    for wrong in (1, "yes", None):
        with pytest.raises(
            fn.errors.InputTypeError, match="ascending=.* is not known; expected True or False"
        ):
            rankings.with_scores(distances, ascending=wrong)
    with pytest.raises(InputError, match="ascending=True needs scores"):
        fn.Rankings.from_lists([[1, 0]], ascending=True)


def test_letor_files_take_the_keywords_of_arrays(tmp_path):
    (tmp_path / "l").write_text("1 qid:b 1:1\nnan qid:a 1:1\n0 qid:b 1:1\n")
    with pytest.raises(InputError, match='unjudged="null"'):
        fn.read_ltr(tmp_path / "l", scores=[1, 2, 3])
    rankings = fn.read_ltr(
        tmp_path / "l",
        scores=[0.1, 0.2, 0.3],
        ascending=True,
        unjudged="null",
        weight=[1, 3],
        doc_ids=["x", "y", "z"],
        queries={"lang": ["de", "en"]},
    )
    assert rankings.doc_ids.to_pylist() == ["x", "z", "y"]
    assert rankings.is_judged.tolist() == [True, True, False]
    assert rankings.queries.to_pydict() == {"query_id": ["b", "a"], "lang": ["de", "en"], "weight": [1, 3]}
    assert fn.evaluate(rankings, "RR").mean() == {"RR": 0.25}


# ---- judgments and a run ----

JUDGED = {
    "qid": ["b", "a", "b", "a", "c"],
    "docid": ["x", "x", "y", "z", "x"],
    "label": ["good", "bad", None, "fair", "good"],
    "lang": ["de", "en", "de", "en", "fr"],
    "importance": [1, 3, 1, 3, 5],
}
RETURNED = {
    "qid": ["a", "a", "b", "b"],
    "docid": ["z", "x", "y", "x"],
    "place": [1, 2, 1, 2],
    "distance": [0.1, None, 0.2, 0.7],
}
WORDS = {"good": 2, "fair": 1, "bad": 0}
OPTIONS = {
    "unjudged": "null", "grades": WORDS, "keep": "lang", "weight": "importance", "missing": "skip", "ties": "input"
}  # fmt: skip


def _text_tables(folder, kind):
    return _write(folder / f"qrels.{kind}", JUDGED), _write(folder / f"run.{kind}", RETURNED)


def _joins(folder):
    def of_tables(make):
        return lambda **words: fn.Rankings.from_qrels_run(make(JUDGED), make(RETURNED), **words)

    found = {"arrow": of_tables(pa.table), "reader": of_tables(lambda columns: pa.table(columns).to_reader())}
    for kind in ("parquet", "csv", "jsonl"):
        found[kind] = partial(fn.read_qrels_run, *_text_tables(folder, kind))
    for library, name in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame")):
        with suppress(ImportError):
            found[f"{library}.{name}"] = of_tables(getattr(import_module(library), name))
    return found


def test_judgments_and_a_run_take_the_keywords_of_tables(tmp_path):
    for name, read in _joins(tmp_path).items():
        rankings = read(rank="place", **OPTIONS)
        assert rankings.queries.to_pydict() == {"qid": ["b", "a"], "lang": ["de", "en"], "weight": [1, 3]}, (
            name
        )
        assert rankings.doc_ids.to_pylist() == ["y", "x", "z", "x"]
        assert rankings.relevance.tolist() == [0, 2, 1, 0]
        assert rankings.is_judged.tolist() == [False, True, True, True]
        assert rankings.judged.offsets.tolist() == [0, 1, 3]
        assert fn.evaluate(rankings, "RR").mean() == {"RR": (0.5 + 3) / 4}
        by_distance = read(score="distance", ascending=True, nan="last", **OPTIONS)
        assert by_distance.scores.tolist() == [-0.2, -0.7, -0.1, -np.inf]
        with pytest.raises(InputError, match='unjudged="null"'):
            read(rank="place", **(OPTIONS | {"unjudged": "refuse"}))
        with pytest.raises(fn.FastndcgError, match=r'"(label|good)"?.*as in grades='):
            read(rank="place", **(OPTIONS | {"grades": None}))
        with pytest.raises(fn.ColumnError, match='score="distance" and rank="place" were both passed'):
            read(rank="place", score="distance", **OPTIONS)
        with pytest.raises(
            InputError, match='column "docid" differs within query "b": "x" at row ., "y" at row .'
        ):
            read(rank="place", **(OPTIONS | {"keep": "docid"}))


@pytest.mark.parametrize(("options", "says"), [
    ({"keep": "lang"}, 'there is no column "lang": .* give a table'),
    ({"weight": "w"}, "weight= is of a column, and .* give a table"),
    ({"rank": "r"}, "rank= is of a column, and .* give a table"),
    ({"grades": {"good": 1}}, "for which grades= has no grade"),
])  # fmt: skip
def test_what_has_no_columns_is_asked_for_none(tmp_path, options, says):
    (tmp_path / "q").write_text("1 0 a 1\n")
    (tmp_path / "r").write_text("1 Q0 a 1 0.5 me\n")
    with pytest.raises(InputError, match=says):
        fn.Rankings.from_qrels_run({"1": {"a": 1}}, {"1": {"a": 0.5}}, **options)
    with pytest.raises(InputError, match=says):
        fn.read_qrels_run(tmp_path / "q", tmp_path / "r", **options)
    for keyword in ("is_judged", "propensity"):
        with pytest.raises(fn.errors.InputTypeError, match=f"from_qrels_run has no argument {keyword}="):
            fn.Rankings.from_qrels_run({}, {}, **{keyword: "c"})


def test_distances_of_runs(tmp_path):
    (tmp_path / "q").write_text("1 0 a 1\n")
    (tmp_path / "r").write_text("1 Q0 b 1 0.5 me\n1 Q0 a 1 0.25 me\n")
    (tmp_path / "ranks").write_text("1\ta\t1\n1\tb\t2\n")
    for rankings in (
        fn.read_trec(tmp_path / "q", tmp_path / "r", ascending=True),
        fn.read_qrels_run(tmp_path / "q", tmp_path / "r", ascending=True),
        fn.read_qrels_run(tmp_path / "q", tmp_path / "ranks", ascending=True),
        fn.Rankings.from_qrels_run({"1": {"a": 1}}, {"1": {"b": 0.5, "a": 0.25}}, ascending=True),
    ):
        assert fn.evaluate(rankings, "RR").mean() == {"RR": 1.0}


def test_the_command_line_takes_them_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _text_tables(tmp_path, "parquet")
    both = "score --qrels qrels.parquet --run run.parquet --rank place"
    assert "--unjudged null" in run(both).stderr
    assert "--grades" in run(f"{both} --unjudged null").stderr
    options = (
        "--grades good=2,fair=1,bad=0 --unjudged null --weight importance --missing skip --by lang -m RR"
    )
    found = facts(f"{both} {options}")
    assert found["measures"][0]["mean"] == (0.5 + 3) / 4
    assert [(each["lang"], each["mean"]) for each in found["slices"]] == [("de", 0.5), ("en", 1.0)]
    assert (found["columns"]["rank"], found["columns"]["weight"]) == ("place", "importance")
    (tmp_path / "q").write_text("1 0 a 1\n")
    refused = run("score --qrels q --run run.parquet --by lang")
    assert refused.exit_code == 3 and 'there is no column "lang": ' in refused.stderr


# ---- what is advised exists ----

FAULTS = {
    "none": {},
    "null scores": {"score": [0.5, None, 0.25, 1.0]},
    "NaN scores": {"score": [0.5, float("nan"), 0.25, 1.0]},
    "null grades": {"label": [0, None, 2, 1]},
    "NaN grades": {"label": [0.0, float("nan"), 2.0, 1.0]},
    "infinite grades": {"label": [0.0, float("inf"), 2.0, 1.0]},
    "words": {"label": ["good", "bad", "good", "bad"]},
    "twice": {"docid": ["d0", "d0", "d2", "d0"]},
    "two columns": {"pred": [1.0] * 4, "rating": [1] * 4, "query": [1] * 4},
    "no grades": {"label": None},
    "no scores": {"score": None},
    "no queries": {"qid": None},
    "null queries": {"qid": ["a", None, "a", "b"]},
    "negative grades": {"label": [-1, 0, 2, 1]},
    "a distance": {"score": None, "distance": [0.5, 0.1, 0.25, 1.0]},
}


def _two(columns):
    return (
        pa.table(
            {name: values for name, values in columns.items() if name not in ("score", "pred", "distance")}
        ),
        pa.table({name: values for name, values in columns.items() if name not in ("label", "rating")}),
    )


def _arrays(make):
    return lambda folder, columns, **words: make(columns["label"], columns["score"], **words)


ADVISED = {
    "arrow": (fn.Rankings.from_arrow, lambda folder, columns: fn.Rankings.from_arrow(pa.table(columns), doc_id="docid")),
    "evaluate": (fn.evaluate, lambda folder, columns: fn.evaluate(pa.table(columns), "nDCG")),
    "parquet": (fn.read_parquet, lambda folder, columns: fn.read_parquet(_write(folder / "a.parquet", columns))),
    "stream": (fn.scan_parquet, lambda folder, columns: fn.evaluate(fn.scan_parquet(_write(folder / "a.parquet", columns)), "nDCG")),
    "csv": (fn.read_csv, lambda folder, columns: fn.read_csv(_write(folder / "a.csv", columns))),
    "joined": (fn.Rankings.from_qrels_run, lambda folder, columns: fn.Rankings.from_qrels_run(*_two(columns))),
    "offsets": (fn.Rankings.from_offsets, _arrays(lambda *arrays: fn.Rankings.from_offsets([0, 3, 4], *arrays))),
    "groups": (fn.Rankings.from_groups, _arrays(lambda *arrays: fn.Rankings.from_groups([3, 1], *arrays))),
    "ids": (fn.Rankings.from_query_ids, _arrays(lambda *arrays: fn.Rankings.from_query_ids([1, 2, 1, 1], *arrays))),
    "dense": (fn.Rankings.from_dense, _arrays(lambda *arrays: fn.Rankings.from_dense(*([each] for each in arrays)))),
    "list": (fn.Rankings.from_lists, _arrays(lambda *arrays: fn.Rankings.from_lists(*([each] for each in arrays)))),
    "scores": (
        fn.Rankings.with_scores,
        _arrays(lambda _, scores: fn.Rankings.from_offsets([0, 3, 4], [1, 0, 1, 1], [4, 3, 2, 1]).with_scores(scores)),
    ),
    "ndcg": (fn.ndcg, _arrays(lambda *arrays: fn.ndcg(*arrays, group=[3, 1]))),
    "ndcg_score": (fn.ndcg_score, _arrays(lambda *arrays: fn.ndcg_score(*([each] for each in arrays)))),
}  # fmt: skip


@pytest.mark.parametrize("name", ADVISED)
def test_every_argument_that_a_message_advises_is_one_of_the_function(name, tmp_path):
    """Of the errors and warnings of wrong data; the command line leaves out what it has no option for."""
    function, call = ADVISED[name]
    known, advised = set(inspect.signature(function).parameters) | keywords_of(function), set()
    for fault, changed in FAULTS.items():
        columns = {
            key: value
            for key, value in (TABLE.to_pydict() | {"score": [4, 3, 2, 1.5]} | changed).items()
            if value
        }
        if not {"label", "score"} <= columns.keys() and function in ARRAY_FUNCTIONS:
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                call(tmp_path, columns)
                messages = [each.message for each in caught]
            except fn.FastndcgError as error:
                messages = [error, *(each.message for each in caught)]
        for message in messages:
            plain = re.sub(r"[\w.]+\([^)]*\)", "", str(message))  # a measure, or a call
            named = set(re.findall(r"\b([a-z_]+)=", plain))
            assert named <= known, (fault, str(message))
            advised |= named
    assert advised or name == "ndcg_score"


ARRAY_FUNCTIONS = [
    function
    for name, (function, _) in ADVISED.items()
    if name in ("offsets", "groups", "ids", "dense", "list", "scores", "ndcg", "ndcg_score")
]
