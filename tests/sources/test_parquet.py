"""Parquet in all the ways in which writers lay it out, and damaged: what is read is what was written, or an error."""

import io
import os
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg import SourceError, read_parquet, scan_parquet
from fastndcg.sources import parquet
from fastndcg.sources.inputs import open_tables
from fastndcg.tables.roles import Roles
from scripts import fuzz

pytestmark = pytest.mark.compiled

DAMAGED = sorted((fuzz.ROOT.parent / "shared" / "faults" / "files").glob("*.parquet"))
COMPRESSIONS = ["none", "snappy", "zstd", "gzip", "brotli"]


def rows(n_queries=300, seed=0, *, ids=None, longest=90):
    """Queries of many documents, most of them irrelevant, as in real data: runs of zeros among packed grades."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(20, longest, n_queries)
    column = pa.array(np.repeat(np.arange(n_queries), lengths))
    n = int(lengths.sum())
    return pa.table(
        {
            "qid": column.cast(ids) if ids is not None else column,
            "label": (rng.integers(0, 5, n) * (rng.random(n) < 0.3)).astype(np.uint8),
            "score": rng.standard_normal(n).astype(np.float32),
        }
    )


def same(path, table, **options):
    """What is read is what was written, whole and as a stream."""
    wanted = fn.Rankings.from_arrow(table)
    found = read_parquet(path, **options)
    for name in ("offsets", "relevance", "scores"):
        one, other = getattr(found, name), getattr(wanted, name)
        assert one.dtype == other.dtype and one.tobytes() == other.tobytes(), name
    assert found.query_ids.equals(wanted.query_ids)
    streamed = fn.evaluate(scan_parquet(path, memory="1MB"), ["nDCG@5", "NumRet"])
    together = fn.evaluate(wanted, ["nDCG@5", "NumRet"])
    assert streamed.values.tobytes() == together.values.tobytes()
    assert streamed.queries.equals(together.queries)


# ---- files as writers write them ----


NAMES = ["", "é", *(letter * n for n in (1, 7, 8, 9, 16, 63, 64, 65, 300) for letter in "ab"), *(f"query-{i:09d}" for i in range(3000))]  # fmt: skip


def texts_in_any_order(kind, n=40_000):
    rng = np.random.default_rng(7)
    ids = pa.array(NAMES, kind).take(pa.array(rng.integers(0, len(NAMES), n)))
    labels, scores = rng.integers(0, 5, n).astype(np.uint8), rng.standard_normal(n).astype(np.float32)
    return pa.table({"qid": ids, "label": labels, "score": scores})


TABLES = {
    "nullable": rows,
    "required": lambda: rows().cast(pa.schema([field.with_nullable(False) for field in rows().schema])),
    "texts": lambda: texts_in_any_order(pa.string()),
    "large texts": lambda: texts_in_any_order(pa.large_string()),
}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("name", TABLES)
def test_files_written_in_any_way(tmp_path, compression, version, dictionary, name):
    """Dictionaries of texts overflow into plain pages."""
    table = TABLES[name]()
    pq.write_table(
        table,
        tmp_path / "a.parquet",
        compression=compression,
        data_page_version=version,
        use_dictionary=dictionary,
        dictionary_pagesize_limit=20_000,
        data_page_size=3000,
        row_group_size=7001,
        write_page_checksum=name != "required",
    )
    same(tmp_path / "a.parquet", table)


@given(
    st.integers(1, 400),
    st.sampled_from([200, 3000, 1 << 20]),
    st.integers(0, 3),
    st.booleans(),
)
def test_steps_of_any_length(tmp_path_factory, step, page, seed, text):
    """Rows of a row group, a few at a time: the same as all at once."""
    table = rows(60, seed, ids=pa.string() if text else None)
    path = tmp_path_factory.mktemp("steps") / "a.parquet"
    pq.write_table(table, path, data_page_size=page, row_group_size=701, dictionary_pagesize_limit=300)
    opened = open_tables([path], 1).choose(Roles())
    for span in opened._spans(1500):
        steps = list(parquet.read_steps(opened.types, span, opened.columns.names, step))
        assert max(map(len, steps)) <= step
        whole = parquet.read_span((opened.types, span, opened.columns.names))
        assert [column.to_pylist() for column in pa.concat_tables(steps).columns] == [
            column.to_pylist() for column in whole.columns
        ]


def test_the_query_may_play_two_roles(tmp_path):
    table = rows()
    pq.write_table(table, tmp_path / "a.parquet")
    found = read_parquet(tmp_path / "a.parquet", keep="qid", weight="qid")
    assert found.weight is not None and found.weight.tolist() == list(range(300))


# ---- texts ----


def written(table, **options):
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def ids_and_documents(n=30):
    return pa.table(
        {
            "qid": np.arange(n) // 10,
            "docid": [f"document-{i}" for i in range(n)],
            "label": (np.arange(n) % 3).astype(np.uint8),
            "score": np.random.default_rng(0).random(n),
            "lang": ["de"] * n,
        }
    )


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_texts_in_every_encoding(tmp_path, encoding):
    """As query ids and kept columns, which are read as dictionaries where they can be."""
    table = ids_and_documents().set_column(0, "qid", pa.array([f"query-{i // 10}" for i in range(30)]))
    path = tmp_path / "a.parquet"
    columns = dict.fromkeys(("qid", "docid", "lang"), encoding)
    pq.write_table(table, path, use_dictionary=False, column_encoding=columns, row_group_size=7)
    wanted = fn.Rankings.from_arrow(table, keep="lang", doc_id="docid")
    (streamed,) = scan_parquet(path, keep="lang", doc_id="docid")
    for found in (read_parquet(path, keep="lang", doc_id="docid"), streamed):
        assert found.queries.to_pylist() == wanted.queries.to_pylist()
        assert found.doc_ids.to_pylist() == wanted.doc_ids.to_pylist()
    joined = fn.read_qrels_run(path, path)
    assert joined.query_ids.to_pylist() == wanted.query_ids.to_pylist() and joined.n_docs == 30


@pytest.mark.parametrize("name", ["qid", "docid", "lang"])
@pytest.mark.parametrize("coded", [True, False])
def test_texts_that_are_no_utf_8_are_refused(tmp_path, name, coded):
    """As in CSV; pyarrow reads them, and fails where one is shown."""
    table = ids_and_documents().set_column(0, "qid", pa.array([f"query-{i // 10}" for i in range(30)]))
    path = tmp_path / "a.parquet"
    text = table[name][29].as_py().encode()
    data = written(table, compression="none", use_dictionary=coded, write_statistics=False)
    at = data.rindex(text, 0, fuzz.footer_at(data)) + 1
    path.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    for read in (read_parquet, lambda bad, **how: list(scan_parquet(bad, **how))):
        with pytest.raises(SourceError, match=f'a.parquet cannot be read: column "{name}": .*UTF8'):
            read(path, keep="lang", doc_id="docid")


def test_every_reader_verifies_checksums(tmp_path):
    table = ids_and_documents()
    pq.write_table(table, tmp_path / "good.parquet")
    data = written(table, write_page_checksum=True, compression="none", use_dictionary=False)
    at = data.index(table["score"].to_numpy().tobytes()) + 7
    (tmp_path / "bad.parquet").write_bytes(data[:at] + bytes([data[at] ^ 64]) + data[at + 1 :])
    (tmp_path / "features").write_text("".join(f"1 qid:{i // 10} 1:2\n" for i in range(30)), encoding="utf-8")
    for read in (
        read_parquet,
        lambda bad: list(scan_parquet(bad)),
        lambda bad: fn.read_qrels_run(tmp_path / "good.parquet", bad),
        lambda bad: fn.read_ltr(tmp_path / "features", scores=bad),
    ):
        with pytest.raises(SourceError, match=r"bad\.parquet cannot be read: .*checksum"):
            read(tmp_path / "bad.parquet")


# ---- damage ----


def number(value):
    """As Thrift's compact protocol has it."""
    groups = []
    value <<= 1
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


