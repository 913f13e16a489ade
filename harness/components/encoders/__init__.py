"""Encoders: text, or audio and text, to vectors."""
