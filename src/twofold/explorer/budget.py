"""Ways to show a model within a number of bytes.

Of these the first that fits is taken:

1. the model's regression, be it of kernels or of nearest rows, in 16 bits (in 8, if nothing is lost
   by it), then in 8;
2. for a model of landmarks given with its table: the regression, and the data of some rows;
3. a stand-in of fewer references, and the data of some rows.

The positions of all rows are always there.
"""

import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.contract.kernel_description import KernelDescription, NearestMeans
from twofold.explorer.own_values import with_own_values
from twofold.explorer.payload import Payload, Shown, Wanted, compose
from twofold.explorer.row_facts import latent_scale
from twofold.explorer.scale import Scale, bits_for
from twofold.explorer.stand_in import cover, find_box, make_stand_in, make_trial, measured

# More references make a page slow before they make a stand-in better.
MOST_REFERENCES, LEAST_REFERENCES = 20_000, 16
# Of a stand-in for a model whose own regression a page cannot run.
USUAL_REFERENCES = 4_000
# The same on a lattice, for a model whose domain is a box: ten along each of four sides.
LATTICE_REFERENCES = 10_000
# Rows whose data is shown beside a stand-in: most of the room is for the regression.
ROWS_PER_REFERENCE = 0.25
# A search for what fits makes at most this many attempts, the second with this number, aims at this
# share of the room and is content with that.
ATTEMPTS, FIRST_NUMBER, AIM, WELL_USED = 8, 500, 0.95, 0.8
# The size of a table is estimated from this many of its rows.
SAMPLED_ROWS = 512

# A payload, and what it shows.
Fitting: TypeAlias = tuple[Payload, Shown]


class TooLargeError(ValueError):
    """Nothing that shows a model fits; ``excess`` is how many bytes the least is too large."""

    def __init__(self, excess: int) -> None:
        super().__init__(f"{excess:,} bytes too large")
        self.excess = excess


def fit_payload(model: TwoWayModel, wanted: Wanted, room: int, page: int = 0) -> Payload:
    """Return the best payload that takes at most ``room`` bytes in a page.

    ``page`` is what the page has without it, of which own values of rows may take their share. If
    not even the rows' positions and a few references fit, a `TooLargeError` is raised.
    """
    planner = _Planner(model, wanted, room)
    payload, shown = planner.own() or planner.stand_in()
    return with_own_values(payload, wanted, shown, page, room - payload.size())


