// The import of ai.onnx.ml against plain formulas: trees evaluated row by row, sums, tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "runtime/ops/evaluate.h"
#include "tools/compiler/pipeline.h"
#include "tools/onnx/import.h"
#include "tools/onnx/onnx.pb.h"

namespace librt::onnx {
namespace {

constexpr int64_t kFeatures = 3;
constexpr int kFloat = 1, kInt64 = 7, kString = 8;

/// A model of one node (and more, if a test adds them) with a dynamic number of rows.
class Model {
 public:
  explicit Model(const std::string& op, int input_type = kFloat, int64_t version = 3) {
    proto.set_ir_version(8);
    import("", 17);
    import("ai.onnx.ml", version);
    proto.mutable_graph()->add_input()->set_name("x");
    auto& tensor = *proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(input_type);
    tensor.mutable_shape()->add_dim()->set_dim_param("n");
    tensor.mutable_shape()->add_dim()->set_dim_value(kFeatures);
    add(op, "ai.onnx.ml", {"x"}, {"y"});
  }
  void import(const std::string& domain, int64_t version) {
    proto.add_opset_import()->set_domain(domain);
    proto.mutable_opset_import(proto.opset_import_size() - 1)->set_version(version);
  }
  void add(const std::string& op, const std::string& domain, const std::vector<std::string>& inputs,
           const std::vector<std::string>& outputs) {
    auto& node = *proto.mutable_graph()->add_node();
    node.set_op_type(op);
    node.set_domain(domain);
    for (const auto& name : inputs) node.add_input(name);
    for (const auto& name : outputs) node.add_output(name);
    proto.mutable_graph()->clear_output();
    for (const auto& name : outputs) proto.mutable_graph()->add_output()->set_name(name);
  }
  rt_onnx::AttributeProto& attribute(const std::string& name, int type) {
    auto& node = *proto.mutable_graph()->mutable_node(proto.graph().node_size() - 1);
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.name() == name) {
        attribute.Clear();
        attribute.set_name(name);
        attribute.set_type(type);
        return attribute;
      }
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }
  void set(const std::string& name, const std::vector<int64_t>& numbers) {
    auto& list = attribute(name, 7);
    for (int64_t number : numbers) list.add_ints(number);
  }
  void set(const std::string& name, const std::vector<float>& numbers) {
    auto& list = attribute(name, 6);
    for (float number : numbers) list.add_floats(number);
  }
  void set(const std::string& name, const std::vector<std::string>& texts) {
    auto& list = attribute(name, 8);
    for (const auto& entry : texts) list.add_strings(entry);
  }
  void set(const std::string& name, const char* value) { attribute(name, 3).set_s(value); }
  void set(const std::string& name, int value) { attribute(name, 2).set_i(value); }
  void set(const std::string& name, float value) { attribute(name, 1).set_f(value); }
  void set_tensor(const std::string& name, int type, const std::vector<float>& numbers) {
    auto& tensor = *attribute(name, 4).mutable_t();
    tensor.set_data_type(type);
    tensor.add_dims(static_cast<int64_t>(numbers.size()));
    for (float number : numbers)
      if (type == kFloat)
        tensor.add_float_data(number);
      else
        tensor.add_int32_data(static_cast<int32_t>(number));
  }
  Result<ModelGraph> convert() {
    const std::string bytes = proto.SerializeAsString();
    report = {};
    return import_onnx_bytes(std::as_bytes(std::span(bytes)), {}, report);
  }
  /// The importer's error messages.
  std::string error() {
    const auto result = convert();
    if (result.ok()) return "";
    std::string all = result.status().message();
    for (const auto& node : report.unsupported) all += "\n" + node.reason + "; " + node.help;
    return all;
  }

