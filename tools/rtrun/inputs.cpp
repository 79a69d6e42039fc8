#include "tools/rtrun/inputs.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "tools/data/compare.h"
#include "tools/data/public_status.h"
#include "tools/data/random.h"
#include "tools/onnx/array_file.h"

namespace rt::run {
namespace {

using librt::tools::Array;

rt::Status bad(std::string message) {
  return {rt::Code::InvalidArgument, std::move(message)};
}

std::string names_of(const std::vector<rt::TensorSpec>& specs) {
  std::string names;
  for (const rt::TensorSpec& spec : specs) names += (names.empty() ? "" : ", ") + spec.name;
  return names;
}

// Converts the file's type to the input's; a float array for an integer input is an error.
rt::Result<Array> fitted(Array array, const rt::TensorSpec& spec, const std::string& source) {
  const auto wanted = static_cast<librt::DType>(spec.dtype);
  if (array.type == wanted) return array;
  if (is_float(array.type) && !is_float(wanted))
    return bad(source + ": input '" + spec.name + "' expects " + std::string(rt::name_of(spec.dtype)) +
               ", the file has " + librt::tools::describe(array));
  return librt::tools::converted(array, wanted);
}

rt::Result<Array> read_picture(const std::string& path, std::span<const std::byte> bytes,
                               const rt::TensorSpec& spec, const InputOptions& options) {
  std::string error;
  auto image = librt::tools::decode_image(bytes, error);
  if (!image) return rt::Status(rt::Code::Io, path + ": " + error);
  if (spec.dims.size() != 4)
    return bad(path + ": an image needs an input of rank 4, '" + spec.name + "' has rank " +
               std::to_string(spec.dims.size()));
  librt::tools::ImageOptions how = options.image;
  if (!options.layout_given) {
    const int64_t second = spec.dims[1].extent;
    const int64_t last = spec.dims[3].extent;
    how.channels_first = !(last == 3 || last == 1) || second == 3 || second == 1;
  }
  const int64_t channels = spec.dims[how.channels_first ? 1 : 3].extent;
  if (channels == 1) how.channels = librt::tools::Channels::Gray;
  const int64_t height = spec.dims[how.channels_first ? 2 : 1].extent;
  const int64_t width = spec.dims[how.channels_first ? 3 : 2].extent;
  if ((height >= 0 && height != image->height) || (width >= 0 && width != image->width)) {
    const int64_t to_height = height >= 0 ? height : image->height;
    const int64_t to_width = width >= 0 ? width : image->width;
    constexpr auto kMost = static_cast<int64_t>(librt::tools::kMostPixels);
    if (to_height < 1 || to_width < 1 || to_height > kMost / to_width)
      return bad(path + ": input '" + spec.name + "' expects " + std::to_string(to_width) + "x" +
                 std::to_string(to_height) + " pixels; pictures have 1 to " + std::to_string(kMost));
    if (!options.resize)
      return bad(path + ": is " + std::to_string(image->width) + "x" + std::to_string(image->height) +
                 ", input '" + spec.name + "' expects " + std::to_string(to_width) + "x" +
                 std::to_string(to_height) + "; add --resize to scale it");
    *image = librt::tools::resized(*image, static_cast<int>(to_width), static_cast<int>(to_height));
  }
  for (const auto* values : {&how.mean, &how.deviation})
    if (values->size() != 1 && values->size() != (how.channels == librt::tools::Channels::Gray ? 1u : 3u))
      return bad("--mean and --std take one value or one per channel");
  return librt::tools::image_to_array(*image, how);
}

/// [samples], or [1,...,1,samples] where the input has more dimensions.
rt::Result<Array> read_sound(const std::string& path, std::span<const std::byte> bytes,
                             const rt::TensorSpec& spec, const InputOptions& options) {
  std::string error;
  const auto sound = librt::tools::parse_wav(bytes, error);
  if (!sound) return bad(path + ": " + error);
  const std::string found = std::to_string(sound->rate) + " Hz";
  if (options.sample_rate > 0 && sound->rate != options.sample_rate)
    return bad(path + ": expected " + std::to_string(options.sample_rate) + " Hz (--sample-rate), found " +
               found + "; resample it");
  if (sound->channels > 1 && !options.mix)
    return bad(path + ": expected one channel, found " + std::to_string(sound->channels) +
               "; add --audio-channels first or mean");
  const size_t rank = spec.dims.size();
  for (size_t i = 0; i + 1 < rank; ++i)
    if (spec.dims[i].extent > 1)
      return bad(path + ": a sound needs an input of shape [samples] or [1,...,1,samples], '" + spec.name +
                 "' has extent " + std::to_string(spec.dims[i].extent) + " in dimension " +
                 std::to_string(i));
  if (rank == 0)
    return bad(path + ": a sound needs an input with a dimension, '" + spec.name + "' is a scalar");
  if (const int64_t wanted = spec.dims.back().extent; wanted >= 0 && wanted != sound->frames())
    return bad(path + ": has " + std::to_string(sound->frames()) + " samples, input '" + spec.name +
               "' expects " + std::to_string(wanted));
  if (options.sample_rate == 0)
    std::fprintf(stderr, "rtrun: %s: %s, %ld samples; --sample-rate checks the rate\n", path.c_str(),
                 found.c_str(), static_cast<long>(sound->frames()));
  Array array = librt::tools::sound_to_array(*sound, options.mix.value_or(librt::tools::Mix::First));
  array.dims.insert(array.dims.begin(), rank - 1, 1);
  return array;
}

size_t largest_input(std::span<const std::byte> head) {
  if (librt::tools::is_image(head)) return librt::tools::kLargestImageFile;
  return librt::tools::is_wav(head) ? librt::tools::kLargestWav : librt::tools::largest_array_file(head);
}

/// A picture, a sound or an array, by the file's first bytes.
rt::Result<Array> read_input(const std::string& path, const rt::TensorSpec& spec,
                             const InputOptions& options) {
  auto bytes = librt::tools::read_file(path, largest_input);
  if (!bytes) return as_public(bytes.status());
  if (librt::tools::is_image(*bytes)) return read_picture(path, *bytes, spec, options);
  if (librt::tools::is_wav(*bytes)) return read_sound(path, *bytes, spec, options);
  if (bytes->empty())
    return rt::Status(rt::Code::Io,
                      path + ": the file is empty; expected .npy, TensorProto, PNG, JPEG or WAV");
  auto array = librt::tools::parse_array(path, std::move(*bytes));
  if (!array) return as_public(array.status());
  return std::move(*array);
}

rt::Status check_dims(const std::vector<rt::TensorSpec>& specs, const InputOptions& options) {
  std::set<std::string> symbols;
  for (const rt::TensorSpec& spec : specs)
    for (const rt::Dim& dim : spec.dims)
      if (dim.extent < 0) symbols.insert(dim.symbol);
  for (const auto& [name, extent] : options.dims) {
    if (symbols.contains(name)) continue;
    std::string known;
    for (const std::string& symbol : symbols) known += (known.empty() ? "" : ", ") + symbol;
    return bad("--dim: expected a dynamic dimension of the model (" + (known.empty() ? "none" : known) +
               "), found '" + name + "'");
  }
  return {};
}

rt::Result<Array> random_array(const rt::TensorSpec& spec, const InputOptions& options, uint64_t stream) {
  Array array;
  array.type = static_cast<librt::DType>(spec.dtype);
  for (const rt::Dim& dim : spec.dims) {
    int64_t extent = dim.extent;
    if (extent < 0) {
      const auto given = options.dims.find(dim.symbol);
      extent = given == options.dims.end() ? 1 : given->second;
    }
    array.dims.push_back(extent);
  }
  const auto bytes = librt::tools::byte_count(array.type, array.dims);
  if (!bytes) return bad("input '" + spec.name + "': the shape is too large");
  Array floats{.name = spec.name, .type = librt::DType::F32, .dims = array.dims, .bytes = {}};
  const size_t count = *bytes / librt::size_of(array.type);
  floats.bytes.resize(count * sizeof(float));
  uint64_t state = options.seed * 0x9e3779b97f4a7c15u + stream;
  for (size_t i = 0; i < count; ++i) {
    const float unit = static_cast<float>(librt::split_mix(state) >> 40) * 0x1p-24f;
    // Small integers are valid indices nearly everywhere.
    const float value = librt::is_float(array.type) ? 2 * unit - 1 : std::floor(unit * 2);
    std::memcpy(floats.bytes.data() + i * sizeof(float), &value, sizeof value);
  }
  return librt::tools::converted(floats, array.type);
}

}  // namespace

rt::Result<std::pair<std::string, std::string>> split_assignment(const std::string& text) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    return bad("expected NAME=FILE, found '" + text + "'");
  return std::pair<std::string, std::string>(text.substr(0, at), text.substr(at + 1));
}

