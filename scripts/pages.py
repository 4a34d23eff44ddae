"""Write the parts of pages that are generated from the package and from the records of the benchmarks.

python -m scripts.pages

This writes the lists of `GENERATED` where a page has

    <!-- parameters: written by scripts/pages.py -->
    <!-- end of parameters -->

Help texts, and pages that lie outside docs/ (`ELSEWHERE`), are in the built site only: the functions of `WRITTEN`
give what stands between the marks "NAME: written when the site is built" and "end of NAME", where a reader of the
source sees something else. Links between pages work in the repository and in the site.
"""

from __future__ import annotations

import posixpath
import re
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from typer.main import get_command
from typer.testing import CliRunner

import fastndcg as fn
from bench import tables
from bench.tables import markdown
from fastndcg.cli import app
from fastndcg.measures import DEFINITIONS
from fastndcg.measures import table as measure_table
from fastndcg.measures.conventions import Convention
from fastndcg.measures.tools import QUERIES, TIES, WEIGHTS
from fastndcg.tables.roles import OTHER_NAMES, USUAL_NAMES
from scripts import reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "bench/README.md": "benchmarks.md",
}
_WIDTH = 100  # columns of a help text
_MANY = 10  # tools that a measure has, for a column of its own
_FEW = 6  # measures that a row of the table of parameters names


# ---- made from the package ----


def bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def words() -> str:
    """What the words of conventions mean, a table for each choice."""
    choices = {
        "Order of tied documents (`ties`)": TIES,
        "Queries that the run lacks (`missing`), and queries without judgments (`unjudged`)": QUERIES,
        "Effect of query weights on the mean (`weights`)": WEIGHTS,
    }
    parts = []
    for choice, meanings in choices.items():
        rows = ((f"`{word}`", meaning) for word, meaning in meanings.items())
        parts.append(f"{choice}:\n\n{markdown(('value', 'meaning'), rows)}")
    return "\n".join(parts)


def every_measure() -> str:
    parts = []
    for row in measure_table().to_pylist():
        facts = [
            f"Formula: `{row['formula']}`",
            f"Range: {row['range']}. Source: {row['source']}",
        ]
        used = definitions_in_use(row["name"])
        facts += ["Definitions of tools:\n\n" + indent(used, "  ")] if used else []
        parts.append(f"### {row['name']}\n\n{row['summary']}: `{row['notation']}`\n\n{bullets(facts)}")
    return "\n\n".join(parts)


def parameters() -> str:
    """Every parameter once; where several declarations share a name, those of few measures name them."""
    owners: dict[tuple[str, str, str], list[str]] = {}
    for measure, definition in DEFINITIONS.items():
        for each in definition.parameters:
            default = f"`{each.default:g}`" if type(each.default) is float else f"`{each.default!r}`"
            values = [
                f"{value if value.startswith('a ') else f'`{value}`'}: {meaning}"  # kinds of values as plain words
                for value, meaning in each.values
            ]
            row = (each.name, default, "<br>".join([each.meaning, *values]))
            owners.setdefault(row, []).append(measure)
    names = [name for name, *_ in owners]
    rows = []
    for (name, *rest), measures in sorted(owners.items(), key=lambda item: names.index(item[0][0])):
        few = names.count(name) > 1 and len(measures) <= _FEW
        of = f" of {', '.join(measures)}" if few else ""
        rows.append((f"`{name}`{of}", *rest))
    return markdown(("parameter", "default", "meaning and values"), rows)


def conventions() -> str:
    usual = Convention("")
    rows = []
    for name, tool in fn.conventions.items():
        if tool.find("nDCG") is None:
            continue
        rule = tool.on("nDCG")
        beyond = [
            f"{field} {_shown(value)}"
            for field, value in {**rule.beyond_measure, "tolerance": rule.tolerance}.items()
            if value != getattr(usual, field)
        ]
        rows.append((f"`{name}`", rule.tool, f"`{rule.measure()}`", ", ".join(beyond)))
    return markdown(("name", "tool", "nDCG", "also"), rows)


