"""Numbers as Grafana writes them, by the unit of a panel.

Knows Grafana's names of units, as far as the dashboards use them; knows nothing of panels.
"""

from collections.abc import Sequence

_TIMES = ((1e-6, "µs", 1e-3), (1e-3, "ms", 1.0), (1.0, "s", 60.0), (60.0, "min", 3600.0), (3600.0, "hour", 86400.0))
_DAY = 86400.0
_SCALES = {
    "bytes": (("B", "KiB", "MiB", "GiB", "TiB"), 1024),
    "Bps": (("B/s", "kB/s", "MB/s", "GB/s"), 1000),
    "short": (("", "K", "Mil", "Bil"), 1000),
}
_SUFFIX = "suffix:"


def written(value: float, unit: str, decimals: int | None = None) -> str:
    """Return a number with its unit.

    Args:
        value: in the base unit.
        unit: one of Grafana's.
        decimals: how many; as many as make three digits if None.
    """
    if unit.startswith(_SUFFIX):
        return _number(value, decimals) + unit.removeprefix(_SUFFIX)
    if unit == "percentunit":
        return f"{_number(value * 100, decimals)}%"
    if unit == "s":
        return _time(value, decimals)
    names, base = _SCALES.get(unit, (("",), 1000))
    return _scaled(value, names, base, decimals)


def _time(value: float, decimals: int | None) -> str:
    if value == 0:
        return "0 s"
    for size, name, bound in _TIMES:
        if abs(value) < bound:
            return f"{_number(value / size, decimals)} {name}"
    return f"{_number(value / _DAY, decimals)} day"


def _scaled(value: float, names: Sequence[str], base: int, decimals: int | None) -> str:
    power = 0
    while abs(value) >= base and power < len(names) - 1:
        value /= base
        power += 1
    return f"{_number(value, decimals)} {names[power]}".rstrip()


def _number(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"  # noqa: PLR2004  # from here on there are more than 3 digits
