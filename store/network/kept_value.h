// Values that are read part by part, kept in a file without a name while they are. Private to the store module.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <tessera/byte_io.h>
#include <tessera/descriptor.h>

#include "http_client.h"

namespace tessera {

/// Bytes that come in about the time of one more request.
constexpr std::uint64_t a_request = std::uint64_t{4} << 20;

/// One version of a value, any part of which can be asked for.
class RangedSource : public ByteSource {
public:
    [[nodiscard]] std::uint64_t worth_skipping() const override { return a_request; }
    /// `held`: the caller has counted the memory for them.
    [[nodiscard]] virtual HttpTicket start(std::uint64_t offset, std::uint64_t length, bool held) const = 0;
    /// The answer. Throws if the value was replaced.
    [[nodiscard]] virtual HttpResponse finish(HttpTicket ticket) const = 0;
    /// Copies bytes that came with the first answer; false if not all of them did.
    [[nodiscard]] virtual bool take_first(std::uint64_t offset, MutableByteSpan out) const = 0;
};

/// The file. If the disk is full, or fails, nothing more is kept, and everything is asked for where it is needed.
/// Thread rule: every member may be called from several threads at once.
class KeptFile {
public:
    /// The place of so many bytes.
    [[nodiscard]] std::uint64_t place(std::uint64_t size) { return end_.fetch_add((size + page - 1) / page * page); }
    [[nodiscard]] bool write(std::uint64_t at, ByteSpan bytes) noexcept;
    [[nodiscard]] bool read(std::uint64_t at, MutableByteSpan out) noexcept;
    void forget(std::uint64_t at, std::uint64_t size) noexcept;

    [[nodiscard]] bool works() const { return !failed_; }

private:
    static constexpr std::uint64_t page = std::uint64_t{64} << 10;
    std::mutex mutex_;  ///< for making the file
    Descriptor file_;
    std::atomic<std::uint64_t> end_ = 0;
    std::atomic<bool> failed_ = false;
};

/// A value, each piece of which is asked for once. Thread rule: every member may be called from several threads at
/// once.
class KeptValue {
public:
    /// `whole`: see KeyValueStore::keep_parts.
    KeptValue(std::shared_ptr<KeptFile> file, std::unique_ptr<const RangedSource> source, bool whole);
    ~KeptValue();
    KeptValue(const KeptValue&) = delete;
    KeptValue& operator=(const KeptValue&) = delete;

    /// All of it came already; false if it cannot be kept.
    [[nodiscard]] bool fill(ByteSpan all);
    void read(std::uint64_t offset, MutableByteSpan out);
    /// Fetches what is missing of these parts, many requests at once.
    void fetch(std::span<const ByteSource::Extent> parts);

    [[nodiscard]] std::uint64_t size() const { return source_->size(); }
    [[nodiscard]] const std::string& name() const { return source_->name(); }

private:
    enum class Piece : std::uint8_t { missing, coming, here };
    /// Pieces that one request asks for.
    struct Run {
        std::size_t begin;
        std::size_t end;
    };
    [[nodiscard]] std::vector<Run> claim(std::span<const ByteSource::Extent> parts, std::size_t at_once, bool& others);
    void fetch_claimed(const std::vector<Run>& runs, std::size_t at_once);
    void set(const Run& run, Piece piece);

    std::shared_ptr<KeptFile> file_;
    std::unique_ptr<const RangedSource> source_;
    bool whole_;
    std::uint64_t longest_;  ///< bytes of one request
    std::uint64_t piece_;    ///< bytes of a piece
    std::uint64_t place_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Piece> pieces_;
};

/// A KeptValue as whoever opens it sees it.
class KeptSource final : public ByteSource {
public:
    explicit KeptSource(std::shared_ptr<KeptValue> value) : value_(std::move(value)) {}
    [[nodiscard]] std::uint64_t size() const override { return value_->size(); }
    [[nodiscard]] const std::string& name() const override { return value_->name(); }
    [[nodiscard]] std::uint64_t worth_skipping() const override { return a_request; }
    void read(std::uint64_t offset, MutableByteSpan out) const override { value_->read(offset, out); }
    void expect(std::span<const Extent> extents) const override { value_->fetch(extents); }

private:
    std::shared_ptr<KeptValue> value_;
};

}  // namespace tessera