def definitions(name: str) -> dict[str, dict[str, list[str]]]:
    """Each definition of a measure that is in use, ours first: its tools, and what they call it. Tools of one
    definition may differ in ties, in cutoffs and in the queries that they leave out.
    """
    plain = fn.parse(name)
    found: dict[str, dict[str, list[str]]] = {f"`{plain}`": {}}
    for tool in fn.conventions.values():
        for own in [own for own in tool.others if own.measure == name] or [None] * (tool.of == name):
            rule = tool.on(name) if own is None or own.cut is None else tool.find(name, cut=own.cut)
            measure = rule.measure() if "ties" not in plain.params else rule.measure()(ties="average")
            shown = str(measure).partition("@")[0]
            called = found.setdefault(f"`{shown}`", {}).setdefault(tool.name, [])
            called += [own.called] if own is not None and own.called not in ("", name) else []
            called += [f"cut at {rule.default_cutoff} by default"] if rule.default_cutoff else []
    return found


def definitions_in_use(name: str) -> str:
    """The definitions of a measure as a numbered list, whose numbers the matrix of conventions has."""
    lines = []
    for number, (shown, tools) in enumerate(definitions(name).items(), 1):
        called = (
            f"`{tool}`" + (f" ({', '.join(dict.fromkeys(names))})" if names else "")
            for tool, names in tools.items()
        )
        lines.append(f"{number}. {shown}: {', '.join(called) or 'only here'}")
    return "\n".join(lines) if len(lines) > 1 or not lines[0].endswith("only here") else ""


def matrix() -> str:
    """Which tool has which measure: the number of its definition, in a column for measures of many tools."""
    of_measures = {name: list(definitions(name).values()) for name in DEFINITIONS}
    having = {name: len({tool for each in tools for tool in each}) for name, tools in of_measures.items()}
    wide = [name for name, count in having.items() if count >= _MANY]
    rows: dict[tuple[str, ...], list[str]] = {}  # tools with the same cells share a row
    for tool in fn.conventions:
        numbers = {
            name: ", ".join(str(at) for at, each in enumerate(tools, 1) if tool in each)
            for name, tools in of_measures.items()
        }
        rest = [f"{_to(name)} {number}" for name, number in numbers.items() if number and name not in wide]
        cells = (*(numbers[name] for name in wide), ", ".join(rest), fn.conventions[tool].source)
        rows.setdefault(cells, []).append(f"`{tool}`")
    head = ("tool", *map(_to, wide), "others", "read in")
    return markdown(head, ((", ".join(names), *cells) for cells, names in rows.items()))


def _to(name: str) -> str:
    return f"[{name}](measures.md#{name.lower()})"


def _shown(value: Any) -> str:
    return f"{value.decimals} decimals {value.when}" if not isinstance(value, str | float) else f"`{value}`"


def caveats() -> str:
    """What to know of each tool, in one line for tools of which the same is to be known."""
    tools: dict[str, list[str]] = {}  # by what is said of them
    for rule in fn.conventions.values():
        for measure in rule.others:
            for said in dict(measure.changed).get("caveats", ()):
                tools.setdefault(said, []).append(f"`{rule.name}` {measure.measure}")
        for said in rule.caveats or ["nothing else"]:
            tools.setdefault(said, []).append(f"`{rule.name}`")
    lines: dict[str, list[str]] = {}
    for said, names in tools.items():
        lines.setdefault(", ".join(dict.fromkeys(names)), []).append(said)
    return bullets(f"{names}: {'; '.join(said)}." for names, said in lines.items())


def usual_names() -> str:
    both = ((role, (known, OTHER_NAMES[role])) for role, known in USUAL_NAMES.items())
    rows = ((role, *(" ".join(f"`{name}`" for name in names) for names in known)) for role, known in both)
    return markdown(("role", "usual names", "accepted if none of these is present"), rows)


