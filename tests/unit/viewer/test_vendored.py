"""What others wrote and the viewer ships: the very file that is named, with its licence."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import overread_viewer

VENDOR = Path(overread_viewer.__file__).parent / "static" / "vendor"


def test_niivue_is_the_file_that_the_text_beside_it_names_and_the_pages_load():
    said = (VENDOR / "README.md").read_text()
    name = re.search(r"`(niivue-\S+\.js)`", said)[1]
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() in said
    assert "BSD 2-Clause" in (VENDOR / "NIIVUE-LICENSE").read_text()
    loaded = {
        found
        for page in (VENDOR.parents[1] / "templates").rglob("*.j2")
        for found in re.findall(r"/static/vendor/([\w.-]+)", page.read_text())
    }
    assert loaded == {name}
