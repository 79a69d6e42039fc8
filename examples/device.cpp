// Runs a model on inputs and outputs that stay in the memory of the device, and compares with a run through
// the host.
//
//   device digits.rt [BACKEND]
#include <algorithm>
#include <iostream>
#include <rt/memory.hpp>

namespace {

int fail(const rt::Status& status) {
  std::cerr << "device: " << status.message() << "\n";
  return 2;
}

/// Extents of a spec, with 1 for dynamic ones.
std::vector<int64_t> extents(const rt::TensorSpec& spec) {
  std::vector<int64_t> dims;
  for (const rt::Dim& dim : spec.dims) dims.push_back(std::max<int64_t>(dim.extent, 1));
  return dims;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return fail({rt::Code::InvalidArgument, "expected MODEL.rt [BACKEND]"});
  const auto model = rt::Model::load(argv[1]);
  if (!model) return fail(model.status());
  auto session = rt::Session::create(*model, {.backend = argc == 3 ? argv[2] : "auto"});
  if (!session) return fail(session.status());
  const rt::TensorSpec in = session->inputs()[0], out = session->outputs()[0];
  if (in.dtype != rt::DType::F32 || out.dtype != rt::DType::F32)
    return fail({rt::Code::Unsupported, "expected a model from f32 to f32"});

  // Through the host.
  rt::Tensor image(in.dtype, extents(in));
  for (size_t i = 0; float& pixel : image.values<float>()) pixel = static_cast<float>(i++ % 7) / 7;
  if (auto status = session->set_input(0, image); !status) return fail(status);
  if (auto status = session->run(); !status) return fail(status);
  const auto expected = session->output(0);
  if (!expected) return fail(expected.status());
  const rt::Tensor kept = expected->clone();

  // In memory of the device; the pixels as if another program had written them there.
  auto pixels = rt::Memory::create(*session, image.bytes());
  if (!pixels) return fail(pixels.status());
  auto scores = rt::Memory::create(*session, kept.bytes());
  if (!scores) return fail(scores.status());
  if (auto status = pixels->write<float>(image.values<float>()); !status) return fail(status);
  if (auto status = session->bind_input(0, pixels->tensor(in.dtype, image.dims())); !status)
    return fail(status);
  if (auto status = session->bind_output(0, scores->tensor(out.dtype, kept.dims())); !status)
    return fail(status);
  if (auto status = session->run(); !status) return fail(status);
  std::vector<float> result(kept.values<float>().size());
  if (auto status = scores->read<float>(result); !status) return fail(status);

  const bool same = std::equal(result.begin(), result.end(), kept.values<float>().begin());
  std::cout << result.size() << " scores in memory of " << session->device().backend
            << (same ? " equal" : " differ from") << " those of the host\n";
  return same ? 0 : 1;
}
