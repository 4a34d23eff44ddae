"""Judgments and runs as people have them: every shape by every way in gives the same values, or says what is wrong."""

import gzip
import json
import re
import shutil
import warnings
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import commands
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run

import fastndcg as fn
from fastndcg.sources.trec import rankings_of_both
from fastndcg.tables.roles import Roles

MEASURES = ["nDCG@10", "AP", "RR", "P@3"]
RANDOM = np.random.default_rng(11)
# ids are written as whole numbers, so that the same ones can be numbers or text; scores of a query fall
QRELS = {str(q): {str(100 + d): int(RANDOM.integers(0, 3)) for d in range(6)} for q in range(1, 26)}
RUN = {
    str(q): {str(100 + d): round(9.5 - 0.25 * place, 2) for place, d in enumerate(RANDOM.permutation(9))}
    for q in range(1, 26)
}
RELEVANT = {query: [doc for doc, grade in docs.items() if grade] for query, docs in QRELS.items()}
ROWS = [(q, d, g) for q, docs in QRELS.items() for d, g in docs.items()]
RETURNED = [(q, d, s, place) for q, docs in RUN.items() for place, (d, s) in enumerate(docs.items(), 1)]
HELD_OUT = [(q, d) for q, docs in RELEVANT.items() for d in docs]


def wanted(*, binary=False):
    qrels = {q: dict.fromkeys(docs, 1) for q, docs in RELEVANT.items()} if binary else QRELS
    return dict(fn.evaluate(fn.Rankings.from_qrels_run(qrels, RUN), MEASURES).mean())


def frame(rows, names, kind=str):
    table = pd.DataFrame([row[: len(names.split())] for row in rows], columns=names.split())
    return table.astype(dict.fromkeys(names.split()[:2], kind))


def tsv(table):
    return table.to_csv(sep="\t", index=False).encode()


def parquet(table):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), sink)
    return sink.getvalue().to_pybytes()


def by_query(rows, *names):
    """A row a query, with a list of what each row says beside its query."""
    lists = {}
    for query, *values in rows:
        for values_of_query, value in zip(lists.setdefault(query, [[] for _ in names]), values, strict=False):
            values_of_query.append(value)
    return pd.DataFrame([(query, *values) for query, values in lists.items()], columns=["user_id", *names])


def hits(rows, document, value, kind=str):
    """A row a query, with a list of structs."""
    lists = {}
    for query, doc, number, *_ in rows:
        lists.setdefault(kind(query), []).append({document: kind(doc), value: number})
    return pa.table({"user": list(lists), "recommendations": list(lists.values())})


def pairs(rows):
    table = by_query(rows, "docs", "values")
    of_queries = [list(zip(*row, strict=True)) for row in zip(table["docs"], table["values"], strict=True)]
    return pd.DataFrame({"qid": table["user_id"], "hits": of_queries})


def arrow_parquet(table):
    pq.write_table(table, sink := pa.BufferOutputStream())
    return sink.getvalue().to_pybytes()


def lines(table):
    return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()


def texts(rows, name):
    table = by_query(rows, name)
    return pd.DataFrame({"user_id": table["user_id"], name: table[name].map(" ".join)})


def maps(sides):
    columns = list(sides), [list(docs.items()) for docs in sides.values()]
    value = pa.float64() if sides is RUN else pa.int64()
    return pa.table([columns[0], pa.array(columns[1], pa.map_(pa.string(), value))], names=["qid", "docs"])


