"""mechgap: graph algorithms compiled into networks, beside networks that learned them.

The public names, in the order of the story. They are imported when first used, so that
`import mechgap` and `mechgap --help` stay light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mechgap.calls import compile as compile
    from mechgap.calls import counterexamples as counterexamples
    from mechgap.calls import decompile as decompile
    from mechgap.calls import measure as measure
    from mechgap.calls import train as train
    from mechgap.compiler.compile import Compiled as Compiled
    from mechgap.compiler.compile import compile_program as compile_program
    from mechgap.compiler.domain import Domain as Domain
    from mechgap.compiler.target import TARGETS as TARGETS
    from mechgap.compiler.verify import verify as verify
    from mechgap.errors import InvalidInput as InvalidInput
    from mechgap.experiments.doctor import diagnose as diagnose
    from mechgap.experiments.gap import GapReport as GapReport
    from mechgap.experiments.gap import gap as gap
    from mechgap.measures.results import Results as Results
    from mechgap.network.config import NetworkConfig as NetworkConfig
    from mechgap.network.network import Network as Network
    from mechgap.network.trace import Trace as Trace
    from mechgap.network.trace import run as run
    from mechgap.programs.interpreter import interpret as interpret
    from mechgap.programs.library import LIBRARY as LIBRARY
    from mechgap.programs.program import GraphProgram as GraphProgram
    from mechgap.tasks.batch import Batch as Batch
    from mechgap.tasks.graphs import from_graphs as from_graphs
    from mechgap.tasks.official import official as official
    from mechgap.tasks.sampling import sample as sample
    from mechgap.tasks.scores import hint_scores as hint_scores
    from mechgap.tasks.scores import output_scores as output_scores
    from mechgap.tasks.specs import TASKS as TASKS
    from mechgap.training.loss import loss as loss
    from mechgap.training.run import Run as Run

__version__ = "0.2.0"

_HOME = {
    "InvalidInput": "errors",
    "TASKS": "tasks.specs",
    "Batch": "tasks.batch",
    "sample": "tasks.sampling",
    "official": "tasks.official",
    "from_graphs": "tasks.graphs",
    "output_scores": "tasks.scores",
    "hint_scores": "tasks.scores",
    "GraphProgram": "programs.program",
    "LIBRARY": "programs.library",
    "interpret": "programs.interpreter",
    "Domain": "compiler.domain",
    "TARGETS": "compiler.target",
    "Compiled": "compiler.compile",
    "compile_program": "compiler.compile",
    "verify": "compiler.verify",
    "NetworkConfig": "network.config",
    "Network": "network.network",
    "Trace": "network.trace",
    "run": "network.trace",
    "loss": "training.loss",
    "compile": "calls",
    "train": "calls",
    "Run": "training.run",
    "measure": "calls",
    "counterexamples": "calls",
    "decompile": "calls",
    "Results": "measures.results",
    "gap": "experiments.gap",
    "GapReport": "experiments.gap",
    "diagnose": "experiments.doctor",
}

__all__ = ["__version__", *_HOME]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mechgap' has no attribute '{name}'")
    return getattr(import_module(f"mechgap.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
