"""Signatures: what they say, what changes them and what does not, and what is refused by them."""

import gc
import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import facts, in_process_of_its_own, only_line, run
from pyarrow import csv, feather

import fastndcg as fn
from fastndcg.scores.signatures import digests_of, fields_of, hashes_of_ids

QUERIES = 60


def table_of(seed=0, **columns):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 9, QUERIES)
    ids = np.repeat([f"q{number}" for number in range(QUERIES)], lengths)
    return pa.table(
        {"qid": ids, "label": random.integers(0, 4, len(ids)), "score": random.random(len(ids))} | columns
    )


def signed(given, measure="nDCG@5", **options):
    return fields_of(fn.evaluate(given, measure, **options).signature(measure))


# ---- digests ----


def test_grades_of_zero_queries_and_ids_are_in_the_digests():
    """A document of grade 0 more, one less, or in another query: other judgments."""
    lists = [[3, 0, 1], [], [2.5, 0.0, 2.5]]
    names = ["a", "", "long \u00e9\u4e16"]
    found = digests_of(fn.Rankings.from_lists(lists, query_ids=names))
    assert (found.kind, found.n_queries, found.n_judgments) == ("returned", 3, 6)
    assert digests_of(fn.Rankings.from_lists([[1, -0.0, 3], [], [0, 2.5, 2.5]], query_ids=names)) == found
    for other in (
        [[3, 1], [0], [2.5, 0, 2.5]],
        [[3, 0, 1, 0], [], [2.5, 2.5]],
        [[3, 0, 1], [], [2.5, 0, 1e300]],
        [[2.5, 0, 2.5], [], [3, 0, 1]],
    ):
        changed = digests_of(fn.Rankings.from_lists(other, query_ids=names))
        assert changed.queries == found.queries and changed.judgments != found.judgments
    assert digests_of(fn.Rankings.from_lists([])).queries == 0
    for number in (0, 7, -1, 10**18, -(2**63), 2**64 - 1):
        kind = pa.uint64() if number == 2**64 - 1 else None
        for ids in (pa.array([number], kind), pa.array([str(number)]).dictionary_encode()):
            assert hashes_of_ids(ids).tolist() == hashes_of_ids(pa.array([str(number)])).tolist()
    assert len({*hashes_of_ids(pa.chunked_array([["a", None], [], ["", "x" * 40, "7", "07"]])).tolist()}) == 6


@pytest.mark.parametrize("block", [1, 7, 1 << 18])
def test_blocks_and_types_change_no_digest(block, monkeypatch):
    table = table_of(3)
    whole = digests_of(fn.Rankings.from_arrow(table))
    monkeypatch.setattr("fastndcg.scores.signatures._BLOCK", block)
    for kind in (pa.int8(), pa.uint8(), pa.uint64(), pa.float32(), pa.float64()):
        typed = table.set_column(1, "label", table["label"].cast(kind))
        assert digests_of(fn.Rankings.from_arrow(typed)) == whole
    rankings = fn.Rankings.from_arrow(table)
    parts = [rankings[start : start + 13] for start in range(0, QUERIES, 13)]
    assert sum(map(digests_of, parts[1:]), digests_of(parts[0])) == whole


def test_functions_of_one_name_have_the_digests_of_their_gains(tmp_path):
    """As in two processes, where each is the first of its name; whole, streamed and in any order."""
    table = table_of()
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=11)
    turned = table.take(pa.array(np.random.default_rng(1).permutation(len(table))))

    def line_of(factor, given):
        def gain(grade):
            return factor * grade if grade < 9 else 1 / 0  # of what does not occur nothing is asked

        measure = fn.nDCG(gain=gain) @ 5
        return fn.evaluate(given, measure).signature(measure)

    line = line_of(2, table)
    assert fields_of(line)["gain"].count(" ") == 1
    for given in (table, turned, fn.scan_parquet(tmp_path / "a.parquet"), tmp_path / "a.parquet"):
        gc.collect()
        assert line_of(2, given) == line
    gc.collect()
    other = fields_of(line_of(3, table))
    assert other | {"gain": ""} == fields_of(line) | {"gain": ""} and other["gain"] != fields_of(line)["gain"]
    assert other["gain"].split()[0] == fields_of(line)["gain"].split()[0]


