"""The first natural program of people who asked in public trackers, 2013 to 2026: the number that they meant, or words.

Each row is a situation of a report or a question: whose tool, what it was about, the first attempt here, and its
mean, the error that says the attempt that works (a text), or a mean and its warning (both).
"""

import json
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import fastndcg as fn

pytestmark = pytest.mark.pure


def mean(*given, **words):
    """The mean of the only measure."""
    return next(iter(fn.evaluate(*given, **words).mean().values()))


def query(*given, **words):
    """The values by query."""
    scores = fn.evaluate(*given, **words)
    return dict(zip(scores.queries[0].to_pylist(), scores.values[0].tolist(), strict=True))


def lines(*rows):
    return "".join(f"{row}\n" for row in rows)


LOG3 = 1 / math.log2(3)
TOY = [[10, 0, 0, 1, 5]], [[0.1, 0.2, 0.3, 4, 70]]
PYTREC = {"q1": {"d3": 1}, "q2": {"d2": 1, "d3": 1}}
TIED = {"q1": {"d1": 1, "d2": 1, "d3": 1}, "q2": {"d3": 1, "d2": 1}}
ARRAYS = {
    "preds": [0.2, 0.3, 0.5, 0.1, 0.3, 0.5, 0.2],
    "target": [0, 0, 1, 0, 1, 0, 1],
    "indexes": [0, 0, 0, 1, 1, 1, 1],
}
OF_TWO = (1 + (LOG3 + 0.5) / (1 + LOG3)) / 2
SPARK = (
    [[1, 6, 2, 7, 8, 3, 9, 10, 4, 5], [4, 1, 5, 6, 2, 7, 3, 8, 9, 10], [1, 2, 3, 4, 5]],
    [[1, 2, 3, 4, 5], [1, 2, 3], []],
)
SPARK_P5 = (0.4 + 0.6 * 2 / 3 + 0) / 3
ACTUAL = [["a", "b"], ["a"], ["x", "y", "b"]]
PREDICTED = [["a", "c", "d"], ["x", "b", "a", "c"], ["y"]]
RECO = pd.DataFrame(
    {
        "user_id": [1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4],
        "item_id": [7, 8, 1, 2, 1, 2, 3, 4, 1, 2, 3],
        "rank": [1, 2, 1, 2, 1, 2, 3, 4, 1, 2, 3],
    }
)
INTERACTIONS = pd.DataFrame({"user_id": [1, 1, 2, 3, 3, 3, 4, 4, 4], "item_id": [1, 2, 1, 1, 3, 4, 1, 2, 3]})
LABELS = pd.DataFrame(
    {
        "query_id": [1, 1, 1, 2, 2],
        "query": ["blue shoes"] * 3 + ["red shoes"] * 2,
        "grade": [0.9, 0.9, 0.1, 1.0, 0.9],
        "doc_id": [125125, 5678, 1122, 12225, 1521],
    }
)
RESULTS = pd.DataFrame(
    {
        "query_id": [1, 1, 2],
        "rank": [1, 2, 1],
        "query": ["blue shoes", "blue shoes", "red shoes"],
        "doc_id": [5678, 1122, 12225],
    }
)
RAG = pd.DataFrame(
    {
        "query": ["a", "b"],
        "expected_ids": [["n1"], ["n2", "n3"]],
        "retrieved_ids": [["n0", "n1"], ["n3", "n9"]],
    }
)
BEIR = {"q1": {"d1": 1}, "q2": {"d2": 1}}
BEIR_RUN = {"q1": {"d1": 0.9, "d9": 0.1}, "q2": {"d9": 0.8, "d2": 0.7}}
FRAME = pd.DataFrame({"qid": [7, 7, 7, 8, 8], "label": [1, 0, 2, 0, 1], "score": [0.9, 0.8, 0.7, 0.2, 0.6]})
FRAME_NDCG = ((1 + 2 * 0.5) / (2 + LOG3) + 1) / 2
MOVIES = pd.DataFrame({"userId": [1, 1, 2], "movieId": [10, 11, 10], "rating": [4.0, 3.0, 5.0]})

