// Operators of the application in ONNX models: signatures, declared results, attributes, what is refused.
#include <gtest/gtest.h>

#include "runtime/geometry/custom.h"
#include "tests/support/onnx_model.h"
#include "tools/compiler/pipeline.h"
#include "tools/onnx/custom.h"
#include "tools/onnx/import.h"

namespace librt::onnx {
namespace {

/// Types of ONNX's attributes.
constexpr int kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kFloats = 6, kInts = 7;

/// y = Scale(x f32[batch,3], w f32[3]) of the domain com.example; y is declared as f32[batch,3].
struct Model {
  Model() {
    proto.set_ir_version(8);
    for (const char* domain : {"", "com.example"}) {
      auto* opset = proto.add_opset_import();
      opset->set_domain(domain);
      opset->set_version(13);
    }
    test::set_value(*graph().add_input(), "x", {-1, 3});
    test::set_value(*graph().add_input(), "w", {3});
    test::set_value(*graph().add_output(), "y", {-1, 3});
    node = &test::add_node(graph(), "Scale", {"x", "w"}, "y");
    node->set_domain("com.example");
  }
  rt_onnx::GraphProto& graph() { return *proto.mutable_graph(); }
  rt_onnx::AttributeProto& attribute(const char* name, int type) {
    auto& attribute = *node->add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }
  Result<ModelGraph> convert(const ImportOptions& options) {
    const std::string bytes = proto.SerializeAsString();
    report = {};
    return import_onnx_bytes(std::as_bytes(std::span(bytes)), options, report);
  }
  /// The reason why it is not converted, with advice.
  std::string refusal(const ImportOptions& options) {
    const auto made = convert(options);
    if (made.ok()) return "converted";
    if (report.unsupported.empty()) return made.status().message();
    return report.unsupported[0].reason + "; " + report.unsupported[0].help;
  }

