#!/usr/bin/env python3
"""A LightGBM job to copy: train lambdarank on LETOR files, stop early by our measure, score every query.

    python scripts/lightgbm_job.py rank.train rank.test results --measure nDCG@10 --measure RR

reads both files, which have svmlight rows, and the sizes of their queries from rank.train.query and
rank.test.query. The first measure decides when to stop. The job writes the best model to results/model.txt
and a row for each query of rank.test to results/queries.parquet, and prints the summary.
`--convention lightgbm` computes nDCG as LightGBM prints it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import lightgbm as lgb
import numpy as np

import fastndcg as fn
from fastndcg.adapters import lightgbm as fnl
from fastndcg.common.files import whole_file


def main() -> None:
    options = parser().parse_args()
    settings = {
        "objective": "lambdarank",
        "metric": "None",
        "verbosity": -1,
        "seed": options.seed,
        "deterministic": True,
    }
    settings |= dict(each.split("=", 1) for each in options.set)
    train = lgb.Dataset(options.train, params=settings)
    valid = lgb.Dataset(options.valid, reference=train, params=settings)
    model = lgb.train(
        settings,
        train,
        options.rounds,
        valid_sets=[valid],
        feval=fnl.metric(options.measure, like=options.convention),
        callbacks=[
            lgb.early_stopping(options.patience, first_metric_only=True, verbose=False),
            lgb.log_evaluation(10),
        ],
    )
    predictions = np.asarray(model.predict(options.valid, num_iteration=model.best_iteration))
    scores = fn.evaluate(
        fn.read_ltr(options.valid, scores=predictions), options.measure, convention=options.convention
    )
    folder = Path(options.results)
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(folder / "model.txt") as draft:
        model.save_model(draft, num_iteration=model.best_iteration)
    scores.write_parquet(folder / "queries.parquet")
    print(f"best iteration {model.best_iteration}")
    print(scores.summary())


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("train", help="LETOR file to learn from, with a .query file beside it")
    options.add_argument("valid", help="LETOR file to evaluate, with a .query file beside it")
    options.add_argument("results", help="folder to write to")
    options.add_argument("--measure", action="append", required=True, help="as in nDCG@10; repeatable")
    options.add_argument("--convention", help="compute nDCG as this tool, as in lightgbm")
    options.add_argument("--rounds", type=int, default=200)
    options.add_argument("--patience", type=int, default=20, help="iterations without a better value")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="parameter of LightGBM"
    )
    return options


if __name__ == "__main__":
    try:
        main()
    except (fn.FastndcgError, lgb.basic.LightGBMError) as error:
        sys.exit(f"lightgbm_job: {error}")
