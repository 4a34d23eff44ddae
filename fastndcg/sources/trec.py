"""Judgments and a run to `Rankings`: TREC files, JSON, two tables, dicts and named tuples, in one join.

    qrels, run -> Side, Side -> join by query and document -> rows of ties in the requested order -> Rankings

A negative grade means "in the pool, unjudged", as trec_eval reads it: such a document gains nothing and is
not part of `judged`; its `is_judged` is False and its `relevance` negative, which infAP looks at.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrays import JOINED, falling_keys, negate, offsets_from, offsets_of, read_only
from fastndcg.common.arrow_types import (
    array_of,
    column_of,
    combine,
    decode,
    places_of,
    plain,
    whole_ids,
    without_points,
)
from fastndcg.common.threads import check_threads, in_threads, processors
from fastndcg.errors import (
    Argument,
    At,
    ColumnError,
    FastndcgError,
    Given,
    InputError,
    InputTypeError,
    Part,
    SourceError,
    Step,
    check_choice,
    count_of,
    warn,
)
from fastndcg.kernels.compile import worlds
from fastndcg.rankings.grouping import SECRET, encode, id_column, numbers_of, text_of
from fastndcg.rankings.intents import IntentGrades
from fastndcg.rankings.oddities import Names, warn_of_oddities
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources.columns import (
    OF_ONE_TABLE,
    Columns,
    Roles,
    check_column,
    find_column,
    find_grades,
    find_order,
    fitting,
    kept_names,
    with_roles,
)
from fastndcg.sources.formats import LOOK, NESTED, TABLE, TREC, Format, format_of, is_ranked
from fastndcg.sources.frames import is_table, source_of
from fastndcg.sources.lines import INTENTS, QRELS, RANKED, RUN, Lines, fields_of, read_lines, whole
from fastndcg.sources.opening import cannot_read, file_system, open_unpacking, path_of, report_progress
from fastndcg.sources.values import grades_in, numbers_in, refuse_nulls, scores_in, shown
from fastndcg.typing import Missing, NaN, TieOrder
from fastndcg.typing import Path as PathLike

if TYPE_CHECKING:
    from fastndcg.common.progress import Progress
    from fastndcg.kernels.reading.joining import Ids
    from fastndcg.typing import JoinKeywords

Array = npt.NDArray[Any]
Role = Literal["relevance", "score"]

_AT_ONCE = 1 << 18  # documents of dicts that become arrays together
_MOST_COLUMNS = 1000  # of a dict of columns
_LEAST_FOUND = (
    0.01  # share of queries with a judged document below which ids are probably written differently
)
_BLANK = re.compile(r"\s*")
_NESTED = "one JSON object: query -> document -> number, or query -> list of documents"
_LONGEST_FIRST = 1 << 20  # bytes of the first line that are looked at


class Side(NamedTuple):
    """The judgments or the run: a row for each of its documents."""

    name: str
    queries: pa.Array  # distinct query ids in order of first appearance
    codes: Array  # for each row, which of `queries`
    docs: pa.Array | pa.ChunkedArray
    values: Array  # grades or scores
    place: Callable[[int], str]  # where a row was found, for messages
    tag: str = ""  # name of a TREC run, as its last line has it
    query_name: str = "query_id"  # what query ids are called
    intents: IntentGrades | None = None  # of each row, where judgments are of intents
    kept: pa.Table | None = None  # columns of `queries`
    weight: Array | None = None
    column: str = ""  # of the values, in a table
    is_ordered: bool = False  # the values were ranks, or scores of which the lowest is the best


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
    threads: int | None = None,
    progress: Progress = None,
) -> Rankings:
    r"""Read rankings from a TREC qrels file and a TREC run.

    Parameters
    ----------
    qrels, run : paths
        Plain, gzip, bzip2 or Zstandard files, or URIs. Fields are separated by blanks or tabs. Empty lines
        and lines that begin with # are ignored. An MS MARCO run has three fields: query, document and rank,
        the lowest of which is the best.
    missing : "zero" or "skip"
        "zero": every query of the qrels counts; a query that the run lacks has an empty ranking (`trec_eval
        -c`, ir_measures). "skip": only queries in both files count. Queries that the qrels lack never count.
    ties : "docid_desc", "docid_asc" or "input"
        Order of rows, which only measures with ties="input" depend on. "docid_desc" orders rows by falling
        score and tied documents by falling id, as trec_eval does; "docid_asc" by rising id. Ids are compared
        as bytes. "input" keeps the order of the file.
    nan : "refuse" or "last"
        "last" ranks documents whose score is NaN or null below all others.
    ascending : bool
        True: the lowest score is the best, as for distances.
    score_dtype : float64 or float32
        float32 reads scores as pytrec_eval and trec_eval up to 9.0.8 do, so that more documents are tied.
    intents : bool
        True: the second field of the qrels is an intent (TREC's diversity qrels: topic subtopic doc grade),
        and a document has a grade for each intent. Its own grade is the highest of them. Intents are numbered
        in the order of their names. ndeval ranks tied documents by rising id; `ties="docid_asc"` here and
        ties="input" in measures give its values.
    threads : int, optional
        Number of threads that read. Default: as many as this process may use.
    progress : callable or bool, optional
        By default, terminals and notebooks show the progress of long calls. False shows nothing. A function
        is called instead, as `progress(bytes_done, bytes_total)`, from the threads that read.

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
    _check_options(missing, ties)
    check_choice("nan", nan, get_args(NaN))
    check_threads(threads)
    dtype = np.dtype(score_dtype)
    if dtype not in (np.float32, np.float64):
        raise InputTypeError(f"score_dtype is {dtype}; wanted float64 or float32")
    with report_progress(progress, qrels, run):
        judged = text_side(qrels, "relevance", threads, intents=intents)
        scored = _run_side(run, Roles(ascending=ascending), threads)
    scored = scored._replace(values=scored.values.astype(dtype, copy=False))
    return _examined(judged, scored, missing, ties, nan, threads)


@with_roles
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
    missing, ties, nan, threads, progress
        As in `read_trec`. Whole-number ids are ordered as numbers.
    query, doc_id, relevance, score : str, optional
        Columns of tables. Default: the usual names. Only these columns are read. Without scores, a column
        `rank` says the order; without grades, the column `score` of judgments has them, as BEIR writes it.
    keep, weight : str, optional
        Columns of the judgments with one value for each query. `keep` is carried to the results, `weight` is
        the weight in means.
    rank, ascending, unjudged, grades
        As in `read_parquet`. `rank` and `ascending` are for the run, `unjudged` and `grades` for the
        judgments. `grades` may also be a number: the grade of every judgment, where these have none.
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
    >>> import pathlib, tempfile, pyarrow.parquet as pq
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
) -> Iterator[tuple[Rankings, Taken | None, Taken | None]]:
    """What `read_qrels_run` returns for each run, of judgments that are read once; and the columns taken of
    both, where they have some.

    Raises as it does.
    """
    _check_options(missing, ties)
    check_threads(threads)
    roles = _with_intents(roles, intents)
    judged, of_judged = None, None
    for run in runs:
        with report_progress(progress, *([qrels] if judged is None else []), run):
            if judged is None:
                judged, of_judged = _file_side(qrels, "relevance", roles, threads, intents=bool(intents))
            scored, of_scored = _file_side(run, "score", roles, threads)
        yield _examined(judged, scored, missing, ties, roles.nan, threads), of_judged, of_scored


