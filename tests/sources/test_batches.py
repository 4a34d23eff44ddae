"""Batches of Arrow as streams: the same bits as of all rows at once, and what can be read only once."""

import os
import tempfile
import threading

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg import ColumnError, FastndcgWarning, InputError, InputTypeError, Rankings, scan_arrow
from fastndcg.sources import stream_batches, streams
from fastndcg.sources.streams import RankingsStream

MEASURES = ["nDCG@3", "nDCG(ties='input', gain='exp2')", "NumRet"]
OPTIONS = {"keep": ["lang", "kind"], "weight": "traffic"}


@pytest.fixture(autouse=True)
def _little_memory(monkeypatch):
    monkeypatch.setattr(streams, "_LEAST_MEMORY", 1)


IDS = {
    "numbers": pa.array,
    "texts": lambda numbers: pa.array([f"q{number:05d}" for number in numbers]),
    "few codes": lambda numbers: coded(IDS["texts"](numbers), pa.int8()),
    "codes": lambda numbers: coded(IDS["texts"](numbers)),
    "coded numbers": lambda numbers: coded(pa.array(numbers)),
}


def coded(values, codes=None, more=()):
    """A dictionary, that has `more` values which do not occur."""
    found = values.dictionary_encode()
    known = pa.concat_arrays([found.dictionary, pa.array(more, values.type)])
    return pa.DictionaryArray.from_arrays(found.indices.cast(codes or pa.int32()), known)


def rows(n_queries=60, *, ids="numbers", mixed=False, seed=0):
    rng = np.random.default_rng(seed)
    numbers = np.repeat(rng.permutation(n_queries), rng.integers(1, 12, n_queries))
    n = len(numbers)
    columns = {
        "qid": IDS[ids](numbers),
        "label": rng.integers(0, 5, n),
        "score": (rng.integers(0, 9, n) / 4).astype(np.float32),
        "lang": pa.array([("de", "en", None)[number % 3] for number in numbers]),
        "kind": pa.array([f"kind {number % 5}" for number in numbers]).dictionary_encode(),
        "traffic": numbers % 7 / 4,
        "other": rng.random(n),
    }
    table = pa.table(columns)
    return table.take(pa.array(rng.permutation(n))) if mixed else table


def cut(table, sizes):
    """Batches of these numbers of rows, again and again; each has dictionaries of its own values, and some
    also a null that does not occur.
    """
    place, start, batches = 0, 0, []
    while start < len(table):
        size = sizes[place % len(sizes)]
        part = table.slice(start, size).combine_chunks()
        for name in (name for name in table.column_names if pa.types.is_dictionary(table[name].type)):
            kind, more = part[name].type, [None] * (name == "qid" and place % 3 == 1)
            own = coded(part[name].combine_chunks().cast(kind.value_type), kind.index_type, more)
            part = part.set_column(part.column_names.index(name), name, own)
        batches += part.to_batches() or [pa.RecordBatch.from_pylist([], part.schema)]
        place, start = place + 1, start + size
    return batches


def reader(batches):
    return pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))


def assert_same(stream, whole, measures=MEASURES):
    got, wanted = fn.evaluate(stream, measures), fn.evaluate(whole, measures)
    assert got.values.tobytes() == wanted.values.tobytes()
    assert got.queries.schema == wanted.queries.schema
    assert got.queries.to_pylist() == wanted.queries.to_pylist()
    assert repr(got.summary()) == repr(wanted.summary())
    assert (got.weight is None) == (wanted.weight is None)


FORMS = {
    "reader": reader,
    "function": lambda batches: lambda: reader(batches),
    "iterator": iter,
    "tables": lambda batches: (pa.Table.from_batches([batch]) for batch in batches),
    "list": list,
    "polars": lambda batches: map(pytest.importorskip("polars").from_arrow, batches),
    "pandas": lambda batches: lambda: (batch.to_pandas(strings_to_categorical=False) for batch in batches),
    "dicts": lambda batches: ({name: batch[name] for name in batch.schema.names} for batch in batches),
    "dataset": lambda batches: ds.dataset(pa.Table.from_batches(batches)),
    "table": pa.Table.from_batches,
}


# ---- the same bits ----


