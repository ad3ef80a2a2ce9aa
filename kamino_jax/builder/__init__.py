"""Building a model: bodies, joints and shapes by name, checked as they are added."""

from ..model import Model
from .bodies import ZERO, make_body
from .finalize import Parts, finalize
from .joints import JointMethods
from .records import Body, Joint, Shape
from .rigid import IDENTITY
from .shapes import ShapeMethods
from .validate import new_name, numbers, refuse


class ModelBuilder(ShapeMethods, JointMethods):
    """Collects one world on the host; `finalize` turns it into a `Model`.

        builder = ModelBuilder()
        builder.add_body("rod", position=(0.5, 0, 0))
        builder.add_box("rod", (0.5, 0.02, 0.02), density=1000.0)
        builder.add_revolute(None, "rod", name="hinge", at=(0, 0, 0), axis="y")
        model = builder.finalize()

    Bodies come before the joints and shapes that name them. None stands for the world. SI units, rotations are quaternions
    (x, y, z, w). Every mistake is refused at once, with the name of the culprit and the remedy.
    """

    def __init__(self, gravity=(0.0, 0.0, -9.81)):
        """Empty world with the given gravity [m/s²]."""
        self._gravity = numbers("ModelBuilder", "gravity", gravity, (3,))
        self._bodies: list[Body] = []
        self._shapes: list[Shape] = []
        self._joints: list[Joint] = []
        self._ignored: list[tuple] = []

    def add_body(
        self,
        name: str | None = None,
        *,
        mass: float | None = None,
        inertia=None,
        com=None,
        position=ZERO,
        rotation=IDENTITY,
        velocity=ZERO,
        angular_velocity=ZERO,
        kinematic: bool = False,
    ) -> str:
        """Add a rigid body and return its name ("body_0", ... if none is given).

        Args:
            name: what joints, shapes and messages call it.
            mass: [kg]. Without mass and inertia, both come from the body's shapes; without those either, the body never moves.
            inertia: [kg m²] about the centre of mass in body axes, three moments or a 3 x 3 matrix.
            com: centre of mass in the body frame [m].
            position: origin of the body frame at the start [m].
            rotation: of the body frame at the start, quaternion x y z w.
            velocity: of the centre of mass, world axes [m/s].
            angular_velocity: world axes [rad/s].
            kinematic: nothing moves the body; its velocity still drags what it touches.

        Raises:
            ValueError: a taken name, negative mass, impossible inertia, zero quaternion, NaN or Inf.
            TypeError: a value of the wrong type.
        """
        given = {"mass": mass, "inertia": inertia, "com": com, "position": position, "rotation": rotation}
        given |= {"velocity": velocity, "angular_velocity": angular_velocity, "kinematic": kinematic}
        name = new_name("body", name, [b.name for b in self._bodies])
        self._bodies.append(make_body(name, given))
        return name

    def ignore_collisions(self, a: str | None, b: str | None) -> None:
        """Never let `a` touch `b`: each names a shape or a body (all its shapes, also later ones); None is the world's shapes."""
        for name in (a, b):
            known = [x.name for x in (*self._shapes, *self._bodies)]
            if name is not None and name not in known:
                listed = ", ".join(known) or "none"
                refuse("ignore_collisions", f"there is no shape or body {name!r}; there are {listed} (None is the world)")
        self._ignored.append((a, b))

    def finalize(self, dtype=None, max_contacts: int | None = None) -> Model:
        """The finished `Model`. The builder stays as it is and may be extended and finalized again.

        Args:
            dtype: floating type of all numbers; JAX's default if left out.
            max_contacts: contacts that one step can hold; by default as many as all pairs of shapes together can make. Fewer are faster.

        Raises:
            ValueError: no bodies, a body that can move but has no mass or inertia, mass given twice, shapes that cannot collide with each
                other, max_contacts < 1, or a dtype that JAX is not set up for.
            TypeError: max_contacts or dtype of the wrong type.
        """
        parts = Parts(self._gravity, self._bodies, self._shapes, self._joints, self._ignored_pairs())
        return finalize(parts, dtype, max_contacts)

    def _body_index(self, owner: str, name, *, world: bool = True) -> int:
        """Index of a body by name, -1 for None if `world` may stand there."""
        names = [b.name for b in self._bodies]
        if name is None and world:
            return -1
        if name is None:
            refuse(owner, "the child is None, but the world can only be the parent; swap the two")
        if name not in names:
            refuse(owner, f"there is no body {name!r}; there are {', '.join(names) or 'none'} (None is the world)")
        return names.index(name)

    def _ignored_pairs(self) -> set[tuple[int, int]]:
        pairs = set()
        for a, b in self._ignored:
            pairs |= {(min(i, j), max(i, j)) for i in self._shapes_of(a) for j in self._shapes_of(b)}
        return pairs

    def _shapes_of(self, name):
        bodies = [-1] if name is None else [i for i, b in enumerate(self._bodies) if b.name == name]
        return [i for i, s in enumerate(self._shapes) if s.body in bodies or s.name == name]
