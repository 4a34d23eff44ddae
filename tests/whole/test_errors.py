"""Every class of error that `evaluate` and its neighbours raise: got, wanted, next step; and the value beside it that is accepted."""

import inspect
import math
import pickle
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg import errors
from fastndcg.cli.application import in_options

R = fn.Rankings


def test_the_classes():
    classes = [
        value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, Exception)
    ]
    assert len(classes) >= 6
    for kind in classes:
        is_warning = issubclass(kind, Warning)
        assert is_warning or issubclass(kind, fn.FastndcgError)
        assert (
            is_warning or kind is fn.FastndcgError or issubclass(kind, ValueError | TypeError | ImportError)
        )
        assert getattr(fn, kind.__name__) is kind
        assert kind.__doc__


@pytest.mark.parametrize(
    ("word", "candidates", "wanted"),
    [
        ("nDGC", ["nDCG", "DCG"], ' Did you mean "nDCG"?'),
        ("ndcg", ["nDCG"], ' Did you mean "nDCG"?'),
        ("zebra", ["nDCG", "DCG"], ""),
        ("", ["nDCG"], ""),
        ("x", [], ""),
    ],
)
def test_suggest(word, candidates, wanted):
    assert errors.suggest(word, candidates) == wanted


def test_a_message_shows_what_data_holds_and_survives_a_process():
    error = fn.ConventionError("a\x1b[31m\u202e\nb")
    assert str(error) == r"a\x1b[31m\u202e" + "\nb"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is fn.ConventionError and str(again) == str(error)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ('NaN. Drop them or pass nan="last".', "NaN. Drop them or pass --nan last."),
        ('as in score="my score", score="..." or score=', 'as in --score "my score", --score ... or --score'),
        (
            "margin=-1 and margin=0.5. margin='x'; margin=1e-3.",
            "--margin -1 and --margin 0.5. --margin x; --margin 1e-3.",
        ),
        ("paired=False, paired=True", "--unpaired, --paired"),
        ('give grades={"very good": 2, "bad": 0}.', 'give --grades "very good=2,bad=0".'),
        ("as in read_qrels_run(qrels=..., run=...)", "as in --qrels and --run"),
        ("as in read_trec(qrels=..., intents=True) or x", "as in --qrels or x"),
        # what is no argument of this command, or no argument at all
        ('order="rank"', 'order="rank"'),
        ("nDCG(gain='exp2')@3 of my_score=2", "nDCG(gain='exp2')@3 of my_score=2"),
        ('column "score=3" has score="a=b"', 'column "score=3" has --score "a=b"'),
    ],
)
def test_arguments_are_options_on_the_command_line(message, shown):
    options = {name: f"--{name}" for name in ("nan", "score", "margin", "grades", "qrels", "run")}
    assert in_options(message, options | {"paired": "--paired/--unpaired"}) == shown


# ---- grades that a measure cannot bear ----


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32, np.float64])
def test_8_negative_grades(dtype):
    rankings = R.from_groups([2, 2], np.array([1, 0, 2, -3], dtype), [1, 2, 3, 4], query_ids=["a", "b"])
    with pytest.raises(
        fn.InputError, match=r'nDCG@2 .*gain -3 of grade -3.*row 3, query "b".*Map it to 0 or more'
    ):
        fn.evaluate(rankings, "nDCG@2")
    with pytest.raises(fn.InputError, match="grade -3"):
        fn.evaluate(rankings, "nDCG(gain='exp2')")
    for text in (
        "DCG",
        "CG",
        "IDCG",
        "NumRet",
        "nDCG(rel=1)",
        "nDCG(gain='binary')",
        "nDCG(gain={-3: 0, 1: 1, 2: 2})",
        "nDCG(gains={-3: 0})",
    ):
        assert np.isfinite(fn.evaluate(rankings, text).values).all()


def test_8_negative_grades_in_the_pool():
    rankings = R.from_groups([1], [1], [1], judged=([0, 2], [1, -1]))
    with pytest.raises(fn.InputError, match="grade -1.*the judged pool"):
        fn.evaluate(rankings, "nDCG")
    assert fn.evaluate(rankings, "nDCG(rel=1)").values.tolist() == [[1.0]]


def test_8_negative_grade_of_an_unjudged_document_means_nothing():
    rankings = R.from_groups([2], [1, -1], [2, 1], is_judged=[True, False])
    assert fn.evaluate(rankings, "nDCG, DCG").values.tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("grade", [-5, 300, 2**40, -(2**40), 1e300, 0.5])
