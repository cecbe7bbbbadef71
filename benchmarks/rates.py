"""How fast every population of the paper's tables trains on this machine, in seed-steps per second.

    python benchmarks/rates.py [POPULATION ...]

Writes `src/mechgap/experiments/replication/rates.json`, from which `mechgap reproduce` estimates
what a machine without experience of its own would need. Give names to measure only these again.
"""

import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

from mechgap.experiments.replication.tables import all_populations
from mechgap.training.engines import make_engine
from mechgap.training.local import forget_programs
from mechgap.training.train import Progress, Stopped, Watcher, default_chunk, train

FILE = Path(__file__).parent.parent / "src/mechgap/experiments/replication/rates.json"
SECONDS = 15.0
"""After the first report."""


class Clock(Watcher):
    """Stops training after some seconds and knows how fast it was."""

    def __init__(self):
        self.rate, self._first = 0.0, None

    def progress(self, progress: Progress) -> None:
        self._first = self._first or time.monotonic()
        self.rate = progress.rate

    def wants_to_stop(self) -> bool:
        return self._first is not None and time.monotonic() - self._first > SECONDS


def main() -> None:
    engine = make_engine("local")
    rates = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name, population in all_populations().items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        clock, recipe = Clock(), population.recipe
        with tempfile.TemporaryDirectory() as folder:
            seeds = range(2 * default_chunk(recipe))
            with contextlib.suppress(Stopped):
                train(recipe, seeds, Path(folder), engine, watcher=clock)
        forget_programs()
        rate = float(f"{clock.rate:.3g}")
        rates[population.unshortened_name] = rate
        print(f"{name}: {rate:,} seed-steps/s", flush=True)
        FILE.write_text(json.dumps(dict(sorted(rates.items())), indent=1) + "\n")


if __name__ == "__main__":
    main()
