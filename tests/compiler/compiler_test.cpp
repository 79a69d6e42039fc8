// librt_compiler through its public headers: what an application gets, and what it can do wrong.
//
//   compiler_test [FOLDER]: for files that it writes
#include <gtest/gtest.h>
#include <rt/compiler.hpp>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

fs::path folder;

Bytes bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

/// A network of the zoo as ONNX.
Bytes onnx_of(const std::string& name) {
  const std::string path = folder / (name + ".onnx");
  const auto made = rt::Compilation::of_file("zoo:" + name, {.output = path});
  EXPECT_TRUE(made.ok()) << made.status().message();
  return bytes_of(path);
}

std::vector<float> run(const rt::Model& model, const rt::Tensor& input) {
  auto session = rt::Session::create(model, {.backend = "cpu"});
  EXPECT_TRUE(session.ok()) << session.status().message();
  EXPECT_TRUE(session->set_input(0, input).ok());
  EXPECT_TRUE(session->run().ok());
  const auto output = session->output(0);
  EXPECT_TRUE(output.ok());
  const auto values = output->values<float>();
  return {values.begin(), values.end()};
}

/// Numbers in 0..1 without a pattern.
rt::Tensor image(int64_t rows, uint32_t seed) {
  rt::Tensor tensor(rt::DType::F32, {rows, 28, 28, 1});
  for (float& value : tensor.values<float>()) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(seed >> 8) / 16777216.0f;
  }
  return tensor;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

void expect_error(const rt::Status& status, rt::Code code, const std::string& text) {
  EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(code)) << status.message();
  EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
}

TEST(Compiler, CompilesFromMemoryToMemory) {
  const Bytes onnx = onnx_of("lenet5");
  const auto made = rt::Compilation::of_memory(onnx);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(made.bytes().data()) % 64, 0u);
  const auto report = made.report();
  EXPECT_GT(report.onnx_nodes, report.nodes_after);
  EXPECT_EQ(report.parameters, 61706u);
  EXPECT_EQ(report.file_bytes, made.bytes().size());
  EXPECT_EQ(report.compared, 0u);
  EXPECT_EQ(made.json().front(), '{');
  EXPECT_NE(made.json().find("\"parameters\": 61706"), std::string_view::npos) << made.json();
  EXPECT_NE(made.json().find("\"model\": null"), std::string_view::npos) << made.json();
  EXPECT_NE(made.text().find("61,706"), std::string_view::npos) << made.text();
  EXPECT_NE(made.passes().find("fuse"), std::string_view::npos) << made.passes();

  const auto direct = rt::Compilation::of_file("zoo:lenet5");
  ASSERT_TRUE(direct.ok()) << direct.status().message();
  auto from_onnx = made.load();
  auto from_zoo = direct.load();
  ASSERT_TRUE(from_onnx.ok() && from_zoo.ok());
  const rt::Tensor input = image(2, 1);
  EXPECT_LT(largest_difference(run(*from_onnx, input), run(*from_zoo, input)), 1e-5f);
}

TEST(Compiler, CompilesACompiledModelAgain) {
  const auto first = rt::Compilation::of_file("zoo:lenet5");
  ASSERT_TRUE(first.ok());
  const auto half = rt::Compilation::of_memory(first.bytes(), {.precision = "bf16"});
  ASSERT_TRUE(half.ok()) << half.status().message();
  EXPECT_LT(half.bytes().size(), first.bytes().size());
  EXPECT_GT(half.report().output_error, 0);
  auto exact = first.load(), rounded = half.load();
  ASSERT_TRUE(exact.ok() && rounded.ok());
  const rt::Tensor input = image(1, 2);
  const float difference = largest_difference(run(*exact, input), run(*rounded, input));
  EXPECT_GT(difference, 0);
  EXPECT_LT(difference, 0.05f);
}

