"""CSV as a stream: the bits, ids and types of reading it whole, in bounded memory, whatever turns up after the first rows."""

import bz2
import gzip
import sys

import commands
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastndcg import FastndcgError, InputError, SourceError, evaluate, read_csv, scan_csv
from fastndcg.sources.csv import CSV
from fastndcg.sources.opened import OfText
from fastndcg.sources.paths import File
from fastndcg.sources.read import open_path

SMALL = 1 << 20
MEASURES = ["nDCG@10", "NumRet"]


def _zstd(data):
    return pa.compress(data, "zstd", asbytes=True)


PACKERS = {"": lambda data: data, ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": _zstd}


def _table(rows, *, ids="number", shuffled=False):
    rng = np.random.default_rng(rows)
    queries = np.sort(rng.integers(0, rows // 20 + 1, rows))
    if shuffled:
        queries = rng.permutation(queries)
    named = {
        "number": queries,
        "text": [f"q{each}" for each in queries],
        "padded": [f"{each:07}" for each in queries],
    }
    return pa.table(
        {
            "qid": named[ids],
            "label": rng.integers(0, 4, rows),
            "score": np.round(rng.normal(size=rows), 2),
            "lang": np.array(["en", "de", "fr"])[queries % 3],
            "docid": np.arange(rows),
        }
    )


def _write(path, table):
    sink = pa.BufferOutputStream()
    pa_csv.write_csv(table, sink)
    path.write_bytes(PACKERS[path.suffix if path.suffix in PACKERS else ""](sink.getvalue().to_pybytes()))
    return path


def _same(path, **options):
    whole = evaluate(read_csv(path, **options), MEASURES)
    parts = evaluate(scan_csv(path, memory=SMALL, **options), MEASURES)
    assert parts.values.tobytes() == whole.values.tobytes()
    assert parts.queries.schema == whole.queries.schema
    assert parts.queries.combine_chunks().equals(whole.queries.combine_chunks())
    return parts


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(
    ("ids", "suffix"), [("number", ""), ("text", ".gz"), ("padded", ".bz2"), ("number", ".zst")]
)
def test_the_same_as_whole(tmp_path, ids, shuffled, suffix):
    path = _write(tmp_path / f"a.csv{suffix}", _table(60_000, ids=ids, shuffled=shuffled))
    _same(path, keep="lang", doc_id="docid")


@pytest.mark.parametrize(
    ("column", "late"),
    [
        ("qid", "0007"),
        ("qid", "b"),
        ("score", "0.5"),
        ("score", "inf"),
        ("label", "0.5"),
        ("docid", "d"),
        ("lang", "7"),
    ],
)
def test_a_type_that_shows_late(tmp_path, column, late):
    rows = 70_000
    table = _table(rows).set_column(2, "score", pa.array(np.arange(rows) % 97))
    if column == "lang":
        table = table.set_column(3, "lang", pa.array(["1"] * rows))
    texts = table[column].cast(pa.string()).to_pylist()
    texts[-1] = late
    if column == "lang":
        last = table["qid"].to_numpy() == table["qid"][-1].as_py()
        texts = np.where(last, "007", texts).tolist()
    table = table.set_column(table.column_names.index(column), column, pa.array(texts))
    path = _write(tmp_path / "a.csv", table)
    options = {"keep": "lang", "doc_id": "docid"}
    whole = read_csv(path, **options)
    parts = list(scan_csv(path, memory=SMALL, grouped=column != "qid" or None, **options))
    assert len(parts) > 2
    assert sum(part.n_docs for part in parts) == whole.n_docs
    assert {str(part.scores.dtype) for part in parts} == {str(whole.scores.dtype)}
    assert {str(part.query_ids.type) for part in parts} == {str(whole.query_ids.type)}
    _same(path, **options)


def test_several_files_and_a_query_cut_by_them(tmp_path):
    table = _table(50_000)
    for number, (start, end) in enumerate([(0, 20_011), (20_011, 20_011), (20_011, 50_000)]):
        _write(tmp_path / f"{number}.csv", table.slice(start, end - start))
    _same(sorted(tmp_path.glob("*.csv")), keep="lang")
    _same(str(tmp_path / "*.csv"))


def test_results_are_written_once_though_reading_begins_anew(tmp_path):
    from fastndcg.sources.streams import evaluate_stream

    class Sink:
        def __init__(self):
            self.rows = 0

        def write(self, results):
            self.rows += len(results)

        def restart(self):
            self.rows = 0

    table = _table(60_000)
    path = _write(tmp_path / "a.csv", table)
    with path.open("a") as file:
        file.write("x1,1,0.5,en,0\n")
    sink = Sink()
    scores = evaluate_stream(scan_csv(path, memory=SMALL), lambda part: evaluate(part, "RR"), sink)
    assert sink.rows == scores.n_queries == evaluate(read_csv(path), "RR").n_queries


BAD = {
    "a word": (
        "5,1,none,en,1",
        r'row 60,002 \(the header is row 1\): column "score" has "none"; wanted a number',
    ),
    "too many": ("5,1,0.5,en,1,7", "row 60,002 .*wanted as many fields as the header has"),
    "no grade": ("2999999,,0.5,en,1", r'column "label" has 1 null'),
    "not a number": ("2999999,1,nan,en,1", r'column "score" has 1 NaN value.*row 60002'),
    "no query": (",1,0.5,en,1", r'column "qid" has 1 null'),
}


@pytest.mark.parametrize("threads", [1, None])
@pytest.mark.parametrize("line", BAD)
def test_a_bad_row_far_down_has_its_number(tmp_path, line, threads):
    path = _write(tmp_path / "a.csv", _table(60_000))
    text, message = BAD[line]
    with path.open("a") as file:
        file.write(f"{text}\n")
    with pytest.raises(FastndcgError, match=message) as of_parts:
        evaluate(scan_csv(path, memory=SMALL, threads=threads), "nDCG")
    with pytest.raises(FastndcgError) as of_whole:
        read_csv(path)
    assert str(of_parts.value) == str(of_whole.value)


def test_a_row_longer_than_a_block(tmp_path):
    path = _write(tmp_path / "a.csv", _table(30_000, ids="text"))
    with path.open("a") as file:
        file.write(f"{'q' * 400_000},1,0.5,en,1\nq,1,0.5,en,1\n")
    _same(path)
    with path.open("a") as file:
        file.write(f"{'q' * 4_000_000},1,0.5,en,1\n")
    errors = []
    for read in (read_csv, lambda path: evaluate(scan_csv(path), "nDCG")):
        with pytest.raises(SourceError) as error:
            read(path)
        errors.append(str(error.value))
    assert errors[0] == errors[1]


def test_a_file_is_not_closed_while_threads_may_read_ahead_of_an_error(tmp_path, monkeypatch):
    """They read from whatever file the system opened next under its number: once in 1,500 errors."""
    path = _write(tmp_path / "a.csv", _table(30_000, ids="text"))
    with path.open("a") as file:
        file.write("q,1,high,en,1\n")
    opened, open_unpacking = [], File.open_unpacking
    monkeypatch.setattr(
        File, "open_unpacking", lambda file: opened.append(open_unpacking(file)) or opened[-1]
    )
    with pytest.raises(SourceError, match='"score" has "high"'):
        evaluate(scan_csv(path), "nDCG")
    header, *parsed = opened
    assert header.closed and parsed and not any(each.closed for each in parsed)


def test_text_that_is_not_utf_8(tmp_path):
    path = _write(tmp_path / "a.csv", _table(60_000, ids="text"))
    path.write_bytes(path.read_bytes() + b"q\xff,1,0.5,en,1\n")
    with pytest.raises(SourceError, match=r"row 60,002 .*column .qid. cannot be read.*wanted UTF-8"):
        evaluate(scan_csv(path, memory=SMALL), "nDCG")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_a_packed_file_that_is_damaged(tmp_path, suffix):
    path = _write(tmp_path / f"a.csv{suffix}", _table(60_000))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    with pytest.raises(SourceError, match="cannot be read"):
        evaluate(scan_csv(path, memory=SMALL), "nDCG")


def test_a_query_that_returns(tmp_path):
    path = _write(tmp_path / "a.csv", _table(60_000))
    with path.open("a") as file:
        file.write("0,3,2.5,en,1\n")
    with pytest.raises(InputError, match="query 0 returns at row 60002"):
        evaluate(scan_csv(path, memory=SMALL, grouped=True), "nDCG")
    _same(path)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_that_is_written_to_between_two_passes(tmp_path, suffix):
    path = _write(tmp_path / f"a.csv{suffix}", _table(2000, shuffled=True))
    for read in (list, lambda each: evaluate(each, MEASURES)):
        stream = scan_csv(path)
        read(stream)
        _write(path, _table(3000, shuffled=True))
        with pytest.raises(
            SourceError, match=r"a\.csv(\.gz)? was replaced or written to while it was read; read it again"
        ):
            read(stream)
    changed = scan_csv(path)
    passes = changed._regroup

    def after_a_write():
        _write(path, _table(4000, shuffled=True))  # after the pass in which a query returned
        return passes()

    changed._regroup = after_a_write
    with pytest.raises(SourceError, match="was replaced or written to"):
        evaluate(changed, MEASURES)


@pytest.mark.parametrize("text", ["qid,label,score\n", "qid,label,score\n\n\n"])
def test_no_rows(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert evaluate(scan_csv(path), "nDCG").n_queries == read_csv(path).n_queries == 0
    assert list(scan_csv(path)) == [] or next(iter(scan_csv(path))).n_queries == 0


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["1", "2", "01", "a", '"b\nc"']),
            st.sampled_from(["0", "1", "2.5", "true"]),
            st.sampled_from(["0", "1", "-1.5", "inf", "9007199254740993"]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_any_few_rows(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("few") / "a.csv"
    path.write_text("\n".join(["qid,label,score", *map(",".join, rows)]) + "\n")
    try:
        whole = evaluate(read_csv(path), MEASURES)
    except FastndcgError as error:
        with pytest.raises(type(error)):
            evaluate(scan_csv(path), MEASURES)
        return
    parts = evaluate(scan_csv(path), MEASURES)
    assert parts.values.tobytes() == whole.values.tobytes()
    assert parts.queries.equals(whole.queries)


def test_rows_that_grow_narrower_than_the_first(tmp_path):
    path = tmp_path / "a.csv.gz"
    noise = np.random.default_rng(0).integers(0, 1 << 62, 9_000).astype(str).tolist()
    wide = "".join(f"{row},1,0.5,{each * 60}\n" for row, each in enumerate(noise))
    narrow = "".join(f"{row % 997},1,0.{row % 10},\n" for row in range(100_000))
    path.write_bytes(gzip.compress(f"qid,label,score,note\n{wide}{narrow}".encode(), 1))
    stream = scan_csv(path, memory=4 * SMALL)
    assert stream.n_rows < 50_000
    assert max(part.n_docs for part in stream) < 50_000
    assert stream.n_rows == 109_000


def test_the_command_scores_a_large_csv_in_parts(tmp_path):
    path = _write(tmp_path / "a.csv.gz", _table(60_000, shuffled=True))
    words = ["score", str(path), "-m", "nDCG@10", "--format", "csv"]
    whole, parts = (commands.run(*words, *more) for more in ([], ["--memory", "1MB"]))
    assert (parts.exit_code, parts.stdout, parts.stderr) == (0, whole.stdout, whole.stderr)


COUNT = """
import pathlib, re, sys
import fastndcg as fn
import pyarrow as pa
stream = fn.scan_csv(sys.argv[1], doc_id="docid", memory="8 MB", threads=1)
rows = sum(part.n_docs for part in stream)
# not what getrusage says, which begins at what the parent had
peak = re.search(r"VmHWM:\\s*(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]
print(int(peak) >> 10, pa.default_memory_pool().max_memory() >> 20, rows, stream.nbytes >> 20)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
@pytest.mark.parametrize("shuffled", [False, True])
def test_memory_does_not_grow_with_the_file(tmp_path, shuffled):
    peaks, used = [], []
    for rows in (300_000, 1_200_000):
        table = _table(rows, shuffled=shuffled)
        ids = pa.array([f"{'d' * 150}{row}" for row in range(rows)])
        path = _write(tmp_path / f"{rows}.csv.zst", table.set_column(4, "docid", ids))
        peak, most, found, whole = map(int, commands.printed(COUNT, path).split())
        assert found == rows
        peaks.append(peak)
        used.append(most)
    assert whole > 180
    # its texts grow by 160 MB; what Arrow uses by 3, and what its pool keeps from the system by 15 to 115
    assert used[1] - used[0] < 20
    assert peaks[1] - peaks[0] < 150


def test_a_row_that_is_longer_than_every_block_is_refused_as_where_it_is_read_whole(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"qid,label,score,text\na,1,0.5,{'x' * 3_000_000}\nb,0,0.25,y\n")
    for read in (read_csv, scan_csv):
        with pytest.raises(SourceError, match=r"a\.csv: straddling"):
            read(path)


@pytest.mark.parametrize("days", [["2026-01-01"], [""], ["12:30:00"], ["2026-01-01 10:00:00"]])
@pytest.mark.parametrize("late", ["soon", "2026-01-02T10:00:00", "0.5"])
def test_types_of_a_file_read_whole_are_those_that_fit_all_rows(tmp_path, days, late):
    path, n = tmp_path / "a.csv", 60_000
    path.write_text("qid,label,score,day\n" + f"7,1,1,{days[0]}\n" * n + f"007,0.5,0.25,{late}\n")
    names = ["qid", "label", "score", "day"]
    table = open_path(CSV, path, 1).table(names, OfText(["label", "score"], ["qid"]))
    inferred = pa_csv.read_csv(
        path,
        convert_options=pa_csv.ConvertOptions(
            column_types={"qid": pa.string()}, null_values=[""], strings_can_be_null=True
        ),
    )
    assert table.schema == inferred.schema
    assert table.equals(inferred.cast(table.schema))
