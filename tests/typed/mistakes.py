"""What a user gets wrong. `tests/whole/test_typing.py` has mypy and pyright read it: each line marked "wrong" should be refused."""

from __future__ import annotations

import fastndcg as fn

relevance, scores = [1, 0, 2], [0.1, 0.7, 0.3]
rankings = fn.Rankings.from_offsets([0, 3], relevance, scores)

fn.nDCG(gian="exp2")  # wrong: the parameter is gain
fn.nDCG(gain="exponential")  # wrong: exp2
fn.nDCG(ties="mean")  # wrong: average
fn.nDCG(ideal="all")  # wrong: judged
fn.nDCG(empty="zero")  # wrong: a number, nan or skip
fn.nDCG("exp2")  # wrong: parameters are named
fn.NDGC @ 10  # wrong: NDCG
fn.evalute(rankings, "nDCG@10")  # wrong: evaluate
fn.evaluate(rankings)  # wrong: measures are missing
fn.evaluate(rankings, 10)  # wrong: a number is not a measure
fn.evaluate("predictions.txt", "nDCG@10").median()  # wrong: Scores have a mean
fn.evaluate(rankings, "nDCG@10", thread=2)  # wrong: threads
fn.evaluate(rankings, "nDCG@10", threads="2")  # wrong: a number
fn.evaluate(rankings, "nDCG@10").mean()["nDCG@10"].upper()  # wrong: a float
fn.evaluate("a.parquet", "RR", querry="qid")  # wrong: query
fn.evaluate("a.parquet", "RR", nan="drop")  # wrong: refuse or last
fn.evaluate(3, "RR")  # wrong: a number is not a table
fn.evaluate(rankings, "nDCG@10").by(3)  # wrong: names of columns
fn.Rankings.from_offsets([0, 3], relevance)  # wrong: scores are missing
fn.Rankings.from_offsets([0, 3], relevance, scores, nan="drop")  # wrong: refuse or last
fn.Rankings.from_groups([3], relevance, scores, weights=[1])  # wrong: weight
fn.Rankings.from_query_ids([1, 1, 1], relevance, scores, docids=list("abc"))  # wrong: doc_ids
fn.Rankings.from_qrels_run({}, {}, missing="drop")  # wrong: zero or skip
fn.read_parquet("a.parquet", label="y")  # wrong: relevance
fn.read_parquet("a.parquet", nan="ignore")  # wrong: refuse or last
fn.read_trec("qrels")  # wrong: a run too
fn.read_trec("qrels", "run", ties="docid")  # wrong: docid_desc
fn.ndcg(relevance, scores, k="10")  # wrong: a number
fn.ndcg(relevance, scores, gain="exponential")  # wrong: exp2
fn.tie_range(rankings, "RR").summary().median()  # wrong: a table has none
count: int = fn.ndcg_score([[1, 0]], [[0.5, 0.1]])  # wrong: a float
