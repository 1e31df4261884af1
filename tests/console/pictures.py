"""Takes the pictures of docs/console.md: `python -m tests.console.pictures`, with a Chromium."""

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.console.planted import plant, wait_for_each_other
from tests.console.test_console import connected, go, log_in
from tests.interop.page_server import find_chromium
from tests.support.chromium import Page, chromium
from tests.support.server import GatewayServer

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


class Picture(NamedTuple):
    name: str
    address: str
    width: int
    height: int
    scale: float = 1
    is_dark: bool = False


PICTURES = (
    Picture("console-start", "", 1280, 760, 0.7),
    Picture("console-partitions", "t/shop/orders/partitions", 1280, 760, 0.7),
    Picture("console-waits", "waits", 1280, 760, 0.7, is_dark=True),
    Picture("console-narrow", "t/shop/orders", 320, 640),
    Picture("console-wide", "t/shop/orders/partitions", 3840, 2160, 0.25),
)


def take(page: Page, picture: Picture) -> bytes:
    """The page as it is when nothing is loading any more."""
    page.size(picture.width, picture.height, is_dark=picture.is_dark)
    go(page, picture.address)
    page.wait("document.querySelector('h1') && !document.querySelector('.loading')")
    return page.picture(picture.scale)


def main() -> None:
    if find_chromium() is None:
        sys.exit("no Chromium: install the package chromium")
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        GatewayServer(
            Path(folder) / "server", settings={"warehouse_dir": "hdfs://warehouse.example:8020/hive"}
        ) as server,
    ):
        with connected(server) as client:
            plant(client)
            wait_for_each_other(client)
        with chromium(Path(folder) / "chromium") as browser:
            page = browser.page()
            log_in(page, server)
            for picture in PICTURES:
                (FOLDER / f"{picture.name}.png").write_bytes(take(page, picture))


if __name__ == "__main__":
    main()
