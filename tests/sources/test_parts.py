"""Parts of data, without an engine: cutting and joining queries, sums that merge exactly, messages that name queries."""

import math
import pickle
import random

import engines
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg import ColumnError, InputError, InputTypeError, MeasureError
from fastndcg.adapters import scoring, shuffle
from fastndcg.measures import DEFINITIONS
from fastndcg.scores.summary import Summary
from fastndcg.statistics import Moments


def task_for(table, measures="nDCG@3", *, order=None, convention=None, **roles):
    return scoring.make_task(
        table.schema, measures, scoring.Options(**roles, order=order, convention=convention)
    )


# ---- cutting and joining ----


@st.composite
def cut_rows(draw):
    """Rows in order of their query, and the same in batches that end anywhere, some of them empty."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=0, max_size=8))
    ids = [f"q{query}" for query, length in enumerate(lengths) for _ in range(length)]
    if draw(st.booleans()):
        table = pa.table({"qid": pa.array(ids, pa.string())})
    else:
        table = pa.table({"qid": pa.array([int(name[1:]) for name in ids], pa.int64())})
    size = len(ids)
    labels = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    scores = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=size, max_size=size))
    table = table.append_column("label", pa.array(labels, pa.int64()))
    table = table.append_column("score", pa.array(scores, pa.float64()))
    cuts = sorted(draw(st.lists(st.integers(0, size), max_size=10)))
    ends = zip([0, *cuts], [*cuts, size], strict=True)
    whole = table.combine_chunks()
    batches = [batch for first, end in ends for batch in _batch(whole, first, end)]
    return table, batches


def _batch(table, first, end):
    cut = table.slice(first, end - first)
    return cut.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]


def results_of(task, table):
    return scoring.results(task, scoring.score(task, table), scoring.schema_of_results(task, table.schema))


def added_up(task, tables):
    """The sums that three blocks make of the rows of all partitions, in any order."""
    job = shuffle.Job(task, 3, None, scattered=True)
    packed = [chunk for table in tables for chunk in shuffle.pack_partition(job, [table])]
    random.Random(0).shuffle(packed)
    rows = shuffle.score_blocks(job, packed)
    return [each for table in rows for each in scoring.unpickle_rows(table)]


def test_tables_are_joined_to_some_of_some_size(monkeypatch):
    monkeypatch.setattr(scoring, "_ROWS", 10)
    table = pa.table({"n": np.arange(57)})
    cut = [table.slice(start, 4) for start in range(0, 57, 4)]
    found = list(scoring.larger(cut))
    assert [len(part) for part in found] == [12, 12, 12, 12, 9]
    assert pa.concat_tables(found).equals(table)
    assert list(scoring.larger([])) == []


@given(cut_rows())
def test_results_of_parts_are_those_of_the_whole(rows):
    table, batches = rows
    task = task_for(table, engines.MEASURES[:-1])
    job = shuffle.Job(task, 3, scoring.schema_of_results(task, table.schema), scattered=True)
    packed = [chunk for batch in batches for chunk in shuffle.pack_partition(job, [pa.table(batch)])]
    found = [row for part in shuffle.score_blocks(job, packed) for row in part.to_pylist()]
    expected = fn.evaluate(fn.Rankings.from_arrow(table), task.measures).to_arrow()
    assert engines.rows_of(found) == engines.rows_of(expected)


def test_order_numbers_the_documents_of_a_query():
    table = engines.documents(50)
    columns = {**engines.COLUMNS, "keep": ["country", "traffic"]}
    task = task_for(table, [engines.BY_ORDER, "AP"], order="position", **columns)
    found = results_of(task, table).rename_columns(
        ["qid", "country", "traffic", "weight", engines.BY_ORDER, "AP"]
    )
    expected = engines.here(table, [engines.BY_ORDER, "AP"], keep=["country", "traffic"]).to_arrow()
    assert engines.rows_of(found) == engines.rows_of(expected)
    by_rows = fn.evaluate(fn.Rankings.from_arrow(table, **columns), engines.BY_ORDER).to_arrow()
    assert engines.rows_of(by_rows) != engines.rows_of(expected.drop_columns("AP"))


def test_order_is_refused_where_it_is_none():
    table = pa.table({"qid": [1, 1, 2], "label": [1, 0, 1], "score": [0.5, 0.5, 0.5], "rank": [1, 1, 1]})
    task = task_for(table, "AP(ties='input')", order="rank")
    with pytest.raises(
        InputError, match='column "rank" has 1 twice in query 1; order numbers the documents of a query'
    ):
        scoring.score(task, table)
    for missing in (pa.array([1, None, 1]), pa.array([1.0, math.nan, 1.0])):
        with pytest.raises(
            InputError, match='column "rank" has 1 null; order numbers every document of a query'
        ):
            scoring.score(task, table.set_column(3, "rank", missing))


# ---- queries that stand together ----


def brought_together(task, tables, results):
    """What three blocks make of the chunks of all partitions, which reach them in any order."""
    job = shuffle.Job(task, 3, results)
    ids = [{*table["qid"].to_pylist()} for table in tables]
    shared = [each & set().union(*ids[:place], *ids[place + 1 :]) for place, each in enumerate(ids)]
    found = [
        chunk.slice(row, 1)
        for number, (table, edges) in enumerate(zip(tables, shared, strict=True))
        for chunk in shuffle.score_or_pack(job, [(table, None)], shuffle.Split(number, pa.array(edges)))
        for row in range(len(chunk))
    ]
    random.Random(0).shuffle(found)
    return list(shuffle.score_blocks(job, found))


@pytest.mark.parametrize("name", engines.PARTITIONS)
def test_queries_that_several_partitions_share(name):
    tables = engines.PARTITIONS[name]
    task = task_for(tables[0], engines.CLICKED, **engines.OF_PARTITIONS | {"keep": ("country",)})
    expected = engines.here(pa.concat_tables(tables), engines.CLICKED, **engines.OF_PARTITIONS)
    schema = expected.to_arrow().schema
    rows = pa.concat_tables([schema.empty_table(), *brought_together(task, tables, schema)])
    assert engines.rows_of(rows) == engines.rows_of(expected.to_arrow())
    sums = [each for table in brought_together(task, tables, None) for each in scoring.unpickle_rows(table)]
    summary = scoring.summary_of(task, sums).to_arrow()
    expected = expected.summary().to_arrow().select(summary.column_names)
    assert engines.rows_of(summary) == engines.rows_of(expected)


# ---- sums ----


def test_moments_know_what_is_undefined():
    nothing = Moments.of(np.empty(0))
    assert all(map(math.isnan, [nothing.mean(), nothing.std(), *nothing.range()]))
    assert math.isnan(Moments.of(np.array([1.0, 2.0]), np.zeros(2)).mean(weighted=True))
    undefined = Moments.of(np.array([1.0, np.nan])) + Moments.of(np.array([3.0]))
    assert all(map(math.isnan, [undefined.mean(), undefined.std(), *undefined.range()]))
    assert math.isnan(Moments.of(np.array([1.0])).std())


@given(st.integers(0, 60), st.integers(1, 7), st.booleans())
def test_summaries_of_parts_are_that_of_the_whole(n_queries, n_parts, weighted):
    table = engines.documents(n_queries, seed=n_parts)
    weight = "traffic" if weighted else None
    columns = {**engines.COLUMNS, "weight": weight, "keep": ()}
    task = task_for(table, engines.MEASURES, **columns)
    part_of = np.random.default_rng(n_parts).integers(0, n_parts, 10_000)[table["qid"].to_numpy() + 50]
    tables = [table.filter(pa.array(part_of == part)) for part in range(n_parts)]
    sums = added_up(task, [part for part in tables if len(part)])
    summary = scoring.summary_of(task, sums, 0.9).to_arrow()
    expected = engines.here(table, task.measures, weight=weight).summary(confidence=0.9).to_arrow()
    assert engines.rows_of(summary) == engines.rows_of(expected.select(summary.column_names))


def measures_of(name):
    """All measures of a tool, cut at 3 where it has them so."""
    rule = fn.conventions[name]
    return [
        f"{each}@3" if DEFINITIONS[each].cut == "rank" and rule.find(each, cut=True) else each
        for each in rule.names_of_measures
    ]


@pytest.mark.parametrize("weight", [None, "steps"])
@pytest.mark.parametrize("name", fn.conventions)
def test_conventions(name, weight):
    """Every tool's values and its summary, by all rules for weights, 0 among them."""
    table = engines.documents(80)
    table = table.append_column("steps", pa.array(table["qid"].to_numpy() % 3 * 0.75))
    columns = {**engines.COLUMNS, "weight": weight}
    asked = engines.BY_CONVENTION if fn.conventions[name].find("nDCG") else measures_of(name)
    task = task_for(table, asked, convention=name, **columns, **engines.ORDERED)
    tables = [table.filter(pa.array(table["qid"].to_numpy() % 5 == part)) for part in range(5)]
    columns["doc_id"] = "position"
    try:
        expected = engines.here(table, asked, convention=name, **columns)
    except MeasureError:
        with pytest.raises(MeasureError, match=f"^{name} does not define the order of ties"):
            added_up(task, tables)
        return
    found = pa.concat_tables([results_of(task, part) for part in tables])
    assert engines.rows_of(found) == engines.rows_of(expected.to_arrow())
    sums = added_up(task, tables)
    try:
        summary = expected.summary().to_arrow()
    except MeasureError:
        with pytest.raises(
            MeasureError, match=f"^{name} ends with an error here: it counts empty queries as 1"
        ):
            scoring.summary_of(task, sums)
        return
    found = scoring.summary_of(task, sums).to_arrow()
    assert engines.rows_of(found) == engines.rows_of(summary.select(found.column_names))