@pytest.mark.parametrize("mixed", [False, True], ids=["grouped", "mixed"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form(form, mixed):
    has_own_texts = form in ("pandas", "polars")  # other than Arrow's
    table = rows(mixed=mixed, ids="numbers" if form == "polars" else "codes")
    keep = {} if has_own_texts else OPTIONS
    stream = scan_arrow(FORMS[form](cut(table, [40, 0, 17])), memory=30_000, **keep)
    whole = Rankings.from_arrow(table.to_pandas() if form == "pandas" else table, **keep)
    assert_same(stream, whole)


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    sizes=st.lists(st.sampled_from([0, 0, 1, 2, 5, 30, 400]), min_size=1, max_size=6).filter(any),
    form=st.sampled_from(["reader", "function", "iterator"]),
    memory=st.sampled_from([300, 4000, 30_000, None]),
    ids=st.sampled_from([*IDS]),
    mixed=st.booleans(),
    seed=st.integers(0, 9),
)
def test_any_batches(sizes, form, memory, ids, mixed, seed):
    table = rows(40, ids=ids, mixed=mixed, seed=seed)
    try:
        stream = scan_arrow(FORMS[form](cut(table, sizes)), memory=memory, **OPTIONS)
        assert_same(stream, Rankings.from_arrow(table, **OPTIONS))
    except InputError as error:  # small batches may look grouped until rows that are gone
        assert form != "function" and mixed and "give a function that opens them anew" in str(error)


@pytest.mark.parametrize("memory", [300, 4000, None])
def test_iterating_a_stream(memory):
    table = rows()
    for form in ("reader", "function", "iterator"):
        for some in (table, rows(mixed=True)) if memory != 300 or form == "function" else (table,):
            parts = list(scan_arrow(FORMS[form](cut(some, [200])), memory=memory))
            assert sum(part.n_docs for part in parts) == len(some)
            ids = [name for part in parts for name in part.query_ids.to_pylist()]
            assert sorted(ids) == list(range(60))
            assert some is not table or ids == Rankings.from_arrow(table).query_ids.to_pylist()


def test_lists_and_no_rows():
    table = rows().group_by("qid", use_threads=False).aggregate([("label", "list"), ("score", "list")])
    table = table.rename_columns(["qid", "label", "score"])
    assert_same(scan_arrow(reader(cut(table, [7, 0])), memory=4000), Rankings.from_arrow(table))
    no_ids = table.drop_columns("qid")
    assert_same(scan_arrow(iter(cut(no_ids, [7])), memory=4000), Rankings.from_arrow(no_ids))
    twice = pa.concat_tables([table, table])
    with pytest.raises(InputError, match="has several rows of lists"):
        fn.evaluate(scan_arrow(reader(cut(twice, [7]))), "RR")
    for form in ("reader", "iterator"):
        empty = FORMS[form](rows()[:0].to_batches() or [pa.RecordBatch.from_pylist([], rows().schema)])
        assert_same(scan_arrow(empty), Rankings.from_arrow(rows()[:0]))


def test_a_null_in_a_dictionary_and_views():
    table = rows().select(["qid", "label", "score", "lang"])
    first, last = table[:30].combine_chunks(), table[30:].combine_chunks()
    codes = pa.array(np.arange(len(last)) * 0, pa.int32())
    with_null = pa.DictionaryArray.from_arrays(codes, pa.array([None], pa.string()))
    parts = [
        first.set_column(3, "lang", pa.array([None] * 30, pa.string()).dictionary_encode()),
        last.set_column(3, "lang", with_null),
    ]
    found = fn.evaluate(scan_arrow(iter(parts), keep="lang"), "RR")
    wanted = fn.evaluate(table, "RR")
    assert found.values.tobytes() == wanted.values.tobytes() and set(found.queries["lang"].to_pylist()) == {
        None
    }
    views = pa.table({"qid": table["qid"].cast(pa.string()).cast(pa.string_view()), "label": table["label"], "score": table["score"]})  # fmt: skip
    mixed = rows(ids="texts", mixed=True).select(["qid", "label", "score"])
    for some in (views, mixed.set_column(0, "qid", mixed["qid"].cast(pa.string_view()))):
        for memory in (4000, None):
            assert_same(scan_arrow(reader(some.to_batches(50)), memory=memory), Rankings.from_arrow(some))


@pytest.mark.parametrize("form", ["reader", "function"])
def test_more_rows_than_expected_are_set_aside_again(form, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    turns, init = [], stream_batches.Spill.__init__
    monkeypatch.setattr(
        stream_batches.Spill, "__init__", lambda self, *given: turns.append(given[2]) or init(self, *given)
    )
    table = rows(600, mixed=True)
    stream = scan_arrow(FORMS[form](cut(table, [400])), memory=20_000, **OPTIONS)
    assert_same(stream, Rankings.from_arrow(table, **OPTIONS))
    assert turns[0] == 0 and turns.count(1) > 1
    assert os.listdir(tmp_path) == []


# ---- what can be read once ----


@pytest.mark.parametrize("form", ["reader", "iterator"])
def test_what_can_be_read_once(form):
    stream = scan_arrow(FORMS[form](cut(rows(), [50])))
    scores = fn.evaluate(stream, "AP")
    with pytest.raises(InputError, match=r"can be read only once, and was already read; give a function"):
        fn.evaluate(stream, "AP")
    with pytest.raises(InputError, match="can be read only once"):
        scores.mean(weights="n_relevant")
    batches = cut(rows(), [50])
    again = fn.evaluate(scan_arrow(lambda: FORMS[form](batches)), "AP")
    whole = fn.evaluate(rows(), "AP")
    assert again.mean(weights="n_relevant") == whole.mean(weights="n_relevant")


def test_a_function_that_opens_nothing_new():
    one = reader(cut(rows(), [50]))
    stream = scan_arrow(lambda: one)
    fn.evaluate(stream, "RR")
    with pytest.raises(InputError, match="RecordBatchReader, which can be read only once"):
        fn.evaluate(stream, "RR")


def test_a_query_that_returns_at_the_end():
    table = pa.concat_tables([rows(), rows()[:1]])
    whole = Rankings.from_arrow(table)
    assert_same(scan_arrow(lambda: reader(cut(table, [20])), memory=3000), whole)
    message = (
        r"query \d+ returns at row \d+ after other queries.*give a function that opens them anew.*on disk"
    )
    with pytest.raises(InputError, match=message):
        fn.evaluate(scan_arrow(reader(cut(table, [20])), memory=3000), "RR")
    assert_same(scan_arrow(reader(cut(table, [1000])), memory=1 << 20), whole)  # seen at the first look
    for form in ("reader", "function"):
        with pytest.raises(InputError, match="so rows are not grouped by"):
            fn.evaluate(scan_arrow(FORMS[form](cut(table, [20])), memory=3000, grouped=True), "RR")


def test_ids_that_rise_no_more_are_not_read_again():
    table = rows().sort_by("qid")
    high = np.asarray(table["qid"]) > 30
    table = pa.concat_tables([table.filter(pa.array(high)), table.filter(pa.array(~high))])
    opened = []
    batches = cut(table, [20])

    def source():
        opened.append(1)
        return reader(batches)

    assert_same(scan_arrow(source, memory=3000), Rankings.from_arrow(table))
    assert len(opened) == 1


def test_iterators_of_python_are_read_by_the_thread_that_asks():
    threads = set()

    def batches():
        for batch in cut(rows(), [50]):
            threads.add(threading.current_thread())
            yield batch

    for mixed in (batches(), batches):
        fn.evaluate(scan_arrow(mixed), "RR")
    assert threads == {threading.current_thread()}


def test_the_error_of_an_iterator_is_its_own():
    def batches():
        yield from cut(rows(), [50])[:2]
        raise RuntimeError("the database is gone")

    with pytest.raises(RuntimeError, match="the database is gone"):
        fn.evaluate(scan_arrow(batches()), "RR")
    stream = scan_arrow(pa.RecordBatchReader.from_batches(rows().schema, _broken()))
    with pytest.raises(InputError, match="data could not be read"):
        fn.evaluate(stream, "RR")


def _broken():
    yield from cut(rows(), [50])[:2]
    raise OSError("the database is gone")


def test_memory_is_bounded():
    """Of sixty batches, a few are held at a time."""
    before, most = pa.total_allocated_bytes(), 0

    def batches():
        nonlocal most
        for start in range(60):
            most = max(most, pa.total_allocated_bytes() - before)
            label = pa.array(np.random.default_rng(start).integers(0, 3, 2000).tolist())
            qid = pa.array(np.repeat(np.arange(start * 20, start * 20 + 20), 100).tolist())
            yield pa.record_batch({"qid": qid, "label": label, "score": label})

    fn.evaluate(scan_arrow(batches(), memory=200_000), "NumRet")
    assert most < 60 * 48_000 / 5


# ---- lazy tables of libraries ----


def lazy(name, table, folder):
    if name == "dataset":
        return ds.dataset(table)
    if name == "polars":
        return pytest.importorskip("polars").from_arrow(table).lazy()
    return pytest.importorskip("duckdb").connect().from_arrow(table)


@pytest.mark.parametrize("mixed", [False, True], ids=["grouped", "mixed"])
@pytest.mark.parametrize("name", ["polars", "duckdb", "dataset"])
def test_lazy_tables_are_evaluated_batch_by_batch(name, mixed, tmp_path, monkeypatch):
    table = rows(mixed=mixed, ids="texts").drop_columns("kind")
    table = table.rename_columns(['a "name"' if each == "lang" else each for each in table.column_names])
    made, init = [], stream_batches.FileStream.__init__
    monkeypatch.setattr(
        stream_batches.FileStream, "__init__", lambda self, *a, **k: made.append(self) or init(self, *a, **k)
    )
    data = lazy(name, table, tmp_path)
    for _ in range(2):
        got = fn.evaluate(data, MEASURES, keep='a "name"')
        wanted = fn.evaluate(Rankings.from_arrow(table, keep='a "name"'), MEASURES)
        assert got.values.tobytes() == wanted.values.tobytes()
        assert got.queries.to_pylist() == wanted.queries.to_pylist()
    assert len(made) == 2 and all(each.columns.keep == ('a "name"',) for each in made)
    assert (
        fn.evaluate(Rankings.from_arrow(data, keep='a "name"'), "RR").mean()
        == fn.evaluate(table, "RR").mean()
    )
    assert_same(scan_arrow(data, memory=4000), Rankings.from_arrow(data))
    assert_same(scan_arrow(lambda: data, memory=4000), Rankings.from_arrow(data))


@pytest.mark.compiled
def test_a_connection_of_duckdb_is_free_after_an_error():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    query = "SELECT i // 3 AS qid, i % 2 AS label, {} AS score FROM range(500000) AS rows(i)"
    bad = connection.sql(query.format("CASE WHEN i = 400000 THEN 'nan'::DOUBLE ELSE i END"))
    with pytest.raises(InputError, match=r'column "score" has 1 NaN value; .* row 400000'):
        fn.evaluate(scan_arrow(bad, memory="2MB"), "RR")
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
    late = connection.sql(query.format("i").replace("i // 3", "CASE WHEN i = 499999 THEN 0 ELSE i // 3 END"))
    assert_same(scan_arrow(late), Rankings.from_arrow(late))
    assert connection.sql("SELECT 1").fetchall() == [(1,)]


def _duckdb_table(connection):
    connection.execute(
        "CREATE TABLE t AS SELECT i // 3 AS qid, if(i = 2000, 'x', '1') AS l, i AS score FROM range(3000) s(i)"
    )
    return connection.sql("SELECT qid, l::INT AS label, score FROM t")


@pytest.mark.parametrize("scan", [scan_arrow, lambda data: data], ids=["scan", "evaluate"])
def test_errors_of_duckdb_are_said_in_its_words(scan):
    connection = pytest.importorskip("duckdb").connect()
    data = _duckdb_table(connection)
    for change, words in (
        (lambda: None, "Could not convert string 'x' to INT32"),
        (lambda: connection.execute("DROP TABLE t"), "Table with name t does not exist"),
        (connection.close, "Connection has already been closed"),
    ):
        change()
        with pytest.raises(InputError, match=f"data could not be read: .*{words}") as caught:
            fn.evaluate(scan(data), "RR")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scan", [scan_arrow, lambda data: data], ids=["scan", "evaluate"])
def test_errors_of_the_planner_of_polars_are_said_in_its_words(scan):
    polars = pytest.importorskip("polars")
    lazy = polars.LazyFrame({"qid": [1], "label": [1], "score": [0.5]})
    for data, words in (
        (lazy.select(polars.col("nope")), 'unable to find column "nope"'),
        (polars.scan_parquet("/nonexistent"), "/nonexistent"),
        (lazy.with_columns(polars.col("score").str.len_chars()), "expected `String`"),
    ):
        with pytest.raises(InputError, match=f"data could not be read: .*{words}") as caught:
            fn.evaluate(scan(data), "RR")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("read", [scan_arrow, Rankings.from_arrow])
def test_a_reader_that_was_used_up_is_refused(read):
    table = rows().select(["qid", "label", "score"])
    reader = table.to_reader()
    fn.evaluate(read(reader), "RR")
    for again in (scan_arrow, Rankings.from_arrow):
        with pytest.raises(InputError, match="can be read only once, and was already read"):
            fn.evaluate(again(reader), "RR")
    elsewhere = table.to_reader()
    elsewhere.read_all()
    with pytest.warns(FastndcgWarning, match="without rows: it is empty, or was read before"):
        assert fn.evaluate(read(elsewhere), "RR").n_queries == 0
    tables = iter([table])
    fn.evaluate(scan_arrow(tables), "RR")
    with pytest.raises(InputError, match="an iterator that was read before"):
        scan_arrow(tables)


# ---- what users meet ----


def test_a_sink_and_a_comparison_take_them():
    table = rows()

    class Kept:
        def __init__(self):
            self.tables, self.restarts = [], 0

        def write(self, part):
            self.tables.append(part)

        def restart(self):
            self.tables, self.restarts = [], self.restarts + 1

    for some in (table, rows(mixed=True), pa.concat_tables([table, table[:1]])):
        sink = Kept()
        scores = fn.evaluate(scan_arrow(lambda: reader(cut(some, [40])), memory=3000), "nDCG", sink=sink)  # noqa: B023
        assert pa.concat_tables(sink.tables).to_pylist() == scores.to_arrow().to_pylist()
    a = fn.evaluate(scan_arrow(reader(cut(table, [40]))), "nDCG")
    b = fn.evaluate(scan_arrow(iter(cut(table, [40])), score="traffic"), "nDCG")
    whole = {"a": fn.evaluate(table, "nDCG"), "b": fn.evaluate(table, "nDCG", score="traffic")}
    assert fn.compare({"a": a, "b": b}).to_arrow().equals(fn.compare(whole).to_arrow())


def test_progress_and_what_a_stream_says():
    table, told = rows(), []
    stream = scan_arrow(reader(cut(table, [40])), progress=lambda done, total: told.append((done, total)), memory=3000)  # fmt: skip
    assert repr(stream) == "BatchStream(query='qid', relevance='label', score='score')" and stream.n_rows == 0
    fn.evaluate(stream, "RR")
    assert stream.n_rows == len(table) and [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == len(table) and isinstance(stream, RankingsStream)


def broken(column, place, value):
    table = rows()
    values = table[column].to_pylist()
    values[place] = value
    return table.set_column(table.column_names.index(column), column, pa.array(values))


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (lambda: reader(cut(broken("qid", 130, None), [40])), InputError, 'column "qid" has 1 null.*row 130'),
        (lambda: reader(cut(broken("score", 250, float("nan")), [40])), InputError, 'column "score" has 1 NaN.*row 250'),
        (lambda: iter([rows()[:50], rows()[50:].rename_columns(["qid", "label", "points", *rows().column_names[3:]])]), InputError, 'a later table of data has no column "score"'),
        (lambda: iter([rows()[:50], rows(ids="texts")[50:]]), InputTypeError, 'column "qid" is int64 in the first rows and string in later ones'),
        (lambda: iter([]), InputError, "data has no table"),
        (lambda: iter([{"qid": [1]}, {"qid": [1]}]), ColumnError, "no column has a usual name of the relevance"),
        (lambda: iter([1, 2]), InputTypeError, "data is a int; expected a table"),
        (lambda: 5, InputTypeError, "data is a int; expected a table"),
        (lambda: "rows.parquet", InputTypeError, "data is a str.*Name its path to read_parquet"),
        (lambda: lambda: None, InputTypeError, "data is a NoneType; expected a table"),
        (lambda: reader(cut(rows().drop_columns("score"), [40])), ColumnError, "usual name of the score"),
    ],
)  # fmt: skip
def test_what_is_refused(data, error, message):
    with pytest.raises(error, match=message):
        fn.evaluate(scan_arrow(data(), memory=6000), "RR")


def test_options_that_are_refused():
    with pytest.raises(InputTypeError, match="scan_arrow has no argument querry="):
        scan_arrow(rows(), querry="qid")
    with pytest.raises(InputTypeError, match="Open it with scan_arrow"):
        fn.evaluate(rows, "RR")
    tables = iter([rows(), rows().drop_columns("score")])
    stream = scan_arrow(lambda: next(tables))
    fn.evaluate(stream, "RR")
    with pytest.raises(InputError, match='data has no column "score" any more'):
        fn.evaluate(stream, "RR")
