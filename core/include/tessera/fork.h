// Fork: keeps the library usable in a child process that goes on without exec, whatever the parent's other threads were
// doing.
//
// A child has its parent's memory, but only the thread that called fork(). So
// - the mutexes of the whole library are held during a fork, and are free on both sides afterwards;
// - oneTBB's workers are gone in the child, and oneTBB starts no others: parallel_for uses its own threads there;
// - the files of locks are closed in the child, so that it does not keep the locks of a parent that was killed. The
// child must not use handles that the parent opened while other threads used them. It opens its own, as the Python
// module does by itself.
#pragma once

#include <cstdint>
#include <mutex>

namespace tessera {

/// The mutexes of the whole library. A thread that holds one takes no other.
enum class LibraryMutex : std::uint8_t { array_locks, destinations, file_times, spare_memory, count };
[[nodiscard]] std::mutex& library_mutex(LibraryMutex which);

/// Calls `child` in each forked child, where no other thread runs. At most 8 functions.
void after_fork_in_child(void (*child)());

}  // namespace tessera
