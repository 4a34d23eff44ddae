"""Whether results that are compared were made alike, by their signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fastndcg.errors import Argument, InputError, check_choice
from fastndcg.scores.signatures import fields_of

if TYPE_CHECKING:
    from fastndcg.measures import Measure
    from fastndcg.scores.scores import Scores

_ALIKE = ("convention", "judgments")  # what has to be the same; measures and queries are matched


def check_signatures(scored: dict[str, Scores], measures: Sequence[Measure], signatures: str) -> list[str]:
    """Cautions about what signatures leave open. Raises `InputError` where they say that systems differ.

    They are looked at where results were stored with one, or all have a pool of judgments.
    """
    check_choice("signatures", signatures, ("refuse", "ignore"))
    pools = [scores._pool for scores in scored.values()]
    is_stored = any(scores._signatures for scores in scored.values())
    differ = None not in pools and not all(all(map(np.array_equal, pool, pools[0])) for pool in pools)
    if signatures == "ignore" or not (is_stored or differ):
        return []
    cautions: dict[str, None] = {}
    for measure in measures:
        found = {name: fields_of(scores.signature(measure)) for name, scores in scored.items()}
        first, *others = found
        for name in others:
            one, other = found[first], found[name]
            for field in _ALIKE:
                if one[field] == other[field] or "unknown" in (one[field], other[field]):
                    continue
                if field == "judgments" and one["queries"] != other["queries"]:
                    cautions[
                        f"{first} and {name} have other queries, so that it cannot be known "
                        "whether they were judged alike."
                    ] = None
                    continue
                raise InputError(
                    f'{measure} of "{first}" and "{name}" was not made alike: {field} of the one is '
                    f"{one[field]}, of the other {other[field]}. Evaluate both alike, or pass ",
                    Argument("signatures", "ignore"),
                    ".",
                )
    return list(cautions)
