"""The command line, outside and looking in: results go to stdout, all else to stderr.

A command that fails says why in one line and exits with 3, a gate that does not hold with 1, wrong usage with 2, Ctrl-C with
130. What a command writes appears whole or not at all.
"""

# ruff: noqa: I001 - commands in the order that the help has them
from fastndcg.cli.application import app, main
from fastndcg.cli.score import score
from fastndcg.cli.compare import compare
from fastndcg.cli.explain import explain
from fastndcg.cli.report import report
from fastndcg.cli.conventions import conventions
from fastndcg.cli.demo import demo
from fastndcg.cli.trec_eval import trec_eval
from fastndcg.cli.measures import measures

__all__ = [
    "app",
    "compare",
    "conventions",
    "demo",
    "explain",
    "main",
    "measures",
    "report",
    "score",
    "trec_eval",
]
