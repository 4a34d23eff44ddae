"""`Rankings` and its constructors: what they hold, what they copy, in which order, and what they refuse."""

import copy
import pickle
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import strategies as ours

import fastndcg as fn
from fastndcg import InputError, InputTypeError, Rankings

OFFSETS, RELEVANCE, SCORES = [0, 2, 2, 5], [1, 0, 2, 0, 1], [0.3, 0.9, 0.8, 0.7, 0.1]


def columns(rankings):
    return rankings.offsets.tolist(), rankings.relevance.tolist(), rankings.scores.tolist()


# ---- every constructor ----


def test_from_offsets():
    rankings = Rankings.from_offsets(OFFSETS, RELEVANCE, SCORES)
    assert columns(rankings) == (OFFSETS, RELEVANCE, SCORES)
    assert (rankings.n_queries, rankings.n_docs, rankings.lengths.tolist()) == (3, 5, [2, 0, 3])
    assert rankings.offsets.dtype == np.int64
    assert rankings.judged is rankings.is_judged is rankings.doc_ids is rankings.weight is None
    assert rankings.queries.to_pydict() == {"query_id": [0, 1, 2]}


LISTS, ALL = ([[1, 0], [], [2, 0, 1]], [[0.3, 0.9], [], [0.8, 0.7, 0.1]]), (OFFSETS, RELEVANCE, SCORES)
FOUR = ([0, 2, 4], [1, 0, 2, 0], [0.3, 0.9, 0.8, 0.7])
T = np.array([[1, 0], [2, 3]]).T
MADE = [
    ("from_groups", ([2, 0, 3], RELEVANCE, SCORES), ALL),
    ("from_groups", (np.array([2, 0, 3], np.uint8), RELEVANCE, SCORES), ALL),
    ("from_groups", ([], [], []), ([0], [], [])),
    ("from_groups", ([2, 2], *FOUR[1:]), FOUR),
    ("from_query_ids", ([4, 4, 1, 1], *FOUR[1:]), FOUR),
    ("from_dense", ([[1, 0, 2], [0, 1, 0]], [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]]), ([0, 3, 6], [1, 0, 2, 0, 1, 0], [0.1, 0.2, 0.3, 0.3, 0.2, 0.1])),
    ("from_dense", (np.empty((0, 4)), np.empty((0, 4))), ([0], [], [])),
    ("from_dense", (np.empty((2, 0)), np.empty((2, 0))), ([0, 0, 0], [], [])),
    ("from_dense", (T, T), ([0, 2, 4], [1, 2, 0, 3], [1, 2, 0, 3])),
    ("from_dense", ([[1, 0], [2, 0]], [[0.3, 0.9], [0.8, 0.7]]), FOUR),
    ("from_lists", LISTS, ALL),
    ("from_lists", tuple(map(pa.array, LISTS)), ALL),
    ("from_lists", ([[1, 0], [2, 0]], [[0.3, 0.9], [0.8, 0.7]]), FOUR),
    ("from_lists", ([np.array([1, 0]), ()], [[5, 7], []]), ([0, 2, 2], [1, 0], [5, 7])),
    ("from_lists", ([],), ([0], [], [])),
    ("from_lists", ([[]], [[]]), ([0, 0], [], [])),
    ("from_lists", ([[0, 1], [], [1]], [[2**53, 2**53 + 1], [], [2**53 + 2]]), ([0, 2, 2, 3], [0, 1, 1], [2**53, 2**53 + 1, 2**53 + 2])),
    ("from_arrow", (pa.table({"qid": [7, 7, 8], "label": [1, 0, 2], "score": [0.5, 0.1, 0.9]}),), ([0, 2, 3], [1, 0, 2], [0.5, 0.1, 0.9])),
]  # fmt: skip


@pytest.mark.pure
@pytest.mark.parametrize(("constructor", "given", "wanted"), MADE)
def test_what_constructors_make(constructor, given, wanted):
    assert columns(getattr(Rankings, constructor)(*given)) == wanted


