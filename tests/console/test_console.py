"""The console in a real browser: what people see and do, by keys and by screen reader names, under a strict policy."""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.catalog.arguments import with_fields
from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.gateway.auth.tokens import create_token, revoke_tokens
from hms_gateway.gateway.auth.users import add_user
from hms_gateway.rpc.structs import (
    Catalog,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CreateCatalogRequest,
    Database,
    DropCatalogRequest,
    Function,
    GetCatalogRequest,
    LeaseObject,
    LongColumnStatsData,
    Partition,
    SerDeInfo,
    ShowLocksRequest,
    StorageDescriptor,
)
from hms_gateway.runtime.settings import Settings
from tests.console.planted import (
    HOSTILE,
    QUOTED,
    UNENDING,
    UNTYPED,
    create_table,
    customers_for_dana,
    new_view,
    plant,
    plant_hostile,
    plant_trouble,
    wait_behind,
    wait_for_each_other,
)
from tests.interop.page_server import find_chromium
from tests.support.chromium import Chromium, Page, chromium
from tests.support.iceberg_tables import FIRST_SNAPSHOT, plant_snapshots
from tests.support.patience import until
from tests.support.sample import sample
from tests.support.server import GatewayServer, trusting
from tools.console_files import PACKAGES

AXE = PACKAGES / "node_modules" / "axe-core" / "axe.min.js"
PAGES = [
    "",
    "d/shop",
    "t/shop/orders/partitions",
    "p/lake/mixed/day%3D2",
    "t/shop/customers/statistics",
    "t/shop/customers/access",
    "waits",
    "cost",
]

PASSWORD = "of dana and eager"

DOCUMENTS = Path(__file__).parents[2] / "docs"
# A name, the page's address, and whether it is dark.
PICTURES = (
    ("console-start", "", False),
    ("console-partitions", "t/shop/orders/partitions", False),
    ("console-waits", "waits", True),
)
PICTURE_SCALE = 0.9
PICTURE_BYTES_MAX = 150_000

# Locks stay for as long as a busy machine takes.
SETTINGS = {"slow_call_seconds": 0.02, "authorization": "grants", "txn_timeout_seconds": 3600}

# Counts the messages of events that answers have.
COUNTS_MESSAGES = """
(() => {
  const real = globalThis.fetch;
  globalThis.messages = 0;
  globalThis.fetch = async (...asked) => {
    const answer = await real(...asked);
    globalThis.messages += (await answer.clone().text()).split("tableObjJson").length - 1;
    return answer;
  };
})();
"""

# Timers of a page that run a hundred times faster than they should.
FAST = 100
IDLE_CALLS = 30
# The answer to the first show_locks after `begin` comes with `end`, those to later ones never.
SLOW_TURNS = 5
HOLDS_LOCKS = """
(() => {
  const real = fetch, timer = setTimeout;
  const held = { isHolding: false, turns: 0, begin: () => void (held.isHolding = true) };
  globalThis.held = held;
  globalThis.setTimeout = (go, time, ...more) =>
    timer((...all) => (time >= 6000 && held.end && (held.turns += 1), go(...all)), time, ...more);
  globalThis.fetch = async (url, options) => {
    if (held.isHolding && options?.body?.includes('"show_locks"')) await new Promise((go) => (held.end ??= go));
    return real(url, options);
  };
})();
"""
# While `held` is a promise, what is in a database is not counted; `counting` calls that count are at the gateway.
HOLDS_COUNTS = """
(() => {
  globalThis.kept = fetch;
  globalThis.counting = 0;
  globalThis.fetch = async (url, options) => {
    if (!options?.body?.includes('"count_objects"')) return kept(url, options);
    await globalThis.held;
    counting += 1;
    return kept(url, options).finally(() => (counting -= 1));
  };
})();
"""
IN_HASTE = f"const real = setTimeout; globalThis.setTimeout = (go, time, ...more) => real(go, time / {FAST}, ...more);"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_chromium() is None, reason="no Chromium: install the package chromium"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    """Besides its administrator, dana may read one table, and of eager one call is answered."""
    settings = {**SETTINGS, "user_rates.eager.calls_per_second": 1e-6}
    with GatewayServer(tmp_path_factory.mktemp("server"), settings=settings) as server:
        for name in ("dana", "eager"):
            add_user(files(server).users_path, name, PASSWORD)
        with connected(server) as client:
            plant(client)
        yield server


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


def files(server: GatewayServer) -> Settings:
    """Where the gateway has its users and tokens."""
    return Settings(data_dir=server.data_dir)


def connected(server: GatewayServer) -> MetastoreClient:
    return MetastoreClient(server.url, (server.user, server.password), trusting())


@pytest.fixture
def client(server: GatewayServer) -> Iterator[MetastoreClient]:
    with connected(server) as client:
        yield client


@pytest.fixture
def tab(browser: Chromium) -> Iterator[Page]:
    """A tab for one test: what a page asks and draws by itself ends with it."""
    page = browser.page()
    yield page
    page.close()


@pytest.fixture
def hasty_tab(tab: Page) -> Page:
    tab.send("Page.addScriptToEvaluateOnNewDocument", source=IN_HASTE)
    return tab


@pytest.fixture(scope="module")
def shared(browser: Chromium, server: GatewayServer) -> Page:
    with connected(server) as client:
        plant_hostile(client)
    page = browser.page()
    page.size(1280, 800)
    log_in(page, server)
    return page


@pytest.fixture
def page(shared: Page, server: GatewayServer) -> Iterator[Page]:
    """A tab of a user who is logged in; in the end nothing was blocked, nothing failed, no other host was asked."""
    if shared.run("Boolean(document.querySelector('dialog'))"):
        # A test that failed in the middle has left it, and the next ones are not to fail as well.
        reload(shared)
    go(shared, "")
    yield shared
    assert shared.run("violations") == []
    assert shared.complaints == []
    assert shared.run("globalThis.ran") is None
    assert {re.match(r"https://[^/]+", url).group() for url in shared.requests} == {
        server.url[: -len("/gateway/default/hmshttpthrift/api/hms")]
    }


def root(server: GatewayServer) -> str:
    return f"https://127.0.0.1:{server.port}"


def log_in(page: Page, server: GatewayServer, address: str = "/", user: str = "", password: str = "") -> None:
    page.open(root(server) + address)
    page.type("input[name=user]", user or server.user)
    page.type("input[name=password]", password or server.password)
    page.press("Enter")
    page.wait("document.querySelector('header.top')")


