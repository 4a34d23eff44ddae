"""What users call to read tables: files whole, files and batches of Arrow as a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import pyarrow as pa

from fastndcg.common.threads import check_threads
from fastndcg.sources.csv import CSV
from fastndcg.sources.inputs import stream_of
from fastndcg.sources.parquet import PARQUET
from fastndcg.sources.streams import TableStream, threads_ahead
from fastndcg.tables.roles import Roles, with_roles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fastndcg.common.progress import Progress
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.dataset import Dataset
    from fastndcg.sources.open_file import Format
    from fastndcg.typing import Path as PathLike
    from fastndcg.typing import RoleKeywords, Table

Function = TypeVar("Function", bound="Callable[..., Any]")

# what the docstrings of all readers have in common, by the word in braces that stands for it
_SHARED = {
    "path": """\
Parameters
----------
path : str, path, or several of them
    A file; a folder, searched with its subfolders; a pattern with `*`, `?`, `[...]` or `**`; or a URI, as in
    `s3://bucket/predictions`. Files are read in the order of their names, or of the list. In folders, names
    that begin with `.` or `_` are ignored, and folders named `key=value` (hive partitions) give Parquet a
    column `key`. CSV may be packed by gzip, bzip2 or Zstandard.""",
    "roles": """\
query, relevance, score, doc_id, is_judged : str, optional
    Columns; by default, query, relevance and score are found by their usual names. `query` may be several,
    whose values together are the id, as in ["query_id", "day"]. Long form has a row for each document, in any
    order. List-column form has a row for each query, with lists in the columns of relevance, score, doc_id
    and is_judged; without a query column, the row number is the id.
relevant_ids, retrieved_ids : str, optional
    In place of relevance and score, where a row has lists of ids: those of the relevant documents of a query,
    and those that were retrieved, best first. Found by their usual names, such as expected_ids and
    retrieved_ids. Lists of whole numbers that could be ids, or grades and scores, are refused until they are
    named.
keep, weight : str, or of keep several, optional
    Columns or partition keys with one value within a query: to carry into `queries`, and the weight of each
    query in the mean.
intents, propensity : str, optional
    A list for each document, its grade for intent 0, 1, ... of its query, null for an intent without
    judgment; and the probability that a document's relevance was observed. CSV has no lists, so that
    `intents` is refused.
duplicates : "refuse" or "first"
    What to do with a document that appears twice in a query: "first" keeps the first.
nan : "refuse" or "last"
    "last" ranks documents whose score is NaN or null below all others.
rank : str, optional
    Column of ranks in place of scores: 1 is the best, and documents of one rank are tied.
ascending : bool
    True: the lowest score is the best, as for distances.
unjudged : "refuse" or "null"
    "null": a document whose grade is null or NaN is unjudged, as if its `is_judged` were false.
grades : mapping, optional
    The grade of each word, if the column of grades holds words: `{"perfect": 2, "fair": 1, "bad": 0}`.
types : mapping, optional
    For CSV and JSON Lines: the types of columns whose first megabyte is of another type than the rest, such
    as `{"qid": "string", "score": "float64"}`. A later value that does not fit is an error that shows it.
    Other formats say the types of their columns.
columns : sequence of str, optional
    Names of the columns of a text file without header, or of a table whose columns are only numbered, such as
    `["user", "item", "rating", "time"]`. Instead, numbers in `query=0`, `relevance=2` and so on may say the
    place of each column, from 0.
sep, decimal : str, optional
    What separates the fields of a text file, such as "|", "::", or "\\s+" for blanks; by default, it is
    found in the first line. And what separates decimals: "." or ",".""",
    "threads": """\
threads : int, optional
    Number of threads that read and decode; default: all that pyarrow has, of a stream up to four, the
    iterating thread among them. The result does not depend on it.""",
    "stream": """\
grouped : bool, optional
    True: the rows of each query are contiguous; otherwise an error is raised. None: the stream finds out.
    Rows that are not contiguous are then regrouped, in memory if they fit, or else in a temporary file (in
    the folder of `TMPDIR`), which is as large as the decoded columns and is removed at the end, even if the
    process is killed.
memory : int or str, optional
    Memory for rows at a time, in bytes or as in "512 MB"; default 128 MiB. Each query must fit. The results
    need memory in addition: 8 bytes for each measure and query, and the ids.""",
    "progress": """\
