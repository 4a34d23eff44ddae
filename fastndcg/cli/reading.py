"""Read the input of a command: rankings from files of every kind, and the columns that were used."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastndcg.cli import options
from fastndcg.cli.application import argument, option, refusing
from fastndcg.cli.output import note, refuse
from fastndcg.common.files import check_writable, handle_of, target_of
from fastndcg.common.threads import processors
from fastndcg.errors import InputError, count_of
from fastndcg.measures import Measure
from fastndcg.tables.roles import Roles

if TYPE_CHECKING:
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.dataset import Opened
    from fastndcg.sources.scanning import FileStream
    from fastndcg.sources.sides import Taken
    from fastndcg.typing import Missing

NaN = StrEnum("NaN", ["refuse", "last"])  # documents without a score
Unjudged = StrEnum("Unjudged", ["refuse", "null"])  # documents without a grade
Columns = dict[str, str | None]  # that were taken for each role
STDIN = "standard input"


# ---- columns ----


@dataclass(frozen=True)
class Reading:
    """The options of all commands that read tables: which columns are read, and how."""

    query: str | None = options.QUERY
    relevance: str | None = options.RELEVANCE
    is_judged: str | None = option("Column that is false for documents without a judgment.")
    propensity: str | None = option(
        "Column of the probability that a document was seen, for measures with ips=True."
    )
    nan: NaN = option("Refuse documents with a NaN or null score, or rank them last.", NaN.refuse)
    rank: str | None = option("Column of ranks, in place of scores; 1 is the best.")
    ascending: bool = option("Rank the lowest score first, as for distances.", False, "--ascending")
    unjudged: Unjudged = option(
        "Refuse documents with a null grade, or treat them as unjudged.", Unjudged.refuse
    )
    grades: str | None = option(
        'Grades of words, such as "Perfect=4,Excellent=3,Good=2,Fair=1,Bad=0"; '
        "with --qrels also a number: the grade of every judgment.",
        metavar="WORD=GRADE,...",
    )
    types: str | None = option(
        'Types of columns of CSV and JSON Lines, such as "qid=string,score=float64".',
        metavar="COLUMN=TYPE,...",
    )
    doc_id: str | None = options.DOC_ID

    def of_paths(self) -> dict[str, Any]:
        """The options that cannot be used with `--qrels`, and their values."""
        return {"--is-judged": self.is_judged, "--propensity": self.propensity}

    def roles(self, score: str | None, keep: Iterable[str] = ()) -> Roles:
        """The roles of columns. Ends the command if `--grades` or `--types` are not pairs."""
        pairs = {"grades": options.read_grades(self.grades), "types": options.read_types(self.types)}
        return Roles(score=score, keep=tuple(dict.fromkeys(keep)), **vars(self) | pairs)


@dataclass(frozen=True)
class ReadingOfMeans(Reading):
    """`Reading`, and the columns that only means and measures of intents need."""

    weight: str | None = options.WEIGHT
    intents: str | None = option(
        "Column of lists: the grades of a document for intent 0, 1, ...; with --qrels: "
        "column of a judgment's intent."
    )


def options_of(roles: Roles) -> dict[str, Any]:
    """The given options of roles, except `--keep`, and their values."""
    given = {role: value for role, value in vars(roles).items() if value != getattr(type(roles), role)}
    return {"--" + role.replace("_", "-"): value for role, value in given.items() if role != "keep"}


def choose_columns(opened: Opened, roles: Roles, *, with_doc_id: bool = False) -> Opened:
    """The columns that play the roles, with document ids of a usual name if they are needed."""
    if roles.intents is not None and not opened.format.has_lists:
        refuse(
            f"--intents names a column of lists, which {opened.format.name} has not; "
            "give Parquet, or --qrels and --run"
        )
    return opened.choose(roles, with_doc_id=with_doc_id)


# ---- where predictions are read ----


class Sources(NamedTuple):
    """Where predictions are read: paths, or judgments and runs."""

    paths: list[str]
    qrels: str
    runs: list[str]
    scores: Sequence[str] = ()  # columns, each of a system

    @property
    def score(self) -> str | None:
        """The first column of scores."""
        return next(iter(self.scores), None)


@dataclass(frozen=True)
class Systems:
    """The options that say where several systems are read."""

    paths: list[str] | None = argument(
        "PATH...",
        "A file for each system: predictions as Parquet, CSV, JSON Lines or Feather; with --qrels: runs.",
        None,
    )
    qrels: str | None = options.QRELS
    run: list[str] | None = option(
        "With --qrels: a TREC or MS MARCO run or a table; repeatable, once for each system."
    )
    score: list[str] | None = option("Column of scores; with one PATH repeatable, once for each system.")

    def sources(self, of_paths: dict[str, Any]) -> Sources:
        """The given sources, checked. `of_paths` are options that cannot be used with `--qrels`."""
        return check_sources(self.paths, self.qrels, self.run, {}, of_paths, self.score or [])


@dataclass(frozen=True)
class ComparedSystems(Systems):
    """Several systems, some of which may be stored results."""

    paths: list[str] | None = argument(
        "PATH...",
        "A file for each system: predictions as Parquet, CSV, JSON Lines or Feather, "
        "or results of `fastndcg score --out`; with --qrels: runs.",
        None,
    )


def check_sources(
    paths: list[str] | None,
    qrels: str | None,
    run: list[str] | None,
    of_qrels: dict[str, Any] | None = None,
    of_paths: dict[str, Any] | None = None,
    scores: Sequence[str] = (),
) -> Sources:
    """The given sources; with `--qrels` each PATH is a run. Ends the command for options that do not fit."""
    paths, runs = [*(paths or [])], [*(run or [])]
    if qrels is not None:
        paths, runs = [], [each for given in (*runs, *paths) for each in each_run(given)]
    if (qrels is None) != (not runs):
        refuse(
            "--qrels and --run go together: judgments in one file, predictions in the other; "
            + ("give --qrels too" if qrels is None else "give runs too, as PATH or --run")
        )
    if qrels is None and not paths:
        refuse("nothing to score. Give PATH, or --qrels and --run.")
    for name, value in ((of_qrels if qrels is None else of_paths) or {}).items():
        if value:
            refuse(f"{name} has no meaning {'without' if qrels is None else 'with'} --qrels and --run")
    for score, times in Counter(scores).items():
        if times > 1:
            refuse(f"--score: {score} is given {times} times; give each column once")
    if len(scores) > 1 and len(paths) != 1:
        refuse("--score is repeatable for one PATH alone; give one column, or one file")
    judgments, *each = map(read_once, [qrels or "", *paths, *runs])
    if each.count(STDIN) + (judgments == STDIN) > 1:
        refuse("- is given twice; standard input is read once")
    return Sources(each[: len(paths)], judgments, each[len(paths) :], scores)


def each_run(path: str) -> list[str]:
    """The files of a folder or glob of TREC runs, each a run; of tables they are all one run."""
    from glob import glob

    from fastndcg.sources.formats import format_of_name

    is_folder = Path(path).is_dir()
    if not is_folder and (Path(path).exists() or not re.search(r"[*?\[]", path)):
        return [path]
    found = sorted(glob(str(Path(path, "*")) if is_folder else path))  # noqa: PTH207 - of any folder
    files = [each for each in found if Path(each).is_file()]
    return files if files and all(format_of_name(each) is None for each in files) else [path]


def read_once(path: str) -> str:
    """The path of a file. Standard input (`-`) and pipes are kept in memory: they can be read only once."""
    from fastndcg.sources import open_file

    if path == "-":
        if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
            refuse("- is standard input, and nothing is piped into it; wanted COMMAND | fastndcg ... -")
        return open_file.Held(STDIN, sys.stdin.buffer.read)
    return open_file.read_once(path)


def name_runs(paths: list[str]) -> list[str]:
    """Names of runs: the name of the file without endings, or its path if several files have that name."""
    files: dict[str, str] = {}
    for path in paths:
        file = os.path.realpath(path) if Path(path).exists() else path
        if file in files:
            times, other = paths.count(path), files[file]
            again = f"given {times} times" if times > 1 else f"{other}, which is given too"
            refuse(f"{path} is {again}; give each file once")
        files[file] = path
    stems = [Path(re.sub(r"\.(gz|bz2|zst)$", "", path)).stem for path in paths]
    return [path if stems.count(stem) > 1 else stem for path, stem in zip(paths, stems, strict=True)]


def check_out(out: Path, inputs: Iterable[str]) -> None:
    """End the command if the output is an input, under any name, or cannot be written.

    If it is standard output, everything else goes to stderr.
    """
    from fastndcg.sources.paths import identity_of, local_files

    check_writable(out)
    target, _ = target_of(out)
    for path in local_files(inputs) if target.exists() else ():
        if identity_of(path) == identity_of(str(target)):
            same = "the input itself" if Path(path) == out else f"the input {path}"
            refuse(f"--out: {out} is {same}; name another file")
    if handle_of(target) == 1:
        sys.stdout = sys.stderr


# ---- opening and reading ----


def open_paths(paths: list[str], threads: int | None) -> Opened:
    """The files of the paths, of one format: each listed, and its footer, header or schema read, once."""
    from fastndcg.sources.formats import check_alike
    from fastndcg.sources.inputs import open_tables

    with refusing():
        check_alike(paths)
    return open_tables([*paths], threads)


def open_letor(paths: list[str], scores: str, roles: Roles, threads: int | None) -> Opened:
    """Open a LETOR file with its scores. Ends the command if options name columns, which LETOR lacks."""
    from fastndcg.sources.letor import LetorFile
    from fastndcg.tables.roles import Columns

    if len(paths) > 1:
        refuse("--scores are those of one PATH; give one")
    given = options_of(roles) | ({"--keep": roles.keep} if roles.keep else {})
    for name in [each for each in given if each not in ("--score", "--nan", "--ascending", "--unjudged")]:
        refuse(f"{name} has no meaning with --scores: LETOR has grades and queries alone")
    how: Any = {"nan": roles.nan, "ascending": roles.ascending, "unjudged": roles.unjudged}
    columns = Columns("query_id", "label", STDIN if scores == "-" else scores, **how)
    return LetorFile(
        paths=[*paths],
        threads=threads or processors(),
        columns=columns,
        scores=read_once(scores),
        score_column=roles.score,
    )


def read_rankings(chosen: Opened) -> Rankings:
    """All rankings at once."""
    rankings = chosen.read()
    if not rankings.n_queries:
        raise InputError(
            f"{', '.join(map(str, chosen.paths))} has no rows, so there is nothing to score. "
            "Give a file with at least one query."
        )
    return rankings


def scan_rankings(chosen: Opened, memory: str | None, threads: int | None) -> FileStream | None:
    """The files as a stream, if they are too large to be read at once."""
    from fastndcg.sources.inputs import IN_MEMORY, scan_if_large

    if memory is None:
        return scan_if_large(chosen, threads, IN_MEMORY)
    if not chosen.can_be_streamed:
        refuse(
            f"--memory has no meaning with {chosen.format.name}, which is read whole; "
            "give Parquet or CSV to score it in parts"
        )
    from fastndcg.sources.streams import bytes_of

    with refusing():
        budget = bytes_of(memory)
    return scan_if_large(chosen, threads, budget, budget)


def read_qrels_runs(
    qrels: str,
    runs: list[str],
    roles: Roles,
    measures: Iterable[Measure] = (),
    threads: int | None = None,
    missing: Missing = "zero",
) -> Iterator[tuple[Rankings, Columns]]:
    """As `read_rankings`, of judgments and each run; of intents if they are named or a measure needs them."""
    from fastndcg.sources import trec

    intents = _are_of_intents(roles, measures)
    each = trec.read_qrels_runs(qrels, runs, roles, missing, intents=intents, threads=threads)
    for run, (rankings, judged, scored) in zip(runs, each, strict=True):
        yield rankings, _columns_of_both(run, judged, scored, roles)


def _are_of_intents(roles: Roles, measures: Iterable[Measure]) -> bool:
    """Whether judgments are read with their intents: these are named, or a measure needs them."""
    return roles.intents is not None or any(measure.definition.way == "intents" for measure in measures)


def _columns_of_both(run: str, judged: Taken | None, scored: Taken | None, roles: Roles) -> Columns:
    if roles.score is not None and scored is None:
        note(f"--score has no meaning with {run}: the score of a TREC run is its fifth field")
    taken: Columns = {}
    for role in ("query", "doc_id", "relevance", "score", "rank"):
        names = [side[role] for side in (judged or {}, scored or {}) if role in side]
        if len(set(names)) > 1:
            taken |= {f"{role} of qrels": names[0], f"{role} of run": names[1]}
        elif names:
            taken[role] = names[0]
    return taken if roles.weight is None else taken | {"weight": roles.weight}


class System(NamedTuple):
    """The rankings of one system, and their source."""

    name: str
    source: str
    rankings: Rankings
    columns: Columns


def read_systems(
    sources: Sources, roles: Roles, measures: Iterable[Measure], threads: int | None
) -> Iterator[System]:
    """Each file, column of scores, or run; a run has empty rankings for judged queries that it lacks."""
    for path, name in zip(sources.paths, name_runs(sources.paths), strict=True):
        opened = open_paths([path], threads)
        for column in sources.scores or (None,):
            chosen = choose_columns(opened, replace(roles, score=column), with_doc_id=True)
            of_column = column if column is not None and len(sources.scores) > 1 else name
            yield System(of_column, path, read_rankings(chosen), chosen.columns.taken)
    each = read_qrels_runs(sources.qrels, sources.runs, roles, measures, threads)
    for run, name, (rankings, taken) in zip(sources.runs, name_runs(sources.runs), each, strict=True):
        yield System(name, f"{run}, judged by {sources.qrels}", rankings, taken)


# ---- saying what was read ----


def tell(queries: int, documents: int | None, taken: Columns, name: str | None = None) -> None:
    """Print to stderr what was read. It is called last, so that a failing command prints one line only."""
    of_run = "" if name is None else f"{name}: "
    of_what = "stored results" if documents is None else count_of(documents, "document")
    note(f"{of_run}{count_of(queries, 'query')}, {of_what}{columns_in_words(taken)}")


def columns_in_words(taken: Columns) -> str:
    """The column of each role, to end a line with."""
    named = ", ".join(f"{role}={column}" for role, column in taken.items() if column is not None)
    return f"; columns: {named}" if named else ""
