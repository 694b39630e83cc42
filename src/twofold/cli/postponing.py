"""Packages that others import and hardly use, imported when they are used.

scikit-learn imports pandas, `scipy.stats` and `scipy.special` for a function or two, which takes
longer than most commands run; `scipy.optimize` and `scipy.spatial` are for fits. A command is a
process of its own, so here they may wait: a module stands in for each of them, and gives way to the
real one when anything in it is asked for (PEP 562).
"""

import sys
from collections.abc import Iterable
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any

POSTPONED = ("pandas", "scipy.optimize", "scipy.spatial", "scipy.special", "scipy.stats")

_lock = Lock()


def postpone(names: Iterable[str] = POSTPONED) -> None:
    """Let modules that are not imported yet be imported when they are first used."""
    for name in names:
        if name not in sys.modules:
            sys.modules[name] = _stand_in(name)


def _stand_in(name: str) -> ModuleType:
    module = ModuleType(name)

    def load(attribute: str) -> Any:
        with _lock:
            if sys.modules.get(name) is module:
                del sys.modules[name]
        return getattr(import_module(name), attribute)

    vars(module)["__getattr__"] = load
    return module
