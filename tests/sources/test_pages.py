"""Columns from the pages of Parquet: what pyarrow reads, value by value, and whatever else is left to it."""

import re
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from commands import printed
from fastndcg.compiled.reading import decoders as kernels
from fastndcg.compiled.reading import page_headers
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg import InputError, SourceError, read_parquet, scan_parquet
from fastndcg.sources import pages, parquet, row_groups
from fastndcg.sources.columns import Roles
from fastndcg.sources.footers import read_footer
from fastndcg.sources.read import open_path

pytestmark = pytest.mark.compiled

Array = npt.NDArray[Any]

COMPRESSIONS = ["none", "snappy", "zstd", "gzip", "brotli"]
NUMBERS = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]


@pytest.fixture(autouse=True)
def _any_number_of_rows(monkeypatch):
    monkeypatch.setattr(parquet, "LEAST_ROWS_OF_A_GROUP", 1)


@pytest.fixture
def left(monkeypatch):
    """Columns that pyarrow was asked for."""
    asked = set()

    class Spy(row_groups._ByPyarrow):
        @staticmethod
        def _decode(dataset, span, source, names, most):
            asked.update(names)
            yield from parquet_decoded(dataset, span, source, names, most)

    parquet_decoded = row_groups._ByPyarrow._decode
    monkeypatch.setattr(row_groups, "_ByPyarrow", Spy)
    return asked


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
    streamed = fn.evaluate(scan_parquet(path, grouped=True), ["nDCG@5", "NumRet"])
    together = fn.evaluate(wanted, ["nDCG@5", "NumRet"])
    assert streamed.values.tobytes() == together.values.tobytes()
    assert streamed.queries.equals(together.queries)


# ---- files as writers write them ----


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("dictionary", [True, False])
def test_files_written_in_any_way(tmp_path, left, compression, version, nullable, dictionary):
    table = rows()
    schema = pa.schema([pa.field(field.name, field.type, nullable=nullable) for field in table.schema])
    pq.write_table(
        table.cast(schema),
        tmp_path / "a.parquet",
        compression=compression,
        data_page_version=version,
        use_dictionary=dictionary,
        data_page_size=3000,
        row_group_size=7001,
        write_page_checksum=nullable,
    )
    same(tmp_path / "a.parquet", table)
    assert left == (set() if compression in ("none", "snappy") else {"qid", "label", "score"})


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
@pytest.mark.parametrize("dictionary", [True, False])
def test_every_integer(tmp_path, left, kind, dictionary):
    """Ends of the range too, as ids and as grades; and the form that older files have."""
    info = np.iinfo(kind.to_pandas_dtype())
    ids = np.repeat(
        np.array([info.min, info.min + 1, 7, info.max - 1, info.max], info.dtype),
        [1400, 1300, 1500, 1200, 1600],
    )
    table = pa.table({"qid": ids, "label": ids[::-1] % 100, "score": np.arange(7000.0)})
    for version in ("1.0", "2.4", "2.6"):
        path = tmp_path / f"{version}.parquet"
        pq.write_table(table, path, version=version, use_dictionary=dictionary)
        assert open_path(parquet.PARQUET, path, 1).choose(Roles()).how.runs == {"qid"}
        same(path, table.cast(pq.read_schema(path)))
    assert left == set()


