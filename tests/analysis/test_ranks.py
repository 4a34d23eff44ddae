"""Ranks of systems: intervals that hold at once, and groups that cannot be told apart."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import facts, run
from systems import drawn, scores_of

import fastndcg as fn
from fastndcg.analysis.comparison import letters_of

stats = pytest.importorskip("scipy.stats")


def systems(values, **columns):
    return {f"s{place}": scores_of(each, **columns) for place, each in enumerate(values)}


def some(seed, n=60, k=5, step=0.03):
    return drawn(seed, n, k) + np.random.default_rng(seed).permutation(k)[:, None] * step


def by_system(table):
    return {row["system"]: row for row in table.to_pylist()}


def of_definition(values, alpha=0.05):
    """Rank and interval of each system: paired t-tests of SciPy, with Holm's correction, counted."""
    pairs = list(itertools.combinations(range(len(values)), 2))
    p = [float(stats.ttest_rel(values[one], values[other]).pvalue) for one, other in pairs]
    rejected = []
    for place, which in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[which] * (len(p) - place) > alpha:
            break
        rejected.append(pairs[which])
    means = values.mean(axis=1)
    found = {}
    for system, mean in enumerate(means):
        below = above = 0
        for pair in rejected:
            if system in pair:
                (other,) = set(pair) - {system}
                above, below = above + (means[other] > mean), below + (means[other] < mean)
        found[f"s{system}"] = (1 + int((means > mean).sum()), 1 + above, len(values) - below)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_intervals_are_those_of_the_definition(seed):
    values = some(seed)
    drawn = {"baseline": "s0", "interval": "bca", "resamples": 200}
    for options in ({}, {"baseline": "s2"}, {"correction": "bh"}, drawn):
        rows = by_system(fn.compare(systems(values), **options).ranks())
        found = {name: (row["rank"], row["low"], row["high"]) for name, row in rows.items()}
        assert found == of_definition(values)


