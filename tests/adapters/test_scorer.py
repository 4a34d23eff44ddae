"""scikit-learn's searches and cross-validation: each fold is scored by its own queries."""

import pickle

import boosting
import engines
import numpy as np
import pytest

import fastndcg as fn
from fastndcg.errors import InputError, MeasureError

engines.need("sklearn", "xgboost", "lightgbm", extra="rivals")

import lightgbm as lgb  # noqa: E402 - needs the check above
import sklearn  # noqa: E402 - as above
import xgboost as xgb  # noqa: E402 - as above
from sklearn.experimental import enable_halving_search_cv  # noqa: E402, F401 - as above
from sklearn.linear_model import LinearRegression  # noqa: E402 - as above
from sklearn.model_selection import (  # noqa: E402 - as above
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    cross_val_score,
    cross_validate,
)

from fastndcg.adapters import sklearn as fnk  # noqa: E402 - as above

pytestmark = pytest.mark.rivals

DATA = boosting.ranked(120)
ROUTED = {"qid": DATA.qid, "groups": DATA.qid}
FOLDS = GroupKFold(3)


@pytest.fixture(autouse=True)
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


class Ranker(lgb.LGBMRanker):
    """That of the page."""

    def fit(self, X, y, *, qid):
        rows = np.argsort(qid, kind="stable")
        return super().fit(X[rows], y[rows], group=np.unique(qid, return_counts=True)[1])


def ranker(kind):
    if kind == "xgboost":
        return xgb.XGBRanker(n_estimators=4, max_depth=3, n_jobs=1).set_fit_request(qid=True)
    quiet = {"n_jobs": 1, "verbosity": -1}
    return Ranker(n_estimators=4, num_leaves=6, min_child_samples=5, **quiet).set_fit_request(qid=True)


def by_hand(model, measure, **options):
    """The value of each fold, without scikit-learn's scorer."""
    values = []
    for train, test in FOLDS.split(DATA.features, DATA.label, DATA.qid):
        fitted = sklearn.clone(model).fit(DATA.features[train], DATA.label[train], qid=DATA.qid[train])
        scores = fitted.predict(DATA.features[test])
        rankings = fn.Rankings.from_query_ids(DATA.qid[test], DATA.label[test], scores)
        values.append(next(iter(fn.evaluate(rankings, measure, **options).mean().values())))
    return values


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("measure", boosting.MEASURES)
def test_cross_validation(kind, measure):
    model = ranker(kind)
    found = cross_val_score(
        model, DATA.features, DATA.label, params=ROUTED, cv=FOLDS, scoring=fnk.scorer(measure)
    )
    assert found.tolist() == by_hand(model, measure)


def test_several_measures_and_another_tools_number():
    model = ranker("xgboost")
    scoring = {
        "nDCG": fnk.scorer("nDCG@5", like="xgboost"),
        "RR": fnk.scorer("RR"),
        "AP": fnk.scorer("AP@10", like="xgboost"),
    }
    found = cross_validate(model, DATA.features, DATA.label, params=ROUTED, cv=FOLDS, scoring=scoring)
    assert found["test_nDCG"].tolist() == by_hand(model, "nDCG@5", convention="xgboost")
    assert found["test_RR"].tolist() == by_hand(model, "RR")
    assert found["test_AP"].tolist() == by_hand(model, "AP@10", convention="xgboost")


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("halving", [False, True])
def test_searches(kind, halving):
    values = [0.01, 0.5]
    options = {"cv": FOLDS, "scoring": fnk.scorer("nDCG@10"), "error_score": "raise"}
    if halving:  # of trees: of rows it would cut queries apart
        more = {"resource": "n_estimators", "min_resources": 2, "max_resources": 4, "factor": 2}
        search = HalvingGridSearchCV(ranker(kind), {"learning_rate": values}, **options, **more)
    else:
        search = GridSearchCV(ranker(kind), {"learning_rate": values}, **options)
    search.fit(DATA.features, DATA.label, **ROUTED)
    means = [np.mean(by_hand(ranker(kind).set_params(learning_rate=value), "nDCG@10")) for value in values]
    chosen = values.index(search.best_params_["learning_rate"])
    assert search.best_score_ == pytest.approx(means[chosen], rel=1e-12)
    # halving chose by the first trees
    assert halving or chosen == int(np.argmax(means))


def test_the_order_of_rows_does_not_matter_and_a_scorer_is_pickled():
    model = LinearRegression().fit(DATA.features, DATA.label)
    names = np.array([f"query {number}" for number in DATA.qid])
    order = np.random.default_rng(3).permutation(len(names))
    scorer = pickle.loads(pickle.dumps(fnk.scorer("nDCG@10")))
    expected = scorer(model, DATA.features, DATA.label, qid=DATA.qid)
    assert scorer(model, DATA.features[order], DATA.label[order], qid=names[order]) == expected
    assert expected == DATA.values(model.predict(DATA.features), "nDCG@10")[0]


def test_what_is_refused():
    with pytest.raises(MeasureError, match="2 measures were passed"):
        fnk.scorer(["nDCG@10", "RR"])
    with pytest.raises(MeasureError, match="sklearn has no RR"):
        fnk.scorer("RR", like="sklearn")
    with pytest.raises(InputError, match="got no qid.*enable_metadata_routing=True"):
        fnk.scorer("RR")(LinearRegression().fit(DATA.features, DATA.label), DATA.features, DATA.label)


def test_the_page(capsys):
    names = {"X": DATA.features, "y": DATA.label, "qid": DATA.qid}
    exec(engines.page_example("scikit-learn", "training"), names)  # noqa: S102 - the page's own lines
    assert len(names["values"]) == 5
    assert f"{names['search'].best_score_}" in capsys.readouterr().out


def test_make_scorer_takes_functions_of_arrays_and_names_the_scorer_of_a_measure():
    y_true = np.array([[3.0, 0, 2], [0, 1, 0], [2, 0, 1], [1, 0, 3]])
    features = np.arange(8.0).reshape(4, 2)
    model = LinearRegression().fit(features, y_true)
    made = sklearn.metrics.make_scorer(fn.ndcg_score, k=2)
    assert made(model, features, y_true) == fn.ndcg_score(y_true, model.predict(features), k=2)
    with pytest.raises((AttributeError, fn.InputTypeError), match=r"fastndcg\.adapters\.sklearn\.scorer"):
        sklearn.metrics.make_scorer(fn.nDCG @ 10)(model, features, y_true)
