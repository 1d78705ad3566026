#include "node_documents.h"

#include <tessera/key_value_store.h>
#include <tessera/zarr_names.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "keys.h"
#include "seal_mark.h"

namespace tessera {

namespace {

/// Which documents are asked for together.
enum class Asked : std::uint8_t { to_open, for_groups, alone };
struct Document {
    std::string_view name;
    Asked asked;
};
constexpr std::array<Document, 12> documents{{{v3_document_name, Asked::to_open},
                                              {v2_array_name, Asked::to_open},
                                              {zmeta_metadata_name, Asked::to_open},
                                              {v1_metadata_name, Asked::to_open},
                                              {batch_journal_key, Asked::to_open},
                                              {unfinished_marker_key, Asked::to_open},
                                              {v2_group_name, Asked::for_groups},
                                              {v2_consolidated_name, Asked::for_groups},
                                              {v2_attributes_name, Asked::alone},
                                              {zmeta_attributes_name, Asked::alone},
                                              {v1_attributes_name, Asked::alone},
                                              {seal_sums_key, Asked::alone}}};
/// So long the answers serve who opens the node.
constexpr std::chrono::seconds document_age{2};

/// How often this process has written each.
std::array<std::atomic<std::uint64_t>, documents.size()> documents_written{};

std::atomic<std::uint64_t> all_written = 0;

/// The number of the document that a key names; that of documents if it names none.
std::size_t number_of(std::string_view key) {
    const auto* const found = std::ranges::find_if(documents, [&](const Document& document) {
        const std::string_view name = document.name;
        return key == name || (key.ends_with(name) && key[key.size() - name.size() - 1] == '/');
    });
    return static_cast<std::size_t>(found - documents.begin());
}

}  // namespace

std::optional<std::string_view> document_name(std::string_view key) {
    const std::size_t number = number_of(key);
    return number == documents.size() ? std::nullopt : std::optional(documents[number].name);
}

std::uint64_t values_written() {
    return all_written;
}

void note_written(std::string_view key) {
    ++all_written;
    if (const std::size_t number = number_of(key); number < documents.size()) ++documents_written[number];
}

void note_documents_written() {
    ++all_written;
    for (auto& written : documents_written) ++written;
}

std::shared_ptr<NodeDocuments::Documents> NodeDocuments::node_at(std::string_view prefix) {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard guard(mutex_);
    std::erase_if(nodes_, [&](const auto& entry) { return now - entry.second->asked > document_age; });
    if (const auto found = nodes_.find(prefix); found != nodes_.end()) return found->second;
    auto entry = std::make_shared<Documents>();
    entry->asked = now;
    return nodes_.emplace(prefix, std::move(entry)).first->second;
}

void NodeDocuments::ask_together(Documents& node, std::string_view prefix, std::size_t wanted, const Ask& ask) {
    for (std::size_t i = 0; i < documents.size(); ++i) {
        const bool together =
            !node.alone && documents[i].asked == documents[wanted].asked && documents[wanted].asked != Asked::alone;
        if (i != wanted && (!together || node.answers.contains(i))) continue;
        Answer& answer = node.answers[i];
        answer.written = documents_written[i];
        answer.ticket = ask(join_key(prefix, documents[i].name), !together);
        answer.alone = !together;
    }
}

std::shared_ptr<const HttpResponse> NodeDocuments::find(std::string_view key, const Ask& ask) {
    const std::size_t number = number_of(key);
    if (number == documents.size()) return nullptr;
    const std::size_t end = documents[number].name.size() + 1;
    const std::string_view prefix = key.substr(0, key.size() - std::min(key.size(), end));
    const std::shared_ptr<Documents> node = node_at(prefix);
    const std::lock_guard guard(node->mutex);
    const auto known = node->answers.find(number);
    if (known != node->answers.end() && known->second.written != documents_written[number]) node->answers.erase(known);
    if (!node->answers.contains(number)) ask_together(*node, prefix, number, ask);
    Answer& answer = node->answers.find(number)->second;
    if (answer.response != nullptr) return answer.response;
    try {
        HttpResponse response = HttpClient::shared().wait(std::move(answer.ticket));
        if (!answer.alone && response.body.empty() && response.total > 0 && response.status < 300) {
            response = HttpClient::shared().wait(ask(key, true));  // it is longer than most
        }
        answer.response = std::make_shared<const HttpResponse>(std::move(response));
    } catch (...) {
        node->answers.erase(number);
        throw;
    }
    return answer.response;
}

void NodeDocuments::forget(std::string_view prefix) {
    const std::lock_guard guard(mutex_);
    const auto found = nodes_.find(prefix);
    if (found == nodes_.end()) return;
    // Who changes a node wants one document or two, and knows which.
    auto entry = std::make_shared<Documents>();
    entry->asked = found->second->asked;
    entry->alone = true;
    found->second = std::move(entry);
}

}  // namespace tessera
