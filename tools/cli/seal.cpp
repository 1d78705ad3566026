// tessera seal
#include <tessera/edit.h>
#include <tessera/report_values.h>
#include <tessera/ro_crate.h>
#include <tessera/seal.h>
#include <tessera/seal_signature.h>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/locate.h>
#include <tessera/own_names.h>
#include <tessera/place.h>
#include <tessera/verify.h>
#include <tessera/verify_to_seal.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advice.h"
#include "command.h"
#include "findings.h"
#include "fixity.h"
#include "hierarchy.h"
#include "report.h"

namespace tessera::cli {

namespace {

struct SealCall {
    std::string path, bag, parity, ocfl, id, message, sign;
    bool overwrite = false;
    bool unchecked = false;
    bool check = false;
    bool readme = false;
    bool crate = false;
    std::string citation;
    std::vector<std::string> accept, info;
};

/// A seal over damage would vouch for it.
bool is_sound(Session& session, const SealCall& o, const Place& place) {
    if (o.unchecked) return true;
    const VerifyReport report = verify_to_seal(place, o.check, !o.bag.empty() || !o.ocfl.empty(), session.io());
    session.clear_progress();
    if (report.count(FindingKind::leftover) > 0) {
        session.note(
            fmt::format("{0} holds leftovers: chunks outside of their arrays, temporary files and empty lock files are "
                        "not sealed, anything else is; `tessera verify {0}` lists them, `tessera repair {0}` sets such "
                        "chunks aside",
                        o.path));
    }
    if (report.sound()) return true;
    if (session.options().json) {
        print_json(verified_value(o.path, report, advised));
    } else {
        print_report(o.path, report);
    }
    session.note("not sealed; --unchecked seals it as it is");
    return false;
}

void report_sealed(Session& session, const SealCall& o, const SealOptions& how, const Sealed& sealed) {
    const std::string& manifest_of = o.bag.empty() ? o.path : o.bag;
    const bool file = o.bag.empty() && is_local(o.path) && std::filesystem::is_regular_file(o.path);
    const std::string manifest =
        file ? o.path + ".tessera-seal/sha256sums.txt"
             : (std::filesystem::path(manifest_of) / (o.bag.empty() ? seal_key : "manifest-sha256.txt")).string();
    std::string size = fmt::format("{}, {}", count_text(sealed.files, "file"), bytes_text(sealed.bytes));
    if (sealed.parity_bytes > 0) size += fmt::format(", and parity of {}", bytes_text(sealed.parity_bytes));
    if (how.parity) size += fmt::format(" against the loss of {}", redundancy_text(*how.parity));
    if (sealed.outside > 0) {
        size += fmt::format(", without {} outside of {}", count_text(sealed.outside, "chunk file"),
                            sealed.outside == 1 ? "its array" : "their arrays");
    }
    if (!o.sign.empty()) size += ", signed";
    report(session, sealed_value(o.path, manifest, sealed),
           !sealed.written ? fmt::format("{}: sealed already, and nothing changed since ({})", o.path, size)
           : o.bag.empty() ? fmt::format("sealed {} in {} ({})", o.path, manifest, size)
                           : fmt::format("made the bag {} of {} ({})", o.bag, o.path, size));
}

/// Small files take whole records of the index, and their ends share blocks.
void note_cost(Session& session, const SealOptions& how, const Sealed& sealed) {
    if (!how.parity || sealed.bytes == 0) return;
    const double share = static_cast<double>(sealed.parity_bytes) / static_cast<double>(sealed.bytes);
    constexpr double whole = 1e6;  // Redundancy::amount counts millionths
    const bool of_files = how.parity->kind == Redundancy::Kind::files;
    const double asked = of_files ? 0 : static_cast<double>(how.parity->amount) / whole;
    if (share < 0.2 || share < 2 * asked) return;
    session.note(fmt::format(
        "the parity takes {:.0f} % of what it protects: small files and small archives take more than their share",
        share * 100));
}

/// The size of the largest file that a seal there covers.
std::uint64_t largest_file(const std::filesystem::path& path) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) return fs::file_size(path, ignored);
    std::uint64_t largest = 0;
    for (auto at = fs::recursive_directory_iterator(path, ignored); at != fs::recursive_directory_iterator();
         at.increment(ignored)) {
        if (at->path().filename() == own_folder) {
            at.disable_recursion_pending();
        } else if (at->is_regular_file(ignored)) {
            largest = std::max<std::uint64_t>(largest, at->file_size(ignored));
        }
    }
    return largest;
}

