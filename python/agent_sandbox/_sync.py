"""The `_sync` twins: one coroutine, two ways to call it."""

from __future__ import annotations

import functools

from agent_sandbox._loop import run_sync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")

    class _Twin(Generic[P, T]):
        """What type checkers see below: importing `typing` costs more than this package."""

    class _Maker(Generic[P]):
        """The same."""
else:
    P = T = None

    class _Twin:
        def __class_getitem__(cls, _):
            return cls

    _Maker = _Twin


def synchronous(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The twin of a method that waits in the calling thread, with or without a running loop."""

    @functools.wraps(method)
    def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_sync(method(*args, **kwargs))

    twin.__name__ = f"{method.__name__}_sync"
    return twin


class ClassSynchronous(_Twin[P, T]):
    """The twin of a class method: an override of the coroutine in a subclass is what it runs."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> None:
        self._name = method.__name__

    def __get__(self, instance: object, owner: type[Any]) -> Callable[P, T]:
        return _class_twin(owner, self._name)


class MakerSynchronous(_Maker[P]):
    """The twin of a class method that makes an instance of the class it is called on."""

    def __init__(self, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, Any]]) -> None:
        self._name = method.__name__

    def __get__(self, instance: object, owner: type[T]) -> Callable[P, T]:
        return _class_twin(owner, self._name)


def _class_twin(owner: type[Any], name: str) -> Callable[..., Any]:
    method: Callable[..., Coroutine[Any, Any, Any]] = getattr(owner, name)

    @functools.wraps(method)
    def twin(*args: Any, **kwargs: Any) -> Any:
        return run_sync(method(*args, **kwargs))

    twin.__name__ = f"{name}_sync"
    return twin
