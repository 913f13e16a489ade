"""Scoring of replies: multiple choice (`parsing`, `accuracy`) and instructions to follow (`verifiers`, `following`).

Pure functions without models: what a reply chose, whether it follows an instruction, and the scores with intervals.
Imports neither torch nor datasets nor any room. Nothing is exported here; import the module that you need.
"""
