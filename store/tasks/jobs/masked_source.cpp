#include <tessera/where.h>

#include <fmt/format.h>
#include <tessera/conventions.h>
#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/dtype.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/meaning.h>
#include <tessera/ndarray.h>
#include <tessera/numbers.h>
#include <tessera/shared_source.h>
#include <tessera/slices.h>
#include <tessera/value.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "condition.h"

namespace tessera {

namespace {

constexpr const char* marker_attribute = "_FillValue";

/// NaN or NaT of a dtype in host order; empty where it has none.
ElementBytes nothing_of(const DType& dtype) {
    if (is_time(dtype)) return element_from_text(dtype, "NaT");
    const bool real = dtype.kind() == Kind::real || dtype.kind() == Kind::bfloat16;
    return real ? element_from_text(dtype, "nan") : ElementBytes();
}

ElementBytes bytes_of_missing_integer() {
    ElementBytes bytes(sizeof missing_integer);
    std::memcpy(bytes.data(), &missing_integer, sizeof missing_integer);
    return bytes;
}

class MaskedSource final : public ArraySource {
public:
    MaskedSource(std::unique_ptr<ArraySource> array, std::string_view condition, bool by_index, const IoOptions& io)
        : array_(std::move(array)),
          from_(array_->info()),
          native_(native_dtype(from_.dtype)),
          meaning_(meaning_of(*array_)),
          attributes_(array_->attribute_values()),
          condition_(*decoded(borrowed_source(*array_)), condition),
          name_(fmt::format("{} where {}", array_->name(), condition)),
          info_(from_) {
        choose_marker();
        chunks_ = candidate_chunks(*array_, false, by_index, condition_, Region::whole(from_.shape), io);
        info_.working += slice_memory(from_, native_.size() + condition_.dtype().size() + info_.dtype.size() + 1);
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    /// Tells what is resumed, too.
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] Value attribute_values() const override { return attributes_; }
    [[nodiscard]] const ArraySource* model() const override { return wide_ ? wide_.get() : array_.get(); }
    [[nodiscard]] std::optional<ElementBytes> fill_bytes() const override { return array_->fill_bytes(); }
    [[nodiscard]] std::optional<ElementBytes> absent_element() const override {
        ElementBytes bytes = marker_;
        if (!(info_.dtype == native_dtype(info_.dtype))) swap_elements(info_.dtype, bytes.data(), 1);
        return bytes;
    }
    [[nodiscard]] bool visit_stored(const std::function<void(const Region&)>& each) const override {
        if (!chunks_) return false;
        for (const std::int64_t n : chunks_->numbers) each(chunks_->units.chunk_region(chunks_->units.index(n)));
        return true;
    }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        if (!chunks_) return read_part(region, out, io);
        for_each_candidate_run(*chunks_, region, [&](const Region& part, bool may) {
            const MutableArrayView to = out.part(within(region, part));
            may ? read_part(part, to, io) : fill_elements(to, native_dtype(info_.dtype), marker_.data());
        });
    }

private:
    void choose_marker() {
        if (is_time(native_)) {
            marker_ = nothing_of(native_);
        } else if (!meaning_.missing.empty()) {
            marker_ = meaning_.missing.front();
            // Where Zarr v2's fill marks them.
            if (const Value* mark = meaning_.attributes.find(marker_attribute))
                attributes_.set(marker_attribute, *mark);
        } else if (marker_ = nothing_of(native_); !marker_.empty()) {
            attributes_.set(marker_attribute, std::numeric_limits<double>::quiet_NaN());
        } else {
            const bool whole = native_.kind() == Kind::integer || native_.kind() == Kind::unsigned_integer;
            if (!whole || !(meaning_.stored == native_)) {
                throw unsupported("{}: of {} no element can be missing, which those that do not match become",
                                  array_->name(), from_.dtype.to_string());
            }
            info_.dtype = DType::of<std::int64_t>();
            wide_ = std::make_unique<CastSource>(borrowed_source(*array_), info_.dtype, Cast::same_kind);
            marker_ = bytes_of_missing_integer();
            attributes_.set(marker_attribute, missing_integer);
        }
    }

    void read_part(const Region& region, const MutableArrayView& out, const IoOptions& io) const {
        for_each_slice(from_, native_.size(), region, io.stop, [&](const Region& slice) {
            NDArray codes(native_, slice.extent);
            array_->read_into(slice, codes.view(), io);
            const NDArray holds = condition_.holds(elements_of(codes), {.threads = 1});
            if (wide_) clear_others(codes, holds);
            NDArray made = wide_ ? widened(codes) : std::move(codes);
            const auto size = marker_.size();
            std::byte* to = made.bytes().data();
            for (const std::byte holds_here : holds.bytes()) {
                if (holds_here == std::byte{0}) std::memcpy(to, marker_.data(), size);
                to += size;
            }
            copy_elements(std::as_const(made).view(), out.part(within(region, slice)));
        });
    }

    /// Sets to 0 what does not match, so that only what stays has to fit.
    static void clear_others(NDArray& codes, const NDArray& holds) {
        const auto size = static_cast<std::size_t>(codes.dtype().size());
        std::byte* at = codes.bytes().data();
        for (const std::byte holds_here : holds.bytes()) {
            if (holds_here == std::byte{0}) std::memset(at, 0, size);
            at += size;
        }
    }

    /// What codes stand for.
    [[nodiscard]] NDArray elements_of(const NDArray& codes) const {
        const auto source = decoded(shared_source(view_source(codes.view(), name()), meaning_.attributes));
        NDArray elements(condition_.dtype(), codes.shape());
        source->read_into(Region::whole(codes.shape()), elements.view(), {.threads = 1});
        return elements;
    }

    [[nodiscard]] NDArray widened(const NDArray& codes) const {
        NDArray wide(info_.dtype, codes.shape());
        CastSource(view_source(codes.view(), name()), info_.dtype, Cast::same_kind)
            .read_into(Region::whole(codes.shape()), wide.view(), {.threads = 1});
        return wide;
    }

    std::unique_ptr<ArraySource> array_;
    std::unique_ptr<ArraySource> wide_;  ///< as int64, where its integers have no code for missing ones; else null
    ArrayInfo from_;
    DType native_;
    Meaning meaning_;
    Value attributes_;
    ElementCondition condition_;
    std::string name_;
    ArrayInfo info_;
    ElementBytes marker_;                    ///< of info_.dtype in host order
    std::optional<CandidateChunks> chunks_;  ///< nullopt: all are read
};

}  // namespace

std::unique_ptr<ArraySource> masked_source(std::unique_ptr<ArraySource> array, std::string_view condition,
                                           const IoOptions& io, bool by_index) {
    const DType dtype = array->info().dtype;
    if (dtype.is_variable() || dtype.kind() == Kind::structure) {
        throw invalid_argument(
            "{}: a condition picks rows of a table, which has fields and one dimension, or elements that are numbers "
            "or times, but this is {} of shape {}",
            array->name(), dtype.to_string(), array->info().shape.to_string());
    }
    return std::make_unique<MaskedSource>(std::move(array), condition, by_index, io);
}

std::unique_ptr<ArraySource> rows_or_elements_where(std::unique_ptr<ArraySource> array, std::string_view condition,
                                                    const IoOptions& io) {
    const ArrayInfo info = array->info();
    const bool table = info.dtype.kind() == Kind::structure && info.shape.rank() == 1;
    return table ? where_source(std::move(array), condition, io) : masked_source(std::move(array), condition, io);
}

}  // namespace tessera
