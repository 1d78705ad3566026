#include "work.h"

#include <signal.h>
#include <unistd.h>

#include <tessera/error.h>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

namespace tessera::python {

namespace {

std::atomic<std::uint64_t> usual_budget = std::uint64_t{256} << 20U;

/// Granted in addition to the budget, for small objects.
constexpr std::uint64_t beside = std::uint64_t{4} << 20U;

/// The stop of the main thread's innermost work. The SIGINT handler reads it, in whichever thread it runs.
std::atomic<std::stop_source*> interruptible = nullptr;
struct sigaction pythons_own;

void on_interrupt(int number) {
    // No callbacks are registered with these stops, so request_stop() is atomic and takes no lock.
    if (std::stop_source* const stop = interruptible.load()) stop->request_stop();
    pythons_own.sa_handler(number);
}

bool has_default_handler() {
    // Never destroyed: the interpreter ends before statics are destroyed.
    static const auto& module = *new py::object(py::module_::import("signal"));
    return module.attr("getsignal")(SIGINT).is(module.attr("default_int_handler"));
}

/// Warns where something was written otherwise than it should be.
class Notes final : public Waiter {
public:
    void waits(const std::filesystem::path& /*destination*/, std::string_view /*builder*/) override {}
    void notes(std::string_view text) override {
        const py::gil_scoped_acquire gil;
        try {
            warn(std::string(text));
        } catch (py::error_already_set& error) {  // a filter's, which must not stop what is half done
            error.discard_as_unraisable("tessera");
        }
    }
};

}  // namespace

void warn(const std::string& message) {
    py::module_::import("tessera._calls").attr("warn")(message);
}

std::uint64_t usual_memory() {
    return usual_budget;
}

void set_usual_memory(std::uint64_t bytes) {
    usual_budget = bytes;
}

/// Calls Python at most ten times a second, and at the end.
class Work::Reports final : public Progress {
public:
    Reports(Work& work, py::object callback) : work_(work), callback_(std::move(callback)) {}

    void start(std::int64_t total_bytes, std::string_view /*what*/) override {
        total_ += total_bytes;
        report();
    }
    void advance(std::int64_t bytes) override {
        const std::int64_t done = done_ += bytes;
        const std::unique_lock guard(mutex_, std::try_to_lock);
        if (!guard.owns_lock()) return;
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(100) && done < total_) return;
        last_ = now;
        report();
    }

private:
    void report() {
        const py::gil_scoped_acquire acquired;
        if (failed_) return;
        try {
            callback_(done_.load(), total_.load());
        } catch (py::error_already_set& error) {
            failed_ = true;
            work_.keep_error(std::move(error));
        }
    }

    Work& work_;
    py::object callback_;
    std::atomic<std::int64_t> done_ = 0;
    std::atomic<std::int64_t> total_ = 0;
    std::mutex mutex_;
    std::chrono::steady_clock::time_point last_ = {};
    bool failed_ = false;
};

class Work::Interruption {
public:
    explicit Interruption(std::stop_source& stop) : outer_(interruptible.exchange(&stop)) {
        if (outer_ != nullptr) return;
        struct sigaction action = {};
        action.sa_handler = on_interrupt;
        action.sa_flags = SA_RESTART | SA_ONSTACK;
        installed_ = sigaction(SIGINT, &action, &pythons_own) == 0;
    }
    ~Interruption() {
        if (installed_) sigaction(SIGINT, &pythons_own, nullptr);
        interruptible = outer_;
    }
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

private:
    std::stop_source* outer_;
    bool installed_ = false;
};

Work::Work(const WorkOptions& options, Length length) {
    io_.threads = options.threads;
    io_.max_memory = options.max_memory > 0 ? options.max_memory : usual_memory();
    account_ = std::make_shared<MemoryAccount>(io_.max_memory, beside, MemoryAccount::Freed::kept);
    if (length == Length::brief) return;
    io_.stop = stop_.get_token();
    if (!options.progress.is_none()) {
        reports_ = std::make_unique<Reports>(*this, options.progress);
        io_.progress = reports_.get();
    }
    if (::gettid() == ::getpid() && has_default_handler()) interruption_ = std::make_unique<Interruption>(stop_);
}

Work::~Work() = default;

void Work::keep_error(py::error_already_set&& error) {
    if (!error_) error_ = std::make_unique<py::error_already_set>(std::move(error));
    stop_.request_stop();
}

bool Work::signals_raise() {
    if (::gettid() != ::getpid()) return false;
    const py::gil_scoped_acquire acquired;
    return PyErr_CheckSignals() != 0;
}

void Work::rethrow() {
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    // Ctrl-C first: what it ended may have failed a callback.
    if (stop_.stop_requested() && PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (error_) throw py::error_already_set(*error_);
}

StoreOptions store_options(bool read_only, const std::string& durability, bool locks, bool follow_links) {
    static Notes notes;
    return {.read_only = read_only,
            .durability = durability_named(durability),
            .process_locks = locks,
            .waiter = &notes,
            .follow_links = follow_links};
}

}  // namespace tessera::python
