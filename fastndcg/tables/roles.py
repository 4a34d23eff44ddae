"""Roles of columns: which the caller names, and which are found by their usual names."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeVar, get_args

from fastndcg.common.lazy import pa
from fastndcg.errors import (
    ColumnError,
    InputError,
    InputTypeError,
    check_choice,
    suggest,
    unknown_argument,
)
from fastndcg.typing import Duplicates, NaN, Unjudged

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

# usual names of columns; case and separators are ignored: `QueryID`, `queryId` and `query-id` are `query_id`.
# Names after the bar are less specific: they count only if no column has one of the others
_NAMES = {
    "query": """query_id qid q_id query user_id
        | session_id search_id request_id srch_id topic_id impression_id group_id user customer_id""",
    "doc_id": """doc_id docid docno item_id
        | document_id doc document item product_id passage_id pid did article_id corpus_id movie_id
        track_id video_id news_id sku asin""",
    "relevance": """relevance rel label grade y_true target rating
        | labels grades relevance_label relevance_grade judgment judgement gain ground_truth y is_relevant
        relevant clicked click relevance_score""",
    "score": """score pred prediction y_score
        | scores y_pred y_hat pred_score predicted predicted_score prediction_score predictions model_score
        ranking_score similarity logit probability proba prob relevance_score""",
    "rank": "rank ranking |",
    "intent": "intent intent_id subtopic subtopic_id iteration |",
    "relevant_ids": """relevant_ids expected_ids ground_truth_ids gold_ids relevant_doc_ids expected_doc_ids
        reference_context_ids
        | expected ground_truth ground_truths actual label labels target targets y_true relevant relevant_docs
        relevant_items positives""",
    "retrieved_ids": """retrieved_ids predicted_ids recommended_ids retrieved_doc_ids
        retrieved_context_ids
        | retrieved retrieved_docs retrieved_items recommended recommended_items recommendations predictions
        predicted prediction pred y_pred""",
}
USUAL_NAMES, OTHER_NAMES = (
    {role: tuple(names.split("|")[part].split()) for role, names in _NAMES.items()} for part in (0, 1)
)

_SHOWN = 12  # most names in a message; a table of features has hundreds
# columns that are read only if the caller names them
_OPTIONAL = ("doc_id", "weight", "is_judged", "intents", "propensity")
_ID_LISTS = "relevant_ids", "retrieved_ids"
_NAMED = ("query", "relevance", "score", "doc_id", "rank", "weight", *_ID_LISTS)
_CHOICES: dict[str, tuple[object, ...]] = {
    "duplicates": get_args(Duplicates),
    "unjudged": get_args(Unjudged),
    "nan": get_args(NaN),
    "ascending": (True, False),
    "decimal": (".", ","),
}


class Place(str):
    """A column given as a number: its name, or its position in a file without header, from 0."""

    __slots__ = ()


class Dialect(NamedTuple):
    """How a text file writes a table, as far as the caller says."""

    columns: tuple[str, ...] | None = None  # field names of a file without header
    sep: str | None = None
    decimal: str = "."
    has_places: bool = False  # columns are given by position, so there is no header

    @property
    def is_named(self) -> bool:
        """Whether the caller names the columns, so that the file has no header."""
        return self.has_places or self.columns is not None


@dataclass(frozen=True)
class Roles:
    """The column of each role as the caller names it (None: find it by its usual names), and options.

    `fastndcg.typing.RoleKeywords` has the same fields, for the signatures of functions.
    """

    query: str | Sequence[str] | None = None
    relevance: str | None = None
    score: str | None = None
    keep: str | Sequence[str] = ()
    weight: str | None = None
    doc_id: str | None = None
    nan: NaN = "refuse"
    rank: str | None = None
    ascending: bool = False
    unjudged: Unjudged = "refuse"
    grades: Mapping[Any, float] | float | None = None
    types: Mapping[str, Any] | None = None
    columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None
    sep: str | None = None
    decimal: str = "."
    relevant_ids: str | None = None
    retrieved_ids: str | None = None
    duplicates: Duplicates = "refuse"
    is_judged: str | None = None
    intents: str | None = None
    propensity: str | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            if isinstance(value := getattr(self, each.name), Integral) and each.name in _NAMED:
                object.__setattr__(self, each.name, _place(each.name, value))
        for name, known in _CHOICES.items():
            check_choice(name, getattr(self, name), known)
        if self.grades is not None:
            _check_grades(self.grades)
        _ = self.given_types
        _check_dialect(self.columns, self.sep)

    @property
    def are_named(self) -> bool:
        """Whether the caller named the grades, the scores or the ranks."""
        return any(each is not None for each in (self.relevance, self.score, self.rank))

    @property
    def one_grade(self) -> float | None:
        """The grade of all judgments, if `grades` is a number."""
        return None if self.grades is None or isinstance(self.grades, Mapping) else self.grades

    @property
    def given_types(self) -> dict[str, pa.DataType]:
        """The argument `types` as Arrow types."""
        if not isinstance(self.types, Mapping | None):
            raise InputTypeError(
                f"types is a {type(self.types).__name__}; expected the type of each column, "
                'as in types={"score": "float64"}'
            )
        types = {}
        for name, kind in (self.types or {}).items():
            try:
                types[name] = kind if isinstance(kind, pa.DataType) else pa.type_for_alias(kind)
            except (TypeError, ValueError):
                raise InputTypeError(
                    f'types={{"{name}": "{kind}"}} is not a type of Arrow; expected for example '
                    '"string", "int64" or "float64"'
                ) from None
        return types

    def dialect(self, role: Literal["relevance", "score"] | None = None) -> Dialect:
        """Return the dialect of a text file; with `role`, that of the judgments or of the run.

        A list of `columns` with grades and without scores is that of the judgments alone.
        """
        columns = self.columns
        if isinstance(columns, Mapping):
            if role is None:
                raise InputTypeError(
                    "columns is a dict, which names those of judgments and of a run; expected a list for one "
                    'table, as in columns=["query_id", "relevance", "score"]'
                )
            columns = columns.get("run" if role == "score" else "qrels")
        names = None if columns is None else tuple(map(str, columns))
        order = self.score or self.rank
        if names is not None and role == "score" and not isinstance(self.columns, Mapping):
            has_grades = self.relevance in names or fitting(names, "relevance")
            has_order = order in names or fitting(names, "score") or fitting(names, "rank")
            names = None if has_grades and not has_order else names
        scored, graded, *of_ids = (
            isinstance(each, Place) for each in (order, self.relevance, self.query, self.doc_id)
        )
        has_places = scored if role != "relevance" else False
        if role != "score":  # positions of ids alone are those of judgments
            has_places |= graded or (any(of_ids) and not scored)
        return Dialect(names, "\t" if self.sep == "\\t" else self.sep, self.decimal, has_places)

    @classmethod
    def of(cls, keywords: Mapping[str, Any], function: str, without: Collection[str] = ()) -> Self:
        """Create roles from the keywords of a function. Raises `InputTypeError` for unknown ones.

        >>> Roles.of({"query": "qid"}, "read_parquet").query
        'qid'
        """
        known = [field.name for field in fields(cls) if field.name not in without]
        for name in keywords:
            if name not in known:
                raise unknown_argument(function, name, known)
        return cls(**keywords)

    def keeping(self, names: Sequence[str]) -> Roles:
        """Return the same roles with more columns to keep."""
        kept = (self.keep,) if isinstance(self.keep, str) else tuple(self.keep)
        return replace(self, keep=(*kept, *names)) if names else self

    def with_intents(self, intents: bool | str) -> Roles:
        """Return the same roles with the column of intents, if `intents` names one."""
        if not isinstance(intents, bool | str):
            raise InputTypeError(
                f"intents={intents!r} is a {type(intents).__name__}; "
                "expected True, False or the name of a column"
            )
        return replace(self, intents=intents) if isinstance(intents, str) else self


@dataclass(frozen=True)
class Columns(Roles):
    """The column of each role; only these columns are read. `query` is None if ids are row numbers.

    If the id consists of several columns, these are `keys`, and `query` joins their names.
    """

    query: str | None = None
    relevance: str = ""
    score: str = ""
    keep: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    named: bool = True  # the caller named the grades or scores
    asks_for_ids: bool = True  # the caller named the column of documents, or passed duplicates="first"
    ranks: str | None = field(default=None, compare=False)  # an unused column of ranks

    @property
    def are_ids(self) -> bool:
        """Whether `relevance` and `score` hold lists of relevant and of retrieved ids."""
        return self.relevant_ids is not None

    @property
    def names(self) -> list[str]:
        """All columns to read, each once."""
        optional = (getattr(self, role) for role in _OPTIONAL)
        named = (*self.id_columns, self.relevance, self.score, *optional, *self.keep)
        return list(dict.fromkeys(name for name in named if name is not None))

    @property
    def id_columns(self) -> list[str]:
        """The columns of the query id; none if ids are row numbers."""
        return list(self.keys) or ([] if self.query is None else [self.query])

    @property
    def query_name(self) -> str:
        """What query ids are called in results."""
        return "query_id" if self.query is None else self.query

    @property
    def compared_ranks(self) -> str | None:
        """An unused column of ranks, if the caller did not name the scores."""
        return None if self.named else self.ranks

    @property
    def labels(self) -> tuple[str, str]:
        """Names of grades and scores in messages."""
        return f'column "{self.relevance}"', f'column "{self.score}"'

    @property
    def taken(self) -> dict[str, str | None]:
        """The column of each role in use. `query` is None if ids are row numbers."""
        optional = {role: getattr(self, role) for role in _OPTIONAL if getattr(self, role) is not None}
        order = "score" if self.rank is None else "rank"
        roles = _ID_LISTS if self.are_ids else ("relevance", order)
        return {"query": self.query, roles[0]: self.relevance, roles[1]: self.score} | optional

    def __repr__(self) -> str:
        return f"Columns({', '.join(f'{role}={name!r}' for role, name in self.taken.items())})"


def _check_grades(grades: object) -> None:
    if isinstance(grades, Real) and not isinstance(grades, bool):
        if not math.isfinite(grades):
            raise InputError(f"grades is {grades!r}; expected a finite number, the grade of every judgment")
        return
    if not isinstance(grades, Mapping):
        raise InputTypeError(
            f"grades is a {type(grades).__name__}; expected the grade of each word, "
            'as in grades={"good": 1, "bad": 0}, or one number, the grade of every judgment'
        )
    if not grades:
        raise InputError(
            'grades is empty; expected the grade of each word, as in grades={"good": 1, "bad": 0}'
        )
    for word, grade in grades.items():
        if isinstance(grade, bool) or not isinstance(grade, Real) or not math.isfinite(grade):
            raise InputError(f"grades has {grade!r} for {word!r}; expected a finite number")


def _place(argument: str, value: Any) -> Place:
    if isinstance(value, bool) or value < 0:
        raise InputTypeError(
            f"{argument}={value!r} is a {type(value).__name__}; expected the name of a column, or its place "
            "in a file without header, from 0"
        )
    return Place(int(value))


def _check_dialect(columns: object, sep: object) -> None:
    for key, names in columns.items() if isinstance(columns, Mapping) else [("qrels", columns)]:
        if key not in ("qrels", "run") or isinstance(names, str) or not isinstance(names, Iterable | None):
            raise InputTypeError(
                f"columns is {columns!r}; expected the name of each field of a file without header, as in "
                'columns=["query_id", "doc_id", "relevance"], or those of both files, as in '
                'columns={"qrels": [...], "run": [...]}'
            )
    if sep is not None and (not isinstance(sep, str) or not sep or set(sep) & set('\r\n"')):
        raise InputTypeError(f'sep is {sep!r}; expected the separator of fields, as in sep="|"')


Function = TypeVar("Function", bound="Callable[..., Any]")


# roles that judgments and runs do not have
OF_ONE_TABLE = ("is_judged", "intents", "propensity")
OF_TEXT = ("types", "sep", "decimal")  # options of files of text


def with_keywords(function: Function, keywords: Iterable[inspect.Parameter]) -> Function:
    """Show keywords in place of `**` in the signature of a function, in `help` and in notebooks."""
    signature = inspect.signature(function)
    *parameters, _ = signature.parameters.values()
    first = [each for each in parameters if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    more = [each for each in keywords if each.name not in signature.parameters]
    function.__signature__ = signature.replace(parameters=[*first, *more, *parameters[len(first) :]])  # type: ignore[attr-defined]
    return function


def with_roles(
    function: Function, roles_type: type[Roles] = Roles, without: Collection[str] = ()
) -> Function:
    """Show the `**roles` of a function as keywords, except those in `without`."""
    known = (field for field in fields(roles_type) if field.name not in without)
    kind = inspect.Parameter.KEYWORD_ONLY
    return with_keywords(
        function,
        (inspect.Parameter(each.name, kind, default=each.default, annotation=each.type) for each in known),
    )


def with_roles_of_both(function: Function, without: Collection[str] = ()) -> Function:
    """Apply `with_roles` to a function that takes judgments and a run."""
    return with_roles(function, without=(*OF_ONE_TABLE, *without))


def find_columns(
    names: Sequence[str],
    roles: Roles,
    *,
    is_list: Callable[[str], bool] = lambda _: False,
    second_choice: Collection[str] = (),
    with_doc_id: bool = False,
) -> Columns:
    """Find the column of each role: the one that the caller names, or else the one with a usual name.

    Case and separators are ignored: `QueryID` is `query_id`. Names of `OTHER_NAMES` count only if no column
    has one of `USUAL_NAMES`. Document ids are costly to read and seldom needed: `doc_id` is None unless the
    caller names it, or `with_doc_id` asks for a column with a usual name. A table of lists, according to
    `is_list`, needs no query. Kept columns, and those of `second_choice`, such as partition keys, are taken
    only if no other column fits.

    Raises `ColumnError` if a column does not exist, if no column or several fit a role, or if two results
    would have the same name; `InputTypeError` for a name that is not a string.

    >>> find_columns(["QID", "doc", "label", "score"], Roles())
    Columns(query='QID', relevance='label', score='score')
    """
    if roles.one_grade is not None:
        raise ColumnError(
            f"grades={roles.grades} is the grade of every judgment, and this table has predictions; name its "
            "column of grades by relevance="
        )
    kept = named_columns(names, "keep", roles.keep) if roles.keep else ()
    optional: dict[str, Any] = {role: getattr(roles, role) for role in _OPTIONAL}
    others = (name for role, name in optional.items() if role != "doc_id" and name is not None)
    second = {*second_choice, *kept, *others}
    named, keys = roles.query, tuple[str, ...]()
    if named is not None and not isinstance(named, str):
        keys = named_columns(names, "query", named)
        named, keys = (keys[0], ()) if len(keys) == 1 else (None, keys)
        kept = tuple(dict.fromkeys([*keys, *kept]))
    result: dict[str, Any] = {each.name: getattr(roles, each.name) for each in fields(Roles)}
    result |= {"named": roles.are_named, "keys": keys}
    if (id_lists := _find_id_lists(names, roles, is_list)) is not None:
        result |= zip(_ID_LISTS, id_lists, strict=True)
        roles = replace(roles, relevance=id_lists[0], score=id_lists[1])
    free = [name for name in names if name not in (roles.relevance, roles.score)]
    all_or_free = names if roles.relevance is not None else free
    relevance = find_column(all_or_free, "relevance", roles.relevance, second_choice=second)
    in_lists = bool(id_lists) or is_list(relevance)
    query = ", ".join(keys) or None
    if not keys and (named is not None or fitting(names, "query") or not in_lists):
        query = find_column(names, "query", named, second_choice=second)
    roles, score = find_order(names if roles.score is not None else free, roles, second, every=names)
    if relevance == score and roles.relevance is None and roles.score is None:
        raise ColumnError(
            f'column "{score}" could be the relevance and the score; name the intended one, as in '
            f'relevance="{score}" or score="{score}"'
        )
    keeps_first = roles.duplicates == "first" and not in_lists
    if roles.doc_id is None and (keeps_first or (with_doc_id and fitting(names, "doc_id"))):
        optional["doc_id"] = find_column(names, "doc_id")
    for role, name in optional.items():
        if name is not None:
            check_column(names, role, name)
    weight = roles.weight
    kept = tuple(name for name in kept if name != query and (name, weight) != ("weight", "weight"))
    if weight is not None and "weight" in (query, *kept):
        raise ColumnError(
            f'two columns of the results would be "weight", of which {weight} has the weights; '
            "rename the other"
        )
    result |= {"query": query, "relevance": relevance, "score": score, "keep": kept} | optional
    result |= {"rank": roles.rank, "ascending": roles.ascending}
    asks = roles.doc_id is not None or keeps_first
    return Columns(**result, asks_for_ids=asks, ranks=other_ranks(names, score))


def _find_id_lists(
    names: Sequence[str], roles: Roles, is_list: Callable[[str], bool]
) -> tuple[str, str] | None:
    """Find the columns with lists of relevant and of retrieved ids, if they are named or no others fit.

    >>> _find_id_lists(["q", "expected_ids", "retrieved_ids"], Roles(), lambda name: name != "q")
    ('expected_ids', 'retrieved_ids')
    """
    named = [getattr(roles, role) for role in _ID_LISTS]
    if named != [None, None]:
        if roles.are_named:
            raise ColumnError(
                "relevant_ids= and retrieved_ids= take the place of relevance= and score=; name one pair"
            )
        relevant, retrieved = (find_column(names, *each) for each in zip(_ID_LISTS, named, strict=True))
        return relevant, retrieved
    if roles.are_named:
        return None
    fit = [fitting(names, role) for role in _ID_LISTS]
    clear = [set(map(normalised, USUAL_NAMES[role])) for role in _ID_LISTS]
    lists = [
        [name for name in each if is_list(name) or normalised(name) in known]
        for each, known in zip(fit, clear, strict=True)
    ]
    if not all(len(each) == 1 for each in lists) or lists[0] == lists[1]:
        if all(len(each) == 1 for each in fit) and not fitting(names, "relevance"):
            (one,), (other,) = fit
            raise ColumnError(
                f'columns "{one}" and "{other}" could be ids of documents, or grades and scores. '
                f'For ids in text give relevant_ids="{one}", retrieved_ids="{other}"; for grades and scores, '
                f'relevance="{one}", score="{other}"'
            )
        return None
    are_grades = fitting(names, "relevance") and (fitting(names, "score") or fitting(names, "rank"))
    are_clear = all(normalised(each[0]) in known for each, known in zip(lists, clear, strict=True))
    return (lists[0][0], lists[1][0]) if are_clear or not are_grades else None


def find_order(
    names: Sequence[str], roles: Roles, second_choice: Collection[str] = (), *, every: Sequence[str] = ()
) -> tuple[Roles, str]:
    """Find the column of scores, or that of ranks if the caller names it or there are no scores. Also returns
    the roles that say so. A column that the caller names may be any of `every`.

    >>> find_order(["qid", "rank", "label"], Roles())
    (Roles(... rank='rank', ascending=True...), 'rank')
    """
    if roles.rank is not None and roles.score is not None:
        raise ColumnError(
            f'score="{roles.score}" and rank="{roles.rank}" were both passed; pass only one of them'
        )
    rank = roles.rank
    if rank is None and roles.score is None and not fitting(names, "score") and fitting(names, "rank"):
        rank = find_column(names, "rank", second_choice=second_choice)
    if rank is None:
        return roles, find_column(names, "score", roles.score, second_choice=second_choice)
    return replace(roles, rank=rank, ascending=True), check_column(every or names, "rank", rank)


def other_ranks(names: Sequence[str], score: str) -> str | None:
    """Return the column of ranks beside that of scores, if one has a usual name.

    >>> other_ranks(["qid", "score", "rank"], "score")
    'rank'
    """
    fit = [name for name in fitting(names, "rank") if name != score]
    return fit[0] if len(fit) == 1 else None


def find_column(
    names: Sequence[str], role: str, named: str | None = None, *, second_choice: Collection[str] = ()
) -> str:
    """Find the column of a role of `USUAL_NAMES`. Raises as `find_columns` does.

    >>> find_column(["id", "Rating"], "relevance")
    'Rating'
    """
    if named is not None:
        return check_column(names, role, named)
    every = fitting(names, role)
    candidates = [name for name in every if name not in second_choice] or every
    distinct = list(dict.fromkeys(candidates))
    if len(distinct) == 1:
        return check_column(names, role, distinct[0])
    # the argument `intents` also names the column of intents
    argument = "intents" if role == "intent" else role
    if distinct:
        listed = " and ".join(f'"{name}"' for name in distinct)
        raise ColumnError(
            f"columns {listed} could each be the {role}; name the intended one, as in "
            f'{argument}="{distinct[0]}"'
        )
    raise ColumnError(
        f"no column has a usual name of the {role} ({', '.join(USUAL_NAMES[role])}); "
        f'the columns are {in_words(names)}. Name it, as in {argument}="..."'
    )


def fitting(names: Sequence[str], role: str) -> list[str]:
    """Return the columns with a usual name of a role, or else those with one of the other names."""
    for known in (USUAL_NAMES[role], OTHER_NAMES[role]):
        plain = {normalised(name) for name in known}
        if fitting := [name for name in names if isinstance(name, str) and normalised(name) in plain]:
            return fitting
    return []


@cache
def normalised(name: str) -> str:
    """Return a name without case and separators."""
    return re.sub(r"[\W_]+", "", name).lower()


def check_column(names: Sequence[str], argument: str, name: str) -> str:
    """Return `name` if exactly one column has it. Raises as `find_columns` does."""
    if not isinstance(name, str):
        raise InputTypeError(f"{argument}={name!r} is a {type(name).__name__}; expected the name of a column")
    count = sum(other == name for other in names)
    if count == 1:
        return name
    if count:
        raise ColumnError(
            f'{count} columns are named "{name}", so {argument} is ambiguous; rename all but one'
        )
    strings = [other for other in names if isinstance(other, str)]
    of = "" if argument == "keep" else f" for {argument}="  # slices and cutoffs are kept, too
    raise ColumnError(
        f'there is no column "{name}"{of}; the columns are {in_words(names)}.{suggest(name, strings)}'
    )


def named_columns(names: Sequence[str], argument: str, named: str | Sequence[str]) -> tuple[str, ...]:
    """Return the columns of one or several names, each once. Raises as `find_columns` does."""
    try:
        listed = (named,) if isinstance(named, str) else tuple(dict.fromkeys(named))
    except TypeError:
        raise InputTypeError(
            f"{argument}={named!r} is a {type(named).__name__}; "
            "expected the name of a column or a sequence of names"
        ) from None
    return tuple(check_column(names, argument, name) for name in listed)


def in_words(names: Sequence[object]) -> str:
    if not names:
        return "none at all"
    shown = ", ".join(f'"{name}"' if isinstance(name, str) else repr(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
