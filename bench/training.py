"""Measure what a measure costs in each iteration of a booster's training, against the booster's own nDCG@10.

First the values of both are compared, with like=, and a difference ends the run. Then both run in turns, in
one process on one thread, with the same model and data. The result is the processor time of the fastest call.
XGBoost and LightGBM evaluate a trained model as in an iteration, including the time to get its predictions.
CatBoost has no such call: it trains with its own NDCG, with ours and without a metric, and the differences
are divided by the number of iterations and by the two data sets.

Bias: generated data, 100 documents for each query, five grades; scores of small trees, which have ties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bench.record import Row, beside
from bench.timing import Time, take_turns

MEASURE = "nDCG@10"
Call = Callable[[], Any]


class Case(NamedTuple):
    """Calls of one booster: its own metric, our metric, and ours with the booster's convention."""

    host: str
    theirs: Call
    ours: Call
    like: Call
    nothing: Call | None = None  # the same call without a metric
    evaluations: int = 1


def data(rows: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    sizes = np.full(rows // 100, 100)
    features = rng.integers(0, 16, (sizes.sum(), 4)).astype(np.float32)
    worth = features[:, 0] + features[:, 1] / 2 + rng.normal(0, 5, len(features))
    return features, np.digitize(worth, [10, 14, 18, 22]).astype(np.float32), sizes


def same(theirs: float, ours: float, tolerance: float) -> None:
    assert abs(theirs - ours) <= tolerance, f"the host's nDCG@10 is {theirs!r}, ours {ours!r}"


def xgboost_cases(rows: int) -> Iterator[Case]:
    import xgboost as xgb
    from sklearn.metrics import ndcg_score
    from xgboost.sklearn import ltr_metric_decorator

    from fastndcg.adapters import xgboost as fnx

    features, label, sizes = data(rows)
    train = xgb.DMatrix(features, label=label, group=sizes, nthread=1)
    settings = {"objective": "rank:ndcg", "nthread": 1, "max_depth": 3, "eval_metric": "ndcg@10"}
    model = xgb.train(settings, train, 3)
    silent = xgb.train(settings | {"eval_metric": [], "disable_default_eval_metric": 1}, train, 3)
    sets = [(train, "train")]
    metric, like = fnx.metric(MEASURE, threads=1), fnx.metric(MEASURE, like="xgboost", threads=1)
    line = silent.eval_set(sets, 0, like)
    same(float(model.eval_set(sets).rpartition(":")[2]), float(line.rpartition(":")[2]), 1.01e-6)
    assert line.count(":") == 1, "the built-in metric is computed beside ours"
    yield Case(
        "XGBoost",
        lambda: model.eval_set(sets),
        lambda: silent.eval_set(sets, 0, metric),
        lambda: silent.eval_set(sets, 0, like),
    )

    def of_query(true: Any, score: Any) -> float:
        return float(ndcg_score([true], [score], k=10))

    once_a_query = ltr_metric_decorator(of_query, 1)
    again, as_theirs = (
        fnx.callback(MEASURE, {"train": train}, like=name, threads=1) for name in (None, "xgboost")
    )
    again.before_training(silent)
    as_theirs.before_training(silent)
    yield Case(
        "XGBRanker, scikit-learn's function",
        lambda: once_a_query(silent.predict(train), train),
        lambda: again.after_iteration(silent, 0, {}),
        lambda: as_theirs.after_iteration(silent, 0, {}),
    )


def lightgbm_cases(rows: int) -> Iterator[Case]:
    import lightgbm as lgb

    from fastndcg.adapters import lightgbm as fnl

    features, label, sizes = data(rows)
    settings: dict[str, Any] = {"objective": "lambdarank", "num_threads": 1, "num_leaves": 7, "verbosity": -1}
    train = lgb.Dataset(features, label, group=sizes, params=settings, free_raw_data=False)
    model = lgb.train(settings | {"metric": "ndcg", "eval_at": [10]}, train, 3, keep_training_booster=True)
    silent = lgb.train(settings | {"metric": "None"}, train, 3, keep_training_booster=True)
    metric, like = fnl.metric(MEASURE, threads=1), fnl.metric(MEASURE, like="lightgbm", threads=1)
    same(model.eval_train()[0][2], silent.eval_train(like)[0][2], 1e-12)
    yield Case(
        "LightGBM",
        model.eval_train,
        lambda: silent.eval_train(metric),
        lambda: silent.eval_train(like),
    )


def catboost_cases(rows: int, iterations: int = 20) -> Iterator[Case]:
    import catboost as cb

    from fastndcg.adapters import catboost as fnc

    features, label, sizes = data(rows)
    train = cb.Pool(features, label, group_id=np.repeat(np.arange(len(sizes)), sizes))
    train.quantize(border_count=16)

    def trained(metric: Any) -> dict[str, Any]:
        model = cb.CatBoostRanker(
            iterations=iterations, eval_metric=metric, loss_function="QueryRMSE", depth=1, border_count=16, thread_count=1,
            verbose=False, allow_writing_files=False, use_best_model=False,
        )  # fmt: skip
        found: dict[str, Any] = model.fit(train, eval_set=train).evals_result_["validation"]
        return found

    pool = [sizes]
    metric, like = (fnc.metric(MEASURE, group=pool, like=name, threads=1) for name in (None, "catboost"))
    theirs = "NDCG:top=10;hints=skip_train~false"
    same(trained(theirs)["NDCG:top=10;type=Base"][-1], trained(like)[MEASURE][-1], 1e-12)
    yield Case(
        "CatBoost", lambda: trained(theirs), lambda: trained(metric), lambda: trained(like),
        lambda: trained("QueryRMSE"), 2 * iterations,
    )  # fmt: skip


CASES = {"xgboost": xgboost_cases, "lightgbm": lightgbm_cases, "catboost": catboost_cases}


def rows(*, quick: bool) -> Iterator[Row]:
    for cases in CASES.values():
        for case in cases(2_000 if quick else 100_000):
            yield from measure(case, 0.0 if quick else 4.0)


def measure(case: Case, seconds: float) -> Iterator[Row]:
    calls = {"theirs": case.theirs, "nDCG@10": case.ours, "the same number, with like=": case.like}
    times = take_turns(calls | {"nothing": case.nothing or int}, seconds=seconds)
    nothing = times.pop("nothing") if case.nothing else Time(0.0, 0.0)
    own = {
        name: Time(*((each - base) / case.evaluations for each, base in zip(time, nothing, strict=True)))
        for name, time in times.items()
    }
    theirs = own.pop("theirs")
    for name, ours in own.items():
        yield beside(
            "training", f"{case.host}, {name}", "its own", "ms", ours, theirs, each=1e3, wants="more"
        )
