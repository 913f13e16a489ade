"""Whom to cite for each published benchmark."""

from __future__ import annotations

from collections.abc import Mapping

CITATIONS: Mapping[str, str] = {
    "squtr": """@misc{li2026squtr,
  title  = {SQuTR: A Robustness Benchmark for Spoken Query to Text Retrieval under Acoustic Noise},
  author = {Yuejie Li and Ke Yang and Yueying Hua and Berlin Chen and Jianhao Nie and Yueping He and Caixin Kang},
  year   = {2026},
  eprint = {2602.12783},
  archivePrefix = {arXiv},
  primaryClass  = {cs.IR},
  url    = {https://arxiv.org/abs/2602.12783}
}""",
    "rir_mega": """@misc{whisper_rir_mega,
  title  = {Whisper-RIR-Mega},
  year   = {2026},
  eprint = {2603.02252},
  archivePrefix = {arXiv},
  url    = {https://arxiv.org/abs/2603.02252}
}""",
    "escucha": """@misc{escucha,
  title  = {ESCUCHA},
  year   = {2026},
  eprint = {2607.17812},
  archivePrefix = {arXiv},
  url    = {https://arxiv.org/abs/2607.17812}
}""",
}
