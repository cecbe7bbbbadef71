"""From a clone to the page of one's own algorithm: how long each step takes a newcomer.

    python benchmarks/newcomer.py

A fresh clone of what is committed, a new virtual environment, an empty cache; then the commands of
docs/newcomer.md, one after the other, with the program that stands there. A step that fails ends
it. Stop everything else on the machine before.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import save

PROJECT = Path(__file__).parent.parent
STEPS = {
    "clone": "git clone --quiet {project} mechgap",
    "environment": "{python} -m venv new",
    "install": "cd mechgap && pip install --quiet .",
    "doctor": "mechgap doctor",
    "compile": "mechgap compile mine.py:highest_first --target stock-ln",
    "verify": "mechgap verify mine.py:highest_first --target stock-ln",
    "gap": "mechgap gap mine.py:highest_first --out mine",
    "decompile": "mechgap decompile mine",
    "report": "mechgap report mine",
}
"""What a newcomer types, in this order."""


def main() -> None:
    page = (PROJECT / "docs" / "newcomer.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    with tempfile.TemporaryDirectory() as place:
        environment = {
            **os.environ,
            "XDG_CACHE_HOME": f"{place}/cache",
            "PATH": f"{place}/new/bin:{os.environ['PATH']}",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        environment.pop("PYTHONPATH", None)
        (Path(place) / "mine.py").write_text(program)
        seconds: dict[str, float] = {}
        for name, words in STEPS.items():
            began = time.perf_counter()
            command = words.format(project=PROJECT, python=sys.executable)
            done = subprocess.run(
                command, shell=True, cwd=place, env=environment, capture_output=True, text=True
            )
            if done.returncode:
                sys.exit(f"{name}: {command}\n{done.stdout}{done.stderr}")
            seconds[name] = round(time.perf_counter() - began, 1)
            print(f"{name}: {seconds[name]} s\n{done.stdout.strip()}\n", flush=True)
        written = Path(place) / "mine" / "report" / "index.html"
        save("newcomer", {"seconds": seconds, "page_bytes": written.stat().st_size})


if __name__ == "__main__":
    main()
