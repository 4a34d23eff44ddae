"""The tools themselves, each as a function (queries, k) -> value of each query, None where the tool reports nothing.

Every tool is run the way its users run it; what is asked of all of them is the same ragged data. `RIVALS`
says which packages a tool needs. Those that install together run in the tests; the others run in
scripts/regenerate_golden.py, which stores what they said in tests/golden/.
"""

import atexit
import functools
import importlib
import importlib.metadata
import importlib.util
import json
import math
import shutil
import subprocess
import sys
import tempfile
import types
import unittest.mock
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Query(NamedTuple):
    name: str
    grades: list[int]
    scores: list[float]
    doc_ids: list[str]
    unretrieved: list[int]  # grades of judged documents that were not returned

    @property
    def qrels(self):
        return dict(zip(self.doc_ids, self.grades, strict=True)) | {
            f"u{i}": grade for i, grade in enumerate(self.unretrieved)
        }

    @property
    def truth(self):
        return [item for item, grade in self.qrels.items() if grade >= 1]

    @property
    def ranked(self):
        """Rows by descending score, ties in row order."""
        return sorted(range(len(self.scores)), key=lambda row: -self.scores[row])


Values = list[float | None]
Tool = Callable[[list[Query], int | None], Values]


class Rival(NamedTuple):
    run: Tool
    package: str
    modules: tuple[str, ...]
    least: int = 1  # documents that a query must have, and must return
    needs_perl: bool = False
    uncut: bool = True  # the tool has a form without cutoff
    ties: bool = True  # it says what it does about ties
    longest: int | None = None

    @property
    def missing(self):
        for module in self.modules:
            try:
                if importlib.util.find_spec(module) is None:
                    return f"there is no {module}"
            except ImportError as error:
                return str(error)
        return "there is no perl" if self.needs_perl and shutil.which("perl") is None else None

    @property
    def version(self):
        distribution, *_ = importlib.metadata.packages_distributions()[self.modules[0].partition(".")[0]]
        return f"{self.package} {importlib.metadata.version(distribution)}"


