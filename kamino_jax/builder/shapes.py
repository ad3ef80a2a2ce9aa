"""Shapes: geometry for collisions, volume for mass."""

from typing import TypedDict, Unpack

import numpy as np

from . import rigid
from .records import Shape
from .validate import AXES, direction, flag, known_options, new_name, not_negative, numbers, pose, positive, refuse


class ShapeOptions(TypedDict, total=False):
    """Keyword options of every shape, with their defaults in `DEFAULTS`."""

    name: str | None  # automatic if left out
    position: tuple  # (3,) [m] of the shape in the body frame (world frame if it stands on the world)
    rotation: tuple  # (4,) quaternion x y z w
    axis: str  # "x", "y" or "z": where the long axis of capsules, cylinders and cones points
    scale: float  # multiplies the size (not the position)
    density: float  # [kg/m³] gives the body mass
    mass: float | None  # [kg] instead of a density
    mu: float  # friction coefficient
    restitution: float  # 0 to 1
    margin: float  # [m] thickness: contacts act at this distance
    gap: float  # [m] contacts are found this far beyond the margin
    stiffness: float  # [N/m] used with contact_compliance
    damping: float  # [N s/m]
    group: int  # 0: never collides; positive: only with its own group and negative ones; negative: with all groups but its own
    collides: bool  # False: only looks and mass


DEFAULTS = ShapeOptions(
    name=None,
    position=(0.0, 0.0, 0.0),
    rotation=rigid.IDENTITY,
    axis="z",
    scale=1.0,
    density=0.0,
    mass=None,
    mu=0.5,
    restitution=0.0,
    margin=0.0,
    gap=0.0,
    stiffness=2500.0,
    damping=100.0,
    group=1,
    collides=True,
)
SURFACE = ("mu", "restitution", "margin", "gap", "stiffness", "damping")
# Rotations that turn local z to the named axis.
TURNS = {"x": (0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5)), "y": (-np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)), "z": rigid.IDENTITY}
ROUND = ("capsule", "cylinder", "cone")


def make_shape(kind: str, name: str, body: int, size: np.ndarray, given: ShapeOptions) -> Shape:
    """Checked record of a shape. `size` is checked already; `given` are the user's options."""
    owner = f"shape {name!r}"
    options = {**DEFAULTS, **given}
    if "axis" in given and kind not in ROUND:
        refuse(owner, f"a {kind} has no long axis; use rotation instead of axis")
    mass, density = _mass(owner, body, options)
    return Shape(
        name=name,
        kind=kind,
        body=body,
        size=size * positive(owner, "scale", options["scale"]),
        pose=_pose(owner, options),
        density=density,
        mass=mass,
        surface=_surface(owner, options),
        group=_group(owner, options["group"]),
        collides=_collides(owner, kind, options["collides"]),
    )


def _mass(owner, body, options):
    density = float(not_negative(owner, "density", options["density"]))
    mass = None if options["mass"] is None else float(not_negative(owner, "mass", options["mass"]))
    if density and mass is not None:
        refuse(owner, "has both a density and a mass; give one of them")
    if body == -1 and (density or mass):
        refuse(owner, "stands on the world, which has no mass; leave out density and mass")
    return mass, density


def _pose(owner, options):
    if options["axis"] not in AXES:
        refuse(owner, f"axis is {options['axis']!r}; it must be 'x', 'y' or 'z'")
    given = pose(owner, "", options["position"], options["rotation"])
    return rigid.compose(given, np.array([0.0, 0.0, 0.0, *TURNS[options["axis"]]]))


def _surface(owner, options):
    surface = {key: float(not_negative(owner, key, options[key])) for key in SURFACE}
    if surface["restitution"] > 1:
        refuse(owner, f"restitution is {surface['restitution']:g}; it must be between 0 and 1")
    return surface


def _group(owner, group):
    if not isinstance(group, int | np.integer) or isinstance(group, bool):
        raise TypeError(f"{owner}: group is {group!r}; it must be an integer")
    return int(group)


def _collides(owner, kind, collides):
    if flag(owner, "collides", collides) and kind == "cone":
        refuse(owner, "cones cannot collide, they only give mass; set collides=False, or use a cylinder or capsule")
    return bool(collides)


