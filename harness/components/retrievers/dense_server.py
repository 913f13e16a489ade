"""Dense retrieval with embeddings from a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...protocols import ComponentSpec
from ..encoders.server import EncodingFormat, ServerEncoder
from ..server_client import DEFAULT_KEY_VARIABLE, DEFAULT_URL, ServerClient
from .dense import DenseRetriever


class ServerDenseRetriever(DenseRetriever):
    """`DenseRetriever` with a `ServerEncoder`.

    The options are those of `ServerEncoder`; further ones (`cache`, …) are those of `DenseRetriever`.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str = DEFAULT_URL,
        revision: str = "",
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        dimensions: int | None = None,
        encoding_format: EncodingFormat = "float",
        extra: Mapping[str, Any] | None = None,
        key_variable: str = DEFAULT_KEY_VARIABLE,
        batch_size: int = 32,
        token_budget: int = 16_384,
        concurrency: int = 4,
        timeout_s: float = 120.0,
        attempts: int = 5,
        client: ServerClient | None = None,
        **dense: Any,
    ) -> None:
        encoder = ServerEncoder(
            model,
            url=url,
            revision=revision,
            query_prompt=query_prompt,
            document_prompt=document_prompt,
            dimensions=dimensions,
            encoding_format=encoding_format,
            extra=extra,
            key_variable=key_variable,
            batch_size=batch_size,
            token_budget=token_budget,
            concurrency=concurrency,
            timeout_s=timeout_s,
            attempts=attempts,
            client=client,
        )
        super().__init__(encoder=encoder, **dense)

    @property
    def spec(self) -> ComponentSpec:
        """What decides the ranking: the encoder's own spec, as a retriever."""
        return replace(super().spec, backend="dense-server")
