"""Transcribers: speech to text."""
