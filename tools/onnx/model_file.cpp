#include "tools/onnx/model_file.h"

#include <sys/stat.h>

#include <climits>
#include <filesystem>
#include <map>

#include "runtime/core/atomic_file.h"
#include "tools/onnx/attribute.h"
#include "tools/onnx/initializer.h"
#include "tools/onnx/onnx.pb.h"
#include "tools/onnx/tensor_proto.h"

namespace librt::onnx {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLeastExternal = 1024;
/// So that the data can be mapped.
constexpr size_t kExternalAlignment = 4096;
/// What a tensor's message may grow by when its elements move into it: key and length of raw_data.
constexpr size_t kElementsOverhead = 8;

template <class Visit>
void each_initializer(rt_onnx::GraphProto& graph, const Visit& visit) {
  for (auto& tensor : *graph.mutable_initializer()) visit(tensor);
  for (auto& node : *graph.mutable_node())
    each_body(node, [&](rt_onnx::GraphProto& body) { each_initializer(body, visit); });
}

bool is_external(const rt_onnx::TensorProto& tensor) {
  return tensor.data_location() == 1;
}

Status fill(const PendingElements& pending) {
  RT_ASSIGN(const Blob elements, pending.make());
  tools::clear_elements(*pending.tensor);
  pending.tensor->set_raw_data(elements.data, elements.size);
  return {};
}

/// The second file: initializers one after the other.
class DataFile {
 public:
  DataFile(const std::string& path, std::string name) : file_(path), name_(std::move(name)) {}

  Status open() { return file_.open(); }
  Status commit() { return file_.commit(); }
  bool is_empty() const noexcept { return size_ == 0; }

  Status add(const Blob& elements, rt_onnx::TensorProto& tensor) {
    static constexpr std::byte kPadding[kExternalAlignment] = {};
    if (const size_t over = size_ % kExternalAlignment; over != 0) {
      RT_TRY(file_.write(kPadding, kExternalAlignment - over));
      size_ += kExternalAlignment - over;
    }
    RT_TRY(file_.write(elements.data, elements.size));
    tools::clear_elements(tensor);
    tensor.set_data_location(1);
    const auto set = [&](const char* key, const std::string& value) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    };
    set("location", name_);
    set("offset", std::to_string(size_));
    set("length", std::to_string(elements.size));
    size_ += elements.size;
    return {};
  }

 private:
  AtomicFile file_;
  std::string name_;
  size_t size_ = 0;
};

class ModelFileWriter {
 public:
  ModelFileWriter(rt_onnx::ModelProto& model, const std::vector<PendingElements>& pending,
                  const std::string& target, const ModelFileOptions& options)
      : model_(model), target_(target), options_(options), reader_(options.source_folder) {
    for (const PendingElements& each : pending) pending_.emplace(each.tensor, each);
  }

  Result<std::string> run() {
    if (!stays_in_folder()) RT_TRY(take_over());
    size_t bytes = model_.ByteSizeLong();
    for (const auto& [tensor, each] : pending_) bytes += each.bytes + kElementsOverhead;
    if (options_.external || bytes > INT_MAX) return write_two();
    for (const auto& [tensor, each] : pending_) RT_TRY(fill(each));
    AtomicFile file(target_);
    RT_TRY(write_message(file));
    RT_TRY(file.commit());
    return std::string();
  }

 private:
  bool stays_in_folder() const {
    std::error_code error;
    return options_.source_folder.empty() ||
           fs::equivalent(options_.source_folder, folder_of(target_), error);
  }

  /// External data of the source becomes the model's own.
  Status take_over() {
    Status status;
    each_initializer(*model_.mutable_graph(), [&](rt_onnx::TensorProto& tensor) {
      if (!status.ok() || !is_external(tensor) || pending_.contains(&tensor)) return;
      auto elements = reader_.stored(tensor);
      if (!elements.ok())
        status = std::move(elements).status().in("initializer '", tensor.name(), "'");
      else
        pending_[&tensor] = {&tensor, elements->size, [blob = *elements] { return blob; }};
    });
    return status;
  }

  Result<std::string> write_two() {
    struct stat info {};
    if (stat(target_.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
      return invalid_argument(target_, ": expected a file, beside which another with the weights can be");
    RT_TRY(take_over());
    const std::string path = target_ + ".data", name = fs::path(path).filename().string();
    DataFile data(path, name);
    RT_TRY(data.open());
    Status status;
    each_initializer(*model_.mutable_graph(), [&](rt_onnx::TensorProto& tensor) {
      if (status.ok()) status = move_out(tensor, data);
    });
    RT_TRY(std::move(status));
    for (const auto& [tensor, each] : pending_) RT_TRY(fill(each));  // of Constants, and small ones
    AtomicFile file(target_);
    RT_TRY(write_message(file));
    if (!data.is_empty()) RT_TRY(data.commit());
    RT_TRY(file.commit());
    return data.is_empty() ? std::string() : path;
  }

  Status move_out(rt_onnx::TensorProto& tensor, DataFile& data) {
    if (const auto found = pending_.find(&tensor); found != pending_.end()) {
      if (found->second.bytes < kLeastExternal) return {};
      RT_ASSIGN(const Blob elements, found->second.make());
      pending_.erase(found);
      return data.add(elements, tensor);
    }
    if (tensor.raw_data().size() < kLeastExternal) return {};
    const std::string elements = std::move(*tensor.mutable_raw_data());
    return data.add({.data = reinterpret_cast<const std::byte*>(elements.data()), .size = elements.size()},
                    tensor);
  }

  Status write_message(AtomicFile& file) {
    if (model_.ByteSizeLong() > INT_MAX)
      return unsupported(target_, ": the model has ", bytes_text(model_.ByteSizeLong()),
                         " besides the weights that can be in another file, Protocol Buffers hold 2 GiB; use "
                         "a narrower --precision");
    const std::string bytes = model_.SerializeAsString();
    RT_TRY(file.open());
    return file.write(bytes.data(), bytes.size());
  }

  rt_onnx::ModelProto& model_;
  const std::string& target_;
  const ModelFileOptions& options_;
  InitializerReader reader_;
  std::map<rt_onnx::TensorProto*, PendingElements> pending_;
};

}  // namespace

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Status fill_elements(const std::vector<PendingElements>& pending) {
  for (const PendingElements& each : pending) RT_TRY(fill(each));
  return {};
}

Result<std::string> write_model_file(rt_onnx::ModelProto& model, std::vector<PendingElements> pending,
                                     const std::string& target, const ModelFileOptions& options) {
  return ModelFileWriter(model, pending, target, options).run();
}

}  // namespace librt::onnx
