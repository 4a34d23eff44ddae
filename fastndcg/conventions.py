"""Anybody's number: how each established tool computes its nDCG, by name, as data.

    fn.conventions["lightgbm"]                                    what LightGBM does
    fn.nDCG(like="lightgbm") @ 10                                 its parameters: nDCG(gain='exp2', ties='input', ...)@10
    fn.evaluate(rankings, "nDCG@10", convention="trec_eval")      its number: order of tied documents, rounding, mean and all
    fn.compare_conventions(rankings, k=10)                        everybody's number, and which choices move it
    fn.explain_conventions(rankings, "sklearn", "lightgbm", k=10) from one number to the other, one choice at a time

A convention is one declaration below; a new one is data, not code. What a measure's parameters can say (gain, discount,
ideal, ties, empty, rel) is in `Convention.measure`. The rest belongs to a whole evaluation: scores narrowed to float32, ties
broken by document id, queries left out, rounding, and what weights do to the mean.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from dataclasses import replace as replaced
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg import measures, scoring, statistics
from fastndcg.errors import ConventionError, InputError, InputTypeError, MeasureError, suggest
from fastndcg.measures import Measure, as_measure, as_measures, nDCG
from fastndcg.rankings import Rankings
from fastndcg.scores import Scores
from fastndcg.scoring import ideals

__all__ = [
    "Convention",
    "ConventionError",
    "Conventions",
    "Rounding",
    "compare_conventions",
    "conventions",
    "explain_conventions",
]

Float64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]


class Rounding(NamedTuple):
    """Decimals of the reported values. Printed ones are rounded after the mean is taken, stored ones before it."""

    decimals: int
    when: str  # "printed" or "stored"


TIES = {
    "average": "expected value over all orders of tied documents",
    "input": "tied documents in input order",
    "worst": "lower gain first",
    "best": "higher gain first",
    "docid_desc": "by falling document id, compared as UTF-8 text",
    "docid_asc": "by rising document id, compared as UTF-8 text",
    "item_desc": "by falling document id, numbers compared as numbers",
    "numba_argsort": "as Numba's np.argsort(-scores) leaves them: input order up to 15 documents, scrambled but repeatable above",
    "input_to_16": "input order up to 16 documents; above, torch.sort leaves the order of ties to chance",
    "unspecified": "left to chance",
}
QUERIES = {
    "value": "as any other query",
    "skip": "left out",
    "skip_irrelevant": "left out, and so is a query where no judged document gains anything",
}
WEIGHTS = {
    "weighted": "weighted mean",
    "ignored": "plain mean; there are no weights",
    "lightgbm": "weighted sum over the sum of weights, but an empty query adds its value times 1, whatever its weight",
    "xgboost": "as lightgbm; a mean above 1 ends the program",
    "tf_ranking": "weighted mean, where an empty query has the mean weight of the others",
}


@dataclass(frozen=True)
class Convention:
    """How one tool computes nDCG: immutable, hashable, comparable field by field.

    >>> conventions["lightgbm"].measure(10)
    nDCG(gain='exp2', ties='input', ideal='scored', empty=1)@10
    >>> conventions["lightgbm"].replace(gain="linear").measure(10)
    nDCG(ties='input', ideal='scored', empty=1)@10
    """

    name: str
    _: KW_ONLY
    gain: Any = "linear"
    discount: Any = "log2"
    ideal: str = "judged"
    ties: str = "average"  # one of TIES
    empty: float | str = 0.0  # value of a query whose IDCG is 0
    rel: float | None = None  # grades below it gain nothing
    score_dtype: str | None = None  # scores are narrowed to it before they are compared
    rounding: Rounding | None = None
    missing: str = "skip"  # a judged query without returned documents: one of QUERIES
    unjudged: str = "skip"  # a returned query without judged documents: one of QUERIES
    weights: str = "ignored"  # one of WEIGHTS
    default_cutoff: int | None = None  # cutoff where none is named
    tolerance: float = 1e-9  # largest difference to the tool's own value of a query that is promised
    tool: str = ""  # name and version that was run, or read
    source: str = ""  # where the tool computes it
    caveats: tuple[str, ...] = ()

    def measure(self, cutoff: int | None = None) -> Measure:
        """nDCG with this convention's parameters: all of it that a measure can say."""
        measure = nDCG(
            gain=self.gain,
            discount=self.discount,
            ideal=self.ideal,
            ties=self.measure_ties,
            empty=self.empty,
            rel=self.rel,
        )
        cutoff = self.default_cutoff if cutoff is None else cutoff
        return measure if cutoff is None else measure @ cutoff

    @property
    def measure_ties(self) -> str:
        """The `ties` of the measure: "input" for the rules that order the rows first."""
        return self.ties if self.ties in ("average", "worst", "best") else "input"

    @property
    def beyond_measure(self) -> dict[str, Any]:
        """What the tool does that no parameter of a measure says; `evaluate(..., convention=)` does it too.

        >>> conventions["trec_eval"].beyond_measure
        {'ties': 'docid_desc', 'rounding': Rounding(decimals=4, when='printed'), 'missing': 'skip', 'unjudged': 'skip', 'weights': 'ignored'}
        """
        ties = {"ties": self.ties} if self.ties not in ("average", "worst", "best", "input") else {}
        rules = {
            name: getattr(self, name)
            for name in ("score_dtype", "rounding", "missing", "unjudged", "weights")
        }
        return ties | {name: value for name, value in rules.items() if value is not None}

    def replace(self, **changes: Any) -> Convention:
        """This convention with other values of the named fields."""
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
                    f"{name}={getattr(self, name)!r} is not known to conventions: {name} is one of {', '.join(map(repr, known))}."
                    f"{suggest(str(getattr(self, name)), known)}"
                )
        if self.score_dtype not in (None, "float32"):
            raise MeasureError(
                f"score_dtype={self.score_dtype!r} is not known to conventions; wanted None, as the scores are, or 'float32'"
            )
        # one canonical, hashable form of each, as measures have it
        measure = nDCG(
            gain=self.gain, discount=self.discount, ideal=self.ideal, empty=self.empty, rel=self.rel
        )
        for name in ("gain", "discount", "empty"):
            object.__setattr__(self, name, measure.params[name])


