"""What an instance is made of, as it is written. Every field says its meaning, default and unit (`planner schema`)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from models.domain.fields import (
    Count,
    Duration,
    Entity,
    Exponent,
    Fraction,
    Id,
    Memory,
    Money,
    Number,
    PerHour,
    PositiveCount,
    PositiveDuration,
    PositiveNumber,
    PositiveRate,
    PositiveSize,
    Power,
    PricePerGb,
    PricePerGbHour,
    PricePerHour,
    PricePerRate,
    Rate,
    Size,
    Time,
    describe,
    is_not_given,
)
from models.domain.prices import TimeOfUseEnergyPrice, TimeOfUsePrice

SlowDown = Annotated[Number, Field(ge=1)]


class TariffPiece(Entity):
    """One line of a concave bandwidth tariff P(B) = min over pieces of fixed + per_mb_s * B, and P(0) = 0."""

    fixed: PricePerHour = describe("alpha: price per hour of having any bandwidth under this piece", 0.0)
    per_mb_s: PricePerRate = describe("beta: price per hour of each MB/s", 0.0)


class TariffPoint(Entity):
    """One row of a published price list: so much bandwidth costs so much an hour."""

    mb_s: PositiveRate = describe("bandwidth")
    price: PricePerHour = describe("price per hour of that bandwidth")


class TariffTier(Entity):
    """One tier of a volume tariff: each MB/s beyond the tier before costs so much."""

    up_to: PositiveRate | None = describe("end of the tier; none (the last one only): it has no end", None)
    per_mb_s: PricePerRate = describe("price per hour of each MB/s within the tier")


class PowerTariff(Entity):
    """A power law P(B) = factor * B^exponent, B in MB/s."""

    factor: PricePerHour = describe("price per hour of the first MB/s")
    exponent: Exponent = describe("1: linear; less: each MB/s costs less than the last")
    up_to: PositiveRate = describe("most bandwidth that is sold")
    error: Annotated[Number, Field(ge=1e-3, le=0.5)] = describe(
        "by what part of the price the chords that engines reckon with may be below it (before the first chord's end: "
        "part of the price of up_to); plans pay the power law itself",
        0.01,
    )


class Storage(Entity):
    """A site's storage service: the bandwidth that readers there share, and its cache."""

    tariff: tuple[TariffPiece, ...] = describe(
        "pieces of the concave bandwidth tariff; without any of tariff, points, tiers and power bandwidth is free", ()
    )
    points: tuple[TariffPoint, ...] = describe(
        "the tariff as a price list instead: linear between its points, the last of which is the most there is",
        (),
    )
    tiers: tuple[TariffTier, ...] = describe(
        "the tariff by tiers instead, each with its price for a further MB/s; the end of the last is the most there is",
        (),
        exclude_if=is_not_given,
    )
    power: PowerTariff | None = describe("the tariff as a power law instead", None, exclude_if=is_not_given)
    bandwidth_cap: Rate | None = describe("most bandwidth that can be bought; none: no limit", None)
    cache_capacity: Size = describe("cache at the site", 0.0)
    cache_price: PricePerGbHour = describe("price of a cached GB per hour", 0.0)
    cache_speed: PositiveRate | None = describe(
        "most that one reader gets from the cache; none: no limit. A reader at least as fast reads past it",
        None,
        exclude_if=is_not_given,
    )
    billed: PositiveDuration | None = describe(
        "how long bandwidth and cache are paid for; none: the horizon, which then must be given, not auto",
        None,
    )


class Site(Entity):
    """A place with pools of nodes and a storage service."""

    id: Id = describe("name, unique among sites")
    kind: Literal["on_prem", "cloud"] = describe("on_prem: nodes are owned; cloud: nodes are rented")
    energy_price: TimeOfUseEnergyPrice = describe("price of the energy that busy GPUs draw", 0.0)
    storage: Storage = describe("storage service; none: free bandwidth, no cache", Storage())


class Unavailable(Entity):
    """A window in which some nodes of a pool cannot be used."""

    since: Time = describe("first moment of the window")
    until: Time = describe("end of the window")
    nodes: Count | tuple[Count, ...] | None = describe(
        "how many nodes (those with the highest indices), or the list of their indices; none: the whole pool",
        None,
    )


