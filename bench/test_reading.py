"""pytest-benchmark: read a Parquet file of half a million documents, with and without scoring it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import reading

QUERIES = 5_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parquet")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("ids", ["int64", "string"])
@pytest.mark.parametrize("way", reading.WAYS)
def test_read_and_score(benchmark: Any, folder: Path, way: str, ids: str, threads: int) -> None:
    path = reading.file_of(folder, QUERIES, ids)
    reading.check(path, pq.read_table(path, columns=reading.COLUMNS), threads)
    pa.set_cpu_count(threads)
    benchmark(reading.WAYS[way], path, threads)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("ids", ["int64", "string"])
def test_read_table(benchmark: Any, folder: Path, ids: str, threads: int) -> None:
    path = reading.file_of(folder, QUERIES, ids)
    pa.set_cpu_count(threads)
    benchmark(pq.read_table, path, columns=reading.COLUMNS, use_threads=threads > 1)
