"""A file from which a fit that was killed goes on when the same fit is called again.

A fit is a fixed sequence of steps: starts that are compared, runs of an optimiser. The file holds
what finished steps came to and where the last one stands, with the pairs of L-BFGS or the step
sizes of Rprop; what lies between the steps is computed again. So a fit that goes on ends with the
bits of one that was never broken off. The file is a model file by its format (`model_files`): it is
replaced whole, has a checksum, and runs no code when opened.

It belongs to rows and parameters, of which it holds hashes, and to the versions that wrote it:
others round otherwise.
"""

import hashlib
import os
import pickle
import time
from collections.abc import Callable, Mapping
from typing import Any

import joblib
import numpy as np

from twofold.model_files import (
    AnyArray,
    ModelFile,
    ModelFileError,
    current_versions,
    read_model_file,
    register_value_type,
    write_model_file,
)
from twofold.optimize import Journal
from twofold.optimize.lbfgs import LbfgsState, Pair
from twofold.optimize.loop import KeptRun
from twofold.optimize.rprop import RpropState
from twofold.process_settings import warn
from twofold.replacing import file_to_replace, remove_file
from twofold.ukr.starts import Start

# So much work may be lost; and writing takes this share of the time at most.
SECONDS = 5.0
SHARE = 0.05
KIND = "Checkpoint"
for value_type in (KeptRun, LbfgsState, Pair, RpropState, Start):
    register_value_type(value_type)


class Checkpoint(Journal):
    """The journal of a fit in a file; ``made_of`` names what the fit is made of, as hashes."""

    def __init__(self, path: str | os.PathLike[str], made_of: Mapping[str, str]) -> None:
        file_to_replace(path)  # raises now, not after the first seconds of work
        self.path, self.made_of = os.fspath(path), dict(made_of)
        self._steps: list[Any] = self._read() if os.path.exists(path) else []
        self._n_begun = 0
        self._is_open = True
        self._due = time.monotonic() + SECONDS

    def begin(self) -> Any:
        """Begin the next step; return what was kept of it, None if nothing was."""
        self._n_begun += 1
        return self._steps[self._n_begun - 1] if self._n_begun <= len(self._steps) else None

    def note(self, reached: Callable[[], Any]) -> None:
        """Write where the step stands, if the last time is long enough ago."""
        if not self._is_open or time.monotonic() < self._due:
            return
        self._put(reached())
        self.write()

    def write(self) -> None:
        """Write what was kept."""
        if not self._is_open:
            return
        started = time.monotonic()
        content = ModelFile(KIND, dict(self.made_of), {"steps": self._steps}, {})
        try:
            write_model_file(self.path, content)
        except (OSError, ModelFileError) as error:  # a full disk must not cost the fit itself
            warn(f"The checkpoint '{self.path}' could not be written, so the fit goes on: {error}")
        ended = time.monotonic()
        self._due = ended + max(SECONDS, (ended - started) / SHARE)

    def end(self, result: Any) -> None:
        """Keep what a step came to; it is written with what follows."""
        if self._is_open:
            self._put(result)

    def close(self) -> None:
        """Leave the file as it is: what follows only winds up an interrupted fit."""
        self._is_open = False

    def remove(self) -> None:
        """Remove the file of a fit that is done; that of an interrupted one stays."""
        if self._is_open:
            remove_file(self.path)

    def _put(self, content: Any) -> None:
        self._steps[self._n_begun - 1 :] = [content]

    def _read(self) -> list[Any]:
        try:
            stored = read_model_file(self.path)
            if stored.class_name != KIND:
                raise ModelFileError(f"'{self.path}' holds a model, not a checkpoint")
        except ModelFileError as error:
            raise ModelFileError(
                f"The checkpoint cannot be used: {error} Remove the file to fit from the start, or "
                "name another."
            ) from error
        others = [name for name, told in self.made_of.items() if stored.params.get(name) != told]
        for package, version in current_versions().items():
            if stored.versions.get(package) != version:
                others.append(f"the version of {package}")
        if others:
            raise ValueError(
                f"The checkpoint '{self.path}' belongs to another fit: it differs in "
                f"{', '.join(others)}. To continue that fit, make the call that wrote it; "
                "otherwise remove the file, or name another."
            )
        return list(stored.attributes["steps"])


def hash_of_arrays(*arrays: AnyArray) -> str:
    """Return a hash of the bytes, types and shapes of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def hash_of_parameter(name: str, value: Any) -> str:
    """Return a hash of a parameter that is the same in another process."""
    try:
        return str(joblib.hash(value))
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise ValueError(
            f"A `checkpoint` must recognise its parameters, and `{name}` = {value!r} cannot be "
            "pickled, so it cannot be compared. Define it at the top of a module, or leave "
            "`checkpoint` out."
        ) from error