def test_any_grade_of_an_unjudged_document_means_nothing(grade):
    rankings = R.from_groups([2], np.array([grade, 1.0]), [2, 1], is_judged=[False, True])
    scores = fn.evaluate(rankings, ["nDCG", "nDCG(gain='exp2')", "nDCG(gain=[0, 1])", "NumRet"])
    assert scores.values[:, 0].tolist() == pytest.approx([1 / np.log2(3)] * 3 + [2.0])


def test_10_gain_overflow():
    for grades in (np.array([0, 54]), np.array([0.0, 54.0]), np.array([0.5, 53.5]), np.array([0, 2**62])):
        with pytest.raises(fn.InputError, match=r"grade 5[34]|grade 4611686018427387904"):
            fn.evaluate(R.from_groups([2], grades, [1, 2]), "DCG(gain='exp2')")
    assert fn.evaluate(R.from_groups([2], [0, 53], [1, 2]), "DCG(gain='exp2')").values.tolist() == [
        [2.0**53 - 1]
    ]
    with pytest.raises(fn.InputError, match="grade 9007199254740994"):
        fn.evaluate(R.from_groups([2], [0, 2**53 + 2], [1, 2]), "DCG")
    assert fn.evaluate(R.from_groups([2], [0, 2**53], [1, 2]), "DCG").values.tolist() == [[2.0**53]]


def test_10_a_gain_function_that_overflows():
    rankings = R.from_groups([3], [1, 1, 1], [3, 2, 1])
    with pytest.raises(fn.FastndcgError, match="gain|sum|finite|overflow|large"):
        fn.evaluate(rankings, fn.DCG(gain=lambda grade: 1e308))
    assert math.isfinite(fn.evaluate(rankings, fn.DCG(gain=lambda grade: 1e300)).values[0, 0])


@pytest.mark.parametrize("read", ["array", "table", "csv", "stream"])
@pytest.mark.parametrize("ids", [["b", "b", "a", "a"], ["b", "a", "b", "a"]])
def test_rows_in_messages_are_those_of_the_data(read, ids, tmp_path):
    """Also where rows of a query stand apart; a fault that is found after they were put in order names the query alone."""

    def read_it(grades, scores):
        table = pa.table({"query": ids, "label": grades, "score": scores})
        if read == "array":
            return R.from_query_ids(ids, grades, scores)
        if read == "table":
            return R.from_arrow(table)
        pa_csv.write_csv(table, tmp_path / "a.csv")
        if read == "csv":
            return fn.read_csv(tmp_path / "a.csv")
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
        return fn.scan_parquet(tmp_path / "a.parquet")

    header = 2 if read == "csv" else 0
    for row, query in enumerate(ids):
        scores = [0.5] * 4
        scores[row] = math.nan
        with pytest.raises(fn.InputError, match=f'the first is at row {row + header}, query "{query}"'):
            fn.evaluate(read_it([1] * 4, scores), "nDCG")
        grades = [1] * 4
        grades[row] = -1
        where = f" at row {row + header}," if ids[0] == ids[1] else " in"
        with pytest.raises(fn.InputError, match=f'grade -1, which occurs{where} query "{query}"'):
            fn.evaluate(read_it(grades, [0.5] * 4), "nDCG")


@pytest.mark.parametrize("column", ["score", "label", "seen"])
def test_the_first_row_in_messages_is_that_of_the_data(column):
    """Where rows of a query stand apart, the first in query order may be another."""
    ids = ["b", "a", "b", "a"]
    columns = {"query": ids, "label": [1.0] * 4, "score": [0.5] * 4, "seen": [0.5] * 4}
    columns[column] = [columns[column][0], math.nan, math.nan, math.nan]
    with pytest.raises(fn.InputError, match=r'3 .*; the first is .*at row 1, query "a"'):
        R.from_arrow(pa.table(columns), propensity="seen")
    with pytest.raises(fn.InputError, match=r'3 .*; the first is .*at row 1, query "a"') as caught:
        R.from_query_ids(ids, columns["label"], columns["score"], propensity=columns["seen"])
    assert caught.value.__cause__ is None and (
        caught.value.__suppress_context__
        or not caught.value.__context__
        or caught.value.__context__ is sys.exception()  # which CatBoost leaves behind in this process
    )


def test_the_first_row_that_differs_within_its_query_is_named():
    ids, langs = ["b", "a", "a", "b"], ["en", "de", "fr", "fr"]
    data = pa.table({"query": ids, "label": [1] * 4, "score": [0.5] * 4, "lang": langs})
    with pytest.raises(fn.InputError, match='within query "a": "de" at row 1, "fr" at row 2;'):
        R.from_arrow(data, keep="lang")


