"""How tables of questions spell fields and values: the one place to add another spelling."""

from __future__ import annotations

from collections.abc import Mapping

from .question import Kind

IGNORED = "-"
"""As a field in `extra`: this spelling is left out."""

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "item_id", "question_id", "qid", "uid"),
    "kind": ("kind", "type", "question_type", "task", "task_type", "format", "tipo"),
    "question": ("question", "question_text", "pregunta", "prompt", "instruction", "instruccion", "text"),
    "options": ("options", "choices", "opciones", "alternatives", "candidates"),
    "distractors": ("distractors", "distractores", "incorrect_answers", "wrong_answers"),
    "answer": ("answer", "correct_answer", "respuesta", "respuesta_correcta", "gold", "label_answer", "solution"),
    "audios": (
        "audios", "audio", "audio_id", "audio_ids", "audio_path", "audio_paths", "audio_file", "audio_files", "file",
        "files", "filename", "path", "wav", "audio_filename",
    ),
    "audio_2": ("audio_2", "audio2", "second_audio", "audio_path_2", "audio_id_2", "audio_b", "audio_file_2"),
    "question_audio": (
        "question_audio", "spoken_question", "question_audio_path", "question_audio_id", "audio_question",
        "spoken_question_audio", "pregunta_audio", "tts_audio", "question_audio_file",
    ),
    "question_voice": ("question_voice", "tts_voice", "voice"),
    "verifiers": (
        "verifiers", "verifier", "verifier_id", "verifier_ids", "aif_verifier", "aif_verifier_id", "verificador",
        "instruction_id", "instruction_id_list", "task_identifier",
    ),
    "arguments": ("arguments", "kwargs", "verifier_arguments", "verifier_kwargs", "verifier_args", "aif_kwargs"),
    "labels": ("labels", "categories", "categorias", "category", "categoria", "skills", "tags", "multilabel"),
    "perception": (
        "perception", "perception_labels", "perception_categories", "perception_category", "percepcion",
        "perceptual", "perceptual_categories", "perceptual_skills", "perception_skills",
    ),
    "reasoning": (
        "reasoning", "reasoning_labels", "reasoning_categories", "reasoning_category", "razonamiento",
        "reasoning_skills",
    ),
    "comparative": ("comparative", "is_comparative", "comparativa", "comparison_item", "multi_audio", "two_audios"),
    "spoken": ("spoken", "is_spoken", "has_spoken_question", "hablada"),
    "non_normative": ("non_normative", "is_non_normative", "pathological", "is_pathological", "no_normativa"),
    "aetiology": ("aetiology", "etiology", "etiologia", "pathology", "patologia", "disease", "condition"),
    "intelligibility": ("intelligibility", "intelligibility_level", "inteligibilidad", "severity"),
    "sex": ("sex", "gender", "sexo", "genero", "speaker_sex", "speaker_gender"),
    "duration_s": (
        "duration_s", "duration", "audio_duration", "duration_seconds", "duracion", "duration_sec",
        "total_duration_s", "measured_duration", "audio_duration_s", "length_s",
    ),
    "audio_durations_s": ("audio_durations_s", "durations", "audio_durations", "durations_s"),
    "duration_bin": ("duration_bin", "duration_category", "length_bin", "duration_class", "duracion_categoria"),
    "source_urls": (
        "source_urls", "source_url", "url", "urls", "youtube_url", "video_url", "link", "audio_url", "audio_urls",
        "fuente",
    ),
    "source_url_2": ("source_url_2", "url_2", "url2", "second_url", "audio_url_2", "source_url_b"),
    "open_ended": ("open_ended", "is_open_ended", "open", "abierta", "open_ended_flag"),
}  # fmt: skip
"""Our field to the spellings it is found under, as `plain_name` writes them."""

OPTION_FIELDS: tuple[tuple[str, ...], ...] = tuple(
    (f"option_{letter}", f"choice_{letter}", f"opcion_{letter}", letter, f"option_{number}", f"choice_{number}",
     f"opcion_{number}", f"option{number}", f"choice{number}")
    for number, letter in enumerate("abcdefghij", start=1)
)  # fmt: skip
"""Options that have a column each: the spellings of the first, the second, …"""

FIELD_OF = {spelling: field for field, spellings in SPELLINGS.items() for spelling in spellings}
OPTION_OF = {spelling: number for number, spellings in enumerate(OPTION_FIELDS) for spelling in spellings}

KINDS_OF: Mapping[str, Kind] = {
    "mcqa": "mcqa", "mcq": "mcqa", "multiple_choice": "mcqa", "multiple_choice_question": "mcqa", "closed": "mcqa",
    "opcion_multiple": "mcqa", "multiple_choice_qa": "mcqa",
    "aif": "aif", "instruction_following": "aif", "audio_instruction_following": "aif", "if": "aif",
}  # fmt: skip
AETIOLOGIES = {
    "als": "als", "ela": "als", "amyotrophic_lateral_sclerosis": "als", "esclerosis_lateral_amiotrofica": "als",
    "stroke": "stroke", "ictus": "stroke", "acv": "stroke",
    "parkinson": "parkinson", "parkinson_s_disease": "parkinson", "pd": "parkinson",
}  # fmt: skip
NORMATIVE = {"", "none", "no", "healthy", "control", "normative", "ninguna", "sano", "normativa", "n_a", "na"}
SEXES_OF = {
    "f": "female", "female": "female", "woman": "female", "mujer": "female", "femenino": "female",
    "m": "male", "male": "male", "man": "male", "hombre": "male", "masculino": "male", "h": "male",
}  # fmt: skip
INTELLIGIBILITY_OF = {
    "low": "low", "baja": "low",
    "medium_low": "medium-low", "low_medium": "medium-low", "media_baja": "medium-low", "mid_low": "medium-low",
    "medium": "medium", "media": "medium", "mid": "medium",
    "high_medium": "high-medium", "medium_high": "high-medium", "media_alta": "high-medium",
    "alta_media": "high-medium",
    "high": "high", "alta": "high",
}  # fmt: skip
TEXTS = ("id", "question", "answer")
NOTHING = {"", "nan", "null", "none", "n/a", "na", "-"}
MISSING = {"missing", "unknown", "desconocido", "desconocida", "not_available", "sin_dato"}
AUDIO_ENDINGS = (
    ".flac", ".wav", ".mp3", ".ogg", ".opus", ".m4a", ".webm", ".aac", ".mp4", ".aiff", ".aif", ".mov", ".3gp", ".mka",
    ".mkv", ".wma", ".amr",
)  # fmt: skip
