"""The result of a run: the envelope, its files, and which results may share a table."""
