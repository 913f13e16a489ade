"""The benchmark in `mteb`: tasks, a benchmark, models both ways, and results both ways.

`mteb` is imported in `bridge` alone, and only when something is asked for that needs it.
"""