@pytest.mark.pure
def test_from_lists_in_rank_order():
    rankings = Rankings.from_lists([[3, 0], [], [1, 2, 0]])
    assert rankings.relevance.tolist() == [3, 0, 1, 2, 0]
    for start, stop in zip(rankings.offsets[:-1], rankings.offsets[1:], strict=True):
        assert (np.diff(rankings.scores[start:stop]) < 0).all()
    assert fn.evaluate(rankings, "CG@1").values.tolist() == [[3.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    "other", [np.array([0.5]), np.array([2**64 - 1], np.uint64)], ids=["float64", "uint64"]
)
def test_from_lists_of_several_dtypes_narrows_no_score_in_silence(other):
    """No dtype holds both exactly: refused, or still told apart."""
    try:
        rankings = Rankings.from_lists([[0, 1], [1]], [np.array([2**53, 2**53 + 1]), other])
    except (InputError, InputTypeError) as error:
        assert "scores" in str(error)
        return
    assert fn.evaluate(rankings, "nDCG@1").values.tolist() == [[1.0, 1.0]]


def test_from_query_ids_of_pandas_and_polars():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"q": ["b", "a", "b"], "r": [1, 2, 0], "s": [0.5, 0.1, 0.9]}, index=[9, 4, 7])
    wanted = ([0, 2, 3], [1, 0, 2], [0.5, 0.9, 0.1])
    assert columns(Rankings.from_query_ids(frame["q"], frame["r"], frame["s"])) == wanted
    assert columns(Rankings.from_query_ids(frame["q"].astype("category"), frame["r"], frame["s"])) == wanted
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"q": ["b", "a", "b"], "r": [1, 2, 0], "s": [0.5, 0.1, 0.9]})
    for ids in (frame["q"], frame["q"].cast(polars.Categorical)):
        assert columns(Rankings.from_query_ids(ids, frame["r"], frame["s"])) == wanted


def test_there_is_no_constructor_without_a_name():
    with pytest.raises(InputTypeError, match="from_offsets, from_groups, from_query_ids"):
        Rankings(OFFSETS, RELEVANCE, SCORES)


# ---- optional columns ----


def test_queries_hold_ids_then_kept_columns_then_weight():
    rankings = Rankings.from_groups(
        [1, 1],
        [1, 0],
        [1, 2],
        query_ids=["a", "b"],
        queries=pa.table({"country": ["de", "fr"], "n": [1, 2]}),
        weight=[1, 3],
    )
    assert rankings.queries.column_names == ["query_id", "country", "n", "weight"]
    assert rankings.weight is not None and rankings.weight.dtype == np.float64
    assert rankings.queries["weight"].to_pylist() == [1.0, 3.0]


@pytest.mark.pure
@pytest.mark.parametrize("seed", range(4))
def test_with_scores_is_what_a_constructor_would_make(seed):
    table = ours.crossed_table(seed)
    rankings = table.rankings()
    scores = np.random.default_rng(len(table.scores)).random(rankings.n_docs)
    other = rankings.with_scores(scores)
    measures = ["DCG@3", "RR", "NumRet"]
    fields = dict(rankings.__dict__)
    anew = copy.deepcopy(rankings)
    anew.__dict__["scores"] = other.scores
    assert np.array_equal(fn.evaluate(other, measures).values, fn.evaluate(anew, measures).values)
    for name, value in fields.items():
        assert name == "scores" or other.__dict__[name] is value
    assert np.shares_memory(rankings.with_scores(scores).scores, scores) or not len(scores)


def test_with_scores_refuses_what_constructors_refuse():
    rankings = Rankings.from_lists([[1, 0], [2]], query_ids=["a", "b"])
    with pytest.raises(InputError, match="scores has 2 values for 3 documents"):
        rankings.with_scores([0.1, 0.2])
    with pytest.raises(InputError, match=r'scores has 1 NaN value; the first is at row 2, query "b"'):
        rankings.with_scores([0.1, 0.2, np.nan])
    assert rankings.with_scores([0.1, 0.2, np.nan], nan="last").scores[2] == -np.inf
    with pytest.raises(InputTypeError, match="scores"):
        rankings.with_scores(["a", "b", "c"])


