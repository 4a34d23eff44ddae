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

from fastndcg.trec_eval.inputs import Run, read
from fastndcg.trec_eval.measures import LEAST, gained
from fastndcg.trec_eval.notation import Request, read_names

if TYPE_CHECKING:
    from fastndcg.tables.joins import Side
    from fastndcg.trec_eval.measures import Definition
    from fastndcg.trec_eval.ranking import Ranked, Release
    from fastndcg.typing import Path as PathLike

_BLOCK = 1000  # queries that are printed at a time


class _Column(NamedTuple):
    """One printed value: its name, the value of each query, and the value over all queries."""

    definition: Definition
    name: str
    values: Any  # an array, strings, or None if queries have no value
    overall: str | None


def compute_values(each: Request, ranked: Ranked) -> list[Any]:
    """Return the values of all queries for each name of a measure: arrays, strings, or None."""
    compute, takes, parameters = each.definition.compute, each.definition.takes, each.parameters
    if takes == "cutoffs":
        return [compute(ranked, cutoff) for cutoff in parameters]
    if takes == "shares":
        return compute(ranked, parameters)  # type: ignore[no-any-return]
    if takes == "gains":
        return [compute(gained(ranked, parameters))]
    return [compute(ranked) if takes == "nothing" else compute(ranked, parameters)]


def _columns(run: Run, requests: list[Request]) -> list[_Column]:
    columns = []
    for each in requests:
        for name, values in zip(each.names, compute_values(each, run.ranked), strict=True):
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
