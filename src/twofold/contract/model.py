"""The two-way contract: what every model of the library does.

A model is a latent point x → regression f → data point y, and back by projection g. A family fills
in the methods of :class:`twofold.contract.family.Family`; everything a user calls is here, once:

======================================= =====================================================
fit, fit_transform                      find latent points for data; NaN means missing
transform                               project rows, on their observed entries
inverse_transform                       the regression f
reconstruct                             f(g(y)): denoising
complete                                fill NaN, leave the rest as it is
left_open                               how far training rows lie from the map
noise_, intervals, explain              what the manifold leaves open, and how far entries are off
noise_std                               how large the noise of each feature is
log_likelihood, p_values                how likely a row is
score_samples, score                    negative squared reconstruction error, per row and mean
density, in_domain                      how well the data supports a latent place
sample, sample_latent                   new data, and the latent points it belongs to
jacobian, magnification                 how features move with the latent point
slopes                                  how they move over a neighbourhood, with standard errors
annotate, kernel_regression             what pictures show, and what others need to run f
as_numbers                              the model over numbers, whatever its columns are
check_parameters, wanted_dimensions     what can be said of a model before a fit
latent_unit                             how far apart latent points are that still belong together
save, twofold.load                      a file that runs no code when opened
======================================= =====================================================

At this surface arguments carry scikit-learn's names (``X`` is what goes in); below it ``Y`` is data
and ``X`` is latent, always. Tensors of torch are answered by tensors (:mod:`.tensors`), tables of
dask by tables of dask (:mod:`.lazy_answers`).
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from twofold.array_types import BoolArray, FloatArray
from twofold.checks.parameters import check_count
from twofold.checks.rows import (
    check_errors,
    check_images,
    check_missing,
    check_size,
    checked_weights,
    comes_in_chunks,
    validate_latent,
    validate_rows,
)
from twofold.compiled import announced
from twofold.contract.chunked_model import check_sample
from twofold.contract.distinct_rows import DistinctRows, RowIndex, merge_duplicates
from twofold.contract.kept_model import DERIVED
from twofold.contract.kernel_description import KernelDescription
from twofold.contract.lazy_answers import answers_lazily
from twofold.contract.named_tables import PLAIN, answers_in_frames, asked_for
from twofold.contract.tensors import takes_tensors
from twofold.contract.uncertain_model import UncertainModel
from twofold.engine.threads import single_threaded_blas
from twofold.latent.density import check_request, draw_latent_points
from twofold.optimize import ProgressBar
from twofold.rowwise import power_of_two
from twofold.tables.dask_workers import sharing_workers


@contextmanager
def _computing() -> Iterator[None]:
    """Compute with one thread of BLAS, for the number of threads would change the last bits.

    Numbers overflow without a word: what comes of it is checked.
    """
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        yield


def _say(text: str) -> None:
    sys.stderr.write(f"twofold: {text}\n")


# The mixins come before their base: scikit-learn gathers tags from the last to the first.
class TwoWayModel(UncertainModel, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A model that carries data to latent points and latent points to data.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from twofold import UKR
    >>> from twofold.contract import TwoWayModel
    >>> Y = load_iris().data
    >>> model = UKR(init="pca", max_iter=10).fit(Y[::2])
    >>> isinstance(model, TwoWayModel)
    True
    >>> X = model.transform(Y[1::2])
    >>> model.inverse_transform(X).shape, model.reconstruct(Y[1::2]).shape
    ((75, 4), (75, 4))
    >>> model.complete([[5.0, np.nan, 1.5, 0.2]])[0, [0, 2, 3]]
    array([5. , 1.5, 0.2])
    >>> model.in_domain([[1e6, 1e6]])
    array([False])
    """

    # ---- fitting ------------------------------------------------------------------------------

    @takes_tensors
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Find the latent points of the rows of ``X``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), dask table, path or iterable of chunks
            Data. NaN marks missing entries; they carry no loss and no weight. A pandas index of
            texts or dates names the rows, as :meth:`annotate` does. A ``scipy.sparse``
            table is made dense up to 20,000,000 entries; for larger ones see
            :class:`twofold.Reduced`. The path of a table
            (CSV, Parquet, .npy), an array mapped into memory and an iterable of arrays or frames
            are read in pieces and never loaded whole by ``UKR(landmarks=...)``; other models load
            them. Rows of a dask array or data frame stay where they are, and ``embedding_`` is then
            a dask array; files keep the places of a sample of them.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts; equal rows are merged and their weights added. A row of
            weight 0 takes no part and is projected afterwards.
        """
        self._check_parameters()
        with self._changing():
            self._forget()
            if comes_in_chunks(X):
                # Imported at first use: most tables are held in memory.
                from twofold.tables.chunks import open_chunks

                beside = getattr(self, "checkpoint", None)
                self._fit_chunks(open_chunks(X, beside), sample_weight)
            else:
                self._fit_table(X, sample_weight)
                if hasattr(X, "index"):
                    self._keep_names(X)
            self._end_fit()
        self._warn_if_open()
        return self

    def _fit_table(self, X: Any, sample_weight: Any) -> None:
        Y = self._validate(X, reset=True)
        weights = checked_weights(sample_weight, Y)
        counted = weights > 0
        check_missing(Y[counted], getattr(self, "feature_names_in_", None))
        distinct = merge_duplicates(Y[counted], weights[counted])
        most = self._most_rows(Y.shape[1])
        if most is not None and most < len(distinct.Y):
            distinct = distinct.lowest(most)
            check_sample(distinct.Y, getattr(self, "feature_names_in_", None))
        check_size(distinct.Y, self._wanted_dimensions(distinct.Y), len(Y))
        self._keep_distinct(distinct, counted)
        source = np.flatnonzero(counted)[distinct.first]
        if sharing_workers() is None:
            latent = self._fit_distinct(self.data_, self.weights_, source)
        else:
            latent = self._fit_kept(source, is_spread=True)
        self.latent_ = latent.astype(Y.dtype)
        self._wake()
        self._bound_domain()
        self._embed(Y)
        self._keep_weights(weights)

    def _keep_distinct(self, distinct: DistinctRows, counted: BoolArray) -> None:
        """Keep distinct rows of those that are counted (n,), and which one each of all rows is."""
        self.data_, self.weights_ = distinct.Y, distinct.weights
        self.member_ = np.full(len(counted), -1)
        self.member_[counted] = distinct.member

    def _forget(self) -> None:
        """Drop what an earlier fit left."""
        for name in [name for name in vars(self) if name.endswith("_") or name in DERIVED]:
            if not name.startswith("__"):
                delattr(self, name)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Change the model whole or not at all, to the same bits on any number of threads."""
        before = dict(self.__dict__)
        try:
            # A wait of seconds is said without a terminal, too, unless all is to be silent.
            says = bool(getattr(self, "verbose", False))
            with announced(_say if says else None), single_threaded_blas():
                yield
        # An interrupt from the keyboard leaves the model as it was, too.
        except BaseException:
            self.__dict__ = before
            raise

    def _embed(self, Y: FloatArray) -> None:
        """Set ``embedding_``: the latent point of each row the user passed."""
        self.embedding_ = self.latent_[self.member_]
        left_out = self.member_ < 0
        if left_out.any():
            self.embedding_[left_out] = self._place_fitted(Y[left_out])

    @takes_tensors
    def fit_transform(self, X: Any, y: None = None, sample_weight: Any = None) -> FloatArray:
        """Fit to ``X`` and return its latent points, ``embedding_`` (n_samples, n_components).

        Parameters are those of :meth:`fit`.
        """
        return self.fit(X, sample_weight=sample_weight).embedding_

    # ---- there and back -----------------------------------------------------------------------

    @answers_lazily("D", "q")
    @takes_tensors
    def transform(self, X: Any) -> FloatArray:
        """Project rows ``X`` (n_samples, n_features) onto the manifold; NaN marks missing entries.

        A row the model was trained on gets its own latent point; any other row gets the one whose
        image is nearest to its observed entries. The result (n_samples, n_components) for a row
        does not depend on the other rows.
        """
        Y = self._rows_to_place(X)
        with single_threaded_blas():
            return self._place(Y)

    @answers_in_frames
    @answers_lazily("q", "D")
    @takes_tensors
    def inverse_transform(self, X: Any, *, return_std: bool = False) -> Any:
        """Return the data (n_samples, n_features) that belongs to latent points: the regression f.

        Latent points ``X`` (n_samples, n_components) may lie anywhere; see :meth:`in_domain` for
        where they mean something. With ``return_std`` also the standard deviation of rows around
        their image, of each feature, from residuals nearby.
        """
        places = self._validate_latent(X)
        with _computing():
            images = check_images(self._regress(places))
            return (images, self._deviations(places)) if return_std else images

    @answers_in_frames
    @answers_lazily("D", "D")
    @takes_tensors
    def reconstruct(
        self,
        X: Any,
        *,
        use_residuals: bool = False,
        noise_std: Any = None,
        return_std: bool = False,
    ) -> Any:
        """Return ``inverse_transform(transform(X))``: the rows as the manifold sees them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN marks missing entries.
        use_residuals : bool, default=False
            Whether to return the rows without their noise, between the rows and the manifold: each
            entry moves towards what the other entries of its row and the rows around it suggest,
            as far as its noise allows (:mod:`twofold.noise.denoising`). False is the manifold.
        noise_std : float or array-like of shape (n_features,), default=None
            The standard deviation of the noise, if you know it, for ``use_residuals``. None
            estimates it: :meth:`noise_std`.
        return_std : bool, default=False
            As in :meth:`inverse_transform`: the deviation of rows from the manifold.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
        std : ndarray of shape (n_samples, n_features), with ``return_std``
        """
        if noise_std is not None and not use_residuals:
            raise ValueError("`noise_std` is for `use_residuals=True`; the manifold has no noise.")
        Y = self._rows_to_place(X)
        with _computing():
            images = self._without_noise(Y, noise_std) if use_residuals else self._return_trip(Y)
            check_images(images)
            return (images, self._deviations(self._place(Y))) if return_std else images

    @answers_in_frames
    @answers_lazily("D", "D")
    @takes_tensors
    def complete(
        self,
        X: Any,
        *,
        use_residuals: bool | None = None,
        return_std: bool = False,
        n_draws: int | None = None,
        random_state: Any = None,
    ) -> Any:
        """Fill the missing entries of rows; observed entries stay as they are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN marks what to fill.
        use_residuals : bool, default=None
            Whether the residuals of observed entries help to fill the missing ones, through the
            noise model (``noise_``). False fills from the manifold alone. None uses them unless the
            loss is robust, a data kernel stands before the rows, or the places of a PSOM are known.
        return_std : bool, default=False
            Whether to return the standard deviations of filled entries, too, 0 for observed ones.
        n_draws : int, default=None
            Return this many tables, (n_draws, n_samples, n_features), each filled with values drawn
            from the noise model: for multiple imputation.
        random_state : int, RandomState or None, default=None
            Seed of the draws.

        Returns
        -------
        filled : ndarray of shape (n_samples, n_features), or draws of it
        std : ndarray of shape (n_samples, n_features), with ``return_std``
        """
        Y = self._rows_to_complete(X)
        wants_noise = return_std or n_draws is not None
        if use_residuals is None:
            use_residuals = wants_noise or (self._fills_by_noise() and self._has_noise())
        if not use_residuals and wants_noise:
            raise ValueError("Deviations and draws come from residuals; leave use_residuals=True.")
        if use_residuals and (wants_noise or np.isnan(Y).any()):
            with _computing():
                return self._complete_with_noise(Y, return_std, n_draws, random_state)
        filled = Y.copy()
        partial = np.isnan(Y).any(axis=1)
        if partial.any():
            with _computing():
                found = check_images(self._regress(self._place(Y[partial])))
            filled[partial] = np.where(np.isnan(Y[partial]), found, Y[partial])
        return filled

    @answers_lazily("D", "")
    @takes_tensors
    def score_samples(self, X: Any) -> FloatArray:
        """Return the negative squared reconstruction error (n_samples,) of rows ``X``.

        They are (n_samples, n_features); only observed entries count.
        """
        Y = self._rows_to_place(X)
        with _computing():
            return -check_errors(self._squared_errors(Y))

    @takes_tensors
    def score(self, X: Any, y: None = None) -> float:
        """Return the mean of :meth:`score_samples` of ``X``; higher is better. ``y`` is ignored."""
        mean: Any = self.score_samples(X).mean(dtype=np.float64)  # of float32 it may overflow
        return float(mean.compute() if hasattr(mean, "compute") else mean)

    def _complete_with_noise(
        self, Y: FloatArray, return_std: bool, n_draws: int | None, random_state: Any
    ) -> Any:
        filled, std = self._filled(Y)
        check_images(filled)
        if n_draws is None:
            return (filled, std) if return_std else filled
        check_count("n_draws", n_draws, 1)
        random = check_random_state(random_state)
        drawn = [filled + self._drawn_errors(Y, std, random) for _ in range(n_draws)]
        draws = np.stack(drawn).astype(Y.dtype)
        return (draws, std) if return_std else draws

    # ---- the latent space ---------------------------------------------------------------------

    @answers_lazily("q", "")
    @takes_tensors
    def density(self, X: Any) -> FloatArray:
        """Return the latent density (n_samples,) at latent points (n_samples, n_components)."""
        places = self._validate_latent(X)
        with _computing():
            return check_images(self._density(places))

    @takes_tensors
    def in_domain(self, X: Any) -> BoolArray:
        """Say which latent points (n_samples, n_components) the data supports.

        Their density is at least ``domain_threshold_``.
        """
        return self.density(X) >= self.domain_threshold_

    @answers_in_frames
    def sample(
        self,
        n_samples: int = 1,
        random_state: Any = None,
        *,
        spread: str = "density",
        noise: bool = False,
    ) -> FloatArray:
        """Generate data (n_samples, n_features) from latent points inside the domain.

        These are means, smoother than any row; with ``noise`` they are new rows.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None, default=None
        spread : {"density", "uniform"}, default="density"
            Latent points drawn as the training rows are spread, or evenly over the domain.
        noise : bool, default=False
            Whether to add noise to these means, drawn from the noise model.
        """
        random = check_random_state(random_state)
        places = self.sample_latent(n_samples, random, spread=spread)
        with _computing():
            if noise:
                return check_images(self._drawn_rows(places, random))
            return check_images(self._regress(places))

    def sample_latent(
        self, n_samples: int = 1, random_state: Any = None, *, spread: str = "density"
    ) -> FloatArray:
        """Draw latent points (n_samples, n_components) that :meth:`sample` carries to data.

        Parameters are those of :meth:`sample`.
        """
        check_is_fitted(self)
        check_request(n_samples, spread)
        with single_threaded_blas():
            return draw_latent_points(
                self.latent_,
                self.weights_,
                n_samples,
                check_random_state(random_state),
                None if spread == "uniform" else self._latent_unit(),
                self._is_inside,
            )

    @takes_tensors
    def jacobian(self, X: Any) -> FloatArray:
        """Return how each feature moves as each latent coordinate moves.

        Latent points are (n_samples, n_components); the result is (n_samples, n_features,
        n_components).
        """
        places = self._validate_latent(X)
        with _computing():
            return check_images(self._jacobian(places))

    @takes_tensors
    def magnification(self, X: Any) -> FloatArray:
        """Return how much the map stretches at latent points (n_samples, n_components).

        That is ``sqrt(det(JᵀJ))`` (n_samples,), data volume per latent volume.
        """
        J = self.jacobian(X)
        unit = power_of_two(np.abs(J).max(axis=(1, 2))).astype(J.dtype)  # squares stay numbers
        J = J / unit[:, None, None]
        metric = np.einsum("mdq,mdr->mqr", J, J)
        # Where the map is flat, rounding may leave a determinant a little below 0.
        volumes = np.sqrt(np.maximum(np.linalg.det(metric), 0))
        with _computing():
            return check_images(volumes * unit ** J.shape[2])

    def latent_unit(self) -> FloatArray:
        """Return the bandwidth (n_components,) of the latent density: how far "near" reaches."""
        check_is_fitted(self)
        return self._latent_unit()

    def wanted_dimensions(self) -> int:
        """Return how many latent dimensions the parameters ask for, before any fit."""
        return self._wanted_dimensions()

    def check_parameters(self) -> None:
        """Raise if a constructor parameter has a value that no data could make right."""
        self._check_parameters()

    def kernel_regression(self) -> KernelDescription | None:
        """Return the way back in plain arrays, or None if it is not a regression of rows."""
        check_is_fitted(self)
        return None

    def as_numbers(self) -> "TwoWayModel":
        """Return the fitted model over columns of numbers, answering by arrays.

        It is the model itself, unless it has other columns or ``set_output`` asks for frames.
        """
        check_is_fitted(self)
        if asked_for(self) == PLAIN:
            return self
        plain = object.__new__(type(self))
        plain.__dict__ = dict(self.__dict__)
        return plain.set_output(transform=PLAIN)

    def _mixed_columns(self) -> Sequence[Any]:
        """Return the columns of a mixed table that the features come from; none of other models."""
        return ()

    # ---- inside -------------------------------------------------------------------------------

    def _shows_progress(self) -> bool:
        """Say whether the parameter ``verbose`` asks for progress: "auto" does on a terminal."""
        verbose = getattr(self, "verbose", False)
        return sys.stderr.isatty() if verbose == "auto" else bool(verbose)

    def _bars(self) -> list[ProgressBar]:
        return [ProgressBar()] if self._shows_progress() else []

    def _wake(self) -> None:
        self._index = RowIndex(self.data_)
        with single_threaded_blas():  # a file is opened to the bits that were saved
            self._restore()

    @property
    def _n_features_out(self) -> int:
        return int(self.latent_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _rows_to_place(self, X: Any) -> FloatArray:
        """Return rows that a fitted model can project."""
        Y = self._rows_to_fill(X)
        self._check_gaps(Y)
        return Y

    def _rows_to_fill(self, X: Any) -> FloatArray:
        """Return rows in which entries may be missing, some of each row observed."""
        check_is_fitted(self)
        Y = self._validate(X, reset=False)
        check_missing(Y, columns=False)
        return Y

    def _rows_to_complete(self, X: Any) -> FloatArray:
        """Return rows that come back as they are but for what is missing."""
        return self._rows_to_fill(X)

    def _validate(self, X: Any, *, reset: bool) -> FloatArray:
        Y = validate_rows(self, X, reset=reset)
        if not reset:
            with np.errstate(over="ignore"):  # what is too large for the type is infinite
                Y = np.ascontiguousarray(Y, dtype=self.latent_.dtype)
        self._check_range(Y, reset=reset)
        return Y

    def _validate_latent(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return validate_latent(X, self._n_features_out, self.latent_.dtype)

    def _place(self, Y: FloatArray) -> FloatArray:
        """Return latent points of any rows: their own for training rows, projections else."""
        known = self._index.find(Y)
        X: FloatArray = np.empty((len(Y), self._n_features_out), dtype=Y.dtype)
        X[known >= 0] = self.latent_[known[known >= 0]]
        new = known < 0
        if new.any():
            observed = ~np.isnan(Y[new])
            X[new] = self._project(Y[new], None if observed.all() else observed)
        return X

    def _squared_errors(self, Y: FloatArray) -> FloatArray:
        """Return the squared reconstruction error (m,) of rows, over observed entries."""
        return np.nansum((self._return_trip(Y) - Y) ** 2, axis=1)

    def _return_trip(self, Y: FloatArray) -> FloatArray:
        """Return f(g(y)) (m, D); for families whose way back starts at the row itself."""
        return self._regress(self._place(Y))
