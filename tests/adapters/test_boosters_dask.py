"""Boosters on a Dask cluster of two: each worker scores its queries, and XGBoost's mean is that of all."""

import boosting
import engines
import numpy as np
import pytest

engines.need("dask", "distributed")
engines.need("lightgbm", "xgboost", extra="rivals")

da, lgb, xgb = map(engines.imported_later, ("dask.array", "lightgbm", "xgboost"))
fnl, fnx = (engines.imported_later(f"fastndcg.adapters.{name}") for name in ("lightgbm", "xgboost"))

pytestmark = pytest.mark.host


DATA = boosting.ranked(120)


@pytest.fixture(scope="module")
def client():
    import dask
    from distributed import Client, LocalCluster

    engines.importable_by_workers()
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as running,
        Client(running) as connected,
    ):
        yield connected


def halves(*columns):
    """Two parts of whole queries, far from equal."""
    cut = int(DATA.sizes[:30].sum())
    return [
        da.from_array(column, chunks=((cut, len(column) - cut), *([-1] * (column.ndim - 1))))
        for column in columns
    ]


def test_xgboost_has_the_mean_of_all_queries(client):
    from xgboost import dask as dxgb

    features, label, qid = halves(DATA.features, DATA.label, DATA.qid)
    train = dxgb.DaskDMatrix(client, features, label, qid=qid)
    measures = [*boosting.MEASURES, "nDCG(empty='nan')"]
    settings = {"objective": "rank:ndcg", "tree_method": "hist", "eval_metric": "ndcg@10"}
    found = dxgb.train(
        client,
        settings,
        train,
        num_boost_round=3,
        evals=[(train, "train")],
        custom_metric=fnx.metric(measures),
    )
    scores = found["booster"].predict(xgb.DMatrix(DATA.features))
    ours = [values[-1] for values in list(found["history"]["train"].values())[1:]]
    assert ours == pytest.approx(DATA.values(scores, measures), abs=1e-6, nan_ok=True)
    assert np.isnan(ours[-1])


@pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored")
@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_lightgbm_has_the_mean_of_a_workers_queries(client):
    features, label = halves(DATA.features, DATA.label)
    sizes = da.from_array(DATA.sizes, chunks=((30, len(DATA.sizes) - 30),))
    model = lgb.DaskLGBMRanker(client=client, n_estimators=3, num_leaves=6, min_child_samples=5, verbosity=-1)
    model.fit(
        features, label, group=sizes, eval_set=[(features, label)], eval_group=[sizes], eval_metric=fnl.metric("nDCG@10", like="lightgbm"),
        eval_at=[10],
    )  # fmt: skip
    found = model.evals_result_["valid_0"]
    assert found["nDCG@10"] == pytest.approx(found["ndcg@10"], rel=1e-9)
