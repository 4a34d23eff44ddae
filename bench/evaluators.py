"""Time the adapters of evaluation libraries against the libraries themselves.

The values of both are compared first, and a difference ends the run. Then both run in turns, in one process
on one thread. The result is the processor time of the fastest call, including the time to read dictionaries.

Bias: generated data; 1,000 returned and few judged documents for each query, as in BEIR and MTEB, or
100 documents, all of them judged.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bench.record import Row, beside
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


CASES = {
    "pytrec_eval": pytrec_eval_cases,
    "ir_measures": ir_measures_cases,
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
