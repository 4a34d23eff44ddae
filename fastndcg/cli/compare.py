"""`fastndcg compare`: which system is better, how significant the difference is, and gates for pipelines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastndcg.cli.application import command
from fastndcg.cli.baseline import Baseline, Updating
from fastndcg.cli.ci import write_github, write_junit
from fastndcg.cli.gates import Gates, check_means, hold
from fastndcg.cli.inference import Statistics
from fastndcg.cli.meanings import (
    check_confidence,
    cutoff_columns,
    read_by,
    read_gates,
    read_measures,
)
from fastndcg.cli.options import (
    Layout,
    MeasureOption,
    MemoryOption,
    ThreadsOption,
)
from fastndcg.cli.output import note, refuse, slices_texts, write, write_csv, write_json
from fastndcg.cli.reading import (
    ReadingOfMeans,
    Systems,
    open_paths,
    tell,
)
from fastndcg.cli.scored import (
    ConventionOption,
    How,
    Scored,
    WeightsOption,
    columns_of_weights,
    open_runs,
    read_convention,
    scored_paths,
    scored_runs,
    weigh,
)
from fastndcg.common.table import fit, shown_value, terminal_width
from fastndcg.errors import check_system
from fastndcg.measures import Measure
from fastndcg.statistics.intervals import SMALL

if TYPE_CHECKING:
    import pyarrow as pa

    from fastndcg.decide.comparison import Comparison


RanksOption = Annotated[
    bool,
    typer.Option("--ranks", help="Show intervals of ranks, and which systems cannot be told apart."),
]
AnchorsOption = Annotated[
    bool, typer.Option("--anchors", help="Show where each mean lies between a random and the best order.")
]
ByOption = Annotated[
    list[str] | None,
    typer.Option(help="Query-level column: compare within each value; repeatable, for combinations."),
]
MoversOption = Annotated[
    int, typer.Option(metavar="N", min=0, help="Show the N queries that differ most, for each pair.")
]
FormatOption = Annotated[Layout, typer.Option("--format", help="How results are written to stdout.")]


@dataclass(frozen=True)
class ComparedSystems(Systems):
    """Several systems, some of which may be stored results."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...",
            help=(
                "A file for each system: predictions as Parquet, CSV, JSON Lines or Feather, "
                "or results of `fastndcg score --out`; with --qrels: runs."
            ),
        ),
    ] = None


