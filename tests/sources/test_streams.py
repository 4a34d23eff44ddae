"""Streams: the same bits as in memory, whatever cuts the rows; and what happens when files or disks fail."""

import errno
import io
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import commands
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg import InputError, InputTypeError, Rankings, SourceError, scan_parquet
from fastndcg.common.hashes import keys_of
from fastndcg.scores.storage import results_file
from fastndcg.sources import parquet, regrouping, stream_batches, streams
from fastndcg.sources.regrouping import SeenKeys
from fastndcg.sources.streams import bytes_of

pytestmark = pytest.mark.compiled

MEASURES = ["nDCG@3", "nDCG(ties='input', gain='exp2')", "nDCG(ties='worst', empty='nan')@5", "NumRet"]
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


def rows(n_queries=60, *, text=False, seed=0, longest=12):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest, n_queries)
    numbers = np.repeat(rng.permutation(n_queries) + 10 * seed, lengths)
    ids = pa.array([f"q{number:05d}" for number in numbers]) if text else pa.array(numbers)
    n = len(ids)
    columns = {
        "qid": ids,
        "label": rng.integers(0, 5, n),
        "score": (rng.integers(0, 9, n) / 4).astype(np.float32),
    }
    columns["lang"] = pa.array([("de", "en", None)[number % 3] for number in numbers])
    columns["kind"] = pa.array([f"kind {number % 5}" for number in numbers]).dictionary_encode()
    columns["traffic"] = numbers % 7 / 4
    return pa.table(columns)


def shuffled(table, seed=1):
    return table.take(pa.array(np.random.default_rng(seed).permutation(len(table))))


def write(table, path, **options):
    pq.write_table(table, path, **({"row_group_size": 17} | options))
    return path


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


# ---- the same bits ----

OPTIONS = {"keep": ["lang", "kind"], "weight": "traffic"}


@pytest.mark.parametrize("memory", [300, SMALL, 60_000, None])
@pytest.mark.parametrize("text", [False, True], ids=["int", "string"])
@pytest.mark.parametrize("mixed", [False, True], ids=["grouped", "shuffled"])
def test_a_file(tmp_path, spool, memory, text, mixed):
    table = shuffled(rows(text=text)) if mixed else rows(text=text)
    path = write(table, tmp_path / "a.parquet")
    stream = scan_parquet(path, **OPTIONS, memory=memory, threads=2)
    assert_same(stream, fn.read_parquet(path, **OPTIONS))
    assert_same(stream, fn.read_parquet(path, **OPTIONS))  # once more
    assert os.listdir(spool) == []
    parts = list(stream)
    assert sum(part.n_docs for part in parts) == len(table)
    ids = [name for part in parts for name in part.query_ids.to_pylist()]
    assert len(ids) == len(set(ids)) == len(np.unique(table["qid"].to_numpy(zero_copy_only=False)))
    if memory == SMALL:
        assert len(parts) > 5
    if not mixed:
        assert ids == fn.read_parquet(path).query_ids.to_pylist()
        assert_same(
            scan_parquet(path, **OPTIONS, memory=memory, grouped=True), fn.read_parquet(path, **OPTIONS)
        )


@pytest.mark.parametrize("text", [False, True], ids=["int", "string"])
def test_rows_in_any_order_are_decoded_once_where_they_fit(tmp_path, monkeypatch, text):
    table = shuffled(rows(400, text=text)).select(["qid", "label", "score"])
    path = write(table, tmp_path / "a.parquet", row_group_size=1000)
    decoded, readers = [], parquet.ParquetFiles.readers

    def counted(reader):
        for part in reader:
            decoded.append(len(part))
            yield part

    monkeypatch.setattr(stream_batches, "_LOOK", 300)
    monkeypatch.setattr(parquet.ParquetFiles, "readers", lambda *given: map(counted, readers(*given)))
    monkeypatch.delattr(stream_batches.Spill, "add")
    stream = scan_parquet(path, memory=100 * len(table))
    assert_same(stream, fn.read_parquet(path))
    assert sum(decoded) <= stream_batches._LOOK < len(table)
    assert_same(scan_parquet(path, memory=100 * len(table), threads=1), Rankings.from_arrow(table))


