"""Which column plays which role: by the name that was given, or by its usual names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fastndcg.errors import ColumnError, InputTypeError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "query": ("query_id", "qid", "q_id", "query", "user_id"),
    "doc_id": ("doc_id", "docid", "docno", "item_id"),
    "relevance": ("relevance", "rel", "label", "grade", "y_true", "target", "rating"),
    "score": ("score", "pred", "prediction", "y_score"),
    "intent": ("intent", "intent_id", "subtopic", "subtopic_id", "iteration"),
}

_SHOWN = 12  # column names that a message lists; a feature table has hundreds


class Columns(NamedTuple):
    """Names of the columns that play each role."""

    query: str | None  # None: list-column form without ids, a query is its row number
    relevance: str
    score: str
    doc_id: str | None


class Wanted(NamedTuple):
    """All that is read of a table."""

    columns: Columns
    keep: tuple[str, ...]
    weight: str | None
    is_judged: str | None
    intents: str | None = None
    propensity: str | None = None

    @property
    def names(self) -> list[str]:
        """Each column to read, once."""
        named = (*self.columns, self.weight, self.is_judged, self.intents, self.propensity, *self.keep)
        return list(dict.fromkeys(name for name in named if name is not None))


def find_columns(
    schema_names: Sequence[str],
    *,
    query: str | None = None,
    relevance: str | None = None,
    score: str | None = None,
    doc_id: str | None = None,
    query_optional: bool = False,
    second_choice: Collection[str] = (),
) -> Columns:
    """Names of the columns that play each role, found by their usual names where not given.

    Usual names match whole, in any case: `Label` and `LABEL` are `label`. Document ids are costly to read and never
    needed, so `doc_id` stays None unless it is named.

    Parameters
    ----------
    schema_names : sequence of str
        Columns there are.
    query, relevance, score, doc_id : str, optional
        Columns named by the caller.
    query_optional : bool
        True for a row per query, where the row number serves as the id.
    second_choice : collection of str
        Columns that are taken for a role only where no other fits: those that the caller keeps, and partition keys.

    Raises
    ------
    ColumnError
        A column that is not there, a role that none or several could play.
    InputTypeError
        A name that is not a string.

    Examples
    --------
    >>> find_columns(["QID", "doc", "label", "score"])
    Columns(query='QID', relevance='label', score='score', doc_id=None)
    >>> find_columns(["a", "b", "c"], query="a", relevance="b", score="c").query
    'a'
    """
    without_ids = query is None and query_optional and not _fitting(schema_names, "query")
    return Columns(
        None if without_ids else find_column(schema_names, "query", query, second_choice=second_choice),
        find_column(schema_names, "relevance", relevance, second_choice=second_choice),
        find_column(schema_names, "score", score, second_choice=second_choice),
        None if doc_id is None else check_column(schema_names, "doc_id", doc_id),
    )


def find_column(
    names: Sequence[str], role: str, given: str | None = None, *, second_choice: Collection[str] = ()
) -> str:
    """The column that plays a role of `USUAL_NAMES`. Raises as `find_columns` does.

    >>> find_column(["id", "Rating"], "relevance")
    'Rating'
    """
    if given is not None:
        return check_column(names, role, given)
    fitting = _fitting(names, role)
    found = [name for name in fitting if name not in second_choice] or fitting
    distinct = list(dict.fromkeys(found))
    if len(distinct) == 1:
        return check_column(names, role, distinct[0])
    if distinct:
        listed = " and ".join(f'"{name}"' for name in distinct)
        raise ColumnError(
            f'columns {listed} could each be the {role}; name the one that is meant, as in {role}="{distinct[0]}"'
        )
    raise ColumnError(
        f"no column has a usual name of the {role} ({', '.join(USUAL_NAMES[role])}); "
        f'the columns are {_listed(names)}. Name it, as in {role}="..."'
    )


def _fitting(names: Sequence[str], role: str) -> list[str]:
    return [name for name in names if isinstance(name, str) and name.lower() in USUAL_NAMES[role]]


def check_column(names: Sequence[str], argument: str, name: str) -> str:
    """`name`, if exactly one column has it. Raises as `find_columns` does."""
    if not isinstance(name, str):
        raise InputTypeError(f"{argument}={name!r} is a {type(name).__name__}; wanted the name of a column")
    count = sum(other == name for other in names)
    if count == 1:
        return name
    if count:
        raise ColumnError(
            f'{count} columns are named "{name}", so {argument} is ambiguous; rename all but one'
        )
    strings = [other for other in names if isinstance(other, str)]
    raise ColumnError(
        f'there is no column "{name}" for {argument}; the columns are {_listed(names)}.{suggest(name, strings)}'
    )


def choose(
    names: Sequence[str],
    is_list: Callable[[str], bool],
    *,
    query: str | None,
    relevance: str | None,
    score: str | None,
    keep: str | Sequence[str],
    weight: str | None,
    doc_id: str | None,
    is_judged: str | None,
    intents: str | None = None,
    propensity: str | None = None,
    second_choice: Collection[str] = (),
) -> Wanted:
    """All columns to read; `is_list` says whether a column holds a list for each query.

    Raises as `find_columns` does, and `ColumnError` where two results would have the same name.
    """
    kept = _kept_names(names, keep)
    others = {"weight": weight, "is_judged": is_judged, "intents": intents, "propensity": propensity}
    second = {*second_choice, *kept, *(name for name in others.values() if name is not None)}
    graded = find_column(names, "relevance", relevance, second_choice=second)
    columns = find_columns(
        names,
        query=query,
        relevance=graded,
        score=score,
        doc_id=doc_id,
        query_optional=is_list(graded),
        second_choice=second,
    )
    for argument, name in others.items():
        if name is not None:
            check_column(names, argument, name)
    kept = tuple(name for name in kept if name != columns.query and (name, weight) != ("weight", "weight"))
    for result, source in (("query_id", columns.query or "the row number"), ("weight", weight)):
        if result in kept and source is not None:
            raise ColumnError(
                f'keep names the column "{result}", but {source} is the {result} of the results; rename one of them'
            )
    return Wanted(columns, kept, weight, is_judged, intents, propensity)


def _kept_names(names: Sequence[str], keep: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(keep, str):
        keep = (keep,)
    try:
        listed = tuple(dict.fromkeys(keep))
    except TypeError:
        raise InputTypeError(
            f"keep is a {type(keep).__name__}; wanted the name of a column or a sequence of names"
        ) from None
    return tuple(check_column(names, "keep", name) for name in listed)


def _listed(names: Sequence[object]) -> str:
    if not names:
        return "none at all"
    shown = ", ".join(f'"{name}"' if isinstance(name, str) else repr(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
