"""Options shared by several commands, and parsers of measures, gates, grades, slices and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from enum import StrEnum

from fastndcg.cli.application import option, refusing
from fastndcg.cli.output import Format, refuse
from fastndcg.measures import Measure, parse_many

NaN = StrEnum("NaN", ["refuse", "last"])  # documents without a score

FORMAT = option("Output format on stdout.", Format.table)
THREADS = option("Number of threads. Values do not depend on it.", min=1, show_default="all cores")
MEMORY = option(
    "Memory for files, such as 512MB. Larger files are scored in parts, with the same values.",
    metavar="SIZE",
    show_default="1GB",
)
SCORE = option("Column of scores.")
GRADES = option("Grades of words, or one number for all judgments.", metavar="WORD=GRADE,...")
WEIGHT = option("Column of query weights for the means.")
NAN = option("Refuse documents with a NaN or null score, or rank them last.", NaN.refuse)
ASCENDING = option("Rank the lowest score first, as for distances.", False)
QRELS = option("Judgments: TREC qrels or a table. Each PATH is then a run, like --run.")
CONVENTION = option("Compute measures as this tool does; see `fastndcg conventions`.", metavar="NAME")
CONFIDENCE = option("Confidence of all intervals.", 0.95)
LACKS = option(
    "Queries that a system lacks: refuse, drop for all systems, or count this value.",
    "refuse",
    metavar="refuse|drop|NUMBER",
)
ONE_MEASURE = option("A measure, such as nDCG(gain='exp2')@10.", "nDCG@10", "--measure", "-m")
MEASURES = option(
    "Measures, such as nDCG(gain='exp2')@1-3,5,all; @COLUMN takes cutoffs from a column; repeatable.",
    None,
    "--measure",
    "-m",
    show_default="nDCG@10",
)
FAIL_UNDER = option(
    "Exit with 1 if a mean is NaN or below this number; repeatable. Does not apply to the baseline "
    "of a comparison.",
    metavar="MEASURE=NUMBER",
)


def read_measures(texts: list[str], gates: Iterable[tuple[Measure, float]] = ()) -> list[Measure]:
    with refusing("--measure: "):
        asked = [measure for text in texts for measure in parse_many(text)]
    return list(dict.fromkeys([*asked, *(measure for measure, _ in gates)]))


def read_pairs(option: str, texts: Iterable[str], expected: str) -> Iterator[tuple[str, str]]:
    """Split texts at the last `=` into pairs."""
    for text in texts:
        first, _, second = (part.strip() for part in text.rpartition("="))
        if not (first and second):
            refuse(f'{option}: got "{text}"; expected {expected}')
        yield first, second


def _numbers(option: str, texts: Iterable[str], expected: str) -> Iterator[tuple[str, float]]:
    for name, text in read_pairs(option, texts, expected):
        number = number_or_word(text)
        if isinstance(number, str) or not math.isfinite(number):
            refuse(f'{option}: got "{name}={text}", without a finite number; expected {expected}')
        yield name, number


def read_gates(texts: list[str]) -> list[tuple[Measure, float]]:
    gates = []
    for notation, bound in _numbers("--fail-under", texts, 'MEASURE=NUMBER, as in "nDCG@10=0.35"'):
        with refusing("--fail-under: "):
            gates += [(measure, bound) for measure in parse_many(notation)]
    return gates


def read_grades(text: str | None) -> dict[str, float] | float | None:
    """Parse `--grades`: WORD=GRADE pairs separated by commas, or one number."""
    if text is None:
        return None
    if not isinstance(one := number_or_word(text), str) and math.isfinite(one):
        return _whole(one)
    grades: dict[str, float] = {}
    for word, grade in _numbers("--grades", text.split(","), 'WORD=GRADE, as in "Good=1,Bad=0"'):
        if word in grades:
            refuse(f'--grades: "{word}" has two grades; give each word one')
        grades[word] = _whole(grade)
    return grades


def _whole(number: float) -> float:
    return int(number) if number.is_integer() else number


def read_types(text: str | None) -> dict[str, str] | None:
    """Parse `--types`: COLUMN=TYPE pairs separated by commas."""
    return dict(read_pairs("--types", text.split(",") if text else [], "COLUMN=TYPE")) or None


def read_columns(text: str | None) -> list[str] | dict[str, list[str]] | None:
    """The names of fields, or those of judgments and of a run, as `--columns` has them."""
    if text is None or "=" not in text:
        return None if text is None else text.split(",")
    pairs = read_pairs("--columns", text.split(";"), '"qrels=user,item,rating;run=user,item,score"')
    return {side: names.split(",") for side, names in pairs}


def check_confidence(confidence: float) -> None:
    from fastndcg.statistics.significance import check_confidence

    with refusing():
        check_confidence(confidence)


def read_by(columns: list[str] | None, taken: list[str]) -> list[str]:
    """Distinct columns of slices. Ends the command if results have a column of the same name."""
    by = list(dict.fromkeys(columns or []))
    for name in by:
        if name in taken:
            refuse(f'--by: "{name}" is also a column of the results; rename the column')
    return by


def number_or_word(text: str) -> str | float:
    """The value of an option that takes a number or a word."""
    try:
        return float(text)
    except ValueError:
        return text
