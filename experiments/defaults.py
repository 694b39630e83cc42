"""What the library does with its defaults on the problems of the documents.

A document compares settings: kernels, penalties, losses. The page of reproduced tables also says
what somebody gets who sets nothing. Data, sizes and scores are those of the experiment beside
which a line stands; figures are the median over draws.

    python -m experiments.defaults [draws] [text of some tables]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from functools import cache, partial

import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import load_digits

from experiments import (
    appliances,
    embedding_scores,
    fish_bowl,
    half_circle,
    landmark_spiral,
    ledger,
    preimage_comparison,
    preimage_toys,
    press,
    psom_kinematics,
    s_triangle,
    single_figures,
    spiral_extensions,
    swiss_roll,
    unn_continuous,
    unn_evolution,
    unn_sorting,
    usps_digits,
)
from twofold import (
    PSOM,
    UKR,
    UNN,
    ConstructiveKMeans,
    DiffusionMap,
    KernelExtension,
    ManifoldClassifier,
    NadarayaWatson,
)
from twofold.array_types import FloatArray
from twofold.datasets import (
    Sample,
    make_fish_bowl,
    make_half_circle,
    make_s_triangle,
    make_spiral,
    make_swiss_roll,
)
from twofold.metrics import dsre
from twofold.preimages import Learned
from twofold.psom import Grid
from twofold.selection import gp_evidence, procrustes_distance, stability

Draws = int


def typical(values: Iterable[float], digits: int = 3) -> str:
    """Write the median."""
    return f"{np.median(list(values)):.{digits}g}"


def by(names: Iterable[object], values: Iterable[str]) -> str:
    """Write "name value" of each."""
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


def timed_fit(model: UKR, Y: FloatArray) -> tuple[UKR, float]:
    """Return a fitted model and the seconds of one core that it took."""
    began = time.process_time()
    return model.fit(Y), time.process_time() - began


# Klanke, chapter 3.


def bell(draws: Draws) -> str:
    """Return the largest error of curves through a bell."""
    x = np.linspace(-1, 1, 2001)[:, None]
    found = []
    for count in (7, 12):
        nodes = Grid.make([count], "chebyshev").places()
        curve = PSOM(1, grid=count).fit_grid(np.exp(-8 * nodes**2))
        found.append(f"{np.abs(curve.inverse_transform(x) - np.exp(-8 * x**2)).max():.3f}")
    return f"`PSOM(1)`, largest error: {by(('7 nodes', '12 nodes'), found)}"


def arm(draws: Draws) -> str:
    """Return the error of a map through all nodes."""
    model = psom_kinematics.make_map().fit_grid(psom_kinematics.wrist_at_nodes())
    return f"`PSOM(4)`: {psom_kinematics.tested(lambda _: model, draws).short()} mm"


def arm_with_gaps(draws: Draws) -> str:
    """Return the error of maps through nodes with gaps."""
    W = psom_kinematics.wrist_at_nodes()

    def model(draw: int, count: int) -> PSOM:
        gaps = W.copy()
        gaps[np.random.default_rng(draw).permutation(len(W))[:count]] = np.nan
        return psom_kinematics.make_map().fit_grid(gaps)

    counts = (40, 100, 400)
    found = [psom_kinematics.tested(partial(model, count=n), draws).short() for n in counts]
    names = [f"{count} missing" for count in counts]
    return f"`PSOM(4)` fills by least roughness: {by(names, found)} mm"


# Klanke, chapters 4 and 5.


def triangle(draws: Draws) -> str:
    """Return how much of the true triangle an affine map of the embedding explains."""
    shapes = []
    for seed in range(draws):
        data = make_s_triangle(1000, noise=0.1, random_state=seed)
        shapes.append(s_triangle.affine_fit(UKR(random_state=0).fit_transform(data.Y), data.latent))
    return f"`UKR(2)`: affine R² {typical(shapes)} (recovered above 0.95)"


def twos_time(draws: Draws) -> str:
    """Return the seconds of a map of the twos, start and training."""
    digits = usps_digits.load_usps()
    Y = digits.Y_train[digits.y_train == usps_digits.DIGIT]
    return (
        f"`UKR(2)`: {timed_fit(UKR(random_state=0), Y)[1]:.1f} s of processor time, starts included"
    )


def twos_and_ones(draws: Draws) -> str:
    """Return how many ones pass for twos."""
    digits = usps_digits.load_usps()
    twos, ones = (digits.Y_test[digits.y_test == digit] for digit in (usps_digits.DIGIT, 1))
    model = UKR(random_state=0).fit(digits.Y_train[digits.y_train == usps_digits.DIGIT])
    passing = np.mean(-model.score_samples(ones) < -model.score(twos))
    return f"`UKR(2)`: {passing:.1%} of the ones pass"


@cache
def classified_digits(draws: Draws) -> str:
    """Return the error of the classifier on USPS digits."""
    digits = usps_digits.load_usps()
    found = (
        ManifoldClassifier(UKR(random_state=0))
        .fit(digits.Y_train, digits.y_train)
        .predict(digits.Y_test)
    )
    error = 100 * np.mean(found != digits.y_test)
    return f"`ManifoldClassifier()`, two dimensions a digit: {error:.2f} %"


def circle_scores(draws: Draws, **data: object) -> tuple[float, float, float]:
    """Return the distance of points and manifold from the half circle, and the radius' bias."""
    found = []
    for seed in range(draws):
        sample = make_half_circle(100, random_state=seed, **data)
        model = UKR(1, random_state=0).fit(sample.Y)
        X = model.embedding_
        points = model.inverse_transform(X)
        places = np.linspace(X.min(), X.max(), half_circle.PLACES)[:, None]
        curve = model.inverse_transform(places)
        distances = [sample.distance(rows).mean() for rows in (points, curve)]
        found.append([*distances, -sample.signed_distance(points).mean()])
    points, curve, bias = np.median(found, axis=0)
    return float(points), float(curve), float(bias)