  rt_onnx::ModelProto proto;
  rt_onnx::NodeProto* node;
  ImportReport report;
};

const ImportOptions kDomain{.custom_domains = {"com.example"}};
ImportOptions with(const std::string& signature) {
  return {.custom_outputs = {{"com.example:Scale", signature}}};
}

const op::CustomAttributes* custom_of(const ModelGraph& model) {
  for (const Node& node : model.entries[0].graph.nodes)
    if (node.kind() == OpKind::Custom) return &node.as<op::CustomAttributes>();
  return nullptr;
}

#define EXPECT_SAYS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

TEST(ImporterCustom, KeepsNodesOfADomain) {
  Model model;
  model.attribute("axis", kInt).set_i(-1);
  auto& sizes = model.attribute("sizes", kInts);
  for (const int64_t size : {7, 8}) sizes.add_ints(size);
  model.attribute("alpha", kFloat).set_f(0.5f);
  model.attribute("betas", kFloats).add_floats(2);
  model.attribute("mode", kString).set_s("two words: \x01");
  model.attribute("nothing", kInts);
  EXPECT_SAYS(model.refusal({}), "--custom-domain");
  const auto made = model.convert(kDomain);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const op::CustomAttributes* custom = custom_of(*made);
  ASSERT_NE(custom, nullptr);
  EXPECT_EQ(custom->domain, "com.example");
  EXPECT_EQ(custom->name, "Scale");
  EXPECT_EQ(custom->outputs, (std::vector<int64_t>{RT_F32, 2, custom_extent_of(0, 0), 3}));
  EXPECT_EQ(custom->attributes, "axis:i1 sizes:i2 alpha:f1 betas:f1 mode:s12 nothing:i0");
  EXPECT_EQ(custom->ints, (std::vector<int64_t>{-1, 7, 8}));
  EXPECT_EQ(custom->floats, (std::vector<float>{0.5f, 2}));
  EXPECT_EQ(custom->text, "two words: \x01");
  const Graph& graph = made->entries[0].graph;
  const Value& y = graph[graph.outputs[0]];
  EXPECT_EQ(graph.symbols[static_cast<size_t>(y.dims[0].symbol)].name, "batch");
  EXPECT_EQ(y.dims[1].extent, 3);
}

TEST(ImporterCustom, SurvivesThePasses) {
  Model model;
  auto made = model.convert(kDomain);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Status status = compiler::optimize(*made, {}, nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_NE(custom_of(*made), nullptr);
}

TEST(ImporterCustom, FixedDimensionsAreConstants) {
  Model model;
  ImportOptions options = kDomain;
  options.dims = {{"batch", 5}};
  const auto made = model.convert(options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(custom_of(*made)->outputs, (std::vector<int64_t>{RT_F32, 2, 5, 3}));
}

TEST(ImporterCustom, TakesResultsFromASignature) {
  const auto outputs = [](const char* signature) {
    Model model;
    model.graph().mutable_output(0)->clear_type();
    const auto made = model.convert(with(signature));
    EXPECT_TRUE(made.ok()) << signature << ": " << model.refusal(with(signature));
    return made.ok() ? custom_of(*made)->outputs : std::vector<int64_t>();
  };
  const int64_t batch = custom_extent_of(0, 0);
  EXPECT_EQ(outputs("[N,C],[C]->[N]"), (std::vector<int64_t>{RT_F32, 1, batch}));
  EXPECT_EQ(outputs(" [N, C], [C] -> i64[C, N, 7]"), (std::vector<int64_t>{RT_I64, 3, 3, batch, 7}));
  EXPECT_EQ(outputs("[*],[3]->[*],bool[]"), (std::vector<int64_t>{RT_F32, 2, batch, 3}));
  EXPECT_EQ(outputs("[*],[*],[M]->u8[]"), (std::vector<int64_t>{RT_U8, 0}));
  EXPECT_EQ(outputs("[N,3],[3]->f16[0]"), (std::vector<int64_t>{RT_F16, 1, 0}));
}

TEST(ImporterCustom, RefusesSignaturesThatDoNotFit) {
  for (const auto& [signature, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {"[N,C]->[N]", "expected at most the 1 inputs of its signature, found 2"},
           {"[N],[C]->[N]", "expected input 0 of rank 1 by its signature"},
           {"[N,4],[C]->[N]", "expected extent 4 for 4, axis 1 of input 0, found 3"},
           {"[N,C],[4]->[N]", "expected extent 4 for 4, axis 0 of input 1, found 3"},
           {"[N,C],[C]->[K]", "K is no extent of an input"},
           {"[N,C],[C]->[*]", "no input has the shape [*]"},
           {"[N,C],[C]", "expected a signature"},
           {"[N,C],[C]->", "expected a signature"},
           {"[N,C][C]->[N]", "expected a signature"},
           {"[N,C],[C->[N]", "expected a signature"},
           {"f32[N,C],[C]->[N]", "expected a signature"},
           {"[N,C],[C]->f33[N]", "expected a signature"},
           {"[N,],[C]->[N]", "expected a signature"},
           {"[N,*],[C]->[N]", "expected a signature"},
           {"[N,99999999999999999999],[C]->[N]", "expected a signature"},
           {"[N,C],[C]->[1,2,3,4,5,6,7,8,9]", "a rank"}}) {
    Model model;
    EXPECT_SAYS(model.refusal(with(signature)), words) << signature;
  }
  Model model;
  model.node->add_output("second");
  EXPECT_SAYS(model.refusal(with("[*],[*]->[*]")),
              "expected at most the 1 results of its signature, found 2");
}

TEST(ImporterCustom, RefusesWhatIsNotDeclared) {
  Model hidden;
  hidden.graph().mutable_output(0)->clear_type();
  EXPECT_SAYS(hidden.refusal(kDomain), "without a type of librt and a shape; give --custom-output");
  Model inner;
  inner.node->set_output(0, "inner");
  test::add_node(inner.graph(), "Neg", {"inner"}, "y");
  EXPECT_SAYS(inner.refusal(kDomain), "does not declare type and shape of its result 'inner'");
  test::set_value(*inner.graph().add_value_info(), "inner", {-1, 3});
  EXPECT_TRUE(inner.convert(kDomain).ok());
  Model other;
  auto* dims = other.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  dims->mutable_dim(0)->set_dim_param("rows");
  EXPECT_SAYS(other.refusal(kDomain), "the extent 'rows', which no input of the node has");
  dims->mutable_dim(0)->set_dim_value(-7);
  EXPECT_SAYS(other.refusal(kDomain), "the extent -7");
}

TEST(ImporterCustom, RefusesAttributesThatKernelsDoNotGet) {
  Model tensor;
  tensor.attribute("table", kTensor);
  EXPECT_SAYS(tensor.refusal(kDomain), "attribute 'table': a kernel of the application gets integers");
  Model named;
  named.attribute("a b", kInt).set_i(1);
  EXPECT_SAYS(named.refusal(kDomain), "'a b' is no name of an attribute");
  Model large;
  auto& many = large.attribute("many", kInts);
  for (int i = 0; i < 300; ++i) many.add_ints(i);
  EXPECT_SAYS(large.refusal(kDomain), "have 300 numbers");
}

TEST(ImporterCustom, OptionsWithoutEffectAreErrors) {
  Model model;
  EXPECT_SAYS(model.refusal({.custom_domains = {"com.example", "org"}}), "no node of this domain");
  ImportOptions options = kDomain;
  options.custom_outputs = {{"com.example:Sale", "[N]->[N]"}};
  EXPECT_SAYS(model.refusal(options), "--custom-output com.example:Sale: the model has no such node");
}

}  // namespace
}  // namespace librt::onnx
