"""How everything public is used: one function for each estimator and function, on any input.

A use either comes to its end, having checked that results are finite and have the right shape, or
raises: a refusal where the input was to blame (see `refusals`), an AssertionError that says which
result was wrong, or whatever else happened, which is a finding, too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.families import FAMILIES

import twofold
from dependability.odd_tables import Recipe, make_new_rows, make_table, make_weights
from dependability.refusals import is_refusal
from twofold import metrics, neighbors, selection
from twofold.contract import TwoWayModel


@dataclass(frozen=True)
class Situation:
    """What a use is given: a table, weights of its rows, new rows, and a recipe for the rest."""

    recipe: Recipe
    table: Any
    weights: Any
    new: Any

    @classmethod
    def of(cls, recipe: Recipe) -> Situation:
        """Return the situation that a recipe describes."""
        return cls(recipe, make_table(recipe), make_weights(recipe), make_new_rows(recipe))

    @property
    def labels(self) -> Any:
        """Classes of the rows: numbers, text or whether."""
        numbers = np.arange(self.recipe.rows) % (1 + self.recipe.seed % 4)
        return [numbers, numbers.astype(str), numbers > 0][self.recipe.seed % 3]

    @property
    def targets(self) -> Any:
        """What a regression is to predict."""
        return np.random.default_rng(self.recipe.seed).normal(size=(self.recipe.rows, 2))

    @property
    def picture(self) -> Any:
        """A latent point for each row; now and then of an odd size, too."""
        size = [1.0, 1.0, 1e-200, 1e200, 0.0][self.recipe.seed % 5]
        return size * np.random.default_rng(self.recipe.seed).normal(size=(self.recipe.rows, 2))


Use = Callable[[Situation], None]

BEYOND_SQUARES = ("1e150", "1e200", "1e300", "1.7e308", "each column its own", "one row at 1e300")


def check_result(name: str, result: Any, shape: tuple[int, ...] | None = None) -> None:
    """Raise AssertionError unless a result is finite and of that shape."""
    numbers = np.asarray(result)
    assert shape is None or numbers.shape == shape, f"{name}: shape {numbers.shape}, not {shape}"
    if numbers.dtype.kind == "f":
        odd = int((~np.isfinite(numbers)).sum())
        assert not odd, f"{name}: {odd} of {numbers.size} not finite"


def after_fit(name: str, call: Callable[[], Any], shape: tuple[int, ...]) -> Any:
    """Return what a fitted model answers about its own rows: it has no reason to refuse."""
    try:
        result = call()
    except (ValueError, TypeError) as error:
        if is_refusal(error):
            raise AssertionError(f"fit took the rows, {name} does not: {error}") from error
        raise
    check_result(name, result, shape)
    return result


def unless_refused(name: str, call: Callable[[], Any], shape: tuple[int, ...]) -> None:
    """Check what comes of rows or places a model has never seen; it may refuse them."""
    try:
        result = call()
    except (ValueError, TypeError) as error:
        if not is_refusal(error):
            raise
    else:
        check_result(name, result, shape)


# ---- two-way models ------------------------------------------------------------------------------


def use_contract(model: TwoWayModel, given: Situation, *, keeps_places: bool = True) -> None:
    """Use everything that a fitted model offers."""
    X, table = model.embedding_, given.table
    n, q, D = len(X), X.shape[1], model.n_features_in_
    check_result("embedding_", X, (given.recipe.rows, q))
    placed = after_fit("transform", lambda: model.transform(table), (n, q))
    assert not keeps_places or (placed == X).all(), "transform(training rows) is not embedding_"
    for name in ("reconstruct", "complete"):
        after_fit(name, lambda name=name: getattr(model, name)(table), (n, D))
    # UKR fits rows whose squared errors no number can hold, and says so when asked for these.
    ask = unless_refused if given.recipe.size in BEYOND_SQUARES else after_fit
    ask("score_samples", lambda: model.score_samples(table), (n,))
    ask("score", lambda: model.score(table), ())
    use_places(model, X, "of training rows", after_fit)
    after_fit("sample", lambda: model.sample(3, random_state=0), (3, D))
    use_new_rows(model, given.new, (q, D))
    spread = np.ptp(X, axis=0) + 1
    for name, size in {"near": 0.3, "far": 30.0, "very far": 1e30, "farthest": 1e300}.items():
        with np.errstate(over="ignore"):
            places = (X[:2] + spread * size).astype(X.dtype)
        use_places(model, places, name, unless_refused)
    check_kept(model, table, X if keeps_places else placed)


def use_places(model: TwoWayModel, X: Any, where: str, ask: Callable[..., Any]) -> None:
    """Use everything that takes latent points."""
    if not np.isfinite(X).all():
        return  # beyond what its precision can say
    n, q, D = len(X), X.shape[1], model.n_features_in_
    shapes = {
        "inverse_transform": (n, D),
        "density": (n,),
        "in_domain": (n,),
        "jacobian": (n, D, q),
        "magnification": (n,),
    }
    for name, shape in shapes.items():
        # A product of slopes, each of which may be as large as numbers go, may be refused.
        ask = unless_refused if name == "magnification" else ask
        ask(f"{name} at places {where}", lambda name=name: getattr(model, name)(X), shape)


def use_new_rows(model: TwoWayModel, new: Any, size: tuple[int, int]) -> None:
    """Use everything that takes rows."""
    m, (q, D) = len(new), size
    shapes = {
        "transform": (m, q),
        "reconstruct": (m, D),
        "complete": (m, D),
        "score_samples": (m,),
    }
    for name, shape in shapes.items():
        unless_refused(f"{name} of new rows", lambda name=name: getattr(model, name)(new), shape)


def check_kept(model: Any, table: Any, placed: Any) -> None:
    """Check that a saved model says the same when it is opened again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.twofold"
        model.save(path)
        again = twofold.load(path).transform(table)
    assert (again == placed).all(), "the opened model places rows elsewhere"