# ---- what it says ----


def test_a_signature_says_how_a_number_was_made():
    scores = fn.evaluate(table_of(), ["nDCG(gain='exp2')@5", "RR"])
    line = scores.signature("nDCG(gain='exp2')@5")
    assert "\n" not in line and line.startswith("nDCG@5|gain:exp2|discount:log2|ties:average|ideal:judged|")
    said = fields_of(line)
    assert said.keys() >= {"empty", "judged_only", "convention", "unjudged_are", "weighted", "queries"}
    assert said["version"] == fn.__version__ and said["convention"] == "none" and said["weighted"] == "no"
    assert fields_of(scores.signature("RR"))["measure"] == "RR"
    assert scores.signature(fn.nDCG(gain="exp2") @ 5) == line
    with pytest.raises(fn.MeasureError, match="was not evaluated"):
        scores.signature("P@5")
    as_tool = signed(table_of(), convention="lightgbm")
    assert (as_tool["convention"], as_tool["gain"], as_tool["ties"]) == ("lightgbm", "exp2", "input")
    assert signed(table_of(weight=np.ones(len(table_of()))), weight="weight")["weighted"] == "yes"
    odd = fn.evaluate(table_of(), fn.nDCG(gain=lambda grade: grade) @ 5)
    assert len(fields_of(odd.signature(odd.measures[0]))) == odd.signature(odd.measures[0]).count("|") + 1
    judged = np.random.default_rng(1).random(len(table_of())) < 0.5
    some = table_of(judged=judged)
    assert signed(some, is_judged="judged")["unjudged_are"] == "not relevant"
    assert signed(some, "nDCG(judged_only=True)@5", is_judged="judged")["unjudged_are"] == "removed"
    assert signed(some, is_judged="judged")["judgments"].split(":")[1] == str(judged.sum())


def test_what_changes_a_signature_and_what_does_not(tmp_path):
    table = table_of()
    path, other, apart = tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / "c.csv"
    pq.write_table(table, path)
    turned = table.take(pa.array(np.random.default_rng(1).permutation(len(table))))
    pq.write_table(turned, other, row_group_size=11)
    csv.write_csv(turned, apart)
    line = fn.evaluate(table, "nDCG@5").signature("nDCG@5")
    streams = fn.scan_parquet(path), fn.scan_parquet(other), fn.scan_csv(apart)
    for given in (turned, path, other, apart, *streams, turned.to_pandas()):
        assert fn.evaluate(given, "nDCG@5", threads=1).signature("nDCG@5") == line
    other_scores = table.set_column(2, "score", pa.array(np.arange(len(table))))
    assert fn.evaluate(other_scores, "nDCG@5").signature("nDCG@5") == line
    for column, place, value in (("label", 3, 9), ("qid", len(table) - 1, "new")):
        values = table[column].to_pylist()
        values[place] = value
        changed = table.set_column(table.column_names.index(column), column, pa.array(values))
        said, before = signed(changed), fields_of(line)
        assert said["judgments"] != before["judgments"]
        assert (said["queries"] == before["queries"]) == (column == "label")
    again = pickle.loads(pickle.dumps(fn.evaluate(table, "nDCG@5")))
    assert again.signature("nDCG@5") == line
    streamed = fn.evaluate(fn.scan_parquet(path), "nDCG@5")
    assert fields_of(pickle.loads(pickle.dumps(streamed)).signature("nDCG@5"))["judgments"] == "unknown"


def test_a_pool_of_judgments_is_the_same_for_all_runs():
    qrels = {f"q{query}": {f"d{place}": place % 3 for place in range(6)} for query in range(5)}
    runs = [
        {query: {f"d{place}": place * sign for place in range(2 + sign)} for query in qrels}
        for sign in (-1, 1, 3)
    ]
    said = [signed(fn.Rankings.from_qrels_run(qrels, each)) for each in runs]
    assert said[0] == said[1] == said[2] and said[0]["judgments"].startswith("pool:30:")