def rankings_from_qrels_run(
    qrels: Any,
    run: Any,
    roles: Roles,
    missing: Missing = "zero",
    ties: TieOrder = "docid_desc",
    intents: bool | str = False,
) -> Rankings:
    """What `Rankings.from_qrels_run` does.

    >>> rankings_from_qrels_run({"q1": {"a": 1, "b": 0}}, {"q1": {"b": 0.5, "c": 0.1}}, Roles()).is_judged
    array([ True, False])
    """
    _check_options(missing, ties)
    roles = _with_intents(roles, intents)
    judged = given_side("qrels", qrels, "relevance", roles, intents=bool(intents))
    return _examined(judged, given_side("run", run, "score", roles), missing, ties, roles.nan)


def _check_options(missing: str, ties: str) -> None:
    check_choice("missing", missing, get_args(Missing))
    check_choice("ties", ties, get_args(TieOrder))


def _with_intents(roles: Roles, intents: bool | str) -> Roles:
    """The same roles, with the column of intents where one is named."""
    if not isinstance(intents, bool | str):
        raise InputTypeError(
            f"intents={intents!r} is a {type(intents).__name__}; wanted True, False or the name of a column"
        )
    return replace(roles, intents=intents) if isinstance(intents, str) else roles


# ---- sides from files ----


def _run_side(path: PathLike, roles: Roles, threads: int | None) -> Side:
    """A TREC run, or one of MS MARCO, whose first line has three fields; a lower rank is a higher score."""
    name = path_of(path, "run")
    _refuse_columns(name, "score", roles, "a run whose fields have no names")
    if not is_ranked(_first_fields(name)):
        return text_side(name, "score", threads, roles)
    lines = read_lines(name, RANKED, threads=threads)
    place = _line_namer(lines)
    with np.errstate(invalid="ignore"):
        is_rank = (lines.values >= 0) & (lines.values == np.floor(lines.values)) & (lines.values < 1 << 53)
    if not is_rank.all():
        row = int(np.argmin(is_rank))
        raise SourceError(
            f"{place(row)}: the rank is {lines.values[row]:g}; wanted a whole number, 1 for the best: "
            f"{RANKED.wanted}"
        )
    ranked = negate(lines.values)
    return Side(name, lines.queries, lines.query_codes, lines.docs, ranked, place, is_ordered=True)


def _first_fields(name: str) -> list[bytes]:
    """Fields of the first line that is neither empty nor a comment; none of a pipe."""
    with _beginning(name) as stream:
        if stream is None:
            return []
        with io.BufferedReader(stream) as lines:
            while line := lines.readline(_LONGEST_FIRST):
                fields = fields_of(line.removeprefix(b"\xef\xbb\xbf"))
                if fields and not fields[0].startswith(b"#"):
                    return fields
    return []


@contextmanager
def _beginning(name: str) -> Iterator[Any]:
    """A stream to look at the beginning of a file; None for a pipe, from which what is read is gone."""
    with open_unpacking(name) as stream:
        is_pipe = isinstance(stream, io.FileIO) and not stream.seekable()
        try:
            yield None if is_pipe else stream
        except OSError as error:
            raise cannot_read(name, error) from None


def text_side(
    path: PathLike, role: Role, threads: int | None, roles: Roles | None = None, *, intents: bool = False
) -> Side:
    """Judgments or a run of a TREC file."""
    form = RUN if role == "score" else INTENTS if intents else QRELS
    name = path_of(path, "run" if role == "score" else "qrels")
    lines = read_lines(name, form, threads=threads)
    if not len(lines.values):
        what = "documents" if role == "score" else "judgments"
        raise SourceError(f"{name} has no {what}; wanted at least one: {form.wanted}")
    values, tag = (lines.values, lines.last[5]) if role == "score" else (whole(lines.values), "")
    side = Side(name, lines.queries, lines.query_codes, lines.docs, values, _line_namer(lines), tag)
    side = side if roles is None else _in_order(side, role, roles)
    return _by_document(side, lines.intents) if intents else side


def _line_namer(lines: Lines) -> Callable[[int], str]:
    return lambda row: f"{lines.path}, line {lines.line_of(row)}"


def format_of_side(name: str, *, has_rank: bool) -> Format:
    """The format of judgments or a run. Raises `SourceError` for a file that cannot be read."""
    if _is_many(name):
        return TABLE
    with _beginning(name) as stream:
        return TREC if stream is None else format_of(name, bytes(stream.read(LOOK)), has_rank=has_rank)


