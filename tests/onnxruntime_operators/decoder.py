"""A decoder as onnxruntime-genai and Optimum write it: lengths from attention_mask, a cache of open length."""
import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, GROUPS, SIZE, WIDTH, VOCABULARY, LAYERS = 4, 2, 16, 64, 97, 2


def grouped(rng, rotary=True, fused_rows=True, window=-1):
    """GroupQueryAttention with caches, normalizations, and products with weights of 4 bits."""
    nodes, weights = [], []

    def add(op, inputs, outputs, domain="", **attributes):
        nodes.append(helper.make_node(op, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def weight(name, x):
        weights.append(numpy_helper.from_array(x, name))
        return name

    def product(x, name, rows, columns):
        w = rng.integers(0, 256, (columns, rows // 16, 8)).astype(np.uint8)
        s = np.full((columns, rows // 16), 0.02, np.float32)
        return add("MatMulNBits", [x, weight(name + ".w", w), weight(name + ".s", s.reshape(-1))], [name], "com.microsoft",
                   K=rows, N=columns, bits=4, block_size=16)  # accuracy_level 4 would round x to bytes

    one = weight("one", np.array([1], np.int64))
    total = add("Cast", [add("Gather", [add("Shape", ["attention_mask"], ["m.shape"]), weight("i1", np.array(1, np.int64))],
                             ["m.total"], axis=0)], ["total"], to=TensorProto.INT32)
    last = add("Cast", [add("Sub", [add("ReduceSum", ["attention_mask", one], ["m.sum"], keepdims=1), one], ["m.last"])],
               ["last"], to=TensorProto.INT32)
    angles = np.outer(np.arange(64), 10000.0 ** (-np.arange(SIZE // 2) / (SIZE // 2)))
    weight("cos", np.cos(angles).astype(np.float32))
    weight("sin", np.sin(angles).astype(np.float32))
    x = add("Gather", [weight("table", rng.standard_normal((VOCABULARY, WIDTH)).astype(np.float32)), "input_ids"], ["embedded"])
    skip = ""
    for layer in range(LAYERS):
        scale = weight(f"l{layer}.norm", rng.random(WIDTH).astype(np.float32) + 0.5)
        if not skip:
            normal, skip = add("SimplifiedLayerNormalization", [x, scale], [f"l{layer}.n"], axis=-1, epsilon=1e-6, stash_type=1), x
        else:
            nodes.append(helper.make_node("SkipSimplifiedLayerNormalization", [skip, x, scale], [f"l{layer}.n", "", "", f"l{layer}.sum"],
                                          domain="com.microsoft", epsilon=1e-6))
            normal, skip = f"l{layer}.n", f"l{layer}.sum"
        narrow = GROUPS * SIZE
        rows = [product(normal, f"l{layer}.qkv", WIDTH, WIDTH + 2 * narrow), "", ""] if fused_rows else [
            product(normal, f"l{layer}.q", WIDTH, WIDTH), product(normal, f"l{layer}.k", WIDTH, narrow),
            product(normal, f"l{layer}.v", WIDTH, narrow)]
        past = [f"past_key_values.{layer}.{p}" for p in ("key", "value")]
        present = [f"present.{layer}.{p}" for p in ("key", "value")]
        add("GroupQueryAttention", [*rows, *past, last, total, "cos" if rotary else "", "sin" if rotary else ""],
            [f"l{layer}.attention", *present], "com.microsoft", num_heads=HEADS, kv_num_heads=GROUPS, do_rotary=int(rotary),
            local_window_size=window, scale=SIZE ** -0.5)
        attended = product(f"l{layer}.attention", f"l{layer}.o", WIDTH, WIDTH)
        scale2 = weight(f"l{layer}.norm2", rng.random(WIDTH).astype(np.float32) + 0.5)
        nodes.append(helper.make_node("SkipSimplifiedLayerNormalization", [skip, attended, scale2],
                                      [f"l{layer}.n2", "", "", f"l{layer}.sum2"], domain="com.microsoft", epsilon=1e-6))
        skip = f"l{layer}.sum2"
        gate, up = product(f"l{layer}.n2", f"l{layer}.gate", WIDTH, 128), product(f"l{layer}.n2", f"l{layer}.up", WIDTH, 128)
        swish = add("Mul", [gate, add("Sigmoid", [gate], [f"l{layer}.sigmoid"])], [f"l{layer}.swish"])
        x = product(add("Mul", [swish, up], [f"l{layer}.gated"]), f"l{layer}.down", 128, WIDTH)
    add("Add", [skip, x], ["final"])
    product("final", "logits", WIDTH, VOCABULARY + 15)
    cache = ["batch_size", GROUPS, "past_sequence_length", SIZE]
    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
              helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", VOCABULARY + 15])]
    for layer in range(LAYERS):
        for part in ("key", "value"):
            inputs.append(helper.make_tensor_value_info(f"past_key_values.{layer}.{part}", TensorProto.FLOAT, cache))
            outputs.append(helper.make_tensor_value_info(f"present.{layer}.{part}", TensorProto.FLOAT,
                                                         ["batch_size", GROUPS, "total_sequence_length", SIZE]))
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, weights)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def feeds_of(rng, batch, length, past):
    feeds = {"input_ids": rng.integers(0, VOCABULARY, (batch, length)), "attention_mask": np.ones((batch, past + length), np.int64)}
    for layer in range(LAYERS):
        for part in ("key", "value"):
            feeds[f"past_key_values.{layer}.{part}"] = rng.standard_normal((batch, GROUPS, past, SIZE)).astype(np.float32)
    return feeds


def check_all(options, check):
    bad = 0
    print("decoder")
    for arguments in (dict(), dict(fused_rows=False), dict(rotary=False), dict(window=4)):
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "decoder.onnx")
            onnx.save(grouped(np.random.default_rng(1), **arguments), path)
            for batch, length, past in ((1, 7, 0), (2, 7, 0), (1, 1, 7), (2, 1, 9), (1, 3, 11), (1, 1, 1), (1, 1, 0)):
                feeds = feeds_of(np.random.default_rng(2), batch, length, past)
                bad += check(options, f"{arguments} batch {batch}, {length} after {past}", path, feeds, 2e-3) is False
    return bad
