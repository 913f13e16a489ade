"""Retrievers: text query to ranked documents."""
