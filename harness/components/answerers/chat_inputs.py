"""How a request becomes the inputs of a model: through the chat template and the processor that come with it."""

from __future__ import annotations

import base64
import io
import math
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from ....errors import ModelError
from ....loaders.records import Samples
from ..generation import Message, conversation, dated, dialogue_marks, window_for, without_marks
from ..library_log import quiet
from ..torch_models import TorchOptions
from .common import Piece
from .models import AnswerModel

PACKAGES = {
    "mistral_common": "Run: pip install 'squtr[voxtral]', with Python before 3.13 in an environment of its own, as it "
    "wants an older NumPy.",
    "timm": "Run: pip install timm torchvision, the latter from the index that torch came from.",
    "torchaudio": "Run: pip install torchaudio, from the index that torch came from.",
}
"""How a package that a model needs is installed."""


def require_packages(packages: tuple[str, ...], name: str) -> None:
    """Raises `ModelError` if one is not installed: some models run without it, and give worse replies."""
    for package in packages:
        if find_spec(package) is None:
            raise ModelError(f"{name} needs the package {package}, which is not installed.", hint=PACKAGES[package])


class ChatInputs:
    """The processor in `folder`, and the model's inputs for a message of clips and a prompt.

    A template that writes no parts of a message, but only a text, gets the clips' marks in the text. Raises
    `ModelError` for a processor without a template, and for a template without a place for audio.
    """

    def __init__(
        self, folder: Path, facts: AnswerModel, options: TorchOptions, *, template: str | None, system: str, name: str
    ) -> None:
        self._folder, self._facts, self._torch, self._name = folder, facts, options, name
        self._template, self._system = dated(template), system

    @cached_property
    def processor(self) -> Any:
        require_packages(self._facts.needs, self._name)
        processor = self._torch.load_processor(self._folder, name=self._name)
        if self._facts.audio_as == "base64":  # Voxtral's tokenizer has its template within itself
            return processor
        if getattr(processor, "chat_template", None) is None:
            # Some processors do not read the template that lies beside them; their tokenizers do.
            processor.chat_template = getattr(processor.tokenizer, "chat_template", None)
        processor.chat_template = dated(processor.chat_template)
        if self._template is None and not processor.chat_template:
            raise ModelError(
                f"the processor of {self._name} has no chat template.",
                hint="Give one as chat_template, or another model.",
            )
        return processor

    @property
    def tokenizer(self) -> Any:
        return self.processor.tokenizer

    @cached_property
    def _extractor(self) -> Any:
        return getattr(self.processor, "feature_extractor", None) or self.processor.audio_processor

    @property
    def sample_rate(self) -> int:
        return int(self._extractor.sampling_rate)

    @cached_property
    def window_s(self) -> float | None:
        """The longest clip that goes in whole; a smaller model of a family may take less than is listed."""
        longest = getattr(self.processor, "max_audio_len", None)
        if longest is not None:
            # Its processor cuts audio into windows, and drops what is behind the last whole one.
            window = float(self._extractor.chunk_length)
            return float(longest) // window * window
        listed = self._facts.window_s
        own = getattr(self._extractor, "n_samples", None)
        if listed is None or own is None:
            return None if listed is None or math.isinf(listed) else listed
        return min(listed, float(own) / self.sample_rate)

    @cached_property
    def _marks(self) -> Any:
        return dialogue_marks(self.tokenizer, self._audio_token)

    @cached_property
    def _audio_token(self) -> str:
        return str(getattr(self.processor, "audio_token", None) or "")

    def written(self, messages: list[tuple[list[Piece], str]]) -> Any:
        """The inputs for some messages, each pieces of audio and the prompt after them; padded on the left.

        What looks like a mark of the dialogue in a prompt is written apart. Raises `ValueError` where no audio of a
        message with clips is in its inputs.
        """
        parts = [self._parts(pieces, without_marks(prompt, self._marks)) for pieces, prompt in messages]
        clips = [piece.samples for pieces, _ in messages for piece in pieces]
        options: dict[str, Any] = {"text_kwargs": {"padding": True, "padding_side": "left"}}
        if self._facts.masks_padding and (window := window_for(self._extractor, clips)):
            options["audio_kwargs"] = window
        with quiet():
            if self._takes_parts:
                inputs = self.processor.apply_chat_template(
                    [conversation(content, self._system) for content in parts],
                    chat_template=self._template,
                    add_generation_prompt=True,
                    tokenize=True,
                    return_dict=True,
                    return_tensors="pt",
                    processor_kwargs=options,
                )
            else:
                prompts = [self._rendered(self._as_text(content)) for content in parts]
                start = self.tokenizer.bos_token
                inputs = self.processor(
                    text=prompts,
                    audio=clips or None,
                    return_tensors="pt",
                    # A template writes the tokens at the beginning itself.
                    add_special_tokens=not (start and prompts[0].startswith(start)),
                    **options,
                )
        self._require_audio(inputs, [bool(pieces) for pieces, _ in messages])
        return inputs

    def _parts(self, pieces: list[Piece], prompt: str) -> list[Message]:
        content: list[Message] = []
        for piece in pieces:
            if piece.name:
                content.append({"type": "text", "text": piece.name})
            content.append(self._audio(piece.samples))
        return [*content, {"type": "text", "text": prompt}]

    def _audio(self, samples: Samples) -> Message:
        if self._facts.audio_as == "array":
            return {"type": "audio", "audio": samples}
        buffer = io.BytesIO()
        soundfile.write(buffer, samples.astype(np.float32), self.sample_rate, format="WAV", subtype="FLOAT")
        return {"type": "audio", "base64": base64.b64encode(buffer.getvalue()).decode("ascii")}

    def _as_text(self, content: list[Message]) -> list[Message]:
        text = "".join(self._audio_token if part["type"] == "audio" else str(part["text"]) for part in content)
        system = [{"role": "system", "content": self._system}] if self._system else []
        return [*system, {"role": "user", "content": text}]

    def _rendered(self, messages: list[Message]) -> str:
        return str(
            self.processor.apply_chat_template(
                messages, chat_template=self._template, add_generation_prompt=True, tokenize=False
            )
        )

    @cached_property
    def _takes_parts(self) -> bool:
        """Whether the template writes a message's parts; Granite's and Phi-4's want its text with the marks in it."""
        if self._facts.audio_as == "base64":
            return True
        from jinja2 import TemplateError

        clip = Piece("", np.zeros(self.sample_rate, np.float32))
        content = self._parts([clip], "?")
        for takes, messages in ((True, conversation(content, self._system)), (False, self._as_text(content))):
            try:
                marks = self._rendered(messages).count(self._audio_token) if self._audio_token else int(takes)
            except (TypeError, TemplateError):
                continue
            if marks == 1:
                return takes
        raise ModelError(
            f"the chat template of {self._name} has no place for audio.",
            hint="Give one as chat_template that writes the processor's mark for a part of the type audio.",
        )

    def _require_audio(self, inputs: Any, wanted: list[bool]) -> None:
        """The model would answer from the text alone."""
        token = getattr(self.processor, "audio_token_id", None)
        if token is None and self._audio_token:
            token = self.tokenizer.convert_tokens_to_ids(self._audio_token)
        if token is None:
            return
        found = (inputs["input_ids"] == token).any(dim=1).tolist()
        if found != wanted:
            raise ValueError("the processor made no audio of a clip; it may be too short")
