"""UKR through a data kernel: the same model in another space, and the way back from there."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pytest
from oracles import feature_space as oracle
from oracles.extensions import local_weights
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV

from twofold import UKR, load
from twofold.datasets import make_random_manifold
from twofold.features import RBF, Polynomial, Precomputed
from twofold.kernels import GAUSSIAN
from twofold.losses import EpsilonInsensitive
from twofold.regularization import LeaveKOut

DATA = make_random_manifold(70, 2, 6, noise=0.03, random_state=0)
Y, NEW = DATA.Y[:50], DATA.Y[50:]
PICTURE = PCA(2).fit_transform(Y)
WIDE = np.random.default_rng(5).normal(size=(6, 80))  # more columns than rows
QUICK = {"init": PICTURE, "max_iter": 15, "random_state": 0, "cutoff": 1e-12}
KERNELS = {
    "linear": "linear",
    "rbf": RBF(0.7),
    "poly": Polynomial(3, 0.5, 1.0),
    "l1": "l1",
    "mine": lambda A, B: np.cosh(A @ B.T / 4),
}
kernels = pytest.mark.parametrize("name", KERNELS)


def value(name):
    """Return the kernel as a plain function of two rows."""
    return {
        "linear": lambda a, b: float(a @ b),
        "rbf": lambda a, b: oracle.rbf(a, b, 0.7),
        "poly": lambda a, b: oracle.polynomial(a, b, 3, 0.5, 1.0),
        "l1": oracle.l1,
        "mine": lambda a, b: float(np.cosh(a @ b / 4)),
    }[name]


def l1_distances(A, B):
    return cdist(A, B, "cityblock")


@cache
def fitted(name):
    return UKR(data_kernel=KERNELS[name], **QUICK).fit(Y)


def weights_at(model, X, hide_self=False):
    """Return the weights (m, n) of the training rows, in the user's order, at latent points."""
    scaled = np.asarray(X) * model.latent_scale_
    references = model.embedding_ * model.latent_scale_
    hidden = [(j,) if hide_self else () for j in range(len(scaled))]
    return np.array(
        [
            local_weights(x, references, hidden=gone, F=GAUSSIAN.value)
            for x, gone in zip(scaled, hidden, strict=True)
        ]
    )


def kernel_distance(name, y, B):
    """Return ``E(x) = k(y, y) - 2 k_yᵀ b + bᵀ K b`` (m,) for rows of weights B (m, n)."""
    k = value(name)
    K, k_y = oracle.pairs(k, Y, Y), np.array([k(y, row) for row in Y])
    return k(y, y) - 2 * B @ k_y + np.einsum("mi,ij,mj->m", B, K, B)


# ---- one model, several ways to say it -----------------------------------------------------------


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("options", [{}, {"degree": 1}, {"regularization": LeaveKOut(3)}], ids=str)
def test_the_linear_kernel_is_data_space(wide, options):
    train, new = (Y @ WIDE, NEW @ WIDE) if wide else (Y, NEW)
    plain = UKR(**QUICK, **options).fit(train)
    linear = UKR(data_kernel="linear", **QUICK, **options).fit(train)
    assert linear.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    near = {"rtol": 1e-5, "atol": 1e-5 * np.abs(plain.embedding_).max()}
    np.testing.assert_allclose(linear.embedding_, plain.embedding_, **near)
    np.testing.assert_allclose(linear.transform(new), plain.transform(new), **near)
    np.testing.assert_allclose(linear.reconstruct(new), plain.reconstruct(new), rtol=1e-4)
    np.testing.assert_allclose(linear.score_samples(new), plain.score_samples(new), rtol=1e-4)


def test_the_linear_kernel_chooses_the_same_start():
    options = QUICK | {"init": "pca"}
    plain, linear = UKR(**options).fit(Y), UKR(data_kernel="linear", **options).fit(Y)
    assert linear.starts_["pca"] == pytest.approx(plain.starts_["pca"], rel=1e-6)
    assert linear.objective_ == pytest.approx(plain.objective_, rel=0.05)


def test_a_matrix_of_products_is_the_linear_kernel():
    linear = fitted("linear")
    model = UKR(data_kernel="precomputed", **QUICK).fit(Y @ Y.T)
    assert model.objective_ == pytest.approx(linear.objective_, rel=1e-9)
    np.testing.assert_allclose(model.embedding_, linear.embedding_, atol=1e-9)
    np.testing.assert_allclose(model.transform(NEW @ Y.T), linear.transform(NEW), atol=1e-7)


