"""Streams of files and of batches: the same bits as in memory, whatever cuts the rows; what can be read only once;
and what happens when files or disks fail.
"""

import os
import signal
import sys
import tempfile
import threading
import time

import commands
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg import (
    ColumnError,
    FastndcgWarning,
    InputError,
    InputTypeError,
    Rankings,
    SourceError,
    scan_arrow,
    scan_parquet,
)
from fastndcg.common.hashes import keys_of
from fastndcg.sources import regrouping, streams
from fastndcg.sources.regrouping import SeenKeys
from fastndcg.sources.streams import TableStream, bytes_of

MEASURES = ["nDCG@3", "nDCG(ties='input', gain='exp2')", "nDCG(ties='worst', empty='nan')@5", "NumRet"]
OPTIONS = {"keep": ["lang", "kind"], "weight": "traffic"}
SMALL = 4000  # bytes: some ten rows at a time


@pytest.fixture(autouse=True)
def _little_memory(monkeypatch):
    monkeypatch.setattr(streams, "_LEAST_MEMORY", 1)


@pytest.fixture
def spool(tmp_path_factory, monkeypatch):
    """The folder of temporary files."""
    folder = tmp_path_factory.mktemp("spool")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


IDS = {
    "numbers": pa.array,
    "texts": lambda numbers: pa.array([f"q{number:05d}" for number in numbers], pa.string()),
    "few codes": lambda numbers: coded(IDS["texts"](numbers), pa.int8()),
    "codes": lambda numbers: coded(IDS["texts"](numbers)),
    "coded numbers": lambda numbers: coded(pa.array(numbers)),
}


def coded(values, codes=None, more=()):
    """A dictionary, that has `more` values which do not occur."""
    found = values.dictionary_encode()
    known = pa.concat_arrays([found.dictionary, pa.array(more, values.type)])
    return pa.DictionaryArray.from_arrays(found.indices.cast(codes or pa.int32()), known)


def rows(n_queries=60, *, ids="numbers", mixed=False, seed=0, longest=12):
    rng = np.random.default_rng(seed)
    numbers = np.repeat(rng.permutation(n_queries) + 10 * seed, rng.integers(1, longest, n_queries))
    n = len(numbers)
    columns = {
        "qid": IDS[ids](numbers),
        "label": rng.integers(0, 5, n),
        "score": (rng.integers(0, 9, n) / 4).astype(np.float32),
        "lang": pa.array([("de", "en", None)[number % 3] for number in numbers], pa.string()),
        "kind": pa.array([f"kind {number % 5}" for number in numbers], pa.string()).dictionary_encode(),
        "traffic": numbers % 7 / 4,
        "other": rng.random(n),
    }
    table = pa.table(columns)
    return shuffled(table) if mixed else table


def shuffled(table):
    return table.take(pa.array(np.random.default_rng(1).permutation(len(table))))


def write(table, path, **options):
    pq.write_table(table, path, **({"row_group_size": 17} | options))
    return path


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


def assert_same(stream, whole):
    """The same values to the last bit, for the same queries in the same order, with the same columns."""
    got, wanted = fn.evaluate(stream, MEASURES), fn.evaluate(whole, MEASURES)
    assert got.values.tobytes() == wanted.values.tobytes()
    assert got.queries.schema == wanted.queries.schema
    assert got.queries.to_pylist() == wanted.queries.to_pylist()
    assert got.to_arrow().schema == wanted.to_arrow().schema
    assert repr(got.summary()) == repr(wanted.summary())
    assert (got.weight is None) == (wanted.weight is None)
    if got.weight is not None and wanted.weight is not None:
        assert got.weight.tobytes() == wanted.weight.tobytes()


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


