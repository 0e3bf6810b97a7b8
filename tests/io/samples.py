"""Instances that are valid: a plain one, and one with everything."""

from __future__ import annotations

from functools import cache

from models.domain import Instance
from planner.io.instances import instance_of_yaml

VALID = """\
currency: USD
start: 2026-01-12T18:00:00+01:00
slot: 30m
horizon: 12h
sites:
  - {id: dc, kind: on_prem}
  - {id: cloud, kind: cloud, storage: {points: [{mb_s: 100, price: 1}], cache_capacity: 2 TB}}
pools:
  - {id: p1, site: dc, gpu: A100, gpus_per_node: 8, nodes: 2, price: 4 USD/h}
  - {id: p2, site: cloud, gpu: H100, gpus_per_node: 8, nodes: 4, price: 12 USD/h,
     unavailable: [{since: 1h, until: 2h}]}
datasets:
  - {id: d1, size: 100GB, home: dc}
network:
  - {source: dc, target: cloud, price: 0.09 USD/GB}
throughputs:
  - {model: r50, gpu: A100, gpus: 4, samples_per_s: 9800}
jobs:
  - id: a
    due: 2026-01-13T02:00:00+01:00
    weight: 5 USD/h
    modes:
      - {gpu: A100, gpus: 2, duration: 3h}
  - id: b
    after: [a]
    dataset: d1
    modes:
      - {pool: p2, gpus: 8, duration: 1h30m, read_rate: 100 MB/s}
  - {id: c, model: r50, samples: 1e8}
"""

RICH = """\
format: burstplan/1
name: rich
currency: EUR
start: 2026-03-28T22:30:00-03:30
slot: 20m
horizon: 2h
cache_levels: 4
sites:
  - id: dc
    kind: on_prem
    energy_price:
      default: 0.18 EUR/kWh
      windows:
        - {since: 22:00, until: 6:00, price: 0.11 EUR/kWh}
        - {since: 0:00, until: 24:00, price: 0.3}
    storage:
      points: [{mb_s: 150 MB/s, price: 0.31}, {mb_s: 300 MB/s, price: 0.46}, {mb_s: 600 MB/s, price: 0.76}]
      bandwidth_cap: 0.55 GB/s
      cache_capacity: 3TB
      cache_price: 0.0001 EUR/GB/h
      cache_speed: 640.3 MB/s
      billed: 12h
  - id: 'yes'
    kind: cloud
    energy_price: [0.1, 0.2, 0.3, 0.1, 0.2, 0.3]
    storage: {tariff: [{fixed: 1 EUR/h, per_mb_s: 0.001}, {fixed: 2}], cache_capacity: 1TB}
  - {id: tiered, kind: cloud, storage: {tiers: [{up_to: 1.2 GB/s, per_mb_s: 0.002}, {per_mb_s: 0.0011 EUR/h/(MB/s)}]}}
  - {id: by power, kind: cloud, storage: {power: {factor: 0.0033 EUR/h, exponent: 0.88, up_to: 9 GB/s, error: 0.02}}}
pools:
  - {id: '007', site: dc, gpu: A100, gpus_per_node: 8, nodes: 3, price: 4.1, gpu_memory: 80GiB,
     cpu_cores: 64, ram: 1TB, gpu_power: 350W, boot_time: 90s, slices_per_gpu: 4, nodes_on: 2,
     unavailable: [{since: 1h, until: '2026-03-29T01:30:00.25-03:30', nodes: [0, 2]},
                   {since: -1h, until: 10m, nodes: 1}, {since: 100m, until: 2h}]}
  - {id: 'NA', site: 'yes', gpu: '1e3', gpus_per_node: 4, nodes: 10,
     price: {default: 9.99 EUR/h, windows: [{since: 8:30, until: 18:00, price: 12.01}]},
     billing_increment: 1h, market: spot, interruption_rate: 0.05/h}
  - {id: 'a;b', site: 'yes', gpu: '[x]', gpus_per_node: 1, nodes: 1, price: [1, 2, 3, 4, 5, 6.7 EUR/h]}
datasets:
  - {id: 'null', size: 1.2TB, home: dc}
  - {id: '=1+1', size: 150.33 GB, home: 'yes'}
network:
  - {source: dc, target: 'yes', price: 0.09 EUR/GB, bandwidth: 10Gb/s}
  - {source: 'yes', target: dc}
throughputs:
  - {model: 'm, "quoted"', gpu: A100, gpus: 2, samples_per_s: 1234.5678901234567, memory: 20GB}
  - {model: 'm, "quoted"', gpu: A100, share: 0.3, samples_per_s: 0.1}
jobs:
  - id: '-'
    release: -1h
    due: 7000.123457
    weight: 0.1 EUR/h
    deadline: 1d
    dataset: 'null'
    modes:
      - {gpu: A100, gpus: 16, duration: 61.7m, read_rate: 87.3 MB/s, memory: 10GB, cpu_cores: 3, ram: 0.1TB}
      - {id: 'a b', pool: '007', share: 0.25, duration: 1h, slowdown: 1.07}
      - {gpu: '1e3', gpus: 2, duration: 33m, read_rate: 20 MB/s}
    speed_levels: [1, 0.75, 0.3]
    memory: 5GB
    cpu_cores: 2
    ram: 1GB
    reject_cost: 12.34 EUR
    restart_cost: 1
    elastic: {changes: 2}
    spot: true
    value: [{by: 1h, value: 10}, {by: 90m, value: 3.3 EUR}]
  - {id: 'ünï;códe', dataset: '=1+1', model: 'm, "quoted"', samples: 12345678, sample_size: 0.1MB,
     after: ['-']}
  - {id: '"', modes: [{pool: 'a;b', gpus: 1, duration: 10m}], after: ['-', 'ünï;códe'],
     utility: {shape: linear, worth: 12.34 EUR, full_until: '2026-03-28T23:30:00.25-03:30', zero_at: 90m}}
  - {id: '[', modes: [{pool: 'a;b', gpus: 1, duration: 10m}], after: ['"'],
     utility: {shape: step, worth: 0.1, by: 6999.123457}}
  - {id: z, modes: [{pool: '007', gpus: 1, duration: 10m}], after: ['['],
     utility: {shape: sigmoid, worth: 5 EUR, midpoint: -1h, scale: 61.7m}}
  - id: running
    modes: [{id: r, gpu: A100, gpus: 16, duration: 1h}]
    elastic: {}
    utility: {shape: finish_time_fairness, worth: 7, fair_time: 1h30m}
    running:
      mode: r
      pool: '007'
      places: [{node: 0, gpus: [0, 1, 2, 3, 4, 5, 6, 7]}, {node: 1, gpus: [7, 6, 5, 4, 3, 2, 1, 0]}]
      movable: true
"""


@cache
def rich_instance() -> Instance:
    """An instance with a value in every field, and with names that are easily spoilt."""
    return instance_of_yaml(RICH)
