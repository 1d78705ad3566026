// tessera unstack
#include <fmt/format.h>

#include <tessera/apart.h>
#include <tessera/array_file.h>
#include <tessera/convert.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/destination_lock.h>
#include <tessera/dimensions.h>
#include <tessera/error_text.h>
#include <tessera/group.h>
#include <tessera/measure.h>
#include <tessera/open_files.h>
#include <tessera/place.h>
#include <tessera/write_computed.h>
#include <tessera/zip_name.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "advice.h"
#include "command.h"
#include "hierarchy.h"
#include "options.h"
#include "report.h"
#include "transfer.h"

namespace tessera::cli {

namespace fs = std::filesystem;

namespace {

struct UnstackOptions {
    TransferOptions transfer;
    std::string axis = "0";
};

/// The paths of the steps: the {} of a pattern replaced by numbers of equal width.
std::vector<std::string> numbered(const std::string& pattern, std::int64_t count) {
    const std::size_t at = pattern.rfind("{}");
    if (at == std::string::npos || pattern.find('/', at) != std::string::npos) {
        throw invalid_argument(
            "DST: expected {{}} in its last part, where the numbers go, such as 'frame-{{}}.npy', found {}", pattern);
    }
    const std::size_t digits = std::to_string(std::max<std::int64_t>(count - 1, 0)).size();
    std::vector<std::string> paths;
    for (std::int64_t i = 0; i < count; ++i) {
        paths.push_back(fmt::format("{}{:0{}}{}", pattern.substr(0, at), i, digits, pattern.substr(at + 2)));
    }
    return paths;
}

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

/// Makes the files or arrays, some at a time, and removes them unless all of them were made. With --resume, existing
/// ones are kept if they hold their step, and an interrupted run keeps those that it made.
class Unstacking {
public:
    Unstacking(Session& session, const TransferOptions& o, const ArraySource& source, int axis)
        : session_(session),
          o_(o),
          source_(source),
          axis_(axis),
          paths_(numbered(o.destination, source.info().shape[axis])),
          to_file_(names_array_file(paths_.at(0))) {
        require_options();
        require_local(split_array_path(paths_.front()).path, "what `unstack` makes");
        for (const std::string& path : paths_) {
            require_apart({o.source}, path);
            if (!o.overwrite && !o.resume && fs::exists(fs::symlink_status(path))) {
                throw already_exists(
                    "{} exists; --overwrite replaces it, --resume keeps it if the same command made it", path);
            }
            if (to_file_ && fs::is_directory(path)) throw invalid_argument("{} is a directory", path);
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

    [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }

    /// What would be made, as text.
    [[nodiscard]] std::string plan() const {
        const Selection one = step(0);
        const std::string count = std::to_string(paths_.size());
        const std::string elements = fmt::format("{} {}", shape_text(one.shape()), source_.info().dtype.to_string());
        if (to_file_) return fmt::format("{} array files, {}", count, elements);
        const PlannedArray plan = planned(paths_.front(), one);
        const ChunkLayout layout = chunk_layout(plan.metadata);
        return fmt::format("{} arrays, {}, {}, chunks {}, {}", count, elements, plan.dialect->name,
                           shape_text(layout.chunks), codecs_text(layout.codecs));
    }

    /// " (v3)": the format of the arrays that were made, if any.
    [[nodiscard]] std::string format_text() const { return format_.empty() ? "" : fmt::format(" ({})", format_); }

private:
    void require_options() const {
        if (!to_file_) {
            require_no_other_file(paths_.front());
            if (is_zip_name(paths_.front())) {
                throw unsupported("{}: arrays are not unstacked to zips", paths_.front());
            }
            if (o_.deflate) throw invalid_argument("--deflate: only for array files");
        } else if (o_.chunks || o_.codec || o_.format) {
            throw invalid_argument("--chunks, --codec, --format: only for arrays, but {} is an array file",
                                   paths_.front());
        } else if (o_.deflate && !named_array_file_format(paths_.front())->deflates) {
            throw invalid_argument("--deflate: only for .npz, but found {}", paths_.front());
        }
    }

    /// The number of steps made at once: whole chunks of the source, so that each is decoded once.
    [[nodiscard]] std::int64_t at_once() const {
        if (in_order_) return 1;
        const std::int64_t most = share_of_open_files(8, 1, 256);
        const ArrayInfo info = source_.info();
        const std::int64_t chunk = info.chunks.rank() == info.shape.rank() ? info.chunks[axis_] : 1;
        return chunk >= most ? most : most / chunk * chunk;
    }

    /// The one step, without its axis.
    [[nodiscard]] Selection step(std::int64_t number) const {
        std::vector<Selection::Axis> axes = Selection::all(source_.info().shape).axes();
        Selection::Axis& at = axes[static_cast<std::size_t>(axis_)];
        at.start = number;
        at.count = 1;
        at.dropped = true;
        return Selection(std::move(axes));
    }

    [[nodiscard]] PlannedArray planned(const std::string& path, const Selection& one) const {
        TransferOptions own = o_;
        if (!own.format) {
            if (const Dialect* above = format_above(path)) own.format = std::string(above->name);
        }
        const ArrayWishes wishes = wishes_of(own, false);
        return in_context([&] { return path; }, [&] { return plan_array(source_, wishes, one); });
    }

    /// Whether something exists for a step that is neither an unfinished array nor an empty folder.
    [[nodiscard]] bool is_there(std::int64_t number) const {
        if (!o_.resume) return false;
        const std::string& path = paths_[static_cast<std::size_t>(number)];
        if (to_file_) return fs::exists(fs::symlink_status(path));
        const Occupant there = occupant(path);
        return there == Occupant::array || there == Occupant::other;
    }

    /// Throws unless existing steps are those of the source.
    void require_equal(std::int64_t first, std::int64_t count) {
        const auto begin = paths_.begin() + first;
        const StepsSource wanted(source_, axis_, first, count);
        const auto found = join_sources({begin, begin + count}, [this](const std::string& path) { return again(path); },
                                        {.axis = axis_, .new_axis = true});
        const Difference different = difference(wanted, *found, {}, 1, session_.io());
        if (different.none()) return;
        const std::int64_t at = different.first.empty() ? 0 : different.first.front().index[axis_];
        throw already_exists("{} exists and is not step {} of {}: {}; --overwrite replaces it", *(begin + at),
                             first + at, o_.source,
                             different.structure.empty() ? "other elements" : different.structure.front());
    }

    [[nodiscard]] std::unique_ptr<ArraySource> again(const std::string& path) const {
        ArrayFileOptions options{.reverse_dims = o_.reverse_dims};
        const ArrayFileFormat* format = to_file_ ? named_array_file_format(path) : nullptr;
        if (format != nullptr && format->name == "csv") options.dtype = source_.info().dtype;
        return open_source(path, options);
    }

    std::unique_ptr<ArraySink> open(const std::string& path, std::int64_t number) {
        const ArrayInfo info = source_.info();
        const Selection one = step(number);
        if (!to_file_) {
            const PlannedArray plan = planned(path, one);
            if (format_.empty()) {  // the first; the others are like it
                for (const Note& change : plan.changes)
                    session_.note(path + ": " + advised(change.text, change.advice));
            }
            format_ = plan.dialect->name;
            auto made = std::make_unique<NewArray>(
                path, *plan.dialect, plan.metadata,
                Existing{.overwrite = o_.overwrite, .resume = o_.resume, .store = session_.store()}, "tessera unstack");
            if (plan.attributes) made->array().attributes().replace(*plan.attributes);
            return std::make_unique<NewArraySink>(std::move(made));
        }
        ArrayFileOptions options{.order = info.order,
                                 .reverse_dims = o_.reverse_dims,
                                 .durable = session_.options().durability != Durability::none,
                                 .object_strings = o_.object_strings};
        if (o_.order) options.order = parse_order("--order", *o_.order);
        if (o_.deflate) options.deflate_level = parse_number("--deflate", *o_.deflate, 0, 9);
        return create_array_file(split_array_path(path), info.dtype, one.shape(), options);
    }

    void make(std::int64_t first, std::int64_t count) {
        std::vector<DestinationLock> locks;
        std::vector<std::unique_ptr<ArraySink>> sinks;
        std::vector<std::string> fresh;
        for (std::int64_t i = first; i < first + count; ++i) {
            const std::string& path = paths_[static_cast<std::size_t>(i)];
            if (to_file_) locks.emplace_back(split_array_path(path).path, session_.store());
            if (!fs::exists(fs::symlink_status(path))) fresh.push_back(path);
            sinks.push_back(open(path, i));
            if (sinks.front()->info().access == Access::any) continue;
            in_order_ = true;  // one after another
            break;
        }
        const ArrayInfo info = source_.info();
        Region region = Region::whole(info.shape);
        region.start[axis_] = first;
        region.extent[axis_] = std::ssize(sinks);
        const auto sink = split_sink(std::move(sinks), axis_);
        for (const std::string& path : fresh) made_.push_back(path);
        copy_array(source_, *sink, {.io = session_.io(), .selection = Selection(region, info.shape)});
        if (in_order_ && count > 1) {
            for (std::int64_t i = first + 1; i < first + count; ++i) make(i, 1);
        }
    }

    Session& session_;
    const TransferOptions& o_;
    const ArraySource& source_;
    int axis_;
    std::vector<std::string> paths_;
    bool to_file_;
    std::string_view format_;  ///< of the arrays, once one is made
    bool in_order_ = false;
    bool all_made_ = false;
    std::vector<fs::path> made_folders_;  ///< missing before, the lowest first
    std::vector<std::string> made_;       ///< paths that did not exist before
};

void report_unstacked(Session& session, const UnstackOptions& o, int axis, const std::vector<std::string>& made,
                      std::string_view done, const std::string& format = {}) {
    Value paths = Value::array();
    for (const std::string& path : made) paths.push_back(path_value(path));
    Value value = Value::object();
    value.set("source", path_value(o.transfer.source));
    value.set("axis", axis);
    value.set("dry_run", o.transfer.dry_run);
    value.set("paths", std::move(paths));
    report(session, value,
           fmt::format("{} {} → {} to {}{}", done, o.transfer.source, made.front(), made.back(), format));
}

int unstack(Session& session, const UnstackOptions& o) {
    const std::string& from = o.transfer.source;
    const auto stored = about_path(from, [&] {
        const Located at = locate(from);
        return converted(open_readable_source(at, reading_options(o.transfer, at)), o.transfer.dtype, o.transfer.cast);
    });
    const Shape shape = stored->info().shape;
    if (shape.empty()) throw invalid_argument("{}: it has no dimension", o.transfer.source);
    const int axis = in_context([] { return "--axis"; }, [&] { return find_dimension(o.axis, *stored); });
    if (shape[axis] == 0) throw invalid_argument("{}: its axis {} has no step", o.transfer.source, axis);
    const std::string first = numbered(o.transfer.destination, 1).front();
    const auto converted = names_array_file(first)
                               ? convert_for_array_file(split_array_path(first), *stored,
                                                        {.object_strings = o.transfer.object_strings}, session.io())
                               : nullptr;
    const ArraySource& source = converted ? *converted : *stored;
    if (o.transfer.resume && o.transfer.overwrite) {
        throw invalid_argument("--resume and --overwrite: choose one; --overwrite makes all of them anew");
    }
    Unstacking work(session, o.transfer, source, axis);
    if (o.transfer.dry_run) {
        report_unstacked(session, o, axis, work.paths(), fmt::format("would make {}:", work.plan()));
        return exit_done;
    }
    try {
        work.run();
    } catch (const Error& e) {
        if (e.code() != ErrorCode::cancelled) throw;
        throw cancelled(o.transfer.resume ? "interrupted; the same command goes on with what is missing"
                                          : "interrupted; the files that were new are removed");
    }
    session.clear_progress();
    report_unstacked(session, o, axis, work.paths(), "unstacked", work.format_text());
    return exit_done;
}

}  // namespace

Run declare_unstack(CLI::App& app) {
    auto o = std::make_shared<UnstackOptions>();
    TransferOptions& t = o->transfer;
    app.add_option("SRC", t.source, "an array, an array file or a member of one")->required()->option_text(" ");
    app.add_option("DST", t.destination, "where they go, with {} for the number: 'frames/frame-{}.npy'")
        ->required()
        ->option_text(" ");
    app.add_option("--axis", o->axis, "the dimension that is taken apart, by name or number (default 0; -1: the last)")
        ->option_text("DIM");
    app.add_option("--chunks", t.chunks, "lengths of a chunk")->option_text("SHAPE");
    app.add_option("--codec", t.codec, "codecs in order, such as blosc:zstd:5:shuffle")->option_text("CODECS");
    app.add_option("--format", t.format, format_choices())->option_text("FORMAT");
    app.add_option("--order", t.order, "order of the elements in a chunk, or in an array file")->option_text("C|F");
    app.add_option("--deflate", t.deflate, "compress an .npz: 1 to 9 (default 0, stored)")->option_text("LEVEL");
    declare_object_strings(app, t);
    app.add_flag("--reverse-dims", t.reverse_dims, "reverse the dimensions of a .ra");
    app.add_flag("--overwrite", t.overwrite, "replace files and arrays that are there");
    app.add_flag("--resume", t.resume,
                 "resume: keep existing files whose content matches their step; if interrupted, keep finished files");
    app.add_flag("--dry-run", t.dry_run, "say what would be made, and write nothing");
    return [o](Session& session) { return unstack(session, *o); };
}

}  // namespace tessera::cli
