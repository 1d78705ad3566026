#include <tessera/parallel.h>

#include <tessera/caller.h>
#include <tessera/error.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tessera {

namespace {

thread_local Caller thread_itself;
thread_local Caller* innermost_caller = &thread_itself;
thread_local int finishing = 0;  ///< FinishScopes

}  // namespace

Caller& Caller::current() {
    return *innermost_caller;
}

void Caller::drop(const void* table, int kind) {
    const auto last = std::find_if(locks.rbegin(), locks.rend(),
                                   [&](const HeldLock& lock) { return lock.table == table && lock.kind == kind; });
    if (last != locks.rend()) locks.erase(std::next(last).base());
}

JobScope::JobScope(const Caller& outer) : before_(std::exchange(innermost_caller, &own_)) {
    own_.outer = &outer;
}

JobScope::~JobScope() {
    innermost_caller = before_;
}

StopScope::StopScope(std::stop_token stop, bool (*poll)())
    : stop_(std::move(stop)), poll_(poll), outer_(std::exchange(Caller::current().stop, this)) {}

StopScope::~StopScope() {
    Caller::current().stop = outer_;
}

bool StopScope::stop_requested() const {
    if (stop_.stop_requested() || (poll_ != nullptr && poll_())) return true;
    return outer_ != nullptr && outer_->stop_requested();
}

bool stop_requested() {
    for (const Caller* caller = &Caller::current(); caller != nullptr; caller = caller->outer) {
        if (caller->stop != nullptr && caller->stop->stop_requested()) return true;
    }
    return false;
}

void require_not_stopped() {
    if (finishing == 0 && stop_requested()) throw cancelled("stopped on request");
}

FinishScope::FinishScope() {
    ++finishing;
}

FinishScope::~FinishScope() {
    --finishing;
}

void throw_if_stopped() {
    if (stop_requested()) throw cancelled("stopped on request, while waiting for another writer");
}

}  // namespace tessera
