"""The reference page of the format, made from the fields themselves, so that it cannot fall behind them."""

from __future__ import annotations

import json
from typing import Any

from models import units
from models.domain.fields import Entity
from models.domain.instance import Instance
from planner.io import shapes
from planner.io.instances import HEAD_FILE, folder_files, instance_of_yaml
from planner.io.tables import TABLES
from planner.io.texts import JSON_LIMIT, LIMIT, MIB, YAML_LIMIT

EXAMPLE = """\
currency: USD
start: 2026-01-12T18:00:00+01:00
slot: 15m
horizon: 24h
sites:
  - id: dc1
    kind: on_prem
    energy_price: {default: 0.18 USD/kWh, windows: [{since: "22:00", until: "06:00", price: 0.11 USD/kWh}]}
    storage:
      points:
        - {mb_s: 150 MB/s, price: 0.31 USD/h}
        - {mb_s: 600 MB/s, price: 0.77 USD/h}
      cache_capacity: 2 TB
      cache_price: 0.0001 USD/GB/h
  - {id: cloud, kind: cloud}
pools:
  - {id: dc1-a100, site: dc1, gpu: A100, gpus_per_node: 8, nodes: 2, price: 4.10 USD/h, gpu_power: 0.4 kW}
  - {id: cloud-a100, site: cloud, gpu: A100, gpus_per_node: 8, nodes: 4, price: 12.29 USD/h,
     billing_increment: 1h, boot_time: 5m}
datasets:
  - {id: imagenet, size: 146GB, home: dc1}
network:
  - {source: dc1, target: cloud, price: 0.09 USD/GB}
throughputs:
  - {model: resnet50, gpu: A100, gpus: 4, samples_per_s: 9800}
  - {model: resnet50, gpu: A100, gpus: 8, samples_per_s: 18200}
jobs:
  - id: vision
    due: 2026-01-13T02:00:00+01:00
    weight: 5 USD/h
    dataset: imagenet
    model: resnet50
    samples: 115000000
    sample_size: 0.11MB
    speed_levels: [1, 0.5]
  - id: language
    release: 2h
    due: 2026-01-13T08:00:00+01:00
    weight: 8 USD/h
    modes:
      - {gpu: A100, gpus: 8, duration: 6h}
      - {gpu: A100, gpus: 16, duration: 3h30m}
  - id: report
    after: [vision, language]
    utility: {shape: linear, worth: 40 USD, full_until: 12h, zero_at: 20h}
    modes:
      - {pool: dc1-a100, gpus: 1, duration: 30m}
"""

_INTRODUCTION = """\
# The format of an instance

*Made by `planner schema --markdown` from the fields themselves; do not edit.*

An instance says all that a plan depends on: sites, pools of nodes, datasets, links, measured speeds, jobs.
It has two spellings, a file and a folder of tables; either turns into the other without loss
(`planner convert`). The version described here is `{version}`. What the fields mean for a plan is defined
in [the model](../models/README.md).

An editor that knows JSON Schema checks a file while it is written:
`planner schema > burstplan.schema.json`, and as the first line of the YAML file
`# yaml-language-server: $schema=burstplan.schema.json`.

## How values are written

- **Quantities** carry their unit: {examples}. A bare number is in the unit that the tables below name. KB,
  MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB of 1024; Gbit and Gb are bits.
- **Durations** may also be written `1h30m`, in ISO 8601 (`PT36H`) or as Slurm does (`1-12:00:00`). `1:30`
  is refused, for it means minutes to some and hours to others.
- **Money** is in the one `currency` of the file: `3.06 USD/h`, `$3.06/h` or `3.06`. Another currency is a
  fault.
- **Times** are ISO 8601 with an offset from UTC, the same as that of `start` (`2026-01-13T08:00:00+01:00`),
  or the time after `start` (`6h`). They are kept to the microsecond, and lie within 100 years of `start`.
- **Times of day** are `"22:00"`, in the zone of `start`.
- **Prices** that change over the day are a constant, a record of daily windows, or a list with one price
  for each slot.
- **Names** are text of up to 200 characters without control characters and marks that turn the writing
  direction; capitals count. A name that looks like a number, such as 1e3 or 1.0, is put in quotes.
- **YAML** is read strictly: true and false are the only truth values (`no` and `off` are text), 08, 1:30
  and 2026-01-12 are text. Tags, anchors, aliases, a field given twice and a second document are faults.
- Files are UTF-8; YAML up to {yaml} MiB, JSON up to {json} MiB, each table up to {rest} MiB.

A field that is not known is a fault, never ignored. All faults of all files are reported at once, each with
its line or row and how to mend it.
"""

