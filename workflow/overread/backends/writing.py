"""Models that can write questions from reports, or check them: they are asked for text in a form of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.config.models import Decoding, ModelSection

if TYPE_CHECKING:
    from overread.backends.transport.asking import Client
    from overread.backends.transport.client import Patience
    from overread.core.guard import Destination


class WriterModel(ModelSection):
    """A model that can be the author or the validator of questions."""

    decoding: Decoding = Decoding()

    @abstractmethod
    def writer_identity(self, model_id: str) -> dict[str, Any]:
        """What of it can change a reply."""

    @abstractmethod
    def client(
        self, model_id: str, asked: Mapping[str, Any], work: Path, patience: Patience, to: Destination | None
    ) -> Client:
        """What answers its calls.

        asked     the parameters of every request
        work      work file of the replies
        to        where the reports have been cleared for; none for a model that stays on this machine
        """