def circle(draws: Draws) -> str:
    """Return distances from the half circle at the least and the largest noise."""
    found = []
    for noise in (0.25, 1.0):
        points, curve, _ = circle_scores(draws, noise=noise)
        found.append(f"points {points:.3f}, manifold {curve:.3f}")
    names = ("gaussian 0.25:", "gaussian 1:")
    return "`UKR(1)`: " + "; ".join(map(" ".join, zip(names, found, strict=True)))


def circle_with_outliers(draws: Draws) -> str:
    """Return the distance of the manifold with outliers."""
    return f"`UKR(1)`: manifold {circle_scores(draws, noise=0.25, n_outliers=10)[1]:.3f}"


def circle_bias(draws: Draws) -> str:
    """Return the bias of the radius."""
    return f"`UKR(1)`: bias of the radius {circle_scores(draws, noise=0.5)[2]:+.2f}"


@cache
def spirals(draws: Draws) -> list[tuple[Sample, UKR]]:
    """Return noisy spirals with their models."""
    sets = [spiral_extensions.draw(seed) for seed in range(draws)]
    return [(data, UKR(1, random_state=0).fit(data.Y)) for data in sets]


def spiral_points(draws: Draws) -> str:
    """Return the distance of reconstructions from the spiral."""
    found = [spiral_extensions.of_reconstructions(*pair) for pair in spirals(draws)]
    distance, bias = (typical(column) for column in zip(*found, strict=True))
    return f"`UKR(1)`: distance {distance}, bias {bias}"


def spiral_manifold(draws: Draws) -> str:
    """Return distance, bias and roughness along the manifold."""
    found = [spiral_extensions.of_manifold(*pair)[:3] for pair in spirals(draws)]
    columns = [typical(column) for column in zip(*found, strict=True)]
    return f"`UKR(1)`, along the manifold: {by(('distance', 'bias', 'roughness'), columns)}"


