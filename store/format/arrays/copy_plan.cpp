#include "copy_plan.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/error_text.h>

namespace tessera {

namespace {

// The cost of a seek, and so of one more run of bytes in a plain file, in bytes read.
constexpr double run_cost = 4096;
constexpr std::int64_t cache_line = 64;

/// Bytes that this side moves for an array of `shape` in blocks of `block`. Chunks are decoded as a whole, so a block
/// that ends inside one causes it to be decoded again. Each run in a plain file costs a seek.
double side_cost(const CopySide& side, const Shape& shape, const Shape& block, double item) {
    const int rank = shape.rank();
    double elements = 1;
    if (!side.plain(rank)) {
        for (int d = 0; d < rank; ++d) {
            const auto n = static_cast<double>(shape[d]);
            const auto c = static_cast<double>(side.chunks[d]);
            const auto blocks = static_cast<double>(ceil_div(shape[d], block[d]));
            const bool aligned = block[d] >= shape[d] || block[d] % side.chunks[d] == 0;
            elements *= aligned ? n : std::min(blocks * (static_cast<double>(block[d]) + c), blocks * n);
        }
        return elements * item;
    }
    double runs = 1;
    bool full = true;
    for (int k = 0; k < rank; ++k) {
        const int d = side.order == Order::C ? rank - 1 - k : k;
        elements *= static_cast<double>(shape[d]);
        // The first divided dimension ends the run; every dimension above repeats it.
        runs *= full ? static_cast<double>(ceil_div(shape[d], block[d])) : static_cast<double>(shape[d]);
        if (full && block[d] < shape[d]) full = false;
    }
    return elements * item + runs * run_cost;
}

std::int64_t chunk_bytes(const CopySide& side, const Shape& shape, std::int64_t item) {
    constexpr std::int64_t plain_scratch = std::int64_t{512} << 10;
    return side.plain(shape.rank()) ? plain_scratch : byte_count(side.chunks, item);
}

/// Memory of a side's codecs in each thread. That of the first thread is not part of the budget.
std::int64_t working_bytes(const CopySide& side, const Shape& shape, std::int64_t item) {
    constexpr std::int64_t most = std::int64_t{4} << 20;
    return side.plain(shape.rank()) ? 0 : std::min(most, 3 * chunk_bytes(side, shape, item));
}

/// The axes of a block in memory, the slowest first: in `order`, but axes along which a chunk has less than a cache
/// line come before the others. Otherwise each chunk would touch every cache line of the block.
Dims memory_axes(Order order, const Shape& block, const CopySide& source, const CopySide& sink, std::int64_t item) {
    const int rank = block.rank();
    const auto thin = [&](int d) {
        const auto cuts = [&](const CopySide& side) {
            return !side.plain(rank) && side.chunks[d] < block[d] && side.chunks[d] * item < cache_line;
        };
        return cuts(source) || cuts(sink);
    };
    Dims axes;
    for (const bool wanted : {true, false}) {
        for (int k = 0; k < rank; ++k) {
            const int d = order == Order::C ? k : rank - 1 - k;
            if (thin(d) == wanted) axes.push_back(d);
        }
    }
    return axes;
}

/// For a side that needs memory order: full lengths of the fast dimensions, as much of the next as fits, 1 above.
Shape ordered_block(const Shape& shape, const Shape& unit, Order order, std::int64_t item, std::int64_t limit) {
    const int rank = shape.rank();
    Shape block = Shape::filled(rank, 1);
    std::int64_t bytes = item;
    for (int k = 0; k < rank; ++k) {
        const int d = order == Order::C ? rank - 1 - k : k;
        const std::int64_t fits = std::max<std::int64_t>(1, limit / std::max<std::int64_t>(bytes, 1));
        if (fits >= shape[d]) {
            block[d] = std::max<std::int64_t>(shape[d], 1);
            bytes *= block[d];
            continue;
        }
        // Whole chunks of the other side if they fit, so that none is decoded twice.
        block[d] = fits >= unit[d] ? fits / unit[d] * unit[d] : fits;
        break;
    }
    return block;
}

/// What a plan is made from, and what each thread takes.
struct Planned {
    const Shape& shape;
    std::int64_t item = 0;
    const CopySide& source;
    const CopySide& sink;
    std::int64_t share = 1;       ///< one of so many parts of the budget is this copy's
    std::int64_t memory = 0;      ///< that part
    std::int64_t per_thread = 0;  ///< bytes of each thread besides the block
    std::int64_t working = 0;     ///< of them those of codecs, which the first thread has outside of the budget