def _is_many(name: str) -> bool:
    """Whether a path may stand for several files: a folder, or a pattern."""
    is_pattern = any(sign in name for sign in "*?[")
    if "://" in name:
        from pyarrow import fs

        system, inside = file_system(name)
        kind = system.get_file_info(inside).type
        return bool(kind == fs.FileType.Directory or (is_pattern and kind == fs.FileType.NotFound))
    path = Path(name)
    return path.is_dir() or (is_pattern and not path.exists())


# the column of each role of judgments or a run
Taken = dict[str, str]
_OF_TABLES = {"relevance": ("grades", "keep", "weight"), "score": ("rank",)}


def _refuse_columns(name: str, role: Role, roles: Roles, what: str) -> None:
    """Raise for names of columns where the input has none."""
    for argument in _OF_TABLES[role]:
        if not getattr(roles, argument) or (argument == "grades" and roles.one_grade is not None):
            continue
        if argument == "keep":  # which the cutoffs of a measure may ask for
            column = roles.keep if isinstance(roles.keep, str) else roles.keep[0]
            given = Given(argument, column)
            raise ColumnError(
                f'there is no column "{column}" for ', given, f": {name} is {what}; give a table"
            )
        raise ColumnError(Argument(argument), f" is of a column, and {name} is {what}; give a table")


def _file_side(
    path: PathLike, role: Role, roles: Roles, threads: int | None, *, intents: bool = False
) -> tuple[Side, Taken | None]:
    """A side, and the columns that were taken of it; None of a TREC file, which has none."""
    name = path_of(path, "qrels" if role == "relevance" else "run")
    kind = format_of_side(name, has_rank=role == "score")
    if kind is TREC:
        if role == "score":
            return _run_side(name, roles, threads), None
        _refuse_columns(name, role, roles, "a qrels file whose fields have no names")
        return text_side(name, role, threads, roles, intents=intents), None
    from fastndcg.sources import csv, given

    if kind is NESTED:
        _refuse_columns(name, role, roles, "JSON by query, which has no columns")
        side = _side_of_dict(name, _queries_of_json(name, _text_of(name)), role, roles, intents=intents)
        if not len(side.codes):
            raise SourceError(f"{name} has no documents; wanted at least one, {_NESTED}")
        return side, None
    opened = given.open_tables([name], threads, None if kind is TABLE else kind)
    try:
        found = _find(opened.first, opened.names, role, roles, intents=intents)
    except ColumnError as error:
        if isinstance(opened, csv.Opened):
            raise csv.no_such_columns(opened.first, opened.headers[0], error) from None
        raise
    has_words = roles.grades is not None and role == "relevance"
    numbers = [each for each in (None if has_words else found.value, roles.weight) if each in found.names]
    table = opened.table(found.names, numbers, threads, found.value if role == "relevance" else None)
    first_row = opened.first_row if isinstance(opened, csv.Opened) else 0
    side = _table_side(name, table, found, role, first_row, is_text=isinstance(opened, csv.Opened))
    return side, found.taken(role)


# ---- sides from memory ----


def given_side(name: str, data: Any, role: Role, roles: Roles, *, intents: bool = False) -> Side:
    """Judgments or a run in memory, or their path. Raises as `Rankings.from_qrels_run` does."""
    if isinstance(data, str | os.PathLike):
        return _file_side(data, role, roles, None, intents=intents)[0]
    if not isinstance(data, Mapping) and not is_table(data) and callable(getattr(data, "to_dict", None)):
        data = data.to_dict()  # ranx's Qrels and Run
    if isinstance(data, Mapping) and not _has_columns(data):
        _refuse_columns(name, role, roles, "a dict")
        return _side_of_dict(name, data.items(), role, roles, intents=intents)
    if isinstance(data, Iterable) and not isinstance(data, Mapping) and not is_table(data):
        _refuse_columns(name, role, roles, "no table")
        return _in_order(_side_of_tuples(name, data, role, intents=intents), role, roles)
    try:
        source = source_of(data)
    except InputTypeError:
        raise InputTypeError(
            f"{name} is a {type(data).__name__}; wanted a dict of dicts or of lists, a DataFrame, an Arrow "
            f"table, or ir_measures' {'Qrel' if role == 'relevance' else 'ScoredDoc'} tuples"
        ) from None
    found = _find(name, list(source.names), role, roles, intents=intents)
    return _table_side(name, source.table(found.names), found, role)


def _in_order(side: Side, role: Role, roles: Roles) -> Side:
    """A side without columns, with the one grade of judgments, and with the highest score the best."""
    if role == "relevance" and roles.one_grade is not None:
        return side._replace(values=np.full(len(side.codes), roles.one_grade))
    if role == "score" and roles.ascending and not side.is_ordered:
        return side._replace(values=negate(side.values), is_ordered=True)
    return side


def _has_columns(data: Mapping[Any, Any]) -> bool:
    """Whether a dict has columns, of which some are the ids, and not an entry for each query."""
    names = list(data) if len(data) <= _MOST_COLUMNS else []
    return all(fitting(names, role) for role in ("query", "doc_id")) and not any(
        isinstance(column, Mapping) for column in data.values()
    )


def _text_of(name: str) -> str:
    with open_unpacking(name) as stream:
        try:
            return bytes(stream.read()).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(f"{name} cannot be read: {error}; wanted text in UTF-8") from None
        except OSError as error:
            raise cannot_read(name, error) from None


