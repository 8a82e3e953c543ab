"""The options that select a cluster, and the connections of commands to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Final, TypeVar

import click
from attrs import define, field

from controller.admin.client import AdminClient
from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.move_admin import MoveAdmin
from controller.admin.opening import open_admin
from controller.admin.znode_moves import is_led_by_kafka, open_znode_moves
from klamm.cli.decorators import with_options
from klamm.cli.profiles import Place, disks_remedy, profile_option, settled
from klamm.cli.running import is_given, parse_addresses, patience_option, run
from transport.messages import MetadataResponse
from transport.network import Network, TcpNetwork
from transport.security.errors import InvalidSecurity
from transport.security.settings import read_security
from transport.store.cluster_id import ClusterId
from transport.store.security import OPEN, security_of_environment
from transport.wire.secured import secured

A = TypeVar("A")
T = TypeVar("T")

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
DEFAULT_ZOOKEEPER: Final = "127.0.0.1:2181"
BOOTSTRAP_VARIABLE: Final = "KLAMM_BOOTSTRAP_SERVER"
"""The environment variable that stands for --bootstrap-server where no cluster is named on the command line."""

_KEPT_CLUSTER: Final = f"{__name__}.cluster"
_SECURITY_VARIABLE: Final = "KLAMM_COMMAND_CONFIG"
READ_SECONDS: Final = 30.0
"""The time to keep trying to read a cluster, for commands that have another use of --timeout, or none."""


@define
class Cluster:
    """The cluster that a command works with."""

    bootstrap_server: str
    zookeeper: str | None
    timeout: float
    network: Network
    shared_disks: bool | None = None
    """Whether log directories of a broker that look alike are on one disk, None if the profile does not say so."""
    profile: str | None = None
    is_changed: bool = False
    """Whether the command changes it, and therefore prints first which one it is."""

    _is_announced: bool = field(default=False, init=False, eq=False)

    @property
    def where(self) -> str:
        """The place at which the cluster is found."""
        return self.bootstrap_server if self.zookeeper is None else self.zookeeper

    @property
    def disks_remedy(self) -> str:
        """How the user says whether log directories that look alike are on one disk."""
        return disks_remedy(Place(self.bootstrap_server, self.zookeeper, profile=self.profile))

    @classmethod
    def at(cls, place: Place, timeout: float, *, is_changed: bool = False) -> Cluster:
        """Return the cluster at a place. Raises click.ClickException for a place or a file that cannot be used."""
        bootstrap = DEFAULT_BOOTSTRAP if place.bootstrap_server is None else place.bootstrap_server
        parse_addresses(bootstrap)
        network = network_of(place.command_config)
        return cls(bootstrap, place.zookeeper, timeout, network, place.shared_disks, place.profile, is_changed)

    @asynccontextmanager
    async def open_admin(self) -> AsyncIterator[ClusterAdmin]:
        """Open an admin client for the protocol of the cluster. Raises ClusterUnreachable if no address can work."""
        opening = open_admin(
            network=self.network,
            bootstrap=parse_addresses(self.bootstrap_server),
            zookeeper_connect=self.zookeeper,
            zookeeper_security=OPEN if self.zookeeper is None else security_of_environment(),
            timeout=self.timeout,
            waits=False,
        )
        async with opening as admin:
            if self.is_changed:
                await self.announce_to(admin)
            yield admin

    def announce(self) -> None:
        """Print on stderr which cluster the command is about to change, before it asks a question about that."""
        self.ask(self.announce_to)

    async def announce_to(self, admin: MoveAdmin) -> None:
        """Print on stderr, once, which cluster the command is about to change."""
        if not self._is_announced:
            self._is_announced = True
            print_cluster(await self._id_through(admin), self.where, self.profile)

    async def _id_through(self, admin: MoveAdmin) -> str | None:
        # Where Apache Kafka's own controller is active, only moves work, through znodes: `admin` has nothing to ask.
        if isinstance(admin, AdminClient) and admin.store is not None:
            return await ClusterId(admin.store).read()
        return await admin.cluster_id()

    def ask(self, question: Callable[[ClusterAdmin], Awaitable[T]]) -> T:
        """Open an admin client, and return what `question` returns; errors are reported as by `run`."""
        return run(partial(_answer, self.open_admin, question))

    def ask_settings(self, question: Callable[[ClusterAdmin], Awaitable[T]]) -> T:
        """Do the same with a client for settings."""
        return run(partial(_answer, self.open_settings, question))

    @asynccontextmanager
    async def open_settings(self) -> AsyncIterator[ClusterAdmin]:
        """Open a client for settings: as `open_admin`, or of Kafka's brokers if a controller of ours governs them."""
        async with self.open_admin() as admin, self.settings_of(admin) as settings:
            yield settings

    @asynccontextmanager
    async def settings_of(
        self, admin: ClusterAdmin, metadata: MetadataResponse | None = None
    ) -> AsyncIterator[ClusterAdmin]:
        """Give a client for the settings of the cluster of another client, with its `metadata` if they are known.

        Kafka's brokers know more settings than our controller, and have defaults of their own.
        """
        if not isinstance(admin, AdminClient):
            yield admin
            return
        found = await admin.read_metadata(()) if metadata is None else metadata
        if not found.are_kafkas:
            yield admin
            return
        from controller.admin.kafka_admin import open_kafka_admin

        if not found.brokers:
            raise click.ClickException("no broker of Kafka's is alive, and only they tell and take settings")
        addresses = [(broker.host, broker.port) for broker in found.brokers]
        async with open_kafka_admin(self.network, addresses, self.timeout) as kafka:
            yield kafka

    def ask_moves(self, question: Callable[[MoveAdmin], Awaitable[T]]) -> T:
        """Do the same with a client for moves."""
        return run(partial(_answer, self.open_moves, question))

    @asynccontextmanager
    async def open_moves(self) -> AsyncIterator[MoveAdmin]:
        """Open a client for moves: as `open_admin`, or of ZooKeeper if Apache Kafka's own controller is active."""
        async with self.open_admin() as admin:
            if not isinstance(admin, AdminClient) or admin.store is None or not await is_led_by_kafka(admin.store):
                yield admin
                return
            async with open_znode_moves(admin.store, self.timeout) as moves:
                yield moves


