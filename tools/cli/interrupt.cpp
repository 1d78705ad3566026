#include "interrupt.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "command.h"

namespace tessera::cli {

namespace {

using SignalClock = std::chrono::steady_clock;

/// The next signal; 0 once `until` has come.
int next_signal(const sigset_t& set, std::optional<SignalClock::time_point> until) {
    int number = 0;
    if (!until) return sigwait(&set, &number) == 0 ? number : SIGUSR2;
    const auto left = std::max(SignalClock::duration::zero(), *until - SignalClock::now());
    const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
    const timespec time{.tv_sec = seconds.count(), .tv_nsec = std::chrono::nanoseconds(left - seconds).count()};
    number = sigtimedwait(&set, nullptr, &time);
    return number < 0 ? 0 : number;
}

}  // namespace

sigset_t Interrupt::signals() const {
    sigset_t set;
    sigemptyset(&set);
    // If the parent ignores a signal (nohup, a shell's background job), it must stay ignored.
    for (const int number : {SIGINT, SIGTERM, SIGUSR1}) {
        if (number == SIGUSR1 && !grace_) continue;
        struct sigaction current;
        if (sigaction(number, nullptr, &current) == 0 && current.sa_handler != SIG_IGN) sigaddset(&set, number);
    }
    sigaddset(&set, SIGUSR2);  // lets the destructor wake the thread
    return set;
}

Interrupt::Interrupt(std::stop_source stop, std::optional<std::chrono::milliseconds> grace)
    : source_(std::move(stop)), grace_(grace) {
    const sigset_t set = signals();
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
    const sigset_t set = signals();
    std::optional<SignalClock::time_point> until;
    while (!over_) {
        const int number = next_signal(set, until);
        if (over_) return;
        if (number == SIGUSR2 || (number == 0 && SignalClock::now() < *until)) continue;
        if (grace_ && number != SIGINT && !preempted_.exchange(true)) {
            until = SignalClock::now() + *grace_;
            continue;
        }
        until.reset();
        if (source_.request_stop() || number == 0) continue;
        constexpr std::string_view message =
            "\ntessera: stopped immediately; an unfinished array may remain (--overwrite replaces it)\n";
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message.data(), message.size());
        ::_exit(preempted_ ? exit_preempted : exit_interrupted);
    }
}

}  // namespace tessera::cli
