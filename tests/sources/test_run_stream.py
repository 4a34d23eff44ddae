"""`scan_qrels_run`: the bits, errors and warnings of `read_qrels_run`, in bounded memory."""

import gzip
import sys
import warnings

import commands
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import fastndcg as fn
from fastndcg.errors import FastndcgError, InputError, SourceError
from fastndcg.sources import csv, opened_runs, run_stream, streams

MEASURES = ["nDCG@10", "AP", "RR", "Bpref", "infAP", "P(judged_only=True)@5"]
MEMORY = 200_000

pytestmark = pytest.mark.compiled


@pytest.fixture(autouse=True)
def little(monkeypatch):
    """Parts of few rows, and blocks of a few thousand lines."""
    monkeypatch.setattr(streams, "_LEAST_MEMORY", 1)
    monkeypatch.setattr(opened_runs, "_BLOCK", 1 << 15)
    monkeypatch.setattr(opened_runs, "_BLOCKS", 2)
    monkeypatch.setattr(csv, "_STREAMED_BLOCK", 1 << 15)


def _both(order, *, n_queries=300, intents=False, seed=0):
    """Columns of judgments and of a run that share most queries; some documents are tied, some unjudged."""
    random = np.random.default_rng(seed)
    judged, run = [], []
    for query in range(n_queries + 5):
        for document in random.choice(60, 12, replace=False):
            judged += [
                (f"q{query}", str(intent), f"D{document}", int(random.integers(-1, 4)))
                for intent in range(1 + intents)
            ]
    for query in range(3, n_queries + 8):
        for place, document in enumerate(random.permutation(60)[: 5 + query % 40]):
            run.append((f"q{query}", f"D{document}", place + 1, float(random.integers(0, 64)) / 8))
    if order == "shuffled":
        run = [run[row] for row in random.permutation(len(run))]
    elif order == "returns":  # one query, at the end
        run = [*run[7:], *run[:7]]
    of_qrels = dict(zip(("query", "intent", "docid", "relevance"), zip(*judged, strict=True), strict=True))
    of_run = dict(zip(("query", "docid", "rank", "score"), zip(*run, strict=True), strict=True))
    return pa.table({name: list(each) for name, each in of_qrels.items()}), pa.table(
        {name: list(each) for name, each in of_run.items()}
    )


def _lines(table, *columns):
    return "".join(" ".join(map(str, row)) + "\n" for row in zip(*(
        table[each].to_pylist() if each in table.column_names else [each] * len(table) for each in columns
    ), strict=True))  # fmt: skip


def _write(folder, kind, table):
    path = folder / f"run.{kind}"
    if kind in ("trec", "trec.gz"):
        text = "# a comment\n\n" + _lines(table, "query", "Q0", "docid", "rank", "score", "me")
        path.write_bytes(gzip.compress(text.encode()) if kind.endswith("gz") else text.encode())
    elif kind == "marco":
        path.write_text(_lines(table, "query", "docid", "rank"))
    elif kind == "parquet":
        pq.write_table(table.drop_columns("rank"), path, row_group_size=999)
    elif kind == "csv":
        pa_csv.write_csv(table.drop_columns("rank"), path)
    elif kind == "jsonl":
        rows = zip(*(table[name].to_pylist() for name in ("query", "docid", "score")), strict=True)
        path.write_text("".join(f'{{"query": "{q}", "docid": "{d}", "score": {s}}}\n' for q, d, s in rows))
    else:
        feather.write_feather(table.drop_columns("rank"), path)
    return path


