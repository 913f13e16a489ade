"""Metrics: error rates, ranking, robustness and statistics. Imports neither torch nor datasets.

Nothing is exported here; import the module that you need.
"""
