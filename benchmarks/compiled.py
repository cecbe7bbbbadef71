"""Every program in every target: parameters, units, certificate, and how exact it is.

    python benchmarks/compiled.py [--graphs 256] [--only dfs dijkstra]

Verified on CLRS-30's official test and validation sets and on new graphs of 64 nodes, in float32,
and on the test set in float64. With `--only` the rows of other programs stay as they were measured
before, if they were; with `--only` and no name, a stopped run goes on.
"""

import argparse
from typing import Any

import jax
import numpy as np

from measuring import earlier, save
from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS, Target
from mechgap.compiler.verify import fresh_graphs, posed_batch, verify
from mechgap.errors import InvalidInput
from mechgap.programs.library import LIBRARY
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.official import official
from mechgap.tasks.specs import get_task

SIZES = (*range(1, 41), 48, 56, 64, 72, 80, 96, 112, 128)


def smallest_hidden_size(
    program: Program, target: Target, domain: Domain, batch: Batch, inside: int
) -> int:
    """The smallest network that is exact on a batch, with so many graphs inside."""
    for hidden in SIZES[:-1]:
        try:
            compiled = compile_program(program, target, domain, hidden_size=hidden)
        except InvalidInput:
            continue
        found = verify(compiled, batch)
        if found.exact and found.inside_certificate >= inside:
            return hidden
    return SIZES[-1]


def too_close(compiled: Compiled, batch: Batch) -> list[dict[str, float]]:
    """The races that put graphs outside: how far apart they are, and would have to be."""
    run, _ = compiled.interpreted(batch)
    races = compiled.certificate.closest(run, np.asarray(batch.lengths))
    found = [
        {"apart": float(apart[i]), "needs": float(np.broadcast_to(needs, apart.shape)[i])}
        for apart, needs in races
        for i in np.flatnonzero(apart < needs)
    ]
    return sorted(found, key=lambda race: race["apart"])


def in_float64(program: Program, target: Target, batch: Batch) -> dict[str, Any]:
    """The same in twice the precision."""
    with jax.enable_x64(True):
        domain = Domain.regular(program, 64, "float64")
        compiled = compile_program(program, target, domain)
        gap = compiled.certificate.value_gap(8) or domain.position_gap
        return {"value_gap_8_steps": gap, **_summary(verify(compiled, batch))}


def row(program: Program, target: Target, graphs: int) -> dict[str, Any]:
    found: dict[str, Any] = {"program": program.name, "target": target.name}
    domain = Domain.regular(program, 64)
    try:
        compiled = compile_program(program, target, domain)
    except InvalidInput as error:
        return {**found, "refused": str(error)}
    certificate = compiled.certificate
    found |= {
        "parameters_128": compiled.network.parameters,
        "state_units": len(compiled.hidden_units),
        "attention_units": len(compiled.attention_units),
        "errors_64_steps": certificate.errors(64),
    }
    # Of several phases the sharpest; where all selections are by position, these are apart.
    found["sharpness"] = max(certificate.weights.sharpness)
    for steps in (8, 64):
        found[f"value_gap_{steps}_steps"] = certificate.value_gap(steps) or domain.position_gap
    small = Domain.regular(program, 16)
    sets = {
        "test": (compiled, official(program.task, "test")),
        "validation": (
            compile_program(program, target, small),
            official(program.task, "validation"),
        ),
    }
    for name, (network, batch) in sets.items():
        found[name] = _summary(verify(network, posed_batch(program, batch)))
    test = posed_batch(program, official(program.task, "test"))
    found["too_close"] = too_close(compiled, test)
    inside = test.size - found["test"]["outside_certificate"]
    found["smallest_hidden_size"] = smallest_hidden_size(program, target, domain, test, inside)
    found["float64"] = in_float64(program, target, test)
    # Traces of three hints a node cost many times as much.
    fewer = graphs // 4 if get_task(program.task).hints_per_node > 1 else graphs
    found["new"] = _summary(verify(compiled, fresh_graphs(program, 64, fewer, 11)))
    return found


def _summary(checked: Any) -> dict[str, Any]:
    return {
        "graphs": checked.graphs,
        "outputs": min(checked.outputs.values()),
        "hints": min(checked.hints.values()),
        "attention": checked.attention,
        "outside_certificate": checked.outside_certificate,
        "missed_inside": checked.missed_graphs_inside,
        "missed_outside": checked.missed_graphs_outside,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=256)
    parser.add_argument("--only", nargs="*", choices=LIBRARY, default=list(LIBRARY))
    arguments = parser.parse_args()
    before = earlier("compiled").get("compiled", [])
    known = {(r["program"], r["target"]): r for r in before if r["program"] not in arguments.only}
    places = [(program, target) for program in LIBRARY for target in TARGETS]
    for place in places:
        if place not in known:
            known[place] = row(LIBRARY[place[0]], TARGETS[place[1]], arguments.graphs)
            print(known[place], flush=True)
            save("compiled", {"compiled": [known[p] for p in places if p in known]})


if __name__ == "__main__":
    main()
