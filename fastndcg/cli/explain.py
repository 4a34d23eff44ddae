"""`fastndcg explain`: why a query has its value, document by document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from fastndcg.api.evaluate import evaluate
from fastndcg.cli.application import command
from fastndcg.cli.meanings import cutoff_columns, read_measures
from fastndcg.cli.options import Format, FormatOption, ThreadsOption
from fastndcg.cli.output import refuse, write, write_csv, write_json
from fastndcg.cli.reading import Reading, Systems, read_systems, tell
from fastndcg.errors import InputError, about

if TYPE_CHECKING:
    from fastndcg.decide.explanation import Explanation, Explanations
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings

OneMeasureOption = Annotated[
    str, typer.Option("--measure", "-m", help="A measure, such as nDCG(gain='exp2')@10.")
]
IdOption = Annotated[list[str] | None, typer.Option(metavar="ID", help="Id of a query; repeatable.")]
WorstOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="The N queries with the lowest values of the first system.")
]
BestOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="The N queries with the highest values of the first system.")
]
RandomOption = Annotated[int, typer.Option(metavar="N", min=0, help="N random queries.")]
MoversOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="The N queries whose values differ most between two systems.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of --random.")]
SwapsOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="Show the N swaps of documents that raise the value most.")
]
AllOption = Annotated[bool, typer.Option("--all", help="Show all documents, also those below the cutoff.")]


@command
def explain(
    *,
    given: Systems,
    measure: OneMeasureOption = "nDCG@10",
    id: IdOption = None,  # noqa: A002 - the option's name
    worst: WorstOption = 0,
    best: BestOption = 0,
    random: RandomOption = 0,
    movers: MoversOption = 0,
    seed: SeedOption = 0,
    swaps: SwapsOption = 0,
    all: AllOption = False,  # noqa: A002 - the option's name
    reading: Reading,
    format: FormatOption = Format.table,  # noqa: A002 - the option's name
    threads: ThreadsOption = None,
) -> None:
    """Show where the value of a query comes from, rank by rank.

    Each document has its gain, discount and contribution, beside the ideal. The numbers are those that the
    kernels sum. Tied documents get the expected value over their orders. Several systems are shown side by
    side. Every measure that is a sum over ranks can be explained: nDCG, AP, RR, ERR, RBP, P and most others.
    The table ends at the cutoff; --all shows all documents, as JSON and CSV do.

    \b
    Examples:
      fastndcg explain predictions.parquet --id q-42
      fastndcg explain predictions.parquet -m AP --worst 20 --swaps 3
      fastndcg explain --qrels qrels.txt --run bm25.txt --run rerank.txt --movers 5
      fastndcg explain predictions.parquet --random 3 --format json
    """
    chosen_measures = read_measures([measure], [])
    if len(chosen_measures) != 1:
        refuse(f"--measure: {measure} names {len(chosen_measures)} measures; wanted one to explain")
    sources = given.sources(reading.of_paths())
    if not (id or worst or best or random or movers):
        refuse(
            "no query is named; give --id ID, or --worst N, --best N, --random N, "
            "or --movers N of two systems"
        )
    roles = reading.roles(sources.score, cutoff_columns(chosen_measures))
    read = {each.name: each for each in read_systems(sources, roles, (), threads)}
    systems = {name: each.rankings for name, each in read.items()}
    if movers and len(systems) != 2:
        refuse(f"--movers is of two systems; {len(systems)} {'is' if len(systems) == 1 else 'are'} given")
    (asked,) = chosen_measures
    ids = list(dict.fromkeys([*(id or []), *_find(systems, asked, worst, best, random, movers, seed)]))
    found = [_explain(systems, asked, each) for each in ids]
    for name, one in read.items():
        tell(one.rankings.n_queries, one.rankings.n_docs, one.columns, name if len(read) > 1 else None)
    _report(found, swaps, format, whole=all)


def _explain(systems: dict[str, Rankings], measure: Measure, query: object) -> Explanation | Explanations:
    from fastndcg.decide.explanation import explain

    return explain(next(iter(systems.values())) if len(systems) == 1 else systems, measure, query)


# ---- queries ----


def _find(
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
        scored = []
        for name, each in systems.items():
            with about(f'"{name}"'):
                scored.append(evaluate(each, measure))
        one, other = scored
        places = {each: row for row, each in enumerate(other.queries[0].to_pylist())}
        moved = []
        for each, value in zip(one.queries[0].to_pylist(), one.values[0].tolist(), strict=True):
            if each in places:
                moved.append((-abs(value - float(other.values[0, places[each]])), each))
        moved = [pair for pair in moved if pair[0] < 0]
        found += [each for _, each in sorted(moved, key=lambda pair: pair[0])[:movers]]
    return found


# ---- output ----


def _report(
    found: list[Explanation | Explanations],
    swaps: int,
    format: Format,  # noqa: A002 - the option's name
    *,
    whole: bool,
) -> None:
    from fastndcg.decide.explanation import Explanations

    if format in (Format.table, Format.markdown):
        texts = []
        for each in found:
            alone = {"": each} if not isinstance(each, Explanations) else each
            shown = each.text(whole, "--format csv", format is Format.markdown)
            texts.append("\n".join([shown, *_swaps_texts(alone, swaps)]))
        nothing = "No query to show: none differs, or the measure is undefined for all."
        write("\n\n".join(texts or [nothing]) + "\n")
        return
    parts: list[tuple[dict[str, Any], Explanation]] = []
    for each in found:
        if isinstance(each, Explanations):
            parts += [({"query": one.query, "system": name}, one) for name, one in each.items()]
        else:
            parts.append(({"query": each.query}, each))
    if format is Format.csv:
        rows = [of_query | row for of_query, one in parts for row in one.to_arrow().to_pylist()]
        if not rows:
            raise InputError(
                "these queries have no documents, so there is nothing to show as CSV; take --format json"
            )
        write_csv(rows)
        return
    facts = []
    for of_query, one in parts:
        fact = of_query | {"measure": str(one.measure), "value": one.value, "empty": one.is_empty}
        fact |= {"documents": one.to_arrow().to_pylist(), "missed": one.missed.to_pylist()}
        facts.append(fact | ({"swaps": _swaps_of(one, swaps)} if swaps else {}))
    write_json({"explanations": facts})


def _swaps_texts(found: dict[str, Explanation], swaps: int) -> list[str]:
    said = []
    for name, one in found.items() if swaps else ():
        of_system, rows = f"{name}: " if name else "", _swaps_of(one, swaps)
        said += [
            f"{of_system}exchanging ranks {row['rank']} and {row['with_rank']} would gain {row['gains']:.6f}"
            for row in rows
        ] or [f"{of_system}exchanging two documents would gain nothing"]
    return said


def _swaps_of(one: Explanation, swaps: int) -> list[dict[str, Any]]:
    return one.swaps(swaps).to_pylist() if swaps else []
