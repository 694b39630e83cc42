"""Checks of what several methods share."""

from __future__ import annotations

from typing import Any

from twofold.checks.numbers import check_count, check_positive


def check_search(method: Any, criteria: tuple[str, ...]) -> None:
    """Raise ValueError unless criterion, tol and max_iter of a method can be used."""
    if method.criterion not in criteria:
        raise ValueError(f"`criterion` must be one of {criteria}; got {method.criterion!r}.")
    check_loop(method.tol, method.max_iter)


def check_loop(tol: float, max_iter: int) -> None:
    """Raise ValueError unless a loop can end."""
    check_positive("tol", tol)
    check_count("max_iter", max_iter)