/// A share of few large files restores damage inside them, but none of them as a whole.
void note_promise(Session& session, const SealCall& o, const SealOptions& how, const Place& place) {
    if (!how.parity || how.parity->kind == Redundancy::Kind::files || !is_local(o.path)) return;
    const auto promise = parity_promise(place, session.io());
    if (!promise || promise->files > 0) return;
    session.note(
        fmt::format("the parity restores {} in a row, but no file that is lost as a whole: the largest has {}; "
                    "--parity 1 restores any one file, and takes about {}",
                    bytes_text(promise->run), bytes_text(largest_file(o.path)), bytes_text(largest_file(o.path))));
}

SealOptions seal_options(Session& session, const SealCall& o) {
    SealOptions options{
        .overwrite = o.overwrite, .accept = o.accept, .check = o.check, .readme = o.readme, .io = session.io()};
    if (o.parity == "0") {
        options.drop_parity = true;
    } else if (!o.parity.empty()) {
        options.parity = parse_redundancy(o.parity);
    }
    return options;
}

/// The name of what goes into a bag.
std::string name_of(const std::string& path) {
    const std::string last = real_path(path).filename().string();
    return is_local(path) ? last : last.substr(last.find(':') + 1);
}

int seal_version(Session& session, const SealCall& o) {
    if (!o.bag.empty() || !o.parity.empty() || o.overwrite || o.crate || o.readme || !o.sign.empty() ||
        !o.info.empty() || !o.accept.empty()) {
        throw invalid_argument("--ocfl: adds a version elsewhere, and takes --id, --message and --unchecked alone");
    }
    if (o.id.empty()) throw invalid_argument("--ocfl: --id says of which object, as urn:example:grid");
    const Place place = find_place(o.path, options_to_copy(o.path, session.store()));
    if (!is_sound(session, o, place)) return exit_differences;
    const OcflVersionAdded added = add_ocfl_version(
        place, o.ocfl, o.id,
        {.message = o.message, .user = log_line({}).who, .io = session.io(), .store = session.store()});
    session.clear_progress();
    require_present(place);
    const std::string version = fmt::format("ocfl:{}::{}@{}", o.ocfl, o.id, added.version);
    report(session, ocfl_value(o.path, o.id, added),
           added.written ? fmt::format("sealed {} as {} ({}, of which {} new, {})", o.path, version,
                                       count_text(added.files, "file"), added.stored, bytes_text(added.bytes))
                         : fmt::format("{}: nothing changed since {}", o.path, version));
    return exit_done;
}

/// Describes what is sealed, so that the seal covers the description.
void describe(Session& session, const SealCall& o, const Place& place, SealOptions& how) {
    if (!o.crate) return;
    how.beside.emplace_back(
        ro_crate_name, ro_crate_text(place, {.citation = o.citation, .version = TESSERA_VERSION, .io = session.io()}));
}

