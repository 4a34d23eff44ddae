"""Print what trec_eval prints, byte for byte: its measures, in its order, with its means and its rounding.

The package's own measures agree with trec_eval to 1e-12. That is not enough here: the last bit of a sum
decides whether the mean 0.09375 is printed as 0.0937 or 0.0938. So sums are added in the order of trec_eval's
loops, document by document and query by query, as `np.bincount` and `np.cumsum` add.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrays import OR_FIRST, Flags, offsets_from, offsets_of
from fastndcg.common.arrow_types import array_of, column_of
from fastndcg.errors import InputError, SourceError
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources.csv import CSV
from fastndcg.sources.formats import LOOK, TREC, format_of
from fastndcg.sources.open_file import File, MemoryFile, path_of, read_once, report_progress
from fastndcg.sources.text_lines import QRELS, RUN
from fastndcg.sources.trec import text_side
from fastndcg.tables.joins import Side, join, name_of
from fastndcg.trec_eval.measures import LEAST, Request, read_names
from fastndcg.trec_eval.ranking import OUTSIDE, UNJUDGED, Ranked, Release, rows_of

if TYPE_CHECKING:
    from fastndcg.trec_eval.measures import Definition
    from fastndcg.typing import Path as PathLike

_BLOCK = 1000  # queries that are printed at a time


# ---- reading ----


class Run(NamedTuple):
    """Queries and their documents. Queries are ordered by the bytes of their ids, as in trec_eval."""

    name: str
    queries: list[str]
    is_returned: Flags
    ranked: Ranked
    notes: list[str]
    n_judged: int  # queries, with those that release 9 leaves out as the run lacks them


def read_judgments(qrels: PathLike, threads: int | None = None) -> Side:
    """Read judgments once for several runs. `read` and `report` accept the result in place of a path."""
    return text_side(_text_file(qrels, False), "relevance", threads, form=QRELS)


def read(
    qrels: PathLike | Side,
    run: PathLike,
    *,
    complete: bool = False,
    judged_only: bool = False,
    level: int = 1,
    most: int | None = None,
    collection: int = 0,
    release: Release = 10,
    threads: int | None = None,
) -> Run:
    """Read judgments and a run as trec_eval does.

    Paths are as `read_trec` reads them, "-" is standard input, and judgments may be those of
    `read_judgments`. `complete` is -c: judged queries that the run lacks count. `judged_only` is -J: unjudged
    documents are dropped. `level` is -l, the smallest grade that is relevant; `most` is -M, the
    documents of a query that are used; `collection` is -N, those of the collection, for `utility`. Release 9
    compares scores and levels as float32, 10 as float64. Raises `SourceError` and `InputError` as
    `read_trec`, also if no query is in both files.
    """
    notes: list[str] = []
    with report_progress(None, *([] if isinstance(qrels, Side) else [qrels]), run):
        judged = qrels if isinstance(qrels, Side) else read_judgments(qrels, threads)
        scored = text_side(_text_file(run, True), "score", threads, form=RUN)
    missing = np.isnan(scored.values)
    if missing.any():
        row = int(np.argmax(missing))
        raise InputError(
            f"{scored.place(row)}: the score of {name_of(scored, row)} is NaN; {missing.sum():,} in all. "
            "trec_eval does not define the order of such documents: drop those rows."
        )
    if judged.values.dtype.kind == "f":
        fractions = judged.values != np.trunc(judged.values)
        if fractions.any():
            notes.append(
                f"{judged.name}: grades have a fraction, {int(fractions.sum()):,} in all, "
                f"the first is {judged.values[fractions][0]}; the fraction is dropped, as in trec_eval"
            )
        judged = judged._replace(values=np.trunc(judged.values).astype(np.int64))
    if release == 9:
        with np.errstate(over="ignore"):
            scored = scored._replace(values=scored.values.astype(np.float32))
    try:
        fields = join(judged, scored, "zero" if complete else "skip", "docid_desc", "refuse")
    except InputError as error:
        raise InputError(str(error).replace(OR_FIRST, "")) from None  # trec_eval has no such choice
    rankings = Rankings._of(**fields)
    names = rankings.query_ids.cast(pa.large_binary())
    order = array_of(pc.sort_indices(names)).astype(np.int64)
    is_returned, n_judged = np.diff(rankings.offsets)[order] > 0, len(order)
    if release == 9:  # it does not show queries that the run lacks, but its means count them
        order, is_returned = order[is_returned], is_returned[is_returned]
    grades = rankings.relevance.astype(np.int64)
    if rankings.is_judged is not None:
        grades = np.where(rankings.is_judged, grades, np.where(grades < 0, UNJUDGED, OUTSIDE))
    rows, sizes = rows_of(rankings.offsets, order, most)
    grades = grades[rows]
    if release == 10 and (sizes == 0).any() and most != 0:
        # if the run lacks a query, release 10 adds a document that is not in the pool
        grades = np.insert(grades, offsets_from(sizes)[:-1][sizes == 0], OUTSIDE)
        sizes = np.maximum(sizes, 1)
    offsets = offsets_from(sizes)
    if judged_only:
        offsets, grades = offsets_of(grades >= 0, offsets), grades[grades >= 0]
    pool_offsets, pool = rankings.judged if rankings.judged is not None else (rankings.offsets, grades[:0])
    pool_rows, pool_sizes = rows_of(pool_offsets, order, None)
    pool = pool[pool_rows].astype(np.int64)
    ranked = Ranked(offsets, grades, offsets_from(pool_sizes), pool, level, collection, release)
    ids = names.take(column_of(order)).to_pylist()
    queries = [name.decode("utf-8", "backslashreplace") for name in ids]
    return Run(scored.tag, queries, is_returned, ranked, notes, n_judged)


def _stdin() -> str:
    """Standard input as a file that is read once; Windows has no /dev/stdin."""

    def read() -> bytes:
        with open(0, "rb", closefd=False) as stream:
            return stream.read()

    return MemoryFile("/dev/stdin", read)


def _text_file(path: PathLike, has_rank: bool) -> str:
    name = _stdin() if path == "-" else read_once(path_of(path, "run" if has_rank else "qrels"))
    kind = format_of(name, File.of(name).start(LOOK)[0], has_rank=has_rank)
    if kind not in (TREC, CSV):  # the reader of lines reports what is wrong with text
        raise SourceError(
            f"{name} is {kind.name}; expected a TREC file. fastndcg score --qrels --run reads {kind.name}."
        )
    return name


# ---- printing ----


class _Column(NamedTuple):
    """One printed value: its name, the value of each query, and the value over all queries."""

    definition: Definition
    name: str
    values: Any  # an array, strings, or None if queries have no value
    overall: str | None


def _columns(run: Run, requests: list[Request]) -> list[_Column]:
    columns = []
    for each in requests:
        for name, values in zip(each.names, each.values(run.ranked), strict=True):
            # release 10 clears values of queries that the run lacks by exact name, not with parameters
            is_cleared = name in ("num_ret", "utility", "relstring", "rbp_resid") or name.startswith("unj")
            if is_cleared and not run.is_returned.all():
                if isinstance(values, list):
                    kept = zip(values, run.is_returned.tolist(), strict=True)
                    values = [text if is_returned else "" for text, is_returned in kept]  # noqa: PLW2901
                else:
                    values = np.where(run.is_returned, values, 0)  # noqa: PLW2901
            columns.append(_Column(each.definition, name, values, _overall(each.definition, values, run)))
    return columns


def _overall(definition: Definition, values: Any, run: Run) -> str | None:
    if definition.name == "runid":
        return run.name
    if definition.name == "num_q":
        return str(run.n_judged)
    if definition.summed == "none":
        return None
    if definition.summed == "sum":
        return str(int(values.sum()))
    total = float(np.cumsum(values)[-1])
    if definition.summed == "geometric":
        total += (run.n_judged - len(values)) * math.log(LEAST)
        return _print_value(math.exp(total / run.n_judged))
    return _print_value(total / run.n_judged)


def _print_value(value: float) -> str:
    # NaN of 0/0, whose sign bit is set on x86
    return "  -nan" if math.isnan(value) else f"{value:6.4f}"


def report(
    qrels: PathLike | Side,
    run: PathLike,
    measures: Sequence[str] = (),
    *,
    per_query: bool = False,
    summary: bool = True,
    complete: bool = False,
    release: Release = 10,
    note: Callable[[str], object] = lambda _: None,
    **options: Any,
) -> Iterator[str]:
    r"""Yield the text that trec_eval prints for these files, in parts.

    `measures` are as after trec_eval's -m, `per_query` is -q, `summary=False` is -n; judgments, a run and all
    else are as in `read`. `note` is called with what trec_eval passes over in silence. Raises `MeasureError`
    as `read_names`, `SourceError` and `InputError` as `read`.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "qrels").write_text("301 0 A 1\n301 0 B 2\n302 0 A 1\n")
    >>> _ = (folder / "run").write_text("301 Q0 C 1 2.5 me\n301 Q0 B 2 1.5 me\n")
    >>> print("".join(report(folder / "qrels", folder / "run", ["map", "ndcg_cut.5"])).expandtabs(), end="")
    map                     all     0.2500
    ndcg_cut_5              all     0.4796
    """
    requests, notes = read_names(measures, release)
    scored = read(qrels, run, complete=complete, release=release, **options)
    for text in (*notes, *scored.notes):
        note(text)
    columns = _columns(scored, requests)
    if per_query:
        shown = [
            each for each in columns if each.values is not None and each.definition.summed != "geometric"
        ]
        for start in range(0, len(scored.queries), _BLOCK):
            yield _lines_of_queries(shown, scored.queries[start : start + _BLOCK], start)
    if summary:
        yield "".join(
            f"{column.name:<22}\tall\t{column.overall}\n" for column in columns if column.overall is not None
        )


def _lines_of_queries(columns: list[_Column], queries: list[str], start: int) -> str:
    texts = []
    for column in columns:
        values = column.values[start : start + len(queries)]
        if isinstance(values, list):
            shown = [f"'{text}'" for text in values]
        else:
            shown = list(map(_print_value if values.dtype.kind == "f" else str, values.tolist()))
        pairs = zip(queries, shown, strict=True)
        texts.append([f"{column.name:<22}\t{query}\t{text}\n" for query, text in pairs])
    return "".join(map("".join, zip(*texts, strict=True))) if texts else ""
