// Classifies a grayscale picture: prints the three most probable classes and the device that ran the model.
//
//   classify digits.rt digit.pgm [BACKEND]
//
// BACKEND: cpu, vulkan, cuda, reference or auto (default). The model has one f32 input [batch,height,width,1]
// of values in 0..1 and one f32 output of logits [batch,classes].
#include <rt/rt.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace {

struct Picture {
  int64_t height = 0, width = 0;
  std::vector<float> pixels;  ///< row by row, 0..1
};

/// A binary PGM file ("P5") without comments, 8 bits per pixel.
std::optional<Picture> read_pgm(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic;
  Picture picture;
  int highest = 0;
  if (!(file >> magic >> picture.width >> picture.height >> highest) || magic != "P5") return std::nullopt;
  const auto in_range = [](int64_t extent) { return extent > 0 && extent <= 65536; };
  if (!in_range(picture.width) || !in_range(picture.height) || highest < 1 || highest > 255)
    return std::nullopt;
  file.get();  // the one white space after the header
  std::vector<char> bytes(static_cast<size_t>(picture.width * picture.height));
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) return std::nullopt;
  for (const char byte : bytes)
    picture.pixels.push_back(static_cast<float>(static_cast<unsigned char>(byte)) /
                             static_cast<float>(highest));
  return picture;
}

int fail(const rt::Status& status) {
  std::fprintf(stderr, "classify: %s\n", status.message().c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) return fail({rt::Code::InvalidArgument, "MODEL.rt PICTURE.pgm [BACKEND]"});
  const auto picture = read_pgm(argv[2]);
  if (!picture) return fail({rt::Code::InvalidArgument, std::string(argv[2]) + ": not a binary 8-bit PGM"});

  const auto model = rt::Model::load(argv[1]);
  if (!model) return fail(model.status());
  auto session = rt::Session::create(*model, {.backend = argc > 3 ? argv[3] : "auto"});
  if (!session) return fail(session.status());

  // A picture of another size than the model's is an error here; its message shows both shapes.
  const auto input = rt::Tensor::of<float>({1, picture->height, picture->width, 1}, picture->pixels);
  if (auto status = session->set_input(0, input); !status) return fail(status);
  if (auto status = session->run(); !status) return fail(status);
  const auto output = session->output(0);
  if (!output) return fail(output.status());
  if (output->dtype() != rt::DType::F32) return fail({rt::Code::Unsupported, "the output is not f32"});
  const std::span<const float> logits = output->values<float>();
  if (logits.empty()) return fail({rt::Code::Unsupported, "the output has no elements"});

  const float highest = *std::ranges::max_element(logits);
  float total = 0;
  for (const float logit : logits) total += std::exp(logit - highest);
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  for (size_t i = 0; i < std::min<size_t>(3, order.size()); ++i)
    std::printf("class %zu: %5.1f %%\n", order[i],
                100.0 * static_cast<double>(std::exp(logits[order[i]] - highest) / total));
  const rt::DeviceInfo device = session->device();
  std::printf("ran on %s %d, %s\n", device.backend.c_str(), device.index, device.name.c_str());
}
