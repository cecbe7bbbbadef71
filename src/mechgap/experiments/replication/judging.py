"""All tests of the page together: verdicts are corrected for how many there are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from mechgap.experiments.replication.comparison import Comparison, holm


@runtime_checkable
class Testing(Protocol):
    """Something that compares our numbers with the paper's."""

    def tests(self, results: Path) -> Mapping[str, float]:
        """The p-value of every test that it makes, by a name that says what is compared."""
        ...


@dataclass(frozen=True)
class Judge:
    """Gives verdicts, by the names of tests."""

    adjusted: Mapping[str, float]

    @staticmethod
    def of(tables: Iterable[Testing], results: Path) -> "Judge":
        """A judge of all tests of some tables; what two of them make is one test."""
        found: dict[str, float] = {}
        for table in tables:
            found |= table.tests(results)
        return Judge(holm(found))

    def verdict(self, test: str, comparison: Comparison | None) -> str | None:
        """In words; None where there is nothing to compare."""
        return None if comparison is None else comparison.verdict(self.adjusted[test])
