"""Amounts of memory in the form of the command: `79.11 GiB`. Like base/bytes in C++ (a test compares them), for Python without torch."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def text_of(count: int) -> str:
    """
    >>> text_of(512), text_of(58785792), text_of(-84943110144)
    ('512 B', '56.06 MiB', '-79.11 GiB')
    """
    value, unit = float(abs(count)), 0
    while value >= 1024 and unit + 1 < len(_UNITS):
        value, unit = value / 1024, unit + 1
    number = f"{value:.0f}" if unit == 0 else f"{value:.2f}"
    return f"{'-' if count < 0 else ''}{number} {_UNITS[unit]}"


def count_of(count: int) -> str:
    """A number of parameters.

    >>> count_of(8030261248), count_of(525336576), count_of(4096)
    ('8.03 B', '525.34 M', '4096')
    """
    for bound, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if count >= bound:
            return f"{count / bound:.2f} {unit}"
    return str(count)
