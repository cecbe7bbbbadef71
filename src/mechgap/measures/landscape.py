"""The loss around learned, compiled and initial parameters, kept in a folder and resumable.

    landscape.json          what was asked for
    landscape.safetensors   what was computed, and how many points of each part are done

A part is a surface (`general`, `local`), a line, or the circles that flatness is read off.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

from mechgap.disk import write_file
from mechgap.errors import InvalidInput
from mechgap.measures.loss_surface import Plane, circle, grid, heights
from mechgap.network.files import packed
from mechgap.network.network import Network
from mechgap.tasks.batch import Batch
from mechgap.training.train import OnProgress

SETTINGS, ARRAYS = "landscape.json", "landscape.safetensors"
NETWORKS = ("learned", "compiled", "initial")
"""Whose loss landscape can be looked at, in the order of figures."""
SAVE_SECONDS = 10.0
LINE_FROM, LINE_TO = -0.25, 1.25
MOST_POINTS = 2001
"""A side of a grid: more would be 64 MB for each surface, and days."""


@dataclass(frozen=True)
class Settings:
    """What is computed."""

    title: str
    """Whose parameters these are."""
    general: float = 1.0
    """How far the general surface reaches, in lengths of the parameters themselves."""
    local: float = 0.01
    points: int = 51
    """A side of a surface."""
    pairs: int = 8
    """Pairs of directions that flatness is averaged over."""
    radii: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0)
    angles: int = 8
    """Points on each circle."""
    directions: int = 0
    """The seed of the random directions."""

    def __post_init__(self):
        for name in ("general", "local"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"the {name} range must be above 0; got {getattr(self, name)}")
        if not 3 <= self.points <= MOST_POINTS:
            raise InvalidInput(f"a surface has 3 to {MOST_POINTS} points a side; got {self.points}")
        for name in ("pairs", "angles"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be at least 1; got {getattr(self, name)}")


@dataclass(frozen=True)
class Landscape:
    """A finished landscape, or as much of it as there is."""

    settings: Settings
    arrays: Mapping[str, np.ndarray]

    @property
    def networks(self) -> list[str]:
        """Whose loss landscape were looked at."""
        return [name for name in NETWORKS if f"{name}/general/loss" in self.arrays]

    def surface(self, network: str, part: str) -> dict[str, np.ndarray]:
        """Loss and accuracy over a square, and its ticks."""
        side = self.settings.points
        reach = getattr(self.settings, part)
        found = {
            kind: self.arrays[f"{network}/{part}/{kind}"].reshape(side, side)
            for kind in ("loss", "accuracy")
        }
        return {"ticks": np.linspace(-reach, reach, side), **found}

    def rise(self, network: str) -> np.ndarray:
        """Mean loss above the centre's on each circle ``[pairs, radii]``."""
        s = self.settings
        loss = np.stack([self.arrays[f"{network}/flatness/{k}/loss"] for k in range(s.pairs)])
        means = loss.reshape(s.pairs, 1 + len(s.radii), s.angles).mean(-1)
        return means[:, 1:] - means[:, :1]

    def flatness(self) -> list[dict[str, Any]]:
        """For every network and radius: the mean rise over pairs of directions, and its spread.

        Both are None where some loss is too large for single precision.
        """
        rows = []
        for network in self.networks:
            rise = self.rise(network)
            for k, radius in enumerate(self.settings.radii):
                values = rise[:, k]
                known = bool(np.isfinite(values).all())
                several = known and len(values) > 1
                rows.append(
                    {
                        "network": network,
                        "radius": radius,
                        "rise": float(values.mean()) if known else None,
                        "std": float(values.std(ddof=1)) if several else None,
                        "pairs": len(values),
                    }
                )
        return rows


