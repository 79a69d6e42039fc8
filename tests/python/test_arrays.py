"""Arrays in and out: element types, strides, byte order, zero sizes, who owns memory; PyTorch where it is."""

import array
import gc
import sys
import unittest

import numpy
from support import (
    BFLOAT16, BOOL, DOUBLE, FLOAT, FLOAT16, INT32, INT64, INT8, UINT8, digits, identity_like, main, pictures,
    scores
)

import librt

try:
    import torch
except ImportError:
    torch = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

TYPES = {
    "f32": (FLOAT, numpy.float32),
    "f16": (FLOAT16, numpy.float16),
    "f64": (DOUBLE, numpy.float64),
    "u8": (UINT8, numpy.uint8),
    "i8": (INT8, numpy.int8),
    "i32": (INT32, numpy.int32),
    "i64": (INT64, numpy.int64),
    "bool": (BOOL, numpy.bool_),
}


def session_of(elem_type, dims=("n",)):
    return librt.Session(librt.convert(identity_like(elem_type, dims)), backend="cpu")


class ElementTypes(unittest.TestCase):
    def test_each_goes_in_and_out(self):
        for name, (elem_type, dtype) in TYPES.items():
            with self.subTest(name):
                session = session_of(elem_type)
                for size in (0, 1, 3, 100_000):
                    x = (numpy.arange(size) % 2).astype(dtype)
                    y = session(x=x)["y"]
                    self.assertEqual((y.dtype, y.shape, y.nbytes), (name, (size,), x.nbytes))
                    numpy.testing.assert_array_equal(numpy.asarray(y), x)
                    self.assertEqual(numpy.asarray(y).dtype, dtype)

    def test_another_type_is_refused(self):
        session = session_of(FLOAT)
        for dtype in (numpy.float64, numpy.float16, numpy.int64, numpy.bool_):
            with self.assertRaisesRegex(librt.InvalidArgument, r"'x': expected f32\[n\], found an array of"):
                session(x=numpy.ones(3, dtype))
        for wrong in (numpy.ones(3, complex), numpy.array(["a"]), numpy.array([object()]), numpy.ones(2, "M8[s]")):
            with self.assertRaisesRegex(TypeError, "x: NumPy's element type .* is none of librt"):
                session(x=wrong)

    def test_lists_and_numbers_take_the_declared_type(self):
        session = session_of(INT32)
        self.assertEqual(session(x=[1, -2])["y"].tolist(), [1, -2])
        self.assertEqual(session(x=[])["y"].shape, (0,))
        with self.assertRaisesRegex(TypeError, "x: expected i32, found a list of float64"):
            session(x=[1.5])
        with self.assertRaisesRegex(OverflowError, "outside of the range of i32"):
            session(x=[2**40])
        with self.assertRaisesRegex(TypeError, "x: expected an array .* found str"):
            session(x="1")
        with self.assertRaisesRegex(TypeError, "found NoneType"):
            session(x=None)

    def test_other_exporters(self):
        session = session_of(FLOAT)
        self.assertEqual(session(x=array.array("f", [1, 2]))["y"].tolist(), [1, 2])
        self.assertEqual(session(x=memoryview(array.array("f", [3])))["y"].tolist(), [3])

        class Interface:
            def __init__(self):
                self.array = numpy.float32([4, 5])
                self.__array_interface__ = self.array.__array_interface__

        self.assertEqual(session(x=Interface())["y"].tolist(), [4, 5])
        first = session(x=[6, 7])["y"]
        self.assertEqual(session(x=first)["y"].tolist(), [6, 7])

    def test_memory_of_a_device_is_refused(self):
        session = session_of(FLOAT)

        class Numba:
            __cuda_array_interface__ = {"shape": (1,), "typestr": "<f4", "data": (16, False), "version": 3}

        class Cupy(Numba):
            def __dlpack_device__(self):
                return (2, 0)

        for kind in (Numba, Cupy):
            with self.assertRaisesRegex(librt.Unsupported, "'x': (Numba|Cupy) in the memory of a CUDA device: expected memory of the CPU"):
                session(x=kind())

    def test_what_is_no_dlpack_device(self):
        class Exporter:
            def __dlpack_device__(self):
                return device

        for device in (None, "cpu", (), (1,), ("x", 0), 1):
            with self.assertRaisesRegex(TypeError, "Exporter: expected .device type, device. of its __dlpack_device__"):
                librt.Tensor(Exporter())

    def test_bfloat16(self):
        if ml_dtypes is None:
            self.skipTest("ml_dtypes is not installed")
        session = session_of(BFLOAT16)
        x = numpy.array([1.5, -2, numpy.inf], ml_dtypes.bfloat16)
        y = session(x=x)["y"]
        self.assertEqual(y.dtype, "bf16")
        self.assertEqual(numpy.asarray(y).dtype, ml_dtypes.bfloat16)
        self.assertEqual(y.numpy().astype("f4").tolist(), [1.5, -2, numpy.inf])
        self.assertEqual(numpy.asarray(y, numpy.float32).tolist(), [1.5, -2, numpy.inf])
        self.assertEqual(numpy.asarray(session(x=y)["y"]).astype("f4").tolist(), [1.5, -2, numpy.inf])

    def test_types_narrower_than_librts(self):
        if ml_dtypes is None:
            self.skipTest("ml_dtypes is not installed")
        for narrow, wider in (("int4", "i8"), ("uint4", "u8"), ("float8_e4m3fn", "f16"), ("float8_e5m2", "f16")):
            numbers = [1, 2, 7] if wider == "u8" else [1, -2, 4]
            tensor = librt.Tensor(numpy.array(numbers, getattr(ml_dtypes, narrow)))
            self.assertEqual(tensor.dtype, wider)
            self.assertEqual(numpy.asarray(tensor).tolist(), numbers)


