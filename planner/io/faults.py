"""What pydantic says of a record, said in plain words: what is wrong, where, and how to mend it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from models.domain.fields import NO_START, Entity
from models.domain.rules import SECTIONS, suggest
from models.errors import Fault
from planner.io import shapes
from planner.io.texts import show

Path = tuple[str | int, ...]
Locate = Callable[[Path], tuple[str, int]]
"""From a path to its place as people read it (file with line or row) and its position among all places."""

MOST_FAULTS = 1000
FAR = 10**9
"""Files are so far apart in positions."""
_NUMBER = re.compile(r" (?:line|row) (\d+)$")
_REFERENCE = re.compile(rf"\b({'|'.join(SECTIONS)})\[(\d+)\]")


def faults_of(error: ValidationError, record: type[Entity], at: Path, mend: str | None = None) -> Iterator[Fault]:
    """The faults of one record at a path; all with one way to mend them, where that is given."""
    seen: set[tuple[Path, str]] = set()
    details = error.errors(include_url=False)
    details = _without_echoes(details, record)
    misspelt = {
        (*_field_path(detail, record)[:-1], _meant(detail, record))
        for detail in details
        if detail["type"] == "extra_forbidden"
    }
    for detail in details:
        if detail["type"] == "missing" and _field_path(detail, record) in misspelt:
            continue
        path = _field_path(detail, record)
        problem, advice = _words(detail, record, path)
        if (path, problem) not in seen and problem != NO_START.split(";")[0]:
            seen.add((path, problem))
            yield Fault(problem, at + path, _value(detail), mend or advice)


def _without_echoes(details: list[ErrorDetails], record: type[Entity]) -> list[ErrorDetails]:
    """The errors that say something new; where all at one place are echoes of each other, the first of them."""
    kept = [detail for detail in details if not _is_echo(detail, details, record)]
    places = [_field_path(detail, record) for detail in kept]
    for detail in details:
        path = _field_path(detail, record)
        if not any(place[: len(path)] == path for place in places):
            kept.append(detail)
            places.append(path)
    return kept


def _field_path(detail: ErrorDetails, record: type[Entity]) -> Path:
    """The path without what pydantic adds for the branches of a union."""
    return _split(detail, record)[0]


def _branch(detail: ErrorDetails, record: type[Entity]) -> str:
    """Which branch of a union without a tag an error comes from."""
    return _split(detail, record)[1]


def _split(detail: ErrorDetails, record: type[Entity]) -> tuple[Path, str]:
    steps = detail["loc"]
    path: Path = ()
    branch = ""
    is_key = False
    for index, step in enumerate(steps):
        is_last = index == len(steps) - 1
        if isinstance(step, int) or is_key or (is_last and detail["type"] in ("extra_forbidden", "missing")):
            path += (step,)
            is_key = False
            continue
        at = shapes.field_at(record, (*path, step))
        if at is not None and at[1] == step and not step.startswith("~"):
            path += (step,)
            is_key = shapes.is_dict(*at)
        elif not step.startswith("~"):
            branch = step
    if detail["type"].startswith("union_tag") and (at := shapes.field_at(record, path)) is not None:
        path += (str(shapes.tag_field(*at)),)
    return path, branch


def _meant(detail: ErrorDetails, record: type[Entity]) -> str | None:
    """The field that an unknown one seems to stand for."""
    path = _field_path(detail, record)
    mend = suggest(str(path[-1])[:200], _holder(detail, record, path[:-1]).model_fields)
    return mend.removeprefix("did you mean ")[:-1] if "?" in mend else None


def _is_echo(detail: ErrorDetails, details: list[ErrorDetails], record: type[Entity]) -> bool:
    """Whether an error only repeats another: that of a branch not meant, a list short of its bad items."""
    kind, value = detail["type"], detail["input"]
    if kind == "too_short" and isinstance(value, list | tuple):
        return len(value) >= detail.get("ctx", {}).get("min_length", 1)
    branch = _branch(detail, record)
    if not branch:
        return False
    if branch.startswith("literal["):
        return any(_branch(other, record) not in ("", branch) for other in details)
    is_list_branch = branch.startswith("tuple[")
    holder = detail["loc"].index(branch)
    inputs = [other["input"] for other in details if other["loc"][:holder] == detail["loc"][:holder]]
    # Of "a number or a list of numbers", what is written tells which was meant.
    was_list = any(isinstance(value, list | tuple) for value in inputs)
    return is_list_branch != was_list


def _value(detail: ErrorDetails) -> str | None:
    value = _input(detail)
    return None if detail["type"] in ("missing", "union_tag_not_found") or value is None else show(value)


def _input(detail: ErrorDetails) -> Any:
    """What is written; of a union's tag that is not known the tag itself, not the record that it is in."""
    if detail["type"] == "union_tag_invalid":
        return detail["input"][detail["ctx"]["discriminator"].strip("'")]
    return detail["input"]


