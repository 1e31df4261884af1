"""Free what exceptions keep in memory after they were answered."""


def forget_frames(error: BaseException, before: BaseException | None = None) -> None:
    """Drop the tracebacks of an exception that was answered, and of those it came from; log them before.

    `before` was already on its way when `error` was raised, and goes on: it keeps its own.

    They lead to the frames of the call. One of these most often has a variable with the exception, or with its future:
    then all that the call had, such as its connection with 256 KiB for TLS, would wait for the garbage collector. Of
    structs that would be for ever, since it does not look into them.
    """
    left: list[BaseException | None] = [error]
    seen = {id(before)}
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = None
            left += (one.__cause__, one.__context__)