@pytest.mark.filterwarnings("ignore::fastndcg.FastndcgWarning")  # few rows may have no relevant document
@given(
    lengths=st.lists(st.integers(1, 9), max_size=30),
    order=st.randoms(use_true_random=False),
    mixed=st.booleans(),
    text=st.booleans(),
    memory=st.integers(200, 5000),
    size=st.integers(1, 40),
    files=st.integers(1, 4),
)
def test_any_layout(lengths, order, mixed, text, memory, size, files):
    numbers = [number for number, length in enumerate(lengths) for _ in range(length)]
    if mixed:
        order.shuffle(numbers)
    grades = [order.randrange(4) for _ in numbers]
    scores = [order.randrange(3) / 2 for _ in numbers]
    ids = (
        pa.array([f"{number}" for number in numbers], pa.string()) if text else pa.array(numbers, pa.int64())
    )
    table = pa.table(
        {"qid": ids, "label": pa.array(grades, pa.int8()), "score": pa.array(scores, pa.float64())}
    )
    with tempfile.TemporaryDirectory() as folder:
        cuts = sorted(order.randrange(len(table) + 1) for _ in range(files - 1))
        for part, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(table)], strict=True)):
            write(table.slice(start, stop - start), Path(folder) / f"{part}.parquet", row_group_size=size)
        assert_same(scan_parquet(folder, memory=memory, threads=2), Rankings.from_arrow(table))


def test_row_groups_larger_than_the_memory(tmp_path):
    for name, table in {"grouped": rows(300, text=True), "shuffled": shuffled(rows(300, text=True))}.items():
        path = write(table, tmp_path / f"{name}.parquet", row_group_size=1 << 20, data_page_size=500)
        assert pq.read_metadata(path).num_row_groups == 1
        assert_same(scan_parquet(path, **OPTIONS, memory=SMALL), fn.read_parquet(path, **OPTIONS))


@pytest.mark.parametrize("ids", [True, False], ids=["ids", "row numbers"])
def test_list_columns(tmp_path, ids):
    whole = Rankings.from_arrow(rows())
    lists = {
        "label": pa.ListArray.from_arrays(whole.offsets.astype(np.int32), pa.array(whole.relevance)),
        "score": pa.LargeListArray.from_arrays(whole.offsets, pa.array(whole.scores)),
    }
    names = {"qid": pa.array([f"q{number * 7 % 60}" for number in range(60)])} if ids else {}
    path = write(pa.table(names | lists), tmp_path / "lists.parquet", row_group_size=7)
    for memory in (300, SMALL, None):
        assert_same(scan_parquet(path, memory=memory), fn.read_parquet(path))
    assert len(list(scan_parquet(path, memory=SMALL))) > 2


def test_two_rows_of_lists_of_one_query(tmp_path):
    """Wherever they stand: the same error as in memory."""
    table = pa.table(
        {
            "qid": [f"q{number % 50}" for number in range(60)],
            "label": [[1, 0]] * 60,
            "score": [[0.5, 0.1]] * 60,
        }
    )
    path = write(table, tmp_path / "lists.parquet", row_group_size=7)
    for memory in (300, SMALL, None):
        with pytest.raises(InputError, match='query "q0" has several rows of lists'):
            list(scan_parquet(path, memory=memory)._in_order())


def test_hive_partitions_and_types_that_differ(tmp_path):
    table = rows(text=True)
    cut = int(Rankings.from_arrow(table).offsets[30])
    for part, (start, stop, kind) in enumerate([(0, cut, pa.int8()), (cut, len(table), pa.int64())]):
        folder = tmp_path / f"day={part}"
        folder.mkdir()
        piece = table.slice(start, stop - start)
        write(piece.set_column(1, "label", piece["label"].cast(kind)), folder / "a.parquet")
    assert_same(scan_parquet(tmp_path, keep="day", memory=SMALL), fn.read_parquet(tmp_path, keep="day"))


