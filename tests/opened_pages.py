"""Pages in a browser's tabs."""


class Opened:
    """A page in a tab, with what it complained about and what it asked the network for."""

    def __init__(self, browser, path, **context):
        self.tab = browser.new_context(**context).new_page()
        self.complaints, self.requests = [], []
        self.tab.on("console", lambda m: m.type == "error" and self.complaints.append(m.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("request", lambda r: self.requests.append(r.url))
        self.tab.goto(path.as_uri())
        self.tab.wait_for_selector("html[data-ready=true]")

    def arrows(self, panel):
        """Who attends to whom, as drawn."""
        found = self.tab.eval_on_selector_all(
            f"#{panel} g.arrow",
            "all => all.map(a => [+a.dataset.to, +a.dataset.from, +a.dataset.weight])",
        )
        return {(to, sender): weight for to, sender, weight in found}