  rt_onnx::ModelProto proto;
  ImportReport report;
};

std::vector<ops::HostTensor> run(Model& model, const void* data, DType dtype, int64_t rows) {
  auto graph = model.convert();
  EXPECT_TRUE(graph.ok()) << model.error();
  if (!graph.ok()) return {};
  const Status composed = compiler::expand_composites(graph->entries[0].graph, {});
  EXPECT_TRUE(composed.ok()) << composed.message();
  const ConstTensorView x{data, {.dtype = dtype, .shape = {rows, kFeatures}}};
  auto result = ops::evaluate_graph(graph->entries[0].graph, {{x}});
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? std::move(*result) : std::vector<ops::HostTensor>();
}

template <class T>
std::vector<T> values_of(const ops::HostTensor& tensor) {
  const T* data = reinterpret_cast<const T*>(tensor.bytes.data());
  return {data, data + tensor.bytes.size() / sizeof(T)};
}

std::vector<float> run_floats(Model& model, const std::vector<float>& x, size_t output = 0) {
  const auto result = run(model, x.data(), DType::F32, static_cast<int64_t>(x.size()) / kFeatures);
  return output < result.size() ? values_of<float>(result[output]) : std::vector<float>();
}

void expect_near(const std::vector<float>& found, const std::vector<float>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5F) << "element " << i;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// --- trees

struct Node {
  int64_t tree = 0, id = 0, feature = 0, yes = 0, no = 0, missing = 0;
  std::string mode = "LEAF";
  float value = 0;
  std::vector<float> weights;  ///< by target
};

int64_t grow(std::mt19937& random, std::vector<Node>& nodes, int64_t tree, int depth, size_t targets) {
  static const char* const kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                       "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  const size_t at = nodes.size();
  const size_t first = static_cast<size_t>(
      std::find_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.tree == tree; }) -
      nodes.begin());
  nodes.push_back({.tree = tree, .id = static_cast<int64_t>(10 * (at - first) + 3)});
  if (depth == 0) {
    for (size_t i = 0; i < targets; ++i)
      nodes[at].weights.push_back(static_cast<float>(random() % 64) / 8 - 4);
    return nodes[at].id;
  }
  nodes[at].mode = kModes[random() % 6];
  nodes[at].feature = random() % kFeatures;
  nodes[at].value = static_cast<float>(random() % 5) - 2;
  nodes[at].missing = random() % 2;
  const int64_t yes = grow(random, nodes, tree, depth - 1, targets);
  const int64_t no =
      grow(random, nodes, tree, static_cast<int>(random() % static_cast<unsigned>(depth)), targets);
  nodes[at].yes = yes;
  nodes[at].no = no;
  return nodes[at].id;
}

bool compares(const std::string& mode, float x, float value) {
  if (mode == "BRANCH_LEQ") return x <= value;
  if (mode == "BRANCH_LT") return x < value;
  if (mode == "BRANCH_GTE") return x >= value;
  if (mode == "BRANCH_GT") return x > value;
  if (mode == "BRANCH_EQ") return x == value;
  return x != value;
}

const Node& leaf_of(const std::vector<Node>& nodes, int64_t tree, const float* row) {
  const auto find = [&](int64_t id) -> const Node& {
    return *std::find_if(nodes.begin(), nodes.end(),
                         [&](const Node& node) { return node.tree == tree && node.id == id; });
  };
  const Node* node = &find(3);
  while (node->mode != "LEAF") {
    const float x = row[node->feature];
    const bool yes = compares(node->mode, x, node->value) || (std::isnan(x) && node->missing == 1);
    node = &find(yes ? node->yes : node->no);
  }
  return *node;
}

void write(Model& model, const std::vector<Node>& nodes, const std::string& prefix) {
  std::vector<int64_t> trees, ids, features, yes, no, missing, of_tree, of_node, target;
  std::vector<float> values, weights;
  std::vector<std::string> modes;
  for (const Node& node : nodes) {
    trees.push_back(node.tree);
    ids.push_back(node.id);
    features.push_back(node.feature);
    yes.push_back(node.yes);
    no.push_back(node.no);
    missing.push_back(node.missing);
    values.push_back(node.value);
    modes.push_back(node.mode);
    for (size_t i = 0; i < node.weights.size(); ++i) {
      of_tree.push_back(node.tree);
      of_node.push_back(node.id);
      target.push_back(static_cast<int64_t>(i));
      weights.push_back(node.weights[i]);
    }
  }
  model.set("nodes_treeids", trees);
  model.set("nodes_nodeids", ids);
  model.set("nodes_featureids", features);
  model.set("nodes_truenodeids", yes);
  model.set("nodes_falsenodeids", no);
  model.set("nodes_missing_value_tracks_true", missing);
  model.set("nodes_values", values);
  model.set("nodes_modes", modes);
  model.set(prefix + "_treeids", of_tree);
  model.set(prefix + "_nodeids", of_node);
  model.set(prefix + "_ids", target);
  model.set(prefix + "_weights", weights);
}

std::vector<float> random_rows(std::mt19937& random, int64_t rows) {
  std::vector<float> x(static_cast<size_t>(rows * kFeatures));
  for (float& value : x) value = random() % 8 == 0 ? std::nanf("") : static_cast<float>(random() % 7) - 3;
  return x;
}

