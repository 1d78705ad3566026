// Fork: keeps the library usable in a forked child that does not call exec, whatever the parent's other threads were
// doing.
//
// A child has its parent's memory, but only the thread that called fork(). So
// - the mutexes of the whole library are held during a fork, and are free on both sides afterwards;
// - oneTBB's workers are gone in the child, and oneTBB starts no others: parallel_for uses its own threads there;
// - the lock files are closed in the child, so that it does not keep the locks of a parent that was killed.
// The child must not use handles that other threads of the parent were using. It opens its own, as the Python module
// does automatically.
#pragma once

#include <cstdint>
#include <mutex>

namespace tessera {

/// The mutexes of the whole library. A thread that holds one takes no other.
enum class LibraryMutex : std::uint8_t { array_locks, destinations, file_times, readers, spare_memory, count };
[[nodiscard]] std::mutex& library_mutex(LibraryMutex which);

/// Calls `child` in each forked child, where no other thread runs. At most 8 functions.
void after_fork_in_child(void (*child)());

}  // namespace tessera