Hit = namedtuple("Hit", "qid docno score")
RANKED = [(q, d, place) for q, d, _, place in RETURNED]
# name: what it is in Python, the name of its file, and what stands in it
JUDGMENTS = {
    "TREC": (None, "qrels.txt", "".join(f"{q} 0 {d} {g}\n" for q, d, g in ROWS).encode()),
    "BEIR": (frame(ROWS, "query-id corpus-id score", int), "test.tsv", tsv(frame(ROWS, "query-id corpus-id score"))),
    "BEIR as text": (None, "qrels", tsv(frame(ROWS, "query-id corpus-id score"))),
    "ranx JSON": (QRELS, "qrels.json", json.dumps(QRELS).encode()),
    "indented JSON": (None, "qrels.json", json.dumps(QRELS, indent=2).encode()),
    "packed JSON": (None, "qrels.json.gz", gzip.compress(b"\n" + json.dumps(QRELS).encode() + b"\n")),
    "JSON of no ending": (None, "qrels", json.dumps(QRELS).encode()),
    "numbers": (frame(ROWS, "qid docid rel", int), "q.parquet", parquet(frame(ROWS, "qid docid rel", int))),
    "floats": (frame(ROWS, "qid docid rel", float), "q.parquet", parquet(frame(ROWS, "qid docid rel", float))),
    "floats as text": (None, "q.csv", frame(ROWS, "qid docid rel", float).to_csv(index=False).encode()),
    "dict of numbers": ({float(q): {int(d): g for d, g in docs.items()} for q, docs in QRELS.items()}, "", None),
    "dict of columns": (frame(ROWS, "qid docid rel").to_dict("list"), "", None),
    "tuples": ([SimpleNamespace(query_id=q, doc_id=d, relevance=g) for q, d, g in ROWS], "", None),
    "records": (frame(ROWS, "qid docid rel").to_dict("records"), "", None),
    "a Series a query": ({q: pd.Series(docs) for q, docs in QRELS.items()}, "", None),
    "objects": ({q: [{"corpus_id": d, "score": g} for d, g in docs.items()] for q, docs in QRELS.items()}, "q.json",
                json.dumps({q: [{"corpus_id": d, "score": g} for d, g in docs.items()] for q, docs in QRELS.items()}).encode()),
    "plain tuples": (ROWS, "", None),
    "lists of ids and of grades": (by_query(ROWS, "doc_id", "label"), "q.parquet", parquet(by_query(ROWS, "doc_id", "label"))),
    "structs": (hits(ROWS, "docid", "rel"), "q.jsonl", lines(hits(ROWS, "docid", "rel"))),
    "structs of numbers": (hits(ROWS, "item", "rating", int), "q.parquet", arrow_parquet(hits(ROWS, "item", "rating", int))),
    "pairs in a frame": (pairs(ROWS), "", None),
    "maps": (maps(QRELS), "q.parquet", arrow_parquet(maps(QRELS))),
    "None as unjudged": ({q: {"0": None} | docs | {"9999": None} for q, docs in QRELS.items()}, "q.json",
                         json.dumps({q: {"0": None} | docs for q, docs in QRELS.items()}).encode()),
}  # fmt: skip
HOLDOUTS = {
    "lists": (RELEVANT, "h.json", json.dumps(RELEVANT).encode()),
    "lists of numbers": ({int(u): [int(i) for i in items] for u, items in RELEVANT.items()}, "h.json",
                         json.dumps({u: [int(i) for i in items] for u, items in RELEVANT.items()}, indent=1).encode()),
    "sets": ({user: set(items) for user, items in RELEVANT.items()}, "", None),
    "arrays": ({user: np.array(items) for user, items in RELEVANT.items()}, "", None),
    "lists in a frame": (by_query(HELD_OUT, "item_id"), "h.parquet", parquet(by_query(HELD_OUT, "item_id"))),
    "lists by their name": (by_query(HELD_OUT, "ground_truth"), "h.jsonl",
                            lines(pa.Table.from_pandas(by_query(HELD_OUT, "relevant_ids")))),
    "texts of ids": (texts(HELD_OUT, "expected_ids"), "h.csv", texts(HELD_OUT, "ground_truth").to_csv(index=False).encode()),
    "a Series of ids a query": ({user: pd.Series(items) for user, items in RELEVANT.items()}, "", None),
    "rows without grades": (frame(HELD_OUT, "user item"), "h.csv", tsv(frame(HELD_OUT, "user item"))),
    "numbers without grades": (frame(HELD_OUT, "user_id item_id", int), "h.parquet", parquet(frame(HELD_OUT, "user_id item_id", int))),
}  # fmt: skip
RUNS = {
    "TREC": (None, "run.txt", "".join(f"{q} Q0 {d} {p} {s} me\n" for q, d, s, p in RETURNED).encode()),
    "MS MARCO": (None, "run", "".join(f"{q}\t{d}\t{p}\n" for q, d, p in RANKED).encode()),
    "BEIR results": (RUN, "results.json", json.dumps(RUN).encode()),
    "indented JSON": (None, "run.json", json.dumps(RUN, indent=4).encode()),
    "ranked lists": ({q: list(docs) for q, docs in RUN.items()}, "lists.json",
                     json.dumps({q: list(docs) for q, docs in RUN.items()}).encode()),
    "tuples": ({int(q): tuple(map(float, docs)) for q, docs in RUN.items()}, "", None),
    "pairs": ({q: list(docs.items()) for q, docs in RUN.items()}, "pairs.json",
              json.dumps({q: list(docs.items()) for q, docs in RUN.items()}).encode()),
    "plain tuples of rows": ([row[:3] for row in RETURNED], "", None),
    "named tuples": ([Hit(*row[:3]) for row in RETURNED], "", None),
    "lists of ids": (by_query(RETURNED, "item_id"), "r.parquet", parquet(by_query(RETURNED, "item_id"))),
    "lists of ids and of scores": (by_query(RETURNED, "docid", "score"), "r.jsonl",
                                   lines(pa.Table.from_pandas(by_query(RETURNED, "docid", "score")))),
    "dict of lists of ids": (by_query(RETURNED, "prediction").to_dict("list"), "", None),
    "records with lists": (by_query(RETURNED, "retrieved_ids").to_dict("records"), "", None),
    "submission": (texts(RETURNED, "predicted"), "r.csv", texts(RETURNED, "prediction").to_csv(index=False).encode()),
    "Spark ALS": (hits(RETURNED, "item", "rating", int), "r.parquet", arrow_parquet(hits(RETURNED, "item", "rating", int))),
    "JSON Lines of hits": (hits(RETURNED, "_id", "_score"), "r.jsonl", lines(hits(RETURNED, "_id", "_score"))),
    "answers": ({q: {"hits": {"hits": [{"_id": d, "_score": s} for d, s in docs.items()]}} for q, docs in RUN.items()}, "", None),
    "pairs in a frame": (pairs(RETURNED), "", None),
    "maps": (maps(RUN), "r.parquet", arrow_parquet(maps(RUN))),
    "only ranks": (frame(RANKED, "qid docid rank", int), "ranks.csv", tsv(frame(RANKED, "qid docid rank"))),
    "only ranks, shuffled": (frame(RANKED, "query item Rank", int).sample(frac=1, random_state=1), "ranks.parquet",
                             parquet(frame(RANKED, "query item Rank", int).sample(frac=1, random_state=1))),
    "floats": (frame(RETURNED, "qid docid score", float), "r.parquet", parquet(frame(RETURNED, "qid docid score", float))),
    "columns": (frame(RETURNED, "qid docid score").to_dict("list"), "", None),
    "records of NumPy": (frame(RETURNED, "qid docid score").to_records(index=False), "", None),
    "a Series a query": ({q: pd.Series(docs) for q, docs in RUN.items()}, "", None),
    "an object of ranx": (type("Run", (), {"to_dict": lambda _: RUN})(), "", None),
    "tuples of a frame": ([*frame(RETURNED, "query_id doc_id score").itertuples(index=False)], "", None),
}  # fmt: skip
IN_PYTHON, IN_FILES = ("evaluate", "from_qrels_run"), ("path", "command line", "standard input")


def ways(shapes):
    """Each shape, with each way to read it."""
    of_python = [
        (shape, way) for shape, (made, _, _) in shapes.items() if made is not None for way in IN_PYTHON
    ]
    return of_python + [(shape, way) for shape, (_, name, _) in shapes.items() if name for way in IN_FILES]


def mean_of(folder, way, judged, returned, stdin, **options):
    """Means of judgments and a run; `stdin` says which of the two comes through standard input."""
    sides = []
    for made, name, content in (judged, returned):
        (folder / (name or "none")).write_bytes(content or b"")
        sides.append(made if way in (*IN_PYTHON, "by name") else folder / name)
    if way == "evaluate":
        return dict(fn.evaluate(*sides, MEASURES, **options).mean())
    if way == "by name":
        several = fn.evaluate(sides[0], {"bm25": sides[1], 7: RUN}, MEASURES, **options)
        assert list(several) == ["bm25", "7"] and several["7"].n_queries == len(QRELS)
        return dict(several["bm25"].mean())
    if way == "from_qrels_run":
        return dict(fn.evaluate(fn.Rankings.from_qrels_run(*sides, **options), MEASURES).mean())
    if way == "path":
        return dict(fn.evaluate(fn.read_qrels_run(*sides, **options), MEASURES).mean())
    words = ["score", "--qrels", str(sides[0]), "--run", str(sides[1]), "--format", "json"]
    for name, value in options.items():
        words += [f"--{name}", str(value)]
    content = sides[stdin].read_bytes() if way == "standard input" else b""
    if content:
        words[2 + 2 * stdin] = "-"
    ran = commands.run(*words, *(word for measure in MEASURES for word in ("-m", measure)), input=content)
    assert ran.exit_code == 0, ran.stderr
    return {row["measure"]: row["mean"] for row in json.loads(ran.stdout)["measures"]}


@pytest.mark.parametrize(("shape", "way"), ways(JUDGMENTS))
def test_judgments(shape, way, tmp_path):
    run = RUNS["BEIR results" if shape != "numbers" else "only ranks, shuffled"]
    assert mean_of(tmp_path, way, JUDGMENTS[shape], run, 0) == wanted()