class Pool(Entity):
    """Identical nodes at one site."""

    id: Id = describe("name, unique among pools")
    site: Id = describe("site of the nodes")
    gpu: Id = describe("GPU type, e.g. A100; modes may name it instead of the pool")
    gpus_per_node: PositiveCount = describe("GPUs in each node")
    nodes: Count = describe("nodes owned (on_prem) or the quota (cloud)")
    price: TimeOfUsePrice = describe("price of a node-hour while the node is on or rented")
    gpu_memory: Memory | None = describe("memory of each GPU; none: not checked", None)
    cpu_cores: PositiveCount | None = describe("CPU cores of each node; none: not checked", None)
    ram: Memory | None = describe("RAM of each node; none: not checked", None)
    gpu_power: Power = describe("power that one busy GPU draws, cooling included", 0.0)
    billing_increment: Duration = describe(
        "a node's time is billed in whole increments from when it is switched on or rented; 0: by slots", 0.0
    )
    boot_time: Duration = describe("time from renting or switching on until a node can be used, paid for", 0.0)
    slices_per_gpu: PositiveCount = describe("into how many equal slices a GPU can be shared; 1: no sharing", 1)
    nodes_on: Count = describe("nodes that are on at the start and need no boot (those with the lowest indices)", 0)
    market: Literal["on_demand", "spot"] = describe(
        "spot: nodes may be taken back; only jobs with spot: true run", "on_demand"
    )
    interruption_rate: PerHour = describe("expected interruptions of a spot node per hour", 0.0)
    unavailable: tuple[Unavailable, ...] = describe("windows in which nodes cannot be used", ())


class Dataset(Entity):
    """Data that jobs read."""

    id: Id = describe("name, unique among datasets")
    size: PositiveSize = describe("size")
    home: Id = describe("site at which it is stored")


class Link(Entity):
    """A way for data from one site to another. Between sites without a link no data can be read."""

    source: Id = describe("site the data is at home")
    target: Id = describe("site that reads or caches it")
    price: PricePerGb = describe("price of each GB that crosses", 0.0)
    bandwidth: Rate | None = describe("most that can be read across at a time; none: no limit", None)


class Throughput(Entity):
    """A measured speed: samples per second of a model on some GPUs of one type."""

    model: Id = describe("model, as jobs name it")
    gpu: Id = describe("GPU type")
    samples_per_s: PositiveNumber = describe("samples per second of the whole job")
    gpus: PositiveCount | None = describe("number of whole GPUs; or give share", None)
    share: Fraction | None = describe("share of one GPU; or give gpus", None)
    memory: Memory | None = describe("memory needed on each GPU; none: the job's", None)


class ModeEntry(Entity):
    """One way to run a job, on one pool or on every pool with a GPU type."""

    id: Id | None = describe("name, unique in the job; none: made from GPUs and pool, such as 2xA100", None)
    pool: Id | None = describe("pool; or give gpu", None)
    gpu: Id | None = describe("GPU type; or give pool", None)
    gpus: PositiveCount | None = describe(
        "whole GPUs; more than a node has: a gang on whole nodes; or give share", None
    )
    share: Fraction | None = describe("share of one GPU, rounded up to whole slices; or give gpus", None)
    duration: PositiveDuration = describe("time to completion, alone on its GPUs")
    slowdown: SlowDown = describe("factor on the duration of a share, since neighbours disturb", 1.0)
    read_rate: Rate = describe("rate at which it reads its dataset at full speed", 0.0)
    memory: Memory | None = describe("memory needed on each GPU; none: the job's", None)
    cpu_cores: PositiveCount | None = describe("CPU cores needed on each node; none: the job's", None)
    ram: Memory | None = describe("RAM needed on each node; none: the job's", None)


class ValueStep(Entity):
    """What completing a job by some time is worth."""

    by: Time = describe("completion no later than this")
    value: Money = describe("what that is worth")


class LinearUtility(Entity):
    """A worth that falls linearly with the completion, from a time at which it is full to one at which it is 0."""

    shape: Literal["linear"] = describe("how its worth falls: linearly between two times")
    worth: Money = describe("what completing the job is worth at most")
    full_until: Time = describe("completion until then is worth all of it")
    zero_at: Time = describe("completion from then on is worth nothing; after full_until")


