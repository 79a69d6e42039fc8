#include "tests/support/run_node.h"

#include <cmath>
#include <cstring>

#include "runtime/core/element.h"

namespace librt::test {
namespace {

/// Storage for the views of a NodeView.
struct Viewed {
  std::vector<Operand> operands;
  std::vector<TensorInfo> outputs;
};

bool is_shape_operand(const Node& node, size_t i) {
  const ops::Page* page = ops::page_of(node.kind());
  return page != nullptr && i < 32 && ((page->shape_operands >> i) & 1u) != 0;
}

Result<Viewed> view_of(const Node& node, const NodeInputs& inputs, uint32_t constants,
                       const std::vector<TensorInfo>& results = {}) {
  Viewed viewed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Operand operand;
    if (inputs[i]) {
      operand.present = true;
      operand.info = inputs[i]->info;
      if (is_shape_operand(node, i) || (i < 32 && ((constants >> i) & 1u) != 0))
        operand.value = inputs[i]->bytes.data();
    }
    viewed.operands.push_back(operand);
  }
  if (!results.empty())
    viewed.outputs = results;
  else
    RT_TRY(ops::infer_node({node, viewed.operands}, viewed.outputs));
  return viewed;
}

/// Memory of one run: a slab per value, slot numbers in order of creation.
class Memory {
 public:
  explicit Memory(Device& device) : device_(device) {}
  Result<BufferRef> add(size_t bytes) {
    RT_ASSIGN(SlabPtr slab, device_.allocate(bytes == 0 ? 1 : bytes));
    slots_.push_back(slab.get());
    slabs_.push_back(std::move(slab));
    return BufferRef{static_cast<uint32_t>(slots_.size() - 1), 0, bytes};
  }
  Status upload(const BufferRef& ref, std::span<const std::byte> bytes) {
    return device_.upload(*slabs_[ref.slot], ref.offset, bytes);
  }
  Status download(const BufferRef& ref, std::span<std::byte> bytes) {
    return device_.download(*slabs_[ref.slot], ref.offset, bytes);
  }
  std::span<Slab* const> slots() const { return slots_; }

 private:
  Device& device_;
  std::vector<SlabPtr> slabs_;
  std::vector<Slab*> slots_;
};

struct Reorder {
  KernelPtr kernel;
  BufferRef from, to, scratch;
};

Result<Reorder> make_reorder(Device& device, Memory& memory, const TensorInfo& info, LayoutId from,
                             LayoutId to, const BufferRef& from_ref, const BufferRef& to_ref) {
  Reorder reorder{nullptr, from_ref, to_ref, {}};
  RT_ASSIGN(reorder.kernel, device.make_reorder(info, from, to));
  if (const size_t bytes = reorder.kernel->requirements().scratch; bytes > 0) {
    RT_ASSIGN(reorder.scratch, memory.add(bytes));
  }
  return reorder;
}

Status record_reorder(CommandList& commands, Reorder& reorder) {
  return reorder.kernel->record(commands, {{&reorder.from, 1}, {&reorder.to, 1}, reorder.scratch, {}});
}

Result<const KernelRow*> find_row(const Device& device, const NodeView& view, const std::string& name) {
  RT_ASSIGN(std::vector<const KernelRow*> rows, device.kernels().candidates(device, view));
  for (const KernelRow* row : rows)
    if (name.empty() || name == row->name) return row;
  return Status(Code::NotFound, text("no supporting row named ", name));
}

}  // namespace

