"""catalogue: which items users are shown, against slow Python and against what other tools found."""

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run

import fastndcg as fn

pytestmark = pytest.mark.pure


def slow(lists, n_items, counts=None, total=0, seen=None, categories=None, vectors=None, tail=0.1, unseen=1):
    """Every row, from its formula. Lists hold the first k items of each user."""
    lists = {user: items for user, items in lists.items() if items}
    shown = Counter(item for items in lists.values() for item in items)
    every, whole = sorted([0] * (n_items - len(shown)) + list(shown.values())), sum(shown.values())
    found = {
        "coverage": len(shown) / n_items,
        "gini": sum((2 * rank - n_items - 1) * c for rank, c in enumerate(every, 1)) / (n_items * whole),
        "entropy": -sum(c / whole * math.log2(c / whole) for c in shown.values()),
    }
    alike = [
        len(set(a) & set(b)) / math.sqrt(len(a) * len(b))
        for a, b in itertools.combinations(lists.values(), 2)
    ]
    found["personalisation"] = 1 - sum(alike) / len(alike) if alike else math.nan

    def over_users(value):
        values = [value(user, items) for user, items in lists.items()]
        values = [each for each in values if not math.isnan(each)]
        return sum(values) / len(values)

    def over_items(value):
        def of(_, items):
            values = [each for item in items if not math.isnan(each := value(item))]
            return sum(values) / len(values) if values else math.nan

        return over_users(of)

    if counts is not None:
        known = set(counts) | set(shown)
        numbers = sorted([counts.get(item, 0) for item in known] + [0] * (n_items - len(known)))
        room = tail * len(numbers)

        def in_tail(item):
            count = counts.get(item, 0)
            if tail >= 1:
                return float(count <= tail)
            before, alike = sum(each < count for each in numbers), numbers.count(count)
            return min(max(room - before, 0), alike) / alike

        def bits(item):
            count = counts.get(item, 0) or unseen
            return math.nan if count is None else -math.log2(count / total)

        found["popularity"] = over_items(lambda item: counts.get(item, 0))
        found["tail_share"] = over_items(in_tail)
        found["novelty"] = over_items(bits)
        found["surprise"] = found["novelty"] / math.log2(total)
    if seen is not None:
        found["seen"] = over_users(
            lambda user, items: sum(item in seen.get(user, ()) for item in items) / len(items)
        )

    def diversity(distance):
        def of(_, items):
            pairs = [distance(a, b) for a, b in itertools.combinations(items, 2)]
            return sum(pairs) / len(pairs) if pairs else 0.0

        return over_users(of)

    if categories is not None:
        found["category_diversity"] = diversity(
            lambda a, b: (
                1 - len(categories[a] & categories[b]) / len(categories[a] | categories[b])
                if categories[a] | categories[b]
                else 0.0
            )
        )
    if vectors is not None:

        def cosine(a, b):
            one, other = np.array(vectors[a]), np.array(vectors[b])
            size = math.sqrt(one @ one) * math.sqrt(other @ other)
            return 1 - (float(one @ other) / size if size else 0.0)

        found["vector_diversity"] = diversity(cosine)
    return found


