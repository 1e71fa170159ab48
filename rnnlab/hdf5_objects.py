"""Datasets, groups, attributes and strings of untrusted HDF5 files.

HDF5 follows links to other files, and reads datasets whose values are in other files. It allocates the memory
that a file declares, and may loop forever on a damaged string of variable length. :func:`find_object` returns
only objects of the file itself, whose size is plausible for the file. :func:`read_strings` uses HDF5 for
strings of fixed length, and reads other strings itself from the heap of the file.
"""

from __future__ import annotations

import errno
import math
import os
import struct
import zlib
from typing import Any, BinaryIO

import h5py
import numpy as np

from rnnlab.errors import InputError
from rnnlab.limits import EXPANSION, FREE_BYTES, STRING_BYTES
from rnnlab.reading import PathLike, check_regular, mismatch

# The exceptions of h5py for damaged files; HDF5 does not document them.
_ERRORS = (KeyError, OSError, RuntimeError, TypeError, ValueError)

# Reasons of the operating system for which an intact file cannot be read: permission is denied, it is locked,
# too many files are open, memory is short, or a disk or a network does not answer.
_NOT_READABLE = [
    *(errno.EACCES, errno.EPERM, errno.EAGAIN, errno.EDEADLK, errno.ENOLCK, errno.EMFILE, errno.ENFILE),
    *(errno.ENOMEM, errno.EIO, errno.ETIMEDOUT, *([errno.ESTALE] if hasattr(errno, "ESTALE") else [])),
]

# A dataset's entry for a string of variable length: its location, an item of a collection of the heap.
_REFERENCE = np.dtype([("length", "<u4"), ("address", "<u8"), ("number", "<u4")])
_COLLECTION = struct.Struct("<4sB3xQ")  # signature, version, size with this header
_ITEM = struct.Struct("<HHxxxxQ")  # number, count of references, size; padded to 8 bytes
_DEFLATE, _SHUFFLE = h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE


def open_hdf5(path: PathLike) -> h5py.File:
    """Open ``path`` for reading.

    Raises
    ------
    FileNotFoundError, OSError
        If there is no such file, or it is not a regular file, not HDF5, or truncated.
    """
    check_regular(path, "an HDF5 file")
    path = os.fspath(path)
    try:
        return h5py.File(path, "r")
    except OSError as error:
        check_readable(path, error)
        found = describe_hdf5_error(error, path)
        raise OSError(f"{path}: found {found}, expected a complete HDF5 file") from error


def check_readable(path: PathLike, error: Exception) -> None:
    """Raise an OSError if ``path`` cannot be read now, so that ``error`` of h5py does not mean damage."""
    path = os.fspath(path)
    if "already open for write" in str(error):
        raise OSError(
            f"{path}: another program has it open for writing, or was killed meanwhile: close that program, "
            f"or run h5clear --status {path}"
        ) from error
    if isinstance(error, OSError) and error.errno in _NOT_READABLE:
        locked = "another program has locked it, expected a file that can be read"
        said = locked if "unable to lock file" in str(error) else os.strerror(error.errno)
        raise OSError(error.errno, said, path) from error


def describe_hdf5_error(error: Exception, path: PathLike | None = None) -> str:
    """A description of the content that made HDF5 raise an error; ``path`` is the file that was opened."""
    text = str(error)
    if path is not None and os.path.exists(path) and not os.path.getsize(path):
        return "an empty file"
    if "truncated file" in text:
        return "a file that is cut short"
    if "file signature not found" in text:
        return "a file of another kind"
    return f"content that HDF5 cannot read ({text})"


def find_object(group: h5py.Group, name: str) -> h5py.Dataset | h5py.Group | None:
    """The dataset or the group of a name, such as ``features`` or ``pca/components``; None if there is none.

    Raises
    ------
    OSError
        If HDF5 cannot read it.
    ValueError
        If the name is a soft or an external link, or the object is neither a dataset nor a group; if the
        values of a dataset are in other files, or of a type that NumPy lacks; or if a dataset declares more
        bytes than the file can hold (see :mod:`rnnlab.limits`). The message names file and field.
    """
    found: Any = group
    for step in name.split("/"):
        place = _place(group, name)
        if not isinstance(found, h5py.Group):
            return None
        try:
            link = found.get(step, getlink=True)
            if link is None:
                return None
            if isinstance(link, h5py.HardLink):
                found = found[step]
        except _ERRORS as error:
            raise _unreadable(place, error) from error
        if not isinstance(link, h5py.HardLink):
            kind = "an external link" if isinstance(link, h5py.ExternalLink) else "a soft link"
            target = f"{link.filename}: {link.path}" if isinstance(link, h5py.ExternalLink) else link.path
            raise mismatch(place, f"{kind} to {target}", "an object of this file")
    if isinstance(found, h5py.Dataset):
        _check_stored(found)
    elif not isinstance(found, h5py.Group):
        raise mismatch(place, "a named type", "a dataset or a group")
    return found


