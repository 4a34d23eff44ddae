"""Each measure of each convention against the tool itself, and measures of our own notation against cwl_eval, ir_measures and
scikit-learn, on random data that no two runs share by chance. What trec_eval has is in tests/trec_eval.
"""

from functools import partial

import numpy as np
import pytest
import rivals
from conventions_data import differences, rankings_of
from measured import LIVE, RIVAL_OF, ragged
from rivals import RIVALS

import fastndcg as fn

# as in test_conventions_rivals
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("conventions_rivals"),
]

CASES = [(tool, measure, k) for (tool, measure), live in LIVE.items() for k in live.cutoffs]


@pytest.mark.rivals
@pytest.mark.parametrize(("tool", "measure", "k"), CASES)
def test_the_tool_says_so(tool, measure, k):
    if (why := RIVALS[RIVAL_OF.get(tool, tool)].missing) is not None:
        pytest.skip(f"{tool} is not installed here: {why}")
    live = LIVE[tool, measure]
    queries = ragged(11, live)
    assert not differences(queries, tool, k, live.run(queries, k), measure)


WEIGHTED = {
    ("lightgbm", "nDCG@5"): lambda queries, weight: rivals.lightgbm_mean(queries, 5, weight),
    ("xgboost", "nDCG@5"): lambda queries, weight: rivals.xgboost_mean(queries, 5, "", weight),
    ("xgboost-", "nDCG@5"): lambda queries, weight: rivals.xgboost_mean(queries, 5, "-", weight),
    ("catboost", "nDCG@5"): lambda queries, weight: rivals.catboost_mean(queries, 5, weight=weight),
    ("lightgbm", "AP@5"): lambda queries, weight: rivals.lightgbm_mean(queries, 5, weight, "map"),
    ("xgboost", "AP@5"): lambda queries, weight: rivals.xgboost_mean(queries, 5, "", weight, "map"),
    ("xgboost-", "AP@5"): lambda queries, weight: rivals.xgboost_mean(queries, 5, "-", weight, "map"),
    ("xgboost", "P@3"): lambda queries, weight: rivals.xgboost_mean(queries, 3, "", weight, "pre"),
    **{
        ("catboost", ours): partial(lambda queries, weight, name: rivals.catboost_metric(queries, name, weight), name=name)
        for ours, name in {
            "AP@5": "MAP:top=5", "P@3": "PrecisionAt:top=3", "R@5": "RecallAt:top=5", "RR@5": "MRR:top=5", "ERR@5": "ERR:top=5",
            "PFound@5": "PFound:top=5", "DCG@5": "DCG:top=5", "AUC": "QueryAUC:type=Ranking",
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize(("tool", "measure"), WEIGHTED)
@pytest.mark.rivals
def test_means_with_weights(tool, measure):
    if (why := RIVALS[tool].missing) is not None:
        pytest.skip(f"{tool} is not installed here: {why}")
    queries = ragged(12, LIVE["xgboost", "AP"], 30)
    weight = 1 + np.random.default_rng(12).integers(0, 9, 30) / 4
    ours = fn.evaluate(rankings_of(queries, weight=weight), measure, convention=tool).mean()[measure]
    assert WEIGHTED[tool, measure](queries, weight.tolist()) == pytest.approx(ours, abs=1e-9)


def test_a_micro_mean_adds_up_hits_and_what_was_possible():
    mine = fn.conventions["recsys"].replace(
        name="mine",
        P={"denominator": "n_relevant", "weights": "min(n_relevant, k)", "unjudged": "skip_irrelevant"},
    )
    queries = ragged(13, LIVE["xgboost", "AP"], 30)
    hits = possible = 0
    for query in queries:
        top = [query.grades[row] for row in query.ranked[:3]]
        hits, possible = hits + sum(top), possible + min(3, sum(query.qrels.values()))
    whole = fn.evaluate(rankings_of(queries), "P@3", convention=mine)
    assert whole.mean()["P@3"] == pytest.approx(hits / possible, abs=1e-15)
    parts = [fn.evaluate(rankings_of(part), "P@3", convention=mine) for part in (queries[:7], queries[7:])]
    merged = parts[0]._mean_sums(0) + parts[1]._mean_sums(0)
    assert merged.mean(mine.on("P")) == whole.mean()["P@3"]


def rankings_in_order(qrels, run, queries):
    """The run in trec_eval's order: falling score, then falling document id, which `ties="input"` keeps."""
    relevance, scores, flags, pool = [], [], [], []
    for query in queries:
        ranked = sorted(
            run[query], key=lambda document: (np.float32(run[query][document]), document), reverse=True
        )
        relevance.append([max(qrels[query].get(document, 0), 0) for document in ranked])
        flags += [qrels[query].get(document, -1) >= 0 for document in ranked]
        scores.append(np.array([run[query][document] for document in ranked], np.float32))
        pool.append([grade for grade in qrels[query].values() if grade >= 0])
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in pool])])
    judged = (offsets, np.array([grade for one in pool for grade in one], np.int64))
    return fn.Rankings.from_lists(relevance, scores, judged=judged, is_judged=np.array(flags))


