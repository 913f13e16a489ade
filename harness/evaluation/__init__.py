"""From paired data and systems to runs and results."""
