"""Compile the kernels while a wheel is built, so that the package comes with their machine code and needs no Numba.

Without a compiler of C, in an editable installation, or with POSTERIORI_NO_MACHINE_CODE=1 the wheel is pure Python and
requires Numba, which compiles kernels when they are first used.
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

# The process finds modules where the build does, and the sources of this checkout first. It takes none of this from the
# environment: pip takes the folders of installed packages off the path, and an editable install makes src one of them.
_COMPILE = """
import sys
sys.path[:] = sys.argv[2:]
from posteriori.kernels.machine.building import main
sys.exit(main(sys.argv[1]))
"""


def _is_skipped() -> bool:
    return os.environ.get("POSTERIORI_NO_MACHINE_CODE", "") not in ("", "0")


class MachineCode(BuildHookInterface):
    """A build hook of hatchling."""

    PLUGIN_NAME = "custom"
    _folder: Path | None = None

    def dependencies(self) -> list[str]:
        """Return what the build needs: what kernels import, and a compiler of C where the system has none."""
        if _is_skipped():
            return []
        has_compiler = "CC" in os.environ or any(map(shutil.which, ("cc", "gcc", "clang")))
        return self.config["needs"] + ([] if has_compiler else self.config["compiler"])

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the machine code to the wheel, and name the system that it is for; or require Numba."""
        if version == "editable" or _is_skipped():
            build_data["dependencies"].append(self.config["instead"])
            return
        self._folder = Path(tempfile.mkdtemp())
        self.app.display_info("compiling kernels, which takes about a minute (POSTERIORI_NO_MACHINE_CODE=1 skips it)")
        if reason := self._why_not_compiled(self._folder):
            self.app.display_warning(
                f"the package has no machine code, because {reason}; Numba compiles kernels on first use"
            )
            build_data["dependencies"].append(self.config["instead"])
            why = self._folder / "no_machine_code.txt"  # which `compiling.py` quotes
            why.write_text(reason, "utf-8")
            build_data["force_include"][str(why)] = f"posteriori/kernels/machine/{why.name}"
            return
        for file in self._folder.glob("_machine_code*"):
            build_data["force_include"][str(file)] = f"posteriori/kernels/{file.name}"
        system = os.environ.get("POSTERIORI_PLATFORM") or sysconfig.get_platform()
        build_data["pure_python"] = False
        build_data["tag"] = "cp311-abi3-" + "".join(letter if letter.isalnum() else "_" for letter in system)

    def _why_not_compiled(self, folder: Path) -> str:
        """Make the module in a folder; return why that fails, and nothing if it does not."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        command = [sys.executable, "-I", "-c", _COMPILE, str(folder), str(Path(self.root, "src")), *sys.path]
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
