"""The three ways a table is written, and keys that it is partitioned by."""

from dataclasses import dataclass

FORMATS = ("parquet", "orc", "text")


@dataclass(frozen=True, slots=True)
class Key:
    """A partition key: SQL literals of its values in order, and the same as they stand in partition names."""

    type: str
    literals: tuple[str, ...]
    names: tuple[str, ...]


DAYS = tuple(f"2024-0{month}-01" for month in range(1, 8))
KEYS = {
    "string": Key("string", tuple(f"'{letter}'" for letter in "abcdefg"), tuple("abcdefg")),
    "int": Key("int", tuple(str(number) for number in range(8, 15)), tuple(str(number) for number in range(8, 15))),
    "date": Key("date", tuple(f"DATE '{day}'" for day in DAYS), DAYS),
}


def create(file_format: str, table: str, columns: str, partitions: str = "", rest: str = "") -> str:
    """CREATE TABLE in one of the formats."""
    partitioned = f"PARTITIONED BY ({partitions})" if partitions else ""
    if file_format == "text":
        return f"CREATE TABLE {table} ({columns}) {partitioned} STORED AS TEXTFILE {rest}"
    return f"CREATE TABLE {table} ({columns}) USING {file_format} {partitioned} {rest}"


def write_files(file_format: str, directory: str, select: str) -> str:
    """A statement that writes files of the format past the catalog."""
    stored = "STORED AS TEXTFILE" if file_format == "text" else f"USING {file_format}"
    return f"INSERT OVERWRITE DIRECTORY '{directory}' {stored} {select}"