class Conventions(Mapping[str, Convention]):
    """All conventions by name; immutable. Asked for what cannot be reproduced, it says why.

    >>> conventions["catboost"].ties
    'worst'
    """

    def __init__(self, known: Iterable[Convention], refused: Mapping[str, str]) -> None:
        self._known = {convention.name: convention for convention in known}
        self._refused = dict(refused)

    @property
    def refused(self) -> dict[str, str]:
        """What tools do that cannot be reproduced, and the reason."""
        return dict(self._refused)

    def __getitem__(self, name: str) -> Convention:
        if name in self._known:
            return self._known[name]
        if name in self._refused:
            raise ConventionError(f'"{name}" cannot be reproduced: {self._refused[name]}')
        raise ConventionError(
            f'no convention is called "{name}"; there are: {", ".join(self._known)}.{suggest(str(name), [*self._known, *self._refused])}'
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return "\n".join(f"{name:22} {convention.measure()}" for name, convention in self.items())


def as_convention(convention: object) -> Convention:
    """The convention of a name, or the `Convention` itself."""
    if isinstance(convention, Convention):
        return convention
    if isinstance(convention, str):
        return conventions[convention]
    raise InputTypeError(
        f"convention is a {type(convention).__name__}; wanted a name, as in convention='trec_eval', or a Convention"
    )


# ---- declarations ----

_TREC_CAVEATS = (
    "documents with equal scores are ordered by falling document id, and the run's rank column is ignored",
    "trec_eval sorts gains by a difference cast to int, so that gains closer than 1 (-m ndcg.1=0.9,2=0.3) come out wrong; not reproduced",
)
_SKLEARN = Convention(
    "sklearn", ideal="scored", ties="average", weights="weighted",
    tool="scikit-learn 1.9.1", source="sklearn/metrics/_ranking.py ndcg_score",
    caveats=(
        "linear gain, where many expect 2^grade - 1",
        "rows of one document and negative grades raise there",
        "unsigned scores wrap around there (1.9.1): np.uint8 scores give wrong values; cast them to float",
    ),
)  # fmt: skip
_TREC_EVAL = Convention(
    "trec_eval", ties="docid_desc", rel=0, rounding=Rounding(4, "printed"),
    tool="trec_eval 10.0", source="m_ndcg.c, m_ndcg_cut.c, form_res_rels.c",
    caveats=(*_TREC_CAVEATS, "10.0 without -c ends with exit code 4 where the run lacks a judged query; such queries are left out here"),
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
_RANX = Convention(
    "ranx", ties="numba_argsort", rel=1, missing="value",
    tool="ranx 0.3.21", source="ranx/metrics/ndcg.py, ranx/data_structures/common.py",
    caveats=(
        "with more than 15 documents the order of ties is that of Numba's unstable quicksort, and depends on the order of the rows",
        "a query without returned documents raises there, unless make_comparable=True, which counts it as 0",
        "grades below 1 are dropped, fractions of them too",
    ),
)  # fmt: skip
_LIGHTGBM = Convention(
    "lightgbm", gain="exp2", ideal="scored", ties="input", empty=1.0, weights="lightgbm",
    tool="LightGBM 4.7.0", source="src/metric/dcg_calculator.cpp, rank_metric.hpp",
    caveats=(
        "queries without a relevant document count as 1",
        "with query weights such a query adds 1, not its weight, so that the mean can exceed 1",
        "ties keep the order of the rows, whatever the issue tracker says",
        "label_gain: conventions['lightgbm'].replace(gain=[0, 1, 3, 7])",
    ),
)  # fmt: skip
_XGBOOST = _LIGHTGBM.replace(
    name="xgboost", score_dtype="float32", weights="xgboost", default_cutoff=32,
    tool="XGBoost 3.2.0", source="src/metric/rank_metric.cc EvalNDCG, src/common/ranking_utils.h",
    caveats=(
        "ndcg without @ is cut at 32, silently",
        "queries without a relevant document count as 1, and with group weights add 1, not their weight",
        "ndcg_exp_gain=false: conventions['xgboost'].replace(gain='linear')",
    ),
)  # fmt: skip
_CATBOOST = Convention(
    "catboost", ideal="scored", ties="worst", empty=1.0, weights="weighted",
    tool="CatBoost 1.2.10", source="catboost/libs/metrics/dcg.cpp, doc_comparator.h",
    caveats=("type=Base, denominator=LogPosition are its defaults", "targets are float32", "of tied documents the lower target comes first"),
)  # fmt: skip
_TF_RANKING = Convention(
    "tf_ranking", gain="exp2", ideal="scored", ties="average", score_dtype="float32", weights="tf_ranking", tolerance=1e-6,
    tool="TF-Ranking 0.5.5", source="python/metrics_impl.py NDCGMetric",
    caveats=(
        "it shuffles ties without a seed; this is the exact expectation of what it draws",
        "weights of single documents, which multiply gains there, are not reproduced; weights of queries are",
    ),
)  # fmt: skip
_RECSYS = Convention(
    "recsys", gain="binary", ties="input", missing="value",
    tool="RePlay, RecPack, Cornac, implicit, RecBole, recommenders, sentence-transformers and pyvespa agree on it",
    source="Tamm, Damdinov and Vasilev, arXiv 2206.12858",
    caveats=("they differ in ties and in which users count; each has a name of its own",),
)  # fmt: skip

_DECLARED = (
    _SKLEARN,
    _TREC_EVAL,
    _TREC_EVAL.replace(
        name="trec_eval_c", missing="value", tool="trec_eval 10.0 -c",
        caveats=(*_TREC_CAVEATS, "-c: a judged query that the run lacks counts as 0"),
    ),
    _TREC_EVAL_9,
    _PYTREC_EVAL,
    Convention(
        "gdeval", gain="exp2", ties="docid_desc", empty="skip", rel=0, rounding=Rounding(5, "printed"),
        tool="gdeval.pl of the TREC Web track", source="gdeval.pl, as shipped with ir_measures 0.4.3",
        caveats=("queries without a relevant document are left out", "grades above 4 and queries that are no number end the program there"),
    ),
    _PYTREC_EVAL.replace(
        name="ir_measures", missing="value", tool="ir_measures 0.4.3", source="ir_measures/providers/pytrec_eval_provider.py",
        caveats=(
            "nDCG goes to pytrec_eval; a judged query that the run lacks counts as 0",
            "nDCG(dcg='exp-log2') goes to gdeval.pl, whose values of 5 decimals are averaged: conventions['gdeval']",
        ),
    ),
    _RANX,
    _RANX.replace(name="ranx_burges", gain="exp2", source="ranx/metrics/ndcg.py ndcg_burges"),
    _LIGHTGBM,
    _XGBOOST,
    _XGBOOST.replace(name="xgboost-", empty=0.0, caveats=("ndcg@n- : queries without a relevant document count as 0", *_XGBOOST.caveats[::2])),
    _CATBOOST,
    _CATBOOST.replace(name="catboost_exp", gain="exp2", caveats=("type=Exp", *_CATBOOST.caveats[1:])),
    _CATBOOST.replace(name="catboost_position", discount="reciprocal", caveats=("denominator=Position", *_CATBOOST.caveats[1:])),
    _CATBOOST.replace(
        name="catboost_exp_position", gain="exp2", discount="reciprocal", caveats=("type=Exp, denominator=Position", *_CATBOOST.caveats[1:])
    ),
    _TF_RANKING,
    _TF_RANKING.replace(
        name="rax", ties="input", weights="ignored", tool="Rax 0.4.0", source="rax/_src/metrics.py ndcg_metric",
        caveats=("weights of documents multiply gains there; equal ones within a query change nothing", "with key= it shuffles ties"),
    ),
    _SKLEARN.replace(
        name="torchmetrics", score_dtype="float32", weights="ignored", tolerance=1e-6,
        tool="torchmetrics 1.9.0", source="torchmetrics/functional/retrieval/ndcg.py, torchmetrics/retrieval/ndcg.py",
        caveats=("its sums are float32", "the functional form takes a matrix for a single query"),
    ),
    Convention(
        "ignite", gain="exp2", ideal="scored", ties="input", empty="skip", rel=1, score_dtype="float32", tolerance=1e-6,
        tool="pytorch-ignite 0.5.5", source="ignite/metrics/rec_sys/ndcg.py",
        caveats=("grades below relevance_threshold=1 gain nothing", "queries without a relevant document are left out (ignore_zero_hits=True)"),
    ),
    Convention(
        "allrank", gain="exp2", ideal="scored", ties="input_to_16", empty=1.0, score_dtype="float32", tolerance=1e-6,
        tool="allRank 1.4.3", source="allrank/models/metrics.py ndcg",
        caveats=("the order of ties in longer lists is left to torch.sort, so that those are refused",),
    ),
    Convention(
        "ranklib", gain="exp2", ideal="scored", ties="input",
        tool="RankLib, read", source="ciir/umass/edu/metric/NDCGScorer.java",
        caveats=("with -qrel the ideal is made of all judged documents: conventions['ranklib'].replace(ideal='judged')",),
    ),
    _RECSYS.replace(
        name="spark", tool="Spark 4.3.0", source="mllib/evaluation/RankingMetrics.scala ndcgAt",
        caveats=("binary: PySpark drops a column of relevance silently", "the discount's logarithm is the natural one, which the ratio cancels"),
    ),
    Convention(
        "elasticsearch", gain="exp2", ideal="judged_returned", ties="input", missing="value", unjudged="value",
        tool="Elasticsearch, read", source="index/rankeval/DiscountedCumulativeGain.java",
        caveats=(
            "the ideal has as many documents as were returned, so that a short list is judged by a short ideal",
            "unknown_doc_rating, which gains but is not in the ideal, is not reproduced",
        ),
    ),
    Convention(
        "opensearch", gain="exp2", ties="input", rounding=Rounding(2, "stored"), tolerance=1e-9,
        tool="OpenSearch search-relevance, read", source="metrics/calculator/Evaluation.java",
        caveats=("values are stored with 2 decimals", "queries without results store nothing"),
    ),
    Convention(
        "quepid", gain="exp2", ideal="judged_uncut", ties="input", missing="value",
        tool="Quepid nDCG@10, read", source="db/scorers/ndcg@10.js",
        caveats=("the ideal is not cut, so that a perfect list stays below 1 where more than k documents are rated",),
    ),
    Convention(
        "quepid_cut", gain="exp2", ties="input", missing="value", tool="Quepid NDCG_CUT@10, read", source="db/scorers/ndcg_cut@10.js"
    ),
    Convention(
        "rectools", gain="binary", ideal="full", ties="input", missing="value", unjudged="skip_irrelevant",
        tool="RecTools 0.19.0", source="rectools/metrics/ranking.py NDCG",
        caveats=("the ideal is k relevant items for every user, however few there are", "users without relevant items are left out"),
    ),
    _RECSYS.replace(
        name="rectools_achievable", empty="skip", tool="RecTools 0.19.0", source="rectools/metrics/ranking.py NDCG(divide_by_achievable=True)",
        caveats=("users without relevant items are left out",),
    ),
    _RECSYS,
    _RECSYS.replace(
        name="replay", ties="item_desc", empty="skip", tool="RePlay 0.22.0", source="replay/metrics/ndcg.py",
        caveats=(
            "pandas, Polars and Spark input orders ties by falling item id; a dict of lists keeps its order",
            "users without relevant items are no ground truth, and left out",
        ),
    ),
    _RECSYS.replace(
        name="recpack", ties="unspecified", empty="skip", tool="RecPack 0.3.6", source="recpack/metrics/dcg.py NDCGK",
        caveats=("the order of ties in sparse scores is not specified: such data is refused", "users without truth are left out"),
    ),
    _RECSYS.replace(
        name="cornac", empty="skip", tool="Cornac 2.2.1", source="cornac/metrics/ranking.py NDCG",
        caveats=("users without positives are left out by its evaluator",),
    ),
    _RECSYS.replace(
        name="implicit", empty="skip", tool="implicit 0.7.3", source="implicit/evaluation.pyx ndcg_at_k",
        caveats=("recommended lists are taken in their order", "users without test items are left out"),
    ),
    _RECSYS.replace(
        name="recbole", ties="unspecified", empty="skip", score_dtype="float32", tool="RecBole 1.2.1", source="recbole/evaluator/metrics.py NDCG",
        caveats=("torch.topk leaves the order of ties to chance: such data is refused",),
    ),
    _RECSYS.replace(
        name="recommenders", empty="skip", tool="recommenders 1.2.1", source="recommenders/evaluation/python_evaluation.py ndcg_at_k",
        caveats=("score_type='binary'; truth users without predictions count as 0",),
    ),
    _RECSYS.replace(
        name="sentence_transformers", ties="docid_asc", empty="skip",
        tool="sentence-transformers 6.2.0", source="sentence_transformer/evaluation/information_retrieval.py compute_metrics",
        caveats=("ties are ordered by rising corpus id, the opposite of trec_eval", "queries without relevant documents are dropped"),
    ),
    _RECSYS.replace(
        name="pyvespa", empty="skip", tool="pyvespa 1.2.9", source="vespa/evaluation/_base.py",
        caveats=("grades are ignored even where they are given", "hits are taken in the server's order"),
    ),
    Convention(
        "elliot", gain="exp2", rel=1, ties="input", empty="skip",
        tool="Elliot, read", source="elliot/evaluation/metrics/accuracy/ndcg/ndcg.py",
        caveats=("threshold 1: gain 2^(grade - threshold + 1) - 1; for another threshold t give a mapping as gain, and rel=t",),
    ),
    Convention(
        "lenskit", discount="jarvelin", ties="input", empty="skip", missing="value",
        tool="LensKit 2025.8.1", source="lenskit/metrics/ranking/_dcg.py NDCG(gain=...)",
        caveats=("ranks 1 and 2 are both undiscounted", "LogRankWeight(offset=1) gives log2: conventions['lenskit'].replace(discount='log2')"),
    ),
    Convention(
        "lenskit_binary", gain="binary", discount="jarvelin", ties="input", empty="skip", missing="value",
        tool="LensKit 2025.8.1", source="lenskit/metrics/ranking/_dcg.py NDCG()",
        caveats=("every test item is relevant there, whatever its grade; here those of grade 1 and more",),
    ),
    Convention(
        "jarvelin2002", discount="jarvelin", ties="input", empty="skip",
        tool="Järvelin and Kekäläinen, TOIS 20(4), 2002", source="doi.org/10.1145/582415.582418",
        caveats=("base 2, so that only ranks 1 and 2 are undiscounted", "the paper also averages nDCG over the ranks 1 to k"),
    ),
    Convention(
        "burges2005", gain="exp2", ideal="scored", ties="input", empty="skip",
        tool="Burges et al., ICML 2005", source="doi.org/10.1145/1102351.1102363",
        caveats=("1/log(1 + rank), whose base the ratio cancels",),
    ),
)  # fmt: skip

_REFUSED = {
    "sklearn_ignore_ties": (
        "ignore_ties=True sorts with NumPy's unstable default, whose order of ties depends on the processor. "
        'Use "sklearn", which averages over ties, or ties="input".'
    ),
    "tf_ranking_draw": 'TF-Ranking shuffles ties without a seed, so that no run repeats another. "tf_ranking" is the exact expectation.',
    "torch_sort": (
        "torch.sort and torch.topk leave the order of ties to chance in lists of more than 16. "
        '"allrank" refuses data where that matters; ties="average" is the expectation.'
    ),
    "spark_graded": (
        "the 3-tuple form of Spark's ndcgAt takes labels in the order given for the ideal ranking, so that its value depends on "
        'that order and can exceed 1. Use "burges2005" for exponential gain, or "spark" for the binary form.'
    ),
    "trec_eval_close_gains": 'trec_eval compares gains by a difference cast to int, so that gains closer than 1 come out in any order. Use "trec_eval".',
    "cwl_eval": "the NDCG-k of cwl_eval is a scaled DCG that is not divided by an ideal; evaluate DCG instead.",
    "elasticsearch_unknown_doc_rating": (
        'unjudged documents gain a rating there that the ideal does not have. Use "elasticsearch".'
    ),
}  # fmt: skip

conventions = Conventions(_DECLARED, _REFUSED)


# ---- one data set as one tool sees it ----


def _prepared(rankings: Rankings, convention: Convention) -> Rankings:
    """Scores in the tool's precision, and rows in its order of ties."""
    if convention.score_dtype == "float32" and rankings.scores.dtype != np.float32:
        with np.errstate(over="ignore"):  # beyond its range the tools have infinity too
            rankings = _with_rows(rankings, None, rankings.scores.astype(np.float32))
    if convention.ties in ("average", "input", "worst", "best"):
        return rankings
    if convention.ties == "numba_argsort":
        from fastndcg.kernels.rows import argsort_falling

        rows = argsort_falling(rankings.offsets, np.ascontiguousarray(rankings.scores, np.float64))
        return _with_rows(rankings, rows, rankings.scores)
    query = np.repeat(np.arange(rankings.n_queries), rankings.lengths)
    if convention.ties in ("input_to_16", "unspecified"):
        _refuse_ties(rankings, convention, query, 16 if convention.ties == "input_to_16" else 0)
        return rankings
    if rankings.doc_ids is None:
        _refuse_ties(rankings, convention, query, 0)
        return rankings
    place = _places_of_ids(rankings.doc_ids, as_text=convention.ties != "item_desc")
    rows = np.lexsort((place if convention.ties == "docid_asc" else -place, query))
    return _with_rows(rankings, rows, rankings.scores)


def _with_rows(rankings: Rankings, rows: Int64 | None, scores: npt.NDArray[Any]) -> Rankings:
    """The rankings with other scores, and each query's rows in another order. It is only scored: ids stay behind."""
    relevance, is_judged = rankings.relevance, rankings.is_judged
    if rows is not None:
        relevance, scores = relevance[rows], scores[rows]
        is_judged = None if is_judged is None else is_judged[rows]
    return Rankings.from_offsets(
        rankings.offsets, relevance, scores, judged=rankings.judged, is_judged=is_judged, query_ids=rankings.query_ids,
        doc_ids=rankings.doc_ids if rows is None else None,
    )  # fmt: skip


def _places_of_ids(ids: pa.Array | pa.ChunkedArray, *, as_text: bool) -> Int64:
    """Place of each id among the distinct ids in rising order; text is ordered by its UTF-8 bytes, as strcmp does."""
    import pyarrow.compute as pc

    distinct = pc.unique(ids)
    if pa.types.is_dictionary(distinct.type):
        distinct = distinct.cast(distinct.type.value_type)
    comparable = (
        distinct.cast(pa.string()).cast(pa.binary())
        if as_text or pa.types.is_string(distinct.type) or pa.types.is_large_string(distinct.type)
        else distinct
    )
    places = np.empty(len(distinct), np.int64)
    places[pc.sort_indices(comparable).to_numpy()] = np.arange(len(distinct))
    column = ids.cast(ids.type.value_type) if pa.types.is_dictionary(ids.type) else ids
    of_rows: Int64 = places[pc.index_in(column, distinct).to_numpy(zero_copy_only=False)]
    return of_rows


def _refuse_ties(rankings: Rankings, convention: Convention, query: Int64, longest: int) -> None:
    """Refuse data where documents of different gains are tied in lists of more than `longest` documents."""
    gains = ideals.gains(convention.measure(), rankings.relevance)
    if rankings.is_judged is not None:
        gains = np.where(rankings.is_judged, gains, 0.0)
    order = np.lexsort((gains, rankings.scores, query))
    by_query, scores, gains = query[order], rankings.scores[order], gains[order]
    tied = (by_query[1:] == by_query[:-1]) & (scores[1:] == scores[:-1]) & (gains[1:] != gains[:-1])
    tied &= rankings.lengths[by_query[1:]] > longest
    if not tied.any():
        return
    where = f"query {rankings.name_of(int(by_query[1:][tied][0]))} has tied documents of different gains"
    if convention.ties in ("docid_desc", "docid_asc", "item_desc"):
        raise ConventionError(
            f"{convention.name} orders ties by document id, and these rankings have none, but {where}. Give doc_ids= (doc_id= of a reader)."
        )
    raise ConventionError(
        f"{convention.name} leaves the order of ties to chance{f' in lists of more than {longest}' if longest else ''}, and {where}: "
        f'its value cannot be reproduced. Use its measure with another rule, as in nDCG(like="{convention.name}", ties="average").'
    )


def _left_out(rankings: Rankings, convention: Convention) -> Bools:
    """Queries that the tool does not report."""
    returned = rankings.lengths > 0
    judged = np.diff(ideals.pool(rankings)[0]) > 0
    if convention.unjudged == "skip_irrelevant":
        offsets, relevance = ideals.pool(rankings)
        gains = np.concatenate([[0], np.cumsum(ideals.gains(convention.measure(), relevance) > 0)])
        judged = np.diff(gains[offsets]) > 0
    out = ~returned & ~judged
    if convention.missing != "value":
        out = out | ~returned
    return out if convention.unjudged == "value" else out | ~judged


# ---- one tool's values and their mean ----


class _Reported(NamedTuple):
    """Values of one measure: what the tool reports for each query, NaN where nothing, and what it takes the mean of."""

    values: Float64
    averaged: Float64
    empty: Bools  # there is no ideal gain
    counted: Bools  # enters the mean

    def part(self, part: Any) -> _Reported:
        return _Reported(*(column[part] for column in self))


def _reported(convention: Convention, measure: Measure, values: Float64, left_out: Bools) -> _Reported:
    """From the measure's values, NaN for empty queries, to what the tool reports."""
    empty = np.isnan(values)
    instead = math.nan if isinstance(measure.empty, str) else measure.empty
    values = np.where(left_out, math.nan, np.where(empty, instead, values))
    counted = ~left_out & ~(empty & (measure.empty == "skip"))
    shown = values
    if convention.rounding is not None:
        shown = np.array(
            [_rounded(value, convention.rounding) for value in values.tolist()], dtype=np.float64
        )
    stored = convention.rounding is not None and convention.rounding.when == "stored"
    return _Reported(shown, shown if stored else values, empty & ~left_out, counted)


def _rounded(value: float, rounding: Rounding) -> float:
    if math.isnan(value):
        return value
    if rounding.when == "stored":  # Java's Math.round(value * 100) / 100
        return float(math.floor(value * 10**rounding.decimals + 0.5) / 10**rounding.decimals)
    return float(f"{value:.{rounding.decimals}f}")


class _Share(NamedTuple):
    """Exact sums over some of the queries that enter a mean."""

    queries: int = 0
    undefined: int = 0  # NaN among the values, which are in none of the sums
    total: Fraction = Fraction(0)
    weights: Fraction = Fraction(0)  # 0 where there are no weights, as is the next
    weighted: Fraction = Fraction(0)

    @classmethod
    def of(cls, values: Float64, weight: Float64 | None) -> _Share:
        queries, defined = len(values), ~np.isnan(values)
        if not defined.all():
            values, weight = values[defined], None if weight is None else weight[defined]
        total, undefined = statistics.exact_sum(values), queries - len(values)
        if weight is None:
            return cls(queries, undefined, total)
        products = statistics.exact_sum_of_products(values, weight)
        return cls(queries, undefined, total, statistics.exact_sum(weight), products)

    def merged(self, other: _Share) -> _Share:
        return _Share(*map(operator.add, self, other))


class MeanSums(NamedTuple):
    """Exact sums that a mean is made of, by any rule for weights; those of parts merge into exactly those of the whole.

    >>> queries = Rankings.from_lists([[1, 0], [0, 0], [2, 1]], [[0.1, 0.2], [0.3, 0.4], [0.6, 0.6]], weight=[0.5, 2, 1])
    >>> first, rest = (evaluate_by_convention(part, "nDCG", "tf_ranking") for part in (queries[:1], queries[1:]))
    >>> merged = first.mean_sums(0).merged(rest.mean_sums(0))
    >>> merged.mean(first.convention) == evaluate_by_convention(queries, "nDCG", "tf_ranking").mean()["nDCG"]
    True
    """

    valued: _Share  # queries with an ideal gain; those of weight 0 change no mean, and are left out
    empty: _Share
    weightless: _Share  # empty, and of weight 0
    has_weights: bool

    @classmethod
    def of(cls, convention: Convention, reported: _Reported, weight: Float64 | None) -> MeanSums:
        values, empty = reported.averaged[reported.counted], reported.empty[reported.counted]
        if weight is None or convention.weights == "ignored":
            return cls(
                _Share.of(values[~empty], None), _Share.of(values[empty], None), _Share(), has_weights=False
            )
        weight = weight[reported.counted]
        weighs = weight > 0
        valued, empty_with_weight, weightless = (
            _Share.of(values[each], weight[each])
            for each in (~empty & weighs, empty & weighs, empty & ~weighs)
        )
        return cls(valued, empty_with_weight, weightless, has_weights=True)

    def merged(self, other: MeanSums) -> MeanSums:
        """Sums over the queries of both."""
        return MeanSums(
            self.valued.merged(other.valued),
            self.empty.merged(other.empty),
            self.weightless.merged(other.weightless),
            self.has_weights,
        )

    def mean(self, convention: Convention) -> float:
        """The mean as the tool takes it. Raises `ConventionError` where the tool ends instead."""
        valued, empty, weightless = self[:3]
        total, divisor = valued.weighted + empty.weighted, valued.weights + empty.weights
        if not self.has_weights:
            total, divisor = valued.total + empty.total, Fraction(valued.queries + empty.queries)
        elif convention.weights == "tf_ranking":
            # the tool's mean weight is a float64
            usual = Fraction(float(valued.weights / valued.queries)) if valued.queries else Fraction(1)
            total, divisor = (
                valued.weighted + usual * empty.total,
                valued.weights + usual * empty.queries,
            )
        elif convention.weights in ("lightgbm", "xgboost"):
            total = valued.weighted + empty.total + weightless.total
        undefined = valued.undefined or empty.undefined or weightless.undefined
        mean = float(total / divisor) if divisor and not undefined else math.nan
        if convention.weights == "xgboost" and mean > 1:
            if mean > 1 + 1e-6:
                raise ConventionError(
                    f"{convention.name} ends here, because empty queries count 1 whatever their weight, which makes its mean {mean:g}. "
                    'Use weights of 1 and more, or "lightgbm", which reports such means.'
                )
            mean = 1.0
        printed = convention.rounding is not None and convention.rounding.when == "printed"
        return _rounded(mean, convention.rounding) if printed and convention.rounding else mean


class ConventionScores(Scores):
    """`Scores` of one convention: values, rounding and means are the tool's.

    Attributes, beside those of `Scores`
    ----------
    convention : Convention
    resolved : tuple of Measure, (n_measures,)
        What was computed for each of `measures`, all parameters explicit.
    """

    def __init__(
        self,
        convention: Convention,
        measures: tuple[Measure, ...],
        resolved: tuple[Measure, ...],
        reported: Sequence[_Reported],
        queries: Rankings | pa.Table,
        weight: Float64 | None,
    ) -> None:
        values = np.stack([each.values for each in reported])
        empty = np.array([each.empty.sum() for each in reported], np.int64)
        super().__init__(measures, values, empty, queries, weight)
        self.convention = convention
        self.resolved = resolved
        self._reported = reported

    def _of(self, queries: pa.Table) -> ConventionScores:
        return self._again(self._reported, queries, self.weight)

    @staticmethod
    def _joined(parts: Sequence[Scores], queries: pa.Table, weight: Float64 | None) -> ConventionScores:
        theirs = [part for part in parts if isinstance(part, ConventionScores)]
        reported = [
            _Reported(*map(np.concatenate, zip(*of_measure, strict=True)))
            for of_measure in zip(*(part._reported for part in theirs), strict=True)
        ]
        return theirs[0]._again(reported, queries, weight)

    def _ordered(self, order: Int64, queries: pa.Table, weight: Float64 | None) -> ConventionScores:
        return self._again([each.part(order) for each in self._reported], queries, weight)

    def _again(
        self, reported: Sequence[_Reported], queries: pa.Table, weight: Float64 | None
    ) -> ConventionScores:
        return ConventionScores(self.convention, self.measures, self.resolved, reported, queries, weight)

    def __getitem__(self, measure: object) -> Float64:
        """Values of one measure, by the name it was asked for or as it was resolved, (n_queries,)."""
        wanted = as_measure(measure)
        if wanted not in self.measures and wanted in self.resolved:
            row: Float64 = self.values[self.resolved.index(wanted)]
            return row
        return super().__getitem__(measure)

    def _counted(self, row: int, part: Any = slice(None)) -> tuple[Float64, Float64 | None]:
        counted = self._reported[row].counted[part]
        weighted = self.weight is not None and self.convention.weights != "ignored"
        return self.values[row][part][counted], self.weight[part][
            counted
        ] if weighted and self.weight is not None else None

    def _mean(self, row: int, part: Any = slice(None)) -> float:
        return self.mean_sums(row, part).mean(self.convention)

    def mean_sums(self, row: int, part: Any = slice(None)) -> MeanSums:
        """What the mean of a measure is made of, over all queries or some."""
        weight = None if self.weight is None else self.weight[part]
        return MeanSums.of(self.convention, self._reported[row].part(part), weight)

    def __repr__(self) -> str:
        return f"Scores of {self.n_queries:,} queries, as {self.convention.name} computes them\n{self.summary()!r}"


def resolve(measure: Measure, convention: Convention) -> Measure:
    """The measure with the convention's parameters, where its own are at their defaults.

    >>> from fastndcg import nDCG
    >>> resolve(nDCG(empty="skip") @ 5, conventions["lightgbm"])
    nDCG(gain='exp2', ties='input', ideal='scored', empty='skip')@5
    """
    if measure.name != "nDCG":
        raise MeasureError(
            f"{measure} has no convention: {convention.name} is a way to compute nDCG. Evaluate {measure} without convention=."
        )
    theirs = convention.measure(measure.cutoff)
    own = {name: value for name, value in measure.params.items() if value != nDCG.params[name]}
    return theirs(**own)


def resolve_all(measures: Iterable[Measure], convention: object) -> tuple[Measure, ...]:
    """`resolve` for each measure, by the convention or its name."""
    rule = as_convention(convention)
    return tuple(resolve(measure, rule) for measure in measures)


def resolve_like(measure: Measure, like: object, **parameters: Any) -> Measure:
    """`nDCG(like=...)`: the convention's parameters, under those that are named beside it."""
    rule = as_convention(like)
    return resolve(measure(**_at_defaults(measure)), rule)(**parameters)


measures.resolve_like = resolve_like


def _at_defaults(measure: Measure) -> dict[str, Any]:
    return {parameter.name: parameter.default for parameter in measure.definition.parameters}


def evaluate_by_convention(
    rankings: Rankings, measures: Any, convention: object, *, threads: int | None = None
) -> ConventionScores:
    """`fastndcg.evaluate` as the tool computes: the whole rule, not only what measures say."""
    rule = as_convention(convention)
    asked = as_measures(measures)
    resolved = resolve_all(asked, rule)
    values = _undefined_as_nan(_prepared(_checked(rankings), rule), resolved, threads)
    left_out = _left_out(rankings, rule)
    reported = [_reported(rule, measure, values[measure(empty="nan")], left_out) for measure in resolved]
    return ConventionScores(rule, asked, resolved, reported, rankings, rankings.weight)


def _checked(rankings: object) -> Rankings:
    if isinstance(rankings, Rankings):
        return rankings
    raise InputTypeError(
        f"rankings is a {type(rankings).__name__}; wanted Rankings, made by Rankings.from_offsets, from_arrow or read_parquet"
    )


def _undefined_as_nan(
    rankings: Rankings, measures: Iterable[Measure], threads: int | None
) -> dict[Measure, Float64]:
    asked = tuple(dict.fromkeys(measure(empty="nan") for measure in measures))
    return dict(zip(asked, scoring.score(asked, rankings, threads).values, strict=True))


# ---- all tools side by side, and the way from one to another ----

CHOICES = {
    "cutoff": ("default_cutoff",),
    "queries": ("missing", "unjudged"),
    "scores": ("score_dtype",),
    "rel": ("rel",),
    "gain": ("gain",),
    "discount": ("discount",),
    "ideal": ("ideal",),
    "ties": ("ties",),
    "empty": ("empty",),
    "weights": ("weights",),
    "rounding": ("rounding",),
}


def _walk(start: Convention, end: Convention, k: int | None) -> list[tuple[str, Convention]]:
    """Conventions from `start` to `end` that differ from their predecessor in one choice."""
    steps, at = [], start
    for choice, names in CHOICES.items():
        if choice == "cutoff" and k is not None:  # no tool has a cutoff of its own then
            continue
        following = at.replace(**{name: getattr(end, name) for name in names})
        if following != at:
            steps.append((choice, following))
            at = following
    return steps


def _means(
    rankings: Rankings, rules: Iterable[Convention], k: int | None, threads: int | None
) -> dict[Convention, float | str]:
    """The mean by each rule, or why there is none. Rules that order the rows alike share one pass over the data."""
    groups: dict[tuple[str | None, str], list[Convention]] = {}
    for rule in dict.fromkeys(rules):
        ordering = rule.ties if rule.ties not in ("average", "input", "worst", "best") else ""
        groups.setdefault((rule.score_dtype, ordering), []).append(rule)
    means: dict[Convention, float | str] = {}
    for group in groups.values():
        try:
            prepared = _prepared(rankings, group[0])
        except ConventionError as error:
            reason = str(error).removeprefix(group[0].name)
            means |= {rule: rule.name + reason for rule in group}
            continue
        measures = {rule: rule.measure(k) for rule in group}
        values: dict[Measure, Float64 | str] = {}
        try:
            values |= _undefined_as_nan(prepared, measures.values(), threads)
        except (InputError, MeasureError):  # some measure cannot bear this data: find which
            for measure in measures.values():
                try:
                    values |= _undefined_as_nan(prepared, [measure], threads)
                except (InputError, MeasureError) as error:
                    values[measure(empty="nan")] = str(error)
        for rule, measure in measures.items():
            found = values[measure(empty="nan")]
            if isinstance(found, str):
                means[rule] = found
                continue
            try:
                reported = _reported(rule, measure, found, _left_out(rankings, rule))
                means[rule] = MeanSums.of(rule, reported, rankings.weight).mean(rule)
            except ConventionError as error:
                means[rule] = str(error)
    return means


def _on_grid(numbers: Iterable[float]) -> dict[float, float]:
    """Numbers rounded to one binary grid, on which all their differences are exact; 1e-16 at most for numbers below 1."""
    numbers = [number for number in numbers if math.isfinite(number)]
    grid = 2.0 ** (math.frexp(max(map(abs, numbers), default=1.0))[1] - 53)
    return {number: round(number / grid) * grid for number in numbers}


def compare_conventions(
    rankings: Rankings,
    k: int | None = 10,
    names: Iterable[str | Convention] | None = None,
    *,
    threads: int | None = None,
) -> pa.Table:
    """nDCG@k of one data set by every convention, and which choices move each from the first one.

    Parameters
    ----------
    rankings : Rankings
    k : int or None
        None leaves it to each convention: XGBoost cuts at 32 then.
    names : names or Conventions, optional
        Default: all, scikit-learn's first.

    Returns
    -------
    pyarrow.Table
        A row for each: `name`, `value`, `difference` from the first, then for each choice (cutoff, queries, scores, rel, gain,
        discount, ideal, ties, empty, weights, rounding) by how much it moves the first one's value on this data, when the
        choices are changed in this order: the first value and these effects add up to the value, exactly. `refused` says why
        there is no value.

    Raises
    ------
    ConventionError
        A name that does not exist, or a first convention without a value.

    Examples
    --------
    >>> rankings = Rankings.from_lists([[0, 3, 1], [0, 0]])
    >>> table = compare_conventions(rankings, 3, ["sklearn", "xgboost-", "lightgbm"])
    >>> table.select(["name", "value", "gain", "empty"]).to_pylist()[2]
    {'name': 'lightgbm', 'value': 0.8221..., 'gain': -0.007..., 'empty': 0.5}
    """
    rules = [as_convention(name) for name in (conventions if names is None else names)]
    if not rules:
        raise ConventionError(
            "no convention was named; name at least one, as in names=['sklearn', 'lightgbm']"
        )
    walks = {rule: _walk(rules[0], rule, k) for rule in rules}
    means = _means(
        _checked(rankings), [*rules, *(step for walk in walks.values() for _, step in walk)], k, threads
    )
    if isinstance(means[rules[0]], str):
        raise ConventionError(f"{rules[0].name} has no value here to compare with: {means[rules[0]]}")
    placed = _on_grid(mean for mean in means.values() if not isinstance(mean, str))

    def value_of(rule: Convention) -> float:
        mean = means[rule]
        return math.nan if isinstance(mean, str) else placed.get(mean, mean)

    columns: dict[str, list[Any]] = {
        name: [] for name in ("name", "value", "difference", *CHOICES, "refused")
    }
    first = value_of(rules[0])
    for rule in rules:
        reason = means[rule]
        refused = isinstance(reason, str)
        columns["name"].append(rule.name)
        columns["value"].append(None if refused else value_of(rule))
        columns["difference"].append(None if refused else value_of(rule) - first)
        columns["refused"].append(reason if refused else None)
        effects, at = dict.fromkeys(CHOICES, 0.0), first
        for choice, step in walks[rule]:
            effects[choice], at = value_of(step) - at, value_of(step)
        for choice, effect in effects.items():
            columns[choice].append(None if refused else effect)
    types = dict.fromkeys(columns, pa.float64()) | {"name": pa.string(), "refused": pa.string()}
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


def explain_conventions(
    rankings: Rankings,
    a: str | Convention,
    b: str | Convention,
    k: int | None = 10,
    *,
    threads: int | None = None,
) -> pa.Table:
    """The way from one convention's nDCG@k to another's, one choice at a time.

    Returns
    -------
    pyarrow.Table
        `choice`, `before`, `after` (what was chosen), `effect`, `value` (after the step). The first row is the value of `a`; it
        and the effects add up to the last value, that of `b`, exactly.

    Raises
    ------
    ConventionError
        A convention that does not exist, or has no value on this data.

    Examples
    --------
    >>> rankings = Rankings.from_lists([[0, 3, 1], [0, 0]])
    >>> for step in explain_conventions(rankings, "sklearn", "lightgbm", 3).to_pylist():
    ...     step["choice"], step["before"], step["after"], round(step["value"], 4)
    ('sklearn', None, None, 0.3295)
    ('gain', 'linear', 'exp2', 0.3221)
    ('ties', 'average', 'input', 0.3221)
    ('empty', '0', '1', 0.8221)
    ('weights', 'weighted', 'lightgbm', 0.8221)
    """
    start, end = as_convention(a), as_convention(b)
    walk = _walk(start, end, k)
    means = _means(_checked(rankings), [start, *(step for _, step in walk)], k, threads)
    for rule in (start, *(step for _, step in walk)):
        if isinstance(means[rule], str):
            raise ConventionError(
                f"there is no way from {start.name} to {end.name} on this data: {means[rule]}"
            )
    numbers = {rule: mean for rule, mean in means.items() if not isinstance(mean, str)}
    placed = _on_grid(numbers.values())
    at, value = start, placed.get(numbers[start], numbers[start])
    rows = [{"choice": start.name, "before": None, "after": None, "effect": None, "value": value}]
    for choice, step in walk:
        reached = placed.get(numbers[step], numbers[step])
        before, after = (_shown(rule, choice) for rule in (at, step))
        rows.append(
            {"choice": choice, "before": before, "after": after, "effect": reached - value, "value": reached}
        )
        at, value = step, reached
    types = {
        "choice": pa.string(),
        "before": pa.string(),
        "after": pa.string(),
        "effect": pa.float64(),
        "value": pa.float64(),
    }
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})


def _shown(rule: Convention, choice: str) -> str:
    values = [getattr(rule, name) for name in CHOICES[choice]]
    if choice == "cutoff":
        return str(values[0]).lower()
    if choice == "rounding":
        return "none" if values[0] is None else f"{values[0].decimals} decimals {values[0].when}"
    if choice == "scores":
        return "as given" if values[0] is None else str(values[0])
    if choice == "queries":
        return f"missing {values[0]}, unjudged {values[1]}"
    value = values[0]
    return f"{value:g}" if isinstance(value, float | int) else str(value).lower()


def describe() -> pa.Table:
    """All conventions as a table: a row for each, a column for each field."""
    columns: dict[str, list[Any]] = {
        "name": [], "measure": [], "ties": [], "scores": [], "rounding": [], "missing": [], "unjudged": [], "weights": [],
        "tolerance": [], "tool": [], "source": [], "caveats": [],
    }  # fmt: skip
    for rule in conventions.values():
        row = (
            rule.name, str(rule.measure()), rule.ties, _shown(rule, "scores"), _shown(rule, "rounding"), rule.missing, rule.unjudged,
            rule.weights, rule.tolerance, rule.tool, rule.source, list(rule.caveats),
        )  # fmt: skip
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    return pa.table(columns)