def _told(call):
    """What a call returns or raises, and the warnings that it gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except FastndcgError as error:
            result = type(error), str(error)
    return result, sorted({str(each.message) for each in caught})


def _alike(qrels, run, measures=MEASURES, memory=MEMORY, **options):
    whole, of_whole = _told(lambda: fn.evaluate(fn.read_qrels_run(qrels, run, **options), measures))
    stream = fn.scan_qrels_run(qrels, run, memory=memory, **options)
    found, of_stream = _told(lambda: fn.evaluate(stream, measures))
    assert of_stream == of_whole
    assert not isinstance(found, tuple) and not isinstance(whole, tuple), (found, whole)
    assert found.queries.equals(whole.queries)
    assert found.values.tobytes() == whole.values.tobytes()
    assert np.array_equal(found.weight, whole.weight) if whole.weight is not None else found.weight is None
    return stream, whole


@pytest.mark.parametrize("order", ["grouped", "shuffled", "returns"])
@pytest.mark.parametrize("kind", ["trec", "trec.gz", "marco", "parquet", "csv", "jsonl", "feather"])
def test_values_and_their_order_are_those_of_what_is_read_whole(tmp_path, kind, order):
    qrels, run = _both(order)
    (tmp_path / "qrels").write_text(_lines(qrels, "query", "intent", "docid", "relevance"))
    path = _write(tmp_path, kind, run)
    for missing in ("zero", "skip"):
        for ties in ("docid_desc", "docid_asc", "input"):
            stream, scores = _alike(tmp_path / "qrels", path, missing=missing, ties=ties)
            _alike(tmp_path / "qrels", path, missing=missing, ties=ties, memory="1 GB")
    parts = list(stream)
    assert sum(map(len, parts)) == len(scores.queries) and len(parts) > 2
    assert {each for part in parts for each in part.query_ids.to_pylist()} == set(
        scores.queries[0].to_pylist()
    )
    assert [part.n_docs for part in stream] == [part.n_docs for part in parts]


@pytest.mark.parametrize("kind", ["trec", "trec.gz", "parquet", "csv"])
@pytest.mark.parametrize("order", ["grouped", "shuffled"])
def test_evaluate_reads_a_large_run_in_parts(tmp_path, kind, order, monkeypatch):
    qrels, run = _both(order, intents=True)
    judged, path = tmp_path / "qrels", _write(tmp_path, kind, run)
    judged.write_text(_lines(qrels, "query", "intent", "docid", "relevance"))
    plain = qrels.filter(pc.equal(qrels["intent"], "0"))
    (tmp_path / "plain").write_text(_lines(plain, "query", "intent", "docid", "relevance"))
    calls = [
        lambda: fn.evaluate(str(tmp_path / "plain"), path, MEASURES, threads=2),
        lambda: fn.evaluate(tmp_path / "plain", str(path), ["nDCG"], cutoff=5, convention="trec_eval"),
        lambda: fn.evaluate(judged, path, ["alpha_nDCG@10", "ERR_IA@10"]),
        lambda: fn.evaluate(judged, path, ["nDCG@10"], keep="day"),
    ]
    whole = list(map(_told, calls))
    monkeypatch.setattr(run_stream, "IN_MEMORY", 1 << 16)
    monkeypatch.setattr(streams, "_MEMORY", MEMORY)
    for (wanted, of_whole), (found, of_stream) in zip(whole, map(_told, calls), strict=True):
        assert of_stream == of_whole
        if isinstance(wanted, tuple):
            assert found == wanted
        else:
            assert "_stream" in vars(found) and "_stream" not in vars(wanted)
            assert found.queries.equals(wanted.queries)
            assert found.values.tobytes() == wanted.values.tobytes()
            assert found.mean() == wanted.mean()
    assert sum(isinstance(wanted, tuple) for wanted, _ in whole) == 1  # no column of a TREC file can be kept


@pytest.mark.parametrize("order", ["grouped", "shuffled"])
def test_intents_columns_and_options_of_judgments(tmp_path, order):
    qrels, run = _both(order, intents=True)
    (tmp_path / "qrels").write_text(_lines(qrels, "query", "intent", "docid", "relevance"))
    path = _write(tmp_path, "trec", run)
    _alike(tmp_path / "qrels", path, ["alpha_nDCG@10", "ERR_IA@10"], intents=True, ties="docid_asc")
    (tmp_path / "plain").write_text(_lines(_both(order)[0], "query", "intent", "docid", "relevance"))
    _alike(tmp_path / "plain", path, ascending=True)
    numbers = {query: number for number, query in enumerate(dict.fromkeys(qrels["query"].to_pylist()))}
    of_rows = [numbers[query] for query in qrels["query"].to_pylist()]
    table = qrels.append_column("day", pa.array([row % 7 for row in of_rows]))
    table = table.append_column("traffic", pa.array([1.0 + row % 5 for row in of_rows]))
    first = table.group_by(["query", "docid"], use_threads=False).aggregate(
        [(name, "max") for name in ("relevance", "day", "traffic")]
    )
    first = first.rename_columns([name.removesuffix("_max") for name in first.column_names])
    pq.write_table(first, tmp_path / "qrels.parquet")
    table_run = _write(tmp_path, "parquet", run)
    _, scores = _alike(tmp_path / "qrels.parquet", table_run, keep="day", weight="traffic", missing="skip")
    assert scores.queries.column_names == ["query", "day", "weight"]


@pytest.mark.parametrize("order", ["grouped", "shuffled"])
@pytest.mark.parametrize("kind", ["trec", "parquet", "csv"])
def test_faults_are_those_of_what_is_read_whole(tmp_path, kind, order):
    """With the line or row of the run, wherever it stands."""
    qrels, run = _both(order)
    path, other = tmp_path / "qrels", tmp_path / "other"
    path.write_text(_lines(qrels, "query", "intent", "docid", "relevance"))
    rows = run.to_pylist()
    faults = {
        "is there twice": [*rows, rows[40]],
        "score nan": [*rows[:5000], rows[5000] | {"score": float("nan")}, *rows[5001:]],
        "have no query in common": [row | {"query": f"x{row['query']}"} for row in rows],
        "have no document in common": [row | {"docid": f"x{row['docid']}"} for row in rows],
    }
    for message, changed in faults.items():
        run_path = _write(tmp_path, kind, pa.Table.from_pylist(changed, run.schema))
        if "nan" in message and kind == "csv":
            run_path.write_text(run_path.read_text().replace(",nan\n", ",NaN\n"))
        stream = fn.scan_qrels_run(path, run_path, memory=MEMORY)
        with pytest.raises(InputError, match=message) as streamed:
            fn.evaluate(stream, "AP")
        with pytest.raises(InputError, match=message) as whole:
            fn.read_qrels_run(path, run_path)
        same = slice(None) if "common" not in message else slice(str(whole.value).index(" in common"))
        assert str(streamed.value)[same] == str(whole.value)[same]
    ranked = fn.evaluate(fn.scan_qrels_run(path, _write(
        tmp_path, kind, pa.Table.from_pylist(faults["score nan"], run.schema)
    ), nan="last", memory=MEMORY), "AP")  # fmt: skip
    assert len(ranked.queries) == 305
    other.write_text(path.read_text() + "q9 0 D1 1\nq9 0 D1 1\n")
    with pytest.raises(InputError, match=r"other, line \d+: document \"D1\" of query \"q9\" is there twice"):
        fn.evaluate(fn.scan_qrels_run(other, _write(tmp_path, kind, run), memory=MEMORY), "AP")


def test_lines_that_are_malformed_and_runs_that_cannot_be_streamed(tmp_path):
    qrels, run = _both("grouped")
    path = tmp_path / "qrels"
    path.write_text(_lines(qrels, "query", "intent", "docid", "relevance"))
    text = _write(tmp_path, "trec", run).read_text().splitlines(keepends=True)
    for fault, message in (
        ("q7 Q0 D1\n", r"broken, line 4502: 3 fields in \"q7 Q0 D1\"; wanted a line of a TREC run"),
        ("q7 Q0 D1 1 high me\n", r"broken, line 4502: \"high\" is not a number"),
    ):
        broken = tmp_path / "broken"
        broken.write_text("".join([*text[:4501], fault, *text[4501:]]))
        for read in (fn.read_qrels_run, lambda *both: fn.evaluate(fn.scan_qrels_run(*both), "AP")):
            with pytest.raises(SourceError, match=message):
                read(path, broken)
    marco = tmp_path / "marco"
    marco.write_text("".join(f"q{row % 9} D{row} {row}\n" for row in range(5000)) + "q1 D1 1.5\n")
    with pytest.raises(SourceError, match=r"marco, line 5001: the rank is 1.5; wanted a whole number"):
        fn.evaluate(fn.scan_qrels_run(path, marco), "AP")
    empty = tmp_path / "empty"
    empty.write_text("# nothing\n\n")
    with pytest.raises(
        SourceError, match="empty has no documents; wanted at least one: a line of a TREC run"
    ):
        fn.evaluate(fn.scan_qrels_run(path, empty), "AP")
    nested = tmp_path / "run.json"
    nested.write_text('{"q1": {"D1": 0.5}}')
    with pytest.raises(
        SourceError, match=r"run.json is JSON by query, which is read whole; pass it to read_qrels"
    ):
        fn.scan_qrels_run(path, nested)
    with pytest.raises(FastndcgError, match="scan_qrels_run has no argument grouped="):
        fn.scan_qrels_run(path, empty, grouped=True)


def test_ids_that_are_no_utf_8_and_numbers_that_pandas_wrote(tmp_path):
    qrels, run = _both("grouped")
    path = tmp_path / "qrels"
    path.write_bytes(_lines(qrels, "query", "intent", "docid", "relevance").encode() + b"z\xff 0 D\xff 1\n")
    text = _write(tmp_path, "trec", run).read_bytes()
    (tmp_path / "bytes").write_bytes(text + b"z\xff Q0 D\xff 1 2.5 me\nz\xff Q0 D1 1 2.5 me\n")
    _alike(path, tmp_path / "bytes")
    for last in ("7", "x"):  # one id that is no number makes texts of all
        numbers = [f"{row // 9}.0,{row}.0,{row % 8}" for row in range(9000)] + [f"{last}.0,9999.0,1"]
        (tmp_path / "run.csv").write_text("\n".join(["qid,docid,score", *numbers]) + "\n")
        (tmp_path / "qrels.csv").write_text("qid,docid,rel\n7,63,1\n7.0,66,1\nx.0,9999,1\n8,72,1\n")
        _alike(tmp_path / "qrels.csv", tmp_path / "run.csv")


def test_few_common_queries_and_oddities_are_warned_of_once(tmp_path):
    qrels, run = _both("grouped")
    path = tmp_path / "qrels"
    path.write_text(_lines(qrels, "query", "intent", "docid", "relevance"))
    few = _write(tmp_path, "trec", run.slice(0, 900))
    as_ranks = _write(tmp_path, "parquet", run.set_column(3, "score", run["rank"]))
    for each in (few, as_ranks):
        _alike(path, each)
        _, warned = _told(lambda each=each: fn.evaluate(fn.scan_qrels_run(path, each, memory=MEMORY), "AP"))
        assert len(warned) == 1
        assert len(_told(lambda each=each: list(fn.scan_qrels_run(path, each, memory=MEMORY)))[1]) == 1


PEAK = """
import pathlib, re, sys
import fastndcg as fn
fn.evaluate(fn.scan_qrels_run(*sys.argv[1:3], memory="16 MB", threads=1), "nDCG@10")
print(re.search(r"VmHWM:\\s*(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
def test_memory_does_not_grow_with_the_run(tmp_path):
    (tmp_path / "qrels").write_text(
        "".join(f"q{query} 0 D{'x' * 40}{query % 1000} 1\n" for query in range(2000))
    )
    peaks = []
    for n_queries in (100, 2000):
        path = tmp_path / f"run{n_queries}"
        with path.open("w") as file:
            for query in range(n_queries):
                file.writelines(f"q{query} Q0 D{'x' * 40}{row} {row} {-row} me\n" for row in range(1000))
        peaks.append(int(commands.printed(PEAK, tmp_path / "qrels", path)) >> 10)
    # its texts grow by 125 MB, its rows by 150
    assert peaks[1] - peaks[0] < 100


@pytest.mark.parametrize("kind", ["trec.gz", "marco", "parquet", "csv"])
def test_the_command_line_reads_large_runs_in_parts(tmp_path, kind, monkeypatch):
    qrels, run = _both("shuffled")
    (tmp_path / "qrels").write_text(_lines(qrels, "query", "intent", "docid", "relevance"))
    path = _write(tmp_path, kind, run)
    made, init = [], fn.RunStream.__init__
    monkeypatch.setattr(
        fn.RunStream, "__init__", lambda self, *a, **k: made.append(self) or init(self, *a, **k)
    )
    few = tmp_path / "few"
    few.write_text("q9 Q0 D1 1 0.5 me\n")
    for words in (
        ["-m", "nDCG@10", "-m", "AP"],
        ["--missing", "skip", "--format", "csv", "--out", "OUT"],
        ["-m", "AP", "--format", "json", "--confidence", "0.95"],
        ["--convention", "trec_eval"] if kind == "trec.gz" else ["-m", "P@5", "--anchors"],
        ["-m", "RR", "MORE"],
    ):
        told = []
        for memory in ([], ["--memory", "60KB"]):
            out = tmp_path / f"out{len(memory)}.parquet"
            typed = [str(out) if word == "OUT" else word for word in words if word != "MORE"]
            files = [str(path), *([str(few)] if "MORE" in words else [])]
            made.clear()
            done = commands.run("score", "--qrels", tmp_path / "qrels", *typed, *memory, *files)
            assert done.exit_code == 0 and len(made) == len(memory) // 2, done.stderr
            told.append((done.stdout, done.stderr))
        assert told[1] == told[0]
        if "OUT" in words:
            assert pq.read_table(tmp_path / "out2.parquet").equals(pq.read_table(tmp_path / "out0.parquet"))
