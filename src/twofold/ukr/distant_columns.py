"""Columns that no row near a place observes: summed once more, over the rows that do.

Sums leave out what weighs less than ``cutoff`` beside the nearest row. Where rows have gaps, the
nearest row that observes a column may lie so far behind the nearest of all that little of the
column is left, or nothing. There its sums are taken over the rows that observe it, and what is left
out is relative to the nearest one of those:

    S_d(x) / Σ_i ω_i m_id < THIN · S(x) / Σ_i ω_i,   S_d = Σ_i ω_i m_id F(s_i),  S = Σ_i ω_i F(s_i)

says where. Only ratios of sums are used later, so that each column may have a scale of its own.
Kernels with a radius are left alone: what is out of their reach weighs nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine import FitGroup, KernelSums, PreparedReferences, Sums

if TYPE_CHECKING:
    from twofold.ukr.surface import CarriedRows

# Above, what is left out is a share of about cutoff / THIN of a column's sum.
THIN = 1e-2


class DistantColumns:
    """The columns of rows with gaps, those that the same rows observe together."""

    def __init__(
        self, engine: KernelSums, X: FloatArray, rows: CarriedRows, widths: FloatArray | None
    ) -> None:
        self.engine, self.X, self.rows, self.widths = engine, X, rows, widths
        assert rows.observed is not None
        # Groups that are observed at all, and their denominators among the sums.
        seen = [k for k, columns in enumerate(rows.groups) if rows.observed[:, columns[0]].any()]
        self.groups = [rows.groups[k] for k in seen]
        self.denominators = [rows.n_features + k for k in seen]
        self._sources: dict[int, _Source] = {}

    def mend(self, sums: Sums, X: FloatArray, hidden: IntArray | None) -> None:
        """Write the sums at places X (m, q) again where a column's rows are far away."""
        for k, is_thin in enumerate(self._are_thin(sums.values, X, hidden)):
            places = np.flatnonzero(is_thin)
            if not len(places):
                continue
            source = self._source(k)
            unseen = None if hidden is None else source.place[hidden.reshape(len(X), -1)[places]]
            found = source.references.at(X[places], hidden=unseen, slopes=len(sums.slopes) > 0)
            sums.values[np.ix_(places, source.columns)] = found.values
            if len(sums.slopes):
                axes = np.arange(X.shape[1])
                sums.slopes[np.ix_(places, axes, source.columns)] = found.slopes

    def _are_thin(self, A: FloatArray, X: FloatArray, hidden: IntArray | None) -> list[FloatArray]:
        """Say, group by group, at which places (m,) a column's rows are far away."""
        if self.rows.degree == 0:
            masses, total = A[:, self.denominators], A[:, -1]
        else:  # a local fit does not show how far its rows are
            found = self._masses.at(X, hidden=hidden).values
            masses, total = found[:, :-1], found[:, -1]
        return list((masses < total[:, None] * self._shares).T)

    def mend_tensor(self, A: Any, dA: Any, X: Any) -> None:
        """Do the same for tensors on the device of the sums; dA (m, q, C) may be empty."""
        if self.rows.degree == 0:
            masses, total = A[:, self.denominators], A[:, -1:]
        else:
            found = self._masses.at_tensor(X)[0]
            masses, total = found[:, :-1], found[:, -1:]
        is_thin = masses < total * masses.new_tensor(self._shares)
        for k in is_thin.any(dim=0).nonzero()[:, 0].tolist():
            source, places = self._source(k), is_thin[:, k].nonzero()[:, 0]
            columns = places.new_tensor(source.columns)
            values, _, slopes = source.references.at_tensor(X[places], slopes=len(dA) > 0)
            A[places[:, None], columns] = values
            if len(dA):
                axes = places.new_tensor(np.arange(X.shape[1]))[:, None]
                dA[places[:, None, None], axes, columns] = slopes

    @cached_property
    def _shares(self) -> FloatArray:
        """The share of all weight below which a group is thin, (groups,)."""
        first = [columns[0] for columns in self.groups]
        total = self.rows.weights.sum()
        return (THIN * self.rows.total[first] / total).astype(self.rows.Y.dtype)

    @cached_property
    def _masses(self) -> PreparedReferences:
        first = [columns[0] for columns in self.groups]
        V = np.column_stack([self.rows.mass[:, first], self.rows.weights]).astype(self.X.dtype)
        return PreparedReferences(self.engine, self.X, V, self.widths)

    def _source(self, k: int) -> _Source:
        if k not in self._sources:
            self._sources[k] = _Source(self, k)
        return self._sources[k]


class _Source:
    """The rows that observe one group of columns, as references of their own."""

    def __init__(self, of: DistantColumns, k: int) -> None:
        rows, columns = of.rows, of.groups[k]
        assert rows.observed is not None
        members = np.flatnonzero(rows.observed[:, columns[0]])
        # The last one answers for -1, which hides nothing.
        self.place = np.full(len(of.X) + 1, -1)
        self.place[members] = np.arange(len(members))
        self.columns = np.append(columns, of.denominators[k])
        local = rows.local(of.X.shape[1])
        if local is not None:
            whole = FitGroup(np.arange(len(self.columns)), rows.weights[members].astype(float))
            local = replace(local, groups=(whole,))
        widths = None if of.widths is None else of.widths[members]
        V = np.ascontiguousarray(rows.V[np.ix_(members, self.columns)])
        self.references = PreparedReferences(of.engine, of.X[members], V, widths, local)
