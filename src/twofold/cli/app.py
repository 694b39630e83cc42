"""The ``twofold`` command: its commands, and what all of them do with errors."""

import os
import sys
import traceback
from itertools import takewhile
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from twofold import __version__
from twofold.cli import INTERRUPTED, comparing, demo, explaining, fitting, generating, looking, rows
from twofold.cli.console import (
    TRACEBACK_VARIABLE,
    Console,
    Interrupted,
    explain,
    show_error,
    write_line,
)

ANYWHERE = ("--quiet", "--json")
READER_LEFT = 141  # 128 + SIGPIPE


class Commands(TyperGroup):
    """The commands, with one place for every way a command can end."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command; errors become sentences and exit codes, never tracebacks."""
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
            if code == INTERRUPTED:  # before the command began: the parser says nothing
                show_error("Interrupted; nothing was changed.")
        except Exception as error:
            if os.environ.get(TRACEBACK_VARIABLE, "0") not in ("", "0"):
                traceback.print_exception(error, file=sys.stderr)
            message, hint, code = explain(error)
            show_error(message, hint)
        sys.exit(code if isinstance(code, int) else 0)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Let options of every command stand before the command, too."""
        head = list(takewhile(lambda word: word.startswith("-"), args))
        early = [word for word in head if word in ANYWHERE]
        if early and len(args) > len(head):
            kept = [word for word in head if word not in early]
            args = [*kept, args[len(head)], *early, *args[len(head) + 1 :]]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Ctrl-C and a reader that has gone away end it without a word too many."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            raise Interrupted("Interrupted; nothing was changed.") from None
        except BrokenPipeError:
            # As in `twofold transform … | head`. Python flushes once more when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(READER_LEFT) from None


class Command(TyperCommand):
    """One of the commands."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command, with the memory that linear algebra cannot do without."""
        from twofold.compiled import announced
        from twofold.engine.threads import reserve_for_blas

        reserve_for_blas()
        with announced(Console(quiet=ctx.params["quiet"]).say):
            return super().invoke(ctx)


app = typer.Typer(
    cls=Commands,
    help="Maps of data that go both ways: rows to a few coordinates, and coordinates to rows.",
    epilog="Start with: twofold demo, or: twofold fit table.csv",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        write_line(f"twofold {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _without_command(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")  # with colours of its own
        raise typer.Exit(2)


OF_ROWS = (rows.transform, rows.complete, rows.denoise, rows.score)
OF_TABLES = (comparing.compare, comparing.dimension)
OF_MODELS = (looking.info, looking.plot, looking.explore, explaining.explain)
# In the order of the help.
for command in (fitting.fit, *OF_ROWS, generating.generate, *OF_TABLES, *OF_MODELS):
    app.command(cls=Command)(command)
app.command(cls=Command)(demo.demo)
