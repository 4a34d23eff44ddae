"""LightGBM, XGBoost and CatBoost: their own numbers while they train, those of `evaluate`, stopping early, and what is refused."""

import gc
import pickle
from typing import Any, NamedTuple

import boosting
import engines
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg.errors import InputError, InputTypeError, MeasureError

engines.need("lightgbm", "xgboost", "catboost", extra="rivals")

import catboost as cb  # noqa: E402 - needs the check above
import lightgbm as lgb  # noqa: E402 - as above
import xgboost as xgb  # noqa: E402 - as above
from xgboost.callback import EarlyStopping  # noqa: E402 - as above

from fastndcg.adapters import catboost as fnc  # noqa: E402 - as above
from fastndcg.adapters import lightgbm as fnl  # noqa: E402 - as above
from fastndcg.adapters import xgboost as fnx  # noqa: E402 - as above

# it has been since LightGBM 4.7, and older versions take nothing else
pytestmark = [
    pytest.mark.rivals,
    pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated"),
]

TRAIN, VALID = boosting.ranked(), boosting.ranked(90, seed=1)
BINARY, BINARY_VALID = (
    each._replace(label=(each.label > 1).astype(each.label.dtype)) for each in (TRAIN, VALID)
)
LIGHTGBM = {
    "objective": "lambdarank", "eval_at": [3, 10], "num_leaves": 6, "min_data_in_leaf": 5, "learning_rate": 0.3,
    "num_threads": 1, "seed": 1, "deterministic": True, "force_row_wise": True, "verbosity": -1,
}  # fmt: skip
XGBOOST = {"objective": "rank:ndcg", "eta": 0.4, "max_depth": 3, "nthread": 1, "verbosity": 0, "seed": 1}


# ---- the hosts ----


class Trained(NamedTuple):
    history: Any  # by set of data, "train" and "valid", and by name: a value for each round
    scores: Any  # of the validation data, by the model
    best: int  # round, from 0


def data_set(data, *, weighted=False, **options):
    weight = None
    if weighted:  # of rows: LightGBM gives a query their mean
        weight = (
            np.repeat(data.weight, data.sizes) + np.tile([0.25, -0.25], len(data.label))[: len(data.label)]
        )
    return lgb.Dataset(data.features, data.label, group=data.sizes, weight=weight, **options)


def matrix(data, *, weighted=False):
    weight = data.weight if weighted else None
    return xgb.DMatrix(data.features, label=data.label, qid=data.qid, weight=weight)


def pool(data, *, weighted=False, categories=False):
    features = data.features
    if categories:
        features = pd.DataFrame(features).astype({0: int}).astype({0: str})
    weight = np.repeat(data.weight, data.sizes) if weighted else None
    return cb.Pool(
        features, data.label, group_id=data.qid, group_weight=weight, cat_features=[0] if categories else None
    )


def by_lightgbm(measures, rounds=8, *, train=TRAIN, own=(), like=None, stop=0, weighted=False):
    history, first = {}, data_set(train, weighted=weighted)
    callbacks = [lgb.record_evaluation(history)]
    callbacks += [lgb.early_stopping(stop, first_metric_only=True, verbose=False)] * bool(stop)
    booster = lgb.train(
        LIGHTGBM | {"metric": list({name.partition("@")[0] for name in own}) or "None"}, first, rounds,
        valid_sets=[first, data_set(VALID, weighted=weighted, reference=first)], valid_names=["train", "valid"],
        feval=fnl.metric(measures, like=like), callbacks=callbacks,
    )  # fmt: skip
    return Trained(history, booster.predict(VALID.features), booster.best_iteration - 1)


def by_xgboost(
    measures, rounds=8, *, train=TRAIN, own=("ndcg@10",), like=None, stop=0, weighted=False, **options
):
    history, first = {}, matrix(train, weighted=weighted)
    valid = matrix(BINARY_VALID if train is BINARY else VALID, weighted=weighted)
    options = {"early_stopping_rounds": stop or None, "maximize": True if stop else None} | options
    booster = xgb.train(
        XGBOOST | {"eval_metric": [*own]}, first, rounds, evals=[(first, "train"), (valid, "valid")],
        custom_metric=fnx.metric(measures, like=like), evals_result=history, verbose_eval=False, **options,
    )  # fmt: skip
    scores = booster.predict(matrix(VALID))
    return Trained(history, scores, booster.best_iteration if options["early_stopping_rounds"] else -1)


