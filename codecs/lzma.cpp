// "numcodecs.lzma": the formats, checks and filter chains of Python's lzma module, by its numbers and names.
#include <lzma.h>

#include <tessera/error_text.h>
#include <tessera/memory_account.h>
#include <algorithm>

#include <array>
#include <new>

#include "codec_row.h"
#include "compressor.h"

namespace tessera {

namespace {

enum class Format : std::uint8_t { xz = 1, alone = 2, raw = 3 };

/// The decoder allocates a dictionary before anything shows the need for it, so the size that data may ask for is
/// limited. The largest of the presets needs 65 MiB.
constexpr std::uint64_t memory_limit = std::uint64_t{256} << 20;
/// Up to this much, a decoder's memory is not accounted for.
constexpr std::uint64_t usual_memory = std::uint64_t{4} << 20;

/// A chain of filters with the options that it points to.
class Filters {
public:
    explicit Filters(const Value::Array& list) {
        if (list.empty() || list.size() > LZMA_FILTERS_MAX) {
            throw invalid_argument("filters has {} filters, expected 1 to {}", list.size(), LZMA_FILTERS_MAX);
        }
        for (const Value& filter : list) add(filter);
        chain_[count_] = {LZMA_VLI_UNKNOWN, nullptr};
        const std::uint64_t memory = lzma_raw_decoder_memusage(chain_.data());
        if (memory == UINT64_MAX || lzma_raw_encoder_memusage(chain_.data()) == UINT64_MAX)
            throw invalid_argument("filters make no chain that liblzma knows");
        if (memory > memory_limit) {
            throw unsupported("filters need {} MiB to decode; at most {} are taken", memory >> 20, memory_limit >> 20);
        }
    }
    Filters(const Filters&) = delete;
    Filters& operator=(const Filters&) = delete;

    [[nodiscard]] const lzma_filter* chain() const { return chain_.data(); }

private:
    void add(const Value& filter) {
        const auto id = static_cast<lzma_vli>(integer_member(filter, "id", -1, 0, INT64_MAX));
        lzma_filter& to = chain_[count_];
        to.id = id;
        if (id == LZMA_FILTER_LZMA1 || id == LZMA_FILTER_LZMA2) {
            to.options = &(lzma_[count_] = lzma_options(filter));
        } else if (id == LZMA_FILTER_DELTA) {
            require_known_members(filter, {"id", "dist"});
            lzma_options_delta& options = delta_[count_];
            options.type = LZMA_DELTA_TYPE_BYTE;
            options.dist =
                static_cast<std::uint32_t>(integer_member(filter, "dist", 1, LZMA_DELTA_DIST_MIN, LZMA_DELTA_DIST_MAX));
            to.options = &options;
        } else {
            require_known_members(filter, {"id", "start_offset"});
            bcj_[count_].start_offset =
                static_cast<std::uint32_t>(integer_member(filter, "start_offset", 0, 0, UINT32_MAX));
            to.options = &bcj_[count_];
        }
        ++count_;
    }

    static lzma_options_lzma lzma_options(const Value& filter) {
        require_known_members(filter,
                              {"id", "preset", "dict_size", "lc", "lp", "pb", "mode", "nice_len", "mf", "depth"});
        lzma_options_lzma options{};
        const auto preset =
            static_cast<std::uint32_t>(integer_member(filter, "preset", LZMA_PRESET_DEFAULT, 0, UINT32_MAX));
        if (lzma_lzma_preset(&options, preset)) {
            throw invalid_argument("preset is {}, expected 0 to 9", preset);
        }
        const auto number = [&](std::string_view name, std::uint32_t otherwise) {
            return static_cast<std::uint32_t>(integer_member(filter, name, otherwise, 0, UINT32_MAX));
        };
        options.dict_size = number("dict_size", options.dict_size);
        options.lc = number("lc", options.lc);
        options.lp = number("lp", options.lp);
        options.pb = number("pb", options.pb);
        options.mode = static_cast<lzma_mode>(number("mode", options.mode));
        options.nice_len = number("nice_len", options.nice_len);
        options.mf = static_cast<lzma_match_finder>(number("mf", options.mf));
        options.depth = number("depth", options.depth);
        return options;
    }

