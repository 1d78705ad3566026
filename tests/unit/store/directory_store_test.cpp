#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "conformance/store_suite.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using store_suite::get;
using store_suite::put;
using testing::ElementsAre;
using testing::IsEmpty;

/// A fresh directory, removed at the end of the program.
fs::path fresh_directory() {
    static const TemporaryFolder top;
    static int counter = 0;
    const fs::path path = top / std::to_string(counter++);
    fs::create_directory(path);
    return path;
}

std::string file_text(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> names_in(const fs::path& path) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
}

TESSERA_STORE_SUITE(DirectoryStore, directory_store(fresh_directory() / "not" / "yet"))

TEST(DirectoryStore, keys_are_files) {
    const fs::path root = fresh_directory();
    const auto store = directory_store(root);
    put(*store, "a/b.c", "text");
    EXPECT_EQ(file_text(root / "a" / "b.c"), "text");
    EXPECT_THAT(names_in(root / "a"), ElementsAre("b.c"));
    std::ofstream(root / "a" / "other") << "theirs";
    EXPECT_EQ(get(*store, "a/other"), "theirs");
    EXPECT_EQ(store->name(), root.string());
}

TEST(DirectoryStore, reading_a_root_that_is_not_there_does_not_make_it) {
    const fs::path root = fresh_directory() / "none";
    const auto store = directory_store(root);
    EXPECT_EQ(get(*store, "k"), "(absent)");
    EXPECT_THAT(store->list("").keys, IsEmpty());
    store->erase("k");
    store->erase_below("");
    EXPECT_FALSE(fs::exists(root));
    put(*store, "k", "v");
    EXPECT_EQ(get(*store, "k"), "v");
    EXPECT_EQ(get(*directory_store(root / "k"), "x"), "(absent)") << "a file where the root should be";
}

TEST(DirectoryStore, stays_with_its_directory_when_that_is_renamed) {
    const fs::path top = fresh_directory();
    const auto store = directory_store(top / "old");
    put(*store, "k", "v");
    fs::rename(top / "old", top / "new");
    put(*store, "k2", "v2");
    EXPECT_EQ(get(*store, "k"), "v");
    EXPECT_THAT(names_in(top / "new"), ElementsAre("k", "k2"));
    EXPECT_THAT(names_in(top), ElementsAre("new"));
}

TEST(DirectoryStore, read_only_refuses_changes_in_words) {
    const fs::path root = fresh_directory();
    put(*directory_store(root), "a/k", "v");
    const auto store = directory_store(root, {.read_only = true});
    EXPECT_TRUE(store->read_only());
    EXPECT_EQ(get(*store, "a/k"), "v");
    const auto refused = [&](auto&& body) { expect_error(ErrorCode::invalid_argument, "for reading only", body); };
    refused([&] { put(*store, "a/k", "w"); });
    refused([&] { store->erase("a/k"); });
    refused([&] { store->erase_below("a"); });
    refused([&] { (void)store->lock("a", 1, LockMode::exclusive); });
    EXPECT_EQ(get(*store, "a/k"), "v");
}

TEST(DirectoryStore, errors_name_the_path) {
    const fs::path root = fresh_directory();
    const auto store = directory_store(root);
    put(*store, "folder/k", "v");
    expect_error(ErrorCode::io, (root / "folder").string(), [&] { put(*store, "folder", "v"); });
    expect_error(ErrorCode::io, (root / "folder/k").string(), [&] { put(*store, "folder/k/below", "v"); });
    expect_error(ErrorCode::io, (root / "folder/k").string(), [&] { put(*store, "folder/k/be/low", "v"); });
    EXPECT_EQ(store->open(std::string(300, 'x')), nullptr) << "no file can have such a name";
    expect_error(ErrorCode::io, "File name too long", [&] { put(*store, std::string(300, 'x'), "v"); });
    EXPECT_THAT(names_in(root), ElementsAre("folder")) << "no temporary file is left";
    EXPECT_THAT(names_in(root / "folder"), ElementsAre("k"));
}

TEST(DirectoryStore, a_write_that_fails_leaves_the_old_value) {
    const fs::path root = fresh_directory();
    const auto store = directory_store(root);
    put(*store, "k", "old");
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1000, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    expect_error(ErrorCode::io, (root / "k").string(), [&] { put(*store, "k", std::string(5000, 'x')); });
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(get(*store, "k"), "old");
    EXPECT_THAT(names_in(root), ElementsAre("k"));
}

