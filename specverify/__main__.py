"""``python -m specverify``."""

from specverify.cli import main

if __name__ == "__main__":
    main()
