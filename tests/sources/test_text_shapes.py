"""The same judgments and run as text of any shape: the same value, or a refusal whose named argument gives it."""

import json
import re

import commands
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastndcg as fn

pytestmark = pytest.mark.pure
ROWS = [(q, d, (q * 7 + d) % 4 + 0.5 * (d % 2)) for q in (1, 2, 3) for d in range(10, 16)]
SCORED = [(q, d, ((q * 5 + d * 3) % 7) + 0.25) for q in (1, 2, 3) for d in range(11, 18)]
SEPARATORS = [",", "\t", ";", "|", "::", " ", "   ", " || "]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-32"]


def nested(rows):
    by_query = {}
    for query, doc, value, *_ in rows:
        by_query.setdefault(query, {})[doc] = value
    return by_query


def value_of(judged, returned, **options):
    sides = (judged,) if returned is None else (judged, returned)
    return fn.evaluate(*sides, "nDCG@5, RR", **options).mean()


EXPECTED = value_of(nested(ROWS), nested(SCORED))


def suggested(message):
    """The arguments that a refusal names, as Python values."""
    found = {}
    if names := re.search(r"columns=(\[[^]]*\])", message):
        found["columns"] = json.loads(names[1])
    if decimal := re.search(r'decimal="(.)"', message):
        found["decimal"] = decimal[1]
    if 'unjudged="null"' in message:
        found["unjudged"] = "null"
    return found


def value_in_steps(judged, returned, **options):
    """The value, after each refusal with what it names, and whether there was one."""
    for step in range(4):
        try:
            return value_of(judged, returned, **options), step
        except fn.FastndcgError as error:
            named = suggested(str(error))
            if not named or named.items() <= options.items():
                raise
            options |= named
    raise AssertionError(options)


@st.composite
def texts(draw, role):
    """How a table of three columns, or with the time of a rating four, is written, and what its reader needs."""
    columns = {"qrels": "doc_id relevance", "run": "doc_id score", "table": "relevance score"}[role].split()
    rows = {"qrels": ROWS, "run": SCORED, "table": BOTH}[role]
    sep = draw(st.sampled_from(SEPARATORS))
    decimal = draw(st.sampled_from([".", ","])) if sep != "," else "."
    has_header, has_time = draw(st.booleans()), draw(st.booleans()) and role == "qrels"
    names = ["query_id", *columns, *(["time"] if has_time else [])]
    times = {q: [978300760 + q] if has_time else [] for q in (1, 2, 3)}
    lines = [[q, *(str(each).replace(".", decimal) for each in row), *times[q]] for q, *row in rows]
    null = draw(st.sampled_from([None, "NA", "None", r"\N", "NULL"])) if role == "qrels" else None
    if null is not None:
        lines.insert(draw(st.integers(1, 9)), [1, 99, null, *lines[0][3:]])
    options = {"decimal": decimal} if decimal == "," else {}
    options |= {"unjudged": "null"} if null is not None else {}
    if sep == " || ":
        options["sep"] = sep
    comments = []
    if has_header:
        comments = draw(st.sampled_from([[], ["# made today"], ["# a", "# b: c"]]))
        lines = [[each] for each in comments] + [names] + lines
    elif draw(st.booleans()):
        options["columns"] = names
    else:
        options |= {"query": 0, columns[0]: 1, columns[1]: 2}
    end = draw(st.sampled_from(["\n", "\r\n", *(["\r"] if role == "table" and not comments else [])]))
    text = end.join(sep.join(map(str, line)) for line in lines) + draw(st.sampled_from(["", end]))
    name = draw(st.sampled_from(["a.csv", "A.TSV", "a.txt", "a.dat", "a"]))
    return name, text.encode(draw(st.sampled_from(ENCODINGS))), options


BOTH = [(q, g, s) for q, d, g in ROWS for p, e, s in SCORED if (q, d) == (p, e)]
OF_BOTH = fn.evaluate(fn.Rankings.from_query_ids(*map(list, zip(*BOTH, strict=True))), "nDCG@5, RR").mean()
SIDES = {
    "qrels": lambda path: (path, nested(SCORED)),
    "run": lambda path: (nested(ROWS), path),
    "table": lambda path: (path, None),
}


@pytest.mark.parametrize("role", SIDES)
@settings(max_examples=100)
@given(data=st.data())
def test_every_text_gives_the_same_values(role, data, tmp_path_factory):
    name, content, options = data.draw(texts(role))
    path = written(tmp_path_factory.mktemp("texts"), name, content)
    if role == "table":
        parts = list(fn.scan_csv(path, **options))
        assert np.concatenate([part.scores for part in parts]).tolist() == [s for *_, s in BOTH]
    assert value_of(*SIDES[role](path), **options) == (OF_BOTH if role == "table" else EXPECTED)


