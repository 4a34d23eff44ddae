"""Errors of measurements."""

from __future__ import annotations


class BenchError(Exception):
    """A measurement is not possible."""


class WrongAnswerError(BenchError):
    """The measured code returned a wrong value, so its time is not reported."""

    def __init__(self, measure: str, where: str, got: float, wanted: float) -> None:
        super().__init__(f"{measure} of {where}: got {got!r}, wanted {wanted!r}; not timed")
