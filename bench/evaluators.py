"""Time the adapters of evaluation libraries against the libraries themselves.

The values of both are compared first, and a difference ends the run. Then both run in turns, in one process
on one thread. The result is the processor time of the fastest call, including the time to read dictionaries.

Bias: generated data; 1,000 returned and few judged documents for each query, as in BEIR and MTEB, or
100 documents, all of them judged. Polars and DuckDB use plain expressions and SQL, which rank tied documents
in any order; there are no ties here. Both evaluators of sentence-transformers embed texts with a bag-of-words
model, which costs both the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import fastndcg as fn
from bench.record import Row, beside
from bench.rivals import query_of_rows, ways
from bench.timing import take_turns

MEASURES = [f"{name}.1,3,5,10,100,1000" for name in ("ndcg_cut", "map_cut", "recall", "P")]
Call = Callable[[], Any]


class Case(NamedTuple):
    """One evaluation by a library and by fastndcg."""

    library: str
    data: str
    theirs: Call
    ours: Call


def dicts(queries: int, returned: int, judged: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Judgments and a run, which returns half of the judged documents, or all if it returns no others."""
    rng = np.random.default_rng(0)
    ids = [f"document-{number:07d}" for number in range(500_000)]
    qrels, run = {}, {}
    for query in range(queries):
        documents = rng.choice(len(ids), returned, replace=False)
        run[f"q{query}"] = {
            ids[document]: score
            for document, score in zip(documents, rng.random(returned).tolist(), strict=True)
        }
        elsewhere = rng.integers(0, len(ids), judged - judged // 2)
        pool = documents if judged == returned else np.append(documents[: judged // 2], elsewhere)
        qrels[f"q{query}"] = {ids[document]: int(rng.integers(0, 4)) for document in pool}
    return qrels, run


def pytrec_eval_cases(queries: int) -> Iterator[Case]:
    import pytrec_eval

    from fastndcg.adapters import pytrec_eval as ours

    rng = random.Random(0)  # noqa: S311
    for returned, judged, order in (
        (1000, 2, ""), (1000, 50, ""), (1000, 1000, ""), (1000, 1000, " in another order"),
        (100, 10, ""), (100, 100, ""), (100, 100, " in another order"),
    ):  # fmt: skip
        qrels, run = dicts(queries * 1000 // returned, returned, judged)
        if order:
            qrels = {query: dict(rng.sample([*pool.items()], len(pool))) for query, pool in qrels.items()}
        evaluators = [kind.RelevanceEvaluator(qrels, MEASURES) for kind in (pytrec_eval, ours)]
        assert evaluators[0].evaluate(run) == evaluators[1].evaluate(run)
        theirs, mine = (lambda run=run, one=one: one.evaluate(run) for one in evaluators)
        yield Case("pytrec_eval", f"{len(run):,} queries x {returned}, {judged} judged{order}", theirs, mine)


def ir_measures_cases(queries: int) -> Iterator[Case]:
    import ir_measures

    from fastndcg.adapters.ir_measures import provider

    measures = [ir_measures.parse_measure(text) for text in ("nDCG@10", "AP", "RR", "P@10", "R@100")]
    qrels, run = dicts(queries, 1000, 50)
    mine = provider()
    theirs = ir_measures.calc_aggregate(measures, qrels, run)
    assert all(
        abs(value - theirs[measure]) < 1e-12
        for measure, value in mine.calc_aggregate(measures, qrels, run).items()
    )
    yield Case(
        "ir_measures",
        f"{queries:,} queries x 1000, 50 judged",
        lambda: ir_measures.calc_aggregate(measures, qrels, run),
        lambda: mine.calc_aggregate(measures, qrels, run),
    )


def lists(queries: int) -> fn.Rankings:
    """Rows of a hundred documents for each query, sorted by query, without equal scores."""
    rng = np.random.default_rng(0)
    scores = rng.permutation(queries * 100).astype(np.float32)
    return fn.Rankings.from_groups(np.full(queries, 100), rng.integers(0, 4, queries * 100), scores)


def case_of(library: str, rankings: fn.Rankings, ours: Call, tolerance: float = 1e-12) -> Case:
    """Compare with the way that `bench/rivals` times, after a check of the answers."""
    theirs = ways(f"{library}_")[0].prepare(rankings)
    assert abs(ours() - float(theirs())) < tolerance
    return Case(library, f"{len(rankings):,} queries x 100", theirs, ours)


def torchmetrics_cases(queries: int) -> Iterator[Case]:
    import torch

    from fastndcg.adapters.torchmetrics import RankingMetric

    rankings = lists(queries * 10)
    scores, grades = torch.tensor(rankings.scores), torch.tensor(rankings.relevance)
    indexes = torch.tensor(query_of_rows(rankings))
    metric = RankingMetric("nDCG@10", threads=1)

    def ours() -> float:
        metric.reset()
        metric.update(scores, grades, indexes=indexes)
        return float(metric.compute())

    yield case_of("torchmetrics", rankings, ours, tolerance=1e-6)  # it computes in float32


def sentence_transformers_cases(queries: int) -> Iterator[Case]:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import evaluation
    from sentence_transformers.sentence_transformer.modules import BoW

    from fastndcg.adapters.sentence_transformers import InformationRetrievalEvaluator

    rng = np.random.default_rng(0)
    words = [f"w{word}" for word in range(200)]
    corpus, asked = (
        {f"{prefix}{each}": " ".join(rng.choice(words, 8)) for each in range(number)}
        for prefix, number in (("d", 500), ("q", queries))
    )
    relevant = {query: {f"d{document}" for document in rng.choice(500, 20, replace=False)} for query in asked}
    model = SentenceTransformer(modules=[BoW(vocab=words)], device="cpu")
    theirs, ours = (
        kind(asked, corpus, relevant, ndcg_at_k=[10], write_csv=False)
        for kind in (evaluation.InformationRetrievalEvaluator, InformationRetrievalEvaluator)
    )
    found = ours(model)
    assert all(abs(found[name] - value) < 1e-12 for name, value in theirs(model).items())
    yield Case(
        "sentence_transformers",
        f"{queries:,} queries, 500 documents",
        lambda: theirs(model),
        lambda: ours(model),
    )


def polars_cases(queries: int) -> Iterator[Case]:
    import polars as pl

    import fastndcg.adapters.polars  # noqa: F401 - registers .fastndcg

    rankings = lists(queries * 10)
    frame = pl.DataFrame(
        {"query": query_of_rows(rankings), "grade": rankings.relevance, "score": rankings.scores}
    )
    yield case_of("polars", rankings, lambda: frame.fastndcg.evaluate("nDCG@10", threads=1).mean()["nDCG@10"])


def duckdb_cases(queries: int) -> Iterator[Case]:
    import duckdb

    from fastndcg.adapters import duckdb as ours

    rankings = lists(queries * 10)
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    rows = {"query": query_of_rows(rankings), "grade": rankings.relevance, "score": rankings.scores}
    connection.register("rows", pa.table(rows))
    connection.execute("create table documents as select * from rows")
    ours.register(connection)
    sql = "with each as (select ndcg(list(grade), list(score), 10) as value from documents group by query) select avg(value) from each"
    yield case_of("duckdb", rankings, lambda: connection.execute(sql).fetchall()[0][0])


CASES = {
    "pytrec_eval": pytrec_eval_cases,
    "ir_measures": ir_measures_cases,
    "torchmetrics": torchmetrics_cases,
    "sentence_transformers": sentence_transformers_cases,
    "polars": polars_cases,
    "duckdb": duckdb_cases,
}


def measure(case: Case, seconds: float) -> Row:
    times, name = (
        take_turns({"theirs": case.theirs, "ours": case.ours}, seconds=seconds),
        f"{case.library}, {case.data}",
    )
    return beside(
        "evaluators", name, "the library", "ms", times["ours"], times["theirs"], each=1e3, wants="more"
    )


def rows(*, quick: bool) -> Iterator[Row]:
    for cases in CASES.values():
        for case in cases(10 if quick else 300):
            yield measure(case, 0.2 if quick else 4.0)
