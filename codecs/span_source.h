// A source over bytes in memory that the caller owns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <tessera/byte_io.h>

namespace tessera {

/// Whether each read is a request over the network, so that it pays to expect() what is wanted.
inline bool is_far(const ByteSource& source) {
    return source.worth_skipping() > std::uint64_t{1} << 20;
}

class SpanSource final : public ByteSource {
public:
    SpanSource(ByteSpan bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    void read(std::uint64_t offset, MutableByteSpan out) const override {
        std::ranges::copy(bytes_.subspan(static_cast<std::size_t>(offset), out.size()), out.begin());
    }
    [[nodiscard]] ByteSpan mapped() const override { return bytes_; }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    ByteSpan bytes_;
    std::string name_;
};

}  // namespace tessera
