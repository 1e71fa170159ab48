"""The stand-in of ``cupy.RawModule``: compiles CUDA source with g++ and launches its kernels."""

from __future__ import annotations

import ctypes
import functools
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import compiler, cuda
from .array import ndarray

SHIM = Path(__file__).with_name("host_shim.h")
FLAGS = (
    *("-O1", "-fno-gnu-unique", "-U_FORTIFY_SOURCE"),
    *("-Wno-unknown-pragmas", "-Werror=return-type", "-Werror=uninitialized", "-DHOST_SHIM"),
)
KERNEL = re.compile(r"^(KERNEL|BLOCK_KERNEL|GRID_KERNEL)\((\w+)\)\s*\(([^)]*)\)\s*\{", re.MULTILINE)
TYPEDEF = re.compile(r"^typedef ([\w ]+?) (\w+);", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
TYPES = {
    "float": np.float32,
    "double": np.float64,
    "unsigned short": np.uint16,
    "int": np.int32,
    "unsigned": np.uint32,
    "unsigned int": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "bool": np.bool_,
    "signed char": np.int8,
    "unsigned char": np.uint8,
}


class Parameter(NamedTuple):
    declaration: str
    name: str
    dtype: np.dtype
    pointer: bool

    def convert(self, kernel: str, value: Any) -> Any:
        """The argument for ctypes; TypeError unless its type is exactly that of the parameter."""
        if self.pointer:
            if isinstance(value, np.uint64) and value == 0:
                return None
            if isinstance(value, ndarray) and value.dtype in self._pointed():
                return value._array.ctypes.data
            # CuPy 13.3 would pass None as 0xffffffffffffffff.
            expected = " or ".join(f"CuPy array of {dtype}" for dtype in self._pointed()) + " or np.uint64(0)"
        else:
            if isinstance(value, np.generic) and value.dtype == self.dtype:
                return value.item()
            expected = f"np.{self.dtype}"
        got = type(value).__name__ + (f" of {value.dtype}" if isinstance(value, np.ndarray | ndarray) else "")
        raise TypeError(
            f"{kernel}: parameter {self.declaration} got {got} {value!r:.40}, expected {expected}"
        )

    def _pointed(self) -> tuple[np.dtype, ...]:
        return (self.dtype, np.dtype(bool)) if self.dtype == np.uint8 else (self.dtype,)


class Kernel(NamedTuple):
    kind: str
    parameters: tuple[Parameter, ...]
    launch: Any
    error: Any


def parse(code: str, defines: tuple[str, ...]) -> dict[str, tuple[str, tuple[Parameter, ...]]]:
    """The kernels in the source, by name: the macro and the parameters."""
    types = dict(TYPES)
    for define in defines:
        name, _, value = define.removeprefix("-D").partition("=")
        if value in TYPES:
            types[name] = TYPES[value]
    code = COMMENT.sub("", code)
    types |= {name: types[meaning] for meaning, name in TYPEDEF.findall(code) if meaning in types}
    kernels = {}
    for match in KERNEL.finditer(code):
        kind, name, declarations = match.groups()
        if kind == "GRID_KERNEL" and "__shared__" in _body(code, match.end()):
            raise cuda.CompileException(
                f"{name}: a GRID_KERNEL declares shared memory with SHARED(), not __shared__"
            )
        parameters = tuple(_parameter(name, part, types) for part in declarations.split(",") if part.strip())
        kernels[name] = kind, parameters
    return kernels


def _body(code: str, start: int) -> str:
    depth, end = 1, start
    while depth and end < len(code):
        depth += {"{": 1, "}": -1}.get(code[end], 0)
        end += 1
    return code[start:end]


def _parameter(kernel: str, declaration: str, types: dict[str, Any]) -> Parameter:
    declaration = " ".join(declaration.split())
    match = re.fullmatch(
        r"([\w ]+?)(\s*\*)?\s*(\w+)", re.sub(r"\bconst\b|\b__restrict__\b", "", declaration).strip()
    )
    if not match or " ".join(match[1].split()) not in types:
        raise cuda.CompileException(f"{kernel}: parameter {declaration!r} has a type that is not known here")
    return Parameter(declaration, match[3], np.dtype(types[" ".join(match[1].split())]), bool(match[2]))


@functools.cache
def load(code: str, options: tuple[str, ...]) -> dict[str, Kernel]:
    """Load the kernels of the source, which is compiled unless it is cached."""
    defines = tuple(option for option in options if option.startswith("-D"))
    signatures = parse(code, defines)
    source = code + "\n" + "".join(_launcher(name, *signatures[name]) for name in signatures)
    path = compiler.shared_library(source, (*FLAGS, *defines), [SHIM])
    library = ctypes.PyDLL(str(path))  # keeps the interpreter's lock: the threads' state is global
    library.shim_error.restype = ctypes.c_char_p
    kernels = {}
    for name, (kind, parameters) in signatures.items():
        launch = library[f"launch_{name}"]
        dimensions = ctypes.POINTER(ctypes.c_uint)
        launch.argtypes = [dimensions, dimensions, ctypes.c_size_t] + [
            ctypes.c_void_p if parameter.pointer else np.ctypeslib.as_ctypes_type(parameter.dtype)
            for parameter in parameters
        ]
        kernels[name] = Kernel(kind, parameters, launch, library.shim_error)
    return kernels


def _launcher(name: str, kind: str, parameters: tuple[Parameter, ...]) -> str:
    declarations = "".join(f", {parameter.declaration}" for parameter in parameters)
    names = ", ".join(parameter.name for parameter in parameters)
    kind = "PLAIN" if kind == "KERNEL" else kind.removesuffix("_KERNEL")
    return (
        f'extern "C" int launch_{name}'
        f"(const unsigned* grid_, const unsigned* block_, size_t shared_{declarations}) {{\n"
        f'    return shim::launch(shim::{kind}, "{name}", grid_, block_, shared_, '
        f"[=] {{ {name}({names}); }});\n}}\n"
    )


class Function:
    """A loaded kernel. Unlike :class:`RawKernel` it takes the flag of a cooperative launch."""

    def __init__(self, raw: RawKernel) -> None:
        self._raw = raw
        self.ptr = id(raw)

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Any,
        shared_mem: int = 0,
        stream: Any = None,
        enable_cooperative_groups: bool = False,
    ) -> None:
        self._raw._launch(grid, block, args, shared_mem, stream, enable_cooperative_groups)


