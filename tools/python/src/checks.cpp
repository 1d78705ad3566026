// verify, repair, seal, digest, diff, stats and snapshots, with the same members as the program's --json.
#include <pybind11/stl.h>
#include <tessera/advise_layout.h>
#include <tessera/chunk_index.h>
#include <tessera/chunk_statistics.h>
#include <tessera/conventions.h>

#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/dimensions.h>
#include <tessera/edit.h>
#include <tessera/error.h>
#include <tessera/find_elements.h>
#include <tessera/fixity_log.h>
#include <tessera/json.h>
#include <tessera/locate.h>
#include <tessera/meaning.h>
#include <tessera/measure.h>
#include <tessera/paced_progress.h>
#include <tessera/packages.h>
#include <tessera/place.h>
#include <tessera/quantities.h>
#include <tessera/report_values.h>
#include <tessera/ro_crate.h>
#include <tessera/seal.h>
#include <tessera/seal_difference.h>
#include <tessera/seal_signature.h>
#include <tessera/shared_source.h>
#include <tessera/slices.h>
#include <tessera/snapshot.h>
#include <tessera/tree_difference.h>
#include <tessera/verify.h>
#include <tessera/verify_signature.h>
#include <tessera/verify_to_seal.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

py::object text(const std::string& bytes) {
    return value_to_python(Value(bytes));
}

/// A report as a dict, in which indices are tuples.
py::object report_to_python(const Value& value) {
    if (value.is_array()) {
        py::list list;
        for (const Value& item : value.as_array()) list.append(report_to_python(item));
        return list;
    }
    if (!value.is_object()) return value_to_python(value);
    py::dict dict;
    for (const auto& [name, item] : value.as_object()) {
        const bool index = name == "chunk" || name == "inner" || name == "index" || name == "largest_at";
        py::object member = report_to_python(item);
        dict[py::str(name)] = index && item.is_array() ? py::tuple(member) : member;
    }
    return dict;
}

py::object verify_path(const py::object& path, bool seals, bool complete, bool ome, bool geo, bool record,
                       const std::string& rate, const std::optional<std::string>& signers, const WorkOptions& options) {
    const std::string name = path_from_python(path);
    if (record && (ome || geo))
        throw invalid_argument("record: no chunk is read for ome and geo, so there is nothing to record");
    if (record) (void)require_fixity_directory(name);
    const VerifyReport report = Work(options).run([&](IoOptions io) {
        std::optional<PacedProgress> paced;
        if (!rate.empty()) io.progress = &paced.emplace(parse_bytes("rate", rate), io.progress);
        VerifyReport found = verify(name, {.io = io, .seals = seals, .complete = complete, .ome = ome, .geo = geo});
        if (signers) add_signature(found, name, *signers);
        return found;
    });
    Value value = verified_value(name, report, advised);
    if (record) {
        Value found = verified_counts(report);
        if (complete) found.set("complete", true);
        if (!seals) found.set("without_seals", true);
        value.set("recorded", append_fixity(require_fixity_directory(name), "verify", TESSERA_VERSION, found));
    }
    return report_to_python(value);
}

/// What the fixity log holds, as `tessera log --fixity --json` shows it.
py::object fixity_of(const py::object& path) {
    const std::string name = path_from_python(path);
    return report_to_python(fixity_value(read_fixity(require_fixity_directory(name))));
}

py::object difference_of_sums(const py::object& a, const py::object& b) {
    const std::string one = path_from_python(a);
    const std::string two = path_from_python(b);
    return report_to_python(
        seal_difference_value(Work().run([&](const IoOptions&) { return seal_difference(one, two); })));
}

/// As at_place(), also for seals that lie beside what they are of.
template <class Look>
auto at_seal(const std::string& path, const StoreOptions& options, bool make, const Look& look) {
    if (const auto beside = place_beside(path, options, make)) return look(*beside);
    return at_place(path, options, look);
}

py::object repair_path(const py::object& path, bool dry_run, bool give_up_batches, bool drop_damaged, bool to_seal,
                       const std::vector<std::string>& to_seal_names, const std::optional<std::string>& from,
                       const PlaceOptions& place, const WorkOptions& options) {
    const std::string name = path_from_python(path);
    const RepairReport report = Work(options).run([&](const IoOptions& io) {
        std::optional<Place> copy;
        if (from) copy = find_place(*from, {.read_only = true});
        return at_seal(name, place.store(), false, [&](const Place& at) {
            return repair(at, {.io = io,
                               .dry_run = dry_run,
                               .give_up_batches = give_up_batches,
                               .drop_damaged = drop_damaged,
                               .to_seal = to_seal,
                               .to_seal_names = to_seal_names,
                               .from = copy});
        });
    });
    if (!dry_run && report.done > 0) (void)note_fixity(name, "repair", TESSERA_VERSION, repaired_counts(report));
    return report_to_python(repaired_value(name, report, dry_run, advised));
}

