"""`fastndcg trec_eval`: what trec_eval prints."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from fastndcg.cli.application import command
from fastndcg.cli.options import ThreadsOption
from fastndcg.cli.output import note, refuse, write
from fastndcg.errors import MeasureError

if TYPE_CHECKING:
    from fastndcg.trec_eval.declared import Declared


def _trec_eval_measures(wanted: bool) -> None:
    if wanted:
        from fastndcg.trec_eval.declared import DECLARED, SETS

        lines = [f"{each.name:<22} {each.summary}{_defaults(each)}\n" for each in DECLARED.values()]
        sets = [f"{name:<22} {', '.join(names)}\n" for name, names in SETS.items()]
        write("".join([*lines, "\nSets:\n", *sets]))
        raise typer.Exit


def _defaults(declared: Declared) -> str:
    if declared.takes == "gains":
        return "; GRADE=GAIN,..."
    return f"; {','.join(f'{value:g}' for value in declared.default)}" if declared.default else ""


QrelsArgument = Annotated[str, typer.Argument(metavar="QRELS", help="Judgments: query iteration doc grade.")]
RunsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help=(
            "Run: query Q0 doc rank score tag; - is standard input. Several are printed one after the other."
        ),
    ),
]
MeasureOption = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        metavar="NAME[.PARAMETERS]",
        help="Such as ndcg_cut.5,10; or official, set, all_trec; repeatable.",
        show_default="official",
    ),
]
PerQueryOption = Annotated[bool, typer.Option("--query_eval_wanted", "-q", help="Values of each query too.")]
CompleteOption = Annotated[
    bool,
    typer.Option("--complete_rel_info_wanted", "-c", help="Count judged queries that the run lacks as 0."),
]
NoSummaryOption = Annotated[bool, typer.Option("--nosummary", "-n", help="Print no values over all queries.")]
JudgedOnlyOption = Annotated[
    bool, typer.Option("--Judged_docs_only", "-J", help="Drop documents without a judgment.")
]
LevelOption = Annotated[
    int, typer.Option("--level_for_rel", "-l", min=0, help="Smallest grade that counts as relevant.")
]
MostOption = Annotated[
    int | None,
    typer.Option("--Max_retrieved_per_topic", "-M", min=0, help="Use this many documents of each query."),
]
CollectionOption = Annotated[
    int, typer.Option("--Number_docs_in_coll", "-N", min=0, help="Documents in the collection, for utility.")
]
ReleaseOption = Annotated[
    int,
    typer.Option(
        min=9,
        max=10,
        help=(
            "9: 9.0.8, with scores as float32, its own levels of recall, and -q without queries that "
            "the run lacks."
        ),
    ),
]
Option = Annotated[
    bool,
    typer.Option(
        "--measures", callback=_trec_eval_measures, is_eager=True, help="List the measures and exit."
    ),
]


def trec_eval(
    qrels: QrelsArgument,
    runs: RunsArgument,
    measure: MeasureOption = None,
    per_query: PerQueryOption = False,
    complete: CompleteOption = False,
    no_summary: NoSummaryOption = False,
    judged_only: JudgedOnlyOption = False,
    level: LevelOption = 1,
    most: MostOption = None,
    collection: CollectionOption = 0,
    release: ReleaseOption = 10,
    threads: ThreadsOption = None,
    _: Option = False,
) -> None:
    """Print what trec_eval prints, byte for byte.

    Options have trec_eval's own names, so its command lines work unchanged. Documents with equal scores are
    ordered by falling id. If -m names a measure twice, the first parameters count. Without -c, judged queries
    that the run lacks are left out, where trec_eval 10 stops. Packed files are read too.

    \b
    Examples:
      fastndcg trec_eval qrels.txt run.txt.gz
      fastndcg trec_eval -q -c -m map -m ndcg_cut.10,20 -M 1000 qrels.txt run.txt
      fastndcg trec_eval -m map -m runid qrels.txt runs/*.txt
      fastndcg trec_eval --measures
    """
    from fastndcg.trec_eval.asked import read_names
    from fastndcg.trec_eval.printed import report
    from fastndcg.trec_eval.runs import read_judgments

    try:
        read_names(measure or [], 9 if release == 9 else 10)
    except MeasureError as error:
        refuse(f"--measure: {error}")
    # the judgments of one run are read beside it
    judged = qrels if len(runs) == 1 else read_judgments(qrels, threads)
    told: set[str] = set()

    def note_once(text: str) -> None:
        if text not in told:
            note(text)
        told.add(text)

    for run in runs:
        parts = report(
            judged,
            run,
            measure or [],
            per_query=per_query,
            summary=not no_summary,
            complete=complete,
            release=9 if release == 9 else 10,
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


command(trec_eval, name="trec_eval")