class Layouts(unittest.TestCase):
    def test_strides(self):
        session = session_of(INT64, ("m", "n"))
        base = numpy.arange(60, dtype=numpy.int64).reshape(6, 10)
        views = {
            "transposed": base.T, "columns": base[:, ::3], "backwards": base[::-1, ::-1], "row": base[:1],
            "broadcast": numpy.broadcast_to(base[0], (4, 10)), "empty": base[:0], "fortran": numpy.asfortranarray(base),
            "big-endian": base.astype(">i8"), "read-only": base.copy(),
        }
        views["read-only"].flags.writeable = False
        for name, view in views.items():
            with self.subTest(name):
                numpy.testing.assert_array_equal(numpy.asarray(session(x=view)["y"]), view.T)

    def test_odd_addresses(self):
        session = session_of(FLOAT)
        for offset in (0, 1, 4, 60):
            raw = numpy.zeros(offset + 4 * 50_000, numpy.uint8)
            x = raw[offset:].view(numpy.float32)  # 200 KB: read in place where it is aligned
            x[:] = numpy.arange(50_000)
            numpy.testing.assert_array_equal(numpy.asarray(session(x=x)["y"]), x)

    def test_scalars(self):
        session = session_of(FLOAT, ())
        for x in (numpy.float32(2), numpy.array(2, numpy.float32), 2.0, 2):
            y = session(x=x)["y"]
            self.assertEqual((y.shape, y.item(), float(y)), ((), 2.0, 2.0))

    def test_nine_axes(self):
        with self.assertRaisesRegex(ValueError, "at most 8 axes, found 9"):
            session_of(FLOAT)(x=numpy.ones((1,) * 9, numpy.float32))


