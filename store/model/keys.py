"""The names of what we keep in Redis, for Python code and for people. Lua derives the same names from the root.

`<ns>` is the namespace's name in braces, for example `{toolonce}`. Redis takes it as a hash tag: all keys of a
namespace lie in one slot of a cluster.

<ns>:call:<key>        hash    the record (retention: forget.lua)
<ns>:turn:<turn key>   hash    call key -> when its submission came (us), and its place in that
<ns>:history:<key>     list    the call's last events, JSON lines
<ns>:evidence:<key>    list    outcomes that came too late to count
<ns>:in:<state>        zset    calls in a state by the time they entered it (ms, with microseconds: a total order);
                               of those that run, `leases` is the index
<ns>:tombs:<state>     zset    settled calls whose body is gone
<ns>:leases            zset    running calls by the end of their lease (ms)
<ns>:pushed:<queue>    zset    calls with a pointer in the queue, by order of pushing
<ns>:pointer_scan      hash    queue -> border and time of the last scan for lost pointers
<ns>:delayed, :deadlines, :approvals   zset   calls by the time that is due (ms)
<ns>:next:<slot>       string  job and token of the call that a worker's slot got with the end of another; for an hour
<ns>:reconcile:<tool>   zset    unknown calls by the time of the next reconcile
<ns>:slots:<limit>     set     calls that hold a slot of a limit; limit = tool:<name> or tenant:<name>
<ns>:waiting:<limit>   zset    calls that wait for one, by their old place in the queue; for the limit
                               "replicas" mutating calls wait while too few replicas answer, for rate:tool:<name>
                               those over the tool's rate; "pause <target>" is no limit: such calls are parked until the
                               pause is over
<ns>:saturated_limits  set     limits that calls wait for, also "replicas" and "pause <target>"
<ns>:saturated_rates   set     rates that calls wait for: rate:tool:<name>
<ns>:queued_by_tenant  hash    tenant -> its queued calls
<ns>:lane:<lane>       zset    calls that go one after the other, in order of admission
<ns>:followers:<key>   set     calls that run only after this one succeeded
<ns>:no_worker:<tool>  set     calls held because no worker serves the tool
<ns>:held_back         set     mutating calls held since the store went back
<ns>:unique:<unique key>   zset   calls that may be the same action: 0 has the key, a place follows (of a tool that
                       holds duplicates: every open call), +inf has failed and does not have it
<ns>:unique_unfinished  zset   unique keys whose followers are not all told yet, by the place of the last one that is
<ns>:buckets           hash    rate:tool:<name> -> from when on its next start keeps the rate (us)
<ns>:woken:<rate>      zset    calls that were woken for a start and are not claimed yet, by when (ms)
<ns>:controls          hash    limits, rates, pauses: "<kind> <target>" of people (value, a space, JSON of who, when,
                       why), "code <kind> <target>" of the tools' code; uncounted: a limit is newer than calls that run
<ns>:flags             hash    went_back..., loss_accepted..., clock_back..., full: since when (ms);
                       rates_wait: calls wait for a rate; queue_limits, pauses: how many there are
<ns>:counts, :tools, :newest   hash
<ns>:marks             hash    removed_fence (highest of removed records), accepted_fence (up to it a loss is accepted),
                       clock (highest Redis time seen), server (its run id), cut_... (borders, after a step back)
<ns>:fence, :pushes, :admissions, :tools_version   counters
<ns>:memory_looked_at  string  when admission asks the server about its memory again (ms)
<ns>:replicas          string  the largest number of replicas ever seen
<ns>:events            stream  every transition, capped
<ns>:argument_errors:<scope>   hash   tool -> unusable calls in a row, for a day since the last
<ns>:request:<operation>:<key>:<id>   string   the answer to an operator's request, for a day
<ns>:reply_ids:<scope>   hash   call id in use -> turn that used it first; "" -> how many records with an id there are
<ns>:wake:<turn key>   channel a call of the turn came to rest; <ns>:wake:<worker>: one of its calls is to stop
<ns>:worker:<name>     string  which process a worker is, or that it has ended in order; for a day
<ns>:inbox:<tenant>    stream  calls from harnesses in any language; <ns>:inboxes lists the tenants that may have some
<ns>:answers:<tenant>:<entry>   stream   what became of an inbox entry's calls, for a day
<ns>:aborted           zset    provider turns that were lost, by when (ms, with microseconds), capped
<ns>:journal:<scope>   hash    what a conversation has come to, by number
<ns>:quarantine        stream  inbox entries that could not be dealt with, with the reason
<ns>:rq:<RQ's key>     what RQ 3.0 keeps where its RQ_KEY_PREFIX is <ns>:rq; its queues are named <namespace>.<queue>
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

DEFAULT_NAMESPACE = "toolonce"
Timed = Literal["leases", "delayed", "deadlines", "approvals"]
_NAME = re.compile(r"(?!rq\Z)[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class Namespace:
    """One installation's share of a Redis; part of every key and every digest.

    Raises:
        ValueError: the name has other characters than letters, digits, ``_ -``, is longer than 64, or is `rq`, a prefix
            that others give RQ's own keys. No dot: RQ's queues are named ``<namespace>.<queue>``.
    """

    name: str = DEFAULT_NAMESPACE

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise ValueError(f"namespace {self.name!r}: use letters, digits, '_' or '-', at most 64, and not 'rq'")

    @property
    def root(self) -> str:
        """What all keys begin with: the namespace as the keys' hash tag."""
        return f"{{{self.name}}}:"

    @property
    def rq_prefix(self) -> str:
        """What RQ 3.0 reads as `RQ_KEY_PREFIX`: the beginning of all its keys and channels."""
        return f"{self.root}rq"

    @property
    def rq_queues(self) -> str:
        """RQ's set of the keys of its queues."""
        return f"{self.rq_prefix}:queues"

    @property
    def rq_workers(self) -> str:
        """RQ's set of the keys of its workers."""
        return f"{self.rq_prefix}:workers"

    def rq_workers_of(self, queue: str) -> str:
        """The same for one queue, given by RQ's name of it."""
        return f"{self.rq_workers}:{queue}"

    def rq_worker(self, worker: str) -> str:
        """RQ's hash of a worker."""
        return f"{self.rq_prefix}:worker:{worker}"

    def rq_channel(self, worker: str) -> str:
        """Where a worker hears RQ's commands."""
        return f"{self.rq_prefix}:pubsub:{worker}"

    def rq_job(self, job: str) -> str:
        """RQ's hash of a job."""
        return f"{self.rq_prefix}:job:{job}"

    def rq_registry(self, kind: str, queue: str) -> str:
        """RQ's zset of the jobs of a queue that are in a state: `wip`, `finished` or `failed`."""
        return f"{self.rq_prefix}:{kind}:{self.queue_name(queue)}"

    def queue_name(self, queue: str) -> str:
        """RQ's name of a queue."""
        return f"{self.name}.{queue}"

    def queue_key(self, queue: str) -> str:
        """RQ's list of a queue: the pointers that wait."""
        return f"{self.rq_prefix}:queue:{self.queue_name(queue)}"

    def intermediate_key(self, queue: str) -> str:
        """Where BLMOVE puts what a worker has taken and not yet claimed (RQ 3.0: intermediate_queue.py)."""
        return f"{self.queue_key(queue)}:intermediate"

    def record(self, call: str) -> str:
        """The hash of a call's record."""
        return f"{self.root}call:{call}"

    def worker_key(self, worker: str) -> str:
        """Which process a worker is, as long as it may be asked for."""
        return f"{self.root}worker:{worker}"

    def wake_channel(self, turn_key: str) -> str:
        """Where the waiters of a turn are woken."""
        return f"{self.root}wake:{turn_key}"

    def timed(self, what: Timed) -> str:
        """The sorted set of the calls that something is due for, by when."""
        return f"{self.root}{what}"

    def pushed(self, queue: str) -> str:
        """The sorted set of the calls with a pointer in this queue."""
        return f"{self.root}pushed:{queue}"

    @property
    def counts(self) -> str:
        """The hash of the counters."""
        return f"{self.root}counts"

    @property
    def queued_by_tenant(self) -> str:
        """The hash of how many queued calls each tenant has."""
        return f"{self.root}queued_by_tenant"

    @property
    def marks(self) -> str:
        """The hash of what the store has been seen to be at: fences, clock, server."""
        return f"{self.root}marks"

    @property
    def controls(self) -> str:
        """The hash of what people and the code say about which calls may run now."""
        return f"{self.root}controls"

    @property
    def replicas(self) -> str:
        """The largest number of replicas ever seen."""
        return f"{self.root}replicas"

    @property
    def quarantine(self) -> str:
        """The stream of the inbox entries that could not be dealt with."""
        return f"{self.root}quarantine"

    def slots(self, limit: str) -> str:
        """The set of the calls that hold a slot of this limit."""
        return f"{self.root}slots:{limit}"

    def waiting(self, limit: str) -> str:
        """The sorted set of the calls that wait for a slot of this limit."""
        return f"{self.root}waiting:{limit}"

    @property
    def saturated_limits(self) -> str:
        """The set of the limits that calls wait for."""
        return f"{self.root}saturated_limits"

    @property
    def events(self) -> str:
        """The stream of events."""
        return f"{self.root}events"

    def no_worker(self, tool: str) -> str:
        """The set of the calls that wait until a worker serves this tool."""
        return f"{self.root}no_worker:{tool}"

    @property
    def inboxes(self) -> str:
        """The set of tenants that have an inbox."""
        return f"{self.root}inboxes"

    def inbox(self, tenant: str) -> str:
        """The stream of a tenant's inbox."""
        return f"{self.root}inbox:{tenant}"

    def answers(self, tenant: str, entry: str) -> str:
        """The stream of the answers to one inbox entry."""
        return f"{self.root}answers:{tenant}:{entry}"
