"""Newton's models, states, controls and contacts as ours, and back. Newton and Warp are imported only where they are needed."""

from .bucket import Bucket as Bucket
from .build import from_newton as from_newton
from .files import load_file as load_file
from .worlds import Worlds as Worlds
