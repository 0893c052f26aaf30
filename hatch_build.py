"""Compile the kernels while a wheel is built, so that the package comes with their machine code.

The wheel then requires the Numba that compiled it, such as `numba==0.61.*`: another one would find none of the code.

POSTERIORI_NO_MACHINE_CODE=1 skips this: the wheel is then pure Python, and kernels are compiled on first use. So it is
if compiling fails; then the package says why when it first compiles (`posteriori.kernels.machine.code_files`).
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The process finds modules where the build does, and the sources of this checkout first. It takes none of this from the
# environment: pip takes the folders of installed packages off the path, and an editable install makes src one of them.
_COMPILE = """
import sys
sys.path[:] = sys.argv[2:]
from posteriori.kernels.machine.ahead_of_time import main
main(sys.argv[1])
"""


def _is_skipped() -> bool:
    return os.environ.get("POSTERIORI_NO_MACHINE_CODE", "") not in ("", "0")


class MachineCode(BuildHookInterface):
    """A build hook of hatchling."""

    PLUGIN_NAME = "custom"
    _folder: Path | None = None

    def dependencies(self) -> list[str]:
        """Return what the build needs: what kernels import."""
        return [] if _is_skipped() else self.config["needs"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folder of machine code to the wheel, and name the Python and the system that it is for."""
        if version == "editable" or _is_skipped():
            return
        self._folder = Path(tempfile.mkdtemp())
        self.app.display_info("compiling kernels, which takes about a minute (POSTERIORI_NO_MACHINE_CODE=1 skips it)")
        build_data["force_include"][str(self._folder)] = "posteriori/kernels/machine/compiled"
        if reason := self._why_not_compiled(self._folder):
            self.app.display_warning(f"the package has no machine code, because compiling failed: {reason}")
            for part in self._folder.iterdir():
                part.unlink()
            (self._folder / "made_with.json").write_text(json.dumps({"failed": reason}), "utf-8")
            return
        made_with = json.loads((self._folder / "made_with.json").read_text("utf-8"))
        build_data["dependencies"].append(f"numba=={'.'.join(made_with['numba'].split('.')[:2])}.*")
        system = os.environ.get("POSTERIORI_PLATFORM") or sysconfig.get_platform()
        build_data["pure_python"] = False
        build_data["tag"] = f"cp{sys.version_info.major}{sys.version_info.minor}-none-" + "".join(
            letter if letter.isalnum() else "_" for letter in system
        )

    def _why_not_compiled(self, folder: Path) -> str:
        """Fill a folder with machine code; return the last line of the error if that fails, and else nothing."""
        # The code is kept in the checkout too, for the next build and for the tests.
        cache = os.environ.get("NUMBA_CACHE_DIR") or str(Path(self.root, "build", "kernels"))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        command = [sys.executable, "-I", "-c", _COMPILE, str(folder), str(Path(self.root, "src")), *sys.path]
        environment["NUMBA_CACHE_DIR"] = cache
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
        if not done.returncode:
            return ""
        self.app.display_info(done.stderr)
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        return lines[-1][:300] if lines else f"the compiler ended with the code {done.returncode}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
