"""The page of `report`: what it says, that text stays text, and that it loads nothing."""

import os
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import program, run
from systems import HOSTILE, UNSEEN, systems_of

import fastndcg as fn
from fastndcg import plot
from fastndcg.analysis.plots import grade_counts
from fastndcg.reporting import drawing, facts
from fastndcg.reporting.page import check_extra
from fastndcg.reporting.sections import sections_of

pytest.importorskip("altair")
pytest.importorskip("vl_convert")
pytest.importorskip("jinja2")
pytest.importorskip("scipy")


class Page(HTMLParser):
    """Tags and texts of a page, as a browser reads them."""

    def __init__(self, text):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    def every(self, wanted):
        return [attributes for tag, attributes in self.tags if tag == wanted]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    fn.report(
        systems_of(), path, measures=["nDCG@10", "RR"], by="country", sources={"bm25": f"a.parquet {HOSTILE}"}
    )
    return path


@pytest.fixture(scope="module")
def page(path):
    return Page(path.read_text(encoding="utf-8"))


def test_every_section_is_there_and_linked(page):
    linked = [str(each["href"])[1:] for each in page.every("a")]
    assert linked == [each["id"] for each in page.every("section")]
    assert linked == [
        "evaluated", "summary", "comparison", "cutoffs", "distribution", "slices", "anchors", "ties", "worst",
        "movers", "measures", "made",
    ]  # fmt: skip


def test_text_stays_text(page):
    assert len(page.every("script")) == 1 and len(page.every("style")) == 1
    assert not [
        attributes for _, attributes in page.tags if any(name.startswith("on") for name in attributes)
    ]
    assert all(str(each["src"]).startswith("data:image/svg+xml;base64,") for each in page.every("img"))
    assert any(HOSTILE in text for text in page.texts)


def test_nothing_is_loaded(page):
    for _, attributes in page.tags:
        for name in ("src", "href"):
            assert not re.match(r"(\w+:)?//", attributes.get(name) or ""), attributes
    (policy,) = [each["content"] for each in page.every("meta") if each.get("http-equiv")]
    assert policy is not None and policy.startswith("default-src 'none'; img-src data:;")


def test_every_picture_has_words_and_numbers(path, page):
    pictures = page.every("img")
    assert len(pictures) >= 9 and all(len(str(each["alt"])) > 30 for each in pictures)
    text = path.read_text(encoding="utf-8")
    for figure in re.findall("<figure>(.*?)</figure>", text, re.DOTALL):
        assert figure.count("<table") >= 1 and "<td" in figure


def test_numbers_are_those_of_the_package(page):
    systems = systems_of()
    for rankings in systems.values():
        for mean in fn.evaluate(rankings, ["nDCG@10", "RR"]).mean().values():
            assert f"{mean:.4f}" in page.texts
    compared = fn.compare(systems, "bm25", measures=["nDCG@10", "RR"])
    for row in compared.rows:
        assert f"{row['difference']:.4f}" in page.texts
    worst = fn.evaluate(systems["bm25"], "nDCG@10").worst("nDCG@10", 20)["query_id"].to_pylist()
    assert set(worst) <= set(page.texts)
    assert "q-5" not in page.texts  # without a relevant document, which is no fault of the order
    assert "bm25, without 1 query where nDCG@10 is undefined:" in page.texts


def test_no_name_can_harm_the_page(tmp_path):
    """Controls, ends of lines and marks of direction are shown escaped wherever a user could put them."""
    hostile = UNSEEN + HOSTILE
    ids, slices = [f"{hostile}{place}" for place in range(4)], [hostile, hostile, None, ""]
    lists = [[0, 1, 2], [1, 0], [2, 0, 1], [0, 0, 1]]
    one = fn.Rankings.from_lists(
        lists, query_ids=ids, queries={hostile: slices}, doc_ids=[f"{hostile}{place}" for place in range(11)]
    )
    other = one.with_scores(np.arange(11.0))
    surrogate = f"{hostile}\udcff"  # as in the name of a file whose bytes are not UTF-8
    path = tmp_path / "report.html"
    fn.report(
        {surrogate: one, "x" * 10_000: other}, path, by=hostile, title=surrogate, command=surrogate,
        sources={surrogate: surrogate}, baseline=surrogate,
    )  # fmt: skip
    text = path.read_text(encoding="utf-8")
    own = text.replace("\n", "")
    assert not [sign for sign in own if ord(sign) < 32 or 127 <= ord(sign) < 160 or sign in UNSEEN[8:]]
    page = Page(text)
    assert len(page.every("script")) == 1 and page.every("img") and "This picture is missing" not in text
    assert {"null", '""'} <= set(page.texts)
    assert max(map(len, page.texts)) < 5_000  # the script of the page