    [[nodiscard]] std::int64_t bytes(const Shape& block) const { return byte_count(block, item); }
    /// Bytes that both sides move.
    [[nodiscard]] double cost(const Shape& block) const {
        return side_cost(source, shape, block, static_cast<double>(item)) +
               side_cost(sink, shape, block, static_cast<double>(item));
    }
    [[nodiscard]] std::int64_t spare(const CopyPlan& plan, const Shape& block) const {
        const std::int64_t blocks = plan.each ? plan.threads : 1;
        const std::int64_t taken = checked_add(checked_multiply(blocks, bytes(block), "memory"),
                                               checked_multiply(plan.threads, per_thread, "memory"), "memory");
        return std::max<std::int64_t>(0, memory - taken);
    }
};

std::int64_t memory_given(const CopyOptions& options) {
    const std::uint64_t given = options.io.max_memory == 0 ? default_copy_memory : options.io.max_memory;
    return static_cast<std::int64_t>(std::min<std::uint64_t>(given, INT64_MAX));
}

/// What the sink writes as a whole, else the source's chunks, as far as they lie in the shape.
Shape whole_unit(const Shape& shape, const CopySide& source, const CopySide& sink) {
    const int rank = shape.rank();
    Shape unit = Shape::filled(rank, 1);
    if (!sink.plain(rank)) {
        unit = sink.unit();
    } else if (!source.plain(rank)) {
        unit = source.chunks;
    }
    for (int d = 0; d < rank; ++d) unit[d] = std::max<std::int64_t>(1, std::min(unit[d], shape[d]));
    return unit;
}

Planned planned(const Shape& shape, std::int64_t item, const CopySide& source, const CopySide& sink,
                const CopyOptions& options) {
    Planned p{.shape = shape, .item = item, .source = source, .sink = sink};
    // A chunk of the source, decoded and encoded; a chunk of the sink, assembled at the edge, encoded, and its old
    // value.
    p.per_thread = checked_add(checked_add(checked_multiply(2, chunk_bytes(source, shape, item), "memory"),
                                           checked_multiply(3, chunk_bytes(sink, shape, item), "memory"), "memory"),
                               source.working, "memory");
    p.working = working_bytes(source, shape, item) + working_bytes(sink, shape, item);
    // A source that computes has half of the memory, unless one chunk needs more.
    const std::int64_t held = options.held;
    p.share = held * (source.working != 0 ? 2 : 1);
    const std::int64_t least = checked_add(p.bytes(whole_unit(shape, source, sink)), p.per_thread, "memory");
    if (least > memory_given(options) / p.share) p.share = held;
    p.memory = memory_given(options) / p.share;
    return p;
}

/// The unit that blocks are multiples of.
Shape unit_of(const Planned& p) {
    const int rank = p.shape.rank();
    Shape unit = whole_unit(p.shape, p.source, p.sink);
    if (!p.sink.plain(rank)) return unit;
    // Small blocks do not slow down a plain sink, so a source's chunk may be divided to meet the budget.
    const std::int64_t most = std::max(p.item, std::min(p.memory / 2, p.memory - p.per_thread));
    while (p.bytes(unit) > most) {
        std::int64_t& longest = *std::max_element(unit.begin(), unit.end());
        if (longest == 1) break;
        longest = ceil_div(longest, 2);
    }
    return unit;
}

[[noreturn]] void throw_too_little(const Planned& p, std::int64_t least, const CopyOptions& options) {
    const std::int64_t needed = checked_multiply(least, p.share, "memory");
    throw over_budget(
        "a memory budget of {} bytes is too small: one chunk and what it takes to decode and encode it need {} bytes",
        memory_given(options), needed)
        .advising(Action::max_memory, "", fmt::format("{}M", ceil_div(needed, mebibyte)));
}

/// Chooses the threads, and returns how long a block may be.
std::int64_t choose_threads(CopyPlan& plan, const Planned& p, std::int64_t least, const IoOptions& io) {
    // With a block for each thread, one thread reads while another writes; a file that serialises access prevents that.
    // If regions must come in order, all threads work on one block.
    plan.each = !p.sink.in_order && !p.source.in_order && !p.sink.in_turn;
    const std::int64_t unit = p.bytes(plan.unit);
    const std::int64_t fit = plan.each ? (p.memory + p.working) / (least + p.working)
                                       : (p.memory - unit + p.working) / (p.per_thread + p.working);
    plan.threads = static_cast<int>(std::clamp<std::int64_t>(fit, 1, thread_count(io)));
    const std::int64_t two = plan.each ? 2 * least + p.working : 2 * p.per_thread + p.working + unit;
    plan.for_two = checked_multiply(two, p.share, "memory");
    const std::int64_t others = (plan.threads - 1) * p.working;
    return plan.each ? (p.memory - others) / plan.threads - p.per_thread
                     : p.memory - others - plan.threads * p.per_thread;
}

/// Where one side needs memory order.
void plan_in_order(CopyPlan& plan, const Planned& p, std::int64_t limit) {
    const int rank = p.shape.rank();
    plan.block_order = p.sink.in_order ? p.sink.order : p.source.order;
    const Shape block = ordered_block(p.shape, plan.unit, plan.block_order, p.item, limit);
    bool fits_sink = true;
    for (int d = 0; d < rank; ++d) {
        fits_sink = fits_sink && (block[d] == p.shape[d] || block[d] % plan.unit[d] == 0);
    }
    // Chunks of the sink are written once, so an in-order source must supply them whole. Otherwise it would be read
    // again from its start for every row of chunks.
    plan.spool = !p.sink.in_order && !fits_sink;
    if (plan.spool) return;
    plan.block = block;
    plan.spare = p.spare(plan, block);
    plan.axes = memory_axes(plan.block_order, block, p.source, p.sink, p.item);
    const auto all = static_cast<double>(p.bytes(p.shape));
    const bool against_the_grain = p.source.in_order && p.sink.in_order && p.source.order != p.sink.order && rank > 1;
    plan.spool = against_the_grain ||
                 (!p.source.plain(rank) && side_cost(p.source, p.shape, block, static_cast<double>(p.item)) > 2 * all);
}

/// The block twice as long in the dimension where this costs least, within `limit` bytes; nullopt where none fits.
std::optional<Shape> longer_block(const Shape& block, const Shape& unit, const Planned& p, std::int64_t limit) {
    std::optional<Shape> best;
    double best_cost = 0;
    for (int d = 0; d < p.shape.rank(); ++d) {
        Shape b = block;
        b[d] = std::min(p.shape[d], b[d] * 2);
        if (const std::int64_t bytes = p.bytes(b); bytes > limit) {
            b[d] = limit / (bytes / b[d]) / unit[d] * unit[d];  // less than twice as long, as long as fits
        }
        if (b[d] <= block[d]) continue;
        if (const double c = p.cost(b); !best || c < best_cost) {
            best = b;
            best_cost = c;
        }
    }
    return best;
}

/// A block that costs little: it grows from the unit while that makes the copy cheaper, or while it is not ample.
Shape cheap_block(const CopyPlan& plan, const Planned& p, std::int64_t limit, std::int64_t enough) {
    // Enough blocks for all threads, none larger than useful.
    const std::int64_t ample =
        std::max(p.bytes(plan.unit), std::min({limit / 2, enough, p.bytes(p.shape) / (4 * plan.threads)}));
    Shape block = plan.unit;
    for (double now = p.cost(block);;) {
        const auto best = longer_block(block, plan.unit, p, limit);
        if (!best) return block;
        const double cost = p.cost(*best);
        if (cost > 0.99 * now && p.bytes(block) >= ample) return block;
        block = *best;
        now = cost;
    }
}

}  // namespace

CopySide side_of(const ArrayInfo& info) {
    return {.chunks = info.chunks,
            .shards = info.shards,
            .order = info.order,
            .in_order = info.access != Access::any,
            .working = info.working};
}

CopyPlan make_copy_plan(const Shape& shape, std::int64_t item, const CopySide& source, const CopySide& sink,
                        const CopyOptions& options) {
    const int rank = shape.rank();
    const Planned p = planned(shape, item, source, sink, options);
    const Shape unit = unit_of(p);
    const std::int64_t least = checked_add(p.bytes(unit), p.per_thread, "memory");
    if (least > p.memory && !sink.shards.empty()) {
        return {.block = unit, .unit = unit, .axes = {}, .spool = source.in_order, .shards = true};
    }
    if (least > p.memory) throw_too_little(p, least, options);
    CopyPlan plan{.block = {}, .unit = unit, .axes = {}, .sink_in_order = sink.in_order};
    const std::int64_t limit = choose_threads(plan, p, least, options.io);
    if (sink.in_order || source.in_order) {
        plan_in_order(plan, p, limit);
        return plan;
    }
    plan.block = cheap_block(plan, p, limit, options.ample);
    plan.spare = p.spare(plan, plan.block);
    const Order order = source.plain(rank) ? source.order : (sink.plain(rank) ? sink.order : Order::C);
    plan.axes = memory_axes(order, plan.block, source, sink, item);
    return plan;
}

}  // namespace tessera