/// `parity`: "" as it is, "0" for none, or a redundancy.
py::object seal_path(const py::object& path, bool unchecked, bool overwrite, const std::string& parity,
                     const std::vector<std::string>& accept, bool check, bool readme,
                     const std::optional<std::string>& sign, const std::optional<std::string>& citation,
                     const PlaceOptions& place, const WorkOptions& options) {
    const std::string name = path_from_python(path);
    if (sign) require_signing_key(*sign);
    SealOptions how{.overwrite = overwrite, .accept = accept, .check = check, .readme = readme};
    how.drop_parity = parity == "0";
    if (!parity.empty() && !how.drop_parity) how.parity = parse_redundancy(parity);
    const Sealed sealed = Work(options).run([&](const IoOptions& io) {
        how.io = io;
        return at_seal(name, place.store(), true, [&](const Place& at) {
            if (!unchecked) require_sound(verify_to_seal(at, check, false, io), name);
            if (citation) {
                how.beside.emplace_back(
                    ro_crate_name, ro_crate_text(at, {.citation = *citation, .version = TESSERA_VERSION, .io = io}));
            }
            Sealed made = seal(at, how);
            if (sign) (void)sign_seal(at, *sign);
            return made;
        });
    });
    if (sealed.signature_gone && !sign)
        warn(name + ": the seal before was signed, and this one is not: sign= signs it");
    (void)note_fixity(name, "seal", TESSERA_VERSION, sealed_counts(sealed));
    const bool file = std::filesystem::is_regular_file(name);
    return report_to_python(sealed_value(
        name, file ? name + ".tessera-seal/sha256sums.txt" : (std::filesystem::path(name) / seal_key).string(),
        sealed));
}

py::object make_bag_of(const py::object& path, bool unchecked, const py::object& bag, const std::string& parity,
                       const std::vector<std::string>& info, const PlaceOptions& place, const WorkOptions& options) {
    const std::string name = path_from_python(path);
    const std::string to = path_from_python(bag);
    const BagInfo labels = parse_bag_info(info);
    std::optional<Redundancy> redundancy;
    if (!parity.empty() && parity != "0") redundancy = parse_redundancy(parity);
    const Sealed sealed = Work(options).run([&](const IoOptions& io) {
        return at_place(name, options_to_copy(name, place.store()), [&](const Place& at) {
            if (!unchecked) require_sound(verify_to_seal(at, false, true, io), name);
            const std::string last = real_path(name).filename().string();
            return make_bag(at, last, to, {.info = labels, .parity = redundancy, .io = io, .store = place.store()});
        });
    });
    return report_to_python(sealed_value(name, (std::filesystem::path(to) / "manifest-sha256.txt").string(), sealed));
}

py::object add_ocfl_version_of(const py::object& path, bool unchecked, const py::object& root, const std::string& id,
                               const std::string& message, const PlaceOptions& place, const WorkOptions& options) {
    const std::string name = path_from_python(path);
    const std::string to = path_from_python(root);
    const OcflVersionAdded added = Work(options).run([&](const IoOptions& io) {
        return at_place(name, options_to_copy(name, place.store()), [&](const Place& at) {
            if (!unchecked) require_sound(verify_to_seal(at, false, true, io), name);
            return add_ocfl_version(at, to, id,
                                    {.message = message, .user = log_line({}).who, .io = io, .store = place.store()});
        });
    });
    return report_to_python(ocfl_value(name, id, added));
}

py::object make_packages_of(const py::object& path, const py::object& folder, const std::string& size,
                            const std::string& parity, const PlaceOptions& place, const WorkOptions& options) {
    const std::string name = path_from_python(path);
    const std::string to = path_from_python(folder);
    PackageOptions how{.size = parse_bytes("size", size), .store = place.store()};
    if (!parity.empty() && parity != "0") how.parity = parse_redundancy(parity);
    const Packaged made = Work(options).run([&](const IoOptions& io) {
        how.io = io;
        return at_place(name, options_to_copy(name, place.store()),
                        [&](const Place& at) { return make_packages(at, to, how); });
    });
    return report_to_python(packaged_value(name, to, made));
}

