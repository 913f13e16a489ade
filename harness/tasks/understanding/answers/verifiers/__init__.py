"""Verifiers: does a reply follow an instruction that a program can check? `registry` lists them all."""
