#include "backends/vulkan/self_tests/self_test.h"

#include <fnmatch.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/core/convert_floats.h"
#include "runtime/core/environment.h"

namespace librt::vulkan {
namespace {

bool fits_pattern(const std::string& pattern, const char* name) {
  return fnmatch(pattern.c_str(), name, 0) == 0;
}

bool matches_any_shader(const std::string& pattern) {
  for (size_t i = 0; i < kShaderCount; ++i)
    if (fits_pattern(pattern, shader_code(static_cast<Shader>(i)).name)) return true;
  return false;
}

/// Runs the program; empty if the result is right, else where it is wrong.
Result<std::string> run(VulkanDevice& device, const SelfTest& test) {
  const Requirements needs = test.program->requirements();
  const size_t alignment = device.info().alignment;
  size_t used = 0;
  const auto take = [&](size_t bytes) {
    const BufferRef ref{.slot = 0, .offset = used, .bytes = bytes};
    used += (bytes + alignment - 1) / alignment * alignment;
    return ref;
  };
  std::vector<BufferRef> inputs;
  for (const auto& input : test.inputs) inputs.push_back(take(input.size() * sizeof(float)));
  const BufferRef output = take(test.expected.size() * sizeof(float));
  const BufferRef scratch = needs.scratch > 0 ? take(needs.scratch) : BufferRef{};
  RT_ASSIGN(const SlabPtr slab, device.allocate(used));
  for (size_t i = 0; i < inputs.size(); ++i)
    RT_TRY(device.upload(*slab, inputs[i].offset, std::as_bytes(std::span(test.inputs[i]))));
  // Makes elements that are not written detectable.
  std::vector<float> got(test.expected.size(), std::numeric_limits<float>::quiet_NaN());
  RT_TRY(device.upload(*slab, output.offset, std::as_bytes(std::span(got))));

  Slab* const slots[] = {slab.get()};
  RT_ASSIGN(const CommandListPtr commands, device.begin({.slots = slots}));
  RT_TRY(test.program->record(*commands, {inputs, {&output, 1}, scratch, {}}));
  RT_TRY(commands->finish());
  RT_TRY(commands->submit());
  RT_TRY(commands->wait());
  RT_TRY(device.download(*slab, output.offset, std::as_writable_bytes(std::span(got))));
  for (size_t i = 0; i < got.size(); ++i) {
    const float want = test.expected[i];
    if (!(std::abs(got[i] - want) <= 1e-3f + 1e-3f * std::abs(want)))
      return text("its self-test gave ", got[i], " for ", want, " at element ", i, " of ", got.size());
  }
  return std::string();
}

}  // namespace

Result<std::unique_ptr<SelfTests>> SelfTests::open(VulkanDevice& device, std::string file,
                                                   std::string_view key) {
  std::unique_ptr<SelfTests> tests(new SelfTests(device, std::move(file), key));
  if (const char* value = environment("RT_VULKAN_SELF_TEST"); value != nullptr) {
    if (std::strcmp(value, "0") != 0 && std::strcmp(value, "1") != 0)
      return invalid_argument("RT_VULKAN_SELF_TEST is '", value, "'; expected 0 or 1");
    tests->enabled_ = *value == '1';
  }
  const char* value = environment("RT_VULKAN_QUARANTINE");
  for (std::string_view rest = value == nullptr ? "" : value; !rest.empty();) {
    const std::string name(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (!matches_any_shader(name))
      return invalid_argument("RT_VULKAN_QUARANTINE names '", name, "', and no shader is called so; the ",
                              "lines `variants:` of shaders/*.comp name them");
    tests->excluded_.push_back(name);
  }
  return tests;
}

Status SelfTests::trusted(Shader shader, const std::vector<uint32_t>& constants,
                          const std::function<SelfTest()>& make) {
  std::string name = shader_code(shader).name;
  for (const std::string& pattern : excluded_)
    if (fits_pattern(pattern, name.c_str())) {
      if (noted_.insert(name).second) device_.note_quarantine(name + ": by RT_VULKAN_QUARANTINE");
      return unsupported(name, " is in quarantine by RT_VULKAN_QUARANTINE");
    }
  if (!enabled_) return {};
  for (uint32_t constant : constants) append(name, ".", constant);
  auto test = results_.begin(name);
  if (noted_.insert(results_.problem().message()).second) device_.note_cache(results_.problem());
  if (!test.known()) {
    const auto result = run(device_, make());
    if (result.ok())
      test.end(*result);
    else if (result.status().code() == Code::Device || result.status().code() == Code::DeviceLost)
      test.end(text("its self-test failed: ", result.status().message()));
    else
      return {};
  }
  if (test.known()->empty()) return {};
  if (noted_.insert(name).second)
    device_.note_quarantine(
        text(name, ": ", *test.known(),
             results_.path().empty() ? "" : text(" (to test it again, delete ", results_.path(), ")")));
  return unsupported(name, " is in quarantine: ", *test.known());
}

std::vector<float> stored_as(DType dtype, const std::vector<float>& values) {
  if (dtype == DType::F32) return values;
  std::vector<float> words((values.size() + 1) / 2);
  convert_floats(values.data(), DType::F32, words.data(), dtype, static_cast<int64_t>(values.size()));
  return words;
}

std::vector<float> small_integers(int64_t count, int64_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>((i * 7 + seed * 5 + i / 13) % 11 - 5));
  return values;
}

}  // namespace librt::vulkan
