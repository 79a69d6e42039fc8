#include "tools/data/schedule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <span>

namespace librt::tools {

struct ScheduleParser {
  /// A parameter of a schedule and its allowed range.
  struct Field {
    std::string_view name;
    double Schedule::*number;
    double least, most;
    bool integer, required;
  };
  struct Form {
    std::string_view name;
    Schedule::Kind kind;
    std::span<const Field> fields;
  };

  static std::span<const Form> forms() {
    constexpr double kMost = 1e15;
    static constexpr Field kWarmup = {"warmup", &Schedule::warmup_, 0, kMost, true, false};
    static constexpr Field kSteps = {"steps", &Schedule::steps_, 1, kMost, true, false};
    static constexpr Field kEnd = {"end", &Schedule::end_, 0, 1, false, false};
    static constexpr Field kConstant[] = {kWarmup};
    static constexpr Field kStep[] = {{"every", &Schedule::every_, 1, kMost, true, true},
                                      {"gamma", &Schedule::gamma_, 0, 1, false, false},
                                      kWarmup};
    static constexpr Field kLine[] = {kSteps, kEnd, kWarmup};
    static constexpr Field kCycle[] = {kSteps,
                                       {"rise", &Schedule::rise_, 0, 1, false, false},
                                       {"start", &Schedule::start_, 0, 1, false, false},
                                       kEnd};
    static constexpr Form kForms[] = {{"constant", Schedule::Kind::Constant, kConstant},
                                      {"step", Schedule::Kind::Step, kStep},
                                      {"linear", Schedule::Kind::Linear, kLine},
                                      {"cosine", Schedule::Kind::Cosine, kLine},
                                      {"one_cycle", Schedule::Kind::OneCycle, kCycle}};
    return kForms;
  }

  static std::string names(const auto& list) {
    std::string all;
    for (const auto& entry : list) all += (all.empty() ? "" : ", ") + std::string(entry.name);
    return all;
  }

  /// Parses "steps=100" into the schedule; returns an error otherwise.
  static std::string read(const Form& form, std::string_view part, Schedule& schedule, uint32_t& given) {
    const size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    for (size_t i = 0; i < form.fields.size(); ++i) {
      const Field& field = form.fields[i];
      if (field.name != name) continue;
      double value = 0;
      const std::string_view digits = equals == part.npos ? std::string_view() : part.substr(equals + 1);
      const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (code != std::errc() || end != digits.data() + digits.size() || !(value >= field.least) ||
          value > field.most || (field.integer && value != std::floor(value)))
        return "expected " + std::string(name) +
               (field.integer ? "=N, a whole number from " : "=NUMBER from ") +
               std::to_string(static_cast<int>(field.least)) + (field.integer ? "" : " to 1") + ", found '" +
               std::string(part) + "'";
      schedule.*field.number = value;
      given |= 1u << i;
      return {};
    }
    return "expected one of " + names(form.fields) + " for " + std::string(form.name) + ", found '" +
           std::string(part) + "'";
  }

  static std::string parse(std::string_view text, Schedule& schedule) {
    const size_t comma = text.find(',');
    const std::string_view kind = text.substr(0, comma);
    const auto form =
        std::find_if(forms().begin(), forms().end(), [&](const Form& each) { return each.name == kind; });
    if (form == forms().end())
      return "expected one of " + names(forms()) + ", found '" + std::string(kind) + "'";
    schedule.kind_ = form->kind;
    if (form->kind == Schedule::Kind::OneCycle) schedule.end_ = 1e-4;
    schedule.text_ = text;
    uint32_t given = 0;
    for (size_t at = comma; at != text.npos;) {
      const size_t next = text.find(',', at + 1);
      const std::string_view part = text.substr(at + 1, next == text.npos ? next : next - at - 1);
      if (std::string error = read(*form, part, schedule, given); !error.empty()) return error;
      at = next;
    }
    for (size_t i = 0; i < form->fields.size(); ++i)
      if (form->fields[i].required && (given >> i & 1u) == 0)
        return std::string(form->name) + " needs " + std::string(form->fields[i].name) + "=N";
    return schedule.steps_ > 0 ? check_warmup(schedule) : std::string();
  }

  static std::string check_warmup(const Schedule& schedule) {
    if (schedule.warmup_ < schedule.steps_) return {};
    return "expected a warmup shorter than the schedule's " +
           std::to_string(static_cast<uint64_t>(schedule.steps_)) + " steps, found '" + schedule.text_ + "'";
  }
};

std::optional<Schedule> Schedule::parse(std::string_view text, std::string& error) {
  Schedule schedule;
  if (std::string problem = ScheduleParser::parse(text, schedule); !problem.empty()) {
    error = "schedule: " + problem;
    return std::nullopt;
  }
  return schedule;
}

std::string Schedule::set_length(uint64_t steps) {
  const bool has_length = kind_ == Kind::Linear || kind_ == Kind::Cosine || kind_ == Kind::OneCycle;
  if (!has_length || steps_ > 0) return {};
  steps_ = static_cast<double>(steps);
  return ScheduleParser::check_warmup(*this);
}

namespace {

/// Half a cosine from a at 0 to b at 1.
double half_cosine(double a, double b, double share) {
  return b + (a - b) * (1 + std::cos(std::numbers::pi * std::clamp(share, 0.0, 1.0))) / 2;
}

}  // namespace

double Schedule::factor(uint64_t step) const noexcept {
  const auto at = static_cast<double>(step);
  if (at < warmup_) return (at + 1) / warmup_;
  const double share = (at - warmup_) / std::max(steps_ - warmup_, 1.0);
  switch (kind_) {
    case Kind::Constant: return 1;
    case Kind::Step: return std::pow(gamma_, std::floor((at - warmup_) / every_));
    case Kind::Linear: return 1 + (end_ - 1) * std::min(share, 1.0);
    case Kind::Cosine: return half_cosine(1, end_, share);
    case Kind::OneCycle: break;
  }
  if (share < rise_) return half_cosine(start_, 1, share / rise_);
  return half_cosine(1, end_, rise_ < 1 ? (share - rise_) / (1 - rise_) : 1.0);
}

}  // namespace librt::tools