@pytest.mark.filterwarnings("ignore::fastndcg.FastndcgWarning")  # few rows may have no relevant document
@given(
    form=st.sampled_from(["parquet", "parquet", "reader", "function", "iterator"]),
    ids=st.sampled_from([*IDS]),
    n_queries=st.sampled_from([0, 1, 40, 40]),
    longest=st.sampled_from([2, 12, 100]),
    mixed=st.booleans(),
    grouped=st.booleans(),
    memory=st.sampled_from([300, SMALL, 30_000, None]),
    sizes=st.lists(st.sampled_from([0, 0, 1, 2, 17, 400]), min_size=1, max_size=6).filter(any),
    seed=st.integers(0, 9),
)
def test_any_layout(tmp_path_factory, form, ids, n_queries, longest, mixed, grouped, memory, sizes, seed):
    """Batches, or files and row groups, of any sizes, some of which are larger than the memory."""
    table = rows(n_queries, ids=ids, mixed=mixed, seed=seed, longest=longest)
    how = OPTIONS | {"memory": memory, "grouped": (grouped and not mixed) or None}
    try:
        if form == "parquet":
            folder = tmp_path_factory.mktemp("files")
            step = max(9 * max(sizes), 150)
            for number, start in enumerate(range(0, len(table) or 1, step)):
                path = folder / f"{number:04d}.parquet"
                write(table.slice(start, step), path, row_group_size=max(sizes), data_page_size=500)
            stream, whole = scan_parquet(folder, threads=2, **how), fn.read_parquet(folder, **OPTIONS)
        else:
            batches = cut(table, sizes) or [pa.RecordBatch.from_pylist([], table.schema)]
            stream, whole = scan_arrow(FORMS[form](batches), **how), Rankings.from_arrow(table, **OPTIONS)
        assert_same(stream, whole)
        if form in ("parquet", "function"):
            parts = list(stream)
            found = [name for part in parts for name in part.query_ids.to_pylist()]
            assert sum(part.n_docs for part in parts) == len(table)
            assert (sorted if mixed else list)(found) == (sorted if mixed else list)(
                whole.query_ids.to_pylist()
            )
            assert_same(stream, whole)  # once more
    except InputError as error:  # small batches may look grouped until rows that are gone
        assert form not in ("function", "parquet") and mixed
        assert "give a function that opens them anew" in str(error)


