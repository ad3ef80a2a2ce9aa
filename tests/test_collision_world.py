"""Laws of a world's contacts: thresholds, margins, sides, materials, capacity; and the three collision cases of the issue trackers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from collision_reference import rotation, shape
from test_collision import X64, build, collider, config, contacts, jitted, rows

from kamino_jax.collision import collide, contact_frame
from kamino_jax.config import Config, MaterialsConfig
from kamino_jax.pytree import replace

BALL = {"type": "sphere", "params": [0.5]}


def balls(z, **kwargs):
    return [BALL | kwargs, BALL | {"pos": [0, 0, z]} | kwargs]


def test_a_gap_finds_contacts_and_a_margin_shifts_them():
    active = lambda *args: bool(contacts(*args)[1].active[0])
    assert active(balls(1.0), config())  # equality is a contact
    assert not active(balls(1.001), config())
    assert active(balls(1.015), config(default_gap=0.01))
    assert active(balls(1.03, gap=0.015625), config(default_gap=0.01))
    assert not active(balls(1.03, gap=0.015625), config(cull=True))
    _, c = contacts(balls(1.03, gap=0.05, margin=0.01), config())
    np.testing.assert_allclose([c.distance[0], c.point_a[0, 2], c.point_b[0, 2]], [0.01, 0.5, 0.53], atol=1e-6)
    assert not active(balls(1.0201, margin=0.01), config(cull=True, default_gap=0.1))


def test_the_world_stands_on_side_a():
    """B is a body whatever the order of the shapes; both points keep their surfaces."""
    floor = {"type": "box", "params": [1, 1, 0.5], "static": True}
    crate = {"type": "box", "params": [0.5, 0.5, 0.5], "pos": [0.1, 0.2, 0.99]}
    for shapes, first in (([floor, crate], 0), ([crate, floor], 1)):
        model, c = contacts(shapes, config())
        on = c.active
        assert on.sum() == 4 and np.all(c.body_a[on] == -1) and np.all(c.body_b[on] == 0)
        assert np.all(c.key[on] == 2 * first + (1 - first)) and np.all(c.key[~on] == -1)
        np.testing.assert_allclose(c.normal, np.tile([0, 0, 1], (len(on), 1)), atol=1e-6)
        np.testing.assert_allclose(c.point_a[on, 2], 0.5, atol=1e-6)
        np.testing.assert_allclose(c.point_b[on, 2], 0.49, atol=1e-6)


@pytest.mark.parametrize("mode, expected", [("average", 0.5), ("min", 0.2), ("max", 0.8), ("multiply", 0.16), ("geometric_average", 0.4)])
def test_materials_mix(mode, expected):
    shapes = [BALL | {"mu": 0.2, "restitution": 0.8}, BALL | {"mu": 0.8, "restitution": 0.2, "pos": [0, 0, 0.9]}]
    _, c = contacts(shapes, config(materials=MaterialsConfig(mode, mode)))
    np.testing.assert_allclose([c.mu[0], c.restitution[0]], expected, atol=1e-6)


def pile(n):
    """Balls on a plane, ball i sunk in by (i + 1/2)/100 m, far from each other."""
    sunk = [{"type": "sphere", "params": [0.1], "pos": [3.0 * i, 0, 0.1 - 0.01 * (i + 0.5)]} for i in range(n)]
    return [{"type": "plane", "static": True}, *sunk]


def test_the_deepest_contacts_are_kept():
    _, every = contacts(pile(6), config())
    _, some = contacts(pile(6), config(), 4)
    assert every.found == some.found == 6 and some.active.shape == (4,)
    assert same_rows(rows(some), rows(every)[np.argsort(rows(every)[:, -1])[:4]])
    assert np.all(np.diff(some.distance) >= 0) and set(some.key) <= set(every.key)


def same_rows(a, b):
    return np.allclose(a[np.argsort(a[:, -1])], b[np.argsort(b[:, -1])])


def test_spare_capacity_and_empty_worlds():
    model = build(pile(2))
    roomy = replace(model, layout=replace(model.layout, rows=replace(model.layout.rows, nc=9)))
    c = collider(config())(roomy, model.start.q)
    assert c.active.shape == (9,) and int(c.active.sum()) == int(c.found) == 2
    np.testing.assert_array_equal(jnp.linalg.norm(c.normal, axis=1), 1)
    for empty in (
        replace(model, layout=replace(model.layout, rows=replace(model.layout.rows, nc=0))),
        build([BALL]),
    ):
        c = collider(config())(empty, empty.start.q)
        assert c.found == 0 and c.active.shape == (empty.layout.rows.nc,) and not c.active.any()


def test_switched_off_pairs_make_no_contacts():
    model = build(pile(3))
    off = replace(model, topology=replace(model.topology, pair_on=model.topology.pair_on.at[1].set(False)))
    assert collider(config())(off, model.start.q).found == 2


def equations(jaxpr):
    inner = [x.jaxpr for e in jaxpr.eqns for x in e.params.values() if hasattr(x, "jaxpr")]
    return len(jaxpr.eqns) + sum(map(equations, inner))


def test_the_program_does_not_grow_with_the_world():
    count = lambda model: equations(jax.make_jaxpr(functools.partial(collide, config=Config()))(model, model.start.q).jaxpr)
    assert count(build(pile(2))) == count(build(pile(12)))


def test_worlds_map_like_one():
    model = build(pile(3))
    q = model.start.q + 0.01 * jnp.arange(4)[:, None, None].astype(model.dtype) * jnp.array([0, 0, 1, 0, 0, 0, 0], model.dtype)
    many = jax.vmap(lambda q: collide(model, q, config()))(q)
    one = collider(config())(model, q[2])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[2], b, atol=1e-6), many, one)


@pytest.mark.parametrize("n", [(0, 0, 1), (1, 0, 0), (0, -1, 0), (0.6, 0.48, 0.64), (-0.9, 0.1, 0.4)])
def test_contact_frame(n):
    n = jnp.asarray(np.array(n) / np.linalg.norm(n), jnp.zeros(()).dtype)
    frame = np.asarray(contact_frame(n))
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-6)
    np.testing.assert_allclose([*frame[2], np.linalg.det(frame)], [*n, 1], atol=1e-6)
    if n[2] == 1:
        np.testing.assert_allclose(frame, np.eye(3), atol=1e-7)


@pytest.mark.parametrize("base", [("z", 0), ("z", 30), ("x", 45)])
@pytest.mark.parametrize("noise", [0, 1e-14, 1e-9, 1e-7])
def test_aligned_cubes_touch_in_four_points(base, noise):
    """Case A10: ties between equal corners and axes are not decided by rounding."""
    axis, degrees = base
    R = rotation([1, 0, 0] if axis == "x" else [0, 0, 1], np.radians(degrees))
    for extra in np.eye(3):
        for turn, p in ((rotation(extra, noise), R[:, 2]), (rotation(extra, -noise), -R[:, 0])):
            a, b = shape((0, 0, 0), R, [0.5] * 3), shape(p, R @ turn, [0.5] * 3)
            d, n, m = jitted["box_box"](a, b)
            on = np.asarray(d) <= 2e-3
            points = np.asarray(m)[on]
            assert on.sum() == 4, (extra, d)
            assert np.min(np.linalg.norm(points[:, None] - points[None], axis=2) + 9 * np.eye(4)) > 0.9
            np.testing.assert_allclose(n, p, atol=1e-6 if X64 else 1e-5)
            assert np.abs(np.asarray(d)[on]).max() < 1e-6


def test_octagon_has_eight_points():
    for degrees in (45, 30):
        a, b = shape((0, 0, 0), np.eye(3), [0.5] * 3), shape((0, 0, 0.99), rotation([0, 0, 1], np.radians(degrees)), [0.5] * 3)
        d, _, m = jitted["box_box"](a, b)
        np.testing.assert_allclose(d, -0.01, atol=1e-6)
        assert np.min(np.linalg.norm(m[:, None] - m[None], axis=2) + np.eye(8)) > 0.1


def test_sphere_sinking_into_a_box():
    """Case A11: depth = z to 1e-7, normal +z and d(depth)/dz = 1 also with the centre on or below the face."""
    top, radius = -0.005, 0.005
    turn = np.eye(3)
    box, plane = shape((0, 0, top - 0.25), turn, (0.5, 0.5, 0.25)), shape((0, 0, top), turn, ())

    def distance(kind, z):
        ball = replace(shape((0.1, 0.2, 0), turn, (radius,)), p=jnp.stack([jnp.full_like(z, 0.1), jnp.full_like(z, 0.2), z]))
        pair = (ball, box) if kind == "sphere_box" else (plane, ball)
        d, n, _ = jitted[kind](*pair)
        return d[0], n

    zs = jnp.concatenate([jnp.linspace(-1e-6, -0.0099, 200), jnp.array([top])]).astype(plane.p.dtype)
    for kind, up in (("sphere_box", -1), ("plane_sphere", 1)):
        (d, n), slope = jax.vmap(lambda z, k=kind: (distance(k, z), jax.grad(lambda z: distance(k, z)[0])(z)))(zs)
        np.testing.assert_allclose(d, zs, atol=1e-7)
        np.testing.assert_allclose(n, np.tile([0, 0, up], (201, 1)), atol=1e-6)
        np.testing.assert_allclose(slope, 1, atol=1e-6)
