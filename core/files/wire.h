// How the library and its helper (helper_process.h) put values into bytes: one after the other, in the order in which
// fields() tells them. Both are of one build on one machine. Private to core/files.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/buffer.h>
#include <tessera/dtype.h>
#include <tessera/error.h>
#include <tessera/shape.h>
#include <tessera/value.h>

namespace tessera {

template <class T>
concept WireNumber = std::integral<T> || std::is_enum_v<T>;

// fields(x, visit) tells the parts of a struct, whether it is written or read. Structs of the protocol have a static
// function of this name; these are of others.
template <class Self, class T>
concept Alike = std::same_as<std::remove_const_t<Self>, T>;
void fields(Alike<Region> auto& x, auto& visit) {
    visit(x.start, x.extent);
}
void fields(Alike<ArrayInfo> auto& x, auto& visit) {
    visit(x.dtype, x.shape, x.chunks);
}
void fields(Alike<ArrayFileGroup> auto& x, auto& visit) {
    visit(x.name, x.attributes, x.unlimited);
}
void fields(Alike<Advice> auto& x, auto& visit) {
    visit(x.action, x.effect, x.value);
}
void fields(Alike<PackedArray> auto& x, auto& visit) {
    visit(x.name, x.dtype, x.shape, x.offset, x.row_stride, x.attributes, x.chunks, x.filters, x.compressor, x.fill,
          x.stored);
}

class WireWriter {
public:
    template <class... T>
    void operator()(const T&... parts) {
        (put(parts), ...);
    }
    [[nodiscard]] Buffer take() { return std::move(bytes_); }
    [[nodiscard]] ByteSpan bytes() const { return bytes_; }

private:
    void raw(const void* p, std::size_t size) { bytes_.append({static_cast<const std::byte*>(p), size}); }
    template <WireNumber T>
    void put(const T& n) {
        const auto wide = static_cast<std::uint64_t>(n);
        raw(&wide, sizeof wide);
    }
    void put(std::string_view s) {
        put(s.size());
        raw(s.data(), s.size());
    }
    void put(const std::string& s) { put(std::string_view(s)); }
    void put(const Value& v) { put(v.dump()); }
    void put(const DType& t) { put(t.descr()); }
    void put(const Dims& d) {
        put(d.size());
        for (const std::int64_t n : d) put(n);
    }
    template <class T>
    void put(const std::optional<T>& v) {
        put(v.has_value());
        if (v) put(*v);
    }
    template <class T>
    void put(const std::vector<T>& list) {
        put(list.size());
        if constexpr (std::is_trivially_copyable_v<T>) {
            raw(list.data(), list.size() * sizeof(T));
        } else {
            for (const T& v : list) put(v);
        }
    }
    template <class T>
    void put(const T& x) {
        if constexpr (requires { T::fields(x, *this); }) {
            T::fields(x, *this);
        } else {
            fields(x, *this);
        }
    }

    Buffer bytes_;
};

/// Throws corrupt for what a WireWriter has not written.
class WireReader {
public:
    explicit WireReader(ByteSpan bytes) : rest_(bytes) {}
    template <class... T>
    void operator()(T&... parts) {
        (get(parts), ...);
    }
    /// The next part.
    template <class T>
    T next() {
        T v{};
        get(v);
        return v;
    }
    /// As long as the bytes are.
    std::string_view text() {
        const ByteSpan p = part(next<std::uint64_t>());
        return {reinterpret_cast<const char*>(p.data()), p.size()};
    }

private:
    ByteSpan part(std::uint64_t size) {
        if (size > rest_.size()) throw corrupt("an answer is cut short");
        const ByteSpan p = rest_.first(static_cast<std::size_t>(size));
        rest_ = rest_.subspan(p.size());
        return p;
    }
    template <WireNumber T>
    void get(T& n) {
        std::uint64_t wide = 0;
        std::memcpy(&wide, part(sizeof wide).data(), sizeof wide);
        n = static_cast<T>(wide);
    }
    void get(std::string& s) { s = text(); }
    void get(Value& v) { v = Value::parse(text()); }
    void get(DType& t) { t = DType::from_descr(next<Value>()); }
    void get(Dims& d) {
        d = {};
        for (auto n = next<std::uint64_t>(); n > 0; --n) d.push_back(next<std::int64_t>());
    }
    template <class T>
    void get(std::optional<T>& v) {
        v.reset();
        if (next<bool>()) get(v.emplace());
    }
    template <class T>
    void get(std::vector<T>& list) {
        list.clear();
        const auto count = next<std::uint64_t>();
        if constexpr (std::is_trivially_copyable_v<T>) {
            if (count > rest_.size() / sizeof(T)) throw corrupt("an answer is cut short");
            list.resize(static_cast<std::size_t>(count));
            const ByteSpan bytes = part(count * sizeof(T));
            if (!list.empty()) std::memcpy(list.data(), bytes.data(), bytes.size());
        } else {
            for (std::uint64_t i = 0; i < count; ++i) get(list.emplace_back());
        }
    }
    template <class T>
    void get(T& x) {
        if constexpr (requires { T::fields(x, *this); }) {
            T::fields(x, *this);
        } else {
            fields(x, *this);
        }
    }

    ByteSpan rest_;
};

/// These parts as bytes.
[[nodiscard]] Buffer wired(const auto&... parts) {
    WireWriter out;
    out(parts...);
    return out.take();
}

}  // namespace tessera
