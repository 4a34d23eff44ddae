"""LETOR and svmlight files: labels and queries against the same data in tables, scores from everywhere, every fault named."""

import bz2
import gzip
import io
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg.errors import ColumnError, InputError, InputTypeError, SourceError
from fastndcg.sources import text_lines
from fastndcg.sources.letor import read_ltr

pytestmark = pytest.mark.compiled

FILE = "2 qid:7 1:0.5 2:NULL # doc A\n0 qid:7 2:0.1 1:0.3 1:0.4\n1 qid:9 1:1 #docid = x inc = 1\n"
SCORES = [0.25, 0.5, 0.125]


def facts(rankings):
    return (
        rankings.query_ids.to_pylist(),
        rankings.offsets.tolist(),
        rankings.relevance.tolist(),
        rankings.scores.tolist(),
    )


PLAIN = ([7, 9], [0, 2, 3], [2, 0, 1], SCORES)


@pytest.mark.pure
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.replace(" ", "\t"),
        lambda text: text.replace(" ", "  "),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.removesuffix("\n"),
        lambda text: "# header\n\n" + text,
        lambda text: "\ufeff" + text,
        lambda text: "".join(" ".join(line.split()[:2]) + "\n" for line in text.splitlines()),
        lambda text: text.replace("2 qid", "2.0 qid").replace("1 qid", "+1e0 qid"),
    ],
    ids=["plain", "tabs", "double", "crlf", "no-newline", "comments", "bom", "no-features", "floats"],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress], ids=["plain", "gz", "bz2"])
def test_forms_of_lines(write, change, pack):
    assert facts(read_ltr(write("file", pack(change(FILE).encode())), scores=SCORES)) == PLAIN


@pytest.mark.pure
def test_query_ids_become_numbers_only_where_that_loses_nothing(write):
    for ids, wanted in (
        (["1", "-2"], [1, -2]),
        (["1", "01"], ["1", "01"]),
        (["1", "x"], ["1", "x"]),
        (["1", "9" * 30], ["1", "9" * 30]),
    ):
        path = write("file", "".join(f"0 qid:{name} 1:1\n" for name in ids))
        assert read_ltr(path, scores=[1, 2]).query_ids.to_pylist() == wanted


@pytest.mark.pure
def test_scores_from_everywhere(write, tmp_path):
    path = write("file", FILE)
    np.save(tmp_path / "scores.npy", np.array(SCORES, np.float32))
    table = tmp_path / "table.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3], "score": SCORES, "other": [0, 0, 0]}), table)
    pq.write_table(pa.table({"anything": SCORES}), tmp_path / "one.parquet")
    texts = [
        write("a.txt", "0.25\n0.5\n0.125\n"),
        write("b.txt", "2.5e-1\r\n 0.5\r\n0.125"),
        write("c.gz", gzip.compress(b"0.25\n0.5\n.125\n")),
    ]
    for scores in (*texts, str(texts[0]), tmp_path / "scores.npy", table, tmp_path / "one.parquet",
                   SCORES, np.array(SCORES), pa.array(SCORES), pa.chunked_array([SCORES[:1], SCORES[1:]])):  # fmt: skip
        assert facts(read_ltr(path, scores=scores)) == PLAIN
    assert read_ltr(path, scores=table, score_column="other").scores.tolist() == [0, 0, 0]
    for file in ("scores.npy", write("scores.npy.gz", gzip.compress(_npy(np.array(SCORES, np.float32))))):
        assert read_ltr(path, scores=tmp_path / file).scores.dtype == np.float32


@pytest.mark.pure
def test_query_files(write):
    path = write("rank.test", "2 1:0.5\n0 2:0.1\n1\n")
    absent = r"rank\.test has no qid: on its lines, and there is no .*rank\.test\.query; pass query_file="
    with pytest.raises(SourceError, match=absent):
        read_ltr(path, scores=SCORES)
    sizes = write("rank.test.query", "2\n1\n")
    for file, given_sizes in ((path, None), (path, sizes), (write("with.qid", FILE), sizes)):
        assert facts(read_ltr(file, scores=SCORES, query_file=given_sizes)) == ([0, 1], *PLAIN[1:])
    write("rank.test.query", "2\n2\n")
    for given_sizes, error, message in (
        (None, InputError, r"rank\.test\.query: group adds up to 4 documents, but relevance has 3"),
        (write("negative", "4\n-1\n"), InputError, "negative: group has a negative size, -1"),
        (
            write("words", "two\n"),
            SourceError,
            r"words: line 1 has \"two\"; expected the number of rows of a query on each line",
        ),
        ("absent", SourceError, "absent does not exist"),
    ):
        with pytest.raises(error, match=message):
            read_ltr(path, scores=SCORES, query_file=given_sizes)