def _queries_of_json(name: str, text: str) -> Iterator[tuple[str, Any]]:
    """The queries of a file, each with its documents, one at a time: dicts of all take much more memory."""
    decoder = json.JSONDecoder(object_pairs_hook=partial(_once, name))
    queries: set[str] = set()
    try:
        at = _blank(text, _blank(text, 0) + 1)
        mark = text[at] if text[at] == "}" else ","
        while mark == ",":
            query, at = decoder.raw_decode(text, at)
            at = _blank(text, at)
            if not isinstance(query, str) or text[at] != ":":
                raise ValueError(f"no query and its documents before character {at:,}")
            documents, at = decoder.raw_decode(text, _blank(text, at + 1))
            if query in queries:
                raise _twice(name, "query", query)
            queries.add(query)
            yield query, documents
            at = _blank(text, at)
            mark, at = text[at], _blank(text, at + 1)
        if mark != "}" or (queries and at < len(text)):
            raise ValueError(f"more than one object before character {at:,}")
    except FastndcgError:
        raise
    except (ValueError, IndexError, RecursionError) as error:
        reason = "it ends too early" if isinstance(error, IndexError) else str(error)
        raise SourceError(f"{name} cannot be read: {reason}; wanted {_NESTED}") from None


def _blank(text: str, at: int) -> int:
    """Where the next token begins."""
    return _BLANK.match(text, at).end()  # type: ignore[union-attr] # it always matches


def _once(name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _twice(name, "document", next(key for key in keys if keys.count(key) > 1))
    return found


def _twice(name: str, of: str, key: str) -> InputError:
    return InputError(f'{name}: {of} "{key}" is there twice; drop one of the two')


def _side_of_dict(
    name: str, queries: Iterable[tuple[Any, Any]], role: Role, roles: Roles, *, intents: bool = False
) -> Side:
    """A side from queries, each with a dict of its documents, or with a list or a set of them."""
    if intents:
        return _in_order(_side_of_intent_dicts(name, queries), role, roles)
    ids, sizes, docs, values, has_lists = list[Any](), list[int](), list[Any](), list[Any](), False
    parts: list[tuple[pa.Array, Array]] = []
    for query, documents in queries:
        if isinstance(documents, Mapping):
            listed, numbers = list(documents), list(documents.values())
        else:
            listed, has_lists = _documents_in(name, query, documents, role), True
            numbers = [1] * len(listed) if role == "relevance" else list(range(len(listed), 0, -1))
        ids.append(query)
        sizes.append(len(listed))
        docs += listed
        values += numbers
        if len(docs) >= _AT_ONCE:
            parts.append((_ids(name, "document", docs), _numbers(name, values)))
            docs, values = [], []
    if docs or not parts:
        parts.append((_ids(name, "document", docs), _numbers(name, values)))
    kinds = {part.type for part, _ in parts}
    if len(kinds) > 1:
        raise _mixed(name, "document", " and ".join(sorted(map(str, kinds))))
    if has_lists and role == "score" and roles.ascending:
        raise InputError(
            Argument("ascending", True), f" is for scores, and {name} has lists, which stand best first"
        )
    docs_of_all = parts[0][0] if len(parts) == 1 else pa.chunked_array([part for part, _ in parts])
    codes = np.repeat(np.arange(len(sizes)), sizes)
    side = Side(
        name,
        _ids(name, "query", ids),
        codes,
        docs_of_all,
        np.concatenate([numbers for _, numbers in parts]),
        lambda _: name,
        is_ordered=has_lists and role == "score",
    )
    return _in_order(side, role, roles)


def _documents_in(name: str, query: Any, documents: Any, role: Role) -> list[Any]:
    """The documents of a list, best first, or of a set of relevant ones."""
    wanted = f"a dict from document id to {'grade' if role == 'relevance' else 'score'}"
    if isinstance(documents, Set) and role == "score":
        raise InputTypeError(
            f"{name}[{query!r}] is a {type(documents).__name__}, which has no order; "
            f"wanted a list of documents, best first, or {wanted}"
        )
    if isinstance(documents, Set | list | tuple):
        return list(documents)
    if hasattr(documents, "tolist"):  # arrays of NumPy and pyarrow
        found = documents.tolist()
        if isinstance(found, list):
            return found
    raise InputTypeError(
        f"{name}[{query!r}] is a {type(documents).__name__}; wanted {wanted}, or a list of documents"
    )


def _side_of_tuples(name: str, data: Iterable[Any], role: Role, *, intents: bool = False) -> Side:
    rows = list(data)
    try:
        query = [row.query_id for row in rows]
        doc = [row.doc_id for row in rows]
        value = [getattr(row, role) for row in rows]
        intent = [row.iteration for row in rows] if intents else None
    except AttributeError as error:
        raise InputTypeError(
            f"{name} holds {type(error.obj).__name__} without {error.name}; "
            f"wanted tuples with query_id, doc_id and {role}"
        ) from None
    side = _side(name, _ids(name, "query", query), _ids(name, "document", doc), _numbers(name, value))
    return side if intent is None else _by_document(side, _ids(name, "intent", intent))


def _side_of_intent_dicts(name: str, queries: Iterable[tuple[Any, Any]]) -> Side:
    rows = []
    for query, documents in queries:
        for document, grades in documents.items() if isinstance(documents, Mapping) else ():
            if not isinstance(grades, Mapping):
                raise InputTypeError(
                    f"{name}[{query!r}][{document!r}] is a {type(grades).__name__}; "
                    "wanted a dict from intent to number"
                )
            rows += [(query, document, intent, grade) for intent, grade in grades.items()]
    ids, documents, intents, grades = map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])
    side = _side(name, _ids(name, "query", ids), _ids(name, "document", documents), _numbers(name, grades))
    return _by_document(side, _ids(name, "intent", intents))


class _Found(NamedTuple):
    """Columns of judgments or of a run."""

    query: str
    doc_id: str
    value: str | None  # grades, scores or ranks; None if all judgments have one grade
    intent: str | None
    kept: list[str]  # of judgments
    roles: Roles

    @property
    def names(self) -> list[str]:
        named = (self.query, self.doc_id, self.value, self.intent, *self.kept)
        return list(dict.fromkeys(name for name in named if name is not None))

    def taken(self, role: Role) -> Taken:
        order = "rank" if role == "score" and self.roles.rank is not None else role
        value = {} if self.value is None else {order: self.value}
        return {"query": self.query, "doc_id": self.doc_id} | value


