#include "tools/rttrain/log.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/data/file.h"
#include "tools/data/public_status.h"

namespace rt::train {
namespace {

using Json = nlohmann::ordered_json;

Json object_of(const EpochRecord& record) {
  Json line = {{"epoch", record.epoch}, {"step", record.step}, {"loss", record.loss}};
  for (const Measured& measured : record.validation) line["validation_" + measured.name] = measured.value;
  line["learning_rate"] = record.learning_rate;
  line["samples_per_second"] = record.samples_per_second;
  line["seconds"] = record.seconds;
  line["data_wait_seconds"] = record.data_wait_seconds;
  line["total_seconds"] = record.total_seconds;
  return line;
}

}  // namespace

std::string json_of(const EpochRecord& record) {
  return object_of(record).dump();
}

rt::Result<RunLog> RunLog::open(const std::string& json_file, const std::string& tensorboard, bool append) {
  RunLog log;
  if (!json_file.empty()) {
    log.json_.reset(std::fopen(json_file.c_str(), append ? "ab" : "wb"));
    log.json_path_ = json_file;
    if (log.json_ == nullptr) return as_public(librt::tools::system_error(json_file, "cannot write", errno));
  }
  if (!tensorboard.empty()) {
    auto events = EventFile::create(tensorboard);
    if (!events) return events.status();
    log.events_.emplace(std::move(*events));
  }
  return log;
}

rt::Status RunLog::line(const std::string& text) {
  if (json_ == nullptr) return {};
  if (std::fputs((text + "\n").c_str(), json_.get()) >= 0 && std::fflush(json_.get()) == 0) return {};
  // It could be opened: a failure now is one of the disk.
  return {rt::Code::Device, json_path_ + ": cannot write: " + std::strerror(errno)};
}

rt::Status RunLog::write(const StepRecord& record) {
  if (rt::Status status = line(Json({{"kind", "step"},
                                     {"step", record.step},
                                     {"epoch", record.epoch},
                                     {"loss", record.loss},
                                     {"learning_rate", record.learning_rate},
                                     {"samples_per_second", record.samples_per_second},
                                     {"data_wait_seconds", record.data_wait_seconds}})
                                   .dump());
      !status)
    return status;
  if (!events_) return {};
  for (const auto& [tag, value] :
       {std::pair("train/loss", record.loss), std::pair("train/learning_rate", record.learning_rate),
        std::pair("train/samples_per_second", record.samples_per_second)})
    if (rt::Status status = events_->scalar(tag, value, record.step); !status) return status;
  return {};
}

rt::Status RunLog::write(const EpochRecord& record) {
  Json object = {{"kind", "epoch"}};
  object.update(object_of(record));
  if (rt::Status status = line(object.dump()); !status) return status;
  if (!events_) return {};
  if (rt::Status status = events_->scalar("epoch/loss", record.loss, record.step); !status) return status;
  for (const Measured& measured : record.validation)
    if (rt::Status status = events_->scalar("validation/" + measured.name, measured.value, record.step);
        !status)
      return status;
  return events_->flush();
}

}  // namespace rt::train
