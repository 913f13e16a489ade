"""From a data set to runs and results."""