def test_conventions_that_need_an_order():
    table = engines.documents(5)
    for name in ("lightgbm", "ranx", "allrank"):
        with pytest.raises(MeasureError, match=r"keeps tied documents in row order.*as in order=\.\.\."):
            task_for(table, "nDCG", convention=name, **engines.COLUMNS)
    for name in ("sklearn", "trec_eval", "recpack", "catboost"):
        assert task_for(table, "nDCG", convention=name, **engines.COLUMNS).order is None
    task = task_for(table, "nDCG", convention="trec_eval", **engines.COLUMNS)
    with pytest.raises(MeasureError, match=r"trec_eval orders ties by document id, but query"):
        scoring.score(task, table)
    with pytest.raises(MeasureError, match='no convention is called "lightgmb"'):
        task_for(table, "nDCG", convention="lightgmb", **engines.COLUMNS)
    with pytest.raises(MeasureError, match="sklearn has no RR; it has: nDCG"):
        task_for(table, "RR", convention="sklearn", **engines.COLUMNS)


def test_summaries_without_quartiles_show_none():
    summary = Summary([{"measure": "AP", "mean": 0.5, "queries": 2, "empty": 0}])
    assert repr(summary) == "measure      mean  queries  empty\nAP       0.500000        2      0"
    assert "median" not in summary._repr_html_()


