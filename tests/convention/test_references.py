"""Measures of our own notation against cwl_eval, ir_measures and scikit-learn. What is a convention too is compared in
test_measures_of_tools; what trec_eval has, in tests/trec_eval.
"""

import numpy as np
import pytest

import fastndcg as fn

pytestmark = pytest.mark.compiled


def rankings_of(qrels, run, queries):
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
@pytest.mark.filterwarnings("ignore")
@pytest.mark.rivals
def test_cwl_eval(notation):
    """Its AP is left out: the C/W/L form normalises by the relevant documents that it saw."""
    pytest.importorskip("cwl", reason="cwl_eval is not installed")
    qrels, run = invented(4)
    run = without_ties(run)
    queries = list(qrels)
    reference = provided(notation, "cwl_eval", qrels, run)
    scores = fn.evaluate(rankings_of(qrels, run, queries), notation)
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
        scores = fn.evaluate(rankings_of(qrels, run, list(qrels)), ir_measures.parse_measure(notation))
        for query, value in zip(qrels, scores.values[0].tolist(), strict=True):
            assert value == pytest.approx(reference.get(query, 0.0), rel=1e-12), (notation, query)
