"""All worlds of a Newton model, sorted into buckets of equal layout."""

import dataclasses

from ..config import Config
from ..model import Model
from ..state import Contacts, Control, State
from .bucket import Bucket


@dataclasses.dataclass(frozen=True, eq=False)
class Worlds:
    """What `from_newton` returns. Models of one layout form a bucket; with a single bucket, `Worlds` answers for it."""

    buckets: tuple[Bucket, ...]

    @property
    def bucket(self) -> Bucket:
        """The only bucket. ValueError if there are several."""
        if len(self.buckets) != 1:
            groups = "; ".join(f"{len(b.worlds)} worlds like world {b.worlds[0]}" for b in self.buckets)
            raise ValueError(
                f"the worlds differ in size and form {len(self.buckets)} buckets ({groups}); go through .buckets, each with its own model, "
                "state, control and contacts, or pad them to one size with pad_to and common_layout"
            )
        return self.buckets[0]

    @property
    def model(self) -> Model:
        """The stacked model of the only bucket."""
        return self.bucket.model

    def state(self, newton_state) -> State:
        """`Bucket.state` of the only bucket."""
        return self.bucket.state(newton_state)

    def write_state(self, state: State, newton_state) -> None:
        """`Bucket.write_state` of the only bucket."""
        self.bucket.write_state(state, newton_state)

    def control(self, newton_control, newton_state=None) -> Control:
        """`Bucket.control` of the only bucket."""
        return self.bucket.control(newton_control, newton_state)

    def contacts(self, newton_contacts, newton_state, config: Config = Config()) -> Contacts:
        """`Bucket.contacts` of the only bucket."""
        return self.bucket.contacts(newton_contacts, newton_state, config)
