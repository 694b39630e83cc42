from __future__ import annotations

import builtins
import json
import re
import sys
from collections import Counter

import numpy as np
import pytest
from oracles import page_regression as oracle
from sklearn.exceptions import NotFittedError

from twofold import UKR, Scaled, explorer, upgrade
from twofold.classification import ManifoldClassifier
from twofold.explorer.page import (
    explorer_widget,
    harmless,
    joined_scripts,
    library_text,
    static_text,
)

OPTIONS = {"n_jobs": 1, "verbose": False}
NASTY = "</script><script>alert(1)</script> \"'&<b> {{data}} 😀 \ud83d"


def made(n=60, D=6, seed=0, **parameters):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return upgrade(X, np.sin(X @ rng.normal(size=(2, D))), **OPTIONS, **parameters)


def header_of(path):
    return oracle.read_page(path.read_text(encoding="utf-8"))[0]


def names_of(path):
    header, data = oracle.read_page(path.read_text(encoding="utf-8"))[:2]
    stored = oracle.sections(header, data)["rows.names"]
    return json.loads(stored.tobytes().decode("utf-8"))


def test_a_page_is_written_where_asked(tmp_path):
    model, target = made(), tmp_path / "map.html"
    assert explorer.write(model, target) == target
    assert explorer.write(model, str(target)) == target
    header = header_of(target)
    assert header["title"] == "UKR of 60 rows"
    assert header["model"] == {"family": "UKR", "n_rows": 60, "n_features": 6, "n_components": 2}
    assert "{{" not in re.sub(r"<script.*?</script>", "", target.read_text(), flags=re.DOTALL)


def test_a_saved_model_will_do(tmp_path):
    model = made().annotate(labels={"side": np.repeat(["left", "right"], 30)})
    model.save(tmp_path / "mine.twofold")
    header = header_of(explorer.write(tmp_path / "mine.twofold", tmp_path / "a.html"))
    assert header["title"] == "mine"
    assert header["rows"]["labels"] == {"side": {"kind": "category", "values": ["left", "right"]}}


def test_arguments_override_notes(tmp_path):
    model = made().annotate(labels=np.arange(60) % 3, names=[f"a{i}" for i in range(60)])
    model.annotate(image_shape=(2, 3))
    header = header_of(explorer.write(model, tmp_path / "a.html"))
    assert header["image_shape"] == [2, 3]
    assert names_of(tmp_path / "a.html")[5] == "a5"
    header = header_of(
        explorer.write(
            model,
            tmp_path / "a.html",
            title="other",
            image_shape=(3, 2),
            labels={"b": np.linspace(0, 1, 60)},
            names=[f"b{i}" for i in range(60)],
        )
    )
    assert header["title"] == "other"
    assert header["image_shape"] == [3, 2]
    assert names_of(tmp_path / "a.html")[5] == "b5"
    assert header["rows"]["labels"] == {"b": {"kind": "number"}}
    assert model.notes_.image_shape == (2, 3)


def test_views(tmp_path):
    import pandas as pd

    path = tmp_path / "a.html"
    assert header_of(explorer.write(made(), path))["view"] == "bars"
    assert header_of(explorer.write(made(D=20), path))["view"] == "special"
    assert header_of(explorer.write(made(D=40), path, view="curve"))["view"] == "curve"
    assert header_of(explorer.write(made(), path, image_shape=(2, 3)))["view"] == "image"
    assert (
        header_of(explorer.write(made(), path, image_shape=(2, 3), view="bars"))["view"] == "bars"
    )
    named = pd.DataFrame(made().data_, columns=list("abcdef"))
    header = header_of(explorer.write(upgrade(made().embedding_, named, **OPTIONS), path))
    assert header["view"] == "table"
    assert header["features"] == list("abcdef")
    with pytest.raises(ValueError, match="needs `image_shape`"):
        explorer.write(made(), path, view="image")
    with pytest.raises(ValueError, match=r"`view` must be one of .*; got 'movie'"):
        explorer.write(made(), path, view="movie")
    with pytest.raises(ValueError, match="fill the 6 features"):
        explorer.write(made(), path, image_shape=(3, 3))


