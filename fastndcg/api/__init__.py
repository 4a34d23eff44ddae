"""The main functions.

evaluate     `evaluate`, and `ndcg` for ragged arrays
drop_ins     `ndcg_score` and `dcg_score`, with scikit-learn's names, values and errors
compilation  compile kernels ahead of time, for images and for processes that must not wait
"""
