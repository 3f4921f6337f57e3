"""Whether a share that was simulated keeps to a bound, simulation error allowed for exactly.

A share of studies is binomial. It breaks an upper bound where so many or more would be seen by chance less often than
`ERROR`, were the true share at the bound; and a lower bound likewise. Shares of several readers together have more
studies and are held to the same bound: what none of them shows alone they show together.
"""

from __future__ import annotations

from typing import NamedTuple

ERROR = 0.001
"""How often a share that lies exactly at its bound is said to break it."""


class Bound(NamedTuple):
    """What a share should be.

    least, most  shares; 0 and 1 are no bounds
    error        chance that simulation error alone breaks it
    """

    least: float = 0.0
    most: float = 1.0
    error: float = ERROR

    def broken(self, seen: int, studies: int) -> bool:
        """Whether `seen` of `studies` are too many, or too few."""
        from scipy.stats import binom

        too_many = self.most < 1 and float(binom.sf(seen - 1, studies, self.most)) < self.error
        too_few = self.least > 0 and float(binom.cdf(seen, studies, self.least)) < self.error
        return bool(studies) and (too_many or too_few)

    def __str__(self) -> str:
        if self.least > 0 and self.most < 1:
            return f"{100 * self.least:g} to {100 * self.most:g} %"
        if self.least > 0:
            return f">= {100 * self.least:g} %"
        return f"<= {100 * self.most:g} %" if self.most < 1 else ""


def interval(seen: int, studies: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval of a simulated share."""
    from scipy.stats import binomtest

    found = binomtest(seen, studies).proportion_ci(level, method="exact")
    return float(found.low), float(found.high)
