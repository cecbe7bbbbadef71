"""Write the measured numbers from `benchmarks/results/` and `results/` into README and docs.

    python scripts/update_tables.py

Nothing in these tables is typed by hand; a test checks that pages and results agree.
"""

import json
from functools import partial
from pathlib import Path
from statistics import mean

import teaching_tables as teaching
from mechgap.experiments.replication.parts import made_of
from shown import PROJECT, markdown, percent, replication, results

PROGRAMS = PROJECT / "docs" / "programs.md"
BEYOND = PROJECT / "docs" / "beyond.md"
LANDSCAPE = PROJECT / "docs" / "landscape.md"
TEACHING = PROJECT / "docs" / "teaching.md"
DECOMPILING = PROJECT / "docs" / "decompiling.md"
TRAINING = PROJECT / "docs" / "training.md"
MEASURES = PROJECT / "docs" / "measures.md"
LARGE = PROJECT / "docs" / "large.md"
NEWCOMER = PROJECT / "docs" / "newcomer.md"
README = PROJECT / "README.md"
COMING_FROM = PROJECT / "docs" / "coming-from.md"


def against_dm_clrs() -> str:
    """Speed and size beside dm-clrs."""
    rows = ["| | dm-clrs | mechgap | |", "|---|---|---|---|"]
    sampling = results("sampling")
    for task, numbers in sampling["tasks"].items():
        rows.append(
            f"| a training batch of {sampling['batch_size']} {task} graphs, n = {sampling['nodes']}"
            f" | {numbers['dm_clrs_ms']:.1f} ms | {numbers['mechgap_ms']:.2f} ms"
            f" | {numbers['ratio']:.0f} × |"
        )
    startup = results("startup")
    theirs, ours = startup["dm_clrs_megabytes"], startup["core_megabytes"]
    rows.append(f"| installed size | {theirs:,} MB | {ours:,} MB | {theirs / ours:.1f} × |")
    rows.append(f"| `mechgap --help` | | {startup['help_seconds']:.2f} s | |")
    return "\n".join(rows) + "\n"


