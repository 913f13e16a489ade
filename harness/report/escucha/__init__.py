"""The report of the benchmark `escucha`: one HTML file, and tables for the terminal."""

from .page import write_report
from .terminal import summary_tables

__all__ = ["summary_tables", "write_report"]
