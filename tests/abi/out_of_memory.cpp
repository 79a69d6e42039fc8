// Fails each allocation of librt.so once, one after the other: the exception must reach the C interface
// through all frames in between, although functions that cannot throw have no unwind tables.
//
//   out_of_memory MODEL.rt FOLDER    (the folder is emptied)
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "rt/rt.h"
#include "tests/conformance/failing_new.h"

namespace {

std::vector<float> g_memory(1 << 16);

struct Handles {
  rt_model* model = nullptr;
  rt_session* session = nullptr;
  ~Handles() {
    rt_session_free(session);
    rt_model_free(model);
  }
};

rt_status* use(Handles& h, const char* path, const std::string& checkpoint) {
  if (rt_status* failed = rt_model_load(path, &h.model)) return failed;
  rt_session_options options = RT_SESSION_OPTIONS_INIT;
  options.backend = "reference";
  if (rt_status* failed = rt_session_create(h.model, &options, &h.session)) return failed;
  rt_tensor_spec spec = RT_TENSOR_SPEC_INIT;
  if (rt_status* failed = rt_session_input_spec(h.session, 0, &spec)) return failed;
  rt_tensor tensor = RT_TENSOR_INIT;
  tensor.dtype = spec.dtype;
  tensor.rank = spec.rank;
  for (int32_t i = 0; i < spec.rank; ++i) tensor.dims[i] = spec.dims[i] < 0 ? 1 : spec.dims[i];
  tensor.data = g_memory.data();
  tensor.bytes = g_memory.size() * sizeof(float);
  if (rt_status* failed = rt_session_set_input(h.session, 0, &tensor)) return failed;
  if (rt_status* failed = rt_session_run(h.session)) return failed;
  rt_tensor output = RT_TENSOR_INIT;
  if (rt_status* failed = rt_session_output(h.session, 0, &output)) return failed;
  const char* plan = nullptr;
  if (rt_status* failed = rt_session_plan_text(h.session, &plan)) return failed;
  if (rt_status* failed = rt_session_save_checkpoint(h.session, checkpoint.c_str(), nullptr, nullptr, 0))
    return failed;
  return rt_session_load_checkpoint(h.session, checkpoint.c_str());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const std::filesystem::path folder = arguments[2];
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string checkpoint = folder / "saved.ckpt";
  long refused = 0;
  for (long failing = 0;; ++failing) {
    rt_status* status = nullptr;
    bool failed = false;
    {
      Handles handles;
      const librt::test::FailingNew scope(failing);
      status = use(handles, arguments[1], checkpoint);
      librt::test::FailingNew::disarm();
      failed = scope.failed();
    }
    const rt_code code = rt_status_code(status);
    refused += code == RT_OUT_OF_MEMORY;
    if (!failed) {  // all allocations succeeded before the failing one
      const auto files = std::distance(std::filesystem::directory_iterator(folder), {});
      std::printf("%ld allocations, %ld of the failures refused, %ld files written: %s\n", failing, refused,
                  static_cast<long>(files), rt_status_message(status));
      rt_status_free(status);
      return code == RT_OK && refused > 100 && files == 1 ? 0 : 1;
    }
    rt_status_free(status);
  }
}
