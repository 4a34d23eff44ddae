"""The storm of random queries: its fast oracle against the slow one, a few of its gusts, and what it does with a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bulk
import numpy as np
import oracle
import pytest
from strategies import Asked, Ragged

from scripts import storm
from scripts.storm_gusts import REGIMES, Gust, draw, draw_measure, read, written


def few_short_queries(seed: int) -> tuple[np.random.Generator, str, Gust]:
    rng = np.random.default_rng(seed)
    gust = draw(rng, "tiny")
    return (
        rng,
        gust.table.note,
        gust._replace(table=storm.joined(storm.queries_of(gust.table)[:12], gust.table)),
    )


@pytest.mark.parametrize("name", [*bulk.LINEAR, *bulk.OTHERS])
def test_the_oracle_of_many_queries_is_the_oracle(name: str) -> None:
    compared = 0
    for seed in range(25):
        rng, kind, gust = few_short_queries(seed)
        for asked in [draw_measure(rng, name, kind) for _ in range(3)]:
            if not storm.accepted(Gust(gust.table, [asked])).asked:
                continue
            queries = gust.table.queries()
            if sum(map(oracle.number_of_orders, (query.scores for query in queries))) > 1500:
                continue
            words = dict(asked.parameters)
            if words.get("ideal") in ("judged_uncut", "judged_returned"):
                continue
            got, wanted = storm.expected(gust.table, asked), np.array(asked.expected(queries))
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12, err_msg=f"{asked} {gust.table}")
            compared += 1
    assert compared > 10


@pytest.mark.parametrize("regime", REGIMES)
def test_a_gust(regime: str) -> None:
    rng = np.random.default_rng(len(regime))
    gust = draw(rng, regime)
    few = storm.joined(storm.queries_of(gust.table)[:400], gust.table)
    gust = storm.accepted(gust._replace(table=few))
    for check in ("oracle", "alone", "stream", "shuffled"):
        assert storm.complaint(gust, check) is None


def test_a_failure_is_made_small_and_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a package that adds a millionth where a tied document has the grade 3."""
    evaluate = storm.evaluate

    def wrong(gust: Gust, **options: Any) -> Any:
        values = evaluate(gust, **options)
        for query, (own, _, _) in enumerate(storm.queries_of(gust.table)):
            scores = [score for _, score, _ in own]
            if any(grade == 3 and scores.count(score) > 1 for grade, score, _ in own):
                values[:, query] += 1e-6
        return values

    rng = np.random.default_rng(5)
    table = Ragged(
        [7] * 60, rng.integers(0, 5, 420).astype(np.uint8), rng.integers(0, 9, 420).astype(np.float32)
    )
    gust = Gust(table, [Asked("DCG", 5, ()), Asked("nDCG", None, (("gain", {4: 7.0, 3: 2, 2: 1, 1: 1}),))])
    assert storm.complaint(gust, "oracle") is None
    monkeypatch.setattr(storm, "evaluate", wrong)
    small = storm.shrunk(gust, "oracle")
    assert len(small.asked) == 1 and small.table.lengths == [2] and 3 in small.table.relevance
    (tmp_path / "a.json").write_text(written(small, "oracle", "wrong"))
    again, check = read(tmp_path / "a.json")
    assert storm.complaint(again, check) is not None
    monkeypatch.setattr(storm, "evaluate", evaluate)
    assert storm.complaint(again, check) is None
