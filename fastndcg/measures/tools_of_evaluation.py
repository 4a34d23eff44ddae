"""What libraries of evaluation compute, and papers, as tables: see `tools`."""

from __future__ import annotations

from fastndcg.measures.rules import Rounding, Rule, has

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
        has("DCG", "dcg_score"),
        has("AP", "average_precision_score", cut=False, ties="block"),
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
            has("RR", "RR", cut=False),
            has("RR", "RR@k", cut=True, ties="docid_asc", score_dtype=None),
            has("ERR", "ERR", rounding=Rounding(5, "stored"), score_dtype=None),
            has("Judged", "Judged", ties="docid_asc", score_dtype=None),
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