ATTEMPTS = {
    # pytrec_eval, trec_eval, ir_measures, ranx, trectools
    "pytrec_eval 56: AP of ties, by falling id": (lambda f: query(PYTREC, TIED, "AP", convention="trec_eval")["q1"], 1.0),
    "pytrec_eval 56: as expected over ties": (lambda f: query(PYTREC, TIED, "AP")["q1"], (1 + 1 / 2 + 1 / 3) / 3),
    "pytrec_eval 56: the order that was meant": (lambda f: query(PYTREC, {"q1": ["d1", "d2", "d3"], "q2": ["d3", "d2"]}, "AP")["q1"], 1 / 3),
    "pytrec_eval 6: whole scores": (lambda f: mean({"151": {"a": 1}}, {"151": {"a": 10000, "b": 2}}, "AP"), 1.0),
    "pytrec_eval 6: float32 scores": (lambda f: mean({"151": {"a": 1}}, {"151": {"a": np.float32(0.3), "b": np.float32(0.2)}}, "AP"), 1.0),
    "pytrec_eval 16: grades with fractions": (lambda f: mean({"q1": {"d1": 0.2, "d2": 1.5}}, {"q1": {"d1": 1.0, "d2": 0.0}}, "nDCG"), (0.2 + 1.5 * LOG3) / (1.5 + 0.2 * LOG3)),
    "pytrec_eval 49: a query without judgments": (lambda f: mean({"q1": {"d1": 0, "d2": 1}, "q2": {}, "q3": {"d2": 1}}, {q: {"d2": 2.0, "d1": 1.0} for q in ("q1", "q2", "q3")}, "AP"), 2 / 3),
    "pytrec_eval 50: a document twice": (lambda f: mean({"q": {"a": 1}}, {"q": ["a", "a", "b"]}, "nDCG"), 'appears twice.*duplicates="first"'),
    "pytrec_eval 52: numbers of queries and documents": (lambda f: mean({1: {31715818: 1}}, {1: {31715818: 0.5, 2: 0.1}}, "AP"), 1.0),
    "pytrec_eval 53: lists instead of dicts": (lambda f: mean({"q": {"a": 1}}, {"q": ["b", "a"]}, "RR"), 0.5),
    "pytrec_eval 57: again is the same": (lambda f: mean(BEIR, BEIR_RUN, "nDCG@10") - mean(BEIR, BEIR_RUN, "nDCG@10"), 0.0),
    "pytrec_eval: its names of measures": (lambda f: mean(BEIR, BEIR_RUN, "ndcg_cut_10"), (1 + LOG3) / 2),
    "pytrec_eval: map_cut.10": (lambda f: mean(BEIR, BEIR_RUN, "map_cut.10"), 0.75),
    "pytrec_eval: recip_rank": (lambda f: mean(BEIR, BEIR_RUN, "recip_rank"), 0.75),
    "trec_eval 18: queries that the run lacks": (lambda f: mean({"1": {"a": 1}, "2": {"a": 1}}, {"1": {"a": 1.0}}, "AP"), 0.5),
    "trec_eval 18: without -c": (lambda f: fn.evaluate(fn.Rankings.from_qrels_run({"1": {"a": 1}, "2": {"a": 1}}, {"1": {"a": 1.0}}, missing="skip"), "AP").mean()["AP"], 1.0),
    "trec_eval 20: comments": (lambda f: mean(f("q", "# made today\n1 0 a 1\n"), {"1": ["a"]}, "AP"), 1.0),
    "trec_eval 34: scores that differ in the ninth place": (lambda f: mean({"q": {"a": 1}}, {"q": {"a": 0.97523028100, "b": 0.97523028101}}, "RR"), 0.5),
    "trec_eval 46: no topic in common": (lambda f: mean({"1.X": {"a": 1}}, {"1": {"a": 1.0}}, "AP"), 'no query in common: "1.X" there, "1" here'),
    "trec_eval 46: ids with #": (lambda f: mean(f("q", "1 0 msmarco#7 1\n"), f("r", "1 Q0 msmarco#7 1 0.5 t\n"), "RR"), 1.0),
    "trec_eval 49: floats in qrels": (lambda f: mean(f("q", "1 0 a 0.5\n1 0 b 1.5\n"), {"1": ["a", "b"]}, "nDCG"), (0.5 + 1.5 * LOG3) / (1.5 + 0.5 * LOG3)),
    "trectools 45: Q0 in qrels": (lambda f: mean(f("q", "1 Q0 a 1\n"), {"1": ["a"]}, "AP"), 1.0),
    "trectools 34: a malformed line": (lambda f: mean(f("q", "1 0 a 1\n"), f("r", "1 Q0 a 1 0.5 t\n1 Q0 b\n"), "AP"), "line 2"),
    "anserini 1232: tabs": (lambda f: mean(f("q", "1\t0\ta\t1\n"), f("r", "1\tQ0\ta\t1\t0.5\tt\n"), "AP"), 1.0),
    "MS MARCO 9: reference and candidate": (lambda f: mean(f("q.tsv", "1\t0\t10\t1\n"), f("r.tsv", "1\t11\t1\n1\t10\t2\n"), "RR@10"), 0.5),
    "ir_measures 34: an iterator used twice": (lambda f: query(iter([("q", "a", 1)]), [("q", "a", 0.5)], "RR")["q"], 1.0),
    "ir_measures 42: several runs and cutoffs": (lambda f: [each.mean()["nDCG@2"] for each in fn.evaluate({"0": {"a": 1}}, {"x": {"0": ["a"]}, "y": {"0": ["b", "a"]}}, ["nDCG@10", "nDCG@2"]).values()], [1.0, LOG3]),
    "ranx 8: grades with fractions": (lambda f: mean([("q", "a", 0.5), ("q", "b", 1.0)], [("q", "b", 0.9), ("q", "a", 0.1)], "ndcg"), 1.0),
    "ranx 2: r-precision": (lambda f: mean({"q": {"a": 1, "b": 1}}, {"q": ["a", "c", "b"]}, "r-precision"), 0.5),
    "ranx: its measures": (lambda f: mean(BEIR, BEIR_RUN, "mrr@10"), 0.75),
    "ranx: hit_rate": (lambda f: mean(BEIR, BEIR_RUN, "hit_rate@1"), 0.5),
    "ranx 58: scores of any range": (lambda f: mean({"q": {"a": 1}}, {"q": {"a": -3.5, "b": -700.0}}, "RR"), 1.0),
    "pyterrier: frames by qid, docno, score, label": (lambda f: mean(pd.DataFrame({"qid": ["1"], "docno": ["a"], "label": [1]}), pd.DataFrame({"qid": ["1", "1"], "docno": ["a", "b"], "score": [0.9, 0.1], "rank": [0, 1]}), "RR"), 1.0),
    # scikit-learn
    "sklearn 20119: one document": (lambda f: fn.ndcg_score([[3]], [[5]]), "fastndcg.ndcg takes queries of one document"),
    "sklearn 21335: one document, not relevant": (lambda f: fn.ndcg([[0]], [[1]])[0], 0.0),
    "sklearn 27726: all relevant": (lambda f: fn.ndcg_score([[1, 1, 1, 1]], [[1, 1, 1, 0]], k=4), 1.0),
    "sklearn: its example": (lambda f: fn.ndcg_score(*TOY), 0.6956940443813076),
    "sklearn: a constant model": (lambda f: fn.ndcg_score([[10, 0, 0, 1, 5]], [[1.0] * 5]), 0.690979),
    "sklearn: 1-D arrays": (lambda f: fn.ndcg_score([1, 0, 2], [0.5, 0.2, 0.9]), "One query is y_true="),
    "sklearn: ragged lists": (lambda f: fn.ndcg_score([[1, 0, 2], [1, 0]], [[0.5, 0.2, 0.9], [0.1, 0.2]]), "from_lists|group="),
    "sklearn 27859: negative grades": (lambda f: fn.ndcg_score([[-1, 0, 2]], [[0.5, 0.2, 0.9]]), "negative|-1"),
    "sklearn: per user of a frame": (lambda f: FRAME.groupby("qid").apply(lambda g: fn.ndcg_score([g.label], [g.score]), include_groups=False).mean(), FRAME_NDCG),
    "sklearn: a frame at once": (lambda f: mean(FRAME, "nDCG"), FRAME_NDCG),
    "sklearn: groups of arrays": (lambda f: fn.ndcg(FRAME.label, FRAME.score, query_ids=FRAME.qid).mean(), FRAME_NDCG),
    "pandas: ids in an index": (lambda f: mean(FRAME.set_index("qid"), "nDCG"), "call reset_index"),
    # torch, boosters
    "torchmetrics 2449: top_k": (lambda f: mean({"qid": ARRAYS["indexes"], "label": ARRAYS["target"], "score": ARRAYS["preds"]}, "nDCG"), OF_TWO),
    "torchmetrics 2449: its names": (lambda f: mean(ARRAYS, "nDCG"), "Name it, as in"),
    "torchmetrics 2449: preds and target named": (lambda f: mean(ARRAYS, "nDCG", query="indexes", score="preds"), OF_TWO),
    "torchmetrics 3216: matrices": (lambda f: fn.ndcg([[0, 1, 0], [1, 0, 0]], [[0.1, 0.2, 0.3], [0.8, 0.1, 0.05]]).mean(), (LOG3 + 1) / 2),
    "torchmetrics 377: grades of -1": (lambda f: fn.ndcg([[0, 1, -1, 0]], [[0, 0.5, 0.1, 0.5]]).mean(), "negative|-1"),
    "ranking-metrics-torch 1: one cutoff": (lambda f: fn.ndcg(*TOY, k=3)[0], (5 + LOG3) / (10 + 5 * LOG3 + 0.5)),
    "LightGBM 6814: ndcg@3 of grades": (lambda f: fn.evaluate(fn.Rankings.from_groups([3, 2], [1, 0, 2, 0, 1], [0.9, 0.8, 0.7, 0.2, 0.6]), "nDCG@3", convention="lightgbm").mean()["nDCG@3"], ((1 + 3 * 0.5) / (3 + LOG3) + 1) / 2),
    "LightGBM 6823: a query of one document": (lambda f: fn.ndcg([1, 1, 0], [0.5, 0.1, 0.9], group=[1, 2]).tolist(), [1.0, LOG3]),
    "LightGBM 6633: label_gain": (lambda f: fn.evaluate(fn.Rankings.from_lists([[2, 1, 0]], [[0.1, 0.9, 0.5]]), fn.nDCG(gain=[0, 1, 1])).values[0, 0], (1 + 0.5) / (1 + LOG3)),
    "LightGBM 2091: rows in another order": (lambda f: fn.ndcg([1, 0, 1], [0.5, 0.5, 0.5])[0] - fn.ndcg([1, 1, 0], [0.5, 0.5, 0.5])[0], 0.0),
    "LightGBM: group sizes that do not add up": (lambda f: fn.ndcg([1, 0, 1], [0.1, 0.2, 0.3], group=[2, 2]), "adds up to 4 documents"),
    "LightGBM: qid in place of group": (lambda f: fn.ndcg([1, 0], [0.1, 0.2], qid=[1, 1]), 'Did you mean "query_ids"'),
    "XGBoost 2208: a group without a relevant document": (lambda f: fn.evaluate(fn.Rankings.from_lists([[0, 0], [1, 0]]), "nDCG@5", convention="xgboost").mean()["nDCG@5"], 1.0),
    "XGBoost 3875: the number by hand": (lambda f: fn.ndcg([0, 3, 1], [0.9, 0.5, 0.1], gain="exp2")[0], (7 * LOG3 + 0.5) / (7 + LOG3)),
    "XGBoost 6707: grades up to 59": (lambda f: fn.ndcg(np.arange(60), np.arange(60.0), gain="exp2")[0], "linear|59|53"),
    # recommenders
    "Spark RankingMetrics: dicts": (lambda f: mean(dict(enumerate(SPARK[1])), dict(enumerate(SPARK[0])), "P@5"), SPARK_P5),
    "Spark RankingMetrics: pairs of lists": (lambda f: fn.Rankings.from_lists(SPARK[1][:2], SPARK[0][:2]), "evaluate\\({query"),
    "Spark RankingEvaluator: a frame": (lambda f: mean(pd.DataFrame({"prediction": SPARK[0][:2], "label": SPARK[1][:2]}), "P@5"), 'relevant_ids="label"'),
    "Spark RankingEvaluator: named": (lambda f: mean(pd.DataFrame({"prediction": SPARK[0], "label": SPARK[1]}), "P@5", relevant_ids="label", retrieved_ids="prediction"), SPARK_P5),
    "Metrics mapk: text": (lambda f: mean(dict(enumerate(ACTUAL)), dict(enumerate(PREDICTED)), "AP(denominator='cutoff')@2"), (1 / 2 + 0 + 1 / 2) / 3),
    "Kaggle MAP@k": (lambda f: mean({"actual": ACTUAL, "predicted": PREDICTED}, "MAP@2"), (1 / 2 + 0 + 1 / 3) / 3),
    "Kaggle submission": (lambda f: mean(f("truth.csv", "user_id,actual\n1,10 11\n2,20\n"), f("sub.csv", "user_id,predicted\n1,11 12\n2,21 20\n"), "MRR"), 0.75),
    "RecTools: reco and interactions": (lambda f: query(INTERACTIONS, RECO, "nDCG@3", grades=1), {1: 0.0, 2: 1 / (1 + 0), 3: (1 + 0.5) / (1 + LOG3 + 0.5), 4: 1.0}),
    "RecTools: without grades": (lambda f: mean(INTERACTIONS, RECO, "nDCG@3"), "pass grades=1"),
    "recommenders 1749: ratings are gains": (lambda f: query(MOVIES.rename(columns={"userId": "user_id", "movieId": "item_id"}), {1: [11, 10], 2: [10]}, "nDCG")[1], (3 + 4 * LOG3) / (4 + 3 * LOG3)),
    "MovieLens: userId, movieId": (lambda f: query(MOVIES, {1: [11, 10], 2: [10]}, "nDCG")[1], (3 + 4 * LOG3) / (4 + 3 * LOG3)),
    "RecBole: a matrix of hits": (lambda f: fn.evaluate(fn.Rankings.from_lists([[1, 0, 1], [0, 0, 0]]), "RR@3").mean()["RR@3"], 0.5),
    "implicit: hits in a matrix given to evaluate": (lambda f: mean(np.array([[1, 0], [0, 1]]), "RR"), "from_dense|from_lists"),
    "implicit: sparse matrices given to evaluate": (lambda f: mean(scipy.sparse.coo_matrix([[1, 0]]), scipy.sparse.coo_matrix([[0.1, 0.2]]), "RR"), "qrels is a coo_matrix.*from_dense"),
    "lightfm 426: precision and recall": (lambda f: fn.evaluate({"u": ["a", "b"]}, {"u": ["a", "c"]}, "precision@2, recall@2").mean(), {"P@2": 0.5, "R@2": 0.5}),
    "leave one out: HR@10": (lambda f: mean({"u": ["a"], "v": ["z"]}, {"u": ["b", "a"], "v": ["b", "a"]}, "HR@10"), 0.5),
    # retrieval for language models
    "sentence-transformers: accuracy@1": (lambda f: mean(BEIR, BEIR_RUN, "accuracy@1"), "Success@k.*AUC"),
    "sentence-transformers: relevant_docs are sets": (lambda f: mean({"q": {"a", "b"}}, {"q": [{"corpus_id": "a", "score": 0.9}, {"corpus_id": "c", "score": 0.8}]}, "R@2"), 0.5),
    "BEIR: qrels and results": (lambda f: mean(BEIR, BEIR_RUN, "NDCG@10"), (1 + LOG3) / 2),
    "BEIR: a query is its own document": (lambda f: mean({"1": {"a": 1}}, {"1": {"1": 0.9, "a": 0.8}}, "nDCG@10", convention="beir"), 1.0),
    "BEIR: files": (lambda f: mean(f("test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n"), f("r.json", json.dumps({"q1": {"d2": 0.9, "d1": 0.5}})), "MRR@10"), 0.5),
    "MTEB: main score of several": (lambda f: {name: each.mean()["nDCG@10"] for name, each in fn.evaluate(BEIR, {"a": BEIR_RUN, "b": BEIR}, "nDCG@10").items()}, {"a": (1 + LOG3) / 2, "b": 1.0}),
    "LlamaIndex 9527: hit rate and MRR": (lambda f: fn.evaluate(RAG, "hit_rate, mrr").mean(), {"Success": 1.0, "RR": 0.75}),
    "LlamaIndex 13926: nothing retrieved": (lambda f: mean(pd.DataFrame({"query": ["a", "b"], "expected_ids": [["x"], ["y"]], "retrieved_ids": [["x"], []]}), "RR"), 0.5),
    "LlamaIndex 22683: a node twice": (lambda f: mean({"q": ["id1"]}, {"q": ["id1", "id1"]}, "AP"), 'duplicates="first"'),
    "trulens 2746: a chunk twice, the first": (lambda f: mean({"q": ["A", "B"]}, {"q": ["A", "A"]}, "R@2", duplicates="first"), 0.5),
    "mlflow 25965: targets and predictions": (lambda f: mean(pd.DataFrame({"targets": [["a"]], "predictions": [["b", "a"]]}), "RR"), 0.5),
    "haystack: texts as ids": (lambda f: mean({"q": ["Paris is in France."]}, {"q": ["Berlin.", "Paris is in France."]}, "MRR"), 0.5),
    "AutoRAG 386: nDCG of ids": (lambda f: mean({"q": ["a", "b", "c"]}, {"q": ["a", "x", "y", "z"]}, "nDCG@4"), 1 / (1 + LOG3 + 0.5)),
    # search
    "softwaredoug: labels and results in frames": (lambda f: query(LABELS, RESULTS, "nDCG@2", query="query_id"), {1: (0.9 + 0.1 * LOG3) / (0.9 + 0.9 * LOG3), 2: 1.0 / (1 + 0.9 * LOG3)}),
    "softwaredoug: ids and texts of queries": (lambda f: query(LABELS, RESULTS, "nDCG@2"), 'query="query_id"'),
    "Elasticsearch: its answer": (lambda f: mean({"q": {"1": 1}}, {"q": {"hits": {"hits": [{"_id": "2", "_score": 9.0}, {"_id": "1", "_score": 3.0}]}}}, "MRR"), 0.5),
    "rated-ranking-evaluator 71: more relevant ones than k": (lambda f: mean({"q": {str(n): 1 for n in range(11)}}, {"q": [str(n) for n in range(10)]}, "nDCG@10"), 1.0),
    "lenskit 90: never above 1": (lambda f: mean({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, "nDCG") <= 1, True),
    "distances: the lowest is the best": (lambda f: mean(pd.DataFrame({"qid": [1, 1], "label": [1, 0], "distance": [0.1, 0.9]}), "RR", score="distance"), "ascending=True"),
    "scores that are NaN": (lambda f: mean({"q": {"a": 1}}, {"q": {"a": float("nan"), "b": 0.5}}, "RR"), 'nan="last"'),
    "lists of ids at once": (lambda f: mean([["a"], ["b", "c"]], [["b", "a"], ["c"]], "RR"), "evaluate\\({query: relevant"),
    "lists of three ids": (lambda f: mean([[1, 2, 3]], [[1, 2, 9]], "RR"), "could be \\(query, document, grade\\) or ids"),
    "rows of a frame as lists": (lambda f: mean([["q", "a", 1]], [["q", "b", 0.9], ["q", "a", 0.5]], "RR"), 0.5),
    "grades and scores given to evaluate": (lambda f: mean(np.array([1, 0]), np.array([0.5, 0.1]), "nDCG"), "ndcg\\(relevance, scores\\)"),
    "documents of other names, and a query without": (lambda f: mean({"q": {}, "p": {"a": 1}}, {"q": ["b"], "p": ["c"]}, "RR"), 'documents of query "p" are "a" there, "c" here'),
    "a query without judgments alone": (lambda f: mean({"q": {}, "p": {"a": 1}}, {"q": ["b"]}, "RR"), 'documents of query "q" are none there, "b" here'),
    "ids of numbers against text": (lambda f: mean({"7": {"10": 1}}, {7: {10: 0.5}}, "RR"), 1.0),
    "ids padded with zeros": (lambda f: mean({"007": {"a": 1}}, {7: {"a": 0.5}}, "RR"), 'no query in common: "007" there, 7 here'),
}  # fmt: skip


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_the_first_attempt_is_right_or_says_what_is(attempt, tmp_path):
    call, expected = ATTEMPTS[attempt]

    def file(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", fn.FastndcgWarning)
        if isinstance(expected, str):
            try:
                call(file)
                said = " ".join(str(each.message) for each in told)
            except (fn.FastndcgError, ValueError) as error:
                said = str(error)
            assert re.search(expected, said), said
        else:
            found = call(file)
            assert found == pytest.approx(expected, rel=1e-6)
            assert not [each for each in told if "otherwise" in str(each.message)]
