"""Local polynomial fits on a device: what `twofold.engine.local_fit` does, for tensors.

All that a query needs of its neighbourhood are moments of its weights and of their slopes,

    M_k = Σ_i ŵ_i δ_i^k,   N_k = Σ_i ŝ_i δ_i^k,   ŝ = -2F' ω/S,

and the same times G_i = U·V_i where U = dR/dA is carried back. With C = M of products of terms, its
inverse, g = C⁻¹ e_0 and h = C⁻¹ Σ_i ŵ_i G_i ξ_i (names as there) the derivative by the query is

    dR/dx_c = Σ_i ŝ_i δ_ic (T_i u_i - ridge + stiff (μ - ||δ_i||²)) + 2 stiff Σ_i ŵ_i δ_ic
              - Σ_i ŵ_i (T_i ∂_c u_i - u_i ∂_c v_i),

sums of polynomials, and so of moments. Only sums over the columns and what references feel need
another pass over pairs. Moments and small systems are in float64, products with columns in three
tf32 parts: as exact as "fp32", which is what any `precision` means here.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.engine.gpu.columns import Columns, columns_for
from twofold.engine.gpu.library import load_torch
from twofold.engine.gpu.sums import CarriedTiles, TileRun
from twofold.engine.gpu.tiles import TILE, CountedTiles, TiledPoints
from twofold.engine.local_fit import FitGroup, LocalFit
from twofold.engine.local_loops import RIDGE

if TYPE_CHECKING:
    from torch import Tensor

# References that a tile of queries meets at a time, and warps that share the work.
PIECE, WARPS = 16, 4


def exponents(q: int, degree: int) -> list[tuple[int, ...]]:
    """List the monomials of q variables up to a degree, the first variable fastest."""
    turned = product(range(degree + 1), repeat=q)
    return [powers[::-1] for powers in turned if sum(powers) <= degree]


class Terms:
    """The terms of a polynomial, and which moments belong to products of them."""

    def __init__(self, terms: IntArray, q: int) -> None:
        self.q, self.degree = q, 1 + int((terms[:, 1] >= 0).any())
        self.powers = [tuple(int((term == axis).sum()) for axis in range(q)) for term in terms]
        self.orders = [sum(powers) for powers in self.powers]
        self.n_all = (q + 1) * (q + 2) // 2 if self.degree == 2 else q + 1

    def __len__(self) -> int:
        return len(self.powers)

    def places(self, degree: int, *axes: int) -> list[int]:
        """Return where ξ_a δ_c … is among the moments up to a degree, (p,)."""
        place = {powers: k for k, powers in enumerate(exponents(self.q, degree))}
        more = np.bincount(np.array(axes, dtype=int), minlength=self.q)
        return [place[tuple(int(e) for e in np.add(powers, more))] for powers in self.powers]

    def products(self, degree: int, *axes: int) -> list[list[int]]:
        """Return where ξ_a ξ_b δ_c … is among the moments up to a degree, (p, p)."""
        factors = [[m for m, e in enumerate(powers) for _ in range(e)] for powers in self.powers]
        return [self.places(degree, *axes, *more) for more in factors]

    def derivative(self, axis: int) -> FloatArray:
        """Return the matrix (p, p) that coefficients are multiplied by, from the right."""
        D = np.zeros((len(self), len(self)))
        for a, powers in enumerate(self.powers):
            if powers[axis]:
                lower = tuple(e - (m == axis) for m, e in enumerate(powers))
                D[a, self.powers.index(lower)] = powers[axis]
        return D


class CarriedFits(CarriedTiles):
    """References in tiles, with rows V (n, C) that local polynomials are fitted to."""

    def __init__(self, X: Tensor, V: Tensor, local: LocalFit) -> None:
        super().__init__(X, V[:, -1:], "tf32x3")
        self.terms = Terms(local.terms, X.shape[1])
        self.groups = [_Group(group, V, self.points) for group in local.groups]
        fitted = {int(column) for group in local.groups for column in group.columns}
        self.plain = [column for column in range(V.shape[1]) if column not in fitted]
        self.plain_masses = [self.points.padded_rows(V[:, c].float()) for c in self.plain]
        self.width = V.shape[1]

    def run(
        self, engine: Any, queries: Tensor | None, hidden: Tensor | None, **how: Any
    ) -> FittedRun:
        """Return an evaluation at queries, the references themselves if None."""
        return FittedRun(engine, self, queries, hidden, **how)


class _Group:
    """Columns that are fitted from the same references, in tiles."""

    def __init__(self, group: FitGroup, V: Tensor, points: TiledPoints) -> None:
        torch = load_torch()
        self.columns = torch.as_tensor(group.columns, device=V.device)
        self.rows = columns_for(points.padded_rows(V[:, self.columns].float()), "tf32x3")
        mass = torch.as_tensor(group.mass, dtype=torch.float32, device=V.device)
        self.mass = points.padded_rows(mass)


class FittedRun(TileRun):
    """One evaluation with local fits: the fit of every query, group by group."""

    references: CarriedFits

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self.can_use_nodes = False  # a polynomial of every query is no sum over nodes

    def _count(
        self, a: TiledPoints, b: TiledPoints, reach_a: Tensor, reach_b: Tensor
    ) -> CountedTiles:
        return CountedTiles(a, b, reach_a, reach_b)

    def sums(self, *, slopes: bool) -> Tensor:
        """Return sums and their slopes (1 + q, m, C) in the order of the tiles."""
        torch, refs = load_torch(), self.references
        self.fits = [_Fit(self, group) for group in refs.groups]
        axes, m = 1 + self.points.q * slopes, self.n_queries
        A = torch.zeros((axes, m, refs.width), device=self.points.X.device)
        for group, fit in zip(refs.groups, self.fits, strict=True):
            A[:, :, group.columns] = fit.sums(slopes=slopes)
        for c, mass in zip(refs.plain, refs.plain_masses, strict=True):
            A[0, :, c] = self.moments(mass, 0)[0].float()
            if slopes:
                N = self.moments(mass, 1, slopes=True)
                for axis in range(self.points.q):
                    A[1 + axis, :, c] = N[_first(axis, self.points.q)].float()
        return A

    def pulls(self, U: Tensor) -> tuple[Tensor, Tensor]:
        """Carry U (m, C), in the order of the tiles, back to queries and references."""
        a, b = self.points, self.references.points
        by_query, by_reference = a.X.new_zeros((a.n, a.q)), b.X.new_zeros((b.n, b.q))
        for group, fit in zip(self.references.groups, self.fits, strict=True):
            pull, push = fit.pulls(U[:, group.columns])
            by_query[a.order] += pull
            by_reference[b.order] += push
        return by_query, by_reference

    def moments(
        self,
        mass: Tensor,
        degree: int,
        pair: tuple[Columns, Columns] | None = None,
        *,
        slopes: bool = False,
    ) -> Tensor:
        """Return moments (monomials, m) of weights, or of slopes, times U·V of the ``pair``."""
        from twofold.engine.gpu.local_kernels import moments_of_fits

        torch, a = load_torch(), self.points
        u, v = (self.references.columns,) * 2 if pair is None else pair
        count = len(exponents(a.q, degree))
        M = torch.empty((count, a.padded), dtype=torch.float64, device=a.X.device)
        moments_of_fits[(a.n_tiles,)](
            *(a.X, self.references.points.X, self.shift, mass, u.high, u.mass, v.high, v.mass),
            *(self.hidden, self.near.order, self.near.first, self.near.tiles, M),
            *(a.padded, self.references.points.padded),
            ANSWERED=pair is not None,
            SLOPES=slopes,
            DEGREE=degree,
            COUNT=count,
            **self.how_fits(v),
        )
        return M[:, : self.n_queries]

    def moments_and_slopes(
        self, mass: Tensor, degree: int, pair: tuple[Columns, Columns] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the moments of weights and of slopes, both up to the same degree."""
        M = self.moments(mass, degree, pair)
        # Of the Gaussian, the one kernel here without a radius, weights are slopes.
        is_same = self.engine.kernel.is_exponential
        return M, M if is_same else self.moments(mass, degree, pair, slopes=True)

    def how_fits(self, columns: Columns) -> dict[str, Any]:
        """Return what the kernels of local fits are compiled for."""
        return {
            **self._how(),
            "COLUMNS": columns.n_columns,
            "C": columns.at_a_time,
            "KERNEL": self.engine.kernel.name,
            "BN": PIECE,
            "num_warps": WARPS,
        }


