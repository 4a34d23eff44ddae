"""A baseline that is kept in a file: results that new ones are compared with, and that they replace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from fastndcg.cli.application import option
from fastndcg.cli.gates import Gates, Verdict
from fastndcg.cli.inputs import Sources, name_runs
from fastndcg.cli.output import note, refuse
from fastndcg.cli.scores import Scored, write_out
from fastndcg.common.files import check_writable
from fastndcg.errors import count_of
from fastndcg.measures import Measure
from fastndcg.sources.stored_scores import Stored


@dataclass(frozen=True)
class Updating:
    """The options that write the file of a baseline."""

    update: bool = option(
        "Write the new results to the file that --baseline names, if all gates hold.", False
    )
    force: bool = option("With --update: write them although a gate does not hold.", False)

    def find(self, given: str | None, gates: Gates, sources: Sources) -> tuple[Baseline, Gates, Sources]:
        """The baseline, and the gates and sources with it. It is a file unless a system has that name.

        Ends the command where there is no file to update.
        """
        name = given or gates.no_worse_than
        if self.force and not self.update:
            refuse("--force has no meaning without --update, which writes the file of --baseline")
        known = {*name_runs(sources.paths or sources.runs), *sources.scores}
        if name is None or name in known or not (self.update or Path(name).is_file()):
            if self.update:
                refuse("--update writes the file of --baseline; name it, as in --baseline baseline.parquet")
            return Baseline(given, None, self), gates, sources
        if self.update:
            check_writable(name)
        if not Path(name).exists():
            return Baseline(None, name, self), gates, sources
        paths = [*(sources.paths or sources.runs), name]
        own = name_runs(paths)[-1]
        sources = sources._replace(paths=paths) if sources.paths else sources._replace(runs=paths)
        if gates.no_worse_than in (name, name_runs([name])[0]):
            gates = replace(gates, no_worse_than=own)
        return Baseline(own, name, self), gates, sources


class Baseline(NamedTuple):
    """The system that others are compared with, and its file, if it is no other source."""

    name: str | None  # None: each with each, or a file that is still to be written
    path: str | None
    updating: Updating

    @property
    def is_new(self) -> bool:
        """Whether the file is to be written for the first time."""
        return self.path is not None and self.name is None

    def check(self, stored: Mapping[str, Stored], asked: Sequence[Measure]) -> None:
        """End the command if the file could not be replaced without loss."""
        if self.path is None or self.is_new or not self.updating.update:
            return
        if self.path not in stored:
            refuse(f"--update: {self.path} holds no results of `fastndcg score --out`; name another file")
        lost = [str(measure) for measure in stored[self.path].measures if measure not in asked]
        if lost:
            refuse(f"--update would drop {', '.join(lost)} from {self.path}; leave -m out, or name them too")

    def update(self, systems: Mapping[str, Scored], failed: Sequence[Verdict]) -> None:
        """Write the results of the other system to the file, whole or not at all, if that was asked for."""
        others = [name for name in systems if name != self.name]
        if not self.updating.update or self.path is None:
            return
        if len(others) != 1:
            refuse(f"--update writes the results of one system; {len(others)} are given: {', '.join(others)}")
        if failed and not self.updating.force:
            note(
                f"{self.path} stays as it is, since {count_of(len(failed), 'gate')} did not hold; "
                "--force writes it anyway"
            )
            return
        new = systems[others[0]]
        write_out(Path(self.path), [new._replace(run=None)])
        note(f"{self.path} has the results of {others[0]} now: {count_of(new.scores.n_queries, 'query')}")
