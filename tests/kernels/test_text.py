"""The scanner of TREC files, beside Python's own reading, and compiled drivers beside the plain way."""

from __future__ import annotations

import re
from decimal import Decimal, localcontext
from fractions import Fraction
from importlib import import_module

import numba
import numpy as np
import pytest
from fastndcg.compiled.reading import decimals
from fastndcg.compiled.reading import scanners as kernels
from hypothesis import example, given
from hypothesis import strategies as st

from fastndcg.kernels.reading import joining
from fastndcg.rankings.grouping import SECRET
from fastndcg.sources import lines

compiled = numba.njit(error_model="numpy")
compiles = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@compiled
def round_decimal(whole, exponent):
    return decimals.round_decimal(whole, exponent)


@compiled
def find_blanks(data, start, stop, out):
    return kernels.find_blanks(data, start, stop, out)


@compiled
def keep_documents(data, table, lines, each, row, out, offsets, end):
    return kernels.keep_documents(data, table, lines, each, row, out, offsets, end)


@compiled
def read_numbers(data, table, lines, each, before, words, row, values, odd, n_odd):
    return decimals.read_numbers(data, table, lines, each, before, words, row, values, odd, n_odd)


# ---- numbers ----


def _halfway(bits):
    """The exact decimal expansion of the middle between a float and the next one."""
    low, high = np.array([bits, bits + 1], np.uint64).view(np.float64)
    middle = (Fraction(float(low)) + Fraction(float(high))) / 2
    with localcontext() as context:
        context.prec = 1200
        return format(Decimal(middle.numerator) / Decimal(middle.denominator), "f")


@given(st.integers(0, 2**64 - 1) | st.integers(0, 10**17 - 1), st.integers(-350, 320))
@example(9007199254740993, 0)  # halfway between two
@example(9007199254740995, 0)
@example(2**64 - 1, -342)
@example(2**64 - 1, 308)
@example(45035996273704985, -1)  # halfway, and ten divides it
@example(17976931348623157, 292)
@example(22250738585072014, -324)
@example(6, -325)
def test_a_decimal_is_rounded_as_python_does(whole, exponent):
    value, is_certain = round_decimal(np.uint64(whole), exponent)
    if is_certain:
        assert value == float(f"{whole}e{exponent}")
    assert decimals.plain_round_decimal(whole, exponent) == (float(f"{whole}e{exponent}"), True)


@given(st.floats(2.3e-308, 8e307))
def test_the_shortest_form_of_a_normal_float_is_certain(value):
    digits, exponent = f"{value:.16e}".split("e")
    whole = np.uint64(int(digits.replace(".", "")))
    assert round_decimal(whole, int(exponent) - 16) == (value, True)


@given(
    st.integers(0, 2046),
    st.integers(0, 2**52 - 1),
    st.integers(16, 19),
    st.integers(-2, 2),
)
def test_decimals_near_the_middle_of_two_floats(exponent, mantissa, digits, off):
    text = _halfway((exponent << 52) + mantissa)
    point = text.find(".") if "." in text else len(text)
    plain = text.replace(".", "")
    first = len(plain) - len(plain.lstrip("0"))
    whole = int(plain[first : first + digits] or 0) + off
    if whole < 0:
        return
    power = point - first - len(plain[first : first + digits])
    value, is_certain = round_decimal(np.uint64(whole), power)
    if is_certain:
        assert value == float(f"{whole}e{power}")


_NUMBERS = (
    st.floats(allow_nan=False).map(repr)
    | st.floats(-100, 100).map(repr)
    | st.floats(-1e6, 1e6).map(lambda value: f"{value:.6f}")
    | st.floats(-1e3, 1e3).map(lambda value: f"{value:.25f}")
    | st.floats(allow_nan=False, allow_infinity=False).map(lambda value: f"{value:.20e}")
    | st.builds(_halfway, st.integers(0, 2046 << 52))
    | st.builds(
        lambda bits, more: _halfway(bits) + more, st.integers(1000 << 52, 1030 << 52), st.sampled_from("05")
    )
    | st.from_regex(r"[+-]?[0-9]{1,30}\.?[0-9]{0,30}([eE][+-]?[0-9]{1,5})?", fullmatch=True)
)


