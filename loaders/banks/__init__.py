"""Where noise and rooms come from: banks, by name or from a folder."""
