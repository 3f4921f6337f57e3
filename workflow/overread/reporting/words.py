"""Numbers in words, as the report writes them."""

from __future__ import annotations

SPACE = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"


def percent(share: float | None, digits: int = 1) -> str:
    """`83.3 %` of 0.833; a dash for none."""
    return "\N{EN DASH}" if share is None else f"{signless(100 * share, digits)}{SPACE}%"


def points(difference: float, digits: int = 1) -> str:
    """`+16.7 points` of 0.167."""
    value = round(100 * difference, digits)
    sign = MINUS if value < 0 else "+" if value > 0 else ""
    return f"{sign}{abs(value):.{digits}f}{SPACE}points"


def signless(value: float, digits: int) -> str:
    """A number with a true minus sign, and never -0.0."""
    rounded = round(value, digits)
    return f"{MINUS if rounded < 0 else ''}{abs(rounded):.{digits}f}"


def interval(low: float | None, high: float | None, digits: int = 1) -> str:
    """`[19.7, 22.1]`, unbreakable, of 0.197 and 0.221, in per cent or points; empty if there is none."""
    if low is None or high is None:
        return ""
    return f"[{signless(100 * low, digits)},{SPACE}{signless(100 * high, digits)}]"


def count(number: float | int, singular: str, plural: str | None = None) -> str:
    """`1 patient`, `1,234 patients`."""
    return f"{int(number):,}{SPACE}{singular if int(number) == 1 else plural or singular + 's'}"


def listed(items: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else ""


def capital(text: str) -> str:
    """The text as a sentence begins; names that start it are kept as they are otherwise."""
    return text[:1].upper() + text[1:]
