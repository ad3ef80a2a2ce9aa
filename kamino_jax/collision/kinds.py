"""Which shapes can collide, and how many contact slots each pair owns."""

# Colliders take their shapes in this order (plane first), whatever the order of the geoms.
SHAPES = ("plane", "sphere", "capsule", "ellipsoid", "cylinder", "box")

# Contact slots per pair of geoms. A pair of shapes that is missing here is refused when the model is built.
SLOTS = {
    "plane_sphere": 1,
    "plane_capsule": 2,
    "plane_ellipsoid": 1,
    "plane_cylinder": 4,
    "plane_box": 4,
    "sphere_sphere": 1,
    "sphere_capsule": 1,
    "sphere_cylinder": 1,
    "sphere_box": 1,
    "capsule_capsule": 2,
    "capsule_box": 2,
    "box_box": 8,
}
