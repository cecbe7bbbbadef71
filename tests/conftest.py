"""Every jaxtyping shape in the package is checked while the tests run."""

import logging

from jaxtyping import install_import_hook

install_import_hook("mechgap", "beartype.beartype")
logging.getLogger("absl").setLevel(logging.ERROR)  # dm-clrs logs each sampler that it builds


def pytest_terminal_summary(terminalreporter):
    """Show what tests measured with `record_property`, so that no number stays hidden."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    measured = [(r.nodeid, *p) for r in reports if r.when == "call" for p in r.user_properties]
    if measured:
        terminalreporter.section("measured")
        for test, name, value in sorted(measured):
            terminalreporter.write_line(f"{test.split('::')[-1]}: {name} = {value}")
