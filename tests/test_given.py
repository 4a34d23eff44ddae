"""What `evaluate` takes in place of rankings: tables of every kind, and paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg import InputTypeError
from fastndcg.sources.columns import Roles

pytestmark = pytest.mark.pure

LONG = {
    "qid": ["b", "a", "b", "a"],
    "label": [1, 0, 0, 2],
    "score": [0.5, 0.5, 0.9, 0.1],
    "country": ["DE", "FR", "DE", "FR"],
    "slots": [1, 2, 1, 2],
    "docno": ["x", "y", "z", "w"],
}


def given_in(form: str, folder: Path) -> Any:
    table = pa.table(LONG)
    if form == "parquet":
        pq.write_table(table, folder / "a.parquet")
        return folder / "a.parquet"
    if form == "paths":
        pq.write_table(table.slice(0, 2), folder / "a.parquet")
        pq.write_table(table.slice(2), folder / "b.parquet")
        return [str(folder / "a.parquet"), str(folder / "b.parquet")]
    if form == "csv":
        table.to_pandas().to_csv(folder / "a.csv", index=False)
        return str(folder / "a.csv")
    if form in ("polars", "lazy"):
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame(LONG)
        return frame if form == "polars" else frame.lazy().filter(polars.col("score") >= 0)
    if form == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        return duckdb.connect().from_arrow(table)
    forms = {"arrow": table, "pandas": table.to_pandas(), "dict": LONG, "batch": table.to_batches()[0]}
    return forms[form]


@pytest.mark.parametrize(
    "form",
    ["arrow", "batch", "pandas", "dict", "polars", "lazy", "duckdb", "parquet", "paths", "csv"],
)
def test_tables_and_paths_are_evaluated_as_rankings_are(form: str, tmp_path: Path) -> None:
    expected = fn.evaluate(fn.Rankings.from_arrow(LONG, keep="country"), ["nDCG@2", "RR"])
    scores = fn.evaluate(given_in(form, tmp_path), ["nDCG@2", "RR"], keep="country")
    assert scores.values.tobytes() == expected.values.tobytes()
    assert scores.queries.to_pydict() == expected.queries.to_pydict()
    named = fn.evaluate(given_in(form, tmp_path), "RR", query="country", relevance="label", score="score")
    assert named.queries[0].to_pylist() == ["DE", "FR"]


@pytest.mark.parametrize("form", ["arrow", "parquet", "csv"])
def test_conventions_and_cutoffs_find_their_columns_in_tables(form: str, tmp_path: Path) -> None:
    data = given_in(form, tmp_path)
    with_ids = fn.Rankings.from_arrow(LONG, doc_id="docno", keep="slots")
    by_id = fn.evaluate(with_ids, "nDCG@2", convention="trec_eval")
    assert fn.evaluate(data, "nDCG@2", convention="trec_eval").values.tobytes() == by_id.values.tobytes()
    assert (
        fn.evaluate(data, "nDCG@slots").values.tobytes()
        == fn.evaluate(with_ids, "nDCG@slots").values.tobytes()
    )


def test_large_files_are_read_a_part_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastndcg.sources import given

    path = given_in("parquet", tmp_path)
    whole = fn.evaluate(path, "nDCG")
    monkeypatch.setattr(given, "IN_MEMORY", 1)
    assert isinstance(given.rankings_or_stream(path, Roles()), fn.RankingsStream)
    assert fn.evaluate(path, "nDCG").values.tobytes() == whole.values.tobytes()


def test_columns_are_named_for_tables_alone() -> None:
    with pytest.raises(
        InputTypeError, match=r"keep= is for tables and paths; Rankings already has its columns"
    ):
        fn.evaluate(fn.Rankings.from_arrow(LONG), "RR", keep="country")
    with pytest.raises(InputTypeError, match=r'evaluate has no argument scores=; .*Did you mean "score"\?'):
        fn.evaluate(LONG, "RR", scores="score")  # type: ignore[call-overload]
    with pytest.raises(fn.SourceError, match=r"nowhere\.parquet does not exist"):
        fn.evaluate("nowhere.parquet", "RR")
