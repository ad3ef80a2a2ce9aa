"""Ready-made mechanisms. Each function returns (Model, State, Control); `SCENES` lists them by name."""

from collections.abc import Callable

from .box_mechanisms import box_pendulum as box_pendulum
from .box_mechanisms import boxes_fourbar as boxes_fourbar
from .box_mechanisms import boxes_hinged as boxes_hinged
from .box_mechanisms import boxes_nunchaku as boxes_nunchaku
from .box_mechanisms import cartpole as cartpole
from .boxes import box_on_plane as box_on_plane
from .boxes import box_stack as box_stack
from .boxes import pyramid as pyramid
from .boxes import sphere_on_plane as sphere_on_plane
from .joint_zoo import all_joints as all_joints
from .linkages import bennett as bennett
from .linkages import crank_rocker as crank_rocker
from .linkages import parallelogram as parallelogram
from .linkages import pendulum_chain as pendulum_chain
from .parts import Scene as Scene
from .platforms import hoberman as hoberman
from .platforms import stewart_platform as stewart_platform

SCENES: dict[str, Callable[..., Scene]] = {
    scene.__name__: scene
    for scene in (
        box_on_plane,
        sphere_on_plane,
        box_pendulum,
        boxes_hinged,
        boxes_nunchaku,
        boxes_fourbar,
        cartpole,
        box_stack,
        pyramid,
        pendulum_chain,
        crank_rocker,
        parallelogram,
        bennett,
        stewart_platform,
        hoberman,
        all_joints,
    )
}