def go(page: Page, address: str) -> None:
    """Open a page of the console by its address."""
    page.run(f"void (location.hash = {json.dumps('#/' + address)})")


def reload(page: Page) -> None:
    page.run("globalThis.isOld = true; void location.reload()")
    page.wait("!globalThis.isOld && document.querySelector('header.top')")


def axe(page: Page, *rules: str) -> list[str]:
    """What axe finds, of some rules or of all; nothing where it is not installed."""
    if not AXE.exists():
        return []
    if not page.run("'axe' in globalThis"):
        page.run(AXE.read_text(encoding="utf-8") + "; true")
    options: dict[str, object] = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    found = page.run(f"axe.run(document, {json.dumps(options)}).then((result) => result.violations)")
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


def test_pictures_for_the_document(tab: Page, server: GatewayServer, client: MetastoreClient) -> None:
    """Pictures go to docs/pictures with HMS_TESTS_PICTURES. It is the first test: others leave more in the catalog."""
    locks = wait_for_each_other(client)
    log_in(tab, server)
    for name, address, is_dark in PICTURES:
        tab.size(1280, 760, is_dark=is_dark)
        go(tab, address)
        tab.wait("document.querySelector('h1') && !document.querySelector('.loading')")
        picture = tab.picture(PICTURE_SCALE)
        assert len(picture) < PICTURE_BYTES_MAX
        if os.environ.get("HMS_TESTS_PICTURES"):
            (DOCUMENTS / "pictures" / f"{name}.png").write_bytes(picture)
    for lock_id in locks:
        client.call("force_release_lock", lock_id, "")


def test_a_wrong_password_says_so_and_the_name_stays(tab: Page, server: GatewayServer) -> None:
    tab.open(root(server))
    assert tab.wait("location.pathname") == "/ui/"
    tab.type("input[name=user]", server.user)
    tab.type("input[name=password]", "wrong")
    tab.press("Enter")
    tab.sees("User name or password is wrong")
    assert tab.run("document.querySelector('input[name=user]').value") == server.user
    assert axe(tab) == []
    tab.type("input[name=password]", server.password)
    tab.press("Enter")
    tab.sees("shop")
    assert tab.run("document.cookie") == ""


def test_the_start_page_shows_the_catalog(page: Page) -> None:
    for text in ("shop", "lake", "Recent changes", "odd.wide", "No request waits for a lock."):
        page.sees(text)


def test_search_by_keys_alone(page: Page) -> None:
    page.run("document.activeElement.blur()")
    page.press("/")
    page.send("Input.insertText", text="ord")
    page.wait("document.querySelectorAll('[role=option]').length === 2")
    page.press("ArrowDown")
    page.press("ArrowDown")
    chosen = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).innerText"
    page.wait(f"{chosen}.startsWith('shop.big_orders')")
    page.press("Enter")
    page.wait("location.hash === '#/t/shop/big_orders'")
    page.sees("order_id")


def test_a_search_without_an_answer_says_what_to_do(page: Page) -> None:
    page.type("[role=combobox]", "nothinglikethis")
    page.sees("Try fewer letters")


def test_each_object_has_an_address(page: Page) -> None:
    for address, text in {
        "d/shop": "What customers ordered",
        "t/shop/orders": "decimal(12,2)",
        "t/shop/recent": "View",
        "f/shop/euro": "org.example.Euro",
        "t/shop/orders/storage": "MapredParquetInputFormat",
        "t/shop/orders/create": "CREATE TABLE `shop`.`orders` (",
        "p/shop/orders/ds%3D2026-10-01%2Fregion%3Dasia": "4,711",
        "p/shop/orders/ds%3Dnever": "is not in the catalog",
        "t/shop/customers/access": "SELECT",
        "t/shop/orders/activity": "add partition",
        "t/lake/events/iceberg": "00001.metadata.json",
        "t/shop/nothing": "is not in the catalog",
        "nowhere": "There is no such page",
        "t/shop/customers/statistics": "12 %",
        "t/shop/big_orders/statistics": "9223372036854775807",
        "search/orders": "shop.big_orders",
    }.items():
        go(page, address)
        page.sees(text)


def test_statistics_of_partitions_are_added_up(page: Page) -> None:
    go(page, "t/shop/orders/statistics")
    page.click("button", "Add them up")
    page.sees("Added up over 150 partitions; 0 of them have statistics of every column.")
    row = page.run("document.querySelector('main tbody tr').innerText.split('\\t')")
    assert (row[0], row[-3:-1]) == ("order_id", ["1", "9"])


def test_partitions_in_pages(page: Page) -> None:
    go(page, "t/shop/orders/partitions")
    page.sees("150 partitions")
    first = "document.querySelector('tbody tr').innerText.split('\\t')"
    page.wait(f"{first}[1] === '2026-10-30' && {first}[2] === 'oceania'")
    page.click("button", "Next")
    page.wait(f"{first}[1] === '2026-10-10'")
    assert page.run("document.querySelectorAll('tbody tr').length") == 50
    page.click("button", "First")
    page.wait(f"{first}[1] === '2026-10-30'")


def test_a_filter_narrows_partitions_and_says_where_it_is_wrong(page: Page) -> None:
    go(page, "t/shop/orders/partitions")
    page.type("#filter", "ds = '2026-10-07'")
    page.press("Enter")
    page.sees("5 partitions")
    assert "filter=ds" in page.run("location.hash")
    for condition, found in (
        ("region like 'a%' and ds between '2026-10-01' and '2026-10-02'", "6 partitions"),
        ("region not in ('asia', 'europe')", "90 partitions"),
    ):
        page.type("#filter", condition)
        page.press("Enter")
        page.sees(found)
    for condition, place in (("ds = 'x' ?", "?"), ("regon = 'eu'", "r"), ("region = 'eu", "'")):
        page.type("#filter", condition)
        page.press("Enter")
        page.wait(f"document.querySelector('mark')?.innerText === {json.dumps(place)}")
        page.wait("document.activeElement.id === 'filter'")
        assert page.run("document.activeElement.value") == condition


def test_the_map_of_partitions_leads_to_a_cell(page: Page) -> None:
    go(page, "t/shop/orders/partitions?last=no")
    page.click("button", "Draw the map")
    page.click("button.cell", "2026-10-03, asia")
    page.sees("1 partition")
    assert "asia" in page.run("document.querySelector('#filter').value")


