"""How latent points are sought: names and numbers only.

============ =============================================================== ====================
name         what it does                                                    Kramer 2013
============ =============================================================== ====================
exhaustive   every gap of the line, or every neighbouring site of a lattice  Algorithm 3
greedy       the places beside the nearest row that is embedded already      section 5.2 (UNN_g)
gaussian     random places around that row's                                 Algorithm 10
swarm        a particle that starts from that row's                          Algorithm 9 (PSEA)
evolution    swaps of two places, kept if the error does not rise            Algorithm 7
strategy     all latent points at once by an evolution strategy              Algorithm 6
cma          all latent points at once by CMA-ES                             section 6.4
============ =============================================================== ====================
"""

import math
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from twofold.checks.parameters import (
    check_at_least,
    check_choice,
    check_count,
    check_positive,
)
from twofold.model_files import register_value_type

# Up to this many rows "auto" looks at every gap of the line.
MOST_EXHAUSTIVE = 5_000
_NEAREST = ("distance", "argmax")


def _check(search: Any, *counts: str, **choices: tuple[str, ...]) -> None:
    """Check numbers and names of a search, and whether `include_self` is one of two."""
    for name in counts:
        check_count(name, getattr(search, name))
    for name, allowed in choices.items():
        check_choice(name, getattr(search, name), allowed)
    check_choice("include_self", search.include_self, (True, False))


@dataclass(frozen=True)
class _Sorting:
    """What is to be said about a search among the places that a line or a lattice has."""

    criterion: str = "point"
    include_self: bool = True

    def __post_init__(self) -> None:
        _check(self, criterion=("point", "full"))


@register_value_type
@dataclass(frozen=True)
class Exhaustive(_Sorting):
    """Try every place.

    Parameters
    ----------
    criterion : {"point", "full"}
        Whether the error of the new row decides, or that of the whole embedding.
    include_self : bool
        Whether a row counts among its own K neighbours during the search.

    Examples
    --------
    >>> from twofold import UNN
    >>> from twofold.datasets import make_s_structure
    >>> from twofold.unn import Exhaustive
    >>> Y = make_s_structure(60, random_state=0).Y
    >>> UNN(search=Exhaustive(include_self=False), random_state=0).fit(Y).embedding_.shape
    (60, 1)
    """


@register_value_type
@dataclass(frozen=True)
class Greedy(_Sorting):
    """Try the places beside the nearest embedded row; parameters as for :class:`Exhaustive`.

    Examples
    --------
    >>> from twofold import UNN
    >>> from twofold.datasets import make_s_structure
    >>> from twofold.unn import Greedy
    >>> Y = make_s_structure(60, random_state=0).Y
    >>> UNN(search=Greedy(), random_state=0).fit(Y).embedding_.shape
    (60, 1)
    """


@register_value_type
@dataclass(frozen=True)
class Gaussian:
    """Try random places around the nearest row that is embedded already.

    Parameters
    ----------
    n_candidates : int
        Places for each row.
    nearest : {"distance", "argmax"}
        With a data kernel: the nearest row by the distance of features, or the one of the largest
        kernel value, as the book has it.
    spread : {"squared", "distance"}
        Standard deviation of the places: the squared distance of the two rows as in the book, or
        the distance itself.
    include_self : bool
        Whether a row counts among its own K neighbours during the search.

    Examples
    --------
    >>> from twofold import UNN
    >>> from twofold.datasets import make_s_structure
    >>> from twofold.unn import Gaussian
    >>> Y = make_s_structure(60, random_state=0).Y
    >>> UNN(2, search=Gaussian(n_candidates=100), random_state=0).fit(Y).embedding_.shape
    (60, 2)
    """

    n_candidates: int = 30
    nearest: str = "distance"
    spread: str = "squared"
    include_self: bool = True

    def __post_init__(self) -> None:
        _check(self, "n_candidates", nearest=_NEAREST, spread=("squared", "distance"))


@register_value_type
@dataclass(frozen=True)
class Swarm:
    """Let a particle fly from the nearest row that is embedded already; keep its best place.

    Parameters
    ----------
    n_steps : int
        Steps of the particle for each row.
    pull : (float, float)
        How strongly it is drawn to its best place so far, and to where it started.
    nearest, include_self
        As for :class:`Gaussian`.

    Examples
    --------
    >>> from twofold import UNN
    >>> from twofold.datasets import make_s_structure
    >>> from twofold.unn import Swarm
    >>> Y = make_s_structure(60, random_state=0).Y
    >>> UNN(2, search=Swarm(n_steps=20), random_state=0).fit(Y).embedding_.shape
    (60, 2)
    """

    n_steps: int = 50
    pull: tuple[float, float] = (0.5, 0.5)
    nearest: str = "distance"
    include_self: bool = True

    def __post_init__(self) -> None:
        _check(self, "n_steps", nearest=_NEAREST)
        try:
            pull = tuple(float(c) for c in self.pull)
        except (TypeError, ValueError):
            pull = ()
        if len(pull) != 2 or not all(0 <= c < math.inf for c in pull):
            raise ValueError(f"`pull` must be two numbers of at least 0; got {self.pull!r}.")
        object.__setattr__(self, "pull", pull)


