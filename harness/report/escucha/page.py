"""The page."""


def write_report() -> None:
    """Write it."""
