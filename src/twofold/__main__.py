"""``python -m twofold`` is the ``twofold`` command."""

from twofold.cli import main

if __name__ == "__main__":
    main()
