"""Store the measurements of a section as CSV, with the machine, the date and the versions."""

from __future__ import annotations

import csv
import datetime as dt
import os
import platform
import re
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from bench.timing import Time

FOLDER = Path(__file__).resolve().parent / "record"
MACHINE = "machine"


class Row(NamedTuple):
    """One measurement. `ratio`, our time over the baseline's or the reverse, is compared with the bar."""

    section: str
    name: str
    baseline: str = ""
    unit: str = ""
    wall: float | None = None
    cpu: float | None = None
    baseline_wall: float | None = None
    baseline_cpu: float | None = None
    ratio: float | None = None
    bar: float | None = None
    moonshot: float | None = None
    wants: str = "less"
    note: str = ""

    @property
    def value(self) -> float | None:
        """The number to compare with the bar: the ratio, or the time if there is no baseline."""
        return self.cpu if self.ratio is None else self.ratio

    @property
    def verdict(self) -> str:
        if self.value is None or self.bar is None:
            return ""
        if self._reaches(self.bar):
            return "moonshot" if self.moonshot is not None and self._reaches(self.moonshot) else "met"
        return "missed"

    def _reaches(self, goal: float) -> bool:
        value = self.value
        return value is not None and (value >= goal if self.wants == "more" else value <= goal)


def beside(
    section: str, name: str, baseline: str, unit: str, ours: Time, base: Time, *, each: float = 1.0, clock: str = "cpu", **more: Any
) -> Row:  # fmt: skip
    """The row of two measurements. Times, in seconds, are multiplied by `each`; the ratio is of this clock."""
    numbers = [seconds * each for time in (ours, base) for seconds in time]
    ratio = getattr(ours, clock) / getattr(base, clock)
    ratio = 1 / ratio if more.get("wants") == "more" else ratio
    return Row(section, name, baseline, unit, *numbers, **{"ratio": ratio} | more)


_NUMBERS = {"wall", "cpu", "baseline_wall", "baseline_cpu", "ratio", "bar", "moonshot"}


def write(rows: Iterable[Row], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        for row in rows:
            writer.writerow(
                f"{cell:.6g}" if isinstance(cell, float) else "" if cell is None else cell for cell in row
            )


def read(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return [_row(cells) for cells in csv.DictReader(file)]


def _row(cells: dict[str, str]) -> Row:
    values: dict[str, Any] = {
        name: (float(cell) if cell else None) if name in _NUMBERS else cell for name, cell in cells.items()
    }
    return Row(**values)


def path_of(section: str) -> Path:
    """The record of a section, which the next one replaces."""
    return FOLDER / f"{section}.csv"


def processor() -> str:
    return _said_of_processors("model name") or platform.processor() or platform.machine()


def features() -> str:
    """The processor's vector instructions and those of bits, which kernels are compiled for."""
    flags = _said_of_processors("flags|Features").split()  # on x86-64, on aarch64
    return " ".join(sorted(flag for flag in flags if flag.startswith(("avx", "bmi", "asimd", "sve"))))


def _said_of_processors(name: str) -> str:
    path = Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = re.search(rf"^(?:{name})\s*:\s*(.*)", text, flags=re.MULTILINE)
    return found[1] if found else ""


def settings() -> list[Row]:
    """Return a row for the beginning of a record that is not made with the settings that users have."""
    given = [
        f"{name}={os.environ[name]}"
        for name in _SETTINGS
        if os.environ.get(name, "auto") not in ("", "auto", "0")
    ]
    return [Row(MACHINE, "settings", note=f"not as users run it: {' '.join(given)}")] if given else []


_SETTINGS = ("FASTNDCG_KERNELS", "NUMBA_DISABLE_JIT")


def machine(note: str) -> list[Row]:
    """Return the machine, the date and the versions as rows of a record."""
    facts = {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "processor": processor(),
        "features": features(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "load": f"{os.getloadavg()[0]:.1f} processes at the end of the run",
        "python": platform.python_version(),
    }
    if note:
        facts["note"] = note
    return [Row(MACHINE, name, note=value) for name, value in (facts | versions()).items()]


def versions() -> dict[str, str]:
    found = {}
    for name in (
        "fastndcg",
        "numba",
        "llvmlite",
        "numpy",
        "pyarrow",
        "polars",
        "duckdb",
        "pyspark",
        "dask",
        "ray",
    ):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
