"""Sources: Arrow and Parquet in every form become the same `Rankings`; what is copied, and what is refused."""

import dataclasses
import decimal
import inspect

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from commands import printed
from hypothesis import given
from hypothesis import strategies as st

from fastndcg import (
    ColumnError,
    InputError,
    InputTypeError,
    Rankings,
    SourceError,
    evaluate,
    read_csv,
    scan_parquet,
    typing,
)
from fastndcg.sources.readers import read_parquet
from fastndcg.tables.roles import Roles, find_columns

QUERY, LABEL, SCORE = ["b", "b", "a", "c", "c", "c"], [1, 0, 2, 0, 3, 1], [0.5, 0.1, 0.9, 0.3, 0.2, 0.8]
OFFSETS, LANG = [0, 2, 3, 6], ["en", "en", "de", "fr", "fr", "fr"]
SHUFFLE = [3, 0, 2, 4, 1, 5]  # queries c b a; each keeps the order of its rows
LISTS = {
    "qid": ["b", "a", "c"],
    "label": [[1, 0], [2], [0, 3, 1]],
    "score": [[0.5, 0.1], [0.9], [0.3, 0.2, 0.8]],
}


def table(**changed):
    columns = {"qid": QUERY, "label": LABEL, "score": SCORE, "lang": LANG} | changed
    return pa.table({name: values for name, values in columns.items() if values is not None})


def columns_of(rankings):
    ids = rankings.queries[0].to_pylist()
    return ids, rankings.offsets.tolist(), rankings.relevance.tolist(), rankings.scores.tolist()


EXPECTED = (["b", "a", "c"], OFFSETS, LABEL, SCORE)


def address(array):
    return int(array.ctypes.data)


def value_address(array):
    return int(array.buffers()[-1].address) + array.offset * array.type.bit_width // 8


# ---- containers ----


class Stream:
    """Nothing but Arrow's stream protocol."""

    def __init__(self, data):
        self._data = data

    def __arrow_c_stream__(self, requested_schema=None):
        return self._data.__arrow_c_stream__(requested_schema)


def frame():
    return pytest.importorskip("pandas").DataFrame(table().to_pydict(), index=[9, 8, 7, 6, 5, 4])


def polars():
    return pytest.importorskip("polars")


def polars_frame(data=None):
    return polars().DataFrame(data or table().to_pydict())


def stored(folder, write):
    write(folder / "a.parquet")
    return folder / "a.parquet"


