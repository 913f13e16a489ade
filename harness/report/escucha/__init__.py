"""The report of the benchmark `escucha`: tables for the terminal (`terminal`), one HTML file (`page`)."""