TEST(Compiler, ListsAllThatIsUnsupported) {
  Bytes onnx = onnx_of("lenet5");
  // Operators of the same length that nobody knows.
  std::string text(reinterpret_cast<const char*>(onnx.data()), onnx.size());
  size_t changed = 0;
  for (size_t at = text.find("\x22\x04Relu"); at != text.npos; at = text.find("\x22\x04Relu", at + 1)) {
    onnx[at + 5] = std::byte{'x'};
    ++changed;
  }
  ASSERT_GT(changed, 1u);
  for (const bool check_only : {false, true}) {
    const auto made = rt::Compilation::of_memory(onnx, {.check_only = check_only});
    expect_error(made.status(), rt::Code::Unsupported, "Relx");
    const auto nodes = made.unsupported();
    ASSERT_EQ(nodes.size(), changed);
    std::set<std::string> names;
    for (const rt::UnsupportedNode& node : nodes) {
      EXPECT_EQ(node.op, "Relx");
      EXPECT_EQ(node.domain, "ai.onnx");
      EXPECT_FALSE(node.reason.empty());
      names.insert(node.name);
    }
    EXPECT_EQ(names.size(), changed);
    EXPECT_TRUE(made.bytes().empty());
    EXPECT_NE(made.json().find("\"code\": 3"), std::string_view::npos) << made.json();
    EXPECT_NE(made.text().find(nodes[0].name), std::string_view::npos) << made.text();
    expect_error(made.load().status(), rt::Code::Unsupported, "Relx");
  }
}

TEST(Compiler, ChecksWithoutCompiling) {
  const auto made =
      rt::Compilation::of_memory(onnx_of("lenet5"), {.check_only = true, .settings = {{"inspect", ""}}});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(made.bytes().empty());
  EXPECT_TRUE(made.unsupported().empty());
  EXPECT_NE(made.graph().find("Conv"), std::string_view::npos);
  expect_error(made.load().status(), rt::Code::NotFound, "only a check");
}

TEST(Compiler, AddsTrainingEntries) {
  const Bytes onnx = onnx_of("lenet5");
  const auto all = rt::Compilation::of_memory(onnx, {.train = true,
                                                     .loss = "cross_entropy",
                                                     .optimizer = "adam",
                                                     .settings = {{"label_smoothing", "0.1"}}});
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all.report().trained_elements, 61706u);
  auto model = all.load();
  ASSERT_TRUE(model.ok());
  auto trainer = rt::Trainer::create(*model, {.backend = "cpu"});
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  auto& session = trainer->session();
  ASSERT_TRUE(session.set_input(0, image(8, 3)).ok());
  ASSERT_TRUE(session.set_input("labels", rt::Tensor::of<int64_t>({8}, {0, 1, 2, 3, 4, 5, 6, 7})).ok());
  ASSERT_TRUE(trainer->set_learning_rate(0.01f).ok());
  const auto first = trainer->step();
  ASSERT_TRUE(first.ok()) << first.status().message();
  float last = *first;
  for (int i = 0; i < 10; ++i) last = *trainer->step();
  EXPECT_LT(last, *first);

  const auto some = rt::Compilation::of_memory(onnx, {.train = true, .trainable = {"fc3*"}});
  ASSERT_TRUE(some.ok()) << some.status().message();
  EXPECT_EQ(some.report().trained_weights, 2u) << some.json();
  const auto adapters = rt::Compilation::of_memory(onnx, {.train = true, .lora = "rank=2,targets=fc*"});
  ASSERT_TRUE(adapters.ok()) << adapters.status().message();
  EXPECT_GT(adapters.report().adapted_weights, 0u);
  EXPECT_LT(adapters.report().trained_elements, 5000u);
}