def random_queries(seed, n=48, *, least=1, longest=60, highest=4, ties=True, zero_every=6):
    """Ragged queries with ties, unretrieved judged documents, and every sixth without a relevant document.

    Scores are multiples of 1/8 and so the same in every precision; document ids are shuffled, and of uneven
    length.
    """
    random = np.random.default_rng(seed)
    queries = []
    for number in range(n):
        size = (
            int(random.integers(least, longest + 1))
            if number % 3
            else int(random.integers(least, min(max(least, 9), longest) + 1))
        )
        grades = random.integers(0, highest + 1, size) * (random.random(size) < 0.6)
        unretrieved = random.integers(0, highest + 1, int(random.integers(0, 6)))
        if zero_every and number % zero_every == 5:
            grades, unretrieved = grades * 0, unretrieved * 0
        scores = random.integers(0, max(size // 2, 2), size) / 8 if ties else random.permutation(size) / 8
        ids = random.permutation(size * 3)[:size]
        queries.append(
            Query(
                str(number + 1),
                grades.tolist(),
                scores.tolist(),
                [f"d{i}" for i in ids],
                unretrieved.tolist(),
            )
        )
    return queries


def each(value, **options):
    """A tool of one query at a time."""
    return lambda queries, k: [value(query, k, **options) for query in queries]


# ---- learning to rank: lists of labels and scores ----


def sklearn(query, k):
    from sklearn.metrics import ndcg_score

    return float(ndcg_score([query.grades], [query.scores], k=k))


def booster(mean, **options):
    """A tool that has only the mean: it is asked for one query at a time."""
    name = mean.__name__.removesuffix("_mean")
    return Rival(each(lambda query, k: mean([query], k, **options)), name, (name,))


def lightgbm_mean(queries, k, weight=None, metric="ndcg"):
    """The metric of a model without trees on data with initial scores: the scores alone."""
    import lightgbm

    parameters = {
        "objective": "lambdarank", "metric": metric, "eval_at": [k or 100_000], "verbose": -1, "num_threads": 1,
        "min_data_in_leaf": 1, "min_data_in_bin": 1, "feature_pre_filter": False,
    }  # fmt: skip
    lengths = [len(query.grades) for query in queries]
    columns = {
        "data": np.arange(sum(lengths), dtype=np.float64)[:, None],
        "label": [grade for query in queries for grade in query.grades],
        "init_score": [score for query in queries for score in query.scores],
        "group": lengths,
        "weight": None if weight is None else np.repeat(weight, lengths),
    }
    training = lightgbm.Dataset(**columns, params=parameters)
    booster = lightgbm.Booster(parameters, training)
    booster.add_valid(lightgbm.Dataset(**columns, reference=training, params=parameters), "valid")
    return float(booster.eval_valid()[0][2])


def xgboost_mean(queries, k, minus="", weight=None, metric="ndcg"):
    import xgboost

    grades = [grade for query in queries for grade in query.grades]
    data = xgboost.DMatrix(
        np.zeros((len(grades), 1)), label=grades, base_margin=[s for query in queries for s in query.scores]
    )
    data.set_group([len(query.grades) for query in queries])
    if weight is not None:
        data.set_weight(weight)
    objective = "rank:ndcg" if metric == "ndcg" else "rank:map"
    metric = metric if k is None else f"{metric}@{k}"
    if minus:
        metric = metric + "-" if k is not None else metric + "@-"
    parameters = {
        "objective": objective,
        "eval_metric": metric,
        "nthread": 1,
        "verbosity": 0,
        "lambdarank_pair_method": "mean",
    }
    booster = xgboost.train(parameters, data, num_boost_round=0)
    return float(booster.eval(data).rpartition(":")[2])  # it prints all digits


def catboost_mean(queries, k, kind="Base", denominator="LogPosition", weight=None):
    return catboost_metric(
        queries, f"NDCG:top={-1 if k is None else k};type={kind};denominator={denominator}", weight
    )


def catboost_metric(queries, metric, weight=None):
    from catboost.utils import eval_metric

    return eval_metric(
        [grade for query in queries for grade in query.grades],
        [score for query in queries for score in query.scores],
        metric,
        group_id=[number for number, query in enumerate(queries) for _ in query.grades],
        group_weight=None
        if weight is None
        else [w for w, query in zip(weight, queries, strict=True) for _ in query.grades],
        thread_count=1,
    )[0]


def torchmetrics(query, k):
    import torch
    from torchmetrics.retrieval import RetrievalNormalizedDCG

    indexes = torch.zeros(len(query.grades), dtype=torch.long)
    metric = RetrievalNormalizedDCG(top_k=k)
    return float(metric(torch.tensor(query.scores), torch.tensor(query.grades), indexes=indexes))


def ignite(query, k):
    import torch
    from ignite.exceptions import NotComputableError
    from ignite.metrics.rec_sys.ndcg import NDCG

    metric = NDCG(top_k=[k or len(query.grades)])
    metric.update((torch.tensor([query.scores]), torch.tensor([query.grades], dtype=torch.float32)))
    try:
        return metric.compute()[0]
    except NotComputableError:
        return None


def allrank(query, k):
    import torch

    grades, ats = torch.tensor([query.grades], dtype=torch.float32), None if k is None else [k]
    return float(_allrank_metrics().ndcg(torch.tensor([query.scores]), grades, ats=ats))


def _allrank_metrics():
    # its metrics take one constant from the module that loads data, and that one needs an old torchvision
    loading = types.SimpleNamespace(PADDED_Y_VALUE=-1)
    with unittest.mock.patch.dict(sys.modules, {"allrank.data.dataset_loading": loading}):
        return importlib.import_module("allrank.models.metrics")


def rax(query, k):
    import jax.numpy as jnp
    import rax as package

    return float(package.ndcg_metric(jnp.array(query.scores), jnp.array(query.grades, dtype=float), topn=k))


_DRAWS = 2000


def tf_ranking(queries, k):
    """The expectation of what TF-Ranking draws: its mean over orders of ties in which each document takes
    each place equally often.

    That suffices because DCG is a sum over ranks. That it does shuffle ties fairly is checked on real draws.
    """
    values = []
    for query in queries:
        orders = _rotations_of_ties(query.scores)
        grades = [[query.grades[row] for row in order] for order in orders]
        distinct = [[-float(rank) for rank in range(len(query.grades))]] * len(orders)
        expected = float(np.mean(_tf_ranking(grades, distinct, k)))
        if len(orders) > 1 and len(values) < 6:
            draws = _tf_ranking([query.grades] * _DRAWS, [query.scores] * _DRAWS, k)
            if abs(np.mean(draws) - expected) > 5 * np.std(draws) / math.sqrt(_DRAWS) + 1e-6:
                raise AssertionError(
                    f"query {query.name}: draws average to {np.mean(draws)}, where {expected} was expected"
                )
        values.append(expected)
    return values


def _tf_ranking(grades, scores, k):
    import tensorflow as tf
    from tensorflow_ranking.python.metrics_impl import NDCGMetric

    metric = NDCGMetric("ndcg", k)
    values, _ = metric.compute(tf.constant(grades, tf.float32), tf.constant(scores, tf.float32), None)
    return values.numpy()[:, 0].astype(np.float64)


def tf_ranking_weighted_mean(queries, k, weight):
    """The mean that its Keras metric takes: documents of a query have its weight, and padding has label -1."""
    import tensorflow as tf
    import tensorflow_ranking as tfr

    width = max(len(query.grades) for query in queries)

    def padded(lists, filler):
        return tf.constant([[*each, *[filler] * (width - len(each))] for each in lists], tf.float32)

    metric = tfr.keras.metrics.NDCGMetric(topn=k)
    metric.update_state(
        padded([query.grades for query in queries], -1),
        padded([query.scores for query in queries], 0),
        padded([[w] * len(query.grades) for query, w in zip(queries, weight, strict=True)], 0),
    )
    return float(metric.result())


def _rotations_of_ties(scores):
    groups = [
        [row for row, each in enumerate(scores) if each == score]
        for score in sorted(set(scores), reverse=True)
    ]
    turns = math.lcm(*map(len, groups)) if groups else 1
    return [
        [group[(place + turn) % len(group)] for group in groups for place in range(len(group))]
        for turn in range(turns)
    ]


# ---- retrieval: qrels and runs ----


def _qrels_and_run(queries):
    qrels = {
        query.name: {document: int(grade) for document, grade in query.qrels.items()} for query in queries
    }
    run = {query.name: dict(zip(query.doc_ids, query.scores, strict=True)) for query in queries}
    return qrels, {name: documents for name, documents in run.items() if documents}


def pytrec_eval(queries, k):
    import pytrec_eval as package

    qrels, run = _qrels_and_run(queries)
    name = "ndcg" if k is None else f"ndcg_cut_{k}"
    found = package.RelevanceEvaluator(qrels, {"ndcg" if k is None else f"ndcg_cut.{k}"}).evaluate(run)
    return [found[query.name][name] if query.name in found else None for query in queries]


def ir_measures(queries, k):
    import ir_measures as package

    qrels, run = _qrels_and_run(queries)
    measure = package.nDCG if k is None else package.nDCG @ k
    found = {each.query_id: each.value for each in package.pytrec_eval.iter_calc([measure], qrels, run)}
    mean = package.pytrec_eval.calc_aggregate([measure], qrels, run)[measure]
    values = [found.get(query.name, 0.0) if query.qrels else None for query in queries]
    counted = [value for value in values if value is not None]
    if not math.isclose(mean, sum(counted) / len(counted), abs_tol=1e-12):
        raise AssertionError(
            f"ir_measures averages to {mean} what averages to {sum(counted) / len(counted)} here"
        )
    return values


def gdeval(queries, k):
    import ir_measures as package

    qrels, run = _qrels_and_run(queries)
    measure = package.nDCG(dcg="exp-log2") @ (k or 1000)
    found = {each.query_id: each.value for each in package.gdeval.iter_calc([measure], qrels, run)}
    printed = _printed_by_gdeval(qrels, run, k or 1000)
    # ir_measures fills what gdeval.pl does not print
    return [found[query.name] if query.name in printed else None for query in queries]


def _printed_by_gdeval(qrels, run, k):
    import ir_measures as package

    script = Path(package.__file__).parent / "bin" / "gdeval.pl"
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, "qrels"), Path(folder, "run")]
        files[0].write_text("".join(f"{q} 0 {d} {g}\n" for q, each in qrels.items() for d, g in each.items()))
        files[1].write_text(
            "".join(f"{q} Q0 {d} 1 {s} run\n" for q, each in run.items() for d, s in each.items())
        )
        output = subprocess.run(
            [shutil.which("perl"), script, *files, str(k)], check=True, capture_output=True, text=True
        ).stdout
    return {line.split(",")[1] for line in output.splitlines()[1:]} - {"amean"}


