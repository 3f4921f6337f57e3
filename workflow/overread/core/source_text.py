"""What is in a Python source, without running it: its imports, what its names stand for, what can change a result."""

from __future__ import annotations

import ast
import hashlib
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from typing import NamedTuple

RESOURCES = (".j2", ".css", ".csv", ".yaml")
"""How the names of files end that a module may read beside itself."""

_NAMED = re.compile(rf"[\w-][\w.-]*(?:{'|'.join(map(re.escape, RESOURCES))})\b")
_PLAIN_DECORATORS = {
    "abstractmethod",
    "cache",
    "contextmanager",
    "dataclass",
    "final",
    "lru_cache",
    "overload",
    "wraps",
}


class Module(NamedTuple):
    """What is in a module's source.

    text     hash of what can change a result
    imports  `module` or `module:name`, at the top and within functions; without those for type checkers; with those
             that it names in `LOADS`, since it imports them by their place: `package.*` is all that lies in a package
    binds    what the names stand for that are imported at the top
    effects  whether importing it does more than define: it counts for all that lies in its package
    named    names of files with a resource's ending
    """

    text: str
    imports: list[str]
    binds: dict[str, str]
    effects: bool
    named: list[str]


def parsed(source: str, name: str, *, package: bool) -> Module:
    """What is in the source of module `name`, which is a package's `__init__` or not."""
    tree = ast.parse(source)
    inside = name if package else name.rpartition(".")[0]
    return Module(
        text=hashed(essence(source, tree).values()),
        imports=sorted({*imports(tree.body, inside), *_loads(tree)}),
        binds=binds(tree, inside),
        effects=any(_has_effects(statement) for statement in tree.body),
        named=resources_named(source),
    )


def hashed(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def essence(source: str, tree: ast.Module) -> dict[int, str]:
    """The lines that can change a result, by their numbers from 1: without comments, blank lines and docstrings.

    The docstring of a class stays: pydantic puts it into the JSON schema that a server is sent. So does every docstring
    of a module that reads some.
    """
    lines = dict(enumerate(source.split("\n"), 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        row, column = token.start
        if token.type == tokenize.COMMENT:
            lines[row] = lines[row][:column].rstrip()
        elif token.type == tokenize.NL and not lines[row].strip():
            lines.pop(row)
    if "__doc__" in source or "getdoc" in source:
        return lines
    for node in ast.walk(tree):
        for text in _texts_alone(node):
            first, last = text.lineno, text.end_lineno or text.lineno
            if not lines[first][: text.col_offset].strip() and not lines[last].encode()[text.end_col_offset :].strip():
                for row in range(first, last + 1):
                    lines.pop(row, None)
    return lines


def _texts_alone(node: ast.AST) -> Iterator[ast.Expr]:
    """Statements that are a text and nothing else, but the first of a class."""
    body = getattr(node, "body", [])
    for place, statement in enumerate(body if isinstance(body, list) else []):
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if is_text and isinstance(statement.value.value, str) and not (isinstance(node, ast.ClassDef) and place == 0):
            yield statement


def imports(body: Iterable[ast.AST], inside: str) -> Iterator[str]:
    """`module` or `module:name` of each import, within functions and classes too.

    inside  the package that a relative import counts from
    """
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, inside)
            yield from (module if alias.name == "*" else f"{module}:{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and _is_for_checkers(node):
            yield from imports(node.orelse, inside)
        else:
            yield from imports(ast.iter_child_nodes(node), inside)


def _loads(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LOADS":
            return list(ast.literal_eval(node.value))
    return []


def binds(tree: ast.Module, inside: str) -> dict[str, str]:
    """What each name stands for that is imported at the top.

    A module with a `__getattr__` imports when it is asked for a name: what it tells type checkers is what it gives.
    """
    found = {}
    body = list(tree.body)
    if any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in body):
        body += [inner for node in body if isinstance(node, ast.If) and _is_for_checkers(node) for inner in node.body]
    for node in body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = f"{_absolute(node, inside)}:{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = alias.name
    return found


def resources_named(text: str) -> list[str]:
    return sorted(set(_NAMED.findall(text)))


def _absolute(node: ast.ImportFrom, inside: str) -> str:
    if not node.level:
        return node.module or ""
    package = inside.split(".")[: len(inside.split(".")) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def _is_for_checkers(node: ast.If) -> bool:
    return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _has_effects(statement: ast.stmt) -> bool:
    """Whether a statement at the top does something besides binding names of its own module."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return False
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return any(
            ast.unparse(each.func if isinstance(each, ast.Call) else each).rpartition(".")[2] not in _PLAIN_DECORATORS
            for each in statement.decorator_list
        )
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return not all(isinstance(each, ast.Name | ast.Tuple) for each in targets)
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    return not (isinstance(statement, ast.If) and _is_for_checkers(statement))