JUNK = [1, "two", None, [3], {4}, 5.0]  # no Arrow type
CONTAINERS = {
    "table": lambda _: table(),
    "batch": lambda _: table().to_batches()[0],
    "reader": lambda _: table().to_reader(max_chunksize=2),
    "stream": lambda _: Stream(table()),
    "struct array": lambda _: table().to_struct_array().combine_chunks(),
    "dataset": lambda _: ds.dataset(table()),
    "mapping": lambda _: {"qid": QUERY, "label": np.array(LABEL), "score": pa.array(SCORE), "lang": LANG},
    "mapping, other bytes and strides": lambda _: {
        "qid": QUERY, "label": np.array(LABEL, ">i4"), "score": np.repeat(SCORE, 2).astype(">f8")[::2]
    },
    "structured array": lambda _: np.array(
        list(zip(QUERY, LABEL, SCORE, strict=True)), dtype=[("qid", "U3"), ("label", "i8"), ("score", "f8")]
    ),
    "pandas": lambda _: frame(),
    "pandas categorical": lambda _: frame().astype({"qid": "category"}),
    "pandas objects": lambda _: frame().astype({"qid": object}),
    "pandas on pyarrow": lambda _: frame().convert_dtypes(dtype_backend="pyarrow"),
    "pandas beside what Arrow does not know": lambda _: frame().assign(junk=JUNK),
    "pandas file": lambda folder: stored(folder, frame().to_parquet),
    "polars": lambda _: polars_frame(),
    "polars lazy": lambda _: polars_frame().lazy().filter(polars().col("score") >= 0),
    "polars categorical": lambda _: polars_frame().with_columns(polars().col("qid").cast(polars().Categorical)),
    "polars beside what Arrow does not know": lambda _: polars_frame().with_columns(polars().lit(1).cast(polars().Int128).alias("wide")),
    "polars in chunks": lambda _: polars().concat([polars_frame(table()[:2].to_pydict()), polars_frame(table()[2:].to_pydict())], rechunk=False),
    "polars file": lambda folder: stored(folder, polars_frame().with_columns(polars().col("qid").cast(polars().Categorical)).write_parquet),
    "duckdb": lambda _: pytest.importorskip("duckdb").sql(
        "select unnest(['b','b','a','c','c','c']) qid, unnest([1,0,2,0,3,1]) as label, unnest([0.5,0.1,0.9,0.3,0.2,0.8]) score"
    ),
    "lists": lambda _: pa.table(LISTS),
    "lists of two types": lambda _: pa.table(LISTS | {"score": pa.array(LISTS["score"], pa.large_list(pa.float64()))}),
    "lists in a mapping": lambda _: LISTS,
    "lists in a stream": lambda _: Stream(pa.table(LISTS)),
    "lists in polars": lambda _: polars_frame(LISTS),
    "lists in polars, lazy": lambda _: polars_frame(LISTS).lazy(),
    "lists in pandas": lambda _: pytest.importorskip("pandas").DataFrame(LISTS),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_gives_the_same_rankings(name, tmp_path):
    expected = evaluate(Rankings.from_offsets(OFFSETS, LABEL, SCORE), "nDCG@2, RR")
    scores = evaluate(CONTAINERS[name](tmp_path), "nDCG@2, RR")
    assert scores.values.tobytes() == expected.values.tobytes()
    assert scores.queries.to_pydict() == {"qid": ["b", "a", "c"]}
    if not name.endswith("file"):
        assert columns_of(Rankings.from_arrow(CONTAINERS[name](tmp_path))) == EXPECTED


def test_numbers_are_read_without_other_libraries(tmp_path):
    """pyarrow's `array` and others import pandas wherever it is there, which took a third of a short process."""
    ids = np.repeat(np.arange(6_000), 50)
    pq.write_table(pa.table({"qid": ids, "label": ids % 2, "score": ids}), tmp_path / "a.parquet")
    program = """
        import sys, numpy as np, fastndcg as fn
        path, ids = sys.argv[1], np.repeat(np.arange(600), 50)
        for data in (fn.read_parquet(path), fn.scan_parquet(path), fn.Rankings.from_query_ids(ids, ids % 2, ids),
                     {'qid': ids, 'label': ids % 2, 'score': ids}):
            scores = fn.evaluate(data, 'P@1')
            scores.mean(), str(scores.summary()), scores.to_arrow()
            others = {'pandas', 'polars', 'duckdb', 'pyarrow.compute', 'pyarrow.dataset'}
            print(*sorted(others & set(sys.modules)))
    """
    assert printed(program, tmp_path / "a.parquet").split() == []


def test_no_rows_empty_lists_and_matrices():
    for empty in (
        {"qid": [], "label": [], "score": []},
        {"label": [[]], "score": [[]]},
    ):  # of Arrow's null type
        rankings = Rankings.from_arrow(pa.table(empty))
        assert (rankings.n_queries, rankings.n_docs) == (len(empty["label"]), 0)
    matrix = Rankings.from_arrow(
        {"label": np.array([[1, 0], [2, 3]]), "score": np.array([[1.0, 2.0], [3.0, 4.0]])}
    )
    assert (matrix.offsets.tolist(), matrix.relevance.tolist()) == ([0, 2, 4], [1, 0, 2, 3])
    kept = Rankings.from_arrow(table()[:0], keep="lang", weight="label").queries
    assert kept.column_names == ["qid", "lang", "weight"]


# ---- zero-copy ----


def typed_lists(kind, of=pa.large_list):
    return pa.table(
        {"label": pa.array(LISTS["label"], of(kind)), "score": pa.array(LISTS["score"], of(pa.float32()))}
    )


PAIRS = pa.table({
    "label": pa.array([[1, 0], [2, 1], [0, 3]], pa.list_(pa.int8(), 2)),
    "score": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float32(), 2)),
})  # fmt: skip
VIEWS = {  # sliced: not the start of a buffer
    **{f"{kind}": table(label=pa.array(LABEL, kind), score=pa.array(SCORE, pa.float32()))[2:] for kind in (pa.int8(), pa.uint8(), pa.int64(), pa.float64())},
    "validity without nulls": table(score=pa.array([*SCORE, None])[:6]),
    "large lists": typed_lists(pa.int8()),
    "sliced lists": typed_lists(pa.int16(), pa.list_)[1:],
    "pairs": PAIRS[1:],
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_columns_of_one_chunk_are_views(name):
    data, rankings = VIEWS[name], Rankings.from_arrow(VIEWS[name])
    for column, array in (("label", rankings.relevance), ("score", rankings.scores)):
        chunk = data[column].chunk(0)
        values = chunk.flatten() if pa.types.is_nested(chunk.type) else chunk
        assert array.tolist() == values.cast(pa.float64()).to_pylist()
        assert address(array) == value_address(values) and not array.flags.writeable
    if name == "large lists":
        assert address(rankings.offsets) == value_address(data["label"].chunk(0).offsets)


def test_polars_and_pandas_and_numpy_are_views():
    for data in ({"qid": QUERY, "label": LABEL, "score": np.array(SCORE)}, frame(), polars_frame()):
        column = data["score"]
        assert address(Rankings.from_arrow(data).scores) == address(
            column if isinstance(data, dict) else column.to_numpy()
        )


# ---- types of grades and scores ----


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (pa.int8(), np.int8), (pa.uint16(), np.uint16), (pa.uint64(), np.uint64), (pa.float32(), np.float32),
        (pa.float16(), np.float32), (pa.bool_(), np.uint8), (pa.dictionary(pa.int8(), pa.int32()), np.int32),
        (pa.decimal128(5, 0), np.int64), (pa.decimal256(40, 0), np.int64), (pa.decimal128(9, 3), np.float64),
    ],
)  # fmt: skip
@pytest.mark.parametrize("chunks", [1, 2])
def test_numbers_of_every_type(kind, dtype, chunks):
    values = [1, 0, 0, 1, 0, 1]
    if pa.types.is_decimal(kind):
        column = pa.array([decimal.Decimal(value) for value in values], kind)
    elif pa.types.is_dictionary(kind):
        column = pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    else:
        column = pa.array(np.array(values, np.float16) if pa.types.is_float16(kind) else values).cast(kind)
    chunked = pa.chunked_array([column[:3], column[3:]] if chunks == 2 else [column])
    rankings = Rankings.from_arrow(table(label=chunked, score=chunked))
    for array in (rankings.relevance, rankings.scores):
        assert (array.dtype, array.tolist()) == (dtype, values)