TEST(ImportTrees, RegressorAgreesWithWalksOfSingleRows) {
  std::mt19937 random(3);
  const char* const kHow[] = {"SUM", "AVERAGE", "MIN", "MAX"};
  for (int round = 0; round < 24; ++round) {
    const size_t targets = 1 + random() % 3;
    const int64_t trees = 1 + random() % 4;
    std::vector<Node> nodes;
    for (int64_t tree = 0; tree < trees; ++tree)
      grow(random, nodes, 7 * tree, static_cast<int>(random() % 4), targets);
    const std::string how = kHow[round % 4];
    Model model("TreeEnsembleRegressor");
    write(model, nodes, "target");
    model.set("n_targets", static_cast<int>(targets));
    model.set("aggregate_function", how.c_str());
    model.set("base_values", std::vector<float>(targets, 0.25F));
    for (int64_t rows : {1, 6}) {
      const std::vector<float> x = random_rows(random, rows);
      std::vector<float> wanted;
      for (int64_t n = 0; n < rows; ++n)
        for (size_t t = 0; t < targets; ++t) {
          float score = leaf_of(nodes, 0, &x[static_cast<size_t>(n * kFeatures)]).weights[t];
          for (int64_t tree = 1; tree < trees; ++tree) {
            const float weight = leaf_of(nodes, 7 * tree, &x[static_cast<size_t>(n * kFeatures)]).weights[t];
            score = how == "MIN"   ? std::min(score, weight)
                    : how == "MAX" ? std::max(score, weight)
                                   : score + weight;
          }
          wanted.push_back((how == "AVERAGE" ? score / static_cast<float>(trees) : score) + 0.25F);
        }
      SCOPED_TRACE(how + ", round " + std::to_string(round));
      expect_near(run_floats(model, x), wanted);
    }
  }
}

TEST(ImportTrees, ClassifierWithNamesGivesPositionsAndTheList) {
  std::mt19937 random(5);
  std::vector<Node> nodes;
  for (int64_t tree = 0; tree < 3; ++tree) grow(random, nodes, 7 * tree, 3, 3);
  Model model("TreeEnsembleClassifier");
  model.proto.mutable_graph()->mutable_node(0)->add_output("scores");
  model.proto.mutable_graph()->add_output()->set_name("scores");
  write(model, nodes, "class");
  model.set("classlabels_strings", std::vector<std::string>{"a", "b \"c\"", "d"});
  const std::vector<float> x = random_rows(random, 9);
  const auto result = run(model, x.data(), DType::F32, 9);
  ASSERT_EQ(result.size(), 2U);
  EXPECT_EQ(model.report.metadata["labels.y"], R"(["a","b \"c\"","d"])");
  const auto labels = values_of<int64_t>(result[0]);
  const auto scores = values_of<float>(result[1]);
  for (size_t n = 0; n < 9; ++n) {
    size_t best = 0;
    for (size_t t = 0; t < 3; ++t) {
      float sum = 0;
      for (int64_t tree = 0; tree < 3; ++tree) sum += leaf_of(nodes, 7 * tree, &x[n * kFeatures]).weights[t];
      EXPECT_NEAR(scores[3 * n + t], sum, 1e-5F);
      if (scores[3 * n + t] > scores[3 * n + best]) best = t;
    }
    EXPECT_EQ(labels[n], static_cast<int64_t>(best));
  }
}

/// x0 <= 1 ? 0.75 : -0.5, in one tree.
std::vector<Node> stump(float yes, float no) {
  return {{.id = 3, .yes = 13, .no = 23, .mode = "BRANCH_LEQ", .value = 1},
          {.id = 13, .weights = {yes}},
          {.id = 23, .weights = {no}}};
}

TEST(ImportTrees, TwoClassesWithOneScore) {
  const std::vector<float> x = {0, 0, 0, 2, 0, 0};
  Model model("TreeEnsembleClassifier");
  model.proto.mutable_graph()->mutable_node(0)->add_output("scores");
  model.proto.mutable_graph()->add_output()->set_name("scores");
  write(model, stump(0.75F, 0.25F), "class");
  model.set("classlabels_int64s", std::vector<int64_t>{-4, 9});
  expect_near(run_floats(model, x, 1), {0.25F, 0.75F, 0.75F, 0.25F});
  EXPECT_EQ(values_of<int64_t>(run(model, x.data(), DType::F32, 2)[0]), (std::vector<int64_t>{9, -4}));
  model.set("class_weights", std::vector<float>{0.75F, -0.5F});
  expect_near(run_floats(model, x, 1), {-0.75F, 0.75F, 0.5F, -0.5F});
  model.set("post_transform", "LOGISTIC");
  const auto logistic = [](float v) { return 1 / (1 + std::exp(-v)); };
  expect_near(run_floats(model, x, 1), {logistic(-0.75F), logistic(0.75F), logistic(0.5F), logistic(-0.5F)});
}

