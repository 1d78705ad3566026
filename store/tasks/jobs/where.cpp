#include <tessera/where.h>

#include <fmt/format.h>
#include <tessera/calc.h>
#include <tessera/copy_elements.h>
#include <tessera/counted.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/parallel.h>
#include <tessera/shared_source.h>
#include <tessera/slices.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

namespace {

/// An expression with spaces in place of what stands between quotes.
std::string without_text(std::string_view expression) {
    std::string left(expression);
    char quote = 0;
    for (char& c : left) {
        if (quote == 0 && (c == '\'' || c == '"')) {
            quote = c;
        } else if (quote != 0) {
            if (c == quote) quote = 0;
            c = ' ';
        }
    }
    return left;
}

/// Whether an expression names an operand: the name stands in it as a word of its own.
bool names_operand(std::string_view expression, std::string_view name) {
    const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    for (std::size_t at = expression.find(name); at != std::string_view::npos; at = expression.find(name, at + 1)) {
        const bool begins = at == 0 || !in_word(expression[at - 1]);
        const std::size_t end = at + name.size();
        if (begins && (end == expression.size() || !in_word(expression[end]))) return true;
    }
    return false;
}

using MaskOf = std::function<std::unique_ptr<ArraySource>(const std::shared_ptr<const ArraySource>& rows)>;

/// The numbers of the rows in a slice of the table of which `mask_of`, of the Boolean dtype `found`, is true.
CountedVector<std::int64_t> rows_in(const ArraySource& table, const Region& slice, const MaskOf& mask_of,
                                    const DType& found, const IoOptions& io) {
    NDArray elements(table.info().dtype, slice.extent);
    table.read_into(slice, elements.view(), io);
    NDArray holds(found, slice.extent);
    mask_of(view_source(elements.view(), table.name()))->read_into(Region::whole(slice.extent), holds.view(), io);
    CountedVector<std::int64_t> rows;
    const std::byte* const p = holds.bytes().data();
    for (std::int64_t i = 0; i < slice.extent[0]; ++i) {
        if (p[i] != std::byte{0}) rows.push_back(slice.start[0] + i);
    }
    return rows;
}

/// The numbers of the rows for which the condition holds.
CountedVector<std::int64_t> matching_rows(const std::shared_ptr<const ArraySource>& table, std::string_view condition,
                                          const IoOptions& io) {
    const ArrayInfo info = table->info();
    if (info.dtype.kind() != Kind::structure || info.shape.rank() != 1) {
        throw invalid_argument(
            "{}: a condition picks rows of a table, which has fields and one dimension, but this is {} "
            "of shape {}",
            table->name(), info.dtype.to_string(), info.shape.to_string());
    }
    const std::string names = without_text(condition);
    // The rows of a slice are read once, whatever the number of fields that the condition names. They have no mean.
    const MaskOf mask_of = [&](const std::shared_ptr<const ArraySource>& some) {
        std::vector<CalcOperand> operands;
        for (const Field& field : info.dtype.fields()) {
            if (field.unnamed || !field.shape.empty() || !names_operand(names, field.name)) continue;
            operands.push_back({field.name, field_source(shared_source(some), field.name)});
        }
        return calc_source(condition, std::move(operands), some->info().shape, 0);
    };
    const DType found = mask_of(table)->info().dtype;
    if (found.kind() != Kind::boolean) {
        throw invalid_argument("{}: the condition '{}' is {}, but has to be true or false for each row", table->name(),
                               condition, found.to_string());
    }
    std::vector<Region> slices;
    for_each_slice(info, info.dtype.size(), Region::whole(info.shape), io.stop,
                   [&](const Region& slice) { slices.push_back(slice); });
    std::vector<CountedVector<std::int64_t>> matches(slices.size());
    IoOptions order = io;
    if (info.access != Access::any) order.threads = 1;
    parallel_in_memory(std::ssize(slices), order, [&](std::int64_t n) {
        const auto at = static_cast<std::size_t>(n);
        matches[at] = rows_in(*table, slices[at], mask_of, found, io);
    });
    CountedVector<std::int64_t> rows;
    for (CountedVector<std::int64_t>& some : matches) {
        rows.insert(rows.end(), some.begin(), some.end());
        some = {};
    }
    return rows;
}

class WhereSource final : public ArraySource {
public:
    WhereSource(std::shared_ptr<const ArraySource> table, std::string_view condition, const IoOptions& io)
        : table_(std::move(table)),
          from_(table_->info()),
          rows_(matching_rows(table_, condition, io)),
          name_(fmt::format("{} where {}", table_->name(), condition)) {}

    [[nodiscard]] ArrayInfo info() const override {
        ArrayInfo info{.dtype = from_.dtype, .shape = {std::ssize(rows_)}, .chunks = {}};
        info.working = from_.working + slice_memory(from_, from_.dtype.size());
        info.access = from_.access;
        return info;
    }
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] Value attribute_values() const override { return table_->attribute_values(); }

    /// Reads the table from the first to the last of the rows, in slices, without those that hold none of them.
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, {std::ssize(rows_)});
        if (region.empty()) return;
        const auto begin = rows_.begin() + region.start[0];
        const auto end = begin + region.extent[0];
        auto next = begin;
        const Region span{{*begin}, {*(end - 1) - *begin + 1}};
        for_each_slice(from_, from_.dtype.size(), span, io.stop, [&](const Region& slice) {
            const std::int64_t after = slice.start[0] + slice.extent[0];
            if (next == end || *next >= after) return;
            NDArray elements(from_.dtype, slice.extent);
            table_->read_into(slice, elements.view(), io);
            while (next != end && *next < after) {
                // Neighbours are copied together.
                auto last = next + 1;
                while (last != end && *last == *(last - 1) + 1 && *last < after) ++last;
                const std::int64_t count = last - next;
                copy_elements(ArrayView(elements.view()).part({{*next - slice.start[0]}, {count}}),
                              out.part({{next - begin}, {count}}));
                next = last;
            }
        });
    }

private:
    std::shared_ptr<const ArraySource> table_;
    ArrayInfo from_;
    CountedVector<std::int64_t> rows_;
    std::string name_;
};

}  // namespace

std::unique_ptr<ArraySource> where_source(std::unique_ptr<ArraySource> table, std::string_view condition,
                                          const IoOptions& io) {
    return std::make_unique<WhereSource>(std::move(table), condition, io);
}

}  // namespace tessera