    std::size_t count_ = 0;
    std::array<lzma_filter, LZMA_FILTERS_MAX + 1> chain_{};
    std::array<lzma_options_lzma, LZMA_FILTERS_MAX> lzma_{};
    std::array<lzma_options_delta, LZMA_FILTERS_MAX> delta_{};
    std::array<lzma_options_bcj, LZMA_FILTERS_MAX> bcj_{};
};

/// A coder of liblzma, freed at the end.
struct Stream {
    Stream() = default;
    ~Stream() { lzma_end(&lzma); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    lzma_stream lzma = LZMA_STREAM_INIT;
};

class LzmaCodec final : public Compressor {
public:
    LzmaCodec(Format format, lzma_check check, std::uint32_t preset, std::unique_ptr<const Filters> filters)
        : format_(format), check_(check), preset_(preset), filters_(std::move(filters)) {}

    void encode(ByteSpan in, Buffer& out) const override {
        Stream stream;
        require_started(start_encoder(stream.lzma));
        out.reset(static_cast<std::size_t>(encoded_bound(in.size())));
        give(stream.lzma, in, out.span());
        const lzma_ret result = lzma_code(&stream.lzma, LZMA_FINISH);
        if (result != LZMA_STREAM_END) {
            throw unsupported("liblzma could not compress {} bytes ({})", in.size(), static_cast<int>(result));
        }
        out.resize(stream.lzma.total_out);
    }

    [[nodiscard]] std::uint64_t encoded_bound(std::uint64_t in_size) const override {
        // xz stores incompressible data as they are. LZMA1 cannot, and grows by less than 2 %.
        return lzma_stream_buffer_bound(static_cast<std::size_t>(in_size)) + in_size / 16;
    }

protected:
    [[nodiscard]] std::optional<std::size_t> decompress(ByteSpan in, MutableByteSpan out) const override {
        Stream stream;
        require_started(start_decoder(stream.lzma));
        give(stream.lzma, in, out);
        MemoryHold dictionary;
        lzma_ret result = go_on(stream.lzma, dictionary);
        if (is_waiting(result) && stream.lzma.avail_out == 0) {
            // The decoder may need room only to find the end, so it gets one more byte.
            std::byte beyond{};
            stream.lzma.next_out = reinterpret_cast<std::uint8_t*>(&beyond);
            stream.lzma.avail_out = 1;
            result = go_on(stream.lzma, dictionary);
            if (stream.lzma.avail_out == 0) return std::nullopt;
        }
        if (result == LZMA_STREAM_END) {
            if (stream.lzma.avail_in > 0) {
                throw corrupt("{} bytes follow the lzma data", stream.lzma.avail_in);
            }
            return stream.lzma.total_out;
        }
        if (result == LZMA_MEM_ERROR) throw std::bad_alloc();
        if (result == LZMA_MEMLIMIT_ERROR) {
            throw corrupt("the lzma data ask for a dictionary of more than {} MiB", memory_limit >> 20);
        }
        if (is_waiting(result)) throw corrupt("the lzma data are cut short");
        throw corrupt("the lzma data are damaged ({})", static_cast<int>(result));
    }

private:
    /// A coder that needs more input or more room stops without an error.
    static bool is_waiting(lzma_ret result) { return result == LZMA_OK || result == LZMA_BUF_ERROR; }

    /// Decodes. Accounts for an unusually large dictionary once the data ask for it, but only for the part that can be
    /// filled. Each stream may ask for a larger one.
    static lzma_ret go_on(lzma_stream& s, MemoryHold& dictionary) {
        for (;;) {
            const lzma_ret result = lzma_code(&s, LZMA_FINISH);
            const std::uint64_t wanted = lzma_memusage(&s);
            if (result != LZMA_MEMLIMIT_ERROR || wanted > memory_limit) return result;
            dictionary = MemoryHold();
            dictionary.add(std::min<std::uint64_t>(wanted, s.avail_out));
            if (lzma_memlimit_set(&s, wanted) != LZMA_OK) return result;
        }
    }

