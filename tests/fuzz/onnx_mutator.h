// Changes ONNX models so that they still parse: what the importer's code for operators sees.
//
// Knows: the messages, names of operators and attributes. Must not know: what an operator computes. Debian
// has no libprotobuf-mutator, and the importer's messages are of the lite runtime, without reflection.
#pragma once

#include "tests/fuzz/random.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::fuzz {

/// Changes operators, attributes, operands, tensors, shapes or the order of nodes in one to four places.
void mutate(rt_onnx::ModelProto& model, Random& random);

/// Changes extents, type or data in one to four places.
void mutate(rt_onnx::TensorProto& tensor, Random& random);

/// Appends nodes and initializers of `from`; names that both have join them.
void splice(rt_onnx::ModelProto& into, const rt_onnx::ModelProto& from, Random& random);

}  // namespace librt::fuzz
