// Choice of backend and device: incompatible modules, device profiles, the choice of "auto".
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/backend/abi.h"
#include "runtime/backend/loader.h"
#include "runtime/backend/registry.h"
#include "runtime/session/device/device_profile.h"
#include "runtime/session/prepare/cost_model.h"
#include "runtime/session/prepare/device_choice.h"
#include "runtime/session/prepare/kernel_tuning.h"

namespace librt {
namespace {

TEST(Module, RefusalsAreSentences) {
  const auto loaded = load_module("reference");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  BackendModule module = **loaded;
  EXPECT_TRUE(check_module(&module, "reference", "file").ok());
  EXPECT_FALSE(check_module(nullptr, "reference", "file").ok());
  EXPECT_NE(check_module(&module, "cpu", "file").message().find("reports backend 'reference'"),
            std::string::npos);
  module.abi = "0.0.9-0123456789abcdef";
  const Status stamp = check_module(&module, "reference", "file");
  EXPECT_EQ(stamp.code(), Code::Unsupported);
  EXPECT_NE(stamp.message().find(text("stamp 0.0.9-0123456789abcdef, this one has ", RT_BACKEND_ABI)),
            std::string::npos)
      << stamp.message();
  module = **loaded;
  module.size = 8;
  EXPECT_NE(check_module(&module, "reference", "file").message().find("8 bytes"), std::string::npos);
  EXPECT_EQ(load_module("../evil").status().code(), Code::InvalidArgument);
  const Status unknown = load_module("gpu").status();
  EXPECT_EQ(unknown.code(), Code::InvalidArgument);
  EXPECT_EQ(unknown.message(), "unknown backend 'gpu'; expected cpu, vulkan, cuda, reference or auto");
}

TEST(Module, EveryBackendHasDevicesOrAReason) {
  for (const BackendReport& report : probe_backends())
    EXPECT_NE(report.devices.empty(), report.reason.empty());
}

TEST(DeviceProfile, IsTypicalUntilMeasured) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "librt_profile_test";
  std::filesystem::remove_all(folder);
  DeviceInfo info;
  info.backend = "vulkan";
  info.type = DeviceType::DiscreteGpu;
  EXPECT_FALSE(read_profile(folder.string(), info).measured);
  DeviceProfile measured{1e12, 2e11, 1e10, 1e-6, 2e-5};
  ASSERT_TRUE(write_profile(folder.string(), info, measured).ok());
  const DeviceProfile back = read_profile(folder.string(), info);
  EXPECT_TRUE(back.measured);
  EXPECT_EQ(back.memory_bandwidth, 2e11);
  info.driver = "another";
  EXPECT_FALSE(read_profile(folder.string(), info).measured);
  measured.flops_f32 = 0;
  EXPECT_EQ(write_profile(folder.string(), info, measured).code(), Code::InvalidArgument);
  std::filesystem::remove_all(folder);
}

TEST(Tuning, WinnersAreRememberedForTheRowsTheyHaveBeaten) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "librt_tuning_test";
  std::filesystem::remove_all(folder);
  auto device = open_device("reference", {});
  ASSERT_TRUE(device.ok()) << device.status().message();
  Node node;
  node.op = make_op(op::AddAttributes{});
  const TensorInfo info{.dtype = DType::F32, .shape = {8}};
  const Operand operand{.present = true, .info = info, .value = nullptr};
  const Operand operands[] = {operand, operand};
  const NodeView view{node, operands, std::span(&info, 1)};
  const auto candidates = (*device)->kernels().candidates(**device, view);
  ASSERT_TRUE(candidates.ok()) << candidates.status().message();
  KernelRow second = *candidates->at(0), third = second;
  second.name = "second";
  third.name = "third";
  const auto choice = [&](std::vector<const KernelRow*> rows) {
    KernelTuner kernel_tuner(
        {.enabled = true, .limit = std::chrono::minutes(1), .cache_folder = folder.string()});
    kernel_tuner.begin_plan();
    std::string how;
    const auto chosen = kernel_tuner.choose(**device, view, rows, std::vector<LayoutId>(2, kDense), how);
    EXPECT_TRUE(chosen.ok()) << chosen.status().message();
    kernel_tuner.save();
    return how.substr(0, how.find(','));
  };
  const KernelRow* first = candidates->at(0);
  EXPECT_EQ(choice({first, &second}), "fastest of 2");
  EXPECT_EQ(choice({first, &second}), "tuned earlier");
  EXPECT_EQ(choice({first, &second, &third}), "fastest of 3");  // one more candidate
  EXPECT_EQ(choice({first, &second, &third}), "tuned earlier");
  std::filesystem::remove_all(folder);
}

