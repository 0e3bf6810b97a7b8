"""Generated caching problems, and two other ways to their optimum: by enumeration, and as a mixed-integer programme."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from models.storage.cba import CacheProblem
from models.storage.tariff import Tariff, chords

SIZES = st.sampled_from((5.0, 25.0, 100.0, 146.0, 645.0)) | st.floats(1.0, 2000.0)
RATES = st.sampled_from((1.0, 10.0, 87.0, 128.0, 220.0, 288.0)) | st.floats(0.5, 3000.0)


@st.composite
def tariffs(draw: st.DrawFn, everything: float) -> Tariff:
    """Free, linear, of several lines or a power law; sold without limit, amply, scarcely or not at all."""
    part = draw(st.sampled_from((math.inf, 2.0, 1.0)) | st.floats(0.0, 1.0))
    cap = part * everything if everything > 0 else math.inf
    kind = draw(st.sampled_from(("free", "lines", "power")))
    if kind == "power":
        factor, exponent = draw(st.floats(0.001, 0.1)), draw(st.floats(0.2, 0.95))
        up_to = max(1.0, 2 * everything)
        return Tariff(chords(factor, exponent, up_to, 0.01), min(cap, up_to), (factor, exponent))
    if kind == "free":
        return Tariff((), cap)
    betas = sorted(draw(st.lists(st.floats(1e-5, 0.01), min_size=1, max_size=3)), reverse=True)
    alphas = [0.0, *sorted(draw(st.lists(st.floats(0.01, 3.0), min_size=2, max_size=2)))]
    return Tariff(tuple(zip(alphas, betas, strict=False)), cap)


@st.composite
def problems(draw: st.DrawFn, most: int = 6, is_fast: bool | None = None) -> CacheProblem:
    """A few datasets, some without readers; caches of any size, some too slow for some readers."""
    n = draw(st.integers(0, most))
    sizes = np.array([draw(SIZES) for _ in range(n)])
    readers = tuple(tuple(draw(st.lists(RATES, max_size=3))) for _ in range(n))
    everything = math.fsum(itertools.chain.from_iterable(readers))
    share = draw(st.sampled_from((math.inf, 0.0)) | st.floats(0.0, 1.1))
    is_fast = draw(st.booleans()) if is_fast is None else is_fast
    return CacheProblem(
        sizes,
        readers,
        draw(tariffs(everything)),
        draw(st.sampled_from((0.0, 1e-5, 1e-4, 1e-3)) | st.floats(0.0, 1e-2)),
        math.inf if math.isinf(share) else share * math.fsum(sizes),
        math.inf if is_fast else draw(st.floats(1.0, 5000.0)),
    )


def need(problem: CacheProblem, cached: tuple[float, ...]) -> float:
    """MB/s over the link: the time of an item is 1/f, of which h/M for those in the cache."""
    total = 0.0
    for h, rates in zip(cached, problem.readers, strict=True):
        for f in rates:
            if h == 0 or f >= problem.cache_speed:
                total += f
            elif h < 1:
                total += (1 - h) / (1 / f - h / problem.cache_speed)
    return total


def cost(problem: CacheProblem, cached: tuple[float, ...]) -> float:
    """Money per hour; infinite where cache or bandwidth do not suffice."""
    gb, mb_s = math.fsum(problem.sizes * np.array(cached)), need(problem, cached)
    if mb_s <= 1e-9 * need(problem, (0.0,) * len(cached)):
        mb_s = 0.0
    if gb > problem.cache_capacity * (1 + 1e-9) or mb_s > problem.tariff.cap * (1 + 1e-9):
        return math.inf
    if problem.tariff.power is not None:
        price = problem.tariff.power[0] * mb_s ** problem.tariff.power[1] if mb_s > 0 else 0.0
    else:
        price = min((a + b * mb_s for a, b in problem.tariff.lines), default=0.0) if mb_s > 0 else 0.0
    return problem.cache_price * gb + price


def by_enumeration(problem: CacheProblem, *, whole: bool) -> float:
    """The least cost of all sets of datasets, and of all with a part of one more: at equal steps, at what the
    cache still holds, and at what brings the need down to what is sold."""
    n = len(problem.sizes)
    least = math.inf
    for cached in itertools.product((0.0, 1.0), repeat=n):
        least = min(least, cost(problem, cached))
        for d in range(n) if not whole else ():
            if cached[d] == 1.0:
                continue
            gb = math.fsum(problem.sizes * np.array(cached))
            parts = [0.25, 0.5, 0.75, (problem.cache_capacity - gb) / problem.sizes[d], _enough(problem, cached, d)]
            tried = [(*cached[:d], min(part, 1.0), *cached[d + 1 :]) for part in parts if part > 0]
            least = min(least, *(cost(problem, each) for each in tried), math.inf)
    return least


def _enough(problem: CacheProblem, cached: tuple[float, ...], d: int) -> float:
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        is_enough = need(problem, (*cached[:d], middle, *cached[d + 1 :])) <= problem.tariff.cap
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def by_milp(problem: CacheProblem, *, whole: bool) -> float:
    """The optimum for a tariff of lines and an infinitely fast cache, by HiGHS: fractions, MB/s by line, lines used."""
    n, lines = len(problem.sizes), problem.tariff.lines or ((0.0, 0.0),)
    k = len(lines)
    demand = np.array([math.fsum(rates) for rates in problem.readers])
    everything = math.fsum(demand)
    costs = np.concatenate([problem.cache_price * problem.sizes, [b for _, b in lines], [a for a, _ in lines]])
    rows = [
        LinearConstraint(np.concatenate([problem.sizes, np.zeros(2 * k)]), -np.inf, problem.cache_capacity),
        LinearConstraint(np.concatenate([np.zeros(n), np.ones(k), np.zeros(k)]), -np.inf, problem.tariff.cap),
        LinearConstraint(np.concatenate([demand, np.ones(k), np.zeros(k)]), everything, np.inf),
    ]
    for i in range(k):
        row = np.zeros(n + 2 * k)
        row[n + i], row[n + k + i] = 1.0, -everything
        rows.append(LinearConstraint(row, -np.inf, 0.0))
    integrality = np.concatenate([np.full(n, int(whole)), np.zeros(k), np.ones(k)])
    upper = np.concatenate([np.ones(n), np.full(k, np.inf), np.ones(k)])
    answer = milp(
        costs, constraints=rows, integrality=integrality, bounds=Bounds(0, upper), options={"mip_rel_gap": 1e-9}
    )
    return float(answer.fun) if answer.status == 0 else math.inf