@register_value_type
@dataclass(frozen=True)
class Evolution:
    """Swap two rows of the line or the lattice, and keep that if the error does not rise.

    Parameters
    ----------
    n_steps : int
        Swaps that are tried.
    patience : int or None
        Stop after this many swaps in a row that change nothing; None: never.
    start : {"sorted", "order"}
        The embedding of :class:`Greedy`, or the rows in the order they come in as in the book.
    include_self : bool
        Whether a row counts among its own K neighbours.

    Examples
    --------
    >>> from twofold import UNN
    >>> from twofold.datasets import make_s_structure
    >>> from twofold.unn import Evolution
    >>> Y = make_s_structure(30, random_state=0).Y
    >>> UNN(search=Evolution(n_steps=500), random_state=0).fit(Y).embedding_.shape
    (30, 1)
    """

    n_steps: int = 30_000
    patience: int | None = None
    start: str = "sorted"
    include_self: bool = True

    def __post_init__(self) -> None:
        _check(self, "n_steps", start=("sorted", "order"))
        if self.patience is not None:
            check_count("patience", self.patience)


@register_value_type
@dataclass(frozen=True)
class EvolutionStrategy:
    """Move all latent points at once by a (mu, lambda) or (mu + lambda) evolution strategy.

    Parameters
    ----------
    n_generations : int
    n_parents, n_children : int
        mu and lambda.
    selection : {"comma", "plus"}
        Whether parents die, or compete with their children.
    recombination : {"dominant", "intermediate"}
        Each coordinate from one of the parents at random, or their mean.
    n_mates : int
        Parents of each child, rho.
    sigma, include_self : float, bool
        First step, in the unit of the start, then by the 1/5 rule; whether a row counts among its
        own K neighbours.

    Examples
    --------
    >>> from twofold import UNN
    >>> from twofold.datasets import make_s_structure
    >>> from twofold.unn import EvolutionStrategy
    >>> Y = make_s_structure(30, random_state=0).Y
    >>> UNN(2, search=EvolutionStrategy(n_generations=5), random_state=0).fit(Y).embedding_.shape
    (30, 2)
    """

    n_generations: int = 1_000
    n_parents: int = 5
    n_children: int = 35
    selection: str = "plus"
    recombination: str = "intermediate"
    n_mates: int = 2
    sigma: float = 0.3
    include_self: bool = True

    def __post_init__(self) -> None:
        counts = ("n_generations", "n_parents", "n_children", "n_mates")
        ways = ("dominant", "intermediate")
        _check(self, *counts, selection=("comma", "plus"), recombination=ways)
        check_positive("sigma", self.sigma)
        if self.selection == "comma" and self.n_children < self.n_parents:
            raise ValueError(
                f"With selection='comma' there must be at least as many children as parents; got "
                f"n_children={self.n_children} and n_parents={self.n_parents}."
            )
        if self.n_mates > self.n_parents:
            raise ValueError(
                f"`n_mates` = {self.n_mates} is more than the {self.n_parents} parents there are."
            )


@register_value_type
@dataclass(frozen=True)
class CMAES:
    """Move all latent points at once by CMA-ES; for up to about 50 rows.

    Parameters
    ----------
    space : {"penalty", "box"}
        ``E(X) + penalty ||X||²`` anywhere, or ``E(X)`` within the unit box.
    penalty : float
        Weight of ``||X||²``; in the box it is not used.
    n_generations : int
    population : int or None
        Candidates a generation; None for four a row.
    sigma, include_self : float, bool
        First step; whether a row counts among its own K neighbours.

    Examples
    --------
    >>> from twofold import UNN
    >>> from twofold.datasets import make_s_structure
    >>> from twofold.unn import CMAES
    >>> Y = make_s_structure(20, random_state=0).Y
    >>> UNN(2, n_neighbors=3, search=CMAES(n_generations=5), random_state=0).fit(Y).embedding_.shape
    (20, 2)
    """

    space: str = "penalty"
    penalty: float = 1e-2
    n_generations: int = 1_000
    population: int | None = None
    sigma: float = 0.3
    include_self: bool = True

    def __post_init__(self) -> None:
        _check(self, "n_generations", space=("penalty", "box"))
        check_at_least("penalty", self.penalty)
        if self.population is not None:
            check_count("population", self.population, 4)
        check_positive("sigma", self.sigma)


Continuous: TypeAlias = Gaussian | Swarm
# Ranks on a line or sites of a lattice.
Discrete: TypeAlias = Exhaustive | Greedy | Evolution
# One row after the other.
Constructive: TypeAlias = Exhaustive | Greedy | Gaussian | Swarm
Search: TypeAlias = Constructive | Evolution | EvolutionStrategy | CMAES

NAMES: dict[str, Any] = {
    "exhaustive": Exhaustive,
    "greedy": Greedy,
    "gaussian": Gaussian,
    "swarm": Swarm,
    "evolution": Evolution,
    "strategy": EvolutionStrategy,
    "cma": CMAES,
}


def get_search(spec: Any, q: int, n: int) -> Search:
    """Return the search of that name, or the object itself; "auto" goes by dimensions and rows.

    Raises ValueError for an unknown name and TypeError for anything else.

    >>> from twofold.unn.searches import get_search
    >>> get_search("auto", 2, 100)
    Gaussian(n_candidates=30, nearest='distance', spread='squared', include_self=True)
    """
    expected = (
        f"`search` must be 'auto', one of {sorted(NAMES)}, or an object of twofold.unn such as "
        "Gaussian(n_candidates=50)"
    )
    if isinstance(spec, str):
        if spec == "auto":
            if q > 1:
                return Gaussian()
            return Exhaustive() if n <= MOST_EXHAUSTIVE else Greedy()
        if spec not in NAMES:
            raise ValueError(f"{expected}; got {spec!r}.")
        return cast(Search, NAMES[spec]())
    if not isinstance(spec, tuple(NAMES.values())):
        raise TypeError(f"{expected}; got {spec!r}.")
    return cast(Search, spec)
