#include "destination.h"

#include <sys/resource.h>

#include <fmt/format.h>

#include <tessera/cast.h>
#include <tessera/codec.h>
#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/error.h>
#include <tessera/ndarray.h>
#include <tessera/slices.h>
#include <algorithm>
#include <deque>
#include <filesystem>
#include <span>

#include "options.h"

namespace tessera::cli {

namespace fs = std::filesystem;

namespace {

FillValue parse_fill(const Dialect& from, const DType& dtype, const std::string& text) {
    const Value value = json_or_text(text);
    FillValue fill{.bytes = std::nullopt, .spelling = value, .error = {}};
    if (!value.is_null()) {
        fill.bytes =
            in_context([] { return "--fill"; }, [&] { return element_from_value(dtype, value, Assign::exact); });
    }
    if (fill.bytes && !from.default_fill(dtype).spelling) fill.spelling.reset();  // as make_metadata does
    return fill;
}

/// A fill as --fill takes it.
std::string fill_text(const DType& dtype, const FillValue& fill) {
    if (!fill.bytes) return "null";
    const VariableSlot slot{reinterpret_cast<const char*>(fill.bytes->data()), fill.bytes->size()};
    const auto* element = dtype.is_variable() ? reinterpret_cast<const std::byte*>(&slot) : fill.bytes->data();
    return fmt::format("'{}'", element_to_value(dtype, element).dump());
}

void add_masking_note(PlannedArray& plan) {
    if (const auto note = masking_note(*plan.dialect, plan.metadata)) plan.changes.push_back(*note);
}

void add_zstd_note(PlannedArray& plan) {
    if (!uses_unknown_zstd(*plan.dialect, plan.metadata)) return;
    plan.changes.push_back(fmt::format("{} cannot read chunks compressed with zstd", plan.dialect->cannot_read_zstd));
}

/// The lengths that a selection leaves of a chunk or shard, along the dimensions that it keeps.
Shape selected_lengths(const Shape& lengths, const Selection& selection) {
    Shape kept;
    for (int d = 0; d < lengths.rank(); ++d) {
        const Selection::Axis& axis = selection.axes()[static_cast<std::size_t>(d)];
        if (!axis.dropped) kept.push_back(axis.count == 0 ? lengths[d] : std::min(lengths[d], axis.count));
    }
    return kept;
}

bool is_transpose(const CodecConfig& codec) {
    return codec.name == "transpose";
}

Order order_of(const std::vector<CodecConfig>& codecs) {
    return std::ranges::any_of(codecs, is_transpose) ? Order::F : Order::C;
}

/// The chain for another rank or order: what permutes dimensions is made anew.
std::vector<CodecConfig> reordered(const DType& dtype, int rank, Order order, std::vector<CodecConfig> codecs) {
    std::erase_if(codecs, is_transpose);
    return complete_codecs(dtype, rank, order, std::move(codecs));
}

void select(ArrayMetadata& m, const Selection& selection) {
    ChunkLayout layout = chunk_layout(m);
    layout.chunks = selected_lengths(layout.chunks, selection);
    layout.shards = layout.shards.empty() ? Shape() : selected_lengths(layout.shards, selection);
    for (int d = 0; d < layout.shards.rank(); ++d) {
        layout.shards[d] = ceil_div(layout.shards[d], layout.chunks[d]) * layout.chunks[d];
    }
    m.shape = selection.shape();
    if (m.shape.rank() != selection.rank()) {
        layout.codecs = reordered(m.dtype, m.shape.rank(), order_of(layout.codecs), std::move(layout.codecs));
    }
    std::vector<std::optional<std::string>> names;
    for (std::size_t d = 0; d < m.dimension_names.size(); ++d) {
        if (!selection.axes()[d].dropped) names.push_back(m.dimension_names[d]);
    }
    m.dimension_names = std::move(names);
    set_chunk_layout(m, layout);
}

/// What the options say about chunks and codecs. Returns whether they say anything about codecs.
bool apply_layout(ArrayMetadata& m, const TransferOptions& o, const Dialect& to, std::vector<std::string>& changes) {
    if (!o.chunks && !o.shards && !o.codec && !o.order) return false;
    ChunkLayout layout = chunk_layout(m);
    if (o.chunks && !o.shards && !layout.shards.empty() && !to.shards) {
        changes.push_back(
            fmt::format("the shards of {} are left out, because {} has none", layout.shards.to_string(), to.name));
        layout.shards = Shape();
    }
    if (o.chunks) layout.chunks = parse_shape_option("--chunks", *o.chunks);
    if (o.shards) layout.shards = *o.shards == "none" ? Shape() : parse_shape_option("--shard", *o.shards);
    const Order order = o.order ? parse_order("--order", *o.order) : order_of(layout.codecs);
    if (o.codec) {
        layout.codecs = complete_codecs(m.dtype, m.shape.rank(), order, parse_codecs(*o.codec));
    } else if (o.order) {
        layout.codecs = reordered(m.dtype, m.shape.rank(), order, std::move(layout.codecs));
    }
    set_chunk_layout(m, layout);
    return o.shards || o.codec || o.order;
}

/// The attributes as they are stored: an empty set and none at all are different things in some formats.
std::optional<Value> stored_attributes(const ArraySource& source) {
    if (const auto* array = dynamic_cast<const Array*>(&source)) return array->attributes().stored();
    Value values = source.attribute_values();
    return values.as_object().empty() ? std::nullopt : std::optional(std::move(values));
}

/// As convert_metadata, but where the fill cannot be said the refusal shows one that can.
Conversion convert(const ArrayMetadata& m, const std::optional<Value>& attributes, const Dialect& from,
                   const Dialect& to, const TransferOptions& o) {
    try {
        return convert_metadata(m, attributes, from, to, o.codec.has_value());
    } catch (const Error& e) {
        if (o.fill || e.code() != ErrorCode::unsupported) throw;
        for (const FillValue& fill :
             {FillValue{}, FillValue{.bytes = zero_element(m.dtype), .spelling = {}, .error = {}}}) {
            ArrayMetadata filled = m;
            filled.fill = fill;
            try {
                (void)convert_metadata(filled, attributes, from, to);
            } catch (const Error&) {
                continue;
            }
            throw Error(e.code(), fmt::format("{}; --fill {} works", e.what(), fill_text(m.dtype, fill)));
        }
        throw;
    }
}

/// Names the dimensions, where the dialect keeps the names.
void set_dimensions(PlannedArray& plan, const std::string& text) {
    std::vector<std::optional<std::string>> names = parse_names(text);
    const Shape& shape = plan.metadata.shape;
    if (std::cmp_not_equal(names.size(), shape.rank())) {
        throw invalid_argument(
            fmt::format("--dims: {} names were given for {} dimensions", names.size(), shape.rank()));
    }
    if (plan.attributes) plan.attributes->erase(dimensions_attribute);
    if (plan.dialect->dimension_names) {
        plan.metadata.dimension_names = std::move(names);
        return;
    }
    if (!plan.attributes) plan.attributes = Value::object();
    plan.attributes->set(dimensions_attribute, dimension_names_json(names));
}

bool names_dimensions(const std::optional<Value>& attributes) {
    return attributes && attributes->find(dimensions_attribute) != nullptr;
}

/// " (--format v3 can)" where takes(dialect) is so for one of them, the newest first, else nothing.
template <class Takes>
std::string advised_format(const Takes& takes) {
    for (std::size_t n = dialect_table().size(); n-- > 0;) {
        const Dialect& dialect = dialect_table()[n];
        try {
            if (takes(dialect)) return fmt::format(" (--format {} can)", dialect.name);
        } catch (const Error&) {
            continue;
        }
    }
    return {};
}

/// The fill in another dtype. It must fit as elements must.
void cast_fill(ArrayMetadata& m, const DType& dtype, Cast rule) {
    if (!m.fill.bytes || m.dtype.is_variable()) return;
    NDArray fill(native_dtype(m.dtype), {1});
    fill_elements(fill.view(), m.dtype, m.fill.bytes->data());
    NDArray made(native_dtype(dtype), {1});
    if (cast_packed(fill.dtype(), fill.bytes().data(), made.dtype(), made.bytes().data(), 1, rule)) {
        throw invalid_argument(fmt::format("the fill value {} does not fit {}; --fill gives another",
                                           element_to_text(fill.dtype(), fill.bytes().data()), dtype.to_string()));
    }
    NDArray stored(dtype, {1});
    copy_elements(made.view(), stored.view());
    m.fill = {.bytes = ElementBytes(stored.bytes().begin(), stored.bytes().end()), .spelling = {}, .error = {}};
}

/// The metadata of the same array with another dtype: its compressors stay, what was made for the elements goes.
void change_dtype(ArrayMetadata& m, const CastSource& cast, bool fill_chosen, std::vector<std::string>& changes) {
    const DType dtype = cast.info().dtype;
    if (!fill_chosen) cast_fill(m, dtype, cast.rule());
    ChunkLayout layout = chunk_layout(m);
    const Order order = order_of(layout.codecs);
    std::vector<CodecConfig> kept;
    for (CodecConfig& codec : layout.codecs) {
        const CodecRow* row = find_codec(codec.name);
        const bool filter = row != nullptr && row->array_to_array != nullptr;
        if (filter && !is_transpose(codec)) {
            changes.push_back(
                fmt::format("the codec {} is left out, because it was made for {}", codec.name, m.dtype.to_string()));
        }
        if (filter || (row != nullptr && row->array_to_bytes != nullptr)) continue;
        codec.configuration.erase("typesize");  // what complete_codecs fills in
        codec.configuration.erase("elementsize");
        kept.push_back(std::move(codec));
    }
    m.dtype = dtype;
    layout.codecs = complete_codecs(dtype, m.shape.rank(), order, std::move(kept));
    set_chunk_layout(m, layout);
}

PlannedArray plan_copy(const Array& from, const TransferOptions& o, const std::optional<Selection>& selection,
                       const CastSource* cast) {
    const ArrayMetadata before = from.metadata();
    ArrayMetadata wanted = before;
    std::vector<std::string> changes;
    const Dialect& dialect = o.format ? dialect_named(*o.format) : from.dialect();
    if (cast != nullptr) change_dtype(wanted, *cast, !o.fills.empty() || o.fill.has_value(), changes);
    if (selection) select(wanted, *selection);
    const bool codecs_chosen = apply_layout(wanted, o, dialect, changes);
    std::optional<Value> attributes = stored_attributes(from);
    if (o.fill) {
        wanted.fill = parse_fill(from.dialect(), wanted.dtype, *o.fill);
        if (attributes) attributes->erase(null_fill_attribute);
    }
    const bool named = names_dimensions(attributes);
    const auto advice = [&]() -> std::string {
        if (o.format) return {};
        return advised_format([&](const Dialect& d) {
            return convert_metadata(wanted, attributes, from.dialect(), d, true).metadata.codecs == wanted.codecs;
        });
    };
    Conversion made;
    try {
        made = convert(wanted, attributes, from.dialect(), dialect, o);
        dialect.require_expressible(made.metadata);
    } catch (const Error& e) {
        if (!codecs_chosen || e.code() != ErrorCode::unsupported) throw;
        throw Error(e.code(), e.what() + advice());
    }
    if (codecs_chosen && made.metadata.codecs != wanted.codecs) {
        throw unsupported(
            fmt::format("{} cannot store this as asked: {}{}", dialect.name, made.changes.back(), advice()));
    }
    if (o.separator) made.metadata.keys = dialect.default_keys().with_separator(*o.separator);
    changes.insert(changes.end(), made.changes.begin(), made.changes.end());
    std::optional<std::string> recode = selection         ? "only a part is copied"
                                        : cast != nullptr ? "the dtype changes"
                                                          : why_recode(before, made.metadata);
    PlannedArray plan{&dialect, std::move(made.metadata), std::move(made.attributes), std::move(changes),
                      std::move(recode)};
    if (o.codec) add_zstd_note(plan);
    if (o.dimensions) set_dimensions(plan, *o.dimensions);
    if (!o.fill && !named && names_dimensions(plan.attributes)) add_masking_note(plan);
    return plan;
}

PlannedArray plan_new(const ArraySource& from, const TransferOptions& o, const std::optional<Selection>& selection) {
    ArrayOptions options;
    options.shape = selection ? selection->shape() : from.info().shape;
    options.dtype = from.info().dtype;
    if (o.chunks) options.chunks = parse_shape_option("--chunks", *o.chunks);
    if (o.shards && *o.shards != "none") options.shards = parse_shape_option("--shard", *o.shards);
    if (o.codec) options.codec = *o.codec;
    if (o.fill) options.fill_value = json_or_text(*o.fill);
    if (o.format) options.format = *o.format;
    if (o.order) options.order = parse_order("--order", *o.order);
    if (o.separator) options.separator = *o.separator;
    PlannedArray plan{&dialect_named(options.format),
                      metadata_of_new(options, o.format.has_value()),
                      stored_attributes(from),
                      {},
                      "it is no array yet"};
    if (o.codec) add_zstd_note(plan);
    if (o.dimensions) set_dimensions(plan, *o.dimensions);
    if (!o.fill && names_dimensions(plan.attributes)) add_masking_note(plan);
    return plan;
}

/// Arrays in a directory. Each is written in place or beside what it replaces, and all appear at the end.
class DirectoryDestination final : public Destination {
public:
    DirectoryDestination(fs::path root, Existing existing)
        : root_(std::move(root)), existing_(existing), existed_(fs::exists(root_)) {}

