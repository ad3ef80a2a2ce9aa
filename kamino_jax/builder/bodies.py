"""Bodies: what `add_body` checks, mass from shapes, and which bodies cannot move or may not be so light."""

import numpy as np

from .inertia import MassProperties, checked_inertia, combine, is_singular, solid
from .records import Body, Joint, Shape
from .validate import flag, not_negative, numbers, pose, refuse

ZERO = (0.0, 0.0, 0.0)


def make_body(name: str, given: dict) -> Body:
    """Checked record from the keyword arguments of `add_body`."""
    owner = f"body {name!r}"
    optional = {key: given[key] for key in ("mass", "inertia", "com") if given[key] is not None}
    mass = float(not_negative(owner, "mass", optional["mass"])) if "mass" in optional else None
    inertia = checked_inertia(owner, optional["inertia"]) if "inertia" in optional else None
    velocity = numbers(owner, "velocity", given["velocity"], (3,))
    body = Body(
        name=name,
        mass=mass,
        inertia=inertia,
        com=numbers(owner, "com", optional["com"], (3,)) if "com" in optional else None,
        pose=pose(owner, "", given["position"], given["rotation"]),
        twist=np.concatenate([velocity, numbers(owner, "angular_velocity", given["angular_velocity"], (3,))]),
        kinematic=flag(owner, "kinematic", given["kinematic"]),
    )
    if mass is None and inertia is not None and inertia.any():
        refuse(owner, "has an inertia but no mass; give mass as well")
    return body


def mass_properties(body: Body, shapes: list[Shape]) -> MassProperties:
    """Mass, centre of mass and inertia: those given, or the sum over the shapes that carry mass. ValueError if both."""
    massive = [s for s in shapes if s.massive]
    if not massive:
        com = np.zeros(3) if body.com is None else body.com
        inertia = np.zeros((3, 3)) if body.inertia is None else body.inertia
        return MassProperties(body.mass or 0.0, com, inertia)
    if body.mass is not None:
        refuse(
            body.label,
            f"has a mass of its own, and its {massive[0].label} has a density or mass too; "
            "leave out the body's mass and inertia, or the shape's density and mass",
        )
    if body.com is not None:
        refuse(body.label, "com is given, but mass and com come from the shapes; leave com out, or give mass and inertia too")
    return combine(solid(s.kind, s.size, s.pose, density=s.density, mass=s.mass) for s in massive)


def immovable(body: Body, own: MassProperties) -> bool:
    """Whether no force moves the body: kinematic, or neither mass nor inertia."""
    return body.kinematic or (own.mass == 0 and not own.inertia.any())


def refuse_singular(bodies: list[Body], masses: list[MassProperties], joints: list[Joint]) -> None:
    """ValueError for the first body whose acceleration would be unbounded: no mass, or no inertia about some axis.

    Kinematic bodies and bodies fixed to the world are exempt, and so are bodies with neither mass nor inertia that no joint but a
    free joint to the world touches: those stay where they are.
    """
    welded, jointed = _welded(joints), _jointed(joints)
    for i, (body, own) in enumerate(zip(bodies, masses, strict=True)):
        frozen = own.mass == 0 and not own.inertia.any() and i not in jointed
        if body.kinematic or i in welded or frozen:
            continue
        if own.mass == 0:
            what = "no mass" if own.inertia.any() else "neither mass nor inertia"
            refuse(body.label, f"has {what} but can move; give mass and inertia, give a shape density=1000, or set kinematic=True")
        if is_singular(own.inertia):
            refuse(
                body.label,
                "has mass but no inertia about some axis, so that a torque would spin it without bound; give inertia=(Ixx, Iyy, Izz), "
                "or leave mass out and give it to a shape (mass=... or density=...)",
            )


def _welded(joints):
    """Bodies that a chain of fixed joints ties to the world."""
    found, size = {-1}, 0
    while size != len(found):
        size = len(found)
        for joint in joints:
            if joint.kind == "fixed" and found & {joint.parent, joint.child}:
                found |= {joint.parent, joint.child}
    return found - {-1}


def _jointed(joints):
    """Bodies on a joint other than a free joint to the world."""
    return {i for j in joints if j.kind != "free" or j.parent != -1 for i in (j.parent, j.child)}
