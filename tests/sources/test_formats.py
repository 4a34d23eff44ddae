"""Tables in every format, plain and packed: the same results as of Parquet, and every fault said."""

import bz2
import gzip
import json
import os
import pty
import subprocess
import sys
from functools import partial
from random import Random

import commands
import numpy as np
import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg.errors import FastndcgError, SourceError
from fastndcg.sources.formats import format_of

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


def scored(*words, stdin=None, code=0):
    result = commands.run("score", *words, input=stdin)
    assert result.exit_code == code, result.stderr
    return result


MEASURES = ["-m", "nDCG@10", "-m", "AP", "-m", "ERR", "-m", "nDCG(gain='exp2')@5"]


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("packed", PACKERS)
def test_every_format_gives_the_values_of_parquet(tmp_path, name, packed):
    pq.write_table(LONG, tmp_path / "expected.parquet")
    (tmp_path / f"{name}{packed}").write_bytes(PACKERS[packed](WRITTEN[name](LONG)))
    tables, printed = [], []
    for path in ("expected.parquet", f"{name}{packed}"):
        words = [*MEASURES, "--by", "country", "--keep", "country", "--out", tmp_path / "o.parquet"]
        result = scored(tmp_path / path, *words, "--format", "json")
        tables.append(pq.read_table(tmp_path / "o.parquet"))
        printed.append((result.stdout, result.stderr))
    assert tables[1].to_pydict() == tables[0].to_pydict()
    assert printed[1] == printed[0]
    by_id = [
        fn.evaluate(each, "nDCG@10", convention="trec_eval") for each in (tmp_path / f"{name}{packed}", LONG)
    ]
    assert by_id[0].values.tobytes() == by_id[1].values.tobytes()


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
    words = [*MEASURES, "--by", "country", "--format", "json"]
    expected, found = scored(tmp_path / "standard input.parquet", *words), scored("-", *words, stdin=content)
    assert (found.stdout, found.stderr) == (expected.stdout, expected.stderr)


