"""Models of one ai.onnx.ml node with random attributes: what exporters seldom write, and ONNX leaves open."""
import numpy as np
from onnx import TensorProto, helper

FEATURES = 4
VERSIONS = {"TreeEnsemble": 5}
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def model_of(op, outputs, kind=TensorProto.FLOAT, rows="n", **attributes):
    version = VERSIONS.get(op, 3 if "tensor" in " ".join(attributes) else 1)
    if op == "LabelEncoder":
        version = 4
    node = helper.make_node(op, ["x"], [name for name, _ in outputs], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", kind, [rows, FEATURES])],
                              [helper.make_tensor_value_info(name, element, None) for name, element in outputs])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def grow(random, depth, nodes, tree, modes, missing):
    """Appends a random tree's nodes; the id of its root."""
    node = len([1 for entry in nodes if entry["tree"] == tree])
    entry = {"tree": tree, "node": node, "yes": 0, "no": 0, "mode": "LEAF", "feature": 0, "value": 0.0, "missing": 0}
    nodes.append(entry)
    if depth > 0 and random.random() < 0.8:
        entry["mode"] = str(random.choice(modes))
        entry["feature"] = int(random.integers(FEATURES))
        entry["value"] = float(random.integers(-2, 3))
        entry["missing"] = int(random.integers(2)) if missing else 0
        entry["yes"] = grow(random, depth - 1, nodes, tree, modes, missing)
        entry["no"] = grow(random, depth - 1, nodes, tree, modes, missing)
    return node


def tree_attributes(random, prefix, targets, used, positive, wide):
    modes = [MODES[0]] if random.random() < 0.4 else list(random.choice(MODES, size=random.integers(1, 4)))
    missing = random.random() < 0.5
    nodes = []
    trees = int(random.integers(1, 6))
    for tree in range(trees):
        grow(random, int(random.integers(0, 5)), nodes, tree, modes, missing)
    weights = []
    one_each = random.random() < 0.5 and trees >= targets  # ONNX Runtime forgets the base value of a target without trees
    for entry in nodes:
        if entry["mode"] != "LEAF":
            continue
        for target in [used[entry["tree"] % len(used)]] if one_each else used:
            number = float(random.normal())
            weights.append((entry["tree"], entry["node"], target, abs(number) / trees if positive else number))
    attributes = {
        "nodes_treeids": [entry["tree"] for entry in nodes],
        "nodes_nodeids": [entry["node"] for entry in nodes],
        "nodes_modes": [entry["mode"] for entry in nodes],
        "nodes_featureids": [entry["feature"] for entry in nodes],
        "nodes_truenodeids": [entry["yes"] for entry in nodes],
        "nodes_falsenodeids": [entry["no"] for entry in nodes],
        f"{prefix}_treeids": [weight[0] for weight in weights],
        f"{prefix}_nodeids": [weight[1] for weight in weights],
        f"{prefix}_ids": [weight[2] for weight in weights],
    }
    if missing:
        attributes["nodes_missing_value_tracks_true"] = [entry["missing"] for entry in nodes]
    for name, numbers in (("nodes_values", [entry["value"] for entry in nodes]), (f"{prefix}_weights", [weight[3] for weight in weights])):
        if wide:
            attributes[name + "_as_tensor"] = helper.make_tensor(name, TensorProto.DOUBLE, [len(numbers)], numbers)
        else:
            attributes[name] = numbers
    return attributes


def feeds(random, dtype, nan=True):
    result = []
    for rows in (1, 23):
        x = random.integers(-3, 4, size=(rows, FEATURES)).astype(dtype)
        if nan and dtype != np.int64:
            x[random.random(x.shape) < 0.1] = np.nan
        result.append({"x": x})
    return result


def tree_regressor(random):
    targets = int(random.integers(1, 4))
    wide = random.random() < 0.2
    attributes = tree_attributes(random, "target", targets, list(range(targets)), False, wide)
    attributes |= {"n_targets": targets, "aggregate_function": str(random.choice(["SUM", "AVERAGE", "MIN", "MAX"])),
                   "post_transform": str(random.choice(TRANSFORMS))}
    if random.random() < 0.5:
        base = [float(number) for number in random.normal(size=targets)]
        if wide:
            attributes["base_values_as_tensor"] = helper.make_tensor("b", TensorProto.DOUBLE, [targets], base)
        else:
            attributes["base_values"] = base
    kind, dtype = (TensorProto.DOUBLE, np.float64) if wide else (TensorProto.FLOAT, np.float32)
    return model_of("TreeEnsembleRegressor", [("y", TensorProto.FLOAT)], kind, **attributes), feeds(random, dtype)


