"""The Python reference: tables of names, parameters and summaries in docs/reference.md, whole docstrings in the built site."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import fastndcg as fn
from bench.tables import markdown
from fastndcg.typing import RoleKeywords

# the names of each section below fastndcg, in the order of the page
SECTIONS = {
    "Evaluate": (
        "evaluate Scores common.table.Table scores.summary.Summary evaluate_query ndcg ndcg_score dcg_score"
    ),
    "Compare systems": "compare analysis.compare.Comparison History check_judgments pool",
    "Build rankings": (
        "Rankings rankings.rankings.JudgedPool tables.intents.IntentGrades tables.intents.IntentProbabilities"
    ),
    "Read files": (
        "read_parquet read_csv read_trec read_qrels_run read_ltr scan_parquet scan_csv scan_arrow "
        "sources.streams.TableStream"
    ),
    "Name measures": "Measure measures.MeasureLike parse parse_many",
    "Explain a value": (
        "explain analysis.explain.Explanation anchors analysis.ranges.Anchors analysis.ranges.Anchor "
        "tie_range judgment_range analysis.ranges.Ranges analysis.ranges.Bounds"
    ),
    "Write a report": "report",
    "Draw pictures": (
        "plot.cutoffs plot.distribution plot.slices plot.differences plot.effects "
        "plot.contributions plot.ties plot.history plot.over_time "
        "plot.ScoresPlots plot.ComparisonPlots"
    ),
    "Reproduce other tools' numbers": (
        "conventions measures.conventions.Convention convention.evaluation.ConventionScores "
        "compare_conventions explain_conventions match_conventions"
    ),
    "Estimate from clicks": "propensities snips compare_clicks analysis.clicks.Estimate",
    "Spark, Dask and Ray": (
        "adapters.spark.evaluate adapters.dask.evaluate adapters.ray.evaluate "
        "adapters.spark.summary adapters.dask.summary adapters.ray.summary "
        "adapters.spark.means adapters.dask.means adapters.ray.means "
        "adapters.spark.evaluate_files adapters.dask.evaluate_files adapters.ray.evaluate_files "
        "adapters.spark.summary_files adapters.dask.summary_files adapters.ray.summary_files "
        "adapters.spark.plain_errors adapters.ray.plain_errors "
        "adapters.spark.group_function adapters.spark.list_function"
    ),
    "Training": (
        "adapters.xgboost.metric adapters.xgboost.callback adapters.lightgbm.metric adapters.catboost.metric "
        "adapters.sklearn.scorer"
    ),
    "Other libraries' interfaces": (
        "adapters.pytrec_eval.RelevanceEvaluator adapters.pytrec_eval.parse_run "
        "adapters.pytrec_eval.parse_qrel adapters.pytrec_eval.compute_aggregated_measure "
        "adapters.ir_measures.provider"
    ),
    "Compile ahead": "compile_kernels api.compilation.Compiled",
    "Errors": (
        "FastndcgError InputError InputTypeError ColumnError SourceError MeasureError ConventionError "
        "ExtraError FastndcgWarning"
    ),
}
_OPTIONS = {
    "Rankings": ":inherited-members:",
    "common.table.Table": ":members: to_arrow, to_pandas, to_polars, text",
    "History": ":members: add, table, plot",
    "conventions": ":no-value:",
    "measures.MeasureLike": ":no-value:",
}
_ROOT = Path(fn.__file__).parent


class Entry(NamedTuple):
    """A name of the reference as its source declares it."""

    kind: str  # of the directive
    parameters: tuple[str, ...]
    summary: str


def tables() -> str:
    """Return a table for each section: names with their parameters, and the first sentence of the docstring."""
    parts = []
    for section, names in SECTIONS.items():
        rows: dict[Entry, list[str]] = {}
        for name in names.split():
            rows.setdefault(describe(name), []).append(f"`{name.removeprefix('adapters.')}`")
        table = markdown(
            ("name", "parameters", "what it is"),
            ((", ".join(own), ", ".join(each.parameters), each.summary) for each, own in rows.items()),
        )
        parts.append(f"## {section}\n\n{table}")
    return "\n".join(parts)


def directives() -> str:
    """Return the same sections for Sphinx, which writes signatures and whole docstrings."""
    parts = []
    for section, names in SECTIONS.items():
        lines = [".. currentmodule:: fastndcg", ""]
        for name in names.split():
            path = f"fastndcg.{name}" if "." in name else name
            lines.append(f".. auto{describe(name).kind}:: {path}")
            lines += [f"   {_OPTIONS[name]}", ""] if name in _OPTIONS else []
        parts.append("\n".join([f"## {section}\n", "```{eval-rst}", *lines, "```\n"]))
    return "\n".join(parts)


def describe(name: str) -> Entry:
    """Return the kind, parameters and summary of a name; adapters are parsed, since their hosts may be missing."""
    if name.startswith("adapters."):
        _, module, own = name.split(".")
        node = next(each for each in (*_declared(module), *_declared("engines")) if each.name == own)
        if isinstance(node, ast.ClassDef):
            return Entry("class", (), _first_sentence(ast.get_docstring(node)))
        found = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        parameters = tuple(each.arg for each in found if each.arg != "self")
        return Entry("function", parameters, _first_sentence(ast.get_docstring(node)))
    module, _, last = f"fastndcg.{name}".rpartition(".")
    value: Any = getattr(import_module(module), last)
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, Exception) else "class"
        return Entry(kind, (), _first_sentence(inspect.getdoc(value)))
    if inspect.isfunction(value):
        parameters = inspect.signature(value).parameters
        if RoleKeywords.__annotations__.keys() & parameters.keys() >= {"doc_id", "grades"}:
            own = [each for each in parameters if each not in RoleKeywords.__annotations__]
            parameters = dict.fromkeys([*own, "**columns"])
        return Entry("function", tuple(parameters), _first_sentence(value.__doc__))
    if name == "conventions":
        return Entry("data", (), _first_sentence(inspect.getdoc(type(value))))
    return Entry("data", (), "A `Measure`, a notation such as `nDCG@10`, or an object of ir_measures.")


@cache
def _declared(adapter: str) -> list[ast.ClassDef | ast.FunctionDef]:
    """Return the classes, functions and methods of an adapter that have docstrings."""
    tree = ast.parse((_ROOT / "adapters" / f"{adapter}.py").read_text(encoding="utf-8"))
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef))
    return [node for node in nodes if ast.get_docstring(node)]


def _first_sentence(docstring: str | None) -> str:
    paragraph = " ".join(inspect.cleandoc(docstring or "").partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".:") + "." if paragraph else ""
