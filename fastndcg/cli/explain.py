"""`fastndcg explain`: why a query has its value, document by document."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from fastndcg.api import evaluate
from fastndcg.cli.application import command, end
from fastndcg.cli.options import (
    AscendingOption,
    DocIdOption,
    Format,
    FormatOption,
    GradesOption,
    IsJudgedOption,
    Missing,
    NaN,
    NaNOption,
    PropensityOption,
    QrelsOption,
    QueryOption,
    RankOption,
    RelevanceOption,
    ThreadsOption,
    Unjudged,
    UnjudgedOption,
)
from fastndcg.cli.output import write, write_csv, write_json
from fastndcg.cli.reading import (
    Reading,
    check_sources,
    choose_columns,
    cutoff_columns,
    name_runs,
    open_paths,
    read_measures,
    read_qrels_runs,
    read_rankings,
    tell,
)
from fastndcg.sources.columns import Roles
from fastndcg.tables import markdown_table

if TYPE_CHECKING:
    from fastndcg.explanation import Explanation, Explanations
    from fastndcg.measures import Measure
    from fastndcg.rankings import Rankings

PathsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...",
        help="Predictions as Parquet, CSV, JSON Lines or Feather; of several, a system each.",
    ),
]
RunOption = Annotated[
    list[str] | None,
    typer.Option(help="With --qrels: a TREC or MS MARCO run or a table; repeatable, a system each."),
]
OneMeasureOption = Annotated[str, typer.Option("--measure", "-m", help="As in nDCG(gain='exp2')@10.")]
ScoreOption = Annotated[
    list[str] | None, typer.Option(help="Column of scores; of one PATH repeatable, a system each.")
]
IdOption = Annotated[list[str] | None, typer.Option(metavar="ID", help="Id of a query; repeatable.")]
WorstOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="The N queries with the lowest values of the first system.")
]
BestOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="The N queries with the highest values of the first system.")
]
RandomOption = Annotated[int, typer.Option(metavar="N", min=0, help="N queries at random.")]
MoversOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="The N queries whose values differ most between two systems.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Of --random: what the choice depends on.")]
SwapsOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="Show the N exchanges of two documents that would gain most.")
]


@command
def explain(
    paths: PathsArgument = None,
    qrels: QrelsOption = None,
    run: RunOption = None,
    measure: OneMeasureOption = "nDCG@10",
    score: ScoreOption = None,
    id: IdOption = None,  # noqa: A002 - the option's name
    worst: WorstOption = 0,
    best: BestOption = 0,
    random: RandomOption = 0,
    movers: MoversOption = 0,
    seed: SeedOption = 0,
    swaps: SwapsOption = 0,
    query: QueryOption = None,
    relevance: RelevanceOption = None,
    is_judged: IsJudgedOption = None,
    propensity: PropensityOption = None,
    nan: NaNOption = NaN.refuse,
    rank: RankOption = None,
    ascending: AscendingOption = False,
    unjudged: UnjudgedOption = Unjudged.refuse,
    grades: GradesOption = None,
    doc_id: DocIdOption = None,
    format: FormatOption = Format.table,  # noqa: A002 - the option's name
    threads: ThreadsOption = None,
) -> None:
    """Show where the value of a query comes from: gain, discount and contribution of each document, and the ideal beside it.

    The numbers are those that the kernels summed. Tied documents share the expectation over their orders. Several systems stand side by
    side. Every measure that is a sum over ranks can be explained: nDCG, AP, RR, ERR, RBP, P and most others.

    \b
    Examples:
      fastndcg explain predictions.parquet --id q-42
      fastndcg explain predictions.parquet -m AP --worst 20 --swaps 3
      fastndcg explain --qrels qrels.txt --run bm25.txt --run rerank.txt --movers 5
      fastndcg explain predictions.parquet --random 3 --format json
    """
    chosen_measures = read_measures([measure], [])
    if len(chosen_measures) != 1:
        end(2, f"--measure: {measure} names {len(chosen_measures)} measures; wanted one to explain")
    reading = Reading(rank, ascending, unjudged, grades)
    only_paths = {"--is-judged": is_judged, "--propensity": propensity}
    paths, scores = paths or [], score or []
    paths, judgments, runs = check_sources(paths, qrels, run, {}, only_paths)
    if not (id or worst or best or random or movers):
        end(
            2,
            "no query is named; give --id ID, or --worst N, --best N, --random N, or --movers N of two systems",
        )
    if len(scores) > 1 and len(paths) != 1:
        end(2, "--score is repeatable for one PATH alone; give one column, or one file")
    roles = Roles(
        query,
        relevance,
        next(iter(scores), None),
        cutoff_columns(chosen_measures),
        None,
        doc_id,
        is_judged,
        None,
        propensity,
        nan.value,
        **reading.roles(),
    )
    systems = _of_paths(paths, scores, roles, threads) if paths else _of_runs(judgments, runs, roles, threads)
    if movers and len(systems) != 2:
        end(2, f"--movers is of two systems, and there {'is 1' if len(systems) == 1 else 'are'} given")
    (asked,) = chosen_measures
    ids = list(dict.fromkeys([*(id or []), *_found(systems, asked, worst, best, random, movers, seed)]))
    _report([_explained(systems, asked, each) for each in ids], swaps, format)


def _explained(systems: dict[str, Rankings], measure: Measure, query: object) -> Explanation | Explanations:
    from fastndcg.explanation import explain

    return explain(next(iter(systems.values())) if len(systems) == 1 else systems, measure, query)


# ---- systems ----


def _of_paths(paths: list[str], scores: list[str], roles: Roles, threads: int | None) -> dict[str, Rankings]:
    names = name_runs(paths, "PATH") if len(paths) > 1 else [Path(paths[0]).stem]
    systems: dict[str, Rankings] = {}
    for path, name in zip(paths, names, strict=True):
        opened = open_paths([path], threads)
        for column in scores or (None,):
            chosen = choose_columns(opened, replace(roles, score=column), with_doc_id=True)
            rankings, of_column = read_rankings(chosen, threads), column if len(scores) > 1 else name
            systems[str(of_column)] = rankings
            tell(rankings.n_queries, rankings.n_docs, chosen.columns.taken, _label(of_column, paths, scores))
    return systems


def _label(name: str | None, *given: list[str]) -> str | None:
    return name if any(len(each) > 1 for each in given) else None


def _of_runs(qrels: str, runs: list[str], roles: Roles, threads: int | None) -> dict[str, Rankings]:
    names = name_runs(runs) if len(runs) > 1 else [Path(runs[0]).stem]
    sides = read_qrels_runs(qrels, runs, roles, Missing.zero, threads, intents=False)
    systems: dict[str, Rankings] = {}
    for name, (rankings, taken) in zip(names, sides, strict=True):
        systems[str(name)] = rankings
        tell(rankings.n_queries, rankings.n_docs, taken, _label(name, runs))
    return systems


# ---- queries ----


def _found(
    systems: dict[str, Rankings], measure: Measure, worst: int, best: int, random: int, movers: int, seed: int
) -> list[Any]:
    """Ids of the queries that are asked for otherwise than by id."""
    first, found = next(iter(systems.values())), list[Any]()
    if worst or best:
        scores = evaluate(first, measure)
        found += scores.worst(measure, worst)[0].to_pylist() + scores.best(measure, best)[0].to_pylist()
    if random:
        chosen = np.random.default_rng(seed).permutation(first.n_queries)[:random]
        found += first.query_ids.take(np.sort(chosen)).to_pylist()
    if movers:
        one, other = (evaluate(each, measure) for each in systems.values())
        places = {each: row for row, each in enumerate(other.queries[0].to_pylist())}
        moved = []
        for each, value in zip(one.queries[0].to_pylist(), one.values[0].tolist(), strict=True):
            if each in places:
                moved.append((-abs(value - float(other.values[0, places[each]])), each))
        moved = [pair for pair in moved if pair[0] < 0]
        found += [each for _, each in sorted(moved, key=lambda pair: pair[0])[:movers]]
    return found


# ---- output ----


def _report(found: list[Explanation | Explanations], swaps: int, format: Format) -> None:  # noqa: A002
    from fastndcg.explanation import Explanations

    if format in (Format.table, Format.markdown):
        texts = []
        for each in found:
            alone = {"": each} if not isinstance(each, Explanations) else each
            shown = repr(each)
            if format is Format.markdown:
                shown = f"{each.heading()}\n\n{markdown_table(each._texts(), left=())}\n"
            texts.append("\n".join([shown, *_swaps_texts(alone, swaps)]))
        write("\n\n".join(texts) + "\n")
        return
    parts = [
        (name, one)
        for each in found
        for name, one in (each.items() if isinstance(each, Explanations) else [("", each)])
    ]
    named = any(name for name, _ in parts)
    if format is Format.csv:
        rows = []
        for name, one in parts:
            of_query = {"query": one.query} | ({"system": name} if named else {})
            rows += [of_query | row for row in one.to_arrow().to_pylist()]
        if not rows:
            end(3, "these queries have no documents, so there is nothing to show as CSV; take --format json")
        write_csv(rows)
        return
    facts = []
    for name, one in parts:
        whole = {"query": one.query} | ({"system": name} if named else {})
        whole |= {"measure": str(one.measure), "value": one.value, "empty": one.is_empty}
        whole |= {"documents": one.to_arrow().to_pylist(), "missed": one.missed.to_pylist()}
        facts.append(whole | ({"swaps": _swaps_of(one, swaps)} if swaps else {}))
    write_json({"explanations": facts})


def _swaps_texts(found: dict[str, Explanation], swaps: int) -> list[str]:
    rows = [
        (f"{name}: " if name else "", row) for name, one in found.items() for row in _swaps_of(one, swaps)
    ]
    return [
        f"{of_system}exchanging ranks {row['rank']} and {row['with_rank']} would gain {row['gains']:.6f}"
        for of_system, row in rows
    ]


def _swaps_of(one: Explanation, swaps: int) -> list[dict[str, Any]]:
    return one.swaps(swaps).to_pylist() if swaps else []
