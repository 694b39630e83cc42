"""The methods that ``twofold fit`` knows, and their parameters as options give them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twofold.cli.console import UsageError, did_you_mean, in_options

if TYPE_CHECKING:
    from twofold.contract import TwoWayModel

USUAL_DIMENSIONS = 2
# From here on a model of all rows takes its time, and one of fewer is hardly worse.
MANY_ROWS = 20_000
# Parameters that an option of every method gives.
OPTION_OF = {"n_components": "--dimensions", "random_state": "--seed", "verbose": "--quiet"}
# Parameters that no text can give.
WITHOUT_TEXT = ("callbacks",)


@dataclass(frozen=True)
class Method:
    """A family of models as the command line offers it."""

    name: str  # what --method calls it; with _ for - it is the name that `compare` knows
    options: tuple[str, ...] = ()  # its parameters that have options of their own
    may_exceed_columns: bool = False  # whether the map may have more dimensions than the table
    walks: bool = False  # whether it is fitted to tables larger than memory
    # A parameter that is None unless a large table is made small, and what to do.
    for_many_rows: tuple[str, str] | None = None
    # What a fit does before all else, and the same for an interrupt in it.
    first_phase: tuple[str, str] = ("fitting", "the map was being fitted")

    def make(
        self, dimensions: int | None, given: Mapping[str, Any], settings: Sequence[str], **run: Any
    ) -> TwoWayModel:
        """Return the unfitted model of `given` options and texts NAME=VALUE, checked."""
        from twofold.loading import two_way_model

        model = two_way_model(self.name.replace("-", "_"), dimensions or USUAL_DIMENSIONS, **run)
        known = list(model.get_params(deep=False))
        given = {name: value for name, value in given.items() if value is not None}
        self._check_options(given, known)
        chosen = self._parse(settings, known)
        for name in chosen:
            if name in given:
                raise UsageError(f"{option_of(name)} and --set {name} say the same thing.")
        model.set_params(**given, **chosen)
        try:
            model.check_parameters()
        except (ValueError, TypeError) as error:
            message = str(error)
            for name in (*chosen, *given):
                as_option = option_of(name) if name in given else f"--set {name}"
                message = message.replace(f"`{name}`", as_option)
            raise UsageError(in_options(message)) from error
        return model

    def advice(self, model: TwoWayModel, n_rows: int) -> str | None:
        """Return what helps with n rows, None if there are few or it is done already."""
        if n_rows <= MANY_ROWS or self.for_many_rows is None:
            return None
        parameter, words = self.for_many_rows
        return words if getattr(model, parameter) is None else None

    def _check_options(self, given: Mapping[str, Any], known: Sequence[str]) -> None:
        for name in given:
            if name not in self.options:
                knowing = [other.name for other in METHODS.values() if name in other.options]
                setting = f"{name}=VALUE" if name in known else "NAME=VALUE"
                raise UsageError(
                    f"{option_of(name)} goes with --method {' or '.join(knowing)}, not with "
                    f"{self.name}.",
                    f"Leave it out; parameters of {self.name} are set by --set {setting}.",
                )

    def _parse(self, settings: Sequence[str], parameters: list[str]) -> dict[str, Any]:
        """Return parameters by name from texts of the kind NAME=VALUE."""
        known = sorted(set(parameters) - {*OPTION_OF, *WITHOUT_TEXT})
        found: dict[str, Any] = {}
        for text in settings:
            name, equals, value = (part.strip() for part in text.partition("="))
            if not equals or not name:
                example = name if name in known else known[0]
                raise UsageError(
                    f"--set takes NAME=VALUE; got '{text}'.", f"For example: --set {example}=VALUE"
                )
            if name in OPTION_OF:
                raise UsageError(f"{name} has its own option.", f"Use {OPTION_OF[name]}.")
            if name not in known:
                guess = did_you_mean(name, known, most=1)
                raise UsageError(
                    f"--method {self.name} has no parameter '{name}'.",
                    f"{guess} It has {', '.join(known)}.".lstrip(),
                )
            if name in found:
                raise UsageError(f"--set {name} is given twice.", "Give every parameter once.")
            found[name] = parse_value(value)
        return found


METHODS = {
    method.name: method
    for method in (
        Method(
            "ukr",
            options=("kernel", "degree", "loss", "landmarks", "max_iter", "checkpoint"),
            walks=True,
            for_many_rows=("landmarks", "--landmarks auto is much faster"),
            first_phase=("seeking a start", "the search for a start was running"),
        ),
        Method("unn"),
        Method(
            "kernel-pca",
            may_exceed_columns=True,
            for_many_rows=("landmarks", "--set landmarks=1000 needs less time and memory"),
        ),
        Method(
            "diffusion-map",
            may_exceed_columns=True,
            for_many_rows=("n_neighbors", "--set n_neighbors=30 needs less memory"),
        ),
        Method("psom"),
    )
}
USUAL_METHOD = "ukr"


def find_method(text: str) -> Method:
    """Return the method of a name; kernel_pca and KERNEL-PCA will do for kernel-pca."""
    name = text.strip().lower().replace("_", "-")
    if name not in METHODS:
        guess = did_you_mean(name.replace("-", ""), METHODS, most=1)
        raise UsageError(
            f"There is no method '{text}'.", f"{guess} Choose from {', '.join(METHODS)}.".lstrip()
        )
    return METHODS[name]


def option_of(parameter: str) -> str:
    """Return what the option of a parameter is called."""
    return OPTION_OF.get(parameter, f"--{parameter.replace('_', '-')}")


def parse_value(text: str) -> Any:
    """Return what a text says as JSON, and the text itself if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text
