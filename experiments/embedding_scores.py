"""Scores of LLE and ISOMAP embeddings (Harmeling 2007, section 7, Figures 1 to 6).

Eleven data sets, some of which LLE, ISOMAP or both cannot embed. Beside the Procrustes distance to
the true embedding, which needs the truth, stand scores that do not: the evidence of a Gaussian
process, and stability under resampling and noise.

The report gives no seeds and no formulas. Chosen here, so that neighbour graphs take shortcuts
where the report says they do:

spiral          (t + 0.2) (sin 4πt, cos 4πt), t in [0, 1], evenly covered; truth t; noise 0 and 0.12
small rolls     (t cos t, h, t sin t), t in [1.5π, 4.5π], h in [0, 21], uniform on the sheet; truth
                arc length and h; of 400 points those draws whose graph has no shortcut
blob, squares   standard normal in three dimensions, truth its first two; uniform in [-1, 1]²
                turned at random, with a hole of [-0.5, 0.5]²
large rolls     uniform on the sheet; "classic": t uniform, truth (t, h)
fish bowls      sphere below height 0.8, truth its stereographic projection from the top, a disc;
                uniform in the disc, or on the sphere

What the report calls sigvar and noivar are standard deviations: only so do its noivar agree
with its nlml (noisy spiral: noise of variance 0.70 alone would cost 0.5 log(2π 0.70) + 0.5 =
1.24 an entry, and the table has 890 / 800 = 1.11). Here they are compared with square roots.

A Gaussian process does not mind if an embedding is a smooth distortion of the truth; the Procrustes
distance does. "Left" is what remains of the truth after the best polynomial of degree 5.

``--formulas`` asks whether the unknown formulas can be why figures differ: each data set is drawn
by several formulas that fit the report's words, and a reported number counts as explained if it
lies between the least and the largest that these give, 10 % more on either side. Of the sets of
2,000 rows only Procrustes distances are taken, as their evidence takes minutes; ``--large 0``
leaves these sets out.

    python -m experiments.embedding_scores [trials] [--large trials] [--repeats R] [--formulas]
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.stats import ortho_group, spearmanr
from sklearn.manifold import Isomap, LocallyLinearEmbedding
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import PolynomialFeatures

from experiments import ledger
from experiments.table import middle, show
from twofold.datasets import make_spiral
from twofold.datasets.shapes import ROLL_HEIGHT, ROLL_TURN, SwissRoll
from twofold.selection import gp_evidence, procrustes_distance, stability, whiten

METHODS = ("LLE", "ISOMAP")
SCORES = ("Procrustes", "nlml", "width", "sigvar", "noivar")
DEGREE = 5
PERTURBATIONS = {
    "bootstrap": {"by": "bootstrap"},
    "noise 0.3": {"by": "noise", "noise": 0.3},
    "noise 0.6": {"by": "noise", "noise": 0.6},
}
SPIRAL_NOISE, BOWL_TOP = 0.12, 0.8


class Data(NamedTuple):
    """Rows Y (n, D), the true embedding Z (n, q), and the angle (n,) of rows on windings."""

    Y: np.ndarray
    Z: np.ndarray
    angle: np.ndarray | None = None


def spiral(n: int, noise: float, seed: int) -> Data:
    sample = make_spiral(n, noise=noise, random_state=seed)
    return Data(sample.Y, sample.latent, 4 * np.pi * sample.latent[:, 0])


def other_spiral(n: int, noise: float, inner: float, turns: float, seed: int) -> Data:
    """Draw from (t + inner) (sin, cos)(2π turns t), t uniform and sorted."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.random(n))
    angle = 2 * np.pi * turns * t
    Y = (t + inner)[:, None] * np.column_stack([np.sin(angle), np.cos(angle)])
    return Data(Y + noise * rng.normal(size=Y.shape), t[:, None], angle)


def roll(
    n: int, is_uniform: bool, seed: int | np.random.Generator, height: float = ROLL_HEIGHT
) -> Data:
    rng = np.random.default_rng(seed)
    height = rng.uniform(0, height, size=n)
    if not is_uniform:
        t = rng.uniform(*ROLL_TURN, size=n)
        Z = np.column_stack([t, height])
        return Data(SwissRoll().point(Z), Z, t)
    ends = arc_length(np.array(ROLL_TURN))
    length = rng.uniform(*ends, size=n)
    nodes = np.linspace(*ROLL_TURN, 10_000)
    t = np.interp(length, arc_length(nodes), nodes)
    Y = SwissRoll().point(np.column_stack([t, height]))
    return Data(Y, np.column_stack([length, height]), t)


