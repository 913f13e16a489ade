"""Demos: each benchmark once, on embedded data with weights that packages carry."""
