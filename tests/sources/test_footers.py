"""Footers of Parquet: what is said in them twice must agree, and no damage to one ends the process."""

import io
import os
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg import SourceError, read_parquet, scan_parquet
from fastndcg.sources import footers
from fastndcg.sources.footers import read_footer
from scripts import fuzz, fuzz_parquet

DAMAGED = sorted((fuzz.ROOT.parent / "shared" / "faults" / "files").glob("*.parquet"))


def written(table, **options):
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def rows(n=30):
    return pa.table(
        {
            "qid": np.arange(n) // 10,
            "docid": [f"document-{i}" for i in range(n)],
            "label": (np.arange(n) % 3).astype(np.uint8),
            "score": np.random.default_rng(0).random(n),
            "lang": ["de"] * n,
        }
    )


# ---- what pyarrow reads ----


@pytest.mark.compiled
@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_texts_in_every_encoding(tmp_path, encoding):
    """As query ids and kept columns, which are read as dictionaries where they can be."""
    table = rows().set_column(0, "qid", pa.array([f"query-{i // 10}" for i in range(30)]))
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


@pytest.mark.compiled
@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
@pytest.mark.parametrize("in_lists", [False, True])
def test_columns_of_views(tmp_path, kind, in_lists):
    """As ids of queries and documents and as kept columns, in streams whose tables cut queries."""
    table = rows().set_column(0, "qid", pa.array([f"query-{i // 10}" for i in range(30)]))
    for name in ("qid", "docid", "lang"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(kind))
    if in_lists:
        lists = {
            name: [table[name].to_pylist()[i : i + 10] for i in (0, 10, 20)] for name in table.column_names
        }
        table = pa.table(
            {
                "qid": pa.array([ids[0] for ids in lists["qid"]], kind),
                "docid": pa.array(lists["docid"], pa.list_(kind)),
                "label": lists["label"],
                "score": lists["score"],
                "lang": pa.array(["de", "de", "en"], pa.string()).cast(kind),
            }
        )
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=1 if in_lists else 7)
    wanted = fn.Rankings.from_arrow(table, keep="lang", doc_id="docid")
    stream = scan_parquet(path, keep="lang", doc_id="docid", threads=1)
    streamed = [list(stream), [part for part, _ in stream._regroup()]] if not in_lists else [list(stream)]
    for parts in ([read_parquet(path, keep="lang", doc_id="docid")], *streamed):
        queries = [row for part in parts for row in part.queries.to_pylist()]
        documents = [document for part in parts for document in part.doc_ids.to_pylist()]
        assert sorted(map(str, queries)) == sorted(map(str, wanted.queries.to_pylist()))
        assert sorted(documents) == sorted(wanted.doc_ids.to_pylist())


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["qid", "docid", "lang"])
@pytest.mark.parametrize("coded", [True, False])
def test_texts_that_are_no_utf_8_are_refused(tmp_path, name, coded):
    """As in CSV; pyarrow reads them, and fails where one is shown."""
    table = rows().set_column(0, "qid", pa.array([f"query-{i // 10}" for i in range(30)]))
    path = tmp_path / "a.parquet"
    text = table[name][29].as_py().encode()
    data = written(table, compression="none", use_dictionary=coded, write_statistics=False)
    at = data.rindex(text, 0, fuzz_parquet.footer_at(data)) + 1
    path.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    for read in (read_parquet, lambda bad, **how: list(scan_parquet(bad, **how))):
        with pytest.raises(SourceError, match=f'a.parquet cannot be read: column "{name}": .*UTF8'):
            read(path, keep="lang", doc_id="docid")


@pytest.mark.compiled
def test_every_reader_verifies_checksums(tmp_path):
    table = rows()
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


# ---- the numbers in a footer ----


