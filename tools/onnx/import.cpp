#include "tools/onnx/import.h"

#include <algorithm>
#include <climits>
#include <new>
#include <tuple>

#include "tools/data/file.h"
#include "tools/onnx/importer.h"
#include "tools/onnx/known_weights.h"
#include "tools/onnx/lost_weights.h"
#include "tools/onnx/model_file.h"
#include "tools/onnx/retie.h"
#include "tools/onnx/weights_file.h"

namespace librt::onnx {

Result<ModelGraph> import_onnx_proto(rt_onnx::ModelProto& proto, const ImportOptions& options,
                                     ImportReport& report) {
  ModelGraph model;
  model.producer = "rtconvert";
  model.entries.push_back({.name = "infer", .graph = {}});
  Untied untied;
  if (options.weights != nullptr || options.untie) {
    retie(proto, options.external_folder);
    untied = untie(proto, {.tie = options.tie, .external_folder = options.external_folder});
    report.shared = std::move(untied.shared);
  }
  if (options.weights != nullptr) {
    auto replaced = replace_weights(proto, *options.weights, untied.transposed, options.external_folder);
    if (!replaced.ok()) return std::move(replaced).status().in(options.weights_source);
    report.kept = std::move(replaced->kept);
  }
  if (options.untie) {
    report.lost = lost_weights(proto, options.external_folder);
    report.weights = known_weights(proto, options.external_folder);
  }
  Importer importer(model.entries[0].graph, options, report);
  RT_TRY(importer.run(proto));
  if (!report.producer.empty()) model.metadata.emplace_back("onnx.producer", report.producer);
  model.metadata.emplace_back("onnx.opset", std::to_string(report.opset));
  for (const auto& [key, value] : report.metadata) model.metadata.emplace_back(key, value);
  for (const auto& entry : proto.metadata_props())
    model.metadata.emplace_back("onnx." + entry.key(), entry.value());
  return model;
}

Result<ModelGraph> import_onnx_bytes(std::span<const std::byte> bytes, const ImportOptions& options,
                                     ImportReport& report) {
  try {
    if (bytes.size() > INT_MAX)
      return unsupported("the file has ", bytes_text(bytes.size()),
                         ", Protocol Buffers hold 2 GiB; save the weights as external data");
    rt_onnx::ModelProto proto;
    if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return invalid_model(
          "the file is not an ONNX model, is cut short, or has graphs within graphs more than 30 deep");
    return import_onnx_proto(proto, options, report);
  } catch (const std::bad_alloc&) {
    return Status(Code::OutOfMemory, "not enough memory to import the model");
  } catch (const std::exception& error) {
    return internal_error("importing failed: ", error.what());
  }
}

Result<ModelGraph> import_onnx(const std::string& path, const ImportOptions& options, ImportReport& report) {
  try {
    ImportOptions with_folder = options;
    if (with_folder.external_folder.empty()) with_folder.external_folder = folder_of(path);
    RT_ASSIGN(const tools::Bytes bytes, tools::read_file(path, INT_MAX));  // Protocol Buffers hold 2 GiB
    auto model = import_onnx_bytes(bytes, with_folder, report);
    if (!model.ok()) return std::move(model).status().in(path);
    return model;
  } catch (const std::bad_alloc&) {
    return Status(Code::OutOfMemory, "not enough memory to read the model");
  }
}

std::vector<SupportedOp> supported_ops() {
  std::vector<SupportedOp> ops;
  for (const ImportRow& row : import_rows()) {
    SupportedOp op{.domain = row.domain.empty() ? "ai.onnx" : row.domain,
                   .op = row.op,
                   .first_opset = row.first_opset,
                   .last_opset = row.last_opset};
    if (!ops.empty() && ops.back().op == op.op && ops.back().domain == op.domain &&
        ops.back().last_opset + 1 == op.first_opset)
      ops.back().last_opset = op.last_opset;
    else
      ops.push_back(op);
  }
  for (const SupportedOp& op : Importer::walked_ops()) ops.push_back(op);
  std::stable_sort(ops.begin(), ops.end(), [](const SupportedOp& a, const SupportedOp& b) {
    return std::tie(a.domain, a.op) < std::tie(b.domain, b.op);
  });
  return ops;
}

std::string table_of(std::span<const UnsupportedNode> nodes) {
  const std::string_view titles[] = {"node",  "operator", "domain",         "opset",
                                     "dtype", "reason",   "what would help"};
  constexpr size_t kColumns = std::size(titles);
  std::vector<std::array<std::string, kColumns>> rows(1);
  for (size_t i = 0; i < kColumns; ++i) rows[0][i] = titles[i];
  for (const UnsupportedNode& node : nodes)
    rows.push_back(
        {node.name, node.op, node.domain, std::to_string(node.opset), node.dtype, node.reason, node.help});
  std::array<size_t, kColumns> widths{};
  for (const auto& row : rows)
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) {
      out += row[i];
      if (i + 1 < kColumns) out.append(widths[i] - row[i].size() + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

}  // namespace librt::onnx
