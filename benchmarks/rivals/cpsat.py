"""OR-Tools CP-SAT on a model of its own (see `cpsat_model`), with the best of a few list schedules as its hint; its
starts are placed on nodes as those of the exact engine are.

The incumbents over time are those of the model, which counts nodes by pool: placing them may cost more, never less.
"""

from __future__ import annotations

import math
import threading

from ortools.sat.python import cp_model

from benchmarks.rivals.attempt import Attempt, Outcome
from benchmarks.rivals.cpsat_model import Model
from benchmarks.rivals.dispatch import Shop
from benchmarks.rivals.units import FINE, MONEY, RATE, WATT
from models import grid
from models.domain import Instance
from models.rentals import NodeRules
from planner.engines.assemble import cost_of
from planner.engines.placement import Chosen
from planner.engines.policies.listing import by_due_date, by_slack, by_weight, list_schedule
from planner.engines.schedule import Schedule

HINT_PART, HURRY_PART = 0.25, 0.6
"""Parts of the time: until which further list schedules are begun for the hint, after the greedy by pressure and a
first; and after which one is done in a hurry, which makes it a poor one."""
PLACING_PART = 0.05
LONG_S = 20.0
"""Below this time limit presolve is kept short: at its default it took a third of five seconds and helped little."""
BUILD_S = 4e-4
"""About what building the model takes for each row."""


def solve(instance: Instance, time_limit_s: float, threads: int, seed: int) -> Outcome:
    """The model, from the best of four list schedules, as far as there is time for them."""
    attempt = Attempt("cpsat", instance, time_limit_s, threads, seed)
    starts = attempt.starts()
    greedy = Shop(starts).run(is_over=attempt.is_over)
    if greedy is not None:
        attempt.offer(greedy)
    for order in (by_weight, by_slack, by_due_date):
        late = HINT_PART if order is not by_weight else HURRY_PART
        if attempt.left_s() < (1 - late) * time_limit_s and attempt.best is not None:
            break
        schedule = list_schedule(starts, order, deadline=attempt.begun + HURRY_PART * time_limit_s)
        if schedule is not None:
            attempt.offer(schedule)
    if any(not rows and instance.jobs[j].reject_cost is None for j, rows in enumerate(starts.rows_of_job)):
        attempt.note = "a job has no start at all"
        return attempt.outcome()
    if attempt.left_s() < BUILD_S * len(starts.rows):
        attempt.note = f"building the model of {len(starts.rows):,} rows takes longer than what is left"
        return attempt.outcome()
    model = Model(starts)
    if attempt.best is not None:
        _hint(model, attempt.best)
    watch = _search(attempt, model, max(0.05, attempt.left_s() - PLACING_PART * time_limit_s))
    if watch.chosen is None:
        attempt.note = "no solution of its own: the plan is that of the hint"
        return attempt.outcome()
    attempt.offer_placed(starts, watch.chosen, watch.node_costs)
    return attempt.outcome()


class _Watch(cp_model.CpSolverSolutionCallback):
    """Notes each solution's cost, and the starts of the last one."""

    def __init__(self, attempt: Attempt, model: Model):
        super().__init__()
        self.attempt, self.model = attempt, model
        self.chosen: Chosen | None = None
        self.node_costs: dict[int, float] = {}
        """By pool, what the model pays for nodes."""
        self.lock = threading.Lock()

    def on_solution_callback(self) -> None:
        """A better solution."""
        rows = self.model.starts.rows
        chosen = {
            rows[r].job: (r, self.value(self.model.begin[rows[r].job]))
            for r, taken in self.model.taken.items()
            if self.boolean_value(taken)
        }
        node_costs = dict.fromkeys(self.model.rules, 0.0)
        for p, rules in self.model.rules.items():
            for (owner, t), nodes in (self.model.on if rules.is_plain else self.model.blocks).items():
                if owner == p:
                    node_costs[p] += self.value(nodes) * rules.cost(t, t + 1)
        for r, _ in chosen.values():
            if self.model.pays_by_itself(rows[r]):
                price = float(self.model.rules[rows[r].pool].price[0])
                node_costs[rows[r].pool] += price * rows[r].duration * rows[r].mode.num_nodes
        with self.lock:
            self.chosen, self.node_costs = chosen, node_costs
            self.attempt.report(self.objective_value / MONEY, self.best_objective_bound / MONEY)

    def note_bound(self, bound: float) -> None:
        """A better bound."""
        with self.lock:
            self.attempt.report(None, max(0.0, bound / MONEY))