@pytest.mark.pure
def test_a_pool():
    rankings = Rankings.from_groups(
        [1, 0], [1], [1], judged=(np.array([0, 2, 3], np.int32), np.array([1, 2, 3], np.uint8))
    )
    assert rankings.judged is not None
    assert rankings.judged.offsets.tolist() == [0, 2, 3] and rankings.judged.relevance.tolist() == [1, 2, 3]
    assert rankings.judged.offsets.dtype == np.int64
    offsets, relevance = rankings.judged
    assert fn.evaluate(rankings, "nDCG@1").values.tolist() == [[0.5, 0.0]]
    assert offsets is rankings.judged.offsets and relevance is rankings.judged.relevance


# ---- copies ----


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
)
def test_columns_are_not_copied(dtype):
    relevance, scores = np.ones(4, dtype), np.arange(4).astype(dtype)
    pool, ends, flags, weight = np.ones(5, dtype), np.array([0, 2, 5]), np.ones(4, bool), np.ones(2)
    options = {"is_judged": flags, "judged": (ends, pool), "weight": weight}
    for rankings in (
        Rankings.from_offsets(np.array([0, 2, 4]), relevance, scores, **options),
        Rankings.from_groups([2, 2], pa.array(relevance), pa.array(scores), **options),
        Rankings.from_query_ids([3, 3, 1, 1], relevance, scores, **options),
        Rankings.from_query_ids(["b", "b", "a", "a"], relevance, scores, **options),
        Rankings.from_dense(relevance.reshape(2, 2), scores.reshape(2, 2), **options),
    ):
        own = rankings.relevance, rankings.scores, rankings.is_judged, *rankings.judged, rankings.weight
        for ours_, theirs in zip(own, (relevance, scores, flags, ends, pool, weight), strict=True):
            assert np.shares_memory(ours_, theirs) and ours_.dtype == theirs.dtype


def test_the_input_is_not_changed():
    relevance, scores = np.array([1, 0, 2]), np.array([0.1, np.nan, 0.3])
    Rankings.from_groups([3], relevance, scores, nan="last")
    assert relevance.flags.writeable and scores.flags.writeable and np.isnan(scores[1])


# ---- pools ----


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 3000])
def test_a_pool_that_lacks_relevant_documents_which_were_scored(dtype, n):
    """More would be found than there is, and R and nDCG may pass 1. What is not relevant need not be in it."""
    offsets, ends = np.arange(n + 1) * 5, np.arange(n + 1) * 3
    grades = np.tile(np.array([3, 1, 0, 1, 7], dtype), n)
    flags = np.arange(5 * n) % 5 != 4  # the grade of an unjudged document means nothing
    for kind in (dtype, "float64"):
        pool = np.tile(np.array([1, 3, 1], kind), n)
        whole = Rankings.from_offsets(offsets, grades, -grades, judged=(ends, pool), is_judged=flags)
        assert fn.evaluate(whole, "R").values.tolist() == [[1.0] * n]
        pool[3 * n - 1] = 0
        with pytest.warns(fn.FastndcgWarning) as caught:
            Rankings.from_offsets(offsets, grades, -grades, judged=(ends, pool), is_judged=flags)
        assert str(caught[0].message) == (
            "judged lacks documents that were scored, in 1 query: "
            f"query {n - 1} has 3 scored documents with a grade above 0 and 2 in its pool, so that R, "
            "AP and nDCG may pass 1. The pool holds all judged documents of a query, returned or not: "
            "add these to it, or pass is_judged=False for them."
        )


# ---- immutable ----


