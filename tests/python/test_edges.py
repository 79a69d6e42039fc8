"""At the edges: sessions that are closed, forks, the interpreter beside a run, sizes without memory, NaN, copies."""

import copy
import gc
import os
import pickle
import sys
import threading
import time
import unittest
import weakref

import numpy
from support import DIGITS, FLOAT, INT64, digits, identity_like, main, mlp, onnx, pictures, scores, scratch

import librt


def long_run(seconds=1.0):
    """A session on one thread and an input whose run takes about so long."""
    nodes, name = [], "x"
    for i in range(8):
        nodes.append(("MatMul", (name, "x"), (f"t{i}",)))
        nodes.append(("Tanh", (f"t{i}",), (f"u{i}",)))
        name = f"u{i}"
    nodes.append(("Identity", (name,), ("y",)))
    session = librt.Session(
        librt.convert(onnx(tuple(nodes), (("x", FLOAT, ("n", "n")),), (("y", FLOAT, ("n", "n")),))), backend="cpu",
        threads=1)
    size, spent = 128, 0.0
    while spent < seconds / 4:  # the time grows with the cube
        size *= 2
        x = numpy.full((size, size), 0.001, numpy.float32)
        session(x)
        start = time.monotonic()
        session(x)
        spent = time.monotonic() - start
    return session, x


class Interpreter(unittest.TestCase):
    """That its lock is released while a session runs."""

    @classmethod
    def setUpClass(cls):
        cls.session, cls.x = long_run()

    def in_thread(self):
        times = []

        def work():
            times.append(time.monotonic())
            self.session(self.x)
            times.append(time.monotonic())

        thread = threading.Thread(target=work)
        thread.start()
        return thread, times

    def test_python_goes_on_beside_a_run(self):
        thread, times = self.in_thread()
        ticks = []
        while thread.is_alive():
            ticks.append(time.monotonic())
            time.sleep(0.001)
        thread.join()
        start, end = times
        within = [tick for tick in ticks if start < tick < end]
        # With the lock held there would be none but those of before and after the run.
        self.assertGreater(len(within), 10)

    def test_another_session_runs_meanwhile(self):
        other, x = librt.Session(DIGITS, backend="cpu", threads=1), pictures(1)
        wanted = scores(other(x))
        thread, times = self.in_thread()
        ends = []
        while thread.is_alive():
            numpy.testing.assert_array_equal(scores(other(x)), wanted)
            ends.append(time.monotonic())
        thread.join()
        self.assertGreater(sum(times[0] < end < times[1] for end in ends), 5)


class Closed(unittest.TestCase):
    def test_close(self):
        x = pictures(2)
        with librt.Session(DIGITS, backend="cpu") as session:
            kept = session(x)
            wanted = scores(kept).copy()
            self.assertFalse(session.closed)
        self.assertTrue(session.closed)
        session.close()  # again: nothing
        for call in (lambda: session(x), lambda: session.plan, lambda: session.device, session.cancel,
                     session.profile, lambda: session.memory, session.reset_states,
                     lambda: session.read_state("a"), lambda: session.save_checkpoint(scratch("closed.ckpt")),
                     lambda: librt.Session(DIGITS, backend="cpu", share_states_with=session)):
            with self.assertRaisesRegex(librt.InvalidArgument, "the session is closed"):
                call()
        self.assertEqual((repr(session), list(session.inputs)), ("librt.Session(closed)", ["input"]))
        numpy.testing.assert_array_equal(scores(kept), wanted)
        self.assertFalse(os.path.exists(scratch("closed.ckpt")))
        with self.assertRaises(ZeroDivisionError), librt.Session(DIGITS, backend="cpu") as session:
            raise ZeroDivisionError
        self.assertTrue(session.closed)

    def test_close_waits_for_the_run(self):
        session, x = long_run(0.4)
        ended = []
        thread = threading.Thread(target=lambda: ended.append(session(x)["y"].shape))
        thread.start()
        time.sleep(0.1)
        session.close()
        thread.join()
        self.assertEqual(ended, [x.shape])

    def test_a_trainers(self):
        trainer = librt.Trainer(mlp(), backend="cpu", threads=1)
        with self.assertRaisesRegex(librt.InvalidArgument, "belongs to its Trainer"):
            trainer.session("train_step").close()
        trainer.session("infer").close()
        self.assertFalse(trainer.session("infer").closed)  # a new one
        x = numpy.ones((1, 1000), numpy.float32)
        self.assertEqual(scores(trainer.session("infer")(x)).shape, (1, 2))
        trainer.step((x, numpy.int64([1])))

    def test_memory_comes_back(self):
        """Sessions, models and results that nobody refers to are freed, in any order."""
        for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
            model = librt.load(DIGITS)
            session = librt.Session(model, backend="cpu")
            objects = [model, session, session(pictures(2))["fc3_1"]]
            views = [numpy.asarray(objects[2]), memoryview(objects[2])]
            wanted = views[0].copy()
            del model, session
            for i in order:
                objects[i] = None
                gc.collect()
            numpy.testing.assert_array_equal(views[0], wanted)
            numpy.testing.assert_array_equal(numpy.asarray(views[1]), wanted)