@pytest.mark.parametrize(
    "change", [lambda r: pickle.loads(pickle.dumps(r)), lambda r: r[0:], lambda r: r[1:], lambda r: r[1:][0:]]
)
def test_parts_and_copies_of_rankings_name_rows_of_the_data(change):
    bad = [1, -1, 1, -1]
    with pytest.raises(fn.InputError, match='grade -1, which occurs in query "a"'):
        fn.evaluate(change(R.from_query_ids(["b", "a", "b", "a"], bad, [0.5] * 4)), "nDCG")
    with pytest.raises(fn.InputError, match='grade -1, which occurs at row 2, query "a"'):
        fn.evaluate(change(R.from_query_ids(["b", "b", "a", "a"], [1, 1, -1, 1], [0.5] * 4)), "nDCG")
    listed = pa.table({"query": ["b", "a"], "label": [[1, 1], [-1]], "score": [[0.5, 0.4], [0.5]]})
    with pytest.raises(fn.InputError, match='grade -1, which occurs in query "a"'):
        fn.evaluate(change(R.from_arrow(listed)), "nDCG")


def test_what_lists_and_matrices_hold_is_named_by_its_position():
    nan, mask = math.nan, [[True, True, False], [False, True, True]]
    for read in (
        lambda: R.from_lists([[1, 2, 0], [1, 0, nan]], [[3, 2, 1]] * 2),
        lambda: R.from_lists([[1, 2, 0], [1, 0, nan]]),
        lambda: R.from_dense([[1, 2, 0], [1, 0, nan]], [[3, 2, 1]] * 2),
        lambda: R.from_dense([[1, 2, nan], [nan, 0, nan]], [[3, 2, 1]] * 2, mask=mask),
    ):
        with pytest.raises(fn.InputError, match="the first is at position 2 of query 1. Drop"):
            read()


def test_rows_of_joined_and_reordered_rankings_are_not_named():
    joined = R.from_qrels_run({"q": {"a": 1, "b": 5}}, {"q": {"z": 0.9, "b": 0.1}})
    with pytest.raises(fn.InputError, match='grade 5, which occurs in query "q"'):
        fn.evaluate(joined, fn.nDCG(gain=[0, 1]))


def test_weights_and_probabilities_name_their_query():
    table = pa.table({"query": ["b", "a"], "label": [1, 1], "score": [1, 1], "weight": [1.0, -1.0]})
    with pytest.raises(fn.InputError, match='weight is -1.0 for query "a"; wanted finite numbers from 0'):
        R.from_arrow(table, weight="weight")
    with pytest.raises(fn.InputError, match='holds -0.5 for intent 1 of query "b"; wanted finite numbers'):
        R.from_groups(
            [1, 1],
            [1, 1],
            [1, 1],
            query_ids=["a", "b"],
            intents=[[1], [1]],
            intent_probabilities=[[1], [1, -0.5]],
        )


def test_a_grade_without_a_gain():
    rankings = R.from_groups([2], [1, 3], [2, 1], query_ids=["q7"])
    with pytest.raises(fn.InputError, match=r'no gain for grade 3, which occurs at row 1, query "q7"'):
        fn.evaluate(rankings, "nDCG(gain=[0, 1, 3])")
    with pytest.raises(fn.InputError, match="no gain for grade 3"):
        fn.evaluate(rankings, "nDCG(gain={0: 0, 1: 1})")
    assert fn.evaluate(rankings, "CG(gain=[0, 1, 3, 7])").values.tolist() == [[8.0]]
    assert fn.evaluate(rankings, "CG(gain={1: 1, 3: 2})").values.tolist() == [[3.0]]
    assert fn.evaluate(R.from_groups([2], [1, 0], [2, 1]), "CG(gain={1: 5})").values.tolist() == [[5.0]]


def test_a_fraction_without_a_gain():
    rankings = R.from_groups([2], [1, 1.5], [2, 1])
    with pytest.raises(fn.InputError, match="no gain for grade 1.5"):
        fn.evaluate(rankings, "nDCG(gain=[0, 1, 3])")
    assert fn.evaluate(rankings, "CG(gain={1: 1, 1.5: 3})").values.tolist() == [[4.0]]


def test_a_gain_function_that_returns_no_number():
    rankings = R.from_groups([2], [1, 0], [2, 1])
    with pytest.raises(fn.FastndcgError, match="gain"):
        fn.evaluate(rankings, fn.nDCG(gain=lambda grade: math.nan))
    with pytest.raises(fn.FastndcgError, match="gain"):
        fn.evaluate(rankings, fn.nDCG(gain=lambda grade: "much"))


# ---- discounts ----


