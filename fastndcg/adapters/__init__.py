"""Adapters for engines and tools. Nothing else in the package imports them.

engines       the functions of Spark, Dask and Ray, and the few verbs that each engine has for them
scoring       how workers of Spark, Dask and Ray score a partition, and sums of partitions
shuffle       rows and sums that workers send one another
splits        files that workers read themselves
spark         Spark DataFrames
dask          Dask DataFrames
ray           Datasets of Ray Data
boosters      shared by XGBoost, LightGBM and CatBoost
xgboost       a metric and a callback for XGBoost
lightgbm      a metric for LightGBM
catboost      a metric for CatBoost
sklearn       a scorer for scikit-learn
ir_measures   a provider for ir_measures
pytrec_eval   the interface of pytrec_eval
"""
