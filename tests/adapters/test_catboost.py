"""CatBoost: its own numbers while it trains, stopping early, and data that it shuffles."""

import pickle

import boosting
import engines
import numpy as np
import pandas as pd
import pytest

import fastndcg as fn
from fastndcg.errors import InputError, InputTypeError, MeasureError

engines.need("catboost", extra="rivals")

import catboost as cb  # noqa: E402 - needs the check above

from fastndcg.adapters import catboost as fnc  # noqa: E402 - as above

pytestmark = pytest.mark.rivals

TRAIN, VALID = boosting.ranked(), boosting.ranked(90, seed=1)


def pool(data, *, weighted=False, categories=False):
    features = data.features
    if categories:
        features = pd.DataFrame(features).astype({0: int}).astype({0: str})
    weight = np.repeat(data.weight, data.sizes) if weighted else None
    return cb.Pool(
        features, data.label, group_id=data.qid, group_weight=weight, cat_features=[0] if categories else None
    )


def trained(metric, train, valid, rounds=6, **options):
    model = cb.CatBoostRanker(
        iterations=rounds, eval_metric=metric, loss_function="QueryRMSE", depth=3, learning_rate=0.4, thread_count=2, random_seed=1, verbose=False,
        allow_writing_files=False, **{"custom_metric": [f"NDCG:top={k};hints=skip_train~false" for k in (3, 10)], **options},
    )  # fmt: skip
    return model.fit(train, eval_set=valid)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [3, 10])
def test_like_catboost_is_what_it_says_itself(k, weighted):
    train, valid = pool(TRAIN, weighted=weighted), pool(VALID, weighted=weighted)
    metric = fnc.metric(f"nDCG@{k}", group=[train, valid], like="catboost")
    found = trained(metric, train, valid).evals_result_
    for name in ("learn", "validation"):
        # CatBoost takes the mean of weights in float32
        theirs = found[name][f"NDCG:top={k};type=Base"]
        np.testing.assert_allclose(found[name][f"nDCG@{k}"], theirs, rtol=1e-6 if weighted else 1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("MAP:top=5", "AP@5"), ("PrecisionAt:top=5", "P@5"), ("RecallAt:top=5", "R@5"), ("MRR:top=5", "RR@5"), ("QueryAUC:type=Ranking", "AUC")],
)  # fmt: skip
def test_so_are_its_other_measures(theirs, ours, weighted):
    train, valid = pool(TRAIN, weighted=weighted), pool(VALID, weighted=weighted)
    metric = fnc.metric(ours, group=[train, valid], like="catboost")
    own = f"{theirs};hints=skip_train~false" if ";" in theirs or "top" in theirs else theirs
    found = trained(metric, train, valid, custom_metric=[own]).evals_result_["validation"]
    (name,) = [each for each in found if each.startswith(theirs.partition(":")[0])]
    np.testing.assert_allclose(found[ours], found[name], rtol=1e-6 if weighted else 1e-12)


@pytest.mark.parametrize("measure", boosting.MEASURES)
def test_the_values_are_those_of_evaluate(measure):
    train, valid = pool(TRAIN), pool(VALID)
    metric = fnc.metric(measure, group=[train, valid])
    model = trained(metric, train, valid, use_best_model=False)
    ((name, values),) = [each for each in model.evals_result_["validation"].items() if each[0][0] in "nRA"]
    assert fn.parse(name) == fn.parse(measure)
    assert values[-1] == VALID.values(model.predict(VALID.features), measure)[0]


def test_early_stopping_keeps_the_best_model():
    train, valid = pool(TRAIN), pool(VALID)
    model = trained(fnc.metric("nDCG@10", group=[train, valid]), train, valid, 80, early_stopping_rounds=5)
    found = model.evals_result_["validation"]["nDCG@10"]
    assert model.best_iteration_ == int(np.argmax(found)) == len(found) - 6
    assert model.best_score_["validation"]["nDCG@10"] == max(found)


def test_a_metric_is_pickled():
    metric = fnc.metric("nDCG@10", group=pool(VALID))
    scores = np.arange(len(VALID.label)) % 7
    for each in (metric, pickle.loads(pickle.dumps(metric))):
        assert type(each).__name__ == "nDCG@10"
        assert each.evaluate([scores], VALID.label, None) == (VALID.values(scores, "nDCG@10")[0], 1.0)


# ---- what CatBoost shuffles, and what is refused ----


@pytest.mark.parametrize("options", [{"boosting_type": "Ordered"}, {"categories": True}])
def test_shuffled_data_is_found_out(options):
    categories = options.pop("categories", False)
    train, valid = pool(TRAIN, categories=categories), pool(VALID, categories=categories)
    metric = fnc.metric("nDCG@10", group=[train, valid])
    with pytest.raises(cb.CatBoostError, match="in another order than the Pool's.*train with has_time=True"):
        trained(metric, train, valid, **options)
    assert trained(metric, train, valid, has_time=True, **options).evals_result_["learn"]["nDCG@10"]


def test_folds_of_cross_validation():
    every, ids = pool(TRAIN), np.unique(TRAIN.qid)
    tests = [np.flatnonzero(np.isin(TRAIN.qid, ids[start::3])) for start in range(3)]
    folds = [(np.setdiff1d(np.arange(len(TRAIN.qid)), rows), rows) for rows in tests]
    parameters = {
        "loss_function": "QueryRMSE",
        "iterations": 3,
        "allow_writing_files": False,
        "verbose": False,
    }
    pools = [every.slice(rows) for fold in folds for rows in fold]
    metric = fnc.metric("nDCG@10", group=pools, like="catboost")
    found = cb.cv(every, parameters | {"eval_metric": metric, "custom_metric": ["NDCG:top=10"]}, folds=folds)
    np.testing.assert_allclose(
        found["test-nDCG@10-mean"], found["test-NDCG:top=10;type=Base-mean"], rtol=1e-12
    )


def test_what_is_refused():
    one, other = (cb.Pool(np.zeros((5, 1)), [1, 0, 1, 0, 1], group_id=[*ids]) for ids in ("aaabb", "aabbb"))
    with pytest.raises(MeasureError, match="2 measures were passed"):
        fnc.metric(["nDCG@10", "RR"], group=one)
    with pytest.raises(InputError, match="two Pools of group= have the same 5 labels in different queries"):
        fnc.metric("nDCG@10", group=[one, other])
    with pytest.raises(InputError, match="has 3 rows and no queries; make it with group_id="):
        fnc.metric("nDCG@10", group=cb.Pool(np.zeros((3, 1)), [1, 2, 3]))
    with pytest.raises(InputTypeError, match=r"group= has a int; expected a Pool, as in catboost.Pool\(X, y"):
        fnc.metric("nDCG@10", group=[3, 2])
    message = f"evaluates {len(TRAIN.label)} documents, and group= has {len(VALID.label)}; give every Pool"
    with pytest.raises(cb.CatBoostError, match=message):
        trained(fnc.metric("nDCG@10", group=pool(VALID)), pool(TRAIN), None)


def test_the_page():
    names = {"train": pool(TRAIN), "valid": pool(VALID)}
    exec(engines.page_example("CatBoost", "training"), names)  # noqa: S102 - the page's own lines
    found = names["model"].evals_result_["validation"]["nDCG@10"]
    assert names["model"].best_iteration_ == int(np.argmax(found))
