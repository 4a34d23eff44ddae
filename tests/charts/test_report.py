"""The page of `report`: what it says first, that its numbers are those of the package, and that names stay text."""

import html
import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run
from systems import HOSTILE, UNSEEN, systems_of

import fastndcg as fn
from fastndcg.analysis.report import history_page

pytest.importorskip("altair")
pytest.importorskip("vl_convert")


def written(path, *arguments, **options):
    fn.report(*arguments[:1], path, **options)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    source = {"bm25": f"a.parquet {HOSTILE}"}
    return written(path, systems_of(), measures=["nDCG@10", "RR"], by="country", sources=source)


def texts_of(page, tags="td|p|li|h1|h2|h3|summary"):
    """The texts of a page as they are seen, without tags inside them."""
    found = re.findall(rf"<({tags})\b[^>]*>(.*?)</\1>", page)
    return [
        html.unescape(re.sub("<[^>]*>", "", text)).replace("\N{NO-BREAK SPACE}", " ") for _, text in found
    ]


def parsed(page):
    """The tags of a page, and the names and values of their attributes, as a browser reads them."""
    tags, attributes = set(), []

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.add(tag)
            attributes.extend(attrs)

    Parser().feed(page)
    return tags, attributes


def names_of(page):
    return re.findall('<section id="([a-z]+)">', page)


# ---- the answer ----


def systems(better=0.0, **options):
    """Two systems over queries of which the second ranks some higher."""
    random = np.random.default_rng(0)
    grades = random.integers(0, 3, (200, 10))
    offsets = np.arange(201) * 10
    old = fn.Rankings.from_offsets(offsets, grades.ravel(), random.random(grades.size), **options)
    return {"old": old, "new": old.with_scores(old.scores + better * grades.ravel())}


def by_chance():
    """Two systems that rank at random."""
    old = systems()["old"]
    return {"old": old, "new": old.with_scores(np.random.default_rng(1).random(old.n_docs))}


PERFECT = systems()["old"].with_scores(systems()["old"].relevance)


def of_two_minds():
    """Better by one measure, and worse by another."""
    old = fn.Rankings.from_lists([[1, 0, 0, 2], [2, 0, 0, 1]] * 20, [[4, 3, 2, 1]] * 40)
    return {"old": old, "new": old.with_scores(np.tile([2.0, 4, 1, 3], 40))}


COUNTRIES = np.array(["de"] * 150 + ["fr"] * 40 + ["se"] * 10)


def with_a_loss(name, by):
    """Better overall, and worse in one country."""
    named = systems(queries={"country": COUNTRIES})
    old = named["old"]
    sign = np.repeat(np.where(name == COUNTRIES, -by, by), 10)
    return {"old": old, "new": old.with_scores(old.scores + sign * old.relevance)}


@pytest.mark.parametrize(
    ("named", "options", "expected"),
    [
        (systems(0.3), {}, "new is better than old: nDCG@10 is "),
        (systems(-0.3), {}, "new is worse than old: nDCG@10 is "),
        (by_chance(), {}, "It is open whether new is better than old: nDCG@10 is "),
        (systems(0.3)["new"][:1], {}, "over 1 query is 0.8268 (no interval with 95 % confidence)."),
        ({name: systems()["old"] for name in "ab"}, {}, "b and a do not differ: nDCG@10 is "),
        (systems(0.3), {"baseline": "new"}, "old is worse than new: nDCG@10 is "),
        (systems(0.3)["new"], {}, "The mean nDCG@10 of system over 200 queries is "),
        (with_a_loss("fr", 0.3), {"by": "country"}, "new is worse in 1 of 3 slices by country: fr, -0."),
        (with_a_loss("se", 0.01), {"by": "country"}, "in none of 3 slices by country, but its mean is lower in 1: se, -"),
        (with_a_loss("", 0.3), {"by": "country"}, "new is clearly worse in none of 3 slices by country."),
        (systems(0.1) | {"best": PERFECT}, {}, "best is better than old: nDCG@10 is 1.0000"),
        (of_two_minds(), {"measures": ["R@3", "RR"]}, "new is worse by RR, -0.5000 (-0.5000 to -0.5000)."),
        (of_two_minds(), {"measures": ["R@3", "RR"]}, "new is better than old: R@3"),
    ],
)  # fmt: skip
def test_the_page_begins_with_who_is_better_and_where_it_is_worse(
    named, options, expected, tmp_path, undrawn
):
    page = written(tmp_path / "r.html", named, **options)
    assert names_of(page)[0] == "answer" and expected in " ".join(texts_of(page, "p"))
    assert ("Ranks of systems" in page) == (isinstance(named, dict) and len(named) > 2)


