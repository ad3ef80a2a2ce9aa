"""Settings of a step. Static and hashable: a new `Config` is a new program. Checked when constructed.

The tree mirrors Newton's `SolverKamino.Config`; defaults are its defaults.
"""

import dataclasses
from dataclasses import field

from .backends import CONTACT_WARM_STARTS, WARM_START_MODES, DVIAPGDConfig, DVIConfig, PADMMConfig
from .checks import choice, flag, number
from .parts import CollisionConfig, ConstraintsConfig, DynamicsConfig, GradientConfig, MaterialsConfig

__all__ = [
    "CONTACT_WARM_STARTS",
    "WARM_START_MODES",
    "CollisionConfig",
    "Config",
    "ConstraintsConfig",
    "DVIAPGDConfig",
    "DVIConfig",
    "DynamicsConfig",
    "GradientConfig",
    "MaterialsConfig",
    "PADMMConfig",
]


@dataclasses.dataclass(frozen=True)
class Config:
    """All settings of `step`. `dataclasses.replace(config, ...)` edits a copy.

    `rotation_correction` unwraps joint angles: "twopi" keeps them in (-2π, 2π), "continuous" counts turns, "none" leaves them in [-π, π].
    `compute_solution_metrics` adds `Info.metrics`, measured on the solution itself.
    `angular_velocity_damping` a scales angular velocities by 1 - a dt after each step.
    `impact_time` moves bodies that hit something with their old velocity up to the moment of impact within the step, and with the new one
    after it. Positions after a bounce are then of second order, and so is their derivative by what came before.

    Raises:
        ValueError: a value out of range, an unknown name, or options that exclude each other.
        TypeError: a value of the wrong type.
    """

    dynamics_solver: str = "padmm"
    integrator: str = "euler"
    rotation_correction: str = "twopi"
    sparse_dynamics: bool = False
    angular_velocity_damping: float = 0.0
    compute_solution_metrics: bool = False
    impact_time: bool = False
    constraints: ConstraintsConfig = field(default_factory=ConstraintsConfig)
    dynamics: DynamicsConfig = field(default_factory=DynamicsConfig)
    padmm: PADMMConfig = field(default_factory=PADMMConfig)
    dvi: DVIConfig = field(default_factory=DVIConfig)
    collision: CollisionConfig = field(default_factory=CollisionConfig)
    materials: MaterialsConfig = field(default_factory=MaterialsConfig)
    gradient: GradientConfig = field(default_factory=GradientConfig)

    def __post_init__(self):
        choice(self, "dynamics_solver", ("padmm", "dvi"))
        choice(self, "integrator", ("euler", "moreau"))
        choice(self, "rotation_correction", ("twopi", "continuous", "none"))
        flag(self, ("sparse_dynamics", "compute_solution_metrics", "impact_time"))
        number(self, ("angular_velocity_damping",), "in [0, 1]", 0, 1)
        for f in dataclasses.fields(self):
            if f.default_factory is not dataclasses.MISSING and not isinstance(getattr(self, f.name), f.default_factory):
                raise TypeError(f"Config.{f.name} is {getattr(self, f.name)!r}; it must be a {f.default_factory.__name__}")
        if self.gradient.gap > 0 and not self.dynamics.cull_speculative_contacts:
            raise ValueError("GradientConfig.gap needs cull_speculative_contacts=True: kept speculative contacts are felt already")
        if self.sparse_dynamics and self.dynamics.linear_solver_type == "LLTB":
            raise ValueError("sparse_dynamics never forms D and needs linear_solver_type 'CR' (or None), not 'LLTB'")
        if not self.sparse_dynamics and self.dynamics.linear_solver_type == "CR":
            raise ValueError("linear_solver_type 'CR' is the matrix-free solver: set sparse_dynamics=True")
        if self.dynamics_solver == "dvi" and self.dynamics.preconditioning:
            raise ValueError("DVI works in physical units: leave dynamics.preconditioning None, or use dynamics_solver='padmm'")
        if self.dynamics_solver == "dvi" and self.sparse_dynamics:
            raise ValueError("sparse_dynamics is PADMM's; for long mechanisms DVI has dvi.bilateral_solver_type='LLTBRCM'")

    @property
    def backend(self) -> PADMMConfig | DVIConfig:
        """Settings of the chosen dynamics solver."""
        return getattr(self, self.dynamics_solver)

    @property
    def in_order(self) -> bool:
        """Whether the solver wants the order in which joints are eliminated."""
        return self.dynamics_solver == "dvi" and self.dvi.bilateral_solver_type == "LLTBRCM"
