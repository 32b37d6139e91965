"""A child process that looks at user code for `check` and `steps`.

Standard input: one JSON object::

    {"base_dir": "/folder/of/the/pipeline",
     "functions": [{"function": "./steps.py:smooth",
                    "parameters": ["sigma"], "with": ["mask"]}],
     "entry_points": true,
     "doctor": {"frameworks": [entries of bridge/frameworks.json],
                "native": ["native"]}}

("parameters" may be the pipeline's object, whose keys are taken.) Standard
output: one JSON object::

    {"functions": [{"function": "./steps.py:smooth",
                    "input_memory_type": "numpy" or null, ...,
                    "signature": "(stack, sigma=1.0)", "doc": "...",
                    "reports": [{"parameter": "sigma" or null,
                                 "message": "..."}]}
                   or {"function": ..., "error": {"code": "EINVAL",
                       "message": "...", "detail": "a traceback"}}],
     "entry_points": [{"name": "smooth", "function": "package.module:smooth",
                       "help": "..."} or with "error" as above],
     "doctor": {"python": ..., "frameworks": [...], "conflicts": [...],
                "conversions": {...}},
     "versions": {...}}

with the keys of _steps.describe() for each function.
"""

import json
import os
import sys
from typing import Any

from plateflow import _errors, _steps

GROUP = "plateflow.steps"


def _error(exc: BaseException) -> dict[str, str]:
    code, message, detail = _errors.explain(exc)
    return {"code": code or "EINVAL", "message": message, "detail": detail}


def _describe(request: dict[str, Any], base_dir: str) -> dict[str, Any]:
    import inspect

    function = str(request["function"])
    try:
        step = _steps.load(function, base_dir)
        about = _steps.describe(step)
        reports = _steps.check(
            step,
            list(request.get("parameters") or ()),
            list(request.get("with") or ()),
        )
        try:
            signature = str(inspect.signature(step))
        except (ValueError, TypeError):
            signature = ""
    except BaseException as exc:  # whatever importing user code raises
        return {"function": function, "error": _error(exc)}
    return {
        "function": function,
        **about,
        "signature": signature,
        "doc": inspect.getdoc(step) or "",
        "reports": [
            {"parameter": name, "message": text} for name, text in reports
        ],
    }


def _entry_points() -> list[dict[str, Any]]:
    from importlib.metadata import entry_points

    found = []
    for point in entry_points(group=GROUP):
        about = _describe({"function": point.value}, ".")
        found.append({**about, "name": point.name})
    return sorted(found, key=lambda point: str(point["name"]))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request; both as the module's text says."""
    base_dir = str(request.get("base_dir") or ".")
    reply: dict[str, Any] = {
        "functions": [
            _describe(function, base_dir)
            for function in request.get("functions", ())
        ]
    }
    if request.get("entry_points"):
        reply["entry_points"] = _entry_points()
    if request.get("doctor"):
        from plateflow import _doctor

        reply["doctor"] = _doctor.examine(request["doctor"])
    reply["versions"] = json.loads(_steps.versions())
    return reply


def main() -> int:
    """Answer standard input; what user code prints goes to standard error."""
    request = json.load(sys.stdin)
    out = os.dup(1)
    os.dup2(2, 1)
    text = json.dumps(answer(request))
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
