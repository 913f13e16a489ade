"""How large published models are, for plans that are made before anything is downloaded: facts with their sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .transcribers.faster_whisper import HUB_MODELS
from .transcribers.funasr_models import KNOWN_MODELS

BYTES: Mapping[str, int] = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1}
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelSize:
    """A model by its sizes; 0 where one does not apply, "" where it is not known.

    - `parameters`: all that a loaded model holds, `embedding` those of token embeddings (looked up, not multiplied),
      `encoder` those that are computed once per frame of audio; the others are computed once per token.
    - `stored` is the number type of the checkpoint, `download` its bytes (0: `parameters` in that type; without a type
      it is not known).
    - `frames_per_s`: positions of the audio encoder per second, `window_s` what audio is padded to, `longest_s` the
      longest clip that is taken whole; `audio_per_s`: tokens of audio that a language model reads.
    - `width`: of its hidden states, `dimension`: of an embedding; `cache`: numbers per token in the cache of keys and
      values, `cross_cache` per clip.
    """

    parameters: int
    stored: str
    source: str
    download: int = 0
    embedding: int = 0
    encoder: int = 0
    frames_per_s: float = 0.0
    window_s: float = 0.0
    longest_s: float = 0.0
    audio_per_s: float = 0.0
    width: int = 0
    dimension: int = 0
    cache: int = 0
    cross_cache: int = 0
    max_tokens: int = 0
    license: str = ""

    @property
    def download_bytes(self) -> int | None:
        """The bytes of the checkpoint; None if neither they nor its number type are known."""
        if self.download:
            return self.download
        return self.parameters * BYTES[self.stored] if self.stored in BYTES else None


_MTEB = "mteb 2.26.24's ModelMeta"


def _text(  # noqa: PLR0917 - a row of the table
    parameters: int, mebibytes: int, embedding: int, dimension: int, max_tokens: int, stored: str, license_: str
) -> ModelSize:
    return ModelSize(
        parameters, stored, _MTEB, mebibytes * _MIB, embedding,
        width=dimension, dimension=dimension, max_tokens=max_tokens, license=license_,
    )  # fmt: skip


def _whisper(parameters: int, encoder: int, layers: int, width: int, stored: str) -> ModelSize:
    # Cross attention holds keys and values of the encoder's 1500 positions.
    per_token = 2 * layers * width
    return ModelSize(
        parameters, stored, "computed from the dimensions in arXiv 2212.04356, table 1", encoder=encoder,
        frames_per_s=50.0, window_s=30.0, width=width, cache=per_token, cross_cache=1500 * per_token,
        license="apache-2.0",
    )  # fmt: skip


_WHISPER = {
    "tiny": (37_760_640, 8_208_384, 4, 384),
    "base": (72_593_920, 20_590_592, 6, 512),
    "small": (241_734_912, 88_154_112, 12, 768),
    "medium": (763_857_920, 307_216_384, 24, 1024),
    "large-v3": (1_543_490_560, 636_968_960, 32, 1280),
}
_PARAFORMER = ModelSize(
    220_000_000, "float32", "FunASR's model zoo; files of the repository on the Hub", 889_000_000,
    encoder=220_000_000, frames_per_s=1000 / 60, width=512,
)  # fmt: skip
_CONFIGURED = "computed from the default configuration of transformers 5.24"

SIZES: Mapping[str, ModelSize] = {
    "baai/bge-small-en-v1.5": _text(33_360_000, 127, 11_720_448, 384, 512, "float32", "mit"),
    "baai/bge-base-en-v1.5": _text(109_000_000, 390, 23_440_896, 768, 512, "float32", "mit"),
    "baai/bge-large-en-v1.5": _text(335_000_000, 1242, 31_254_528, 1024, 512, "float32", "mit"),
    "baai/bge-small-zh-v1.5": _text(23_953_920, 91, 10_817_536, 512, 512, "float32", "mit"),
    "baai/bge-base-zh-v1.5": _text(109_000_000, 416, 16_226_304, 768, 512, "float32", "mit"),
    "baai/bge-large-zh-v1.5": _text(335_000_000, 1278, 21_635_072, 1024, 512, "float32", "mit"),
    "baai/bge-m3": _text(568_000_000, 2167, 256_002_048, 1024, 8192, "float32", "mit"),
    "google/embeddinggemma-300m": _text(307_581_696, 1155, 201_326_592, 768, 2048, "float32", "gemma"),
    "intfloat/multilingual-e5-large": _text(560_000_000, 2136, 256_002_048, 1024, 512, "float32", "mit"),
    "intfloat/multilingual-e5-small": _text(118_000_000, 449, 96_014_208, 384, 512, "float32", "mit"),
    "qwen/qwen3-embedding-0.6b": _text(595_776_512, 1136, 155_309_056, 1024, 32_768, "bfloat16", "apache-2.0"),
    "qwen/qwen3-embedding-4b": _text(4_021_774_336, 7671, 388_262_400, 2560, 32_768, "bfloat16", "apache-2.0"),
    "qwen/qwen3-embedding-8b": _text(7_567_295_488, 14_433, 621_219_840, 4096, 32_768, "bfloat16", "apache-2.0"),
    # The checkpoint's first projection, which is what sentence-transformers loads, has 1024 dimensions.
    "novasearch/stella_en_400m_v5": _text(435_000_000, 1660, 0, 1024, 8192, "float32", "mit"),
    "sentence-transformers/all-minilm-l6-v2": _text(22_713_216, 87, 11_720_448, 384, 256, "float32", "apache-2.0"),
    "nvidia/omni-embed-nemotron-3b": ModelSize(
        4_703_464_448, "bfloat16", _MTEB, 8971 * _MIB, 311_164_928, 639_647_232, 50.0, audio_per_s=25.0,
        width=2048, dimension=2048, max_tokens=32_768, license="NVIDIA",
    ),
    **{
        f"openai/whisper-{size}": _whisper(*numbers, "float16" if size == "large-v3" else "float32")
        for size, numbers in _WHISPER.items()
    },
    # OpenAI's own files and CTranslate2's hold the same weights in float16.
    **{f"whisper/{size}": _whisper(*numbers, "float16") for size, numbers in _WHISPER.items()},
    **{f"systran/faster-whisper-{size}": _whisper(*numbers, "float16") for size, numbers in _WHISPER.items()},
    **dict.fromkeys(
        ("funasr/paraformer-zh", "iic/speech_paraformer-large_asr_nat-zh-cn-16k-common-vocab8404-pytorch"),
        _PARAFORMER,
    ),
    "funaudiollm/sensevoicesmall": ModelSize(
        234_000_000, "float32", "FunASR's model zoo; files of the repository on the Hub", 944_000_000,
        encoder=234_000_000, frames_per_s=1000 / 60, width=512,
    ),
    # How its first form is stored is not known; in transformers' form (bfloat16) it has these parameters.
    "funaudiollm/fun-asr-nano-2512": ModelSize(
        985_374_304, "", _CONFIGURED, 0, 155_582_464, 221_136_992, 1000 / 60, audio_per_s=1000 / 60 / 2, width=1024,
        cache=2 * 28 * 8 * 128, license="apache-2.0",
    ),
    "zai-org/glm-asr-nano-2512": ModelSize(
        2_257_843_200, "bfloat16", _CONFIGURED, 0, 121_372_672, 635_048_960, 50.0, 30.0, audio_per_s=12.5, width=2048,
        cache=2 * 28 * 4 * 128, license="mit",
    ),
    "qwen/qwen3-asr-1.7b-hf": ModelSize(
        2_350_791_808, "bfloat16", _CONFIGURED + "; the repository has 4.7 GB", 0, 311_164_928, 314_328_704, 13.0,
        audio_per_s=13.0, width=2048, cache=2 * 28 * 8 * 128, license="apache-2.0",
    ),
    # The half that speaks is not loaded, but downloaded.
    "qwen/qwen2.5-omni-3b": ModelSize(
        5_537_120_672, "bfloat16", _MTEB, 11_418 * _MIB, 311_164_928, 639_647_232, 50.0, longest_s=300.0,
        audio_per_s=25.0, width=2048, cache=2 * 36 * 2 * 128, license="other",
    ),
    "qwen/qwen2.5-omni-7b": ModelSize(
        10_732_225_440, "bfloat16", _MTEB, 21_327 * _MIB, 544_997_376, 639_647_232, 50.0, longest_s=300.0,
        audio_per_s=25.0, width=3584, cache=2 * 28 * 4 * 128, license="apache-2.0",
    ),
    "mistralai/voxtral-mini-3b-2507": ModelSize(
        4_676_271_104, "bfloat16", _CONFIGURED, 0, 402_653_184, 636_968_960, 50.0, 30.0, audio_per_s=12.5, width=3072,
        cache=2 * 30 * 8 * 128, license="apache-2.0",
    ),
    "qwen/qwen3-4b": ModelSize(
        4_022_468_096, "bfloat16", "computed with transformers 5.24 from the dimensions in arXiv 2505.09388", 0,
        388_956_160, width=2560, cache=2 * 36 * 8 * 128, license="apache-2.0",
    ),
    "qwen/qwen3-8b": ModelSize(
        8_190_735_360, "bfloat16", "computed with transformers 5.24 from the dimensions in arXiv 2505.09388", 0,
        622_329_856, width=4096, cache=2 * 36 * 8 * 128, license="apache-2.0",
    ),
}  # fmt: skip
"""By repository, in lower case. Downloads are those of the weights: tokenizers and configurations add some MB."""

_OWN_NAMES: Mapping[str, Mapping[str, str]] = {
    "faster-whisper": {**HUB_MODELS, "whisper-base": "Systran/faster-whisper-base"},
    "openai-whisper": {name: f"whisper/{name.removeprefix('whisper-')}" for size in _WHISPER
                       for name in (size, f"whisper-{size}")},
    "funasr": {name: known.hf or known.ms for name, known in KNOWN_MODELS.items()},
    "dense": {"all-minilm-l6-v2": "sentence-transformers/all-MiniLM-L6-v2",
              "multilingual-e5-small": "intfloat/multilingual-e5-small"},
}  # fmt: skip
"""Short names that a backend gives to repositories."""


def repository_of(backend: str, model: str) -> str:
    """The repository that a model of a backend is downloaded from, as far as its name tells.

    >>> repository_of("funasr", "sensevoice-small"), repository_of("dense", "BAAI/bge-m3")
    ('FunAudioLLM/SenseVoiceSmall', 'BAAI/bge-m3')
    """
    return _OWN_NAMES.get(backend, {}).get(model, model)


def size_of(backend: str, model: str) -> ModelSize | None:
    """What is known of a model's size; None for one that is not listed.

    >>> size_of("dense", "Qwen/Qwen3-Embedding-8B").dimension, size_of("dense", "someone/other")
    (4096, None)
    """
    return SIZES.get(repository_of(backend, model).lower())
