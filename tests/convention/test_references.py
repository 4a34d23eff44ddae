"""Against the tools that have these measures: pytrec_eval, trec_eval's own test outputs, gdeval, cwl_eval,
scikit-learn, ranx, and LightGBM, XGBoost and CatBoost, which report them while they train.
"""

import gzip
import math

import numpy as np
import pytest
import rivals

import fastndcg as fn

pytestmark = pytest.mark.compiled

Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


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


TREC = {
    "map": "AP", "Rprec": "Rprec", "bpref": "Bpref", "recip_rank": "RR", "infAP": "infAP", "set_P": "SetP", "set_relative_P": "SetP(relative=True)",
    "set_recall": "SetR", "set_map": "SetAP", "set_F": "SetF", "num_ret": "NumRet", "num_rel": "NumRel", "num_rel_ret": "NumRet(rel=1)",
    **{f"P_{k}": f"P@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"recall_{k}": f"R@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"map_cut_{k}": f"AP@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"ndcg_cut_{k}": f"nDCG@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"success_{k}": f"Success@{k}" for k in (1, 5, 10)},
    **{f"iprec_at_recall_{recall:.2f}": f"IPrec@{recall:g}" for recall in (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)},
    "ndcg": "nDCG",
}  # fmt: skip


def in_input_order(notation, **words):
    measure = fn.parse(notation)
    return measure(
        **{name: value for name, value in ({"ties": "input"} | words).items() if name in measure.params}
    )


@pytest.mark.parametrize("rel", [1, 2])
def test_pytrec_eval(rel):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not installed")
    qrels, run = invented(1)
    queries = list(qrels)
    # its num_rel ignores the relevance level, see ir_measures' provider
    names = [name for name in TREC if not (rel > 1 and name.startswith(("num_rel", "ndcg")))]
    reference = pytrec_eval.RelevanceEvaluator(
        qrels, set(pytrec_eval.supported_measures), relevance_level=rel
    ).evaluate(run)
    measures = {
        name: in_input_order(TREC[name], **({"rel": rel} if rel > 1 and TREC[name] != "NumRet" else {}))
        for name in names
    }
    scores = fn.evaluate(rankings_of(qrels, run, queries), list(dict.fromkeys(measures.values())))
    for name, measure in measures.items():
        wanted = [reference[query][name] for query in queries]
        assert scores[measure].tolist() == pytest.approx(wanted, rel=1e-12), f"{name} as {measure}"


def test_pytrec_eval_judged_documents_only():
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not installed")
    qrels, run = invented(2)
    names = [name for name in TREC if not name.startswith(("bpref", "infAP", "num_rel"))]
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, set(pytrec_eval.supported_measures), judged_docs_only_flag=1
    )
    reference = evaluator.evaluate(run)
    queries = [query for query in qrels if any(document in qrels[query] for document in run[query])]
    scores = fn.evaluate(
        rankings_of(qrels, run, queries), [in_input_order(TREC[name], judged_only=True) for name in names]
    )
    for name, values in zip(names, scores.values, strict=True):
        assert values.tolist() == pytest.approx([reference[query][name] for query in queries], rel=1e-12), (
            name
        )


def read_qrels(path):
    qrels = {}
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            query, _, document, grade = line.split()
            qrels.setdefault(query, {})[document] = int(grade)
    return qrels


def read_run(path):
    run = {}
    with gzip.open(path, "rt", encoding="latin-1") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            query, _, document, _, score, _ = line.split()
            run.setdefault(query, {})[document] = float(score)
    return run


# trec_eval 10 asks for round(recall * R) relevant documents where 9, pytrec_eval and we ask for int(recall *
# R + 0.9)
ROUNDED = {
    ("iprec_at_recall_0.10", "301"),
    ("iprec_at_recall_0.60", "302"),
    ("iprec_at_recall_0.10", "all"),
    ("iprec_at_recall_0.60", "all"),
}


def test_trec_eval_golden_outputs(data):
    """Every measure that we have of trec_eval's own test output: each query, and the mean of all."""
    folder = data / "trec_eval"
    qrels, run = read_qrels(folder / "qrels.test"), read_run(folder / "results.test")
    queries = [query for query in sorted(run) if query in qrels]
    names = TREC | {"rbp": "RBP(p=0.9)", "rbp_resid": "RBPresidual(p=0.9)"}
    scores = fn.evaluate(
        rankings_of(qrels, run, queries), list(dict.fromkeys(in_input_order(name) for name in names.values()))
    )
    means, compared = scores.mean(), 0
    for line in (folder / "out.test.aq").read_text().splitlines():
        name, query, value = line.split()
        if name not in names:
            continue
        if (name, query) in ROUNDED:
            continue
        measure = in_input_order(names[name])
        if query == "all":
            got = scores[measure].sum() if name.startswith("num_") else means[str(measure)]
        else:
            got = scores[measure][queries.index(query)]
        assert round(float(got), 4) == pytest.approx(float(value), abs=5e-5), f"{line}: {got}"
        compared += 1
    assert compared > 200


