"""Model files (USD, URDF, MJCF) through Newton's importers."""

import contextlib
import pathlib
import sys

import jax

from ..model import DRIVE_EFFORT, Model
from .build import from_newton

IMPORTERS = {".usd": "add_usd", ".usda": "add_usd", ".usdc": "add_usd", ".urdf": "add_urdf", ".xml": "add_mjcf"}
INSTALL = 'reading model files needs Newton and its importers: pip install "kamino_jax[newton]"'


def load_file(path, *, dtype=None, max_contacts: int | None = None, unsupported: str = "error") -> Model:
    """The first world of a .usd, .usda, .usdc, .urdf or .xml (MJCF) file; z is up, gravity is that of the file or 9.81 m/s².

    Args:
        path: the file.
        dtype: see `from_newton`.
        max_contacts: see `from_newton`.
        unsupported: see `from_newton`.

    Raises:
        ImportError: Newton, or the importer's package, is not installed.
        ValueError: an unknown ending, a file that cannot be read, or a model that this solver cannot simulate.
    """
    path = pathlib.Path(path)
    importer = IMPORTERS.get(path.suffix.lower())
    if importer is None:
        raise ValueError(f"{path.name}: unknown ending; there are {', '.join(IMPORTERS)}")
    if not path.is_file():
        raise ValueError(f"no file {str(path)!r}")
    with contextlib.redirect_stdout(sys.stderr):  # Warp greets on stdout, where a caller may want pure JSON
        model = _import(path, importer)
    worlds = from_newton(model, dtype=dtype, max_contacts=max_contacts, unsupported=unsupported)
    return jax.tree.map(lambda x: x[0], worlds.buckets[0].model)


def _import(path, importer):
    """A finalized newton.Model."""
    try:
        import newton

        return _finalized(newton.ModelBuilder, newton.Axis.Z, path, importer)
    except ImportError as error:
        raise ImportError(f"{INSTALL} ({error})") from error
    except Exception as error:  # each importer has its own kinds of failure
        raise ValueError(f"cannot read {str(path)!r}: {error or type(error).__name__}") from error


def _finalized(new_builder, up, path, importer, **options):
    builder = new_builder(up_axis=up)
    try:
        getattr(builder, importer)(str(path), **options)
        _drop_idle_drives(builder)
        return builder.finalize(skip_validation_joints=True)
    except ValueError:
        if importer != "add_usd" or options:
            raise
        # Newton sorts the joints of trees only; mechanisms with loops keep the order of the file
        return _finalized(new_builder, up, path, importer, joint_ordering=None, bodies_follow_joint_ordering=False)


def _drop_idle_drives(builder):
    """Drives without gain, as importers make them of formats that know no gains, become plain efforts."""
    gains = zip(builder.joint_target_ke, builder.joint_target_kd, strict=True)
    for i, (ke, kd) in enumerate(gains):
        if ke == 0 and kd == 0:
            builder.joint_target_mode[i] = DRIVE_EFFORT