@pytest.mark.parametrize(("shape", "way"), ways(HOLDOUTS))
def test_holdouts(shape, way, tmp_path):
    options = {"grades": 1} if "without" in shape else {}
    assert mean_of(tmp_path, way, HOLDOUTS[shape], RUNS["BEIR results"], 0, **options) == wanted(binary=True)


OF_TUPLES = "plain tuples of rows", "named tuples"  # are no run by name
BY_NAME = [
    (shape, "by name") for shape, (made, *_) in RUNS.items() if made is not None and shape not in OF_TUPLES
]


@pytest.mark.parametrize(("shape", "way"), [*ways(RUNS), *BY_NAME])
def test_runs(shape, way, tmp_path):
    qrels = JUDGMENTS["ranx JSON" if shape != "floats" else "numbers"]
    assert mean_of(tmp_path, way, qrels, RUNS[shape], 1) == wanted()


# ---- what is no such shape says so ----


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"q1": {"a": 1}', "qrels.json cannot be read: .*; expected one JSON object: query -> "),
        ('{"q1": {"a": 1}} {"q2": {"a": 1}}', "cannot be read: Extra data"),
        ('{"q1": {"a": 1},}', "cannot be read"),
        ('{"q1": {"a": 1}, 7: {}}', "cannot be read: Expecting"),
        ('{"q1": {"a": 1, "b": 1, "a": 2}}', 'qrels.json: document "a" appears twice'),
        ('{"q1": {"a": 1}, "q1": {"b": 1}}', 'qrels.json: query "q1" appears twice'),
        ("{}", "qrels.json has no documents"),
        ('{"q1": {}, "q2": []}', "qrels.json has no documents"),
        ('{"q1": {"a": "x"}}', "qrels.json holds values that are not numbers, beginning with 'x'"),
        ('{"q1": [{"a": 1}]}', "qrels.json: no column has a usual name of the doc_id"),
        ('{"q1": ["a", 7]}', "qrels.json has document ids of mixed or unknown types"),
        ('{"q1": ["a", null]}', "qrels.json has 1 document id that is None"),
        ('{"q1": {"a": 1}, "q2": "b"}', r"there is no|no column has"),
        ('{"q1": {"a": NaN}}', "grade nan of document"),
        ('{"q1": {"a": ' + "[" * 100_000, "cannot be read"),
        ('{"q1": {"\\ud800": 1}}', "qrels.json"),
    ],
)  # fmt: skip
def test_faulty_json(tmp_path, text, message):
    (tmp_path / "qrels.json").write_text(text)
    with pytest.raises(fn.errors.FastndcgError, match=message):
        fn.evaluate(tmp_path / "qrels.json", {"q1": {"a": 1.0}}, "nDCG")
    (tmp_path / "run.json").write_text('{"q1": {"a": 1.0}}')
    ran = run("score", "--qrels", tmp_path / "qrels.json", "--run", tmp_path / "run.json")
    assert ran.exit_code == 3 and ran.stderr.count("\n") == 1, ran.stderr


def test_one_file_of_two_is_told_what_to_give(tmp_path):
    (tmp_path / "a.json").write_bytes(RUNS["BEIR results"][2] or b"")
    ran = run("score", tmp_path / "a.json")
    assert ran.exit_code == 3
    assert (
        "a.json has judgments or a run, as query -> documents; both are needed, as in --qrels ..., --run ..."
        in ran.stderr
    )
    with pytest.raises(fn.SourceError, match=r"as in read_qrels_run\(qrels=\.\.\., run=\.\.\.\)"):
        fn.evaluate(tmp_path / "a.json", "nDCG")


def test_a_table_without_grades_is_told_of_the_option(tmp_path):
    table, name, content = HOLDOUTS["rows without grades"]
    with pytest.raises(fn.ColumnError, match="if every row is a relevant document, pass grades=1;"):
        fn.evaluate(table, RUN, "nDCG")
    (tmp_path / name).write_bytes(content or b"")
    (tmp_path / "r.json").write_text(json.dumps(RUN))
    ran = run("score", "--qrels", tmp_path / name, "--run", tmp_path / "r.json")
    assert ran.exit_code == 3 and "pass --grades 1;" in ran.stderr
    with pytest.raises(fn.ColumnError, match='relevance="user" and grades=1 are given'):
        fn.evaluate(table, RUN, "nDCG", relevance="user", grades=1)
    with pytest.raises(
        fn.ColumnError, match="grades=1 is the grade of every judgment, and this table has predictions"
    ):
        fn.evaluate({"qid": [1], "score": [1.0]}, "nDCG", grades=1)
    ran = run("score", tmp_path / "r.json", "--grades", "1,2")
    assert ran.exit_code == 2 and "expected WORD=GRADE" in ran.stderr


def test_whole_numbers_that_floats_would_round_are_refused():
    for scores in ({"a": 2**53 + 1, "b": 0.5}, [("a", 0.5), ("b", -(2**53) - 1)]):
        with pytest.raises(fn.InputError, match=r"run holds floats and whole numbers beyond 2\*\*53"):
            fn.evaluate({"q": {"a": 1}}, {"q": scores}, "nDCG")
    run = {"q": {"a": 2**53 + 1, "b": 2**53}}  # told apart
    assert fn.evaluate({"q": {"a": 1}}, run, "RR(ties='worst')").mean() == {"RR(ties='worst')": 1.0}


