"""Objects of other types as simpler ones, for the extension."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import uuid
from typing import Any


def plain(value: Any) -> Any:
    """A simpler object, or ``TypeError``. The extension reads str, int, float, bool, None, lists,
    tuples, sets and mappings itself."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            return value.isoformat()
        # As JSON.stringify writes a Date.
        return value.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + (
            f"{value.microsecond // 1000:03}Z"
        )
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return value.model_dump()
    name = type(value).__name__
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} is no value of programs; decode it or encode it as base64 text")
    if hasattr(value, "__await__"):
        raise TypeError(f"{name} was not awaited; declare the function with `async def`")
    if isinstance(value, type) or callable(value):
        raise TypeError(f"{name} is no value of programs; functions are atoms or capabilities")
    # Arrays of the standard library and of numpy, and numpy's numbers.
    tolist = getattr(value, "tolist", None)
    if tolist is not None:
        return tolist()
    index = getattr(value, "__index__", None)
    if index is not None:
        return int(index())
    raise TypeError(f"{name} is no value of programs; convert it to a dict, a list or a str")