def ranx(queries, k, metric):
    """In a process of its own: importing ranx sets Numba's threading layer, and evaluating its number of threads, for good."""
    worker = _ranx_worker()
    worker.stdin.write(json.dumps([metric, queries, k]) + "\n")
    worker.stdin.flush()
    return json.loads(worker.stdout.readline())


@functools.cache
def _ranx_worker():
    worker = subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(worker.__exit__, None, None, None)  # close its input, and wait until it ends
    return worker


def _ranx_here(queries, k, metric):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ranx as package

        qrels, run = _qrels_and_run(queries)
        kept = {name: run[name] for name in qrels if name in run and qrels[name]}
        name = metric if k is None else f"{metric}@{k}"
        # ids of one width, since ranx compiles 20 s for each
        ids = {q: {d: f"{place:03}" for place, d in enumerate(qrels[q] | kept[q])} for q in kept}
        results = package.Run({q: {ids[q][d]: float(s) for d, s in kept[q].items()} for q in kept})
        judgments = package.Qrels({q: {ids[q][d]: grade for d, grade in qrels[q].items()} for q in kept})
        package.evaluate(judgments, results, name)
        found = results.scores[name]
    # make_comparable=True gives queries without results an empty list, and they count as 0
    names = [query.name for query in queries]
    return [found[name] if name in kept else (0.0 if qrels[name] else None) for name in names]