def compute(
    folder: Path,
    settings: Settings,
    networks: Mapping[str, Network],
    batch: Batch,
    on_progress: OnProgress,
) -> Landscape:
    """Everything around these networks, by name; resumes where the folder says."""
    arrays = _begun(folder, settings)
    parts = list(_parts(settings, networks))
    total = sum(len(points) for _, _, points in parts)
    done = sum(int(arrays.get(f"{name}/done", np.zeros(1))[0]) for name, _, _ in parts)
    saved = time.monotonic()
    for name, plane, points in parts:
        for kind in ("loss", "accuracy"):
            arrays.setdefault(f"{name}/{kind}", np.full(len(points), np.nan, np.float32))
        reached = arrays.setdefault(f"{name}/done", np.zeros(1, np.int64))
        start = int(reached[0])
        for where, found in heights(plane, batch, points[start:]):
            here = slice(start + where.start, start + where.stop)
            arrays[f"{name}/loss"][here] = found.loss
            arrays[f"{name}/accuracy"][here] = found.accuracy
            reached[0] = here.stop
            done += here.stop - here.start
            on_progress(name, done, total)
            if time.monotonic() - saved > SAVE_SECONDS:
                _save(folder, arrays)
                saved = time.monotonic()
    _save(folder, arrays)
    return Landscape(settings, arrays)


def _parts(
    settings: Settings, networks: Mapping[str, Network]
) -> Iterator[tuple[str, Plane, np.ndarray]]:
    """Every part's name, plane and points."""
    s = settings
    key = jax.random.key(s.directions)
    for network_name, network in networks.items():
        plane = Plane.random(network, key)
        for part in ("general", "local"):
            yield f"{network_name}/{part}", plane, grid(getattr(s, part), s.points)
    for network_name, network in networks.items():
        rings = [circle(radius, s.angles) for radius in (0.0, *s.radii)]
        for pair in range(s.pairs):
            plane = Plane.random(network, jax.random.fold_in(key, pair))
            yield f"{network_name}/flatness/{pair}", plane, np.concatenate(rings)
    if "learned" in networks and "compiled" in networks:
        ends = networks["learned"], networks["compiled"]
        if same_shape(*ends):
            along = np.linspace(LINE_FROM, LINE_TO, s.points, dtype=np.float32)
            yield "line", Plane.line(*ends), np.stack([along, np.zeros_like(along)], axis=-1)


def same_shape(one: Network, other: Network) -> bool:
    """Whether a straight line leads from one network to the other."""
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        jnp.shape(a) == jnp.shape(b)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


def _begun(folder: Path, settings: Settings) -> dict[str, np.ndarray]:
    """What the folder has of this landscape; it is begun if it has nothing."""
    asked = json.loads(json.dumps(asdict(settings)))
    path = folder / SETTINGS
    try:
        if path.exists():
            stored = json.loads(path.read_text())
            changes = [
                f"{k}: {stored.get(k)} → {v}" for k, v in asked.items() if stored.get(k) != v
            ]
            if changes:
                raise InvalidInput(
                    f"'{folder}' holds another landscape ({'; '.join(changes)}). Ask for the same, "
                    "or choose another folder"
                )
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_file(path, (json.dumps(asked, indent=1) + "\n").encode())
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot use the folder '{folder}': {error}") from error
    try:
        return {k: v.copy() for k, v in load_tensors((folder / ARRAYS).read_bytes()).items()}
    except (FileNotFoundError, SafetensorError):  # nothing yet, or not readable: done again
        return {}


def _save(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    try:
        write_file(folder / ARRAYS, packed(arrays, {"format": "mechgap landscape 1"}))
    except OSError as error:
        raise InvalidInput(f"cannot write to '{folder}': {error}") from error


def load_landscape(folder: Path) -> Landscape:
    """A landscape from its folder."""
    try:
        stored = json.loads((folder / SETTINGS).read_text())
        settings = Settings(**{**stored, "radii": tuple(stored["radii"])})
        arrays = load_tensors((folder / ARRAYS).read_bytes())
    except FileNotFoundError as error:
        raise InvalidInput(
            f"there is no landscape in '{folder}'. Run: mechgap landscape"
        ) from error
    except (OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
        raise InvalidInput(f"the landscape in '{folder}' cannot be read: {error}") from error
    return Landscape(settings, arrays)
