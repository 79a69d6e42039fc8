"""Fused operators on floating point numbers."""
import numpy as np

from harness import Case


def cases(rng):
    def f(*shape, scale=1.0, dtype=np.float32):
        return (rng.standard_normal(shape) * scale).astype(dtype)

    out = []
    # --- activations
    x, bias = f(2, 5, 12, scale=3), f(12)
    for op in ("Gelu", "QuickGelu", "FastGelu"):
        out.append(Case(op, [x], symbols={2: "b", 5: "s"}))
    for alpha in (1.0, 0.5, -2.0, 0.0):
        out.append(Case("QuickGelu", [x], alpha=alpha))
    out.append(Case("FastGelu", [x, bias], constants=[1], symbols={2: "b", 5: "s"}))
    out.append(Case("BiasGelu", [x, bias], constants=[1], symbols={2: "b", 5: "s"}))
    out.append(Case("Gelu", [f(0, 5)]))
    out.append(Case("Gelu", [np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e30, -1e30], np.float32)]))
    out.append(Case("FastGelu", [np.array([np.nan, np.inf, 0, 1e10], np.float32)]))
    # --- convolutions
    for activation, numbers in (("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [0.3]),
                                ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4]), ("HardSigmoid", [0.2, 0.5])):
        attributes = dict(activation=activation)
        if numbers:
            attributes["activation_params"] = numbers
        for residual in (False, True):
            for biased in (False, True):
                inputs = [f(2, 3, 9, 7), f(4, 3, 3, 3), f(4) if biased else None, f(2, 4, 5, 4) if residual else None]
                out.append(Case("FusedConv", inputs, constants=[1, 2], strides=[2, 2], pads=[1, 1, 1, 1],
                                symbols={2: "b", 9: "h", 7: "w", 5: "oh"}, **attributes))
    out.append(Case("FusedConv", [f(1, 4, 10), f(6, 2, 3), f(6)], constants=[1, 2], group=2, dilations=[2],
                    auto_pad="SAME_UPPER", activation="Relu"))
    out.append(Case("FusedConv", [f(1, 2, 5, 5), f(2, 2, 1, 1)], constants=[1], activation="Relu", auto_pad="VALID"))
    out.append(Case("FusedConv", [f(1, 2, 4, 5, 6), f(3, 2, 2, 2, 2), f(3)], constants=[1, 2], activation="Relu"))
    # --- matmuls
    for ta in (0, 1):
        for tb in (0, 1):
            a = f(7, 6) if ta else f(6, 7)
            b = f(5, 7) if tb else f(7, 5)
            for c in (None, f(5), f(6, 5), f(1), f(6, 1), np.array(0.3, np.float32)):
                for activation, extra in (("Relu", {}), ("LeakyRelu", dict(activation_alpha=0.2)), ("Tanh", {}),
                                          ("Sigmoid", {}), ("HardSigmoid", dict(activation_alpha=.3, activation_beta=.4)),
                                          ("Elu", dict(activation_alpha=.7)), ("Softplus", {}), ("Softsign", {}),
                                          ("ThresholdedRelu", dict(activation_alpha=.5)),
                                          ("Selu", dict(activation_alpha=1.5, activation_gamma=1.1)))[:: (1 if c is None else 4)]:
                    out.append(Case("FusedGemm", [a, b, c], constants=[1], transA=ta, transB=tb, alpha=0.5, beta=2.0,
                                    activation=activation, **extra))
    for ta in (0, 1):
        for tb in (0, 1):
            for alpha in (1.0, 0.125):
                a = f(2, 3, 7, 6) if ta else f(2, 3, 6, 7)
                b = f(2, 3, 5, 7) if tb else f(2, 3, 7, 5)
                out.append(Case("FusedMatMul", [a, b], transA=ta, transB=tb, alpha=alpha, symbols={2: "b", 6: "s"}))
                out.append(Case("TransposeMatMul", [a, b], transA=ta, transB=tb, alpha=alpha))
            b2 = f(5, 7) if tb else f(7, 5)
            out.append(Case("FusedMatMul", [f(2, 7, 6) if ta else f(2, 6, 7), b2], constants=[1], transA=ta, transB=tb))
            a1 = f(7)
            out.append(Case("FusedMatMul", [a1, b2], transA=ta, transB=tb, name="vector"))
            if not ta:  # the runtime reads a transposed matrix before a vector as if it were none
                out.append(Case("FusedMatMul", [f(6, 7), f(7)], transA=ta, transB=tb, name="vector"))
    for ba in (0, 1):
        for bb in (0, 1):
            for ta in (0, 1):
                for tb in (0, 1):
                    # rows along the first axis, followed by the batch axis
                    a = f(2, 3, 7, 6) if ta else f(2, 3, 6, 7)
                    b = f(2, 3, 5, 7) if tb else f(2, 3, 7, 5)
                    if ba:
                        a = np.ascontiguousarray(np.moveaxis(a, 2, 0))
                    if bb:
                        b = np.ascontiguousarray(np.moveaxis(b, 2, 0))
                    out.append(Case("FusedMatMul", [a, b], transA=ta, transB=tb, transBatchA=ba, transBatchB=bb))
                    out.append(Case("FusedMatMul", [a[:, 0], b[:, 0]] if ba and bb else [a, b], transA=ta, transB=tb,
                                    transBatchA=ba, transBatchB=bb, name="three axes"))
    # --- normalizations
    x, skip, gamma, beta, bias = f(2, 5, 16), f(2, 5, 16), f(16), f(16), f(16)
    for b1 in (None, beta):
        for b2 in (None, bias):
            for epsilon in (1e-12, 1e-5, 0.1):
                for s in (skip, f(1, 5, 16), f(5, 16)):
                    out.append(Case("SkipLayerNormalization", [x, s, gamma, b1, b2], outputs=4, skip_outputs=(1, 2),
                                    constants=[2, 3, 4], symbols={2: "b", 5: "s"}, epsilon=epsilon))
    for b2 in (None, bias):
        for s in (skip, f(1, 5, 16), f(5, 16)):
            out.append(Case("SkipSimplifiedLayerNormalization", [x, s, gamma, b2], outputs=4, skip_outputs=(1, 2),
                            constants=[2, 3], symbols={2: "b", 5: "s"}, epsilon=1e-6))
    out.append(Case("SkipLayerNormalization", [f(7, 16), f(7, 16), gamma, beta], constants=[2, 3], symbols={7: "n"}))
    out.append(Case("SkipSimplifiedLayerNormalization", [f(7, 16), f(7, 16), gamma], constants=[2], symbols={7: "n"}))
    out.append(Case("SkipSimplifiedLayerNormalization", [f(1, 1, 16) * 0, f(1, 1, 16) * 0, gamma], constants=[2]))
    h = np.float16
    out.append(Case("SkipLayerNormalization", [x.astype(h), skip.astype(h), gamma.astype(h), beta.astype(h), bias.astype(h)],
                    outputs=4, skip_outputs=(1, 2), constants=[2, 3, 4], atol=1e-2, rtol=1e-2))
    out.append(Case("SkipSimplifiedLayerNormalization", [x.astype(h), skip.astype(h), gamma.astype(h)], constants=[2],
                    atol=1e-2, rtol=1e-2))
    for axis in (-1, 1, 2):
        scale = gamma if axis != 1 else f(5, 16)
        for opset in (11, 17):
            out.append(Case("SimplifiedLayerNormalization", [x, scale], outputs=2, constants=[1], axis=axis, epsilon=1e-6,
                            domain="", opset=opset, symbols={2: "b"}))
        out.append(Case("LayerNormalization", [x, scale, scale * 2], constants=[1, 2], axis=axis, epsilon=1e-6, domain="",
                        opset=11, symbols={2: "b"}))
    out.append(Case("SimplifiedLayerNormalization", [x, gamma], constants=[1], axis=-1, stash_type=1, domain="",
                    symbols={2: "b", 5: "s"}))
    # --- embeddings
    ids = rng.integers(0, 11, (2, 5)).astype(np.int32)
    segments = rng.integers(0, 2, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    words, positions, types = f(11, 16), f(8, 16), f(2, 16)
    for seg in (False, True):
        for m in (None, mask):
            for p in (None, rng.integers(0, 8, (2, 5)).astype(np.int32), rng.integers(0, 8, (1, 5)).astype(np.int32)):
                inputs = [ids, segments if seg else None, words, positions, types if seg else None, gamma, beta, m, p]
                out.append(Case("EmbedLayerNormalization", inputs, outputs=2, constants=[2, 3, 4, 5, 6],
                                symbols={2: "b", 5: "s"}, epsilon=1e-8))
                out.append(Case("EmbedLayerNormalization", inputs, outputs=3, constants=[2, 3, 4, 5, 6],
                                mask_index_type=1 if m is not None else 0))
    # --- rotary embeddings
    for interleaved in (0, 1):
        for opened in ({2: "b", 5: "s"},):
            cos, sin = f(20, 4), f(20, 4)
            ids1, ids2 = np.array([3], np.int64), rng.integers(0, 20, (2, 5)).astype(np.int64)
            for ids_ in (ids1, ids2):
                out.append(Case("RotaryEmbedding", [f(2, 5, 24), ids_, cos, sin], constants=[2, 3], interleaved=interleaved,
                                symbols=opened))
                out.append(Case("RotaryEmbedding", [f(2, 3, 5, 8), ids_, cos, sin], constants=[2, 3], interleaved=interleaved,
                                symbols=opened))
                out.append(Case("RotaryEmbedding", [f(2, 5, 36), ids_, cos, sin], constants=[2, 3], interleaved=interleaved,
                                num_heads=3, rotary_embedding_dim=8, symbols=opened))
                out.append(Case("RotaryEmbedding", [f(2, 3, 5, 12), ids_, cos, sin], constants=[2, 3], interleaved=interleaved,
                                num_heads=3, rotary_embedding_dim=8, symbols=opened))
                out.append(Case("RotaryEmbedding", [f(2, 5, 24), ids_, cos, sin], constants=[2, 3], interleaved=interleaved,
                                num_heads=3, scale=0.5))
    # --- operators that ONNX took over, or of which it has a newer form
    for metric in ("sqeuclidean", "euclidean"):
        for m, k, n in ((3, 4, 5), (7, 2, 1), (20, 30, 8)):
            out.append(Case("CDist", [f(m, n), f(k, n)], metric=metric, symbols={m: "m", k: "k"}))
    for upper in (0, 1):
        for diagonal in (None, np.array(-1), np.array(2)):
            out.append(Case("Trilu", [f(2, 4, 5), diagonal], constants=[1], upper=upper, symbols={4: "n"}))
    out.append(Case("GatherND", [f(3, 4, 5), rng.integers(0, 3, (6, 2))], symbols={6: "count"}))
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            out.append(Case("GridSample", [f(1, 2, 5, 6), f(1, 3, 4, 2)], mode=mode, padding_mode=padding, align_corners=1))
    return out
