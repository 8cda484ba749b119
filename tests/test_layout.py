"""The repository itself: every module has its room, the command starts light, the package is complete."""

import ast
import inspect
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sonogauge
from tests.parts import PARTS
from tests.shared import ROOT

SOURCES = sorted((ROOT / "src").rglob("*.py"))
# What `sonogauge --help` must not pay for.
HEAVY = {
    "cv2",
    "datasets",
    "inspect_ai",
    "matplotlib",
    "openai",
    "openpyxl",
    "pandas",
    "pycocoevalcap",
    "pycocotools",
    "ray",
    "sacrebleu",
    "scipy.stats",
    "sklearn",
    "torch",
    "transformers",
}


@pytest.mark.part("command line")
def test_the_command_line_loads_nothing_heavy() -> None:
    program = "import json, sys, sonogauge.cli; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert "sonogauge.cli" in loaded
    assert loaded & HEAVY == set()


@pytest.mark.part("command line")
def test_help_runs_and_loads_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "from sonogauge.cli import main; main()", "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "score" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "sonogauge.cli" in loaded
    assert loaded & HEAVY == set()


def _imported_at_start(tree: ast.Module) -> set[str]:
    names = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT / "src")))
def test_a_module_says_what_it_is_and_is_of_readable_size(file: Path) -> None:
    text = file.read_text("utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a module starts with one sentence on what it is for"
    assert len(text.splitlines()) <= 400, "split it: one idea a module, 400 lines at most"
    never = {"torch", "ray", "inspect_ai", "transformers", "sklearn", "scipy.stats", "openai"}
    # This one is loaded by Inspect alone, through its entry point, and its decorators need Inspect.
    if file.relative_to(ROOT / "src") == Path("sonogauge/inspect/registry.py"):
        never.remove("inspect_ai")
    assert _imported_at_start(tree) & never == set(), "import it where it is used"


def test_every_folder_of_the_package_is_a_package() -> None:
    assert {file.parent for file in SOURCES} == {file.parent for file in SOURCES if file.name == "__init__.py"}


def test_no_module_is_a_drawer_for_everything() -> None:
    assert {file.stem for file in SOURCES} & {"utils", "util", "helpers", "common", "misc"} == set()


def test_the_version_is_the_same_everywhere() -> None:
    cited = next(line for line in (ROOT / "CITATION.cff").read_text("utf-8").splitlines() if line.startswith("version"))
    assert cited == f"version: {sonogauge.__version__}"
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## [{sonogauge.__version__}]" in changes or "## [Unreleased]" in changes


def test_the_public_functions_are_there() -> None:
    for name in ("build", "run", "score", "report"):
        assert callable(getattr(sonogauge, name, None)), name


def test_the_public_functions_are_listed_and_show_their_parameters() -> None:
    assert set(sonogauge.__all__) <= set(dir(sonogauge))
    names = [name for name in sonogauge.__all__ if name not in ("BadInput", "__version__")]
    for name in names:
        function = getattr(sonogauge, name)
        parameters = inspect.signature(function).parameters
        assert "args" not in parameters and "kwargs" not in parameters, name
        assert inspect.getdoc(function), name
    assert "progress" in inspect.signature(sonogauge.run).parameters


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "make test" in (ROOT / "README.md").read_text("utf-8")
    commands = [line for line in (ROOT / ".ci" / "run").read_text("utf-8").splitlines() if line and line[0] != "#"]
    assert commands[-1] == "exec make test"


def test_what_the_demo_needs_is_in_the_core() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"] == {"sonogauge": "sonogauge.cli:main"}
    core = " ".join(project["dependencies"])
    assert not any(name in core for name in ("torch", "ray", "inspect", "pandas"))


def test_parts_are_told_apart() -> None:
    assert len({promise for promise in PARTS.values()}) == len(PARTS)
    assert all("|" not in part + promise for part, promise in PARTS.items())


@pytest.mark.part("command line")
@pytest.mark.parametrize("page", ["README.md", *sorted(str(f.relative_to(ROOT)) for f in (ROOT / "docs").glob("*.md"))])
def test_every_command_in_the_docs_exists_with_its_options(page: str) -> None:
    import typer

    from sonogauge.cli import app

    text = (ROOT / page).read_text("utf-8")
    lines = [
        line.partition("#")[0]
        for code in text.split("```")[1::2]
        for line in code.splitlines()
        if line.startswith("sonogauge ")
    ]
    lines += [part for part in text.split("`")[1::2] if part.startswith("sonogauge ")]
    assert lines or page != "README.md"
    for words in (line.split() for line in lines):
        command, rest = typer.main.get_command(app), words[1:]
        while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
            assert rest[0] in command.commands, f"{page}: {' '.join(words)}"
            command = command.commands[rest.pop(0)]
        known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
        wanted = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help"}
        assert wanted <= known, f"{page}: {' '.join(words)}"