# ---- recommendation: lists of items in their order, and truth ----


def lenskit(query, k, gain=None):
    from lenskit.data import ItemList
    from lenskit.metrics import NDCG

    truth = query.qrels if gain else dict.fromkeys(query.truth, 1)
    items = np.array([query.doc_ids[row] for row in query.ranked], dtype=str)
    ratings = np.array(list(truth.values()), dtype=float)
    test = ItemList(item_ids=np.array(list(truth), dtype=str), rating=ratings)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = (
            NDCG(k, gain=gain).measure_list(ItemList(item_ids=items, ordered=True), test)
            if truth
            else math.nan
        )
    return None if math.isnan(found) else float(found)


def _pairs_of_truth(queries, columns):
    import pandas as pd

    return pd.DataFrame([(query.name, item) for query in queries for item in query.truth], columns=columns)


def rectools(queries, k, *, achievable=False):
    import pandas as pd
    from rectools.metrics import NDCG

    rows = [(q.name, q.doc_ids[row], rank) for q in queries for rank, row in enumerate(q.ranked, 1)]
    recommended = pd.DataFrame(rows, columns=["user_id", "item_id", "rank"])
    truth = _pairs_of_truth(queries, ["user_id", "item_id"])
    found = NDCG(k, divide_by_achievable=achievable).calc_per_user(recommended, truth)
    return [float(found[query.name]) if query.name in found.index else None for query in queries]


