"""Recipes: the paper's hyperparameters, presets, files, and every refusal."""

import json
import tomllib
from pathlib import Path

import pytest

from mechgap.errors import InvalidInput
from mechgap.training.presets import PRESETS, make_recipe, recipe_from, to_toml
from mechgap.training.recipe import Recipe

PAPER = {  # the settings table of the paper
    "train_lengths": [4, 7, 11, 13, 16],
    "random_pos": True,
    "enforce_permutations": True,
    "enforce_pred_as_input": True,
    "batch_size": 32,
    "train_steps": 10000,
    "eval_every": 50,
    "test_every": 500,
    "hidden_size": 128,
    "nb_heads": 1,
    "nb_msg_passing_steps": 1,
    "learning_rate": 0.0001,
    "grad_clip_max_norm": 1.0,
    "dropout_prob": 0.0,
    "hint_teacher_forcing": 0.0,
    "hint_mode": "encoded_decoded",
    "hint_repred_mode": "soft",
    "use_ln": True,
    "use_lstm": False,
    "encoder_init": "xavier_on_scalars",
    "processor_type": "gatv2",
    "freeze_processor": False,
    "simplify_decoders": False,
    "use_edge_info": False,
    "use_pre_att_bias": False,
    "length_generalize": True,
    "regularization": False,
    "regularization_weight": 0.0001,
}


def test_the_defaults_are_the_papers():
    assert PAPER.items() <= Recipe().data().items()


def test_every_preset_makes_a_recipe():
    for preset in PRESETS:
        recipe = make_recipe("bellman_ford", preset)
        assert PRESETS[preset].items() <= vars(recipe).items()
        assert recipe_from(json.loads(json.dumps(recipe.data()))) == recipe
    assert make_recipe("bfs", "ablation_both").network_config.pre_att_bias_nodes == 16


def test_a_recipe_survives_its_file(tmp_path: Path):
    recipe = make_recipe("bellman_ford", "ablation_both", overrides={"learning_rate": 3e-4})
    (tmp_path / "recipe.toml").write_text(to_toml(recipe))
    assert make_recipe("bellman_ford", file=tmp_path / "recipe.toml") == recipe
    assert set(tomllib.loads(to_toml(recipe))) == set(recipe.data())


def test_overrides_go_before_the_file_and_the_file_before_the_preset(tmp_path: Path):
    file = tmp_path / "mine.toml"
    file.write_text("hidden_size = 8\nbatch_size = 16\n")
    recipe = make_recipe("bfs", "minimal", file, {"batch_size": 4})
    assert (recipe.hidden_size, recipe.batch_size) == (8, 4)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"train_lengths": ()}, "at least one number of nodes, each at least 1; got \\[\\]"),
        ({"train_lengths": (4, 0)}, r"each at least 1; got \[4, 0\]"),
        ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
        ({"test_every": 120}, "test_every must be a multiple of eval_every; got 120 and 50"),
        ({"learning_rate": 0.0}, r"learning_rate must be above 0; got 0\.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be above 0; got nan"),
        ({"grad_clip_max_norm": -1.0}, "grad_clip_max_norm must not be negative"),
        ({"regularizer": "l3"}, "unknown regularizer 'l3'"),
        ({"train_graphs": "tre"}, "unknown kind of graphs 'tre'. Did you mean 'tree'"),
        ({"test_graphs": "tree+gird"}, "unknown kind of graphs 'gird'. Did you mean 'grid'"),
        ({"use_pre_att_bias": True}, "needs one training length and length_generalize = false"),
        ({"nb_heads": 3}, "nb_heads must divide hidden_size; got 3 and 128"),
        ({"use_lstm": True}, "use_lstm is not supported"),
        ({"hiden_size": 4}, "unknown hyperparameter 'hiden_size'.*hidden_size"),
        ({"hidden_size": "4"}, "hidden_size must be a whole number; got '4'"),
        ({"hidden_size": True}, "hidden_size must be a whole number; got True"),
        ({"use_ln": 1}, "use_ln must be true or false; got 1"),
        ({"learning_rate": "fast"}, "learning_rate must be a number; got 'fast'"),
        ({"hint_mode": 3}, "hint_mode must be text; got 3"),
        ({"train_lengths": [4.5]}, r"train_lengths must be a list of whole numbers; got \[4.5\]"),
    ],
)
def test_what_cannot_be_is_refused(values, message):
    with pytest.raises(InvalidInput, match=message):
        make_recipe("bfs", overrides=values)


def test_unknown_names_and_files_are_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"unknown preset 'minimla'.*minimal"):
        make_recipe("bfs", "minimla")
    with pytest.raises(InvalidInput, match="unknown task"):
        make_recipe("bsf")
    with pytest.raises(InvalidInput, match="there is no file"):
        make_recipe("bfs", file=tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("hidden_size = = 4")
    with pytest.raises(InvalidInput, match="cannot be read as TOML"):
        make_recipe("bfs", file=tmp_path / "bad.toml")


def test_recipes_from_before_there_were_other_graphs_can_be_read():
    old = {k: v for k, v in Recipe().data().items() if k not in {"train_graphs", "test_graphs"}}
    assert recipe_from(old) == Recipe()
    assert (Recipe().train_graphs, Recipe().test_graphs) == ("er", "er")


def test_differences_name_both_values():
    changed = make_recipe("bfs", overrides={"hidden_size": 4, "use_ln": False})
    assert Recipe().differences(changed) == ["hidden_size: 128 → 4", "use_ln: True → False"]


FILE = """
from mechgap.lang import Bool, GraphProgram, init, {extreme}, other, self

seen = Bool("seen")
mine = GraphProgram(
    name="mine", task="bfs", inputs={{"idx": "pos", "start": "s"}}, hidden=(seen,),
    init=dict(seen=init.start), select={extreme}(other.idx), mask=other.seen & ~self.seen,
    update=dict(seen=self.seen | other.seen), hints={{"seen_h": seen}}, output={{"seen_o": seen}},
)
"""


def test_a_recipe_keeps_the_program_as_data(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(extreme="maximum"))
    recipe = make_recipe(f"{path}:mine")
    path.unlink()
    assert recipe.task == "mine"
    again = recipe_from(recipe.data())
    assert again == recipe
    assert again.posed.hints[0].name == "seen_h"
    assert [p.name for p in again.mechanisms] == ["mine"]
    read = tomllib.loads(to_toml(recipe))
    assert recipe_from(read) == recipe
    with pytest.raises(InvalidInput, match="a recipe's program is damaged"):
        recipe_from({**recipe.data(), "program": "{"})
    with pytest.raises(InvalidInput, match="poses mine, and the task is bfs"):
        recipe_from({**recipe.data(), "task": "bfs"})


def test_another_program_of_the_same_name_is_another_recipe(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(extreme="maximum"))
    one = make_recipe(f"{path}:mine")
    path.write_text(FILE.format(extreme="minimum"))
    two = make_recipe(f"{path}:mine")
    assert one.posed != two.posed
    (difference,) = one.differences(two)
    assert difference.startswith("program's phases: ")
    assert "maximum(other.idx)" in difference
    assert "minimum(other.idx)" in difference


def test_programs_of_clrs_tasks_have_their_data():
    assert make_recipe("bfs_parent") == make_recipe("bfs")
    assert make_recipe("reachability").program
