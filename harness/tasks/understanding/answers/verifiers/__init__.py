"""Verifiers: does a reply follow an instruction that a program can check? `registry` lists them all.

Spanish and Unicode aware: words are words (never parts of words), ñ and á are letters, composed and decomposed forms
are the same. Nothing is exported here; import the module that you need.
"""