TEST(Compiler, QuantizesWithRowsOfACallback) {
  const Bytes onnx = onnx_of("lenet5");
  std::string input_name;
  const auto rows = [&](size_t batch, std::span<const rt::TensorSpec> specs,
                        std::vector<rt::Tensor>& inputs) {
    if (batch == 3) return rt::Rows::None;
    input_name = specs[0].name;
    inputs.push_back(image(4, static_cast<uint32_t>(batch)));
    return rt::Rows::Some;
  };
  const auto made = rt::Compilation::of_memory(onnx, {.precision = "int8", .calibration = rows});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(input_name, "input");
  EXPECT_EQ(made.report().quantized_nodes, 5u);
  EXPECT_NE(made.json().find("\"rows\": 12"), std::string_view::npos) << made.json();
  EXPECT_GT(made.report().output_error, 0);
  // Rows one by one for a model of four samples: the last two fill no run.
  const auto one_by_one = [&](size_t batch, auto, std::vector<rt::Tensor>& inputs) {
    if (batch == 10) return rt::Rows::None;
    inputs.push_back(image(1, static_cast<uint32_t>(batch)));
    return rt::Rows::Some;
  };
  const auto four = rt::Compilation::of_memory(
      onnx, {.precision = "int8", .settings = {{"dim", "batch=4"}}, .calibration = one_by_one});
  ASSERT_TRUE(four.ok()) << four.status().message();
  EXPECT_NE(four.json().find("\"rows\": 8"), std::string_view::npos) << four.json();
  const auto exact = rt::Compilation::of_memory(onnx);
  EXPECT_LT(made.bytes().size(), exact.bytes().size() / 2);
  auto a = made.load(), b = exact.load();
  EXPECT_LT(largest_difference(run(*a, image(2, 9)), run(*b, image(2, 9))), 0.2f);

  const auto with = [&](const rt::CalibrationCallback& callback) {
    return rt::Compilation::of_memory(onnx, {.precision = "int8", .calibration = callback}).status();
  };
  expect_error(with([](size_t, auto, auto&) { return rt::Rows::Failed; }), rt::Code::InvalidArgument,
               "batch 0");
  expect_error(with([](size_t, auto, auto&) { return rt::Rows::None; }), rt::Code::InvalidArgument, "none");
  expect_error(with([](size_t batch, auto, auto& inputs) {
                 if (batch == 1) return rt::Rows::None;
                 inputs.push_back(rt::Tensor(rt::DType::F32, {2, 27, 28, 1}));
                 return rt::Rows::Some;
               }),
               rt::Code::InvalidArgument, "expected extent 28 on axis 1, found 27");
  // Rows without an end can be stopped.
  const auto stops_at = rt::Compilation::of_memory(
      onnx, {.precision = "int8",
             .calibration =
                 [](size_t, auto, auto& inputs) {
                   inputs.push_back(image(1, 1));
                   return rt::Rows::Some;
                 },
             .progress = [](std::string_view, uint64_t done, uint64_t) { return done < 1000; }});
  expect_error(stops_at.status(), rt::Code::Cancelled, "");
  expect_error(with([](size_t batch, auto, auto& inputs) {
                 inputs.push_back(image(static_cast<int64_t>(batch) + 1, 1));
                 if (batch == 1) inputs[0] = rt::Tensor(rt::DType::F32, {1, 28, 28, 2});
                 return rt::Rows::Some;
               }),
               rt::Code::InvalidArgument, "batch 1");
  expect_error(rt::Compilation::of_memory(onnx, {.precision = "bf16", .calibration = rows}).status(),
               rt::Code::InvalidArgument, "--calibrate");
}

TEST(Compiler, RoundsToNearestInAnyFloatEnvironment) {
  const Bytes onnx = onnx_of("lenet5");
  const auto rows = [](size_t batch, auto, std::vector<rt::Tensor>& inputs) {
    if (batch == 2) return rt::Rows::None;
    inputs.push_back(image(4, static_cast<uint32_t>(batch)));
    return rt::Rows::Some;
  };
  const auto bytes_in = [&](int rounding) {
    std::fesetround(rounding);
    const auto made = rt::Compilation::of_memory(onnx, {.precision = "int8", .calibration = rows});
    EXPECT_EQ(std::fegetround(), rounding);
    std::fesetround(FE_TONEAREST);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return Bytes(made.bytes().begin(), made.bytes().end());
  };
  const Bytes wanted = bytes_in(FE_TONEAREST);
  EXPECT_EQ(bytes_in(FE_UPWARD), wanted);
  EXPECT_EQ(bytes_in(FE_TOWARDZERO), wanted);
}