@pytest.mark.filterwarnings("ignore:.*holds one value")  # codes of no bits are one value
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.uint16])
@pytest.mark.parametrize("distinct", [1, 2, 3, 17, 255, 256, 257, 5000])
def test_every_width_of_codes(tmp_path, left, kind, distinct):
    rng = np.random.default_rng(distinct)
    n = 12_000
    values = (
        rng.permutation(distinct)[rng.integers(0, distinct, n)] - distinct // 2 * (kind != np.uint16)
    ).astype(kind)
    table = pa.table({"qid": np.arange(n) // 40, "label": np.arange(n) % 3, "score": values})
    pq.write_table(table, tmp_path / "a.parquet", data_page_size=2000)
    same(tmp_path / "a.parquet", table)
    assert left == set()


def test_dictionaries_that_overflow(tmp_path, left):
    """Pages of codes first, then of values themselves, in one column."""
    table = rows(3000)
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, dictionary_pagesize_limit=2000, data_page_size=1000)
    encodings = {pq.ParquetFile(path).metadata.row_group(0).column(place).encodings for place in range(3)}
    assert any("PLAIN" in found and "RLE_DICTIONARY" in found for found in encodings)
    same(path, table)
    assert left == set()


def test_types_that_differ_from_file_to_file(tmp_path, left):
    tables = [rows(50, ids=pa.int32()), rows(50, ids=pa.int64())]
    tables[1] = tables[1].set_column(0, "qid", pc.add(tables[1]["qid"], 1000))
    tables[1] = tables[1].set_column(1, "label", tables[1]["label"].cast(pa.int64()))
    for place, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{place}.parquet")
    joined = [table.set_column(0, "qid", table["qid"].cast(pa.int64())) for table in tables]
    joined = [table.set_column(1, "label", table["label"].cast(pa.int64())) for table in joined]
    same(tmp_path, pa.concat_tables(joined))
    assert left == set()


@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=12),
    st.sampled_from(["qid", "label", "score"]),
    st.sampled_from([200, 3000, 1 << 20]),
    st.integers(0, 3),
)
def test_steps_of_any_length(tmp_path_factory, steps, name, page, seed):
    table = rows(60, seed)
    path = tmp_path_factory.mktemp("steps") / "a.parquet"
    pq.write_table(table, path, data_page_size=page, row_group_size=701)
    with pa.OSFile(str(path)) as source:
        footer = read_footer(source)
    leaf = pages.leaves_of(footer, [name])[name]
    kinds = [pages.Values, pages.Runs] if name != "score" else [pages.Values]
    for kind in kinds:
        done = 0
        with pa.OSFile(str(path)) as source:
            column = kind(source, footer, range(len(footer.rows)), leaf)
            for step in steps:
                if done + step > len(table):
                    break
                found = column.read(step)
                if kind is pages.Runs:
                    assert (np.diff(found.values) != 0).all()  # no run is two
                    found = pc.run_end_decode(found)
                assert found.equals(table[name].slice(done, step).combine_chunks())
                done += step
            with pytest.raises(pages.NotReadError):
                column.read(len(table) - done + 1)


def test_pages_that_windows_cut(tmp_path, monkeypatch, left):
    table = rows()
    pq.write_table(table, tmp_path / "a.parquet", data_page_size=3000)
    monkeypatch.setattr(pages, "_PAGES", 2)
    for window in (1, 100, 3001):
        monkeypatch.setattr(pages, "_WINDOW", window)
        same(tmp_path / "a.parquet", table)
    assert left == set()


def test_row_groups_that_are_read_in_steps(tmp_path, left):
    table = rows(3000)
    table = table.append_column("lang", pa.array(["de"] * len(table)))
    pq.write_table(table, tmp_path / "a.parquet", data_page_size=3000)
    stream = scan_parquet(tmp_path / "a.parquet", grouped=True, memory="1 MB", keep="lang")
    parts = list(stream)
    assert len(parts) > 3
    assert np.concatenate([part.scores for part in parts]).tobytes() == table["score"].to_numpy().tobytes()
    assert left == {"lang"}


# ---- what is left to pyarrow ----


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"use_dictionary": False, "column_encoding": {"score": "BYTE_STREAM_SPLIT"}}, {"score"}),
        ({"use_dictionary": False, "column_encoding": {"qid": "DELTA_BINARY_PACKED"}}, {"qid"}),
        ({"compression": {"qid": "snappy", "label": "lz4", "score": "none"}}, {"label"}),
        ({}, set()),
    ],
)
def test_what_is_rare_is_left(tmp_path, left, options, expected):
    table = rows()
    pq.write_table(table, tmp_path / "a.parquet", **options)
    same(tmp_path / "a.parquet", table)
    assert left == expected