def test_distances_are_the_linear_kernel():
    linear = fitted("linear")
    model = UKR(data_kernel="precomputed_distance", **QUICK).fit(cdist(Y, Y))
    assert model.objective_ == pytest.approx(linear.objective_, rel=1e-9)
    np.testing.assert_allclose(model.embedding_, linear.embedding_, atol=1e-9)
    np.testing.assert_allclose(model.transform(cdist(NEW, Y)), linear.transform(NEW), atol=1e-7)
    np.testing.assert_allclose(
        model.score_samples(cdist(NEW, Y)), linear.score_samples(NEW), rtol=1e-6
    )


def test_roots_of_l1_distances_are_the_l1_kernel():
    l1 = fitted("l1")
    roots, new = np.sqrt(l1_distances(Y, Y)), np.sqrt(l1_distances(NEW, Y))
    model = UKR(data_kernel="precomputed_distance", **QUICK).fit(roots)
    assert model.objective_ == pytest.approx(l1.objective_, rel=1e-9)
    np.testing.assert_allclose(model.embedding_, l1.embedding_, atol=1e-9)
    np.testing.assert_allclose(model.transform(new), l1.transform(NEW), atol=1e-7)
    np.testing.assert_allclose(model.score_samples(new), l1.score_samples(NEW), rtol=1e-6)


def test_a_matrix_that_is_only_conditionally_definite():
    """-½ times L1 distances takes the place of the l1 kernel: only differences count."""
    l1 = fitted("l1")
    model = UKR(data_kernel="precomputed", **QUICK).fit(-0.5 * l1_distances(Y, Y))
    assert model.objective_ == pytest.approx(l1.objective_, rel=1e-9)
    np.testing.assert_allclose(model.embedding_, l1.embedding_, atol=1e-9)


# ---- against the formulas ------------------------------------------------------------------------


@kernels
def test_the_objective_is_the_trace_formula(name):
    """``R = 1/n tr(B̄ᵀ G B̄)`` with ``B̄ = B - I`` (Klanke 2007, eq. 4.57), leave-one-out."""
    model = fitted(name)
    B = weights_at(model, model.embedding_, hide_self=True) - np.eye(len(Y))
    G = oracle.pairs(value(name), Y, Y)
    assert model.objective_ == pytest.approx(np.trace(B @ G @ B.T) / len(Y), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n == "rbf" else [pytest.mark.slow]) for n in KERNELS],
)
def test_projection_is_the_minimum_of_the_kernel_distance(name):
    model = fitted(name)
    low, high = model.embedding_.min(axis=0), model.embedding_.max(axis=0)
    margin = 0.05 * (high - low)
    grid = np.stack(np.meshgrid(*np.linspace(low - margin, high + margin, 70).T), axis=-1)
    grid = grid.reshape(-1, 2)[model.in_domain(grid.reshape(-1, 2))]
    B = weights_at(model, grid)
    for y in NEW[:6]:
        x = model.transform(y[None])
        found = kernel_distance(name, y, weights_at(model, x))[0]
        on_grid = kernel_distance(name, y, B)

        def distance(x, y=y):
            outside = 1e3 * (not model.in_domain(x[None])[0])
            return kernel_distance(name, y, weights_at(model, x[None]))[0] + outside

        polished = minimize(distance, grid[on_grid.argmin()], method="Nelder-Mead").fun
        # At the border of the domain steps are only shortened, not led along it.
        at_border = model.density(x)[0] < 1.01 * model.domain_threshold_
        assert found <= on_grid.min() * (1.05 if at_border else 1.0) + 1e-9
        assert found == pytest.approx(polished, rel=0.05 if at_border else 1e-3, abs=1e-9)


@kernels
def test_scores_are_kernel_distances(name):
    model = fitted(name)
    B = weights_at(model, model.transform(NEW[:8]))
    expected = [kernel_distance(name, y, b[None])[0] for y, b in zip(NEW[:8], B, strict=True)]
    np.testing.assert_allclose(model.score_samples(NEW[:8]), -np.array(expected), rtol=1e-5)
    assert model.score(NEW[:8]) == pytest.approx(-np.mean(expected), rel=1e-5)


# ---- the way back --------------------------------------------------------------------------------


def weighted_median(values, weights):
    order = np.argsort(values)
    return values[order][np.searchsorted(np.cumsum(weights[order]), 0.5 * weights.sum())]


def test_the_way_back_of_l1_is_the_weighted_median():
    model = fitted("l1")
    X = np.concatenate([model.embedding_[:10], model.transform(NEW)])
    B, images = weights_at(model, X), model.inverse_transform(X)
    for b, image in zip(B, images, strict=True):
        expected = [weighted_median(Y[:, d], b) for d in range(Y.shape[1])]
        np.testing.assert_allclose(image, expected)
        assert all(image[d] in Y[:, d] for d in range(Y.shape[1]))


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_the_way_back_is_the_nearest_row(name):
    model = fitted(name)
    X, k, rng = model.transform(NEW[:5]), value(name), np.random.default_rng(0)
    for b, image in zip(weights_at(model, X), model.inverse_transform(X), strict=True):
        found = oracle.error(k, image, Y, b)
        assert found <= oracle.error(k, b @ Y, Y, b) + 1e-9
        for step in (1e-3, 1e-1):
            other = image + step * rng.normal(size=(10, Y.shape[1]))
            assert all(found <= oracle.error(k, row, Y, b) + 1e-9 for row in other)


