#include <tessera/seal_signature.h>

#include <fmt/format.h>
#include <tessera/action.h>
#include <tessera/descriptor.h>
#include <tessera/error_text.h>
#include <tessera/temporary_folder.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "parity_archive.h"
#include "run_program.h"
#include "sums.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// A program that signs.
enum class Signer : std::uint8_t { ssh, minisign };

std::string signature_key(Signer signer) {
    return std::string(seal_sums_key) + (signer == Signer::ssh ? ".sig" : ".minisig");
}

/// By the beginning of a file of keys. Throws not_found without it.
Signer signer_of(const fs::path& keys) {
    constexpr std::string_view of_minisign = "untrusted comment:";
    std::ifstream file(keys, std::ios::binary);
    if (!file) throw not_found("{}: no such file, or it cannot be read; a file of keys was expected", keys.string());
    std::string begin(of_minisign.size(), '\0');
    file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    return begin == of_minisign ? Signer::minisign : Signer::ssh;
}

/// A path that no program takes for an option.
std::string argument(const fs::path& path) {
    return fs::absolute(path).string();
}

/// One line without the last newline.
std::string words_of(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    std::ranges::replace(text, '\n', ' ');
    std::ranges::replace(text, '\r', ' ');
    return text;
}

/// The list of sums as it was signed, in a file; false without a seal.
bool write_list(const PlaceView& place, const fs::path& file) {
    const std::optional<FileList> sums = sealed_sums(place);
    if (!sums) return false;
    std::ofstream out(file, std::ios::binary);
    write_manifest(each_of(*sums), [&](ByteSpan bytes) {
        out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    });
    out.close();
    if (!out) throw Error(ErrorCode::io, fmt::format("cannot write {}", file.string()));
    return true;
}

/// Temporary files of one signature.
struct Workplace {
    TemporaryFolder folder{fs::temp_directory_path()};
    fs::path list = folder.path() / "sha256sums.txt";
    fs::path signature = folder.path() / "sha256sums.txt.sig";  // the name that ssh-keygen gives it
    fs::path nothing = "/dev/null";

    [[nodiscard]] ProgramEnd run(const std::vector<std::string>& words, const fs::path& input) const {
        return run_program(words, input, folder.path());
    }
};

constexpr std::uint64_t longest_signature = std::uint64_t{64} << 10;

SignatureCheck check_by_ssh(const Workplace& at, const fs::path& signers) {
    const std::string allowed = argument(signers);
    const std::string signature = at.signature.string();
    const ProgramEnd found =
        at.run({"ssh-keygen", "-Y", "find-principals", "-s", signature, "-f", allowed}, at.nothing);
    if (found.code != 0) return {false, words_of(found.output)};
    SignatureCheck check{false, "ssh-keygen names no signer"};
    std::string_view names = found.output;
    while (!names.empty()) {
        const std::size_t end = std::min(names.find('\n'), names.size());
        const std::string name(names.substr(0, std::min(end, names.find(','))));  // of several patterns the first
        names.remove_prefix(std::min(end + 1, names.size()));
        if (name.empty()) continue;
        const ProgramEnd verified = at.run(
            {"ssh-keygen", "-Y", "verify", "-f", allowed, "-I", name, "-n", signature_namespace, "-s", signature},
            at.list);
        check = {verified.code == 0, words_of(verified.output)};
        if (check.good) break;
    }
    return check;
}

}  // namespace

std::string sign_seal(const PlaceRef& place, const fs::path& key) {
    const Signer signer = signer_of(key);
    const Workplace at;
    if (!write_list(place, at.list)) {
        throw not_found("{}: it has no seal to be signed", place.name()).advising(Action::seal, "makes one");
    }
    const std::string list = at.list.string();
    const std::vector<std::string> words =
        signer == Signer::ssh
            ? std::vector<std::string>{"ssh-keygen", "-Y", "sign", "-f", argument(key), "-n", signature_namespace, list}
            : std::vector<std::string>{"minisign", "-S", "-s", argument(key), "-m", list, "-x", at.signature.string()};
    // minisign asks for a password where its other messages go; ssh-keygen asks at the terminal itself.
    const bool asks = signer == Signer::minisign && ::isatty(STDIN_FILENO) == 1;
    const ProgramEnd end = run_program(words, {}, at.folder.path(), asks ? ProgramOutput::shown : ProgramOutput::kept);
    std::ifstream file(at.signature, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (end.code != 0 || text.empty()) {
        throw Error(ErrorCode::io, fmt::format("{}: sealed, but not signed: {} says: {}", place.name(), words.front(),
                                               words_of(end.output)));
    }
    const std::string where = place.key(signature_key(signer));
    place.store.put(where, std::as_bytes(std::span(text)));
    place.store.sync();
    return where;
}

SignatureCheck check_signature(const PlaceView& place, const fs::path& signers) {
    const Signer signer = signer_of(signers);
    const Workplace at;
    if (!write_list(place, at.list)) return {false, "nothing is sealed here, and so nothing is signed"};
    Buffer text;
    const std::string where = place.key(signature_key(signer));
    if (!place.store.get(where, text, longest_signature)) {
        return {false, fmt::format("the seal has no signature by {} ({})",
                                   signer == Signer::ssh ? "ssh-keygen" : "minisign", place.store.name_of(where))};
    }
    std::ofstream out(at.signature, std::ios::binary);
    out.write(reinterpret_cast<const char*>(text.data()), static_cast<std::streamsize>(text.size()));
    out.close();
    if (!out) throw Error(ErrorCode::io, fmt::format("cannot write {}", at.signature.string()));
    if (signer == Signer::ssh) return check_by_ssh(at, signers);
    const ProgramEnd end = at.run(
        {"minisign", "-V", "-p", argument(signers), "-m", at.list.string(), "-x", at.signature.string()}, at.nothing);
    return {end.code == 0, words_of(end.output)};
}

void require_signing_key(const fs::path& key) {
    (void)signer_of(key);
}

bool drop_signatures(const PlaceRef& place) {
    bool any = false;
    for (const Signer signer : {Signer::ssh, Signer::minisign})
        any = place.store.erase(place.key(signature_key(signer))) || any;
    return any;
}

}  // namespace tessera
