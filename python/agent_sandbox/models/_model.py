"""What the records of this package share: equality, repr, and pydantic's names for turning them into dicts.

They are classes with slots that `dataclasses` takes for its own (fields, replace, asdict, astuple), without
being made by it: importing it costs more than all of this package.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime
    from typing import Any, ClassVar, TypeVar

    M = TypeVar("M", bound="Model")


class DataclassFields:
    """The fields of a record as `dataclasses` wants them, made when somebody asks."""

    def __get__(self, instance: object, owner: type[Model]) -> dict[str, Any]:
        import dataclasses

        made = dataclasses.make_dataclass(owner.__name__, owner._names)
        return {field.name: field for field in dataclasses.fields(made)}


class Model:
    """A record; its fields have slots."""

    __slots__: tuple[str, ...] = ()
    __dataclass_fields__ = DataclassFields()
    _names: ClassVar[tuple[str, ...]] = ()
    """The fields in the order of the constructor."""
    _hidden: ClassVar[frozenset[str]] = frozenset()
    """Fields that dumps leave out."""
    _aliases: ClassVar[dict[str, str]] = {}
    """The name of a field in the HTTP API: read by model_validate(), written with by_alias."""

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._names)

    __hash__ = None  # type: ignore[assignment]  # they can change

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self)})"

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """(name, value) of each field, so that dict(record) works."""
        for name in self._names:
            yield name, getattr(self, name)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def model_dump(
        self,
        *,
        mode: str = "python",
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
        by_alias: bool = False,
        exclude_none: bool = False,
    ) -> dict[str, Any]:
        """The fields as a dict; mode "json" leaves only what JSON has."""
        result = {}
        for name, value in self:
            if name in self._hidden or (include is not None and name not in include):
                continue
            if (exclude is not None and name in exclude) or (exclude_none and value is None):
                continue
            result[self._aliases.get(name, name) if by_alias else name] = dumped(value, mode == "json")
        return result

    def model_dump_json(
        self,
        *,
        indent: int | None = None,
        include: Collection[str] | None = None,
        exclude: Collection[str] | None = None,
        by_alias: bool = False,
        exclude_none: bool = False,
    ) -> str:
        """The fields as JSON text; times are RFC 3339."""
        import json

        value = self.model_dump(
            mode="json", include=include, exclude=exclude, by_alias=by_alias, exclude_none=exclude_none
        )
        separators = (",", ":") if indent is None else None
        return json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)

    def model_copy(self: M, *, update: Mapping[str, Any] | None = None) -> M:
        """A copy, with the fields of update changed; what the fields hold is shared."""
        copy = type(self).__new__(type(self))
        copy.__setstate__({**self.__getstate__(), **(update or {})})
        return copy

    @classmethod
    def model_validate(cls: type[M], obj: Mapping[str, Any] | M) -> M:
        """From a mapping by field names or API names; other keys are ignored.

        ValueError when a value does not fit or one is missing."""
        if isinstance(obj, cls):
            return obj
        if isinstance(obj, Model):
            raise ValueError(f"a {type(obj).__name__} is no {cls.__name__}")
        known = {alias: name for name, alias in cls._aliases.items()} | {name: name for name in cls._names}
        try:
            return cls(**{known[key]: value for key, value in obj.items() if key in known})
        except TypeError as error:
            raise ValueError(str(error)) from None


def dumped(value: Any, json: bool) -> Any:
    """A value of a field inside a dump."""
    if isinstance(value, Model):
        return value.model_dump(mode="json" if json else "python")
    if isinstance(value, dict):
        return {key: dumped(item, json) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [dumped(item, json) for item in value]
    if not json or value is None or value.__class__ in (str, int, float, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    isoformat = getattr(value, "isoformat", None)
    return isoformat().replace("+00:00", "Z") if isoformat else value


def parse_time(value: object) -> datetime | None:
    """An RFC 3339 time, aware; one without a zone is UTC. None when there is none, or it is not one."""
    if not isinstance(value, str) or not value:
        return None
    from datetime import datetime, timezone

    iso = value[:-1] + "+00:00" if value[-1] in "Zz" else value
    try:
        time: datetime | None = datetime.fromisoformat(iso)
    except ValueError:
        time = plain_time(iso)
    return time if time is None or time.tzinfo else time.replace(tzinfo=timezone.utc)


def plain_time(text: str) -> datetime | None:
    """For Python 3.10, which reads fractions of 3 or 6 digits only."""
    from datetime import datetime

    head, dot, tail = text.partition(".")
    digits = len(tail) - len(tail.lstrip("0123456789"))
    if not dot or not digits:
        return None
    try:
        return datetime.fromisoformat(f"{head}.{tail[:digits][:6]:0<6}{tail[digits:]}")
    except ValueError:
        return None


def text_map(value: object) -> dict[str, str]:
    """A table of texts as a plugin gives it; {} for anything else."""
    return {str(k): text(v) for k, v in value.items()} if isinstance(value, dict) else {}


def text(value: object) -> str:
    """A text a plugin may have left out."""
    return value if isinstance(value, str) else "" if value is None else str(value)
