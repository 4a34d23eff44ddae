"""The schema of a tool's declaration: its measures with parameters, and rules for a whole evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from dataclasses import replace as replaced
from typing import TYPE_CHECKING, Any, NamedTuple

from fastndcg.errors import MeasureError, suggest
from fastndcg.measures.definitions import DEFINITIONS
from fastndcg.measures.parameters import DISCOUNT, EMPTY, GAIN, IDEAL, REL

if TYPE_CHECKING:
    from typing import Self

    from fastndcg.typing import Empty, Ideal, Parameters, Ties


class Rounding(NamedTuple):
    """Decimals of the reported values."""

    decimals: int
    when: str  # "printed": the mean is over unrounded values; "stored": over rounded ones


TIES = {
    "average": "expected value over all orders of tied documents",
    "input": "tied documents in input order",
    "worst": "lower gain first",
    "best": "higher gain first",
    "block": "tied documents together: each has the precision at the end of its group",
    "docid_desc": "by descending document id, compared as UTF-8 text",
    "docid_asc": "by ascending document id, compared as UTF-8 text",
    "item_desc": "by descending document id, numbers compared as numbers",
    "numba_argsort": (
        "the order of Numba's np.argsort(-scores): input order up to 15 documents; "
        "unstable but repeatable beyond that"
    ),
    "input_to_16": "input order up to 16 documents; beyond that torch.sort does not define the order",
    "unspecified": "undefined",
}
OF_MEASURE = ("average", "input", "worst", "best", "block")  # values of the parameter `ties`
BY_ROW = ("input", "numba_argsort", "input_to_16", "unspecified")  # the order of rows decides or may decide
BY_ID = ("docid_desc", "docid_asc", "item_desc")
QUERIES = {
    "value": "like any other query",
    "skip": "left out",
    "skip_irrelevant": "left out, like each query without a judged document of positive gain",
}
WEIGHTS = {
    "weighted": "weighted mean",
    "ignored": "plain mean; there are no weights",
    "lightgbm": (
        "weighted sum over the sum of weights, but an empty query adds its value with weight 1 "
        "to the first sum"
    ),
    "xgboost": "like lightgbm; a mean above 1 ends the program",
    "tf_ranking": "weighted mean; an empty query has the mean weight of the others",
    "or_zero": "plain mean, in which a query of weight 0 has the value 0",
    "n_relevant": "weighted by the number of relevant documents of a query, whatever its own weight",
    "min(n_relevant, k)": "weighted by that number, but at most k: all hits over all that were possible",
}
BY_COUNT = ("n_relevant", "min(n_relevant, k)")
POOLS = {
    "judged": "all judged documents count as relevant or not, returned or not",
    "scored": "documents that were not scored are unknown: recall and the like are of the scored list",
    "listed": "as judged; unjudged documents of the pool, whose grade is negative, count as judged",
}


GRADES = {
    "given": "the grades",
    "distinct": "of equal grades the one in the earlier row is the higher, so that each pair counts",
}


class ToolMeasure(NamedTuple):
    """A measure that a tool has. Made by `has`."""

    measure: str  # our name
    called: str  # the tool's own name
    changed: tuple[tuple[str, Any], ...]  # fields of `Rule` that differ for this measure
    more: tuple[tuple[str, Any], ...]  # other parameters of the measure
    cut: bool | None = None  # True: only with a cutoff; False: only without


def has(measure: str, called: str = "", *, cut: bool | None = None, **choices: Any) -> ToolMeasure:
    """Declare that a tool has this measure, with these parameters; other parameters have their defaults.

    `choices` may also name fields of `Rule`, such as ties and rounding, which then apply to this measure
    only. With `cut` the row applies only to the measure with, or without, a cutoff.
    """
    known = [parameter.name for parameter in DEFINITIONS[measure].parameters]
    for name in choices:
        if name not in known and name not in _CHANGEABLE:
            raise MeasureError(
                f"{measure} has no parameter {name!r}, and a convention no such field; "
                f"{measure} has: {', '.join(known) or 'none'}.{suggest(name, [*known, *_CHANGEABLE])}"
            )
    fields_of = (
        _CHANGEABLE - {"rounding"} if measure == "IPrec" else _CHANGEABLE
    )  # a parameter that only this measure has
    changed = {name: value for name, value in choices.items() if name in fields_of}
    more = {name: value for name, value in choices.items() if name not in changed}
    return ToolMeasure(measure, called, tuple(sorted(changed.items())), _canonical(measure, more), cut)


def have(rows: str, **choices: Any) -> tuple[ToolMeasure, ...]:
    """Declare several measures that share choices, as in `have("R Recall, RR MRR", empty="skip")`."""
    return tuple(has(*row.split(), **choices) for row in rows.split(", "))


def _canonical(measure: str | None, more: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return parameters in the order of their declaration, without those at their default."""
    known = DEFINITIONS[measure].parameters if measure else ()
    read = [(each, each.read(more[each.name])) for each in known if each.name in more]
    return tuple((each.name, value) for each, value in read if value != each.default)


