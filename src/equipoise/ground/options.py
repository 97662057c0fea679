"""Options of a verb: one frozen dataclass says its parameters for Python, the command line, policy files and pages."""

from collections.abc import Callable
from dataclasses import MISSING, Field, field, fields
from functools import wraps
from inspect import Parameter, Signature, get_annotations, signature
from typing import Any, TypeVar, cast

from equipoise.ground.errors import ParameterError, hint

Answer = TypeVar("Answer")


def option(default: Any, help: str, **more: Any) -> Any:
    """A field of options with its words; `more` is what the command line has to know beside.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Rounding:
    ...     base: int = option(5, "The multiple to round to.")
    >>> Rounding().base, fields(Rounding)[0].metadata["help"]
    (5, 'The multiple to round to.')
    """
    return field(default=default, metadata={"help": help, **more})


def with_options(options: type) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Let a verb, whose last parameter is its options, be called with the fields of these by name.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Rounding:
    ...     base: int = option(5, "The multiple to round to.")
    >>> @with_options(Rounding)
    ... def rounded(number, options):
    ...     return options.base * round(number / options.base)
    >>> rounded(13), rounded(13, base=10), str(signature(rounded))
    (15, 10, '(number, *, base: int = 5)')
    >>> rounded(13, bass=10)
    Traceback (most recent call last):
    equipoise.ground.errors.ParameterError: rounded has no parameter 'bass'. Did you mean 'base'?
    """

    def decorate(verb: Callable[..., Answer]) -> Callable[..., Answer]:
        *subjects, _ = signature(verb).parameters.values()
        shape = Signature([*subjects, *_parameters(options)], return_annotation=signature(verb).return_annotation)
        names = [parameter.name for parameter in subjects]

        @wraps(verb)
        def call(*args: Any, **kwargs: Any) -> Answer:
            for name in kwargs:
                if name not in shape.parameters:
                    raise ParameterError(f"{verb.__name__} has no parameter {name!r}.{hint(name, shape.parameters)}")
            values = shape.bind(*args, **kwargs).arguments
            first = {name: values.pop(name) for name in names if name in values}
            return verb(**first, options=options(**values))

        cast(Any, call).__signature__ = shape
        return call

    return decorate


def _parameters(options: type) -> list[Parameter]:
    """The fields as parameters: those that may stand in their place, the class's own, and what it inherits."""
    own = get_annotations(options)
    return sorted(map(_parameter, fields(options)), key=lambda one: (one.kind, one.name not in own))


def _parameter(part: "Field[Any]") -> Parameter:
    """A field as a parameter: by name, unless it says that it may stand in its place."""
    default = Parameter.empty if part.default is MISSING else part.default
    kind = Parameter.POSITIONAL_OR_KEYWORD if part.metadata.get("positional") else Parameter.KEYWORD_ONLY
    return Parameter(part.name, kind, default=default, annotation=part.type)
