"""Gates with three verdicts, in Python and from the command line."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run
from systems import compared, drawn, scores_of

import fastndcg as fn


def one(a, b, margin, **options):
    (row,) = compared(a, b, **options).verdicts("a", margin).to_pylist()
    return dict(row)


def test_a_verdict_is_where_the_interval_lies():
    a, b = drawn(3, 80)
    ends = compared(a, b).rows[0]
    low, high = ends["low"], ends["high"]
    b = b - (high + 0.01)  # worse for sure
    worse = compared(a, b)
    low, high = worse.rows[0]["low"], worse.rows[0]["high"]
    assert low < high < 0
    for margin, verdict in (
        (-low, "holds"),
        (-low * 0.999, "undecided"),
        (-high, "undecided"),
        (-high * 0.999, "fails"),
        (0, "fails"),
    ):
        row = one(a, b, margin)
        assert row["verdict"] == verdict and (row["low"], row["high"]) == (low, high)
        assert worse.no_worse_than("a", margin) == {"nDCG@1": verdict == "holds"}
        assert (row["needed"] is None) == (verdict != "undecided")
        # the same of the pair in the other direction
        (turned,) = fn.compare({"b": scores_of(b), "a": scores_of(a)}).verdicts("a", margin).to_pylist()
        assert turned == row
    for n, margin, verdict in ((1, 0.2, "undecided"), (3, 0.2, "holds"), (3, 0.05, "fails")):
        row = one([0.5] * n, [0.4] * n, margin)
        assert (row["verdict"], row["needed"]) == (verdict, None)


@pytest.mark.parametrize("seed", range(6))
def test_so_many_queries_decide(seed):
    """With as many queries of the same mean and spread the gate decides, and with a tenth less it does not."""
    random = np.random.default_rng(seed)
    a = random.normal(0.5, 0.1, 60)
    b = a + random.normal(0.01, 0.05, 60)
    row = one(a, b, 0.0)
    if row["verdict"] != "undecided":
        b -= row["difference"] - 0.004
        row = one(a, b, 0.0)
    assert row["verdict"] == "undecided" and row["needed"] > 60
    differences = b - a

    def decides(n):
        copies = np.resize((differences - differences.mean()) / differences.std(), n)
        copies = (copies - copies.mean()) / copies.std() * differences.std(ddof=1) + differences.mean()
        return one(np.zeros(n), copies, 0.0)["verdict"] != "undecided"

    assert decides(math.ceil(row["needed"] * 1.01)) and not decides(int(row["needed"] * 0.9))


# ---- the command line ----


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(5)
    grades = random.integers(0, 4, (90, 8))
    for name, noise in (("base", 2.0), ("new", 2.1)):
        scores = grades + random.normal(0, noise, grades.shape)
        columns = np.repeat(np.arange(90), 8), grades.ravel(), scores.ravel()
        pq.write_table(pa.table([*columns], ["qid", "label", "score"]), f"{name}.parquet")


GATE = "compare base.parquet new.parquet -m nDCG@5 --no-worse-than base --margin"


def test_three_verdicts_of_the_command(files):
    scored = {name: fn.evaluate(f"{name}.parquet", "nDCG@5") for name in ("base", "new")}
    row = fn.compare(scored).rows[0]
    assert row["low"] < -0.001 < row["high"] and row["high"] > 0
    undecided = run(f"{GATE} 0.001")
    needed = fn.compare(scored).verdicts("base", 0.001)["needed"][0].as_py()
    said = f"90 queries): undecided; about {needed:,} such queries would decide"
    assert undecided.exit_code == 1 and undecided.stderr.splitlines()[-1].endswith(said)
    passes = run(f"{GATE} 0.001 --undecided pass")
    assert passes.exit_code == 0 and passes.stderr == undecided.stderr and passes.stdout == undecided.stdout
    assert run(f"{GATE} 0.001 --undecided fail").exit_code == 1
    assert run(f"{GATE} {0.001 - row['low']}").exit_code == 0
    # a loss for sure
    turned = pq.read_table("new.parquet")
    pq.write_table(turned.set_column(2, "score", pa.compute.negate(turned["score"])), "new.parquet")
    fails = run(f"{GATE} 0.001 --undecided pass --format json")
    assert fails.exit_code == 1 and fails.stderr.splitlines()[-1].endswith("90 queries): fails")
    shown = json.loads(fails.stdout)["gate"]
    assert [each["verdict"] for each in shown["verdicts"]] == ["fails"] and len(shown["failed"]) == 1
    assert shown["verdicts"][0]["high"] < -0.001


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--undecided pass", "--undecided needs --no-worse-than"),
        ("--no-worse-than base --undecided hold", "'hold' is not one of 'fail', 'pass'"),
    ],
)
def test_gates_that_are_refused(files, words, message):
    result = run(f"compare base.parquet new.parquet {words}")
    assert result.exit_code == 2 and message in result.stderr


def test_a_gate_of_nothing_and_a_huge_margin():
    nothing = fn.Rankings.from_lists([[0, 0]] * 3)
    found = fn.compare({"a": nothing, "b": nothing}, "nDCG(empty='skip')@10")
    (row,) = found.verdicts("a", 0.1).to_pylist()
    assert row["verdict"] == "undecided" and row["queries"] == 0
    assert all(math.isnan(row[name]) for name in ("difference", "low", "high"))
    with pytest.raises(fn.InputError, match="is not a loss to accept"):
        found.verdicts("a", 10**400)


def test_a_gate_names_slices_as_tables_do(tmp_path):
    """A query without a country, and one whose country is the text `null`, stand in different gates."""
    table = {"qid": np.repeat(np.arange(9), 2), "label": [1, 0] * 9, "good": [1, 0] * 9, "bad": [0, 1] * 9}
    country = np.repeat(np.array([None, "null", ""] * 3, object), 2)
    pq.write_table(pa.table(table | {"country": country}), tmp_path / "s.parquet")
    words = ("--score", "good", "--score", "bad", "-m", "RR", "--by", "country", "--no-worse-than", "good")
    said = run("compare", tmp_path / "s.parquet", *words).stderr
    assert all(f"where country{name} may lose" in said for name in (" is null", '="null"', '=""'))


def test_small_slices_never_fail_and_undecided_ones_may_pass(tmp_path):
    """The new system wins in fr, loses each of three queries in se, and wins and loses as many in de."""
    country = np.repeat(["fr", "de", "se"], [400, 40, 3])
    new_wins = (country == "fr") | ((country == "de") & (np.arange(443) % 2 > 0))
    columns = {"qid": np.repeat(np.arange(443), 2), "country": np.repeat(country, 2), "label": [1, 0] * 443}
    columns["base"] = np.stack([~new_wins, new_wins], 1).ravel() * 1.0
    columns["new"] = 1 - columns["base"]
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    words = ("compare", tmp_path / "s.parquet", "--score", "base", "--score", "new", "-m", "RR")
    gate = (*words, "--no-worse-than", "base", "--by", "country")  # fmt: skip
    small = "has 3 queries, fewer than --least-queries 4"
    for more, code, of_se in (
        ("", 1, "fails"),
        ("--undecided pass", 1, "fails"),
        ("--least-queries 3 --undecided-slices pass", 1, "fails"),
        ("--least-queries 4", 1, small),
        ("--least-queries 4 --undecided-slices pass", 0, small),
        ("--least-queries 4 --undecided pass --undecided-slices fail", 1, small),
    ):
        done = run(*gate, *more.split())
        assert done.exit_code == code and "country=de has" not in done.stderr, more
        for name, said in (("de", ": undecided"), ("se", of_se)):
            assert any(f"country={name} " in line and said in line for line in done.stderr.splitlines()), more
    compared = fn.compare(
        {
            name: fn.evaluate(tmp_path / "s.parquet", "RR", score=name, keep="country")
            for name in ("base", "new")
        }
    )
    found = {
        key: each.verdicts("base", least_queries=4)["verdict"][0].as_py()
        for (key,), each in compared.slices("country").items()
    }
    assert found == {"fr": "holds", "de": "undecided", "se": "undecided"}
    for word in ("--least-queries", "--undecided-slices"):
        value = "3" if word == "--least-queries" else "pass"
        for these, said in ((words, "needs --no-worse-than NAME"), (gate[:-2], "needs --by COLUMN")):
            refused = run(*these, word, value)
            assert refused.exit_code == 2 and f"{word} {said}" in refused.stderr
