"""What libraries of recommenders compute, as tables: see `tools`."""

from __future__ import annotations

from fastndcg.measures.declarations import Rule, has, have

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
        others=(
            has("P", "Precision", unjudged="skip_irrelevant"),
            *have("R Recall, F F1Beta, Success HitRate, AP MAP, RR MRR", empty="skip"),
            has(
                "AUC", "PartialAUC(k=10)", cut=False, max_fp=10,
                caveats=("insufficient_handling='ignore'; another k is replace(AUC={'max_fp': k})",),
            ),
        ),
        caveats=("the ideal ranking has k relevant items even for users who have fewer",
            "users without relevant items are left out"),
    ),
    _RECSYS.replace(
        name="rectools_achievable", empty="skip", tool="RecTools 0.19.0",
        source="rectools/metrics/ranking.py NDCG(divide_by_achievable=True)",
        others=(
            has("P", "Precision(r_precision=True)", denominator="n_relevant", unjudged="skip_irrelevant"),
            has("AP", "MAP(divide_by_k=True)", empty="skip", denominator="k"),
        ),
        caveats=("users without relevant items are left out",),
    ),
    _RECSYS,
    _RECSYS.replace(
        name="replay", ties="item_desc", empty="skip", tool="RePlay 0.22.0", source="replay/metrics/ndcg.py",
        others=(
            has("P", "Precision", unjudged="skip_irrelevant"), has("R", "Recall", empty="skip"),
            has("Success", "HitRate", empty="skip"), has("AP", "MAP", empty="skip", denominator="cutoff"),
            has("RR", "MRR", empty="skip"),
            has("AUC", "RocAuc", cut=True, only_relevant=1.0, unjudged="skip_irrelevant"),
        ),
        caveats=(
            ("for pandas, Polars and Spark input, ties are ordered by falling item id; "
            "a dict of lists keeps its order"),
            "users without relevant items have no ground truth and are left out",
        ),
    ),
    _RECSYS.replace(
        name="recpack", ties="unspecified", empty="skip", tool="RecPack 0.3.6",
        source="recpack/metrics/dcg.py NDCGK",
        others=(
            has("P", "PrecisionK", unjudged="skip_irrelevant"), has("R", "RecallK", empty="skip"),
            has("RR", "ReciprocalRankK", empty="skip"),
            has("NumRet", "HitK", rel=1, unjudged="skip_irrelevant"),
        ),
        caveats=("the order of ties in sparse scores is not defined, so such data is refused",
            "users without ground truth are left out"),
    ),
    _RECSYS.replace(
        name="cornac", empty="skip", tool="Cornac 2.2.1", source="cornac/metrics/ranking.py NDCG",
        others=(
            has("P", "Precision", unjudged="skip_irrelevant"), has("R", "Recall", empty="skip"),
            has("F", "FMeasure", empty="skip"), has("Success", "HitRatio", empty="skip"),
            has("RR", "MRR", cut=False, empty="skip"),
            has("AP", "MAP", cut=False, empty="skip", ties="block"),
            has("AUC", "AUC", empty="skip", ties="worst"),
        ),
        caveats=("its evaluator leaves out users without positive items",),
    ),
    _RECSYS.replace(
        name="implicit", empty="skip", tool="implicit 0.7.3", source="implicit/evaluation.pyx ndcg_at_k",
        others=(
            has("P", "precision_at_k", denominator="n_relevant", weights="min(n_relevant, k)"),
            has("AP", "mean_average_precision_at_k", empty="skip", denominator="cutoff"),
        ),
        caveats=("recommended lists are taken in their order", "users without test items are left out"),
    ),
    _RECSYS.replace(
        name="recbole", ties="unspecified", empty="skip", score_dtype="float32", tool="RecBole 1.2.1",
        source="recbole/evaluator/metrics.py NDCG",
        others=(
            has("P", "precision", unjudged="skip_irrelevant"), has("R", "recall", empty="skip"),
            has("Success", "hit", empty="skip"), has("RR", "mrr", empty="skip"),
            has("AP", "map", empty="skip", denominator="cutoff"),
            has(
                "AUC", "gauc", cut=False, ties="average", weights="n_relevant",
                empty="skip", caveats=("its decimals, 4 by default, are not cut here",),
            ),
        ),
        caveats=("torch.topk does not define the order of ties, so such data is refused",),
    ),
    _RECSYS.replace(
        name="recommenders", empty="skip", tool="recommenders 1.2.1",
        source="recommenders/evaluation/python_evaluation.py ndcg_at_k",
        others=(
            has("P", "precision_at_k", unjudged="skip_irrelevant", missing="skip"),
            *have("R recall_at_k, AP map", empty="skip", missing="skip"),
        ),
        caveats=("score_type='binary'; users of the ground truth without predictions count as 0",),
    ),
    _RECSYS.replace(
        name="recommenders_at_k", of=None, tool="recommenders 1.2.1",
        source="recommenders/evaluation/python_evaluation.py map_at_k",
        others=(has("AP", "map_at_k", empty="skip", missing="skip", denominator="cutoff"),),
        caveats=("the other of its two functions of average precision: conventions['recommenders']",),
    ),
    _RECSYS.replace(
        name="recpack_calibrated", of=None, ties="unspecified", tool="RecPack 0.3.6",
        source="recpack/metrics/recall.py CalibratedRecallK",
        others=(has("R", "CalibratedRecallK", empty="skip", denominator="cutoff"),), caveats=(),
    ),
    _RECSYS.replace(
        name="merlin", of=None, ties="average", tool="NVIDIA Merlin Models, read",
        source="merlin/models/tf/metrics/topk.py",
        others=(
            has("P", "precision_at"), has("R", "recall_at", denominator="cutoff"),
            has("AP", "map_at", denominator="cutoff"), has("RR", "mrr_at"),
        ),
        caveats=("it shuffles ties without a seed; this is the exact expected value",),
    ),
    _RECSYS.replace(
        name="torchrec", of=None, tool="TorchRec, read", source="torchrec/metrics/recall_session.py",
        others=(
            has("R", "recall_session", weights="n_relevant",
                caveats=("one share over all sessions: hits over relevant documents",)),
            has("AUC", "gauc", cut=False, ties="unspecified", empty="skip", missing="skip", pool="scored",
                caveats=("groups whose scores are all equal are left out, and refused here as other ties",)),
        ),
        caveats=(),
    ),
    _RECSYS.replace(
        name="sentence_transformers", ties="docid_asc", empty="skip",
        tool="sentence-transformers 6.2.0",
        source="sentence_transformer/evaluation/information_retrieval.py compute_metrics",
        others=(
            has("Success", "accuracy@k", empty="skip"), has("P", "precision@k", unjudged="skip_irrelevant"),
            has("R", "recall@k", empty="skip"), has("RR", "mrr@k", empty="skip", default_cutoff=10),
            has("AP", "map@k", empty="skip", denominator="cutoff", default_cutoff=100),
        ),
        caveats=("ties are ordered by rising corpus id, the opposite of trec_eval",
            "queries without relevant documents are dropped"),
    ),
    _RECSYS.replace(
        name="pyvespa", empty="skip", tool="pyvespa 1.2.9", source="vespa/evaluation/_base.py",
        others=(
            has("Success", "accuracy@k", empty="skip"), has("P", "precision@k", unjudged="skip_irrelevant"),
            has("R", "recall@k", empty="skip"), has("RR", "mrr@k", empty="skip"),
            has("AP", "map@k", empty="skip", denominator="cutoff"),
        ),
        caveats=("grades are ignored even if they are given", "hits keep the order of the server"),
    ),
    Rule(
        "elliot", gain="exp2", rel=1, ties="input", empty="skip",
        tool="Elliot, read", source="elliot/evaluation/metrics/accuracy/ndcg/ndcg.py",
        others=(
            has("P", "Precision", unjudged="skip_irrelevant"), has("R", "Recall", empty="skip"),
            has("F", "F1", empty="skip"), has("Success", "HR", empty="skip"), has("RR", "MRR", empty="skip"),
            has("AP", "MAP", cut=True, empty="skip", denominator="none"),
        ),
        caveats=(("threshold 1: gain 2^(grade - threshold + 1) - 1; for another threshold t give a mapping "
            "as gain, and rel=t"),),
    ),
    Rule(
        "lenskit", discount="jarvelin", ties="input", empty="skip", missing="value",
        tool="LensKit 2025.8.1", source="lenskit/metrics/ranking/_dcg.py NDCG(gain=...)",
        others=(
            has("P", "Precision", denominator="returned", empty="skip", missing="skip"),
            has("R", "Recall", denominator="cutoff", empty="skip", missing="skip"),
            *have("Success Hit, RR RecipRank", empty="skip", missing="skip"),
            has("AP", "AveragePrecision", denominator="returned", empty="skip", missing="skip"),
            has("RBP", "RBP", p=0.85, unjudged="skip_irrelevant", missing="skip"),
        ),
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
        others=(
            *have("P precisionAt, R recallAt", cut=True), has("AP", "meanAveragePrecision", cut=False),
            has("AP", "meanAveragePrecisionAt", cut=True, denominator="cutoff"),
        ),
        caveats=("binary: PySpark silently drops a column of relevance",
            "the discount has a natural logarithm; the base cancels in the ratio"),
    )  # fmt: skip