TEST(ImportTrees, MembersOfSets) {
  Model model("TreeEnsemble", kFloat, 5);
  model.set("tree_roots", std::vector<int64_t>{0});
  model.set("nodes_featureids", std::vector<int64_t>{0, 1});
  model.set_tensor("nodes_modes", 2, {6, 6});
  model.set_tensor("nodes_splits", kFloat, {0, 0});
  model.set("nodes_truenodeids", std::vector<int64_t>{1, 1});
  model.set("nodes_trueleafs", std::vector<int64_t>{0, 1});
  model.set("nodes_falsenodeids", std::vector<int64_t>{0, 2});
  model.set("nodes_falseleafs", std::vector<int64_t>{1, 1});
  model.set("leaf_targetids", std::vector<int64_t>{0, 0, 0});
  model.set_tensor("leaf_weights", kFloat, {1, 2, 3});
  model.set_tensor("membership_values", kFloat, {5, -1, 3, 8, 0, std::nanf(""), 2});
  std::vector<float> x, wanted;
  for (int first = -2; first < 10; ++first)
    for (int second : {1, 2}) {
      x.insert(x.end(), {static_cast<float>(first), static_cast<float>(second), 0});
      const bool member = first == 5 || first == -1 || first == 3 || first == 8 || first == 0;
      wanted.push_back(!member ? 1.0F : second == 2 ? 2.0F : 3.0F);
    }
  x.insert(x.end(), {std::nanf(""), 2, 0, 5, std::nanf(""), 0});
  wanted.insert(wanted.end(), {1, 3});
  expect_near(run_floats(model, x), wanted);
  model.set_tensor("membership_values", kFloat, {5, std::nanf("")});
  EXPECT_TRUE(contains(model.error(), "membership_values: expected 2 lists")) << model.error();
}

TEST(ImportTrees, RefusesWhatIsNoTree) {
  const auto broken = [](auto change) {
    Model model("TreeEnsembleRegressor");
    std::vector<Node> nodes = stump(1, 2);
    nodes.push_back({.id = 33, .yes = 13, .no = 43, .mode = "BRANCH_LT"});
    nodes.push_back({.id = 43, .weights = {3}});
    nodes[0].no = 33;
    nodes[3].yes = 23;
    change(model, nodes);
    write(model, nodes, "target");
    return model.error();
  };
  using Nodes = std::vector<Node>;
  EXPECT_EQ(broken([](Model&, Nodes&) {}), "");
  const std::pair<std::string, std::string> kCases[] = {
      {broken([](Model&, Nodes& nodes) {
         nodes[3].yes = 33;
         nodes.erase(nodes.begin() + 2);
       }),
       "node 33 of tree 0 leads back to itself"},
      {broken([](Model&, Nodes& nodes) {
         nodes[3].yes = 3;
         nodes.erase(nodes.begin() + 2);
       }),
       "tree 0 has no root"},
      {broken([](Model&, Nodes& nodes) { nodes[3].no = 3; }), "node 3 of tree 0 is reached from no root"},
      {broken([](Model&, Nodes& nodes) { nodes[3].no = 77; }), "leads to node 77, which is not there"},
      {broken([](Model&, Nodes& nodes) { nodes[0].no = 13; }), "expected one root for each tree, found two"},
      {broken([](Model&, Nodes& nodes) { nodes[4].id = 13; }), "node 13 of tree 0 is there twice"},
      {broken([](Model&, Nodes& nodes) { nodes[0].feature = kFeatures; }), "3 is no feature of the input"},
      {broken([](Model&, Nodes& nodes) { nodes[0].feature = -1; }), "-1 is no feature"},
      {broken([](Model&, Nodes& nodes) { nodes[0].mode = "BRANCH"; }), "found BRANCH"},
      {broken([](Model&, Nodes& nodes) {
         nodes[4].weights = {1, 2};
       }),
       "target_ids: 1 is outside of [0,1)"},
      {broken([](Model& model, Nodes&) { model.set("n_targets", 1 << 30); }), "n_targets: expected 1 to"},
      {broken([](Model& model, Nodes&) {
         model.set("base_values", std::vector<float>{1, 2});
       }),
       "base_values"},
  };
  for (const auto& [found, wanted] : kCases)
    EXPECT_TRUE(contains(found, wanted)) << found << " for " << wanted;
  Model shorter("TreeEnsembleRegressor");
  write(shorter, stump(1, 2), "target");
  shorter.set("nodes_values", std::vector<float>{1});
  EXPECT_TRUE(contains(shorter.error(), "nodes_values: expected 3 entries")) << shorter.error();
  Model deep("TreeEnsembleRegressor");
  std::vector<Node> chain;
  for (int64_t i = 0; i < 2000; ++i)
    chain.push_back({.id = i, .yes = i + 1, .no = 2000, .mode = "BRANCH_LEQ"});
  chain.push_back({.id = 2000, .weights = {1}});
  write(deep, chain, "target");
  EXPECT_TRUE(contains(deep.error(), "levels")) << deep.error();
}

