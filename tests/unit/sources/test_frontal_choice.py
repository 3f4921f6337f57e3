"""The rule of the frontal image holds for any order and any mixture of views and times."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from overread.sources.mimic_cxr.tables import UNKNOWN, Image
from overread.sources.shared.frontal_choice import FrontalChoice, frontal_image

CLOCKS = st.one_of(st.just(UNKNOWN), st.integers(0, 9).map(lambda second: f"00000{second}.000"))
VIEWS = st.sampled_from(["AP", "PA", "LATERAL", "LL", ""])
IMAGES = st.lists(
    st.builds(Image, st.just("21800506"), CLOCKS, st.uuids().map(str), VIEWS),
    max_size=8,
    unique_by=lambda one: one.dicom,
)


@given(IMAGES, st.sampled_from(["first", "last"]), st.sampled_from(["time", "views"]), st.randoms())
def test_the_choice_is_of_a_wanted_view_timed_if_any_is_and_does_not_depend_on_the_order(
    images: list[Image], take: str, prefer: str, chance: random.Random
) -> None:
    choice = FrontalChoice.model_validate({"views": ["PA", "AP"], "take": take, "prefer": prefer})
    chosen = frontal_image(images, choice)
    shuffled = list(images)
    chance.shuffle(shuffled)
    assert frontal_image(shuffled, choice) == chosen
    wanted = [image for image in images if image.view in ("AP", "PA")]
    assert (chosen is None) == (not wanted)
    if chosen is None:
        return
    rivals = [image for image in wanted if image.view == "PA"] or wanted if prefer == "views" else wanted
    assert chosen in rivals
    timed = [image for image in rivals if image.timed]
    assert chosen.timed == bool(timed)
    for rival in timed:
        assert chosen.clock <= rival.clock if take == "first" else chosen.clock >= rival.clock
