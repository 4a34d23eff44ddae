"""`Scores` as a value: it cannot be changed, and changes nothing that its maker holds."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pyarrow as pa
import pytest

import fastndcg as fn
from fastndcg.scores import Scores, groups_of

pytestmark = pytest.mark.auto

MEASURES = (fn.nDCG @ 10, fn.RR)


def made(values: np.ndarray, weight: np.ndarray | None = None) -> Scores:
    queries = pa.table({"query_id": pa.array(range(values.shape[1]))})
    return Scores(MEASURES, values, np.zeros(values.shape, np.bool_), queries, weight)


@pytest.fixture(params=[None, "lightgbm"])
def scores(request: pytest.FixtureRequest) -> fn.Scores:
    weighted = fn.Rankings.from_lists(
        [[3, 2, 0], [0, 1]], weight=[1.0, 2.0], queries={"country": ["de", "fr"]}
    )
    return fn.evaluate(weighted, "nDCG@2", convention=request.param)


def test_arrays_of_the_caller_stay_writeable() -> None:
    values, weight = np.array([[0.5, 1.0], [1.0, 0.25]]), np.array([1.0, 3.0])
    scores = made(values, weight)
    values[0, 0] = 0.75  # the caller's own, which is shared and not copied
    weight[0] = 2.0
    assert scores.values[0, 0] == 0.75 and scores.weight is not None and scores.weight[0] == 2.0
    for array in (scores.values, scores.weight, scores["RR"]):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize("name", ["values", "measures", "weight", "queries", "other"])
def test_attributes_cannot_be_set(scores: fn.Scores, name: str) -> None:
    with pytest.raises(AttributeError, match=f"{type(scores).__name__} is immutable; .* change {name}"):
        setattr(scores, name, None)
    with pytest.raises(AttributeError, match="is immutable"):
        delattr(scores, name)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda scores: pickle.loads(pickle.dumps(scores))]
)
def test_copies_are_the_same_and_cannot_be_written_to(scores: fn.Scores, again) -> None:
    other = again(scores)
    assert other.to_arrow().equals(scores.to_arrow()) and other.mean() == scores.mean()
    assert repr(other) == repr(scores)
    assert not other.values.flags.writeable and not other.weight.flags.writeable


def test_the_mapping_has_measures_by_any_of_their_names(scores: fn.Scores) -> None:
    assert list(scores) == [fn.nDCG @ 2] and len(scores) == scores.n_queries == 2
    assert np.array_equal(scores["nDCG@2"], scores[fn.nDCG @ 2])
    with pytest.raises(fn.MeasureError, match=r'nDGC@2|no measure|Did you mean "nDCG"'):
        scores["nDGC@2"]
    with pytest.raises(fn.MeasureError, match=r"RR was not evaluated; these were: nDCG@2"):
        scores["RR"]


def test_groups_come_in_the_order_of_their_first_query() -> None:
    columns = [pa.chunked_array([["b", "a", None], ["b", None]]), pa.chunked_array([[1, 1, 2, 1, 2]])]
    distinct, rows = groups_of(columns)
    assert [column.to_pylist() for column in distinct] == [["b", "a", None], [1, 1, 2]]
    assert [part.tolist() for part in rows] == [[0, 3], [1], [2, 4]]
    assert groups_of([pa.chunked_array([pa.array([], pa.string())])])[1] == []


def test_rows_of_one_measure_take_no_other_queries() -> None:
    values = np.array([[0.5, np.nan, 0.25], [1.0, 0.5, 0.5]])
    scores = made(values)
    assert scores.worst("nDCG@10").to_pydict() == {"query_id": [2, 0], "nDCG@10": [0.25, 0.5]}
    assert scores.best("RR", 2).to_pydict() == {"query_id": [0, 1], "RR": [1.0, 0.5]}
    assert scores.best("RR", 0).num_rows == scores.best("RR", -1).num_rows == 0