decimals = st.integers(-(10**15) + 1, 10**15 - 1)


@given(
    st.lists(
        st.integers(-(10**38) + 1, 10**38 - 1) | decimals | st.integers(2**60, 2**60 + 300),
        min_size=1,
        max_size=9,
        unique=True,
    ),
    st.integers(-3, 30),
    st.sampled_from([128, 256]),
    st.integers(0, 3),
)
def test_decimals_are_the_nearest_floats_or_refused_within_a_query(unscaled, scale, bits, skipped):
    kind = {128: pa.decimal128(38, scale), 256: pa.decimal256(60, scale)}[bits]
    with decimal.localcontext(prec=50):
        values = [decimal.Decimal(value).scaleb(-scale) for value in unscaled]
    is_whole = scale <= 0 and max(map(abs, unscaled)) * 10**-scale < 2**63
    floats = list(map(int if is_whole else float, values))
    column = pa.array([decimal.Decimal(0)] * skipped + values, kind)[skipped:]
    column = pa.chunked_array([column[:1], column[1:]])
    apart = pa.table({"qid": range(len(values)), "label": [0] * len(values), "score": column})
    assert Rankings.from_arrow(apart).scores.tolist() == floats
    of_one = apart.set_column(0, "qid", pa.array([7] * len(values)))
    lists = pa.table({name: pa.array([list(of_one[name].to_pylist())]) for name in ("label", "score")})
    for data in (of_one, lists):
        if len(set(floats)) == len(floats):
            assert Rankings.from_arrow(data).scores.tolist() == floats
        else:
            with pytest.raises(InputError, match="which float64 cannot tell apart"):
                Rankings.from_arrow(data)


def test_decimals_that_float64_cannot_tell_apart():
    score = pa.array(list(map(decimal.Decimal, ("1.5", "1", "1.0000000000000001"))), pa.decimal128(38, 18))
    message = (
        r'column "score" is decimal128\(38, 18\) with 1\.000000000000000000 and 1\.000000000000000100 at '
        r'row 2, query "a", which float64 cannot tell apart'
    )
    with pytest.raises(InputError, match=message):
        Rankings.from_arrow({"qid": ["b", "a", "a"], "label": [1, 1, 0], "score": score})
    apart = Rankings.from_arrow({"qid": ["b", "a", "c"], "label": [1, 1, 0], "score": score})
    assert apart.scores.tolist() == [1.5, 1, 1]
    judged = {"qid": ["b", "a"], "docid": ["x", "y"], "label": [1, 1]}
    run = {"qid": ["b", "a"], "docid": ["x", "y"], "score": score[1:]}
    assert evaluate(judged, run, "RR").mean() == {"RR": 1.0}


@pytest.mark.parametrize("missing", [float("nan"), None])
@pytest.mark.parametrize("form", ["rows", "lists", "run"])
def test_nan_scores_beside_a_column_of_ranks_name_it(form, missing):
    order = {"score": pa.array([0.5, missing], pa.float64()), "Rank": [2, 1]}
    long = {"qid": ["a", "a"], "docid": ["x", "y"], "label": [0, 1]}
    qrels, run = pa.table(long), pa.table({"qid": long["qid"], "docid": long["docid"]} | order)
    data = {"rows": [pa.table(long | order)], "run": [qrels, run]}
    lists = {"label": long["label"]} | {name: pa.array(each).to_pylist() for name, each in order.items()}
    data["lists"] = [pa.table({name: [values] for name, values in lists.items()})]
    with pytest.raises(
        InputError, match=r'pass nan="last", or name the ranks of this data, as in rank="Rank"'
    ):
        evaluate(*data[form], "RR")
    assert evaluate(*data[form], "RR", rank="Rank").mean() == {"RR": 1.0}
    without = [table.drop_columns("Rank") if "Rank" in table.column_names else table for table in data[form]]
    with pytest.raises(InputError, match=r'Drop those rows or pass nan="last"\.$'):
        evaluate(*without, "RR")


def broken_stream():
    def batches():
        yield table().to_batches()[0]
        raise pa.ArrowInvalid("the source went away\nmore")

    return pa.RecordBatchReader.from_batches(table().schema, batches())


