"""What a server process does about SIGHUP before it can do something with it."""

import signal
import threading


def ignore_hang_up() -> None:
    """SIGHUP by itself ends a process; a server has another use for it or none, and may get it while it starts."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