@command
def compare(
    *,
    given: ComparedSystems,
    measure: MeasureOption = None,
    statistics: Statistics,
    by: ByOption = None,
    weights: WeightsOption = None,
    movers: MoversOption = 0,
    ranks: RanksOption = False,
    anchors: AnchorsOption = False,
    convention: ConventionOption = None,
    gates: Gates,
    updating: Updating,
    reading: ReadingOfMeans,
    format: FormatOption = Layout.table,  # noqa: A002 - the option's name
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
) -> None:
    """Compare systems: which is better, and how sure that is.

    The output has differences of means, intervals, p, wins and losses. Queries are matched by their ids, in
    any order. In place of a file of predictions you can give results that `fastndcg score --out` wrote. The
    name of a system is its file's name without endings, its path if several files have that name, or its
    column of scores. With --qrels, each PATH is a run, like --run. --ranks says how sure the rank of each
    system is.

    --baseline and --no-worse-than may name another file, such as results that are kept beside the code; with
    --update the new results take their place once all gates hold.

    With --no-worse-than the others are compared with that system. The gate must hold for each measure, within
    each slice of --by, and for each query of --queries. Where an interval lies on both sides of --margin it
    is undecided, which fails too unless --undecided is pass. stderr has a line for each gate that failed, and
    says by how much, or how many queries would decide. CSV has one table: the slices if there are slices, or
    else the systems.

    \b
    Examples:
      fastndcg compare base.parquet new.parquet -m nDCG@10
      fastndcg compare predictions.parquet --score bm25 --score rerank --movers 10
      fastndcg compare --qrels qrels.txt runs/*.txt --test tukey --ranks
      fastndcg compare base.parquet new.parquet --no-worse-than base --margin 0.002 --by country
      fastndcg compare base.parquet new.parquet --anchors --interval bca
      fastndcg compare last_week.parquet new.parquet --no-worse-than last_week --queries canaries.txt
      fastndcg compare base.parquet new.parquet --baseline base --fail-under nDCG@10=0.35
      fastndcg compare new.parquet --no-worse-than baseline.parquet --margin 0.005 --update
    """
    from fastndcg.decide.contrasts import COLUMNS

    check_confidence(statistics.confidence)
    gated = gates.no_worse_than is not None or bool(gates.fail_under)
    _check_layout(format, movers=bool(movers), by=bool(by), ranks=ranks, gated=gated)
    by, cluster = read_by(by, [*COLUMNS, "small"]), statistics.cluster
    sources = given.sources(reading.of_paths())
    baseline, gates, sources = updating.find(statistics.baseline, gates, sources)
    statistics = replace(statistics, baseline=baseline.name)
    no_worse_than = gates.no_worse_than
    gate = gates.gate(statistics.baseline, unpaired=statistics.unpaired)
    roles = reading.roles(sources.score)
    opened = {path: open_paths([path], threads) for path in sources.paths} | open_runs(sources.runs, threads)
    signed = format is Layout.json
    how = How(read_convention(convention, anchored=anchors), anchors, threads, memory, signed)
    stored = how.find_stored(opened, roles)
    measures = [found.measures for found in stored.values()]
    bounds = read_gates(gates.fail_under or [])
    asked = read_measures(measure or [], bounds) or measures_of_all(measures)
    baseline.check(stored, asked)
    weighing = columns_of_weights(weights, anchored=anchors, convention=convention)
    kept = [*by, *weighing, *([] if cluster is None else [cluster]), *cutoff_columns(asked)]
    roles = replace(roles, keep=tuple(dict.fromkeys(kept)))
    if sources.paths:
        scored = scored_paths(sources, opened, roles, asked, stored, how)
    else:
        scored = scored_runs(sources, roles, asked, stored, statistics.missing, how)
    scored = weigh(scored, weights)
    if baseline.is_new:
        _begin(baseline, {each.run or "": each for each in scored}, bounds, gates, format)
        return
    systems = _by_name(scored, {"--no-worse-than": no_worse_than, "--baseline": statistics.baseline})
    values = {name: each.scores for name, each in systems.items()}
    compared = statistics.compare(values, no_worse_than, threads)
    if anchors:
        compared.anchors = {name: each.anchors for name, each in systems.items() if each.anchors is not None}
    slices = compared.slices(by) if by else {}
    verdicts = [] if gate is None else gate.verdicts(compared, slices, by)
    held: dict[str, Any] = {}
    if gate is not None:
        held["gate"] = {
            "baseline": gate.baseline, "margin": gate.margin,
            "failed": [each.text for each in gates.failed(verdicts)],
            "verdicts": [each.numbers for each in verdicts],
        }  # fmt: skip
    low = [
        found
        for name in compared.systems
        if name not in (no_worse_than, statistics.baseline)
        for found in check_means(bounds, {each: means[name] for each, means in compared.means.items()}, name)
    ]
    held |= {"fail_under": {"failed": [each.line() for each in gates.failed(low)]}} if bounds else {}
    for name, each in systems.items():
        tell(each.scores.n_queries, each.documents, each.columns, name)
    verdicts += low
    failed = gates.failed(verdicts)
    if format is Layout.junit:
        write_junit(verdicts, failed)
    elif format is Layout.github:
        write_github(compared, verdicts, failed, ranks=ranks)
    else:
        _report(compared, slices, by, movers, format, systems, held, ranks=ranks)
    baseline.update(systems, failed)
    hold(verdicts, gates)


def _begin(
    baseline: Baseline,
    systems: dict[str, Scored],
    bounds: list[tuple[Measure, float]],
    gates: Gates,
    layout: Layout,
) -> None:
    """Write the file of a baseline for the first time: there is nothing yet to compare with."""
    found = [each for name, one in systems.items() for each in check_means(bounds, one.scores.mean(), name)]
    failed = gates.failed(found)
    if layout is Layout.junit:
        write_junit(found, failed)
    elif layout is Layout.json:
        write_json({"systems": [each.facts for each in systems.values()], "rows": []})
    note(f"{baseline.path} does not exist yet, so nothing is compared")
    baseline.update(systems, failed)
    hold(found, gates)


# ---- systems ----


def _check_layout(layout: Layout, *, movers: bool, by: bool, ranks: bool, gated: bool) -> None:
    if movers and layout not in (Layout.table, Layout.json):
        refuse(f"--movers is a table of its own, for which --format {layout.value} has no place; take json")
    if layout is Layout.junit and not gated:
        refuse("--format junit has a test for each gate; give one, as in --no-worse-than or --fail-under")
    if ranks and layout is Layout.junit:
        refuse("--ranks is a table, for which --format junit has no place; take github or json")
    if ranks and by and layout is Layout.csv:
        refuse("--format csv is one table: of slices with --by, of ranks with --ranks; take json")
    if by and layout in (Layout.markdown, Layout.latex):
        refuse(
            f"--format {layout.value} is a table of means without slices; take table, json or csv with --by"
        )


