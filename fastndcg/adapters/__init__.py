"""Adapters of engines and tools. Nothing else in the package imports them.

parts       what a worker of any engine does with its part of the data
spark       Spark DataFrames
dask        Dask DataFrames
ray         Datasets of Ray Data
boosters    what adapters of boosters share
xgboost     a metric and a callback of XGBoost
lightgbm    a metric of LightGBM, and a ranker that takes query ids
catboost    a metric of CatBoost
sklearn     a scorer of scikit-learn
ir_measures a provider
torchmetrics a metric
sentence_transformers  an evaluator whose nDCG is graded
polars      a namespace of frames
duckdb      a function of SQL
pytrec_eval dictionaries in and out, as pytrec_eval has them
"""
