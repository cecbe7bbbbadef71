"""Files that are there whole or not at all."""

import os
from pathlib import Path


def write_file(path: Path, data: bytes) -> None:
    """Write a file beside its place, flush it to disk, move it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
