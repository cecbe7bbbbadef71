"""mechgap: graph algorithms compiled into networks, beside networks that learned them."""

__version__ = "0.1.0"