def test_the_answer_has_the_numbers_of_compare(tmp_path, undrawn):
    named = systems(0.1)
    row = fn.compare(named, measures="nDCG@10").rows[0]
    said = " ".join(texts_of(written(tmp_path / "r.html", named), "p"))
    assert (
        f"nDCG@10 is {row['mean']:.4f} against {row['baseline_mean']:.4f}, a difference of {row['difference']:+.4f} "
        f"({row['low']:+.4f} to {row['high']:+.4f} with 95 % confidence). It is higher for {row['wins']} of 200 "
        f"queries, lower for {row['losses']} and equal for {row['ties']}."
    ) in said


QRELS = {f"q{i}": {f"d{j}": (i + j) % 2 for j in range(4)} for i in range(9)}


def from_runs(letter):
    run = {query: {f"{letter}{j}" if j < 2 else f"d{j}": 9.0 - j for j in range(4)} for query in QRELS}
    return fn.Rankings.from_qrels_run(QRELS, run)


@pytest.mark.parametrize(
    ("named", "options", "expected"),
    [
        ({"old": from_runs("d"), "new": from_runs("x")}, {"measures": "nDCG@4"},
         ["Of the first 4 documents were judged: 100.0 % of old, 50.0 % of new.", "new: 50.0 % of the documents were not judged."]),
        (fn.Rankings.from_lists([[1, 0], [0, 0], []], [[2, float("nan")], [2, 1], []], nan="last"), {},
         ["system: 1 document scored NaN or minus infinity.", "system: 1 query without a returned document.",
          "system: nDCG@10 undefined for 2 queries, counted as 0."]),
        ({name: fn.Rankings.from_lists([[1, 0], [0]]) for name in "ab"}, {"measures": ["RR(empty='skip')", "AP(empty='nan')"]},
         ["a and b: RR(empty='skip') undefined for 1 query, left out.", "a and b: AP(empty='nan') undefined for 1 query, NaN."]),
        (with_a_loss("fr", 0.3), {"by": "country"},
         ["Slices of fewer than 30 queries, whose intervals are unreliable: se."]),
        (fn.Rankings.from_lists([[1, 0]] * 40), {"measures": "RR"}, []),
    ],
)  # fmt: skip
def test_the_page_says_what_to_be_careful_about(named, options, expected, tmp_path, undrawn):
    page = written(tmp_path / "r.html", named, **options)
    answer = page[page.index('<section id="answer">') : page.index("</section>")]
    found = texts_of(answer, "li")
    assert all(any(text.startswith(each) for text in found) for each in expected)
    assert bool(found) == bool(expected)


# ---- sections and numbers ----


def test_sections_go_from_the_answer_to_what_was_evaluated(page, tmp_path, undrawn):
    assert names_of(page) == ["answer", "comparison", "slices", "movers", "worst", "evaluated"]
    one = written(
        tmp_path / "one.html",
        fn.Rankings.from_lists([[1, 0], [0, 1], [0]]),
        measures="SetP",
        title="One & only",
    )
    assert names_of(one) == ["answer", "worst", "evaluated"] and "One & only" in texts_of(one)