@pytest.mark.parametrize(
    "ids",
    [
        [b"x", b"y", b"x"],
        pa.array([1, 2, 1], pa.uint64()),
        pa.array([1, 2, 1], pa.date32()),
        pa.array([1, 2, 1], pa.timestamp("us")),
        pa.array(["1.5", "2.5", "1.5"]).cast(pa.decimal128(5, 2)),
        [True, False, True],
        pa.array(["a", "b", "a"], pa.large_string()),
        pa.array(["a", "b", "a"]).dictionary_encode(),
    ],
)
def test_ids_of_every_type_return(tmp_path, ids):
    path = write(
        pa.table({"qid": ids, "label": [1, 0, 2], "score": [0.5, 0.1, 0.9]}),
        tmp_path / "a.parquet",
        row_group_size=1,
    )
    assert_same(scan_parquet(path, memory=300), fn.read_parquet(path))
    with pytest.raises(InputError, match="returns at row 2"):
        list(scan_parquet(path, memory=300, grouped=True))


@pytest.mark.filterwarnings("ignore:there are no more documents than queries")
def test_many_queries_of_one_document_and_one_of_many(tmp_path):
    n = 20_000
    rng = np.random.default_rng(3)
    for name, ids in {"single": rng.permutation(n), "whole": np.zeros(n, np.int64)}.items():
        table = pa.table({"qid": ids, "label": rng.integers(0, 3, n), "score": rng.random(n)})
        path = write(table, tmp_path / f"{name}.parquet", row_group_size=1000)
        assert_same(scan_parquet(path, memory=100_000), fn.read_parquet(path))
        assert_same(scan_parquet(path, memory=100_000, grouped=True), fn.read_parquet(path))


@pytest.mark.parametrize("grouped", [None, True])
def test_no_rows(tmp_path, grouped):
    path = write(rows()[:0], tmp_path / "a.parquet")
    stream = scan_parquet(path, **OPTIONS, grouped=grouped)
    assert list(stream) == []
    assert_same(stream, fn.read_parquet(path, **OPTIONS))
    write(rows(), tmp_path / "b.parquet")
    assert_same(scan_parquet(tmp_path, **OPTIONS), fn.read_parquet(tmp_path, **OPTIONS))


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
        from fastndcg.sources import stream_batches
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