std::string digest_of(ArrayHandle& handle, const WorkOptions& options) {
    const auto parts = handle.parts();
    const ArraySource& source = parts->readable();
    return Work(options).run([&](const IoOptions& io) { return digest(source, io); });
}

std::string digest_at(const py::object& path, const WorkOptions& options) {
    const std::string name = path_from_python(path);
    return Work(options).run([&](const IoOptions& io) {
        return at_located(name, [&](const Located& at) { return digest(at, io).digest; });
    });
}

py::object index_of(ArrayHandle& handle, const py::object& path, const WorkOptions& options) {
    const auto parts = handle.parts();
    const ArraySource& source = parts->readable();
    return report_to_python(indexed_value(
        path_from_python(path), Work(options).run([&](const IoOptions& io) { return index_chunks(source, io); })));
}

py::object advise_for(ArrayHandle& handle, const py::object& path, const std::string& reads,
                      const WorkOptions& options) {
    const auto parts = handle.parts();
    const ArraySource& source = parts->readable();
    const auto patterns = parse_reads(reads, source.info().shape, dimension_names_of(source));
    const LayoutAdvice advice =
        Work(options).run([&](const IoOptions& io) { return advise_layout(source, patterns, io); });
    return report_to_python(advice_value(path_from_python(path), patterns, advice));
}

py::object difference_of(ArrayHandle& a, ArrayHandle& b, double atol, double rtol, int places, bool raw,
                         const WorkOptions& options) {
    const auto compare = raw ? difference : difference_by_meaning;
    const auto parts_a = a.parts();
    const auto parts_b = b.parts();
    const ArraySource& one = parts_a->readable();
    const ArraySource& two = parts_b->readable();
    const Difference found = Work(options).run(
        [&](const IoOptions& io) { return compare(one, two, {.atol = atol, .rtol = rtol}, places, io); });
    return report_to_python(difference_value(found));
}

/// None unless each path leads to several arrays.
py::object tree_difference_of(const py::object& a, const py::object& b, double atol, double rtol, int places, bool raw,
                              const WorkOptions& options) {
    const std::string one = path_from_python(a);
    const std::string two = path_from_python(b);
    const Comparing how{.tolerance = {.atol = atol, .rtol = rtol}, .places = places, .raw = raw};
    const auto found = Work(options).run([&](const IoOptions& io) {
        return at_located(one, [&](const Located& at_a) {
            return at_located(two, [&](const Located& at_b) {
                const CompareTrees compare = tree_comparison(at_a, at_b);
                return compare ? std::optional(compare(how, io)) : std::nullopt;
            });
        });
    });
    return found ? report_to_python(tree_difference_value(*found)) : py::none();
}

/// What an array's elements stand for, or its codes.
std::unique_ptr<ArraySource> shown(const std::shared_ptr<ArrayParts>& parts, bool raw) {
    auto codes = shared_source(std::shared_ptr<const ArraySource>(parts, &parts->readable()));
    return raw ? std::move(codes) : decoded(std::move(codes));
}

/// The statistics of each field, or one entry for plain elements.
py::list statistics_of(ArrayHandle& handle, int bins, bool raw, bool by_index, const WorkOptions& options) {
    const auto parts = handle.parts();
    const auto index = ChunkIndex::of(parts->readable(), raw);
    const auto source = shown(parts, raw);
    std::optional<ElementBytes> fill = source->fill_bytes();
    if (parts->array && source->converted_from() == nullptr) fill = parts->array->metadata().fill.bytes;
    const auto found = Work(options).run([&](const IoOptions& io) {
        auto some = statistics(*source, index, by_index ? IndexUse::use : IndexUse::ignore, fill, bins, io);
        return raw ? some : with_dates(std::move(some), *source);
    });
    py::list list;
    for (const Statistics& one : found) {
        Value value{{"field", one.field}};
        add_statistics(value, one);
        list.append(report_to_python(value));
    }
    return list;
}

NDArray elements_of(const py::array& array, const DType& dtype) {
    const ArrayView view = view_to_read(array, dtype);
    NDArray elements(dtype, view.shape);
    copy_elements(view, elements.view());
    return elements;
}

