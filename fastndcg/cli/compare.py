"""`fastndcg compare`: which system is better, how significant the difference is, and gates for pipelines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from fastndcg.cli import options
from fastndcg.cli.application import command, option
from fastndcg.cli.gates import Gates, check_means, hold, write_github, write_junit
from fastndcg.cli.inputs import ReadingOfMeans, Sources, Systems, name_runs
from fastndcg.cli.output import Rows, note, refuse, slices_text, write, write_csv, write_json
from fastndcg.cli.scores import Evaluation, Scored
from fastndcg.common.table import terminal_width
from fastndcg.errors import check_system
from fastndcg.statistics.significance import SMALL

if TYPE_CHECKING:
    from fastndcg.analysis.compare import Comparison

Layout = StrEnum("Layout", ["table", "json", "csv", "junit", "github"])
Test = StrEnum("Test", ["t", "randomisation", "permutation"])
Signatures = StrEnum("Signatures", ["refuse", "ignore"])  # results that were not made alike
Correction = StrEnum("Correction", ["holm", "bh"])


@dataclass(frozen=True)
class Statistics:
    """Options of the comparison."""

    baseline: str | None = option(
        "Compare all other systems with this one: a file name without its suffixes, "
        "a column of scores, or another file.",
        metavar="NAME",
        show_default="each with each",
    )
    test: Test = option(
        "Significance test: paired t-test, or randomisation (also called permutation) of signs.",
        Test.t,
    )
    correction: Correction | None = option("Correction for multiple pairs: Holm, or Benjamini and Hochberg.")
    confidence: float = options.CONFIDENCE
    tolerance: float = option("Differences up to this size are ties.", 0.0, min=0.0)
    cluster: str | None = option("Column of clusters, such as users, whose queries are not independent.")
    missing: str = options.LACKS
    signatures: Signatures = option(
        "Results from different judgments: refuse them, or compare them anyway.", Signatures.refuse
    )
    paired: bool = option(
        "Compare by query, or as independent samples with Welch's t-test.",
        True,
        "--paired/--unpaired",
    )
    resamples: int = option("Number of resamples of randomisation.", 100_000)
    seed: int = option("Random seed.", 0)


@command
def compare(
    *,
    given: Systems,
    measure: list[str] | None = options.MEASURES,
    statistics: Statistics,
    by: list[str] | None = option(
        "Compare within each value of this query-level column; repeatable, for combinations."
    ),
    ranks: bool = option(
        "Show the interval of each rank, and which systems do not differ significantly.", False
    ),
    how: Evaluation,
    gates: Gates,
    reading: ReadingOfMeans,
    format: Layout = option("Output format on stdout.", Layout.table),
) -> None:
    """Compare systems: which is better, and how significantly.

    Prints differences of means with intervals, p-values, wins and losses. Queries are matched by id. A file
    has predictions, or results of `fastndcg score --out`. A system is named by its file without suffixes, by
    its path if several files have that name, or by its column of scores. With --qrels, each PATH is a run,
    like --run.

    --baseline and --no-worse-than may also name a file, such as results of `fastndcg score --out` that you
    keep with the code.

    --no-worse-than compares all other systems with that one. The gate must pass for each measure, and within
    each slice of --by. A gate whose interval includes --margin is undecided and fails, unless --undecided is
    pass; --undecided-slices is that of slices, and --least-queries their smallest number of queries. stderr
    has a line for each gate that fails, which says by how much. CSV has one table: the slices with --by,
    otherwise the systems.

    \b
    Examples:
      fastndcg compare base.parquet new.parquet -m nDCG@10
      fastndcg compare predictions.parquet --score bm25 --score rerank
      fastndcg compare --qrels qrels.txt runs/*.txt --correction holm --ranks
      fastndcg compare base.parquet new.parquet --no-worse-than base --margin 0.002 --by country
      fastndcg compare new.parquet --no-worse-than baseline.parquet --margin 0.005
    """
    from fastndcg.analysis.compare import COLUMNS, compare

    options.check_confidence(statistics.confidence)
    slices = options.read_by(by, [*COLUMNS, "small"])
    if ranks and (format in (Layout.junit, Layout.github) or (format is Layout.csv and slices)):
        refuse(f"--ranks does not fit into --format {format}; use json, which has all tables")
    if format is Layout.junit and gates.no_worse_than is None and not gates.fail_under:
        refuse("--format junit reports gates; add --no-worse-than or --fail-under")
    gates.check(statistics.baseline, slices)
    baseline, sources = _find_baseline(statistics.baseline or gates.no_worse_than, given.sources(reading))
    gates = replace(gates, no_worse_than=gates.no_worse_than and baseline)
    bounds = options.read_gates(gates.fail_under or [])
    cluster = [] if statistics.cluster is None else [statistics.cluster]
    asked = options.read_measures(measure or [], bounds)
    inputs = how.inputs(sources, reading.roles(sources.score, [*slices, *how.kept, *cluster]))
    asked = asked or inputs.measures()
    missing = options.number_or_word(statistics.missing)
    if not isinstance(missing, str) and how.convention is not None and sources.runs:
        refuse(
            f"--missing {missing:g} cannot be used with --convention, which says what these count; "
            "leave one of them out"
        )
    scored = map(how.weigh, how.score_systems(inputs, asked, missing))
    systems = _by_name(scored, baseline, "--baseline" if statistics.baseline else "--no-worse-than")
    chosen = vars(statistics) | {"baseline": baseline, "missing": missing, "threads": how.threads}
    compared = compare({name: each.scores for name, each in systems.items()}, **chosen)
    of_slices = compared.slices(slices) if slices else {}
    verdicts = list(gates.verdicts(compared, of_slices, slices))
    low = [
        verdict
        for name in compared.systems
        if name != baseline
        for verdict in check_means(
            bounds, {each: means[name] for each, means in compared.means.items()}, name
        )
    ]
    facts = gates.facts(verdicts, low if bounds else None)
    for name, each in systems.items():
        each._replace(run=name).tell()
    verdicts += low
    rows = [
        dict(zip(slices, key, strict=True)) | row | {"small": bool(row["queries"] < SMALL)}
        for key, of_slice in of_slices.items()
        for row in of_slice.rows
    ]
    if format is Layout.junit:
        write_junit(verdicts)
    elif format is Layout.github:
        write_github(compared, verdicts)
    elif format is Layout.json:
        document = {"systems": [system.facts() for system in systems.values()]} | json.loads(
            compared.to_json()
        )
        document |= {"ranks": compared.ranks().to_pylist()} if ranks else {}
        write_json(document | ({"slices": rows} if by else {}) | facts)
    elif format is Layout.csv:
        for caution in compared.cautions:
            note(f"caution: {caution}")
        write_csv(compared.ranks().to_pylist() if ranks else rows or compared.rows)
    else:
        write(_text_of(compared, rows, slices, ranks=ranks))
    hold(verdicts)


def _text_of(compared: Comparison, rows: Rows, by: list[str], *, ranks: bool) -> str:
    """The comparison, ranks and slices as text."""
    parts = [
        compared.text("--format json" if rows else "--format csv")
    ]  # CSV has the slices if there are any
    if ranks:
        parts.append(compared.ranks().text(terminal_width(), "--format json"))
    if rows:
        names = [*by, "measure", "system", "baseline"]
        numbers = ["mean", "difference", "low", "high", "queries", "small"]
        has_one = len({row["baseline"] for row in rows}) == 1  # each row has the same
        drops = [("baseline",)] * has_one + [("queries",), ("mean",)]
        shown = [{name: row[name] for name in names + numbers} for row in rows]
        parts.append(slices_text(shown, len(names), drops))
    return "\n\n".join(parts) + "\n"


def _find_baseline(name: str | None, sources: Sources) -> tuple[str | None, Sources]:
    """The name of the baseline, and the sources with its file, if it is a file and not a system."""
    paths = [*(sources.paths or sources.runs)]
    if name is None or name in (*name_runs(paths), *sources.scores) or not Path(name).is_file():
        return name, sources
    paths.append(name)
    sources = sources._replace(paths=paths) if sources.paths else sources._replace(runs=paths)
    return name_runs(paths)[-1], sources


def _by_name(scored: Iterable[Scored], baseline: str | None, option: str) -> dict[str, Scored]:
    """Two or more systems by name, the baseline among them.

    If several stored results have a system of the same name, the name of their file precedes it.
    """
    every = list(scored)
    times = Counter(each.run for each in every)
    systems: dict[str, Scored] = {}
    for each in every:
        is_one = times[each.run] == 1 or each.results is None
        systems[str(each.run) if is_one else f"{each.results}: {each.run}"] = each
    if baseline is not None:
        check_system(baseline, systems, f'{option}: "{baseline}" is not a file and')
    if len(systems) < 2:
        refuse("compare needs two systems or more: files, --score columns of one file, or runs")
    return systems
