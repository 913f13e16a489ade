"""Answerers: audio and a question to a reply."""
