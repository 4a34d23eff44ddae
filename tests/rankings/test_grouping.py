"""Rows brought together by query: ids of any kind, in any order, compiled and not."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastndcg.kernels import rows
from fastndcg.kernels.compile import dispatch
from fastndcg.tables import grouping
from fastndcg.tables.grouping import group_by_query

pytestmark = pytest.mark.pure

# a length each way from where texts are compared by words of eight bytes, and texts that differ at one end
# alone
TEXTS = ["", "a", "é", "ab", *("x" * n for n in (7, 8, 9, 15, 16, 17, 40)), *("x" * n + "y" for n in (7, 8, 15, 31)), "y" + "x" * 16]  # fmt: skip
IDS = {
    "few": np.arange(12),
    "wide": np.array([0, -1, 2**62, -(2**63), 2**63 - 1, 1 << 32, 5]),
    "unsigned": np.array([0, 2**64 - 1, 2**63, 7], np.uint64),
    "bytes": np.arange(-5, 5, dtype=np.int8),
    "texts": pa.array(TEXTS),
    "long texts": pa.array(TEXTS, pa.large_string()),
    "binary": pa.array([text.encode() for text in TEXTS]),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "dates": pa.array([3, 1, 2], pa.date32()),
}


def wanted(ids):
    rows_of = {}
    for row, value in enumerate(ids):
        rows_of.setdefault(value, []).append(row)
    rows = [row for each in rows_of.values() for row in each]
    return list(rows_of), np.cumsum([0, *map(len, rows_of.values())]).tolist(), rows


@pytest.fixture(params=["plain", "as it is"])
def world(request, monkeypatch):
    """Arrow's and NumPy's way, and the kernels."""
    if request.param == "plain":
        monkeypatch.setattr(grouping.dispatch, "compiled_driver", lambda *_: None)
    return str(request.param)


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("n", [0, 1, 2, 300])
@pytest.mark.parametrize("first", [0, 3])
def test_rows_are_grouped(kind, n, first, world):
    rng = np.random.default_rng(n)
    values = pa.array(IDS[kind])
    ids = values.take(pa.array(rng.integers(0, len(values), n + first)))[first:]
    found, offsets, rows = wanted(ids.to_pylist())
    grouped = group_by_query(ids)
    assert pa.array(grouped.query_ids).to_pylist() == found
    assert grouped.offsets.tolist() == offsets
    assert (rows if grouped.rows is not None else list(range(n))) == rows
    if grouped.rows is not None:
        assert grouped.rows.tolist() == rows
        assert grouped.first_rows.tolist() == [rows[start] for start in offsets[:-1]]
    columns = rng.integers(0, 5, n).astype(np.uint8), rng.random(n)
    for column, placed in zip(columns, grouped.in_order(*columns), strict=True):
        assert placed.dtype == column.dtype
        assert np.array_equal(placed, column[rows])


@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_more_ids_than_a_first_table_has_room_for(kind):
    rng = np.random.default_rng(0)
    n = 1 << 17 if dispatch.mode() == "compiled" else 1 << 12
    numbers = np.append(rng.permutation(n) * 10**9, rng.integers(0, n, n) * 10**9)
    ids = pa.array([f"query-{number}" for number in numbers]) if kind == "texts" else pa.array(numbers)
    grouped = group_by_query(ids)
    _, offsets, rows = wanted(numbers.tolist())
    assert grouped.offsets.tolist() == offsets
    assert grouped.rows is not None
    assert grouped.rows.tolist() == rows
    scores = rng.random(2 * n).astype(np.float32)
    assert np.array_equal(grouped.in_order(scores, scores)[0], scores[rows])


def test_a_product_says_the_bucket_of_every_code():
    """Of up to 2**31 codes, at the edges of their buckets; from 300,000 codes on some were placed in the next bucket."""
    random = np.random.default_rng(6)
    for n_codes in [
        *range(1, 100),
        322_034,
        *(2 ** random.uniform(6, 31, 300)).astype(int).tolist(),
        2**31 - 1,
    ]:
        width = -(-n_codes // rows.BUCKETS)
        scale = rows.scale_of(width)
        for edge in range(0, n_codes + 1, width):
            for code in {max(edge - 1, 0), min(edge, n_codes - 1), n_codes - 1}:
                assert rows.bucket_of(np.int32(code), scale) == code // width, (n_codes, code)


@pytest.mark.parametrize("n_queries", [322_034, 1_000_003])
def test_many_queries_in_any_order(n_queries):
    random = np.random.default_rng(n_queries)
    ids = np.append(np.arange(n_queries), random.integers(0, n_queries, n_queries // 2))
    random.shuffle(ids)
    one, other = np.arange(len(ids), dtype=np.float32), np.arange(len(ids)) % 251
    found = group_by_query(pa.array(ids))
    placed = found.in_order(one, other)
    order = np.argsort(found.codes, kind="stable")
    np.testing.assert_array_equal(found.query_ids.to_numpy()[found.codes], ids)
    np.testing.assert_array_equal(placed[0], one[order])
    np.testing.assert_array_equal(placed[1], other[order])


@given(st.data())
def test_any_ids_are_grouped_as_by_a_dict(data):
    kinds = {
        pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9).map(lambda i: i << 48),
        pa.uint64(): st.integers(0, 2**64 - 1),
        pa.string(): st.text(max_size=20),
        pa.binary(): st.binary(max_size=40),
    }
    kind = data.draw(st.sampled_from(list(kinds)))
    values = data.draw(st.lists(kinds[kind], min_size=1, max_size=60))
    ids = data.draw(st.lists(st.sampled_from(values), max_size=200))
    found, offsets, rows = wanted(ids)
    grouped = group_by_query(pa.array(ids, kind))
    assert pa.array(grouped.query_ids).to_pylist() == found
    assert grouped.offsets.tolist() == offsets
    assert grouped.rows is None or grouped.rows.tolist() == rows
