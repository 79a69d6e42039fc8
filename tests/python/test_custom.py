"""Operators of the application: Python functions as kernels."""

import gc
import threading
import unittest
import weakref

import numpy
from support import FLOAT, INT64, main, mlp, onnx

import librt

BACKENDS = [name for name, reason in librt.backends().items() if not reason and name in ("cpu", "reference")]


def scaled(outputs=("y",), attributes=(("by", 3), ("mode", "fast"), ("sizes", (4, 5)))):
    """y = Neg(com.example:Scale(x)), and a count where there are two results."""
    nodes = (("com.example:Scale", ("x", "", "x"), outputs, attributes), ("Neg", ("y",), ("z",)))
    results = (("z", FLOAT, ("n", 2)),) + ((("count", INT64, (1,)),) if len(outputs) > 1 else ())
    signature = "[*],[],[*]->[*]" + (",i64[1]" if len(outputs) > 1 else "")
    file = onnx(nodes, (("x", FLOAT, ("n", 2)),), results)
    return librt.convert(file, custom_output={"com.example:Scale": signature})


def opened(function, model=None, **options):
    options = {"backend": "cpu", **options}
    return librt.Session(model or scaled(), custom_operators={"com.example:Scale": function}, **options)


X = numpy.arange(6, dtype=numpy.float32).reshape(3, 2)


class Custom(unittest.TestCase):
    def test_a_function_is_a_kernel(self):
        calls = []

        def scale(x, missing, again, **attributes):
            calls.append((missing, numpy.array_equal(x, again), attributes))
            return numpy.asarray(x) * attributes["by"]

        for backend in BACKENDS:
            session = opened(scale, backend=backend)
            for count in (3, 1, 0, 3):
                calls.clear()
                numpy.testing.assert_array_equal(session(X[:count])["z"], -3 * X[:count])
                wanted = [(None, True, {"by": 3, "mode": "fast", "sizes": (4, 5)})]
                self.assertEqual(calls, wanted if count > 0 else [], backend)

    def test_several_results(self):
        model = scaled(("y", "count"))
        session = opened(lambda x, *_, by, **__: (numpy.asarray(x) * by, [x.size]), model)
        outputs = session(X)
        numpy.testing.assert_array_equal(outputs["z"], -3 * X)
        self.assertEqual(outputs["count"].tolist(), [6])
        for wrong in (X, (X,), (X, [1], [2])):
            with self.assertRaisesRegex(librt.InvalidArgument, "expected 2 results in a tuple, found"):
                opened(lambda *_, wrong=wrong, **__: wrong, model)(X)

    def test_operands_outlive_the_call(self):
        kept = []
        session = opened(lambda x, *_, **__: kept.append(x) or X)
        for factor in (1, 2, 3):
            session(X * factor)
        del session
        for factor, operand in zip((1, 2, 3), kept):
            numpy.testing.assert_array_equal(operand, X * factor)

    def test_wrong_results(self):
        for result, words in (
            (X.astype(numpy.float64), r"result 0: expected f32\[3,2\], found f64\[3,2\]"),
            (X.T, r"expected f32\[3,2\], found f32\[2,3\]"),
            (X[0], r"found f32\[2\]"),
            (None, "TypeError"),
            ("text", "result 0"),
        ):
            session = opened(lambda *_, result=result, **__: result)
            with self.assertRaisesRegex(librt.InvalidArgument, words):
                session(X)
        numpy.testing.assert_array_equal(opened(lambda *_, **__: X.tolist())(X)["z"], -X)  # a list is converted
        numpy.testing.assert_array_equal(opened(lambda *_, **__: X[::-1])(X)["z"], -X[::-1])

    def test_what_it_raises_is_the_cause(self):
        class Refused(Exception):
            pass

        refuses = True

        def scale(x, *_, **__):
            if refuses:
                raise Refused("not today")
            return x

        session = opened(scale)
        with self.assertRaisesRegex(librt.InvalidArgument, "com.example.*Scale.*Refused: not today") as caught:
            session(X)
        self.assertIsInstance(caught.exception.__cause__, Refused)
        refuses = False
        numpy.testing.assert_array_equal(session(X)["z"], -X)  # goes on
        with self.assertRaisesRegex(librt.InvalidArgument, "TypeError.*missing 1 required") as caught:
            opened(lambda x, y, z, w, **__: x)(X)

        class Silent(Exception):
            def __str__(self):
                raise ValueError("none")

        def silent(*_, **__):
            raise Silent

        with self.assertRaisesRegex(librt.InvalidArgument, "Silent"):
            opened(silent)(X)

    def test_leaving_is_no_error_of_librt(self):
        for kind in (KeyboardInterrupt, SystemExit):

            def leave(*_, kind=kind, **__):
                raise kind

            session = opened(leave)
            with self.assertRaises(kind):
                session(X)

    def test_a_session_that_calls_itself(self):
        def again(x, *_, **__):
            return holder[0](x)["z"]

        holder = [opened(again)]
        with self.assertRaisesRegex(librt.InvalidArgument, "in use by this thread"):
            holder[0](X)
        other = opened(lambda x, *_, **__: x)
        holder = [opened(lambda x, *_, **__: other(x)["z"])]
        numpy.testing.assert_array_equal(holder[0](X)["z"], X)

    def test_threads(self):
        sessions = [opened(lambda x, *_, **__: numpy.asarray(x) + 1) for _ in range(4)]
        wrong = []

        def work(session, number):
            for turn in range(50):
                if not numpy.array_equal(session(X + number + turn)["z"], -(X + number + turn + 1)):
                    wrong.append((number, turn))

        threads = [threading.Thread(target=work, args=(s, i)) for s in sessions for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_cycle_is_collected(self):
        class Owner:
            def __init__(self):
                self.session = opened(self.scale)

            def scale(self, x, *_, **__):
                return x

        owner = Owner()
        owner.session(X)
        gone = weakref.ref(owner)
        del owner
        gc.collect()
        self.assertIsNone(gone())

    def test_a_cycle_through_a_trainer_is_collected(self):
        class Owner:
            def __init__(self):
                options = {"backend": "cpu", "custom_operators": {"com.example:Scale": self.scale}}
                self.trainer = librt.Trainer(mlp(), **options)
                self.sessions = [self.trainer.session(entry) for entry in ("train_step", "infer")]

            def scale(self, x, *_, **__):
                return x

        owner = Owner()
        gone = weakref.ref(owner)
        gc.collect()
        self.assertIsNotNone(gone())
        # A session alone keeps the function, by which it keeps the owner.
        session = owner.sessions[1]
        del owner
        gc.collect()
        self.assertIsNotNone(gone())
        del session
        gc.collect()
        self.assertIsNone(gone())

    def test_what_is_refused(self):
        model = scaled()
        for wrong, error, words in (
            ([1], TypeError, "expected a dict of functions"),
            ({"Scale": print}, ValueError, "expected names 'DOMAIN:OPERATOR', found 'Scale'"),
            ({1: print}, ValueError, "found 1"),
            ({"com.example:Scale": 5}, TypeError, "expected a function for 'com.example:Scale', found 5"),
        ):
            with self.assertRaisesRegex(error, words):
                librt.Session(model, backend="cpu", custom_operators=wrong)
        for none in ({}, None, {"com.example:Other": print}):
            with self.assertRaisesRegex(librt.Unsupported, "Scale"):
                librt.Session(model, backend="cpu", custom_operators=none)(X)


if __name__ == "__main__":
    main()