TEST(Compiler, StopsAtEveryStage) {
  const Bytes onnx = onnx_of("lenet5");
  const auto rows = [](size_t batch, auto, std::vector<rt::Tensor>& inputs) {
    if (batch > 0) return rt::Rows::None;
    inputs.push_back(image(4, 1));
    return rt::Rows::Some;
  };
  std::vector<std::string> stages;
  rt::CompilerOptions options{.output = folder / "stopped.rt",
                              .precision = "int8",
                              .settings = {{"verify", "1"}, {"rtol", "1"}, {"atol", "1"}},
                              .calibration = rows,
                              .progress = [&](std::string_view stage, uint64_t done, uint64_t total) {
                                if (stages.empty() || stages.back() != stage) stages.emplace_back(stage);
                                EXPECT_TRUE(total == 0 || done <= total) << stage;
                                return true;
                              }};
  const auto made = rt::Compilation::of_memory(onnx, options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_GT(made.report().compared, 0u);
  EXPECT_TRUE(fs::exists(options.output));
  const std::set<std::string> names(stages.begin(), stages.end());
  EXPECT_EQ(names, (std::set<std::string>{"import", "optimize", "calibrate", "write", "verify"}));
  EXPECT_EQ(stages.front(), "import");
  EXPECT_EQ(stages.back(), "verify");
  for (const std::string& at : names) {
    fs::remove(options.output);
    int calls_after = 0;
    bool stopped = false;
    options.progress = [&](std::string_view stage, uint64_t, uint64_t) {
      calls_after += stopped ? 1 : 0;
      stopped = stopped || stage == at;
      return !stopped;
    };
    const auto cancelled = rt::Compilation::of_memory(onnx, options);
    expect_error(cancelled.status(), rt::Code::Cancelled, "progress callback");
    EXPECT_EQ(calls_after, 0) << at;
    EXPECT_EQ(fs::exists(options.output), at == "verify") << at;
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}),
              std::count_if(fs::directory_iterator(folder), {},
                            [](const auto& entry) {
                              return entry.path().extension() == ".onnx" || entry.path().extension() == ".rt";
                            }))
        << "a temporary file is left in " << folder;
  }
}

TEST(Compiler, WritesToFiles) {
  const std::string path = folder / "written.rt";
  const auto made = rt::Compilation::of_file("zoo:mlp", {.output = path});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(made.bytes().empty());
  EXPECT_EQ(made.report().file_bytes, fs::file_size(path));
  EXPECT_TRUE(rt::Model::load(path).ok());
  const auto again = rt::Compilation::of_file(path, {.settings = {{"verify", "1"}}});
  EXPECT_TRUE(again.ok()) << again.status().message();
  EXPECT_GT(again.report().compared, 0u);
  EXPECT_EQ(again.report().different, 0u);
}

TEST(Compiler, RefusesWrongOptions) {
  const auto with = [](const rt::CompilerOptions& options) {
    return rt::Compilation::of_file("zoo:mlp", options).status();
  };
  const auto setting = [&](const std::string& name, const std::string& value) {
    return with({.settings = {{name, value}}});
  };
  const auto kInvalid = rt::Code::InvalidArgument;
  expect_error(with({.precision = "fp7"}), kInvalid, "fp7");
  expect_error(with({.optimizer = "adam"}), kInvalid, "--optimizer: is for --train");
  expect_error(with({.train = true, .settings = {{"optimizer", "momentum"}}}), kInvalid, "momentum");
  expect_error(with({.precision = "bf16", .settings = {{"precision", "fp16"}}}), kInvalid,
               "given as a field and by name");
  expect_error(setting("no-such", "1"), kInvalid, "--no-such: there is no such option");
  expect_error(setting("output", "x.rt"), kInvalid, "--output: there is no such option");
  expect_error(setting("help", ""), kInvalid, "--help");
  expect_error(setting("train", "perhaps"), kInvalid, "expected 1 or 0");
  expect_error(setting("dim", "batch"), kInvalid, "NAME=N");
  expect_error(setting("disable-pass", "magic"), kInvalid, "magic");
  expect_error(setting("open-batch", "1"), kInvalid, "is for ONNX models");
  expect_error(rt::Compilation::of_file("/no/such.onnx").status(), rt::Code::NotFound, "/no/such.onnx");
  expect_error(rt::Compilation::of_file("zoo:nothing").status(), rt::Code::NotFound, "nothing");
  const Bytes garbage(1000, std::byte{7});
  expect_error(rt::Compilation::of_memory(garbage).status(), rt::Code::InvalidModel, "");
  expect_error(rt::Compilation::of_memory({}).status(), kInvalid, "no bytes");
  EXPECT_TRUE(setting("train", "0").ok());
  EXPECT_TRUE(setting("disable_pass", "fuse").ok());
}