@pytest.mark.parametrize("role", SIDES)
@settings(max_examples=100)
@given(data=st.data())
def test_a_refusal_names_the_argument_that_works(role, data, tmp_path_factory):
    name, content, options = data.draw(texts(role))
    path = written(tmp_path_factory.mktemp("texts"), name, content)
    found, steps = value_in_steps(
        *SIDES[role](path), **{key: options[key] for key in options if key == "sep"}
    )
    assert found == (OF_BOTH if role == "table" else EXPECTED)
    assert steps or not {"decimal", "unjudged"} & set(options)


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def joined(rows, sep=","):
    return "".join(sep.join(map(str, row)) + "\n" for row in rows)


PAIRS = [(q, d) for q, d, v in ROWS if v]
RELEVANT = {q: [d for p, d in PAIRS if p == q] for q in (1, 2, 3)}
COUNTED = pd.DataFrame(ROWS)
TABLES = {
    "frame of pandas without names": (COUNTED, {"query": 0, "doc_id": 1, "relevance": 2}),
    "named": (COUNTED, {"columns": ["user", "item", "rating"]}),
    "table of Arrow without names": (
        pa.table({f"f{at}": list(column) for at, column in enumerate(zip(*ROWS, strict=True))}),
        {"columns": ["user", "item", "rating"]},
    ),
    "tuples": ([(q, 0, d, v) for q, d, v in ROWS], {"columns": ["query", "iteration", "doc", "rel"]}),
    "rows of NumPy": (np.array(ROWS), {"columns": ["query", "doc", "rel"]}),
    "hits": (
        {
            "qid": [1, 2, 3],
            "hits": [[{"docid": d, "rel": v} for p, d, v in ROWS if p == q] for q in (1, 2, 3)],
        },
        {},
    ),
}


@pytest.mark.parametrize("shape", TABLES)
def test_tables_without_names(shape):
    data, options = TABLES[shape]
    assert value_of(data, nested(SCORED), **options) == EXPECTED


def test_judgments_of_two_and_three_fields(tmp_path):
    run, binary = nested(SCORED), value_of(RELEVANT, nested(SCORED))
    assert value_of(written(tmp_path, "q.txt", joined(ROWS, " ")), run) == EXPECTED
    assert value_of(written(tmp_path, "q.tsv", joined(ROWS, "\t")), run) == EXPECTED
    assert fn.evaluate(fn.read_trec(tmp_path / "q.tsv", written(tmp_path, "r", joined(SCORED, " "))), "RR")
    for sep, name in ((" ", "q.txt"), ("\t", "q.tsv"), (",", "q.csv"), (",", "q")):
        path = written(tmp_path, name, joined(PAIRS, sep))
        with pytest.raises(fn.SourceError, match=r'columns=\["query_id", "doc_id"\], and grades=1'):
            value_of(path, run)
        assert value_of(path, run, columns=["query_id", "doc_id"], grades=1) == binary
        assert value_of(path, run, query=0, doc_id=1, grades=1) == binary
        with pytest.raises(fn.SourceError, match="the score or the rank of each document as its third field"):
            value_of(nested(ROWS), path)
    with pytest.raises(fn.InputTypeError, match="tuples of 2 values.* or grades=1, the grade of all"):
        value_of(PAIRS, run)
    assert value_of(PAIRS, run, grades=1) == binary


def test_judgment_lists_of_plugins(tmp_path):
    plain = "".join(f"{v} qid:{q} # {d} a title of it\n" for q, d, v in ROWS)
    letor = "".join(f"{v} qid:{q} 1:0.5 2:7 #docid = {d} inc = 1 prob = 0.1\n" for q, d, v in ROWS)
    for text in (f"# qid:1: rambo\n#\n{plain}", letor, letor.replace("\n", "\r\n")):
        assert value_of(written(tmp_path, "judgments.txt", text), nested(SCORED)) == EXPECTED
    with pytest.raises(
        fn.SourceError, match='line 1: 3 fields in "4 qid:1 1:0.5"; expected .*grade qid:query # doc'
    ):
        value_of(written(tmp_path, "judgments.txt", "4 qid:1 1:0.5\n"), nested(SCORED))


def test_both_sides_without_header(tmp_path):
    judged = written(tmp_path, "q.csv", joined(ROWS))
    returned = written(tmp_path, "r.psv", joined(SCORED, "|"))
    sides = {"qrels": ["user", "item", "rating"], "run": ["user", "item", "score"]}
    assert value_of(judged, returned, columns=sides) == EXPECTED
    assert value_of(judged, returned, query=0, doc_id=1, relevance=2, score=2) == EXPECTED
    trec = written(tmp_path, "r.txt", "".join(f"{q} Q0 {d} 1 {v} me\n" for q, d, v in SCORED))
    assert value_of(judged, trec, columns=sides["qrels"]) == EXPECTED
    assert value_of(judged, trec, query=0, doc_id=1, relevance=2) == EXPECTED
    words = ["score", "--qrels", str(judged), "--run", str(returned), "-m", "RR", "--format", "json"]
    ran = commands.run(*words)
    assert ran.exit_code == 3 and '--columns "query_id,doc_id,relevance"' in ran.stderr
    ran = commands.run(*words, "--columns", "qrels=user,item,rating;run=user,item,score", "--decimal", ".")
    assert json.loads(ran.stdout)["measures"][0]["mean"] == EXPECTED["RR"], ran.stderr
    table = written(tmp_path, "o.dat", joined([(q, v, v) for q, _, v in ROWS], "::"))
    assert commands.run("score", str(table), "--columns", "qid,label,score", "--sep", "::").exit_code == 0
    named = fn.read_csv(table, columns=["qid", "label", "score"])
    streamed = [part.relevance for part in fn.scan_csv(table, query=0, relevance=1, score=2)]
    assert named.relevance.tolist() == np.concatenate(streamed).tolist() == [v for *_, v in ROWS]


