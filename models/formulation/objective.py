"""The objective: every cost term of a plan, each an expression that can be read by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyomo.environ as pyo

from models import grid
from models.domain import COST_TERMS, SERVICE_TERMS
from models.formulation.context import Context, declare, linear
from models.starts import START_TERMS
from models.storage.tariff import tariff_of


def lowest_total_cost(model: pyo.ConcreteModel, context: Context) -> None:
    r"""minimise the sum of the cost terms:
    node_hours of owned and rental of cloud pools = sum over p, t: price[p,t] n[p,t],
    or for p in BLOCK block_price[p,t] v[p,t];
    energy, tardiness, lost_value, transfer of what is read, restart, interruption = sum over (r,t): cost[r,t] x[r,t],
    and of elastic jobs tardiness, lost_value = sum over (j,t): cost_at[j,t] complete[j,t],
    restart = sum over j: restart_cost[j] (sum over (r,t) of j: begin[r,t] - sum over t: complete[j,t]),
    of one that runs already without the last sum;
    rejection = sum over j: reject_cost[j] z[j];
    bandwidth = sum over s, i: hours[s] (alpha[s,i] w[s,i] + beta[s,i] b[s,i]);
    cache = sum over d, s, l: hours[s] cache_price[s] size[d] l / L k[d,s,l];
    transfer of what is cached = sum over d, s, l: link_price[d,s] size[d] l / L k[d,s,l]

    Where the goal is welfare, only tardiness, lost_value and rejection, of an instance `models.goal.at_price`.
    """
    terms: dict[str, Any] = {name: _of_starts(model, context, name) for name in START_TERMS}
    for name, (coefficients, variables) in _of_completions(model, context).items():
        terms[name] = linear([*terms[name].linear_coefs, *coefficients], [*terms[name].linear_vars, *variables])
    terms |= _of_nodes(model, context)
    jobs = context.instance.jobs
    terms["rejection"] = linear([jobs[j].reject_cost for j in model.OPTIONAL], [model.z[j] for j in model.OPTIONAL])
    terms["bandwidth"], terms["cache"], staged = _of_storage(model, context)
    terms["transfer"] = linear(
        [*terms["transfer"].linear_coefs, *staged.linear_coefs],
        [*terms["transfer"].linear_vars, *staged.linear_vars],
    )
    for name, term in terms.items():
        setattr(model, name, pyo.Expression(expr=term))
    counted = [term for name, term in terms.items() if context.goal.objective == "cost" or name in SERVICE_TERMS]
    model.lowest_total_cost = pyo.Objective(expr=_sum(counted), sense=pyo.minimize)


def spending_is_within_the_budget(model: pyo.ConcreteModel, context: Context) -> None:
    r"""sum of all cost terms but tardiness, lost_value and rejection <= budget where there is one"""
    if context.goal.budget is None:
        return
    spent = _sum(getattr(model, name).expr for name in COST_TERMS if name not in SERVICE_TERMS)
    declare(model, "spending_is_within_the_budget", {0: spent <= context.goal.budget})


def _sum(terms: Iterable[Any]) -> Any:
    listed = list(terms)
    coefficients = [c for term in listed for c in term.linear_coefs]
    return linear(coefficients, [v for term in listed for v in term.linear_vars])


def _of_starts(model: pyo.ConcreteModel, context: Context, term: str) -> Any:
    costs = {r: context.rows[r].terms[term].tolist() for r in context.used_rows}
    pairs = [
        (cost, model.x[r, t])
        for r in context.used_rows
        for cost, t in zip(costs[r], context.slots_of_row[r], strict=True)
        if cost
    ]
    return linear([c for c, _ in pairs], [x for _, x in pairs])


def _of_completions(model: pyo.ConcreteModel, context: Context) -> dict[str, tuple[list[float], list[Any]]]:
    """What elastic jobs cost by when they complete and how often they change."""
    found: dict[str, tuple[list[float], list[Any]]] = {
        name: ([], []) for name in ("tardiness", "lost_value", "restart")
    }
    prices = context.starts.prices
    for j in context.elastic:
        edges = context.completions[j]
        complete = [model.complete[j, t] for t in edges]
        for name, costs in (("tardiness", prices.tardiness(j)), ("lost_value", prices.lost_value(j))):
            if costs is not None:
                found[name][0].extend(costs[edges].tolist())
                found[name][1].extend(complete)
        restart = context.instance.jobs[j].restart_cost
        if restart and context.instance.jobs[j].running is None:
            found["restart"][0].extend([-restart] * len(complete))
            found["restart"][1].extend(complete)
    for r, t in model.CHANGE:
        if restart := context.instance.jobs[context.rows[r].job].restart_cost:
            found["restart"][0].append(restart)
            found["restart"][1].append(model.begin[r, t])
    return found


def _of_nodes(model: pyo.ConcreteModel, context: Context) -> dict[str, Any]:
    found: dict[str, tuple[list[float], list[Any]]] = {"node_hours": ([], []), "rental": ([], [])}
    for p in model.POOL:
        pool = context.pools[p]
        coefficients, variables = found["rental" if grid.is_cloud(context.instance, p) else "node_hours"]
        prices = np.asarray(pool.price if pool.is_plain else pool.block_price).tolist()
        paid = model.n if pool.is_plain else model.v
        coefficients += [prices[t] for t in model.SLOT]
        variables += [paid[p, t] for t in model.SLOT]
    return {name: linear(*pair) for name, pair in found.items()}


def _of_storage(model: pyo.ConcreteModel, context: Context) -> tuple[Any, Any, Any]:
    instance = context.instance
    hours = [grid.billed_hours(instance, site, context.num_slots) for site in instance.sites]
    coefficients: list[float] = []
    variables: list[Any] = []
    for s, i in model.PIECE:
        alpha, beta = tariff_of(instance.sites[s].storage).lines[i]
        coefficients += [alpha * hours[s], beta * hours[s]]
        variables += [model.w[s, i], model.b[s, i]]
    cache: list[float] = []
    staged: list[float] = []
    for d, s, level in model.CACHED:
        gb = instance.datasets[d].size * level / instance.cache_levels
        cache.append(gb * instance.sites[s].storage.cache_price * hours[s])
        link = instance.links.get((instance.datasets[d].home, instance.sites[s].id))
        staged.append(gb * link.price if link is not None else 0.0)
    ks = [model.k[key] for key in model.CACHED]
    return linear(coefficients, variables), linear(cache, ks), linear(staged, ks)
