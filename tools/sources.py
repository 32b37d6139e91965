"""The project's own C files, for the tools that read them."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE_FOLDERS = ("include", "bridge", "steps", "engine")
TOKEN = re.compile(
    r"//(?:\\\n|[^\n])*"  # comments
    r"|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'  # literals
    r"|'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)


def c_files(*folders: str, suffixes: str = ".c .h") -> list[Path]:
    """All C files below the given folders of the project, sorted."""
    wanted = suffixes.split()
    return sorted(
        path
        for folder in folders or (*SOURCE_FOLDERS, "tests")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in wanted and path.is_file()
    )


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def code_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) with comments and literals blanked."""
    text = TOKEN.sub(_blank, path.read_text(encoding="utf-8"))
    yield from enumerate(text.split("\n"), 1)


def report(problems: list[str], what: str) -> int:
    """Print the problems, or that there are none; return the exit status."""
    for problem in problems:
        print(problem)
    count = f"{len(problems)} found" if problems else "none"
    print(f"{what}: {count}", file=sys.stderr if problems else sys.stdout)
    return 1 if problems else 0
