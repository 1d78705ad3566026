#include <tessera/measure.h>

#include <tessera/absent.h>
#include <tessera/chunk_index.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/known_statistics.h>
#include <tessera/memory_account.h>
#include <tessera/slices.h>

#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "column_summary.h"
#include "index_bytes.h"

namespace tessera {

namespace {

/// A field (or the element itself) and where it lies.
struct Column {
    std::string name;
    DType dtype;
    std::int64_t offset = 0;
    Shape shape;  ///< of a sub-array
};

void add_columns(const DType& dtype, const std::string& name, std::int64_t offset, const Shape& shape,
                 std::vector<Column>& columns) {
    if (dtype.kind() != Kind::structure) {
        columns.push_back({name, dtype, offset, shape});
        return;
    }
    for (const Field& field : dtype.fields()) {
        if (field.unnamed) continue;
        // Each structure of a sub-array has columns of its own.
        for (std::int64_t i = 0; i < element_count(shape); ++i) {
            const std::string element = shape.empty() ? name : name + '[' + std::to_string(i) + ']';
            add_columns(field.dtype, element.empty() ? field.name : element + '.' + field.name,
                        offset + i * dtype.size() + field.offset, field.shape, columns);
        }
    }
}

/// Common base of the two sinks: the array and its columns.
class ColumnSink : public ArraySink {
public:
    ColumnSink(const ArraySource& source, const std::optional<ElementBytes>& fill,
               const std::optional<Selection>& selection)
        : info_(source.info()), name_(source.name()) {
        // In host order, as the kernels require.
        const DType dtype = info_.dtype;
        if (dtype.kind() == Kind::structure || dtype.order() != ByteOrder::none) {
            info_.dtype = dtype.with_order(native_order);
        }
        info_.access = Access::any;
        info_.shards = Shape();  // nothing is stored, so that blocks need not be whole shards
        if (selection) {
            info_.shape = selection->shape();
            info_.chunks = Shape();
        }
        add_columns(info_.dtype, "", 0, Shape(), columns_);
        if (!fill) return;
        fill_ = NDArray(info_.dtype, {1});
        const VariableSlot slot{reinterpret_cast<const char*>(fill->data()), fill->size()};
        const std::byte* element = dtype.is_variable() ? reinterpret_cast<const std::byte*>(&slot) : fill->data();
        fill_elements(*fill_, dtype, element);
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return name_; }

protected:
    using Summaries = std::vector<std::unique_ptr<ColumnSummary>>;  ///< of each column

    [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }

    [[nodiscard]] Summaries make_summaries(std::size_t bins) const {
        Summaries made;
        for (const Column& column : columns_)
            made.push_back(ColumnSummary::make(column.dtype, bins, info_.marks_missing));
        return made;
    }

    void add_elements(const ArrayView& in, const Summaries& summaries) const {
        for_each_run(in, [&](const std::byte* run, std::int64_t step, std::int64_t n) {
            for (std::size_t c = 0; c < columns_.size(); ++c) {
                const Column& column = columns_[c];
                const std::int64_t items = element_count(column.shape);
                for (std::int64_t k = 0; k < items; ++k) {
                    const std::int64_t at = column.offset + k * column.dtype.size();
                    summaries[c]->add(run + at, step, n, fill_ ? fill_->bytes().data() + at : nullptr);
                }
            }
        });
    }

    static void merge(const Summaries& into, const Summaries& others) {
        for (std::size_t c = 0; c < into.size(); ++c) into[c]->merge(*others[c]);
    }

    [[nodiscard]] std::vector<Statistics> results(const Summaries& totals) const {
        std::vector<Statistics> list;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            list.push_back(totals[c]->result());
            list.back().field = columns_[c].name;
        }
        return list;
    }

private:
    ArrayInfo info_;
    std::string name_;
    std::optional<NDArray> fill_;  ///< the one element
    std::vector<Column> columns_;
};

/// Takes the elements of an array and sums them up, column by column.
class StatisticsSink final : public ColumnSink {
public:
    StatisticsSink(const ArraySource& source, const std::optional<ElementBytes>& fill, int bins,
                   const std::optional<Selection>& selection)
        : ColumnSink(source, fill, selection), bins_(static_cast<std::size_t>(bins)) {}

