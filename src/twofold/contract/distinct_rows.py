"""Rows that are exactly equal: found, merged into weights, and found again.

Two copies of a row could sit together on an isolated latent place at no cost, so models are
trained on distinct rows, each with the summed weight of its copies (Klanke 2007, section 4.3).
Distinct rows are kept in the order of a 64-bit hash, not of their arrival: a fit does not depend on
the order of the rows, and a row the model was trained on is found by binary search.
"""

from dataclasses import dataclass

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.compiled import compiled

LARGEST_KEY = 2**64 - 1
# Standard deviations by which the rows below a hash may be fewer than expected.
MARGIN = 6.0


@dataclass(frozen=True)
class DistinctRows:
    """The distinct rows of a table; missing entries are NaN and equal to each other."""

    Y: FloatArray  # (u, D) in hash order
    weights: FloatArray  # (u,) summed over the copies
    member: IntArray  # (n,) which distinct row each original row is
    first: IntArray  # (u,) the first original row that is this distinct row

    def lowest(self, most: int) -> "DistinctRows":
        """Return this many rows, those of the lowest hash: a sample that ignores their values.

        The others are nobody's members: -1.
        """
        if len(self.Y) <= most:
            return self
        member = np.where(self.member < most, self.member, -1)
        return DistinctRows(self.Y[:most], self.weights[:most], member, self.first[:most])


def merge_duplicates(Y: FloatArray, weights: FloatArray) -> DistinctRows:
    """Merge equal rows of Y (n, D) and add up their weights (n,)."""
    bits = _bits(Y)
    keys = _keys_of(bits)
    order = np.argsort(keys, kind="stable")
    kept, member = order, np.empty(len(Y), dtype=np.int64)
    member[order] = np.arange(len(Y))
    ordered = keys[order]
    if (ordered[1:] == ordered[:-1]).any():
        kept = np.empty_like(order)
        kept = kept[: _number_groups(bits, keys, order, member, kept)]
    summed = np.zeros(len(kept))
    np.add.at(summed, member, weights)
    return DistinctRows(np.ascontiguousarray(Y[kept]), summed, member, kept)


class LowestRows:
    """The distinct rows of lowest hash of a table that comes in parts, as `lowest` has them."""

    # A row that is among the lowest of all parts was so in every part, none of its copies escaped.

    def __init__(self, most: int) -> None:
        self.most = most
        self._found: DistinctRows | None = None

    def add(self, Y: FloatArray, weights: FloatArray, rows: IntArray) -> None:
        """Take note of rows Y (m, D), which have the numbers ``rows`` (m,) in the table."""
        before = self._found
        if before is not None:
            if len(before.Y) == self.most:
                low = row_keys(Y) <= row_keys(before.Y[-1:])
                Y, weights, rows = Y[low], weights[low], rows[low]
            Y = np.concatenate([before.Y, Y])
            weights = np.concatenate([before.weights, weights])
            rows = np.concatenate([before.first, rows])
        merged = merge_duplicates(Y, weights).lowest(self.most)
        nobody = np.empty(0, dtype=np.int64)
        self._found = DistinctRows(merged.Y.copy(), merged.weights, nobody, rows[merged.first])

    def found(self) -> DistinctRows:
        """Return the rows; which rows of the table are their members is not known."""
        if self._found is None:
            raise ValueError("No row counts: every row of the table has weight 0.")
        return self._found


def bound_of_lowest(most: int, n_rows: int) -> int:
    """Return a hash below which at least ``most`` of n distinct rows lie, and hardly more."""
    enough = most + MARGIN * np.sqrt(most) + 1
    return min(LARGEST_KEY, int(LARGEST_KEY * (enough / max(1, n_rows))))


def row_keys(Y: FloatArray) -> IntArray:
    """Return a 64-bit hash of each row's values."""
    return _keys_of(_bits(Y))


def _bits(Y: FloatArray) -> IntArray:
    """Return values as words of 64 bits, equal ones for equal values: there is one zero, one NaN.

    Rows are compared by them: the compiler takes it that there is no NaN among floats.
    """
    values = np.ascontiguousarray(Y, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan
    return values.view(np.uint64)


def _keys_of(bits: IntArray) -> IntArray:
    keys = np.empty(len(bits), dtype=np.uint64)
    _hash_rows(bits, keys)
    return keys


class RowIndex:
    """Finds rows of a table by value."""

    def __init__(self, Y: FloatArray) -> None:
        self.bits = _bits(Y)
        keys = _keys_of(self.bits)
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]

    def find(self, Y: FloatArray) -> IntArray:
        """Return the number of the equal row for each row of Y (m, D), or -1."""
        wanted = _bits(Y)
        keys = _keys_of(wanted)
        found = np.full(len(wanted), -1, dtype=np.int64)
        first = np.searchsorted(self.keys, keys)
        _match(wanted, keys, self.bits, self.keys, self.order, first, found)
        return found


@compiled
def _same(a: IntArray, j: int, b: IntArray, k: int) -> bool:
    """Return whether a row of a is equal to one of b."""
    for d in range(a.shape[1]):  # noqa: SIM110 - compiled
        if a[j, d] != b[k, d]:
            return False
    return True


@compiled
def _hash_rows(bits: IntArray, keys: IntArray) -> None:
    for j in range(keys.size):
        # FNV-1a by words of 64 bits, times 2⁶⁴ over the golden ratio. Products carry upwards only,
        # and numbers of few digits differ in their high bits only: the shift brings these down.
        key = np.uint64(0xCBF29CE484222325)
        for d in range(bits.shape[1]):
            key ^= bits[j, d]
            key *= np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        keys[j] = key


@compiled
def _number_groups(
    bits: IntArray, keys: IntArray, order: IntArray, member: IntArray, kept: IntArray
) -> int:
    """Write which group each row is in, and the first row of each group; return their number."""
    count = 0
    for place in range(order.size):
        row = order[place]
        group = count
        back = count - 1
        # Rows of one key stand together. Mostly they are equal; else all of that key are compared.
        while back >= 0 and keys[kept[back]] == keys[row]:
            if _same(bits, kept[back], bits, row):
                group = back
            back -= 1
        if group == count:
            kept[count] = row
            count += 1
        member[row] = group
    return count


@compiled
def _match(
    wanted: IntArray,
    keys: IntArray,
    bits: IntArray,
    known: IntArray,
    order: IntArray,
    first: IntArray,
    found: IntArray,
) -> None:
    for j in range(found.size):
        place = first[j]
        while place < known.size and known[place] == keys[j]:
            if _same(wanted, j, bits, order[place]):
                found[j] = order[place]
                break
            place += 1