class _Fit:
    """The polynomials of one group around all queries; arrays are (terms, m), in float64."""

    def __init__(self, run: FittedRun, group: _Group) -> None:
        torch = load_torch()
        self.run, self.group, self.terms = run, group, run.references.terms
        terms = self.terms
        # One degree more than C needs, for the derivatives.
        self.most = 2 * terms.degree + 1
        M = run.moments(group.mass, self.most)
        self.scale = torch.where(M[0] > 0, 1 / M[0], 0)
        self.M = M * self.scale
        self.C = self.M[torch.as_tensor(terms.products(self.most), device=M.device)]
        squares = [_first(axis, terms.q, self.most, 2) for axis in range(terms.q)]
        self.mean_square = self.M[squares].sum(dim=0)
        far = 1 + self.mean_square
        self.ridges = torch.stack([RIDGE * far**order for order in terms.orders])
        self.stiffness = torch.stack([order * RIDGE * far ** (order - 1) for order in terms.orders])
        self.ridges[0], self.stiffness[0] = M[0] <= 0, 0  # nothing is fitted where no row weighs
        held = self.C + torch.diag_embed(self.ridges.t()).permute(1, 2, 0)
        inverse = torch.linalg.inv_ex(held.permute(2, 0, 1)).inverse
        self.inverse = inverse.permute(1, 2, 0).contiguous()
        self.g = self.inverse[0]

    def sums(self, *, slopes: bool) -> Tensor:
        """Return the sums of the group's columns and their slopes, (1 + q, m, c)."""
        from twofold.engine.gpu.local_kernels import sum_fits

        torch, run, rows = load_torch(), self.run, self.group.rows
        a, axes = run.points, 1 + run.points.q * slopes
        polynomials = [self.g, *(self._steps() if slopes else [])]
        fits = self._padded(torch.stack(polynomials) * self.scale)
        A = torch.empty((axes, a.padded, rows.n_columns), device=a.X.device)
        totals = torch.empty((axes, a.padded), device=a.X.device)
        sum_fits[(a.n_tiles, rows.n_columns // rows.at_a_time, axes)](
            *(a.X, run.references.points.X, run.shift, self.group.mass, rows.high, rows.mass, fits),
            *(run.hidden, run.near.order, run.near.first, run.near.tiles, A, totals),
            *(a.padded, run.references.points.padded, self.terms.n_all),
            DEGREE=self.terms.degree,
            SLOPES=slopes,
            **run.how_fits(rows),
        )
        m = run.n_queries
        return torch.cat([A[:, :m, : rows.width], totals[:, :m, None]], dim=2)

    def _slope_moments(self) -> tuple[Tensor, list[Tensor]]:
        """Return the moments N of the slopes, and N of products of terms with δ_c, by axis."""
        torch, terms, N = load_torch(), self.terms, self.M
        if not self.run.engine.kernel.is_exponential:  # else slopes are weights
            N = self.run.moments(self.group.mass, self.most, slopes=True) * self.scale
        products = (terms.products(self.most, axis) for axis in range(terms.q))
        return N, [N[torch.as_tensor(table, device=N.device)] for table in products]

    def _mean_steps(self, N: Tensor, axis: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the means of ŝ δ_c, of ŝ δ_c ||δ||² and of 2 ŵ δ_c."""
        q = self.terms.q
        place = {powers: k for k, powers in enumerate(exponents(q, self.most))}
        cubes = [
            place[tuple((m == axis) + 2 * (m == other) for m in range(q))] for other in range(q)
        ]
        first = _first(axis, q, self.most)
        return N[first], N[cubes].sum(dim=0), 2 * self.M[first]

    def _steps(self) -> list[Tensor]:
        """Return the polynomials P_c of `sum_fits`, b's derivative by the query."""
        torch, g = load_torch(), self.g
        N, of_slopes = self._slope_moments()
        found = []
        for axis in range(self.terms.q):
            D = torch.as_tensor(self.terms.derivative(axis), device=g.device)
            along, spread, outward = self._mean_steps(N, axis)
            moved = along * self.mean_square - spread + outward
            kappa = D @ _times(self.C, g) - _times(of_slopes[axis], g) + _times(self.C, D.t() @ g)
            kappa[1:] += (g * (self.stiffness * moved - self.ridges * along))[1:]
            found.append(_times(self.inverse, kappa) - D.t() @ g)
        return found

    def pulls(self, U: Tensor) -> tuple[Tensor, Tensor]:
        """Carry U (m, c) back to queries and references, both in the order of their tiles."""
        torch, run, terms = load_torch(), self.run, self.terms
        u = columns_for(_padded_rows(U, run.points.padded), "tf32x3")
        degree = terms.degree + 1
        M, N = run.moments_and_slopes(self.group.mass, degree, (u, self.group.rows))
        M, N = M * self.scale, N * self.scale
        answers = M[terms.places(degree)]
        h = _times(self.inverse, answers)
        pressed = h * self.g
        ridge, stiff = (pressed * self.ridges)[1:].sum(0), (pressed * self.stiffness).sum(0)
        own, of_slopes = self._slope_moments()
        pull = []
        for axis in range(terms.q):
            D = torch.as_tensor(terms.derivative(axis), device=h.device)
            along, spread, outward = self._mean_steps(own, axis)
            of_u, of_v = D.t() @ self.g, D.t() @ h
            answered = N[terms.places(degree, axis)] - _times(of_slopes[axis], h)
            left = answers - _times(self.C, h)
            pull.append(
                (self.g * answered).sum(0)
                + (stiff * self.mean_square - ridge) * along
                - stiff * spread
                + stiff * outward
                - (of_u * left).sum(0)
                + (of_v * _times(self.C, self.g)).sum(0)
            )
        ridges = torch.stack([self.scale, ridge, stiff, self.mean_square])
        return torch.stack(pull, dim=1).float(), self._push(u, h, ridges)

    def _push(self, u: Columns, h: Tensor, ridges: Tensor) -> Tensor:
        from twofold.engine.gpu.local_kernels import push_fits

        torch, run, rows = load_torch(), self.run, self.group.rows
        a, b, near = run.points, run.references.points, run.near
        if not run.is_own:
            near = run.seen_by()
        push = torch.empty((b.q, b.padded), device=b.X.device)
        push_fits[(b.n_tiles, TILE // PIECE)](
            *(a.X, b.X, run.shift, self.group.mass, u.high, u.mass, rows.high, rows.mass),
            *(self._padded(self.g), self._padded(h), _padded_columns(ridges, a.padded)),
            *(run.hidden, near.order, near.first, near.tiles, push, a.padded, b.padded),
            DEGREE=self.terms.degree,
            **run.how_fits(rows),
        )
        return push[:, : b.n].t()

    def _padded(self, fits: Tensor) -> Tensor:
        """Return coefficients (..., terms, m) with all terms of the degree, for whole tiles."""
        shape = (*fits.shape[:-2], self.terms.n_all, self.run.points.padded)
        out = fits.new_zeros(shape)
        out[..., : fits.shape[-2], : fits.shape[-1]] = fits
        return out


def _first(axis: int, q: int, degree: int = 1, power: int = 1) -> int:
    """Return where δ_axis, or a power of it, is among the moments up to a degree."""
    return exponents(q, degree).index(tuple(power * (m == axis) for m in range(q)))


def _times(C: Tensor, g: Tensor) -> Tensor:
    """Return the products of matrices (p, p, m) and vectors (p, m)."""
    return (C * g).sum(dim=1)


def _padded_columns(rows: Tensor, padded: int) -> Tensor:
    out = rows.new_zeros((len(rows), padded))
    out[:, : rows.shape[1]] = rows
    return out


def _padded_rows(rows: Tensor, padded: int) -> Tensor:
    out = rows.new_zeros((padded, rows.shape[1]))
    out[: len(rows)] = rows
    return out.float()