def measures_of_all(stored: list[list[Measure]]) -> list[Measure]:
    """The measures that all stored results have; nDCG@10 where there are none."""
    first = stored[0] if stored else []
    shared = [measure for measure in first if all(measure in other for other in stored)]
    return shared or read_measures(["nDCG@10"], [])


def _by_name(scored: Iterable[Scored], wanted: dict[str, str | None]) -> dict[str, Scored]:
    """Two or more systems by their names, those among them that options ask for.

    Systems that a column of stored results names are told apart by its file, where others have that name.
    """
    found = list(scored)
    times = Counter(each.run for each in found)
    systems: dict[str, Scored] = {}
    for each in found:
        is_one = times[each.run] == 1 or each.results is None
        systems[str(each.run) if is_one else f"{each.results}: {each.run}"] = each
    if len(systems) < 2:
        refuse("one system is given; wanted two or more: files, --score columns of one file, or runs")
    for option, name in wanted.items():
        if name is not None:
            check_system(name, systems, f'{option}: "{name}"')
    return systems


# ---- output ----


def _report(
    compared: Comparison,
    slices: dict[tuple[Any, ...], Comparison],
    by: list[str],
    movers: int,
    layout: Layout,
    systems: dict[str, Scored],
    held: dict[str, Any],
    *,
    ranks: bool,
) -> None:
    of_slices = [
        dict(zip(by, key, strict=True)) | row | {"small": bool(row["queries"] < SMALL)}
        for key, of_slice in slices.items()
        for row in (of_slice._numbers if layout is Layout.table else of_slice.rows)
    ]
    moved = list(_movers(compared, movers)) if movers else []
    if layout is Layout.table:
        see = "--format json" if of_slices or moved else "--format csv"  # CSV is one table
        parts = [compared.text(see, "--format json")]
        parts += [compared.ranks().text(terminal_width(), "--format json")] if ranks else []
        if of_slices:
            numbers = ("measure", "system", "baseline", "mean", "difference", "low", "high")
            shown, left = [*by, *numbers, "queries", "small"], len(by) + 3
            rows = slices_texts([{name: row[name] for name in shown} for row in of_slices], left)
            drops = [*compared._one_baseline(), ("queries",), ("mean",)]
            parts.append(fit(rows, left, drops, terminal_width(), f"--format {'json' if moved else 'csv'}"))
        parts += [_movers_text(**pair) for pair in moved]
        write("\n\n".join(parts) + "\n")
        return
    if layout is Layout.json:
        facts = {"systems": [system.facts | system.signatures for system in systems.values()]} | json.loads(
            compared.to_json()
        )
        facts |= {"ranks": compared.ranks().to_pylist()} if ranks else {}
        facts |= {"slices": of_slices} if by else {}
        lists = [pair | {"queries": pair["queries"].to_pylist()} for pair in moved]
        write_json(facts | ({"movers": lists} if movers else {}) | held)
        return
    for caution in compared.cautions:
        note(f"caution: {caution}")
    if layout is Layout.csv:
        write_csv(compared.ranks().to_pylist() if ranks else of_slices or compared.rows)
        return
    write(compared.to_markdown(ranks=ranks) if layout is Layout.markdown else compared.to_latex(ranks=ranks))


def _movers(compared: Comparison, n: int) -> Iterator[dict[str, Any]]:
    pairs = dict.fromkeys((row["measure"], row["system"], row["baseline"]) for row in compared.rows)
    for measure, system, baseline in pairs:
        table = compared.movers(measure, system, n, baseline=baseline)
        yield {"measure": measure, "system": system, "baseline": baseline, "queries": table}


def _movers_text(measure: str, system: str, baseline: str, queries: pa.Table) -> str:
    if not len(queries):
        return f"{measure}, {system} against {baseline}: no query differs"
    names = [*queries.column_names[:-3], baseline, system, "difference"]
    rows = [
        [shown_value(value) for value in row]
        for row in zip(*(column.to_pylist() for column in queries.columns), strict=True)
    ]
    table = fit([names, *rows], len(names) - 3, (), terminal_width())
    return f"{measure}, {system} against {baseline}:\n{table}"
