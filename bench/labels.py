"""Measure how often intervals of scarce labels miss: people beside a judge, clicks, samples, parts of a change.

Each number is the share of nominal 95 % intervals, in %, that miss the true mean, where 5 is right. Beside it
stands how wide the interval is, as a share of that of people's labels alone.

Bias: generated values, whose distributions are known; real judges err in other ways.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import fastndcg as fn
from bench.record import Row
from fastndcg.statistics.agreement import tau_b
from fastndcg.statistics.intervals import t_quantile
from fastndcg.statistics.paired import controlled, pearson, spearman

Float64 = npt.NDArray[np.float64]
Pair = tuple[Float64, Float64]


# ---- people and a judge ----


def ndcg_like(random: np.random.Generator, n: int) -> Pair:
    """Values near 0.55 with some at 0 and 1; the judge is too generous, and correlates by 0.88."""
    people = np.clip(0.55 + 0.28 * random.normal(size=n), 0, 1)
    return people, np.clip(0.15 + 0.8 * people + 0.15 * random.normal(size=n), 0, 1)


def precision(random: np.random.Generator, n: int) -> Pair:
    """P@4, of which the judge gets one document in three wrong, mostly upwards."""
    people = random.binomial(4, random.beta(1.5, 1.5, n)) / 4
    return people, np.clip(people + (random.random(n) < 0.3) / 4 - (random.random(n) < 0.15) / 4, 0, 1)


def differences(random: np.random.Generator, n: int) -> Pair:
    """Differences of two systems, half of them 0."""
    people = np.where(random.random(n) < 0.5, 0.0, random.normal(0.03, 0.2, n))
    near = people + random.normal(0, 0.05, n) * (people != 0)
    return people, np.where(random.random(n) < 0.8, near, random.normal(0, 0.2, n))


def no_agreement(random: np.random.Generator, n: int) -> Pair:
    """A judge that draws its values at random."""
    return np.clip(0.55 + 0.28 * random.normal(size=n), 0, 1), random.random(n)


def reciprocal_ranks(random: np.random.Generator, n: int) -> Pair:
    """RR@10 of one system, 0 in 70 % of queries: skewed, so that Student's t of people alone misses too."""

    def values() -> Float64:
        return np.where(random.random(n) < 0.7, 0.0, 1 / random.integers(1, 11, n))

    people = values()
    return people, np.where(random.random(n) < 0.8, people, values())


KINDS = (ndcg_like, precision, differences, no_agreement, reciprocal_ranks)


def of_judges(experiments: int) -> Iterator[Row]:
    """PPI++ beside Student's t of people alone."""
    random = np.random.default_rng(1)
    for kind in KINDS:
        true = kind(random, 4_000_000)[0].mean()
        for n, n_judge in ((50, 1000), (200, 2000), (200, 400), (25, 1000)):
            missed = alone = 0
            widths = []
            for _ in range(experiments):
                people, judge = kind(random, n_judge)
                found = controlled(people[:n], judge[:n], judge[n:])
                low, high = found.interval(0.95)
                half = t_quantile(0.05, n - 1) * people[:n].std(ddof=1) / math.sqrt(n)
                missed += not low <= true <= high
                alone += abs(people[:n].mean() - true) > half
                widths.append((high - low) / 2 / half if half else 1.0)
            shares = [100 * count / experiments for count in (missed, alone)]
            yield Row(
                "labels", f"{kind.__name__}, {n} of {n_judge}", "people alone", "% missed", cpu=shares[0], baseline_cpu=shares[1],
                note=f"{np.mean(widths):.2f} times as wide",
            )  # fmt: skip


# ---- clicks ----

RANKS = 6


