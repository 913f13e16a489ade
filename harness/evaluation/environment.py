"""Where a run happens: hardware, threads, versions, memory."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..results.envelope import Environment

PACKAGES = (
    "accelerate", "bm25s", "ctranslate2", "datasets", "faster-whisper", "jieba", "numpy", "opencc", "pyarrow",
    "nara-wpe", "openai-whisper", "pyroomacoustics", "PyStemmer", "rapidfuzz", "rjieba", "scipy",
    "sentence-transformers", "soundfile", "soxr", "torch", "transformers",
)  # fmt: skip


def environment() -> Environment:
    """The processor's name, the threads at hand, and the installed versions of what decides results."""
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return Environment(
        hardware=_processor(),
        threads=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        python=platform.python_version(),
        packages=packages,
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        # Not Linux: the platform module knows less, but something.
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