def _table_side(
    name: str, table: pa.Table, found: _Found, role: Role, first_row: int = 0, *, is_text: bool = False
) -> Side:
    graded, roles = None, found.roles

    def place(row: int) -> At:
        return At(row + first_row)

    try:
        named = [each for each in (found.query, found.doc_id, found.intent) if each is not None]
        as_ids = without_points if is_text else whole_ids
        query, doc, *intent = ids = [as_ids(plain(table[column])) for column in named]
        for column, held in zip(named, ids, strict=True):
            refuse_nulls(column, held, place)
        for column, held, of in zip(named, ids, ("query", "document"), strict=False):
            if pa.types.is_floating(held.type) or pa.types.is_nested(held.type):
                raise InputTypeError(
                    f'column "{column}" is {held.type}; wanted whole numbers or strings as {of} ids'
                )
        of_values = found.value or ""
        columns = Columns(
            relevance=of_values, score=of_values, nan="last", ascending=roles.ascending,
            unjudged=roles.unjudged, grades=roles.grades,
        )  # fmt: skip
        if found.value is None:
            values = np.full(len(table), roles.one_grade)
        elif role == "relevance":
            values, graded = grades_in(columns, table[of_values], place)
        else:  # nulls are NaN, which pandas writes as null: refused or ranked last where they are joined
            values = scores_in(columns, table[of_values], place)
        of_queries = _columns_of_queries(
            table, found.query, found.kept, roles.weight, first_row, is_text=is_text
        )
    except FastndcgError as error:
        parts = (part for part in error.parts if part != JOINED)  # which these judgments are not
        raise type(error)(f"{name}: ", *parts) from None
    side = _side(name, query, doc, values, first_row)._replace(
        query_name=found.query, column=of_values, is_ordered=roles.ascending, **of_queries
    )
    intents = combine(intent[0]) if intent else None
    if graded is not None:
        rows = np.flatnonzero(graded)
        of_row, docs = side.place, side.docs.take(column_of(rows))
        side = side._replace(
            codes=side.codes[rows], docs=docs, values=values[rows], place=lambda row: of_row(int(rows[row]))
        )
        intents = None if intents is None else intents.take(column_of(rows))
    return side if intents is None else _by_document(side, intents)


def _columns_of_queries(
    table: pa.Table, query: str, kept: Sequence[str], weight: str | None, first_row: int, *, is_text: bool
) -> dict[str, Any]:
    """Fields of a side: the kept columns and weights of its queries."""
    if not kept:
        return {}
    from fastndcg.sources.arrow import columns_of_queries, integers_if_written_so

    found = columns_of_queries(table, query, kept, first_row)
    weights = None if weight is None else numbers_in(weight, found[weight], "weights", At)
    names = [name for name in kept if name != weight]
    columns = [integers_if_written_so(found[name]) if is_text else found[name] for name in names]
    return {"kept": pa.table(columns, names=names) if names else None, "weight": weights}


def _side(
    name: str,
    query: pa.Array | pa.ChunkedArray,
    docs: pa.Array | pa.ChunkedArray,
    values: Array,
    first_row: int = 0,
) -> Side:
    ids = id_column(encode_runs(query))
    numbers = numbers_of(ids)
    codes = numbers.codes.astype(np.int64, copy=False)
    queries = ids.dictionary.take(ids.indices.take(pa.array(numbers.first_rows)))
    return Side(name, queries, codes, docs, values, lambda row: f"{name}, row {row + first_row}")