@pytest.mark.parametrize("bad", [1.5, 2.0**53, np.inf])
def test_other_floats_are_not(bad, tmp_path):
    columns = {"qid": np.array([1.0, bad]), "label": [1, 0], "score": [0.5, 0.1]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    for give in (columns, tmp_path / "a.parquet", fn.scan_parquet(tmp_path / "a.parquet")):
        with pytest.raises(fn.InputTypeError, match='column "qid" is double; expected query ids'):
            fn.evaluate(give, "nDCG")
    with pytest.raises(fn.InputTypeError, match="query_ids is double, and not all of them are whole"):
        fn.ndcg([1, 0], [0.5, 0.1], query_ids=columns["qid"])
    with pytest.raises(fn.InputError, match='column "qid" has 1 null'):
        fn.evaluate(columns | {"qid": [1.0, np.nan]}, "nDCG")


# ---- ids that never meet ----


def test_few_documents_in_common_are_warned_of():
    many = {str(q): {"a": 1.0} for q in range(201)}
    qrels = {q: {"b": 1} for q in many} | {"0": {"a": 1}}
    message = 'of 201 queries of run only 1 have a document that qrels judges: documents of query "1" are "b" there, "a" here'
    with pytest.warns(fn.FastndcgWarning, match=message):
        fn.evaluate(qrels, many, "nDCG")
    fn.evaluate(qrels | {"1": {"a": 1}, "2": {"a": 0}}, many, "nDCG")  # one in a hundred may be meant
    fn.evaluate({"q": {"a": -1, "b": 1}}, {"q": {"a": 1.0}}, "nDCG")  # in the pool, unjudged


# ---- one set of checks ----


@pytest.mark.parametrize("way", ["evaluate", "path", "command line"])
@pytest.mark.parametrize(
    ("judged", "returned", "options", "message"),
    [
        ("ranx JSON", "only ranks", {"score": "rank"}, 'column "rank" of .* is taken for scores, of which the highest'),
        ("ranx JSON", "rank in TREC", {}, "the score of .* is 1, 2, 3 and so on in the order of each query's rows, as ranks"),
        ("fractions", "whole numbers", {}, "the grade of .* holds fractions and the score of .* small whole numbers, as if"),
        ("ranx JSON", "one score", {}, "the score of .* holds one value, 3: all documents of a query are tied"),
        ("no grade", "BEIR results", {}, "the grade of .*: no grade is above 0"),
    ],
)  # fmt: skip
def test_runs_are_looked_at_as_tables_are(judged, returned, options, message, way, tmp_path):
    scores_of = {
        "rank in TREC": lambda s, p: p,
        "whole numbers": lambda s, p: p % 4,
        "one score": lambda s, p: 3,
    }
    qrels = {
        q: {d: {"fractions": g / 3 + 0.1, "no grade": -g}.get(judged, g) for d, g in docs.items()}
        for q, docs in QRELS.items()
    }
    score = scores_of.get(returned, lambda s, p: s)
    scored = {q: {d: score(s, p) for p, (d, s) in enumerate(docs.items(), 1)} for q, docs in RUN.items()}
    run_shape = RUNS.get(returned, (scored, "r.json", json.dumps(scored).encode()))
    sides = (qrels, "q.json", json.dumps(qrels).encode()), run_shape
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if way != "command line":
            mean_of(tmp_path, way, *sides, 0, **options)
            found = [str(each.message) for each in told if "no grade reaches" not in str(each.message)]
            assert len(found) == 1 and re.search(message, found[0]), found
            return
        for _, name, content in sides:
            (tmp_path / name).write_bytes(content or b"")
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        ran = run("score", "--qrels", tmp_path / "q.json", "--run", tmp_path / sides[1][1], *words)
    assert re.search(message, ran.stderr) and ran.exit_code == 0, ran.stderr
    assert not re.search(r"\w+=[\"T]", ran.stderr)  # no spelling of Python


@pytest.mark.parametrize("way", ["offsets", "groups", "ids", "dense", "lists", "ndcg", "with_scores"])
@pytest.mark.parametrize(
    ("grades", "scores", "message"),
    [
        (np.arange(120) % 3, np.arange(120) % 4 + 1, "scores is 1, 2, 3 and so on .* pass ascending=True$"),
        (RANDOM.random(120), np.arange(120) % 3, "relevance holds fractions and scores small whole numbers"),
        (np.arange(120) % 3, np.zeros(120), "scores holds one value, 0.0"),
        (np.zeros(120), RANDOM.random(120), "relevance: no grade is above 0"),
    ],
)
def test_arrays_are_looked_at_as_tables_are(grades, scores, message, way):
    make = {
        "offsets": lambda: fn.Rankings.from_offsets(np.arange(31) * 4, grades, scores),
        "groups": lambda: fn.Rankings.from_groups([4] * 30, grades, scores),
        "ids": lambda: fn.Rankings.from_query_ids(np.repeat(np.arange(30), 4), grades, scores),
        "dense": lambda: fn.Rankings.from_dense(grades.reshape(30, 4), scores.reshape(30, 4)),
        "lists": lambda: fn.Rankings.from_lists(list(grades.reshape(30, 4)), list(scores.reshape(30, 4))),
        "ndcg": lambda: fn.ndcg(grades, scores, group=[4] * 30),
        "with_scores": lambda: fn.Rankings.from_groups([4] * 30, grades, RANDOM.random(120)).with_scores(
            scores
        ),
    }
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        make[way]()
    found = [each for each in told if re.search(message, str(each.message))]
    assert found and len(told) <= 2 and all(each.filename == __file__ for each in told)


def test_what_is_said_to_be_ranks_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fn.Rankings.from_groups([4] * 30, np.arange(120) % 3, np.arange(120) % 4 + 1, ascending=True)
        fn.evaluate(QRELS, frame(RANKED, "qid docid rank"), "nDCG", rank="rank")
        fn.evaluate(QRELS, frame(RANKED, "qid docid place"), "nDCG", score="place", ascending=True)
        fn.Rankings.from_lists([[1, 0, 2]] * 30)
        fn.ndcg_score([[1, 0]] * 30, [[1, 1]] * 30)
    assert (
        dict(fn.evaluate(QRELS, frame(RANKED, "qid docid place"), MEASURES, rank="place").mean()) == wanted()
    )
    frame_of_both = frame(RETURNED, "qid docid score rank")
    assert (
        dict(fn.evaluate(QRELS, frame_of_both, MEASURES).mean()) == wanted()
    )  # scores, where there are both
    table = {"qid": [1, 1], "label": [0, 1], "rank": [2, 1]}
    assert fn.evaluate(table, "RR").mean() == {"RR": 1.0}


BESIDE = {"qid": [1, 1, 1, 2, 2, 3, 3], "docid": list("abcabab"), "label": [1, 0, 0, 0, 1, 0, 1]}
OTHERWISE = 'column "rank" orders the documents of {} of the first {} queries otherwise than column "score"'
RANKS = {  # scores, ranks, and how many queries of how many differ
    "reversed": ([0.1, 0.2, 0.3, 0.1, 0.2, 0.1, 0.2], [1, 2, 3, 1, 2, 1, 2], (3, 3)),
    "from 0, with gaps, some missing": ([1, 2, 3, 1, 2, 1, 2], [0, 7, None, 0, 5, 1, None], (2, 2)),
    "equal scores count for nothing": ([1, 1, 1, 1, 2, 1, 1], [3, 2, 1, 1, 2, 1, 2], (1, 1)),
    "equal ranks": ([1, 2, 3, 1, 2, 2, 1], [1, 1, 1, 1, 1, 1, 2], None),
    "one query of three": ([3, 2, 1, 1, 2, 2, 1], [1, 2, 3, 1, 2, 1, 2], None),
    "agree": ([3, 2, 1, 2, 1, 2, 1], [0, 1, 2, 5, 9, 0.5, 0.7], None),
    "text": ([3, 2, 1, 2, 1, 2, 1], ["x"] * 7, None),
}


@pytest.mark.parametrize("case", RANKS)
@pytest.mark.parametrize(
    "way", ["frame", "from_arrow", "reader", "parquet", "csv", "stream", "run", "file of a run"]
)
def test_ranks_that_disagree_with_scores_are_told(case, way, tmp_path):
    scores, ranks, differ = RANKS[case]
    table = pd.DataFrame(BESIDE | {"score": scores, "rank": ranks})
    qrels, returned = table[["qid", "docid", "label"]], table.drop(columns="label")
    table.to_parquet(tmp_path / "t.parquet")
    table.to_csv(tmp_path / "t.csv", index=False)
    returned.to_csv(tmp_path / "r.csv", index=False)
    calls = {
        "frame": lambda **words: fn.evaluate(table, "RR", **words),
        "from_arrow": lambda **words: fn.Rankings.from_arrow(table, **words),
        "reader": lambda **words: fn.evaluate(
            pa.table(BESIDE | {"score": scores, "rank": ranks}).to_reader(), "RR", **words
        ),
        "parquet": lambda **words: fn.read_parquet(tmp_path / "t.parquet", **words),
        "csv": lambda **words: fn.read_csv(tmp_path / "t.csv", **words),
        "stream": lambda **words: fn.evaluate(fn.scan_parquet(tmp_path / "t.parquet", **words), "RR"),
        "run": lambda **words: fn.evaluate(qrels, returned, "RR", **words),
        "file of a run": lambda **words: fn.evaluate(qrels, tmp_path / "r.csv", "RR", **words),
    }
    for words in ({}, {"score": "score"}):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            calls[way](**words)
        found = [str(each.message) for each in told]
        assert [each.partition(", which")[0] for each in found if "otherwise" in each] == (
            [] if differ is None or words else [OTHERWISE.format(*differ).replace("1 queries", "1 query")]
        )


# ---- what is given in another order ----


def test_evaluate_takes_judgments_and_a_run():
    rankings = fn.Rankings.from_qrels_run(QRELS, RUN)
    scores = fn.evaluate(QRELS, RUN, "nDCG", cutoff=10, convention="sklearn")
    assert scores.mean() == fn.evaluate(rankings, "nDCG@10", convention="sklearn").mean()
    intents = {"q": {"a": {"1": 1, "2": 0}, "b": {"2": 1}}}
    assert fn.evaluate(intents, {"q": ["b", "a"]}, "alpha_nDCG@2").mean() == {"alpha_nDCG@2": 1.0}
    with pytest.raises(
        fn.InputTypeError, match=r"rankings is a dict of dicts, .* evaluate\(qrels, run, measures\)"
    ):
        fn.evaluate(QRELS, "nDCG")
    for systems in ({"a": rankings}, {"a": rankings, "b": fn.evaluate(rankings, "nDCG")}):
        with pytest.raises(
            fn.InputTypeError, match=r"dict of Rankings.*fastndcg\.compare\(systems, measures\), or"
        ):
            fn.evaluate(systems, "nDCG")
    with pytest.raises(fn.InputTypeError, match="has no argument is_judged="):
        fn.evaluate(QRELS, RUN, "nDCG", is_judged="x")


def test_compare_takes_measures_second():
    pytest.importorskip("scipy")
    one = fn.Rankings.from_qrels_run(QRELS, RUN)
    two = one.with_scores(one.scores * RANDOM.random(one.n_docs))
    systems = {"one": one, "two": two}
    by_name = fn.compare(systems, baseline="two", measures=["nDCG@10"]).to_arrow()
    for second in (["nDCG@10"], "nDCG@10", fn.nDCG @ 10, "ndcg@10"):
        assert fn.compare(systems, second, baseline="two").to_arrow().equals(by_name)
    assert fn.compare(systems, "two", measures="nDCG@10").to_arrow().equals(by_name)
    named = fn.compare({"AP": one, "two": two}, "AP", measures="nDCG@10")  # a system of that name
    assert named.to_arrow()["baseline"].to_pylist() == ["AP"]
    for second, options, message in (
        ("thre", {"measures": "AP"}, "'thre' is given beside measures="),
        ("AP", {"measures": "AP"}, "'AP' is given beside measures="),
        ("one", {"baseline": "two"}, "'one' is given beside baseline="),
    ):
        with pytest.raises(fn.InputError, match=message):
            fn.compare(systems, second, **options)
    with pytest.raises(fn.MeasureError):
        fn.compare(systems, ["nDGC@10"])


def test_nulls_of_a_left_join_name_the_join(tmp_path):
    joined = frame(RETURNED, "qid docid score").merge(frame(ROWS, "qid docid label"), how="left")
    assert joined["label"].isna().any()
    message = r"or, if a left join of a run with judgments left them, use Rankings\.from_qrels_run\(qrels=\.\.\., run="
    for give in (joined, pa.Table.from_pandas(joined)):
        with pytest.raises(fn.InputError, match=message):
            fn.evaluate(give, "nDCG")
    with pytest.raises(fn.InputError, match=message):
        fn.ndcg(joined["label"], joined["score"], query_ids=joined["qid"])
    pq.write_table(pa.Table.from_pandas(joined), tmp_path / "a.parquet")
    ran = run("score", tmp_path / "a.parquet")
    assert "or, if a left join of a run with judgments left them, use --qrels ..., --run ..." in ran.stderr
    with pytest.raises(fn.InputError, match=r'^qrels: column "label" has 25 nulls((?!left join).)*$'):
        fn.evaluate(frame([(q, "100", None) for q in RUN], "qid docid label"), RUN, "nDCG")


def test_conventions_take_judgments_and_a_run(tmp_path, monkeypatch):
    """The values of the join, as of the same rows in one table."""
    monkeypatch.chdir(tmp_path)
    Path("q.json").write_text(json.dumps(QRELS))
    Path("run.txt").write_bytes(RUNS["TREC"][2])
    both = ["conventions", "--qrels", "q.json", "--run", "run.txt"]
    asked = ["-n", "sklearn", "-n", "lightgbm", "-m", "nDCG@5", "--format", "json"]
    ran = run(*both, *asked)
    assert ran.exit_code == 0, ran.stderr
    rankings = fn.read_qrels_run("q.json", "run.txt")
    for row in json.loads(ran.stdout):
        assert row["value"] == fn.evaluate(rankings, "nDCG@5", convention=row["name"]).mean()["nDCG@5"]
    assert run(*both[:-1], "-", *asked, input=RUNS["TREC"][2]).stdout == ran.stdout
    for words, message in (
        (["conventions", "--qrels", "q.json"], "--qrels and --run go together"),
        ([*both, "x.parquet"], "conventions takes one system; give one --run"),
    ):
        refused = run(*words)
        assert refused.exit_code == 2 and message in refused.stderr
    explained = run(*both, "--explain", "sklearn", "lightgbm")
    assert explained.exit_code == 0 and explained.stderr.startswith("25 queries, 225 documents")


@pytest.mark.parametrize(
    ("command", "words", "option"),
    [
        ("score", ["--by", "nope"], ""),
        ("score", ["--by", "day", "--by", "nope"], ""),
        ("score", ["--keep", "nope", "--out", "out.parquet"], ""),
        ("score", ["-m", "nDCG@nope"], ""),
        ("score", ["--query", "nope"], " for --query"),
        ("score", ["--doc-id", "nope"], " for --doc-id"),
        ("score", ["--weight", "nope"], " for --weight"),
        ("score", ["--rank", "nope"], " for --rank"),
        ("score", ["--is-judged", "nope"], " for --is-judged"),
        ("compare", ["--by", "nope"], ""),
        ("compare", ["--cluster", "nope"], ""),
        ("compare", ["--score", "nope"], " for --score"),
        ("explain", ["-m", "nDCG@nope", "--worst", "1"], ""),
        ("report", ["--by", "nope", "--out", "page.html"], ""),
        ("conventions", ["--relevance", "nope"], " for --relevance"),
    ],
)
def test_a_message_names_the_column_and_the_option_of_its_role(command, words, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pa.table({"qid": [1, 1], "label": [1, 0], "score": [0.5, 0.1], "day": ["a", "a"]})
    pq.write_table(table, "a.parquet")
    pq.write_table(table, "b.parquet")
    ran = run(command, "a.parquet", *(["b.parquet"] if command in ("compare", "report") else []), *words)
    assert ran.exit_code == 3
    assert f'a.parquet: there is no column "nope"{option}; the columns are ' in ran.stderr


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["score", "bad.parquet"], "bad.parquet: nDCG@10 is not defined for the gain -1"),
        (["score", "bad.parquet", "--memory", "1MB"], "bad.parquet: nDCG@10 is not defined for the gain -1"),
        (["score", "bad.parquet", "--out", "out.csv"], "bad.parquet: nDCG@10 is not defined"),
        (["compare", "good.parquet", "bad.parquet"], "bad.parquet: nDCG@10 is not defined"),
        (["compare", "good.parquet", "bad.parquet", "--baseline", "good"], "bad.parquet: nDCG@10 is not defined"),
        (["explain", "good.parquet", "bad.parquet", "--id", "0"], '"bad": nDCG@10 is not defined'),
        (["explain", "good.parquet", "bad.parquet", "--movers", "1"], '"bad": nDCG@10 is not defined'),
        (["report", "good.parquet", "bad.parquet", "--out", "page.html"], '"bad": nDCG@10 is not defined'),
        (["score", "nan.parquet"], 'nan.parquet: column "score" has 1 NaN value'),
        (["compare", "good.parquet", "nan.parquet"], 'nan.parquet: column "score" has 1 NaN value'),
    ],
)  # fmt: skip
def test_a_message_names_the_file_that_is_bad(words, start, tmp_path, monkeypatch):
    """Messages of measures named a row and a query, of no file."""
    monkeypatch.chdir(tmp_path)
    good = {"qid": np.repeat(np.arange(50), 4), "label": np.arange(200) % 3, "score": RANDOM.random(200)}
    bad = {"label": np.arange(200) % 3 - 1}, {"score": np.where(np.arange(200) == 7, np.nan, good["score"])}
    for name, columns in (("good", good), ("bad", good | bad[0]), ("nan", good | bad[1])):
        pq.write_table(pa.table(columns), f"{name}.parquet", row_group_size=20)
    ran = run(*words)
    assert ran.exit_code == 3
    assert ran.stderr.startswith(start) and ran.stderr.count("\n") == 1, ran.stderr
    assert not Path("out.csv").exists()


