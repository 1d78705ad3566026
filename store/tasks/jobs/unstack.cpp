#include <tessera/unstack.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/apart.h>
#include <tessera/array_file.h>
#include <tessera/convert.h>
#include <tessera/derived_source.h>
#include <tessera/destination_lock.h>
#include <tessera/divided_recipe.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/measure.h>
#include <tessera/open_files.h>
#include <tessera/place.h>
#include <tessera/write_computed.h>
#include <tessera/zip_name.h>

namespace tessera {

namespace fs = std::filesystem;

std::vector<std::string> step_paths(const std::string& pattern, std::int64_t count) {
    const std::size_t at = pattern.rfind("{}");
    if (at == std::string::npos || pattern.find('/', at) != std::string::npos) {
        throw invalid_argument(
            "expected {{}} in the last part of the name, where the numbers go, such as 'frame-{{}}.npy', found {}",
            pattern);
    }
    const std::size_t digits = std::to_string(std::max<std::int64_t>(count - 1, 0)).size();
    std::vector<std::string> paths;
    for (std::int64_t i = 0; i < count; ++i) {
        paths.push_back(fmt::format("{}{:0{}}{}", pattern.substr(0, at), i, digits, pattern.substr(at + 2)));
    }
    return paths;
}

namespace {

/// An array that is finished when it is committed.
class NewArraySink final : public ArraySink {
public:
    explicit NewArraySink(std::unique_ptr<NewArray> made) : made_(std::move(made)), array_(&made_->array()) {}
    [[nodiscard]] ArrayInfo info() const override { return array_->info(); }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        array_->write(region, in, io);
    }
    void finish() override { (void)made_->commit(); }
    [[nodiscard]] const std::string& name() const override { return array_->name(); }

private:
    std::unique_ptr<NewArray> made_;
    Array* array_;
};

/// Some steps of an array along an axis.
class StepsSource final : public ArraySource {
public:
    StepsSource(const ArraySource& source, int axis, std::int64_t first, std::int64_t count)
        : source_(source), axis_(axis), first_(first), count_(count) {}
    [[nodiscard]] ArrayInfo info() const override {
        ArrayInfo info = source_.info();
        info.shape[axis_] = count_;
        if (info.chunks.rank() != info.shape.rank() || first_ % info.chunks[axis_] != 0) info.chunks = Shape();
        info.shards = Shape();
        return info;
    }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        Region there = region;
        there.start[axis_] += first_;
        source_.read_into(there, out, io);
    }
    [[nodiscard]] const std::string& name() const override { return source_.name(); }

private:
    const ArraySource& source_;
    int axis_;
    std::int64_t first_;
    std::int64_t count_;
};

/// Makes the files or arrays, some at a time, and removes them unless all of them were made. To resume, existing ones
/// are kept if they hold their step, and an interrupted run keeps those that it made.
class Unstacking {
public:
    Unstacking(const ArraySource& source, const std::string& pattern, const UnstackOptions& o)
        : o_(o), source_(source), axis_(o.axis), paths_(step_paths(pattern, source.info().shape[o.axis])) {
        if (paths_.empty()) throw invalid_argument("{}: its axis {} has no step", source.name(), o.axis);
        if (o.resume && o.overwrite)
            throw invalid_argument("resume and overwrite: choose one; overwrite makes all anew");
        to_file_ = named_array_file_format(paths_.front()) != nullptr;
        require_options();
        require_local(split_array_path(paths_.front()).path, "what `unstack` makes");
        for (const std::string& path : paths_) {
            require_apart({source.name()}, path);
            if (!o.overwrite && !o.resume && fs::exists(fs::symlink_status(path))) {
                throw already_exists("{} exists", path)
                    .advising(Action::overwrite, "replaces it")
                    .advising(Action::resume, "keeps it if the same command made it");
            }
            if (to_file_ && fs::is_directory(path)) throw invalid_argument("{} is a directory", path);
        }
        if (to_file_) {
            converted_ = convert_for_array_file(split_array_path(paths_.front()), source,
                                                {.object_strings = o.file.object_strings}, o.io);
        }
    }