def test_immutable():
    relevance = np.array(RELEVANCE)
    rankings = Rankings.from_offsets(
        OFFSETS,
        relevance,
        SCORES,
        is_judged=[True] * 5,
        weight=[1, 1, 1],
        judged=([0, 1, 2, 4], [1, 1, 2, 1]),
    )
    for name in ("relevance", "scores", "offsets", "weight", "queries", "n_queries", "new"):
        with pytest.raises(AttributeError):
            setattr(rankings, name, 1)
    assert rankings.judged is not None and rankings.is_judged is not None and rankings.weight is not None
    for array in (
        rankings.relevance,
        rankings.scores,
        rankings.offsets,
        rankings.is_judged,
        rankings.weight,
        *rankings.judged,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    relevance[0] = 5  # one's own array stays one's own


def test_pickled_and_copied():
    rankings = Rankings.from_offsets(
        OFFSETS, RELEVANCE, SCORES, is_judged=[True, False] * 2 + [True], weight=[1, 2, 3], judged=([0, 1, 2, 4], [1, 1, 2, 1]), query_ids=list("abc"),
        doc_ids=list("vwxyz"), queries={"n": [1, 2, 3]},
    )  # fmt: skip
    for again in (pickle.loads(pickle.dumps(rankings)), copy.copy(rankings), copy.deepcopy(rankings)):
        assert columns(again) == columns(rankings)
        assert again.queries.to_pydict() == rankings.queries.to_pydict()
        assert again.doc_ids.to_pylist() == list("vwxyz")
        measures = "nDCG, nDCG(judged_only=True)"
        assert (
            fn.evaluate(again, measures).values.tobytes() == fn.evaluate(rankings, measures).values.tobytes()
        )


def test_repr_says_what_it_holds():
    grades, scores, judged = (
        np.array(RELEVANCE, np.uint8),
        np.array(SCORES, np.float32),
        ([0, 1, 2, 4], [1, 1, 2, 1]),
    )
    text = repr(Rankings.from_offsets(OFFSETS, grades, scores, judged=judged))
    for fact in ("3 queries", "5 documents", "uint8", "float32", "4 judged"):
        assert fact in text


# ---- what is refused, and the nearest thing that is not ----


def refused(message, kind=InputError):
    return pytest.raises(kind, match=message)


FIVE, TWO = ([5], RELEVANCE, SCORES), ([2], [1, 0], [1, 2])
# constructor, what it is given, options, and the error; the type of the error is InputTypeError where it is the type
REFUSED = [
    ("from_offsets", ([0, 3, 2, 5], RELEVANCE, SCORES), {}, "offsets does not ascend: 3 then 2 at position 2"),
    ("from_offsets", ([1, 5], RELEVANCE, SCORES), {}, "offsets begins with 1; expected 0 first"),
    ("from_offsets", ([], [], []), {}, "offsets is empty; expected 0 first"),
    ("from_offsets", ([0, 4], RELEVANCE, SCORES), {}, "offsets ends at 4, but relevance has 5 values"),
    ("from_offsets", ([0, 6], RELEVANCE, SCORES), {}, "offsets ends at 6, but relevance has 5 values"),
    ("from_offsets", ([0.0, 5.0], RELEVANCE, SCORES), {}, InputTypeError("offsets is of dtype float64")),
    ("from_offsets", ([[0, 5]], RELEVANCE, SCORES), {}, "offsets has shape"),
    ("from_offsets", ([0, 5], [RELEVANCE], SCORES), {}, r"relevance has shape \(1, 5\); expected one dimension. Use from_dense"),
    ("from_groups", ([2, 2], RELEVANCE, SCORES), {}, "group adds up to 4 documents, but relevance has 5"),
    ("from_groups", ([6, -1], RELEVANCE, SCORES), {}, "group has a negative size, -1 at position 1"),
    ("from_groups", ([2.0, 3.0], RELEVANCE, SCORES), {}, InputTypeError("group is of dtype float64")),
    ("from_groups", ([5], RELEVANCE, SCORES[:4]), {}, "relevance has 5 values and scores 4"),
    ("from_query_ids", ([1, 2, 1, 2, 1], RELEVANCE[:4], SCORES), {}, "relevance has 4 values for 5 query ids"),
    ("from_query_ids", ([1, 2, 1, 2, 1], RELEVANCE, SCORES[:4]), {}, "scores has 4 values for 5 query ids"),
    ("from_query_ids", ([1, 1, 2, 2, 3], RELEVANCE[:4], SCORES[:4]), {}, "relevance"),
    ("from_groups", FIVE, {"is_judged": [True] * 4}, "is_judged has 4 values for 5 documents"),
    ("from_groups", FIVE, {"doc_ids": list("abcd")}, "doc_ids has 4 values for 5 documents"),
    ("from_groups", FIVE, {"query_ids": ["a", "b"]}, "query_ids has 2 values for 1 query"),
    ("from_groups", FIVE, {"weight": [1, 1]}, "weight has 2 values for 1 query"),
    ("from_groups", FIVE, {"queries": {"n": [1, 2]}}, "queries has 2 rows for 1 query"),
    ("from_groups", FIVE, {"judged": ([0, 1, 2], [1, 1])}, "judged has 2 queries and the rankings 1"),
    ("from_groups", FIVE, {"judged": ([0, 1], [1, 1])}, "judged offsets ends at 1, but judged relevance has 2 values"),
    ("from_groups", FIVE, {"judged": 3}, InputTypeError("judged is a int; expected the pair")),
    ("from_dense", ([[1, 0], [0, 1]], [[1, 2, 3], [1, 2, 3]]), {}, r"y_true has shape \(2, 2\) and y_score \(2, 3\)"),
    ("from_dense", ([1, 0], [1, 2]), {}, r"y_true has shape \(2,\)"),
    ("from_lists", ([[1], [1, 0]], [[1], [1]]), {}, "query 1 has 2 grades and 1 score"),
    ("from_lists", ([[1], [1, 0]], [[1]]), {}, "scores has 1 list and relevance 2"),
    ("from_lists", ([1, 0],), {}, "relevance of query 0 has shape"),
    ("from_lists", ("10",), {}, InputTypeError("relevance is a str")),
    ("from_groups", ([2], pa.array([1, None]), [1, 2]), {}, "relevance has 1 null"),
    ("from_groups", ([2], [1, 0], pa.array([None, 0.5])), {}, "scores has 1 null"),
    ("from_query_ids", (pa.array(["a", None, None]), [1, 0, 1], [1, 2, 3]), {}, "query_ids has 2 nulls; the first is at row 1"),
    ("from_query_ids", (pa.array(["a", None, "b"]).dictionary_encode(), [1, 0, 1], [1, 2, 3]), {}, "query_ids has 1 null; the first is at row 1"),
    ("from_query_ids", (pa.DictionaryArray.from_arrays([0, 1], pa.array(["b", None])), [1, 2], [2, 1]), {}, "query_ids has 1 null; the first is at row 1"),
    ("from_query_ids", ([1.0, 2.5], [1, 0], [1, 2]), {}, InputTypeError("query_ids is double, and not all of them are whole numbers; expected")),
    ("from_query_ids", ([[1], [2]], [1, 0], [1, 2]), {}, InputTypeError("query_ids is list")),
    ("from_groups", TWO, {"is_judged": [1, 0]}, InputTypeError("is_judged is of dtype int64")),
    *(("from_groups", TWO, {"weight": [bad]}, "weight is .* for query 0; expected finite numbers from 0") for bad in (-1.0, np.nan, np.inf)),
    ("from_groups", TWO, {"weight": ["heavy"]}, InputTypeError("weight is of dtype")),
    *(("from_groups", ([2], [1.0, bad], [1, 2]), {}, r"relevance has 1 (infinite or )?NaN value; the first is at row 1, query 0") for bad in (np.nan, np.inf, -np.inf)),
    *(("from_groups", TWO, {"judged": ([0, 2], [1.0, bad])}, "judged relevance has 1 .*NaN value; the first is at row 1 of the pool") for bad in (np.nan, np.inf, -np.inf)),
]  # fmt: skip


@pytest.mark.parametrize(("constructor", "given", "options", "error"), REFUSED)
def test_what_is_refused(constructor, given, options, error):
    with refused(str(error), type(error) if isinstance(error, InputTypeError) else InputError):
        getattr(Rankings, constructor)(*given, **options)


def test_what_is_at_the_edge_is_taken():
    assert Rankings.from_offsets([0, 0, 5, 5], RELEVANCE, SCORES).n_queries == 3
    assert Rankings.from_groups([0, 5, 0], RELEVANCE, SCORES).n_queries == 3
    assert Rankings.from_groups(*TWO, weight=[0]).weight is not None
    assert Rankings.from_groups([1], [1e300], [1]).n_docs == 1


def test_6_nan_scores_are_refused_by_query_and_row():
    scores = np.array([0.1, 0.2, np.nan, 0.3, np.nan])
    message = (
        r'scores has 2 NaN values; the first is at row 2, query "q-204". Drop those rows or pass nan="last".'
    )
    with refused(message):
        Rankings.from_groups([2, 3], RELEVANCE, scores, query_ids=["q-1", "q-204"])
    with refused("the first is at row 2, query 1"):
        Rankings.from_groups([2, 3], RELEVANCE, scores.astype(np.float32))
    last = Rankings.from_groups([2, 3], RELEVANCE, scores, nan="last")
    assert fn.evaluate(last, "CG@1").values.tolist() == [[0.0, 0.0]]
    assert not np.isnan(last.scores).any()
    with refused("nan='first' is not known"):
        Rankings.from_groups([2, 3], RELEVANCE, scores, nan="first")
    assert Rankings.from_groups([1], [1], [np.inf]).n_docs == 1


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b"],
        [1 + 1j, 2],
        [None, 1],
        [object(), 1],
        [np.datetime64("2020-01-01")] * 2,
        [[1], [2, 3]],
        [2**70, 1],
        [np.longdouble(1), 2],
    ],
    ids=lambda values: type(values[0]).__name__,
)
def test_what_is_no_number_is_refused(values):
    for relevance, scores, name in ((values, [1, 2], "relevance"), ([1, 2], values, "scores")):
        with pytest.raises((InputError, InputTypeError), match=name):
            Rankings.from_groups([2], relevance, scores)