TEST(DirectoryStore, temporary_files_do_not_show) {
    const fs::path root = fresh_directory();
    const auto store = directory_store(root);
    put(*store, "g/k", "v");
    std::ofstream(root / "g" / ".tessera-tmp-1-1") << "torn";
    EXPECT_THAT(store->list("g").keys, ElementsAre("k"));
    store->for_each("g", [](std::string_view name, const auto&) { EXPECT_EQ(name, "k"); });
    store->erase_below("g");
    EXPECT_FALSE(fs::exists(root / "g"));
}

TEST(DirectoryStore, links_that_stay_inside_are_read_through_and_none_is_written_through_or_emptied) {
    const fs::path root = fresh_directory();
    const fs::path elsewhere = fresh_directory();
    const auto store = directory_store(root);
    put(*store, "real/k", "v");
    fs::create_directory_symlink(elsewhere, root / "link");
    fs::create_directory_symlink(elsewhere, root / "real" / "link");
    fs::create_symlink("nowhere", root / "dangling");
    fs::create_symlink("real/k", root / "file_link");
    std::ofstream(elsewhere / "x") << "there";
    EXPECT_EQ(get(*directory_store(root, {.follow_links = true}), "link/x"), "there");
    EXPECT_EQ(get(*store, "file_link"), "v");
    EXPECT_EQ(store->open("link/x"), nullptr);
    fs::create_symlink(elsewhere / "x", root / "real" / "0");
    for (const char* chunk : {"link/0", "real/0", "real/link/c/0"}) {
        expect_error(ErrorCode::unsupported, fmt::format("{} leads out of", chunk), [&] { (void)get(*store, chunk); });
    }
    fs::remove(root / "real" / "0");
    const auto refused = [&](const auto& change) {
        expect_error(ErrorCode::invalid_argument, "link is a symbolic link: nothing is written or deleted through it",
                     change);
    };
    refused([&] { put(*store, "link/y", "new"); });
    refused([&] { put(*store, "real/link/y", "new"); });
    refused([&] { put(*store, "link/made/y", "new"); });
    refused([&] { (void)store->create("link/y"); });
    refused([&] { (void)store->erase("link/x"); });
    refused([&] { store->erase_below("link/made"); });
    refused([&] { (void)store->replace("real/k", "link/x"); });
    refused([&] { (void)store->replace("link/x", "real/k"); });
    refused([&] { store->move("real", "link/moved"); });
    refused([&] { (void)store->local_files().link("link/y", *store, "real/k"); });
    refused([&] { (void)store->lock("link", 0, LockMode::shared); });
    refused([&] { store->local_files().require_direct("link/x"); });
    store->local_files().require_direct("link");
    store->local_files().require_direct("real/k");
    EXPECT_FALSE(store->local_files().link("hard", *store, "link/x")) << "somebody else's file gets no further name";
    EXPECT_FALSE(store->local_files().link("hard", *store, "file_link"));
    EXPECT_TRUE(store->local_files().is_link("link"));
    EXPECT_TRUE(store->local_files().is_link("real/link"));
    EXPECT_FALSE(store->local_files().is_link("real"));
    EXPECT_EQ(std::distance(fs::directory_iterator(elsewhere), fs::directory_iterator()), 1);
    EXPECT_THAT(store->list("").prefixes, ElementsAre("link", "real"));
    EXPECT_THAT(store->list("").keys, ElementsAre("dangling", "file_link"));
    EXPECT_THAT(store->list("").links, ElementsAre("dangling", "link"));
    EXPECT_EQ(store->local_files().folder_id("link"), store->local_files().folder_id("real/link"));
    EXPECT_NE(store->local_files().folder_id("link"), store->local_files().folder_id("real"));
    EXPECT_EQ(store->local_files().link_target("dangling"), "nowhere");
    expect_error(ErrorCode::corrupt, "dangling is a symbolic link that leads nowhere: to nowhere",
                 [&] { (void)get(*store, "dangling"); });
    store->erase_below("link");
    store->erase_below("real");
    EXPECT_FALSE(fs::is_symlink(root / "link"));
    EXPECT_FALSE(fs::exists(root / "real"));
    EXPECT_EQ(file_text(elsewhere / "x"), "there");
}

TEST(DirectoryStore, a_link_to_a_file_is_replaced_or_removed_itself) {
    const fs::path root = fresh_directory();
    const fs::path elsewhere = fresh_directory();
    const auto store = directory_store(root);
    std::ofstream(elsewhere / "x") << "there";
    for (const char* name : {"a", "b"}) fs::create_symlink(elsewhere / "x", root / name);
    put(*store, "a", "here");
    EXPECT_TRUE(store->erase("b"));
    EXPECT_FALSE(fs::is_symlink(root / "a"));
    EXPECT_FALSE(fs::is_symlink(root / "b"));
    EXPECT_EQ(file_text(elsewhere / "x"), "there");
}

