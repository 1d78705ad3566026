// A codec and a kind of store of a program's own, used like Tessera's: see both below, and main() for the calls.
//
//     extensions COPY     COPY: a new array on the disk, encoded by the codec
#include <tessera/tessera.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <mutex>

using namespace tessera;

namespace {

/// Each byte xor a key: {"id": "xor", "key": 42} in Zarr v2, {"name": "numcodecs.xor", "configuration": …} in v3.
class Xor final : public BytesToBytesCodec {
public:
    explicit Xor(std::byte key) : key_(key) {}

    void encode(ByteSpan in, Buffer& out) const override {
        out.reset(in.size());
        turn(in, out.span());
    }
    void decode(ByteSpan in, MutableByteSpan out) const override {
        if (in.size() != out.size()) throw corrupt("the data have another size than the chunk");
        turn(in, out);
    }
    [[nodiscard]] bool decode_unsized(ByteSpan in, Buffer& out, std::uint64_t limit) const override {
        if (in.size() > limit) return false;
        encode(in, out);
        return true;
    }
    [[nodiscard]] std::uint64_t encoded_bound(std::uint64_t in_size) const override { return in_size; }

private:
    void turn(ByteSpan in, MutableByteSpan out) const {
        std::ranges::transform(in, out.begin(), [this](std::byte b) { return b ^ key_; });
    }
    std::byte key_;
};

std::unique_ptr<BytesToBytesCodec> make_xor(const Value& configuration, std::int64_t /*item_size*/) {
    const std::int64_t key = configuration.at("key").as_int64();
    if (key < 0 || key > 255) throw invalid_argument("key must be from 0 to 255");
    return std::make_unique<Xor>(static_cast<std::byte>(key));
}

constexpr CodecPart xor_parts[] = {{"key", CodecPart::Type::whole, "42"}};  // so that "xor:7" is understood, and "xor"

constexpr CodecRow xor_codec{.name = "numcodecs.xor",
                             .about = "each byte xor a key: xor:KEY",
                             .bytes_to_bytes = make_xor,
                             .parts = xor_parts,
                             .compressor = true};

/// A store in memory, by name: "mem:NAME/PREFIX".
class Memory final : public SimpleStore {
public:
    using SimpleStore::SimpleStore;

protected:
    [[nodiscard]] std::optional<Buffer> load(std::string_view key) const override {
        const std::lock_guard guard(mutex());
        const auto found = values().find(key);
        return found == values().end() ? std::nullopt : std::optional(Buffer(found->second.span()));
    }
    void store(std::string_view key, ByteSpan value) override {
        const std::lock_guard guard(mutex());
        values().insert_or_assign(std::string(key), Buffer(value));
    }
    bool remove(std::string_view key) override {
        const std::lock_guard guard(mutex());
        return values().erase(std::string(key)) > 0;
    }
    [[nodiscard]] std::vector<std::string> keys(std::string_view prefix) const override {
        const std::string start = prefix.empty() ? "" : std::string(prefix) + '/';
        const std::lock_guard guard(mutex());
        std::vector<std::string> found;
        for (const auto& [key, value] : values()) {
            if (key.starts_with(start)) found.push_back(key);
        }
        return found;
    }

private:
    using Values = std::map<std::string, Buffer, std::less<>>;
    static std::mutex& mutex() {
        static std::mutex one;
        return one;
    }
    /// Of all stores of this name.
    [[nodiscard]] Values& values() const {
        static std::map<std::string, Values> all;
        return all[name()];
    }
};

Place memory_place(const std::filesystem::path& path, const StoreOptions& options) {
    const auto [name, prefix] = split_store_path(path);
    return {std::make_shared<Memory>(name, options), prefix};
}

constexpr StoreKind memory_kind{
    .scheme = "mem", .about = "stores in the memory of this program", .place = memory_place};

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 2) throw invalid_argument("usage: extensions COPY");
    // Before anything is opened or created: the tables stay as they are afterwards.
    add_codec(xor_codec);
    add_store_kind(memory_kind);

    Array a = Array::create("mem:scratch/waves",
                            {.shape = {4, 6}, .chunks = {2, 3}, .dtype = "<i4", .codec = "xor:7", .format = "v3"});
    a.write("1::2, :3", std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
    std::cout << Array::open("mem:scratch/waves").read() << '\n';

    const CopiedHierarchy made = copy_hierarchy(a, argv[1], {.arrays = {.codec = "xor:7", .format = "v2"}});
    std::cout << "wrote " << made.path << ", encoded by " << codec_text(Array::open(argv[1]).metadata().codecs.back())
              << '\n';
    return 0;
} catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 2;
}
