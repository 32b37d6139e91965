"""The project's own tools find what they are there to find."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HEADER = "#ifndef PLATEFLOW_A_H\n#define PLATEFLOW_A_H\n{}\n#endif\n"
EXTERN_C = '#ifdef __cplusplus\nextern "C" {\n#endif\n'

RULES = [
    # file, its text, what is said of it (None: nothing)
    ("bridge/a.c", "int f(void) { return 1; }\n", None),
    ("bridge/a.c", '#include "steps/low.h"\n', "may not include steps/low.h"),
    ("bridge/a.c", '#include "plateflow/low.h"\n', None),
    ("steps/a.c", '#include "engine/low.h"\n', "may not include"),
    ("steps/python/a.c", '#include "steps/low.h"\n', None),
    ("engine/a.c", '#include "engine/cli/low.h"\n', "may not include"),
    ("engine/cli/a.c", '#include "engine/low.h"\n', None),
    ("engine/a.c", '#include "low.h"\n', "write the path from the root"),
    ("engine/a.h", "#include <tiffio.h>\n", "only in a .c"),
    ("engine/a.h", "#include <cjson/cJSON.h>\n", "only in a .c"),
    ("engine/a.c", "#include <tiffio.h>\n", None),
    ("bridge/a.c", "void f(char *s) { strcpy(s, s); }\n", "strcpy()"),
    ("bridge/a.c", "void f(void) { abort (); }\n", "abort()"),
    ("bridge/a.c", "void f(void) { exit(1); }\n", "exit()"),
    ("engine/cli/a.c", "void f(void) { exit(1); }\n", None),
    ("bridge/a.c", "void f(void) { _exit(1); }\n", None),
    ("bridge/a.c", "/* strcpy(a, b) */ // abort()\n", None),
    ("bridge/a.c", 'const char *s = "strcpy(a)";\n', None),
    ("bridge/a.c", "void f(struct p *p) { p->system(1); }\n", None),
    ("include/plateflow/a.h", HEADER.format(EXTERN_C), None),
    ("include/plateflow/a.h", HEADER.format(""), 'no extern "C"'),
    ("include/plateflow/a.h", EXTERN_C, "no include guard"),
]


@pytest.fixture
def tree(root: Path, tmp_path: Path) -> Path:
    """A project of one header in each layer."""
    shutil.copytree(
        root / "tools",
        tmp_path / "tools",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for layer in ("bridge", "steps", "engine", "engine/cli", "tests"):
        (tmp_path / layer).mkdir(parents=True)
        (tmp_path / layer / "low.h").write_text("int low;\n")
    public = tmp_path / "include/plateflow/low.h"
    public.parent.mkdir(parents=True)
    public.write_text(HEADER.format(EXTERN_C).replace("_A_H", "_LOW_H"))
    return tmp_path


def tool(tree: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, tree / "tools" / name],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("name", "text", "said"), RULES)
def test_rules(tree: Path, name: str, text: str, said: str | None):
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    done = tool(tree, "rules")
    if said is None:
        assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    else:
        assert done.returncode == 1
        assert f"{name}:" in done.stdout
        assert said in done.stdout


@pytest.mark.skipif(not shutil.which("ctags"), reason="no ctags here")
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (70, None),
        (71, "95th percentile"),
        (120, "95th percentile"),
        (121, "f has 121 lines"),
        (1001, "1001 lines, at most 1000"),
    ],
)
def test_lengths(tree: Path, lines: int, said: str | None):
    short = "".join(f"int g{i}(void) {{\n}}\n" for i in range(15))
    (tree / "bridge/short.c").write_text(short)
    body = "  ;\n" * (lines - 2)
    (tree / "bridge/a.c").write_text(f"void f(void) {{\n{body}}}\n")
    done = tool(tree, "lengths")
    if said is None:
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 1
        assert said in done.stdout