NAN = float("nan")
# of a row for each document: changed columns, roles and the error
ROWS = [
    ({"score": ["0.5"] * 6}, {}, InputTypeError, 'column "score" is string, beginning with "0.5"; expected scores that are integers or floats'),
    ({"label": ["relevant"] * 6}, {}, InputTypeError, 'column "label" is string, beginning with "relevant"; expected grades'),
    ({"score": pa.array(["x"] * 6).dictionary_encode()}, {}, InputTypeError, 'column "score" is string, beginning with "x"'),
    ({"score": pa.array(range(6), pa.timestamp("s"))}, {}, InputTypeError, r'column "score" is timestamp\[s\]'),
    ({"score": [{"a": 1}] * 6}, {}, InputTypeError, 'column "score" is struct<a: int64>'),
    ({"qid": [1.5] * 6}, {}, InputTypeError, 'column "qid" is double; expected query ids that are integers or strings'),
    ({"qid": [["b"]] * 6}, {}, InputTypeError, 'column "qid" is list<'),
    *(({"doc": docs}, {"doc_id": "doc"}, InputTypeError, 'column "doc" is .*; expected whole numbers or strings as document ids')
      for docs in ([["u"]] * 6, [{"a": 1}] * 6, [0.5] * 6)),
    ({"seen": [1, 0, 1, 0, 1, 0]}, {"is_judged": "seen"}, InputTypeError, 'column "seen" is int64; expected bool'),
    ({"tags": [["x"]] * 6}, {"keep": "tags"}, InputTypeError, 'column "tags" is list<.*keep and weight take one plain value'),
    ({}, {"keep": 3}, InputTypeError, "keep=3 is a int; expected the name of a column or a sequence of names"),
    ({}, {"keep": [3]}, InputTypeError, "keep=3 is a int; expected the name of a column"),
    ({"weight": LANG}, {"weight": "label", "keep": "weight"}, ColumnError, 'two columns of the results would be "weight", of which label has the weights'),
    ({"w": [2, 1, 1, 3, 3, 3]}, {"weight": "w"}, InputError, 'column "w" differs within query "b"'),
    ({"qid": pa.DictionaryArray.from_arrays([0, 0, 1, 1, 1, 2], ["b", "a", None])}, {}, InputError, 'column "qid" has 1 null; the first is at row 5'),
    ({"label": [None] * 6}, {}, InputError, 'column "label" has 6 nulls; the first is at row 0, query "b"'),
    *(({name: values}, {role: name}, InputError, f'column "{name}" has 1 null; the first is at row 1, query "b"')
      for name, role, values in (("seen", "is_judged", [True, None] + [True] * 4), ("w", "weight", [1, None] + [1] * 4))),
]  # fmt: skip
IN_LISTS = [
    ({"score": [[0.5, 0.1], [0.9], [0.3]]}, {}, InputError, 'query "c" has 3 values in column "label" and 1 in column "score"'),
    ({"score": [[0.5, 0.1], None, [0.3]]}, {}, InputError, r'column "score" has 1 null; the first is in query "a"\. Give .* empty list'),
    ({"label": [[1, 0], [None], [0, None, 1]]}, {}, InputError, 'column "label" has 2 nulls; the first is at position 0 of query "a"'),
    ({"score": [0.5, 0.1, 0.9]}, {}, InputTypeError, 'column "label" holds lists and column "score" double; expected both as lists'),
    ({"label": [1, 0, 2]}, {}, InputTypeError, 'column "score" holds lists and column "label" int64'),
    ({"score": [["x", "y"], ["z"], []]}, {}, InputError, 'query "c" has 3 values'),
    ({"score": [["x", "y"], ["z"], ["x"] * 3]}, {}, InputTypeError, 'column "score" is string, beginning with "x"; expected scores'),
    ({"qid": ["a", None, "b"]}, {}, InputError, 'column "qid" has 1 null; the first is at row 1'),
    *(({"qid": pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array(ids))}, {}, InputError, "has several rows of lists")
      for ids in (["a", "b"], [7, 8])),
    ({"score": [[0.5, 0.1], [0.9], [0.3, NAN, 1.0]]}, {}, InputError, 'column "score" has 1 NaN value; the first is at position 1 of query "c"'),
    ({"doc": ["u", "v", "w"]}, {"doc_id": "doc"}, InputTypeError, 'column "doc" is string; expected a list for each query'),
    ({"seen": [[True, True], [], [True] * 3]}, {"is_judged": "seen"}, InputError, 'query "a" has 1 value in column "label" and 0 in column "seen"'),
]  # fmt: skip
OTHERS = [
    (lambda: 5, InputTypeError, "data is a int; expected a table"),
    (lambda: "preds.parquet", InputTypeError, "data is a str; .*Name its path to read_parquet"),
    (lambda: [[1, 2]], InputTypeError, "data is a list; expected a table"),
    (lambda: pa.array([1, 2]), InputTypeError, "data is a pyarrow Int64Array that is not a table"),
    (lambda: pa.chunked_array([[1, 2]]), InputTypeError, "data is a pyarrow ChunkedArray that is not a table"),
    (lambda: {"qid": [1], "label": [object()], "score": [1]}, InputTypeError, 'column "label" is not an array that Arrow can hold'),
    (lambda: {"qid": [1, 1], "label": [1, 0], "score": [0.5]}, InputError, 'column "score" has 1 value and column "qid" 2; expected one length'),
    (lambda: frame().set_index("qid"), ColumnError, r"no column has a usual name of the query.*index has 'qid': call reset_index\(\)"),
    (lambda: frame().assign(score=[0.5, NAN, 0.9, 0.3, NAN, 0.8]), InputError, 'column "score" has 2 NaN values; the first is at row 1, query "b"'),
    (broken_stream, InputError, r"data could not be read: the source went away\. Check its source"),
    (lambda: table(score=[0.5, 0.1, 0.9, 0.3, NAN, 0.8]).take(pa.array(SHUFFLE)), InputError, 'the first is at row 3, query "c"'),
    (lambda: table(user_id=LANG), ColumnError, '"qid" and "user_id" could each be the query'),
]  # fmt: skip


@pytest.mark.pure
@pytest.mark.parametrize(
    ("data", "roles", "error", "message"),
    [
        *((lambda changed=changed: table(**changed), *rest) for changed, *rest in ROWS),
        *((lambda changed=changed: pa.table(LISTS | changed), *rest) for changed, *rest in IN_LISTS),
        *((data, {}, *rest) for data, *rest in OTHERS),
    ],
)
def test_what_is_refused(data, roles, error, message):
    with pytest.raises(error, match=message):
        Rankings.from_arrow(data(), **roles)


# ---- keep and weight ----


