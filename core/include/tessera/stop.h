// StopScope: a request to stop that also ends waits for locks, and loops over bytes and folders.
//
//     std::stop_source stop;
//     const StopScope scope(stop.get_token());
//     array.attributes().set("units", "m");  // Error(cancelled) if stop.request_stop() is called while it waits
//
// Like a memory account, the request belongs to the thread and is not an argument, so that no wait can forget it.
// `parallel_for` passes its caller's requests to its threads. Operations that take IoOptions make a scope of their
// `stop`.
#pragma once

#include <stop_token>

namespace tessera {

/// Scopes of a thread nest: a request in any of them ends its waits. Destroy it in the thread that made it, the inner
/// one first.
class StopScope {
public:
    /// `poll` is asked, too, every few milliseconds of a wait, in the waiting thread: for requests that come by other
    /// ways.
    explicit StopScope(std::stop_token stop, bool (*poll)() = nullptr);
    ~StopScope();
    StopScope(const StopScope&) = delete;
    StopScope& operator=(const StopScope&) = delete;

    /// Whether this scope or one around it is asked to stop.
    [[nodiscard]] bool stop_requested() const;

private:
    std::stop_token stop_;
    bool (*poll_)();
    const StopScope* outer_;
};

/// Whether a scope of this thread is asked to stop.
[[nodiscard]] bool stop_requested();

/// Throws Error(cancelled) if a scope of this thread is asked to stop. Loops that get no IoOptions call it once a
/// piece.
void require_not_stopped();

/// While it lives, require_not_stopped() does nothing in this thread: for what has to be finished once it is begun.
class FinishScope {
public:
    FinishScope();
    ~FinishScope();
    FinishScope(const FinishScope&) = delete;
    FinishScope& operator=(const FinishScope&) = delete;
};

}  // namespace tessera