def names_in(group: h5py.Group) -> list[str]:
    """The names of the objects of a group.

    Raises
    ------
    OSError
        If HDF5 cannot read them.
    """
    try:
        return [str(name) for name in group]  # h5py returns bytes if a name is not UTF-8
    except _ERRORS as error:
        raise _unreadable(_place(group), error) from error


def read_attribute(owner: h5py.Group | h5py.Dataset, name: str) -> Any:
    """The value of an attribute; None if there is none.

    Raises
    ------
    OSError
        If HDF5 cannot read it.
    ValueError
        If it is larger than the limit, or a string of variable length, which HDF5 cannot read safely.
    """
    place = f"{_place(owner)}: attribute {name}"
    try:
        if name not in owner.attrs:
            return None
        stored = owner.attrs.get_id(name)
        dtype, shape = stored.dtype, stored.shape or ()
        if dtype.kind != "O" and math.prod(shape) * dtype.itemsize <= FREE_BYTES:
            return owner.attrs[name]
    except _ERRORS as error:
        raise _unreadable(place, error) from error
    if dtype.kind != "O":
        raise mismatch(place, f"{dtype} {shape}", f"at most {FREE_BYTES:,} bytes")
    expected = "numbers, or a string of fixed length, as numpy.bytes_ makes"
    raise mismatch(place, "a string of variable length or a reference", expected)


def read_strings(dataset: h5py.Dataset) -> tuple[str, ...]:
    """A one-dimensional dataset of strings.

    Raises
    ------
    OSError
        If HDF5 cannot read it.
    ValueError
        If it does not hold strings, or they are damaged, not UTF-8 or longer than the limit. The message
        names file, field and row.
    """
    kind = h5py.check_string_dtype(dataset.dtype)
    if kind is None or dataset.ndim != 1:
        raise mismatch(where(dataset), f"{dataset.dtype} {dataset.shape}", "a list of strings")
    raw = _heap_strings(dataset) if kind.length is None else read_values(dataset).tolist()
    try:
        return tuple([value.decode() for value in raw])
    except UnicodeDecodeError as error:
        row = raw.index(error.object)
        raise mismatch(f"{where(dataset)}: row {row}", f"{error.object[:40]!r}", "text in UTF-8") from None


def read_values(dataset: h5py.Dataset, rows: Any = ()) -> Any:
    """The values of a dataset, or of some of its rows.

    Raises
    ------
    OSError
        If HDF5 cannot read a part of it.
    """
    try:
        return dataset[rows]
    except _ERRORS as error:
        raise OSError(
            f"{where(dataset)}: found a part that cannot be read ({error}), expected a complete dataset"
        ) from error


def where(dataset: h5py.Dataset) -> str:
    """File and field of ``dataset``, for messages."""
    return _place(dataset)


def _place(owner: h5py.Group | h5py.Dataset, name: str = "") -> str:
    path = f"{owner.name or ''}/{name}".strip("/")
    return f"{owner.file.filename}: {path}" if path else owner.file.filename


def _unreadable(place: str, error: Exception) -> OSError:
    return OSError(f"{place}: found {describe_hdf5_error(error)}, expected a complete HDF5 file")


def _check_stored(dataset: h5py.Dataset) -> None:
    """Check that the values of a dataset are in its own file, and that the declared size is plausible."""
    place = where(dataset)
    try:
        properties = dataset.id.get_create_plist()
        elsewhere = "external storage" if properties.get_external_count() else ""
        if properties.get_layout() == h5py.h5d.VIRTUAL:
            elsewhere = "a virtual dataset"
        if not elsewhere:
            shape, dtype, chunks = dataset.shape, dataset.dtype, dataset.chunks
            stored, size = dataset.id.get_storage_size(), os.stat(dataset.file.filename).st_size
            expansion = EXPANSION if properties.get_nfilters() else 1
    except TypeError as error:  # h5py's, for types that NumPy lacks
        raise mismatch(place, f"a type that cannot be read ({error})", "numbers or strings") from None
    except _ERRORS as error:
        raise _unreadable(place, error) from error
    if elsewhere:
        raise mismatch(place, f"values in other files ({elsewhere})", "values in this file")
    if shape is None:
        raise mismatch(place, "an empty dataspace", "a dataset of values")
    if stored > size:
        raise mismatch(place, f"{stored:,} stored bytes", f"at most the {size:,} of the file")
    item = _REFERENCE.itemsize if dtype.kind == "O" else dtype.itemsize
    # A chunk is read as a whole, even if it is larger than the dataset.
    declared = item * max(math.prod(shape), math.prod(chunks or ()))
    if declared > max(FREE_BYTES, expansion * stored):
        each = f", at most {EXPANSION} for each compressed byte" if expansion > 1 else ""
        raise mismatch(
            place, f"{dtype} {shape} of {declared:,} bytes", f"what {stored:,} stored bytes can hold{each}"
        )