    void write(const Region& /*region*/, const ArrayView& in, const IoOptions& /*io*/) override {
        Summaries summaries = take_idle();
        add_elements(in, summaries);
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(summaries));
        seen_ += element_count(in.shape);
    }

    /// Adds what copy_array() passed over: elements of absent chunks, doubled until they are as many.
    void add_absent(const ArraySource& source) {
        std::int64_t rest = element_count(info().shape) - seen_;
        if (rest == 0) return;
        NDArray one(info().dtype, Shape{1});
        fill_as_absent(source, one.view());
        Summaries summaries = make_summaries(bins_);
        add_elements(std::as_const(one).view(), summaries);
        idle_.push_back(make_summaries(bins_));
        for (; rest > 0; rest /= 2) {
            if (rest % 2 != 0) merge(idle_.back(), summaries);
            const Summaries half = std::exchange(summaries, make_summaries(bins_));
            merge(summaries, half);
            merge(summaries, half);
        }
    }

    [[nodiscard]] std::vector<Statistics> result() {
        const Summaries totals = take_idle();
        for (const Summaries& others : idle_) merge(totals, others);
        return results(totals);
    }

private:
    /// Takes summaries that no other thread is adding to. As many are made as threads work at once.
    Summaries take_idle() {
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                Summaries last = std::move(idle_.back());
                idle_.pop_back();
                return last;
            }
        }
        return make_summaries(bins_);
    }

    std::size_t bins_;
    std::mutex mutex_;
    std::vector<Summaries> idle_;
    std::int64_t seen_ = 0;
};

/// Summarises each position along an axis. The positions of a block are summarised first and then added to those of the
/// array, so that threads wait for each other only in that step.
class AlongSink final : public ColumnSink {
public:
    AlongSink(const ArraySource& source, int axis, const std::optional<ElementBytes>& fill,
              const std::optional<Selection>& selection)
        : ColumnSink(source, fill, selection), axis_(axis), memory_(memory_needed()) {
        const std::int64_t positions = info().shape[axis];
        for (std::int64_t i = 0; i < positions; ++i) totals_.push_back(make_summaries(0));
    }

    void write(const Region& region, const ArrayView& in, const IoOptions& /*io*/) override {
        Region step = Region::whole(in.shape);
        step.extent[axis_] = 1;
        for (std::int64_t i = 0; i < in.shape[axis_]; ++i) {
            step.start[axis_] = i;
            const Summaries summaries = make_summaries(0);
            add_elements(in.part(step), summaries);
            const std::lock_guard lock(mutex_);
            merge(totals_[static_cast<std::size_t>(region.start[axis_] + i)], summaries);
        }
    }

    [[nodiscard]] std::vector<std::vector<Statistics>> result() const {
        std::vector<std::vector<Statistics>> list;
        for (const Summaries& totals : totals_) list.push_back(results(totals));
        return list;
    }

private:
    /// Memory for the summaries of all positions and for their results, without text.
    [[nodiscard]] std::uint64_t memory_needed() const {
        constexpr std::uint64_t each = 2048;
        return static_cast<std::uint64_t>(info().shape[axis_]) * columns().size() * each;
    }

    int axis_;
    MemoryHold memory_;
    std::mutex mutex_;
    std::vector<Summaries> totals_;
};

}  // namespace

std::vector<Statistics> statistics(const ArraySource& source, const std::optional<ElementBytes>& fill, int bins,
                                   const IoOptions& io, const std::optional<Selection>& selection) {
    if (bins != 0 && bins < 4) throw invalid_argument("at least 4 bins are needed, or 0 for no histogram");
    StatisticsSink sink(source, fill, bins, selection);
    const bool skips = !selection && source.absent_element();
    copy_array(source, sink,
               {.io = io, .selection = selection, .ample = passing_block, .skip_absent = skips, .repeatable = false});
    if (skips) sink.add_absent(source);
    return sink.result();
}

