"""Delegation tokens and master keys as rows: opaque texts of any length (semantics §2.19)."""

from sqlalchemy import delete, insert, select, update

from hms_gateway.storage.schema.catalog import DELEGATION_TOKENS, MASTER_KEYS
from hms_gateway.storage.sql.fragments import decode_texts, encode_texts, text_hash
from hms_gateway.storage.sql.repository import Repository


class TokenRepository(Repository):
    """`object_ports.TokenWrites`."""

    def token(self, identifier: str) -> str | None:
        statement = select(DELEGATION_TOKENS.c.content).where(
            DELEGATION_TOKENS.c.identifier_hash == text_hash(identifier)
        )
        content = self._connection.execute(statement).scalar()
        return None if content is None else decode_texts(content)[1]

    def identifiers(self) -> list[str]:
        return sorted(self.tokens())

    def tokens(self) -> dict[str, str]:
        rows = map(decode_texts, self._connection.execute(select(DELEGATION_TOKENS.c.content)).scalars())
        return {row[0]: row[1] for row in rows}

    def master_keys(self) -> dict[int, str]:
        rows = self._connection.execute(
            select(MASTER_KEYS.c.key_id, MASTER_KEYS.c.content).order_by(MASTER_KEYS.c.key_id)
        )
        return {number: decode_texts(content)[0] for number, content in rows}

    def leave_no_traces(self) -> None:
        self._dialect.leave_no_traces(self._connection)

    def insert_token(self, identifier: str, token: str) -> bool:
        if self.token(identifier) is not None:
            return False
        values = {"identifier_hash": text_hash(identifier), "content": encode_texts([identifier, token])}
        self._connection.execute(insert(DELEGATION_TOKENS).values(values))
        return True

    def update_token(self, identifier: str, token: str) -> bool:
        condition = DELEGATION_TOKENS.c.identifier_hash == text_hash(identifier)
        values = {"content": encode_texts([identifier, token])}
        return self._connection.execute(update(DELEGATION_TOKENS).where(condition).values(values)).rowcount > 0

    def delete_token(self, identifier: str) -> bool:
        condition = DELEGATION_TOKENS.c.identifier_hash == text_hash(identifier)
        return self._connection.execute(delete(DELEGATION_TOKENS).where(condition)).rowcount > 0

    def insert_master_key(self, key: str) -> int:
        return self._inserted_id(insert(MASTER_KEYS).values(content=encode_texts([key])))

    def update_master_key(self, number: int, key: str) -> bool:
        statement = update(MASTER_KEYS).where(MASTER_KEYS.c.key_id == number).values(content=encode_texts([key]))
        return self._connection.execute(statement).rowcount > 0

    def delete_master_key(self, number: int) -> bool:
        return self._connection.execute(delete(MASTER_KEYS).where(MASTER_KEYS.c.key_id == number)).rowcount > 0
