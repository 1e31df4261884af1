"""What is left of a failing program is what makes it fail."""

from tests.comparison.servers import Step
from tests.comparison.shrinking import shrunk


def test_only_what_matters_is_left() -> None:
    steps = [Step(f"method{number}", {}) for number in range(60)]
    needed = {"method7", "method41"}
    left = shrunk(steps, lambda some: needed <= {step.method for step in some})
    assert [step.method for step in left] == ["method7", "method41"]


def test_it_ends_when_everything_matters() -> None:
    steps = [Step(f"method{number}", {}) for number in range(60)]
    assert shrunk(steps, lambda some: len(some) == 60) == steps
