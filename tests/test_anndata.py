"""Maps of single cells: places, query cells, genes and markers."""

from __future__ import annotations

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import twofold.anndata
from twofold import PSOM, UKR, UNN
from twofold.anndata.smoothing import Smoother

GENES = [f"gene{k}" for k in range(12)]
QUICK = UKR(init="pca", max_iter=8, random_state=0)


def made_up(n: int = 90, seed: int = 0) -> anndata.AnnData:
    """Return cells on a line: gene0 rises along it, gene1 falls, gene2 peaks, others are noise."""
    random = np.random.default_rng(seed)
    t = np.sort(random.random(n))
    X = 0.2 * random.normal(size=(n, len(GENES)))
    X[:, 0] += 4 * t
    X[:, 1] += 4 * (1 - t)
    X[:, 2] += 3 * np.exp(-((t - 0.5) ** 2) / 0.02)
    cells = anndata.AnnData(X)
    cells.var_names, cells.obs_names = GENES, [f"cell{k}" for k in range(n)]
    cells.obs["t"] = t
    cells.obs["type"] = pd.Categorical(np.where(t < 0.5, "early", "late"))
    with_components(cells)
    return cells


def with_components(cells: anndata.AnnData, k: int = 4) -> None:
    """Add principal components and loadings as scanpy does, without the mean."""
    dense = cells.X.toarray() if sp.issparse(cells.X) else cells.X
    centred = dense - dense.mean(axis=0)
    loadings = np.linalg.svd(centred, full_matrices=False)[2][:k].T
    cells.obsm["X_pca"], cells.varm["PCs"] = centred @ loadings, loadings


@pytest.fixture(scope="module")
def fitted() -> anndata.AnnData:
    cells = made_up()
    twofold.anndata.fit(cells, QUICK)
    return cells


def test_fit_writes_what_scanpy_reads(fitted):
    assert fitted.obsm["X_ukr"].shape == (90, 2)
    kept = fitted.uns["ukr"]["params"]
    assert kept == {"use_rep": "X_pca", "method": "UKR", "n_components": 2}
    model = twofold.anndata.model_of(fitted)
    np.testing.assert_array_equal(model.embedding_, fitted.obsm["X_ukr"])


def test_model_goes_through_a_file_of_anndata(fitted, tmp_path):
    fitted.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    model = twofold.anndata.model_of(again)
    np.testing.assert_array_equal(model.embedding_, fitted.obsm["X_ukr"])
    assert again.uns["ukr"]["params"]["use_rep"] == "X_pca"


def test_model_beside(tmp_path):
    cells = made_up(30)
    twofold.anndata.fit(cells, QUICK, key_added="map", path=tmp_path / "map.twofold")
    assert cells.uns["map"]["model_file"] == str(tmp_path / "map.twofold")
    assert "model" not in cells.uns["map"]
    assert twofold.anndata.model_of(cells, "map").embedding_.shape == (30, 2)
    (tmp_path / "map.twofold").rename(tmp_path / "moved.twofold")
    with pytest.raises(FileNotFoundError, match="Put the file back"):
        twofold.anndata.model_of(cells, "map")


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csc_array])
def test_query_cells_are_placed_through_the_loadings_of_the_reference(fitted, make):
    query = fitted[10:20, ::-1].copy()  # genes in another order, no components
    query.X = make(query.X)
    del query.obsm["X_pca"], query.obsm["X_ukr"], query.obs["type"]
    model = twofold.anndata.place(query, fitted, obs="type")
    # A trace of noise: rows of the fit themselves have their own place, others the nearest image.
    expected = model.transform(fitted.obsm["X_pca"][10:20] + 1e-9)
    np.testing.assert_allclose(query.obsm["X_ukr"], expected, atol=1e-4)
    assert (query.obs["type"] == fitted.obs["type"].iloc[10:20].to_numpy()).all()
    assert (query.obs["type_probability"] > 0.5).all()
    assert query.obs["ukr_p_value"].between(0, 1).all()


def test_the_mean_is_that_of_the_reference(fitted):
    # scanpy's ingest centres query cells by their own mean: ten late cells would lie in the middle.
    late = fitted[80:].copy()
    model = twofold.anndata.place(late, fitted)
    expected = model.transform(fitted.obsm["X_pca"][80:] + 1e-9)
    np.testing.assert_allclose(late.obsm["X_ukr"], expected, atol=1e-4)


def test_components_may_have_been_centred_with_more_cells(fitted):
    part = fitted[:60].copy()  # whose mean is another one
    twofold.anndata.fit(part, QUICK)
    query = fitted[60:70].copy()
    model = twofold.anndata.place(query, part)
    expected = model.transform(fitted.obsm["X_pca"][60:70])
    np.testing.assert_allclose(query.obsm["X_ukr"], expected, atol=1e-4)
    genes = twofold.anndata.genes(part, part.obsm["X_ukr"][:5], through="loadings")
    generated = model.inverse_transform(part.obsm["X_ukr"][:5])
    there = fitted.X.mean(axis=0) @ part.varm["PCs"]
    np.testing.assert_allclose(genes @ part.varm["PCs"] - there, generated, atol=1e-8)


