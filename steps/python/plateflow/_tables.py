"""Tables that steps return, brought into one form: lists per column."""

from collections.abc import Iterable, Mapping
from typing import Any

Columns = list[tuple[str, list[Any]]]


def _listed(value: Any) -> list[Any] | None:
    """Return the values of a column, or None where `value` is a scalar."""
    if isinstance(value, list):
        return list(value)
    if isinstance(value, (str, bytes, Mapping)):
        return None
    for name in ("tolist", "to_list"):  # NumPy and pandas, polars
        if hasattr(value, name) and getattr(value, "ndim", 1) != 0:
            made = getattr(value, name)()
            return made if isinstance(made, list) else None
    if isinstance(value, (tuple, range)):
        return list(value)
    if isinstance(value, Iterable) and not hasattr(value, "item"):
        return list(value)
    return None


def _from_rows(rows: list[Any]) -> Columns:
    """Take a list of dicts: the union of keys, in order of appearance."""
    names: dict[str, None] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            message = (
                f"row {i} of the table is of type {type(row).__name__}, "
                "a dict is due"
            )
            raise TypeError(message)
        names.update(dict.fromkeys(row))
    return [(str(name), [row.get(name) for row in rows]) for name in names]


def _from_columns(table: Mapping[Any, Any]) -> Columns:
    """Take a dict of columns; one of scalars is a single row."""
    listed = [(str(name), _listed(column)) for name, column in table.items()]
    scalars = [name for name, column in listed if column is None]
    if scalars and len(scalars) < len(listed):
        message = (
            f'column "{scalars[0]}" of the table is a single value, '
            "and others are lists"
        )
        raise TypeError(message)
    if scalars:
        return [(str(name), [value]) for name, value in table.items()]
    columns = [(name, column or []) for name, column in listed]
    for name, column in columns:
        if len(column) != len(columns[0][1]):
            message = (
                f'column "{columns[0][0]}" of the table has '
                f'{len(columns[0][1])} rows and "{name}" has {len(column)}'
            )
            raise ValueError(message)
    return columns


def _check_names(table: Columns) -> Columns:
    """Refuse names that a table cannot have."""
    seen: set[str] = set()
    for name, _ in table:
        if not name:
            message = "a column of the table has no name"
            raise ValueError(message)
        if name in seen:
            message = f'two columns of the table are called "{name}"'
            raise ValueError(message)
        seen.add(name)
    return table


def columns(value: Any) -> Columns:
    """Return [(name, values), ...] of a table in any of its forms.

    A list of dicts, a dict of columns, a structured array or a DataFrame. The
    lists are new and all of one length.
    """
    return _check_names(_columns(value))


def _columns(value: Any) -> Columns:
    if isinstance(value, Mapping):
        return _from_columns(value)
    if isinstance(value, (list, tuple)):
        return _from_rows(list(value))
    names = getattr(getattr(value, "dtype", None), "names", None)
    if names:  # structured: one row per element
        flat = value.reshape(-1)
        return _from_columns({name: flat[name] for name in names})
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return _from_columns({name: value[name] for name in value.columns})
    message = (
        f"the function returned an object of type {type(value).__name__} "
        "where a table is due: a list of dicts, a dict of columns, a "
        "structured array or a DataFrame"
    )
    raise TypeError(message)


def plain(value: Any) -> Any:
    """Return None, a bool, int, float or str for a cell of another type."""
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas
        return None
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        made = value.item()  # NumPy's scalars, 0-d arrays, tensors
        if made is None or isinstance(made, (bool, int, float, str)):
            return made
    message = (
        f"a table cannot hold a value of type {type(value).__name__}: use "
        "numbers, text, True, False or None"
    )
    raise TypeError(message)