def by_catboost(measures, rounds=6, *, train=TRAIN, own=(), like=None, stop=0, weighted=False):
    train, valid = pool(train, weighted=weighted), pool(VALID, weighted=weighted)
    metric = fnc.metric(measures, group=[train, valid], like=like)
    stopping = {"early_stopping_rounds": stop} if stop else {"use_best_model": False}
    own = [f"{name};hints=skip_train~false" for name in own] or None
    model = fitted(metric, train, valid, rounds, custom_metric=own, **stopping)
    history = {
        {"learn": "train"}.get(key, "valid"): {
            name.partition(";type=Base")[0]: each for name, each in of.items()
        }
        for key, of in model.evals_result_.items()
    }
    return Trained(history, model.predict(VALID.features), model.best_iteration_)


def fitted(metric, train, valid, rounds=6, **options):
    model = cb.CatBoostRanker(
        iterations=rounds, eval_metric=metric, loss_function="QueryRMSE", depth=3, learning_rate=0.4, thread_count=2, random_seed=1,
        verbose=False, allow_writing_files=False, **options,
    )  # fmt: skip
    return model.fit(train, eval_set=valid)


HOSTS = {"lightgbm": by_lightgbm, "xgboost": by_xgboost, "catboost": by_catboost}
OWN = [
    ("lightgbm", TRAIN, {"nDCG@3": "ndcg@3", "nDCG@10": "ndcg@10", "AP@3": "map@3", "AP@10": "map@10"}),
    ("xgboost", TRAIN, {"nDCG@3": "ndcg@3", "nDCG@10": "ndcg@10", "nDCG": "ndcg"}),
    ("xgboost", BINARY, {"AP@3": "map@3", "AP": "map", "P@5": "pre@5", "nDCG@5": "ndcg@5"}),
    *(
        ("catboost", TRAIN, {ours: theirs})
        for ours, theirs in {
            "nDCG@3": "NDCG:top=3", "nDCG@10": "NDCG:top=10", "AP@5": "MAP:top=5", "P@5": "PrecisionAt:top=5",
            "R@5": "RecallAt:top=5", "RR@5": "MRR:top=5", "AUC": "QueryAUC:type=Ranking",
        }.items()
    ),
]  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("host", "train", "names"), OWN)
def test_like_a_host_is_what_it_says_itself(host, train, names, weighted):
    measures, own = list(names), list(names.values())
    found = HOSTS[host](
        measures if len(measures) > 1 else measures[0], own=own, like=host, train=train, weighted=weighted
    ).history
    for of_set in found.values():
        for ours, theirs in names.items():
            # XGBoost prints few decimals, and the others add weights in float32
            tolerance = (
                {"atol": 1.01e-6, "rtol": 0} if host == "xgboost" else {"rtol": 1e-6 if weighted else 1e-12}
            )
            np.testing.assert_allclose(of_set[ours], of_set[theirs], **tolerance)


@pytest.mark.parametrize(
    ("host", "measures"),
    [("lightgbm", boosting.MEASURES), ("xgboost", boosting.MEASURES), *(("catboost", each) for each in boosting.MEASURES)],
)  # fmt: skip
def test_the_values_are_those_of_evaluate(host, measures):
    found, scores, _ = HOSTS[host](measures)
    asked = [fn.parse(each) for each in ([measures] if isinstance(measures, str) else measures)]
    names = [name for name in found["valid"] if name[0] in "nRA" and name != "ndcg@10"]
    assert [fn.parse(name) for name in names] == asked
    values = [found["valid"][name][-1] for name in names]
    assert values == pytest.approx(
        VALID.values(scores, measures), abs=1e-6 if host == "xgboost" else 0, rel=0
    )


@pytest.mark.parametrize("host", HOSTS)
def test_early_stopping(host):
    found, _, best = HOSTS[host]("nDCG@10", 80, stop=5)
    values = found["valid"]["nDCG@10"]
    assert best == int(np.argmax(values)) == len(values) - 6


