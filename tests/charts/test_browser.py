"""The page of `report` in a real browser: no error, no request, and how it looks on screens, phones and paper."""

import json
import sys

import pytest
from browser import CHROMIUM, MISSING, Browser
from systems import HOSTILE, systems_of

import fastndcg as fn

pytestmark = pytest.mark.host

if CHROMIUM is None or sys.platform == "win32":
    pytest.skip(MISSING, allow_module_level=True)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    fn.report(systems_of(), path, measures=["nDCG@10", "RR"], by="country", title="A report", command="test")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def test_the_page_runs_without_an_error_and_without_a_request(browser, path):
    browser.open(path)
    assert browser.messages == []
    assert [url for url in browser.requests if not url.startswith("data:")] == [path.as_uri()]
    browser.ask("for (const each of document.querySelectorAll('details')) each.open = true")
    assert browser.ask(
        "Array.from(document.images).every((each) => each.complete && each.naturalWidth > 100)"
    )


def test_a_hostile_id_stays_text_and_no_script_could_run(browser, path, tmp_path):
    """The policy of the page holds where escaping would not."""
    broken = tmp_path / "broken.html"
    text = path.read_text(encoding="utf-8")
    broken.write_text(text.replace("<main>", f"<main>{HOSTILE}"), encoding="utf-8")
    for page in (path, broken):
        browser.open(page)
        assert browser.ask("window.hacked === undefined")
    assert any("Content Security Policy" in json.dumps(each) for each in browser.messages)
    browser.open(path)
    assert browser.ask("document.scripts.length") == 0 and HOSTILE in browser.ask("document.body.textContent")


def test_dark_and_light_and_paper(browser, path):
    seen = {}
    for kind in (("light", "screen"), ("dark", "screen"), ("dark", "print")):
        browser.open(path, scheme=kind[0], media=kind[1])
        style = "getComputedStyle(document.body)"
        seen[kind] = browser.ask(f"[{style}.backgroundColor, {style}.color]")
    assert list(seen.values()) == [
        ["rgb(255, 255, 255)", "rgb(28, 28, 28)"],
        ["rgb(18, 18, 18)", "rgb(230, 230, 230)"],
        ["rgb(255, 255, 255)", "rgb(0, 0, 0)"],
    ]


def test_on_a_phone_the_comparison_and_pictures_fit_and_only_wide_tables_scroll(browser, path):
    browser.open(path, width=390)
    tables = "Array.from(document.querySelectorAll('#comparison .wide, figure, img'))"
    seen = "filter((each) => each.checkVisibility())"
    assert browser.ask(f"{tables}.{seen}.length") > 3
    assert browser.ask(f"{tables}.{seen}.every((each) => each.scrollWidth <= each.clientWidth)")
    browser.ask("for (const each of document.querySelectorAll('details')) each.open = true")
    assert browser.ask("document.documentElement.scrollWidth") <= 390
    wide = "Array.from(document.querySelectorAll('h1, h2, h3, main > section > p, li, summary')).filter((each) => each.getBoundingClientRect().right > 390)"
    assert browser.ask(f"{wide}.length") == 0


def test_on_a_screen_what_is_not_folded_does_not_scroll(browser, path):
    browser.open(path, width=1200)
    wide = "Array.from(document.querySelectorAll('.wide')).filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth)"
    assert browser.ask(f"{wide}.length") == 0
