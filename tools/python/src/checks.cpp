// verify, repair, seal, digest, diff, stats and snapshots, with the same members as the program's --json.
#include <pybind11/stl.h>

#include <tessera/copy.h>
#include <tessera/error.h>
#include <tessera/json.h>
#include <tessera/measure.h>
#include <tessera/place.h>
#include <tessera/seal.h>
#include <tessera/snapshot.h>
#include <tessera/verify.h>

#include <string>
#include <string_view>
#include <vector>

#include "convert.h"
#include "handle.h"

namespace tessera::python {

namespace {

py::object text(const std::string& bytes) {
    return value_to_python(Value(bytes));
}

py::dict finding_to_python(const Finding& finding) {
    py::dict value;
    value["kind"] = std::string(kind_name(finding.kind));
    value["node"] = text(finding.node);
    value["key"] = text(finding.key);
    value["chunk"] = finding.chunk ? py::object(shape_to_python(*finding.chunk)) : py::none();
    if (finding.inner) value["inner"] = shape_to_python(*finding.inner);
    value["text"] = text(advised(finding.text, finding.advice));
    if (!finding.rule.empty()) value["rule"] = std::string(finding.rule);
    value["repairable"] = finding.remedy != Remedy::none;
    return value;
}

py::list findings_to_python(const std::vector<Finding>& findings) {
    py::list list;
    for (const Finding& finding : findings) list.append(finding_to_python(finding));
    return list;
}

/// `for_seal`: files with parity that have the size and time of their seal are not decoded again.
VerifyReport verify_at(const std::string& path, bool seals, bool complete, bool ome, bool geo, bool for_seal,
                       const IoOptions& io) {
    VerifyOptions options{.io = io, .seals = seals, .complete = complete, .ome = ome, .geo = geo};
    if (!for_seal || !std::filesystem::is_directory(path)) return verify(path, options);
    return at_place(path, {.read_only = true}, [&](const Place& at) {
        options.trust = unchanged_since_seal(at);
        return verify(at, options);
    });
}

py::dict verify_path(const py::object& path, bool seals, bool complete, bool ome, bool geo, bool for_seal,
                     const WorkOptions& options) {
    const std::string name = path_from_python(path);
    const VerifyReport report = Work(options).run(
        [&](const IoOptions& io) { return verify_at(name, seals, complete, ome, geo, for_seal, io); });
    py::dict value;
    value["path"] = text(name);
    value["sound"] = report.sound();
    value["absent"] = report.absent;
    value["arrays"] = report.arrays;
    value["groups"] = report.groups;
    value["chunks"] = report.chunks;
    value["missing"] = report.missing;
    value["bytes"] = report.bytes;
    value["seals"] = report.seals;
    value["files_as_sealed"] = report.sealed;
    value["findings"] = findings_to_python(report.findings);
    return value;
}

/// As at_place(), also for seals that lie beside what they are of.
template <class Look>
auto at_seal(const std::string& path, const StoreOptions& options, bool make, const Look& look) {
    if (const auto beside = place_beside(path, options, make)) return look(*beside);
    return at_place(path, options, look);
}

py::dict set_aside_to_python(const SetAside& files) {
    py::dict value;
    value["files"] = files.files;
    value["bytes"] = files.bytes;
    return value;
}

py::dict repair_path(const py::object& path, bool dry_run, bool give_up_batches, bool drop_damaged, bool to_seal,
                     const std::vector<std::string>& to_seal_names, const PlaceOptions& place,
                     const WorkOptions& options) {
    const std::string name = path_from_python(path);
    const RepairReport report = Work(options).run([&](const IoOptions& io) {
        return at_seal(name, place.store(), false, [&](const Place& at) {
            return repair(at, {.io = io,
                               .dry_run = dry_run,
                               .give_up_batches = give_up_batches,
                               .drop_damaged = drop_damaged,
                               .to_seal = to_seal,
                               .to_seal_names = to_seal_names});
        });
    });
    py::dict value;
    value["path"] = text(name);
    value["dry_run"] = dry_run;
    value["mended"] = report.mended();
    value["done"] = report.done;
    value["lost_elements"] = report.lost();
    py::list actions;
    for (const Repaired& one : report.actions) {
        py::dict action = finding_to_python(one.finding);
        action["done"] = one.done;
        action["outcome"] = text(one.text);
        action["lost_elements"] = one.lost;
        actions.append(action);
    }
    value["actions"] = actions;
    value["remaining"] = findings_to_python(report.remaining);
    value["set_aside"] = set_aside_to_python(report.set_aside);
    value["dropped"] = set_aside_to_python(report.dropped);
    return value;
}

py::dict sealed_to_python(const Sealed& sealed, const std::string& path, const std::string& manifest) {
    py::dict value;
    value["path"] = text(path);
    value["manifest"] = text(manifest);
    value["files"] = sealed.files;
    value["bytes"] = sealed.bytes;
    value["written"] = sealed.written;
    value["parity_bytes"] = sealed.parity_bytes;
    value["outside"] = sealed.outside;
    return value;
}

/// `parity`: "" as it is, "0" for none, or a redundancy.
py::dict seal_path(const py::object& path, bool overwrite, const std::string& parity,
                   const std::vector<std::string>& accept, bool check, const PlaceOptions& place,
                   const WorkOptions& options) {
    const std::string name = path_from_python(path);
    SealOptions how{.overwrite = overwrite, .accept = accept, .check = check};
    how.drop_parity = parity == "0";
    if (!parity.empty() && !how.drop_parity) how.parity = parse_redundancy(parity);
    const Sealed sealed = Work(options).run([&](const IoOptions& io) {
        how.io = io;
        return at_seal(name, place.store(), true, [&](const Place& at) { return seal(at, how); });
    });
    const bool file = std::filesystem::is_regular_file(name);
    return sealed_to_python(
        sealed, name, file ? name + ".tessera-seal/sha256sums.txt" : (std::filesystem::path(name) / seal_key).string());
}

py::dict make_bag_of(const py::object& path, const py::object& bag, const std::string& parity,
                     const PlaceOptions& place, const WorkOptions& options) {
    const std::string name = path_from_python(path);
    const std::string to = path_from_python(bag);
    std::optional<Redundancy> redundancy;
    if (!parity.empty() && parity != "0") redundancy = parse_redundancy(parity);
    const Sealed sealed = Work(options).run([&](const IoOptions& io) {
        StoreOptions reading = place.store();
        reading.read_only = true;
        return at_place(name, reading, [&](const Place& at) {
            const std::string last = real_path(name).filename().string();
            return make_bag(at, last, to, io, place.store(), redundancy);
        });
    });
    return sealed_to_python(sealed, name, (std::filesystem::path(to) / "manifest-sha256.txt").string());
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

py::dict difference_of(ArrayHandle& a, ArrayHandle& b, double atol, double rtol, int places,
                       const WorkOptions& options) {
    const auto parts_a = a.parts();
    const auto parts_b = b.parts();
    const ArraySource& one = parts_a->readable();
    const ArraySource& two = parts_b->readable();
    const Difference found = Work(options).run(
        [&](const IoOptions& io) { return difference(one, two, {.atol = atol, .rtol = rtol}, places, io); });
    py::dict value;
    value["equal"] = found.none();
    value["structure"] = found.structure;
    value["elements"] = found.elements;
    value["different"] = found.different;
    py::list first;
    for (const Difference::Place& place : found.first) {
        py::dict entry;
        entry["index"] = shape_to_python(place.index);
        entry["a"] = value_to_python(place.json_a);
        entry["b"] = value_to_python(place.json_b);
        first.append(entry);
    }
    value["first"] = first;
    value["largest"] = found.largest ? py::object(py::float_(*found.largest)) : py::none();
    value["largest_at"] = found.largest ? py::object(shape_to_python(found.largest_at)) : py::none();
    return value;
}

py::object histogram_to_python(const std::optional<Histogram>& histogram) {
    if (!histogram) return py::none();
    py::dict value;
    value["start"] = histogram->start;
    value["width"] = histogram->width;
    value["counts"] = histogram->counts;
    return value;
}

py::object mean_to_python(const Statistics& s) {
    if (!s.mean) return py::none();
    if (const auto date = mean_date_text(s.dtype, *s.mean)) return py::str(*date);
    return py::float_(*s.mean);
}

py::dict statistics_to_python(const Statistics& s) {
    py::dict value;
    value["field"] = s.field;
    value["dtype"] = s.dtype.to_string();
    value["count"] = s.count;
    value["nan"] = s.nans;
    value["fill"] = s.fills;
    value["min"] = value_to_python(s.min_json);
    value["max"] = value_to_python(s.max_json);
    value["mean"] = mean_to_python(s);
    value["deviation"] = s.deviation ? py::object(py::float_(*s.deviation)) : py::none();
    value["histogram"] = histogram_to_python(s.histogram);
    return value;
}

/// The statistics of each field, or one entry for plain elements.
py::list statistics_of(ArrayHandle& handle, int bins, const WorkOptions& options) {
    const auto parts = handle.parts();
    std::optional<ElementBytes> fill;
    if (parts->array) fill = parts->array->metadata().fill.bytes;
    const auto found =
        Work(options).run([&](const IoOptions& io) { return statistics(parts->readable(), fill, bins, io); });
    py::list list;
    for (const Statistics& one : found) list.append(statistics_to_python(one));
    return list;
}

/// Further statistics by their words; those of NumPy's own scalars.
py::dict further_statistics(ArrayHandle& handle, const std::vector<std::string>& words, const WorkOptions& options) {
    const auto parts = handle.parts();
    py::dict found;
    for (const std::string& word : words) {
        const NDArray value = Work(options).run(
            [&](const IoOptions& io) { return statistic(parts->readable(), word, std::nullopt, io); });
        found[py::str(word)] = value_to_python(element_to_json(value.dtype(), value.bytes().data()));
    }
    return found;
}

py::dict snapshot_to_python(const SnapshotInfo& info) {
    py::dict value;
    value["name"] = text(info.name);
    value["path"] = text(info.path.string());
    value["of"] = text(info.node);
    value["made"] = info.made;
    value["arrays"] = info.arrays;
    value["files"] = info.files;
    value["bytes"] = info.bytes;
    value["reflinked"] = info.reflinked;
    value["linked"] = info.linked;
    value["copied"] = info.copied;
    value["sums"] = info.sums;
    return value;
}

void bind_snapshots(py::module_& module) {
    module.def(
        "create_snapshot",
        [](const py::object& path, const std::string& name, bool sums, const PlaceOptions& place,
           const WorkOptions& options) {
            const std::string of = path_from_python(path);
            return snapshot_to_python(Work(options).run(
                [&](const IoOptions& io) { return create_snapshot(of, name, place.store(), io, {.sums = sums}); }));
        },
        py::arg("path"), py::arg("name"), py::kw_only(), py::arg("sums"), py::arg("place"), py::arg("options"));
    module.def("list_snapshots", [](const py::object& path) {
        const std::string of = path_from_python(path);
        py::list list;
        for (const SnapshotInfo& info : Work().run([&](const IoOptions&) { return list_snapshots(of); })) {
            list.append(snapshot_to_python(info));
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
               py::arg("ome"), py::arg("geo"), py::arg("for_seal"), py::arg("options"));
    module.def("repair", &repair_path, py::arg("path"), py::kw_only(), py::arg("dry_run"), py::arg("give_up_batches"),
               py::arg("drop_damaged"), py::arg("to_seal"), py::arg("to_seal_names"), py::arg("place"),
               py::arg("options"));
    module.def("seal", &seal_path, py::arg("path"), py::kw_only(), py::arg("overwrite"), py::arg("parity"),
               py::arg("accept"), py::arg("check"), py::arg("place"), py::arg("options"));
    module.def("make_bag", &make_bag_of);
    module.def("digest", &digest_of);
    module.def("digest_at", &digest_at);
    module.def("difference", &difference_of);
    module.def("statistics", &statistics_of);
    module.def("further_statistics", &further_statistics);
    bind_snapshots(module);
}

}  // namespace tessera::python
