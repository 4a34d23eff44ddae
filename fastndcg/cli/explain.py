"""`fastndcg explain`: why a query has its value, document by document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastndcg.api.evaluate import evaluate
from fastndcg.cli import options
from fastndcg.cli.application import command, option
from fastndcg.cli.inputs import Inputs, Reading, Systems
from fastndcg.cli.output import Format, refuse, write, write_data
from fastndcg.errors import InputError, about, count_of, visible

if TYPE_CHECKING:
    from fastndcg.analysis.explain import Explanation


def _number(help: str) -> Any:
    return option(help, 0, metavar="N", min=0)


@command
def explain(
    *,
    given: Systems,
    measure: str = options.ONE_MEASURE,
    id: list[str] | None = option("Query id; repeatable.", metavar="ID"),
    worst: int = _number("The N queries with the lowest values in the first system."),
    movers: int = _number("The N queries whose values differ most between two systems."),
    all: bool = option("Show all documents, including those below the cutoff.", False),
    reading: Reading,
    format: Format = options.FORMAT,
    threads: int | None = options.THREADS,
) -> None:
    """Show where the value of a query comes from, rank by rank.

    Each document has a gain, a discount and a contribution, beside the ideal. The contribution of a rank is
    the value of the ranking down to it, minus the value without it. Tied documents share their contribution.
    The table ends at the cutoff, unless --all is set; JSON and CSV have all documents.

    \b
    Examples:
      fastndcg explain predictions.parquet --id q-42
      fastndcg explain predictions.parquet -m AP --worst 20
      fastndcg explain --qrels qrels.txt --run bm25.txt --run rerank.txt --movers 5
      fastndcg explain predictions.parquet --worst 3 --format json
    """
    from fastndcg.analysis.explain import explain

    asked = options.read_measures([measure])
    if len(asked) != 1:
        refuse(f"--measure: {measure} names {len(asked)} measures; expected one to explain")
    sources = given.sources(reading)
    if not (id or worst or movers):
        refuse("no query is named; give --id ID, --worst N, or --movers N of two systems")
    roles = reading.roles(sources.score)
    read = list(Inputs(sources, roles, threads, whole=True).systems(asked))
    systems: dict[str, Any] = {str(each.name): each.rankings for each in read}
    if movers and len(systems) != 2:
        refuse(f"--movers compares two systems; got {count_of(len(systems), 'system')}")
    first, ids = next(iter(systems.values())), [*(id or [])]
    if worst:
        ids += evaluate(first, asked).worst(asked[0], worst)[0].to_pylist()
    if movers:
        from fastndcg.analysis.compare import compare

        compared = compare(systems, asked, missing="drop", signatures="ignore")
        ids += compared.movers(asked[0], n=movers)[0].to_pylist()
    explanations: list[tuple[str, Explanation]] = []  # with the name of its system, if there are several
    for each in dict.fromkeys(ids):
        for source, rankings in systems.items():
            name = source if len(systems) > 1 else ""
            with about(f'"{name}"' if name else ""):
                explanations.append((name, explain(rankings, asked[0], each)))
    for system in read:
        (system if len(read) > 1 else system._replace(name=None)).tell()
    if format is not Format.table:
        _write_data(explanations, format)
        return
    texts = []
    for name, one in explanations:
        texts.append("\n".join([*([visible(name)] if name else []), one.text(all, "--format csv")]))
    nothing = "No query to show: none differs, or the measure is undefined for all."
    write("\n\n".join(texts or [nothing]) + "\n")


def _write_data(explanations: list[tuple[str, Explanation]], format: Format) -> None:
    rows, facts = [], []
    for name, one in explanations:
        of_query: dict[str, Any] = {"query": one.query} | ({"system": name} if name else {})
        documents = one.to_arrow().to_pylist()
        rows += [of_query | row for row in documents]
        fact = of_query | {"measure": str(one.measure), "value": one.value, "empty": one.is_empty}
        facts.append(fact | {"documents": documents})
    if format is Format.csv and not rows:
        raise InputError("these queries have no documents, so CSV would be empty; use --format json")
    write_data(format, {"explanations": facts}, rows)
