"""Made-up electric loads of a household: what one sensor sees when an appliance goes on or off.

They stand in for private data. O. Kramer, "Dimensionality Reduction with Unsupervised Nearest
Neighbors" (Springer 2013), chapter 3, recognises 15 appliances by a central sensor that measures
effective voltage U, effective current I, phase angle phi and active power P five times a second. He
has 120 labelled events of the day the sensor was installed, as many of each kind, and 2,620 of a
month of use. The setting is that of the book; the numbers below are invented.

An appliance is a resistance that starts away from its own value and settles,

    R(t) = R0 (1 + a exp(-t / tau)),    R0 = 230² / watts · wear · condition,

with a < 0 for what draws more current at first (filaments, motors). ``condition`` differs from
event to event (temperature, content of the kettle); ``wear`` drifts over the month, for every
appliance its own way. Then

    P = U² / R,    I = P / (U cos phi),    so that R = U / (I cos phi) = U² / P    (3.7),

with a voltage that is another one at each event and trembles, and noise of the meter on every
reading. The first two readings after going on are those of a contact that still bounces. In few
events another appliance goes on in the same window, and its load is counted in. Before going off
an appliance has settled. Several lamps have nearly the same power, hence cannot always be told
apart.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from twofold.array_types import BoolArray, FloatArray, IntArray
from twofold.checks.parameters import check_choice, check_count
from twofold.datasets.sample import Seed

READINGS_PER_SECOND = 5
N_READINGS = 33
MAINS_VOLTAGE = 230.0
STUDIES = ("install", "field")
N_BOUNCING = 2
# Chance that another appliance goes on in the same window.
OVERLAP = 0.02


class Appliance(NamedTuple):
    """What is known of an appliance; ``use`` is how often it is switched, relative to others."""

    name: str
    watts: float
    cos_phi: float
    condition: float  # relative spread of the resistance from event to event
    start: float  # relative deviation of the resistance at the start
    settling: float  # seconds
    use: float


APPLIANCES = (
    Appliance("shelf light", 20.0, 0.98, 0.010, -0.30, 0.4, 2),
    Appliance("fridge", 130.0, 0.70, 0.040, -0.75, 0.8, 8),
    Appliance("bedside lamp", 25.0, 0.99, 0.014, -0.35, 0.3, 3),
    Appliance("desk lamp", 11.0, 0.60, 0.020, 0.25, 3.0, 2),
    Appliance("TV", 105.0, 0.92, 0.050, -0.40, 2.0, 3),
    Appliance("table light bedroom", 40.0, 0.99, 0.014, -0.35, 0.3, 2),
    Appliance("table light TV", 42.0, 0.99, 0.014, -0.35, 0.3, 2),
    Appliance("table light door", 28.0, 0.99, 0.014, -0.35, 0.3, 2),
    Appliance("kettle", 2000.0, 1.00, 0.015, -0.02, 0.5, 3),
    Appliance("mirror lamps", 80.0, 0.97, 0.012, -0.40, 0.5, 3),
    Appliance("ceiling lamp bathroom", 60.0, 0.99, 0.014, -0.40, 0.4, 5),
    Appliance("ceiling lamp living room", 150.0, 0.99, 0.012, -0.45, 0.5, 4),
    Appliance("ceiling lamp corridor", 62.5, 0.99, 0.014, -0.40, 0.4, 6),
    Appliance("ceiling lamp bedroom", 100.0, 0.99, 0.014, -0.40, 0.4, 3),
    Appliance("air conditioning", 900.0, 0.80, 0.040, -0.60, 1.5, 2),
)


@dataclass(frozen=True, slots=True, eq=False)
class ApplianceLoads:
    """Events of appliances that go on or off.

    ``traces`` (n, n_readings, 4) are readings of U (volt), I (ampere), phi (radian) and P (watt),
    five a second: what came with the appliance after it went on, or what it drew before it went
    off.

    Examples
    --------
    >>> from twofold.datasets import make_appliance_loads
    >>> loads = make_appliance_loads(study="install", random_state=0)
    >>> loads.traces.shape[2], loads.appliance.shape == loads.is_on.shape
    (4, True)
    """

    traces: FloatArray
    appliance: IntArray  # (n,) number from 0 in `APPLIANCES`
    is_on: BoolArray  # (n,) whether it went on
    time: FloatArray  # (n,) when, as a share of the month; rising

    @property
    def labels(self) -> IntArray:
        """The kind of each event (n,): twice the number of the appliance, plus 1 if it went off."""
        return 2 * self.appliance + ~self.is_on


def make_appliance_loads(
    n: int | None = None,
    *,
    study: str = "field",
    drift: float = 0.03,
    noise: float = 0.01,
    random_state: Seed = None,
) -> ApplianceLoads:
    """Draw events of 15 appliances that go on and off.

    Parameters
    ----------
    n : int, default=None
        Number of events; None means 2,620 in the field and 120 on installing.
    study : {"field", "install"}, default="field"
        A month of use, where some appliances are switched far more often than others, or the day
        the sensor was installed, where all are switched equally often (``n`` is a multiple of 30)
        and nothing is worn.
    drift : float, default=0.03
        Size of the relative change of resistances by wear at the end of the month.
    noise : float, default=0.01
        Relative standard deviation of the readings of the current; a tenth of it for the voltage.
    random_state : int, Generator or None, default=None

    Examples
    --------
    >>> loads = make_appliance_loads(study="install", random_state=0)
    >>> loads.traces.shape, len(set(loads.labels.tolist()))
    ((120, 33, 4), 30)
    """
    n = {"field": 2620, "install": 120}.get(study, 0) if n is None else n
    n_kinds = 2 * len(APPLIANCES)
    check_choice("study", study, STUDIES)
    check_count("n", n)
    if study == "install" and n % n_kinds:
        raise ValueError(
            f"With study='install' each of the {n_kinds} kinds of events is seen equally often, so "
            f"`n` must be a multiple of {n_kinds}; got {n}."
        )
    for name, value in (("drift", drift), ("noise", noise)):
        if not 0 <= value < 0.5:
            raise ValueError(f"`{name}` must be a share from 0 to below 0.5; got {value}.")
    rng = np.random.default_rng(random_state)
    if study == "install":
        kinds = rng.permutation(np.arange(n) % n_kinds)
    else:
        use = np.array([appliance.use for appliance in APPLIANCES])
        kinds = rng.choice(n_kinds, n, p=np.repeat(use / use.sum() / 2, 2))
    time = np.zeros(n) if study == "install" else np.sort(rng.random(n))
    # Lamps age to higher resistance at different speed; a fixed pattern, as for one household.
    directions = np.sin(1.0 + 2.4 * np.arange(len(APPLIANCES)))
    wear = 1 + drift * time[:, None] * directions
    appliance, is_on = kinds // 2, kinds % 2 == 0
    U = MAINS_VOLTAGE + rng.normal(0, 2.0, (n, 1)) + rng.normal(0, 0.2, (n, N_READINGS))
    conductance = 1 / _resistances(appliance, is_on, wear, rng)
    overlapped = np.flatnonzero(rng.random(n) < OVERLAP)
    conductance[overlapped] += _other_load(appliance[overlapped], wear[overlapped], rng)
    cos_phi = np.array([appliance.cos_phi for appliance in APPLIANCES])[appliance, None]
    phi = np.arccos(cos_phi) + rng.normal(0, noise / 10, (n, N_READINGS))
    read_U = U * (1 + rng.normal(0, noise / 10, U.shape))
    read_I = U * conductance / np.cos(phi) * (1 + rng.normal(0, noise, U.shape))
    traces = np.stack([read_U, read_I, phi, read_U * read_I * np.cos(phi)], axis=2)
    return ApplianceLoads(traces, appliance, is_on, time)


def _resistances(
    appliance: IntArray, is_on: BoolArray, wear: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return the resistances (n, n_readings) of appliances that settle, or have settled."""
    facts = np.array([[a.watts, a.condition, a.start, a.settling] for a in APPLIANCES])
    watts, condition, start, settling = facts[appliance].T[:, :, None]
    seconds = np.arange(N_READINGS) / READINGS_PER_SECOND
    n = len(appliance)
    own = MAINS_VOLTAGE**2 / watts * wear[np.arange(n), appliance, None]
    own = own * (1 + condition * rng.normal(size=(n, 1)))
    begun = start * rng.uniform(0.7, 1.3, (n, 1)) * np.exp(-seconds / settling)
    R = own * (1 + np.where(is_on[:, None], begun, 0))
    bouncing = np.exp(rng.normal(0, 0.5, (n, N_BOUNCING)))
    R[:, :N_BOUNCING] *= np.where(is_on[:, None], bouncing, 1)
    return R


def _other_load(appliance: IntArray, wear: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the conductance (n, n_readings) of another appliance from some reading on."""
    n = len(appliance)
    other = (appliance + rng.integers(1, len(APPLIANCES), n)) % len(APPLIANCES)
    R = _resistances(other, np.zeros(n, dtype=bool), wear, rng)
    begins = rng.integers(N_BOUNCING, N_READINGS, (n, 1))
    return np.where(np.arange(N_READINGS) >= begins, 1 / R, 0)