TEST(Compiler, TakesConstantsFromMemory) {
  rt::CompilerOptions options;
  options.constants.emplace("input", image(1, 5));
  const Bytes onnx = onnx_of("lenet5");
  const auto made = rt::Compilation::of_memory(onnx, options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  auto model = made.load();
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(rt_model_input_count(model->handle(), nullptr), 0u);
  options.settings = {{"constant", "input=1"}};
  expect_error(rt::Compilation::of_memory(onnx, options).status(), rt::Code::InvalidArgument, "given twice");
  options.settings = {};
  options.constants.emplace("other", rt::Tensor(rt::DType::F32, {1}));
  expect_error(rt::Compilation::of_memory(onnx, options).status(), rt::Code::InvalidModel,
               "no input named 'other'");
}

TEST(Compiler, CompilesInThreads) {
  const Bytes onnx = onnx_of("lenet5");
  std::vector<Bytes> made(4);
  std::vector<std::thread> threads;
  for (Bytes& bytes : made)
    threads.emplace_back([&] {
      const auto compiled = rt::Compilation::of_memory(onnx, {.precision = "bf16"});
      bytes.assign(compiled.bytes().begin(), compiled.bytes().end());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(made[0].empty());
  for (const Bytes& bytes : made) EXPECT_EQ(bytes, made[0]);
}

/// A safetensors file with f32 tensors of ones: names and extents.
void write_ones(const std::string& path, const std::vector<rt::StateSpec>& tensors) {
  std::string header = "{", data;
  for (const rt::StateSpec& tensor : tensors) {
    size_t count = 1;
    std::string shape;
    for (const rt::Dim& dim : tensor.dims) {
      count *= static_cast<size_t>(dim.extent);
      shape += (shape.empty() ? "" : ",") + std::to_string(dim.extent);
    }
    const std::vector<float> ones(count, 1.0f);
    header += (header.size() > 1 ? ",\"" : "\"") + tensor.name + "\":{\"dtype\":\"F32\",\"shape\":[" + shape +
              "],\"data_offsets\":[" + std::to_string(data.size()) + ",";
    data.append(reinterpret_cast<const char*>(ones.data()), count * sizeof(float));
    header += std::to_string(data.size()) + "]}";
  }
  header += "}";
  const uint64_t size = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&size), sizeof size) << header << data;
}

TEST(Compiler, LoadsAdaptersAsSafetensors) {
  const auto made = rt::Compilation::of_file("zoo:tabular", {.lora = "rank=2"});
  ASSERT_TRUE(made.ok()) << made.status().message();
  const auto model = rt::Model::from_memory(made.bytes());
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = rt::Session::create(*model, {.backend = "cpu"});
  ASSERT_TRUE(session.ok()) << session.status().message();
  std::vector<rt::StateSpec> states = model->states();
  ASSERT_FALSE(states.empty());
  const auto first_value = [&] {
    const auto value = session->read_state(states.back().name);
    return value.ok() ? value->values<float>()[0] : NAN;
  };
  const float before = first_value();
  ASSERT_NE(before, 1.0f);

  const std::string path = folder / "adapter.safetensors";
  const rt::StateSpec last = states.back();
  states.back().dims[0].extent += 1;
  write_ones(path, states);
  const rt::Status refused = rt::load_adapter(*session, path);
  EXPECT_EQ(refused.code(), rt::Code::InvalidArgument);
  EXPECT_NE(refused.message().find("'" + last.name + "': expected f32["), std::string::npos)
      << refused.message();
  EXPECT_EQ(first_value(), before);
  states.back() = last;
  write_ones(path, states);
  const rt::Status loaded = rt::load_adapter(*session, path);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_EQ(first_value(), 1.0f);
  EXPECT_FALSE(rt::load_adapter(*session, folder / "missing.safetensors").ok());
  EXPECT_FALSE(rt::load_adapter(*session, folder / "missing").ok());
  rt_status* const null = rt_compiler_load_adapter(nullptr, path.c_str());
  EXPECT_EQ(rt_status_code(null), RT_INVALID_ARGUMENT);
  rt_status_free(null);
}

TEST(Compiler, DescribesItself) {
  const std::string operators = rt_compiler_operators(), passes = rt_compiler_passes();
  EXPECT_NE(operators.find("\"op\": \"Conv\""), std::string::npos);
  EXPECT_NE(passes.find("\"pass\": \"dead_code\""), std::string::npos);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  folder = argc > 1 ? argv[1] : fs::temp_directory_path() / "compiler_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  return RUN_ALL_TESTS();
}
