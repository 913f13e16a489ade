"""Backends: an explicit table of transcribers, encoders and retrievers."""