    ~DirectoryDestination() override {
        if (committed_) return;
        arrays_.clear();  // removes what each has written
        groups_.clear();
        // The folders that were made on the way go, where nothing is left in them.
        std::error_code ignored;
        for (const std::string& node : nodes_) {
            for (fs::path folder = fs::path(node).parent_path(); !folder.empty(); folder = folder.parent_path()) {
                fs::remove(root_ / folder, ignored);
            }
        }
        if (!existed_) fs::remove(root_, ignored);
    }

    Array& add(const std::string& node, const PlannedArray& plan, std::string_view made_from) override {
        nodes_.push_back(node);
        require_no_link(node);
        rest();
        const fs::path place = node.empty() ? root_ : root_ / node;
        if (!node.empty()) fs::create_directories(place.parent_path());
        Existing existing = existing_;
        if (!node.empty()) existing.lock = nullptr;  // ours is of the root alone
        existing.together = !node.empty();
        arrays_.push_back(std::make_unique<NewArray>(place, *plan.dialect, plan.metadata, existing, made_from));
        Array& array = arrays_.back()->array();
        if (plan.attributes) array.attributes().replace(*plan.attributes);
        return array;
    }

    [[nodiscard]] bool resumed() const override { return arrays_.back()->resumed(); }

    bool drop() override {
        arrays_.pop_back();
        return true;
    }

