"""How each established tool computes each of its measures, as data: `DECLARED`.

To add a measure that a tool has:

1. Add a row to `others` of the tool's `Rule`, as in `has("AP", "map@k", denominator="cutoff", empty=1.0)`:
   our name, the tool's, and parameters that are not at our defaults.
2. If the tool evaluates the measure differently from its nDCG, also name fields of `Rule`, such as ties,
   missing or weights. A tool without nDCG has `of=None`.
3. If no parameter or field can express what the tool does, add one.
4. Add how to call the tool to `LIVE` of tests/measured.py: the test compares it on random data.
5. `python -m scripts.pages` writes docs/conventions.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from dataclasses import replace as replaced
from typing import TYPE_CHECKING, Any, NamedTuple

from fastndcg.errors import ConventionError, InputTypeError, MeasureError, suggest
from fastndcg.measures.definitions import DEFINITIONS
from fastndcg.measures.parameters import DISCOUNT, EMPTY, GAIN, IDEAL, REL

if TYPE_CHECKING:
    from typing import Self

    from fastndcg.typing import Empty, Ideal, Parameters


# ---- what a declaration says: measures with parameters, and rules for a whole evaluation ----


class Rounding(NamedTuple):
    """Decimals of the reported values."""

    decimals: int
    when: str  # "printed": the mean is over unrounded values; "stored": over rounded ones


TIES = {
    "average": "expected value over all orders of tied documents",
    "input": "tied documents in input order",
    "worst": "lower gain first",
    "best": "higher gain first",
    "block": "tied documents together: each has the precision at the end of its group",
    "docid_desc": "by descending document id, compared as UTF-8 text",
    "docid_asc": "by ascending document id, compared as UTF-8 text",
    "item_desc": "by descending document id, numbers compared as numbers",
    "numba_argsort": (
        "the order of Numba's np.argsort(-scores): input order up to 15 documents; "
        "unstable but repeatable beyond that"
    ),
    "input_to_16": "input order up to 16 documents; beyond that torch.sort does not define the order",
    "unspecified": "undefined",
}
OF_MEASURE = ("average", "input", "worst", "best", "block")  # values of the parameter `ties`
BY_ROW = ("input", "numba_argsort", "input_to_16", "unspecified")  # the order of rows decides or may decide
BY_ID = ("docid_desc", "docid_asc", "item_desc")
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
    "or_zero": "plain mean, in which a query of weight 0 has the value 0",
    "n_relevant": "weighted by the number of relevant documents of a query, whatever its own weight",
    "min(n_relevant, k)": "weighted by that number, but at most k: all hits over all that were possible",
}
BY_COUNT = ("n_relevant", "min(n_relevant, k)")
POOLS = {
    "judged": "all judged documents count as relevant or not, returned or not",
    "scored": "documents that were not scored are unknown: recall and the like are of the scored list",
    "listed": "as judged; unjudged documents of the pool, whose grade is negative, count as judged",
}


GRADES = {
    "given": "the grades",
    "distinct": "of equal grades the one in the earlier row is the higher, so that each pair counts",
}


class ToolMeasure(NamedTuple):
    """A measure that a tool has. Made by `has`."""

    measure: str  # our name
    called: str  # the tool's own name
    changed: tuple[tuple[str, Any], ...]  # fields of `Rule` that differ for this measure
    more: tuple[tuple[str, Any], ...]  # other parameters of the measure
    cut: bool | None = None  # True: only with a cutoff; False: only without


def has(measure: str, called: str = "", *, cut: bool | None = None, **choices: Any) -> ToolMeasure:
    """Declare that a tool has this measure, with these parameters; other parameters have their defaults.

    `choices` may also name fields of `Rule`, such as ties and rounding, which then apply to this measure
    only. With `cut` the row applies only to the measure with, or without, a cutoff.
    """
    known = [parameter.name for parameter in DEFINITIONS[measure].parameters]
    for name in choices:
        if name not in known and name not in _CHANGEABLE:
            raise MeasureError(
                f"{measure} has no parameter {name!r}, and a convention no such field; "
                f"{measure} has: {', '.join(known) or 'none'}.{suggest(name, [*known, *_CHANGEABLE])}"
            )
    fields_of = (
        _CHANGEABLE - {"rounding"} if measure == "IPrec" else _CHANGEABLE
    )  # a parameter that only this measure has
    changed = {name: value for name, value in choices.items() if name in fields_of}
    more = {name: value for name, value in choices.items() if name not in changed}
    return ToolMeasure(measure, called, tuple(sorted(changed.items())), _canonical(measure, more), cut)


def have(rows: str, **choices: Any) -> tuple[ToolMeasure, ...]:
    """Declare several measures that share choices, as in `have("R Recall, RR MRR", empty="skip")`."""
    return tuple(has(*row.split(), **choices) for row in rows.split(", "))


def _canonical(measure: str | None, more: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return parameters in the order of their declaration, without those at their default."""
    known = DEFINITIONS[measure].parameters if measure else ()
    read = [(each, each.read(more[each.name])) for each in known if each.name in more]
    return tuple((each.name, value) for each, value in read if value != each.default)