class ShapeMethods:
    """The `add_<shape>` methods of `ModelBuilder`. `body` is a name, or None for the world; each returns the shape's name.

    Keyword options are those of `ShapeOptions`.
    """

    _shapes: list[Shape]

    def _body_index(self, owner: str, name, *, world: bool = True) -> int:
        raise NotImplementedError

    def _add_shape(self, kind, body, sizes, options):
        """`sizes`: pairs of an argument's name and value; numbers and vectors are strung together into the size."""
        name = new_name("shape", options.get("name"), [s.name for s in self._shapes])
        owner = f"shape {name!r}"
        known_options(owner, options, ShapeOptions.__annotations__)
        size = np.concatenate([np.ravel(positive(owner, key, value, shape)) for key, value, shape in sizes] or [np.zeros(3)])
        size = np.pad(size, (0, 3 - len(size)))
        self._shapes.append(make_shape(kind, name, self._body_index(owner, body), size, options))
        return name

    def add_sphere(self, body: str | None, radius: float, **options: Unpack[ShapeOptions]) -> str:
        """Ball of the given radius [m] about the shape's position."""
        return self._add_shape("sphere", body, [("radius", radius, ())], options)

    def add_box(self, body: str | None, half_extents, **options: Unpack[ShapeOptions]) -> str:
        """Box with half edges (x, y, z) [m]."""
        return self._add_shape("box", body, [("half_extents", half_extents, (3,))], options)

    def add_ellipsoid(self, body: str | None, radii, **options: Unpack[ShapeOptions]) -> str:
        """Ellipsoid with half axes (x, y, z) [m]."""
        return self._add_shape("ellipsoid", body, [("radii", radii, (3,))], options)

    def add_capsule(self, body: str | None, radius: float, half_length: float, **options: Unpack[ShapeOptions]) -> str:
        """Barrel of length 2 `half_length` [m] with half balls on both ends, along local z or `axis`."""
        return self._add_shape("capsule", body, [("radius", radius, ()), ("half_length", half_length, ())], options)

    def add_cylinder(self, body: str | None, radius: float, half_length: float, **options: Unpack[ShapeOptions]) -> str:
        """Cylinder of length 2 `half_length` [m], along local z or `axis`."""
        return self._add_shape("cylinder", body, [("radius", radius, ()), ("half_length", half_length, ())], options)

    def add_cone(self, body: str | None, radius: float, half_length: float, **options: Unpack[ShapeOptions]) -> str:
        """Cone of height 2 `half_length` [m], tip towards +z (or `axis`), position at half height. Needs collides=False."""
        return self._add_shape("cone", body, [("radius", radius, ()), ("half_length", half_length, ())], options)

    def add_plane(self, body: None = None, *, normal=None, offset: float = 0.0, **options: Unpack[ShapeOptions]) -> str:
        """Infinite plane on the world: the points x with normal · x = offset [m], solid below.

        Without `normal`, local z of position and rotation is the normal; the default is the ground z = 0.
        """
        name = new_name("shape", options.get("name"), [s.name for s in self._shapes])
        owner = f"shape {name!r}"
        if body is not None:
            refuse(owner, f"a plane stands on the world only, not on body {body!r}; use a box")
        if "scale" in options or options.get("density") or options.get("mass"):
            refuse(owner, "a plane is infinite: it has neither size nor mass; leave out scale, density and mass")
        height = numbers(owner, "offset", offset, ())
        if normal is None and height == 0:
            return self._add_shape("plane", None, [], options)
        if "position" in options or "rotation" in options:
            refuse(owner, "give the plane either normal and offset, or position and rotation")
        up = direction(owner, "normal", (0, 0, 1) if normal is None else normal)
        placed: ShapeOptions = {"position": tuple(height * up), "rotation": tuple(_turn_z(up))}
        return self._add_shape("plane", None, [], {**options, **placed})


def _turn_z(up):
    """Quaternion of the shortest turn from z to the unit vector `up`."""
    half = np.array([-up[1], up[0], 0.0, 1 + up[2]])
    length = np.linalg.norm(half)
    return half / length if length > 1e-9 else np.array([1.0, 0.0, 0.0, 0.0])