def encode_runs(ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Ids as a dictionary. Where rows of a query stand together, only the first of each run is looked up.

    Ids other than whole numbers and texts are returned as they are.
    """
    import pyarrow.compute as pc

    ids = combine(ids)
    if not (pa.types.is_integer(ids.type) or (_is_text(ids.type) and not pa.types.is_binary_view(ids.type))):
        return ids
    runs = pc.run_end_encode(ids, run_end_type=pa.int64())
    if 2 * len(runs.values) > len(ids):
        return encode(ids)
    found, lengths = encode(runs.values), np.diff(array_of(runs.run_ends), prepend=0)
    indices = np.repeat(array_of(found.indices), lengths)
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), found.dictionary)


def _ids(name: str, of: str, values: list[Any]) -> pa.Array:
    if not values:
        return pa.array([], pa.string())
    try:
        ids = whole_ids(pa.array(values))
    except (TypeError, ValueError, pa.ArrowInvalid) as error:
        raise _mixed(name, of, str(error)) from None
    if not (pa.types.is_integer(ids.type) or _is_text(ids.type)):
        raise InputTypeError(f"{name} has {of} ids that are {ids.type}; wanted strings or whole numbers")
    if ids.null_count:
        raise InputError(
            f"{name} has {count_of(ids.null_count, f'{of} id that is None')}; "
            f"give each {of} its id, or drop them"
        )
    return ids


def _mixed(name: str, of: str, what: str) -> InputTypeError:
    return InputTypeError(
        f"{name} has {of} ids of mixed or unknown types: {what}. "
        "Make all of them strings, or all of them whole numbers."
    )


def _numbers(name: str, values: list[Any]) -> Array:
    array = np.array(values) if values else np.empty(0, np.int64)
    if array.dtype.kind not in "buif" or array.ndim != 1:
        raise InputTypeError(
            f"{name} holds values that are not numbers, beginning with {values[0]!r}; "
            "wanted a number for each document"
        )
    return array


def _find(name: str, present: list[str], role: Role, roles: Roles, *, intents: bool) -> _Found:
    """The columns of judgments or of a run."""
    kept: dict[str, None] = {}
    try:
        value: str | None
        if role == "relevance":
            value = find_grades(present, roles)
            kept = dict.fromkeys(kept_names(present, roles.keep))
            kept |= {} if roles.weight is None else {check_column(present, "weight", roles.weight): None}
        else:
            roles, value = find_order(present, roles)
        query, doc_id = (find_column(present, each, getattr(roles, each)) for each in ("query", "doc_id"))
        intent = find_column(present, "intent", roles.intents) if intents else None
        return _Found(query, doc_id, value, intent, [each for each in kept if each != query], roles)
    except ColumnError as error:
        raise error.within(f"{name}: ") from None


# ---- judgments of intents ----


def _by_document(side: Side, names: pa.Array) -> Side:
    """A row for each judged document instead of one for each of its intents, documents of a query by falling
    id.

    Its grade is its highest. Intents are numbered in each query by their names.
    """
    _check_values(side, "grade")
    docs, intents = (_plain_ids(ids).dictionary_encode() for ids in (side.docs, names))
    document = -places_of(docs.dictionary)[array_of(docs.indices)]
    intent = places_of(intents.dictionary)[array_of(intents.indices)]
    width = len(intents.dictionary) + 1
    pairs, number = np.unique(side.codes.astype(np.int64) * width + intent, return_inverse=True)
    number -= np.searchsorted(pairs, np.arange(len(side.queries)) * width)[side.codes]
    order = np.lexsort((number, document, side.codes))
    codes, document, number = side.codes[order], document[order], number[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (codes[1:] != codes[:-1]) | (document[1:] != document[:-1])
    twice = np.flatnonzero(~new[1:] & (number[1:] == number[:-1]))
    if len(twice):
        first, second = sorted(order[twice[0] : twice[0] + 2].tolist())
        raise InputError(
            f"{side.place(second)}: {_name(side, second)} has two grades for intent {shown(names[second])}, "
            f"the first at {side.place(first)}; drop one of the two"
        )
    starts, values = np.flatnonzero(new), side.values[order]
    rows = order[starts]
    judged = values >= 0
    ends = offsets_from(judged)[np.append(starts, len(order))]
    return side._replace(
        codes=codes[starts],
        docs=side.docs.take(column_of(rows)),
        values=np.maximum.reduceat(values, starts) if len(starts) else values,
        place=lambda row: side.place(int(rows[row])),
        intents=IntentGrades(ends, number[judged], values[judged]),
    )


# ---- the join ----


_SAMPLE = 3  # ids that a message names
_PART = 250_000  # rows for which another thread is worth while
_SIGN = np.uint64(1 << 63)  # moves signed keys to unsigned ones of the same order


def join(
    qrels: Side, run: Side, missing: Missing, ties: TieOrder, nan: NaN, threads: int | None = None
) -> Rankings:
    """Rankings of the queries of `qrels`, with the grade of each document of `run`."""
    import pyarrow.compute as pc

    _check_values(qrels, "grade")
    if nan == "last" and run.values.dtype.kind == "f":
        run = run._replace(values=np.where(np.isnan(run.values), run.values.dtype.type(-np.inf), run.values))
    _check_values(run, "score")
    judged_queries, run_queries = _alike(qrels.queries, run.queries)
    judged_docs, run_docs = _alike(qrels.docs, run.docs)

    to_judged = array_of(pc.index_in(run_queries, judged_queries), len(judged_queries)).astype(np.int64)
    run_codes = to_judged[run.codes]
    returned = np.flatnonzero(np.bincount(run_codes, minlength=len(qrels.queries) + 1)[:-1])
    _check_queries(qrels, run, returned, missing)
    if missing == "skip":
        qrels, run_codes = _skip_others(qrels, returned, run_codes)

    judged_offsets, judged_rows = _group(qrels.codes, len(qrels.queries))
    values = qrels.values
    if not _ascends(judged_rows):
        # one look at each id in random order; the join would take several
        judged_docs, values = _take(judged_docs, judged_rows, threads), values[judged_rows]
    offsets, rows = _group(run_codes, len(qrels.queries))
    judged_ids, run_ids = _digest(judged_docs, threads), _digest(run_docs, threads)
    found, judged_places = np.empty(len(run.values), np.int64), np.arange(len(judged_rows))

    def join_part(part: slice) -> tuple[int, int, int]:
        return worlds.run(  # type: ignore[no-any-return]
            "reading.joining.join_documents",
            len(rows),
            judged_offsets[part],
            judged_places,
            judged_ids,
            offsets[part],
            rows,
            run_ids,
            found,
        )

    for twice, first, second in _each_part(join_part, judged_offsets + offsets, threads):
        if twice == 1:
            raise _duplicate(qrels, int(judged_rows[first]), int(judged_rows[second]))
        if twice:
            raise _duplicate(run, first, second)
    # after the join, which looks at the rows as they stand: in order of their scores it took twice as long
    if ties != "input":
        rows = _by_falling_score(run.values, offsets, rows, run_ids, ties, threads)
    in_place = len(rows) == len(run.values) and _ascends(rows)
    if not in_place:
        found = found[rows]

    pool_kept = values[: len(judged_rows)] >= 0
    pool_offsets = offsets_of(pool_kept, judged_offsets)
    is_judged = found >= 0
    relevance = np.append(values, values.dtype.type(0))[found]  # of what is not found the last one
    is_judged &= relevance >= 0
    intents: dict[str, Any] = {}
    if qrels.intents is not None:
        intents = {
            "intents": qrels.intents.take(np.append(judged_rows, -1)[found]),
            "judged_intents": qrels.intents.take(judged_rows[pool_kept]),
        }
    return Rankings._from_offsets(
        offsets,
        relevance,
        run.values if in_place else run.values[rows],
        judged=(pool_offsets, values[: len(judged_rows)][pool_kept]),
        is_judged=is_judged,
        query_ids=qrels.queries,
        queries=qrels.kept,
        weight=qrels.weight,
        **intents,
    )._with(
        _query_name=qrels.query_name,
        _first_row=None,
        doc_ids=run.docs if in_place else _of_kind(run_docs, run.docs, rows, threads),
    )


def _skip_others(qrels: Side, queries: Array, run_codes: Array) -> tuple[Side, Array]:
    """Judgments of these queries, and the codes of a run among them; other queries have the code after."""
    codes = np.full(len(qrels.queries) + 1, len(queries), np.int64)
    codes[queries] = np.arange(len(queries))
    taken = column_of(queries)
    chosen = qrels._replace(
        queries=qrels.queries.take(taken),
        codes=codes[qrels.codes],
        kept=None if qrels.kept is None else qrels.kept.take(taken),
        weight=None if qrels.weight is None else qrels.weight[queries],
    )
    return chosen, codes[run_codes]


def _by_falling_score(
    values: Array, offsets: Array, rows: Array, ids: Ids, ties: TieOrder, threads: int | None
) -> Array:
    """Rows of each query in order of falling score; those of equal score by their documents' ids."""
    keys, ordered = falling_keys(values).view(np.uint64) ^ _SIGN, np.empty(len(rows), np.int64)
    _each_part(
        lambda part: worlds.run(
            "reading.joining.order_documents",
            len(rows),
            offsets[part],
            rows,
            keys,
            ids,
            ties == "docid_asc",
            ordered,
        ),
        offsets,
        threads,
    )
    return ordered


def _of_kind(
    ids: pa.Array, original: pa.Array | pa.ChunkedArray, rows: Array, threads: int | None
) -> pa.Array | pa.ChunkedArray:
    """These rows of document ids, of the type they came in; `ids` are the same ones as they were joined."""
    if not _is_text(original.type) or pa.types.is_binary_view(original.type):
        return original.take(column_of(rows))
    taken = _take(ids, rows, threads)
    if not _is_binary(original.type):
        taken = pa.Array.from_buffers(pa.large_string(), len(taken), taken.buffers())
    return taken.cast(original.type)


def _take(ids: pa.Array, rows: Array, threads: int | None) -> pa.Array:
    """`ids.take(rows)` of large binary or of numbers: pyarrow's takes four times as long for text."""
    if not pa.types.is_large_binary(ids.type):
        return ids.take(column_of(rows))
    offsets, data = text_of(ids)
    taken = worlds.run("reading.joining.offsets_of_taken", len(rows), offsets, rows)
    out = np.empty(taken[-1], np.uint8)
    _each_part_of_rows(
        lambda part: worlds.run(
            "reading.joining.take_text",
            len(rows),
            offsets,
            data,
            rows[part][: len(taken[part]) - 1],
            taken[part],
            out,
        ),
        len(rows),
        threads,
    )
    return pa.Array.from_buffers(ids.type, len(rows), [None, pa.py_buffer(taken), pa.py_buffer(out)])


def _check_values(side: Side, what: Literal["grade", "score"]) -> None:
    """Raise for values that rankings cannot hold, while file and line are still known."""
    if side.values.dtype.kind not in "buif":
        raise InputTypeError(f"{side.name} has {what}s of dtype {side.values.dtype}; wanted numbers")
    if side.values.dtype.kind != "f":
        return
    bad = np.isnan(side.values) if what == "score" else ~np.isfinite(side.values)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{side.place(row)}: {what} {side.values[row]} of {_name(side, row)}; {bad.sum():,} in all. "
            "Drop those rows",
            Step(" or pass ", Argument("nan", "last")) if what == "score" else "",
            ".",
        )


