"""Every reason at once, by name."""

import pytest

from changed_programs import changed
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.programs.components import Bool, Pointer
from mechgap.programs.expressions import edge, init, other, self
from mechgap.programs.library import bellman_ford, bfs, pi, visit
from mechgap.programs.load import find_program
from mechgap.programs.phases import minimum
from mechgap.programs.validate import problems


def names(program):
    return [problem.name for problem in problems(program)]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"task": "bsf"}, "unknown-task"),
        ({"inputs": {"idx": "pos", "start": "source"}}, "unknown-input"),
        ({"inputs": {"idx": "pos", "start": "s", "visit": "s"}}, "name-clash"),
        ({"inputs": {"idx": "pos", "start": "s", "loop": "A"}}, "name-clash"),
        ({"inputs": {"start": "s"}}, "no-position"),
        ({"update": {"visit": self.visit | other.visit}}, "set-not-once"),
        ({"hidden": (visit, pi, visit)}, "name-clash"),
        ({"phases": ()}, "no-phase"),
        ({"steps": 0}, "wrong-steps"),
        ({"hints": {}}, "no-hint"),
        ({"hints": {"reach_h": visit, "pos": pi}}, "name-clash"),
        ({"update": {**bfs.phases[0].update, "dist": other.idx}}, "unknown-component"),
        ({"init": {"visit": other.start, "pi": init.idx}}, "wrong-side"),
        ({"init": {"visit": self.visit, "pi": init.idx}}, "wrong-side"),
        ({"mask": other.visited}, "unknown-name"),
        ({"mask": edge.weight & other.visit}, "unknown-name"),
        ({"select": minimum(other.index)}, "unknown-name"),
        ({"mask": other.idx}, "wrong-kind"),
        ({"mask": other.visit & other.idx}, "wrong-kind"),
        ({"update": {**bfs.phases[0].update, "visit": other.idx}}, "wrong-kind"),
        ({"hints": {"reach_h": pi, "pi_h": pi}}, "wrong-kind"),
        ({"output": {}}, "no-output"),
        ({"output": {"pi": Pointer("parent")}}, "unknown-component"),
    ],
)
def test_each_problem_has_a_name(change, name):
    assert name in names(changed(bfs, **change))


def test_all_problems_are_listed_at_once():
    broken = changed(
        bfs, mask=other.visited, init={"visit": other.start}, hints={"reach_h": pi, "pi_h": pi}
    )
    message = r"bfs cannot compile: \(1\) wrong-side: .*\(2\) unknown-name: .*wrong-kind: "
    with pytest.raises(ValueError, match=message):
        compile_program(broken, TARGETS["stock"], Domain())


def test_what_a_target_cannot_do_is_listed_too():
    grown = changed(
        bellman_ford,
        mask=(other.visit | init.start) & ~edge.loop,
        update={**bellman_ford.phases[0].update, "dist": other.dist + edge.weight + self.dist},
    )
    with pytest.raises(ValueError, match=r"edge-information-needed: .*mask-not-a-conjunction: "):
        compile_program(grown, TARGETS["stock"], Domain())


def test_an_update_that_cannot_be_kept_is_refused():
    copying = changed(bfs, mask=other.visit, update={**bfs.phases[0].update, "pi": other.pi})
    assert compile_program(copying, TARGETS["stock"], Domain())  # copying is kept by copying
    second = Bool("second")
    blinking = changed(
        bfs,
        hidden=(visit, pi, second),
        init={**bfs.init, "second": init.start},
        update={**bfs.phases[0].update, "second": self.visit & other.second},
    )
    with pytest.raises(ValueError, match=r"cannot-keep: 'second = "):
        compile_program(blinking, TARGETS["stock"], Domain())


FILE = """
from mechgap.lang import Bool, GraphProgram, init, maximum, other, self

seen = Bool("seen")
mine = GraphProgram(
    name="mine", task="bfs", inputs={"idx": "pos", "start": "s"}, hidden=(seen,),
    init=dict(seen=init.start), select=maximum(other.idx), mask=other.seen & ~self.seen,
    update=dict(seen=self.seen | other.seen), hints={"seen_h": seen}, output={"seen_o": seen},
)
"""


def test_a_program_in_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    assert find_program(f"{path}:mine").name == "mine"
    with pytest.raises(ValueError, match=r"unknown program in .* 'other'"):
        find_program(f"{path}:other")
    with pytest.raises(ValueError, match="there is no program file"):
        find_program(f"{tmp_path}/none.py:mine")
    path.write_text("x = (")
    with pytest.raises(ValueError, match=r"program file .* fails"):
        find_program(f"{path}:mine")
    with pytest.raises(ValueError, match=r"unknown program 'bsf'. Did you mean 'bfs'"):
        find_program("bsf")
