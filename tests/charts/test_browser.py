"""The page of `report` in a real browser: no error, no request, tables that sort, and how it looks on
screens, phones and paper.

`PYTHONPATH=tests python -m test_browser` writes the baseline of its texts and places anew.
"""

import json
import sys
import tempfile
from pathlib import Path

import pytest
from browser import CHROMIUM, MISSING, Browser
from systems import HOSTILE, UNSEEN, systems_of

import fastndcg as fn
from fastndcg.reporting import drawing

pytestmark = pytest.mark.host

if CHROMIUM is None or sys.platform == "win32":
    pytest.skip(MISSING, allow_module_level=True)

BASELINE = Path(__file__).parent.parent / "golden" / "report_layout.json"


def written(folder):
    path = folder / "report.html"
    fn.report(
        systems_of(), path, measures=["nDCG@10", "RR"], by="country", title="A report", command="a test"
    )
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return written(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def layout(browser, path):
    """Headings, captions and pictures of the page: what they say, and where they are."""
    browser.open(path)
    return browser.ask(
        """Array.from(document.querySelectorAll("h1, h2, section > .wide caption, img")).map((each) => {
             const box = each.getBoundingClientRect();
             return {kind: each.localName, text: each.alt || each.textContent, x: Math.round(box.x), y: Math.round(box.y + scrollY),
                     width: Math.round(each.localName === "img" ? box.width : 0)};
           })"""
    )


def test_the_page_runs_without_an_error_and_without_a_request(browser, path):
    browser.open(path)
    assert browser.messages == []
    others = [url for url in browser.requests if not url.startswith("data:")]
    assert others == [path.as_uri()]


def test_pictures_are_shown(browser, path):
    browser.open(path)
    assert browser.ask(
        "Array.from(document.images).every((each) => each.complete && each.naturalWidth > 100)"
    )


def test_a_hostile_id_stays_text(browser, path):
    browser.open(path)
    assert browser.ask("window.hacked === undefined")
    assert browser.ask("document.querySelectorAll('script').length") == 1
    assert HOSTILE in browser.ask("document.body.textContent")


def test_no_other_script_could_run(browser, path, tmp_path):
    """The policy of the page holds where escaping would not."""
    broken = tmp_path / "broken.html"
    broken.write_text(
        path.read_text(encoding="utf-8").replace("<main>", f"<main>{HOSTILE}"), encoding="utf-8"
    )
    browser.open(broken)
    assert browser.ask("window.hacked === undefined")
    assert any("Content Security Policy" in json.dumps(each) for each in browser.messages)


def test_a_page_without_its_pictures_shows_their_numbers(browser, tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "_SECONDS", (0, 0))
    path, name = tmp_path / "without.html", f"{UNSEEN}{HOSTILE}"
    with pytest.warns(fn.FastndcgWarning, match="without.html lacks"):
        fn.report({name: next(iter(systems_of().values()))}, path, by="country", title=name)
    browser.open(path)
    assert browser.messages == [] and browser.ask(
        "window.hacked === undefined && document.images.length === 0"
    )
    figures = "Array.from(document.querySelectorAll('main > section > figure'))"
    assert browser.ask(
        f"{figures}.length > 4 && {figures}.every((each) => each.querySelector('table').checkVisibility())"
    )
    assert browser.ask("document.title").startswith(r"\x00\x07\x1b[31m\x85\n\u2028\u202e\ufffe\ufeff<script>")


def test_tables_sort(browser, path):
    browser.open(path)
    table = "document.querySelector('#summary table')"
    column = f"Array.from({table}.tBodies[0].rows).map((row) => row.cells[2].textContent)"
    before = browser.ask(column)
    for order, reverse in (("descending", True), ("ascending", False)):
        browser.ask(f"{table}.tHead.rows[0].cells[2].firstChild.click()")
        assert browser.ask(f"{table}.tHead.rows[0].cells[2].getAttribute('aria-sort')") == order
        assert browser.ask(column) == sorted(before, key=float, reverse=reverse)
    browser.ask(f"{table}.tHead.rows[0].cells[1].firstChild.click()")
    names = browser.ask(f"Array.from({table}.tBodies[0].rows).map((row) => row.cells[1].textContent)")
    assert names == sorted(names, key=str.lower)


def test_long_tables_show_a_page_at_a_time(browser, path):
    browser.open(path)
    browser.ask("document.querySelector('#comparison figure:has(+ details) details').open = true")
    shown = "Array.from(document.querySelectorAll('#comparison figure:has(+ details) tbody tr')).filter((row) => row.checkVisibility()).length"
    assert browser.ask(shown) == 25
    pager = "document.querySelector('#comparison figure:has(+ details) .pager')"
    assert browser.ask(f"{pager}.textContent").endswith("rows 1 to 25 of 120")
    for _ in range(4):
        browser.ask(f"{pager}.querySelectorAll('button')[1].click()")
    assert browser.ask(f"{pager}.textContent").endswith("rows 101 to 120 of 120")
    assert browser.ask(shown) == 20
    assert browser.ask(f"{pager}.querySelectorAll('button')[1].disabled")


def test_links_lead_to_sections(browser, path):
    browser.open(path)
    browser.ask("document.querySelector('nav a[href=\"#measures\"]').click()")
    assert browser.ask("location.hash") == "#measures"
    assert 0 <= browser.ask("document.querySelector('#measures').getBoundingClientRect().y") < 900


def test_dark_and_light(browser, path):
    seen = {}
    for scheme in ("light", "dark"):
        browser.open(path, scheme=scheme)
        style = "getComputedStyle(document.body)"
        seen[scheme] = browser.ask(f"[{style}.backgroundColor, {style}.color]")
    assert seen == {
        "light": ["rgb(255, 255, 255)", "rgb(28, 28, 28)"],
        "dark": ["rgb(18, 18, 18)", "rgb(230, 230, 230)"],
    }


def test_on_a_phone_only_tables_and_pictures_scroll_sideways(browser, path):
    browser.open(path, width=390)
    browser.ask("for (const each of document.querySelectorAll('details')) each.open = true")
    assert browser.ask("document.documentElement.scrollWidth") <= 390
    wide = "Array.from(document.querySelectorAll('h1, h2, p, nav, summary')).filter((each) => each.getBoundingClientRect().right > 390)"
    assert browser.ask(f"{wide}.length") == 0


def test_on_paper_every_row_is_there(browser, path):
    browser.open(path, scheme="dark", media="print")
    assert browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.ask("document.querySelector('tr.beyond').closest('table') !== null")
    assert browser.ask("getComputedStyle(document.querySelector('tr.beyond')).display") == "table-row"
    assert browser.ask("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_every_picture_has_a_name_for_those_who_do_not_see_it(browser, path):
    browser.open(path)
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    images = [node for node in nodes if node.get("role", {}).get("value") in ("image", "img")]
    assert len(images) == browser.ask(
        "Array.from(document.images).filter((each) => each.checkVisibility()).length"
    )
    assert all(len(image["name"]["value"]) > 30 for image in images)
    regions = [node for node in nodes if node.get("role", {}).get("value") == "region"]
    assert regions and all(region["name"]["value"] for region in regions)


def test_texts_and_places_are_those_of_the_baseline(browser, path):
    """Fonts differ from machine to machine, so that places may be off by what a few wrapped lines take."""
    expected, found = json.loads(BASELINE.read_text(encoding="utf-8")), layout(browser, path)
    assert [(each["kind"], each["text"]) for each in found] == [
        (each["kind"], each["text"]) for each in expected
    ]
    for one, other in zip(found, expected, strict=True):
        assert abs(one["x"] - other["x"]) <= 4, one
        assert abs(one["y"] - other["y"]) <= 60 + 0.1 * other["y"], one
        assert abs(one["width"] - other["width"]) <= 0.1 * other["width"], one


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        chromium = Browser(Path(folder) / "profile")
        rows = layout(chromium, written(Path(folder)))
        chromium.close()
    BASELINE.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
