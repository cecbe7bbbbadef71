"""Networks as safetensors files: parameters by name, and what they are in the metadata.

The metadata (task, config, and whatever the maker adds) is JSON. Nothing in a file is executed.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from mechgap import __version__
from mechgap.errors import InvalidInput
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.tasks.specs import Feature, Location, Stage, Task, Type

FORMAT = "mechgap network 1"


def tensors(network: Network) -> dict[str, np.ndarray]:
    """Every parameter by its path, such as ``processor.value.weight``."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(network)
    return {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf)
            for path, leaf in leaves}  # fmt: skip


def save_network(
    network: Network, path: Path | str, about: Mapping[str, Any] | None = None
) -> None:
    """Write a network, whole or not at all. `about` is kept in the metadata."""
    write_tensors(path, tensors(network), _metadata(network, about))


def network_bytes(network: Network, about: Mapping[str, Any] | None = None) -> bytes:
    """What `save_network` would write."""
    return packed(tensors(network), _metadata(network, about))


def packed(named: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> bytes:
    """Tensors as the bytes of a safetensors file, the same for the same content.

    The library writes its header in any order; here it is sorted.
    """
    data = save({k: np.ascontiguousarray(v) for k, v in named.items()}, metadata=dict(metadata))
    size = int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8 : 8 + size]), sort_keys=True, separators=(",", ":"))
    padded = header.encode() + b" " * (-len(header.encode()) % 8)
    return len(padded).to_bytes(8, "little") + padded + data[8 + size :]


def _metadata(network: Network, about: Mapping[str, Any] | None) -> dict[str, str]:
    return {
        "format": FORMAT,
        "mechgap": __version__,
        "task": json.dumps(_task_data(network.task)),
        "config": json.dumps(asdict(network.config)),
        "about": json.dumps(about or {}),
    }


def write_tensors(
    path: Path | str, named: Mapping[str, np.ndarray], metadata: Mapping[str, str]
) -> None:
    """Write a safetensors file beside its place, then move it there."""
    place = Path(path)
    if not place.parent.is_dir():
        raise InvalidInput(f"there is no folder '{place.parent}' to write {place.name} into")
    partial = place.with_name(f".{place.name}.partial")
    try:
        partial.write_bytes(packed(named, metadata))
        partial.replace(place)
    except (OSError, SafetensorError) as error:
        raise InvalidInput(f"cannot write '{place}': {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def read_tensors(place: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The tensors and the metadata of a safetensors file."""
    if not place.is_file():
        raise InvalidInput(f"there is no file '{place}'")
    try:
        with safe_open(place, framework="numpy") as stored:
            metadata = stored.metadata() or {}
            return {name: stored.get_tensor(name) for name in stored.keys()}, metadata  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise InvalidInput(
            f"'{place}' is damaged or not a safetensors file ({error}). Make it again"
        ) from error


def load_network(path: Path | str) -> tuple[Network, dict[str, Any]]:
    """A network and what its maker said about it. A damaged or foreign file is a clear error."""
    place = Path(path)
    named, metadata = read_tensors(place)
    if metadata.get("format") != FORMAT:
        raise InvalidInput(
            f"'{place}' is a safetensors file, but not a mechgap network. For dm-clrs's parameters "
            "use: mechgap import"
        )
    try:
        task = _task(json.loads(metadata["task"]))
        config = NetworkConfig(**json.loads(metadata["config"]))
        about = json.loads(metadata["about"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"the metadata of '{place}' is damaged: {error}") from error
    shape = eqx.filter_eval_shape(Network.initial, task, jax.random.key(0), config)
    leaves, structure = jax.tree_util.tree_flatten_with_path(shape)
    wanted = {jax.tree_util.keystr(p, simple=True, separator="."): leaf for p, leaf in leaves}
    if {k: v.shape for k, v in named.items()} != {k: v.shape for k, v in wanted.items()}:
        raise InvalidInput(f"the tensors of '{place}' are not those of the network it describes")
    return jax.tree.unflatten(structure, [jnp.asarray(named[name]) for name in wanted]), about


def _task_data(task: Task) -> dict[str, Any]:
    data = asdict(task.untraced)
    del data["tracer"], data["like"]
    data["features"] = [
        {**asdict(f), "stage": f.stage.value, "location": f.location.value, "type": f.type.value}
        for f in task.features
    ]
    return data


def _task(data: Mapping[str, Any]) -> Task:
    features = tuple(
        Feature(
            f["name"],
            Stage(f["stage"]),
            Location(f["location"]),
            Type(f["type"]),
            f["categories"],
        )
        for f in data["features"]
    )
    return Task(**{**data, "features": features})
