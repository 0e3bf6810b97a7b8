"""`python -m tests.formulation.golden --write`: write the LP files of all cases anew."""

from __future__ import annotations

import sys

from tests.formulation.golden import write_all

if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.formulation.golden --write")
    for path in write_all():
        print(path.name)
