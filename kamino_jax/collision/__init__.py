"""Contact detection: pair functions for every supported pair of shapes, and `collide` for a world."""

from .detect import collide as collide
from .frames import contact_frame as contact_frame
from .material import material_contacts as material_contacts
