// Indices into an axis without elements: a session refuses them before a run, with the node's name, and goes
// on with other shapes. Kernels that get them nevertheless read and write nothing outside of their tensors.
// argv[1]: the backend.
#include <gtest/gtest.h>

#include <functional>

#include "runtime/backend/registry.h"
#include "runtime/session/session.h"
#include "tests/support/backend_main.h"
#include "tests/support/run_node.h"
#include "tools/compiler/builder.h"

namespace librt {
namespace {

using test::backend_name;

using Attach = std::function<ValueId(compiler::Builder&, ValueId x, ValueId indices)>;

/// x [rows, 3] with dynamic rows, indices i64 of a dynamic shape of this rank.
std::shared_ptr<const ModelGraph> indexing(int rank, const Attach& attach) {
  auto model = std::make_shared<ModelGraph>();
  model->entries.push_back({"infer", {}});
  Graph& graph = model->entries[0].graph;
  compiler::Builder build(graph);
  const ValueId x = build.input("x", DType::F32, {{.symbol = graph.symbol("rows")}, {.extent = 3}});
  std::vector<Dim> dims{{.symbol = graph.symbol("count")}};
  if (rank == 2) dims.push_back({.extent = 1});
  build.set_scope("picks");
  const ValueId indices = build.input("indices", DType::I64, dims);
  build.output(attach(build, x, indices));
  EXPECT_TRUE(build.status().ok()) << build.status().message();
  return model;
}

Status run(Session& session, int64_t rows, int64_t count, int rank) {
  const std::vector<float> x(static_cast<size_t>(rows * 3 + 1), 1);  // never empty: data() is not null
  const std::vector<int64_t> indices(static_cast<size_t>(count + 1), rows - 1);
  const Shape shape = rank == 2 ? Shape{count, 1} : Shape{count};
  RT_TRY(session.set_input(0, {x.data(), {DType::F32, {rows, 3}}}, static_cast<size_t>(rows) * 12));
  RT_TRY(session.set_input(1, {indices.data(), {DType::I64, shape}}, static_cast<size_t>(count) * 8));
  RT_TRY(session.run());
  const auto y = session.output(0);
  RT_TRY(y.status());
  for (int64_t i = 0; i < y->info.elements(); ++i) EXPECT_EQ(y->as<float>()[i], 1) << "element " << i;
  return {};
}

void expect_refused_when_empty(int rank, const Attach& attach) {
  const auto session = Session::create(indexing(rank, attach), {.backend = backend_name});
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (const int64_t rows : {4, 0, 2}) {
    const Status status = run(**session, rows, 2, rank);
    EXPECT_EQ(status.ok(), rows != 0) << status.message();
    if (rows != 0) continue;
    EXPECT_EQ(status.code(), Code::InvalidArgument);
    EXPECT_NE(status.message().find("expected an axis with elements to index, found axis 0 of [0,3]"),
              std::string::npos)
        << status.message();
    const Status none = run(**session, 0, 0, rank);
    EXPECT_TRUE(none.ok()) << none.message();
  }
}

TEST(EmptyAxis, SessionsRefuseIndices) {
  expect_refused_when_empty(1, [](compiler::Builder& build, ValueId x, ValueId indices) {
    return build.emit(op::GatherAttributes{}, {x, indices});
  });
  expect_refused_when_empty(2, [](compiler::Builder& build, ValueId x, ValueId indices) {
    return build.emit(op::GatherElementsAttributes{}, {x, indices});
  });
  expect_refused_when_empty(2, [](compiler::Builder& build, ValueId x, ValueId indices) {
    return build.emit(op::GatherNDAttributes{}, {x, indices});
  });
}

/// Runs a kernel on operands that the shape rule refuses: the result is zeros, or none.
template <class Attributes>
void expect_zeros(Device& device, const Attributes& attributes, test::NodeInputs inputs,
                  const TensorInfo& result) {
  test::RunNodeOptions options;
  options.results = {result};
  const size_t count = inputs.size();
  const auto ran = test::run_node(device, test::make_node(attributes, count), inputs, options);
  ASSERT_TRUE(ran.ok()) << ran.status().message();
  for (const std::byte byte : ran->outputs[0].bytes) EXPECT_EQ(byte, std::byte{0});
}

TEST(EmptyAxis, KernelsReadNothing) {
  if (backend_name == "reference")
    GTEST_SKIP() << "the reference backend evaluates pages, which refuse the indices";
  auto opened = open_device(backend_name, {});
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  Device& device = **opened;
  const ops::HostTensor empty({DType::F32, {0, 5}}), no_columns({DType::F32, {3, 0}});
  for (const int64_t index : {int64_t{0}, int64_t{-1}, int64_t{1} << 40, INT64_MIN, INT64_MAX}) {
    const ops::HostTensor two = test::ints_tensor({index, index});
    const auto shaped = [&](Shape shape) {
      ops::HostTensor tensor =
          test::ints_tensor(std::vector<int64_t>(static_cast<size_t>(shape.elements()), index));
      tensor.info.shape = shape;
      return tensor;
    };
    op::GatherAttributes columns;
    columns.axis = 1;
    expect_zeros(device, op::GatherAttributes{}, {empty, two}, {DType::F32, {2, 5}});
    expect_zeros(device, columns, {no_columns, two}, {DType::F32, {3, 2}});
    expect_zeros(device, op::GatherElementsAttributes{}, {empty, shaped({2, 5})}, {DType::F32, {2, 5}});
    expect_zeros(device, op::GatherNDAttributes{}, {empty, shaped({2, 1})}, {DType::F32, {2, 5}});
    expect_zeros(device, op::GatherNDAttributes{}, {no_columns, shaped({4, 2})}, {DType::F32, {4}});
    const ops::HostTensor updates({DType::F32, {2, 5}});
    for (const auto reduction : {op::ScatterReduction::None, op::ScatterReduction::Add}) {
      op::ScatterElementsAttributes elements;
      elements.reduction = reduction;
      op::ScatterNDAttributes tuples;
      tuples.reduction = reduction;
      expect_zeros(device, elements, {empty, shaped({2, 5}), updates}, {DType::F32, {0, 5}});
      expect_zeros(device, tuples, {empty, shaped({2, 1}), updates}, {DType::F32, {0, 5}});
    }
    expect_zeros(device, op::ScatterAddAttributes{}, {test::ints_tensor({0, 5}), two, updates},
                 {DType::F32, {0, 5}});
  }
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(argc, argv);
}