def fit_and_use(make: Callable[[], TwoWayModel]) -> Use:
    """Return the use of a two-way model."""

    def use(given: Situation) -> None:
        model = seeded(make()).fit(given.table, sample_weight=given.weights)
        use_contract(model, given)

    return use


def seeded(model: TwoWayModel) -> TwoWayModel:
    """Return a model that draws from its own seed, not from numpy's global random state."""
    names = [name for name in model.get_params() if name.endswith("random_state")]
    return model.set_params(**dict.fromkeys(names, 0))


def use_psom_grid(given: Situation) -> None:
    """Use a map of rows that were measured along a line."""
    model = twofold.PSOM(1, grid=(given.recipe.rows,)).fit_grid(given.table)
    if given.recipe.gaps in ("one row", "everything"):
        return  # nodes that were not measured are filled, but there is no row to place
    use_contract(model, given, keeps_places=False)


def use_psom_scattered(given: Situation) -> None:
    """Use a map of rows at known places."""
    model = twofold.PSOM(2, grid=(3, 3), smoothness=0.1, random_state=0)
    model.fit_scattered(given.picture, given.table, sample_weight=given.weights)
    use_contract(model, given, keeps_places=False)


def use_upgrade(given: Situation) -> None:
    """Use a picture that was given a way back."""
    model = twofold.upgrade(given.picture, given.table, sample_weight=given.weights)
    assert (model.embedding_ == given.picture).all(), "the picture was changed"
    # Equal rows that the picture shows at several places can have but one of them.
    rows = np.nan_to_num(make_table(replace(given.recipe, form="C")), nan=0.123)
    has_copies = len(np.unique(rows, axis=0)) < len(rows)
    use_contract(model, given, keeps_places=not has_copies)


# ---- estimators that go one way ------------------------------------------------------------------


def use_extension(given: Situation) -> None:
    """Use a kernel that was carried over to new rows."""
    model = twofold.KernelExtension("diffusion").fit(given.table)
    n, q = model.embedding_.shape
    check_result("embedding_", model.embedding_, (given.recipe.rows, q))
    placed = after_fit("transform", lambda: model.transform(given.table), (n, q))
    unless_refused("new rows", lambda: model.transform(given.new), (len(given.new), q))
    check_kept(model, given.table, placed)


def use_imputer(given: Situation) -> None:
    """Fill a table, and say between which values its gaps lie."""
    trees = bool(given.recipe.seed % 2)
    imputer = twofold.ManifoldImputer(trees=trees, max_iter=2, n_jobs=1, random_state=0)
    imputer.fit(given.table)
    shape = (given.recipe.rows, imputer.n_features_in_)
    after_fit("transform", lambda: imputer.transform(given.table), shape)
    after_fit("draws", lambda: imputer.draws(given.table, 2, random_state=0), (2, *shape))
    # Of a few rows no entry may be hidden, and how far off others are is unknown.
    unless_refused("intervals", lambda: imputer.intervals(given.table), (2, *shape))
    new = (len(given.new), shape[1])
    unless_refused("new rows", lambda: imputer.transform(given.new), new)
    unless_refused("intervals of new rows", lambda: imputer.intervals(given.new), (2, *new))


def predict_after(fit: Callable[[Situation], Any], name: str, columns: int = 0) -> Use:
    """Return the use of an estimator that predicts a label, or so many numbers, for each row."""

    def use(given: Situation) -> None:
        model, m = fit(given), len(given.new)
        wide = (columns,) if columns else ()
        n = given.recipe.rows
        after_fit(name, lambda: getattr(model, name)(given.table), (n, *wide))
        unless_refused("new rows", lambda: getattr(model, name)(given.new), (m, *wide))

    return use


def fit_classifier(make: Callable[[], Any]) -> Callable[[Situation], Any]:
    """Return the fit of a classifier that takes no weights."""
    return lambda given: make().fit(given.table, given.labels)


def fit_manifolds(given: Situation) -> Any:
    """Return manifolds of classes, their errors checked."""
    template = twofold.UKR(1, init="pca", max_iter=3, random_state=0)
    reject = 0.1 if given.recipe.seed % 2 else None
    model = twofold.ManifoldClassifier(template, reject=reject)
    model.fit(given.table, given.labels, sample_weight=given.weights)
    errors = after_fit(
        "decision_function",
        lambda: np.asarray(model.decision_function(given.table)).reshape(given.recipe.rows, -1),
        (given.recipe.rows, 1 if len(model.classes_) == 2 else len(model.classes_)),
    )
    assert len(errors) == given.recipe.rows
    return model


