"""The demo cluster itself: time passes in steps, gangs come, wait, run and go, the scheduler and binder do their part.

Everything follows from the seed and the moments given to `step`; nothing here reads a clock or sleeps. What the
cluster looks like from outside is made in `objects`, who gets which node is decided in `scheduling`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable
from datetime import datetime, timedelta

from gangdash.simulator.director import Director
from gangdash.simulator.events import EventBook
from gangdash.simulator.gangs import Gang, Member, Service
from gangdash.simulator.identity import about_gang, about_pod, podgroup_name
from gangdash.simulator.plant import A100, H200, NIGHT, Node, build_nodes
from gangdash.simulator.scheduling import Decision, Decisions, decide
from gangdash.simulator.services import assistant, embeddings, service_gangs, services
from gangdash.simulator.wording import eviction_message, job_message, not_ready_message

SCHEDULER, BINDER, KUBELET = "kai-scheduler", "binder", "kubelet"
# The binder stops answering for a while, now and then.
_BINDER_EVERY, _BINDER_FOR = timedelta(minutes=9), timedelta(seconds=70)
# How long a finished Job is kept, and how long its controller waits before it replaces evicted pods.
_FINISHED_STAYS, _REPLACED_AFTER = 75, timedelta(seconds=15)


class World:
    """One demo cluster. `step` moves it to a later moment."""

    def __init__(self, seed: int, now: datetime, scheduler: Callable[[World], Decisions] = decide) -> None:
        self.seed = seed
        self.born = now
        self.installed = now - timedelta(days=41)
        self.now = now
        self.rng = random.Random(seed)  # noqa: S311 (a play, not a secret)
        self.nodes: dict[str, Node] = build_nodes()
        self.gangs: list[Gang] = []
        self.services: list[Service] = services(now)
        self.events = EventBook()
        self.director = Director(self.rng)
        self._scheduler = scheduler
        self._decided: tuple[Hashable, Decisions] = (None, {})
        self._furnish()

    def step(self, now: datetime) -> None:
        """Let everything happen that happens until `now`."""
        elapsed = max(1, int((now - self.now).total_seconds()))
        self.now = now
        self._end_runs()
        self._remove_gone()
        self._replace_evicted()
        self._bind()
        self._pull_images()
        self._owners_act()
        self._schedule(elapsed)
        self.gangs.extend(list(self.director.arrivals(self.gangs, now)))
        self.events.forget(now)

    @property
    def binder_up(self) -> bool:
        """Tell whether the binder answers at this moment."""
        return (self.now - self.born) % _BINDER_EVERY < _BINDER_EVERY - _BINDER_FOR

    def members(self) -> Iterable[tuple[Gang, Member]]:
        """Return every pod with its gang."""
        return ((gang, member) for gang in self.gangs for member in gang.members)

    def _furnish(self) -> None:
        """Put the anchors on their nodes, before anything else comes."""
        racks = {
            rack: [node.name for node in self.nodes.values() if node.rack == rack] for rack in ("rack-a1", "rack-a2")
        }
        places = {"llama-70b": racks["rack-a1"][:4], "mixtral": racks["rack-a2"][:4]}
        for service in self.services:
            self.gangs.extend(service_gangs(service, self.rng, places.get(service.name, [])))
        self.gangs.extend(embeddings(self.now, self._of(A100)))
        cordoned, used = self._of(H200)[:2], self._of(H200)[2:]
        for name in cordoned:
            self.nodes[name].cordoned = True
        self.gangs.append(assistant(self.now, self.rng, used))

    def _of(self, product: str) -> list[str]:
        return [node.name for node in self.nodes.values() if node.product == product and node.pool != NIGHT]

    def _end_runs(self) -> None:
        """End the gangs whose time is up: Jobs' pods finish and stay a while, other pods are told to go."""
        for gang in self.gangs:
            if gang.started is None or gang.run_seconds is None or gang.ends:
                continue
            ran = (self.now - gang.started).total_seconds()
            if gang.job and ran >= gang.run_seconds:
                for member in gang.members:
                    member.finished = member.finished or self.now
            if ran >= gang.run_seconds + (_FINISHED_STAYS if gang.job else 0):
                gang.ends = True
                self._tell_to_go(gang.members)

    def _tell_to_go(self, members: Iterable[Member]) -> None:
        """Delete pods of one gang: at once where they run nowhere, else after their shutdown."""
        shutdown = timedelta(seconds=self.rng.randint(12, 28))
        for member in members:
            member.deleted = self.now
            member.gone_at = self.now + (shutdown if member.holds else timedelta(0))

    def _remove_gone(self) -> None:
        for gang in list(self.gangs):
            gone = [member for member in gang.members if member.gone_at and member.gone_at <= self.now]
            gang.members = [member for member in gang.members if member not in gone]
            if gone and gang.scene == "cordoned" and not gang.members:
                self._swap_maintenance({member.node for member in gone if member.node})
            if not gang.members and (gang.ends or not gang.job):
                self.gangs.remove(gang)

    def _swap_maintenance(self, freed: set[str]) -> None:
        """Take the machines of a gang that ended into maintenance, and give back the ones that were in it."""
        for node in self.nodes.values():
            if node.product == H200:
                node.cordoned = node.name in freed

    def _replace_evicted(self) -> None:
        """Let Jobs make new pods for the ones that were evicted, a while after these are gone."""
        for gang in self.gangs:
            if gang.job and gang.evicted and not gang.members and self.now - gang.evicted >= _REPLACED_AFTER:
                self.director.complete(gang, self.now)

    def _bind(self) -> None:
        """Let the binder answer what the scheduler asked in an earlier step."""
        if not self.binder_up:
            return
        for gang, member in self.members():
            if member.asked is None or member.bound is not None:
                continue
            member.bound = self.now
            text = f"Pod bound successfully to node {member.node}"
            self.events.record(about_pod(self.seed, gang, member), BINDER, "Bound", text, self.now)

    def _pull_images(self) -> None:
        """Let kubelets complain of images that are not there."""
        for gang, member in self.members():
            if gang.image_broken and member.bound and member.deleted is None:
                text, about = f'Failed to pull image "{gang.image}": not found', about_pod(self.seed, gang, member)
                self.events.record(about, KUBELET, "Failed", text, self.now, warning=True)
                text = f'Back-off pulling image "{gang.image}"'
                self.events.record(about, KUBELET, "BackOff", text, self.now)

    def _owners_act(self) -> None:
        """Let owners whose patience ended leave, or mend what kept their gang."""
        for gang in list(self.gangs):
            if not self.director.may_leave(gang, self.gangs, self.now):
                continue
            match self.director.scenes[gang.scene].then:
                case "ungate":
                    for member in gang.members:
                        member.gates = ()
                case "complete":
                    self.director.complete(gang, self.now)
                case _:
                    self.gangs.remove(gang)
            gang.scene, gang.patience = "everyday", None

    def _schedule(self, elapsed: int) -> None:
        """Run the scheduler where anything it looks at has changed, and let it say again what it said where not."""
        if self._decided[0] != self._what_the_scheduler_sees():
            self._decided = None, self._scheduler(self)
        decisions = self._decided[1]
        for gang in self.gangs:
            decision = decisions.get((gang.namespace, podgroup_name(self.seed, gang)))
            if decision is not None and not gang.ends:
                self._apply(gang, decision, decisions, elapsed)
        # A cycle has already counted what it bound itself.
        self._decided = self._what_the_scheduler_sees(), decisions

    def _what_the_scheduler_sees(self) -> Hashable:
        pods = (
            (gang.namespace, member.name, member.node, member.deleted is None, member.gates)
            for gang, member in self.members()
            if member.finished is None
        )
        return tuple(pods), tuple(node.name for node in self.nodes.values() if node.cordoned)

    def _apply(self, gang: Gang, decision: Decision, decisions: Decisions, elapsed: int) -> None:
        for member in gang.members:
            if node := decision.bound.get(member.name):
                self._hand_over(gang, member, node)
        if decision.bound:
            gang.started = gang.started or self.now
            gang.last_start, gang.message, gang.errors = gang.started, "", ()
        victims = [member for member in gang.members if member.name in decision.evicted and member.deleted is None]
        if victims:
            self._evict(gang, victims, decision, decisions)
        elif gang.waits and not decision.bound:
            self._report(gang, decision, elapsed)

    def _hand_over(self, gang: Gang, member: Member, node: str) -> None:
        if member.asked is None:
            member.node, member.asked = node, self.now
            text = f"Successfully assigned pod {gang.namespace}/{member.name} to node {node} at node-pool default"
            self.events.record(about_pod(self.seed, gang, member), SCHEDULER, "Scheduled", text, self.now)

    def _evict(self, gang: Gang, victims: list[Member], decision: Decision, decisions: Decisions) -> None:
        """Take pods off their nodes for whoever was promised room by the same action."""
        gainers = [key for key, other in decisions.items() if other.promised and other.action == decision.action]
        namespace, name = gainers[0] if gainers else ("", "")
        annotations = {
            "evictor-action-type": decision.action,
            "evictor-pod-group-namespace": namespace,
            "evictor-pod-group-name": name,
            "num-evicted-pods": str(len(victims)),
        }
        about = about_gang(self.seed, gang)
        for member in victims:
            text = eviction_message(gang, member.name, decision.action, f"{namespace}/{name}")
            self.events.record(about, SCHEDULER, "Evict", text, self.now, annotations=annotations)
        self._tell_to_go(victims)
        gang.evicted, gang.started = self.now, None

    def _report(self, gang: Gang, decision: Decision, elapsed: int) -> None:
        """Write what the scheduler tells about a gang that waits, once for each second of waiting."""
        group = about_gang(self.seed, gang)
        if not decision.ready:
            self.events.record(group, SCHEDULER, "NotReady", not_ready_message(gang), self.now, times=elapsed)
            return
        for member in gang.members:
            about = about_pod(self.seed, gang, member)
            if node := decision.promised.get(member.name):
                text = f"Pod {gang.namespace}/{member.name} was pipelined to node {node}"
                self.events.record(about, SCHEDULER, "Pipelined", text, self.now, times=elapsed)
        if decision.promised:
            return
        self._say(gang, decision)
        self.events.record(group, SCHEDULER, "Unschedulable", gang.message, self.now, times=elapsed)
        for member in gang.members:
            if member.waits and not member.gates:
                about = about_pod(self.seed, gang, member)
                text = gang.message
                self.events.record(about, SCHEDULER, "Unschedulable", text, self.now, warning=True, times=elapsed)

    def _say(self, gang: Gang, decision: Decision) -> None:
        """Keep the condition's text; only another text makes it a new one."""
        message = job_message(decision.errors)
        if message != gang.message:
            gang.message, gang.message_since = message, self.now
            gang.transition += 1
        gang.errors = decision.errors
