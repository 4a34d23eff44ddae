"""What the words of options mean: measures, gates, grades, slices and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable

from fastndcg.cli.arguments import in_options
from fastndcg.cli.output import refuse
from fastndcg.errors import InputError, MeasureError
from fastndcg.measures import Measure, parse_many


def read_measures(texts: list[str], gates: list[tuple[Measure, float]]) -> list[Measure]:
    try:
        asked = [measure for text in texts for measure in parse_many(text)]
    except MeasureError as error:
        refuse(f"--measure: {error}")
    return list(dict.fromkeys([*asked, *(measure for measure, _ in gates)]))


def cutoff_columns(measures: Iterable[Measure]) -> tuple[str, ...]:
    """Columns that hold a cutoff for each query."""
    names = (measure.cutoff_column for measure in measures)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def read_gates(texts: list[str]) -> list[tuple[Measure, float]]:
    gates = []
    for text in texts:
        notation, _, number = text.rpartition("=")
        bound = number_or_word(number)
        if not notation or isinstance(bound, str) or not math.isfinite(bound):
            refuse(
                f'--fail-under: "{text}" is not a measure and a number; '
                'wanted MEASURE=NUMBER, as in "nDCG@10=0.35"'
            )
        try:
            gates += [(measure, bound) for measure in parse_many(notation)]
        except MeasureError as error:
            refuse(f"--fail-under: {error}")
    return gates


def read_grades(text: str | None) -> dict[str, float] | float | None:
    """The grade of each word, as `--grades` has them: a word may hold `=`, and no comma. Or one grade."""
    if text is None:
        return None
    if not isinstance(number := number_or_word(text), str) and math.isfinite(number):
        return int(number) if number.is_integer() else number
    grades: dict[str, float] = {}
    for pair in text.split(","):
        word, equals, number = (part.strip() for part in pair.rpartition("="))
        if not equals:
            refuse(f'--grades: "{pair}" is not a word and a grade; wanted WORD=GRADE, as in "Good=1,Bad=0"')
        grade = number_or_word(number)
        if isinstance(grade, str) or not math.isfinite(grade):
            refuse(
                f'--grades: the grade of "{word}" is "{number}"; wanted a finite number, as in "Good=1,Bad=0"'
            )
        if word in grades:
            refuse(f'--grades: "{word}" has two grades; give each word one')
        grades[word] = int(grade) if grade.is_integer() else grade
    return grades


def check_confidence(confidence: float) -> None:
    from fastndcg.statistics.intervals import check_confidence

    try:
        check_confidence(confidence)
    except InputError as error:
        refuse(in_options(error, {"confidence": "--confidence"}))


def read_by(given: list[str] | None, taken: list[str]) -> list[str]:
    """Columns of slices, each once. Ends the command if results have a column of the same name."""
    by = list(dict.fromkeys(given or []))
    for name in by:
        if name in taken:
            refuse(f"--by: results have a column {name} of their own; give the column of slices another name")
    return by


def number_or_word(text: str) -> str | float:
    """The value of an option that takes a number or a word."""
    try:
        return float(text)
    except ValueError:
        return text
