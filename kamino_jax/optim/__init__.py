"""Optimisation through the simulation: controls, feedback, model parameters, linkage dimensions."""

from .controls import ControlsSolution as ControlsSolution
from .controls import optimize_controls as optimize_controls
from .four_bar import FourBar as FourBar
from .four_bar import design_four_bar as design_four_bar
from .four_bar import four_bar_path as four_bar_path
from .four_bar import four_bar_start as four_bar_start
from .four_bar import grashof as grashof
from .identify import Identification as Identification
from .identify import Recording as Recording
from .identify import identify as identify
from .identify import record as record
from .ilqr import ILQRSolution as ILQRSolution
from .ilqr import ilqr as ilqr
from .least_squares import levenberg_marquardt as levenberg_marquardt
from .linkage import Linkage as Linkage
from .linkage import LinkageDesign as LinkageDesign
from .linkage import close_loops as close_loops
from .linkage import design_linkage as design_linkage
from .problem import Trajectory as Trajectory
from .problem import hold as hold
