"""Which graphs a recipe trains and tests on."""

import jax
import networkx as nx
import numpy as np

from mechgap.tasks.batch import Batch
from mechgap.tasks.official import official
from mechgap.training.population import Trainer, held_out
from mechgap.training.presets import make_recipe


def are_trees(batch: Batch) -> bool:
    return all(nx.is_tree(nx.from_numpy_array(A)) for A in np.asarray(batch.inputs["A"]))


def test_training_and_test_graphs_are_chosen_apart():
    validation, test = held_out(make_recipe("bfs", overrides={"train_graphs": "tree"}))
    assert are_trees(validation)
    same = map(np.array_equal, jax.tree.leaves(test), jax.tree.leaves(official("bfs", "test")))
    assert all(same)
    validation, test = held_out(make_recipe("bfs", overrides={"test_graphs": "tree"}))
    assert not are_trees(validation)
    assert are_trees(test)
    assert (test.size, test.nodes) == (32, 64)


def test_test_graphs_of_the_training_length():
    given = {"test_graphs": "tree", "length_generalize": False, "train_lengths": (8,)}
    _, test = held_out(make_recipe("bfs", overrides=given))
    assert are_trees(test)
    assert (test.size, test.nodes) == (64, 8)


def test_a_population_is_trained_on_other_graphs():
    small = {
        "hidden_size": 4,
        "train_lengths": (5,),
        "length_generalize": False,
        "train_graphs": "tree+cycle",
        "test_graphs": "grid",
    }
    trainer = Trainer(make_recipe("bfs", overrides=small))
    learners, loss = trainer.advance(trainer.start([0, 1]), 3)
    _, report = trainer.report(learners, loss, True)
    assert np.isfinite(report.loss).all()
    assert np.isfinite(report.test).all()
