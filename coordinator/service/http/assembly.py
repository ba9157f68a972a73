"""The HTTP side of a node, put together. It is loaded after Kafka's listener: it costs a third of a node's start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoin.coordinator.service.http.access import Access
from rejoin.coordinator.service.http.server import Service
from rejoin.coordinator.service.http.views import Views
from rejoin.coordinator.service.options import Options, token_of
from rejoin.coordinator.service.security.loopback import is_loopback

if TYPE_CHECKING:
    from rejoin.coordinator.service.app import App
    from rejoin.coordinator.service.http.control import ControlRoutes


def http_service(app: App, options: Options) -> Service:
    """The service that answers for a node on its HTTP listener."""
    access = _access_of(options)
    return Service(
        app.runtime,
        Views(
            app.runtime,
            app.publisher,
            app.metrics,
            app.store.label,
            [folder for folder in (options.data, options.journal) if folder is not None],
        ),
        app.metrics,
        max_body_bytes=options.max_body_bytes,
        body_seconds=options.body_seconds,
        head_seconds=options.head_seconds,
        control=_control_routes(app, access),
        arrivals=app.arrivals,
        access=access,
        security=app.security,
    )


def _access_of(options: Options) -> Access:
    """Who may use the HTTP listener."""
    return Access(
        options.host,
        options.advertised_host or "",
        token=token_of(options),
        is_local=not options.listen or is_loopback(options.host),
    )


def _control_routes(app: App, access: Access) -> ControlRoutes | None:
    if app.control is None:
        return None
    # Imported here: most nodes start without the control API.
    from rejoin.coordinator.service.http.control import ControlRoutes  # noqa: PLC0415

    return ControlRoutes(app.control, access, app.submit)
