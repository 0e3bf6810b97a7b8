"""The exact engine: the Pyomo model in HiGHS, a placement on nodes, and a closer model where they disagree.

- A list schedule gives a first plan; its cost cuts off starts that no better plan has.
- HiGHS solves the model that counts nodes by pool; its bound holds for every plan, since every plan satisfies that
  model.
- Its starts are placed on nodes. Where that costs more than the model said (or finds no place), the pools concerned
  get nodes with an index in the model (`formulation/placement.py`), and it is solved again.

At every point the best plan on nodes and the best bound are known, so it can be stopped at any time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import partial
from typing import Any

from models import grid
from models.errors import Defect
from models.formulation import build_model
from models.formulation.context import Context
from models.formulation.placement import num_places
from models.reductions import reduce_starts
from models.rentals import NodeRules
from models.starts import WORK_DONE, Starts, has_impossible_job
from models.storage.tariff import tariff_of
from planner.engines.fallback import improve_on_nodes
from planner.engines.highs import Answer, Compiled
from planner.engines.placement import Chosen, Stretch, node_cost, place
from planner.engines.policies.listing import by_due_date, insert, sequence
from planner.engines.rounding import round_starts
from planner.engines.schedule import Schedule
from planner.engines.search import ProvenInfeasible, Search

# A pool is given node indices only up to this many variables; beyond it the gap says what packing costs.
MOST_PLACES = 40_000
# About what building and loading the model takes for each start. It cannot be interrupted, so it is not begun where the
# time limit would pass within it.
BUILD_S = 2.5e-5


def solve_exactly(search: Search) -> None:
    """Rounds of solving and placing until the gap is proven or the time is over."""
    starts = search.starts
    node_pools: frozenset[int] = frozenset()
    while not (search.is_proven() or search.is_out_of_time() or search.interrupted):
        # What a start spends says nothing of what welfare loses by it.
        reduced = reduce_starts(starts, search.cost if search.goal.objective == "cost" else None)
        if has_impossible_job(reduced):
            raise ProvenInfeasible(node_pools)
        left = search.left_s()
        if left is not None and left < BUILD_S * reduced.num_starts:
            search.notes.append("too little time was left to build the model")
            return
        search.report("building the model")
        model = build_model(reduced, node_pools, goal=search.goal)
        compiled = Compiled(model)
        if not _relax(search, reduced, model, compiled, node_pools):
            return
        answer = compiled.solve(
            time_limit_s=search.left_s(),
            gap=search.limits.gap,
            seed=search.limits.seed,
            threads=search.limits.threads,
            start=_start_values(model, reduced, search.schedule),
            on_progress=partial(_report_solve, search, _are_plans(model, starts, node_pools)),
        )
        search.interrupted |= answer.outcome == "interrupted"
        if answer.outcome == "infeasible":
            if search.cost is not None:
                raise Defect("HiGHS finds no plan where one is known")
            raise ProvenInfeasible(node_pools)
        if answer.dual_bound is not None and search.cost is not None:
            search.raise_bound(min(answer.dual_bound, search.cost))
        else:
            search.raise_bound(answer.dual_bound)
        if answer.values is None:
            return
        unplaced = _place_answer(search, reduced, model, answer)
        search.report("placed on nodes")
        if answer.outcome != "optimal":
            return
        context = Context(reduced, node_pools)
        small = {p for p in unplaced if p not in node_pools and num_places(context, p) <= MOST_PLACES}
        if not small:
            if unplaced and not search.is_proven():
                names = ", ".join(starts.instance.pools[p].id for p in sorted(unplaced))
                search.notes.append(f"packing on the nodes of {names} costs more than the pool-level bound knows")
            return
        node_pools |= small


def _relax(search: Search, starts: Starts, model: Any, compiled: Compiled, node_pools: frozenset[int]) -> bool:
    """The LP relaxation: a first bound, a plan by rounding, and starts fixed at 0; whether there is more to do.

    Reduced cost fixing: a plan with start s costs at least the LP's value plus the reduced cost of x[s], so where that
    exceeds the known cost no better plan has s. The bound of what is left then holds for every plan that is no dearer
    than the known one.
    """
    search.report("LP relaxation")
    answer = compiled.solve(
        time_limit_s=search.left_s(),
        gap=0.0,
        seed=search.limits.seed,
        threads=search.limits.threads,
        relaxed=True,
    )
    if answer.outcome == "infeasible":
        if search.cost is not None:
            raise Defect("HiGHS finds no plan where one is known")
        raise ProvenInfeasible(node_pools)
    search.interrupted |= answer.outcome == "interrupted"
    if answer.outcome != "optimal" or answer.dual_bound is None:
        return False
    search.raise_bound(answer.dual_bound)
    weights = {key: x for key in model.START if (x := answer.value(model.x[key])) > 1e-6}
    schedule = round_starts(starts, weights, deadline=search.deadline(0.25))
    if schedule is not None:
        search.offer(schedule, "exact")
        improve_on_nodes(search, schedule, "exact")
    search.report("rounded")
    if search.cost is not None:
        allowed = search.cost - answer.dual_bound + 1e-6 * abs(search.cost)
        useless = (model.x[key] for key in model.START if answer.reduced_costs.get(id(model.x[key]), 0.0) > allowed)
        compiled.fix_at_zero(useless)
    return not (search.is_proven() or search.is_out_of_time() or search.interrupted)


def _are_plans(model: Any, starts: Starts, node_pools: frozenset[int]) -> bool:
    """Whether an incumbent of HiGHS is a plan at its cost: all nodes have an index, and no tariff is a power law, which
    costs more than its chords."""
    is_power = any(tariff_of(site.storage).chord_error for site in starts.instance.sites)
    return node_pools.issuperset(model.POOL) and not is_power


def _report_solve(search: Search, are_plans: bool, incumbent: float | None, bound: float | None) -> None:
    """Progress of HiGHS. An incumbent that is no plan yet is not shown as one."""
    search.report("HiGHS", incumbent if are_plans else None, bound)


def _start_values(model: Any, starts: Starts, schedule: Schedule | None) -> dict[int, float] | None:
    """The known plan as start values of x; HiGHS completes the rest."""
    if schedule is None:
        return None
    key = {starts.identity(r): r for r in range(len(starts.rows))}
    values = {id(variable): 0.0 for variable in model.x.values()}
    for step in schedule.chosen.values():
        for segment in step.segments:
            j, mode, level, kept, _ = schedule.starts.identity(segment.row)
            is_elastic = j in starts.elastic
            r = key.get((j, mode, level, kept, is_elastic))
            slots = range(segment.slot, schedule.end(segment)) if is_elastic else (segment.slot,)
            if r is None or any((r, t) not in model.START for t in slots):
                return None
            values |= {id(model.x[r, t]): 1.0 for t in slots}
    return values


def _place_answer(search: Search, starts: Starts, model: Any, answer: Answer) -> set[int]:
    """Place what HiGHS returned; the pools in which that costs more than the model says."""
    chosen: Chosen = {}
    running: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for r, t in model.START:
        if answer.value(model.x[r, t]) > 0.5:
            if starts.rows[r].is_piece:
                running[starts.rows[r].job].append((t, r))
            else:
                chosen[starts.rows[r].job] = (r, t)
    changing = {j: _stretches(pieces) for j, pieces in running.items() if _is_done(starts, pieces)}
    unfinished = tuple(j for j in running if j not in changing)
    said = {p: _node_cost_said(model, starts, answer, p) for p in model.POOL}
    left = 10.0 if search.interrupted else search.left_s()
    placed = place(
        starts,
        chosen,
        said,
        time_limit_s=None if left is None else max(1.0, left),
        seed=search.limits.seed,
        changing=changing,
    )
    schedule = placed.schedule
    costly = {p for p, cost in said.items() if node_cost(schedule.pools[p]) > cost * (1 + 1e-6)}
    for j in placed.homeless:
        costly |= {starts.rows[r].pool for r, *_ in changing.get(j) or [chosen[j]]}
    whole = _repair(schedule, (*placed.homeless, *unfinished))
    if whole is not None:
        search.offer(whole, "exact")
        improve_on_nodes(search, whole, "exact")
    if answer.outcome == "optimal" and answer.objective is not None:
        beyond = _beyond_chords(model, starts, answer) if search.goal.objective == "cost" else 0.0
        search.pool_level_cost = answer.objective + beyond
    return costly


def _stretches(pieces: list[tuple[int, int]]) -> tuple[Stretch, ...]:
    """The segments of a run, from the pieces (slot, row) that it is made of."""
    found: list[Stretch] = []
    for t, r in sorted(pieces):
        if found and found[-1][0] == r and found[-1][1] + found[-1][2] == t:
            found[-1] = (r, found[-1][1], found[-1][2] + 1)
        else:
            found.append((r, t, 1))
    return tuple(found)


def _is_done(starts: Starts, pieces: list[tuple[int, int]]) -> bool:
    """Whether a run does all of its work, which a solver knows only by its tolerances."""
    return math.fsum(starts.rows[r].progress for _, r in pieces) >= WORK_DONE


def _beyond_chords(model: Any, starts: Starts, answer: Answer) -> float:
    """What the bandwidth that HiGHS buys costs more than the model says: power laws beyond their chords."""
    instance, beyond = starts.instance, 0.0
    for s in model.LINKED:
        site, mb_s = instance.sites[s], answer.value(model.B[s])
        tariff, hours = tariff_of(site.storage), grid.billed_hours(instance, site, starts.num_slots)
        beyond += hours * float(tariff.price(mb_s) - tariff.envelope(mb_s))
    return beyond


def _repair(schedule: Schedule, homeless: tuple[int, ...]) -> Schedule | None:
    """Give jobs without a place the cheapest start that has one; None where one of them finds no room.

    Successors of a job that moves are moved too, and in the order of the predecessors.
    """
    if not homeless:
        return schedule
    moved = set(homeless)
    instance = schedule.instance
    order = sequence(schedule.starts, by_due_date)
    for j in order:
        if any(instance.job_index[name] in moved for name in instance.jobs[j].after) and j not in moved:
            moved.add(j)
            if j in schedule.chosen:
                schedule.drop(j)
    for j in order:
        if j in moved and not insert(schedule, j):
            return None
    return schedule


def _node_cost_said(model: Any, starts: Starts, answer: Answer, p: int) -> float:
    """What the model pays for the nodes of a pool."""
    rules = NodeRules.of(starts.instance, p, starts.num_slots)
    paid = model.n if rules.is_plain else model.v
    return sum(round(answer.value(paid[p, t])) * rules.cost(t, t + 1) for t in model.SLOT)
