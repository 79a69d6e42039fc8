// Memory limits against the values of inputs: sizes that follow from a shape operand, from data, or from the
// iterations of a loop are refused before the memory is taken. Each case runs in a process of its own, whose
// peak is measured. argv[1]: the backend.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "runtime/backend/registry.h"
#include "runtime/session/session.h"
#include "tests/support/control_nodes.h"
#include "tools/compiler/builder.h"

namespace librt {
namespace {

using compiler::Builder;
using test::Body;
using test::emit_loop;

std::string backend_name;
constexpr uint64_t kMiB = 1 << 20, kLimit = 64 * kMiB;

/// How a shape operand comes about: an input that is read while planning, or computed from data.
enum class From : bool { Input, Data };

/// A graph with the values of its inputs.
struct Net {
  Net() = default;
  /// A finished graph.
  Net(Graph made, std::vector<std::pair<TensorInfo, std::vector<std::byte>>> with)
      : graph(std::move(made)), values(std::move(with)) {}

  Graph graph;
  Builder build{graph};
  std::vector<std::pair<TensorInfo, std::vector<std::byte>>> values;

  template <class T>
  ValueId input(DType dtype, const Shape& shape, const std::vector<T>& data) {
    std::vector<Dim> dims;
    for (const int64_t extent : shape) dims.push_back({.extent = extent});
    std::vector<std::byte> bytes(data.size() * sizeof(T));
    std::memcpy(bytes.data(), data.data(), bytes.size());
    values.emplace_back(TensorInfo{dtype, shape}, std::move(bytes));
    return build.input("in" + std::to_string(values.size()), dtype, dims);
  }
  ValueId x(const Shape& shape) {
    return input<float>(DType::F32, shape, std::vector<float>(static_cast<size_t>(shape.elements()), 1));
  }
  ValueId ones(int64_t count) {
    return input<uint8_t>(DType::U8, {count}, std::vector<uint8_t>(static_cast<size_t>(count), 1));
  }
  /// i64 [k]
  ValueId shape(From from, const std::vector<int64_t>& extents) {
    const auto count = static_cast<int64_t>(extents.size());
    if (from == From::Input) return input<int64_t>(DType::I64, {count}, extents);
    return build.reshape(input<int64_t>(DType::I64, {1, count}, extents), build.ints({&count, 1}));
  }
  ValueId scalar(From from, int64_t value) { return build.reshape(shape(from, {value}), build.ints({})); }
};

using Make = ValueId (*)(Net& net, From from, int64_t size);

struct Case {
  const char* name;
  Make make;  ///< a value of about `size` elements
};

const Case kSized[] = {
    {"Pad",
     [](Net& net, From from, int64_t size) {
       return net.build.emit(op::PadAttributes{}, {net.x({2}), net.shape(from, {1, size})});
     }},
    {"PadReflect",
     [](Net& net, From from, int64_t size) {
       op::PadAttributes reflect;
       reflect.mode = op::PadMode::Reflect;
       return net.build.emit(reflect, {net.x({2, 3}), net.shape(from, {0, size / 2, 0, 0})});
     }},
    {"Range",
     [](Net& net, From from, int64_t size) {
       return net.build.emit(op::RangeAttributes{},
                             {net.scalar(from, 0), net.scalar(from, size), net.scalar(from, 1)});
     }},
    {"ConstantOfShape",
     [](Net& net, From from, int64_t size) {
       op::ConstantOfShapeAttributes ones;
       ones.dtype = static_cast<uint8_t>(DType::F32);
       ones.value = 1;
       return net.build.emit(ones, {net.shape(from, {16, size / 16})});
     }},
    {"Expand",
     [](Net& net, From from, int64_t size) {
       return net.build.emit(op::ExpandAttributes{}, {net.x({1}), net.shape(from, {size})});
     }},
    {"Tile",
     [](Net& net, From from, int64_t size) {
       return net.build.emit(op::TileAttributes{}, {net.x({16}), net.shape(from, {size / 16})});
     }},
    {"Resize",
     [](Net& net, From from, int64_t size) {
       op::ResizeAttributes linear;
       linear.mode = op::ResizeMode::Linear;
       return net.build.emit(linear, {net.x({1, 2, 2, 1}), net.shape(from, {16, size / 16})});
     }},
    {"RandomUniform",
     [](Net& net, From from, int64_t size) {
       op::RandomUniformAttributes uniform;
       uniform.to = static_cast<uint8_t>(DType::F32);
       return net.build.emit(uniform, {net.shape(from, {size})});
     }},
};

struct Outcome {
  Code code = Code::Ok;
  bool ended = false;   ///< by itself, not by a signal
  uint64_t growth = 0;  ///< of the largest resident memory
  std::string message;
};

uint64_t peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

Status run_once(const Net& net, uint64_t limit) {
  auto model = std::make_shared<ModelGraph>();
  model->entries.push_back({"infer", net.graph});
  RT_ASSIGN(const auto session, Session::create(model, {.backend = backend_name, .memory_limit = limit}));
  for (size_t i = 0; i < net.values.size(); ++i) {
    const auto& [info, bytes] = net.values[i];
    RT_TRY(session->set_input(i, {bytes.data(), info}, bytes.size()));
  }
  return session->run();
}

/// Runs in a child process, after a small net that loads the backend and warms it up.
Outcome run_apart(const Net& net, uint64_t limit) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(pipe_ends[0]);
    Net small;
    small.build.output(small.build.neg(small.x({16})));
    Status status = run_once(small, 0);
    const uint64_t before = peak();
    if (status.ok()) {
      try {
        status = run_once(net, limit);
      } catch (const std::bad_alloc&) {
        status = Status(Code::OutOfMemory, "bad_alloc: named nothing");
      }
    }
    const std::string text = std::to_string(static_cast<int>(status.code())) + " " +
                             std::to_string(peak() - before) + " " + status.message();
    const auto written = write(pipe_ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(pipe_ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t count = 0; (count = read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(count));
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  Outcome outcome;
  outcome.ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!outcome.ended) return outcome;
  char* rest = nullptr;
  outcome.code = static_cast<Code>(std::strtol(text.c_str(), &rest, 10));
  outcome.growth = std::strtoull(rest, &rest, 10);
  outcome.message = rest + 1;
  return outcome;
}

void expect_refused(const Net& net, const std::string& what, const char* op) {
  ASSERT_TRUE(net.build.status().ok()) << what << ": " << net.build.status().message();
  const Outcome outcome = run_apart(net, kLimit);
  ASSERT_TRUE(outcome.ended) << what;
  EXPECT_EQ(outcome.code, Code::OutOfMemory) << what << ": " << outcome.message;
  EXPECT_NE(outcome.message.find("the memory limit is 64.0 MiB"), std::string::npos)
      << what << ": " << outcome.message;
  EXPECT_NE(outcome.message.find(op), std::string::npos) << what << ": " << outcome.message;
  EXPECT_LT(outcome.growth, kLimit + 64 * kMiB) << what;
}

ValueId sum_of(Net& net, ValueId value) {
  op::ReduceSumAttributes all;
  all.keep_dims = false;
  return net.build.emit(all, {value});
}

/// The result of one operator, as an output and as an intermediate value.
TEST(MemoryLimit, CountsResultsWhoseSizeIsAnInput) {
  constexpr int64_t kElements = 1 << 27;  // 512 MiB
  for (const Case& each : kSized)
    for (const From from : {From::Input, From::Data})
      for (const bool intermediate : {false, true}) {
        Net net;
        const ValueId value = each.make(net, from, kElements);
        net.build.output(intermediate ? sum_of(net, value) : value);
        std::string op = each.name;
        if (op == "PadReflect") op = "Pad";
        expect_refused(net,
                       text(each.name, from == From::Input ? " from an input" : " from data",
                            intermediate ? ", intermediate" : ", output"),
                       op.c_str());
      }
}

/// With no limit: more than any machine has.
TEST(MemoryLimit, IsTheMachinesWithoutAnother) {
  for (const Case& each : kSized)
    for (const From from : {From::Input, From::Data})
      for (const int64_t elements : {int64_t{1} << 42, int64_t{1} << 58, int64_t{1} << 62})
        for (const bool intermediate : {false, true}) {
          Net net;
          const ValueId value = each.make(net, from, elements);
          net.build.output(intermediate ? sum_of(net, value) : value);
          const std::string what = text(each.name, " of ", elements);
          ASSERT_TRUE(net.build.status().ok()) << what << ": " << net.build.status().message();
          const Outcome outcome = run_apart(net, 0);
          ASSERT_TRUE(outcome.ended) << what;
          EXPECT_NE(outcome.code, Code::Ok) << what;
          EXPECT_NE(outcome.code, Code::Internal) << what << ": " << outcome.message;
          EXPECT_EQ(outcome.message.find("named nothing"), std::string::npos) << what;
          EXPECT_LT(outcome.growth, 128 * kMiB) << what;
        }
}

/// Tables of a kernel that are much larger than its operands and its result.
TEST(MemoryLimit, CountsTablesOfKernels) {
  Net stretched;  // antialiasing: many taps for the one axis make many entries for the other
  op::ResizeAttributes linear;
  linear.mode = op::ResizeMode::Linear;
  linear.antialias = true;
  const ValueId tall = stretched.x({1, 1 << 12, 1, 1});
  stretched.build.output(stretched.build.emit(linear, {tall, stretched.shape(From::Input, {2, 1 << 14})}));
  expect_refused(stretched, "antialiasing", "Resize");

  Net row;  // 48 MiB of bytes
  op::ResizeAttributes nearest;
  const ValueId bytes = row.build.reshape(row.ones(4), row.build.ints(std::vector<int64_t>{1, 2, 2, 1}));
  row.build.output(row.build.emit(nearest, {bytes, row.shape(From::Input, {1, 48 << 20})}));
  expect_refused(row, "a row of bytes", "Resize");
}

/// Operators on the host, whose results or intermediate values are larger than their operands.
TEST(MemoryLimit, CountsHostNodes) {
  Net places;
  places.build.output(places.build.emit(op::NonZeroAttributes{}, {places.ones(32 << 20)}));
  expect_refused(places, "positions of 32 Mi ones", "NonZero");

  Net distinct;
  distinct.build.output(
      distinct.build.emit_many(make_op(op::UniqueAttributes{}), std::vector{distinct.ones(16 << 20)}, 4)[0]);
  expect_refused(distinct, "16 Mi bytes in a common type", "Unique");

  Net boxes;  // corners in f32, candidates and their order beside 20 MiB of 16-bit numbers
  constexpr int64_t kBoxes = 2 << 20;
  const ValueId corners =
      boxes.input<uint16_t>(DType::F16, {1, kBoxes, 4}, std::vector<uint16_t>(4 * kBoxes));
  const ValueId scores =
      boxes.input<uint16_t>(DType::F16, {1, 1, kBoxes}, std::vector<uint16_t>(kBoxes, 0x3c00));
  boxes.build.output(
      boxes.build.emit(op::NonMaxSuppressionAttributes{}, {corners, scores, boxes.scalar(From::Input, 1)}));
  expect_refused(boxes, "2 Mi boxes", "NonMaxSuppression");
}

/// What the iterations of a loop add up to.
TEST(MemoryLimit, CountsWhatLoopsAccumulate) {
  const auto loop = [](bool scan) {
    Net net;
    const ValueId x = net.x({1 << 16}), trips = net.scalar(From::Input, 4000);  // 256 KiB each
    std::vector<ValueId> carried;
    if (!scan) {
      const int32_t length = net.graph.symbol("length");
      net.values.emplace_back(TensorInfo{DType::F32, {1}}, std::vector<std::byte>(4));
      carried.push_back(net.build.input("list", DType::F32, {{.symbol = length}}));
    }
    Body body(net.graph, carried, {x}, true);
    body.build.output(body.build.emit(op::IdentityAttributes{}, {body.in(1)}));
    if (scan)
      body.build.output(body.build.neg(body.in(2)));
    else
      body.build.output(body.build.emit(op::ConcatAttributes{}, {body.in(2), body.in(3)}));
    net.build.output(emit_loop(net.build, trips, kNoValue, carried, body)[0]);
    return net.build.status().ok() ? std::make_unique<Net>(std::move(net.graph), std::move(net.values))
                                   : nullptr;
  };
  for (const bool scan : {true, false}) {
    const auto net = loop(scan);
    ASSERT_NE(net, nullptr);
    expect_refused(*net, scan ? "slices" : "a growing list", scan ? "Loop" : "");
  }
}

/// Copies of inputs.
TEST(MemoryLimit, CountsInputs) {
  Net net;
  net.build.output(sum_of(net, net.x({1 << 25})));
  // A device with memory of its own plans its copy with everything else.
  const bool on_host = backend_name == "cpu" || backend_name == "reference";
  expect_refused(net, "an input of 128 MiB", on_host ? "input 'in1'" : "at these shapes needs");
}

/// Sizes within the limit are computed, more than once, and memory of the caller does not count.
TEST(MemoryLimit, AllowsWhatFits) {
  for (const Case& each : kSized)
    for (const From from : {From::Input, From::Data}) {
      Net net;
      net.build.output(each.make(net, from, 1 << 20));
      const Outcome outcome = run_apart(net, kLimit);
      EXPECT_EQ(outcome.code, Code::Ok) << each.name << ": " << outcome.message;
    }
}

}  // namespace
}  // namespace librt

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  mallopt(M_MMAP_THRESHOLD,
          128 << 10);  // resident memory is what is allocated, without holes that the allocator keeps
  librt::backend_name = argc > 1 ? argv[1] : "reference";
  librt::Net small;
  small.build.output(small.build.neg(small.x({4})));
  if (const librt::Outcome found = librt::run_apart(small, 0); found.code == librt::Code::Device) {
    std::printf("skipped: %s\n", found.message.c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
