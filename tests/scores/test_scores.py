"""`Scores` as a value: it cannot be changed, and changes nothing that its maker holds."""

import copy
import datetime as dt
import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import fastndcg as fn
from fastndcg import plot
from fastndcg.scores.scores import Scores, write_results
from fastndcg.scores.slices import check_kept, groups_of

MEASURES = (fn.nDCG @ 10, fn.RR)


def made(values, weight=None):
    queries = pa.table({"query_id": pa.array(range(values.shape[1]))})
    return Scores(MEASURES, values, np.zeros(values.shape, np.bool_), queries, weight)


@pytest.fixture(params=[None, "lightgbm"])
def scores(request):
    weighted = fn.Rankings.from_lists(
        [[3, 2, 0], [0, 1]], weight=[1.0, 2.0], queries={"country": ["de", "fr"]}
    )
    return fn.evaluate(weighted, "nDCG@2", convention=request.param)


def test_arrays_of_the_caller_stay_writeable():
    values, weight = np.array([[0.5, 1.0], [1.0, 0.25]]), np.array([1.0, 3.0])
    scores = made(values, weight)
    values[0, 0] = 0.75  # the caller's own, which is shared and not copied
    weight[0] = 2.0
    assert scores.values[0, 0] == 0.75 and scores.weight is not None and scores.weight[0] == 2.0
    for array in (scores.values, scores.weight, scores["RR"]):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize("name", ["values", "measures", "weight", "queries", "other"])
def test_attributes_cannot_be_set(scores, name):
    with pytest.raises(AttributeError, match=f"{type(scores).__name__} is immutable; .* change {name}"):
        setattr(scores, name, None)
    with pytest.raises(AttributeError, match="is immutable"):
        delattr(scores, name)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda scores: pickle.loads(pickle.dumps(scores))]
)
def test_copies_are_the_same_and_cannot_be_written_to(scores, again):
    other = again(scores)
    assert other.to_arrow().equals(scores.to_arrow()) and other.mean() == scores.mean()
    assert repr(other) == repr(scores)
    assert not other.values.flags.writeable and not other.weight.flags.writeable


def test_the_mapping_has_measures_by_any_of_their_names(scores):
    assert list(scores) == [fn.nDCG @ 2] and len(scores) == scores.n_queries == 2
    assert np.array_equal(scores["nDCG@2"], scores[fn.nDCG @ 2])
    with pytest.raises(fn.MeasureError, match=r'nDGC@2|no measure|Did you mean "nDCG"'):
        scores["nDGC@2"]
    with pytest.raises(fn.MeasureError, match=r"RR was not evaluated; these were: nDCG@2"):
        scores["RR"]


@pytest.mark.parametrize(
    ("values", "ascending"),
    [
        ([10, None, 9, 2], [2, 9, 10, None]),
        ([0.5, float("nan"), None, -1.0], [-1.0, 0.5, float("nan"), None]),
        (["10", "", None, "9", "é", "Z"], ["", "10", "9", "Z", "é", None]),
        ([dt.date(2026, 2, 1), dt.date(2025, 11, 30)], [dt.date(2025, 11, 30), dt.date(2026, 2, 1)]),
        ([True, None, False], [False, True, None]),
        ([Decimal("10.5"), Decimal("9.5")], [Decimal("9.5"), Decimal("10.5")]),
    ],
)  # fmt: skip
def test_groups_ascend_by_value_wherever_they_are_shown(values, ascending):
    """`by`, slices of a comparison and pictures have one order, which is that of engines."""
    column = pa.chunked_array([values])
    for given in (column, column.dictionary_encode()):
        scores = fn.evaluate(fn.Rankings.from_lists([[1, 0]] * len(values), queries={"slice": given}), "RR")
        by = scores.by("slice", 0.95)
        assert str(by["slice"].to_pylist()) == str(ascending)
        pytest.importorskip("scipy")
        compared = fn.compare({"a": scores, "b": scores}).slices("slice")
        assert str([key for (key,) in compared]) == str(ascending)
        texts = plot.slices(scores, "RR", "slice").to_dict()["layer"][1]["encoding"]["y"]["sort"]
        assert texts == [row[0] for row in by._texts()[1:]]


