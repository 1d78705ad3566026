#include "parity.h"

#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/seal.h>

#include <optional>

namespace tessera::cli {

namespace {

/// If no parity can be read, verify reports that.
std::optional<ParityPromise> promise_at(const Located& at, const IoOptions& io) {
    try {
        auto place = place_beside(at, {.read_only = true});
        if (!place) place = at.place;
        return place ? parity_promise(*place, io) : std::nullopt;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::corrupt) throw;
        return std::nullopt;
    }
}

}  // namespace

void add_parity(Facts& facts, const Located& at, const IoOptions& io) {
    const auto promise = promise_at(at, io);
    if (!promise) return;
    facts.add("parity", fmt::format("{}: enough to restore any {} in a row, or any {}", redundancy_text(promise->asked),
                                    count_text(static_cast<std::int64_t>(promise->run), "byte"),
                                    count_text(promise->files, "file")));
    facts.more(fmt::format("any {} of {} bytes of each code word (tools/docs/parity.md)",
                           count_text(promise->blocks, "block"), promise->block_size));
    facts.more(fmt::format(
        "{} in {}{}", bytes_text(promise->parity_bytes), count_text(promise->segments, "segment"),
        promise->lost_segments == 0 ? "" : fmt::format(", of which {} cannot be read", promise->lost_segments)));
}

void add_parity(Value& report, const Located& at, const IoOptions& io) {
    const auto promise = promise_at(at, io);
    if (!promise) return;
    Value parity = Value::object();
    parity.set("asked", redundancy_text(promise->asked));
    parity.set("bytes", promise->parity_bytes);
    parity.set("segments", promise->segments);
    parity.set("lost_segments", promise->lost_segments);
    parity.set("block_bytes", static_cast<std::int64_t>(promise->block_size));
    parity.set("blocks", static_cast<std::int64_t>(promise->blocks));
    parity.set("run_bytes", promise->run);
    parity.set("files", static_cast<std::int64_t>(promise->files));
    report.set("parity", std::move(parity));
}

}  // namespace tessera::cli
