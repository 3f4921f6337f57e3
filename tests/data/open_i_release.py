"""A folder in the layout of Open-I: XML reports, PNG files, and a table of projections."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from PIL import Image


class OpenIRelease:
    """Built report by report; `projections` are written when the folder is read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.projections: list[str] = []
        (root / "ecgen-radiology").mkdir(parents=True)

    def report(
        self,
        number: int,
        images: Sequence[str] = (),
        *,
        findings: str = "The lungs are clear.",
        impression: str = "Normal chest.",
        major: Sequence[str] = ("normal",),
        automatic: Sequence[str] = (),
        name: str | None = None,
        uid: str | None = None,
    ) -> Path:
        parts = {"COMPARISON": "None.", "INDICATION": "Cough", "FINDINGS": findings, "IMPRESSION": impression}
        texts = "".join(f'<AbstractText Label="{label}">{escape(text)}</AbstractText>' for label, text in parts.items())
        terms = "".join(f"<major>{escape(term)}</major>" for term in major)
        terms += "".join(f"<automatic>{escape(term)}</automatic>" for term in automatic)
        shown = "".join(
            f'<parentImage id="{image}"><caption>PA and lateral</caption>'
            f"<panel><url>/hadoop/{image}.jpg</url></panel></parentImage>"
            for image in images
        )
        path = self.root / "ecgen-radiology" / f"{name or number}.xml"
        path.write_text(
            f'<?xml version="1.0" encoding="utf-8"?>\n<eCitation><meta type="rr"/><uId id="{uid or f"CXR{number}"}"/>'
            f"<MedlineCitation><Article><Abstract>{texts}</Abstract></Article></MedlineCitation>"
            f"<MeSH>{terms}</MeSH>{shown}</eCitation>",
            encoding="utf-8",
        )
        return path

    def image(self, name: str, view: str | None = "Frontal", folder: str = "NLMCXR_png") -> Path:
        path = self.root / folder / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        Image.linear_gradient("L").save(path)
        if view is not None:
            self.projections.append(f"{name.removeprefix('CXR')}.dcm.png,{view}")
        return path

    def study(self, number: int, **report: object) -> Path:
        """A study without a flaw: a lateral image listed first, and a frontal one."""
        images = [f"CXR{number}_IM-{number:04d}-{which}001" for which in (1, 2)]
        self.image(images[0], "Lateral")
        path = self.image(images[1], "Frontal")
        self.report(number, images, **report)  # type: ignore[arg-type]
        return path

    def write_projections(self, head: str = "filename,projection") -> Path:
        path = self.root / "projections.csv"
        path.write_text("\n".join([head, *self.projections]) + "\n")
        return path