@given(
    st.integers(1, 80),
    st.integers(1, 5),
    st.sampled_from([None, "country", "traffic", ("traffic", "country")]),
    st.booleans(),
)
def test_means_of_parts_are_those_of_the_whole(n_queries, n_parts, by, weighted):
    measures = ["nDCG@10", "nDCG(ties='worst', empty='nan')@3", "RR(empty='skip')"]
    weight = "weight" if weighted else None
    table = engines.documents(n_queries)
    scores = engines.here(
        table, measures, weight="traffic" if weighted else None, keep=["country", "traffic"]
    )
    results = scores.to_arrow()
    asked = scoring.check_means(results.column_names, measures, by=by, weight=weight, confidence=0.9)
    kinds = [results.schema.field(name).type for name in asked.by]
    cut = [results.slice(start, n_parts) for start in range(0, len(results), n_parts)]
    found = scoring.means_of(asked, kinds, [scoring.sums_by(asked, part) for part in cut])
    if by is None:
        summary = scores.summary(0.9).rows
        expected = [{"queries": scores.n_queries, "small": scores.n_queries < 30}]
        for row in summary:
            name = row["measure"]
            expected[0] |= {name: row["mean"], f"{name}_low": row["low"], f"{name}_high": row["high"]}
    else:
        table = scores.by(by, confidence=0.9).sort_by([(name, "ascending") for name in asked.by])
        expected = table.select(found.column_names).to_pylist()
    assert [_exact(row) for row in found.to_pylist()] == [_exact(row) for row in expected]


def _exact(row):
    return {name: value.hex() if isinstance(value, float) else value for name, value in row.items()}


def test_means_of_no_part():
    asked = scoring.check_means(["AP", "country"], "AP", by=None, weight=None)
    assert scoring.means_of(asked, [], [])["queries"].to_pylist() == [0]
    asked = scoring.check_means(["AP", "country"], "AP", by="country", weight=None)
    assert scoring.means_of(asked, [pa.string()], []).num_rows == 0


@pytest.mark.parametrize("kind", [
    pa.dictionary(pa.int32(), pa.string()), pa.bool_(), pa.date32(), pa.binary(), pa.timestamp("us", tz="UTC"),
    pa.timestamp("ns"), pa.decimal128(12, 2), pa.uint64(), pa.large_string(),
])  # fmt: skip
def test_groups_of_every_type(kind):
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    between = pa.string() if kind in (pa.binary(), pa.large_string()) or plain != kind else pa.int32()
    if pa.types.is_timestamp(kind):
        between = pa.int64()
    column = pa.array([1, 0, None, 1], pa.int32()).cast(between).cast(plain)
    table = pa.table({"by": column.cast(kind) if kind == plain else column.dictionary_encode()})
    table = table.append_column("AP", pa.array([0.25, 0.5, 0.75, 1.0]))
    asked = scoring.check_means(table.column_names, "AP", by="by", weight=None)
    cut = [scoring.sums_by(asked, table.slice(start, 1)) for start in range(5)]  # the last has no rows
    found = scoring.means_of(asked, [table.schema.field("by").type], pickle.loads(pickle.dumps(cut)))
    assert found["by"].combine_chunks().equals(column.take(pa.array([1, 0, 2])))
    assert found["queries"].to_pylist() == [1, 2, 1] and found["AP"].to_pylist() == [0.5, 0.625, 0.75]


