"""Files that come with Overread and that a study can replace by its own: templates of prompts, words, rules.

They lie in the package, so that an installed Overread has them. No job depends on the folder: a rule names the files
that it reads.
"""

from __future__ import annotations

from pathlib import Path

RESOURCES = Path(__file__).resolve().parents[1] / "resources"
PROMPTS = RESOURCES / "prompts"
"""The templates of prompts; those in a study's own folder, `prompts` in its config, go before their namesakes here."""
FINDINGS = RESOURCES / "findings.yaml"
"""The words that mention a finding."""
FILTER = RESOURCES / "filter.yaml"
"""The checks and keywords for generated questions."""
