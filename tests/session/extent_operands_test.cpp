// Values that make extents and cannot: negative, too large, two that are to be inferred, NaN. A conversion
// refuses them where they are constants, a session where they are inputs, without passes and after them, and
// it goes on with good ones.
// argv[1]: the backend.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/session/session.h"
#include "tests/support/backend_main.h"
#include "tests/support/importer_model.h"
#include "tools/compiler/pipeline.h"

namespace librt {
namespace {

using test::backend_name;

using Numbers = std::vector<double>;
using test::ImporterModel;

struct Bad {
  Numbers operand;
  const char* words;                    ///< of a run's error
  const char* of_conversion = nullptr;  ///< where another error names it
};

/// A node whose inputs are "operand" and the others that node_with() knows.
struct Case {
  const char* op;
  std::vector<std::string> inputs;
  Numbers good;
  std::vector<Bad> bad;
  bool is_scalar = false;
  int type = ImporterModel::kInt64;
  size_t outputs = 1;
  ImporterModel::Integers attributes = {};
  std::vector<std::string> x = {"3", "4"};
};

const std::vector<Case>& cases() {
  static const char* const kExtents =
      "expected extents of 0 or more and less than " RT_MOST_ELEMENTS " elements, found [";
  static const char* const kDelta = "expected a finite range with a delta other than 0, found start 0";
  static const char* const kPads = "expected pads that leave 0 or more of extent 4 of axis 1, found ";
  static const std::vector<Case> all = {
      {.op = "OneHot",
       .inputs = {"indices", "operand", "values"},
       .good = {3},
       .bad = {{{-3}, kExtents, "depth: expected one number of 0 or more, found -3"},
               {{-1}, kExtents, "depth: expected one number of 0 or more, found -1"}},
       .is_scalar = true},
      {.op = "Range",
       .inputs = {"zero", "five", "operand"},
       .good = {2},
       .bad = {{{0}, "expected a delta other than 0, found 0"}},
       .is_scalar = true},
      {.op = "Range",
       .inputs = {"zero_f32", "operand", "one_f32"},
       .good = {3},
       .bad = {{{NAN}, kDelta}, {{INFINITY}, kDelta}},
       .is_scalar = true,
       .type = ImporterModel::kFloat},
      {.op = "Range",
       .inputs = {"zero_f32", "minus_f32", "operand"},
       .good = {-1},
       .bad = {{{0}, kDelta}, {{NAN}, kDelta}},
       .is_scalar = true,
       .type = ImporterModel::kFloat},
      {.op = "ConstantOfShape",
       .inputs = {"operand"},
       .good = {2, 3},
       .bad = {{{2, -3}, kExtents}, {{-1, 4}, kExtents}}},
      {.op = "Tile",
       .inputs = {"x", "operand"},
       .good = {2, 0},
       .bad = {{{2, -1}, "expected repeats of 0 or more, found -1"}}},
      {.op = "Pad", .inputs = {"x", "operand"}, .good = {0, -1, 0, -3}, .bad = {{{0, -3, 0, -3}, kPads}}},
      {.op = "Resize",
       .inputs = {"x", "", "", "operand"},
       .good = {1, 1, 2, 4},
       .bad = {{{1, 1, -2, 4}, "expected sizes in [0, 2^31) and a non-empty input, found -2"}},
       .x = {"1", "1", "3", "4"}},
      {.op = "Resize",
       .inputs = {"x", "", "operand"},
       .good = {1, 1, 2, 1},
       .bad = {{{1, 1, -1, 1}, "expected scales above 0 and results below 2^31, found scale -1"},
               {{1, 1, NAN, 1}, "expected scales above 0 and results below 2^31, found scale nan"}},
       .type = ImporterModel::kFloat,
       .x = {"1", "1", "3", "4"}},
      {.op = "TopK",
       .inputs = {"x", "operand"},
       .good = {4},
       .bad = {{{-1}, "expected k from 0 to 4, the extent of axis 1, found -1"},
               {{5}, "expected k from 0 to 4, the extent of axis 1, found 5"}},
       .outputs = 2},
      {.op = "Expand",
       .inputs = {"x", "operand"},
       .good = {3, 1},
       .bad = {{{-1, 4},
                "expected extents of 0 or more and less than " RT_MOST_ELEMENTS " elements, found [-1,4]"},
               {{2, 4}, "expected shapes that broadcast, found [3,4] and [2,4]"}}},
      {.op = "Reshape",
       .inputs = {"x", "operand"},
       .good = {-1, 2},
       .bad = {{{-1, -1}, "expected at most one -1, found [-1,-1]"},
               {{-2, -6}, "expected extents of 0 or more, or one -1, found [-2,-6]"},
               {{5, -1}, "expected a shape that divides the 12 elements of [3,4], found [5,-1]"}}},
      {.op = "Split",
       .inputs = {"x", "operand"},
       .good = {1, 3},
       .bad = {{{3, 2}, "expected a shape of 12 elements like [3,4], found [3,5]", "the sizes add up to 5"},
               {{1, 1}, "expected a shape of 12 elements like [3,4], found [3,2]", "the sizes add up to 2"},
               {{5, -1}, kPads, "a negative or huge size"},
               {{-1, 5}, kPads, "a negative or huge size"}},
       .outputs = 2,
       .attributes = {{"axis", 1}}},
      {.op = "CenterCropPad", .inputs = {"x", "operand"}, .good = {1, 7}, .bad = {{{2, -3}, kPads}}},
      {.op = "HannWindow",
       .inputs = {"operand"},
       .good = {4},
       .bad = {{{-3}, kExtents, "size: expected one number of 0 or more, found -3"}},
       .is_scalar = true},
  };
  return all;
}

void add_number(ImporterModel& model, const std::string& name, double number, bool is_float) {
  auto* tensor = model.graph().add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(is_float ? ImporterModel::kFloat : ImporterModel::kInt64);
  if (is_float)
    tensor->add_float_data(static_cast<float>(number));
  else
    tensor->add_int64_data(static_cast<int64_t>(number));
}

/// The model of a case; the operand is a constant, or with null the graph's last input.
Result<ModelGraph> node_with(const Case& given, const Numbers* operand) {
  ImporterModel model(20);
  for (const std::string& name : given.inputs) {
    if (name == "x") model.input("x", given.x);
    if (name == "values") model.input("values", {"2"});
    if (name == "indices") model.integers("indices", {2}, {0, 1});
    if (name == "zero") add_number(model, name, 0, false);
    if (name == "five") add_number(model, name, 5, false);
    if (name == "zero_f32") add_number(model, name, 0, true);
    if (name == "one_f32") add_number(model, name, 1, true);
    if (name == "minus_f32") add_number(model, name, -5, true);
  }
  if (operand == nullptr) {
    const std::vector<std::string> dims =
        given.is_scalar ? std::vector<std::string>() : std::vector{std::to_string(given.good.size())};
    model.input("operand", dims, given.type);
  } else {
    auto* tensor = model.graph().add_initializer();
    tensor->set_name("operand");
    tensor->set_data_type(given.type);
    if (!given.is_scalar) tensor->add_dims(static_cast<int64_t>(operand->size()));
    for (const double number : *operand)
      if (given.type == ImporterModel::kFloat)
        tensor->add_float_data(static_cast<float>(number));
      else
        tensor->add_int64_data(static_cast<int64_t>(number));
  }
  std::vector<std::string> outputs;
  for (size_t i = 0; i < given.outputs; ++i) outputs.push_back("y" + std::to_string(i));
  model.node(given.op, given.inputs, outputs, given.attributes).set_name("makes_extents");
  for (const std::string& name : outputs) model.output(name);
  auto made = model.convert();
  if (!made.ok() && !model.report.unsupported.empty())
    return Status(made.status().code(), made.status().message() + ": " + model.reasons());
  return made;
}

Status run(Session& session, const Case& given, const Numbers& operand) {
  const std::vector<float> floats(64, 1);
  size_t input = 0;
  for (const std::string& name : given.inputs) {
    if (name != "x" && name != "values") continue;
    Shape shape;
    if (name == "values") shape.push_back(2);
    for (const std::string& dim : name == "x" ? given.x : std::vector<std::string>())
      shape.push_back(std::stoll(dim));
    RT_TRY(session.set_input(input++, {floats.data(), {DType::F32, shape}},
                             static_cast<size_t>(shape.elements()) * sizeof(float)));
  }
  const Shape shape = given.is_scalar ? Shape() : Shape{static_cast<int64_t>(operand.size())};
  std::vector<int64_t> integers;
  std::vector<float> reals;
  for (const double number : operand) {
    reals.push_back(static_cast<float>(number));
    if (given.type != ImporterModel::kFloat) integers.push_back(static_cast<int64_t>(number));
  }
  if (given.type == ImporterModel::kFloat)
    RT_TRY(session.set_input(input, {reals.data(), {DType::F32, shape}}, reals.size() * sizeof(float)));
  else
    RT_TRY(
        session.set_input(input, {integers.data(), {DType::I64, shape}}, integers.size() * sizeof(int64_t)));
  return session.run();
}

testing::AssertionResult says(const Status& status, const char* words) {
  const std::string& message = status.message();
  if (!status.ok() && message.find(words) != std::string::npos &&
      message.find("makes_extents") != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected an error of makes_extents with '" << words << "', found '"
                                     << message << "'";
}

TEST(ExtentOperands, ConversionsRefuseConstants) {
  for (const Case& given : cases()) {
    SCOPED_TRACE(given.op);
    const auto good = node_with(given, &given.good);
    EXPECT_TRUE(good.ok()) << good.status().message();
    for (const Bad& bad : given.bad)
      EXPECT_TRUE(says(node_with(given, &bad.operand).status(),
                       bad.of_conversion != nullptr ? bad.of_conversion : bad.words));
  }
}

TEST(ExtentOperands, SessionsRefuseInputs) {
  for (const Case& given : cases())
    for (const bool optimized : {false, true}) {
      SCOPED_TRACE(testing::Message() << given.op << (optimized ? ", after the passes" : ""));
      auto made = node_with(given, nullptr);
      ASSERT_TRUE(made.ok()) << made.status().message();
      if (optimized) {
        const Status status = compiler::optimize(*made, {}, nullptr);
        ASSERT_TRUE(status.ok()) << status.message();
      }
      const auto session =
          Session::create(std::make_shared<const ModelGraph>(std::move(*made)), {.backend = backend_name});
      ASSERT_TRUE(session.ok()) << session.status().message();
      for (const Bad& bad : given.bad) {
        EXPECT_TRUE(says(run(**session, given, bad.operand), bad.words));
        const Status good = run(**session, given, given.good);
        EXPECT_TRUE(good.ok()) << good.message();
      }
    }
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  return librt::test::run_backend_tests(argc, argv);
}
