"""Text: scripts, languages and normalization before scoring. Imports neither torch nor datasets."""
