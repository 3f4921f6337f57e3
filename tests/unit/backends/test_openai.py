"""Trials through a real server on loopback: what it is sent, and what is read from what it says."""

from __future__ import annotations

import base64
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from data.endpoint_calls import echo
from data.openai_job import LOBES, Place, choice, openai_model, picture, with_logprobs, yes_no
from data.openai_server import Asked, Completion, OpenaiServer
from overread.config import Decoding, Takes
from overread.core.errors import BadInput, NotAnswered
from overread.core.records import Block, Trial

NUMBERS = {"1": -3.0, "2": -0.1, "3": -4.0, "4": -2.5}


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def asked_of(
    trial: Trial, tmp_path: Path, says: Completion | None = None, **changes: Any
) -> tuple[dict[str, Any], Place]:
    """The body of the one request, and the job."""
    with OpenaiServer(lambda asked: says or Completion("2")) as server:
        place = Place(tmp_path, [trial])
        place.ask(openai_model(server.endpoint, **changes))
        (asked,) = server.asked
    return asked.body, place


def test_pictures_arrive_as_the_bytes_of_their_files_in_the_order_of_the_blocks(tmp_path: Path) -> None:
    first, second = picture(tmp_path, "first", 1), picture(tmp_path, "second", 90)
    blocks = (
        Block(role="caption", text="FLAIR, axial:"), first, Block(role="caption", text="T1, axial:"), second,
        Block(role="report", text="Report:\nA mass."),
    )  # fmt: skip
    body, _ = asked_of(choice(1, (0, 1, 2, 3), *blocks), tmp_path)
    (message,) = body["messages"]
    parts = message["content"]
    assert [part["type"] for part in parts] == ["text", "image_url", "text", "image_url", "text"]
    assert (parts[0]["text"], parts[2]["text"]) == ("FLAIR, axial:", "T1, axial:")
    assert parts[4]["text"].startswith("Report:\nA mass.\n\nQuestion: Which lobe of brain 1?\n\nOptions:\n1) left lobe")
    for part, name in ((parts[1], "first"), (parts[3], "second")):
        head, _, data = part["image_url"]["url"].partition(",")
        assert head == "data:image/png;base64"
        assert base64.b64decode(data, validate=True) == (tmp_path / "d" / "images" / f"{name}.png").read_bytes()
        assert set(part["image_url"]) == {"url"}


def test_a_picture_after_the_text_stays_there_and_its_detail_is_told(tmp_path: Path) -> None:
    shown = picture(tmp_path, "one")
    trial = choice(1)
    trial = choice(1, blocks=(*trial.blocks, shown))
    body, _ = asked_of(trial, tmp_path, image_detail="high")
    parts = body["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"]
    assert parts[1]["image_url"]["detail"] == "high"


def test_a_trial_without_pictures_is_plain_text(tmp_path: Path) -> None:
    body, _ = asked_of(choice(7), tmp_path)
    assert body["messages"] == [{"role": "user", "content": "\n\n".join(str(block.text) for block in choice(7).blocks)}]
    assert body["model"] == "m-1"


def test_a_picture_that_is_gone_damaged_or_another_one_fails_its_trial_alone(tmp_path: Path) -> None:
    gone, damaged, other, good = (
        picture(tmp_path, name, n) for n, name in enumerate(("gone", "damaged", "other", "good"))
    )
    (tmp_path / "d/images/gone.png").unlink()
    (tmp_path / "d/images/damaged.png").write_bytes((tmp_path / "d/images/damaged.png").read_bytes()[:60])
    picture(tmp_path, "other", 200)
    trials = [choice(n, (0, 1, 2, 3), block) for n, block in enumerate((gone, damaged, other, good))]
    with OpenaiServer(lambda asked: Completion('{"answer": "2"}')) as server:
        place = Place(tmp_path, trials)
        with pytest.raises(NotAnswered, match=r"3 of 4 requests to m failed.*render the images again|build the trials"):
            place.ask(openai_model(server.endpoint))
        assert len(server.asked) == 1
    assert len(place.kept) == 1


