"""From MeSH terms to findings: what an indexer wrote is positive, what no one wrote is not negative."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from overread.config import FINDINGS
from overread.core.errors import BadInput
from overread.sources.open_i.mesh import MeshLabels, read_mesh
from overread.sources.open_i.section import OWN_MESH

FILE = OWN_MESH
MESH = read_mesh(FILE)


@pytest.mark.parametrize(
    ("terms", "labels"),
    [
        (["Pulmonary Atelectasis/base/bilateral"], {"Atelectasis": "positive"}),
        (["Cardiomegaly"], {"Cardiomegaly": "positive"}),
        (["Cardiomegaly/borderline"], {"Cardiomegaly": "uncertain"}),
        (["Cardiomegaly/borderline", "Cardiac Shadow/enlarged/mild"], {"Cardiomegaly": "positive"}),
        (["Cardiac Shadow/enlarged/borderline"], {"Cardiomegaly": "uncertain"}),
        (["Thickening/pleura/apex/bilateral"], {"Pleural Other": "positive"}),
        (["Thickening/bronchi"], {}),
        (["Opacity/lung/base/left", "Consolidation/lung/lower lobe/left"],
         {"Lung Opacity": "positive", "Consolidation": "positive"}),
        (["Costophrenic Angle/right/blunted"], {"Pleural Effusion": "uncertain"}),
        (["Costophrenic Angle/right/blunted", "Pleural Effusion/right/small"], {"Pleural Effusion": "positive"}),
        (["Fractures, Bone/ribs/left/healed"], {"Fracture": "positive"}),
        (["Catheters, Indwelling/right"], {"Support Devices": "positive"}),
        (["Surgical Instruments/abdomen"], {"Support Devices": "uncertain"}),
        (["Nodule/lung/lingula"], {"Lung Lesion": "positive"}),
        (["Calcified Granuloma/lung/upper lobe/left"], {"Lung Lesion": "uncertain"}),
        (["Mass/breast/large"], {}),
        (["Mediastinum/lymph nodes/enlarged"], {"Enlarged Cardiomediastinum": "uncertain"}),
        (["Hydropneumothorax/left"], {"Pleural Effusion": "positive", "Pneumothorax": "positive"}),
        (["  pulmonary   EDEMA / interstitial"], {"Edema": "positive"}),
        (["Scoliosis", "Aorta/tortuous"], {}),
    ],
)  # fmt: skip
def test_the_mapping_of_the_project(terms: list[str], labels: dict[str, str]) -> None:
    assert MESH.of(terms) == (labels, None)


def test_only_a_normal_report_denies_and_it_says_nothing_of_devices() -> None:
    labels, problem = MESH.of(["normal"])
    assert problem is None
    assert labels == {name: "negative" for name in FINDINGS if name != "Support Devices"}


@pytest.mark.parametrize("terms", [[], ["No Indexing"]])
def test_a_report_without_terms_has_no_labels(terms: list[str]) -> None:
    assert MESH.of(terms) == ({}, "no labels: the report was not indexed")


PATTERNS = sorted({term for terms in (*MESH.positive.values(), *MESH.uncertain.values()) for term in terms})
TERMS = st.lists(
    st.builds(
        lambda pattern, more: "/".join([pattern, *more]),
        st.sampled_from([*PATTERNS, "Scoliosis", "Aorta"]),
        st.lists(st.sampled_from(["left", "mild", "lung", "base", "borderline"]), max_size=3),
    ),
    min_size=1,
    max_size=5,
)


@given(TERMS, st.randoms())
def test_terms_deny_nothing_and_their_order_and_qualifiers_order_do_not_matter(
    terms: list[str], chance: object
) -> None:
    labels, _ = MESH.of(terms)
    assert set(labels.values()) <= {"positive", "uncertain"}
    turned = []
    for term in terms:
        heading, *qualifiers = term.split("/")
        chance.shuffle(qualifiers)  # type: ignore[attr-defined]
        turned.append("/".join([heading, *qualifiers]))
    chance.shuffle(turned)  # type: ignore[attr-defined]
    assert MESH.of(turned)[0] == labels


@given(TERMS, TERMS)
def test_more_terms_make_nothing_less_certain(terms: list[str], more: list[str]) -> None:
    before, after = MESH.of(terms)[0], MESH.of([*terms, *more])[0]
    for finding, label in before.items():
        assert after[finding] == "positive" or label == after[finding] == "uncertain"


def content() -> dict[str, object]:
    loaded: dict[str, object] = yaml.safe_load(FILE.read_text())
    return loaded


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"positive": {"Edema": ["Pulmonary Edema"]}}, "no pattern for Atelectasis"),
        ({"negative_if_normal": ["Oedema"]}, "no finding 'Oedema'"),
        ({"uncertain": {"Edma": ["x"]}}, "Did you mean Edema?"),
        ({"negative": {}}, "no key 'negative'"),
        ({"field": "minor"}, "field"),
    ],
)
def test_a_mapping_that_is_wrong_is_one_line_with_the_key(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(yaml.safe_dump({**content(), **change}))
    with pytest.raises(BadInput) as caught:
        read_mesh(path)
    assert reason in str(caught.value) and str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["{", "- a", "", "\x00"])
def test_what_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"m\.yaml"):
        read_mesh(path)
    with pytest.raises(BadInput, match="no such file"):
        read_mesh(tmp_path / "n.yaml")


def test_automatic_terms_can_be_mapped_instead() -> None:
    mesh = MeshLabels.model_validate({**content(), "field": "automatic", "negative_if_normal": []})
    assert mesh.field == "automatic"
    assert mesh.of(["Cardiomegaly"])[0] == {"Cardiomegaly": "positive"}
