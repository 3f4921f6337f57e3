"""Parameters that a model does not take.

Servers disagree: newer models want `max_completion_tokens` for `max_tokens`, reasoning models refuse a temperature,
others know no reasoning effort. A refusal that names a parameter renames it or leaves it out, once and for the whole
run, and that is said and recorded: an answer without the temperature that was asked for is another measurement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
OPTIONAL = (
    "temperature", "top_p", "seed", "reasoning_effort", "max_tokens", "max_completion_tokens", "response_format",
    "logprobs", "top_logprobs",
)  # fmt: skip
"""What a request can do without. Anything else that is refused is a mistake, and no request is sent again for it."""

_NOT_TAKEN = re.compile(
    r"unsupported|n.t support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|only the default",
    re.IGNORECASE,
)


class Parameters:
    """What is asked for, and what the model turned out to take."""

    def __init__(self, asked: Mapping[str, Any], sent_as: Mapping[str, str | None] | None = None) -> None:
        self.asked = dict(asked)
        self.sent_as: dict[str, str | None] = dict(sent_as or {})
        """What is sent under another name, or, with None, not at all."""

    def sent(self, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The parameters as the model takes them; `more` are those of one request alone."""
        asked = {**self.asked, **(more or {})}
        names = {name: self.sent_as.get(name, name) for name in asked}
        return {sent: asked[name] for name, sent in names.items() if sent is not None}

    @property
    def adjusted(self) -> str:
        """What was changed, in words; empty for nothing."""
        return "; ".join(
            f"{name} left out" if sent is None else f"{name} sent as {sent}"
            for name, sent in sorted(self.sent_as.items())
        )

    def adapt(self, refused: str, sent: Mapping[str, Any]) -> bool:
        """Do without the parameter that a model refused; whether there is now something else to send.

        sent  what the refused request held: another request may have taught the same in the meantime
        """
        if refused not in sent:
            return False
        name = next((name for name, now in self.sent_as.items() if now == refused), refused)
        if self.sent_as.get(name, name) != refused:
            return True  # learnt already
        other = RENAMED.get(name)
        self.sent_as[name] = other if other and name not in self.sent_as and other not in sent else None
        return True


def refused_parameter(message: str, param: object, code: str | None, sent: Mapping[str, Any]) -> str | None:
    """The parameter that a refusal (400 or 422) is about, if a request can do without it."""
    there = [name for name in OPTIONAL if name in sent]
    blames = bool(_NOT_TAKEN.search(message)) or (code or "").startswith("unsupported")
    if isinstance(param, str):
        # `response_format.json_schema.strict` is about response_format.
        name = re.split(r"[.\[]", param)[0]
        return name if name in there and blames else None
    if not blames:
        return None
    # The first one named: what follows is what the server would like instead.
    places = {name: re.search(rf"(?<!\w){name}(?!\w)", message) for name in there}
    found = {name: match.start() for name, match in places.items() if match}
    return min(found, key=found.__getitem__) if found else None
