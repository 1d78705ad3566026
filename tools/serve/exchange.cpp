#include "exchange.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace tessera::serve {

void Exchange::set_stage(Stage stage) {
    const std::lock_guard lock(mutex_);
    stage_ = stage;
    since_ = progress_ = Clock::now();
}

Stage Exchange::stage() const {
    const std::lock_guard lock(mutex_);
    return stage_;
}

Clock::time_point Exchange::since() const {
    const std::lock_guard lock(mutex_);
    return since_;
}

void Exchange::answer(HttpResponse response) {
    SentPart part = apply_conditions(request, response);
    if (!head && !response.body.in_memory() && part.size <= block_size) {
        Buffer bytes(part.size);
        response.body.read(part.offset, bytes.span());
        response.body = HttpBody(std::move(bytes));
        part.offset = 0;
    }
    if (head) response.body = {};
    const std::lock_guard lock(mutex_);
    response_ = std::move(response);
    part_ = part;
}

Exchange::Copied Exchange::copy(std::uint64_t position, MutableByteSpan out, std::size_t& copied) {
    const std::lock_guard lock(mutex_);
    if (failed_ || position >= part_.size) return Copied::failed;
    if (position > sent_) progress_ = Clock::now();
    sent_ = position;
    ByteSpan from;
    if (const auto memory = response_.body.in_memory()) {
        from = memory->subspan(part_.offset + position, part_.size - position);
    } else if (position >= block_at_ && position - block_at_ < block_.size()) {
        from = block_.span().subspan(position - block_at_);
    } else {
        wanted_ = position;
        return Copied::later;
    }
    copied = std::min(from.size(), out.size());
    std::memcpy(out.data(), from.data(), copied);
    return Copied::some;
}

void Exchange::read_ahead() {
    Buffer block;
    HttpBody body;
    std::uint64_t at = 0;
    std::uint64_t offset = 0;
    {
        const std::lock_guard lock(mutex_);
        if (failed_) return;
        at = wanted_;
        offset = part_.offset + at;
        block = std::move(block_);
        body = std::move(response_.body);  // so that the mutex is not held while the body is read
    }
    bool good = true;
    try {
        block.reset(std::min(block_size, part_.size - at));
        body.read(offset, block.span());
    } catch (const std::exception&) {
        good = false;  // the length was sent already: the response can only end too early
    }
    const std::lock_guard lock(mutex_);
    if (!good || failed_) {
        failed_ = true;
        return;
    }
    response_.body = std::move(body);
    block_ = std::move(block);
    block_at_ = at;
    progress_ = Clock::now();
}

void Exchange::abandon() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    response_.body = {};
    block_ = {};
}

bool Exchange::abandoned() const {
    const std::lock_guard lock(mutex_);
    return failed_;
}

Exchange::Held Exchange::held() const {
    const std::lock_guard lock(mutex_);
    if ((stage_ != Stage::sending && stage_ != Stage::answered) || failed_) return {};
    const auto memory = response_.body.in_memory();
    const Clock::duration stalled = stage_ == Stage::sending ? Clock::now() - progress_ : Clock::duration();
    return {memory ? memory->size() : block_.size(), stalled, sent_};
}

}  // namespace tessera::serve
