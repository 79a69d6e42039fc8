// Einsum's import against explicit sums over all labels.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "runtime/ops/evaluate.h"
#include "tools/onnx/import.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {
namespace {

struct Sum {
  const char* equation;
  std::vector<Shape> shapes;
  const char* plain;  ///< the equation without ellipses, with all labels and "->"
};

Result<ModelGraph> convert(const std::string& equation, const std::vector<Shape>& shapes,
                           bool symbolic = false) {
  rt_onnx::ModelProto proto;
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(13);
  auto& graph = *proto.mutable_graph();
  auto& node = *graph.add_node();
  node.set_op_type("Einsum");
  auto& attribute = *node.add_attribute();
  attribute.set_name("equation");
  attribute.set_type(3);  // a string
  attribute.set_s(equation);
  for (size_t i = 0; i < shapes.size(); ++i) {
    auto& input = *graph.add_input();
    input.set_name(std::string(1, static_cast<char>('p' + i)));
    node.add_input(input.name());
    auto& tensor = *input.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(1);
    tensor.mutable_shape();
    for (int64_t extent : shapes[i]) {
      auto* dim = tensor.mutable_shape()->add_dim();
      if (symbolic)
        dim->set_dim_param("n");
      else
        dim->set_dim_value(extent);
    }
  }
  node.add_output("y");
  graph.add_output()->set_name("y");
  const std::string bytes = proto.SerializeAsString();
  ImportReport report;
  return import_onnx_bytes(std::as_bytes(std::span(bytes)), {}, report);
}

std::vector<std::string> terms_of(std::string text) {
  std::vector<std::string> terms(1);
  for (char c : text) {
    if (c == '-' || c == '>' || c == ',') {
      if (c != '>') terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  return terms;
}

/// The flat index of a term's element at the labels' values; extents of 1 broadcast.
int64_t place(const std::string& term, const Shape& shape, std::map<char, int64_t>& at) {
  int64_t offset = 0;
  for (int d = 0; d < shape.rank(); ++d)
    offset = offset * shape[d] + (shape[d] == 1 ? 0 : at[term[static_cast<size_t>(d)]]);
  return offset;
}

std::vector<float> expected(const Sum& sum, const std::vector<ops::HostTensor>& inputs) {
  std::vector<std::string> terms = terms_of(sum.plain);
  const std::string result = terms.back();
  terms.pop_back();
  std::map<char, int64_t> extents, at;
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t d = 0; d < terms[i].size(); ++d)
      extents[terms[i][d]] = std::max(extents[terms[i][d]], sum.shapes[i][static_cast<int>(d)]);
  Shape shape;
  for (char label : result) shape.push_back(extents[label]);
  std::vector<float> y(static_cast<size_t>(shape.elements()));
  for (;;) {
    float product = 1;
    for (size_t i = 0; i < terms.size(); ++i)
      product *= inputs[i].view().as<float>()[place(terms[i], sum.shapes[i], at)];
    y[static_cast<size_t>(place(result, shape, at))] += product;
    auto label = extents.begin();
    while (label != extents.end() && ++at[label->first] == label->second) at[(label++)->first] = 0;
    if (label == extents.end()) return y;
  }
}

TEST(ImportEinsum, AgreesWithSumsOverAllLabels) {
  const Sum kSums[] = {
      {"ij,jk->ik", {{2, 3}, {3, 4}}, "ij,jk->ik"},
      {"ij,jk", {{2, 3}, {3, 4}}, "ij,jk->ik"},
      {"ba", {{2, 3}}, "ba->ab"},
      {"ij->ji", {{2, 3}}, "ij->ji"},
      {"i,i", {{4}, {4}}, "i,i->"},
      {"ii", {{3, 3}}, "ii->"},
      {"iij->ji", {{3, 3, 2}}, "iij->ji"},
      {"iii->i", {{3, 3, 3}}, "iii->i"},
      {"i,j->ij", {{2}, {3}}, "i,j->ij"},
      {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}, "bij,bjk->bik"},
      {"bhid,bhjd->bhij", {{2, 3, 4, 5}, {2, 3, 6, 5}}, "bhid,bhjd->bhij"},
      {"abc,cd,def->ebf", {{2, 3, 4}, {4, 2}, {2, 3, 2}}, "abc,cd,def->ebf"},
      {"ij,ij,ij->i", {{2, 3}, {2, 3}, {2, 3}}, "ij,ij,ij->i"},
      {"...ij,...jk->...ik", {{2, 3, 2, 4}, {3, 4, 5}}, "abij,bjk->abik"},
      {"...ii->...i", {{2, 3, 3}}, "aii->ai"},
      {"i...,...j", {{2, 4}, {4, 3}}, "ia,aj->aij"},
      {"... , ...", {{2, 3}, {3}}, "ab,b->ab"},
      {"...i->", {{2, 3, 2}}, "abi->"},
      {"ij,jk->ik", {{2, 1}, {3, 4}}, "ij,jk->ik"},
      {"bi,bi->b", {{1, 3}, {4, 3}}, "bi,bi->b"},
      {",ij->ij", {{}, {2, 2}}, ",ij->ij"},
      {"->", {{}}, "->"},
      {"abcd,cbed->ae", {{2, 3, 4, 2}, {4, 3, 5, 2}}, "abcd,cbed->ae"},
      {"Aa->aA", {{2, 3}}, "Aa->aA"},
  };
  for (const Sum& sum : kSums) {
    SCOPED_TRACE(sum.equation);
    std::vector<ops::HostTensor> inputs;
    std::vector<ConstTensorView> views;
    for (const Shape& shape : sum.shapes) {
      auto& input = inputs.emplace_back(TensorInfo{DType::F32, shape});
      for (int64_t i = 0; i < shape.elements(); ++i)
        input.view().as<float>()[i] = static_cast<float>((7 * i + 3) % 11) - 4;
    }
    for (const auto& input : inputs) views.push_back(input.view());
    const auto model = convert(sum.equation, sum.shapes);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto result = ops::evaluate_graph(model->entries[0].graph, views);
    ASSERT_TRUE(result.ok()) << result.status().message();
    const std::vector<float> want = expected(sum, inputs);
    ASSERT_EQ(result->front().info.elements(), static_cast<int64_t>(want.size()));
    for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(result->front().view().as<float>()[i], want[i]) << i;
  }
}

TEST(ImportEinsum, TakesSymbolicExtents) {
  for (const char* equation : {"ij,jk->ik", "ii,ij->j", "i...,j...->ij...", "ab,bc->abc"})
    EXPECT_TRUE(convert(equation, {{2, 2}, {2, 2}}, true).ok()) << equation;
}

TEST(ImportEinsum, RefusesWhatIsNoEquation) {
  const struct {
    const char* equation;
    std::vector<Shape> shapes;
    const char* part;
  } kErrors[] = {
      {"ij,jk->ik", {{2, 3}}, "expected 1 terms"},
      {"ij->ji", {{2, 3, 4}}, "has 2 letters, input 0 has rank 3"},
      {"ij->jk", {{2, 3}}, "found k"},
      {"ij->ii", {{2, 3}}, "found i"},
      {"i1->i", {{2, 3}}, "expected letters"},
      {"i..->i", {{2, 3}}, "expected letters"},
      {"......->", {{2, 3}}, "expected letters"},
      {"ij->i->j", {{2, 3}}, "expected letters"},
      {"ij,jk->ik", {{2, 3}, {4, 5}}, "along j disagree: 3 and 4"},
      {"ii->i", {{2, 3}}, "along i disagree: 2 and 3"},
  };
  for (const auto& [equation, shapes, part] : kErrors) {
    const auto model = convert(equation, shapes);
    ASSERT_FALSE(model.ok()) << equation;
    EXPECT_NE(model.status().message().find(part), std::string::npos) << model.status().message();
  }
}

}  // namespace
}  // namespace librt::onnx
