"""Settings of pytest-benchmark for this folder: one thread a tool, and a record that names the machine but not its owner."""

from __future__ import annotations

import os
import warnings
from typing import Any

from pytest_benchmark.logger import PytestBenchmarkWarning

from bench import record

# read by the tools when they are imported
os.environ |= dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"), "1"
)  # fmt: skip
FEATURES = ("sse4", "avx", "fma", "bmi", "amx", "neon", "asimd", "sve")


def pytest_configure(config: Any) -> None:
    config.option.benchmark_storage = f"file://{record.FOLDER}"
    config.option.benchmark_columns = config.option.benchmark_columns or ["min", "median", "rounds"]
    # another machine or version than that of the record is worth a warning, and no more
    warnings.filterwarnings("default", category=PytestBenchmarkWarning)


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    cpu, python = machine_info["cpu"], machine_info["python_version"]
    system = f"{machine_info['system']} {machine_info['machine']}"
    machine_info.clear()
    machine_info |= {
        "processor": cpu.get("brand_raw") or record.processor(),
        "cores": os.cpu_count(),
        "features": [flag for flag in cpu.get("flags", ()) if flag.startswith(FEATURES)],
        "system": system,
        "python": python,
        **record.versions(),
    }


def pytest_benchmark_update_commit_info(commit_info: dict[str, Any]) -> None:
    for name in ("project", "branch", "author_time"):
        commit_info.pop(name, None)


def pytest_benchmark_update_json(output_json: dict[str, Any]) -> None:
    output_json["load"] = round(os.getloadavg()[1], 1)  # processes, of the last five minutes