@pytest.mark.pure
@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["en", "de", "de", "fr", "fr", "fr"],
            r'column "lang" differs within query "b": "en" at row \d, "de" at row \d; keep and weight',
        ),
        (["en", "en", "de", "fr", None, "fr"], r'column "lang" differs within query "c": "fr" at row \d, None at row \d'),
        ([1, 1, 2, 3, 3, 4], r'column "lang" differs within query "c": 3 at row \d, 4 at row 5'),
        ([1.0, 1.0, 2.0, 3.0, 3.0, float("nan")], r'column "lang" differs within query "c": 3.0 at row \d, nan at row 5'),
    ],
)  # fmt: skip
def test_kept_columns_have_one_value_within_a_query(values, message, shuffled, encode):
    column = pa.array(values)
    data = table(lang=column.dictionary_encode() if encode else column)
    with pytest.raises(InputError, match=message):
        Rankings.from_arrow(data.take(pa.array(SHUFFLE)) if shuffled else data, keep="lang")


@pytest.mark.pure
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        [None, None, "de", "fr", "fr", "fr"],
        [float("nan")] * 6,
        pa.DictionaryArray.from_arrays([0, 2, 1, 1, 1, 1], ["x", "y", "x"]),
        pa.chunked_array([["x"], ["x", "y", "z"], ["z"], [], ["z"]]),
        pa.chunked_array([pa.array(["x"]).dictionary_encode(), pa.array(["x", "y", "z", "z", "z"]).dictionary_encode()]),
        pa.array([True, True, False, True, True, True]),
        pa.array(["x", "x", "y", "z", "z", "z"], pa.string_view()),
    ],
)  # fmt: skip
def test_kept_columns_of_every_kind(values, shuffled):
    data = table(lang=values)
    plain = data["lang"].to_pylist()
    expected = [plain[3], plain[0], plain[2]] if shuffled else [plain[0], plain[2], plain[3]]
    if shuffled:
        data = pa.table({name: _taken(data[name]) for name in data.column_names})
    kept = Rankings.from_arrow(data, keep="lang").queries["lang"].to_pylist()
    assert kept == expected or all(value != value for value in kept + expected)


def _taken(column):
    return (column.cast(pa.string()) if pa.types.is_string_view(column.type) else column).take(
        pa.array(SHUFFLE)
    )


def test_names_of_kept_columns():
    """They stay categories; a name appears once in the results; what is kept is no candidate for a role, unless it is the only one."""
    data = table(weight=[2, 2, 1, 3, 3, 3], lang=pa.array(LANG).dictionary_encode())
    rankings = Rankings.from_arrow(data, weight="weight", keep=["weight", "qid", "lang", "lang"])
    assert rankings.queries.column_names == ["qid", "lang", "weight"]
    assert pa.types.is_dictionary(rankings.queries["lang"].type)
    named = Rankings.from_arrow(table(query_id=LANG), query="qid", keep="query_id").queries
    assert named.column_names == ["qid", "query_id"]
    assert Rankings.from_arrow(table(user_id=LANG), keep="user_id").queries["user_id"].to_pylist() == [
        "en",
        "de",
        "fr",
    ]
    assert columns_of(Rankings.from_arrow(table(qid=None, user_id=QUERY), keep="user_id")) == EXPECTED
    lists = pa.table(LISTS | {"tags": [["x"], [], ["y"]]})
    assert Rankings.from_arrow(lists, keep="tags").queries["tags"].to_pylist() == [["x"], [], ["y"]]


# ---- names of columns ----


SPELLINGS = """
query: query_id QUERY_ID QueryID queryId query-id Query.Id qid QID q_id Query user_id UserID session_id SessionId search_id
query: request_id srch_id topic_id impression-id GroupID
relevance: relevance Relevance rel label Label LABELS grade y_true Y-True target rating relevance_label RelevanceGrade
relevance: judgment Judgement gain is_relevant isRelevant clicked click ground_truth y relevance_score
score: score Score SCORES pred prediction Predictions y_score y_pred yPred y_hat pred_score predicted-score PredictionScore
score: modelScore similarity logit probability proba relevance_score RelevanceScore
doc_id: doc_id DocID docid docno DOCNO item_id itemId document_id product_id passage-id pid did doc article_id
"""


@pytest.mark.parametrize(
    ("role", "spelt"),
    [(line.split(":")[0], name) for line in SPELLINGS.strip().splitlines() for name in line.split()[1:]],
)
def test_aliases_of_columns(role, spelt):
    others = {"query": "qid", "relevance": "label", "score": "score", "doc_id": "docid"}
    names = [*(other for key, other in others.items() if key != role), "feature_1", spelt]
    columns = find_columns(names, Roles(), with_doc_id=True)
    assert columns.taken == others | {role: spelt}
    data = {name: [1, 2] for name in names}
    assert Rankings.from_arrow(data).n_docs == 2


WITH_ID = ["qid", "doc_id", "label", "score"]


@pytest.mark.parametrize(
    ("names", "given", "found"),
    [
        (
            ["query_id", "session_id", "label", "clicked", "score", "y_pred"],
            {},
            ["query_id", "label", "score", None],
        ),
        (["qid", "relevance_score", "pred"], {}, ["qid", "relevance_score", "pred", None]),
        (["qid", "label", "relevance_score"], {}, ["qid", "label", "relevance_score", None]),
        (["qid", "label"], {"relevance": "label", "score": "label"}, ["qid", "label", "label", None]),
        (WITH_ID, {}, ["qid", "label", "score", None]),
        (WITH_ID, {"doc_id": "doc_id"}, ["qid", "label", "score", "doc_id"]),
    ],
)
def test_names_that_say_less_count_where_no_usual_one_is_there(names, given, found):
    columns = find_columns(names, Roles(**given))
    assert [columns.query, columns.relevance, columns.score, columns.doc_id] == found