    void add_group(const PlannedGroup& group) override {
        require_no_link(group.node);
        groups_.push_back({group, {}});
        if (!group.node.empty()) groups_.back().lock = DestinationLock(root_ / group.node, existing_.store);
    }

    void commit() override {
        std::vector<NewArray*> made;
        for (const auto& array : arrays_) made.push_back(array.get());
        for (std::size_t done = 0; done < made.size(); done += most_) {
            const std::size_t count = std::min(most_, made.size() - done);
            commit_together(std::span(made).subspan(done, count));
            for (std::size_t i = done; i < done + count; ++i) arrays_[i].reset();  // closes its files
        }
        // Whether one wait can be for many documents.
        const bool together = directory_store(root_, existing_.store)->hold() != nullptr;
        // The root last: until then nobody takes for a whole hierarchy what is only a part of one.
        for (auto added = groups_.rbegin(); added != groups_.rend(); ++added) {
            if (added->group.node.empty()) continue;
            StoreOptions options = existing_.store;
            // An old document must not be lost.
            if (together && !has_document(added->group)) options.durability = Durability::none;
            add_document(added->group, options);
        }
        if (together) sync_all();
        for (const NewGroup& added : groups_) {
            if (added.group.node.empty()) add_document(added.group, existing_.store);
        }
        committed_ = true;
    }