progress : callable or bool, optional
    False shows no progress of long calls in terminals and notebooks. A function is called as
    `progress(rows_done, rows_total)`, from the calling thread; rows_total is 0 while it is not known.""",
    "returns": """\
Returns
-------
TableStream
    Iterating it yields `Rankings` of whole queries, in order of first appearance. If rows are not grouped, it
    first reads all query ids, and then yields queries in another order; `evaluate` restores the order.""",
    "errors": """\
Raises
------
SourceError
    A path that does not exist, is of another format, or cannot be read; files with columns that do not match;
    a row of CSV with another number of fields, or with text where a number is needed. While a stream is
    iterated also for a file that changes or disappears, and for a full disk.
ColumnError
    A column is missing, or several columns could play a role.
InputError, InputTypeError
    All that `Rankings.from_arrow` refuses. Each message names the path. With `grouped=True` also for a query
    whose rows are not contiguous.""",
}


def _documented(function: Function) -> Function:
    """Show the roles of columns as keywords, and put what all readers share into the docstring."""
    text = function.__doc__ or ""  # none with `python -OO`
    for word, shared in _SHARED.items():
        text = text.replace(f"    {{{word}}}\n", "".join(f"    {line}\n" for line in shared.split("\n")))
    function.__doc__ = text or None
    return with_roles(function)


def _chosen(
    kind: Format, path: PathLike | Iterable[PathLike], threads: int | None, function: str, keywords: Any
) -> Dataset:
    """The files of a path, of one format, listed and begun once, with the columns that keywords choose."""
    # here: pyarrow's file systems bring ssl, a third of the import
    from fastndcg.sources.paths import as_list, find_files

    roles, paths = Roles.of(keywords, function), as_list(path)
    workers = check_threads(threads) or int(pa.cpu_count())
    files = find_files(paths, kind)
    if (dialect := roles.dialect()) is not None:
        files = [file._replace(dialect=dialect) for file in files]
    dataset: Dataset = kind.open(paths, files, workers)
    return dataset.choose(roles)


@_documented
def read_parquet(
    path: PathLike | Iterable[PathLike],
    *,
    threads: int | None = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> Rankings:
    """Read rankings from Parquet. Only the needed columns are read.

    {path}
    {roles}
    {threads}
    {progress}

    Returns
    -------
    Rankings
        Dtypes are those of the file. A file without rows gives no queries.

    {errors}

    See Also
    --------
    scan_parquet : read files that are larger than memory.
    evaluate : compute measures of the rankings.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> table = pa.table({"qid": ["a", "b", "a"], "label": [1, 0, 2], "score": [0.5, 0.1, 0.9]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/predictions.parquet")
    ...     rankings = read_parquet(folder)
    >>> rankings.queries["qid"].to_pylist(), rankings.offsets
    (['a', 'b'], array([0, 2, 3]))
    """
    return _chosen(PARQUET, path, threads, "read_parquet", roles).read(progress)


@_documented
def scan_parquet(
    path: PathLike | Iterable[PathLike],
    *,
    grouped: bool | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> TableStream:
    """Open Parquet of any size as a stream of `Rankings`, to evaluate it in bounded memory.

    Files and row groups are read in order, and a query that is split between them is joined. `evaluate`
    returns the same bits in the same order as for `read_parquet`.

    {path}
    {roles}
    {stream}
    {progress}
    {threads}

    {returns}

    {errors}

    See Also
    --------
    read_parquet : read all rows at once.
    evaluate : compute measures of the stream.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from fastndcg import evaluate
    >>> table = pa.table({"qid": ["a", "b", "a"], "label": [1, 0, 2], "score": [0.5, 0.1, 0.9]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/predictions.parquet")
    ...     scores = evaluate(scan_parquet(folder), "nDCG@10")
    >>> scores.queries["qid"].to_pylist(), scores["nDCG@10"]
    (['a', 'b'], array([1., 0.]))
    """
    workers = threads_ahead(threads)
    dataset = _chosen(PARQUET, path, workers, "scan_parquet", roles)
    return TableStream(dataset, grouped=grouped, memory=memory, threads=workers, progress=progress)


@_documented
def read_csv(
    path: PathLike | Iterable[PathLike], *, threads: int | None = None, **roles: Unpack[RoleKeywords]
) -> Rankings:
    r"""Read rankings from CSV or tab-separated files with a row for each document.

    The first line of each file has the names of columns, after comments, which begin with #, unless `columns`
    has them, or numbers give the places of columns. Fields are separated by commas, tabs, semicolons, `|`,
    `::` or blanks, and may be quoted; an empty field and `\N` are null, and so are NA, None and NULL in
    columns of numbers. Text is UTF-8, or UTF-16 with a byte order mark. The first megabyte of rows decides
    the types of columns. Ids and kept columns are integers if every value there is written like one, without
    leading zeros; otherwise they are text, so that 007 stays 007.

    {path}
    {roles}
    {threads}

    Returns
    -------
    Rankings
        Queries in order of first appearance.

    {errors}

    See Also
    --------
    scan_csv : read files that are larger than memory.
    read_qrels_run : read judgments and predictions from two files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.csv").write_text("qid,label,score\n007,1,0.5\n7,0,0.1\n007,2,0.9\n")
    ...     rankings = read_csv(f"{folder}/a.csv")
    >>> rankings.queries["qid"].to_pylist(), rankings.offsets
    (['007', '7'], array([0, 2, 3]))
    """
    return _chosen(CSV, path, threads, "read_csv", roles).read()


@_documented
def scan_csv(
    path: PathLike | Iterable[PathLike],
    *,
    grouped: bool | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> TableStream:
    r"""Open CSV or tab-separated files of any size, also packed, as a stream of `Rankings`, to evaluate it in
    bounded memory.

    `evaluate` returns the same bits in the same order as for `read_csv`, which says how fields are read.

    {path}
    {roles}
    {stream}
    {progress}
    {threads}

    {returns}

    {errors}

    See Also
    --------
    read_csv : read all rows at once.
    evaluate : compute measures of the stream.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fastndcg import evaluate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.csv").write_text("qid,label,score\na,1,0.5\nb,0,0.1\na,2,0.9\n")
    ...     scores = evaluate(scan_csv(f"{folder}/a.csv"), "nDCG@10")
    >>> scores.queries["qid"].to_pylist(), scores["nDCG@10"]
    (['a', 'b'], array([1., 0.]))
    """
    workers = threads_ahead(threads)
    dataset = _chosen(CSV, path, workers, "scan_csv", roles)
    return TableStream(dataset, grouped=grouped, memory=memory, threads=workers, progress=progress)


@_documented
def scan_arrow(
    data: Table | Iterable[Table] | Callable[[], Table | Iterable[Table]],
    *,
    grouped: bool | None = None,
    memory: int | str | None = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> TableStream:
    """Open batches of Arrow, of any number, as a stream of `Rankings`, to evaluate them in bounded memory.

    `evaluate` returns the same bits in the same order as for `Rankings.from_arrow` of all rows.

    Parameters
    ----------
    data
        What Arrow can read in batches: a RecordBatchReader, a lazy frame of Polars, a relation of DuckDB, a
        pyarrow Dataset, anything with `__arrow_c_stream__`; an iterator or a list of tables of any library,
        with the same columns; or a function without arguments that returns any of these. A batch is used as
        it comes, and whatever makes the batches needs its own memory.
    {roles}
    {stream}
    {progress}

    {returns}
        Lazy frames, relations, datasets and functions are asked for rows
        anew where they are needed twice: if rows turn out not to be grouped after the first ones; for means
        that are weighted by numbers of documents; and in each evaluation. Readers and iterators can be read
        once, and are read by one evaluation.

    Raises
    ------
    ColumnError, InputError, InputTypeError
        As in `Rankings.from_arrow`; also `InputError` for a reader or an iterator that is read a second time,
        or one of whose queries returns after the first rows, and `InputTypeError` for a column whose type
        changes.

    See Also
    --------
    scan_parquet : open files as a stream.
    evaluate : compute measures of the stream, or of all rows of a table at once.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from fastndcg import evaluate
    >>> table = pa.table({"qid": ["a", "a", "b"], "label": [0, 1, 2], "score": [0.5, 0.1, 0.9]})
    >>> stream = scan_arrow(lambda: table.to_reader(max_chunksize=1))
    >>> stream
    TableStream(query='qid', relevance='label', score='score')
    >>> evaluate(stream, "RR").mean()
    {'RR': 0.75}
    """
    dataset = stream_of(data).choose(Roles.of(roles, "scan_arrow"))
    return TableStream(
        dataset, grouped=grouped, memory=memory, threads=threads_ahead(None), progress=progress
    )
