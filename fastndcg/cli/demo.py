"""`fastndcg demo`: a realistic sample of graded predictions, made from a seed, written and scored."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.api.evaluate import evaluate
from fastndcg.cli.application import command, option
from fastndcg.cli.inputs import Inputs, Sources
from fastndcg.cli.options import FORMAT, THREADS, read_measures
from fastndcg.cli.output import Format, note, write, write_summary
from fastndcg.common.files import check_writable, whole_file
from fastndcg.common.progress import Task, advance
from fastndcg.tables.roles import Roles

QUERIES = 91_000  # about 10 million documents

_BATCH = 8_192  # queries of a row group: some 900,000 rows, less than 100 MB of memory whatever the size
_LONGEST = 2_000
_LENGTH_MEDIAN, _LENGTH_SIGMA = 61.0, 1.1  # of the lognormal: mean about 110
# bounds of the latent relevance: two of three documents have grade 0
_GRADE_BOUNDS = np.array([0.45, 1.2, 1.9, 2.5], np.float32)
_WITHOUT_RELEVANT = 0.03  # share of queries, beside those that have none by chance
_ROUNDED = 0.2  # share of queries whose scores have one decimal, so that most of them are tied
_DEVICES = ("desktop", "phone", "tablet")
_DEVICE_SHARES = (0.35, 0.58, 0.07)
# correlation of the scores with the latent relevance
_DEVICE_SKILL = np.array([0.62, 0.52, 0.58], np.float32)
# weight of the latent relevance that the second system adds to the scores of the first
_RERANK_GAIN = np.array([0.08, 0.03, -0.04], np.float32)
_RERANK_NOISE = 0.25
_COUNTRIES = ("US", "IN", "DE", "BR", "JP", "FR", "GB", "TR")
_COUNTRY_SHARES = (0.34, 0.19, 0.12, 0.1, 0.08, 0.07, 0.06, 0.04)
_BYTES_OF_QUERY = 910  # on average


@command
def demo(
    queries: int = option("Number of queries, with about 110 documents each.", QUERIES, min=1),
    out: Path = option("Parquet file to write the sample to.", Path("fastndcg-demo.parquet")),
    seed: int = option("Random seed.", 0, min=0),
    format: Format = FORMAT,
    threads: int | None = THREADS,
) -> None:
    """Write a realistic sample, score it, and suggest next steps.

    The default sample has ten million documents and takes about 83 MB. It has the scores of two systems,
    lists of very different lengths, skewed grades, ties, and queries without a relevant document.

    \b
    Example:
      fastndcg demo --queries 1000 --out sample.parquet
    """
    check_writable(out)
    size = queries * _BYTES_OF_QUERY / 1e6
    note(f"writing about {queries * 110:,} documents, {size:,.1f} MB, to {out}")
    times = [perf_counter()]
    with Task("Writing the sample", "queries"):
        documents = write_sample(out, queries, seed)
    times.append(perf_counter())
    (system,) = Inputs(Sources([str(out)], "", []), Roles(), threads, together=True, whole=True).systems()
    times.append(perf_counter())
    measures = read_measures(["nDCG@10", "nDCG(gain='exp2')@1,3,5", "nDCG", "nDCG(ties='worst')@10", "CG@10"])
    for _ in range(2):
        scores = evaluate(system.rankings, measures, threads=threads)
        times.append(perf_counter())
    steps = ("write", "read", "first_score", "score")
    seconds = {step: end - start for step, start, end in zip(steps, times, times[1:], strict=False)}
    system.tell()
    facts = {"path": str(out), "seed": seed, "queries": queries, "documents": documents}
    write_summary(scores.summary(), format, facts | {"columns": system.columns, "seconds": seconds})
    if format is Format.table:
        path = shlex.quote(str(out))
        speed = {step: documents / seconds[step] / 1e6 for step in ("read", "score")}
        write(f"""
{documents:,} documents in {path}, {out.stat().st_size / 1e6:.1f} MB, written in {seconds["write"]:.1f} s
read   {speed["read"]:8.1f} million documents per second ({seconds["read"]:.2f} s)
score  {speed["score"]:8.1f} million documents per second ({seconds["score"]:.2f} s for {len(measures)} \
measures; {seconds["first_score"]:.1f} s the first time, when kernels are compiled or loaded)

Try next:
  fastndcg score {path} -m nDCG@10 -m "nDCG(ties='worst')@10" -m "nDCG(ties='best')@10"
  fastndcg score {path} -m nDCG@5,10 --by device --confidence 0.95
  fastndcg explain {path} -m nDCG@10 --worst 1
  fastndcg compare {path} --score score --score rerank -m nDCG@10 --by device
""")


def write_sample(path: str | os.PathLike[str], queries: int = QUERIES, seed: int = 0) -> int:
    """Write a sample as Parquet, a row for each document, sorted by query; return the number of documents.

    Lists are of lognormal length, about 110 on average, and a second system, `rerank`, is better on desktops
    and phones, and worse on tablets. The same seed and number of queries give the same values.
    """
    import pyarrow.parquet as pq

    documents, schema = 0, _batch(0, 1, seed).schema
    few = ["query_id", "label", "country", "device"]  # columns of few values, which gain from a dictionary
    with whole_file(path) as draft, pq.ParquetWriter(draft, schema, use_dictionary=few) as writer:
        for first in range(0, queries, _BATCH):
            stop = min(first + _BATCH, queries)
            table = _batch(first, stop, seed)
            writer.write_table(table)
            documents += len(table)
            advance(stop, queries)
    return documents


def _batch(first: int, stop: int, seed: int) -> pa.Table:
    rng = np.random.default_rng([seed, first])
    n = stop - first
    drawn = np.rint(rng.lognormal(np.log(_LENGTH_MEDIAN), _LENGTH_SIGMA, n))
    lengths = np.clip(drawn, 1, _LONGEST).astype(np.int64)
    country = rng.choice(len(_COUNTRIES), n, p=_COUNTRY_SHARES).astype(np.int8)
    device = rng.choice(len(_DEVICES), n, p=_DEVICE_SHARES).astype(np.int8)
    plenty = rng.normal(0, 0.5, n).astype(np.float32)  # some queries have more relevant documents than others
    plenty[rng.random(n) < _WITHOUT_RELEVANT] = -np.inf
    rounded = rng.random(n) < _ROUNDED

    def of_query(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.repeat(values, lengths)

    rows = int(lengths.sum())
    latent = rng.standard_normal(rows, np.float32)
    skill = _DEVICE_SKILL[device]
    scores = of_query(skill) * latent
    scores += of_query(np.sqrt(1 - skill**2)) * rng.standard_normal(rows, np.float32)
    rerank = scores + of_query(_RERANK_GAIN[device]) * latent
    coarse = of_query(rounded)
    scores[coarse] = np.round(scores[coarse], 1)
    latent += of_query(plenty)
    label = np.searchsorted(_GRADE_BOUNDS, latent, side="right").astype(np.uint8)
    rerank += np.float32(_RERANK_NOISE) * rng.standard_normal(rows, np.float32)
    return pa.table(
        {
            "query_id": of_query(np.arange(first, stop, dtype=np.int64)),
            "label": label,
            "score": scores,
            "rerank": rerank,
            "country": pa.DictionaryArray.from_arrays(of_query(country), _COUNTRIES),
            "device": pa.DictionaryArray.from_arrays(of_query(device), _DEVICES),
        }
    )
