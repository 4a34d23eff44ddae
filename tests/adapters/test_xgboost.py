"""XGBoost: its own numbers while it trains, stopping early, and one call of Python an iteration."""

import gc
import pickle

import boosting
import engines
import numpy as np
import pytest

import fastndcg as fn
from fastndcg.errors import InputError, InputTypeError, MeasureError

engines.need("xgboost", extra="rivals")

import xgboost as xgb  # noqa: E402 - needs the check above
from xgboost.callback import EarlyStopping  # noqa: E402 - as above

from fastndcg.adapters import xgboost as fnx  # noqa: E402 - as above

pytestmark = pytest.mark.rivals

PARAMETERS = {"objective": "rank:ndcg", "eta": 0.4, "max_depth": 3, "nthread": 1, "verbosity": 0, "seed": 1}
TRAIN, VALID = boosting.ranked(), boosting.ranked(90, seed=1)


def matrix(data, *, weighted=False):
    weight = data.weight if weighted else None
    return xgb.DMatrix(data.features, label=data.label, qid=data.qid, weight=weight)


def trained(metric, rounds=8, *, weighted=False, **options):
    history = {}
    evals = [(matrix(TRAIN, weighted=weighted), "train"), (matrix(VALID, weighted=weighted), "valid")]
    parameters = PARAMETERS | {"eval_metric": ["ndcg@3", "ndcg@10", "ndcg"]}
    booster = xgb.train(
        parameters, evals[0][0], rounds, evals=evals, custom_metric=metric, evals_result=history, verbose_eval=False, **options
    )  # fmt: skip
    return booster, history


@pytest.mark.parametrize("weighted", [False, True])
def test_like_xgboost_prints_what_the_booster_prints(weighted):
    _, history = trained(fnx.metric(["nDCG@3", "nDCG@10", "nDCG"], like="xgboost"), weighted=weighted)
    for name in ("train", "valid"):
        for theirs, ours in (("ndcg@3", "nDCG@3"), ("ndcg@10", "nDCG@10"), ("ndcg", "nDCG")):
            assert len(history[name][ours]) == 8
            # both are printed with few decimals
            np.testing.assert_allclose(history[name][ours], history[name][theirs], rtol=0, atol=1.01e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_so_it_is_with_its_other_measures_of_grades_0_and_1(weighted):
    names = {"map@3": "AP@3", "map": "AP", "pre@5": "P@5", "ndcg@5": "nDCG@5"}
    history = {}
    data = TRAIN._replace(label=(TRAIN.label > 1).astype(TRAIN.label.dtype))
    given = matrix(data, weighted=weighted)
    ours = fnx.metric(list(names.values()), like="xgboost")
    parameters = PARAMETERS | {"objective": "rank:map", "eval_metric": list(names)}
    xgb.train(
        parameters, given, 5, evals=[(given, "train")], custom_metric=ours, evals_result=history, verbose_eval=False
    )  # fmt: skip
    for theirs, measure in names.items():
        np.testing.assert_allclose(history["train"][measure], history["train"][theirs], rtol=0, atol=1.01e-6)


def test_the_values_are_those_of_evaluate():
    booster, history = trained(fnx.metric(boosting.MEASURES))
    scores = booster.predict(matrix(VALID))
    metric = fnx.metric(boosting.MEASURES)
    found = metric(scores, matrix(VALID))
    assert [value for _, value in found] == VALID.values(scores)
    assert [name for name, _ in found] == list(history["valid"])[3:]
    assert [history["valid"][name][-1] for name, _ in found] == pytest.approx(VALID.values(scores), abs=1e-6)
    weighted = metric(scores, matrix(VALID, weighted=True))
    assert [value for _, value in weighted] == VALID.values(scores, weight=VALID.weight)


def test_names_can_be_taken_apart_by_xgboost():
    measures = [fn.nDCG(gain={0: 0, 1: 2.5, 2: 7, 3: 8, 4: 9}, ties="worst") @ 10, "AP(rel=2)"]
    _, history = trained(fnx.metric(measures), 1)
    names = list(history["valid"])[3:]
    assert len(names) == 2 and names[1] == "AP(rel=2)" and names[0].startswith("nDCG(")


def test_early_stopping():
    booster, history = trained(fnx.metric("nDCG@10"), 60, early_stopping_rounds=4, maximize=True)
    found = history["valid"]["nDCG@10"]
    assert booster.best_iteration == int(np.argmax(found)) == len(found) - 5


def test_early_stopping_that_would_minimise_is_warned_of():
    """XGBoost looks at the first letters: `nDCG@10` is minimised, and training ends at once."""
    with pytest.warns(UserWarning, match="takes the lowest nDCG@10 as the best: pass maximize=True to train"):
        booster, _ = trained(fnx.metric(["RR", "nDCG@10"]), 60, early_stopping_rounds=4)
    assert booster.best_iteration < 5
    stopping = EarlyStopping(rounds=4, data_name="valid", metric_name="ndcg@10")
    trained(fnx.metric("nDCG@10"), 5, callbacks=[stopping])  # and no warning without, or of another measure
    trained(fnx.metric("nDCG@10"), 5)


@pytest.mark.parametrize("name", ["ndcg@5", "map@10", "prec@3", "ndcg(gain='exp2')@5"])
def test_names_that_xgboost_maximises_stay_as_they_were_written(name):
    found, shown = trained(fnx.metric(name), 60, early_stopping_rounds=4)
    expected, history = trained(fnx.metric(str(fn.parse(name))), 60, early_stopping_rounds=4, maximize=True)
    assert found.best_iteration == expected.best_iteration == int(np.argmax([*history["valid"].values()][-1]))
    assert found.best_iteration > 0 and [*shown["valid"]][-1] == name
    again = pickle.loads(pickle.dumps(fnx.metric(name)))
    assert again(np.zeros(len(VALID.label)), matrix(VALID))[0][0] == name


def test_cross_validation():
    folds = xgb.cv(
        PARAMETERS, matrix(TRAIN), 3, nfold=2, custom_metric=fnx.metric(["nDCG@10", "RR"]), as_pandas=False
    )
    assert len(folds["test-nDCG@10-mean"]) == len(folds["test-RR-mean"]) == 3


def test_a_data_set_is_read_once_and_held_weakly(monkeypatch):
    read = []
    original = fnx._queries
    monkeypatch.setattr(fnx, "_queries", lambda data: (read.append(id(data)), original(data))[1])
    metric = fnx.metric("nDCG@10")
    data = matrix(VALID)
    for seed in range(3):
        metric(np.random.default_rng(seed).normal(size=len(VALID.label)).astype(np.float32), data)
    assert len(read) == 1 and len(metric._read) == 1
    del data
    gc.collect()
    assert not metric._read
    metric(np.zeros(len(TRAIN.label), np.float32), matrix(TRAIN))
    assert len(read) == 2


def test_grades_that_are_no_bytes():
    label = np.array([-1.5, 0, 0.25, 300, 2, 1e6], np.float32)
    data = xgb.DMatrix(np.zeros((6, 1)), label=label, group=[4, 2])
    scores = np.array([1, 2, 3, 4, 6, 5], np.float32)
    gain = fn.DCG(gain=abs) @ 3
    expected = fn.evaluate(fn.Rankings.from_groups([4, 2], label, scores), gain).mean()
    assert [value for _, value in fnx.metric(gain)(scores, data)] == list(expected.values())


# ---- XGBRanker ----


DATA = {"data": VALID.features, "label": VALID.label, "qid": VALID.qid}


def ranker(**options):
    return xgb.XGBRanker(n_jobs=1, max_depth=3, learning_rate=0.4, random_state=1, **options)


def test_the_callback_evaluates_once_an_iteration():
    evals = {"valid": DATA, "weighted": DATA | {"weight": VALID.weight}}
    model = ranker(n_estimators=5, callbacks=[fnx.callback(boosting.MEASURES, evals)], eval_metric="ndcg@10")
    model.fit(TRAIN.features, TRAIN.label, qid=TRAIN.qid)
    found = model.evals_result()
    for iteration in range(5):
        scores = model.predict(VALID.features, iteration_range=(0, iteration + 1))
        for name, weight in (("valid", None), ("weighted", VALID.weight)):
            of_iteration = [values[iteration] for values in found[name].values()]
            assert of_iteration == VALID.values(scores, weight=weight)


def test_the_callback_beside_early_stopping_and_pickled():
    callbacks = [
        fnx.callback("nDCG@10", {"validation_0": DATA}),
        EarlyStopping(rounds=4, data_name="validation_0", metric_name="nDCG@10", maximize=True),
    ]
    model = ranker(n_estimators=60, callbacks=callbacks, eval_metric="ndcg@10")
    model.fit(
        TRAIN.features,
        TRAIN.label,
        qid=TRAIN.qid,
        eval_set=[(VALID.features, VALID.label)],
        eval_qid=[VALID.qid],
    )
    found = model.evals_result()["validation_0"]
    assert list(found) == ["ndcg@10", "nDCG@10"] and len(found["nDCG@10"]) == len(found["ndcg@10"]) < 60
    assert model.best_iteration == int(np.argmax(found["nDCG@10"]))
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(VALID.features), model.predict(VALID.features))


