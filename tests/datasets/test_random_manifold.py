import numpy as np
import pytest
from scipy.spatial import cKDTree

from twofold.datasets import make_random_manifold

DIMENSIONS = [1, 2, 3, 4, 5]


def second_derivatives(manifold, X, v, h=1e-4):
    points = [manifold.point(X + step * v) for step in (-h, 0, h)]
    return np.linalg.norm(points[0] - 2 * points[1] + points[2], axis=1) / h**2


@pytest.mark.parametrize("q", DIMENSIONS)
def test_dimension_is_q_everywhere(q):
    sample = make_random_manifold(20, q, 20, random_state=q)
    h = 1e-6
    for x in sample.latent:
        steps = np.vstack([x, x + h * np.eye(q)])
        points = sample.manifold.point(steps)
        singular = np.linalg.svd((points[1:] - points[0]) / h, compute_uv=False)
        # The graph's Jacobian is (I, G): no direction of latent space is ever squeezed.
        assert len(singular) == q
        assert singular.min() > 1 - 1e-6


@pytest.mark.parametrize("q", DIMENSIONS)
def test_manifold_is_bent_out_of_every_low_dimensional_plane(q):
    clean = make_random_manifold(2000, q, 20, random_state=q).clean
    variances = np.linalg.eigvalsh(np.cov(clean.T))[::-1]
    # A curve of 19 waves of different lengths fills three directions well, a surface many more.
    assert variances[q] > 0.01
    assert variances[q + 1] > 0.001


@pytest.mark.parametrize("q", [1, 2, 5])
@pytest.mark.parametrize("curvature", [0.5, 4.0])
def test_curvature_is_the_rms_second_derivative(q, curvature):
    # So many waves that the average over them is near the expectation.
    sample = make_random_manifold(300, q, 700, curvature=curvature, random_state=q)
    v = np.random.default_rng(0).normal(size=(300, q))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    bends = second_derivatives(sample.manifold, sample.latent, v)
    assert np.sqrt((bends**2).mean()) == pytest.approx(curvature, rel=0.1)


def test_zero_curvature_is_flat():
    clean = make_random_manifold(200, 3, 20, curvature=0.0, random_state=0).clean
    variances = np.linalg.eigvalsh(np.cov(clean.T))[::-1]
    assert variances[2] > 0.2
    assert variances[3] < 1e-14  # rounding: 1e-16 seen


def test_full_dimension_is_a_rotated_cube():
    sample = make_random_manifold(50, 4, 4, random_state=0)
    lengths = np.linalg.norm(sample.latent, axis=1)
    np.testing.assert_allclose(np.linalg.norm(sample.clean, axis=1), lengths)
    assert sample.distance(sample.clean + 5).max() < 1e-13


def test_noise_has_its_standard_deviation():
    sample = make_random_manifold(5000, 2, 20, noise=0.03, random_state=0)
    np.testing.assert_allclose((sample.Y - sample.clean).std(axis=0), 0.03, rtol=0.06)


@pytest.mark.parametrize("q", [1, 2])
def test_distance_matches_brute_force(q):
    sample = make_random_manifold(200, q, 20, noise=0.05, random_state=q)
    side = np.linspace(-1.6, 1.6, 20_001 if q == 1 else 401)
    mesh = np.stack(np.meshgrid(*[side] * q, indexing="ij"), axis=-1).reshape(-1, q)
    brute, _ = cKDTree(sample.manifold.point(mesh)).query(sample.Y)
    distance = sample.distance(sample.Y)
    assert (distance <= brute + 1e-12).all()
    # Rows lie about 0.2 off; half a mesh cell, 0.006 long, then costs about 0.006^2 / 0.4.
    np.testing.assert_allclose(distance, brute, atol=2e-4)


@pytest.mark.parametrize("q", [0, 5])
def test_impossible_dimension_is_refused(q):
    with pytest.raises(ValueError, match=r"`q` must be in \[1, D = 4\]"):
        make_random_manifold(10, q, 4)


@pytest.mark.parametrize("curvature", [-1.0, np.nan])
def test_impossible_curvature_is_refused(curvature):
    with pytest.raises(ValueError, match="`curvature` must be a finite number of at least 0"):
        make_random_manifold(10, 2, 4, curvature=curvature)
