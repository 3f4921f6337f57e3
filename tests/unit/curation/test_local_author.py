"""A model of the transformers library as author and validator, in the job itself: a small Qwen3 made on the spot.

Its weights are random, so what it writes is nonsense; the form of it is not.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from data.checkpoints import make_checkpoint
from data.written_questions import reported
from overread.backends.transformers.chat import LocalClient
from overread.backends.transformers.section import TransformersModel
from overread.backends.transport.client import Call
from overread.backends.transport.replies import Reply, response_format, structured
from overread.backends.vllm.section import VllmModel
from overread.config import GeneratedQuestions
from overread.core.errors import BadInput, NotAnswered
from overread.curation.dialogue import Form, converse, writer
from overread.curation.generate import generate

SECTION = GeneratedQuestions(origin="generated", author="author", validator="validator", per_study=2)


class Two(Form):
    """A form so narrow that random weights fill it in a few tokens."""

    side: bool
    places: list[bool]


def judged(reply: Reply) -> Two:
    return structured(reply, Two)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("author") / "qwen3"
    make_checkpoint("qwen3", folder)
    return folder


def model(folder: Path, **changes: object) -> TransformersModel:
    return TransformersModel.model_validate(
        {
            "label": "A local author", "backend": "transformers", "weights": str(folder), "dtype": "float32",
            "decoding": {"temperature": 0.0, "max_tokens": 60}, "batch": 3, **changes,
        }
    )  # fmt: skip


def asked(form: type[Form] = Two, temperature: float = 1.0, max_tokens: int = 60) -> dict[str, object]:
    return {"temperature": temperature, "max_tokens": max_tokens, "response_format": response_format("form", form)}


def calls(count: int) -> list[Call]:
    made = []
    for number in range(count):
        said = [("system", "Answer in JSON."), ("user", f"{number} Which side?")]
        messages = [{"role": role, "content": content} for role, content in said]
        made.append(Call(f"key{number}", f"s{number}", messages, judged))
    return made


def replies(client: LocalClient, given: list[Call]) -> dict[str, Reply]:
    async def gather() -> dict[str, Reply]:
        return {call.key: reply async for call, reply in client.answers(given)}  # type: ignore[misc]

    return asyncio.run(gather())


def test_random_weights_write_the_form_that_is_asked_for(folder: Path) -> None:
    client = LocalClient(model(folder), "author", asked(), tries=4)
    made = replies(client, calls(7))
    usable = {key: reply for key, reply in made.items() if isinstance(reply, Reply)}
    assert len(usable) >= 5
    for reply in usable.values():
        two = judged(reply)
        assert two.model_dump_json(indent=None).replace(" ", "") == reply.text.replace(" ", "")
        assert reply.finish_reason == "stop" and reply.completion_tokens and reply.prompt_tokens


def test_a_reply_does_not_depend_on_what_is_written_beside_it(folder: Path) -> None:
    together = replies(LocalClient(model(folder, batch=7), "author", asked(), tries=1), calls(7))
    alone = replies(LocalClient(model(folder, batch=1), "author", asked(), tries=1), calls(7))
    assert {key: getattr(one, "text", one) for key, one in together.items()} == {
        key: getattr(one, "text", one) for key, one in alone.items()
    }
    assert len({getattr(one, "text", "") for one in together.values()}) > 1


def test_a_reply_that_is_cut_off_is_drawn_again_and_then_fails_by_name(folder: Path) -> None:
    client = LocalClient(model(folder), "author", asked(max_tokens=3), tries=3)
    made = replies(client, calls(2))
    assert all("cut off" in one.reason for one in made.values())  # type: ignore[attr-defined]
    assert sum(client.faults.values()) == 2 * 3
    greedy = LocalClient(model(folder), "author", asked(temperature=0.0, max_tokens=3), tries=3)
    replies(greedy, calls(2))
    assert sum(greedy.faults.values()) == 2  # the same would be written again


def test_kept_replies_are_not_written_again(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    about = [one.study for one in reported(4)]
    given = calls(4)
    for asked_now, kept in ((4, 0), (0, 4)):
        converse(model(folder), "author", asked(temperature=0.6), about, given, tmp_path / "work.jsonl")
        assert f"asked {asked_now}, kept {kept}" in capsys.readouterr().out


def test_studies_whose_reply_never_fits_are_named_and_the_others_kept(folder: Path, tmp_path: Path) -> None:
    """Four tokens are too few for questions: the job fails, and says for which studies and why."""
    about = [one.study for one in reported(2)]
    short = model(folder, decoding={"temperature": 0.15, "max_tokens": 4})
    with pytest.raises(NotAnswered, match=r"2 of 2 requests to author failed, the first with: cut off"):
        generate(about, SECTION, short, "author", tmp_path / "work.jsonl")


def test_other_weights_are_another_author(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    make_checkpoint("qwen3", other, seed=1)
    assert model(folder).writer_identity("a") != model(other).writer_identity("a")
    assert model(folder).writer_identity("a") == model(folder, label="Another label").writer_identity("a")


def test_a_model_that_can_not_write_is_refused_by_name() -> None:
    vllm = VllmModel.model_validate({"label": "v", "backend": "vllm", "weights": "a/b"})
    with pytest.raises(BadInput, match=r"'big' can't be the author: its back end is vllm.*vllm serve"):
        writer(vllm, "big", "author")


def test_restricted_reports_go_to_no_author_that_does_not_say_where_they_go(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TransformersModel, "stays_here", False)
    closed = reported(1, restricted=True)[0].study
    with pytest.raises(BadInput, match=r"the back end transformers of 'author' does not say where reports go"):
        converse(model(folder), "author", asked(), [closed], calls(1), tmp_path / "work.jsonl")
    assert not (tmp_path / "work.jsonl").exists()
