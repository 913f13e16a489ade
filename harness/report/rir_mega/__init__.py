"""The report of the benchmark `rir_mega`: one HTML file, and a table for the terminal."""

from .page import DEFAULT_TITLE, write_report
from .terminal import summary_table

__all__ = ["DEFAULT_TITLE", "summary_table", "write_report"]
