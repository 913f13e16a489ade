"""RIRs of a bank measured, grouped by what was measured, and dealt to utterances."""
