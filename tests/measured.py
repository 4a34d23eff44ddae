"""How to call each tool for each of its measures but nDCG: `LIVE`, a row for each tool and measure.

A tool is a function as in rivals.py: queries and a cutoff give a value for each query, None where it reports
nothing. `test_measures_of_tools` asks all of them about the same kind of random data.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import rivals
from rivals import RIVALS, Tool, random_queries


class Live(NamedTuple):
    run: Tool
    grades: str = "graded"  # one of GRADES: what the tool takes
    cutoffs: tuple[int | None, ...] = (1, 3, 10, None)
    ties: bool = True  # it says what it does about ties
    least: int = 1  # documents that a query must have
    shift: float = 0.0  # added to the scores, which are 0 and above


GRADES = {
    "binary": lambda random, size: random.integers(0, 2, size),
    "graded": lambda random, size: random.integers(0, 5, size),
    "negative": lambda random, size: random.integers(-2, 5, size),
    "fractions": lambda random, size: random.integers(0, 9, size) / 8,
}


def ragged(seed, live, n=48):
    """Queries as of `random_queries`, with grades that the tool takes; every sixth has no relevant document."""
    random = np.random.default_rng(seed)
    queries = []
    for query in random_queries(seed, n, least=live.least, ties=live.ties):
        sides = []
        for side in (query.grades, query.unretrieved):
            grades = GRADES[live.grades](random, len(side))
            sides.append((grades * (np.array(side, int) > 0)).tolist())
        scores = [score + live.shift for score in query.scores]
        queries.append(query._replace(grades=sides[0], unretrieved=sides[1], scores=scores))
    return queries


# ---- retrieval ----


def _pytrec_eval(name, cut=""):
    def run(queries, k):
        import pytrec_eval

        qrels, found = rivals._qrels_and_run(queries)
        asked = name if k is None else f"{cut or name}.{k}"
        values = pytrec_eval.RelevanceEvaluator(qrels, {asked}).evaluate(found)
        key = asked.replace(".", "_", 1)
        return [values[query.name][key] if query.name in values else None for query in queries]

    return run


def _ir_measures(notation, provider="pytrec_eval", least=1):
    def run(queries, k):
        import ir_measures

        qrels, found = rivals._qrels_and_run(queries)
        measure = ir_measures.parse_measure(notation if k is None else f"{notation}@{k}")
        values = {
            each.query_id: each.value
            for each in (getattr(ir_measures, provider) if provider else ir_measures).iter_calc(
                [measure], qrels, found
            )
        }
        if provider == "gdeval" and least:
            printed = rivals._printed_by_gdeval(qrels, found, k or 1000)
            values = {name: value for name, value in values.items() if name in printed}
            return [values.get(query.name) for query in queries]
        return [values.get(query.name, 0.0) if query.qrels else None for query in queries]

    return run


# ---- learning to rank ----


def lightgbm_map(queries, k):
    return [rivals.lightgbm_mean([query], k, metric="map") for query in queries]


def _xgboost(metric, minus=""):
    return lambda queries, k: [rivals.xgboost_mean([query], k, minus, metric=metric) for query in queries]


def sklearn_dcg(queries, k):
    from sklearn.metrics import dcg_score

    return [float(dcg_score([query.grades], [query.scores], k=k)) for query in queries]


def sklearn_auc(queries, k):
    from sklearn.metrics import roc_auc_score

    values = [float(roc_auc_score(query.grades, query.scores)) for query in queries]
    return [None if value != value else value for value in values]


def sklearn_ap(queries, k):
    from sklearn.metrics import average_precision_score

    return [float(average_precision_score(query.grades, query.scores)) for query in queries]


def sklearn_lrap(queries, k):
    from sklearn.metrics import label_ranking_average_precision_score as lrap

    return [float(lrap([query.grades], [query.scores])) for query in queries]


def sklearn_ranking_loss(queries, k):
    from sklearn.metrics import label_ranking_loss

    return [1 - float(label_ranking_loss([query.grades], [query.scores])) for query in queries]


def _catboost(name, options=""):
    def run(queries, k):
        metric = options or f"{name}:top={-1 if k is None else k}"
        return [rivals.catboost_metric([query], metric) for query in queries]

    return run


def _torchmetrics(name, **options):
    def run(queries, k):
        import torch
        import torchmetrics.retrieval

        given = options if k is None else {**options, "top_k": k}
        metric = getattr(torchmetrics.retrieval, name)(**given)
        values = []
        for query in queries:
            indexes = torch.zeros(len(query.grades), dtype=torch.long)
            metric.update(torch.tensor(query.scores), torch.tensor(query.grades), indexes=indexes)
            values.append(float(metric.compute()))
            metric.reset()
        return values

    return run


def _sentence_transformers(metric):
    return rivals.of_truth(rivals.sentence_transformers, metric=metric)


_NO_CUTOFF, _CUT = (None,), (1, 3, 10)
LIVE = {
    ("pytrec_eval", "AP"): Live(_pytrec_eval("map", "map_cut"), "negative"),
    ("pytrec_eval", "P"): Live(_pytrec_eval("P"), "negative", _CUT),
    ("pytrec_eval", "R"): Live(_pytrec_eval("recall"), "negative", _CUT),
    ("pytrec_eval", "Success"): Live(_pytrec_eval("success"), "negative", _CUT),
    ("pytrec_eval", "RR"): Live(_pytrec_eval("recip_rank"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "Rprec"): Live(_pytrec_eval("Rprec"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "IPrec@0.1"): Live(_pytrec_eval("iprec_at_recall.0.10"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "IPrec@0.35"): Live(_pytrec_eval("iprec_at_recall.0.35"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "infAP"): Live(_pytrec_eval("infAP"), "graded", _NO_CUTOFF),
    ("pytrec_eval", "Bpref"): Live(_pytrec_eval("bpref"), "graded", _NO_CUTOFF),
    ("pytrec_eval", "SetP"): Live(_pytrec_eval("set_P"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "SetR"): Live(_pytrec_eval("set_recall"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "SetF"): Live(_pytrec_eval("set_F"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "SetAP"): Live(_pytrec_eval("set_map"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "NumRel"): Live(_pytrec_eval("num_rel"), "negative", _NO_CUTOFF),
    ("pytrec_eval", "NumRet"): Live(_pytrec_eval("num_ret"), "negative", _NO_CUTOFF),
    ("ranx", "AP"): Live(partial(rivals.ranx, metric="map")),
    ("ranx", "P"): Live(partial(rivals.ranx, metric="precision")),
    ("ranx", "R"): Live(partial(rivals.ranx, metric="recall")),
    ("ranx", "RR"): Live(partial(rivals.ranx, metric="mrr")),
    ("ranx", "F"): Live(partial(rivals.ranx, metric="f1")),
    ("ranx", "Success"): Live(partial(rivals.ranx, metric="hit_rate")),
    ("ranx", "Rprec"): Live(partial(rivals.ranx, metric="r-precision"), cutoffs=_NO_CUTOFF),
    ("lightgbm", "AP"): Live(lightgbm_map),
    ("xgboost", "AP"): Live(_xgboost("map"), "binary"),
    ("xgboost-", "AP"): Live(_xgboost("map", "-"), "binary"),
    ("sklearn", "DCG"): Live(sklearn_dcg, "fractions", least=2),
    ("ranx", "NumRet"): Live(partial(rivals.ranx, metric="hits")),
    **{
        ("ir_measures", measure): Live(
            _ir_measures(measure, "" if measure == "RR" else "pytrec_eval"), "negative", cutoffs
        )
        for measure, cutoffs in {
            "AP": (1, 10, None),
            "P": _CUT,
            "R": _CUT,
            "RR": (1, 10, None),
            "Success": _CUT,
            "Rprec": _NO_CUTOFF,
            "Bpref": _NO_CUTOFF,
            "infAP": _NO_CUTOFF,
            "SetP": _NO_CUTOFF,
            "SetR": _NO_CUTOFF,
            "SetF": _NO_CUTOFF,
        }.items()
    },
    ("ir_measures", "ERR"): Live(_ir_measures("ERR", "gdeval", 0), "graded", _CUT),
    ("ir_measures", "Judged"): Live(_ir_measures("Judged", "judged"), "negative", _CUT),
    ("gdeval", "ERR"): Live(_ir_measures("ERR", "gdeval"), "graded", _CUT),
    ("catboost", "AP"): Live(_catboost("MAP"), "fractions"),
    ("catboost", "R"): Live(_catboost("RecallAt"), "fractions"),
    ("catboost", "RR"): Live(_catboost("MRR"), "fractions"),
    ("sklearn", "AP"): Live(sklearn_ap, "binary", _NO_CUTOFF, least=2),
    ("sklearn_ranking", "AP"): Live(sklearn_lrap, "binary", _NO_CUTOFF, least=2),
    ("sklearn", "AUC"): Live(sklearn_auc, "binary", _NO_CUTOFF, least=2),
    ("sklearn_ranking", "AUC"): Live(sklearn_ranking_loss, "binary", _NO_CUTOFF, least=2),
    ("catboost", "AUC"): Live(_catboost("QueryAUC", "QueryAUC:type=Ranking"), "graded", _NO_CUTOFF),
    ("torchmetrics", "AUC"): Live(_torchmetrics("RetrievalAUROC"), "binary", _NO_CUTOFF),
    ("catboost", "P"): Live(_catboost("PrecisionAt"), "fractions"),
    ("catboost", "ERR"): Live(_catboost("ERR"), "fractions"),
    ("catboost", "PFound"): Live(_catboost("PFound"), "fractions"),
    ("xgboost", "P"): Live(_xgboost("pre"), "binary"),
    ("xgboost", "AUC"): Live(_xgboost("auc"), "graded", _NO_CUTOFF, least=3),
    ("torchmetrics", "AP"): Live(_torchmetrics("RetrievalMAP"), "binary", ties=False, shift=-1.0),
    ("torchmetrics", "P"): Live(_torchmetrics("RetrievalPrecision"), "binary", ties=False, shift=-1.0),
    ("torchmetrics", "R"): Live(_torchmetrics("RetrievalRecall"), "binary", ties=False, shift=-1.0),
    ("torchmetrics", "RR"): Live(_torchmetrics("RetrievalMRR"), "binary", ties=False, shift=-1.0),
    ("catboost", "DCG"): Live(_catboost("DCG"), "fractions"),
    ("torchmetrics", "Success"): Live(_torchmetrics("RetrievalHitRate"), "binary", ties=False),
    ("torchmetrics", "Rprec"): Live(_torchmetrics("RetrievalRPrecision"), "binary", _NO_CUTOFF, ties=False),
    ("sentence_transformers", "Success"): Live(_sentence_transformers("accuracy@k"), "negative", _CUT),
    ("sentence_transformers", "P"): Live(_sentence_transformers("precision@k"), "negative", _CUT),
    ("sentence_transformers", "R"): Live(_sentence_transformers("recall@k"), "negative", _CUT),
    ("sentence_transformers", "RR"): Live(_sentence_transformers("mrr@k"), "negative", _CUT),
    ("sentence_transformers", "AP"): Live(_sentence_transformers("map@k"), "negative", _CUT),
}

RIVAL_OF = {"sklearn_ranking": "sklearn"}  # conventions of functions that rivals.py does not have
assert {tool for tool, _ in LIVE} <= {*RIVALS, *RIVAL_OF}
