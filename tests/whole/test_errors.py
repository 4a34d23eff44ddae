"""Every class of error that `evaluate` and its neighbours raise: got, wanted, next step; and the value beside it that is accepted."""

import inspect
import math
import pickle

import numpy as np
import pyarrow as pa
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


@pytest.mark.parametrize(("word", "candidates", "wanted"), [
    ("nDGC", ["nDCG", "DCG"], ' Did you mean "nDCG"?'),
    ("ndcg", ["nDCG"], ' Did you mean "nDCG"?'),
    ("zebra", ["nDCG", "DCG"], ""),
    ("", ["nDCG"], ""),
    ("x", [], ""),
])  # fmt: skip
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
        ("as in read_qrels_run(qrels=..., run=...)", "as in --qrels ..., --run ..."),
        ("as in read_trec(qrels=..., nan=...) or x", "as in --qrels ..., --nan ... or x"),
        # what is no argument of this command, or no argument at all
        ('order="rank"', 'order="rank"'),
        ("nDCG(ties='best')@3", "nDCG(ties='best')@3"),
        ("nDCG(gain='exp2')@3 of my_score=2", "nDCG(gain='exp2')@3 of my_score=2"),
        ('column "score=3" has score="a=b"', 'column "score=3" has --score "a=b"'),
    ],
)
def test_arguments_are_options_on_the_command_line(message, shown):
    options = {name: f"--{name}" for name in ("nan", "score", "margin", "grades", "qrels", "run")}
    assert in_options(message, options | {"paired": "--paired/--unpaired"}) == shown


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


# ---- evaluate and its neighbours ----


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


# ---- one table: a call, and what it is refused with ----


class Lazy:
    def __init__(self, name):
        setattr(self, name, lambda: None)


def one_query(*grades, **options):
    return R.from_groups([len(grades)], list(grades), list(range(len(grades), 0, -1)), **options)


