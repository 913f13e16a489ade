"""Spoken queries to ranked documents."""
