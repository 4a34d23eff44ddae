"""Rows brought together by query: ids of any kind, in any order, compiled and not."""

from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastndcg.kernels.compile import worlds
from fastndcg.kernels.reading import joining, rows
from fastndcg.kernels.reading.ids import hash_of_number
from fastndcg.rankings import grouping
from fastndcg.rankings.grouping import group_by_query

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
        monkeypatch.setattr(grouping.worlds, "compiled_driver", lambda *_: None)
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
    n = 1 << 17 if worlds.mode() == "compiled" else 1 << 12
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


# ---- ids that somebody has made to be slow ----

_OLD_FACTOR, _ARROWS = 0x9E3779B97F4A7C15, (11400714785074694791, 14029467366897019727)
_SECRETS = [grouping.SECRET, *((np.uint64(start), np.uint64(key)) for start, key in ((0, 1 | 1 << 63), (1 << 40, 12345)))]  # fmt: skip


def made(n):
    """Whole numbers that differ in few bits, that lie in steps, and that had one hash before hashes had a secret."""
    i = np.arange(n)
    words = i.astype(np.uint64) << np.uint64(32) | i.astype(np.uint64)
    reversed_words = (i.astype(np.uint64) << np.uint64(64 - n.bit_length())).byteswap()
    return {
        **{f"<< {shift}": i << shift for shift in (0, 8, 20, 32, 40, 63 - n.bit_length(), 64 - n.bit_length())},
        **{f"steps of {step}": i * step for step in (-1, 3, 1000, 1_000_003, 10**9, 10**12)},
        "one hash": (words * np.uint64(pow(_OLD_FACTOR, -1, 1 << 64))).view(np.int64),
        "one hash for Arrow": (reversed_words * np.uint64(pow(_ARROWS[0], -1, 1 << 64))).view(np.int64),
        "floats": i.astype(np.float64).view(np.int64),
        "squares": i * i,
        "halves alike": i | i << 32,
    }  # fmt: skip


def made_texts(n):
    """ASCII texts of 16 characters that all have one hash for Arrow, which multiplies each half and adds them up."""
    rng, found = np.random.default_rng(0), np.empty((0, 16), np.uint8)
    while len(found) < n:
        ends = rng.integers(48, 122, (1 << 18, 8)).astype(np.uint8)
        rest = (ends.view("<u8")[:, 0] * np.uint64(_ARROWS[0])).byteswap() ^ np.uint64(12345)
        starts = (rest.byteswap() * np.uint64(pow(_ARROWS[1], -1, 1 << 64))).view(np.uint8).reshape(-1, 8)
        is_text = ((starts < 128) & (starts > 31)).all(axis=1)
        found = np.append(found, np.hstack([starts, ends])[is_text], axis=0)
    return pa.array([row.tobytes().decode("ascii") for row in found[:n]])


def arrows_hashes(texts):
    words = np.frombuffer(b"".join(texts.cast(pa.large_binary()).to_pylist()), "<u8").reshape(-1, 2)
    return (words[:, 1] * np.uint64(_ARROWS[0])).byteswap() ^ (words[:, 0] * np.uint64(_ARROWS[1])).byteswap()


def probes(homes):
    """Places looked at for each of these distinct ids, on average, in a table of twice as many places or more."""
    order, counted = np.sort(homes.astype(np.int64)), np.arange(len(homes))
    return float((np.maximum.accumulate(order - counted) + counted - order).mean()) + 1


@pytest.mark.parametrize("n", [1 << 10, 1 << 16])
def test_a_table_of_any_ids_is_linear(n):
    """Half full, it needs 1.5 looks at each; ids that differ in high bits needed half as many as there are ids."""
    low, secret = np.uint64(2 * n - 1), grouping.SECRET
    for name, numbers in made(n).items():
        homes = hash_of_number(numbers.view(np.uint64), secret) & low
        assert probes(homes) < 2, name
        assert probes(joining.hashes_of_numbers(numbers, secret) & np.int64(low)) < 2, name
        hashes, leading = np.empty((2, n), np.int64)
        for texts in (
            numbers.tobytes(),
            b"".join(b"query-%010d" % (number % 10**10) for number in numbers.tolist()),
        ):
            ends = np.arange(n + 1) * (len(texts) // n)
            if len({texts[end : end + len(texts) // n] for end in ends[:-1].tolist()}) == n:
                joining.plain_digest_ids(ends, np.frombuffer(texts, np.uint8), secret, hashes, leading)
                assert probes(hashes & np.int64(low)) < 2, name


def test_the_tables_of_the_kernels_are_linear():
    is_compiled = worlds.mode() == "compiled"
    kernels = import_module(f"fastndcg.{'compiled' if is_compiled else 'kernels'}.reading.rows")
    n = 1 << (16 if is_compiled else 10)
    for name, numbers in made(n).items():
        slots, codes, (first, counts) = (
            np.zeros((2 * n, 2), np.int64),
            np.empty(n, np.int32),
            np.empty((2, n), np.int64),
        )
        with np.errstate(over="ignore"):
            assert kernels.codes_of_numbers(numbers, grouping.SECRET, slots, codes, first, counts) == n
        assert codes.tolist() == list(range(n))
        (taken,) = np.nonzero(slots[:, 1])
        homes = hash_of_number(slots[taken, 0].view(np.uint64), grouping.SECRET) & np.uint64(2 * n - 1)
        assert ((taken - homes.astype(np.int64)) % (2 * n)).mean() < 1, name


def test_arrow_gets_ids_of_many_hashes():
    """It compared each of 40,000 such texts with each: 2 s, where others took 2 ms."""
    texts = made_texts(5000)
    assert len(set(arrows_hashes(texts).tolist())) == 1
    assert len(set(arrows_hashes(grouping._disguised(texts)).tolist())) > 4000
    for part in (texts, texts[7:], texts.cast(pa.large_string())[9:3000]):
        assert grouping.encode(part).equals(part.dictionary_encode())
    for numbers in made(5000).values():
        for kind in (np.int64, np.uint64, np.int32, np.int16):
            ids = pa.array(numbers.astype(kind))
            assert grouping.encode(ids).equals(ids.dictionary_encode())
    dates = pa.array(np.arange(5000) % 77).cast(pa.timestamp("us"))
    assert grouping.encode(dates).equals(dates.dictionary_encode())


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
    for few in (0, 1 << 10):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(grouping, "_FEW", few)
            grouped = group_by_query(pa.array(ids, kind))
        assert pa.array(grouped.query_ids).to_pylist() == found
        assert grouped.offsets.tolist() == offsets
        assert grouped.rows is None or grouped.rows.tolist() == rows


def test_nothing_depends_on_the_secret(monkeypatch):
    """Queries keep their order of first appearance, and each of these secrets gives the same numbers."""
    rng = np.random.default_rng(3)
    for ids in (pa.array(rng.integers(-(2**60), 2**60, 50)), made_texts(50)):
        rows, found = ids.take(pa.array(rng.integers(0, 50, 3000))), []
        for secret in _SECRETS:
            monkeypatch.setattr(grouping, "SECRET", secret)
            codes, first_rows, counts = grouping.numbers_of(rows)
            found.append((codes.tolist(), first_rows.tolist(), counts.tolist()))
        assert found[0] == found[1] == found[2]
