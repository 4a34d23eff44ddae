"""`conventions`: each tool of `tools` with its measures, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fastndcg.common.markup import html_table
from fastndcg.measures.measure import Measure, measure_named, resolve
from fastndcg.measures.tools import DECLARED, Rule, rule_of


class Convention(Rule):
    """How one tool computes its measures: immutable, hashable, comparable field by field.

    The fields describe nDCG; `on` returns a convention for another measure.

    >>> conventions["lightgbm"].measure(10)
    nDCG(gain='exp2', ties='input', ideal='scored', empty=1)@10
    >>> conventions["lightgbm"].replace(gain="linear").measure(10)
    nDCG(ties='input', ideal='scored', empty=1)@10
    >>> conventions["lightgbm"].on("AP").measure(10)
    AP(rel=0.5000000000000001, ties='input', empty=1, denominator='cutoff')@10
    """

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The tool's measures, with the tool's parameters and default cutoffs."""
        return tuple(self.on(name).measure() for name in self.names_of_measures)

    def measure(self, cutoff: int | str | None = None) -> Measure:
        """Return the measure with this convention's parameters, such as gain, discount and ties.

        The measure is nDCG, or the tool's first measure.
        """
        plain = measure_named(self.names_of_measures[0])
        return resolve(plain if cutoff is None else plain @ cutoff, self)


class Conventions(Mapping[str, Convention]):
    """All conventions by name; immutable.

    >>> conventions["catboost"].ties
    'worst'
    """

    def __init__(self) -> None:
        self._known = {rule.name: Convention(**vars(rule)) for rule in DECLARED}

    def __getitem__(self, name: str) -> Convention:
        return self._known[rule_of(str(name)).name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return "\n".join(f"{name:22} {convention.measure()}" for name, convention in self.items())

    def _repr_html_(self) -> str:
        return html_table(
            [["convention", "measure"], *([name, str(rule.measure())] for name, rule in self.items())], 2
        )


conventions = Conventions()


def as_convention(convention: object) -> Convention:
    """Return the convention with this name, or the `Convention` itself."""
    rule = rule_of(convention)
    return rule if isinstance(rule, Convention) else conventions[rule.name]
