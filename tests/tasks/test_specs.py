import clrs
import pytest

from dm_clrs_peer import DM_CLRS_TASKS
from mechgap.tasks.specs import TASKS, get_task


@pytest.mark.parametrize("name", DM_CLRS_TASKS)
def test_specs_are_dm_clrs_own_in_its_order(name):
    ours = [(f.name, (f.stage.value, f.location.value, f.type.value)) for f in TASKS[name].features]
    assert ours == list(clrs.SPECS[name].items())


def test_variants_have_the_papers_hints():
    assert {f.name for f in TASKS["bfs_sequential"].hints} == {"reach_h", "pi_h"}
    assert {f.name for f in TASKS["dfs_simplified"].hints} == {"pi_h", "color"}


def test_unknown_task_names_the_nearest():
    with pytest.raises(
        ValueError, match=r"unknown task 'belman_ford'\. Did you mean 'bellman_ford'\?"
    ):
        get_task("belman_ford")
