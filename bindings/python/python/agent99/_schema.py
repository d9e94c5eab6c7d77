"""JSON Schema from annotations, and values of programs as the annotated types."""

from __future__ import annotations

import collections.abc as abc
import dataclasses
import datetime
import enum
import inspect
import sys
import types
import typing
import uuid
from collections.abc import Callable
from typing import Any, Literal, Union

Schema = dict[str, Any]
Convert = Callable[[Any], Any]

_SIMPLE: dict[Any, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
    Any: {},
    object: {},
    inspect.Parameter.empty: {},
}


def _time(read: Callable[[str], Any]) -> Convert:
    # Before 3.11, `fromisoformat` does not read the Z of JavaScript.
    return lambda text: read(text[:-1] + "+00:00" if text.endswith("Z") else text)


_TEXTS: dict[Any, tuple[str, Convert]] = {
    datetime.datetime: ("date-time", _time(datetime.datetime.fromisoformat)),
    datetime.date: ("date", datetime.date.fromisoformat),
    datetime.time: ("time", _time(datetime.time.fromisoformat)),
    uuid.UUID: ("uuid", uuid.UUID),
}

_LISTS = {list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection}
_SETS = {set, frozenset, abc.Set, abc.MutableSet}
_DICTS = {dict, abc.Mapping, abc.MutableMapping}


def schema(of: Any) -> Schema:
    """The JSON Schema of a type: builtin types, unions, literals, enums, dataclasses, typed dicts
    and pydantic models."""
    return describe(of, ())[0]


def describe(of: Any, above: tuple[Any, ...] = ()) -> tuple[Schema, Convert | None]:
    """The schema of a type, and the function that makes it of a program's value, if any."""
    try:
        if of in _SIMPLE:
            return dict(_SIMPLE[of]), None
    except TypeError:
        pass
    if of in above:
        raise TypeError(f"{_name(of)} contains itself; schemas of programs are not recursive")
    return _describe(of, typing.get_origin(of), typing.get_args(of), (*above, of))


def _describe(of: Any, origin: Any, args: Any, above: Any) -> tuple[Schema, Convert | None]:
    if origin is typing.Annotated:
        found, convert = describe(args[0], above)
        for note in args[1:]:
            docs = note if isinstance(note, str) else getattr(note, "description", None)
            if isinstance(docs, str):
                found = {**found, "description": docs}
        return found, convert
    if origin is Union or origin is types.UnionType:
        return _union(args, above)
    if origin is Literal:
        return _choice(list(args)), None
    if of in _TEXTS:
        name, read = _TEXTS[of]
        return {"type": "string", "format": name}, read
    plain = origin or of
    if plain in _LISTS:
        return _list(list, args, above)
    if plain in _SETS:
        return _list(frozenset if plain is frozenset else set, args, above)
    if plain is tuple:
        if len(args) == 2 and args[1] is ...:
            return _list(tuple, args, above)
        parts = [describe(arg, above) for arg in args]
        items = [part for part, _ in parts]
        makes = [make for _, make in parts]
        size = len(items)
        found = {"type": "array", "items": items, "minItems": size, "maxItems": size}
        return found, lambda value: tuple(
            item if make is None else make(item) for make, item in zip(makes, value, strict=True)
        )
    if plain in _DICTS:
        key, member = args or (str, Any)
        if key is not str:
            raise TypeError(f"keys of {_name(of)} must be str")
        found, convert = describe(member, above)
        make = None if convert is None else _members(convert)
        return {"type": "object", "additionalProperties": found} if found else {
            "type": "object"
        }, make
    if isinstance(of, type):
        if issubclass(of, enum.Enum):
            return _choice([one.value for one in of]), of
        if hasattr(of, "model_json_schema") and hasattr(of, "model_validate"):
            found = of.model_json_schema()
            return _inline(found, found.get("$defs", {}), ()), of.model_validate
        if dataclasses.is_dataclass(of):
            return _dataclass(of, above)
        if typing.is_typeddict(of):
            return _typed_dict(of, above)
    for name in ("__supertype__", "__value__", "__bound__"):
        inner = getattr(of, name, None)
        if inner is not None:
            return describe(inner, above)
    if isinstance(of, typing.TypeVar):
        return {}, None
    raise TypeError(
        f"{_name(of)} has no JSON Schema; use builtin types, a dataclass, a TypedDict or a pydantic "
        "model, or give the schema: @atom(input={...})"
    )


