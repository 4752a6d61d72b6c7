// SPDX-License-Identifier: MIT
// A program that does with the HSA runtime what it is told: a command per line on stdin, an answer
// in JSON per line on stdout. It knows of no agent. End of input: hsa_shut_down and exit code 0.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "programs/hsa_program.h"

namespace {

using namespace apusched::softapu;
using nlohmann::json;

constexpr std::uint32_t kPackets = 64;

std::string words_of(hsa_status_t status) {
  const char* words = "?";
  hsa_status_string(status, &words);
  return words;
}

json outcome(hsa_status_t status) {
  return {{"status", static_cast<unsigned>(status)}, {"words", words_of(status)}};
}

hsa_queue_t* make_queue(const Gpu& gpu, hsa_status_t* status) {
  hsa_queue_t* queue = nullptr;
  *status = hsa_queue_create(gpu.agent(), kPackets, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr,
                             UINT32_MAX, UINT32_MAX, &queue);
  return *status == HSA_STATUS_SUCCESS ? queue : nullptr;
}

class Subject {
 public:
  Subject() {
    gpu_.load_kernels();
    kernel_ = gpu_.kernel("timed");
    // The program's own, made before any limit of the tests can be reached.
    arguments_ = static_cast<std::uint64_t*>(gpu_.allocate(4096));
  }
  ~Subject() {
    stop();
    queues_.clear();
    gpu_.release(arguments_);
  }
  json answer(const std::string& line);

 private:
  // Of a Queue nothing else than its destruction is used by a queue made here.
  struct Own {
    hsa_queue_t* queue;
    explicit Own(hsa_queue_t* made) : queue(made) {}
    ~Own() { hsa_queue_destroy(queue); }
    Own(const Own&) = delete;
    Own& operator=(const Own&) = delete;
  };

  json make(std::istringstream& words);
  json drop(std::istringstream& words);
  json churn(std::istringstream& words);
  json run(std::istringstream& words);
  json overlap(std::istringstream& words);
  json allocate(std::istringstream& words);
  json release();
  json set_mask(std::istringstream& words);
  json get_mask();
  json set_priority(std::istringstream& words);
  json spin(std::istringstream& words);
  json stop();
  json fork_child();
  void submit(hsa_queue_t* queue, std::uint32_t workgroups, bool barrier, const Signal* done) const;

  Gpu gpu_;
  Kernel kernel_;
  std::uint64_t* arguments_ = nullptr;
  std::vector<std::unique_ptr<Own>> queues_;
  std::vector<void*> memory_;
  std::thread spinner_;
  std::atomic<bool> spinning_{false};
  std::atomic<std::uint64_t> rounds_{0};
};

void Subject::submit(hsa_queue_t* queue, std::uint32_t workgroups, bool barrier,
                     const Signal* done) const {
  const std::uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
  while (index - hsa_queue_load_read_index_scacquire(queue) >= queue->size) sched_yield();
  auto* packet =
      static_cast<hsa_kernel_dispatch_packet_t*>(queue->base_address) + (index & (queue->size - 1));
  packet->workgroup_size_x = 64;
  packet->workgroup_size_y = packet->workgroup_size_z = 1;
  packet->grid_size_x = workgroups * 64;
  packet->grid_size_y = packet->grid_size_z = 1;
  packet->private_segment_size = packet->group_segment_size = 0;
  packet->kernel_object = kernel_.object;
  packet->kernarg_address = arguments_;
  packet->completion_signal = done == nullptr ? hsa_signal_t{0} : done->get();
  const std::uint32_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH | (barrier ? 1U : 0U) << 8 |
                               HSA_FENCE_SCOPE_SYSTEM << 9 | HSA_FENCE_SCOPE_SYSTEM << 11;
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(packet), header | 1U << 16, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
}

json Subject::make(std::istringstream& words) {
  unsigned count = 1;
  words >> count;
  hsa_status_t status = HSA_STATUS_SUCCESS;
  for (unsigned i = 0; i < count && status == HSA_STATUS_SUCCESS; i++) {
    hsa_queue_t* queue = make_queue(gpu_, &status);
    if (queue == nullptr) break;
    hsa_amd_profiling_set_profiler_enabled(queue, 1);
    queues_.push_back(std::make_unique<Own>(queue));
  }
  json result = outcome(status);
  result["queues"] = queues_.size();
  return result;
}

json Subject::drop(std::istringstream& words) {
  unsigned count = 1;
  words >> count;
  for (; count > 0 && !queues_.empty(); count--) queues_.pop_back();
  return {{"queues", queues_.size()}};
}

// Makes and destroys queues, as many per second as it is told; each does one kernel.
json Subject::churn(std::istringstream& words) {
  unsigned count = 0;
  unsigned per_second = 100;
  words >> count >> per_second;
  unsigned made = 0;
  auto next = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < count; i++) {
    hsa_status_t status{};
    hsa_queue_t* queue = make_queue(gpu_, &status);
    if (queue != nullptr) {
      const Signal done;
      submit(queue, 1, true, &done);
      if (!done.wait(HSA_WAIT_STATE_BLOCKED)) give_up("churn: a kernel did not complete");
      hsa_queue_destroy(queue);
      made++;
    }
    next += std::chrono::microseconds{1'000'000 / per_second};
    std::this_thread::sleep_until(next);
  }
  return {{"made", made}};
}

// One kernel: its time on the device.
json Subject::run(std::istringstream& words) {
  std::uint32_t workgroups = 64;
  std::uint64_t nanoseconds = 10'000;
  words >> workgroups >> nanoseconds;
  *arguments_ = nanoseconds;
  const Signal done;
  submit(queues_.back()->queue, workgroups, true, &done);
  if (!done.wait(HSA_WAIT_STATE_BLOCKED)) give_up("run: the kernel did not complete");
  const DeviceTimes times = device_times(gpu_, done);
  return {{"device_ns", (times.end - times.start).count()}};
}