@pytest.mark.parametrize("name", ["a.parquet", "a.csv.gz", "a.jsonl", "a.arrows", "a.txt"])
@pytest.mark.parametrize("side", ["--qrels", "--run"])
def test_one_of_a_pair_from_standard_input(tmp_path, name, side):
    pair = {"--qrels": ["qid", "docno", "label"], "--run": ["qid", "docno", "score"]}
    for option, columns in pair.items():
        (tmp_path / option).write_bytes(WRITTEN["a.parquet"](LONG.select(columns)))
    expected = scored(*(word for option in pair for word in (option, tmp_path / option)), "--format", "csv")
    rows = LONG.select(pair[side])
    if name == "a.txt":
        line = "{qid} 0 {docno} {label}\n" if side == "--qrels" else "{qid} Q0 {docno} 1 {score!r} t\n"
        content = "".join(line.format(**row) for row in rows.to_pylist()).encode()
    else:
        content = WRITTEN[name.removesuffix(".gz")](rows)
    words = [word for option in pair for word in (option, "-" if option == side else tmp_path / option)]
    for packed in (content, packed_by_gzip(content)):
        assert scored(*words, "--format", "csv", stdin=packed).stdout == expected.stdout


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
            "--keep has no meaning with --scores: LETOR",
        ),
        (["t.txt", "u.txt", "--scores", "s.txt"], "--scores are those of one PATH; give one"),
        (
            ["--qrels", "q", "--run", "r", "--scores", "s.txt"],
            "--scores has no meaning with --qrels and --run",
        ),
        (["t.txt", "--scores", "s.txt", "--memory", "1GB"], "--memory has no meaning with LETOR"),
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
        (["score", "-"], b"", 3, "standard input is empty; wanted a table, judgments or a run"),
        (["score", "-", "-"], b"x", 2, "- is given twice; standard input is read once"),
        (["score", "--qrels", "-", "--run", "-"], b"x", 2, "- is given twice; standard input is read once"),
        (["score", "-"], WRITTEN["a.parquet"](LONG)[:3000], 3, "standard input cannot be read: "),
        (["score", "-"], packed_by_gzip(WRITTEN["a.csv"](LONG))[:-30], 3, "standard input"),
        (["score", "-"], b"q 0 d 1\n", 3, "standard input is a TREC file of judgments or of a run; both are needed, as in --qrels and --run"),
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
        "- is standard input, and nothing is piped into it; wanted COMMAND | fastndcg ... -\n",
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
        scored("--qrels", tmp_path / one, "--run", tmp_path / other, *MEASURES, "--format", "json").stdout
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
        ("a.bin", b"", "a.bin is empty; wanted Parquet, CSV, JSON Lines or Feather"),
        ("a.xlsx", b"PK\3\4\0\0", r"begins with b'PK\\x03\\x04.*as no format does that is read; wanted Parquet, CSV"),
        ("a.csv", "qid,label,score\n".encode("utf-16"), "a.csv"),
        ("a.txt", b"q 0 d 2\n", r"a.txt is a TREC file of judgments or of a run; both are needed"),
        ("a.txt", b"1 qid:3 1:0.5\n", "is a LETOR file, which has grades but no scores"),
        ("a.jsonl", b'{"qid":1,"label":1,"score":1}\n{"qid":1,"label":2}\n', 'column "score" has 1 null'),
        ("a.jsonl", b'{"qid":1,"label":1,"score":1}\n{"qid":1,"label":"x","score":1}\n', "changed from number to string"),
        ("a.jsonl", b'{"qid":null,"label":1,"score":1}\n', 'column "qid"'),
        ("a.jsonl", b'{"qid":1,"label":1}\n', "no column has a usual name of the score"),
        ("a.jsonl", b'{"qid":"\xff","label":1,"score":1}\n', "Check that it is a JSON Lines file"),
        ("a.jsonl", b'{"qid":18446744073709551615,"label":1,"score":1}\n', "qid"),
        ("a.json", b'[{"qid":1},', "a.json cannot be read"),
        ("a.json", b"[" * 100_000 + b"{", "a.json"),
        ("a.jsonl", b'{"a":' * 100_000, "a.jsonl"),
        ("a.jsonl", b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"\n", "a.jsonl cannot be read: maximum recursion"),
        ("a.json", b'{"a":\n' * 50_000 + b"1" + b"}" * 50_000, "a.json has judgments or a run"),
        ("a.json", b'[{"a":\n' + b'{"a":\n' * 50_000 + b"1" + b"}" * 50_001 + b"]", "a.json cannot be read: maximum recursion"),
        ("a.json", b'{"qid":{"0":1,"1":2},"label":{"0":1,"1":2},"score":{"0":1,"1":2}}', "a.json"),
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
        (folder / "more.csv").write_bytes(b"")
        (folder / "more.jsonl").write_bytes(b"")
        with pytest.raises(
            SourceError, match=r"files of [23] kinds, and one kind is read at a time: .* of CSV"
        ):
            fn.evaluate(folder, "nDCG")


def test_rows_longer_than_a_block(tmp_path):
    rows = [{"qid": n, "label": [1] * 1_200_000, "score": [0.5] * 1_200_000} for n in range(3)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert fn.evaluate(tmp_path / "a.jsonl", "P@5").values.tolist() == [[1.0] * 3]


@pytest.mark.parametrize("name", WRITTEN)
def test_damaged_files_raise_errors_of_the_package(tmp_path, name):
    from scripts.fuzz import mutate

    data, path = WRITTEN[name](LONG.slice(0, 60)), tmp_path / name
    for number in range(60):
        rng = Random(f"{name}/{number}")
        damaged = mutate(data, rng)
        path.write_bytes(packed_by_gzip(damaged) if rng.random() < 0.2 else damaged)
        try:
            fn.evaluate(path, "nDCG", doc_id="docno", keep="country")
        except FastndcgError as error:
            assert name in str(error)