TEST(DirectoryStore, follow_links_writes_through_links_but_never_to_what_is_tesseras_own) {
    const fs::path root = fresh_directory();
    const fs::path elsewhere = fresh_directory();
    const auto store = directory_store(root, {.follow_links = true});
    fs::create_directory_symlink(elsewhere, root / "link");
    put(*store, "link/deep/x", "there");
    EXPECT_EQ(file_text(elsewhere / "deep" / "x"), "there");
    EXPECT_TRUE(store->replace("link/deep/x", "link/y"));
    EXPECT_TRUE(store->erase("link/y"));
    (void)store->lock("link", 0, LockMode::exclusive);
    EXPECT_TRUE(fs::exists(elsewhere / ".tessera" / "lock"));
    fs::create_directory_symlink(elsewhere, root / ".tessera");
    fs::remove_all(elsewhere / ".tessera");
    fs::create_directory_symlink(elsewhere / "deep", elsewhere / ".tessera");
    for (const char* key : {".tessera/x", "link/.tessera/x"}) {
        const auto refused = [&](const auto& action) {
            expect_error(ErrorCode::corrupt, ".tessera is a symbolic link, in a place where Tessera keeps files",
                         action);
        };
        refused([&] { put(*store, key, "evil"); });
        refused([&] { (void)store->open(key); });
        refused([&] { (void)store->stamp(key); });
        refused([&] { (void)store->erase(key); });
    }
    EXPECT_THAT(store->list("link/deep").keys, IsEmpty());
    store->erase_below("link");
    EXPECT_TRUE(fs::exists(elsewhere / "deep")) << "removing never follows";
}

TEST(DirectoryStore, a_link_that_appears_while_a_folder_is_open_is_not_followed) {
    const fs::path root = fresh_directory();
    const fs::path elsewhere = fresh_directory();
    const auto store = directory_store(root);
    put(*store, "f/k", "v");
    const auto sink = store->create("f/late");
    sink->append(std::as_bytes(std::span("x", 1)));
    fs::rename(root / "f", root / "moved");
    fs::create_directory_symlink(elsewhere, root / "f");
    sink->finish();  // where it began
    put(*store, "f/k", "v2");
    EXPECT_TRUE(fs::is_empty(elsewhere));
    EXPECT_TRUE(fs::exists(root / "moved" / "late"));
    store->sync();
    expect_error(ErrorCode::invalid_argument, "f is a symbolic link", [&] { put(*store, "f/k", "v3"); });
    EXPECT_TRUE(fs::is_empty(elsewhere));
}

TEST(DirectoryStore, a_folder_that_was_removed_is_made_again) {
    const fs::path root = fresh_directory();
    const auto store = directory_store(root);
    put(*store, "a/b/k", "v");
    fs::remove_all(root / "a");
    put(*store, "a/b/k", "v2");
    EXPECT_EQ(get(*store, "a/b/k"), "v2");
    put(*store, "x", "v3");
    fs::remove_all(root / "a");
    EXPECT_TRUE(store->replace("x", "a/b/k"));
    EXPECT_EQ(get(*store, "a/b/k"), "v3");
}

TEST(DirectoryStore, what_stands_in_the_place_of_a_lock_file_is_refused_by_name) {
    const std::vector<std::pair<std::string, std::function<void(const fs::path&)>>> kinds{
        {"a symbolic link", [](const fs::path& p) { fs::create_symlink("/dev/null", p); }},
        {"a symbolic link", [](const fs::path& p) { fs::create_symlink("../made", p); }},
        {"a symbolic link", [](const fs::path& p) { fs::create_symlink("lock", p); }},
        {"a FIFO", [](const fs::path& p) { ASSERT_EQ(::mkfifo(p.c_str(), 0600), 0); }},
        {"a directory", [](const fs::path& p) { fs::create_directory(p); }},
        {"a socket", [](const fs::path& p) { ASSERT_EQ(::mknod(p.c_str(), S_IFSOCK | 0600, 0), 0); }},
    };
    for (const auto& [what, make] : kinds) {
        SCOPED_TRACE(what);
        const fs::path root = fresh_directory();
        fs::create_directory(root / ".tessera");
        make(root / ".tessera" / "lock");
        expect_error(ErrorCode::corrupt, ".tessera/lock is " + what,
                     [&] { (void)directory_store(root)->lock("", 0, LockMode::shared); });
        EXPECT_FALSE(fs::exists(root / "made"));
    }
    const fs::path root = fresh_directory();
    std::ofstream(root / ".tessera") << "mine";
    expect_error(ErrorCode::corrupt, ".tessera is a file",
                 [&] { (void)directory_store(root)->lock("", 0, LockMode::shared); });
    const fs::path linked = fresh_directory();
    std::ofstream(linked / "precious") << "mine";
    fs::create_directory(linked / ".tessera");
    fs::create_hard_link(linked / "precious", linked / ".tessera" / "lock");
    (void)directory_store(linked)->lock("", 0, LockMode::exclusive);
    EXPECT_EQ(file_text(linked / "precious"), "mine");
}