# ---- stored ----


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_results_are_stored_with_signatures(folder, ending):
    pq.write_table(table_of(), "a.parquet")
    scores = fn.evaluate("a.parquet", ["nDCG@5", "RR@5"])
    expected = {str(measure): scores.signature(measure) for measure in scores}

    def stored():
        table = (pq if ending == "parquet" else feather).read_table(f"out.{ending}")
        return json.loads((table.schema.metadata or {}).get(b"fastndcg.signatures", b"null"))

    shown = facts(f"score a.parquet -m nDCG@5 -m RR@5 --out out.{ending}")
    assert stored() == expected and shown["signatures"] == [*expected.values()]
    assert json.loads(scores.to_arrow().schema.metadata[b"fastndcg.signatures"]) == expected
    assert facts(f"score out.{ending}")["signatures"] == [*expected.values()]
    if ending == "parquet":
        scores.write_parquet("out.parquet")
        assert stored() == expected
        cut = pq.read_table("out.parquet").slice(0, 20)  # other queries: what it says is no longer true
        pq.write_table(cut, "out.parquet")
        told = fields_of(facts("score out.parquet")["signatures"][0])
        assert told["judgments"] == "unknown" and told["queries"].startswith("20:")


def test_a_stream_is_signed_while_it_is_stored(folder, monkeypatch):
    mixed = table_of().take(pa.array(np.random.default_rng(0).permutation(len(table_of()))))
    pq.write_table(mixed, "a.parquet", row_group_size=20)
    line = fn.evaluate("a.parquet", "nDCG@5").signature("nDCG@5")
    monkeypatch.setattr("fastndcg.sources.inputs.IN_MEMORY", 1)
    for out in ("--out out.parquet", ""):
        assert facts(f"score a.parquet -m nDCG@5 {out}")["signatures"] == [line]
    assert json.loads(pq.read_metadata("out.parquet").metadata[b"fastndcg.signatures"]) == {"nDCG@5": line}


def write_runs(grades):
    """Judgments on this scale, in a file of their own, and two runs."""
    grid = [(query, place) for query in range(40) for place in range(6)]
    lines = (f"q{query} 0 d{place} {place % grades}\n" for query, place in grid)
    Path(f"qrels{grades}.txt").write_text("".join(lines))
    for name, step in (("one.txt", 3), ("two.txt", 4)):
        scored = ((query, place, (place * 7 + query * step) % 11) for query, place in grid if place < 5)
        Path(name).write_text(
            "".join(f"q{query} Q0 d{place} 1 {score} r\n" for query, place, score in scored)
        )
    return f"qrels{grades}.txt", "one.txt", "two.txt"


def changed_of(table):
    labels = table["label"].to_pylist()
    labels[5] = 3 - labels[5]
    return table.set_column(1, "label", pa.array(labels))


def test_results_of_other_judgments_are_refused(folder):
    """Stored or not, by files of predictions and by runs; unless they are to be ignored, or nothing is known of them."""
    pytest.importorskip("scipy")
    table = table_of(1)
    changed = changed_of(table)
    for name, each in (("old", table), ("new", changed)):
        pq.write_table(each, f"{name}.parquet")
        assert run(f"score {name}.parquet -m nDCG@5 --out {name}_stored.parquet").exit_code == 0
    for one, other in (("old_stored", "new_stored"), ("old_stored", "new"), ("old", "new_stored")):
        words = f"compare {one}.parquet {other}.parquet -m nDCG@5"
        result = run(words)
        line = only_line(result.stderr)
        said = f'nDCG@5 of "{one}" and "{other}" cannot be compared: judgments is returned:'
        assert result.exit_code == 3 and said in line
        assert line.endswith("or pass --signatures ignore.")
        assert len(facts(f"{words} --signatures ignore")["systems"][0]["signatures"]) == 1
    assert run("compare old_stored.parquet old.parquet -m nDCG@5").exit_code == 0
    live = run("compare old.parquet new.parquet -m nDCG@5")
    assert live.exit_code == 3 and "judgments is returned:" in live.stderr
    assert run("compare new.parquet --baseline old_stored.parquet -m nDCG@5").exit_code == 3
    # results without a signature, as earlier versions and other tools wrote them, are compared as they are
    plain = pq.read_table("old_stored.parquet").replace_schema_metadata(None)
    pq.write_table(plain, "plain.parquet")
    assert run("compare plain.parquet new_stored.parquet").exit_code == 0
    pq.write_table(plain.replace_schema_metadata({b"fastndcg.signatures": b"{"}), "broken.parquet")
    assert in_process_of_its_own("compare", "broken.parquet", "new_stored.parquet").returncode == 0
    # conventions too
    run("score old.parquet -m nDCG@5 --convention lightgbm --out lgb.parquet")
    other = run("compare old_stored.parquet lgb.parquet")
    assert other.exit_code == 3 and "convention is none in one and lightgbm in the other" in other.stderr
    # where queries differ it is not known
    pq.write_table(changed.filter(pa.compute.not_equal(changed["qid"], "q7")), "new.parquet")
    fewer = run("compare old_stored.parquet new.parquet -m nDCG@5 --missing drop")
    said = "have other queries, so that it cannot be known whether they were judged alike"
    assert fewer.exit_code == 0 and said in fewer.stdout


