"""How long the page of a 16-seed run takes to write, and to become interactive in Chromium.

    python benchmarks/page.py

The seeds are untrained networks of 128 hidden units, measured before the clock starts. Interactive:
the player answers to the slider. Drawn: all charts are there as well.
"""

import shutil
import tempfile
import time
from pathlib import Path

import jax.numpy as jnp
from playwright.sync_api import sync_playwright

from measuring import save
from mechgap.measures.reference import compile_reference
from mechgap.measures.run import measure_run
from mechgap.report.page.page import write_page
from mechgap.training.population import initial
from mechgap.training.presets import make_recipe
from mechgap.training.store import Store

SEEDS = 16


def main() -> None:
    recipe = make_recipe("bfs")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        with Store.writing(folder, recipe, 1) as store:
            for seed in range(SEEDS):
                network = initial(recipe, jnp.int32(seed)).network
                store.put(seed, network, 0.0, 0.0, "untrained")
        measure_run(folder)
        began = time.perf_counter()
        page = write_page(folder, compile_reference(recipe, 64).compiled)
        written = time.perf_counter() - began
        times: dict[str, float] = {}
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            for _ in range(3):
                tab = browser.new_page()
                began = time.perf_counter()
                tab.goto(page.as_uri(), wait_until="commit")
                for name in ("ready", "charts"):
                    tab.wait_for_selector(f"html[data-{name}=true]")
                    took = time.perf_counter() - began
                    times[name] = min(took, times.get(name, took))
                tab.close()
            browser.close()
        numbers = {
            "seeds": SEEDS,
            "write_seconds": round(written, 1),
            "interactive_seconds": round(times["ready"], 2),
            "drawn_seconds": round(times["charts"], 2),
            "megabytes": round(page.stat().st_size / 1e6, 1),
        }
    print(numbers)
    save("page", numbers)


if __name__ == "__main__":
    main()
