"""YAML and JSON text to plain Python, with the line of every entry; strict, and safe on anything.

YAML is built here from the parser's events, without recursion. PyYAML's own loader follows YAML 1.1, in
which 1:30 is 90 and `no` is false; it takes tags, unfolds aliases, and keeps the last of two equal keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml import events

from models.errors import Fault, InvalidInput
from planner.io.texts import MIB, refuse, show

Path = tuple[str | int, ...]

MAX_DEPTH = 40
MAX_NODES = 6_000_000
_MOST_TO_LOCATE = 64 * MIB
_MAX_FAULTS = 20
_MAX_DIGITS = 100

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the former where PyYAML has libyaml
_INT = re.compile(r"-?[1-9][0-9]*|0")
_FLOAT = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BEGINS_NUMBER = frozenset("-.0123456789")
_NAMED: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
    "-0": "-0",
}


def plain_scalar(text: str) -> Any:
    """The value of an unquoted scalar: null, true, false, or a number as JSON writes it; all else stays text.

    So `no`, `off`, 1:30, 2026-01-12, 08 and +5 are text, and no name is turned into what it was not.
    """
    if text in _NAMED:
        return _NAMED[text]
    if text[0] not in _BEGINS_NUMBER or len(text) > _MAX_DIGITS:
        return text
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


@dataclass
class Document:
    """The content of a file, the line of each entry, and the faults of the document as such."""

    value: Any = None
    lines: dict[int, int | list[int]] = field(default_factory=dict)
    """By the identity of a list or mapping within `value`: the lines of its entries in order, or the one of all."""
    faults: list[Fault] = field(default_factory=list)

    def line(self, path: Path) -> int | None:
        """The line of the entry at a path, or of the closest one above it that is there."""
        found: int | None = None
        value = self.value
        for step in path:
            lines = self.lines.get(id(value))
            try:
                inner = value[step]
            except (LookupError, TypeError):
                break
            if isinstance(lines, list):
                found = lines[step if isinstance(step, int) else list(value).index(step)]
            elif lines is not None:
                found = lines
            value = inner
        return found


@dataclass(slots=True)
class _Open:
    """A list or mapping that is being built; in a mapping, the name of the field whose value comes next."""

    value: Any
    is_list: bool
    step: str | int | None
    """Where it is in the list or mapping around it."""
    lines: list[int] = field(default_factory=list)
    key: str | None = None


class _Builder:
    """Builds a document from events; gathers faults; stops at those after which nothing can be trusted."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.stack: list[_Open] = []
        self.document = Document()
        self.num_nodes = 0
        self.num_documents = 0

    def fault(self, line: int, problem: str, mend: str, value: str | None = None) -> None:
        steps = [level.step for level in self.stack]
        top = self.stack[-1] if self.stack else None
        if top is not None:
            steps.append(len(top.value) if top.is_list else top.key)
        path = tuple(show(step, 60) if isinstance(step, str) else step for step in steps if step is not None)
        path = path[:8]
        self.document.faults.append(Fault(problem, path, value, mend, f"{self.where} line {line}"))
        if len(self.document.faults) >= _MAX_FAULTS:
            raise InvalidInput(self.document.faults)

    def stop(self, line: int, problem: str, mend: str) -> InvalidInput:
        self.fault(line, problem, mend)
        return InvalidInput(self.document.faults)

    def take(self, event: events.Event) -> None:
        line = event.start_mark.line + 1  # type: ignore[union-attr]  # events of a parser have marks
        if isinstance(event, events.ScalarEvent):
            if event.anchor is not None or event.tag is not None:
                self.refuse_extras(event, line)
            self.scalar(event, line)
        elif isinstance(event, events.CollectionEndEvent):
            self.close()
        elif isinstance(event, events.CollectionStartEvent):
            if event.anchor is not None or event.tag is not None:
                self.refuse_extras(event, line)
            self.open([] if isinstance(event, events.SequenceStartEvent) else {}, line)
        elif isinstance(event, events.AliasEvent):
            mend = "write the value where it is used"
            self.fault(line, "is an alias, which is not allowed", mend, f"*{show(event.anchor)}")
            self.add(None, line)
        elif isinstance(event, events.DocumentStartEvent):
            self.num_documents += 1
            if self.num_documents > 1:
                raise self.stop(line, "a second document begins here", "keep one; remove the line with ---")

    def refuse_extras(self, event: Any, line: int) -> None:
        if event.anchor is not None:
            mend = "write the value where it is used"
            self.fault(line, "is an anchor, which is not allowed", mend, f"&{show(event.anchor)}")
        if event.tag is not None:
            self.fault(line, "has a tag, which is not allowed", "remove it", show(event.tag))

    def scalar(self, event: events.ScalarEvent, line: int) -> None:
        text = event.value
        if self.stack:
            top = self.stack[-1]
            if top.key is None and not top.is_list:
                top.key = text
                if text in top.value:
                    first = top.lines[list(top.value).index(text)]
                    self.fault(line, "is given twice", f"keep this one or the one in line {first}")
                else:
                    top.lines.append(line)
                return
        self.add(plain_scalar(text) if event.implicit[0] else text, line)

    def open(self, value: Any, line: int) -> None:
        top = self.stack[-1] if self.stack else None
        if top is not None and top.key is None and not top.is_list:
            raise self.stop(line, "is a list or record where a field's name belongs", "check the brackets")
        if len(self.stack) >= MAX_DEPTH:
            raise self.stop(line, f"is nested more than {MAX_DEPTH} deep", "check the brackets; no field is so deep")
        step = None if top is None else len(top.value) if top.is_list else top.key
        inner = _Open(value, isinstance(value, list), step)
        self.add(value, line)
        self.stack.append(inner)

    def close(self) -> None:
        done = self.stack.pop()
        if done.lines:
            # Most records of a large file are in one line each.
            is_one_line = done.lines[0] == done.lines[-1]
            self.document.lines[id(done.value)] = done.lines[0] if is_one_line else done.lines

    def add(self, value: Any, line: int) -> None:
        self.num_nodes += 1
        if self.num_nodes > MAX_NODES:
            raise self.stop(line, f"has more than {MAX_NODES} entries", "use JSON, or a folder with CSV tables")
        if not self.stack:
            self.document.value = value
            return
        top = self.stack[-1]
        if top.is_list:
            top.lines.append(line)
            top.value.append(value)
        elif top.key is not None:
            top.value.setdefault(top.key, value)  # of two with one name the first; the fault is noted
            top.key = None