def test_without_log_probabilities_a_choice_is_held_to_the_numbers_by_a_schema(tmp_path: Path) -> None:
    body, place = asked_of(choice(1, (2, 0, 3, 1)), tmp_path, Completion('{"answer":"4"}'))
    schema = body["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["properties"]["answer"]["enum"] == ["1", "2", "3", "4"]
    assert (body["temperature"], body["max_tokens"]) == (0, 64)
    assert not {"logprobs", "top_logprobs", "seed"} & set(body)
    (response,) = place.responses
    assert (response.status, response.answer, response.choice) == ("answered", 3, 1)
    assert response.text == '{"answer":"4"}'
    assert (response.logprobs, response.finish_reason) == (None, "stop")
    assert (response.prompt_tokens, response.completion_tokens, response.image_tokens) == (100, 10, None)


@pytest.mark.parametrize(
    ("text", "finish", "status", "place"),
    [
        ("2", "stop", "answered", 1),
        ("The answer is 2) right lobe.", "stop", "answered", 1),
        ('```json\n{"answer": "2"}\n```', "stop", "answered", 1),
        ('{"answer": "2"', "length", "answered", 1),
        ('{"answer": ', "length", "truncated", None),
        ("", "length", "truncated", None),
        (None, "length", "truncated", None),
        ("", "stop", "unparsed", None),
        ('{"answer": "7"}', "stop", "unparsed", None),
        ('{"answer": NaN}', "stop", "unparsed", None),
        ('{"answer": "1", "answer": "2"}', "stop", "unparsed", None),
        ('{"other": "2"}', "stop", "unparsed", None),
        ("I cannot see any image.", "stop", "refused", None),
        ("half", "content_filter", "refused", None),
    ],
)
def test_a_reply_of_another_form_is_kept_as_it_is_and_read_not_drawn_again(
    tmp_path: Path, text: str | None, finish: str, status: str, place: int | None
) -> None:
    """Asking again until the form is right would choose among a model's answers."""
    with OpenaiServer(lambda asked: Completion(text, finish)) as server:
        job, model = Place(tmp_path, [choice(1)]), openai_model(server.endpoint)
        assert (job.ask(model), job.ask(model)) == ((1, 0), (0, 1))
        assert len(server.asked) == 1
    (response,) = job.responses
    assert (response.status, response.answer, response.text) == (status, place, text or "")


def test_a_refusal_of_the_model_is_one(tmp_path: Path) -> None:
    _, place = asked_of(choice(1), tmp_path, Completion(None, refusal="I'd rather not say: 2."))
    (response,) = place.responses
    assert (response.status, response.answer, response.text) == ("refused", None, "I'd rather not say: 2.")


@pytest.mark.parametrize("permutation", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_log_probabilities_stand_by_place_shown_and_the_likeliest_number_is_the_choice(
    tmp_path: Path, permutation: tuple[int, ...]
) -> None:
    body, place = asked_of(
        choice(1, permutation),
        tmp_path,
        Completion("The", "length", first={"The": -0.05, **NUMBERS}),
        **with_logprobs(),
    )
    assert (body["logprobs"], body["top_logprobs"], body["max_tokens"], body["temperature"]) == (True, 20, 1, 0)
    assert "response_format" not in body
    (response,) = place.responses
    assert response.logprobs == (-3.0, -0.1, -4.0, -2.5)
    assert (response.answer, response.choice) == (1, permutation[1])
    assert (response.text, response.status, response.finish_reason) == ("The", "answered", "constrained")


def test_what_is_not_among_the_likeliest_tokens_stays_unknown(tmp_path: Path) -> None:
    """2 and 4 are listed, so they are likelier than 1 and 3: the choice is known, the others' probabilities are not."""
    first = {"4": -0.2, "2": -1.9, "Option": -3.0}
    _, place = asked_of(choice(1), tmp_path, Completion("4", "length", first=first), **with_logprobs())
    (response,) = place.responses
    assert (response.answer, response.logprobs) == (3, None)


@pytest.mark.parametrize(
    "first", [{"The": -0.1, "A": -2.0}, {" 2": -0.1}, {"２": -0.1}, {"2.": -0.1}, {"The": -0.1, "2": -9999.0}]
)
def test_where_no_number_is_listed_nothing_is_read_from_the_token(tmp_path: Path, first: dict[str, float]) -> None:
    """Not even from a token that the parser would take for an answer: only the first position was asked for."""
    text = next(iter(first))
    _, place = asked_of(choice(1), tmp_path, Completion(text, "length", first=first), **with_logprobs())
    (response,) = place.responses
    assert (response.status, response.answer, response.logprobs, response.text) == ("unparsed", None, None, text)


def test_the_token_that_was_generated_counts_where_the_server_lists_no_others(tmp_path: Path) -> None:
    _, place = asked_of(choice(1), tmp_path, Completion("2", first={"2": -0.3}, listed=False), **with_logprobs())
    assert (place.responses[0].answer, place.responses[0].logprobs) == (1, None)


@pytest.mark.parametrize("trial", [choice(1), yes_no(1, readout="first-token")])
def test_a_server_that_gives_no_log_probabilities_though_the_file_says_so_is_said(tmp_path: Path, trial: Trial) -> None:
    with (
        OpenaiServer(lambda asked: Completion("2")) as server,
        pytest.raises(NotAnswered, match="gives no log-probabilities: set"),
    ):
        Place(tmp_path, [trial]).ask(openai_model(server.endpoint, **with_logprobs()))


def test_a_readout_that_needs_log_probabilities_is_not_asked_without_them(tmp_path: Path) -> None:
    with OpenaiServer(lambda asked: Completion("2"), refuses={"logprobs": None}) as server:
        with pytest.raises(NotAnswered, match=r"status 400.*does not take logprobs as it is"):
            Place(tmp_path, [yes_no(1, readout="first-token")]).ask(openai_model(server.endpoint, **with_logprobs()))
        assert len(server.asked) == 1
    with OpenaiServer(lambda asked: Completion("No"), refuses={"logprobs": None, "top_logprobs": None}) as server:
        place = Place(tmp_path / "other", [yes_no(1)])
        place.ask(openai_model(server.endpoint, **with_logprobs()))
    assert (place.responses[0].answer, place.responses[0].logprobs) == (1, None)
    assert place.kept[0]["adjusted"] == "logprobs left out; top_logprobs left out"


@pytest.mark.parametrize("options", [("yes", "no"), ("no", "yes")])
def test_first_token_takes_the_likelier_of_the_two_small_words(tmp_path: Path, options: tuple[str, str]) -> None:
    first = {"Yes": -0.3, "yes": -2.5, "no": -2.0, "No": -3.0}
    trial = yes_no(1, readout="first-token", options=options)
    body, place = asked_of(trial, tmp_path, Completion("Yes", "length", first=first), **with_logprobs())
    assert body["max_tokens"] == 1
    (response,) = place.responses
    assert response.answer == options.index("no")
    assert response.logprobs == tuple({"yes": -2.5, "no": -2.0}[option] for option in options)


def test_capital_words_are_no_answer_of_the_first_token_readout(tmp_path: Path) -> None:
    trial = yes_no(1, readout="first-token")
    _, place = asked_of(
        trial, tmp_path, Completion("Yes", "length", first={"Yes": -0.1, "No": -2.0}), **with_logprobs()
    )
    assert (place.responses[0].status, place.responses[0].answer) == ("unparsed", None)


def test_yes_no_is_parsed_and_its_margin_kept_where_it_is_known(tmp_path: Path) -> None:
    first = {"No": -0.1, "no": -2.0, "yes": -5.0}
    body, place = asked_of(yes_no(1), tmp_path, Completion("No, it is clear.", first=first), **with_logprobs())
    assert (body["max_tokens"], body["logprobs"]) == (64, True)
    (response,) = place.responses
    assert (response.answer, response.logprobs, response.finish_reason) == (1, (-5.0, -2.0), "stop")


def test_free_text_is_parsed_against_the_listed_options(tmp_path: Path) -> None:
    trial = choice(1, (1, 0, 2, 3), readout="free-text")
    body, place = asked_of(trial, tmp_path, Completion("I think it is option 2."))
    assert not {"response_format", "logprobs"} & set(body)
    assert (place.responses[0].answer, place.responses[0].choice) == (1, 0)


def test_a_model_that_reasons_gets_its_own_parameters(tmp_path: Path) -> None:
    decoding = Decoding(temperature=None, max_tokens=4096, reasoning_effort="low")
    body, _ = asked_of(choice(1), tmp_path, Completion('{"answer": "2"}'), decoding=decoding)
    assert "temperature" not in body
    assert "max_tokens" not in body
    assert (body["max_completion_tokens"], body["reasoning_effort"]) == (4096, "low")


def test_a_model_that_reasons_until_its_tokens_are_gone_is_truncated_and_not_asked_again(tmp_path: Path) -> None:
    says = Completion(None, "length", tokens=(120, 4096, 0))
    with OpenaiServer(lambda asked: says) as server:
        place = Place(tmp_path, [choice(1)])
        model = openai_model(server.endpoint, decoding=Decoding(temperature=None, max_tokens=4096))
        place.ask(model)
        assert place.ask(model) == (0, 1)
        assert len(server.asked) == 1
    (response,) = place.responses
    assert (response.status, response.answer, response.completion_tokens) == ("truncated", None, 4096)


def test_draws_have_a_seed_of_their_own_that_is_the_same_in_every_job(tmp_path: Path) -> None:
    trials = [choice(n, run=run) for n in range(3) for run in (1, 2)]
    seeds: list[dict[tuple[str, int], int]] = []
    for folder in ("one", "two"):
        with OpenaiServer(lambda asked: Completion('{"answer": "2"}')) as server:
            Place(tmp_path / folder, trials).ask(openai_model(server.endpoint, decoding=Decoding(temperature=0.7)))
            seeds.append({(one.user, one.body["seed"]): one.body["seed"] for one in server.asked})
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0].values())) == 6


