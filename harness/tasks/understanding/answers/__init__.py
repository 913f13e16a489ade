"""Pure functions without models: what a reply chose, whether it follows an instruction, scores with intervals."""
