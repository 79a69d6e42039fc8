// A model over HTTP: requests that arrive together are computed in one run, by a session for each worker.
//
//   serve MODEL.rt [--port N] [--host H] [--batch N] [--wait MS] [--workers N] [--queue N] [--backend B]
//
// The model has one input and one output of f32 with a dynamic first axis, a row for each request.
//
//   POST /run     a row of the input as little-endian f32; answers with the row of the output
//   GET  /model   the shapes of such rows, as JSON
//   GET  /health  200 while requests are taken
//
// A worker waits until it has `batch` requests, or until the first of them has waited for `wait`
// milliseconds. A request that finds `queue` others waiting is refused with 503. SIGTERM and SIGINT end the
// program: what has been taken is still answered.
#include <httplib.h>
#include <rt/rt.hpp>

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

struct Options {
  std::string model, host = "127.0.0.1", backend = "auto";
  int port = 8080;  ///< 0: any free one
  int batch = 8;    ///< rows of a run, at most
  int wait = 5;     ///< milliseconds
  int workers = 1;  ///< sessions
  int queue = 256;  ///< requests that wait, at most
};

int fail(const std::string& message) {
  std::fprintf(stderr, "serve: %s\n", message.c_str());
  return 2;
}

/// One request on its way: its row, and where the answer goes.
struct Request {
  std::string row;
  std::promise<rt::Result<std::string>> answer;
};

/// The requests that wait for a worker.
class Queue {
 public:
  Queue(size_t capacity, size_t batch, std::chrono::milliseconds wait)
      : capacity_(capacity), batch_(batch), wait_(wait) {}

  /// False if it is full, or closed.
  bool put(Request request) {
    const std::lock_guard lock(mutex_);
    if (closed_ || waiting_.size() >= capacity_) return false;
    waiting_.push_back({std::move(request), std::chrono::steady_clock::now()});
    changed_.notify_all();
    return true;
  }

  /// Up to a batch of requests, in order. Empty: it was closed, and all have been taken.
  std::vector<Request> take() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
      if (waiting_.empty()) return {};
      const auto enough = [&] { return closed_ || waiting_.empty() || waiting_.size() >= batch_; };
      changed_.wait_until(lock, waiting_.front().since + wait_, enough);
      if (!waiting_.empty()) break;  // else another worker was faster
    }
    std::vector<Request> batch;
    while (!waiting_.empty() && batch.size() < batch_) {
      batch.push_back(std::move(waiting_.front().request));
      waiting_.pop_front();
    }
    return batch;
  }

  /// Nothing more is put; take() hands out the rest.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  struct Waiting {
    Request request;
    std::chrono::steady_clock::time_point since;
  };
  const size_t capacity_, batch_;
  const std::chrono::milliseconds wait_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  bool closed_ = false;
};

/// A row of an input or output: the extents after the batch.
struct Row {
  std::vector<int64_t> dims;
  size_t bytes = sizeof(float);

  std::vector<int64_t> with_batch(size_t count) const {
    std::vector<int64_t> all{static_cast<int64_t>(count)};
    all.insert(all.end(), dims.begin(), dims.end());
    return all;
  }
  std::string json() const {
    std::string text = "[";
    for (const int64_t extent : dims) text.append(text.size() > 1 ? "," : "").append(std::to_string(extent));
    return text.append("]");
  }
};

rt::Result<Row> row_of(const std::vector<rt::TensorSpec>& specs, const std::string& what) {
  const auto refused = [&](const std::string& found) {
    return rt::Status(
        rt::Code::Unsupported,
        what + ": expected one f32 tensor [batch,..] with a dynamic batch only, found " + found);
  };
  if (specs.size() != 1) return refused(std::to_string(specs.size()) + " tensors");
  if (specs[0].dtype != rt::DType::F32) return refused("another type");
  if (specs[0].dims.empty() || specs[0].dims[0].extent >= 0) return refused("a static batch");
  Row row;
  for (size_t i = 1; i < specs[0].dims.size(); ++i) {
    const int64_t extent = specs[0].dims[i].extent;
    if (extent <= 0) return refused("another dynamic dimension, or one without elements");
    row.dims.push_back(extent);
    row.bytes *= static_cast<size_t>(extent);
  }
  return row;
}

