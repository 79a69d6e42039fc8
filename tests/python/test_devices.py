"""test_devices.py BACKEND: sessions and trainings on a device, from Python: arrays in and out, memory, forks.

On the emulated CUDA device (cuda_emu) the extension is the same as on a GPU, and arrays go to the device's memory and back.
"""

import os
import sys
import unittest
import unittest.mock

import numpy
from support import DIGITS, FLOAT, INT64, digits, identity_like, main, mlp, onnx, pictures, scores, scratch

import librt

BACKEND = sys.argv.pop(1) if len(sys.argv) > 1 else "cpu"
IS_CUDA = BACKEND.startswith("cuda")  # also the emulated device


def on_device(model=DIGITS, **options):
    return librt.Session(model, backend=BACKEND, **options)


def identity_session(dims):
    """y = transposed x."""
    return on_device(librt.convert(identity_like(FLOAT, dims)))


class Device(unittest.TestCase):
    def test_results(self):
        session = on_device(strict=True)
        self.assertEqual((session.device.backend, session.fallback_count), (BACKEND, 0))
        for count in (1, 3, 64, 3):  # in the exchange memory, and from the caller's
            x = pictures(count, seed=count)
            numpy.testing.assert_allclose(scores(session(x)), scores(digits()(x)), rtol=1e-3, atol=1e-4)
        views = pictures(8)[::-2], numpy.asfortranarray(pictures(3))
        for view in views:
            numpy.testing.assert_allclose(scores(session(view)), scores(digits()(view)), rtol=1e-3, atol=1e-4)

    def test_results_stay(self):
        session = on_device()
        first, kept = session(pictures(64)), session(pictures(64))["fc3_1"]
        session(pictures(64, seed=9))
        numpy.testing.assert_array_equal(scores(first), numpy.asarray(kept))
        session.close()
        numpy.testing.assert_array_equal(scores(first), numpy.asarray(kept))
        with self.assertRaisesRegex(librt.InvalidArgument, "closed"):
            session(pictures(1))

    def test_training(self):
        random = numpy.random.default_rng(1)
        labels = random.integers(0, 2, 64)
        rows = (random.standard_normal((64, 1000)) + labels[:, None]).astype(numpy.float32)
        trained = []
        for backend in (BACKEND, "cpu"):
            trainer = librt.Trainer(mlp(), backend=backend, learning_rate=1e-3)
            trained.append([row["loss"] for row in trainer.fit([(rows, labels)], epochs=3)])
            trainer.save(scratch(backend))
        numpy.testing.assert_allclose(*trained, rtol=1e-3)
        self.assertLess(trained[0][-1], trained[0][0])
        # A checkpoint of one device on the other.
        other = librt.Trainer(mlp(), backend="cpu")
        other.load(scratch(BACKEND))
        self.assertAlmostEqual(other.evaluate([(rows, labels)])["loss"], trainer.evaluate([(rows, labels)])["loss"], 3)

    def test_errors(self):
        session = on_device()
        for wrong in (pictures(2)[0], pictures(2).astype(numpy.float64), pictures(2)[:, :5]):
            with self.assertRaises(librt.InvalidArgument):
                session(wrong)
        with self.assertRaises(librt.OutOfMemory):
            on_device(memory_limit=1000)(pictures(1))
        self.assertEqual(scores(session(pictures(2))).shape, (2, 10))

    def test_results_on_the_device(self):
        session, x = on_device(), pictures(3)
        kept = session.run({"input": x}, on_device=True)["fc3_1"]
        self.assertIsInstance(kept, librt.DeviceTensor)
        self.assertEqual((kept.shape, kept.dtype, kept.nbytes, kept.backend), ((3, 10), "f32", 120, BACKEND))
        numpy.testing.assert_allclose(kept.numpy(), scores(digits()(x)), rtol=1e-3, atol=1e-4)
        self.assertEqual(repr(kept), f"librt.DeviceTensor({BACKEND}, f32[3,10])")
        session(pictures(3, seed=9))  # another run leaves it as it is
        numpy.testing.assert_allclose(kept.to_host().numpy(), scores(digits()(x)), rtol=1e-3, atol=1e-4)
        if not IS_CUDA:
            with self.assertRaisesRegex(AttributeError, "not CUDA's"):
                kept.__cuda_array_interface__
        # Into a session on the same device, and after its own session.
        again = identity_session(("n", 10))
        session.close()
        if IS_CUDA or BACKEND in ("cpu", "reference"):
            numpy.testing.assert_array_equal(scores(again(kept)), kept.numpy().T)
        else:
            with self.assertRaisesRegex(librt.Error, "device"):
                again(kept)

    def test_shapes_that_data_decides(self):
        nonzero = onnx((("NonZero", ("x",), ("y",)),), (("x", FLOAT, ("n",)),), (("y", INT64, (1, "m")),))
        session = on_device(librt.convert(nonzero))
        with self.assertRaisesRegex(librt.Unsupported, "output 'y': on_device needs"):
            session.run({"x": [1.0, 0.0]}, on_device=True)
        self.assertEqual(session(x=[0.0, 1.0])["y"].tolist(), [[1]])

    @unittest.skipUnless(IS_CUDA, "the protocol is CUDA's")
    def test_cuda_arrays(self):
        """As CuPy, Numba and PyTorch have them: only the dict, and whoever owns the memory."""
        producer, x = on_device(), pictures(64)
        owner = producer.run({"input": x}, on_device=True)["fc3_1"]
        interface = owner.__cuda_array_interface__
        address, read_only = interface["data"]
        self.assertEqual((interface["shape"], interface["typestr"], interface["strides"]), ((64, 10), "<f4", None))
        self.assertEqual((interface["version"], interface["stream"], read_only), (3, None, False))
        self.assertEqual(address % 256, 0)

        class Foreign:
            def __init__(self, **changes):
                self.__cuda_array_interface__ = {**interface, **changes}

        session = identity_session(("n", 10))
        expected = owner.numpy().T
        for same in (Foreign(), Foreign(strides=(40, 4)), Foreign(data=(address, True)), Foreign(typestr="=f4")):
            numpy.testing.assert_array_equal(scores(session(same)), expected)
            stays = session.run({"x": same}, on_device=True)["y"]
            numpy.testing.assert_array_equal(stays.numpy(), expected)
        self.assertEqual(scores(session(Foreign(shape=(0, 10), data=(0, False)))).shape, (10, 0))
        part = Foreign(shape=(32, 10), data=(address + 32 * 40, False))  # 1280 bytes on: five times 256
        numpy.testing.assert_array_equal(scores(session(part)), expected[:, 32:])
        for changes, text in (
            ({"strides": (80, 4)}, "has strides"), ({"mask": owner}, "has a mask"), ({"typestr": "<c8"}, "'<c8'"),
            ({"typestr": "<f8"}, "expected f32"), ({"shape": (64, 10, 1)}, "expected f32"), ({"shape": (-1, 10)}, "negative"),
            ({"data": (address + 4, False)}, "256"),
        ):  # fmt: skip
            with self.assertRaisesRegex(librt.InvalidArgument, text):
                session(Foreign(**changes))
        with self.assertRaisesRegex(librt.InvalidArgument, "has no 'typestr'"):
            wrong = Foreign()
            del wrong.__cuda_array_interface__["typestr"]
            session(wrong)
        # On the CPU it is refused, as before.
        with self.assertRaisesRegex(librt.Error, "copy it there first"):
            digits()(Foreign())

    @unittest.skipUnless(IS_CUDA, "the protocol is CUDA's")
    def test_streams_of_cuda_arrays(self):
        owner = on_device().run({"input": pictures(64)}, on_device=True)["fc3_1"]

        class Foreign:
            __cuda_array_interface__ = {**owner.__cuda_array_interface__, "stream": 1234}

        waited = []
        with unittest.mock.patch("librt._arrays.synchronize", waited.append):
            result = identity_session(("n", 10))(Foreign())
        numpy.testing.assert_array_equal(scores(result), owner.numpy().T)
        self.assertEqual(waited, [1234])
        from librt._arrays import synchronize

        with self.assertRaisesRegex(ValueError, "stream 0"):
            synchronize(0)

    @unittest.skipIf(BACKEND in ("cpu", "reference"), "sessions of the CPU go on in a forked process")
    def test_a_fork_is_refused(self):
        session, x = on_device(), pictures(1)
        session(x)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                session(x)
                text = "it ran"
            except BaseException as error:
                text = f"{type(error).__name__}: {error}"
            del session  # must not touch the parent's device
            os.write(write, text.encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            self.assertRegex(pipe.read().decode(), "InvalidArgument: the session is of a GPU, and from before")
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(scores(session(x)).shape, (1, 10))


if __name__ == "__main__":
    if BACKEND not in librt.backends() or librt.backends()[BACKEND]:
        print(f"SKIPPED: no device of {BACKEND}: {librt.backends().get(BACKEND, 'no such backend')}")
        sys.exit(77)
    main()