def test_flags_are_advised_without_a_value(tmp_path):
    pq.write_table(pa.table({"qid": [1, 1], "label": [1, 0], "distance": [0.5, 0.1]}), tmp_path / "a.parquet")
    ran = run("score", tmp_path / "a.parquet", "--score", "distance", "-m", "RR", "--format", "csv")
    assert "if its lowest value is best, pass --ascending or, for ranks, --rank\n" in ran.stderr
    again = run("score", tmp_path / "a.parquet", "--score", "distance", "-m", "RR", "--ascending")
    assert again.exit_code == 0 and "Warning" not in again.stderr


@pytest.mark.pure
def test_judgments_of_another_scale_are_mapped_in_any_format(tmp_path):
    """What a warning of two scales advises, for TREC's qrels, JSON and dicts as for tables."""
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 2\n")
    (tmp_path / "qrels.json").write_text('{"1": {"a": 1, "b": 2}}')
    table = {"query": ["1", "1"], "doc_id": ["a", "b"], "relevance": [1, 2]}
    run = {"1": {"b": 0.5, "a": 0.25}}
    for qrels in (tmp_path / "qrels", tmp_path / "qrels.json", {"1": {"a": 1, "b": 2}}, table):
        for grades in ({1: 2, 2: 4}, {"1": 2, "2": 4}):
            mapped = rankings_of_both(qrels, run, Roles(grades=grades))
            assert mapped.relevance.tolist() == [4, 2] == mapped.judged.relevance.tolist()[::-1]
            assert mapped.relevance.dtype.kind == "i"
        half = rankings_of_both(qrels, run, Roles(grades={1: 0.5, 2: 1}))
        assert half.relevance.tolist() == [1.0, 0.5]
    said = r'qrels: relevance has 2 at line 2, for which grades= has no grade; it has one for "0", "1"'
    with pytest.raises(fn.InputError, match=said):
        fn.evaluate(tmp_path / "qrels", run, "RR", grades={0: 0, 1: 2})
    of_intents = fn.Rankings.from_qrels_run({"1": {"a": {"0": 1}}}, run, grades={1: 2}, intents=True)
    assert of_intents.judged_intents.grades.tolist() == [2]


