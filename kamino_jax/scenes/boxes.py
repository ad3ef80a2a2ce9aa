"""Boxes and spheres on the ground: alone, stacked, in a pyramid."""

from ..builder import ModelBuilder
from .parts import GROUND_MU, Scene, ready

OVERLAP = 1e-4  # [m] resting shapes start slightly in contact, so that no contact appears or vanishes by rounding


def box_on_plane(*, height: float = 0.0, mu: float = GROUND_MU, restitution: float = 0.0, gap: float = 0.0, dtype=None) -> Scene:
    """A cube of 0.2 m and 1 kg, its lowest face `height` [m] above the ground."""
    builder = ModelBuilder()
    builder.add_body("box", position=(0, 0, 0.1 + height))
    builder.add_box("box", (0.1, 0.1, 0.1), name="box_shape", mass=1.0, mu=mu, restitution=restitution, gap=gap)
    builder.add_plane(name="ground", mu=mu, restitution=restitution, gap=gap)
    return ready(builder, max_contacts=4, dtype=dtype)


def sphere_on_plane(*, height: float = 0.0, mu: float = GROUND_MU, restitution: float = 0.0, gap: float = 0.0, dtype=None) -> Scene:
    """A ball of radius 0.1 m and 1 kg, its lowest point `height` [m] above the ground."""
    builder = ModelBuilder()
    builder.add_body("sphere", position=(0, 0, 0.1 + height))
    builder.add_sphere("sphere", 0.1, name="sphere_shape", mass=1.0, mu=mu, restitution=restitution, gap=gap)
    builder.add_plane(name="ground", mu=mu, restitution=restitution, gap=gap)
    return ready(builder, max_contacts=1, dtype=dtype)


def box_stack(n: int = 3, *, half: float = 0.1, density: float = 1000.0, mu: float = GROUND_MU, gap: float = 0.0, dtype=None) -> Scene:
    """A tower of n cubes with half edge `half` [m] on the ground."""
    builder = ModelBuilder()
    builder.add_plane(name="ground", mu=mu, gap=gap)
    for i in range(n):
        builder.add_body(f"box_{i}", position=(0, 0, half * (2 * i + 1) - OVERLAP * (i + 1)))
        builder.add_box(f"box_{i}", (half, half, half), name=f"shape_{i}", density=density, mu=mu, gap=gap)
    return ready(builder, max_contacts=8 * n, dtype=dtype)


def pyramid(n: int = 4, *, half: float = 0.1, density: float = 1000.0, mu: float = GROUND_MU, gap: float = 0.0, dtype=None) -> Scene:
    """A wall of cubes in n layers, n at the bottom and one at the top; each upper cube rests on two."""
    builder = ModelBuilder()
    builder.add_plane(name="ground", mu=mu, gap=gap)
    for layer in range(n):
        for column in range(n - layer):
            name = f"box_{layer}_{column}"
            x = 2.2 * half * (column - (n - layer - 1) / 2)
            builder.add_body(name, position=(x, 0, half * (2 * layer + 1) - OVERLAP * (layer + 1)))
            builder.add_box(name, (half, half, half), name=f"shape_{layer}_{column}", density=density, mu=mu, gap=gap)
    return ready(builder, max_contacts=4 * n + 8 * n * (n - 1) // 2, dtype=dtype)
