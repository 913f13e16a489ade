"""The report of the benchmark `rir_mega`: one HTML file, and a table for the terminal."""

from .page import write_report
from .terminal import summary_table

__all__ = ["summary_table", "write_report"]
