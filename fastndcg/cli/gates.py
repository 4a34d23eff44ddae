"""Gates: means that are too low, and systems that are worse than another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastndcg.cli.output import GATE, end, refuse
from fastndcg.errors import InputError, SourceError

if TYPE_CHECKING:
    from fastndcg.decide.comparison import Comparison
    from fastndcg.measures import Measure

_MOST = 100  # failures that stderr lists


class Gate(NamedTuple):
    """No system may lose more than the margin to the baseline."""

    baseline: str
    margin: float
    ids: list[str]  # of queries that may not lose more themselves
    source: Path | None  # where they were read

    def failures(
        self, compared: Comparison, slices: dict[tuple[Any, ...], Comparison], by: list[str]
    ) -> list[str]:
        """What failed and by how much, a text each."""
        failed = list(self._of_means(compared, ""))
        for key, of_slice in slices.items():
            where = ", ".join(f"{name}={value}" for name, value in zip(by, key, strict=True))
            failed += self._of_means(of_slice, f" where {where}")
        if self.ids:
            failed += self._of_queries(compared)
        return failed

    def _of_means(self, compared: Comparison, where: str) -> Iterator[str]:
        for row in compared.rows:
            name, low = f"{row['measure']} of {row['system']}{where}", row["low"]
            if not (math.isfinite(low) and math.isfinite(row["high"])):
                queries = _queries_in_words(row["queries"])
                yield f"{name} has no finite interval: {queries}, mean difference {row['difference']:.6g}"
            elif low < -self.margin:
                yield (
                    f"{name} may lose {-low:.6g} to {self.baseline}, {-low - self.margin:.6g} more than "
                    f"the margin {self.margin:g} (difference {row['difference']:.6g}, "
                    f"interval {low:.6g} to {row['high']:.6g}, {_queries_in_words(row['queries'])})"
                )

    def _of_queries(self, compared: Comparison) -> Iterator[str]:
        places: dict[str, int] = {}
        for measure in compared.measures:
            for system in compared.systems:
                if system == self.baseline:
                    continue
                table = compared.differences(measure, system, baseline=self.baseline)
                if not places:
                    places = {str(one): row for row, one in enumerate(table[0].to_pylist())}
                    self._check_ids(places)
                values = {
                    name: table[name].to_numpy()[[places[one] for one in self.ids]]
                    for name in ("baseline", "system", "difference")
                }
                for one, before, after, difference in zip(self.ids, *values.values(), strict=True):
                    if not difference >= -self.margin:
                        name = f"{measure} of {system} for query {one}"
                        yield (
                            f"{name} has no value"
                            if math.isnan(difference)
                            else (
                                f"{name} loses {-difference:.6g} to {self.baseline}, "
                                f"{-difference - self.margin:.6g} more than the margin {self.margin:g} "
                                f"({after:.6g}, {self.baseline} {before:.6g})"
                            )
                        )

    def _check_ids(self, known: dict[str, int]) -> None:
        unknown = [one for one in self.ids if one not in known]
        if unknown:
            first = ", ".join(map(repr, unknown[:3])) + (", ..." if len(unknown) > 3 else "")
            raise InputError(
                f"--queries: {len(unknown):,} of {len(self.ids):,} ids in {self.source} are of no query "
                f"that was compared: {first}. Correct the file, or take the ids out."
            )


def means_below(
    bounds: Iterable[tuple[Measure, float]], means: Mapping[str, float], name: str | None = None
) -> list[str]:
    """What `--fail-under` says of the means of one system."""
    of_system = "" if name is None else f"{name}: "
    failed = []
    for measure, bound in bounds:
        mean = means[str(measure)]
        if math.isnan(mean):
            why = f"is NaN: a query has no value, or none counts; wanted at least {bound}"
        elif mean < bound:
            why = f"is {mean}, below {bound}"
        else:
            continue
        failed.append(f"--fail-under: {of_system}the mean of {measure} {why}")
    return failed


def hold(failed: Sequence[str]) -> None:
    """End the command with a line for each gate that failed, if any did."""
    if failed:
        more = len(failed) - _MOST
        end(GATE, *failed[:_MOST], *([f"and {more:,} more gates do not hold"] if more > 0 else []))


def _queries_in_words(queries: int) -> str:
    return f"{queries:,} quer{'y' if queries == 1 else 'ies'}"


def read_gate(
    no_worse_than: str | None,
    margin: float | None,
    baseline: str | None,
    queries: Path | None,
    *,
    unpaired: bool,
) -> Gate | None:
    if no_worse_than is None:
        for option, value in (("--margin", margin), ("--queries", queries)):
            if value is not None:
                refuse(
                    f"{option} has no meaning without --no-worse-than, which names the system to hold against"
                )
        return None
    if baseline not in (None, no_worse_than):
        refuse(f"--baseline {baseline} and --no-worse-than {no_worse_than} differ; name one system")
    if margin is not None and not 0 <= margin < math.inf:
        refuse(f"--margin: {margin:g} is not a loss to accept; wanted 0 or more, as in --margin 0.002")
    if queries is not None and unpaired:
        refuse("--queries and --unpaired do not go together: independent samples share no query")
    return Gate(no_worse_than, margin or 0.0, [] if queries is None else _read_ids(queries), queries)


def _read_ids(path: Path) -> list[str]:
    """Ids of queries, one a line; empty lines are none."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SourceError(f"--queries: {path} cannot be read: {error.strerror}. Check the path.") from None
    except UnicodeDecodeError:
        raise SourceError(f"--queries: {path} is not UTF-8 text; give a file with an id a line") from None
    ids = list(dict.fromkeys(line for line in text.split("\n") if line.strip()))
    if not ids:
        raise InputError(f"--queries: {path} holds no ids; give one a line")
    return ids
