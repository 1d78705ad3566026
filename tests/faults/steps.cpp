#include "steps.h"

#include <fmt/format.h>
#include <tessera/edit.h>

#include <algorithm>
#include <random>

namespace tessera::faults {

namespace {

/// The values of a write or an append, in C order.
std::vector<std::int32_t> values_of(const Step& step, const Shape& shape) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(element_count(shape)), fill_value);
    if (step.first != fill_value) std::ranges::generate(values, [v = step.first]() mutable { return v++; });
    return values;
}

Shape lengths(const std::vector<Selection::Axis>& axes) {
    Shape shape;
    for (const auto& axis : axes) shape.push_back(axis.count);
    return shape;
}

/// A table of this shape with the values of `table` where both are, and the fill elsewhere.
Table reshaped(const Table& table, const Shape& shape) {
    Table result{shape, std::vector(static_cast<std::size_t>(element_count(shape)), fill_value), table.mark};
    for (std::int64_t r = 0; r < std::min(shape[0], table.shape[0]); ++r) {
        for (std::int64_t c = 0; c < std::min(shape[1], table.shape[1]); ++c) result.at(r, c) = table.at(r, c);
    }
    return result;
}

class StepMaker {
public:
    explicit StepMaker(unsigned seed) : random_(seed) {}

    Step next() {
        // Seven of ten alone; the others begin a batch, of two to four.
        if (upto(9) < 7) return next_single();
        Step batch{.kind = Step::Kind::batch, .axes = {}, .shape = {}};
        const std::int64_t count = 2 + upto(2);
        for (std::int64_t i = 0; i < count; ++i) batch.parts.push_back(next_single());
        return batch;
    }

private:
    /// From 0 to `most`.
    std::int64_t upto(std::int64_t most) { return static_cast<std::int64_t>(random_() % (most + 1)); }

    Step next_single() {
        Step step;
        step.first = 1000 * ++made_;
        const std::int64_t choice = upto(9);
        step.axis = static_cast<int>(upto(1));
        if (choice == 0) {
            step.kind = Step::Kind::mark;
        } else if (choice <= 2) {
            step.kind = Step::Kind::resize;
            step.shape = {shortest + upto(longest - shortest), shortest + upto(longest - shortest)};
            now_ = step.shape;
        } else if (choice <= 4 && now_[step.axis] < longest) {
            step.kind = Step::Kind::append;
            step.shape = now_;
            step.shape[step.axis] = 1 + upto(8);
            now_[step.axis] += step.shape[step.axis];
        } else {
            for (int d = 0; d < 2; ++d)
                step.axes.push_back(choice == 9 ? Selection::Axis{0, 1, now_[d]} : slice(now_[d]));
            if (upto(3) == 0) step.first = fill_value;
        }
        return step;
    }

    /// Every fourth one has gaps.
    Selection::Axis slice(std::int64_t length) {
        Selection::Axis axis;
        axis.start = upto(length - 1);
        axis.step = 1 + upto(3) / 3;
        axis.count = 1 + upto((length - 1 - axis.start) / axis.step);
        return axis;
    }

    static constexpr std::int64_t shortest = 4;
    static constexpr std::int64_t longest = 30;
    std::mt19937 random_;
    Shape now_ = first_table().shape;
    int made_ = 0;
};

}  // namespace

std::string Step::to_string() const {
    switch (kind) {
        case Kind::write:
            return fmt::format("write [{}] from {}", Selection(axes).to_string(), first);
        case Kind::append:
            return fmt::format("append {} along {} from {}", shape.to_string(), axis, first);
        case Kind::resize:
            return fmt::format("resize to {}", shape.to_string());
        case Kind::mark:
            return fmt::format("mark {}", first);
        case Kind::batch:
            break;
    }
    std::string text = "batch:";
    for (const Step& part : parts) text += ' ' + part.to_string() + ';';
    return text;
}

std::vector<Step> make_steps(unsigned seed, int count) {
    StepMaker maker(seed);
    std::vector<Step> steps;
    for (int i = 0; i < count; ++i) steps.push_back(maker.next());
    return steps;
}

Table first_table() {
    Table table{{20, 14}, std::vector<std::int32_t>(280), 0};
    std::ranges::generate(table.values, [v = 100]() mutable { return v++; });
    return table;
}

void create_first(const std::filesystem::path& path, const std::string& layout) {
    const Table table = first_table();
    ArrayOptions options{.shape = table.shape,
                         .chunks = {6, 5},
                         .dtype = DType::of<std::int32_t>(),
                         .fill_value = Value(std::int64_t{fill_value}),
                         .format = layout == "sharded" ? "v3" : layout};
    if (layout == "sharded") options.shards = {12, 10};
    options.attributes.set("mark", std::int64_t{0});
    Array array = Array::create(path, options, {.durability = Durability::none});
    array.write("", view(table.values, table.shape), {.threads = 1});
}

void apply(const Step& step, Table& table) {
    switch (step.kind) {
        case Step::Kind::batch:
            for (const Step& part : step.parts) apply(part, table);
            break;
        case Step::Kind::mark:
            table.mark = step.first;
            break;
        case Step::Kind::resize:
            table = reshaped(table, step.shape);
            break;
        case Step::Kind::append: {
            Shape shape = table.shape;
            Shape place = {0, 0};
            place[step.axis] = shape[step.axis];
            shape[step.axis] += step.shape[step.axis];
            table = reshaped(table, shape);
            const auto values = values_of(step, step.shape);
            for (std::int64_t r = 0, n = 0; r < step.shape[0]; ++r) {
                for (std::int64_t c = 0; c < step.shape[1]; ++c) {
                    table.at(place[0] + r, place[1] + c) = values[static_cast<std::size_t>(n++)];
                }
            }
            break;
        }
        case Step::Kind::write: {
            const auto values = values_of(step, lengths(step.axes));
            const auto& [rows, columns] = std::pair(step.axes[0], step.axes[1]);
            for (std::int64_t r = 0, n = 0; r < rows.count; ++r) {
                for (std::int64_t c = 0; c < columns.count; ++c) {
                    table.at(rows.start + r * rows.step, columns.start + c * columns.step) =
                        values[static_cast<std::size_t>(n++)];
                }
            }
            break;
        }
    }
}

void apply(const Step& step, Array& array, const IoOptions& io) {
    switch (step.kind) {
        case Step::Kind::batch: {
            Edit edit(array);
            for (const Step& part : step.parts) apply(part, edit.array(), io);
            edit.commit();
            break;
        }
        case Step::Kind::mark:
            array.attributes().set("mark", std::int64_t{step.first});
            break;
        case Step::Kind::resize:
            array.resize(step.shape, io);
            break;
        case Step::Kind::append:
            array.append(view(values_of(step, step.shape), step.shape), step.axis, io);
            break;
        case Step::Kind::write: {
            const Shape shape = lengths(step.axes);
            array.write(Selection(step.axes), view(values_of(step, shape), shape), io);
            break;
        }
    }
}

std::vector<Table> tables_after(const std::vector<Step>& steps) {
    std::vector<Table> tables{first_table()};
    for (const Step& step : steps) {
        tables.push_back(tables.back());
        apply(step, tables.back());
    }
    return tables;
}

Table table_of(const Array& array) {
    const NDArray elements = array.read("", {.threads = 1});
    const auto values = elements.values<std::int32_t>();
    const auto mark = array.attributes().get("mark");
    return {elements.shape(), {values.begin(), values.end()}, mark ? mark->as_int64() : 0};
}

}  // namespace tessera::faults
