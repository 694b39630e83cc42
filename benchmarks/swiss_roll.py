"""Swiss roll: 5,000 × 3, no noise, a tenth held out, defaults only."""

from __future__ import annotations

from sklearn.datasets import make_swiss_roll
from sklearn.manifold import trustworthiness
from sklearn.model_selection import train_test_split

from benchmarks.digits import round_trip
from benchmarks.report import Row, show
from twofold import UKR


def run() -> list[Row]:
    """Measure."""
    Y, _ = make_swiss_roll(5_000, random_state=0)
    train, test = train_test_split(Y, test_size=0.1, random_state=0)
    model = UKR(random_state=0).fit(train)
    trust = trustworthiness(train, model.embedding_, n_neighbors=12)
    return [
        Row("held-out round-trip error", round_trip(model, train, test), 0.005),
        Row("trustworthiness, 12 neighbours", trust, 0.998, at_most=False),
    ]


if __name__ == "__main__":
    show("Swiss roll", run())