def _check_queries(qrels: Side, run: Side, common: Array, missing: Missing) -> None:
    """Refuse sides without a common query, and warn if they have few; `common` are numbers in the qrels."""
    judged, returned = len(qrels.queries), len(run.queries)
    if not judged or not len(run.codes):
        return
    if not len(common):
        raise _nothing_in_common(qrels, run, "query", _sample(qrels.queries), _sample(run.queries))
    if 2 * len(common) < (judged if missing == "zero" else min(judged, returned)):
        lacking = np.setdiff1d(np.arange(judged), common)
        counted: tuple[Part, ...] = (", are left out",)
        if missing == "zero":
            skip = Step("; pass ", Argument("missing", "skip"), " to leave them out")
            counted = (", count with an empty ranking", skip)
        warn(
            f"{qrels.name} has {count_of(judged, 'query')} and {run.name} {count_of(returned, 'query')}; "
            f"they have {len(common):,} in common. "
            f"The other judged ones, {_sample(qrels.queries.take(pa.array(lacking)))}",
            *counted,
            ". If that is not meant, compare how ids are written.",
        )


def _check_documents(qrels: Side, run: Side, rankings: Rankings) -> None:
    """Refuse sides whose queries have no document in common, and warn if hardly any has one."""
    met = rankings.relevance < 0  # unjudged documents of the pool
    met = met if rankings.is_judged is None else met | rankings.is_judged
    ends = np.append(0, np.cumsum(met))[rankings.offsets]
    returned, found = np.flatnonzero(rankings.lengths), int(np.count_nonzero(np.diff(ends)))
    if found >= max(1, _LEAST_FOUND * len(returned)) or not len(returned):
        return
    query = int(returned[0 if not found else np.argmax(np.diff(ends)[returned] == 0)])
    of_query = rankings.query_ids[query]
    codes = np.flatnonzero([each == of_query for each in qrels.queries])
    there = _sample(qrels.docs.take(column_of(np.flatnonzero(qrels.codes == codes[0]))))
    here = _sample(rankings.doc_ids[int(rankings.offsets[query]) : int(rankings.offsets[query + 1])])  # type: ignore[index]
    of = f"documents of query {shown(of_query)}"
    if not found:
        raise _nothing_in_common(qrels, run, "document", f"{of} are {there}", here)
    warn(
        f"of {count_of(len(returned), 'query')} of {run.name} only {found:,} have a document that "
        f"{qrels.name} judges: {of} are {there} there, {here} here. "
        "If that is not meant, compare how ids are written."
    )