class Case:
    """Ragged lists of ids, a history, and items, by a seed."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.n_items = int(rng.integers(8, 30))
        name = (lambda i: f"item {i}") if seed % 2 else int
        self.ids = [name(i) for i in range(self.n_items)]
        self.k = int(rng.integers(1, 7))
        self.lists: dict[Any, list[Any]] = {}
        rows = []
        for user in range(int(rng.integers(2, 20))):
            length = int(rng.integers(0 if user > 1 else 1, self.n_items))
            chosen = rng.permutation(self.n_items)[:length]
            self.lists[user] = [self.ids[i] for i in chosen[: self.k]]
            scores = np.sort(rng.random(length))[::-1]
            order = rng.permutation(length)
            rows += [(user, self.ids[chosen[at]], 0, float(scores[at]), "ab"[user % 2]) for at in order]
        names = ("user_id", "item_id", "label", "score", "side")
        self.table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
        self.users = [user for user in self.lists if self.lists[user]]
        history = [
            (int(rng.integers(0, 25)), self.ids[int(rng.integers(self.n_items) ** 2 // self.n_items)])
            for _ in range(60)
        ]
        self.history = pa.table({"user_id": [u for u, _ in history], "item_id": [i for _, i in history]})
        self.seen: dict[Any, set[Any]] = {}
        for user, item in history:
            self.seen.setdefault(user, set()).add(item)
        self.counts = dict(Counter(item for items in self.seen.values() for item in items))
        self.categories = {
            item: set(rng.choice(list("abcd"), rng.integers(0, 4)).tolist()) for item in self.ids
        }
        self.vectors = {item: rng.integers(-2, 3, 3).astype(float).tolist() for item in self.ids}
        self.items = pa.table(
            {
                "item_id": self.ids,
                "genres": [sorted(self.categories[item]) for item in self.ids],
                "embedding": [self.vectors[item] for item in self.ids],
            }
        )

    def wanted(self, lists=None, **words):
        return slow(
            self.lists if lists is None else lists, self.n_items, self.counts, len(self.seen), self.seen,
            self.categories, self.vectors, **words,
        )  # fmt: skip


def values_of(table):
    return dict(zip(table["measure"].to_pylist(), table["value"].to_pylist(), strict=True))


def same(got, wanted):
    assert list(got) == list(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("seed", range(12))
def test_against_slow_python(seed):
    case = Case(seed)
    for words in ({}, {"tail": 0.4}, {"tail": 2}, {"unseen": None}, {"unseen": 2}):
        found = fn.catalogue(case.table, case.items, case.history, case.k, **words)
        same(values_of(found), case.wanted(**words))


@pytest.mark.parametrize("seed", range(4))
def test_slices_are_the_same_of_their_users(seed):
    case = Case(seed)
    found = fn.catalogue(case.table, case.items, case.history, case.k, by="side")
    for side in set(found["side"].to_pylist()):
        rows = [row for row in found.to_pylist() if row["side"] == side]
        own = {user: items for user, items in case.lists.items() if "ab"[user % 2] == side}
        got = {row["measure"]: row["value"] for row in rows}
        if any(own.values()):
            same(got, case.wanted(own))


@pytest.mark.parametrize("seed", range(4))
def test_streams_have_the_same_bits(seed, tmp_path):
    case = Case(seed)
    pq.write_table(case.table, tmp_path / "lists.parquet", row_group_size=7)
    whole = fn.catalogue(case.table, case.items, case.history, case.k, confidence=0.9)
    stream = fn.scan_parquet(tmp_path / "lists.parquet", doc_id="item_id")
    assert fn.catalogue(stream, case.items, case.history, case.k, confidence=0.9).equals(whole.to_arrow())


def test_what_rectools_and_replay_found():
    """RecTools 0.19.0: CatalogCoverage, AvgRecPopularity, MeanInvUserFreq, IntraListDiversity of Hamming distances, which
    are 2 for items of different categories; RePlay 0.22.0: Surprisal, 1 - Novelty. k = 3.
    """
    lists = [
        [2, 10, 8, 1, 6], [10, 9, 4, 7, 2], [1, 4, 10, 5, 6], [9, 2, 4, 8, 11], [0, 8, 4, 6, 7], [8, 10, 6, 0, 4],
        [7, 8, 5, 4, 6], [11, 4, 2, 10, 0],
    ]  # fmt: skip
    history = [
        [3, 5], [1, 3], [5, 9], [5, 4], [7, 7], [7, 9], [0, 7], [1, 8], [4, 0], [6, 1], [7, 0], [5, 5], [0, 4], [3, 9],
        [6, 2], [4, 1], [5, 3], [5, 2], [0, 5], [2, 0], [2, 6], [5, 6], [5, 8], [3, 7], [2, 5], [6, 9], [7, 4], [1, 1],
        [1, 5], [3, 1], [2, 1], [3, 6], [2, 4],
    ]  # fmt: skip
    rankings = fn.Rankings.from_lists([[0] * 5] * 8, doc_ids=[item for each in lists for item in each])
    train = {"user_id": [user for user, _ in history], "item_id": [item for _, item in history]}
    items = {"item_id": list(range(15)), "category": [str(i % 3) for i in range(15)]}
    found = values_of(fn.catalogue(rankings, items, train, 3))
    theirs = {
        "coverage": 0.7333333333333333, "popularity": 2.541666666666667, "novelty": 1.7333856795025753,
        "category_diversity": 1.4166666666666665 / 2, "surprise": 0.5777952265008583, "seen": 1 - 0.7083333333333334,
    }  # fmt: skip
    for name, value in theirs.items():
        assert found[name] == pytest.approx(value, rel=1e-12), name


def test_what_is_shown_of_the_catalogue():
    """Even lists, one list for all, and laws of the rest."""
    apart = fn.Rankings.from_lists([[0, 0], [0, 0]], doc_ids=["a", "b", "c", "d"])
    assert values_of(fn.catalogue(apart)) == {
        "coverage": 1.0,
        "gini": 0.0,
        "entropy": 2.0,
        "personalisation": 1.0,
    }
    alike = fn.Rankings.from_lists([[0], [0], [0]], doc_ids=["a", "a", "a"])
    found = values_of(fn.catalogue(alike, items=4))
    assert found == {"coverage": 0.25, "gini": 0.75, "entropy": 0.0, "personalisation": 0.0}
    assert math.isnan(values_of(fn.catalogue(alike[:1]))["personalisation"])
    # without items, all documents of the lists are the catalogue
    assert values_of(fn.catalogue(apart, k=1))["coverage"] == 0.5
    assert values_of(fn.catalogue(apart, items=np.array(["a", "b", "c", "d", "e"])))["coverage"] == 0.8
    # a mapping of counts: no users, so bits are of interactions
    found = values_of(fn.catalogue(apart, train={"a": 1, "b": 1, "c": 2, "e": 4}, k=2))
    assert found["popularity"] == 1.0
    assert found["novelty"] == pytest.approx((3 + 3 + 2 + 3) / 4)
    assert "seen" not in found


def test_intervals_are_around_their_values():
    case = Case(3)
    found = fn.catalogue(case.table, case.items, case.history, case.k, confidence=0.9, seed=4).to_pylist()
    wide = fn.catalogue(case.table, case.items, case.history, case.k, confidence=0.99, seed=4).to_pylist()
    for row, other in zip(found, wide, strict=True):
        assert other["low"] <= row["low"] <= row["value"] <= row["high"] <= other["high"], row
    assert sum(row["low"] < row["high"] for row in found) > 5
    again = fn.catalogue(case.table, case.items, case.history, case.k, confidence=0.9, seed=4)
    assert again.to_pylist() == found


@pytest.mark.compiled
def test_intervals_hold_the_value_of_all_users():
    """Of samples of 150 of 4,000 users, 95 % intervals of what is a mean, or smooth, hold the value of all users."""
    rng = np.random.default_rng(5)
    popular = np.exp(rng.normal(size=60))
    lists = [rng.choice(60, 5, replace=False, p=popular / popular.sum()) for _ in range(4000)]
    train = {f"{i}": int(100 * popular[i]) + 1 for i in range(60)}

    def of(users, **words):
        ids = [f"{item}" for user in users for item in lists[user]]
        return fn.catalogue(
            fn.Rankings.from_lists([[0] * 5] * len(users), doc_ids=ids), 60, train, 5, **words
        ).to_pylist()

    whole = {row["measure"]: row["value"] for row in of(range(4000))}
    held = Counter()
    for seed in range(60):
        for row in of(rng.choice(4000, 150, replace=False), confidence=0.95, resamples=100, seed=seed):
            held[row["measure"]] += row["low"] <= whole[row["measure"]] <= row["high"]
    for name in ("popularity", "novelty", "surprise", "personalisation"):
        assert held[name] >= 51, held


def test_ids_of_the_catalogue_stand_in_whatever_has_one_after_the_other():
    import pandas as pd
    import polars as pl

    rankings = fn.Rankings.from_lists([[1, 0], [0, 1]], doc_ids=[1, 2, 1, 3])
    wanted = fn.catalogue(rankings, items=4).to_pylist()
    for ids in ([1, 2, 3, 4], (1, 2, 3, 4), range(1, 5), {1, 2, 3, 4}, np.arange(1, 5), pa.array([1, 2, 3, 4]),
                pd.Series([1, 2, 3, 4]), pl.Series([1, 2, 3, 4])):  # fmt: skip
        assert fn.catalogue(rankings, items=ids).to_pylist() == wanted
    with pytest.raises(fn.InputError, match="not among the 0 of items"):
        fn.catalogue(rankings, items=[])


def test_ranks_and_tied_scores():
    table = {"user": ["u", "v", "u", "v"], "item": ["a", "b", "c", "d"], "rank": [2, 1, 1, 2]}
    assert values_of(fn.catalogue(table, items=4, k=1))["coverage"] == 0.5
    by_score = {"user": ["u", "u"], "item": ["a", "b"], "score": np.array([5, 5], np.uint8), "rank": [2, 1]}
    train = {"a": 1, "b": 3}
    assert (
        values_of(fn.catalogue(by_score, train=train, k=1))["popularity"] == 1.0
    )  # tied: in the order of the data
    assert values_of(fn.catalogue(by_score, train=train, k=1, rank="rank"))["popularity"] == 3.0


def test_what_is_refused():
    mixed = {"user": ["u", "u"], "item": ["a", "b"], "score": [1.0, 2.0], "country": ["de", "fr"]}
    with pytest.raises(fn.InputError, match='column "country" has several values for a user'):
        fn.catalogue(mixed, by="country")
    with pytest.raises(fn.ColumnError, match="no column has a usual name of the score"):
        fn.catalogue({"user": ["u"], "item": ["a"]})
    rankings = fn.Rankings.from_lists([[1, 0]], doc_ids=["a", "b"])
    with pytest.raises(
        fn.InputError, match="no doc_ids, and the catalogue is a matter of items; name their column"
    ):
        fn.catalogue(fn.Rankings.from_lists([[1, 0]]))
    with pytest.raises(fn.InputError, match="items=1, but 2 different items are recommended"):
        fn.catalogue(rankings, items=1)
    with pytest.raises(fn.InputError, match='item "b" is recommended and not among the 1 of items; add it'):
        fn.catalogue(rankings, items={"item_id": ["a"]})
    with pytest.raises(fn.InputError, match="k=0 is no whole number from 1"):
        fn.catalogue(rankings, k=0)
    with pytest.raises(fn.InputError, match="tail=-1 is no share"):
        fn.catalogue(rankings, tail=-1)
    with pytest.raises(
        fn.ColumnError, match="neither counts of its items nor users; the columns are item_id, when"
    ):
        fn.catalogue(rankings, train={"item_id": ["a"], "when": [1.0]})
    with pytest.raises(fn.ColumnError, match='no column "country"'):
        fn.catalogue(rankings, by="country")
    with pytest.raises(fn.InputError, match="vectors are of several lengths"):
        fn.catalogue(rankings, items={"item_id": ["a", "b"], "vector": [[1.0], [1.0, 2.0]]})
    with pytest.raises(fn.InputError, match="counts that are no numbers from 0"):
        fn.catalogue(rankings, train={"a": -1})
    with pytest.raises(fn.InputTypeError, match="is for tables and paths; Rankings already has its columns"):
        fn.catalogue(rankings, doc_id="item")


def test_the_command(tmp_path):
    case = Case(5)
    for name, table in (("lists", case.table), ("items", case.items), ("train", case.history)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    words = ["--items", tmp_path / "items.parquet", "--train", tmp_path / "train.parquet", "-k", case.k]
    result = run("catalogue", tmp_path / "lists.parquet", *words, "--format", "csv")
    assert result.exit_code == 0, result.output
    got = dict(line.split(",") for line in result.stdout.splitlines()[1:])
    same({name: float(value) for name, value in got.items()}, case.wanted())
    assert "vector_diversity" in run("catalogue", tmp_path / "lists.parquet", *words, "--by", "side").stdout
    assert run("catalogue", tmp_path / "lists.parquet", "--items", 1).exit_code == 3


def test_the_report_has_it(tmp_path, undrawn):
    pytest.importorskip("altair", reason="the extra report is not installed")
    rankings = fn.Rankings.from_lists(
        [[1, 0], [0, 1]], doc_ids=["a", "b", "a", "c"], queries={"country": ["de", "fr"]}
    )
    fn.report({"one": rankings}, tmp_path / "page.html", by="country", items=5, train={"a": 3, "b": 1})
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for word in ("What users are shown", "Items by country", "personalisation", "tail_share"):
        assert word in page
    without = fn.Rankings.from_lists([[1, 0], [0, 1]])
    fn.report({"one": without}, tmp_path / "other.html", items=5)
    assert "the rankings have no doc_ids" in (tmp_path / "other.html").read_text(encoding="utf-8")
    fn.report({"one": rankings}, tmp_path / "plain.html")
    assert "What users are shown" not in (tmp_path / "plain.html").read_text(encoding="utf-8")
