"""The language: text, data and meaning are one."""

import json
import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechgap.lang
from changed_programs import search
from mechgap.lang import (
    Bool,
    GraphProgram,
    Pointer,
    edge,
    init,
    keep,
    maximum,
    minimum,
    other,
    self,
)
from mechgap.programs.data import program_data, program_of
from mechgap.programs.evaluation import given as given_inputs
from mechgap.programs.expressions import (
    Add,
    And,
    Constant,
    Equal,
    Name,
    Not,
    Or,
    Scale,
    Side,
    Subtract,
    Where,
    parse,
)
from mechgap.programs.interpreter import components, execution_batch, interpret
from mechgap.programs.library import LIBRARY, bfs
from mechgap.programs.meaning import start, take_step
from mechgap.tasks.sampling import sample
from random_programs import random_program

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
names = st.builds(Name, st.sampled_from(Side), st.sampled_from(["a", "visit", "idx", "x1"]))


def combined(inner):
    two = (inner, inner)
    return st.one_of(
        st.builds(Not, inner),
        st.builds(Scale, numbers, inner),
        *(st.builds(kind, *two) for kind in (Add, Subtract, And, Or, Equal)),
        st.builds(Where, inner, *two),
    )


expressions = st.recursive(st.one_of(names, st.builds(Constant, numbers)), combined, max_leaves=12)


@given(expressions)
def test_an_expression_is_read_from_its_text(expression):
    assert parse(str(expression)) == expression


@pytest.mark.parametrize(
    "text",
    ["", "visit", "other.visit and self.visit", "__import__('os').system('true')", "other.a.b",
     "self.a ** 2", "other.a * other.b", "equal(self.a)", "node.a", "self.a if self.b else 1",
     "lambda: 1", "minimum(self.a)", "1e999", "'text'", "True", "self.a + 1j", "(" * 500],
)  # fmt: skip
def test_other_text_is_refused_and_never_run(text):
    with pytest.raises(ValueError, match="is no expression of the language"):
        parse(text)


@pytest.mark.parametrize(
    "mistake",
    [lambda: other.v and self.v, lambda: not self.v, lambda: other.v or self.v,
     lambda: 1 if self.v else 0],
)  # fmt: skip
def test_flags_are_not_pythons_truth(mistake):
    with pytest.raises(ValueError, match=r"Combine flags with &, \| and ~"):
        mistake()


MISTAKES = {
    "self.v + (self.v == other.v)": "made of names such as self.visit, and of numbers; got False",
    "self.v & 'other.v'": "and of numbers; got 'other.v'",
    "self.v * other.v": "multiply by numbers only",
    "2 * float('nan') * self.v": "and of numbers; got nan",
    "minimum(None)": "and of numbers; got None",
    "Phase(other.idx)": "a phase selects by minimum(…) or maximum(…); got Name",
    "Phase(minimum(other.idx), mask=True)": "a mask is made of flags such as other.visit",
    "Phase(minimum(other.idx), mask=self.v == other.v)": "equal(…, …), not ==",
    "Phase(minimum(other.idx), otherwise=other)": "a node can keep, or attend to self",
    "Phase(minimum(other.idx), otherwise=3)": "where nobody passes the mask",
    "becomes(grey='yes')": "and of numbers; got 'yes'",
    "where(self.v, self.a, 'b')": "and of numbers; got 'b'",
}


def test_what_is_no_part_of_the_language_is_refused_with_what_is():
    """In a process of its own: tests check types before the language can."""
    program = (
        "from mechgap.lang import *\n"
        f"for text in {list(MISTAKES)!r}:\n"
        "    try: eval(text)\n"
        "    except ValueError as error: print(error)\n"
        "    else: print('nothing')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    said = done.stdout.splitlines()
    assert len(said) == len(MISTAKES), done.stderr
    for line, message in zip(said, MISTAKES.values(), strict=True):
        assert message in line


@pytest.mark.parametrize("program", LIBRARY.values(), ids=lambda p: p.name)
def test_a_program_goes_to_data_and_back(program):
    text = json.dumps(program_data(program))
    assert program_of(json.loads(text)) == program


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 0}, "of format 1; got 0"),
        ({"hidden": [{"name": "visit", "kind": "Bit", "classes": []}]}, "'Bit' is not a valid"),
        ({"hints": {"reach_h": "seen"}}, "no program: 'seen'"),
        ({"init": {"visit": "open('x')"}}, "is no expression"),
        ({"phases": [{"select": "other.idx"}]}, "a selection is minimum"),
        ({"steps": "long"}, "invalid literal"),
        ({"conclude": {"pi": {"maybe": []}}}, "is no conclusion"),
        ({"phases": 3}, "no program"),
    ],
)
def test_data_that_mean_no_program_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        program_of({**program_data(bfs), **change})
    with pytest.raises(ValueError, match="of format 1; got list"):
        program_of([])


@pytest.mark.parametrize("program", LIBRARY.values(), ids=lambda p: p.name)
def test_jax_and_numpy_mean_the_same(program):
    """States and senders of every phase, over a thousand graphs of two sizes."""
    with jax.enable_x64(True):
        for nodes, graphs in ((1, 8), (6, 1000)):
            batch = sample(program.task, jax.random.key(nodes), batch_size=graphs, nodes=nodes)
            inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
            run = interpret(program, inputs, batch.steps)
            senders, states = traced(program, batch.inputs, batch.steps)
            assert np.array_equal(senders, run.senders)
            for name, values in run.states.items():
                np.testing.assert_allclose(states[name], values[1:], atol=1e-12)