@dataclass(frozen=True)
class Rule:
    """The rules of one tool, field by field. A `Convention` also has the measures.

    The fields from gain to rel are parameters of the measure `of`. `others` are the tool's other measures,
    for which `find` returns the rule.
    """

    name: str
    _: KW_ONLY
    of: str | None = "nDCG"  # None: the tool has only `others`
    gain: Any = "linear"
    discount: Any = "log2"
    ideal: Ideal = "judged"
    ties: str = "average"  # one of TIES
    empty: Empty = 0.0  # value of a query where the measure is undefined, such as one whose IDCG is 0
    rel: float | None = None  # grades below it gain nothing; None: the measure's default
    more: tuple[tuple[str, Any], ...] = ()  # further parameters of the measure
    score_dtype: str | None = None  # dtype to which scores are cast before ranking
    rounding: Rounding | None = None
    missing: str = "skip"  # queries without returned documents: one of QUERIES
    unjudged: str = "skip"  # queries without judged documents: one of QUERIES
    weights: str = "ignored"  # one of WEIGHTS
    pool: str = "judged"  # one of POOLS
    grades: str = "given"  # one of GRADES
    shortest: int = 0  # queries with fewer documents are left out
    drops_own: bool = False  # drop returned documents whose id is that of their query
    no_nonrelevant: float | None = None  # value of a query whose judged documents are all relevant
    only_relevant: float | None = None  # value of a query whose documents are all relevant; None: as `empty`
    default_cutoff: int | None = None  # cutoff of measures that are given without one
    tolerance: float = 1e-9  # largest difference from the tool's value for a query
    tool: str = ""  # name and version of the tool that was run or read
    source: str = ""  # the files of the tool's code, or the paper
    caveats: tuple[str, ...] = ()
    others: tuple[ToolMeasure, ...] = ()

    @property
    def names_of_measures(self) -> tuple[str, ...]:
        """Names of the tool's measures."""
        names = [other.measure for other in self.others]
        return tuple(dict.fromkeys(names if self.of is None else [self.of, *names]))

    def find(self, measure: str, *, cut: bool | None = None) -> Self | None:
        """Return the rule for another measure of the tool, or None if the tool lacks it.

        Fields that the declaration omits are as for the tool's other measures, and parameters have the
        measure's defaults. A tool whose nDCG has the ideal "scored" knows only the scored documents.
        """
        if measure == self.of:
            return replaced(self, others=())
        for other in self.others:
            if other.measure == measure and (other.cut is None or cut is None or other.cut == cut):
                usual = {each.name: each.default for each in fields(self) if each.name in _OF_MEASURE}
                pool = "scored" if self.ideal == "scored" else self.pool
                fixed = {"of": measure, "more": other.more, "others": ()}
                return replaced(self, **{**usual, "pool": pool, **dict(other.changed), **fixed})
        return None

    def on(self, measure: Any, keyword: str = "convention", *, cut: bool | None = None) -> Self:
        """Return the convention for a `Measure`, or for one by its name. Raise `ConventionError` if the tool
        lacks it.
        """
        name, cut = (measure, cut) if isinstance(measure, str) else (measure.name, measure.is_cut)
        found = self.find(name, cut=cut)
        if found is not None:
            return found
        having = [each.name for each in DECLARED if each.find(name, cut=cut)]
        if not having:
            raise ConventionError(
                f"{name} has no convention: none of the known tools computes it. "
                f"Give {name} without {keyword}=."
            )
        at = "" if name not in self.names_of_measures else " with a cutoff" if cut else " without a cutoff"
        raise ConventionError(
            f"{self.name} has no {name}{at}; it has: {', '.join(self.names_of_measures)}. "
            f"Tools that have {name}: {', '.join(having)}."
        )

    @property
    def parameters(self) -> Parameters:
        """Parameters of the measure. For ties by id, `ties` is "input", since rows are put in order first."""
        known = {parameter.name for parameter in DEFINITIONS[self.of or ""].parameters}
        if self.rel is None and self.of != "nDCG":
            known -= {"rel"}
        parameters = {name: getattr(self, name) for name in _OF_MEASURE if name in known}
        if "ties" in known:
            parameters["ties"] = self.ties if self.ties in OF_MEASURE else "input"
        return parameters | dict(self.more)  # type: ignore[return-value]

    @property
    def needs_ids(self) -> bool:
        """Whether a measure needs document ids, most often to order tied documents."""
        rules = [self, *filter(None, map(self.find, self.names_of_measures))]
        return any(rule.ties in BY_ID or rule.drops_own for rule in rules)

    @property
    def beyond_measure(self) -> dict[str, Any]:
        """Choices for which measures have no parameter. `evaluate(..., convention=)` applies them too.

        >>> from fastndcg import conventions
        >>> conventions["lightgbm"].beyond_measure
        {'missing': 'skip', 'unjudged': 'skip', 'weights': 'lightgbm'}
        """
        names = ["score_dtype", "rounding", "missing", "unjudged", "weights"]
        names = names if self.ties in OF_MEASURE else ["ties", *names]
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def replace(self, **changes: Any) -> Self:
        """Return this convention with other values of fields. Raise `MeasureError` if one is unknown.

        The name of a measure with a mapping of parameters changes or adds another measure of the tool:
        `conventions["xgboost"].replace(AP={"empty": 0})`.
        """
        known = [each.name for each in fields(self)]
        parameters = [each.name for each in DEFINITIONS[self.of].parameters] if self.of else []
        for name in list(changes):
            if name in DEFINITIONS and name != self.of and isinstance(changes[name], Mapping):
                rows = changes.get("others", self.others)
                before = next((own for own in rows if own.measure == name), has(name))
                choices = {**dict(before.changed), **dict(before.more), **changes.pop(name)}
                rest = [own for own in rows if own.measure != name]
                changes["others"] = (*rest, has(name, before.called, **choices))
            elif name in parameters and name not in known:
                more = dict(changes.get("more", self.more)) | {name: changes.pop(name)}
                changes["more"] = _canonical(self.of, more)
            elif name not in known:
                raise MeasureError(
                    f"a convention has no field {name!r}; it has: {', '.join(known)}.{suggest(name, known)}"
                )
        return replaced(self, **changes)

    def __post_init__(self) -> None:
        words_of = {"ties": TIES, "missing": QUERIES, "unjudged": QUERIES, "weights": WEIGHTS}
        words_of |= {"pool": POOLS, "grades": GRADES}
        for name, words in words_of.items():
            if (value := getattr(self, name)) not in words:
                raise MeasureError(
                    f"{name}={value!r} is not a value of conventions: "
                    f"{name} is one of {', '.join(map(repr, words))}.{suggest(str(value), words)}"
                )
        if self.score_dtype not in (None, "float32"):
            raise MeasureError(
                f"score_dtype={self.score_dtype!r} is not a value of conventions; "
                "expected None (the type of the scores) or 'float32'"
            )
        # in canonical, hashable form, as in measures
        for each in (GAIN, DISCOUNT, IDEAL, EMPTY, REL):
            object.__setattr__(self, each.name, each.read(getattr(self, each.name)))


