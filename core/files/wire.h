// What processes of one machine and one program say to each other: numbers, texts and values, one after the other.
// Private to core/files.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <tessera/buffer.h>
#include <tessera/dtype.h>
#include <tessera/error.h>
#include <tessera/value.h>

namespace tessera {

class WireWriter {
public:
    void number(std::uint64_t n) { raw(&n, sizeof n); }
    void text(std::string_view s) {
        number(s.size());
        raw(s.data(), s.size());
    }
    void value(const Value& v) { text(v.dump()); }
    void dtype(const DType& t) { value(t.descr()); }
    void dims(const Dims& d) {
        number(d.size());
        for (const std::int64_t n : d) number(static_cast<std::uint64_t>(n));
    }
    void raw(const void* p, std::size_t size) { bytes_.append({static_cast<const std::byte*>(p), size}); }
    [[nodiscard]] Buffer take() { return std::move(bytes_); }
    [[nodiscard]] ByteSpan bytes() const { return bytes_; }

private:
    Buffer bytes_;
};

/// Throws corrupt for what a WireWriter has not written.
class WireReader {
public:
    explicit WireReader(ByteSpan bytes) : rest_(bytes) {}
    std::uint64_t number() {
        std::uint64_t n = 0;
        std::memcpy(&n, part(sizeof n).data(), sizeof n);
        return n;
    }
    std::string_view text() {
        const ByteSpan p = part(number());
        return {reinterpret_cast<const char*>(p.data()), p.size()};
    }
    Value value() { return Value::parse(text()); }
    DType dtype() { return DType::from_descr(value()); }
    Dims dims() {
        Dims d;
        for (std::uint64_t n = number(); n > 0; --n) d.push_back(static_cast<std::int64_t>(number()));
        return d;
    }
    /// As many things as are to come, each of `least` bytes.
    std::uint64_t count(std::uint64_t least = 1) {
        const std::uint64_t n = number();
        if (n > rest_.size() / least) throw corrupt("an answer is cut short");
        return n;
    }
    ByteSpan part(std::uint64_t size) {
        if (size > rest_.size()) throw corrupt("an answer is cut short");
        const ByteSpan p = rest_.first(static_cast<std::size_t>(size));
        rest_ = rest_.subspan(p.size());
        return p;
    }

private:
    ByteSpan rest_;
};

}  // namespace tessera
