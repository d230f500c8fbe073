"""Run every step of the Dockerfile in a clean environment, without a container engine.

    sudo python3 deploy/try_steps.py            (Linux; Debian or Ubuntu with Python 3.11)

Each step runs literally, in mount namespaces of its own: folders that the steps write to are empty
temporary ones, ``/etc`` is a copy, and what is left of this machine stands in for the base image.
At the end the server starts as the image would start it (other user, root file system read-only,
no capabilities), and the health check of the Dockerfile must succeed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
WRITTEN = ("/src", "/opt", "/var/lib/crowdtree", "/tmp")
"""Folders in which the steps find nothing but what they made."""
SECONDS = 60


class Step(NamedTuple):
    """An instruction of a Dockerfile."""

    word: str
    rest: str


def steps(text: str) -> Iterator[Step]:
    """Read the instructions, continued lines joined, comments left out.

    >>> list(steps("# hello\\nRUN a \\\\\\n  b\\n"))
    [Step(word='RUN', rest='a b')]
    """
    kept = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", "", kept).splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield Step(word.upper(), rest.strip())


def stages(text: str) -> list[list[Step]]:
    """Divide the instructions by their FROM."""
    found: list[list[Step]] = []
    for step in steps(text):
        if step.word == "FROM":
            found.append([])
        found[-1].append(step)
    return found


class Stage:
    """One stage: its folders, and what its instructions set."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.python = folder, python
        self.work, self.user = "/", "0"
        self.environment = {"PATH": "/python:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent"}
        self.exec: dict[str, list[str]] = {}
        for name in (*WRITTEN, "/etc", "/python"):
            self.place(name).mkdir(parents=True)
        shutil.copytree("/etc", self.place("/etc"), symlinks=True, dirs_exist_ok=True)
        self.place("/tmp").chmod(0o1777)
        for name in ("python", "python3"):
            self.place(f"/python/{name}").symlink_to(python)

    def place(self, path: str) -> Path:
        """Where a path of the image is on this machine."""
        return self.folder / path.lstrip("/")

    def command(self, words: list[str], *, sealed: bool = False) -> list[str]:
        """Wrap a command so that it sees the folders of this stage; `sealed`: as the image runs."""
        binds = [f"mkdir -p {name}; mount --bind {self.place(name)} {name}" for name in self.mounts]
        lines = ["set -e", "mount --make-rprivate /", *binds]
        if sealed:
            lines += ["mount --bind / /", "mount -o remount,ro,bind /"]
            lines += [f"mount -o remount,ro,bind {name}" for name in ("/opt", "/etc", "/python")]
        lines.append(f"cd {shlex.quote(self.work)}")
        drop = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
        drop += ["--no-new-privs", "--bounding-set=-all"] if sealed else []
        who = [] if self.user == "0" else drop
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        lines.append("exec " + shlex.join([*who, "env", "-i", *settings, *words]))
        return [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            "\n".join(lines),
        ]

    @property
    def mounts(self) -> list[str]:
        """Folders to mount; /tmp last, because the others lie in it here."""
        return ["/etc", "/python", *(name for name in WRITTEN if name != "/tmp"), "/tmp"]


def copy(step: Step, stage: Stage, before: dict[str, Stage]) -> None:
    """Do what COPY does, from the repository or from another stage."""
    words = step.rest.split()
    source = next((word.partition("=")[2] for word in words if word.startswith("--from=")), None)
    *names, target = [word for word in words if not word.startswith("--")]
    place = stage.place(os.path.join(stage.work, target))
    for name in names:
        found = before[source].place(name) if source else ROOT / name
        if found.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(found, place, symlinks=True, dirs_exist_ok=True, ignore=ignored)
        else:
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy2(found, place)


def perform(step: Step, stage: Stage, before: dict[str, Stage]) -> None:
    """Do what one instruction says."""
    if step.word == "RUN":
        subprocess.run(stage.command(["sh", "-ec", step.rest]), check=True, timeout=1200)
    elif step.word == "COPY":
        copy(step, stage, before)
    elif step.word == "WORKDIR":
        stage.work = step.rest
        stage.place(step.rest).mkdir(parents=True, exist_ok=True)
    elif step.word == "USER":
        stage.user = step.rest
    elif step.word == "ENV":
        for word in shlex.split(step.rest):
            name, _, value = word.partition("=")
            stage.environment[name] = value.replace("$PATH", stage.environment["PATH"])
    elif step.word in ("ENTRYPOINT", "CMD", "HEALTHCHECK"):
        stage.exec[step.word] = json.loads(step.rest[step.rest.index("[") :])
    elif step.word not in ("FROM", "EXPOSE", "VOLUME"):
        raise SystemExit(f"try_steps: {step.word} is not known; add it here")


def serve(stage: Stage) -> None:
    """Start the server as the image does, and wait until its health check succeeds."""
    words = [*stage.exec["ENTRYPOINT"], *stage.exec["CMD"]]
    server = subprocess.Popen(stage.command(words, sealed=True))
    try:
        for _ in range(SECONDS):
            time.sleep(1)
            check = stage.command(stage.exec["HEALTHCHECK"], sealed=True)
            if subprocess.run(check, capture_output=True).returncode == 0:
                return
            if server.poll() is not None:
                break
        raise SystemExit(f"try_steps: the server was not healthy within {SECONDS} s")
    finally:
        server.kill()  # unshare ignores other signals, and ends what it started
        server.wait(20)


def main() -> None:
    """Run all stages of the Dockerfile, then the server."""
    python = sys.argv[1] if len(sys.argv) > 1 else "/usr/bin/python3"
    before: dict[str, Stage] = {}
    with tempfile.TemporaryDirectory(prefix="crowdtree-image-", dir="/var/tmp") as folder:
        for number, found in enumerate(stages((ROOT / "deploy" / "Dockerfile").read_text())):
            stage = Stage(Path(folder) / str(number), python)
            before[found[0].rest.partition(" AS ")[2] or str(number)] = stage
            for step in found:
                print(f"{step.word} {step.rest}", flush=True)
                perform(step, stage, before)
        serve(stage)
        size = sum(path.lstat().st_size for path in stage.place("/opt").rglob("*"))
        print(f"healthy; /opt/crowdtree takes {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