TEST(DirectoryStore, a_hidden_directory_that_is_a_link_is_no_place_to_build_in) {
    const fs::path root = fresh_directory();
    const fs::path elsewhere = fresh_directory();
    fs::create_directory_symlink(elsewhere, root / ".x.tessera-new");
    expect_error(ErrorCode::corrupt, ".x.tessera-new is a symbolic link",
                 [&] { put(*directory_store(root / ".x.tessera-new"), "k", "v"); });
    EXPECT_TRUE(fs::is_empty(elsewhere));
}

TEST(DirectoryStore, a_pipe_is_no_value_and_does_not_block) {
    const fs::path root = fresh_directory();
    const auto store = directory_store(root);
    ASSERT_EQ(::mkfifo((root / "pipe").c_str(), 0600), 0);
    expect_error(ErrorCode::corrupt, "not a regular file", [&] { (void)store->open("pipe"); });
    EXPECT_THAT(store->list("").keys, ElementsAre("pipe")) << "but it is not absent";
}

TEST(DirectoryStore, modes_follow_the_umask) {
    const fs::path root = fresh_directory();
    const auto store = directory_store(root);
    const mode_t before = ::umask(027);
    put(*store, "folder/k", "v");
    ::umask(before);
    EXPECT_EQ(fs::status(root / "folder" / "k").permissions(), fs::perms(0640));
    EXPECT_EQ(fs::status(root / "folder").permissions(), fs::perms(0750));
}

TEST(DirectoryStore, a_replaced_file_keeps_its_mode_and_a_new_one_takes_that_of_the_metadata) {
    const fs::path root = fresh_directory();
    const auto store = directory_store(root);
    const mode_t before = ::umask(027);
    put(*store, "a/.zarray", "{}");
    put(*store, "a/0", "v");
    ::umask(before);
    ASSERT_EQ(::chmod((root / "a").c_str(), 0775), 0);
    ASSERT_EQ(::chmod((root / "a" / ".zarray").c_str(), 0664), 0);
    ASSERT_EQ(::chmod((root / "a" / "0").c_str(), 0600), 0);
    const mode_t private_mask = ::umask(077);
    store->sync();
    put(*store, "a/0", "w");
    put(*store, "a/1", "w");
    put(*store, "a/b/2", "w");
    put(*store, "a/.tessera/batch/3", "w");
    store->replace("a/.tessera/batch/3", "a/0");
    put(*store, "other/0", "w");
    ::umask(private_mask);
    const auto mode = [&](const char* name) { return static_cast<int>(fs::status(root / name).permissions()); };
    EXPECT_EQ(mode("a/0"), 0600);
    EXPECT_EQ(mode("a/1"), 0664);
    EXPECT_EQ(mode("a/.tessera"), 0775);
    EXPECT_EQ(mode("a/.tessera/batch"), 0775);
    EXPECT_EQ(mode("other"), 0700);
    EXPECT_EQ(mode("other/0"), 0600);
}

TEST(DirectoryStore, values_have_their_time_from_us_to_the_nanosecond) {
    const auto store = directory_store(fresh_directory(), {.durability = Durability::none});
    const auto now = [] {
        timespec t{};
        ::clock_gettime(CLOCK_REALTIME, &t);
        return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
    };
    // The system's own times are those of its last tick, which came before.
    bool whole_seconds = true;
    std::vector<std::array<std::int64_t, 3>> times;
    for (int i = 0; i < 50; ++i) {
        const std::string key = fmt::format("k{}", i);
        const std::int64_t before = now();
        put(*store, key, "v");
        const std::int64_t after = now();
        const std::int64_t modified = store->stamp(key).value().modified;
        times.push_back({before, modified, after});
        whole_seconds = whole_seconds && modified % 1'000'000'000 == 0;
    }
    if (whole_seconds) GTEST_SKIP() << "a file system that keeps whole seconds";
    for (const auto& [before, modified, after] : times) {
        EXPECT_GE(modified, before);
        EXPECT_LE(modified, after);
    }
}