def _heap_strings(dataset: h5py.Dataset) -> list[bytes]:
    """The strings of variable length of a dataset, read from the heap of the file without HDF5."""
    found, place = [], where(dataset)
    with open(dataset.file.filename, "rb") as file:
        heap = _Heap(file, dataset.file.userblock_size)
        for row, (length, address, number) in enumerate(_references(dataset, file).tolist()):
            try:
                found.append(heap.string(length, address, number))
            except ValueError as error:
                raise InputError(f"{place}: row {row}: {error}") from None
    return found


def _references(dataset: h5py.Dataset, file: BinaryIO) -> np.ndarray:
    """The locations of a dataset's strings in the heap: (length, address, number) for each."""
    place, count, width = where(dataset), len(dataset), _REFERENCE.itemsize
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(k)[0] for k in range(properties.get_nfilters())]
    is_usual = dataset.file.id.get_create_plist().get_sizes() == (8, 8)  # bytes of addresses and of sizes
    is_usual = is_usual and properties.get_layout() in (h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED)
    if not (is_usual and {*filters} <= {_DEFLATE, _SHUFFLE}):
        found = "strings of variable length in an unusual layout"
        raise mismatch(place, found, "strings of fixed length, as numpy.array(names, 'S') has")
    references = np.zeros(count, _REFERENCE)
    try:
        if dataset.chunks is None:
            offset = dataset.id.get_offset()
            if offset is not None and count:
                file.seek(offset)
                references[:] = np.frombuffer(file.read(width * count), _REFERENCE)
            return references
        (rows,) = dataset.chunks
        for start in range(0, count, rows):
            if dataset.id.get_chunk_info_by_coord((start,)).byte_offset is None:  # never written
                continue
            skipped, raw = dataset.id.read_direct_chunk((start,))
            for bit, each in reversed(list(enumerate(filters))):
                if skipped >> bit & 1:
                    continue
                if each == _DEFLATE:
                    raw = zlib.decompressobj().decompress(raw, width * rows)
                else:
                    raw = np.frombuffer(raw, np.uint8).reshape(width, -1).T.tobytes()
            part = np.frombuffer(raw, _REFERENCE, rows)[: count - start]
            references[start : start + len(part)] = part
    except (*_ERRORS, zlib.error) as error:
        raise _unreadable(place, error) from error
    return references


class _Heap:
    """The global heap of a file: collections of numbered items.

    HDF5 does not check the sizes within a collection, so a changed byte can make it loop forever.
    """

    def __init__(self, file: BinaryIO, base: int) -> None:
        self._file, self._base = file, base  # all addresses are relative to the base
        self._left = self._size = os.fstat(file.fileno()).st_size  # bytes left for collections
        self._collections: dict[int, dict[int, bytes]] = {0: {0: b""}}  # no address: never written

    def string(self, length: int, address: int, number: int) -> bytes:
        """A string of ``length`` bytes, which is an item of the collection at ``address``."""
        if address not in self._collections:
            self._collections[address] = self._collection(address)
        item = self._collections[address].get(number, b"")
        if length > min(len(item), STRING_BYTES):
            expected = f"at most {STRING_BYTES:,}, and the {len(item):,} that the heap of the file has for it"
            raise mismatch("a string", f"{length:,} bytes", expected)
        return item[:length]

    def _collection(self, address: int) -> dict[int, bytes]:
        self._file.seek(min(self._base + address, self._size))
        header = self._file.read(_COLLECTION.size).ljust(_COLLECTION.size, b"\0")
        signature, version, size = _COLLECTION.unpack(header)
        if (signature, version) != (b"GCOL", 1) or size > self._left:
            place = f"the heap of the file at {address:,}"
            raise mismatch(place, f"{header!r}", "a collection within the file")
        self._left -= size
        body, items, at = self._file.read(max(0, size - _COLLECTION.size)), {}, 0
        while at + _ITEM.size <= len(body):
            number, _, length = _ITEM.unpack_from(body, at)
            if number == 0:  # the free space at the end
                break
            at += _ITEM.size
            items[number] = body[at : at + length]
            at += -(-length // 8) * 8
        return items
