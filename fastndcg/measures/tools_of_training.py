"""What boosters and libraries of neural rankers compute, as tables: see `tools`."""

from __future__ import annotations

from typing import Any

from fastndcg.measures.declarations import Rule, has, have
from fastndcg.measures.tools_of_evaluation import SKLEARN

ABOVE_HALF = 0.5000000000000001  # the smallest grade above 0.5

_LIGHTGBM = Rule(
    "lightgbm", gain="exp2", ideal="scored", ties="input", empty=1.0, weights="lightgbm",
    tool="LightGBM 4.7.0", source="src/metric/dcg_calculator.cpp, rank_metric.hpp",
    caveats=(
        "queries without a relevant document count as 1",
        "with query weights such a query adds 1, not its weight, so the mean can exceed 1",
        "tied documents keep the order of the rows, although LightGBM's issue tracker says otherwise",
        "label_gain: conventions['lightgbm'].replace(gain=[0, 1, 3, 7])",
    ),
    others=(
        has(
            "AP", "map@k", rel=ABOVE_HALF, empty=1.0, denominator="cutoff", weights="weighted"
        ),
    ),
)  # fmt: skip
_XGBOOST = _LIGHTGBM.replace(
    name="xgboost", score_dtype="float32", weights="xgboost", default_cutoff=32,
    tool="XGBoost 3.2.0", source="src/metric/rank_metric.cc EvalNDCG, src/common/ranking_utils.h",
    caveats=(
        "ndcg without @ is silently cut at 32",
        ("queries without a relevant document count as 1; with group weights such a query adds 1, "
        "not its weight"),
        "ndcg_exp_gain=false: conventions['xgboost'].replace(gain='linear')",
    ),
    others=(
        has("AP", "map@k", empty=1.0, denominator="cutoff", weights="weighted"),
        has("P", "pre@k", denominator="returned", weights="weighted"),
        has("AUC", "auc", cut=False, pairs="graded", ties="average", grades="distinct", shortest=3,
            weights="ignored", default_cutoff=None,
            caveats=("with groups, each pair of rows counts: of equal labels the first should be higher",)),
    ),
)  # fmt: skip
_UNWEIGHTED: dict[str, Any] = {
    "weights": "ignored",
    "caveats": ("weights of queries change nothing, also with use_weights=true",),
}
_CATBOOST = Rule(
    "catboost", ideal="scored", ties="worst", empty=1.0, weights="weighted",
    tool="CatBoost 1.2.10", source="catboost/libs/metrics/dcg.cpp, doc_comparator.h",
    caveats=("type=Base, denominator=LogPosition are its defaults", "targets are float32",
        "tied documents are ordered by rising target"),
    others=(
        has("AP", "MAP:top", rel=ABOVE_HALF, denominator="cutoff", **_UNWEIGHTED),
        has("R", "RecallAt:top", rel=ABOVE_HALF, empty=1.0, **_UNWEIGHTED),
        has("RR", "MRR:top", rel=ABOVE_HALF),
        has("P", "PrecisionAt:top", rel=ABOVE_HALF, denominator="returned", **_UNWEIGHTED),
        has(
            "AUC", "QueryAUC:type=Ranking", cut=False, pairs="graded", ties="average",
            weights="ignored",
            caveats=("type=Classic, the default, has this value for targets 0 and 1",),
            ),
        has("ERR", "ERR:top", stop="linear"), *have("PFound PFound:top, DCG DCG:top"),
    ),
)  # fmt: skip
_TF_RANKING = Rule(
    "tf_ranking", gain="exp2", ideal="scored", ties="average", score_dtype="float32", weights="tf_ranking",
    tolerance=1e-6,
    tool="TF-Ranking 0.5.5", source="python/metrics_impl.py NDCGMetric",
    others=(
        has("P", "PrecisionMetric", denominator="returned"), has("R", "RecallMetric"),
        has("AP", "MeanAveragePrecisionMetric"), has("RR", "MRRMetric"), has("Success", "HitsMetric"),
    ),
    caveats=(
        "it shuffles tied documents without a seed; this is the exact expected value over the shuffles",
        "weights of queries are reproduced; weights of documents, which multiply gains, are not",
    ),
)  # fmt: skip
_ABOVE_0 = "a document with a score of 0 or less is never relevant, so logits give values that are too low"