def test_pools_that_differ_are_refused(folder):
    pytest.importorskip("scipy")
    qrels, *runs = write_runs(2)
    other, *_ = write_runs(3)
    one, two, changed = (
        fn.read_trec(qrels, runs[0]),
        fn.read_trec(qrels, runs[1]),
        fn.read_trec(other, runs[1]),
    )
    fn.compare({"one": one, "two": two}, "nDCG@5")
    said = 'nDCG@5 of "one" and "two" cannot be compared: judgments is pool:240:'
    with pytest.raises(fn.InputError, match=said):
        fn.compare({"one": one, "two": changed}, "nDCG@5")
    assert len(fn.compare({"one": one, "two": changed}, "nDCG@5", signatures="ignore").rows) == 1
    with pytest.raises(fn.InputError, match="signatures='yes' is not known"):
        fn.compare({"one": one, "two": two}, "nDCG@5", signatures="yes")
    assert run(f"score --qrels {qrels} {' '.join(runs)} -m nDCG@5 --out both.parquet").exit_code == 0
    kept = json.loads(pq.read_schema("both.parquet").metadata[b"fastndcg.signatures"])
    assert kept.keys() == {"one", "two"} and kept["one"] == kept["two"] != {}
    assert run(f"compare both.parquet --qrels {qrels} {runs[0]} -m nDCG@5").exit_code != 1
    assert run("compare both.parquet").exit_code == 0


def test_systems_that_were_just_evaluated_are_refused_too():
    """Where their conventions differ, or their judgments of the same documents; not where they returned others."""
    pytest.importorskip("scipy")
    table = table_of(1)
    changed = changed_of(table)
    scored = {
        "a": fn.evaluate(table, "nDCG@5"),
        "b": fn.evaluate(changed, "nDCG@5"),
        "tool": fn.evaluate(table, "nDCG@5", convention="lightgbm"),
    }
    for other, what in (("b", "judgments"), ("tool", "convention")):
        pair = {"a": scored["a"], other: scored[other]}
        with pytest.raises(fn.InputError, match=f"cannot be compared: {what} is"):
            fn.compare(pair)
        assert len(fn.compare(pair, signatures="ignore").rows) == 1
    docs = [f"d{row}" for row in range(len(table))]
    a, b, new = (
        fn.evaluate(each.append_column("doc_id", [ids]), "nDCG@5", doc_id="doc_id")
        for each, ids in ((table, docs), (changed, docs), (changed, ["new", *docs[1:]]))
    )
    with pytest.raises(fn.InputError, match="judgments is"):
        fn.compare({"a": a, "b": b})
    assert len(fn.compare({"a": a, "b": new}).rows) == 1
    lists = [[[1, 0], [0, 2]], [[1, 1], [0, 2]]]  # of equal length: they may be of other documents
    both = {str(place): fn.Rankings.from_lists(each) for place, each in enumerate(lists)}
    assert len(fn.compare(both, "nDCG@2").rows) == 1
