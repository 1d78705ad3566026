#include "paths.h"

#include <tessera/error.h>
#include <algorithm>

#include "report.h"

namespace tessera::cli {

int for_each_path(Session& session, const std::vector<std::string>& paths,
                  const std::function<int(const std::string& path)>& each) {
    if (paths.size() == 1) return each(paths.front());
    int worst = exit_done;
    JsonList list(session.options().json);
    for (const std::string& path : paths) {
        try {
            worst = std::max(worst, each(path));
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled) throw;
            session.clear_progress();
            flush_output();
            worst = std::max(worst, complain(session.options().json, e));
        }
    }
    list.end();
    return worst;
}

}  // namespace tessera::cli