    static void give(lzma_stream& s, ByteSpan in, MutableByteSpan out) {
        s.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
        s.avail_in = in.size();
        s.next_out = reinterpret_cast<std::uint8_t*>(out.data());
        s.avail_out = out.size();
    }

    static void require_started(lzma_ret result) {
        if (result == LZMA_MEM_ERROR) throw std::bad_alloc();
        if (result != LZMA_OK) {
            throw unsupported("liblzma refuses the configuration ({})", static_cast<int>(result));
        }
    }

    lzma_ret start_encoder(lzma_stream& s) const {
        lzma_options_lzma preset{};
        switch (format_) {
            case Format::xz:
                return filters_ ? lzma_stream_encoder(&s, filters_->chain(), check_)
                                : lzma_easy_encoder(&s, preset_, check_);
            case Format::alone:
                if (filters_) {
                    return lzma_alone_encoder(&s, static_cast<lzma_options_lzma*>(filters_->chain()->options));
                }
                (void)lzma_lzma_preset(&preset, preset_);
                return lzma_alone_encoder(&s, &preset);
            case Format::raw:
                break;
        }
        return lzma_raw_encoder(&s, filters_->chain());
    }

    lzma_ret start_decoder(lzma_stream& s) const {
        switch (format_) {
            case Format::xz:
                return lzma_stream_decoder(&s, usual_memory, LZMA_CONCATENATED);
            case Format::alone:
                return lzma_alone_decoder(&s, usual_memory);
            case Format::raw:
                break;
        }
        return lzma_raw_decoder(&s, filters_->chain());
    }

    Format format_;
    lzma_check check_;
    std::uint32_t preset_;
    std::unique_ptr<const Filters> filters_;
};

std::unique_ptr<BytesToBytesCodec> make_lzma_codec(const Value& configuration, std::int64_t /*item_size*/) {
    require_known_members(configuration, {"format", "check", "preset", "filters"});
    const auto format = static_cast<Format>(integer_member(configuration, "format", 1, 1, 3));
    std::int64_t check = integer_member(configuration, "check", -1, -1, LZMA_CHECK_ID_MAX);
    if (format != Format::xz && check > 0) {
        throw invalid_argument("check is {}, but only format 1 (xz) has one", check);
    }
    if (check == -1) check = LZMA_CHECK_CRC64;
    if (lzma_check_is_supported(static_cast<lzma_check>(check)) == 0) {
        throw invalid_argument("check is {}; choose one of 0 (none), 1 (CRC-32), 4 (CRC-64), 10 (SHA-256)", check);
    }
    const Value* filters = given_member(configuration, "filters");
    if (filters && given_member(configuration, "preset")) {
        throw invalid_argument("there are both a preset and filters; choose one");
    }
    if (!filters && format == Format::raw) {
        throw invalid_argument("format 3 (raw) needs filters: the data do not say how they are decoded");
    }
    constexpr std::int64_t extreme = LZMA_PRESET_EXTREME;  // a flag, in the topmost bit
    const std::int64_t preset = integer_member(configuration, "preset", LZMA_PRESET_DEFAULT, 0, extreme | 9);
    if ((preset & ~extreme) > 9) throw invalid_argument("preset is {}, expected 0 to 9", preset);
    auto chain = filters ? std::make_unique<const Filters>(filters->as_array()) : nullptr;
    if (chain && format == Format::alone &&
        (chain->chain()[0].id != LZMA_FILTER_LZMA1 || chain->chain()[1].id != LZMA_VLI_UNKNOWN)) {
        throw invalid_argument("format 2 (alone) takes one filter only, LZMA1");
    }
    return std::make_unique<LzmaCodec>(format, static_cast<lzma_check>(check), static_cast<std::uint32_t>(preset),
                                       std::move(chain));
}

constexpr CodecPart lzma_parts[] = {{"preset", CodecPart::Type::whole}};

}  // namespace

extern constinit const CodecRow lzma_codec{
    .name = "numcodecs.lzma",
    .about = "lzma:PRESET, 0 to 9",
    .bytes_to_bytes = make_lzma_codec,
    .parts = lzma_parts,
    .compressor = true,
    .encoding_only = R"({"check": -1, "preset": null, "filters": null})",
};

}  // namespace tessera
