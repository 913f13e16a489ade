"""Front ends: audio to audio before recognition (dereverberation, noise reduction)."""

from __future__ import annotations

from collections.abc import Mapping

from ..table import BackendSpec, table_of

_HERE = "harness.components.front_ends"
FRONT_ENDS: Mapping[str, BackendSpec] = table_of(
    BackendSpec("wpe", f"{_HERE}.wpe:WPEFrontEnd", "wpe", False),
    BackendSpec("spectral-gate", f"{_HERE}.spectral:SpectralGateFrontEnd", "", False),
    BackendSpec("wiener", f"{_HERE}.spectral:WienerFrontEnd", "", False),
    BackendSpec("denoiser", f"{_HERE}.neural:NeuralFrontEnd", "denoiser", True),
)
