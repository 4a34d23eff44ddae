"""How near `correct_sampled` comes to a measure over all items, beside other estimators of the same samples.

    python -m bench.sampled [--samples 200]

Ranks of users are drawn from populations whose value is known, and each sees 99 of all items as negatives. Columns are
the bias and the root of the mean squared error, in thousandths, of

    sampled   the mean of the sampled lists
    K&R       Krichene and Rendle's estimator (KDD 2020): equal shares of all ranks, gamma 0.1 and 0.01
    MLE       the measure of the shares of ranks that expectation-maximisation estimates (Jin and others, AAAI 2021), after
              100 rounds, as in the authors' code, and after the 30 that `correct_sampled` takes
    BV, MN    the estimators of Li and others (AAAI 2023, arXiv 2211.15743) of the shares after 100 rounds
    ours      `correct_sampled`: BV of the shares after 30 rounds, with the gamma that it chooses

The formulas of BV and MN are those of github.com/dli12/AAAI23-Towards-Reliable-Item-Sampling-for-Recommendation-Evaluation
(estimator/BV_MES_MLE.ipynb and MN_MES_MLE.ipynb, at 42f5558): for A = P(s | r), D the shares on a diagonal, f the measure,

    BV  x = ((1 - g) A'DA + g diag(1'DA))^-1 A'D f, g = 0.01
    MN  x = (A'DA + (diag(1'A) - A'A) / users)^-1 A'D f

There A is binomial, as of negatives drawn with replacement, and D is by preference that of maximal entropy, a mean over 100
draws of negatives; here A is hypergeometric, and D of one draw.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fastndcg.decide import negatives

Float64 = npt.NDArray[np.float64]

POPULATIONS: dict[str, Callable[[np.random.Generator, int, int], Any]] = {
    "geometric, mean 50": lambda random, size, _: random.geometric(0.02, size),
    "geometric, mean 5": lambda random, size, _: random.geometric(0.2, size),
    "power law": lambda random, size, items: np.exp(random.random(size) * np.log(items)),
    "all ranks alike": lambda random, size, items: random.integers(1, items + 1, size),
    "two kinds of users": lambda random, size, items: np.where(
        random.random(size) < 0.2, random.geometric(0.3, size), random.integers(items // 10, items + 1, size)
    ),
}
MEASURES = {
    "R@10": (np.arange(1, 12) <= 10).astype(float),
    "nDCG@10": np.append(1 / np.log2(np.arange(2, 12)), 0.0),
}
NEGATIVES = 99


ESTIMATORS = ("sampled", "K&R 0.1", "K&R 0.01", "MLE 100", "MLE 30", "BV 0.01", "MN", "ours")


def estimates(grid: negatives._Grid, seen: Float64, n: int) -> dict[str, float]:
    """Each estimator's value of one histogram of sampled ranks."""
    chances, few = grid.chances, negatives._shares(grid, seen)
    many = negatives._shares(grid, seen, 100)
    each = np.diff(np.append(grid.ranks, grid.ranks[-1] + 1)).astype(float)  # ranks that a rank stands for

    def gram(shares: Float64) -> Float64:
        found: Float64 = chances.T @ (chances * shares[:, None])
        return found

    def solved(shares: Float64, left: Float64) -> Any:
        return np.linalg.solve(left + 1e-12 * np.eye(NEGATIVES + 1), chances.T @ (grid.f * shares))

    def spread(shares: Float64) -> Float64:
        """The variance, over draws of negatives, of what users count."""
        varies: Float64 = np.diag(shares @ chances) - gram(shares)
        return varies

    alike = each / each.sum()
    x = {
        "sampled": np.append(grid.f[:10], np.zeros(NEGATIVES - 9)),
        "K&R 0.1": solved(alike, gram(alike) + 0.1 * spread(alike)),
        "K&R 0.01": solved(alike, gram(alike) + 0.01 * spread(alike)),
        "BV 0.01": solved(many, gram(many) + 0.01 * spread(many)),
        "MN": solved(many, gram(many) + spread(each) / n),
        "ours": negatives._weights(grid, seen, n)[0],
    }
    values = {name: float(seen @ of_ranks) for name, of_ranks in x.items()}
    values |= {"MLE 100": float(many @ grid.f), "MLE 30": float(few @ grid.f)}
    return {name: values[name] for name in ESTIMATORS}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=200)
    samples = parser.parse_args().samples
    print(f"{'':52}" + "".join(f"{name:>16}" for name in ESTIMATORS))
    typical: dict[int, list[list[float]]] = {}
    for items in (1_000, 20_000):
        for kind, draw in POPULATIONS.items():
            everybody = np.clip(draw(np.random.default_rng(9), 400_000, items).astype(int), 1, items)
            for measure, f in MEASURES.items():
                ranks = negatives._grid(10, items)
                at = f[np.minimum(ranks, 11) - 1]
                grid = negatives._Grid(ranks, at, negatives._chances(ranks, items, NEGATIVES))
                truth = f[np.minimum(everybody, 11) - 1].mean()
                for users in (500, 5_000):
                    off: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
                    for seed in range(samples):
                        random = np.random.default_rng(seed)
                        own = random.choice(everybody, users)
                        above = random.hypergeometric(own - 1, items - own, NEGATIVES)
                        seen = np.bincount(above, minlength=NEGATIVES + 1) / users
                        for name, value in estimates(grid, seen, users).items():
                            off[name].append(1000 * (value - truth))
                    errors = [float(np.sqrt(np.mean(np.square(each)))) for each in off.values()]
                    typical.setdefault(items, []).append(errors)
                    cells = [
                        f"{np.mean(each):7.1f} {error:7.1f}"
                        for each, error in zip(off.values(), errors, strict=True)
                    ]
                    about = f"{items:>6,} items, {users:>5,} users, {measure:>7}, {kind}"
                    print(f"{about:52}" + "".join(f"{cell:>16}" for cell in cells), flush=True)
    for items, of_items in typical.items():
        for word, kind in (
            ("mean", np.mean(of_items, 0)),
            ("geometric mean", np.exp(np.mean(np.log(of_items), 0))),
        ):
            about = f"{items:>6,} items, {word} of the errors"
            print(f"{about:52}" + "".join(f"{each:16.1f}" for each in kind))


if __name__ == "__main__":
    main()
