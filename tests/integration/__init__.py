"""Tests that talk HTTP to a Hub on this machine, with the real clients."""
