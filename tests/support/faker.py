"""Random values of any IDL type, for round trips. The same seed gives the same value."""

import math
import random
from typing import Any

from hms_gateway.rpc.idl import BaseType, EnumType, ListType, MapType, Requiredness, SetType, StructType, Type
from hms_gateway.rpc.structs import ENUMS, STRUCTS

BITS = {BaseType.I8: 8, BaseType.I16: 16, BaseType.I32: 32, BaseType.I64: 64}
ALPHABETS = ("abcxyz019_-", 'a"\\/ {}[]:,', "\0\x01\x08\t\n\x0c\r\x1f\x7f", "éß☃𝔘😀\ufffd\u2028", "%3D=&")
DOUBLES = (0.0, -0.0, 1.0, 1.5, 0.1, 1e300, 5e-324, -1e-7, 2.0**53, math.inf, -math.inf)


class Faker:
    """Makes values from one seed.

    `list_keys` allows entries in maps whose keys are lists, which our TJSON writes empty; `depth` is how deep structs
    are filled, deeper ones get their required fields only.
    """

    def __init__(self, seed: int, *, list_keys: bool = True, depth: int = 4) -> None:
        self._random = random.Random(seed)
        self._list_keys = list_keys
        self._depth = depth

    def struct(self, struct_class: Any) -> Any:
        """An instance of a struct, argument, result or exception class; about a third of the fields stay unset."""
        return self._struct(struct_class, self._depth)

    def value(self, type: Type) -> Any:
        return self._value(type, self._depth)

    def _struct(self, struct_class: Any, depth: int) -> Any:
        values = {}
        for field in struct_class.definition.fields:
            required = field.requiredness is Requiredness.REQUIRED
            if required or (depth > 0 and self._random.random() < 0.67):
                values[field.name] = self._value(field.type, depth - 1)
        return struct_class(**values)

    def _value(self, type: Type, depth: int, *, hashable: bool = False) -> Any:
        match type:
            case StructType(name):
                return self._struct(STRUCTS[name], depth)
            case EnumType(name):
                return int(self._random.choice(list(ENUMS[name])))
            case ListType(element):
                elements = self._elements(element, depth, hashable)
                return tuple(elements) if hashable else elements
            case SetType(element):
                members = self._elements(element, depth, True)
                return frozenset(members) if hashable else set(members)
            case MapType(ListType(), _) if not self._list_keys:
                return {}
            case MapType(key, value):
                keys = self._elements(key, depth, True)
                return {key: self._value(value, depth - 1) for key in keys}
            case BaseType():
                return self._base(type)

    def _elements(self, element: Type, depth: int, hashable: bool) -> list[Any]:
        count = self._random.choice((0, 1, 2, 5)) if depth > 0 else 0
        return [self._value(element, depth - 1, hashable=hashable) for _ in range(count)]

    def _base(self, type: BaseType) -> Any:
        if type is BaseType.BOOL:
            return self._random.random() < 0.5
        if type is BaseType.DOUBLE:
            return self._random.choice((*DOUBLES, self._random.gauss(0, 1e6)))
        if type is BaseType.STRING:
            alphabet = self._random.choice(ALPHABETS)
            return "".join(self._random.choices(alphabet, k=self._random.choice((0, 1, 3, 12))))
        if type is BaseType.BINARY:
            return self._random.randbytes(self._random.randrange(6))
        highest = (1 << BITS[type] - 1) - 1
        return self._random.choice((0, 1, -1, highest, -highest - 1, self._random.randint(-highest, highest)))
