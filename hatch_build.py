"""Compile the kernels while a wheel is built, so that the package comes with their machine code.

POSTERIORI_NO_MACHINE_CODE=1 skips this: the wheel is then pure Python, and kernels are compiled on first use.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


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
        # The code is kept in the checkout too, for the next build and for the tests.
        # pip hands the environment of the build on in PYTHONPATH.
        paths = [str(Path(self.root, "src")), *filter(None, [os.environ.get("PYTHONPATH")])]
        settings = {"PYTHONPATH": os.pathsep.join(paths)}
        settings["NUMBA_CACHE_DIR"] = os.environ.get("NUMBA_CACHE_DIR") or str(Path(self.root, "build", "kernels"))
        Path(settings["NUMBA_CACHE_DIR"]).mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "posteriori.kernels.ahead_of_time", str(self._folder)]
        done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)
        if done.returncode:
            self.app.display_warning(f"the package has no machine code, because compiling failed:\n{done.stderr}")
            return
        system = os.environ.get("POSTERIORI_PLATFORM") or sysconfig.get_platform()
        build_data["pure_python"] = False
        build_data["tag"] = f"cp{sys.version_info.major}{sys.version_info.minor}-none-" + "".join(
            letter if letter.isalnum() else "_" for letter in system
        )
        build_data["force_include"][str(self._folder)] = "posteriori/kernels/compiled"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
