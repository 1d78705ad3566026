// Threads that get no signals. Shared with the mounted folder.
#pragma once

#include <signal.h>

namespace tessera::serve {

/// Blocks all signals in this thread, and in those that begin while it lives: a thread of ours must not be the one that
/// gets Ctrl-C.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_;
};

}  // namespace tessera::serve
