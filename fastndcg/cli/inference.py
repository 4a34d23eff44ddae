"""How systems are compared: tests, intervals, matching, as options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from fastndcg.cli.meanings import number_or_word
from fastndcg.cli.options import ConfidenceOption, Correction, Interval, LacksOption, Signatures, Test

if TYPE_CHECKING:
    from fastndcg.decide.comparison import Comparison
    from fastndcg.scores.scores import Scores


@dataclass(frozen=True)
class Statistics:
    """The options that say how systems are compared."""

    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=(
                "Compare all other systems with this one: a file's name without endings, "
                "a column of scores, or another file."
            ),
            show_default="each with each",
        ),
    ] = None
    test: Annotated[Test, typer.Option(help="Test that computes p; t is the paired t-test.")] = Test.t
    correction: Annotated[
        Correction | None,
        typer.Option(help="Correction for several pairs: Holm's, Bonferroni's, or Benjamini and Hochberg's."),
    ] = None
    confidence: ConfidenceOption = 0.95
    interval: Annotated[
        Interval,
        typer.Option(
            help=(
                "Method for intervals of differences: Student's t, the same kept within the measure's range "
                "(logit), or a bootstrap of --resamples."
            ),
        ),
    ] = Interval.t
    tolerance: Annotated[float, typer.Option(min=0.0, help="Differences up to this size are ties.")] = 0.0
    cluster: Annotated[
        str | None,
        typer.Option(help="Column of clusters, such as users, if their queries are not independent."),
    ] = None
    missing: LacksOption = "refuse"
    signatures: Annotated[
        Signatures, typer.Option(help="Results that were made of other judgments: refuse them, or ignore it.")
    ] = Signatures.refuse
    unpaired: Annotated[
        bool, typer.Option("--unpaired", help="Independent samples of different queries: Welch's t-test.")
    ] = False
    resamples: Annotated[
        int, typer.Option(help="Number of draws of randomisation, tukey and the bootstrap.")
    ] = 100_000
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0

    def compare(
        self, systems: dict[str, Scores], no_worse_than: str | None, threads: int | None
    ) -> Comparison:
        """Compare systems with the baseline, or else with the system that they may not be worse than."""
        from fastndcg.decide.systems import compare

        options = vars(self) | {
            "baseline": no_worse_than if self.baseline is None else self.baseline,
            "missing": number_or_word(self.missing),
            "paired": not self.unpaired,
        }
        del options["unpaired"]
        return compare(systems, threads=threads, **options)
