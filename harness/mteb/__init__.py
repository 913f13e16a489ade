"""The benchmark in `mteb`: tasks, a benchmark, models and results both ways. `mteb` is imported in `bridge` alone."""
