"""The network: the repository's code for the volume, the library's for the language.

Of the repository's class are used `encode_images(images)`, which gives the volume's vectors, and, once, at load,
`prepare_inputs_for_multimodal(...)`, which puts them between the text's: it shows from which row on. Its first language
model had a begin token there, and Qwen has none, so a prompt in its own form loses the first token of its question to
the volume. Knowing the row, a prompt is written so that nothing but `<im_patch>` stands where the volume goes.

The language part is the class of the library that the repository's class extends, with the same weights. So it needs
nothing of the repository's `forward` and `generate`, which are written for one version of the library.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from overread.backends.med3dvlm.section import Med3dvlmModel
from overread.backends.own_code import repository
from overread.backends.transformers.network import Network, first_line, quiet_transformers
from overread.backends.weights import check_folder
from overread.core.errors import BadInput

if TYPE_CHECKING:
    import torch

PATCH = "<im_patch>"
VOLUME = -200
"""Stands for the volume's tokens: no token of the vocabulary."""

SHAPE = (1, 1, 128, 256, 256)
_USED = ("encode_images", "prepare_inputs_for_multimodal")


class Med3dvlmNetwork(Network):
    """As `Network`, with the repository's own code for the volume.

    patch    the token `<im_patch>`
    first    the row from which on the volume's vectors stand
    count    how many there are
    raises   BadInput if the code may not be run, can't be loaded, or is not what this module expects
    """

    model: Med3dvlmModel  # type: ignore[assignment]

    def __init__(self, model: Med3dvlmModel, model_id: str) -> None:
        import torch

        transformers = quiet_transformers()
        self.model, self.place = model, f"model {model_id!r}: {model.weights}"
        folder = repository(model, model_id)
        check_folder(folder, model_id)
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
            self.own, loading = transformers.AutoModelForCausalLM.from_pretrained(
                folder, trust_remote_code=True, dtype=model.dtype, use_safetensors=True, output_loading_info=True
            )
        except Exception as error:  # code of others may raise anything
            raise BadInput(f"{self.place}: can't be loaded: {type(error).__name__}: {first_line(error)}") from error
        lacking = sorted({*loading["missing_keys"], *(str(each) for each in loading["mismatched_keys"])})
        if lacking:
            raise BadInput(f"{self.place}: the weights have no fitting {lacking[0]} ({len(lacking)} tensors in all)")
        for name in _USED:
            if not callable(getattr(self.own, name, None)):
                raise BadInput(f"{self.place}: its class {type(self.own).__name__} has no {name}, which is needed")
        self.patch = self._patch()
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.network = self._language(transformers)
        self._leave_the_volumes_part()
        self.network.get_image_features = self._seen
        self.processor, self.sees = None, True
        self.defaults = self.own.generation_config
        self.text_config = self.network.config
        self.architecture = self._base.config_class.model_type
        self.image_token = VOLUME
        self.stops, self.suppressed = self._stops(), []
        self.first, self.count = self._rows()

    def _patch(self) -> int:
        ids = self.tokenizer(PATCH, add_special_tokens=False)["input_ids"]
        if len(ids) != 1 or ids[0] == self.tokenizer.unk_token_id:
            raise BadInput(f"{self.place}: {PATCH} is not one token of its tokenizer")
        return int(ids[0])

    def _language(self, transformers: Any) -> Any:
        """The library's class that the repository's extends, with the same weights, on the device."""
        import torch

        extended = [each for each in type(self.own).__mro__ if each.__module__.startswith("transformers.models.")]
        bases: list[Any] = [each for each in extended if each.__name__.endswith("ForCausalLM")]
        if not bases:
            raise BadInput(
                f"{self.place}: its class {type(self.own).__name__} extends no language model of the library"
            )
        self._base = bases[0]
        with torch.device("meta"):
            expected = set(self._base(self.own.config).state_dict())
        had = self.own.state_dict()
        if missing := sorted(expected - set(had)):
            raise BadInput(f"{self.place}: its class keeps no {missing[0]} where {self._base.__name__} has it")
        network = self._base.from_pretrained(
            None,
            config=self.own.config,
            state_dict={name: had[name] for name in expected},
            dtype=self.own.dtype,
            attn_implementation="sdpa",
        )
        return self._on_device(network.eval())

    def _leave_the_volumes_part(self) -> None:
        """The language's layers are not held twice."""
        import torch

        getattr(self.own, self._base.base_model_prefix).layers = torch.nn.ModuleList()
        self.own.lm_head = torch.nn.Identity()
        self.own = self._on_device(self.own.eval())

    def _on_device(self, network: Any) -> Any:
        import torch

        try:
            return network.to(self.device)
        except torch.OutOfMemoryError:
            raise BadInput(f"{self.place}: out of memory: the weights do not fit; use a GPU with more memory") from None

    def _seen(self, images: torch.Tensor, **_: Any) -> Any:
        """The volume's vectors, under the name by which the library's models give those of pictures."""
        return SimpleNamespace(pooler_output=self.own.encode_images(images))

    def _rows(self) -> tuple[int, int]:
        """Where the repository's code puts the volume's vectors, and how many there are."""
        import torch

        ramp = torch.linspace(0, 1, SHAPE[-1], device=self.device, dtype=self.own.dtype).expand(SHAPE)
        try:
            with torch.inference_mode():
                features = self.own.encode_images(ramp)
                count = features.shape[1]
                ids = torch.tensor([[self.patch] * (count + 2) + self._some_text()], device=self.device)
                plain = self.network.get_input_embeddings()(ids)
                given = self.own.prepare_inputs_for_multimodal(ids, None, None, None, None, ramp)
        except Exception as error:  # code of others may raise anything
            told = f"{type(error).__name__}: {first_line(error)}"
            raise BadInput(f"{self.place}: its code fails with this version of the library: {told}") from error
        mixed = next((each for each in given if torch.is_tensor(each) and each.shape == plain.shape), None)
        if mixed is None:
            raise BadInput(f"{self.place}: its prepare_inputs_for_multimodal gives no vectors of shape {plain.shape}")
        (changed,) = (mixed[0] != plain[0]).any(1).nonzero(as_tuple=True)
        first = int(changed[0]) if len(changed) else 0
        alike = len(changed) == count and int(changed[-1]) == first + count - 1
        if not alike or not torch.allclose(mixed[0, first : first + count], features[0], rtol=1e-2, atol=1e-3):
            raise BadInput(
                f"{self.place}: its prepare_inputs_for_multimodal does not put the volume's {count} vectors one after "
                "the other over the text's; this back end can't be used with this version of its code"
            )
        return first, count

    def _some_text(self) -> list[int]:
        return list(self.tokenizer(" Where is the lesion?", add_special_tokens=False)["input_ids"])