def test_the_map_filters_by_values_with_quotes_and_not_by_what_no_filter_can_say(page: Page) -> None:
    go(page, "t/odd/hostile/partitions")
    page.click("button", "Draw the map")
    cells = "[...document.querySelectorAll('button.cell')]"
    page.wait(f"{cells}.length === 3")
    disabled = page.run(f"{cells}.filter(({{ disabled }}) => disabled).map(({{ ariaLabel }}) => ariaLabel)")
    assert sorted(disabled) == sorted(f"{value}: 1 partition" for value in (HOSTILE.replace("\x01", ""), UNENDING))
    page.click("button.cell", QUOTED)
    page.wait("document.querySelector('#filter').value")
    page.wait("document.querySelectorAll('main tbody tr').length === 1")
    assert page.run("document.querySelector('#filter').value") == f"`in` = '{QUOTED}'"


def test_a_map_with_more_values_than_it_shows_says_so(page: Page) -> None:
    go(page, "t/odd/spread/partitions")
    page.click("button", "Draw the map")
    page.sees("The first 60 of 70 values of run are shown; a filter shows others.")
    assert page.run("document.querySelectorAll('.heat thead th').length") == 60


def test_plots_come_when_the_gateway_does(hasty_tab: Page, server: GatewayServer) -> None:
    hasty_tab.send("Network.enable")
    hasty_tab.send("Network.setBlockedURLs", urls=["*uplot.js*"])
    log_in(hasty_tab, server, "/ui/#/cost")
    hasty_tab.wait("document.querySelector('[aria-label^=\"Calls per second:\"]')")
    hasty_tab.wait("document.querySelectorAll('link[href*=uplot]').length > 1")
    assert not hasty_tab.run("document.querySelector('canvas')")
    hasty_tab.send("Network.setBlockedURLs", urls=[])
    hasty_tab.wait("document.querySelector('canvas')")


@pytest.mark.parametrize("tab", ["", "/partitions", "/storage", "/create", "/activity", "/statistics"])
def test_what_html_dislikes_is_shown_and_never_run(page: Page, tab: str) -> None:
    go(page, "d/odd")
    page.sees("onerror")
    go(page, f"t/odd/hostile{tab}")
    page.wait("document.querySelector('[aria-current=page].x, .tabs [aria-current=page]')")
    page.wait("!document.querySelector('.loading')")
    assert page.run("document.querySelectorAll('main script, main img').length") == 0
    if tab in ("", "/storage"):
        assert HOSTILE.replace("\x01", "") in page.run("document.querySelector('main').textContent").replace("\x01", "")


def test_ten_thousand_columns_and_a_type_of_a_megabyte(page: Page) -> None:
    go(page, "t/odd/wide")
    page.sees("column_199")
    assert page.run("document.querySelectorAll('tbody tr').length") == 200
    page.type("input[aria-label='Filter these rows']", "column_9999")
    page.wait("document.querySelectorAll('tbody tr').length === 1")
    go(page, "t/odd/hostile")
    page.click("button", "Show all")
    page.wait("document.querySelector('main').textContent.length > 900000")


def test_who_waits_is_shown_and_freed(page: Page, client: MetastoreClient) -> None:
    held, *waiting = wait_for_each_other(client)
    go(page, "waits")
    page.sees("insert overwrite table shop.orders")
    # A request that waits is in the way of later ones, and waits for what is at the root.
    behind = wait_behind(client)
    page.wait("document.querySelectorAll('.wait.waits').length === 3")
    go(page, "")
    page.sees("Requests wait for 1 lock")
    page.sees("3 requests wait for it")
    client.call("force_release_lock", behind, "")
    go(page, "waits")
    page.wait("document.querySelectorAll('.waits .waits').length >= 2")
    page.wait("/waits for \\d+ (s|min)/.test(document.querySelector('.waits .waits').innerText)")
    listed = "document.querySelector('[aria-label=Locks]').innerText"
    page.wait(f"/^\\d+\twaiting[^]*node-7\t\\d+ (s|min)\t/m.test({listed})")
    assert page.run("document.querySelector('.waits > li > .wait strong').innerText") == f"Lock {held}"
    page.click(".waits > li > .wait button")
    page.sees("ann loses shop.orders.")
    page.sees("2 waiting requests continue.")
    page.click("dialog button", "Release the lock")
    page.wait("!document.querySelector('dialog')")
    page.sees("No request waits")
    locks = client.call("show_locks", ShowLocksRequest()).locks
    assert held not in {lock.lockid for lock in locks}
    for lock_id in waiting:
        client.call("force_release_lock", lock_id, "")


def test_a_database_is_made_edited_and_dropped(page: Page, client: MetastoreClient) -> None:
    page.click("button", "Create database")
    page.type("dialog input", "default")
    page.press("Enter")
    page.sees("default already exists")
    assert page.run("document.querySelector('dialog input').value") == "default"
    page.type("dialog input", "made")
    page.press("Enter")
    page.wait("location.hash === '#/d/made'")
    page.click(".actions button", "Edit")
    page.type("dialog textarea", "team = stock\nx=1")
    page.click("dialog button", "Save")
    page.sees("stock")
    assert client.call("get_database", "made").parameters == {"team": "stock", "x": "1"}
    page.click(".actions button", "Drop")
    page.wait("document.querySelector('dialog button.danger').disabled")
    page.type("dialog input:not([type])", "made")
    page.click("dialog button.danger")
    page.wait("location.hash === '#/'")
    assert "made" not in client.call("get_all_databases")


def test_a_catalog_is_chosen_where_there_are_more(page: Page, client: MetastoreClient) -> None:
    page.sees("Recent changes")
    assert page.run("document.querySelector('select')") is None
    place = client.call("get_catalog", GetCatalogRequest("hive")).catalog.locationUri
    client.call("create_catalog", CreateCatalogRequest(Catalog("other", None, f"{place}/other")))
    reload(page)
    page.wait("document.querySelector('select')?.length === 2")
    chosen = "choice.value = 'other'; choice.dispatchEvent(new Event('change'))"
    page.run(f"const choice = document.querySelector('select'); {chosen}")
    page.sees("Default database for catalog other")
    listed = "[...document.querySelector('.panel').querySelectorAll('a')].map((each) => each.textContent)"
    assert page.run(listed) == ["default"]
    page.click("button", "Create database")
    page.type("dialog input", "made")
    page.press("Enter")
    page.wait("location.hash === '#/d/%40other%23made'")
    page.sees("other.made")
    client.call("create_table", with_fields(new_view("made", "seen"), catName="other"))
    page.click(".actions button", "Edit")
    page.type("dialog textarea", "team = stock")
    page.click("dialog button", "Save")
    page.sees("stock")
    go(page, "t/%40other%23made/seen")
    page.wait("document.querySelector('.crumbs a')?.textContent === 'other.made'")
    go(page, "d/%40other%23made")
    page.click(".panel a", "seen")
    page.wait("location.hash === '#/t/%40other%23made/seen'")
    go(page, "d/%40other%23made")
    page.click(".actions button", "Drop")
    page.type("dialog input:not([type])", "other.made")
    page.click("dialog label", "With its contents")
    page.wait("!document.querySelector('dialog button.danger').disabled")
    page.click("dialog button.danger")
    page.wait("location.hash === '#/'")
    assert client.call("get_databases", "@other#*") == ["default"]
    client.call("drop_catalog", DropCatalogRequest("other"))


