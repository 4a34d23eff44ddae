"""How each established tool computes nDCG, as data: one declaration for each.

Gain, discount, ideal, ties, empty and rel are parameters of a measure. The other fields are for a whole
evaluation: types of scores, ties by document id, queries left out, rounding, weights.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from dataclasses import replace as replaced
from typing import TYPE_CHECKING, Any, NamedTuple

from fastndcg.errors import ConventionError, InputTypeError, MeasureError, suggest
from fastndcg.measures.parameters import DISCOUNT, EMPTY, GAIN, IDEAL, REL

if TYPE_CHECKING:
    from typing import Self

    from fastndcg.typing import Empty, Ideal, Parameters, Ties


class Rounding(NamedTuple):
    """Decimals of the reported values."""

    decimals: int
    when: str  # "printed": the mean has unrounded values; "stored": it has rounded ones


TIES = {
    "average": "expected value over all orders of tied documents",
    "input": "tied documents in input order",
    "worst": "lower gain first",
    "best": "higher gain first",
    "docid_desc": "by falling document id, compared as UTF-8 text",
    "docid_asc": "by rising document id, compared as UTF-8 text",
    "item_desc": "by falling document id, numbers compared as numbers",
    "numba_argsort": (
        "the order of Numba's np.argsort(-scores): input order up to 15 documents; "
        "unstable but repeatable beyond that"
    ),
    "input_to_16": "input order up to 16 documents; beyond that torch.sort does not define the order",
    "unspecified": "undefined",
}
QUERIES = {
    "value": "like any other query",
    "skip": "left out",
    "skip_irrelevant": "left out, like each query without a judged document of positive gain",
}
WEIGHTS = {
    "weighted": "weighted mean",
    "ignored": "plain mean; there are no weights",
    "lightgbm": (
        "weighted sum over the sum of weights, but an empty query adds its value with weight 1 "
        "to the first sum"
    ),
    "xgboost": "like lightgbm; a mean above 1 ends the program",
    "tf_ranking": "weighted mean; an empty query has the mean weight of the others",
}


@dataclass(frozen=True)
class Rule:
    """What one tool does, field by field. A `Convention` also has the measure."""

    name: str
    _: KW_ONLY
    gain: Any = "linear"
    discount: Any = "log2"
    ideal: Ideal = "judged"
    ties: str = "average"  # one of TIES
    empty: Empty = 0.0  # value of a query whose IDCG is 0
    rel: float | None = None  # grades below it gain nothing
    score_dtype: str | None = None  # type that scores are cast to before ranking
    rounding: Rounding | None = None
    missing: str = "skip"  # a judged query without returned documents: one of QUERIES
    unjudged: str = "skip"  # a returned query without judged documents: one of QUERIES
    weights: str = "ignored"  # one of WEIGHTS
    default_cutoff: int | None = None  # cutoff of a measure without one
    tolerance: float = 1e-9  # largest difference from the tool's own value of a query
    tool: str = ""  # its name and the version that was run or read
    source: str = ""  # the files of the tool's code, or the paper
    caveats: tuple[str, ...] = ()

    @property
    def parameters(self) -> Parameters:
        """The parameters of nDCG, which are "input" for ties by id: rows are ordered first."""
        return {
            "gain": self.gain,
            "discount": self.discount,
            "ideal": self.ideal,
            "ties": self.measure_ties,
            "empty": self.empty,
            "rel": self.rel,
        }

    @property
    def orders_by_id(self) -> bool:
        """Whether tied documents are ordered by id."""
        return self.ties in ("docid_desc", "docid_asc", "item_desc")

    @property
    def measure_ties(self) -> Ties:
        """The `ties` of the measure; "input" if the rows are ordered first."""
        rules: dict[str, Ties] = {"average": "average", "worst": "worst", "best": "best"}
        return rules.get(self.ties, "input")

    @property
    def beyond_measure(self) -> dict[str, Any]:
        """The choices that a measure has no parameter for. `evaluate(..., convention=)` applies them too.

        >>> rule_named("lightgbm").beyond_measure
        {'missing': 'skip', 'unjudged': 'skip', 'weights': 'lightgbm'}
        """
        ties = {"ties": self.ties} if self.ties not in ("average", "worst", "best", "input") else {}
        rules = {
            name: getattr(self, name)
            for name in ("score_dtype", "rounding", "missing", "unjudged", "weights")
        }
        return ties | {name: value for name, value in rules.items() if value is not None}

    def replace(self, **changes: Any) -> Self:
        """Return this convention with other values of fields. Raise `MeasureError` if one is unknown."""
        known = [each.name for each in fields(self)]
        for name in changes:
            if name not in known:
                raise MeasureError(
                    f"a convention has no field {name!r}; it has: {', '.join(known)}.{suggest(name, known)}"
                )
        return replaced(self, **changes)

    def __post_init__(self) -> None:
        for name, known in (
            ("ties", TIES),
            ("missing", QUERIES),
            ("unjudged", QUERIES),
            ("weights", WEIGHTS),
        ):
            if getattr(self, name) not in known:
                raise MeasureError(
                    f"{name}={getattr(self, name)!r} is not known to conventions: "
                    f"{name} is one of {', '.join(map(repr, known))}."
                    f"{suggest(str(getattr(self, name)), known)}"
                )
        if self.score_dtype not in (None, "float32"):
            raise MeasureError(
                f"score_dtype={self.score_dtype!r} is not known to conventions; "
                "wanted None (the type of the scores) or 'float32'"
            )
        # convert values to their canonical, hashable form, as measures do
        read = {
            each.name: each.read(getattr(self, each.name)) for each in (GAIN, DISCOUNT, IDEAL, EMPTY, REL)
        }
        for name in ("gain", "discount", "empty"):
            object.__setattr__(self, name, read[name])


# ---- declarations ----

_TREC_CAVEATS = (
    "documents with equal scores are ordered by falling document id, and the run's rank column is ignored",
    (
        "trec_eval casts differences of gains to int, so it misorders gains that differ by less than 1 "
        "(-m ndcg.1=0.9,2=0.3); not reproduced"
    ),
)
_SKLEARN = Rule(
    "sklearn", ideal="scored", ties="average", weights="weighted",
    tool="scikit-learn 1.9.1", source="sklearn/metrics/_ranking.py ndcg_score",
    caveats=(
        "its gain is linear, not 2^grade - 1",
        "it raises an error for rows of one document and for negative grades",
        "in 1.9.1, unsigned scores such as np.uint8 wrap around and give wrong values; cast them to float",
    ),
)  # fmt: skip
_TREC_EVAL = Rule(
    "trec_eval", ties="docid_desc", rel=0, rounding=Rounding(4, "printed"),
    tool="trec_eval 10.0", source="m_ndcg.c, m_ndcg_cut.c, form_res_rels.c",
    caveats=(
        *_TREC_CAVEATS,
        ("10.0 without -c ends with exit code 4 if the run lacks a judged query; "
        "here such queries are left out")),
)  # fmt: skip
_TREC_EVAL_9 = _TREC_EVAL.replace(
    name="trec_eval9", score_dtype="float32", tool="trec_eval 9.0.8",
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
)  # fmt: skip
_LIGHTGBM = Rule(
    "lightgbm", gain="exp2", ideal="scored", ties="input", empty=1.0, weights="lightgbm",
    tool="LightGBM 4.7.0", source="src/metric/dcg_calculator.cpp, rank_metric.hpp",
    caveats=(
        "queries without a relevant document count as 1",
        "with query weights such a query adds 1, not its weight, so the mean can exceed 1",
        "tied documents keep the order of the rows, although LightGBM's issue tracker says otherwise",
        "label_gain: conventions['lightgbm'].replace(gain=[0, 1, 3, 7])",
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
)  # fmt: skip
_CATBOOST = Rule(
    "catboost", ideal="scored", ties="worst", empty=1.0, weights="weighted",
    tool="CatBoost 1.2.10", source="catboost/libs/metrics/dcg.cpp, doc_comparator.h",
    caveats=("type=Base, denominator=LogPosition are its defaults", "targets are float32",
        "tied documents are ordered by rising target"),
)  # fmt: skip
_TF_RANKING = Rule(
    "tf_ranking", gain="exp2", ideal="scored", ties="average", score_dtype="float32", weights="tf_ranking",
    tolerance=1e-6,
    tool="TF-Ranking 0.5.5", source="python/metrics_impl.py NDCGMetric",
    caveats=(
        "it shuffles tied documents without a seed; this is the exact expected value over the shuffles",
        "weights of queries are reproduced; weights of documents, which multiply gains, are not",
    ),
)  # fmt: skip
_RECSYS = Rule(
    "recsys", gain="binary", ties="input", missing="value",
    tool=(
        "RePlay, RecPack, Cornac, implicit, RecBole, recommenders, sentence-transformers and pyvespa agree "
        "on it"
    ),
    source="Tamm, Damdinov and Vasilev, arXiv 2206.12858",
    caveats=("they differ in ties and in the users that they leave out; each also has its own convention",),
)  # fmt: skip

DECLARED: tuple[Rule, ...] = (
    _SKLEARN,
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
    ),
    _PYTREC_EVAL.replace(
        name="ir_measures", missing="value", tool="ir_measures 0.4.3",
        source="ir_measures/providers/pytrec_eval_provider.py",
        caveats=(
            "nDCG goes to pytrec_eval; a judged query that the run lacks counts as 0",
            ("nDCG(dcg='exp-log2') goes to gdeval.pl, whose values, rounded to 5 decimals, are averaged: "
            "conventions['gdeval']"),
        ),
    ),
    _RANX,
    _RANX.replace(name="ranx_burges", gain="exp2", source="ranx/metrics/ndcg.py ndcg_burges"),
    _LIGHTGBM,
    _XGBOOST,
    _XGBOOST.replace(name="xgboost-", empty=0.0,
        caveats=("ndcg@n- : queries without a relevant document count as 0", *_XGBOOST.caveats[::2])),
    _CATBOOST,
    _CATBOOST.replace(name="catboost_exp", gain="exp2", caveats=("type=Exp", *_CATBOOST.caveats[1:])),
    _CATBOOST.replace(name="catboost_position", discount="reciprocal",
        caveats=("denominator=Position", *_CATBOOST.caveats[1:])),
    _CATBOOST.replace(
        name="catboost_exp_position", gain="exp2", discount="reciprocal",
        caveats=("type=Exp, denominator=Position", *_CATBOOST.caveats[1:])
    ),
    _TF_RANKING,
    _TF_RANKING.replace(
        name="rax", ties="input", weights="ignored", tool="Rax 0.4.0",
        source="rax/_src/metrics.py ndcg_metric",
        caveats=(
            ("it multiplies gains by weights of documents; weights that are equal within a query "
            "have no effect"), "with key= it shuffles ties"),
    ),
    _SKLEARN.replace(
        name="torchmetrics", score_dtype="float32", weights="ignored", tolerance=1e-6,
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
        tool="RankLib, read", source="ciir/umass/edu/metric/NDCGScorer.java",
        caveats=(("with -qrel the ideal ranking holds all judged documents: "
            "conventions['ranklib'].replace(ideal='judged')"),),
    ),
    _RECSYS.replace(
        name="spark", tool="Spark 4.3.0", source="mllib/evaluation/RankingMetrics.scala ndcgAt",
        caveats=("binary: PySpark silently drops a column of relevance",
            "the discount has a natural logarithm; the base cancels in the ratio"),
    ),
    Rule(
        "elasticsearch", gain="exp2", ideal="judged_returned", ties="input", missing="value",
        unjudged="value",
        tool="Elasticsearch, read", source="index/rankeval/DiscountedCumulativeGain.java",
        caveats=(
            ("the ideal ranking has as many documents as were returned, so a short list is compared with "
            "a short ideal"),
            "unknown_doc_rating is not reproduced: it adds gain that the ideal ranking does not have",
        ),
    ),
    Rule(
        "opensearch", gain="exp2", ties="input", rounding=Rounding(2, "stored"), tolerance=1e-9,
        tool="OpenSearch search-relevance, read", source="metrics/calculator/Evaluation.java",
        caveats=("values are stored with 2 decimals", "queries without results store nothing"),
    ),
    Rule(
        "quepid", gain="exp2", ideal="judged_uncut", ties="input", missing="value",
        tool="Quepid nDCG@10, read", source="db/scorers/ndcg@10.js",
        caveats=(("the ideal ranking has no cutoff, so a perfect list stays below 1 if more than k documents "
            "are rated"),),
    ),
    Rule(
        "quepid_cut", gain="exp2", ties="input", missing="value", tool="Quepid NDCG_CUT@10, read",
        source="db/scorers/ndcg_cut@10.js"
    ),
    Rule(
        "rectools", gain="binary", ideal="full", ties="input", missing="value", unjudged="skip_irrelevant",
        tool="RecTools 0.19.0", source="rectools/metrics/ranking.py NDCG",
        caveats=("the ideal ranking has k relevant items even for users who have fewer",
            "users without relevant items are left out"),
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

REFUSED = {
    "sklearn_ignore_ties": (
        "ignore_ties=True uses NumPy's default sort, which is unstable: "
        'the order of ties depends on the processor. Use "sklearn", which averages over ties, '
        'or ties="input".'
    ),
    "tf_ranking_draw": (
        "TF-Ranking shuffles ties without a seed, so each run differs. "
        '"tf_ranking" is the exact expected value.'
    ),
    "torch_sort": (
        "torch.sort and torch.topk do not define the order of ties in lists of more than 16. "
        '"allrank" refuses data where that matters; ties="average" is the expected value.'
    ),
    "spark_graded": (
        "the 3-tuple form of Spark's ndcgAt uses the labels in their given order as the ideal ranking, "
        "so its value depends on that order and can exceed 1. "
        'Use "burges2005" for exponential gain, or "spark" for the binary form.'
    ),
    "trec_eval_close_gains": (
        "trec_eval casts differences of gains to int, so gains that differ by less than 1 end up in any "
        'order. Use "trec_eval".'
    ),
    "cwl_eval": (
        "the NDCG-k of cwl_eval is a scaled DCG that is not divided by an ideal; evaluate DCG instead."
    ),
    "elasticsearch_unknown_doc_rating": (
        'unjudged documents get a rating that the ideal ranking does not have. Use "elasticsearch".'
    ),
}

_RULES = {rule.name: rule for rule in DECLARED}


def rule_named(name: str) -> Rule:
    """Raise `ConventionError`, with the reason, for a tool that is unknown or cannot be reproduced."""
    if name in _RULES:
        return _RULES[name]
    if name in REFUSED:
        raise ConventionError(f'"{name}" cannot be reproduced: {REFUSED[name]}')
    raise ConventionError(
        f'no convention is called "{name}"; there are: '
        f"{', '.join(_RULES)}.{suggest(str(name), [*_RULES, *REFUSED])}"
    )


def rule_of(convention: object) -> Rule:
    """Return the rule with this name, or the rule itself."""
    if isinstance(convention, Rule):
        return convention
    if isinstance(convention, str):
        return rule_named(convention)
    raise InputTypeError(
        f"convention is a {type(convention).__name__}; wanted a name, as in convention='trec_eval', "
        "or a Convention"
    )
