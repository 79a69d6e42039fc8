"""What the extension leaves to NumPy: arrays that are not plain memory, lists, and bf16.

The extension calls it for the rare cases; plain arrays do not come here.
"""

from __future__ import annotations

from typing import Any

_NUMPY_NAMES = {
    "f32": "float32",
    "f16": "float16",
    "f64": "float64",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "u16": "uint16",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
    "bool": "bool",
}

# Element types of ml_dtypes that are narrower than librt's, and those that hold their values, as rtconvert has it for
# inputs of a model.
_WIDER = {
    "int2": "int8",
    "int4": "int8",
    "uint2": "uint8",
    "uint4": "uint8",
    "float4_e2m1fn": "float16",
    "float8_e4m3fn": "float16",
    "float8_e4m3fnuz": "float16",
    "float8_e5m2": "float16",
    "float8_e5m2fnuz": "float16",
}


def _numpy_dtype(name: str) -> Any:
    import numpy

    if name != "bf16":
        return numpy.dtype(_NUMPY_NAMES[name])
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError("NumPy has no bf16 of its own; install ml_dtypes, or use DLPack") from None
    return numpy.dtype(ml_dtypes.bfloat16)


def _converted(array: Any, dtype: str, name: str) -> Any:
    """Python's numbers as `dtype`, where that keeps their values (floats are rounded)."""
    wanted = _numpy_dtype(dtype)
    if array.size == 0:
        return array.astype(wanted)
    whole = wanted.kind in "iub"
    if whole and array.dtype.kind == "f" or wanted.kind == "b" and array.dtype.kind != "b":
        raise TypeError(f"{name}: expected {dtype}, found a list of {array.dtype.name}")
    made = array.astype(wanted)
    if whole and not (made == array).all():
        raise OverflowError(f"{name}: a number is outside of the range of {dtype}")
    return made


def to_buffer(value: Any, name: str, dtype: str | None) -> tuple[Any, str | None]:
    """An object with the buffer protocol, and its element type where the protocol cannot say it.

    dtype: what lists and Python's numbers become; arrays keep their element type.
    """
    if hasattr(value, "__cuda_array_interface__"):
        from .errors import Unsupported

        raise Unsupported(
            f"{name}: {type(value).__name__} in the memory of a CUDA device: expected memory of the CPU; copy it "
            "there first"
        )
    import numpy

    if isinstance(value, (bool, int, float, list, tuple)):
        array = _converted(numpy.asarray(value), dtype or "f32", name)
    elif hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
        array = numpy.asarray(value)
    else:
        raise TypeError(
            f"{name}: expected an array (the buffer protocol, __dlpack__ or __array_interface__) or a list of "
            f"numbers, found {type(value).__name__}"
        )
    if array.dtype.name == "bfloat16":
        return numpy.ascontiguousarray(array).view(numpy.uint16), "bf16"
    array = array.astype(_WIDER.get(array.dtype.name, array.dtype), copy=False)
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise TypeError(f"{name}: NumPy's element type {array.dtype} is none of librt")
    if array.ndim > 8:
        raise ValueError(f"{name}: expected at most 8 axes, found {array.ndim}")
    return array.astype(array.dtype.newbyteorder("="), copy=False), None


def synchronize(stream: int) -> None:
    """Waits for the CUDA stream of a __cuda_array_interface__: what writes the array is complete afterwards.

    1 and 2 are the legacy and the thread's default stream, as in CUDA's own functions.
    """
    import ctypes

    from .errors import DeviceError

    if stream == 0:
        raise ValueError("__cuda_array_interface__: the stream 0 is not allowed; expected 1, 2, a handle, or None")
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceError(f"__cuda_array_interface__ with a stream needs NVIDIA's driver: {error}") from None
    code = driver.cuStreamSynchronize(ctypes.c_void_p(stream))
    if code != 0:
        raise DeviceError(f"__cuda_array_interface__: waiting for its stream failed with CUDA's error {code}")


def to_numpy(tensor: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    """A librt.Tensor as a NumPy array: of the same memory unless the element type or `copy` needs another."""
    import numpy

    if tensor.dtype == "bf16":
        array = tensor._bits().view(_numpy_dtype("bf16"))
    else:
        array = numpy.asarray(memoryview(tensor))
    if dtype is not None and array.dtype != numpy.dtype(dtype):
        if copy is False:
            raise ValueError(f"{tensor.dtype} cannot become {numpy.dtype(dtype)} without a copy")
        return array.astype(dtype)
    return array.copy() if copy else array
