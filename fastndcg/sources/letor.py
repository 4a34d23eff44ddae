"""LETOR and svmlight files with `qid:`, and LightGBM's files with a `.query` file beside them, to `Rankings`.

Only the label and the qid of a line are read. Features, which may be in any order, repeated or `NULL`, and
comments are ignored.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pyarrow as pa

from fastndcg.common.arrays import Array, as_array
from fastndcg.common.threads import check_threads
from fastndcg.errors import InputError, SourceError, count_of
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources.dataset import Dataset
from fastndcg.sources.formats import LETOR
from fastndcg.sources.inputs import read_columns
from fastndcg.sources.open_file import naming, path_of, read_once, report_progress, unpacked
from fastndcg.sources.text_lines import LETOR_LINE, Lines, read_lines
from fastndcg.tables.layouts import offsets_of_groups
from fastndcg.tables.roles import find_column
from fastndcg.tables.values import first_line, integers_if_written_so, whole, with_nulls_as_nan

if TYPE_CHECKING:
    from fastndcg.common.progress import Progress
    from fastndcg.sources.open_file import Format
    from fastndcg.typing import Columns
    from fastndcg.typing import Path as PathLike


def read_ltr(
    path: PathLike,
    *,
    scores: Any,
    query_file: PathLike | None = None,
    score_column: str | None = None,
    threads: int | None = None,
    progress: Progress = None,
    **columns: Unpack[Columns],
) -> Rankings:
    r"""Read rankings from a LETOR or svmlight file and the scores of its rows.

    Parameters
    ----------
    path : path
        Plain, gzip, bzip2 or Zstandard. A line is `label qid:query feature:value ...`. Empty lines and lines
        that begin with # are ignored. The rows of a query need not be contiguous.
    scores : array-like, or path
        A score for each row: an array, a column of a Parquet file, a .npy file, or a text file with a number
        on each line.
    query_file : path, optional
        File with the number of rows of each query, in order, one on each line. Queries are then numbered from
        0, and each qid of `path` is ignored. Default: `path` + ".query" if lines have no qid and this file
        exists.
    score_column : str, optional
        Column of a Parquet file of scores. Default: its only column, or the one with a usual name.
    threads : int, optional
        Number of threads that read. Default: as many as this process may use.
    progress : callable or bool, optional
        False shows no progress in terminals and notebooks. A function is called as `progress(bytes_done,
        bytes_total)` of `path`.
    columns
        The keywords of `Rankings.from_offsets` except `query_ids`: `nan`, `ascending`, `unjudged`, and arrays
        with an entry for each row (`doc_ids`, `is_judged`, ...) or for each query (`weight`, `queries`, ...).

    Returns
    -------
    Rankings
        Queries in the order of the file.

    Raises
    ------
    SourceError
        A file that cannot be read or has no rows; a malformed line, with its number and text.
    InputError
        Numbers of rows, scores and group sizes that do not fit together; all that `Rankings` refuses.
    ColumnError
        A column of scores that is missing or ambiguous.

    See Also
    --------
    read_trec : read rankings from TREC files.
    evaluate : compute measures of the rankings.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "test.txt"
    >>> _ = path.write_text("2 qid:7 1:0.5 2:NULL # doc A\n0 qid:7 2:0.1 1:0.3\n1 qid:9 1:1\n")
    >>> rankings = read_ltr(path, scores=[0.2, 0.4, 0.1])
    >>> rankings.relevance, rankings.offsets, rankings.query_ids.to_pylist()
    (array([2, 0, 1]), array([0, 2, 3]), [7, 9])
    """
    import pyarrow.compute as pc

    check_threads(threads)
    name = path_of(path, "path")
    with report_progress(progress, name):
        lines = read_lines(name, LETOR_LINE, threads=threads)
    if not len(lines.values):
        raise SourceError(f"{name} has no rows; expected at least one: {LETOR_LINE.expected}")
    labels = whole(lines.values)
    without = pc.index(lines.queries, "").as_py()
    if query_file is None and without >= 0:
        query_file = _query_file_beside(name, lines, without)
    values, origin = _scores_of(scores, score_column)
    if len(values) != len(labels):
        raise InputError(
            f"{origin} has {count_of(len(values), 'score')} and {name} {count_of(len(labels), 'row')}; "
            "give one score for each row, in row order"
        )
    if query_file is not None:
        query_file = path_of(query_file, "query_file")
        sizes = _one_number_a_line(query_file, pa.int64(), "the number of rows of a query")
        with naming([query_file]):
            offsets = offsets_of_groups(sizes, labels, "refuse")
        return Rankings.from_offsets(offsets, labels, values, **columns)
    ids = integers_if_written_so(lines.queries)
    of_rows = pa.DictionaryArray.from_arrays(pa.array(lines.query_codes), ids)
    return Rankings.from_query_ids(
        of_rows.cast(ids.type) if pa.types.is_integer(ids.type) else of_rows, labels, values, **columns
    )


@dataclass(frozen=True, kw_only=True)
class LetorFile(Dataset):
    """A LETOR file and the source of its scores. It cannot be streamed."""

    format: Format = LETOR
    scores: str
    score_column: str | None

    is_small = True
    can_be_streamed = False

    def read(self, progress: Progress = None) -> Rankings:
        """Rankings of the file. Raises as `read_ltr` does."""
        how: Any = {name: getattr(self.columns, name) for name in ("nan", "ascending", "unjudged")}
        how |= {"score_column": self.score_column, "threads": self.threads, "progress": progress}
        return read_ltr(self.paths[0], scores=self.scores, **how)


def _query_file_beside(name: str, lines: Lines, without: int) -> str:
    """Return the `.query` file beside a file without qid; `without` is the code of lines that have none."""
    if len(lines.queries) > 1:
        row = int(np.argmax(lines.query_codes == without))
        raise SourceError(
            f"{name}, line {lines.line_of(row)}: no qid: where other lines have one; "
            f"expected {LETOR_LINE.expected}"
        )
    beside = f"{name}.query"
    if not Path(beside).exists():
        raise SourceError(
            f"{name} has no qid: on its lines, and there is no {beside}; "
            "pass query_file= with the number of rows of each query"
        )
    return beside


def _scores_of(scores: Any, column: str | None) -> tuple[Array, str]:
    """Return the scores, and the name of their source for messages."""
    if not isinstance(scores, str | os.PathLike):
        return as_array("scores", scores), "scores"
    path = read_once(os.fspath(scores))
    with unpacked(path) as stream:
        magic = stream.read(6)
        content = magic + stream.read() if magic == b"\x93NUMPY" else b""
    if magic[:4] == b"PAR1":
        return _parquet_scores(path, column), path
    if content:
        return _npy(path, content), path
    return _one_number_a_line(path, pa.float64(), "one score"), path


def _npy(path: str, content: bytes) -> Array:
    try:
        array: Array = np.lib.format.read_array(BytesIO(content), allow_pickle=False)
    except Exception as error:  # noqa: BLE001 - Python's parser raises many for a damaged header
        raise SourceError(
            f"{path} cannot be read as a .npy file: {first_line(error)}. Was it written to its end?"
        ) from None
    if array.ndim != 1 or array.dtype.kind not in "buif":
        raise SourceError(f"{path} has {array.dtype} of shape {array.shape}; expected a number for each row")
    return array


def _parquet_scores(path: str, column: str | None) -> Array:
    def find(names: list[str]) -> dict[str, str]:
        is_only = len(names) == 1 and column is None
        return {"score": names[0] if is_only else find_column(names, "score", column)}

    with naming([path]):
        values = read_columns(path, find, ["score"])["score"]
        if values.null_count:
            return with_nulls_as_nan("the scores", values, lambda present: as_array("scores", present))
        return as_array("scores", values)


def _one_number_a_line(path: str, kind: pa.DataType, wanted: str) -> Array:
    import pyarrow.csv as pa_csv

    try:
        with unpacked(path) as stream:
            table = pa_csv.read_csv(
                stream,
                read_options=pa_csv.ReadOptions(column_names=["number"], use_threads=False),
                parse_options=pa_csv.ParseOptions(delimiter="\t", quote_char=False),
                convert_options=pa_csv.ConvertOptions(column_types={"number": kind}, null_values=[]),
            )
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            raise SourceError(f"{path} is empty; expected {wanted} on each line") from None
        match = re.search(r"Row #(\d+): .*?invalid value '(.*)'", str(error), re.DOTALL)
        reason = f'line {match[1]} has "{match[2]}"' if match else str(error)
        raise SourceError(f"{path}: {reason}; expected {wanted} on each line") from None
    return as_array("number", table["number"])
