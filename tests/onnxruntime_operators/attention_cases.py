"""Attention in its forms, with every mask, bias and cache that is accepted."""
import numpy as np

from harness import Case


def cases(rng):
    def f(*shape, scale=1.0, dtype=np.float32):
        return (rng.standard_normal(shape) * scale).astype(dtype)

    out = []
    open_ = {2: "b", 5: "s", 3: "p", 8: "t"}
    B, S, N, H, P = 2, 5, 4, 6, 3
    hidden = N * H

    def masks(total, length):
        raw2 = (rng.random((B, total)) > 0.3).astype(np.int32)
        raw2[:, 0] = 1
        raw3 = (rng.random((B, length, total)) > 0.3).astype(np.int32)
        ends = np.array([total - 2, total], np.int32)
        starts = np.array([1, 0], np.int32)
        return [None, raw2, raw3, ends, np.concatenate([ends, starts]), np.zeros((B, total), np.int32),
                np.array([0, 2], np.int32)]

    # In fully masked rows, scores near -10000 keep only three digits.
    def hidden_rows(mask):
        return 2e-5 if mask is None else 3e-3

    # --- Attention
    x, w, bias = f(B, S, 10), f(10, 3 * hidden, scale=0.3), f(3 * hidden)
    for past in (None, f(2, B, N, P, H)):
        total = S + (P if past is not None else 0)
        for mask in masks(total, S):
            for causal in (0, 1):
                for score_bias in (None, f(B, N, S, total), f(1, N, S, total), f(B, 1, S, total)):
                    if score_bias is not None and mask is not None and mask.ndim != 2:
                        continue
                    symbols = dict(open_)
                    if mask is not None and mask.ndim == 1 and len(mask) != B:
                        symbols = {5: "s", 8: "t", 3: "p"}
                    attributes = dict(num_heads=N, unidirectional=causal, atol=hidden_rows(mask))
                    outputs = 2
                    out.append(Case("Attention", [x, w, bias, mask, past, score_bias], outputs=outputs if past is not None else 1,
                                    constants=[1, 2], symbols=symbols, **attributes))
    out.append(Case("Attention", [x, w, bias], num_heads=N, outputs=2, constants=[1, 2], symbols=open_))
    out.append(Case("Attention", [x, w, None], num_heads=N, constants=[1], symbols=open_))
    out.append(Case("Attention", [x, w, bias, masks(S, S)[1]], num_heads=N, scale=0.1, mask_filter_value=-3.0, constants=[1, 2],
                    symbols=open_))
    out.append(Case("Attention", [x, w, bias, masks(S, S)[1]], num_heads=N, mask_filter_value=float(np.finfo(np.float32).min),
                    constants=[1, 2], symbols=open_))
    out.append(Case("Attention", [x, f(10, 2 * hidden + N * 7), f(2 * hidden + N * 7), masks(S, S)[1]], num_heads=N,
                    qkv_hidden_sizes=[hidden, hidden, N * 7], constants=[1, 2], symbols=open_))
    out.append(Case("Attention", [f(1, 1, 10), w, bias], num_heads=N, constants=[1, 2], symbols={1: "b"}))
    out.append(Case("Attention", [f(B, 1, 10), w, bias, None, f(2, B, N, 0, H)], outputs=2, num_heads=N, unidirectional=1,
                    constants=[1, 2], symbols={2: "b", 0: "p"}))
    out.append(Case("Attention", [f(B, S, 10), w, bias, None, f(2, B, N, 0, H)], outputs=2, num_heads=N, unidirectional=1,
                    constants=[1, 2], symbols={0: "p"}))
    # --- MultiHeadAttention
    q, k, v, mha_bias = f(B, S, hidden), f(B, S, hidden), f(B, S, hidden), f(3 * hidden)
    for past in (False, True):
        total = S + (P if past else 0)
        pk, pv = (f(B, N, P, H), f(B, N, P, H)) if past else (None, None)
        for mask in masks(total, S):
            for causal in (0, 1):
                for score_bias in (None, f(B, N, S, total), f(1, 1, S, total)):
                    if score_bias is not None and mask is not None and mask.ndim != 2:
                        continue
                    for b in (None, mha_bias):
                        symbols = open_
                        if mask is not None and mask.ndim == 1 and len(mask) != B:
                            symbols = {5: "s", 8: "t", 3: "p"}
                        out.append(Case("MultiHeadAttention", [q, k, v, b, mask, score_bias, pk, pv], outputs=3, num_heads=N,
                                        unidirectional=causal, constants=[3], symbols=symbols, atol=hidden_rows(mask)))
    L = 7
    k2, v2 = f(B, L, hidden), f(B, L, N * 9)
    for causal in (0, 1):
        if not causal:  # the runtime lets the last query see all keys, also those after it
            out.append(Case("MultiHeadAttention", [q, k2, v2], num_heads=N, symbols={2: "b", 5: "s", 7: "l"}))
        out.append(Case("MultiHeadAttention", [q, f(B, 3, hidden), f(B, 3, hidden)], num_heads=N, unidirectional=causal,
                        symbols={2: "b", 5: "s", 3: "l"}))
    out.append(Case("MultiHeadAttention", [q, k2, v2, f(2 * hidden + N * 9)], num_heads=N, outputs=3, constants=[3],
                    symbols={2: "b", 5: "s", 7: "l"}, scale=0.2))
    out.append(Case("MultiHeadAttention", [q, k2, v2, None, masks(L, S)[1]], num_heads=N, symbols={2: "b", 5: "s", 7: "l"}))
    k4, v4 = f(B, N, L, H), f(B, N, L, H)
    for b in (None, mha_bias):
        for mask in (None, masks(L, S)[1]):
            out.append(Case("MultiHeadAttention", [q, k4, v4, b, mask], num_heads=N, constants=[3],
                            symbols={2: "b", 5: "s", 7: "l"}))
            out.append(Case("MultiHeadAttention", [q, k4, v4, b, mask], outputs=3, num_heads=N, constants=[3]))
    out.append(Case("MultiHeadAttention", [q, k, v, mha_bias, masks(S, S)[1]], outputs=4, num_heads=N, constants=[3],
                    skip_outputs=(1, 2), symbols={2: "b", 5: "s"}, name="scores", typed=True,
                    valid=lambda name, x: np.maximum(x, -1e30)))
    out.append(Case("MultiHeadAttention", [q, k, v, mha_bias], outputs=4, num_heads=N, constants=[3], unidirectional=1,
                    name="scores", typed=True,
                    valid=lambda name, x: np.maximum(x, -1e30)))
    out.append(Case("MultiHeadAttention", [f(B, S, N, 3, H)], num_heads=N, name="packed"))
    out.append(Case("MultiHeadAttention", [q, f(B, L, N, 2, H)], num_heads=N, name="packed"))
    out.append(Case("MultiHeadAttention", [f(B, 1, hidden), f(B, 1, hidden), f(B, 1, hidden), None, None, None, f(B, N, 0, H),
                                           f(B, N, 0, H)], outputs=3, num_heads=N, name="no past"))

    # --- GroupQueryAttention
    i32 = np.int32

    def grouped(length, past, valid, total, heads=4, groups=2, size=16, rotary=None, packed=False, opened=None, name="",
                interleaved=0, ids=None, bias=None, sink=None, constants=(), past_values=None, **attributes):
        width, narrow = heads * size, groups * size
        if packed:
            qkv = [f(len(valid), length, width + 2 * narrow), None, None]
        else:
            qkv = [f(len(valid), length, width), f(len(valid), length, narrow), f(len(valid), length, narrow)]
        caches = [None, None] if past is None else [f(len(valid), groups, past, size), f(len(valid), groups, past, size)]
        tables = [None, None]
        if rotary:
            tables = [f(32, rotary // 2), f(32, rotary // 2)]
            attributes.update(do_rotary=1, rotary_interleaved=interleaved)
        seqlens = np.array(valid, i32) - 1
        inputs = [*qkv, *caches, seqlens, np.array(total, i32), *tables, ids, bias, sink]

        def specified(name, x):  # the cache past what is valid is not, nor are rows of padding
            x = x.copy()
            for b, count in enumerate(valid):
                if name == "o0":
                    if length == total:
                        x[b, count:] = 0
                else:
                    x[b, :, count:] = 0
            return x

        return Case("GroupQueryAttention", inputs, outputs=3, valid=specified, constants=[7, 8, 11, *constants], symbols=opened, num_heads=heads,
                    kv_num_heads=groups, name=name, **attributes)

    for rotary, size in ((None, 8), (16, 16), (16, 32)):
        for packed in (False, True):
            for interleaved in (0, 1) if rotary else (0,):
                args = dict(rotary=rotary, packed=packed, interleaved=interleaved, size=size)
                out.append(grouped(5, None, [5, 5], 5, name="prompt without past", **args))
                out.append(grouped(5, 0, [5, 5], 5, name="prompt", **args))
                out.append(grouped(1, 6, [7, 7], 7, name="step", **args))
                out.append(grouped(1, 12, [7, 7], 7, name="step in a buffer", **args))
                out.append(grouped(1, 12, [7, 4], 7, name="ragged step in a buffer", **args))
                out.append(grouped(1, 6, [7, 4], 7, name="ragged step", **args))
                out.append(grouped(3, 6, [9], 9, name="chunk", **args))
                out.append(grouped(3, 12, [9], 9, name="chunk in a buffer", **args))
                out.append(grouped(5, 12, [5, 5], 5, name="prompt in a buffer", **args))
                out.append(grouped(1, 6, [7, 7], 7, name="step, lengths constant", constants=[5, 6], opened={6: "p"}, **args))
    for window in (1, 2, 3, 20):
        out.append(grouped(5, 0, [5, 5], 5, local_window_size=window, name="window"))
        out.append(grouped(1, 6, [7, 5], 7, local_window_size=window, name="window"))
        out.append(grouped(3, 6, [9], 9, local_window_size=window, name="window", rotary=16))
    for cap in (0.5, 5.0):
        out.append(grouped(5, 0, [5, 5], 5, softcap=cap, scale=0.7))
        out.append(grouped(1, 6, [7, 5], 7, softcap=cap, local_window_size=3))
    for groups in (1, 2, 4):
        out.append(grouped(5, 0, [5, 5], 5, groups=groups, scale=0.25))
    out.append(grouped(5, 0, [5, 5], 5, causal=0))
    out.append(grouped(3, 6, [9], 9, causal=0))
    out.append(grouped(1, 12, [7, 4], 7, causal=0))
    for shape in ((2, 4, 5, 5), (1, 1, 5, 5), (2, 1, 5, 5), (1, 4, 5, 5)):
        out.append(grouped(5, 0, [5, 5], 5, bias=f(*shape)))
    out.append(grouped(1, 12, [7, 4], 7, bias=f(2, 4, 1, 7)))
    out.append(grouped(1, 6, [7, 4], 7, bias=f(2, 4, 1, 7)))
    out.append(grouped(3, 6, [9], 9, bias=f(1, 1, 3, 9), rotary=16, softcap=2.0))
    out.append(grouped(5, 0, [5, 5], 5, smooth_softmax=1))
    out.append(grouped(1, 12, [7, 4], 7, smooth_softmax=1, rotary=16))
    out.append(grouped(1, 12, [7, 4], 7, sink=f(4), rotary=16))
    out.append(grouped(5, 0, [5, 5], 5, sink=f(4), local_window_size=2))
    out.append(grouped(3, 6, [9], 9, sink=f(4), local_window_size=2, softcap=3.0))
    out.append(grouped(3, 6, [9], 9, sink=f(4), causal=0))
    out.append(grouped(1, 12, [7, 4], 7, sink=f(4), bias=f(2, 4, 1, 7)))
    ids = np.array([[4, 5, 6, 7, 8], [9, 1, 2, 3, 4]], np.int64)
    out.append(grouped(5, 0, [5, 5], 5, rotary=16, ids=ids, name="position ids"))
    out.append(grouped(1, 6, [7, 7], 7, rotary=16, ids=np.array([[6], [3]], np.int64), name="position ids"))
    out.append(grouped(1, 6, [7, 7], 7, name="open", opened={2: "b", 6: "p"}))
    out.append(grouped(5, 0, [5, 3], 5, name="padded prompt"))
    return out
