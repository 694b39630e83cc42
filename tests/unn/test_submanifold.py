import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from twofold.features import RBF, Linear
from twofold.model_files import read_model_file
from twofold.unn import UNN
from twofold.unn.constructive_k_means import ConstructiveKMeans
from twofold.unn.submanifold import CANDIDATE_KERNELS, SubmanifoldUNN

BLOBS, BLOB_OF = make_blobs(150, n_features=5, centers=4, random_state=1)


@pytest.fixture(scope="module")
def blobs():
    return SubmanifoldUNN(random_state=0).fit(BLOBS)


@pytest.fixture(scope="module")
def digits():
    Y = load_digits(n_class=6).data
    return Y, SubmanifoldUNN(threshold=43, order="given", refine=0, random_state=0).fit(Y)


def mean_distance(model):
    """Return the book's DSRE*: mean distance of rows, which are among their own neighbours."""
    images = model.inverse_transform(model.latent_)
    return float(np.linalg.norm(images - model.data_, axis=1).mean())


def test_clusters_are_those_of_constructive_k_means(digits):
    Y, model = digits
    expected = ConstructiveKMeans(43, order="given").fit(Y)
    assert len(model.cluster_centers_) == 6
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_allclose(model.cluster_centers_, expected.cluster_centers_)


def test_digits_are_reconstructed_as_well_as_in_the_book(digits):
    # Kramer (2013), Table 7.4: 14.49 ± 0.12 for K = 5, zeta = 43.
    Y, model = digits
    assert mean_distance(model) == pytest.approx(14.49, rel=0.05)
    refined = SubmanifoldUNN(threshold=43, order="given", random_state=0).fit(Y)
    assert mean_distance(refined) < 0.95 * mean_distance(model)


def test_clusters_do_not_overlap_on_the_map(blobs):
    X = blobs.embedding_
    sizes, gaps = [], []
    for code in range(4):
        own, others = X[blobs.labels_ == code], X[blobs.labels_ != code]
        sizes.append(np.ptp(own, axis=0).max())
        gaps.append(np.abs(own[:, None] - others).max(axis=2).min())
    assert min(gaps) >= 0.99 * max(sizes)


def test_each_cluster_is_the_map_of_its_own_unn():
    Y = BLOBS[:80]
    model = SubmanifoldUNN(1, search="exhaustive", shuffle=False, random_state=0).fit(Y)
    for code in np.unique(model.labels_):
        own = model.labels_ == code
        alone = UNN(1, search="exhaustive", shuffle=False).fit(Y[own])
        shifts = model.embedding_[own] - alone.embedding_
        np.testing.assert_allclose(shifts, shifts[0] * np.ones_like(shifts))


def test_way_back_stays_within_the_cluster(blobs):
    images = blobs.inverse_transform(blobs.embedding_ + 0.1)
    for code in range(4):
        own = BLOBS[blobs.labels_ == code]
        found = images[blobs.labels_ == code]
        assert (found >= own.min(axis=0) - 1e-9).all()
        assert (found <= own.max(axis=0) + 1e-9).all()


def test_way_back_of_clusters_smaller_than_the_neighbourhood():
    Y = np.concatenate([np.random.default_rng(0).normal(size=(40, 3)), np.full((2, 3), 50.0)])
    Y[-1] += 0.5
    model = SubmanifoldUNN(threshold=10.0, n_neighbors=5, random_state=0).fit(Y)
    assert len(model.cluster_centers_) == 2
    np.testing.assert_allclose(model.reconstruct(Y[-2:]), np.full((2, 3), 50.25))
    assert np.isfinite(model.objective_)
    assert np.isfinite(model.jacobian(model.embedding_[-2:])).all()


def test_row_alone_in_its_cluster():
    Y = np.concatenate([np.random.default_rng(0).normal(size=(30, 2)), [[90.0, 90.0]]])
    model = SubmanifoldUNN(threshold=10.0, random_state=0).fit(Y)
    np.testing.assert_allclose(model.reconstruct([[80.0, 85.0]]), [[90.0, 90.0]])


def test_objective_leaves_rows_out(blobs):
    # Straight from the definition: K nearest latent points of the same cluster, without the row.
    errors = []
    for i, x in enumerate(blobs.latent_):
        own = np.flatnonzero(blobs.clusters_ == blobs.clusters_[i])
        own = own[own != i]
        near = own[np.argsort(((blobs.latent_[own] - x) ** 2).sum(axis=1))[:5]]
        errors.append(((blobs.data_[near].mean(axis=0) - blobs.data_[i]) ** 2).sum())
    assert blobs.objective_ == pytest.approx(np.mean(errors), rel=1e-9)


