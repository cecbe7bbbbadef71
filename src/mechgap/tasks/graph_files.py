"""Graphs from files: GraphML, GML, lists of edges, and NumPy matrices.

| ending | what is read |
|---|---|
| `.graphml`, `.gml` | NetworkX's, the edge attribute `weight` included; nodes in the file's order |
| `.edgelist`, `.txt`, `.csv` | a line for each edge: two nodes, and a weight if there is one |
| `.npz` | matrices ``[nodes, nodes]`` and stacks of them ``[graphs, nodes, nodes]`` |

Nodes of a list of edges are in numerical order if they are whole numbers, otherwise in the order in
which they come. An edge of the list goes both ways, unless the task is one of directed graphs.
"""

import ast
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import networkx
import numpy as np
from jaxtyping import Float

from mechgap.errors import InvalidInput, unknown
from mechgap.tasks.batch import Batch
from mechgap.tasks.graphs import from_graphs
from mechgap.tasks.memory import check_memory, trace_bytes
from mechgap.tasks.specs import Task, get_task

Matrix = Float[np.ndarray, "_ _"]
"""A graph; those of one file may have different sizes."""

SOURCES = 32
"""From how many nodes a single graph is searched, if nobody says otherwise."""
_IN_MEMORY = 20
"""How many times as large as its file a graph is that NetworkX has read, about."""
_COPIES = 4
"""How many copies of a matrix, in double precision, are there while a batch is made."""
_SMALLER = "Take a smaller graph"
_HEADER = {"source", "target", "from", "to", "src", "dst", "u", "v", "node1", "node2", "weight"}


def batch_from_files(
    task: Task | str,
    files: Sequence[Path],
    *,
    count: int | None = None,
    sources: Sequence[int] | None = None,
) -> Batch:
    """A batch of all graphs in some files, which must have the same number of nodes.

    A single graph is searched from `count` different nodes (from all if it has fewer), several from
    one node each, chosen by chance but always the same; `sources` says which nodes instead. Of
    several graphs, `count` takes the first.
    """
    task = get_task(task)
    if not files:
        raise InvalidInput("there must be at least one file of graphs; got none")
    if count is not None and count < 1:
        raise InvalidInput(f"count must be at least 1; got {count}")
    graphs = [matrix for file in files for matrix in read_graphs(file, task)][:count]
    where = ", ".join(f"'{file}'" for file in files)
    if not any(matrix.any() for matrix in graphs):
        raise InvalidInput(f"{where}: a graph needs an edge to be searched along; there is none")
    chosen = _sources(task, graphs, count or SOURCES) if sources is None else list(sources)
    if len(graphs) == 1:
        nodes = len(graphs[0])
        check_memory(
            4 * _COPIES * len(chosen) * nodes**2 + 2 * trace_bytes(task, len(chosen), nodes),
            f"{where}, searched from {len(chosen)} nodes,",
            "Ask for fewer (--count)",
        )
        graphs *= len(chosen)
    try:
        return from_graphs(task, graphs, chosen)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error


def _sources(task: Task, graphs: Sequence[Matrix], most: int) -> list[int]:
    """Where to search from: in a single graph from several nodes, in several from one each."""
    rng = np.random.default_rng(0)
    if len(graphs) == 1 and task.has_source:
        return rng.permutation(len(graphs[0]))[:most].tolist()
    return [int(rng.integers(len(matrix))) for matrix in graphs]


def read_graphs(path: Path, task: Task | str) -> list[Matrix]:
    """The matrices of a file's graphs; entry [i, j] is the edge from i to j, 0 for none."""
    task = get_task(task)
    if not path.is_file():
        raise InvalidInput(f"there is no file '{path}'")
    ending = path.suffix.lower()
    if ending not in READERS:
        raise unknown(f"kind of file of graphs, by the ending of '{path}':", ending, READERS)
    try:
        found = READERS[ending](path, task)
    except InvalidInput as error:
        raise InvalidInput(f"'{path}': {error}") from error
    except MemoryError as error:
        raise InvalidInput(f"'{path}' does not fit into memory. {_SMALLER}") from error
    except Exception as error:  # a parser of others may raise anything on a broken file
        raise InvalidInput(
            f"'{path}' cannot be read as {ending}: {error or type(error).__name__}"
        ) from error
    if not found:
        raise InvalidInput(f"'{path}' holds no graphs")
    return found


def _read_graphml(path: Path, task: Task) -> list[Matrix]:
    _check_text(path)
    return [_matrix(graph, task) for graph in networkx.GraphMLReader(node_type=str)(path=path)]


def _read_gml(path: Path, task: Task) -> list[Matrix]:
    _check_text(path)
    return [_matrix(networkx.read_gml(path, label="id"), task)]


