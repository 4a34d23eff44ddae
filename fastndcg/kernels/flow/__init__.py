"""Scoring: rank each query once, fold the ranking into all measures. The map is in `fastndcg.kernels`."""
