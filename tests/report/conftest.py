"""A measured run and a browser, for all tests of what is shown of runs."""

import shutil

import pytest

from mechgap.measures.run import measure_run
from mechgap.measures.snapshot import Observer
from mechgap.training.presets import make_recipe
from mechgap.training.rows import Notes, Observation
from mechgap.training.store import Store
from untrained_runs import SMALL, untrained_run


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A run whose name would be markup if nobody escaped it, looked at twice on its way."""
    folder = tmp_path_factory.mktemp("runs") / "<b>bfs"
    measure_run(untrained_run(folder))
    recipe = make_recipe("bfs", overrides=SMALL)
    look = Observer(recipe)
    with Store.writing(folder, recipe, 1) as store:
        seen = [
            Observation(seed, step, "step", *look(store.network(seed)))
            for seed in range(3)
            for step in (10, 20)
        ]
        with store._db:
            store._save_notes(Notes([], seen))
    return folder


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no chromium on the PATH")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()
