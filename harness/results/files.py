"""The files of a result, the same for every benchmark: a JSON file of a model, and tables beside it.

results/<system>/<config>.json
results/<system>/<config>.<table>.parquet
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, ValidationError

from ...errors import DataError, StorageError, disk_hint


class FileModel(BaseModel):
    """A part of a result: unknown fields are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Model = TypeVar("Model", bound=BaseModel)
RETRIEVED = ("documents", "scores")
"""The columns of records that list what was retrieved, with one element per document: most of a table's size."""


def file_name(name: str) -> str:
    """`name` as a safe file name.

    >>> file_name("whisper-base + BM25")
    'whisper-base+BM25'
    """
    return re.sub(r"[^\w.+-]+", "-", name.replace(" + ", "+")).strip("-")


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary name beside `path`, then rename. Raises `StorageError` if the disk refuses."""
    write_in_pieces(path, [content])


def write_in_pieces(path: Path, pieces: Iterable[bytes | str]) -> None:
    """As `write_atomically`, piece by piece, texts in UTF-8. What the pieces raise leaves no file."""
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = Path(file.name)
            for piece in pieces:
                file.write(piece if isinstance(piece, bytes) else piece.encode("utf-8"))
        # Temporary files are private; a result is not.
        temporary.chmod(0o644)
        temporary.replace(path)
        temporary = None
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}.", hint=disk_hint(error, path.parent)
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def result_path(folder: Path, system: str, config: str) -> Path:
    """Where the JSON of a result lies below `folder`."""
    return folder / "results" / file_name(system) / f"{config}.json"


def write_tables(path: Path, tables: Mapping[str, pa.Table | None]) -> None:
    """Write the tables of the result at `path` beside it, by name; None is none."""
    for name, table in tables.items():
        if table is not None:
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression="zstd", **_encodings(table.schema))
            write_atomically(path.with_suffix(f".{name}.parquet"), sink.getvalue().to_pybytes())


def _encodings(schema: pa.Schema) -> dict[str, list[str]]:
    """How columns are encoded: dictionaries, but for lists of numbers (scores), whose bytes are sorted by place.

    Neither loses anything. Of scores that were computed in float32 the low bytes are all zero and take no space.
    """
    lists = [field for field in schema if pa.types.is_list(field.type)]
    numbers = [f"{field.name}.list.element" for field in lists if pa.types.is_floating(field.type.value_type)]
    names = [f"{field.name}.list.element" if field in lists else field.name for field in schema]
    return {"use_dictionary": [name for name in names if name not in numbers], "use_byte_stream_split": numbers}


def write_model(path: Path, model: BaseModel) -> Path:
    """Write a model as JSON and return its path."""
    content = json.dumps(model.model_dump(mode="json"), ensure_ascii=False, indent=2, allow_nan=False)
    write_atomically(path, content.encode("utf-8") + b"\n")
    return path


def read_model(model: type[Model], path: Path, *, otherwise: str) -> Model:
    """The model in a JSON file. Raises `DataError` naming file and field; `otherwise` says what a wrong file is."""
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.", hint="Check the path.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.", hint="Check the path.") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise DataError(f"{path} is {otherwise}: {place}: {first['msg']}.", hint="Run the evaluation again.") from error


def read_table(path: Path, name: str, *, documents: int | None = None) -> pa.Table:
    """The table of that name beside the result at `path`, with at most `documents` of each list of what was retrieved.

    Raises `DataError` naming it if it cannot be read.
    """
    table_path = path.with_suffix(f".{name}.parquet")
    try:
        table = pq.read_table(table_path)
        return table if documents is None else shortened(table, documents)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{table_path} cannot be read: {error}.", hint="Run the evaluation again.") from error


def shortened(table: pa.Table, most: int) -> pa.Table:
    """A table with at most `most` elements in the lists of what was retrieved, the first ones.

    >>> shortened(pa.table({"documents": [["a", "b"], []], "scores": [[2.0, 1.0], []]}), 1).to_pylist()
    [{'documents': ['a'], 'scores': [2.0]}, {'documents': [], 'scores': []}]
    """
    for name in RETRIEVED:
        if name in table.column_names:
            place = table.column_names.index(name)
            field = table.schema.field(name)
            table = table.set_column(place, field, pc.list_slice(table[name], 0, most).cast(field.type))
    return table


def result_paths(folder: Path) -> list[Path]:
    """The JSON files of all results below `folder`, sorted. Raises `DataError` if there are none."""
    paths = sorted((folder / "results").glob("*/*.json"))
    if not paths:
        raise DataError(f"{folder} holds no results.", hint="Run `squtr evaluate` with --out on that folder first.")
    return paths