def swaps(random: np.random.Generator, sessions: int) -> dict[str, npt.NDArray[Any]]:
    """The first document of a session changes places with another, or not; the first is better."""
    other = random.integers(2, RANKS + 1, sessions)
    first, second = 0.6 * random.random(sessions), 0.6 * random.random(sessions) * (1 - other / 10)
    at_first, at_other = np.where(random.random(sessions) < 0.5, (second, first), (first, second))
    ones, session = np.ones(sessions, np.int64), np.arange(sessions)
    clicked = random.random(sessions) < at_first, random.random(sessions) < at_other / other
    columns = {
        "query": (session, session),
        "rank": (ones, other),
        "swapped": (other, ones),
        "clicked": clicked,
    }
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def rankers(random: np.random.Generator, documents: int) -> dict[str, npt.NDArray[Any]]:
    """Two rankers showed the same documents at other ranks, and unequally often."""
    relevance = np.repeat(random.beta(1, 3, documents), 2)
    rank = np.clip(random.integers(1, RANKS + 1, 2 * documents) - (relevance > 0.3), 1, RANKS)
    shown, document = random.integers(1, 30, 2 * documents), np.repeat(np.arange(documents), 2)
    clicked = random.binomial(shown, relevance / rank)
    return {"query": document // 5, "doc_id": document, "rank": rank, "shown": shown, "clicked": clicked}


def of_propensities(experiments: int) -> Iterator[Row]:
    """Estimates of 1 / rank, and beside them how far off shares of clicks alone are."""
    random, true = np.random.default_rng(2), 1 / np.arange(2, RANKS + 1)
    for draw, method, sizes in ((swaps, "swap", (2000, 20_000)), (rankers, "intervention", (400, 4000))):
        for size in sizes:
            missed, found, naive = 0, [], []
            for _ in range(experiments):
                table = fn.propensities(draw(random, size), method=method)
                low, high, p = (table[name].to_numpy()[1:] for name in ("low", "high", "propensity"))
                missed += int((~((low <= true) & (true <= high))).sum())
                shares = table["clicked"].to_numpy() / table["shown"].to_numpy()
                found.append(p / true)
                naive.append(shares[1:] / shares[0] / true)
            off, alone = (100 * float(np.abs(np.mean(each, axis=0) - 1).max()) for each in (found, naive))
            yield Row(
                "labels", f"propensities by {method}, {size:,}", "shares of clicks", "% missed",
                cpu=100 * missed / experiments / len(true),
                note=f"off by {off:.1f} % on average at most; shares of clicks by {alone:.0f} %",
            )  # fmt: skip


def bandit(random: np.random.Generator, queries: int) -> tuple[Any, Any, Any, float]:
    """One of five documents is shown at random, likelier a better one; two rankers of them, which agree much."""
    chance = np.clip(random.beta(2, 3, (queries, 5)), 0.02, 0.98)
    propensity = np.exp(2 * chance + random.normal(0, 0.5, chance.shape))
    propensity /= propensity.sum(axis=1, keepdims=True)
    shown = np.eye(5)[(propensity.cumsum(axis=1) > random.random((queries, 1))).argmax(axis=1)]
    clicked = shown * (random.random(chance.shape) < chance)
    old = chance + random.normal(0, 0.4, chance.shape)
    new = old + 0.3 * chance + random.normal(0, 0.1, chance.shape)
    rankings = fn.Rankings.from_dense(clicked.astype(int), old, propensity=propensity.ravel())
    truth = [fn.evaluate(fn.Rankings.from_dense(chance, each), "DCG@2")["DCG@2"] for each in (old, new)]
    model = np.clip(chance + random.normal(0, 0.1, chance.shape), 0, 1)
    systems = {"old": rankings, "new": rankings.with_scores(new.ravel())}
    return systems, shown.ravel(), model.ravel(), float((truth[1] - truth[0]).mean())


def of_rankers(experiments: int) -> Iterator[Row]:
    """Differences of two rankers by one log."""
    random = np.random.default_rng(3)
    for queries in (50, 200, 1000):
        found: dict[str, list[tuple[float, float, bool]]] = {}
        for _ in range(experiments):
            systems, shown, model, true = bandit(random, queries)
            for method in ("ips", "control", "doubly_robust"):
                table = fn.compare_clicks(systems, "DCG@2", method=method, shown=shown, model=model)
                row = table.to_pylist()[0]
                held = row["low"] <= true <= row["high"]
                found.setdefault(method, []).append(
                    (row["difference"] - true, row["high"] - row["low"], held)
                )
        for method, each in found.items():
            off, width, held_in = np.mean(each, axis=0)
            yield Row(
                "labels", f"two rankers by {method}, {queries:,}", "the truth", "% missed", cpu=100 * (1 - held_in),
                note=f"mean error {off:.4f}, width {width:.4f}",
            )  # fmt: skip


def of_experiments(experiments: int) -> Iterator[Row]:
    """Offline beside online, of differences that correlate by 0.6, normal and long-tailed."""
    random, slope = np.random.default_rng(4), 0.75
    for tail, draw in (
        ("normal", random.standard_normal),
        ("long-tailed", lambda n: random.standard_t(4, n)),
    ):
        a = draw(1_000_000)
        b = slope * a + draw(1_000_000)
        some = slice(0, 20_000)
        true = [pearson(a, b), spearman(a, b), tau_b(a[some], b[some]), float((a * b > 0).mean())]
        for n in (15, 50, 200):
            missed = np.zeros(4)
            for _ in range(experiments):
                offline = draw(n)
                found = fn.online_agreement(offline, slope * offline + draw(n))
                low, high = found["low"].to_numpy(), found["high"].to_numpy()
                missed += ~((low <= true) & (true <= high))
            for method, count in zip(
                ("pearson", "spearman", "kendall", "sign"), missed.tolist(), strict=True
            ):
                yield Row(
                    "labels", f"offline and online by {method}, {tail}, {n}", "the truth", "% missed",
                    cpu=100 * count / experiments,
                )  # fmt: skip


# ---- within slices, and their mix ----

SHARES, MEANS = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3]]), np.array([[0.7, 0.5, 0.3], [0.72, 0.45, 0.35]])
PARTS = ("change", "within", "mix")


