"""The storm of random queries: its fast oracle against the slow one, a few of its gusts, and what it does with a failure."""

import bulk
import numpy as np
import oracle
import pytest
from strategies import OF_INTENTS, Asked, Ragged, crossed_measures, crossed_table

from scripts import storm
from scripts.storm_gusts import REGIMES, Gust, draw, read_json, write_json

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize("name", [*bulk.LINEAR, *bulk.OTHERS, *OF_INTENTS])
def test_the_oracle_of_many_queries_is_the_oracle(name):
    compared = 0
    for seed in range(20):
        table = crossed_table(seed)
        if name in OF_INTENTS and table.intents is None:
            continue
        for asked in crossed_measures(seed, table, names=[name], most=2):
            if dict(asked.parameters).get("ips") or sum(orders_of(table)) > 300:
                continue
            got, wanted = storm.expected(table, asked), np.array(asked.expected(table))
            np.testing.assert_allclose(
                got, wanted, rtol=1e-12, atol=1e-12 * asked.scale(table), err_msg=str(asked)
            )
            compared += 1
    assert compared > 5


def orders_of(table):
    return [oracle.number_of_orders(query.scores) for query in table.queries()]


@pytest.mark.parametrize("regime", [*REGIMES, "crossed"])
def test_a_gust(regime):
    rng = np.random.default_rng(len(regime))
    gust = draw(rng, regime)
    few = storm.join_queries(storm.queries_of(gust.table)[: 3 if regime == "thousands" else 40], gust.table)
    gust = storm.drop_refused(gust._replace(table=few))
    for check in ("oracle", "alone", "stream", "shuffled"):
        assert storm.complaint(gust, check) is None


def test_a_failure_is_made_small_and_replays(tmp_path, monkeypatch):
    """Of a package that adds a millionth where a tied document has the grade 3."""
    evaluate = storm.evaluate

    def wrong(gust, **options):
        values = evaluate(gust, **options)
        for query, (own, _, _) in enumerate(storm.queries_of(gust.table)):
            grades, scores = gust.table.relevance[own].tolist(), gust.table.scores[own].tolist()
            if any(
                grade == 3 and scores.count(score) > 1 for grade, score in zip(grades, scores, strict=True)
            ):
                values[:, query] += 1e-6
        return values

    rng = np.random.default_rng(5)
    table = Ragged(
        [7] * 60, rng.integers(0, 5, 420).astype(np.uint8), rng.integers(0, 9, 420).astype(np.float32)
    )
    gust = Gust(table, [Asked("DCG", 5, ()), Asked("nDCG", None, (("gain", {4: 7.0, 3: 2, 2: 1, 1: 1}),))])
    assert storm.complaint(gust, "oracle") is None
    monkeypatch.setattr(storm, "evaluate", wrong)
    small = storm.shrink(gust, "oracle")
    assert len(small.asked) == 1 and small.table.lengths == [2] and 3 in small.table.relevance
    (tmp_path / "a.json").write_text(write_json(small, "oracle", "wrong"))
    again, check = read_json(tmp_path / "a.json")
    assert storm.complaint(again, check) is not None
    monkeypatch.setattr(storm, "evaluate", evaluate)
    assert storm.complaint(again, check) is None
