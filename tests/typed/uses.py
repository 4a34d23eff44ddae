"""What a user writes, each line of it right. `tests/whole/test_typing.py` has mypy and pyright read it; nobody runs it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, assert_type

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import fastndcg as fn
from fastndcg.analysis.ranges import Bounds

if TYPE_CHECKING:
    from fastndcg.analysis.clicks import Estimate
    from fastndcg.measures import MeasureLike
    from fastndcg.measures.conventions import Convention
    from fastndcg.scores.summary import Summary

# measures
short = fn.nDCG @ 10
exponential = fn.nDCG(gain="exp2", ties="worst") @ 5
own_gains = fn.nDCG(gain={0: 0.0, 1: 1.0, 2: 5.0}, discount=lambda rank: 1 / rank, empty="skip") @ 10
listed = fn.DCG(gain=[0, 1, 3, 7], discount=np.ones(100), ips="snips", clip=0.01)
like = fn.nDCG(like="lightgbm") @ 10
assert_type(short, fn.Measure)
assert_type(fn.parse("AP(rel=2)@100"), fn.Measure)
cutoff: int | None = short.cutoff
name: str = str(exponential)

# rankings
relevance, scores = [1, 0, 2, 1], np.array([0.1, 0.7, 0.3, 0.9])
rankings = fn.Rankings.from_offsets([0, 2, 4], relevance, scores, weight=[1.0, 2.0], nan="last")
grouped = fn.Rankings.from_groups([2, 2], relevance, scores, query_ids=["a", "b"])
by_id = fn.Rankings.from_query_ids(["a", "a", "b", "b"], relevance, scores, doc_ids=list("wxyz"))
lists = fn.Rankings.from_lists([[1, 0], [2, 1]])
dense = fn.Rankings.from_dense([[1, 0]], [[0.5, 0.1]], judged=([0, 2], [1, 3]))
table = fn.Rankings.from_arrow(pa.table({"q": [1]}), query="q", keep=["country"])
joined = fn.Rankings.from_qrels_run({"q": {"d": 1}}, {"q": {"d": 0.5}}, missing="skip", ties="input")
assert_type(rankings.with_scores(scores), fn.Rankings)
n_queries: int = rankings.n_queries
for one in (rankings, grouped, by_id, lists, dense, table, joined):
    assert_type(one, fn.Rankings)

# files
from_file = fn.read_parquet(Path("a.parquet"), query="qid", keep=("country",), nan="last", threads=2)
several = fn.read_parquet(["a.parquet", "b.parquet"])
from_trec = fn.read_trec("qrels", "run", missing="zero", ties="docid_desc")
stream = fn.scan_parquet("a.parquet", memory="1 GB")

# values
result = fn.evaluate(rankings, ["nDCG@10", short, fn.AP(rel=2)])
assert_type(result, fn.Scores)
assert_type(fn.evaluate(stream, "nDCG@10", threads=1), fn.Scores)
assert_type(fn.evaluate("a.parquet", "RR", query="qid", keep=["country"]), fn.Scores)
assert_type(fn.evaluate({"qid": [1], "label": [1], "score": [0.5]}, "RR", nan="last"), fn.Scores)
assert_type(fn.evaluate(rankings, short, convention="trec_eval"), fn.Scores)
by_name = fn.evaluate({"q": {"d": 1}}, {"bm25": {"q": {"d": 0.5}}, "e5": {"q": {"d": 0.7}}}, "RR")
assert_type(by_name, dict[str, fn.Scores])
fn.compare({"q": {"d": 1}}, {"bm25": {"q": {"d": 0.5}}, "e5": {"q": {"d": 0.7}}}, "RR")
fn.explain({"q": {"d": 1}}, {"q": {"d": 0.5}}, "RR", query="q")
fn.evaluate(qrels={"q": {"d": 1}}, run={"q": {"d": 0.5}}, measures="RR")
assert_type(result["nDCG@10"], npt.NDArray[np.float64])
assert_type(result.mean(), dict[str, float])
mean: float = result.mean()["nDCG@10"]
by_country: pa.Table = result.by("country")
whole: Summary = result.summary()
assert_type(fn.ndcg(relevance, scores, k=2, gain="exp2", ideal="scored"), npt.NDArray[np.float64])
assert_type(fn.ndcg_score([[1, 0]], [[0.5, 0.1]], k=1), float)
assert_type(fn.tie_range(rankings, "nDCG@10")["nDCG@10"], Bounds)
estimates: list[Estimate] = fn.snips(rankings, "DCG@10")
conventions: Iterable[str] = fn.conventions
rule: Convention = fn.conventions["lightgbm"].replace(gain="linear")


def best_of(measures: list[MeasureLike]) -> float:
    """A function of the user's own."""
    try:
        return max(fn.evaluate(rankings, measures).mean().values())
    except (fn.MeasureError, fn.InputError) as error:
        raise SystemExit(str(error)) from None
