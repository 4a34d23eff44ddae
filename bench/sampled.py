"""How near `correct_sampled` comes to a measure over all items, beside other estimators of the same samples.

    python -m bench.sampled [--samples 200]

Ranks of users are drawn from populations whose value is known, and each sees 99 of all items as negatives. Columns are
the bias and the root of the mean squared error, in thousandths, of: the mean of the sampled lists; Krichene and Rendle's
estimator (KDD 2020; equal shares of all ranks, gamma 0.1 and 0.01); the measure of the estimated shares of ranks (Jin and
others, AAAI 2021); the one of Li and others (AAAI 2023, arXiv 2211.15743), which weighs the variance by 1 / users; and ours.
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


def estimates(grid: negatives._Grid, seen: Float64, n: int) -> dict[str, float]:
    """Each estimator's value of one histogram of sampled ranks."""
    shares = negatives._shares(grid, seen)
    alike = np.diff(np.append(grid.ranks, grid.ranks[-1] + 1)).astype(float)
    alike /= alike.sum()

    def solved(weights: Float64, gamma: float, *, of_each: bool) -> Any:
        """The x of least squared bias plus gamma times the variance, of each user or of all."""
        sizes = weights @ grid.chances
        gram = grid.chances.T @ (grid.chances * weights[:, None])
        variance = np.diag(sizes) - (gram if of_each else np.outer(sizes, sizes))
        system = gram + gamma * variance + 1e-12 * np.eye(NEGATIVES + 1)
        return np.linalg.solve(system, grid.chances.T @ (grid.f * weights))

    x = {
        "sampled": np.append(grid.f[:10], np.zeros(NEGATIVES - 9)),
        "K&R 0.1": solved(alike, 0.1, of_each=True),
        "K&R 0.01": solved(alike, 0.01, of_each=True),
        "Li 2023": solved(shares, 1 / n, of_each=False),
        "ours": negatives._weights(grid, seen, n)[0],
    }
    return {name: float(seen @ each) for name, each in x.items()} | {"shares": float(shares @ grid.f)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=200)
    samples = parser.parse_args().samples
    names = ("sampled", "K&R 0.1", "K&R 0.01", "shares", "Li 2023", "ours")
    print(f"{'':52}" + "".join(f"{name:>16}" for name in names))
    for items in (1_000, 20_000):
        for kind, draw in POPULATIONS.items():
            everybody = np.clip(draw(np.random.default_rng(9), 400_000, items).astype(int), 1, items)
            for measure, f in MEASURES.items():
                ranks = negatives._grid(10, items)
                at = f[np.minimum(ranks, 11) - 1]
                grid = negatives._Grid(ranks, at, negatives._chances(ranks, items, NEGATIVES))
                truth = f[np.minimum(everybody, 11) - 1].mean()
                for users in (500, 5_000):
                    off: dict[str, list[float]] = {name: [] for name in names}
                    for seed in range(samples):
                        random = np.random.default_rng(seed)
                        own = random.choice(everybody, users)
                        above = random.hypergeometric(own - 1, items - own, NEGATIVES)
                        seen = np.bincount(above, minlength=NEGATIVES + 1) / users
                        for name, value in estimates(grid, seen, users).items():
                            off[name].append(1000 * (value - truth))
                    cells = [
                        f"{np.mean(each):7.1f} {np.sqrt(np.mean(np.square(each))):7.1f}"
                        for each in off.values()
                    ]
                    about = f"{items:>6,} items, {users:>5,} users, {measure:>7}, {kind}"
                    print(f"{about:52}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
