"""From runs to a report: one HTML file, and tables for the terminal, whatever tasks the runs are of."""

from .page import Report, make_report, summary_table, write_report

__all__ = ["Report", "make_report", "summary_table", "write_report"]