def test_a_scaled_model_is_called_by_the_one_inside(tmp_path):
    rng = np.random.default_rng(0)
    model = Scaled(UKR(init="pca", max_iter=2, **OPTIONS)).fit(rng.normal(size=(40, 5)))
    header = header_of(explorer.write(model, tmp_path / "a.html"))
    assert header["title"] == "UKR of 40 rows"
    assert header["model"]["family"] == "UKR, scaled"
    np.testing.assert_allclose(header["feature_spread"], model.spread_)


def test_pages_forbid_the_network(tmp_path):
    text = explorer.write(made(), tmp_path / "a.html").read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text).group(1)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert not any("http" in sources or "*" in sources for sources in rules.values())
    # Before anything that it could forbid.
    assert text.index("Content-Security-Policy") < text.index("<style>")


def test_other_things_are_refused(tmp_path):
    with pytest.raises(TypeError, match=r"classifier.models_\[0\]"):
        explorer.write(ManifoldClassifier(), tmp_path / "a.html")
    with pytest.raises(TypeError, match="got ndarray"):
        explorer.write(np.zeros((3, 2)), tmp_path / "a.html")
    with pytest.raises(NotFittedError):
        explorer.write(UKR(), tmp_path / "a.html")
    assert not (tmp_path / "a.html").exists()


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model = made()
    first = explorer.write(model, tmp_path / "a.html").read_bytes()
    model.save(tmp_path / "model.twofold")
    again = explorer.write(tmp_path / "model.twofold", tmp_path / "b.html", title="UKR of 60 rows")
    assert again.read_bytes() == first


def test_text_of_any_kind_stays_text(tmp_path):
    import pandas as pd

    model = made()
    frame = pd.DataFrame(model.data_, columns=[NASTY, *"bcdef"])
    model = upgrade(model.embedding_, frame, **OPTIONS)
    path = explorer.write(
        model,
        tmp_path / "a.html",
        title=NASTY,
        names=[NASTY] * 60,
        labels={NASTY: [NASTY, "b"] * 30},
    )
    text = path.read_text(encoding="utf-8")
    plain = explorer.write(made(), tmp_path / "b.html").read_text(encoding="utf-8")
    assert text.lower().count("</script") == plain.lower().count("</script")
    assert "<title>&lt;/script&gt;" in text
    header = header_of(path)
    kept = NASTY.replace("\ud83d", "?")
    assert header["title"] == kept
    assert header["features"][0] == kept
    assert names_of(path)[0] == kept
    assert header["rows"]["labels"][kept]["values"] == [kept, "b"]
    assert f"rows.label.{kept}" in header["sections"]


@pytest.mark.parametrize("spare", [40_000, 25_000, 15_000])
def test_a_page_is_never_larger_than_allowed(tmp_path, spare):
    model = made(400, D=40)
    path = explorer.write(model, tmp_path / "a.html")
    frame = path.stat().st_size - header_and_data(path)
    limit = frame + spare
    explorer.write(model, path, max_mb=limit / 1e6)
    assert path.stat().st_size <= limit
    assert header_and_data(path) > 0.5 * spare


def header_and_data(path):
    text = path.read_text(encoding="utf-8")
    header = re.search(r'id="twofold-header">(.*?)</script>', text, re.DOTALL).group(1)
    data = re.search(r'id="twofold-data">(.*?)</script>', text, re.DOTALL).group(1)
    return len(header.encode()) + len(data.strip())


