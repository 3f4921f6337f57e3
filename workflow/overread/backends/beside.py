"""The files beside the weights: each that is there is read strictly, or refused by name.

The library takes a model without the file where it can't read one: a cut-off `generation_config.json` silently changes
which tokens end an answer and whether a model samples, and the job ends well. So each file is read here first, and what
can't be meant is told with its name: no JSON object, nested without end, sizes that are no numbers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from overread.core.errors import BadInput
from overread.core.inputs import regular

INDEX = "model.safetensors.index.json"
JSON_FILES = (
    "config.json", "generation_config.json", "processor_config.json", "preprocessor_config.json",
    "video_preprocessor_config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "chat_template.json", "adapter_config.json", INDEX, "vocab.json", "tokenizer.json",
)  # fmt: skip
TEMPLATE = "chat_template.jinja"

LARGEST = {"tokenizer.json": 2**26, "vocab.json": 2**26, INDEX: 2**26, "tokenizer_config.json": 2**25}
"""Bytes. Gemma 3's tokenizer, of a quarter of a million tokens, has 33 million."""
LARGEST_OTHER = 2**23
DEEPEST = 64

SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size")
"""Of config.json and of the parts of it that are configurations themselves."""
MOST_PIXELS = 2**26
"""A chest radiograph has about ten million."""
LONGEST_EDGE = 8192

_NUMBERS = {"temperature": (0.0, 1e6), "top_p": (0.0, 1.0), "top_k": (0, 1e9), "repetition_penalty": (0.0, 1e6)}


def check_beside(folder: Path) -> None:
    """BadInput, by name, if a file beside the weights is damaged, or says what can't be meant."""
    found = {name: read_object(folder / name) for name in JSON_FILES if _is_there(folder / name)}
    if "config.json" in found:
        _check_sizes(folder / "config.json", found["config.json"])
    if "generation_config.json" in found:
        _check_generation(folder / "generation_config.json", found["generation_config.json"])
    for name in ("processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json"):
        _check_pictures(folder / name, found.get(name, {}))
    if INDEX in found and not _is_text_map(found[INDEX].get("weight_map")):
        raise BadInput(f"{folder / INDEX}: not an index of shards; download the weights again")
    template = _template(folder, found)
    if template is not None:
        _check_ends(*template)