def compiled_programs() -> str:
    """Every program in every target that takes it."""
    rows = [
        "| program | target | parameters (hidden 128) | smallest hidden | gap | test | validation"
        " | new graphs | gap, float64 | test, float64 |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    refused: dict[tuple[str, str], list[str]] = {}
    stopped: list[str] = []
    for row in results("compiled")["compiled"]:
        if "refused" in row:
            reasons = row["refused"].removeprefix(f"{row['program']} cannot compile: ")
            said = reasons.replace(f" in {row['target']} ", " there ")
            refused.setdefault((row["program"], said), []).append(f"`{row['target']}`")
            continue
        test, validation, new, fine = (
            f"{min(c['outputs'], c['hints']):.4f} ({c['outside_certificate']} of {c['graphs']})"
            for c in (row[name] for name in ("test", "validation", "new", "float64"))
        )
        rows.append(
            f"| {row['program']} | {row['target']} | {row['parameters_128']:,}"
            f" | {row['smallest_hidden_size']} | {row['value_gap_8_steps']:.1e} | {test}"
            f" | {validation} | {new} | {row['float64']['value_gap_8_steps']:.1e} | {fine} |"
        )
        if row["too_close"]:
            apart, needs = (row["too_close"][0][name] for name in ("apart", "needs"))
            stopped.append(
                f"- `{row['program']}` in `{row['target']}`: {len(row['too_close'])}, the closest "
                f"{apart:.1e} apart where {needs:.1e} is needed"
            )
    reasons = [
        f"- `{program}` in {', '.join(targets)}: {said}"
        for (program, said), targets in refused.items()
    ]
    close = "Test graphs outside in float32, because two values that compete are too close:"
    return "\n".join([*rows, "", close, "", *stopped, "", "Refused:", "", *reasons]) + "\n"


def attacked() -> str:
    """How the certificates stood up to the attack."""
    rows = [
        "| program | target | graphs | inside the certificate | missed inside | missed outside |",
        "|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {row['program']} | {row['target']} | {row['graphs']:,} | {row['inside']:,}"
        f" | {row['missed_inside']} | {row['missed_outside']} |"
        for row in results("attack")["compiled"]
        if "refused" not in row
    ]
    drawn = results("attack_programs")
    pairs = sum(drawn["pairs"].values())
    random = (
        f"And random programs of the language (`attack.py --programs`): {drawn['programs']:,} were "
        f"drawn, {drawn['compiled']:,} compile for some target, {pairs:,} pairs "
        f"in all; of {drawn['graphs']:,} graphs {drawn['inside']:,} lie inside a certificate, and "
        f"{drawn['missed_inside']} of these are missed."
    )
    return "\n".join([*rows, "", random]) + "\n"


def attacked_at_size() -> str:
    """How certificates stood up to an attack on large graphs."""
    rows = results("attack_large")["rows"]
    lines = [
        "| program | target | families | graphs | inside | missed inside | missed outside |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["program"] for row in rows):
        of_it = [row for row in rows if row["program"] == name]
        counts = [
            f"{sum(row[key] for row in of_it):,}"
            for key in ("graphs", "inside", "missed_inside", "missed_outside")
        ]
        families = ", ".join(row["family"] for row in of_it)
        lines.append(f"| {name} | {of_it[0]['target']} | {families} | {' | '.join(counts)} |")
    return "\n".join(lines) + "\n"


def training() -> str:
    """Training speed beside dm-clrs."""
    rows = [
        "| seed-steps per second | dm-clrs | mechgap | |",
        "|---|---|---|---|",
    ]
    rows += [
        f"| {row['task']}, hidden size {row['hidden_size']} | {row['dm_clrs']:.1f}"
        f" | {row['mechgap']:,.0f} | {row['ratio']:.0f} × |"
        for row in results("training")["settings"]
    ]
    return "\n".join(rows) + "\n"


def compiling() -> str:
    """How long compiling takes, and running what was compiled beside what was learned."""
    rows = [
        "| program | target | compile, imports included | run, compiled | run, learned |",
        "|---|---|---|---|---|",
    ]
    rows += [
        f"| {row['program']} | {row['target']} | {row['compile_seconds']:.2f} s"
        f" | {row['run_compiled_ms']:.0f} ms | {row['run_learned_ms']:.0f} ms |"
        for row in results("compiling")["compiled"]
    ]
    return "\n".join(rows) + "\n"


def main_job() -> str:
    """What the README's first command says, and how long it takes."""
    found = results("gap")["bfs"]
    return (
        f"> {found['answer']}\n\nIt took {found['seconds'] / 60:.1f} minutes on two cores, from an "
        f"empty cache ({found['seeds']} seeds, {found['steps']:,} steps).\n"
    )


def gap_of_all() -> str:
    """The main job on every task and on programs of one's own."""
    rows = [
        "| | compiled, exact inside | accuracy | top-1 agreement on updated nodes | by chance"
        " | misplaced there | accuracy, hardened | tv, all nodes | seeds × steps | tested on"
        " | wall time |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, found in results("gap").items():
        if name == "machine":
            continue
        shares = ("accuracy", "agreement", "chance", "misplaced", "hardened", "tv")
        verified = found["verified"]
        inside = f"{verified['inside_certificate']} of {verified['graphs']}"
        cells = [inside if verified["verdict"] == "exact" else verified["verdict"]]
        cells += [f"{100 * found[share]:.1f} %" for share in shares]
        graphs = f"{found['graphs']['count']} graphs of {found['graphs']['nodes']} nodes"
        size = f"{found['seeds']} × {found['steps']:,}"
        minutes, seconds = divmod(found["seconds"], 60)
        cells += [size, graphs, f"{minutes} min {seconds:02d} s"]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def landscape() -> str:
    """How long a surface takes, beside dm-clrs's network on the same points."""
    found = results("landscape")
    return (
        f"A surface of {found['points']:,} points of BFS takes {found['mechgap_seconds']:.0f} s on "
        f"two cores; dm-clrs's network needs {found['dm_clrs_seconds']:.0f} s for the same losses "
        f"({found['ratio']:.1f} ×, `benchmarks/landscape.py`).\n"
    )


def gaps() -> str:
    """How accurate some populations are, and how near to the compiled or taught mechanism."""
    shown = {
        "bfs": "bfs",
        "bfs, taught to attend as bfs_parent": "bfs_supervised_parent",
        "bellman_ford": "bellman_ford",
        "dfs": "dfs",
        "dfs, taught dfs_parent's attention and state": "dfs_windows_taught_long",
    }
    rows = [
        "| learned | output accuracy | graph accuracy | top-1 agreement on updated nodes "
        "| by chance | misplaced there | accuracy, hardened | tv, all nodes | made of "
        "| seeds × steps |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for label, name in shown.items():
        kept = json.loads((PROJECT / "results" / f"{name}.json").read_text())
        measures, recipe = kept["measures"], kept["recipe"]
        seeds = measures["seeds"]
        reference = recipe["supervised_mechanism"] or measures["reference"]
        gap = [row["gaps"].get(reference, {}) for row in seeds]
        chance = measures["baselines"]["uniform"]["gaps"].get(reference, {})
        cells = (
            percent([row["accuracy"] for row in seeds]),
            percent([row["graph_accuracy"] for row in seeds]),
            percent([g.get("agreement") for g in gap]),
            percent([chance.get("agreement")]),
            percent([g.get("misplaced") for g in gap]),
            percent([row["causal"] and row["causal"]["tempered"]["hardened"] for row in seeds]),
            percent([g.get("tv") for g in gap]),
            made_of([g["parts"] for g in gap if "parts" in g]),
        )
        rows.append(f"| {label} | {' | '.join(cells)} | {len(seeds)} × {recipe['train_steps']:,} |")
    return "\n".join(rows) + "\n"


def decompiled() -> str:
    """What was found about the network in `examples/`: its rules, and what forcing them shows."""
    found = json.loads((PROJECT / "results" / "decompiled" / "dfs_learned.json").read_text())
    rows = ["| message-passing step | rule | agrees, held out | test |", "|---" * 4 + "|"]
    for k, phase in enumerate(found["phases"]):
        held_out, test = (f"{phase['agreement'][which]:.1%}" for which in ("held out", "test"))
        rule = phase["rule"].replace("|", "\\|")
        rows.append(f"| {k} | `{rule}` | {held_out} | {test} |")
    columns = ["own", "hardened", "rule", "soft", "uniform", "floor"]
    known = list(found["forced"]["test"]["mechanisms"])
    rows += ["", f"| outputs right | {' | '.join(columns + known)} |"]
    rows.append("|---" * (1 + len(columns) + len(known)) + "|")
    for which, forced in found["forced"].items():
        values = [forced[c] for c in columns] + [forced["mechanisms"][name] for name in known]
        label = f"{which}: {forced['graphs']} graphs of {forced['nodes']} nodes"
        rows.append(f"| {label} | {' | '.join(f'{value:.1%}' for value in values)} |")
    return "\n".join([*rows, "", f"> {found['verdict']}", ""])


def decompiled_population() -> str:
    """What the networks of the taught population run."""
    path = PROJECT / "results" / "decompiled" / "dfs_windows_taught_long.json"
    found = json.loads(path.read_text())
    rows = [
        "| seed | verdict | test outputs: own | made to attend so | the program by itself |",
        "|---" * 5 + "|",
    ]
    for seed, told in found["seeds"].items():
        test = told["forced"]["test"]
        shares = (test["own"], test["rule"], told["answers"]["test"])
        rows.append(f"| {seed} | {told['in_short']} | {' | '.join(f'{x:.1%}' for x in shares)} |")
    return "\n".join([*rows, ""])


def two_stories() -> str:
    """What the seeds of two populations run, and what forcing them shows: means over seeds."""
    columns = {"own": "own", "rule": "rule", "hardened": "hardened", "soft": "soft form",
               "uniform": "uniform", "floor": "floor"}  # fmt: skip
    rows = [
        "| | seeds | verdict | rule agrees with the largest entry | soft form explains | "
        + " | ".join(f"output accuracy: {said}" for said in columns.values())
        + " | α\\* |",
        "|---" * (6 + len(columns)) + "|",
    ]
    for name, mechanism in (("bfs", "bfs_parent"), ("bellman_ford", "bellman_ford")):
        path = PROJECT / "results" / "decompiled" / f"{name}.json"
        seeds = list(json.loads(path.read_text())["seeds"].values())
        said = [seed["in_short"] for seed in seeds]
        verdicts = "; ".join(f"{said.count(one)} {one}" for one in dict.fromkeys(said))
        phases, forced = [s["phases"][0] for s in seeds], [s["forced"]["test"] for s in seeds]
        shares = [
            [each["agreement"]["test"] for each in phases],
            [each["soft_explains"]["test"] for each in phases],
            *([each[column] for each in forced] for column in columns),
            [each["mechanisms"][mechanism] for each in forced],
        ]
        cells = " | ".join(f"{mean(each):.1%}" for each in shares)
        rows.append(f"| {name} | {len(seeds)} | {verdicts} | {cells} |")
    return "\n".join([*rows, ""])


def largest() -> str:
    """For how large graphs programs are certified."""
    rows = ["| program | target | float32 | told apart there | float64 |", "|---" * 5 + "|"]
    found = results("large")["largest"]
    fine = {(each["program"], each["target"]): each for each in found if each["dtype"] == "float64"}
    for each in found:
        if each["dtype"] == "float64" or not each["nodes"]:
            continue
        apart = "-" if each["value_gap"] is None else f"{each['value_gap']:.1e}"
        double = fine[each["program"], each["target"]]["nodes"]
        rows.append(
            f"| {each['program']} | {each['target']} | {each['nodes']:,} | {apart} | {double:,} |"
        )
    return "\n".join([*rows, ""])


def at_size() -> str:
    """Compiled programs on large graphs."""
    rows = [
        "| program | target | graphs | longest run | outputs | whole graphs"
        " | inside the certificate | missed inside | missed outside |",
        "|---" * 9 + "|",
    ]
    rows += [
        f"| {row['program']} | {row['target']} | {row['graphs']}, {row['nodes']:,} nodes"
        f" | {row['longest']:,} steps | {row['accuracy']:.4%} | {row['graph_accuracy']:.1%}"
        f" | {row['inside']} of {row['count']} | {row['missed_inside']}"
        f" | {row['missed_outside']} |"
        for row in results("at_size")["rows"]
    ]
    return "\n".join([*rows, ""])


def on_lists() -> str:
    """One graph's whole run on lists, on matrices and in PyTorch Geometric's layer."""
    found = results("large")
    rows = ["| program | graph | steps | on lists | matrices | PyTorch Geometric's layers |",
            "|---" * 6 + "|"]  # fmt: skip
    rows += [
        f"| {row['program']} | {row['graphs']}, {row['nodes']:,} nodes | {row['steps']}"
        f" | {1e3 * row['lists_seconds']:.0f} ms | {row['matrices_over_lists']:.0f} × as long"
        f" | {row['geometric_over_lists']:.1f} × as long |"
        for row in found["forward"]
    ]
    peers = found["peers"]
    versions = f"PyTorch Geometric {peers['torch_geometric']}, PyTorch {peers['torch']}."
    return "\n".join([*rows, "", versions, ""])


def to_the_end() -> str:
    """Runs over large random graphs, beside SciPy."""
    found = results("large")
    rows = ["| program | edges | nodes | steps | all nodes right | seconds | memory | SciPy |",
            "|---" * 8 + "|"]  # fmt: skip
    rows += [
        f"| {row['program']} | {row['edges']:,} | {row['nodes']:,} | {row['steps']}"
        f" | {'yes' if row['exact'] else 'no'} | {row['seconds']:.2f}"
        f" | {row['gigabytes_at_most']:.1f} GB | {row['over_scipy']:.0f} × as fast |"
        for row in found["edges"]
    ]
    slopes = ", ".join(f"{found[f'slope_{name}']:.2f} ({name})" for name in ("bfs", "reachability"))
    return "\n".join(
        [*rows, "", f"A step's time goes with the edges to the power of {slopes}.", ""]
    )


def on_many_machines() -> str:
    """What a billion edges would take, by the measured rates."""
    edges, machines, per_node, line = 1e9, 16, 10, 1.25e9
    found = results("large")
    rows = {row["edges"]: row for row in found["edges"] if row["program"] == "bfs"}
    small, large = rows[min(rows)], rows[max(rows)]
    step = edges * 1e-9 * large["nanoseconds_per_edge_and_step"] / machines
    more = large["gigabytes_at_most"] - small["gigabytes_at_most"]
    memory = more / (large["edges"] - small["edges"]) * edges / machines
    nodes = edges / per_node
    state, slim = (4 * units * nodes for units in (found["hidden_size"], 3))
    lines = [
        f"- computing: {large['nanoseconds_per_edge_and_step']:.0f} ns an edge and step on two "
        f"cores, so {step:.0f} s a step on each of {machines} such machines;",
        f"- memory: {1e9 * more / (large['edges'] - small['edges']):.0f} bytes an edge, so "
        f"{memory:.0f} GB on each;",
        f"- exchange: {state / 1e9:.0f} GB of hidden state a step to each at hidden size "
        f"{found['hidden_size']}, {state / line:.0f} s at 10 Gbit/s; {slim / 1e9:.1f} GB and "
        f"{slim / line:.0f} s with the three units that breadth-first search needs.",
    ]
    return "\n".join([*lines, ""])


def newcomer() -> str:
    """How long a newcomer takes."""
    found = results("newcomer")
    steps = {"install": "`pip install .`", "doctor": "`mechgap doctor`",
             "compile": "`mechgap compile`", "verify": "`mechgap verify`", "gap": "`mechgap gap`",
             "decompile": "`mechgap decompile`", "report": "`mechgap report`"}  # fmt: skip
    rows = [[said, f"{found['seconds'][name]:.0f} s"] for name, said in steps.items()]
    total = sum(found["seconds"].values())
    cores = found["machine"]["cores"]
    rows.append([f"all, with clone and environment, on {cores} cores", f"{total / 60:.1f} min"])
    return markdown(["step", "takes"], rows)


def round_trips() -> str:
    """How often a hidden program comes back, and how often one is claimed that is not there."""

    def text(number: float | None, unit: str) -> str:
        return "-" if number is None else f"{number:.1f} s" if unit == "s" else f"{number:.1%}"

    rows = []
    for share in results("decompile")["shares"]:
        unit = "s" if "seconds" in share["what"] else "%"
        sign = "" if share["bar"] is None else "at most " if share["at_most"] else "at least "
        bar = sign + text(share["bar"], unit)
        rows.append([share["what"], text(share["value"], unit), str(share["of"]), bar])
    return markdown(["", "", "of", "bar"], rows)


def of_replication(name: str) -> str:
    """A table of the replication, without the rows that have no numbers yet."""
    table = replication(name)
    return markdown(table.head, [row for row in table.rows if "-" not in row[2:4]])


TABLES = {
    (MEASURES, "two-by-two"): partial(of_replication, "attends_and_computes"),
    (LARGE, "at-sizes"): partial(of_replication, "at_sizes"),
    (LARGE, "largest"): largest,
    (LARGE, "at-size"): at_size,
    (LARGE, "attack"): attacked_at_size,
    (LARGE, "on-lists"): on_lists,
    (LARGE, "to-the-end"): to_the_end,
    (LARGE, "many-machines"): on_many_machines,
    (DECOMPILING, "decompiled"): decompiled,
    (DECOMPILING, "decompiled-population"): decompiled_population,
    (DECOMPILING, "two-stories"): two_stories,
    (DECOMPILING, "round-trips"): round_trips,
    (NEWCOMER, "newcomer"): newcomer,
    (DECOMPILING, "channels"): partial(of_replication, "channels"),
    (TEACHING, "teaching"): teaching.taught,
    (TEACHING, "larger"): teaching.on_larger_graphs,
    (TEACHING, "queue-order"): teaching.queue_order,
    (TEACHING, "own-state"): teaching.from_own_state,
    (TEACHING, "equal-time"): teaching.in_equal_time,
    (TEACHING, "bellman-ford"): teaching.taught_bellman_ford,
    (README, "taught"): teaching.taught_dfs,
    (README, "gaps"): gaps,
    (LANDSCAPE, "speed"): landscape,
    (README, "gap"): main_job,
    (BEYOND, "gap-of-all"): gap_of_all,
    (README, "training"): training,
    (TRAINING, "training"): training,
    (PROGRAMS, "compiling"): compiling,
    (COMING_FROM, "measured"): against_dm_clrs,
    (PROGRAMS, "measured"): compiled_programs,
    (PROGRAMS, "attack"): attacked,
}


def updated(page: Path) -> str:
    """A page with the tables of today's results."""
    text = page.read_text()
    for (owner, mark), table in TABLES.items():
        if owner == page:
            begin, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
            before, rest = text.split(begin)
            _, after = rest.split(end)
            text = before + begin + table() + end + after
    return text


if __name__ == "__main__":
    for changed in {owner for owner, _ in TABLES}:
        changed.write_text(updated(changed))
