"""Where a run happens: hardware, threads, versions, memory."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..results.envelope import Environment

PACKAGES = (
    "accelerate", "bm25s", "ctranslate2", "datasets", "faster-whisper", "jieba", "numpy", "opencc", "pyarrow",
    "nara-wpe", "openai-whisper", "pyroomacoustics", "PyStemmer", "rapidfuzz", "rjieba", "scipy",
    "sentence-transformers", "soundfile", "soxr", "torch", "transformers",
)  # fmt: skip


INSTRUCTIONS = (
    "sse4_2", "avx", "avx2", "fma", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8",
    "amx_bf16", "asimd", "asimddp", "i8mm", "bf16", "sve", "sve2",
)  # fmt: skip
"""Flags of /proc/cpuinfo by which engines choose their kernels, and so how products are rounded."""


def environment() -> Environment:
    """The processor, its instructions, the accelerator, threads, and the installed versions of what decides results."""
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return Environment(
        hardware=_cpuinfo("model name") or platform.processor() or platform.machine(),
        instruction_set=instruction_set(),
        accelerator=_accelerator(),
        threads=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        python=platform.python_version(),
        packages=packages,
    )


def instruction_set() -> str:
    """Those of `INSTRUCTIONS` that the processor has, joined by blanks; "" where the system does not tell it."""
    flags = {*_cpuinfo("flags").split(), *_cpuinfo("Features").split()}
    return " ".join(flag for flag in INSTRUCTIONS if flag in flags)


def _cpuinfo(field: str) -> str:
    """A field of the first processor, "" where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == field), "")


def _accelerator() -> str:
    """The name of the GPU that torch computes on, "" without one or where torch was not used."""
    torch = sys.modules.get("torch")
    return str(torch.cuda.get_device_name()) if torch is not None and torch.cuda.is_available() else ""
