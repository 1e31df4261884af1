"""TJSON codec beside Apache thrift's, 1,000 partitions of 20 columns: `python -m benchmarks.tjson`.

Prints medians per partition, the ratio to Apache's Python TJSONProtocol, and both with the garbage collector on and
off: the collector walks whatever is alive as objects, so its share grows with the list.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hms_gateway.rpc.structs import METHODS, FieldSchema, Order, Partition, SerDeInfo, SkewedInfo, StorageDescriptor
from hms_gateway.rpc.wire import Codec, make_codecs
from hms_gateway.runtime.limits import Limits
from tests.support.apache import ApacheTJson

COUNT = 1_000
CHUNK = 100
COLUMN_TYPES = ("bigint", "string", "decimal(10,2)", "timestamp", "array<struct<a:int,b:string>>")


def partition(number: int, *, same_columns: bool = True) -> Partition:
    """A partition as Spark and Hive write them, about 2.6 kB of TJSON."""
    prefix = "" if same_columns else f"p{number}_"
    day = f"2024-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}"
    columns = [
        FieldSchema(f"{prefix}column_{index:02}", COLUMN_TYPES[index % 5], f"what column {index} means, in words")
        for index in range(20)
    ]
    descriptor = StorageDescriptor(
        cols=columns,
        location=f"hdfs://namenode.example:9000/warehouse/sales.db/orders/ds={day}",
        inputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(
            serializationLib="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
            parameters={"serialization.format": "1"},
        ),
        bucketCols=[],
        sortCols=[Order("column_00", 1)],
        parameters={},
        skewedInfo=SkewedInfo([], [], {}),
        storedAsSubDirectories=False,
    )
    parameters = {
        "transient_lastDdlTime": str(1_700_000_000 + number),
        "totalSize": str(number * 4711),
        "numRows": str(number),
        "rawDataSize": "0",
        "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}',
        "numFiles": "1",
    }
    return Partition([day], "sales", "orders", 1_700_000_000 + number, 0, descriptor, parameters)


class ReadyChunks:
    """An EncodedList of chunks that lie ready."""

    def __init__(self, partitions: Sequence[Partition], elements: Sequence[bytes]) -> None:
        self._partitions = partitions
        self._elements = elements

    def __len__(self) -> int:
        return len(self._elements)

    def tjson_chunks(self) -> Iterator[bytes]:
        for start in range(0, len(self._elements), CHUNK):
            yield b",".join(self._elements[start : start + CHUNK])

    def struct_chunks(self) -> Iterator[list[Partition]]:
        for start in range(0, len(self._partitions), CHUNK):
            yield list(self._partitions[start : start + CHUNK])

    def close(self) -> None:
        pass


def median_microseconds(work: Callable[[], object], *, rounds: int, per: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) / per * 1e6


def with_and_without_collector(work: Callable[[], object], rounds: int, per: int) -> tuple[float, float]:
    work()
    collected = median_microseconds(work, rounds=rounds, per=per)
    gc.disable()
    try:
        return collected, median_microseconds(work, rounds=rounds, per=per)
    finally:
        gc.enable()
        gc.collect()


def report(name: str, times: tuple[float, float], baseline: tuple[float, float]) -> None:
    ratios = [f"{base / own:.0f}x" for own, base in zip(times, baseline, strict=True)]
    print(f"{name:<52}{times[0]:>10.2f}{ratios[0]:>8}{times[1]:>10.2f}{ratios[1]:>8}")


def encoded(codec: Codec, value: Any) -> bytes:
    """Of one that is not read while it is sent."""
    text = codec.encode(value)
    assert isinstance(text, bytes)
    return text


def main() -> None:
    codecs = make_codecs(Limits())
    result = METHODS["get_partitions"].result
    same = [partition(number) for number in range(COUNT)]
    different = [partition(number, same_columns=False) for number in range(COUNT)]
    reply, reply_different = result(success=same), result(success=different)
    text, text_different = encoded(codecs.tjson, reply), encoded(codecs.tjson, reply_different)
    binary = encoded(codecs.binary, reply)
    controlled = text.replace(b"what column 5", b"what\x01column 5")
    tabbed = text.replace(b"what column 5", b"what\tcolumn 5")
    elements = [encoded(codecs.tjson, one) for one in same]
    tenth = result(success=same[: COUNT // 10])
    tenth_text = encoded(codecs.tjson, tenth)

    def spliced() -> int:
        chunks = codecs.tjson.encode(result(success=ReadyChunks(same, elements)))
        assert not isinstance(chunks, bytes)
        return sum(map(len, chunks))

    def measure(work: Callable[[], object], rounds: int = 15, per: int = COUNT) -> tuple[float, float]:
        return with_and_without_collector(work, rounds, per)

    print(f"{COUNT} partitions, {len(text) / COUNT:.0f} bytes each; microseconds per partition, ratio to Apache TJSON")
    print(f"{'':<52}{'gc on':>10}{'':>8}{'gc off':>10}")
    apache_encode = measure(lambda: ApacheTJson.encode(tenth), 3, COUNT // 10)
    apache_decode = measure(lambda: ApacheTJson.decode(result, tenth_text), 3, COUNT // 10)
    report("encode: Apache TJSONProtocol (100 partitions)", apache_encode, apache_encode)
    report("encode: from structs", measure(lambda: codecs.tjson.encode(reply)), apache_encode)
    report("encode: spliced, ready chunks", measure(spliced), apache_encode)
    report("encode: binary, for scale", measure(lambda: codecs.binary.encode(reply)), apache_encode)
    report("decode: Apache TJSONProtocol (100 partitions)", apache_decode, apache_decode)
    report("decode: same columns", measure(lambda: codecs.tjson.decode(result, text)), apache_decode)
    report("decode: all columns different", measure(lambda: codecs.tjson.decode(result, text_different)), apache_decode)
    report("decode: raw control characters", measure(lambda: codecs.tjson.decode(result, controlled)), apache_decode)
    report("decode: by the scanner", measure(lambda: codecs.tjson.decode(result, tabbed), 3), apache_decode)
    report("decode: binary, for scale", measure(lambda: codecs.binary.decode(result, binary)), apache_decode)

    call = METHODS["get_table"].arguments(dbname="sales", tbl_name="orders")
    before, after = codecs.tjson.envelope("get_table", 1, 1)  # type: ignore[arg-type]
    body = before + codecs.tjson.encode(call) + after  # type: ignore[operator]
    apache_call = ApacheTJson.encode(call)
    call_baseline = measure(lambda: [ApacheTJson.decode(type(call), apache_call) for _ in range(100)], 5, 100)
    print("per call of get_table, arguments only")
    report("decode: Apache TJSONProtocol", call_baseline, call_baseline)
    report(
        "sniff, read_message, decode",
        measure(
            lambda: [
                codecs.tjson.decode(type(call), codecs.sniff(body).read_message(body).payload) for _ in range(1000)
            ],
            9,
            1000,
        ),
        call_baseline,
    )


if __name__ == "__main__":
    main()
