"""The console in a real browser: what people see and do, by keys and by screen reader names, under a strict policy."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_gateway.client.metastore_client import MetastoreClient
from hms_gateway.composition.main import DATABASE_FILE
from hms_gateway.gateway.auth.tokens import create_token, revoke_tokens
from hms_gateway.gateway.auth.users import add_user
from hms_gateway.handlers.arguments import with_fields
from hms_gateway.runtime.settings import Settings
from hms_gateway.structs import Database, ShowLocksRequest
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
    wait_for_each_other,
)
from tests.interop.page_server import find_chromium
from tests.support.chromium import Chromium, Page, chromium
from tests.support.server import GatewayServer, trusting
from tools.console_files import PACKAGES

AXE = PACKAGES / "node_modules" / "axe-core" / "axe.min.js"
PAGES = [
    "",
    "d/shop",
    "t/shop/orders/partitions",
    "t/shop/customers/statistics",
    "t/shop/customers/access",
    "waits",
    "cost",
]

PASSWORD = "of dana and eager"

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
# Several turns of a page in haste.
SLOW_MILLISECONDS = 1000
IN_HASTE = f"const real = setTimeout; globalThis.setTimeout = (go, time, ...more) => real(go, time / {FAST}, ...more);"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_chromium() is None, reason="no Chromium: install the package chromium"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayServer]:
    """Besides its administrator, dana may read one table, and of eager one call is answered."""
    settings = {
        "slow_call_seconds": 0.02,
        "authorization": "grants",
        "user_rates.eager.calls_per_second": 1e-6,
    }
    with GatewayServer(tmp_path_factory.mktemp("server"), settings=settings) as server:
        for name in ("dana", "eager"):
            add_user(files(server).users_path, name, PASSWORD)
        with connected(server) as client:
            plant(client)
            plant_hostile(client)
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


@pytest.fixture(scope="module")
def shared(browser: Chromium, server: GatewayServer) -> Page:
    page = browser.page()
    page.size(1280, 800)
    log_in(page, server)
    return page


@pytest.fixture
def page(shared: Page, server: GatewayServer) -> Iterator[Page]:
    """A tab of a user who is logged in; in the end nothing was blocked, nothing failed, no other host was asked."""
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


def axe(page: Page, *rules: str) -> list[str]:
    """What axe finds, of some rules or of all."""
    if not AXE.exists():
        pytest.skip("npm packages of tools/console")
    if not page.run("'axe' in globalThis"):
        page.run(AXE.read_text(encoding="utf-8") + "; true")
    options: dict[str, object] = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    found = page.run(f"axe.run(document, {json.dumps(options)}).then((result) => result.violations)")
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


def test_a_wrong_password_says_so_and_the_name_stays(browser: Chromium, server: GatewayServer) -> None:
    page = browser.page()
    page.open(root(server))
    assert page.wait("location.pathname") == "/ui/"
    page.type("input[name=user]", server.user)
    page.type("input[name=password]", "wrong")
    page.press("Enter")
    page.sees("User name or password is wrong")
    assert page.run("document.querySelector('input[name=user]').value") == server.user
    assert axe(page) == []
    page.type("input[name=password]", server.password)
    page.press("Enter")
    page.sees("shop")
    assert page.run("document.cookie") == ""


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
    assert page.run(chosen).startswith("shop.big_orders")
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
    page.sees("Added up over 150 partitions, of which 0 have statistics of every column.")
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
    page.type("#filter", "ds = 'x' ?")
    page.press("Enter")
    page.wait("document.querySelector('mark')?.innerText === '?'")
    assert page.run("document.activeElement.id") == "filter"
    assert page.run("document.activeElement.value") == "ds = 'x' ?"


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
    page.sees("Of 70 values of run the first 60 are shown; a filter narrows it.")
    assert page.run("document.querySelectorAll('.heat thead th').length") == 60


def test_plots_come_when_the_gateway_does(browser: Chromium, server: GatewayServer) -> None:
    page = hasty_page(browser)
    page.send("Network.enable")
    page.send("Network.setBlockedURLs", urls=["*uplot.js*"])
    log_in(page, server, "/ui/#/cost")
    page.wait("document.querySelector('[aria-label^=\"Calls per second:\"]')")
    page.wait("document.querySelectorAll('link[href*=uplot]').length > 1")
    assert not page.run("document.querySelector('canvas')")
    page.send("Network.setBlockedURLs", urls=[])
    page.wait("document.querySelector('canvas')")


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
    page.wait("document.querySelectorAll('.waits .waits').length >= 2")
    assert page.run("document.querySelector('.waits > li > .wait strong').innerText") == f"Lock {held}"
    page.click(".waits > li > .wait button")
    page.sees("ann loses shop.orders without being asked")
    page.sees("2 requests that wait go on.")
    page.click("dialog button", "Free the lock")
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


def test_what_was_refused_is_tried_again_when_its_reason_is_gone(page: Page, client: MetastoreClient) -> None:
    client.call("create_database", Database("full"))
    client.call("create_table", new_view("full", "seen"))
    go(page, "t/full/seen")
    page.click(".actions button", "Drop")
    page.wait("document.querySelector('dialog')")
    assert "files" not in page.run("document.querySelector('dialog').innerText")
    page.press("Escape")
    go(page, "d/full")
    page.click(".actions button", "Drop")
    page.type("dialog input:not([type])", "full")
    page.click("dialog button.danger")
    page.sees("is not empty")
    client.call("drop_table", "full", "seen", False)
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
    page.sees("The gateway has too much to do (503). Try again in 7 s.")
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
    assert "Create database" in page.run("document.activeElement.innerText")


def test_the_keyboard_reaches_everything(page: Page) -> None:
    go(page, "t/shop/orders")
    page.sees("order_id")
    page.run("document.activeElement.blur()")
    reached = []
    for _ in range(40):
        page.press("Tab")
        reached.append(page.run("(document.activeElement.innerText || document.activeElement.ariaLabel || '').trim()"))
    for name in (
        "Skip to the content",
        "Catalog",
        "Who waits",
        "Cost",
        "Log out",
        "shop",
        "Edit …",
        "Partitions",
        "Create text",
    ):
        assert name in reached, reached


def test_an_expired_login_asks_again_and_the_page_stays(page: Page, server: GatewayServer) -> None:
    go(page, "t/shop/orders/partitions")
    page.sees("partitions")
    page.type("#filter", "ds > '2026")
    page.run("import('./console.js').then(({ session }) => void (session.header = 'Basic eDp5'))")
    page.click(".tabs a", "Columns")
    page.click(".tabs a", "Create text")
    page.sees("Log in again")
    assert axe(page) == []
    page.type("dialog input[name=password]", server.password)
    page.press("Enter")
    page.sees("CREATE TABLE `shop`.`orders`")
    assert page.run("location.hash") == "#/t/shop/orders/create"


def test_a_password_that_was_changed_is_asked_for_and_what_was_typed_stays(
    browser: Chromium, server: GatewayServer
) -> None:
    add_user(files(server).users_path, "dana", "before")
    page = hasty_page(browser)
    log_in(page, server, user="dana", password="before")
    page.sees("shop")
    page.type("[role=combobox]", "cust")
    add_user(files(server).users_path, "dana", PASSWORD)
    page.sees("Log in again")
    assert page.run("document.querySelector('dialog input[name=user]').value") == "dana"
    page.type("dialog input[name=password]", PASSWORD)
    page.press("Enter")
    page.wait("!document.querySelector('dialog')")
    assert page.run("document.querySelector('[role=combobox]').value") == "cust"
    page.wait("document.querySelectorAll('[role=option]').length === 1")
    assert page.run("violations") == []


def test_a_token_logs_in_until_it_is_revoked(browser: Chromium, server: GatewayServer) -> None:
    tokens = files(server).tokens_path
    secret, _ = create_token(tokens, server.user, now=int(time.time()), seconds=3_600)
    page = hasty_page(browser)
    page.open(root(server))
    page.click("input[value=token]")
    page.type("input[name=token]", "hms_wrong")
    page.press("Enter")
    page.wait("document.querySelector('[role=alert]')")
    page.type("input[name=token]", secret)
    page.press("Enter")
    page.sees("Recent changes")
    page.type("[role=combobox]", "order")
    assert revoke_tokens(tokens, users=[server.user])
    page.sees("Log in again")
    assert page.run("document.querySelector('[role=combobox]').value") == "order"
    assert page.run("violations") == []


def test_a_right_that_is_lost_is_said_and_the_page_stays(
    browser: Chromium, client: MetastoreClient, server: GatewayServer
) -> None:
    page = browser.page()
    log_in(page, server, "/ui/#/t/shop/customers", "dana", PASSWORD)
    page.sees("customer")
    client.call("revoke_privileges", customers_for_dana())
    page.click(".tabs a", "Create text")
    page.sees("or you may not see it any more")
    assert page.run("document.querySelector('h1').innerText").startswith("customers")
    client.call("grant_privileges", customers_for_dana())
    page.click("button", "Try again")
    page.sees("CREATE TABLE `shop`.`customers`")
    # What she may see and not change.
    page.click(".tabs a", "Columns")
    page.click("button", "Drop")
    page.type("dialog label input:not([type=checkbox])", "customers")
    page.click("dialog button", "Drop")
    page.sees("The call failed")
    assert page.run("violations") == []


def test_a_gateway_with_too_much_to_do_says_so_and_what_was_typed_stays(
    browser: Chromium, server: GatewayServer
) -> None:
    page = browser.page()
    log_in(page, server, user="eager", password=PASSWORD)
    page.sees("The gateway has too much to do (429).")
    page.click("button", "Create database")
    page.type("dialog input", "wanted")
    page.press("Enter")
    page.wait("document.querySelector('dialog [role=alert]')?.innerText.includes('What you typed is kept.')")
    assert page.run("document.querySelector('dialog input').value") == "wanted"
    # As while the database is away.
    page.run(
        "void (globalThis.fetch = async () => new Response('busy', { status: 503, headers: { 'retry-after': '7' } }))"
    )
    page.press("Enter")
    page.wait("document.querySelector('dialog [role=alert]')?.innerText.includes('(503). Try again in 7 s.')")
    assert page.run("document.querySelector('dialog input').value") == "wanted"
    assert page.run("violations") == []


def hasty_page(browser: Chromium) -> Page:
    page = browser.page()
    page.send("Page.addScriptToEvaluateOnNewDocument", source=IN_HASTE)
    return page


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


def test_trouble_is_two_links_away(browser: Chromium, client: MetastoreClient, server: GatewayServer) -> None:
    """A slow filter, a hot table, a dead holder of a lock, what a deadlock has cost, and a queued compaction, from the
    start page.
    """
    plant_trouble(client, server.data_dir / DATABASE_FILE)
    page = browser.page()
    page.size(1280, 2000)
    log_in(page, server)
    page.wait("document.querySelector('[aria-label=\"Slow calls\"]').innerText.includes('get_partitions_by_filter')")
    page.click("[aria-label='Slow calls'] a", "What calls cost")
    page.wait("/get_partitions_by_filter[^]*shop.orders[^]*read/.test(document.body.innerText)")
    page.run("history.back()")
    page.wait("document.querySelector('[aria-label=\"Hot tables\"] tbody tr').innerText.startsWith('shop.customers\t')")
    page.click("[aria-label='Hot tables'] a", "shop.customers")
    page.wait("location.hash === '#/t/shop/customers'")
    page.run("history.back()")
    page.wait("/lake.events gone .* silent for 4 min lost in/.test(document.body.innerText.replaceAll('\\n', ' '))")
    page.click("[aria-label='Who waits'] a", "All locks")
    page.wait(
        "/aborted\tsecond\tnode-8[^]*deadlock with txnid:/"
        ".test(document.querySelector('[aria-label=\"Aborted transactions\"]').innerText)"
    )
    assert axe(page) == []
    compactions = "document.querySelector('[aria-label=\"Compactions\"]').innerText"
    page.wait(f"/shop.orders . ds=2026-10-30.region=asia\tmajor\tinitiated/.test({compactions})")
    page.click("[aria-label='Compactions'] a", "shop.orders")
    page.wait("location.hash === '#/t/shop/orders/activity'")


def test_a_change_comes_with_its_message_when_it_is_opened(page: Page) -> None:
    """Messages may have megabytes, so a list of changes has none."""
    page.run(COUNTS_MESSAGES)
    go(page, "t/lake/events/activity")
    page.click("[aria-label='Recent changes'] td button", "create table")
    page.sees("Copy")
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


def test_an_open_page_survives_a_restart(browser: Chromium, tmp_path: Path) -> None:
    with GatewayServer(tmp_path / "server") as server:
        page = hasty_page(browser)
        log_in(page, server)
        page.sees("default")
        server.stop()
        page.type("[role=combobox]", "def")
        page.sees("The gateway does not answer")
        server.start()
        with connected(server) as client:
            client.call("create_database", Database("later"))
        page.sees("later")
        assert page.run("document.querySelector('[role=combobox]').value") == "def"
        assert page.run("violations") == []


@pytest.mark.parametrize("address", ["", "waits", "t/shop/orders/activity"])
def test_an_idle_page_asks_less_than_once_in_five_seconds(
    browser: Chromium, server: GatewayServer, address: str
) -> None:
    page = hasty_page(browser)
    log_in(page, server, f"/ui/#/{address}")
    page.wait("document.querySelector('h1')")
    page.wait("!document.querySelector('.loading')")
    calls = "import('./console.js').then(({ session }) => session.calls)"
    first, began = page.run(f"{calls}.then((calls) => [calls, performance.now()])")
    # So many that those which come at once at the beginning make no difference.
    page.wait(f"{calls}.then((calls) => calls >= {first + IDLE_CALLS})")
    assert (page.run("performance.now()") - began) * FAST / IDLE_CALLS > 5000


def test_answers_that_take_longer_than_a_turn_of_renewing_are_shown(browser: Chromium, server: GatewayServer) -> None:
    page = hasty_page(browser)
    log_in(page, server)
    page.sees("default")
    conditions = {"offline": False, "latency": SLOW_MILLISECONDS, "downloadThroughput": -1, "uploadThroughput": -1}
    page.send("Network.enable")
    page.send("Network.emulateNetworkConditions", **conditions)
    go(page, "t/shop/orders/activity")
    page.wait("document.querySelector('h1') && document.querySelector('.loading')")
    page.wait("!document.querySelector('.loading')")
