#include <tessera/verify_to_seal.h>

#include <tessera/error.h>
#include <tessera/error_text.h>
#include <tessera/seal.h>

#include <algorithm>

namespace tessera {

VerifyReport verify_to_seal(const Place& place, bool check, bool copies, const IoOptions& io) {
    VerifyOptions options{.io = io, .seals = copies};
    if (!check && !copies) options.trust = unchanged_since_seal(place);
    return verify(place, options);
}

void require_sound(const VerifyReport& report, const std::string& path) {
    if (report.sound()) return;
    const auto first = std::ranges::find_if(report.findings, [](const Finding& finding) {
        return finding.kind != FindingKind::leftover && finding.kind != FindingKind::note;
    });
    throw corrupt("{}: not sealed, because it is not sound: {}; unchecked=True seals it as it is", path,
                  first == report.findings.end() ? "some of it was not looked at" : first->text);
}

}  // namespace tessera