def _search(attempt: Attempt, model: Model, time_limit_s: float) -> _Watch:
    """What was found in the time given; the bound is noted."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = attempt.threads
    solver.parameters.random_seed = attempt.seed
    solver.parameters.max_time_in_seconds = time_limit_s
    solver.parameters.relative_gap_limit = 1e-4
    if attempt.time_limit_s < LONG_S:
        solver.parameters.max_presolve_iterations = 1
        solver.parameters.cp_model_probing_level = 0
        solver.parameters.symmetry_level = 0
    watch = _Watch(attempt, model)
    solver.best_bound_callback = watch.note_bound
    status = solver.solve(model.cp, watch)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN) and math.isfinite(solver.best_objective_bound):
        attempt.raise_bound(max(0.0, solver.best_objective_bound / MONEY))
        attempt.report(None, attempt.dual_bound)
    return watch


def _hint(model: Model, schedule: Schedule) -> None:
    """Every variable as the schedule has it."""
    hint = model.cp.add_hint
    index = {id(row): r for r, row in enumerate(model.starts.rows)}
    same = {j: index[id(schedule.starts.rows[step.row])] for j, step in schedule.chosen.items()}
    taken = set(same.values())
    for r, variable in model.taken.items():
        hint(variable, r in taken)
    for j in range(len(model.begin)):
        step = schedule.chosen.get(j)
        hint(model.begin[j], model.first[j] if step is None else step.slot)
        hint(model.end[j], model.first[j] if step is None else schedule.completion(j))
    for j, rejected in model.rejected.items():
        hint(rejected, j not in schedule.chosen)
    _hint_times(model, schedule, same)
    for (d, s, level), cached in model.cached.items():
        hint(cached, schedule.storage[s].levels.get(d) == level)
    for s, bought in model.bought.items():
        peak = min(math.ceil(float(schedule.storage[s].used.max(initial=0.0)) * RATE - 1e-6), model.top[s])
        hint(bought, peak)
        if s in model.tariff:
            amount, pieces = model.tariff[s]
            prices = [math.ceil(fixed + slope * peak / FINE) for _, fixed, slope in pieces]
            used = prices.index(min(prices)) if peak > 0 else -1
            hint(amount, 0 if used < 0 else prices[used])
            for i, (chosen, _, _) in enumerate(pieces):
                hint(chosen, i == used)
    _hint_nodes(model, schedule)


def _hint_times(model: Model, schedule: Schedule, row_of: dict[int, int]) -> None:
    """Tardiness, lost value and energy."""
    hint = model.cp.add_hint
    for j, (late, more, first_late) in model.late.items():
        end = schedule.completion(j) if j in schedule.chosen else 0
        hint(late, end >= first_late)
        hint(more, max(0, end - first_late))
    for j, (amount, value, table) in model.lost.items():
        end = schedule.completion(j) if j in schedule.chosen else model.first[j]
        hint(value, table[end])
        hint(amount, table[end] if j in schedule.chosen else 0)
    for (j, _), (amount, stretches, draws) in model.energy.items():
        draw, highest, least = draws.get(row_of.get(j, -1), (0, 0, 0))
        step = schedule.chosen.get(j)
        begin, end = (0, 0) if step is None or not draw else (step.slot, schedule.completion(j))
        saved = 0
        for inside, touches, a, b, saving in stretches:
            slots = max(0, min(end, b) - max(begin, a))
            hint(inside, slots)
            hint(touches, slots > 0)
            saved += slots * saving
        hint(amount, max(least, math.ceil(draw * (highest * (end - begin) - saved) / (WATT * FINE))))


def _hint_nodes(model: Model, schedule: Schedule) -> None:
    on = dict.fromkeys(model.on, 0)
    blocks, boots = dict.fromkeys(model.blocks, 0), dict.fromkeys(model.boots, 0)
    warm = [grid.on_at_start(schedule.instance, pool) for pool in schedule.instance.pools]
    for interval in cost_of(schedule).nodes_on:
        p = schedule.instance.pool_index[interval.pool]
        rules: NodeRules = schedule.pools[p].rules
        cold = interval.start_slot > 0 or not warm[p][interval.node]
        if not rules.is_plain:
            for t in range(interval.start_slot, interval.end_slot, rules.block):
                blocks[p, t] += 1
            boots[p, interval.start_slot] += int(cold)
        for t in range(interval.start_slot + (rules.boot if cold else 0), interval.end_slot):
            on[p, t] = on.get((p, t), 0) + 1
    for step in schedule.chosen.values():
        row = schedule.starts.rows[step.row]
        if model.pays_by_itself(row):
            for t in range(step.slot, step.slot + row.duration):
                on[row.pool, t] = on.get((row.pool, t), 0) - row.mode.num_nodes
    for values, variables in ((on, model.on), (blocks, model.blocks), (boots, model.boots)):
        for key, variable in variables.items():
            model.cp.add_hint(variable, values[key])