TRAINING: tuple[Rule, ...] = (
    _LIGHTGBM,
    _XGBOOST,
    _XGBOOST.replace(name="xgboost-", empty=0.0,
        caveats=("ndcg@n- : queries without a relevant document count as 0", *_XGBOOST.caveats[::2]),
        AP={"empty": 0.0}),
    _CATBOOST,
    _CATBOOST.replace(
        name="catboost_exp", others=(), gain="exp2", caveats=("type=Exp", *_CATBOOST.caveats[1:])
    ),
    _CATBOOST.replace(
        name="catboost_position", others=(), discount="reciprocal",
        caveats=("denominator=Position", *_CATBOOST.caveats[1:])),
    _CATBOOST.replace(
        name="catboost_exp_position", others=(), gain="exp2", discount="reciprocal",
        caveats=("type=Exp, denominator=Position", *_CATBOOST.caveats[1:])
    ),
    _TF_RANKING,
    _TF_RANKING.replace(
        name="keras_rs", tool="Keras RS, read", source="keras_rs/src/metrics",
        others=tuple(own for own in _TF_RANKING.others if own.measure != "Success"),
    ),
    _TF_RANKING.replace(
        name="rax", others=(), ties="input", weights="ignored", tool="Rax 0.4.0",
        source="rax/_src/metrics.py ndcg_metric",
        caveats=(
            ("it multiplies gains by weights of documents; weights that are equal within a query "
            "have no effect"), "with key= it shuffles ties"),
    ),
    SKLEARN.replace(
        name="torchmetrics", others=(
            has(
                "AP", "RetrievalMAP", denominator="hits", score_above=0, ties="unspecified",
                caveats=(_ABOVE_0, "divided by the relevant documents on the first k ranks, not by all"),
            ),
            has("P", "RetrievalPrecision", score_above=0, ties="unspecified", caveats=(_ABOVE_0,)),
            has("R", "RetrievalRecall", score_above=0, ties="input_to_16", caveats=(_ABOVE_0,)),
            has("RR", "RetrievalMRR", score_above=0, ties="unspecified", caveats=(_ABOVE_0,)),
            has("Success", "RetrievalHitRate", ties="input_to_16"), has("AUC", "RetrievalAUROC", cut=False),
            has("AUC", "RetrievalAUROC(top_k)", cut=True, ties="unspecified"),
            has("Rprec", "RetrievalRPrecision", ties="input_to_16"),
        ), score_dtype="float32", weights="ignored", tolerance=1e-6,
        tool="torchmetrics 1.9.0",
        source="torchmetrics/functional/retrieval/ndcg.py, torchmetrics/retrieval/ndcg.py",
        caveats=("its sums are float32", "the functional form takes a matrix for a single query"),
    ),
    Rule(
        "ignite", gain="exp2", ideal="scored", ties="input", empty="skip", rel=1, score_dtype="float32",
        tolerance=1e-6,
        tool="pytorch-ignite 0.5.5", source="ignite/metrics/rec_sys/ndcg.py",
        caveats=("grades below relevance_threshold=1 gain nothing",
            "queries without a relevant document are left out (ignore_zero_hits=True)"),
    ),
    Rule(
        "allrank", gain="exp2", ideal="scored", ties="input_to_16", empty=1.0, score_dtype="float32",
        tolerance=1e-6,
        tool="allRank 1.4.3", source="allrank/models/metrics.py ndcg",
        caveats=("in longer lists torch.sort does not define the order of ties, so ties there are refused",),
    ),
    Rule(
        "ranklib", gain="exp2", ideal="scored", ties="input",
        tool="RankLib 2.10.2", source="ciir/umass/edu/metric/NDCGScorer.java",
        caveats=(("with -qrel the ideal ranking holds all judged documents: "
            "conventions['ranklib'].replace(ideal='judged')"),),
    ),
)  # fmt: skip