def test_a_picture_that_ends_its_process_is_named_and_the_others_are_drawn(tmp_path, monkeypatch):
    good = plot.discounts().to_dict()
    deadly = good | {"title": {"text": "\x00"}}
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the current folder was imported')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", str(tmp_path / "missing")]))
    found = drawing.drawn([good, deadly, good | {"layer": None}, deadly, good])
    assert ["<svg" in each.svg for each in found] == [True, False, False, False, True]
    assert "SIGABRT" in found[1].why and "conversion failed" in found[2].why and not found[4].why
    assert all("SIGABRT" in each.why for each in drawing.drawn([deadly] * 5))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    assert {each.why for each in drawing.drawn([good] * 5)} == {
        "no process could be started to draw it: No such file or directory"
    }
    monkeypatch.undo()
    monkeypatch.setattr(drawing, "_SECONDS", (0, 0))
    assert {each.why for each in drawing.drawn([good])} == {"drawing took more than 0 s"}


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_where_memory_is_short_the_page_has_numbers_and_says_what_it_lacks(tmp_path, monkeypatch):
    code = """
import resource, warnings
import fastndcg as fn
import fastndcg.reporting.page
systems = {name: fn.Rankings.from_lists([[0, 1, 2], [1, 0]]) for name in "ab"}
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
fn.report(systems, "report.html", measures=["nDCG@10", "RR"])
"""
    monkeypatch.chdir(tmp_path)
    done = program(code)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"FastndcgWarning: report.html lacks \d+ pictures, but has the numbers; the first is", done.stderr
    )
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    figures = re.findall("<figure>(.*?)</figure>", text, re.DOTALL)
    assert len(figures) > 5 and all(
        "<strong>This picture is missing: " in each and "<td" in each for each in figures
    )
    assert "<img" not in text and "<details open>" in text


def test_one_system_without_slices_has_no_comparison(tmp_path):
    path = tmp_path / "one.html"
    fn.report(fn.Rankings.from_lists([[1, 0], [0, 1], [0]]), path, measures="SetP", title="One & only")
    page = Page(path.read_text(encoding="utf-8"))
    names = [each["id"] for each in page.every("section")]
    assert not {"comparison", "movers", "slices", "cutoffs"} & set(names)
    assert "One & only" in page.texts


@pytest.mark.parametrize("measure", ["nDCG(empty='nan')", "nDCG(empty='skip')@5", "AP(empty='nan')"])
def test_queries_without_any_value_have_a_page(tmp_path, measure):
    systems = {name: fn.Rankings.from_lists([[0, 0], []], queries={"c": ["x", None]}) for name in "ab"}
    fn.report(systems, tmp_path / "none.html", measures=measure, by="c")
    text = (tmp_path / "none.html").read_text(encoding="utf-8")
    assert "so that there is nothing to draw" in text and "This picture is missing" not in text


def test_measures_without_orders_say_why(tmp_path):
    """A picture that a measure does not allow is no reason to have no page."""
    path = tmp_path / "intents.html"
    rankings = fn.Rankings.from_lists([[1, 0, 1]], intents=[[1, 0], [0, 0], [1, 1]])
    fn.report(rankings, path, measures=["alpha_nDCG@2"])
    assert "Worst, random and best order" in Page(path.read_text(encoding="utf-8")).texts


# ---- facts ----


def test_tied_documents_are_counted():
    random = np.random.default_rng(3)
    for _ in range(20):
        lengths = random.integers(0, 9, 50)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        scores = random.integers(0, 6, offsets[-1]).astype(np.float32)
        expected = 0
        for low, high in zip(offsets[:-1], offsets[1:], strict=True):
            each = scores[low:high].tolist()
            expected += sum(each.count(score) > 1 for score in each)
        assert facts.tied_documents(offsets, scores) == expected