@cache
def rolls(draws: Draws) -> list[swiss_roll.Outcome]:
    """Return noisy Swiss rolls with their models."""
    found = []
    for seed in range(draws):
        data = make_swiss_roll(1000, noise=0.5, random_state=seed)
        model, seconds = timed_fit(UKR(random_state=0), data.Y)
        F = model.inverse_transform(model.embedding_)
        distance, bias = data.distance(F).mean(), -data.signed_distance(F).mean()
        found.append(swiss_roll.Outcome(float(distance), float(bias), seconds, model, data))
    return found


def roll_points(draws: Draws) -> str:
    """Return the distance of reconstructions from the roll."""
    distance = typical(one.distance for one in rolls(draws))
    return f"`UKR(2)`, gaussian noise: distance {distance}"


def roll_manifold(draws: Draws) -> str:
    """Return the distance of the whole manifold from the roll."""
    distances, valid = zip(*map(swiss_roll.of_manifold, rolls(draws)), strict=True)
    return f"`UKR(2)`, gaussian noise: distance {typical(distances)}, valid {typical(valid)} %"


def roll_time(draws: Draws) -> str:
    """Return the seconds of a fit."""
    seconds = typical(one.seconds for one in rolls(draws))
    return f"`UKR(2)`: {seconds} s of processor time, starts included"


def spiral_landmark_time(draws: Draws) -> str:
    """Return the seconds of whole fits with landmarks and without."""
    Y = make_spiral(landmark_spiral.N, noise=landmark_spiral.NOISE, random_state=0).Y
    models = {
        "`UKR(1)`": UKR(1, random_state=0),
        "`UKR(1, landmarks=50)`": UKR(1, landmarks=50, random_state=0),
    }
    found = [f"{timed_fit(model, Y)[1]:.1f} s" for model in models.values()]
    return f"whole fits: {by(models, found)}"


def bowl_landmark_time(draws: Draws) -> str:
    """Return the seconds of a whole fit with landmarks."""
    Y = make_fish_bowl(fish_bowl.N, noise=fish_bowl.NOISE, random_state=0).Y
    found = [
        f"{timed_fit(UKR(landmarks=count, random_state=0), Y)[1]:.1f} s" for count in (100, 200)
    ]
    return f"whole fits: {by(('`UKR(landmarks=100)`', '`UKR(landmarks=200)`'), found)}"


# Kramer.


@cache
def appliance_classes(draws: Draws) -> str:
    """Return the error rate on made-up loads."""
    rates = []
    for seed in range(draws):
        X, y, X_test, y_test = appliances.split("1/3", seed)
        rates.append(
            np.mean(ManifoldClassifier(UKR(random_state=0)).fit(X, y).predict(X_test) != y_test)
        )
    return f"`ManifoldClassifier()` trained on 1/3: {typical(rates)}"


def sorted_error(draw: unn_sorting.Draw, k: int, draws: Draws) -> str:
    """Return the error of rows sorted into a line."""
    tables = [draw(seed) for seed in range(draws)]
    return typical(dsre(Y, UNN(1, random_state=0).fit_transform(Y), k) for Y in tables)


def robust_s(draws: Draws) -> str:
    """Return errors on the sheet of Table 5.2."""
    found = [
        sorted_error(unn_sorting.s_data(100, height=2.0, noise=noise), 5, draws)
        for noise in (0.0, 0.5)
    ]
    return f"`UNN(1)`: {by(('no noise', 'noise'), found)}"


def robust_digits(draws: Draws) -> str:
    """Return errors on the digits of Table 5.3."""
    found = [sorted_error(unn_sorting.images(digit), 10, draws) for digit in (5, 7)]
    return f"`UNN(1)`: {by(('fives', 'sevens'), found)}"


