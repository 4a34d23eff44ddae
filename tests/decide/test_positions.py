"""Propensities of ranks and differences of rankers from clicks: by hand, against the oracle, and in simulations."""

import math

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

import fastndcg as fn
from fastndcg.decide.positions import looks
from fastndcg.errors import ColumnError, InputError, InputTypeError, MeasureError

pytestmark = pytest.mark.compiled

# ---- propensities ----

ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 9), st.integers(0, 5)),
    min_size=2,
    max_size=20,
)


@pytest.mark.pure
@given(ROWS)
def test_oracle(rows):
    """The likelihood of a slow ascent, where it has a maximum, and its fixed point."""
    groups, ranks, shown, clicked = (np.array(column) for column in zip(*rows, strict=True))
    found = looks(groups, ranks, shown.astype(float), clicked.astype(float), None, 0.95)
    wanted = oracle.propensities(rows, len(found.propensity))
    known = ~np.isnan(found.propensity)
    for rank in np.flatnonzero(known).tolist():
        if wanted[rank] is not None:
            assert found.propensity[rank] == pytest.approx(wanted[rank], rel=1e-4, abs=1e-6)
    inside = known & ~np.isnan(found.high)
    assert (found.low[inside] <= found.propensity[inside] * (1 + 1e-9)).all()
    assert (found.propensity[inside] <= found.high[inside] * (1 + 1e-9)).all()


def of_swaps(seed, sessions=4000, ranks=6):
    """In each session the first document changes places with another, or not; better documents are ranked first."""
    rng = np.random.default_rng(seed)
    other = rng.integers(2, ranks + 1, sessions)
    first, second = 0.6 * rng.random(sessions), 0.6 * rng.random(sessions) * (1 - other / 10)
    swapped = rng.random(sessions) < 0.5
    at_first, at_other = np.where(swapped, second, first), np.where(swapped, first, second)
    session = np.arange(sessions)
    return pa.table(
        {
            "session_id": np.concatenate([session, session]),
            "rank": np.concatenate([np.ones(sessions, np.int64), other]),
            "swapped_with": np.concatenate([other, np.ones(sessions, np.int64)]),
            "clicked": np.concatenate(
                [rng.random(sessions) < at_first, rng.random(sessions) < at_other / other]
            ),
        }
    )