def test_what_was_refused_is_tried_again_when_its_reason_is_gone(page: Page, client: MetastoreClient) -> None:
    """The page does not learn before the gateway refuses it that the database has got something."""
    client.call("create_database", Database("full"))
    page.run(HOLDS_COUNTS)
    go(page, "d/full")
    page.click(".actions button", "Drop")
    page.type("dialog input:not([type])", "full")
    page.wait("!document.querySelector('dialog button.danger').disabled")
    page.run("void (globalThis.held = new Promise((go) => (globalThis.release = go)))")
    page.wait("counting === 0")
    client.call("create_table", new_view("full", "seen"))
    page.click("dialog button.danger")
    page.sees("is not empty")
    client.call("drop_table", "full", "seen", False)
    page.run("void (fetch = kept, release())")
    page.wait("!document.querySelector('dialog button.danger').disabled")
    page.click("dialog button.danger")
    page.wait("location.hash === '#/'")
    assert "full" not in client.call("get_all_databases")


def test_a_busy_gateway_is_a_sentence_and_what_was_typed_stays(page: Page, client: MetastoreClient) -> None:
    """The answer is made up at the network's edge; how a gateway comes to give it is tested elsewhere."""
    page.click("button", "Create database")
    page.type("dialog input", "patient")
    busy = "new Response('', {status: 503, headers: {'retry-after': '7'}})"
    page.run(f"globalThis.kept = fetch; void (fetch = async () => {busy})")
    page.press("Enter")
    page.sees("The gateway is overloaded (503). Try again in 7 s.")
    assert page.run("document.querySelector('dialog input').value") == "patient"
    page.run("void (fetch = kept)")
    page.click("dialog button", "Create")
    page.wait("location.hash === '#/d/patient'")
    client.call("drop_database", "patient", True, False)


def test_a_table_keeps_what_the_form_does_not_show(page: Page, client: MetastoreClient) -> None:
    before = client.call("get_table", "odd", "hostile")
    go(page, "t/odd/hostile")
    page.click(".actions button", "Edit")
    page.type("dialog textarea", "new = 1")
    page.click("dialog button", "Save")
    page.wait("!document.querySelector('dialog')")
    after = client.call("get_table", "odd", "hostile")
    assert after.parameters["new"] == "1"
    assert "javascript:alert(1)" not in after.parameters
    assert UNTYPED.items() <= after.parameters.items()
    assert (after.sd, after.partitionKeys, after.owner) == (before.sd, before.partitionKeys, before.owner)


def test_what_others_changed_meanwhile_stays(page: Page, client: MetastoreClient) -> None:
    """Such as the pointer of an Iceberg table: writing it back would undo a commit."""
    create_table(client, "lake", "moving", [("event", "string", None)], parameters={"pointer": "1", "gone": "1"})
    go(page, "t/lake/moving")
    page.click(".actions button", "Edit")
    page.type("dialog textarea", "pointer = 1\nadded = 1")
    table = client.call("get_table", "lake", "moving")
    moved = with_fields(table, parameters={**table.parameters, "pointer": "2", "comment": "Of others"})
    client.call("alter_table", "lake", "moving", moved)
    page.click("dialog button", "Save")
    page.wait("!document.querySelector('dialog')")
    after = client.call("get_table", "lake", "moving").parameters
    assert {name: after.get(name) for name in ("pointer", "comment", "added", "gone")} == {
        "pointer": "2",
        "comment": "Of others",
        "added": "1",
        "gone": None,
    }
    client.call("drop_table", "lake", "moving", True)


def test_a_drop_of_a_database_says_what_goes_and_waits_for_the_tick(page: Page, client: MetastoreClient) -> None:
    client.call("create_database", Database("going"))
    create_table(client, "going", "counted", [("a", "int", None)], keys=("k",), parameters={"totalSize": "2048"})
    client.call("add_partitions", [Partition(["1"], "going", "counted", sd=StorageDescriptor(serdeInfo=SerDeInfo()))])
    client.call("create_table", new_view("going", "seen"))
    client.call("create_function", Function("f", "going", "org.example.F"))
    go(page, "d/going")
    page.click(".actions button", "Drop")
    page.sees("With its contents: 1 table, 1 view, 1 function, 1 partition")
    page.sees("2 KiB, as far as sizes are known.")
    page.type("dialog input:not([type])", "going")
    assert page.run("document.querySelector('dialog button.danger').disabled")
    page.click("dialog label", "With its contents")
    page.sees("The files of its managed tables are deleted")
    page.wait("!document.querySelector('dialog button.danger').disabled")
    page.run("globalThis.kept = fetch; void (fetch = async () => new Response('no', {status: 403}))")
    page.click("dialog button.danger")
    page.sees("You have no right to do this.")
    page.run("void (fetch = kept)")
    page.click("dialog label", "Delete the files too")
    page.sees("No file is deleted.")
    page.wait("!document.querySelector('dialog .problem')")
    page.click("dialog button.danger")
    page.wait("location.hash === '#/'")
    assert "going" not in client.call("get_all_databases")


def test_a_drop_of_a_table_or_view_says_what_becomes_of_files(page: Page) -> None:
    go(page, "t/shop/recent")
    page.click(".actions button", "Drop")
    page.sees("The view itself. It has no files")
    page.press("Escape")
    go(page, "t/shop/customers")
    page.click(".actions button", "Drop")
    page.sees("Its files are deleted")
    page.click("dialog label", "Delete the files too")
    page.sees("No file is deleted.")
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")