def few_rows(draws: Draws) -> str:
    """Return errors on the 30 and 50 rows of Table 6.1."""
    found = []
    for n in (30, 50):
        draw = unn_sorting.s_data(n, height=unn_evolution.HEIGHT)
        found += [sorted_error(draw, k, draws) for k in (2, 10)]
    names = [f"n = {n}, K = {k}:" for n in (30, 50) for k in (2, 10)]
    return f"`UNN(1)`: {by(names, found)}"


@cache
def continuous(draws: Draws) -> str:
    """Return error and kept neighbours of embeddings in the plane."""
    found = []
    for Y in unn_continuous.load().values():
        scores = [
            unn_continuous.scored(Y, 5, UNN(2, random_state=seed).fit_transform(Y))
            for seed in range(draws)
        ]
        error, kept = np.median(scores, axis=0)
        found.append(f"error {error:.2f}, E_NX {kept:.2f}")
    return "`UNN(2)`, K = 5: " + "; ".join(
        map(": ".join, zip(unn_continuous.load(), found, strict=True))
    )


def dimensions(draws: Draws) -> str:
    """Return the error by the number of latent dimensions."""
    Y = load_digits(n_class=6).data[: unn_continuous.N_ROWS]
    found = [
        typical(
            unn_continuous.scored(Y, 5, UNN(q, random_state=seed).fit_transform(Y))[0]
            for seed in range(draws)
        )
        for q in (2, 5)
    ]
    return f"`UNN(q)`, digits, K = 5: {by(('q = 2', 'q = 5'), found)}"


def clusters(draws: Draws) -> str:
    """Return how many clusters the threshold chosen by the library opens."""
    tables = {
        "0, 3, 7": np.isin(load_digits().target, (0, 3, 7)),
        "0 to 5": load_digits().target < 6,
    }
    models = [ConstructiveKMeans().fit(load_digits().data[rows]) for rows in tables.values()]
    found = [
        f"{len(model.cluster_centers_)} (threshold {model.threshold_:.3g})" for model in models
    ]
    words = [f"digits {name}: {count}" for name, count in zip(tables, found, strict=True)]
    return f"`ConstructiveKMeans()`: {'; '.join(words)}"


# Arias.


def reach(draws: Draws) -> str:
    """Return whether rows off the curve keep their order along it."""
    t, sides = preimage_toys.beside_curve()
    orders = []
    for seed in range(draws):
        model = DiffusionMap(1).fit(preimage_toys.Sinusoid.draw(150, 0.4, seed).Y)
        orders += [abs(spearmanr(t, model.transform(rows)[:, 0])[0]) for rows in sides]
    order = typical(orders)
    return (
        f"`DiffusionMap(1)`: rank correlation with the place on the curve, 2 away from it: {order}"
    )


def sine(draws: Draws) -> str:
    """Return the error of a kernel regression of the samples of figure 5.26."""
    errors, grid = [], np.linspace(0, 2 * np.pi, 201)
    for seed in range(draws):
        x, y = single_figures.noisy_sine(seed)
        model = NadarayaWatson().fit(x[:, None], y)
        errors.append(np.sqrt(np.mean((model.predict(grid[:, None]) - np.sin(grid)) ** 2)))
    return f"`NadarayaWatson()`: error {typical(errors)}"


def smooth_sine(draws: Draws) -> str:
    """Return the error of a regression whose width the library chooses."""
    errors, grid = [], np.linspace(0, 2 * np.pi, 200)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = np.sort(rng.uniform(0, 2 * np.pi, 40))
        model = NadarayaWatson().fit(x[:, None], np.sin(x) + 0.3 * rng.normal(size=40))
        errors.append(np.sqrt(np.mean((model.predict(grid[:, None]) - np.sin(grid)) ** 2)))
    return f"`NadarayaWatson()`, 40 points: error to the true curve {typical(errors)}"


