"""The command line: ``twofold fit table.csv`` and what can be done with the model afterwards.

Nothing heavy is imported before a command runs, so that help and errors of usage come at once.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line; the entry point of the ``twofold`` command."""
    from twofold.cli.app import app

    app(prog_name="twofold")


__all__ = ["main"]