def test_an_impossible_size_is_refused_with_the_size_needed(tmp_path):
    model = made(400)
    with pytest.raises(ValueError, match=r"at least .* MB .* 400 rows .* max_mb is 0.01"):
        explorer.write(model, tmp_path / "a.html", max_mb=0.01)
    try:
        explorer.write(model, tmp_path / "a.html", max_mb=0.01)
    except ValueError as error:
        needed = float(re.search(r"at least ([\d.]+) MB", str(error)).group(1))
    explorer.write(model, tmp_path / "a.html", max_mb=needed)


def test_nothing_points_outside(tmp_path):
    text = explorer.write(made(), tmp_path / "a.html").read_text(encoding="utf-8")
    markup = re.sub(r"(<script[^>]*>).*?(</script>)", r"\1\2", text, flags=re.DOTALL)
    assert not re.search(r'(?:src|href)\s*=\s*(?!"data:|"#)', markup)
    assert "@import" not in static_text("style.css")
    assert not re.search(r"url\((?![\"']?data:)", static_text("style.css"))


@pytest.mark.parametrize("start", ["main.js", "widget.js"])
def test_joined_scripts_are_whole(start):
    joined = joined_scripts(start)
    assert not re.search(r"^import\b", joined, re.MULTILINE)
    assert re.findall(r"^export\b.*", joined, re.MULTILINE) == (
        ["export default { render };"] if start == "widget.js" else []
    )
    names = re.findall(
        r"^(?:async\s+)?(?:function\*?|class|const|let|var)\s+([\w$]+)", joined, re.MULTILINE
    )
    assert "startExplorer" in names
    twice = [name for name, count in Counter(names).items() if count > 1]
    assert not twice
    imported = re.findall(r'from "\./([\w.-]+)"', static_text(start))
    assert imported
    last = joined.index("function startExplorer")
    assert joined.index("class Regression") < last


def test_scripts_cannot_end_their_element():
    assert harmless('a = "</SCRIPT>" + "<!--"; b < c') == r'a = "\x3c/SCRIPT>" + "\x3c!--"; b < c'


def test_the_library_brings_its_licence(tmp_path):
    text = explorer.write(made(), tmp_path / "a.html").read_text(encoding="utf-8")
    licence = static_text("vendor/twgl.LICENSE.txt").strip()
    assert "Copyright" in licence
    assert licence in text
    assert library_text().index(licence) < library_text().index("TwofoldPoints")


def test_the_widget():
    pytest.importorskip("anywidget")
    model = made()
    widget = explorer.show(model, labels=np.arange(60) % 3)
    assert widget.header["model"]["n_rows"] == 60
    arrays = oracle.sections(widget.header, widget.data)
    assert arrays["reg.x"].shape == (60, 2)
    widget.probe = [0.5, 0.25]
    with pytest.raises(Exception, match="2 numbers; got 3"):
        widget.probe = [0.5, 0.25, 1.0]
    with pytest.raises(Exception, match="`probe` must be finite"):
        widget.probe = [0.5, np.nan]
    widget.selection = [1, 2, 3]
    with pytest.raises(Exception, match=r"np.flatnonzero\(mask\)"):
        widget.selection = np.arange(60) < 3
    assert widget.selection == [1, 2, 3]
    assert widget.picked == -1
    assert widget._esm.rstrip().endswith("export default { render };")


def test_the_widget_takes_arrays():
    pytest.importorskip("anywidget")
    model = made()
    widget = explorer.show(model)
    widget.probe = model.embedding_[3]
    assert widget.probe == model.embedding_[3].tolist()
    widget.selection = np.array([7, 5, 7])
    assert widget.selection == [5, 7]
    assert all(type(row) is int for row in widget.selection)  # as JSON has them


def test_without_anywidget_there_is_a_hint(monkeypatch):
    original = builtins.__import__

    def refuse(name, *rest, **more):
        if name == "anywidget":
            raise ImportError(name)
        return original(name, *rest, **more)

    explorer_widget.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.delitem(sys.modules, "anywidget", raising=False)
    with pytest.raises(ImportError, match=r"pip install \".*\[notebook\]\""):
        explorer.show(made())
