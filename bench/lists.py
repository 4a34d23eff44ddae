"""How often intervals of `catalogue` hold the value that they are of, by simulation.

Users are drawn from a population of 20,000 whose lists of ten of 500 items are drawn by popularity. Means over
users, and personalisation, have the value of the population. Coverage, gini and entropy grow or fall with the
number of users, so their value is the mean over samples of the same size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

import fastndcg as fn
from bench.record import Row

_OF_SAMPLES = ("coverage", "gini", "entropy")


def rows(*, quick: bool) -> Iterator[Row]:
    """The share of samples of 300 users whose interval of 95 % holds the value."""
    random, samples = np.random.default_rng(0), 40 if quick else 400
    popular = np.exp(random.normal(size=500))
    drawn = (
        popular * random.exponential(size=(20_000, 500)) ** -1.0
    )  # the largest are draws without replacement
    lists = np.argpartition(-drawn, 10, axis=1)[:, :10]
    train = {int(item): int(1000 * share) + 1 for item, share in enumerate(popular / popular.sum())}

    def of(users: Any, **words: Any) -> list[dict[str, Any]]:
        ids = lists[users].ravel()
        rankings = fn.Rankings.from_lists([[1] + [0] * 9] * len(users), doc_ids=ids)
        return fn.catalogue(rankings, 500, train, **words).to_pylist()

    whole = {row["measure"]: row["value"] for row in of(np.arange(len(lists)))}
    found = [
        of(random.choice(len(lists), 300, replace=False), confidence=0.95, seed=seed)
        for seed in range(samples)
    ]
    held: Counter[str] = Counter()
    for place, name in enumerate(row["measure"] for row in found[0]):
        value = np.mean([each[place]["value"] for each in found]) if name in _OF_SAMPLES else whole[name]
        held[name] = sum(each[place]["low"] <= value <= each[place]["high"] for each in found)
    for name, count in held.items():
        yield Row("lists", f"interval of {name}", unit="share", ratio=count / samples, bar=0.9, wants="more")