@dataclass(frozen=True)
class Rule:
    """The rules of one tool, field by field. A `Convention` also has the measures.

    The fields from gain to rel are parameters of the measure `of`. `others` are the tool's other measures,
    for which `find` returns the rule.
    """

    name: str
    _: KW_ONLY
    of: str | None = "nDCG"  # None: the tool has only `others`
    gain: Any = "linear"
    discount: Any = "log2"
    ideal: Ideal = "judged"
    ties: str = "average"  # one of TIES
    empty: Empty = 0.0  # value of a query where the measure is undefined, such as one whose IDCG is 0
    rel: float | None = None  # grades below it gain nothing; None: the measure's default
    more: tuple[tuple[str, Any], ...] = ()  # further parameters of the measure
    score_dtype: str | None = None  # dtype to which scores are cast before ranking
    rounding: Rounding | None = None
    missing: str = "skip"  # queries without returned documents: one of QUERIES
    unjudged: str = "skip"  # queries without judged documents: one of QUERIES
    weights: str = "ignored"  # one of WEIGHTS
    pool: str = "judged"  # one of POOLS
    grades: str = "given"  # one of GRADES
    shortest: int = 0  # queries with fewer documents are left out
    drops_own: bool = False  # drop returned documents whose id is that of their query
    no_nonrelevant: float | None = None  # value of a query whose judged documents are all relevant
    only_relevant: float | None = None  # value of a query whose documents are all relevant; None: as `empty`
    default_cutoff: int | None = None  # cutoff of measures that are given without one
    tolerance: float = 1e-9  # largest difference from the tool's value for a query
    tool: str = ""  # name and version of the tool that was run or read
    source: str = ""  # the files of the tool's code, or the paper
    caveats: tuple[str, ...] = ()
    others: tuple[ToolMeasure, ...] = ()

    @property
    def names_of_measures(self) -> tuple[str, ...]:
        """Names of the tool's measures."""
        names = [own.measure for own in self.others]
        return tuple(dict.fromkeys(names if self.of is None else [self.of, *names]))

    def find(self, measure: str, *, cut: bool | None = None) -> Self | None:
        """Return the rule for another measure of the tool, or None if the tool lacks it.

        Fields that the declaration omits are as for the tool's other measures, and parameters have the
        measure's defaults. A tool whose nDCG has the ideal "scored" knows only the scored documents.
        """
        if measure == self.of:
            return replaced(self, others=())
        for own in self.others:
            if own.measure == measure and (own.cut is None or cut is None or own.cut == cut):
                usual = {each.name: each.default for each in fields(self) if each.name in _OF_MEASURE}
                pool = "scored" if self.ideal == "scored" else self.pool
                fixed = {"of": measure, "more": own.more, "others": ()}
                return replaced(self, **{**usual, "pool": pool, **dict(own.changed), **fixed})
        return None

    @property
    def parameters(self) -> Parameters:
        """Parameters of the measure. For ties by id, `ties` is "input", since rows are put in order first."""
        known = {parameter.name for parameter in DEFINITIONS[self.of or ""].parameters}
        if self.rel is None and self.of != "nDCG":
            known -= {"rel"}
        parameters = {name: getattr(self, name) for name in _OF_MEASURE if name in known}
        if "ties" in known:
            parameters["ties"] = self.measure_ties
        return parameters | dict(self.more)  # type: ignore[return-value]

    @property
    def needs_ids(self) -> bool:
        """Whether a measure needs document ids, most often to order tied documents."""
        rules = [self, *filter(None, map(self.find, self.names_of_measures))]
        return any(rule.ties in BY_ID or rule.drops_own for rule in rules)

    @property
    def measure_ties(self) -> Ties:
        """`ties` of the measure; "input" if rows are put in order first."""
        return self.ties if self.ties in OF_MEASURE else "input"  # type: ignore[return-value]

    @property
    def beyond_measure(self) -> dict[str, Any]:
        """Choices for which measures have no parameter. `evaluate(..., convention=)` applies them too.

        >>> from fastndcg import conventions
        >>> conventions["lightgbm"].beyond_measure
        {'missing': 'skip', 'unjudged': 'skip', 'weights': 'lightgbm'}
        """
        names = ["score_dtype", "rounding", "missing", "unjudged", "weights"]
        names = names if self.ties in OF_MEASURE else ["ties", *names]
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def replace(self, **changes: Any) -> Self:
        """Return this convention with other values of fields. Raise `MeasureError` if one is unknown.

        The name of a measure with a mapping of parameters changes or adds another measure of the tool:
        `conventions["xgboost"].replace(AP={"empty": 0})`.
        """
        known = [each.name for each in fields(self)]
        parameters = [each.name for each in DEFINITIONS[self.of].parameters] if self.of else []
        for name in list(changes):
            if name in DEFINITIONS and name != self.of and isinstance(changes[name], Mapping):
                rows = changes.get("others", self.others)
                before = next((own for own in rows if own.measure == name), has(name))
                choices = {**dict(before.changed), **dict(before.more), **changes.pop(name)}
                rest = [own for own in rows if own.measure != name]
                changes["others"] = (*rest, has(name, before.called, **choices))
            elif name in parameters and name not in known:
                more = dict(changes.get("more", self.more)) | {name: changes.pop(name)}
                changes["more"] = _canonical(self.of, more)
            elif name not in known:
                raise MeasureError(
                    f"a convention has no field {name!r}; it has: {', '.join(known)}.{suggest(name, known)}"
                )
        return replaced(self, **changes)

    def __post_init__(self) -> None:
        words_of = {"ties": TIES, "missing": QUERIES, "unjudged": QUERIES, "weights": WEIGHTS}
        words_of |= {"pool": POOLS, "grades": GRADES}
        for name, words in words_of.items():
            if (value := getattr(self, name)) not in words:
                raise MeasureError(
                    f"{name}={value!r} is not a value of conventions: "
                    f"{name} is one of {', '.join(map(repr, words))}.{suggest(str(value), words)}"
                )
        if self.score_dtype not in (None, "float32"):
            raise MeasureError(
                f"score_dtype={self.score_dtype!r} is not a value of conventions; "
                "expected None (the type of the scores) or 'float32'"
            )
        # in canonical, hashable form, as in measures
        for each in (GAIN, DISCOUNT, IDEAL, EMPTY, REL):
            object.__setattr__(self, each.name, each.read(getattr(self, each.name)))


_OF_MEASURE = ("gain", "discount", "ideal", "empty", "rel", "caveats")  # no two measures share it
_CHANGEABLE = frozenset(each.name for each in fields(Rule)) - {"name", "of", "more", "others"}
