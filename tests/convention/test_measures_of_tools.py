"""Each measure of each convention against the tool itself, on random data that no two runs of it share by chance."""

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
