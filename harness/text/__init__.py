"""Text: scripts, languages and normalisation before scoring. Imports neither torch nor datasets."""