def test_trials_with_one_beginning_follow_each_other_and_come_back_in_their_own_order(tmp_path: Path) -> None:
    shown = {name: picture(tmp_path, name, place * 40) for place, name in enumerate("abc")}
    trials = [choice(n, (0, 1, 2, 3), shown["abc"[n % 3]], study=f"s{n}") for n in range(12)]

    def number(asked: Asked) -> Completion:
        return Completion(f"The answer is {int(asked.user.split('brain ')[1].split('?')[0]) % 4 + 1}")

    with OpenaiServer(number) as server:
        place = Place(tmp_path, trials)
        place.ask(openai_model(server.endpoint, batch=1))
        order = [one.parts[0]["image_url"]["url"] for one in server.asked]
    assert len([1 for one, two in itertools.pairwise(order) if one != two]) == 2
    by_question = {response.question: response.answer for response in place.responses}
    assert by_question == {f"q{n:04}": n % 4 for n in range(12)}


def test_a_vllm_server_is_asked_for_the_very_tokens_of_the_words(tmp_path: Path) -> None:
    tokenizer = Tokenizer()
    first = {"token_id:49": -1.0, "token_id:50": -3.0, "token_id:51": -2.0, "token_id:52": -4.0}
    with OpenaiServer(lambda asked: Completion("1", "length", first=first), also=tokenizer) as server:
        place = Place(tmp_path, [choice(1, (2, 1, 0, 3))])
        place.ask(openai_model(server.endpoint, server="vllm", **with_logprobs()))
        body = server.asked[0].body
    assert body["logprob_token_ids"] == body["allowed_token_ids"] == [49, 50, 51, 52]
    assert (body["max_tokens"], body["temperature"], body["return_tokens_as_token_ids"]) == (1, 0, True)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert (body["repetition_penalty"], body["top_k"], body["min_p"]) == (1.0, 0, 0.0)
    assert (place.responses[0].answer, place.responses[0].choice) == (0, 2)
    assert place.responses[0].logprobs == (-1.0, -3.0, -2.0, -4.0)


