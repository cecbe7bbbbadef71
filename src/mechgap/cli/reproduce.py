"""`mechgap reproduce`: the paper's tables and figures beside our own."""

import json
import math
import re
import time
from pathlib import Path
from typing import Annotated

import typer

from mechgap.cli.app import AsJson, RayAddress, app
from mechgap.cli.watching import watched
from mechgap.errors import InvalidInput, unknown

_OTHER = ("all", "status", "figures", "page", "findings")


@app.command()
def reproduce(
    what: Annotated[
        str, typer.Argument(help="A table of the paper, or all, status, figures, page, findings.")
    ] = "status",
    seeds: Annotated[
        int | None, typer.Option(help="Seeds of each population; if not given, what fits.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Training steps; the recipes' own if not given.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="For `all`: how long to train, such as 90m or 2h.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("reproduction/runs"),
    results: Annotated[Path, typer.Option(help="Where the numbers are.")] = Path(
        "reproduction/results"
    ),
    out: Annotated[
        Path | None, typer.Option(help="For `figures`, `page` and `findings`: where to write.")
    ] = None,
    format: Annotated[str, typer.Option(help="text, markdown, latex or json.")] = "text",
    train: Annotated[
        bool, typer.Option("--train/--no-train", help="Train what is missing, or only show.")
    ] = True,
    engine: Annotated[str, typer.Option(help="local, or ray (extra `ray`).")] = "local",
    ray_address: RayAddress = None,
    as_json: AsJson = False,
) -> None:
    """Show the paper's tables beside our own; train what is missing first.

    `reproduce TABLE` trains or resumes what a table needs, and prints it. `all --budget 2h`
    spends a time on the seeds that narrow most intervals. `status` shows what is done, running
    or missing.
    """
    from mechgap.experiments.replication.judging import Judge
    from mechgap.experiments.replication.rendering import FORMATS
    from mechgap.experiments.replication.tables import TABLES
    from mechgap.experiments.replication.training import (
        Places,
        needed,
        spend,
        study_all,
        train_all,
    )
    from mechgap.training.engines import make_engine

    format = "json" if as_json else format
    if what not in (*TABLES, *_OTHER):
        raise unknown("table", what, [*TABLES, *_OTHER])
    if format not in FORMATS:
        raise unknown("format", format, list(FORMATS))
    for name, value in (("seeds", seeds), ("steps", steps)):
        if value is not None and value < 1:
            raise InvalidInput(f"{name} must be at least 1; got {value}")
    if budget is not None and what != "all":
        raise InvalidInput(f"--budget is for `mechgap reproduce all`; got it with '{what}'")
    if what == "status":
        _show_status(seeds, runs, results, format)
        return
    if what in ("page", "findings"):
        _write_page(
            what, results, out or Path("replication.md" if what == "page" else "findings.md")
        )
        return
    shown = {
        name: table if steps is None else table.shortened(steps)
        for name, table in TABLES.items()
        if what in (name, "all")
    }
    if train:
        seconds = math.inf if budget is None else _seconds(budget)
        with watched(runs, deadline=time.monotonic() + seconds) as watcher:
            places = Places(runs, results, make_engine(engine, ray_address=ray_address), watcher)
            if budget is not None:
                spend(seconds, places)
            else:
                train_all(needed(what, steps), seeds, places)
                study_all(shown.values(), places)
    if what == "figures":
        from mechgap.experiments.replication.figures import draw_paper_figures

        for path in draw_paper_figures(runs, results, out or Path("figures")):
            print(f"written: {path}")
        return
    judge = Judge.of([*TABLES.values(), *shown.values()], results)
    for name, table in shown.items():
        print(FORMATS[format](table.rendered(name, results, judge)))
    if what == "all" and format == "text":
        _show_status(seeds, runs, results, format)


def _show_status(seeds: int | None, runs: Path, results: Path, format: str) -> None:
    from mechgap.experiments.replication.figures import FIGURES, figure_populations
    from mechgap.experiments.replication.kinds import duration
    from mechgap.experiments.replication.rendering import FORMATS, Rendered
    from mechgap.experiments.replication.status import status_of, table_state
    from mechgap.experiments.replication.tables import TABLES, all_populations

    needed = {**all_populations(), **figure_populations()}
    found = {n: status_of(p, seeds, runs, results) for n, p in needed.items()}
    wanted = [(name, "table", table.populations, table.study) for name, table in TABLES.items()]
    wanted += [(f.caption, "figure", f.populations, f.study) for f in FIGURES]
    rows, data = [], []
    for name, kind, populations, study in wanted:
        parts = [p.name for p in populations]
        state = table_state(
            found[p.name].state if study is None or study.is_known(p, results) else "missing"
            for p in populations
        )
        each = [f"{n} {found[n].finished}/{found[n].wanted}" for n in parts]
        left = sum(found[n].seconds for n in dict.fromkeys(parts))
        rows.append((name, kind, state, ", ".join(each), duration(left) if left else "-"))
        data.append({"name": name, "kind": kind, "state": state, "estimated_seconds": left,
                     "populations": [found[n].data() for n in parts]})  # fmt: skip
    total = sum(s.seconds for s in found.values())
    if format == "json":
        print(json.dumps({"estimated_seconds": total, "items": data}))
        return
    remark = f"All that is left takes about {duration(total)} here." if total else "All is done."
    table = Rendered(
        "status",
        "Tables and figures of the paper",
        ("", "", "state", "seeds finished of those wanted", "left"),
        rows,
        [remark],
        data,
    )
    print(FORMATS[format](table))


def _write_page(what: str, results: Path, out: Path) -> None:
    from mechgap.experiments.replication.findings import findings_page
    from mechgap.experiments.replication.page import replication_page

    make = replication_page if what == "page" else findings_page
    try:
        out.write_text(make(results, out.parent / "figures"))
    except OSError as error:
        raise InvalidInput(f"cannot write '{out}': {error}") from error
    print(f"written: {out}")


_UNITS = {"d": 86400, "h": 3600, "m": 60, "min": 60, "s": 1}


def _seconds(text: str) -> float:
    """A time such as 90m, 2h or 1h30m.

    >>> _seconds("1h30m"), _seconds("45min")
    (5400.0, 2700.0)
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(min|[dhms])", text)
    if not parts or re.sub(r"(\d+(?:\.\d+)?)\s*(min|[dhms])\s*", "", text).strip():
        raise InvalidInput(f"a budget is a time such as 90m, 2h or 1h30m; got '{text}'")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not seconds:
        raise InvalidInput(f"a budget must be longer than nothing; got '{text}'")
    return seconds