def test_cross_validation():
    folds = lgb.cv(
        LIGHTGBM | {"metric": "None"}, data_set(TRAIN), 3, nfold=2, feval=fnl.metric(["nDCG@10", "RR"])
    )
    assert len(folds["valid nDCG@10-mean"]) == len(folds["valid RR-mean"]) == 3
    metric = fnx.metric(["nDCG@10", "RR"])
    folds = xgb.cv(XGBOOST, matrix(TRAIN), 3, nfold=2, custom_metric=metric, as_pandas=False)
    assert len(folds["test-nDCG@10-mean"]) == len(folds["test-RR-mean"]) == 3
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


@pytest.mark.parametrize("adapter", [fnl, fnx])
def test_a_data_set_is_read_once_and_held_weakly(adapter, monkeypatch):
    read, original = [], adapter._queries
    monkeypatch.setattr(adapter, "_queries", lambda *of: (read.append(id(of[0])), original(*of))[1])
    metric = adapter.metric("nDCG@10")
    data = data_set(VALID).construct() if adapter is fnl else matrix(VALID)
    for seed in range(3):
        metric(np.random.default_rng(seed).normal(size=len(VALID.label)).astype(np.float32), data)
    assert len(read) == 1 and len(metric._read) == 1
    del data
    gc.collect()
    assert not metric._read


def test_labels_of_lightgbm_are_read_again_where_sizes_differ():
    metric, label = fnl.metric("nDCG@10"), VALID.label.copy()
    scores, whole = np.arange(len(label)) % 7, np.array([len(label)])
    assert metric(label, scores, None, VALID.sizes)[0][1] == VALID.values(scores, "nDCG@10")[0]
    expected = VALID._replace(sizes=whole).values(scores, "nDCG@10")[0]
    for each in (metric, pickle.loads(pickle.dumps(metric))):
        assert each(label, scores, None, whole)[0][1] == expected


def test_queries_without_documents_have_no_weight():
    label, scores, weight = np.array([1, 0, 2.0]), np.array([1, 2, 3.0]), np.array([1, 3, 5.0])
    found = fnl.metric("nDCG")(label, scores, weight, np.array([2, 0, 1]))
    expected = fn.Rankings.from_groups([2, 0, 1], label, scores, weight=[2, 0, 5])
    assert found == [("nDCG", fn.evaluate(expected, "nDCG").mean()["nDCG"], True)]


def test_lgbmranker():
    model = lgb.LGBMRanker(
        n_estimators=5, num_leaves=6, min_child_samples=5, n_jobs=1, random_state=1, verbosity=-1
    )
    model.fit(
        TRAIN.features, TRAIN.label, group=TRAIN.sizes, eval_set=[(VALID.features, VALID.label)], eval_group=[VALID.sizes],
        eval_metric=fnl.metric(boosting.MEASURES),
    )  # fmt: skip
    found = list(model.evals_result_["valid_0"].values())[-len(boosting.MEASURES) :]
    assert [values[-1] for values in found] == VALID.values(model.predict(VALID.features))


# ---- XGBoost ----


def test_names_can_be_taken_apart_by_xgboost():
    measures = [fn.nDCG(gain={0: 0, 1: 2.5, 2: 7, 3: 8, 4: 9}, ties="worst") @ 10, "AP(rel=2)"]
    history, *_ = by_xgboost(measures, 1)
    names = list(history["valid"])[1:]
    assert len(names) == 2 and names[1] == "AP(rel=2)" and names[0].startswith("nDCG(")


def test_early_stopping_that_would_minimise_is_warned_of():
    """XGBoost looks at the first letters: `nDCG@10` is minimised, and training ends at once."""
    with pytest.warns(UserWarning, match="takes the lowest nDCG@10 as the best: pass maximize=True to train"):
        assert by_xgboost(["RR", "nDCG@10"], 60, early_stopping_rounds=4).best < 5
    stopping = EarlyStopping(rounds=4, data_name="valid", metric_name="ndcg@10")
    by_xgboost("nDCG@10", 5, callbacks=[stopping])  # and no warning without, or of another measure
    by_xgboost("nDCG@10", 5)


@pytest.mark.parametrize("name", ["ndcg@5", "map@10", "prec@3", "ndcg(gain='exp2')@5"])
def test_names_that_xgboost_maximises_stay_as_they_were_written(name):
    shown, _, best = by_xgboost(name, 60, early_stopping_rounds=4)
    expected, _, same = by_xgboost(str(fn.parse(name)), 60, stop=4)
    assert best == same == int(np.argmax([*expected["valid"].values()][-1]))
    assert best > 0 and [*shown["valid"]][-1] == name
    again = pickle.loads(pickle.dumps(fnx.metric(name)))
    assert again(np.zeros(len(VALID.label)), matrix(VALID))[0][0] == name