PAIR = {
    name: R.from_lists([grades, [1]], queries={"lang": langs})
    for name, grades, langs in (("a", [1, 0], ["de", "fr"]), ("b", [0, 1], ["de", "en"]))
}
NEGATIVE = [
    R.from_groups([2, 2], np.array([1, 0, 2, -3], dtype), [1, 2, 3, 4], query_ids=["a", "b"])
    for dtype in (np.int8, np.int64, np.float32, np.float64)
]
POOLED = one_query(1, judged=([0, 2], [1, -1]))
DEEP = one_query(1, judged=([0, 3], [1, 1, 1]))
DIFFERS = pa.table(
    {"query": ["b", "a", "a", "b"], "label": [1] * 4, "score": [0.5] * 4, "lang": ["en", "de", "fr", "fr"]}
)
MUCH = "gain|sum|finite|overflow|large"
REFUSED = [
    # 8: grades below 0, which a gain can map
    *((lambda r=r: fn.evaluate(r, "nDCG@2"), fn.InputError, r'nDCG@2 .*gain -3 of grade -3.*row 3, query "b".*Map it to 0 or more') for r in NEGATIVE),
    *((lambda r=r: fn.evaluate(r, "nDCG(gain='exp2')"), fn.InputError, "grade -3") for r in NEGATIVE),
    (lambda: fn.evaluate(POOLED, "nDCG"), fn.InputError, "grade -1.*the judged pool"),
    # 10: gains that overflow, that are none, or that are missing
    *(
        (lambda g=g: fn.evaluate(R.from_groups([2], g, [1, 2]), "DCG(gain='exp2')"), fn.InputError, "grade 5[34]|grade 4611686018427387904")
        for g in (np.array([0, 54]), np.array([0.0, 54.0]), np.array([0.5, 53.5]), np.array([0, 2**62]))
    ),
    (lambda: fn.evaluate(one_query(2**53 + 2, 0), "DCG"), fn.InputError, "grade 9007199254740994"),
    (lambda: fn.evaluate(one_query(1, 1, 1), fn.DCG(gain=lambda _: 1e308)), fn.FastndcgError, MUCH),
    (lambda: fn.evaluate(one_query(1, 0), fn.nDCG(gain=lambda _: math.nan)), fn.FastndcgError, "gain"),
    (lambda: fn.evaluate(one_query(1, 0), fn.nDCG(gain=lambda _: "much")), fn.FastndcgError, "gain"),
    (lambda: fn.evaluate(one_query(1, 3, query_ids=["q7"]), "nDCG(gain=[0, 1, 3])"), fn.InputError, 'no gain for grade 3, which occurs at row 1, query "q7"'),
    (lambda: fn.evaluate(one_query(1, 3), "nDCG(gain={0: 0, 1: 1})"), fn.InputError, "no gain for grade 3"),
    (lambda: fn.evaluate(one_query(1, 1.5), "nDCG(gain=[0, 1, 3])"), fn.InputError, "no gain for grade 1.5"),
    # discounts
    (lambda: fn.evaluate(one_query(1, 0, 1, 0), "nDCG(discount=[1, 0.5])"), fn.MeasureError, "needs a discount for 4 ranks and was given 2; give more, or a smaller cutoff"),
    (lambda: fn.evaluate(one_query(1, 0, 1, 0), "nDCG(discount=[1, 0.5])@3"), fn.MeasureError, "needs a discount for 3 ranks and was given 2"),
    (lambda: fn.evaluate(one_query(1, 0, 1, 0), "nDCG(discount=[1, 0.5, 0.25, 0], ideal='full')@9"), fn.MeasureError, "needs a discount for 9 ranks"),
    (lambda: fn.evaluate(DEEP, "nDCG(discount=[1, 0.5])"), fn.MeasureError, "needs a discount for 3 ranks"),
    *(
        (lambda bad=bad: fn.evaluate(one_query(1, 0), fn.DCG(discount=lambda rank: 1.0 if rank < 2 else bad)), fn.MeasureError, "at rank 2; expected finite numbers")
        for bad in (math.inf, math.nan)
    ),
    (lambda: fn.evaluate(one_query(1, 0), fn.DCG(discount=lambda rank: "x")), fn.MeasureError, "returned 'x' for rank 1; a discount is a number"),
    (lambda: fn.evaluate(one_query(1, 0), "nDCG(ideal='full')@100000000"), fn.MeasureError, "expected a cutoff of at most"),
    # what is evaluated, and measures
    *((lambda thing=thing: fn.evaluate(thing, "nDCG"), fn.InputTypeError, "expected a table") for thing in (None, [1, 2], np.ones(3))),
    (lambda: fn.evaluate({"q": [1]}, "nDCG"), fn.ColumnError, "no column has a usual name of the relevance"),
    (lambda: fn.evaluate(PAIR["a"], ["nDCG", "nDGC@10"]), fn.MeasureError, '"nDGC"'),
    (lambda: fn.evaluate(PAIR["a"], []), fn.MeasureError, "no measure was given"),
    (lambda: fn.evaluate(PAIR["a"], [3]), fn.InputTypeError, "measure"),
    (lambda: fn.evaluate(PAIR["a"], None), fn.InputTypeError, "measure"),
    (lambda: fn.ndcg([1, 0], [1, 2], offsets=[0, 3]), fn.InputError, "offsets ends at 3"),
    (lambda: fn.ndcg([1, 0], [1]), fn.InputError, "relevance has 2 values and scores 1"),
    (lambda: fn.ndcg([1, 0], [1, 2], k=0), fn.MeasureError, "cutoff 0"),
    (lambda: fn.ndcg([1, 0], [1, 2], gain="exp"), fn.MeasureError, "gain='exp'"),
    (lambda: fn.ndcg([1], [1], offsets=[0, 1], group=[1]), fn.InputError, "offsets and group were passed"),
    # rankings
    (lambda: R.from_arrow(Lazy("collect")), fn.InputTypeError, r"is a .*Lazy; expected a table: .*Call \.collect\(\) first"),
    (lambda: R.from_arrow(Lazy("compute")), fn.InputTypeError, r"expected a table: .*Call \.compute\(\) first"),
    (lambda: R.from_groups([1], [1], [1], query_ids=[{1}, 2]), fn.InputTypeError, "query_ids is not a column of ids"),
    (lambda: R.from_groups([1], [1], [1], queries=[1]), fn.InputTypeError, "queries is a list that is not a table"),
    (lambda: R.from_offsets(np.array([0, 2**63], np.uint64), [1], [1]), fn.InputError, f"offsets holds {2**63}; expected row numbers below"),
    # places: in lists and matrices by position, in data by row, in joined and reordered rankings by query
    *(
        (read, fn.InputError, "the first is at position 2 of query 1. Drop")
        for read in (
            lambda: R.from_lists([[1, 2, 0], [1, 0, math.nan]], [[3, 2, 1]] * 2),
            lambda: R.from_lists([[1, 2, 0], [1, 0, math.nan]]),
            lambda: R.from_dense([[1, 2, 0], [1, 0, math.nan]], [[3, 2, 1]] * 2),
            lambda: R.from_dense([[1, 2, math.nan], [math.nan, 0, math.nan]], [[3, 2, 1]] * 2, mask=[[True, True, False], [False, True, True]]),
        )
    ),
    (lambda: R.from_arrow(DIFFERS, keep="lang"), fn.InputError, 'within query "a": "de" at row 1, "fr" at row 2;'),
    (lambda: fn.evaluate(R.from_qrels_run({"q": {"a": 1, "b": 5}}, {"q": {"z": 0.9, "b": 0.1}}), fn.nDCG(gain=[0, 1])), fn.InputError, 'grade 5, which occurs in query "q"'),
    (lambda: R.from_arrow(pa.table({"query": ["b", "a"], "label": [1, 1], "score": [1, 1], "w": [1.0, -1.0]}), weight="w"), fn.InputError, 'weight is -1.0 for query "a"; expected finite numbers from 0'),
    (lambda: R.from_groups([1, 1], [1, 1], [1, 1], query_ids=["a", "b"], intents=[[1], [1]], intent_probabilities=[[1], [1, -0.5]]), fn.InputError, 'holds -0.5 for intent 1 of query "b"; expected finite numbers'),
    (lambda: fn.evaluate(PAIR["a"], "nDCG").write_parquet("nowhere/out.parquet"), fn.SourceError, "nowhere.*cannot be written"),
    (lambda: fn.evaluate(PAIR["a"], "nDCG").write_parquet("."), fn.SourceError, "cannot be written"),
    # comparisons
    (lambda: fn.compare(PAIR, measures="RR").slices([]), fn.ColumnError, r'no column is named to group by; .* slices\("country"\)'),
    (lambda: fn.compare(PAIR, measures="RR", paired=False).slices("lang"), fn.InputError, r"\"a\" has no query where lang='en'; leave such queries out"),
    (lambda: fn.judgment_range(PAIR["a"], "DCG")["nDCG"], fn.MeasureError, "nDCG was not asked for; these were: DCG"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED, ids=range(len(REFUSED)))
def test_a_call_is_refused_in_one_line(call, kind, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
    assert caught.value.__cause__ is None and list(tmp_path.iterdir()) == []


FORGIVING = "DCG, CG, IDCG, NumRet, nDCG(rel=1), nDCG(gain='binary'), nDCG(gain={-3: 0, 1: 1, 2: 2}), nDCG(gains={-3: 0})"
HALF = [1 / np.log2(3)] * 3 + [2.0]
ACCEPTED = [  # the values beside those that are refused
    (POOLED, "nDCG(rel=1)", [1.0]),
    (one_query(1, -1, is_judged=[True, False]), "nDCG, DCG", [1.0, 1.0]),  # no judgment, so it means nothing
    *(
        (one_query(grade, 1.0, is_judged=[False, True]), "nDCG, nDCG(gain='exp2'), nDCG(gain=[0, 1]), NumRet", HALF)
        for grade in (-5, 300, 2**40, -(2**40), 1e300, 0.5)
    ),
    (one_query(53, 0), "DCG(gain='exp2')", [2.0**53 - 1]),
    (one_query(2**53, 0), "DCG", [2.0**53]),
    (one_query(1, 3), "CG(gain=[0, 1, 3, 7])", [8.0]),
    (one_query(1, 3), "CG(gain={1: 1, 3: 2})", [3.0]),
    (one_query(1, 0), "CG(gain={1: 5})", [5.0]),
    (one_query(1, 1.5), "CG(gain={1: 1, 1.5: 3})", [4.0]),
    (one_query(1, 0, 1, 0), "DCG(discount=[1, 0.5])@2", [1.0]),
    (one_query(1, 0, 1, 0), "DCG(discount=[1, 0.5, 0.25, 0])", [1.25]),
    (DEEP, "nDCG(discount=[1, 0.5])@2", [1 / 1.5]),
]  # fmt: skip


@pytest.mark.parametrize(("rankings", "measures", "values"), ACCEPTED, ids=range(len(ACCEPTED)))
def test_its_neighbour_is_accepted(rankings, measures, values):
    assert fn.evaluate(rankings, measures).values[:, 0].tolist() == pytest.approx(values, rel=1e-15)


def test_gains_that_no_grade_below_0_spoils_are_finite():
    for rankings in NEGATIVE:
        assert np.isfinite(fn.evaluate(rankings, FORGIVING).values).all()
    assert math.isfinite(fn.evaluate(one_query(1, 1, 1), fn.DCG(gain=lambda _: 1e300)).values[0, 0])
