"""TREC files and joined tables: what trec_eval and pytrec_eval make of them, in every form, and every fault named."""

import bz2
import gzip
import json
import warnings
from contextlib import nullcontext
from urllib.parse import unquote

import commands
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

import fastndcg as fn
from fastndcg.errors import ColumnError, FastndcgWarning, InputError, InputTypeError, SourceError
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources import open_file
from fastndcg.sources.trec import read_qrels_run, read_trec, text_side
from fastndcg.tables import joins

# most pairs of this file are of few lines, and share fewer queries than what anybody means to evaluate
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore:.*they have .* in common:fastndcg.FastndcgWarning"),
]

QRELS = "301 0 A 1\n301 0 B 2\n302 0 A 1\n303 0 Z 0\n"
RUN = "301 Q0 C 1 2.5 me\n301 Q0 B 2 1.5 me\n302 Q0 A 1 0.5 me\n999 Q0 A 1 0.5 me\n"


@pytest.fixture
def both(write):
    return lambda qrels=QRELS, run=RUN: (write("qrels", qrels), write("run", run))


def facts(rankings):
    return {
        "queries": rankings.query_ids.to_pylist(),
        "offsets": rankings.offsets.tolist(),
        "docs": rankings.doc_ids.cast(pa.string()).to_pylist(),
        "relevance": rankings.relevance.tolist(),
        "scores": rankings.scores.tolist(),
        "is_judged": rankings.is_judged.tolist(),
        "pool": [rankings.judged.offsets.tolist(), rankings.judged.relevance.tolist()],
    }


PLAIN = {
    "queries": ["301", "302", "303"],
    "offsets": [0, 2, 3, 3],
    "docs": ["C", "B", "A"],
    "relevance": [0, 2, 1],
    "scores": [2.5, 1.5, 0.5],
    "is_judged": [False, True, True],
    "pool": [[0, 2, 3, 4], [1, 2, 1, 0]],
}


# ---- forms of one file ----


def _zstd(data):
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "zstd") as out:
        out.write(data)
    return packed.getvalue().to_pybytes()


PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "zst": _zstd}
# what is done to both files, which say the same then
CHANGES = {
    "nothing": lambda text: text,
    "double": lambda text: text.replace(" ", "  "),
    "tabs": lambda text: text.replace(" ", "\t"),
    "mixed": lambda text: text.replace(" ", " \t "),
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "trailing": lambda text: text.replace("\n", "   \n"),
    "no newline": lambda text: text.removesuffix("\n"),
    "mark": lambda text: "\ufeff" + text,
    "comments": lambda text: "# comment\n\n" + text.replace("\n", "\n# another one\n  \n"),
    "leading": lambda text: "".join("  " + line for line in text.splitlines(keepends=True)),
    "iteration": lambda text: text.replace(" 0 ", " 4.5 ").replace(" Q0 ", " 4.5 "),
    "control bytes": lambda text: text.replace(" ", "\x01"),
    "ctrl-z": lambda text: text + "\x1a",
    "nuls": lambda text: text.removesuffix("\n") + "\x00" * 5000,
    **{packer: lambda text, pack=pack: pack(text.encode()) for packer, pack in PACKERS.items()},
    "members": lambda text: b"".join(gzip.compress(line.encode()) for line in text.splitlines(keepends=True)),
}
RUN_APART = "302 Q0 A 1 0.5 me\n301 Q0 C 1 2.5 me\n999 Q0 A 1 0.5 me\n301 Q0 B 2 1.5 me\n"


@pytest.mark.pure
@pytest.mark.parametrize("change", CHANGES)
def test_forms_of_files(both, change):
    paths = both(*map(CHANGES[change], (QRELS, RUN)))
    for ties in ("docid_desc", "input"):
        assert facts(read_trec(*paths, ties=ties)) == PLAIN
        assert facts(read_trec(*both(CHANGES[change](QRELS), CHANGES[change](RUN_APART)), ties=ties)) == PLAIN
    assert read_trec(*paths, intents=True).intents is not None


NBSP, WIDE = "\u00a0", "\u3000"
CLOSE = "q Q0 A 1 1.0000000002 t\nq Q0 B 2 1.0000000001 t\n"  # one float32
# judgments, a run, what some fields of the rankings are, and options
LINES = {
    "queries that the run lacks": (QRELS, RUN, {"queries": ["301", "302", "303"], "offsets": [0, 2, 3, 3]}, {"missing": "zero"}),
    "queries that the run lacks, left out": (QRELS, RUN, {"queries": ["301", "302"], "offsets": [0, 2, 3], "pool": [[0, 2, 3], [1, 2, 1]]}, {"missing": "skip"}),
    "all but one left out": (
        "1 0 a 1\n2 0 b 1\n3 0 c 1\n", "2 Q0 b 1 1 t\n",
        {"queries": ["2"], "docs": ["b"], "relevance": [1], "pool": [[0, 1], [1]]}, {"missing": "skip"},
    ),
    "scores that float64 tells apart": ("q 0 A 1\n", CLOSE, {"docs": ["A", "B"]}),
    "scores that float32 does not": ("q 0 A 1\n", CLOSE, {"docs": ["B", "A"]}, {"score_dtype": "float32"}),
    "NaN last": ("1 0 A 1\n", "1 Q0 A 1 nan t\n1 Q0 B 1 -inf t\n1 Q0 C 1 0 t\n", {"docs": ["C", "B", "A"]}, {"nan": "last"}),
    "no UTF-8": (b"q 0 caf\xe9 1\n", b"q Q0 caf\xe9 1 1 t\nq Q0 b 1 1 t\n", {"relevance": [1, 0]}),
    "only Python takes it for a blank": (f"q {NBSP} {NBSP} 1\n", f"q Q0 {NBSP} 1 0.5 {WIDE}\n", {"docs": [NBSP], "relevance": [1]}),
    "# inside a line": ("q 0 CR#93 1\n", "q Q0 CR#93 1 0.5 #tag\n", {"docs": ["CR#93"], "relevance": [1]}),
    "judgments apart": ("301 0 A 1\n302 0 A 1\n301 0 B 2\n303 0 Z 0\n", RUN_APART, PLAIN),
    "tags of several words": ("q 0 A 1\n", "q Q0 A 1 0.5 my run\nq Q0 B 2 0.25 my other  run \n", {"docs": ["A", "B"], "scores": [0.5, 0.25]}),
    "grades with a fraction": ("q 0 A 0.5\nq 0 B 2.0\n", "q Q0 A 1 3 t\n", {"pool": [[0, 2], [0.5, 2.0]]}),
    "negative grades": (
        "q 0 A -1\nq 0 B -2\nq 0 C 1\nr 0 A -1\n", "q Q0 A 1 3 t\nq Q0 C 2 2 t\nq Q0 D 3 1 t\n",
        {"relevance": [-1, 1, 0], "is_judged": [False, True, False], "pool": [[0, 1, 1], [1]]},
    ),
}  # fmt: skip


