"""Noise: what is made by code, and the readers of recorded banks. Banks are opened by name in `banks`."""
