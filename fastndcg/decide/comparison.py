"""`Comparison`: the numbers of each measure and pair of systems, and questions about them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import array_of
from fastndcg.common.exports import without_nan
from fastndcg.common.table import Table
from fastndcg.decide.contrasts import COLUMNS, KEYS
from fastndcg.decide.matching import MatchedSamples
from fastndcg.decide.standings import ComparisonStandings
from fastndcg.decide.texts import relative
from fastndcg.errors import ColumnError, InputError, check_system
from fastndcg.measures import find_measure
from fastndcg.scores.slices import check_kept, column_names, groups_of
from fastndcg.statistics import exact_sums
from fastndcg.statistics.intervals import check_share

if TYPE_CHECKING:
    from fastndcg.plot import ComparisonPlots


class Comparison(ComparisonStandings):
    """The result of `compare`: a row of numbers for each measure and pair of systems. It prints as a table.

    Attributes
    ----------
    measures : tuple of Measure
    systems : tuple of str
    rows : list of dict
        The rows of `to_arrow`.
    means : dict
        Maps the name of a measure to the mean of each system.
    missing : dict of str to pyarrow array
        Maps a system that lacked queries to their ids.
    cautions : list of str
        Reasons not to rely on some of the numbers.
    anchors : dict of str to Anchors
        Maps each system to its anchors; empty unless `anchors=True`.
    """

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of `to_arrow`; intervals of effects are computed when they are first asked for."""
        rows = []
        for row, found in zip(self._numbers, self._differences.values(), strict=True):
            low, high = found.effect_interval(self.confidence)
            numbers = row | {"effect_low": low, "effect_high": high, "relative": relative(row)}
            rows.append({name: numbers[name] for name in COLUMNS})
        return rows

    @property
    def confidence(self) -> float:
        """The confidence of all intervals."""
        return self._options.confidence

    @property
    def plot(self) -> ComparisonPlots:
        """Pictures: `comparison.plot.differences("nDCG@10")`. It needs the extra `plot`."""
        from fastndcg.plot import ComparisonPlots

        return ComparisonPlots(self)

    def pair(self, system: str | None = None, baseline: str | None = None) -> tuple[str, str]:
        """Find the compared pair of systems, of which one or both names may be left out."""
        for name in (system, baseline):
            if name is not None:
                check_system(name, self.systems)
        fitting = [pair for pair in self._pairs if system in (None, pair[0]) and baseline in (None, pair[1])]
        if not fitting and None not in (system, baseline):
            fitting = [(str(system), str(baseline))] if system != baseline else []
        if system is None and len(fitting) > 1:
            raise InputError(f"there are {len(fitting)} pairs; name one, as in system={fitting[-1][0]!r}")
        if not fitting:
            alone = f"{system or baseline} was compared with no other system in this direction"
            raise InputError(f"{alone}; name both system and baseline")
        return fitting[0]

    def movers(
        self, measure: object, system: str | None = None, n: int = 20, *, baseline: str | None = None
    ) -> Table:
        """The queries that differ most between two systems, the largest absolute difference first.

        Parameters
        ----------
        measure : Measure, notation, or ir_measures object
        system, baseline : str, optional
            Default: the only pair. If a system was compared with several baselines, the first of them.
        n : int
            Number of rows, at most; queries that do not differ are left out.

        Returns
        -------
        Table
            As that of `differences`.

        Raises
        ------
        MeasureError, InputError
            A measure or systems that were not compared; independent samples.

        Examples
        --------
        >>> from fastndcg import Rankings, compare
        >>> systems = {"a": Rankings.from_lists([[0, 1], [1, 0]]), "b": Rankings.from_lists([[1, 0], [1, 0]])}
        >>> compare(systems, measures="RR").movers("RR").column("difference").to_pylist()
        [0.5]
        """
        table = self.differences(measure, system, baseline=baseline)
        far = np.nan_to_num(np.abs(array_of(table["difference"])), posinf=np.inf)
        chosen = np.argsort(-far, kind="stable")[: max(n, 0)]
        return Table(table.take(pa.array(chosen[far[chosen] > 0])))

    def differences(
        self, measure: object, system: str | None = None, *, baseline: str | None = None
    ) -> Table:
        """All queries with their values of two systems, in the order of the first system's queries.

        Parameters and errors are those of `movers`.

        Returns
        -------
        Table
            The columns of queries; `baseline` and `system`, the values of the two; and `difference`. NaN if a
            value is missing.

        Examples
        --------
        >>> from fastndcg import Rankings, compare
        >>> systems = {"a": Rankings.from_lists([[0, 1], [1, 0]]), "b": Rankings.from_lists([[1, 0], [1, 0]])}
        >>> compare(systems, measures="RR").differences("RR").column("difference").to_pylist()
        [0.5, 0.0]
        """
        place = self.measures.index(find_measure(measure, self.measures, "was not compared"))
        if not self._options.paired:
            said = "independent samples share no query, so there are no differences; compare with paired=True"
            raise InputError(said)
        own, theirs = (self._samples[one] for one in self.pair(system, baseline))
        values = theirs.values[place], own.values[place]
        table = own.queries
        for name, column in zip(("baseline", "system"), values, strict=True):
            table = table.append_column(name, pa.array(column))
        difference = exact_sums.differences_of(*values[::-1])
        return Table(table.append_column("difference", pa.array(difference)))

    def slices(self, columns: str | Sequence[str]) -> dict[tuple[Any, ...], Comparison]:
        """Repeat the comparison for each group of queries.

        Parameters
        ----------
        columns : str or sequence of str
            Kept columns. Several columns give a group for each combination of values that occurs.

        Returns
        -------
        dict of tuple to Comparison
            A tuple holds the values of the columns; groups are in the order of `Scores.by`.

        Raises
        ------
        ColumnError, InputError
            A column was not kept; samples are independent, and one has no query of a group.

        Examples
        --------
        >>> from fastndcg import Rankings, compare
        >>> bm25 = Rankings.from_lists([[0, 1], [1, 0], [0, 2]], queries={"country": ["de", "fr", "de"]})
        >>> rerank = Rankings.from_lists([[1, 0], [1, 0], [2, 0]], queries={"country": ["de", "fr", "de"]})
        >>> compared = compare({"bm25": bm25, "rerank": rerank}, measures="RR")
        >>> {group: of_group.rows[0]["difference"] for group, of_group in compared.slices("country").items()}
        {('de',): 0.5, ('fr',): 0.0}
        """
        names = column_names(columns)
        if not names:
            raise ColumnError('no column is named to group by; name one, as in slices("country")')
        for sample in self._samples.values():
            check_kept(names, sample.queries.column_names)
        kept = [sample.queries.select(names) for sample in self._samples.values()]
        every = pa.concat_tables(kept, promote_options="permissive")
        values, groups = groups_of([every[name] for name in names])
        starts = np.cumsum([0, *map(len, kept)])
        found = {}
        for key, rows in zip(zip(*(each.to_pylist() for each in values), strict=True), groups, strict=True):
            parts, samples = np.split(rows, np.searchsorted(rows, starts[1:-1])), {}
            for system, part, start in zip(self._samples, parts, starts, strict=False):
                if not len(part):
                    group = ", ".join(map("{}={!r}".format, names, key))
                    raise InputError(
                        f'"{system}" has no query where {group}; leave such queries out of all systems'
                    )
                samples[system] = self._samples[system].of(part - start)
            found[key] = Comparison(self.measures, MatchedSamples(samples, {}), self._options)
        return found

    def queries_needed(self, difference: float, power: float = 0.8) -> Table:
        """How many queries a paired t-test needs to detect a difference, by the noncentral t.

        Parameters
        ----------
        difference : float
            The difference of the means, in units of the measure; not 0.
        power : float
            The probability to detect this difference, between 0 and 1.

        Returns
        -------
        Table
            measure, system, baseline, queries; null where the differences of all queries are equal.

        Raises
        ------
        InputError
            A difference of 0, or one for which 10^18 queries are too few; another power; independent samples.

        Examples
        --------
        >>> from fastndcg import Rankings, compare
        >>> a, b = [[0, 1], [1, 0], [0, 2]], [[1, 0], [1, 0], [2, 0]]
        >>> systems = {"a": Rankings.from_lists(a), "b": Rankings.from_lists(b)}
        >>> compare(systems, measures="RR").queries_needed(0.1).column("queries").to_pylist()
        [68]
        """
        is_number = isinstance(difference, Real) and not isinstance(difference, bool)
        if not (is_number and math.isfinite(difference) and difference):
            said = "is not a difference to detect; wanted a finite number other than 0"
            raise InputError(f"difference={difference!r} {said}")
        power = check_share("power", power, 0.8)
        if not self._options.paired:
            raise InputError("the number of queries is computed for a paired test; compare with paired=True")
        kinds, rows = dict.fromkeys(KEYS, pa.string()) | {"queries": pa.int64()}, []
        for key, found in self._differences.items():
            needed = found.queries_needed(difference, self._options.confidence, power)
            rows.append(dict(zip(kinds, (*key, needed), strict=True)))
        return Table(pa.Table.from_pylist(rows, pa.schema(kinds)), keys=len(KEYS))

    def to_arrow(self) -> pa.Table:
        """A row for each measure and pair, with these columns:

        - measure, system, baseline, mean, baseline_mean;
        - difference of the means, and its confidence interval from low to high; p and p_adjusted;
        - effect: the difference in standard deviations, with Hedges' correction; its interval from effect_low
          to effect_high;
        - wins, ties and losses of the system; nonzero: the number of differences that are not 0. Null for
          independent samples;
        - queries; detectable: the difference that such an experiment detects with a power of 0.8;
        - relative: difference / baseline_mean; null where the mean of the baseline is 0.
        """
        return pa.Table.from_pylist(self.rows, pa.schema(COLUMNS))

    def to_json(self) -> str:
        """Return rows, options, cautions and missing queries as JSON. NaN becomes null."""
        missing = {name: ids.to_pylist() for name, ids in self.missing.items()}
        whole = {**self._options._asdict(), "rows": self.rows, "cautions": self.cautions, "missing": missing}
        if self.anchors:
            whole["anchors"] = self._rows_of_anchors()
        return json.dumps(without_nan(whole), default=str, indent=2)