@pytest.mark.pure
@pytest.mark.parametrize("case", LINES)
def test_lines(both, case):
    qrels, run, expected, *options = LINES[case]
    rankings = read_trec(*both(qrels, run), **(options[0] if options else {}))
    found = facts(rankings) if case != "no UTF-8" else {"relevance": rankings.relevance.tolist()}
    assert found.items() >= expected.items()
    if case == "negative grades":
        values = fn.evaluate(rankings, ["nDCG@2", "nDCG(judged_only=True)@1"]).values[:, 0]
        assert values.tolist() == pytest.approx([1 / np.log2(3), 1.0])
    last = (run if isinstance(run, str) else run.decode("latin-1")).splitlines()[-1]
    assert text_side(both(qrels, run)[1], "score", 1).tag == last.split(" ")[5]


@pytest.mark.parametrize("packed", [False, True])
def test_progress(both, write, packed):
    """In bytes on disk, rising to all of them, whatever reads the file in however many threads."""
    tag = "t" * 6000  # of so many bytes that there are parts, of many blocks
    text = "".join(f"301 Q0 d{row} 1 {row * 0.37:.4f} {tag}\n" for row in range(3000))
    qrels, run = both("301 0 d7 1\n", gzip.compress(text.encode()) if packed else text)
    total = qrels.stat().st_size + run.stat().st_size
    for threads in (1, 4):
        told = []
        rankings = read_trec(qrels, run, threads=threads, progress=lambda *each, told=told: told.append(each))
        assert rankings.n_docs == 3000
        assert {each for _, each in told} == {total}
        done = [each for each, _ in told]
        assert done == sorted(done)
        assert done[-1] == total
        assert len(set(done)) > (1 if packed else 5)  # what unpacks reads ahead
    told = []
    with pytest.raises(SourceError, match="line 3001"):
        read_trec(qrels, write("bad", text + "301\n"), progress=lambda *counts: told.append(counts))
    assert told[-1][0] < told[-1][1]
    told = []
    fn.read_ltr(
        write("ltr", "1 qid:1 1:2\n" * 500),
        scores=np.zeros(500),
        progress=lambda *counts: told.append(counts),
    )
    assert told[-1] == (6000, 6000)