def options() -> str:
    """Every command, and every option with the commands that have it; trec_eval has those of trec_eval."""
    each: Mapping[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    about = ((f"`{name}`", command.help.partition("\n\n")[0]) for name, command in each.items())
    rows: dict[tuple[str, str], list[str]] = {}
    for name in each.keys() - {"trec_eval"}:
        for option in (
            one for one in each[name].params if one.param_type_name == "option" and not one.hidden
        ):
            rows.setdefault((" ".join(f"`{each}`" for each in option.opts), option.help), []).append(name)
    found = sorted((*row, ", ".join(sorted(names))) for row, names in rows.items())
    return f"{markdown(('command', 'purpose'), about)}\n{markdown(('option', 'meaning', 'commands'), found)}"


def commands() -> str:
    """The help text of each command, as it is printed."""
    names: Iterable[str] = get_command(app).commands  # type: ignore[attr-defined]
    return "\n\n".join([_help(), *(f"## fastndcg {name}\n\n{_help(name)}" for name in names)])


def _help(*command: str) -> str:
    shown = CliRunner().invoke(app, [*command, "--help"], prog_name="fastndcg", terminal_width=_WIDTH)
    return f"```text\n{shown.output.strip()}\n```"


# ---- links, and pages from elsewhere ----


def linked(page: str, source: str) -> str:
    """A file's text with its links to other files of the repository made links to their pages, or plain text.

    >>> linked("[kernels](docs/kernels.md#lanes), [licence](LICENSE)", "README.md")
    '[kernels](kernels.md#lanes), licence'
    """

    def replace(link: re.Match[str]) -> str:
        text, path, anchor = link.groups(default="")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if not (ROOT / target).exists():
            raise FileNotFoundError(f"{source} links to {path}, and there is no {target}")
        if target in ELSEWHERE or target.startswith("docs/"):
            return f"[{text}]({ELSEWHERE.get(target, target.removeprefix('docs/'))}{anchor})"
        return text

    return re.sub(r"\[([^]]*)\]\(([^):#]+)(#[^)]*)?\)", replace, page)


def page_of(source: str) -> str:
    return linked((ROOT / source).read_text(encoding="utf-8"), source)


GENERATED: dict[str, tuple[str, Callable[[], str]]] = {
    "every measure": ("docs/measures.md", every_measure),
    "parameters": ("docs/measures.md", parameters),
    "conventions": ("docs/conventions.md", conventions),
    "matrix of conventions": ("docs/conventions.md", matrix),
    "caveats": ("docs/conventions.md", caveats),
    "words of conventions": ("docs/conventions.md", words),
    "reference": ("docs/reference.md", reference.tables),
    "options": ("docs/command-line.md", options),
    "usual names": ("docs/files.md", usual_names),
    "other tools": ("README.md", partial(tables.tools, tables.SHOWN)),
    "all other tools": ("docs/performance.md", tables.tools),
    "speed": ("docs/performance.md", partial(tables.sections, ("reading", "shuffled", "start"), 6)),
    "record": ("bench/README.md", tables.sections),
    "engines": ("docs/engines.md", tables.engines),
}
WRITTEN: dict[str, Callable[[], str]] = {
    "commands": commands,
    **{source: partial(page_of, source) for source in ELSEWHERE},
}
_PLACE = re.compile(
    r"<!-- ([^:\n]*): written when the site is built -->\n.*?<!-- end of \1 -->", flags=re.DOTALL
)


def built(page: str, source: str) -> str:
    """The text of a file in docs/ with all that is written when the site is built."""
    if source == "docs/reference.md":
        page = f"{page.partition('<!-- reference')[0]}{reference.directives()}"
    return _PLACE.sub(lambda place: WRITTEN[place[1]](), linked(page, source))


def renewed(name: str) -> tuple[Path, str]:
    """The page of a list of `GENERATED`, and its text with that list as it is now, between its two marks."""
    place, make = GENERATED[name]
    text = (ROOT / place).read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: written by scripts/pages.py -->\n", f"<!-- end of {name} -->"
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{place} has no place for {name!r}; expected the lines {begin.strip()} and {end}")
    return ROOT / place, f"{head}{begin}\n{make().strip()}\n\n{end}{tail}"


# ---- what is loaded ----

_LOADED = re.compile(
    r"""<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=["']?(?:https?:)?//[^\s>]*|(?:url\(|@import )["']?(?:https?:)?//"""
)


def check_offline(site: Path) -> None:
    """Refuse a site whose pages load something from the network."""
    for file in site.rglob("*"):
        found = _LOADED.search(file.read_text(encoding="utf-8")) if file.suffix in (".html", ".css") else None
        if found:
            raise ValueError(f"{file} loads something from the network: {found[0]}")


if __name__ == "__main__":
    for each in GENERATED:
        page, text = renewed(each)
        page.write_text(text, encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: {each}")