def test_a_column_is_left_in_the_middle(tmp_path, left):
    """Pages are read until the one that has a null; pyarrow goes on from there, and the message knows the row."""
    table = rows(3000)
    labels = [*table["label"].to_pylist()[:-1], None]
    table = table.set_column(1, "label", pa.array(labels, pa.uint8()))
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, data_page_size=1000)
    message = re.escape(f'column "label" has 1 null; the first is at row {len(table) - 1}')
    with pytest.raises(InputError, match=message):
        read_parquet(path)
    with pytest.raises(InputError, match=message):
        fn.evaluate(scan_parquet(path, grouped=True, memory="1 MB"), "nDCG@5")
    assert left == {"label"}


def test_columns_within_columns_are_no_leaves(tmp_path, left):
    table = rows()
    inner = pa.StructArray.from_arrays([table["score"].combine_chunks()], ["score"])
    table = table.append_column("parts", inner).append_column("qid.label", table["label"])
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)
    assert pq.read_metadata(path).schema.names.count("score") == 2
    with pa.OSFile(str(path)) as source:
        leaves = pages.leaves_of(read_footer(source), ["parts", "score", "qid", "qid.label"])
    assert set(leaves) == {"score", "qid", "qid.label"}
    same(path, table, query="qid", relevance="label", score="score")
    assert left == set()


