"""The cases of a test as one test, where none of them needs anything: an item of pytest costs more than most cases."""

import functools
import inspect
import itertools
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pytest
from hypothesis import is_hypothesis_test

Case = dict[str, Any]


def merged(
    function: Callable[..., None], is_shared: Callable[[str], bool] = lambda name: False
) -> Callable[..., None] | None:
    """A test that runs every case of the parametrized `function`; None where fixtures or marks belong to one case.

    `is_shared` tells of a fixture whether all cases have the same one.
    """
    marks = [mark for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
    if not marks or inspect.iscoroutinefunction(function) or is_hypothesis_test(function):
        return None
    axes = [list(_cases(mark)) for mark in marks]
    names = {name for axis in axes for case in axis[:1] if case is not None for name in case}
    shared = [one for name, one in inspect.signature(function).parameters.items() if name not in names]
    if any(None in axis or not axis for axis in axes) or not all(is_shared(one.name) for one in shared):
        return None

    @functools.wraps(function)
    def run_all(**fixtures: Any) -> None:
        skipped: list[BaseException] = []
        cases = list(itertools.product(*axes))
        for parts in cases:
            case = {name: value for part in parts if part is not None for name, value in part.items()}
            try:
                function(**case, **fixtures)
            except pytest.skip.Exception as reason:
                skipped.append(reason)
            except BaseException as error:
                error.add_note(f"in the case {str(case)[:1000]}")
                raise
        if len(skipped) == len(cases):
            raise skipped[0]

    setattr(run_all, "__signature__", inspect.Signature(shared))  # noqa: B010
    setattr(run_all, "pytestmark", [mark for mark in function.pytestmark if mark not in marks])  # type: ignore[attr-defined]  # noqa: B010
    return run_all


def _cases(mark: pytest.Mark) -> Iterator[Case | None]:
    """None for one that is not only values."""
    given, values = mark.args[:2] if len(mark.args) > 1 else (None, ())
    # An iterator is left to pytest.
    values = values if isinstance(values, Collection) else ()
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given or ())
    for one in values:
        marked = getattr(one, "marks", ())
        plain = one.values if isinstance(one, type(pytest.param())) else (one,) if len(names) == 1 else one
        yield None if marked or mark.kwargs.get("indirect") or not names else dict(zip(names, plain, strict=True))
