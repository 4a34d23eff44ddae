"""The main functions.

evaluate     `evaluate`, and `ndcg` for ragged arrays
drop_ins     `ndcg_score` and `dcg_score`, with scikit-learn's names, values and errors
compilation  kernels compiled ahead, for images and for those who never wait
"""
