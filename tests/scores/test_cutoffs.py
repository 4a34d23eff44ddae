"""A cutoff of each query from a column, against the oracle and query by query."""

import json
import math
import pickle

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import strategies as ours
from commands import run

import fastndcg as fn
from fastndcg.measures import DEFINITIONS

pytestmark = pytest.mark.pure

CUT = tuple(name for name in ours.OF_QUERIES if DEFINITIONS[name].cut == "rank")


@pytest.mark.parametrize("name", CUT)
def test_each_query_has_its_own_cutoff(name):
    for seed in range(7000, 7004):
        table = ours.crossed_table(seed)
        slots = np.random.default_rng(seed).choice([1, 2, 3, 5, 40], len(table.lengths))
        for dtype in ("int64", "uint8", "float64"):
            rankings = table.rankings(queries={"slots": slots.astype(dtype)})
            for asked in ours.crossed_measures(seed, table, names=[name], most=2):
                words = dict(asked.parameters)
                if isinstance(words.get("discount"), list) or words.get("pairs") == "graded":
                    continue
                measure = getattr(fn, name)(**words) @ "slots"
                got = fn.evaluate(rankings, [measure, "NumRet@slots"])[measure]
                for row, query in enumerate(table.queries()):
                    wanted = oracle.score(name, query, int(slots[row]), **words)
                    same = abs(got[row] - wanted) <= 1e-12 * max(abs(wanted), asked.scale(table))
                    assert same or (math.isnan(got[row]) and math.isnan(wanted)), (seed, str(measure), row)


def example(n=60):
    random = np.random.default_rng(1)
    return fn.Rankings.from_dense(
        random.integers(0, 3, (n, 50)),
        random.random((n, 50)),
        queries={"slots": 1 + np.arange(n) % 45, "country": np.where(np.arange(n) % 2, "de", "fr")},
    )


def test_bits_are_those_of_the_cutoff_itself():
    rankings = example()
    measures = ["nDCG@slots", "AP@slots", "RR@10"]
    scores = fn.evaluate(rankings, measures)
    for row in range(len(rankings)):
        alone = fn.evaluate(rankings[row : row + 1], [f"nDCG@{1 + row % 45}", f"AP@{1 + row % 45}", "RR@10"])
        assert alone.values[:, 0].tobytes() == scores.values[:, row].tobytes()


def test_the_notation():
    measure = fn.nDCG(gain="exp2") @ "slots"
    assert str(measure) == "nDCG(gain='exp2')@slots" and fn.parse(str(measure)) == measure
    assert (measure.cutoff, measure.cutoff_column) == (None, "slots")
    assert measure == fn.nDCG(gain="exp2", cutoff="slots") and hash(measure) == hash(fn.parse(str(measure)))
    assert measure != fn.nDCG(gain="exp2") and measure(gain="linear") == fn.nDCG @ "slots"
    assert pickle.loads(pickle.dumps(measure)) == measure
    assert measure @ 5 == fn.nDCG(gain="exp2", cutoff=5) and (measure @ 5).cutoff_column is None
    for bad in ("page slots", "5", "", "all", "for"):
        with pytest.raises(fn.MeasureError, match="or the name of a column of cutoffs"):
            fn.nDCG @ bad
    with pytest.raises(fn.MeasureError, match="Bpref has no cutoff"):
        fn.Bpref @ "slots"


def test_a_column_for_those_measures_that_have_no_cutoff():
    scores = fn.evaluate(example(), ["nDCG", "AP@5", "Bpref", "IPrec@0.5"], cutoff="slots")
    assert [str(measure) for measure in scores] == ["nDCG@slots", "AP@5", "Bpref", "IPrec@0.5"]
    assert fn.evaluate(example(), "P", cutoff=3).measures == (fn.P @ 3,)


def test_everything_else_takes_it():
    rankings = example()
    scores = fn.evaluate(rankings, "nDCG@slots")
    assert scores.by("country").column_names == ["country", "queries", "nDCG@slots"]
    found = fn.anchors(rankings, "nDCG@slots")["nDCG@slots"]
    assert found.actual.tobytes() == scores.values[0].tobytes()
    assert found.best.tolist() == pytest.approx([1.0] * 60)
    for row in (0, 7, 44):
        explained = fn.explain(rankings, "nDCG@slots", row)
        assert explained.value == explained.to_arrow()["cumulative"][-1].as_py() == scores.values[0, row]
        assert explained.to_arrow()["discount"].null_count == 50 - min(1 + row, 50)
    ties = fn.tie_range(rankings, "nDCG@slots")["nDCG@slots"]
    assert ties.value.tobytes() == scores.values[0].tobytes()
    rerank = rankings.with_scores(-rankings.scores)
    assert fn.compare({"a": rankings, "b": rerank}, measures="nDCG@slots").rows[0]["queries"] == 60


def test_files_and_streams(tmp_path):
    rankings, path = example(), tmp_path / "predictions.parquet"
    query = np.repeat(np.arange(60), 50)
    table = pa.table(
        {"qid": query, "label": rankings.relevance, "score": rankings.scores, "slots": 1 + query % 45}
    )
    pq.write_table(table, path)
    wanted = fn.evaluate(rankings, "nDCG@slots").values
    for read in (fn.read_parquet, fn.scan_parquet):
        assert fn.evaluate(read(path, keep="slots"), "nDCG@slots").values.tobytes() == wanted.tobytes()
    facts = json.loads(run("score", path, "-m", "nDCG@slots", "--format", "json").stdout)
    assert facts["measures"][0]["mean"] == fn.evaluate(rankings, "nDCG@slots").mean()["nDCG@slots"]
    assert "nDCG@slots of query 3" in run("explain", path, "-m", "nDCG@slots", "--id", 3).stdout
    (tmp_path / "qrels.txt").write_text("q 0 a 1\n")
    (tmp_path / "run.txt").write_text("q Q0 a 1 3 x\n")
    result = run("score", "--qrels", tmp_path / "qrels.txt", "--run", tmp_path / "run.txt", "-m", "P@slots")
    assert result.exit_code == 3 and 'there is no column "slots": ' in result.stderr
