// A value that is kept in memory until it is complete. Private to the store module.
#pragma once

#include <fmt/format.h>
#include <tessera/key_value_store.h>

#include <cstring>
#include <string>
#include <string_view>

namespace tessera {

/// A value being written: put as a whole by finish().
class MemoryWriter final : public ByteSink {
public:
    MemoryWriter(KeyValueStore& store, std::string_view key)
        : store_(store), key_(key), name_(fmt::format("{}/{}", store.name(), key)) {}
    [[nodiscard]] bool random_access() const override { return true; }
    void append(ByteSpan bytes) override { value_.append(bytes); }
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
        const std::size_t end = value_.size();
        if (offset + bytes.size() > end) value_.resize(static_cast<std::size_t>(offset + bytes.size()));
        if (offset > end) std::memset(value_.data() + end, 0, offset - end);
        if (!bytes.empty()) std::memcpy(value_.data() + offset, bytes.data(), bytes.size());
    }
    void finish() override { store_.put(key_, value_); }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    KeyValueStore& store_;
    std::string key_;
    std::string name_;
    Buffer value_;
};

}  // namespace tessera
