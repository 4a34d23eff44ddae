"""CSV and tab-separated files: the same rankings as from other sources, and every fault named with its row."""

import bz2
import gzip
from pathlib import Path

import commands
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg.errors import ColumnError, FastndcgError, SourceError
from fastndcg.sources.formats import CSV, format_of_name
from fastndcg.sources.trec import read_qrels_run, read_trec

pytestmark = pytest.mark.compiled

TEXT = "qid,label,score\na,1,0.5\nb,0,0.25\na,2,0.75\n"


def _written(folder, text, name="a.csv"):
    path = folder / name
    path.write_bytes(text.encode())
    return path


def _zstd(data):
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "zstd") as out:
        out.write(data)
    return packed.getvalue().to_pybytes()


PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "zst": _zstd}


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ["a.csv", "A.TSV"])
def test_rows_of_any_form(tmp_path, delimiter, end, name):
    text = "\ufeff" + TEXT.replace(",", delimiter).replace("\n", end)
    rankings = fn.read_csv(_written(tmp_path, text, name))
    assert rankings.query_ids.to_pylist() == ["a", "b"]
    assert rankings.relevance.tolist() == [1, 2, 0]
    assert rankings.scores.tolist() == [0.5, 0.75, 0.25]


@pytest.mark.parametrize("width", [200_000, 3_000_000])
def test_a_long_header_and_a_first_line_without_end(tmp_path, width):
    wide = "qid,label,score," + "x" * width
    assert fn.read_csv(_written(tmp_path, f"{wide}\na,1,.5,{'y' * width}\n")).scores.tolist() == [0.5]


def test_a_first_line_that_is_too_long(tmp_path):
    with pytest.raises(
        SourceError, match="begins with a line of more than 67,108,864 bytes; is it a text file"
    ):
        fn.read_csv(_written(tmp_path, "qid,label," + "x" * (1 << 26)))


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("name", ["a.csv.{}", "a.csv"])
def test_packed_files_are_known_by_their_bytes(tmp_path, packer, name):
    path = tmp_path / name.format(packer)
    path.write_bytes(PACKERS[packer](TEXT.encode()))
    assert fn.read_csv(path).relevance.tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.csv", True),
        ("a.tsv.gz", True),
        ("dir/*.CSV", True),
        ("a.csv.parquet", False),
        ("a.txt", False),
        ("csv", False),
    ],
)
def test_names_of_csv(name, expected):
    assert (format_of_name(name) is CSV) is (format_of_name(Path(name)) is CSV) is expected


def test_quoted_fields_and_empty_ones(tmp_path):
    text = 'doc_id,qid,label,score,note\n"d,1","a ""b""",1,1e-3,"two\nlines"\nnull,"a ""b""",0,-inf,\n'
    rankings = fn.read_csv(_written(tmp_path, text), doc_id="doc_id")
    assert rankings.query_ids.to_pylist() == ['a "b"']
    assert rankings.doc_ids is not None
    assert rankings.doc_ids.to_pylist() == ["d,1", "null"]
    assert rankings.scores.tolist() == [0.001, -np.inf]


@pytest.mark.parametrize(
    ("ids", "read"),
    [
        (["7", "12"], [7, 12]),
        (["7", "007"], ["7", "007"]),
        (["7", "+7"], ["7", "+7"]),
        (["1", "x"], ["1", "x"]),
        (["-1", str(2**63)], ["-1", str(2**63)]),
    ],
)
def test_ids_are_integers_only_where_all_are_written_so(tmp_path, ids, read):
    text = "qid,doc_id,region,label,score\n" + "".join(f"{each},{each},{each},1,0.5\n" for each in ids)
    rankings = fn.read_csv(_written(tmp_path, text), doc_id="doc_id", keep="region")
    assert rankings.doc_ids is not None
    assert rankings.query_ids.to_pylist() == rankings.doc_ids.to_pylist() == read
    assert rankings.queries["region"].to_pylist() == read


_ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 4), st.floats(allow_nan=False)), min_size=1, max_size=30
)


