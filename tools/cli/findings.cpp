#include "findings.h"

#include "advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "report.h"

namespace tessera::cli {

namespace {

std::string counts_text(const VerifyReport& report) {
    std::vector<std::string> parts{count_text(report.arrays, "array")};
    if (report.groups > 0) parts.push_back(count_text(report.groups, "group"));
    if (report.chunks > 0 || report.missing > 0) {
        parts.push_back(report.missing == 0 ? fmt::format("{} stored", count_text(report.chunks, "chunk"))
                                            : fmt::format("{} of {} stored", report.chunks,
                                                          count_text(report.chunks + report.missing, "chunk")));
    }
    if (report.bytes > 0 || report.groups == 0) parts.push_back(bytes_text(report.bytes));
    if (report.seals > 0) parts.push_back(fmt::format("{} as sealed", count_text(report.sealed, "file")));
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string verdict(const VerifyReport& report, bool complete) {
    std::vector<std::string> parts;
    for (const auto& [kind, words] : {std::pair(FindingKind::damage, "damaged"),
                                      {FindingKind::changed, "changed since the seal"},
                                      {FindingKind::lost, "missing since the seal"},
                                      {FindingKind::added, "added after the seal"},
                                      {FindingKind::unchecked, "not checked"}}) {
        if (report.count(kind) > 0) parts.push_back(fmt::format("{} {}", report.count(kind), words));
    }
    if (report.absent > 0) {
        const std::string_view there = complete ? "" : report.absent == 1 ? " that was there" : " that were there";
        parts.push_back(fmt::format("{} not stored{}", count_text(report.absent, "chunk"), there));
    }
    if (report.sound()) parts.emplace_back("sound");
    const std::int64_t left = report.count(FindingKind::leftover);
    if (left > 0) parts.push_back(count_text(left, "leftover"));
    return fmt::format("{}", fmt::join(parts, ", "));
}

/// The text of a finding without the numbers in it, and without its key.
std::string pattern(const Finding& finding) {
    std::string text = finding.text;
    for (std::size_t at = 0; !finding.key.empty() && (at = text.find(finding.key, at)) != std::string::npos;) {
        text.erase(at, finding.key.size());
    }
    std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
    return text;
}

}  // namespace

std::string subject(const Finding& finding) {
    std::string text = finding.key.empty() ? finding.node : finding.key;
    if (finding.inner) {
        text += fmt::format(": shard {}, chunk {} in it", finding.chunk->to_string(), finding.inner->to_string());
    } else if (finding.chunk) {
        text += fmt::format(": chunk {}", finding.chunk->to_string());
    }
    return text;
}

void print_findings(const std::vector<Finding>& findings, bool all) {
    constexpr std::size_t few = 8;
    std::map<std::pair<FindingKind, std::string>, std::size_t> alike;
    for (const Finding& finding : findings) ++alike[{finding.kind, pattern(finding)}];
    for (const Finding& finding : findings) {
        std::size_t& count_alike = alike[{finding.kind, pattern(finding)}];
        const std::size_t count = count_alike;
        if (count == 0) continue;  // in the line of another
        const bool many = !all && count > few;
        if (many) count_alike = 0;
        const std::string about = subject(finding);
        print(
            printable(fmt::format("{}: {}{}{}{}", kind_name(finding.kind), about, about.empty() ? "" : ": ",
                                  advised(finding.text, finding.advice),
                                  many ? fmt::format("; and {} more like it (--verbose lists them)", count - 1) : "")) +
            "\n");
    }
}

void print_report(const std::string& path, const VerifyReport& report, bool all, bool complete) {
    print_findings(report.findings, all);
    print(printable(fmt::format("{}: {} ({})", path, verdict(report, complete), counts_text(report))) + "\n");
}

}  // namespace tessera::cli
