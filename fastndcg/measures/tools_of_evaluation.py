"""What libraries of evaluation compute, and papers, as tables: see `tools`."""

from __future__ import annotations

from fastndcg.measures.declarations import Rounding, Rule, has, have

_TREC_CAVEATS = (
    "documents with equal scores are ordered by falling document id, and the run's rank column is ignored",
    (
        "trec_eval casts differences of gains to int, so it misorders gains that differ by less than 1 "
        "(-m ndcg.1=0.9,2=0.3); not reproduced"
    ),
)
SKLEARN = Rule(
    "sklearn", ideal="scored", ties="average", weights="weighted",
    tool="scikit-learn 1.9.1", source="sklearn/metrics/_ranking.py ndcg_score",
    caveats=(
        "its gain is linear, not 2^grade - 1",
        "it raises an error for rows of one document and for negative grades",
        "in 1.9.1, unsigned scores such as np.uint8 wrap around and give wrong values; cast them to float",
    ),
    others=(
        has("DCG", "dcg_score"), has("AP", "average_precision_score", cut=False, ties="block"),
        has("AUC", "roc_auc_score", empty="nan", caveats=("of each query, and NaN for one class of grades",)),
    ),
)  # fmt: skip
_TREC_EVAL = Rule(
    "trec_eval", ties="docid_desc", rel=0, rounding=Rounding(4, "printed"),
    tool="trec_eval 10.0", source="m_ndcg.c, m_ndcg_cut.c, form_res_rels.c",
    others=(
        has("AP", "map, map_cut"), has("P", "P"), has("R", "recall"), has("RR", "recip_rank"),
        has("Success", "success"), has("Rprec", "Rprec"), has("Bpref", "bpref"), has("infAP", "infAP"),
        has("IPrec", "iprec_at_recall", rounding="nearest"), has("SetP", "set_P"), has("SetR", "set_recall"),
        has("SetF", "set_F"), has("SetAP", "set_map"), has("NumRel", "num_rel"), has("NumRet", "num_ret"),
    ),
    caveats=(
        *_TREC_CAVEATS,
        ("10.0 without -c ends with exit code 4 if the run lacks a judged query; "
        "here such queries are left out")),
)  # fmt: skip
_TREC_EVAL_9 = _TREC_EVAL.replace(
    name="trec_eval9", score_dtype="float32", IPrec={"rounding": "up"}, tool="trec_eval 9.0.8",
    caveats=(*_TREC_CAVEATS, "scores are float32: 1.0000000002 and 1.0000000001 are tied"),
)  # fmt: skip
_PYTREC_EVAL = _TREC_EVAL_9.replace(
    name="pytrec_eval",
    rounding=None,
    tool="pytrec_eval-terrier 0.5.11",
    source="pytrec_eval, trec_eval 9.0.8 inside",
)
_RANX = Rule(
    "ranx", ties="numba_argsort", rel=1, missing="value",
    tool="ranx 0.3.21", source="ranx/metrics/ndcg.py, ranx/data_structures/common.py",
    caveats=(
        ("with more than 15 documents, Numba's unstable quicksort decides the order of ties, "
        "which depends on the order of the rows"),
        ("it raises an error for a query without returned documents, unless make_comparable=True, "
        "which counts it as 0"),
        "grades below 1, including fractions, are dropped",
    ),
    others=(
        has("AP", "map"), has("P", "precision"), has("R", "recall"), has("RR", "mrr"), has("F", "f1"),
        has("Success", "hit_rate"), has("Rprec", "r-precision"), has("NumRet", "hits", rel=1),
    ),
)  # fmt: skip
EVALUATION: tuple[Rule, ...] = (
    SKLEARN,
    SKLEARN.replace(
        name="sklearn_ranking", of=None, source="sklearn/metrics/_ranking.py label_ranking_loss", caveats=(),
        others=(
            has("AUC", "1 - label_ranking_loss", ties="worst", empty=1.0),
            has("AP", "label_ranking_average_precision_score", cut=False, ties="block", empty=1.0),
        ),
    ),
    _TREC_EVAL,
    _TREC_EVAL.replace(
        name="trec_eval_c", missing="value", tool="trec_eval 10.0 -c",
        caveats=(*_TREC_CAVEATS, "-c: a judged query that the run lacks counts as 0"),
    ),
    _TREC_EVAL_9,
    _PYTREC_EVAL,
    Rule(
        "gdeval", gain="exp2", ties="docid_desc", empty="skip", rel=0, rounding=Rounding(5, "printed"),
        tool="gdeval.pl of the TREC Web track", source="gdeval.pl, as shipped with ir_measures 0.4.3",
        caveats=("queries without a relevant document are left out",
            "grades above 4 and query ids that are not numbers end the program"),
        others=(has("ERR", "err", unjudged="skip_irrelevant"),),
    ),
    _PYTREC_EVAL.replace(
        name="ir_measures", missing="value", tool="ir_measures 0.4.3",
        source="ir_measures/providers/pytrec_eval_provider.py",
        others=(
            *(own for own in _PYTREC_EVAL.others if own.measure not in ("NumRel", "NumRet", "RR")),
            has("RR", "RR", cut=False), has("RR", "RR@k", cut=True, ties="docid_asc", score_dtype=None),
            has("ERR", "ERR", rounding=Rounding(5, "stored"), score_dtype=None),
            has("Judged", "Judged", ties="docid_asc", score_dtype=None, pool="listed"),
            has(
                "AUC", "Accuracy", ties="docid_asc", score_dtype=None, empty="skip", missing="skip",
                caveats=("it ends with an error where all returned documents are relevant",),
            ),
        ),
        caveats=(
            "nDCG goes to pytrec_eval; a judged query that the run lacks counts as 0",
            ("nDCG(dcg='exp-log2') goes to gdeval.pl, whose values, rounded to 5 decimals, are averaged: "
            "conventions['gdeval']"),
        ),
    ),
    _PYTREC_EVAL.replace(
        name="beir", tool="BEIR, read", source="beir/retrieval/evaluation.py, custom_metrics.py",
        others=(
            *have("AP map, P P, R recall"), has("RR", "mrr", ties="input", missing="value", score_dtype=None),
        ),
        caveats=("means are printed with 5 decimals",
            "documents whose id is that of the query are dropped from the run first (ignore_identical_ids)"),
    ),
    _PYTREC_EVAL.replace(
        name="mteb", tool="MTEB, read", source="mteb/_evaluators/retrieval_metrics.py",
        others=(
            *have("AP map, P precision, R recall, Success hit_rate"), has("RR", "mrr", score_dtype=None),
        ),
        caveats=("means are printed with 5 decimals",),
    ),
    _PYTREC_EVAL.replace(
        name="mteb_cap", of=None, tool="MTEB and BEIR, read", source="mteb/_evaluators/retrieval_metrics.py",
        others=(has("R", "R_cap", empty="skip", denominator="cutoff", score_dtype=None),),
        caveats=("recall divided by the most that k documents could reach",),
    ),
    _PYTREC_EVAL.replace(
        name="flagembedding", tool="FlagEmbedding, read", source="FlagEmbedding/abc/evaluation/utils.py",
        others=(
            has("AP", "map"), has("P", "precision"), has("R", "recall"),
            has("RR", "mrr", ties="input", missing="value", score_dtype=None),
        ),
        caveats=("means are printed with 5 decimals",),
    ),
    Rule(
        "elinor", of=None, ties="docid_asc", tool="elinor 0.4, read", source="src/metrics",
        others=(
            has("AP", "ap"), has("P", "precision"), has("R", "recall"), has("RR", "rr"), has("F", "f1"),
            has("Success", "success"), has("Rprec", "r_precision"), has("Bpref", "bpref"),
        ),
        caveats=("ties are ordered by rising document id, the opposite of trec_eval",
            "its bpref is 0/0 where no document was judged to be not relevant"),
    ),
    Rule(
        "trectools", of=None, ties="docid_desc", unjudged="value",
        tool="trectools, read", source="trectools/trec_eval.py",
        others=(
            has("AP", "get_map", default_cutoff=1000), has("P", "get_precision"),
            has("RR", "get_reciprocal_rank"), has("Rprec", "get_rprec"), has("Bpref", "get_bpref"),
            has("RBP", "get_rbp", ties="average", default_cutoff=1000),
        ),
        caveats=("the mean is over the queries of the run, judged or not",
            "with trec_eval=False the ranks of the run decide: ties='input'"),
    ),
    Rule(
        "kaggle", of=None, ties="input", missing="value", tool="MAP@k of Kaggle's contests, read",
        source="ml_metrics/average_precision.py mapk",
        others=(has("AP", "mapk", denominator="cutoff", default_cutoff=10),),
    ),
    Rule(
        "evidently", of=None, ties="unspecified", missing="value", tool="Evidently 0.7, read",
        source="src/evidently/legacy/metrics/recsys",
        others=(
            has("P", "PrecisionTopK", denominator="returned"), has("R", "RecallTopK"), has("RR", "MRRK"),
            has("Success", "HitRateK"),
            has("AP", "MAPK", caveats=("right only where rows are sorted by rank, as here",)),
        ),
        caveats=("no_feedback_users=False leaves out users without a positive",),
    ),
    Rule(
        "llama_index", of=None, ties="input", missing="value", tool="LlamaIndex, read",
        source="llama_index/core/evaluation/retrieval/metrics.py",
        others=(
            *have("Success hit_rate, RR mrr, P precision, R recall, AP ap", cut=False),
        ),
        caveats=("all retrieved documents count; there is no cutoff", "empty lists raise an error"),
    ),
    Rule(
        "ragas", of=None, ties="input", missing="value", tool="Ragas 0.4, read",
        source="src/ragas/metrics/_context_precision.py, _context_recall.py",
        others=(
            has("AP", "context_precision", cut=False, denominator="hits"),
            *have("P id_based_context_precision, R id_based_context_recall", cut=False, empty="nan"),
        ),
        caveats=("it adds 1e-10 to the number of relevant documents found",),
    ),
    Rule(
        "mlflow", gain="binary", ideal="judged_returned", ties="input", missing="value", tool="MLflow 3.17",
        source="mlflow/metrics/metric_definitions.py",
        others=(has("P", "precision_at_k", denominator="returned"), has("R", "recall_at_k")),
        caveats=("nDCG and recall are 1 where nothing is relevant and nothing was returned",),
    ),
    _RANX,
    _RANX.replace(name="ranx_burges", others=(), gain="exp2", source="ranx/metrics/ndcg.py ndcg_burges"),
)  # fmt: skip

PAPERS: tuple[Rule, ...] = (
    Rule(
        "jarvelin2002", discount="jarvelin", ties="input", empty="skip",
        tool="Järvelin and Kekäläinen, TOIS 20(4), 2002", source="doi.org/10.1145/582415.582418",
        caveats=("the base is 2, so only ranks 1 and 2 are not discounted",
            "the paper also averages nDCG over the ranks 1 to k"),
    ),
    Rule(
        "burges2005", gain="exp2", ideal="scored", ties="input", empty="skip",
        tool="Burges et al., ICML 2005", source="doi.org/10.1145/1102351.1102363",
        caveats=("the discount is 1/log(1 + rank); the base cancels in the ratio",),
    ),
)  # fmt: skip
