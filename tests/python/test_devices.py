"""test_devices.py BACKEND: sessions and trainings on a device, from Python: arrays in and out, memory, forks.

On the emulated CUDA device (cuda_emu) the extension is the same as on a GPU, and arrays go to the device's memory and back.
"""

import os
import sys
import unittest

import numpy
from support import DIGITS, digits, main, mlp, pictures, scores, scratch

import librt

BACKEND = sys.argv.pop(1) if len(sys.argv) > 1 else "cpu"


def on_device(model=DIGITS, **options):
    return librt.Session(model, backend=BACKEND, **options)


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
