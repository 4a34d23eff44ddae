#!/usr/bin/env python3
"""A ranker in NumPy, trained twice: to predict grades (pointwise), and to order pairs (pairwise).

    python scripts/toy_ranker.py --out toy_ranker.svg

prints nDCG@5 of both after some epochs, shows how ties affect an untrained model, and draws nDCG@5 of every
epoch (.svg, .png or .html; this needs the extra `plot`).

Annotators are strict with some queries and generous with others. Pointwise training learns this, although it
changes no order within a query; pairwise training only sees differences within a query.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import fastndcg as fn

Array = npt.NDArray[Any]
MEASURE = fn.nDCG(gain="exp2") @ 5


class Sample(NamedTuple):
    """Queries with the same number of documents."""

    features: Array  # float64 (n_queries, n_documents, n_features)
    grades: Array  # int64 (n_queries, n_documents)

    def rankings(self, weights: Array) -> fn.Rankings:
        """The documents, scored by a linear model."""
        return fn.Rankings.from_dense(self.grades, self.features @ weights)


def sample(random: np.random.Generator, queries: int, documents: int = 20, features: int = 12) -> Sample:
    """Draw features of documents. The last four depend only on how strict the query's annotator was."""
    values = random.normal(size=(queries, documents, features))
    strict = random.normal(size=(queries, 1, 1))
    values[:, :, -4:] = strict + 0.7 * values[:, :, -4:]
    worth = values[:, :, :4].sum(2) / 2 + 2 * strict[:, :, 0] + 0.5 * random.normal(size=(queries, documents))
    return Sample(values, np.clip(np.round(worth + 1.5), 0, 4).astype(np.int64))


def pointwise(train: Sample, weights: Array) -> Array:
    """The gradient of the mean squared difference of scores and grades."""
    missed = train.features @ weights - (train.grades - train.grades.mean())
    return np.einsum("qd,qdf->f", missed, train.features) / missed.size


def pairwise(train: Sample, weights: Array) -> Array:
    """The gradient of the logistic loss over pairs of documents; the first has the higher grade."""
    scores = train.features @ weights
    better = train.grades[:, :, None] > train.grades[:, None, :]
    pull = better / (1 + np.exp(scores[:, :, None] - scores[:, None, :]))
    of_document = pull.sum(1) - pull.sum(
        2
    )  # documents of higher grades push it down, those of lower grades pull it up
    return np.einsum("qd,qdf->f", of_document, train.features) / max(int(better.sum()), 1)


def trained(
    train: Sample, test: Sample, gradient: Any, rate: float, epochs: int
) -> tuple[Array, list[float]]:
    """Return the weights, and nDCG@5 of the test queries before training and after each epoch."""
    weights, values = np.zeros(train.features.shape[2]), []
    for _ in range(epochs + 1):
        values.append(fn.evaluate(test.rankings(weights), MEASURE).mean()[str(MEASURE)])
        weights = weights - rate * gradient(train, weights)
    return weights, values


def draw(curves: dict[str, list[float]], path: str) -> None:
    import altair as alt

    rows = [
        {"training": name, "epoch": epoch, "value": value}
        for name, values in curves.items()
        for epoch, value in enumerate(values)
    ]
    chart = alt.Chart(alt.InlineData(values=rows)).mark_line(point=True)
    chart.encode(
        alt.X("epoch:Q", title="epoch"),
        alt.Y("value:Q", title=f"mean {MEASURE} of test queries", scale=alt.Scale(zero=False)),
        alt.Color("training:N", scale=alt.Scale(range=["#0072b2", "#d55e00"])),
        alt.StrokeDash("training:N"),
    ).properties(width=500, height=300).save(path)


def main() -> None:
    options = parser().parse_args()
    random = np.random.default_rng(options.seed)
    train, test = sample(random, options.queries), sample(random, options.queries)
    curves, systems = {}, {}
    for name, gradient, rate in (("pointwise", pointwise, 0.05), ("pairwise", pairwise, 0.2)):
        weights, curves[name] = trained(train, test, gradient, rate, options.epochs)
        systems[name] = test.rankings(weights)
    print(f"epoch  {'  '.join(f'{name:>9}' for name in curves)}")
    for epoch in sorted({0, 1, options.epochs // 4, options.epochs // 2, options.epochs}):
        print(f"{epoch:5}  {'  '.join(f'{values[epoch]:9.4f}' for values in curves.values())}")

    print(
        "\nBefore the first epoch all weights are 0, so that all documents of a query are tied. "
        "A sort would leave them in the order"
    )
    print(
        "of the file, which says nothing of the model; nDCG here is the mean over all orders, "
        "as of a random ranking:\n"
    )
    print(fn.tie_range(test.rankings(np.zeros(train.features.shape[2])), MEASURE))

    print("\nAfter the last epoch, the same test queries:\n")
    print(fn.compare(systems, baseline="pointwise", measures=[MEASURE]))
    if options.out:
        draw(curves, options.out)
        print(f"\nnDCG@5 of every epoch is drawn in {options.out}")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--out", help="picture to write: .svg, .png or .html")
    found.add_argument("--queries", type=int, default=300, help="of training, and as many to test")
    found.add_argument("--epochs", type=int, default=40)
    found.add_argument("--seed", type=int, default=0)
    return found


if __name__ == "__main__":
    main()
