"""Make a module of Python from the kernels: Numba compiles them, and a compiler of C links them with `module.c`.

The build of a package calls ``python -m posteriori.kernels.machine.building FOLDER``. Numba gives the intermediate
code of LLVM for each line of `signatures`, and LLVM turns it into an object that may lie anywhere in memory. A kernel
then needs nothing of Numba but what `module.c` has, and the mathematics of the C library. The module uses the stable
interfaces of Python and NumPy, so that one file serves all versions from 3.11 on.

Processors are those of the last ten years: on x86-64 those of level v3 if this machine is one, or else all.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from posteriori.kernels.machine import signatures
from posteriori.kernels.machine.compiling import kernel_of

MODULE = "_machine_code"
_C = Path(__file__).with_name("module.c")
_IN_MODULE = {
    "NRT_MemInfo_alloc_aligned",
    "NRT_MemInfo_call_dtor",
    "NRT_MemInfo_new_varsize_dtor",
    "numba_attempt_nocopy_reshape",
}
_IN_C = {"exp", "exp2", "expm1", "log", "log1p", "log2", "pow", "sqrt", "floor", "ceil", "lgamma"}
_V3 = "x86-64-v3"


class BuildError(Exception):
    """Why this machine cannot make the module, as the end of a sentence."""


def build(folder: Path, report: Callable[[int, int], None] = lambda done, of: None) -> Path:
    """Make the module in a folder, and return its file.

    Raises
    ------
    BuildError
        There is no compiler of C, or it fails.
    """
    compiler = find_compiler()
    _try(compiler)  # before the kernels, which take a minute
    lines = signatures.listed()
    of_modules = defaultdict(list)
    for i, line in enumerate(lines):
        of_modules[line.partition(".")[0]].append(i)
    results: dict[int, str] = {}
    processor = _processor()
    # Processes are spawned: Numba is to find its processor in the environment, and a fork would copy locks of threads.
    os.environ |= {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}
    with (
        tempfile.TemporaryDirectory() as made,
        ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as processes,
    ):
        # The lines of a module share its parts, which a process compiles once. The longest work begins first.
        work = sorted(of_modules.values(), key=lambda some: sum(len(lines[i]) for i in some), reverse=True)
        tasks = [processes.submit(_compile, {i: lines[i] for i in some}, Path(made), processor) for some in work]
        try:
            for task in as_completed(tasks):
                results |= task.result()
                report(len(results), len(lines))
        except BuildError:
            processes.shutdown(cancel_futures=True)
            raise
        Path(made, "calls.h").write_text(_calls(lines, results, processor), "utf-8")
        return _link(compiler, Path(made), folder)


def compile_all() -> None:
    """Compile all kernels for later processes, in one process per core: what a run of all tests begins with."""
    modules = sorted({line.partition(".")[0] for line in signatures.listed()})
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as processes:
        list(processes.map(_compile_module, modules))


def _compile_module(module: str) -> None:
    from posteriori.kernels.machine import numba_compiler

    for name in signatures.of_kernels():
        if name.partition(".")[0] == module:
            kernel = kernel_of(name)
            numba_compiler.compiled_here(name, kernel.loop, kernel.fastmath)


def find_compiler() -> list[str]:
    """Return the command of a compiler of C: that of the environment variable CC, of the system, or of ``ziglang``."""
    if stated := os.environ.get("CC"):
        return shlex.split(stated)
    for name in ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            return [path]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise BuildError("there is no compiler of C")


def _processor() -> str:
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "generic"
    has = llvm.get_host_cpu_features()
    return _V3 if all(has.get(name) for name in ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")) else "x86-64"


def _compile(lines: dict[int, str], folder: Path, processor: str) -> dict[int, str]:
    """Write the object of each line to a folder, and return the text of what it returns (see `module.c`)."""
    import gc

    import llvmlite.binding as llvm

    from posteriori.kernels.machine import numba_compiler

    gc.freeze()
    gc.disable()  # the process ends soon
    numba_compiler.stop_at_intermediate_code()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(cpu=processor, opt=3, reloc="pic", codemodel="default")
    results = {}
    dispatchers: dict[str, Any] = {}
    for i, line in lines.items():
        name, kinds = signatures.read_line(line)
        if name not in dispatchers:
            kernel = kernel_of(name)
            dispatchers[name] = numba_compiler.dispatcher(kernel.loop, kernel.fastmath)
        made, types = dispatchers[name], numba_compiler.numba_types(kinds)
        made.compile(types)
        compiled = made.overloads[types]
        code = llvm.parse_assembly(made.inspect_llvm(types))
        entry = code.get_function(compiled.fndesc.llvm_func_name)
        _check(line, code, [_c_type(argument) for argument in entry.arguments], kinds)
        for symbol in (*code.functions, *code.global_variables):
            if not symbol.is_declaration and symbol.name != entry.name:
                symbol.linkage = "internal"  # the object holds all its parts, and shares none with other objects
        entry.name, entry.visibility = f"kernel_{i}", "hidden"
        Path(folder, f"{i:03d}.o").write_bytes(machine.emit_object(code))
        results[i] = _result(line, numba_compiler.types.unliteral(compiled.signature.return_type))
    return results


def _check(line: str, code: Any, arguments: list[str], kinds: Sequence[signatures.Type]) -> None:
    """Check what is known of Numba's native functions: their arguments, and what they call."""
    expected = ["void *", "void *", *(part.partition(":")[0] for kind in kinds for part in _native(kind))]
    if arguments != expected:
        raise BuildError(f"Numba passes the arguments of {line} as {arguments}, not as {expected}")
    called = {symbol.name for symbol in code.functions if symbol.is_declaration and not symbol.name.startswith("llvm.")}
    if unknown := called - _IN_MODULE - _IN_C:
        raise BuildError(f"the machine code of {line} calls {', '.join(sorted(unknown))}")