def traced(program, inputs, steps):
    """A run in JAX, jitted and scanned."""

    def run(inputs):
        known = given_inputs(program, inputs, jnp.float64)

        def step(state, _):
            taken = take_step(program, known, state, jnp)
            return taken.state, (jnp.stack([p.sender for p in taken.phases]), taken.state)

        return jax.lax.scan(step, start(program, known, jnp), length=steps)[1]

    senders, states = jax.jit(run)(dict(inputs))
    flat = np.asarray(senders).reshape(-1, *senders.shape[2:])
    return flat, components(program, {name: np.asarray(value) for name, value in states.items()})


pi = Pointer("pi")


def test_what_happens_where_nobody_passes():
    batch = sample("bfs", jax.random.key(0), batch_size=64, nodes=12).trim()
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    runs = {
        name: interpret(search(otherwise), inputs, batch.steps)
        for name, otherwise in (("keep", keep), ("self", self), ("pi", self.pi))
    }
    exact = interpret(bfs, inputs, batch.steps)
    parent = interpret(LIBRARY["bfs_parent"], inputs, batch.steps)
    assert np.array_equal(runs["keep"].senders, exact.senders)
    assert np.array_equal(runs["keep"].states["pi"], exact.states["pi"])
    # Following the parent is the other mechanism, and needs no levels for it.
    assert np.array_equal(runs["pi"].senders, parent.senders)
    assert np.array_equal(runs["pi"].states["pi"], exact.states["pi"])
    # A node that attends to itself and updates by it forgets its parent.
    assert np.array_equal(runs["self"].senders, exact.senders)
    assert not np.array_equal(runs["self"].states["pi"], exact.states["pi"])


def test_a_run_without_an_end_is_refused():
    on = Bool("on")
    toggle = GraphProgram(
        name="toggle", task="bfs", inputs={"idx": "pos"}, hidden=(on,), init={},
        select=minimum(other.idx), update=dict(on=~self.on), hints={"on_h": on},
        output={"on_o": on},
    )  # fmt: skip
    batch = sample("bfs", jax.random.key(0), batch_size=2, nodes=9)
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    with pytest.raises(ValueError, match=r"toggle still changes after 81 steps .* no fixpoint"):
        execution_batch(toggle, inputs)
    twice = execution_batch(replace(toggle, steps=3), inputs)
    assert np.asarray(twice.hints["on_h"])[:, 0, 0].tolist() == [0, 1, 0, 1]


def test_an_edge_input_may_have_any_name():
    """Also that of the input that tells who is whose neighbour."""
    program = GraphProgram(
        name="heavy", task="bellman_ford", inputs={"idx": "pos", "adj": "A"}, hidden=(pi,),
        init=dict(pi=init.idx), select=maximum(edge.adj), mask=~edge.loop,
        update=dict(pi=other.idx), hints={"pi_x": pi}, output={"pi_y": pi}, steps=1,
    )  # fmt: skip
    batch = sample("bellman_ford", jax.random.key(1), batch_size=8, nodes=7)
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    theirs = interpret(LIBRARY["strongest_neighbour"], inputs)
    assert np.array_equal(interpret(program, inputs).senders, theirs.senders)


def test_every_kind_of_component_becomes_a_hint():
    """Programs with phases have hints of their own; their traces are batches like any other."""
    program = replace(
        LIBRARY["dfs"],
        name="mine",
        hints={f"my_{name}": component for name, component in LIBRARY["dfs"].hints.items()},
        output={"parent": LIBRARY["dfs"].output["pi"]},
        unclaimed={},
    )
    clrs = sample("dfs", jax.random.key(2), batch_size=8, nodes=7).trim()
    own = execution_batch(program, {name: np.asarray(v) for name, v in clrs.inputs.items()})
    assert np.array_equal(own.outputs["parent"], clrs.outputs["pi"])
    for name in ("pi_h", "color", "s_prev", "s", "time"):
        theirs, ours = np.asarray(clrs.hints[name]), np.asarray(own.hints[f"my_{name}"])
        for graph, length in enumerate(np.asarray(clrs.lengths)):
            np.testing.assert_allclose(
                ours[:length, graph], theirs[:length, graph], atol=1e-6, err_msg=name
            )


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_programs_mean_the_same_in_text_data_numpy_and_jax(seed):
    program = random_program(np.random.default_rng(seed))
    scope = dict(vars(mechgap.lang))
    exec(str(program), scope)
    assert (
        scope[program.name] == program == program_of(json.loads(json.dumps(program_data(program))))
    )
    with jax.enable_x64(True):
        batch = sample(program.task, jax.random.key(seed), batch_size=16, nodes=6)
        inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
        run = interpret(program, inputs)
        steps = len(run.states["a"]) - 1
        senders, states = traced(program, batch.inputs, steps)
        assert np.array_equal(senders, run.senders)
        for name, values in run.states.items():
            np.testing.assert_allclose(states[name], values[1:], atol=1e-9)
