"""With what a result was made: versions, and the commit of mechgap's own source."""

import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from mechgap import __version__


@dataclass(frozen=True)
class Provenance:
    """With what a result was made, which every result records."""

    versions: Mapping[str, str]
    """Of Python, mechgap and the packages that compute."""
    commit: str | None
    """Of mechgap's own source; None if it is not run from a checkout."""

    @staticmethod
    def now() -> "Provenance":
        """What is running."""
        return Provenance(_versions(), _commit())


def _versions() -> dict[str, str]:
    packages = ("jax", "jaxlib", "equinox", "optax", "numpy")
    known = {name: version(name) for name in packages}
    return {"mechgap": __version__, "python": platform.python_version(), **known}


def _commit() -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