def _nothing_in_common(qrels: Side, run: Side, of: str, there: str, here: str) -> InputError:
    return InputError(
        f"{qrels.name} and {run.name} have no {of} in common: {there} there, {here} here. "
        "Compare how ids are written."
    )


def _examined(
    qrels: Side, run: Side, missing: Missing, ties: TieOrder, nan: NaN, threads: int | None = None
) -> Rankings:
    """The rankings of both sides. Raises if their ids never meet, and warns if they look wrong."""
    rankings = join(qrels, run, missing, ties, nan, threads)
    _check_documents(qrels, run, rankings)
    grades, scores = (
        f'column "{side.column}" of {side.name}' if side.column else f"the {what} of {side.name}"
        for side, what in ((qrels, "grade"), (run, "score"))
    )
    both = bool(qrels.column and run.column)
    known = Names(grades, scores, run.column, run.is_ordered, are_columns=both, are_joined=True)
    # the join puts rows in order of their scores; ranks are known by the order in which they were given
    changes = np.flatnonzero(np.diff(run.codes)) + 1
    ranks = run.values, np.concatenate([[0], changes, [len(run.codes)]])
    return warn_of_oddities(rankings, known, ranks)


def _duplicate(side: Side, first: int, second: int) -> InputError:
    return InputError(
        f"{side.place(second)}: {_name(side, second)} is there twice, first at {side.place(first)}. "
        f"A document has one {'grade' if side.name == 'qrels' else 'entry'} for a query: "
        "drop one of the two."
    )


def _name(side: Side, row: int) -> str:
    return f"document {shown(side.docs[row])} of query {shown(side.queries[int(side.codes[row])])}"


def _sample(ids: pa.Array) -> str:
    """The first ids, as a message has them."""
    return ", ".join(map(shown, ids[:_SAMPLE])) + (" ..." if len(ids) > _SAMPLE else "")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_binary(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _alike(left: Any, right: Any) -> tuple[pa.Array, pa.Array]:
    """Ids of both sides as int64 or uint64, or as large_binary, so that equal ids have equal bytes.

    A number in one is the same id as its text in the other.
    """
    both = [_plain_ids(left), _plain_ids(right)]
    numbers = [pa.types.is_integer(ids.type) for ids in both]
    if all(numbers):
        for kind in (pa.int64(), pa.uint64()):
            with suppress(pa.ArrowInvalid):
                return both[0].cast(kind), both[1].cast(kind)
    texts = (
        ids.cast(pa.string()) if is_number else ids for ids, is_number in zip(both, numbers, strict=True)
    )
    one, other = (ids.cast(pa.large_binary()) for ids in texts)
    return one, other


def _plain_ids(ids: Any) -> pa.Array:
    ids = decode(ids)
    if not pa.types.is_integer(ids.type):
        ids = ids.cast(pa.large_binary() if _is_binary(ids.type) else pa.large_string())
    return combine(ids)


def _group(codes: Array, n_codes: int) -> tuple[Array, Array]:
    """Offsets and rows of the codes below `n_codes`; rows of other codes are left out."""
    if not len(codes) or (codes[1:] >= codes[:-1]).all():
        offsets = np.searchsorted(codes, np.arange(n_codes + 1)).astype(np.int64)
        return offsets, np.arange(offsets[-1], dtype=np.int64)
    codes = read_only(codes.astype(np.int64, copy=False))
    offsets, rows = worlds.run("reading.rows.rows_by_code", len(codes), codes, n_codes + 1)
    return offsets[:-1], rows[: offsets[-2]]


def _each_part(kernel: Callable[[slice], Any], offsets: Array, threads: int | None) -> list[Any]:
    """Results of a kernel for parts of about equal size, in threads; `offsets[part]` are those of a part."""
    rows, n_parts = int(offsets[-1]), _parts_of(int(offsets[-1]), threads)
    wanted = [rows * part // n_parts for part in range(1, n_parts)]
    cuts = np.unique([0, *np.searchsorted(offsets, np.array(wanted, np.int64)), len(offsets) - 1])
    return _each(kernel, cuts.tolist())


def _each_part_of_rows(kernel: Callable[[slice], Any], rows: int, threads: int | None) -> None:
    """As `_each_part`, for parts of rows, each with the row after its last one, as their offsets have it."""
    n_parts = _parts_of(rows, threads)
    _each(kernel, [rows * part // n_parts for part in range(n_parts + 1)])


def _parts_of(rows: int, threads: int | None) -> int:
    return max(1, min(threads or processors(), rows // _PART))


def _each(kernel: Callable[[slice], Any], cuts: list[int]) -> list[Any]:
    parts = [slice(start, stop + 1) for start, stop in pairwise(cuts)]
    return in_threads(kernel, parts if len(parts) > 1 else [slice(None)])


def _digest(ids: pa.Array, threads: int | None) -> Ids:
    from fastndcg.kernels.reading.joining import Ids, hashes_of_numbers

    if pa.types.is_integer(ids.type):
        numbers = array_of(ids)
        leading = (numbers ^ _SIGN).view(np.int64) if numbers.dtype == np.uint64 else numbers.view()
        return Ids(
            hashes_of_numbers(leading, SECRET),
            np.array(leading),
            read_only(np.empty(0, np.int64)),
            read_only(np.empty(0, np.uint8)),
        )
    offsets, data = text_of(ids)
    hashes, leading = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
    _each_part_of_rows(
        lambda part: worlds.run(
            "reading.joining.digest_ids",
            len(ids),
            offsets[part],
            data,
            SECRET,
            hashes[part][: len(offsets[part]) - 1],
            leading[part][: len(offsets[part]) - 1],
        ),
        len(ids),
        threads,
    )
    return Ids(hashes, leading, offsets, data)


def _ascends(rows: Array) -> bool:
    return not len(rows) or bool(rows[0] == 0 and rows[-1] == len(rows) - 1 and (rows[1:] > rows[:-1]).all())