// --- the others

TEST(ImportMl, SupportVectorsAgreeWithSums) {
  const std::vector<float> vectors = {0.5F, -1, 2, 1, 1, 0, -2, 0.25F, 1, 3, -1, -1};
  const std::vector<float> coefficients = {0.5F, -0.25F, 1, -2, 1.5F, 0.75F, -0.5F, 1};
  const std::vector<float> rho = {0.1F, -0.2F, 0.3F}, x = {1, 0, 1, -1, 2, 0.5F};
  Model model("SVMClassifier");
  model.proto.mutable_graph()->mutable_node(0)->add_output("scores");
  model.proto.mutable_graph()->add_output()->set_name("scores");
  model.set("kernel_type", "RBF");
  model.set("kernel_params", std::vector<float>{0.3F, 0, 0});
  model.set("support_vectors", vectors);
  model.set("vectors_per_class", std::vector<int64_t>{2, 1, 1});
  model.set("coefficients", coefficients);
  model.set("rho", rho);
  model.set("classlabels_ints", std::vector<int64_t>{0, 1, 2});
  const int kClass[] = {0, 0, 1, 2};
  std::vector<float> wanted;
  std::vector<int64_t> labels;
  for (size_t n = 0; n < 2; ++n) {
    int votes[3] = {};
    for (size_t i = 0, p = 0; i < 3; ++i)
      for (size_t j = i + 1; j < 3; ++j, ++p) {
        double sum = rho[p];
        for (size_t v = 0; v < 4; ++v) {
          double distance = 0;
          for (size_t f = 0; f < 3; ++f) distance += std::pow(x[3 * n + f] - vectors[3 * v + f], 2);
          const double value = std::exp(-0.3 * distance);
          if (kClass[v] == static_cast<int>(i)) sum += value * coefficients[(j - 1) * 4 + v];
          if (kClass[v] == static_cast<int>(j)) sum += value * coefficients[i * 4 + v];
        }
        ++votes[sum > 0 ? i : j];
        wanted.push_back(static_cast<float>(sum));
      }
    labels.push_back(std::max_element(votes, votes + 3) - votes);
  }
  const auto result = run(model, x.data(), DType::F32, 2);
  ASSERT_EQ(result.size(), 2U);
  EXPECT_EQ(values_of<int64_t>(result[0]), labels);
  expect_near(values_of<float>(result[1]), wanted);
  model.set("vectors_per_class", std::vector<int64_t>{2, 1, 9});
  EXPECT_TRUE(contains(model.error(), "coefficients: expected")) << model.error();
}

TEST(ImportMl, CoupledProbabilitiesAreTheMinimum) {
  // A support vector at the origin for each class and a constant kernel, so that the pairs' scores are rho.
  Model model("SVMClassifier");
  model.proto.mutable_graph()->mutable_node(0)->add_output("scores");
  model.proto.mutable_graph()->add_output()->set_name("scores");
  model.set("support_vectors", std::vector<float>(9, 0));
  model.set("vectors_per_class", std::vector<int64_t>{1, 1, 1});
  model.set("coefficients", std::vector<float>(6, 0));
  model.set("rho", std::vector<float>{1, -0.5F, 0.25F});
  model.set("prob_a", std::vector<float>{-1, -1, -1});
  model.set("prob_b", std::vector<float>{0, 0, 0});
  model.set("classlabels_ints", std::vector<int64_t>{0, 1, 2});
  const std::vector<float> p = run_floats(model, {1, 2, 3}, 1);
  ASSERT_EQ(p.size(), 3U);
  const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
  double r[3][3] = {};
  const double scores[] = {1, -0.5, 0.25};
  for (size_t i = 0, k = 0; i < 3; ++i)
    for (size_t j = i + 1; j < 3; ++j, ++k) r[i][j] = logistic(scores[k]), r[j][i] = 1 - r[i][j];
  const auto loss = [&](double a, double b) {
    const double q[] = {a, b, 1 - a - b};
    double sum = 0;
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j)
        if (i != j) sum += std::pow(r[j][i] * q[i] - r[i][j] * q[j], 2);
    return sum;
  };
  EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-6);
  for (const auto& [a, b] : {std::pair{1e-3, 0.0}, {-1e-3, 0.0}, {0.0, 1e-3}, {0.0, -1e-3}})
    EXPECT_LT(loss(p[0], p[1]), loss(p[0] + a, p[1] + b));
}