def invented(seed, queries=60):
    """Ragged, tied, with unjudged documents and judged ones that were not retrieved, some queries without a relevant one."""
    rng = np.random.default_rng(seed)
    qrels = {}
    run = {}
    for number in range(queries):
        ids = [f"d{i}" for i in rng.permutation(int(rng.integers(3, 80)))]
        retrieved = ids[: max(1, int(len(ids) * rng.random()))]
        run[f"q{number}"] = {document: float(rng.integers(0, 12)) / 4 for document in retrieved}
        top = 1 if number % 10 == 0 else 5
        qrels[f"q{number}"] = {
            document: int(rng.integers(0, top)) for document in ids if rng.random() < 0.6
        } or {ids[0]: 1}
    return qrels, run


# ---- ir_measures and its providers ----


def provided(notation, provider, qrels, run):
    ir_measures = pytest.importorskip("ir_measures", reason="ir_measures is not installed")
    chosen = getattr(ir_measures, provider)
    if not chosen.is_available():
        pytest.skip(f"ir_measures' provider {provider} is not available here")
    return {
        row.query_id: row.value for row in chosen.iter_calc([ir_measures.parse_measure(notation)], qrels, run)
    }


def without_ties(run):
    """cwl_eval and ranx order tied documents by rules of their own."""
    rng = np.random.default_rng(9)
    return {
        query: dict(zip(documents, (rng.permutation(len(documents)) + 1.0).tolist(), strict=True))
        for query, documents in run.items()
    }


@pytest.mark.parametrize(
    "notation",
    ["RBP(rel=1)", "RBP(p=0.5, rel=2)", "SDCG(max_rel=4)@10", "SDCG(min_rel=1, max_rel=3)@5", "RR", "P@10"],
)
@pytest.mark.rivals
def test_cwl_eval(notation):
    """Its AP is left out: the C/W/L form normalises by the relevant documents that it saw."""
    pytest.importorskip("cwl", reason="cwl_eval is not installed")
    qrels, run = invented(4)
    run = without_ties(run)
    queries = list(qrels)
    reference = provided(notation, "cwl_eval", qrels, run)
    scores = fn.evaluate(rankings_in_order(qrels, run, queries), notation)
    got, wanted = scores.values[0], np.array([reference[query] for query in queries])
    assert got.tolist() == pytest.approx(wanted.tolist(), rel=1e-9, abs=1e-12)


# ---- scikit-learn ----


@pytest.mark.parametrize("max_fp", [None, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("levels", [4, 10, 10**9])
def test_area_under_roc_of_scikit_learn(max_fp, levels):
    """Tied pairs count a half there too, and a partial area has straight lines through tied groups."""
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    rng = np.random.default_rng(8)
    relevance = (rng.random((60, 30)) < rng.random((60, 1))).astype(np.int64)
    scores = rng.integers(0, levels, (60, 30)).astype(float)
    both = np.flatnonzero((relevance.sum(axis=1) % 30) != 0)
    got = fn.evaluate(fn.Rankings.from_dense(relevance, scores), fn.AUC(max_fp=max_fp, empty="nan")).values[0]
    wanted = [metrics.roc_auc_score(relevance[row], scores[row], max_fpr=max_fp) for row in both]
    assert got[both].tolist() == pytest.approx(wanted, rel=1e-12)
    assert np.isnan(np.delete(got, both)).all()
    if levels > 10 and max_fp is None:  # the loss counts a tie as a whole error
        loss = metrics.label_ranking_loss
        wanted = [1 - loss(relevance[[row]], scores[[row]]) for row in both]
        assert got[both].tolist() == pytest.approx(wanted, rel=1e-12)


def test_accuracy_of_ir_measures():
    ir_measures = pytest.importorskip("ir_measures")
    qrels, run = invented(9)
    # it divides by 0 where all are relevant
    run = {query: {**scores, "no document": 1e9} for query, scores in without_ties(run).items()}
    for notation in ("Accuracy", "Accuracy@5", "Accuracy(rel=2)@7"):
        reference = provided(notation, "accuracy", qrels, run)
        scores = fn.evaluate(rankings_in_order(qrels, run, list(qrels)), ir_measures.parse_measure(notation))
        for query, value in zip(qrels, scores.values[0].tolist(), strict=True):
            assert value == pytest.approx(reference.get(query, 0.0), rel=1e-12), (notation, query)
