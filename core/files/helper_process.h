// Helper processes: the programs tessera-hdf5, tessera-tiff and tessera-grib. They alone are linked with libhdf5,
// libtiff and ecCodes, which have a history of faults, and work with them for this process. Private to core/files.
//
// A helper answers one request after the other, keeps what it has opened for the next one, and ends when the connection
// does. If it crashes, the request ends with an Error, and the next one gets another helper. This is no sandbox: it
// isolates crashes, endless loops and memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/byte_io.h>

#include "foreign.h"
#include "wire.h"

namespace tessera {

/// A request to a helper.
struct HelperWish {
    ForeignTask task{};
    ForeignLibrary library{};
    ByteSpan request = {};                                ///< by WireWriter
    std::size_t space = 0;                                ///< bytes of memory that both share, for elements
    std::function<void(MutableByteSpan)> give = nullptr;  ///< called with it before the request
    std::function<void(ByteSpan)> take = nullptr;         ///< called with it after the answer
    std::function<void(WireReader)> read = nullptr;       ///< called with the answer; whose errors end the helper
    const ByteSource* source = nullptr;                   ///< for files that are no files of this machine
    const char* file = nullptr;                           ///< what is read instead: a small one is little work
    std::uint64_t granted = 0;  ///< bytes of this thread's account that are held for the helper
};

class HelperProcess;

/// A helper that answers one after the other. Thread rule: one thread at a time.
class HelperSession {
public:
    HelperSession();
    ~HelperSession();
    HelperSession(const HelperSession&) = delete;
    HelperSession& operator=(const HelperSession&) = delete;
    /// As ask_helper(). After an error that the helper itself did not throw, all further ones fail.
    Buffer ask(const HelperWish& wish);
    /// Ends the helper now.
    void end() noexcept;

private:
    std::unique_ptr<HelperProcess> process_;
};

/// Asks an idle helper, or a new one; returns its answer. Throws what the helper threw; corrupt if it crashes or finds
/// no end; cancelled; io if there can be no helper, naming what was tried. Any thread may call it; each call has a
/// helper of its own.
Buffer ask_helper(const HelperWish& wish);
/// Starts a helper, unless one is idle, and does not wait for it: the next request does. Ignores errors, because that
/// request meets them again.
void expect_helper(ForeignLibrary library) noexcept;
/// Asks each idle helper, and no new one: for what it may have open.
void tell_helpers(const HelperWish& wish);

/// The name of its program.
[[nodiscard]] std::string_view helper_program(ForeignLibrary library);
/// Where it is looked for, in this order.
[[nodiscard]] std::vector<std::string> helper_places(ForeignLibrary library);

}  // namespace tessera
