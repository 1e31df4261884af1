"""The types of columns, for the schema and for the migrations that make it: what one says here never changes.

Types that every database knows: importing SQLAlchemy's own ones of a database loads all its drivers' dialects.
"""

from typing import Any, Final

from sqlalchemy import BigInteger, Integer, LargeBinary, String, Text

# Compare by code point, without ignoring spaces at the end. MySQL and MariaDB have no such collation in common.
MYSQL_COLLATION: Final = "utf8mb4_0900_bin"
MARIADB_COLLATION: Final = "utf8mb4_nopad_bin"

# MySQL and MariaDB index 3,072 bytes, which are 768 characters, in all columns of a key together.
DATABASE_CHARACTERS: Final = 128
TABLE_CHARACTERS: Final = 256
NAME_CHARACTERS: Final = 700
PRINCIPAL_CHARACTERS: Final = 512
CALL_KEY_CHARACTERS: Final = 128
SHORT_CHARACTERS: Final = 64
# How much of a column of NAME_CHARACTERS is in an index that also has others.
INDEXED_CHARACTERS: Final = 180

# Of this length MySQL's are LONGTEXT and LONGBLOB.
_LONG: Final = 2**32 - 1


def binary_text(characters: int) -> Any:
    """Texts that are compared byte by byte; of this length at most where a database has to know."""
    return (
        Text()
        .with_variant(Text(collation="C"), "postgresql")
        .with_variant(String(characters, collation=MYSQL_COLLATION), "mysql")
        .with_variant(String(characters, collation=MARIADB_COLLATION), "mariadb")
    )


ID: Final = BigInteger().with_variant(Integer(), "sqlite")
BINARY_TEXT: Final = binary_text(NAME_CHARACTERS)
DATABASE_NAME: Final = binary_text(DATABASE_CHARACTERS)
TABLE_NAME: Final = binary_text(TABLE_CHARACTERS)
SHORT_TEXT: Final = binary_text(SHORT_CHARACTERS)
LONG_TEXT: Final = (
    Text()
    .with_variant(Text(_LONG, collation=MYSQL_COLLATION), "mysql")
    .with_variant(Text(_LONG, collation=MARIADB_COLLATION), "mariadb")
)
LONG_BINARY: Final = LargeBinary().with_variant(LargeBinary(_LONG), "mysql", "mariadb")


def index_lengths(*columns: str) -> dict[str, Any]:
    """The options of an index that has only the beginnings of these columns where it cannot have more."""
    lengths = dict.fromkeys(columns, INDEXED_CHARACTERS)
    return {"mysql_length": lengths, "mariadb_length": lengths}