def gaussian_preimages(draws: Draws) -> str:
    """Return the median error of the default method."""
    found = []
    for name, draw in preimage_comparison.SETS.items():
        models = []
        for seed in range(draws):
            Y = draw(seed)
            scale = preimage_comparison.neighbor_scale(Y, 10)
            models.append(preimage_toys.Extended.gaussian(Y, scale))
        medians = [
            typical((np.median(Learned().find(m.projected(q)).distance) for m in models), 2)
            for q in preimage_comparison.DIMENSIONS
        ]
        found.append(f"{name} {' and '.join(medians)}")
    return f"`Learned()`, the default way back; median error at q = 1 and 10: {'; '.join(found)}"


def diffusion_preimages(draws: Draws) -> str:
    """Return how far rows of a diffusion map move there and back."""
    found = []
    for draw in preimage_comparison.SETS.values():
        shares = []
        for seed in range(draws):
            Y = draw(seed)
            model = DiffusionMap(10).fit(Y)
            moved = np.linalg.norm(model.inverse_transform(model.transform(Y)) - Y, axis=1)
            shares.append(np.median(moved) / preimage_comparison.neighbor_scale(Y, 5))
        found.append(typical(shares, 2))
    moves = by(preimage_comparison.SETS, found)
    return f"`DiffusionMap(10)` there and back, median move in σ_k: {moves}"


def first_share(draws: Draws) -> str:
    """Return the share of the first eigenvalue of the diffusion map's kernel."""
    shares = []
    for seed in range(draws):
        Y = preimage_toys.Sinusoid.draw(300, 0.4, seed).Y
        values = DiffusionMap(20).fit(Y).eigenvalues_
        shares.append(values[0] / values.sum())
    return f"`DiffusionMap()`: first of 20 eigenvalues {typical(shares)} of their sum"


def denoised_sine(draws: Draws) -> str:
    """Return the distance to clean rows of what models make of a sinusoid."""
    models = {"`UKR(1)`": UKR(1, random_state=0), "`DiffusionMap(1)`": DiffusionMap(1)}
    before, after = [], {name: [] for name in models}
    for seed in range(draws):
        data = preimage_toys.Sinusoid.draw(300, 0.4, seed)
        before.append(preimage_toys.rms_distance(data.Y, data.clean))
        for name, model in models.items():
            there = model.fit_transform(data.Y)
            back = model.inverse_transform(there)
            after[name].append(preimage_toys.rms_distance(back, data.clean))
    found = [typical(values) for values in after.values()]
    return f"sinusoid, distance to clean rows: input {typical(before)}, {by(models, found)}"


def chosen_extension(draws: Draws) -> str:
    """Return the scale that the extension chooses, in units of the kernel's."""
    found = []
    for case in press.CASES.values():
        ratios = []
        for seed in range(draws):
            Y = case.draw(seed)
            scale = press.neighbor_scale(Y, case.neighbor)
            kernel = press.Diffusion(scale=scale)
            ratios.append(KernelExtension(kernel).fit(Y).bandwidth_ / scale)
        found.append(typical(ratios, 2))
    words = [f"{name}: {ratio}" for name, ratio in zip(press.CASES, found, strict=True)]
    return f"`KernelExtension()` goes by its coordinates, σ_h / σ_k: {'; '.join(words)}"


# Harmeling.


@cache
def scored_sets() -> dict[str, tuple[float, float, float]]:
    """Return distance, evidence and noise level of UKR on the small sets."""
    found = {}
    for case in embedding_scores.CASES:
        if not case.is_large:
            data = case.draw(0)
            X = UKR(data.Z.shape[1], random_state=0).fit_transform(data.Y)
            evidence = gp_evidence(data.Y, X)
            distance = procrustes_distance(X, data.Z)
            found[case.name] = distance, evidence.nlml, evidence.noise_variance**0.5
    return found


def scores_of_ukr(draws: Draws, place: int) -> str:
    """Return one score of each small set."""
    found = [embedding_scores.written(values[place]) for values in scored_sets().values()]
    return f"`UKR(q)`: {by(scored_sets(), found)}"


