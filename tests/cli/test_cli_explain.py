"""`fastndcg explain`: the tables of `fn.explain` from files of every kind, and how queries are chosen."""

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run

import fastndcg as fn


@pytest.fixture
def predictions(tmp_path):
    random, n = np.random.default_rng(0), 60
    table = pa.table(
        {
            "qid": [f"q-{row // 6}" for row in range(n)],
            "docno": [f"d{row}" for row in range(n)],
            "label": random.integers(0, 4, n),
            "bm25": random.integers(0, 5, n),
            "rerank": random.random(n),
        }
    )
    path = tmp_path / "predictions.parquet"
    pq.write_table(table, path)
    return path


def rankings(path, score="bm25"):
    return fn.read_parquet(path, score=score, doc_id="docno")


def test_a_query_by_its_id(predictions):
    result = run("explain", predictions, "--score", "bm25", "--id", "q-4", "--swaps", 1)
    found = fn.explain(rankings(predictions), "nDCG@10", "q-4")
    assert result.stdout.startswith(repr(found))
    assert "exchanging ranks" in result.stdout
    assert "doc_id=docno" in result.stderr


@pytest.mark.parametrize("words", [["--worst", 3], ["--best", 2], ["--worst", 2, "--best", 1, "--id", "q-0"]])
def test_the_worst_and_the_best(predictions, words):
    result = run(
        "explain", predictions, "--score", "bm25", "-m", "AP", *words, "--format", "json", "--swaps", 2
    )
    facts = json.loads(result.stdout)["explanations"]
    scores = fn.evaluate(rankings(predictions), "AP")
    options = dict(zip(words[::2], words[1::2], strict=True))
    ids = [options["--id"]] if "--id" in options else []
    ids += scores.worst("AP", int(options.get("--worst", 0)))["qid"].to_pylist()
    ids += scores.best("AP", int(options.get("--best", 0)))["qid"].to_pylist()
    assert [fact["query"] for fact in facts] == list(dict.fromkeys(ids))
    for fact in facts:
        found = fn.explain(rankings(predictions), "AP", fact["query"])
        assert fact["value"] == found.value and fact["documents"] == found.to_arrow().to_pylist()
        assert fact["swaps"] == found.swaps(2).to_pylist()


def test_queries_at_random_depend_on_the_seed_alone(predictions):
    words = ["explain", predictions, "--score", "bm25", "--random", 4, "--format", "csv"]
    texts = [run(*words, "--seed", seed).stdout for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]
    rows = list(csv.DictReader(io.StringIO(texts[0])))
    assert len({row["query"] for row in rows}) == 4 and rows[0]["rank"] == "1"


def test_two_systems(predictions):
    words = ["explain", predictions, "--score", "bm25", "--score", "rerank", "--movers", 2]
    systems = {name: rankings(predictions, name) for name in ("bm25", "rerank")}
    one, other = (fn.evaluate(each, "nDCG@10").values[0] for each in systems.values())
    ids = [f"q-{row}" for row in np.argsort(-np.abs(one - other), kind="stable")[:2]]
    assert (
        run(*words).stdout == "\n\n".join(repr(fn.explain(systems, "nDCG@10", each)) for each in ids) + "\n"
    )
    rows = list(csv.DictReader(io.StringIO(run(*words, "--format", "csv").stdout)))
    assert [row["system"] for row in rows] == (["bm25"] * 6 + ["rerank"] * 6) * 2


def test_qrels_and_runs(tmp_path):
    (tmp_path / "qrels.txt").write_text("q 0 a 1\nq 0 b 0\nq 0 c 2\n")
    (tmp_path / "one.txt").write_text("q Q0 a 1 3 x\nq Q0 b 2 2 x\n")
    (tmp_path / "two.txt").write_text("q Q0 b 1 3 x\nq Q0 c 2 2 x\n")
    words = ["--qrels", tmp_path / "qrels.txt", "--run", tmp_path / "one.txt"]
    alone = run("explain", *words, "--id", "q")
    assert "Judged and not returned: 1 document of grade 2." in alone.stdout
    both = run("explain", *words, "--run", tmp_path / "two.txt", "--id", "q")
    assert both.stdout.startswith('nDCG@10 of query "q": 0.380094 (one), 0.479625 (two)')


def test_all_documents_on_demand(predictions):
    words = [
        "explain", predictions, "--score", "bm25", "--id", "q-4", "-m", "nDCG(ties='input')@3", "--swaps", 1,
    ]  # fmt: skip
    short, whole = (run(*words, *more).stdout for more in ([], ["--all"]))
    assert "Not shown: 3 documents below the cutoff of 3" in short and "--all shows them." in short
    assert "Not shown" not in whole and whole.count("\n") > short.count("\n") + 1
    rows = run(*words, "--format", "csv").stdout.splitlines()
    assert len(rows) == 1 + 6  # data is whole
    markdown = run(*words, "--format", "markdown").stdout
    assert markdown.count("\n|") == 5 and "Not shown: 3 documents" in markdown
    best = run("explain", predictions, "--score", "bm25", "--best", 1, "-m", "RR", "--swaps", 1).stdout
    assert "exchanging two documents would gain nothing" in best


def test_two_systems_that_do_not_differ_say_so(predictions, tmp_path):
    same = tmp_path / "same.parquet"
    same.write_bytes(predictions.read_bytes())
    result = run("explain", predictions, same, "--score", "bm25", "--movers", 2)
    assert (result.exit_code, result.stdout[:17]) == (0, "No query to show:")
