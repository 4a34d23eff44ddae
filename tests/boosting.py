"""What tests of boosters share: data to rank that is as uneven as real data, and what predictions on it are worth."""

from typing import Any, NamedTuple

import numpy as np

import fastndcg as fn

MEASURES = ["nDCG@10", "nDCG(gain='exp2', ties='worst', empty='skip')@3", "RR(rel=2)", "AP"]


class Ranked(NamedTuple):
    """Rows of all queries, those of a query together."""

    features: Any  # float32, (n_docs, 6)
    label: Any  # float32, (n_docs,)
    sizes: Any  # int64, (n_queries,)
    weight: Any  # float64, (n_queries,)

    @property
    def qid(self):
        """A whole number for each row, (n_docs,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def values(self, scores, measures=None, **options):
        """The mean of each measure."""
        rankings = fn.Rankings.from_groups(self.sizes, self.label, scores, **options)
        return list(fn.evaluate(rankings, MEASURES if measures is None else measures).mean().values())


def ranked(n_queries=150, seed=0):
    """Grades that follow few distinct features, so that a model learns and ties; one document or many, often none relevant."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, n_queries)
    sizes[:3] = 1, 2, 300
    rows = int(sizes.sum())
    features = rng.integers(0, 8, (rows, 6)).astype(np.float32)
    worth = features[:, 0] + features[:, 1] / 2 + rng.normal(0, 2.5, rows)
    label = np.digitize(worth, [6, 8, 10, 12]).astype(np.float32)
    label[np.repeat(rng.random(n_queries) < 0.15, sizes)] = 0
    return Ranked(features, label, sizes, 1 + rng.integers(0, 5, n_queries) / 2)
