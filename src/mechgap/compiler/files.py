"""Compiled networks as files: mechgap's own format, or dm-clrs's parameters."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from mechgap.compiler.compile import Compiled
from mechgap.interop.dm_clrs import to_haiku
from mechgap.network.files import save_network, write_tensors


def about(compiled: Compiled) -> dict[str, Any]:
    """How a network was compiled, as plain data: what its file keeps."""
    certificate = compiled.certificate
    gap = {"value_gap": certificate.value_gap(certificate.domain.steps)}
    return {
        "program": compiled.program.name,
        "source": str(compiled.program),
        "target": compiled.target.name,
        "certificate": asdict(certificate) | gap,
        "units": {
            "state": [unit.label for unit in compiled.hidden_units],
            "attention": [unit.label for unit in compiled.attention_units],
        },
    }


def save_compiled(compiled: Compiled, path: Path | str) -> None:
    """Write the network with its program's text, target, domain and certificate."""
    save_network(compiled.network, path, about(compiled))


def save_for_dm_clrs(compiled: Compiled, path: Path | str) -> None:
    """Write the parameters as dm-clrs names them: ``<module>/<w|b|scale|offset>``."""
    named = {
        f"{module}/{name}": value
        for module, parameters in to_haiku(compiled.network).items()
        for name, value in parameters.items()
    }
    write_tensors(path, named, {"program": compiled.program.name, "target": compiled.target.name})
