#include "interrupt.h"

#include <unistd.h>

#include <string_view>
#include <utility>

#include "command.h"

namespace tessera::cli {

namespace {

sigset_t stop_signals() {
    sigset_t set;
    sigemptyset(&set);
    // If the parent ignores a signal (nohup, a shell's background job), it must stay ignored.
    for (const int number : {SIGINT, SIGTERM}) {
        struct sigaction current;
        if (sigaction(number, nullptr, &current) == 0 && current.sa_handler != SIG_IGN) sigaddset(&set, number);
    }
    sigaddset(&set, SIGUSR2);  // lets the destructor wake the thread
    return set;
}

}  // namespace

Interrupt::Interrupt(std::stop_source stop) : source_(std::move(stop)) {
    const sigset_t set = stop_signals();
    pthread_sigmask(SIG_BLOCK, &set, &previous_);
    waiter_ = std::thread([this] { wait(); });
}

Interrupt::~Interrupt() {
    over_ = true;
    pthread_kill(waiter_.native_handle(), SIGUSR2);
    waiter_.join();
    pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

void Interrupt::wait() {
    const sigset_t set = stop_signals();
    int number = 0;
    while (sigwait(&set, &number) == 0 && !over_) {
        if (number == SIGUSR2) continue;
        if (source_.request_stop()) continue;
        constexpr std::string_view message =
            "\ntessera: stopped immediately; an unfinished array may remain (--overwrite replaces it)\n";
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message.data(), message.size());
        ::_exit(exit_interrupted);
    }
}

}  // namespace tessera::cli