namespace {

/// Adds `n` equal elements, by doubling.
void add_equal(ColumnSummary& total, const std::function<std::unique_ptr<ColumnSummary>()>& make,
               const ElementBytes& element, const std::byte* fill, std::int64_t n) {
    std::unique_ptr<ColumnSummary> some = make();
    some->add(element.data(), std::ssize(element), 1, fill);
    for (; n > 0; n /= 2) {
        if (n % 2 != 0) total.merge(*some);
        const auto half = std::exchange(some, make());
        some->merge(*half);
        some->merge(*half);
    }
}

/// nullopt where elements are to be read in another way; with Entries::only, where of the `stored` elements some are
/// not known.
std::optional<Statistics> indexed_statistics(const ChunkIndex& index, ChunkIndex::Part part, int bins,
                                             const IoOptions& io, std::int64_t stored = 0) {
    const Region region = part.region;
    part.bins = bins > 0;
    const ArrayInfo info = index.elements().info();
    const DType dtype = native_dtype(info.dtype);
    const auto make = [&] { return ColumnSummary::make(dtype, static_cast<std::size_t>(bins), info.marks_missing); };
    const auto total = make();
    if (io.progress != nullptr) io.progress->start(byte_count(region.extent, dtype.size()), "statistics");
    const auto seen = index.for_each_unit(
        part,
        [&](const Region& unit, std::string_view saved) {
            const auto one = make();
            IndexReader from(saved);
            one->load(from, unit.count());
            total->merge(*one);
        },
        io);
    if (!seen || *seen < stored) return std::nullopt;
    if (const std::int64_t rest = region.count() - *seen; rest > 0) {
        const auto absent = index.absent_element();
        if (!absent) return std::nullopt;
        add_equal(*total, make, *absent, index.fill() ? index.fill()->data() : nullptr, rest);
    }
    return total->result();
}

}  // namespace

std::vector<Statistics> statistics(const ArraySource& source, const std::shared_ptr<const ChunkIndex>& index,
                                   IndexUse use, const std::optional<ElementBytes>& fill, int bins, const IoOptions& io,
                                   const std::optional<Selection>& selection) {
    const bool usable = index != nullptr && (bins == 0 || bins == index_bins) &&
                        (!selection || selection->is_region()) && fill == index->elements().fill_bytes();
    try {
        const bool uses = use == IndexUse::use;
        const ChunkIndex::Part part{.region = selection ? selection->bounds() : Region::whole(source.info().shape),
                                    .keep = uses,
                                    .entries = uses ? ChunkIndex::Entries::use : ChunkIndex::Entries::ignore};
        const auto found = usable ? indexed_statistics(*index, part, bins, io) : std::nullopt;
        if (found) return {*found};
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled) throw;  // else reading block by block says what is wrong, or does it
    }
    return statistics(source, fill, bins, io, selection);
}

std::optional<Statistics> known_statistics(const Array& array, const IoOptions& io) {
    const auto index = ChunkIndex::there(array, false);
    if (index == nullptr) return std::nullopt;
    const Region whole = Region::whole(array.shape());
    std::int64_t stored = 0;
    const bool listed = array.visit_stored([&](const Region& chunk) { stored += intersection(chunk, whole).count(); });
    if (!listed) return std::nullopt;
    return indexed_statistics(*index, {.region = whole, .entries = ChunkIndex::Entries::only}, 0, io, stored);
}

std::vector<std::vector<Statistics>> statistics_along(const ArraySource& source, int axis,
                                                      const std::optional<ElementBytes>& fill, const IoOptions& io,
                                                      const std::optional<Selection>& selection) {
    const Shape shape = selection ? selection->shape() : source.info().shape;
    if (axis < -shape.rank() || axis >= shape.rank()) {
        throw out_of_bounds("{}: no axis {}: it has {} dimensions", source.name(), axis, shape.rank());
    }
    AlongSink sink(source, axis < 0 ? axis + shape.rank() : axis, fill, selection);
    copy_array(source, sink, {.io = io, .selection = selection, .ample = passing_block, .repeatable = false});
    return sink.result();
}

}  // namespace tessera
