"""From runs to a report: one HTML file, and a table for the terminal."""

from .attribution import attribution_json
from .page import make_report, write_report
from .terminal import summary_table

__all__ = ["attribution_json", "make_report", "summary_table", "write_report"]
