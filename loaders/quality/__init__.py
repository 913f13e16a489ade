"""Quality control of synthetic speech, in the published two stages behind a cheap gate (SQuTR, arXiv 2602.12783, 3.4).

The gate (`measures`) rejects broken clips, stage 1 (`decisions`) those that a transcriber does not understand, stage 2
(`judges`) those that two models with audio input do not both find good. People decide last (`review`).
"""