/// The rows of a batch, computed in one run.
rt::Status run(rt::Session& session, const Row& input, const Row& output, std::vector<Request>& batch,
               std::vector<std::string>& results) {
  rt::Tensor rows(rt::DType::F32, input.with_batch(batch.size()));
  for (size_t i = 0; i < batch.size(); ++i)
    std::memcpy(static_cast<char*>(rows.data()) + i * input.bytes, batch[i].row.data(), input.bytes);
  if (auto status = session.set_input(0, rows); !status) return status;
  if (auto status = session.run(); !status) return status;
  const auto computed = session.output(0);
  if (!computed) return computed.status();
  if (computed->bytes() != batch.size() * output.bytes)
    return {rt::Code::Internal, "the output has another size than its specification says"};
  for (size_t i = 0; i < batch.size(); ++i)
    results.emplace_back(static_cast<const char*>(computed->data()) + i * output.bytes, output.bytes);
  return {};
}

/// A session is used by one thread at a time: each worker has its own; the model's weights are shared.
void work(rt::Session session, const Row& input, const Row& output, Queue& queue) {
  while (true) {
    std::vector<Request> batch = queue.take();
    if (batch.empty()) return;
    std::vector<std::string> results;
    const rt::Status status = run(session, input, output, batch, results);
    for (size_t i = 0; i < batch.size(); ++i) {
      if (status)
        batch[i].answer.set_value(std::move(results[i]));
      else
        batch[i].answer.set_value(status);
    }
  }
}

void answer(httplib::Response& response, int code, const std::string& text) {
  response.status = code;
  response.set_content(text + "\n", "text/plain");
}

void take_request(const httplib::Request& request, httplib::Response& response, const Row& input,
                  Queue& queue) {
  if (request.body.size() != input.bytes)
    return answer(response, 400,
                  "expected a row of f32 " + input.json() + ", " + std::to_string(input.bytes) +
                      " bytes, found " + std::to_string(request.body.size()) + " bytes");
  Request row{request.body, {}};
  std::future<rt::Result<std::string>> future = row.answer.get_future();
  if (!queue.put(std::move(row))) {
    response.set_header("Retry-After", "1");
    return answer(response, 503, "too many requests wait; try again");
  }
  const rt::Result<std::string> result = future.get();
  if (!result) return answer(response, 500, result.status().message());
  response.set_content(*result, "application/octet-stream");
}

void describe_errors(httplib::Server& server, const Row& input) {
  server.set_error_handler([&input](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    if (response.status == 404) answer(response, 404, "there are POST /run, GET /model and GET /health");
    if (response.status == 413)
      answer(response, 413, "a body has " + std::to_string(input.bytes) + " bytes; this one is longer");
    if (response.status == 400) answer(response, 400, "this is not a complete HTTP request");
  });
}

/// Waits for one of the signals, which all threads block, and ends the server. Requests that wait for others
/// to fill a batch wait no longer.
void stop_at(const sigset_t& signals, httplib::Server& server, Queue& queue) {
  int signal = 0;
  sigwait(&signals, &signal);
  server.stop();
  queue.close();
}

