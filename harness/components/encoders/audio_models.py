"""Published models of spoken queries and typed documents: what is put around a text, and how a vector is taken.

As the models' authors or the MTEB registry state it, and for omni-embed-nemotron-3b as SQuTR (arXiv 2602.12783).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..retrievers.lexical_tokens import primary_language
from ..weights import published_name

Pooling = Literal["mean", "last"]

_QWEN_OMNI = (
    "You are Qwen, a virtual human developed by the Qwen Team, Alibaba Group, capable of perceiving auditory and "
    "visual inputs, as well as generating text and speech."
)


@dataclass(frozen=True, slots=True)
class AudioModel:
    """Facts about a model.

    `audio_prefix` and `audio_suffix` stand before and after the audio in the user's message, `query_prefix` and
    `document_prefix` before a typed query or a document, `text_suffix` after it; `system_prompt` is a message of its
    own ("" for none: the chat template may add one). `pooling` takes the mean of all hidden states of the last layer or
    the state of the last token. `bidirectional` lets every token attend to every other. `max_tokens` cuts a text,
    `max_seconds` a clip; None is the model's own limit. `languages` are codes, empty for many.
    """

    pooling: Pooling = "last"
    audio_prefix: str = ""
    audio_suffix: str = ""
    query_prefix: str = ""
    document_prefix: str = ""
    text_suffix: str = ""
    system_prompt: str = ""
    add_generation_prompt: bool = True
    bidirectional: bool = False
    model_class: str = ""
    max_tokens: int | None = None
    max_seconds: float | None = None
    languages: tuple[str, ...] = ()

    def supports(self, language: str) -> bool:
        """Whether the model was made for `language`.

        >>> PUBLISHED["clap-htsat-unfused"].supports("zh"), UNKNOWN.supports("zh")
        (False, True)
        """
        return not self.languages or primary_language(language) in self.languages


@dataclass(frozen=True, slots=True)
class Architecture:
    """What holds for every model of one `model_type` of transformers.

    `model_class` is the class without the half that speaks. `masks_padding`: silence behind a clip does not
    reach the model, so that a batch need not be padded to the whole window. `alone`: what is beside an item in a batch
    changes its vector (experts share their capacity), so that batches hold one item.
    """

    model_class: str = "AutoModel"
    masks_padding: bool = False
    alone: bool = False


UNKNOWN = AudioModel()
"""What an unlisted chat model gets: the state of the last token after the generation prompt, nothing around a text."""

_CLAP = AudioModel(max_tokens=77, languages=("en",))
_LCO = AudioModel(
    audio_suffix="\nSummarize the above audio in one word:", text_suffix="\nSummarize the above text in one word:"
)

PUBLISHED: Mapping[str, AudioModel] = {
    **dict.fromkeys(
        (
            "clap-htsat-fused",
            "clap-htsat-unfused",
            "larger_clap_general",
            "larger_clap_music",
            "larger_clap_music_and_speech",
        ),
        _CLAP,
    ),
    **{f"lco-embedding-omni-{size}": _LCO for size in ("3b", "7b", "3b-2605", "7b-2605")},
    "omni-embed-nemotron-3b": AudioModel(
        pooling="mean",
        query_prefix="query: ",
        document_prefix="passage: ",
        add_generation_prompt=False,
        bidirectional=True,
        max_seconds=128.0,
    ),
    **{f"qwen2.5-omni-{size}": AudioModel(system_prompt=_QWEN_OMNI) for size in ("3b", "7b")},
    "qwen3-omni-30b-a3b-instruct": AudioModel(system_prompt=_QWEN_OMNI),
}

_THINKER_25 = Architecture("Qwen2_5OmniThinkerForConditionalGeneration", masks_padding=True)
_THINKER_3 = Architecture("Qwen3OmniMoeThinkerForConditionalGeneration", masks_padding=True, alone=True)
ARCHITECTURES: Mapping[str, Architecture] = {
    "qwen2_5_omni": _THINKER_25,
    "qwen2_5_omni_thinker": _THINKER_25,
    # nvidia/omni-embed-nemotron-3b: its own code is the thinker with a text model that attends both ways. The published
    # usage pads every clip to 128 s (`audio_kwargs={"max_length": 2048000}`); the tower gets the frames of the clip.
    "nvomniembed": _THINKER_25,
    "qwen3_omni_moe": _THINKER_3,
    "qwen3_omni_moe_thinker": _THINKER_3,
}


def published_audio_model(model: str) -> AudioModel | None:
    """The facts about a model, by the last part of its name; None for one that is not listed.

    >>> published_audio_model("nvidia/omni-embed-nemotron-3b").document_prefix
    'passage: '
    >>> published_audio_model("someone/other") is None
    True
    """
    return PUBLISHED.get(published_name(model))