@pytest.mark.parametrize("name", ["qid", "label", "score"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_nulls_are_refused_as_ever(tmp_path, name, version):
    table = rows()
    place = table.schema.get_field_index(name)
    values = table[name].to_pylist()
    values[777] = None
    table = table.set_column(place, name, pa.array(values, table[name].type))
    pq.write_table(table, tmp_path / "a.parquet", data_page_version=version)
    with pytest.raises(InputError, match=re.escape(f'column "{name}" has 1 null; the first is at row 777')):
        read_parquet(tmp_path / "a.parquet")


def test_ids_in_any_order_are_no_runs(tmp_path, left):
    rng = np.random.default_rng(0)
    table = rows(2000).take(rng.permutation(len(rows(2000))))
    pq.write_table(table, tmp_path / "a.parquet")
    dataset = open_path(parquet.PARQUET, tmp_path / "a.parquet", 1).choose(Roles())
    assert not dataset.how.runs
    wanted = fn.Rankings.from_arrow(table)
    assert read_parquet(tmp_path / "a.parquet").scores.tobytes() == wanted.scores.tobytes()
    assert left == set()


NAMES = ["", "é", *(letter * n for n in (1, 7, 8, 9, 16, 63, 64, 65, 300) for letter in "ab"), *(f"query-{i:09d}" for i in range(3000))]  # fmt: skip


def texts_in_any_order(kind, n=40_000):
    rng = np.random.default_rng(7)
    ids = pa.array(NAMES, kind).take(pa.array(rng.integers(0, len(NAMES), n)))
    labels, scores = rng.integers(0, 5, n).astype(np.uint8), rng.standard_normal(n).astype(np.float32)
    return pa.table({"qid": ids, "label": labels, "score": scores})


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_texts_in_any_order(tmp_path, left, monkeypatch, compression, version, dictionary, kind):
    """Dictionaries that overflow into plain pages, and a table that grows."""
    monkeypatch.setattr(pages, "_TEXTS", 64)
    table, path = texts_in_any_order(kind), tmp_path / "a.parquet"
    pq.write_table(
        table,
        path,
        compression=compression,
        data_page_version=version,
        use_dictionary=dictionary,
        dictionary_pagesize_limit=20_000,
        data_page_size=3000,
        row_group_size=17_001,
    )
    wanted = fn.Rankings.from_arrow(table)
    found = read_parquet(path)
    assert left == (set() if compression != "zstd" else {"qid", "label", "score"})
    for name in ("offsets", "relevance", "scores"):
        assert getattr(found, name).tobytes() == getattr(wanted, name).tobytes(), name
    assert found.query_ids.equals(wanted.query_ids)
    scored = fn.evaluate(scan_parquet(path, memory="1MB"), "nDCG@5")
    assert scored.values.tobytes() == fn.evaluate(wanted, "nDCG@5").values.tobytes()


def test_texts_that_are_not_read(tmp_path, left, monkeypatch):
    """More different texts than are held, and text that is not UTF-8: pyarrow reads it, or says what is wrong."""
    table, path = texts_in_any_order(pa.string()), tmp_path / "a.parquet"
    pq.write_table(table, path, use_dictionary=False)
    monkeypatch.setattr(pages, "_MOST_TEXT", 1000)
    assert read_parquet(path).query_ids.equals(fn.Rankings.from_arrow(table).query_ids)
    assert left == {"qid"}
    pq.write_table(table, path, use_dictionary=False, compression="none")
    data = path.read_bytes().replace(b"query-000000017", b"query-00000001\xff")
    path.write_bytes(data)
    monkeypatch.setattr(pages, "_MOST_TEXT", 1 << 20)
    with pytest.raises((InputError, SourceError), match="UTF"):
        read_parquet(path)


def test_short_row_groups_are_left(tmp_path, left, monkeypatch):
    monkeypatch.setattr(parquet, "LEAST_ROWS_OF_A_GROUP", 1000)
    table = rows()
    for size, expected in ((900, {"qid", "label", "score"}), (5000, set[str]())):
        left.clear()
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=size)
        same(tmp_path / "a.parquet", table)
        assert left == expected


def test_few_rows_do_not_wait_for_kernels_to_be_compiled(tmp_path, left, monkeypatch):
    table = rows()
    pq.write_table(table, tmp_path / "a.parquet")
    values = 3 * len(table)
    for worth in (True, False):
        monkeypatch.setattr(parquet.worlds, "pays", lambda way, size, worth=worth: worth and size == values)
        left.clear()
        same(tmp_path / "a.parquet", table)
        assert left == (set() if worth else {"qid", "label", "score"})


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_what_is_compiled_is_known_in_the_next_process(tmp_path):
    code = """
        import numpy as np
        from fastndcg.common.arrays import read_only
        from fastndcg.kernels.compile import caching, worlds
        before = caching.holds("rows_by_code")
        worlds.run("reading.rows.rows_by_code", 9, read_only(np.arange(9)), 9)
        print(before, caching.holds("rows_by_code"), caching.holds("values_of_pages"))
    """
    for expected in ("False True False\n", "True True False\n"):
        assert printed(code, NUMBA_CACHE_DIR=str(tmp_path)) == expected


def test_runs_that_return_are_regrouped(tmp_path):
    """Runs of ids that come again: grouped in memory, and on disk for a stream."""
    table = rows()
    table = pa.concat_tables([table, rows(seed=1)])
    pq.write_table(table, tmp_path / "a.parquet")
    dataset = open_path(parquet.PARQUET, tmp_path / "a.parquet", 1).choose(Roles())
    assert dataset.how.runs == {"qid"}
    wanted = fn.evaluate(fn.Rankings.from_arrow(table), "nDCG@5")
    for source in (read_parquet(tmp_path / "a.parquet"), scan_parquet(tmp_path / "a.parquet")):
        found = fn.evaluate(source, "nDCG@5")
        assert found.values.tobytes() == wanted.values.tobytes() and found.queries.equals(wanted.queries)
    with pytest.raises(InputError, match="query 0 returns"):
        fn.evaluate(scan_parquet(tmp_path / "a.parquet", grouped=True), "nDCG@5")


def test_the_query_may_play_two_roles(tmp_path):
    table = rows()
    pq.write_table(table, tmp_path / "a.parquet")
    found = read_parquet(tmp_path / "a.parquet", keep="qid", weight="qid")
    assert found.weight is not None and found.weight.tolist() == list(range(300))


# ---- damage ----


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_damage_under_a_checksum_is_found(tmp_path, compression):
    table = rows(30)
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, write_page_checksum=True, compression=compression)
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    rng = np.random.default_rng(0)
    for at in rng.integers(4, footer, 60).tolist():
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        try:
            found = read_parquet(path)
        except (SourceError, InputError):
            continue
        # in what a header says of the values' range, which nobody needs
        assert found.scores.tobytes() == table["score"].to_numpy().tobytes()