bool parse(int argc, char** argv, Options& options) {
  struct Number {
    std::string_view name;
    int* value;
    int least, most;
  };
  const Number numbers[] = {{"--port", &options.port, 0, 65535},
                            {"--batch", &options.batch, 1, 1024},
                            {"--wait", &options.wait, 0, 60000},
                            {"--workers", &options.workers, 1, 256},
                            {"--queue", &options.queue, 1, 1 << 20}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (!name.starts_with("--")) {
      if (!options.model.empty()) return false;
      options.model = name;
      continue;
    }
    if (++i == argc) return false;
    const std::string_view value = argv[i];
    if (name == "--host") options.host = value;
    if (name == "--backend") options.backend = value;
    bool known = name == "--host" || name == "--backend";
    for (const Number& number : numbers) {
      if (name != number.name) continue;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *number.value);
      known = error == std::errc() && end == value.data() + value.size() && *number.value >= number.least &&
              *number.value <= number.most;
    }
    if (!known) return false;
  }
  return !options.model.empty();
}

int serve(const Options& options, const sigset_t& signals) {
  const auto model = rt::Model::load(options.model);
  if (!model) return fail(model.status().message());
  const auto input = row_of(model->inputs(), "input");
  if (!input) return fail(input.status().message());
  const auto output = row_of(model->outputs(), "output");
  if (!output) return fail(output.status().message());

  const auto batch = static_cast<size_t>(options.batch), workers = static_cast<size_t>(options.workers);
  Queue queue(static_cast<size_t>(options.queue), batch, std::chrono::milliseconds(options.wait));
  std::vector<rt::Session> sessions;
  for (size_t i = 0; i < workers; ++i) {
    // The workers share the cores.
    const int threads = static_cast<int>(std::max<size_t>(1, std::thread::hardware_concurrency() / workers));
    auto session = rt::Session::create(*model, {.backend = options.backend, .threads = threads});
    if (!session) return fail(session.status().message());
    sessions.push_back(std::move(*session));
  }

  httplib::Server server;
  // A thread waits for each request that is taken: enough of them for full batches, and one to refuse others.
  const size_t threads = std::min<size_t>(2 * batch * workers, static_cast<size_t>(options.queue)) + 1;
  server.new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
  server.set_payload_max_length(input->bytes);
  server.set_read_timeout(10);  // seconds: who sends nothing for so long is dropped
  server.set_write_timeout(10);
  server.set_keep_alive_timeout(2);
  server.set_tcp_nodelay(true);
  int socket = -1;
  server.set_socket_options([&socket](int created) {
    httplib::default_socket_options(created);
    socket = created;
  });
  describe_errors(server, *input);
  server.Post("/run", [&](const httplib::Request& request, httplib::Response& response) {
    take_request(request, response, *input, queue);
  });
  server.Get("/model", [&](const httplib::Request&, httplib::Response& response) {
    response.set_content(
        "{\"dtype\":\"f32\",\"input\":" + input->json() + ",\"output\":" + output->json() + "}\n",
        "application/json");
  });
  server.Get("/health",
             [](const httplib::Request&, httplib::Response& response) { answer(response, 200, "ok"); });

  int port = options.port;
  if (port == 0)
    port = server.bind_to_any_port(options.host);
  else if (!server.bind_to_port(options.host, port))
    port = -1;
  if (port < 0) return fail(options.host + ":" + std::to_string(options.port) + ": cannot be bound");
  listen(socket, SOMAXCONN);  // again: the library lets five connections wait
  std::vector<std::thread> running;
  for (rt::Session& session : sessions)
    running.emplace_back(work, std::move(session), std::cref(*input), std::cref(*output), std::ref(queue));
  std::thread stopper(stop_at, std::cref(signals), std::ref(server), std::ref(queue));
  std::printf("listening on %s:%d\n", options.host.c_str(), port);
  std::fflush(stdout);

  const bool ended = server.listen_after_bind();  // until stopped; then all that has been taken is answered
  queue.close();
  for (std::thread& worker : running) worker.join();
  if (!ended) pthread_kill(stopper.native_handle(), SIGTERM);
  stopper.join();
  return ended ? 0 : fail("the socket failed");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options))
    return fail(
        "MODEL.rt [--port N] [--host H] [--batch N] [--wait MS] [--workers N] [--queue N] [--backend B]");
  // Before any thread is made, so that all of them block these signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return serve(options, signals);
}
