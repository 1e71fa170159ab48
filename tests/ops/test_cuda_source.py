"""The CUDA source compiles for GPUs: by NVRTC, NVIDIA's compiler, which needs neither a GPU nor a driver."""

import ast
import ctypes
import importlib
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import rnnlab.ops
from rnnlab.ops.cuda_source import FILES, SEQUENCES, kernel_parameters, kernel_source

from ..simulated_cupy.kernels import parse

FOLDER = Path(rnnlab.ops.__file__).parent
SOURCE = kernel_source()
KERNEL = re.compile(r"^(?:BLOCK_|GRID_)?KERNEL\((\w+)\)", re.MULTILINE)
OF_SEQUENCES = KERNEL.findall(kernel_source(SEQUENCES))
KERNELS = KERNEL.findall(SOURCE) + OF_SEQUENCES
# NVRTC itself says so of sm_70, which it still compiles for.
OLD = "nvrtc: warning: Architectures prior to "


class CompileError(Exception):
    """NVRTC refused a source, or warned of something in it."""


@pytest.fixture(scope="module")
def nvrtc():
    """NVRTC's library; its built-ins are loaded first, since it looks for them only where the system does."""
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        pytest.skip('nvidia-cuda-nvrtc-cu12 is not installed: pip install -e ".[test]"')
    folder = Path(spec.submodule_search_locations[0], "lib")
    for builtins in folder.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(builtins))
    return ctypes.CDLL(str(folder / "libnvrtc.so.12"))


def compiled(nvrtc, source, *options):
    """The PTX of a source. Raise CompileError with NVRTC's log if it has anything to say."""
    program, array = ctypes.c_void_p(), (ctypes.c_char_p * len(options))(*map(str.encode, options))
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"common.cu", 0, None, None))
    try:
        status = nvrtc.nvrtcCompileProgram(program, len(array), array)
        log = text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        log = "\n".join(line for line in log.splitlines() if not line.startswith(OLD))
        if status or log:
            raise CompileError(log or f"NVRTC's status {status}")
        return text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    finally:
        check(nvrtc.nvrtcDestroyProgram(ctypes.byref(program)))


def text(program, get_size, get):
    size = ctypes.c_size_t()
    check(get_size(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    check(get(program, buffer))
    return buffer.value.decode()


def check(status):
    if status:
        raise RuntimeError(f"NVRTC's status {status}")


def launched():
    """The kernels that the primitives launch: the first argument of a function whose first is ``name``.

    ``launch`` is one, and so are the functions that hand their ``name`` on to it.
    """
    trees = [ast.parse(path.read_text("utf-8")) for path in sorted(FOLDER.glob("cuda/*.py"))]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    launchers = {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.args.args and node.args.args[0].arg == "name"
    }
    first = [
        node.args[0]
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in launchers
    ]
    others = {ast.unparse(argument) for argument in first if not isinstance(argument, ast.Constant)}
    assert others == {"name"}, "a kernel's name that cannot be read from the source"
    return {argument.value for argument in first if isinstance(argument, ast.Constant)}


@pytest.mark.slow
@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("architecture", [70, 80, 90])
def test_kernels_compile(nvrtc, architecture, real):
    options = f"--gpu-architecture=compute_{architecture}", f"-DREAL={real}", "-std=c++17"
    ptx = compiled(nvrtc, SOURCE, *options)
    assert sorted(re.findall(r"\.entry (\w+)\(", ptx)) == sorted(set(KERNELS) - set(OF_SEQUENCES))


@pytest.mark.slow
@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("architecture", [70, 80, 90])
def test_blocks_of_512_threads_have_enough_registers(nvrtc, architecture, real):
    """A multiprocessor has 65,536 registers: with more than 128 for a thread, their launches would fail."""
    options = f"--gpu-architecture=sm_{architecture}", f"-DREAL={real}", "-std=c++17", "-ftz=true"
    with pytest.raises(CompileError) as caught:  # that there is a log
        compiled(nvrtc, SOURCE, *options, "--ptxas-options=-v")
    registers = [int(number) for number in re.findall(r"Used (\d+) registers", str(caught.value))]
    assert len(registers) == len(set(KERNELS) - set(OF_SEQUENCES))
    assert max(registers) <= 128


@pytest.mark.slow
@pytest.mark.parametrize("quads", [4, 8])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_kernels_of_whole_sequences_spill_no_registers(nvrtc, rows, quads, simulated):
    whole = importlib.import_module("rnnlab.ops.cuda.whole_sequences")
    held = min(whole.HELD[4][rows], 4 * quads)
    constants = f"-DBLOCK_ROWS={rows}", f"-DQUADS={quads}", f"-DHELD={held}", "-DREAL=float"
    options = "--gpu-architecture=sm_90", "-std=c++17", "-ftz=true", "--ptxas-options=-v"
    with pytest.raises(CompileError) as caught:  # that there is a log
        compiled(nvrtc, kernel_source(SEQUENCES), *constants, *options)
    assert re.findall(r"(\d+) bytes spill stores", str(caught.value)) == ["0", "0"]


@pytest.mark.slow
@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("architecture", [70, 80, 90])
def test_kernels_of_whole_sequences_compile(nvrtc, architecture, real):
    options = f"--gpu-architecture=compute_{architecture}", f"-DREAL={real}", "-std=c++17"
    ptx = compiled(nvrtc, kernel_source(SEQUENCES), *options, "-DBLOCK_ROWS=2", "-DQUADS=4", "-DHELD=8")
    assert sorted(re.findall(r"\.entry (\w+)\(", ptx)) == sorted(OF_SEQUENCES)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("x[0] = absent;", 'identifier "absent" is undefined'),
        ("int unused; x[0] = 0;", "declared but never referenced"),
    ],
)
def test_errors_and_warnings_are_seen(nvrtc, broken, said):
    source = 'extern "C" __global__ void kernel(REAL* x) {' + broken + "}"
    with pytest.raises(CompileError, match=said):
        compiled(nvrtc, source, "-DREAL=float")


def test_each_kernel_has_a_name_of_its_own():
    assert KERNELS
    assert len(set(KERNELS)) == len(KERNELS)


@pytest.mark.parametrize("real", ["float", "double"])
def test_arguments_are_converted_to_the_types_that_kernels_declare(real):
    """As another reader of the source finds them: that of the stand-in for CuPy."""
    kinds = {"Size": np.int64, "Seed": np.uint64, "unsigned": np.uint32, "double": np.float64}
    kinds["REAL"] = {"float": np.float32, "double": np.float64}[real]
    source = SOURCE + kernel_source(SEQUENCES)
    found, declared = kernel_parameters(), parse(source, (f"-DREAL={real}",))
    assert set(found) == set(declared) == set(KERNELS)
    for name, (_, parameters) in declared.items():
        assert ["*" if each.pointer else each.dtype for each in parameters] == [
            "*" if kind == "*" else np.dtype(kinds[kind]) for kind in found[name]
        ], name


def test_every_file_is_compiled():
    assert sorted({*FILES, *SEQUENCES}) == sorted(path.name for path in FOLDER.glob("cuda/kernels/*.cu"))
    assert FILES[0] == "common.cu"


def test_what_is_launched_is_what_there_is():
    assert launched() == set(KERNELS)
