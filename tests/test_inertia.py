"""Mass, centre of mass and inertia of solids: known numbers, numerical integration, and sums."""

import numpy as np
import pytest

from kamino_jax.builder import ModelBuilder
from kamino_jax.dynamics.inertia import inverse_inertia, inverse_mass

SINGLE = 1e-6  # relative rounding of single precision
SIX_DIGITS = 1e-5  # reference numbers are given with five or six digits
GRID = 2e-3  # relative error of a midpoint rule with a 120^3 grid on a curved surface
HALF_TURN = np.sqrt(0.5)
TURN_TO = {"x": (0, HALF_TURN, 0, HALF_TURN), "y": (-HALF_TURN, 0, 0, HALF_TURN), "z": (0, 0, 0, 1)}


def body_of(*shapes):
    """Mass, com and inertia of one body with shapes ("kind", sizes, options)."""
    builder = ModelBuilder()
    builder.add_body("body")
    for kind, sizes, options in shapes:
        options = {"collides": False, "density": 1000.0, **options}
        getattr(builder, f"add_{kind}")("body", *sizes, **options)
    bodies = builder.finalize().bodies
    return float(bodies.mass[0]), np.asarray(bodies.com[0]), np.asarray(bodies.inertia[0])


CAPSULE = {"x": (0.11100, 1.10060, 1.10060), "y": (1.10060, 0.11100, 1.10060), "z": (1.10060, 1.10060, 0.11100)}


@pytest.mark.parametrize("axis", "xyz")
@pytest.mark.parametrize("by", ["axis", "rotation"])
def test_a_capsule_has_its_small_moment_about_its_long_axis(axis, by):
    """Capsule r 0.1 m, half length 0.3 m, 1000 kg/m³ (newton-physics/newton#486, dartsim/dart#1524)."""
    options = {"axis": axis} if by == "axis" else {"rotation": TURN_TO[axis]}
    mass, com, inertia = body_of(("capsule", (0.1, 0.3), options))
    assert mass == pytest.approx(23.038, rel=5 * SIX_DIGITS)
    np.testing.assert_allclose(inertia, np.diag(CAPSULE[axis]), rtol=2 * SIX_DIGITS, atol=SINGLE)
    np.testing.assert_allclose(com, 0, atol=SINGLE)


def test_a_box_has_the_moments_of_its_full_lengths():
    mass, _, inertia = body_of(("box", ((0.1, 0.2, 0.3),), {}))
    assert mass == pytest.approx(48.0, rel=SINGLE)
    x, y, z = 0.2**2, 0.4**2, 0.6**2
    np.testing.assert_allclose(inertia, 48 / 12 * np.diag([y + z, x + z, x + y]), rtol=SINGLE, atol=SINGLE)


# sizes, half edges of the bounding box, which points of it belong to the solid
SOLIDS = {
    "sphere": ((0.2,), (0.2, 0.2, 0.2), lambda x, y, z: x**2 + y**2 + z**2 < 0.2**2),
    "box": (((0.1, 0.2, 0.3),), (0.1, 0.2, 0.3), lambda x, y, z: np.full(x.shape, True)),
    "ellipsoid": (((0.1, 0.2, 0.3),), (0.1, 0.2, 0.3), lambda x, y, z: (x / 0.1) ** 2 + (y / 0.2) ** 2 + (z / 0.3) ** 2 < 1),
    "capsule": ((0.1, 0.2), (0.1, 0.1, 0.3), lambda x, y, z: x**2 + y**2 + np.maximum(abs(z) - 0.2, 0) ** 2 < 0.1**2),
    "cylinder": ((0.15, 0.2), (0.15, 0.15, 0.2), lambda x, y, z: x**2 + y**2 < 0.15**2),
    "cone": ((0.2, 0.25), (0.2, 0.2, 0.25), lambda x, y, z: x**2 + y**2 < (0.2 * (0.25 - z) / 0.5) ** 2),
}


