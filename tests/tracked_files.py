"""Every file that Makefile, README and docs name is in git, and git ignores no source. `make lint` runs this.

    python tests/tracked_files.py

An example of a file of the user's own is written with a name in angle brackets, or under `my/`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READ = ("Makefile", "*.md", "docs/*.md", "config/*.md", "demo/*.md", ".ci/*", ".github/workflows/*")
FOLDERS = ("config", "containers", "demo", "docs", "envs", "profiles", "tests", "workflow", r"\.ci", r"\.test")
NAMED = re.compile(rf"(?<![\w./<>-])((?:{'|'.join(FOLDERS)})/[\w./-]*[\w])(?![\w*<{{$/])")
SOURCES = {
    ".py",
    ".smk",
    ".md",
    ".yaml",
    ".yml",
    ".j2",
    ".js",
    ".css",
    ".html",
    ".csv",
    ".json",
    ".toml",
    ".sh",
    ".svg",
}
MADE = re.compile(r"(^|/)(__pycache__|\.[\w-]*cache|[^/]*\.egg-info|\.hypothesis|screenshots)/")


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def not_there(tracked: set[str]) -> list[str]:
    """`file: path` of each path that is named and not in git, from the root or from the package `overread`."""
    folders = {parent.as_posix() for path in tracked for parent in Path(path).parents}
    found = []
    for file in sorted(file for pattern in READ for file in ROOT.glob(pattern)):
        name = file.relative_to(ROOT).as_posix()
        if name in tracked and file.is_file():
            named = set(NAMED.findall(file.read_text(encoding="utf-8")))
            known = tracked | folders
            found += [f"{name}: {path}" for path in sorted(named) if not {path, f"workflow/overread/{path}"} & known]
    return found


def ignored_sources() -> list[str]:
    """Files that look like source, lie among it, and are left out by .gitignore."""
    folders = [folder.replace("\\", "") for folder in FOLDERS]
    left_out = git("ls-files", "--others", "--ignored", "--exclude-standard", "--", *folders)
    return [path for path in left_out if Path(path).suffix in SOURCES and not MADE.search(path)]


def main() -> int:
    problems = [f"{each} is named, but is not in git" for each in not_there(set(git("ls-files")))]
    problems += [f"{path} is left out by .gitignore: it would never reach a clone" for path in ignored_sources()]
    print("\n".join(problems) if problems else "every file that is named is in git")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
