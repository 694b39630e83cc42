"""How the files of the other families with `_0_1` in their names were made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

from twofold import (
    PSOM,
    UKR,
    UNN,
    DiffusionMap,
    KernelExtension,
    KernelPCA,
    ManifoldClassifier,
    Mixed,
    Reduced,
    Scaled,
    SubmanifoldUNN,
    upgrade,
)

HERE = Path(__file__).parent
QUICK = {"init": "pca", "max_iter": 5, "random_state": 0}


def main() -> None:
    """Write the files and what they must answer for ever."""
    iris = load_iris(as_frame=True)
    rows, classes = iris.data[::5], iris.target[::5]
    models = {
        "ukr_landmarks": UKR(landmarks=8, **QUICK).fit(rows),
        "ukr_kernel": UKR(data_kernel="rbf", **QUICK).fit(rows),
        "upgrade": upgrade(rows.iloc[:, :2].to_numpy(), rows),
        "scaled": Scaled(UKR(**QUICK)).fit(rows),
        "mixed": Mixed(UKR(**QUICK), kinds={"petal width (cm)": "log"}).fit(rows),
        "reduced": Reduced(UKR(**QUICK), rank=3).fit(rows),
        "unn": UNN(2, random_state=0).fit(rows),
        "unn_line": UNN(random_state=0).fit(rows),
        "submanifold_unn": SubmanifoldUNN(random_state=0).fit(rows),
        "psom": PSOM(2, grid=(3, 3), random_state=0).fit(rows),
        "kernel_pca": KernelPCA().fit(rows),
        "diffusion_map": DiffusionMap().fit(rows),
        "kernel_extension": KernelExtension().fit(rows),
        "manifold_classifier": ManifoldClassifier(UKR(1, **QUICK)).fit(rows, classes),
    }
    for name, model in models.items():
        model.save(HERE / f"{name}_0_1.twofold")
        new = iris.data[1:6:2]
        if hasattr(model, "predict"):
            answers = {"predict": model.predict(new).tolist()}
        else:
            answers = {"transform": model.transform(new).tolist()}
        if hasattr(model, "inverse_transform"):
            answers["inverse_transform"] = np.asarray(
                model.inverse_transform(answers["transform"])
            ).tolist()
        (HERE / f"{name}_0_1.json").write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    main()