# strings of types that few of Arrow's functions know; those of Polars are views
VIEWS = {
    "string view": pa.array(["q2", "q1", "q3"], pa.string_view()),
    "binary view": pa.array([b"q2", b"q1", b"q3"], pa.binary_view()),
    "dictionary of views": pa.DictionaryArray.from_arrays(
        [1, 0, 2], pa.array(["q1", "q2", "q3"], pa.string_view())
    ),
    "dictionary of binary views": pa.DictionaryArray.from_arrays(
        [1, 0, 2], pa.array([b"q1", b"q2", b"q3"], pa.binary_view())
    ),
    "runs": pc.run_end_encode(pa.array(["q2", "q1", "q3"])),
    "opaque": pa.ExtensionArray.from_storage(
        pa.opaque(pa.string(), "varchar", "postgres"), pa.array(["q2", "q1", "q3"])
    ),
}


@pytest.mark.pure
@pytest.mark.parametrize("in_chunks", [False, True], ids=["array", "chunks"])
@pytest.mark.parametrize("kind", VIEWS)
def test_ids_and_kept_columns_of_types_that_few_functions_know(kind, in_chunks):
    """Arrow's functions raised in `by`, `worst`, `explain`, `compare` and conventions that order ties by document id."""
    given = pa.chunked_array([VIEWS[kind][:1], VIEWS[kind][1:]]) if in_chunks else VIEWS[kind]
    plain = [str(value, "utf-8") if isinstance(value, bytes) else value for value in given.to_pylist()]
    plain = [value.encode() for value in plain] if "binary" in kind else plain

    def results(values, of):
        lists = [[1, 0, 2]] if of == "doc_ids" else [[1, 0], [0, 2], [1]]
        scores = [[0.5] * len(grades) for grades in lists]
        rankings = Rankings.from_lists(lists, scores, **{of: {"c": values} if of == "queries" else values})
        rankings = pickle.loads(pickle.dumps(rankings[:]))
        found = fn.evaluate(rankings, "nDCG@1")
        other = found if of == "doc_ids" else fn.evaluate(rankings.with_scores([1, 2, 2, 1, 0]), "nDCG@1")
        groups = "c" if of == "queries" else "query_id"
        return [
            found.queries.to_pydict(),
            found.by(groups).to_pylist(),
            found.worst("nDCG@1").to_pylist(),
            fn.explain(rankings, "nDCG@1", query=rankings.query_ids[0].as_py()).to_arrow().to_pylist(),
            [] if of == "doc_ids" else fn.compare({"a": found, "b": other}, cluster=groups).rows,
            of == "doc_ids" and fn.evaluate(rankings, "nDCG@1", convention="trec_eval").mean(),
        ]

    for of in ("query_ids", "doc_ids", *([] if kind == "opaque" else ["queries"])):
        assert results(given, of) == results(plain, of), of