class Ownership(unittest.TestCase):
    def test_results_outlive_their_session(self):
        session = session_of(FLOAT)
        for size in (5, 100_000):  # copied, and written in place
            x = numpy.arange(size, dtype=numpy.float32)
            first = session(x=x)["y"]
            view, capsule = numpy.asarray(first), numpy.from_dlpack(first)
            second = session(x=x + 1)["y"]
            self.assertTrue(numpy.shares_memory(view, capsule))
            self.assertFalse(numpy.shares_memory(view, numpy.asarray(second)))
            del first
            gc.collect()
            numpy.testing.assert_array_equal(view, x)
        del session
        gc.collect()
        numpy.testing.assert_array_equal(capsule, x)

    def test_inputs_are_released(self):
        session = session_of(FLOAT)
        x = bytearray(4 * 100_000)
        session(x=memoryview(x).cast("f"))
        x.append(0)  # refused by Python while anything holds the buffer

    def test_dlpack(self):
        tensor = librt.Tensor([1, 2, 3], "i16")
        for options, kind in (({}, "dltensor"), ({"max_version": (0, 8)}, "dltensor"), ({"stream": None}, "dltensor"),
                              ({"max_version": (1, 0)}, "dltensor_versioned"), ({"dl_device": (1, 0)}, "dltensor"),
                              ({"max_version": (2, 1), "copy": True}, "dltensor_versioned")):
            self.assertIn(f'"{kind}"', repr(tensor.__dlpack__(**options)))
        with self.assertRaises(BufferError):
            tensor.__dlpack__(dl_device=(2, 0))  # a CUDA device
        for wrong in ({"colour": 1}, {"max_version": "new"}):
            with self.assertRaises(TypeError):
                tensor.__dlpack__(**wrong)

        class Old:
            """The protocol before version 1: no max_version."""

            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self, stream=None):
                return tensor.__dlpack__()

        class Without(Old):
            def __dlpack__(self, **options):
                return "no capsule"

        class Fails(Old):
            def __dlpack__(self, **options):
                raise BufferError("not exported")

        self.assertEqual(librt.Tensor(Old()).tolist(), [1, 2, 3])
        with self.assertRaisesRegex(librt.InvalidArgument, "Without returned no DLPack capsule"):
            librt.Tensor(Without())
        with self.assertRaisesRegex(BufferError, "not exported"):
            librt.Tensor(Fails())

    def test_dlpack_in_both_forms(self):
        class Exporter:
            """An array that is seen by DLPack only."""

            def __init__(self, array, versioned):
                self.array, self.versioned = array, versioned

            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self, max_version=None):
                self.capsule = self.array.__dlpack__(max_version=max_version if self.versioned else None)
                return self.capsule

        base = numpy.arange(24, dtype=numpy.int16).reshape(4, 6)
        fixed = base.copy()
        fixed.flags.writeable = False
        for versioned, kind in ((True, "used_dltensor_versioned"), (False, "used_dltensor")):
            for view in (base, base.T, base[::-1, ::2], base[:0], fixed if versioned else base):
                references = sys.getrefcount(view)
                exporter = Exporter(view, versioned)
                numpy.testing.assert_array_equal(librt.Tensor(exporter).numpy(), view)
                self.assertIn(f'"{kind}"', repr(exporter.capsule))
                with self.assertRaisesRegex(librt.InvalidArgument, "Exporter returned no DLPack capsule"):
                    Exporter.__dlpack__, kept = lambda self, max_version=None: self.capsule, Exporter.__dlpack__
                    try:
                        librt.Tensor(exporter)  # a capsule that was used
                    finally:
                        Exporter.__dlpack__ = kept
                del exporter
                self.assertEqual(sys.getrefcount(view), references)
        with self.assertRaisesRegex(librt.Unsupported, "Exporter: DLPack: expected an element type of librt"):
            librt.Tensor(Exporter(numpy.ones(2, complex), True))

    def test_capsules_that_nobody_takes(self):
        tensor = librt.Tensor([1, 2, 3])
        references = sys.getrefcount(tensor)
        for options in ({}, {"max_version": (1, 0)}):
            capsule = tensor.__dlpack__(**options)
            self.assertEqual(sys.getrefcount(tensor), references + 1)
            del capsule
            self.assertEqual(sys.getrefcount(tensor), references)

    def test_tensor(self):
        tensor = librt.Tensor([[1, 2], [3, 4]], "i32")
        self.assertEqual((tensor.shape, tensor.ndim, tensor.size, len(tensor)), ((2, 2), 2, 4, 2))
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))
        self.assertFalse(numpy.shares_memory(numpy.from_dlpack(tensor, copy=True), tensor.numpy()))
        numpy.asarray(tensor)[0, 0] = 7
        self.assertEqual(tensor.tolist(), [[7, 2], [3, 4]])
        self.assertEqual(repr(tensor), "librt.Tensor(i32[2,2])")
        with self.assertRaises(ValueError):
            numpy.asarray(tensor, numpy.float64, copy=False)
        with self.assertRaisesRegex(librt.InvalidArgument, "dtype: expected one of f32, .*, found 'f33'"):
            librt.Tensor(1, "f33")


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Torch(unittest.TestCase):
    def test_in_and_out(self):
        for dtype, elem_type in ((torch.float32, FLOAT), (torch.bfloat16, BFLOAT16), (torch.int64, INT64),
                                 (torch.bool, BOOL), (torch.float16, FLOAT16)):
            session = session_of(elem_type, ("m", "n"))
            x = (torch.arange(12).reshape(3, 4) % 5).to(dtype)
            for view in (x, x.T, x[:, ::2], x[:0]):
                result = session(x=view)["y"]
                y = torch.from_dlpack(result)
                self.assertEqual(y.dtype, dtype)
                self.assertTrue(torch.equal(y, view.T))
        self.assertEqual(torch.from_dlpack(librt.Tensor([1.0])).tolist(), [1.0])

    def test_no_copy(self):
        result = digits()(pictures(4))["fc3_1"]
        tensor = torch.from_dlpack(result)
        tensor.zero_()
        self.assertEqual(numpy.abs(scores({"y": result})).max(), 0)

    def test_views_with_a_sign(self):
        view = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
        self.assertTrue(view.is_neg())
        self.assertEqual(session_of(FLOAT)(x=view)["y"].tolist(), [-2, 4])

    def test_more_elements_than_can_be(self):
        with self.assertRaisesRegex(librt.InvalidArgument, "fits? in memory"):  # says librt, or the reader of DLPack
            session_of(FLOAT)(x=torch.zeros(1).expand(2**62))

    def test_a_tensor_with_gradients_is_refused(self):
        with self.assertRaisesRegex((BufferError, RuntimeError), "require"):
            session_of(FLOAT)(x=torch.ones(3, requires_grad=True))


if __name__ == "__main__":
    main()
