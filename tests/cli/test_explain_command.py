"""`fastndcg explain`: the tables of `fn.explain` from files of every kind, and how queries are chosen."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import facts, rows, run

import fastndcg as fn

ONE = "explain p.parquet --score bm25"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random, n = np.random.default_rng(0), 60
    ids = {"qid": [f"q-{row // 6}" for row in range(n)], "docno": [f"d{row}" for row in range(n)]}
    columns = {
        "label": random.integers(0, 4, n),
        "bm25": random.integers(0, 5, n),
        "rerank": random.random(n),
    }
    pq.write_table(pa.table(ids | columns), "p.parquet")
    Path("qrels").write_text("q 0 a 1\nq 0 b 0\nq 0 c 2\n")
    Path("one").write_text("q Q0 a 1 3 x\nq Q0 b 2 2 x\n")
    Path("two").write_text("q Q0 b 1 3 x\nq Q0 c 2 2 x\n")


def rankings(score="bm25"):
    return fn.read_parquet("p.parquet", score=score, doc_id="docno")


def test_a_query_by_its_id():
    result = run(f"{ONE} --id q-4")
    assert result.stdout.startswith(repr(fn.explain(rankings(), "nDCG@10", "q-4")))
    assert "doc_id=docno" in result.stderr


def test_the_worst_and_those_named():
    scores = fn.evaluate(rankings(), "AP")
    found = facts(f"{ONE} -m AP --worst 2 --id q-0")["explanations"]
    ids = dict.fromkeys(["q-0", *scores.worst("AP", 2)["qid"].to_pylist()])
    assert [fact["query"] for fact in found] == list(ids)
    for fact in found:
        expected = fn.explain(rankings(), "AP", fact["query"])
        assert fact["value"] == expected.value and fact["documents"] == expected.to_arrow().to_pylist()


def test_two_systems():
    line = f"{ONE} --score rerank --movers 2"
    systems = {name: rankings(name) for name in ("bm25", "rerank")}
    one, other = (fn.evaluate(each, "nDCG@10").values[0] for each in systems.values())
    ids = [f"q-{row}" for row in np.argsort(-np.abs(one - other), kind="stable")[:2]]
    found = [(*each, query) for query in ids for each in systems.items()]
    texts = [f"{name}\n{fn.explain(each, 'nDCG@10', query)!r}" for name, each, query in found]
    assert run(line).stdout == "\n\n".join(texts) + "\n"
    assert [row["system"] for row in rows(line)] == (["bm25"] * 6 + ["rerank"] * 6) * 2
    Path("same.parquet").write_bytes(Path("p.parquet").read_bytes())
    same = run("explain p.parquet same.parquet --score bm25 --movers 2")
    assert (same.exit_code, same.stdout[:17]) == (0, "No query to show:")


def test_qrels_and_runs():
    line = "explain --qrels qrels --run one --id q"
    both = run(f"{line} --run two").stdout.split("\n\n")
    assert [each.partition(" = ")[0] for each in both] == [
        'one\nnDCG@10 of query "q" is 0.380094', 'two\nnDCG@10 of query "q" is 0.479625',
    ]  # fmt: skip


def test_all_documents_on_demand():
    line = f"""{ONE} --id q-4 -m "nDCG(ties='input')@3" """
    short, whole = (run(f"{line} {more}").stdout for more in ("", "--all"))
    assert "Not shown: 3 documents; --all shows all." in short
    assert "Not shown" not in whole and whole.count("\n") > short.count("\n") + 1
    assert len(rows(line)) == 6  # data is whole
