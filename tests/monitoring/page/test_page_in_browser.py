"""The page in a real browser; skipped where there is none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest
import trio
from attrs import frozen

from controller.monitoring.page import broadcast
from controller.monitoring.page.broadcast import MAX_LISTENERS
from tests.kit.browser import Browser, Tab, running_browser
from tests.kit.live_page import LivePage
from tests.kit.service import Controllers
from tests.spark.report.chromium import MISSING, chromium
from transport.messages import RolloutMove, RolloutOrder
from transport.metadata import BrokerRegistration, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create

pytestmark = pytest.mark.skipif(chromium() is None, reason=MISSING)

TP = TopicPartition("orders", 0)
MOVES = "[...document.querySelectorAll('#moves tbody tr')].map(row => row.innerText.replaceAll(/\\s+/g, ' '))"
EVIL = "<img src=x onerror=document.title='taken'>"


@frozen
class Shown:
    """A page in a browser, and the cluster that it shows."""

    cluster: LivePage
    tab: Tab

    async def until_live(self) -> None:
        await self.tab.until("document.getElementById('stream').dataset.state === 'live'")

    async def count(self, label: str) -> str:
        """Return the number over a label."""
        found = f"[...document.querySelectorAll('#counts li')].find(item => item.lastChild.textContent === '{label}')"
        return str(await self.tab.run(f"{found}.firstChild.textContent"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture
async def shown(controllers: Controllers, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shown]:
    monkeypatch.setattr(broadcast, "INTERVAL_SECONDS", 0.05)
    async with LivePage.of(controllers, (1, 2, 3)) as cluster:
        await cluster.create_topic("orders", (1, 2), (2, 1), (2, 3))
        async with browser.opened(cluster.url) as tab:
            shown = Shown(cluster, tab)
            await shown.until_live()
            yield shown


@pytest.mark.requirement("B5", "D11")
async def test_a_move_begins_appears_and_ends(shown: Shown) -> None:
    tab = shown.tab
    assert await tab.run(MOVES) == []
    assert "None is in progress." in await tab.text()
    await shown.cluster.move(TP, (3, 2))
    await tab.until(f"{MOVES}.length === 1")
    [row] = await tab.run(MOVES)
    assert row == "orders-0 3 1 unknown unknown unknown unknown broker 3 to join the ISR"
    await tab.until("document.getElementById('decisions').innerText.includes('orders-0: replicas [1, 2] → [3, 2]')")
    assert await shown.count("moves") == "1"
    await shown.cluster.catch_up(TP, 1, 2, 3)
    await tab.until(f"{MOVES}.length === 0")
    assert await shown.count("moves") == "0"
    await tab.until("document.getElementById('decisions').innerText.includes('leader 1 → 3')")
    assert tab.console == []


async def test_a_rollout_is_shown_while_there_is_one(shown: Shown) -> None:
    assert not await shown.tab.run("document.getElementById('section-rollouts').checkVisibility()")
    moves = [RolloutMove("orders", number, (1, 3), size=1_000_000) for number in range(2)]
    await shown.cluster.roll_out("monday", *moves, into=1)
    row = "document.querySelector('#rollouts tbody tr')"
    words = f"{row}?.innerText.replaceAll(/\\s+/g, ' ').trim()"
    # In between is the rate, which is known or not.
    begins, ends = (
        "monday running 0 % 2 1 2.0 MB ",
        " unknown 1 move waits: broker 3 receives 1 replica, the most at once",
    )
    await shown.tab.until(f"{words}?.startsWith('{begins}') && {words}.endsWith('{ends}')")
    await shown.cluster.order("monday", RolloutOrder.PAUSE)
    await shown.tab.until(f"{row}.innerText.includes('running, held')")
    assert shown.tab.console == []


async def test_a_cluster_without_partitions_says_that_there_are_none(
    controllers: Controllers, browser: Browser
) -> None:
    async with LivePage.of(controllers, (1,)) as cluster, browser.opened(cluster.url) as tab:
        summary = "document.getElementById('sum-risks').textContent"
        await tab.until(f"{summary} === 'None: there are no partitions yet.'")
        await cluster.create_topic("orders", (1,))
        await tab.until(f"{summary} === 'None: every partition has its leader and all its replicas.'")
        assert tab.console == []


async def test_a_broker_dies_and_the_page_says_what_that_means(shown: Shown) -> None:
    await shown.cluster.kill(2)
    await shown.tab.until("document.querySelectorAll('#risks tbody tr').length === 3")
    assert [await shown.count(label) for label in ("under-replicated", "brokers not alive", "brokers live")] == [
        "3",
        "1",
        "2",
    ]
    brokers = await shown.tab.run("document.querySelector('#brokers tbody tr').innerText")
    assert brokers.split()[:3] == ["2", "not", "alive"]


async def test_names_that_look_like_markup_stay_text(shown: Shown) -> None:
    broker = BrokerRegistration(4, "127.0.0.1", 1, -1, rack=EVIL)
    await shown.cluster.store.multi([Create(paths.broker(4), formats.encode_broker(broker, 0), ephemeral=True)])
    await shown.tab.until("document.querySelectorAll('#brokers tbody tr').length === 4")
    assert await shown.tab.run("document.querySelectorAll('#brokers tbody tr')[3].children[3].textContent") == EVIL
    assert await shown.tab.run("document.querySelectorAll('main img').length") == 0
    assert "taken" not in await shown.tab.run("document.title")
    assert shown.tab.console == []


async def test_a_script_that_is_not_the_pages_own_does_not_run(shown: Shown) -> None:
    planted = (
        "const s = document.createElement('script'); s.textContent = 'document.title = 1'; document.body.append(s)"
    )
    done = await shown.tab.call("Runtime.evaluate", expression=planted)
    assert "exceptionDetails" in done
    assert "TrustedScript" in str(done)


async def test_nothing_is_wider_than_the_window_in_light_and_dark(shown: Shown) -> None:
    await shown.cluster.create_topic("a-" + "very-long-name." * 15, (1,), (2, 1))
    await shown.cluster.move(TP, (3, 2))
    await shown.cluster.kill(1)
    await shown.tab.until("document.querySelectorAll('#risks tbody tr').length === 4")
    back = "getComputedStyle(document.body).backgroundColor"
    for width in (400, 1280):
        await shown.tab.resize(width)
        for scheme, colour in (("light", "rgb(246, 247, 249)"), ("dark", "rgb(20, 23, 28)")):
            await shown.tab.prefer(scheme)
            assert await shown.tab.run("document.documentElement.scrollWidth") == width
            assert await shown.tab.run(back) == colour


async def test_all_of_it_is_reached_with_the_keyboard(shown: Shown) -> None:
    reached = []
    for _ in range(3):
        await shown.tab.press("Tab")
        reached.append(await shown.tab.run("document.activeElement.textContent.trim()"))
    assert reached[:2] == ["Skip to the tables", "Pause updates"]
    await shown.tab.run("document.getElementById('pause').focus()")
    await shown.tab.press("Enter")
    assert await shown.tab.run("document.activeElement.textContent") == "Resume updates"
    await shown.cluster.move(TP, (3, 2))
    await shown.tab.until("latest.cluster.moves.count === 1")
    assert await shown.tab.run(MOVES) == []
    await shown.tab.press("Enter")
    assert len(await shown.tab.run(MOVES)) == 1


async def test_a_broken_stream_is_said_and_mended(shown: Shown) -> None:
    state = "document.getElementById('stream').innerText"
    await shown.tab.call("Network.enable")
    offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    await shown.tab.call("Network.emulateNetworkConditions", offline=True, **offline)
    await shown.tab.run("source.dispatchEvent(new Event('error'))")
    await shown.tab.until(f"{state}.startsWith('The connection to the controller is lost. What you see is from ')")
    await shown.cluster.move(TP, (3, 2))
    assert await shown.tab.run(MOVES) == []
    await shown.tab.call("Network.emulateNetworkConditions", offline=False, **offline)
    await shown.tab.until(f"{MOVES}.length === 1")
    await shown.until_live()


async def test_a_browser_too_many_is_told_so(shown: Shown) -> None:
    await shown.tab.run("source.close()")
    async with AsyncExitStack() as stack:
        for _ in range(MAX_LISTENERS):
            other = await stack.enter_async_context(await trio.open_tcp_stream("127.0.0.1", shown.cluster.port))
            await other.send_all(b"GET /events HTTP/1.1\r\nHost: here\r\n\r\n")
            await other.receive_some(1)
        await shown.tab.run("connect()")
        said = "document.getElementById('stream').innerText"
        await shown.tab.until(f"{said}.startsWith('Too many browsers follow this controller: close one.')")
    await shown.until_live()


async def test_the_page_of_a_standby_says_who_is_active(controllers: Controllers, browser: Browser) -> None:
    await controllers.start_active()
    standby = await controllers.start(1002, metrics_port=0)
    async with browser.opened(f"http://127.0.0.1:{standby.metrics_port}/") as tab:
        await tab.until("document.body.innerText.includes('standing by for controller 1001')")
        assert not await tab.run("document.getElementById('section-moves').checkVisibility()")
        assert tab.console == []


async def test_many_partitions_at_risk_do_not_push_the_moves_far_down(shown: Shown) -> None:
    await shown.cluster.create_topic("clicks", *[(1, 9)] * 60)
    await shown.tab.until("document.querySelectorAll('#risks tbody tr').length === 50")
    height = "document.getElementById('section-risks').getBoundingClientRect().height"
    assert await shown.tab.run(f"{height} < window.innerHeight")
