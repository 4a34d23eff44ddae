"""What an evaluation costs by the adapters of evaluation libraries, beside the library itself.

    python bench/bench_evaluators.py [--queries 300] [--seconds 4]

Both are asked for the same values first, and a difference ends the run. Then they take turns, in one process on one thread; processor
time of the fastest call, with the walk through the dictionaries.

Bias: generated data; 1,000 returned documents a query and few judged ones, as in BEIR and MTEB, and 100 documents, all of them judged.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a script, from anywhere

from bench.timing import take_turns

MEASURES = [f"{name}.1,3,5,10,100,1000" for name in ("ndcg_cut", "map_cut", "recall", "P")]
Call = Callable[[], Any]


class Case(NamedTuple):
    """One evaluation by a library and by us."""

    library: str
    data: str
    theirs: Call
    ours: Call


def dicts(queries: int, returned: int, judged: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Judgments and a run; half of the judged documents are returned, or all of them where as many are judged."""
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

    for returned, judged in ((1000, 2), (1000, 50), (100, 10), (100, 100)):
        qrels, run = dicts(queries * 1000 // returned, returned, judged)
        evaluators = [kind.RelevanceEvaluator(qrels, MEASURES) for kind in (pytrec_eval, ours)]
        assert evaluators[0].evaluate(run) == evaluators[1].evaluate(run)
        theirs, mine = (lambda run=run, one=one: one.evaluate(run) for one in evaluators)
        yield Case("pytrec_eval", f"{len(run):,} queries x {returned}, {judged} judged", theirs, mine)


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
        "ir_measures", f"{queries:,} queries x 1000, 50 judged",
        lambda: ir_measures.calc_aggregate(measures, qrels, run), lambda: mine.calc_aggregate(measures, qrels, run),
    )  # fmt: skip


CASES = {"pytrec_eval": pytrec_eval_cases, "ir_measures": ir_measures_cases}


def report(case: Case, seconds: float) -> str:
    times = take_turns({"theirs": case.theirs, "ours": case.ours}, seconds=seconds)
    theirs, ours = times["theirs"].cpu, times["ours"].cpu
    columns = [
        case.library,
        case.data,
        f"{theirs * 1e3:.1f} ms",
        f"{ours * 1e3:.1f} ms",
        f"{theirs / ours:.1f}x",
    ]
    return " | ".join(columns)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--queries", type=int, default=300)
    options.add_argument("--seconds", type=float, default=4.0)
    chosen = options.parse_args()
    for cases in CASES.values():
        for case in cases(chosen.queries):
            print(report(case, chosen.seconds), flush=True)


if __name__ == "__main__":
    main()
