// A sink that discards elements, for reading all of a source. Private to the store module.
#pragma once

#include <string>
#include <utility>

#include <tessera/array_io.h>

namespace tessera {

class DiscardingSink final : public ArraySink {
public:
    /// `name` is for messages.
    DiscardingSink(ArrayInfo info, std::string name) : info_(std::move(info)), name_(std::move(name)) {
        info_.access = Access::any;
    }
    [[nodiscard]] ArrayInfo info() const override { return info_; }
    void write(const Region& /*region*/, const ArrayView& /*in*/, const IoOptions& /*io*/) override {}
    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    ArrayInfo info_;
    std::string name_;
};

}  // namespace tessera