class StepUtility(Entity):
    """A worth that is there until some time, and not after."""

    shape: Literal["step"] = describe("how its worth falls: at once, after one time")
    worth: Money = describe("what completing the job is worth at most")
    by: Time = describe("completion no later than this is worth all of it, any other nothing")


class SigmoidUtility(Entity):
    """A worth that falls smoothly about some time: worth / (1 + exp((completion - midpoint) / scale))."""

    shape: Literal["sigmoid"] = describe("how its worth falls: smoothly about one time")
    worth: Money = describe("what completing the job is worth at most")
    midpoint: Time = describe("completion at this time is worth half of it")
    scale: PositiveDuration = describe("how gently it falls: 73 % are left this long before the midpoint, 27 % after")


class FairnessUtility(Entity):
    """Finish-time fairness: worth / max(1, rho), rho = (completion - release) / fair_time (Themis, NSDI 2020)."""

    shape: Literal["finish_time_fairness"] = describe("how its worth falls: with the ratio of its time to the fair one")
    worth: Money = describe("what completing the job is worth at most")
    fair_time: PositiveDuration = describe("time from release to completion with its fair share of the cluster")


Utility = Annotated[LinearUtility | StepUtility | SigmoidUtility | FairnessUtility, Field(discriminator="shape")]


class Place(Entity):
    """GPUs of one node."""

    node: Count = describe("node index in the pool, from 0")
    gpus: tuple[Count, ...] = describe("GPU indices in the node, from 0")


class Running(Entity):
    """Where a job runs already. Its modes state the time that remains."""

    mode: Id = describe("the mode it runs in")
    pool: Id = describe("the pool it runs in")
    places: tuple[Place, ...] = describe("its nodes and GPUs", min_length=1)
    movable: bool = describe("true: it may be stopped and run otherwise, at its restart cost", False)


class Elastic(Entity):
    """How a job may change while it runs: at slot edges it may go on in another mode or elsewhere, or pause."""

    changes: Count | None = describe("most changes, a pause and what follows it counted as one; none: any number", None)


class Job(Entity):
    """A training job."""

    id: Id = describe("name, unique among jobs")
    release: Time = describe("earliest start", 0.0)
    due: Time | None = describe("completion after this costs the weight; none: never late", None)
    weight: PricePerHour = describe("price of each hour of tardiness", 0.0)
    deadline: Time | None = describe("completion after this is not allowed; none: no hard deadline", None)
    dataset: Id | None = describe("dataset it reads; none: it reads nothing", None)
    modes: tuple[ModeEntry, ...] = describe("ways to run it; or give model and samples", ())
    model: Id | None = describe("model, whose throughputs make its modes", None)
    samples: PositiveNumber | None = describe("samples to train on, all epochs together", None)
    sample_size: Size | None = describe("size of a sample as read from the dataset; none: nothing is read", None)
    speed_levels: tuple[Fraction, ...] = describe(
        "fractions of full speed it may be throttled to, so as to need less bandwidth", (1.0,), min_length=1
    )
    memory: Memory | None = describe("memory needed on each GPU; none: not checked", None)
    cpu_cores: PositiveCount | None = describe("CPU cores needed on each node; none: not checked", None)
    ram: Memory | None = describe("RAM needed on each node; none: not checked", None)
    after: tuple[Id, ...] = describe("jobs that must be complete before it starts", ())
    reject_cost: Money | None = describe("what not running it costs; none: it must run", None)
    restart_cost: Money = describe("what stopping and starting it again costs", 0.0)
    elastic: Elastic | None = describe(
        "it may change its mode, move or pause at slot edges, each time at its restart cost; none: it runs in one mode "
        "without a break",
        None,
        exclude_if=is_not_given,
    )
    spot: bool = describe("may run in spot pools", False)
    value: tuple[ValueStep, ...] = describe("what it is worth, by time of completion; after the last step nothing", ())
    utility: Utility | None = describe(
        "what it is worth as a function of its completion; or give value", None, exclude_if=is_not_given
    )
    running: Running | None = describe("where it runs already, if it does", None)
