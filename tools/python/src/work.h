// Work: one call into the library, without the GIL, with progress, and interruptible by Ctrl-C.
#pragma once

#include <pybind11/pybind11.h>

#include <tessera/error.h>
#include <tessera/key_value_store.h>
#include <tessera/memory_account.h>
#include <tessera/parallel.h>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera::python {

namespace py = pybind11;

/// A message and what can be done, in Python's words: "…; overwrite=True replaces it".
[[nodiscard]] std::string advised(const std::string& message, const std::vector<Advice>& advice);

/// Options of the module's calls: threads, memory and progress.
struct WorkOptions {
    int threads = 0;
    std::uint64_t max_memory = 0;      ///< bytes for data whose size a file dictates; 0: usual_memory()
    py::object progress = py::none();  ///< called as progress(done, total) with bytes
};

/// The budget of calls that name none: 256 MiB, as the program's, unless the environment names another.
[[nodiscard]] std::uint64_t usual_memory();
/// Called once, when the package is imported.
void set_usual_memory(std::uint64_t bytes);

/// Whether a call may take long enough to need interruption.
enum class Length : std::uint8_t { brief, any };

class Work {
public:
    /// Call with the GIL. SIGINT ends the work if `length` is any, this is the main thread, and Python's own SIGINT
    /// handler is installed. Any other handler runs while the call waits for a lock, or after it, as with any C
    /// function.
    explicit Work(const WorkOptions& options = {}, Length length = Length::any);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    /// Calls body(io) without the GIL. Rethrows the error of a Python callback, or KeyboardInterrupt if that ended the
    /// work.
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

    /// Call with the GIL, in a callback that threw a Python error: keeps it for run(), and requests a stop.
    void keep_error(py::error_already_set&& error);

private:
    class Reports;
    class Interruption;
    template <class Body>
    auto without_gil(const Body& body) {
        const py::gil_scoped_release released;
        const MemoryScope memory(account_);
        const StopScope scope(io_.stop, &signals_raise);
        return body(std::as_const(io_));
    }
    /// Runs the Python handlers of signals that came while the main thread waits for a lock. Whether one has raised an
    /// error, which rethrow() throws.
    static bool signals_raise();
    /// Throws the kept error, or KeyboardInterrupt if that is due.
    void rethrow();

    std::stop_source stop_;
    IoOptions io_;
    std::shared_ptr<MemoryAccount> account_;
    std::unique_ptr<Reports> reports_;
    std::unique_ptr<Interruption> interruption_;
    std::unique_ptr<py::error_already_set> error_;
};

/// Warns of the line that called the package. Throws if a filter makes an error of it. Holds the GIL.
void warn(const std::string& message);

/// Options for opening places.
[[nodiscard]] StoreOptions store_options(bool read_only, const std::string& durability, bool locks, bool follow_links);

}  // namespace tessera::python
