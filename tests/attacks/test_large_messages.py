"""A second attack: eight messages of 2 MB each, decoded at the same time, kept the event loop from others for seconds.

The C code that decodes keeps Python's lock to the end of a message.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

from hms_gateway.rpc.processor import DECODED_ALONE_BYTES
from hms_gateway.rpc.wire.binary import ApacheCodec
from tests.attacks.processor_calls import answered, open_metastore
from tests.support.patience import PATIENCE_SECONDS

LARGE = "x" * DECODED_ALONE_BYTES
SMALL = "x"


def test_large_messages_are_decoded_one_after_the_other_and_small_ones_meanwhile(tmp_path, monkeypatch):
    decoding = []
    together = []
    is_large_inside = threading.Event()
    small_is_done = threading.Event()
    decode = ApacheCodec.decode

    def noting(self, struct_class, payload):
        if len(payload) < DECODED_ALONE_BYTES:
            return decode(self, struct_class, payload)
        decoding.append(payload)
        together.append(len(decoding))
        is_large_inside.set()
        small_is_done.wait(PATIENCE_SECONDS)  # ends by itself where small ones have to wait
        try:
            return decode(self, struct_class, payload)
        finally:
            decoding.remove(payload)

    with open_metastore(tmp_path) as metastore, ThreadPoolExecutor(3) as threads:
        monkeypatch.setattr(ApacheCodec, "decode", noting)
        large = [threads.submit(answered, metastore, "get_database", LARGE) for _ in range(3)]
        assert is_large_inside.wait(PATIENCE_SECONDS)
        assert answered(metastore, "get_database", SMALL)[0] == "NoSuchObjectException"
        assert not any(one.done() for one in large)
        small_is_done.set()
        assert {one.result()[0] for one in large} == {"NoSuchObjectException"}
    assert together == [1, 1, 1]