def count_shortcuts(data: Data, k: int) -> int:
    """Return how many neighbours are half a turn or more away along the windings."""
    if data.angle is None:
        return 0
    i, j = kneighbors_graph(data.Y, k).nonzero()
    return int((np.abs(data.angle[i] - data.angle[j]) > np.pi).sum())


def sound_roll(n: int, k: int, seed: int) -> Data:
    """Return the first draw whose graph of k neighbours takes no shortcut; about every other."""
    rng = np.random.default_rng(seed)
    while count_shortcuts(data := roll(n, True, rng), k):
        pass
    return data


def arc_length(t: np.ndarray) -> np.ndarray:
    """Length of the curve (t cos t, t sin t) from its origin."""
    return (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2


def blob(n: int, seed: int) -> Data:
    Y = np.random.default_rng(seed).normal(size=(n, 3))
    return Data(Y, Y[:, :2])


def square(n: int, hole: float, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1, 1, size=(4 * n, 2))
    Z = Z[np.abs(Z).max(axis=1) >= hole][:n]
    return Data(Z @ ortho_group.rvs(3, random_state=rng)[:2], Z)


def fish_bowl(n: int, is_uniform: bool, seed: int, top: float = BOWL_TOP) -> Data:
    rng = np.random.default_rng(seed)
    azimuth = rng.uniform(0, 2 * np.pi, size=n)
    # With theta from the bottom the projection from the top has radius tan(theta / 2).
    if is_uniform:
        radius = np.tan(np.arccos(-top) / 2) * np.sqrt(rng.random(n))
        theta = 2 * np.arctan(radius)
    else:
        theta = np.arccos(rng.uniform(-top, 1, size=n))
        radius = np.tan(theta / 2)
    Z = np.column_stack([np.cos(azimuth), np.sin(azimuth)])
    Y = np.column_stack([np.sin(theta)[:, None] * Z, -np.cos(theta)])
    return Data(Y, radius[:, None] * Z)


class Case(NamedTuple):
    """A data set: how it is drawn from a seed, and the neighbours of its graph."""

    name: str
    draw: Callable[[int], Data]
    n_neighbors: int
    is_failure: bool = False
    is_large: bool = False


# Of LLE and of ISOMAP: Procrustes distance, nlml, width, sigvar, noivar.
REPORTED = {
    "noisy spiral": (
        (0.76914, 890.0938, 0.25662, 0.61935, 0.70246),
        (0.99662, 880.4318, 0.34146, 0.69599, 0.69962),
    ),
    "spiral": (
        (0.016086, -6198.4008, 0.10483, 0.5841, 2.2109e-05),
        (0.017243, -7263.0611, 0.38439, 0.84122, 1.5671e-05),
    ),
    "undersampled roll": (
        (0.82196, 287.893, 0.49121, 0.95262, 0.40877),
        (0.75055, 264.9918, 0.41378, 0.93925, 0.33329),
    ),
    "roll, 400": (
        (0.31727, -512.666, 0.42306, 3.9455, 0.073515),
        (0.030654, -1220.4645, 0.61248, 1.1221, 0.057237),
    ),
    "blob": (
        (0.60062, 1081.6954, 5.0058, 2.3292, 0.57605),
        (0.59199, 1094.3383, 15.077, 6.3859, 0.58514),
    ),
    "square": (
        (0.0016892, -5487.522, 1.2314, 0.86211, 0.0014166),
        (0.0019481, -2483.3359, 1.4083, 1.1214, 0.024187),
    ),
    "square with hole": (
        (0.0041376, -3782.1966, 0.89443, 0.85311, 0.00095137),
        (0.0059498, -1717.2723, 0.58406, 0.86816, 0.016316),
    ),
    "uniform roll": (
        (0.017211, -33093.2119, 0.42351, 0.72068, 0.00048579),
        (0.0015772, -14377.6287, 0.3172, 0.58185, 0.014584),
    ),
    "classic roll": (
        (0.15967, -27180.8851, 0.46517, 0.96465, 0.0017158),
        (0.013028, -14689.2611, 0.31701, 0.61964, 0.013712),
    ),
    "uniform fish bowl": (
        (0.010063, -17702.4822, 0.20999, 0.45094, 0.0049896),
        (0.24375, 1517.6244, 0.33446, 1.1383, 0.27527),
    ),
    "fish bowl": (
        (0.776, 5181.2392, 1.0127, 0.80622, 0.56249),
        (0.25521, 4144.5873, 0.43557, 0.77524, 0.45898),
    ),
}

CASES = (
    Case("noisy spiral", lambda seed: spiral(400, SPIRAL_NOISE, seed), 8, is_failure=True),
    Case("spiral", lambda seed: spiral(400, 0.0, seed), 8),
    Case("undersampled roll", lambda seed: roll(100, True, seed), 6, is_failure=True),
    Case("roll, 400", lambda seed: sound_roll(400, 6, seed), 6),
    Case("blob", lambda seed: blob(400, seed), 8, is_failure=True),
    Case("square", lambda seed: square(400, 0.0, seed), 8),
    Case("square with hole", lambda seed: square(400, 0.5, seed), 10),
    Case("uniform roll", lambda seed: roll(2000, True, seed), 12, is_large=True),
    Case("classic roll", lambda seed: roll(2000, False, seed), 12, is_large=True),
    Case("uniform fish bowl", lambda seed: fish_bowl(2000, True, seed), 12, is_large=True),
    Case(
        "fish bowl", lambda seed: fish_bowl(2000, False, seed), 12, is_failure=True, is_large=True
    ),
)


def with_third_direction(data: Data) -> Data:
    """Add rounding noise, which whitening blows up to a direction of its own."""
    rng = np.random.default_rng(0)
    return data._replace(Y=data.Y + 1e-15 * rng.normal(size=data.Y.shape))


SPIRALS = [(inner, turns) for inner in (0.1, 0.2, 0.5) for turns in (1.5, 2.0, 3.0)]
HEIGHTS = (10.0, 21.0, 30.0)
TOPS = (0.6, 0.7, 0.8, 0.9)
# Other formulas that fit the words of the report.
FORMULAS: dict[str, list[Callable[[int], Data]]] = {
    "noisy spiral": [
        partial(other_spiral, 400, noise, *shape)
        for shape in SPIRALS[1:8:3]
        for noise in (0.1, 0.2)
    ],
    "spiral": [partial(other_spiral, 400, 0.0, *shape) for shape in SPIRALS],
    "undersampled roll": [partial(roll, 100, even, height=h) for even in (1, 0) for h in HEIGHTS],
    "roll, 400": [partial(roll, 400, even, height=h) for even in (1, 0) for h in HEIGHTS],
    "blob": [partial(blob, 400)],
    "square": [
        lambda seed: square(400, 0.0, seed),
        lambda seed: with_third_direction(square(400, 0.0, seed)),
    ],
    "square with hole": [partial(square, 400, hole) for hole in (0.3, 0.4, 0.5, 0.6)],
    "uniform roll": [partial(roll, 2000, True, height=h) for h in HEIGHTS],
    "classic roll": [partial(roll, 2000, False, height=h) for h in HEIGHTS],
    "uniform fish bowl": [partial(fish_bowl, 2000, True, top=top) for top in TOPS],
    "fish bowl": [partial(fish_bowl, 2000, False, top=top) for top in TOPS],
}


def show_formulas(draws: int, *, are_large: bool) -> None:
    """Print the range of each score over formulas and draws, and whether it holds the report's."""
    rows, inside = [], {score: [0, 0] for score in ("Procrustes", "nlml", "noivar")}
    for case in (case for case in CASES if are_large or not case.is_large):
        found: list[dict[str, list[float]]] = [{}, {}]
        for draw, seed in itertools.product(FORMULAS[case.name], range(draws)):
            data = draw(seed)
            for place, method in enumerate(embedders(case, data.Z.shape[1])):
                X = method.fit_transform(data.Y)
                scores = {"Procrustes": procrustes_distance(X, data.Z)}
                if not case.is_large:
                    evidence = gp_evidence(data.Y, X)
                    scores |= {"nlml": evidence.nlml, "noivar": evidence.noise_variance**0.5}
                for score, value in scores.items():
                    found[place].setdefault(score, []).append(value)
        for place, score in itertools.product((0, 1), inside):
            if values := found[place].get(score):
                reported = REPORTED[case.name][place][SCORES.index(score)]
                slack = 0.1 * abs(reported)
                is_inside = min(values) - slack <= reported <= max(values) + slack
                inside[score][0] += is_inside
                inside[score][1] += 1
                ends = f"{written(min(values))} to {written(max(values))}"
                words = (case.name, METHODS[place], score, written(reported), ends)
                rows.append((*words, "yes" if is_inside else "no"))
    header = ("data", "method", "score", "reported", "over formulas and draws", "inside")
    show(f"Other formulas, {draws} draws of each", header, rows)
    for score, (count, total) in inside.items():
        print(f"{score}: {count} of {total} reported numbers inside the range")


def embedders(case: Case, q: int) -> tuple[LocallyLinearEmbedding, Isomap]:
    """Return both methods; the dense solver of LLE, as ARPACK does not always converge."""
    k = case.n_neighbors
    return (
        LocallyLinearEmbedding(n_neighbors=k, n_components=q, eigen_solver="dense"),
        Isomap(n_neighbors=k, n_components=q),
    )


class Trial(NamedTuple):
    """Scores (2, 5) of LLE and ISOMAP; of each nlml per entry and what a smooth map leaves."""

    scores: np.ndarray
    per_entry: np.ndarray
    left: np.ndarray
    n_shortcuts: int


def left_by_smooth_map(X: np.ndarray, Z: np.ndarray) -> float:
    """Return the share of the true embedding that no polynomial of degree 5 of X explains."""
    terms = np.linalg.qr(PolynomialFeatures(DEGREE).fit_transform(whiten(X)))[0]
    Z = whiten(Z)
    residuals = Z - terms @ (terms.T @ Z)
    n, q = Z.shape
    return float((residuals**2).sum() / (q * (n - terms.shape[1])))


def run(case: Case, seed: int) -> Trial:
    """Embed one draw of the data and score both embeddings."""
    data = case.draw(seed)
    scores, per_entry, left = [], [], []
    for method in embedders(case, data.Z.shape[1]):
        X = method.fit_transform(data.Y)
        found = gp_evidence(data.Y, X)
        deviations = np.sqrt([found.signal_variance, found.noise_variance])
        scores.append([procrustes_distance(X, data.Z), found.nlml, found.width, *deviations])
        per_entry.append(found.nlml_per_entry)
        left.append(left_by_smooth_map(X, data.Z))
    shortcuts = count_shortcuts(data, case.n_neighbors)
    return Trial(np.array(scores), np.array(per_entry), np.array(left), shortcuts)


def agreement(one: list[np.ndarray], other: list[np.ndarray]) -> str:
    """Return in how many trials two scores (2,) order the methods in the same way."""
    agrees = np.sign(np.diff(one, axis=1)) == np.sign(np.diff(other, axis=1))
    return f"{agrees.sum()} of {len(one)}"


def show_scores(measured: dict[str, list[Trial]]) -> None:
    """Print reported beside measured scores."""
    rows = []
    for case in CASES:
        trials = measured[case.name]
        for place, method in enumerate(METHODS):
            values = np.array([trial.scores[place] for trial in trials]).T
            note_scores(f"{case.name}, {method}", REPORTED[case.name][place], values)
            pairs = zip(REPORTED[case.name][place], np.median(values, axis=1), strict=True)
            cells = [f"{written(reported)} | {written(median)}" for reported, median in pairs]
            between = f"{values[0].min():.2g} to {values[0].max():.2g}"
            rows.append((case.name if not place else "", method, *cells, between))
    header = ("data", "method", *SCORES, "Procrustes")
    show("Reported | measured, median; last column least to most", header, rows)


def note_scores(what: str, reported: tuple[float, ...], values: np.ndarray) -> None:
    """Put the distance, the evidence and the noise level of one method into the ledger."""
    for score in (0, 1, 4):
        place = f"Harmeling, Figures 1 to 6, {SCORES[score]}"
        ledger.figure(place, what, reported[score], values[score])


def written(value: float) -> str:
    """Write nlml in full and other scores with two digits."""
    return f"{value:.0f}" if abs(value) > 100 else f"{value:.2g}"


def show_order(measured: dict[str, list[Trial]]) -> None:
    """Print whether scores order the methods as the truth does, and shortcuts of the graphs."""
    rows = []
    for case in CASES:
        trials = measured[case.name]
        gaps = np.subtract(*REPORTED[case.name])
        distance, nlml, noise = (
            [trial.scores[:, score] for trial in trials] for score in (0, 1, 4)
        )
        left = [trial.left for trial in trials]
        if np.sign(gaps[0]) == np.sign(gaps[1]):
            agrees = np.diff(nlml, axis=1) * np.diff(distance, axis=1) > 0
            words = f"{case.name}: evidence orders LLE and ISOMAP as the Procrustes distance does"
            ledger.claim("Harmeling, section 7, conclusions", words, agrees.sum(), len(agrees))
        rows.append(
            (
                case.name,
                middle([trial.n_shortcuts for trial in trials]),
                "yes" if np.sign(gaps[0]) == np.sign(gaps[1]) else "no",
                agreement(nlml, distance),
                agreement(noise, distance),
                ", ".join(f"{value:.2g}" for value in np.median(left, axis=0)),
                agreement(nlml, left),
            )
        )
    header = ("data", "shortcuts", "reported", "nlml", "noivar", "left", "nlml as left")
    show("LLE and ISOMAP ordered as by Procrustes distance; left by a smooth map", header, rows)


def show_separation(measured: dict[str, list[Trial]]) -> None:
    """Print how scores of data sets that cannot be embedded lie to those of the others."""
    rows = []
    for name, value in (
        ("nlml per entry", lambda trial: trial.per_entry.min()),
        ("noivar", lambda trial: trial.scores[:, 4].min()),
    ):
        found: dict[bool, list[float]] = {False: [], True: []}
        for case in CASES:
            found[case.is_failure] += [value(trial) for trial in measured[case.name]]
        rows.append((name, middle(found[False]), middle(found[True])))
        held = sum(failure > max(found[False]) for failure in found[True])
        words = f"{name} separates what cannot be embedded from what can"
        ledger.claim("Harmeling, section 7, conclusions", words, held, len(found[True]))
    header = ("score of the better method", "the other data sets", "no embedding to find")
    show("Data sets, median (least to most)", header, rows)
    trials = [trial for case in CASES for trial in measured[case.name]]
    truths = {
        "Procrustes distance": np.concatenate([trial.scores[:, 0] for trial in trials]),
        "what a smooth map leaves": np.concatenate([trial.left for trial in trials]),
    }
    scores = {
        "nlml per entry": np.concatenate([trial.per_entry for trial in trials]),
        "noivar": np.concatenate([trial.scores[:, 4] for trial in trials]),
    }
    for score, values in scores.items():
        for truth, wanted in truths.items():
            print(f"Rank correlation of {score}, {truth}: {spearmanr(wanted, values)[0]:.2f}")


def show_stability(measured: dict[str, list[Trial]], repeats: int) -> None:
    """Print offsets of the first draw of each data set, and whether they order as the truth."""
    rows, truth, offsets = [], [], {name: [] for name in PERTURBATIONS}
    for case in CASES:
        data, distances = case.draw(0), measured[case.name][0].scores[:, 0]
        truth.append(distances)
        for name, options in PERTURBATIONS.items():
            methods = embedders(case, data.Z.shape[1])
            found = [stability(method, data.Y, repeats=repeats, **options) for method in methods]
            offsets[name].append([each.offset for each in found])
        pairs = [distances, *(found[-1] for found in offsets.values())]
        rows.append((case.name, *(f"{lle:.3f}, {isomap:.3f}" for lle, isomap in pairs)))
    header = ("data", "Procrustes", *PERTURBATIONS)
    show(f"Offset of LLE, ISOMAP; {repeats} repeats", header, rows)
    for name, found in offsets.items():
        isomap = (np.diff(found, axis=1) < 0).sum()
        correlation = spearmanr(np.ravel(truth), np.ravel(found))[0]
        same = int((np.diff(found, axis=1) * np.diff(truth, axis=1) > 0).sum())
        words = f"stability ({name}) does not order LLE and ISOMAP as the truth does"
        ledger.claim("Harmeling, section 7, stability", words, len(found) - same, len(found))
        print(
            f"{name}: as Procrustes {agreement(found, truth)}, ISOMAP more stable {isomap}, "
            f"rank correlation {correlation:.2f}"
        )


def main(trials: int, large_trials: int, repeats: int) -> None:
    """Print the tables."""
    # Where the neighbour graph falls apart, scikit-learn joins the parts and says so.
    warnings.simplefilter("ignore", UserWarning)
    measured = {
        case.name: [run(case, seed) for seed in range(large_trials if case.is_large else trials)]
        for case in CASES
    }
    show_scores(measured)
    show_order(measured)
    show_separation(measured)
    show_stability(measured, repeats)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Scores of LLE and ISOMAP embeddings.")
    parser.add_argument("trials", nargs="?", type=int, default=10)
    parser.add_argument("--large", type=int, default=3, help="trials of sets of 2,000 rows")
    parser.add_argument("--repeats", type=int, default=10, help="surrogates for stability")
    parser.add_argument("--formulas", action="store_true", help="only the other formulas")
    given = parser.parse_args()
    if given.formulas:
        warnings.simplefilter("ignore", UserWarning)
        show_formulas(given.trials, are_large=given.large > 0)
        raise SystemExit
    main(given.trials, given.large, given.repeats)