def test_groups_of_nan_are_one():
    asked = scoring.check_means(["AP", "price"], "AP", by="price", weight=None)
    part = scoring.sums_by(asked, pa.table({"price": [math.nan, 1.0], "AP": [0.5, 1.0]}))
    assert scoring.means_of(asked, [pa.float64()], [part, part])["queries"].to_pylist() == [2, 2]


def test_names_are_those_of_the_driver():
    """A process numbers functions of one name, and another process may number them otherwise."""
    table = engines.documents(5)
    measures = [fn.CG(gain=lambda grade, factor=factor: grade * factor) for factor in (1, 2)]
    task = task_for(table, measures, **engines.COLUMNS)
    there = task._replace(
        measures=task.measures[::-1]
    )  # as a worker may have them that knows one more function
    assert results_of(there, table).column_names == task.results
    assert len(set(task.results)) == len(task.results)


# ---- what is refused before any worker is asked ----


TABLE = pa.table(
    {"qid": ["a"], "label": [1], "score": [0.5], "NDCG@3": ["x"], "w": [1.0], "lang": ["de"], "list": [[1]]}
)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"measures": "nDGC@3"}, MeasureError, "nDGC"),
        (
            {"measures": "AP(ties='input')"},
            MeasureError,
            r"AP\(ties='input'\) keeps tied documents in row order, and rows in an engine have no order; name a column",
        ),
        ({"score": "points"}, ColumnError, 'there is no column "points" for score'),
        ({"order": "rank"}, ColumnError, 'there is no column "rank" for order'),
        ({"score": "lang"}, InputTypeError, 'column "lang" is string; expected scores that are integers or floats'),
        ({"query": "list"}, InputTypeError, 'column "list" is .*; expected query ids that are integers or strings'),
        ({"nan": "first"}, InputError, 'nan=\'first\' is not known; expected "refuse" or "last"'),
        (
            {"keep": "NDCG@3"},
            ColumnError,
            'two columns of the results would be named "NDCG@3" and "nDCG@3"; rename the one that is kept',
        ),
    ],
)  # fmt: skip
def test_refused_at_once(options, kind, message):
    measures = options.pop("measures", "nDCG@3")
    with pytest.raises(kind, match=message):
        task_for(TABLE, measures, **options)


def test_lists_need_a_name_for_their_queries_and_no_order():
    lists = pa.table({"label": [[1, 0]], "score": [[0.5, 0.1]], "rank": [1]})
    with pytest.raises(ColumnError, match="name the column of query ids, as in query="):
        task_for(lists)
    with_ids = lists.append_column("qid", pa.array(["a"]))
    with pytest.raises(
        ColumnError, match='order="rank" is for a row for each document; lists have their order'
    ):
        task_for(with_ids, order="rank")
    assert task_for(with_ids, "AP(ties='input')").query == "qid"


# ---- what is refused by a worker ----


OF_PART = " This is the count of one part of the data."
MESSAGES = [  # changed columns, a measure, and what is said
    ({"score": [0.5, math.nan, 0.1, math.nan]}, "AP", 'column "score" has 2 NaN values; the first is in query "a". Drop those rows or pass nan="last".' + OF_PART),
    ({"label": [1, 0, None, 1]}, "AP",
     'column "label" has 1 null; the first is in query "b". Drop those rows, or pass unjudged="null" where nobody judged those documents.' + OF_PART),
    ({"qid": ["a", None, "b", None]}, "AP", 'column "qid" has 2 nulls. Drop those rows.' + OF_PART),
    ({"lang": ["de", "en", "de", "de"]}, "AP", 'column "lang" differs within query "a": "de", "en"; keep and weight take columns with one value for each query'),
    ({"label": [1, 0, 2, 1]}, "ERR(max_rel=1)",
     'ERR(max_rel=1) is not defined for grade 2, which occurs in query "b": the scale ends at 1. Name the scale, as in ERR(max_rel=2).'),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "measure", "message"), MESSAGES)
def test_errors_of_a_part_name_queries(changed, measure, message):
    columns = {
        "qid": ["a", "a", "b", "b"],
        "label": [1, 0, 1, 1],
        "score": [0.5, 0.4, 0.3, 0.2],
        "lang": ["de", "de", "de", "de"],
    }
    task = task_for(pa.table(columns), measure, keep="lang")
    with pytest.raises(InputError) as caught:
        scoring.score(task, pa.table(columns | changed))
    assert str(caught.value) == message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message


def test_a_function_has_one_measure():
    with pytest.raises(MeasureError, match="2 measures were passed, but a function returns one value"):
        scoring.one_measure(["AP", "RR"])