_OF_MEASURE = ("gain", "discount", "ideal", "empty", "rel", "caveats")  # no two measures share it
_CHANGEABLE = frozenset(each.name for each in fields(Rule)) - {"name", "of", "more", "others"}


# ---- declarations that several tools share ----

_TREC_CAVEATS = (
    "documents with equal scores are ordered by descending document id, and the run's rank column is ignored",
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
    others=(
        has("DCG", "dcg_score"), has("AP", "average_precision_score", cut=False, ties="block"),
        has("AUC", "roc_auc_score", empty="nan", caveats=("of each query, and NaN for one class of grades",)),
    ),
)  # fmt: skip
_TREC_EVAL = Rule(
    "trec_eval", ties="docid_desc", rel=0, rounding=Rounding(4, "printed"),
    tool="trec_eval 10.0", source="m_ndcg.c, m_ndcg_cut.c, form_res_rels.c",
    others=(
        has("AP", "map, map_cut"),
        *have("P P, R recall, RR recip_rank, Success success, Rprec Rprec, Bpref bpref, infAP infAP"),
        has("IPrec", "iprec_at_recall", rounding="nearest"),
        *have("SetP set_P, SetR set_recall, SetF set_F, SetAP set_map, NumRel num_rel, NumRet num_ret"),
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
        *have("AP map, P precision, R recall, RR mrr, F f1, Success hit_rate, Rprec r-precision"),
        has("NumRet", "hits", rel=1),
    ),
)  # fmt: skip
_ABOVE_HALF = 0.5000000000000001  # the smallest grade above 0.5
_LIGHTGBM = Rule(
    "lightgbm", gain="exp2", ideal="scored", ties="input", empty=1.0, weights="lightgbm",
    tool="LightGBM 4.7.0", source="src/metric/dcg_calculator.cpp, rank_metric.hpp",
    caveats=(
        "queries without a relevant document count as 1",
        "with query weights such a query adds 1, not its weight, so the mean can exceed 1",
        "tied documents keep the order of the rows, although LightGBM's issue tracker says otherwise",
        "label_gain: conventions['lightgbm'].replace(gain=[0, 1, 3, 7])",
    ),
    others=(has("AP", "map@k", rel=_ABOVE_HALF, empty=1.0, denominator="cutoff", weights="weighted"),),
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
            weights="or_zero", default_cutoff=None,
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
        "tied documents are ordered by ascending target"),
    others=(
        has("AP", "MAP:top", rel=_ABOVE_HALF, denominator="cutoff", **_UNWEIGHTED),
        has("R", "RecallAt:top", rel=_ABOVE_HALF, empty=1.0, **_UNWEIGHTED),
        has("RR", "MRR:top", rel=_ABOVE_HALF),
        has("P", "PrecisionAt:top", rel=_ABOVE_HALF, denominator="returned", **_UNWEIGHTED),
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
        has("P", "PrecisionMetric", denominator="returned"),
        *have("R RecallMetric, AP MeanAveragePrecisionMetric, RR MRRMetric, Success HitsMetric"),
    ),
    caveats=(
        "it shuffles tied documents without a seed; this is the exact expected value over the shuffles",
        "weights of queries are reproduced; weights of documents, which multiply gains, are not",
    ),
)  # fmt: skip
_ABOVE_0 = "a document with a score of 0 or less is never relevant, so logits give values that are too low"
_RBP_OF_TRECTOOLS = (
    "the last document of a query is tied with the first of the next one, if their scores are equal",
)
_RECSYS = Rule(
    "recsys", gain="binary", ties="input", missing="value",
    tool=(
        "RePlay, RecPack, Cornac, implicit, RecBole, recommenders, sentence-transformers and pyvespa agree "
        "on it"
    ),
    source="Tamm, Damdinov and Vasilev, arXiv 2206.12858",
    caveats=("they differ in ties and in the users that they leave out; each also has its own convention",),
)  # fmt: skip

