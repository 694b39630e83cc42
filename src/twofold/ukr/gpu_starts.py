"""The fine half of coarse to fine on a device: all rows beside their representatives, refined.

What `twofold.ukr.starts` does with all rows once the start of some has won: each goes to the mean
of its nearest representatives, t-SNE goes on with the neighbours of all, and the map is scaled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twofold.engine.gpu.library import load_torch, saying_what_fits
from twofold.neighborhoods.gpu_neighbors import most_neighbors, nearest_among
from twofold.neighborhoods.gpu_tsne import affinities, descend
from twofold.neighborhoods.tsne import MAX_TSNE_DIMENSIONS
from twofold.ukr.gpu_objective import DeviceReconstruction, scaled_start
from twofold.ukr.objective import Problem, typical_spacing
from twofold.ukr.starts import (
    _PLACING_NEIGHBORS,
    _PLACING_REACH,
    Candidates,
    Start,
    Tell,
    _standardize,
)

if TYPE_CHECKING:
    from torch import Tensor

# t-SNE of all rows: steps cost little here, so more of them than on a CPU.
STEPS, PERPLEXITY, NEIGHBORS = 100, 15.0, 45


def start_on_device(
    candidates: Candidates, problem: Problem, name: str, tell: Tell, *, refines: bool
) -> Start:
    """Return the start of all rows from that of their representatives."""
    with saying_what_fits(*problem.rows.V.shape):
        objective = DeviceReconstruction(problem)
        X = _points_of_all(candidates, objective, name, tell, refines=refines)
        X, error = scaled_start(X.float(), objective)
    return Start(name, X.double().cpu().numpy(), error)


def _points_of_all(
    candidates: Candidates,
    objective: DeviceReconstruction,
    name: str,
    tell: Tell,
    *,
    refines: bool,
) -> Tensor:
    if name == "pca" or candidates.q > MAX_TSNE_DIMENSIONS:  # thick maps are made on the CPU
        placed = candidates.place(name)
        return objective.tensor(candidates.refine(name, placed, tell) if refines else placed)
    Y = objective.tensor(candidates.Y)
    X = _placed(candidates, Y, name)
    if name == "tsne" and refines:
        return _refined(candidates, Y, X, tell)
    return objective.tensor(_standardize(name, X.cpu().numpy()))


def _placed(candidates: Candidates, Y: Tensor, name: str) -> Tensor:
    """Return each row of Y (n, D) at the weighted mean of its nearest representatives."""
    torch = load_torch()
    few = candidates.embedded[name]
    X = torch.as_tensor(few, dtype=torch.float32, device=Y.device)
    chosen = torch.as_tensor(candidates.chosen, device=Y.device)
    reach = _PLACING_REACH * typical_spacing(few)
    distances, nearest = nearest_among(Y, Y[chosen], _PLACING_NEIGHBORS)
    sq_dists = (distances**2).clamp_min(1e-30)
    places = X[nearest]
    sq_gaps = ((places - places[:, :1]) ** 2).sum(dim=2)
    weights = (sq_dists[:, :1] / sq_dists) / (1.0 + sq_gaps / max(reach**2, 1e-30))
    weights /= weights.sum(dim=1, keepdim=True)
    placed = (weights[:, :, None] * places).sum(dim=1)
    placed[chosen] = X
    return placed


def _refined(candidates: Candidates, Y: Tensor, X: Tensor, tell: Tell) -> Tensor:
    """Return latent points X (n, q) after steps of t-SNE with the neighbours of all rows."""
    n, few = len(X), candidates.embedded["tsne"]
    # A map of so many more rows is wider; t-SNE itself takes many steps to widen one.
    wider = (n / len(few)) ** (0.5 / X.shape[1])
    X = (X - X.mean(dim=0)) * (wider * float(np.std(few)) / float(X.std()))
    tell("neighbours of all rows", 0, 1)
    P = affinities(*most_neighbors(Y, NEIGHBORS, candidates.seed), PERPLEXITY)
    X = descend(P, X, STEPS, tell)
    X = X - X.mean(dim=0)
    return X / X.std(dim=0).amax()