def integrated(half, inside, points=120):
    """Mass, com and inertia of the solid at 1000 kg/m³, from the midpoints of a grid over its bounding box."""
    half = np.array(half)
    line = (2 * np.arange(points) + 1) / points - 1
    grid = half * np.stack(np.meshgrid(line, line, line, indexing="ij"), -1)
    r = grid[inside(grid[..., 0], grid[..., 1], grid[..., 2])]
    weight = 1000.0 * np.prod(2 * half / points)
    mass, com = weight * len(r), r.mean(axis=0)
    d = r - com
    return mass, com, weight * (np.sum(d * d) * np.eye(3) - d.T @ d)


@pytest.mark.parametrize("kind", SOLIDS)
def test_a_solid_has_the_moments_of_its_volume(kind):
    sizes, half, inside = SOLIDS[kind]
    mass, com, inertia = body_of((kind, sizes, {}))
    expected = integrated(half, inside)
    assert mass == pytest.approx(expected[0], rel=GRID)
    np.testing.assert_allclose(com, expected[1], atol=GRID * max(half))
    np.testing.assert_allclose(inertia, expected[2], atol=GRID * np.abs(inertia).max())


@pytest.mark.parametrize("axis", "xyz")
@pytest.mark.parametrize("kind", SOLIDS)
def test_a_turned_solid_has_turned_moments(kind, axis):
    sizes = SOLIDS[kind][0]
    _, com, upright = body_of((kind, sizes, {}))
    _, turned_com, turned = body_of((kind, sizes, {"rotation": TURN_TO[axis]}))
    R = {"x": [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], "y": [[1, 0, 0], [0, 0, 1], [0, -1, 0]], "z": np.eye(3)}[axis]
    R = np.array(R, float)
    np.testing.assert_allclose(turned, R @ upright @ R.T, rtol=SINGLE, atol=SINGLE)
    np.testing.assert_allclose(turned_com, R @ com, atol=SINGLE)


@pytest.mark.parametrize("kind", SOLIDS)
def test_twice_the_size_is_eight_times_the_mass_and_thirty_two_times_the_inertia(kind):
    """bulletphysics/bullet3#1792 scaled the inertia by the wrong power."""
    sizes = SOLIDS[kind][0]
    mass, com, inertia = body_of((kind, sizes, {}))
    big_mass, big_com, big_inertia = body_of((kind, sizes, {"scale": 2.0}))
    assert big_mass == pytest.approx(8 * mass, rel=SINGLE)
    np.testing.assert_allclose(big_com, 2 * com, atol=SINGLE)
    np.testing.assert_allclose(big_inertia, 32 * inertia, rtol=SINGLE, atol=SINGLE)


@pytest.mark.parametrize("kind", SOLIDS)
def test_mass_may_be_given_instead_of_density(kind):
    sizes = SOLIDS[kind][0]
    mass, _, inertia = body_of((kind, sizes, {}))
    given, _, same = body_of((kind, sizes, {"density": 0.0, "mass": mass}))
    assert given == pytest.approx(mass, rel=SINGLE)
    np.testing.assert_allclose(same, inertia, rtol=SINGLE, atol=SINGLE)


def test_two_half_boxes_make_a_box():
    whole = body_of(("box", ((0.2, 0.1, 0.3),), {"position": (1, 2, 3)}))
    halves = body_of(*(("box", ((0.1, 0.1, 0.3),), {"position": (1 + x, 2, 3)}) for x in (-0.1, 0.1)))
    for a, b in zip(whole, halves, strict=True):
        np.testing.assert_allclose(a, b, rtol=SINGLE, atol=10 * SINGLE)


def test_shapes_without_density_add_nothing():
    alone = body_of(("box", ((0.1, 0.1, 0.3),), {}))
    with_skin = body_of(("box", ((0.1, 0.1, 0.3),), {}), ("sphere", (0.5,), {"density": 0.0}))
    for a, b in zip(alone, with_skin, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_inverse_inertia_undoes_a_full_matrix():
    matrix = np.array([[0.3, 0.02, -0.01], [0.02, 0.4, 0.03], [-0.01, 0.03, 0.35]])
    builder = ModelBuilder()
    builder.add_body("body", mass=2.0, inertia=matrix)
    model = builder.finalize()
    np.testing.assert_allclose(model.bodies.inertia[0] @ inverse_inertia(model)[0], np.eye(3), atol=SINGLE)
    np.testing.assert_allclose(inverse_mass(model), [0.5])
