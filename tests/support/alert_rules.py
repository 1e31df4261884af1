"""The alert rules of `deploy/prometheus` over what /metrics shows: the few forms of PromQL that they are written in.

`rate` and `increase` see two scrapes, at the ends of their window. `tests/deploy/test_prometheus.py` has Prometheus
itself read the rules, where it is installed.
"""

import math
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from prometheus_client.parser import text_string_to_metric_families

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "hms-gateway.rules.yml"
Labels: TypeAlias = tuple[tuple[str, str], ...]
Samples: TypeAlias = Mapping[tuple[str, Labels], float]

_RULE = re.compile(r"- alert: (\w+)\n\s+expr: (.+)\n")
_METRIC = re.compile(r"\b(hms_gateway_\w+|up)\b(?:\{([^}]*)\})?(?:\[(\d+)m\])?")
_SUM = re.compile(r"sum by \((.+?)\) ")


def samples(text: str) -> Samples:
    """Of a scrape."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class Rules:
    """`names` are those of the alerts."""

    def __init__(self) -> None:
        self._expressions = dict(_RULE.findall(RULES.read_text()))
        self.names = list(self._expressions)

    def fires(self, name: str, after: Samples, before: Samples | None = None) -> bool:
        """Whether the expression of an alert gives something; `before` is a scrape at the begin of its windows."""
        text = _SUM.sub(r'total("\1")', self._expressions[name])
        text = _METRIC.sub(lambda found: f"metric({found[1]!r}, {found[2] or ''!r}, {found[3]!r})", text)

        def metric(name: str, labels: str, minutes: str | None) -> _Vector | _Window:
            wanted = [(label, re.compile(text)) for label, text in re.findall(r'(\w+)=~?"(.*?)"', labels)]
            now, then = (
                _Vector({key[1]: value for key, value in each.items() if key[0] == name and fits(key[1], wanted)})
                for each in (after, before or {})
            )
            return _Window(now, then, 60 * int(minutes)) if minutes else now

        def fits(labels: Labels, wanted: list[tuple[str, re.Pattern[str]]]) -> bool:
            return all(pattern.fullmatch(dict(labels).get(label, "")) for label, pattern in wanted)

        functions: dict[str, Callable[..., Any]] = {
            "metric": metric,
            "increase": lambda window: window.increase(),
            "rate": lambda window: window.increase().each(lambda value: value / window.seconds),
            "total": lambda names: lambda vector: vector.total([name.strip() for name in names.split(",")]),
            "histogram_quantile": lambda part, vector: vector.quantile(part),
            "abs": lambda vector: vector.each(abs),
            "time": time.time,
        }
        return bool(eval(text, {"__builtins__": {}}, functions))


class _Vector:
    """An instant vector; a comparison leaves what it holds for."""

    def __init__(self, values: Mapping[Labels, float]) -> None:
        self._values = values

    def __bool__(self) -> bool:
        return bool(self._values)

    def __gt__(self, bound: float) -> "_Vector":
        return self._where(lambda value: value > bound)

    def __lt__(self, bound: float) -> "_Vector":
        return self._where(lambda value: value < bound)

    def __eq__(self, bound: object) -> "_Vector":  # type: ignore[override]
        return self._where(lambda value: value == bound)

    __hash__ = None  # type: ignore[assignment]

    def __sub__(self, number: float) -> "_Vector":
        return self.each(lambda value: value - number)

    def __truediv__(self, other: "_Vector") -> "_Vector":
        return _Vector({key: value / other._values[key] for key, value in self._values.items() if key in other._values})

    def each(self, change: Callable[[float], float]) -> "_Vector":
        return _Vector({key: change(value) for key, value in self._values.items()})

    def total(self, names: list[str]) -> "_Vector":
        sums: dict[Labels, float] = {}
        for labels, value in self._values.items():
            key = tuple(label for label in labels if label[0] in names)
            sums[key] = sums.get(key, 0.0) + value
        return _Vector(sums)

    def quantile(self, part: float) -> "_Vector":
        """The bound of the bucket that it falls into, which is enough for a comparison with a bound."""
        buckets = sorted((float(dict(labels)["le"]), count) for labels, count in self._values.items())
        if not buckets or not buckets[-1][1]:
            return _Vector({})
        bounds = [bound for bound, count in buckets if count >= part * buckets[-1][1] and bound < math.inf]
        return _Vector({(): bounds[0] if bounds else buckets[-2][0]})

    def _where(self, holds: Callable[[float], bool]) -> "_Vector":
        return _Vector({key: value for key, value in self._values.items() if holds(value)})


class _Window:
    """A range vector of two scrapes."""

    def __init__(self, now: _Vector, then: _Vector, seconds: int) -> None:
        self._now = now
        self._then = then
        self.seconds = seconds

    def increase(self) -> _Vector:
        return _Vector({key: value - self._then._values.get(key, 0.0) for key, value in self._now._values.items()})