HEADED = "user,item,rating\n" + joined(ROWS)
WRONG = [
    (HEADED, {"columns": ["user", "item", "rating"]}, 'has a header, "user,item,rating"; give no columns='),
    (HEADED, {"query": 0, "doc_id": 1, "relevance": 2}, "has a header"),
    (HEADED.replace("user,item,rating", "a,b,c"), {"columns": ["user", "item", "rating"]}, "If this line is a header"),
    (HEADED, {"columns": ["user", "item"]}, "has 3 fields in its first line.* names 2"),
    (joined(ROWS, "|"), {}, r'no header.*columns=\["query_id", "doc_id", "relevance"\]'),
    (HEADED.replace(",", "~"), {}, "separates its fields, pass it as sep="),
    (HEADED.replace(",", ";").replace(".", ","), {}, 'Pass decimal=","'),
    ("1,10,5\n1,11\n", {"columns": ["user", "item", "rating"]}, "row 2: Expected 3 columns.* as the first line has"),
    ("qid,docid,rel\n,10,5\n,11,3\n", {}, 'column "qid" has 2 nulls; the first is at row 2'),
    ("1 0 10 5\n".encode("utf-16-le"), {}, "UTF-16 without a byte order mark.* iconv -f utf-16-le"),
    (HEADED.encode("utf-16-be"), {}, "UTF-16 without a byte order mark.* iconv -f utf-16-be"),
    (HEADED, {"sep": ""}, "sep is ''; expected the separator of fields"),
    (HEADED, {"columns": "user,item,rating"}, "columns is 'user,item,rating'; expected the name of each field"),
    (HEADED, {"query": -1}, "query=-1 is a int; expected the name of a column, or its place"),
    (HEADED, {"query": True}, "query=True is a bool"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "options", "message"), WRONG)
def test_what_is_refused(content, options, message, tmp_path):
    with pytest.raises(fn.FastndcgError, match=message):
        value_of(written(tmp_path, "q.csv", content), nested(SCORED), **options)


def test_headers_that_are_numbers(tmp_path):
    by_place = {"query": 0, "doc_id": 1, "relevance": 2}
    for header, index in (("0,1,2\n", False), (",0,1,2\n", True)):
        rows = [(at, *row) if index else row for at, row in enumerate(ROWS)]
        path = written(tmp_path, "q.csv", header + joined(rows))
        assert value_of(path, nested(SCORED), **by_place) == EXPECTED
    path = written(tmp_path, "q.csv", "0,1,2\n" + joined(ROWS))
    with pytest.warns(fn.FastndcgWarning, match='the first line, "0,1,2", counts as a row'):
        assert len(fn.evaluate(path, nested(SCORED), "RR", columns=["user", "item", "rating"])) == 4
    path = written(tmp_path, "numpy.txt", "# qid docid rel\n" + joined(ROWS, " "))
    assert value_of(path, nested(SCORED)) == EXPECTED


def test_an_empty_id_is_stored_as_such(tmp_path):
    qids = pa.array(["", "8", "None"])
    scores = fn.evaluate(pa.table({"qid": qids, "label": [1, 0, 1], "score": [0.5, 0.1, 0.2]}), "RR")
    fn.scores.scores.write_results(tmp_path / "a.csv", [scores.to_arrow()])
    assert (tmp_path / "a.csv").read_text().splitlines()[1] == '"",1.0'
    ran = commands.run("score", str(tmp_path / "a.csv"), "-m", "RR", "--format", "json")
    assert json.loads(ran.stdout)["measures"][0]["queries"] == 3, ran.stderr


def test_nulls_are_read_where_numbers_are(tmp_path):
    """NA far behind the first block, and a document that is called so."""
    rows = [(q, "NA" if d == 10 else d, v) for q, d, v in ROWS] + [
        (1, d, "NA") for d in range(10**5, 2 * 10**5)
    ]
    path = written(tmp_path, "q.csv", "qid,docid,rel\n" + joined(rows))
    run = {q: {"NA" if d == 11 else str(d): v for d, v in docs.items()} for q, docs in nested(SCORED).items()}
    judged = {
        q: {"NA" if d == 10 else str(d): v for d, v in docs.items()} for q, docs in nested(ROWS).items()
    }
    assert value_of(path, run, unjudged="null") == value_of(judged, run)
    with pytest.raises(
        fn.InputError, match='column "rel" has 100,000 nulls; the first is at row 20, query "1"'
    ):
        value_of(path, run)
