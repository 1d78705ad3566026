#include <tessera/verify.h>

#include <fmt/format.h>
#include <tessera/own_names.h>
#include <tessera/place.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "bag_names.h"
#include "bag_state.h"
#include "keys.h"
#include "node_files.h"
#include "ocfl_inventory.h"
#include "other_files.h"
#include "sealed_file_store.h"
#include "verifier.h"

namespace tessera {

void VerifyRun::add(Finding finding) {
    // A report shows the key of each finding. So the file's name is removed from a read error that begins with it.
    const std::string named = store->name_of(place(finding.key)) + ": ";
    if (!finding.key.empty() && finding.text.starts_with(named)) finding.text.erase(0, named.size());
    const std::lock_guard lock(mutex_);
    report.findings.push_back(std::move(finding));
}

VerifyReport Verifier::run() {
    while (walk_.next()) {
        const std::string path = walk_.path();
        run_.guarded({.node = path}, [&] { check_node(path); });
    }
    for (const PassedFolder& passed : walk_.passed()) check_passed(passed);
    for (const std::string& path : maybe_sealed_) {
        const bool sealed = verify_node_seal(run_, path);
        // What a bag holds counts as it is, another bag too.
        const auto is_above = [&path](const std::string& bag) {
            return bag != path && (bag.empty() || path.starts_with(bag + '/'));
        };
        if (std::ranges::count(bags_, path) == 0 || std::ranges::any_of(bags_, is_above)) continue;
        verify_bag(run_, path, sealed);
    }
    if (!bags_.empty()) leave_bags();
    if (run_.report.absent > 0) forget_absent_in_seals(run_.report);
    // The worst come first, then by key, so that the order does not depend on the threads.
    std::ranges::stable_sort(run_.report.findings, {}, [](const Finding& f) {
        return std::tuple(f.kind, std::string_view(f.key.empty() ? f.node : f.key));
    });
    return std::move(run_.report);
}

VerifyReport Verifier::run_beside(VerifyReport found) {
    run_.report = std::move(found);
    Listing own;
    const std::string folder(own_folder);
    if (run_.guarded({.node = {}, .key = folder}, [&] { own = run_.store->list(folder); })) {
        OtherFiles(run_, "").check_manifest_place(own);
        (void)verify_node_seal(run_, "");
    }
    std::ranges::stable_sort(run_.report.findings, {}, &Finding::kind);
    return std::move(run_.report);
}

void Verifier::check_node(const std::string& path) {
    const std::string prefix = run_.place(path);
    // The chunks of an array may be too many to list them.
    std::vector<std::string> folders;
    bool ocfl = false, bag = false;
    run_.store->for_each(
        prefix,
        [&](std::string_view name, const auto&) {
            ocfl = ocfl || is_of_ocfl_object(name);
            bag = bag || name == bag_declaration;
        },
        [&](std::string_view name, bool) { folders.emplace_back(name); });
    if (ocfl) return verify_ocfl(run_, path);
    if (bag) bags_.push_back(path);  // whatever else it is
    std::ranges::sort(folders);
    const OtherFiles files(run_, path);
    files.check_temporaries(path);
    const bool own_is_whole = files.check_place(join_key(path, own_folder));
    const bool unfinished = own_is_whole && holds(folders, own_folder) && files.check_own();
    if (const Dialect* dialect = probe_dialect({*run_.store, prefix})) {
        verify_array(run_, path, *dialect, folders);
    } else {
        const Dialect* const group = probe_group_dialect({*run_.store, prefix});
        const Listing& listing = walk_.listing();
        if (!unfinished) check_group(path, group, listing);  // else its files are no array yet
    }
    if (!own_is_whole) return;
    if (run_.options.seals) maybe_sealed_.push_back(path);
    verify_snapshot(run_, path);
}

void Verifier::check_group(const std::string& path, const Dialect* dialect, const Listing& listing) {
    bool orphans = false;
    if (is_bag(listing) && (bags_.empty() || bags_.back() != path)) bags_.push_back(path);
    if (dialect != nullptr) {
        ++run_.report.groups;
        verify_group_documents(run_, path, *dialect);
    } else {
        orphans = lost_.check(path, listing);
    }
    const OtherFiles files(run_, path);
    const auto owned = [&](std::string_view name) {
        return name == readme_name || name == dialect->consolidated_key ||
               std::ranges::count(dialect->documents, name) > 0;
    };
    for (const std::string& name : listing.keys) {
        if (files.check_name(name) || dialect == nullptr || owned(name) || is_description(name)) continue;
        files.add_stray(join_key(path, name), "a file that is no part of the group");
    }
    for (const std::string& name : listing.prefixes) {
        const std::string child = join_key(path, name);
        if (orphans && LostArrays::is_part_name(name) && !probe_node({*run_.store, run_.place(child)})) continue;
        if (files.check_own_folder(name)) continue;
        if (!name.starts_with('.') || probe_node({*run_.store, run_.place(child)})) {
            walk_.enter(name);
        } else if (dialect != nullptr) {
            files.add_stray(child, "a directory that is no part of the group");
        }
    }
}

void Verifier::leave_bags() {
    for (Finding& finding : run_.report.findings) {
        const std::string& at = finding.key.empty() ? finding.node : finding.key;
        const bool in_bag = std::ranges::any_of(
            bags_, [&](const std::string& bag) { return bag.empty() || (at + '/').starts_with(bag + '/'); });
        if (in_bag && finding.remedy != Remedy::restore) finding.remedy = Remedy::none;
    }
}

void Verifier::check_passed(const PassedFolder& passed) {
    if (passed.why == PassedFolder::Why::too_deep) {
        run_.add({.kind = FindingKind::unchecked,
                  .node = passed.path,
                  .text = fmt::format("folders are nested deeper than {}: what lies there is not looked at",
                                      deepest_folder)});
    } else if (passed.why == PassedFolder::Why::elsewhere) {
        run_.add({.kind = FindingKind::note,
                  .node = passed.path,
                  .text = fmt::format("a symbolic link to {}, which is no array and no group with metadata: it is not "
                                      "followed",
                                      passed.target)});
    }
}

std::int64_t VerifyReport::count(FindingKind kind) const {
    return std::ranges::count(findings, kind, &Finding::kind);
}

bool VerifyReport::sound() const {
    return std::ranges::all_of(findings, [](const Finding& f) { return is_harmless(f.kind); });
}

VerifyReport verify(const Place& place, const VerifyOptions& options) {
    if (const auto* beside = as_sealed_file(*place.store)) {
        VerifyReport report = verify_with_seal({beside->path(), {}}, options);
        // Sealed files and bags are changed by nothing but a restoration from parity.
        for (Finding& finding : report.findings) {
            if (finding.remedy != Remedy::restore) finding.remedy = Remedy::none;
        }
        return report;
    }
    VerifyReport report = Verifier(place, options).run();
    // A sealed folder is looked at, whatever is in it: packages, for example.
    if (report.arrays == 0 && report.groups == 0 && report.seals == 0 && report.findings.empty()) {
        throw absence(place, "array or group");
    }
    return report;
}

}  // namespace tessera
