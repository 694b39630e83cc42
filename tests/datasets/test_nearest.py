import numpy as np

from twofold.datasets.nearest import BLOCK_ROWS, nearest_parameter


def sq_dist_to_parabola(t, Y):
    return (Y[..., 0] - t) ** 2 + (Y[..., 1] - t**2) ** 2


def test_parabola_by_hand():
    nodes = np.linspace(-2.0, 2.0, 41)
    Y = np.array(
        [
            [0.0, -1.0],  # below the apex: t = 0
            [3.0, 0.5],  # 2 t (t^2 - 0.5) + t - 3 = 2 t^3 - 3 = 0: t = 1.5^(1/3)
            [9.0, 4.0],  # 2 t (t^2 - 4) + t - 9 > 0 from t = 2.5 on only: cut off at t = 2
        ]
    )
    t = nearest_parameter(sq_dist_to_parabola, Y, nodes)
    # The distance is flat about its minimum: the parameter is sharp to sqrt(eps) only.
    np.testing.assert_allclose(t, [0.0, 1.5 ** (1 / 3), 2.0], atol=1e-7)


def test_the_lower_of_two_minima_wins():
    nodes = np.linspace(-2.0, 2.0, 41)
    # Above the focus both branches are near; the row leans to the right one by a hair.
    Y = np.array([[1e-6, 3.0], [-1e-6, 3.0]])
    t = nearest_parameter(sq_dist_to_parabola, Y, nodes)
    # On the axis t^2 = 3 - 1/2.
    np.testing.assert_allclose(t, [np.sqrt(2.5), -np.sqrt(2.5)], atol=1e-5)


def test_blocks_do_not_show():
    rng = np.random.default_rng(0)
    nodes = np.linspace(-2.0, 2.0, 41)
    Y = rng.normal(size=(BLOCK_ROWS + 3, 2))
    whole = nearest_parameter(sq_dist_to_parabola, Y, nodes)
    tail = nearest_parameter(sq_dist_to_parabola, Y[-5:], nodes)
    np.testing.assert_array_equal(whole[-5:], tail)