    ~Unstacking() {
        if (all_made_ || o_.resume) return;
        std::error_code ignored;
        for (const std::string& path : made_) fs::remove_all(path, ignored);
        for (const fs::path& folder : made_folders_) fs::remove(folder, ignored);
    }
    Unstacking(const Unstacking&) = delete;
    Unstacking& operator=(const Unstacking&) = delete;

    void run() {
        const fs::path folder = fs::path(paths_.front()).parent_path();
        for (fs::path above = folder; !above.empty() && !fs::exists(above); above = above.parent_path()) {
            made_folders_.push_back(above);
        }
        if (!folder.empty()) fs::create_directories(folder);
        const auto count = static_cast<std::int64_t>(paths_.size());
        for (std::int64_t done = 0; done < count;) {
            const std::int64_t n = std::min(count - done, at_once());
            // Existing steps and missing ones, in turn.
            for (std::int64_t i = done; i < done + n;) {
                const bool there = is_there(i);
                std::int64_t end = i + 1;
                while (end < done + n && is_there(end) == there) ++end;
                there ? require_equal(i, end - i) : make(i, end - i);
                i = end;
            }
            done += n;
        }
        all_made_ = true;
    }

    /// What is made, without making it.
    [[nodiscard]] Unstacked plan() const {
        Unstacked plan{.paths = paths_, .shape = step(0).shape(), .dtype = source().info().dtype};
        if (!to_file_) plan.array = planned(paths_.front(), step(0));
        return plan;
    }

private:
    void require_options() const {
        if (!to_file_) {
            require_no_other_file(paths_.front());
            if (is_zip_name(paths_.front())) {
                throw unsupported("{}: arrays are not unstacked to zips", paths_.front());
            }
        }
    }

    /// The number of steps made at once: whole chunks of the source, so that each is decoded once.
    [[nodiscard]] std::int64_t at_once() const {
        if (in_order_) return 1;
        const std::int64_t most = share_of_open_files(8, 1, 256);
        const ArrayInfo info = source().info();
        const std::int64_t chunk = info.chunks.rank() == info.shape.rank() ? info.chunks[axis_] : 1;
        return chunk >= most ? most : most / chunk * chunk;
    }

    /// The one step, without its axis.
    [[nodiscard]] Selection step(std::int64_t number) const {
        std::vector<Selection::Axis> axes = Selection::all(source().info().shape).axes();
        Selection::Axis& at = axes[static_cast<std::size_t>(axis_)];
        at.start = number;
        at.count = 1;
        at.dropped = true;
        return Selection(std::move(axes));
    }

    [[nodiscard]] PlannedArray planned(const std::string& path, const Selection& one) const {
        ArrayWishes wishes = o_.arrays;
        if (!wishes.format) {
            if (const Dialect* above = format_above(path)) wishes.format = std::string(above->name);
        }
        return in_context([&] { return path; }, [&] { return plan_array(source(), wishes, one); });
    }

    /// Whether something exists for a step that is neither an unfinished array nor an empty folder.
    [[nodiscard]] bool is_there(std::int64_t number) const {
        if (!o_.resume) return false;
        const std::string& path = paths_[static_cast<std::size_t>(number)];
        if (to_file_) return fs::exists(fs::symlink_status(path));
        const Occupant there = occupant(path);
        return there == Occupant::array || there == Occupant::other;
    }

    [[noreturn]] void refuse_step(std::int64_t number, std::string_view why) const {
        throw already_exists("{} exists and is not step {} of {}: {}", paths_[static_cast<std::size_t>(number)], number,
                             source_.name(), why)
            .advising(Action::overwrite, "replaces it");
    }

    /// Throws unless existing steps are those of the source.
    void require_equal(std::int64_t first, std::int64_t count) {
        const Shape shape = step(0).shape();
        for (std::int64_t i = first; i < first + count; ++i) {
            const Shape there = again(paths_[static_cast<std::size_t>(i)])->info().shape;
            if (!(there == shape))
                refuse_step(i, fmt::format("expected the shape {}, found {}", shape.to_string(), there.to_string()));
        }
        const auto begin = paths_.begin() + first;
        const StepsSource wanted(source(), axis_, first, count);
        const auto found = join_sources({begin, begin + count}, [this](const std::string& path) { return again(path); },
                                        {.axis = axis_, .new_axis = true});
        const Difference different = difference(wanted, *found, {}, 1, o_.io);
        if (different.none()) return;
        const std::int64_t at = different.first.empty() ? 0 : different.first.front().index[axis_];
        refuse_step(first + at, different.structure.empty() ? "other elements" : different.structure.front());
    }