def test_what_cannot_be_grouped_is_refused():
    with pytest.raises(fn.ColumnError, match="cannot be grouped by a column of type list"):
        groups_of([pa.chunked_array([[[1], [2]]])])


def test_groups_of_several_columns():
    columns = [pa.chunked_array([["b", "a", None], ["b", None]]), pa.chunked_array([[1, 1, 2, 1, 2]])]
    distinct, rows = groups_of(columns)
    assert [column.to_pylist() for column in distinct] == [["a", "b", None], [1, 1, 2]]
    assert [part.tolist() for part in rows] == [[1], [0, 3], [2, 4]]
    assert groups_of([pa.chunked_array([pa.array([], pa.string())])])[1] == []


def test_rows_of_one_measure_take_no_other_queries():
    values = np.array([[0.5, np.nan, 0.25], [1.0, 0.5, 0.5]])
    scores = made(values)
    assert scores.worst("nDCG@10").to_pydict() == {"query_id": [2, 0], "nDCG@10": [0.25, 0.5]}
    assert scores.best("RR", 2).to_pydict() == {"query_id": [0, 1], "RR": [1.0, 0.5]}
    assert scores.best("RR", 0).num_rows == scores.best("RR", -1).num_rows == 0


@pytest.mark.parametrize("empty", [0.0, 1.0, "nan", "skip"])
def test_undefined_queries_are_neither_worst_nor_best(empty):
    rankings = fn.Rankings.from_lists([[0, 0], [0, 1], [1, 0], [], [0, 2, 1]], query_ids=list("abcde"))
    scores = fn.evaluate(rankings, fn.nDCG(empty=empty))
    assert scores.worst(fn.nDCG(empty=empty))["query_id"].to_pylist() == ["b", "e", "c"]
    assert scores.best(fn.nDCG(empty=empty))["query_id"].to_pylist() == ["c", "e", "b"]
    # defined without a relevant document, but not without documents
    assert fn.evaluate(rankings, "P@2").worst("P@2")["query_id"].to_pylist() == ["a", "b", "c", "e"]


def test_means_are_found_by_any_spelling(scores):
    means = scores.mean()
    assert means.get("ndcg@2") == means["nDCG@2"] and "NDCG@2" in means
    assert means.get("RR") is None and means.get("no measure", 7) == 7 and "RR" not in means
    with pytest.raises(KeyError, match="RR"):
        means["RR"]


def test_columns_that_were_not_kept_are_refused(scores):
    check_kept(["country"], ["country", "lang"])
    for use in (lambda: check_kept(["contry"], ["country", "lang"]), lambda: scores.by("contry")):
        with pytest.raises(
            fn.ColumnError, match=r'no column "contry"; available columns: .*country.*Did you mean "country"'
        ):
            use()
    with pytest.raises(fn.ColumnError, match="no column to group by; available columns: .*country"):
        scores.by([])


def test_tables_have_a_column_for_each_measure(scores, tmp_path):
    table = scores.to_arrow()
    assert table.column_names == ["query_id", "country", "weight", "nDCG@2"]
    assert scores.to_pandas().equals(table.to_pandas()) and pa.table(scores.to_polars()).num_rows == 2
    scores.write_parquet(tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(table)
    with pytest.raises(fn.SourceError, match="out.parquet"):
        scores.write_parquet(tmp_path / "no folder" / "out.parquet")


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "arrow"])
def test_results_appear_complete_or_not_at_all(tmp_path, ending):
    path, table = tmp_path / f"out.{ending}", pa.table({"query_id": range(7), "RR": np.arange(7.0)})
    with pytest.raises(ZeroDivisionError):
        write_results(path, (part or 1 / 0 for part in (table, 0)))
    assert list(tmp_path.iterdir()) == []
    write_results(path, (table[row : row + 1] for row in range(7)))
    assert list(tmp_path.iterdir()) == [path]
    if ending in ("parquet", "arrow"):
        assert (pq.read_table(path) if ending == "parquet" else feather.read_table(path)).equals(table)
    else:
        assert len(path.read_text().splitlines()) == 7 + (ending == "csv")