def test_a_discount_for_too_few_ranks():
    rankings = R.from_groups([4], [1, 0, 1, 0], [4, 3, 2, 1])
    with pytest.raises(
        fn.MeasureError, match="needs a discount for 4 ranks and was given 2; give more, or a smaller cutoff"
    ):
        fn.evaluate(rankings, "nDCG(discount=[1, 0.5])")
    with pytest.raises(fn.MeasureError, match="needs a discount for 3 ranks and was given 2"):
        fn.evaluate(rankings, "nDCG(discount=[1, 0.5])@3")
    assert fn.evaluate(rankings, "DCG(discount=[1, 0.5])@2").values.tolist() == [[1.0]]
    assert fn.evaluate(rankings, "DCG(discount=[1, 0.5, 0.25, 0])").values.tolist() == [[1.25]]
    with pytest.raises(fn.MeasureError, match="needs a discount for 9 ranks"):
        fn.evaluate(rankings, "nDCG(discount=[1, 0.5, 0.25, 0], ideal='full')@9")
    pooled = R.from_groups([1], [1], [1], judged=([0, 3], [1, 1, 1]))
    with pytest.raises(fn.MeasureError, match="needs a discount for 3 ranks"):
        fn.evaluate(pooled, "nDCG(discount=[1, 0.5])")
    assert fn.evaluate(pooled, "nDCG(discount=[1, 0.5])@2").values.tolist() == [[1 / 1.5]]


def test_a_discount_function_that_returns_no_finite_number():
    rankings = R.from_groups([2], [1, 0], [2, 1])
    for bad in (math.inf, math.nan):
        with pytest.raises(fn.MeasureError, match="at rank 2; wanted finite numbers"):
            fn.evaluate(rankings, fn.DCG(discount=lambda rank, bad=bad: 1.0 if rank < 2 else bad))


# ---- evaluate and its neighbours ----


@pytest.mark.parametrize("thing", [None, [1, 2], np.ones(3)])
def test_what_is_evaluated_is_rankings_a_table_or_a_path(thing):
    with pytest.raises(fn.InputTypeError, match="wanted a table"):
        fn.evaluate(thing, "nDCG")