def test_numbers_are_those_of_the_package(page):
    texts, named = texts_of(page), systems_of()
    for rankings in named.values():
        for mean in fn.evaluate(rankings, ["nDCG@10", "RR"]).mean().values():
            assert f"{mean:.6f}" in texts
    compared = fn.compare(named, measures=["nDCG@10", "RR"])
    of_slices = (row for each in compared.slices("country").values() for row in each.rows[:1])
    for row in (*compared.rows, *of_slices):
        assert f"{row['difference']:+.4f}" in texts and f"{row['low']:+.4f} to {row['high']:+.4f}" in texts
    worst = fn.evaluate(named["bm25"], "nDCG@10").worst("nDCG@10", 10)["query_id"].to_pylist()
    movers = compared.movers("nDCG@10", n=10)["query_id"].to_pylist()
    assert {*worst, *movers} <= {*texts}
    assert {f"Rank by rank: {query}" for query in (*worst[:5], *movers[:5])} <= {*texts}
    assert "q-5" not in texts  # without a relevant document, which is no fault of the order
    signed = fn.evaluate(named["bm25"], "nDCG@10").signature("nDCG@10")
    assert f"bm25: {signed}" in texts


def test_every_picture_has_words_and_the_page_is_small(page):
    pictures = re.findall('<img src="data:image/svg[+]xml;base64,[^"]+" alt="([^"]+)">', page)
    assert len(pictures) == page.count("<img") == 4 and all(len(words) > 30 for words in pictures)
    assert len(page) < 600_000


@pytest.mark.parametrize("measure", ["nDCG(empty='nan')", "nDCG(empty='skip')@5", "AP(empty='nan')"])
def test_queries_without_any_value_have_a_page(tmp_path, measure):
    named = {name: fn.Rankings.from_lists([[0, 0], []], queries={"c": ["x", None]}) for name in "ab"}
    page = written(tmp_path / "none.html", named, measures=measure, by="c")
    assert "so there is nothing to draw" in page and "cannot be compared: a mean of" in page


def test_measures_without_orders_say_why(tmp_path, undrawn):
    """A picture that a measure does not allow is no reason to have no page."""
    rankings = fn.Rankings.from_lists([[1, 0, 1]], intents=[[1, 0], [0, 0], [1, 1]])
    page = written(tmp_path / "intents.html", rankings, measures=["alpha_nDCG@2"])
    assert "alpha_nDCG@2 covers several intents" in page


def test_of_many_slices_the_largest_are_in_the_table(tmp_path, undrawn):
    users = [f"user {place}" for place in range(60)] + ["user 7"] * 60
    old = fn.Rankings.from_lists([[0, 1]] * 120, queries={"user": users})
    page = written(tmp_path / "r.html", {"old": old, "new": old}, by="user")
    assert "nDCG@10: new minus old, the largest 40 of 60 slices" in texts_of(page, "h3")
    assert "and 54 more." in page


# ---- names of people's data ----


def test_no_name_can_harm_the_page(tmp_path, page):
    """Controls, ends of lines and marks of direction are shown escaped wherever a user could put them."""
    hostile = UNSEEN + HOSTILE
    surrogate = f"{hostile}\udcff"  # as in the name of a file whose bytes are not UTF-8
    one = fn.Rankings.from_lists(
        [[0, 1, 2], [1, 0], [2, 0, 1], [0, 0, 1]],
        query_ids=[f"{hostile}{place}" for place in range(4)],
        queries={hostile: [hostile, hostile, None, ""]},
        doc_ids=[f"{hostile}{place}" for place in range(11)],
    )
    named = {surrogate: one, "x" * 10_000: one.with_scores(np.arange(11.0))}
    options = {
        "title": surrogate,
        "command": surrogate,
        "sources": {surrogate: surrogate},
        "baseline": surrogate,
    }
    for text in (written(tmp_path / "r.html", named, by=hostile, **options), page):
        own = text.replace("\n", "")
        assert not [sign for sign in own if ord(sign) < 32 or 127 <= ord(sign) < 160 or sign in UNSEEN[8:]]
        tags, attributes = parsed(text)
        assert not {"script", "iframe", "object", "form"} & tags
        assert not [name for name, _ in attributes if name.startswith("on")]
        loaded = {str(value) for name, value in attributes if name in ("src", "href")}
        assert all(each.startswith(("data:image/svg+xml;base64,", "data:,")) for each in loaded)
        assert html.escape(HOSTILE) in text and text.count("default-src 'none'; img-src data:;") == 1
    assert {"null", '""'} <= set(texts_of(written(tmp_path / "r.html", named, by=hostile)))


# ---- command line ----


