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

/// Whoever asks for one asks for others next.
constexpr std::array<std::string_view, 12> documents{v3_document_name,      v2_array_name,         v2_attributes_name,
                                                     v2_group_name,         v2_consolidated_name,  zmeta_metadata_name,
                                                     zmeta_attributes_name, v1_metadata_name,      v1_attributes_name,
                                                     batch_journal_key,     unfinished_marker_key, seal_sums_key};
/// So long the answers serve who opens the node.
constexpr std::chrono::seconds document_age{2};

std::atomic<std::uint64_t> documents_written = 0;

}  // namespace

std::optional<std::string_view> document_name(std::string_view key) {
    const auto* const found = std::ranges::find_if(documents, [&](std::string_view document) {
        return key == document || (key.ends_with(document) && key[key.size() - document.size() - 1] == '/');
    });
    return found == documents.end() ? std::nullopt : std::optional(*found);
}

void note_written(std::string_view key) {
    if (document_name(key)) note_documents_written();
}

void note_documents_written() {
    ++documents_written;
}

/// The documents of a node, all asked for at once.
std::shared_ptr<NodeDocuments::Documents> NodeDocuments::node_at(const std::string& prefix, const Ask& ask) {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard guard(mutex_);
    const std::uint64_t written = documents_written;
    std::erase_if(nodes_, [&](const auto& entry) {
        return now - entry.second->asked > document_age || entry.second->written != written;
    });
    std::shared_ptr<Documents>& entry = nodes_[prefix];
    if (entry != nullptr) return entry;
    entry = std::make_shared<Documents>();
    entry->asked = now;
    entry->written = written;
    for (const std::string_view each : documents) {
        entry->answers[std::string(each)].ticket = ask(join_key(prefix, each), false);
    }
    return entry;
}

std::shared_ptr<const HttpResponse> NodeDocuments::find(std::string_view key, const Ask& ask) {
    const auto name = document_name(key);
    if (!name) return nullptr;
    const std::string prefix(key.substr(0, key.size() - std::min(key.size(), name->size() + 1)));
    const std::shared_ptr<Documents> node = node_at(prefix, ask);
    const std::lock_guard guard(node->mutex);
    Answer& answer = node->answers.find(*name)->second;
    if (answer.response == nullptr) {
        const bool asked = answer.ticket != nullptr;
        HttpResponse response = HttpClient::shared().wait(asked ? std::move(answer.ticket) : ask(key, true));
        if (asked && response.body.empty() && response.total > 0 && response.status < 300) {
            response = HttpClient::shared().wait(ask(key, true));  // it is longer than most
        }
        answer.response = std::make_shared<const HttpResponse>(std::move(response));
    }
    return answer.response;
}

void NodeDocuments::forget(std::string_view prefix) {
    const std::lock_guard guard(mutex_);
    if (const auto found = nodes_.find(prefix); found != nodes_.end()) nodes_.erase(found);
}

}  // namespace tessera