def print_cluster(id_: str | None, where: str, profile: str | None = None) -> None:
    """Print on stderr which cluster a command is about to change."""
    named = "cluster" if id_ is None else f"cluster {id_}"
    of_profile = "" if profile is None else f" (profile {profile})"
    click.echo(f"{named} at {where}{of_profile}", err=True)


async def _answer(opening: Callable[[], AbstractAsyncContextManager[A]], question: Callable[[A], Awaitable[T]]) -> T:
    async with opening() as admin:
        return await question(admin)


def command_config_option(command: click.decorators.FC) -> click.decorators.FC:
    """Add the option for the security of connections to the cluster."""
    return click.option(
        "--command-config",
        type=click.Path(dir_okay=False),
        envvar=_SECURITY_VARIABLE,
        show_envvar=True,
        metavar="FILE",
        help="The security of the cluster, in the form of Kafka's client.properties.",
    )(command)


def network_of(command_config: str | None) -> Network:
    """Return the network of a command. Raises click.ClickException for a file that cannot be used."""
    if command_config is None:
        return TcpNetwork()
    try:
        return secured(TcpNetwork(), read_security(Path(command_config)), serves=False)
    except InvalidSecurity as error:
        raise click.ClickException(f"--command-config: {error}") from None


_OPTIONS: Final = (
    click.option(
        "--bootstrap-server",
        envvar=BOOTSTRAP_VARIABLE,
        show_envvar=True,
        show_default=DEFAULT_BOOTSTRAP,
        metavar="HOST:PORT,...",
        help="Brokers or controllers to contact first.",
    ),
    click.option("--zookeeper", metavar="HOST:PORT/CHROOT", help="Find the controller through ZooKeeper instead."),
    command_config_option,
    profile_option,
    patience_option(30.0, "The time to keep trying."),
)


def cluster_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options of `Cluster`; the command receives them as `cluster`."""
    return _cluster_options(command, is_changed=False)


def changed_cluster_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the same options to a command that changes the cluster: it prints first, on stderr, which one that is."""
    changing = _cluster_options(command, is_changed=True)
    vars(changing)["changes_cluster"] = True
    return changing


def announcing_cluster_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the same options to a command that may change the cluster: it calls `announce_to` before it does."""
    announcing = cluster_options(command)
    vars(announcing)["changes_cluster"] = True
    return announcing


def _cluster_options(command: Callable[..., T], *, is_changed: bool) -> Callable[..., T]:
    @wraps(command)
    def with_cluster(
        *,
        bootstrap_server: str | None,
        zookeeper: str | None,
        command_config: str | None,
        profile: Place | None,
        timeout: float,
        **options: object,
    ) -> T:
        if is_given("bootstrap_server") and zookeeper is not None:
            raise click.UsageError("--bootstrap-server and --zookeeper each name a cluster: use only one of them")
        place = settled(profile, Place(bootstrap_server, zookeeper, command_config))
        # With --watch the command runs again and again, and prints only once which cluster it changes.
        kept = click.get_current_context().meta
        cluster = kept.setdefault(_KEPT_CLUSTER, Cluster.at(place, timeout, is_changed=is_changed))
        return command(cluster=cluster, **options)

    return with_options(with_cluster, _OPTIONS)


_LIVE: Final = (
    click.option(
        "--bootstrap-server",
        envvar=BOOTSTRAP_VARIABLE,
        show_envvar=True,
        metavar="HOST:PORT,...",
        help="Brokers or controllers of a cluster to read.",
    ),
    command_config_option,
    profile_option,
)


def live_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a cluster that is read instead of a file; the command receives it as `live`, or None.

    A file or a ZooKeeper on the command line comes before a cluster that only the environment names.
    """

    @wraps(command)
    def with_live(
        *, bootstrap_server: str | None, command_config: str | None, profile: Place | None, **options: object
    ) -> None:
        place = settled(profile, Place(bootstrap_server, None, command_config))
        is_other = is_given("zookeeper") or (is_given("snapshot") and not is_given("profile"))
        if not place.is_named or (is_other and not is_given("bootstrap_server")):
            if is_given("command_config"):
                raise click.UsageError("--command-config is the security of a cluster: name it with --bootstrap-server")
            command(live=None, **options)
        elif place.zookeeper is not None and "zookeeper" in options:
            command(live=None, **{**options, "zookeeper": place.zookeeper})
        else:
            command(live=Cluster.at(place, READ_SECONDS), **options)

    return with_options(with_live, _LIVE)


def zookeeper_option(command: click.decorators.FC) -> click.decorators.FC:
    """Add the option for the address of ZooKeeper."""
    return click.option(
        "--zookeeper",
        default=DEFAULT_ZOOKEEPER,
        show_default=True,
        metavar="HOST:PORT/CHROOT",
        help="The metadata store.",
    )(command)