def fit_clusters(make: Callable[[], Any]) -> Callable[[Situation], Any]:
    """Return the fit of clusters, their centres checked."""

    def fit(given: Situation) -> Any:
        model = make().fit(given.table, sample_weight=given.weights)
        check_result("cluster_centers_", model.cluster_centers_)
        return model

    return fit


# ---- functions -----------------------------------------------------------------------------------


def use_compare(given: Situation) -> None:
    """Compare pictures, one of them made by hand."""
    candidates = {"pca": "pca", "isomap": "isomap", "unn": "unn", "picture": given.picture}
    found = selection.compare(given.table, candidates, n_neighbors=5, labels=given.labels)
    assert set(found.table.index) <= set(candidates)
    assert isinstance(found.reason, str)


def use_choose_dimension(given: Situation) -> None:
    """Find the number of dimensions."""
    choice = selection.choose_dimension(given.table)
    assert choice.dimension is None or choice.dimension >= 1


def use_metrics(given: Situation) -> None:
    """Score a picture, and rows by prototypes."""
    Y, X, k = given.table, given.picture, 2
    scores: dict[str, Callable[[], float]] = {
        "trustworthiness": lambda: metrics.trustworthiness(Y, X, n_neighbors=k),
        "continuity": lambda: metrics.continuity(Y, X, n_neighbors=k),
        "auc": lambda: metrics.coranking(Y, X).auc,
        "dsre": lambda: metrics.dsre(X, Y, n_neighbors=k),
        "e_nx": lambda: metrics.e_nx(Y, X, n_neighbors=k),
        "neighborhood_hit": lambda: metrics.neighborhood_hit(X, given.labels, n_neighbors=k),
        "quantization_error": lambda: metrics.quantization_error(Y, given.new),
        "reconstruction_error": lambda: metrics.reconstruction_error(Y, Y),
    }
    for name, score in scores.items():
        unless_refused(name, score, ())


def use_scores(given: Situation) -> None:
    """Score a picture by the slower scores, and improve it."""
    Y, X, line = given.table, given.picture, twofold.KernelPCA(1, kernel="linear")
    scores: dict[str, Callable[[], float]] = {
        "gp_evidence": lambda: selection.gp_evidence(Y, X, n_starts=1).nlml,
        "stability": lambda: selection.stability(line, Y, repeats=2).offset,
        "procrustes_distance": lambda: selection.procrustes_distance(Y, X),
    }
    for name, score in scores.items():
        unless_refused(name, score, ())
    unless_refused("refine", lambda: selection.refine(Y, X, max_iter=2).embedding, X.shape)


def _neighbors(name: str) -> Callable[[], Any]:
    return lambda: getattr(neighbors, name)()


USES: dict[str, Use] = {
    **{family.name: fit_and_use(family.make) for family in FAMILIES},
    "Scaled-UNN": fit_and_use(lambda: twofold.Scaled(twofold.UNN(2, random_state=0))),
    "Scaled-PSOM": fit_and_use(
        lambda: twofold.Scaled(twofold.PSOM(2, grid=(3, 3), random_state=0))
    ),
    "KernelPCA-linear": fit_and_use(lambda: twofold.KernelPCA(kernel="linear")),
    "SelectEmbedding": fit_and_use(
        lambda: twofold.SelectEmbedding(["pca", "isomap"], n_neighbors=5, random_state=0)
    ),
    "PSOM.fit_grid": use_psom_grid,
    "PSOM.fit_scattered": use_psom_scattered,
    "upgrade": use_upgrade,
    "KernelExtension": use_extension,
    "ManifoldClassifier": predict_after(fit_manifolds, "predict"),
    "NadarayaWatson": predict_after(
        lambda given: twofold.NadarayaWatson().fit(given.table, given.targets, given.weights),
        "predict",
        columns=2,
    ),
    "KHarmonicMeans": predict_after(
        fit_clusters(lambda: twofold.KHarmonicMeans(2, random_state=0)), "predict"
    ),
    "ConstructiveKMeans": predict_after(fit_clusters(twofold.ConstructiveKMeans), "predict"),
    "DistanceWeightedKNNRegressor": predict_after(
        lambda given: neighbors.DistanceWeightedKNNRegressor(2).fit(given.table, given.targets),
        "predict",
        columns=2,
    ),
    **{
        name: predict_after(fit_classifier(_neighbors(name)), "predict")
        for name in (
            "DistanceWeightedKNNClassifier",
            "ModelBasedKNN",
            "PropagatingNearestNeighbor",
        )
    },
    "ManifoldImputer": use_imputer,
    "ManifoldOutlierDetector": predict_after(
        lambda given: twofold.ManifoldOutlierDetector().fit(given.table), "decision_function"
    ),
    "compare": use_compare,
    "choose_dimension": use_choose_dimension,
    "metrics": use_metrics,
    "scores of embeddings": use_scores,
}