@pytest.mark.pure
def test_ids_of_a_dictionary_without_values():
    """Pandas makes one of an empty categorical column."""
    for empty in (pa.array([]).dictionary_encode(), pd.Categorical([])):
        assert Rankings.from_query_ids(empty, [], []).n_queries == 0


@pytest.mark.pure
def test_no_queries_have_ids_of_a_type():
    """Ids of Arrow's type null cannot be compared."""
    for rankings in (Rankings.from_query_ids([], [], []), Rankings.from_lists([], query_ids=[])):
        assert rankings.queries.schema.field("query_id").type == pa.int64()
        assert fn.compare({"a": rankings, "b": rankings}, measures="RR").rows[0]["queries"] == 0


# ---- a document and a query are there once ----


@pytest.mark.pure
def test_a_document_twice_is_refused_by_every_constructor():
    """Three copies of one document counted as three: R@2 was 0.5, and nDCG@2 1.0."""
    ids, long = ["a", "b", "a"], {"query_id": ["q"] * 3, "doc_id": ["a", "b", "a"]}
    long |= {"relevance": [1, 0, 1], "score": [3.0, 2.0, 1.0]}
    lists = pa.table(
        {"query_id": ["q"], "doc_id": [ids], "relevance": [[1, 0, 1]], "score": [[3.0, 2.0, 1.0]]}
    )
    for kind in (
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.dictionary(pa.int8(), pa.string()),
    ):
        given = (
            pa.array(ids).cast(kind)
            if not pa.types.is_dictionary(kind)
            else pa.array(ids).dictionary_encode()
        )
        with pytest.raises(fn.InputError, match="document .*a.* of query 0 appears twice"):
            fn.Rankings.from_lists([[1, 0, 1]], doc_ids=given)
    message = (
        'document "a" of query "q" appears twice. A document has one entry for a query: drop one of the two'
    )
    for build in (
        lambda: fn.Rankings.from_query_ids(["q", "p", "q"], [1, 0, 1], [3, 2, 1], doc_ids=["a", "a", "a"]),
        lambda: fn.Rankings.from_groups([2], [1, 0], [2, 1], doc_ids=["a", "a"], query_ids=["q"]),
        lambda: fn.Rankings.from_arrow(pa.table(long), doc_id="doc_id"),
        lambda: fn.Rankings.from_arrow(lists, doc_id="doc_id"),
    ):
        with pytest.raises(fn.InputError, match=re.escape(message)):
            build()
    with pytest.raises(fn.InputError, match="document 7 of query 1 appears twice"):
        fn.Rankings.from_groups([1, 3], [1, 1, 0, 1], [1, 3, 2, 1], doc_ids=[7, 7, 8, 7])
    # one document of several queries, and documents without an id, are what they are
    fn.Rankings.from_groups([2, 2], [1, 0, 1, 0], [2, 1, 2, 1], doc_ids=["a", "b", "b", "a"])
    fn.Rankings.from_groups([2, 2], [1, 0, 1, 0], [2, 1, 2, 1], doc_ids=[None, None, "b", None])