Result<NodeRun> run_node(Device& device, const Node& node, const NodeInputs& inputs,
                         const RunNodeOptions& options) {
  RT_ASSIGN(const Viewed viewed, view_of(node, inputs, options.constants, options.results));
  const NodeView view{node, viewed.operands, viewed.outputs};
  RT_ASSIGN(const KernelRow* row, find_row(device, view, options.row));
  std::vector<LayoutId> producers = options.producers;
  producers.resize(inputs.size(), kDense);
  RT_ASSIGN(KernelPtr kernel, row->create(device, view, producers));
  const Requirements needs = kernel->requirements();

  Memory memory(device);
  std::vector<BufferRef> dense_in(inputs.size()), kernel_in(inputs.size());
  std::vector<Reorder> before, after;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const bool packed_only = i < 32 && ((needs.replaced_inputs >> i) & 1u) != 0;
    if (packed_only && viewed.operands[i].value == nullptr)
      return internal_error("row ", row->name, " replaces input ", i, ", which is not constant");
    if (packed_only || is_shape_operand(node, i)) continue;  // not bound: the kernel must not read it
    RT_ASSIGN(dense_in[i], memory.add(inputs[i]->bytes.size()));
    RT_TRY(memory.upload(dense_in[i], inputs[i]->bytes));
    kernel_in[i] = dense_in[i];
    if (const LayoutId layout = kernel->input_layout(i); layout != kDense) {
      RT_ASSIGN(kernel_in[i], memory.add(device.layout_bytes(layout, inputs[i]->info)));
      RT_ASSIGN(Reorder reorder,
                make_reorder(device, memory, inputs[i]->info, kDense, layout, dense_in[i], kernel_in[i]));
      before.push_back(std::move(reorder));
    }
  }
  const bool share = options.in_place && needs.in_place.has_value();
  if (options.in_place && !share) return Status(Code::NotFound, "the kernel offers nothing in place");
  std::vector<BufferRef> dense_out, kernel_out;
  for (size_t i = 0; i < viewed.outputs.size(); ++i) {
    const TensorInfo& info = viewed.outputs[i];
    const LayoutId layout = kernel->output_layout(i);
    BufferRef ref;
    if (share && needs.in_place->output == i)
      ref = kernel_in[needs.in_place->input];
    else {
      RT_ASSIGN(ref, memory.add(layout == kDense ? info.bytes() : device.layout_bytes(layout, info)));
    }
    kernel_out.push_back(ref);
    if (layout != kDense) {
      RT_ASSIGN(const BufferRef dense, memory.add(info.bytes()));
      RT_ASSIGN(Reorder reorder, make_reorder(device, memory, info, layout, kDense, ref, dense));
      after.push_back(std::move(reorder));
      ref = dense;
    }
    dense_out.push_back(ref);
  }
  Bindings bindings{kernel_in, kernel_out, {}, {}};
  if (needs.scratch > 0) {
    RT_ASSIGN(bindings.scratch, memory.add(needs.scratch));
  }
  if (needs.packed > 0) {
    RT_ASSIGN(bindings.packed, memory.add(needs.packed));
    std::vector<std::byte> packed(needs.packed);
    RT_TRY(kernel->pack(packed));
    RT_TRY(memory.upload(bindings.packed, packed));
  }
  RecordOptions record;
  record.slots = memory.slots();
  record.spans = 1;
  RT_ASSIGN(CommandListPtr commands, device.begin(record));
  RT_TRY(commands->mark(0));
  for (Reorder& reorder : before) RT_TRY(record_reorder(*commands, reorder));
  RT_TRY(kernel->record(*commands, bindings));
  for (Reorder& reorder : after) RT_TRY(record_reorder(*commands, reorder));
  RT_TRY(commands->finish());
  // An in-place run destroys its input, so it runs only once.
  for (int run = 0; run < (share ? 1 : options.runs); ++run) {
    RT_TRY(commands->submit());
    RT_TRY(commands->wait());
  }
  NodeRun result;
  result.row = row->name;
  for (size_t i = 0; i < viewed.outputs.size(); ++i) {
    result.outputs.emplace_back(viewed.outputs[i]);
    RT_TRY(memory.download(dense_out[i], result.outputs[i].bytes));
  }
  return result;
}

Result<std::vector<ops::HostTensor>> reference_node(const Node& node, const NodeInputs& inputs) {
  RT_ASSIGN(const Viewed viewed, view_of(node, inputs, ~0u));
  std::vector<ConstTensorView> in;
  for (const auto& input : inputs) in.push_back(input ? input->view() : ConstTensorView{});
  std::vector<ops::HostTensor> results;
  for (const TensorInfo& info : viewed.outputs) results.emplace_back(info);
  std::vector<TensorView> out;
  for (ops::HostTensor& result : results) out.push_back(result.view());
  RT_TRY(ops::evaluate_node({node, viewed.operands, viewed.outputs}, in, out));
  return results;
}

