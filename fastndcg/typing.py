"""Types of the arguments of this package, for annotations and type checkers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

import numpy.typing as npt

# ---- parameters of measures ----

Ties = Literal["average", "input", "worst", "best", "block"]
Ideal = Literal["judged", "scored", "returned", "full", "judged_uncut", "judged_returned"]
Empty = float | Literal["nan", "skip"]
Numbers = Sequence[float] | npt.NDArray[Any]
Gain = Literal["linear", "exp2", "binary"] | Numbers | Mapping[Any, float] | Callable[[Any], float]
Discount = Literal["log2", "jarvelin", "reciprocal", "ln"] | float | Numbers | Callable[[int], float]


class Parameters(TypedDict, total=False):
    """Parameters of measures, in alphabetical order; each measure takes some of them."""

    alpha: float
    beta: float
    clip: float
    cutoff: int | str
    decay: float
    dcg: Literal["log2", "exp-log2"]  # ir_measures' name for gain
    denominator: Literal["n_relevant", "cutoff", "returned", "hits", "k", "none", "perfect"]
    discount: Discount
    empty: Empty
    floor: Literal["zero", "worst"]
    gain: Gain
    gains: Mapping[Any, float] | None
    ideal: Ideal
    ips: bool | Literal["snips"]
    judged_only: bool
    like: Any  # name of a convention, or a Convention
    max_fp: float | None
    max_rel: float | None
    min_rel: float
    of: Literal["first", "best"]
    p: float
    pairs: Literal["relevant", "graded"]
    recall: float | None
    rel: float | None
    relative: bool
    rounding: Literal["up", "nearest"]
    score_above: float | None
    stop: Literal["exp2", "linear"] | Numbers | Mapping[Any, float] | Callable[[Any], float]
    ties: Ties
    unjudged: float | None


# ---- options of readers ----

NaN = Literal["refuse", "last"]
Unjudged = Literal["refuse", "null"]
Missing = Literal["zero", "skip"]
Duplicates = Literal["refuse", "first"]
TieOrder = Literal["docid_desc", "docid_asc", "input"]


class ArrowStream(Protocol):
    """A table with an Arrow stream, such as those of pyarrow, Polars, pandas and DuckDB."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class ArrowArray(Protocol):
    """A part of a table, as an Arrow array."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


class LazyTable(Protocol):
    """A lazy frame of Polars."""

    def collect_schema(self) -> Any: ...


Table = ArrowStream | ArrowArray | LazyTable | Mapping[str, Any] | npt.NDArray[Any]
Judgments = Table | Mapping[Any, Any] | Iterable[Any] | str | os.PathLike[str]  # also a run
Path = str | os.PathLike[str]
Paths = Path | Sequence[Path]


class JoinKeywords(TypedDict, total=False):
    """Keywords for the columns of judgments and of a run, see `fastndcg.read_qrels_run`."""

    query: str | int | Sequence[str] | None
    relevance: str | int | None
    score: str | int | None
    keep: str | Sequence[str]
    weight: str | None
    doc_id: str | int | None
    nan: NaN
    rank: str | int | None
    ascending: bool
    unjudged: Unjudged
    grades: Mapping[Any, float] | float | None
    types: Mapping[str, Any] | None
    columns: Sequence[str] | Mapping[str, Sequence[str]] | None
    sep: str | None
    decimal: str
    relevant_ids: str | None
    retrieved_ids: str | None
    duplicates: Duplicates


class RoleKeywords(JoinKeywords, total=False):
    """Keywords that all readers of tables take, see `fastndcg.read_parquet`."""

    is_judged: str | None
    intents: str | None
    propensity: str | None


class Columns(TypedDict, total=False):
    """Keywords that all constructors of `Rankings` from arrays take, see `Rankings.from_offsets`."""

    judged: tuple[npt.ArrayLike, npt.ArrayLike] | None
    is_judged: npt.ArrayLike | None
    doc_ids: Any
    weight: npt.ArrayLike | None
    queries: Any
    nan: NaN
    ascending: bool
    unjudged: Unjudged
    intents: Any
    judged_intents: Any
    intent_probabilities: Any
    propensity: npt.ArrayLike | None


class ColumnsAndIds(Columns, total=False):
    """The same as `Columns`, and an id for each query."""

    query_ids: Any


class IrMeasure(Protocol):
    """A measure of ir_measures."""

    @property
    def SUPPORTED_PARAMS(self) -> Any: ...

    def calc_aggregate(self, qrels: Any, run: Any) -> Any: ...


# ---- results ----


class Result(Protocol):
    """A result whose numbers are a table: Scores, Comparison, Anchors, Ranges or Explanation."""

    def to_arrow(self) -> Any: ...


# an altair.Chart, or several side by side; `Any`, since Altair is imported only when a plot is made
Chart: TypeAlias = Any
