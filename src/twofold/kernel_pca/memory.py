"""What a fit needs in memory, said before it is taken.

A kernel matrix of m rows holds m² numbers of 8 bytes, and a fit holds several of that size at its
peak. When there are more rows than fit, a system may stop the whole process without a word, so
the figure is compared with the memory there is.
"""

from twofold.memory import available, readable

# Matrices of the size of the kernel matrix at the peak of a fit, by the solver: the matrix itself,
# what LAPACK works in or the random projections, and one beside it while it is made.
MATRICES = {"dense": 4, "arpack": 2, "randomized": 2}
BYTES = 8


def needed(m: int, solver: str, extra_matrices: int = 0) -> int:
    """Return the bytes that a fit of m rows holds at its peak, the kernel's extra ones included."""
    return BYTES * m * m * (MATRICES[solver] + extra_matrices)


def needed_by_pairs(pairs: int, m: int, n_components: int) -> int:
    """Return the bytes that a fit holds with a sparse kernel matrix of that many entries."""
    vectors = m * max(2 * n_components + 3, 20)  # what ARPACK keeps
    return BYTES * (6 * pairs + 2 * vectors)


def check(need: int, m: int, hint: str) -> None:
    """Raise MemoryError if a fit on m rows needs more than there is; the hint says what to do."""
    there = available()
    if there is not None and need > there:
        raise MemoryError(
            f"A fit on {m:,} rows needs about {readable(need)} of memory for its kernel matrix, "
            f"and {readable(there)} is available. {hint}"
        )
