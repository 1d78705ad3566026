// What a seal is of: see verify_test.cpp for what it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/edit.h>
#include <tessera/seal.h>
#include <tessera/verify.h>

#include "forwarding_store.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

const StoreOptions quick{.durability = Durability::none};

/// Fails when a batch is to be put in place, so that it stays recorded.
class StubbornStore final : public ForwardingStore {
public:
    using ForwardingStore::ForwardingStore;
    bool replace(std::string_view /*from*/, std::string_view /*to*/) override {
        throw Error(ErrorCode::io, "not today");
    }
};

TEST(Seals, AreOfWhatABatchMakesOfIt) {
    const TemporaryFolder folder;
    const auto store = directory_store(folder / "g", quick);
    const ArrayOptions options{.shape = {8, 8}, .chunks = {4, 4}, .dtype = DType::of<std::int32_t>(), .format = "v2"};
    for (const char* name : {"a", "deep/b"})
        Array::create({store, name}, options).fill(Selection::parse("", {8, 8}), 1);
    {
        Edit edit(Array::open({std::make_shared<StubbornStore>(store), "a"}));
        edit->fill(Selection::parse("", {8, 8}), 2);
        try {
            edit.commit();
            FAIL() << "it was to be recorded only";
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::recorded) << e.what();
        }
    }
    EXPECT_TRUE(store->contains("a/.tessera/batch/journal"));
    EXPECT_TRUE(seal(*store).written);
    EXPECT_FALSE(store->contains("a/.tessera/batch/journal"));
    EXPECT_EQ(Array::open({store, "a"}).read("0, 0").values<std::int32_t>()[0], 2);
    EXPECT_TRUE(seal_state(*store).intact());
    EXPECT_EQ(seal({*store, "deep"}).files, 5);
}

}  // namespace
}  // namespace tessera