    std::string keep() override {
        std::string kept = root_.string();
        for (const auto& array : arrays_) kept = array->keep().string();
        committed_ = true;
        return arrays_.size() == 1 ? kept : root_.string();
    }

private:
    /// Lets the arrays rest that are written, when they are as many as can be open at once.
    void rest() {
        if (arrays_.size() - resting_ < most_) return;
        std::vector<NewArray*> written;
        for (std::size_t i = resting_; i < arrays_.size(); ++i) written.push_back(arrays_[i].get());
        rest_together(written);
        resting_ = arrays_.size();
    }

    /// How many arrays are open at once: each takes about four files, and the source and the groups take some, too.
    static std::size_t most_open() {
        constexpr std::size_t many = 1000;
        rlimit limit{};
        if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return many;
        return std::clamp<std::size_t>(limit.rlim_cur / 8, 16, many);
    }

    /// A node is not made where a link below the root leads to, nor in the place of what one leads to.
    void require_no_link(const std::string& node) const {
        if (existing_.store.follow_links) return;
        fs::path place = root_;
        std::error_code ignored;
        for (const fs::path& part : fs::path(node)) {
            place /= part;
            if (!fs::is_symlink(place, ignored)) continue;
            throw invalid_argument(
                fmt::format("{} is a symbolic link: nothing is written or deleted through it; name what it leads to, "
                            "or allow it by "
                            "--follow-links",
                            place.string()));
        }
    }

    [[nodiscard]] fs::path place_of(const PlannedGroup& group) const {
        return group.node.empty() ? root_ : root_ / group.node;
    }

    [[nodiscard]] bool has_document(const PlannedGroup& group) const {
        return probe_group_dialect(*directory_store(place_of(group), {.read_only = true}), "") != nullptr;
    }

    void add_document(const PlannedGroup& group, const StoreOptions& options) const {
        const fs::path place = place_of(group);
        fs::create_directories(place);
        if (group.dialect == nullptr || group.dialect->save_group == nullptr) return;
        if (!group.attributes && has_document(group)) return;
        const auto store = directory_store(place, options);
        group.dialect->save_group(*store, "", group.attributes.value_or(Value::object()), group.unknown);
        store->sync();
    }