def test_a_vllm_server_behind_a_gateway_is_held_to_the_words_themselves(tmp_path: Path) -> None:
    with OpenaiServer(lambda asked: Completion("3"), also=lambda method, path, raw: None) as server:
        place = Place(tmp_path, [choice(1)])
        place.ask(openai_model(server.endpoint, server="vllm", **with_logprobs()))
        body = server.asked[0].body
    assert body["structured_outputs"] == {"choice": ["1", "2", "3", "4"]}
    assert "logprobs" not in body
    assert (place.responses[0].answer, place.responses[0].logprobs) == (2, None)


def test_a_word_of_several_tokens_on_a_vllm_server_is_a_clear_error(tmp_path: Path) -> None:
    """Its tokenizer knows letters only: yes is three tokens."""
    with OpenaiServer(lambda asked: Completion("yes"), also=Tokenizer()) as server:
        with pytest.raises(
            BadInput, match="'yes' is not one token after its prompt: readout 'first-token' can't be used"
        ):
            Place(tmp_path, [yes_no(1, readout="first-token")]).ask(
                openai_model(server.endpoint, server="vllm", **with_logprobs())
            )
        assert not server.asked


@pytest.mark.parametrize(("template", "images", "sent"), [("", 8, True), ("^", 8, None), ("", 0, None)])
def test_a_begin_token_that_the_template_leaves_to_the_tokenizer_is_asked_for(
    tmp_path: Path, template: str, images: int, sent: bool | None
) -> None:
    """As the transformers back end has it put; a text model's template alone says what a prompt begins with."""
    first = {"token_id:49": -1.0}
    with OpenaiServer(lambda asked: Completion("1", first=first), also=Tokenizer(template)) as server:
        place = Place(tmp_path, [choice(1)])
        place.ask(openai_model(server.endpoint, server="vllm", takes=Takes(images=images, logprobs=True)))
        assert server.asked[0].body.get("add_special_tokens") is sent


