"""The measures of trec_eval, in the order in which it prints them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from fastndcg.trec_eval.binary import (
    average_precision,
    bin_g,
    eleven_points,
    inferred,
    iprec_at_recall,
    judged_misses,
    map_cut,
    precision,
    preference,
    r_precision,
    raised_logarithms,
    recall,
    reciprocal_rank,
    relative_precision,
    relstring,
    rprec_mult,
    set_f,
    set_map,
    success,
    unjudged,
    utility,
    yaap,
)
from fastndcg.trec_eval.graded import (
    dcg,
    graded_gain,
    ideal_dcg,
    ndcg,
    ndcg_cut,
    ndcg_rel,
    rbp,
    rbp_resid,
    rndcg,
)
from fastndcg.trec_eval.ranked import Release, ratio

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
    differs: bool = False  # whether releases compute it differently
    is_standard: bool = True  # one of all_trec

    @property
    def is_shown_for_queries(self) -> bool:
        return self.summed != "geometric" and self.name not in ("runid", "num_q")


_CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_TENTHS = tuple(tenth / 10 for tenth in range(11))
_COUNT: Any = {"summed": "sum"}
DECLARED = {
    each.name: each
    for each in (
        Declared("runid", "name of the run, from its last line", lambda _: None, summed="none"),
        Declared("num_q", "queries that are averaged over", lambda _: None, **_COUNT),
        Declared("num_ret", "returned documents", lambda ranked: ranked.returned, **_COUNT),
        Declared("num_rel", "relevant documents", lambda ranked: ranked.relevant, **_COUNT),
        Declared("num_rel_ret", "relevant documents returned", lambda ranked: ranked.found, **_COUNT),
        Declared("map", "mean average precision", average_precision),
        Declared("gm_map", "geometric mean of average precision",
            lambda ranked: raised_logarithms(average_precision(ranked)), summed="geometric"),
        Declared("Rprec", "precision after as many ranks as there are relevant documents", r_precision),
        Declared("bpref", "binary preference", preference),
        Declared("recip_rank", "reciprocal rank of the first relevant document", reciprocal_rank),
        Declared("iprec_at_recall", "interpolated precision at levels of recall", iprec_at_recall, "shares",
            _TENTHS, differs=True),
        Declared("P", "precision at cutoffs", precision, "cutoffs", _CUTOFFS),
        Declared("relstring", "grades of the first documents, for each query", relstring, "numbers", (10,),
            summed="none"),
        Declared("recall", "recall at cutoffs", recall, "cutoffs", _CUTOFFS),
        Declared("infAP", "inferred average precision", inferred),
        Declared("gm_bpref", "geometric mean of binary preference",
            lambda ranked: raised_logarithms(preference(ranked)), summed="geometric"),
        Declared("Rprec_mult", "precision at multiples of the number of relevant documents", rprec_mult,
            "shares", tuple(fifth / 5 for fifth in range(1, 11))),
        Declared("utility", "worth of documents returned and relevant, returned, relevant, neither", utility,
            "numbers", (1.0, -1.0, 0.0, 0.0)),
        Declared("11pt_avg", "interpolated precision averaged over levels of recall", eleven_points,
            "numbers", _TENTHS, differs=True),
        Declared("binG", "gain discounted by what is not relevant above", bin_g),
        Declared("G", "graded gain discounted by what was missed above", graded_gain, "gains"),
        Declared("dcg", "discounted cumulative gain", dcg, "gains", since=10, is_standard=False),
        Declared("ideal_dcg", "discounted cumulative gain of the ideal ranking", ideal_dcg, "gains",
            since=10, is_standard=False),
        Declared("ndcg", "normalised discounted cumulative gain", ndcg, "gains"),
        Declared("ndcg_rel", "nDCG averaged over the ranks of relevant documents", ndcg_rel, "gains"),
        Declared("Rndcg", "nDCG averaged over the ranks at which the ideal gain changes", rndcg, "gains"),
        Declared("ndcg_cut", "nDCG at cutoffs", ndcg_cut, "cutoffs", _CUTOFFS),
        Declared("map_cut", "average precision at cutoffs", map_cut, "cutoffs", _CUTOFFS),
        Declared("relative_P", "precision at cutoffs over the greatest possible", relative_precision,
            "cutoffs", _CUTOFFS),
        Declared("success", "whether a relevant document stands above cutoffs", success, "cutoffs",
            (1, 5, 10)),
        Declared("set_P", "precision of the returned set",
            lambda ranked: ratio(ranked.found, ranked.returned)),
        Declared("set_relative_P", "precision of the returned set over the greatest possible",
            lambda ranked: ratio(ranked.found, np.minimum(ranked.returned, ranked.relevant))),
        Declared("set_recall", "recall of the returned set",
            lambda ranked: ratio(ranked.found, ranked.relevant)),
        Declared("set_map", "precision times recall of the returned set", set_map),
        Declared("set_F", "harmonic mean of precision and recall of the returned set", set_f, "numbers",
            (1,)),
        Declared("num_nonrel_judged_ret", "returned documents judged not relevant", judged_misses, **_COUNT),
        Declared("yaap", "log odds of average precision", yaap, is_standard=False),
        Declared("rbp", "rank-biased precision, p=0.9", rbp, "gains", since=10),
        Declared("rbp_resid", "rank-biased precision that unjudged documents could add", rbp_resid, "gains",
            since=10),
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
    "all_trec": [each.name for each in DECLARED.values() if each.is_standard],
}  # fmt: skip
