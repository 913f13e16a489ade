"""The data of ESCUCHA: questions about real Spanish speech, their audio, and how to build such a set.

Nothing is exported here; import the module that you need. `data.EscuchaData` is what the harness reads.
"""
