"""Means weighted by relevant documents, by returned documents, by a column or not at all."""

import pickle
from fractions import Fraction
from pathlib import Path

import commands
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run
from strategies import oracle

import fastndcg as fn

pytestmark = pytest.mark.pure


def table(seed, queries=40):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, queries)
    own = rng.choice([0, 0.5, 1, 3], queries)
    return pa.table(
        {
            "query_id": np.repeat(np.arange(queries), lengths),
            "relevance": rng.integers(0, 3, lengths.sum()),
            "score": rng.integers(0, 4, lengths.sum()).astype(float),
            "clicks": np.repeat(own, lengths),
            "country": np.repeat(rng.choice(["de", "fr"], queries), lengths),
        }
    )


def wanted(scores, measure, weights, empty):
    return oracle.weighted_mean(scores[measure].tolist(), weights, empty)


@pytest.mark.filterwarnings("ignore:judged lacks")
@pytest.mark.parametrize("empty", ["'skip'", "1", "'nan'"])
@pytest.mark.parametrize("pool", [False, True])
def test_each_weighting_against_fractions(empty, pool):
    for seed in range(5):
        rankings = fn.Rankings.from_arrow(table(seed), keep=["clicks", "country"])
        if pool:
            rng = np.random.default_rng(seed)
            sizes = rng.integers(0, 5, rankings.n_queries)
            judged = np.concatenate([[0], np.cumsum(sizes)]), rng.integers(0, 3, sizes.sum())
            rankings = fn.Rankings.from_offsets(
                rankings.offsets, rankings.relevance, rankings.scores, judged=judged, queries=rankings.queries
            )
        auc = f"AUC(empty={empty})"
        scores = fn.evaluate(rankings, [auc, "NumRel", "NumRet"])
        of = {
            "n_docs": scores["NumRet"].tolist(),
            "n_relevant": scores["NumRel"].tolist(),
            "clicks": scores.queries["clicks"].to_pylist(),
            None: [1.0] * rankings.n_queries,
        }
        alone = fn.evaluate(rankings, auc)
        for weights, each in of.items():
            mean = wanted(scores, auc, each, empty.strip("'"))
            for found in (scores, alone):
                np.testing.assert_equal(found.mean(weights)[auc], mean)
                np.testing.assert_equal(found.summary(weights=weights).rows[0]["mean"], mean)
            by = alone.by("country", weights=weights)
            for country, got in zip(by["country"].to_pylist(), by[auc].to_pylist(), strict=True):
                some = np.equal(rankings.queries["country"].to_pylist(), country)
                part = np.array(scores[auc])[some].tolist(), np.array(each)[some].tolist()
                np.testing.assert_equal(got, oracle.weighted_mean(*part, empty.strip("'")))


def test_gauc_of_recbole():
    """Sum over users of R * AUC / sum of R, users of one class left out (recbole/evaluator/metrics.py GAUC)."""
    rankings = fn.Rankings.from_arrow(table(7))
    total = weight = Fraction(0)
    for start, stop in zip(rankings.offsets[:-1].tolist(), rankings.offsets[1:].tolist(), strict=True):
        grades, scores = rankings.relevance[start:stop], rankings.scores[start:stop]
        above = [s for s, g in zip(scores, grades, strict=True) if g >= 1]
        others = [s for s, g in zip(scores, grades, strict=True) if g < 1]
        if above and others:
            right = sum(Fraction(int(2 * (a > b) + (a == b)), 2) for a in above for b in others)
            total += right / len(others)
            weight += len(above)
    found = fn.evaluate(rankings, "AUC(empty='skip')").mean(weights="n_relevant")
    assert list(found.values()) == [pytest.approx(float(total / weight), rel=1e-15)]