py::array to_numpy(const NDArray& elements, const DType& dtype) {
    const py::array made = empty_array(dtype_to_numpy(dtype), elements.shape());
    std::copy(elements.bytes().begin(), elements.bytes().end(),
              static_cast<std::byte*>(py::array(made).mutable_data()));
    return made;
}

/// The indices as numpy.argwhere gives them.
py::array find_in(ArrayHandle& handle, const std::string& condition, const std::string& selection, bool raw,
                  bool by_index, const WorkOptions& options) {
    const auto parts = handle.parts();
    NDArray indices;
    Work(options).run([&](const IoOptions& io) {
        FindOptions how{.raw = raw, .by_index = by_index, .io = io};
        if (!selection.empty()) how.selection = parse_selection(selection, parts->readable());
        const FoundElements found = find_elements(parts->readable(), condition, how);
        indices = found.indices();
    });
    return to_numpy(indices, indices.dtype());
}

/// Booleans in the shape of the grid of chunks; None if nothing is known.
py::object may_match(ArrayHandle& handle, const std::string& condition, const WorkOptions& options) {
    const auto parts = handle.parts();
    const auto may = Work(options).run(
        [&](const IoOptions& io) { return chunks_that_may_match(parts->readable(), condition, {.io = io}); });
    return may ? py::object(to_numpy(*may, may->dtype())) : py::none();
}

/// Arrays by their names in tessera.types.ChunkStatistics; and `lacks`, unless each chunk has extremes.
py::dict chunk_stats(ArrayHandle& handle, bool raw, bool by_index, const WorkOptions& options) {
    const Array array = handle.array();
    const ChunkStatistics found = Work(options).run([&](const IoOptions& io) {
        return chunk_statistics(array, raw, by_index ? IndexUse::use : IndexUse::ignore, io);
    });
    py::dict arrays;
    const auto put = [&](const char* name, const NDArray& of) { arrays[name] = to_numpy(of, of.dtype()); };
    put("stored", found.stored);
    put("stored_bytes", found.stored_bytes);
    if (!found.elements) return arrays;
    put("count", found.elements->count);
    put("missing", found.elements->missing);
    put("min", found.elements->min);
    put("max", found.elements->max);
    put("mean", found.elements->mean);
    if (found.elements->may_lack) put("lacks", found.elements->lacks);
    return arrays;
}

Meaning meaning_of_handle(ArrayHandle& handle) {
    const auto parts = handle.parts();
    return meaning_of(parts->readable());
}

py::object decoded_type(ArrayHandle& handle) {
    const Meaning meaning = meaning_of_handle(handle);
    if (!meaning.says_more(native_dtype(handle.dtype()))) return py::none();
    return dtype_to_numpy(decoded_dtype(meaning));
}

/// Values of codes, and for integers that stay so which are missing.
py::tuple decoded_codes(ArrayHandle& handle, const py::array& codes) {
    const Meaning meaning = meaning_of_handle(handle);
    const DecodedElements found = decoded_elements(meaning, elements_of(codes, handle.dtype_of(codes)));
    const py::array values = to_numpy(found.values, found.values.dtype());
    if (!meaning.marks_missing()) return py::make_tuple(values, py::none());
    return py::make_tuple(values, found.missing);
}

/// The codes of values, where `present` are now. `marked`: the least integer stands for a missing one.
py::array encoded_values(ArrayHandle& handle, const py::array& values, const py::array& present, bool marked) {
    const Meaning meaning = meaning_of_handle(handle);
    const auto given = std::make_shared<NDArray>(elements_of(values, dtype_from_numpy(values.dtype())));
    auto source = view_source(std::as_const(*given).view(), "values");
    if (marked) source = decoded_source(shared_source(std::move(source), Value{{"_FillValue", missing_integer}}));
    const auto encoded = encoded_source(std::move(source), meaning, Value::object());
    NDArray codes(encoded->info().dtype, encoded->info().shape);
    encoded->read_into(Region::whole(codes.shape()), codes.view(), {});
    keep_codes(meaning, elements_of(present, handle.dtype_of(present)), codes);
    return to_numpy(codes, native_dtype(handle.dtype()));
}

std::optional<std::int64_t> outside_of(ArrayHandle& handle, const WorkOptions& options) {
    const auto parts = handle.parts();
    return Work(options).run([&](const IoOptions& io) { return outside_valid_range(parts->readable(), io); });
}

