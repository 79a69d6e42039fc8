// Constants where devices can read them: mapped memory in place, uploaded slabs, and packed bytes.
//
// Knows: which constant bytes already have a location. Three owners: the session for bytes that live as long
// as it does (ConstantStore), a plan for those computed for its shapes (PlanConstants), the model for those
// that its sessions share (PackedPool). Must not know: graphs, values.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/session/device/device_set.h"
#include "runtime/session/memory/memory.h"

namespace librt {

/// A range of a block.
struct MemoryLocation {
  Block* block = nullptr;
  uint64_t offset = 0;
};

class ConstantStore {
 public:
  /// Registers constant bytes for a device; commit() gives them a location. No-op for bytes that have one.
  void want(Device& device, const std::byte* data, size_t bytes);
  /// Device memory that commit() would allocate.
  uint64_t wanted_bytes() const noexcept { return wanted_bytes_; }
  Status commit();
  /// Drops what was registered and not committed.
  void abandon() noexcept;
  /// Only after commit().
  MemoryLocation find(Device& device, const std::byte* data) const;
  /// Whether a device reads these bytes in place.
  bool reads_host(const std::byte* data) const noexcept { return in_place_.count(data) > 0; }
  /// Device memory allocated so far, without memory used in place.
  size_t allocated_bytes() const noexcept { return allocated_bytes_; }

 private:
  struct Wanted {
    Device* device;
    const std::byte* data;
    size_t bytes;
  };
  Status place(std::span<const Wanted> wanted);

  std::vector<Wanted> wanted_;
  uint64_t wanted_bytes_ = 0;
  size_t allocated_bytes_ = 0;
  std::vector<BlockPtr> blocks_;
  /// Without a block: registered and not committed.
  std::map<std::pair<const Device*, const std::byte*>, MemoryLocation> locations_;
  std::set<const std::byte*> in_place_;
};

/// Constants computed for the shapes of one plan. Of a graph's plans one runs at a time, so they take turns
/// in the same device memory: load() before the first run after another plan's.
class PlanConstants {
 public:
  /// The memory of all plans of a graph, for each device as large as the largest plan needs.
  using Slabs = std::vector<std::pair<Device*, BlockPtr>>;
  static size_t allocated_bytes(const Slabs& slabs) noexcept;

  explicit PlanConstants(Slabs& slabs) noexcept : slabs_(slabs) {}
  /// No-op for bytes that were registered before. They must stay valid.
  void want(Device& device, const std::byte* data, size_t bytes);
  Status commit();
  /// Device memory that load() would allocate. Other plans' locations become invalid if it is not 0.
  uint64_t missing_bytes() const noexcept;
  /// No run may be in flight.
  Status load();
  /// Only after load().
  MemoryLocation find(Device& device, const std::byte* data) const;

 private:
  struct Place {
    size_t bytes = 0;
    uint64_t offset = 0;  ///< in the device's slab
    BlockPtr in_place;    ///< where the device reads host memory
  };
  /// What the device's slab holds while this plan runs.
  struct Image {
    Device* device;
    uint64_t size = 0;
    AlignedBytes bytes = {};
  };
  Block* slab_of(const Device& device) const noexcept;

  Slabs& slabs_;
  std::map<std::pair<Device*, const std::byte*>, Place> places_;
  std::vector<Image> images_;
};

/// What decides about packed bytes: the kernels of a row that pack the same constants under the same key
/// share them.
struct PackedKey {
  const Device* device = nullptr;  ///< null in a PackedPool
  const void* row = nullptr;
  uint64_t packed_key = 0;
  size_t bytes = 0;
  std::vector<const void*> constants;
  bool operator<(const PackedKey& other) const noexcept;
};

/// Packed bytes of a model's own constants in host memory, for all sessions of the model, and freed with the
/// last of them.
struct PackedPool {
  /// Held while a session looks up and packs, so that others wait instead of packing the same. Recursive,
  /// because a callback of the application that hears of progress may create a session.
  std::recursive_mutex mutex;
  std::map<PackedKey, size_t> known;       ///< indices of addresses
  std::vector<std::byte*> addresses = {};  ///< null: not packed yet
  std::vector<AlignedBytes> blocks = {};
};

/// The packed bytes of a session, or of a plan.
class PackedStore {
 public:
  struct Request {
    PackedKey key;
    Device* device = nullptr;
    Kernel* kernel = nullptr;
    bool shared = false;  ///< all constants are the model's own
    size_t index = 0;     ///< of its location
    /// Constants in a mapped file that pack() reads; their pages are released afterwards.
    std::vector<std::span<const std::byte>> mapped = {};
  };
  /// Looks for what is shared in `pool`, and puts it there. Null: everything is the store's own.
  void share(std::shared_ptr<PackedPool> pool) noexcept { pool_ = std::move(pool); }
  /// Index of the location, which exists after commit().
  size_t want(Request request);
  uint64_t wanted_bytes() const noexcept { return wanted_bytes_; }
  size_t wanted_count() const noexcept { return wanted_.size(); }
  /// Allocates and packs what was registered, unless `stop` ends it before. `done` counts what was packed of
  /// `total`.
  Status commit(const StopSignal& stop, size_t& done, size_t total);
  /// Drops what was registered and not committed.
  void abandon() noexcept;
  MemoryLocation find(size_t index) const { return locations_[index]; }
  /// With those of the pool.
  size_t allocated_bytes() const noexcept { return allocated_bytes_; }
  /// Found in the pool, packed by another session.
  size_t found_bytes() const noexcept { return found_bytes_; }

 private:
  static Status pack(const Request& request, std::byte* target);
  Status commit_shared(const StopSignal& stop, size_t& done, size_t total);
  /// What is not shared, for the device of request `first`.
  Status commit_own(size_t first, const StopSignal& stop, size_t& done, size_t total);

  std::shared_ptr<PackedPool> pool_;
  std::vector<Request> wanted_;
  uint64_t wanted_bytes_ = 0;
  size_t allocated_bytes_ = 0, found_bytes_ = 0;
  std::vector<BlockPtr> blocks_;
  std::vector<MemoryLocation> locations_;
  std::map<PackedKey, size_t> known_;  ///< indices of locations
};

}  // namespace librt