TEST(Select, TakesWhatIsAskedForAndExplainsAuto) {
  const Graph graph;
  const std::string kVulkan = "vulkan", kAuto = "auto", kNothing;
  const auto asked = choose_device(graph, {}, {kVulkan, kNothing, kNothing}, {});
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(asked->backend, "vulkan");
  const std::string kEnergy = "energy", kThroughput = "throughput", kFun = "fun";
  EXPECT_EQ(choose_device(graph, {}, {kAuto, kFun, kNothing}, {}).status().message(),
            "prefer: expected latency, throughput or energy, found 'fun'");
  EXPECT_EQ(choose_device(graph, {}, {kVulkan, kEnergy, kNothing}, {}).status().message(),
            "prefer: is for the backend auto, found vulkan");
  const auto reason = [&](const std::string& prefer, const DeviceOptions& options) {
    const auto choice = choose_device(graph, {}, {kAuto, prefer, kNothing}, options);
    return choice.ok() ? choice->reason : "none: " + choice.status().message();
  };
  const bool has_device = !reason(kNothing, {}).starts_with("none: ");
  const auto says = [&](const std::string& text, const std::string& part) {
    EXPECT_EQ(text.find(part) != std::string::npos, has_device) << text;
  };
  says(reason(kEnergy, {}), ", typical ");
  says(reason(kEnergy, {}), "the least predicted energy");
  says(reason(kThroughput, {}), "time at batch 32");
  // A software device, which has the CPU's cores, is no candidate by a prediction.
  const std::string predicted = reason(kNothing, {});
  bool has_cpu = false, has_software = false;
  for (const BackendReport& report : probe_backends())
    for (const DeviceInfo& info : report.devices) {
      has_cpu |= report.name == "cpu";
      has_software |= info.type == DeviceType::SoftwareGpu;
    }
  const std::string kNoCandidate = ", software: a candidate once it is measured";
  EXPECT_EQ(predicted.find(kNoCandidate) != std::string::npos, has_software) << predicted;
  if (has_cpu) {
    EXPECT_TRUE(predicted.starts_with("auto: cpu 0")) << predicted;
  }
  // A remembered run of the same work is taken instead of the prediction.
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "librt_runs_test";
  std::filesystem::remove_all(folder);
  const auto work = workload_of(graph, {}, {}, "");
  ASSERT_TRUE(work.ok()) << work.status().message();
  for (const BackendReport& report : probe_backends())
    for (const DeviceInfo& info : report.devices)
      ASSERT_TRUE(write_run(folder.string(), work->hash, info, 0.0125).ok());
  says(reason(kNothing, {.cache_folder = folder.string()}), "the least measured time");
  says(reason(kNothing, {.cache_folder = folder.string()}), "12.500 ms, measured");
  EXPECT_EQ(reason(kNothing, {.cache_folder = folder.string()}).find(kNoCandidate), std::string::npos);
  std::filesystem::remove_all(folder);
  const auto chosen = choose_device(graph, {}, {kAuto, kNothing, kNothing}, {});
  if (chosen.ok())
    EXPECT_NE(chosen->reason.find("typical profile"), std::string::npos) << chosen->reason;
  else
    EXPECT_NE(chosen.status().message().find("no backend offers a device"), std::string::npos);
}

}  // namespace
}  // namespace librt