@pytest.mark.parametrize(
    "options",
    [{}, {"test": "randomisation"}, {"correction": "bh"}, {"cluster": "c"}],
)
def test_laws(options):
    values = some(3, n=40)
    values[4] = values[1]
    values[0, 7] = values[0, 3]
    options = {"resamples": 2_000, **options}
    columns = {"queries": {"c": np.arange(40) // 2}, "weight": 1.0 + np.arange(40) % 3}
    compared = fn.compare(systems(values, **columns), **options)
    rows = by_system(compared.ranks())
    assert list(rows) == sorted(rows, key=lambda name: rows[name]["rank"])
    assert all(1 <= row["low"] <= row["rank"] <= row["high"] <= 5 for row in rows.values())
    alike = [{name: value for name, value in rows[one].items() if name != "system"} for one in ("s1", "s4")]
    assert alike[0] == alike[1]
    # neither the order of queries, nor that of systems, nor the baseline changes anything
    order = np.random.default_rng(0).permutation(40)
    turned = {f"s{place}": scores_of(each[order], query_ids=order, weight=columns["weight"][order],
                                     queries={"c": order // 2}) for place, each in reversed(list(enumerate(values)))}  # fmt: skip
    assert by_system(fn.compare(turned, baseline="s3", **options).ranks()) == rows
    # a scale changes no rank
    scaled = by_system(fn.compare(systems(values / 4, **columns), **options).ranks())
    assert scaled == rows
    # more confidence makes no interval narrower
    wide = by_system(fn.compare(systems(values, **columns), confidence=0.999, **options).ranks())
    assert all(
        wide[name]["low"] <= row["low"] and row["high"] <= wide[name]["high"] for name, row in rows.items()
    )


def test_groups_are_the_pairs_that_are_not_apart():
    random = np.random.default_rng(0)
    for k in (1, 2, 3, 8, 30):
        names = [f"s{place}" for place in range(k)]
        for share in (0, 0.3, 0.7, 1):
            apart = {pair for pair in itertools.combinations(names, 2) if random.random() < share}
            groups = letters_of(names, apart)
            letters = {name: _letters(text) for name, text in groups.items()}
            for pair in itertools.combinations(names, 2):
                assert bool(letters[pair[0]] & letters[pair[1]]) == (pair not in apart)
            assert all(letters.values())
    assert set(letters_of(list("abc"), set()).values()) == {"A"}
    assert letters_of(list("abc"), set(itertools.combinations("abc", 2))) == {"a": "A", "b": "B", "c": "C"}


def _letters(text):
    singles = set(text.partition("(")[0])
    return singles | set(text[len(text.partition("(")[0]) :].strip("()").split(")(")) - {""}


def test_what_is_not_known():
    """Few queries tell nothing apart; a mean that is NaN has no rank, and a system without queries neither."""
    one = fn.compare(systems(np.array([[0.1], [0.5], [0.9]]))).ranks()
    assert one["low"].to_pylist() == [1, 1, 1] and one["high"].to_pylist() == [3, 3, 3]
    assert one["rank"].to_pylist() == [1, 2, 3] and one["group"].to_pylist() == ["A"] * 3
    values = some(0)
    values[1, 3] = math.nan
    unknown = by_system(fn.compare(systems(values)).ranks())
    assert list(unknown)[-1] == "s1"
    assert [unknown["s1"][name] for name in ("rank", "low", "high")] == [None, 1, 5]
    none = fn.compare(systems(np.zeros((3, 0)))).ranks()
    assert none["rank"].to_pylist() == [None] * 3 and none["high"].to_pylist() == [3] * 3
    apart = fn.compare(
        {"a": scores_of([0.1, 0.2, 0.1]), "b": scores_of([0.9, 0.8, 0.9])}, paired=False
    ).ranks()
    assert apart["high"].to_pylist() == [1, 2]


def test_tables_have_ranks(tmp_path, monkeypatch):
    """Several measures name theirs; LaTeX, Markdown and the command line show what `ranks` returns."""
    random = np.random.default_rng(0)
    grades = random.integers(0, 4, (80, 12))
    table = {"qid": np.repeat(np.arange(80), 12), "label": grades.ravel()}
    columns = {name: (grades + random.normal(0, noise, grades.shape)).ravel() for name, noise in
               {"bm_25": 3.0, "dense": 2.9, "rerank": 0.5}.items()}  # fmt: skip
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(table | columns), "all.parquet")
    rankings = {name: fn.Rankings.from_dense(grades, each.reshape(80, 12)) for name, each in columns.items()}
    compared = fn.compare(rankings, ["nDCG@5", "P@3"])
    ranks = compared.ranks()
    assert ranks.column_names == ["measure", "system", "rank", "low", "high", "group"]
    assert fn.compare(rankings, "P@3").ranks().column_names == ranks.column_names[1:]
    best = next(line for line in compared.to_markdown(ranks=True).splitlines() if "rerank" in line)
    assert best.count("1 to 1, A") == 2 and "rank |" in compared.to_markdown(ranks=True)
    latex = compared.to_latex(ranks=True)
    assert "{llrlrl}" in latex and " & 1 to 1, A" in latex and "bm\\_25" in latex and "\n% rank: " in latex
    line = f"compare all.parquet {' '.join(f'--score={name}' for name in columns)} -m nDCG@5 -m P@3"
    assert "\n\nmeasure  system  rank  low  high  group\n" in run(f"{line} --ranks").stdout
    assert facts(f"{line} --ranks")["ranks"] == ranks.to_pylist() and "ranks" not in facts(line)
    for kind, start in (
        ("csv", ",".join(ranks.column_names) + "\n"),
        ("markdown", compared.to_markdown(ranks=True)),
        ("latex", compared.to_latex(ranks=True)),
    ):
        assert run(f"{line} --ranks --format {kind}").stdout.startswith(start)


def test_intervals_hold_at_once():
    """In 95 % of experiments or more, all true ranks of five systems lie in their intervals; two of them are equal."""
    random, truth = np.random.default_rng(1), np.array([0.0, 0.0, 0.03, 0.06, 0.2])
    lowest, highest = [4, 4, 3, 2, 1], [5, 5, 3, 2, 1]
    held = 0
    for _ in range(300):
        values = truth[:, None] + random.normal(0, 0.2, (5, 50))
        rows = by_system(fn.compare(systems(values), resamples=100).ranks())
        held += all(
            rows[f"s{place}"]["low"] <= lowest[place] and highest[place] <= rows[f"s{place}"]["high"]
            for place in range(5)
        )
    assert held >= 300 * 0.95 - 3 * math.sqrt(300 * 0.95 * 0.05)