@given(st.data())
def test_damage_never_reads_what_is_not_there(tmp_path_factory, data):
    """Without checksums much damage cannot be seen; what is read then is what pyarrow reads, or an error."""
    table = rows(12)
    path = tmp_path_factory.mktemp("damage") / "a.parquet"
    compression = data.draw(st.sampled_from(["none", "snappy", "zstd"]))
    pq.write_table(
        table, path, compression=compression, data_page_version=data.draw(st.sampled_from(["1.0", "2.0"]))
    )
    content = bytearray(path.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(4, footer - 1))
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        by_pyarrow = pq.read_table(path)
    except (pa.ArrowException, OSError):
        by_pyarrow = None
    dataset = open_path(parquet.PARQUET, path, 1).choose(Roles())
    try:
        found = dataset.table(dataset.columns.names)
    except SourceError:
        assert by_pyarrow is None
        return
    if by_pyarrow is not None:
        for name in found.column_names:
            one = found[name]
            if pa.types.is_run_end_encoded(one.type):
                one = pc.run_end_decode(one)
            numbers = one.combine_chunks().to_numpy(zero_copy_only=False)
            assert (
                numbers.tobytes()
                == by_pyarrow[name].combine_chunks().to_numpy(zero_copy_only=False).tobytes()
            ), name


# ---- the kernels ----


def varint(number):
    return [number] if number < 128 else [number & 127 | 128, *varint(number >> 7)]