@pytest.mark.parametrize(
    ("names", "given", "message"),
    [
        (["session_id", "search_id", "label", "score"], {}, '"session_id" and "search_id" could each be the query'),
        (["QueryID", "query_id", "label", "score"], {}, '"QueryID" and "query_id" could each be the query'),
        (["qid", "relevance_score"], {}, '"relevance_score" could be the relevance and the score; name'),
        (["qid", "relevance_score"], {"relevance": "relevance_score"}, "no column has a usual name of the score"),
        (["a", "label", "score"], {}, (r'no column has a usual name of the query \(query_id, qid.*columns are "a", "label", "score"\. '
         r'Name it, as in query="\.\.\."')),
        (["qid", "label", "target", "score"], {}, r'columns "label" and "target" could each be the relevance; .*relevance="label"'),
        (["qid", "label", "pred", "Score"], {}, r'columns "pred" and "Score" could each be the score'),
        (["qid", "label", "scores"], {"score": "score"}, r'there is no column "score" for score=; .*Did you mean "scores"\?'),
        (["qid", "qid", "label", "score"], {}, r'2 columns are named "qid", so query is ambiguous; rename all but one'),
        (["qid", "label", "score"], {"doc_id": "doc"}, r'there is no column "doc" for doc_id='),
        (["qid", "label", "score"], {"query": 0.5}, "query=0.5 is a float; expected the name of a column"),
        (["qid", "label", "score"], {"query": 0}, 'there is no column "0" for query='),
        ([], {}, r"the columns are none at all"),
        ([f"feature_{i}" for i in range(40)], {}, r'"feature_11" and 28 more'),
    ],
)  # fmt: skip
def test_columns_that_are_missing_or_ambiguous(names, given, message):
    with pytest.raises(InputTypeError if "is a float" in message else ColumnError, match=message):
        find_columns(names, Roles(**given))


# ---- Parquet: what is read ----


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "predictions.parquet"
    pq.write_table(table(), path, row_group_size=2)
    return path


def test_a_file(file):
    for path in (file, str(file), [file], iter([file]), file.as_uri(), file.parent, f"{file.parent}/"):
        rankings = read_parquet(path, keep="lang")
        assert columns_of(rankings) == EXPECTED
        assert rankings.queries["lang"].to_pylist() == ["en", "de", "fr"]
        assert rankings.queries.schema.types == [pa.string(), pa.string()]


def test_only_needed_columns_are_read(file, monkeypatch):
    asked = []
    read = pq.ParquetFile.read_row_groups

    def spy(self, groups, columns=None, **rest):
        asked.extend(columns)
        return read(self, groups, columns=columns, **rest)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", spy)
    read_parquet(file)
    assert sorted(set(asked)) == ["label", "qid", "score"]


def test_names_with_dots(tmp_path):
    path = tmp_path / "dots.parquet"
    pq.write_table(pa.table({"q.id": QUERY, "a.label": LABEL, "a": [{"label": 1}] * 6, "score": SCORE}), path)
    assert columns_of(read_parquet(path, query="q.id", relevance="a.label")) == EXPECTED


def test_a_file_without_rows(tmp_path):
    for name, data in {
        "none": table()[:0],
        "untyped": pa.table({"qid": [], "label": [], "score": []}),
    }.items():
        pq.write_table(data, tmp_path / f"{name}.parquet")
        rankings = read_parquet(tmp_path / f"{name}.parquet")
        assert (rankings.n_queries, rankings.n_docs) == (0, 0)
    pq.write_table(table(lang=None), tmp_path / "zz.parquet")
    assert columns_of(read_parquet(tmp_path)) == EXPECTED


def test_progress_counts_rows(tmp_path, monkeypatch):
    from fastndcg.sources import parquet

    monkeypatch.setattr(parquet, "_FEWEST_ROWS", 2)
    monkeypatch.setattr(parquet, "_MOST_ROWS", 2)
    pq.write_table(table(), tmp_path / "a.parquet", row_group_size=2)
    pq.write_table(table(qid=["x", "x", "y", "y", "y", "y"]), tmp_path / "b.parquet", row_group_size=3)
    seen = []
    read_parquet(tmp_path, threads=2, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 12), (2, 12), (4, 12), (6, 12), (9, 12), (12, 12)]


READERS_OF_TABLES = {
    "read_parquet": read_parquet,
    "scan_parquet": scan_parquet,
    "read_csv": read_csv,
    "from_arrow": Rankings.from_arrow,
}


@pytest.mark.parametrize("name", READERS_OF_TABLES)
def test_roles_are_keywords_of_every_reader(name, file):
    reader = READERS_OF_TABLES[name]
    roles = [field.name for field in dataclasses.fields(Roles)]
    assert roles == list(typing.RoleKeywords.__annotations__)
    if name == "from_arrow":  # a table says the types of its columns
        roles = [role for role in roles if role not in ("types", "sep", "decimal")]
    shown = inspect.signature(reader).parameters
    assert [role for role in shown if role in roles] == roles
    assert all(shown[role].kind is inspect.Parameter.KEYWORD_ONLY for role in roles)
    (file.parent / "a.csv").write_text("qid,label,score\n1,1,1\n")
    data = table() if name == "from_arrow" else file.parent / "a.csv" if name == "read_csv" else file
    with pytest.raises(
        InputTypeError, match=rf'{name} has no argument relevence=; .*Did you mean "relevance"\?'
    ):
        reader(data, relevence="label")


