"""Write docs/cli.md from the help of the commands."""

from __future__ import annotations

from pathlib import Path

from planner.cli.reference import markdown

if __name__ == "__main__":
    page = Path(__file__).parents[1] / "docs" / "cli.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text(markdown(), encoding="utf-8")
    print(f"wrote {page}")
