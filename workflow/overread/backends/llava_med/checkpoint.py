"""LLaVA-Med's own checkpoint as the library's LLaVA: which tensor is which, and what its configuration means.

The original is Mistral with a CLIP image part and a projector of two layers with a GELU between them. The library's
`LlavaForConditionalGeneration` is built of the same parts under other names:

    model.embed_tokens, model.layers.N, model.norm      model.language_model.*
    model.vision_tower.vision_tower.vision_model.*      model.vision_tower.*
    model.mm_projector.0, .2                            model.multi_modal_projector.linear_1, .linear_2
    lm_head                                             lm_head

Every tensor is accounted for: one that has no place, or a place that has none, is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.core.errors import BadInput
from overread.core.inputs import regular

if TYPE_CHECKING:
    import torch

_RENAMED = (
    (re.compile(r"^lm_head\."), "lm_head."),
    (re.compile(r"^model\.vision_tower\.(vision_tower\.)?(vision_model\.)?"), "model.vision_tower."),
    (re.compile(r"^model\.mm_projector\.0\."), "model.multi_modal_projector.linear_1."),
    (re.compile(r"^model\.mm_projector\.2\."), "model.multi_modal_projector.linear_2."),
    (re.compile(r"^model\.(?=embed_tokens\.|layers\.|norm\.)"), "model.language_model."),
)
_TOWER = "model.vision_tower."
_COMPUTED = (".rotary_emb.inv_freq", ".embeddings.position_ids")
"""Buffers that older versions of the library saved, and that it computes itself."""

_EXPECTED: dict[str, tuple[Any, ...]] = {
    "model_type": ("llava_mistral",),
    "mm_projector_type": ("mlp2x_gelu",),
    "mm_vision_select_feature": ("patch", None),
    "mm_use_im_start_end": (False, None),
    "mm_use_im_patch_token": (False, None),
    "image_aspect_ratio": ("pad",),
}
"""What of the original configuration this back end does, by key. None: the key is not there."""


def read_config(folder: Path) -> dict[str, Any]:
    """The original config.json. BadInput if it is missing, or asks for what this back end does not do."""
    file = folder / "config.json"
    try:
        raw = json.loads(regular(file).read_text(encoding="utf-8"))
        found = {key: raw.get(key) for key in _EXPECTED}
    except (OSError, ValueError, AttributeError):
        raise BadInput(f"{file}: not a model's configuration; download the weights again") from None
    for key, value in found.items():
        if value not in _EXPECTED[key]:
            may = " or ".join(repr(each) for each in _EXPECTED[key] if each is not None)
            raise BadInput(
                f"{file}: {key} is {value!r}, and the llava-med back end does {may}; weights that were converted for "
                "the library have the back end transformers"
            )
    return dict(raw)


def library_config(raw: Mapping[str, Any], vision: Any, file: Path) -> Any:
    """The library's LlavaConfig.

    raw      the original config.json
    vision   CLIPVisionConfig of the image part
    file     for messages
    """
    import transformers

    known = set(transformers.MistralConfig().to_dict()) | {"rope_theta"}
    fields = {key: value for key, value in raw.items() if key in known - {"model_type", "architectures", "dtype"}}
    text = transformers.MistralConfig(**fields)
    rope: Any = text.rope_parameters
    if "rope_theta" in raw and rope["rope_theta"] != raw["rope_theta"]:
        raise BadInput(f"{file}: rope_theta {raw['rope_theta']} does not reach the library's MistralConfig")
    layer = raw.get("mm_vision_select_layer")
    if not isinstance(layer, int):
        raise BadInput(f"{file}: mm_vision_select_layer is {layer!r}, no layer of the image part")
    width = raw.get("mm_hidden_size", vision.hidden_size)
    if width != vision.hidden_size:
        raise BadInput(f"{file}: mm_hidden_size is {width}, and the image part is {vision.hidden_size} wide")
    return transformers.LlavaConfig(
        vision_config=vision,
        text_config=text,
        projector_hidden_act="gelu",
        vision_feature_layer=layer,
        vision_feature_select_strategy="default",
        tie_word_embeddings=text.tie_word_embeddings,
    )


def library_names(names: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Original name -> the library's, and those that have no place there. Computed buffers are left out of both."""
    placed: dict[str, str] = {}
    strange: list[str] = []
    for name in names:
        if name.endswith(_COMPUTED):
            continue
        new = next((f"{to}{name[found.end() :]}" for rule, to in _RENAMED if (found := rule.match(name))), None)
        if new is None:
            strange.append(name)
        else:
            placed[name] = new
    return placed, strange


def read_tensors(folder: Path, expected: Iterable[str], tower: Path | None) -> dict[str, torch.Tensor]:
    """The tensors by the library's names, mapped into memory and not copied.

    folder     with the original *.safetensors
    expected   the names that the library's network has
    tower      folder of the CLIP whose image part fills in where the checkpoint holds none; None: it has to hold one
    raises     BadInput for a tensor that has no place, stands twice, or is missing
    """
    wanted = set(expected)
    tensors: dict[str, torch.Tensor] = {}
    for shard in sorted(folder.glob("*.safetensors")):
        _take(shard, wanted, tensors)
    if tower is not None and not any(name.startswith(_TOWER) for name in tensors):
        for shard in sorted(tower.glob("*.safetensors")):
            _take(shard, wanted, tensors, only=_TOWER)
    missing = sorted(wanted - set(tensors))
    if missing:
        towers = all(name.startswith(_TOWER) for name in missing)
        hint = "; name the CLIP that it was trained with as vision_tower, weights and all" if towers else ""
        raise BadInput(f"{folder}: the checkpoint lacks {missing[0]} ({len(missing)} tensors in all){hint}")
    return tensors


def _take(shard: Path, wanted: set[str], tensors: dict[str, torch.Tensor], only: str | None = None) -> None:
    """Add a shard's tensors. With `only` the shard is a CLIP's, of which the image part alone is taken."""
    from safetensors import safe_open

    with safe_open(shard, framework="pt") as file:
        names = list(file.keys())
        if only is None:
            placed, strange = library_names(names)
        else:
            image = [name for name in names if name.startswith("vision_model.") and not name.endswith(_COMPUTED)]
            placed, strange = {name: only + name.removeprefix("vision_model.") for name in image}, []
        strange += [name for name, new in placed.items() if new not in wanted]
        if strange:
            raise BadInput(f"{shard}: {strange[0]} has no place in LLaVA-Med ({len(strange)} tensors in all)")
        for name, new in placed.items():
            if new in tensors:
                raise BadInput(f"{shard}: {name} stands in another shard as well")
            tensors[new] = file.get_tensor(name)