def tree_classifier(random):
    classes = int(random.choice([2, 2, 3, 4]))
    # With two classes that both have weights, ONNX Runtime returns label 1 if the second's score is above 0, whatever the first's.
    used = list(range(classes)) if classes > 2 else [int(random.integers(2))]
    attributes = tree_attributes(random, "class", classes, used, random.random() < 0.4, False)
    attributes |= {"post_transform": str(random.choice(TRANSFORMS))}
    if random.random() < 0.5:
        attributes["classlabels_int64s"] = [int(number) for number in 10 * np.arange(classes) - 5]
    else:
        attributes["classlabels_strings"] = list("abcd")[:classes]
    if random.random() < 0.4 and used != [1]:  # where ONNX Runtime forgets it
        size = classes if len(used) > 1 else 1
        attributes["base_values"] = [float(number) for number in random.normal(size=size)]
    element = TensorProto.INT64 if "classlabels_int64s" in attributes else TensorProto.STRING
    kind, dtype = [(TensorProto.FLOAT, np.float32), (TensorProto.INT64, np.int64)][int(random.random() < 0.3)]
    return model_of("TreeEnsembleClassifier", [("label", element), ("y", TensorProto.FLOAT)], kind, **attributes), feeds(random, dtype)


def tree_ensemble(random):
    branches, leaves, members = [], [], []
    targets = int(random.integers(1, 4))

    def grow_at(depth):
        place = len(branches)
        branches.append(None)
        mode = int(random.integers(7))
        children = []
        for _ in range(2):
            if depth > 0 and random.random() < 0.7:
                children.append((grow_at(depth - 1), 0))
            else:
                leaves.append((float(random.normal()), int(random.integers(targets))))
                children.append((len(leaves) - 1, 1))
        branches[place] = (int(random.integers(FEATURES)), mode, float(random.integers(-2, 3)), *children, int(random.integers(2)))
        return place

    roots = [grow_at(int(random.integers(0, 4))) for _ in range(int(random.integers(1, 5)))]
    for branch in branches:
        if branch[1] == 6:
            members += [float(number) for number in random.choice(7, size=random.integers(1, 6), replace=False) - 3] + [np.nan]
    kind = TensorProto.FLOAT if random.random() < 0.7 else TensorProto.DOUBLE

    def tensor(numbers, element=kind):
        return helper.make_tensor("t", element, [len(numbers)], numbers)

    attributes = {
        "tree_roots": roots, "n_targets": targets,
        "nodes_featureids": [branch[0] for branch in branches],
        "nodes_modes": tensor([branch[1] for branch in branches], TensorProto.UINT8),
        "nodes_splits": tensor([branch[2] for branch in branches]),
        "nodes_truenodeids": [branch[3][0] for branch in branches], "nodes_trueleafs": [branch[3][1] for branch in branches],
        "nodes_falsenodeids": [branch[4][0] for branch in branches], "nodes_falseleafs": [branch[4][1] for branch in branches],
        "nodes_missing_value_tracks_true": [branch[5] for branch in branches],
        "leaf_weights": tensor([leaf[0] for leaf in leaves]), "leaf_targetids": [leaf[1] for leaf in leaves],
        "aggregate_function": int(random.integers(4)), "post_transform": int(random.choice([0, 3])),  # ONNX Runtime exchanges 1 and 2
    }
    if members:
        attributes["membership_values"] = tensor(members)
    dtype = np.float32 if kind == TensorProto.FLOAT else np.float64
    return model_of("TreeEnsemble", [("y", kind)], kind, **attributes), feeds(random, dtype)


def linear_classifier(random):
    classes = int(random.choice([2, 3]))
    scores = 1 if classes == 2 and random.random() < 0.5 else classes
    attributes = {"coefficients": [float(number) for number in random.normal(size=scores * FEATURES)],
                  "intercepts": [float(number) for number in random.normal(size=scores)],
                  "classlabels_ints": list(range(classes)), "post_transform": str(random.choice(TRANSFORMS))}
    return model_of("LinearClassifier", [("label", TensorProto.INT64), ("y", TensorProto.FLOAT)], **attributes), feeds(random, np.float32, False)