# ---- Parquet: many files ----


@pytest.mark.pure
def test_files_are_read_in_the_order_of_their_names(tmp_path):
    for name, query in (("b", 2), ("a", 1), ("c/x", 3)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"qid": [query], "label": [1], "score": [0.5]}), tmp_path / f"{name}.parquet")
    (tmp_path / "notes.txt").write_text("not Parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.parquet").touch()
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "half.parquet").touch()

    def ids(path):
        return read_parquet(path).queries[0].to_pylist()

    assert ids(tmp_path) == [1, 2, 3]
    assert ids(tmp_path / "*.parquet") == [1, 2]
    assert ids(tmp_path / "[!a].parquet") == [2]
    assert ids(tmp_path / "?.parquet") == [1, 2]
    assert ids(tmp_path / "**" / "*.parquet") == [1, 2, 3]
    assert ids(tmp_path / "**") == [1, 2, 3]
    assert ids(tmp_path / "*") == [1, 2, 3]
    assert ids(f"{tmp_path.as_uri()}/*.parquet") == [1, 2]
    assert ids([tmp_path / "c", tmp_path / "a.parquet"]) == [3, 1]


def test_relative_patterns_and_names_with_wildcards(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(table(), "run[1].parquet")
    for path in ("run[1].parquet", "*.parquet", "./*.parquet", ".", "**/*.parquet"):
        assert columns_of(read_parquet(path)) == EXPECTED


def test_files_without_a_suffix(tmp_path):
    pq.write_table(table(), tmp_path / "000000_0")  # as Hive and Trino write them
    (tmp_path / "README").write_text("x")
    assert columns_of(read_parquet(tmp_path)) == EXPECTED
    pq.write_table(table(), tmp_path / "preds.dat")
    assert columns_of(read_parquet(tmp_path / "preds.dat")) == EXPECTED


def test_hive_partitions_are_columns(tmp_path):
    scheme = ds.partitioning(pa.schema([("lang", pa.string()), ("shard", pa.int64())]), flavor="hive")
    data = table(shard=[4, 4, 4, 7, 7, 7])
    ds.write_dataset(data, tmp_path, format="parquet", partitioning=scheme)
    rankings = read_parquet(tmp_path, keep=["lang", "shard"])
    assert rankings.queries.to_pydict() == {
        "qid": ["a", "b", "c"],
        "lang": ["de", "en", "fr"],
        "shard": [4, 4, 7],
    }
    assert rankings.queries.schema.types == [pa.string(), pa.string(), pa.int64()]
    by_shard = read_parquet(tmp_path, query="shard", keep="shard")
    assert by_shard.queries.to_pydict() == {"shard": [4, 7]}
    assert by_shard.lengths.tolist() == [3, 3]
    assert read_parquet(tmp_path / "lang=*" / "*" / "*.parquet", keep="lang").queries["lang"].to_pylist() == [
        "de",
        "en",
        "fr",
    ]
    one = next((tmp_path / "lang=de").rglob("*.parquet"))
    assert read_parquet(one, keep="lang", weight="shard").queries.to_pydict() == {
        "qid": ["a"],
        "lang": ["de"],
        "weight": [4.0],
    }


@pytest.mark.pure
def test_partition_values_are_unquoted_and_typed_without_loss(tmp_path):
    for number, folder in enumerate(("tag=01", "tag=a%20b", "tag=__HIVE_DEFAULT_PARTITION__")):
        (tmp_path / folder).mkdir()
        pq.write_table(
            pa.table({"qid": [number], "label": [1], "score": [0.5]}), tmp_path / folder / "x.parquet"
        )
    assert read_parquet(tmp_path, keep="tag").queries["tag"].to_pylist() == ["01", None, "a b"]
    with pytest.raises(InputError, match=r'column "tag" has 1 null; the first is at row 1'):
        read_parquet(tmp_path, query="tag")


def test_a_partition_key_is_a_role_only_if_no_column_is(tmp_path):
    folder = tmp_path / "score=bm25"
    folder.mkdir()
    pq.write_table(pa.table({"qid": QUERY, "label": LABEL, "pred": SCORE}), folder / "x.parquet")
    assert columns_of(read_parquet(tmp_path)) == EXPECTED


# ---- Parquet: files that differ ----


@pytest.mark.parametrize(
    ("one", "other", "joined"),
    [
        (pa.int8(), pa.int64(), np.int64),
        (pa.uint8(), pa.int8(), np.int16),
        (pa.float32(), pa.float64(), np.float64),
        (pa.int32(), pa.float32(), np.float64),
        (pa.int8(), pa.float32(), np.float32),
    ],
)
@pytest.mark.parametrize("listed", [False, True])
def test_numbers_that_fit_together(tmp_path, one, other, joined, listed):
    for name, kind in (("a", one), ("b", other)):
        label = pa.array([1, 0], kind)
        if listed:
            data = pa.table(
                {"qid": [name], "label": pa.array([[1, 0]], pa.list_(kind)), "score": [[0.5, 0.1]]}
            )
        else:
            data = pa.table({"qid": [name] * 2, "label": label, "score": [0.5, 0.1]})
        pq.write_table(data, tmp_path / f"{name}.parquet")
    rankings = read_parquet(tmp_path)
    assert (rankings.relevance.dtype, rankings.relevance.tolist()) == (joined, [1, 0, 1, 0])


CODED = pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_string())
TEXTS = [[pa.string(), pa.large_string(), *CODED], [pa.binary(), pa.large_binary(), pa.binary_view()]]


