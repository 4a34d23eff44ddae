"""LightGBM: its own numbers while it trains, and stopping early."""

import gc
import pickle

import boosting
import engines
import numpy as np
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg.errors import InputError, MeasureError

engines.need("lightgbm", extra="rivals")

import lightgbm as lgb  # noqa: E402 - needs the check above

from fastndcg.adapters import lightgbm as fnl  # noqa: E402 - as above

# it has been since 4.7, and older versions take nothing else
pytestmark = [
    pytest.mark.rivals,
    pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated"),
]

PARAMETERS = {
    "objective": "lambdarank", "metric": "ndcg", "eval_at": [3, 10], "num_leaves": 6, "min_data_in_leaf": 5, "learning_rate": 0.3,
    "num_threads": 1, "seed": 1, "deterministic": True, "force_row_wise": True, "verbosity": -1,
}  # fmt: skip
TRAIN, VALID = boosting.ranked(), boosting.ranked(90, seed=1)


def data_set(data, *, weighted=False, **options):
    weight = None
    if weighted:  # of rows: LightGBM gives a query their mean
        weight = (
            np.repeat(data.weight, data.sizes) + np.tile([0.25, -0.25], len(data.label))[: len(data.label)]
        )
    return lgb.Dataset(data.features, data.label, group=data.sizes, weight=weight, **options)


def trained(ours, rounds=8, *, weighted=False, callbacks=(), **options):
    history = {}
    train = data_set(TRAIN, weighted=weighted)
    valid = data_set(VALID, weighted=weighted, reference=train)
    callbacks = [lgb.record_evaluation(history), *callbacks]
    booster = lgb.train(
        PARAMETERS | options, train, rounds, valid_sets=[train, valid], valid_names=["train", "valid"],
        feval=ours, callbacks=callbacks,
    )  # fmt: skip
    return booster, history


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("ours", "theirs"), [("nDCG", "ndcg"), ("AP", "map")])
def test_like_lightgbm_is_what_the_booster_says(ours, theirs, weighted):
    metric = fnl.metric([f"{ours}@3", f"{ours}@10"], like="lightgbm")
    _, history = trained(metric, weighted=weighted, metric=theirs)
    tolerance = 1e-6 if weighted else 1e-12  # weights are added in float32 there
    for found in (history["train"], history["valid"]):
        for k in (3, 10):
            np.testing.assert_allclose(found[f"{ours}@{k}"], found[f"{theirs}@{k}"], rtol=tolerance)


def test_the_values_are_those_of_evaluate():
    booster, history = trained(fnl.metric(boosting.MEASURES))
    scores = booster.predict(VALID.features)
    assert [values[-1] for values in list(history["valid"].values())[2:]] == VALID.values(scores)
    names = [fn.parse(name) for name in list(history["valid"])[2:]]
    assert names == [fn.parse(measure) for measure in boosting.MEASURES]


def test_early_stopping():
    stop = lgb.early_stopping(4, first_metric_only=True, verbose=False)
    booster, history = trained(fnl.metric("nDCG@10"), 60, callbacks=[stop], metric="None")
    found = history["valid"]["nDCG@10"]
    assert booster.best_iteration == int(np.argmax(found)) + 1 == len(found) - 4


def test_cross_validation():
    folds = lgb.cv(
        PARAMETERS | {"metric": "None"}, data_set(TRAIN), 3, nfold=2, feval=fnl.metric(["nDCG@10", "RR"])
    )
    assert len(folds["valid nDCG@10-mean"]) == len(folds["valid RR-mean"]) == 3


def test_a_data_set_is_read_once_and_held_weakly(monkeypatch):
    read = []
    original = fnl._queries
    monkeypatch.setattr(fnl, "_queries", lambda *of: (read.append(id(of[0])), original(*of))[1])
    metric = fnl.metric("nDCG@10")
    trained(metric)
    assert len(read) == 2
    gc.collect()
    assert not metric._read
    label, scores = VALID.label.copy(), np.arange(len(VALID.label)) % 7
    whole = np.array([len(label)])
    assert metric(label, scores, None, VALID.sizes)[0][1] == VALID.values(scores, "nDCG@10")[0]
    assert (
        metric(label, scores, None, whole)[0][1] == VALID._replace(sizes=whole).values(scores, "nDCG@10")[0]
    )
    assert len(read) == 4
    assert pickle.loads(pickle.dumps(metric))(label, scores, None, whole) == metric(
        label, scores, None, whole
    )


def test_queries_without_documents_have_no_weight():
    label, scores, weight = np.array([1, 0, 2.0]), np.array([1, 2, 3.0]), np.array([1, 3, 5.0])
    found = fnl.metric("nDCG")(label, scores, weight, np.array([2, 0, 1]))
    expected = fn.Rankings.from_groups([2, 0, 1], label, scores, weight=[2, 0, 5])
    assert found == [("nDCG", fn.evaluate(expected, "nDCG").mean()["nDCG"], True)]


# ---- LGBMRanker ----


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


# ---- refused ----


def test_what_is_refused():
    with pytest.raises(MeasureError, match="lightgbm has no RR"):
        fnl.metric(["nDCG@10", "RR"], like="lightgbm")
    with pytest.raises(InputError, match="the data set has 3 rows and no queries; make it with group="):
        fnl.metric("nDCG@10")(np.zeros(3), lgb.Dataset(np.zeros((3, 1)), [0, 1, 2]).construct())


def test_the_page(capsys):
    train = data_set(TRAIN)
    names = {
        "train": train, "valid": data_set(VALID, reference=train), "X": TRAIN.features, "y": TRAIN.label, "sizes": TRAIN.sizes,
        "X_valid": VALID.features, "y_valid": VALID.label, "sizes_valid": VALID.sizes,
    }  # fmt: skip
    exec(engines.page_example("LightGBM", "training"), names)  # noqa: S102 - the page's own lines
    assert "valid_0's nDCG@10:" in capsys.readouterr().out
    assert names["booster"].best_iteration > 0
    assert len(names["model"].evals_result_["valid_0"]["nDCG@10"]) == 30


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


def test_the_job_on_the_example_of_lightgbm(tmp_path, data):
    source = data / "lightgbm_lambdarank" / "rank.test"
    lines = source.read_text().splitlines(keepends=True)
    sizes = np.loadtxt(f"{source}.query", dtype=int)
    cut = int(sizes[:35].sum())
    train = written(tmp_path, "rank.train", lines[:cut], sizes[:35])
    check_job(tmp_path, train, written(tmp_path, "rank.test", lines[cut:], sizes[35:]), "lightgbm")