def test_grades_are_counted_where_judged():
    rankings = fn.Rankings.from_lists([[3, 0, 1], [1]], is_judged=[True, True, True, False])
    assert grade_counts(rankings) == [("0", 1), ("1", 1), ("3", 1)]
    found = facts.find(rankings, "nDCG@10", None, (), 0.95, "refuse", None, None)
    table = next(sections_of(found, "")).blocks[0]
    texts = {row[0].text: row[1].text for row in table.rows}
    assert texts["unjudged documents"] == "1 (25.0 %)"
    assert texts["judged documents in the pool"] == "" and texts["documents of the longest list"] == "3"
    many = fn.Rankings.from_lists([np.linspace(0, 1, 50).tolist()])
    assert len(grade_counts(many)) == 20


# ---- command line ----


def test_the_command_reads_files_and_says_where_they_are(tmp_path, undrawn):
    random, rows = np.random.default_rng(0), 40
    table = {"qid": np.repeat(np.arange(rows // 4), 4), "label": random.integers(0, 3, rows)}
    table |= {
        "country": np.repeat(["de", "fr"], rows // 2),
        "one": random.random(rows),
        "two": random.random(rows),
    }
    pq.write_table(pa.table(table), tmp_path / "both.parquet")
    for name in ("one", "two"):
        columns = {role: table[role] for role in ("qid", "label", "country")}
        pq.write_table(pa.table(columns | {"score": table[name]}), tmp_path / f"{name}.parquet")
    several = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    columns_of_one = [tmp_path / "both.parquet", "--score", "one", "--score", "two"]
    for words in (several, columns_of_one):
        out = tmp_path / "report.html"
        result = run("report", *words, "-o", out, "-m", "nDCG@3", "--by", "country", "--baseline", "two")
        assert (result.exit_code, result.stdout) == (0, ""), result.stderr
        assert result.stderr.startswith(
            "one: 10 queries, 40 documents; columns: query=qid, relevance=label, score="
        )
        page = Page(out.read_text(encoding="utf-8"))
        assert f"{words[0]}; columns: query=qid" in " ".join(page.texts)
        assert "nDCG@3, one against two" in page.texts
        out.unlink()


def test_the_page_says_whose_documents_nobody_judged(tmp_path, undrawn):
    qrels = {f"q{i}": {f"d{j}": (i + j) % 2 for j in range(4)} for i in range(9)}
    runs = {
        name: {query: {f"{letter}{j}" if j < 2 else f"d{j}": 9.0 - j for j in range(4)} for query in qrels}
        for name, letter in (("old", "d"), ("new", "x"))
    }
    path = tmp_path / "report.html"
    systems = {name: fn.Rankings.from_qrels_run(qrels, each) for name, each in runs.items()}
    fn.report(systems, path, measures="nDCG@4")
    said = "Caution: Of the first 4 documents were judged: 100.0 % of old, 50.0 % of new."
    assert said in " ".join(Page(path.read_text(encoding="utf-8")).texts)


def test_the_command_reads_runs(tmp_path, undrawn):
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq1 0 b 0\nq2 0 a 2\n")
    (tmp_path / "bm25.txt").write_text("q1 Q0 a 1 2.0 x\nq1 Q0 b 2 1.0 x\nq2 Q0 b 1 1.0 x\n")
    out = tmp_path / "report.html"
    result = run("report", "--qrels", tmp_path / "qrels.txt", "--run", tmp_path / "bm25.txt", "-o", out)
    assert result.exit_code == 0, result.stderr
    assert "nDCG@10 of bm25" in Page(out.read_text(encoding="utf-8")).texts


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "nothing to score"),
        (["a.parquet"], 3, "a.parquet"),
        (["a.parquet", "--confidence", "95"], 2, "Did you mean 0.95?"),
        (["a.parquet", "b.parquet", "--score", "x", "--score", "y"], 2, "--score is repeatable for one PATH"),
    ],
)
def test_the_command_leaves_no_file_when_it_fails(words, code, message, tmp_path):
    result = run("report", *words, "-o", tmp_path / "x.html")
    assert result.exit_code == code and message in result.stderr
    assert not list(tmp_path.iterdir())


# ---- errors ----


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"systems": {}}, fn.InputError, "no system is given"),
        ({"systems": {"a": [1]}}, fn.InputTypeError, '"a" is a list; wanted Rankings'),
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


def test_without_the_extra_the_error_has_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        fn.ExtraError, match=r"Jinja2, which is not installed: pip install 'fastndcg\[plot\]'"
    ):
        check_extra()
