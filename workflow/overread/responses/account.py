"""What a job spent: counted by the back end as it goes, kept beside the answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Account:
    """What answering cost. A back end counts into it while it answers; `answering` reads it after each answer.

    prompt_tokens     tokens that the prompts hold, each prompt counted whole
    prefilled_tokens  prompt tokens that really went through the model; the rest was shared with other prompts
    images_encoded    pictures that went through the vision part
    peak_bytes        most memory held on the device (on a CPU: of the process)
    dollars           what a server charges, by the prices of the model file
    """

    device: str = ""
    gpus: int = 0
    prompt_tokens: int = 0
    prefilled_tokens: int = 0
    completion_tokens: int = 0
    images_encoded: int = 0
    peak_bytes: int = 0
    dollars: float = 0.0
