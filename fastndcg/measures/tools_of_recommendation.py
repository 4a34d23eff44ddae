"""What libraries of recommenders compute, as tables: see `tools`."""

from __future__ import annotations

from fastndcg.measures.rules import Rule, has

_RECSYS = Rule(
    "recsys", gain="binary", ties="input", missing="value",
    tool=(
        "RePlay, RecPack, Cornac, implicit, RecBole, recommenders, sentence-transformers and pyvespa agree "
        "on it"
    ),
    source="Tamm, Damdinov and Vasilev, arXiv 2206.12858",
    caveats=("they differ in ties and in the users that they leave out; each also has its own convention",),
)  # fmt: skip

RECOMMENDATION: tuple[Rule, ...] = (
    Rule(
        "rectools", gain="binary", ideal="full", ties="input", missing="value", unjudged="skip_irrelevant",
        tool="RecTools 0.19.0", source="rectools/metrics/ranking.py NDCG",
        caveats=("the ideal ranking has k relevant items even for users who have fewer",
            "users without relevant items are left out"),
        others=(
            has(
                "AUC", "PartialAUC(k=10)", cut=False, max_fp=10,
                caveats=("insufficient_handling='ignore'; another k is replace(AUC={'max_fp': k})",),
            ),
        ),
    ),
    _RECSYS.replace(
        name="rectools_achievable", empty="skip", tool="RecTools 0.19.0",
        source="rectools/metrics/ranking.py NDCG(divide_by_achievable=True)",
        caveats=("users without relevant items are left out",),
    ),
    _RECSYS,
    _RECSYS.replace(
        name="replay", ties="item_desc", empty="skip", tool="RePlay 0.22.0", source="replay/metrics/ndcg.py",
        caveats=(
            ("for pandas, Polars and Spark input, ties are ordered by falling item id; "
            "a dict of lists keeps its order"),
            "users without relevant items have no ground truth and are left out",
        ),
    ),
    _RECSYS.replace(
        name="recpack", ties="unspecified", empty="skip", tool="RecPack 0.3.6",
        source="recpack/metrics/dcg.py NDCGK",
        caveats=("the order of ties in sparse scores is not defined, so such data is refused",
            "users without ground truth are left out"),
    ),
    _RECSYS.replace(
        name="cornac", empty="skip", tool="Cornac 2.2.1", source="cornac/metrics/ranking.py NDCG",
        caveats=("its evaluator leaves out users without positive items",),
    ),
    _RECSYS.replace(
        name="implicit", empty="skip", tool="implicit 0.7.3", source="implicit/evaluation.pyx ndcg_at_k",
        caveats=("recommended lists are taken in their order", "users without test items are left out"),
    ),
    _RECSYS.replace(
        name="recbole", ties="unspecified", empty="skip", score_dtype="float32", tool="RecBole 1.2.1",
        source="recbole/evaluator/metrics.py NDCG",
        caveats=("torch.topk does not define the order of ties, so such data is refused",),
        others=(
            has(
                "AUC", "gauc", cut=False, ties="average", weights="n_relevant",
                empty="skip", caveats=("its decimals, 4 by default, are not cut here",),
            ),
        ),
    ),
    _RECSYS.replace(
        name="recommenders", empty="skip", tool="recommenders 1.2.1",
        source="recommenders/evaluation/python_evaluation.py ndcg_at_k",
        caveats=("score_type='binary'; users of the ground truth without predictions count as 0",),
    ),
    _RECSYS.replace(
        name="sentence_transformers", ties="docid_asc", empty="skip",
        tool="sentence-transformers 6.2.0",
        source="sentence_transformer/evaluation/information_retrieval.py compute_metrics",
        others=(
            has("Success", "accuracy@k", empty="skip"),
            has("P", "precision@k", unjudged="skip_irrelevant"),
            has("R", "recall@k", empty="skip"),
            has("RR", "mrr@k", empty="skip", default_cutoff=10),
            has("AP", "map@k", empty="skip", denominator="cutoff", default_cutoff=100),
        ),
        caveats=("ties are ordered by rising corpus id, the opposite of trec_eval",
            "queries without relevant documents are dropped"),
    ),
    _RECSYS.replace(
        name="pyvespa", empty="skip", tool="pyvespa 1.2.9", source="vespa/evaluation/_base.py",
        caveats=("grades are ignored even if they are given", "hits keep the order of the server"),
    ),
    Rule(
        "elliot", gain="exp2", rel=1, ties="input", empty="skip",
        tool="Elliot, read", source="elliot/evaluation/metrics/accuracy/ndcg/ndcg.py",
        caveats=(("threshold 1: gain 2^(grade - threshold + 1) - 1; for another threshold t give a mapping "
            "as gain, and rel=t"),),
    ),
    Rule(
        "lenskit", discount="jarvelin", ties="input", empty="skip", missing="value",
        tool="LensKit 2025.8.1", source="lenskit/metrics/ranking/_dcg.py NDCG(gain=...)",
        caveats=("ranks 1 and 2 are both undiscounted",
            "LogRankWeight(offset=1) gives log2: conventions['lenskit'].replace(discount='log2')"),
    ),
    Rule(
        "lenskit_binary", gain="binary", discount="jarvelin", ties="input", empty="skip", missing="value",
        tool="LensKit 2025.8.1", source="lenskit/metrics/ranking/_dcg.py NDCG()",
        caveats=(("every test item is relevant, whatever its grade; here only items of grade 1 and above "
            "are"),),
    ),
)  # fmt: skip

SPARK = _RECSYS.replace(
        name="spark", tool="Spark 4.3.0", source="mllib/evaluation/RankingMetrics.scala ndcgAt",
        caveats=("binary: PySpark silently drops a column of relevance",
            "the discount has a natural logarithm; the base cancels in the ratio"),
    )  # fmt: skip
