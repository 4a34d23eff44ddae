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

from fastndcg.common.arrays import offsets_from
from fastndcg.trec_eval.asked import Asked, read_names
from fastndcg.trec_eval.binary import LEAST
from fastndcg.trec_eval.ranked import Bools, Ranked, Release, rows_of
from fastndcg.trec_eval.runs import Run, read

if TYPE_CHECKING:
    from fastndcg.sources.sides import Side
    from fastndcg.trec_eval.declared import Declared
    from fastndcg.typing import Path as PathLike

_BLOCK = 1000  # queries that are printed at a time


class _Column(NamedTuple):
    """One printed value: its name, the value of each query, and the value over all queries."""

    declared: Declared
    name: str
    values: Any  # an array, strings, or None if queries have no value
    overall: str | None


def compute_values(each: Asked, ranked: Ranked, release: Release) -> list[Any]:
    """Return the values of all queries for each name of a measure: arrays, strings, or None."""
    arguments: list[Any] = [] if each.declared.takes == "nothing" else [each.parameters]
    if each.declared.differs:
        arguments.append(release)
    values = each.declared.compute(ranked, *arguments)
    return values if each.declared.takes in ("cutoffs", "shares") else [values]


def _columns(run: Run, wanted: list[Asked], n_judged: int, release: Release) -> list[_Column]:
    columns = []
    for each in wanted:
        declared = each.declared
        for name, values in zip(each.names, compute_values(each, run.ranked, release), strict=True):
            shown = _clear(name, values, run.is_returned)
            columns.append(_Column(declared, name, shown, _overall(declared, shown, run, n_judged)))
    return columns


def _clear(name: str, values: Any, is_returned: Bools) -> Any:
    """Clear values of queries that the run lacks, as release 10 does: by exact name, not with parameters."""
    if is_returned.all() or not (
        name in ("num_ret", "utility", "relstring", "rbp_resid") or name.startswith("unj")
    ):
        return values
    if isinstance(values, list):
        return [text if returned else "" for text, returned in zip(values, is_returned.tolist(), strict=True)]
    return np.where(is_returned, values, 0)


def _overall(declared: Declared, values: Any, run: Run, n_judged: int) -> str | None:
    if declared.name == "runid":
        return run.name
    if declared.name == "num_q":
        return str(n_judged)
    if declared.summed == "none":
        return None
    if declared.summed == "sum":
        return str(int(values.sum()))
    total = float(np.cumsum(values)[-1])
    if declared.summed == "geometric":
        total += (n_judged - len(values)) * math.log(LEAST)
        return _print_value(math.exp(total / n_judged))
    return _print_value(total / n_judged)


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

    Parameters
    ----------
    qrels, run : paths of TREC files
        Judgments may be those of `read_judgments`.
    measures : as after trec_eval's -m; default "official"
    per_query, summary : bool
        `per_query` is -q; `summary=False` is -n.
    complete, release, and others
        As in `read`.
    note : callable
        Called with notes about input that trec_eval ignores silently.

    Raises
    ------
    MeasureError
        As in `read_names`.
    SourceError, InputError
        As in `read`.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "qrels").write_text("301 0 A 1\n301 0 B 2\n302 0 A 1\n")
    >>> _ = (folder / "run").write_text("301 Q0 C 1 2.5 me\n301 Q0 B 2 1.5 me\n")
    >>> print("".join(report(folder / "qrels", folder / "run", ["map", "ndcg_cut.5"])).expandtabs(), end="")
    map                     all     0.2500
    ndcg_cut_5              all     0.4796
    """
    wanted, notes = read_names(measures, release)
    scored = read(qrels, run, complete=complete, release=release, **options)
    for text in (*notes, *scored.notes):
        note(text)
    # release 9 does not show queries that the run lacks, but its means count them
    n_judged = len(scored.queries)
    if release == 9:
        scored = _run_of_returned(scored)
    columns = _columns(scored, wanted, n_judged, release)
    if per_query:
        shown = [column for column in columns if column.declared.is_shown_for_queries]
        for start in range(0, len(scored.queries), _BLOCK):
            yield _lines_of_queries(shown, scored.queries[start : start + _BLOCK], start)
    if summary:
        yield "".join(
            f"{column.name:<22}\tall\t{column.overall}\n" for column in columns if column.overall is not None
        )


def _run_of_returned(run: Run) -> Run:
    if run.is_returned.all():
        return run
    ranked, kept = run.ranked, np.flatnonzero(run.is_returned)
    rows, sizes = rows_of(ranked.offsets, kept, None)
    pool_rows, pool_sizes = rows_of(ranked.pool_offsets, kept, None)
    of_returned = Ranked(
        offsets_from(sizes),
        ranked.grades[rows],
        offsets_from(pool_sizes),
        ranked.pool[pool_rows],
        ranked.level,
        ranked.collection,
    )
    return run._replace(
        queries=[run.queries[at] for at in kept.tolist()],
        is_returned=run.is_returned[kept],
        ranked=of_returned,
    )


def _lines_of_queries(columns: list[_Column], queries: list[str], start: int) -> str:
    stop = start + len(queries)
    texts = []
    for column in columns:
        values = column.values[start:stop]
        if isinstance(values, list):
            shown = [f"'{text}'" for text in values]
        elif values.dtype.kind == "f":
            shown = [_print_value(value) for value in values.tolist()]
        else:
            shown = [str(value) for value in values.tolist()]
        texts.append(
            [f"{column.name:<22}\t{query}\t{text}\n" for query, text in zip(queries, shown, strict=True)]
        )
    return "".join(map("".join, zip(*texts, strict=True))) if texts else ""