@pytest.mark.parametrize(
    ("file", "folder"), [("rank.test", "lightgbm_lambdarank"), ("Fold1.test.txt.gz", "mq2008")]
)
@pytest.mark.parametrize("column", ["score", "score_1dp"])
def test_real_files_as_their_tables(data, file, folder, column):
    table = next((data / folder).glob("scored*.parquet"))
    rankings = read_ltr(data / folder / file, scores=table, score_column=column)
    columns = pq.read_table(table)
    wanted = fn.Rankings.from_query_ids(columns["qid"], columns["label"], columns[column])
    assert np.array_equal(rankings.relevance, wanted.relevance)
    assert np.array_equal(rankings.offsets, wanted.offsets)
    assert rankings.query_ids.to_pylist() == wanted.query_ids.to_pylist()
    reference = pq.read_table(data / folder / "reference_per_query.parquet").to_pylist()
    values = fn.evaluate(rankings, "nDCG@10").values[0].tolist()
    expected = [
        row["value"] for row in reference
        if (row["scores"], row["peer"], row["measure"], row["gain"]) == (column, "sklearn", "ndcg@10", "linear")
    ]  # fmt: skip
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


labels = st.integers(-3, 10**6) | st.floats(-1e3, 1e3, allow_nan=False)
features = st.lists(
    st.tuples(st.integers(1, 10**6), st.sampled_from(["NULL", "nan", "1", "-0.5", "1e-9"])), max_size=8
)


@given(
    st.lists(st.tuples(labels, st.integers(0, 5), features), min_size=1, max_size=40),
    st.sampled_from([16, 61, 1 << 20]),
)
def test_any_file(tmp_path_factory, rows, block):
    path = tmp_path_factory.mktemp("ltr") / "file"
    path.write_text(
        "".join(
            f"{label!r} qid:{query} {' '.join(f'{i}:{value}' for i, value in values)}\n"
            for label, query, values in rows
        )
    )
    rankings = read_ltr(path, scores=np.arange(len(rows)))
    wanted = fn.Rankings.from_query_ids(
        [query for _, query, _ in rows], [label for label, _, _ in rows], np.arange(len(rows))
    )
    assert facts(rankings) == facts(wanted)
    read = text_lines.read_lines(path, text_lines.LETOR_LINE, size=block)
    queries = read.queries.take(pa.array(read.query_codes)).to_pylist()
    assert list(zip(read.values.tolist(), queries, strict=True)) == [(label, str(q)) for label, q, _ in rows]


@pytest.mark.pure
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 qid:1\nx qid:1 1:2\n", r'file, line 2: "x" is not a number in "x qid:1 1:2"; expected label qid:query feature:value'),
        ("1 qid:1\n\n# c\n2 qid: 1:2\n", r"file, line 4: no qid: where other lines have one"),
        ("1 qid:1\n\n2 1:0.5\n", r"file, line 3: no qid: where other lines have one"),
        ("", r"file has no rows; expected at least one"),
        ("1:0.5 2:1\n", r'file, line 1: "1:0.5" is not a number'),
        (b"1\xe9 qid:1 1:2\n", r'file, line 1: "1\\xe9" is not a number'),
    ],
)  # fmt: skip
def test_faulty_lines(write, text, message):
    with pytest.raises(SourceError, match=message):
        read_ltr(write("file", text), scores=SCORES)


def _npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.pure
def test_a_damaged_npy_file(write):
    path, good = write("file", FILE), _npy(np.array(SCORES))
    huge = good.replace(b"(3,)", b"(9999999999999,)").replace(b" " * 12 + b"\n", b"\n")
    assert len(huge) == len(good)
    damaged = [good[:at] + bytes([byte]) + good[at + 1 :] for at in range(128) for byte in (0, 40, 255)]
    for content in [huge, *damaged, *(good[:size] for size in range(6, len(good), 5))]:
        with suppress(InputError):
            read_ltr(path, scores=write("scores.npy", content))


@pytest.mark.pure
def test_faulty_scores(write, tmp_path):
    path, two = write("file", FILE), tmp_path / "two.parquet"
    pq.write_table(pa.table({"a": SCORES, "b": SCORES}), two)
    for scores, error, message in (
        (SCORES[:2], InputError, "scores has 2 scores and .*file 3 rows; give one score for each row"),
        (write("short.txt", "1\n"), InputError, r"short\.txt has 1 score and .*file 3 rows"),
        (write("words.txt", "1\na\n3\n"), SourceError, r"words\.txt: line 2 has \"a\"; expected one score on each line"),
        (write("empty.txt", ""), SourceError, r"empty\.txt is empty; expected one score on each line"),
        (tmp_path / "absent.txt", SourceError, r"absent\.txt does not exist"),
        (write("cut.npy", b"\x93NUMPY\x01"), SourceError, r"cut\.npy cannot be read as a \.npy file"),
        (write("square.npy", _npy(np.zeros((3, 1)))), SourceError, r"square\.npy has float64 of shape \(3, 1\); expected a number"),
        (write("packed.gz", gzip.compress(b"1\n" * 100)[:12]), SourceError, r"packed\.gz cannot be read"),
        ([1.0, np.nan, 2.0], InputError, "NaN"),
        (["a", "b", "c"], InputTypeError, "scores is of dtype"),
        (two, ColumnError, r"two\.parquet.*score"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            read_ltr(path, scores=scores)
    with pytest.raises(ColumnError, match=r'parquet: there is no column "aa" for score.*Did you mean "a"\?'):
        read_ltr(path, scores=two, score_column="aa")
    with pytest.raises(SourceError, match="cut cannot be read"):
        read_ltr(write("cut", gzip.compress(FILE.encode() * 1000)[:60]), scores=SCORES)