    /// One wait for whatever was written below the root.
    void sync_all() const {
        if (groups_.empty() || !fs::exists(root_)) return;
        const auto store = directory_store(root_, existing_.store);
        (void)store->list("");  // opens it
        store->sync_later();
        store->sync();
    }

    /// A group, and its lock: none of the root, which the caller has.
    struct NewGroup {
        PlannedGroup group;
        DestinationLock lock;
    };

    fs::path root_;
    Existing existing_;
    bool existed_;
    bool committed_ = false;
    std::vector<std::string> nodes_;
    std::vector<std::unique_ptr<NewArray>> arrays_;
    std::size_t most_ = most_open();
    std::size_t resting_ = 0;  ///< so many, from the first on, rest
    std::vector<NewGroup> groups_;
};

/// A new zip, which appears as a whole.
class ZipDestination final : public Destination {
public:
    ZipDestination(const fs::path& path, Existing existing) {
        const bool there = fs::exists(path);
        if (existing.resume) {
            throw invalid_argument(fmt::format("--resume: {} is a zip, which is written afresh", path.string()));
        }
        if (there && !existing.overwrite) {
            throw already_exists(fmt::format("{} exists; --overwrite replaces it", path.string()));
        }
        store_ = zip_store(path, there ? ZipMode::replace : ZipMode::create);
    }

    Array& add(const std::string& node, const PlannedArray& plan, std::string_view /*made_from*/) override {
        arrays_.push_back(Array::create(store_, node, *plan.dialect, plan.metadata, false));
        if (plan.attributes) arrays_.back().attributes().replace(*plan.attributes);
        return arrays_.back();
    }
    [[nodiscard]] bool resumed() const override { return false; }
    bool drop() override { return false; }  // its chunks are in the zip
    void add_group(const PlannedGroup& group) override {
        if (group.dialect == nullptr || group.dialect->save_group == nullptr) return;
        group.dialect->save_group(*store_, group.node, group.attributes.value_or(Value::object()), group.unknown);
    }
    void commit() override {
        for (Array& array : arrays_) array.publish();
        store_->finish();
    }
    std::string keep() override { return store_->name(); }  // never: there is no resuming

private:
    std::shared_ptr<KeyValueStore> store_;
    std::deque<Array> arrays_;
};

}  // namespace

ArrayMetadata metadata_of_new(const ArrayOptions& options, bool format_chosen) {
    const auto made = [&](const Dialect& dialect) {
        ArrayOptions own = options;
        own.format = dialect.name;
        ArrayMetadata metadata = make_metadata(own);
        dialect.require_expressible(metadata);
        return metadata;
    };
    try {
        return made(dialect_named(options.format));
    } catch (const Error& e) {
        if (format_chosen) throw;
        const std::string advice = advised_format([&](const Dialect& dialect) {
            (void)made(dialect);
            return true;
        });
        if (advice.empty()) throw;
        throw Error(e.code(), e.what() + advice);
    }
}

std::optional<std::string> masking_note(const Dialect& dialect, const ArrayMetadata& m) {
    if (!dialect.fill_is_missing || !m.fill.bytes || *m.fill.bytes != zero_element(m.dtype)) return {};
    return fmt::format("xarray shows elements that equal the fill_value {} as missing; --fill null keeps them",
                       fill_text(m.dtype, m.fill));
}

bool uses_unknown_zstd(const Dialect& dialect, const ArrayMetadata& m) {
    if (dialect.cannot_read_zstd.empty()) return false;
    return std::ranges::any_of(m.codecs, [](const CodecConfig& codec) {
        const Value* cname = codec.configuration.find("cname");
        return cname != nullptr && *cname == Value("zstd");
    });
}

PlannedArray plan_array(const ArraySource& source, const TransferOptions& options,
                        const std::optional<Selection>& selection) {
    return in_context([&] { return source.name(); },
                      [&] {
                          const auto* cast = dynamic_cast<const CastSource*>(&source);
                          const auto* array = dynamic_cast<const Array*>(cast != nullptr ? &cast->array() : &source);
                          return array != nullptr ? plan_copy(*array, options, selection, cast)
                                                  : plan_new(source, options, selection);
                      });
}

std::unique_ptr<Destination> open_destination(const std::string& path, Existing existing) {
    if (fs::path(path).extension() == ".zip") return std::make_unique<ZipDestination>(path, existing);
    return std::make_unique<DirectoryDestination>(path, existing);
}

}  // namespace tessera::cli