@given(_ROWS)
def test_csv_gives_what_parquet_does(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("csv")
    text = "qid,label,score\n" + "".join(f"{query},{grade},{score!r}\n" for query, grade, score in rows)
    queries, grades, scores = zip(*rows, strict=True)
    pq.write_table(pa.table({"qid": queries, "label": grades, "score": scores}), folder / "a.parquet")
    measures = ["nDCG@3", "nDCG(gain='exp2')", "RR"]
    mine = fn.evaluate(fn.read_csv(_written(folder, text), threads=1), measures)
    theirs = fn.evaluate(fn.read_parquet(folder / "a.parquet"), measures)
    assert mine.values.tobytes() == theirs.values.tobytes()
    assert mine.queries[0].to_pylist() == theirs.queries[0].to_pylist()


def test_several_files_and_patterns(tmp_path):
    paths = [_written(tmp_path, TEXT, "1.csv"), _written(tmp_path, "score;label;qid\n2;0.5;c\n", "2.csv")]
    for path in (paths, str(tmp_path / "*.csv"), [path.as_uri() for path in paths]):
        rankings = fn.read_csv(path)
        assert rankings.query_ids.to_pylist() == ["a", "b", "c"]
        assert rankings.relevance.tolist() == [1, 2, 0, 0.5]
    with pytest.raises(
        SourceError, match=r"no file matches .*\.tsv\"; wanted names that end in \.csv or \.tsv"
    ):
        fn.read_csv(str(tmp_path / "*.tsv"))


FAULTS = {
    "": (
        "a.csv is empty, or begins with an empty line; wanted the names of columns there, "
        'as in "query_id,relevance,score"'
    ),
    "a,1,0.5\na,2,0.5\n": 'a.csv has no header: its first line is "a,1,0.5"; wanted the names of columns there',
    "qid,label\na,1\n": "a.csv: no column has a usual name of the score",
    "qid,label,score,score\na,1,1,2\n": 'a.csv: 2 columns are named "score", so score is ambiguous; rename all but one',
    'qid,label,score,"\na,1,0.5,2\n': "a.csv cannot be read: CSV parse error",
    "qid,label,score\na,1,0.5\na,x,0.5\n": 'a.csv, row 3 (the header is row 1): column "label" has "x"; wanted a number',
    'qid,label,score\na,1,"0,5"\n': 'a.csv, row 2 (the header is row 1): column "score" has "0,5"; wanted a number',
    "note,qid,label,score\n,a,1,2020-01-01\n": 'row 2 (the header is row 1): column "score" has "2020-01-01"',
    "qid,label,score\na,1,0.5\na,2\n": "a.csv, row 3 (the header is row 1): Expected 3 columns, got 2: a,2; wanted as many",
    "qid,label,score\na,1,0.5\na,,0.5\n": 'a.csv: column "label" has 1 null; the first is at row 3, query "a"',
    "qid,label,score\n,1,0.5\n": 'a.csv: column "qid" has 1 null',
    "qid,label,score\na,1,nan\n": 'a.csv: column "score" has 1 NaN value',
}


@pytest.mark.parametrize("text", FAULTS)
@pytest.mark.parametrize("threads", [1, None])
def test_faulty_files(tmp_path, text, threads):
    with pytest.raises(FastndcgError) as error:
        fn.read_csv(_written(tmp_path, text), threads=threads)
    assert FAULTS[text] in str(error.value)


def test_files_that_cannot_be_read(tmp_path):
    _written(tmp_path, TEXT)
    with pytest.raises(SourceError, match=r"b\.csv does not exist\. Did you mean \"a\.csv\"\?"):
        fn.read_csv(tmp_path / "b.csv")
    path = tmp_path / "b.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode() * 1000)[:-20])
    with pytest.raises(SourceError, match=r"b\.csv\.gz.*(cannot be read|row)"):
        fn.read_csv(path)
    (tmp_path / "c.csv").write_bytes(b"qid,label,score\n\xff,1,0.5\n")
    with pytest.raises(SourceError, match=r'row 2 .*column "qid" cannot be read: .*UTF8'):
        fn.read_csv(tmp_path / "c.csv")
    with pytest.raises(ColumnError, match=r'd\.csv has no column "score", which other files have'):
        fn.read_csv([_written(tmp_path, TEXT), _written(tmp_path, "qid,label\na,1\n", "d.csv")])
    with pytest.raises(ColumnError, match=r'd\.csv has two columns "score"; rename one of them'):
        fn.read_csv([_written(tmp_path, TEXT), _written(tmp_path, "qid,label,score,score\n", "d.csv")])


# ---- judgments and a run ----

QRELS, RUN = "qid,docno,rel\n1,A,1\n1,B,2\n02,A,1\n", "qid,docno,score\n1,C,2.5\n1,B,1.5\n02,A,0.5\n"


def test_judgments_and_a_run(tmp_path):
    trec = read_trec(
        _written(tmp_path, "1 0 A 1\n1 0 B 2\n02 0 A 1\n", "qrels"),
        _written(tmp_path, "1 Q0 C 1 2.5 t\n1 Q0 B 1 1.5 t\n02 Q0 A 1 0.5 t\n", "run"),
    )
    paths = {
        "csv": (_written(tmp_path, QRELS, "q.csv"), _written(tmp_path, RUN, "r.csv")),
        "tsv": (
            _written(tmp_path, QRELS.replace(",", "\t"), "q.tsv"),
            _written(tmp_path, RUN.replace(",", "\t"), "r.tsv"),
        ),
        "TREC": (
            _written(tmp_path, "1\t0\tA\t1\n1\t0\tB\t2\n02\t0\tA\t1\n", "q0.tsv"),
            _written(tmp_path, "1\tQ0\tC\t1\t2.5\tt\n1\tQ0\tB\t1\t1.5\tt\n02\tQ0\tA\t1\t0.5\tt\n", "r0.tsv"),
        ),
    }
    for qrels in paths.values():
        for run in paths.values():
            both = read_qrels_run(qrels[0], run[1])
            assert both.query_ids.to_pylist() == trec.query_ids.to_pylist()
            assert both.relevance.tolist() == trec.relevance.tolist()
            assert both.scores.tolist() == trec.scores.tolist()


def test_integers_of_csv_meet_integers_of_parquet(tmp_path):
    pq.write_table(pa.table({"qid": [7, 7], "docid": [1, 2], "rel": [1, 2]}), tmp_path / "q.parquet")
    run = _written(tmp_path, "qid,docid,score\n7,2,1\n7,3,0.5\n", "r.csv")
    assert read_qrels_run(tmp_path / "q.parquet", run).relevance.tolist() == [2, 0]


def test_judgments_of_intents(tmp_path):
    qrels = _written(tmp_path, "qid,intent,docno,rel\n1,i,A,1\n1,j,A,1\n1,i,B,1\n", "q.csv")
    rankings = read_qrels_run(qrels, _written(tmp_path, RUN, "r.csv"), intents=True)
    assert rankings.intents is not None
    assert rankings.intents.numbers.tolist() == [0]


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        ("1,A,1\n", RUN, 'q.csv has no header: its first line is "1,A,1"'),
        ("qid,rel\n1,1\n", RUN, "q.csv: no column has a usual name of the doc_id"),
        (QRELS, "qid,docno,score\n1,A,x\n", 'r.csv, row 2 (the header is row 1): column "score" has "x"'),
        (QRELS, "qid,docno,score\n1,A,1\n1,A,2\n", 'document "A" of query "1" is there twice'),
    ],
)
def test_faulty_pairs(tmp_path, qrels, run, message):
    with pytest.raises(FastndcgError) as error:
        read_qrels_run(_written(tmp_path, qrels, "q.csv"), _written(tmp_path, run, "r.csv"))
    assert message in str(error.value)


