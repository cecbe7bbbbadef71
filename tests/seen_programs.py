"""What programs do on some graphs, as the decompiler sees it."""

import jax
import numpy as np

from mechgap.compiler.verify import posed_batch
from mechgap.decompiler.scenes import scenes_of
from mechgap.decompiler.words import words_of
from mechgap.programs.interpreter import interpret
from mechgap.programs.posing import posed
from mechgap.tasks.sampling import sample

P = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


def graphs_of(program, key, graphs, nodes):
    """Graphs with the program's own trace."""
    clrs = sample(
        program.task, jax.random.key(key), batch_size=graphs, nodes=nodes, p=P, random_pos=False
    )
    return posed_batch(program, clrs.trim()).trim()


def seen(program, key, graphs, nodes):
    """Scenes of a program's run, and whom it attends to in every phase."""
    batch = graphs_of(program, key, graphs, nodes)
    scenes = scenes_of(words_of(posed(program)), batch, program.sees_all)
    run = interpret(program, jax.tree.map(np.asarray, batch.inputs), batch.steps)
    by_phase = run.senders.reshape(batch.steps, program.selections, batch.size, batch.nodes)
    return scenes, by_phase[scenes.step, :, scenes.graph]
