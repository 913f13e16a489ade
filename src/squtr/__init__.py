"""squtr: from a spoken query to ranked documents, in noise and in rooms."""

__version__ = "0.1.0"
