"""What is built and installed: one name, whole, that leaves a user's own ``client`` and ``protocol`` alone."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from rejoin.release import release
from tests import paths
from tests.packaging.environment import Environment, fresh, install_lines

pytestmark = pytest.mark.xdist_group("packaging")

LINKS = sorted(entry for entry in (paths.ROOT / "src" / "rejoin").iterdir() if entry.is_symlink())
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, 'build_' + sys.argv[1])(sys.argv[2])"
THEIRS = {
    "pytest.ini": "[pytest]\nasyncio_mode = auto\n",
    "client.py": "NAME = 'the client of the project'\n",
    "protocol.py": "NAME = 'the protocol of the project'\n",
    "simulation.py": "NAME = 'the simulation of the project'\n",
    "coordinator/__init__.py": "NAME = 'the coordinator of the project'\n",
    "tests/__init__.py": "",
    "tests/test_their_own.py": """
import asyncio
import client, coordinator, protocol, simulation
import rejoin.client, rejoin.pipeline, rejoin.protocol, rejoin.simulation
from rejoin.client import Consumer

def test_every_module_is_the_one_of_the_project():
    for module in (client, coordinator, protocol, simulation):
        assert module.NAME == f"the {module.__name__} of the project"

def test_the_fixture_is_there(group_coordinator):
    assert group_coordinator.set_topic("orders", 3).partitions == 3

async def test_a_consumer_joins(group_coordinator):
    await group_coordinator.set_topic("orders", 3)
    async with Consumer(
        "orders", bootstrap_servers=group_coordinator.url, group_id="orders-app"
    ) as consumer:
        polling = asyncio.ensure_future(consumer.poll(timeout_ms=20_000))
        await group_coordinator.wait_for_group("orders-app", state="Stable", members=1)
        polling.cancel()
""",
}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the Dockerfile copies into the image, and nothing else."""
    folder = tmp_path_factory.mktemp("copied")
    for line in re.findall(r"^COPY (?!--)(.+)$", (paths.ROOT / "Dockerfile").read_text(), re.MULTILINE):
        *sources, target = line.split()
        for source in sources:
            here = paths.ROOT / source
            if here.is_dir():
                shutil.copytree(here, folder / target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(here, folder / target)
    return folder


@pytest.fixture(scope="module")
def sdist(copied: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", copied, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the sdist."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    [unpacked] = folder.iterdir()
    return build("wheel", unpacked, tmp_path_factory.mktemp("wheel"))


def build(what: str, folder: Path, into: Path) -> Path:
    """Build in a folder, as pip and build do."""
    command = [sys.executable, "-c", BUILD, what, str(into)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    [built] = into.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = fresh(tmp_path_factory.mktemp("installed"))
    environment.pip_install(wheel)
    return environment


@pytest.fixture(scope="module")
def editable(copied: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = fresh(tmp_path_factory.mktemp("editable"))
    environment.pip_install("--editable", copied)
    return environment


@pytest.fixture(params=["installed", "editable"])
def environment(request: pytest.FixtureRequest) -> Environment:
    chosen: Environment = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's project, whose modules are named as our folders are."""
    for name, text in THEIRS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_wheel_of_an_sdist_has_every_file_of_every_package(wheel: Path) -> None:
    here = {
        f"rejoin/{file.relative_to(paths.ROOT)}"
        for link in LINKS
        for file in link.resolve().rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    here |= {f"rejoin/{file.name}" for file in LINKS[0].parent.iterdir() if file.is_file()}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert sorted(here - packed) == []
    assert sorted(packed - here) == []


def test_site_packages_gets_one_name(installed: Environment) -> None:
    names = sorted(entry.name for entry in installed.site_packages.iterdir())
    assert names == ["dependencies.pth", "rejoin", f"rejoin_kafka-{release()}.dist-info"]
    assert sorted(entry.name for entry in (installed.folder / "bin").glob("rejoin*")) == ["rejoin", "rejoin-kafka"]


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize(
    "package", ["rejoin.client", "rejoin.coordinator.testing", "rejoin.pipeline", "rejoin.simulation"]
)
def test_the_first_import_names_a_foreign_rejoin(
    wheel: Path, tmp_path: Path, installed: Environment, order: str, package: str
) -> None:
    """Whether the other program's files were written before ours or over ours."""
    there = shutil.copytree(installed.site_packages / "rejoin", tmp_path / "rejoin").parent
    (there / "rejoin-0.3.1.dist-info").mkdir()
    if order == "after":
        (there / "rejoin" / "__init__.py").write_text("")
    done = installed.run("python", "-c", f"import sys; sys.path.insert(0, '.'); import {package}", folder=there)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: {there} has rejoin 0.3.1 beside rejoin-kafka: a program of others, whose package is rejoin, "
        "too. Run: pip uninstall rejoin; pip install --force-reinstall --no-deps rejoin-kafka"
    )


def test_the_install_section_of_the_readme_is_true(wheel: Path, tmp_path: Path) -> None:
    """Line by line, where the index is a folder with the wheel; ``make installs`` does so with uvx and pipx, too."""
    environment = fresh(tmp_path)
    lines = install_lines()
    assert [line[0] for line in lines] == ["pip", "pip", "uvx"]
    for program, *arguments in lines:
        if program == "pip":
            environment.pip_install("--find-links", wheel.parent, "--force-reinstall", *arguments[1:])
        else:
            done = environment.run(*arguments, folder=tmp_path)
            assert (done.returncode, done.stderr) == (0, "")


def test_a_project_with_names_like_ours_uses_the_plugin(environment: Environment, project: Path) -> None:
    done = environment.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_the_command_is_there_and_leaves_their_modules_alone(environment: Environment, project: Path) -> None:
    assert environment.run("rejoin", "--version", folder=project).stdout == f"{release()}\n"
    done = environment.run("rejoin", "simulate", "cold_start", "--quiet", "--html", "page.html", folder=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert (project / "page.html").stat().st_size > 10_000


def test_the_image_copies_all_that_the_links_lead_to(copied: Path) -> None:
    assert LINKS
    for link in LINKS:
        there = copied / "src" / "rejoin" / link.name
        assert there.is_symlink()
        assert (there / "__init__.py").is_file(), f"the Dockerfile does not copy {link.name}"
