// Fails each allocation of a user of rt.h once, one after the other: every failure is a Status, and
// afterwards the same process makes sessions, runs them and gets the same results. Also for mmap.
//
//   out_of_memory MODEL.rt FOLDER BACKEND CALL FIRST STRIDE [ENTRY]    (the folder is emptied)
//
// CALL: malloc or mmap; every STRIDE-th call fails, from the FIRST. RT_FAULT_EXCEPT: see
// tests/support/faults.cpp.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "rt/rt.h"
#include "tests/support/faults.h"

namespace {

std::vector<int32_t> g_memory(1 << 16);  // zeros: valid floats, and valid classes of samples

struct Handles {
  rt_model* model = nullptr;
  rt_session* session = nullptr;
  ~Handles() {
    rt_session_free(session);
    rt_model_free(model);
  }
};

/// What a user does with a model. `result` holds the bytes of output 0.
struct User {
  std::string model, checkpoint, cache;
  const char* backend;
  const char* entry;
  char result[4096];
  size_t result_bytes = 0;

  rt_status* use(rt_model* loaded) {
    Handles h;
    if (loaded == nullptr)
      if (rt_status* failed = rt_model_load(model.c_str(), &h.model)) return failed;
    rt_session_options options = RT_SESSION_OPTIONS_INIT;
    options.backend = backend;
    options.entry = entry;
    options.threads = 1;
    options.cache_folder = cache.c_str();
    if (rt_status* failed = rt_session_create(loaded != nullptr ? loaded : h.model, &options, &h.session))
      return failed;
    for (size_t i = 0; i < rt_session_input_count(h.session); ++i) {
      rt_tensor_spec spec = RT_TENSOR_SPEC_INIT;
      if (rt_status* failed = rt_session_input_spec(h.session, i, &spec)) return failed;
      rt_tensor tensor = RT_TENSOR_INIT;
      tensor.dtype = spec.dtype;
      tensor.rank = spec.rank;
      for (int32_t d = 0; d < spec.rank; ++d) tensor.dims[d] = spec.dims[d] < 0 ? 2 : spec.dims[d];
      tensor.data = g_memory.data();
      tensor.bytes = g_memory.size() * sizeof(float);
      if (rt_status* failed = rt_session_set_input(h.session, i, &tensor)) return failed;
    }
    for (int run = 0; run < 2; ++run)
      if (rt_status* failed = rt_session_run(h.session)) return failed;
    rt_tensor output = RT_TENSOR_INIT;
    if (rt_status* failed = rt_session_output(h.session, 0, &output)) return failed;
    result_bytes = std::min(output.bytes, sizeof result);
    std::memcpy(result, output.data, result_bytes);
    const char* plan = nullptr;
    if (rt_status* failed = rt_session_plan_text(h.session, &plan)) return failed;
    if (rt_status* failed = rt_session_save_checkpoint(h.session, checkpoint.c_str(), nullptr, nullptr, 0))
      return failed;
    return rt_session_load_checkpoint(h.session, checkpoint.c_str());
  }
};

/// Must succeed, with the result that `expected` holds.
bool goes_on(User& user, rt_model* loaded, const User& expected, long failing) {
  user.result_bytes = 0;
  rt_status* status = user.use(loaded);
  const bool right = status == nullptr && user.result_bytes == expected.result_bytes &&
                     std::memcmp(user.result, expected.result, user.result_bytes) == 0;
  if (!right)
    std::printf("after failure %ld: %s\n", failing,
                status != nullptr ? rt_status_message(status) : "another result");
  rt_status_free(status);
  return right;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 7 && count != 8) return 2;
  const std::filesystem::path folder = arguments[2];
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "cache");
  User user{arguments[1],
            folder / "saved.ckpt",
            folder / "cache",
            arguments[3],
            count == 8 ? arguments[7] : nullptr,
            {}};
  const char* call = arguments[4];
  const long first = std::strtol(arguments[5], nullptr, 10), stride = std::strtol(arguments[6], nullptr, 10);

  User expected = user;
  rt_model* kept = nullptr;
  rt_status* status = rt_model_load(user.model.c_str(), &kept);
  if (status == nullptr) status = expected.use(kept);
  if (status != nullptr) {
    const bool missing = rt_status_code(status) == RT_DEVICE;
    std::printf("%s: %s\n", user.backend, rt_status_message(status));
    return missing ? 77 : 1;
  }

  long refused = 0, harmless = 0, bad = 0, last = 0;
  for (long failing = first;; failing += stride) {
    std::fprintf(stderr, "\r%s %ld ", call, failing);  // seen when the process ends here
    rt_faults_start(call, failing, 1, 0);
    status = user.use(nullptr);
    rt_faults_stop();
    const bool failed = rt_faults_failed() > 0;
    last = rt_faults_counted();
    if (status != nullptr && std::strlen(rt_status_message(status)) == 0) ++bad;
    refused += status != nullptr;
    harmless += status == nullptr && failed;
    if (!failed && status != nullptr) {
      std::printf("without a failure: %s\n", rt_status_message(status));
      ++bad;
    }
    rt_status_free(status);
    if (!failed) break;
    if (!goes_on(user, kept, expected, failing)) ++bad;
  }
  rt_model_free(kept);
  long partial = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    partial += file.path().filename() != "saved.ckpt" && file.path().filename() != "cache";
  std::printf("%s, %ld calls of %s: %ld failures refused, %ld harmless, %ld wrong, %ld partial files\n",
              user.backend, last, call, refused, harmless, bad, partial);
  return bad == 0 && partial == 0 && refused > 0 ? 0 : 1;
}
