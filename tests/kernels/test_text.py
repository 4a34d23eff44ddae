"""Lines of TREC files, beside Python's own reading."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastndcg.sources import text_lines

pytestmark = pytest.mark.compiled


# ---- numbers ----


def _halfway(bits):
    """The exact decimal expansion of the middle between a float and the next one."""
    low, high = np.array([bits, bits + 1], np.uint64).view(np.float64)
    middle = (Fraction(float(low)) + Fraction(float(high))) / 2
    with localcontext() as context:
        context.prec = 1200
        return format(Decimal(middle.numerator) / Decimal(middle.denominator), "f")


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
    | st.from_regex(r"[+-]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]+)([eE][+-]?[0-9]{1,9})?", fullmatch=True)
    | st.sampled_from(["+inf", "-Infinity", "1e400", "1e-400", "5e-324", "9007199254740993"])
)


@given(st.lists(_NUMBERS, min_size=1, max_size=30))
def test_any_number_has_the_bits_that_python_gives_it(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("numbers") / "run"
    path.write_text("".join(f"q Q0 d{row} 1 {number} t\n" for row, number in enumerate(numbers)))
    read = text_lines.read_lines(path, text_lines.RUN).values
    assert read.tobytes() == np.array([float(number) for number in numbers]).tobytes()


# ---- files ----

# of what Python takes for blanks, only bytes up to that of a blank are
_FIELD = st.text("ab1\u00e9#.-\x7f\x85\u00a0\u3000", min_size=1, max_size=9)
_BLANKS = st.sampled_from([" ", " ", " ", "\t", "  ", " \t ", "\x00", "\x01\x1c", "\x0b"])


@st.composite
def _run_lines(draw):
    """Runs of lines of one form, between lines of another, and what has no row."""
    text, rows, numbers = [], [], []
    for _ in range(draw(st.integers(1, 6))):
        blank, end = draw(_BLANKS), draw(st.sampled_from(["\n", "\n", "\r\n", " x\n"]))
        tag = draw(_FIELD)
        words = tag + " x" if end == " x\n" and "\t" in blank else tag  # between tabs a tag has its blanks
        query = draw(_FIELD.filter(lambda field: not field.startswith("#")))
        for _ in range(draw(st.sampled_from([1, 2, 3, 30]))):
            if draw(st.integers(0, 9)) == 0:
                query = draw(_FIELD.filter(lambda field: not field.startswith("#")))
            doc = draw(_FIELD) * draw(st.sampled_from([1, 1, 1, 8]))
            score = draw(st.floats(-50, 50).map(repr) | st.integers(0, 9).map(str))
            text.append(blank.join([query, "Q0", doc, "1", score, tag]) + end)
            rows.append((query, doc, float(score)))
            numbers.append(len(text))
        if draw(st.booleans()):
            text.append(
                draw(st.sampled_from(["\n", "# one two three four five\n", " \n", "#\r\n", "\x1a\x00\n"]))
            )
    return "".join(text), rows, words, numbers


@given(_run_lines(), st.sampled_from([(1 << 20, 1), (100, 3), (16, 1), (33, 2), (1 << 10, 5)]))
def test_lines_of_any_form(tmp_path_factory, run, blocks):
    text, rows, tag, numbers = run
    path = tmp_path_factory.mktemp("runs") / "run"
    path.write_bytes(text.encode())
    read = text_lines.read_lines(path, text_lines.RUN, size=blocks[0], threads=blocks[1])
    queries = [read.queries[code].as_py() for code in read.query_codes.tolist()]
    assert list(zip(queries, read.docs.to_pylist(), read.values.tolist(), strict=True)) == rows
    assert (read.tag, [read.line_of(row) for row in range(len(rows))]) == (tag, numbers)


@pytest.mark.parametrize("length", [10, 16_000, 16_384, 40_000, 1 << 20, 3 << 20])
@pytest.mark.parametrize("field", range(6))
def test_fields_longer_than_a_chunk(tmp_path, field, length):
    fields = ["q", "Q0", "d", "1", "0.5", "t"]
    fields[field] = "0" * length if field == 4 else "x" * length
    rows = [["q", "Q0", "a", "1", "2.5", "t"], fields, ["q", "Q0", "z", "1", "1.5", "t"]]
    (tmp_path / "run").write_text("".join(" ".join(row) + "\n" for row in rows))
    read = text_lines.read_lines(tmp_path / "run", text_lines.RUN)
    assert read.docs.to_pylist() == [row[2] for row in rows]
    assert read.values.tolist() == [float(row[4]) for row in rows]
    assert read.queries.to_pylist() == list(dict.fromkeys(row[0] for row in rows))


@pytest.mark.parametrize(("text", "fields"), [("q 0 d\n", 3), ("q 0 d 1 2\n", 5), (" q 0\n", 2)])
@pytest.mark.parametrize(("before", "size"), [(0, 1 << 20), (3, 16), (3000, 1 << 10)])
def test_the_line_of_a_malformed_judgment(tmp_path, text, fields, before, size):
    (tmp_path / "qrels").write_text("q 0 d 1\n" * before + text + "q 0 d 1\n" * 5)
    with pytest.raises(text_lines.SourceError, match=rf"qrels, line {before + 1}: {fields} fields in"):
        text_lines.read_lines(tmp_path / "qrels", text_lines.QRELS, size=size, threads=3)


@given(
    _run_lines() | st.binary(max_size=300).map(lambda text: (text.decode("latin-1"), [], "", [])),
    st.sampled_from([text_lines.THREE_FIELDS, text_lines.QRELS, text_lines.INTENTS, text_lines.RUN]),
)
def test_lines_are_read_alike(run, form):
    """Where pyarrow's reader reads a block, patterns read the same, or names a line that has another form."""
    data = run[0].encode() + b"\n"
    found = text_lines._by_csv(form, data)
    if found is None:
        return
    wanted = text_lines._by_pattern(form, data)
    assert found.values.tobytes() == wanted.values.tobytes()
    assert [_column(each) for each in found] == [_column(each) for each in wanted]


def _column(column):
    return repr(column.tolist())


@pytest.mark.parametrize("blank", [" ", "\t"])
@pytest.mark.parametrize("end", ["\n", ""])
def test_lines_of_one_form_need_no_patterns(tmp_path, monkeypatch, blank, end):
    """Quotes, commas, signs of comments within fields, backslashes, what is no UTF-8, and a last line without an end."""
    docs = ['"a"', "a,b", "a#b", "\\", "'", "NULL", "nan", "caf\u00e9", '"', "\ufeff"]
    rows = [blank.join(["q#1", "Q0", doc, "1", "1e-3", "t"]).encode() for doc in docs]
    rows.append(rows[0].replace(b'"a"', b"\xff"))
    (tmp_path / "run").write_bytes(b"\n".join(rows) + end.encode())
    monkeypatch.setattr(text_lines, "_by_pattern", None)
    read = text_lines.read_lines(tmp_path / "run", text_lines.RUN)
    assert read.docs.to_pylist() == [*(doc.encode() for doc in docs), b"\xff"]
    assert read.queries.to_pylist() == ["q#1"] and set(read.values.tolist()) == {1e-3}
