"""The benchmark ESCUCHA: questions about Spanish sound, asked of answerers, scored with intervals.

Nothing is exported here; import the module that you need. `evaluate.run_evaluation` is the whole way.
"""
