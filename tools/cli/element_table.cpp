#include "element_table.h"

#include <fmt/format.h>

#include <tessera/element.h>
#include <tessera/memory_account.h>
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "blocks.h"
#include "report.h"

namespace tessera::cli {

namespace {

constexpr std::size_t widest = 32;      ///< characters of one column
constexpr std::int64_t most_items = 4;  ///< of a field that is an array
constexpr int other_lines = 4;          ///< beside the rows: title, names, what is left out, prompt

struct Column {
    std::string name;
    std::vector<std::string> cells;
    std::size_t width = 0;
    bool number = false;
};

std::size_t characters_in(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string cut_text(const std::string& text) {
    if (characters_in(text) <= widest) return text;
    std::size_t end = 0;
    for (std::size_t n = 0; end < text.size(); ++end) {
        if ((static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U && n++ == widest - 1) break;
    }
    return text.substr(0, end) + "…";
}

/// An element on one line.
std::string cell_text(const DType& dtype, const std::byte* p) {
    if (dtype.is_variable()) require_memory(text_memory(reinterpret_cast<const VariableSlot*>(p)->view()));
    std::string text = element_to_text(dtype, p);
    // More is not shown, and would take long to make printable.
    constexpr std::size_t enough = 16 * widest;
    if (text.size() > enough) text.resize(enough);
    return cut_text(printable(text));
}

std::string field_text(const Field& field, const std::byte* element) {
    const std::byte* p = element + field.offset;
    if (field.shape.empty()) return cell_text(field.dtype, p);
    const std::int64_t items = element_count(field.shape);
    std::string text = "[";
    for (std::int64_t k = 0; k < std::min(items, most_items); ++k) {
        text += (k == 0 ? "" : " ") + cell_text(field.dtype, p + k * field.dtype.size());
    }
    return text + (items > most_items ? " …]" : "]");
}

bool is_aligned_right(const DType& dtype) {
    return dtype.kind() == Kind::boolean || dtype.kind() == Kind::integer || dtype.kind() == Kind::unsigned_integer ||
           dtype.kind() == Kind::real || dtype.kind() == Kind::complex || dtype.kind() == Kind::bfloat16;
}

/// The dimensions that are shown: rows and, except for structures, columns.
std::vector<std::size_t> shown_dimensions(std::vector<Selection::Axis>& axes, bool structures) {
    std::vector<std::size_t> shown;
    for (std::size_t d = 0; d < axes.size(); ++d) {
        if (!axes[d].dropped) shown.push_back(d);
    }
    const std::size_t most = structures ? 1 : 2;
    while (shown.size() > most) {
        Selection::Axis& axis = axes[shown.front()];
        axis = {axis.start + axis.step * (axis.count / 2), 1, std::min<std::int64_t>(axis.count, 1), true};
        shown.erase(shown.begin());
    }
    return shown;
}

/// Builds the columns, row by row.
class Table {
public:
    Table(const DType& dtype, const Selection::Axis* across, std::int64_t shown_across) {
        columns_.push_back({.name = "", .cells = {}, .number = true});  // the indices
        if (dtype.kind() == Kind::structure) {
            for (const Field& field : dtype.fields()) {
                if (field.unnamed) continue;
                fields_.push_back(&field);
                columns_.push_back({.name = cut_text(printable(field.name)),
                                    .cells = {},
                                    .number = field.shape.empty() && is_aligned_right(field.dtype)});
            }
            return;
        }
        for (std::int64_t k = 0; k < shown_across; ++k) {
            columns_.push_back(
                {.name = across == nullptr ? dtype.to_string() : std::to_string(across->start + k * across->step),
                 .cells = {},
                 .number = is_aligned_right(dtype)});
        }
    }

    void add_row(std::int64_t index, const DType& dtype, const std::byte* elements) {
        columns_[0].cells.push_back(std::to_string(index));
        if (fields_.empty()) {
            for (std::size_t k = 1; k < columns_.size(); ++k, elements += dtype.size()) {
                columns_[k].cells.push_back(cell_text(dtype, elements));
            }
        }
        for (std::size_t k = 0; k < fields_.size(); ++k) {
            columns_[k + 1].cells.push_back(field_text(*fields_[k], elements));
        }
    }
    void add_gap() {
        for (Column& column : columns_) column.cells.emplace_back("…");
    }

    /// The table, with as many columns as there is room for.
    [[nodiscard]] std::string text(std::size_t room, std::int64_t columns_left_out) {
        std::size_t used = 0;
        std::size_t fitting = 0;
        for (Column& column : columns_) {
            column.width = characters_in(column.name);
            for (const std::string& cell : column.cells) column.width = std::max(column.width, characters_in(cell));
            used += column.width + 2;
            if (used > room + 2 && fitting >= 2) break;
            ++fitting;
        }
        std::string text;
        const auto put_line = [&](const auto& cell_of) {
            std::string line;
            for (std::size_t k = 0; k < fitting; ++k) {
                const std::string& cell = cell_of(columns_[k]);
                const std::string pad(columns_[k].width - characters_in(cell), ' ');
                line += (k == 0 ? "" : "  ") + (columns_[k].number ? pad + cell : cell + pad);
            }
            text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        };
        put_line([](const Column& column) -> const std::string& { return column.name; });
        for (std::size_t i = 0; i < columns_[0].cells.size(); ++i) {
            put_line([i](const Column& column) -> const std::string& { return column.cells[i]; });
        }
        columns_left_out += std::ssize(columns_) - static_cast<std::int64_t>(fitting);
        if (columns_left_out > 0) text += fmt::format("{} more not shown\n", count_text(columns_left_out, "column"));
        return text;
    }

private:
    std::vector<const Field*> fields_;
    std::vector<Column> columns_;
};

}  // namespace

std::string element_table(const ArraySource& source, const Selection& selection, const TableRoom& room,
                          const IoOptions& io) {
    const DType dtype = source.info().dtype;
    std::vector<Selection::Axis> axes = selection.axes();
    const std::vector<std::size_t> shown = shown_dimensions(axes, dtype.kind() == Kind::structure);
    const std::string title = fmt::format("{} [{}] {}\n", printable(source.name()), Selection(axes).to_string(),
                                          dtype.kind() == Kind::structure ? "structures" : dtype.to_string());
    const Selection::Axis one{0, 1, 1};
    const Selection::Axis down = shown.empty() ? one : axes[shown[0]];
    if (element_count(Selection(axes).shape()) == 0) return title + "nothing is selected\n";

    // A column takes two characters and a gap at the least.
    constexpr int least_width = 3;
    const bool wide = shown.size() == 2;
    const std::int64_t across = wide ? std::min<std::int64_t>(axes[shown[1]].count, room.columns / least_width + 1) : 1;
    Table table(dtype, wide ? &axes[shown[1]] : nullptr, across);
    const auto add_rows = [&](std::int64_t first, std::int64_t n) {
        if (n == 0) return;
        std::vector<Selection::Axis> part = axes;
        if (!shown.empty()) part[shown[0]] = {down.start + first * down.step, down.step, n};
        if (wide) part[shown[1]].count = across;
        const NDArray elements = read_selection(source, Selection(part), io);
        const std::byte* p = elements.bytes().data();
        for (std::int64_t i = 0; i < n; ++i, p += across * dtype.size()) {
            table.add_row(down.start + (first + i) * down.step, elements.dtype(), p);
        }
    };
    const std::int64_t lines = std::max(2, room.lines - other_lines);
    if (down.count <= lines) {
        add_rows(0, down.count);
    } else {
        add_rows(0, lines - lines / 3 - 1);
        table.add_gap();
        add_rows(down.count - lines / 3, lines / 3);
    }
    return title + table.text(static_cast<std::size_t>(room.columns), wide ? axes[shown[1]].count - across : 0);
}

}  // namespace tessera::cli
