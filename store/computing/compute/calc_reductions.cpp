#include "calc_reductions.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <tessera/apart.h>
#include <tessera/caller.h>
#include <tessera/copy_array.h>
#include <tessera/copy_elements.h>
#include <tessera/derived_source.h>
#include <tessera/dialect.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/parallel.h>
#include <tessera/reduce.h>
#include <tessera/shared_source.h>

#include "calc_program.h"
#include "reduced_array.h"

namespace tessera {

namespace {

/// The result of a reduction, which is computed when it is first read and kept from then on. With groups it has the
/// length of the axis that was grouped: each index reads as its group.
class KeptReduction final : public ArraySource {
public:
    /// `memory`: the bytes up to which it is kept in memory, and in a temporary file else.
    /// `like` has the dimensions, and their coordinates.
    KeptReduction(std::unique_ptr<ArraySource> reduced, std::shared_ptr<const ArraySource> like,
                  std::shared_ptr<const Grouping> groups, std::int64_t memory, std::string name)
        : reduced_(std::move(reduced)),
          like_(std::move(like)),
          groups_(std::move(groups)),
          memory_(memory),
          name_(std::move(name)),
          from_(reduced_->info()) {
        info_ = {.dtype = from_.dtype, .shape = from_.shape, .chunks = {}};
        if (!groups_) return;
        info_.shape[groups_->axis] = std::ssize(groups_->of);
        const bool lacks = std::ranges::count(groups_->of, -1) > 0;
        if (lacks && info_.dtype.kind() != Kind::real) {
            throw invalid_argument("{}: some of its indices are in no group, of which nothing of {} is the result",
                                   name_, info_.dtype.to_string());
        }
    }
    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] const ArraySource* converted_from() const override { return like_.get(); }
    [[nodiscard]] Value attribute_values() const override {
        const DimensionNames names = dimension_names_of(*like_);
        Value attributes = Value::object();
        if (!names.empty()) attributes.set(dimensions_attribute, dimension_names_json(names));
        return attributes;
    }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        const ArraySource& kept = computed(io);
        if (!groups_) return kept.read_into(region, out, io);
        const int axis = groups_->axis;
        Region one = region, place = Region::whole(region.extent);
        one.extent[axis] = place.extent[axis] = 1;
        for (std::int64_t i = 0; i < region.extent[axis]; ++i) {
            place.start[axis] = i;
            one.start[axis] = groups_->of[static_cast<std::size_t>(region.start[axis] + i)];
            if (one.start[axis] >= 0) {
                kept.read_into(one, out.part(place), io);
            } else {
                set_missing(out.part(place));
            }
        }
    }

private:
    const ArraySource& computed(const IoOptions& io) const {
        lock_or_stop(mutex_);
        const std::lock_guard lock(mutex_, std::adopt_lock);
        if (kept_) return *kept_;
        // Other blocks wait for it, so that their threads are free; they hold half of the memory.
        IoOptions own{.threads = io.threads, .stop = io.stop, .progress = nullptr, .max_memory = io.max_memory / 2};
        outside_of_jobs([&] {
            try {
                compute(own);
            } catch (const Error& e) {
                if (e.code() != ErrorCode::budget || own.max_memory == 0) throw;
                own.max_memory = io.max_memory;
                compute(own);
            }
        });
        return *kept_;
    }

    void compute(const IoOptions& io) const {
        if (byte_count(from_.shape, from_.dtype.size()) > memory_) {
            kept_ = spooled(*reduced_, {.io = io});
            return;
        }
        elements_ = NDArray(from_.dtype, from_.shape);
        reduced_->read_into(Region::whole(from_.shape), elements_.view(), io);
        kept_ = view_source(elements_.view(), name_);
    }

    void set_missing(const MutableArrayView& out) const {
        NDArray one(DType::of<double>(), Shape::filled(out.shape.rank(), 1));
        one.values<double>()[0] = std::numeric_limits<double>::quiet_NaN();
        const NDArray missing = cast_elements(one.view(), from_.dtype, Cast::unsafe);
        ArrayView view = missing.view();
        view.shape = out.shape;
        view.strides = Strides::filled(out.shape.rank(), 0);
        copy_elements(view, out);
    }

    std::unique_ptr<ArraySource> reduced_;
    std::shared_ptr<const ArraySource> like_;
    std::shared_ptr<const Grouping> groups_;
    std::int64_t memory_;
    std::string name_;
    ArrayInfo from_, info_;
    mutable std::timed_mutex mutex_;
    mutable NDArray elements_;
    mutable std::unique_ptr<ArraySource> kept_;
};

/// The argument of a call: what is reduced, and the array by whose dimensions it is.
struct Reduced {
    std::unique_ptr<ArraySource> source;
    std::shared_ptr<const ArraySource> like;
};

class ReplacingReductions {
public:
    ReplacingReductions(std::string_view text, std::vector<CalcOperand>& operands, std::int64_t memory,
                        std::vector<Note>& notes)
        : text_(text), operands_(operands), memory_(memory), notes_(notes) {}

