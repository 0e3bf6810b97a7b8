"""The planning problem for CP-SAT: optional intervals for the runs, cumulatives for what they share.

- A job has one start and one end; each of its rows (a mode at a cache level) is an optional interval on them.
- What runs of a pool take at once is a cumulative. Nodes that are not on fill it up: an interval a slot, whose demand
  is the capacity of the nodes that are off. So the number of nodes on is a variable of each slot, and paid as one.
- Rental blocks and boots are linear in those numbers, as in the formulation.
- Tardiness is linear in the end. Energy costs its highest price, less what a run saves in stretches with a lower one.
- Bandwidth is a cumulative whose capacity is bought, by pieces of the tariff; links between sites likewise, with their
  own capacity; caches are booleans.
- Redundant: node-slots cover the work of the pool, which gives the linear relaxation what the cumulatives know.

Nodes are counted by pool: a relaxation of the problem on nodes, so its bound holds for all plans. Money is counted in
thousandths and rounded down, amounts that are not whole are rounded down too where a relaxation must not lose a plan.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import Domain, IntervalVar, IntVar, LinearExpr

from benchmarks.rivals.cpsat_storage import bandwidth_is_bought, datasets_are_cached, links_carry_what_is_read
from benchmarks.rivals.units import FINE, MONEY, WATT
from models import grid
from models.rentals import NodeRules
from models.starts import Row, Starts

Stretch = tuple[IntVar, IntVar, int, int, int]
"""Slots of the run in it, whether there are any, its first slot, its end, and what a slot in it saves."""


class Model:
    """The CP-SAT model of the starts of an instance."""

    def __init__(self, starts: Starts):
        self.starts, self.instance, self.num_slots = starts, starts.instance, starts.num_slots
        self.cp = cp_model.CpModel()
        self.begin: list[IntVar] = []
        self.end: list[IntVar] = []
        self.taken: dict[int, IntVar] = {}
        """A row is the one in which its job runs."""
        self.interval: dict[int, IntervalVar] = {}
        self.rejected: dict[int, IntVar] = {}
        self.on: dict[tuple[int, int], IntVar] = {}
        """Nodes of a pool that can be used in a slot, but for those of runs that pay by themselves."""
        self.blocks: dict[tuple[int, int], IntVar] = {}
        self.boots: dict[tuple[int, int], IntVar] = {}
        self.cached: dict[tuple[int, int, int], IntVar] = {}
        """Dataset, site, level."""
        self.late: dict[int, tuple[IntVar, IntVar, int]] = {}
        """Of a job: is late, slots later than the first late edge, that edge."""
        self.lost: dict[int, tuple[IntVar, IntVar, list[int]]] = {}
        self.energy: dict[tuple[int, int], tuple[IntVar, list[Stretch], dict[int, tuple[int, int, int]]]] = {}
        """Of a job and site: amount, stretches, and for each row its draw, the highest price and its least amount."""
        self.tariff: dict[int, tuple[IntVar, list[tuple[IntVar, int, int]]]] = {}
        """Of a site: amount, and for each piece whether it is used, its fixed price and its slope."""
        self.bought: dict[int, IntVar] = {}
        self.top: dict[int, int] = {}
        """Most bandwidth that can be bought, in units."""
        self.first: list[int] = []
        """First start of each job."""
        self.costs: list[tuple[IntVar, int]] = []
        self.rows_of_pool: dict[int, list[int]] = defaultdict(list)
        for r, row in enumerate(starts.rows):
            self.rows_of_pool[row.pool].append(r)
        self.rules = {p: NodeRules.of(self.instance, p, self.num_slots) for p in self.rows_of_pool}
        self.open_nodes: dict[int, list[int]] = {
            p: grid.available(self.instance, self.instance.pools[p], self.num_slots).sum(axis=0).tolist()
            for p in self.rows_of_pool
        }
        """Nodes of a pool that are available in each slot."""
        self.each_job_runs_in_one_row()
        self.predecessors_complete_first()
        self.being_late_costs()
        self.energy_costs()
        self.runs_fit_on_nodes_that_are_on()
        self.nodes_are_paid()
        datasets_are_cached(self)
        bandwidth_is_bought(self)
        links_carry_what_is_read(self)
        variables, prices = zip(*self.costs, strict=True) if self.costs else ((), ())
        self.cp.minimize(LinearExpr.weighted_sum(variables, prices))

    def pay(self, variable: IntVar, price: float) -> None:
        """A price for each unit of a variable, rounded down."""
        whole = math.floor(price * MONEY + 1e-9)
        if whole > 0:
            self.costs.append((variable, whole))

    def paid(self, name: str, most: float) -> IntVar:
        """An amount of money, up to some most."""
        variable = self.cp.new_int_var(0, max(0, math.ceil(most * MONEY)), name)
        self.costs.append((variable, 1))
        return variable

    def each_job_runs_in_one_row(self) -> None:
        """One row of each job, or its rejection; within the starts of the row."""
        for j, job in enumerate(self.instance.jobs):
            rows = self.starts.rows_of_job[j]
            first = min((int(self.starts.rows[r].slots[0]) for r in rows), default=0)
            self.first.append(first)
            self.begin.append(self.cp.new_int_var(first, self.num_slots, f"begin {j}"))
            self.end.append(self.cp.new_int_var(first, self.num_slots, f"end {j}"))
            choices = []
            for r in rows:
                row = self.starts.rows[r]
                taken = self.taken[r] = self.cp.new_bool_var(f"row {r}")
                choices.append(taken)
                self.interval[r] = self.cp.new_optional_interval_var(
                    self.begin[j], row.duration, self.end[j], taken, f"run {r}"
                )
                allowed = Domain.from_values(row.slots.tolist())
                self.cp.add_linear_expression_in_domain(self.begin[j], allowed).only_enforce_if(taken)
                self.pay(taken, row.fixed_cost)
            if job.reject_cost is not None:
                self.rejected[j] = self.cp.new_bool_var(f"rejected {j}")
                self.pay(self.rejected[j], job.reject_cost)
                choices.append(self.rejected[j])
            self.cp.add_exactly_one(choices)

    def predecessors_complete_first(self) -> None:
        """And run, where their successors do."""
        for j, job in enumerate(self.instance.jobs):
            for i in (self.instance.job_index[name] for name in job.after):
                order = self.cp.add(self.begin[j] >= self.end[i])
                if j in self.rejected:
                    order.only_enforce_if(~self.rejected[j])
                if i in self.rejected:
                    self.cp.add_implication(self.rejected[i], self.rejected[j]) if j in self.rejected else (
                        self.cp.add(self.rejected[i] == 0)
                    )

    def being_late_costs(self) -> None:
        """Tardiness is a first part, to the slot edge after the due date, and as much for each slot more; a lost value
        is a table over the end."""
        for j, job in enumerate(self.instance.jobs):
            running = [] if j not in self.rejected else [~self.rejected[j]]
            if job.due is not None and job.weight:
                first_late = math.floor(job.due / self.instance.slot + 1e-9) + 1
                late = self.cp.new_bool_var(f"late {j}")
                more = self.cp.new_int_var(0, self.num_slots, f"later {j}")
                self.late[j] = (late, more, first_late)
                self.cp.add(self.end[j] < first_late).only_enforce_if([~late, *running])
                self.cp.add(more >= self.end[j] - first_late).only_enforce_if([late, *running])
                self.pay(late, job.weight * (first_late * self.instance.slot - job.due) / 3600.0)
                self.pay(more, job.weight * self.instance.slot_h)
                # Redundant: how late each row is at its first start.
                least = [(r, self._first_end(r) - first_late) for r in self.starts.rows_of_job[j]]
                least = [(r, slots) for r, slots in least if slots >= 0]
                if least:
                    rows, slots = zip(*least, strict=True)
                    self.cp.add(late >= LinearExpr.sum([self.taken[r] for r in rows]))
                    self.cp.add(more >= LinearExpr.weighted_sum([self.taken[r] for r in rows], slots))
            lost = self.starts.prices.lost_value(j)
            if lost is not None:
                table = [math.floor(x * MONEY) for x in lost.tolist()]
                amount = self.paid(f"lost {j}", max(table) / MONEY)
                value = self.cp.new_int_var(0, max(table), f"value {j}")
                self.cp.add_element(self.end[j], table, value)
                self.cp.add(amount >= value).only_enforce_if(running)
                self.lost[j] = (amount, value, table)

    def _first_end(self, r: int) -> int:
        return int(self.starts.rows[r].slots[0]) + self.starts.rows[r].duration

    def energy_costs(self) -> None:
        """By row: what its busy GPUs draw at the highest price of energy, less what stretches with a lower one save on
        the slots that it runs in them."""
        for s, site in enumerate(self.instance.sites):
            price = grid.price_by_slot(self.instance, site.energy_price, self.num_slots) * self.instance.slot_h
            highest = float(price.max(initial=0.0))
            if highest <= 0:
                continue
            edges = [0, *(np.flatnonzero(np.diff(price)) + 1).tolist(), self.num_slots]
            stretches = [
                (a, b, math.ceil((highest - float(price[a])) * FINE))
                for a, b in itertools.pairwise(edges)
                if float(price[a]) < highest
            ]
            for j in range(len(self.instance.jobs)):
                rows = [r for r in self.starts.rows_of_job[j] if self.starts.rows[r].site == s and self._draw(r) > 0]
                if rows:
                    self._energy_of(j, s, rows, math.floor(highest * FINE), stretches)

    def _energy_of(self, j: int, s: int, rows: list[int], highest: int, stretches: list[tuple[int, int, int]]) -> None:
        """Prices and savings in FINE parts of the currency for a kW and slot."""
        saved = []
        for a, b, saving in stretches:
            inside = self.cp.new_int_var(0, b - a, f"in {a}..{b} {j}")
            touches = self.cp.new_bool_var(f"touches {a}..{b} {j}")
            self.cp.add(inside <= (b - a) * touches)
            self.cp.add(inside <= self.end[j] - a).only_enforce_if(touches)
            self.cp.add(inside <= b - self.begin[j]).only_enforce_if(touches)
            saved.append((inside, touches, a, b, saving))
        energies = {r: self.starts.rows[r].terms["energy"] for r in rows}
        amount = self.paid(f"energy {j} {s}", max(float(values.max()) for values in energies.values()))
        least = [max(0, math.floor(float(energies[r].min()) * MONEY) - 1) for r in rows]
        self.cp.add(amount >= LinearExpr.weighted_sum([self.taken[r] for r in rows], least))
        saving = LinearExpr.weighted_sum([v for v, *_ in saved], [value for *_, value in saved])
        for r in rows:
            self.cp.add(
                WATT * FINE * (amount + 1) > self._draw(r) * (highest * self.starts.rows[r].duration - saving)
            ).only_enforce_if(self.taken[r])
            if saved:
                self.cp.add(LinearExpr.sum([v for v, *_ in saved]) <= self.starts.rows[r].duration).only_enforce_if(
                    self.taken[r]
                )
        self.energy[j, s] = (
            amount,
            saved,
            {r: (self._draw(r), highest, low) for r, low in zip(rows, least, strict=True)},
        )

    def _draw(self, r: int) -> int:
        """What the busy GPUs of a run draw, in parts of a kW, times the units of money."""
        row = self.starts.rows[r]
        return math.floor(row.mode.busy_gpus * self.instance.pools[row.pool].gpu_power * MONEY * WATT + 1e-6)

    def runs_fit_on_nodes_that_are_on(self) -> None:
        """Slices, and memory, cores and RAM where a pool states them.

        Where a node costs the same in every slot and is paid by the slot, runs that take whole nodes pay for them as
        such, and only the nodes that others share are counted slot by slot.
        """
        for p, rows in self.rows_of_pool.items():
            pool = self.instance.pools[p]
            rules = self.rules[p]
            whole = [r for r in rows if self.pays_by_itself(self.starts.rows[r])]
            shared = [r for r in rows if r not in set(whole)]
            per_node = pool.gpus_per_node * pool.slices_per_gpu
            open_nodes = self.open_nodes[p]
            sharers = {self.starts.rows[r].job for r in shared}
            most = min(pool.nodes, len(sharers)) if whole else pool.nodes
            if shared:
                for t in range(self.num_slots):
                    self.on[p, t] = self.cp.new_int_var(0, min(most, int(open_nodes[t])), f"on {p} {t}")
                self._fit(
                    shared,
                    [self._slices(r) for r in shared],
                    [per_node * most - per_node * self.on[p, t] for t in range(self.num_slots)],
                    per_node * most,
                )
                work = [self._slices(r) * self.starts.rows[r].duration for r in shared]
                self.cp.add(
                    per_node * LinearExpr.sum([self.on[p, t] for t in range(self.num_slots)])
                    >= LinearExpr.weighted_sum([self.taken[r] for r in shared], work)
                )
            if whole:
                fill = [pool.nodes - int(open_nodes[t]) + self.on.get((p, t), 0) for t in range(self.num_slots)]
                self._fit(whole, [self.starts.rows[r].mode.num_nodes for r in whole], fill, pool.nodes)
                for r in whole:
                    row = self.starts.rows[r]
                    self.pay(self.taken[r], float(rules.price[0]) * row.duration * row.mode.num_nodes)
            self._share(rows, "cpu_cores", pool.cpu_cores, pool.nodes)
            self._share(rows, "ram_gb", pool.ram, pool.nodes)
            small = [r for r in rows if self.starts.rows[r].mode.is_small]
            self._share(small, "memory_gb", pool.gpu_memory, pool.nodes * pool.gpus_per_node)

    def pays_by_itself(self, row: Row) -> bool:
        """Whether a run takes whole nodes, at a price that does not depend on when."""
        rules, pool = self.rules[row.pool], self.instance.pools[row.pool]
        is_whole = row.mode.is_gang or row.mode.gpus == pool.gpus_per_node
        return is_whole and rules.is_plain and bool((rules.price == rules.price[0]).all())

    def _slices(self, r: int) -> int:
        mode = self.starts.rows[r].mode
        return mode.num_nodes * mode.slices

    def _fit(self, rows: list[int], demands: list[int], fill: Sequence[LinearExpr | int], capacity: int) -> None:
        """A cumulative of runs and of what fills each slot up."""
        intervals = [self.interval[r] for r in rows]
        demanded: list[LinearExpr | int] = list(demands)
        for t, amount in enumerate(fill):
            if not isinstance(amount, int) or amount > 0:
                intervals.append(self.cp.new_fixed_size_interval_var(t, 1, f"slot {t}"))
                demanded.append(amount)
        self.cp.add_cumulative(intervals, demanded, capacity)

    def _share(self, rows: list[int], name: str, each: float | None, number: int) -> None:
        """What runs take of a resource is within what all nodes (or GPUs) have of it, on or not."""
        needs = {r: getattr(self.starts.rows[r].mode, name) for r in rows if not self.starts.rows[r].mode.is_gang}
        if each is None or not any(needs.values()):
            return
        self.cp.add_cumulative(
            [self.interval[r] for r in needs],
            [math.floor(10 * x) for x in needs.values()],
            math.ceil(10 * each * number),
        )

    def nodes_are_paid(self) -> None:
        """By the slot, or in blocks that begin when a node is switched on or follow one another."""
        for p in self.rows_of_pool:
            rules = self.rules[p]
            slots = range(self.num_slots)
            if rules.is_plain:
                for t in slots if (p, 0) in self.on else ():
                    self.pay(self.on[p, t], float(rules.price[t]))
                continue
            nodes = self.instance.pools[p].nodes
            warm = int(grid.on_at_start(self.instance, self.instance.pools[p]).sum())
            counts = self.open_nodes[p]
            for t in slots:
                self.blocks[p, t] = self.cp.new_int_var(0, nodes, f"blocks {p} {t}")
                self.boots[p, t] = self.cp.new_int_var(0, nodes, f"boots {p} {t}")
                self.pay(self.blocks[p, t], float(rules.price[t : t + rules.block].sum()))
            for t in slots:
                booting = [self.boots[p, s] for s in range(max(0, t - rules.boot + 1), t + 1)]
                paid = [self.blocks[p, s] for s in range(max(0, t - rules.block + 1), t + 1)]
                held = LinearExpr.sum([self.on[p, t], *booting])
                self.cp.add(held <= LinearExpr.sum(paid))
                if rules.boot:
                    self.cp.add(held <= int(counts[t]))
                    earlier = self.blocks[p, t - rules.block] if t >= rules.block else (warm if t == 0 else 0)
                    self.cp.add(self.blocks[p, t] <= self.boots[p, t] + earlier)
