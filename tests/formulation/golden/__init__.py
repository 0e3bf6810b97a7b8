"""The rows of the cases as LP files, to be read and compared: a change of the formulation shows as a change of text.

`python -m tests.formulation.golden --write` writes them anew; look at the difference before it is committed.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator
from pathlib import Path

from pyomo.repn.plugins.lp_writer import LPWriter

from models.formulation import build_model
from tests.formulation.cases import CASES, Case

FOLDER = Path(__file__).parent
WIDTH = 116
TIE = "\u00a0"


def path_of(name: str) -> Path:
    """The file of a case."""
    return FOLDER / f"{name}.lp"


def lp_text(case: Case) -> str:
    """The model of a case as Pyomo writes it, with its rows explained above, a row a line, and no banner."""
    stream = io.StringIO()
    model = build_model(case.starts, case.node_pools, form=case.form)
    LPWriter().write(model, stream, symbolic_solver_labels=True)
    return "\n".join([*_legend(case), "", *_compact(stream.getvalue())]) + "\n"


def _legend(case: Case) -> Iterator[str]:
    """What the indices of the variables stand for, as comments."""
    instance = case.instance
    yield f"\\ {case.instance.name}, in the form of {case.form}"
    for r, row in enumerate(case.starts.rows):
        pool = instance.pools[row.pool]
        slots = f"{row.duration} slot{'s' if row.duration > 1 else ''}"
        level = f", cached {row.level}/{instance.cache_levels}" if row.level else ""
        kept = (", kept" if row.kept else "") + (", a piece" if row.is_piece else "")
        yield (
            f"\\ row {r}: job {row.job} ({instance.jobs[row.job].id}), {row.mode.name}, "
            f"pool {row.pool} ({pool.id}), {slots}{level}{kept}"
        )


def _compact(text: str) -> Iterator[str]:
    """Pyomo's lines: the terms of a row joined, bounds that `binary` implies and empty lines left out."""
    banner, _, body = text.partition("*\\\n")
    assert "Source Pyomo model" in banner
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    heads = [lines.index(head) for head in ("bounds", "end")]
    yield from _joined(lines[: heads[0]])
    sections: dict[str, list[str]] = {}
    for line in lines[heads[0] : heads[1]]:
        if line in ("bounds", "general", "binary"):
            sections[line] = []
        else:
            sections[list(sections)[-1]].append(line)
    implied = {f"0 <= {name} <= 1" for name in sections.get("binary", ())}
    for head, entries in sections.items():
        kept = [entry for entry in entries if entry not in implied]
        if kept:
            yield head
            yield from kept if head == "bounds" else _wrapped(" ".join(kept))
    yield "end"


def _joined(lines: list[str]) -> Iterator[str]:
    row = ""
    for line in lines:
        if line in ("min", "s.t.") or line.endswith(":"):
            if row:
                yield from _wrapped(row)
            row = ""
            if line in ("min", "s.t."):
                yield line
                continue
        # A term is not torn apart where a row is wrapped.
        row = f"{row} {line.replace(' ', TIE)}".strip()
    yield from _wrapped(row)


def _wrapped(line: str) -> list[str]:
    lines = textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return [line.replace(TIE, " ") for line in lines]


def write_all() -> list[Path]:
    """Write every file whose text has changed, and remove those without a case."""
    changed = []
    for path in FOLDER.glob("*.lp"):
        if path.stem not in CASES:
            path.unlink()
            changed.append(path)
    for name, case in CASES.items():
        text = lp_text(case)
        if not path_of(name).exists() or path_of(name).read_text(encoding="utf-8") != text:
            path_of(name).write_text(text, encoding="utf-8")
            changed.append(path_of(name))
    return changed
