"""`fastndcg explain`: why a query has its value, document by document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastndcg.api.evaluate import evaluate
from fastndcg.cli import options
from fastndcg.cli.application import command, option
from fastndcg.cli.inputs import Inputs, Reading, Systems
from fastndcg.cli.output import Format, refuse, write, write_data
from fastndcg.errors import InputError, about, visible

if TYPE_CHECKING:
    from fastndcg.analysis.explain import Explanation
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings


def _number(help: str, *, metavar: str | None = "N") -> Any:
    return option(help, 0, metavar=metavar, min=0)


@command
def explain(
    *,
    given: Systems,
    measure: str = options.ONE_MEASURE,
    id: list[str] | None = option("Id of a query; repeatable.", metavar="ID"),
    worst: int = _number("The N queries with the lowest values of the first system."),
    best: int = _number("The N queries with the highest values of the first system."),
    random: int = _number("N random queries."),
    movers: int = _number("The N queries whose values differ most between two systems."),
    seed: int = _number("Seed of --random.", metavar=None),
    swaps: int = _number("Show the N swaps of documents that raise the value most."),
    all: bool = option("Show all documents, also those below the cutoff.", False),
    reading: Reading,
    format: Format = options.FORMAT,
    threads: int | None = options.THREADS,
) -> None:
    """Show where the value of a query comes from, rank by rank.

    Each document has its gain, discount and contribution, beside the ideal. A rank contributes the value of
    the ranking cut below it minus that of the ranking cut above it. Tied documents share what they add
    together. Several systems follow one another. The table ends at the cutoff; --all shows all documents, as
    JSON and CSV do.

    \b
    Examples:
      fastndcg explain predictions.parquet --id q-42
      fastndcg explain predictions.parquet -m AP --worst 20 --swaps 3
      fastndcg explain --qrels qrels.txt --run bm25.txt --run rerank.txt --movers 5
      fastndcg explain predictions.parquet --random 3 --format json
    """
    from fastndcg.analysis.explain import explain

    asked = options.read_measures([measure])
    if len(asked) != 1:
        refuse(f"--measure: {measure} names {len(asked)} measures; expected one to explain")
    sources = given.sources(reading)
    if not (id or worst or best or random or movers):
        refuse(
            "no query is named; give --id ID, or --worst N, --best N, --random N, "
            "or --movers N of two systems"
        )
    roles = reading.roles(sources.score)
    read = list(Inputs(sources, roles, threads, whole=True).systems(asked))
    systems: dict[str, Any] = {str(each.name): each.rankings for each in read}
    if movers and len(systems) != 2:
        refuse(f"--movers is of two systems; {len(systems)} {'is' if len(systems) == 1 else 'are'} given")
    first, ids = next(iter(systems.values())), [*(id or [])]
    if worst or best:
        scores = evaluate(first, asked)
        for queries in (scores.worst(asked[0], worst), scores.best(asked[0], best)):
            ids += queries[0].to_pylist()
    if random:
        chosen = np.random.default_rng(seed).permutation(first.n_queries)[:random]
        ids += first.query_ids.take(np.sort(chosen)).to_pylist()
    ids += _movers(systems, asked[0], movers) if movers else []
    found: list[tuple[str, Explanation]] = []  # with the name of its system, if there are several
    for each in dict.fromkeys(ids):
        several = (
            explain(systems, asked[0], each) if len(systems) > 1 else {"": explain(first, asked[0], each)}
        )
        found += several.items()
    for system in read:
        (system if len(read) > 1 else system._replace(name=None)).tell()
    if format not in (Format.table, Format.markdown):
        _write_data(found, swaps, format)
        return
    texts = []
    for name, one in found:
        text = one.text(all, "--format csv", format is Format.markdown)
        texts.append("\n".join([*([visible(name)] if name else []), text, *_swaps_texts(one, swaps)]))
    nothing = "No query to show: none differs, or the measure is undefined for all."
    write("\n\n".join(texts or [nothing]) + "\n")


def _movers(systems: dict[str, Rankings], measure: Measure, most: int) -> list[Any]:
    """Ids of the queries whose values differ most between two systems."""
    scored = []
    for name, each in systems.items():
        with about(f'"{name}"'):
            scored.append(evaluate(each, measure))
    values, others = (
        dict(zip(each.queries[0].to_pylist(), each.values[0].tolist(), strict=True)) for each in scored
    )
    moved = {each: abs(value - others[each]) for each, value in values.items() if each in others}
    return sorted((each for each in moved if moved[each] > 0), key=lambda each: -moved[each])[:most]


def _write_data(found: list[tuple[str, Explanation]], swaps: int, format: Format) -> None:
    rows, facts = [], []
    for name, one in found:
        of_query: dict[str, Any] = {"query": one.query} | ({"system": name} if name else {})
        documents = one.to_arrow().to_pylist()
        rows += [of_query | row for row in documents]
        fact = of_query | {"measure": str(one.measure), "value": one.value, "empty": one.is_empty}
        fact |= {"documents": documents, "missed": one.missed.to_pylist()}
        facts.append(fact | ({"swaps": one.swaps(swaps).to_pylist()} if swaps else {}))
    if format is Format.csv and not rows:
        raise InputError(
            "these queries have no documents, so there is nothing to show as CSV; take --format json"
        )
    write_data(format, {"explanations": facts}, rows)


def _swaps_texts(one: Explanation, swaps: int) -> list[str]:
    rows = one.swaps(swaps).to_pylist() if swaps else []
    said = [
        f"exchanging ranks {row['rank']} and {row['with_rank']} would gain {row['gains']:.6f}" for row in rows
    ]
    return said or ["exchanging two documents would gain nothing"] * bool(swaps)