def test_unjudged_share_of_trec_eval(data):
    folder = data / "trec_eval"
    qrels, run = read_qrels(folder / "qrels.test"), read_run(folder / "results.test")
    queries = [query for query in sorted(run) if query in qrels]
    scores = fn.evaluate(
        rankings_of(qrels, run, queries), [in_input_order(f"Judged@{k}") for k in (5, 10, 20)]
    )
    wanted = {
        tuple(line.split()[:2]): float(line.split()[2])
        for line in (folder / "out.test.aq").read_text().splitlines()
        if line.startswith("unj")
    }
    for row, k in enumerate((5, 10, 20)):
        for place, query in enumerate(queries):
            assert 1 - scores.values[row, place] == pytest.approx(wanted[f"unj_{k}", query], abs=5e-5)


# ---- ir_measures and its providers ----


def provided(notation, provider, qrels, run):
    ir_measures = pytest.importorskip("ir_measures", reason="ir_measures is not installed")
    chosen = getattr(ir_measures, provider)
    if not chosen.is_available():
        pytest.skip(f"ir_measures' provider {provider} is not available here")
    return {
        row.query_id: row.value for row in chosen.iter_calc([ir_measures.parse_measure(notation)], qrels, run)
    }


@pytest.mark.parametrize("notation", ["ERR@5", "ERR@20", "ERR@100"])
def test_gdeval(notation):
    """gdeval prints five decimals, reads topic numbers, and prints only queries with a relevant document."""
    qrels, run = ({str(i + 1): one for i, one in enumerate(table.values())} for table in invented(3))
    reference = provided(notation, "gdeval", qrels, run)
    queries = sorted(reference)
    assert len(queries) > 40
    scores = fn.evaluate(rankings_of(qrels, run, queries), in_input_order(notation))
    assert scores.values[0].tolist() == pytest.approx([reference[query] for query in queries], abs=5.001e-6)


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


def test_judged_of_ir_measures():
    qrels, run = invented(5)
    run = without_ties(run)
    for notation in ("Judged@5", "Judged@20", "Judged"):
        reference = provided(notation, "judged", qrels, run)
        scores = fn.evaluate(rankings_of(qrels, run, list(qrels)), notation)
        assert scores.values[0].tolist() == pytest.approx([reference[query] for query in qrels], rel=1e-12), (
            notation
        )


def test_ir_measures_objects_and_notation_are_ours():
    ir_measures = pytest.importorskip("ir_measures", reason="ir_measures is not installed")
    theirs = [
        ir_measures.AP @ 10, ir_measures.AP(rel=2), ir_measures.MAP, ir_measures.RR @ 10, ir_measures.P(rel=2) @ 5, ir_measures.R @ 100, ir_measures.Rprec,
        ir_measures.Success @ 1, ir_measures.ERR @ 20, ir_measures.RBP(p=0.9, rel=1), ir_measures.Judged @ 10, ir_measures.NumRel, ir_measures.NumRet(rel=1),
        ir_measures.SDCG(max_rel=4) @ 10, ir_measures.Bpref, ir_measures.infAP, ir_measures.IPrec @ 0.1, ir_measures.SetP(relative=True), ir_measures.SetR,
        ir_measures.SetF(beta=2.0), ir_measures.SetAP,
    ]  # fmt: skip
    for measure in theirs:
        assert fn.parse(str(measure)) == fn.measures.as_measure(measure)


# ---- scikit-learn, ranx ----


def test_average_precision_of_scikit_learn():
    """Without ties the two definitions agree; with them scikit-learn takes each tied group at its end, we the expectation."""
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    rng = np.random.default_rng(6)
    relevance = (rng.random((50, 40)) < 0.3).astype(np.int64)
    relevance[:, 0] = 1
    scores = rng.random((50, 40))
    got = fn.evaluate(fn.Rankings.from_dense(relevance, scores), "AP").values[0]
    assert got.tolist() == pytest.approx(
        [metrics.average_precision_score(one, other) for one, other in zip(relevance, scores, strict=True)],
        rel=1e-12,
    )


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
    qrels, run = invented(9)
    # it divides by 0 where all are relevant
    run = {query: {**scores, "no document": 1e9} for query, scores in without_ties(run).items()}
    for notation in ("Accuracy", "Accuracy@5", "Accuracy(rel=2)@7"):
        reference = provided(notation, "accuracy", qrels, run)
        scores = fn.evaluate(rankings_of(qrels, run, list(qrels)), notation)
        for query, value in zip(qrels, scores.values[0].tolist(), strict=True):
            assert value == pytest.approx(reference.get(query, 0.0), rel=1e-12), (notation, query)


