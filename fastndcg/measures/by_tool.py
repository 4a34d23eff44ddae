"""`conventions`: each tool of `tools` with its measure, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fastndcg.measures.measure import Measure, measure_named, resolve
from fastndcg.measures.tools import DECLARED, REFUSED, Rule, rule_named, rule_of


class Convention(Rule):
    """How one tool computes nDCG: immutable, hashable, comparable field by field.

    >>> conventions["lightgbm"].measure(10)
    nDCG(gain='exp2', ties='input', ideal='scored', empty=1)@10
    >>> conventions["lightgbm"].replace(gain="linear").measure(10)
    nDCG(ties='input', ideal='scored', empty=1)@10
    """

    def measure(self, cutoff: int | str | None = None) -> Measure:
        """Return nDCG with this convention's parameters, such as gain, discount and ties."""
        plain = measure_named("nDCG")
        return resolve(plain if cutoff is None else plain @ cutoff, self)


class Conventions(Mapping[str, Convention]):
    """All conventions by name; immutable. The error for a tool that cannot be reproduced gives the reason.

    >>> conventions["catboost"].ties
    'worst'
    """

    def __init__(self) -> None:
        self._known = {rule.name: Convention(**vars(rule)) for rule in DECLARED}

    @property
    def refused(self) -> dict[str, str]:
        """The reason for each tool that cannot be reproduced."""
        return dict(REFUSED)

    def __getitem__(self, name: str) -> Convention:
        return self._known[rule_named(name).name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return "\n".join(f"{name:22} {convention.measure()}" for name, convention in self.items())


conventions = Conventions()


def as_convention(convention: object) -> Convention:
    """Return the convention with this name, or the `Convention` itself."""
    rule = rule_of(convention)
    return rule if isinstance(rule, Convention) else conventions[rule.name]
