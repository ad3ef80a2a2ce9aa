"""kamino_jax: differentiable rigid multibody dynamics with closed loops and hard contact, in JAX."""

from . import optim as optim
from . import scenes as scenes
from .batch import bucket as bucket
from .batch import common_layout as common_layout
from .batch import pad_to as pad_to
from .batch import stack as stack
from .batch import unstack as unstack
from .builder import ModelBuilder as ModelBuilder
from .config import CollisionConfig as CollisionConfig
from .config import Config as Config
from .config import ConstraintsConfig as ConstraintsConfig
from .config import DVIAPGDConfig as DVIAPGDConfig
from .config import DVIConfig as DVIConfig
from .config import DynamicsConfig as DynamicsConfig
from .config import GradientConfig as GradientConfig
from .config import MaterialsConfig as MaterialsConfig
from .config import PADMMConfig as PADMMConfig
from .linearize import Linearization as Linearization
from .linearize import difference as difference
from .linearize import linearize as linearize
from .linearize import retract as retract
from .measure import energy as energy
from .model import Model as Model
from .pytree import replace as replace
from .rollout import rollout as rollout
from .start import initial_state as initial_state
from .start import zero_control as zero_control
from .state import Contacts as Contacts
from .state import Control as Control
from .state import Info as Info
from .state import State as State
from .status import Status as Status
from .status import raise_if_failed as raise_if_failed
from .step import collide as collide
from .step import joint_state as joint_state
from .step import step as step

__version__ = "0.1.0"
