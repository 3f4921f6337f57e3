"""Ask in a browser: a question of one's own to a small model on this machine."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def desk(run: Path, run_config: Path, serving, tmp_path_factory) -> Iterator[str]:
    """The run with its config, beside whose models the demo's tiny reader lies."""
    folder = tmp_path_factory.mktemp("ask") / "config"
    shutil.copytree(run_config.parent, folder)
    tiny = yaml.safe_load((ROOT / "config/models/tiny-reader.yaml").read_text())
    tiny["weights"] = str(ROOT / "demo/tiny-reader")
    (folder / "models" / "tiny-reader.yaml").write_text(yaml.safe_dump(tiny))
    with serving(run, "--config", str(folder / run_config.name)) as url:
        yield url


def study_of(run: Path, dataset: str) -> str:
    from overread.core.records import read_studies

    return read_studies(run / dataset / "studies.parquet")[0].study


def write(page, stem: str, options: list[str]) -> None:
    page.get_by_label("Question", exact=True).fill(stem)
    for place, option in enumerate(options, start=1):
        page.get_by_label(f"Option {place}", exact=True).fill(option)


def answered(page):
    page.wait_for_selector("#answer[data-over=yes]", timeout=180_000)
    return page.locator("#answer")


def test_a_question_of_ones_own_is_answered_by_the_tiny_reader(page, desk, run, axe, shots):
    """From the study's page; loading is shown, the answer comes by itself, and what was typed meanwhile stays."""
    study = study_of(run, "mri")
    page.goto(f"{desk}/ask/mri/{study}")
    axe(page)
    write(page, "On which side of the brain does the mass lie?", ["Left", "Right", "Both sides", "In the midline"])
    page.get_by_label("Model").select_option("tiny-reader")
    page.get_by_label("Setting").select_option("single-slice")
    assert "study's own image" in page.locator("#setting-words").inner_text()
    page.get_by_role("button", name="Ask", exact=True).click()
    # The first sight of it may be that it waits: the queue's thread takes it up in its own time.
    page.locator("#answer [role=status]").filter(has_text="Loading the model").wait_for(timeout=60_000)
    page.get_by_label("Question", exact=True).fill("Typed while it loads")
    answer = answered(page)
    assert page.get_by_label("Question", exact=True).input_value() == "Typed while it loads"
    assert "with loading" in answer.locator(".counts").inner_text()
    assert answer.locator(".given").inner_text() in ("Left", "Right", "Both sides", "In the midline")
    probabilities = [
        float(text.replace("\N{NO-BREAK SPACE}%", "")) for text in answer.locator("td:last-child").all_inner_texts()
    ]
    assert len(probabilities) == 4 and all(0 <= one <= 100 for one in probabilities) and sum(probabilities) <= 100.3
    assert answer.locator(".given").inner_text() in answer.locator("tr.chosen").inner_text()
    assert not answer.locator(".chip.right, .chip.wrong").count()  # nobody said what is right
    assert re.fullmatch(r"[1-4]", answer.locator("pre").first.inner_text())
    answer.locator("summary").click()
    assert "On which side of the brain does the mass lie?" in answer.locator(".prompt").inner_text()
    image = answer.locator(".prompt img")
    page.wait_for_function("one => one.complete && one.naturalWidth > 100", arg=image.element_handle())
    page.wait_for_function("document.querySelector('.earlier').innerText.includes('tiny-reader')")
    axe(page)
    shots(page, "ask-answer")
    # The model is held: the next answer is there at once.
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_selector("#answer[data-over=yes]", timeout=20_000)
    assert "with loading" not in page.locator("#answer").inner_text()


def test_a_question_of_the_study_is_filled_in_put_as_in_the_run_and_judged(page, desk, run):
    study = study_of(run, "xray")
    page.goto(f"{desk}/ask/xray/{study}")
    page.get_by_role("button", name="Fill in").click()
    assert page.get_by_label("Question", exact=True).input_value()
    page.get_by_label("Model").select_option("first")
    page.get_by_label("Setting").select_option("xray-swapped")
    page.get_by_role("button", name="Ask", exact=True).click()
    answer = answered(page)
    assert answer.locator(".verdict .chip").inner_text() in ("correct", "wrong")
    assert answer.get_by_text("put as the run put it").is_visible()
    assert answer.get_by_text("A calibrated reader looks at nothing").is_visible()


def test_settings_that_do_not_fit_the_model_are_greyed_out_with_the_reason(page, desk, run):
    page.goto(f"{desk}/ask/xray/{study_of(run, 'xray')}")
    page.get_by_label("Model").select_option("tiny-reader")
    option = page.locator("#setting option[value=single-slice]")
    assert option.is_disabled()
    assert page.locator("#setting option[value=xray]").is_enabled()
    page.locator("details.cannot summary").click()
    assert page.locator("details.cannot").get_by_text("is of brain MRI, and xray holds chest X-rays").first.is_visible()


def test_an_error_stands_at_its_field_and_the_text_stays(page, desk, run, console, axe, shots):
    page.goto(f"{desk}/ask/xray/{study_of(run, 'xray')}")
    write(page, "Is it there? <|im_end|>", ["yes", "no"])
    page.get_by_label("Model").select_option("looks")
    page.get_by_label("Setting").select_option("xray")
    page.get_by_role("button", name="Ask", exact=True).click()
    stem = page.get_by_label("Question", exact=True)
    assert stem.get_attribute("aria-invalid") == "true"
    assert "control token" in page.locator(f"#{stem.get_attribute('aria-describedby')}").inner_text()
    assert stem.input_value() == "Is it there? <|im_end|>"
    console.clear()  # the page is meant to be a 422
    axe(page)
    shots(page, "ask-error")


def test_without_scripts_the_answer_comes_by_itself(browser, desk, run):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{desk}/ask/xray/{study_of(run, 'xray')}")
    write(page, "Is there a pleural effusion?", ["yes", "no"])
    page.get_by_label("Model").select_option("looks")
    page.get_by_label("Setting").select_option("xray")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_selector("#answer[data-over=yes]", timeout=60_000)
    assert page.locator("#answer .verdict").is_visible()
    context.close()


def test_an_answer_can_be_cancelled_while_the_model_loads(page, desk, run):
    page.goto(f"{desk}/ask/mri/{study_of(run, 'mri')}")
    write(page, "Is there a mass?", ["Yes, one", "Yes, several", "No"])
    page.get_by_label("Model").select_option("tiny-reader")
    page.get_by_label("Setting").select_option("single-slice")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_selector("#answer")
    page.get_by_role("button", name="Cancel").click()
    answer = answered(page)
    assert answer.locator("[role=status]").inner_text() == "Cancelled."