def _read_edges(path: Path, task: Task) -> list[Matrix]:
    _check_text(path)
    graph = networkx.DiGraph() if task.directed else networkx.Graph()
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            text = line.partition("#")[0].strip()
            if not text or (number == 1 and _is_header(text)):
                continue
            try:
                one, other, weight = _edge(text)
            except (ValueError, SyntaxError) as error:
                raise InvalidInput(
                    "a line must have two nodes, and a number if there are weights; got "
                    f"'{text[:80]}' in line {number}"
                ) from error
            if graph.has_edge(one, other) and graph.edges[one, other]["weight"] != weight:
                raise InvalidInput(
                    f"an edge must have one weight; that of {one} and {other} has another in line "
                    f"{number} than before"
                )
            graph.add_edge(one, other, weight=weight)
    names = list(graph.nodes)
    if all(re.fullmatch(r"\d+", name) for name in names):
        names.sort(key=int)
    return [_matrix(graph, task, names)]


def _is_header(text: str) -> bool:
    return {word.lower() for word in _words(text)} <= _HEADER


def _words(text: str) -> list[str]:
    """The parts of a line between commas, semicolons or tabs, whichever it has, or blanks."""
    between = next((mark for mark in ",;\t" if mark in text), None)
    return [word.strip() for word in text.split(between)]


def _edge(text: str) -> tuple[str, str, float | None]:
    """Two nodes and their weight; NetworkX writes what it knows of an edge as a dictionary."""
    ends, brace, about = text.partition("{")
    words = _words(ends.strip())
    if not all(words):
        raise ValueError(text)
    if brace:
        one, other = words
        return one, other, ast.literal_eval(brace + about).get("weight")
    if len(words) == 2:
        return words[0], words[1], None
    one, other, weight = words
    return one, other, float(weight)


def _read_matrices(path: Path, task: Task) -> list[Matrix]:
    with zipfile.ZipFile(path) as packed:
        for name in packed.namelist():
            with packed.open(name) as file:
                _check_array(name.removesuffix(".npy"), file, task)
    with np.load(path, allow_pickle=False) as stored:
        arrays = [stored[name].astype(np.float64) for name in stored.files]
    return [matrix for array in arrays for matrix in (array if array.ndim == 3 else [array])]


def _check_array(name: str, file: Any, task: Task) -> None:
    """Refuse arrays that are no matrices, or too large, by what is written before their values."""
    version = np.lib.format.read_magic(file)
    header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = header[version](file)
    if dtype.kind not in "biuf":
        raise InvalidInput(f"a graph's matrix must hold numbers; '{name}' holds {dtype}")
    if len(shape) not in (2, 3) or shape[-1] != shape[-2]:
        raise InvalidInput(
            "an array must be a square matrix, or a stack of them, [graphs, nodes, nodes]; "
            f"'{name}' is {' x '.join(map(str, shape)) or 'a single number'}"
        )
    if task.weighted and dtype.kind == "b":
        raise InvalidInput(f"{task.name} needs weights; '{name}' only says which edges there are")
    check_memory(8 * _COPIES * int(np.prod(shape, dtype=object)), f"'{name}'", _SMALLER)


READERS: Mapping[str, Callable[[Path, Task], list[Matrix]]] = MappingProxyType(
    {
        ".graphml": _read_graphml,
        ".gml": _read_gml,
        ".edgelist": _read_edges,
        ".txt": _read_edges,
        ".csv": _read_edges,
        ".npz": _read_matrices,
    }
)
"""What reads a file, by its ending."""


def _check_text(path: Path) -> None:
    check_memory(_IN_MEMORY * path.stat().st_size, "the graph of this file", _SMALLER)


def _matrix(graph: Any, task: Task, names: Sequence[str] | None = None) -> Matrix:
    """A NetworkX graph as a matrix, with its nodes in their own order or a given one."""
    names = list(graph.nodes) if names is None else names
    if not names:
        raise InvalidInput("a graph needs at least 1 node; got 0")
    simple = networkx.DiGraph(graph) if graph.is_directed() else networkx.Graph(graph)
    if simple.number_of_edges() < graph.number_of_edges():
        raise InvalidInput("two nodes may be joined by one edge only; here some have several")
    if task.weighted:
        for one, other, weight in simple.edges(data="weight"):
            _check_weight(task, one, other, weight)
    check_memory(8 * _COPIES * len(names) ** 2, f"a graph of {len(names):,} nodes", _SMALLER)
    weight = "weight" if task.weighted else None
    matrix = networkx.to_numpy_array(simple, nodelist=names, weight=weight, dtype=np.dtype(float))  # pyright: ignore[reportArgumentType]
    if not task.directed and not np.array_equal(matrix, matrix.T, equal_nan=True):
        raise InvalidInput(
            f"{task.name} needs an undirected graph; this one is directed, and some edges go one "
            "way only. Write graph.to_undirected() to a file and take that"
        )
    return matrix


def _check_weight(task: Task, one: Any, other: Any, weight: Any) -> None:
    edge = f"the edge of {one} and {other}"
    if weight is None:
        raise InvalidInput(
            f"{task.name} needs the weight of every edge; {edge} has none. Give edges the "
            "attribute 'weight', or lines a third column"
        )
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise InvalidInput(f"a weight must be a number; that of {edge} is {weight!r}")
    if weight == 0:
        raise InvalidInput(f"a weight must be above 0, which is for no edge; that of {edge} is 0")
