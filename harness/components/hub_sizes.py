"""How many bytes a repository of weights is, asked from the Hub where it can be reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatch

from .weights import OTHER_FORMATS, REPOSITORY, pickled_copies

_WAIT_S = 3.0


def hub_bytes(repositories: Iterable[str]) -> dict[str, int]:
    """The bytes that `find_weights` would download, by repository; those that the Hub does not tell are left out.

    After the first that cannot be reached, no other is asked for.
    """
    import huggingface_hub
    from huggingface_hub import errors as hub_errors

    client = huggingface_hub.HfApi(library_name="squtr")
    found: dict[str, int] = {}
    for repository in repositories:
        if not REPOSITORY.fullmatch(repository):
            continue
        try:
            told = client.model_info(repository, files_metadata=True, timeout=_WAIT_S)
        except hub_errors.HfHubHTTPError:
            continue  # a repository that is gone, or not for everyone
        except (OSError, ValueError, hub_errors.HTTPError):  # type: ignore[attr-defined]
            break
        sizes = {file.rfilename: int(file.size or 0) for file in told.siblings or ()}
        found[repository] = sum(needed_files(sizes).values())
    return {name: held for name, held in found.items() if held}


def needed_files(sizes: Mapping[str, int]) -> dict[str, int]:
    """The files of a repository that are downloaded: no other formats, and no pickled copies beside safetensors.

    >>> needed_files({"model.safetensors": 8, "pytorch_model.bin": 8, "onnx/model.onnx": 9, "config.json": 1})
    {'model.safetensors': 8, 'config.json': 1}
    """
    left = set(pickled_copies(list(sizes)))
    left |= {name for name in sizes if any(fnmatch(name, pattern) for pattern in OTHER_FORMATS)}
    return {name: size for name, size in sizes.items() if name not in left}