def test_a_metric_of_xgboost_has_weights_and_all_digits():
    scores, metric = np.arange(len(VALID.label)) % 9 / 7, fnx.metric(boosting.MEASURES)
    for weight in (None, VALID.weight):
        found = metric(scores, matrix(VALID, weighted=weight is not None))
        assert [value for _, value in found] == VALID.values(scores, weight=weight)


def test_grades_that_are_no_bytes():
    label = np.array([-1.5, 0, 0.25, 300, 2, 1e6], np.float32)
    data = xgb.DMatrix(np.zeros((6, 1)), label=label, group=[4, 2])
    scores = np.array([1, 2, 3, 4, 6, 5], np.float32)
    gain = fn.DCG(gain=abs) @ 3
    expected = fn.evaluate(fn.Rankings.from_groups([4, 2], label, scores), gain).mean()
    assert [value for _, value in fnx.metric(gain)(scores, data)] == list(expected.values())


DATA = {"data": VALID.features, "label": VALID.label, "qid": VALID.qid}


def ranker(**options):
    return xgb.XGBRanker(n_jobs=1, max_depth=3, learning_rate=0.4, random_state=1, **options)


def fit(model):
    valid = {"eval_set": [(VALID.features, VALID.label)], "eval_qid": [VALID.qid]}
    model.fit(TRAIN.features, TRAIN.label, qid=TRAIN.qid, **valid)


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
    fit(model)
    found = model.evals_result()["validation_0"]
    assert list(found) == ["ndcg@10", "nDCG@10"] and len(found["nDCG@10"]) == len(found["ndcg@10"]) < 60
    assert model.best_iteration == int(np.argmax(found["nDCG@10"]))
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(VALID.features), model.predict(VALID.features))


# ---- CatBoost ----


def test_a_metric_is_pickled():
    metric = fnc.metric("nDCG@10", group=pool(VALID))
    scores = np.arange(len(VALID.label)) % 7
    for each in (metric, pickle.loads(pickle.dumps(metric))):
        assert type(each).__name__ == "nDCG@10"
        assert each.evaluate([scores], VALID.label, None) == (VALID.values(scores, "nDCG@10")[0], 1.0)


@pytest.mark.parametrize("options", [{"boosting_type": "Ordered"}, {"categories": True}])
def test_shuffled_data_is_found_out(options):
    categories = options.pop("categories", False)
    train, valid = pool(TRAIN, categories=categories), pool(VALID, categories=categories)
    metric = fnc.metric("nDCG@10", group=[train, valid])
    with pytest.raises(cb.CatBoostError, match="are not those of group=.*use has_time=True"):
        fitted(metric, train, valid, **options)
    assert fitted(metric, train, valid, has_time=True, **options).evals_result_["learn"]["nDCG@10"]


# ---- refused ----


def test_what_is_refused():
    with pytest.raises(MeasureError, match="lightgbm has no RR"):
        fnl.metric(["nDCG@10", "RR"], like="lightgbm")
    with pytest.raises(InputError, match="the data set has 3 rows and no queries; make it with group="):
        fnl.metric("nDCG@10")(np.zeros(3), lgb.Dataset(np.zeros((3, 1)), [0, 1, 2]).construct())
    with pytest.raises(MeasureError, match="nDCG@slots has a cutoff for each query"):
        fnl.metric("nDCG@slots", like="lightgbm")
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
        fit(model)
    one, other = (cb.Pool(np.zeros((5, 1)), [1, 0, 1, 0, 1], group_id=[*ids]) for ids in ("aaabb", "aabbb"))
    with pytest.raises(MeasureError, match="2 measures were passed"):
        fnc.metric(["nDCG@10", "RR"], group=one)
    with pytest.raises(InputError, match="two Pools of group= have the same 5 labels in different queries"):
        fnc.metric("nDCG@10", group=[one, other])
    with pytest.raises(InputError, match="has 3 rows and no queries; make it with group_id="):
        fnc.metric("nDCG@10", group=cb.Pool(np.zeros((3, 1)), [1, 2, 3]))
    with pytest.raises(InputTypeError, match=r"group= has a int; expected a Pool, as in catboost.Pool\(X, y"):
        fnc.metric("nDCG@10", group=[3, 2])
    message = f"evaluates {len(TRAIN.label)} documents that are not those of group=, which has {len(VALID.label)}: give"
    with pytest.raises(cb.CatBoostError, match=message):
        fitted(fnc.metric("nDCG@10", group=pool(VALID)), pool(TRAIN), None)


