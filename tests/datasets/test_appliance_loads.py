import numpy as np
import pytest

from twofold.datasets import make_appliance_loads
from twofold.datasets.appliance_loads import APPLIANCES


def resistances(loads):
    return loads.traces[..., 0] ** 2 / loads.traces[..., 3]


def test_sizes_are_those_of_the_book():
    field = make_appliance_loads(random_state=0)
    install = make_appliance_loads(study="install", random_state=0)
    assert field.traces.shape == (2620, 33, 4)
    assert sorted(set(field.labels.tolist())) == list(range(30))
    np.testing.assert_array_equal(np.bincount(install.labels), np.full(30, 4))


def test_labels_tell_appliance_and_direction():
    loads = make_appliance_loads(200, random_state=0)
    np.testing.assert_array_equal(loads.labels // 2, loads.appliance)
    np.testing.assert_array_equal(loads.labels % 2 == 0, loads.is_on)


def test_readings_obey_the_law_of_power():
    U, I, phi, P = np.moveaxis(make_appliance_loads(200, random_state=0).traces, 2, 0)  # noqa: E741
    np.testing.assert_allclose(P, U * I * np.cos(phi), rtol=1e-12)
    assert np.abs(U - 230).max() < 15


def test_settled_resistance_is_that_of_the_power():
    loads = make_appliance_loads(drift=0.0, noise=0.0, random_state=0)
    for number, appliance in enumerate(APPLIANCES):
        chosen = (loads.appliance == number) & ~loads.is_on
        expected = 230**2 / appliance.watts
        assert np.median(resistances(loads)[chosen]) == pytest.approx(expected, rel=0.05)


def test_starts_settle():
    loads = make_appliance_loads(random_state=0)
    kettle = [appliance.name for appliance in APPLIANCES].index("kettle")
    fridge = [appliance.name for appliance in APPLIANCES].index("fridge")
    R = resistances(loads)
    for number, drop in ((fridge, 0.55), (kettle, 0.99)):
        on = R[(loads.appliance == number) & loads.is_on]
        off = R[(loads.appliance == number) & ~loads.is_on]
        third = np.median(on[:, 2] / on[:, -1])
        assert third == pytest.approx(drop, abs=0.05)
        assert np.median(off[:, 2] / off[:, -1]) == pytest.approx(1, abs=0.01)


def test_first_readings_bounce():
    loads = make_appliance_loads(random_state=0)
    kettle = (loads.appliance == 8) & loads.is_on
    R = resistances(loads)[kettle]
    assert R[:, :2].std() > 5 * R[:, 2:10].std()


def test_wear_drifts_over_the_month():
    still, worn = (make_appliance_loads(drift=d, random_state=0) for d in (0.0, 0.1))
    change = np.abs(np.median(resistances(worn) / resistances(still), axis=1) - 1)
    assert change[:200].max() < 0.015
    assert change[-200:].max() > 0.07
    assert (np.diff(worn.time) >= 0).all()


def test_some_lamps_overlap_and_the_kettle_does_not():
    loads = make_appliance_loads(random_state=0)
    level = np.median(resistances(loads), axis=1)
    names = [appliance.name for appliance in APPLIANCES]
    bath = level[loads.appliance == names.index("ceiling lamp bathroom")]
    corridor = level[loads.appliance == names.index("ceiling lamp corridor")]
    kettle = level[loads.appliance == names.index("kettle")]
    assert np.quantile(corridor, 0.97) > np.quantile(bath, 0.03)
    assert kettle.max() < 0.2 * bath.min()


def test_same_seed_same_loads():
    first, again, other = (make_appliance_loads(60, random_state=s).traces for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"study": "lab"}, "`study` must"),
        ({"n": 0}, "`n` must"),
        ({"study": "install", "n": 100}, "multiple"),
        ({"drift": -0.1}, "`drift` must"),
        ({"noise": 0.7}, "`noise` must"),
    ],
)
def test_wrong_requests_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_appliance_loads(**wrong)