TEST(DirectoryStore, a_value_that_is_replaced_at_once_has_another_stamp) {
    const auto store = directory_store(fresh_directory(), {.durability = Durability::none});
    std::vector<ValueStamp> seen;
    for (int i = 0; i < 200; ++i) {
        put(*store, "k", "same size");
        const ValueStamp stamp = store->stamp("k").value();
        EXPECT_THAT(seen, testing::Not(testing::Contains(stamp))) << i;
        seen.push_back(stamp);
    }
}

/// Runs body() in another process, which ends when body() returns; that is waited for at the end of the life of this.
class OtherProcess {
public:
    explicit OtherProcess(const std::function<void()>& body) : pid_(::fork()) {
        if (pid_ != 0) return;
        try {
            body();
        } catch (...) {
            ::_exit(1);
        }
        ::_exit(0);
    }
    OtherProcess(const OtherProcess&) = delete;
    OtherProcess& operator=(const OtherProcess&) = delete;
    ~OtherProcess() {
        int status = -1;
        EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
        EXPECT_EQ(status, 0);
    }

private:
    pid_t pid_;
};

/// A pipe through which one process tells another that it may go on.
class Signal {
public:
    Signal() {
        if (::pipe(ends_) != 0) throw std::runtime_error("pipe");
    }
    ~Signal() {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    Signal(const Signal&) = delete;
    Signal& operator=(const Signal&) = delete;
    void send() const { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }
    void wait() const {
        char c = 0;
        EXPECT_EQ(::read(ends_[0], &c, 1), 1);
    }

private:
    int ends_[2] = {};
};

TEST(DirectoryStore, a_lock_file_that_was_removed_locks_nothing_any_more) {
    const fs::path root = fresh_directory();
    const auto store = directory_store(root);
    store->lock("", 0, LockMode::exclusive).unlock();  // has the lock file open from now on
    const Signal locked;
    const Signal done;
    fs::remove_all(root / ".tessera");  // as anybody may while nobody holds a lock
    const OtherProcess other([&] {
        const StoreLock lock = directory_store(root)->lock("", 0, LockMode::exclusive);
        locked.send();
        done.wait();
    });
    locked.wait();
    EXPECT_FALSE(store->try_lock("").has_value()) << "two processes have the array to themselves";
    done.send();
    const StoreLock lock = store->lock("", 0, LockMode::exclusive);
    EXPECT_TRUE(fs::exists(root / ".tessera/lock"));
}

TEST(DirectoryStore, a_lock_file_that_is_removed_while_it_is_waited_for_locks_nothing) {
    const fs::path root = fresh_directory();
    const auto store = directory_store(root);
    const Signal locked;
    const Signal waiting;
    const Signal released;
    const Signal again;
    const Signal done;
    const OtherProcess other([&] {
        const auto theirs = directory_store(root);
        StoreLock lock = theirs->lock("", 0, LockMode::exclusive);
        locked.send();
        waiting.wait();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // by then it most likely waits
        fs::remove_all(root / ".tessera");
        lock.unlock();
        released.wait();  // else both would wait for each other where this one is the first
        const StoreLock anew = directory_store(root)->lock("", 0, LockMode::exclusive);
        again.send();
        done.wait();
    });
    locked.wait();
    waiting.send();
    StoreLock mine = store->lock("", 0, LockMode::shared);
    struct stat status {};
    EXPECT_EQ(::stat((root / ".tessera/lock").c_str(), &status), 0) << "locked by a file that has no name";
    mine.unlock();
    released.send();
    again.wait();
    EXPECT_FALSE(store->try_lock("").has_value());
    done.send();
}

TEST(DirectoryStore, locks_hold_between_stores_on_one_directory) {
    const fs::path root = fresh_directory();
    fs::create_directory(root / "array");
    fs::create_directory_symlink(root / "array", root / "alias");
    const auto a = directory_store(root);
    const auto b = directory_store(root / "alias");
    std::atomic<bool> held = false;
    StoreLock lock = a->lock("array", 7, LockMode::exclusive);
    std::thread other([&] {
        const StoreLock waits = b->lock("", 7, LockMode::exclusive);
        EXPECT_TRUE(held.load());
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    held = true;
    lock.unlock();
    other.join();
}

}  // namespace
}  // namespace tessera
