"""What decoders are exported with beside attention: mixtures of experts, embeddings of few bits, states of fixed size."""
import itertools

import numpy as np

from harness import Case

TOKENS, HIDDEN, INNER, EXPERTS = 5, 32, 64, 4


def packed(rng, *shape, bits):
    return rng.integers(0, 256, (*shape[:-1], -(-shape[-1] * bits // 8))).astype(np.uint8)


def swiglu_attributes(activation):
    if activation != "swiglu":
        return dict(activation_type=activation)
    return dict(activation_type=activation, swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0)


def expert_cases(rng, f):
    open_ = {TOKENS: "tokens"}
    x, scores = f(TOKENS, HIDDEN), f(TOKENS, EXPERTS)
    for activation, k, normalizes in itertools.product(("relu", "gelu", "silu", "identity", "swiglu"), (1, 2, 4), (0, 1)):
        rows = 2 * INNER if activation == "swiglu" else INNER
        layers = [f(EXPERTS, rows, HIDDEN, scale=0.3), f(EXPERTS, rows), f(EXPERTS, HIDDEN, INNER, scale=0.3), f(EXPERTS, HIDDEN)]
        yield Case("MoE", [x, scores, *layers], constants=[2, 3, 4, 5], symbols=open_, k=k, normalize_routing_weights=normalizes,
                   atol=1e-4, **swiglu_attributes(activation))
    for activation, bits, block, zeros, weights in itertools.product(("silu", "swiglu"), (4, 8), (0, 32), (False, True), (False, True)):
        if bits == 8 and block:  # ONNX Runtime rounds activations to bytes
            continue
        rows, scale = 2 * INNER if activation == "swiglu" else INNER, 0.8 / 2**bits

        def layer(n, columns):
            scales = np.abs(f(EXPERTS, n, columns // block, scale=scale)) if block else np.abs(f(EXPERTS, n, scale=scale))
            return packed(rng, EXPERTS, n, columns, bits=bits), scales, f(EXPERTS, n)

        def zero_points(n, columns):
            shape = (EXPERTS, n, columns // block) if block else (EXPERTS, n)
            return packed(rng, *shape, bits=bits) if zeros else None

        inputs = [x, scores, *layer(rows, HIDDEN), *layer(HIDDEN, INNER), None, None, None, zero_points(rows, HIDDEN),
                  zero_points(HIDDEN, INNER), None, np.abs(f(TOKENS, EXPERTS)) if weights else None]
        attributes = dict(block_size=block) if block else {}
        yield Case("QMoE", inputs, constants=range(2, 14), symbols=open_, k=2, normalize_routing_weights=1, weights_prepacked=0,
                   expert_weight_bits=bits, atol=2e-3, **attributes, **swiglu_attributes(activation))


def state_cases(f):
    batch, size, width = 2, 8, 6
    for rule, tokens, (queries, states), past, wide in itertools.product(
            ("linear", "gated", "delta", "gated_delta"), (1, 5, 40), ((2, 2), (4, 2), (2, 4)), (False, True), (False, True)):
        inputs = [f(batch, tokens, queries * size), f(batch, tokens, states * size, scale=0.5), f(batch, tokens, states * width),
                  f(batch, states, size, width) if past else None,
                  -np.abs(f(batch, tokens, states * size if wide else states)) if "gated" in rule else None,
                  np.abs(f(batch, tokens, 1 if wide else states, scale=0.5)) if "delta" in rule else None]
        yield Case("LinearAttention", inputs, outputs=2, symbols={tokens: "tokens"} if tokens in (5, 40) else None,
                   q_num_heads=queries, kv_num_heads=states, update_rule=rule, atol=1e-4)
    for taps, length, past, bias, activation, dilation, last in itertools.product(
            (1, 4), (1, 9), (False, True), (False, True), ("none", "silu"), (1, 2), (0, 1)):
        rows = (taps - 1) * dilation
        inputs = [f(batch, length, 6) if last else f(batch, 6, length), f(6, 1, taps), f(6) if bias else None,
                  (f(batch, rows, 6) if last else f(batch, 6, rows)) if past else None]
        yield Case("CausalConvWithState", inputs, outputs=2, constants=[1, 2], symbols={9: "length"}, activation=activation,
                   dilation=dilation, channels_last=last)
    yield Case("LinearAttentionGate", [f(2, 5, 4), f(4), -np.abs(f(4)), f(2, 5, 4)], outputs=2, symbols={5: "tokens"})
    for activation in ("silu", "sigmoid"):
        yield Case("GatedRMSNorm", [f(2, 5, 24), f(8), f(2, 5, 24)], symbols={5: "tokens"}, activation=activation)
    yield Case("GatedAdd", [f(2, 5, 8), f(2, 5, 8), f(2, 5, 1)], symbols={5: "tokens"})


def table_cases(rng, f):
    for bits, block, zeros, indices in itertools.product((2, 4, 8), (16, 32), (False, True), ((3,), (2, 3), ())):
        data = packed(rng, 40, 64, bits=bits)
        inputs = [data, np.asarray(rng.integers(-40, 40, indices)), np.abs(f(40, 64 // block)),
                  packed(rng, 40, 64 // block, bits=bits) if zeros else None]
        yield Case("GatherBlockQuantized", inputs, constants=[0, 2, 3], symbols={3: "count"}, bits=bits, block_size=block,
                   quantize_axis=1, gather_axis=0)
    for kind, block, (columns, rows) in itertools.product((0, 1), (16, 64), ((32, 8), (64, 5), (48, 7))):
        inputs = [f(2, 5, columns), packed(rng, 1, rows * columns, bits=4)[0], np.abs(f(-(-rows * columns // block)))]
        yield Case("MatMulBnb4", inputs, constants=[1, 2], symbols={5: "tokens"}, K=columns, N=rows, block_size=block, quant_type=kind)
    for layout, sections, interleaved, rank in itertools.product((0, 1), ((2, 3, 3), (4, 2, 2), (8, 0, 0)), (0, 1), (3, 4)):
        x = f(2, 5, 48) if rank == 3 else f(2, 3, 5, 16)
        heads = dict(num_heads=3, rotary_embedding_dim=16) if rank == 3 else {}
        yield Case("MRotaryEmbedding", [x, rng.integers(0, 20, (3, 2, 5)), f(20, 8), f(20, 8)], constants=[2, 3], symbols={5: "tokens"},
                   mrope_section=list(sections), mrope_layout=layout, interleaved=interleaved, **heads)


def cases(rng):
    def f(*shape, scale=1.0):
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    return [*expert_cases(rng, f), *state_cases(f), *table_cases(rng, f)]
