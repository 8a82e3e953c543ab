"""The brokers of a simulated cluster: ours, or Apache Kafka's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path

import trio

from broker.config import BrokerConfig
from broker.kit import BrokerHandle, run_broker
from broker.reference.log_dirs import look_after
from broker.service import Service
from simulator.disk import Disk
from simulator.followers import Neglect, SimulatedService
from simulator.kafka.broker import run_kafka_broker
from simulator.kafka.service import KafkaService
from simulator.process import Process, ProcessState
from simulator.refusals import refusing
from simulator.world import World
from transport.errors import ErrorCode
from transport.host import Host
from transport.metadata import TopicPartition


class BrokerProcess(Process):
    """A broker on a disk that outlives it: the reference broker, unless the settings have another service."""

    def __init__(self, world: World, node_id: int, disk: Disk) -> None:
        super().__init__(world, node_id)
        self.disk = disk
        self.handle: BrokerHandle | None = None
        self._service: SimulatedService | None = None
        self.neglect = Neglect()

    def start(self) -> None:
        """Start the process. What `refuse_orders` has begun goes for it, too."""
        super().start()
        self._disown_refused()

    def crash(self) -> None:
        """Die at once; the logs stay as they are."""
        super().crash()
        self.disk.cut()

    async def _leave(self) -> None:
        """Request a controlled shutdown, which moves leadership away first."""
        if self.handle is not None and self.started.is_set() and self.state is ProcessState.RUNNING:
            safety = self._world.safety
            before = safety.before()
            outcome = await self.handle.shut_down()
            if outcome.is_relieved:
                safety.relieved(before, self.id)

    @property
    def service(self) -> SimulatedService | None:
        """The service of the running process, None if there is none, or it is another one or not in service."""
        return self._service if self._handle_in_service() is not None else None

    def stop_fetching(self, tp: TopicPartition) -> None:
        """Do not fetch a partition from its leader until `resume_fetching`, whatever the controller orders."""
        self._world.trace.add("fault", self.host, f"does not fetch {tp}")
        self.neglect.unfetched[tp] = None
        if self._service is not None:
            self._service.stop_fetching(tp)

    def resume_fetching(self, tp: TopicPartition) -> None:
        """Fetch a partition again."""
        if tp in self.neglect.unfetched:
            self._world.trace.add("fault", self.host, f"fetches {tp} again")
            del self.neglect.unfetched[tp]
            # A paused process too: it is ordered nothing when it wakes, so it would never fetch the partition.
            if self._service is not None and self.handle_of_process() is not None:
                self._service.resume_fetching(tp)

    def refuse_orders(self, tp: TopicPartition, error: ErrorCode) -> None:
        """Answer an error to each order about a partition until `obey`."""
        self._world.trace.add("fault", self.host, f"answers {error.name} to orders about {tp}")
        self.neglect.refused[tp] = error
        self._disown_refused()

    def fail_orders(self, tp: TopicPartition, calls: Iterable[str], times: int | None) -> None:
        """Let the service raise in these methods for a partition, so many times each, or until `obey` if None."""
        for call in calls:
            often = "" if times is None else f" {times} times"
            self._world.trace.add("fault", self.host, f"raises in {call} for {tp}{often}")
            self.neglect.raising[tp, call] = times

    def _disown_refused(self) -> None:
        for tp, error in self.neglect.refused.items():
            if error is ErrorCode.KAFKA_STORAGE_ERROR:
                self.disk.disown(tp)

    def hesitate(self, seconds: float) -> None:
        """Take longer for each partition of an order until `obey`."""
        self._world.trace.add("fault", self.host, f"takes {seconds:g} s longer for orders")
        self.neglect.hesitation = seconds

    def obey(self) -> None:
        """Carry out all orders again, at once."""
        if self.neglect.refused or self.neglect.raising or self.neglect.hesitation:
            self._world.trace.add("fault", self.host, "obeys again")
        self.neglect.refused.clear()
        self.neglect.raising.clear()
        self.neglect.hesitation = 0.0

    def heed(self) -> None:
        """End all neglect."""
        for tp in list(self.neglect.unfetched):
            self.resume_fetching(tp)
        self.neglect.kept_out.clear()
        self.obey()

    @property
    def has_lost_orders(self) -> bool:
        """Whether the running process has refused an order that the controller does not repeat."""
        return self.refusals.has_lost_orders or self.neglect.has_lost_orders

    def _reference_service(self, handle: BrokerHandle) -> Service:
        self._service = SimulatedService(handle, self.disk, self.neglect)
        return self._service

    def _kafka_service(self, handle: BrokerHandle) -> KafkaService:
        self._service = service = KafkaService(handle, self.disk, self.neglect, self._world.settings.release(self.id))
        return service

    def move(self) -> None:
        """Listen on another port from the next start on."""
        self.port += 1
        self._world.trace.add("fault", self.host, f"is to listen on port {self.port}")

    def change_endpoint(self) -> bool:
        """Listen on another port at once, if in service; return whether it is."""
        handle = self._handle_in_service()
        if handle is None:
            return False
        before, self.port = self.port, self.port + 1
        self._world.trace.add("fault", self.host, f"listens on port {self.port} instead")
        self._world.network.move_listener(self.host, before, self.port)
        handle.announce(self.port)
        return True

    def _handle_in_service(self) -> BrokerHandle | None:
        """Return the handle of the broker's process if it is neither starting nor ending, nor paused."""
        return self.handle_of_process() if self.state is ProcessState.RUNNING else None

    def handle_of_process(self) -> BrokerHandle | None:
        """Return the handle of the broker's process, perhaps a paused one, if it is neither starting nor ending."""
        is_alive = self.started.is_set() and self.state is not ProcessState.DEAD
        is_ending = self.handle is not None and self.handle.nursery.cancel_scope.cancel_called
        return self.handle if is_alive and not is_ending else None

    def fail_log_dir(self, directory: int | None, *, noticed: bool = False) -> None:
        """Make a log directory fail, or all if None; if `noticed`, the broker detects it as one on real disks does."""
        self._world.trace.add("fault", self.host, f"log directory {'any' if directory is None else directory} fails")
        self.disk.fail(directory)
        handle = self._handle_in_service()
        if noticed and handle is not None and self._service is not None:
            handle.nursery.start_soon(look_after, self.disk, self._service.lose)

    def lose_disk(self) -> None:
        """Replace the disk by an empty one. Only a dead broker may lose its disk.

        A broker of Kafka's only gets a disk that works: its registration does not tell that its disk is empty, so no
        controller can know of the loss.
        """
        if self._world.settings.is_kafkas:
            self.mend_disk()
            return
        self._world.trace.add("fault", self.host, "loses its disk")
        self.disk.lost_at = trio.current_time()
        self.disk.wipe(f"disk-of-{self.id}-since-{self._world.trace.length}")

    def mend_disk(self) -> None:
        """Make the disk work again, with its contents."""
        self._world.trace.add("fault", self.host, "disk works again")
        self.disk.mend()

    async def _serve(self, host: Host) -> None:
        self.disk.begin()
        world, settings = self._world, self._world.settings
        config = BrokerConfig(
            self.id,
            Path("/nowhere"),  # the disk is in memory
            host=self.host,
            port=self.port,
            rack=settings.rack(self.id),
            zookeeper_session_timeout_ms=round(settings.session_timeout * 1000),
            min_insync_replicas=settings.min_insync_replicas,
            replica_lag_time_max_ms=round(settings.replica_lag_time * 1000),
            replica_fetch_wait_max_ms=round(settings.fetch_wait * 1000),
            replica_socket_timeout_ms=round(settings.fetch_timeout * 1000),
            replica_fetch_max_bytes=settings.fetch_bytes,
            controller_socket_timeout_ms=round(settings.controller_timeout * 1000),
        )
        self.neglect.has_lost_orders = False
        async with (
            world.ensemble.session(self.host, settings.session_timeout) as store,
            trio.open_nursery() as nursery,
        ):
            network = refusing(world.network.at(self.host), self.refusals)
            run = partial(self._runner(config), store=store, network=network, host=host)
            self.handle = await nursery.start(run)
            self.started.set()

    def _runner(self, config: BrokerConfig) -> Callable[..., Awaitable[None]]:
        settings = self._world.settings
        if settings.is_kafkas:
            return partial(run_kafka_broker, config, settings.release(self.id), self._kafka_service, self.disk)
        make_service = settings.service or self._reference_service
        return partial(run_broker, config, make_service, own_apis=settings.own_apis, storage_id=self.disk.storage_id)
