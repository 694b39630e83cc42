"""Tables with categories: of scikit-learn, of files, and made up with known structure.

How hidden cells are filled was chosen with draws 1 to 8 of gaps in sight, for most of it of the
first six tables.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn import datasets as sklearn_datasets

from twofold.datasets import load_npz

MOST_ROWS = 300


def wine() -> pd.DataFrame:
    """Return 178 wines: 13 measurements and the cultivar."""
    found = sklearn_datasets.load_wine(as_frame=True)
    names = np.array(["barolo", "grignolino", "barbera"])
    return found.data.assign(cultivar=names[found.target])


def diabetes() -> pd.DataFrame:
    """Return patients: nine measurements, the sex, and how ill they are in four steps."""
    found = sklearn_datasets.load_diabetes(as_frame=True, scaled=False)
    steps = ["mild", "medium", "serious", "grave"]
    ill = pd.qcut(found.target, 4, labels=steps)
    return found.data.assign(sex=found.data["sex"].map({1.0: "f", 2.0: "m"}), progress=ill)


def boston() -> pd.DataFrame:
    """Return suburbs: numbers, whether they lie at the river, and their ring road."""
    rows = pd.DataFrame(np.asarray(load_npz("boston")["X"], dtype=float))
    rows.columns = [f"c{k}" for k in range(rows.shape[1])]
    rows["river"] = rows.pop("c3") > 0
    rows["road"] = rows.pop("c8").astype(int).astype(str)
    return rows


def oil_flow() -> pd.DataFrame:
    """Return twelve measurements of a pipeline, and how oil flows in it."""
    found = load_npz("oil_flow")
    rows = pd.DataFrame(np.asarray(found["X"], dtype=float))
    rows.columns = [f"c{k}" for k in range(rows.shape[1])]
    return rows.assign(flow=np.array(["layers", "rings", "mixed"])[np.asarray(found["y"], int)])


def shop() -> pd.DataFrame:
    """Return items on a sheet with coordinates t and u, seen through columns of every kind."""
    random = np.random.default_rng(0)
    t, u = random.random((2, MOST_ROWS))
    noise = random.normal(size=(4, MOST_ROWS))
    sizes = ["small", "medium", "large"]
    start = pd.Timestamp("2018-01-01")
    return pd.DataFrame(
        {
            "length": np.sin(3 * t) + 0.1 * noise[0],
            "price": np.exp(2 * t + u + 0.3 * noise[1]),
            "visits": random.poisson(8 * u**2),
            "colour": np.array(list("abcde"))[np.clip(5 * t + 0.3 * noise[2], 0, 4).astype(int)],
            "size": pd.Categorical(
                np.array(sizes)[np.clip(3 * u + 0.2 * noise[3], 0, 2).astype(int)], sizes, True
            ),
            "sold": t + u > 1,
            "when": start + pd.to_timedelta(np.round(1200 * t), unit="D"),
        }
    )


def survey() -> pd.DataFrame:
    """Return twelve questions with four answers each, after two traits of the person."""
    random = np.random.default_rng(1)
    traits = random.normal(size=(MOST_ROWS, 2))
    answers = {}
    for k in range(12):
        direction = random.normal(size=2)
        score = np.sin(traits @ direction + random.uniform(0, 6)) + 0.3 * random.normal(
            size=MOST_ROWS
        )
        answers[f"q{k + 1}"] = np.array(["no", "rather no", "rather yes", "yes"])[
            np.digitize(score, [-0.6, 0, 0.6])
        ]
    return pd.DataFrame(answers)


def breast_cancer() -> pd.DataFrame:
    """Return tumours: 27 measurements, the diagnosis, and three measurements in words."""
    found = sklearn_datasets.load_breast_cancer(as_frame=True)
    rows = found.data.assign(diagnosis=np.array(["malignant", "benign"])[found.target])
    for name in ("mean texture", "mean concavity", "worst area"):
        rows[name] = in_words(rows[name])
    return rows


def digits() -> pd.DataFrame:
    """Return the ink in sixteen fields of a digit, in eight of them in words, and which it is."""
    found = sklearn_datasets.load_digits()
    fields = found.images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    rows = pd.DataFrame(fields, columns=[f"f{k}" for k in range(16)])
    for k in range(1, 16, 2):
        rows[f"f{k}"] = in_words(rows[f"f{k}"])
    return rows.assign(digit=found.target.astype(str))


def iris() -> pd.DataFrame:
    """Return flowers: three measurements, the width of a petal in words, and the species."""
    found = sklearn_datasets.load_iris(as_frame=True)
    rows = found.data.assign(species=found.target_names[found.target])
    rows["petal width (cm)"] = in_words(rows["petal width (cm)"])
    return rows


def in_words(values: pd.Series) -> pd.Categorical:
    """Return a column of numbers as an ordered category of three words."""
    words = ["little", "middling", "much"]
    third = np.digitize(values, np.quantile(values, [1 / 3, 2 / 3]))
    return pd.Categorical(np.array(words)[third], words, ordered=True)


TABLES = {
    "wine": wine,
    "diabetes": diabetes,
    "boston": boston,
    "oil flow": oil_flow,
    "shop": shop,
    "survey": survey,
    "breast cancer": breast_cancer,
    "digits": digits,
    "iris": iris,
}


def table(name: str) -> pd.DataFrame:
    """Return a table, of long ones 300 rows drawn at random."""
    rows = TABLES[name]()
    return rows.sample(min(len(rows), MOST_ROWS), random_state=0).reset_index(drop=True)


def categories_of(rows: pd.DataFrame) -> list[str]:
    """Return the columns of categories."""
    return [
        str(name)
        for name in rows
        if rows[name].dtype == object or rows[name].dtype.name in ("category", "bool", "str")
    ]


def with_gaps(
    rows: pd.DataFrame, draw: int = 0, share: float = 0.2
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a table with a share of its cells hidden, and which; another draw hides others."""
    random = np.random.default_rng(draw)
    hidden = random.random(rows.shape) < share
    hidden[np.arange(len(rows)), random.integers(0, rows.shape[1], len(rows))] = False
    gappy = rows.copy()
    for k, name in enumerate(rows):
        if rows[name].dtype == bool:
            gappy[name] = gappy[name].astype(object)
        gappy[name] = gappy[name].mask(hidden[:, k])
    return gappy, pd.DataFrame(hidden, columns=rows.columns)