def _c_type(argument: Any) -> str:
    name = str(argument.type)
    return {"double": "double", "float": "float", "i64": "int64_t", "i32": "int32_t", "i8": "int8_t"}.get(
        name, "void *" if name == "ptr" or name.endswith("*") else name
    )


def _native(kind: signatures.Type) -> Iterator[str]:
    """Yield the types in C of what a native function takes for an argument, each with what is passed after a colon."""
    if isinstance(kind, signatures.TupleType):
        for member in kind.members:
            yield from _native(member)
    elif isinstance(kind, signatures.NumberType):
        code = kind.dtype.kind
        yield {"f": "double:f", "b": "int8_t:b", "i": "int64_t:i", "u": "int64_t:u"}[code]
    else:
        yield from ("void *:NULL", "void *:NULL", "int64_t:size", "int64_t:item", "void *:data")
        yield from (f"int64_t:{name}[{axis}]" for name in ("length", "step") for axis in range(kind.n_axes))


def _result(line: str, kind: Any) -> str:
    from posteriori.kernels.machine.numba_compiler import types

    if kind == types.none:
        return ""
    if isinstance(kind, types.BaseTuple):
        return f"({''.join(_result(line, types.unliteral(member)) for member in kind.types)})"
    dtype = np.dtype(str(kind.dtype if isinstance(kind, types.Array) else kind))
    code = f"{dtype.kind}{dtype.itemsize}"
    if isinstance(kind, types.Array) and kind.layout == "C":
        return f"W{kind.ndim}{code}"
    if isinstance(kind, types.Number | types.Boolean) and code in ("f8", "i8", "b1"):
        return f"S{code}"
    raise BuildError(f"a kernel may not return {kind}: {line}")


def _calls(lines: list[str], results: dict[int, str], processor: str) -> str:
    """Return the part of the module in C that depends on the list."""
    text = [f"#define NEEDS_{re.sub('[^A-Z0-9]', '_', processor.upper())}"]
    table, names = [], []
    first: dict[str, int] = {}
    for i, line in enumerate(lines):
        name, kinds = signatures.read_line(line)
        first.setdefault(name, i)
        names.append(name)
        parameters, passed = ["void *", "void **"], ["result", "error"]
        n_arrays = n_numbers = 0
        for kind in _flat(kinds):
            is_number = isinstance(kind, signatures.NumberType)
            for part in _native(kind):
                c_type, _, what = part.partition(":")
                parameters.append(c_type)
                of = f"to->number[{n_numbers}]." if is_number else f"to->array[{n_arrays}]."
                passed.append(what if what == "NULL" else of + what)
            n_arrays, n_numbers = n_arrays + (not is_number), n_numbers + is_number
        text.append(f"extern int32_t kernel_{i}({', '.join(parameters)}); /* {line} */")
        text.append(f"static int32_t run_{i}(const Arguments *to, void *result, void **error) {{")
        text.append(f"    return kernel_{i}({', '.join(passed)});\n}}")
        table.append(f'    {{"{signatures.written(kinds)}", "{results[i]}", run_{i}}},')
    text += ["static const Signature signatures[] = {", *table, "};", "static const Kernel kernels[] = {"]
    text += [f'    {{"{name}", {at}, {names.count(name)}}},' for name, at in first.items()]
    return "\n".join([*text, "};\n"])


def _flat(kinds: Sequence[signatures.Type]) -> Iterator[signatures.Type]:
    for kind in kinds:
        if isinstance(kind, signatures.TupleType):
            yield from _flat(kind.members)
        else:
            yield kind


def _try(compiler: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "try.c").write_text("#include <Python.h>\n", "utf-8")
        includes = f"-I{sysconfig.get_paths()['include']}"
        _call([*compiler, includes, "-c", str(Path(folder, "try.c")), "-o", str(Path(folder, "try.o"))])


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        raise BuildError(f"the compiler of C fails: {(errors or ['without a word'])[0].strip()[:300]}")


def _link(compiler: list[str], made: Path, folder: Path) -> Path:
    file = folder / (f"{MODULE}.pyd" if sys.platform == "win32" else f"{MODULE}.abi3.so")
    including = [f"-I{made}", f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"]
    command = [*compiler, "-O2", "-fPIC", "-fvisibility=hidden", *shlex.split(os.environ.get("CFLAGS", "")), *including]
    command += [str(_C), *map(str, sorted(made.glob("*.o")))]
    if sys.platform == "darwin":
        command += ["-bundle", "-undefined", "dynamic_lookup"]
    elif sys.platform == "win32":
        command += ["-shared", f"-L{Path(sys.base_prefix, 'libs')}", "-lpython3"]
    else:
        command += ["-shared", "-s", "-lm"]
    _call([*command, "-o", str(file)])
    return file


def main(folder: str) -> int:
    """Make the module in a folder, and say on standard error how far it is."""
    end = "\r" if sys.stderr.isatty() else "\n"
    try:
        build(Path(folder), lambda done, of: print(f"compiled {done} of {of} kernels", end=end, file=sys.stderr))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