@pytest.mark.parametrize(
    "options", [{}, {"version": "1.0"}, {"compression": "zstd", "use_dictionary": False}]
)
def test_a_footer_says_what_pyarrow_reads_in_it(options):
    table = rows().append_column("parts", pa.array([[{"a": 1}, None]] * 30))
    data = written(table, row_group_size=7, write_page_index=True, **options)
    footer = read_footer(pa.BufferReader(data))
    metadata = pq.read_metadata(io.BytesIO(data))
    assert footer.n_rows == 30 and footer.rows == [7, 7, 7, 7, 2]
    for group in range(5):
        for place in range(metadata.num_columns):
            chunk, found = metadata.row_group(group).column(place), footer.chunks[group, place]
            assert found[footers.VALUES] == chunk.num_values
            assert found[footers.STORED] == chunk.total_compressed_size
            assert found[footers.BYTES] == chunk.total_uncompressed_size
            assert found[footers.DATA] == chunk.data_page_offset
            assert max(found[footers.DICTIONARY], 0) == (chunk.dictionary_page_offset or 0)
            assert found[footers.CODEC] == {"SNAPPY": 1, "ZSTD": 6}[chunk.compression]
    assert footer.places_of(["parts", "label"]) == [2, 5]
    footer.check(table.column_names)


@pytest.mark.compiled
def test_footers_longer_than_what_is_read_at_once(tmp_path):
    table = pa.table(
        {f"a column of features {i}": [1.0, 2.0] for i in range(900)}
        | {"qid": [1, 1], "label": [0, 1], "score": [1, 2]}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    assert read_parquet(tmp_path / "a.parquet").relevance.tolist() == [0, 1]


def number(value):
    """As Thrift's compact protocol has it."""
    groups = []
    value <<= 1
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


@pytest.mark.compiled
@pytest.mark.parametrize("more", [0, 1 << 30, 1 << 40])
def test_rows_of_few_bytes_are_counted_before_there_is_memory_for_them(tmp_path, more):
    """A footer that agrees with itself, and not with its pages."""
    n = 3_000_000
    ones = pa.array(np.ones(n, np.uint8))
    data = written(
        pa.table({"qid": ones, "label": ones, "score": ones}), write_statistics=False, row_group_size=n
    )
    at = fuzz_parquet.footer_at(data)
    footer = data[at:-8].replace(number(n), number(n + more))
    path = tmp_path / "a.parquet"
    path.write_bytes(data[:at] + footer + len(footer).to_bytes(4, "little") + data[-4:])
    if not more:
        assert read_parquet(path).n_docs == n
        return
    for read in (read_parquet, scan_parquet):
        with pytest.raises(SourceError, match=f"{n + more:,} values, but its pages hold 3,000,000"):
            read(path)


def judged_in_a_child(paths, *how):
    """What is wrong with how files are read, by a process that may end, and that may not ask for much memory."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            fuzz.limit_memory(2 << 30)
            for path in paths:
                if complaint := fuzz_parquet.judge(path, *how):
                    os.write(writer, f"{path.name}: {complaint}\n".encode())
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


@pytest.mark.compiled
def test_every_bit_of_a_footer(tmp_path):
    """What is read then is what pyarrow reads, where the process used to end."""
    data = written(rows(12).select(["qid", "label"]), store_schema=False, write_statistics=False)
    options = {"query": "qid", "relevance": "label", "score": "label"}
    files = flipped(data, range(fuzz_parquet.footer_at(data), len(data)), tmp_path)
    assert judged_in_a_child(files, options, (1,)) == []


@pytest.mark.compiled
@pytest.mark.skipif(not DAMAGED, reason="the damaged files of ../shared/faults are not there")
def test_damaged_files_that_were_misread():
    options = {"query": "qid", "relevance": "label", "score": "score"}
    assert judged_in_a_child(DAMAGED, options) == []


def test_a_damaged_dictionary_page_is_refused(tmp_path):
    """pyarrow hands out indices beyond a dictionary whose header says that it has no values."""
    table = rows().set_column(0, "qid", pa.array([f"query-{i // 10}" for i in range(30)]))
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