class Forks(unittest.TestCase):
    def in_child(self, work):
        """What `work` returns in a forked process, as a text."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                text = str(work())
            except BaseException as error:
                text = f"{type(error).__name__}: {error}"
            os.write(write, text.encode()[:4000])
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            text = pipe.read().decode()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        return text

    def test_a_session_goes_on_in_a_child(self):
        session, x = librt.Session(DIGITS, backend="cpu", threads=2), pictures(64)
        wanted = scores(session(x))

        def work():
            same = numpy.array_equal(scores(session(x)), wanted)
            new = librt.Session(DIGITS, backend="cpu", threads=2)
            return same and numpy.array_equal(scores(new(x)), wanted) and new.close() is None

        self.assertEqual(self.in_child(work), "True")
        numpy.testing.assert_array_equal(scores(session(x)), wanted)

    def test_a_session_that_was_running(self):
        session, x = long_run()
        stop = threading.Event()

        def work():
            while not stop.is_set():
                session(x)

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.2)  # it is in a run now but for moments
        text = self.in_child(lambda: session(x))
        stop.set()
        thread.join()
        self.assertRegex(text, "InvalidArgument: the session was running when the process was forked")


class Sizes(unittest.TestCase):
    def test_more_than_memory(self):
        session = librt.Session(librt.convert(identity_like(FLOAT)), backend="cpu")
        with self.assertRaisesRegex(librt.OutOfMemory, r"x: no memory for a dense copy of f32\[1099511627776\]"):
            session(x=numpy.broadcast_to(numpy.float32(1), (2**40,)))

        class Huge:
            """Says that it has more elements than can be counted."""

            def __init__(self, shape):
                self.one = numpy.ones(1, numpy.float32)
                self.__array_interface__ = {**self.one.__array_interface__, "shape": shape,
                                            "strides": (0,) * len(shape)}

        for shape in ((2**62,), (2**40, 2**40)):
            with self.assertRaises((librt.Error, ValueError)):
                session(x=Huge(shape))
        self.assertEqual(session(x=[1, 2])["y"].tolist(), [1, 2])

    def test_empty_and_huge_axes(self):
        session = librt.Session(librt.convert(identity_like(FLOAT, ("m", "n"))), backend="cpu")
        for shape in ((0, 0), (0, 5), (5, 0), (2**40, 0)):
            with self.subTest(shape):
                self.assertEqual(session(x=numpy.empty(shape, numpy.float32))["y"].shape, shape[::-1])

    def test_views_with_dense_parts(self):
        session = librt.Session(librt.convert(onnx((("Identity", ("x",), ("y",)),),
                                                   (("x", INT64, ("a", "b", "c", "d")),),
                                                   (("y", INT64, ("a", "b", "c", "d")),))), backend="cpu")
        base = numpy.arange(4 * 6 * 5 * 7, dtype=numpy.int64).reshape(4, 6, 5, 7)
        for view in (base[::2], base[:, ::-1], base[:, 1:3], base[..., 2:3], base[:, :, :1], base[1:2, :, ::2],
                     base.transpose(0, 2, 3, 1), numpy.broadcast_to(base[:1], base.shape),
                     numpy.broadcast_to(base[..., :1], base.shape), base[:, None, 0], base[3:, 5:, 4:, 6:]):
            numpy.testing.assert_array_equal(numpy.asarray(session(x=view)["y"]), view)
        large = numpy.arange(64 * 64 * 65 * 2, dtype=numpy.int64).reshape(64, 64, 65, 2)[:, :, 1:]
        numpy.testing.assert_array_equal(numpy.asarray(session(x=large)["y"]), large)


class Values(unittest.TestCase):
    def test_nan_and_infinities(self):
        session = librt.Session(librt.convert(identity_like(FLOAT)), backend="cpu")
        x = numpy.float32([numpy.nan, numpy.inf, -numpy.inf, -0.0, 1e-45])
        y = numpy.asarray(session(x=x)["y"])
        numpy.testing.assert_array_equal(y.view(numpy.uint32), x.view(numpy.uint32))
        spoiled = pictures(2)
        spoiled[0] = numpy.nan
        first, second = scores(digits()(spoiled))
        self.assertTrue(numpy.isnan(first).all())
        numpy.testing.assert_allclose(second, scores(digits()(pictures(2)))[1], rtol=1e-4, atol=1e-5)

    def test_double_precision_is_named(self):
        with self.assertRaisesRegex(librt.InvalidArgument, "expected f32.* found an array of f64; convert it"):
            digits()(pictures(1).astype(numpy.float64))

    def test_objects_that_cannot_be_copied(self):
        tensor = digits()(pictures(1))["fc3_1"]
        for thing in (digits(), librt.load(DIGITS), tensor):
            for way in (pickle.dumps, copy.copy, copy.deepcopy):
                with self.assertRaises(TypeError):
                    way(thing)


class References(unittest.TestCase):
    def test_nothing_is_kept(self):
        """Inputs of every kind are let go after the run, also after one that failed."""
        session = librt.Session(librt.convert(identity_like(FLOAT)), backend="cpu")

        class Array(numpy.ndarray):
            pass

        for size, fails in ((3, False), (100_000, False), (3, True), (100_000, True)):
            x = numpy.ones((1, size) if fails else size, numpy.float32).view(Array)
            seen = weakref.ref(x)
            try:
                session(x=x)
                self.assertFalse(fails)
            except librt.InvalidArgument:
                self.assertTrue(fails)
            del x
            gc.collect()
            self.assertIsNone(seen())
        value = [1.0]
        counts = sys.getrefcount(session), sys.getrefcount(value)
        for _ in range(100):
            session(x=value)
        self.assertEqual((sys.getrefcount(session), sys.getrefcount(value)), counts)


if __name__ == "__main__":
    main()
