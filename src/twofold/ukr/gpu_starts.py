"""The fine half of coarse to fine on a device: `twofold.ukr.placing` and the scale, for tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold.engine.gpu.library import load_torch, saying_what_fits
from twofold.neighborhoods.gpu_neighbors import most_neighbors, nearest_among
from twofold.neighborhoods.gpu_tsne import affinities, descend, mixed
from twofold.neighborhoods.tsne import MAX_TSNE_DIMENSIONS
from twofold.ukr.gpu_objective import DeviceReconstruction, scaled_start
from twofold.ukr.objective import Problem, typical_spacing
from twofold.ukr.placing import PLACING_NEIGHBORS, PLACING_REACH, Tell, Tsne, place, refine
from twofold.ukr.starts import Candidates, Start, standardize

if TYPE_CHECKING:
    from torch import Tensor


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
    torch = load_torch()
    Y, few = objective.tensor(candidates.Y), candidates.embedded[name]
    chosen, X = torch.as_tensor(candidates.chosen, device=Y.device), objective.tensor(few)
    distances, nearest = nearest_among(Y, Y[chosen], PLACING_NEIGHBORS)
    placed = place(X, distances, nearest, PLACING_REACH * typical_spacing(few))
    placed[chosen] = X
    if name == "tsne" and refines:
        tsne = _tsne_of_all(Y, candidates.seed)
        around = distances, chosen[nearest]
        placed = refine(placed - placed.mean(dim=0), X, around, tsne, tell)
    return objective.tensor(standardize(name, placed.cpu().numpy()))


def _tsne_of_all(Y: Tensor, seed: int) -> Tsne:
    return Tsne(
        lambda k: most_neighbors(Y, k, seed),
        lambda table, perplexity: affinities(table[0], table[1], perplexity),
        mixed,
        descend,
    )
