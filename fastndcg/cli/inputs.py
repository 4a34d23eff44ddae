"""The input of a command: options for files, columns and systems, and the data they name."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastndcg.cli import options
from fastndcg.cli.application import argument, option, refusing
from fastndcg.cli.output import note, refuse
from fastndcg.common.files import check_writable
from fastndcg.common.threads import processors
from fastndcg.errors import InputError, SourceError, about, count_of
from fastndcg.measures import Measure
from fastndcg.tables.roles import Roles

if TYPE_CHECKING:
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.dataset import Dataset
    from fastndcg.sources.stored_scores import Stored
    from fastndcg.sources.streams import TableStream
    from fastndcg.typing import Missing

Unjudged = StrEnum("Unjudged", ["refuse", "null"])  # documents without a grade
Duplicates = StrEnum("Duplicates", ["refuse", "first"])
STDIN = "standard input"
_OTHER_SUFFIXES = {".json", ".md", ".tsv", ".txt", ".xlsx"}  # of text that is no result file


# ---- options ----


@dataclass(frozen=True)
class Columns:
    """Options for the columns of any table."""

    query: str | None = option("Column of query ids.")
    doc_id: str | None = option("Column of document ids, by which some tools order ties.")
    relevance: str | None = option("Column of grades.")
    duplicates: Duplicates = option(
        "Refuse a document that appears twice in a query, or keep the first.", Duplicates.refuse
    )
    columns: str | None = option(
        'Names of the fields of a file without a header, such as "user,item,rating,time"; of judgments and a '
        'run, "qrels=user,item,rating;run=user,item,score".',
        metavar="NAME,...",
    )
    sep: str | None = option(r"Field separator of text files, such as ';', '::' or '\s+' for blanks.")
    decimal: str | None = option(
        "Decimal separator of numbers in text files.", metavar=".|,", show_default="."
    )

    def keywords(self) -> dict[str, Any]:
        """The options as arguments of functions. Ends the command if `--columns` is not as its help says."""
        read = {"columns": options.read_columns(self.columns), "decimal": self.decimal or "."}
        return vars(self) | read


@dataclass(frozen=True)
class Reading(Columns):
    """Options of all commands that read predictions."""

    relevant_ids: str | None = option("Column of lists of relevant document ids, used with --retrieved-ids.")
    retrieved_ids: str | None = option("Column of lists of retrieved document ids, best first.")
    is_judged: str | None = option("Boolean column; false marks unjudged documents.")
    propensity: str | None = option(
        "Column of probabilities that a document was seen, for measures with ips=True."
    )
    nan: options.NaN = options.NAN
    rank: str | None = option("Column of ranks (1 is best) instead of scores.")
    ascending: bool = options.ASCENDING
    unjudged: Unjudged = option(
        "Refuse documents with a null grade, or treat them as unjudged.", Unjudged.refuse
    )
    grades: str | None = option(
        'Grades of words, such as "Perfect=4,Excellent=3,Good=2,Fair=1,Bad=0"; '
        "with --qrels also one number for all judgments.",
        metavar="WORD=GRADE,...",
    )
    types: str | None = option(
        'Types of columns of CSV and JSON Lines, such as "qid=string,score=float64".',
        metavar="COLUMN=TYPE,...",
    )

    def roles(self, score: str | None, keep: Iterable[str] = ()) -> Roles:
        """The roles of columns. Ends the command if `--grades` or `--types` are not pairs."""
        read: dict[str, Any] = {
            "grades": options.read_grades(self.grades),
            "types": options.read_types(self.types),
        }
        return Roles(score=score, keep=tuple(dict.fromkeys(keep)), **self.keywords() | read)


@dataclass(frozen=True)
class ReadingOfMeans(Reading):
    """`Reading` plus the columns of weights and intents."""

    weight: str | None = options.WEIGHT
    intents: str | None = option(
        "Column of lists: the grades of a document for intents 0, 1, ...; with --qrels: "
        "column of each judgment's intent."
    )


@dataclass(frozen=True)
class Systems:
    """Options for the files of several systems."""

    paths: list[str] | None = argument(
        "PATH...",
        "Predictions, or results of `fastndcg score --out`: Parquet, CSV, JSON Lines or Feather; a file, a "
        "folder, a glob, a URI that pyarrow knows, or - for standard input. With --qrels: runs.",
        None,
    )
    qrels: str | None = options.QRELS
    run: list[str] | None = option("With --qrels: the TREC or MS MARCO run or table of a system; repeatable.")
    score: list[str] | None = option("Column of scores; repeatable for one PATH with several systems.")

    def sources(self, reading: Columns) -> Sources:
        return find_sources(self.paths, self.qrels, self.run, reading, list(dict.fromkeys(self.score or [])))


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


def find_sources(
    paths: list[str] | None,
    qrels: str | None,
    run: list[str] | None,
    reading: Columns | None = None,
    scores: Sequence[str] = (),
) -> Sources:
    """Validate and return the sources. With `--qrels`, each PATH is a run."""
    paths, runs = [*(paths or [])], [*(run or [])]
    if qrels is not None:
        paths, runs = [], [*runs, *paths]
    if (qrels is None) != (not runs):
        refuse(
            "--qrels and --run go together: judgments in one file, predictions in the other; "
            + ("give --qrels too" if qrels is None else "give runs too, as PATH or --run")
        )
    if qrels is None and not paths:
        refuse("no input. Give PATH, or --qrels and --run.")
    for name in ("is_judged", "propensity") if runs else ():
        if getattr(reading, name, None) is not None:
            refuse(f"--{name.replace('_', '-')} cannot be used with --qrels and --run")
    if len(scores) > 1 and len(paths) != 1:
        refuse("--score may be repeated only for one PATH; give one column, or one file")
    judgments, *each = read_once(qrels or "", *paths, *runs)
    return Sources(each[: len(paths)], judgments, each[len(paths) :], scores)


def read_once(*paths: str) -> list[str]:
    """Paths of files. Standard input (`-`) and pipes are kept in memory: they can be read only once."""
    from fastndcg.sources import open_file

    if paths.count("-") > 1:
        refuse("- appears twice, but standard input can be read only once")
    if "-" in paths and (sys.stdin is None or sys.stdin.closed or sys.stdin.isatty()):
        refuse("- means standard input, but nothing is piped into it; expected COMMAND | fastndcg ... -")
    return [
        open_file.MemoryFile(STDIN, sys.stdin.buffer.read) if path == "-" else open_file.read_once(path)
        for path in paths
    ]


def name_runs(paths: list[str]) -> list[str]:
    """Names of runs: the name of the file without endings, or its path if several files have that name."""
    files: dict[str, str] = {}
    for path in paths:
        file = os.path.realpath(path) if Path(path).exists() else path
        if file in files:
            refuse(f"{path} and {files[file]} are one file; name each file once")
        files[file] = path
    stems = [Path(re.sub(r"\.(gz|bz2|zst)$", "", path)).stem for path in paths]
    return [path if stems.count(stem) > 1 else stem for path, stem in zip(paths, stems, strict=True)]


def check_out(out: Path, inputs: Iterable[str], *, is_page: bool = False) -> None:
    """End the command if the output is an input, under any name, cannot be written, or has the suffix of
    another format than those of results.
    """
    from fastndcg.sources.paths import identity_of, local_files

    if out.suffix.lower() in _OTHER_SUFFIXES and not is_page:
        refuse(
            f"--out: {out} is written as Parquet, CSV, JSON Lines or Feather; name a file ending in "
            ".parquet, .csv, .jsonl or .feather. For a summary as text use --format csv or json."
        )
    check_writable(out)
    for path in local_files(inputs) if out.exists() else ():
        if identity_of(path) == identity_of(str(out)):
            refuse(f"--out: {out} is the input {path}; name another file")


# ---- data ----


class System(NamedTuple):
    """The rankings of one system, or its stored results."""

    name: str | None  # None of an input that is the only one
    source: str  # for messages
    columns: dict[str, str | None]  # that were taken for each role
    rankings: Any  # Rankings, or a stream of them
    stored: Stored | None = None

    def tell(self) -> None:
        """Print to stderr what was read, which is whole."""
        tell(self.rankings.n_queries, self.rankings.n_docs, self.columns, self.name)


class Inputs:
    """The predictions, runs and stored results of a command: opened at once, and read one by one.

    Each path is a system, unless they are one input `together`; `letor` is the file of scores of a LETOR
    file. Rankings are `whole`, or streams of files larger than `memory`. Tables have document ids of a usual
    name if they are needed `by_id`.
    """

    def __init__(
        self,
        sources: Sources,
        roles: Roles,
        threads: int | None,
        *,
        memory: str | None = None,
        letor: str | None = None,
        together: bool = False,
        whole: bool = False,
        by_id: bool = True,
    ) -> None:
        from fastndcg.sources.formats import check_alike
        from fastndcg.sources.inputs import open_tables
        from fastndcg.sources.stored_scores import find_stored

        self._threads, self._memory, self._whole, self._by_id = threads, memory, whole, by_id
        self._letor, self.sources, self.roles = letor, sources, roles
        self._files: list[tuple[str | None, Dataset]] = []
        if letor is not None:
            self._files.append((None, open_letor(sources.paths, letor, roles, threads)))
        elif together and sources.paths:
            with refusing():
                check_alike(sources.paths)
            self._files.append((None, open_tables([*sources.paths], threads, dialect=roles.dialect())))
        else:
            for name, path in zip(name_runs(sources.paths), sources.paths, strict=True):
                self._files.append((name, open_tables([path], threads, dialect=roles.dialect())))
        candidates = [] if whole else [files for _, files in self._files if len(files.paths) == 1]
        for run in () if whole else sources.runs:  # those that are no tables are opened as they are read
            with suppress(SourceError):
                candidates.append(open_tables([run], threads, dialect=roles.dialect("score")))
        stored = ((str(each.paths[0]), find_stored(each, roles)) for each in candidates)
        self.stored = {path: each for path, each in stored if each is not None}

    def measures(self) -> list[Measure]:
        """The measures that all stored results have; nDCG@10 where there are none."""
        first, *others = [each.measures for each in self.stored.values()] or [[]]
        shared = [measure for measure in first if all(measure in other for other in others)]
        return shared or options.read_measures(["nDCG@10"])

    def systems(self, measures: Sequence[Measure] = (), missing: Missing = "zero") -> Iterator[System]:
        """Each file, column of scores, or run, with what the measures need. `missing` is what a run does with
        judged queries that it lacks.
        """
        from fastndcg.sources.open_file import names_of

        cutoffs = [each.cutoff_column for each in measures if each.cutoff_column is not None]
        self.roles = replace(self.roles, keep=tuple(dict.fromkeys([*self.roles.keep, *cutoffs])))
        scores = self.sources.scores
        for name, files in self._files:
            source = names_of(files.paths)
            if (stored := self.stored.get(source)) is not None:
                yield System(name, source, {}, None, stored)
                continue
            if self.roles.intents is not None and not files.format.has_lists:
                refuse(
                    f"--intents names a column of lists, which {files.format.name} does not have; "
                    "give Parquet, or --qrels and --run"
                )
            for column in scores or (self.roles.score,):
                roles = replace(self.roles, score=column)
                chosen = files if self._letor else files.choose(roles, with_doc_id=self._by_id)
                with about(source):
                    rankings = self._read(chosen)
                yield System(column if len(scores) > 1 else name, source, chosen.columns.taken, rankings)
        yield from self._runs(measures, missing)

    def _read(self, chosen: Dataset) -> Rankings | TableStream:
        """Read all rankings, or return a stream of files that are too large."""
        from fastndcg.sources.inputs import IN_MEMORY, scan_if_large
        from fastndcg.sources.streams import bytes_of

        if not chosen.can_be_streamed:
            self._refuse_memory(chosen.format.name)
        with refusing():
            budget = None if self._memory is None else bytes_of(self._memory)
        if not self._whole and (stream := scan_if_large(chosen, self._threads, budget or IN_MEMORY, budget)):
            return stream
        rankings: Rankings = chosen.read()
        if not rankings.n_queries:
            paths = ", ".join(map(str, chosen.paths))
            raise InputError(f"{paths} has no rows to score. Give a file with at least one query.")
        return rankings

    def _refuse_memory(self, what: str) -> None:
        if self._memory is not None:
            refuse(
                f"--memory cannot be used with {what}, which is read whole; "
                "to score it in parts, give Parquet or CSV with a column of grades"
            )

    def _runs(self, measures: Sequence[Measure], missing: Missing) -> Iterator[System]:
        from fastndcg.sources.trec import read_qrels_runs

        runs = self.sources.runs
        new = [run for run in runs if run not in self.stored]
        if new:
            self._refuse_memory("--run")
        intents = self.roles.intents is not None or any(
            measure.definition.method == "intents" for measure in measures
        )
        each = read_qrels_runs(
            self.sources.qrels, new, self.roles, missing, intents=intents, threads=self._threads
        )
        for run, name in zip(runs, name_runs(runs), strict=True):
            if run in self.stored:
                yield System(name, run, {}, None, self.stored[run])
            else:
                rankings, judged, scored = next(each)
                yield System(name, run, self._columns(run, judged, scored), rankings)

    def _columns(self, run: str, judged: Any, scored: Any) -> dict[str, str | None]:
        """The columns used of judgments and a run."""
        if self.roles.score is not None and scored is None:
            note(f"--score cannot be used with {run}: the score of a TREC run is its fifth field")
        taken: dict[str, str | None] = {}
        for role in ("query", "doc_id", "relevance", "score", "rank"):
            names = [side[role] for side in (judged or {}, scored or {}) if role in side]
            if len(set(names)) > 1:
                taken |= {f"{role} of qrels": names[0], f"{role} of run": names[1]}
            elif names:
                taken[role] = names[0]
        return taken if self.roles.weight is None else taken | {"weight": self.roles.weight}


def options_of(roles: Roles) -> dict[str, Any]:
    """The options of roles that differ from their defaults, with their values."""
    named = {role: value for role, value in vars(roles).items() if value != getattr(type(roles), role)}
    return {"--" + role.replace("_", "-"): value for role, value in named.items()}


def open_letor(paths: list[str], scores: str, roles: Roles, threads: int | None) -> Dataset:
    """Open a LETOR file with its scores. Ends the command if options name columns, which LETOR lacks."""
    from fastndcg.sources.letor import LetorFile
    from fastndcg.tables.roles import Columns

    if len(paths) > 1:
        refuse("--scores belongs to one PATH; give only one")
    for name in options_of(roles):
        if name not in ("--score", "--nan", "--ascending", "--unjudged"):
            refuse(f"{name} cannot be used with --scores: LETOR has grades and queries alone")
    how: Any = {"nan": roles.nan, "ascending": roles.ascending, "unjudged": roles.unjudged}
    columns = Columns("query_id", "label", STDIN if scores == "-" else scores, **how)
    return LetorFile(
        paths=[*paths],
        threads=threads or processors(),
        columns=columns,
        scores=read_once(scores)[0],
        score_column=roles.score,
    )


def tell(
    queries: int, documents: int | None, columns: Mapping[str, str | None], name: str | None = None
) -> None:
    """Print to stderr what was read. Called last, so that a failing command prints only its error."""
    of_run = "" if name is None else f"{name}: "
    of_what = "stored results" if documents is None else count_of(documents, "document")
    note(f"{of_run}{count_of(queries, 'query')}, {of_what}{columns_in_words(columns)}")


def columns_in_words(columns: Mapping[str, str | None]) -> str:
    """The column of each role as text."""
    named = ", ".join(f"{role}={column}" for role, column in columns.items() if column is not None)
    return f"; columns: {named}" if named else ""
