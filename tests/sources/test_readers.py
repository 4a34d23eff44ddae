"""Every format, whole and as a stream, plain and packed, in any order: the same results as of Parquet, and every fault said."""

import bz2
import gzip
import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache, partial

import commands
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg.errors import ColumnError, FastndcgError, InputError, InputTypeError, SourceError
from fastndcg.sources.dataset import TextTypes
from fastndcg.sources.formats import format_of
from fastndcg.sources.inputs import open_tables
from fastndcg.sources.open_file import File
from fastndcg.sources.streams import TableStream
from fastndcg.tables.roles import Roles

pytestmark = pytest.mark.compiled

packed_by_gzip = partial(gzip.compress, mtime=0)  # so that tests have one name in every process
_RNG = np.random.default_rng(3)
N = 900
# dates and numbers with zeros before them are texts, and stay different; scores are ties in part, and of
# every length
LONG = pa.table(
    {
        "qid": [f"2024-01-{1 + n // 40:02}" for n in range(N)],
        "docno": [f"{n:05}" for n in range(N)],
        "label": _RNG.integers(0, 4, N),
        "score": np.where(_RNG.random(N) < 0.5, _RNG.integers(0, 9, N), _RNG.normal(size=N)),
        "country": [("de", "fr", None, "caf\u00e9")[n // 40 % 4] for n in range(N)],
    }
)


def _dumped(table):
    return [json.dumps(row, ensure_ascii=False) for row in table.to_pylist()]


def _in_memory(write):
    def written(table):
        sink = pa.BufferOutputStream()
        write(table, sink)
        return sink.getvalue().to_pybytes()

    return written


def _stream(table, sink):
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


def _csv(table, comma=","):
    rows = [
        table.column_names,
        *(["" if each is None else str(each) for each in row.values()] for row in table.to_pylist()),
    ]
    return "".join(comma.join(row) + "\n" for row in rows).encode()


WRITTEN = {
    "a.parquet": _in_memory(pq.write_table),
    "a.csv": _csv,
    "a.tsv": lambda table: _csv(table, "\t").replace(b"\n", b"\r\n"),
    "a.jsonl": lambda table: "".join(row + "\n" for row in _dumped(table)).encode(),
    "a.ndjson": lambda table: ("\ufeff" + "\r\n".join(_dumped(table))).encode(),
    "a.json": lambda table: ("[" + ",\n ".join(_dumped(table)) + "]").encode(),
    "b.json": lambda table: "\n".join(json.dumps(row, indent=1) for row in table.to_pylist()).encode(),
    "a.feather": _in_memory(lambda table, sink: pf.write_feather(table, sink, chunksize=100)),
    "a.arrow": _in_memory(lambda table, sink: pf.write_feather(table, sink, compression="uncompressed")),
    "a.arrows": _in_memory(_stream),
    "b.feather": _in_memory(lambda table, sink: pf.write_feather(_coded(table), sink, compression="zstd")),
}
PACKERS = {
    "": bytes,
    ".gz": packed_by_gzip,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


def _coded(table):
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(place, field.name, table[field.name].dictionary_encode())
    return table


def written(folder, text, name="a.csv"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def scored(*words, stdin=None, code=0):
    result = commands.run("score", *words, input=stdin)
    assert result.exit_code == code, result.stderr
    return result


# ---- one law for all formats ----

MEASURES = ["nDCG@10", "AP", "ERR", "nDCG(gain='exp2')@5", "NumRet"]
WORDS = [word for measure in MEASURES[:-1] for word in ("-m", measure)]
OPTIONS = {"keep": "country", "doc_id": "docno"}
ORDERS = {"sorted": np.arange(N), "any order": np.random.default_rng(1).permutation(N)}
IDS = {
    "dates": lambda table: table,
    "numbers": lambda table: table.set_column(0, "qid", pa.array(np.arange(N) // 40 + 7)),
    "padded": lambda table: table.set_column(0, "qid", pa.array([f"{row // 40:04}" for row in range(N)])),
}


def scan(path, memory=1 << 20, threads=2, **roles):
    """A stream of any format."""
    return TableStream(open_tables([path], None).choose(Roles(**roles)), memory=memory, threads=threads)


def assert_same(found, expected):
    assert found.values.tobytes() == expected.values.tobytes()
    assert found.queries.to_pydict() == expected.queries.to_pydict()
    assert found.queries.schema.names == expected.queries.schema.names


@pytest.mark.parametrize(
    ("packed", "order", "ids"),
    [("", order, ids) for order in ORDERS for ids in IDS]
    + [(each, "any order", "padded") for each in PACKERS if each],
)
@pytest.mark.parametrize("name", WRITTEN)
def test_every_format_gives_the_values_of_a_table(tmp_path, monkeypatch, name, packed, order, ids):
    monkeypatch.setattr("fastndcg.sources.streams._LEAST_MEMORY", 1)
    table = IDS[ids](LONG).take(ORDERS[order])
    expected = fn.evaluate(fn.Rankings.from_arrow(table, **OPTIONS), MEASURES)
    path = written(tmp_path, PACKERS[packed](WRITTEN[name](table)), f"{name}{packed}")
    assert_same(fn.evaluate(path, MEASURES, **OPTIONS), expected)
    assert_same(fn.evaluate(scan(path, 20_000, **OPTIONS), MEASURES), expected)
    if order == "sorted":
        assert sum(part.n_docs for part in scan(path, 20_000, **OPTIONS)) == N
    renamed = written(tmp_path, path.read_bytes(), "a.csv" if "csv" not in name else "a.parquet.txt")
    if name != "a.tsv":  # known by its first bytes, whatever its name
        assert_same(fn.evaluate(renamed, "AP"), fn.evaluate(table, "AP"))


LISTS = pa.table(
    {
        "qid": ["a", "b", "c"],
        "label": [[1, 0, 2], [3], []],
        "score": [[0.5, 0.5, 0.25], [1.0], []],
        "docno": [["2024-01-01", "y", "z"], ["2024-01-01 00:00"], []],
    }
)


@pytest.mark.parametrize("name", [name for name in WRITTEN if "json" in name or name.startswith("a.arrow")])
def test_rows_of_lists(tmp_path, name):
    (tmp_path / name).write_bytes(WRITTEN[name](LISTS))
    rankings = fn.Rankings.from_arrow(LISTS, doc_id="docno")
    for measure, convention in (("nDCG", "trec_eval"), ("AP", None)):
        scores = fn.evaluate(tmp_path / name, measure, doc_id="docno", convention=convention)
        expected = fn.evaluate(rankings, measure, convention=convention)
        assert scores.values.tobytes() == expected.values.tobytes()


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("packed", PACKERS)
def test_standard_input_has_every_format(tmp_path, name, packed):
    pq.write_table(LONG, tmp_path / "standard input.parquet")
    content = PACKERS[packed](WRITTEN[name](LONG))
    words = [*WORDS, "--by", "country", "--format", "json"]
    expected, found = scored(tmp_path / "standard input.parquet", *words), scored("-", *words, stdin=content)
    assert (found.stdout, found.stderr) == (expected.stdout, expected.stderr)


def test_letor_with_scores(tmp_path):
    rows = LONG.to_pylist()
    (tmp_path / "t.txt").write_text("".join(f"{row['label']} qid:{row['qid']} 1:0.5 # x\n" for row in rows))
    (tmp_path / "s.txt").write_text("".join(f"{row['score']!r}\n" for row in rows))
    np.save(tmp_path / "s.npy", LONG["score"].to_numpy())
    pq.write_table(LONG.select(["score", "country"]), tmp_path / "s.parquet")
    expected = fn.evaluate(LONG, ["nDCG@10", "AP"]).values
    for scores in ("s.txt", "s.npy", "s.parquet"):
        words = ["--scores", tmp_path / scores, "-m", "nDCG@10", "-m", "AP", "--out", tmp_path / "o.parquet"]
        assert f"score={tmp_path / scores}" in scored(tmp_path / "t.txt", *words).stderr
        found = pq.read_table(tmp_path / "o.parquet")
        assert found["query_id"].to_pylist() == LONG["qid"].unique().to_pylist()
        assert np.array([found["nDCG@10"], found["AP"]]).tobytes() == expected.tobytes()
        letor = packed_by_gzip((tmp_path / "t.txt").read_bytes())
        words = ["--scores", tmp_path / scores, "--score", "score", "--ascending", "--format", "json"]
        below = scored("-", *words, stdin=letor).stdout
        assert (
            json.loads(below)["measures"][0]["mean"]
            == fn.evaluate(LONG, "nDCG@10", ascending=True).mean()["nDCG@10"]
        )
    for words, message in (
        (["t.txt"], "t.txt is a LETOR file, which has grades but no scores; give them, as in --scores"),
        (
            ["t.txt", "--scores", "s.txt", "--keep", "x", "--out", "o.csv"],
            "--keep cannot be used with --scores: LETOR",
        ),
        (["t.txt", "u.txt", "--scores", "s.txt"], "--scores belongs to one PATH; give only one"),
        (
            ["--qrels", "q", "--run", "r", "--scores", "s.txt"],
            "--scores cannot be used with --qrels and --run",
        ),
        (["t.txt", "--scores", "s.txt", "--memory", "1GB"], "--memory cannot be used with LETOR"),
    ):
        given = [str(tmp_path / word) if word.endswith(("txt", "csv")) else word for word in words]
        assert message in scored(*given, code=3 if words == ["t.txt"] else 2).stderr


@pytest.mark.parametrize("command", ["compare", "explain", "report", "conventions"])
def test_other_commands_take_standard_input(tmp_path, undrawn, command):
    (tmp_path / "b.csv").write_bytes(WRITTEN["a.csv"](LONG))
    words = {
        "compare": ["-", str(tmp_path / "b.csv")],
        "explain": ["-", "--id", "2024-01-01"],
        "report": ["-", "--out", str(tmp_path / "r.html")],
        "conventions": ["-", "--name", "sklearn"],
    }[command]
    if command == "report":
        pytest.importorskip("altair")
    result = commands.run(command, *words, input=WRITTEN["a.feather"](LONG))
    assert result.exit_code == 0, result.stderr
    assert "standard input" in result.output or command in ("explain", "conventions", "report")


@pytest.mark.parametrize(
    ("words", "stdin", "code", "message"),
    [
        (["score", "-"], b"", 3, "standard input is empty; expected a table, judgments or a run"),
        (["score", "-", "-"], b"x", 2, "- appears twice, but standard input can be read only once"),
        (["score", "--qrels", "-", "--run", "-"], b"x", 2, "- appears twice, but standard input can be read only once"),
        (["score", "-"], WRITTEN["a.parquet"](LONG)[:3000], 3, "standard input cannot be read: "),
        (["score", "-"], packed_by_gzip(WRITTEN["a.csv"](LONG))[:-30], 3, "standard input"),
        (["score", "-"], b"q 0 d 1\n", 3, "standard input is a TREC file of judgments or of a run; both are needed, as in --qrels"),
        (["score", "-"], b"1 qid:3 1:0.5\n", 3, "standard input is a LETOR file, which has grades but no scores"),
        (["score", "-"], b"qid,label\n1,1\n", 3, "standard input: no column has a usual name of the score"),
    ],
)  # fmt: skip
def test_faulty_standard_input(words, stdin, code, message):
    result = commands.run(*words, input=stdin)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_pipes_and_terminals(tmp_path):
    """Those of a shell, which Click's runner has not: a pipe by its name, a terminal, no standard input, a reader that is gone."""
    (tmp_path / "a.jsonl").write_bytes(WRITTEN["a.jsonl"](LONG))
    (tmp_path / "q.parquet").write_bytes(WRITTEN["a.parquet"](LONG.select(["qid", "docno", "label"])))
    (tmp_path / "r.parquet").write_bytes(WRITTEN["a.parquet"](LONG.select(["qid", "docno", "score"])))
    fastndcg = f"{sys.executable} -m fastndcg"
    lines = [
        f"{fastndcg} score <(gzip -c a.jsonl) --format csv | cut -d, -f1,9",
        (
            f"{fastndcg} score --qrels <(cat q.parquet) --run <(cat r.parquet) --format csv 2>/dev/null | cut "
            "-d, -f1,9"
        ),
        f"{fastndcg} score - <&-",
        f"head -c 100 r.parquet | {fastndcg} score - | cat",
        f"cat a.jsonl | {fastndcg} score - --format json | true",
        f"exec 3<a.jsonl; {fastndcg} score /dev/fd/3 --format csv | cut -d, -f1,9",
    ]
    found = []
    for line in lines:
        run = subprocess.run(["/bin/bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False,
                             env=os.environ | {"FASTNDCG_KERNELS": "plain"})  # fmt: skip
        assert "Traceback" not in run.stderr, run.stderr
        found.append((run.stdout, run.stderr))
    assert found[0][0] == found[1][0] == found[5][0] == "measure,queries\nnDCG@10,23\n"
    assert found[2] == (
        "",
        "- means standard input, but nothing is piped into it; expected COMMAND | fastndcg ... -\n",
    )
    assert found[3][1].startswith("standard input cannot be read: ")
    terminal, user = pty.openpty()
    run = subprocess.run(
        [*fastndcg.split(), "score", "-"], stdin=user, capture_output=True, text=True, check=False
    )
    os.close(terminal)
    os.close(user)
    assert (run.returncode, run.stderr) == (2, found[2][1])


@pytest.mark.parametrize("name", WRITTEN)
def test_judgments_and_runs_of_every_format(tmp_path, name):
    qrels, run = LONG.select(["qid", "docno", "label"]), LONG.select(["qid", "docno", "score"])
    pq.write_table(qrels, tmp_path / "q.parquet")
    pq.write_table(run, tmp_path / "r.parquet")
    (tmp_path / f"q_{name}.gz").write_bytes(packed_by_gzip(WRITTEN[name](qrels)))
    (tmp_path / f"r_{name}").write_bytes(WRITTEN[name](run))
    printed = [
        scored("--qrels", tmp_path / one, "--run", tmp_path / other, *WORDS, "--format", "json").stdout
        for one, other in (("q.parquet", "r.parquet"), (f"q_{name}.gz", f"r_{name}"))
    ]
    # ids that a text writes as numbers are no texts in another, and its documents are put in another order
    assert printed[1] == printed[0]


@pytest.mark.parametrize(
    ("name", "start", "has_rank", "expected"),
    [
        ("a", b"PAR1", None, "Parquet"),
        ("a.csv", b"PAR1", False, "Parquet"),
        ("a.csv", b"ARROW1\0\0", None, "Feather"),
        ("a.parquet", b'{"qid": 1}', None, "JSON Lines"),
        ("a.csv", b" [\n{", None, "JSON Lines"),
        ("a", b"[x],label,score", None, "CSV"),
        ("a", b"\xff\xff\xff\xff\x10\0", None, "Feather"),
        ("a.parquet", b"qid,label\n1,2", None, "Parquet"),
        ("a.parquet", b"q 0 d 1\n", False, "TREC"),
        ("a.parquet", b"\0\1\2", True, "Parquet"),
        ("a.txt", b"\xef\xbb\xbfqid,docno,score\n", True, "CSV"),
        ("a.txt", b"q Q0 d,1 2 0.5 t\n", True, "TREC"),
        ("a.txt", b"q\td\t1\n", True, "TREC"),
        ("a.txt", b"q\td\tscore\n", True, "CSV"),
        ("a.txt", b"q Q0 d,1 2 x t\n", True, "CSV"),
        ("a.txt", b"q\tQ0\td\t2\t0.5\n", True, "TREC"),
        ("a.tsv", b"q\t0\td\t2\n", False, "TREC"),
        ("a.tsv", b"q\t0\td\t2\n", None, "CSV"),
        ("a.txt", b"# comment\n\n2 qid:7 1:0.5\n", None, "LETOR"),
        ("a.txt", b"q\t0\td\t2\n", None, "TREC"),
        ("a.txt", b"q Q0 d 1 0.5 t\r\n", None, "TREC"),
        ("", b"one", None, "CSV"),
        ("", b"", True, "TREC"),
        ("a.csv", b"", None, "CSV"),
    ],
)
def test_formats_by_first_bytes(name, start, has_rank, expected):
    assert format_of(name, start, has_rank=has_rank).name == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.bin", b"", "a.bin is empty; expected Parquet, CSV, JSON Lines or Feather"),
        ("a.xlsx", b"PK\3\4\0\0", r"begins with b'PK\\x03\\x04.*which is not a supported format; expected Parquet, CSV"),
        ("a.csv", "qid,label,score\n".encode("utf-16-le"), "a.csv"),
        ("a.txt", b"q 0 d 2\n", r"a.txt is a TREC file of judgments or of a run; both are needed"),
        ("a.txt", b"1 qid:3 1:0.5\n", "is a LETOR file, which has grades but no scores"),
        ("a.jsonl", b'{"qid":1,"label":1,"score":1}\n{"qid":1,"label":2}\n', 'column "score" has 1 null'),
        ("a.jsonl", b'{"qid":1,"label":1,"score":1}\n{"qid":1,"label":"x","score":1}\n', "changed from number to string"),
        ("a.jsonl", b'{"qid":null,"label":1,"score":1}\n', 'column "qid"'),
        ("a.jsonl", b'{"qid":1,"label":1}\n', "no column has a usual name of the score"),
        ("a.jsonl", b'{"qid":"\xff","label":1,"score":1}\n', 'a.jsonl, line 1: column "qid" has .*; expected string in UTF-8'),
        ("a.jsonl", b'{"qid":18446744073709551615,"label":1,"score":1}\n', "qid"),
        ("a.json", b'[{"qid":1},', "a.json cannot be read"),
        ("a.json", b"[" * 100_000 + b"{", "a.json"),
        ("a.jsonl", b'{"a":' * 100_000, "a.jsonl"),
        ("a.jsonl", b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"\n", "a.jsonl cannot be read: maximum recursion"),
        ("a.json", b'{"a":\n' * 50_000 + b"1" + b"}" * 50_000, "a.json has judgments or a run"),
        ("a.json", b'[{"a":\n' + b'{"a":\n' * 50_000 + b"1" + b"}" * 50_001 + b"]", "a.json cannot be read: maximum recursion"),
        ("a.json", b'{"qid":{"0":1,"1":2},"label":{"0":1,"1":2},"score":{"0":1,"1":2}}', "a.json"),
        *(("a.csv", text, re.escape(message)) for text, message in {
            b"a,1,0.5\na,2,0.5\n": 'a.csv has no header: its first line is "a,1,0.5"; expected column names',
            b"qid,label\na,1\n": "a.csv: no column has a usual name of the score",
            b"qid,label,score,score\na,1,1,2\n": 'a.csv: 2 columns are named "score", so score is ambiguous; rename all but one',
            b'qid,label,score,"\na,1,0.5,2\n': "a.csv cannot be read: CSV parse error",
            b"qid,label,score\na,1,0.5\na,x,0.5\n": 'a.csv, row 3 (the header is row 1): column "label" has "x"; expected a number',
            b'qid,label,score\na,1,"0,5"\n': 'a.csv, row 2 (the header is row 1): column "score" has "0,5"; expected a number',
            b"note,qid,label,score\n,a,1,2020-01-01\n": 'row 2 (the header is row 1): column "score" has "2020-01-01"',
            b"qid,label,score\na,1,0.5\na,2\n": "a.csv, row 3 (the header is row 1): Expected 3 columns, got 2: a,2; expected as many",
        }.items()),
        ("a.csv", b"\nqid,label,score\n", "a.csv is empty, or begins with an empty line; expected column names, as in "),
        ("a.csv", b"qid,label,score\n\xff,1,0.5\n", r'row 2 .*column "qid" cannot be read: .*UTF8'),
        ("a.csv.gz", packed_by_gzip(b"qid,label,score\n1,1,1\n" * 99)[:-20], "a.csv.gz"),
        ("a.parquet.gz", packed_by_gzip(b"PAR1" + b"x" * 99), "a.parquet.gz cannot be read"),
        ("a.feather", b"ARROW1\0\0" + b"x" * 99, "a.feather cannot be read"),
        ("a.arrows", b"\xff\xff\xff\xff" * 9, "a.arrows cannot be read"),
    ],
)  # fmt: skip
def test_faulty_files_say_what_is_wrong(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FastndcgError, match=message):
        fn.evaluate(tmp_path / name, "nDCG")
    line = scored(tmp_path / name, code=3).stderr
    assert line.count("\n") == 1


def test_folders_and_patterns(tmp_path):
    expected = fn.evaluate(LONG, "nDCG").values.tobytes()
    for name in ("a.jsonl", "a.feather", "a.csv", "a.parquet"):
        folder = tmp_path / f"of_{name}"
        folder.mkdir()
        (folder / "_SUCCESS").write_text("")
        for part in range(3):
            (folder / f"{part}_{name}").write_bytes(WRITTEN[name](LONG.slice(300 * part, 300)))
        ending = name.partition(".")[2]
        for path in (folder, f"{folder}/*.{ending}", sorted(folder.glob("?_*"))):
            assert fn.evaluate(path, "nDCG").values.tobytes() == expected


def test_rows_longer_than_a_block(tmp_path):
    rows = [{"qid": n, "label": [1] * 1_200_000, "score": [0.5] * 1_200_000} for n in range(3)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert fn.evaluate(tmp_path / "a.jsonl", "P@5").values.tolist() == [[1.0] * 3]


# ---- CSV ----

TEXT = "qid,label,score\na,1,0.5\nb,0,0.25\na,2,0.75\n"


@pytest.mark.parametrize("width", [200_000, 3_000_000])
def test_a_long_header_and_a_first_line_without_end(tmp_path, width):
    wide = "qid,label,score," + "x" * width
    assert fn.read_csv(written(tmp_path, f"{wide}\na,1,.5,{'y' * width}\n")).scores.tolist() == [0.5]


def test_a_first_line_that_is_too_long(tmp_path):
    with pytest.raises(
        SourceError, match="begins with a line of more than 67,108,864 bytes; is it a text file"
    ):
        fn.read_csv(written(tmp_path, "qid,label," + "x" * (1 << 26)))


def test_quoted_fields_and_empty_ones(tmp_path):
    text = 'doc_id,qid,label,score,note\n"d,1","a ""b""",1,1e-3,"two\nlines"\nnull,"a ""b""",0,-inf,\n'
    rankings = fn.read_csv(written(tmp_path, text), doc_id="doc_id")
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
    rankings = fn.read_csv(written(tmp_path, text), doc_id="doc_id", keep="region")
    assert rankings.doc_ids is not None
    assert rankings.query_ids.to_pylist() == rankings.doc_ids.to_pylist() == read
    assert rankings.queries["region"].to_pylist() == read


def test_several_files_and_patterns(tmp_path):
    paths = [written(tmp_path, TEXT, "1.csv"), written(tmp_path, "score;label;qid\n2;0.5;c\n", "2.csv")]
    for path in (paths, str(tmp_path / "*.csv"), [path.as_uri() for path in paths]):
        rankings = fn.read_csv(path)
        assert rankings.query_ids.to_pylist() == ["a", "b", "c"]
        assert rankings.relevance.tolist() == [1, 2, 0, 0.5]
    with pytest.raises(
        SourceError, match=r"no file matches .*\.tsv\"; expected names that end in \.csv or \.tsv"
    ):
        fn.read_csv(str(tmp_path / "*.tsv"))


def test_columns_that_files_do_not_share(tmp_path):
    for text, message in (
        ("qid,label\na,1\n", r'd\.csv has no column "score", which other files have'),
        ("qid,label,score,score\n", r'd\.csv has two columns "score"; rename one of them'),
    ):
        with pytest.raises(ColumnError, match=message):
            fn.read_csv([written(tmp_path, TEXT), written(tmp_path, text, "d.csv")])


RUN = "qid,docno,score\n1,C,2.5\n1,B,1.5\n02,A,0.5\n"


def test_integers_of_csv_meet_integers_of_parquet(tmp_path):
    pq.write_table(pa.table({"qid": [7, 7], "docid": [1, 2], "rel": [1, 2]}), tmp_path / "q.parquet")
    run = written(tmp_path, "qid,docid,score\n7,2,1\n7,3,0.5\n", "r.csv")
    assert fn.read_qrels_run(tmp_path / "q.parquet", run).relevance.tolist() == [2, 0]


def test_judgments_of_intents(tmp_path):
    qrels = written(tmp_path, "qid,intent,docno,rel\n1,i,A,1\n1,j,A,1\n1,i,B,1\n", "q.csv")
    rankings = fn.read_qrels_run(qrels, written(tmp_path, RUN, "r.csv"), intents=True)
    assert rankings.intents is not None
    assert rankings.intents.numbers.tolist() == [0]


# ---- files of many blocks ----


@cache
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
    """A file of more rows than decide the types, in the format of its name."""
    name, packer = next(
        (path.name.removesuffix(each), each) for each in reversed(PACKERS) if path.name.endswith(each)
    )
    kind = next(each for each in WRITTEN if each.endswith(name.partition(".")[2]))
    data = _bytes_of_60_000(kind) if table is _table(60_000) else WRITTEN[kind](table)
    path.write_bytes(PACKERS[packer](data))
    return path


@cache
def _bytes_of_60_000(kind):
    """What most of these tests write."""
    return WRITTEN[kind](_table(60_000))


def _same(path, **options):
    whole = fn.evaluate(path, MEASURES, **options)
    assert_same(fn.evaluate(scan(path, **options), MEASURES), whole)
    return whole


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.jsonl.bz2", "a.feather", "a.arrows.zst"])
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("ids", ["number", "padded"])
@pytest.mark.slow
def test_streams_of_many_blocks(tmp_path, name, shuffled, ids):
    path = _write(tmp_path / name, _table(60_000, ids=ids, shuffled=shuffled))
    _same(path, keep="lang", doc_id="docid")
    parts = list(scan(path))
    assert len(parts) > 2 and sum(part.n_docs for part in parts) == 60_000
    assert fn.evaluate(scan(path, threads=1), "nDCG").mean() == fn.evaluate(path, "nDCG").mean()


LATE = {
    "id": ("qid", "0007", '"qid" has "0007"; expected int64, the type of the first rows', "string"),
    "whole numbers": (
        "score",
        "0.5",
        '"score" has "?0.5"?; expected int64, the type of the first rows',
        "float64",
    ),
    "grades": ("label", "0.5", '"label" has "?0.5"?; expected int64', "float64"),
    "document": ("docid", "d", '"docid" has "d"; expected int64', "string"),
    "kept": ("lang", "en", '"lang" has "en"; expected (int64|null), the type of the first rows', "string"),
}


@cache
def _of_whole_numbers(name, are_kept):
    """A table of more rows than decide the types, and its text."""
    rows = 60_000
    table = _table(rows).set_column(2, "score", pa.array(np.arange(rows) % 97))
    if are_kept:
        table = table.set_column(3, "lang", pa.array(["1" if name == "a.csv" else None] * rows))
    table = table.append_column("more", [["x" * 20] * rows])
    return table, WRITTEN[name](table).decode()


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("late", LATE)
def test_a_type_that_shows_late_is_given(tmp_path, name, late):
    column, value, message, kind = LATE[late]
    if name == "a.jsonl" and late in ("id", "document"):
        return  # a number of JSON is no text, so that no type holds both
    table, text = _of_whole_numbers(name, late == "kept")
    last = table.slice(len(table) - 1).to_pylist()[0] | {"qid": 9_999_999, column: value}
    line = (
        ",".join(map(str, last.values()))
        if name == "a.csv"
        else json.dumps(last | ({} if kind == "string" else {column: float(value)}))
    )
    path = written(tmp_path, f"{text}{line}\n", name)
    options = {"keep": "lang", "doc_id": "docid"}
    where = r"row 60,002 \(the header is row 1\)" if name == "a.csv" else "line 60,001"
    given = re.escape(f'types={{"{column}": "{kind}"}}')
    for read in (lambda: fn.evaluate(path, MEASURES, **options), lambda: list(scan(path, **options))):
        with pytest.raises(SourceError, match=f"{where}: column {message}.*{given}"):
            read()
    options["types"] = {column: kind}
    scores = _same(path, **options)
    assert scores.n_queries == fn.evaluate(table, "RR").n_queries + 1
    option = f'--types "{column}={kind}"'
    assert (
        option
        in scored(path, "--keep", "lang", "--doc-id", "docid", "--out", tmp_path / "o.csv", code=3).stderr
    )
    scored(
        path,
        "--types",
        f"{column}={kind}",
        "--keep",
        "lang",
        "--doc-id",
        "docid",
        "--out",
        tmp_path / "o.csv",
    )


def test_types_that_are_refused(tmp_path):
    path = written(tmp_path, TEXT)
    for types, message in (
        ({"score": "number"}, 'types={"score": "number"} is not a type of Arrow'),
        ("float64", "types is a str; expected the type of each column"),
        ({"scores": "float64"}, 'there is no column "scores" for types'),
    ):
        with pytest.raises(FastndcgError, match=message):
            fn.read_csv(path, types=types)
    with pytest.raises(InputTypeError, match="types= is for CSV and JSON Lines; Parquet says"):
        fn.evaluate(
            written(tmp_path, WRITTEN["a.parquet"](LONG), "a.parquet"), "RR", types={"score": "float64"}
        )
    with pytest.raises(SourceError, match='row 2 .*: column "qid" has "a"; expected int64. Correct'):
        fn.read_csv(path, types={"qid": "int64"})
    assert scored(path, "--types", "qid", code=2).stderr.startswith(
        '--types: got "qid"; expected COLUMN=TYPE'
    )


def test_several_files_and_a_query_cut_by_them(tmp_path):
    table = _table(50_000)
    for number, (start, end) in enumerate([(0, 20_011), (20_011, 20_011), (20_011, 50_000)]):
        _write(tmp_path / f"{number}.csv", table.slice(start, end - start))
    assert_same(_same(str(tmp_path / "*.csv"), keep="lang"), fn.evaluate(table, MEASURES, keep="lang"))


BAD = {
    "a word": (
        "5,1,none,en,1",
        r'row 60,002 \(the header is row 1\): column "score" has "none"; expected a number',
    ),
    "too many": ("5,1,0.5,en,1,7", "row 60,002 .*expected as many fields as the header has"),
    "no UTF-8": ("\xff,1,0.5,en,1", r"row 60,002 .*column .qid. cannot be read.*expected UTF-8"),
}


@pytest.mark.parametrize("threads", [1, None])
@pytest.mark.parametrize("line", BAD)
def test_a_bad_row_far_down_has_its_number(tmp_path, line, threads):
    text, message = BAD[line]
    path = _write(tmp_path / "a.csv", _table(60_000))
    path.write_bytes(path.read_bytes() + text.encode("latin-1") + b"\n")
    with pytest.raises(FastndcgError, match=message) as of_parts:
        fn.evaluate(fn.scan_csv(path, memory=1 << 20, threads=threads), "nDCG")
    with pytest.raises(FastndcgError) as of_whole:
        fn.read_csv(path)
    assert str(of_parts.value) == str(of_whole.value)


@pytest.mark.parametrize("size", [400_000, 3_000_000])
@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.slow
def test_a_row_longer_than_a_block(tmp_path, size, place):
    rows = _csv(_table(30_000, ids="text")).decode().splitlines(keepends=True)
    rows.insert(1 if place == "first" else len(rows), f"{'q' * size},1,0.5,en,1\n")
    scores = _same(written(tmp_path, "".join([*rows, "q,1,0.5,en,1\n"])))
    assert scores.values[-1].sum() == len(rows)


def test_a_file_is_not_closed_while_threads_may_read_ahead_of_an_error(tmp_path, monkeypatch):
    """They read from whatever file the system opened next under its number: once in 1,500 errors."""
    path = _write(tmp_path / "a.csv", _table(60_000, ids="text"))
    with path.open("a") as file:
        file.write("q,1,high,en,1\n")
    opened, open_unpacking = [], File.open_unpacking
    monkeypatch.setattr(
        File, "open_unpacking", lambda file: opened.append(open_unpacking(file)) or opened[-1]
    )
    with pytest.raises(SourceError, match='"score" has "high"'):
        fn.evaluate(fn.scan_csv(path), "nDCG")
    header, _, *parsed = opened
    assert header.closed and parsed and not any(each.closed for each in parsed)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.arrows"])
@pytest.mark.parametrize("packer", [each for each in PACKERS if each])
def test_a_packed_file_that_is_damaged(tmp_path, name, packer):
    path = _write(tmp_path / f"{name}{packer}", _table(60_000))
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    with pytest.raises(SourceError, match=re.escape(path.name)):
        fn.evaluate(scan(path), "nDCG")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.arrow"])
def test_a_file_that_is_written_to_between_two_passes(tmp_path, name):
    path = _write(tmp_path / name, _table(2000, shuffled=True))
    for read in (list, lambda each: fn.evaluate(each, MEASURES)):
        stream = scan(path)
        read(stream)
        _write(path, _table(3000, shuffled=True))
        with pytest.raises(
            SourceError, match=rf"{name} was replaced or written to while it was read; read it again"
        ):
            read(stream)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.feather"])
def test_a_query_that_returns(tmp_path, name):
    table = _table(60_000)
    path = _write(tmp_path / name, pa.concat_tables([table, table[:1]]))
    with pytest.raises(InputError, match=r"query 0 returns at row 6000[02]"):
        fn.evaluate(
            TableStream(open_tables([path], None).choose(Roles()), memory=1 << 20, threads=2, grouped=True),
            "nDCG",
        )
    _same(path)


@pytest.mark.parametrize("text", ["qid,label,score\n", "qid,label,score\n\n\n"])
def test_no_rows(tmp_path, text):
    path = written(tmp_path, text)
    assert fn.evaluate(fn.scan_csv(path), "nDCG").n_queries == fn.read_csv(path).n_queries == 0
    assert list(fn.scan_csv(path)) == [] or next(iter(fn.scan_csv(path))).n_queries == 0


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
        whole = fn.evaluate(fn.read_csv(path), MEASURES)
    except FastndcgError as error:
        with pytest.raises(type(error)):
            fn.evaluate(fn.scan_csv(path), MEASURES)
        return
    assert_same(fn.evaluate(fn.scan_csv(path), MEASURES), whole)


COUNT = """
import pathlib, re, sys
import pyarrow as pa
from fastndcg.tables.roles import Roles
from fastndcg.sources.inputs import open_tables
from fastndcg.sources.streams import TableStream
opened = open_tables([sys.argv[1]], 1).choose(Roles(doc_id="docid"))
stream = TableStream(opened, memory="8 MB", threads=1)
rows = sum(part.n_docs for part in stream)
# not what getrusage says, which begins at what the parent had
peak = re.search(r"VmHWM:\\s*(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]
print(int(peak) >> 10, pa.default_memory_pool().max_memory() >> 20, rows, stream.nbytes >> 20)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
@pytest.mark.parametrize(
    ("name", "shuffled"), [("a.csv.zst", False), ("a.csv.zst", True), ("a.jsonl.zst", False)]
)
@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path, name, shuffled):
    peaks, used = [], []
    for rows in (300_000, 1_200_000):
        part = _table(rows // 10, shuffled=shuffled)
        ids = pa.array([f"{'d' * 150}{row}" for row in range(rows // 10)])
        text = WRITTEN[name.removesuffix(".zst")](part.set_column(4, "docid", ids))
        header, rest = text.split(b"\n", 1) if "csv" in name else (b"", text)
        queries = [
            rest.replace(b'{"qid": ', b'{"qid": %d' % turn)
            if not header
            else b"".join(b"%d%s" % (turn, line) for line in rest.splitlines(keepends=True))
            for turn in range(1, 11)
        ]
        path = written(
            tmp_path,
            PACKERS[".zst"](b"\n".join([header] * bool(header) + [b""]) + b"".join(queries)),
            f"{rows}{name[1:]}",
        )
        peak, most, found, whole = map(int, commands.printed(COUNT, path).split())
        assert found == rows
        peaks.append(peak)
        used.append(most)
    assert whole > 150
    # its texts grow by 160 MB; what Arrow uses by 3, and what its pool keeps from the system by 15 to 115
    assert used[1] - used[0] < 20
    assert peaks[1] - peaks[0] < 150


@pytest.mark.parametrize("day", ["2026-01-01", "", "12:30:00", "2026-01-01 10:00:00"])
def test_types_of_columns_without_a_role(tmp_path, day):
    path = written(tmp_path, f"qid,label,score,day\n7,1,1,{day}\n007,0.5,0.25,\n")
    text = TextTypes(["label", "score"], ["qid"])
    table = replace(open_tables([path], 1), text=text).table(["qid", "label", "score", "day"])
    values = pa_csv.ConvertOptions(
        column_types={"qid": pa.string()}, null_values=[""], strings_can_be_null=True
    )
    inferred = pa_csv.read_csv(path, convert_options=values)
    assert table.schema == inferred.schema and table.equals(inferred)


# ---- what ended the process ----


@pytest.mark.parametrize("text", ["{row}\nnull", "null\n{row}", "[{row},null]", "[null,{row}]", "null\n"])
def test_a_null_among_the_rows_of_json(tmp_path, text):
    path = written(tmp_path, text.replace("{row}", '{"qid":1,"label":1,"score":0.5}'), "a.jsonl")
    with pytest.raises(FastndcgError, match='column "qid" has 1 null|no column has a usual name'):
        fn.evaluate(path, "RR")


def test_a_list_of_json_that_begins_with_null(tmp_path):
    rows = (
        '{"qid":"a","label":[1,0,2],"score":[null,0.5,2.0]}\n',
        '{"qid":"b","label":[1,0],"score":[0.5,1.0]}\n',
    )
    alone, before, after = (
        fn.evaluate(written(tmp_path, "".join(text), "a.jsonl"), "nDCG", nan="last")["nDCG"].tolist()
        for text in (rows[:1], rows[::-1], rows)
    )
    assert before == after[::-1] and alone == after[:1]


def test_a_dictionary_of_feather_whose_length_is_damaged(tmp_path):
    data = WRITTEN["b.feather"](LONG)
    for place in range(len(data) - 8, 0, -8):
        if data[place : place + 4] == (23).to_bytes(4, "little"):
            path = written(
                tmp_path, data[:place] + (1 << 61).to_bytes(8, "little") + data[place + 8 :], "a.feather"
            )
            try:
                fn.evaluate(path, "RR")
            except FastndcgError:
                continue


def test_arrow_streams_end_to_end(tmp_path):
    """As `cat` joins them: the rows of all are read, or what follows the first is refused."""
    one, two = (_in_memory(_stream)(part) for part in (LONG[:400], LONG[400:]))
    path = written(tmp_path, one + two, "a.arrows")
    for source in (path, scan(path)):
        assert_same(fn.evaluate(source, MEASURES), fn.evaluate(LONG, MEASURES))
    other = _in_memory(_stream)(LONG[400:].drop_columns("score"))
    for more, message in (
        (other, 'a stream without the column "score" at byte'),
        (b"more", "cannot be read"),
    ):
        with pytest.raises(FastndcgError, match=rf"a\.arrows.*{message}"):
            fn.evaluate(written(tmp_path, one + more, "a.arrows"), "AP")