def steady_ukr(draws: Draws) -> str:
    """Return the offset of UKR under resampling."""
    case = next(case for case in embedding_scores.CASES if case.name == "square")
    data = case.draw(0)
    found = stability(UKR(data.Z.shape[1], max_iter=50, random_state=0), data.Y, repeats=4)
    return f"`UKR(2, max_iter=50)`, square: offset {found.offset:.3f}"


DEFAULTS: dict[str, Callable[[Draws], str]] = {
    "Klanke, Figures 3.2 and 3.3": bell,
    "Klanke, Table 3.1": arm,
    "Klanke, Table 3.2": arm_with_gaps,
    "Klanke, section 4.6.2": triangle,
    "Klanke, section 4.6.3, map of the twos, times": twos_time,
    "Klanke, Table 4.4": classified_digits,
    "Klanke, section 5.1.4, half circle": circle,
    "Klanke, section 5.1.4, half circle with outliers": circle_with_outliers,
    "Klanke, section 5.1.4, spiral": spiral_points,
    "Klanke, section 5.1.4, ε on the spiral": spiral_manifold,
    "Klanke, Tables 5.4 and 5.11": roll_points,
    "Klanke, Tables 5.5 and 5.6": roll_manifold,
    "Klanke, Figure 5.13": twos_and_ones,
    "Klanke, Figures 5.15 to 5.21": spiral_manifold,
    "Klanke, Table 5.7": classified_digits,
    "Klanke, section 5.3, times": spiral_landmark_time,
    "Klanke, Table 5.9": bowl_landmark_time,
    "Klanke, Figure 5.26": sine,
    "Klanke, Figures 5.27 to 5.30": circle_bias,
    "Klanke, Table 5.10": spiral_points,
    "Klanke, Table 5.12": roll_points,
    "Klanke, Table 5.13": roll_time,
    "Kramer, Table 3.1": appliance_classes,
    "Kramer, Figure 3.1": appliance_classes,
    "Kramer, Table 5.2": robust_s,
    "Kramer, Table 5.3": robust_digits,
    "Kramer, Table 6.1": few_rows,
    "Kramer, Table 6.3": continuous,
    "Kramer, Figure 7.1": continuous,
    "Kramer, Table 7.1": continuous,
    "Kramer, Table 7.2": continuous,
    "Kramer, Table 7.3": continuous,
    "Kramer, Figure 7.3": dimensions,
    "Kramer, section 7.5, clusters": clusters,
    "Arias, Figure 3.1": reach,
    "Arias, Figure 3.2": smooth_sine,
    "Arias, Figure 3.3": first_share,
    "Arias, Figures 4.1 to 4.8": gaussian_preimages,
    "Arias, Figures 4.9 to 4.12": diffusion_preimages,
    "Arias, Figure 4.17": first_share,
    "Arias, Figures 4.19 to 4.22": denoised_sine,
    "Arias, appendix C.3": chosen_extension,
    "Harmeling, Figures 1 to 6, Procrustes": partial(scores_of_ukr, place=0),
    "Harmeling, Figures 1 to 6, nlml": partial(scores_of_ukr, place=1),
    "Harmeling, Figures 1 to 6, noivar": partial(scores_of_ukr, place=2),
    "Harmeling, section 7, conclusions": partial(scores_of_ukr, place=1),
    "Harmeling, section 7, stability": steady_ukr,
}


def main(draws: Draws, text: str) -> None:
    """Print a line for every table and figure whose name has the text."""
    warnings.simplefilter("ignore", UserWarning)
    for place, measure in DEFAULTS.items():
        if text in place:
            words = measure(draws)
            ledger.default(place, words)
            print(f"{place}: {words}", flush=True)


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 2,
        sys.argv[2] if len(sys.argv) > 2 else "",
    )
