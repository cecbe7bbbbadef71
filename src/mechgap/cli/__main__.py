"""`python -m mechgap.cli` is `mechgap`."""

from mechgap.cli import main

if __name__ == "__main__":
    main()
