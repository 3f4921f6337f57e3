"""What made a result: the code that a command can reach, as a hash that its rules depend on.

Snakemake notices a changed shell command, but not a changed package behind it. So each rule has a parameter `code`, the
hash of all that its command can reach: the command's own function, the modules that it imports, the modules that those
import, within functions too, and the templates and style sheets that they name. Sources are read, never run.

- `from package import name` leads to the module that defines the name: what else the package's `__init__` lists is no
  reason to run again.
- A registry names its modules in texts or entry points, which are not followed. Whoever asks gives the parts of it that
  the study uses. A module that always imports what lies in some place says so itself (`LOADS`).
- Comments, blank lines and docstrings of modules and functions do not count (`source_text.essence`).
"""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from overread.core.errors import BadInput, unknown
from overread.core.outputs import replacing
from overread.core.source_text import RESOURCES, Module, binds, essence, hashed, imports, parsed, resources_named

COMMANDS = {
    "studies": "overread.sources",
    "questions": "overread.curation",
    "images": "overread.images",
    "trials": "overread.trials",
    "responses": "overread.responses",
    "tables": "overread.reporting",
}
"""Where the commands of a stage lie: in the modules `commands` and `*_commands` of a package."""


def code_of(command: str, *parts: str) -> str:
    """Hash of the code that a command can reach, a rule's reason to run again.

    command  `trials build`
    parts    `module` or `module:name` of what a registry holds and this study uses, in any order
    raises   BadInput for a command or a part that is not there
    """
    return hashed(f"{name} {found}" for name, found in sorted(reached(command, *parts).items()))[:16]


def reached(command: str, *parts: str) -> dict[str, str]:
    """The hash of everything that a command can reach, by module or by file of a resource."""
    return _code().reached(command, tuple(sorted(set(parts))))


@cache
def _code() -> Code:
    return Code(Path(__file__).resolve().parents[2])


