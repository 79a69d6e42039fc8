"""The errors of librt: one class for each status, below the built-in class that fits it."""

from __future__ import annotations


class Error(Exception):
    """What failed in librt. `status` is the status's name, as in rt.h: "invalid_argument"."""

    status = "internal"


class InvalidArgument(Error, ValueError):
    """A wrong shape, element type, name or option."""

    status = "invalid_argument"


class InvalidModel(Error, ValueError):
    """A damaged or inconsistent file."""

    status = "invalid_model"


class Unsupported(Error):
    """Valid, but not supported by this build, backend or device.

    From a conversion, `nodes` has a dict for each node that cannot be converted: node, op, domain, opset, dtype,
    reason and help.
    """

    status = "unsupported"
    nodes: list[dict] = []


class NotFound(Error, LookupError):
    """No such file, entry or value."""

    status = "not_found"


class OutOfMemory(Error, MemoryError):
    """An allocation failed, or a memory limit would be exceeded."""

    status = "out_of_memory"


class DeviceError(Error, RuntimeError):
    """No such backend or device here, or an error of its driver."""

    status = "device"


class IoError(Error, OSError):
    """Reading or writing a file failed."""

    status = "io"


class InternalError(Error, RuntimeError):
    """A bug in librt."""

    status = "internal"


class Cancelled(Error):
    """The run was stopped by Session.cancel()."""

    status = "cancelled"


class LimitExceeded(Error):
    """The run reached a limit on its work: iterations of loops, time."""

    status = "limit_exceeded"


class DeviceLost(DeviceError):
    """The device stopped working, and its memory is lost: make a new session."""

    status = "device_lost"


# By rt_code of rt.h.
_CLASSES = (
    Error,
    InvalidArgument,
    InvalidModel,
    Unsupported,
    NotFound,
    OutOfMemory,
    DeviceError,
    IoError,
    InternalError,
    Cancelled,
    LimitExceeded,
    DeviceLost,
)


def of_code(code: int, message: str) -> Error:
    """The exception for an rt_code."""
    known = 0 < code < len(_CLASSES)
    return (_CLASSES[code] if known else Error)(message)
