"""Every program in every target: what it takes, what it guarantees, and whether it is exact."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.files import save_compiled
from mechgap.compiler.target import TARGETS, Target
from mechgap.compiler.verify import Verification, fresh_graphs, verify
from mechgap.errors import InvalidInput
from mechgap.programs.library import LIBRARY
from mechgap.programs.program import Program

SEED = 11
"""Of the graphs that programs are verified on."""


@dataclass(frozen=True)
class Attempt:
    """A program in a target: compiled, or the reason why not."""

    program: Program
    target: Target
    compiled: Compiled | None
    refused: str | None

    @property
    def file_name(self) -> str:
        """Where it is kept in a folder of all."""
        return f"{self.program.name}-{self.target.name}.safetensors"


def attempts(nodes: int, hidden_size: int) -> Iterator[Attempt]:
    """Every program in every target, for graphs of up to so many nodes."""
    for program in LIBRARY.values():
        for target in TARGETS.values():
            domain = Domain.regular(program, nodes)
            try:
                compiled = compile_program(program, target, domain, hidden_size=hidden_size)
            except InvalidInput as error:
                yield Attempt(program, target, None, str(error))
            else:
                yield Attempt(program, target, compiled, None)


def verified(attempt: Attempt, graphs: int) -> Verification:
    """A compiled program on new graphs of the size that it was compiled for."""
    assert attempt.compiled is not None
    nodes = attempt.compiled.certificate.domain.nodes
    return verify(attempt.compiled, fresh_graphs(attempt.program, nodes, graphs, SEED))


def save_all(folder: Path, nodes: int, hidden_size: int) -> list[Attempt]:
    """Every compiled program as a file of its own; refused ones have none."""
    kept = []
    for attempt in attempts(nodes, hidden_size):
        if not kept:  # the size is one that can be
            _make(folder)
        if attempt.compiled is not None:
            save_compiled(attempt.compiled, folder / attempt.file_name)
        kept.append(attempt)
    return kept


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make the folder '{folder}': {error}") from error