def test_cells_of_a_strange_type_have_low_p_values(fitted):
    strange = fitted[40:50].copy()
    strange.X = strange.X + 2 * np.linalg.norm(strange.X) * fitted.varm["PCs"][:, 3]
    twofold.anndata.place(strange, fitted)
    assert (strange.obs["ukr_p_value"] < 0.05).all()


def test_missing_genes_count_as_average_and_too_many_are_refused(fitted):
    share = (fitted.varm["PCs"] ** 2).sum(axis=1)
    least = np.argsort(share)[1:]
    with pytest.warns(UserWarning, match="1 genes of the components are missing"):
        twofold.anndata.place(fitted[:5, np.sort(least)].copy(), fitted)
    with pytest.raises(KeyError, match="lack 6 of the 12 genes"):
        twofold.anndata.place(fitted[:5, 6:].copy(), fitted)


def test_genes_over_cells_are_the_kernel_regression_of_the_model(fitted):
    model, places = twofold.anndata.model_of(fitted), fitted.obsm["X_ukr"][:7] + 0.01
    # Components are linear in genes, so their means over cells are what the model generates.
    genes = twofold.anndata.genes(fitted, places)
    mean = fitted.X.mean(axis=0)
    generated = model.inverse_transform(places)
    np.testing.assert_allclose((genes.to_numpy() - mean) @ fitted.varm["PCs"], generated, atol=1e-4)
    through = twofold.anndata.genes(fitted, places, through="loadings")
    np.testing.assert_allclose(through, mean + generated @ fitted.varm["PCs"].T, atol=1e-12)


def test_genes_of_layers_sparse_matrices_and_raw(fitted):
    cells = fitted.copy()
    cells.layers["double"] = sp.csr_matrix(2 * cells.X)
    cells.raw = cells
    place = fitted.obsm["X_ukr"][[3]]
    one = twofold.anndata.genes(cells, place, ["gene2", "gene0"])
    assert list(one.columns) == ["gene2", "gene0"]
    double = twofold.anndata.genes(cells, place, ["gene2", "gene0"], layer="double")
    np.testing.assert_allclose(double, 2 * one)
    raw = twofold.anndata.genes(cells, place, ["gene2", "gene0"], use_raw=True)
    np.testing.assert_allclose(raw, one)


def test_markers_along_a_path(fitted):
    markers = twofold.anndata.markers_along(fitted, ["cell2", "cell45", "cell87"])
    assert set(markers.index[:3]) == {"gene0", "gene1", "gene2"}
    assert markers.loc["gene0", "trend"] > 0.9
    assert markers.loc["gene1", "trend"] < -0.9
    assert 0.25 < markers.loc["gene2", "highest"] < 0.75
    assert markers.loc["gene0", "end"] - markers.loc["gene0", "start"] > 2
    sparse = fitted.copy()
    sparse.X = sp.csr_matrix(fitted.X)
    same = twofold.anndata.markers_along(sparse, ["cell2", "cell45", "cell87"])
    pd.testing.assert_frame_equal(markers, same)


def test_standard_errors_are_those_of_weighted_means(fitted):
    # Against the formula, written out for one place and one gene.
    model = twofold.anndata.model_of(fitted)
    smoother = Smoother(model, fitted.obsm["X_ukr"])
    x, y = fitted.obsm["X_ukr"][5] + 0.02, np.asarray(fitted.X[:, 2])
    scale = model.kernel_regression().latent_scale
    w = np.exp(-0.5 * (((fitted.obsm["X_ukr"] - x) * scale) ** 2).sum(axis=1))
    w /= w.sum()
    mean = (w * y).sum()
    variance = (w * (y - mean) ** 2).sum() + (w**2).sum() * y.var()
    expected = np.sqrt(variance * (w**2).sum())
    found = smoother.standard_errors(x[None], fitted.X[:, [2]])
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-6)


@pytest.mark.parametrize("model", [PSOM(2, grid=(4, 4)), UNN(2)], ids=["PSOM", "UNN"])
def test_other_families_give_genes_too(model):
    cells = made_up(40)
    twofold.anndata.fit(cells, model, key_added="m")
    found = twofold.anndata.genes(cells, cells.obsm["X_m"][[2, 37]], ["gene0"], key="m")
    assert found["gene0"].iloc[1] > found["gene0"].iloc[0] + 1


def test_expression_itself():
    cells = made_up(40)
    cells.X = sp.csr_matrix(cells.X)
    twofold.anndata.fit(cells, QUICK, use_rep="X")
    query = cells[:3].copy()
    twofold.anndata.place(query, cells)
    np.testing.assert_allclose(query.obsm["X_ukr"], cells.obsm["X_ukr"][:3])
    back = twofold.anndata.genes(cells, query.obsm["X_ukr"], through="loadings")
    model = twofold.anndata.model_of(cells)
    np.testing.assert_allclose(back, model.inverse_transform(query.obsm["X_ukr"]))


