"""Print the registers and the local memory of a thread of each kernel, as compiled for this GPU.

Local memory that a kernel does not need for arrays is that of registers that are spilled. The last column is
the maximum number of threads of a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from rnnlab.ops.cuda import launch, whole_sequences
from rnnlab.ops.cuda_source import FILES, kernel_parameters, kernel_source


def kernels() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The name, the dtype and the constants of each kernel."""
    compiled_together, limits = kernel_source(FILES), whole_sequences.limits(0)
    for dtype, itemsize in (("float32", 4), ("float64", 8)):
        for name in kernel_parameters():
            if f"({name})(" in compiled_together:
                yield name, dtype, ()
                continue
            for H, rows in product((64, 128), (1, 2, 4)):
                backward = name.endswith("backward")
                layout = whole_sequences.whole_layout_for(rows * limits[0], H, itemsize, *limits, backward)
                if layout is not None:
                    yield name, dtype, whole_sequences.constants_of(layout)


if __name__ == "__main__":
    print(f"{'registers':>9}{'local':>7}{'threads':>9}  kernel")
    for name, dtype, constants in kernels():
        kernel = launch._kernel(name, dtype, constants)
        numbers = f"{kernel.num_regs:9}{kernel.local_size_bytes:7}{kernel.max_threads_per_block:9}"
        print(f"{numbers}  {name} {dtype} {' '.join(constants)}".rstrip(), flush=True)