@dataclass
class Tokenizer:
    """`/tokenize` and `/detokenize` of a vLLM server whose tokens are letters, and whose begin token is `^`."""

    template: str = "^"

    def __call__(self, method: str, path: str, raw: bytes) -> tuple[int, bytes] | None:
        asked = json.loads(raw)
        if path == "/detokenize":
            return 200, json.dumps({"prompt": "".join(map(chr, asked["tokens"]))}).encode()
        if path != "/tokenize":
            return None
        text = asked.get("prompt")
        if text is None:
            turns = "".join(f"<{one['role']}>{one['content']}" for one in asked["messages"])
            text = self.template + turns + ("<assistant>" if asked["add_generation_prompt"] else "")
        elif asked.get("add_special_tokens"):
            text = text if text.startswith("^") else f"^{text}"
        return 200, json.dumps({"tokens": [ord(each) for each in text], "count": len(text)}).encode()


def test_azure_has_its_own_addresses_and_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_KEY", "azure-secret")
    with OpenaiServer(
        lambda asked: Completion('{"answer": "2"}'), path="/openai/deployments/m-1/chat/completions"
    ) as server:
        place = Place(tmp_path, [choice(1)])
        endpoint = server.endpoint.replace("/v1", "/openai")
        model = openai_model(endpoint, server="azure", api_version="2024-10-21", key_variable="AZURE_KEY")
        place.ask(model)
        place.work.unlink()
        place.ask(model.model_copy(update={"endpoint": f"{endpoint}/deployments/m-1"}))
        one, two = server.asked
    for asked in (one, two):
        assert asked.headers[":path"] == "/openai/deployments/m-1/chat/completions?api-version=2024-10-21"
        assert asked.headers["api-key"] == "azure-secret"
        assert "azure-secret" not in asked.headers.get("authorization", "")
    assert place.responses[0].answer == 1


def test_parameters_of_the_file_go_with_each_request(tmp_path: Path) -> None:
    body, _ = asked_of(choice(1), tmp_path, extra={"service_tier": "flex"}, decoding=Decoding(temperature=0, top_p=0.9))
    assert (body["service_tier"], body["top_p"]) == ("flex", 0.9)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"readout": "similarity"}, "has no readout 'similarity'"),
        ({"attention": "from-2"}, "can't hide the report"),
        ({"readout": "first-token"}, "needs log-probabilities"),
    ],
)
def test_what_the_back_end_can_not_do_is_refused_before_anything_is_sent(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    with OpenaiServer(lambda asked: Completion("2")) as server:
        with pytest.raises(BadInput, match=why):
            Place(tmp_path, [choice(0), choice(1, **changes)]).ask(openai_model(server.endpoint))
        assert not server.asked


def test_a_volume_is_refused(tmp_path: Path) -> None:
    volume = Block(role="image", image="images/volume.nii.gz", pixels="0" * 64)
    trial = choice(0, (0, 1, 2, 3), volume)
    with OpenaiServer(echo) as server, pytest.raises(BadInput, match="takes pictures, no volumes"):
        Place(tmp_path, [trial]).ask(openai_model(server.endpoint))


def test_what_answering_costs_is_counted(tmp_path: Path) -> None:
    from overread.backends.openai.backend import OpenaiBackend

    shown = picture(tmp_path, "one")
    with OpenaiServer(lambda asked: Completion("2", tokens=(1000, 20, 400))) as server:
        prices = {"input": 2.0, "output": 8.0, "cached_input": 0.5}
        back_end = OpenaiBackend(openai_model(server.endpoint, prices=prices), "m")
        answers = list(back_end.answer([choice(n, (0, 1, 2, 3), shown) for n in range(3)], tmp_path / "d"))
    assert [each.chosen for each in answers] == [None] * 3
    account = back_end.account
    assert (account.prompt_tokens, account.prefilled_tokens, account.completion_tokens) == (3000, 1800, 60)
    assert account.images_encoded == 3
    # 600 tokens at 2 dollars a million, 400 at a half, 20 at 8: 0.0012 + 0.0002 + 0.00016
    assert account.dollars == pytest.approx(3 * 0.00156)


def test_the_options_are_those_of_the_trial() -> None:
    assert choice(1, (3, 2, 1, 0)).options == tuple(reversed(LOBES))
