"""``twofold fit --method``, and what the commands do with a model of every family."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from cli.running import COLUMNS, make_frame, refused, run_json, run_well, write_csv
from families import FAMILIES
from scipy import sparse

import twofold
from twofold.cli.methods import METHODS, find_method, parse_value
from twofold.loading import TWO_WAY

CLASSES = {
    "ukr": "UKR",
    "unn": "UNN",
    "kernel-pca": "KernelPCA",
    "diffusion-map": "DiffusionMap",
    "psom": "PSOM",
}
# Small enough to be fitted many times.
QUICK = {"ukr": ["--max-iter", "5"], "psom": ["--set", "grid=[4,4]"]}
# Species, a category, is not fitted.
NUMBERS = ["--label", "species"]
WITHOUT_GAPS = ["kernel-pca", "diffusion-map"]


@pytest.fixture(scope="module")
def models(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("methods")
    for name in METHODS:
        options = ["--method", name, "--label", "species", *QUICK.get(name, [])]
        run_well("fit", table, "-o", folder / f"{name}.twofold", *options)
    return folder


@pytest.fixture(scope="module")
def holes(tmp_path_factory):
    frame = make_frame()
    frame.loc["beetle03", "width"] = np.nan
    frame.loc["beetle07", COLUMNS] = np.nan
    return write_csv(frame, tmp_path_factory.mktemp("holes") / "holes.csv")


# ---- fit -----------------------------------------------------------------------------------------


def test_methods_are_those_that_compare_knows():
    assert [name.replace("-", "_") for name in METHODS] == list(TWO_WAY)
    assert list(CLASSES) == list(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_fits_its_own_family(models, name):
    model = twofold.load(models / f"{name}.twofold")
    assert type(model.model_).__name__ == CLASSES[name]
    assert model.embedding_.shape == (60, 2)
    assert model.notes_.names[3] == "beetle03"
    assert set(model.notes_.labels["species"]) == {"long", "short"}


@pytest.mark.slow
def test_methods_fit_like_the_library_with_its_defaults(table, tmp_path):
    path = tmp_path / "m.twofold"
    made = {
        "unn": twofold.UNN(2, random_state=3),
        "kernel-pca": twofold.KernelPCA(random_state=3),
        "diffusion-map": twofold.DiffusionMap(),
        "psom": twofold.PSOM(random_state=3),
    }
    for name, expected in made.items():
        run_well(
            "fit", table, "-o", path, "--method", name, "--scale", "none", "--seed", 3, *NUMBERS
        )
        expected.fit(make_frame()[COLUMNS])
        np.testing.assert_array_equal(twofold.load(path).embedding_, expected.embedding_)


def test_ukr_is_what_is_fitted_if_nothing_is_said(table, tmp_path):
    facts = run_json("fit", table, "-o", tmp_path / "m.twofold", "--max-iter", "2")
    assert facts["method"] == "ukr"
    said = " ".join(run_well("fit", "--help").stdout.split())
    assert "by UKR unless --method" in said
    assert "[default: ukr]" in said


@pytest.mark.parametrize("name", METHODS)
def test_dimensions_reach_every_method(table, tmp_path, name):
    path = tmp_path / "m.twofold"
    options = ["--max-iter", "2"] if name == "ukr" else []
    run_well("fit", table, "-o", path, "--method", name, "-q", 1, *options)
    assert twofold.load(path).embedding_.shape == (60, 1)


def test_dimensions_and_columns(table, tmp_path):
    path = tmp_path / "m.twofold"
    run_well("fit", table, "-o", path, "--method", "kernel-pca", "-q", "6", *NUMBERS)
    assert twofold.load(path).embedding_.shape == (60, 6)
    for name in ("unn", "psom"):
        said = refused("fit", table, "-o", path, "--method", name, "-q", "6", *NUMBERS)
        assert "needs at least 6 columns of numbers" in said


@pytest.mark.slow
def test_parameters_by_name(table, tmp_path):
    path = tmp_path / "m.twofold"
    options = ["--set", "n_neighbors=3", "--set", "search=greedy", "--set", "shuffle=false"]
    run_well("fit", table, "-o", path, "--method", "UNN", *options)
    model = twofold.load(path).model_
    assert (model.n_neighbors, model.search, model.shuffle) == (3, "greedy", False)
    run_well("fit", table, "-o", path, "--method", "psom", "-q", "3", "--set", "grid=[3, 4, 3]")
    assert twofold.load(path).embedding_.shape == (60, 3)
    run_well("fit", table, "-o", path, "--set", "init=pca", "--set", "max_iter=0")
    assert twofold.load(path).start_ == "pca"


def test_values_are_json_or_text():
    assert parse_value("[8, 8]") == [8, 8]
    assert parse_value("null") is None
    assert parse_value("1e-3") == 0.001
    assert parse_value("greedy") == "greedy"
    assert parse_value("2-axes") == "2-axes"


def test_names_of_methods():
    assert find_method("Kernel_PCA").name == "kernel-pca"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--method", "kernelpca"], ["no method 'kernelpca'", "Did you mean 'kernel-pca'"]),
        (["--method", "tsne"], ["no method 'tsne'", "ukr, unn, kernel-pca, diffusion-map, psom"]),
        (["--method", "unn", "--degree", "1"], ["--degree goes with --method ukr, not with unn"]),
        (["--method", "kernel-pca", "--kernel", "poly"], ["--kernel", "--set kernel=VALUE"]),
        (["--method", "psom", "--max-iter", "9"], ["--max-iter", "not with psom"]),
        (["--method", "unn", "--landmarks", "9"], ["--landmarks", "not with unn"]),
        (["--method", "unn", "--loss", "huber"], ["--loss", "not with unn"]),
        (
            ["--method", "diffusion-map", "--set", "alfa=1"],
            ["no parameter 'alfa'", "'alpha'", "n_neighbors"],
        ),
        (["--method", "unn", "--set", "n_neighbors"], ["NAME=VALUE; got 'n_neighbors'"]),
        (["--method", "unn", "--set", "n_neighbors=many"], ["--set n_neighbors must be"]),
        (["--set", "n_components=3"], ["Use --dimensions"]),
        (["--set", "random_state=3"], ["Use --seed"]),
        (["--set", "callbacks=[]"], ["no parameter 'callbacks'"]),
        (["--set", "tol=0", "--set", "tol=1"], ["--set tol is given twice"]),
        (["--loss", "huber", "--set", "loss=huber"], ["--loss and --set loss"]),
        (
            ["--method", "psom", "--set", "grid=[3,3,3]"],
            ["--set grid has 3 axes and --dimensions is 2"],
        ),
        (["--kernel", "round"], ["--kernel must be", "got 'round'"]),
        (["--loss", "none"], ["--loss must be", "got 'none'"]),
    ],
)
def test_what_does_not_go_together_is_said_before_the_work(tmp_path, options, words):
    # There is no table: all of this is found out before one is opened.
    said = refused("fit", tmp_path / "none.csv", *options, code=2)
    for word in words:
        assert word in said


@pytest.mark.parametrize("name", WITHOUT_GAPS)
def test_methods_that_need_complete_rows_say_so(holes, tmp_path, name):
    said = refused("fit", holes, "-o", tmp_path / "m.twofold", "--method", name, *NUMBERS)
    assert f"--method {name} needs complete rows, but 1 row of" in said
    assert "has empty cells, in 'width'" in said
    assert "twofold complete" in said
    options = ["--method", name, "--drop", "width", *NUMBERS]
    run_well("fit", holes, "-o", tmp_path / "m.twofold", *options)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in WITHOUT_GAPS])
def test_methods_that_take_gaps(holes, tmp_path, name):
    path = tmp_path / "m.twofold"
    run_well("fit", holes, "-o", path, "--method", name, *NUMBERS, *QUICK.get(name, []))
    assert np.isnan(twofold.load(path).data_).sum() == 1


def test_the_error_of_filled_rows_is_a_share_of_their_variance(tmp_path):
    frame = make_frame()
    numbers = frame[COLUMNS].to_numpy(dtype=float)
    numbers[np.random.default_rng(0).random(numbers.shape) < 0.3] = np.nan
    frame[COLUMNS] = numbers
    table, path = write_csv(frame, tmp_path / "gaps.csv"), tmp_path / "m.twofold"
    facts = run_json("fit", table, "-o", path, "--method", "unn")
    inside = twofold.load(path).model_
    variance = inside.filled_.var(axis=0).sum()
    assert facts["error_share"] == pytest.approx(inside.objective_ / variance)
    assert facts["error_share"] < 0.9 * inside.objective_ / np.nansum(inside.data_**2) * 60
    scored = run_json("score", path, table)
    assert scored["leave_one_out_error_share"] == pytest.approx(facts["error_share"])


@pytest.mark.slow
def test_how_a_fit_went(table, tmp_path):
    path = tmp_path / "m.twofold"
    done = run_well("fit", table, "-o", path, "--method", "unn")
    assert "all rows embedded" in done.stderr
    share = twofold.load(path).objective_ / 5  # every column has a variance of 1, words too
    assert f"leave-one-out error: {100 * share:.3g} % of the variance" in done.stderr
    facts = run_json("fit", table, "-o", path, "--method", "kernel-pca")
    assert facts["stop_reason"] == "closed form"
    assert facts["start"] is None
    assert facts["error_share"] is None
    assert not facts["still_improving"]
    done = run_well("fit", table, "-o", path, "--set", "data_kernel=rbf", "--max-iter", "2")
    assert "of the variance" not in done.stderr  # an error in feature space is none of rows
    lines = run_well("fit", table, "-o", path, "--method", "psom").stderr.splitlines()
    assert lines.count("fitting") == 1
    assert "seeking a start" not in lines


def test_large_tables_get_the_advice_of_their_method():
    for name, words in (("ukr", "--landmarks auto"), ("kernel-pca", "--set landmarks=1000")):
        method = METHODS[name]
        plain = method.make(None, {}, [])
        assert words in method.advice(plain, 20_001)
        assert method.advice(plain, 20_000) is None
    reduced = METHODS["kernel-pca"].make(None, {}, ["landmarks=500"])
    assert METHODS["kernel-pca"].advice(reduced, 10**6) is None
    assert METHODS["psom"].advice(METHODS["psom"].make(None, {}, []), 10**6) is None


# ---- with the model ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_commands_work_with_every_method(models, table, tmp_path, name):
    model = models / f"{name}.twofold"
    run_well("transform", model, table, "-o", tmp_path / "p.csv", "--error", "--density")
    places = pd.read_csv(tmp_path / "p.csv", index_col="specimen")
    loaded = twofold.load(model)
    np.testing.assert_allclose(places[["x1", "x2"]], loaded.embedding_, rtol=1e-9)
    assert np.isfinite(places[["error", "density"]].to_numpy()).all()
    for where in (["--samples", "3"], ["--path", "beetle01", "beetle05", "--steps", "3"]):
        run_well("generate", model, *where, "-o", tmp_path / "g.csv")
        made = pd.read_csv(tmp_path / "g.csv")
        assert list(made.columns) == ["x1", "x2", *COLUMNS]
        assert np.isfinite(made.to_numpy()).all()
    run_well("denoise", model, table, "-o", tmp_path / "d.csv")
    clean = pd.read_csv(tmp_path / "d.csv", index_col="specimen")
    np.testing.assert_allclose(clean[COLUMNS], loaded.reconstruct(make_frame()[COLUMNS]), rtol=1e-9)
    facts = run_json("score", model, table)
    assert facts["rows"] == facts["rows_of_the_model"] == 60
    assert (facts["leave_one_out_error_share"] is not None) == (name in ("ukr", "unn"))


@pytest.mark.parametrize("name", METHODS)
def test_gaps_are_filled_by_every_method(models, holes, tmp_path, name):
    model, filled = models / f"{name}.twofold", tmp_path / "f.csv"
    facts = run_json("complete", model, holes, "-o", filled)
    assert facts["by_column"]["width"] == 1
    assert pd.read_csv(filled, index_col="specimen").loc["beetle03", "width"] == pytest.approx(
        make_frame().loc["beetle03", "width"], abs=0.6
    )
    if name not in WITHOUT_GAPS:
        run_well("transform", model, holes, "-o", tmp_path / "p.csv")
        return
    for command in ("transform", "denoise", "score"):
        said = refused(command, model, holes)
        assert "no value in column 'width' of row 4" in said
        assert "twofold complete" in said


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_pictures_and_page_of_every_method(models, tmp_path, name):
    model = models / f"{name}.twofold"
    for kind in ("map", "history", "errors"):
        run_well("plot", model, "-o", tmp_path / f"{kind}.png", "--kind", kind)
        assert (tmp_path / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    run_well("explore", model, "-o", tmp_path / "page.html")
    assert "<html" in (tmp_path / "page.html").read_text()


# ---- info ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "family",
    [pytest.param(f, marks=f.marks, id=f.name) for f in FAMILIES],
)
@pytest.mark.filterwarnings("ignore")
def test_info_about_every_family(tmp_path, family):
    model = family.make()
    if not isinstance(model, twofold.Scaled):
        model = twofold.Scaled(model)
    Y = make_frame()[COLUMNS]
    for one in (model, model.model):
        path = tmp_path / "m.twofold"
        one.fit(Y).save(path)
        said = run_well("info", path).stdout
        facts = run_json("info", path)
        inside = getattr(one, "model_", one)
        assert facts["class"] == type(inside).__name__
        assert facts["class"] in said
        assert facts["rows"] == 60
        assert facts["objective"] == pytest.approx(float(inside.objective_))
        assert f"{inside.objective_:.6g}" in said
        assert facts["stop_reason"] == inside.stop_reason_
        assert (facts.get("start") is None) == (not hasattr(inside, "start_"))
        if facts["stop_reason"] != "max_iter":
            assert facts["stop_reason"] in said


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unn", ["Gaussian(", "all rows embedded", "search"]),
        ("kernel-pca", ["closed form", "RBF(gamma=", "way back", "learned: ", "eigenvalues"]),
        ("diffusion-map", ["closed form", "kernel width", "eigenvalues"]),
        ("psom", ["held-out error rose", "4 x 4", "smoothness"]),
    ],
)
def test_info_says_what_a_fit_found(models, name, words):
    said = run_well("info", models / f"{name}.twofold").stdout
    for word in words:
        assert word in said
    assert "--max-iter" not in said
    assert "start" not in said


def test_info_about_rows_that_are_carried_by_others(tmp_path):
    Y = np.repeat(make_frame(20)[COLUMNS].to_numpy(), 2, axis=0)
    twofold.UNN(random_state=0).fit(Y).save(tmp_path / "m.twofold")
    assert "40, carried by 20 different ones" in run_well("info", tmp_path / "m.twofold").stdout
    twofold.KernelPCA(landmarks=10, random_state=0).fit(Y).save(tmp_path / "m.twofold")
    assert "40, carried by 10 landmarks" in run_well("info", tmp_path / "m.twofold").stdout


@pytest.mark.filterwarnings("ignore")
def test_info_about_a_sparse_kernel(tmp_path):
    Y = make_frame()[COLUMNS].to_numpy() / [1, 1, 1, 1000]
    K = sparse.csr_array(np.exp(-((Y[:, None] - Y) ** 2).sum(axis=2)))
    twofold.KernelPCA(kernel="precomputed").fit(K).save(tmp_path / "m.twofold")
    assert run_json("info", tmp_path / "m.twofold")["missing_cells"] == 0


def test_info_about_an_extension_which_has_no_way_back(tmp_path):
    Y = make_frame()[COLUMNS]
    twofold.KernelExtension().fit(Y).save(tmp_path / "m.twofold")
    said = run_well("info", tmp_path / "m.twofold").stdout
    assert "KernelExtension" in said
    assert "4 columns to 2 dimensions" in said


def test_pictures_of_a_precomputed_kernel(tmp_path):
    Y = make_frame()[COLUMNS].to_numpy()
    twofold.KernelPCA(kernel="precomputed").fit(Y @ Y.T).save(tmp_path / "m.twofold")
    run_well("plot", tmp_path / "m.twofold", "-o", tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 1000
