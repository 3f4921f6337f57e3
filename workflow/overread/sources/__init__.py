"""Studies: from a data set, as it is distributed, to one row an examination. One reader a source.

A reader is a module with `read(dataset, section, folder, remarks) -> list[Study]`. It keeps studies that can't be used,
with the reason in `Study.problem`. Rows and files that it had to leave out, and counts, go to `remarks`.
"""

READERS: dict[str, str] = {
    "chexpert-plus": "overread.sources.chexpert_plus",
    "mimic-cxr": "overread.sources.mimic_cxr",
    "open-i": "overread.sources.open_i",
    "table": "overread.sources.table",
    "ucsf-pdgm": "overread.sources.ucsf_pdgm",
}
"""Module by source. The phantom has no reader of its own: it is read by that of the layout it is written in."""

PHANTOMS: dict[str, tuple[str, str]] = {
    "mri": ("overread_phantom.mri", "ucsf-pdgm"),
    "xray": ("overread_phantom.xray", "mimic-cxr"),
}
"""By modality, the module with `make(section, folder, workers)` and the source whose layout it writes."""
