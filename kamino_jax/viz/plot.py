"""One picture of a run: coordinates, contact force (or joint gap) and residual over time, and the mechanism at a few instants."""

import numpy as np

from ..model import Model

INSTANTS = 5
LEGEND = 8  # lines that a legend may name
CIRCLE = np.linspace(0, 2 * np.pi, 25)


def _rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    t = 2 * np.cross(q[:3], v)
    return v + q[3] * t + np.cross(q[:3], t)


def _box_edges(h: np.ndarray) -> list[np.ndarray]:
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * h
    return [corners[[i, j]] for i in range(8) for j in range(i) if bin(i ^ j).count("1") == 1]


def _rings(radii: np.ndarray) -> list[np.ndarray]:
    c, s, zero = np.cos(CIRCLE), np.sin(CIRCLE), np.zeros_like(CIRCLE)
    return [np.stack(points, 1) * radii for points in ((c, s, zero), (c, zero, s), (zero, c, s))]


def _tube(radius: float, half: float) -> list[np.ndarray]:
    ring = np.stack([np.cos(CIRCLE) * radius, np.sin(CIRCLE) * radius, np.zeros_like(CIRCLE)], 1)
    ends = [ring + (0, 0, sign * half) for sign in (-1, 1)]
    sides = [np.stack([ends[0][k], ends[1][k]]) for k in (0, 6, 12, 18)]
    return ends + sides


OUTLINES = {
    "box": _box_edges,
    "sphere": lambda size: _rings(np.full(3, size[0])),
    "ellipsoid": _rings,
    "capsule": lambda size: _tube(size[0], size[1]) + [r + (0, 0, s * size[1]) for r in _rings(np.full(3, size[0])) for s in (-1, 1)],
    "cylinder": lambda size: _tube(size[0], size[1]),
    "cone": lambda size: (
        _tube(size[0], size[1])[:1]
        + [np.array([[size[0] * c, size[0] * s, -size[1]], [0, 0, size[1]]]) for c, s in ((1, 0), (0, 1), (-1, 0), (0, -1))]
    ),
}


def _geom_lines(model: Model) -> list[tuple[int, list[np.ndarray]]]:
    """(body, polylines in the CoM frame) of every moving geom."""
    X, size, body = (np.asarray(x) for x in (model.geoms.X, model.geoms.size, model.topology.geom_body))
    com = np.asarray(model.bodies.com)
    shapes = model.names.shapes
    return [
        (int(b), [X[g, :3] - com[b] + _rotate(X[g, 3:], line) for line in OUTLINES[shapes[g]](size[g])])
        for g, b in enumerate(body)
        if b >= 0
    ]


def _joint_lines(model: Model) -> list[tuple[int, list[np.ndarray]]]:
    """(body, lines from the centre of mass to each of the body's joint anchors)."""
    joints, top, com = model.joints, model.topology, np.asarray(model.bodies.com)
    ends = [(np.asarray(top.base), np.asarray(joints.X_B)), (np.asarray(top.follower), np.asarray(joints.X_F))]
    return [(int(b), [np.stack([np.zeros(3), x[:3] - com[b]])]) for bodies, X in ends for b, x in zip(bodies, X, strict=True) if b >= 0]


def _plane_of_view(q: np.ndarray) -> tuple[int, int]:
    """The horizontal axis along which things extend most, and z."""
    spread = np.ptp(q[..., :3].reshape(-1, 3), axis=0)
    return (0 if spread[0] >= spread[1] else 1), 2


def draw_mechanism(axes, model: Model, q: np.ndarray) -> None:
    """Outlines of world 0 at a few instants of q (steps, nb, 7), from grey to blue."""
    across, up = _plane_of_view(q)
    lines = _geom_lines(model) + _joint_lines(model)
    for k, at in enumerate(np.linspace(0, len(q) - 1, INSTANTS).astype(int)):
        shade = (k + 1) / INSTANTS
        for body, polylines in lines:
            for line in polylines:
                points = q[at, body, :3] + _rotate(q[at, body, 3:], line)
                axes.plot(points[:, across], points[:, up], color=(0.1, 0.3, 0.7), alpha=0.15 + 0.75 * shade**2, lw=0.8)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel=f"{'xyz'[across]} [m]", ylabel="z [m]", title=f"mechanism at {INSTANTS} instants (pale to dark)")


def draw_coordinates(axes, model: Model, first: dict[str, np.ndarray], t: np.ndarray) -> None:
    """Joint coordinates over time, or heights where there are no joints."""
    jointed = first["joint_q"].shape[1] > 0
    values = first["joint_q"] if jointed else first["q"][:, :, 2]
    owners = np.asarray(model.topology.coordinate) // 10 if jointed else np.arange(values.shape[1])
    names = model.names.joints if jointed else model.names.bodies
    for column, owner in zip(values.T, owners, strict=True):
        axes.plot(t, column, lw=1, label=names[owner])
    axes.set(title="joint coordinates" if jointed else "heights of the centres of mass", ylabel="[m, rad]")
    if values.shape[1] <= LEGEND:
        axes.legend(fontsize="small")


def plot(path: str, scene: str, model: Model, first: dict[str, np.ndarray], dt: float) -> None:
    """Write the picture of world 0 to `path` (.png, .pdf, .svg).

    Args:
        model: the first world. first: `Recording.first`. dt: time step [s].
    """
    from matplotlib.figure import Figure

    t = dt * np.arange(1, len(first["q"]) + 1)
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    (coordinates, mechanism), (force, residual) = figure.subplots(2, 2)
    draw_coordinates(coordinates, model, first, t)
    draw_mechanism(mechanism, model, first["q"])
    touching = bool(np.any(first["contact_force"]))
    force.plot(t, first["contact_force"] if touching else first["joint_gap"], lw=1, color="tab:orange")
    title = "sum of normal contact forces" if touching else "largest joint position error (no contacts)"
    force.set(title=title, ylabel="[N]" if touching else "[m, rad]", xlabel="time [s]")
    residual.semilogy(t, np.maximum(first["residual"], 1e-16), lw=1, color="tab:green")
    residual.set(title="natural-map residual of the solve", ylabel="[N s, m/s]", xlabel="time [s]")
    for axes in (coordinates, force, residual):
        axes.grid(alpha=0.3)
    figure.suptitle(scene)
    figure.savefig(path, dpi=120)