class RawKernel:
    """A kernel. Its arguments are checked against the parameters in the source."""

    def __init__(
        self,
        code: str,
        name: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        *,
        enable_cooperative_groups: bool = False,
    ) -> None:
        _check_cooperative(enable_cooperative_groups)
        kernels = load(code, _checked_options(options))
        if name not in kernels:
            raise cuda.CUDADriverError("CUDA_ERROR_NOT_FOUND: named symbol not found")
        self.name = name
        self._kernel = kernels[name]
        self._shared_limit = 48 * 1024

    @property
    def kernel(self) -> Function:
        return Function(self)

    @property
    def shared_size_bytes(self) -> int:
        """Bytes of static shared memory. Kernels with more than 48 KB have only dynamic shared memory."""
        return 0

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self._shared_limit

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        if size > cuda.SHARED_MEMORY:
            raise _invalid_value(
                f"{self.name}: {size} bytes of shared memory, a block has {cuda.SHARED_MEMORY}"
            )
        self._shared_limit = int(size)

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Any,
        *,
        shared_mem: int = 0,
        stream: Any = None,
    ) -> None:
        self._launch(grid, block, args, shared_mem, stream, cooperative=False)

    def _launch(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Any,
        shared_mem: int,
        stream: Any,
        cooperative: bool,
    ) -> None:
        grid, block = _dimensions(self.name, "grid", grid), _dimensions(self.name, "block", block)
        self._check_size(grid, block, shared_mem, cooperative)
        kernel = self._kernel
        if len(args) != len(kernel.parameters):
            raise TypeError(f"{self.name}: got {len(args)} arguments, expected {len(kernel.parameters)}")
        pairs = list(zip(kernel.parameters, args, strict=True))
        values = [parameter.convert(self.name, value) for parameter, value in pairs]
        arrays = [(parameter.name, value) for parameter, value in pairs if isinstance(value, ndarray)]
        guarded = [(name, array._memory.block) for name, array in arrays]

        def run() -> None:
            self._run((ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block), shared_mem, values, guarded)

        recorder = cuda.thread.recording if stream is None else stream.recorder
        if recorder is not None:
            recorder.add(run, [array._array for _, array in arrays])
            return
        cuda.launches[self.name] += 1
        run()

    def _run(self, grid: Any, block: Any, shared_mem: int, values: list[Any], guarded: list[Any]) -> None:
        if self._kernel.launch(grid, block, shared_mem, *values):
            raise cuda.CUDARuntimeError(self._kernel.error().decode())
        for name, memory in guarded:
            memory.check(f"{self.name}: the array of parameter {name}")

    def _check_size(
        self, grid: tuple[int, ...], block: tuple[int, ...], shared_mem: int, cooperative: bool
    ) -> None:
        threads = math.prod(block)
        if threads > 1024:
            raise _invalid_value(f"{self.name}: a block of {threads} threads, at most 1024 are possible")
        if shared_mem > max(self._shared_limit, 48 * 1024):
            raise _invalid_value(
                f"{self.name}: {shared_mem} bytes of shared memory, "
                f"max_dynamic_shared_size_bytes is {self._shared_limit}"
            )
        if self._kernel.kind == "GRID_KERNEL" and not cooperative:
            raise RuntimeError(f"{self.name} is a GRID_KERNEL: it needs a cooperative launch")
        if cooperative:
            each = cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(id(self), threads, shared_mem)
            if math.prod(grid) > each * cuda.MULTIPROCESSORS:
                raise cuda.CUDADriverError(
                    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: too many blocks in cooperative launch "
                    f"({self.name}: {math.prod(grid)} blocks, {each * cuda.MULTIPROCESSORS} fit)"
                )


