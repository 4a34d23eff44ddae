"""`fastndcg trec_eval`: what trec_eval prints."""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any

import typer

from fastndcg.cli.application import argument, command, option, refusing
from fastndcg.cli.options import THREADS
from fastndcg.cli.output import note, refuse, write


def _list_measures(wanted: bool) -> None:
    if wanted:
        from fastndcg.trec_eval.measures import DEFINITIONS, SETS

        lines = []
        for each in DEFINITIONS.values():
            takes = (
                "GRADE=GAIN,..." if each.takes == "gains" else ",".join(f"{one:g}" for one in each.default)
            )
            lines.append(f"{each.name:<22} {each.summary}{takes and f'; {takes}'}\n")
        sets = [f"{name:<22} {', '.join(names)}\n" for name, names in SETS.items()]
        write("".join([*lines, "\nSets:\n", *sets]))
        raise typer.Exit


@command
def trec_eval(
    qrels: str = argument("QRELS", "Judgments: query iteration doc grade."),
    runs: list[str] = argument(
        "RUN...",
        "Run: query Q0 doc rank score tag; - is standard input. Several are printed one after the other.",
    ),
    measure: list[str] | None = option(
        "Such as ndcg_cut.5,10; or official, set, all_trec; repeatable.",
        None,
        "--measure",
        "-m",
        metavar="NAME[.PARAMETERS]",
        show_default="official",
    ),
    per_query: bool = option("Print the values of each query too.", False, "--query_eval_wanted", "-q"),
    complete: bool = option(
        "Count judged queries that the run lacks as 0.", False, "--complete_rel_info_wanted", "-c"
    ),
    no_summary: bool = option("Print no summary over all queries.", False, "--nosummary", "-n"),
    judged_only: bool = option("Drop documents without a judgment.", False, "--Judged_docs_only", "-J"),
    level: int = option("Smallest grade that counts as relevant.", 1, "--level_for_rel", "-l", min=0),
    most: int | None = option(
        "Maximum number of documents of each query.", None, "--Max_retrieved_per_topic", "-M", min=0
    ),
    collection: int = option(
        "Number of documents in the collection, for utility.", 0, "--Number_docs_in_coll", "-N", min=0
    ),
    form: str = option(
        "Form of judgments; only qrels, trec_eval's default.", "qrels", "--Rel_info_format", "-R"
    ),
    release: int = option(
        "9: 9.0.8, with scores as float32, its own levels of recall, and -q without queries that "
        "the run lacks.",
        10,
        min=9,
        max=10,
    ),
    threads: int | None = THREADS,
    _: bool = option(
        "List the measures and exit.", False, "--measures", callback=_list_measures, is_eager=True
    ),
) -> None:
    """Print what trec_eval prints, byte for byte.

    Options have trec_eval's own names, so its command lines work unchanged. Documents with equal scores are
    ordered by descending id. If -m repeats a measure, the first parameters count. Without -c, judged queries
    that the run lacks are left out, where trec_eval 10 stops. Compressed files are read too.

    \b
    Examples:
      fastndcg trec_eval qrels.txt run.txt.gz
      fastndcg trec_eval -q -c -m map -m ndcg_cut.10,20 -M 1000 qrels.txt run.txt
      fastndcg trec_eval -m map -m runid qrels.txt runs/*.txt
      fastndcg trec_eval --measures
    """
    from fastndcg.trec_eval.measures import read_names
    from fastndcg.trec_eval.output import read_judgments, report

    of_release: Any = release  # 9 or 10
    if form != "qrels":
        refuse(f"--Rel_info_format: {form} is not supported; expected qrels. Use trec_eval itself for {form}")
    with refusing("--measure: "):
        read_names(measure or [], of_release)
    # the judgments of one run are read beside it
    judged = qrels if len(runs) == 1 else read_judgments(qrels, threads)
    note_once = cache(note)
    for run in runs:
        parts = report(
            judged,
            run,
            measure or [],
            per_query=per_query,
            summary=not no_summary,
            complete=complete,
            release=of_release,
            note=note_once,
            judged_only=judged_only,
            level=level,
            most=most,
            collection=collection,
            threads=threads,
        )
        first = next(parts, "")  # nothing fails after it
        for part in chain([first], parts):
            write(part)