def test_the_page(capsys):
    of = {"X": TRAIN.features, "y": TRAIN.label, "qid": TRAIN.qid, "sizes": TRAIN.sizes}
    of |= {
        "X_valid": VALID.features,
        "y_valid": VALID.label,
        "qid_valid": VALID.qid,
        "sizes_valid": VALID.sizes,
    }
    train = data_set(TRAIN)
    sets = {
        "LightGBM": (train, data_set(VALID, reference=train)),
        "XGBoost": (matrix(TRAIN), matrix(VALID)),
        "CatBoost": (pool(TRAIN), pool(VALID)),
    }
    made = {host: of | {"train": first, "valid": second} for host, (first, second) in sets.items()}
    for host, names in made.items():
        exec(engines.page_example(host, "training"), names)  # noqa: S102 - the page's own lines
    shown = capsys.readouterr().out
    assert "valid_0's nDCG@10:" in shown and "valid-nDCG@10:" in shown
    assert made["LightGBM"]["booster"].best_iteration > 0
    assert len(made["LightGBM"]["model"].evals_result_["valid_0"]["nDCG@10"]) == 30
    model = made["XGBoost"]["model"]
    assert model.best_iteration == int(np.argmax(model.evals_result()["valid"]["nDCG@10"]))
    model = made["CatBoost"]["model"]
    assert model.best_iteration_ == int(np.argmax(model.evals_result_["validation"]["nDCG@10"]))


# ---- the job to copy ----


def written(folder, name, lines, sizes):
    (folder / name).write_text("".join(lines))
    (folder / f"{name}.query").write_text("".join(f"{size}\n" for size in sizes))
    return str(folder / name)


def check_job(folder, train, valid, like):
    """What the job wrote is what its model says, and is what LightGBM printed."""
    options = "--measure nDCG@10 --measure nDCG@3 --rounds 30 --patience 15 --set num_leaves=7 --set min_data_in_leaf=10"
    options += " --set num_threads=1 --set metric=ndcg --set eval_at=10"
    if like is not None:
        options += f" --convention {like}"
    done = engines.run_script("lightgbm_job.py", train, valid, str(folder / "results"), *options.split())
    assert done.returncode == 0, done.stderr
    model = lgb.Booster(model_file=str(folder / "results" / "model.txt"))
    rankings = fn.read_ltr(valid, scores=model.predict(valid))
    scores = fn.evaluate(rankings, ["nDCG@10", "nDCG@3"], convention=like)
    assert pq.read_table(folder / "results" / "queries.parquet").equals(scores.to_arrow())
    assert done.stdout.endswith(f"best iteration {model.num_trees()}\n{scores.summary()}\n")
    shown = [
        dict(part.split(": ") for part in line.split("\t")[1:])
        for line in done.stdout.splitlines()
        if line[:1] == "["
    ]
    assert shown
    for values in shown:
        assert like is None or values["valid_0's ndcg@10"] == values["valid_0's nDCG@10"]


@pytest.mark.parametrize("like", [None, "lightgbm"])
def test_the_job(tmp_path, like):
    files = []
    for name, data in (("rank.train", TRAIN), ("rank.test", VALID)):
        rows = zip(data.label, data.features, strict=True)
        lines = [
            (
                f"{int(label)} "
                f"{' '.join(f'{number + 1}:{value:g}' for number, value in enumerate(row) if value)}\n"
            )
            for label, row in rows
        ]
        files.append(written(tmp_path, name, lines, data.sizes))
    check_job(tmp_path, *files, like)
    if like is not None:
        words = ("--measure", "RR", "--convention", "lightgbm")
        failed = engines.run_script("lightgbm_job.py", *files, str(tmp_path), *words)
        assert failed.returncode == 1
        assert failed.stderr.splitlines()[-1].startswith("lightgbm_job: lightgbm has no RR")