def linear_regressor(random):
    targets = int(random.integers(1, 4))
    attributes = {"coefficients": [float(number) for number in random.normal(size=targets * FEATURES)], "targets": targets,
                  "post_transform": str(random.choice(TRANSFORMS))}
    if random.random() < 0.7:
        attributes["intercepts"] = [float(number) for number in random.normal(size=targets)]
    return model_of("LinearRegressor", [("y", TensorProto.FLOAT)], **attributes), feeds(random, np.float32, False)


def svm_classifier(random):
    classes = int(random.choice([2, 3, 4]))
    per_class = [int(number) for number in random.integers(1, 4, size=classes)]
    vectors, pairs = sum(per_class), classes * (classes - 1) // 2
    numbers = lambda count: [float(number) for number in random.normal(size=count)]
    attributes = {"kernel_type": str(random.choice(["LINEAR", "POLY", "RBF", "SIGMOID"])), "kernel_params": [0.3, 0.5, 3.0],
                  "classlabels_ints": list(range(classes)), "post_transform": str(random.choice(["NONE", "LOGISTIC", "SOFTMAX"] if classes > 2 else ["NONE", "LOGISTIC"]))}
    if random.random() < 0.2:
        attributes |= {"coefficients": numbers(classes * FEATURES), "rho": numbers(1), "kernel_type": "LINEAR"}
    else:
        attributes |= {"coefficients": numbers((classes - 1) * vectors), "rho": numbers(pairs), "vectors_per_class": per_class,
                       "support_vectors": numbers(vectors * FEATURES)}
    return model_of("SVMClassifier", [("label", TensorProto.INT64), ("y", TensorProto.FLOAT)], **attributes), feeds(random, np.float32, False)


def svm_regressor(random):
    vectors = int(random.integers(1, 6))
    numbers = lambda count: [float(number) for number in random.normal(size=count)]
    attributes = {"kernel_type": str(random.choice(["LINEAR", "POLY", "RBF", "SIGMOID"])), "kernel_params": [0.3, 0.5, 2.0],
                  "coefficients": numbers(vectors), "support_vectors": numbers(vectors * FEATURES), "rho": numbers(1), "n_supports": vectors,
                  "one_class": int(random.random() < 0.3)}
    return model_of("SVMRegressor", [("y", TensorProto.FLOAT)], **attributes), feeds(random, np.float32, False)


def encoder(random):
    count = int(random.integers(1, 7))
    keys = [int(number) for number in random.choice(7, size=count, replace=False) - 3]
    values = [int(number) for number in random.integers(100, size=count)]
    if random.random() < 0.5:
        attributes = {"keys_int64s": keys, "values_int64s": values, "default_int64": 77}
        return model_of("LabelEncoder", [("y", TensorProto.INT64)], TensorProto.INT64, **attributes), feeds(random, np.int64)
    attributes = {"keys_floats": [float(key) for key in keys], "values_floats": [float(value) for value in values], "default_float": -0.5}
    return model_of("LabelEncoder", [("y", TensorProto.FLOAT)], **attributes), feeds(random, np.float32)


def feature_node(random):
    op = str(random.choice(["Scaler", "Normalizer", "Imputer", "Binarizer", "OneHotEncoder"]))
    wide = random.random() < 0.4
    numbers = [float(number) for number in random.normal(size=int(random.choice([1, FEATURES])))]
    attributes = {"Scaler": {"offset": numbers, "scale": numbers}, "Normalizer": {"norm": str(random.choice(["MAX", "L1", "L2"]))},
                  "Imputer": {"imputed_value_int64s": [5], "replaced_value_int64": 2} if wide else {"imputed_value_floats": numbers, "replaced_value_float": float(random.choice([np.nan, 1]))},
                  "Binarizer": {"threshold": 0.5}, "OneHotEncoder": {"cats_int64s": [2, -1, 3]}}[op]
    wide = wide and op != "Binarizer"
    kind, dtype = (TensorProto.INT64, np.int64) if wide else (TensorProto.FLOAT, np.float32)
    element = kind if op in ("Imputer", "Binarizer") else TensorProto.FLOAT
    return model_of(op, [("y", element)], kind, **attributes), feeds(random, dtype, op == "Imputer")


KINDS = [tree_regressor, tree_classifier, tree_ensemble, linear_classifier, linear_regressor, svm_classifier, svm_regressor, encoder, feature_node]


def random_nodes(count, seed):
    for kind in KINDS:
        for i in range(count):
            model, inputs = kind(np.random.default_rng([seed, i]))
            yield f"node {kind.__name__} {i}", lambda model=model: model, inputs
