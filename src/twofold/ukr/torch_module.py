"""The way back of a kernel regression as a module of torch, differentiable by the latent point.

    f(x) = Σ_i ω_i m_i y_i F(s_i) / Σ_i ω_i m_i F(s_i),   s_i = ||(x - x_i) scale||² / width_i²

over all rows, m = 1 where y is observed; torch's own operations, so that gradients of any order,
any device and any floating type work. Where no row is within reach the mean of the rows stands in;
where none that observes a column is near, its sums are taken as in `distant_columns`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from twofold.contract.kernel_description import KernelDescription
from twofold.rowwise import same_gaps
from twofold.ukr.distant_columns import THIN

POWERS = {"epanechnikov": 1, "quartic": 2, "triweight": 3}


class KernelRegression(torch.nn.Module):
    """Latent points (m, q) to data (m, D); its arrays are buffers, not parameters."""

    def __init__(self, description: KernelDescription) -> None:
        super().__init__()
        self.kernel = description.kernel
        data = np.asarray(description.data, dtype=np.float64)
        observed = ~np.isnan(data)
        mass = np.asarray(description.weights, dtype=np.float64)[:, None] * observed
        mean = (mass * np.nan_to_num(data)).sum(axis=0) / mass.sum(axis=0)
        # Centred rows lose fewer digits; one column of weights is enough where nothing is missing.
        rows = np.where(observed, data - mean, 0.0)
        widths = 1.0 if description.widths is None else np.asarray(description.widths)[:, None]
        latent = np.asarray(description.latent) * description.latent_scale / widths
        dtype = torch.as_tensor(description.data[:0]).dtype
        for name, array in (
            ("latent", latent),
            ("scale", np.broadcast_to(description.latent_scale / widths, latent.shape)),
            ("numerators", mass * rows),
            ("denominators", mass if not observed.all() else mass[:, :1]),
            ("weights", np.asarray(description.weights)[:, None]),
            ("mean", mean),
        ):
            self.register_buffer(name, torch.tensor(np.array(array), dtype=dtype))
        self.has_gaps = not observed.all()
        self.groups = [columns.tolist() for columns in same_gaps(observed)]

    def forward(self, X: Any) -> Any:
        """Return the data that belongs to latent points X (m, q)."""
        q = self.latent.shape[1]
        if X.ndim != 2 or X.shape[1] != q:
            raise ValueError(f"Expected latent points of shape (m, {q}); got {tuple(X.shape)}.")
        gaps = X[:, None] * self.scale[None] - self.latent[None]
        # Beyond the range of numbers all rows are as far away.
        s = (gaps * gaps).sum(dim=2).clamp(max=torch.finfo(gaps.dtype).max)
        if self.kernel == "gaussian":
            # The nearest row weighs 1: nothing underflows far away, and the ratio is the same.
            weights = torch.exp(-0.5 * (s - s.amin(dim=1, keepdim=True).detach()))
        else:
            weights = torch.clamp(1 - s, min=0) ** POWERS[self.kernel]
        total = weights @ self.denominators
        is_thin, is_shifted = total == 0, self.has_gaps and self.kernel == "gaussian"
        if is_shifted:
            shares = THIN * self.denominators.sum(dim=0) / self.weights.sum()
            is_thin = total < (weights @ self.weights) * shares
        ratio = (weights @ self.numerators) / torch.where(is_thin, 1.0, total)
        ratio = torch.where(is_thin, 0.0, ratio)
        return self.mean + (self._from_afar(ratio, s, is_thin) if is_shifted else ratio)

    def _from_afar(self, ratio: Any, s: Any, is_thin: Any) -> Any:
        """Return ratios with those of columns whose rows are far away, by these rows alone."""
        for columns in self.groups:
            places = is_thin[:, columns[0]].nonzero()[:, 0]
            members = self.denominators[:, columns[0]].nonzero()[:, 0]
            if len(places) and len(members):
                far = s[places[:, None], members]
                weights = torch.exp(-0.5 * (far - far.amin(dim=1, keepdim=True).detach()))
                mass = self.denominators[members, columns[0]]
                found = (weights @ self.numerators[members][:, columns]) / (weights @ mass)[:, None]
                where = places[:, None], torch.as_tensor(columns, device=s.device)
                ratio = ratio.index_put(where, found)
        return ratio
