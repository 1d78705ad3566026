// The helper's side of helper_process.h: requests come one after the other to functions, in one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/byte_io.h>

#include "../foreign.h"
#include "../wire.h"

namespace tessera {

/// A request.
struct ForeignCall {
    WireReader request;
    MutableByteSpan space;  ///< memory that it shares with the parent, for elements
    WireWriter answer{};
};
/// An Error that it throws is thrown in the parent.
using ForeignFunction = void (*)(ForeignCall& call);

struct ForeignRow {
    ForeignTask task;
    ForeignFunction function;
};
[[nodiscard]] std::span<const ForeignRow> hdf5_tasks();
[[nodiscard]] std::span<const ForeignRow> hdf5_writing_tasks();
[[nodiscard]] std::span<const ForeignRow> tiff_tasks();
[[nodiscard]] std::span<const ForeignRow> grib_tasks();

/// Answers these requests until the connection ends; returns the program's exit code.
int serve_foreign(int argc, const char* const* argv, std::vector<std::span<const ForeignRow>> tasks);

/// The bytes of HelperWish::source, as long as requests come that have the same.
class ParentBytes final : public ByteSource {
public:
    /// Of the request that is answered now.
    ParentBytes(std::string name, std::uint64_t size);
    std::uint64_t size() const override { return size_; }
    const std::string& name() const override { return name_; }
    void read(std::uint64_t offset, MutableByteSpan out) const override;

private:
    std::string name_;
    std::uint64_t size_;
    std::uint64_t source_;
};

/// Calls `drop` when no request has come for a second, and when the connection has ended. At most 8 functions.
void when_helper_rests(void (*drop)());
/// The same, but only at the end.
void when_helper_ends(void (*drop)());
/// Enters the folder in which the parent's relative paths begin.
void enter_folder(const std::string& folder);

}  // namespace tessera