# ---- by tool ----

DECLARED: tuple[Rule, ...] = (
    # libraries of evaluation
    _SKLEARN,
    _SKLEARN.replace(
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
                "AUC", "Accuracy", ties="input", score_dtype=None, empty="skip", missing="skip",
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
            *have("AP map, P P, R recall"),
            has("RR", "mrr", ties="input", missing="value", score_dtype=None),
        ),
        drops_own=True,
        caveats=("means are printed with 5 decimals",
            "ignore_identical_ids=False is conventions['beir'].replace(drops_own=False)"),
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
            *have("AP map, P precision, R recall"),
            has("RR", "mrr", ties="input", missing="value", score_dtype=None),
        ),
        caveats=("means are printed with 5 decimals",),
    ),
    Rule(
        "elinor", of=None, ties="docid_asc", tool="elinor 0.4, read", source="src/metrics",
        others=(
            *have(
                "AP ap, P precision, R recall, RR rr, "
                "F f1, Success success, Rprec r_precision, Bpref bpref"
            ),
        ),
        caveats=("ties are ordered by ascending document id, the opposite of trec_eval",
            "its bpref is 0/0 where no document was judged to be not relevant"),
    ),
    Rule(
        "trectools", of=None, ties="docid_desc", unjudged="value",
        tool="trectools, read", source="trectools/trec_eval.py",
        others=(
            has("AP", "get_map", default_cutoff=1000),
            *have("P get_precision, RR get_reciprocal_rank, Rprec get_rprec"),
            has("Bpref", "get_bpref", no_nonrelevant=0.0,
                caveats=("0 where all judged documents are relevant: 0/0 is left out of a sum",)),
            has("RBP", "get_rbp", cut=False, ties="average", default_cutoff=1000, caveats=_RBP_OF_TRECTOOLS),
            # weights of tied documents are averaged after the cut, so they depend on the order of rows
            has("RBP", "get_rbp", cut=True, ties="unspecified", caveats=_RBP_OF_TRECTOOLS),
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
            has("P", "PrecisionTopK", denominator="returned"),
            *have("R RecallTopK, RR MRRK, Success HitRateK"),
            has("AP", "MAPK", caveats=("right only where rows are sorted by rank, as here",)),
        ),
        caveats=("no_feedback_users=False leaves out users without a positive",),
    ),
    Rule(
        "llama_index", of=None, ties="input", missing="value", tool="LlamaIndex, read",
        source="llama_index/core/evaluation/retrieval/metrics.py",
        others=have("Success hit_rate, RR mrr, P precision, R recall, AP ap", cut=False),
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
    # boosters, neural rankers and Spark
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
    _SKLEARN.replace(
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
    _RECSYS.replace(
        name="spark", tool="Spark 4.3.0", source="mllib/evaluation/RankingMetrics.scala ndcgAt",
        others=(
            *have("P precisionAt, R recallAt", cut=True), has("AP", "meanAveragePrecision", cut=False),
            has("AP", "meanAveragePrecisionAt", cut=True, denominator="cutoff"),
        ),
        caveats=("binary: PySpark silently drops a column of relevance",
            "the discount has a natural logarithm; the base cancels in the ratio"),
    ),
    # search engines
    Rule(
        "elasticsearch", gain="exp2", ideal="judged_returned", ties="input", missing="value",
        unjudged="value",
        tool="Elasticsearch, read", source="index/rankeval/DiscountedCumulativeGain.java",
        others=(
            has("P", "precision", denominator="returned"), *have("R recall, RR mean_reciprocal_rank"),
            has("ERR", "expected_reciprocal_rank",
                caveats=("max_rel is its maximum_relevance, which it has no default for",)),
        ),
        caveats=(
            ("the ideal ranking has as many documents as were returned, so a short list is compared with "
            "a short ideal"),
            "unknown_doc_rating is not reproduced: it adds gain that the ideal ranking does not have",
        ),
    ),
    Rule(
        "opensearch", gain="exp2", ties="input", rounding=Rounding(2, "stored"), tolerance=1e-9,
        tool="OpenSearch search-relevance, read", source="metrics/calculator/Evaluation.java",
        others=(has("P", "Precision@k", denominator="returned"), has("AP", "MAP@k")),
        caveats=("values are stored with 2 decimals", "queries without results store nothing"),
    ),
    Rule(
        "quepid", gain="exp2", ideal="judged_uncut", ties="input", missing="value",
        tool="Quepid nDCG@10, read", source="db/scorers/ndcg@10.js",
        others=(
            has("P", "P@10", denominator="returned"), has("AP", "AP@10", empty="nan"), has("RR", "RR@10"),
            has("ERR", "ERR@10", caveats=("max_rel is the highest grade of its scale",)),
        ),
        caveats=(("the ideal ranking has no cutoff, so a perfect list stays below 1 if more than k documents "
            "are rated"),),
    ),
    Rule(
        "quepid_cut", gain="exp2", ties="input", missing="value", tool="Quepid NDCG_CUT@10, read",
        source="db/scorers/ndcg_cut@10.js"
    ),
    Rule(
        "rre", of=None, ties="input", missing="value",
        tool="Rated Ranking Evaluator, read",
        source="rre-core/src/main/java/io/sease/rre/core/domain/metrics",
        others=(
            has("P", "P@k", denominator="returned", rounding=Rounding(2, "stored")),
            *have("R Recall, AP AP"),
        ),
        caveats=("a query without relevant documents and without hits has the precision 1, here 0",
            ("its RR@k is of the hit with the greatest gain among the first k, "
            "RR(of='best') of the greatest of the whole list")),
    ),
    # recommenders
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
            has("P", "Precision", unjudged="skip_irrelevant"),
            *have("R Recall, Success HitRate", empty="skip"),
            has("AP", "MAP", empty="skip", denominator="cutoff"), has("RR", "MRR", empty="skip"),
            has("AUC", "RocAuc", cut=True, only_relevant=1.0, unjudged="skip_irrelevant"),
        ),
        caveats=(
            ("for pandas, Polars and Spark input, ties are ordered by descending item id; "
            "a dict of lists keeps its order"),
            "users without relevant items have no ground truth and are left out",
        ),
    ),
    _RECSYS.replace(
        name="recpack", ties="unspecified", empty="skip", tool="RecPack 0.3.6",
        source="recpack/metrics/dcg.py NDCGK",
        others=(
            has("P", "PrecisionK", unjudged="skip_irrelevant"),
            *have("R RecallK, RR ReciprocalRankK", empty="skip"),
            has("NumRet", "HitK", rel=1, unjudged="skip_irrelevant"),
        ),
        caveats=("the order of ties in sparse scores is not defined, so such data is refused",
            "users without ground truth are left out"),
    ),
    _RECSYS.replace(
        name="cornac", empty="skip", tool="Cornac 2.2.1", source="cornac/metrics/ranking.py NDCG",
        others=(
            has("P", "Precision", unjudged="skip_irrelevant"),
            *have("R Recall, F FMeasure, Success HitRatio", empty="skip"),
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
            has("P", "precision", unjudged="skip_irrelevant"),
            *have("R recall, Success hit, RR mrr", empty="skip"),
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
            has("P", "precision_at"), *have("R recall_at, AP map_at", denominator="cutoff"),
            has("RR", "mrr_at"),
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
        caveats=("ties are ordered by ascending corpus id, the opposite of trec_eval",
            "queries without relevant documents are dropped"),
    ),
    _RECSYS.replace(
        name="pyvespa", empty="skip", tool="pyvespa 1.2.9", source="vespa/evaluation/_base.py",
        others=(
            has("Success", "accuracy@k", empty="skip"), has("P", "precision@k", unjudged="skip_irrelevant"),
            *have("R recall@k, RR mrr@k", empty="skip"),
            has("AP", "map@k", empty="skip", denominator="cutoff"),
        ),
        caveats=("grades are ignored even if they are given", "hits keep the order of the server"),
    ),
    Rule(
        "elliot", gain="exp2", rel=1, ties="input", empty="skip",
        tool="Elliot, read", source="elliot/evaluation/metrics/accuracy/ndcg/ndcg.py",
        others=(
            has("P", "Precision", unjudged="skip_irrelevant"),
            *have("R Recall, F F1, Success HR, RR MRR", empty="skip"),
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
    # papers
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

# why these cannot be reproduced
_REFUSED = {
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


def rule_of(convention: object) -> Rule:
    """Return the rule with this name, or the rule itself.

    Raise `ConventionError`, with the reason, for a tool that is unknown or cannot be reproduced.
    """
    if isinstance(convention, Rule):
        return convention
    if not isinstance(convention, str):
        raise InputTypeError(
            f"convention is a {type(convention).__name__}; expected a name, as in convention='trec_eval', "
            "or a Convention"
        )
    if convention in _REFUSED:
        raise ConventionError(f'"{convention}" cannot be reproduced: {_REFUSED[convention]}')
    if convention not in _RULES:
        raise ConventionError(
            f'no convention is called "{convention}".{suggest(convention, [*_RULES, *_REFUSED])} '
            "docs/conventions.md and `fastndcg conventions` list all names."
        )
    return _RULES[convention]
