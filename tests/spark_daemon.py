"""Spark's daemon of Python, which imports what workers need before it forks them.

An error of a task ends its worker, and each new one would import all of that anew.
"""

import runpy

import engines  # noqa: F401

from fastndcg.adapters import splits  # noqa: F401

if __name__ == "__main__":  # not where tests are collected
    runpy.run_module("pyspark.daemon", run_name="__main__")
