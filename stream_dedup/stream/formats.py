"""The formats of messages: the decoder of the inputs, the encoder of the outputs, and the registry behind them.

Knows which of them the settings ask for, and that the extra `registry` may be missing; knows no format.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import orjson

from stream_dedup.closing import SelfClosing
from stream_dedup.decode import Decoder, UndecodableError, WireDecoder
from stream_dedup.decode.fields import Paths
from stream_dedup.encode import Encoder, JsonEncoder
from stream_dedup.encode.plain import plain_link
from stream_dedup.registry import RegistryUnreachableError
from stream_dedup.settings import FormatName, Settings, SettingsError

if TYPE_CHECKING:
    from stream_dedup.registry.client import Registry

_OBJECT = b"{"  # how JSON without a frame begins
_REGISTERED = [name for name in get_args(FormatName) if name != "json"]
_EXTRA = "formats other than json need more packages: pip install 'stream-dedup[registry]'"

WhileWaiting = Callable[[RegistryUnreachableError], None]


class Formats(SelfClosing):
    """Makes decoders and encoders. Use it as a context manager: at its end the registry's client is closed.

    Args:
        settings: formats, fields, bounds and how to reach the registry.
        while_waiting: called with the reason about every second while the registry is out of reach; may raise.
        then: called once that is over.

    Raises:
        SettingsError: a package is missing, or the registry's client refuses a property.
    """

    def __init__(
        self, settings: Settings, while_waiting: WhileWaiting = lambda _: None, then: Callable[[], None] = lambda: None
    ) -> None:
        self._settings = settings
        self._reach = partial(_registry, settings, while_waiting, then)
        wanted = settings.input.wire_formats or settings.output.format != "json"
        self._registry = self._reach() if wanted else None

    def close(self) -> None:
        """Close the registry's client, if there is one."""
        if self._registry is not None:
            self._registry.close()

    def decoder(self, room: int | None = None) -> Decoder:
        """Return a decoder of the inputs.

        Args:
            room: the largest message that the outputs accept, in bytes; None for no bound.
        """
        settings, registry = self._settings.input, self._registry
        if registry is None and settings.cloudevents == "ignore":
            return Decoder(settings, room)
        if registry is None:
            return WireDecoder(settings, room)
        from stream_dedup.decode.registered import registered_format  # noqa: PLC0415  # of the extra

        return WireDecoder(
            settings,
            room,
            lambda name, paths: registered_format(name, paths, registry, validate=settings.validate_schema),
        )

    def link_reader(self) -> Callable[[bytes], dict[str, Any]]:
        """Return a function that reads published links, in whatever format, into the fields of the JSON format.

        It raises a `ValueError` for what it cannot read: other programs may write to the topic too, and the outputs
        may once have had a format with schemas whose registry is no longer configured.
        """
        if self._registry is None and "url" in self._settings.registry:
            with suppress(SettingsError):  # the extra may be missing: no current setting needs it
                self._registry = self._reach()
        registry = self._registry
        if registry is None:
            return _read_json
        from stream_dedup.decode.registered import registered_format  # noqa: PLC0415  # of the extra

        first = self._settings.output.format
        names = sorted(_REGISTERED, key=lambda name: name != first)
        forms = [registered_format(name, Paths({}), registry, validate=False) for name in names]

        def read(value: bytes) -> dict[str, Any]:
            if value.startswith(_OBJECT):
                return _read_json(value)
            for form in forms:
                with suppress(UndecodableError):
                    return plain_link(form.fields(value, ()))
            raise ValueError("a link in no known format")

        return read

    def encoder(self) -> Encoder:
        """Return an encoder of links and clusters.

        Raises:
            RegistryError: the registry refuses, or lacks a schema that must not be registered.
        """
        if self._registry is None or self._settings.output.format == "json":
            return JsonEncoder()
        from stream_dedup.encode.registered import RegisteredEncoder  # noqa: PLC0415  # of the extra

        return RegisteredEncoder(self._settings.output, self._registry)


def check_formats(settings: Settings) -> None:
    """Check what can be checked of the formats before anything starts.

    Raises:
        SettingsError: as `Formats` does.
    """
    Formats(settings).close()


def give_up(outage: RegistryUnreachableError) -> None:
    """Fail rather than wait: `while_waiting` for those who answer questions."""
    raise outage


def _read_json(value: bytes) -> dict[str, Any]:
    if not value.startswith(_OBJECT):
        raise ValueError("not JSON: to read links with a schema, set registry.url")
    link: dict[str, Any] = orjson.loads(value)
    if not {"id", "relation"} <= link.keys():
        raise ValueError("a link must have an id and a relation")
    return link


def _registry(settings: Settings, while_waiting: WhileWaiting, then: Callable[[], None]) -> "Registry":
    try:
        from stream_dedup.decode import registered as _  # noqa: F401, PLC0415  # of the extra
        from stream_dedup.registry.client import Registry, make_client  # noqa: PLC0415  # the same
    except ImportError as error:
        raise SettingsError(f"{_EXTRA} ({error})") from None
    return Registry(make_client(settings.registry), while_waiting, then)