def test_a_drop_warns_of_locks_and_leases(page: Page, client: MetastoreClient) -> None:
    locks = wait_for_each_other(client)
    objects = [LeaseObject("shop", "orders", "ds=2026-10-02/region=asia", "x")]
    lease_id = client.call("grab_lease", objects, 600, 0)
    go(page, "t/shop/orders")
    page.click(".actions button", "Drop")
    page.sees(f"ann holds lock {locks[0]} on shop.orders.")
    page.sees(f"ben waits for lock {locks[1]} on shop.orders.")
    page.sees("admin has a lease on shop.orders / ds=2026-10-02/region=asia until")
    page.press("Escape")
    go(page, "waits")
    page.wait(
        "['Locks', 'Leases'].every((name) =>"
        " document.querySelector(`[aria-label=${name}] tbody tr:first-child td:last-child button`))"
    )
    page.click("[aria-label=Leases] tbody a", "shop.orders")
    page.wait("location.hash === '#/t/shop/orders/activity'")
    for lock_id in locks:
        client.call("force_release_lock", lock_id, "")
    # Of what is in use elsewhere in the table a drop of other partitions does not warn.
    for region, is_leased in (("asia", True), ("africa", False)):
        go(page, f"p/shop/orders/ds%3D2026-10-02%2Fregion%3D{region}")
        page.sees(f"region={region}")
        page.click(".actions button", "Drop")
        page.sees("Its files are deleted")
        page.wait(f"Boolean(document.querySelector('dialog .warning')) === {json.dumps(is_leased)}")
        page.press("Escape")
        page.wait("!document.querySelector('dialog')")
    client.call("drop_lease", lease_id, objects)


def test_the_catalog_says_how_much_is_where(page: Page, client: MetastoreClient) -> None:
    # The changes of other tests may have taken the first grant off the page.
    client.call("revoke_privileges", customers_for_dana())
    client.call("grant_privileges", customers_for_dana())
    page.wait("/shop\t4\tWhat customers ordered/.test(document.querySelector('[aria-label=Databases]').innerText)")
    changes = "document.querySelector('[aria-label=\"Recent changes\"]').innerText"
    page.wait(f"/change rights × [0-9]+\tusers and roles\tadmin/.test({changes})")
    go(page, "d/shop")
    page.sees("4 tables and views, 1 function")
    page.wait("/customers\tTable\t[^\t]*\t1,000\t/.test(document.body.innerText)")
    page.wait("/orders\tTable\tann\t48,213,377\t85.5 GiB\t150\tOne row per order/.test(document.body.innerText)")


def test_figures_stand_in_one_line_where_a_title_takes_two(page: Page) -> None:
    page.size(900, 800)
    go(page, "cost")
    page.wait("document.querySelector('.figure strong')")
    text = "const text = new Range(); text.selectNodeContents(each);"

    def each_of(selector: str, value: str) -> list[float]:
        return page.run(
            f"[...document.querySelectorAll('.figure {selector}')].map((each) => {{ {text} return {value}; }})"
        )

    until(lambda: set(each_of(".soft", "text.getClientRects().length")) == {1, 2})
    assert len(set(each_of("strong", "text.getBoundingClientRect().bottom"))) == 1
    page.size(1280, 800)


def test_a_column_sorts_by_a_click_and_the_list_is_saved(page: Page, tmp_path: Path) -> None:
    go(page, "d/shop")
    names = "[...document.querySelectorAll('[aria-label$=views] tbody tr a')].map(({ innerText }) => innerText).join()"
    page.wait(f"{names} === 'big_orders,customers,euro,orders,recent'")
    for sort, order in (
        ("ascending", "customers,orders,big_orders,euro,recent"),
        ("descending", "big_orders,euro,recent,orders,customers"),
        (None, "big_orders,customers,euro,orders,recent"),
    ):
        page.click("button.sort", "Rows")
        page.wait(f"{names} === {json.dumps(order)}")
        assert page.run("document.querySelector('[aria-sort]')?.ariaSort ?? null") == sort
    page.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.click("[aria-label='Tables and views'] .foot button", "CSV")
    saved = tmp_path / "shop-tables-and-views.csv"
    until(saved.exists)
    lines = saved.read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "Name,Kind,Owner,Rows,Size,Partitions,Comment"
    assert lines[4] == "orders,Table,ann,48213377,91827364551,150,One row per order"


def test_a_text_that_a_program_for_tables_would_run_is_saved_as_text(
    page: Page, tmp_path: Path, client: MetastoreClient
) -> None:
    columns = [("a", "int", "=1+1"), ("b", "int", 'say "b", c'), ("c", "int", "plain")]
    create_table(client, "odd", "formulas", columns)
    go(page, "t/odd/formulas")
    page.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.click(".foot button", "CSV")
    until((tmp_path / "odd.formulas-columns.csv").exists)
    lines = (tmp_path / "odd.formulas-columns.csv").read_text(encoding="utf-8-sig").splitlines()
    assert lines == ["Name,Type,Comment", "a,int,'=1+1", 'b,int,"say ""b"", c"', "c,int,plain"]


def test_a_change_says_who_and_what_was_before_and_after(page: Page, client: MetastoreClient) -> None:
    create_table(client, "lake", "changing", [("a", "int", None)], parameters={"team": "one"})
    table = client.call("get_table", "lake", "changing")
    table.sd.cols[0].type = "bigint"
    client.call("alter_table", "lake", "changing", with_fields(table, parameters={**table.parameters, "team": "two"}))
    for number in range(3):
        amounts = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=number, numDVs=9))
        one = ColumnStatisticsObj("a", "bigint", amounts)
        client.call(
            "update_table_column_statistics", ColumnStatistics(ColumnStatisticsDesc(True, "lake", "changing"), [one])
        )
    go(page, "t/lake/changing/activity")
    listed = "[...document.querySelectorAll('[aria-label=\"Recent changes\"] tbody tr')]"
    rows = f"{listed}.map((one) => one.innerText.split('\\t').slice(1).join())"
    page.wait(f"{rows}.join('; ') === 'update statistics × 3,admin; alter table,admin; create table,admin'")
    page.click("[aria-label='Recent changes'] td button", "alter table")
    changed = "[...document.querySelectorAll('dialog tbody tr')].map((one) => one.innerText).join('; ')"
    page.wait(f"{changed} === 'Column a\\tint\\tbigint; Parameter team\\tone\\ttwo'")
    page.sees("alter_table")
    assert axe(page) == []
    page.press("Escape")
    go(page, "t/shop/orders/activity")
    page.click("[aria-label='Recent changes'] td button", "add partition")
    page.click("dialog a", "ds=2026-10-01/region=africa")
    page.wait("location.hash.startsWith('#/p/shop/orders/ds')")
    page.wait("!document.querySelector('dialog')")