def _union(args: Any, above: Any) -> tuple[Schema, Convert | None]:
    parts = [arg for arg in args if arg is not type(None)]
    described = [describe(part, above) for part in parts]
    nullable = len(parts) < len(args)
    if len(described) == 1:
        found, convert = described[0]
        if isinstance(found.get("type"), str) and "enum" not in found:
            found = {**found, "type": [found["type"], "null"]}
        elif found:
            found = {"anyOf": [found, {"type": "null"}]}
    else:
        schemas = [found for found, _ in described]
        found = {"anyOf": schemas + [{"type": "null"}] * nullable} if all(schemas) else {}
        makes = [convert for _, convert in described]
        convert = _first(makes) if any(makes) else None
    if convert is None or not nullable:
        return found, convert
    make = convert
    return found, lambda value: None if value is None else make(value)


def _first(makes: list[Convert | None]) -> Convert:
    """Tries the types of a union in order; a type without a function takes what is left."""

    def convert(value: Any) -> Any:
        for make in makes:
            if make is None:
                continue
            try:
                return make(value)
            except Exception:
                continue
        return value

    return convert


def _choice(values: list[Any]) -> Schema:
    kinds = {type(value) for value in values}
    found: Schema = {"enum": values}
    if len(kinds) == 1 and (kind := _SIMPLE.get(kinds.pop())):
        found = {**kind, **found}
    return found


def _list(kind: Any, args: Any, above: Any) -> tuple[Schema, Convert | None]:
    found, convert = describe(args[0], above) if args else ({}, None)
    schema: Schema = {"type": "array", "items": found} if found else {"type": "array"}
    if convert is None:
        return schema, None if kind is list else kind
    return schema, lambda value: kind([convert(item) for item in value])


def _members(convert: Convert) -> Convert:
    return lambda value: {key: convert(member) for key, member in value.items()}


def _object(
    fields: dict[str, tuple[Any, bool]], of: Any, above: Any
) -> tuple[Schema, dict[str, Convert]]:
    """The schema of an object with these fields, each with whether it is required."""
    hints = hints_of(of)
    properties: Schema = {}
    makes: dict[str, Convert] = {}
    for name, (hint, _) in fields.items():
        properties[name], convert = describe(hints.get(name, hint), above)
        if convert is not None:
            makes[name] = convert
    required = [name for name, (_, needed) in fields.items() if needed]
    found: Schema = {"type": "object", "properties": properties}
    if required:
        found["required"] = required
    return found, makes


def _dataclass(of: Any, above: Any) -> tuple[Schema, Convert]:
    missing = dataclasses.MISSING
    fields = {
        field.name: (field.type, field.default is missing and field.default_factory is missing)
        for field in dataclasses.fields(of)
        if field.init
    }
    found, makes = _object(fields, of, above)

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"expected an object for {of.__name__}")
        return of(**converted(makes, value))

    return found, convert


def _typed_dict(of: Any, above: Any) -> tuple[Schema, Convert | None]:
    required = of.__required_keys__
    found, makes = _object(
        {name: (hint, name in required) for name, hint in of.__annotations__.items()}, of, above
    )
    return found, (lambda value: converted(makes, value)) if makes else None


def converted(makes: dict[str, Convert], value: dict[str, Any]) -> dict[str, Any]:
    """A copy of an object with members converted."""
    return {
        name: makes[name](member) if name in makes else member for name, member in value.items()
    }


def hints_of(of: Any) -> dict[str, Any]:
    """Resolved annotations; those that cannot be resolved are an error with their name."""
    try:
        hints = typing.get_type_hints(of, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{_name(of)}: the annotation {error.name!r} is not visible from its module; "
            "define the type at module level"
        ) from error
    # `Required[int]` and `NotRequired[int]` of typed dicts.
    wrappers = {getattr(typing, name, None) for name in ("Required", "NotRequired", "ReadOnly")}
    if "typing_extensions" in sys.modules:
        extensions = sys.modules["typing_extensions"]
        wrappers |= {
            getattr(extensions, name, None) for name in ("Required", "NotRequired", "ReadOnly")
        }
    wrappers.discard(None)
    return {
        name: typing.get_args(hint)[0] if typing.get_origin(hint) in wrappers else hint
        for name, hint in hints.items()
    }


def _inline(found: Any, defs: dict[str, Any], above: tuple[str, ...]) -> Any:
    """Replaces references to definitions, which schemas of programs do not have."""
    if isinstance(found, list):
        return [_inline(part, defs, above) for part in found]
    if not isinstance(found, dict):
        return found
    ref = found.get("$ref")
    if isinstance(ref, str):
        name = ref.rsplit("/", 1)[-1]
        if name in above:
            raise TypeError(f"{name} contains itself; schemas of programs are not recursive")
        rest = {key: part for key, part in found.items() if key != "$ref"}
        return {**_inline(defs[name], defs, (*above, name)), **rest}
    return {
        ("items" if key == "prefixItems" else key): _inline(part, defs, above)
        for key, part in found.items()
        if key != "$defs"
    }


def _name(of: Any) -> str:
    return getattr(of, "__qualname__", None) or str(of)