def of_truth(value, **options):
    """A tool that is not asked where nothing is true."""
    return each(lambda query, k: float(value(query, k, **options)) if query.truth else None)


def cornac(query, k):
    from cornac.metrics import NDCG

    numbers = {item: number for number, item in enumerate(query.qrels)}
    positives = np.array([numbers[item] for item in query.truth])
    ranked = np.array([numbers[query.doc_ids[row]] for row in query.ranked])
    return NDCG(-1 if k is None else k).compute(gt_pos=positives, pd_rank=ranked)


def recpack(query, k):
    import scipy.sparse
    from recpack.metrics import NDCGK

    items = list(query.qrels)
    truth, scores = np.zeros((1, len(items))), np.zeros((1, len(items)))
    truth[0, [items.index(item) for item in query.truth]] = 1
    for item, score in zip(query.doc_ids, query.scores, strict=True):
        scores[0, items.index(item)] = score + 1  # a score of 0 is no score in a sparse matrix
    metric = NDCGK(k)
    metric.calculate(scipy.sparse.csr_matrix(truth), scipy.sparse.csr_matrix(scores))
    return metric.value


def recommenders(query, k):
    import pandas as pd
    from recommenders.evaluation.python_evaluation import ndcg_at_k

    true = pd.DataFrame({"userID": 1, "itemID": query.truth, "rating": 1.0})
    columns = {"itemID": query.doc_ids, "prediction": query.scores}
    ranked = {name: [values[row] for row in query.ranked] for name, values in columns.items()}
    return ndcg_at_k(true, pd.DataFrame({"userID": 1} | ranked), k=k)


def replay(queries, k):
    import pandas as pd
    from replay.metrics import NDCG, PerUser

    metric = NDCG([k], query_column="user", item_column="item", rating_column="rating", mode=PerUser())
    rows = [(q.name, *pair) for q in queries for pair in zip(q.doc_ids, q.scores, strict=True)]
    recommended = pd.DataFrame(rows, columns=["user", "item", "rating"])
    truth = _pairs_of_truth(queries, ["user", "item"])
    found = metric(recommended, truth)[f"NDCG-PerUser@{k}"]
    return [float(found[query.name]) if query.name in found else None for query in queries]


def recbole(query, k):
    vars(np)["float"] = float  # RecBole 1.2.1 uses the name that NumPy 1.24 took away
    from recbole.evaluator.metrics import NDCG

    hits = np.array([[query.doc_ids[row] in query.truth for row in query.ranked][:k]])
    hits = np.pad(hits, ((0, 0), (0, k - hits.shape[1])))
    return NDCG.metric_info(None, hits, np.array([len(query.truth)]))[0, k - 1]


def sentence_transformers(query, k, metric="ndcg@k"):
    """InformationRetrievalEvaluator.compute_metrics, on hits: it needs no model."""
    evaluator = _information_retrieval_evaluator()
    fields = {f"{name}_at_k": [k] for name in ("accuracy", "precision_recall", "mrr", "map")}
    self = types.SimpleNamespace(
        queries_ids=["q"], queries=["q"], relevant_docs={"q": set(query.truth)}, ndcg_at_k=[k],
        compute_dcg_at_k=evaluator.compute_dcg_at_k, **fields,
    )  # fmt: skip
    pairs = zip(query.doc_ids, query.scores, strict=True)
    hits = [{"corpus_id": item, "score": score} for item, score in pairs]
    return evaluator.compute_metrics(self, [hits])[metric][k]


def _information_retrieval_evaluator():
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    return InformationRetrievalEvaluator


