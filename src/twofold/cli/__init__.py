"""The command line: ``twofold fit table.csv`` and what can be done with the model afterwards.

Nothing heavy is imported before a command runs, so that help and errors of usage come at once.
"""

import signal
import sys
from typing import NoReturn

INTERRUPTED = 130  # 128 + SIGINT, as shells have it
TERMINATED = 143  # 128 + SIGTERM


class Terminated(BaseException):
    """SIGTERM, which cleans up as Ctrl-C does, but keeps nothing."""


def main() -> None:
    """Run the command line; the entry point of the ``twofold`` command."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        from twofold.cli.app import app
        from twofold.cli.postponing import postpone

        postpone()
        app(prog_name="twofold")
    except KeyboardInterrupt:
        _end("Interrupted", INTERRUPTED)
    except Terminated:
        _end("Terminated", TERMINATED)


def _terminate(number: int, frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # whoever asks twice does not want to wait
    raise Terminated


def _end(how: str, code: int) -> NoReturn:
    sys.stderr.write(f"error: {how}; nothing was changed.\n")
    sys.exit(code)


__all__ = ["INTERRUPTED", "TERMINATED", "main"]