@pytest.mark.parametrize("mixed", [False, True], ids=["grouped", "mixed"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form(form, mixed):
    has_own_texts = form in ("pandas", "polars")  # other than Arrow's
    table = rows(mixed=mixed, ids="numbers" if form == "polars" else "codes")
    keep = {} if has_own_texts else OPTIONS
    stream = scan_arrow(FORMS[form](cut(table, [40, 0, 17])), memory=30_000, **keep)
    whole = Rankings.from_arrow(table.to_pandas() if form == "pandas" else table, **keep)
    assert_same(stream, whole)


@pytest.mark.parametrize("mixed", [False, True], ids=["grouped", "mixed"])
def test_parts_are_small_and_nothing_is_left(tmp_path, spool, mixed):
    path = write(rows(mixed=mixed), tmp_path / "a.parquet")
    assert len(list(scan_parquet(path, memory=SMALL, threads=2))) > 5
    assert os.listdir(spool) == []


def test_hive_partitions_and_types_that_differ(tmp_path):
    table = rows(ids="texts")
    cut = int(Rankings.from_arrow(table).offsets[30])
    for part, (start, stop, kind) in enumerate([(0, cut, pa.int8()), (cut, len(table), pa.int64())]):
        folder = tmp_path / f"day={part}"
        folder.mkdir()
        piece = table.slice(start, stop - start)
        write(piece.set_column(1, "label", piece["label"].cast(kind)), folder / "a.parquet")
    assert_same(scan_parquet(tmp_path, keep="day", memory=SMALL), fn.read_parquet(tmp_path, keep="day"))


def test_a_null_in_a_dictionary():
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


@pytest.mark.parametrize("form", ["reader", "function"])
def test_more_rows_than_expected_are_set_aside_again(form, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    turns, init = [], streams.Spill.__init__
    monkeypatch.setattr(
        streams.Spill, "__init__", lambda self, *given: turns.append(given[2]) or init(self, *given)
    )
    table = rows(600, mixed=True)
    stream = scan_arrow(FORMS[form](cut(table, [400])), memory=20_000, **OPTIONS)
    assert_same(stream, Rankings.from_arrow(table, **OPTIONS))
    assert turns[0] == 0 and turns.count(1) > 1
    assert os.listdir(tmp_path) == []


def test_threads_change_nothing_and_are_gone(tmp_path):
    path = write(rows(400), tmp_path / "a.parquet")
    whole = fn.read_parquet(path)
    for threads in (1, 2, 5):
        assert_same(scan_parquet(path, memory=SMALL, threads=threads), whole)
    half_way = iter(scan_parquet(path, memory=SMALL, grouped=True))
    next(half_way)
    half_way.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "fastndcg-scan"]


def test_a_stream_left_half_way_does_not_hold_up_the_end(tmp_path):
    path = write(rows(400), tmp_path / "a.parquet")
    code = f"""
        import fastndcg as fn
        from fastndcg.sources import streams
        streams._LEAST_MEMORY = 1
        kept = iter(fn.scan_parquet({str(path)!r}, memory=4000))
        print(next(kept).n_queries > 0)
    """
    assert commands.program(code).stdout == "True\n"


# ---- queries that return ----


def test_grouped_rows_are_demanded(tmp_path):
    table = pa.table(
        {"qid": ["b", "a", "a", "b", "c"], "label": [1, 0, 2, 1, 0], "score": [0.5, 0.1, 0.9, 0.2, 0.3]}
    )
    for size in (1, 2, 5):
        path = write(table, tmp_path / "predictions.parquet", row_group_size=size)
        with pytest.raises(
            InputError, match=r'predictions\.parquet: query "b" returns at row 3 .*"qid"; sort .*grouped=None'
        ):
            fn.evaluate(scan_parquet(path, grouped=True, memory=300), "nDCG")


def test_equal_hashes_are_no_proof(tmp_path, monkeypatch):
    monkeypatch.setattr(regrouping, "keys_of", lambda *ids: keys_of(*ids) % np.uint64(7))
    path = write(rows(100, ids="texts"), tmp_path / "a.parquet")
    assert_same(scan_parquet(path, memory=SMALL), fn.read_parquet(path))


@given(st.lists(st.text(max_size=40) | st.sampled_from(["", "a", "aaaaaaaa", "aaaaaaaab"]), max_size=60))
def test_hashes_tell_texts_apart(texts):
    keys = keys_of(pa.array(texts, pa.string()))
    assert len(set(keys.tolist())) == len(set(texts))
    part = keys_of(pa.array(["x", *texts, "y"]).slice(1, len(texts)))
    assert part.tolist() == keys.tolist(), "where a text stands does not matter"


@given(st.lists(st.lists(st.integers(-50, 50), max_size=20), max_size=12))
def test_seen_keys(batches):
    seen, known = SeenKeys(), set()
    for batch in batches:
        wanted = []
        for place, key in enumerate(batch):
            if key in known:
                wanted.append(place)
            known.add(key)
        assert seen.add(np.array(batch, np.int64).view(np.uint64)).tolist() == wanted


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
    made, init = [], streams.TableStream.__init__
    monkeypatch.setattr(
        streams.TableStream, "__init__", lambda self, *a, **k: made.append(self) or init(self, *a, **k)
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


# ---- options ----


@pytest.mark.parametrize(
    ("text", "size"), [("1MB", 1 << 20), (" 2 GiB ", 2 << 30), ("1.5g", 3 << 29), (5e6, 5_000_000)]
)
def test_memory(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize(
    "mixed", [pytest.param(False, marks=pytest.mark.slow), True], ids=["grouped", "not grouped"]
)
def test_conventions(tmp_path, spool, mixed):
    """Every tool's values, its mean, its summary and its segments, with weights and document ids."""
    table = rows(50, ids="texts")
    table = table.append_column("docid", pa.array([f"d{row * 7919 % 100_003}" for row in range(len(table))]))
    path = write(shuffled(table) if mixed else table, tmp_path / "a.parquet")
    options = OPTIONS | {"doc_id": "docid"}
    whole = fn.read_parquet(path, **options)
    scored = 0
    for name in fn.conventions:
        stream = scan_parquet(path, memory=3 * SMALL, threads=1, **options)
        try:
            wanted = fn.evaluate(whole, ["nDCG@3", "nDCG"], convention=name)
        except (InputError, fn.MeasureError) as error:  # a tool that leaves tied documents to chance
            with pytest.raises(type(error)):
                fn.evaluate(stream, ["nDCG@3", "nDCG"], convention=name)
            continue
        got = fn.evaluate(stream, ["nDCG@3", "nDCG"], convention=name)
        assert type(got) is type(wanted)
        assert got.values.tobytes() == wanted.values.tobytes(), name
        assert got.mean() == pytest.approx(wanted.mean(), abs=0, rel=0, nan_ok=True), name
        assert repr(got) == repr(wanted)
        assert got.by("lang").to_pylist() == wanted.by("lang").to_pylist() or mixed
        assert got.to_arrow().to_pylist() == wanted.to_arrow().to_pylist() or np.isnan(got.values).any()
        scored += 1
    assert scored > 20


def test_functions_are_asked_once(tmp_path, spool):
    """Once for each grade and each rank of the whole stream, as in memory, and anew in the next call."""
    table = rows(200)
    path = write(table, tmp_path / "a.parquet")
    asked = []

    def gain(grade):
        asked.append(("gain", grade))
        return grade**3 / 7

    def discount(rank):
        assert type(rank) is int
        asked.append(("discount", rank))
        return 1 / (rank + 1)

    measure = fn.nDCG(gain=gain, discount=discount)
    whole = fn.evaluate(fn.read_parquet(path), [measure, measure @ 2])
    once = sorted(asked)
    assert len(once) == len(set(once)) == 5 + 11
    mixed = write(shuffled(table), tmp_path / "mixed.parquet")
    for stream in (scan_parquet(path, memory=SMALL), scan_parquet(mixed, memory=SMALL)):
        for _ in range(2):
            asked.clear()
            got = fn.evaluate(stream, [measure, measure @ 2])
            assert sorted(asked) == once
            values = dict(zip(got.queries[0].to_pylist(), got.values.T.tolist(), strict=True))
            assert values == dict(zip(whole.queries[0].to_pylist(), whole.values.T.tolist(), strict=True))
    asked.clear()
    rule = fn.conventions["lightgbm"].replace(gain=gain)
    fn.evaluate(scan_parquet(path, memory=SMALL), "nDCG@2", convention=rule)
    assert sorted(asked) == [("gain", grade) for grade in range(5)]


REFUSED = [
    (lambda path: scan_parquet(path, grouped="yes"), InputTypeError, "grouped='yes' is not known; expected True, or None"),
    (lambda path: scan_parquet(path, nan="first"), InputError, "nan='first' is not known"),
    (lambda path: scan_parquet(path, relevance="labl"), ColumnError, r'a\.parquet: there is no column "labl"'),
    (lambda path: fn.evaluate(scan_parquet(path), "nDCG", convention="lightgmb"), fn.MeasureError, 'no convention is called "lightgmb"'),
    (lambda path: fn.evaluate(scan_parquet(path), "RR", convention="lightgbm"), fn.MeasureError, "lightgbm has no RR; it has: nDCG, AP"),
    (lambda path: scan_arrow(rows(), querry="qid"), InputTypeError, "scan_arrow has no argument querry="),
    (lambda path: fn.evaluate(rows, "RR"), InputTypeError, "Open it with scan_arrow"),
    *((lambda path, memory=memory: scan_parquet(path, memory=memory), (InputError, InputTypeError), "memory=")
      for memory in ("much", "-1MB", "1 XB", 0, True, [1])),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_options_that_are_refused(call, error, message, tmp_path):
    with pytest.raises(error, match=message):
        call(write(rows(), tmp_path / "a.parquet"))


def test_a_later_table_lacks_a_column():
    tables = iter([rows(), rows().drop_columns("score")])
    stream = scan_arrow(lambda: next(tables))
    fn.evaluate(stream, "RR")
    with pytest.raises(InputError, match='later table of data has no column "score"'):
        fn.evaluate(stream, "RR")


def test_progress(tmp_path):
    table = rows(100)
    for name, data in {"grouped": table, "shuffled": shuffled(table)}.items():
        seen = []
        path = write(data, tmp_path / f"{name}.parquet")
        fn.evaluate(scan_parquet(path, memory=SMALL, progress=lambda *now: seen.append(now)), "nDCG")  # noqa: B023
        assert seen[0] == (0, len(table))
        assert seen[-1] == (len(table), len(table))
        restart = max(place for place, now in enumerate(seen) if now[0] == 0)
        assert seen[restart:] == sorted(seen[restart:])
        assert len(seen) - restart > 5


def test_progress_and_what_a_stream_says():
    table, told = rows(), []
    stream = scan_arrow(reader(cut(table, [40])), progress=lambda done, total: told.append((done, total)), memory=3000)  # fmt: skip
    assert repr(stream) == "TableStream(query='qid', relevance='label', score='score')" and stream.n_rows == 0
    fn.evaluate(stream, "RR")
    assert stream.n_rows == len(table) and [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == len(table) and isinstance(stream, TableStream)


# ---- messages ----


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
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


# ---- faults ----


CHANGES = {  # once the first rankings are there, of a file or of the one after it
    "truncated": ("a", lambda path: os.truncate(path, path.stat().st_size // 2), "was replaced or written to while it was read; read it"),
    "replaced": ("a", lambda path: write(rows(2000, seed=5), path.with_name("other")).replace(path), "was replaced or written to while it was read; read it"),
    "deleted": ("a", os.unlink, "does not exist"),
    "the next one deleted": ("b", os.unlink, "does not exist"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_changes_while_it_is_read(tmp_path, name):
    for seed, file in ((0, "a"), (500, "b")):
        write(rows(2000, seed=seed), tmp_path / f"{file}.parquet", row_group_size=200)
    file, change, message = CHANGES[name]
    stream = iter(scan_parquet(tmp_path, memory=SMALL, grouped=True, threads=1))
    next(stream)
    change(tmp_path / f"{file}.parquet")
    with pytest.raises(SourceError, match=rf"{file}\.parquet {message}"):
        list(stream)


LIMITED = """
    import resource, sys
    from fastndcg.__main__ import main
    from fastndcg.sources import streams
    streams._LEAST_MEMORY = 1
    limit = int(sys.argv.pop(1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    main()
"""


@pytest.mark.skipif(os.name != "posix", reason="limits as POSIX has them")
@pytest.mark.parametrize(("mixed", "limit"), [(True, 5_000), (False, 5_000)], ids=["spilling", "writing"])
def test_files_that_may_not_grow(tmp_path, spool, mixed, limit):
    """The limit on the size of files stands for a full disk."""
    table = rows(3000)
    path = write(shuffled(table) if mixed else table, tmp_path / "a.parquet", row_group_size=1000)
    out = tmp_path / "out.parquet"
    done = commands.program(
        LIMITED, str(limit), "score", str(path), "--memory", "10KB", "--out", str(out), TMPDIR=str(spool)
    )
    assert done.returncode == 3, done.stderr
    # kernels that are not kept yet can be kept as little
    told = [line for line in done.stderr.splitlines() if "compiled kernels cannot be kept" not in line]
    assert len(told) == 1, done.stderr
    assert ("temporary file" if mixed else "out.parquet") in done.stderr
    assert "cannot be written: File too large" in done.stderr
    assert os.listdir(tmp_path) == ["a.parquet"]
    assert os.listdir(spool) == []


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.parametrize("mixed", [False, True], ids=["grouped", "shuffled"])
@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, -9, marks=pytest.mark.slow),
    ],
)
def test_interrupted_leaves_nothing(tmp_path, spool, mixed, sent, code):
    table = rows(4000)
    path = write(shuffled(table) if mixed else table, tmp_path / "a.parquet")
    slow = """
        import sys, time
        from fastndcg.__main__ import main
        from fastndcg.sources import streams
        streams._LEAST_MEMORY = 1
        mark = sys.argv.pop()
        def tell(self, done):
            if done > 2000:
                open(mark, "w").close()
                time.sleep(0.2)
        streams.TableStream._tell = tell
        main()
    """
    mark, out = tmp_path / "mark", tmp_path / "out.parquet"
    words = ("score", path, "--memory", "10KB", "--out", out, mark)
    with commands.started(slow, *words, TMPDIR=str(spool)) as process:
        while not mark.exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(sent)
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode in {code, -sent}, stderr
    assert (stdout, "Traceback" in stderr) == ("", False)
    assert os.listdir(spool) == []
    left = set(os.listdir(tmp_path)) - {"mark", "a.parquet"}
    assert not left or sent == signal.SIGKILL


# ---- memory ----

# not ru_maxrss, which a child inherits from the process that forked it
PEAK = """
    import re, sys
    from pathlib import Path
    import fastndcg as fn
    fn.evaluate(fn.scan_parquet(sys.argv[1], memory="16MB", threads=1), "nDCG@10", threads=1)
    print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured as Linux tells it")
@pytest.mark.parametrize("text", [False, True], ids=["int", "string"])
@pytest.mark.slow
def test_memory_is_flat(tmp_path, text):
    peaks = []
    for n_rows in (1_000_000, 16_000_000):  # 13 bytes a row: what is held of all rows would be 195 MB more
        numbers = np.arange(n_rows) // 100
        ids = pa.DictionaryArray.from_arrays(
            pa.array(numbers), pa.array([f"query {number}" for number in range(numbers[-1] + 1)])
        )
        rng = np.random.default_rng(0)
        table = pa.table(
            {
                "qid": ids.cast(pa.string()) if text else numbers,
                "label": rng.integers(0, 4, n_rows, np.int8),
                "score": rng.random(n_rows, np.float32),
            }
        )
        path = write(table, tmp_path / "a.parquet", row_group_size=200_000)
        del table, ids, numbers
        peaks.append(int(commands.program(PEAK, str(path)).stdout) / 1024)
    assert peaks[1] - peaks[0] < 40, f"peaks of {peaks} MiB"


# ---- what users meet ----


def test_command_line_streams_what_is_large(tmp_path):

    for name, table in {"grouped": rows(300), "shuffled": rows(300, mixed=True)}.items():
        docs = pa.array([f"d{row * 7919 % 100_003}" for row in range(len(table))])
        path = write(table.append_column("docid", docs), tmp_path / f"{name}.parquet")
        plain = None
        for like in ([], ["--convention", "trec_eval"], ["--convention", "lightgbm"]):
            texts = []
            for number, memory in enumerate(("10KB", "1GB")):
                out = tmp_path / f"{number}.parquet"
                words = ["score", str(path), "--keep", "lang", "-m", "nDCG@3,5", *like]
                words += ["--memory", memory, "--out", str(out)]
                result = commands.run(*words)
                assert result.exit_code == 0
                texts.append(
                    (result.stdout, result.stderr, pq.read_table(out).to_pylist(), pq.read_schema(out).names)
                )
            assert texts[0] == texts[1]
            assert texts[0][0] != plain
            assert ("doc_id=docid" in result.stderr) == ("trec_eval" in like)
            plain = plain or texts[0][0]
    result = commands.run("score", path, "--memory", "lots")
    assert result.exit_code == 2
    assert "--memory lots is not an amount of memory" in result.stderr


def test_a_kept_value_is_null_before_a_file_ends_and_not_after(tmp_path):
    for part, kept in enumerate(([5, None], [7, 7])):
        columns = {"qid": [part, 1], "label": [1, 0], "score": [0.5, 0.1], "kept": pa.array(kept, pa.int64())}
        pq.write_table(pa.table(columns), tmp_path / f"{part}.parquet")
    with pytest.raises(InputError, match='"kept"'):
        list(scan_parquet(tmp_path, keep="kept", threads=1))