def test_path_has_steps_of_equal_length(fitted):
    way = twofold.anndata.path(fitted, [[0.0, 0.0], [1.0, 0.0], [1.0, 3.0]], steps=9)
    np.testing.assert_allclose(np.linalg.norm(np.diff(way, axis=0), axis=1), 0.5)
    named = twofold.anndata.path(fitted, ["cell3", "cell8"], steps=2)
    np.testing.assert_array_equal(named, fitted.obsm["X_ukr"][[3, 8]])


def test_mistakes_are_told(fitted):
    bare = anndata.AnnData(np.ones((3, 2)))
    with pytest.raises(KeyError, match=r"call twofold.anndata.fit"):
        twofold.anndata.model_of(bare)
    with pytest.raises(KeyError, match=r"scanpy.pp.pca"):
        twofold.anndata.fit(bare)
    with pytest.raises(ValueError, match='`layer` is for `use_rep="X"`'):
        twofold.anndata.fit(fitted, layer="counts")
    with pytest.raises(KeyError, match=r"has no gene 'gene00'. Did you mean"):
        twofold.anndata.genes(fitted, [[0.0, 0.0]], ["gene00"])
    with pytest.raises(KeyError, match=r"^`adata` has no cell 'cel3'. Did you mean 'cell3'"):
        twofold.anndata.path(fitted, ["cel3", "cell4"])
    with pytest.raises(ValueError, match="two waypoints"):
        twofold.anndata.path(fitted, ["cell3"])
    with pytest.raises(ValueError, match="`through` must be"):
        twofold.anndata.genes(fitted, [[0.0, 0.0]], through="umap")
    with pytest.raises(ValueError, match="lacks; leave it out"):
        twofold.anndata.genes(fitted, [[0.0, 0.0]], use_raw=True)
    other = fitted.copy()
    other.X = other.X + np.arange(len(GENES)) * np.arange(90)[:, None]
    with pytest.raises(ValueError, match="is not what 'X_pca' was computed from"):
        twofold.anndata.place(fitted[:2].copy(), other)
    other.varm["PCs"] = np.full_like(other.varm["PCs"], np.nan)
    with pytest.raises(ValueError, match="needs loadings"):
        twofold.anndata.genes(other, [[0.0, 0.0]], through="loadings")
    with pytest.raises(KeyError, match="has no gene 3"):
        twofold.anndata.genes(fitted, [[0.0, 0.0]], [3])
    with pytest.raises(ValueError, match="Give the map another name"):
        twofold.anndata.fit(fitted, key_added="pca")


def test_a_representation_may_be_sparse(fitted):
    cells = fitted.copy()
    cells.obsm["sparse"] = sp.csr_matrix(cells.obsm["X_pca"])
    model = twofold.anndata.fit(cells, QUICK, use_rep="sparse")
    np.testing.assert_array_equal(model.embedding_, fitted.obsm["X_ukr"])


@pytest.mark.filterwarnings("ignore:Variable names are not unique:UserWarning")
@pytest.mark.parametrize("use_rep", ["X_pca", "X"])
def test_genes_that_share_a_name_are_refused(fitted, use_rep):
    cells = fitted.copy()
    twofold.anndata.fit(cells, QUICK, use_rep=use_rep)
    twice = cells.copy()
    twice.var_names = [GENES[0], *GENES[:-1]]
    place = twice.obsm["X_ukr"][:1]
    with pytest.raises(ValueError, match="`query` has more than one gene 'gene0'"):
        twofold.anndata.place(twice[:3].copy(), cells)
    # Names that are unique in the query alone would find one gene for two.
    with pytest.raises(ValueError, match="`reference` has more than one gene 'gene0'"):
        twofold.anndata.place(cells[:3].copy(), twice)
    with pytest.raises(ValueError, match="make_unique"):
        twofold.anndata.genes(twice, place, ["gene3"])


@pytest.mark.filterwarnings("ignore:Observation names are not unique:UserWarning")
def test_a_cell_whose_name_others_have_is_no_waypoint(fitted):
    cells = fitted.copy()
    cells.obs_names = ["cell0", *cells.obs_names[:-1]]
    with pytest.raises(ValueError, match="2 cells are called 'cell0'"):
        twofold.anndata.path(cells, ["cell0", "cell5"])
    way = twofold.anndata.path(cells, ["cell4", "cell5"], steps=2)
    np.testing.assert_array_equal(way, cells.obsm["X_ukr"][[5, 6]])


def test_cells_far_from_all_labels_get_none(fitted):
    reference = fitted.copy()
    reference.obs["known"] = reference.obs["type"].where(np.arange(90) < 20)
    query = fitted[[2, 85]].copy()
    twofold.anndata.place(query, reference, obs="known")
    assert query.obs["known"].iloc[0] == "early"
    assert pd.isna(query.obs["known"].iloc[1])
    assert query.obs["known_probability"].iloc[1] == 0
    reference.obs["known"] = pd.Categorical([None] * 90)
    with pytest.raises(ValueError, match="has a label in the column 'known'"):
        twofold.anndata.place(query, reference, obs="known")
