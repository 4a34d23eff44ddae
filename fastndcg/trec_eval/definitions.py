"""The measures of trec_eval, in the order in which it prints them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from fastndcg.trec_eval import graded
from fastndcg.trec_eval.binary import (
    average_precision,
    bin_g,
    eleven_points,
    inferred,
    interpolated,
    map_cut,
    preference,
    raised_logarithms,
    reciprocal_rank,
    relstring,
    rprec_mult,
    set_f,
    set_map,
    unjudged,
    utility,
    yaap,
)
from fastndcg.trec_eval.ranking import Form, Release, ratio

Takes = Literal["nothing", "cutoffs", "shares", "numbers", "gains"]
Summed = Literal["mean", "sum", "geometric", "none"]


class Declared(NamedTuple):
    """A measure of trec_eval: its parameters, how it is computed, and how its values are summarised."""

    name: str
    summary: str
    compute: Callable[..., Any]
    takes: Takes = "nothing"
    default: tuple[float, ...] = ()
    summed: Summed = "mean"
    since: Release = 9
    is_standard: bool = True  # one of all_trec
    form: Form | None = "qrels"  # of judgments, as `FORMS` has it; None for any


_CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_TENTHS = tuple(tenth / 10 for tenth in range(11))
_FIFTHS = tuple(fifth / 5 for fifth in range(1, 11))
_COUNT: Any = {"summed": "sum"}
_BY_GROUP: Any = {"is_standard": False, "form": "qrels_jg"}
DECLARED = {
    each.name: each
    for each in (
        Declared("runid", "name of the run, from its last line", lambda _: None, summed="none", form=None),
        Declared("num_q", "queries that are averaged over", lambda _: None, **_COUNT, form=None),
        Declared("num_ret", "returned documents", lambda ranked: ranked.returned, **_COUNT),
        Declared("num_rel", "relevant documents", lambda ranked: ranked.relevant, **_COUNT),
        Declared("num_rel_ret", "relevant documents returned", lambda ranked: ranked.found, **_COUNT),
        Declared("map", "mean average precision", average_precision),
        Declared("gm_map", "geometric mean of average precision",
            lambda ranked: raised_logarithms(average_precision(ranked)), summed="geometric"),
        Declared("Rprec", "precision after as many ranks as there are relevant documents",
            lambda ranked: ratio(ranked.hits_before(ranked.relevant), ranked.relevant)),
        Declared("bpref", "binary preference", preference),
        Declared("recip_rank", "reciprocal rank of the first relevant document", reciprocal_rank),
        Declared("iprec_at_recall", "interpolated precision at levels of recall",
            lambda ranked, shares: interpolated(ranked, shares)[::-1], "shares", _TENTHS),
        Declared("P", "precision at cutoffs",
            lambda ranked, cutoffs: [ranked.hits_before(k) / k for k in cutoffs], "cutoffs", _CUTOFFS),
        Declared("relstring", "grades of the first documents, for each query", relstring, "numbers", (10,),
            summed="none"),
        Declared("recall", "recall at cutoffs",
            lambda ranked, cutoffs: [ratio(ranked.hits_before(k), ranked.relevant) for k in cutoffs],
            "cutoffs", _CUTOFFS),
        Declared("infAP", "inferred average precision", inferred),
        Declared("gm_bpref", "geometric mean of binary preference",
            lambda ranked: raised_logarithms(preference(ranked)), summed="geometric"),
        Declared("Rprec_mult", "precision at multiples of the number of relevant documents", rprec_mult,
            "shares", _FIFTHS),
        Declared("utility", "worth of documents returned and relevant, returned, relevant, neither", utility,
            "numbers", (1.0, -1.0, 0.0, 0.0)),
        Declared("11pt_avg", "interpolated precision averaged over levels of recall", eleven_points,
            "numbers", _TENTHS),
        Declared("binG", "gain discounted by what is not relevant above", bin_g),
        Declared("G", "graded gain discounted by what was missed above", graded.graded_gain, "gains"),
        Declared("dcg", "discounted cumulative gain", graded.dcg, "gains", since=10, is_standard=False),
        Declared("ideal_dcg", "discounted cumulative gain of the ideal ranking", graded.ideal_dcg, "gains",
            since=10, is_standard=False),
        Declared("ndcg", "normalised discounted cumulative gain", graded.ndcg, "gains"),
        Declared("ndcg_rel", "nDCG averaged over the ranks of relevant documents", graded.ndcg_rel, "gains"),
        Declared("Rndcg", "nDCG averaged over the ranks at which the ideal gain changes", graded.rndcg,
            "gains"),
        Declared("ndcg_cut", "nDCG at cutoffs", graded.ndcg_cut, "cutoffs", _CUTOFFS),
        Declared("map_cut", "average precision at cutoffs", map_cut, "cutoffs", _CUTOFFS),
        Declared("relative_P", "precision at cutoffs over the greatest possible",
            lambda ranked, cutoffs: [
                ratio(ranked.hits_before(k), np.minimum(ranked.relevant, k)) for k in cutoffs],
            "cutoffs", _CUTOFFS),
        Declared("success", "whether a relevant document stands above cutoffs",
            lambda ranked, cutoffs: [(ranked.hits_before(k) > 0).astype(np.float64) for k in cutoffs],
            "cutoffs", (1, 5, 10)),
        Declared("set_P", "precision of the returned set",
            lambda ranked: ratio(ranked.found, ranked.returned)),
        Declared("set_relative_P", "precision of the returned set over the greatest possible",
            lambda ranked: ratio(ranked.found, np.minimum(ranked.returned, ranked.relevant))),
        Declared("set_recall", "recall of the returned set",
            lambda ranked: ratio(ranked.found, ranked.relevant)),
        Declared("set_map", "precision times recall of the returned set", set_map),
        Declared("set_F", "harmonic mean of precision and recall of the returned set", set_f, "numbers",
            (1,)),
        Declared("num_nonrel_judged_ret", "returned documents judged not relevant",
            lambda ranked: np.bincount(ranked.query[ranked.is_miss], minlength=ranked.n_queries), **_COUNT),
        Declared("map_avgjg", "mean of map by each group of judges", average_precision, **_BY_GROUP),
        Declared("P_avgjg", "mean of P by each group of judges",
            lambda ranked, cutoffs: [ranked.hits_before(k) / k for k in cutoffs], "cutoffs", _CUTOFFS,
            **_BY_GROUP),
        Declared("Rprec_mult_avgjg", "mean of Rprec_mult by each group of judges", rprec_mult, "shares",
            _FIFTHS, **_BY_GROUP),
        Declared("yaap", "log odds of average precision", yaap, is_standard=False),
        Declared("rbp", "rank-biased precision, p=0.9", graded.rbp, "gains", since=10),
        Declared("rbp_resid", "rank-biased precision that unjudged documents could add", graded.rbp_resid,
            "gains", since=10),
        Declared("unj", "share of unjudged documents at cutoffs", unjudged, "cutoffs", (5, 10, 20),
            since=10),
    )
}  # fmt: skip
SETS = {
    "official": [
        "runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref",
        "recip_rank",
        "iprec_at_recall", "P",
    ],
    "set": [
        "runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "utility", "set_P", "set_recall",
        "set_relative_P", "set_map",
        "set_F",
    ],
    "qrels_jg": ["runid", "num_q", "map_avgjg", "P_avgjg", "Rprec_mult_avgjg"],
    "all_trec": [each.name for each in DECLARED.values() if each.is_standard],
}  # fmt: skip
