"""How to call each tool for each of its measures but nDCG: `LIVE`, a row for each tool and measure.

A tool is a function as in rivals.py: queries and a cutoff give a value for each query, None where it reports
nothing. `test_measures_of_tools` asks all of them about the same kind of random data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import rivals
from rivals import RIVALS, Query, Tool, Values, random_queries


class Live(NamedTuple):
    run: Tool
    grades: str = "graded"  # one of GRADES: what the tool takes
    cutoffs: tuple[int | None, ...] = (1, 3, 10, None)
    ties: bool = True  # it says what it does about ties
    least: int = 1  # documents that a query must have


GRADES = {
    "binary": lambda random, size: random.integers(0, 2, size),
    "graded": lambda random, size: random.integers(0, 5, size),
    "negative": lambda random, size: random.integers(-2, 5, size),
    "fractions": lambda random, size: random.integers(0, 9, size) / 8,
}


def ragged(seed: int, live: Live, n: int = 48) -> list[Query]:
    """Queries as of `random_queries`, with grades that the tool takes; every sixth has no relevant document."""
    random = np.random.default_rng(seed)
    queries = []
    for query in random_queries(seed, n, least=live.least, ties=live.ties):
        sides = []
        for side in (query.grades, query.unretrieved):
            grades = GRADES[live.grades](random, len(side))
            sides.append((grades * (np.array(side, int) > 0)).tolist())
        queries.append(query._replace(grades=sides[0], unretrieved=sides[1]))
    return queries


# ---- retrieval ----


def _pytrec_eval(name: str, cut: str = "") -> Tool:
    def run(queries: list[Query], k: int | None) -> Values:
        import pytrec_eval

        qrels, found = rivals._qrels_and_run(queries)
        asked = name if k is None else f"{cut or name}.{k}"
        values = pytrec_eval.RelevanceEvaluator(qrels, {asked}).evaluate(found)
        key = asked.replace(".", "_")
        return [values[query.name][key] if query.name in values else None for query in queries]

    return run


# ---- learning to rank ----


def lightgbm_map(queries: list[Query], k: int | None) -> Values:
    return [rivals.lightgbm_mean([query], k, metric="map") for query in queries]


def _xgboost(metric: str, minus: str = "") -> Tool:
    return lambda queries, k: [rivals.xgboost_mean([query], k, minus, metric=metric) for query in queries]


def sklearn_dcg(queries: list[Query], k: int | None) -> Values:
    from sklearn.metrics import dcg_score

    return [float(dcg_score([query.grades], [query.scores], k=k)) for query in queries]


_NO_CUTOFF, _CUT = (None,), (1, 3, 10)
LIVE: dict[tuple[str, str], Live] = {
    ("pytrec_eval", "AP"): Live(_pytrec_eval("map", "map_cut"), "negative"),
    ("pytrec_eval", "P"): Live(_pytrec_eval("P"), "negative", _CUT),
    ("pytrec_eval", "R"): Live(_pytrec_eval("recall"), "negative", _CUT),
    ("pytrec_eval", "Success"): Live(_pytrec_eval("success"), "negative", _CUT),
    ("pytrec_eval", "RR"): Live(_pytrec_eval("recip_rank"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "Rprec"): Live(_pytrec_eval("Rprec"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "Bpref"): Live(_pytrec_eval("bpref"), "graded", _NO_CUTOFF),
    ("pytrec_eval", "SetP"): Live(_pytrec_eval("set_P"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "SetR"): Live(_pytrec_eval("set_recall"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "SetF"): Live(_pytrec_eval("set_F"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "SetAP"): Live(_pytrec_eval("set_map"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "NumRel"): Live(_pytrec_eval("num_rel"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "NumRet"): Live(_pytrec_eval("num_ret"), "negative", _NO_CUTOFF),
    ("ranx", "AP"): Live(rivals._ranx("map")),
    ("ranx", "P"): Live(rivals._ranx("precision")),
    ("ranx", "R"): Live(rivals._ranx("recall")),
    ("ranx", "RR"): Live(rivals._ranx("mrr")),
    ("ranx", "F"): Live(rivals._ranx("f1")),
    ("ranx", "Success"): Live(rivals._ranx("hit_rate")),
    ("ranx", "Rprec"): Live(rivals._ranx("r-precision"), cutoffs=_NO_CUTOFF),
    ("lightgbm", "AP"): Live(lightgbm_map),
    ("xgboost", "AP"): Live(_xgboost("map"), "binary"),
    ("xgboost-", "AP"): Live(_xgboost("map", "-"), "binary"),
    ("sklearn", "DCG"): Live(sklearn_dcg, "fractions", least=2),
}

assert {tool for tool, _ in LIVE} <= set(RIVALS)
