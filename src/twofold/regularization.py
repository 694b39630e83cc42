"""What keeps latent points from drifting apart until every row reconstructs itself.

Without regularisation the reconstruction error of kernel regression has the useless minimum zero
at infinity (Klanke 2007, section 4.3). These small objects say what is done about it:

- :class:`LeaveOneOut`: no row takes part in its own reconstruction. Needs no parameter.
- :class:`LeaveKOut`: nor do the nearest other rows. A larger K is smoother.
- :class:`Extension`: latent points are drawn to the origin, or kept in a ball or a box.
- :class:`Density`: latent points are kept where the latent density is high.
- :class:`Smoothest`: of all manifolds that pass within ε of every row, the smoothest.

>>> from twofold.regularization import Density, LeaveOneOut
>>> Density(penalty=0.05)
Density(penalty=0.05, threshold=None, start=None, decay=0.7, target=None)
"""

from dataclasses import dataclass
from typing import Literal, get_args

from twofold.checks.parameters import (
    check_at_least,
    check_choice,
    check_count,
    check_positive,
    is_number,
)

Homotopy = Literal["auto", "none", "density", "box"]


__all__ = ["Density", "Extension", "LeaveKOut", "LeaveOneOut", "Smoothest", "get_regularization"]
__dir__ = __all__.copy  # without numpy and other imports


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out cross-validation (eq. 4.34): the default, free of parameters.

    Parameters
    ----------
    homotopy : {"auto", "none", "density", "box"}
        How to unfold a start that does not yet unfold the data: through falling lower bounds of
        the latent density (4.53), or through growing boxes. "auto" goes straight to the minimum,
        and from a linear start through "density" as well, and keeps the lower of the two.

    Examples
    --------
    >>> from twofold.regularization import LeaveOneOut
    >>> LeaveOneOut(homotopy="none")
    LeaveOneOut(homotopy='none')
    """

    homotopy: Homotopy = "auto"

    def __post_init__(self) -> None:
        check_choice("homotopy", self.homotopy, get_args(Homotopy))


@dataclass(frozen=True)
class LeaveKOut:
    """Leave-K-out cross-validation (eqs. 5.18 to 5.20): smoother than leave-one-out.

    Every row is reconstructed without itself and without its ``k - 1`` nearest rows in data space;
    with landmarks, without its ``k`` nearest landmarks. Only training hides them.

    Parameters
    ----------
    k : int
        How many are left out; 1 is leave-one-out. 3 to 12 are worth trying.
    border : float
        ``λ`` in ``R + λ mean_i (p_i - mean p)²`` with ``p_i = Σ_j F(||x_i - x_j||²)``, which keeps
        points at the border of the manifold from drifting off (5.20). Of the size of the squared
        noise divided by the squared density; the thesis takes 1e-4 for data of spread 1.
    homotopy : {"auto", "none", "density", "box"}
        As in :class:`LeaveOneOut`.

    Examples
    --------
    >>> from twofold.regularization import LeaveKOut
    >>> LeaveKOut(6, border=1e-2)
    LeaveKOut(k=6, border=0.01, homotopy='auto')
    """

    k: int
    border: float = 0.0
    homotopy: Homotopy = "auto"

    def __post_init__(self) -> None:
        check_count("k", self.k)
        check_at_least("border", self.border)
        check_choice("homotopy", self.homotopy, get_args(Homotopy))


@dataclass(frozen=True)
class Extension:
    """Bound the extension of the latent points (eqs. 4.30, 4.31); give exactly one of the three.

    Parameters
    ----------
    penalty : float
        ``λ`` in ``R + λ mean_i ||x_i||²``; larger is smoother.
    radius, box : float
        Every ``||x_i||`` at most ``radius``, or every coordinate within ``±box``.
    start, decay : float
        With ``penalty``: begin with ``λ = start`` and multiply by ``decay`` down to ``penalty``
        (homotopy); no detour by default.
    target : float
        Stop the homotopy as soon as the reconstruction error is below.

    Examples
    --------
    >>> from twofold import UKR
    >>> from twofold.datasets import make_s_triangle
    >>> from twofold.regularization import Extension
    >>> model = UKR(regularization=Extension(radius=2.0), init="pca", max_iter=10)
    >>> X = model.fit_transform(make_s_triangle(100, random_state=0).Y)
    >>> bool(((X**2).sum(axis=1) <= 4 + 1e-9).all())
    True
    """

    penalty: float | None = None
    radius: float | None = None
    box: float | None = None
    start: float | None = None
    decay: float = 0.7
    target: float | None = None

    def __post_init__(self) -> None:
        _check_one_given(self, penalty=self.penalty, radius=self.radius, box=self.box)
        _check_schedule(self.penalty, self.start, self.decay, self.target)


@dataclass(frozen=True)
class Density:
    """Keep latent points where the density is high (eqs. 4.32, 4.33); give one of the two.

    The density counts in kernels at their own centre: a point alone among n rows has 1/n.

    Parameters
    ----------
    penalty : float
        ``λ`` in ``R - λ mean_i log p(x_i)``.
    threshold : float
        ``p(x_i) >= threshold`` for all i, between 1/n and 1, kept by a logarithmic barrier.
    start, decay, target : float
        As in :class:`Extension`.

    Examples
    --------
    >>> from twofold.regularization import Density
    >>> Density(penalty=0.05, start=1.0).decay
    0.7
    """

    penalty: float | None = None
    threshold: float | None = None
    start: float | None = None
    decay: float = 0.7
    target: float | None = None

    def __post_init__(self) -> None:
        _check_one_given(self, penalty=self.penalty, threshold=self.threshold)
        _check_schedule(self.penalty, self.start, self.decay, self.target)


@dataclass(frozen=True)
class Smoothest:
    """The smoothest manifold that stays within ε of every row (eqs. 5.8 to 5.12).

    ``min mean_i ||x_i||²`` such that every residual is within its tolerance ``max(ε, |r_i|)``, with
    ``r_i`` the residuals of a leave-one-out fit, from which it starts. ε comes with the loss,
    ``EpsilonInsensitive(eps)``. Solved by an augmented Lagrangian.

    Examples
    --------
    >>> from twofold.regularization import Smoothest, get_regularization
    >>> get_regularization("smoothest") == Smoothest()
    True
    """


Regularization = LeaveOneOut | LeaveKOut | Extension | Density | Smoothest
KINDS = (LeaveOneOut, LeaveKOut, Extension, Density, Smoothest)


def get_regularization(regularization: object) -> Regularization:
    """Return the regularisation of that name, or the object itself.

    Examples
    --------
    >>> from twofold.regularization import get_regularization
    >>> get_regularization("loo")
    LeaveOneOut(homotopy='auto')
    """
    if isinstance(regularization, str) and regularization == "loo":
        return LeaveOneOut()
    if isinstance(regularization, str) and regularization == "smoothest":
        return Smoothest()
    if isinstance(regularization, KINDS):
        return regularization
    raise ValueError(
        "`regularization` must be 'loo', 'smoothest', or a LeaveOneOut, LeaveKOut, Extension, "
        f"Density or Smoothest object of twofold.regularization; got {regularization!r}."
    )


def n_left_out(regularization: Regularization) -> int:
    """Return how many references cross-validation hides from each row."""
    return int(regularization.k) if isinstance(regularization, LeaveKOut) else 1


def _check_one_given(owner: object, **options: float | None) -> None:
    given = {name: value for name, value in options.items() if value is not None}
    if len(given) != 1:
        raise ValueError(
            f"{type(owner).__name__} takes exactly one of {', '.join(options)}; "
            f"got {given or 'none'}."
        )
    for name, value in given.items():
        check_positive(name, value)


def _check_schedule(
    penalty: float | None, start: float | None, decay: float, target: float | None
) -> None:
    if penalty is None and (start is not None or target is not None):
        raise ValueError("`start` and `target` belong to `penalty`; give that, or leave them out.")
    if penalty is not None and start is not None:
        check_at_least("start", start, penalty)
    if not is_number(decay) or not 0 < decay < 1:
        raise ValueError(f"`decay` must be a number between 0 and 1; got {decay!r}.")
    if target is not None:
        check_at_least("target", target)
