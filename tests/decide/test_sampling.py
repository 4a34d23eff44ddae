"""Samples of queries: sizes, chances, weights that undo them, and every kind of table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg.errors import ColumnError, InputError, InputTypeError


def log(n=300, seed=0):
    """Queries with traffic of a heavy tail, and values that follow it."""
    rng = np.random.default_rng(seed)
    traffic = rng.pareto(1.2, n) + 0.1
    values = 1 / (1 + np.exp(-(np.log(traffic) - 1 + rng.normal(size=n))))
    lang = rng.choice(["de", "fr", "it"], n, p=[0.7, 0.25, 0.05])
    return {"qid": np.arange(n), "lang": lang, "traffic": traffic, "value": values}


@pytest.mark.parametrize(
    ("options", "of"),
    [
        ({}, "queries"),
        ({"by": "lang"}, "queries"),
        ({"by": "lang", "allocation": "neyman", "value": "value"}, "queries"),
        ({"weight": "traffic", "of": "traffic"}, "traffic"),
        ({"by": ["lang"], "weight": "traffic", "of": "traffic"}, "traffic"),
        ({"by": "lang", "weight": "traffic"}, "queries"),
    ],
)
def test_weighted_means_of_samples_are_those_of_all(options, of):
    table = log()
    target = np.average(table["value"], weights=table["traffic"] if of == "traffic" else None)
    totals, means = [], []
    for seed in range(400):
        drawn = fn.sample_queries(table, 40, seed=seed, **options)
        assert len(drawn) == 40
        weights, values = drawn["weight"].to_numpy(), drawn["value"].to_numpy()
        totals.append((weights * values).sum())
        means.append(np.average(values, weights=weights))
    whole = target * (table["traffic"].sum() if of == "traffic" else 300)
    assert abs(np.mean(totals) - whole) < 3.5 * np.std(totals) / 20
    bias = 0.02 if options.get("weight") and of == "queries" else 0.0  # of a ratio
    assert abs(np.mean(means) - target) < 3.5 * np.std(means) / 20 + bias


@settings(deadline=None, max_examples=60)
@given(
    strata=st.lists(st.sampled_from("abcd"), min_size=1, max_size=40),
    part=st.floats(0, 1),
    seed=st.integers(0, 5),
    weighted=st.booleans(),
)
def test_sizes_and_sums_of_weights(strata, part, seed, weighted):
    least = len(set(strata))
    n = least + int(part * (len(strata) - least))
    traffic = np.random.default_rng(seed).pareto(1, len(strata)) + 0.01
    table = {"place": range(len(strata)), "stratum": strata, "traffic": traffic}
    options = {"weight": "traffic", "of": "traffic"} if weighted else {}
    drawn = fn.sample_queries(table, n, by="stratum", seed=seed, **options)
    assert len(drawn) == n
    places = drawn["place"].to_pylist()
    assert places == sorted(set(places)), "each once, in the order of the table"
    assert drawn == fn.sample_queries(table, n, by="stratum", seed=seed, **options)
    for stratum in set(strata):
        rows = [row for row in drawn.to_pylist() if row["stratum"] == stratum]
        assert rows
        whole = sum(
            each if weighted else 1 for each, of in zip(traffic, strata, strict=True) if of == stratum
        )
        assert sum(row["weight"] for row in rows) == pytest.approx(whole)


def test_neyman_has_more_where_values_vary():
    table = {"s": ["a"] * 500 + ["b"] * 500, "v": [*np.linspace(0, 1, 500), *[0.5] * 500]}
    drawn = fn.sample_queries(table, 100, by="s", allocation="neyman", value="v")
    assert drawn["s"].to_pylist().count("a") == 99
    same = {"s": table["s"], "v": [1.0] * 1000}
    assert (
        fn.sample_queries(same, 100, by="s", allocation="neyman", value="v")["s"].to_pylist().count("a") == 50
    )


def test_every_kind_of_table_and_the_weights_are_taken(tmp_path):
    table = pa.table(log())
    pq.write_table(table, tmp_path / "log.parquet")
    expected = fn.sample_queries(table, 30, by="lang", weight="traffic", seed=7)
    assert isinstance(expected, pa.Table)
    assert expected.column_names == ["qid", "lang", "traffic", "value", "weight"]
    for each in (table.to_pandas(), pl.from_arrow(table), table.to_pydict(), tmp_path / "log.parquet"):
        assert (
            fn.sample_queries(each, 30, by="lang", weight="traffic", seed=7)["weight"] == expected["weight"]
        )
    assert fn.sample_queries(table, 30, seed=1) != fn.sample_queries(table, 30, seed=2)
    everything = fn.sample_queries(table, 300, by="lang", weight="traffic")
    assert everything["weight"].to_pylist() == [1.0] * 300
    judged = pd.DataFrame({"qid": expected["qid"].to_pylist(), "doc_id": "d", "grade": 1})
    judged["weight"] = expected["weight"].to_pylist()
    run = {query: ["d"] if query % 2 else ["e", "d"] for query in expected["qid"].to_pylist()}
    rankings = fn.Rankings.from_qrels_run(judged, run, weight="weight")
    value = fn.evaluate(rankings, "RR").mean()["RR"]
    by_hand = np.average([1.0 if query % 2 else 0.5 for query in run], weights=judged["weight"])
    assert value == pytest.approx(by_hand)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InputError, match=r"weight sums up to more than a float64 holds; divide it"):
        fn.sample_queries({"q": [1, 2, 3], "asked": [1e308, 1e308, 1.0]}, 2, weight="asked")
    table = {"q": [1, 2, 3], "s": ["a", "a", "b"], "w": [1.0, 0.0, 2.0], "v": [1.0, None, 0.0]}
    with pytest.raises(InputError, match="n=4 queries of 3 rows"):
        fn.sample_queries(table, 4)
    with pytest.raises(InputError, match="n=1 queries of 2 strata"):
        fn.sample_queries(table, 1, by="s")
    with pytest.raises(InputError, match="weight has 0 at row 1; wanted numbers above 0"):
        fn.sample_queries(table, 1, weight="w")
    with pytest.raises(InputError, match="value has nan at row 1"):
        fn.sample_queries(table, 2, allocation="neyman", value="v")
    with pytest.raises(InputError, match="go together"):
        fn.sample_queries(table, 2, allocation="neyman")
    with pytest.raises(InputTypeError, match="weight holds string"):
        fn.sample_queries(table, 2, weight="s")
    with pytest.raises(ColumnError, match='no column "x" for by'):
        fn.sample_queries(table, 2, by="x")
    with pytest.raises(InputError, match="n=0"):
        fn.sample_queries(table, 0)
    with pytest.raises(InputError, match="of='rows' is not known"):
        fn.sample_queries(table, 2, of="rows")