Result<std::vector<std::string>> rows_for(const Device& device, const Node& node, const NodeInputs& inputs,
                                          uint32_t constants) {
  RT_ASSIGN(const Viewed viewed, view_of(node, inputs, constants));
  RT_ASSIGN(std::vector<const KernelRow*> rows,
            device.kernels().candidates(device, {node, viewed.operands, viewed.outputs}));
  std::vector<std::string> names;
  for (const KernelRow* row : rows) names.emplace_back(row->name);
  return names;
}

::testing::AssertionResult near(const ops::HostTensor& got, const ops::HostTensor& want,
                                const ops::Tolerance& tolerance) {
  if (!(got.info == want.info))
    return ::testing::AssertionFailure() << "got " << text(got.info) << ", want " << text(want.info);
  int64_t wrong = 0;
  ::testing::AssertionResult failure = ::testing::AssertionFailure();
  for (int64_t i = 0; i < want.info.elements(); ++i) {
    const double a = load_element(got.bytes.data(), got.info.dtype, i);
    const double b = load_element(want.bytes.data(), want.info.dtype, i);
    bool same = a == b || (std::isnan(a) && std::isnan(b));
    // Quantized values may differ by one step where their page allows it.
    const double relative = is_float(want.info.dtype) ? tolerance.relative : 0;
    if (!same) same = std::abs(a - b) <= tolerance.absolute + relative * std::abs(b);
    if (!same && wrong++ < 5) failure << "[" << i << "] got " << a << ", want " << b << "; ";
  }
  if (wrong == 0) return ::testing::AssertionSuccess();
  return failure << wrong << " of " << want.info.elements() << " wrong";
}

void check_node(Device& device, const Node& node, const NodeInputs& inputs, uint32_t constants,
                std::optional<ops::Tolerance> tolerance) {
  const ops::CompilerPage* page = ops::compiler_page_of(node.kind());
  ASSERT_NE(page, nullptr);
  const ops::Tolerance allowed = tolerance.value_or(page->tolerance);
  auto want = reference_node(node, inputs);
  ASSERT_TRUE(want.ok()) << want.status().message();
  for (const uint32_t known : {0u, constants}) {
    auto rows = rows_for(device, node, inputs, known);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    for (const std::string& row : *rows)
      for (const bool share : {false, true}) {
        if (known == 0 && share && constants == 0) continue;  // identical to the next one
        SCOPED_TRACE(text("row ", row, known != 0 ? ", constant operands" : "", share ? ", in place" : ""));
        RunNodeOptions options;
        options.row = row;
        options.constants = known;
        options.in_place = share;
        auto got = run_node(device, node, inputs, options);
        if (share && !got.ok() && got.status().code() == Code::NotFound) continue;
        ASSERT_TRUE(got.ok()) << got.status().message();
        ASSERT_EQ(got->outputs.size(), want->size());
        for (size_t i = 0; i < want->size(); ++i)
          EXPECT_TRUE(near(got->outputs[i], (*want)[i], allowed)) << "output " << i;
      }
  }
}

ops::HostTensor random_tensor(const TensorInfo& info, double low, double high, uint64_t seed) {
  ops::HostTensor tensor(info);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int64_t i = 0; i < info.elements(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double unit = static_cast<double>(state >> 11) * 0x1p-53;
    double value = low + (high - low) * unit;
    if (info.dtype == DType::Bool)
      value = unit < 0.5 ? 0 : 1;
    else if (!is_float(info.dtype))
      value = std::round(value);
    store_element(tensor.bytes.data(), info.dtype, i, value);
  }
  return tensor;
}

ops::HostTensor ints_tensor(std::vector<int64_t> values) {
  ops::HostTensor tensor(TensorInfo{DType::I64, Shape{static_cast<int64_t>(values.size())}});
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

ops::HostTensor scalar_tensor(DType dtype, double value) {
  ops::HostTensor tensor(TensorInfo{dtype, Shape{}});
  store_element(tensor.bytes.data(), dtype, 0, value);
  return tensor;
}

ops::HostTensor tensor_of(const TensorInfo& info, const std::vector<double>& values) {
  ops::HostTensor tensor(info);
  for (size_t i = 0; i < values.size(); ++i)
    store_element(tensor.bytes.data(), info.dtype, static_cast<int64_t>(i), values[i]);
  return tensor;
}

}  // namespace librt::test