def test_the_command_reads_files_and_says_where_they_are(tmp_path, undrawn):
    random, rows = np.random.default_rng(0), 40
    table = {"qid": np.repeat(np.arange(rows // 4), 4), "label": random.integers(0, 3, rows)}
    table |= {"country": np.repeat(["de", "fr"], rows // 2)}
    scores = {name: random.random(rows) for name in ("one", "two")}
    pq.write_table(pa.table(table | scores), tmp_path / "both.parquet")
    for name, values in scores.items():
        pq.write_table(pa.table(table | {"score": values}), tmp_path / f"{name}.parquet")
    out = tmp_path / "report.html"
    for words in (
        [tmp_path / "one.parquet", tmp_path / "two.parquet"],
        [tmp_path / "both.parquet", "--score", "one", "--score", "two"],
    ):
        result = run("report", *words, "-o", out, "-m", "nDCG@3", "--by", "country", "--baseline", "two")
        assert (result.exit_code, result.stdout) == (0, ""), result.stderr
        said = "one: 10 queries, 40 documents; columns: query=qid, relevance=label, score="
        assert result.stderr.startswith(said)
        texts = texts_of(out.read_text(encoding="utf-8"))
        assert any(text.startswith(f"{words[0]}; columns: query=qid") for text in texts)
        assert "nDCG@3: one minus two" in texts and any(text.startswith("made by fastndcg") for text in texts)
        out.unlink()


def test_the_command_reads_runs(tmp_path, undrawn):
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq1 0 b 0\nq2 0 a 2\n")
    (tmp_path / "bm25.txt").write_text("q1 Q0 a 1 2.0 x\nq1 Q0 b 2 1.0 x\nq2 Q0 b 1 1.0 x\n")
    out = tmp_path / "report.html"
    result = run("report", "--qrels", tmp_path / "qrels.txt", "--run", tmp_path / "bm25.txt", "-o", out)
    assert result.exit_code == 0, result.stderr
    assert "nDCG@10 of bm25" in texts_of(out.read_text(encoding="utf-8"))


# ---- errors ----


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"systems": {}}, fn.InputError, "no system is given"),
        ({"systems": {"a": [1]}}, fn.InputTypeError, '"a" is a list; expected Rankings'),
        ({"systems": {"a": fn.Rankings.from_lists([])}}, fn.InputError, '"a" has no queries'),
        ({"baseline": "bm52"}, fn.InputError, 'Did you mean "bm25"'),
        ({"by": "county"}, fn.ColumnError, 'Did you mean "country"'),
        ({"measures": []}, fn.FastndcgError, "measure"),
        ({"path": "."}, fn.SourceError, "is not a file and cannot be written"),
    ],
)
def test_errors_come_before_a_file(change, error, message, tmp_path):
    given = {"systems": systems_of(10), "path": tmp_path / "x.html", "measures": "nDCG@10"} | change
    with pytest.raises(error, match=message):
        fn.report(given.pop("systems"), given.pop("path"), **given)
    assert not list(tmp_path.iterdir())


# ---- the page of a history ----


def test_the_page_of_a_history_has_every_date_of_each_system(tmp_path, undrawn):
    history = fn.History(tmp_path / "kept")
    for day in range(1, 46):
        at = f"2026-{10 + day // 31}-{day % 31 + 1:02}"
        for name in ("bm25", "rerank"):
            lists = [[1, 0] if day > 20 or query % 2 else [0, 1] for query in range(40)]
            history.add(fn.evaluate(fn.Rankings.from_lists(lists), ["RR", "P@1"]), at=at, name=name)
    history_page(history, tmp_path / "r.html", confidence=0.95, command="a test")
    texts = texts_of((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert [texts.count(name) for name in ("RR of bm25", "P@1 of rerank")] == [1, 1]
    for row in history.table("RR", name="rerank").to_pylist()[1:]:
        assert texts.count(f"{row['at']:%Y-%m-%d}") == 4
        assert {f"{row[name]:.6f}" for name in ("mean", "change", "change_low", "change_high")} <= {*texts}
    assert sum("rose, which is sure since 2026-10-" in text for text in texts) == 4