def implicit(query, k):
    """ndcg_at_k asks a model for its recommendations; this one gives the lists."""
    import scipy.sparse
    from implicit.evaluation import ndcg_at_k

    items = list(query.qrels)
    grades = [float(grade >= 1) for grade in query.qrels.values()]
    truth = scipy.sparse.csr_matrix([[*grades, 0.0]])  # its AUC needs a negative
    truth.eliminate_zeros()
    ranked = np.array([[items.index(query.doc_ids[row]) for row in query.ranked][:k]], dtype=np.int32)
    ranked = np.pad(ranked, ((0, 0), (0, k - ranked.shape[1])), constant_values=-1)
    found = ranked, np.zeros(ranked.shape, np.float32)
    model = types.SimpleNamespace(recommend=lambda *_, **__: found)
    return ndcg_at_k(model, truth, truth, K=k, show_progress=False)


RIVALS = {
    "sklearn": Rival(each(sklearn), "scikit-learn", ("sklearn",), least=2),
    "pytrec_eval": Rival(pytrec_eval, "pytrec_eval-terrier", ("pytrec_eval",)),
    "ir_measures": Rival(ir_measures, "ir_measures", ("ir_measures", "pytrec_eval")),
    "gdeval": Rival(gdeval, "ir_measures", ("ir_measures",), uncut=False, needs_perl=True),
    "ranx": Rival(partial(ranx, metric="ndcg"), "ranx", ("ranx",)),
    "ranx_burges": Rival(partial(ranx, metric="ndcg_burges"), "ranx", ("ranx",)),
    "lightgbm": booster(lightgbm_mean),
    "xgboost": booster(xgboost_mean),
    "xgboost-": booster(xgboost_mean, minus="-"),
    "catboost": booster(catboost_mean),
    "catboost_exp": booster(catboost_mean, kind="Exp"),
    "catboost_position": booster(catboost_mean, denominator="Position"),
    "catboost_exp_position": booster(catboost_mean, kind="Exp", denominator="Position"),
    "torchmetrics": Rival(each(torchmetrics), "torchmetrics", ("torchmetrics",)),
    "ignite": Rival(each(ignite), "pytorch-ignite", ("ignite",)),
    "allrank": Rival(each(allrank), "allrank", ("allrank", "torch"), longest=16),
    "rax": Rival(each(rax), "rax", ("rax",)),
    "tf_ranking": Rival(tf_ranking, "tensorflow-ranking", ("tensorflow_ranking",)),
    "lenskit": Rival(each(lenskit, gain="rating"), "lenskit", ("lenskit",)),
    "lenskit_binary": Rival(each(lenskit), "lenskit", ("lenskit",)),
    "rectools": Rival(rectools, "rectools", ("rectools",), uncut=False),
    "rectools_achievable": Rival(partial(rectools, achievable=True), "rectools", ("rectools",), uncut=False),
    "cornac": Rival(of_truth(cornac), "cornac", ("cornac.metrics",)),
    "recpack": Rival(of_truth(recpack), "recpack", ("recpack.metrics",), uncut=False, ties=False),
    "recommenders": Rival(
        of_truth(recommenders), "recommenders", ("recommenders.evaluation.python_evaluation",), uncut=False
    ),
    "replay": Rival(replay, "replay-rec", ("replay.metrics",), uncut=False),
    "recbole": Rival(of_truth(recbole), "recbole", ("recbole.evaluator.metrics",), uncut=False, ties=False),
    "sentence_transformers": Rival(
        of_truth(sentence_transformers),
        "sentence-transformers",
        ("sentence_transformers.sentence_transformer.evaluation",),
        uncut=False,
    ),
    "implicit": Rival(of_truth(implicit), "implicit", ("implicit.evaluation",), uncut=False),
}


if __name__ == "__main__":
    for line in sys.stdin:
        wanted, rows, cutoff = json.loads(line)
        answer = _ranx_here([Query(*row) for row in rows], cutoff, wanted)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
