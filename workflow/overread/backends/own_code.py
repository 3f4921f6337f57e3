"""Models that come with code of their own: where it lies, and whether it may be run.

Such code runs with all that the job may do. It is run only where the model file says `trust_remote_code: true`, and
only from a folder that a person put there or from a pinned commit. A repository whose configuration points to code in
another repository would run something that nobody pinned: it is refused.
"""

from __future__ import annotations

import json
from pathlib import Path

from overread.config import OwnCodeModel, is_folder
from overread.core.errors import BadInput
from overread.core.inputs import regular


def repository(model: OwnCodeModel, model_id: str) -> Path:
    """The folder with the model's code and weights: the one that the file names, or the pinned commit of the hub's.

    raises   BadInput if the code may not be run, or the folder or the commit can't be had
    """
    place = f"model {model_id!r}: {model.weights}"
    if model.untrusted:
        raise BadInput(
            f"{place}: it runs code of its own repository; read that code, pin it with 'revision' (or download it into "
            "a folder and name that), and set trust_remote_code: true"
        )
    folder = Path(model.weights).expanduser() if is_folder(model.weights) else _snapshot(model, place)
    if not folder.is_dir():
        raise BadInput(f"{place}: no such folder; put the repository there, or correct `weights`")
    _refuse_code_from_elsewhere(folder, place)
    return folder


def _snapshot(model: OwnCodeModel, place: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    if model.revision is None:
        raise BadInput(f"{place}: code from the hub is run from a pinned commit only; set 'revision'")
    try:
        return Path(snapshot_download(model.weights, revision=model.revision))
    except (OSError, HfHubHTTPError, HFValidationError) as error:
        raise BadInput(
            f"{place}: revision {model.revision} can't be had ({str(error).strip().splitlines()[0]}); fetch it "
            "beforehand with `hf download`"
        ) from None


def _refuse_code_from_elsewhere(folder: Path, place: str) -> None:
    """`auto_map: {AutoModel: other/repository--file.Class}` would fetch the newest code of another repository."""
    for name in ("config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json"):
        file = folder / name
        if not file.is_file():
            continue
        try:
            named = json.loads(regular(file).read_text(encoding="utf-8")).get("auto_map", {})
        except (ValueError, AttributeError):
            raise BadInput(f"{file}: not a configuration; download the repository again") from None
        values = named.values() if isinstance(named, dict) else [named]
        flat = [str(each) for value in values for each in (value if isinstance(value, list | tuple) else [value])]
        for each in flat:
            if "--" in each:
                raise BadInput(
                    f"{place}: {name} takes code from another repository ({each}), which nothing pins; download that "
                    "code into a folder beside the weights, and name it there without the repository"
                )
