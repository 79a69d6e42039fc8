#include "tools/rttrain/ranks.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tools/communicator/mpi_module.h"

namespace rt::train {

namespace {

/// The number of processes according to the launcher; 1 without one.
int launched_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {  // Open MPI, MPICH
    const char* text = std::getenv(name);
    int ranks = 0;
    if (text != nullptr && std::from_chars(text, text + std::strlen(text), ranks).ec == std::errc())
      return ranks;
  }
  return 1;
}

/// The module is in the same directory as librt.
std::string module_path() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&rt_version), &info) == 0 || info.dli_fname == nullptr)
    return RT_MPI_MODULE;
  const std::string library = info.dli_fname;
  const size_t slash = library.rfind('/');
  return (slash == library.npos ? "" : library.substr(0, slash + 1)) + RT_MPI_MODULE;
}

template <class Function>
Function* function(void* module, const char* name) {
  void* symbol = dlsym(module, name);
  Function* found = nullptr;
  std::memcpy(&found, &symbol, sizeof found);
  return found;
}

rt::Status said(const char* problem) {
  return problem == nullptr ? rt::Status() : rt::Status(rt::Code::Device, problem);
}

}  // namespace

rt::Result<Ranks> Ranks::join(const RankLimits& limits) {
  Ranks ranks;
  const int launched = launched_ranks();
  if (launched <= 1) return ranks;
  const std::string path = module_path();
  // RTLD_GLOBAL: Open MPI's plugins resolve its symbols globally.
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr)
    return rt::Status(rt::Code::Unsupported,
                      std::string("mpirun started ") + std::to_string(launched) +
                          " ranks, but the module for MPI cannot be loaded: " + dlerror() +
                          "; build librt where libopenmpi-dev is installed");
  const auto open = function<decltype(rt_mpi_open)>(module, "rt_mpi_open");
  ranks.close_ = function<decltype(rt_mpi_close)>(module, "rt_mpi_close");
  ranks.abandon_ = function<decltype(rt_mpi_abandon)>(module, "rt_mpi_abandon");
  if (open == nullptr || ranks.close_ == nullptr || ranks.abandon_ == nullptr)
    return rt::Status(rt::Code::Unsupported,
                      path + " is not the module of this librt; install both from one version");
  const rt_mpi_limits seconds{.answer_seconds = limits.answer, .wait_seconds = limits.wait};
  if (const char* problem = open(&seconds, &ranks.communicator_)) return said(problem);
  return ranks;
}

rt::Status Ranks::leave() {
  if (close_ == nullptr) return {};
  if (rt::Status status = meet(); !status) return status;
  communicator_ = nullptr;
  return said(std::exchange(close_, nullptr)());
}

void Ranks::abandon() const {
  if (abandon_ != nullptr) abandon_();
}

rt::Status Ranks::begin_sum(std::span<double> values) const {
  if (communicator_ == nullptr) return {};
  return said(communicator_->all_reduce(communicator_->user, values.data(), values.size(), RT_F64));
}

rt::Status Ranks::finish_sum(std::span<double> values) const {
  if (communicator_ == nullptr) return {};
  return said(communicator_->wait(communicator_->user, values.data()));
}

rt::Status Ranks::sum(std::span<double> values) const {
  if (rt::Status status = begin_sum(values); !status) return status;
  return finish_sum(values);
}

rt::Status Ranks::meet() const {
  double here = 1;
  return sum({&here, 1});
}

rt::Status Ranks::all_gather(void* data, size_t bytes) const {
  if (communicator_ == nullptr) return {};
  if (rt::Status status = said(communicator_->all_gather(communicator_->user, data, bytes)); !status)
    return status;
  return said(communicator_->wait(communicator_->user, data));
}

rt::Result<std::vector<std::string>> Ranks::gather(const std::string& own) const {
  std::vector<uint64_t> sizes(count());
  sizes[rank()] = own.size();
  if (rt::Status status = all_gather(sizes.data(), sizeof sizes[0]); !status) return status;
  const size_t most = std::max<size_t>(*std::max_element(sizes.begin(), sizes.end()), 1);
  std::string together(count() * most, '\0');
  own.copy(together.data() + rank() * most, own.size());
  if (rt::Status status = all_gather(together.data(), most); !status) return status;
  std::vector<std::string> texts;
  for (size_t from = 0; from < count(); ++from) texts.push_back(together.substr(from * most, sizes[from]));
  return texts;
}

rt::Status Ranks::refuse(std::string message) {
  have_refused_ = true;
  return {rt::Code::InvalidArgument, std::move(message)};
}

}  // namespace rt::train
