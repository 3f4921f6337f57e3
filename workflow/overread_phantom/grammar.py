"""Radiology reports and four-option questions about a planted tumour.

Every sentence and every option follows from `Facts`, so the truth of a question is known. An option has one text for
one fact, whatever the study: the right option of one study can be a wrong one of another. The place of the right
option follows the bias of published questions written by a language model (84.7, 12.2, 2.7 and 0.5 %).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overread.core.records import Question
from overread_phantom.tumour import (
    LOCATIONS,
    MARGIN_MM,
    SIZES_CM,
    Enhancement,
    Facts,
    Necrosis,
    Oedema,
    PlantedTumour,
    generator,
)

POSITION_SHARES = (84.7, 12.2, 2.7, 0.5)

OEDEMA_OPTIONS: dict[Oedema, str] = {
    "minimal": "Minimal, less than 0.5 cm",
    "mild": "Mild, about 1 cm",
    "moderate": "Moderate, about 2 cm",
    "extensive": "Extensive, about 3 cm",
}
ENHANCEMENT_OPTIONS: dict[Enhancement, str] = {
    "none": "No enhancement",
    "thin rim": "Thin rim enhancement",
    "thick rim": "Thick rim enhancement",
    "solid": "Solid enhancement",
}
NECROSIS_OPTIONS: dict[Necrosis, str] = {
    "none": "No necrotic core",
    "small": "Small central core",
    "large": "Large central core",
    "eccentric": "Core off the centre",
}


def location_option(side: str, lobe: str) -> str:
    return f"{side.capitalize()} {lobe} lobe"


def size_option(size_cm: int) -> str:
    return f"{size_cm} cm"


@dataclass(frozen=True)
class Topic:
    """What is asked: the values it can have, in their natural order, and the ways to ask."""

    values: tuple[str, ...]
    stems: tuple[str, ...]


TOPICS: dict[str, Topic] = {
    "location": Topic(
        tuple(location_option(side, lobe) for side, lobe in LOCATIONS),
        (
            "In which lobe and on which side does the mass lie?",
            "Where is the mass centred?",
            "Which side and lobe does the tumour occupy?",
        ),
    ),
    "size": Topic(
        tuple(size_option(size) for size in SIZES_CM),
        (
            "What is the greatest axial diameter of the mass, without the oedema around it, to the nearest centimetre?",
            "To the nearest centimetre, what is the greatest diameter of the mass in the axial plane, oedema excluded?",
            "How large is the greatest axial diameter of the mass, leaving out the oedema, in whole centimetres?",
        ),
    ),
    "oedema": Topic(
        tuple(OEDEMA_OPTIONS[value] for value in MARGIN_MM),
        (
            "How far does the oedema extend beyond the edge of the mass?",
            "What is the extent of the oedema around the mass?",
            "Which best describes the oedema that surrounds the mass?",
        ),
    ),
    "enhancement": Topic(
        tuple(ENHANCEMENT_OPTIONS.values()),
        (
            "What is the enhancement pattern of the mass?",
            "How does the mass enhance after contrast?",
            "Which pattern of contrast enhancement does the mass show?",
        ),
    ),
    "necrosis": Topic(
        tuple(NECROSIS_OPTIONS.values()),
        (
            "What does the mass show in respect of a necrotic core?",
            "Which best describes the necrotic core of the mass, if there is one?",
            "Is there a necrotic core, and where in the mass does it lie?",
        ),
    ),
}


def labels(facts: Facts) -> dict[str, str]:
    """The text of the right option by topic: `Study.labels`."""
    return {
        "location": location_option(facts.side, facts.lobe),
        "size": size_option(facts.size_cm),
        "oedema": OEDEMA_OPTIONS[facts.oedema],
        "enhancement": ENHANCEMENT_OPTIONS[facts.enhancement],
        "necrosis": NECROSIS_OPTIONS[facts.necrosis],
    }


@dataclass(frozen=True)
class Report:
    """The sections as text, and for each topic the sentence of the findings that states it."""

    findings: str
    impression: str
    evidence: dict[str, str]

    @property
    def sections(self) -> dict[str, str]:
        return {"findings": self.findings, "impression": self.impression}

    @property
    def text(self) -> str:
        return f"FINDINGS:\n{self.findings}\n\nIMPRESSION:\n{self.impression}\n"


def report(planted: PlantedTumour) -> Report:
    """A report of varied wording that states every fact in its findings."""
    facts = planted.facts
    rng = generator(planted.seed, planted.index, 50)
    evidence = {
        "location": _one(rng, _LOCATION).format(side=facts.side, lobe=facts.lobe),
        "size": _one(rng, _SIZE).format(*(f"{mm / 10:.1f}" for mm in facts.diameters_mm), size=facts.size_cm),
        "oedema": _one(rng, _OEDEMA[facts.oedema]),
        "enhancement": _one(rng, _ENHANCEMENT[facts.enhancement]),
        "necrosis": _one(rng, _NECROSIS[facts.necrosis]),
    }
    middle = ["enhancement", "necrosis", "oedema"]
    rng.shuffle(middle)
    sentences = [_one(rng, _OPENING), evidence["location"], evidence["size"], *(evidence[topic] for topic in middle)]
    sentences.append(_one(rng, _ELSEWHERE))
    summary = _one(rng, _IMPRESSION).format(
        side=facts.side, lobe=facts.lobe, size=facts.size_cm, mass=_MASS[facts.enhancement], oedema=facts.oedema
    )
    kind = _one(rng, _SUSPECTED_LOW if facts.enhancement == facts.necrosis == "none" else _SUSPECTED)
    return Report(" ".join(s for s in sentences if s), f"{summary} {kind}", evidence)


def questions(planted: PlantedTumour, written: Report) -> list[Question]:
    """One question a topic. Each right option's place is drawn by seed with `POSITION_SHARES`."""
    truth = labels(planted.facts)
    shares = np.array(POSITION_SHARES) / sum(POSITION_SHARES)
    asked = []
    for number, (name, topic) in enumerate(TOPICS.items()):
        rng = generator(planted.seed, planted.index, 60, number)
        others = [value for value in topic.values if value != truth[name]]
        options = [others[k] for k in rng.permutation(len(others))[:3]]
        options.insert(int(rng.choice(4, p=shares)), truth[name])
        asked.append(
            Question(
                study=planted.study,
                patient=planted.study,
                stem=_one(rng, topic.stems),
                options=tuple(options),
                answer=truth[name],
                topic=name,
                evidence=written.evidence[name],
                origin="grammar",
            )
        )
    return asked


