// Fork: what a child process that goes on without exec must find in order, whatever other threads of its parent were in
// the middle of.
//
// A child has the memory of its parent, but of its threads only the one that called fork(). So
// - the mutexes of the whole library are held over a fork, and are free on both sides afterwards;
// - oneTBB's workers are gone in the child, and oneTBB does not start others: parallel_for has threads of its own
// there;
// - the files that locks are on are closed in the child, so that it does not keep the locks of a parent that was
// killed. Handles that the parent opened while other threads used them are not to be used in the child: it opens its
// own, as the Python module does by itself.
#pragma once

#include <cstdint>
#include <mutex>

namespace tessera {

/// The mutexes of the whole library. A thread that holds one takes no other.
enum class LibraryMutex : std::uint8_t { array_locks, destinations, file_times, spare_memory, count };
[[nodiscard]] std::mutex& library_mutex(LibraryMutex which);

/// Calls `child` in each forked child, where no other thread is: at most 8 functions.
void after_fork_in_child(void (*child)());

}  // namespace tessera