def load_yaml(text: str, where: str) -> Document:
    """The content of a YAML document; raises InvalidInput where it cannot be made out, with the line."""
    builder = _Builder(where)
    try:
        for event in _events(text):
            builder.take(event)
    except yaml.YAMLError as error:
        raise InvalidInput([*builder.document.faults, _syntax_fault(error, text, where)]) from None
    if builder.document.value is None and not builder.document.faults:
        raise refuse(where, "is empty", "write at least currency, start, slot, sites and pools")
    return builder.document


def _events(text: str) -> Iterator[events.Event]:
    yield from yaml.parse(text, Loader=_Loader)


def _syntax_fault(error: yaml.YAMLError, text: str, where: str) -> Fault:
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "it breaks off")
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = where if mark is None else f"{where} line {mark.line + 1}"
    lines = text.splitlines()[mark.line : mark.line + 1] if mark is not None else []
    spaces = "".join(line[: len(line) - len(line.lstrip())] for line in lines)
    if "\t" in spaces:
        mend = "indent with spaces, not tabs"
    elif "mapping values" in problem:
        mend = "check the indentation, and put text that has a colon in quotes"
    elif "expected ':'" in problem:
        mend = "write a colon and a space after the name of the field"
    elif mark is None:
        mend = "remove the control characters; is it a text file?"
    else:
        mend = "correct this line or the one before, or put its text in quotes"
    return Fault(f"is not YAML: {show(problem, 200)}", (), None, mend, place)


def load_json(text: str, where: str) -> Document:
    """The content of a JSON document; raises InvalidInput where it cannot be made out, with the line."""
    if not text.strip():
        raise refuse(where, "is empty", "write at least currency, start, slot, sites and pools")
    twice: list[str] = []

    def record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                twice.append(key)
            found.setdefault(key, value)
        return found

    try:
        value = json.loads(text, object_pairs_hook=record, parse_int=_json_int, parse_constant=float)
    except json.JSONDecodeError as error:
        place = f"{where} line {error.lineno}"
        mend = f"correct it at column {error.colno}"
        raise InvalidInput(
            [Fault(f"is not JSON: {error.msg.lower().removesuffix(' at')}", (), None, mend, place)]
        ) from None
    except RecursionError:
        raise refuse(where, "is nested too deep", "check the brackets; no field is so deep") from None
    document = Document(value)
    if twice:
        located = locate_json(text, where)
        document.faults = list(located.faults) if located is not None else []
        if not document.faults:
            document.faults = [
                Fault("a field is given twice in one record", (), show(key), "keep one of them", where)
                for key in dict.fromkeys(twice[:_MAX_FAULTS])
            ]
    return document


def _json_int(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MAX_DIGITS else digits


def locate_json(text: str, where: str) -> Document | None:
    """The same document with lines, which json does not tell: JSON read as YAML, if it is not too large."""
    if len(text) > _MOST_TO_LOCATE:
        return None
    try:
        return load_yaml(text, where)
    except InvalidInput:
        return None
