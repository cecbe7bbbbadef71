"""With what a result was made: versions, and the commit of mechgap's own source."""

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mechgap import __version__


def made_with() -> dict[str, Any]:
    """Versions and commit, which every result records."""
    return {"versions": _versions(), "commit": _commit()}


def _versions() -> dict[str, str]:
    packages = ("jax", "jaxlib", "equinox", "optax", "numpy")
    known = {name: version(name) for name in packages}
    return {"mechgap": __version__, "python": platform.python_version(), **known}


def _commit() -> str | None:
    """The commit of mechgap's own source, if it is run from a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
