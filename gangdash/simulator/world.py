"""The demo cluster itself: time passes in steps, gangs come, wait, run and go, the scheduler and binder do their part.

Everything follows from the seed and the moments given to `step`; nothing here reads a clock or sleeps. What the
cluster looks like from outside is made in `objects`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta

from gangdash.simulator.director import Director
from gangdash.simulator.events import EventBook
from gangdash.simulator.gangs import Gang, Member, Service, Shape
from gangdash.simulator.identity import about_gang, about_pod
from gangdash.simulator.placement import Cycle, Decision
from gangdash.simulator.plant import A100, H200, NIGHT, Node, build_nodes
from gangdash.simulator.services import assistants, embeddings, service_gangs, services
from gangdash.simulator.wording import job_message, not_ready_message

SCHEDULER, BINDER = "kai-scheduler", "binder"
# What the agents of each node use: exporter, device plugin, log shipper.
AGENT = Shape(cpu=300, memory=512)
# The binder stops answering for a while, now and then.
_BINDER_EVERY, _BINDER_FOR = timedelta(minutes=9), timedelta(seconds=70)
_FINISHED_STAYS = 75


class World:
    """One demo cluster. `step` moves it to a later moment."""

    def __init__(self, seed: int, now: datetime) -> None:
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
        self._furnish()

    def step(self, now: datetime) -> None:
        """Let everything happen that happens until `now`."""
        elapsed = max(1, int((now - self.now).total_seconds()))
        self.now = now
        self._end_runs()
        self._remove_gone()
        self._bind()
        self._pull_images()
        self._owners_act()
        self._schedule(elapsed)
        for gang in list(self.director.arrivals(self.gangs, now)):
            self.gangs.append(gang)
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
        by_rack = {
            rack: [node.name for node in self.nodes.values() if node.rack == rack and node.gpus]
            for rack in ("rack-a1", "rack-a2")
        }
        places = {"llama-70b": by_rack["rack-a1"][:4], "mixtral": by_rack["rack-a2"][:4]}
        for service in self.services:
            self.gangs.extend(service_gangs(service, self.rng, places.get(service.name, [])))
        self.gangs.extend(embeddings(self.now, self._of(A100)))
        cordoned, used = self._of(H200)[:2], self._of(H200)[2:]
        for name in cordoned:
            self.nodes[name].cordoned = True
        self.gangs.extend(assistants(self.now, self.rng, used))

    def _of(self, product: str) -> list[str]:
        return [node.name for node in self.nodes.values() if node.product == product and node.pool != NIGHT]

    def _end_runs(self) -> None:
        """End the gangs whose time is up: Jobs' pods finish, other pods are told to go."""
        for gang in self.gangs:
            if gang.started is None or gang.run_seconds is None or gang.leaving:
                continue
            if self.now - gang.started < timedelta(seconds=gang.run_seconds):
                continue
            for member in gang.members:
                if gang.job and member.finished is None:
                    member.finished = self.now
            stays = _FINISHED_STAYS if gang.job else 0
            if self.now - gang.started >= timedelta(seconds=gang.run_seconds + stays):
                self._tell_to_go(gang)

    def _tell_to_go(self, gang: Gang) -> None:
        """Delete a gang's pods: at once where they run nowhere, else after their shutdown."""
        shutdown = timedelta(seconds=self.rng.randint(12, 28))
        for member in gang.members:
            member.deleted = self.now
            member.gone_at = self.now + (shutdown if member.holds else timedelta(0))

    def _remove_gone(self) -> None:
        for gang in list(self.gangs):
            gone = [member for member in gang.members if member.gone_at and member.gone_at <= self.now]
            if not gone:
                continue
            gang.members = [member for member in gang.members if member not in gone]
            if gang.scene == "cordoned" and not gang.members:
                self._swap_maintenance({member.node for member in gone if member.node})
            if not gang.members:
                self.gangs.remove(gang)

    def _swap_maintenance(self, freed: set[str]) -> None:
        """Take the machines of a gang that ended into maintenance, and give back the ones that were in it."""
        for node in self.nodes.values():
            if node.product == H200:
                node.cordoned = node.name in freed

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
                self.events.record(about, "kubelet", "Failed", text, self.now, warning=True)
                text = f'Back-off pulling image "{gang.image}"'
                self.events.record(about, "kubelet", "BackOff", text, self.now)

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
        for decision in Cycle(self.nodes.values(), self.gangs, AGENT).run():
            self._apply(decision, elapsed)

    def _apply(self, decision: Decision, elapsed: int) -> None:
        gang = decision.gang
        gang.promised = dict(decision.promised)
        for member in gang.members:
            if node := decision.bound.get(member.name):
                self._hand_over(gang, member, node)
        if decision.bound and gang.started is None:
            gang.started = self.now
        self._report(gang, decision, elapsed)

    def _hand_over(self, gang: Gang, member: Member, node: str) -> None:
        member.node, member.asked = node, self.now
        text = f"Successfully assigned pod {gang.namespace}/{member.name} to node {node} at node-pool default"
        self.events.record(about_pod(self.seed, gang, member), SCHEDULER, "Scheduled", text, self.now)

    def _report(self, gang: Gang, decision: Decision, elapsed: int) -> None:
        """Write what the scheduler tells about a gang that waits, once for each second of waiting."""
        if decision.errors != gang.errors:
            gang.errors, gang.errors_since = decision.errors, self.now
            gang.transition += bool(decision.errors)
        group = about_gang(self.seed, gang)
        if decision.errors:
            text = job_message(decision.errors)
            self.events.record(group, SCHEDULER, "Unschedulable", text, self.now, times=elapsed)
            for member in gang.members:
                if member.waits and not member.gates:
                    about = about_pod(self.seed, gang, member)
                    self.events.record(about, SCHEDULER, "Unschedulable", text, self.now, warning=True, times=elapsed)
        elif not gang.ready():
            self.events.record(group, SCHEDULER, "NotReady", not_ready_message(gang), self.now, times=elapsed)
        for pod, node in decision.promised.items():
            member = next(member for member in gang.members if member.name == pod)
            text = f"Pod {gang.namespace}/{pod} was pipelined to node {node}"
            self.events.record(
                about_pod(self.seed, gang, member), SCHEDULER, "Pipelined", text, self.now, times=elapsed
            )