class RawModule:
    """CUDA source. Only the options that define macros (-D) have an effect here."""

    def __init__(
        self,
        code: str | None = None,
        *,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        enable_cooperative_groups: bool = False,
        name_expressions: None = None,
    ) -> None:
        if code is None or name_expressions is not None:
            raise TypeError("RawModule: only code=, without name_expressions, is simulated")
        _check_cooperative(enable_cooperative_groups)
        self.code = code
        self.options = _checked_options(options)
        self.backend = backend

    def compile(self, log_stream: Any = None) -> None:
        load(self.code, self.options)

    def get_function(self, name: str) -> RawKernel:
        return RawKernel(self.code, name, self.options, self.backend)


def _check_cooperative(enabled: bool) -> None:
    """Refuse to link libcudadevrt, which is part of the CUDA toolkit and not of CuPy from pip."""
    if enabled:
        raise RuntimeError("Relocatable PTX code is requested, but cudadevrt is not found.")


def _checked_options(options: Any) -> tuple[str, ...]:
    if not isinstance(options, tuple) or not all(isinstance(option, str) for option in options):
        raise TypeError(f"options are {options!r}, expected a tuple of strings")
    return options


def _dimensions(kernel: str, what: str, sizes: Any) -> tuple[int, ...]:
    if not isinstance(sizes, tuple) or not 1 <= len(sizes) <= 3:
        raise TypeError(f"{kernel}: {what} is {sizes!r}, expected a tuple of one to three integers")
    sizes = tuple(size.__index__() for size in sizes)
    most = (2**31 - 1, 65535, 65535) if what == "grid" else (1024, 1024, 64)
    if not all(1 <= size <= limit for size, limit in zip(sizes, most, strict=False)):
        raise _invalid_value(f"{kernel}: {what} is {sizes}, each has to be from 1 to {most}")
    return (*sizes, 1, 1)[:3]


def _invalid_value(reason: str) -> cuda.CUDADriverError:
    return cuda.CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: invalid argument ({reason})")