/// Further statistics by their words; those of NumPy's own scalars.
py::dict further_statistics(ArrayHandle& handle, const std::vector<std::string>& words, bool raw,
                            const WorkOptions& options) {
    const auto source = shown(handle.parts(), raw);
    py::dict found;
    for (const std::string& word : words) {
        const NDArray value =
            Work(options).run([&](const IoOptions& io) { return statistic(*source, word, std::nullopt, io); });
        found[py::str(word)] = value_to_python(element_to_json(value.dtype(), value.bytes().data()));
    }
    return found;
}

void bind_snapshots(py::module_& module) {
    module.def(
        "create_snapshot",
        [](const py::object& path, const std::string& name, bool sums, const PlaceOptions& place,
           const WorkOptions& options) {
            const std::string of = path_from_python(path);
            return report_to_python(snapshot_value(Work(options).run(
                [&](const IoOptions& io) { return create_snapshot(of, name, place.store(), io, {.sums = sums}); })));
        },
        py::arg("path"), py::arg("name"), py::kw_only(), py::arg("sums"), py::arg("place"), py::arg("options"));
    module.def("list_snapshots", [](const py::object& path) {
        const std::string of = path_from_python(path);
        py::list list;
        for (const SnapshotInfo& info : Work().run([&](const IoOptions&) { return list_snapshots(of); })) {
            list.append(report_to_python(snapshot_value(info)));
        }
        return list;
    });
    module.def(
        "restore_snapshot",
        [](const py::object& path, const std::string& name, bool skip_damaged, const PlaceOptions& place,
           const WorkOptions& options) {
            const std::string of = path_from_python(path);
            const auto lost = Work(options).run([&](const IoOptions& io) {
                return restore_snapshot(of, name, place.store(), io, {.skip_damaged = skip_damaged});
            });
            (void)note_fixity(of, "restore", TESSERA_VERSION,
                              {{"sound", lost.empty()}, {"snapshot", name}, {"lost", std::ssize(lost)}});
            py::list list;
            for (const std::string& one : lost) list.append(text(one));
            return list;
        },
        py::arg("path"), py::arg("name"), py::kw_only(), py::arg("skip_damaged"), py::arg("place"), py::arg("options"));
    module.def("remove_snapshot", [](const py::object& path, const std::string& name, const PlaceOptions& place) {
        const std::string of = path_from_python(path);
        Work().run([&](const IoOptions&) { remove_snapshot(of, name, place.store()); });
    });
}

}  // namespace

void bind_checks(py::module_& module) {
    module.def("verify", &verify_path, py::arg("path"), py::kw_only(), py::arg("seals"), py::arg("complete"),
               py::arg("ome"), py::arg("geo"), py::arg("record"), py::arg("rate"), py::arg("signers"),
               py::arg("options"));
    module.def("fixity", &fixity_of, py::arg("path"));
    module.def("whole_of_packages", &whole_of_packages);
    module.def("make_packages", &make_packages_of, py::arg("path"), py::arg("folder"), py::arg("size"),
               py::arg("parity"), py::arg("place"), py::arg("options"));
    module.def("difference_of_sums", &difference_of_sums, py::arg("a"), py::arg("b"));
    module.def("repair", &repair_path, py::arg("path"), py::kw_only(), py::arg("dry_run"), py::arg("give_up_batches"),
               py::arg("drop_damaged"), py::arg("to_seal"), py::arg("to_seal_names"), py::arg("from_copy"),
               py::arg("place"), py::arg("options"));
    module.def("seal", &seal_path, py::arg("path"), py::kw_only(), py::arg("unchecked"), py::arg("overwrite"),
               py::arg("parity"), py::arg("accept"), py::arg("check"), py::arg("readme"), py::arg("sign"),
               py::arg("citation"), py::arg("place"), py::arg("options"));
    module.def("make_bag", &make_bag_of);
    module.def("add_ocfl_version", &add_ocfl_version_of);
    module.def("digest", &digest_of);
    module.def("digest_at", &digest_at);
    module.def("difference", &difference_of);
    module.def("tree_difference", &tree_difference_of);
    module.def("statistics", &statistics_of);
    module.def("index", &index_of);
    module.def("advise", &advise_for);
    module.def("find", &find_in);
    module.def("chunk_stats", &chunk_stats);
    module.def("may_match", &may_match);
    module.def("decoded_type", &decoded_type);
    module.def("decoded_codes", &decoded_codes);
    module.def("encoded_values", &encoded_values);
    module.def("outside_valid", &outside_of);
    module.def("further_statistics", &further_statistics);
    bind_snapshots(module);
}

}  // namespace tessera::python
