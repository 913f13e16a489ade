"""Metrics: error rates, ranking, robustness and statistics. Imports neither torch nor datasets."""
