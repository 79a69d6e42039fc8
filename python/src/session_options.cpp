// The keywords of librt.Session as options of librt: one table.
#include <nanobind/stl/string.h>

#include <cmath>

#include "python/src/cpu_module.h"
#include "python/src/errors.h"
#include "python/src/session.h"

namespace nb = nanobind;

namespace rt::python {
namespace {

struct Keyword {
  const char* name;
  void (*read)(SessionOptions&, nb::handle);
};

template <auto Member>
void read_text(SessionOptions& options, nb::handle value) {
  options.*Member =
      nb::isinstance<nb::int_>(value) ? nb::cast<std::string>(nb::str(value)) : nb::cast<std::string>(value);
}
template <auto Member>
void read_number(SessionOptions& options, nb::handle value) {
  options.*Member = nb::cast<std::remove_reference_t<decltype(options.*Member)>>(value, false);
}

void read_backend(SessionOptions& options, nb::handle value) {
  options.backend = nb::cast<std::string>(value);
  if (options.backend == "auto") options.backend.clear();
}
void read_cache_folder(SessionOptions& options, nb::handle value) {
  const nb::object path = nb::steal(PyOS_FSPath(value.ptr()));
  if (!path.is_valid()) throw nb::python_error();
  options.cache_folder = nb::cast<std::string>(nb::module_::import_("os").attr("path").attr("abspath")(path));
}
void read_time_limit(SessionOptions& options, nb::handle value) {
  const double seconds = nb::cast<double>(value);
  if (!(seconds > 0) || seconds > 1e12) throw nb::value_error("time_limit: expected seconds above 0");
  options.time_limit_ms = static_cast<uint64_t>(std::ceil(seconds * 1000));
}
void read_by_caller(SessionOptions&, nb::handle) {}

constexpr Keyword kKeywords[] = {
    {"backend", read_backend},
    {"device", read_text<&SessionOptions::device>},
    {"entry", read_text<&SessionOptions::entry>},
    {"precision", read_text<&SessionOptions::precision>},
    {"prefer", read_text<&SessionOptions::prefer>},
    {"threads", read_number<&SessionOptions::threads>},
    {"strict", read_number<&SessionOptions::strict>},
    {"profile", read_number<&SessionOptions::profile>},
    {"validation", read_number<&SessionOptions::validation>},
    {"deterministic", read_number<&SessionOptions::deterministic>},
    {"no_replay", read_number<&SessionOptions::no_replay>},
    {"tuning", read_number<&SessionOptions::tuning>},
    {"tuning_ms", read_number<&SessionOptions::tuning_ms>},
    {"memory_limit", read_number<&SessionOptions::memory_limit>},
    {"plan_cache_bytes", read_number<&SessionOptions::plan_cache_bytes>},
    {"loop_limit", read_number<&SessionOptions::loop_limit>},
    {"time_limit", read_time_limit},
    {"cache_folder", read_cache_folder},
    {"custom_operators", read_by_caller},
    {"share_states_with", read_by_caller},
};

}  // namespace

Sharing::Sharing(const nb::kwargs& keywords) {
  const nb::object other = keywords.contains("share_states_with") ? nb::object(keywords["share_states_with"])
                                                                  : nb::object(nb::none());
  if (other.is_none()) {
    turns = std::make_shared<Turns>();
  } else {
    if (!nb::isinstance<Session>(other)) throw nb::type_error("share_states_with: expected a librt.Session");
    session = nb::cast<Session&>(other).handle();
    turns = nb::cast<Session&>(other).turns();
  }
}

SessionOptions options_of(const nb::kwargs& keywords, const char* function) {
  load_cpu_module();
  SessionOptions options;
  for (auto [key, value] : keywords) {
    const auto name = nb::cast<std::string>(key);
    const Keyword* found = nullptr;
    std::string names;
    for (const Keyword& keyword : kKeywords) {
      if (name == keyword.name) found = &keyword;
      names += (names.empty() ? "" : ", ") + std::string(keyword.name);
    }
    if (found == nullptr)
      throw nb::type_error(
          (std::string(function) + ": no option '" + name + "'; expected one of " + names).c_str());
    if (value.is_none()) continue;
    try {
      found->read(options, value);
    } catch (const nb::cast_error&) {
      throw nb::type_error((std::string(function) + ": option " + name + ": the type or the size of " +
                            nb::cast<std::string>(nb::repr(value)) + " is wrong")
                               .c_str());
    }
  }
  return options;
}

}  // namespace rt::python
