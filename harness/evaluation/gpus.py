"""GPUs by what their data sheets state, for times that are computed and not measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

UTILIZATION = 0.4
"""The share of the stated peak that matrix products are taken to reach. An assumption, not measured."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """Memory in bytes, dense operations per second in half precision (fp16, bf16) and float32, bytes per second."""

    name: str
    memory: int
    half: float
    single: float
    bandwidth: float

    def seconds(self, operations: float, *, dtype: str) -> float:
        """What so many operations take at `UTILIZATION`. PyTorch computes float32 without tensor cores by default.

        >>> round(GPUS["A100-80G"].seconds(312e12, dtype="bfloat16"), 2)
        2.5
        """
        peak = self.single if dtype == "float32" else self.half
        return operations / (peak * UTILIZATION)


GPUS: Mapping[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        Gpu("A100-80G", 80_000_000_000, 312e12, 19.5e12, 2.039e12),
        Gpu("H200", 141_000_000_000, 989e12, 67e12, 4.8e12),
        Gpu("RTX-4090", 24_000_000_000, 165e12, 82.6e12, 1.008e12),
    )
}
