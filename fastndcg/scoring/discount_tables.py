"""Discounts of ranks as tables, and how many ranks a measure needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fastndcg.common.arrays import Float64, freeze
from fastndcg.errors import MeasureError
from fastndcg.kernels import schema
from fastndcg.measures.gains_and_discounts import DISCOUNTS
from fastndcg.measures.parameters import Function, Numbers

if TYPE_CHECKING:
    from fastndcg.measures import Measure

_SUMMED = 2**16  # 1 / rank is summed term by term up to this rank; a formula gives the rest
MOST_PERFECT = 2**24  # largest ideal of perfect documents that is summed one by one


@dataclass(frozen=True)  # a tuple would equal a list of discounts
class Power:
    """Discount base^(i - 1) of rank i."""

    base: float


@dataclass(frozen=True)
class Harmonic:
    """Discount 1/i + 1/(i + 1) + ... + 1/last of rank i."""

    last: int


def discount_table(discount: str | float | Numbers | Function | Power | Harmonic, ranks: int) -> Float64:
    """Return the discounts of the ranks 1, 2, 3, ..., (ranks,)."""
    if isinstance(discount, Function):
        return freeze([call_function(discount, rank, "rank") for rank in range(1, ranks + 1)], np.float64)
    return _known_discounts(discount, ranks)


def call_function(function: Function, argument: float, of: str) -> float:
    answer = function.ask(argument)
    try:
        return float(answer)
    except (TypeError, ValueError, OverflowError):
        kind = "gain" if of == "grade" else "discount"
        raise MeasureError(
            f"{function} returned {answer!r} for {of} {argument:g}; a {kind} is a number"
        ) from None


@lru_cache(maxsize=64)
def _known_discounts(discount: str | float | Numbers | Power | Harmonic, ranks: int) -> Float64:
    """Compute `discount_table`. Extended precision is rounded once, so all processors give equal bits."""
    if isinstance(discount, Numbers):
        return freeze([*discount[:ranks], *([0.0] * (ranks - len(discount)))], np.float64)
    rank = np.arange(1, ranks + 1, dtype=np.longdouble)
    if isinstance(discount, str):
        weights = np.ones_like(rank) if discount == "none" else DISCOUNTS[discount].value(rank)
        return freeze(weights, np.float64)
    if isinstance(discount, Power):
        return freeze(np.longdouble(discount.base) ** (rank - 1), np.float64)
    if isinstance(discount, Harmonic):
        summed = min(max(ranks, _SUMMED), discount.last)  # the sum beyond it comes from a formula
        terms = 1 / np.arange(1, summed + 1, dtype=np.longdouble)
        first, last = np.longdouble(summed), np.longdouble(float(discount.last))
        rest = (
            np.log1p((last - first) / first) + (1 / last - 1 / first) / 2 - (1 / last**2 - 1 / first**2) / 12
        )
        sums = np.zeros(ranks, np.longdouble)
        sums[:summed] = (np.cumsum(terms[::-1]) + rest)[::-1][:ranks]
        return freeze(sums, np.float64)
    return freeze(np.log(np.longdouble(discount)) / np.log(rank + 1), np.float64)


def ranks_discounted(measure: Measure, longest: int) -> int:
    """Return how many ranks need a discount, for lists and ideals of up to `longest` documents."""
    if measure.cutoff is None:
        return longest
    params = measure.params
    has_perfect = params.get("ideal") == "full" or params.get("denominator") == "perfect"
    has_perfect = has_perfect or measure.definition.gain == "scaled"
    return measure.cutoff if has_perfect else min(measure.cutoff, longest)


def check_discount(measure: Measure, longest: int) -> None:
    discount = measure.params.get("discount")
    if not isinstance(discount, Numbers | Function):
        return
    needed = ranks_discounted(measure, longest)
    if isinstance(discount, Numbers):
        if len(discount) < needed:
            raise MeasureError(
                f"{measure} needs a discount for {needed} ranks and was given {len(discount)}; "
                "give more, or a smaller cutoff"
            )
        return
    table = discount_table(discount, needed)
    if not np.isfinite(table).all():
        rank = int(np.argmin(np.isfinite(table)))
        raise MeasureError(
            f"the discount of {measure} is {table[rank]} at rank {rank + 1}; expected finite numbers"
        )


def kernel_cutoff(measure: Measure) -> int:
    """Return the measure's cutoff as kernels take it."""
    return schema.UNCUT if measure.cutoff is None else min(measure.cutoff, schema.UNCUT - 1)


def term_parameters(measure: Measure) -> tuple[float, float, float]:
    """Return a row of `Plan.term_parameters`."""
    term, params, parameter, cut_at, empty = measure.definition.term, measure.params, 0.0, math.inf, 0.0
    if term == "interpolated":
        parameter = params["recall"] if params["rounding"] == "up" else -params["recall"]
    elif term == "first" and params.get("of") == "best":
        parameter = schema.OF_BEST
    elif term == "stop" and measure.definition.discount != "none":
        parameter = schema.NOT_BY_RANK
    elif term == "mean of hits":
        cut_at = float(kernel_cutoff(measure))
    elif term == "pairs":
        parameter, cut_at = float(params["max_fp"] or 0), float(kernel_cutoff(measure))
        empty = math.nan if isinstance(params["empty"], str) else params["empty"]
    return parameter, cut_at, empty


def discount_of(measure: Measure) -> Any:
    kind, params = measure.definition.discount, measure.params
    if kind == "power":
        return Power(params["p"] if "p" in params else params["decay"])
    if kind == "harmonic":
        return Harmonic(measure.cutoff or 1)
    return params["discount"] if kind == "parameter" else "none"


def exceeds_int64(measure: Measure) -> bool:
    return measure.cutoff is not None and measure.cutoff >= schema.UNCUT
