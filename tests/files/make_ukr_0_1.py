"""How `ukr_0_1.twofold` was made; files of later formats get a script and a file of their own."""

from __future__ import annotations

import json
from pathlib import Path

from sklearn.datasets import load_iris

from twofold import UKR
from twofold.regularization import LeaveOneOut

HERE = Path(__file__).parent


def main() -> None:
    """Write the file and what it must answer for ever."""
    frame = load_iris(as_frame=True).data
    model = UKR(regularization=LeaveOneOut(), init="isomap", max_iter=20, random_state=0)
    model.fit(frame[::3])
    model.save(HERE / "ukr_0_1.twofold")
    X = model.transform(frame[1:6:2])
    answers = {"transform": X.tolist(), "inverse_transform": model.inverse_transform(X).tolist()}
    (HERE / "ukr_0_1.json").write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    main()