def _one(rng: np.random.Generator, choices: Sequence[str]) -> str:
    return choices[int(rng.integers(len(choices)))]


# -- the sentences ---------------------------------------------------------------------------------------------------

_OPENING = (
    "",
    "Multiparametric imaging before and after contrast was obtained.",
    "Pre- and post-contrast images of the brain were reviewed.",
)
_LOCATION = (
    "There is an intra-axial mass in the {side} {lobe} lobe.",
    "A mass is centred in the {side} {lobe} lobe.",
    "The {side} {lobe} lobe contains an intra-axial mass.",
    "An intra-axial mass lies in the {side} {lobe} lobe.",
)
_SIZE = (
    "It measures {0} x {1} cm in the axial plane and {2} cm craniocaudally.",
    "The mass measures {0} x {1} x {2} cm.",
    "Its greatest axial diameter is {0} cm; it extends {2} cm craniocaudally.",
    "In its greatest axial dimension it reaches {0} cm.",
)
_OEDEMA: dict[Oedema, tuple[str, ...]] = {
    "minimal": (
        "Surrounding oedema is minimal.",
        "There is only a minimal rim of oedema, a few millimetres wide.",
        "FLAIR shows minimal oedema at the margin of the mass.",
    ),
    "mild": (
        "There is mild surrounding oedema that reaches about 1 cm beyond the mass.",
        "FLAIR shows mild oedema around the mass.",
        "Mild oedema extends about 1 cm into the adjacent white matter.",
    ),
    "moderate": (
        "There is moderate surrounding oedema that reaches about 2 cm beyond the mass.",
        "FLAIR shows moderate oedema around the mass.",
        "Moderate oedema extends about 2 cm into the adjacent white matter.",
    ),
    "extensive": (
        "There is extensive surrounding oedema that reaches about 3 cm beyond the mass.",
        "FLAIR shows extensive oedema around the mass.",
        "Extensive oedema extends about 3 cm into the adjacent white matter.",
    ),
}
_ENHANCEMENT: dict[Enhancement, tuple[str, ...]] = {
    "none": (
        "After contrast there is no enhancement.",
        "The mass shows no enhancement.",
        "No enhancement is seen after contrast.",
    ),
    "thin rim": (
        "After contrast there is thin rim enhancement.",
        "The mass shows a thin enhancing rim.",
        "Enhancement is confined to a thin rim.",
    ),
    "thick rim": (
        "After contrast there is thick rim enhancement.",
        "The mass shows a thick enhancing rim.",
        "Enhancement forms a thick rim.",
    ),
    "solid": (
        "After contrast there is solid enhancement.",
        "The mass shows solid enhancement throughout.",
        "Enhancement is solid.",
    ),
}
_NECROSIS: dict[Necrosis, tuple[str, ...]] = {
    "none": (
        "There is no necrotic core.",
        "No necrotic core is identified.",
        "The mass has no necrotic core.",
    ),
    "small": (
        "There is a small central necrotic core.",
        "The mass has a small necrotic core at its centre.",
        "A small central core is necrotic.",
    ),
    "large": (
        "There is a large central necrotic core.",
        "The mass has a large necrotic core at its centre.",
        "A large central core is necrotic.",
    ),
    "eccentric": (
        "There is a necrotic core off the centre of the mass.",
        "The mass has an eccentric necrotic core.",
        "An eccentric core is necrotic.",
    ),
}
_ELSEWHERE = (
    "",
    "No second lesion is seen.",
    "The remainder of the brain is unremarkable.",
    "There is no acute infarct and no hydrocephalus.",
)
_MASS: dict[Enhancement, str] = {
    "none": "Non-enhancing mass",
    "thin rim": "Rim-enhancing mass",
    "thick rim": "Rim-enhancing mass",
    "solid": "Enhancing mass",
}
_IMPRESSION = (
    "{mass} in the {side} {lobe} lobe, about {size} cm, with {oedema} oedema.",
    "{mass} of about {size} cm in the {side} {lobe} lobe; {oedema} surrounding oedema.",
    "{mass} centred in the {side} {lobe} lobe with {oedema} oedema.",
)
_SUSPECTED = (
    "Appearances favour a high-grade glioma.",
    "High-grade glioma is the leading consideration.",
    "Findings are suspicious of a high-grade glioma.",
)
_SUSPECTED_LOW = (
    "A lower-grade glioma is the leading consideration.",
    "Appearances favour a lower-grade glioma.",
    "Findings are suspicious of a lower-grade glioma.",
)