def _words(detail: ErrorDetails, record: type[Entity], path: Path) -> tuple[str, str]:
    """The problem, and how to mend it."""
    at = shapes.field_at(record, path)
    kind = detail["type"]
    context = detail.get("ctx", {})
    if kind == "extra_forbidden":
        holder = _holder(detail, record, path[:-1])
        mend = suggest(str(path[-1])[:200], holder.model_fields)
        return (
            f"is not a field of a{'n' if holder.__name__[0] in 'AEIOU' else ''} {holder.__name__}",
            mend if "?" in mend else f"remove it; fields are {_fields(holder)}",
        )
    if kind == "value_error":
        text = str(context.get("error", ""))
        problem, _, mend = text.partition("; ")
        if detail["input"] is None and at is not None:
            return "is empty", _advice(at)
        words = shapes.choices(*at) if at is not None else ()
        if words and isinstance(detail["input"], str):
            found = suggest(detail["input"][:200], words)
            mend = found if "?" in found else f"{mend}, or {' or '.join(words)}"
        return problem, mend or _advice(at)
    if kind == "missing":
        owner, name = at if at is not None else (record, str(path[-1]))
        meaning = owner.model_fields[name].description
        return "is missing", f"add {name}: {meaning}; e.g. {written(shapes.example_of(owner, name))}"
    if kind == "literal_error" and at is not None:
        return _no_such_word(str(detail["input"]), shapes.choices(*at))
    if kind.startswith("union_tag") and (field := shapes.field_at(record, path[:-1])) is not None:
        words = tuple(shapes.tagged_records(*field))
        if kind == "union_tag_not_found" or _input(detail) is None:
            problem = "is missing" if kind == "union_tag_not_found" else "is empty"
            return problem, f"add {path[-1]}: {' or '.join(words)}"
        return _no_such_word(context["tag"], words)
    problem = _PROBLEMS.get(kind, "is not valid")
    if detail["input"] is None and kind.endswith("_type"):
        problem = "is empty"
    limits = {"greater_than": "gt", "greater_than_equal": "ge", "less_than": "lt", "less_than_equal": "le"}
    if kind in limits:
        problem = problem.format(_plain(context[limits[kind]]) if limits[kind] in context else "the limit")
    return problem, _advice(at)


def _no_such_word(word: str, words: tuple[str, ...]) -> tuple[str, str]:
    """The problem of a word that is none of those that are known, and how to mend it."""
    mend = suggest(word[:200], words)
    return f"is not {' or '.join(words)}", mend if "?" in mend else f"write {' or '.join(words)}"


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:g}"


_PROBLEMS = {
    "greater_than": "is not more than {}",
    "greater_than_equal": "is less than {}",
    "less_than": "is not less than {}",
    "less_than_equal": "is more than {}",
    "finite_number": "is not a finite number",
    "too_short": "is an empty list",
    "tuple_type": "is not a list",
    "list_type": "is not a list",
    "model_type": "is not a record with fields",
    "model_attributes_type": "is not a record with fields",
    "dict_type": "is not a record with fields",
    "bool_parsing": "is neither true nor false",
    "bool_type": "is neither true nor false",
    "int_type": "is not a whole number",
    "int_parsing": "is not a whole number",
    "int_parsing_size": "is too large a number",
    "int_from_float": "is not a whole number",
    "float_type": "is not a number",
    "float_parsing": "is not a number",
    "string_type": "is not text",
    "string_pattern_mismatch": "does not have the right form",
}


def _advice(at: tuple[type[Entity], str] | None) -> str:
    if at is None:
        return "write a record: name: value for each of its fields"
    record, name = at
    meaning = f"{record.model_fields[name].description} ({shapes.unit_of(record, name)})"
    return f"write {written(shapes.example_of(record, name))}, say; it is: {meaning}"


def _holder(detail: ErrorDetails, record: type[Entity], path: Path) -> type[Entity]:
    """The type of the record at a path."""
    at = shapes.field_at(record, path)
    if at is None:
        return record
    tagged = shapes.tagged_records(*at)
    inner = [*(tagged[step] for step in detail["loc"] if step in tagged), *shapes.records_in(*at)]
    return inner[0] if inner else record


def _fields(record: type[Entity]) -> str:
    return ", ".join(record.model_fields)


def written(value: Any) -> str:
    """A value as it is written in YAML or JSON, in one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def placed(faults: list[Fault], locate: Locate) -> list[Fault]:
    """Each fault once, with its place, fit to be shown, in the order of files and lines."""
    unique: dict[tuple[str | None, Path, str], tuple[tuple[int, int], Fault]] = {}
    for order, fault in enumerate(faults):
        where, position = locate(fault.path)
        if fault.where is not None:
            number = _NUMBER.search(fault.where)
            position = position // FAR * FAR + (int(number[1]) if number else 0)
            where = fault.where
        key = (where, fault.path, fault.problem)
        if key not in unique:
            unique[key] = ((position, order), _shown(fault, where, locate))
    ranked = [fault for _, fault in sorted(unique.values(), key=lambda entry: entry[0])]
    if len(ranked) > MOST_FAULTS:
        rest = len(ranked) - MOST_FAULTS
        ranked = ranked[:MOST_FAULTS]
        ranked.append(Fault(f"and {rest} more faults", (), None, "mend these first", ranked[-1].where))
    return ranked


def _shown(fault: Fault, where: str, locate: Locate) -> Fault:
    """The fault with its place; what it quotes from outside escaped and cut; the rows of others named."""

    def with_place(match: re.Match[str]) -> str:
        other, _ = locate((match[1], int(match[2])))
        file = _NUMBER.sub("", where)
        return f"{match[0]} ({other.removeprefix(file).strip()})" if other != where else match[0]

    path = tuple(show(step, 60) if isinstance(step, str) else step for step in fault.path)
    value = None if fault.value is None else show(fault.value, 160)
    problem = show(_REFERENCE.sub(with_place, fault.problem), 400)
    mend = None if fault.mend is None else show(fault.mend, 400)
    return Fault(problem, path, value, mend, show(where, 300))