def twice(sides):
    """Each side's documents as pairs, of which some come again later with another value."""
    return {
        query: [*docs.items(), *((doc, 0.01 * value) for doc, value in list(docs.items())[::2])]
        for query, docs in sides.items()
    }


LONG = [[(q, doc, value) for q, docs in twice(side).items() for doc, value in docs] for side in (QRELS, RUN)]


def forms_twice(at):
    side, rows, names = "qr"[at], LONG[at], ("qid docid rel", "qid docid score")[at]
    text = "".join(f"{q} 0 {d} {v}\n" if not at else f"{q} Q0 {d} 1 {v} me\n" for q, d, v in rows)
    pairs_of = twice((QRELS, RUN)[at])
    nested = ", ".join(
        f'"{q}": {{{", ".join(f"{json.dumps(d)}: {v}" for d, v in docs)}}}' for q, docs in pairs_of.items()
    )
    return {
        "pairs": (pairs_of, "", None),
        "frame": (frame(rows, names), f"{side}.parquet", parquet(frame(rows, names, int))),
        "text": (None, f"{side}.csv", frame(rows, names).to_csv(index=False).encode()),
        "TREC": (None, f"{side}.txt", text.encode()),
        "JSON": (None, f"{side}.json", f"{{{nested}}}".encode()),
        "structs": (
            hits(rows, "docid", names.split()[2]),
            f"{side}.jsonl",
            lines(hits(rows, "docid", names.split()[2])),
        ),
        "plain tuples": (rows, "", None),
    }


@pytest.mark.parametrize(
    ("shape", "way"), [each for each in ways(forms_twice(0)) if each[1] in (*IN_PYTHON, "path")]
)
def test_documents_that_are_there_twice(shape, way, tmp_path):
    judged, returned = forms_twice(0)[shape], forms_twice(1)[shape]
    assert mean_of(tmp_path, way, judged, returned, 0, duplicates="first") == pytest.approx(wanted())
    with pytest.raises(fn.InputError, match='appears twice.*or pass duplicates="first"'):
        mean_of(tmp_path, way, judged, returned, 0)


