"""An edited view of a study against the plain one; and six edits in one go against six plain views, each by itself."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.bench_render import full_size
from benchmarks.conftest import Bench
from overread.core.records import Study
from overread.edits import Edit
from overread.images import render_study
from overread.views.slice.section import SliceView

EDITS: dict[str, tuple[dict[str, object], float]] = {
    "erase": ({"kind": "erase"}, 0.3), "erase-control": ({"kind": "erase-control"}, 0.2),
    "move": ({"kind": "move"}, 0.25), "mirror": ({"kind": "mirror"}, 0.8),
    "blur": ({"kind": "blur", "mm": 2}, 0.8), "mark": ({"kind": "mark", "drawn": "at-random"}, 0.8),
}  # fmt: skip
"""By name: the edit, and how many times as fast as the plain view it was when this was written."""


def _study(folder: Path, side: int) -> Study:
    """Noise in an ellipsoid, its lesion on one side: as hard to unpack as a real scan."""
    import nibabel as nib
    import numpy as np

    shape = (side, side, side * 155 // 240)
    study = full_size(folder, shape)
    lesion = np.zeros(shape, dtype=np.int16)
    lesion[side // 4 : side // 4 + side // 8, side // 2 : side // 2 + side // 8, shape[2] // 2 : shape[2] // 2 + 12] = 2
    nib.save(nib.Nifti1Image(lesion, np.diag([-1.0, -1.0, 1.0, 1.0])), study.images["tumor_segmentation"])
    return study


def bench_edited_views(bench: Bench, tmp_path: Path) -> None:
    side = bench.size(240, 120)
    study = _study(tmp_path / "A", side)
    adapter = TypeAdapter(tuple[Edit, ...])
    view = SliceView(series="FLAIR")

    def rendered(*edits: dict[str, object]) -> None:
        views = {f"v{place}": view for place in range(max(1, len(edits)))}
        made = {f"v{place}": adapter.validate_python([one]) for place, one in enumerate(edits)}
        assert len(render_study(study, views, tmp_path / "images" / "A", edits=made)) == len(views)

    for name, (edit, expected) in EDITS.items():
        bench.against(
            f"one slice, {name}", lambda edit=edit: rendered(edit), "the plain slice", rendered, expected=expected
        )

    def six_plain() -> None:
        for _ in EDITS:
            rendered()

    together = [edit for edit, _ in EDITS.values()]
    bench.against("six edits of a study", lambda: rendered(*together), "six plain slices", six_plain, expected=0.6)
