"""What calls of public functions have in common: errors about wrong types in words, and the line that a warning is about."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import operator
import os
import sys
import traceback
import types
import typing
import warnings
from typing import Any, Callable, Mapping, Optional, TypeVar, Union

import numpy as np

from ._errors import Error
from ._types import Document

_HERE = os.path.dirname(__file__)
_PYTHON = os.path.dirname(os.__file__)
_Thing = TypeVar("_Thing")
# Beside the methods with names.
_OPERATORS = ("__init__", "__getitem__", "__setitem__", "__delitem__", "__contains__")
_WORDS = {str: "text", int: "an integer", float: "a number", bool: "True or False", dict: "a dict", type(None): "None",
          os.PathLike: "a path", collections.abc.Callable: "a function", collections.abc.Mapping: "a dict"}


def callers_level() -> int:
    """The `stacklevel`, for a function that calls this one, of the line outside of this package."""
    frame: Any = sys._getframe(1)
    level = 1
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        frame, level = frame.f_back, level + 1
    return level


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns of the line that called the package."""
    warnings.warn(message, category, stacklevel=callers_level())


class _Unpack:
    """Stands for Unpack, which types alone import: of `**options` it leaves the TypedDict."""

    def __class_getitem__(cls, options: object) -> Any:
        return options


def hints_of(function: Callable[..., object]) -> Document:
    """The types of a function's parameters; those of `**options` one by one."""
    hints = typing.get_type_hints(function, localns={"Unpack": _Unpack, "os": os})
    hints.pop("return", None)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD and hasattr(hints.get(parameter.name), "__total__"):
            hints.update(hints_of_options(hints.pop(parameter.name)))
    return hints


def hints_of_options(options: object) -> Document:
    """The types in a TypedDict."""
    return typing.get_type_hints(options)


def _is(convert: Callable[[Any], Any], value: object) -> bool:
    try:
        convert(value)
    except (TypeError, ValueError):
        return False
    return True


def _fits(value: object, kind: Any) -> bool:
    """Whether a value is of a type, or can be taken for one: an integer of NumPy for int."""
    origin = typing.get_origin(kind) or kind
    parts = typing.get_args(kind)
    if origin is Any:
        return True
    if origin is Union:
        return any(_fits(value, part) for part in parts)
    if origin is typing.Literal:
        return isinstance(value, type(parts[0]))
    if origin is int:
        return _is(operator.index, value)
    if origin is float:
        return not isinstance(value, (str, bytes)) and _is(float, value)
    if origin is bool:
        return isinstance(value, (bool, np.bool_))
    if origin is collections.abc.Mapping or hasattr(origin, "__total__"):
        return isinstance(value, collections.abc.Mapping)
    if origin in (collections.abc.Sequence, tuple):
        if isinstance(value, (str, bytes, collections.abc.Mapping)) or not _is(iter, value):
            return False
        return not parts or not isinstance(value, (list, tuple, np.ndarray)) or all(_fits(item, parts[0]) for item in value)
    return not isinstance(origin, type) or isinstance(value, origin)


def _words(kind: Any) -> str:
    """A type in words."""
    origin = typing.get_origin(kind) or kind
    if origin is Union:
        words = list(dict.fromkeys(_words(part) for part in typing.get_args(kind)))
        return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    if origin is typing.Literal:
        return _words(type(typing.get_args(kind)[0]))
    if origin in (collections.abc.Sequence, tuple):
        return "a list"
    return _WORDS.get(origin) or f"{origin.__module__.partition('.')[0]}.{origin.__qualname__}"


def shown(value: object) -> str:
    """A value and its type, for errors."""
    text = " ".join(repr(value).split())
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def _given(function: Callable[..., object], args: tuple[object, ...], options: Mapping[str, object]) -> Document:
    """The arguments of a call by name."""
    bound = inspect.signature(function).bind(*args, **options)
    given: Document = {}
    for name, value in bound.arguments.items():
        parameter = bound.signature.parameters[name]
        if parameter.kind is parameter.VAR_KEYWORD:
            given.update(value)
        elif name != "self":
            given[name] = value
    return given


def _is_of_package(error: Exception) -> bool:
    """Whether an error comes from this package, or from Python's own functions that this calls."""
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        if os.path.dirname(file) == _HERE or not file.startswith((_PYTHON, "<frozen ")):
            return os.path.dirname(file) == _HERE
    return False


def _about_types(function: Callable[..., object], args: tuple[object, ...], options: Mapping[str, object], error: Exception) -> Optional[TypeError]:
    """The error in words, if a call failed because an argument is of another type."""
    if isinstance(error, Error) or not _is_of_package(error):
        return None  # the library's own, or one of a function that was given
    try:
        given = _given(function, args, options)
    except TypeError:
        return None  # Python's own, about the names of arguments
    name = function.__name__
    if "self" in inspect.signature(function).parameters:
        kind = type(args[0]).__name__
        name = kind if name == "__init__" else f"{kind}.{name}"
    hints = hints_of(function)
    for parameter, value in given.items():
        if parameter in hints and not _fits(value, hints[parameter]):
            return TypeError(f"{name}(): {parameter}: expected {_words(hints[parameter])}, found {shown(value)}")
        if isinstance(error, AttributeError) and error.name is not None and error.obj is value:
            return TypeError(f"{name}(): {parameter}: expected something with `{error.name}`, found {shown(value)}")
    if "arguments. The following argument types are supported" in str(error) or "Unable to cast" in str(error):
        found = ", ".join(f"{parameter}={shown(value)}" for parameter, value in given.items())
        return TypeError(f"{name}(): expected arguments of other types, found {found}")
    return None


def _function_in_words(function: Callable[..., Any]) -> Callable[..., Any]:
    if hasattr(function, "in_words") or inspect.iscoroutinefunction(function):
        return function

    @functools.wraps(function)
    def call(*args: object, **options: object) -> Any:
        try:
            return function(*args, **options)
        except (TypeError, ValueError, AttributeError, RuntimeError) as error:
            about = _about_types(function, args, options, error)
            if about is None:
                raise
        raise about
    call.in_words = True  # type: ignore[attr-defined]
    return call


def in_words(thing: _Thing) -> _Thing:
    """A public function or class whose errors about wrong types are in words, in the place of what is given.

    Types are looked at only when a call has failed, so that calls that succeed cost nothing, and take what they took.
    """
    if isinstance(thing, types.FunctionType):
        made = _function_in_words(thing)
        setattr(sys.modules[thing.__module__], thing.__name__, made)
        return made  # type: ignore[return-value]
    for base in thing.__mro__ if isinstance(thing, type) else ():
        if not base.__module__.startswith(__package__ + ".") or issubclass(base, (BaseException, tuple)):
            continue
        for name, member in list(vars(base).items()):
            # Elements are read and assigned by any key, and often.
            if name.startswith("_") and (name not in _OPERATORS or base.__name__ == "Indexable"):
                continue
            if isinstance(member, types.FunctionType):
                setattr(base, name, _function_in_words(member))
            elif isinstance(member, property) and member.fset is not None:
                setattr(base, name, member.setter(_function_in_words(member.fset)))
    return thing
