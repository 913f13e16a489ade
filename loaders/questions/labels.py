"""What a question requires of its answerer: nine labels of perception, ten of reasoning.

arXiv 2607.17812 names them; the short identifiers here are ours. A question has one or several of each.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

PERCEPTION: Mapping[str, str] = {
    "lexical": "léxico", "speaker": "hablante", "paralinguistic": "paralingüística",
    "speech_activity": "actividad de voz", "language": "idioma", "quality": "calidad", "prosody": "prosodia",
    "demographics": "demografía", "syntax": "sintaxis",
}  # fmt: skip
"""Identifier to Spanish name, from the most frequent of the published set to the rarest."""

REASONING: Mapping[str, str] = {
    "intent": "intención", "abstraction": "abstracción", "logic": "lógica", "factual": "conocimiento",
    "quantitative": "cantidad", "temporal": "orden temporal", "social_role": "papel social",
    "comparison": "comparación", "cross_boundary_entity": "entidad entre fragmentos",
    "discourse_coherence": "coherencia del discurso",
}  # fmt: skip
"""Identifier to Spanish name, from the most frequent of the published set to the rarest."""

_PERCEPTION_SPELLINGS = {
    "lexical": ("lexico", "lexical_content", "contenido_lexico", "lexical_semantic"),
    "speaker": ("hablante", "speaker_identity", "speakers", "locutor"),
    "paralinguistic": ("paralinguistica", "paralinguistico", "paralinguistics", "paralinguistic_cues", "emotion"),
    "speech_activity": (
        "actividad_de_voz", "actividad", "speech_activity_turns_overlap", "turns", "turnos", "overlap", "turn_taking",
        "voice_activity",
    ),
    "language": ("idioma", "lengua", "language_identification", "language_id"),
    "quality": (
        "calidad", "audio_quality", "quality_artefacts_channel", "quality_artifacts_channel", "artefacts", "artifacts",
        "channel", "canal",
    ),
    "prosody": ("prosodia", "prosodic"),
    "demographics": ("demografia", "demographic", "speaker_demographics"),
    "syntax": ("sintaxis", "syntactic"),
}  # fmt: skip
_REASONING_SPELLINGS = {
    "intent": ("intencion", "intent_pragmatic_causal", "pragmatic", "causal", "pragmatics", "pragmatica", "intention"),
    "abstraction": ("abstraccion", "summary", "abstraction_summary", "summarization", "resumen"),
    "logic": ("logica", "consistency", "logic_consistency", "logical", "logical_consistency", "consistencia"),
    "factual": (
        "conocimiento", "common_sense", "commonsense", "factual_common_sense", "factual_commonsense", "sentido_comun",
        "factico",
    ),
    "quantitative": ("cantidad", "cuantitativo", "quantity", "numeric", "numerical", "counting"),
    "temporal": ("orden_temporal", "orden", "order", "temporal_order", "temporal_ordering"),
    "social_role": ("papel_social", "rol_social", "social", "social_roles"),
    "comparison": ("comparacion", "preferencia", "preference", "comparison_preference", "comparative"),
    "cross_boundary_entity": (
        "entidad_entre_fragmentos", "cross_boundary", "cross_boundary_entities", "entity_tracking",
        "cross_segment_entity", "entity", "entidad",
    ),
    "discourse_coherence": ("coherencia_del_discurso", "coherencia_discursiva", "coherence", "coherencia", "discourse"),
}  # fmt: skip


def plain_name(text: str) -> str:
    """A name without case, accents and signs, its words joined by underscores.

    >>> plain_name("Speech activity / turns"), plain_name("Paralingüística")
    ('speech_activity_turns', 'paralinguistica')
    """
    bare = "".join(c for c in unicodedata.normalize("NFKD", text).casefold() if not unicodedata.combining(c))
    return "_".join("".join(c if c.isalnum() else " " for c in bare).split())


def _table(names: Mapping[str, str], spellings: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    known = {name: name for name in names} | {plain_name(spanish): name for name, spanish in names.items()}
    return known | {spelling: name for name, others in spellings.items() for spelling in others}


PERCEPTION_SPELLINGS: Mapping[str, str] = _table(PERCEPTION, _PERCEPTION_SPELLINGS)
"""Every accepted spelling (as `plain_name` writes it) of a label of perception to its identifier."""
REASONING_SPELLINGS: Mapping[str, str] = _table(REASONING, _REASONING_SPELLINGS)


def canonical(label: str, known: Mapping[str, str]) -> str:
    """The identifier of a label by one of these tables of spellings; a label of one's own stays as it is.

    >>> canonical("Léxico", PERCEPTION_SPELLINGS), canonical("humor", REASONING_SPELLINGS)
    ('lexical', 'humor')
    """
    return known.get(plain_name(label), label.strip())
