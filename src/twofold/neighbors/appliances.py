"""Appliances told apart by their resistance (Kramer 2013, chapter 3).

A central sensor reads effective voltage U, effective current I, phase angle phi and active power P.
The load of one appliance is its active resistance

    R(t) = U / (I cos phi) = U² / P.                                                          (3.7)

An event has four features: of an appliance that goes *on* the mean and the standard deviation of
its resistances and the largest phase of their discrete Fourier transform, the first two readings
being left out for they are too volatile; of one that goes *off* the median of its resistances. The
book does not say what the others are then; here they are 0.

Algorithm 1 of the book is a vote of classifiers, each trained on all rows:

    argmax_y Σ_i 1[f_i(x) = y].                                                               (3.6)

ENS-SVM holds a linear and a Gaussian support vector machine, ENS-KNN nearest neighbours with K = 1,
5 and 7, ENS* all five. The book gives no rule for ties, which two members make often. In its tables
ENS-SVM errs more than one member and less than the other, so neither member wins them all: the
smallest label does, as in scikit-learn.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import VotingClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from twofold.array_types import BoolArray, FloatArray
from twofold.checks.parameters import check_choice

MEMBERS = ("svm", "knn", "all")
TIES = ("smallest", "first")
N_VOLATILE = 2
# Resistances are not scaled (the book sees no gain in it), and then a linear machine may go on for
# hours without getting better; scikit-learn warns when it stops here.
MOST_STEPS = 1_000_000


def active_resistance(traces: FloatArray) -> FloatArray:
    """Return U² / P, shape (...), of readings of U, I, phi and P, shape (..., 4).

    Examples
    --------
    >>> import numpy as np
    >>> from twofold.neighbors import active_resistance
    >>> active_resistance(np.array([[230.0, 1.0, 0.0, 230.0]]))
    array([230.])
    """
    return traces[..., 0] ** 2 / traces[..., 3]


def appliance_features(
    traces: FloatArray | Sequence[FloatArray], is_on: BoolArray | Sequence[bool]
) -> FloatArray:
    """Return mean, deviation, largest Fourier phase and median (n, 4) of resistances of events.

    The first three are 0 of an appliance that went off, the last one of an appliance that went on.

    Parameters
    ----------
    traces : n arrays of shape (n_readings, 4)
        Readings of U (volt), I (ampere), phi (radian) and P (watt) of each event; events may
        differ in the number of readings, at least three of them.
    is_on : array-like of bool of shape (n,)
        Whether the appliance went on.

    Examples
    --------
    >>> from twofold.datasets import make_appliance_loads
    >>> from twofold.neighbors import appliance_features
    >>> loads = make_appliance_loads(study="install", random_state=0)
    >>> appliance_features(loads.traces, loads.is_on).shape
    (120, 4)
    """
    if len(traces) != len(is_on):
        raise ValueError(
            f"Expected a trace for each event; got {len(traces)} traces and {len(is_on)} events."
        )
    features = np.zeros((len(traces), 4))
    for i, (trace, on) in enumerate(zip(traces, is_on, strict=True)):
        trace = np.asarray(trace, dtype=np.float64)
        if trace.ndim != 2 or trace.shape[1] != 4 or len(trace) <= N_VOLATILE:
            raise ValueError(
                "A trace must hold U, I, phi and P of at least three readings, shape "
                f"(n_readings, 4); event {i} has shape {trace.shape}."
            )
        if (trace[:, 3] == 0).any():
            raise ValueError(
                f"Event {i} has a reading of no active power (P = 0), for which the resistance "
                "U² / P is not defined; leave such readings out."
            )
        R = active_resistance(trace)
        if on:
            steady = R[N_VOLATILE:]
            features[i, :3] = steady.mean(), steady.std(), np.angle(np.fft.fft(steady)).max()
        else:
            features[i, 3] = np.median(R)
    return features


def appliance_ensemble(
    members: str = "all",
    *,
    linear_C: float = 1.0,
    rbf_C: float = 1.0,
    rbf_gamma: Any = "scale",
    n_neighbors: Sequence[int] = (1, 5, 7),
    tie: str = "smallest",
) -> VotingClassifier:
    """Return one of the book's ensembles as an unfitted voting classifier of scikit-learn.

    Parameters
    ----------
    members : {"all", "svm", "knn"}, default="all"
        ENS*, ENS-SVM or ENS-KNN.
    linear_C, rbf_C, rbf_gamma : float
        Parameters of the support vector machines; a grid search sets them as ``linear__C``,
        ``rbf__C`` and ``rbf__gamma``.
    n_neighbors : sequence of int, default=(1, 5, 7)
        K of the nearest neighbours.
    tie : {"smallest", "first"}, default="smallest"
        Which label wins a tie: the smallest, or that of the first member if it is among the tied
        ones.

    Examples
    --------
    >>> from twofold.neighbors import appliance_ensemble
    >>> [name for name, _ in appliance_ensemble("knn").estimators]
    ['knn1', 'knn5', 'knn7']
    """
    check_choice("members", members, MEMBERS)
    check_choice("tie", tie, TIES)
    voters: list[tuple[str, Any]] = []
    if members != "knn":
        voters += [
            ("linear", SVC(kernel="linear", C=linear_C, max_iter=MOST_STEPS)),
            ("rbf", SVC(kernel="rbf", C=rbf_C, gamma=rbf_gamma, max_iter=MOST_STEPS)),
        ]
    if members != "svm":
        voters += [(f"knn{k}", KNeighborsClassifier(k)) for k in n_neighbors]
    # Half a vote more lifts a label out of a tie, and never over one that has more votes.
    weights = None if tie == "smallest" else [1.5] + [1.0] * (len(voters) - 1)
    return VotingClassifier(voters, voting="hard", weights=weights)