def drifting(experiments: int) -> Iterator[Row]:
    """Three slices whose shares and means change: samples of other queries, and values of the same queries."""
    of_parts = (SHARES.mean(0) * (MEANS[1] - MEANS[0])).sum(), ((SHARES[1] - SHARES[0]) * MEANS.mean(0)).sum()
    of_same = (SHARES[0] * (MEANS[1] - MEANS[0])).sum()
    for n in (50, 200):
        for paired in (False, True):
            random, missed = np.random.default_rng(n), np.zeros(3)
            truth = (of_same, of_same, 0.0) if paired else (sum(of_parts), *of_parts)
            for _ in range(experiments):
                first = random.choice(3, n, p=SHARES[0])
                second = first if paired else random.choice(3, n, p=SHARES[1])
                shared = random.normal(0, 0.2, n) if paired else np.zeros(n)
                sides = [
                    random.beta(2 * mean[slices], 2 - 2 * mean[slices]) + shared
                    for slices, mean in zip((first, second), MEANS, strict=True)
                ]
                old, new = (
                    _scores(values, slices) for values, slices in zip(sides, (first, second), strict=True)
                )
                found = fn.drift(old, new, "slice", paired=paired).to_pylist()[0]
                for place, (start, true) in enumerate(zip(("", "within_", "mix_"), truth, strict=True)):
                    low, high = found[f"{start}low"], found[f"{start}high"]
                    missed[place] += not low - 1e-12 <= true <= high + 1e-12
            for part, count in zip(PARTS, missed.tolist(), strict=True):
                kind = "same queries" if paired else "other queries"
                yield Row(
                    "labels", f"drift, {part}, {n} {kind}", unit="% missed", cpu=100 * count / experiments
                )


def _scores(values: Float64, slices: npt.NDArray[np.int64]) -> fn.Scores:
    queries = pa.table({"query_id": np.arange(len(values)), "slice": slices})
    return fn.Scores((fn.nDCG,), values[None], np.zeros((1, len(values)), np.bool_), queries, None)


# ---- queries and documents that are judged ----


def of_samples(experiments: int) -> Iterator[Row]:
    """The bias of weighted means over samples of 5,000 queries whose values rise with their traffic."""
    random, n = np.random.default_rng(1), 5000
    traffic = random.pareto(1.2, n) + 0.1
    values = 1 / (1 + np.exp(-(np.log(traffic) - 1 + random.normal(size=n))))
    log = {
        "lang": random.choice(["de", "fr", "it"], n, p=[0.7, 0.25, 0.05]),
        "asked": traffic,
        "value": values,
    }
    designs: dict[str, dict[str, Any]] = {
        "by stratum": {"by": "lang"},
        "Neyman": {"by": "lang", "allocation": "neyman", "value": "value"},
        "by traffic": {"by": "lang", "weight": "asked"},
        "by traffic, of traffic": {"by": "lang", "weight": "asked", "of": "traffic"},
    }
    for name, options in designs.items():
        true = np.average(values, weights=traffic if options.get("of") else None)
        for size in (25, 100):
            drawn = (fn.sample_queries(log, size, seed=seed, **options) for seed in range(experiments))
            means = [
                np.average(each["value"].to_numpy(), weights=each["weight"].to_numpy()) for each in drawn
            ]
            bias = abs(float(np.mean(means)) - true) / float(np.std(means))
            yield Row("labels", f"sample {name}, {size}", unit="bias, % of sd", cpu=100 * bias)


def of_priors(experiments: int) -> Iterator[Row]:
    """How often the quantiles of drawn grades miss the mean of all judgments, half of which are hidden."""
    for kind, slope in (("grades at random", 0.0), ("grades that fall with the rank", 0.12)):
        random, missed = np.random.default_rng(2), 0
        for _ in range(experiments):
            grades = random.binomial(3, np.clip(0.4 + slope * (2 - np.arange(10) / 2), 0, 1), (50, 10))
            scores, hidden = np.tile(-np.arange(10), 50), random.random(500) < 0.5
            known = fn.Rankings.from_groups([10] * 50, grades.ravel(), scores, is_judged=~hidden)
            found = fn.judgment_range(known, "DCG@5", prior="pool", resamples=400).summary().to_pylist()[0]
            whole = fn.Rankings.from_groups([10] * 50, grades.ravel(), scores)
            missed += not found["q2.5"] <= fn.evaluate(whole, "DCG@5").mean()["DCG@5"] <= found["q97.5"]
        yield Row("labels", f"prior of the pool, {kind}", unit="% missed", cpu=100 * missed / experiments)


def rows(*, quick: bool) -> Iterator[Row]:
    yield from of_judges(50 if quick else 6000)
    yield from of_propensities(10 if quick else 600)
    yield from of_rankers(10 if quick else 600)
    yield from of_experiments(20 if quick else 2000)
    yield from drifting(50 if quick else 4000)
    yield from of_samples(20 if quick else 1500)
    yield from of_priors(5 if quick else 400)