def test_who_made_a_change_is_for_administrators(tab: Page, server: GatewayServer) -> None:
    log_in(tab, server, "/ui/#/t/shop/customers/activity", "dana", PASSWORD)
    tab.sees("create table")
    assert "By" not in tab.run("document.querySelector('[aria-label=\"Recent changes\"] thead').innerText")
    tab.click("[aria-label='Recent changes'] td button", "create table")
    tab.sees("Column customer")
    assert tab.run("violations") == []


def test_a_partition_has_a_page_that_says_where_it_differs(page: Page) -> None:
    go(page, "t/lake/mixed/partitions")
    page.sees("2 partitions")
    page.click("tbody tr a", "Partition day=2")
    page.wait("location.hash === '#/p/lake/mixed/day%3D2'")
    for text in (
        "ORC the table has Parquet",
        "OrcInputFormat",
        "day 2",
        "Columns different from the table's",
        "compress",
    ):
        page.sees(text)
    unlike = "document.querySelector('[aria-label^=\"Columns different\"] tbody').innerText"
    assert page.run(unlike).split() == ["id", "int", "bigint", "name", "–", "string"]
    go(page, "t/lake/mixed/partitions")
    page.wait("document.querySelector('tbody .tag.warn')?.innerText === 'ORC'")
    go(page, "p/shop/orders/ds%3D2026-10-01%2Fregion%3Dasia")
    page.wait("/order_id bigint 3 0.0637 % 9 1 9/.test(document.body.innerText.replace(/\\s+/g, ' '))")


def test_nulls_are_a_number_and_a_share_only_of_known_rows(page: Page) -> None:
    go(page, "t/shop/big_orders/statistics")
    page.sees("order_id")
    assert page.run("document.querySelector('thead').innerText").split("\t")[2:4] == ["Nulls", "Distinct values"]
    go(page, "t/shop/customers/statistics")
    page.wait("/customer string 120 12 %/.test(document.body.innerText.replace(/\\s+/g, ' '))")
    go(page, "t/shop/orders/statistics")
    page.click("button", "Add them up")
    page.sees("about 9")


def test_a_view_begins_with_its_query(page: Page) -> None:
    go(page, "t/shop/recent")
    page.sees("select order_id from shop.orders where ds > '2026-10-20'")
    page.click(".tabs a", "Columns")
    page.wait("document.querySelector('tbody')?.innerText.includes('order_id')")


def test_an_iceberg_table_has_its_history(page: Page, server: GatewayServer, client: MetastoreClient) -> None:
    plant_snapshots(server, "kept", 3)
    go(page, "t/ice/kept/iceberg")
    # The last digits are those that a number of JavaScript loses.
    for text in (str(FIRST_SNAPSHOT + 2), "main", "audited", "for 1 d", "day(at)", "at timestamptz", "engine=test"):
        page.sees(text)
    rows = page.run("[...document.querySelectorAll('[aria-label=Snapshots] tbody tr')].map((row) => row.innerText)")
    assert len(rows) == 3
    assert re.sub(r"\s+", " ", rows[2]).split(" ")[2:] == [
        *(str(FIRST_SNAPSHOT), "audited", "append", "1,000", "1,000", "2", "KiB", "engine=test"),
    ]
    assert axe(page) == []
    plant_snapshots(server, "long", 1_001)
    go(page, "t/ice/long/iceberg")
    page.sees("The table may have more; these are the newest 1,000.")
    page.sees(str(FIRST_SNAPSHOT + 1_000))
    go(page, "t/lake/events/iceberg")
    page.sees("the metadata file cannot be read")


def test_light_and_dark_are_a_choice_that_is_kept(page: Page) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.run(paper)
    page.click(".you button", "admin")
    page.click(".menu input[value=dark]")
    page.wait(f"{paper} !== {json.dumps(light)}")
    reload(page)
    page.wait(f"{paper} !== {json.dumps(light)}")
    page.size(1280, 800, is_dark=True)
    page.click(".menu input[value=light]")
    page.wait(f"{paper} === {json.dumps(light)}")
    page.size(1280, 800)
    page.click(".menu input[value=system]")
    page.wait("localStorage.length === 0")


def test_the_header_lines_up_with_the_page_and_tables_that_scroll_show_it(page: Page) -> None:
    go(page, "t/shop/orders/partitions")
    page.wait("document.querySelector('tbody')")
    for width in (320, 360, 768, 1280, 1920, 2560, 3840):
        page.size(width, 800)
        sides = page.run(
            "['.strip', '.tabs'].map((one) => document.querySelector(one).getBoundingClientRect())"
            ".map(({ left, right }) => [left, right])"
        )
        assert sides[0] == sides[1], width
        assert sides[0][1] - sides[0][0] >= min(width * 0.79, width - 64), width
    page.size(360, 800)
    assert page.run("document.querySelector('.scroll').scrollWidth > document.querySelector('.scroll').clientWidth")
    attachments = page.run("getComputedStyle(document.querySelector('.scroll')).backgroundAttachment")
    assert attachments == "local, local, scroll, scroll"
    assert page.run("document.querySelector('.you bdi').getBoundingClientRect().width") > 0
    page.size(1280, 800)


def test_what_is_typed_is_taken_as_it_is(page: Page, client: MetastoreClient) -> None:
    """No red waves below names, a mistyped line is not a failed call, and a search ends with the page it opens."""
    go(page, "t/shop/orders/partitions")
    page.wait("document.querySelector('#filter')?.spellcheck === false")
    go(page, "t/shop/customers")
    page.click(".actions button", "Edit")
    page.wait("document.querySelector('dialog textarea')?.spellcheck === false")
    page.type("dialog textarea", "no value")
    page.click("dialog button", "Save")
    page.wait("document.querySelector('dialog .problem')?.innerText === 'Line 1 is not “name = value”.'")
    page.press("Escape")
    page.type("[role=combobox]", "shop.orders")
    page.wait("document.querySelectorAll('[role=option]').length")
    page.press("Enter")
    page.wait("location.hash.startsWith('#/search/')")
    page.wait("document.querySelector('[role=combobox]').value === ''")


