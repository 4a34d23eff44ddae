"""`fastndcg demo`: a generated file of predictions, written and scored."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path
from time import perf_counter

from fastndcg.api.evaluate import evaluate
from fastndcg.cli.application import command, option
from fastndcg.cli.inputs import Inputs, Sources
from fastndcg.cli.options import FORMAT, THREADS, read_measures
from fastndcg.cli.output import Format, note, write, write_summary
from fastndcg.cli.sample import QUERIES
from fastndcg.common.files import check_writable
from fastndcg.common.progress import Task
from fastndcg.tables.roles import Roles

_BYTES_OF_QUERY = 910  # on average


@command
def demo(
    queries: int = option("Number of queries, with about 110 documents each.", QUERIES, min=1),
    out: Path | None = option("Parquet file to write the sample to.", show_default="in a temporary folder"),
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
    from fastndcg.cli.sample import write_sample

    out = _temporary() if out is None else out
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


def _temporary() -> Path:
    """A file in a folder of this user, the same each time, so that several demonstrations keep one sample."""
    import tempfile

    user = os.getuid() if hasattr(os, "getuid") else "sample"
    folder = Path(tempfile.gettempdir()) / f"fastndcg-demo-{user}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        if not folder.is_symlink() and (not hasattr(os, "getuid") or folder.stat().st_uid == user):
            return folder / "sample.parquet"
    return Path(tempfile.mkdtemp(prefix="fastndcg-demo-")) / "sample.parquet"
