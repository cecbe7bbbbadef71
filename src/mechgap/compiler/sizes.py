"""For how large graphs a program can be compiled, and why no larger."""

from collections.abc import Callable
from dataclasses import dataclass

from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS, Target
from mechgap.errors import InvalidInput
from mechgap.programs.library import LIBRARY
from mechgap.programs.program import Program

MOST = 10**6
"""Of nodes: larger graphs are not tried."""
_EXACT = 64
"""Up to so many nodes the largest is found exactly; then, up to one in so many."""


def compile_for(
    program: Program,
    target: Target,
    nodes: int,
    *,
    hidden_size: int = 128,
    dtype: str = "float32",
    simplify_decoders: bool = False,
) -> Compiled:
    """Compile for graphs of up to so many nodes: with any positions that are far enough apart, or,
    where that cannot be certified, with positions on a grid (see `Domain.large`).

    Raises:
        InvalidInput: neither can be; it says for how large graphs it could.
    """
    try:
        return _compile_for(program, target, nodes, hidden_size, dtype, simplify_decoders)
    except InvalidInput as refused:
        most = 0
        if nodes > 1 and not target.pre_attention_bias:
            most = largest(program, target, hidden_size, dtype, simplify_decoders).nodes
        if not most:
            raise
        raise InvalidInput(
            f"{refused}. The largest graphs that it can be certified for there have {most:,} nodes"
        ) from None


def _compile_for(
    program: Program,
    target: Target,
    nodes: int,
    hidden_size: int,
    dtype: str,
    simplify_decoders: bool,
) -> Compiled:
    try:
        domain = Domain.regular(program, nodes, dtype)
        return compile_program(program, target, domain, hidden_size=hidden_size,
                               simplify_decoders=simplify_decoders)  # fmt: skip
    except InvalidInput as refused:
        try:
            domain = Domain.large(program, nodes, dtype)
            return compile_program(program, target, domain, hidden_size=hidden_size,
                                   simplify_decoders=simplify_decoders)  # fmt: skip
        except InvalidInput:
            raise refused from None


@dataclass(frozen=True)
class Largest:
    """The largest graphs that a program is certified for in a target."""

    program: str
    target: str
    dtype: str
    nodes: int
    """0 where the target does not take the program at all."""
    why: str
    """What refuses larger ones."""
    value_gap: float | None
    """How far apart competing values must be there, for a chain of one; None without any."""


def largest(
    program: Program,
    target: Target,
    hidden_size: int = 128,
    dtype: str = "float32",
    simplify_decoders: bool = False,
) -> Largest:
    """Find the largest graphs that a program is certified for, by bisection.

    Raises:
        InvalidInput: there is no such dtype or hidden size at all.
    """
    Domain.regular(program, 1, dtype)
    if hidden_size < 1:
        raise InvalidInput(f"hidden_size must be at least 1; got {hidden_size}")
    found: Compiled | None = None
    refused = f"{MOST:,} nodes are the most that are tried"

    def fits(nodes: int) -> bool:
        nonlocal found, refused
        try:
            found = _compile_for(program, target, nodes, hidden_size, dtype, simplify_decoders)
        except InvalidInput as error:
            refused = str(error)
            return False
        return True

    if not fits(1):
        return Largest(program.name, target.name, dtype, 0, refused, None)
    fitting, beyond = 1, 2
    while fitting < MOST and fits(beyond):
        fitting, beyond = beyond, min(2 * beyond, MOST)
    while fitting < MOST and beyond - fitting > max(1, fitting // _EXACT):
        middle = (fitting + beyond) // 2
        fitting, beyond = (middle, beyond) if fits(middle) else (fitting, middle)
    assert found is not None
    gap = found.certificate.value_gap(1) or None
    return Largest(program.name, target.name, dtype, fitting, refused, gap)


def all_largest(
    hidden_size: int = 128,
    dtype: str = "float32",
    on_progress: Callable[[str, int, int], None] = lambda *_: None,
) -> list[Largest]:
    """Of every program of the library, in every target whose networks are not tied to one size."""
    found = list[Largest]()
    targets = [target for target in TARGETS.values() if not target.pre_attention_bias]
    for done, program in enumerate(LIBRARY.values()):
        found += [largest(program, target, hidden_size, dtype) for target in targets]
        on_progress(program.name, done + 1, len(LIBRARY))
    return found
