// Builds an ONNX model node by node.
//
// Knows: ONNX's messages. Must not know: which models to generate, librt.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tools/onnx/onnx.pb.h"

namespace librt::test {

using Extents = std::vector<int64_t>;
using Names = std::vector<std::string>;
/// Extents of a model's symbols, by name.
using Assignment = std::map<std::string, int64_t>;

inline constexpr int kOnnxFloat = 1;
inline constexpr int kOnnxInt64 = 7;
inline constexpr int kOnnxBool = 9;

struct Attribute {
  std::string name;
  std::variant<int64_t, float, std::string, Extents, rt_onnx::GraphProto> value;

  Attribute(std::string its_name, int64_t number) : name(std::move(its_name)), value(number) {}
  Attribute(std::string its_name, int number) : Attribute(std::move(its_name), int64_t{number}) {}
  Attribute(std::string its_name, float number) : name(std::move(its_name)), value(number) {}
  Attribute(std::string its_name, const char* word) : name(std::move(its_name)), value(std::string(word)) {}
  Attribute(std::string its_name, Extents numbers) : name(std::move(its_name)), value(std::move(numbers)) {}
  Attribute(std::string its_name, rt_onnx::GraphProto graph)
      : name(std::move(its_name)), value(std::move(graph)) {}
};
using Attributes = std::vector<Attribute>;

class Draft {
 public:
  explicit Draft(int opset);

  rt_onnx::ModelProto model;
  int opset = 0;

  /// A graph input; the name of a symbol, or digits, for each dimension.
  std::string input(const std::string& name, int type, const Names& dims);
  /// Adds a node with one result; returns the result's name.
  std::string node(const std::string& op, const Names& inputs, const Attributes& attributes = {});
  Names nodes(const std::string& op, const Names& inputs, size_t outputs, const Attributes& attributes = {});
  /// int64 constants: of rank 1 and of rank 0.
  std::string ints(const Extents& values);
  std::string number(int64_t value);
  std::string floats(const Extents& dims, const std::vector<float>& values);
  std::string flag(bool value);

  /// Everything written after this goes into a body until take_body().
  void begin_body();
  /// A body's input.
  std::string body_input(int type, int rank);
  rt_onnx::GraphProto take_body(const Names& outputs);

  void set_outputs(const Names& names);

 private:
  rt_onnx::GraphProto& graph();
  std::string fresh() { return "v" + std::to_string(next_++); }

  int next_ = 0;
  std::vector<rt_onnx::GraphProto> bodies_;
};

/// The model with static extents in place of its inputs' symbols.
rt_onnx::ModelProto with_extents(const rt_onnx::ModelProto& model, const Assignment& extents);
/// Names of the symbols of the inputs, sorted.
Names symbols_of(const rt_onnx::ModelProto& model);
/// The largest absolute value among integer constants and attributes that could be an extent.
int64_t largest_constant(const rt_onnx::ModelProto& model);
/// Human-readable: one line per input and node.
std::string readable(const rt_onnx::ModelProto& model);

}  // namespace librt::test