@pytest.mark.parametrize("scattered", [False, True])
def test_streams_are_read_again_for_counts_and_stored_results_need_them(tmp_path, scattered):
    path, rows = tmp_path / "data.parquet", table(3, 500)
    if scattered:
        rows = rows.take(pa.array(np.random.default_rng(0).permutation(len(rows))))
    pq.write_table(rows, path, row_group_size=300)
    whole = fn.evaluate(fn.read_parquet(path), "AUC")
    with_counts = fn.evaluate(fn.scan_parquet(path), ["AUC", "NumRel", "NumRet"])
    alone = fn.evaluate(fn.scan_parquet(path), "AUC")
    for weights in ("n_relevant", "n_docs"):
        for streamed in (with_counts, alone):
            assert streamed.mean(weights)["AUC"] == whole.mean(weights)["AUC"]
        with pytest.raises(
            fn.InputError, match=r"not known of these scores.*evaluate NumRe. too, as in measures="
        ):
            pickle.loads(pickle.dumps(alone)).mean(weights)


def test_the_own_weights_are_the_default():
    rankings = fn.Rankings.from_lists([[1, 0], [0, 1]], weight=[3, 1])
    scores = fn.evaluate(rankings, "AUC")
    assert scores.mean() == scores.mean("weight") == {"AUC": 0.75}
    assert scores.mean(None) == {"AUC": 0.5}


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(table(4), "data.parquet")
    scores = fn.evaluate(fn.read_parquet("data.parquet", keep=["clicks"]), "AUC")
    for word in ("none", "n_docs", "n_relevant", "clicks"):
        (row,) = commands.rows(f"score data.parquet -m AUC --weights {word}")
        assert float(row["mean"]) == scores.mean(None if word == "none" else word)["AUC"]
    assert run("score data.parquet --weights n_docs --convention lightgbm").exit_code == 2
    refused = run("score data.parquet --weights click")
    assert refused.exit_code == 3 and 'no column "click"' in refused.output


def test_systems_are_compared_with_these_weights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = table(8)
    pq.write_table(rows.append_column("other", pa.array(rows["score"].to_numpy()[::-1])), "data.parquet")
    for word in ("n_relevant", "n_docs", "clicks", "none"):
        line = f"compare data.parquet --score score --score other -m AUC --weights {word}"
        (row,) = commands.facts(line)["rows"]
        means = {row["system"]: row["mean"], row["baseline"]: row["baseline_mean"]}
        for system in ("score", "other"):
            scores = fn.evaluate(fn.read_parquet("data.parquet", score=system, keep=["clicks"]), "AUC")
            assert means[system] == scores.mean(None if word == "none" else word)["AUC"]
    for name, n, k in (("qrels.txt", 3, 2), ("a.txt", 3, 3), ("b.txt", 4, 4)):
        form = "q{0} 0 d{0}{1} {2}\n" if name == "qrels.txt" else "q{0} Q0 d{0}{1} 0 {2} x\n"
        lines = (form.format(i, j, (i + j) % k) for i in range(n) for j in range(4))
        Path(name).write_text("".join(lines), encoding="utf-8")
    result = run("compare --qrels qrels.txt a.txt b.txt -m AUC --weights n_relevant")
    assert result.exit_code == 0, result.output
    assert run("compare data.parquet --weights n_docs --convention lightgbm").exit_code == 2


def test_parts_of_an_engine_merge():
    """Results of queries hold the counts as values of NumRel and NumRet, by which means of parts are weighted."""
    from fastndcg.adapters import scoring

    rankings = fn.Rankings.from_arrow(table(6), keep=["country"])
    scores = fn.evaluate(rankings, ["AUC", "NumRel", "NumRet"])
    results = scores.to_arrow()
    for weights in ("n_relevant", "n_docs"):
        means = scoring.check_means(results.column_names, ["AUC"], by=None, weight=weights)
        parts = [scoring.sums_by(means, results.slice(start, 9)) for start in range(0, len(results), 9)]
        assert scoring.means_of(means, (), parts)["AUC"].to_pylist() == [scores.mean(weights)["AUC"]]
