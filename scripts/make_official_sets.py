"""Make the official CLRS-30 validation and test sets with dm-clrs and store them in the package.

    python scripts/make_official_sets.py [FOLDER]

Needs the extra `clrs`. Values are stored in the smallest type that holds them exactly.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from mechgap.interop.dm_clrs import official_feedback
from mechgap.tasks.official import Split
from mechgap.tasks.specs import TASKS

PACKAGE_DATA = Path(__file__).parent.parent / "src" / "mechgap" / "tasks" / "data"


def smallest(values: np.ndarray) -> np.ndarray:
    """The same numbers as bytes where that loses nothing, else as float64."""
    small = values.astype(np.uint8)
    return small if np.array_equal(small, values) else values.astype(np.float64)


def main(folder: Path) -> None:
    """Write one file per task and split."""
    folder.mkdir(parents=True, exist_ok=True)
    for task in TASKS.values():
        if not task.in_dm_clrs:
            continue
        for split in Split:
            features, outputs = official_feedback(task.name, split)
            arrays = {f"input/{dp.name}": dp.data for dp in features.inputs}
            arrays |= {f"hint/{dp.name}": dp.data for dp in features.hints}
            arrays |= {f"output/{dp.name}": dp.data for dp in outputs}
            arrays["lengths"] = features.lengths
            path = folder / f"{task.name}_{split.value}.npz"
            stored: dict[str, Any] = {k: smallest(np.asarray(v)) for k, v in arrays.items()}
            np.savez_compressed(path, **stored)
            print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE_DATA)
