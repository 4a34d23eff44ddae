"""What can be wrong with a measurement."""

from __future__ import annotations


class BenchError(Exception):
    """A measurement that cannot be taken."""


class WrongAnswerError(BenchError):
    """A wrong answer has no speed."""

    def __init__(self, measure: str, where: str, got: float, wanted: float) -> None:
        super().__init__(f"{measure} of {where}: got {got!r}, wanted {wanted!r}; not timed")
