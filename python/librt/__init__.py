"""librt runs and trains one compiled model on CPU, CUDA and Vulkan.

    import librt

    model = librt.convert("resnet50.onnx")          # or librt.load("resnet50.rt")
    session = librt.Session(model, backend="auto")
    scores = session(image=pixels)["scores"]        # NumPy arrays, torch tensors, ... in, librt.Tensor out

Tensors are dense and row-major. Results are `librt.Tensor`, which NumPy, PyTorch and others take without a copy.
Errors are `librt.Error`, with the status of librt in `error.status`.
"""

from ._native import Device, DeviceTensor, Model, Schedule, Session, Tensor, TensorSpec, backends, devices, load
from ._native import __version__
from .conversion import convert, from_torch
from .data import Batches
from .errors import (
    Cancelled,
    DeviceError,
    DeviceLost,
    Error,
    InternalError,
    InvalidArgument,
    InvalidModel,
    IoError,
    LimitExceeded,
    NotFound,
    OutOfMemory,
    Unsupported,
)
from .training import Trainer, TrainingState

__all__ = [
    "Batches",
    "Cancelled",
    "Device",
    "DeviceError",
    "DeviceLost",
    "DeviceTensor",
    "Error",
    "InternalError",
    "InvalidArgument",
    "InvalidModel",
    "IoError",
    "LimitExceeded",
    "Model",
    "NotFound",
    "OutOfMemory",
    "Schedule",
    "Session",
    "Tensor",
    "TensorSpec",
    "Trainer",
    "TrainingState",
    "Unsupported",
    "__version__",
    "backends",
    "convert",
    "devices",
    "from_torch",
    "load",
]