def check_stops(place: str, ends: Iterable[object], vocabulary: int) -> frozenset[int]:
    """The tokens that end an answer. BadInput for one that is no token: no answer would ever end with it."""
    for each in ends:
        if not isinstance(each, int) or isinstance(each, bool) or not 0 <= each < vocabulary:
            raise BadInput(
                f"{place}: generation_config.json: eos_token_id {each!r} is no token of the vocabulary "
                f"(0 to {vocabulary - 1}); download the file again"
            )
    return frozenset(each for each in ends if isinstance(each, int))


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object, whole. BadInput if it is damaged, too large, nested too deeply, or something else."""
    largest = LARGEST.get(path.name, LARGEST_OTHER)
    try:
        if regular(path).stat().st_size > largest:
            raise BadInput(f"{path}: more than {largest} bytes; no model has such a file; download it again")
        content = json.loads(regular(path).read_bytes().decode("utf-8"))
        deep = _is_deep(content)
    except RecursionError:
        deep = True
    except (ValueError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: damaged or cut off ({error}); download it again") from None
    except OSError as error:
        raise BadInput(f"{path}: can't be read: {error.strerror or error}") from None
    if deep:
        raise BadInput(f"{path}: nested more than {DEEPEST} deep; no model has such a file; download it again")
    if not isinstance(content, dict):
        raise BadInput(f"{path}: expected a JSON object, found a {type(content).__name__}; download it again")
    return content


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _is_deep(content: object) -> bool:
    level: list[object] = [content]
    for _ in range(DEEPEST):
        inside: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inside.extend(one for one in each.values() if isinstance(one, dict | list))
            elif isinstance(each, list):
                inside.extend(one for one in each if isinstance(one, dict | list))
        level = inside
        if not level:
            return False
    return True


def _is_text_map(content: object) -> bool:
    return isinstance(content, dict) and all(isinstance(each, str) for each in content.values())


def _is_size(value: object) -> bool:
    if isinstance(value, list):  # one number per layer
        return all(_is_size(each) for each in value)
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31)


def _check_sizes(path: Path, content: dict[str, Any], part: str = "") -> None:
    for name in SIZES:
        if not _is_size(content.get(name)):
            raise BadInput(f"{path}: {part}{name} is {content[name]!r}, no size; download the file again")
    for name, inside in content.items():
        if name.endswith("_config") and isinstance(inside, dict):
            _check_sizes(path, inside, f"{part}{name}.")


def _check_generation(path: Path, content: dict[str, Any]) -> None:
    for name, (least, most) in _NUMBERS.items():
        value = content.get(name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and least <= value <= most):
            raise BadInput(f"{path}: {name} is {value!r}, no number from {least:g} to {most:g}")
    if not isinstance(content.get("do_sample"), bool | None):
        raise BadInput(f"{path}: do_sample is {content['do_sample']!r}, neither true nor false")


def _check_pictures(path: Path, content: dict[str, Any]) -> None:
    """That no picture is made larger than any is: the processor would ask for the memory of it."""
    for name, inside in content.items():
        if name in ("size", "crop_size"):
            sizes = inside if isinstance(inside, dict) else {"height": inside, "width": inside}
            edges = [sizes.get("height"), sizes.get("width")]
            if "longest_edge" not in sizes:
                edges.append(sizes.get("shortest_edge"))
            numbers = [each for each in edges if isinstance(each, int | float)]
            if any(each > LONGEST_EDGE for each in numbers) or any(
                isinstance(each, int | float) and each > MOST_PIXELS for each in sizes.values()
            ):
                raise BadInput(f"{path}: {name} is {json.dumps(inside)}: no model takes pictures of so many pixels")
        elif isinstance(inside, dict) and name.endswith("processor"):
            _check_pictures(path, inside)


# -- the chat template -------------------------------------------------------------------------------------------------

_SECONDS, _MEMORY = 10, 2**30
_SENTINEL = 86
"""What the child ends with where it ran out of memory; what else is wrong with a template, its first use says."""

_CHILD = f"""
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY}))
resource.setrlimit(resource.RLIMIT_CPU, ({_SECONDS}, {_SECONDS} + 1))
import jinja2, jinja2.sandbox
from jinja2.ext import Extension
class Generation(Extension):
    tags = {{"generation"}}
    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)
class Raised(Exception): pass
def raise_exception(message): raise Raised(message)
given = json.load(sys.stdin)
try:
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    made.globals.update(raise_exception=raise_exception, strftime_now=lambda form: form)
    made.from_string(given["template"]).render(given["values"])
except MemoryError:
    sys.exit({_SENTINEL})
except Exception:
    pass
"""


def _template(folder: Path, found: dict[str, dict[str, Any]]) -> tuple[Path, str] | None:
    """The chat template that the library takes, and the file that holds it."""
    path = folder / TEMPLATE
    if _is_there(path):
        try:
            if regular(path).stat().st_size > LARGEST_OTHER:
                raise BadInput(f"{path}: more than {LARGEST_OTHER} bytes; no model has such a file; download it again")
            return path, regular(path).read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadInput(f"{path}: damaged ({error.reason} at byte {error.start}); download it again") from None
        except OSError as error:
            raise BadInput(f"{path}: can't be read: {error.strerror or error}") from None
    for name in ("chat_template.json", "tokenizer_config.json"):
        text = found.get(name, {}).get("chat_template")
        if isinstance(text, str):
            return folder / name, text
    return None


def _check_ends(path: Path, template: str) -> None:
    """That the template comes to an end for a plain question, in a process of its own, which can be stopped."""
    message = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "question"}]}
    values = {"messages": [message], "add_generation_prompt": True, "bos_token": "", "eos_token": ""}

    done = subprocess.run(
        [sys.executable, "-c", _CHILD], input=json.dumps({"template": template, "values": values}),
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode < 0 or done.returncode == _SENTINEL:
        raise BadInput(
            f"{path}: the chat template does not come to an end within {_SECONDS} seconds and "
            f"{_MEMORY // 2**20} MB; download it again"
        )
