"""Failures of the REST catalog: status and type of Iceberg's error model."""

from typing import Final

# In the order of the OpenAPI document's responses.
_STATUS: Final = {
    "BadRequestException": 400,
    "ValidationException": 400,
    "IllegalArgumentException": 400,
    "NotAuthorizedException": 401,
    "ForbiddenException": 403,
    "NoSuchNamespaceException": 404,
    "NoSuchTableException": 404,
    "NoSuchViewException": 404,
    "NoSuchWarehouseException": 404,
    "NotFoundException": 404,
    "MethodNotAllowedException": 405,
    "AlreadyExistsException": 409,
    "CommitFailedException": 409,
    "NamespaceNotEmptyException": 409,
    "UnprocessableEntityException": 422,
    "InternalServerError": 500,
    "CommitStateUnknownException": 500,
    "ServiceUnavailableException": 503,
}


class IcebergError(Exception):
    """A refused request. `kind` is the type that clients look at, which gives the status."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.status = _STATUS[kind]


def bad_request(text: str) -> IcebergError:
    return IcebergError("BadRequestException", text)


def invalid(text: str) -> IcebergError:
    """A refusal by the table's rules, of a request that can be read."""
    return IcebergError("ValidationException", text)


def illegal(text: str) -> IcebergError:
    """A refusal where Java's library checks an argument; its client raises this type."""
    return IcebergError("IllegalArgumentException", text)


def commit_failed(text: str) -> IcebergError:
    """Another commit was first: the client reads the table again, and retries."""
    return IcebergError("CommitFailedException", text)
