// Work: one call into the library, without the GIL, that Ctrl-C can end and that tells its progress.
#pragma once

#include <pybind11/pybind11.h>

#include <tessera/error.h>
#include <tessera/key_value_store.h>
#include <tessera/parallel.h>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace tessera::python {

namespace py = pybind11;

/// What the calls of the module take: how many threads, how much memory, and whom to tell.
struct WorkOptions {
    int threads = 0;
    std::uint64_t max_memory = 0;
    py::object progress = py::none();  ///< called as progress(done, total) with bytes
};

/// Whether a call may take long enough for a person to want it ended.
enum class Length : std::uint8_t { brief, any };

class Work {
public:
    /// With the GIL. Where `length` is any, and this is the main thread, and Python's own handler of SIGINT is in place
    /// (a handler of somebody else's runs when the call has ended, as with any C function), SIGINT ends the work.
    explicit Work(const WorkOptions& options = {}, Length length = Length::any);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    /// Calls body(io) without the GIL. What a callback of Python threw is thrown here, and KeyboardInterrupt where
    /// that ended the work.
    template <class Body>
    auto run(const Body& body) {
        try {
            if constexpr (std::is_void_v<decltype(body(std::as_const(io_)))>) {
                without_gil(body);
                if (error_) rethrow();
            } else {
                auto result = without_gil(body);
                if (error_) rethrow();
                return result;
            }
        } catch (const Error&) {
            rethrow();
            throw;
        }
    }

    /// With the GIL, in a callback that threw a Python error: keeps it for run(), and asks the work to stop.
    void keep_error(py::error_already_set&& error);

private:
    class Reports;
    class Interruption;
    template <class Body>
    auto without_gil(const Body& body) {
        const py::gil_scoped_release released;
        return body(std::as_const(io_));
    }
    /// Throws the error that was kept, or KeyboardInterrupt where that is due; else returns.
    void rethrow();

    std::stop_source stop_;
    IoOptions io_;
    std::unique_ptr<Reports> reports_;
    std::unique_ptr<Interruption> interruption_;
    std::unique_ptr<py::error_already_set> error_;
};

/// How places are opened: waiting for another builder ends when the work of this thread is interrupted.
[[nodiscard]] StoreOptions store_options(bool read_only, const std::string& durability, bool locks, bool follow_links);

}  // namespace tessera::python
