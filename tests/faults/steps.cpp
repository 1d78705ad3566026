#include "steps.h"

#include <fmt/format.h>
#include <tessera/cached_array.h>
#include <tessera/edit.h>
#include <tessera/snapshot.h>

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
        Step step = next_kind();
        ++made_;
        return step;
    }

private:
    /// From 0 to `most`.
    std::int64_t upto(std::int64_t most) { return static_cast<std::int64_t>(random_() % (most + 1)); }

    Step next_kind() {
        switch (made_ % all_kinds) {
            case 1: {
                before_ = now_;
                Step batch{.kind = Step::Kind::batch};
                for (std::int64_t i = upto(2); i >= 0; --i) batch.parts.push_back(next_single());
                batch.parts.push_back(
                    {.kind = Step::Kind::mark, .first = next_value()});  // so that it changes something
                return batch;
            }
            case 2:
                now_ = before_;
                return {.kind = Step::Kind::undo};
            case 3:
                before_ = now_;
                name_ = fmt::format("s{}", made_);
                return {.kind = Step::Kind::snapshot, .name = name_};
            case 5: {
                Step cached{.kind = Step::Kind::cached, .first = next_value()};
                for (int d = 0; d < 2; ++d) {
                    cached.axes.push_back(slice(now_[d]));
                    cached.axes.back().step = 1;
                }
                return cached;
            }
            case 6:
                now_ = before_;
                return {.kind = Step::Kind::restore, .name = name_};
            case 7:
                return {.kind = Step::Kind::remove, .name = name_};
            default:
                return next_single();
        }
    }

    /// Where the values of a step begin.
    std::int32_t next_value() { return 1000 * ++values_; }

    Step next_single() {
        Step step;
        step.first = next_value();
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
    Shape before_;      ///< the batch or the snapshot
    std::string name_;  ///< of the last snapshot
    int made_ = 0;
    int values_ = 0;
};

/// Block by block, a block being what lies in one stored chunk, so that a chunk that has to leave is complete.
void write_cached(const Step& step, Array& array, const IoOptions& io) {
    const Shape shape = lengths(step.axes);
    const auto values = values_of(step, shape);
    const ArrayView all = view(values, shape);
    const Region region = Selection(step.axes).bounds();
    const ChunkGrid grid(array.shape(), array.metadata().chunks);
    constexpr std::uint64_t five_chunks = std::uint64_t{5} * 6 * 5 * (sizeof(std::int32_t) + 1);
    CachedArray cached(array, five_chunks);
    const Region blocks = grid.overlapping(region);
    for (std::int64_t n = 0; n < blocks.count(); ++n) {
        const Region block = chunk_part(grid, region, blocks, n).in_request;
        Region in_array = block;
        for (int d = 0; d < 2; ++d) in_array.start[d] += region.start[d];
        cached.write(in_array, all.part(block), io);
    }
    cached.flush(io);
}

/// What a step does to the array's elements and attribute.
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
        case Step::Kind::write:
        case Step::Kind::cached: {
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
        default:  // more than the array, or more than one table: see states_after()
            break;
    }
}

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
        case Kind::undo:
            return "undo";
        case Kind::cached:
            return fmt::format("write through a cache [{}] from {}", Selection(axes).to_string(), first);
        case Kind::snapshot:
            return "snapshot " + name;
        case Kind::restore:
            return "restore " + name;
        case Kind::remove:
            return "remove " + name;
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

bool is_atomic(const Step& step) {
    return step.kind == Step::Kind::batch || step.kind == Step::Kind::undo || step.kind == Step::Kind::restore;
}

void apply(const Step& step, Array& array, const Way& way) {
    switch (step.kind) {
        case Step::Kind::batch: {
            Edit edit(array);
            for (const Step& part : step.parts) apply(part, edit.array(), way);
            edit.commit();
            break;
        }
        case Step::Kind::undo:
            undo(array);
            break;
        case Step::Kind::mark:
            array.attributes().set("mark", std::int64_t{step.first});
            break;
        case Step::Kind::resize:
            array.resize(step.shape, way.io);
            break;
        case Step::Kind::append:
            array.append(view(values_of(step, step.shape), step.shape), step.axis, way.io);
            break;
        case Step::Kind::write: {
            const Shape shape = lengths(step.axes);
            array.write(Selection(step.axes), view(values_of(step, shape), shape), way.io);
            break;
        }
        case Step::Kind::cached:
            write_cached(step, array, way.io);
            break;
        case Step::Kind::snapshot:
            create_snapshot(array.name(), step.name, way.store, way.io);
            break;
        case Step::Kind::restore:
            restore_snapshot(array.name(), step.name, way.store, way.io);
            array = Array::open(array.name(), way.store);
            break;
        case Step::Kind::remove:
            remove_snapshot(array.name(), step.name, way.store);
            break;
    }
}

std::vector<State> states_after(const std::vector<Step>& steps) {
    std::vector<State> states{{first_table()}};
    for (const Step& step : steps) {
        State next = states.back();
        switch (step.kind) {
            case Step::Kind::undo:
                next = states[states.size() - 2];
                break;
            case Step::Kind::snapshot:
                next.snapshots[step.name] = next.table;
                break;
            case Step::Kind::restore:
                next.table = next.snapshots.at(step.name);
                break;
            case Step::Kind::remove:
                next.snapshots.erase(step.name);
                break;
            default:
                apply(step, next.table);
        }
        states.push_back(std::move(next));
    }
    return states;
}

Table table_of(const Array& array) {
    const NDArray elements = array.read("", {.threads = 1});
    const auto values = elements.values<std::int32_t>();
    const auto mark = array.attributes().get("mark");
    return {elements.shape(), {values.begin(), values.end()}, mark ? mark->as_int64() : 0};
}

}  // namespace tessera::faults