# ---- refused ----


def test_what_is_refused():
    with pytest.raises(MeasureError, match="nDGC"):
        fnx.metric("nDGC@10")
    with pytest.raises(MeasureError, match="xgboost has no RR"):
        fnx.metric(["nDCG@10", "RR"], like="xgboost")
    metric = fnx.metric("nDCG@10")
    with pytest.raises(InputError, match="has 3 rows and no queries; make it with qid= or group="):
        metric(np.zeros(3, np.float32), xgb.DMatrix(np.zeros((3, 1)), label=[0, 1, 2]))
    with pytest.raises(InputError, match=r"predicts an array of shape \(3, 2\) for 3 documents"):
        metric(np.zeros((3, 2)), xgb.DMatrix(np.zeros((3, 1)), label=[0, 1, 2], group=[3]))
    with pytest.raises(
        InputTypeError, match=r"evals\['valid'\] is a DMatrix; expected the arguments of a DMatrix"
    ):
        fnx.callback("nDCG@10", {"valid": matrix(VALID)})
    model = ranker(n_estimators=1, eval_metric=metric)
    with pytest.raises(
        InputTypeError, match=r"have no queries: give them callbacks=\[fastndcg.adapters.xgboost.callback"
    ):
        model.fit(
            TRAIN.features,
            TRAIN.label,
            qid=TRAIN.qid,
            eval_set=[(VALID.features, VALID.label)],
            eval_qid=[VALID.qid],
        )


def test_the_page(capsys):
    names = {
        "train": matrix(TRAIN),
        "valid": matrix(VALID),
        "X": TRAIN.features,
        "y": TRAIN.label,
        "qid": TRAIN.qid,
    }
    names |= {"X_valid": VALID.features, "y_valid": VALID.label, "qid_valid": VALID.qid}
    exec(engines.page_example("XGBoost", "training"), names)  # noqa: S102 - the page's own lines
    assert "valid-nDCG@10:" in capsys.readouterr().out
    stopped = names["model"].evals_result()["valid"]["nDCG@10"]
    assert names["model"].best_iteration == int(np.argmax(stopped))
