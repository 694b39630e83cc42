"""An estimator that tries several methods and becomes the one to trust."""

from copy import copy
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.contract import TwoWayModel
from twofold.contract.kernel_description import KernelDescription
from twofold.latent.starts import fill_for_start
from twofold.model_files import ModelFile
from twofold.selection.comparing import compare
from twofold.selection.embedders import DIMENSION_HINT, USUAL, named_candidates
from twofold.selection.scores import check_whole
from twofold.ukr import UKR, upgrade


class SelectEmbedding(TwoWayModel):
    """Fit several methods and become a two-way model of the one to trust.

    The pictures are compared by :func:`twofold.selection.compare`. The best one, by the rule of
    :mod:`twofold.selection.recommending`, becomes a two-way model (:func:`twofold.upgrade`), and
    everything a two-way model does is done by that. A saved file holds the chosen model alone.
    Missing entries (NaN) are filled by principal components for the methods to draw their pictures;
    the model of the chosen picture leaves them out.

    Parameters
    ----------
    candidates : dict, or sequence of str, default=("pca", "lle", "isomap", "laplacian", \
"tsne", "ukr")
        Names of methods, or a dict of any names to such a name or to an estimator with
        ``fit_transform``, which is cloned; as in :func:`twofold.selection.compare`.
    n_components : int, default=2
        Dimensions of the methods that are given by name; estimators must have as many.
    n_neighbors : int, default=15
        Neighbours of the methods that are given by name, and of the scores.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=-1

    Attributes
    ----------
    model_ : UKR
        The two-way model of the chosen picture; its fitted attributes can be read from here, too.
    chosen_ : str
        The name of the best candidate.
    recommended_ : str or None
        The same name, or None if no picture can be trusted; then ``chosen_`` is the least bad.
    reason_ : str
        Why, with the numbers.
    table_ : DataFrame
        The scores of all candidates, best first.
    failures_ : dict of str to str
        Methods that gave no picture, and why.

    Examples
    --------
    >>> from twofold.datasets import make_s_triangle
    >>> from twofold.selection import SelectEmbedding
    >>> rows = make_s_triangle(200, noise=0.02, random_state=0).Y
    >>> model = SelectEmbedding(["pca", "isomap"], n_neighbors=8).fit(rows)
    >>> model.chosen_, model.inverse_transform(model.embedding_[:1]).shape
    ('isomap', (1, 3))
    """

    def __init__(
        self,
        candidates: Any = USUAL,
        n_components: int = 2,
        *,
        n_neighbors: int = 15,
        random_state: Any = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.candidates = candidates
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __getattr__(self, name: str) -> Any:
        """Return a fitted attribute of the chosen model."""
        if name.endswith("_") and not name.startswith("_") and "model_" in self.__dict__:
            return getattr(self.__dict__["model_"], name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _check_parameters(self) -> None:
        check_whole(self.n_components, "n_components", hint=DIMENSION_HINT)
        check_whole(self.n_neighbors, "n_neighbors")
        for name, candidate in named_candidates(self.candidates).items():
            if not isinstance(candidate, str) and not hasattr(candidate, "fit_transform"):
                raise TypeError(
                    f"Candidate {name!r} must be the name of a method or an estimator with "
                    f"fit_transform; got {type(candidate).__name__}. Compare pictures that are "
                    "there already with twofold.selection.compare."
                )

    def _fit_distinct(self, Y: FloatArray, weights: FloatArray, source: IntArray) -> FloatArray:
        wanted = self.get_params(deep=False)  # which are those of `compare`
        wanted["random_state"] = int(check_random_state(self.random_state).randint(2**31 - 1))
        found = compare(fill_for_start(Y), **wanted)
        self.table_, self.failures_ = found.table, found.failures
        self.chosen_ = str(found.table.index[0])
        self.recommended_, self.reason_ = found.recommended, found.reason
        picture = found.scored[self.chosen_].embedding.astype(Y.dtype)
        if picture.shape[1] != self.n_components:
            raise ValueError(
                f"Candidate {self.chosen_!r} has {picture.shape[1]} dimensions, but `n_components` "
                f"is {self.n_components!r}; make them agree."
            )
        self.model_ = upgrade(picture, Y, sample_weight=weights, n_jobs=self.n_jobs, verbose=False)
        return np.asarray(self.model_.latent_)

    # ---- what the contract asks for: the chosen model does it -----------------------------------

    def _restore(self) -> None:
        """Nothing is derived here: the model inside restores itself."""

    def _bound_domain(self) -> None:
        self.domain_threshold_ = self.model_.domain_threshold_

    def _project(self, Y: FloatArray, observed: BoolArray | None) -> FloatArray:
        return self.model_._project(Y, observed)

    def _regress(self, X: FloatArray) -> FloatArray:
        return self.model_._regress(X)

    def _density(self, X: FloatArray) -> FloatArray:
        return self.model_._density(X)

    def _jacobian(self, X: FloatArray) -> FloatArray:
        return self.model_._jacobian(X)

    def _latent_unit(self) -> FloatArray:
        return self.model_._latent_unit()

    def kernel_regression(self) -> KernelDescription | None:
        """Return the way back in plain arrays."""
        check_is_fitted(self)
        return self.model_.kernel_regression()

    def saved_as(self) -> TwoWayModel:
        """Return the unfitted model that stands for this one in the file of another model."""
        return UKR(self.n_components)

    def to_file(self) -> ModelFile:
        """Return what a file of the chosen model holds; the other candidates are not kept."""
        check_is_fitted(self)
        model = copy(self.model_)
        # The model inside has seen distinct rows without names; the file is about those of `fit`.
        for name in ("member_", "embedding_", "notes_", "feature_names_in_"):
            if name in self.__dict__:
                setattr(model, name, self.__dict__[name])
        return model.to_file()