@pytest.mark.parametrize("kinds", TEXTS, ids=["texts", "bytes"])
def test_texts_that_fit_together(tmp_path, kinds):
    for number, kind in enumerate(kinds):
        columns = {}
        for name, texts in (("qid", QUERY), ("lang", LANG)):
            values = pa.array([f"{number}{text}" for text in texts])
            columns[name] = (values.dictionary_encode() if pa.types.is_dictionary(kind) else values).cast(
                kind
            )
        pq.write_table(table(**columns), tmp_path / f"{number}.parquet")
    queries = read_parquet(tmp_path, keep="lang").queries.to_pydict()
    for name, texts in (("qid", "bac"), ("lang", ["en", "de", "fr"])):
        expected = [f"{number}{text}" for number in range(len(kinds)) for text in texts]
        assert [getattr(each, "decode", lambda each=each: each)() for each in queries[name]] == expected


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("label", ["1"] * 6, r'column "label" is int64 in .*a\.parquet and string in .*b\.parquet; expected types that fit together'),
        ("label", [1.0] * 6, r'column "label" is int64 in .*a\.parquet and double in .*b\.parquet'),
        ("label", pa.array([1] * 6, pa.uint64()), r'column "label" is int64 in .*a\.parquet and uint64 in'),
        ("qid", [1] * 6, r'column "qid" is string in .*a\.parquet and int64 in .*b\.parquet'),
        ("score", [[0.5]] * 6, r'column "score" is double in .*a\.parquet and list<'),
        ("score", None, r'column "score" is in .*a\.parquet but not in .*b\.parquet; expected it in every file'),
    ],
)  # fmt: skip
def test_schemas_that_do_not_fit(tmp_path, column, values, message):
    pq.write_table(table(), tmp_path / "a.parquet")
    pq.write_table(table(**{column: values}), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=message):
        read_parquet(tmp_path)


def test_other_columns_need_not_fit(tmp_path):
    pq.write_table(table(), tmp_path / "a.parquet")
    pq.write_table(table(qid=["x"] * 6, lang=None, text=["t"] * 6), tmp_path / "b.parquet")
    assert read_parquet(tmp_path).n_queries == 4


# ---- Parquet: what cannot be read ----


def test_paths_that_lead_nowhere(file):
    folder = file.parent
    (folder / "empty").mkdir()
    (folder / "texts").mkdir()
    (folder / "texts" / "a.csv").write_text("qid,label,score")
    for path, message in {
        str(
            folder / "prediction.parquet"
        ): r'prediction\.parquet does not exist\. Did you mean "predictions\.parquet"\?',
        str(folder / "nowhere" / "x.parquet"): r"x\.parquet does not exist\.",
        str(
            folder / "empty"
        ): r"empty is a folder without Parquet files; expected names that end in \.parquet",
        str(folder / "texts"): r"texts is a folder without Parquet files \(it has a\.csv\)",
        str(folder / "x*.parquet"): r'no file matches ".*x\*\.parquet"',
        str(folder / "texts" / "*"): r"none of the files that match .* is Parquet",
        str(folder / "none" / "*.parquet"): r"no file matches",
        "nowhere://bucket/x": r"nowhere://bucket/x cannot be read: nowhere is not a file system that pyarrow knows",
        "": r"path is an empty string",
    }.items():
        with pytest.raises(SourceError, match=message):
            read_parquet(path)


@pytest.mark.parametrize("kind", ["cut", "cut early", "empty", "text", "damaged"])
def test_files_that_are_damaged(file, kind):
    whole = file.read_bytes()
    file.write_bytes(
        {
            "cut": whole[: len(whole) // 2],
            "cut early": whole[:3],
            "empty": b"",
            "text": b"qid,label,score\n" * 20,
            "damaged": whole[:8] + b"\xff" * 60 + whole[68:],
        }[kind]
    )
    pq.write_table(table(), file.parent / "good.parquet")
    for path in (file, file.parent):
        with pytest.raises(
            SourceError,
            match=r"predictions\.parquet cannot be read: .*\. Check that it is a complete Parquet file",
        ) as caught:
            read_parquet(path)
        assert "\n" not in str(caught.value)


def test_a_file_without_permission(file):
    file.chmod(0)
    try:
        file.read_bytes()
    except PermissionError:
        with pytest.raises(
            SourceError, match=r"predictions\.parquet cannot be read: Permission denied\. Check"
        ):
            read_parquet(file)
    else:
        pytest.skip("this user may read every file")


def test_what_is_no_path(file):
    for path, error, message in (
        (b"PAR1", InputTypeError, r"path is a bytes; expected a path or a list of them"),
        (file.open("rb"), InputTypeError, r"path is a BufferedReader; .*For an open file"),
        (5, InputTypeError, r"path is a int"),
        ([5], InputTypeError, r"path holds a int, 5; expected paths of files"),
        ([], SourceError, r"path is an empty list; name at least one file"),
        ([file, file], SourceError, r"predictions\.parquet is named twice"),
    ):
        with pytest.raises(error, match=message):
            read_parquet(path)
        if hasattr(path, "close"):
            path.close()