# a document appears twice in the judgments, or in the run, of query 1; each beside a side without
Q_TWICE = {"1": [("a", 1), ("b", 0), ("a", 0)], "2": [("a", 1), ("c", 1)]}
R_TWICE = {"1": [("a", 0.9), ("b", 0.8), ("a", 0.1)], "2": [("c", 0.9)]}
ONCE = {
    "q": {"1": {"a": 1, "b": 0}, "2": {"a": 1, "c": 1}},
    "r": {"1": {"a": 0.9, "b": 0.8}, "2": {"c": 0.9}},
}
CALLS = {
    "evaluate": lambda q, r, **d: fn.evaluate(q, r, "nDCG", **d).mean(),
    "evaluate several": lambda q, r, **d: fn.evaluate(q, {"x": r, "y": ONCE["r"]}, "nDCG", **d)["x"].mean(),
    "compare": lambda q, r, **d: fn.compare(q, {"x": r, "y": ONCE["r"]}, "nDCG", **d).to_markdown(),
    "explain": lambda q, r, **d: fn.explain(q, r, "nDCG", "1", **d).value,
    "pool": lambda q, r, **d: fn.pool({"x": r}, qrels=q, **d).to_pylist(),
    "tie_range": lambda q, r, **d: fn.tie_range(fn.Rankings.from_qrels_run(q, r, **d), "nDCG").to_arrow(),
    "match": lambda q, r, **d: fn.match_conventions(fn.Rankings.from_qrels_run(q, r, **d), "AP", 0.5).to_pylist(),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("sides", [(Q_TWICE, ONCE["r"]), (ONCE["q"], R_TWICE)])
def test_documents_twice_in_every_function(sides, call):
    with pytest.raises(fn.InputError, match='document "a" of query "1" appears twice.*duplicates="first"'):
        CALLS[call](*sides)
    assert CALLS[call](*sides, duplicates="first") == CALLS[call](*ONCE.values())


ROWS_TWICE = pa.table({"qid": ["1", "1", "1", "2"], "docid": ["a", "b", "a", "c"], "label": [1, 0, 1, 1], "score": [.9, .8, .1, .9]})  # fmt: skip
IDS_TWICE = pa.table({"qid": ["1", "2"], "relevant_ids": [["a"], ["a", "c"]], "retrieved_ids": [["a", "b", "a"], ["c"]]})  # fmt: skip
COMMANDS = ["score", "compare", "explain --worst 1", "report -o o.html", "conventions", "history add --history h --at 2026-01-01"]  # fmt: skip


@pytest.mark.parametrize("command", [*COMMANDS, "pool", "check"])
def test_documents_twice_in_every_command(command, tmp_path, monkeypatch):
    """Refused with the choice, of which `check` says that it fails. Ids of a table that nobody asked for are
    not read by all commands; the others warn, so that each gives the same number.
    """
    monkeypatch.chdir(tmp_path)
    for name, sides in (
        ("q", ONCE["q"]),
        ("qq", Q_TWICE),
        ("r", ONCE["r"]),
        ("rr", R_TWICE),
        ("one", ONCE["r"]),
    ):
        rows = [(q, d, v) for q, docs in sides.items() for d, v in getattr(docs, "items", lambda d=docs: d)()]
        form = "{} 0 {} {}\n" if name[0] == "q" else "{} Q0 {} 1 {} t\n"
        Path(name).write_text("".join(form.format(*row) for row in rows))
    inputs = [["--qrels", "q", "rr"], ["--qrels", "qq", "r"]]
    if command in COMMANDS:
        for name, table in (("rows", ROWS_TWICE), ("ids", IDS_TWICE)):
            pq.write_table(table, f"{name}.parquet")
            pq.write_table(table, f"two.{name}.parquet")
        inputs += [["rows.parquet", "--doc-id", "docid"], ["ids.parquet"]]
    for given in inputs:
        other = "one" if "--qrels" in given else f"two.{given[0]}"
        words = [*given, *[other][: command == "compare"]]
        ran = run(*command.split(), *words)
        assert ran.exit_code == (1 if command == "check" else 3), (words, ran.stderr)
        said = "twice|two grades" if command == "check" else "appears twice.*--duplicates first"
        assert re.search(said, ran.stderr), ran.stderr
        shutil.rmtree("h", ignore_errors=True)
        assert run(*command.split(), *words, "--duplicates", "first").exit_code == 0
    if command in COMMANDS[2:5]:
        ran = run(*command.split(), "rows.parquet")
        assert ran.exit_code == 0 and "appears twice, and both count" in ran.stderr, ran.stderr


def test_documents_twice_in_trec_files_intents_and_lists_of_a_row(tmp_path):
    for name, (_, _, content) in zip("qr", (forms_twice(0)["TREC"], forms_twice(1)["TREC"]), strict=True):
        (tmp_path / name).write_bytes(content)
    rankings = fn.read_trec(tmp_path / "q", tmp_path / "r", duplicates="first")
    assert dict(fn.evaluate(rankings, MEASURES).mean()) == pytest.approx(wanted())
    (tmp_path / "q").write_text("1 1 a 2\n1 2 a 1\n1 1 a 0\n1 2 b 0\n")
    (tmp_path / "r").write_text("1 Q0 a 1 2.0 me\n1 Q0 b 2 1.0 me\n1 Q0 a 3 0.5 me\n")
    rankings = fn.read_trec(tmp_path / "q", tmp_path / "r", intents=True, duplicates="first")
    assert (rankings.relevance.tolist(), rankings.doc_ids.to_pylist()) == ([2, 0], ["a", "b"])
    table = pa.table({"expected_ids": [["a", "b", "a"]], "retrieved_ids": [["c", "b", "c", "b", "a"]]})
    assert fn.evaluate(table, "AP", duplicates="first").mean() == {"AP": pytest.approx((1 / 2 + 2 / 3) / 2)}
    lists = pa.table({"qid": [1], "label": [[1, 0]], "score": [[0.5, 0.1]]})
    with pytest.raises(
        fn.InputError, match='duplicates="first" is of rows with doc_id=, and of lists of ids'
    ):
        fn.evaluate(lists, "AP", duplicates="first")
    with pytest.raises(fn.ColumnError, match="no column has a usual name of the doc_id"):
        fn.evaluate(pa.table({"qid": [1], "label": [1], "score": [0.5]}), "AP", duplicates="first")
    with pytest.raises(fn.InputError, match="duplicates='last' is not known"):
        fn.Rankings.from_qrels_run(QRELS, RUN, duplicates="last")


@pytest.mark.parametrize(
    ("run", "error"),
    [
        ({"1": pd.Series([100, 101])}, r"run\['1'\] is a Series of numbers whose index counts its rows"),
        ({"1": pd.Series([0.5, 0.25])}, "whose index counts its rows"),
        ([("1", "100")], r"tuples of 2 values; expected \(query, document, score\)"),
        ([("1", "Q0", "100", 1, 0.5, "me")], "tuples of 6 values"),
        ([("1", "100", "b")], "expected scores that are integers or floats"),
        (pa.table({"qid": ["1", "1"], "docid": [["100"], ["101"]]}), "query .*1.* has several rows of lists"),
        (pa.table({"qid": ["1"], "docid": [["100"]], "score": [0.5]}), 'column "docid" holds lists and column "score" double'),
        (pa.table({"qid": ["1"], "docid": [["100"]], "score": [[0.5, 1]]}), "1 value in column .docid. and 2 in column .score."),
        (pa.table({"qid": ["1"], "docid": [[None, "100"]]}), "has 1 null"),
        (pa.table({"qid": ["1"], "docid": pa.array([None], pa.list_(pa.string()))}), "Give a query without documents an empty list"),
        (pa.table({"qid": ["1"], "docid": [[0.5, 1.5]]}), "no column has a usual name of the score"),
        (pa.table({"qid": ["1"], "prediction": ["[100 101]"]}), "not a list of ids; expected ids separated by blanks"),
        (pa.table({"qid": ["1"], "prediction": ["100, 101"]}), "could be one id or several"),
        (pa.table({"qid": ["1"], "item": ["100 101"]}), 'if "item" holds all ids of a query, pass retrieved_ids="item"'),
        (pa.table({"qid": ["1"], "hits": [[["100", "1", "2"]]]}), "lists of lists of 3 values; expected pairs"),
        (pa.table({"qid": ["1"], "hits": [[{"docid": "100", "distance": 0.5}]]}), 'column "hits" holds structs: no column has a usual name of the score'),
        (pa.table({"qid": ["1"], "docid": [[{"docid": "100", "score": 0.5}]], "score": [1]}), "includes values"),
        ({"1": pd.DataFrame({"item": ["100"]})}, "is a DataFrame; expected a dict"),
        (pa.table({"qid": ["1"], "item": ["100 101"], "text": ["x"]}), "no column has a usual name of the score"),
    ],
)  # fmt: skip
def test_lists_of_a_query_that_are_refused(run, error):
    with pytest.raises(fn.FastndcgError, match=error):
        fn.Rankings.from_qrels_run(QRELS, run)


def test_lists_of_a_query_are_named():
    table = pa.table({"qid": ["1", "2"], "a": ["100 101", ""], "b": [["102"], ["103"]]})
    for column, docs in (("a", ["100", "101"]), ("b", ["102", "103"])):
        rankings = fn.Rankings.from_qrels_run(QRELS, table, retrieved_ids=column, missing="skip")
        assert rankings.doc_ids.to_pylist() == docs
    empty = pa.table({"qid": ["1"], "docid": pa.array([[]], pa.list_(pa.string()))})
    with pytest.warns(fn.FastndcgWarning, match="run has no documents"):
        assert fn.Rankings.from_qrels_run({"1": {"a": 1}}, empty).lengths.tolist() == [0]
    kept = pa.table(
        {"qid": ["1", "2"], "docid": [["100"], ["101"]], "country": ["de", "fr"], "w": [1.0, 2.0]}
    )
    rankings = fn.Rankings.from_qrels_run(kept, RUN, keep="country", weight="w", missing="skip")
    assert rankings.queries["country"].to_pylist() == ["de", "fr"]
    assert rankings.weight.tolist() == [1, 2]
    with pytest.raises(fn.ColumnError, match="retrieved_ids= is of a column, and run is a dict"):
        fn.Rankings.from_qrels_run(QRELS, RUN, retrieved_ids="b")
    with pytest.raises(fn.InputError, match="ascending=True is for scores, but run has lists"):
        fn.Rankings.from_qrels_run(QRELS, table, retrieved_ids="b", ascending=True)


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"qid": ["1"], "docid": [["100", "101"]]}),
        pa.table({"qid": ["1"], "hits": [[{"docid": "100", "score": 0.5}]]}),
        pa.table({"qid": ["1"], "hits": [[["100", "1"]]]}),
        pa.table({"qid": ["1"], "prediction": ["100 101"]}),
    ],
)
@pytest.mark.parametrize("role", ["score", "rank"])
def test_a_named_column_that_lists_lack(table, role):
    with pytest.raises(fn.ColumnError, match='there is no column "typo"'):
        fn.Rankings.from_qrels_run(QRELS, table, **{role: "typo"})


