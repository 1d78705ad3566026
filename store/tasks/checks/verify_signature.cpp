#include <tessera/verify_signature.h>

#include <fmt/format.h>
#include <tessera/place.h>
#include <tessera/seal.h>
#include <tessera/seal_signature.h>

#include <algorithm>
#include <optional>

namespace tessera {

void add_signature(VerifyReport& report, const std::string& path, const std::string& signers) {
    const StoreOptions reading{.read_only = true};
    std::optional<Place> place = place_beside(path, reading);
    if (!place) place = probe_place(path, reading);
    const SignatureCheck check = place ? check_signature(*place, signers)
                                       : SignatureCheck{false, "nothing is sealed here, and so nothing is signed"};
    report.findings.push_back(
        {.kind = check.good ? FindingKind::note : FindingKind::damage,
         .node = {},
         .key = std::string(seal_key),
         .text = check.good ? check.text : fmt::format("is not signed by anybody in {}: {}", signers, check.text)});
    std::ranges::stable_sort(report.findings, {}, &Finding::kind);
}

}  // namespace tessera