@given(st.lists(_NUMBERS, min_size=1, max_size=30))
def test_any_number_has_the_bits_that_python_gives_it(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("numbers") / "run"
    path.write_text("".join(f"q Q0 d{row} 1 {number} t\n" for row, number in enumerate(numbers)))
    read = lines.read_lines(path, _scan_run, "").values
    assert read.tobytes() == np.array([float(number) for number in numbers]).tobytes()


def _scan_run(block, columns, filled):
    return kernels.scan_trec(block, 6, columns, filled)


def _scan_qrels(block, columns, filled):
    return kernels.scan_trec(block, 4, columns, filled)


# ---- blocks ----


def _bytes(text):
    return np.frombuffer(text, np.uint8).copy()


@given(st.binary(max_size=400) | st.text(" \n\ta#\u00e9", max_size=400).map(str.encode), st.integers(0, 70))
def test_blanks(text, start):
    data = _bytes(text)
    start = min(start, len(data))
    out = np.full(len(data) + 64, -1, np.int32)
    count, ends = find_blanks(data, start, len(data), out)
    blanks = np.flatnonzero(data[start:] <= 32) + start
    assert out[:count].tolist() == blanks.tolist()
    assert ends == (data[blanks] == 10).sum()


@given(st.lists(st.integers(1, 140), min_size=1, max_size=12), st.integers(0, 70))
def test_documents_of_any_length_fill_their_column_and_no_more(lengths, room):
    data = _bytes(
        b"".join(b"q 0 " + bytes([97 + row]) * length + b" 1\n" for row, length in enumerate(lengths))
    )
    table = np.flatnonzero(data <= 32).astype(np.int32)
    n = sum(lengths)
    held = np.full(n + room + 64, 255, np.uint8)
    out, offsets = held[: n + room], np.zeros(len(lengths) + 1, np.int64)
    assert keep_documents(data, table, len(lengths), 4, 0, out, offsets, 0) == n
    assert (held[n + room :] == 255).all()
    assert out[:n].tobytes() == b"".join(bytes([97 + row]) * length for row, length in enumerate(lengths))
    assert offsets.tolist() == [0, *np.cumsum(lengths).tolist()]


@given(
    st.lists(
        _NUMBERS | st.sampled_from([".", "-", "+.", "1.2.3", "1-", "inf", "x" * 30]), min_size=1, max_size=40
    )
)
def test_numbers_of_a_chunk(numbers):
    """Those that are read have the right bits, and the others are named for the reader that comes after."""
    data = _bytes("".join(f"q 0 d {number}\n" for number in numbers).encode())
    table = np.flatnonzero(data <= 32).astype(np.int32)
    words = np.zeros((decimals.N_WORDS, len(numbers)), np.uint64)
    values, odd = np.zeros(len(numbers)), np.zeros((len(numbers), 3), np.int64)
    n_odd = read_numbers(data, table, len(numbers), 4, 2, words, 0, values, odd, 0)
    left = {row: data[start:stop].tobytes().decode() for row, start, stop in odd[:n_odd].tolist()}
    assert left.items() <= dict(enumerate(numbers)).items()
    for row, number in enumerate(numbers):
        if row not in left:
            assert values[row : row + 1].tobytes() == np.array([float(number)]).tobytes()


# ---- files ----

# of what Python takes for blanks, only bytes up to that of a blank are
_FIELD = st.text("ab1\u00e9#.-\x7f\x85\u00a0\u3000", min_size=1, max_size=9)
_BLANKS = st.sampled_from([" ", " ", " ", "\t", "  ", " \t ", "\x00", "\x01\x1c", "\x0b"])


@st.composite
def _run_lines(draw):
    """Runs of lines of one form, between lines of another, and what has no row."""
    text, rows = [], []
    for _ in range(draw(st.integers(1, 6))):
        blank, end = draw(_BLANKS), draw(st.sampled_from(["\n", "\n", "\r\n", " x\n"]))
        tag = draw(_FIELD)
        query = draw(_FIELD.filter(lambda field: not field.startswith("#")))
        for _ in range(draw(st.sampled_from([1, 2, 3, 30]))):
            if draw(st.integers(0, 9)) == 0:
                query = draw(_FIELD.filter(lambda field: not field.startswith("#")))
            doc = draw(_FIELD) * draw(st.sampled_from([1, 1, 1, 8]))
            score = draw(st.floats(-50, 50).map(repr) | st.integers(0, 9).map(str))
            text.append(blank.join([query, "Q0", doc, "1", score, tag]) + end)
            rows.append((query, doc, float(score)))
        if draw(st.booleans()):
            text.append(
                draw(st.sampled_from(["\n", "# one two three four five\n", " \n", "#\r\n", "\x1a\x00\n"]))
            )
    return "".join(text), rows, tag


@given(_run_lines(), st.sampled_from([1 << 20, 100]))
def test_lines_of_any_form(tmp_path_factory, run, block):
    text, rows, tag = run
    path = tmp_path_factory.mktemp("runs") / "run"
    path.write_bytes(text.encode())
    read = lines.read_lines(path, _scan_run, "", sizes=lines.Sizes(block))
    queries = [read.queries[code].as_py() for code in read.query_codes.tolist()]
    assert list(zip(queries, read.docs.to_pylist(), read.values.tolist(), strict=True)) == rows
    assert read.last[5] == tag


@pytest.mark.parametrize("end", ["\n", "\r\n", "  \n"])
@pytest.mark.parametrize("n", [1, 5, 400, 5000])
def test_judgments_in_more_than_a_chunk(tmp_path, n, end):
    rows = [(f"q{row // 7}", f"doc{row * 37}", row % 4) for row in range(n)]
    (tmp_path / "qrels").write_text("".join(f"{query} 0 {doc} {grade}{end}" for query, doc, grade in rows))
    read = lines.read_lines(tmp_path / "qrels", _scan_qrels, "")
    queries = [read.queries[code].as_py() for code in read.query_codes.tolist()]
    assert list(zip(queries, read.docs.to_pylist(), read.values.tolist(), strict=True)) == rows


@pytest.mark.parametrize("length", [10, 16_000, 16_384, 40_000, 1 << 20, 3 << 20])
@pytest.mark.parametrize("field", range(6))
def test_fields_longer_than_a_chunk(tmp_path, field, length):
    fields = ["q", "Q0", "d", "1", "0.5", "t"]
    fields[field] = "0" * length if field == 4 else "x" * length
    rows = [["q", "Q0", "a", "1", "2.5", "t"], fields, ["q", "Q0", "z", "1", "1.5", "t"]]
    (tmp_path / "run").write_text("".join(" ".join(row) + "\n" for row in rows))
    read = lines.read_lines(tmp_path / "run", _scan_run, "")
    assert read.docs.to_pylist() == [row[2] for row in rows]
    assert read.values.tolist() == [float(row[4]) for row in rows]
    assert read.queries.to_pylist() == list(dict.fromkeys(row[0] for row in rows))


def test_a_line_without_end(tmp_path):
    (tmp_path / "run").write_text("q Q0 d 1 1 t\n" + "x" * 5000)
    with pytest.raises(
        lines.SourceError, match=r"run has a line of more than 1,023 bytes; is it a text file\?"
    ):
        lines.read_lines(tmp_path / "run", _scan_run, "a line", sizes=lines.Sizes(block=64, longest=1000))


def test_the_shortest_lines(tmp_path):
    """Of as many as a chunk can hold there are no more than there is room for."""
    (tmp_path / "qrels").write_text("q 0 d 1\n" * 9000)
    (tmp_path / "blanks").write_text("q 0 d 1\n" + "\n" * 70_000 + "q 0 e 1\n" + " " * 70_000)
    (tmp_path / "open").write_text("q Q0 d 1 2 " + "t " * 30_000 + "\n")
    assert len(lines.read_lines(tmp_path / "qrels", _scan_qrels, "").values) == 9000
    read = lines.read_lines(tmp_path / "blanks", _scan_qrels, "")
    assert (read.docs.to_pylist(), read.line_of(1)) == (["d", "e"], 70_002)
    assert lines.read_lines(tmp_path / "open", _scan_run, "").values.tolist() == [2.0]


@pytest.mark.parametrize(("text", "fields"), [("q 0 d\n", 3), ("q 0 d 1 2\n", 5), (" q 0\n", 2)])
@pytest.mark.parametrize("before", [0, 3, 3000])
def test_the_line_of_a_malformed_judgment(tmp_path, text, fields, before):
    (tmp_path / "qrels").write_text("q 0 d 1\n" * before + text + "q 0 d 1\n" * 5)
    with pytest.raises(lines.SourceError, match=rf"qrels, line {before + 1}: {fields} fields in"):
        lines.read_lines(tmp_path / "qrels", _scan_qrels, "")


# ---- the plain way of the drivers, against the compiled one ----

_ID = (
    st.binary(max_size=3)
    | st.binary(max_size=40)
    | st.sampled_from([b"doc12345", b"doc123456", b"document-0000001"])
)


def _both(name, *arguments):
    """What the compiled driver returns, and the plain one, each with its own copies of what they write to."""
    found = []
    for module in (
        import_module(f"fastndcg.compiled.{name[0]}"),
        import_module(f"fastndcg.kernels.{name[0]}"),
    ):
        own = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
        with np.errstate(all="ignore"):
            returned = getattr(module, name[1])(*own)
        found.append((returned, own))
    return found


def _ids(texts):
    offsets = np.cumsum([0, *map(len, texts)])
    data, n = _bytes(b"".join(texts)), len(texts)
    found = _both(("reading.joining", "digest_ids"), offsets, data, SECRET, *np.zeros((2, n), np.int64))
    assert found[0][1][3].tolist() == found[1][1][3].tolist()
    assert found[0][1][4].tolist() == found[1][1][4].tolist()
    return joining.Ids(*found[0][1][3:], offsets, data)


@compiles
@given(st.data())
def test_ids_are_hashed_joined_and_ordered_alike(data):
    lists = st.lists(st.lists(_ID, max_size=60, unique=data.draw(st.booleans())), min_size=2, max_size=2)
    sides = data.draw(
        st.lists(lists, min_size=1, max_size=4).map(lambda queries: list(zip(*queries, strict=True)))
    )
    ids, offsets, rows = [], [], []
    for side in sides:
        texts = [text for query in side for text in query]
        ids.append(_ids(texts))
        offsets.append(np.cumsum([0, *map(len, side)]))
        rows.append(np.random.default_rng(len(texts)).permutation(len(texts)))
    for by_number in (False, True):
        if by_number:  # whole numbers, which have no texts
            none = np.zeros(0, np.int64), np.zeros(0, np.uint8)
            ids = [joining.Ids(each.leading & 0xFFFFFFFF, each.leading, *none) for each in ids]
        found = _both(
            ("reading.joining", "join_documents"),
            *(each for side in range(2) for each in (offsets[side], rows[side], ids[side])),
            np.full(len(rows[1]), -2),
        )
        assert found[0][0] == found[1][0]
        if found[0][0][0] == 0:
            assert found[0][1][6].tolist() == found[1][1][6].tolist()
        keys = np.array(
            data.draw(st.lists(st.integers(0, 3), min_size=len(rows[1]), max_size=len(rows[1]))), np.uint64
        )
        ascending, texts = data.draw(st.booleans()), ids[1]
        named = list(zip(keys.tolist(), joining.plain_ids(texts), strict=True))
        orders = [
            [named[row] for row in own[5].tolist()]
            for _, own in _both(
                ("reading.joining", "order_documents"),
                offsets[1],
                rows[1],
                keys,
                texts,
                ascending,
                np.zeros(len(rows[1]), np.int64),
            )
        ]
        assert orders[0] == orders[1]


@compiles
@given(
    _run_lines() | st.binary(max_size=300).map(lambda text: (text.decode("latin-1"), [], "")),
    st.sampled_from([3, 4, 6]),
)
def test_lines_are_read_alike(run, fields):
    """Whatever is in a block: rows, queries, comments, and the first line that is malformed."""
    data = _bytes(run[0].encode() + b"\n")
    n = len(data) + 80
    columns = kernels.TextColumns(
        *(np.zeros(n, np.uint8) if name.endswith("_bytes") else np.zeros(n, np.float64 if name == "values" else np.int64)
          for name in kernels.TextColumns._fields[:-1]),
        np.zeros((n, 3), np.int64),
    )  # fmt: skip
    found = []
    for world in ("compiled", "kernels"):
        scan = import_module(f"fastndcg.{world}.reading.scanners").scan_trec
        own, filled = kernels.TextColumns(*(column.copy() for column in columns)), np.zeros(6, np.int64)
        malformed = scan(data, fields, own, filled)
        count, doc_end, runs, query_end, skipped, n_odd = filled.tolist()
        values = own.values[:count].tolist()
        for row, start, stop in own.odd[:n_odd].tolist():
            values[row] = bytes(data[start:stop])
        numbers = [value if isinstance(value, bytes) else float(value) for value in values]
        texts = own.doc_bytes[:doc_end].tobytes(), own.query_bytes[:query_end].tobytes()
        places = (
            own.doc_offsets[: count + 1].tolist(),
            own.query_ends[:runs].tolist(),
            own.query_rows[:runs].tolist(),
        )
        found.append((malformed, texts, places, own.skipped[:skipped].tolist(), numbers))
    for one, other in zip(found[0][-1], found[1][-1], strict=True):
        read = [
            float(each)
            if isinstance(each, bytes) and re.fullmatch(rb"[+-]?\d+(\.\d*)?(e[+-]?\d+)?", each)
            else each
            for each in (one, other)
        ]
        assert repr(read[0]) == repr(read[1])
    assert found[0][:-1] == found[1][:-1]