def test_dictionaries_do_not_grow_with_the_file(tmp_path, monkeypatch):
    """Each table had all ids of its row group so far, and 1 M of them took 3.3 us each."""
    n, lengths = 60_000, []
    rng = np.random.default_rng(0)
    ids = pa.array([f"q{i}" for i in np.repeat(rng.permutation(n // 2), 2)])
    table = pa.table({"qid": ids, "label": rng.integers(0, 3, n), "score": rng.random(n)})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=n // 2, dictionary_pagesize_limit=10_000)
    grouped_rows = regrouping.grouped_rows

    def spy(table, *more):
        lengths.append((len(table), max(len(chunk.dictionary) for chunk in table["qid"].chunks)))
        return grouped_rows(table, *more)

    monkeypatch.setattr(regrouping, "grouped_rows", spy)
    assert_same(scan_parquet(path, memory=1 << 20, threads=1, grouped=True), fn.read_parquet(path))
    rows = max(rows for rows, _ in lengths)
    assert len(lengths) > 5
    assert max(length for _, length in lengths) <= 3 * rows


def test_equal_hashes_are_no_proof(tmp_path, monkeypatch):
    monkeypatch.setattr(regrouping, "keys_of", lambda *ids: keys_of(*ids) % np.uint64(7))
    path = write(rows(100, text=True), tmp_path / "a.parquet")
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


# ---- options ----


@pytest.mark.parametrize(
    ("text", "size"), [("1MB", 1 << 20), (" 2 GiB ", 2 << 30), ("1.5g", 3 << 29), (5e6, 5_000_000)]
)
def test_memory(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("memory", ["much", "-1MB", "1 XB", 10, True, [1]])
def test_memory_that_is_none(tmp_path, memory, monkeypatch):
    monkeypatch.setattr(streams, "_LEAST_MEMORY", 1 << 20)
    path = write(rows(), tmp_path / "a.parquet")
    with pytest.raises((InputError, InputTypeError), match="memory="):
        scan_parquet(path, memory=memory)


@pytest.mark.parametrize("text", [False, True], ids=["int", "string"])
def test_ids_that_rise_and_then_do_not(tmp_path, spool, text):
    """Rising ids are not remembered, and looked up again when one returns, at the end of a part or within one."""
    ids = [f"q{number:04d}" if text else number for number in range(400)]
    for back in (0, 1, 250, 398, None):
        rows_of = [*ids, "q" if text else -1] if back is None else [*ids, ids[back]]
        table = pa.table(
            {
                "qid": np.repeat(np.array(rows_of, object), 3).tolist(),
                "label": [1, 0, 2] * len(rows_of),
                "score": [0.5, 0.25, 0.125] * len(rows_of),
            }
        )
        path = write(table, tmp_path / f"{back}.parquet")
        assert_same(scan_parquet(path, memory=SMALL), fn.read_parquet(path))
        stream = scan_parquet(path, memory=SMALL, grouped=True)
        if back is None:
            assert fn.evaluate(stream, "nDCG").n_queries == 401
            continue
        shown = f'"{ids[back]}"' if text else ids[back]
        with pytest.raises(InputError, match=f"query {shown} returns at row 1200 after other queries"):
            fn.evaluate(stream, "nDCG")


@pytest.mark.parametrize(
    "mixed", [pytest.param(False, marks=pytest.mark.slow), True], ids=["grouped", "not grouped"]
)
def test_conventions(tmp_path, spool, mixed):
    """Every tool's values, its mean, its summary and its segments, with weights and document ids."""
    table = rows(50, text=True)
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


def test_options_that_are_refused(tmp_path):
    path = write(rows(), tmp_path / "a.parquet")
    with pytest.raises(InputTypeError, match="grouped='yes' is not known; expected True, or None"):
        scan_parquet(path, grouped="yes")
    with pytest.raises(InputError, match="nan='first' is not known"):
        scan_parquet(path, nan="first")
    with pytest.raises(fn.ColumnError, match=r'a\.parquet: there is no column "labl"'):
        scan_parquet(path, relevance="labl")
    with pytest.raises(fn.MeasureError, match='no convention is called "lightgmb"'):
        fn.evaluate(scan_parquet(path), "nDCG", convention="lightgmb")
    with pytest.raises(fn.MeasureError, match="lightgbm has no RR; it has: nDCG, AP"):
        fn.evaluate(scan_parquet(path), "RR", convention="lightgbm")


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


# ---- messages ----


@pytest.mark.parametrize("mixed", [False, True], ids=["grouped", "shuffled"])
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("score", float("nan"), r'column "score" has 1 NaN value; the first is at row {row}, query'),
        ("label", None, r'column "label" has 1 null; the first is at row {row}, query'),
        ("qid", None, r'column "qid" has 1 null; the first is at row {row}'),
    ],
)
def test_rows_are_named_as_they_stand_in_the_file(tmp_path, spool, mixed, column, value, message):
    table = shuffled(rows(100)) if mixed else rows(100)
    row = 3 * len(table) // 4
    values = table[column].to_pylist()
    values[row] = value
    place = table.column_names.index(column)
    path = write(
        table.set_column(place, column, pa.array(values, table[column].type)), tmp_path / "bad.parquet"
    )
    with pytest.raises(InputError, match=r"bad\.parquet: " + message.format(row=row)):
        fn.evaluate(scan_parquet(path, memory=SMALL), "nDCG")
    assert os.listdir(spool) == []


@pytest.mark.parametrize(
    ("column", "bad", "message"),
    [
        ("score", float("nan"), "NaN value; the first is at row 3, query"),
        ("label", None, "null; the first is at row 3, query"),
    ],
)
def test_the_first_row_is_named_where_rows_are_set_aside(tmp_path, spool, column, bad, message):
    """Parts are read in the order of hashes: the first part with a fault may hold a later row."""
    table = shuffled(rows(300))
    values = table[column].to_pylist()
    for row in (3, *range(40, len(table), 40)):
        values[row] = bad
    table = table.set_column(table.column_names.index(column), column, pa.array(values))
    with pytest.raises(InputError, match=message):
        fn.evaluate(scan_parquet(write(table, tmp_path / "a.parquet"), memory=SMALL), "nDCG")


def test_grades_are_named_as_they_stand_in_the_file(tmp_path):
    table = rows(100)
    grades = table["label"].to_numpy().copy()
    grades[400] = -1
    path = write(table.set_column(1, "label", pa.array(grades)), tmp_path / "bad.parquet")
    with pytest.raises(InputError, match="grade -1, which occurs at row 400, query"):
        fn.evaluate(scan_parquet(path, memory=SMALL), "nDCG")


# ---- faults ----


def start_then(path, change, **options):
    """Iterate; change the file once the first rankings are there; go on to the end."""
    stream = iter(scan_parquet(path, memory=SMALL, grouped=True, threads=1, **options))
    next(stream)
    change()
    list(stream)


def test_a_row_group_with_a_corrupt_page(tmp_path):
    path = tmp_path / "corrupt.parquet"
    write(rows(2000), path, row_group_size=500, write_page_checksum=True, compression="snappy")
    chunk = pq.read_metadata(path).row_group(7).column(2)
    data = bytearray(path.read_bytes())
    middle = chunk.data_page_offset + 40
    data[middle : middle + 60] = bytes(byte ^ 0x5A for byte in data[middle : middle + 60])
    path.write_bytes(data)
    for stream in (scan_parquet(path, memory=60_000), scan_parquet(path, memory=2000, threads=1)):
        with pytest.raises(SourceError, match=r"corrupt\.parquet cannot be read"):
            fn.evaluate(stream, "nDCG")
    with pytest.raises(SourceError, match=r"corrupt\.parquet cannot be read"):
        fn.read_parquet(path)


@pytest.mark.parametrize("change", ["truncated", "replaced"])
def test_a_file_that_changes_while_it_is_read(tmp_path, change):
    path = write(rows(2000), tmp_path / "a.parquet", row_group_size=200)
    other = write(rows(2000, seed=5), tmp_path / "other", row_group_size=200)
    changes = {
        "truncated": lambda: os.truncate(path, path.stat().st_size // 2),
        "replaced": lambda: other.replace(path),
    }
    with pytest.raises(
        SourceError, match=r"a\.parquet was replaced or written to while it was read; read it"
    ):
        start_then(path, changes[change])


def test_a_file_that_is_replaced_before_it_is_read(tmp_path):
    path = write(rows(), tmp_path / "a.parquet")
    stream = scan_parquet(path)
    write(rows(seed=5), path)
    with pytest.raises(SourceError, match=r"a\.parquet was replaced"):
        fn.evaluate(stream, "nDCG")


def test_a_file_that_is_deleted_while_it_is_read(tmp_path):
    first = write(rows(200), tmp_path / "a.parquet")
    last = write(rows(200, seed=50), tmp_path / "b.parquet")
    for path in (last, first):
        with pytest.raises(SourceError, match=rf"{path.name} does not exist"):
            start_then(tmp_path, path.unlink)
        write(rows(200, seed=50), path)


class FullDisk(io.RawIOBase):
    """A temporary file on a disk that soon is full."""

    def __init__(self, size):
        self.left = size

    def writable(self):
        return True

    def write(self, data):
        self.left -= len(memoryview(data))
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return len(memoryview(data))


def test_a_disk_that_is_full_while_rows_are_set_aside(tmp_path, spool, monkeypatch):
    path = write(shuffled(rows(500)), tmp_path / "a.parquet")
    out = tmp_path / "out.parquet"
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: FullDisk(5000))
    with pytest.raises(
        SourceError, match=r"temporary file in .*spool.* cannot be written: No space left .*TMPDIR.*sort"
    ):
        fn.evaluate(scan_parquet(path, memory=SMALL), "nDCG")
    assert not out.exists()
    assert os.listdir(spool) == []


LIMITED = """
    import resource, sys
    from fastndcg.__main__ import main
    from fastndcg.sources import stream_batches
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
        from fastndcg.sources import stream_batches
        from fastndcg.sources import streams
        streams._LEAST_MEMORY = 1
        mark = sys.argv.pop()
        def tell(self, done):
            if done > 2000:
                open(mark, "w").close()
                time.sleep(0.2)
        stream_batches.FileStream._tell = tell
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


# ---- command line ----


def test_command_line_streams_what_is_large(tmp_path):

    for name, table in {"grouped": rows(300), "shuffled": shuffled(rows(300))}.items():
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


def test_results_are_written_as_they_come(tmp_path):
    from fastndcg.sources import streams

    path = write(rows(300), tmp_path / "a.parquet")
    out, seen = tmp_path / "out.parquet", []
    with results_file(out, at_once=20) as file:

        def score(rankings):
            seen.append(Path(file._path).stat().st_size)
            return fn.evaluate(rankings, "nDCG@3")

        kept = streams.evaluate_stream(scan_parquet(path, memory=SMALL), score, file)
        assert not out.exists()
    assert seen[0] == 0 < seen[len(seen) // 2] < seen[-1]
    assert pq.read_table(out).to_pylist() == kept.to_arrow().to_pylist()
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "out.parquet"]


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self):
        self.tables: list[pa.Table] = []
        self.restarts = 0

    def write(self, table):
        self.tables.append(table)

    def restart(self):
        self.tables.clear()
        self.restarts += 1


@pytest.mark.parametrize("convention", [None, "lightgbm", "xgboost"])
@pytest.mark.parametrize("order", ["grouped", "scattered", "nothing"])
def test_a_sink_is_given_what_evaluate_returns(tmp_path, order, convention):
    table = rows(0 if order == "nothing" else 300)
    if order == "scattered":
        table = table.take(np.random.default_rng(0).permutation(len(table)))
    path = write(table, tmp_path / "a.parquet")
    whole, parts, stored = Kept(), Kept(), tmp_path / "out.parquet"
    asked = {"convention": convention}
    fn.evaluate(fn.read_parquet(path, keep="lang"), "nDCG@3", sink=whole, **asked)
    assert len(whole.tables) == 1 and not whole.restarts
    stream = scan_parquet(path, keep="lang", memory=SMALL)
    scores = fn.evaluate(stream, "nDCG@3", sink=parts, **asked)
    assert pa.concat_tables(parts.tables).equals(scores.to_arrow())
    assert scores.to_arrow().equals(whole.tables[0])
    assert (len(parts.tables) > 1, parts.restarts) == (order == "grouped", order == "scattered")
    with results_file(stored) as file:
        fn.evaluate(str(path), "nDCG@3", sink=file, **asked)
    assert pq.read_table(stored).equals(scores.to_arrow().drop_columns("lang"))


def test_the_error_of_a_sink_ends_the_evaluation(tmp_path):
    path = write(rows(300), tmp_path / "a.parquet")
    sink = Kept()
    sink.write = lambda table: sink.tables.append(table) or 1 / 0
    for source in (str(path), scan_parquet(path, memory=SMALL)):
        with pytest.raises(ZeroDivisionError):
            fn.evaluate(source, "nDCG@3", sink=sink)
    assert len(sink.tables) == 2


def test_a_kept_value_is_null_before_a_file_ends_and_not_after(tmp_path):
    for part, kept in enumerate(([5, None], [7, 7])):
        columns = {"qid": [part, 1], "label": [1, 0], "score": [0.5, 0.1], "kept": pa.array(kept, pa.int64())}
        pq.write_table(pa.table(columns), tmp_path / f"{part}.parquet")
    with pytest.raises(InputError, match='"kept"'):
        list(scan_parquet(tmp_path, keep="kept", threads=1))