def packed(codes, width):
    bits = sum(code << width * place for place, code in enumerate(codes))
    return list(bits.to_bytes((len(codes) * width + 7) // 8, "little"))


def coded(codes, width, lengths):
    """A page of codes: runs where all of a part are one code, else groups of eight."""
    page, done = [width], 0
    lengths = [*lengths, len(codes)]
    for length in lengths:
        part = codes[done : done + length]
        if not part:
            break
        if len(set(part)) == 1:
            page += [*varint(len(part) << 1), *part[0].to_bytes((width + 7) // 8, "little")]
        else:
            whole = len(part) if done + length >= len(codes) else len(part) - len(part) % 8
            part = part[:whole]
            if not part:
                continue
            groups = (len(part) + 7) // 8
            page += [*varint(groups << 1 | 1), *packed(part, width)]  # as few bytes as hold the last group
        done += len(part)
    if done < len(codes):
        page += coded(codes[done:], width, [])[1:].tolist()
    return np.array(page, np.uint8)


@st.composite
def pages_of_codes(draw):
    width = draw(st.integers(0, 20))
    n_entries = draw(st.integers(1, min(1 << width, 3000)))
    parts = draw(
        st.lists(
            st.one_of(
                st.lists(st.integers(0, n_entries - 1), min_size=1, max_size=40),
                st.tuples(st.integers(0, n_entries - 1), st.integers(1, 200)).map(
                    lambda pair: [pair[0]] * pair[1]
                ),
            ),
            min_size=1,
            max_size=8,
        )
    )
    codes = [code for part in parts for code in part]
    return coded(codes, width, [len(part) for part in parts]), codes, n_entries


def entries(n, dtype):
    padded = np.zeros(max(n, page_headers.PADDED), dtype)
    padded[:n] = np.random.default_rng(n).permutation(n).astype(dtype)
    return padded


def page_of(data, n, **fields):
    """The header of a page of n codes that fills `data`, as `find_pages` gives it."""
    known = {
        "KIND": page_headers.DATA_PAGE,
        "BYTES": len(data),
        "STORED": len(data),
        "VALUES": n,
        "ENCODING": page_headers.RLE_DICTIONARY,
    }
    row = np.zeros((1, page_headers.PAGE_FIELDS), np.int64)
    for name, value in (known | fields).items():
        row[0, getattr(kernels, f"PAGE_{name}")] = value
    return row


def values_of(data, headers, known, n_entries, out, stored=4):
    scratch = np.full(int(headers[:, page_headers.PAGE_BYTES].max()) + page_headers.SPARE, 85, np.uint8)
    return int(kernels.values_of_pages(data, headers, scratch, stored, known, n_entries, out))


def runs_in(data, headers, known, n_entries, ids, ends, stored=8):
    scratch = np.full(int(headers[:, page_headers.PAGE_BYTES].max()) + page_headers.SPARE, 85, np.uint8)
    return int(kernels.runs_of_pages(data, headers, scratch, stored, known, n_entries, ids, ends))


@pytest.mark.pure
@given(st.lists(pages_of_codes(), min_size=1, max_size=3), st.sampled_from([np.uint8, np.uint64]))
def test_values_of_codes(parts, dtype):
    """Of several pages of one dictionary."""
    n_entries = max(n for _, _, n in parts)
    data = np.concatenate([part for part, _, _ in parts])
    codes = [code for _, part, _ in parts for code in part]
    starts = np.cumsum([0, *(len(part) for part, _, _ in parts)]).tolist()
    headers = [
        page_of(page, len(part), START=start) for (page, part, _), start in zip(parts, starts, strict=False)
    ]
    known, out = entries(n_entries, dtype), np.zeros(len(codes), dtype)
    assert values_of(data, np.concatenate(headers), known, n_entries, out) == len(codes)
    assert out.tolist() == known[codes].tolist()
    assert values_of(data, np.concatenate(headers), known, n_entries, out[1:]) == -1


@pytest.mark.pure
@given(st.lists(pages_of_codes(), min_size=1, max_size=3))
def test_runs_of_codes(parts):
    """A run goes on from page to page."""
    n_entries = max(n for _, _, n in parts)
    data = np.concatenate([part for part, _, _ in parts])
    codes = [code for _, part, _ in parts for code in part]
    starts = np.cumsum([0, *(len(part) for part, _, _ in parts)]).tolist()
    headers = np.concatenate(
        [page_of(page, len(part), START=start) for (page, part, _), start in zip(parts, starts, strict=False)]
    )
    known = entries(n_entries, np.int64)
    ids, ends = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
    found = runs_in(data, headers, known, n_entries, ids, ends)
    wanted = [end for end in range(1, len(codes) + 1) if codes[end - 1 : end] != codes[end : end + 1]]
    assert ends[:found].tolist() == wanted
    assert ids[:found].tolist() == [known[codes[end - 1]] for end in wanted]
    if found > 1:
        assert runs_in(data, headers, known, n_entries, ids[1:], ends[: found - 1]) == -1


@pytest.mark.pure
@given(pages_of_codes(), st.data())
def test_codes_that_are_not_good(page, data):
    """Pages that are cut, and codes beyond the dictionary, are refused."""
    bytes_, codes, n_entries = page
    n, highest = len(codes), max(codes)
    known, out = entries(n_entries, np.int64), np.empty((2, n + 8), np.int64)
    cut = data.draw(st.integers(0, len(bytes_) - 1))
    for headers, count in (
        (page_of(bytes_, n, STORED=cut), n_entries),
        (page_of(bytes_, n), highest),
        (page_of(bytes_, n + 8), n_entries),
    ):
        assert values_of(bytes_, headers, known, count, out[0]) == -1
        assert runs_in(bytes_, headers, known, count, out[0], out[1]) == -1


@pytest.mark.pure
@given(st.lists(st.booleans(), min_size=1, max_size=60), st.lists(st.integers(1, 30), max_size=4))
def test_levels_tell_what_is_null(present, lengths):
    levels = coded([int(flag) for flag in present], 1, lengths)[1:]
    n = len(present)
    numbers = np.arange(n, dtype=np.int32)
    data = np.concatenate([np.array([len(levels), 0, 0, 0, *levels], np.uint8), numbers.view(np.uint8)])
    none, out = entries(1, np.uint32), np.zeros(n + 8, np.uint32)

    def read(count=n, **fields):
        return values_of(
            data, page_of(data, count, ENCODING=page_headers.PLAIN, NULLABLE=1, **fields), none, 0, out
        )

    assert read() == (n if all(present) else -1)
    if all(present):
        assert out[:n].tolist() == numbers.tolist()
    assert read(STORED=3 + len(levels)) == -1
    assert read(STORED=len(data) - 1) == -1
    assert read(n + 8) == -1


@pytest.mark.pure
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), min_size=1, max_size=50),
    st.sampled_from(
        [(np.int64, np.uint64), (np.int64, np.uint16), (np.int32, np.uint32), (np.int32, np.uint8)]
    ),
    st.integers(0, 9),
)
def test_plain_numbers(values, kinds, before):
    """At any place of the bytes, up to the last one of them."""
    stored, kept = np.array(values).astype(kinds[0]), kinds[1]
    data = np.concatenate([np.full(before, 7, np.uint8), stored.view(np.uint8)])
    headers = page_of(data, len(stored), ENCODING=page_headers.PLAIN, START=before, STORED=len(data) - before)
    none, out = entries(1, kept), np.zeros(len(stored), kept)
    assert values_of(data, headers, none, 0, out, stored.itemsize) == len(stored)
    assert out.tolist() == stored.astype(kept).tolist()
    ids, ends = np.empty(len(stored), np.int64), np.empty(len(stored), np.int64)
    found = runs_in(data, headers, entries(1, np.int64), 0, ids, ends, stored.itemsize)
    wanted = [
        end for end in range(1, len(stored) + 1) if end == len(stored) or stored[end - 1] != stored[end]
    ]
    assert ends[:found].tolist() == wanted and ids[:found].tolist() == stored[np.array(wanted) - 1].tolist()
    if found > 1:
        assert runs_in(data, headers, entries(1, np.int64), 0, ids, ends[: found - 1], stored.itemsize) == -1


@st.composite
def texts(draw):
    """Bytes of which many stood before, near and far."""
    parts = draw(st.lists(st.binary(min_size=1, max_size=90), min_size=1, max_size=6))
    order = draw(st.lists(st.tuples(st.sampled_from(parts), st.integers(1, 30)), min_size=1, max_size=12))
    return b"".join(part * times for part, times in order)


@pytest.mark.pure
@given(texts(), st.data())
def test_snappy(text, data):
    text += bytes(-len(text) % 4)
    packed_text = np.frombuffer(pa.compress(text, "snappy", asbytes=True), np.uint8).copy()
    none, out = entries(1, np.uint32), np.zeros(len(text) // 4, np.uint32)

    def read(stored, size=None):
        size = len(text) if size is None else size
        fields = {"ENCODING": page_headers.PLAIN, "COMPRESSED": 1, "BYTES": size}
        return values_of(stored, page_of(stored, len(out), **fields), none, 0, out)

    assert read(packed_text) == len(out)
    assert out.tobytes() == text
    assert read(packed_text[:-1].copy()) == -1
    assert read(packed_text, len(text) - 1) == -1
    assert read(packed_text, len(text) + 1) == -1
    damaged = packed_text.copy()
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        wanted = pa.decompress(damaged, len(text), "snappy", asbytes=True)
    except (pa.ArrowException, OSError):
        return  # whatever comes of it, it stays within its bytes
    if read(damaged) > 0:
        assert out.tobytes() == wanted


@pytest.mark.pure
def test_snappy_in_all_its_forms():
    """Each way to say how long a part is, and how far back it was."""
    rng = np.random.default_rng(0)
    far = bytes(rng.integers(0, 256, 70_000, np.uint8))
    literal = [63 << 2, *(len(far) - 1).to_bytes(4, "little"), *far]
    form = list(far)
    stored = [*varint(len(far) + 11 + 64 + 20 + 7), *literal]
    for tag, offset, n, wide in ((1, 300, 11, 1), (2, 5, 64, 2), (3, 69_000, 20, 4), (1, 9, 7, 1)):
        if tag == 1:
            stored += [1 | (n - 4) << 2 | (offset >> 8) << 5, offset & 255]
        else:
            stored += [tag | (n - 1) << 2, *offset.to_bytes(wide, "little")]
        for _ in range(n):
            form.append(form[-offset])
    form += [0] * (-len(form) % 2)
    data = np.array(stored, np.uint8)
    out = np.zeros(len(form) // 4, np.uint32)
    headers = page_of(data, len(out), ENCODING=page_headers.PLAIN, COMPRESSED=1, BYTES=len(far) + 102)
    assert values_of(data, headers, entries(1, np.uint32), 0, out) == len(out)
    assert out.tobytes() == bytes(form[: 4 * len(out)])
    for wrong in ([2 | 3 << 2, 0, 0], [2 | 3 << 2, 255, 255]):  # back by nothing, and to before the beginning
        bad = np.array([*varint(8), 3 << 2, 1, 2, 3, 4, *wrong], np.uint8)
        headers = page_of(bad, 2, ENCODING=page_headers.PLAIN, COMPRESSED=1, BYTES=8)
        assert values_of(bad, headers, entries(1, np.uint32), 0, out) == -1


def header(kind, size, fields):
    """A page's header in Thrift's compact protocol, up to what describes the values."""
    return [0x15, kind << 1, 0x15, *varint(size << 1), 0x15, *varint(size << 1), *fields]


V1 = [0x2C, 0x15, *varint(5 << 1), 0x15, 0, 0x15, 6, 0x15, 6, 0]  # field 5: five plain values, levels in runs


@pytest.mark.pure
@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([0], 1),
        ([0x18, 3, 1, 2, 3, 0], 1),  # bytes in a field that is not known
        ([0x1C, 0x1C, 0x11, 0, 0, 0], 1),  # structures in structures
        ([0x13, 9, 0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0], 1),  # a byte and a float64
        ([0x19, 0x15, 2, 0], -1),  # a list
        ([0x1C, 0x10, 0, 0], -1),  # a field of no type, which pyarrow takes for the end of the structure
        ([0x1C] * 8 + [0] * 9, -1),  # deeper than anything goes
        ([0x18, 100, 0], 0),  # bytes that go on past the end
        ([], 0),
    ],
)
def test_headers(after, expected):
    data = np.array([*header(0, 20, V1), *after, *[0] * 20], np.uint8)
    if not after:
        data = data[: len(header(0, 20, V1))].copy()
    table = np.empty((3, page_headers.PAGE_FIELDS), np.int64)
    found, at = kernels.find_pages(data, table, page_headers.UNCOMPRESSED, True, 5, 20)
    if expected < 0:
        assert (found, at) == (0, -1)
        return
    assert found == expected and at == (len(data) if expected else 0)
    if expected:
        assert table[0, page_headers.PAGE_START] == len(data) - 20
        assert table[0, page_headers.PAGE_VALUES] == 5 and table[0, page_headers.PAGE_NULLABLE]
        assert table[0, page_headers.PAGE_CHECKSUM] == page_headers.ABSENT
    # a field of another type than it should have is no such field
    flagged = data.copy()
    flagged[0] = 0x11
    assert not expected or kernels.find_pages(flagged, table, page_headers.UNCOMPRESSED, True, 5, 20)[1] == -1
    # more values or bytes than the chunk has
    assert kernels.find_pages(data, table, page_headers.UNCOMPRESSED, True, 4, 20)[1] == -1 or not expected
    assert kernels.find_pages(data, table, page_headers.UNCOMPRESSED, True, 5, 19)[1] == -1 or not expected
    # a block of Snappy that says that it holds none of its twenty bytes
    assert kernels.find_pages(data, table, page_headers.SNAPPY, True, 5, 20)[1] == -1 or not expected