def of_rankers(seed, documents=1500, ranks=6):
    """Two rankers showed the same documents at other ranks, the relevant ones higher, and unequally often."""
    rng = np.random.default_rng(seed)
    relevance = np.repeat(rng.beta(1, 3, documents), 2)
    rank = np.clip(rng.integers(1, ranks + 1, 2 * documents) - (relevance > 0.3), 1, ranks)
    shown = rng.integers(1, 30, 2 * documents)
    document = np.repeat(np.arange(documents), 2)
    clicked = rng.binomial(shown, relevance / rank)
    columns = {"qid": document // 5, "doc_id": document, "rank": rank, "shown": shown, "clicked": clicked}
    return pa.table(columns)


TRUE = 1 / np.arange(1, 7)


@pytest.mark.parametrize(("draw", "method"), [(of_swaps, "swap"), (of_rankers, "intervention")])
def test_they_are_unbiased_and_intervals_hold_them(draw, method):
    """60 logs of 5 intervals, of which about 15 may miss."""
    found = [fn.propensities(draw(seed, 1500), method=method) for seed in range(60)]
    means = np.mean([each["propensity"].to_numpy() for each in found], axis=0)
    assert np.abs(means / TRUE - 1).max() < 0.06
    missed = sum(
        not low <= true <= high
        for each in found
        for low, high, true in zip(each["low"].to_pylist(), each["high"].to_pylist(), TRUE, strict=True)
    )
    assert missed <= 30
    naive = [each["clicked"].to_numpy() / each["shown"].to_numpy() for each in found]
    ratio = np.mean(naive, axis=0)
    assert np.abs(ratio / ratio[0] / TRUE - 1).max() > 0.1, "shares of clicks alone are no propensities"


def test_all_ranks_exchanged_are_shares_of_clicks():
    log = {"rank": [1, 2, 3, 1], "impressions": [100, 100, 50, 100], "clicks": [30, 20, 5, 10]}
    found = fn.propensities(log)
    assert found["propensity"].to_pylist() == pytest.approx([1.0, 1.0, 0.5])
    assert found["high"].to_pylist()[1] == 1.0, "nothing is likelier than certain"
    assert found["shown"].to_pylist() == [200, 100, 50] and found["clicked"].to_pylist() == [40, 20, 5]
    # each time by itself, or counted: the same estimate, and the same interval without a column of queries
    rows = [
        (rank, click) for rank, n, c in zip(*log.values(), strict=True) for click in [1] * c + [0] * (n - c)
    ]
    alone = {"rank": [rank for rank, _ in rows], "clicked": [bool(click) for _, click in rows]}
    assert fn.propensities(alone)["propensity"].to_pylist() == pytest.approx(found["propensity"].to_pylist())
    assert fn.propensities(alone)["low"].to_pylist() == pytest.approx(found["low"].to_pylist(), rel=0.01)


def test_the_other_rank_of_a_session_is_the_one_it_was_exchanged_with():
    log = of_swaps(1)
    assert fn.propensities(log.drop_columns("swapped_with")) == fn.propensities(log)
    alone = fn.propensities(log.drop_columns(["swapped_with", "session_id"]))
    assert alone["propensity"].to_pylist()[1:] != fn.propensities(log)["propensity"].to_pylist()[1:]
    three = {"session_id": [1, 1, 1], "rank": [1, 2, 3], "shown": [3, 3, 3], "clicked": [3, 2, 1]}
    assert fn.propensities(three)["propensity"].to_pylist() == pytest.approx([1, 2 / 3, 1 / 3])


def test_ranks_of_which_nothing_is_known():
    log = {
        "query": [1, 1, 1, 1, 2, 2, 3, 3],
        "document": [1, 1, 2, 2, 3, 3, 4, 4],
        "rank": [1, 2, 1, 3, 4, 5, 2, 6],
        "shown": [5] * 8,
        "clicked": [4, 2, 3, 0, 1, 1, 0, 5],
    }
    found = fn.propensities(log, method="intervention", shown=None)
    values = dict(zip(found["rank"].to_pylist(), found["propensity"].to_pylist(), strict=True))
    assert values[1] == 1 and values[3] == 0
    assert math.isnan(values[4]) and math.isnan(values[5]), "no document leads from the first rank to these"
    assert math.isnan(values[6]), "nor can one say how much more often it is looked at"
    none = fn.propensities({"rank": [1, 2], "clicked": [0, 0]})
    assert all(math.isnan(each) for each in none["propensity"].to_pylist())


def test_tables_files_and_feeding(tmp_path):
    log = of_rankers(3)
    found = fn.propensities(log, method="intervention")
    pq.write_table(log, tmp_path / "log.parquet")
    csv.write_csv(log, tmp_path / "log.csv")
    polars = pytest.importorskip("polars")
    for other in (
        log.to_pandas(),
        polars.from_arrow(log),
        tmp_path / "log.parquet",
        str(tmp_path / "log.csv"),
    ):
        assert fn.propensities(other, method="intervention") == found
    renamed = log.rename_columns(["a", "b", "c", "d", "e"])
    words = {"query": "a", "doc_id": "b", "rank": "c", "shown": "d", "clicked": "e"}
    assert fn.propensities(renamed, method="intervention", **words) == found
    mixed = log.take(pa.array(np.random.default_rng(0).permutation(len(log))))
    again = fn.propensities(mixed, method="intervention")
    assert again["propensity"].to_pylist() == pytest.approx(found["propensity"].to_pylist(), rel=1e-9)
    assert again["low"].to_pylist() == pytest.approx(found["low"].to_pylist(), rel=1e-9)
    seen = found["propensity"].to_numpy()
    clicks = fn.Rankings.from_lists([[1, 0, 1]], [[3, 2, 1]], propensity=seen[:3])
    assert fn.evaluate(clicks, "DCG(ips=True)").values[0, 0] == pytest.approx(1 + 0.5 / seen[2])


def test_refused():
    more = {"rank": [1, 2], "shown": [3, 4], "clicked": [3, 5]}
    with pytest.raises(InputError, match=r"row 1 was clicked 5 times and shown 4; wanted no more clicks"):
        fn.propensities(more)
    with pytest.raises(InputError, match=r"row 0 was clicked 2 times and shown 1"):
        fn.propensities({"rank": [1, 2], "clicked": [2, 0]})
    with pytest.raises(ColumnError, match='there is no column "clicked"'):
        fn.propensities({"rank": [1]})
    with pytest.raises(ColumnError, match="usual name of the rank"):
        fn.propensities({"clicked": [1]})
    with pytest.raises(ColumnError, match="usual name of the doc_id"):
        fn.propensities({"query": [1], "rank": [1], "clicked": [1]}, method="intervention")
    with pytest.raises(
        InputError, match="column for rank has 0 in row 1; wanted ranks, whole numbers from 1"
    ):
        fn.propensities({"rank": [1, 0], "clicked": [1, 1]})
    with pytest.raises(InputError, match="column for clicked has a number that is missing, .*, in row 1"):
        fn.propensities({"rank": [1, 2], "clicked": [1, None]})
    with pytest.raises(InputTypeError, match="column for clicked holds string"):
        fn.propensities({"rank": [1], "clicked": ["yes"]})
    with pytest.raises(InputError, match="the log has no rows"):
        fn.propensities({"rank": np.zeros(0, np.int64), "clicked": np.zeros(0)})
    with pytest.raises(InputError, match="the log has no rows"):
        fn.propensities({"rank": [], "clicked": []})
    with pytest.raises(InputError, match='Did you mean "swap"'):
        fn.propensities({"rank": [1], "clicked": [1]}, method="swaps")


# ---- differences of rankers ----


def bandit(seed, queries=400, model_error=0.1):
    """One of five documents is shown at random, likelier a better one; two rankers of them, which agree much."""
    rng = np.random.default_rng(seed)
    chance = np.clip(rng.beta(2, 3, (queries, 5)), 0.02, 0.98)
    propensity = np.exp(2 * chance + rng.normal(0, 0.5, chance.shape))
    propensity /= propensity.sum(axis=1, keepdims=True)
    choice = (propensity.cumsum(axis=1) > rng.random((queries, 1))).argmax(axis=1)
    shown = np.eye(5)[choice]
    clicked = shown * (rng.random(chance.shape) < chance)
    old = chance + rng.normal(0, 0.4, chance.shape)
    new = old + 0.3 * chance + rng.normal(0, 0.1, chance.shape)
    rankings = fn.Rankings.from_dense(clicked.astype(int), old, propensity=propensity.ravel())
    truth = [fn.evaluate(fn.Rankings.from_dense(chance, each), "DCG@2") for each in (old, new)]
    model = np.clip(chance + rng.normal(0, model_error, chance.shape), 0, 1)
    systems = {"old": rankings, "new": rankings.with_scores(new.ravel())}
    return (
        systems,
        shown.ravel(),
        model.ravel(),
        float(np.subtract(*(each["DCG@2"] for each in truth[::-1])).mean()),
    )


def test_differences_are_unbiased_and_controls_narrow_them():
    """150 logs, of whose intervals about 8 may miss."""
    found = {}
    for seed in range(150):
        systems, shown, model, true = bandit(seed)
        for method in ("ips", "control", "doubly_robust"):
            row = fn.compare_clicks(systems, "DCG@2", method=method, shown=shown, model=model).to_pylist()[0]
            width = row["high"] - row["low"]
            off = row["difference"] - true
            found.setdefault(method, []).append((off, width, row["low"] <= true <= row["high"]))
    for method, rows in found.items():
        off, _, held = np.transpose(rows)
        assert abs(off.mean()) < 3.5 * off.std() / math.sqrt(len(off)), method
        assert held.mean() > 0.89, method
    width = {method: np.mean([each[1] for each in rows]) for method, rows in found.items()}
    assert width["doubly_robust"] < width["control"] < 0.98 * width["ips"]


def test_numbers_by_hand():
    old = fn.Rankings.from_lists(
        [[1, 0], [0, 1], [1, 1]], [[2, 1], [2, 1], [2, 1]], propensity=[1, 0.5, 0.8, 0.5, 1, 0.25]
    )
    systems = {"old": old, "new": old.with_scores([1, 2, 1, 2, 2, 1])}
    second = 1 / math.log2(3)
    apart = [second - 1, 2 * (1 - second), 0.0]
    (row,) = fn.compare_clicks(systems, "DCG").to_pylist()
    assert [*row] == [
        "measure", "system", "baseline", "difference", "low", "high", "weight", "queries", "effective",
    ]  # fmt: skip
    assert (row["measure"], row["system"], row["baseline"]) == ("DCG(ips=True)", "new", "old")
    assert (
        row["difference"] == pytest.approx(np.mean(apart)) and row["queries"] == 3 and row["weight"] is None
    )
    assert row["effective"] == pytest.approx((1 + 2 + 5) ** 2 / (1 + 4 + 25))
    whole = [estimate.snips for each in systems.values() for estimate in fn.snips(each, "DCG")]
    (row,) = fn.compare_clicks(systems, "DCG", method="snips").to_pylist()
    assert row["difference"] == pytest.approx(whole[1] - whole[0]) == pytest.approx(sum(apart) / 8)
    (turned,) = fn.compare_clicks(systems, "DCG", baseline="new").to_pylist()
    assert turned["difference"] == pytest.approx(-np.mean(apart))
    shown, model = [1, 0, 0, 1, 1, 1], [0.5, 0.2, 0.1, 0.9, 0.4, 0.4]
    (row,) = fn.compare_clicks(systems, "DCG", method="doubly_robust", shown=shown, model=model).to_pylist()
    discounts = [[second - 1, 1 - second]] * 2 + [[0.0, 0.0]]
    by_hand = []
    for query in range(3):
        total = 0.0
        for place in range(2):
            d = 2 * query + place
            rest = (int(old.relevance[d]) - shown[d] * model[d]) / old.propensity[d] + model[d]
            total += rest * discounts[query][place]
        by_hand.append(total)
    assert row["difference"] == pytest.approx(np.mean(by_hand))
    assert fn.compare_clicks(systems, ["DCG@1", "CG@1"])["measure"].to_pylist() == [
        "DCG(ips=True)@1",
        "CG(ips=True)@1",
    ]


def test_differences_refuse():
    old = fn.Rankings.from_lists([[1, 0]], [[2, 1]], propensity=[1, 0.5])
    systems = {"old": old, "new": old.with_scores([1, 2])}
    with pytest.raises(MeasureError, match="nDCG@3 does not take ips"):
        fn.compare_clicks(systems, "nDCG@3")
    with pytest.raises(InputError, match="wanted a mapping of two systems or more"):
        fn.compare_clicks({"old": old}, "DCG")
    plain = fn.Rankings.from_lists([[1, 0]], [[2, 1]])
    with pytest.raises(InputError, match='"new" is no Rankings with propensities'):
        fn.compare_clicks({"old": old, "new": plain}, "DCG")
    other = fn.Rankings.from_lists([[0, 1]], [[2, 1]], propensity=[1, 0.5])
    with pytest.raises(InputError, match="systems have other documents, clicks or propensities"):
        fn.compare_clicks({"old": old, "new": other}, "DCG")
    with pytest.raises(InputError, match="this method needs shown, a number for each document"):
        fn.compare_clicks(systems, "DCG", method="control")
    with pytest.raises(InputError, match="this method needs model"):
        fn.compare_clicks(systems, "DCG", method="doubly_robust", shown=[1, 1])
    with pytest.raises(InputError, match="shown has 3 values for 2 documents"):
        fn.compare_clicks(systems, "DCG", method="control", shown=[1, 1, 0])
    with pytest.raises(InputError, match="model has a number that is not finite at position 1"):
        fn.compare_clicks(systems, "DCG", method="doubly_robust", shown=[1, 1], model=[1, math.nan])
    with pytest.raises(InputError, match='baseline="older" is not one of the systems'):
        fn.compare_clicks(systems, "DCG", baseline="older")


def test_a_click_model_is_a_column_of_the_log(tmp_path):
    random = np.random.default_rng(4)
    n = 40
    log = pa.table(
        {
            "qid": random.permutation(np.repeat(np.arange(8), 5)),
            "clicked": random.integers(0, 2, n),
            "old": random.random(n),
            "new": random.random(n),
            "p": random.uniform(0.2, 1, n),
            "seen": random.integers(0, 2, n),
            "expected": random.random(n),
        }
    )
    path = tmp_path / "log.parquet"
    pq.write_table(log, path)
    read = {
        name: fn.Rankings.from_arrow(log, query="qid", relevance="clicked", score=name, propensity="p")
        for name in ("old", "new")
    }
    order = np.argsort(np.unique(log["qid"], return_index=True)[1][log["qid"].to_numpy()], kind="stable")
    arrays = {name: log[name].to_numpy()[order] for name in ("seen", "expected")}
    options = {"method": "doubly_robust"}
    wanted = fn.compare_clicks(read, "DCG@3", shown=arrays["seen"], model=arrays["expected"], **options)
    for source in (log, log.to_pandas(), path, str(path)):
        found = fn.compare_clicks(read, "DCG@3", shown="seen", model="expected", log=source, **options)
        assert found.to_pylist() == wanted.to_pylist()
    with pytest.raises(InputError, match=r"model='expected' is the name of a column; give the table .* log="):
        fn.compare_clicks(read, "DCG@3", shown=arrays["seen"], model="expected", **options)
    with pytest.raises(InputError, match="log has .* other queries or documents than the systems"):
        fn.compare_clicks(read, "DCG@3", shown="seen", model="expected", log=log[:-1], **options)
    with pytest.raises(ColumnError, match="exp"):
        fn.compare_clicks(read, "DCG@3", shown="seen", model="exp", log=log, **options)