rt::Result<std::vector<Array>> gather_inputs(const std::vector<rt::TensorSpec>& specs,
                                             const InputOptions& options) {
  if (rt::Status status = check_dims(specs, options); !status) return status;
  std::vector<std::optional<Array>> found(specs.size());
  auto put = [&](size_t i, Array array, const std::string& source) -> rt::Status {
    auto result = fitted(std::move(array), specs[i], source);
    if (!result) return result.status();
    found[i] = std::move(*result);
    return {};
  };
  if (!options.test_data.empty()) {
    for (size_t i = 0; i < specs.size(); ++i) {
      const std::string path = options.test_data + "/input_" + std::to_string(i) + ".pb";
      auto array = librt::tools::read_array(path);
      if (!array) return as_public(array.status());
      size_t target = i;
      for (size_t j = 0; j < specs.size(); ++j)
        if (!array->name.empty() && specs[j].name == array->name) target = j;
      if (rt::Status status = put(target, std::move(*array), path); !status) return status;
    }
  }
  for (const std::string& text : options.files) {
    auto assignment = split_assignment(text);
    if (!assignment) return assignment.status();
    const auto& [name, path] = *assignment;
    size_t index = specs.size();
    for (size_t i = 0; i < specs.size(); ++i)
      if (specs[i].name == name) index = i;
    if (index == specs.size())
      return bad("there is no input '" + name + "'; the inputs are: " + names_of(specs));
    auto array = read_input(path, specs[index], options);
    if (!array) return array.status();
    if (rt::Status status = put(index, std::move(*array), path); !status) return status;
  }
  std::vector<Array> inputs;
  std::string missing;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!found[i] && options.random) {
      auto array = random_array(specs[i], options, i);
      if (!array) return array.status();
      found[i] = std::move(*array);
    }
    if (!found[i])
      missing += (missing.empty() ? "" : ", ") + specs[i].name;
    else
      inputs.push_back(std::move(*found[i]));
  }
  if (!missing.empty())
    return bad("no data for " + missing + "; give --input NAME=FILE, --test-data FOLDER or --random-input");
  return inputs;
}

}  // namespace rt::run