TEST(ImportMl, LabelEncoderMapsNumbers) {
  Model model("LabelEncoder", kFloat, 4);
  model.set("keys_floats", std::vector<float>{4, -1, std::nanf(""), 4, 0.5F});
  model.set("values_int64s", std::vector<int64_t>{1, 2, 3, 40, 5});
  model.set("default_int64", -7);
  const std::vector<float> x = {4, -1, 0.5F, std::nanf(""), INFINITY, -0.75F};
  EXPECT_EQ(values_of<int64_t>(run(model, x.data(), DType::F32, 2)[0]),
            (std::vector<int64_t>{40, 2, 5, 3, -7, -7}));
  model.set("values_int64s", std::vector<int64_t>{1});
  EXPECT_TRUE(contains(model.error(), "as many values as keys")) << model.error();
}

TEST(ImportMl, StringsGoFromNodeToNode) {
  Model model("LabelEncoder", kInt64, 2);
  model.set("keys_int64s", std::vector<int64_t>{0, 1});
  model.set("values_strings", std::vector<std::string>{"no", "yes"});
  model.add("LabelEncoder", "ai.onnx.ml", {"y"}, {"z"});
  model.set("keys_strings", std::vector<std::string>{"yes", "_Unused"});
  model.set("values_floats", std::vector<float>{2.5F, 9});
  model.set("default_float", 0.5F);
  const std::vector<int64_t> x = {0, 1, 2};
  expect_near(values_of<float>(run(model, x.data(), DType::I64, 1)[0]), {0.5F, 2.5F, 9});
  model.add("Neg", "", {"y"}, {"w"});
  EXPECT_TRUE(contains(model.error(), "input 0 holds strings")) << model.error();
}

TEST(ImportMl, RefusesInputsOfStrings) {
  Model model("LabelEncoder", kString, 2);
  EXPECT_TRUE(contains(model.error(), "encode them as numbers before the model")) << model.error();
}

TEST(ImportMl, FeaturesOneByOne) {
  const float nan = std::nanf("");
  Model scaler("Scaler");
  scaler.set("offset", std::vector<float>{1, 2, 3});
  scaler.set("scale", std::vector<float>{2, 0.5F, -1});
  expect_near(run_floats(scaler, {2, 2, 5, 0, 4, 3}), {2, 0, -2, -2, 1, 0});
  scaler.set("offset", std::vector<float>{1, 2});
  EXPECT_TRUE(contains(scaler.error(), "offset: expected one entry")) << scaler.error();
  Model imputer("Imputer");
  imputer.set("imputed_value_floats", std::vector<float>{7, 8, 9});
  imputer.set("replaced_value_float", nan);
  expect_near(run_floats(imputer, {nan, 2, nan, 4, nan, 6}), {7, 2, 9, 4, 8, 6});
  Model normalizer("Normalizer");
  normalizer.set("norm", "L2");
  expect_near(run_floats(normalizer, {3, 0, -4, 0, 0, 0}), {0.6F, 0, -0.8F, 0, 0, 0});
  Model binarizer("Binarizer");
  binarizer.set("threshold", 1.5F);
  expect_near(run_floats(binarizer, {1, 1.5F, 2}), {0, 0, 1});
  Model one_hot("OneHotEncoder", kInt64);
  one_hot.set("cats_int64s", std::vector<int64_t>{5, 2});
  const std::vector<int64_t> x = {2, 7, 5};
  expect_near(values_of<float>(run(one_hot, x.data(), DType::I64, 1)[0]), {0, 1, 0, 0, 1, 0});
}

}  // namespace
}  // namespace librt::onnx
