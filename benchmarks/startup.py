"""How light is mechgap? Time to answer `--help`, and the size of what `pip install .` brings.

    python benchmarks/startup.py

Makes two new virtual environments, with the core and with dm-clrs, and weighs them. Takes minutes.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from measuring import best_seconds, save

PROJECT = Path(__file__).parent.parent


def help_seconds() -> float:
    command = [sys.executable, "-m", "mechgap.cli", "--help"]
    return best_seconds(
        lambda: subprocess.run(command, check=True, capture_output=True), repeats=5, calls=3
    )


def installed_megabytes(*requirements: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        before = _megabytes(Path(folder))
        pip = [str(Path(folder) / "bin" / "pip"), "install", "-q", "--no-compile", *requirements]
        subprocess.run(pip, check=True)
        return _megabytes(Path(folder)) - before


def _megabytes(folder: Path) -> float:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 1e6


def main() -> None:
    numbers = {"help_seconds": round(help_seconds(), 3)}
    print(f"mechgap --help: {numbers['help_seconds']} s")
    numbers["core_megabytes"] = round(installed_megabytes(str(PROJECT)))
    numbers["dm_clrs_megabytes"] = round(installed_megabytes("dm-clrs"))
    print(f"core: {numbers['core_megabytes']} MB, dm-clrs: {numbers['dm_clrs_megabytes']} MB")
    save("startup", numbers)


if __name__ == "__main__":
    main()