# ---- the command line ----


def test_the_command_line_reads_csv(tmp_path):
    text = "qid,docno,label,score\n1,A,1,0.5\n1,B,0,0.5\n"
    for name in ("a.csv", "a.tsv", "a.csv.gz"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
        for more in ([], ["--convention", "trec_eval"]):
            result = commands.run("score", path, "-m", "nDCG@10", "--format", "csv", *more)
            assert result.exit_code == 0, result.stderr
            assert result.stdout.splitlines()[1].startswith("nDCG@10," if not more else "nDCG")
            assert "1 query, 2 documents; columns: query=qid, relevance=label, score=score" in result.stderr
    pair = [
        "--qrels",
        str(_written(tmp_path, QRELS, "q.csv")),
        "--run",
        str(_written(tmp_path, RUN, "r.csv")),
    ]
    result = commands.run("score", *pair)
    assert result.exit_code == 0, result.stderr
    assert "columns: query=qid, doc_id=docno, relevance=rel, score=score" in result.stderr


def test_rows_of_a_file_are_counted_as_its_lines(tmp_path):
    """Whatever is wrong with a row, it has one number."""
    qrels = _written(tmp_path, "qid,docno,label\n1,A,1\n1,B,0\n", "q.csv")
    for text, wrong in (
        ("1,A,0.5\n1,B,x\n", "row 3"),
        ("1,A,0.5\n1,B,\n", "row 3"),
        ("1,A,0.5\n1,A,0.5\n", "row 3"),
    ):
        with pytest.raises(fn.FastndcgError, match=wrong):
            read_qrels_run(qrels, _written(tmp_path, "qid,docno,score\n" + text, "r.csv"))
    for text in ("1,1,0.5\n1,0,x\n", "1,1,0.5\n1,0,\n", "1,1,0.5\n1,0,nan\n"):
        with pytest.raises(fn.FastndcgError, match="row 3"):
            fn.read_csv(_written(tmp_path, "qid,label,score\n" + text, "p.csv"))
