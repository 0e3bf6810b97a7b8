"""models/README.md and the code say the same: equations, order, variables, sets, parameters, cost terms.

`faults` lists where they differ. It is tried on pages from which one thing is missing or in which one is changed, so
that it is known to find them.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest

from models.domain import COST_TERMS
from models.formulation import build, build_model, levels
from tests.formulation.cases import CASES

PAGE = (Path(__file__).parents[2] / "models" / "README.md").read_text(encoding="utf-8")
FAMILIES = (*build.CONSTRAINTS, build.OBJECTIVE, build.BUDGET)
# What stands before [ in an equation and is defined in the equation itself.
LOCAL = {"taken", "h"}
WORDS = {"in {0,1}": "binary", "in {0..": "integer", "in [0,": "continuous", ">= 0": "continuous"}


@cache
def models_of_cases() -> tuple[pyo.ConcreteModel, ...]:
    return tuple(build_model(case.starts, case.node_pools, form=case.form) for case in CASES.values())


def names_of(kind: Any) -> set[str]:
    """Names of the components of a kind in any of the models."""
    return {part.local_name for model in models_of_cases() for part in model.component_objects(kind)}


def words(text: str) -> str:
    return " ".join(text.split())


def equation(rule: Any) -> str:
    """The first paragraph of a docstring."""
    return words(inspect.cleandoc(rule.__doc__ or "").split("\n\n")[0])


def declared() -> dict[str, tuple[str, str]]:
    """Domain and meaning of each variable, from the docstrings of the functions that declare them."""
    found = {}
    for rule in build.VARIABLES:
        for clause in equation(rule).split("; "):
            match = re.fullmatch(r"(\w+\[[^]]*\]) (.*?): (.*)", clause)
            assert match, f"{rule.__name__} does not say symbol, domain and meaning: {clause}"
            found[match[1]] = match[2], match[3]
    return found


def section(page: str, title: str) -> str:
    """The text under a heading, up to the next of its level."""
    marks = re.match(r"#+", title)
    assert marks
    _, _, rest = page.partition(f"\n{title}\n")
    return re.split(rf"\n#{{1,{len(marks[0])}}} ", rest)[0]


def table(page: str, title: str) -> list[list[str]]:
    """The cells of the table under a heading, head and rule left out; code marks too."""
    rows = [line for line in section(page, title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[2:]]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def blocks(page: str) -> str:
    """All equations of the page, a line between two blocks."""
    text = section(page, "## Formulation")
    found = re.findall(r"(?:^|\n\n)((?:    [^\n]*\n?)+)", text)
    return "\n".join(words(block) for block in found)


def exists(path: str) -> bool:
    """Whether something in a module, or a field or attribute of a class in it, has this name."""
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            if not hasattr(found, name):
                fields = {n for base in getattr(found, "__mro__", ()) for n in getattr(base, "__annotations__", {})}
                return name in fields and name == parts[-1]
            found = getattr(found, name)
        return True
    return False


def faults(page: str) -> list[str]:
    """Every difference between the page and the code."""
    return [*_faults_of_equations(page), *_faults_of_variables(page), *_faults_of_sets(page), *_faults_of_rest(page)]


def _faults_of_equations(page: str) -> list[str]:
    found = []
    lines = blocks(page).splitlines()
    for rule in (levels.Taken, *FAMILIES):
        if equation(rule) not in lines:
            found.append(f"the equation of {rule.__name__} is not in the page")
    names = [f"{rule.__module__.split('.')[-1]}.{rule.__name__}" for rule in FAMILIES]
    listed = re.findall(r"^`(\w+\.\w+)`(?:\.|$)", section(page, "## Formulation"), flags=re.MULTILINE)
    if listed != names:
        found.append(f"the page lists {listed}, build.py {names}")
    # Each name stands right before its own equation.
    for rule, name in zip(FAMILIES, names, strict=True):
        match = re.search(rf"^`{re.escape(name)}`.*?\n\n((?:    [^\n]*\n)+)", page, flags=re.MULTILINE | re.DOTALL)
        if match is None or words(match[1]) != equation(rule):
            found.append(f"{name} does not stand before its equation")
    return found


def _faults_of_variables(page: str) -> list[str]:
    found = []
    rows = table(page, "### Variables")
    listed = {code(symbol)[0]: (code(domain)[0], meaning) for symbol, _, domain, meaning in rows}
    if listed != declared():
        found.append(
            f"variables of the page and of the docstrings differ: {set(listed.items()) ^ set(declared().items())}"
        )
    if {code(name)[0] for _, name, *_ in rows} != names_of(pyo.Var):
        found.append("variables of the page and of the models differ")
    for symbol, name, *_ in rows:
        if code(symbol)[0].split("[")[0] != code(name)[0]:
            found.append(f"{symbol} is not {name}")
    return found


def _faults_of_sets(page: str) -> list[str]:
    rows = table(page, "### Sets")
    found = [f"{row[0]} is not {row[1]}" for row in rows if row[0] != row[1]]
    if sorted(code(row[1])[0] for row in rows) != sorted(names_of(pyo.Set)):
        found.append("sets of the page and of the models differ")
    return found


def _faults_of_rest(page: str) -> list[str]:
    found = []
    parameters = table(page, "### Parameters")
    for symbol, path, _ in parameters:
        found += [f"{symbol}: there is no {name}" for name in code(path) if not exists(name)]
    # Whatever is indexed in an equation is a variable, a parameter, or defined there.
    known = {symbol.split("[")[0] for row in parameters for cell in (row[0], row[2]) for symbol in code(cell)}
    known |= {symbol.split("[")[0] for symbol in declared()} | LOCAL
    used = set(re.findall(r"([A-Za-z_]\w*)\[", blocks(page)))
    found += [f"{symbol} is used and in no table" for symbol in sorted(used - known)]
    for row in parameters:
        elsewhere = [cell for other in [*parameters, *table(page, "### Sets")] if other != row for cell in other]
        text = " ".join([blocks(page), str(declared()), *elsewhere])
        for name in (symbol.split("[")[0] for symbol in code(row[0])):
            if not re.search(rf"(?<![\w.]){name}(?!\w)", text):
                found.append(f"{name} is in a table and used nowhere")
    terms = {code(row[0])[0] for row in table(page, "## Cost")}
    if not terms == set(COST_TERMS) == names_of(pyo.Expression):
        found.append("cost terms of the page, the plan and the model differ")
    objective = equation(build.OBJECTIVE)
    found += [f"{term} is not in the objective's equation" for term in terms if term not in objective]
    return found


def test_page_and_code_agree() -> None:
    assert faults(PAGE) == []


def test_every_rule_has_a_sentence_and_an_equation() -> None:
    for rule in FAMILIES:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", rule.__name__)
        assert re.search(r"<=|=|minimise", equation(rule)), rule.__name__
    for rule in build.VARIABLES:
        assert rule.__name__.startswith("declare_")


def test_domains_are_those_of_the_models() -> None:
    for model in models_of_cases():
        for symbol, (domain, _) in declared().items():
            kind = next(kind for word, kind in WORDS.items() if word in domain)
            for variable in getattr(model, symbol.split("[")[0]).values():
                assert variable.lb == 0
                assert variable.is_continuous() == (kind == "continuous"), symbol
                if kind == "binary":
                    assert variable.is_binary(), symbol
                assert (variable.ub is None) == domain.startswith(">= 0"), symbol


def test_indices_are_those_of_the_models() -> None:
    for model in models_of_cases():
        for symbol in declared():
            name, indices = symbol.rstrip("]").split("[")
            for index in getattr(model, name):
                size = len(index) if isinstance(index, tuple) else 1
                assert size == len(indices.split(",")), symbol


def without_row(symbol: str) -> Callable[[str], str]:
    return lambda page: re.sub(rf"\n\| `{re.escape(symbol)}`[^\n]*", "", page)


def without_paragraph(name: str) -> Callable[[str], str]:
    return lambda page: re.sub(rf"\n`\w+\.{name}`.*?\n\n(    [^\n]*\n)+", "\n", page, flags=re.DOTALL)


def renamed(old: str, new: str) -> Callable[[str], str]:
    return lambda page: page.replace(old, new, 1)


SYMBOLS = [*declared(), *sorted(names_of(pyo.Set)), *COST_TERMS]
EXTRA = "| `Q[p]` | `Q` | `in {0,1} for p in POOL` | a variable that there is not |\n"
CHANGES: dict[str, Callable[[str], str]] = {
    **{f"without {symbol}": without_row(symbol) for symbol in SYMBOLS},
    **{f"without {rule.__name__}": without_paragraph(rule.__name__) for rule in FAMILIES},
    "a sign": renamed("taken[reading,s,t] <= B[s]", "taken[reading,s,t] >= B[s]"),
    "a quantifier": renamed("for all p in BLOCK with a boot, t in SLOT", "for all p in BLOCK, t in SLOT"),
    "a domain": renamed("`in {0..nodes[p]} for p in BLOCK", "`>= 0 for p in BLOCK"),
    "a meaning": renamed("| job j is rejected |", "| job j is late |"),
    "a path": renamed("models.starts.Row.duration", "models.starts.Row.length"),
    "a module": renamed("models.grid.billed_hours", "models.grids.billed_hours"),
    "one more variable": renamed("| `z[j]` |", EXTRA + "| `z[j]` |"),
    "one more set": renamed("| `OPTIONAL` |", "| `EXTRA` | `EXTRA` | none |\n| `OPTIONAL` |"),
    "one more parameter": renamed("| `size[d]` |", "| `weight` | `models.grid.DAY_S` | none |\n| `size[d]` |"),
    "a parameter less": without_row("link_rate[r]"),
    "an order": lambda page: page.replace("nodes_are_paid", "!").replace("nodes_add_up", "nodes_are_paid"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_missing_or_changed_is_found(name: str) -> None:
    changed = CHANGES[name](PAGE)
    assert changed != PAGE
    assert set(faults(changed)) - set(faults(PAGE))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("models.starts.Row.duration", True),  # a property
        ("models.starts.Row.link_rate", True),  # a field of a dataclass
        ("models.domain.entities.Job.reject_cost", True),  # a field of a record
        ("models.domain.Instance.cache_levels", True),  # one that is inherited
        ("models.starts.Row.length", False),
        ("models.starts.Rows.duration", False),
        ("models.start.Row", False),
        ("nothing.at.all", False),
    ],
)
def test_existence(path: str, expected: bool) -> None:
    assert exists(path) == expected
