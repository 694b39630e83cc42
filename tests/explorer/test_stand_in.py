"""Models whose domain is a box: its border, the lattice of the stand-in, and the page."""

from __future__ import annotations

import numpy as np
import pytest
from explorer.browsing import OPTIONS, generated_at, map_pixels, probe, settle, smooth_images

from twofold import PSOM, explorer, upgrade
from twofold.explorer.budget import fit_payload
from twofold.explorer.page import make_wanted
from twofold.explorer.stand_in import DomainBox, find_box


def grid_model(shape, D=5, nodes="chebyshev"):
    rng = np.random.default_rng(len(shape))
    axes = [np.linspace(-1, 1, n) for n in shape]
    T = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(shape))
    A, B = rng.normal(size=(2, len(shape), D))
    return PSOM(len(shape), grid=shape, nodes=nodes).fit_grid(
        np.sin(T @ A) + 0.3 * np.cos(2 * T @ B)
    )


def header_of(model, room=10**7):
    wanted = make_wanted(
        model, title=None, data=None, image_shape=None, view="auto", labels=None, names=None
    )
    return fit_payload(model, wanted, room).header


class TestFinding:
    @pytest.mark.parametrize("shape", [(6,), (5, 4), (3, 3, 3, 3)])
    def test_the_box_of_a_grid(self, shape):
        box = find_box(grid_model(shape))
        np.testing.assert_allclose(box.low, -1, atol=1e-5)
        np.testing.assert_allclose(box.high, 1, atol=1e-5)

    def test_sides_of_their_own(self):
        arrays = [np.array([0.0, 30.0, 100.0]), np.array([-3.0, -2.9, -2.0, -1.0])]
        box = find_box(grid_model((3, 4), nodes=arrays))
        np.testing.assert_allclose(box.low, [0, -3], atol=1e-3)
        np.testing.assert_allclose(box.high, [100, -1], atol=1e-3)

    @pytest.mark.slow
    def test_places_found_in_training_make_none(self):
        # The domain is where rows are, then.
        rows = np.random.default_rng(0).uniform(size=(40, 3))
        assert find_box(PSOM(2, grid=(3, 3)).fit(rows)) is None

    def test_other_domains_are_none(self):
        assert find_box(upgrade(*smooth_images(60, 4), **OPTIONS)) is None

    def test_one_density_does_not_make_a_box(self):
        class Disc:
            embedding_ = np.array([[-0.5, -0.5], [0.5, 0.5]])

            def density(self, X):
                return (np.linalg.norm(X, axis=1) <= 1).astype(float)

            def in_domain(self, X):
                return self.density(X) >= 0.5

        assert find_box(Disc()) is None


def test_a_lattice_has_the_corners_and_no_more_than_asked_for():
    box = DomainBox(np.array([0.0, 10.0]), np.array([1.0, 30.0]))
    places, gap = box.lattice(30)
    assert len(places) == 25
    assert gap == 0.25
    np.testing.assert_array_equal(places.min(axis=0), box.low)
    np.testing.assert_array_equal(places.max(axis=0), box.high)


class TestPayload:
    def test_what_it_says(self):
        model = grid_model((5, 4))
        header = header_of(model)
        assert header["domain_box"]["low"] == pytest.approx([-1, -1], abs=1e-5)
        assert header["domain_threshold"] == 0.5
        assert "rows.density" not in header["sections"]
        assert "rows.magnification" in header["sections"]
        assert header["regression"]["difference"] < 1e-4

    def test_other_models_have_a_density(self):
        header = header_of(upgrade(*smooth_images(60, 4), **OPTIONS))
        assert header["domain_box"] is None
        assert "rows.density" in header["sections"]

    def test_in_little_room(self):
        model = grid_model((3, 3, 3))
        small, large = (header_of(model, room) for room in (12_000, 10**7))
        assert small["regression"]["n"] < 0.5 * large["regression"]["n"]
        assert large["regression"]["difference"] < small["regression"]["difference"] < 0.2


class TestPage:
    @pytest.mark.slow
    @pytest.mark.parametrize("shape", [(6,), (5, 4), (3, 3, 3, 3)])
    def test_values_and_domain_are_those_of_the_model(self, shape, open_page, tmp_path):
        model = grid_model(shape)
        page = open_page(explorer.write(model, tmp_path / "a.html"))
        X = np.random.default_rng(0).uniform(-1.2, 1.2, (300, len(shape)))
        found = page.evaluate("(X) => X.map((x) => twofold.regression.inDomain(x))", X.tolist())
        np.testing.assert_array_equal(found, model.in_domain(X))
        inside = np.concatenate([model.embedding_, X[model.in_domain(X)]])
        gaps = generated_at(page, inside) - model.inverse_transform(inside)
        spread = np.sqrt(model.inverse_transform(model.embedding_).var(axis=0).sum())
        said = page.evaluate("() => twofold.atlas.header.regression.difference")
        assert said < 1e-3
        # Largest where the surface bends most, at the corners.
        assert np.abs(gaps).max() < 20 * said * spread

    @pytest.mark.slow
    def test_no_density_is_shown(self, open_page, tmp_path):
        page = open_page(explorer.write(grid_model((5, 4)), tmp_path / "a.html"))
        shown = page.locator(".tf-where").inner_text()
        assert "Inside the data" in shown
        assert "Density" not in shown
        assert "density" not in page.evaluate("() => document.body.innerText").lower()

    @pytest.mark.slow
    def test_the_ground_is_the_box(self, open_page, tmp_path):
        page = open_page(explorer.write(grid_model((5, 4)), tmp_path / "a.html"))
        pixels = map_pixels(page)
        land = (pixels > 250).all(axis=2)
        # Between the box's middle and its left side, on a level with the middle, all is land.
        low, high, middle = (
            page.evaluate("(x) => twofold.map.camera.toScreen(x)", x)
            for x in ([-1, -1], [1, 1], [0.25, 0.4])
        )
        row = land[round(middle[1])]
        assert row[round(low[0]) + 3 : round(high[0]) - 3].mean() > 0.99
        assert not row[: round(low[0]) - 3].any()

    @pytest.mark.slow
    def test_a_pasted_row_far_off_goes_to_the_border(self, open_page, tmp_path):
        model = grid_model((5, 4))
        page = open_page(explorer.write(model, tmp_path / "a.html"))
        beyond = model.inverse_transform([[1.0, 0.3]]) + model.jacobian([[1.0, 0.3]])[..., 0]
        page.get_by_role("button", name="Paste a row").click()
        page.get_by_label("Row", exact=True).fill(", ".join(map(str, beyond[0])))
        page.get_by_role("button", name="Find its place").click()
        settle(page)
        found, best = probe(page), model.transform(beyond)[0]
        assert np.abs(best).max() == pytest.approx(1, abs=1e-4)
        np.testing.assert_allclose(found, best, atol=0.01)