_FOLDER = """\
## The folder

A folder holds `{head}` with the fields of the instance, `sites` and `network`, and a table for each of the
rest:

{tables}

A table that is not needed is left out; or the records stand in `{head}` instead, but never in both. Tables
are CSV with commas, in UTF-8; the first row names the columns, in any order.

- An empty cell is a field that is not given.
- A cell for a list of names or numbers (`after`, `speed_levels`) parts them by semicolons, `a;b`, or is
  JSON, `["a", "b"]`, which names with a semicolon need.
- A cell for records, lists of records, or prices that change is JSON: `[{{"since": "2h", "until": "3h"}}]`.
  A field of a single record may have a column of its own instead: `running.mode`, `running.pool`.
- Names stand in the tables as they are, those too that begin with `=`, `+`, `-` or `@`, so that nothing is lost on
  the way back: import tables of unknown origin into a spreadsheet as text, which else may run `=cmd()` as a
  formula. (The tables of a plan disarm such names.)
- `modes.csv` has a row for each mode of each job, in the order of the modes; its first column, `job`, is
  the job's id.
"""


def reference_markdown() -> str:
    """The page docs/format.md."""
    kinds = (units.DURATION, units.SIZE, units.MEMORY, units.RATE, units.POWER, units.PRICE_PER_HOUR)
    parts = [
        _INTRODUCTION.format(
            version=Instance.model_fields["format"].default,
            examples=", ".join(f"`{kind.example.split(' or ')[0].split(',')[0]}`" for kind in kinds),
            yaml=YAML_LIMIT // MIB,
            json=JSON_LIMIT // MIB,
            rest=LIMIT // MIB,
        ),
        "## Fields\n\n`required` in the column of defaults: the field must be given. `-`: none.\n",
        *(_section(record) for record in shapes.all_records()),
        _FOLDER.format(head=HEAD_FILE, tables="\n".join(_table_line(section) for section in TABLES)),
        _example(),
    ]
    return "\n".join(parts)


def _section(record: type[Entity]) -> str:
    lines = [f"### {record.__name__}", "", f"{_first_sentence(record)}", ""]
    lines += ["| field | default | unit or form | meaning | example |", "|---|---|---|---|---|"]
    for fact in shapes.facts(record):
        default = "required" if fact.is_required else _code(fact.default)
        example = fact.example if str(fact.example).startswith("see ") else _code(fact.example)
        cells = (f"`{fact.name}`", default, fact.unit, fact.meaning, example)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _first_sentence(record: type[Entity]) -> str:
    if record is Instance:
        return "The whole file. In the folder spelling, what is not in a table."
    return (record.__doc__ or "").strip().splitlines()[0]


def _code(value: Any) -> str:
    if value is None or value in ([], {}):
        return "-"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _table_line(section: str) -> str:
    first = "`job`, then " if section == "modes" else ""
    return f"- `{section}.csv`: {first}the fields of {TABLES[section].__name__}"


def _example() -> str:
    """The example in both spellings; the folder is what the file is converted to."""
    files = folder_files(instance_of_yaml(EXAMPLE))
    parts = ["## An example", "", "As a file:", "", f"```yaml\n{EXAMPLE}```", "", "The same as a folder:", ""]
    for name, data in files.items():
        language = "yaml" if name == HEAD_FILE else "csv"
        parts += [f"`{name}`", "", f"```{language}\n{data.decode()}```", ""]
    return "\n".join(parts)