@pytest.mark.parametrize("name", ["linear", "mine"])
def test_otherwise_it_is_the_weighted_mean(name):
    model = fitted(name)
    X = model.transform(NEW)
    np.testing.assert_allclose(model.inverse_transform(X), weights_at(model, X) @ Y, atol=1e-9)


class TestPrecomputed:
    @staticmethod
    def make(kind, **options):
        matrix = Y @ Y.T if kind == "precomputed" else cdist(Y, Y)
        return UKR(data_kernel=kind, **QUICK | options).fit(matrix)

    @staticmethod
    def values(kind, rows):
        return rows @ Y.T if kind == "precomputed" else cdist(rows, Y)

    both = pytest.mark.parametrize("kind", ["precomputed", "precomputed_distance"])

    @both
    def test_the_way_back_is_a_row_of_the_matrix(self, kind):
        model, X = self.make(kind), fitted("linear").transform(NEW)
        rows = fitted("linear").inverse_transform(X)
        np.testing.assert_allclose(model.inverse_transform(X), self.values(kind, rows), atol=1e-7)

    @both
    def test_there_and_back(self, kind):
        model = self.make(kind)
        np.testing.assert_array_equal(model.transform(self.values(kind, Y)), model.embedding_)
        X = np.concatenate([model.transform(self.values(kind, NEW)), model.embedding_[:10]])
        again = model.transform(model.inverse_transform(X))
        np.testing.assert_allclose(again, X, atol=1e-3 * np.ptp(model.embedding_))

    @both
    @pytest.mark.parametrize("last_is_a_copy", [False, True])
    def test_rows_that_occur_twice(self, kind, last_is_a_copy):
        twice = np.concatenate([np.arange(50), [3, 17, 17]])
        order = np.random.default_rng(0).permutation(len(twice))
        last = 52 if last_is_a_copy else 20
        order = np.append(order[order != last], last)
        rows, picture = Y[twice][order], PICTURE[twice][order]
        matrix = rows @ rows.T if kind == "precomputed" else cdist(rows, rows)
        # Products of equal rows differ by rounding with their place; they are meant to be equal.
        first = np.array([np.flatnonzero((rows == row).all(axis=1))[0] for row in rows])
        matrix = matrix[first][:, first]
        model = UKR(data_kernel=kind, **QUICK | {"init": picture}).fit(matrix)
        weights = np.ones(50)
        weights[[3, 17]] = 2, 3
        expected = UKR(data_kernel="linear", **QUICK).fit(Y, sample_weight=weights)
        near = {"atol": 1e-6 * np.abs(expected.embedding_).max()}
        np.testing.assert_allclose(model.embedding_, expected.embedding_[twice][order], **near)
        assert model.objective_ == pytest.approx(expected.objective_, rel=1e-6)
        new = NEW @ rows.T if kind == "precomputed" else cdist(NEW, rows)
        np.testing.assert_allclose(model.transform(new), expected.transform(NEW), **near)
        back = model.inverse_transform(model.embedding_)
        assert back.shape == matrix.shape
        np.testing.assert_allclose(back[:, first], back, atol=1e-9)

    @both
    @pytest.mark.parametrize("left_out", [[0, 7], [0, 7, 49]], ids=str)
    def test_rows_of_weight_zero(self, kind, left_out):
        weights = np.ones(50)
        weights[left_out] = 0
        model = UKR(data_kernel=kind, **QUICK).fit(self.values(kind, Y), sample_weight=weights)
        expected = UKR(data_kernel="linear", **QUICK).fit(Y, sample_weight=weights)
        near = {"atol": 1e-6 * np.abs(expected.embedding_).max()}
        np.testing.assert_allclose(model.embedding_, expected.embedding_, **near)
        np.testing.assert_allclose(
            model.transform(self.values(kind, NEW)), expected.transform(NEW), **near
        )

    @both
    def test_a_saved_model(self, kind, tmp_path):
        model, new = self.make(kind), self.values(kind, NEW)
        model.save(tmp_path / "model.twofold")
        for again in (load(tmp_path / "model.twofold"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(again.transform(new), model.transform(new))
            np.testing.assert_array_equal(again.reconstruct(new), model.reconstruct(new))
            np.testing.assert_array_equal(again.score_samples(new), model.score_samples(new))

    @pytest.mark.slow
    @both
    def test_cross_validation_cuts_both_sides(self, kind):
        options = {"init": "pca", "max_iter": 3}
        estimator = UKR(data_kernel=kind, **QUICK | options)
        search = GridSearchCV(estimator, {"max_iter": [0, 3]}, cv=2).fit(self.values(kind, Y))
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_tables_that_do_not_fit(self):
        matrix = Y @ Y.T
        hole = matrix.copy()
        hole[3, 4] = hole[4, 3] = np.nan
        crooked = matrix.copy()
        crooked[3, 4] += 1.0
        indefinite = matrix - 5 * np.eye(50)
        for bad, message in (
            (hole, "must be complete; got NaN in 2 places"),
            (matrix[:, :30], "got 50 rows and 30 columns"),
            (crooked, "must be symmetric"),
            (indefinite, "not conditionally positive definite"),
        ):
            with pytest.raises(ValueError, match=message):
                UKR(data_kernel="precomputed", **QUICK).fit(bad)

    def test_distances_that_do_not_fit(self):
        matrix = cdist(Y, Y)
        # No points lie at these distances: from a to c it is farther than by way of b.
        detour = matrix.copy()
        detour[0, 1] = detour[1, 0] = 100 * matrix.max()
        for bad, message in (
            (matrix + np.eye(50), "diagonal of a distance matrix must be zero"),
            (-matrix, "must not be negative"),
            (detour, "not conditionally positive definite"),
            (matrix[:, :30], "got 50 rows and 30 columns"),
        ):
            with pytest.raises(ValueError, match=message):
                UKR(data_kernel="precomputed_distance", **QUICK).fit(bad)

    @both
    def test_new_rows_that_do_not_fit(self, kind):
        model = self.make(kind)
        with pytest.raises(ValueError, match="30 features, but UKR is expecting 50"):
            model.transform(self.values(kind, NEW)[:, :30])
        hole = self.values(kind, NEW)
        hole[2, 3] = np.nan
        with pytest.raises(ValueError, match="complete rows"):
            model.transform(hole)

    @both
    def test_the_tag_says_that_rows_are_pairs(self, kind):
        tags = UKR(data_kernel=kind).__sklearn_tags__().input_tags
        assert (tags.pairwise, tags.allow_nan) == (True, False)
        assert not UKR(data_kernel="rbf").__sklearn_tags__().input_tags.pairwise

    def test_an_object_says_so_as_well(self):
        assert UKR(data_kernel=Precomputed()).__sklearn_tags__().input_tags.pairwise


class TestOtherCases:
    def test_missing_entries_are_explained(self):
        hole = Y.copy()
        hole[[2, 8], 1] = np.nan
        with pytest.raises(ValueError, match=r"2 of 50 have missing entries \(NaN\)"):
            UKR(data_kernel="l1", **QUICK).fit(hole)
        for method in (fitted("l1").transform, fitted("l1").score_samples):
            with pytest.raises(ValueError, match="complete rows"):
                method(hole)

    # Whether so few iterations reach the tolerances depends on the last digits.
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_the_smoothest_in_feature_space(self):
        extensions = []
        for eps in (0.5, 1.0):
            loss = EpsilonInsensitive(eps, "vector")
            model = UKR(data_kernel="l1", loss=loss, regularization="smoothest", **QUICK).fit(Y)
            extensions.append((model.embedding_ * model.latent_scale_).var(axis=0).sum())
        assert extensions[1] < extensions[0]

    @kernels
    def test_rows_alone_equal_rows_together(self, name):
        model = fitted(name)
        together = model.transform(NEW)
        for j in (0, 7):
            np.testing.assert_array_equal(model.transform(NEW[j : j + 1]), together[j : j + 1])
            np.testing.assert_array_equal(
                model.inverse_transform(together[j : j + 1]),
                model.inverse_transform(together)[j : j + 1],
            )
            np.testing.assert_array_equal(
                model.score_samples(NEW[j : j + 1]), model.score_samples(NEW)[j : j + 1]
            )

    def test_numbers_chosen_from_the_data_are_kept(self, tmp_path):
        model = UKR(data_kernel="rbf", **QUICK).fit(Y)
        assert model.data_kernel_.gamma > 0
        model.save(tmp_path / "model.twofold")
        again = load(tmp_path / "model.twofold")
        assert again.data_kernel_ == model.data_kernel_
        np.testing.assert_array_equal(again.reconstruct(NEW), model.reconstruct(NEW))

    def test_a_function_of_the_users_is_not_saved(self, tmp_path):
        with pytest.raises(TypeError, match="parameter 'data_kernel'"):
            fitted("mine").save(tmp_path / "model.twofold")

    def test_single_precision(self):
        model = UKR(data_kernel="l1", **QUICK).fit(Y.astype(np.float32))
        X = model.transform(NEW.astype(np.float32))
        assert X.dtype == model.inverse_transform(X).dtype == np.float32
        assert model.objective_ == pytest.approx(fitted("l1").objective_, rel=0.05)