@pytest.mark.parametrize("more", [0, 1 << 30])
def test_footers_that_claim_more_rows_than_pages_hold(tmp_path, more):
    """A footer that agrees with itself, and not with its pages."""
    n = 3_000_000
    ones = pa.array(np.ones(n, np.uint8))
    data = written(
        pa.table({"qid": ones, "label": ones, "score": ones}), write_statistics=False, row_group_size=n
    )
    at = fuzz.footer_at(data)
    footer = data[at:-8].replace(number(n), number(n + more))
    path = tmp_path / "a.parquet"
    path.write_bytes(data[:at] + footer + len(footer).to_bytes(4, "little") + data[-4:])
    if not more:
        assert read_parquet(path).n_docs == n
        return
    for read in (
        read_parquet,
        lambda path: fn.evaluate(scan_parquet(path), "nDCG@5"),
        lambda path: fn.evaluate(path, "nDCG@5"),
    ):
        with pytest.raises(
            SourceError, match="a.parquet cannot be read: (its columns have 3,000,000 rows|.*memory|.*alloc)"
        ):
            read(path)


def judged_in_a_child(paths):
    """What is wrong with how files are read, by a process that may end, and that may not ask for much memory."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            fuzz.limit_memory(2 << 30)
            for path in paths:
                if (said := fuzz.verdict(fuzz.FORMATS["parquet"], path)) not in (fuzz.READ, fuzz.REFUSED):
                    os.write(writer, f"{path.name}: {said}\n".encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as complaints:
        found = complaints.read().splitlines()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return [*found, *([f"the process ended with {code}"] if code else [])]


def flipped(data, places, folder):
    """Files with one bit that is another, one after the other."""
    for at in places:
        for bit in range(8):
            path = folder / f"byte {at - places.start}, bit {bit}"
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            yield path
            path.unlink()


@pytest.mark.slow
def test_every_bit_of_a_footer(tmp_path):
    """What is read then is what pyarrow reads, where asking pyarrow for metadata would end the process."""
    columns = {"qid": ["q0", "q0", "q1"], "label": pa.array([0, 1, 2], pa.uint8()), "score": [0.5, 0.25, 0.5]}
    data = written(pa.table(columns), store_schema=False, write_statistics=False)
    files = flipped(data, range(fuzz.footer_at(data), len(data)), tmp_path)
    assert judged_in_a_child(files) == []


@pytest.mark.skipif(not DAMAGED, reason="the damaged files of ../shared/faults are not there")
def test_damaged_files_that_were_misread():
    assert judged_in_a_child(DAMAGED) == []


def test_a_damaged_dictionary_page_is_refused(tmp_path):
    """pyarrow hands out indices beyond a dictionary whose header says that it has no values."""
    table = ids_and_documents().set_column(0, "qid", pa.array([f"query-{i // 10}" for i in range(30)]))
    good, path, other = written(table), tmp_path / "a.parquet", tmp_path / "b.parquet"
    other.write_bytes(good)
    refused = 0
    for place in range(4, 60):  # the header of the first dictionary, and what it holds
        for byte in (0, 1, 40, good[place] ^ 128):
            path.write_bytes(good[:place] + bytes([byte]) + good[place + 1 :])
            for read in (read_parquet, lambda path: fn.read_qrels_run(path, other)):
                try:
                    with warnings.catch_warnings(action="ignore", category=fn.FastndcgWarning):
                        read(path)
                except fn.FastndcgError:
                    refused += 1
    assert refused > 50