def test_a_table_that_is_evaluated_has_grades():
    with pytest.raises(fn.ColumnError, match="no column has a usual name of the relevance"):
        fn.evaluate({"q": [1]}, "nDCG")


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True])
def test_threads_are_a_positive_integer_everywhere(tmp_path, threads):
    rankings = R.from_groups([1], [1], [1], query_ids=["q"])
    scores = fn.evaluate(rankings, "nDCG", threads=np.int64(1))
    files = {
        "qrels": "q 0 d 1\n",
        "run": "q Q0 d 1 1 me\n",
        "ltr": "1 qid:1 1:0.5\n",
        "a.csv": "qid,label,score\n1,1,1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    qrels, run, ltr, csv = (tmp_path / name for name in files)
    pq.write_table(pa.table({"qid": [1], "label": [1], "score": [1.0]}), tmp_path / "a.parquet")
    calls = [
        lambda: fn.evaluate(rankings, "nDCG", threads=threads),
        lambda: fn.ndcg([1], [1], threads=threads),
        lambda: fn.evaluate(rankings, "nDCG", convention="lightgbm", threads=threads),
        lambda: fn.tie_range(rankings, "nDCG", threads=threads),
        lambda: fn.judgment_range(rankings, "nDCG", threads=threads),
        lambda: fn.compare({"a": scores, "b": scores}, threads=threads),
        lambda: fn.compare_conventions(rankings, 10, threads=threads),
        lambda: fn.match_conventions(rankings, 10, 0.5, threads=threads),
        lambda: fn.read_parquet(tmp_path / "a.parquet", threads=threads),
        lambda: fn.scan_parquet(tmp_path / "a.parquet", threads=threads),
        lambda: fn.read_csv(csv, threads=threads),
        lambda: fn.read_trec(qrels, run, threads=threads),
        lambda: fn.read_qrels_run(qrels, run, threads=threads),
        lambda: fn.read_ltr(ltr, scores=[1.0], threads=threads),
    ]
    for call in calls:
        with pytest.raises(
            fn.InputError, match=f"^threads must be a positive integer or None; got {threads!r}$"
        ):
            call()
    assert fn.evaluate(rankings, "nDCG", threads=10_000).values.tolist() == [[1.0]]


def test_measures_are_measures():
    rankings = R.from_groups([1], [1], [1])
    with pytest.raises(fn.MeasureError, match='"nDGC"'):
        fn.evaluate(rankings, ["nDCG", "nDGC@10"])
    with pytest.raises(fn.MeasureError, match="no measure was given"):
        fn.evaluate(rankings, [])
    with pytest.raises(fn.InputTypeError, match="measure"):
        fn.evaluate(rankings, [3])
    with pytest.raises(fn.InputTypeError, match="measure"):
        fn.evaluate(rankings, None)


def test_ndcg_says_which_rows_are_missing():
    with pytest.raises(fn.InputError, match="offsets ends at 3"):
        fn.ndcg([1, 0], [1, 2], offsets=[0, 3])
    with pytest.raises(fn.InputError, match="relevance has 2 values and scores 1"):
        fn.ndcg([1, 0], [1])
    with pytest.raises(fn.MeasureError, match="cutoff 0"):
        fn.ndcg([1, 0], [1, 2], k=0)
    with pytest.raises(fn.MeasureError, match="gain='exp'"):
        fn.ndcg([1, 0], [1, 2], gain="exp")


def test_write_parquet_says_where_it_could_not(tmp_path):
    scores = fn.evaluate(R.from_groups([1], [1], [1]), "nDCG")
    with pytest.raises(fn.SourceError, match="nowhere.*cannot be written"):
        scores.write_parquet(tmp_path / "nowhere" / "out.parquet")
    (tmp_path / "folder").mkdir()
    with pytest.raises(fn.SourceError, match="folder.*cannot be written"):
        scores.write_parquet(tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]
    assert list((tmp_path / "folder").iterdir()) == []


def test_every_message_is_one_line_that_ends_a_sentence():
    """A sample across modules; the command line prints them as they are."""
    rankings = R.from_groups([2], [1, -1], [1, 2])
    calls = [
        lambda: fn.evaluate(rankings, "nDCG"),
        lambda: fn.evaluate(rankings, "nDGC"),
        lambda: fn.nDCG @ 0,
        lambda: fn.nDCG(gain="exp"),
        lambda: R.from_groups([2], [1], [1, 2]),
        lambda: R.from_groups([1], [1], [math.nan]),
        lambda: R.from_offsets([0, 2, 1], [1], [1]),
        lambda: fn.ndcg([1], [1], offsets=[0, 1], group=[1]),
    ]
    for call in calls:
        with pytest.raises(fn.FastndcgError) as caught:
            call()
        message = str(caught.value)
        assert message and "\n" not in message and len(message) < 400
        assert caught.value.__cause__ is None


# ---- what no other test reaches ----


class Lazy:
    def __init__(self, name):
        setattr(self, name, lambda: None)


PAIR = {
    name: R.from_lists([grades, [1]], queries={"lang": langs})
    for name, grades, langs in (("a", [1, 0], ["de", "fr"]), ("b", [0, 1], ["de", "en"]))
}


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: R.from_arrow(Lazy("collect")), fn.InputTypeError, r"is a .*Lazy; wanted a table: .*Call \.collect\(\) first"),
        (lambda: R.from_arrow(Lazy("compute")), fn.InputTypeError, r"wanted a table: .*Call \.compute\(\) first"),
        (lambda: R.from_groups([1], [1], [1], query_ids=[{1}, 2]), fn.InputTypeError, "query_ids is not a column of ids"),
        (lambda: R.from_groups([1], [1], [1], queries=[1]), fn.InputTypeError, "queries is a list that is not a table"),
        (
            lambda: R.from_offsets(np.array([0, 2**63], np.uint64), [1], [1]),
            fn.InputError,
            f"offsets holds {2**63}; wanted row numbers below",
        ),
        (
            lambda: fn.compare(
                {name: R.from_lists([[1], [1, 0]], weight=[1, 2]) for name in "ab"},
                measures="RR",
                test="wilcoxon",
            ),
            fn.InputError,
            'test="wilcoxon" knows no weights; use test="t"',
        ),
        (
            lambda: fn.compare(PAIR, measures="RR").slices([]),
            fn.ColumnError,
            r'no column is named to group by; .* slices\("country"\)',
        ),
        (
            lambda: fn.compare(PAIR, measures="RR", paired=False).slices("lang"),
            fn.InputError,
            r"\"a\" has no query where lang='en'; leave such queries out",
        ),
        (
            lambda: fn.compare(PAIR, measures="RR", paired=False).queries_needed(0.1),
            fn.InputError,
            "number of queries is computed for a paired test; compare with paired=True",
        ),
        (lambda: fn.judgment_range(PAIR["a"], "DCG")["nDCG"], fn.MeasureError, "nDCG was not asked for; these were: DCG"),
    ],
)  # fmt: skip
def test_mistakes_that_are_rare(call, kind, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=message):
        call()
    assert list(tmp_path.iterdir()) == []