int seal_path(Session& session, const SealCall& o) {
    if (!o.citation.empty() && !o.crate) throw invalid_argument("--citation: is of --ro-crate");
    if (!o.ocfl.empty()) return seal_version(session, o);
    if (!o.id.empty() || !o.message.empty()) throw invalid_argument("--id and --message: are of --ocfl");
    SealOptions how = seal_options(session, o);
    if (o.overwrite && !o.bag.empty()) {
        throw invalid_argument(
            "--overwrite: it seals {} anew, and --bagit leaves {} as it is; a bag is never replaced: choose "
            "another name, or remove the old bag first",
            o.path, o.path);
    }
    if (!o.bag.empty() && !o.accept.empty()) {
        throw invalid_argument("--accept: is of a seal, and --bagit makes none of {}; seal that before", o.path);
    }
    if (o.bag.empty() && !o.info.empty()) throw invalid_argument("--info: says what a bag is, which --bagit makes");
    const BagInfo info = parse_bag_info(o.info);
    if (!o.sign.empty()) require_signing_key(o.sign);
    // The seal of a file lies beside it. A bag has the content of a zip, not the zip.
    const auto beside = o.bag.empty() ? place_beside(o.path, session.store(), true) : std::nullopt;
    const Place place = beside          ? *beside
                        : o.bag.empty() ? find_place(o.path, session.store())
                                        : find_place(o.path, options_to_copy(o.path, session.store()));
    if (o.crate && (!o.bag.empty() || beside)) {
        throw invalid_argument("--ro-crate: describes an array or group in a folder; seal that, and copy it then");
    }
    if (!is_sound(session, o, place)) return exit_differences;
    describe(session, o, place, how);
    const Sealed sealed =
        o.bag.empty() ? seal(place, how)
                      : make_bag(place, name_of(o.path), o.bag,
                                 {.info = info, .parity = how.parity, .io = session.io(), .store = session.store()});
    session.clear_progress();
    require_present(place);
    if (!o.sign.empty()) {
        (void)sign_seal(place, o.sign);
    } else if (sealed.signature_gone) {
        session.note("the seal before was signed, and this one is not: --sign signs it");
    }
    if (o.bag.empty()) note_fixity(session, o.path, "seal", sealed_counts(sealed));
    report_sealed(session, o, how, sealed);
    note_cost(session, how, sealed);
    if (o.bag.empty()) note_promise(session, o, how, place);
    return exit_done;
}

}  // namespace

Run declare_seal(CLI::App& app) {
    auto o = std::make_shared<SealCall>();
    app.add_option("PATH", o->path, "an array, a group, a zip or an array file")->required()->option_text(" ");
    app.add_option("--bagit", o->bag, "leave PATH as it is, and make a BagIt bag of it in the new directory DIR")
        ->option_text("DIR");
    app.add_option("--ocfl", o->ocfl,
                   "leave PATH as it is, and add it as a version of an object to the OCFL storage root ROOT")
        ->option_text("ROOT");
    app.add_option("--id", o->id, "the object's identifier, a URI; with --ocfl")->option_text("ID");
    app.add_option("--message", o->message, "why there is this version; with --ocfl")->option_text("TEXT");
    app.add_flag(
        "--ro-crate", o->crate,
        "write ro-crate-metadata.json first: an RO-Crate of what the attributes, a CITATION.cff and the\nlog say");
    app.add_option("--citation", o->citation, "the CITATION.cff for --ro-crate, if it is not in PATH")
        ->option_text("FILE");
    app.add_option("--info", o->info,
                   "what bag-info.txt says besides, as Source-Organization=NAME; a FILE of such lines with ':';\nor a "
                   "DataCite record in JSON, which the bag then holds")
        ->option_text("INFO")
        ->allow_extra_args(false);
    app.add_option(
           "--parity", o->parity,
           "write parity too, from which repair restores: a share as 5%, or how many files\nmay vanish, as 2; 0 "
           "removes it (tools/docs/parity.md)")
        ->option_text("HOW-MUCH");
    app.add_flag("--readme", o->readme,
                 "put a page beside the data, README.tessera.txt, that says how to read them without Tessera, with a\n"
                 "program of Python for each layout; later seals renew it")
        ->excludes("--bagit");
    app.add_option("--sign", o->sign,
                   "sign the seal with this key: of OpenSSH, by ssh-keygen, or of minisign, by minisign")
        ->option_text("KEY")
        ->excludes("--bagit");
    app.add_flag("--overwrite", o->overwrite,
                 "seal again, whatever was changed, lost or added since the last seal, except for files that\n"
                 "parity shows to be damaged; not with --bagit");
    app.add_option("--accept", o->accept, "seal these files as they are now, even if they have changed since the seal")
        ->option_text("NAMES")
        ->expected(1, 1 << 20);
    app.add_flag("--check", o->check,
                 "read everything, also files with parity whose size and time are those of the seal");
    app.add_flag("--unchecked", o->unchecked, "do not verify first: damage is sealed too");
    return [o](Session& session) { return again_when_replaced(o->path, [&] { return seal_path(session, *o); }); };
}

}  // namespace tessera::cli
