"""What was used for a while is given back to the system. In processes of their own, whose memory nobody else uses."""

import contextlib
import platform
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer, trusting

pytestmark = pytest.mark.skipif(
    not (Path("/proc/self/statm").exists() and platform.libc_ver()[0] == "glibc"), reason="needs Linux and glibc"
)
RESIDENT = """
from pathlib import Path
def resident_mib(): return int(Path('/proc/self/statm').read_text().split()[1]) * 4096 / 2**20
"""


def said_by(code: str) -> list[float]:
    """The numbers it prints."""
    command = [sys.executable, "-c", RESIDENT + code]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS)
    return [float(number) for number in ended.stdout.split()]


@pytest.mark.slow
def test_what_hashing_passwords_takes_is_given_back() -> None:
    (more,) = said_by("""
from concurrent.futures import ThreadPoolExecutor
from hms_gateway.runtime.heap import keep_little_free_memory
from hms_gateway.gateway.auth.users import hash_password
hash_password('as a first start does')
keep_little_free_memory()
before = resident_mib()
with ThreadPoolExecutor(2) as threads: list(threads.map(hash_password, 'abcd'))
print(resident_mib() - before)
""")
    assert more < 5


@pytest.mark.slow
def test_what_one_thread_freed_is_of_use_to_the_next() -> None:
    """Threads take turns. Each frees what it took but for the last block, which keeps the rest from going back."""
    (grown,) = said_by("""
import threading
from hms_gateway.runtime.heap import keep_little_free_memory
keep_little_free_memory()
before, staying, turns, end = resident_mib(), [], threading.Lock(), threading.Barrier(17)
def work():
    with turns:
        blocks = [bytes(50_000) for _ in range(600)]
        staying.append(blocks.pop())
        del blocks
    end.wait(20)
threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads: thread.start()
end.wait(20)
print(resident_mib() - before)
""")
    # A turn takes 29 MiB, and there are two arenas. It was 99 MiB with one for each thread.
    assert grown < 75


@pytest.mark.slow
def test_a_connection_with_tls_keeps_little_of_its_handshake(tmp_path: Path) -> None:
    """uvloop's buffer of 256 KiB, of which little is ever used, is not in memory that the handshake before has used."""
    with GatewayServer(tmp_path) as gateway, contextlib.ExitStack() as idle:
        context = trusting()

        def connect(count: int) -> int:
            for _ in range(count):
                plain = socket.create_connection(("127.0.0.1", gateway.port))
                idle.enter_context(context.wrap_socket(plain))
            return resident_kib(gateway.pid)

        before = connect(50)
        # Without the place for handshakes it is 51.
        assert (connect(200) - before) / 200 < 40


def resident_kib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4
