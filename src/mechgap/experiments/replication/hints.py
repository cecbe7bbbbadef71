"""The table of single hints: which part of the trace is it that a population does not predict?"""

from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import TableOfRows, measures_of, missing
from mechgap.experiments.replication.rendering import Rendered


@dataclass(frozen=True)
class HintsTable(TableOfRows):
    """Every hint by two rules, and accuracy under the attention of each exact mechanism."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Means over seeds."""
        hints = [f.name for f in self.rows[0].population.recipe.posed.hints]
        exact = [program.name for program in self.rows[0].population.recipe.mechanisms]
        keys = [("accuracy", "")]
        keys += [(rule, hint) for hint in hints for rule in ("hint_accuracy", "hint_scores")]
        keys += [("exact", program) for program in exact]
        titles = {"hint_accuracy": "within the margin", "hint_scores": "the more likely answer"}
        head = ["", "accuracy (%)"]
        head += [f"{hint}, {titles[rule]} (%)" for rule, hint in keys if rule in titles]
        head += [f"accuracy under {program}'s attention (%)" for program in exact]
        rows, data = [], []
        for row in self.rows:
            measures = measures_of(results, row.population)
            seeds = [] if measures is None else [s for s in measures.seeds if s.hint_accuracy]
            found = {}
            for rule, part in keys if seeds else ():
                if rule == "accuracy":
                    values = [s.accuracy for s in seeds]
                elif rule == "exact":
                    values = [s.causal.mechanisms[part].exact for s in seeds if s.causal]
                else:
                    values = [getattr(s, rule)[part] for s in seeds]
                found[f"{rule} {part}".strip()] = 100 * mean(values) if values else None
            cells = ["-" if value is None else f"{value:.2f}" for value in found.values()]
            if not cells:
                cells = [missing(row.population, results), *["-"] * (len(keys) - 1)]
            rows.append((row.label, *cells, str(len(seeds))))
            data.append({"row": row.label, "population": row.population.name, **found})
        remarks = [f"{row.label}: {row.remark}." for row in self.rows if row.remark]
        return Rendered(name, self.caption, (*head, "seeds"), rows, [*remarks, *self.remarks], data)