@pytest.mark.filterwarnings("ignore")
def test_ranx():
    ranx = pytest.importorskip("ranx", reason="ranx is not installed")
    qrels, run = invented(7, queries=20)
    run = without_ties(run)
    queries = [query for query in sorted(qrels) if max(qrels[query].values()) >= 1]
    names = {
        "map": "AP",
        "mrr": "RR",
        "precision@5": "P@5",
        "recall@5": "R@5",
        "f1": "F",
        "r-precision": "Rprec",
        "hit_rate@3": "Success@3",
        "map@10": "AP@10",
    }
    theirs = ranx.evaluate(
        ranx.Qrels({query: qrels[query] for query in queries}),
        ranx.Run({query: run[query] for query in queries}),
        list(names),
        return_mean=False,
    )
    scores = fn.evaluate(rankings_of(qrels, run, queries), list(names.values()))
    for name, notation in names.items():
        assert scores[notation].tolist() == pytest.approx(theirs[name].tolist(), rel=1e-9), name
    assert not math.isnan(scores.values.sum())


# ---- LightGBM, XGBoost, CatBoost ----


def lists_of(queries):
    return fn.Rankings.from_lists([query.grades for query in queries], [query.scores for query in queries])


def values_of(queries, notation):
    return fn.evaluate(lists_of(queries), notation).values[0].tolist()


@pytest.mark.parametrize("k", [1, 3, 10, None])
@pytest.mark.filterwarnings("ignore")
def test_map_of_lightgbm(k):
    """Ties as they come; at most k relevant documents in the denominator; 1 for a query without any."""
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    queries = rivals.random_queries(11, highest=1)
    notation = "AP(ties='input', empty=1, denominator='min(n_relevant, k)')" + (f"@{k}" if k else "")
    theirs = [rivals.lightgbm_mean([query], k, metric="map") for query in queries]
    assert values_of(queries, notation) == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("minus", ["", "-"])
@pytest.mark.parametrize("k", [1, 3, 10, None])
@pytest.mark.filterwarnings("ignore")
def test_map_of_xgboost(k, minus):
    """As LightGBM's; "-" makes it 0 for a query without a relevant document, and without a cutoff it looks at 32 ranks."""
    pytest.importorskip("xgboost", reason="XGBoost is not installed")
    queries = rivals.random_queries(12, highest=1)
    assert max(len(query.grades) for query in queries) > 32
    notation = f"AP(ties='input', empty={int(not minus)}, denominator='min(n_relevant, k)')@{k or 32}"
    theirs = [rivals.xgboost_mean([query], k, minus, metric="map") for query in queries]
    assert values_of(queries, notation) == pytest.approx(theirs, rel=1e-7)


@pytest.mark.parametrize("k", [1, 3, 10, None])
def test_mrr_and_map_of_catboost(k):
    """A target above its border, 0.5, is relevant; of tied documents the less relevant ones come first."""
    pytest.importorskip("catboost", reason="CatBoost is not installed")
    queries, top = rivals.random_queries(13, highest=1), f"top={-1 if k is None else k}"
    cutoff = "" if k is None else f"@{k}"
    names = {"MRR": f"RR(ties='worst'){cutoff}"}
    if k is not None:
        names["MAP"] = f"AP(ties='worst', denominator='min(n_relevant, k)'){cutoff}"
    for name, notation in names.items():
        theirs = [rivals.catboost_metric([query], f"{name}:{top}") for query in queries]
        assert values_of(queries, notation) == pytest.approx(theirs, rel=1e-12), name


def stopping(queries, max_rel):
    """The same queries with the stopping probability of each grade for a grade, which float32 holds exactly."""
    return [
        query._replace(grades=[(2**grade - 1) / 2**max_rel for grade in query.grades]) for query in queries
    ]


@pytest.mark.parametrize("k", [1, 5, None])
def test_err_of_catboost(k):
    """It takes the target itself for the stopping probability; of tied documents the less relevant ones come first."""
    pytest.importorskip("catboost", reason="CatBoost is not installed")
    queries = rivals.random_queries(14)
    metric = f"ERR:top={-1 if k is None else k}"
    theirs = [rivals.catboost_metric([query], metric) for query in stopping(queries, 4)]
    got = values_of(queries, "ERR(ties='worst')" + (f"@{k}" if k else ""))
    assert got == pytest.approx(theirs, rel=1e-12)


def test_pfound_of_catboost_is_no_err():
    """It discounts by 0.85^(i - 1) where ERR has 1/i. Where all relevant documents are equally likely to
    satisfy, with the probability p, it is p times alpha_DCG of one intent with that discount; for other
    targets there is no such measure here.
    """
    pytest.importorskip("catboost", reason="CatBoost is not installed")
    queries = rivals.random_queries(15, highest=1, ties=False)
    rankings = fn.Rankings.from_lists(
        [query.grades for query in queries],
        [query.scores for query in queries],
        intents=[[grade] for query in queries for grade in query.grades],
    )
    discount = [0.85**i for i in range(60)]
    for p in (0.5, 0.25):
        theirs = [
            rivals.catboost_metric([query._replace(grades=[p * grade for grade in query.grades])], "PFound")
            for query in queries
        ]
        ours = fn.evaluate(rankings, fn.alpha_DCG(alpha=p, discount=discount, denominator="none")).values[0]
        assert (p * ours).tolist() == pytest.approx(theirs, rel=1e-12)
        err = fn.evaluate(rankings, fn.ERR_IA(denominator="none")).values[0]
        assert not np.allclose(err, theirs)