def test_a_map_of_as_many_groups_as_are_shown_is_whole(page: Page, client: MetastoreClient) -> None:
    create_table(client, "odd", "full", [("a", "int", None)], keys=("a1", "a2"))
    parts = [
        Partition([str(number // 1000), str(number % 1000)], "odd", "full", sd=StorageDescriptor(serdeInfo=SerDeInfo()))
        for number in range(5000)
    ]
    client.call("add_partitions", parts)
    go(page, "t/odd/full/partitions")
    page.click("button", "Draw the map")
    page.sees("The first 60 of 1,000 values of a2 are shown")
    assert "groups are shown" not in page.text()
    # As the list, the newest first.
    assert page.run("document.querySelector('.heat tbody th').innerText") == "4"
    widths = page.run("[...document.querySelectorAll('.heat thead th')].map((one) => one.offsetWidth)")
    assert max(widths) - min(widths) <= 1
    # All of them are as old, so a plot of their ages says nothing; one page has all, so there is no next.
    assert page.run("document.querySelector('figure [aria-label^=\"Ages\"]')") is None
    go(page, "t/odd/full/partitions?filter=a1 %3D 'none'")
    page.sees("No partition matches.")
    assert page.run("[...document.querySelectorAll('button')].some(({ innerText }) => innerText === 'Next')") is False


def test_partitions_are_dropped_after_a_preview(page: Page, client: MetastoreClient) -> None:
    go(page, "t/shop/orders/partitions?last=no")
    page.click("input[type=checkbox]", "Choose ds=2026-10-01/region=africa")
    page.click("button", "Drop 1 partition")
    page.sees("Its files are deleted")
    page.sees("ds=2026-10-01/region=africa")
    page.click("dialog button.danger")
    page.sees("149 partitions")
    assert client.call("get_partition_names", "shop", "orders", 1) == ["ds=2026-10-01/region=americas"]


def test_dialogs_close_by_escape_and_the_focus_comes_back(page: Page) -> None:
    page.wait("document.querySelector('.panel button')")
    page.run("document.querySelector('.panel button').focus()")
    page.press("Enter")
    page.wait("document.querySelector('dialog[open]')")
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")
    page.wait("document.activeElement.innerText.includes('Create database')")


def test_the_keyboard_reaches_everything(page: Page) -> None:
    go(page, "t/shop/orders")
    page.sees("order_id")
    page.run("document.activeElement.blur()")
    reached = []
    for _ in range(40):
        page.press("Tab")
        reached.append(
            page.run(
                "(document.activeElement.innerText || document.activeElement.ariaLabel || '').trim().split('\\n')[0]"
            )
        )
    for name in (
        "Skip to the content",
        "Catalog",
        "Who waits",
        "Cost",
        "admin",
        "shop",
        "Edit …",
        "Partitions",
        "CREATE statement",
    ):
        assert name in reached, reached
    page.run("document.querySelector('.you button').focus()")
    page.press("Enter")
    for _ in range(2):
        page.press("Tab")
    page.wait("document.activeElement.innerText === 'Log out'")
    assert axe(page) == []
    page.press("Escape")
    page.wait("!document.querySelector('.menu:popover-open')")


def test_an_expired_login_asks_again_and_the_page_stays(page: Page, server: GatewayServer) -> None:
    go(page, "t/shop/orders/partitions")
    page.sees("partitions")
    page.type("#filter", "ds > '2026")
    page.run("import('./console.js').then(({ session }) => void (session.header = 'Basic eDp5'))")
    page.click(".tabs a", "Columns")
    page.click(".tabs a", "CREATE statement")
    page.sees("Log in again")
    assert axe(page) == []
    page.type("dialog input[name=password]", server.password)
    page.press("Enter")
    page.sees("CREATE TABLE `shop`.`orders`")
    assert page.run("location.hash") == "#/t/shop/orders/create"


def test_a_password_that_was_changed_is_asked_for_and_what_was_typed_stays(
    hasty_tab: Page, server: GatewayServer
) -> None:
    add_user(files(server).users_path, "dana", "before")
    log_in(hasty_tab, server, user="dana", password="before")
    hasty_tab.sees("shop")
    hasty_tab.type("[role=combobox]", "cust")
    add_user(files(server).users_path, "dana", PASSWORD)
    hasty_tab.sees("Log in again")
    assert hasty_tab.run("document.querySelector('dialog input[name=user]').value") == "dana"
    hasty_tab.type("dialog input[name=password]", PASSWORD)
    hasty_tab.press("Enter")
    hasty_tab.wait("!document.querySelector('dialog')")
    assert hasty_tab.run("document.querySelector('[role=combobox]').value") == "cust"
    hasty_tab.wait("document.querySelectorAll('[role=option]').length === 1")
    assert hasty_tab.run("violations") == []


def test_a_token_logs_in_until_it_is_revoked(hasty_tab: Page, server: GatewayServer) -> None:
    tokens = files(server).tokens_path
    secret, _ = create_token(tokens, server.user, now=int(time.time()), seconds=3_600)
    hasty_tab.open(root(server))
    hasty_tab.click("input[value=token]")
    hasty_tab.type("input[name=token]", "hms_wrong")
    hasty_tab.press("Enter")
    hasty_tab.wait("document.querySelector('[role=alert]')")
    hasty_tab.type("input[name=token]", secret)
    hasty_tab.press("Enter")
    hasty_tab.sees("Recent changes")
    hasty_tab.type("[role=combobox]", "order")
    assert revoke_tokens(tokens, users=[server.user])
    hasty_tab.sees("Log in again")
    assert hasty_tab.run("document.querySelector('[role=combobox]').value") == "order"
    assert hasty_tab.run("violations") == []


def test_a_right_that_is_lost_is_said_and_the_page_stays(
    tab: Page, client: MetastoreClient, server: GatewayServer
) -> None:
    log_in(tab, server, "/ui/#/t/shop/customers", "dana", PASSWORD)
    tab.sees("customer")
    client.call("revoke_privileges", customers_for_dana())
    tab.click(".tabs a", "CREATE statement")
    tab.sees("or you may have lost the right to see it")
    assert tab.run("document.querySelector('h1').innerText").startswith("customers")
    client.call("grant_privileges", customers_for_dana())
    tab.click("button", "Try again")
    tab.sees("CREATE TABLE `shop`.`customers`")
    # What she may see and not change.
    tab.click(".tabs a", "Columns")
    tab.click("button", "Drop")
    tab.type("dialog label input:not([type=checkbox])", "customers")
    tab.click("dialog button", "Drop")
    tab.sees("The call failed")
    assert tab.run("violations") == []


def test_a_gateway_with_too_much_to_do_says_so_and_what_was_typed_stays(tab: Page, server: GatewayServer) -> None:
    log_in(tab, server, user="eager", password=PASSWORD)
    tab.sees("The gateway is overloaded (429).")
    tab.click("button", "Create database")
    tab.type("dialog input", "wanted")
    tab.press("Enter")
    tab.wait("document.querySelector('dialog [role=alert]')?.innerText.includes('Your input is kept.')")
    assert tab.run("document.querySelector('dialog input').value") == "wanted"
    # As while the database is away.
    tab.run(
        "void (globalThis.fetch = async () => new Response('busy', { status: 503, headers: { 'retry-after': '7' } }))"
    )
    tab.press("Enter")
    tab.wait("document.querySelector('dialog [role=alert]')?.innerText.includes('(503). Try again in 7 s.')")
    assert tab.run("document.querySelector('dialog input').value") == "wanted"
    assert tab.run("violations") == []


@pytest.mark.skipif(not AXE.exists(), reason="npm packages of tools/console")
def test_nothing_that_axe_knows_is_wrong(page: Page, client: MetastoreClient) -> None:
    locks = wait_for_each_other(client)
    for address in PAGES:
        go(page, address)
        page.wait("document.querySelector('h1') && !document.querySelector('.loading')")
        assert axe(page) == [], address
        page.size(1280, 800, is_dark=True)
        assert axe(page, "color-contrast") == [], address
        page.size(1280, 800)
    for lock_id in locks:
        client.call("force_release_lock", lock_id, "")


@pytest.fixture
def troubled(tmp_path: Path) -> Iterator[GatewayServer]:
    """On a busy machine calls of other tests would be slower than the slow one."""
    with GatewayServer(tmp_path / "troubled", settings=SETTINGS) as server:
        with connected(server) as client:
            plant(client)
            plant_trouble(client, server.data_dir / DATABASE_FILE)
        yield server


def test_trouble_is_two_links_away(tab: Page, troubled: GatewayServer) -> None:
    """A slow filter, a hot table, a dead holder of a lock, what a deadlock has cost, and a queued compaction, from the
    start page.
    """
    tab.size(1280, 2000)
    log_in(tab, troubled)
    tab.wait("document.querySelector('[aria-label=\"Slow calls\"]').innerText.includes('get_partitions_by_filter')")
    tab.click("[aria-label='Slow calls'] a", "What calls cost")
    tab.wait("/get_partitions_by_filter[^]*shop.orders[^]*read/.test(document.body.innerText)")
    tab.run("history.back()")
    tab.wait("document.querySelector('[aria-label=\"Hot tables\"] tbody').innerText.includes('shop.customers\t')")
    tab.click("[aria-label='Hot tables'] a", "shop.customers")
    tab.wait("location.hash === '#/t/shop/customers'")
    tab.run("history.back()")
    tab.wait(
        "/lake.events gone . 1 request waits for it . silent for \\d+ min expires in/"
        ".test(document.body.innerText.replaceAll('\\n', ' '))"
    )
    tab.click("[aria-label='Who waits'] a", "All locks")
    tab.wait(
        "/aborted\tsecond\tnode-8[^]*deadlock with txnid:/"
        ".test(document.querySelector('[aria-label=\"Aborted transactions\"]').innerText)"
    )
    assert axe(tab) == []
    compactions = "document.querySelector('[aria-label=\"Compactions\"]').innerText"
    tab.wait(f"/shop.orders . ds=2026-10-30.region=asia\tmajor\tinitiated/.test({compactions})")
    tab.click("[aria-label='Compactions'] a", "shop.orders")
    tab.wait("location.hash === '#/t/shop/orders/activity'")


def test_a_change_comes_with_its_message_when_it_is_opened(page: Page) -> None:
    """Messages may have megabytes, so a list of changes has none."""
    page.run(COUNTS_MESSAGES)
    go(page, "t/lake/events/activity")
    page.click("[aria-label='Recent changes'] td button", "create table")
    page.click("dialog button", "Message in the log")
    shown = "document.querySelector('dialog pre').innerText"
    page.wait(f'/"db": "lake",[^]*"table": "events"/.test({shown})')
    assert page.run("messages") == 1
    assert axe(page) == []
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")


def test_a_narrow_window_scrolls_down_only(page: Page) -> None:
    page.size(320, 640)
    for address in PAGES:
        go(page, address)
        page.wait("document.querySelector('h1') && !document.querySelector('.loading')")
        assert page.run("document.documentElement.scrollWidth") <= 320, address
    page.size(1280, 800)


def test_an_open_page_survives_a_restart(hasty_tab: Page, tmp_path: Path) -> None:
    with GatewayServer(tmp_path / "server") as server:
        log_in(hasty_tab, server)
        hasty_tab.sees("default")
        server.stop()
        hasty_tab.type("[role=combobox]", "def")
        hasty_tab.sees("The gateway does not answer")
        server.start()
        with connected(server) as client:
            client.call("create_database", Database("later"))
        hasty_tab.sees("later")
        assert hasty_tab.run("document.querySelector('[role=combobox]').value") == "def"
        assert hasty_tab.run("violations") == []


@pytest.mark.parametrize("address", sample(["waits"], of=["", "waits", "t/shop/orders/activity"]))
def test_an_idle_page_asks_less_than_once_in_five_seconds(hasty_tab: Page, server: GatewayServer, address: str) -> None:
    log_in(hasty_tab, server, f"/ui/#/{address}")
    hasty_tab.wait("document.querySelector('h1')")
    hasty_tab.wait("!document.querySelector('.loading')")
    calls = "import('./console.js').then(({ session }) => session.calls)"
    first, began = hasty_tab.run(f"{calls}.then((calls) => [calls, performance.now()])")
    # So many that those which come at once at the beginning make no difference.
    hasty_tab.wait(f"{calls}.then((calls) => calls >= {first + IDLE_CALLS})")
    assert (hasty_tab.run("performance.now()") - began) * FAST / IDLE_CALLS > 5000


def test_answers_that_take_longer_than_a_turn_of_renewing_are_shown(hasty_tab: Page, server: GatewayServer) -> None:
    """An answer is held until the page has had several turns; it comes then, and those to later questions do not."""
    hasty_tab.send("Page.addScriptToEvaluateOnNewDocument", source=HOLDS_LOCKS)
    log_in(hasty_tab, server)
    hasty_tab.sees("default")
    hasty_tab.run("held.begin()")
    go(hasty_tab, "t/shop/orders/activity")
    hasty_tab.wait(f"held.turns > {SLOW_TURNS}")
    hasty_tab.wait("document.querySelectorAll('.loading').length === 1")
    hasty_tab.run("void held.end()")
    hasty_tab.wait("!document.querySelector('.loading')")
