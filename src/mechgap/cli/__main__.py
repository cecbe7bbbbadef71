"""`python -m mechgap.cli` is `mechgap`."""

from mechgap.cli import main

main()
