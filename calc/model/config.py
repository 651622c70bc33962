"""Reading a config.json: bounded, typed, and with an error that names the field and says what it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_REQUIRED: Any = object()


class ConfigError(ValueError):
    """A config.json that cannot be a model: which field, and what it should be."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"config.json: {field} {message}" if field else f"config.json: {message}")
        self.field = field


class Config:
    """A config.json with typed, bounded reading. `notes` collects which class defaults were used."""

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        if not isinstance(values, Mapping):
            raise ConfigError(path, "is not an object of names and values")
        self.values, self.path = values, path
        self.notes: list[str] = []

    def _name(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _get(self, names: tuple[str, ...], default: Any) -> tuple[str, Any]:
        for name in names:
            if self.values.get(name) is not None:
                return name, self.values[name]
        if default is _REQUIRED:
            raise ConfigError(self._name(names[0]), "is missing")
        if default is not None:
            self.notes.append(f"{self._name(names[0])} is not given; the class default {default!r} is used")
        return names[0], default

    def integer(self, *names: str, default: Any = _REQUIRED, low: int = 1, high: int = 10**8) -> int:
        """A whole number within bounds; the first of `names` that the config gives."""
        name, value = self._get(names, default)
        if value is None:
            return None  # type: ignore[return-value]
        if isinstance(value, bool) or (isinstance(value, float) and value != int(value if abs(value) < 1e18 else 0)):
            raise ConfigError(self._name(name), f"should be a whole number, not {_shown(value)}")
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
            self.notes.append(f"{self._name(name)} is given as text; the number in it is used")
            value = int(value)
        if not isinstance(value, int | float) and not hasattr(value, "poly"):
            raise ConfigError(self._name(name), f"should be a whole number, not {_shown(value)}")
        value = int(value) if isinstance(value, float) else value
        if not low <= value <= high:
            raise ConfigError(self._name(name), f"should lie between {low:,} and {high:,}, not {_shown(value)}")
        return value

    def number(self, *names: str, default: Any = _REQUIRED, low: float = -1e30, high: float = 1e30) -> float:
        """A number within bounds."""
        name, value = self._get(names, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ConfigError(self._name(name), f"should be a number between {low:g} and {high:g}, not {_shown(value)}")
        return float(value)

    def boolean(self, *names: str, default: Any = _REQUIRED) -> bool:
        """True or false."""
        name, value = self._get(names, default)
        if not isinstance(value, bool | int) or value not in (0, 1):
            raise ConfigError(self._name(name), f"should be true or false, not {_shown(value)}")
        return bool(value)

    def text(self, *names: str, default: Any = _REQUIRED) -> str:
        """A short text."""
        name, value = self._get(names, default)
        if not isinstance(value, str) or len(value) > 200:
            raise ConfigError(self._name(name), f"should be a short text, not {_shown(value)}")
        return value

    def texts(self, *names: str, default: Any = _REQUIRED) -> tuple[str, ...]:
        """A list of short texts."""
        name, value = self._get(names, default)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or len(value) > 10_000 or not all(isinstance(v, str) for v in value):
            raise ConfigError(self._name(name), "should be a list of texts")
        return tuple(value)

    def integers(self, *names: str, default: Any = _REQUIRED) -> tuple[int, ...]:
        """A list of whole numbers."""
        name, value = self._get(names, default)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or len(value) > 10_000 or not all(type(v) is int for v in value):
            raise ConfigError(self._name(name), "should be a list of whole numbers")
        return tuple(value)

    def part(self, name: str) -> Config:
        """A nested config."""
        value = self.values.get(name)
        if not isinstance(value, Mapping):
            raise ConfigError(self._name(name), "should be an object of names and values")
        inner = Config(value, self._name(name))
        inner.notes = self.notes
        return inner

    def null(self, name: str) -> bool:
        """Whether the config says null for it, which can mean something else than leaving it out."""
        return name in self.values and self.values[name] is None

    def given(self, name: str) -> Any:
        """The raw value, or None."""
        return self.values.get(name)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
