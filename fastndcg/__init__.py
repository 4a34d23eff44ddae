"""Exact ranking measures over millions of ragged queries.

    import fastndcg as fn
    scores = fn.evaluate(fn.read_parquet("predictions.parquet"), ["nDCG@10", fn.nDCG(gain="exp2") @ 5])
    print(scores.summary())

Where everything is, layer by layer; a layer imports only layers above it in this list, and its `__init__`
lists its modules:

    errors      every error and warning, and helpers for their messages
    typing      types of parameters and options, for annotations
    common      arrays, Arrow types, tables that print, progress, files, threads, lazy imports
    kernels     every function that may be compiled: rank each query once, fold it into all measures
    compiled    the same files, compiled, once that pays
    measures    a measure as a value: definitions, parameters, notation; what other tools call it, as data
    statistics  sums, intervals, tests of significance, resampling: arrays in, numbers out
    charts      pictures: rows in, a chart out
    tables      in-memory data of the caller as checked columns: roles, types, grouping
    rankings    the input: `Rankings` and its constructors
    scores      results: `Scores`, values by query, means, summaries, slices, storage, signatures
    scoring     from measures and rankings to values: plan, launch
    sources     files and streams: Parquet, CSV, JSON Lines, Feather, TREC, LETOR, Arrow batches
    convention  the value of another tool, and what makes two tools differ
    api         `evaluate`, `ndcg`, `ndcg_score`, `dcg_score`, `compile_kernels`
    analysis    `compare`, `explain`, `anchors`, ranges, clicks, judgments, `History`, the page of `report`
    plot        the plots of results, under their public names
    trec_eval   what trec_eval prints, byte for byte
    adapters    Spark, Dask, Ray, boosters, evaluation libraries; nothing imports them
    cli         the command line; nothing imports it

Importing this package imports nothing else: each name imports its module on first use. Numba is imported,
and kernels are compiled or loaded, once a process has enough work for them.
"""

from typing import TYPE_CHECKING

from fastndcg._version import __version__ as __version__

if TYPE_CHECKING:
    from fastndcg import plot as plot
    from fastndcg.analysis.clicks import compare_clicks as compare_clicks
    from fastndcg.analysis.clicks import propensities as propensities
    from fastndcg.analysis.clicks import snips as snips
    from fastndcg.analysis.compare import compare as compare
    from fastndcg.analysis.explain import explain as explain
    from fastndcg.analysis.history import History as History
    from fastndcg.analysis.judgments import check_judgments as check_judgments
    from fastndcg.analysis.judgments import pool as pool
    from fastndcg.analysis.ranges import anchors as anchors
    from fastndcg.analysis.ranges import judgment_range as judgment_range
    from fastndcg.analysis.ranges import tie_range as tie_range
    from fastndcg.analysis.report import report as report
    from fastndcg.api.compilation import compile_kernels as compile_kernels
    from fastndcg.api.drop_ins import dcg_score as dcg_score
    from fastndcg.api.drop_ins import ndcg_score as ndcg_score
    from fastndcg.api.evaluate import evaluate as evaluate
    from fastndcg.api.evaluate import evaluate_query as evaluate_query
    from fastndcg.api.evaluate import ndcg as ndcg
    from fastndcg.convention.differences import compare_conventions as compare_conventions
    from fastndcg.convention.differences import explain_conventions as explain_conventions
    from fastndcg.convention.differences import match_conventions as match_conventions
    from fastndcg.errors import ColumnError as ColumnError
    from fastndcg.errors import ConventionError as ConventionError
    from fastndcg.errors import ExtraError as ExtraError
    from fastndcg.errors import FastndcgError as FastndcgError
    from fastndcg.errors import FastndcgWarning as FastndcgWarning
    from fastndcg.errors import InputError as InputError
    from fastndcg.errors import InputTypeError as InputTypeError
    from fastndcg.errors import MeasureError as MeasureError
    from fastndcg.errors import SourceError as SourceError
    from fastndcg.measures import Measure as Measure
    from fastndcg.measures import parse as parse
    from fastndcg.measures import parse_many as parse_many
    from fastndcg.measures.conventions import conventions as conventions
    from fastndcg.measures.named import *  # noqa: F403
    from fastndcg.rankings.rankings import Rankings as Rankings
    from fastndcg.scores.scores import Scores as Scores
    from fastndcg.sources.letor import read_ltr as read_ltr
    from fastndcg.sources.readers import read_csv as read_csv
    from fastndcg.sources.readers import read_parquet as read_parquet
    from fastndcg.sources.readers import scan_arrow as scan_arrow
    from fastndcg.sources.readers import scan_csv as scan_csv
    from fastndcg.sources.readers import scan_parquet as scan_parquet
    from fastndcg.sources.trec import read_qrels_run as read_qrels_run
    from fastndcg.sources.trec import read_trec as read_trec

_HOMES = {
    "api.compilation": "compile_kernels",
    "api.drop_ins": "dcg_score ndcg_score",
    "api.evaluate": "evaluate evaluate_query ndcg",
    "convention.differences": "compare_conventions explain_conventions match_conventions",
    "analysis.explain": "explain",
    "analysis.judgments": "check_judgments pool",
    "analysis.clicks": "compare_clicks propensities snips",
    "analysis.history": "History",
    "analysis.ranges": "anchors judgment_range tie_range",
    "analysis.report": "report",
    "analysis.compare": "compare",
    "errors": (
        "ColumnError ConventionError ExtraError FastndcgError FastndcgWarning InputError "
        "InputTypeError MeasureError SourceError"
    ),
    "measures": "Measure parse parse_many",
    "measures.conventions": "conventions",
    "rankings.rankings": "Rankings",
    "scores.scores": "Scores",
    "sources.letor": "read_ltr",
    "sources.readers": ("read_csv read_parquet scan_arrow scan_csv scan_parquet"),
    "sources.trec": "read_qrels_run read_trec",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name or a module on its first use."""
        from importlib import import_module

        if name == "__all__":
            measures = vars(import_module("fastndcg.measures.named"))
            return [*_HOME_OF, *(each for each in measures if each[0] != "_")]
        path = f"fastndcg.{name}"
        try:
            if name not in _HOME_OF and not name.startswith("_"):
                return import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
        home = import_module(f"fastndcg.{_HOME_OF.get(name, 'measures.named')}")
        if name.startswith("_") or name not in vars(home):
            from fastndcg.common.removed import advice

            raise AttributeError(f"module 'fastndcg' has no attribute {name!r}{advice(name)}")
        found = globals()[name] = getattr(home, name)
        return found

    def __dir__() -> list[str]:
        return [name for name in globals() if name.startswith("__")] + [*__getattr__("__all__"), "plot"]
