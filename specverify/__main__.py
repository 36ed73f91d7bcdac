"""Run the command line of specverify; this is the entry point of ``python -m specverify``."""

from specverify.cli import main

if __name__ == "__main__":
    main()