# ---- URIs ----


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Files of each kind in a folder, under the URIs of this machine and of a store that only pyarrow can open."""
    folder = tmp_path / "a folder"
    (folder / "qrels of two").mkdir(parents=True)
    (folder / "qrels.txt").write_text(QRELS)
    (folder / "run.txt").write_text(RUN)
    (folder / "run.gz").write_bytes(gzip.compress(RUN.encode()))
    qrels = pa.table({"qid": ["301", "301", "302", "303"], "docid": list("ABAZ"), "rel": [1, 2, 1, 0]})
    run = pa.table({"qid": ["301", "301", "302"], "docid": list("CBA"), "score": [2.5, 1.5, 0.5]})
    pq.write_table(qrels, folder / "qrels.parquet")
    pq.write_table(qrels[:2], folder / "qrels of two" / "1.parquet")
    pq.write_table(qrels[2:], folder / "qrels of two" / "2.parquet")
    pq.write_table(run, folder / "run.parquet")
    pa_csv.write_csv(qrels, folder / "qrels.csv")
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    def from_uri(uri):
        return (store, unquote(uri.removeprefix("store://"))) if uri.startswith("store:") else known(uri)

    known = open_file.file_system
    monkeypatch.setattr(open_file, "file_system", from_uri)
    return {"file": folder.as_uri(), "store": "store://a%20folder"}


@pytest.mark.parametrize("scheme", ["file", "store"])
@pytest.mark.parametrize("qrels", ["qrels.txt", "qrels.parquet", "qrels.csv", "qrels%20of%20two", "qrels%20of*/?.parquet"])  # fmt: skip
@pytest.mark.parametrize("run", ["run.txt", "run.gz", "run.parquet"])
def test_two_tables_as_uris(stored, scheme, qrels, run):
    told = []
    both = (f"{stored[scheme]}/{qrels}", f"{stored[scheme]}/{run}")
    rankings = read_qrels_run(*both, progress=lambda *each: told.append(each))
    assert facts(rankings) == PLAIN
    if qrels.endswith("txt") and not run.endswith("parquet"):
        assert facts(read_trec(*both)) == PLAIN
    words = ["score", "--qrels", both[0], "--run", both[1], "--format", "json"]
    result = commands.run(*words)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["queries"] == 3


@pytest.mark.parametrize("scheme", ["file", "store"])
def test_faults_of_what_a_uri_names(stored, scheme):
    good = f"{stored[scheme]}/qrels.txt"
    with pytest.raises(SourceError, match=r"nothing\.txt does not exist"):
        read_qrels_run(good, f"{stored[scheme]}/nothing.txt")
    with pytest.raises(SourceError, match=r"qrels.txt, line 1: 4 fields in"):
        read_trec(good, good)


@pytest.mark.pure
@pytest.mark.parametrize("blanks", [1, 2])
@pytest.mark.parametrize("line", [["1", "0", "Rome city", "1"], ["1", "Q0", "Rome city", "2", "0.5", "me"]])
def test_words_of_an_id_never_fill_an_empty_field_between_tabs(line, blanks, tmp_path):
    (tmp_path / "qrels").write_text("1\t0\tRome city\t1\n")
    (tmp_path / "run").write_text("1\tQ0\tRome city\t2\t0.5\tme\n")
    file = tmp_path / ("run" if len(line) == 6 else "qrels")
    good = file.read_text()
    for place in range(len(line)):
        fields = [" " * (blanks - 1) if at == place else field for at, field in enumerate(line)]
        for before in ("", good):
            file.write_text(
                before + "\t".join(fields).replace("city", "city" + " of it" * (blanks - 1)) + "\n"
            )
            with pytest.raises(SourceError, match="a field between tabs is empty"):
                read_trec(tmp_path / "qrels", tmp_path / "run")


# ---- ties and missing queries ----


_SCORES = st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.0, np.inf, -np.inf])


@given(st.data())
def test_a_join_is_what_dicts_make_of_it(data):
    """Rows in any order, queries that one side lacks, ties, documents that are there twice; ids of any length."""
    docs = st.integers(-3, 12) if data.draw(st.booleans()) else st.text("ab\0é", max_size=40)
    ties = data.draw(st.sampled_from(["docid_asc", "docid_desc", "input"]))
    unique = data.draw(st.sampled_from([None, lambda row: row[:2]]))
    rows_of = {}
    for name, values in (("relevance", st.integers(0, 3)), ("score", _SCORES)):
        row = st.tuples(st.sampled_from("pqrs"), docs, values)
        rows_of[name] = data.draw(st.lists(row, min_size=1, max_size=60, unique_by=unique))
    tables = [
        pa.table(dict(zip(("qid", "docid", name), map(list, zip(*rows, strict=True)), strict=True)))
        for name, rows in rows_of.items()
    ]
    of_query = {query: [[], []] for query, *_ in rows_of["relevance"]}
    for side, rows in enumerate(rows_of.values()):
        for query, *row in rows:
            if query in of_query:
                of_query[query][side].append(row)
    of_both = [(f"{name}, row", rows) for both in of_query.values() for name, rows in zip(("qrels", "run"), both, strict=True)]  # fmt: skip
    fault = next((name for name, rows in of_both if len({doc for doc, _ in rows}) < len(rows)), None)
    if not any(returned for _, returned in of_query.values()):
        fault = "qrels and run have no query in common"
    if fault:
        with pytest.raises(InputError, match=f"^{fault}"):
            Rankings.from_qrels_run(*tables, ties=ties)
        return
    both = [joins.side_of(name, *table.columns[:2])._replace(values=table[2].to_numpy()) for name, table in zip(("qrels", "run"), tables, strict=True)]  # fmt: skip
    rankings = Rankings._of(**joins.join(*both, "zero", ties, "refuse"))
    for place, (judged, returned) in enumerate(of_query.values()):
        if ties != "input":
            returned.sort(key=lambda row: row[0].encode() if isinstance(row[0], str) else row[0], reverse=ties == "docid_desc")  # fmt: skip
            returned.sort(key=lambda row: -row[1])
        grades, rows = dict(judged), slice(*rankings.offsets[place : place + 2])
        assert rankings.doc_ids[rows].to_pylist() == [doc for doc, _ in returned]
        assert rankings.relevance[rows].tolist() == [grades.get(doc, 0) for doc, _ in returned]
        assert rankings.is_judged[rows].tolist() == [doc in grades for doc, _ in returned]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "uint64", "float32", "float64", "float16"])
def test_scores_of_every_dtype_are_ordered_in_their_own_precision(dtype):
    scores = np.array([0, 1, 100, 1, 0, 127], dtype)
    if dtype == "uint64":
        scores[2] = 2**63 + 1
        scores[5] = 2**63 + 2
    run = pa.table({"qid": ["q"] * 6, "docid": list("abcdef"), "score": scores})
    rankings = Rankings.from_qrels_run({"q": {"a": 1}}, run)
    assert "".join(rankings.doc_ids.to_pylist()) == "fcdbea"


@pytest.mark.pure
@pytest.mark.parametrize("missing", ["zero", "skip"])
def test_no_query_in_common(both, missing):
    qrels, run = "".join(f"{q} 0 a 1\n" for q in range(4)), "".join(f"q{q} Q0 a 1 1 t\n" for q in range(3))
    message = r'qrels and .*run have no query in common: "0", "1", "2" \.\.\. there, "q0", "q1", "q2" here\. Compare how'
    for read in (read_trec, read_qrels_run):
        with pytest.raises(InputError, match=message):
            read(*both(qrels, run), missing=missing)
    with pytest.raises(InputError, match='qrels and run have no query in common: "1" there, "2" here'):
        Rankings.from_qrels_run({"1": {"a": 1}}, {"2": {"a": 1.0}}, missing=missing)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("judged", "returned", "missing", "message"),
    [
        (range(5), range(4, 9), "zero", 'qrels has 5 queries and run 5 queries; they have 1 in common. .* "0", "1", "2" ..., count with'),
        (range(5), range(4, 9), "skip", 'The other judged ones, "0", "1", "2" ..., are left out'),
        (range(5), range(3, 5), "zero", 'qrels has 5 queries and run 2 queries; they have 2 in common. .* ranking; pass missing="skip"'),
        (range(5), range(3, 5), "skip", None),
        (range(4), range(2, 9), "zero", None),
        (range(4), range(2, 9), "skip", None),
    ],
)  # fmt: skip
def test_few_queries_in_common(judged, returned, missing, message):
    qrels, run = {str(q): {"a": 1} for q in judged}, {str(q): {"a": 1.0} for q in returned}
    with nullcontext() if message is None else pytest.warns(fn.FastndcgWarning, match=message) as caught:
        Rankings.from_qrels_run(qrels, run, missing=missing)
    assert message is None or caught[0].filename == __file__


# ---- against the references ----


JUDGED = {"query_id": [301, 301, 302, 303], "doc_id": [7, 8, 7, 9], "relevance": [1, 2, 1, 0]}
SCORED = {"query_id": [301, 301, 302, 999], "doc_id": [6, 8, 7, 7], "score": [2.5, 1.5, 0.5, 0.5]}


def test_each_side_in_several_files(tmp_path):
    """In a folder or by a pattern, as from one file; and files that do not fit together."""
    sides = {"qrels": pa.table(JUDGED), "run": pa.table(SCORED)}
    for name, table in sides.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
        (tmp_path / name).mkdir()
        for part in range(4):
            pq.write_table(table[part : part + 1], tmp_path / name / f"part-{part}.parquet")
    wanted = facts(read_qrels_run(tmp_path / "qrels.parquet", tmp_path / "run.parquet"))
    for left, right in (
        ("qrels", "run"),
        ("qrels/*.parquet", "run.parquet"),
        ("qrels.parquet", "run/part-?.parquet"),
    ):
        assert facts(read_qrels_run(tmp_path / left, tmp_path / right)) == wanted
    odd, last = sides["run"][:1], tmp_path / "run" / "part-9.parquet"
    for write, right, message in (
        (lambda: pq.write_table(odd.set_column(1, "doc_id", pa.array([1.5])), last), "run", r'column "doc_id" is int64 in .*part-0\.parquet and double in .*part-9\.parquet; expected'),
        (lambda: pq.write_table(odd.drop_columns("doc_id"), last), "run", 'column "doc_id" is in .*part-0.* but not in .*part-9'),
        (lambda: last.write_bytes(b"PAR1"), "run", r"part-9\.parquet cannot be read"),
        (lambda: None, "none*.parquet", "no file matches"),
    ):  # fmt: skip
        write()
        with pytest.raises(SourceError, match=message):
            read_qrels_run(tmp_path / "qrels", tmp_path / right)


# ---- tables ----


@pytest.mark.parametrize("left", ["int16", "uint16", "int64", "uint64"])
@pytest.mark.parametrize("right", ["int32", "uint64"])
def test_integer_ids_of_two_widths(left, right):
    judged, scored = (
        {k: pa.array(v, t) if k.endswith("id") else v for k, v in c.items()}
        for c, t in ((JUDGED, left), (SCORED, right))
    )
    assert Rankings.from_qrels_run(pa.table(judged), pa.table(scored)).relevance.tolist() == [0, 2, 1]


def test_large_unsigned_ids():
    top, kind = 2**64 - 1, pa.uint64()
    judged = pa.table(
        {"qid": pa.array([top, 1], kind), "docid": pa.array([top, top - 1], kind), "rel": [1, 2]}
    )
    scored = pa.table(
        {"qid": pa.array([top] * 2, kind), "docid": pa.array([5, top], kind), "score": [1.0, 1.0]}
    )
    assert Rankings.from_qrels_run(judged, scored).doc_ids.to_pylist() == [top, 5]
    signed = pa.table({"qid": [-1, 1], "docid": [5, -3], "score": [1.0, 1.0]})
    with pytest.raises(InputError, match=f"documents of query 1 are {top - 1} there, -3 here"):
        Rankings.from_qrels_run(judged, signed)


def test_names_of_columns_and_ids_of_text_beside_numbers(tmp_path, both):
    files, named = (tmp_path / "q.parquet", tmp_path / "r.parquet"), {"query": "topic", "doc_id": "passage"}
    named["relevance"] = "gain"
    # text has no types: numbers of the other file are compared as they are written
    run = pa.table({"query_id": [301, 302], "doc_id": ["B", "A"], "score": [1.0, 2.0]})
    pq.write_table(run, files[1])
    assert read_qrels_run(both()[0], files[1]).relevance.tolist() == [2, 1]
    for table, value, file in ((JUDGED, "gain", files[0]), (SCORED, "score", files[1])):
        pq.write_table(pa.table(table).rename_columns(["topic", "passage", value]), file)
    assert read_qrels_run(*files, **named).n_docs == 3
    for words, message in (({}, r"q\.parquet.*query"), ({"query": "topics"}, "topics")):
        with pytest.raises(ColumnError, match=message):
            read_qrels_run(*files, **words)


@pytest.mark.pure
def test_ids_of_one_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(joins, "keys_of", lambda ids: np.zeros(len(ids), np.uint64))
    qrels = {"q": {f"d{i}": i for i in range(20)}}
    rankings = Rankings.from_qrels_run(qrels, {"q": {f"d{i}": 1.0 for i in range(10, 40)}})
    found = dict(zip(rankings.doc_ids.to_pylist(), rankings.relevance.tolist(), strict=True))
    assert found == {f"d{i}": i if i < 20 else 0 for i in range(10, 40)}


# ---- faults ----


@pytest.mark.pure
@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        ("301 0 A\n", RUN, r'qrels, line 1: 3 fields in "301 0 A"; expected a line of a TREC qrels file'),
        ("301 0 A 1\n\n# c\n301 0 B 1 9\n", RUN, r'qrels, line 4: 5 fields in "301 0 B 1 9"'),
        ("301 0 A one\n", RUN, r'qrels, line 1: "one" is not a number in "301 0 A one"'),
        ("301 0 A 1_0\n", RUN, r'qrels, line 1: "1_0" is not a number'),
        (b"301 0 A 1\xff\n", RUN, r'qrels, line 1: "1\\xff" is not a number in "301 0 A 1\\xff"'),
        (b"301\x01A\x1b[2J\n", RUN, r'qrels, line 1: 3 fields in "301\\x01A\\x1b\[2J"'),
        ("301 0 A inf\n", RUN, r'qrels, line 1: grade inf of document "A" of query "301"'),
        (
            QRELS,
            "# c\n301 Q0 A 1 0.5 t\n301 Q0 B 1 0.5\n",
            r'run, line 3: 5 fields in "301 Q0 B 1 0.5"; expected a line of a TREC run',
        ),
        (QRELS, "301 Q0 A 1 0.5 t\n\n301 Q0 B 1 0,5 t\r\n", r'run, line 3: "0,5" is not a number in "301 Q0 B 1 0,5 t"'),
        (QRELS, "301 Q0 A 1 nan t\n", r'run, line 1: score nan of document "A" of query "301"; 1 in all. .* or pass nan="last"'),
        (b"q 0 caf\xe9 1\n", b"q Q0 caf\xe9 1 1 t\nq Q0 caf\xe9 1 1 t\n", r'document "caf\\xe9" of query "q" appears twice'),
        (QRELS, "301\n", r'run, line 1: 1 field in "301"'),
        *(
            (QRELS, f"301 Q0 A 1 1.5 t\n301 Q0 B 1 {number} t\n301 Q0 C 1 0.5 t\n", "run, line 2: .* is not a number")
            for number in (".", "-", "+", "-.", "1.2.3", "1.5a", "1e", "--1", "1-", "0x10", "1_000", "12345678.12345678.", "１")
        ),
        (
            QRELS,
            "# c\n301 Q0 A 1 0.5 t\n302 Q0 A 1 2 t\n\n301 Q0 A 2 0.4 t\n",
            r'run, line 5: document "A" of query "301" appears twice, first at .*run, line 2',
        ),
        ("301 0 A 1\n301 0 A 1\n", RUN, r'qrels, line 2: document "A" of query "301" appears twice, first at .*qrels, line 1'),
        (QRELS, "301 Q0 X 1 1 t\n301 Q0 X 2 2 t\n", r'run, line 2: document "X" of query "301" appears twice'),
        ("", RUN, r"qrels has no judgments; expected at least one"),
        (QRELS, "# nothing\n", r"run has no documents; expected at least one"),
        (QRELS, b"\x00\x01\x02" * 50, r"run has no documents"),
    ],
)  # fmt: skip
def test_faulty_files(both, qrels, run, message):
    with pytest.raises(InputError, match=message):
        read_trec(*both(qrels, run))


@pytest.mark.pure
def test_files_that_cannot_be_read(write, tmp_path):
    good = write("good", QRELS)
    text = "".join(f"q{i} Q0 d{i * 7919 % 1000003} 1 {i * 0.37} t\n" for i in range(20_000)).encode()
    cut = [write(f"cut.{name}", (packed := pack(text))[: len(packed) // 2]) for name, pack in PACKERS.items()]
    for qrels, run, error, message in (
        (good, tmp_path / "absent", SourceError, r"absent does not exist\. Check the path\."),
        (tmp_path / "nowhere" / "qrels", good, SourceError, "its folder .*nowhere does not exist either"),
        (tmp_path, good, SourceError, "is a folder; expected a file"),
        (good, [], InputTypeError, "run is a list; expected the path of a file"),
        (good, "", SourceError, "run is an empty string; expected the path of a file"),
        *((good, path, SourceError, f"{path.name} cannot be read") for path in cut),
    ):
        with pytest.raises(error, match=message):
            read_trec(qrels, run)


GOOD, JUDGMENTS, OF_A = pa.table(SCORED), pa.table(JUDGED), {"q": {"a": 1}}
FAULTS = [
    ({"q": "a"}, {}, InputTypeError, r"qrels\['q'\] is a str; expected a dict from document id to grade, or a"),
    ({"q": ["a"]}, {"q": {"a"}}, InputTypeError, r"run\['q'\] is a set, which has no order; expected a list"),
    ({"q": ["a", "a"]}, {"q": ["a"]}, InputError, 'document "a" of query "q" appears twice'),
    ({"q": {"a": "1"}}, {}, InputTypeError, r"qrels holds values that are not numbers, beginning with '1'"),
    (OF_A, 5, InputTypeError, "run is a int; expected a dict of dicts"),
    (OF_A, "run.txt", InputTypeError, r"run is the path run.txt; .* read_qrels_run"),
    (OF_A, [{1}], InputTypeError, "run has rows of set; expected tuples or records with query_id, doc_id and score"),
    (OF_A, {"q": {"a": float("nan")}}, InputError, 'run: score nan of document "a" of query "q"'),
    ({7: {"a": 1}}, {"07": {"a": 1.0}}, InputError, 'no query in common: 7 there, "07" here'),
    (OF_A, {"q": {"A": 1.0}}, InputError, 'no document in common: documents of query "q" are "a"'),
    ({"q": {"a": 1, 2: 1}}, {}, InputTypeError, "qrels has document ids of mixed or unknown types"),
    ({"q": {1.5: 1}}, {}, InputTypeError, "qrels has document ids that are double; expected strings or whole numbers"),
    ({None: {"a": 1}, "q": {"a": 1}}, {}, InputError, "qrels has 1 query id that is None"),
    ({2**63: ["a"]}, {}, InputTypeError, "qrels has query ids of mixed or unknown types: .*too large"),
    ({"q": {"a": 2**70}}, {}, InputTypeError, "qrels holds values that are not numbers, beginning with 1180591620717411303424"),
    ({"q": [["a", "b"]]}, {}, InputTypeError, "qrels holds values that are not numbers, beginning with 'b'"),
    (pa.table({"qid": ["q"], "docid": [{"a": 1}], "rel": [1]}), {}, InputTypeError, 'column "docid" is struct.*; expected whole numbers or strings'),
    ({"q": {"a": "good"}}, {}, InputTypeError, "qrels holds values that are not numbers, beginning with 'good'"),
    (JUDGMENTS, pa.concat_tables([GOOD, GOOD[:1]]), InputError, "run, row 4: document 6 of query 301 appears twice, first at run, row 0"),
    (JUDGMENTS.drop(["relevance"]), GOOD, ColumnError, "qrels.*relevance"),
    (JUDGMENTS.append_column("docid", pa.array([1] * 4)), GOOD, ColumnError, "doc_id"),
    (JUDGMENTS.set_column(1, "doc_id", pa.array([1.5] * 4)), GOOD, InputTypeError, "column .doc_id. is double; expected whole numbers or strings"),
    (JUDGMENTS, GOOD.set_column(2, "score", pa.array(list("abcd"))), InputTypeError, "expected scores that are integers or floats"),
]  # fmt: skip


@pytest.mark.pure
@pytest.mark.parametrize(("qrels", "run", "error", "message"), FAULTS)
def test_faulty_values(qrels, run, error, message):
    with pytest.raises(error, match=message):
        Rankings.from_qrels_run(qrels, run)


@pytest.mark.pure
@pytest.mark.parametrize(("option", "message"), [
    ({"missing": "none"}, 'missing=\'none\' is not known; expected "zero" or "skip"'),
    ({"ties": "docid"}, "ties='docid' is not known; expected \"docid_desc\", \"docid_asc\" or \"input\"."),
    ({"score_dtype": np.int64}, "score_dtype is int64; expected float64 or float32"),
])  # fmt: skip
def test_unknown_options(both, option, message):
    with pytest.raises((InputError, InputTypeError), match=message):
        read_trec(*both(), **option)
    if "score_dtype" not in option:
        with pytest.raises(InputError, match=message):
            Rankings.from_qrels_run({}, {}, **option)


def test_reading_needs_no_extra_packages():
    code = "import sys, fastndcg.sources.trec, fastndcg.sources.letor; print(*sorted({'numba', 'pandas', 'polars'} & set(sys.modules)))"
    assert commands.printed(code) == "\n"


# ---- runs of MS MARCO ----

RANKED = "301\tC\t1\n301\tB\t2\n302\tA\t1\n999\tA\t1\n"


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "# by rank\n\n" + text.rstrip(),
        lambda text: text.replace("\t", "  "),
        lambda text: "".join(sorted(text.splitlines(keepends=True), key=lambda line: line[-2])),
    ],
)
@pytest.mark.parametrize("name", ["run", "run.tsv"])
def test_a_run_of_ranks(write, pack, change, name):
    text = change(RANKED)
    if name == "run.tsv":  # there a first line that is none of a run has the names of columns
        text = text.removeprefix("# by rank\n\n")
    qrels, run = write("qrels", QRELS), write(name, pack(text.encode()))
    for read in (read_trec, read_qrels_run):
        rankings = read(qrels, run)
        assert rankings.doc_ids.to_pylist() == ["C", "B", "A"]
        assert rankings.scores.tolist() == [-1, -2, -1]
        assert (
            fn.evaluate(rankings, "RR").mean()
            == fn.evaluate(read_trec(qrels, write("trec", RUN)), "RR").mean()
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("301\tC\t1\n\n301\tB\tnan\n", "line 3: score nan"),
        ("301\tC\t1\n301\tB\tfirst\n", "line 2"),
        ("301\tC\t1\n301\tB\n", "expected a line of an MS MARCO run: query doc rank"),
        ("301\tC\t1\n301 Q0 B 2 1.5 me\n", "expected a line of an MS MARCO run: query doc rank"),
        ("301 Q0 B 2 1.5 me\n301\tC\t1\n", "expected a line of a TREC run"),
        ("301\tC\t1\n301\tC\t2\n", "line 2"),
        pytest.param(gzip.compress(RANKED.encode())[:-12], "cannot be read", id="cut short"),
        ("", "has no documents"),
    ],
)
def test_a_wrong_run_of_ranks_is_named(both, text, message):
    qrels, run = both(run=text)
    for read in (read_trec, read_qrels_run):
        with pytest.raises((SourceError, InputError), match=message):
            read(qrels, run)


# ---- lines as people have them ----

SEEDS = range(12)
WORDS = ["Rome", "(city)", "caf\u00e9", "7", "#1", "a b", "x", "\u00a0", "Q0"]


def _table(seed, ids=lambda random, number: f"d{number}"):
    """Rows of random queries: query, document, grade or score; each query has two scores that are different."""
    random = np.random.default_rng(seed)
    rows = []
    for query in range(int(random.integers(2, 9))):
        scores = np.append(random.integers(0, 90, int(random.integers(2, 9))), [91, 7])
        name = ids(random, query)
        rows += [(name, ids(random, 100 + place), int(score)) for place, score in enumerate(scores)]
    return rows


def _as_dicts(rows):
    found = {}
    for query, doc, value in rows:
        found.setdefault(query, {})[doc] = value
    return found


def _judgments(rows):
    return {query: {doc: score % 3 for doc, score in docs.items()} for query, docs in _as_dicts(rows).items()}


def _values(qrels, run, **options):
    table = fn.evaluate(qrels, run, ["RR", "nDCG@3"], **options).to_arrow()
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.pure
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["run", "run.tsv"])
def test_three_fields_are_ranks_only_where_they_count_from_one(write, seed, name):
    rows = _table(seed)
    random, docs = np.random.default_rng(seed), _as_dicts(rows)
    by_score = sorted(rows, key=lambda row: (row[0], -row[2]))

    def run(rows):
        return write(name, "".join(f"{query}\t{doc}\t{number}\n" for query, doc, number in rows))

    expected = _values(_judgments(rows), docs)
    for scores in (rows, by_score, [rows[place] for place in random.permutation(len(rows))]):
        assert _values(_judgments(rows), run(scores)) == expected
    fractions = [(query, doc, score / 100) for query, doc, score in rows]
    assert _values(_judgments(rows), run(fractions)) == expected
    ranks = [(query, doc, place) for query, docs in docs.items() for place, doc in enumerate(docs, 1)]
    expected = _values(_judgments(rows), {query: list(found) for query, found in docs.items()})
    mixed = [ranks[place] for place in np.argsort([number * 5 % 3 for *_, number in ranks], kind="stable")]
    for lines in (ranks, mixed):
        assert _values(_judgments(rows), run(lines)) == expected
    from_zero = [(query, doc, number - 1) for query, doc, number in ranks]
    for either, what in ((ranks[::-1], r"1, 2, ... that fall"), (from_zero, r"other numbers .* that rise")):
        with pytest.raises(SourceError, match=what + r".* pass ascending=True.*pass columns="):
            fn.evaluate(_judgments(rows), run(either), "RR")
        assert _values(_judgments(rows), run(either), ascending=True) == expected
        scored = {
            query: {doc: -number for doc, number in found.items()}
            for query, found in _as_dicts(either).items()
        }
        assert _values(_judgments(rows), scored) == expected
        found = _values(_judgments(rows), run(either), columns=["query_id", "doc_id", "score"])
        assert found == _values(_judgments(rows), _as_dicts(either))


@pytest.mark.pure
@pytest.mark.parametrize("seed", SEEDS)
def test_a_fourth_column_of_times_is_no_grade(write, seed):
    random, rows = np.random.default_rng(seed), _table(seed)
    low, high = [(978_300_760, 10**9), (978_300_760_000, 10**12), (20_090_101, 20_261_231)][seed % 3]
    blank = "\t" if seed % 2 else " "
    text = "".join(
        blank.join(map(str, (user, item, score % 5 + 1, random.integers(low, high)))) + "\n"
        for user, item, score in rows
    )
    for name in ("ratings", "u.data", "ratings.tsv"):
        with pytest.raises(SourceError, match=r"line 1: .* timestamps.*query, iteration, document.*columns="):
            fn.evaluate(write(name, text), _as_dicts(rows), "RR")
    ratings = {
        user: {item: score % 5 + 1 for item, score in items.items()}
        for user, items in _as_dicts(rows).items()
    }
    columns = ["user_id", "item_id", "rating", "time"]
    assert _values(write("u.data", text), _as_dicts(rows), columns=columns) == _values(
        ratings, _as_dicts(rows)
    )


@pytest.mark.pure
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
def test_ids_between_tabs_keep_their_blanks(write, seed, end):
    def words(random, number):
        return " ".join([WORDS[place] for place in random.integers(0, len(WORDS), 3)] + [f"n{number}"])

    rows = [(query.lstrip("#"), doc, score) for query, doc, score in _table(seed, words)]
    scores, judged = _as_dicts(rows), _judgments(rows)
    expected = _values(judged, scores)
    qrels = "".join(f"{q}\t0\t{d}\t{g}{end}" for q, docs in judged.items() for d, g in docs.items())
    six = "".join(f"{q}\tQ0\t{d}\t1\t{s}\tmy run{end}" for q, d, s in rows)
    three = "".join(f"{q}\t{d}\t{s}{end}" for q, d, s in rows)
    for kind in ("", ".tsv"):
        for text in (six, three):
            assert _values(write("qrels" + kind, qrels), write("run" + kind, text)) == expected
    read = read_trec(write("qrels", qrels), write("run", six))
    assert set(read.doc_ids.to_pylist()) == {doc for _, doc, _ in rows}


@pytest.mark.pure
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("blank", [" ", "\t", "  "])
def test_query_ids_that_begin_with_a_hash_count(write, seed, blank):
    rows = _table(seed, lambda random, number: "#" * int(random.integers(0, 2)) + f"t{number}")
    rows.append(("#always", "d", 1))
    comments = ["", "# 7 0 a 1\n", "#made today\n", "\n", "# q Q0 d 1 2 t\n"]
    judged = _judgments(rows)
    expected = _values(judged, _as_dicts(rows))

    def text(lines):
        return "".join(
            comments[place % 5 if seed % 3 else 0] + blank.join(map(str, line)) + "\n"
            for place, line in enumerate(lines)
        )

    qrels = write("qrels", text([(q, 0, d, g) for q, docs in judged.items() for d, g in docs.items()]))
    for run in ([(q, "Q0", d, 1, s, "t") for q, d, s in rows], rows):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert _values(qrels, write("run", text(run))) == expected
        assert [str(each.message).count("begin with #") for each in told] == [1, 1]  # of each file


@pytest.mark.pure
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-8"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("seed", range(3))
def test_text_of_any_encoding_is_read_by_its_mark(write, encoding, pack, seed):
    rows = _table(seed, lambda _, number: f"\u00e9{number}" if number % 2 else f"{number}")
    judged, scores = _judgments(rows), _as_dicts(rows)
    expected = _values(judged, scores)
    table = {
        "qrels": "".join(f"{q} 0 {d} {g}\n" for q, docs in judged.items() for d, g in docs.items()),
        "qrels.csv": "query_id,doc_id,relevance\n" + "".join(f"{q},{d},{g}\n" for q, docs in judged.items() for d, g in docs.items()),
        "qrels.json": json.dumps(judged, ensure_ascii=False),
        "run": "".join(f"{q} Q0 {d} 1 {s} t\n" for q, d, s in rows),
        "run.tsv": "".join(f"{q}\t{d}\t{s}\n" for q, d, s in rows),
        "run.jsonl": "".join(json.dumps({"query_id": q, "doc_id": d, "score": s}, ensure_ascii=False) + "\n" for q, d, s in rows),
    }  # fmt: skip
    paths = {name: write(name, pack(("\ufeff" + text).encode(encoding))) for name, text in table.items()}
    for qrels in filter(lambda name: "qrels" in name, paths):
        for run in filter(lambda name: "run" in name, paths):
            assert _values(paths[qrels], paths[run]) == expected
    if encoding == "utf-8":
        return
    for name, text in table.items():  # cut within a sign
        cut = write(name, pack(("\ufeff" + text).encode(encoding)[:-1]))
        with pytest.raises(SourceError, match=rf"{name} cannot be read: .*codec can't decode"):
            fn.evaluate(*((cut, scores) if "qrels" in name else (judged, cut)), "RR")


def test_a_run_that_memory_is_too_small_for_is_an_error_that_says_what_is_possible(both, monkeypatch):
    def ends(*_args, **_options):
        raise MemoryError

    with pytest.raises(AttributeError, match="scan_qrels_run: join the run .* give that to scan_parquet"):
        fn.scan_qrels_run  # noqa: B018
    monkeypatch.setattr("fastndcg.tables.joins.join", ends)
    for read in (fn.read_trec, fn.read_qrels_run):
        with pytest.raises(SourceError, match=r"need more memory than is available.* scan_parquet"):
            read(*both())


@pytest.mark.parametrize("read", ["trec", "ltr", "csv"])
def test_an_empty_member_of_bzip2_is_named(read, tmp_path):
    lines = {"trec": b"1 0 A 1\n1 0 B 0\n", "ltr": b"1 qid:1 1:1\n", "csv": b"qid,label,score\n1,1,0.5\n"}[
        read
    ]
    path, run = tmp_path / "a.bz2", tmp_path / "run"
    path.write_bytes(bz2.compress(lines[:3]) + bz2.compress(b"") + bz2.compress(lines[3:]))
    run.write_text("1 Q0 A 1 0.5 t\n")
    reads = {
        "trec": lambda: fn.read_trec(path, run),
        "ltr": lambda: fn.read_ltr(path, scores=[1]),
        "csv": lambda: fn.read_csv(path),
    }
    with pytest.raises(
        fn.SourceError,
        match=r"a\.bz2 cannot be read: one of several concatenated bzip2 streams is empty.*bzip2 -d",
    ):
        reads[read]()


@pytest.mark.parametrize(
    "run", [{}, {"q": {}}, {"q": []}, pa.table({"qid": pa.array([], "str"), "docid": [], "score": []})]
)
def test_a_run_without_documents_is_a_warning(run):
    qrels = {"q": {"a": 1}, "r": {}}
    with pytest.warns(
        FastndcgWarning, match="run has no documents, so each query of qrels counts with an empty"
    ):
        assert fn.evaluate(qrels, run, "RR").values.tolist() == [[0.0, 0.0]]
    assert Rankings.from_qrels_run({}, {"q": {"a": 1.0}}).n_queries == 0
    with pytest.warns(FastndcgWarning, match="run has no documents, so each query of qrels is left out"):
        assert Rankings.from_qrels_run(qrels, run, missing="skip").n_queries == 0


@pytest.mark.parametrize("rank", [-3.5, -1, 0.37, 1.25, np.inf])
@pytest.mark.parametrize("whole", [True, False])
def test_what_is_no_rank_is_refused(rank, whole):
    qrels = {"qid": ["q", "q"], "docid": [1, 2], "label": [1, 0]}
    run = {"qid": ["q", "q"], "docid": [1, 2], "place": [1, rank]}
    given = (qrels | run,) if whole else (qrels, run)
    with pytest.raises(
        InputError, match=r'column "place" has .* at row 1, query "q", which is not a rank; expected'
    ):
        fn.evaluate(*given, "RR", rank="place")
    ranks = {"place": [1.5, 1.5]}
    given = (qrels | ranks,) if whole else (qrels, run | ranks)
    assert fn.evaluate(*given, "RR", rank="place").mean() == {"RR": 0.75}