// Two kernels in one queue without the barrier bit, each of one workgroup.
json Subject::overlap(std::istringstream& words) {
  *arguments_ = 2'000'000;
  words >> *arguments_;
  const Signal first;
  const Signal second;
  submit(queues_.back()->queue, 1, false, &first);
  submit(queues_.back()->queue, 1, false, &second);
  if (!first.wait(HSA_WAIT_STATE_BLOCKED) || !second.wait(HSA_WAIT_STATE_BLOCKED))
    give_up("overlap: a kernel did not complete");
  const DeviceTimes one = device_times(gpu_, first);
  const DeviceTimes two = device_times(gpu_, second);
  return {{"first_end_ns", one.end.count()},
          {"second_start_ns", two.start.count()},
          {"overlap", two.start < one.end && one.start < two.end}};
}

hsa_status_t note_pool(hsa_amd_memory_pool_t pool, void* data) {
  bool can = false;
  hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &can);
  if (!can) return HSA_STATUS_SUCCESS;
  *static_cast<hsa_amd_memory_pool_t*>(data) = pool;
  return HSA_STATUS_INFO_BREAK;
}

json Subject::allocate(std::istringstream& words) {
  std::size_t mib = 1;
  words >> mib;
  hsa_amd_memory_pool_t pool{};
  hsa_amd_agent_iterate_memory_pools(gpu_.agent(), note_pool, &pool);
  void* memory = nullptr;
  const auto status = hsa_amd_memory_pool_allocate(pool, mib << 20, 0, &memory);
  if (status == HSA_STATUS_SUCCESS) memory_.push_back(memory);
  return outcome(status);
}

json Subject::release() {
  if (memory_.empty()) return {{"status", -1}};
  void* memory = memory_.back();
  memory_.pop_back();
  return outcome(hsa_amd_memory_pool_free(memory));
}

json Subject::set_mask(std::istringstream& words) {
  std::uint32_t mask = 0;
  words >> std::hex >> mask;
  return outcome(hsa_amd_queue_cu_set_mask(queues_.back()->queue, mask == 0 ? 0 : 32, &mask));
}

json Subject::get_mask() {
  std::uint32_t mask = 0;
  json result = outcome(hsa_amd_queue_cu_get_mask(queues_.back()->queue, 32, &mask));
  result["mask"] = mask;
  return result;
}

json Subject::set_priority(std::istringstream& words) {
  std::string name;
  words >> name;
  const auto priority = name == "low"    ? HSA_AMD_QUEUE_PRIORITY_LOW
                        : name == "high" ? HSA_AMD_QUEUE_PRIORITY_HIGH
                                         : HSA_AMD_QUEUE_PRIORITY_NORMAL;
  return outcome(hsa_amd_queue_set_priority(queues_.back()->queue, priority));
}

// A thread that submits one kernel after the other.
json Subject::spin(std::istringstream& words) {
  stop();
  *arguments_ = 10'000;
  words >> *arguments_;
  spinning_ = true;
  spinner_ = std::thread([this, queue = queues_.back()->queue] {
    const Signal done;
    while (spinning_) {
      done.set(1);
      submit(queue, 12, true, &done);
      if (!done.wait(HSA_WAIT_STATE_BLOCKED)) give_up("spin: a kernel did not complete");
      rounds_++;
    }
  });
  return {{"spinning", true}};
}

json Subject::stop() {
  spinning_ = false;
  if (spinner_.joinable()) spinner_.join();
  return {{"rounds", rounds_.load()}};
}

// The child asks for a queue of a size that there is not, and ends. It can do no more: the queues'
// memory is not in a child.
json Subject::fork_child() {
  const pid_t child = fork();
  if (child == 0) {
    hsa_queue_t* queue = nullptr;
    hsa_queue_create(gpu_.agent(), 3, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, 0, 0, &queue);
    std::exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {{"exited", WIFEXITED(status)}, {"code", WEXITSTATUS(status)}};
}

json Subject::answer(const std::string& line) {
  std::istringstream words(line);
  std::string command;
  words >> command;
  const std::map<std::string, std::function<json()>> commands = {
      {"make", [&] { return make(words); }},
      {"drop", [&] { return drop(words); }},
      {"churn", [&] { return churn(words); }},
      {"run", [&] { return run(words); }},
      {"overlap", [&] { return overlap(words); }},
      {"allocate", [&] { return allocate(words); }},
      {"free", [&] { return release(); }},
      {"set-mask", [&] { return set_mask(words); }},
      {"get-mask", [&] { return get_mask(); }},
      {"priority", [&] { return set_priority(words); }},
      {"spin", [&] { return spin(words); }},
      {"rounds",
       [&] {
         return json{{"rounds", rounds_.load()}};
       }},
      {"stop", [&] { return stop(); }},
      {"fork", [&] { return fork_child(); }},
  };
  const auto found = commands.find(command);
  if (found != commands.end()) return found->second();
  // Without any cleaning up: queues live, perhaps busy, and the runtime open.
  if (command == "exit") std::exit(0);
  if (command == "exec") {
    std::cout << json{{"exec", true}} << std::endl;
    execl("/bin/cat", "cat", nullptr);
  }
  give_up("queue_user: no command \"" + command + "\"");
}

}  // namespace

int main() {
  Subject subject;
  std::cout << json{{"ready", true}, {"pid", getpid()}} << std::endl;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << subject.answer(line) << std::endl;
  return 0;
}
