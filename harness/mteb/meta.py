"""What a system says of itself as a model of `mteb`: names, revisions, what is known, and nothing that is not."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import __version__
from ..results.files import file_name
from .catalog import language_tag

ORGANISATION = "squtr"
"""Stands before the names of systems: `mteb` wants one, and no one's else would be honest."""

_FRAMEWORKS: Mapping[str, Sequence[str]] = {
    "bm25": ("NumPy",),
    "transformers": ("PyTorch", "Transformers"),
    "ctc": ("PyTorch", "Transformers"),
    "openai-whisper": ("PyTorch",),
    "funasr": ("PyTorch",),
    "qwen-asr": ("PyTorch", "Transformers"),
    "glm-asr": ("PyTorch", "Transformers"),
    "sentence-transformers": ("Sentence Transformers", "PyTorch"),
    "sentence-transformers-audio": ("Sentence Transformers", "PyTorch"),
    "splade": ("Sentence Transformers", "PyTorch"),
    "rerank": ("Sentence Transformers", "PyTorch"),
    "colbert": ("PyLate", "PyTorch"),
    "clap": ("PyTorch", "Transformers"),
    "chat-template": ("PyTorch", "Transformers"),
    "server": ("API",),
    "dense-server": ("API",),
}
_HUB = re.compile(r"[\w.-]+/[\w.-]+")
_WITHOUT_WEIGHTS = {"bm25", "hybrid", "wpe", "spectral-gate", "wiener"}
_TYPES: Mapping[str, str] = {
    "bm25": "sparse", "splade": "sparse", "colbert": "late-interaction", "hybrid": "hybrid", "rerank": "cross-encoder",
}  # fmt: skip
COMPOSITES = ("hybrid", "rerank", "route")
"""Backends whose ranking depends on how many documents they retrieve."""
_UNKNOWN = (
    "release_date", "n_parameters", "n_active_parameters_override", "n_embedding_parameters", "memory_usage_mb",
    "embed_dim", "license", "public_training_code", "public_training_data", "reference", "training_datasets",
    "adapted_from", "superseded_by", "citation", "contacts", "experiment_kwargs", "output_dtypes",
    "extra_requirements_groups",
)  # fmt: skip
"""Fields of mteb's metadata that nothing here knows: null, for the owner of the model to state."""


@dataclass(frozen=True, slots=True)
class Description:
    """A system: its name, the specs of its components by role, its languages, and settings that are not the default."""

    name: str
    components: Mapping[str, Mapping[str, Any]]
    languages: Sequence[str]
    audio: bool
    text: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def revision(self) -> str:
        """The first 16 hex digits of the sha256 of everything that decides its output."""
        decisive = {
            role: {key: value for key, value in spec.items() if key != "name"} for role, spec in self.components.items()
        }
        content = {"components": decisive, "settings": dict(self.settings)}
        canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    @property
    def last(self) -> Mapping[str, Any]:
        """The component that ranks."""
        return self.components.get("retriever") or self.components.get("encoder") or {}


def system_settings(
    *, scripts: Mapping[str, str] | None = None, n_best: int = 1, n_best_fusion: str = "", depth: int = 0
) -> dict[str, Any]:
    odd = [s for language, s in (scripts or {}).items() if s not in {"simplified" if language == "zh" else "none", ""}]
    return {
        **({"script": odd[0]} if odd else {}),
        **({"n_best": n_best, "n_best_fusion": n_best_fusion} if n_best > 1 else {}),
        **({"depth": depth} if depth else {}),
    }


def model_fields(system: Description) -> dict[str, Any]:
    """The fields of mteb's `ModelMeta`, None where unknown; `loader_kwargs` holds all components' specs."""
    specs = list(system.components.values())
    frameworks = [name for spec in specs for name in _frameworks(spec)]
    settings = system.last.get("settings") or {}
    ranking = str(system.last.get("backend", ""))
    cosine = ranking in {"dense", "dense-server", "dense-mteb"} or "encoder" in system.components
    return {
        **dict.fromkeys(_UNKNOWN),
        "loader": None,
        "loader_kwargs": {
            "squtr_version": __version__,
            "components": {role: dict(spec) for role, spec in system.components.items()},
            **dict(system.settings),
        },
        "name": f"{ORGANISATION}/{file_name(system.name)}",
        "revision": system.revision,
        "languages": [language_tag(language) for language in system.languages],
        "max_tokens": settings.get("max_tokens"),
        "open_weights": True if all(_is_open(spec) for spec in specs) else None,
        "framework": list(dict.fromkeys(frameworks)),
        "similarity_fn_name": "cosine" if cosine else None,
        "use_instructions": bool(settings.get("query_prompt") or settings.get("document_prompt")),
        "modalities": [name for name, has in (("audio", system.audio), ("text", system.text)) if has],
        "model_type": [_TYPES.get(ranking, "dense")],
    }


def _is_open(spec: Mapping[str, Any]) -> bool:
    """Whether the weights are known to be open: there are none, or the Hub has them. A folder may be anybody's."""
    backend = str(spec["backend"])
    known = backend in _FRAMEWORKS or backend in {"dense", "faster-whisper"}
    named = bool(_HUB.fullmatch(str(spec.get("model", ""))))
    return backend in _WITHOUT_WEIGHTS or (known and named and "API" not in _frameworks(spec))


def _frameworks(spec: Mapping[str, Any]) -> Sequence[str]:
    backend = str(spec["backend"])
    if backend == "dense":
        backend = str((spec.get("settings") or {}).get("encoder_backend", ""))
    return _FRAMEWORKS.get(backend, ())