    [[nodiscard]] std::unique_ptr<ArraySource> again(const std::string& path) const {
        ArrayFileOptions options{.reverse_dims = o_.file.reverse_dims};
        const ArrayFileFormat* format = to_file_ ? named_array_file_format(path) : nullptr;
        if (format != nullptr && format->name == "csv") options.dtype = source().info().dtype;
        return open_source(path, options);
    }

    std::unique_ptr<ArraySink> open(const std::string& path, std::int64_t number) {
        const ArrayInfo info = source().info();
        const Selection one = step(number);
        if (!to_file_) {
            const PlannedArray plan = planned(path, one);
            if (!noted_ && o_.note) {  // of the first; the others are like it
                for (const Note& change : plan.changes) o_.note({path + ": " + change.text, change.advice});
            }
            noted_ = true;
            auto made = std::make_unique<NewArray>(
                path, *plan.dialect, plan.metadata,
                Existing{.overwrite = o_.overwrite, .resume = o_.resume, .store = o_.store}, "tessera unstack");
            if (plan.attributes) made->array().attributes().replace(*plan.attributes);
            return std::make_unique<NewArraySink>(std::move(made));
        }
        ArrayFileOptions options = o_.file;
        options.order = o_.arrays.order.value_or(info.order);
        return create_array_file(split_array_path(path), info.dtype, one.shape(), options);
    }

    void make(std::int64_t first, std::int64_t count) {
        std::vector<DestinationLock> locks;
        std::vector<std::unique_ptr<ArraySink>> sinks;
        std::vector<std::string> fresh;
        for (std::int64_t i = first; i < first + count; ++i) {
            const std::string& path = paths_[static_cast<std::size_t>(i)];
            if (to_file_) locks.emplace_back(split_array_path(path).path, o_.store);
            if (!fs::exists(fs::symlink_status(path))) fresh.push_back(path);
            sinks.push_back(open(path, i));
            if (sinks.front()->info().access == Access::any) continue;
            in_order_ = true;  // one after another
            break;
        }
        const ArrayInfo info = source().info();
        Region region = Region::whole(info.shape);
        region.start[axis_] = first;
        region.extent[axis_] = std::ssize(sinks);
        const auto sink = split_sink(std::move(sinks), axis_);
        for (const std::string& path : fresh) made_.push_back(path);
        copy_array(source(), *sink, {.io = o_.io, .selection = Selection(region, info.shape)});
        if (in_order_ && count > 1) {
            for (std::int64_t i = first + 1; i < first + count; ++i) make(i, 1);
        }
    }

    [[nodiscard]] const ArraySource& source() const { return converted_ ? *converted_ : source_; }

    const UnstackOptions& o_;
    const ArraySource& source_;
    std::unique_ptr<ArraySource> converted_;  ///< as an array file can hold it
    int axis_;
    std::vector<std::string> paths_;
    bool to_file_ = false;
    bool noted_ = false;
    bool in_order_ = false;
    bool all_made_ = false;
    std::vector<fs::path> made_folders_;  ///< missing before, the lowest first
    std::vector<std::string> made_;       ///< paths that did not exist before
};

}  // namespace

UnstackOptions unstack_options(const ResultOptions& r, const Recipe& recipe, const std::string& pattern) {
    ResultOptions each = r;
    each.resume = false;  // of all steps, not of one file
    require_fitting(recipe, each, pattern);
    (void)exclusion(recipe);  // which refuses what does not fit
    return {.arrays = wishes_of(r),
            .file = {.deflate_level = static_cast<int>(r.deflate),
                     .reverse_dims = recipe.reverse_dims,
                     .object_strings = r.object_strings},
            .overwrite = r.overwrite,
            .resume = r.resume,
            .dry_run = r.dry_run};
}

Unstacked unstack(const ArraySource& source, const std::string& pattern, const UnstackOptions& options) {
    if (source.info().shape.empty()) throw invalid_argument("{}: it has no dimension", source.name());
    Unstacking work(source, pattern, options);
    Unstacked made = work.plan();
    if (!options.dry_run) work.run();
    return made;
}

}  // namespace tessera