@pytest.mark.pure
def test_a_document_twice_among_many():
    n = 200_000
    ids = np.arange(n) % 1000
    fn.Rankings.from_groups([1000] * 200, np.zeros(n, int), np.zeros(n), doc_ids=ids)
    ids[-1] = ids[-2]
    with pytest.raises(fn.InputError, match="document 998 of query 199 appears twice"):
        fn.Rankings.from_groups([1000] * 200, np.zeros(n, int), np.zeros(n), doc_ids=ids)


@pytest.mark.pure
def test_no_queries_have_no_mean():
    scores = fn.evaluate(fn.Rankings.from_lists([], []), "nDCG@10")
    assert "no queries" in repr(scores) and "nan" not in repr(scores)


def test_a_column_of_ids_among_kept_columns_is_that_of_ids():
    """It was left out, and queries were numbered, so that systems were compared by position."""
    kept = {"query_id": ["b", "a"], "country": ["de", "fr"]}
    rankings = fn.Rankings.from_lists([[1, 0], [0, 1]], queries=kept)
    assert rankings.query_ids.to_pylist() == ["b", "a"]
    assert rankings.queries.to_pydict() == kept
    assert fn.Rankings.from_lists([[1, 0], [0, 1]], query_ids=[7, 8], queries=kept).query_ids.to_pylist() == [
        7,
        8,
    ]
