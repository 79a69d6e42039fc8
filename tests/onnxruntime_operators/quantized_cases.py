"""Operators on bytes. A result may be one step off where it lies between two."""
import numpy as np

from harness import Case


def cases(rng):
    def f(*shape, scale=1.0):
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    def bytes_(kind, *shape):
        info = np.iinfo(kind)
        if kind is np.int8:  # products of more bits saturate in the runtime on some processors
            return rng.integers(-64, 64, shape).astype(kind)
        return rng.integers(info.min, info.max + 1, shape).astype(kind)

    def number(x, kind=np.float32):
        return np.array(x, kind)

    out = []
    u8, i8 = np.uint8, np.int8
    for kind, za, zb, zc in ((u8, 120, 3, 128), (i8, -5, 7, 1)):
        def zero(value):
            return number(value, kind)
        a, b = bytes_(kind, 2, 5, 6), bytes_(kind, 2, 5, 6)
        for op in ("QLinearAdd", "QLinearMul"):
            for other in (b, bytes_(kind, 6), bytes_(kind, 1, 5, 1), bytes_(kind, 1)):
                out.append(Case(op, [a, number(.1), zero(za), other, number(.07), zero(zb), number(.13), zero(zc)], atol=1,
                                constants=[1, 2, 4, 5, 6, 7], symbols={2: "b"}))
            out.append(Case(op, [a, number(.1), None, b, number(.07), None, number(.13), None], atol=1,
                            constants=[1, 2, 4, 5, 6, 7]))
            out.append(Case(op, [a, number([.1]), number([za], kind), b, number([.07]), number([zb], kind), number([.13]),
                                 number([zc], kind)], atol=1))
        out.append(Case("QLinearSigmoid", [a, number(.05), zero(za), number(1 / 256), zero(0)], atol=1, symbols={2: "b"}))
        for alpha in (0.01, 0.5, -0.2):
            out.append(Case("QLinearLeakyRelu", [a, number(.05), zero(za), number(.03), zero(zc)], atol=1, alpha=alpha))
        for axis in (-1, 0, 1, 2):
            for opset in (12, 13):
                out.append(Case("QLinearSoftmax", [a, number(.05), zero(za), number(1 / 256), zero(0 if kind is u8 else -128)],
                                constants=[1, 2, 3, 4], atol=1, axis=axis, opset_=opset))
        out.append(Case("QLinearConcat", [number(.1), zero(zc), a, number(.1), zero(za), b, number(.07), zero(zb)], axis=1,
                        constants=[0, 1, 3, 4, 6, 7], atol=1))
        out.append(Case("QLinearConcat", [number(.1), zero(zc), a, number(.1), zero(za)], axis=-1, constants=[0, 1, 3, 4], atol=1))
        out.append(Case("QLinearWhere", [rng.random((2, 5, 6)) > .5, a, number(.1), zero(za), b, number(.07), zero(zb), number(.1),
                                         zero(zc)], atol=1, constants=[2, 3, 5, 6, 7, 8]))
        out.append(Case("QLinearWhere", [rng.random((5, 1)) > .5, a, number(.1), zero(za), bytes_(kind, 6), number(.07), zero(zb),
                                         number(.1), zero(zc)], atol=1, constants=[2, 3, 5, 6, 7, 8]))
        image = bytes_(kind, 2, 3, 9, 7)
        scales = [number(.05), zero(za), number(.04), zero(zc)]
        for extra in (dict(), dict(strides=[2, 2]), dict(pads=[1, 1, 0, 1]), dict(pads=[1, 1, 1, 1], count_include_pad=1),
                      dict(ceil_mode=1, strides=[2, 2]), dict(auto_pad="SAME_UPPER", strides=[2, 2])):
            out.append(Case("QLinearAveragePool", [image, *scales], constants=[1, 2, 3, 4], atol=1, kernel_shape=[3, 2], **extra))
            if "auto_pad" not in extra:
                out.append(Case("QLinearAveragePool", [image, *scales], constants=[1, 2, 3, 4], atol=1, kernel_shape=[3, 2],
                                channels_last=1, **extra))
        out.append(Case("QLinearGlobalAveragePool", [image, *scales], constants=[1, 2, 3, 4], atol=1))
        out.append(Case("QLinearGlobalAveragePool", [image, *scales], constants=[1, 2, 3, 4], atol=1, channels_last=1))
        out.append(Case("NhwcMaxPool", [image], kernel_shape=[2, 3], strides=[2, 1], pads=[1, 0, 0, 1]))
        for axes, keep in (([1], 1), ([0, 2], 0), (None, 1)):
            extra = {} if axes is None else dict(axes=axes)
            out.append(Case("QLinearReduceMean", [a, *scales], constants=[1, 2, 3, 4], atol=1, keepdims=keep, **extra))
        # --- matmuls
        for ta in (0, 1):
            for tb in (0, 1):
                m = bytes_(kind, 7, 6) if ta else bytes_(kind, 6, 7)
                for wide, weights in ((i8, 0), (u8, 128), (u8, 3)):
                    n = bytes_(wide, 5, 7) if tb else bytes_(wide, 7, 5)
                    for column in (False, True):
                        bs = f(5) ** 2 + .01 if column else number(.02)
                        bz = np.full(5, weights, wide) if column else number(weights, wide)
                        if kind is i8 and wide is u8:
                            continue
                        for c in (None, rng.integers(-500, 500, 5).astype(np.int32)):
                            for y in ([], [number(.5), zero(zc)]):
                                out.append(Case("QGemm", [m, number(.1), zero(za), n, bs, bz, c, *y], transA=ta, transB=tb,
                                                alpha=0.5, constants=[1, 2, 3, 4, 5, 6, 7, 8], atol=1 if y else 2e-4))
        for c in (rng.integers(-500, 500, (6, 5)), rng.integers(-500, 500, (1, 5)), rng.integers(-500, 500, (6, 1)),
                  rng.integers(-500, 500, (1,)), rng.integers(-500, 500, ())):
            for y in ([], [number(.5), zero(zc)]):
                out.append(Case("QGemm", [bytes_(kind, 6, 7), number(.1), zero(za), bytes_(i8, 7, 5), number(.02),
                                          number(0, i8), c.astype(np.int32), *y], constants=[1, 2, 3, 4, 5, 6], atol=1 if y else 2e-4))
        for wide in (i8, u8):
            w = bytes_(wide, 7, 5)
            bs, bz = np.abs(f(5)) + .01, bytes_(wide, 5)
            for bias in (None, f(5)):
                out.append(Case("MatMulIntegerToFloat", [bytes_(kind, 2, 6, 7), w, number(.1), number(.02), zero(za),
                                                         number(2, wide), bias], constants=[1, 2, 3, 5, 6], atol=1e-3))
                out.append(Case("MatMulIntegerToFloat", [bytes_(kind, 2, 6, 7), w, number([.1]), bs, None, bz, bias], atol=1e-3))
                out.append(Case("MatMulIntegerToFloat", [bytes_(kind, 6, 7), w, number([.1]), bs, None, None, bias], atol=1e-3))
        # --- QLinearConv, channels last
        for extra in (dict(), dict(pads=[1, 1, 1, 1], strides=[2, 2]), dict(dilations=[2, 1])):
            for last in (0, 1):
                x = bytes_(kind, 1, 8, 9, 3) if last else bytes_(kind, 1, 3, 8, 9)
                out.append(Case("QLinearConv", [x, number(.05), zero(za), bytes_(i8, 4, 3, 3, 3), np.abs(f(4)) * .01 + .01,
                                                np.zeros(4, i8), number(.7), zero(zc), rng.integers(-500, 500, 4).astype(np.int32)],
                                constants=[1, 2, 3, 4, 5, 6, 7, 8], channels_last=last, atol=1, **extra))
        # --- QuantizeLinear and DequantizeLinear
    for kind in (u8, i8, np.uint16, np.int16):
        x = f(2, 5, 6, scale=30)
        z = number(3, kind)
        out.append(Case("QuantizeLinear", [x, number(.3), z], constants=[1, 2], atol=0, symbols={2: "b"}))
        out.append(Case("DequantizeLinear", [bytes_(kind, 2, 5, 6), number(.3), z], constants=[1, 2], symbols={2: "b"}))
        for axis in (1, -1):
            extent = x.shape[axis]
            out.append(Case("QuantizeLinear", [x, np.abs(f(extent)) + .1, bytes_(kind, extent)], axis=axis, atol=0))
            out.append(Case("DequantizeLinear", [bytes_(kind, 2, 5, 6), np.abs(f(extent)) + .1, bytes_(kind, extent)], axis=axis))
    out.append(Case("QuantizeLinear", [f(2, 5), number(.3)], atol=0))
    out.append(Case("DequantizeLinear", [bytes_(i8, 2, 5), number(.3)]))
    out.append(Case("DequantizeLinear", [rng.integers(-900, 900, (2, 5)).astype(np.int32), number(.3)]))
    # --- dynamic
    for wide in (i8, u8):
        w = bytes_(wide, 7, 5)
        for bias in (None, f(5)):
            for bs, bz in ((number(.02), number(2, wide)), (np.abs(f(5)) + .01, bytes_(wide, 5)), (np.abs(f(5)) + .01, None),
                           (number([.02]), None)):
                out.append(Case("DynamicQuantizeMatMul", [f(2, 6, 7), w, bs, bz, bias], constants=[1, 2, 3, 4], atol=2e-3,
                                symbols={2: "b", 6: "s"}))
    T, Bn, I, Hn = 6, 3, 8, 16
    for directions, direction in ((1, "forward"), (1, "reverse"), (2, "bidirectional")):
        for wide in (i8, u8):
            for column in (False, True):
                w, r = bytes_(wide, directions, I, 4 * Hn), bytes_(wide, directions, Hn, 4 * Hn)
                shape = (directions, 4 * Hn) if column else (directions,)
                ws, rs = np.abs(f(*shape)) * .002 + .001, np.abs(f(*shape)) * .002 + .001
                wz = np.full(shape, 0 if wide is i8 else 128, wide)
                lengths = np.array([6, 3, 5], np.int32)
                for full in (False, True):
                    extra = [f(directions, 8 * Hn, scale=.1), lengths, f(directions, Bn, Hn, scale=.3),
                             f(directions, Bn, Hn, scale=.3), f(directions, 3 * Hn, scale=.1)] if full else [None] * 5
                    # ONNX Runtime quantizes the data to 8 bits as well.
                    out.append(Case("DynamicQuantizeLSTM", [f(T, Bn, I), w, r, *extra, ws, wz, rs, wz], outputs=3,
                                    constants=[1, 2, 3, 7, 8, 9, 10, 11], hidden_size=Hn, direction=direction, atol=6e-2, rtol=0))
    # --- low-bit weights
    for bits in (2, 4, 8):
        for block in (16, 32, 128):
            for K in (block, 2 * block, block + 10, 5):
                N = 7
                blocks = -(-K // block)
                weight = bytes_(u8, N, blocks, block * bits // 8)
                scales = (np.abs(f(N, blocks)) * .1 + .01)
                packed = bytes_(u8, N, -(-blocks * bits // 8))
                for zeros in (None, packed, rng.integers(0, 2 ** bits, (N, blocks)).astype(np.float32)):
                    for bias in (None, f(N)):
                        a = f(2, 3, K) if bias is None else f(4, K)
                        out.append(Case("MatMulNBits", [a, weight, scales if K > 5 else scales.reshape(-1), zeros, None, bias],
                                        constants=[1, 2, 3, 5], symbols={2: "b", 3: "s"}, K=K, N=N, bits=bits, block_size=block,
                                        atol=5e-4, rtol=1e-3))
    # --- 8-bit attention
    B, S, heads, size = 2, 5, 4, 6
    hidden = heads * size
    for kind, zx in ((u8, 120), (i8, -5)):
        for wide in (i8, u8):
            if kind is i8 and wide is u8:
                continue
            for column in (False, True):
                ws = (np.abs(f(3 * hidden)) * .003 + .001) if column else number(.004)
                wz = np.full(3 * hidden, 0 if wide is i8 else 128, wide) if column else number(0 if wide is i8 else 128, wide)
                for past in (None, f(2, B, heads, 3, size)):
                    total = S + (0 if past is None else 3)
                    for mask in (None, np.array([total - 2, total], np.int32), (rng.random((B, total)) > .3).astype(np.int32)):
                        for causal in (0, 1):
                            out.append(Case("QAttention", [bytes_(kind, B, S, 10), bytes_(wide, 10, 3 * hidden), f(3 * hidden), number(.02),
                                                           ws, mask, number(zx, kind), wz, past], num_heads=heads,
                                            unidirectional=causal, outputs=1 if past is None else 2, atol=1e-3,
                                            constants=[1, 2, 3, 4, 6, 7], symbols={2: "b", 5: "s", 3: "p", 8: "t"}))
    ids = rng.integers(0, 11, (2, 5)).astype(np.int32)
    tables = [bytes_(u8, 11, 16), bytes_(u8, 8, 16), bytes_(u8, 2, 16), bytes_(u8, 16), bytes_(u8, 16)]
    scales = [number(x) for x in (.01, .02, .03, .01, .005)]
    zeros = [number(x, u8) for x in (120, 128, 100, 3, 130)]
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    for seg in (True, False):
        for m in (None, mask):
            inputs = [ids, ids % 2 if seg else None, tables[0], tables[1], tables[2] if seg else None, tables[3], tables[4], m,
                      scales[0], scales[1], scales[2] if seg else None, scales[3], scales[4],
                      zeros[0], zeros[1], zeros[2] if seg else None, zeros[3], zeros[4]]
            out.append(Case("QEmbedLayerNormalization", inputs, outputs=2, constants=range(2, 7), symbols={2: "b", 5: "s"}))
    return out
