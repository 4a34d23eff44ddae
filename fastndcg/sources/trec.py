"""Read judgments and a run into `Rankings`: TREC files, JSON, tables, dicts and tuples, in one join.

    qrels, run -> Side, Side -> join by query and document -> rows of ties in the requested order -> Rankings

A negative grade means "in the pool, but unjudged", as in trec_eval: such a document gains nothing and is not
part of `judged`; its `is_judged` is False and its `relevance` negative, which infAP uses.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, get_args

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import OR_FIRST, runs_of
from fastndcg.common.arrow_types import column_of
from fastndcg.common.threads import check_threads
from fastndcg.errors import (
    ColumnError,
    FastndcgError,
    InputError,
    InputTypeError,
    SourceError,
    about,
    check_choice,
    known_arguments,
)
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources.csv import CSV
from fastndcg.sources.dataset import TextTypes
from fastndcg.sources.formats import LETOR, NESTED, TREC, find_tables
from fastndcg.sources.open_file import path_of, read_each_once, read_once, report_progress, unpacked
from fastndcg.sources.text_lines import (
    INTENTS,
    JUDGED,
    LISTED,
    QRELS,
    RUN,
    THREE_FIELDS,
    Form,
    Lines,
    read_lines,
)
from fastndcg.tables.joins import Role, Side, check_options, naming, with_values
from fastndcg.tables.locations import Locator
from fastndcg.tables.roles import OF_ONE_TABLE, Roles, fitting, with_roles_of_both
from fastndcg.tables.shapes import (
    find_columns,
    has_columns,
    is_answer,
    refuse_columns,
    side_of_data,
    side_of_queries,
    side_of_table,
)
from fastndcg.tables.values import whole
from fastndcg.typing import Duplicates, Missing, NaN, TieOrder
from fastndcg.typing import Path as PathLike

if TYPE_CHECKING:
    from fastndcg.common.progress import Progress
    from fastndcg.measures import Measure
    from fastndcg.typing import JoinKeywords

_LOOKED_AT = 100  # queries of a dict that are examined to tell one run from several
_TIMES = 1e7, 4e15  # grades in this range are times: days such as 20261128, or seconds to microseconds
_FORMS: dict[Role, tuple[Form, ...]] = {"relevance": (QRELS, JUDGED), "score": (RUN, THREE_FIELDS)}
WANTED = "one JSON object: query -> document -> number, or query -> list of documents"


@known_arguments
def read_trec(
    qrels: PathLike,
    run: PathLike,
    *,
    missing: Missing = "zero",
    ties: TieOrder = "docid_desc",
    nan: NaN = "refuse",
    ascending: bool = False,
    score_dtype: npt.DTypeLike = np.float64,
    intents: bool = False,
    duplicates: Duplicates = "refuse",
    threads: int | None = None,
    progress: Progress = None,
) -> Rankings:
    r"""Read rankings from a TREC qrels file and a TREC run.

    Parameters
    ----------
    qrels, run : paths
        Plain, gzip, bzip2 or Zstandard files, or URIs. Fields are separated by blanks or tabs. A line
        with as many tabs as its form has is split only at them, so that ids may have blanks. Empty lines and
        comments are ignored: lines that begin with #, unless they have the form of data; then they count, and
        a warning says so. A run may have three fields: query, document, and rank as MS MARCO has it, or
        score. They are ranks if each query has 1, 2, ..., and refused where they could be both.
    missing : "zero" or "skip"
        "zero": every query of the qrels counts; a query that the run lacks has an empty ranking (`trec_eval
        -c`, ir_measures). "skip": only queries in both files count. Queries that the qrels lack never count.
    ties : "docid_desc", "docid_asc" or "input"
        Order of rows, which matters only to measures with ties="input": by descending score, and tied
        documents by descending id as in trec_eval, or by ascending id, ids compared as bytes; or as in the
        file.
    nan : "refuse" or "last"
        "last" ranks documents whose score is NaN or null below all others.
    ascending : bool
        True: the lowest score is the best, as for distances.
    score_dtype : float64 or float32
        float32 reads scores as pytrec_eval and trec_eval up to 9.0.8 do, so that more documents are tied.
    intents : bool
        True: the second field of the qrels is an intent (TREC's diversity qrels: topic subtopic doc grade);
        a document has a grade for each, and the highest is its own. Intents are numbered in the order of
        their names. `ties="docid_asc"` here and ties="input" in measures give the values of ndeval.
    duplicates : "refuse" or "first"
        "first" keeps the first line of a document that a query has several times, "refuse" raises.
    threads : int, optional
        Number of threads that read. Default: as many as this process may use.
    progress : callable or bool, optional
        False shows no progress in terminals and notebooks. A function is called as `progress(bytes_done,
        bytes_total)`.

    Returns
    -------
    Rankings
        Queries in the order of the qrels, with the judged pool, `is_judged` and `doc_ids`.

    Raises
    ------
    SourceError
        A file that cannot be read or has no rows; a malformed line, with its number and text.
    InputError
        The same document twice for a query, naming file, line, query and document; a NaN score.

    See Also
    --------
    read_qrels_run : read judgments and predictions from tables.
    evaluate : compute measures of the rankings.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "qrels").write_text("301 0 A 1\n301 0 B 2\n302 0 A 1\n")
    >>> _ = (folder / "run").write_text("301 Q0 C 1 2.5 me\n301 Q0 B 2 1.5 me\n")
    >>> rankings = read_trec(folder / "qrels", folder / "run")
    >>> rankings.offsets, rankings.relevance, rankings.is_judged
    (array([0, 2, 2]), array([0, 2]), array([False,  True]))
    """
    check_options(missing, ties)
    check_choice("nan", nan, get_args(NaN))
    check_threads(threads)
    dtype = np.dtype(score_dtype)
    if dtype not in (np.float32, np.float64):
        raise InputTypeError(f"score_dtype is {dtype}; expected float64 or float32")
    qrels, run = read_each_once(qrels, run)
    with _naming_what_fits(run):
        with report_progress(progress, qrels, run):
            of_both = Roles(ascending=ascending, duplicates=duplicates)
            judged = text_side(qrels, "relevance", threads, of_both, intents=intents)
            scored = text_side(run, "score", threads, of_both)
        scored = scored._replace(values=scored.values.astype(dtype, copy=False))
        return Rankings._from_sides(judged, scored, missing, ties, nan)


@with_roles_of_both
def read_qrels_run(
    qrels: PathLike,
    run: PathLike,
    *,
    missing: Missing = "zero",
    ties: TieOrder = "docid_desc",
    intents: bool | str = False,
    threads: int | None = None,
    progress: Progress = None,
    **roles: Unpack[JoinKeywords],
) -> Rankings:
    """Read rankings from judgments and predictions in two files, joined on query and document id.

    Parameters
    ----------
    qrels, run : paths
        Each is a TREC file, a table (Parquet, CSV, JSON Lines or Feather), or a JSON object: query ->
        document -> number, or query -> list of documents. The first bytes tell the format.
        Each may also be a folder or a pattern of files of one format, which may split the rows of a query, or
        a URI.
    missing, ties, nan, duplicates, threads, progress
        As in `read_trec`. Whole-number ids are ordered as numbers.
    relevant_ids, retrieved_ids : str, optional
        Columns with the ids of a query: lists, or text in which blanks separate them.
    query, doc_id, relevance, score : str, optional
        Columns of tables. Default: the usual names. Only these columns are read. Without scores, a column
        `rank` says the order; without grades, the column `score` of judgments has them, as BEIR writes it.
    keep, weight : str, optional
        Columns of the judgments with one value for each query. `keep` is carried to the results, `weight` is
        the weight in means.
    rank, ascending, unjudged, grades, types, columns, sep, decimal
        As in `read_csv`. `columns` with grades and without scores are those of the judgments alone; a dict
        has the names of both, as in {"qrels": [...], "run": [...]}. `rank` and `ascending` are for the run,
        `unjudged` and `grades` for the judgments. `grades` may also be a number: the grade of every judgment,
        where these have none.
    intents : bool or str
        True: each judgment is for one intent. A TREC file has it in the second field, a table in a column
        with a usual name (intent, subtopic, iteration). A string names the column.

    Returns
    -------
    Rankings
        With the judged pool, `is_judged` and `doc_ids`, like those of `read_trec`.

    Raises
    ------
    SourceError, ColumnError, InputError
        As in `read_trec`; also for a column that is missing or ambiguous, or has nulls, and for files
        without a query or a document in common.

    See Also
    --------
    read_trec : read TREC files.
    evaluate : compute measures of the rankings.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> qrels = pa.table({"qid": [1, 1, 2], "docid": [7, 8, 7], "rel": [1, 2, 1]})
    >>> run = pa.table({"qid": [1, 1], "docid": [9, 8], "score": [2.5, 1.5]})
    >>> pq.write_table(qrels, folder / "qrels.parquet")
    >>> pq.write_table(run, folder / "run.parquet")
    >>> read_qrels_run(folder / "qrels.parquet", folder / "run.parquet").relevance
    array([0, 2])
    """
    named = Roles.of(roles, "read_qrels_run", OF_ONE_TABLE)
    rankings, *_ = next(
        read_qrels_runs(qrels, [run], named, missing, ties, intents, threads=threads, progress=progress)
    )
    return rankings


def read_qrels_runs(
    qrels: PathLike,
    runs: Iterable[PathLike],
    roles: Roles,
    missing: Missing,
    ties: TieOrder = "docid_desc",
    intents: bool | str = False,
    *,
    threads: int | None = None,
    progress: Progress = None,
) -> Iterator[tuple[Rankings, dict[str, str] | None, dict[str, str] | None]]:
    """Yield what `read_qrels_run` returns for each run, reading the judgments once; and the columns of both
    files, None for formats without columns.
    """
    check_options(missing, ties)
    check_threads(threads)
    roles = roles.with_intents(intents)
    qrels, *runs = read_each_once(qrels, *runs)
    judged, of_judged = None, None
    for run in runs:
        with _naming_what_fits(run):
            with report_progress(progress, *([qrels] if judged is None else []), run):
                if judged is None:
                    judged, of_judged = file_side(qrels, "relevance", roles, threads, intents=bool(intents))
                scored, of_scored = file_side(run, "score", roles, threads)
            rankings = Rankings._from_sides(judged, scored, missing, ties, roles.nan)
        yield rankings, of_judged, of_scored


def rankings_of_both(
    qrels: Any, run: Any, roles: Roles, *, intents: bool = False, name: str = "run"
) -> Rankings:
    """Join judgments and a run; each is a path, data in memory, or a side."""
    qrels, run = read_each_once(qrels, run)
    judged = side_of_any("qrels", qrels, "relevance", roles, intents=intents)
    return Rankings._from_sides(judged, side_of_any(name, run, "score", roles), nan=roles.nan)


def side_of_any(name: str, data: Any, role: Role, roles: Roles, *, intents: bool = False) -> Side:
    """Convert judgments or a run, a path or data in memory, to a side; returns a side as it is."""
    if isinstance(data, Side):
        return data
    if isinstance(data, str | os.PathLike):
        return file_side(data, role, roles, None, intents=intents)[0]
    return side_of_data(name, data, role, roles, intents=intents)


def rankings_by_name(
    qrels: Any, run: Any, roles: Roles, measures: Iterable[Measure]
) -> dict[str, Rankings] | None:
    """Join several runs with the same judgments, for these measures; None if `run` is a single run."""
    runs = runs_by_name(run)
    if runs is None:
        return None
    of_intents = any(measure.definition.method == "intents" for measure in measures)
    judged = side_of_any("qrels", qrels, "relevance", roles, intents=of_intents)
    results = {}
    for name, each in runs.items():
        with about(name):
            results[name] = rankings_of_both(judged, each, roles, name=f"run[{name!r}]")
    return results


def runs_by_name(data: Any) -> dict[str, Any] | None:
    """Return several runs by name, or None if the data has the shape of a single run.

    A single run maps queries to documents: a dict of numbers, a Series, or a list. Several map names to runs
    of any shape: a dict of these, a table, a path, or tuples or records with a query.

    >>> runs_by_name({"q1": {"a": 0.5}}), runs_by_name({"bm25": {"q1": {"a": 0.5}}})
    (None, {'bm25': {'q1': {'a': 0.5}}})
    """
    if not isinstance(data, Mapping) or not data or has_columns(data):
        return None
    of_one, of_several = list[Any](), list[Any]()  # an empty value may be either
    for key, value in data.items():
        is_run = _is_run(key, value)
        if is_run is not None:
            (of_several if is_run else of_one).append(key)
        if of_one and of_several:
            raise InputTypeError(
                f"run[{of_one[0]!r}] has documents, and run[{of_several[0]!r}] is a run; expected one run, "
                'as in {"q1": {"doc1": 0.5}}, or several by name, as in {"bm25": {"q1": {"doc1": 0.5}}}'
            )
        if len(of_one) >= _LOOKED_AT:
            break
    if not of_several:
        return None
    runs = {str(name): run for name, run in data.items()}
    if len(runs) < len(data):
        raise InputError(f"run has two runs with the same name: {', '.join(map(repr, data))}; rename one")
    return runs


def _is_run(key: Any, value: Any) -> bool | None:
    """Return whether a value of a dict is a run rather than the documents of a query; None if it is empty."""
    if isinstance(value, str):  # a path, or ids
        is_like_path = len(value.split()) == 1 and bool(Path(value).suffix or {os.sep, "/"} & set(value))
        return is_like_path or os.path.exists(value)  # noqa: PTH110  # accepts any string
    if is_answer(value):
        return False
    if isinstance(value, Mapping):
        first: Any = next(iter(value.values()), None)
        is_set = isinstance(first, Mapping | Set) or hasattr(first, "to_dict")
        return (is_set or np.ndim(first) > 0) if value else None
    if isinstance(value, list | tuple):
        first = value[0] if value else None
        if isinstance(first, Mapping):  # a hit may repeat the id of its query
            queries = [first[name] for name in fitting(list(first), "query")]
            return bool(queries) and key not in queries
        is_row = hasattr(first, "query_id") or (isinstance(first, tuple) and len(first) > 2)
        return is_row if value else None
    kind = type(value)  # asking a lazy frame itself for its columns is slow, and warns
    of_columns = any(hasattr(kind, name) for name in ("columns", "column_names", "schema"))
    is_records = getattr(getattr(value, "dtype", None), "names", None) is not None
    is_ranx = hasattr(kind, "to_dict") and not hasattr(kind, "tolist")
    is_rows = is_ranx or isinstance(value, os.PathLike | Iterator)
    return of_columns or is_records or is_rows


@contextmanager
def _naming_what_fits(run: PathLike) -> Iterator[None]:
    """Word the error for a run that does not fit into memory."""
    try:
        yield
    except MemoryError:
        raise SourceError(
            f"{run} and its judgments need more memory than is available. Join them once with a tool "
            "that works on disk, store the grades as a column of a Parquet file, and give that to "
            "scan_parquet."
        ) from None


def file_side(
    path: PathLike, role: Role, roles: Roles, threads: int | None, *, intents: bool = False
) -> tuple[Side, dict[str, str] | None]:
    """Read a side from a file. Also returns its columns; None for TREC files, which have none."""
    name = read_once(path_of(path, "qrels" if role == "relevance" else "run"))
    found_files = find_tables([name], has_rank=role == "score", dialect=roles.dialect(role))
    if found_files.format in (TREC, LETOR):
        form = LISTED if found_files.format is LETOR else None
        return text_side(name, role, threads, roles, intents=intents, form=form), None
    if found_files.format is NESTED:
        refuse_columns(name, role, roles, "JSON by query, which has no columns")
        queries = queries_of_json(name, text_of_file(name), roles.duplicates)
        side = side_of_queries(name, queries, role, roles, intents=intents)
        if not len(side.codes):
            raise SourceError(f"{name} has no documents; expected at least one, {WANTED}")
        return side, None
    opened = found_files.open(threads)
    try:
        chosen = find_columns(opened.first, opened.names, role, roles, opened.type_of, intents=intents)
    except ColumnError as error:
        raise opened.explain(error, role) from None
    opened.look_at_ranks([chosen.query], chosen.value or "", chosen.compared_ranks)
    has_words = roles.grades is not None and role == "relevance"
    numbers = [each for each in (None if has_words else chosen.value, roles.weight) if each in chosen.names]
    grades = chosen.value if role == "relevance" else None
    text = TextTypes(numbers, None, (), grades, roles.given_types)
    table = replace(opened, text=text).table(chosen.names)
    side = side_of_table(name, table, chosen, role, opened.first_row, is_text=opened.format is CSV)
    return side, chosen.taken(role)


# ---- TREC files and runs of MS MARCO ----


def text_side(
    path: PathLike,
    role: Role,
    threads: int | None,
    roles: Roles | None = None,
    *,
    intents: bool = False,
    form: Form | None = None,
) -> Side:
    """Read judgments or a run from a TREC file or a file of three fields; with `form`, only of that form."""
    forms = (form or INTENTS,) if form or intents else _FORMS[role]
    roles, name = roles or Roles(), path_of(path, "run" if role == "score" else "qrels")
    of = "a run" if role == "score" else "a qrels file"
    refuse_columns(name, role, roles, f"{of} whose fields have no names")
    lines = read_lines(name, *forms, threads=threads)
    values = lines.values
    if not len(values):
        what = "documents" if role == "score" else "judgments"
        raise SourceError(f"{name} has no {what}; expected at least one: {forms[0].expected}")

    def place(row: int) -> str:
        return f"{name}, line {lines.line_of(row)}"

    if lines.form is THREE_FIELDS and not roles.ascending:
        roles = replace(roles, ascending=_are_ranks(name, lines))
    if role == "relevance" and ((values >= _TIMES[0]) & (values < _TIMES[1])).all():
        raise SourceError(
            f"{place(0)}: the grade is {values[0]:.0f}, and all grades of the file look like timestamps. "
            "TREC judgments have lines of query, iteration, document and a small whole number as grade. For "
            "ratings, name the fields for evaluate or read_qrels_run, as in "
            'columns=["user_id", "item_id", "rating", "time"].'
        )
    values = values if role == "score" else whole(values)
    side = Side(name, lines.queries, lines.query_codes, lines.docs, values, place, lines.tag)
    side = side._replace(is_ordered=role == "score" and roles.ascending)
    locator = Locator(numbers=lines.line_of, unit="line")
    with naming(name):
        return with_values(side, role, roles, column_of(values), locator, lines.intents if intents else None)


def _are_ranks(name: str, lines: Lines) -> bool:
    """Return whether the numbers of a run of three fields are ranks: each query has 1, 2, ... in any order.

    Raises `SourceError` if they could be either: 1, 2, ... in descending order in every query, as scores
    would be, or other whole numbers in ascending order, as ranks would be.
    """
    values = in_rows = lines.values
    codes = lines.query_codes
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        codes, in_rows = codes[order], values[order]
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    places = runs_of(1, np.diff(starts, append=len(codes)))
    if np.array_equal(in_rows, places):
        return True
    with np.errstate(invalid="ignore"):
        if not (values == np.floor(values)).all() or np.isinf(values).any():
            return False
    steps = np.diff(in_rows)[places[1:] > 1]
    are_places = np.array_equal(values[np.lexsort((values, lines.query_codes))], places)
    falls, rises = bool((steps < 0).all()), bool((steps >= 0).all())
    if steps.any() and (falls if are_places else rises):
        how = "1, 2, ... that fall" if are_places else "other numbers than 1, 2, ... that rise"
        how = f"each query has {how} from line to line"
        raise SourceError(
            f"{name} has three fields, query doc and a whole number, which could be a rank, 1 the best, or a "
            f"score, the highest the best: {how}. If it is a rank, pass ascending=True. If it is a score, "
            'pass columns=["query_id", "doc_id", "score"] to evaluate or read_qrels_run, or write the six '
            "fields query Q0 doc rank score tag."
        )
    return are_places


# ---- JSON ----


def text_of_file(name: str) -> str:
    with unpacked(name) as stream:
        try:
            return bytes(stream.read()).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(f"{name} cannot be read: {error}; expected text in UTF-8") from None


def queries_of_json(name: str, text: str, duplicates: Duplicates = "refuse") -> dict[str, Any]:
    """Parse a JSON object from query to documents. Raises for a query or a document that appears twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        unique = dict(pairs)
        if len(unique) < len(pairs):
            is_query = all(isinstance(value, dict | list) for value in unique.values())
            if duplicates == "first" and not is_query:
                return dict(reversed(pairs))
            keys = [key for key, _ in pairs]
            again = next(key for key in keys if keys.count(key) > 1)
            what, choice = ("query", "") if is_query else ("document", OR_FIRST)
            raise InputError(f'{name}: {what} "{again}" appears twice; drop one of the two{choice}')
        return unique

    try:
        queries: dict[str, Any] = json.loads(text, object_pairs_hook=once)
    except FastndcgError:
        raise
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{name} cannot be read: {error}; expected {WANTED}") from None
    return queries