class Code:
    """The packages in a folder, read as far as somebody asks.

    kept  what was found in each file, by its content: as Python keeps what it has compiled, and as dispensable
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, Path] = {}
        self.resources: list[Path] = []
        for each in sorted(folder.glob("*/__init__.py")):
            self._list(each.parent)
        self.kept = folder / "overread" / "__pycache__" / "reach.json"
        self.version = hashed(
            Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8") for name in ("provenance", "source_text")
        )
        try:
            kept = json.loads(self.kept.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            kept = {}
        self._before: dict[str, Any] = kept.get("modules", {}) if kept.get("version") == self.version else {}
        self._now: dict[str, Any] = {}
        self._found: dict[tuple[str, tuple[str, ...]], dict[str, str]] = {}

    def reached(self, command: str, parts: tuple[str, ...]) -> dict[str, str]:
        if (command, parts) not in self._found:
            own, targets = self._function(command)
            for part in parts:
                if self._led_to(part, foreign=True) is None:
                    raise BadInput(f"{part}: no such module")
            self._found[command, parts] = {f"{command}()": own, **self._closed([*targets, *parts])}
            self._keep()
        return self._found[command, parts]

    def _closed(self, targets: Iterable[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        ahead = list(targets)
        while ahead:
            target = ahead.pop()
            if target.endswith(".*"):
                ahead += [name for name in self.files if name.startswith(target.removesuffix("*"))]
                continue
            name = self._led_to(target)
            if name is None or name in found:
                continue
            module = self.module(name)
            found[name] = module.text
            ahead += module.imports
            ahead += [package for package in _packages_of(name) if self.module(package).effects]
            found |= self._resources(self.files[name].parent, module.named)
        return found

    def _resources(self, folder: Path, named: Iterable[str]) -> dict[str, str]:
        """Files of these names in a module's folder or below, and the files that those name."""
        found: dict[str, str] = {}
        ahead = list(named)
        while ahead:
            name = ahead.pop()
            for file in (each for each in self.resources if each.name == name and each.is_relative_to(folder)):
                place = str(file.relative_to(self.folder)) if file.is_relative_to(self.folder) else str(file)
                if place not in found:
                    text = file.read_text(encoding="utf-8")
                    found[place] = hashed([text])
                    ahead += resources_named(text)
        return found

    def _function(self, command: str) -> tuple[str, list[str]]:
        """A command's function with all of its module that it needs: their hash, and what they import."""
        stage, _, wanted = command.partition(" ")
        if stage not in COMMANDS:
            raise BadInput(unknown("stage", stage, COMMANDS))
        package = COMMANDS[stage]
        there: dict[str, tuple[str, list[str]]] = {}
        for file in sorted((self.folder / package.replace(".", "/")).glob("*commands.py")):
            there |= self._read(f"{package}.{file.stem}()", file, lambda source: commands_in(source, package))
        if wanted not in there:
            raise BadInput(f"{stage}: {unknown('command', wanted, there)}")
        return there[wanted]

    def _list(self, package: Path) -> None:
        there = sorted(package.rglob("*.*"))
        self.resources += [file for file in there if file.suffix in RESOURCES]
        for file in (each for each in there if each.suffix == ".py"):
            parts = [package.name, *file.relative_to(package).with_suffix("").parts]
            self.files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file

    def _led_to(self, target: str, *, foreign: bool = False) -> str | None:
        """The module that defines what is imported; None for a library's.

        foreign  a package that is installed elsewhere, of a registry's part, is read as these are
        """
        module, _, name = target.partition(":")
        top = module.partition(".")[0]
        if foreign and top not in self.files and (spec := find_spec(top)) is not None and spec.origin is not None:
            place = Path(spec.origin)
            if place.name == "__init__.py":
                self._list(place.parent)
            else:
                self.files[top] = place
        if name and f"{module}.{name}" in self.files:
            return f"{module}.{name}"
        if module not in self.files:
            return None
        if name and self.files[module].name == "__init__.py":
            led = self.module(module).binds.get(name, target)
            if led != target:
                return self._led_to(led)
        return module

    def module(self, name: str) -> Module:
        file = self.files[name]
        return Module(*self._read(name, file, lambda source: parsed(source, name, package=file.name == "__init__.py")))

    def _read(self, key: str, file: Path, find: Callable[[str], Any]) -> Any:
        """What `find` finds in a file, or found in the same content before."""
        if key not in self._now:
            source = file.read_text(encoding="utf-8")
            content, before = hashed([source]), self._before.get(key)
            self._now[key] = before if before is not None and before[0] == content else [content, find(source)]
        return self._now[key][1]

    def _keep(self) -> None:
        if all(name in self._before and self._before[name][0] == each[0] for name, each in self._now.items()):
            return
        both = {**self._before, **self._now}
        self._before = {key: found for key, found in both.items() if key.removesuffix("()") in self.files}
        # Where the installation can't be written to, its sources are parsed each time.
        with contextlib.suppress(OSError, BadInput), replacing(self.kept) as temporary:
            temporary.write_text(json.dumps({"version": self.version, "modules": self._before}), encoding="utf-8")


def _packages_of(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def commands_in(source: str, package: str) -> dict[str, tuple[str, list[str]]]:
    """Of each `@app.command("name")` its function with all of the module that it names, and what those name in turn.

    returns  by name of the command the hash of these, and what they import
    """
    tree = ast.parse(source)
    defined = {name: statement for statement in tree.body for name in _defined(statement)}
    bound, lines = binds(tree, package), essence(source, tree)

    def needed(function: str) -> tuple[str, list[str]]:
        targets: list[str] = []
        taken: dict[int, str] = {}
        ahead = [function]
        while ahead:
            name = ahead.pop()
            if name in bound:
                targets.append(bound[name])
            elif name in defined and (statement := defined[name]).lineno not in taken:
                rows = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
                taken[statement.lineno] = "\n".join(lines[row] for row in rows if row in lines)
                # What it is decorated with says how the shell calls it.
                decorators = getattr(statement, "decorator_list", [])
                inside = [each for each in ast.iter_child_nodes(statement) if each not in decorators]
                targets += imports(inside, package)
                ahead += [each.id for part in inside for each in ast.walk(part) if isinstance(each, ast.Name)]
        return hashed(taken[row] for row in sorted(taken)), sorted(set(targets))

    return {command: needed(function) for command, function in _commands(tree)}


def _commands(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for statement in tree.body:
        for each in getattr(statement, "decorator_list", ()):
            if isinstance(each, ast.Call) and ast.unparse(each.func) == "app.command":
                function: str = statement.name  # type: ignore[attr-defined]
                yield (ast.literal_eval(each.args[0]) if each.args else function.replace("_", "-")), function


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [each.id for each in targets if isinstance(each, ast.Name)]
