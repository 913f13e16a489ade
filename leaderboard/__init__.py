"""From results to a ranked, public page."""
