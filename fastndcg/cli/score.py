"""`fastndcg score`: values of measures, of one run or several."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from fastndcg.cli import options
from fastndcg.cli.application import command, option
from fastndcg.cli.gates import check_means, hold
from fastndcg.cli.inputs import ReadingOfMeans, Systems, check_out, options_of
from fastndcg.cli.output import Format, Rows, refuse, slices_of, write_summary
from fastndcg.cli.scores import Evaluation, Scored, write_out
from fastndcg.errors import warn
from fastndcg.measures.aliases import is_of_trec_eval
from fastndcg.scoring import methods

Missing = StrEnum("Missing", ["zero", "skip"])  # judged queries that the run lacks


@command
def score(
    *,
    given: Systems,
    missing: Missing | None = option(
        "With --qrels: count judged queries that the run lacks as empty rankings (zero), or skip them.",
        show_default="zero",
    ),
    measure: list[str] | None = options.MEASURES,
    scores: str | None = option(
        "For a LETOR file: one score per line, as text, .npy or Parquet.", metavar="FILE"
    ),
    keep: list[str] | None = option("Query-level column to copy to --out; repeatable."),
    reading: ReadingOfMeans,
    how: Evaluation,
    out: Path | None = option("Write the values of each query to a .parquet, .csv, .jsonl or .feather file."),
    format: Format = options.FORMAT,
    by: list[str] | None = option(
        "Show means for each value of this query-level column; repeatable, for combinations."
    ),
    confidence: float | None = option("Add confidence intervals of the means, such as 0.95."),
    fail_under: list[str] | None = options.FAIL_UNDER,
) -> None:
    """Score predictions and print the means.

    Several files are one input; several columns of scores are several systems, and have a row each. A file
    has one row per document, in any order, or one row per query with lists. Columns with common names are
    found automatically; stderr names them. The content of a file decides its format, and may be compressed
    with gzip, bzip2 or Zstandard. CSV has a header line, unless --columns names the fields.

    With --qrels, each PATH is a run, like --run. Judgments are read once and joined with each run on query
    and document id. Documents with equal scores are ordered by descending id, as in trec_eval; measures with
    ties='input' keep that order. For measures of several intents, such as alpha_nDCG, the second field of
    TREC qrels is the intent.

    \b
    Examples:
      fastndcg score --qrels qrels.txt runs/*.txt -m "nDCG(ties='input')@10"
      fastndcg score predictions.parquet -m nDCG@10 -m "nDCG(gain='exp2')@1,3,5"
      fastndcg score --qrels diversity.qrels --run run.txt -m alpha_nDCG@20 -m ERR_IA@20
      duckdb -csv -c "FROM predictions WHERE day = current_date" | fastndcg score -
      fastndcg score test.letor --scores predictions.txt
      fastndcg score judged.csv --grades "Perfect=4,Good=2,Fair=1,Bad=0" --unjudged null
      fastndcg score predictions.parquet --by country --confidence 0.95 --keep country --out per_query.parquet
      fastndcg score predictions.parquet -m nDCG@1-20 -m nDCG@slots
      fastndcg score predictions.parquet -m nDCG@10 --convention lightgbm
      fastndcg score canary.parquet --fail-under "nDCG@10=0.35" --format json
    """
    gates = options.read_gates(fail_under or [])
    measures = options.read_measures(measure or ([] if gates else ["nDCG@10"]), gates)
    slices = options.read_by(by, ["run", "measure", "mean", "low", "high", "queries", "empty", "small"])
    if confidence is not None:
        options.check_confidence(confidence)
    sources = given.sources(reading)
    if missing is not None and not sources.runs:
        refuse("--missing cannot be used without --qrels and --run")
    if scores is not None and sources.runs:
        refuse("--scores cannot be used with --qrels and --run")
    if out is not None:
        check_out(out, [*sources.paths, *sources.runs, sources.qrels, scores or ""])
    elif keep:
        refuse("--keep adds columns to the file of --out; add --out, as in --out per_query.parquet")
    roles = reading.roles(sources.score, [*(keep or []), *slices, *how.kept])
    of_predictions = {} if sources.runs else {"--keep": keep} | options_of(replace(roles, keep=()))
    inputs = how.inputs(sources, roles, of_predictions, letor=scores, together=True)
    lacking: Any = "zero" if missing is None else missing.value
    stored = measures if measure or gates else None
    signed = out is not None or format is Format.json
    scored = list(how.score(inputs, measures, stored, lacking, signed=signed))
    if len(sources.runs) == 1:
        scored = [each._replace(run=None) if each.results is None else each for each in scored]
    if out is not None:
        write_out(out, scored)
    for each in scored if sources.runs else ():
        _note_on(each, how)
    scored = list(map(how.weigh, scored))
    by_tool = {} if how.convention is None else {"convention": how.convention}
    _report(scored, format, by_tool, slices, confidence)
    hold([verdict for each in scored for verdict in check_means(gates, each.scores.mean(), each.run)])


def _note_on(scored: Scored, how: Evaluation) -> None:
    """Warn of judgments without intents, and of measures that are spelled as in trec_eval and differ from it
    by its order of tied documents.
    """
    scores, rankings = scored.scores, scored.scores._rankings
    if rankings is None:
        return
    if rankings.intents is not None and not rankings.intents.numbers.any():
        warn(
            "no query has more than one intent; is the second field of the qrels an iteration instead of the "
            "intent?"
        )
    averaged = [each for each in scores.measures if each.params.get("ties") == "average"]
    asked = {each: each(ties="input") for each in averaged if is_of_trec_eval(each.label)}
    if not asked or how.convention is not None:
        return
    theirs = methods.score(tuple(asked.values()), rankings, how.threads)
    for measure, by_id in asked.items():
        if (np.abs(scores[measure] - theirs[by_id]) > _ROUNDING).any():
            warn(
                f"{measure.label} is the expected value over the orders of tied documents; trec_eval orders "
                f'them by descending id: -m "{by_id}"'
            )


_ROUNDING = 1e-12


def _report(
    scored: list[Scored], format: Format, more: dict[str, Any], by: list[str], confidence: float | None
) -> None:
    from fastndcg.scores.summary import Summary

    rows: Rows = []
    slices: Rows = []
    for each in scored:
        of_run = {} if each.run is None else {"run": each.run}
        tables = each.scores.summary(confidence).rows, slices_of(each.scores, by, confidence) if by else []
        known = {str(measure): each.knows_empty(measure) for measure in each.scores}
        for into, of_each in zip((rows, slices), tables, strict=True):
            for row in of_each:
                into.append(of_run | row | ({} if known[row["measure"]] else {"empty": None}))
        each.tell()
    facts = [each.facts() for each in scored] if format is Format.json else [{}]
    document = facts[0] if len(scored) == 1 else {"runs": facts}
    write_summary(Summary(rows), format, document | more, slices if by else None)