    void replace(Expression& node) {
        for (const auto& argument : node.arguments) replace(*argument);
        if (node.type != Expression::Type::call) return;
        auto with = called_reduction(node.name);
        if (!with) return;
        if (*with == "percentile") with = percentile(node);
        if (node.arguments.empty() || !node.arguments[0]->keyword.empty()) {
            throw error(node, fmt::format("{} takes an array, and dimensions: {}(t, time), {}(t, by=season)", node.name,
                                          node.name, node.name));
        }
        try {
            replace_call(node, *with);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::invalid_argument && e.code() != ErrorCode::unsupported) throw;
            if (std::string_view(e.what()).starts_with("'")) throw;  // it says where already
            throw Error(e.code(), error(node, e.what()).what());
        }
    }

    /// Leaves out operands that are only reduced.
    void drop(const Expression& tree) {
        for (std::size_t i = operands_.size(); i-- > 0;) {
            const bool reduced = std::ranges::count(reduced_, operands_[i].name) > 0;
            if (reduced && !names_operand(tree, operands_[i].name)) {
                operands_.erase(operands_.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
    }

private:
    [[nodiscard]] Error error(const Expression& node, std::string_view what) const {
        return expression_error(text_, node.at, what);
    }

    /// percentile(t, 95) is p95(t).
    std::string percentile(Expression& node) const {
        const Expression* const rank = node.arguments.size() > 1 ? node.arguments[1].get() : nullptr;
        if (rank == nullptr || rank->type != Expression::Type::literal) {
            throw error(node, "a percentile takes its number: percentile(t, 95, time), or p95(t, time)");
        }
        const double percent = std::visit([](auto v) { return static_cast<double>(v); }, rank->literal);
        node.arguments.erase(node.arguments.begin() + 1);
        return fmt::format("p{}", percent);
    }

    void replace_call(Expression& node, const std::string& with) {
        Reduced of = argument(*node.arguments[0]);
        ReduceOptions options{.with = parse_reduction(with),
                              .percent = parse_percent(with),
                              .keep_dimensions = true,
                              .skip_nan = true,
                              .memory = memory_};
        std::string by;
        for (std::size_t i = 1; i < node.arguments.size(); ++i)
            take_argument(*node.arguments[i], *of.like, options, by);
        if (!by.empty()) options.groups = groups(*of.like, options.axes, by);
        // No name that an expression can have.
        std::string name = fmt::format("{} at character {}", node.name, node.at + 1);
        auto kept = std::make_shared<KeptReduction>(reduce_source(std::move(of.source), options), of.like,
                                                    options.groups, memory_, name);
        operands_.push_back({name, std::move(kept)});
        node.type = Expression::Type::name;
        node.name = std::move(name);
        node.arguments.clear();
    }

    /// What is reduced: an operand, or an expression of some.
    Reduced argument(const Expression& tree) {
        std::vector<CalcOperand> used;
        for (const CalcOperand& operand : operands_) {
            if (!names_operand(tree, operand.name)) continue;
            used.push_back(operand);
            reduced_.push_back(operand.name);
        }
        if (used.empty()) throw error(tree, "an array was expected, of which that is a number");
        if (tree.type == Expression::Type::name && used.size() == 1)
            return {shared_source(used[0].array), used[0].array};
        std::shared_ptr<const ArraySource> source = source_of_tree(text_, tree, used, std::nullopt);
        Reduced of{shared_source(source), source};
        const DimensionNames names = dimension_names_of(*source);
        for (auto operand = used.rbegin(); operand != used.rend(); ++operand) {
            if (operand->array->info().shape != source->info().shape) continue;
            if (!names.empty() && dimension_names_of(*operand->array) != names) continue;
            if (of.like == source || !dimension_names_of(*operand->array).empty()) of.like = operand->array;
        }
        return of;
    }

    void take_argument(const Expression& given, const ArraySource& like, ReduceOptions& options,
                       std::string& by) const {
        std::string words = given.name;
        const bool negative = given.type == Expression::Type::call && given.name == "negative";
        const Expression& value = negative ? *given.arguments[0] : given;
        if (value.type == Expression::Type::literal) {
            words = std::visit([&](auto v) { return fmt::format("{}{}", negative ? "-" : "", v); }, value.literal);
        } else if (given.type == Expression::Type::call) {
            throw error(given, "the name of a dimension was expected");
        }
        if (given.keyword == "by") {
            by = words;
        } else if (given.keyword == "keepdims") {
            return;  // they are always kept
        } else if (given.keyword.empty() || given.keyword == "axis") {
            for (const int axis : find_dimensions(words, like)) options.axes.push_back(axis);
        } else {
            throw error(given, fmt::format("expected by= or axis=, found {}=", given.keyword));
        }
    }

    std::shared_ptr<const Grouping> groups(const ArraySource& like, const std::vector<int>& axes,
                                           const std::string& by) const {
        if (axes.size() > 1)
            throw invalid_argument("groups are made along one dimension, and {} are named", axes.size());
        const int axis = axes.empty() ? time_dimension(like) : axes[0];
        // In arithmetic a month is what recurs: an anomaly is the distance from all Januaries.
        const std::string_view word = by == "month" ? std::string_view("month-of-year") : std::string_view(by);
        if (by == "month" && notes_.empty() && group_by_time(like, axis, "year")->count > 1) {
            notes_.emplace_back(
                fmt::format("'{}': the times of {} lie in several years, and by=month takes all Januaries together, as "
                            "month-of-year; each month of each year is year-month",
                            text_, like.name()));
        }
        return group_by_time(like, axis, word);
    }

    std::string_view text_;
    std::vector<CalcOperand>& operands_;
    std::int64_t memory_;
    std::vector<Note>& notes_;
    std::vector<std::string> reduced_ = {};
};

}  // namespace

void replace_reductions(std::string_view text, Expression& tree, std::vector<CalcOperand>& operands,
                        std::int64_t memory, std::vector<Note>& notes) {
    ReplacingReductions replacing(text, operands, memory, notes);
    replacing.replace(tree);
    replacing.drop(tree);
}

}  // namespace tessera
