"""The names of file formats in HiveQL, and the classes of Hive that they mean."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class FileFormat(NamedTuple):
    input_format: str
    output_format: str
    serde: str


_PARQUET: Final = "org.apache.hadoop.hive.ql.io.parquet"
_ORC: Final = "org.apache.hadoop.hive.ql.io.orc"
_AVRO: Final = "org.apache.hadoop.hive.ql.io.avro"
_SERDE2: Final = "org.apache.hadoop.hive.serde2"
_MAPRED: Final = "org.apache.hadoop.mapred"
_IO: Final = "org.apache.hadoop.hive.ql.io"
LAZY_SERDE: Final = f"{_SERDE2}.lazy.LazySimpleSerDe"

FORMATS: Final[Mapping[str, FileFormat]] = MappingProxyType(
    {
        "TEXTFILE": FileFormat(f"{_MAPRED}.TextInputFormat", f"{_IO}.HiveIgnoreKeyTextOutputFormat", LAZY_SERDE),
        "SEQUENCEFILE": FileFormat(
            f"{_MAPRED}.SequenceFileInputFormat", f"{_IO}.HiveSequenceFileOutputFormat", LAZY_SERDE
        ),
        "RCFILE": FileFormat(
            f"{_IO}.RCFileInputFormat",
            f"{_IO}.RCFileOutputFormat",
            f"{_SERDE2}.columnar.LazyBinaryColumnarSerDe",
        ),
        "ORC": FileFormat(f"{_ORC}.OrcInputFormat", f"{_ORC}.OrcOutputFormat", f"{_ORC}.OrcSerde"),
        "PARQUET": FileFormat(
            f"{_PARQUET}.MapredParquetInputFormat",
            f"{_PARQUET}.MapredParquetOutputFormat",
            f"{_PARQUET}.serde.ParquetHiveSerDe",
        ),
        "AVRO": FileFormat(
            f"{_AVRO}.AvroContainerInputFormat", f"{_AVRO}.AvroContainerOutputFormat", f"{_SERDE2}.avro.AvroSerDe"
        ),
        "JSONFILE": FileFormat(
            f"{_MAPRED}.TextInputFormat", f"{_IO}.HiveIgnoreKeyTextOutputFormat", f"{_SERDE2}.JsonSerDe"
        ),
    }
)