class _Planner:
    """Ways to show one model, tried in turn."""

    def __init__(self, model: TwoWayModel, wanted: Wanted, room: int) -> None:
        self.model, self.wanted, self.room = model, wanted, room
        self.description, self.member = in_order_of_rows(model)
        self.n = len(model.embedding_)
        self.latent_scale = latent_scale(model, self.description)
        self.box = find_box(model) if self.description is None else None
        self.data, self.ref = self._known_rows()
        self.smallest = sys.maxsize

    def _known_rows(self) -> tuple[FloatArray | None, IntArray]:
        """Return data (k, D) and which of it belongs to each row."""
        found = self.description
        own = getattr(self.model, "data_", None) if found is None else found.data
        if isinstance(found, NearestMeans):
            own = found.rows
        known = self.member >= 0
        if self.wanted.data is not None and not known.all():
            return self.wanted.data, np.arange(self.n)
        if own is None or not known.any():
            return None, np.full(self.n, -1)
        return own, self.member

    def own(self) -> Fitting | None:
        """Return a payload with the model's own regression, if one fits."""
        found = self.description
        if found is None:
            return None
        rows = None if self.data is found.data else self.data
        threshold = float(self.model.domain_threshold_)
        whole = Shown(found, float(found.weights.sum()), threshold, rows, self.ref, 16)
        for bits in bits_for(whole.tables):
            payload = self._fitting(replace(whole, bits=bits))
            if payload is not None:
                return payload
        if rows is None:
            return None
        return self._largest(lambda k: self._with_some_rows(whole, k), self.n, 0)

    def stand_in(self) -> Fitting:
        """Return a payload with as good a stand-in as fits."""
        show, most = self._stand_ins(), MOST_REFERENCES
        if self.description is None:
            most = USUAL_REFERENCES if self.box is None else LATTICE_REFERENCES
            for bits in (16, 8):
                payload = self._fitting(show(most, self.n, bits))
                if payload is not None:
                    return payload
        for share in (ROWS_PER_REFERENCE, 0):

            def show_share(count: int, share: float = share) -> Shown:
                return show(count, int(share * count), 8)

            found = self._largest(show_share, most, LEAST_REFERENCES)
            if found is not None:
                return found
        raise TooLargeError(self.smallest - self.room)

    def _stand_ins(self) -> Callable[[int, int, int], Shown]:
        """Return what makes a stand-in of a number of references, data of rows, and bits."""
        model, box, scale = self.model, self.box, self.latent_scale
        spread = 1.0
        if self.data is not None:  # the root mean square distance of rows from their mean
            variance = np.nanvar(self.data.astype(np.float64), axis=0)
            spread = float(np.sqrt(variance.sum())) or 1.0
        trial = make_trial(model, scale, spread, box)
        # The best width hardly depends on the number of references: one search is enough.
        known: list[float] = []

        def show(count: int, n_rows: int, bits: int) -> Shown:
            made = make_stand_in(model, scale, count, trial, known, box)
            known[:] = [made.width_factor]
            # The page sees rounded values, so these are what is measured.
            data = made.description.data
            rounded = replace(made.description, data=Scale.of([data], bits).rounded(data))
            found = measured(rounded, trial)
            # In the page the density is 1 inside a box and 0 outside.
            threshold = found.threshold if box is None else 0.5
            rows = (self.data, self.ref, bits)
            whole = Shown(rounded, found.total_weight, threshold, *rows, found.difference, box)
            return self._with_some_rows(whole, n_rows)

        return show

    def _with_some_rows(self, shown: Shown, count: int) -> Shown:
        """Return the same with the data of at most ``count`` rows, spread over the map."""
        if self.data is None or count >= self.n:
            return shown
        known = np.flatnonzero(self.ref >= 0)
        kept = known[:0]
        if count > 0:
            kept = known[cover(self.model.embedding_[known] * self.latent_scale, count)]
        ref = np.full(self.n, -1)
        ref[kept] = np.arange(len(kept))
        rows = self.data[self.ref[kept]] if len(kept) else None
        return replace(shown, rows=rows, ref=ref, bits=8)

    def _largest(self, show: Callable[[int], Shown], most: int, least: int) -> Fitting | None:
        """Return the payload of about the largest number for which ``show`` fits.

        Sizes grow nearly in proportion, so each number is where the line through the last two
        sizes meets the room.
        """
        best: Fitting | None = None
        fits, too_many = least - 1, most + 1
        tried: list[tuple[int, int]] = []
        number = least
        for _ in range(ATTEMPTS):
            shown = show(number)
            payload, size = self._composed(shown)
            tried.append((number, size))
            if size > self.room:
                too_many = number
            else:
                best, fits = (payload, shown), number
            if too_many - fits <= 1 or WELL_USED * self.room < size <= self.room:
                break
            goal = FIRST_NUMBER
            if len(tried) > 1:
                (a, size_a), (b, size_b) = tried[-2:]
                slope = (size_b - size_a) / (b - a)
                goal = int(b + (AIM * self.room - size_b) / slope) if slope > 0 else 2 * b
            number = min(max(goal, fits + 1), too_many - 1)
        return best

    def _fitting(self, shown: Shown) -> Fitting | None:
        """Return this with the payload that shows it, or None if it is too large."""
        # An estimate from some rows: what seems a third too large is not even composed.
        if _expected_bytes(shown) > 1.3 * self.room:
            return None
        payload, size = self._composed(shown)
        return (payload, shown) if size <= self.room else None

    def _composed(self, shown: Shown) -> tuple[Payload, int]:
        """Return what shows this, and its size."""
        payload = compose(self.model, self.wanted, shown)
        size = payload.size()
        self.smallest = min(self.smallest, size)
        return payload, size


def _expected_bytes(shown: Shown) -> float:
    """Return about how many bytes the codes will take, from some rows of each table."""
    scale, total = shown.scale, 0.0
    for table in shown.tables:
        some = table[:: -(-len(table) // SAMPLED_ROWS)]
        packed = len(zlib.compress(scale.codes(some).tobytes()))
        total += 4 / 3 * packed * len(table) / len(some)
    return total


def in_order_of_rows(model: TwoWayModel) -> tuple[KernelDescription | None, IntArray]:
    """Return the regression with references in the order of their rows, and each row's reference.

    With one reference a row, in order, positions need to be written only once.
    """
    found = model.kernel_regression()
    member = np.asarray(getattr(model, "member_", np.full(len(model.embedding_), -1)))
    if found is None:
        return None, member
    held = np.flatnonzero(member >= 0)
    first = np.full(len(found.latent), len(member))
    np.minimum.at(first, member[held], held)
    order = np.argsort(first, kind="stable")
    return found.in_order(order), np.where(member >= 0, np.argsort(order)[member], -1)
