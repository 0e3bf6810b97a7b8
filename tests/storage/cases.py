"""Generated caching problems, and two other ways to their optimum: by enumeration, and as a mixed-integer programme."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from models.storage.cba import CacheProblem
from models.storage.tariff import Tariff, chords
from models.storage.transfers import Crossed, Transfers

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


@st.composite
def away(draw: st.DrawFn, most: int = 6, is_fast: bool | None = None) -> CacheProblem:
    """The same where some datasets are at home elsewhere: copies and reading across links cost something, or are
    limited. What readers read across may cost more than a copy."""
    problem = draw(problems(most, is_fast))
    n = len(problem.sizes)
    prices = [draw(st.sampled_from((0.0, 0.0, 1e-4, 1e-3)) | st.floats(1e-6, 1e-2)) for _ in range(n)]
    hours = st.sampled_from((0.0, 1.0)) | st.floats(0.01, 20.0)
    read = tuple(
        tuple(price * f * 3.6 * draw(hours) for f in rates)
        for price, rates in zip(prices, problem.readers, strict=True)
    )
    homes = [draw(st.integers(0, 3)) for _ in range(n)]
    links = []
    for home in draw(st.sets(st.integers(1, 3), max_size=2)):
        datasets = tuple(d for d in range(n) if homes[d] == home)
        everything = math.fsum(itertools.chain.from_iterable(problem.readers[d] for d in datasets))
        part = draw(st.sampled_from((1.0, 0.5)) | st.floats(0.0, 1.2))
        if everything > 0:
            links.append(Crossed(f"site{home}", datasets, part * everything))
    return replace(problem, transfers=Transfers(np.array(prices) * problem.sizes, read, tuple(links)))


def need(problem: CacheProblem, cached: tuple[float, ...], datasets: tuple[int, ...] | None = None) -> float:
    """MB/s over the link, of some datasets: the time of an item is 1/f, of which h/M for those in the cache."""
    total = 0.0
    for d, (h, rates) in enumerate(zip(cached, problem.readers, strict=True)):
        for f in rates if datasets is None or d in datasets else ():
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
    return problem.cache_price * gb + price + crossing(problem, cached)


def crossing(problem: CacheProblem, cached: tuple[float, ...]) -> float:
    """Money per hour for what crosses; infinite where it is more than a link carries."""
    if problem.transfers is None:
        return 0.0
    for link in problem.transfers.links:
        if need(problem, cached, link.datasets) > link.mb_s * (1 + 1e-9):
            return math.inf
    total = 0.0
    for d, h in enumerate(cached):
        total += problem.transfers.staged[d] * h
        for f, money in zip(problem.readers[d], problem.transfers.read[d], strict=True):
            total += money * (1 - h if f < problem.cache_speed else 1)
    return total


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
    constant, prices = _prices(problem)
    costs = np.concatenate([prices, [b for _, b in lines], [a for a, _ in lines]])
    rows = [
        LinearConstraint(np.concatenate([problem.sizes, np.zeros(2 * k)]), -np.inf, problem.cache_capacity),
        LinearConstraint(np.concatenate([np.zeros(n), np.ones(k), np.zeros(k)]), -np.inf, problem.tariff.cap),
        LinearConstraint(np.concatenate([demand, np.ones(k), np.zeros(k)]), everything, np.inf),
    ]
    for i in range(k):
        row = np.zeros(n + 2 * k)
        row[n + i], row[n + k + i] = 1.0, -everything
        rows.append(LinearConstraint(row, -np.inf, 0.0))
    for link in () if problem.transfers is None else problem.transfers.links:
        mine = np.isin(np.arange(n), link.datasets) * demand
        rows.append(LinearConstraint(np.concatenate([mine, np.zeros(2 * k)]), mine.sum() - link.mb_s, np.inf))
    integrality = np.concatenate([np.full(n, int(whole)), np.zeros(k), np.ones(k)])
    upper = np.concatenate([np.ones(n), np.full(k, np.inf), np.ones(k)])
    answer = milp(
        costs, constraints=rows, integrality=integrality, bounds=Bounds(0, upper), options={"mip_rel_gap": 1e-9}
    )
    return constant + float(answer.fun) if answer.status == 0 else math.inf


def _prices(problem: CacheProblem) -> tuple[float, np.ndarray]:
    """What crosses if nothing is cached, and what caching all of each dataset costs beyond that."""
    prices = problem.cache_price * problem.sizes
    if problem.transfers is None:
        return 0.0, prices
    read = np.array([math.fsum(money) for money in problem.transfers.read])
    return math.fsum(read), prices + problem.transfers.staged - read
