"""`Measure`: a definition with parameters and a cutoff; and the measures with default values, by name."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from keyword import iskeyword
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Never, NoReturn, Unpack

from fastndcg.common.lazy import pa
from fastndcg.errors import InputTypeError, MeasureError, suggest
from fastndcg.measures import aliases
from fastndcg.measures.definitions import DEFINITIONS, Definition
from fastndcg.measures.parameters import (
    MOST_CUTOFF,
    RECALL,
    Function,
    as_str,
    read_spellings,
    show_number,
    show_value,
    spelling_of,
)
from fastndcg.typing import IrMeasure, Parameters

if TYPE_CHECKING:
    from fastndcg.common.table import Table
    from fastndcg.measures.tools import Rule

_NO_FUNCTION = (
    "{0} is a measure, which is no function of data; fastndcg.evaluate(rankings, measure) computes it. For "
    "scikit-learn and boosters take what fastndcg.adapters.sklearn.scorer, or metric of "
    "fastndcg.adapters.lightgbm, xgboost and catboost, makes of it"
)


class Measure:
    """A measure with the values of its parameters and its cutoff. It is immutable and hashable.

    >>> from fastndcg import nDCG, parse
    >>> nDCG(gain="exp2") @ 10
    nDCG(gain='exp2')@10
    >>> parse("nDCG(gain='exp2')@10") == nDCG(gain="exp2") @ 10
    True
    >>> (nDCG @ 10).gain
    'linear'

    Raises `MeasureError` for an unknown parameter or value, and for a cutoff that is not a whole number of at
    least 1.
    """

    __slots__ = ("_label", "_like", "_values", "cutoff", "cutoff_column", "definition", "params")

    definition: Definition
    """Its declaration, with the fields that values of its parameters change."""
    cutoff: int | None
    cutoff_column: str | None
    """The column that holds the cutoff of each query; `cutoff` is then None."""
    params: Mapping[str, Any]
    """The values of all parameters, including defaults, in the order of the declaration."""

    def __init__(
        self,
        definition: Definition,
        values: tuple[Any, ...],
        cutoff: int | str | None = None,
        label: str | None = None,
    ) -> None:
        definition, changes = DEFINITIONS[definition.name], dict[str, Any]()
        for parameter, value in zip(definition.parameters, values, strict=True):
            if value != parameter.default:
                changes |= parameter.changes.get(value, parameter.otherwise)
        names = (parameter.name for parameter in definition.parameters)
        for name, field in {
            "definition": definition._replace(**changes) if changes else definition,
            "params": MappingProxyType(dict(zip(names, values, strict=True))),
            "cutoff": None if isinstance(cutoff, str) else cutoff,
            "cutoff_column": cutoff if isinstance(cutoff, str) else None,
            "_label": label,
            "_like": None,
            "_values": values,
        }.items():
            object.__setattr__(self, name, field)

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def label(self) -> str:
        """Name of its column in tables of results: the caller's spelling, or the notation.

        >>> from fastndcg import R, parse
        >>> measure = parse("Recall@10")
        >>> measure, measure.label, measure == R @ 10
        (R@10, 'Recall@10', True)
        """
        return self._label or str(self)

    @property
    def is_cut(self) -> bool:
        """Whether it has a cutoff, a column of cutoffs, or, for IPrec, a recall level."""
        return self._written is not None

    @property
    def _at(self) -> int | str | None:
        return self.cutoff if self.cutoff_column is None else self.cutoff_column

    @property
    def _written(self) -> float | str | None:
        """Part of the notation after @, if any."""
        return self.params["recall"] if self.definition.cut == "recall" else self._at

    def __call__(self, *data: Never, **parameters: Unpack[Parameters]) -> Measure:
        """Return this measure with other parameters. `like="lightgbm"` sets all parameters of a convention.

        `cutoff=10` means @ 10, and `cutoff="slots"` means @ "slots".
        """
        if data:
            raise InputTypeError(_NO_FUNCTION.format(self))
        if "cutoff" in parameters:
            cutoff = parameters.pop("cutoff")
            return self(**parameters) @ cutoff
        if "like" in parameters:
            from fastndcg.measures.tools import rule_of

            plain, rule = _MEASURES[self.name], rule_of(parameters.pop("like"))
            if self._at is not None:
                return resolve(plain @ self._at, rule, "like")(**parameters)
            like = resolve(plain, rule, "like")(**parameters)
            object.__setattr__(like, "_like", (rule, parameters))
            return like
        values = dict(self.params)
        for name, value in read_spellings({**parameters}).items():
            if name not in values:
                known = ", ".join(values) or "none"
                if name.lower() in ("k", "at", "top", "topk", "top_k") and self.definition.cut == "rank":
                    raise MeasureError(f"{self.name} has no parameter {name!r}: write {self.name}@{value}")
                if name in ("ips", "clip") and self.name == "nDCG":
                    raise MeasureError(
                        "nDCG has no ips: the ideal order, which it divides by, is not known of documents "
                        "that were never seen. Take DCG(ips=True), or DCG(ips='snips'), "
                        "which divides by the gains that were seen."
                    )
                raise MeasureError(
                    f"{self.name} has no parameter {name!r}; it has: {known}.{suggest(name, values)}"
                )
            parameter = next(parameter for parameter in self.definition.parameters if parameter.name == name)
            values[name] = parameter.read(value)
        if values.get("gain") == "binary" and values["rel"] == 1:
            values["rel"] = None  # "binary" means a threshold of 1 unless one is named
        changed = Measure(self.definition, tuple(values.values()), self._at)
        if self._like is not None:
            object.__setattr__(changed, "_like", (self._like[0], {**self._like[1], **parameters}))
        return changed

    def __matmul__(self, cutoff: Any) -> Measure:
        """Return this measure over the first `cutoff` ranks; for IPrec, at this recall.

        A string names a column of whole numbers with a cutoff for each query.

        >>> from fastndcg import nDCG
        >>> (nDCG @ "slots").cutoff_column
        'slots'
        """
        if self.definition.cut == "recall":
            return self(recall=cutoff)
        if self._like is not None:  # a tool may have other parameters with a cutoff
            rule, parameters = self._like
            return resolve(_MEASURES[self.name] @ cutoff, rule, "like")(**parameters)
        if self.definition.cut in ("none", "relevant"):
            raise MeasureError(
                f"{self.name} has no cutoff: it looks at all documents; expected {self}, got {self}@{cutoff}"
            )
        if isinstance(cutoff, str) and cutoff.isidentifier() and not iskeyword(cutoff) and cutoff != "all":
            return Measure(self.definition, self._values, as_str(cutoff))
        try:
            number = 0 if isinstance(cutoff, bool) else operator.index(cutoff)
        except TypeError:
            number = 0
        if not 1 <= number <= MOST_CUTOFF:
            shown = repr(cutoff) if number <= MOST_CUTOFF else "beyond 10^100"
            raise MeasureError(
                f"cutoff {shown} of {self.name} is not known; expected a whole number of at least 1, as in "
                f"{self.name}@10, or the name of a column of cutoffs"
            )
        return Measure(self.definition, self._values, number)

    def __getattr__(self, name: str) -> Any:
        if name not in self.__slots__ and name in self.params:
            return self.params[name]
        if name == "__name__":  # scikit-learn and boosters read it, as of a function
            raise AttributeError(_NO_FUNCTION.format(self))
        raise AttributeError(f"{type(self).__name__} {self.definition.name} has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a measure is immutable; make another one, as in {self.name}({name}=...)")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Measure):
            return NotImplemented
        return (self.name, self._at, self._values) == (other.name, other._at, other._values)

    def __hash__(self) -> int:
        return hash((self.name, self._values, self._at))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.name, self._values, self._at, self._label)

    def __str__(self) -> str:
        shown = ", ".join(
            f"{spelling_of(parameter.name, value)}={show_value(value)}"
            for parameter, value in zip(self.definition.parameters, self._values, strict=True)
            if (value != parameter.default or type(value) is not type(parameter.default))
            and parameter is not RECALL
        )
        at = self._written
        written = at if at is None or isinstance(at, str) else show_number(at)
        return self.name + (f"({shown})" if shown else "") + ("" if written is None else f"@{written}")

    __repr__ = __str__


MeasureLike = Measure | str | IrMeasure
"""A measure as an argument: a `Measure`, a notation such as `"nDCG@10"`, or an object of ir_measures."""
Measures = MeasureLike | Iterable[MeasureLike]


def _restore(name: str, *values: Any) -> Measure:
    return Measure(DEFINITIONS[name], *values)


def with_label(measure: Measure, label: str | None) -> Measure:
    return Measure(measure.definition, measure._values, measure._at, label) if label else measure


_MEASURES = {
    name: Measure(definition, tuple(parameter.default for parameter in definition.parameters))
    for name, definition in DEFINITIONS.items()
}


def measure_named(name: str) -> Measure:
    if name not in _MEASURES:
        raise MeasureError(f'no measure is called "{name}". {aliases.answer(name)}')
    return _MEASURES[name]


def resolve(measure: Measure, rule: Rule, keyword: str = "convention") -> Measure:
    """Return the measure with a tool's value for each parameter at its default.

    >>> from fastndcg import conventions, nDCG
    >>> resolve(nDCG(empty="skip") @ 5, conventions["lightgbm"])
    nDCG(gain='exp2', ties='input', ideal='scored', empty='skip')@5
    """
    # a cutoff may follow like=
    cut = (
        None
        if keyword == "like" and not measure.is_cut and not rule.find(measure.name, cut=False)
        else measure.is_cut
    )
    rule, plain = rule.on(measure.name, keyword, cut=cut), _MEASURES[measure.name]
    at = rule.default_cutoff if measure._at is None and measure.definition.cut == "rank" else measure._at
    resolved = plain(**rule.parameters)
    changed = {name: value for name, value in measure.params.items() if value != plain.params[name]}
    return (resolved if at is None else resolved @ at)(**changed)


class _Documentation:
    """Docstring of `Measure`. For a measure it is the declaration as text, which `help(nDCG)` shows."""

    def __init__(self, of_class: str | None) -> None:
        self._of_class = of_class

    def __get__(self, measure: Measure | None, owner: type) -> str | None:
        if measure is None:
            return self._of_class
        definition, lines = measure.definition, [f"{measure}: {measure.definition.summary}.", ""]
        lines += [f"    {measure.name} = {definition.formula}", f"    range: {definition.range}"]
        lines += [f"    source: {definition.source}"]
        for parameter in definition.parameters:
            shown = f"{parameter.name} = {show_value(measure.params[parameter.name])}"
            lines += ["", f"    {shown}", f"        {parameter.meaning}"]
            lines += [f"        {value}: {meaning}" for value, meaning in parameter.values]
        return "\n".join(lines)


Measure.__doc__ = _Documentation(Measure.__doc__)  # type: ignore[assignment]


def table() -> Table:
    """Return a row for each measure: name, notation, summary, formula, parameters, range, source.

    >>> [row["notation"] for row in table().to_pylist() if row["name"] == "AP"]
    ["AP(rel=1, ties='average', empty=0, judged_only=False, unjudged=None, denominator='n_relevant', ...)@k"]
    """
    from fastndcg.common.table import Table

    rows = []
    for definition in DEFINITIONS.values():
        parameters = definition.parameters
        defaults = ", ".join(f"{each.name}={show_value(each.default)}" for each in parameters)
        at = {"rank": "@k", "recall": "@recall"}.get(definition.cut, "")
        row = {"name": definition.name, "notation": f"{definition.name}({defaults}){at}"}
        row |= {"summary": definition.summary, "formula": definition.formula}
        row["parameters"] = "; ".join(f"{each.name}: {each.meaning}" for each in parameters)
        rows.append(row | {"range": definition.range, "source": definition.source})
    return Table(pa.Table.from_pylist(rows))


@contextmanager
def hold_functions(measures: Iterable[Measure]) -> Iterator[None]:
    """Within this context, call the functions of these measures only once for each grade and rank."""
    values = [value for measure in measures for value in measure.params.values()]
    functions = [value for value in values if isinstance(value, Function)]
    for function in functions:
        function.hold(1)
    try:
        yield
    finally:
        for function in functions:
            function.hold(-1)