@pytest.mark.parametrize("names", [("docid", "rank"), ("docid", "position"), ("d", "rank"), ("_id", "rank")])
def test_hits_with_ranks(names):
    run = hits([(q, d, place) for q, d, place in RANKED[::-1]], *names)
    named = {"rank": "position"} if names[1] == "position" else {"doc_id": "d"} if names[0] == "d" else {}
    assert dict(fn.evaluate(QRELS, run, MEASURES, **named).mean()) == wanted()


def test_none_in_a_dict_is_no_judgment():
    for sides in ({"q": {"a": None, "b": 2, "c": 0}}, {"q": [("a", None), ("b", 2), ("c", 0)]}):
        rankings = fn.Rankings.from_qrels_run(sides, {"q": ["a", "b", "c"]})
        assert rankings.is_judged.tolist() == [False, True, True]
        assert (
            fn.evaluate(rankings, "infAP, Bpref, nDCG").mean()
            == fn.evaluate({"q": {"b": 2, "c": 0}}, {"q": ["a", "b", "c"]}, "infAP, Bpref, nDCG").mean()
        )
    with pytest.raises(fn.InputError, match="NaN|nan"):
        fn.Rankings.from_qrels_run({"q": {"a": float("nan"), "b": 1}}, {"q": ["a"]})


@pytest.mark.parametrize("command", ["score", "conventions", "check", "pool"])
def test_files_without_header_in_every_command(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("q.tsv").write_text("1\t10\t5\t97\n1\t11\t0\t98\n2\t10\t4\t96\n2\t12\t1\t3\n")
    Path("r.tsv").write_text("1\t11\t0.5\n1\t10\t0.25\n2\t10\t0.75\n2\t12\t.1\n")
    names = "qrels=user,item,rating,time;run=user,item,score"
    ran = run(command, "--qrels", "q.tsv", "r.tsv", "--columns", names, "--format", "csv")
    assert ran.exit_code == 0, ran.stderr
    assert "0.81546" in ran.stdout or command in ("check", "pool")


def test_columns_of_two_tables_for_one(tmp_path):
    (tmp_path / "r.csv").write_text("1,1,0.5\n")
    with pytest.raises(fn.InputTypeError, match=r'expected a list for one table, as in columns=\["query_id"'):
        fn.read_csv(tmp_path / "r.csv", columns={"run": ["query_id"]})