def test_new_rows_go_to_their_cluster_and_the_nearest_image(blobs):
    rng = np.random.default_rng(1)
    new = BLOBS + 0.3 * rng.normal(size=BLOBS.shape)
    X = blobs.transform(new)
    gaps = ((X[:, None] - blobs.embedding_) ** 2).sum(axis=2)
    np.testing.assert_array_equal(blobs.labels_[gaps.argmin(axis=1)], blobs.labels_)
    images = blobs.inverse_transform(blobs.latent_)
    nearest = ((new[:, None] - images) ** 2).sum(axis=2).min(axis=1)
    assert (-blobs.score_samples(new) <= nearest + 1e-9).all()


def test_incomplete_rows_are_completed_from_their_cluster(blobs):
    holes = BLOBS.copy()
    holes[:, 0] = np.nan
    filled = blobs.complete(holes)
    # A guess from the cluster is far better than one from the whole column.
    assert ((filled[:, 0] - BLOBS[:, 0]) ** 2).mean() < 0.3 * BLOBS[:, 0].var()
    np.testing.assert_array_equal(filled[:, 1:], BLOBS[:, 1:])


def test_gaps_are_filled_before_clusters_are_sought():
    holes = np.random.default_rng(0).random(BLOBS.shape) < 0.1
    holes[:, 1] = False
    Y = np.where(holes, np.nan, BLOBS)
    model = SubmanifoldUNN(random_state=0).fit(Y)
    np.testing.assert_array_equal(np.isnan(model.data_).sum(), holes.sum())
    assert not np.isnan(model.filled_).any()
    assert adjusted_rand_score(BLOB_OF, model.labels_) > 0.95
    assert ((model.reconstruct(BLOBS) - BLOBS) ** 2).mean() < 0.1 * BLOBS.var(axis=0).mean()


def test_kernels_are_selected_by_error_in_data_space():
    model = SubmanifoldUNN(
        threshold=50.0, data_kernel="select", selection_size=30, shuffle=False, random_state=0
    ).fit(BLOBS)
    assert len(model.kernels_) == 1
    seed = np.random.RandomState(0).randint(2**31 - 1)
    errors = [
        UNN(2, search="gaussian", data_kernel=kernel, shuffle=False, random_state=seed)
        .fit(BLOBS[:30])
        .objective_
        for kernel in CANDIDATE_KERNELS
    ]
    assert model.kernels_[0] == CANDIDATE_KERNELS[int(np.argmin(errors))]
    assert len(CANDIDATE_KERNELS) == 17


def test_small_clusters_get_no_kernel():
    model = SubmanifoldUNN(data_kernel="select", selection_size=60, random_state=0).fit(BLOBS)
    assert model.kernels_ == [None] * 4
    same = SubmanifoldUNN(data_kernel=RBF(0.1), random_state=0).fit(BLOBS)
    assert same.kernels_ == [RBF(0.1)] * 4


def test_rows_of_weight_zero_have_a_cluster():
    weights = np.ones(len(BLOBS))
    weights[:10] = 0
    model = SubmanifoldUNN(random_state=0).fit(BLOBS, sample_weight=weights)
    for code in range(4):
        assert len(np.unique(model.labels_[code == BLOB_OF])) == 1


@pytest.mark.slow
def test_files_keep_everything(tmp_path):
    model = SubmanifoldUNN(data_kernel="select", selection_size=30, random_state=0).fit(BLOBS)
    model.save(tmp_path / "model")
    back = SubmanifoldUNN.from_file(read_model_file(tmp_path / "model"), {})
    new = BLOBS + 0.1
    np.testing.assert_array_equal(back.transform(new), model.transform(new))
    assert back.kernels_ == model.kernels_


def test_samples_lie_in_the_domain_of_every_cluster(blobs):
    X = blobs.sample_latent(400, random_state=0)
    assert blobs.in_domain(X).all()
    gaps = ((X[:, None] - blobs.latent_) ** 2).sum(axis=2)
    assert set(blobs.clusters_[gaps.argmin(axis=1)]) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"threshold": -1.0}, "`threshold` must"),
        ({"order": "random"}, "`order` must"),
        ({"n_neighbors": 0}, "`n_neighbors` must"),
        ({"selection_size": 2}, "`selection_size` must"),
        ({"search": "nowhere"}, "search"),
    ],
)
def test_wrong_parameters_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        SubmanifoldUNN(**wrong).fit(BLOBS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([SubmanifoldUNN(), SubmanifoldUNN(1, data_kernel=Linear())])
def test_scikit_learn_check(estimator, check):
    check(estimator)
